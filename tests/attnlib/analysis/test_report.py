"""The report: files that agree with the analysis, and a page in which hostile words are words."""

import csv
import html
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from attnlib.analysis import Losses, Stream, analyse, report, write_report
from attnlib.analysis.how_to_read import notes
from attnlib.analysis.page import MOST_MAPS, page
from attnlib.analysis.report import TABLES
from attnlib.analysis.shown_text import visible
from attnlib.errors import BadInput
from tests.attnlib.analysis.test_fit_and_judge import ALL, Toy
from tests.attnlib.analysis.test_shown_text import Text

TOY = Toy(ALL, ignored=(3,), bias=True)
FILES = {"index.html", "analysis.json", *(f"{table}.csv" for table in TABLES)}
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload='alert(1)'>",
    "</td></table></style><style>*{display:none}</style>",
    "<!-- ",
    "]]>&lt;&#x3c;",
    "a\x00\x07\x1bb",
    "\u202e\u2066abc",
    "\ud800x\udfff",
    "x" * 5000,
    "",
    "https://example.org/x.js",
    "{{7*7}}${7*7}",
]
EVERYWHERE = " ".join(HOSTILE)


def stream_of(batches=10, toy=TOY):
    return Stream(toy, range(batches), toy.probe)


def hostile(side, token):
    """Ids 1 to 7 of either side have a word each, 14 in all, of which one is said twice."""
    return HOSTILE[(token + 7 * (side == "target")) % len(HOSTILE)]


@pytest.fixture(scope="module")
def analysis():
    return analyse(stream_of(), about={"Model": "a toy"})


@pytest.fixture(scope="module")
def spoilt(analysis):
    """Everything that a user can name is hostile."""
    sites = [row | {"states": word} for row, word in zip(analysis.states, HOSTILE, strict=False)]
    return replace(analysis, about={word: EVERYWHERE for word in HOSTILE}, states=sites)


class Page(HTMLParser):
    """What a browser would make of a page: tags that close, and what could run or ask the network."""

    VOID = ("meta", "br", "img", "link", "hr", "input")

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.opened, self.tags, self.attributes, self.words, self.styles = [], [], [], [], []
        self.feed(markup)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        if self.opened[-1:] == ["bdi"]:
            self.words.append(data)
        if self.opened[-1:] == ["style"]:
            self.styles.append(data)


def assert_harmless(markup):
    read = Page(markup)
    assert not {"script", "img", "svg", "iframe", "link", "object", "embed", "a", "base"} & set(read.tags)
    for name, value in read.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "href", "srcset", "action", "formaction", "data")
        assert not re.search(r"url\(|//", value or "")
    for style in read.styles:
        assert not re.search(r"url\(|//|@import", style)
    assert len(read.styles) == 1
    return read


# Files.


def table_of(folder, name):
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_files_agree_with_the_analysis(tmp_path):
    found = report(stream_of(), tmp_path, about={"Model": "a toy"})
    assert {path.name for path in tmp_path.iterdir()} == FILES
    told = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    assert (told["fitted"], told["judged"], told["held_out"]) == (found.fitted, found.judged, True)
    assert told["about"] == {"Model": "a toy"}
    assert told["notes"] == notes(found)
    for name in TABLES:
        rows = getattr(found, name)
        assert len(rows) > 1
        for row, of_json, of_csv in zip(rows, told[name], table_of(tmp_path, name), strict=True):
            assert list(of_json) == list(of_csv) == list(row)
            for key, value in row.items():
                if isinstance(value, float) and math.isnan(value):
                    assert (of_json[key], of_csv[key]) == (None, "")
                elif isinstance(value, float):
                    assert of_json[key] == float(of_csv[key]) == pytest.approx(value, rel=1e-8)
                else:
                    assert of_json[key] == type(value)(of_csv[key]) == value


def test_what_is_undefined_is_empty(tmp_path, analysis):
    rows = [row | {"typicality": math.nan, "spread": math.inf} for row in analysis.heads]
    write_report(replace(analysis, heads=rows), tmp_path)
    assert table_of(tmp_path, "heads")[0]["typicality"] == table_of(tmp_path, "heads")[0]["spread"] == ""
    assert json.loads((tmp_path / "analysis.json").read_text())["heads"][0]["typicality"] is None


