"""Drawings of the decomposition: a state in three parts, a score in nine terms, and both with numbers."""

from companion.book.drawings.hand import SMALL, Drawing, Point, Tone

PARTS: tuple[tuple[str, Tone], ...] = (("μ", "temporal"), ("χ", "input"), ("Δ", "residual"))

# Attention of the network of the landing page, a row for each action that it writes: from all nine
# terms, and from those without a residual.
SWITCHED_COMMAND = ("jump", "left", "after", "walk", "twice", "end")
SWITCHED_ACTIONS = ("walk", "walk", "turn left", "jump", "end")
ALL_TERMS = (
    (0.00, 0.00, 0.00, 0.00, 0.99, 0.01),
    (0.00, 0.00, 0.00, 0.00, 1.00, 0.00),
    (0.00, 0.00, 1.00, 0.00, 0.00, 0.00),
    (0.00, 1.00, 0.00, 0.00, 0.00, 0.00),
    (0.00, 0.00, 1.00, 0.00, 0.00, 0.00),
)
WITHOUT_RESIDUAL = (
    (0.06, 0.00, 0.06, 0.06, 0.78, 0.03),
    (0.00, 0.00, 0.87, 0.04, 0.08, 0.00),
    (0.00, 0.00, 0.80, 0.07, 0.12, 0.00),
    (0.00, 0.93, 0.04, 0.00, 0.02, 0.00),
    (0.00, 0.00, 0.89, 0.05, 0.07, 0.00),
)


def three_parts() -> Drawing:
    """Draw a state as a clock, a dictionary entry and a notebook."""
    drawing = Drawing(
        "three_parts",
        "A state in three parts",
        "The state at owl, the fifth word of once wild fox old owl, equals a clock that says position "
        "5, plus a dictionary entry that says owl, plus a notebook that says once was read.",
        height=292,
    )
    words, x = ("once", "wild", "fox", "old", "owl"), (40, 105, 170, 235, 300)
    for place, (centre, word) in enumerate(zip(x, words, strict=True), 1):
        drawing.text((centre, 18), word, bold=place == 5)
        drawing.text((centre, 36), str(place), size=SMALL, tone="muted")
    state = drawing.box((300, 76), "h_5", size=(48, 34), bold=True)
    drawing.arrow((300, 42), state.top)
    notes = (("a clock", "“position 5”"), ("a dictionary entry", "“owl”"), ("a notebook", "“once was read”"))
    for row, ((symbol, tone), (name, says)) in enumerate(zip(PARTS, notes, strict=True)):
        y = 132 + row * 60
        drawing.box((50, y), symbol, size=(48, 46), tone=tone, letters=20, bold=True)
        drawing.text((128, y - 3), name, anchor="start", bold=True)
        drawing.text((128, y + 16), says, anchor="start", size=SMALL)
        drawing.text((12, y + 6), "=" if row == 0 else "+", size=18)
        _icon(drawing, (101, y), tone=tone)
    return drawing


def two_paths() -> Drawing:
    """Draw the two vectors that the output layer reads, each as a sum of three parts."""
    drawing = Drawing(
        "two_paths",
        "Two paths to the output word",
        "Three encoder states, weighted by attention, make the context, a sum of μ, χ and Δ. The decoder "
        "state is such a sum as well. Arrows lead from both to the output word.",
        height=236,
    )
    drawing.text((250, 18), "encoder states", size=SMALL, tone="muted")
    for x in (200, 250, 300):
        state = drawing.box((x, 42), size=(38, 22))
        drawing.arrow(state.bottom, (250 + (x - 250) / 3, 100))
    drawing.text((334, 84), "attention", size=SMALL, tone="muted", anchor="end")
    for x, name in ((86, "decoder state"), (250, "context")):
        drawing.text((x, 160), name, bold=True)
        for column, (symbol, tone) in enumerate(PARTS):
            drawing.box((x + 44 * (column - 1), 122), symbol, size=(38, 38), tone=tone, letters=18, bold=True)
    drawing.box((168, 214), "output word", size=(110, 30), bold=True)
    drawing.arrow((86, 168), (136, 197))
    drawing.arrow((250, 168), (200, 197))
    return drawing


