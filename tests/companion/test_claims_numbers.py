"""Claims made by rule, one a published number: which there are, how they are judged, where they stand."""

import pytest
import yaml

from attnlib.companion.claims import load_claims, load_papers
from attnlib.companion.estimates import Estimate
from attnlib.companion.rows import Row
from attnlib.companion.scorecard import published_table
from attnlib.companion.verdicts import Judgement, Tolerance, Verdict
from attnlib.errors import BadInput, UnknownName

CSV = "table,dataset,quantity,value,note\n2,IMDB,xi_star,90,\n2,SST,xi_star,84,\n2,News It-Pt,xi_star,55,\n"
RULE = {
    "tables": [2],
    "experiment": "agreement",
    "key": "{dataset}.validation.{quantity}",
    "datasets": {"SST": "sst", "News It-Pt": "news_it_pt"},
    "quantities": {"xi_star": "final"},
    "judge": {"kind": "tolerance", "absolute": 5},
    "profiles": ["paper"],
}


def written(folder, rule):
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
    assert '| SST | 84<br><span class="verdict partly">82.2 [77, 88]</span> |' in table
    assert "| IMDB | 90 |" in table
    assert "stands ours with its 95 % interval" in table


def test_a_number_without_a_verdict_stands_alone(tmp_path):
    (paper,) = load_papers(written(tmp_path, RULE), ["agreement"])
    row = Row(paper.claims[0], "paper", Judgement(Verdict.NOT_RUN, {}, "models not trained yet"))
    table = published_table(paper.tables, "2", [row])
    assert "| SST | 84 |" in table
    assert "stands ours" not in table
