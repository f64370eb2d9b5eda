"""The report: files that agree with the analysis, and a page in which hostile words are words."""

import csv
import html
import json
import math
import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.analysis import Analysis, Losses, Stream, analyse, report, write_report
from attnlib.analysis.report import (
    COLOURS,
    MOST_MAPS,
    SENTENCE,
    SHOWN,
    TABLES,
    notes,
    number,
    page,
    sentence,
    square,
    visible,
)
from tests.attnlib.analysis.analysis_builders import ALL, HOSTILE, Page, Toy, assert_harmless

TOY = Toy(ALL, ignored=(3,), bias=True)
FILES = {"index.html", "analysis.json", *(f"{table}.csv" for table in TABLES)}


def stream_of(batches=10, toy=TOY):
    return Stream(toy, range(batches), toy.probe)


def hostile(side, token):
    """Ids 1 to 7 of either side have a word each, 14 in all, of which one occurs twice."""
    return HOSTILE[(token + 7 * (side == "target")) % len(HOSTILE)]


def plain(side, token):
    return f"{side}-{token}"


@pytest.fixture(scope="module")
def analysis():
    return analyse(stream_of(), about={"Model": "a toy"})


@pytest.fixture(scope="module")
def markup(analysis):
    return page(analysis, "A title", plain)


# Files.


def table_of(folder, name):
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_files_agree_with_the_analysis(tmp_path):
    found = report(stream_of(), tmp_path, about={"Model": "a toy"})
    assert {path.name for path in tmp_path.iterdir()} == FILES
    said = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    assert (said["fitted"], said["judged"], said["held_out"]) == (found.fitted, found.judged, True)
    assert (said["about"], said["notes"]) == ({"Model": "a toy"}, notes(found))
    for name in TABLES:
        rows = getattr(found, name)
        assert len(rows) > 1
        for row, of_json, of_csv in zip(rows, said[name], table_of(tmp_path, name), strict=True):
            assert list(of_json) == list(of_csv) == list(row)
            for key, value in row.items():
                if isinstance(value, float) and math.isnan(value):
                    assert (of_json[key], of_csv[key]) == (None, "")
                elif isinstance(value, float):
                    assert of_json[key] == float(of_csv[key]) == pytest.approx(value, rel=1e-8)
                else:
                    assert of_json[key] == type(value)(of_csv[key]) == value


def test_notes_and_losses_go_through_files(tmp_path, analysis):
    noted = replace(analysis, losses=Losses(3, 1), unchecked=("cross.0",), held_out=False)
    write_report(noted, tmp_path)
    found = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    assert (found["left_out"], found["cut"], found["unchecked"]) == (3, 1, ["cross.0"])
    markup = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert len(notes(noted)) >= 3
    for note in notes(noted):
        assert note in found["notes"]
        assert f'<p class="note">{html.escape(note)}</p>'.replace("&#x27;", "&#39;") in markup


# Hostile words.


def test_hostile_words_are_shown_as_they_are(analysis):
    read = assert_harmless(page(analysis, "A title", hostile))
    example = analysis.example
    words = [hostile("source", int(n)) for n in example.source]
    words += [hostile("target", int(n)) for n in (*example.target, *example.read)]
    assert {visible(word) for word in words} <= set(read.words)


# The page.


def grid_of(markup, title):
    """The numbers of the squares below a title, a list a kind of attention."""
    grids = re.findall(rf"<figcaption>{title}</figcaption>(.*?)</figure>", markup, re.S)
    found = (re.findall(r'<td style="background:[^"]*">([−\d.]+)</td>', grid) for grid in grids)
    return [[float(value.replace("−", "-")) for value in grid] for grid in found]


def test_the_page_is_whole_and_harmless(markup):
    read = assert_harmless(markup)
    assert {"html", "head", "body", "title", "h1", "table", "details"} <= set(read.tags)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in read.attributes
    assert ("lang", "en") in read.attributes


def test_the_page_shows_the_numbers_of_every_head(analysis, markup):
    text = Page(markup).text
    for row in analysis.heads:
        assert f"layer {row['layer']}, head {row['head']}" in text
    assert f"{analysis.judged:,}" in text
    for title, column in (("temporal share", "temporal_share"), ("mixed share", "mixed_share")):
        found = grid_of(markup, title)
        assert len(found) == len(ALL)
        for kind, values in zip(ALL, found, strict=True):
            expected = [row[column] for row in analysis.heads if row["kind"] == kind]
            assert values == pytest.approx(expected, abs=0.005)
    assert f"<td>{analysis.heads[0]['rows_probed']:,}</td>" in markup


def maps_of(markup):
    """Title, words of columns and rows, and what each square says, of every matrix of the example."""
    found = re.findall(r"<summary>([^<]*, layer \d+, head \d+)</summary>(.*?)</details>", markup, re.S)
    return [
        (title, re.findall(r"<bdi>(.*?)</bdi>", drawn), re.findall(r'<td [^>]*title="([^"]*)"', drawn))
        for title, drawn in found
    ]


