"""Claims made by rule, one a published number: which there are, how they are judged, where they stand."""

import pytest
import yaml

from attnlib.companion.claims import load_claims, load_papers
from attnlib.companion.estimates import Estimate
from attnlib.companion.printed import published_table, status
from attnlib.companion.published import read_tables
from attnlib.companion.rows import Row
from attnlib.companion.verdicts import Judgement, Tolerance, Verdict, judge_values
from attnlib.companion.verify import verify
from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.result import Result

CSV = (
    "table,dataset,quantity,value,note\n2,IMDB,xi_star,90,\n2,SST,xi_star,84,\n2,News It-Pt,xi_star,55,\n"
    "5,SST,A_baseline,78,\n"
)
RULE = {
    "tables": [2],
    "experiment": "agreement",
    "key": "{dataset}.validation.{quantity}",
    "datasets": {"SST": "sst", "News It-Pt": "news_it_pt"},
    "quantities": {"xi_star": "final"},
    "judge": {"kind": "tolerance", "absolute": 5},
    "profiles": ["paper"],
}


def written(folder, rule, **rules):
    content = {
        "paper": "p",
        "title": "A paper",
        "url": "https://example.org",
        "claims": [],
        "numbers": [rule],
    }
    content |= {
        "csv": "tables.csv",
        "unavailable": [{"dataset": "News It-Pt", "reason": "data: not at hand"}],
        **rules,
    }
    (folder / "tables.csv").write_text(CSV, encoding="utf-8")
    (folder / "paper.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


def test_a_rule_makes_a_claim_of_every_number_that_is_named_and_at_hand(tmp_path):
    (claim,) = load_claims(written(tmp_path, RULE), ["agreement"])
    assert (claim.id, claim.keys, claim.profiles) == (
        "number-2-sst-xi-star",
        ("sst.validation.final",),
        ("paper",),
    )
    assert (claim.judge, claim.published.value, claim.number) == (Tolerance(84, 5), 84, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": [3]}, "no table '3'"),
        ({"datasets": {"SSt": "sst"}}, "did you mean 'SST'"),
        ({"quantities": {"xi": "final"}}, "no quantity of tables 2 'xi'"),
        ({"experiment": "agreements"}, "did you mean 'agreement'"),
        ({"key": "{dataset}.final"}, "expected {dataset} and {quantity} in it"),
        ({"judge": {"kind": "order", "independent": True}}, "judges each number by itself"),
        ({"profiles": ["papers"]}, "did you mean 'paper'"),
        ({"judge": None}, "missing judge"),
        ({"readings": {"as the text says": {"SSt": "sst_as_text"}}}, "did you mean 'SST'"),
        ({"starred": {"xi_sta": "starred"}}, "did you mean 'xi_star'"),
        ({"unrelated": "chance"}, "needs a number as 'unrelated'"),
        ({"unrelated": {"table": 5}}, "missing quantity"),
        ({"unrelated": {"table": 5, "quantity": "A_base"}}, "did you mean 'A_baseline'"),
        ({"unrelated": {"ours": "majority", "table": 5}}, "'table'"),
        ({"unrelated": 0, "judge": {"kind": "trend", "direction": "positive"}}, "bounds a tolerance"),
    ],
)
def test_a_rule_that_cannot_be_used_says_what_is_wrong(tmp_path, change, message):
    with pytest.raises((BadInput, UnknownName)) as caught:
        load_claims(written(tmp_path, RULE | change), ["agreement"])
    assert message in str(caught.value)


