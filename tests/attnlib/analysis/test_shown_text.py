"""Words as text: every character is to be seen, none turns its neighbours round, none is markup."""

import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.analysis.shown_text import SENTENCE, SHOWN, escaped, sentence, visible

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=80)  # lone surrogates as well
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
IGNORABLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\ufe00\ufe0f\uffa0\U000e01ef"
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Text(HTMLParser):
    """The text of markup and its tags, as a browser reads them."""

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.text, self.tags = "", []
        self.feed(markup)
        self.close()

    def handle_data(self, data):
        self.text += data

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("dog", "dog"),
        ("▁Hund", "▁Hund"),
        ("naïve 犬 🐕", "naïve␣犬␣🐕"),
        ("a\x00b", "a␀b"),
        ("\n\t\x1b", "␊␉␛"),
        ("\x7f\x85", "⟨U+007F⟩⟨U+0085⟩"),
        ("\u202eabc", "⟨U+202E⟩abc"),
        ("a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩"),
        ("\u00a0", "⟨U+00A0⟩"),
        ("\u2028\u2029", "⟨U+2028⟩⟨U+2029⟩"),
        ("\ud800x", "⟨U+D800⟩x"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("a\u3164b", "a⟨U+3164⟩b"),
        ("\u115f\u1160", "⟨U+115F⟩⟨U+1160⟩"),
        ("\u2800\u034f", "⟨U+2800⟩⟨U+034F⟩"),
        ("❤\ufe0f", "❤⟨U+FE0F⟩"),
        ("\u17b4\u17b5\uffa0", "⟨U+17B4⟩⟨U+17B5⟩⟨U+FFA0⟩"),
        ("\U000e0100", "⟨U+E0100⟩"),
        ("\u0301e", "◌\u0301e"),
        ("e\u0301", "e\u0301"),
        ("\u0903", "◌\u0903"),
        ("", "⟨empty⟩"),
        ("x" * (SHOWN + 1), "x" * SHOWN + "…"),
    ],
)
def test_words_as_they_are_shown(word, shown):
    assert visible(word) == shown


@given(ANYTHING)
def test_whatever_is_shown_can_be_seen_and_written(word):
    shown = visible(word)
    assert shown
    assert not {unicodedata.category(character) for character in shown} & INVISIBLE
    assert not set(shown) & set(BIDI + IGNORABLE)
    assert not unicodedata.category(shown[0]).startswith("M")  # it would sit on whatever stands before
    assert " " not in shown
    shown.encode("utf-8")


@given(ANYTHING)
def test_markup_reads_as_the_visible_word_and_nothing_else(word):
    for hostile in (word, f"</bdi><script>{word}", f'"><img src=x onerror="{word}">', f"&lt;{word}&amp;"):
        read = Text(escaped(hostile))
        assert read.tags == [("bdi", [])]
        assert read.text == visible(hostile)
        read = Text(sentence(hostile))
        assert read.tags == []
        assert read.text.replace("␣", " ") == visible(hostile, 10**6).replace("␣", " ")


def test_a_sentence_keeps_its_spaces_and_a_mark_that_looks_like_one():
    assert sentence("a b␣c") == "a b␣c"
    assert sentence("x" * 2 * SENTENCE) == "x" * SENTENCE + "…"
