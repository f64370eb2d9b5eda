"""The scorecard: every claim on it, escaped, linked, and built without a warning."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from attnlib.errors import BadInput
from companion.book.scorecard import (
    answers,
    borderline,
    chosen_in_words,
    counts_in_words,
    overview,
    scorecard_csv,
    scorecard_markdown,
    status,
)
from companion.claims.model import Entry, load_papers
from companion.claims.verdicts import Judgement, Verdict
from companion.claims.verify import Chance, ClaimVerdict, verify
from companion.results import registry
from tests.companion.book.book_builders import built
from tests.companion.claims.claims_builders import READINGS, RULE, save, toy_experiment, written
from tests.companion.data.data_builders import put
from tests.tables import beside

CLAIMS = Path(__file__).with_name("scorecard.yaml").read_text(encoding="utf-8")
ROWS = beside(__file__, "scorecard_rows")
TABLE = "table,dataset,quantity,value,note\n2,IMDB,xi_star,87,starred in the paper\n2,SST,xi_star,78,\n"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project of one figure with claims of every kind, and results that are current, stale or missing."""
    known = (*registry.names(), "toy", "pageless")
    monkeypatch.setattr(registry, "names", lambda: known)
    monkeypatch.setattr(registry, "load", lambda name: toy_experiment())
    chapter = {"notebooks/attend/toy.md": "# A toy *figure*\n"}
    put(tmp_path, {"claims/p.yaml": CLAIMS, "claims/t.csv": TABLE} | chapter)
    task = {"one": 7.0, "two": 7.0, "three": 7.0, "one_accuracy": 0.5, "two_accuracy": None, "accuracy": 0.25}
    values = {"x": {"value": 9.0, "low": 4.0, "high": 10.0, "n": 3}, "y": 2.0, "task": task}
    save(tmp_path, values)
    save(tmp_path, values, "paper", stale=True)
    return tmp_path


@pytest.fixture
def page(root):
    return scorecard_markdown(root, verify(root))


@pytest.mark.parametrize(("name", "parts"), ROWS.items())
def test_a_claim_is_listed_in_full(page, name, parts):
    (row,) = (part for part in page.split('<details class="claim-row"') if f'id="claim-{name}"' in part)
    assert [part for part in parts if part not in " ".join(row.split("\n"))] == []


def test_the_scorecard_begins_with_what_a_source_claims_above_all(page):
    first, *_ = (
        line
        for line in page.splitlines()
        if line.startswith("| A <paper>".replace("<", "\\<").replace(">", "\\>"))
    )
    assert '<a href="#claim-plain">More than five, in short.</a>' in first
    assert "Of one claim one is open." in page
    assert "| a score of 9 \\[4, 10\\]<br>has to be above 5 |" in first
    assert '<span class="source-badge undecided said">paper ?<span class="visually-hidden">: too few' in first


@pytest.mark.parametrize(
    ("profile", "p", "is_borderline"), [("paper", 0.04, True), ("paper", 0.01, False), ("quick", 0.04, False)]
)
def test_a_verdict_that_a_false_discovery_rate_would_not_leave_is_borderline(root, profile, p, is_borderline):
    row = replace(verify(root)[0], profile=profile, judgement=Judgement(Verdict.REPRODUCED, {}, p=p))
    assert borderline(row, Chance(verdicts=2, wrong=0.1, surviving=1, limit=0.02)) is is_borderline


@pytest.mark.parametrize(
    ("judgements", "sentence"),
    [
        ([(Verdict.REPRODUCED, 0.01)], "Of one claim one holds."),
        (
            [(Verdict.REPRODUCED, 0.04), (Verdict.REPRODUCED, 0.01), (Verdict.NOT_REPRODUCED, None)],
            "Of three claims two hold (one of them borderline) and one fails.",
        ),
        (
            [(Verdict.UNDECIDED, 0.2)] * 2 + [(Verdict.NOT_RUN, None)] * 12,
            "Of 14 claims two are open and twelve are not tested.",
        ),
        ([], ""),
    ],
    ids=["one", "borderline", "open or untested", "none"],
)
def test_central_claims_are_counted_in_words(root, judgements, sentence):
    row = replace(verify(root)[0], profile="paper")
    rows = [replace(row, judgement=Judgement(verdict, {}, p=p)) for verdict, p in judgements]
    assert counts_in_words(rows, Chance(verdicts=2, wrong=0.1, surviving=1, limit=0.02)) == sentence


