"""Figures of readout and of temporal formation, drawn from small results."""

import pytest

from attnlib.companion.sentences.readout import (
    dictionary_sentence,
    falsifier_sentence,
    readout_sentences,
    words_table,
)
from attnlib.companion.sentences.temporal_formation import (
    longer_sentences,
    offset_sentences,
    position_sentence,
    wordless_sentences,
)
from attnlib.experiments.measures.offsets import OFFSETS
from attnlib.experiments.measures.readout import ABLATIONS, PATHS
from attnlib.experiments.result import Result
from attnlib.plotting import readout, temporal_formation
from attnlib.plotting.style import PART_COLOURS

PARTS = ("temporal", "input", "residual")


def interval(value):
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 3}


UNDEFINED = {"value": None, "low": None, "high": None, "n": 0}


@pytest.fixture
def read_out() -> Result:
    accuracy = {name: interval(0.5) for name in ABLATIONS} | {"full": interval(0.9)}
    accuracy |= {"context_only_input": interval(0.8), "context_only_residual": UNDEFINED | {"value": 0.1}}
    shares = {f"{path}_{part}": interval(0.2) for path in PATHS for part in PARTS} | {"bias": interval(0.1)}
    kind = {
        "accuracy": {"zero": accuracy, "mean": accuracy},
        "lost": {name: interval(0.05) for name in ABLATIONS} | {"context_without_input": interval(0.6)},
        "chance": 0.25,
        "margin_share": shares,
        "margin_covariance": shares,
        "dictionary": {"accuracy": interval(1.0), "words": 3},
    }
    row = {"task": "scan", "kind": "AO", "seed": 0, "table": "dictionary"}
    words = [row | {"token": "left", "top": "I_TURN_LEFT I_RUN", "expected": "I_TURN_LEFT", "count": 5}]
    values = {"scan": {"AED": kind, "AO": kind}}
    rows = [
        {
            "task": "scan",
            "kind": k,
            "seed": seed,
            "ablation": name,
            "zero": accuracy[name]["value"] + 0.01 * seed,
        }
        for k in ("AED", "AO")
        for seed in range(3)
        for name in ABLATIONS
    ]
    tables = {"words": words, "accuracy": rows}
    return Result("readout", "quick", {"task": ["scan"], "seeds": 3}, values, tables, {}, {})


@pytest.fixture
def formed() -> Result:
    compared = {name: interval(0.7) for name in ("r2", "r2_centred", "cosine")}
    inputs = dict.fromkeys(("null", "average", "average_by_position"), compared)
    agreed = {name: interval(0.6) for name in ("similarity", "argmax_agreement", "accuracy")}
    ways = dict.fromkeys(("alone", "both", "encoder", "decoder"), agreed)
    rebuilt = dict.fromkeys((*inputs, "constant"), ways) | {"temporal": {"alone": agreed}}

    def offsets(sign):
        by = {
            f"by_{k}": {"expected": interval(sign * k), "largest": interval(sign * 0.5 * k)} for k in OFFSETS
        }
        return by | {"slope": interval(0.5)}

    both = {"by_5": {"similarity": interval(0.8)}}
    lengths = {key: interval(0.9) for key in ("word_accuracy", "in_place", "length")} | {"leaves": UNDEFINED}
    kind = {
        "token_accuracy": interval(1.0),
        "attention": {key: interval(0.9) for key in ("in_place", "temporal_share", "input_share")},
        "wordless": {"encoder": inputs, "decoder": inputs},
        "rebuilt": rebuilt,
        "offsets": {"encoder": offsets(-1), "decoder": offsets(1), "both": both},
        "longer": {"times_1": lengths, "times_2": lengths},
        "temporal_variance": {"encoder": {"words": interval(0.3)}},
    }
    recurrent = kind | {
        "offsets": kind["offsets"]
        | {f"{side}_{way}": offsets(1) for side in ("encoder", "decoder") for way in ("null", "words")}
    }
    name = {"task": "one_to_one"}
    courses = [
        name | {"kind": "AO", "side": side, "course": course, "position": t, "first": t, "second": -t}
        for side in ("decoder", "encoder")
        for course in temporal_formation.COURSES
        for t in range(3)
    ]
    positions = [
        name | {"kind": "AO", "position": t, "trained_up_to": 2}
        | {f"{c}{end}": 0.5 for c in ("in_place", "temporal_in_place") for end in ("", "_low", "_high")}
        for t in range(4)
    ]  # fmt: skip
    values = {"one_to_one": {"AED": recurrent, "AO": kind, "AO-none": kind}}
    config = {"task": ["one_to_one"], "seeds": 3}
    return Result(
        "temporal_formation", "quick", config, values, {"courses": courses, "positions": positions}, {}, {}
    )


