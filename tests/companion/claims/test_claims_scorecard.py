"""The scorecard: every claim and published number on it, escaped, linked, and built without a warning."""

import re
import subprocess
import sys

import pytest

from companion.book.markup import plain
from companion.claims.estimates import Estimate
from companion.claims.model import load_papers
from companion.claims.published import Entry, Rule, read_tables
from companion.claims.scorecard import answers, published_table, scorecard_markdown, status, symbol
from companion.claims.verdicts import Judgement, Verdict
from companion.claims.verify import ClaimVerdict, verify
from companion.results import registry
from companion.results.result import Result
from tests.companion.claims.claims_builders import READINGS, claim, rule, write_paper

NASTY = "a *b* _c_ `d` [e](f) {g} <h> $i$ |j| #k \\l {{m}} ~n~ ^o^ &amp; --- 'q' \"r\" https://s.t"
TABLE = "2,IMDB,xi_star,87,starred in the paper\n2,SST,xi_star,78,\n"
CONFIGURATION = """
extensions = ["myst_parser"]
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "substitution"]
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project of one figure with claims of every kind, and results that are current, stale or missing."""
    known = (*registry.names(), "toy", "pageless")
    monkeypatch.setattr(registry, "names", lambda: known)
    published = {"table": 2, "dataset": "IMDB", "quantity": "xi_star"}
    claims = [
        claim("plain"),
        claim("nasty", says=NASTY, place=NASTY),
        claim("two-keys", keys=["x", "y"], about="data"),
        claim("learned", presupposes={"keys": ["y"], "threshold": 1, "says": "it is learned"}),
        claim("unlearned", presupposes={"keys": ["y"], "threshold": 3, "says": "it is learned"}),
        claim(
            "ordered",
            keys=["x", "y"],
            judge={"kind": "order", "independent": True},
            smallest_effect={"value": 0.5, "because": "less is nothing", "seen_before": True},
        ),
        claim("tolerated", published=published, judge={"kind": "tolerance", "absolute": 80}),
        claim("without-a-page", experiment="pageless"),
        claim("falls", kind="falsifier"),
        {"id": "later", "place": "p", "says": "s", "published": {"table": 2}, "not_run": "Not yet."},
        {"id": "never", "place": "p", "says": "s", "published": 53, "cannot_be_run": "data: <lost>"},
    ]
    unavailable = [{"dataset": "SST", "reason": "data: not here"}]
    about = {"title": "A <paper>", "csv": "t.csv", "tables": {2: "two & more"}, "unavailable": unavailable}
    write_paper(tmp_path / "claims", *claims, table=TABLE, **about)
    (tmp_path / "notebooks" / "attend").mkdir(parents=True)
    (tmp_path / "notebooks" / "attend" / "toy.md").write_text("# A toy *figure*\n", encoding="utf-8")
    values = {"x": {"value": 9.0, "low": 4.0, "high": 10.0, "n": 3}, "y": 2.0}
    Result("toy", "quick", {}, values, {}, {}).save(tmp_path / "build" / "results" / "quick")
    stale = {"code": "0" * 16}
    Result("toy", "paper", {}, values, {}, {}, provenance=stale).save(tmp_path / "results" / "paper")
    return tmp_path


def row_of(page, name):
    return next(line for line in page.splitlines() if f'id="claim-{name}"' in line)


OPEN = '<span class="verdict undecided">undecided</span>'


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("plain", ["It is above five.", "`x`<br>above 5<br>", "](/attend/toy)",
                   rf"| {OPEN}<br>9.000 \[4.000, 10.0\], n = 3 |",
                   f'| {OPEN} <span class="verdict stale">stale</span>']),
        ("two-keys", ['<span class="verdict not-reproduced">', "(b) `y`",
                      "<br>(b) 2.000 \\(no interval\\) ✗"]),
        ("unlearned", ['<span class="verdict cannot-be-judged">cannot be judged</span>',
                       "presupposes that it is learned, and `y` is 2.000, not at least 3 |"]),
        ("learned", ["*rests on* `y` 2.000"]),
        ("ordered", ["`x`<br>above `y` by more than 0.5<br>",
                     "*0.5: less is nothing (set with the result known)*<br>",
                     "<br>7.0"]),  # 9 - 2, y being exact
        ("without-a-page", ["`attnlib run pageless --profile quick`"]),
        ("later", ['<span class="verdict not-run">not run at this profile</span><br>Not yet.',
                   "Published: 2 numbers (Table 2)"]),
        ("never", ['<span class="verdict cannot-be-run">cannot be run</span>', r"\<lost\>", "Published: 53"]),
    ],
)  # fmt: skip
def test_a_claim_stands_with_its_number_verdict_and_figure(root, name, parts):
    row = row_of(scorecard_markdown(root), name)
    assert [part for part in parts if part not in row] == []


