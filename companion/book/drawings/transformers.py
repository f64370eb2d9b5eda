"""Drawings of Transformers: what they kept of recurrent networks, and their three kinds of attention."""

from companion.book.drawings.hand import SMALL, Box, Drawing, Tone

LAYERS = 3


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
    """Draw the layers of a Transformer and the attention in each."""
    drawing = Drawing(
        "three_attentions",
        "Three kinds of attention in a Transformer",
        "Three encoder layers on the left, each with self-attention. Three decoder layers on the right, "
        "each with self-attention and, above it, cross-attention. The last encoder layer supplies the keys "
        "of all three cross-attentions.",
        height=392,
    )
    drawing.text((80, 18), "encoder", bold=True)
    drawing.text((262, 18), "decoder", bold=True)
    encoder: list[Box] = []
    cross: list[Box] = []
    for layer in range(1, LAYERS + 1):
        y = 364 - 104 * layer
        encoder.append(drawing.box((80, y + 46), "self", size=(84, 30)))
        below = drawing.box((262, y + 62), "self", size=(84, 30))
        above = drawing.box((262, y + 18), "cross", size=(84, 30), tone="highlight")
        drawing.arrow(below.top, above.bottom)
        cross.append(above)
        drawing.text((8, y + 51), str(layer), anchor="start", tone="muted")
        if layer > 1:
            drawing.arrow(encoder[-2].top, encoder[-1].bottom)
            drawing.arrow(cross[-2].top, below.bottom)
        else:
            drawing.arrow((80, 350), encoder[0].bottom)
            drawing.arrow((262, 350), below.bottom)
    drawing.arrow(cross[-1].top, (262, 46))
    drawing.text((262, 40), "next word", size=SMALL)
    bus = 172
    drawing.route(
        encoder[-1].top, (80, cross[-1].left[1]), (bus, cross[-1].left[1]), tone="highlight", tip=False
    )
    drawing.route((bus, cross[-1].left[1]), (bus, cross[0].left[1]), tone="highlight", tip=False)
    for box in cross:
        drawing.arrow((bus, box.left[1]), box.left, tone="highlight")
    drawing.text((164, 140), "keys", size=SMALL, tone="highlight", anchor="end")
    drawing.text((80, 368), "source", size=SMALL)
    drawing.text((262, 368), "target so far", size=SMALL)
    drawing.text((170, 387), "layers 1 to 3, several heads in each box", size=SMALL, tone="muted")
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