@pytest.mark.parametrize(
    "draw", [readout.accuracy_by_part, readout.alone, readout.zero_or_mean, readout.margin_shares]
)
def test_readout_figures_have_labels_rows_and_intervals(read_out, draw):
    axes = draw(read_out).get_axes()
    assert all(panel.get_xlabel() for panel in axes)
    assert [label.get_text() for label in axes[0].get_yticklabels()][::-1] == ["SCAN, AED", "SCAN, AO"]
    bars = [line for line in axes[0].get_lines() if len(line.get_xdata()) == 2 and line.get_lw() == 1.3]
    assert bars
    assert {line.get_color() for panel in axes for line in panel.get_lines()} & set(PART_COLOURS.values())


@pytest.mark.parametrize("draw", ["agreement", "rebuilt", "positions"])
def test_rows_of_formation_have_labels_and_intervals(formed, draw):
    axes = getattr(temporal_formation, draw)(formed).get_axes()
    assert all(panel.get_xlabel() for panel in axes)
    assert len(axes[0].get_yticklabels()) == 3
    assert any(line.get_lw() == 1.3 for line in axes[0].get_lines())


def test_courses_show_the_encoder_first(formed):
    figure = temporal_formation.courses(formed, "one_to_one")
    assert [axes.get_title() for axes in figure.get_axes()] == ["AO, encoder", "AO, decoder"]
    assert "0" in [text.get_text() for text in figure.get_axes()[0].texts]


@pytest.mark.parametrize("draw", ["displacements", "beyond"])
def test_panels_of_kinds_have_titles_and_a_line_for_each_condition(formed, draw):
    figure = getattr(temporal_formation, draw)(formed, "one_to_one")
    shown = [axes for axes in figure.get_axes() if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == ["AED", "AO", "AO-none"]
    assert figure.get_supxlabel().endswith("one-to-one")
    if draw == "displacements":
        (blue,) = [line for line in shown[1].get_lines() if line.get_marker() == "o"]
        assert blue.get_ydata()[0] == pytest.approx(-2.5)
    else:
        assert shown[0].texts[0].get_text() == "lengths are fixed"


def test_sentences_are_made_of_the_numbers(read_out, formed):
    text = readout_sentences(read_out)
    assert "SCAN, AO: 0.90 ± 0.10 of the tokens are right" in text
    assert "the input components alone leave 0.80 ± 0.10, more than either other part; dropping" in text
    assert "dropping the input components costs most (0.60 ± 0.10)" in text
    assert words_table(read_out, "dictionary", "scan", "AO").loc["left", "translation"] == "I_TURN_LEFT"
    assert words_table(read_out, "followers", "scan", "AO").empty
    assert "0.70 ± 0.10 of the variance" in wordless_sentences(formed)
    assert offset_sentences(formed).count("with words in place") == 1
    assert "attention never leaves its place" in longer_sentences(formed)
    assert "without any 1.00 ± 0.10" in position_sentence(formed)


def test_a_part_leaves_more_only_where_the_networks_agree(read_out):
    rows = {(r["seed"], r["ablation"]): r for r in read_out.tables["accuracy"] if r["kind"] == "AO"}
    for seed, more in enumerate((0.3, 0.1, -0.1)):  # by network: 0.1 ± 0.5 over the temporal part
        rows[seed, "context_only_temporal"]["zero"] = rows[seed, "context_only_input"]["zero"] - more
    one, other = readout_sentences(read_out).split("\n")
    assert "more than either other part" in one
    assert "though the temporal ones (0.50 ± 0.10) cannot be told apart from them; dropping" in other


def test_the_dictionary_names_its_words_and_where_they_are_known_from(read_out):
    read_out.config["task"] = ["scan", "multi30k_en_fr"]
    kind = {"dictionary": {"words": 1_234}}
    read_out.values["multi30k_en_fr"] = {"AED": kind, "AO": kind}
    assert dictionary_sentence(read_out) == (
        "Words judged: 3 of SCAN (the grammar); "
        "1,234 of Multi30k En–Fr (co-occurrence in the training sentences)."
    )


@pytest.mark.parametrize(
    ("lost", "right", "said"),
    [
        (0.05, 1.0, "It cannot be told in SCAN, AED"),  # 0.05 ± 0.1: more than a tenth, or not
        (0.3, 1.0, "has happened in SCAN, AED (one part of the context kept: input 0.80 [0.70, 0.90]"),
        (0.3, 0.9, "has not happened."),  # a word is wrong in the dictionary
        (-0.2, 1.0, "has not happened."),
    ],
)
def test_a_right_dictionary_beside_lost_words_is_told(read_out, lost, right, said):
    for found in read_out.values["scan"].values():
        found["lost"]["context_only_input"] = interval(lost)
        found["dictionary"]["accuracy"] = interval(right)
    assert said in falsifier_sentence(read_out)
