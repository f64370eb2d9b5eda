"""Drawings of the architectures: one vector, attention, and the family of VED, AED and AO."""

from itertools import pairwise
from typing import Literal

from companion.book.drawings.hand import SMALL, Box, Drawing

SOURCE, TARGET = ("the", "cat", "sleeps"), ("le", "chat", "dort")
STATE = (38, 30)


def cho() -> Drawing:
    """Draw one vector that is read at every step."""
    drawing = Drawing(
        "cho",
        "Cho’s encoder–decoder",
        "An encoder reads the cat sleeps into three states. Its last state becomes one vector c. Arrows "
        "lead from c to each of three decoder states, which also read the word before, and to each of "
        "the words they write.",
        height=236,
    )
    drawing.text((170, 16), "Cho et al.: c at every step", bold=True)
    encoder = [drawing.box((x, 150), f"h_{t}", size=STATE) for t, x in enumerate((26, 78, 130), 1)]
    decoder = [drawing.box((x, 150), f"d_{i}", size=STATE) for i, x in enumerate((206, 260, 314), 1)]
    _chain(drawing, encoder)
    _chain(drawing, decoder)
    for state, word in zip(encoder, SOURCE, strict=True):
        _read(drawing, state, word)
    for state, before, word in zip(decoder, ("⟨s⟩", *TARGET), TARGET, strict=False):
        x = state.centre[0]
        _read(drawing, state, before)
        drawing.text((x, 54), word)
        drawing.arrow((x + 9, 133), (x + 9, 62))
    vector = drawing.box((148, 92), "c", size=(34, 28), tone="highlight", bold=True)
    drawing.arrow((134, 133), (142, 108), tone="highlight")
    bus = 92
    drawing.route(vector.right, (305, bus), tone="highlight", tip=False)
    for state in decoder:
        x = state.centre[0] - 9
        drawing.arrow((x, bus), (x, 133), tone="highlight")
        drawing.arrow((x, bus), (x, 62), tone="highlight")
    drawing.text((78, 228), "encoder", size=SMALL, tone="muted")
    drawing.text((260, 228), "decoder", size=SMALL, tone="muted")
    return drawing


def sutskever() -> Drawing:
    """Draw one vector that starts the decoder, with layers and a reversed source."""
    drawing = Drawing(
        "sutskever",
        "Sutskever’s encoder–decoder",
        "Two layers of an encoder read the sentence backwards: sleeps cat the. The last state of either "
        "layer starts the same layer of the decoder, which gets nothing else of the source and writes "
        "le chat dort.",
        height=236,
    )
    drawing.text((170, 16), "Sutskever et al.: a start, then nothing", bold=True)
    places = (26, 78, 130, 206, 260, 314)
    rows = [[drawing.box((x, y), size=STATE) for x in places] for y in (150, 96)]
    for row in rows:
        _chain(drawing, row[:3])
        _chain(drawing, row[3:])
        drawing.arrow(row[2].right, row[3].left, tone="highlight")
    for below, above in zip(*rows, strict=True):
        drawing.arrow(below.top, above.bottom)
    for state, word in zip(rows[0], (*SOURCE[::-1], "⟨s⟩", *TARGET), strict=False):
        _read(drawing, state, word)
    for state, word in zip(rows[1][3:], TARGET, strict=True):
        x = state.centre[0]
        drawing.arrow(state.top, (x, 62))
        drawing.text((x, 54), word)
    drawing.text((168, 54), "the one vector", size=SMALL, tone="highlight", anchor="end")
    drawing.route((150, 60), (166, 84), tone="highlight", tip=False, dashed=True)
    drawing.text((78, 228), "encoder, source reversed", size=SMALL, tone="muted")
    drawing.text((260, 228), "decoder", size=SMALL, tone="muted")
    return drawing


