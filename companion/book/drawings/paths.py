"""Drawings of the way between two words: read backwards, along the recurrence, and by attention."""

from itertools import pairwise

from companion.book.drawings.hand import SMALL, Box, Drawing, Tone

SENTENCE_LENGTH = 4
STATE = (29, 28)
SPACING = 41


def reversal() -> Drawing:
    """Draw the distances between words and their translations, the source read forwards and backwards."""
    drawing = Drawing(
        "reversal",
        "A source read forwards and backwards",
        "Two rows of eight states, four that read x1 to x4 and four that write y1 to y4. Read forwards, each "
        "word is four steps from its translation. Read backwards, x1 is one step from y1, and the others are "
        "three, five and seven steps away: the shortest way is shorter, and the mean stays four.",
        height=334,
    )
    forwards = list(range(1, SENTENCE_LENGTH + 1))
    for title, order, y in (("read forwards", forwards, 112), ("read backwards", forwards[::-1], 272)):
        drawing.text((8, y - 92), title, anchor="start", bold=True)
        states = _row(drawing, [*(f"x_{t}" for t in order), *(f"y_{i}" for i in forwards)], y=y)
        sources = dict(zip(order, states, strict=False))
        targets = dict(zip(forwards, states[SENTENCE_LENGTH:], strict=True))
        distances = []
        for word in forwards:
            start, end = sources[word].top, targets[word].top
            steps = round((end[0] - start[0]) / SPACING)
            distances.append(str(steps))
            drawing.arrow(start, end, bend=6 + 8 * steps, tone="highlight" if word == 1 else "muted")
        note = f"steps to its translation: {', '.join(distances)}"
        drawing.text((170, y + 36), note, size=SMALL, tone="muted")
    return drawing


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
    drawing.text((170, 280), "at every distance alike", size=SMALL, tone="muted")
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
