"""README.md shows what the committed result says."""

from pathlib import Path

from notebooks.attend.temporal_share.drawing import readme_figure

ROOT = Path(__file__).parents[3]


def test_the_figure_of_the_readme_is_drawn_from_the_committed_result():
    path, text = readme_figure(ROOT / "results" / "paper")
    assert path.relative_to(ROOT).as_posix() in (ROOT / "README.md").read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "make readme draws it anew"