def test_numbers_need_tables(tmp_path):
    content = yaml.safe_load((written(tmp_path, RULE) / "paper.yaml").read_text(encoding="utf-8"))
    del content["csv"], content["unavailable"]
    (tmp_path / "paper.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(BadInput, match="the file names no `csv`"):
        load_claims(tmp_path, ["agreement"])


def test_ours_stands_below_the_printed_number_in_the_colour_of_its_verdict(tmp_path):
    (paper,) = load_papers(written(tmp_path, RULE), ["agreement"])
    judgement = Judgement(Verdict.PARTLY, {"sst.validation.final": Estimate(82.25, 77.0, 87.5, 3)})
    table = published_table(paper.tables, "2", [Row(paper.claims[0], "paper", judgement)])
    assert '| SST | 84<br><span class="verdict partly">82.2 [77, 88] (✓)</span> |' in table
    assert "| IMDB | 90 |" in table
    assert "stands ours, with its 95 % interval where it has one" in table


def test_of_what_is_no_such_number_the_sign_alone_stands_there(tmp_path):
    """How far a printed size lies inside bounds is not to be read as a size."""
    rule = RULE | {"judge": {"kind": "inequality", "relation": ">=", "threshold": 0}}
    (paper,) = load_papers(written(tmp_path, rule), ["agreement"])
    row = Row(paper.claims[0], "paper", Judgement(Verdict.REPRODUCED, {"x": Estimate(0.0)}))
    table = published_table(paper.tables, "2", [row])
    assert '| SST | 84<br><span class="verdict reproduced">✓</span> |' in table


@pytest.mark.parametrize(
    ("value", "shown"), [(84.0, "84"), (84.5, "84.5"), (5130.0, "5,130"), (1234567.0, "1,234,567")]
)
def test_what_is_to_be_met_exactly_is_shown_exactly(tmp_path, value, shown):
    rule = RULE | {"judge": {"kind": "tolerance", "absolute": 0}}
    (paper,) = load_papers(written(tmp_path, rule), ["agreement"])
    row = Row(paper.claims[0], "paper", Judgement(Verdict.NOT_REPRODUCED, {"x": Estimate(value)}))
    assert f">{shown} ✗</span> |" in published_table(paper.tables, "2", [row])


def test_what_a_verdict_is_about_is_said_where_it_is_about_the_fewer_numbers_of_a_row(tmp_path):
    quantities = ("xi_star", "xi(alpha,beta)", "A_baseline")
    lines = "".join(
        f"7,IMDB,{quantity},1,\n".replace("xi(alpha,beta)", '"xi(alpha,beta)"') for quantity in quantities
    )
    (tmp_path / "t.csv").write_text("table,dataset,quantity,value,note\n" + lines, encoding="utf-8")
    rules = {
        "unavailable": [{"quantity": "A_baseline", "reason": "lost"}],
        "not_run": [{"dataset": "IMDB", "reason": "two hours"}],
    }
    (row,) = [
        line for line in published_table(read_tables(tmp_path / "t.csv", {}, rules), "7", []).splitlines()
        if line.startswith("| IMDB")
    ]  # fmt: skip
    many, few = row.removesuffix(" |").rpartition(" | ")[2].split("<br>")
    assert many == '<span class="verdict not-run">not run at this profile</span> two hours'
    assert few == '*A* by chance: <span class="verdict cannot-be-run">cannot be run</span> lost'


def test_a_row_says_what_it_would_take_and_what_holds_by_construction(tmp_path):
    rules = {
        "not_run": [{"dataset": "IMDB", "reason": "two hours"}],
        "by_construction": [{"dataset": "SST", "reason": "chosen"}],
    }
    (paper,) = load_papers(written(tmp_path, RULE, **rules), ["agreement"])
    assert paper.claims == ()  # nothing is judged that no run can move
    table = published_table(paper.tables, "2", [])
    assert '<span class="verdict not-run">not run at this profile</span> two hours |' in table
    assert "| SST | 84 |  |" in table
    told = '<span class="verdict by-construction">by construction</span> ξ\\* of SST: chosen.'
    assert told in table.splitlines()


def test_a_number_without_a_verdict_stands_alone(tmp_path):
    (paper,) = load_papers(written(tmp_path, RULE), ["agreement"])
    row = Row(paper.claims[0], "paper", Judgement(Verdict.NOT_RUN, {}, "models not trained yet"))
    table = published_table(paper.tables, "2", [row])
    assert "| SST | 84 |" in table
    assert "stands ours" not in table


@pytest.mark.parametrize(
    ("unrelated", "allowed"),
    [(0, 5), (90, 3), (78, 3), ({"table": 5, "quantity": "A_baseline"}, 3), (None, 5)],
)
def test_a_tolerance_goes_at_most_half_of_the_way_to_what_is_unrelated(tmp_path, unrelated, allowed):
    (claim,) = load_claims(written(tmp_path, RULE | {"unrelated": unrelated}), ["agreement"])
    assert claim.judge == Tolerance(84, allowed)


def test_what_is_unrelated_may_be_a_number_of_our_own_result(tmp_path):
    (claim,) = load_claims(written(tmp_path, RULE | {"unrelated": {"ours": "majority"}}), ["agreement"])
    assert claim.judge == Tolerance(84, 5, "sst.validation.majority")
    (_, other) = load_claims(
        written(tmp_path, RULE | READINGS | {"unrelated": {"ours": "majority"}}), ["agreement"]
    )
    assert other.judge.unrelated == "sst_as_text.validation.majority"
    for majority, verdict in ((50, "reproduced"), (80, "not reproduced"), (90, "not reproduced")):
        values = {"sst": {"validation": {"final": 80.5, "majority": majority}}}
        assert judge_values(claim.judge, values, claim.keys).verdict == verdict
    assert judge_values(claim.judge, {"sst": {"validation": {"final": 80.5}}}, claim.keys).miswired


READINGS = {
    "readings": {"labels as the text says": {"SST": "sst_as_text"}},
    "starred": {"xi_star": "starred"},
}


def test_another_reading_of_a_data_set_is_a_claim_beside_the_first(tmp_path):
    first, other = load_claims(written(tmp_path, RULE | READINGS), ["agreement"])
    assert (first.id, first.keys, first.starred) == (
        "number-2-sst-xi-star",
        ("sst.validation.final",),
        "sst.validation.starred",
    )
    assert (other.id, other.keys, other.starred) == (
        "number-2-sst-xi-star-labels-as-the-text-says",
        ("sst_as_text.validation.final",),
        "sst_as_text.validation.starred",
    )
    assert (other.reading, other.judge, other.says) == (
        "labels as the text says",
        first.judge,
        "SST (labels as the text says), xi_star: 84",
    )


def test_another_reading_has_a_row_of_its_own_and_ours_its_asterisk(tmp_path):
    (paper,) = load_papers(written(tmp_path, RULE | READINGS), ["agreement"])
    first, other = paper.claims
    rows = [
        Row(first, "paper", Judgement(Verdict.PARTLY, {"x": Estimate(82.25, 77.0, 87.5, 3)})),
        Row(other, "paper", Judgement(Verdict.NOT_REPRODUCED, {"x": Estimate(61.0)}), starred=True),
    ]
    table = published_table(paper.tables, "2", rows)
    assert '| SST | 84<br><span class="verdict partly">82.2 [77, 88] (✓)</span> |' in table
    assert '| *labels as the text says* | <span class="verdict not-reproduced">61.0\\* ✗</span> |' in table
    assert "Starred (\\*): no checkpoint agrees more, so the performance at the end stands there." in table
    assert status(paper.tables.table("2")[1], rows) is Verdict.PARTLY  # the first reading counts
    assert "Starred" not in published_table(paper.tables, "2", rows[:1])


@pytest.mark.parametrize(
    ("share", "starred"), [({"value": 0.67}, True), ({"value": 0.5}, False), ({"value": None}, False)]
)
def test_ours_is_starred_where_most_runs_are(tmp_path, share, starred):
    values = {"sst": {"validation": {"final": {"value": 83.0}, "starred": share}}}
    assert rows_of(tmp_path, values)[0].starred is starred


def test_a_result_without_the_share_of_starred_runs_is_a_problem(tmp_path):
    row = rows_of(tmp_path, {"sst": {"validation": {"final": {"value": 83.0}}}})[0]
    assert (row.verdict, "starred" in row.judgement.reason) == (Verdict.NOT_RUN, True)
    assert row.judgement.miswired


def rows_of(folder, values):
    """Rows at the paper profile of the rule with another reading, of a result with these values."""
    (folder / "claims").mkdir()
    written(folder / "claims", RULE | READINGS)
    values = values | {"sst_as_text": {"cannot_be_run": "data: not at hand"}}
    result = Result("agreement", "paper", {}, values, {}, {"modules": [], "hash": ""}, {})
    result.save(folder / "results" / "paper")
    return [row for row in verify(folder) if row.profile == "paper"]
