"""Drawing of the library and the book: which folder hands what to which."""

from itertools import pairwise

from companion.book.drawings.hand import SMALL, Box, Drawing

LIBRARY = (
    ("models", "or adapters"),
    ("decomposition", "parts, nine terms"),
    ("analysis", "two passes"),
    ("report", "page, tables"),
)
BOOK = (
    ("data, runs", "training"),
    ("measure", "one network"),
    ("archive", "every number"),
    ("compute", "means, intervals"),
    ("pages", "figures, claims"),
)


def inside() -> Drawing:
    """Draw how data flow through the library and the book."""
    drawing = Drawing(
        "inside",
        "How data flow through the library and the book",
        "Two columns. The library: models or adapters hand a trace to decomposition, which hands sums to "
        "analysis, which hands an analysis to report. The book: data and runs hand batches to models and "
        "networks to measure; measure takes terms from decomposition and hands numbers to the archive, "
        "compute makes a result of them, and pages draw it.",
        height=434,
    )
    columns = (
        (80, "the library", LIBRARY, ("Trace", "sums", "Analysis")),
        (260, "the book", BOOK, ("network", "numbers", "numbers", "Result")),
    )
    drawn: list[list[Box]] = []
    for x, title, stages, handed in columns:
        drawing.text((x, 18), title, bold=True)
        boxes = [_stage(drawing, (x, 58 + 88 * row), *stage) for row, stage in enumerate(stages)]
        for (above, below), name in zip(pairwise(boxes), handed, strict=True):
            drawing.arrow(above.bottom, below.top)
            drawing.text((x + 8, (above.bottom[1] + below.top[1]) / 2 + 4), name, anchor="start", size=SMALL)
        drawn.append(boxes)
    library, book = drawn
    drawing.arrow(book[0].left, library[0].right)
    drawing.text((170, 50), "Batch", size=SMALL)
    drawing.arrow(library[1].right, book[1].left)
    drawing.text((170, 138), "terms", size=SMALL)
    return drawing


def _stage(drawing: Drawing, centre: tuple[float, float], name: str, note: str) -> Box:
    box = drawing.box(centre, size=(130, 46), tone="muted")
    x, y = centre
    drawing.text((x, y - 3), name, bold=True, room=box, ground="muted")
    drawing.text((x, y + 15), note, size=SMALL, room=box, ground="muted")
    return box
