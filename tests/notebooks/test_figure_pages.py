"""What a reader would miss in a drawing is noticed, and the numbers of a table are read from its text."""

import pandas as pd
import pytest
from IPython.display import Markdown
from matplotlib.figure import Figure

from companion.book.style import as_svg, style
from tests.notebooks.figure_pages import Drawing, numbers_of_tables


def drawing(
    label="accuracy",
    *,
    points=(1, 2, 3),
    place=(0.5, 0.5),
    note="learned",
    alt="Three points on a rising line.",
    caption="x",
):
    with style():
        figure = Figure(figsize=(3, 2))
        axes = figure.add_subplot()
    if points:
        axes.plot(points, "o")
    axes.set_ylabel(label)
    figure.text(*place, note)
    return Drawing("example", figure, as_svg(figure), alt, caption)


def test_a_drawing_of_labelled_marks_has_no_faults():
    assert drawing().faults() == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        pytest.param({"points": ()}, "draws nothing", id="empty"),
        pytest.param({"label": "", "note": ""}, "has no text", id="only_numbers_at_ticks"),
        pytest.param({"place": (0.9, 0.5), "note": "far " * 30}, "is cut off", id="beyond_the_edge"),
        pytest.param({"alt": "Points."}, "says too little", id="short_alternative_text"),
        pytest.param({"caption": ""}, "has no caption", id="no_caption"),
        pytest.param({"label": "share of AED-gru"}, "'AED-gru'", id="key_of_a_network"),
    ],
)
def test_the_one_fault_of_a_drawing_is_found(changes, fault):
    (message,) = drawing(**changes).faults()
    assert fault in message


def test_numbers_of_a_frame_are_those_of_its_cells_row_by_row():
    frame = pd.DataFrame({"task": ["captions", "digits"], "share": [0.25, -1.5], "n": [3, 10]}).set_index(
        "task"
    )
    assert numbers_of_tables([frame]) == {"table 1": ["0.25 3", "-1.5 10"]}


def test_numbers_of_a_text_are_read_with_their_intervals():
    text = Markdown("| task | share |\n|---|---|\n| captions | 0.87 [0.84, 0.90] |")
    assert numbers_of_tables([None, text]) == {"table 1": ["0.87 0.84 0.90"]}


def test_other_words_for_the_same_numbers_are_the_same_table():
    first, other = (pd.DataFrame({word: [0.5]}, index=["row"]) for word in ("share", "portion"))
    assert numbers_of_tables([first]) == numbers_of_tables([other])