HOLDS, OPEN = Verdict.REPRODUCED, Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("claims", "verdicts", "sentence"),
    [
        (["ordered", "plain"], [HOLDS, HOLDS], "For one of the two, including one of those that hold, {}."),
        (["ordered", "plain"], [HOLDS, OPEN], "For one of the two, including the one that holds, {}."),
        (["ordered", "ordered"], [HOLDS, HOLDS], "For two of the two, including all two that hold, {}."),
        (["ordered", "plain"], [OPEN, HOLDS], "For one of the two {}."),
        (["plain", "plain"], [HOLDS, HOLDS], ""),
    ],
)
def test_how_many_thresholds_were_chosen_after_the_result_is_said(root, claims, verdicts, sentence):
    row_of_claim = {row.claim.id: row for row in verify(root)}
    rows = [
        replace(row_of_claim[claim], judgement=Judgement(verdict, {}))
        for claim, verdict in zip(claims, verdicts, strict=True)
    ]
    assert chosen_in_words(rows) == sentence.format("we chose the threshold after seeing the result")


def test_what_would_change_our_mind_counts_for_no_source(root):
    sources = overview(load_papers(root / "claims"), verify(root))
    assert [(source.name, len(source.rows)) for source in sources] == [
        ("A <paper>", 13),
        ("What would refute this book", 1),
    ]


def test_a_dot_is_drawn_for_every_statement(page):
    dots = page.partition('<div class="dot-matrix"')[2].partition("```")[0]
    assert dots.count("<i class=") == 14


def test_the_csv_has_a_line_for_each_verdict(root):
    lines = list(csv.DictReader(io.StringIO(scorecard_csv(root, verify(root)))))
    assert len(lines) == 2 * 14
    plain = next(line for line in lines if (line["claim"], line["profile"]) == ("plain", "quick"))
    assert (plain["kind"], plain["verdict"], plain["chapter"]) == ("said", "undecided", "attend/toy")
    assert plain["numbers"] == "x: 9.000 [4.000, 10.000], n = 3"


PLACES = [
    "AMD EPYC × 2 with AVX512, 1 thread(s)",
    "AMD EPYC × 8, 2 thread(s)",
    "Intel(R) Xeon(R) Processor × 2, 1 thread(s)",
]


@pytest.mark.parametrize(
    ("places", "processors"),
    [
        (PLACES, ["AMD EPYC", "Intel Xeon"]),
        (PLACES[:2], ["AMD EPYC"]),
        (["cpu, 1 thread(s)"], ["a processor that was not recorded"]),
        (["NVIDIA H200, 1 thread(s)"], ["NVIDIA H200"]),
    ],
    ids=["two kinds", "one kind", "unrecorded", "GPU"],
)
def test_a_statement_about_networks_says_on_what_processors_they_were_trained(root, places, processors):
    save(root, {"x": 9.0, "y": 2.0}, "paper", trained_on=places)
    lines = list(csv.DictReader(io.StringIO(scorecard_csv(root, verify(root)))))
    named = {(line["claim"], line["profile"]): line["trained on"] for line in lines}
    assert named["plain", "paper"] == "; ".join(processors)
    assert named["plain", "quick"] == ""  # its result does not say
    assert named["data", "paper"] == ""  # no network is behind it
    page = scorecard_markdown(root, verify(root))
    assert f"<dt>trained on</dt><dd>{'; '.join(processors)}</dd>" in page


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        (
            PLACES,
            r"[1-9]\d* rest on networks of two kinds or more, 0 on networks of one kind, and 0 on early",
        ),
        (
            PLACES[:2],
            r"0 rest on networks of two kinds or more, [1-9]\d* on networks of one kind, and 0 on early",
        ),
        (["cpu, 1 thread(s)"], r"0 rest .*, 0 on networks of one kind, and [1-9]\d* on early networks"),
    ],
    ids=["two kinds", "one kind", "unrecorded"],
)
def test_the_scorecard_counts_statements_seen_on_more_than_one_kind_of_processor(root, places, sentence):
    save(root, {"x": 9.0, "y": 2.0}, "paper", trained_on=places)
    assert re.search(sentence, " ".join(scorecard_markdown(root, verify(root)).split()))


