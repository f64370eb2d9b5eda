"""Sentences of the chapters on matrices, breakdown and temporal share, from small results worked by hand."""

import pytest

from companion.book.intervals import side
from companion.results.result import Result
from notebooks.attend.alignment_breakdown import sentences as breakdown
from notebooks.attend.attention_matrices.sentences import unsolved_sentence
from notebooks.attend.temporal_share import sentences as share
from notebooks.shared.sentences import named, over_models

PARTS = ("temporal", "input", "residual")


def interval(value, half=0.05):
    return {"value": value, "low": value - half, "high": value + half, "n": 3}


UNDEFINED = {"value": None, "low": None, "high": None, "n": 0}
ALONE = {"value": 0.3, "low": None, "high": None, "n": 1}


def result_of(values, tables=None, tasks=("one_to_one", "scan")) -> Result:
    return Result("x", "quick", {"task": list(tasks)}, values, tables or {}, {}, {})


def test_an_interval_is_on_a_side_only_as_a_whole():
    sides = [side(found) for found in (interval(0.1), interval(-0.1), interval(0.01), ALONE, UNDEFINED)]
    assert sides == ["above", "below", "open", "open", "open"]
    assert side(interval(0.6), 0.5) == "above"


def test_kinds_are_listed_by_task():
    kinds = [("one_to_one", "AED", ALONE), ("one_to_one", "AO", ALONE), ("scan", "AO", ALONE)]
    assert named(kinds) == "one-to-one (AED, AO), SCAN (AO)"


def test_one_model_has_no_interval_and_none_no_mean():
    assert over_models([0.5]) == {"value": 0.5, "low": None, "high": None, "n": 1}
    assert over_models([None]) == UNDEFINED
    found = over_models([0.4, 0.6])  # 0.5 ± 12.706 · 0.1
    assert found["low"] == pytest.approx(0.5 - 1.2706, abs=1e-4)


def test_unsolved_tasks_are_named_with_their_numbers():
    values = {
        "one_to_one": {"AO": {"exact_match": interval(0.9)}},
        "scan": {"AO": {"exact_match": interval(0.2)}},
    }
    assert unsolved_sentence(result_of(values)).endswith("in: SCAN, AO: 0.20 [0.15, 0.25].")
    values["scan"]["AO"]["exact_match"] = interval(0.48)
    assert unsolved_sentence(result_of(values)).startswith("No kind of network")


def decomposed(residual, similarity) -> Result:
    """One kind on one task: five residual terms that sum to ``residual``, one network a seed."""
    rows = [
        {"task": "scan", "kind": "AED", "seed": seed, "decoder": d, "encoder": e,
         "covariance_share": residual / 5 if "residual" in (d, e) else (1 - residual) / 4}
        for seed in range(3) for d in PARTS for e in PARTS
    ]  # fmt: skip
    found = {
        "covariance_share": {"temporal_temporal": interval(1 - residual)},
        "substitution": {"no_residual": {"similarity": interval(similarity)}},
    }
    return result_of({"scan": {"AED": found}}, {"shares": rows})


def test_residual_terms_are_summed_by_network():
    found = breakdown.residual_share(decomposed(0.7, 0.3), "scan", "AED")
    assert [round(found[end], 9) for end in ("value", "low", "high")] == [0.7, 0.7, 0.7]
    assert found["n"] == 3


@pytest.mark.parametrize(
    ("residual", "similarity", "apart", "heavy"),
    [(0.7, 0.3, False, True), (0.2, 0.3, True, False), (0.2, 0.8, False, False)],
)
def test_what_has_happened_is_told_from_the_numbers(residual, similarity, apart, heavy):
    result = decomposed(residual, similarity)
    first, second = breakdown.falsifier_sentences(result).split("\n")
    assert first.endswith("this has happened, in SCAN (AED)." if apart else "this has not happened.")
    assert second.endswith("this has happened, in SCAN (AED)." if heavy else "this has not happened.")
    text = breakdown.breakdown_sentences(result)
    assert ("outweigh the other four together in: SCAN, AED: 0.70 [0.70, 0.70]." in text) == heavy
    assert ("μ·μ has 0.80 [0.75, 0.85], and yet without residuals" in text) == apart


def shared(**correlations) -> Result:
    """Correlations among samples by kind, on one task; the same for both shares."""
    across = {kind: {"temporal_share": found, "input_share": found} for kind, found in correlations.items()}
    same = {"spearman": {"temporal_share": interval(0.5), "input_share": interval(-0.5)}}
    falls = {"typicality": interval(-0.9), "temporal_share": interval(-0.9)}
    values = {
        "across_samples": {"scan": across},
        "by_task": {"scan": {kind: {} for kind in correlations}},
        "by_architecture": {"AED": same},
        "dial": {"AED": falls, "AO": {}},
    }
    return result_of(values, tasks=("scan",))


def test_signs_among_samples_are_sorted_by_whole_intervals():
    result = shared(AED=interval(0.4), AO=interval(-0.4), VED=interval(0.01))
    temporal, inputs = share.across_samples_sentences(result).split("\n")
    assert temporal == (
        "* Typicality and temporal share: they rise together, as the claim has it, in SCAN (AED); they "
        "cannot be told from unrelated in SCAN (VED); they go against each other in "
        "SCAN, AO: −0.40 [−0.45, −0.35]."
    )
    assert "they go against each other, as the claim has it, in SCAN (AO)" in inputs
    assert "they rise together in SCAN, AED: 0.40 [0.35, 0.45]" in inputs


def test_what_would_change_our_mind_is_held_against_the_numbers():
    result = shared(AED=interval(0.4), AO=interval(-0.4))
    happened = [
        line.endswith("this has not happened.") for line in share.falsifier_sentences(result).split("\n")
    ]
    assert happened == [True, False, False, True, True]
    result.values["dial"]["AED"]["temporal_share"] = interval(-0.01)
    result.values["by_architecture"]["AED"]["spearman"]["input_share"] = interval(0.3)
    lines = share.falsifier_sentences(result).split("\n")
    assert lines[0].endswith("this has happened, in AED.")
    assert lines[-1].endswith("this has happened, in AED.")


def test_cells_are_named_where_there_are_several():
    rows = [{"architecture": "AED", "cell": "gru", "task": task} for task in ("one_to_one", "scan")]
    rows.append({"architecture": "AO", "cell": "none", "task": "scan"})
    assert share.cells_note(result_of({}, {"points": rows})) == ""
    rows.append({"architecture": "AED", "cell": "lstm", "task": "scan"})
    assert share.cells_note(result_of({}, {"points": rows})).endswith("GRU (2), LSTM (1).")


def test_residuals_are_told_at_the_far_end_of_the_dial():
    by_task = {
        "reordering_0": {"AED": {"residual_share": interval(0.1)}},
        "reordering_100": {"AED": {"residual_share": interval(0.7)}, "AO": {"residual_share": interval(0.0)}},
    }
    said = share.residual_sentence(result_of({"by_task": by_task}))
    assert said.endswith("a share of 0.70 [0.65, 0.75] in AED and 0.00 [−0.05, 0.05] in AO.")
    assert share.residual_sentence(result_of({"by_task": {"scan": {}}})) == ""
