"""The figure of README.md, drawn from the committed result: ``python -m attnlib.companion.readme``."""

from pathlib import Path

from attnlib.companion.project import current_project
from attnlib.experiments.result import Result
from attnlib.files import write_text_atomic
from attnlib.plotting.headline import against_typicality
from attnlib.plotting.style import as_svg


def readme_figure(folder: Path) -> tuple[Path, str]:
    """Path and text of the figure that belongs to the result in ``folder``."""
    return folder / "temporal_share.svg", as_svg(
        against_typicality(Result.load(folder / "temporal_share.json"))
    )


if __name__ == "__main__":
    path, text = readme_figure(current_project().results("paper"))
    write_text_atomic(path, text)
    print(path)