def bahdanau() -> Drawing:
    """Draw attention that the previous state directs, its context read by the recurrence."""
    drawing = Drawing(
        "bahdanau",
        "Bahdanau’s decoder",
        "The previous decoder state d of s minus 1 is the query. Attention makes the context c of s of "
        "the states of a bidirectional encoder. The context enters the next state d of s and the "
        "output, from which the word is read off.",
        height=300,
    )
    drawing.text((170, 16), "Bahdanau: the previous state is the query", bold=True)
    before, state, pool = _attention_step(drawing, both_directions=True)
    output = drawing.box((290, 104), "output", size=(60, STATE[1]))
    drawing.arrow(state.right, output.left)
    drawing.arrow(output.top, (290, 66))
    drawing.text((290, 58), "word")
    drawing.arrow((before.centre[0], before.bottom[1]), (124, pool.top[1]), tone="highlight")
    drawing.text((64, 152), "query", size=SMALL, tone="highlight", anchor="end")
    drawing.arrow(pool.top, state.bottom, tone="highlight")
    drawing.arrow((216, pool.top[1]), (283, output.bottom[1] + 1), tone="highlight")
    drawing.text((262, 152), "context", size=SMALL, tone="highlight", anchor="start")
    return drawing


def luong() -> Drawing:
    """Draw attention that the current state directs, its context read by the output alone."""
    drawing = Drawing(
        "luong",
        "Luong’s decoder",
        "The same picture with other arrows. The current decoder state d of s is the query, and the "
        "context c of s enters a layer m of s beside the recurrence, from which the word is read off.",
        height=300,
    )
    drawing.text((170, 16), "Luong: the current state is the query", bold=True)
    _, state, pool = _attention_step(drawing, both_directions=False)
    output = drawing.box((290, 104), "m_s", size=(44, STATE[1]))
    drawing.arrow(state.right, output.left)
    drawing.arrow(output.top, (290, 66))
    drawing.text((290, 58), "word")
    drawing.arrow(state.bottom, pool.top, tone="highlight")
    drawing.text((162, 146), "query", size=SMALL, tone="highlight", anchor="end")
    drawing.arrow((216, pool.top[1]), (283, output.bottom[1] + 1), tone="highlight")
    drawing.text((262, 152), "context", size=SMALL, tone="highlight", anchor="start")
    return drawing


def ved() -> Drawing:
    """Draw the network with recurrence alone."""
    return _family(
        "ved",
        title="VED: a GRU without attention",
        heading="one vector (VED)",
        note=("recurrence,", "no attention"),
        about="Three encoder states in a chain; the last one starts a chain of three decoder states. Nothing "
        "else joins the two.",
    )


def aed() -> Drawing:
    """Draw the network with recurrence and attention."""
    return _family(
        "aed",
        title="AED: a GRU with attention",
        heading="attention (AED)",
        note=("recurrence", "and attention"),
        about="The chains and the start of VED, and in addition a line of attention from every encoder state "
        "to every decoder state; the lines between words that translate each other are thick.",
    )


def ao() -> Drawing:
    """Draw the network with attention alone."""
    return _family(
        "ao",
        title="AO: attention only",
        heading="attention only (AO)",
        note=("attention,", "no recurrence"),
        about="Encoder and decoder states stand alone, each made of its word and the number of its position. "
        "Attention is all that joins the two sides.",
    )


def _family(
    kind: Literal["ved", "aed", "ao"], *, title: str, heading: str, note: tuple[str, str], about: str
) -> Drawing:
    drawing = Drawing(kind, title, about, width=216, height=290)
    drawing.text((108, 16), heading, bold=True)
    places = (44, 112, 180)
    recurrent, attends = kind != "ao", kind != "ved"
    decoder = [drawing.box((x, 94), f"d_{i}", size=STATE) for i, x in enumerate(places, 1)]
    encoder = [drawing.box((x, 182), f"h_{t}", size=STATE) for t, x in enumerate(places, 1)]
    for query, state in enumerate(decoder) if attends else ():
        for key, source in enumerate(encoder):
            drawing.attention(source.top, state.bottom, weight=0.8 if query == key else 0.1)
    if recurrent:
        _chain(drawing, encoder)
        _chain(drawing, decoder)
        right, left = encoder[2].right, decoder[0].left
        drawing.route(
            right, (right[0] + 12, right[1]), (right[0] + 12, 138), (left[0] - 14, 138),
            (left[0] - 14, left[1]), left, tone="highlight",
        )  # fmt: skip
    for position, (state, word) in enumerate(zip(encoder, SOURCE, strict=True), 1):
        _read(drawing, state, word if recurrent else f"{word} + {position}", letters=SMALL)
    for state, word in zip(decoder, TARGET, strict=True):
        drawing.arrow(state.top, (state.centre[0], 58))
        drawing.text((state.centre[0], 50), word)
    for line, text in enumerate(note):
        drawing.text((108, 266 + 17 * line), text, size=SMALL, tone="muted")
    return drawing


