"""Drawings of the second paper's story: words first, attention after, and the data that test it."""

from fractions import Fraction

from companion.book.drawings.hand import SMALL, Drawing, Point, Tone

PAIRS = (("red fox", "rakko fimbo"), ("red owl", "rakko ulufo"))  # sentence pairs that are counted
FRACTIONS = {
    Fraction(0): "0",
    Fraction(1, 2): "½",
    Fraction(1): "1",
    Fraction(1, 3): "⅓",
    Fraction(2, 3): "⅔",
}
ORDER = (2, 0, 3, 1)  # of a fixed permutation: which source word each target word copies


def words_first() -> Drawing:
    """Draw the first stage: uniform attention, and words that meet often."""
    return _stage(
        "words_first",
        title="1. Words first",
        about="The word great above, four source words below: Dieser Film ist großartig. Equal lines join "
        "great to all four.",
        target="great",
        source=("Dieser", "Film", "ist", "großartig"),
        weights=(0.25, 0.25, 0.25, 0.25),
        notes=("uniform attention: words that", "meet often are learned"),
    )


def attention_after() -> Drawing:
    """Draw the second stage: attention goes to the word that is known."""
    return _stage(
        "attention_after",
        title="2. Attention after",
        about="The same words. The line from great to großartig is thick, the other three are thin.",
        target="great",
        source=("Dieser", "Film", "ist", "großartig"),
        weights=(0.05, 0.05, 0.05, 0.85),
        notes=("a known word draws attention,", "since that lowers the loss"),
    )


def same_words() -> Drawing:
    """Draw the exception: every sentence has the same words."""
    return _stage(
        "same_words",
        title="Where words say nothing",
        about="The letter A above, the letters D A C B below. Lines of equal strength join A to D, C and B, "
        "and a thin one joins it to A, which it must copy.",
        target="A",
        source=("D", "A", "C", "B"),
        weights=(0.6, 0.05, 0.6, 0.6),
        notes=("every sentence has the same words:", "attention can turn away"),
    )


def _stage(
    name: str, *, title: str, about: str, target: str, source: tuple[str, ...], weights: tuple[float, ...],
    notes: tuple[str, str],
) -> Drawing:  # fmt: skip
    drawing = Drawing(name, title, about, width=224, height=218)
    drawing.text((112, 18), title, bold=True)
    drawing.text((112, 52), target, bold=True)
    wide = max(map(len, source)) > 1
    places = (28, 80, 118, 174) if wide else (34, 86, 138, 190)
    for x, word, weight in zip(places, source, weights, strict=True):
        tone: Tone = "highlight" if weight > 0.5 else "ink"
        drawing.attention((112, 60), (x, 142), weight=weight, tone=tone)
        drawing.text((x, 160), word, size=SMALL)
    for line, text in enumerate(notes):
        drawing.text((112, 192 + 17 * line), text, size=SMALL, tone="muted")
    return drawing


def count_table() -> dict[tuple[str, str], Fraction]:
    """Return what `counts` draws: by pair, the sum of one over the source's length."""
    table: dict[tuple[str, str], Fraction] = {}
    for source, target in PAIRS:
        source_words = source.split()
        for source_word in source_words:
            for target_word in target.split():
                pair = source_word, target_word
                table[pair] = table.get(pair, Fraction(0)) + Fraction(1, len(source_words))
    return table