def test_words_and_weights_are_in_their_places(analysis, markup):
    """Rows of cross-attention are the words predicted, those of the decoder's own the words read."""
    example, found = analysis.example, maps_of(markup)
    sides = {"cross": ("source", "source", "target", "target"), "encoder_self": ("source",) * 4}
    sides["decoder_self"] = ("target", "read", "target", "read")
    assert len(found) == len(example.attention)
    for ((at, _), weights), (_, words, shown) in zip(example.attention.items(), found, strict=True):
        key, keys, query, queries = sides[at.split(".")[0]]
        columns, rows = getattr(example, keys).tolist(), getattr(example, queries).tolist()
        assert words == [f"{key}-{n}" for n in columns] + [f"{query}-{n}" for n in rows]
        assert shown == ["left out" if own != own else f"{own:.2f}" for own in weights.flatten().tolist()]


def test_what_is_ignored_is_hatched_and_said(analysis, markup):
    count = sum(int(weights.isnan().sum()) for weights in analysis.example.attention.values())
    assert markup.count('<td class="out" title="left out">') == count > 0
    assert "Hatched is what is left out; attention is dealt out anew among the rest" in markup
    without = page(analyse(stream_of(toy=Toy(ALL))), "A title", plain)
    assert "Hatched is" not in without
    assert 'class="out"' not in without


def test_a_position_bias_and_the_probe_are_shown_where_there_are_any():
    without = analyse(Stream(Toy(), range(10)))
    with_both = analyse(stream_of(10, Toy(bias=True)))
    for analysis, there in ((without, False), (with_both, True)):
        markup = page(analysis, "A title", plain)
        assert ("share of the position bias" in markup) == there
        for column in ("agreement with the lexical probe", "rows probed"):
            assert (f'<th scope="col">{column}</th>' in markup) == there


def test_not_more_maps_than_can_be_read(analysis):
    weights = next(iter(analysis.example.attention.values()))
    example = replace(analysis.example, attention={("cross.0", n): weights for n in range(MOST_MAPS + 3)})
    markup = page(replace(analysis, example=example), "A title", plain)
    assert markup.count('class="map"') == MOST_MAPS
    assert "3 more heads are not drawn" in markup


# Numbers and squares.


@given(st.floats(-2, 2))
def test_zero_has_no_sign(value):
    assert (number(value)[0] == "−") == (round(value, 2) < 0)


@pytest.mark.parametrize("colour", [*COLOURS, "plain"])
def test_a_negative_square_is_hatched_and_dark_ones_have_light_numbers(colour):
    assert "repeating-linear-gradient" in square(-0.5, colour)
    assert "repeating-linear-gradient" not in square(0.5, colour)
    assert ("color:#fff" in square(0.9, colour)) == (colour in COLOURS)
    assert "color:#fff" not in square(-0.9, colour)  # half of it is the page


# Words: every character is to be seen, none turns its neighbours round.

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=80)  # lone surrogates as well
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
IGNORABLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\ufe00\ufe0f\uffa0\U000e01ef"
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("▁Hund", "▁Hund"),
        ("naïve 犬 🐕", "naïve␣犬␣🐕"),
        ("a\x00b", "a␀b"),
        ("\n\t\x1b", "␊␉␛"),
        ("\x7f\x85", "⟨U+007F⟩⟨U+0085⟩"),
        ("\u202eabc", "⟨U+202E⟩abc"),
        ("a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩"),
        ("\u00a0\u2028\u2029", "⟨U+00A0⟩⟨U+2028⟩⟨U+2029⟩"),
        ("\ud800x", "⟨U+D800⟩x"),
        ("\U000e0041\U000e0100", "⟨U+E0041⟩⟨U+E0100⟩"),
        ("a\u3164b\u2800\u034f", "a⟨U+3164⟩b⟨U+2800⟩⟨U+034F⟩"),
        ("\u115f\u1160\u17b4\u17b5\uffa0", "⟨U+115F⟩⟨U+1160⟩⟨U+17B4⟩⟨U+17B5⟩⟨U+FFA0⟩"),
        ("❤\ufe0f", "❤⟨U+FE0F⟩"),
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
    assert not unicodedata.category(shown[0]).startswith("M")  # it would sit on whatever is before
    assert " " not in shown
    shown.encode("utf-8")


@given(ANYTHING)
def test_any_word_on_the_page_reads_as_the_visible_word_and_nothing_else(word):
    empty = Analysis(heads=[], terms=[], states=[], fitted=8, judged=2, held_out=True)
    for hostile in (word, f"</bdi><script>{word}", f'"><img src=x onerror="{word}">', f"&lt;{word}&amp;"):
        row = dict.fromkeys(("width", "words", "positions", "fitted", "judged"), 1)
        states = [row | {"states": hostile, "unseen_words": 0.0, "megabytes": 1.0}]
        said = replace(empty, states=states, about={hostile: hostile})
        read = assert_harmless(page(said, hostile, plain))
        assert read.words == [visible(hostile)]
        assert read.text.count(sentence(hostile)) >= 4  # title and heading, a fact and its name


def test_a_sentence_keeps_its_spaces_and_a_mark_that_looks_like_one():
    assert sentence("a b␣c") == "a b␣c"
    assert sentence("x" * 2 * SENTENCE) == "x" * SENTENCE + "…"