def nine_terms() -> Drawing:
    """Draw a score as the sum of nine products."""
    drawing = Drawing(
        "nine_terms",
        "A score in nine terms",
        "Three by three products. Rows are the decoder state’s clock, dictionary entry and notebook; "
        "columns are those of the encoder state. Five of the nine products have a notebook on one side "
        "or both.",
        height=272,
    )
    drawing.text((216, 16), "encoder state", bold=True)
    drawing.text((12, 162), "decoder", anchor="start", bold=True)
    drawing.text((12, 180), "state", anchor="start", bold=True)
    _board(drawing, [[f"{row}·{column}" for column, _ in PARTS] for row, _ in PARTS])
    drawing.text((216, 262), "score = sum of all nine", size=SMALL, tone="muted")
    return drawing


def worked_states() -> Drawing:
    """Draw the eight states of the example, and one of them as a sum of arrows."""
    drawing = Drawing(
        "worked_states",
        "Eight states of two numbers",
        "A plane. At position 1, a is at (1, 1) and b at (1, −1). At position 2, the two states of a "
        "are at (3.5, 1) after a and (2.5, 1) after b; those of b at (2.5, −1) after a and (3.5, −1) "
        "after b. Arrows lead to the second state of aa: μ from 0 to (3, 0), χ up to (3, 1), Δ right to "
        "(3.5, 1).",
        height=262,
    )

    def at(x: float, y: float) -> Point:
        return 34 + 76 * x, 134 - 76 * y

    drawing.arrow(at(-0.3, 0), at(3.95, 0), tone="muted")
    drawing.arrow(at(0, -1.45), at(0, 1.45), tone="muted")
    for x in (1, 2, 3):
        drawing.line(at(x, -0.04), at(x, 0.04), tone="muted")
        drawing.text(
            (at(x, 0)[0] - (12 if x == 3 else 0), at(x, 0)[1] + 18), str(x), size=SMALL, tone="muted"
        )
    for y in (1, -1):
        drawing.line(at(-0.04, y), at(0.04, y), tone="muted")
        drawing.text(
            (at(0, y)[0] - 8, at(0, y)[1] + 4),
            str(y).replace("-", "−"),
            size=SMALL,
            tone="muted",
            anchor="end",
        )
    drawing.arrow(at(0, 0.06), at(2.97, 0.06), tone="temporal")
    drawing.arrow(at(3, 0.06), at(3, 0.96), tone="input")
    drawing.arrow(at(3.03, 1), at(3.43, 1), tone="residual")
    drawing.text(at(1.5, 0.15), "μ = (3, 0)", tone="temporal", bold=True)
    drawing.text(at(2.95, 0.5), "χ = (0, 1)", tone="input", anchor="end", bold=True)
    drawing.text(at(3.2, 1.42), "Δ = (½, 0)", tone="residual", bold=True)
    states = (("a", 1, 1), ("b", 1, -1), ("aa", 3.5, 1), ("ba", 2.5, 1), ("ab", 2.5, -1), ("bb", 3.5, -1))
    for name, x, y in states:
        place = at(x, y)
        drawing.dot(place)
        first, last = name[:-1], name[-1]
        label = f"{first} {last}".strip()
        drawing.text((place[0], place[1] + (-10 if y > 0 else 20)), label, bold=name == "aa")
    drawing.text(at(1, -1.6), "position 1", size=SMALL, tone="muted")
    drawing.text(at(3, -1.6), "position 2", size=SMALL, tone="muted")
    return drawing