def counts() -> Drawing:
    """Draw two sentence pairs, their count table, and the alignment that it makes."""
    drawing = Drawing(
        "counts",
        "Count, translate, align",
        "Two sentence pairs: red fox with rakko fimbo, red owl with rakko ulufo. In the table of counts red "
        "has 1 with rakko and one half with fimbo and ulufo; fox has one half with rakko and fimbo; owl one "
        "half with rakko and ulufo. Rows divided by their sums say that fox means fimbo with probability "
        "one half and red with one quarter. So fimbo gives two thirds of its weight to fox and one third to "
        "red.",
        height=400,
    )
    drawing.text((8, 18), "1. Every word meets every word", anchor="start", bold=True)
    for (source, target), left in zip(PAIRS, (52, 214), strict=True):
        places = (left, left + 74)
        for x, word, translation in zip(places, source.split(), target.split(), strict=True):
            drawing.text((x, 46), word)
            drawing.text((x, 98), translation)
            for other in places:
                drawing.line((x, 54), (other, 84), tone="muted")
    drawing.text((8, 136), "2. Counts, divided by the length", anchor="start", bold=True)
    table = count_table()
    columns, rows = ("rakko", "fimbo", "ulufo"), ("red", "fox", "owl")
    for column, word in enumerate(columns):
        drawing.text((124 + 72 * column, 160), word, size=SMALL)
    for row, word in enumerate(rows):
        y = 184 + 34 * row
        drawing.text((74, y + 5), word, anchor="end")
        for column, translation in enumerate(columns):
            count = table.get((word, translation), Fraction(0))
            tone: Tone = "highlight" if count else "ink"
            drawing.box((124 + 72 * column, y), FRACTIONS[count], size=(64, 28), tone=tone, bold=count == 1)
    drawing.text((8, 300), "3. Which word is fimbo?", anchor="start", bold=True)
    weights = {word: _translation(table, word, "fimbo") for word in ("red", "fox")}
    total = sum(weights.values(), Fraction(0))
    for x, (word, weight) in zip((124, 196), weights.items(), strict=True):
        share = weight / total
        drawing.attention((160, 332), (x, 358), weight=float(share))
        drawing.text((x, 374), word)
        drawing.text((x, 392), FRACTIONS[share], size=SMALL, tone="muted")
    drawing.text((160, 326), "fimbo", size=SMALL, bold=True)
    return drawing


def _translation(table: dict[tuple[str, str], Fraction], word: str, translation: str) -> Fraction:
    """Return the share of a source word's row that a target word has."""
    row = [count for (source_word, _), count in table.items() if source_word == word]
    return table[word, translation] / sum(row, Fraction(0))


def three_sets() -> Drawing:
    """Draw the three kinds of sentences to copy, at a length of four."""
    drawing = Drawing(
        "three_sets",
        "Three sets of sentences to copy",
        "A permutation has all four letters A to D of its vocabulary. A sample has four of the six letters "
        "A to F. A mixture has all of A to D or all of E to H, here the second half.",
        height=322,
    )
    sets = (
        ("permutations: always all words", "ABCD", "CADB"),
        ("samples: some of the words", "ABCDEF", "EAFC"),
        ("mixtures: one half or the other", "ABCDEFGH", "GEHF"),
    )
    for row, (title, vocabulary, sentence) in enumerate(sets):
        top = 108 * row
        drawing.text((8, top + 18), title, anchor="start", bold=True)
        drawing.text((8, top + 51), "words", anchor="start", size=SMALL, tone="muted")
        drawing.text((8, top + 91), "sentence", anchor="start", size=SMALL, tone="muted")
        for place, letter in enumerate(vocabulary):
            gap = 8 if len(vocabulary) == 8 and place > 3 else 0
            x = 84 + 33 * place + gap
            drawn = letter in sentence
            drawing.box(
                (x, top + 46), letter, size=(26, 26), tone="highlight" if drawn else "ink", dashed=not drawn
            )
        for place, letter in enumerate(sentence):
            drawing.text((84 + 33 * place, top + 92), letter, bold=True)
    return drawing


def fixed_order() -> Drawing:
    """Draw copying beside writing in one random order, for two sentences."""
    drawing = Drawing(
        "fixed_order",
        "Copying, and one fixed order",
        "Two sentences, E A F C and B D A F. On the left each is copied, with vertical lines from word to "
        "word. On the right both are written in the same random order: third, first, fourth, second.",
        height=270,
    )
    sentences = ("EAFC", "BDAF")
    for left, title, order in ((30, "copying", (0, 1, 2, 3)), (202, "a fixed order", ORDER)):
        places = [left + 36 * place for place in range(4)]
        drawing.text((left + 54, 18), title, bold=True)
        for row, sentence in enumerate(sentences):
            top = 50 + 118 * row
            for x, letter, origin in zip(places, sentence, order, strict=True):
                drawing.text((x, top), letter)
                drawing.text((x, top + 72), sentence[origin])
                tone: Tone = "ink" if places[origin] == x else "highlight"
                drawing.line((places[origin], top + 9), (x, top + 56), tone=tone)
    drawing.text((170, 262), "the same lines for every sentence", size=SMALL, tone="muted")
    return drawing


