"""Drawings of tasks: the reordering grammar, a SCAN command, and translation beside summary."""

from companion.book.drawings.hand import SMALL, Drawing

# English, translation, and from which English word (counted from 0) each word of it comes.
SENTENCES: tuple[tuple[str, str, str, tuple[int, ...]], ...] = (
    ("in order", "now red fox old owl", "gau rakko fimbo ohto ulufo", (0, 1, 2, 3, 4)),
    ("wild follows its noun", "now wild fox old owl", "gau fimbo wikko ohto ulufo", (0, 2, 1, 3, 4)),
    ("once swaps the phrases", "once red fox old owl", "onga ohto ulufo rakko fimbo", (0, 3, 4, 1, 2)),
)
SIGNALS = ("wild", "once")  # the words that reorder others
# The end of a sentence of the grammar of topics, its translation, and the place of each topic of its summary.
FLOOD, FLOOD_TRANSLATED = "the flood near their war", "la inundo apud ilia milito"
TOPICS = (4, 1)  # war before flood
COMMAND, ACTIONS = "walk after run twice", "RUN RUN WALK"


def reordering() -> Drawing:
    """Draw three sentences of the grammar with their translations."""
    drawing = Drawing(
        "reordering",
        "The reordering grammar",
        "Three English sentences above their translations, with a line from each word to its own. Now "
        "red fox old owl keeps its order. With wild, modifier and noun change places. With once, the "
        "two phrases do.",
        height=422,
    )
    for row, (title, source, target, origins) in enumerate(SENTENCES):
        top = 140 * row
        drawing.text((8, top + 18), title, anchor="start", size=SMALL, tone="muted")
        places = [36 + 67 * place for place in range(5)]
        for x, word in zip(places, source.split(), strict=True):
            signal = word in SIGNALS
            drawing.text((x, top + 48), word, tone="highlight" if signal else "ink", bold=signal)
        for x, word, origin in zip(places, target.split(), origins, strict=True):
            moved = places[origin] != x
            tone = "highlight" if moved else "ink"
            drawing.line((places[origin], top + 57), (x, top + 92), tone=tone)
            drawing.text((x, top + 108), word)
            gloss = source.split()[origin]
            drawing.text((x, top + 124), f"‘{gloss}’", size=SMALL, tone="muted")
    return drawing


def scan() -> Drawing:
    """Draw a SCAN command and the actions that it stands for."""
    drawing = Drawing(
        "scan",
        "A SCAN command and its actions",
        "The command walk after run twice stands for RUN RUN WALK. After puts the second half "
        "first, and twice makes two actions of one verb.",
        height=196,
    )
    drawing.text((8, 18), "command", anchor="start", size=SMALL, tone="muted")
    words = dict(zip(COMMAND.split(), (48, 130, 212, 294), strict=True))
    for word, x in words.items():
        signal = word == "after"
        drawing.text((x, 46), word, tone="highlight" if signal else "ink", bold=signal)
    places = (58, 170, 282)
    for x, action in zip(places, ACTIONS.split(), strict=True):
        drawing.box((x, 134), size=(86, 32))
        drawing.text((x, 139), action)
    drawing.route((194, 54), (194, 62), (312, 62), (312, 54), tip=False)
    drawing.arrow((240, 62), (70, 116))
    drawing.arrow((253, 62), (178, 116))
    drawing.arrow((48, 54), (270, 116), tone="highlight")
    drawing.text(
        (8, 184),
        "actions, in the order in which they are carried out",
        anchor="start",
        size=SMALL,
        tone="muted",
    )
    return drawing


def two_tasks() -> Drawing:
    """Draw one source with its translation above and its summary below."""
    drawing = Drawing(
        "two_tasks",
        "One source, two tasks",
        "The words the flood near their war in the middle. Above, the translation la inundo apud ilia "
        "milito, with a line to every word. Below, the summary milito inundo, with lines to war and flood "
        "alone.",
        height=262,
    )
    places = [36 + 67 * place for place in range(5)]
    source, translation = FLOOD.split(), FLOOD_TRANSLATED.split()
    drawing.text((8, 18), "translation: every word", anchor="start", size=SMALL, tone="muted")
    for place, (x, word, translated) in enumerate(zip(places, source, translation, strict=True)):
        topic = place in TOPICS
        drawing.text((x, 46), translated)
        drawing.line((x, 54), (x, 106))
        drawing.text((x, 124), word, tone="highlight" if topic else "ink", bold=topic)
    for place, origin in enumerate(TOPICS):
        x = 136 + 67 * place
        drawing.line((places[origin], 134), (x, 198), tone="highlight")
        drawing.text((x, 216), translation[origin])
    drawing.text(
        (8, 248), "summary: topics alone, the most important first", anchor="start", size=SMALL, tone="muted"
    )
    return drawing