def worked_score() -> Drawing:
    """Draw the nine terms of the example with their numbers."""
    drawing = Drawing(
        "worked_score",
        "5.5 = 3 + 2 + ½",
        "The nine terms of the score with the second state of aa. Decoder μ is (1, 0), χ (0, 2), Δ "
        "zero. μ·μ is 3, χ·χ is 2, μ·Δ is one half, all others are 0; the sum is 5.5.",
        height=272,
    )
    drawing.text((216, 16), "encoder, position 2 of aa", bold=True)
    drawing.text((104, 44), "decoder", anchor="end", bold=True)
    numbers = [["3", "0", "½"], ["0", "2", "0"], ["0", "0", "0"]]
    _board(drawing, numbers, columns=("(3, 0)", "(0, 1)", "(½, 0)"), rows=("(1, 0)", "(0, 2)", "(0, 0)"))
    drawing.text((216, 262), "3 + 2 + ½ = 5.5", bold=True)
    return drawing


def exchange() -> Drawing:
    """Draw what is exchanged in the causal test."""
    drawing = Drawing(
        "exchange",
        "Exchange of one part",
        "A key is the sum of μ of position 2, χ of cat, and Δ. In three runs one part is exchanged: μ "
        "for that of position 4, χ for that of dog, Δ for that of another memory. Queries are changed "
        "likewise. The scores change, while the values that the context sums do not.",
        height=322,
    )
    columns = (150, 216, 282)
    original = ("μ_2", "χ(cat)", "Δ")
    swapped = ("μ_4", "χ(dog)", "Δ′")
    labels = (("as it was", ""), ("another", "position"), ("another", "word"), ("another", "memory"))
    for row, (first, second) in enumerate(labels):
        y = 34 + 60 * row
        for line, text in enumerate(filter(None, (first, second))):
            drawing.text((8, y + (5 if not second else -3 + 17 * line)), text, anchor="start", bold=row == 0)
        for column, (x, (_, tone)) in enumerate(zip(columns, PARTS, strict=True)):
            changed = row == column + 1
            text = swapped[column] if changed else original[column]
            drawing.box((x, y), text, size=(58, 34), tone=tone, bold=changed)
            if changed:
                drawing.box((x, y), size=(66, 42), tone="ink", dashed=True, corner=9)
    keys = drawing.box((150, 302), "scores", size=(72, 28))
    weights = drawing.box((282, 302), "attention", size=(84, 28))
    drawing.arrow((150, 242), keys.top)
    drawing.arrow(keys.right, weights.left)
    drawing.text((140, 270), "times the query", size=SMALL, tone="muted", anchor="end")
    return drawing


def memory() -> Drawing:
    """Draw how a network without attention keeps its words and reads them out."""
    drawing = Drawing(
        "memory",
        "One vector as a notebook",
        "The last encoder state is a sum of three words, each with its position. The first decoder "
        "state holds all of them and writes le. The next has read le, no longer holds the, and writes "
        "chat; and so on.",
        height=226,
    )
    words = (("the", 1), ("cat", 2), ("sleeps", 3))
    reads, writes = ("", "⟨s⟩", "le", "chat"), ("", "le", "chat", "dort")
    for step, x in enumerate((46, 130, 214, 298)):
        drawing.text((x, 22), "h_3" if step == 0 else f"s_{step}", bold=True)
        drawing.box((x, 90), size=(64, 112))
        for row, (word, place) in enumerate(words):
            kept = row >= step - 1
            text = f"{word}_{place}" if kept else ""
            drawing.box(
                (x, 56 + 34 * row), text, size=(54, 26), tone="input" if kept else "ink", dashed=not kept,
                letters=SMALL, corner=4,
            )  # fmt: skip
        if step:
            drawing.arrow((x - 51, 90), (x - 33, 90))
            drawing.arrow((x - 14, 166), (x - 14, 147))
            drawing.arrow((x + 14, 147), (x + 14, 166))
            drawing.text((x - 16, 184), reads[step], size=SMALL, tone="muted")
            drawing.text((x + 18, 184), writes[step], size=SMALL)
    drawing.text((46, 184), "in, out:", size=SMALL, tone="muted")
    drawing.text((214, 214), "reading a word takes it from the sum", size=SMALL, tone="muted")
    return drawing