def test_what_would_change_our_mind_has_a_table_of_its_own_and_counts_for_no_paper(root):
    page = scorecard_markdown(root)
    section = page.partition("### What would change our mind\n")[2].partition("### Every published")[0]
    assert re.findall('id="claim-([a-z-]+)"', section) == ["falls"]
    lines = [line for line in page.splitlines() if "paper\\>:" in line or "numbers of Table 2" in line]
    counts = [[int(cell) for cell in re.findall(r"\| (\d+)(?= \|)", line)] for line in lines]
    assert [sum(row) for row in counts] == [1, 9, 2]  # about data, about networks, and every number


def test_a_published_number_has_the_verdict_of_the_claim_about_it_alone(root):
    (paper,) = load_papers(root / "claims")
    rows = answers(verify(root))
    # 9 is within 80 of 87, and the low end of its interval, 4, is not
    found = [status(entry, rows) for entry in paper.tables.entries]
    assert found == [Verdict.UNDECIDED, Verdict.CANNOT_BE_RUN]
    assert status(Entry("9", "IMDB", "size", "1", ""), rows) is Verdict.NOT_RUN


@pytest.mark.slow
def test_the_page_of_this_project_holds_every_published_number(pytestconfig):
    page = scorecard_markdown(pytestconfig.rootpath)
    for paper in load_papers(pytestconfig.rootpath / "claims"):
        assert all(f'id="claim-{claim.id}"' in page for claim in paper.claims if not claim.number)
        for name in paper.tables.names:
            section = page.split(f"<summary>Table {name}:")[1].split("</details>")[0]
            cells = re.split(r" ?\| ?", section)  # ours stands below, after a break
            shown = [cell.split("<br>")[0].removesuffix("\\*") for cell in cells]
            for value in {entry.value for entry in paper.tables.table(name)}:
                printed = sum(entry.value == value for entry in paper.tables.table(name))
                assert shown.count(plain(value)) == printed, (name, value)


def test_a_page_builds_without_a_warning_and_show_text_as_it_is(root):
    source, html = root / "source", root / "html"
    (source / "attend").mkdir(parents=True)
    (source / "conf.py").write_text(CONFIGURATION, encoding="utf-8")
    page = scorecard_markdown(root)
    linked = set(re.findall(r"\]\(/((?:attend/)?\w+)\)", page))
    contents = {"toy": page} | {name: f"# {name}\n" for name in sorted(linked)}
    contents["index"] = "\n".join(["# Front\n", "```{toctree}", *contents, "```", ""])
    for name, text in contents.items():
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", source, html]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    toy = (html / "toy.html").read_text(encoding="utf-8")
    assert 'href="attend/toy.html"' in toy
    assert '<span class="verdict undecided">undecided</span>' in toy
    assert "a *b* _c_ `d` [e](f) {g} &lt;h&gt; $i$ |j| #k \\l {{m}} ~n~ ^o^ &amp;amp; " in toy
    assert "<h>" not in toy
    assert "<summary>Table 2: two &amp; more (2 numbers)</summary>" in toy


# Published tables: where ours stands, what is said beside it, how symbols read.

RULE = rule()


def written(folder, rule=RULE, **rules):
    table = "2,IMDB,xi_star,90,\n2,SST,xi_star,84,\n"
    (paper,) = load_papers(write_paper(folder, numbers=[rule], csv="t.csv", table=table, **rules))
    return paper


def of(claim, verdict, *estimates, profile="paper", **about):
    evidence = {f"key {number}": estimate for number, estimate in enumerate(estimates)}
    return ClaimVerdict(claim, profile, Judgement(verdict, evidence), **about)


EXACT = {"kind": "tolerance", "absolute": 0}
BOUND = {"kind": "inequality", "relation": ">=", "threshold": 0}


@pytest.mark.parametrize(
    ("judge", "verdict", "ours", "shown"),
    [
        (RULE["judge"], Verdict.UNDECIDED, Estimate(82.25, 77.0, 87.5, 3), "82.2 [77, 88] ?"),
        (BOUND, Verdict.REPRODUCED, Estimate(0.0), "✓"),  # how far a size lies inside bounds is no size
        (EXACT, Verdict.NOT_REPRODUCED, Estimate(84.0), "84 ✗"),
        (EXACT, Verdict.NOT_REPRODUCED, Estimate(84.5), "84.5 ✗"),
        (EXACT, Verdict.NOT_REPRODUCED, Estimate(5130.0), "5,130 ✗"),
        (EXACT, Verdict.NOT_REPRODUCED, Estimate(1234567.0), "1,234,567 ✗"),
    ],
)
def test_ours_stands_below_the_printed_number_in_the_colour_of_its_verdict(
    tmp_path, judge, verdict, ours, shown
):
    paper = written(tmp_path, RULE | {"judge": judge})
    table = published_table(paper.tables, "2", [of(paper.claims[0], verdict, ours)])
    assert f'| SST | 84<br><span class="verdict {verdict.css_class}">{shown}</span> |' in table
    assert "| IMDB | 90 |" in table
    assert "stands ours, with its 95 % interval where it has one" in table