def test_the_same_corpus_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        report(stream_of(), tmp_path / name, name=hostile)
    for file in FILES:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_a_report_of_nothing_is_a_page_with_empty_tables(tmp_path, analysis):
    write_report(replace(analysis, heads=[], terms=[], states=[], example=None), tmp_path)
    assert (tmp_path / "heads.csv").read_text() == ""
    assert_harmless((tmp_path / "index.html").read_text())


def test_a_folder_that_cannot_be_written(tmp_path, analysis):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(BadInput, match=r"cannot write .*taken"):
        write_report(analysis, tmp_path / "taken")


def test_hostile_names_go_through_files(tmp_path, spoilt):
    write_report(spoilt, tmp_path, title=EVERYWHERE, name=hostile)
    told = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    assert told["about"][HOSTILE[0]] == EVERYWHERE
    assert_harmless((tmp_path / "index.html").read_text(encoding="utf-8"))


# The page.


def shown(name):
    """All words of the page of an analysis, by place."""
    return lambda side, token: f"{side}-{token}"


def test_the_page_is_whole_and_harmless(analysis):
    read = assert_harmless(page(analysis, "A title", shown(analysis)))
    assert {"html", "head", "body", "title", "h1", "table", "details"} <= set(read.tags)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in read.attributes
    assert ("lang", "en") in read.attributes


def test_the_page_shows_the_numbers_of_every_head(analysis):
    text = Text(page(analysis, "A title", shown(analysis))).text
    for row in analysis.heads:
        assert f"layer {row['layer']}, head {row['head']}" in text
    assert "Cross-attention" in text
    assert "Self-attention of the encoder" in text
    assert f"{analysis.judged:,}" in text
    markup = page(analysis, "A title", shown(analysis))
    grids = re.findall(r"<figcaption>temporal share</figcaption>(.*?)</figure>", markup)
    assert len(grids) == len(ALL)
    for kind, grid in zip(ALL, grids, strict=True):
        found = re.findall(r'style="background:[^"]*">([−\d.]+)</td>', grid)
        rows = [row for row in analysis.heads if row["kind"] == kind]
        assert [float(v.replace("−", "-")) for v in found] == pytest.approx(
            [row["temporal_share"] for row in rows], abs=0.005
        )


def test_words_stand_in_their_places(analysis):
    """Rows of cross-attention are the words predicted, those of the decoder's own the words read."""
    markup = page(analysis, "A title", shown(analysis))
    example = analysis.example
    maps = re.findall(r"<summary>([^<]*), layer 0, head 0</summary>(.*?)</details>", markup)
    expected = {"Cross-attention": ("target", example.target, example.source, "source")}
    expected["Self-attention of the encoder"] = ("source", example.source, example.source, "source")
    expected["Self-attention of the decoder"] = ("target", example.read, example.read, "target")
    assert [kind for kind, _ in maps] == list(expected)
    for kind, drawn in maps:
        asks, rows, columns, answers = expected[kind]
        words = re.findall(r"<bdi>(.*?)</bdi>", drawn)
        assert words == [f"{answers}-{n}" for n in columns.tolist()] + [f"{asks}-{n}" for n in rows.tolist()]


def test_hostile_words_are_shown_as_they_are(analysis):
    read = assert_harmless(page(analysis, "A title", hostile))
    example = analysis.example
    words = [hostile("source", int(n)) for n in example.source]
    words += [hostile("target", int(n)) for n in (*example.target, *example.read)]
    assert {visible(word) for word in words} <= set(read.words)


@pytest.mark.parametrize("word", HOSTILE)
def test_one_hostile_word_everywhere(spoilt, word):
    read = assert_harmless(page(spoilt, word, lambda side, token: word))
    plain = assert_harmless(page(spoilt, "title", lambda side, token: "w"))
    assert read.tags == plain.tags
    assert visible(word) in read.words
    page(spoilt, word, lambda side, token: word).encode("utf-8")