def two_networks() -> Drawing:
    """Draw what agreement compares: attention of one network, the lexical probe of another."""
    drawing = Drawing(
        "two_networks",
        "Attention of one network, probe of another",
        "Two networks read a fine quiet film. The left one was trained freely, and its attention α is "
        "largest on fine. The right one was held at uniform attention; bars show what its lexical probe β "
        "says of each word, and fine has the highest. The two agree if the word with the largest α is among "
        "those with the largest β.",
        height=272,
    )
    words = ("a", "fine", "quiet", "film")
    trained, uniform = (0.05, 0.8, 0.05, 0.1), (0.25, 0.25, 0.25, 0.25)
    bars = (4, 34, 10, 16)
    for left, title, weights in ((26, "trained freely", trained), (200, "held uniform", uniform)):
        middle = left + 59
        drawing.text((middle, 18), title, bold=True)
        label = drawing.box((middle, 50), "label", size=(62, 28), dashed=True)
        for place, (word, weight) in enumerate(zip(words, weights, strict=True)):
            x = left + 39.5 * place
            state = drawing.box((x, 124), size=(26, 24))
            best = word == "fine"
            tone: Tone = "highlight" if weight > 0.5 else "ink"
            drawing.attention(
                state.top, (middle + 0.25 * (x - middle), label.bottom[1]), weight=weight, tone=tone
            )
            drawing.text((x, 154), word, size=SMALL, bold=best)
    for place, height in enumerate(bars):
        _bar(
            drawing,
            (200 + 39.5 * place, 208),
            height=height,
            tone="highlight" if height == max(bars) else "ink",
        )
    drawing.text((65, 182), "largest α", size=SMALL, tone="highlight")
    drawing.text((286, 226), "β of each word", size=SMALL, tone="muted", anchor="middle")
    drawing.text(
        (170, 260), "Is the word of the largest α among those of the largest β?", size=12, tone="ink"
    )
    return drawing


def resting() -> Drawing:
    """Draw attention that rests on the start or on the end token of a message."""
    drawing = Drawing(
        "resting",
        "Attention that rests",
        "Two networks read the message see you at six, with a start token before it and an end token after "
        "it. The attention of the first lies on the start token, that of the second on the end token.",
        height=306,
    )
    words = ("⟨s⟩", "see", "you", "at", "six", "⟨/s⟩")
    for title, resting_place, top in (("one network", 0, 0), ("another network", 5, 154)):
        drawing.text((8, top + 18), title, anchor="start", bold=True)
        label = drawing.box((170, top + 50), "spam?", size=(78, 28), dashed=True)
        for place, word in enumerate(words):
            x = 30 + 56 * place
            rests = place == resting_place
            state = drawing.box((x, top + 114), size=(30, 24), tone="highlight" if rests else "ink")
            end: Point = (170 + 0.2 * (x - 170), label.bottom[1])
            weight = 0.85 if rests else 0.04
            drawing.attention(state.top, end, weight=weight, tone="highlight" if rests else "ink")
            drawing.text((x, top + 144), word, size=SMALL, bold=rests)
    return drawing


def _bar(drawing: Drawing, foot: Point, *, height: float, tone: Tone) -> None:
    x, y = foot
    corners = [(x - 10, y), (x + 10, y), (x + 10, y - height), (x - 10, y - height)]
    drawing.area(corners, tone=tone, opacity=0.5)
    drawing.line((x - 13, y), (x + 13, y))
