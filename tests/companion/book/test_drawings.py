"""The book's drawings: committed as they are made, legible in both themes, and true to the code."""

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import MARKS
from companion.book.drawings import FOLDER, drawings
from companion.book.drawings.hand import FILL_COLOURS, LINE_COLOURS, STROKE, TINT, WIDEST, Box, Words, plain
from companion.book.drawings.stages import PAIRS, count_table
from companion.book.drawings.tasks import ACTIONS, COMMAND, FLOOD, FLOOD_TRANSLATED, SENTENCES, TOPICS
from notebooks.learn.early_dynamics.trainings.word_counts import alignment, cooccurrence, translation
from notebooks.shared.tasks import lexicon
from notebooks.shared.tasks.synthetic import interpret, translate
from tests.companion.book.book_builders import ROOT

DRAWINGS = drawings()
NAMES = sorted(DRAWINGS)
SVG = "{http://www.w3.org/2000/svg}"
STYLE = (ROOT / "book" / "_static" / "attnlib.css").read_text(encoding="utf-8")
GROUNDS = {"light": "#ffffff", "dark": "#121212"}  # of the theme's pages
SELECTORS = {
    "light": r'html:not\(\[data-theme="dark"\]\)',
    "dark": r'html\[data-theme="dark"\]',
}  # of their colours
INKS = {"light": ("#222832", "#48566b"), "dark": ("#ced6dd", "#9ca4af")}  # its text, its muted text
SHOWN = r"^(?::::\{drawing\}|<!-- book:drawing) ([\w ]+?)(?: -->)?$"  # names of drawings on a page
LEAST_CONTRAST = 4.5  # WCAG AA, for letters of any size


def width_of(words: Words) -> float:
    """The width of a text: nine tenths of that in DejaVu Sans, a little more than Arial and Segoe take."""
    font = FontProperties(family="DejaVu Sans", weight="bold" if words.bold else "normal")
    font.set_size(words.size)
    width, _, _ = text_to_path.get_text_width_height_descent(plain(words.content), font, ismath=False)
    return width * 0.9