def nine_switches() -> Drawing:
    """Draw the attention of a network from all terms, and from those without memory."""
    drawing = Drawing(
        "nine_switches",
        "Attention with and without memory",
        "Two boards, a row for each action that the network writes: walk, walk, turn_left, jump, end. "
        "Columns are the words of jump left after walk twice, and the end. With all nine terms both walks "
        "attend to twice. Without the terms that have memory the second attends to after.",
        height=386,
    )
    boards = (("all nine terms", ALL_TERMS), ("without the five terms with memory, Δ", WITHOUT_RESIDUAL))
    for board, (title, matrix) in enumerate(boards):
        top = 200 * board
        drawing.text((8, top + 18), title, anchor="start", bold=True)
        columns = [92 + 44 * column for column in range(len(SWITCHED_COMMAND))]
        for x, word in zip(columns, SWITCHED_COMMAND, strict=True):
            drawing.text((x, top + 42), word, size=SMALL, tone="muted")
        for row, (action, weights) in enumerate(zip(SWITCHED_ACTIONS, matrix, strict=True)):
            y = top + 60 + 27 * row
            drawing.text((64, y + 4), action, anchor="end", size=SMALL)
            for x, weight in zip(columns, weights, strict=True):
                corners = [(x - 20, y - 12), (x + 20, y - 12), (x + 20, y + 12), (x - 20, y + 12)]
                drawing.area(corners, tone="ink", opacity=0.06 + 0.8 * weight)
    return drawing


def _board(
    drawing: Drawing, texts: list[list[str]], *, columns: tuple[str, ...] = (), rows: tuple[str, ...] = ()
) -> None:
    """Draw the board of terms: temporal and input on the diagonal, grey where a residual is in."""
    for column, (symbol, tone) in enumerate(PARTS):
        x = 146 + 70 * column
        label = f"{symbol} {columns[column]}" if columns else symbol
        drawing.text((x, 44), label, tone=tone, bold=True, size=SMALL if columns else 16)
    for row, (symbol, tone) in enumerate(PARTS):
        y = 82 + 64 * row
        label = f"{symbol} {rows[row]}" if rows else symbol
        drawing.text((104, y + 5), label, tone=tone, anchor="end", bold=True, size=SMALL if rows else 16)
        for column in range(3):
            text = texts[row][column]
            empty = text == "0"
            ground: Tone = "ink" if empty else _tone_of_term(row, column)
            place = (146 + 70 * column, y)
            drawing.box(place, text, size=(64, 56), tone=ground, letters=18, corner=4, bold=not empty)


def _tone_of_term(row: int, column: int) -> Tone:
    if 2 in (row, column):
        return "residual"
    if row == column:
        return PARTS[row][1]
    return "ink"


def _icon(drawing: Drawing, centre: Point, *, tone: Tone) -> None:
    """Draw a clock, a dictionary entry or a notebook."""
    x, y = centre
    if tone == "temporal":
        drawing.ring(centre, radius=15, tone=tone)
        drawing.route((x, y - 9), (x, y), (x + 7, y + 4), tone=tone, tip=False)
    elif tone == "input":
        drawing.route((x, y - 10), (x - 15, y - 13), (x - 15, y + 10), (x, y + 13), tone=tone, tip=False)
        drawing.route((x, y - 10), (x + 15, y - 13), (x + 15, y + 10), (x, y + 13), tone=tone, tip=False)
        drawing.line((x, y - 10), (x, y + 13), tone=tone)
    else:
        drawing.box(centre, size=(24, 30), tone=tone, corner=2)
        for line in (-7, 0, 7):
            drawing.line((x - 7, y + line), (x + 7, y + line), tone=tone)