def test_a_central_claim_is_one_of_the_file(root):
    path = root / "claims" / "p.yaml"
    path.write_text(path.read_text().replace("\n  plain: {short", "\n  plane: {short"))
    with pytest.raises(BadInput, match="did you mean 'plain'"):
        load_papers(root / "claims")


def test_a_published_number_has_the_verdict_of_the_claim_about_it_alone(root):
    (paper,) = load_papers(root / "claims")
    rows = answers(verify(root))
    # 9 is within 80 of 87, and the low end of its interval, 4, is not
    statuses = [status(entry, rows) for entry in paper.tables.entries]
    assert statuses == [Verdict.UNDECIDED, Verdict.CANNOT_BE_RUN]
    assert status(Entry("9", "IMDB", "size", "1", ""), rows) is Verdict.NOT_RUN


@pytest.mark.slow
def test_the_scorecard_builds_without_a_warning(root, page):
    linked = {*re.findall(r"\]\(/((?:\w+/)?\w+)\)", page), "attend/toy"}
    contents = {"toy": page} | {name: f"# {name}\n" for name in sorted(linked)}
    contents["index"] = "\n".join(["# Front\n", "```{toctree}", *contents, "```", ""])
    put(root / "source", {f"{name}.md": text for name, text in contents.items()})
    html = built(root / "source", "-W", "--keep-going")
    toy = (html / "toy.html").read_text(encoding="utf-8")
    assert 'href="attend/toy.html"' in toy
    assert '<span class="source-badge undecided said">paper ?</span> too few runs to tell' in toy
    assert toy.count('<dl id="claim-') == page.count('<dl id="claim-') == 14
    assert "a *b* _c_ `d` [e](f) {g} &lt;h&gt; $i$ |j| #k \\l {{m}} ~n~ ^o^ &amp;amp; " in toy
    assert "<h>" not in toy


@pytest.fixture
def row_of(tmp_path):
    """Make the verdict on a number of which a result says how many runs are starred, or nothing."""

    def row(**starred):
        written(tmp_path / "claims", RULE | READINGS)
        numbers = {"final": {"value": 83.0}} | {key: {"value": share} for key, share in starred.items()}
        values = {"sst": {"validation": numbers}}
        values["sst_as_text"] = {"cannot_be_run": "data: not available here"}
        save(tmp_path, values, "paper", "agreement")
        return next(row for row in verify(tmp_path) if row.profile == "paper")

    return row


STARRED_SHARES = [(0.67, True), (0.5, False), (None, False)]


@pytest.mark.parametrize(("share", "starred"), STARRED_SHARES)
def test_ours_is_starred_where_most_runs_are(row_of, share, starred):
    assert row_of(starred=share).starred is starred


@pytest.mark.parametrize(("share", "starred"), STARRED_SHARES)
def test_a_result_that_says_how_many_are_starred_is_judged(row_of, share, starred):
    row = row_of(starred=share)
    assert not row.judgement.miswired
    assert row.verdict is not Verdict.NOT_RUN
    assert "starred" not in row.judgement.reason


def test_a_result_that_does_not_say_it_is_not_starred(row_of):
    assert row_of().starred is False


def test_a_result_that_does_not_say_it_is_no_run(row_of):
    row = row_of()
    assert row.judgement.miswired
    assert row.verdict is Verdict.NOT_RUN
    assert "starred" in row.judgement.reason


def test_of_several_verdicts_on_a_number_the_first_at_the_largest_profile_counts(tmp_path):
    paper = written(tmp_path)
    judged = (("quick", Verdict.REPRODUCED), ("paper", Verdict.UNDECIDED), ("paper", Verdict.NOT_REPRODUCED))
    rows = [ClaimVerdict(paper.claims[0], profile, Judgement(verdict, {})) for profile, verdict in judged]
    number = paper.tables.table("2")[1]
    assert status(number, answers(rows)) is Verdict.UNDECIDED
    assert status(number, answers(rows[:1])) is Verdict.REPRODUCED
    assert status(number, answers([])) is Verdict.NOT_RUN
