"""A report: files, tables and pictures that agree with the analysis, and a page on which words are words."""

import base64
import hashlib
import json
import math
import re
import sys
import unicodedata
from dataclasses import asdict, replace
from html import escape
from importlib.metadata import version

import pandas
import pytest
import torch
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from attnlib import zoo
from attnlib.adapters.modules import weights_digest
from attnlib.analysis import Analysis, CorpusGaps, Stream
from attnlib.analysis.samples import ENTRIES, Sample
from attnlib.decomposition import STATE_PARTS
from attnlib.errors import CorruptFile
from attnlib.report import analyse, compare, read_report, report, write_report
from attnlib.report.as_text import SENTENCE, number, sentence, visible
from attnlib.report.files import KEPT, TABLES
from attnlib.report.findings import findings, notes
from attnlib.report.page import page
from tests.attnlib.adapters.adapter_builders import BATCH, adapter_of
from tests.attnlib.analysis.builders import ALL, HOSTILE, SHOWN, Toy, assert_same_rows, said_by, table_of
from tests.attnlib.refusals import assert_refused, flip
from tests.tables import beside

TOY = Toy(ALL, ignored=(3,), bias=True)
SAID = beside(__file__, "notes")
FILES = {"index.html", "analysis.json", KEPT, "parts.csv", *(f"{table}.csv" for table in TABLES)}


def name(side, token):
    return f"${side}_{token}"  # matplotlib would read mathematics


@pytest.fixture(scope="module")
def analysis():
    return analyse(Stream(TOY, range(10), TOY.probe), about={"Model": "a toy"})


