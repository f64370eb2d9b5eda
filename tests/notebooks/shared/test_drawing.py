"""What figures of several chapters are made of: panels, labels, equal bytes, and a note of what is cut."""

import io

import pytest
from matplotlib import image
from matplotlib.figure import Figure
from matplotlib.text import Text

from companion.book.style import DOTS, as_png, as_svg, style
from companion.results.result import Result
from notebooks.shared.style import NOTE, cut_note, dot_rows, panels, write_labels

KINDS, TASKS = ("AED", "AO"), ("scan", "multi30k_en_fr")


def drawn() -> Figure:
    def panel(axes, task, kind, leftmost, lowest) -> bool:
        axes.plot([0, 1], [0, len(task)])
        axes.set(xlabel="across" if lowest else "", ylabel="up" if leftmost else "")
        return (task, kind) != ("scan", "AO")

    return panels(list(TASKS), list(KINDS), panel, width=2.3, height=2.4)


@pytest.mark.slow
def test_an_svg_is_what_savefig_writes():
    by_savefig = io.StringIO()
    with style():
        drawn().savefig(by_savefig, format="svg", dpi=DOTS, metadata={"Date": None})
    assert as_svg(drawn()) == by_savefig.getvalue()


def test_a_png_has_the_size_of_the_figure():
    figure = drawn()
    pixels, inches = image.imread(io.BytesIO(as_png(figure))), figure.get_size_inches()
    assert pixels.shape[:2] == (int(DOTS * inches[1]), int(DOTS * inches[0]))


@pytest.mark.slow
def test_equal_figures_are_equal_pngs():
    assert as_png(drawn()) == as_png(drawn())


@pytest.mark.parametrize("draw", [as_svg, as_png])
def test_a_drawn_figure_keeps_the_dots_an_inch_of_the_caller(draw):
    figure = drawn()
    dots = figure.dpi
    draw(figure)
    assert figure.dpi == dots


def test_text_of_a_drawing_stays_text():
    with style():
        figure = Figure()
        figure.text(0, 0, "temporal share μ·μ")
    assert ">temporal share μ·μ</text>" in as_svg(figure)


def test_text_of_a_drawing_can_be_paths():
    with style():
        figure = Figure()
        figure.text(0, 0, "temporal share μ·μ")
    assert "<text" not in as_svg(figure, "path")


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


@pytest.mark.parametrize(
    ("draw", "cut"),
    [
        (lambda axes: axes.plot([0.2, 0.2], [0, 1.004]), False),  # nobody sees so little
        (lambda axes: axes.plot([0.2, 0.2], [0.5, 1.2]), True),
        (lambda axes: axes.plot([-0.2, 0.2], [0.5, 0.5]), True),
        (lambda axes: axes.bar(0.5, 1.3, 0.1), True),
        (lambda axes: axes.fill_between([0.1, 0.9], [-0.3, 0.2], [0.5, 0.6]), True),
    ],
)
def test_a_caption_says_that_lines_bars_or_bands_leave_the_frame_where_some_do(draw, cut):
    figure = Figure()
    axes = figure.subplots()
    axes.axhline(0.5)  # from edge to edge in the frame's own coordinates
    axes.axvspan(-1, 2)
    draw(axes)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    assert cut_note(figure) == (NOTE if cut else "")
    axes.set_visible(False)
    assert cut_note(figure) == cut_note(Figure()) == ""


def labels_along_a_diagonal(line):
    """Points on a diagonal, from which labels have to go to a side; there is no room for all."""
    figure = Figure(figsize=(3, 3))
    axes = figure.subplots()
    axes.plot(*[[n / 40 for n in range(41)]] * 2, marker="o", ls=line, ms=3)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    write_labels(axes, [(0.5, 0.5, f"word {n}", "black") for n in range(60)])
    figure.draw_without_rendering()
    return axes, [Text.get_window_extent(text) for text in axes.texts]  # without the line that joins it


@pytest.mark.parametrize("line", ["", "-"])
def test_labels_for_which_there_is_no_room_are_left_out(line):
    _, boxes = labels_along_a_diagonal(line)
    assert 4 <= len(boxes) < 60


@pytest.mark.parametrize("line", ["", "-"])
def test_labels_cover_no_point(line):
    axes, boxes = labels_along_a_diagonal(line)
    points = axes.transData.transform(axes.lines[0].get_xydata())
    assert not any(box.contains(*point) for box in boxes[:4] for point in points)


@pytest.mark.parametrize("line", ["", "-"])
def test_labels_cover_no_other_label(line):
    _, boxes = labels_along_a_diagonal(line)
    assert not any(box.overlaps(other) for n, box in enumerate(boxes) for other in boxes[:n])
