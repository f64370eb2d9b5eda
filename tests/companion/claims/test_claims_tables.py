"""Published tables: where ours stands, what is said beside it, how symbols read."""

import pytest
import yaml

from companion.claims import ClaimVerdict, Estimate, Judgement, Verdict, load_papers
from companion.claims.published import Rule, read_tables
from companion.claims.scorecard import answers, published_table, status, symbol
from companion.claims.verify import verify
from companion.results.result import Result
from tests.companion.claims.claims_builders import READINGS, rule

CSV = "table,dataset,quantity,value,note\n2,IMDB,xi_star,90,\n2,SST,xi_star,84,\n"
RULE = rule()


def written(folder, rule, **rules):
    content = {"paper": "p", "title": "A paper", "claims": [], "numbers": [rule], "csv": "tables.csv"}
    (folder / "tables.csv").write_text(CSV, encoding="utf-8")
    (folder / "paper.yaml").write_text(yaml.safe_dump(content | rules), encoding="utf-8")
    (paper,) = load_papers(folder)
    return paper


def of(claim, verdict, *estimates, profile="paper", **about):
    evidence = {f"key {number}": estimate for number, estimate in enumerate(estimates)}
    return ClaimVerdict(claim, profile, Judgement(verdict, evidence), **about)


EXACT = {"kind": "tolerance", "absolute": 0}
BOUND = {"kind": "inequality", "relation": ">=", "threshold": 0}


@pytest.mark.parametrize(
    ("judge", "verdict", "ours", "shown"),
    [
        (RULE["judge"], Verdict.PARTLY, Estimate(82.25, 77.0, 87.5, 3), "82.2 [77, 88] (✓)"),
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
    text = 'table,dataset,quantity,value,note\n7,IMDB,xi_star,1,\n7,IMDB,"xi(alpha,beta)",1,\n'
    (tmp_path / "t.csv").write_text(text + "7,IMDB,A_baseline,1,\n", encoding="utf-8")
    rules = {
        "unavailable": [Rule(quantity="A_baseline", reason="lost")],
        "not_run": [Rule(dataset="IMDB", reason="two hours")],
    }
    table = published_table(read_tables(tmp_path / "t.csv", {}, rules), "7", [])
    (row,) = [line for line in table.splitlines() if line.startswith("| IMDB")]
    many, few = row.removesuffix(" |").rpartition(" | ")[2].split("<br>")
    assert many == '<span class="verdict not-run">not run at this profile</span> two hours'
    assert few == '*A* by chance: <span class="verdict cannot-be-run">cannot be run</span> lost'


def test_a_row_says_what_it_would_take_and_what_holds_by_construction(tmp_path):
    rules = {
        "not_run": [{"dataset": "IMDB", "reason": "two hours"}],
        "by_construction": [{"dataset": "SST", "reason": "chosen"}],
    }
    paper = written(tmp_path, RULE, **rules)
    assert paper.claims == ()  # nothing is judged that no run can move
    table = published_table(paper.tables, "2", [])
    assert '<span class="verdict not-run">not run at this profile</span> two hours |' in table
    assert "| SST | 84 |  |" in table
    told = '<span class="verdict by-construction">by construction</span> ξ\\* of SST: chosen.'
    assert told in table.splitlines()


def test_a_number_without_a_verdict_stands_alone(tmp_path):
    paper = written(tmp_path, RULE)
    table = published_table(paper.tables, "2", [of(paper.claims[0], Verdict.NOT_RUN)])
    assert "| SST | 84 |" in table
    assert "stands ours" not in table


def test_another_reading_has_a_row_of_its_own_and_ours_its_asterisk(tmp_path):
    paper = written(tmp_path, RULE | READINGS)
    first, other = paper.claims
    rows = [
        of(first, Verdict.PARTLY, Estimate(82.25, 77.0, 87.5, 3)),
        of(other, Verdict.NOT_REPRODUCED, Estimate(61.0), starred=True),
    ]
    table = published_table(paper.tables, "2", rows)
    assert '| SST | 84<br><span class="verdict partly">82.2 [77, 88] (✓)</span> |' in table
    assert '| *labels as the text says* | <span class="verdict not-reproduced">61.0\\* ✗</span> |' in table
    assert "Starred (\\*): no checkpoint agrees more, so the performance at the end stands there." in table
    assert status(paper.tables.table("2")[1], answers(rows)) is Verdict.PARTLY  # the first reading counts
    assert "Starred" not in published_table(paper.tables, "2", rows[:1])


@pytest.mark.parametrize(
    ("share", "starred", "lacking"),
    [({"value": 0.67}, True, False), ({"value": 0.5}, False, False), ({"value": None}, False, False),
     (None, False, True)],
)  # fmt: skip
def test_ours_is_starred_where_most_runs_are_and_a_result_must_say_so(tmp_path, share, starred, lacking):
    row = rows_of(tmp_path, {"final": {"value": 83.0}} | ({"starred": share} if share else {}))[0]
    assert row.starred is starred
    assert row.judgement.miswired is (row.verdict is Verdict.NOT_RUN) is lacking
    assert ("starred" in row.judgement.reason) is lacking


def rows_of(folder, values):
    """Rows at the paper profile of the rule with another reading, of a result with these values."""
    (folder / "claims").mkdir()
    written(folder / "claims", RULE | READINGS)
    values = {"sst": {"validation": values}, "sst_as_text": {"cannot_be_run": "data: not at hand"}}
    Result("agreement", "paper", {}, values, {}, {}).save(folder / "results" / "paper")
    return [row for row in verify(folder) if row.profile == "paper"]


def test_of_several_verdicts_on_a_number_the_first_at_the_largest_profile_counts(tmp_path):
    paper = written(tmp_path, RULE)
    told = (("quick", Verdict.REPRODUCED), ("paper", Verdict.PARTLY), ("paper", Verdict.NOT_REPRODUCED))
    rows = [of(paper.claims[0], verdict, profile=profile) for profile, verdict in told]
    number = paper.tables.table("2")[1]
    assert status(number, answers(rows)) is Verdict.PARTLY
    assert status(number, answers(rows[:1])) is Verdict.REPRODUCED
    assert status(number, answers([])) is Verdict.NOT_RUN


def test_symbols_of_the_published_tables():
    assert symbol("A(alpha,beta_uf)") == "*A*(α, β<sup>uf</sup>)"
    assert symbol("xi(beta_uf,beta_px)") == "ξ(β<sup>uf</sup>, β<sup>px</sup>)"
    assert symbol("A(alpha,alpha_frozen)") == "*A*(α, α<sup>fr</sup>)"
    assert symbol("vocab size") == "vocab size"
