"""Numbers and claims in words, as badges and the scorecard show them."""

import pytest

from companion.claims.estimates import Estimate
from companion.claims.model import load_papers
from companion.claims.verdicts import Judgement, Verdict
from companion.claims.wording import evidence, evidence_in_words, judged_in_words, key_in_words
from tests.companion.claims.claims_builders import claim, write_paper

SHARE = Estimate(0.5714, 0.53, 0.61, 10)


@pytest.mark.parametrize(
    ("estimates", "text"),
    [
        pytest.param([SHARE], "0.57 [0.53, 0.61], n = 10", id="a number with its interval"),
        pytest.param([Estimate(83.0)], "83", id="a count has none"),
        pytest.param(
            [Estimate(300.0, 300.0, float("inf"), 5, at_least=True)], "at least 300, n = 5", id="a bound"
        ),
        pytest.param([SHARE, Estimate(-0.03, -0.05, -0.01, 12)], "0.57 and −0.030, n = 10 to 12", id="two"),
        pytest.param(
            [SHARE, SHARE, Estimate(0.2, 0.1, 0.3, 10)], "3 numbers, 0.20 to 0.57, n = 10", id="more"
        ),
        pytest.param([Estimate(float("nan"))], "undefined", id="no number is defined"),
        pytest.param([], "no number", id="nothing was run"),
    ],
)
def test_evidence_is_numbers_without_a_verdict(estimates, text):
    judgement = Judgement(Verdict.UNDECIDED, {f"key_{i}": estimate for i, estimate in enumerate(estimates)})
    assert evidence(judgement) == text


@pytest.mark.parametrize(
    ("estimates", "text"),
    [
        pytest.param([SHARE], "a share of 0.57 [0.53, 0.61]; has to be above 5", id="with its interval"),
        pytest.param([SHARE, Estimate(9.0)], "a share of 0.57; has to be above 5", id="two without"),
        pytest.param([Estimate(float("nan"))], "undefined", id="undefined"),
        pytest.param([], "no number", id="nothing was run"),
    ],
)
def test_a_phrase_is_filled_in_with_what_its_placeholders_name(tmp_path, estimates, text):
    write_paper(tmp_path, claim("one", experiment="readout", keys=["x"]))
    (paper,) = load_papers(tmp_path)
    judgement = Judgement(Verdict.UNDECIDED, {f"key_{i}": estimate for i, estimate in enumerate(estimates)})
    phrase = "a share of {0}; has to be {needed}"
    assert evidence_in_words(paper.claims[0], judgement, phrase) == text


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("scan.AO.temporal_share", "SCAN, attention only: temporal share"),
        ("gain", "gain"),
        (
            "dial.by_mark.75.AED.gain",
            "75 % of sentences may reorder, GRU with attention: along the dial, gain",
        ),
        ("sst.alpha_beta.agreement", "SST: attention and probe, agreement"),
        ("slow_less_fast.0p01", "slow minus fast, 0.01"),
        ("scan.AED.x_y − scan.AO.x_y", "SCAN, GRU with attention: x y minus SCAN, attention only: x y"),
    ],
)
def test_a_key_is_said_in_words(key, words):
    assert key_in_words(key) == words


def test_how_a_claim_is_judged_is_a_sentence(tmp_path):
    judged = claim("one", experiment="readout", keys=["scan.AO.x"])
    not_run = {"id": "later", "place": "Section 1", "says": "It rises.", "not_run": "It would take a year."}
    write_paper(tmp_path, judged, not_run)
    (paper,) = load_papers(tmp_path)
    assert judged_in_words(paper.claims[0]) == "“SCAN, attention only: x” has to be above 5."
    assert judged_in_words(paper.claims[1]) == "It would take a year."
