"""A drawing of the way between two words, along the recurrence and by attention."""

from itertools import pairwise

from companion.book.drawings.hand import SMALL, Box, Drawing, Tone

STATE = (29, 28)
SPACING = 41


def paths() -> Drawing:
    """Draw how many recurrent steps lie between a source word and what is written of it."""
    drawing = Drawing(
        "paths",
        "The way from a source word to its translation",
        "Two rows of states. With one vector, what is written at y1 depends on x1 through four recurrent "
        "steps. With attention, an arrow leads from the state of x1 to the output at y1 in one step.",
        height=286,
    )
    names = [*(f"x_{t}" for t in range(1, 5)), *(f"y_{i}" for i in range(1, 5))]
    drawing.text((8, 18), "one vector: step by step", anchor="start", bold=True)
    states = _row(drawing, names, y=88, highlighted=4)
    _write(drawing, states[4])
    drawing.text((170, 128), "the gradient goes back the same way", size=SMALL, tone="muted")
    drawing.text((8, 164), "attention: one step", anchor="start", bold=True)
    states = _row(drawing, names, y=240)
    output = _write(drawing, states[4])
    drawing.arrow(states[0].top, (output[0] - 6, output[1] + 4), bend=16, tone="highlight")
    drawing.text((170, 280), "one step, from every word", size=SMALL, tone="muted")
    return drawing


def _row(drawing: Drawing, names: list[str], *, y: float, highlighted: int = 0) -> list[Box]:
    """Draw a chain of states; the first ``highlighted`` arrows are coloured."""
    places = [26 + SPACING * place for place in range(len(names))]
    states = [drawing.box((x, y), name, size=STATE) for x, name in zip(places, names, strict=True)]
    for step, (left, right) in enumerate(pairwise(states)):
        tone: Tone = "highlight" if step < highlighted else "ink"
        drawing.arrow(left.right, right.left, tone=tone)
    return states


def _write(drawing: Drawing, state: Box) -> tuple[float, float]:
    """Draw the word that a state writes; return the place below it."""
    x, y = state.top
    drawing.arrow((x, y), (x, y - 20))
    drawing.text((x, y - 26), "word", size=SMALL)
    return x, y - 22
