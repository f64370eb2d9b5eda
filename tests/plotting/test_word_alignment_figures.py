"""The figures of the chapter say what their result says, and survive what is missing."""

import pytest

from attnlib.companion.word_alignment_sentences import (
    alignment_sentences,
    token_sentence,
    translator_sentence,
)
from attnlib.decomposition.parts import PART_NAMES
from attnlib.experiments.alignment_summaries import QUALITIES
from attnlib.experiments.measures.token_parts import ALONE, SHARES
from attnlib.experiments.measures.word_alignment import RULES, SHOWN, SUBSETS
from attnlib.experiments.result import Result
from attnlib.plotting.style import PART_COLOURS, as_svg
from attnlib.plotting.token_parts import class_parts, extreme_tokens, token_parts
from attnlib.plotting.word_alignment import alignment_errors, example, rules, term_grids

TASK, KINDS = "europarl_de_en", ("AED", "AO")


def interval(value, half=0.1):
    low, high = (None, None) if value is None else (value - half, value + half)
    return {"value": value, "low": low, "high": high, "n": 3}


def alignment(value=0.5):
    def of(rate):
        return {quality: interval(rate) for quality in QUALITIES}

    return {
        "attention": {name: of(value) for name in SUBSETS} | {"input_only": of(0.3)},
        "rise_without": {f"{d}_{e}": interval(-0.02) for d in PART_NAMES for e in PART_NAMES},
        "references": {"ibm_model_1": of(0.4), "diagonal": of(0.7)},
        "rules": {rule: dict.fromkeys(("full", "ibm_model_1"), of(value)) for rule in RULES},
        "better_than_diagonal": interval(0.2),
        "better_than_ibm_model_1": interval(-0.1, half=0.05),
        "by_prediction": {"right": interval(0.8), "wrong": interval(0.2)},
        "quality": {name: interval(0.3) for name in ("token_accuracy", "perplexity", "loss")},
        "gold": {"samples": 100, "trained_on": 1700, "unknown_source": 0.14, "unknown_target": 0.08},
    }


def token(name, temporal, inputs, kind="AED"):
    shares = {"temporal_only": temporal, "input_only": inputs, "temporal_share": None}
    row = {"task": TASK, "kind": kind, "role": "predicted", "token": name, "class": "word", "rows": 30}
    for share in (*SHARES, *ALONE):
        value = shares.get(share, 0.5)
        ends = {"low": None, "high": None} if value is None else {"low": value - 0.1, "high": value + 0.1}
        row |= {share: value} | {f"{share}_{end}": bound for end, bound in ends.items()}
    return row


@pytest.fixture
def result() -> Result:
    matrices = [
        {"task": TASK, "kind": kind, "links_from": source, "target_position": s, "source_position": t}
        | {"target": "$5", "source": "<unk>", "attention": 0.5, "gold": int(s == t)}
        for kind in KINDS
        for source in (*SHOWN, "ibm_model_1")
        for s in range(2)
        for t in range(3)
    ]
    tokens = [token(f"w{i}", 0.1 * i, 0.5 - 0.1 * i) for i in range(6)]
    classes = {"end_mark": {share: interval(0.5) for share in (*SHARES, *ALONE)} | {"rows": 9}}
    values = {TASK: {kind: alignment() for kind in KINDS}}
    values["tokens"] = {TASK: {"AED": {"classes": {"predicted": classes}}}}
    config = {"task": [TASK], "tokens_of": [TASK], "seeds": 3}
    return Result("x", "quick", config, values, {"example": matrices, "tokens": tokens}, {}, {})


def test_every_dot_of_the_error_rates_has_an_interval(result):
    figure = alignment_errors(result)
    axes = figure.get_axes()[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "Europarl De–En, AO",
        "Europarl De–En, AED",
    ]
    assert "alignment error rate" in axes.get_xlabel()
    bars = [line for line in axes.get_lines() if len(set(line.get_xdata())) == 2 and line.get_ls() == "-"]
    assert sum(line.get_color() == PART_COLOURS["temporal"] for line in bars) == len(KINDS)
    assert {PART_COLOURS["temporal"], PART_COLOURS["input"]} <= {line.get_color() for line in bars}


def test_three_rules_are_three_panels(result):
    assert len(rules(result).get_axes()) == len(RULES)


def test_terms_are_written_as_rate_or_as_rise(result):
    result.values[TASK]["AED"]["rise_without"]["temporal_temporal"] = interval(0.25)
    alone = [text.get_text() for text in term_grids(result).get_axes()[0].texts]
    rises = [text.get_text() for text in term_grids(result, "without").get_axes()[0].texts]
    assert alone.count("0.50\n±0.10") == len(PART_NAMES) ** 2
    assert rises[0] == "+0.25\n±0.10"
    assert set(rises[1:]) == {"−0.02\n±0.10"}


def test_the_example_frames_gold_links_and_shows_words_as_they_are(result):
    figure = example(result, TASK, "AED")
    axes = figure.get_axes()[0]
    assert [len(axes.patches) for axes in figure.get_axes()] == [2] * (len(SHOWN) + 1)
    assert axes.get_yticklabels()[0].get_text() == r"\$5"
    assert axes.get_xticklabels()[0].get_text() == "?"
    as_svg(figure)
    assert example(result, TASK, "AED-lstm").texts[0].get_text() == "no model of this kind is measured yet"


def test_tokens_come_from_the_most_temporal_to_the_most_input_driven(result):
    found = [row["token"] for row in extreme_tokens(result, TASK, "AED", "predicted", each=2)]
    assert found == ["w5", "w4", "w1", "w0"]
    axes = token_parts(result, TASK, "AED", each=2).get_axes()[0]
    assert [label.get_text() for label in axes.get_yticklabels()][::-1] == [f"{name}  (30)" for name in found]
    assert "share" in axes.get_xlabel()


def test_classes_are_rows(result):
    axes = class_parts(result).get_axes()[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Europarl De–En, AED: end mark  (9)"]


def test_sentences_follow_the_intervals(result):
    text = alignment_sentences(result)
    assert (
        "0.50 ± 0.10: better than the diagonal (0.70 ± 0.10) and worse than IBM Model 1 (0.40 ± 0.10)" in text
    )
    assert "the lowest rate is that of χ·χ (0.30 ± 0.10)" in text
    result.values[TASK]["AED"]["better_than_diagonal"] = interval(0.05)
    assert "not to be told from the diagonal" in alignment_sentences(result)
    assert "The 1,700 sentence pairs make a weak translator" in translator_sentence(result)
    assert "most temporal are `w5`, `w4`; most input-driven are `w0`, `w1`" in token_sentence(
        result, TASK, "AED", each=2
    )