def test_what_a_verdict_is_about_is_said_where_it_is_about_the_fewer_numbers_of_a_row(tmp_path):
    write_paper(tmp_path, table='7,IMDB,xi_star,1,\n7,IMDB,"xi(alpha,beta)",1,\n7,IMDB,A_baseline,1,\n')
    rules = {
        "unavailable": [Rule(quantity="A_baseline", reason="lost")],
        "not_run": [Rule(dataset="IMDB", reason="two hours")],
    }
    table = published_table(read_tables(tmp_path / "t.csv", {}, rules), "7", [])
    many = '<span class="verdict not-run">not run at this profile</span> two hours'
    few = '*A* by chance: <span class="verdict cannot-be-run">cannot be run</span> lost'
    assert f"| IMDB | 1 | 1 | 1 | {many}<br>{few} |\n" in table


def test_a_row_says_what_it_would_take_and_what_holds_by_construction(tmp_path):
    rules = {
        "not_run": [{"dataset": "IMDB", "reason": "two hours"}],
        "by_construction": [{"dataset": "SST", "reason": "chosen"}],
    }
    paper = written(tmp_path, **rules)
    assert paper.claims == ()  # nothing is judged that no run can move
    table = published_table(paper.tables, "2", [])
    assert '<span class="verdict not-run">not run at this profile</span> two hours |' in table
    assert "| SST | 84 |  |" in table
    told = '<span class="verdict by-construction">by construction</span> ξ\\* of SST: chosen.'
    assert told in table.splitlines()


def test_another_reading_has_a_row_of_its_own_and_ours_its_asterisk(tmp_path):
    paper = written(tmp_path, RULE | READINGS)
    first, other = paper.claims
    rows = [
        of(first, Verdict.UNDECIDED, Estimate(82.25, 77.0, 87.5, 3)),
        of(other, Verdict.NOT_REPRODUCED, Estimate(61.0), starred=True),
    ]
    table = published_table(paper.tables, "2", rows)
    assert '| SST | 84<br><span class="verdict undecided">82.2 [77, 88] ?</span> |' in table
    assert '| *labels as the text says* | <span class="verdict not-reproduced">61.0\\* ✗</span> |' in table
    assert "Starred (\\*): no checkpoint agrees more, so the performance at the end stands there." in table
    assert status(paper.tables.table("2")[1], answers(rows)) is Verdict.UNDECIDED  # the first reading counts
    assert "Starred" not in published_table(paper.tables, "2", rows[:1])
    alone = published_table(paper.tables, "2", [of(first, Verdict.NOT_RUN)])
    assert "| SST | 84 | <span" in alone
    assert "stands ours" not in alone


@pytest.mark.parametrize(
    ("share", "starred", "lacking"),
    [({"value": 0.67}, True, False), ({"value": 0.5}, False, False), ({"value": None}, False, False),
     (None, False, True)],
)  # fmt: skip
def test_ours_is_starred_where_most_runs_are_and_a_result_must_say_so(tmp_path, share, starred, lacking):
    written(tmp_path / "claims", RULE | READINGS)
    values = {"final": {"value": 83.0}} | ({"starred": share} if share else {})
    values = {"sst": {"validation": values}, "sst_as_text": {"cannot_be_run": "data: not at hand"}}
    Result("agreement", "paper", {}, values, {}, {}).save(tmp_path / "results" / "paper")
    row = next(row for row in verify(tmp_path) if row.profile == "paper")
    assert row.starred is starred
    assert row.judgement.miswired is (row.verdict is Verdict.NOT_RUN) is lacking
    assert ("starred" in row.judgement.reason) is lacking


def test_of_several_verdicts_on_a_number_the_first_at_the_largest_profile_counts(tmp_path):
    paper = written(tmp_path)
    told = (("quick", Verdict.REPRODUCED), ("paper", Verdict.UNDECIDED), ("paper", Verdict.NOT_REPRODUCED))
    rows = [of(paper.claims[0], verdict, profile=profile) for profile, verdict in told]
    number = paper.tables.table("2")[1]
    assert status(number, answers(rows)) is Verdict.UNDECIDED
    assert status(number, answers(rows[:1])) is Verdict.REPRODUCED
    assert status(number, answers([])) is Verdict.NOT_RUN


@pytest.mark.parametrize(
    ("quantity", "shown"),
    [
        ("A(alpha,beta_uf)", "*A*(α, β<sup>uf</sup>)"),
        ("xi(beta_uf,beta_px)", "ξ(β<sup>uf</sup>, β<sup>px</sup>)"),
        ("A(alpha,alpha_frozen)", "*A*(α, α<sup>fr</sup>)"),
        ("vocab size", "vocab size"),
    ],
)
def test_symbols_of_the_published_tables(quantity, shown):
    assert symbol(quantity) == shown