def heads() -> Drawing:
    """Draw several heads on one encoder, their contexts summed."""
    drawing = Drawing(
        "heads",
        "Several heads",
        "One decoder state goes through three maps W1, W2 and W3. Each makes a query and a row of "
        "attention over the same three encoder states. The three contexts are added, and the word is "
        "read off the sum.",
        height=280,
    )
    state = drawing.box((52, 24), "d_s", size=STATE)
    pools = [drawing.box((x, 110), f"head {k}", size=(74, 30)) for k, x in enumerate((62, 170, 278), 1)]
    total = drawing.box((170, 24), "sum", size=(58, 30))
    word = drawing.box((290, 24), "word", size=(60, 30), dashed=True)
    drawing.arrow(total.right, word.left)
    for k, pool in enumerate(pools, 1):
        x = pool.centre[0]
        drawing.arrow((52 + 5 * (k - 2), state.bottom[1]), (x - 18, pool.top[1]))
        drawing.arrow((x + 14, pool.top[1]), (170 + 15 * (k - 2), total.bottom[1]), tone="highlight")
    encoder = [drawing.box((x, 210), f"h_{t}", size=STATE) for t, x in enumerate((62, 170, 278), 1)]
    weights = ((0.8, 0.1, 0.1), (0.1, 0.1, 0.8), (0.35, 0.35, 0.3))
    for pool, row in zip(pools, weights, strict=True):
        for source, weight in zip(encoder, row, strict=True):
            drawing.attention(source.top, pool.bottom, weight=weight)
    for source, name in zip(encoder, SOURCE, strict=True):
        _read(drawing, source, name)
    return drawing


def _attention_step(drawing: Drawing, *, both_directions: bool) -> tuple[Box, Box, Box]:
    """Draw what Bahdanau's and Luong's decoders share; return both states and the box of attention."""
    before = drawing.box((60, 104), "d_{s−1}", size=(46, STATE[1]))
    state = drawing.box((170, 104), "d_s", size=STATE)
    drawing.arrow(before.right, state.left)
    drawing.arrow((170, 66), state.top)
    drawing.text((170, 58), "last word", size=SMALL)
    pool = drawing.box((170, 182), "attention", size=(112, 30))
    encoder = [drawing.box((x, 246), f"h_{t}", size=STATE) for t, x in enumerate((60, 170, 280), 1)]
    for source, end, weight in zip(encoder, (134, 170, 206), (0.1, 0.8, 0.1), strict=True):
        drawing.attention(source.top, (end, pool.bottom[1]), weight=weight)
    for left, right in pairwise(encoder):
        shift = 4 if both_directions else 0
        (x, y), (end, _) = left.right, right.left
        drawing.arrow((x, y - shift), (end, y - shift))
        if both_directions:
            drawing.arrow((end, y + shift), (x, y + shift))
    for source, word in zip(encoder, SOURCE, strict=True):
        drawing.text((source.centre[0], 284), word)
    return before, state, pool


def _chain(drawing: Drawing, states: list[Box]) -> None:
    for left, right in pairwise(states):
        drawing.arrow(left.right, right.left)


def _read(drawing: Drawing, state: Box, word: str, *, letters: float = 14) -> None:
    x, y = state.bottom
    drawing.arrow((x, y + 20), (x, y + 1))
    drawing.text((x, y + 34), word, size=letters)
