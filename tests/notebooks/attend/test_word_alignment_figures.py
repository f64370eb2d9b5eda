"""The figures of the chapter say what their result says, and survive what is missing."""

import pytest

from attnlib.decomposition.components import PART_NAMES
from attnlib.plots.style import PART_COLOURS, as_svg
from companion.results.result import Result
from notebooks.attend.word_alignment.drawing import (
    alignment_errors,
    class_parts,
    example,
    extreme_tokens,
    rules,
    term_grids,
    token_parts,
)
from notebooks.attend.word_alignment.experiment import QUALITIES
from notebooks.attend.word_alignment.measure import ALONE, RULES, SHARES, SHOWN, SUBSETS
from notebooks.attend.word_alignment.sentences import (
    alignment_sentences,
    outcome_sentences,
    seeds_note,
    term_sentences,
    token_sentence,
    translator_sentence,
)

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
    assert (
        "The 1,700 sentence pairs that the networks are trained on make a weak translator"
        in translator_sentence(result)
    )
    assert "`w5`, `w4` lean most on time; `w0`, `w1` lean least on time." in token_sentence(
        result, TASK, "AED", each=2
    )


def test_equal_rates_are_not_called_worse(result):
    rate = result.values[TASK]["AED"]["attention"]["full"]["error_rate"]
    result.values[TASK]["AED"]["references"]["diagonal"]["error_rate"] = dict(rate)
    assert "0.50 ± 0.10: the same in two digits as the diagonal (0.50 ± 0.10)" in alignment_sentences(result)


def test_what_is_trained_on_is_said_with_what_was_kept(result):
    text = translator_sentence(result)
    assert text.startswith(
        "Of the 20,000 sentence pairs of the file those of at most 40 words a side are kept. "
    )
    assert "that makes 1,700. The 1,700 sentence pairs" in text


def test_the_note_counts_networks_of_the_tasks_shown_alone(result):
    assert seeds_note(result) == "Networks of each kind: 3."
    other = {"AED": {"classes": {"predicted": {"word": {"no_residual": interval(0.5) | {"n": 7}}}}}}
    result.values["tokens"]["scan"] = other
    assert seeds_note(result, ["scan"]) == "Networks of each kind: 7."
    assert seeds_note(result, [TASK, "scan"]) == "Networks of each kind: Europarl De–En, 3; SCAN, 7."
    assert seeds_note(result, ["reversal"]) == ""


def on_the_dial(result, before, after):
    """A result with the ends of the dial in AED, where χ·χ alone finds so many words."""
    for task, found in (("reordering_0", before), ("reordering_100", after)):
        kind = alignment() | {"input_over_temporal": interval(-0.2), "rules": {}}
        kind["attention"] = kind["attention"] | {
            "input_only": dict.fromkeys(QUALITIES, interval(found, 0.01)),
            "full": dict.fromkeys(QUALITIES, interval(0.2, 0.01)),
        }
        kind["quality"] = kind["quality"] | {"token_accuracy": interval(0.99, 0.01)}
        result.values[task] = {"AED": kind}
    result.config["task"] = ["reordering_0", "reordering_100", TASK]
    return result


def test_more_along_the_dial_may_still_be_few(result):
    text = term_sentences(on_the_dial(result, 0.02, 0.1))
    assert (
        "it finds 0.02 ± 0.01 of the right words, with every one 0.10 ± 0.01: more, and yet one word in 10."
        in text
    )
    assert "There μ·μ alone finds 0.50 ± 0.10, more than χ·χ." in text
    assert (
        "Attention errs at 0.50 ± 0.10 (AED) and 0.50 ± 0.10 (AO) of the links, the diagonal at 0.70" in text
    )
    assert "better than it in AED and AO." in text
    assert "more, " not in term_sentences(on_the_dial(result, 0.1, 0.1))


def test_right_words_with_attention_elsewhere_are_named(result):
    named = "in reordering 100 %, AED, 0.99 ± 0.01 of the tokens are right, and 0.20 ± 0.01 of the largest"
    found = on_the_dial(result, 0.02, 0.1).values["reordering_100"]["AED"]
    assert named in term_sentences(result)
    found["quality"]["token_accuracy"] = interval(0.9, 0.01)  # has not learnt its task
    assert named not in term_sentences(result)


def test_what_would_change_our_mind_is_held_against_the_numbers(result):
    text = outcome_sentences(on_the_dial(result, 0.02, 0.1))
    assert (
        "is beaten wherever sentences are reordered; the smallest difference of error rates is 0.20 ± 0.10"
        in text
    )
    assert "does better than AED and AO on Europarl De–En, from 1,700 pairs" in text
    assert "Of full attention this has not happened." in text
    result.values["reordering_100"]["AED"]["better_than_diagonal"] = interval(0.05)
    assert "is not clearly beaten in reordering 100 %, AED (0.05 ± 0.10)" in outcome_sentences(result)


def test_links_that_are_better_by_the_word_read_are_named(result):
    def by(said, read):
        return {
            rule: {"error_rate": interval(rate, 0.01)} for rule, rate in (("words", said), ("read", read))
        }

    rates = {"full": by(0.02, 0.9), "temporal_only": by(0.7, 0.25), "input_only": by(0.9, 0.95)}
    found = result.values[TASK]["AED"]
    found["rules"] = {
        rule: {subset: both[rule] for subset, both in rates.items()} for rule in ("words", "read")
    }
    found["attention"]["full"] = {"error_rate": interval(0.02, 0.01)}
    text = outcome_sentences(result)
    assert (
        "Of full attention this has not happened. Of single terms it has: Europarl De–En, AED, μ·μ alone"
        in text
    )
    assert "(0.70 ± 0.01 by the word predicted, 0.25 ± 0.01 by the word read)." in text
    assert (
        "point one place early; residuals move attention on (by the word predicted 0.02 ± 0.01 with" in text
    )
    found["rules"]["read"]["full"] = {"error_rate": interval(0.01, 0.01)}
    assert "; in Europarl De–En, AED, it cannot be told (0.02" in outcome_sentences(result)
    found["rules"]["words"]["full"] = {"error_rate": interval(0.5, 0.01)}
    text = outcome_sentences(result)
    assert "Of full attention this has happened in Europarl De–En, AED (0.50" in text
    assert "not happened" not in text


def test_the_least_temporal_need_not_be_input_driven(result):
    def said(**shares):
        rows = [token("time", 0.9, 0.1), token("least", 0.01, 0.3) | shares]
        result.tables["tokens"] = rows
        return token_sentence(result, TASK, "AED")

    text = said(input_share=0.04, temporal_share=0.07, residual_share=0.82)
    assert "`time` lean most on time; `least` lean least on time." in text
    assert "(similarity 0.30 and 0.01, means over these tokens); it has 0.04 of the covariance" in text
    assert "yet not input-driven: terms with residuals have 0.82 of the covariance." in text
    text = said(input_share=0.01, temporal_share=0.59, residual_share=0.14, no_residual=0.64)
    assert (
        "only with the products of μ and χ do the terms without residuals rebuild them (similarity 0.64)"
        in text
    )
    assert "By similarity they are input-driven" in said(input_only=0.8, temporal_share=0.3)
    assert "Even of these μ·μ alone comes closer" in said(input_only=0.1, temporal_only=0.2)


def test_long_words_end_in_an_ellipsis(result):
    for row in result.tables["example"]:
        row["target"] = "intergovernmental"
    labels = example(result, TASK, "AED").get_axes()[0].get_yticklabels()
    assert labels[0].get_text() == "intergovernme…"
