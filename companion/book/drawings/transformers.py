"""Drawings of Transformers: what they kept of recurrent networks, and their three kinds of attention."""

from companion.book.drawings.hand import SMALL, Box, Drawing, Tone


def recurrent_pair() -> Drawing:
    """Draw an encoder and a decoder with recurrences, joined by attention."""
    return _pair(
        "recurrent_pair",
        title="With recurrence",
        about="A recurrent encoder reads the source, and a recurrent decoder the target so far. A box of "
        "attention above compares a query of the decoder with keys of the encoder.",
        sides=("a recurrence", "a recurrence"),
        attention=("attention", "one head"),
        inputs=("source", "target so far"),
    )


def transformer_pair() -> Drawing:
    """Draw the same with self-attention where the recurrences were."""
    return _pair(
        "transformer_pair",
        title="A Transformer",
        about="The same picture. Self-attention has replaced both recurrences, and positions are added to "
        "the words. The box above is called cross-attention, with several heads in every layer.",
        sides=("self-attention", "self-attention"),
        attention=("cross-attention", "every layer and head"),
        inputs=("source + positions", "target + positions"),
    )


def _pair(
    name: str, *, title: str, about: str, sides: tuple[str, str], attention: tuple[str, str],
    inputs: tuple[str, str],
) -> Drawing:  # fmt: skip
    drawing = Drawing(name, title, about, height=238)
    drawing.text((170, 18), title, bold=True)
    pool = _two_lines(drawing, (170, 62), attention, size=(168, 48), tone="highlight")
    for x, side, makes, read, role in zip(
        (84, 256), ("encoder", "decoder"), sides, inputs, ("keys", "query"), strict=True
    ):
        box = _two_lines(drawing, (x, 158), (side, makes), size=(132, 48))
        drawing.arrow(box.top, (170 + 0.55 * (x - 170), pool.bottom[1]), tone="highlight")
        drawing.arrow((x, 208), box.bottom)
        drawing.text((x, 224), read, size=SMALL, tone="muted")
        outside, anchor = (84, "end") if side == "encoder" else (256, "start")
        drawing.text((outside, 114), role, size=SMALL, tone="highlight", anchor=anchor)
    return drawing


def three_attentions() -> Drawing:
    """Draw one layer of a Transformer's encoder and of its decoder, and the attention in each."""
    drawing = Drawing(
        "three_attentions",
        "Three kinds of attention in a Transformer",
        "A layer of the encoder on the left, with self-attention, and one of the decoder on the right, with "
        "self-attention and, above it, cross-attention. The last encoder layer supplies the keys of "
        "cross-attention in every decoder layer.",
        height=182,
    )
    drawing.text((80, 18), "encoder", bold=True)
    drawing.text((262, 18), "decoder", bold=True)
    encoder = drawing.box((80, 122), "self-attention", size=(124, 30))
    below = drawing.box((262, 122), "self-attention", size=(124, 30))
    cross = drawing.box((262, 66), "cross-attention", size=(124, 30), tone="highlight")
    drawing.arrow(below.top, cross.bottom)
    drawing.arrow(cross.top, (262, 26))
    for box in (encoder, below):
        x, _ = box.bottom
        drawing.arrow((x, 160), box.bottom)
    drawing.route(encoder.top, (80, cross.left[1]), cross.left, tone="highlight")
    drawing.text((148, 58), "keys, last layer", size=SMALL, tone="highlight")
    drawing.text((80, 174), "source", size=SMALL)
    drawing.text((262, 174), "target so far", size=SMALL)
    return drawing


def _two_lines(
    drawing: Drawing, centre: tuple[float, float], lines: tuple[str, str], *, size: tuple[float, float],
    tone: Tone = "ink",
) -> Box:  # fmt: skip
    """Draw a box with a name and a note below it."""
    box = drawing.box(centre, size=size, tone=tone)
    x, y = centre
    ground = None if tone == "ink" else tone
    drawing.text((x, y - 3), lines[0], bold=True, room=box, ground=ground)
    drawing.text((x, y + 15), lines[1], size=SMALL, room=box, ground=ground)
    return box