def test_titles_and_facts_are_visible_text(spoilt):
    markup = page(spoilt, "\u202eo\x00 <b>", shown(spoilt))
    assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069]", markup)
    assert "⟨U+202E⟩o␀ &lt;b&gt;" in markup
    assert markup.count("⟨U+202E⟩o␀") == 2  # in the window's title and above the page


def test_a_position_bias_and_the_probe_are_shown_where_there_are_any():
    without = analyse(Stream(Toy(), range(10)))
    with_both = analyse(stream_of(10, Toy(bias=True)))
    for analysis, there in ((without, False), (with_both, True)):
        markup = page(analysis, "A title", shown(analysis))
        assert ("share of the position bias" in markup) == there
        assert ('<th scope="col">agreement with the lexical probe</th>' in markup) == there


def test_mixed_terms_have_squares_of_their_own(analysis):
    markup = page(analysis, "A title", shown(analysis))
    (grid, *_) = re.findall(r"<figcaption>mixed share</figcaption>(.*?)</figure>", markup)
    found = re.findall(r'style="background:[^"]*">([−\d.]+)</td>', grid)
    expected = [row["mixed_share"] for row in analysis.heads if row["kind"] == "cross"]
    assert [float(v.replace("−", "-")) for v in found] == pytest.approx(expected, abs=0.005)


def test_rows_behind_an_agreement_stand_beside_it(analysis):
    markup = page(analysis, "A title", shown(analysis))
    assert '<th scope="col">rows probed</th>' in markup
    assert f"<td>{analysis.heads[0]['rows_probed']:,}</td>" in markup
    without = analyse(Stream(Toy(), range(10)))
    assert "rows probed" not in page(without, "A title", shown(without))


def test_what_is_ignored_is_hatched_and_said(analysis):
    markup = page(analysis, "A title", shown(analysis))
    drawn = [bool(weights.isnan().any()) for weights in analysis.example.attention.values()]
    assert any(drawn)
    count = sum(int(weights.isnan().sum()) for weights in analysis.example.attention.values())
    assert markup.count('<td class="out" title="left out">') == count
    assert "Hatched is what is left out; attention is dealt out anew among the rest" in markup
    plain = analyse(stream_of(toy=Toy(ALL)))
    markup = page(plain, "A title", shown(plain))
    assert "Hatched is" not in markup
    assert 'class="out"' not in markup


def test_a_sample_that_was_cut_says_so(analysis):
    whole = page(analysis, "A title", shown(analysis))
    assert "Shown are the first" not in whole
    example = replace(analysis.example, lengths=(51, 1_063))
    markup = page(replace(analysis, example=example), "A title", shown(analysis))
    assert "Shown are the first 40 positions of a side; the source has 51, the target 1,063." in markup


def test_what_is_left_out_by_what_is_read_is_said(analysis):
    text = " ".join(Text(page(analysis, "A title", shown(analysis))).text.split())
    assert "the row about the end mark, at which the last word is read, is." in text


def test_losses_and_what_nothing_checked_are_told(tmp_path, analysis):
    told = replace(analysis, losses=Losses(3, 1), unchecked=("cross.0",))
    write_report(told, tmp_path)
    found = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    assert (found["left_out"], found["cut"], found["unchecked"]) == (3, 1, ["cross.0"])
    page_of = (tmp_path / "index.html").read_text(encoding="utf-8")
    for note in notes(told):
        assert note in found["notes"]
        assert html.escape(note) in page_of


def test_not_more_maps_than_can_be_read(analysis):
    weights = next(iter(analysis.example.attention.values()))
    example = replace(analysis.example, attention={("cross.0", n): weights for n in range(MOST_MAPS + 3)})
    markup = page(replace(analysis, example=example), "A title", shown(analysis))
    assert len(re.findall(r'class="map"', markup)) == MOST_MAPS
    assert "3 more heads are not drawn" in markup


def test_notes_are_on_the_page():
    markup = page(analyse(stream_of(2)), "A title", lambda side, token: str(token))
    assert '<p class="note">' in markup
    assert "same samples" in markup
