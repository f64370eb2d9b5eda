"""Drawings of the second paper's things: one step, the lexical probe, the classifier, optimal attention."""

from collections.abc import Callable
from itertools import pairwise
from math import exp, sqrt

from companion.book.drawings.hand import SMALL, Drawing, Point

Weights = tuple[float, float, float]  # an attention over three positions

WORDS, STATE = ("the", "cat", "sleeps"), (38, 30)


def step() -> Drawing:
    """Draw one step of attention: scores, weights, context, word."""
    drawing = Drawing(
        "step",
        "One step of attention",
        "A query meets three encoder states. Three scores become, by a softmax, three weights, of which "
        "that of cat is largest. The weighted states are added to the context, from which the word chat "
        "is read.",
        height=330,
    )
    x = (126, 204, 282)
    rows = (("states", 42), ("scores", 108), ("weights", 174))
    for name, y in rows:
        drawing.text((8, y + 5), name, anchor="start", bold=True)
    encoder = [drawing.box((centre, 42), f"h_{t}", size=STATE) for t, centre in enumerate(x, 1)]
    for state, word in zip(encoder, WORDS, strict=True):
        drawing.text((state.centre[0], 16), word)
    for state, height in zip(encoder, (12, 26, 6), strict=True):
        drawing.arrow(state.bottom, (state.centre[0], 84))
        _bar(drawing, (state.centre[0], 124), height=height)
    for centre in x:
        drawing.arrow((centre, 130), (centre, 148))
    drawing.text((8, 144), "softmax", anchor="start", size=SMALL, tone="muted")
    drawing.text((8, 82), "how well it fits", anchor="start", size=SMALL, tone="muted")
    pool = drawing.box((204, 244), "context", size=(92, 30))
    for centre, height, weight in zip(x, (5, 34, 3), (0.1, 0.9, 0.05), strict=True):
        _bar(drawing, (centre, 190), height=height)
        drawing.attention((centre, 194), (204 + (centre - 204) * 0.4, pool.top[1]), weight=weight)
    drawing.text((8, 249), "weighted sum", anchor="start", size=SMALL, tone="muted")
    word = drawing.box((204, 306), "chat", size=(92, 30), dashed=True)
    drawing.arrow(pool.bottom, word.top)
    drawing.text((8, 311), "next word", anchor="start", size=SMALL, tone="muted")
    return drawing


def probe() -> Drawing:
    """Draw the lexical probe as all weight at one position."""
    drawing = Drawing(
        "probe",
        "The lexical probe: all weight here",
        "Above, attention as it is: lines from three states to the readout. Below, all weight is put on "
        "the second state, cat, and the readout then gives chat the probability β of position 2.",
        height=330,
    )
    for y, row, title in (
        (40, (0.45, 0.35, 0.2), "attention as learned"),
        (210, (0, 1, 0), "all weight here"),
    ):
        drawing.text((8, y - 22), title, anchor="start", bold=True)
        states = [drawing.box((x, y + 70), f"h_{t}", size=STATE) for t, x in enumerate((34, 92, 150), 1)]
        probing = y > 100
        readout = drawing.box((92, y + 8), "context", size=(86, 28), tone="highlight" if probing else "ink")
        for state, word, weight in zip(states, WORDS, row, strict=True):
            drawing.text((state.centre[0], y + 102), word)
            if weight:
                end = (92 + 0.4 * (state.centre[0] - 92), readout.bottom[1])
                drawing.attention(state.top, end, weight=weight, tone="highlight" if probing else "ink")
        network = drawing.box((206, y + 8), "readout", size=(78, 28))
        drawing.arrow(readout.right, network.left)
        drawing.arrow(network.right, (270, y + 8))
        drawing.text((303, y + 4 if probing else y + 13), "p(chat)")
        if probing:
            drawing.text((303, y + 22), "= β_2", tone="highlight", bold=True)
    return drawing


