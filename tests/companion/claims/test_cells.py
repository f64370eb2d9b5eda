"""Numbers of claims as cells of tables and sentences show them: names, units and equal decimals."""

import pytest

from companion.claims.cells import declared_unit, evidence_of, in_a_cell, numbers_in_words
from companion.claims.estimates import Estimate, look_up
from companion.claims.model import load_papers
from companion.claims.verdicts import Judgement, Verdict
from tests.companion.claims.claims_builders import claim, write_paper

QUANTITY = {
    "name": "quantity",
    "categories": [
        {"value": "lead", "label": "by how much words are known earlier, in updates"},
        {"value": "failed", "label": "networks below 95 %, in the end"},
    ],
}
SCHEMAS = {
    "networks": {
        "schema": {
            "fields": [
                {"name": "step", "unit": "updates"},
                {"name": "agreement", "unit": "%"},
                {"name": "quality.loss", "unit": "nats a word"},
                {"name": "accuracy", "constraints": {"minimum": 0, "maximum": 1}},
                {"name": "n", "constraints": {"minimum": 0}},
            ]
        }
    },
    "estimates": {"schema": {"fields": [QUANTITY]}},
    "others": {"schema": {"fields": [{"name": "words", "unit": "words"}, {"name": "words", "unit": "%"}]}},
}


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        pytest.param("scan.lead", "updates", id="of a quantity that is estimated"),
        pytest.param("lead.scan", "updates", id="wherever its name stands"),
        pytest.param("scan.quality.loss", "nats a word", id="a name with a dot"),
        pytest.param("scan.accuracy", "share", id="a column from 0 to 1"),
        pytest.param("scan.n", "", id="a count has none"),
        pytest.param("scan.failed", "", id="a remark is no unit"),
        pytest.param("scan.words", "", id="tables that differ"),
        pytest.param("scan.other", "", id="no such column"),
    ],
)
def test_a_number_has_the_unit_that_its_column_declares(key, unit):
    assert declared_unit(key, SCHEMAS) == unit


@pytest.mark.parametrize(
    ("estimate", "unit", "text"),
    [
        pytest.param(Estimate(0.0, 0.0, 0.161, 20), "share", "0 % [0, 16], n = 20", id="a share"),
        pytest.param(Estimate(0.032, 0.022, 0.042, 3), "share", "3.2 % [2.2, 4.2], n = 3", id="narrow"),
        pytest.param(
            Estimate(-0.2, -0.3, -0.1, 5), "share points", "−20 points [−30, −10], n = 5", id="less"
        ),
        pytest.param(Estimate(11.893, 6.508, 17.3, 5), "", "11.9 [6.5, 17.3], n = 5", id="equal decimals"),
        pytest.param(Estimate(9.887, 0.0, 20.03, 12), "", "9.89 [0.00, 20.03], n = 12", id="of the value"),
        pytest.param(
            Estimate(20.0, 20.0, 20.0, 20), "updates", "20 updates, n = 20, the same in each", id="equal"
        ),
        pytest.param(Estimate(9.0), "networks", "9 networks", id="a count"),
        pytest.param(Estimate(1.0), "networks", "1 network", id="one"),
        pytest.param(Estimate(0.5, n=1), "", "0.50, n = 1, no interval", id="a single network"),
        pytest.param(Estimate(9.128e-8), "nats", "9 × 10⁻⁸ nats", id="next to nothing"),
        pytest.param(
            Estimate(3.0, 2.679, float("inf"), 10, at_least=True),
            "doublings",
            "at least 2.68 doublings, n = 10",
            id="a bound",
        ),
        pytest.param(
            Estimate(12.9, 8.2, 17.6, 8, ("ag_news", "sst"), "sst"),
            "%",
            "12.9 % [8.2, 17.6], n = 8, weakest of 2: SST",
            id="the weakest by its name",
        ),
    ],
)
def test_a_number_in_a_cell_has_its_unit(estimate, unit, text):
    assert in_a_cell(estimate, unit).replace("\N{NO-BREAK SPACE}", " ") == text


def test_the_weakest_is_the_one_that_the_result_names_beside_it():
    number = {"value": 1.0, "low": 0.5, "high": 1.5, "n": 3, "weakest_of": ["imdb", "sst"]}
    assert look_up({"weakest": {"gain": number, "data": "sst"}}, "weakest.gain").weakest == "sst"


@pytest.fixture
def judged(tmp_path):
    """A function that gives a claim about some numbers, and its judgement."""

    def build(numbers, **fields):
        written = {"experiment": "readout", "keys": list(numbers), **fields}
        write_paper(tmp_path, claim("one", **written))
        (paper,) = load_papers(tmp_path)
        parts = dict.fromkeys(numbers, Verdict.NOT_REPRODUCED)
        return paper.claims[0], Judgement(Verdict.NOT_REPRODUCED, numbers, parts=parts)

    return build


SHARE = Estimate(0.5, 0.3, 0.7, 5)


def shown(judged):
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in numbers_in_words(*judged, SCHEMAS)]


def test_the_name_that_a_claim_gives_comes_first(judged):
    named = judged({"x.failed": SHARE}, shown={"name": "share that fails", "unit": "share"})
    assert shown(named) == ["share that fails: 50 % [30, 70], n = 5"]


def test_one_name_of_two_numbers_is_above_them(judged):
    two = judged({"scan.accuracy": SHARE, "reversal.accuracy": SHARE}, shown={"name": "correct words"})
    assert shown(two) == ["correct words:", "SCAN: 50 % [30, 70], n = 5", "reversal: 50 % [30, 70], n = 5"]


def test_two_names_are_of_one_number_each(judged):
    two = judged({"x.a": SHARE, "x.b": SHARE}, shown={"name": ["first", "second"]})
    assert shown(two) == ["first: 0.50 [0.30, 0.70], n = 5", "second: 0.50 [0.30, 0.70], n = 5"]


def test_what_cannot_be_a_share_is_a_difference_of_shares(judged):
    two = judged({"a.accuracy": Estimate(-0.2, -0.3, -0.1, 5), "b.accuracy": SHARE})
    assert shown(two) == ["a: −20 points [−30, −10], n = 5", "b: 50 points [30, 70], n = 5"]


def test_of_many_numbers_a_cell_counts_those_as_stated(judged):
    assert shown(judged(dict.fromkeys(["a", "b", "c"], SHARE))) == ["0 of 3 as stated"]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        pytest.param({"a.accuracy": SHARE}, "50 % [30, 70], n = 5", id="one"),
        pytest.param({"a.accuracy": SHARE, "b.accuracy": Estimate(0.25)}, "50 % and 25 %, n = 5", id="two"),
        pytest.param(
            {"a.accuracy": SHARE, "b.accuracy": Estimate(0.25), "c.accuracy": Estimate(0.75, n=7)},
            "3 numbers, 25 % to 75 %, n = 5 to 7",
            id="more",
        ),
        pytest.param({"a.accuracy": Estimate(float("nan"))}, "undefined", id="undefined"),
        pytest.param({}, "no number", id="nothing was run"),
    ],
)
def test_a_sentence_has_the_same_units(judged, numbers, text):
    about, judgement = judged(numbers or {"x": SHARE})
    judgement = judgement if numbers else Judgement(Verdict.NOT_RUN, {})
    assert evidence_of(about, judgement, SCHEMAS).replace("\N{NO-BREAK SPACE}", " ") == text
