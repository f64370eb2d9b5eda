"""The report: files that agree with the analysis, and a page in which hostile words are words."""

import base64
import hashlib
import json
import math
import re
import unicodedata
from dataclasses import asdict, replace
from html import escape
from itertools import product

import pytest
import torch
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from attnlib.analysis import Analysis, Losses, Stream, analyse, write_report
from attnlib.analysis.report import KEPT, SENTENCE, TABLES, findings, notes, number, page, sentence, visible
from attnlib.analysis.results import Example
from attnlib.analysis.samples import ENTRIES, LONGEST, Sample
from tests.attnlib.analysis.builders import ALL, HOSTILE, Toy, assert_same_rows, said_by, table_of

TOY = Toy(ALL, ignored=(3,), bias=True)
FILES = {"index.html", "analysis.json", KEPT, *(f"{table}.csv" for table in TABLES)}


def plain(side, token):
    return f"{side}-{token}"


@pytest.fixture(scope="module")
def analysis():
    return analyse(Stream(TOY, range(10), TOY.probe), about={"Model": "a toy"})


@pytest.fixture(scope="module")
def markup(analysis):
    return page(analysis, "A title", plain)


def test_files_agree_with_the_analysis(tmp_path, analysis):
    found = replace(analysis, losses=Losses(3, 1), unchecked=("cross.0",), held_out=False)
    write_report(found, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES
    said = said_by(tmp_path)
    assert (said["fitted"], said["judged"], said["held_out"]) == (found.fitted, found.judged, False)
    assert (said["losses"], said["unchecked"]) == (asdict(found.losses), ["cross.0"])
    assert (said["about"], said["notes"]) == ({"Model": "a toy"}, notes(found))
    for name in TABLES:
        rows = getattr(found, name)
        assert len(rows) > 1
        of_json = [{key: math.nan if own is None else own for key, own in row.items()} for row in said[name]]
        for table in (of_json, table_of(tmp_path / f"{name}.csv")):
            assert_same_rows(table, rows, tolerance=1e-8)
            assert list(map(list, table)) == list(map(list, rows))  # columns in their order
        assert "nan" not in (tmp_path / f"{name}.csv").read_text(encoding="utf-8")
    markup = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert len(notes(found)) >= 3
    for note in notes(found):
        assert f'<p class="note">{escape(note)}</p>'.replace("&#x27;", "&#39;") in markup


def harmless(markup):
    """What a browser would make of it: tags that close in their order, nothing that runs or loads."""
    read, tags = BeautifulSoup(markup, "html.parser", multi_valued_attributes=None), r"</?\w+"
    assert re.findall(tags, str(read)) == re.findall(tags, markup)
    assert markup.count("<!") == 1  # its type: a comment would hide what is after it
    assert not read.find(["script", "img", "svg", "iframe", "link", "object", "embed", "a", "base"])
    for name, value in (own for tag in read.find_all(True) for own in tag.attrs.items()):
        assert not name.startswith("on")
        assert name not in ("src", "href", "srcset", "action", "formaction", "data")
        assert not re.search(r"url\(|//", value or "")
    (style,) = read.find_all("style")
    assert not re.search(r"url\(|//|@import", style.string)
    return read


def grid_of(markup, title):
    """The numbers of the squares below a title, a list a kind of attention."""
    grids = re.findall(rf"<figcaption>{title}</figcaption>(.*?)</figure>", markup, re.S)
    found = (re.findall(r'<td style="background:[^"]*">([−\d.]+)</td>', grid) for grid in grids)
    return [[float(value.replace("−", "-")) for value in grid] for grid in found]


def test_the_page_is_harmless_and_shows_the_numbers_of_every_head(analysis, markup):
    read = harmless(markup)
    assert read.find("meta", content="default-src 'none'; style-src 'unsafe-inline'")
    for row in analysis.heads:
        assert f"layer {row['layer']}, head {row['head']}" in read.text
    assert f"{analysis.judged:,}" in read.text
    for column in ("temporal_share", "mixed_share"):
        found = grid_of(markup, column.replace("_", " "))
        assert len(found) == len(ALL)
        for kind, values in zip(ALL, found, strict=True):
            expected = [row[column] for row in analysis.heads if row["kind"] == kind]
            assert values == pytest.approx(expected, abs=0.005)
    assert f"<td>{analysis.heads[0]['rows_probed']:,}</td>" in markup
    assert analysis.terms[0]["covariance_low"] < analysis.terms[0]["covariance_high"]
    for row in analysis.terms:
        share, low, high = (number(row[f"covariance_{end}"]) for end in ("share", "low", "high"))
        assert f"<td>{share if low == '–' else f'{share} [{low}, {high}]'}</td>" in markup


def test_the_page_runs_its_own_script_and_no_other(analysis):
    """By the policy, which names the checksum of the script; what it draws ends no element."""
    hostile = "</script><script>alert(1)</script>"
    markup = page(analysis, hostile, lambda *_: hostile, script=True)
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", markup, re.S)
    assert [attributes for attributes, _ in scripts] == [' type="application/json" id="data"', ' id="code"']
    digest = base64.b64encode(hashlib.sha256(scripts[1][1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in markup
    data = json.loads(scripts[0][1])
    assert data["samples"][0]["words"]["source"][0] == visible(hostile)
    places = [[row["kind"], row["layer"], row["head"]] for row in analysis.heads]
    assert [own[:3] for own in data["heads"]] == places
    for kind, layer, head, shares in data["heads"]:
        place = {"kind": kind, "layer": layer, "head": head}
        own = [term["covariance_share"] for term in analysis.terms if place.items() <= term.items()]
        assert shares == pytest.approx(own, rel=1e-8)
        assert len(data["terms"][kind]) == len(shares)
    sample, drawn = analysis.samples[0], base64.b64decode(data["samples"][0]["maps"])
    expected = [sample.maps[f"{kind}.{layer}", head] for kind, layer, head, _ in data["heads"]]
    expected = torch.cat([own.flatten() for own in expected])
    for byte, weight in zip(drawn, expected.tolist(), strict=True):
        assert (byte == 255) if math.isnan(weight) else abs(byte / 254 - weight) < 0.002


def test_words_and_weights_are_in_their_places(analysis, markup):
    """Rows of cross-attention are the words predicted, those of the decoder's own the words read."""
    example = analysis.example
    found = re.findall(r"<summary>[^<]*, layer \d+, head \d+</summary>(.*?)</details>", markup, re.S)
    sides = {"cross": ("source", "source", "target", "target"), "encoder_self": ("source",) * 4}
    sides["decoder_self"] = ("target", "read", "target", "read")
    assert len(found) == len(example.attention)
    for ((at, _), weights), drawn in zip(example.attention.items(), found, strict=True):
        key, keys, query, queries = sides[at.split(".")[0]]
        columns, rows = getattr(example, keys).tolist(), getattr(example, queries).tolist()
        words = [f"{key}-{n}" for n in columns] + [f"{query}-{n}" for n in rows]
        shown = ["left out" if own != own else f"{own:.2f}" for own in weights.flatten().tolist()]
        assert re.findall(r"<bdi>(.*?)</bdi>", drawn) == words
        assert re.findall(r'<td [^>]*title="([^"]*)"', drawn) == shown


@pytest.mark.parametrize("kinds", [{"ignored": (3,)}, {"bias": True}, {"probe": True}])
def test_what_is_ignored_a_position_bias_and_a_probe_are_shown_where_there_are_any(kinds):
    probed = kinds.pop("probe", False)
    toy = Toy(ALL, **kinds)
    analysis = analyse(Stream(toy, range(5), **{"probe": toy.probe} if probed else {}))
    markup = page(analysis, "A title", plain)
    ignored = sum(int(weights.isnan().sum()) for weights in analysis.example.attention.values())
    assert bool(ignored) == ("ignored" in kinds)
    assert markup.count('<td class="out" title="left out">') == markup.count('class="out"') == ignored
    said = "Hatched is what is left out; attention is dealt out anew among the rest"
    assert (said in markup) == bool(ignored)
    assert ("share of the position bias" in markup) == ("bias" in kinds)
    for column in ("agreement with the lexical probe", "rows probed"):
        assert (f'<th scope="col">{column}</th>' in markup) == probed


def test_heads_that_attend_evenly_are_grey_and_findings_count_the_others(analysis):
    """More than half: the whole interval above it; where there is none, the share."""
    heads = [dict(row, kind="cross", layer=0, head=head) for head, row in enumerate(analysis.heads * 2)][:4]
    parts = product(("temporal", "input", "mixed", "residual"), ("share", "low"))
    plain = {"uniform": 0.5, "no_residual_rebuilds": 0.5} | dict.fromkeys(map("_".join, parts), 0.1)
    changes = (
        {"uniform": 0.995}, {"input_share": 0.9, "input_low": 0.51, "no_residual_rebuilds": 0.95},
        {"input_share": 0.9, "input_low": 0.49}, {"temporal_share": 0.6, "temporal_low": math.nan},
    )  # fmt: skip
    rows = [row | plain | change for row, change in zip(heads, changes, strict=True)]
    found = replace(analysis, heads=rows, terms=[])
    assert findings(found) == [
        "Cross-attention, 4 heads: more than half of the variation of scores comes from position alone in "
        "1 (layer.head 0.3), from words alone in 1 (layer.head 0.1), from none of these in 1, and 1 attend "
        "evenly, so that there is nothing to share. Position and word together rebuild more than 90% of the "
        "attention (and half of what even attention lacks) in 1."
    ]
    even = [row | {"uniform": 0.995, "no_residual_rebuilds": 0.999} for row in rows]
    (said,) = findings(replace(found, heads=even))
    assert said == "Cross-attention, 4 heads: all attend evenly, and there is nothing to share."
    (blunt,) = findings(replace(found, heads=[row | {"uniform": 0.86} for row in rows]))
    assert blunt.endswith("in 1."), "0.95 is more than half of what 0.86 lacks"
    (blunt,) = findings(replace(found, heads=[row | {"uniform": 0.91} for row in rows]))
    assert blunt.endswith("in none."), "0.95 is not more than half of what 0.91 lacks"
    markup = page(found, "t", lambda _, token: str(token))
    assert markup.count('class="even"') == 6  # a square in each of the grids
    assert "1 of 4 heads attend within 1% of evenly" in " ".join(notes(found))


def test_a_notebook_shows_an_analysis_in_a_few_sentences(analysis):
    hostile = replace(analysis, no_probe=("<script>alert(1)</script>",))
    shown = hostile._repr_html_()
    assert "<script" not in shown
    assert "&lt;script" in shown
    assert all(shown.count(f"<p>{escape(said)}</p>") == 1 for said in [repr(analysis), *findings(analysis)])
    assert len(shown) < 5_000
    assert len(repr(replace(analysis, heads=analysis.heads * 100))) < 100
    assert "not learned" not in repr(replace(analysis, learned={}))
    facts = {"accuracy": 0.1, "loss": 2.0, "loss_by_frequency": 1.0, "most_frequent": 0.2}
    assert repr(replace(analysis, learned=facts)).endswith(", of a text it has not learned")


def test_a_page_of_576_heads_is_below_five_megabytes(analysis):
    """As many sentences and positions as are kept of so many heads."""
    places = [(layer, head) for layer in range(12) for head in range(16)]

    def everywhere(rows):
        first = [row for row in rows if row["head"] == 0]
        return [row | {"layer": layer, "head": head} for row in first for layer, head in places]

    cut = int((ENTRIES / (4 * 576)) ** 0.5)
    ids, weights = torch.arange(cut), torch.rand(4, cut, cut)
    names = {(f"{kind}.{layer}", head): weights for kind in ALL for layer, head in places}
    assert len(names) == 576
    long = torch.arange(LONGEST)
    example = Example(long, long, long, dict.fromkeys(names, torch.rand(LONGEST, LONGEST)))
    rows = {table: everywhere(getattr(analysis, table)) for table in ("heads", "terms")}
    sample = Sample(ids, ids, ids, names, torch.rand(cut, cut))
    large = replace(analysis, **rows, example=example, samples=(sample,))
    assert len(page(large, "t", plain, script=True).encode()) < 5e6


@given(st.floats(-2, 2))
def test_zero_has_no_sign(value):
    assert (number(value)[0] == "−") == (round(value, 2) < 0)


# Words: every character is to be seen, none turns its neighbours round, and nothing of them runs.

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=80)  # lone surrogates as well
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
IGNORABLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\ufe00\ufe0f\uffa0\U000e01ef"
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def assert_a_word_everywhere(word):
    """Title, facts, states and the words of the sample: each reads as what is visible of it."""
    row = dict.fromkeys(("width", "words", "positions", "fitted", "judged"), 2)  # of one word: frames
    states = [row | {"states": word, "unseen_words": 0.0, "megabytes": 1.0}]
    example = Example(*[torch.tensor([0])] * 3, attention={("cross.0", 0): torch.ones(1, 1)})
    said = Analysis([], [], states, fitted=8, judged=2, held_out=True, example=example, about={word: word})
    read = harmless(page(said, word, lambda side, token: word))
    assert [own.text for own in read.find_all("bdi")] == [visible(word)] * 3
    assert read.text.count(sentence(word)) >= 4  # title and heading, a fact and its name


@pytest.mark.parametrize("word", HOSTILE)
def test_a_hostile_word_is_a_word(word):
    assert_a_word_everywhere(word)


@given(ANYTHING)
def test_any_word_is_shown_as_one_that_can_be_seen_and_written(word):
    shown = visible(word)
    assert shown
    assert not {unicodedata.category(character) for character in shown} & INVISIBLE
    assert not set(shown) & set(BIDI + IGNORABLE)
    assert not unicodedata.category(shown[0]).startswith("M")  # it would sit on whatever is before
    assert " " not in shown
    shown.encode("utf-8")
    for hostile in (word, f"</bdi><script>{word}", f'"><img src=x onerror="{word}">', f"&lt;{word}&amp;"):
        assert_a_word_everywhere(hostile)


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
        ("x" * 61, "x" * 60 + "…"),
    ],
)
def test_words_as_they_are_shown(word, shown):
    assert visible(word) == shown


def test_a_sentence_keeps_its_spaces_and_a_mark_that_looks_like_one():
    assert sentence("a b␣c") == "a b␣c"
    assert sentence("x" * 2 * SENTENCE) == "x" * SENTENCE + "…"
