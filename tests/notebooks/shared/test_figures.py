"""What figures of several chapters are made of: bands of panels, equal bytes, a sentence for no result."""

import io
import re

import pytest
from matplotlib import image
from matplotlib.figure import Figure

from companion.book.style import DOTS, as_images, as_png, as_svg, style
from companion.results.result import Result, kinds_of
from notebooks.shared.bands import panels
from notebooks.shared.dots import dot_rows

KINDS = ("AED", "AO")


def drawn(tasks=("scan", "multi30k_en_fr")) -> Figure:
    def panel(axes, task, kind, leftmost, lowest) -> bool:
        axes.plot([0, 1], [0, len(task)])
        axes.set(xlabel="across" if lowest else "", ylabel="up" if leftmost else "")
        return (task, kind) != ("scan", "AO")

    return panels(list(tasks), list(KINDS), panel, width=2.3, height=2.4)


def test_equal_figures_are_equal_bytes_without_a_date():
    first, again = as_svg(drawn()), as_svg(drawn())
    assert first == again
    assert not re.search(r"20\d\d-\d\d-\d\dT", first)
    assert as_png(drawn()) == as_png(drawn())


def test_one_laying_out_serves_both_images():
    svg, png = as_images(drawn())
    by_savefig = io.StringIO()
    with style():
        drawn().savefig(by_savefig, format="svg", dpi=DOTS, metadata={"Date": None})
    assert svg == by_savefig.getvalue()
    figure = drawn()
    pixels = image.imread(io.BytesIO(png))
    inches = figure.get_size_inches()
    assert pixels.shape[:2] == (int(DOTS * inches[1]), int(DOTS * inches[0]))
    dots = figure.dpi
    as_images(figure)
    assert figure.dpi == dots, "the figure is the caller's own"


def test_kinds_are_in_the_order_of_the_ladder_and_not_of_the_alphabet():
    tasks = ("scan", "multi30k_en_fr")
    values = {task: dict.fromkeys(KINDS, 0) for task in sorted(tasks)}
    result = Result("x", "quick", {"task": list(tasks)}, values, {}, {}, {})
    assert [kind[:2] for kind in kinds_of(result)] == [(task, kind) for task in tasks for kind in KINDS]


@pytest.mark.parametrize(
    "figure",
    [
        dot_rows(Result("x", "quick", {"task": []}, {"tokens": {}}, {}, {}, {}), {"x": []}, xlabel="x"),
        panels([], [], None, width=1, height=1),
    ],
)
def test_a_result_without_networks_has_a_sentence_instead_of_axes(figure):
    assert figure.get_axes() == []
    assert "measured nothing" in figure.texts[0].get_text()