def classifier() -> Drawing:
    """Draw the second paper's classifier."""
    drawing = Drawing(
        "classifier",
        "A classifier with attention",
        "An LSTM reads a fine film in both directions. Each state gives a score, and by softmax a "
        "weight α; and it gives log odds γ of the label. The weighted sum of the log odds, through σ, "
        "is the probability of the label.",
        height=318,
    )
    x = (90, 190, 290)
    states = [drawing.box((centre, 258), f"h_{t}", size=STATE) for t, centre in enumerate(x, 1)]
    for left, right in pairwise(states):
        (start, y), (end, _) = left.right, right.left
        drawing.arrow((start, y - 4), (end, y - 4))
        drawing.arrow((end, y + 4), (start, y + 4))
    for t, (state, word) in enumerate(zip(states, ("a", "fine", "film"), strict=True), 1):
        centre = state.centre[0]
        drawing.text((centre, 294), word)
        weight = drawing.box((centre - 22, 178), f"α_{t}", size=(36, 30), tone="highlight")
        odds = drawing.box((centre + 22, 178), f"γ_{t}", size=(36, 30))
        drawing.arrow((centre - 7, 242), (weight.bottom[0], 194))
        drawing.arrow((centre + 7, 242), (odds.bottom[0], 194))
        drawing.arrow((centre, 158), (190 + 0.5 * (centre - 190), 117))
    total = drawing.box((190, 100), "Σ_t α_t γ_t", size=(128, 32))
    label = drawing.box((190, 40), "σ: good film?", size=(128, 32), dashed=True)
    drawing.arrow(total.top, label.bottom)
    drawing.text((8, 140), "weights", anchor="start", size=SMALL, tone="highlight")
    drawing.text((8, 157), "log odds", anchor="start", size=SMALL, tone="muted")
    drawing.text((8, 263), "LSTM", anchor="start", size=SMALL, tone="muted")
    return drawing


def two_labels() -> Drawing:
    """Draw all attentions over three positions, and the probability of the right one of two labels."""
    drawing = Drawing(
        "two_labels",
        "Two labels: the best attention is a corner",
        "A triangle, each point of which is an attention over three positions. The probability of the "
        "correct label, as shade, grows steadily towards corner 3, which is the best attention.",
        height=320,
    )
    drawing.text((170, 16), "Two labels: best where β is largest", bold=True)

    def right(weights: Weights) -> float:
        return 1 / (1 + exp(-(-2 * weights[0] - 0.5 * weights[1] + 2.5 * weights[2])))

    _triangle(drawing, right, best=(0, 0, 1))
    return drawing


def three_words() -> Drawing:
    """Draw the same for the paper's counterexample, where mixing two wrong positions is best."""
    drawing = Drawing(
        "three_words",
        "Three words: the best attention is a mixture",
        "The same triangle for the paper’s counterexample. The probability of the correct word is largest "
        "half way between positions 2 and 3, though either alone is almost sure of a wrong word.",
        height=320,
    )
    drawing.text((170, 16), "Three words: best between two small β", bold=True)

    def right(weights: Weights) -> float:
        _, second, third = weights
        return 1 / (1 + exp(5 * third - 10 * second) + exp(5 * second - 10 * third))

    _triangle(drawing, right, best=(0, 0.5, 0.5))
    return drawing


CORNERS: tuple[Point, Point, Point] = ((170, 50), (48, 50 + 122 * sqrt(3)), (292, 50 + 122 * sqrt(3)))
CELLS = 12  # small triangles along a side


def _triangle(drawing: Drawing, probability: Callable[[Weights], float], *, best: Weights) -> None:
    """Shade the triangle of attentions by a probability, and mark the best."""
    for row in range(CELLS):
        for column in range(2 * row + 1):
            corners = _cell(row, column)
            first, second, third = (sum(weights) / 3 for weights in zip(*corners, strict=True))
            shade = 0.7 * probability((first, second, third))
            drawing.area([_place(corner) for corner in corners], tone="highlight", opacity=shade)
    top, left, right = CORNERS
    drawing.route(top, left, right, top, tip=False)
    probes = [f"β = {probability(alone):.2g}" for alone in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    drawing.text((170, 42), f"all on 1: {probes[0]}")
    for (x, y), corner, probe in ((left, "all on 2", probes[1]), (right, "all on 3", probes[2])):
        drawing.text((x, y + 22), corner)
        drawing.text((x, y + 40), probe)
    place = _place(best)
    drawing.dot(place, radius=6, tone="highlight")
    drawing.ring(place, radius=10, tone="highlight")


def _cell(row: int, column: int) -> list[Weights]:
    """Return the corners of a small triangle as attentions; odd columns point down."""

    def weights(down: int, along: int) -> Weights:
        return 1 - down / CELLS, (down - along) / CELLS, along / CELLS

    place = column // 2
    if column % 2:
        return [weights(row, place), weights(row, place + 1), weights(row + 1, place + 1)]
    return [weights(row, place), weights(row + 1, place), weights(row + 1, place + 1)]


def _place(weights: Weights) -> Point:
    x = sum(weight * corner[0] for weight, corner in zip(weights, CORNERS, strict=True))
    y = sum(weight * corner[1] for weight, corner in zip(weights, CORNERS, strict=True))
    return x, y


def _bar(drawing: Drawing, foot: Point, *, height: float) -> None:
    x, y = foot
    drawing.area(
        [(x - 12, y), (x + 12, y), (x + 12, y - height), (x - 12, y - height)], tone="ink", opacity=0.4
    )
    drawing.line((x - 16, y), (x + 16, y))