def extent(words: Words) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a text."""
    width, (x, y) = width_of(words), words.at
    left = {"start": x, "middle": x - width / 2, "end": x - width}[words.anchor]
    return left, y - 0.75 * words.size, left + width, y + 0.25 * words.size


def variable(name: str, theme: str) -> str:
    """The value of a variable of the style sheet."""
    everywhere, of_theme = (
        re.search(rf"{block} \{{(.*?)\n\}}", STYLE, re.DOTALL) for block in (":root", SELECTORS[theme])
    )
    value = re.search(rf"{name}: (#\w+)", of_theme[1]) or re.search(rf"{name}: (#\w+)", everywhere[1])
    return value[1]


def colour(given: str, theme: str) -> str:
    """The colour that a tone has in a theme."""
    ink, muted = INKS[theme]
    if given == "currentColor":
        return ink
    name = re.search(r"--[\w-]+", given)[0]
    return muted if name == "--pst-color-text-muted" else variable(name, theme)


def channels(hexadecimal: str) -> list[float]:
    return [int(hexadecimal[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def luminance(parts: list[float]) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(front: list[float], back: list[float]) -> float:
    darker, lighter = sorted((luminance(front), luminance(back)))
    return (lighter + 0.05) / (darker + 0.05)


def inside(room: Box, words: Words, margin: float) -> bool:
    left, top, right, bottom = extent(words)
    return (
        left >= room.left[0] + margin
        and right <= room.right[0] - margin
        and top >= room.top[1]
        and bottom <= room.bottom[1]
    )


def test_the_committed_files_are_those_that_the_command_writes():
    committed = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / FOLDER).glob("*.svg")}
    assert committed == {name: drawing.svg() for name, drawing in DRAWINGS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_words_stay_within_their_boxes(name):
    wrong = [
        words.content for words in DRAWINGS[name].words if words.room and not inside(words.room, words, 2)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_words_stay_within_the_drawing(name):
    drawing = DRAWINGS[name]
    whole = Box((drawing.width / 2, drawing.height / 2), drawing.width, drawing.height)
    assert [words.content for words in drawing.words if not inside(whole, words, 0)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_words_do_not_lie_on_each_other(name):
    over = []
    for first, second in combinations(DRAWINGS[name].words, 2):
        left, top, right, bottom = extent(first)
        other_left, other_top, other_right, other_bottom = extent(second)
        if left < other_right and other_left < right and top < other_bottom and other_top < bottom:
            over.append((first.content, second.content))
    assert over == []


@pytest.mark.parametrize("theme", GROUNDS)
@pytest.mark.parametrize("name", NAMES)
def test_words_have_contrast(name, theme):
    faint = []
    for words in DRAWINGS[name].words:
        ground = channels(GROUNDS[theme])
        if words.ground:
            tint = channels(colour(FILL_COLOURS[words.ground], theme))
            ground = [TINT * over + (1 - TINT) * under for over, under in zip(tint, ground, strict=True)]
        letters = channels(colour(LINE_COLOURS[words.tone], theme))
        if contrast(letters, ground) < LEAST_CONTRAST:
            faint.append(words.content)
    assert faint == []


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_fits_a_telephone_at_full_size(name):
    drawing = DRAWINGS[name]
    assert drawing.width <= WIDEST
    assert min(words.size for words in drawing.words) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_is_described(name):
    root = ElementTree.fromstring(DRAWINGS[name].svg())
    named = root.get("aria-labelledby").split()
    texts = {
        element.get("id"): element.text for element in root if element.tag in (f"{SVG}title", f"{SVG}desc")
    }
    assert root.get("role") == "img"
    assert sorted(texts) == sorted(named)
    assert all(len(text) > 5 for text in texts.values())


@pytest.mark.parametrize("name", NAMES)
def test_one_width_of_stroke_but_for_attention(name):
    root = ElementTree.fromstring(DRAWINGS[name].svg())
    assert root.get("stroke-width") == str(STROKE)
    others = {element.tag for element in root.iter() if element is not root and element.get("stroke-width")}
    assert others <= {f"{SVG}path"}


@pytest.mark.parametrize("sentence", SENTENCES, ids=[sentence[0] for sentence in SENTENCES])
def test_the_grammar_translates_as_the_drawing_says(sentence):
    _, source, target, origins = sentence
    translation, links = translate(source.split())
    assert " ".join(translation) == target
    assert {(origin, place) for place, origin in enumerate(origins)} == {tuple(link) for link in links}


def test_the_command_stands_for_the_actions_that_are_drawn():
    assert " ".join(action.removeprefix("I_") for action in interpret(COMMAND.split())) == ACTIONS


FIRST = len(MARKS)  # of the ids of words


def test_the_counts_that_are_drawn_are_those_of_the_chapter():
    sources, targets = (sorted({word for pair in PAIRS for word in pair[side].split()}) for side in (0, 1))
    corpus = Corpus.from_ids(
        [[FIRST + sources.index(word) for word in source.split()] for source, _ in PAIRS],
        [[FIRST + targets.index(word) for word in target.split()] for _, target in PAIRS],
    )
    counted = cooccurrence(corpus, FIRST + len(sources), FIRST + len(targets))
    drawn = count_table()
    for row, source in enumerate(sources):
        for column, target in enumerate(targets):
            assert counted[FIRST + row, FIRST + column] == pytest.approx(
                float(drawn.get((source, target), 0))
            )
    fimbo = alignment(translation(counted), corpus.source(0), corpus.target(0))[1]
    assert fimbo.tolist() == pytest.approx([1 / 3, 2 / 3])


def test_the_sentence_of_two_tasks_is_translated_as_drawn():
    words = FLOOD.split()
    assert " ".join(lexicon.translate(words)[0]) == FLOOD_TRANSLATED


def test_the_sentence_of_two_tasks_is_summed_up_as_drawn():
    words = FLOOD.split()
    summary, _ = lexicon.summarise(words)
    assert summary == tuple(lexicon.TRANSLATIONS[words[place]] for place in TOPICS)


def test_drawings_are_those_that_pages_show():
    pages = [*(ROOT / "book").rglob("*.md"), *(ROOT / "notebooks").rglob("*.md")]
    shown = {
        name
        for page in pages
        for names in re.findall(SHOWN, page.read_text(encoding="utf-8"), re.MULTILINE)
        for name in names.split()
    }
    assert shown == set(DRAWINGS)
