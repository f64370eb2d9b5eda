"""A caption says that something is cut where something is, and there alone."""

import pytest
from matplotlib.figure import Figure

from notebooks.shared.labels import write_labels
from notebooks.shared.style import NOTE, cut_note


@pytest.fixture
def figure() -> Figure:
    figure = Figure()
    axes = figure.subplots()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.axhline(0.5)  # from edge to edge in the frame's own coordinates
    axes.axvspan(-1, 2)
    axes.plot([0.2, 0.2], [0, 1.004])  # nobody sees so little
    return figure


def test_what_stands_inside_is_not_cut(figure):
    assert cut_note(figure) == ""
    assert cut_note(Figure()) == ""


@pytest.mark.parametrize(
    "draw",
    [
        lambda axes: axes.plot([0.2, 0.2], [0.5, 1.2]),
        lambda axes: axes.plot([-0.2, 0.2], [0.5, 0.5]),
        lambda axes: axes.bar(0.5, 1.3, 0.1),
        lambda axes: axes.fill_between([0.1, 0.9], [-0.3, 0.2], [0.5, 0.6]),
    ],
)
def test_lines_bars_and_bands_that_leave_the_frame_are(figure, draw):
    axes = figure.get_axes()[0]
    draw(axes)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    assert cut_note(figure) == NOTE
    axes.set_visible(False)
    assert cut_note(figure) == ""


# Labels beside points: another side where the first is taken, and none where all are.


def written(*labels):
    axes = Figure().subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    write_labels(axes, [(x, y, text, "black") for x, y, text in labels])
    return {text.get_text(): (text.get_ha(), text.get_va()) for text in axes.texts}


def test_a_label_that_would_cover_another_goes_to_another_side_or_is_left_out():
    found = written(*((0.5, 0.5, name) for name in "abcde"), (0.9, 0.9, "far"))
    assert found == {
        "a": ("left", "baseline"),
        "b": ("left", "top"),
        "c": ("right", "baseline"),
        "d": ("right", "top"),
        "far": ("left", "baseline"),
    }


def test_a_label_left_of_its_point_stays_inside_the_frame():
    assert set(written((0.05, 0.5, "one"), (0.05, 0.5, "two"), (0.05, 0.5, "long"))) == {"one", "two"}
