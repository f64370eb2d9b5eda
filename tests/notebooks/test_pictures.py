"""Five figures of the book look as they do in the pictures beside this file, one of each kind of drawing.

pytest-mpl draws and compares them; where one differs, it says where both pictures
and their difference are.
After an intended change:
``pytest tests/notebooks/test_pictures.py --mpl-generate-path=tests/notebooks/pictures``, then look at them.
"""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

from companion.book import style
from tests.notebooks.figure_pages import sheet_until

TOLERANCE = 0.5  # root mean square of 255 shades over all pixels
DOTS = 80  # an inch
LOOK = str(Path(style.__file__).with_name("book.mplstyle"))
PICTURES = {
    "points": ("attend/temporal_share", "temporal_share"),
    "heat_maps": ("attend/attention_matrices", "average_and_sample"),
    "matrices_of_terms": ("attend/alignment_breakdown", "covariance_shares"),
    "curves": ("primer/source_reversal", "learning_curves"),
    "bars": ("attend/readout", "what_is_kept"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("page", "name"), PICTURES.values(), ids=PICTURES)
@pytest.mark.mpl_image_compare(
    baseline_dir="pictures", style=LOOK, backend="agg", tolerance=TOLERANCE, savefig_kwargs={"dpi": DOTS}
)
def test_a_figure_looks_as_its_picture(page, name, tmp_path):
    sheet = sheet_until(page, name, tmp_path)
    return sheet.drawings[-1].figure


def test_pictures_are_compared(pytestconfig):
    from pytest_mpl.plugin import ImageComparison

    plugins = pytestconfig.pluginmanager.get_plugins()
    assert any(isinstance(plugin, ImageComparison) for plugin in plugins)


def points_drawn(path: Path, heights: list[float]) -> str:
    """Leave a picture of some points, and return its path."""
    figure = Figure(figsize=(6, 4), dpi=DOTS)
    figure.add_subplot().plot(range(len(heights)), heights, "o")
    figure.savefig(path)
    return str(path)


def test_one_point_that_moved_is_noticed(tmp_path):
    heights = [0.1 * place for place in range(20)]
    before = points_drawn(tmp_path / "before.png", heights)
    after = points_drawn(tmp_path / "after.png", [*heights[:7], heights[7] + 0.1, *heights[8:]])
    assert compare_images(before, after, tol=TOLERANCE)


def test_the_same_points_drawn_again_are_the_same_picture(tmp_path):
    heights = [0.1 * place for place in range(20)]
    before = points_drawn(tmp_path / "before.png", heights)
    after = points_drawn(tmp_path / "after.png", heights)
    assert compare_images(before, after, tol=0) is None