def test_a_report_has_these_files(tmp_path, analysis):
    changed = replace(analysis, losses=CorpusGaps(3, 1), unchecked=("cross.0",), held_out=False)
    write_report(changed, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_a_report_says_what_was_analysed(tmp_path, analysis):
    changed = replace(analysis, losses=CorpusGaps(3, 1), unchecked=("cross.0",), held_out=False)
    write_report(changed, tmp_path)
    written = said_by(tmp_path)
    assert (written["fitted"], written["judged"], written["held_out"]) == (
        changed.fitted,
        changed.judged,
        False,
    )
    assert (written["losses"], written["unchecked"]) == (asdict(changed.losses), ["cross.0"])
    assert (written["about"], written["notes"]) == ({"Model": "a toy"}, notes(changed))


def test_tables_agree_in_every_format(tmp_path, analysis):
    changed = replace(analysis, losses=CorpusGaps(3, 1), unchecked=("cross.0",), held_out=False)
    write_report(changed, tmp_path)
    written, again = said_by(tmp_path), read_report(tmp_path)
    for name in TABLES:
        rows = getattr(changed, name)
        assert len(rows) > 1
        of_json = [
            {key: math.nan if value is None else value for key, value in row.items()} for row in written[name]
        ]
        of_pandas = getattr(changed.tables, name)().to_dict("records")
        for table in (of_json, table_of(tmp_path / f"{name}.csv"), getattr(again, name), of_pandas):
            assert_same_rows(table, rows, tolerance=1e-8)
            assert list(map(list, table)) == list(map(list, rows))  # columns in their order
        assert "nan" not in (tmp_path / f"{name}.csv").read_text(encoding="utf-8")


def test_the_page_has_every_note(tmp_path, analysis):
    changed = replace(analysis, losses=CorpusGaps(3, 1), unchecked=("cross.0",), held_out=False)
    write_report(changed, tmp_path)
    markup = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert len(notes(changed)) >= 3
    for note in notes(changed):
        assert f'<p class="note">{escape(note)}</p>'.replace("&#x27;", "&#39;") in markup


def test_a_report_is_read_back(tmp_path, analysis):
    changed = replace(analysis, losses=CorpusGaps(3, 1), unchecked=("cross.0",), held_out=False)
    write_report(changed, tmp_path)
    again = read_report(tmp_path)
    assert (again.about, again.fitted, repr(again)) == ({"Model": "a toy"}, changed.fitted, repr(changed))
    assert torch.equal(again.keys, changed.keys)
    assert all(torch.equal(again.blocks[head], block) for head, block in changed.blocks.items())


def test_a_folder_without_an_analysis_is_refused(tmp_path):
    message = f"holds no {KEPT}: give a folder that attnlib analyse or report wrote"
    assert_refused(lambda: read_report(tmp_path / "none"), message)


def test_a_report_with_a_flipped_bit_is_refused(tmp_path, analysis):
    write_report(analysis, tmp_path)
    flip(tmp_path / KEPT)
    assert_refused(lambda: read_report(tmp_path), "its checksum is another", CorruptFile)


def harmless(markup):
    """What a browser would make of it: tags that close in their order, nothing that runs or loads."""
    read, tags = BeautifulSoup(markup, "html.parser", multi_valued_attributes=None), r"</?\w+"
    assert re.findall(tags, str(read)) == re.findall(tags, markup)
    assert markup.count("<!") == 1  # its type: a comment would hide what is after it
    assert not read.find(["script", "img", "svg", "iframe", "link", "object", "embed", "a", "base"])
    for name, value in (attribute for tag in read.find_all(True) for attribute in tag.attrs.items()):
        assert not name.startswith("on")
        assert name not in ("src", "href", "srcset", "action", "formaction", "data")
        assert not re.search(r"url\(|//", value or "")
    (style,) = read.find_all("style")
    assert not re.search(r"url\(|//|@import", style.string)
    return read


def test_the_page_runs_nothing(analysis):
    markup = page(analysis, "A title", name)
    read = harmless(markup)
    assert read.find("meta", content="default-src 'none'; style-src 'unsafe-inline'")


def test_the_page_names_every_head(analysis):
    markup = page(analysis, "A title", name)
    read = harmless(markup)
    for row in analysis.heads:
        assert f"layer {row['layer']}, head {row['head']}" in read.text
    assert f"{analysis.judged:,}" in read.text


def test_the_page_has_the_shares_of_every_head(analysis):
    markup = page(analysis, "A title", name)
    for part in ("temporal", "mixed"):
        grids = re.findall(rf"<figcaption>{part} share</figcaption>(.*?)</figure>", markup, re.S)
        for kind, grid in zip(ALL, grids, strict=True):
            shown = re.findall(r'<td style="background:[^"]*">([−\d.]+)</td>', grid)
            expected = [row[f"{part}_share"] for row in analysis.heads if row["kind"] == kind]
            assert [float(text.replace("−", "-")) for text in shown] == pytest.approx(expected, abs=0.005)


def test_the_page_counts_the_rows_probed(analysis):
    markup = page(analysis, "A title", name)
    assert f"<td>{analysis.heads[0]['rows_probed']:,}</td>" in markup


def test_the_page_has_the_shares_of_terms_with_their_intervals(analysis):
    markup = page(analysis, "A title", name)
    assert analysis.terms[0]["covariance_low"] < analysis.terms[0]["covariance_high"]
    for row in analysis.terms:
        share, low, high = (number(row[f"covariance_{end}"]) for end in ("share", "low", "high"))
        assert f"<td>{share if low == '–' else f'{share} [{low}, {high}]'}</td>" in markup


def test_the_page_runs_its_own_script_alone(analysis):
    """By the policy, which names the checksum of the script."""
    hostile = "</script><script>alert(1)</script>"
    markup = page(analysis, hostile, lambda *_: hostile, script=True)
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", markup, re.S)
    assert [attributes for attributes, _ in scripts] == [' type="application/json" id="data"', ' id="code"']
    digest = base64.b64encode(hashlib.sha256(scripts[1][1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in markup


def test_data_of_the_script_end_no_element(analysis):
    hostile = "</script><script>alert(1)</script>"
    markup = page(analysis, hostile, lambda *_: hostile, script=True)
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", markup, re.S)
    data = json.loads(scripts[0][1])
    assert data["samples"][0]["words"]["source"][0] == visible(hostile)


def data_of_script(markup):
    (content,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', markup, re.S)
    return json.loads(content)


def test_data_of_the_script_name_the_heads(analysis):
    data = data_of_script(page(analysis, "A title", name, script=True))
    assert data["heads"] == [[row["kind"], row["layer"], row["head"]] for row in analysis.heads]


def test_data_of_the_script_have_the_weights(analysis):
    data = data_of_script(page(analysis, "A title", name, script=True))
    sample, drawn = analysis.samples[0], base64.b64decode(data["samples"][0]["maps"])
    maps = [sample.maps[f"{kind}.{layer}", head] for kind, layer, head in data["heads"]]
    weights = torch.cat([head_map.flatten() for head_map in maps])
    for byte, weight in zip(drawn, weights.tolist(), strict=True):
        if math.isnan(weight):
            assert byte == 255
        else:
            assert abs(byte / 254 - weight) < 0.002


def test_words_are_in_their_places(analysis):
    """Rows of cross-attention are the words predicted, those of the decoder's own the words read."""
    example, markup = analysis.samples[0], page(analysis, "A title", name)
    drawings = re.findall(r"<summary>[^<]*, layer \d+, head \d+</summary>(.*?)</details>", markup, re.S)
    sides = {"cross": ("source", "source", "target", "target"), "encoder_self": ("source",) * 4}
    sides["decoder_self"] = ("target", "read", "target", "read")
    assert len(drawings) == len(example.attention)
    for (at, _), drawn in zip(example.attention, drawings, strict=True):
        key, keys, query, queries = sides[at.split(".")[0]]
        columns, rows = getattr(example, keys).tolist(), getattr(example, queries).tolist()
        words = [name(key, n) for n in columns] + [name(query, n) for n in rows]
        assert re.findall(r"<bdi>(.*?)</bdi>", drawn) == words


def test_weights_are_in_their_places(analysis):
    example, markup = analysis.samples[0], page(analysis, "A title", name)
    drawings = re.findall(r"<summary>[^<]*, layer \d+, head \d+</summary>(.*?)</details>", markup, re.S)
    assert len(drawings) == len(example.attention)
    for weights, drawn in zip(example.attention.values(), drawings, strict=True):
        shown = [
            "unseen or left out" if weight != weight else f"{weight:.2f}"
            for weight in weights.flatten().tolist()
        ]
        assert re.findall(r'<td [^>]*title="([^"]*)"', drawn) == shown


@pytest.mark.parametrize("ignored", [(), (3,)])
def test_what_is_ignored_is_hatched(ignored):
    analysis = analyse(Stream(Toy(ALL, ignored=ignored), range(5)))
    markup = page(analysis, "A title", name)
    unseen = {at: int(weights.isnan().sum()) for at, weights in analysis.samples[0].attention.items()}
    assert bool(unseen["cross.0", 0]) == bool(ignored)
    out = sum(unseen.values())  # with what the decoder's own attention cannot see
    assert markup.count('<td class="out" title="unseen or left out">') == markup.count('class="out"') == out
    legend = "Hatched is what a query cannot see, or is left out; attention is dealt out anew among the rest"
    assert legend in markup


@pytest.mark.parametrize("bias", [True, False])
def test_the_share_of_a_position_bias_is_shown_where_there_is_one(bias):
    markup = page(analyse(Stream(Toy(ALL, bias=bias), range(5))), "A title", name)
    assert ("share of the position bias" in markup) == bias


@pytest.mark.parametrize("probed", [1, 0])
def test_columns_of_the_probe_are_shown_where_it_was_asked(probed):
    toy = Toy(ALL)
    markup = page(analyse(Stream(toy, range(5), toy.probe, probed=probed)), "A title", name)
    for column in ("agreement with the lexical probe", "rows probed"):
        assert (f'<th scope="col">{column}</th>' in markup) == probed


@pytest.mark.parametrize(("changed", "note"), [({}, ""), *SAID["otherwise"]])
def test_what_a_reader_must_know_is_noted(analysis, changed, note):
    facts = SAID["calm"] | changed
    facts |= {"losses": CorpusGaps(*facts["losses"]), "unchecked": tuple(facts["unchecked"])}
    fields = {key: facts[key] for key in facts.keys() & vars(analysis).keys()}
    for table in ("heads", "states"):
        rows = getattr(analysis, table)
        fields[table] = [row | {key: facts[key] for key in row.keys() & facts.keys()} for row in rows]
    noted = notes(replace(analysis, **fields))
    assert len(noted) == bool(note)
    assert not note or note in noted[0]


@pytest.mark.parametrize(
    ("covered", "phrase"),
    [
        pytest.param(
            [0.9, 0.3, 0.9, 0.2], "in 2 of 4 heads, at worst 20%, in layer 0, head 3 (cross): 80%", id="some"
        ),
        pytest.param(
            [0.4, 0.3, 0.2, 0.1], "in all 4 heads, at worst 10%, in layer 0, head 3 (cross): 90%", id="all"
        ),
        pytest.param([0.0, 0.0, 0.0, 0.0], "only 0% of the judged samples in all 4 heads: 100%", id="alike"),
        pytest.param([0.0], "only 0% of the judged samples in the only head: 100%", id="one"),
    ],
)
def test_typicality_names_how_many_heads_lack_it(analysis, covered, phrase):
    plain = four_heads(analysis, {"typicality_beyond": 0.0})
    rows = [row | {"typicality_coverage": share} for row, share in zip(plain.heads, covered, strict=False)]
    assert phrase in " ".join(notes(replace(plain, heads=rows)))


def four_heads(analysis, change):
    plain = [SAID["plain"] | {"kind": "cross", "layer": 0, "head": head} for head in range(4)]
    rows = [analysis.heads[0] | row | more for row, more in zip(plain, SAID["own"], strict=True)]
    return replace(analysis, heads=[row | change for row in rows], terms=[])


@pytest.mark.parametrize(("change", "ending"), SAID["findings"])
def test_findings_count_heads_by_what_their_scores_come_from(analysis, change, ending):
    (finding,) = findings(four_heads(analysis, change))
    assert finding.endswith(ending)


def test_heads_that_attend_evenly_are_faded(analysis):
    four = four_heads(analysis, {})
    markup = page(four, "t", name)
    assert markup.count('<td class="even" title="attends evenly"') == 6  # a square in each of the grids
    row = '<tr class="even"><th scope="row">layer 0, head 0 <small>(even)</small></th>'
    assert markup.count(row) == markup.count('<tr class="even">') == 2  # there are no rows of terms
    assert "Heads that attend evenly are faded" in markup
    assert "faded" not in page(replace(four, heads=four.heads[1:]), "t", name)
    assert "1 of 4 heads attend within 1% of evenly" in " ".join(notes(four))


def test_the_page_says_how_sure_its_own_shares_are(analysis):
    """By the intervals of heads that do not attend evenly; some have none."""
    row = dict(analysis.heads[0], uniform=0.5)
    for at, part in enumerate(("temporal", "input", "mixed", "residual")):
        row |= {f"{part}_low": 0.3 - 0.02 * (at + 1), f"{part}_high": 0.3 + 0.02 * (at + 1)}
    even = row | {"head": 1, "uniform": 0.995, "mixed_low": -1.0}
    markup = page(replace(analysis, heads=[row, even], terms=[]), "t", name)
    assert "half of the intervals are within ±0.05, and the widest is ±0.08, heads" in markup
    ends = dict.fromkeys((end for end in row if end.endswith(("_low", "_high"))), math.nan)
    without = replace(analysis, heads=[row | ends], terms=[], held_out=True, judged=1)
    assert "This analysis has none." in page(without, "t", name)
    assert "Only 1 sample was judged, too few for intervals" in " ".join(notes(without))
    assert "Only 1" not in " ".join(notes(replace(without, heads=[row])))


def test_options_that_chose_nothing_are_shown_as_all(analysis):
    options = {"--layers": None, "--heads": None, "heads": None, "--prefix": None, "--kinds": ["cross"]}
    read = harmless(page(replace(analysis, made={"options": options}), "t", name))
    made = read.find_all("dl", class_="about")[-1]
    assert [entry.text for entry in made.find_all("dd")] == ["all", "all", "all", "none", "cross"]


def test_a_notebook_shows_an_analysis_in_a_few_sentences(analysis):
    hostile = replace(analysis, no_probe=("<script>alert(1)</script>",))
    shown = hostile._repr_html_()
    assert "<script" not in shown
    assert "&lt;script" in shown
    assert all(shown.count(f"<p>{escape(text)}</p>") == 1 for text in [repr(analysis), *findings(analysis)])
    assert len(shown) < 5_000
    assert len(repr(replace(analysis, heads=analysis.heads * 100))) < 100
    assert "not learned" not in repr(replace(analysis, learned={}))
    facts = {"accuracy": 0.1, "loss": 2.0, "loss_by_frequency": 1.0, "most_frequent": 0.2}
    assert repr(replace(analysis, learned=facts)).endswith(", of a text it has not learned")


def test_a_notebook_shows_a_comparison_with_the_largest_differences():
    first = analyse(Stream(Toy(ALL), range(10), probed=0))
    place = {"kind": "cross", "layer": 0, "head": 1, "measure": "<i>"}
    numbers = {"first": 0.25, "second": 0.5, "difference": 0.25, "low": 0.125, "high": 0.375}
    shown = replace(compare(first, first), rows=[place | numbers] * 22)._repr_html_()
    assert shown.startswith(
        "<p>Comparison of 1 heads (paired: the same sentences), 22 of 22 differ</p><p>cross.0"
    )
    line = "cross.0 head 1, &lt;i&gt;: 0.25 to 0.50, difference 0.25 (0.12 to 0.38)</p>"
    assert (shown.count(line), shown.endswith("<p>and 2 more</p>")) == (20, True)
    assert compare(first, first)._repr_html_().count("<p>") == 1


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
    rows = {table: everywhere(getattr(analysis, table)) for table in ("heads", "terms")}
    sample = Sample(ids, ids, ids, maps=names, probe=torch.rand(cut, cut))
    large = replace(analysis, **rows, samples=(sample,))
    assert len(page(large, "t", name, script=True).encode()) < 5e6


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
    sample = Sample(*[torch.tensor([0])] * 3, maps={("cross.0", 0): torch.ones(1, 1, 1)})
    counts = {"fitted": 8, "judged": 2, "held_out": True, "method": "means"}
    shown = Analysis([], [], states, **counts, samples=(sample,), about={word: word})
    read = harmless(page(shown, word, lambda side, token: word))
    assert [tag.text for tag in read.find_all("bdi")] == [visible(word)] * 3
    assert read.text.count(sentence(word)) >= 4  # title and heading, a fact and its name


@pytest.mark.parametrize("word", HOSTILE)
def test_a_hostile_word_is_a_word(word):
    assert_a_word_everywhere(word)


@pytest.mark.slow
@given(ANYTHING)
def test_any_word_is_shown_as_one_that_can_be_seen(word):
    shown = visible(word)
    assert shown
    assert not {unicodedata.category(character) for character in shown} & INVISIBLE
    assert not set(shown) & set(BIDI + IGNORABLE)
    assert not unicodedata.category(shown[0]).startswith("M")  # it would sit on whatever is before
    assert " " not in shown
    shown.encode("utf-8")


@pytest.mark.slow
@given(ANYTHING)
def test_any_word_is_a_word_everywhere_on_the_page(word):
    for hostile in (word, f"</bdi><script>{word}", f'"><img src=x onerror="{word}">', f"&lt;{word}&amp;"):
        assert_a_word_everywhere(hostile)


@pytest.mark.parametrize(("word", "shown"), SHOWN.items())
def test_words_as_they_are_shown(word, shown):
    assert visible(word) == shown


def test_a_sentence_keeps_its_spaces():
    assert sentence("a b␣c") == "a b␣c"


def test_a_long_sentence_is_cut_off():
    assert sentence("x" * 2 * SENTENCE) == "x" * SENTENCE + "…"


# Tables and pictures say what the rows say, and what is missing is said in a line.


@pytest.fixture
def frames(analysis):
    """A source of one id alone: places are its names, and no term is of its words."""
    states = []
    for row in analysis.states:
        if row["states"].startswith(("encoder", "cross")):
            states.append(row | {"words": 1})
        else:
            states.append(row)
    return replace(analysis, states=states)


@pytest.mark.signatures
def test_an_analysis_of_frames_says_so(analysis, frames, tmp_path):
    write_report(frames, tmp_path, name=name)
    report, note = said_by(tmp_path), "This encoder reads frames, not words"
    assert report["source"] == "frames"
    assert report["notes"][0] == frames.tables.heads().attrs["notes"][0]
    assert report["notes"][0].startswith(note)
    assert "reads frames, not words" in frames._repr_html_()
    assert not any(other.startswith(note) for other in analysis.tables.heads().attrs["notes"])


@pytest.mark.signatures
def test_tables_of_frames_have_no_term_of_words(frames, tmp_path):
    write_report(frames, tmp_path, name=name)
    for table in (frames.tables.terms(), pandas.DataFrame(said_by(tmp_path)["terms"])):
        terms = table.groupby("kind").term.agg(set)
        assert not any(term.endswith("·input") for term in terms["cross"])
        assert not any("input" in term for term in terms["encoder_self"])
        assert {"input·temporal", "input·residual"} <= terms["cross"]
        assert "input·input" in terms["decoder_self"]


def test_keys_of_attention_to_frames_are_places(frames):
    table = frames.tables.attention(name).query("kind == 'cross'")
    assert (table.key_word == table.key.astype(str)).all()


def test_the_page_of_frames_has_words_of_the_target_alone(frames, tmp_path):
    write_report(frames, tmp_path, name=name)
    markup = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<bdi>$target" in markup
    assert "<bdi>$source" not in markup


def test_a_report_that_cannot_be_written_is_refused_before_the_first_pass(tmp_path):
    (tmp_path / "file").touch()
    assert_refused(lambda: report(Stream(pytest.fail, ["read"] * 10), tmp_path / "file"), "file")


def test_what_made_it_is_known_without_a_command():
    details = {"options": {"longest": 9}, "sha256": {"text": "0f"}}
    stream = Stream(Toy(ALL), range(10), probed=0, made=lambda: details)
    made = analyse(stream, heads=[1, 0], method="means", every=4).made
    options = {"heads": "0,1", "method": "means", "every": 4, "probed": 0, "longest": 9}
    assert (made["options"], made["sha256"]) == (options, {"text": "0f"})
    assert made["computed in"] == {"precision": "float64", "device": "cpu", "samples in its first batch": 6}
    assert made["versions"]["torch"] == version("torch")


@pytest.mark.parametrize("kind", ["T5", "by hand"])
def test_a_report_from_python_names_its_model(tmp_path, kind):
    adapter = adapter_of(kind)
    mine = {"sha256": {"text": "0f"}}
    stream = Stream(adapter.trace, [BATCH], probed=0, made=lambda: mine)
    reported = report(stream, tmp_path, about={"Corpus": "mine"})
    assert mine == {"sha256": {"text": "0f"}}
    size = sum(parameter.numel() for parameter in adapter.model.parameters())
    assert reported.about == {
        "Model": f"{type(adapter.model).__name__}, {size:,} parameters",
        "Corpus": "mine",
    }


@pytest.mark.parametrize("kind", ["T5", "by hand"])
def test_a_report_from_python_has_the_checksum_of_the_weights(tmp_path, kind):
    adapter = adapter_of(kind)
    stream = Stream(adapter.trace, [BATCH], probed=0)
    reported = report(stream, tmp_path)
    before = reported.made["sha256"]["model"]
    assert before == weights_digest(adapter.model)
    with torch.no_grad():
        weight = next(adapter.model.parameters())
        weight[0] += 1
        assert weights_digest(adapter.model) != before
        weight[0] -= 1


def test_a_report_from_python_says_when_it_was_made(tmp_path):
    report(Stream(adapter_of("T5").trace, [BATCH], probed=0), tmp_path)
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["seconds"] >= 0
    assert run["date"].startswith("20")
    assert '<a href="run.json">' in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.signatures
def test_a_report_on_a_network_of_the_package_says_what_trained_it():
    trained = zoo.load("one_to_one_AO")
    made = analyse(trained.stream()).made
    assert made["sha256"] == {"model": trained.provenance["sha256"]}
    assert made["trained"]["commit"] == trained.provenance["commit"]


@pytest.mark.signatures
@pytest.mark.parametrize("sample", [0, 3])
def test_the_table_of_attention_has_each_word_with_its_weight(analysis, sample):
    """Rows of cross-attention are about the words predicted; what is ignored is no number."""
    table, example = analysis.tables.attention(name, sample=sample), analysis.samples[sample]
    attention = example.attention
    assert len(table) == sum(weights.numel() for weights in attention.values())
    assert table.weight.isna().any()
    for row in table.sample(40, random_state=0).to_dict("records"):
        weights = attention[f"{row['kind']}.{row['layer']}", row["head"]]
        assert row["weight"] == pytest.approx(float(weights[row["query"], row["key"]]), nan_ok=True)
        if row["kind"] == "cross":
            assert row["query_word"] == name("target", int(example.target[row["query"]]))
            assert row["key_word"] == name("source", int(example.source[row["key"]]))
    sums = table.groupby(["kind", "layer", "head", "query"]).weight.sum(min_count=1).dropna()
    assert sums.tolist() == pytest.approx([1.0] * len(sums), abs=1e-6)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_picture_of_all_heads_shows_their_shares(analysis, tmp_path):
    rows = [row for row in analysis.heads if row["kind"] == "cross"]
    rows[0] = rows[0] | {"mixed_share": -0.25}
    figure = replace(analysis, heads=rows).plot.heads("cross")
    shown = {axes.get_title(): texts(axes) for axes in figure.axes}
    parts = ("temporal", "input", "mixed", "residual", "position bias")
    columns = {f"{part} share": f"{part.replace(' ', '_')}_share" for part in parts}
    assert shown == {title: [number(row[key]) for row in rows] for title, key in columns.items()}
    patches = [patch for axes in figure.axes for patch in axes.patches]
    hatched = [bool(patch.get_hatch()) for patch in patches]
    assert True in hatched
    assert hatched == [row[column] < -0.005 for column in columns.values() for row in rows]
    figure.savefig(tmp_path / "heads.png")
    faint = replace(analysis, heads=[row | {"uniform": 0.999} for row in analysis.heads]).plot.heads("cross")
    for weak, strong in zip(faint.axes[0].patches, figure.axes[0].patches, strict=True):
        assert weak.get_alpha() == pytest.approx(0.35 * strong.get_alpha())


def test_a_picture_of_terms_has_their_shares(analysis):
    (axes,) = analysis.plot.terms(0, 1).axes
    rows = [row for row in analysis.terms if (row["kind"], row["head"]) == ("cross", 1)]
    assert sorted(texts(axes)) == sorted(
        number(row["covariance_share"]) for row in rows if "·" in row["term"]
    )
    assert [label.get_text() for label in axes.get_yticklabels()] == ["constant", *STATE_PARTS]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(STATE_PARTS)
    assert "position bias" in axes.get_title()
    assert "evenly" not in axes.get_title()


def test_a_head_that_attends_evenly_is_drawn_faint(analysis):
    (axes,) = analysis.plot.terms(0, 1).axes
    even = [row | {"uniform": 0.999 if row["head"] == 1 else 0.5} for row in analysis.heads]
    (faint,) = replace(analysis, heads=even).plot.terms(0, 1).axes
    assert "attends evenly" in faint.get_title()
    for weak, strong in zip(faint.patches, axes.patches, strict=True):
        assert weak.get_alpha() == pytest.approx(0.35 * strong.get_alpha())


def test_a_picture_of_attention_has_the_weights_of_the_sample(analysis, tmp_path):
    for sample in (0, 2):
        example = analysis.samples[sample]
        figure = analysis.plot.attention(0, 1, "decoder_self", name=name, sample=sample)
        (axes,) = figure.axes
        drawn = torch.as_tensor(axes.images[0].get_array().filled(float("nan")))
        expected = example.attention["decoder_self.0", 1].to(drawn)
        torch.testing.assert_close(drawn, expected, equal_nan=True)
        read = [name("target", int(token)) for token in example.read]
        assert [label.get_text() for label in axes.get_yticklabels()] == read
        figure.savefig(tmp_path / "attention.png")


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda result: result.plot.heads("crss"), "no kind of attention 'crss'; did you mean 'cross'?"),
        (lambda result: result.plot.terms(0, 2), "no analysed head … '0.2'; did you mean … Known: 0.0, 0.1"),
        (lambda result: replace(result, samples=()).tables.attention(), "holds no sample"),
        (
            lambda result: result.tables.attention(sample=12),
            "sample is 12; this analysis holds … counted from 0",
        ),
        (lambda result: result.plot.attention(0, 0, sample=-1), "sample is -1; this analysis holds"),
    ],
)
def test_what_is_not_there_is_said(analysis, draw, message):
    assert_refused(lambda: draw(analysis), message)


@pytest.mark.parametrize(
    ("package", "use"),
    [("pandas", lambda result: result.tables.heads()), ("matplotlib", lambda result: result.plot.heads())],
)
def test_without_the_extra_a_line_says_how_to_get_it(analysis, monkeypatch, package, use):
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    assert_refused(lambda: use(analysis), f"this needs {package}, … : pip install '{package}>=")
