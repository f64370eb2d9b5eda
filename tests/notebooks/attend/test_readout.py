"""The readout taken apart: parts that sum to the network's own logits, and words found by hand."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.plots.style import PART_COLOURS
from attnlib.training.corpus import Corpus, Task
from attnlib.training.evaluate import evaluate, traces
from attnlib.training.vocabulary import BOS, EOS, Vocabulary
from companion.data.registry import load
from companion.results.config import override
from companion.results.result import Result
from companion.results.run import run
from companion.runs.store import Store
from notebooks.attend.readout import drawing
from notebooks.attend.readout.experiment import PROFILES, asks
from notebooks.attend.readout.measure import (
    ABLATIONS,
    ALL,
    NONE,
    PATHS,
    Margins,
    ablated,
    chance,
    followers,
    judged,
    logit_parts,
    mean_state,
    measure_readout,
    translations,
)
from notebooks.attend.readout.sentences import (
    dictionary_sentence,
    falsifier_sentence,
    readout_sentences,
    words_table,
)
from notebooks.attend.temporal_formation import drawing as temporal_formation
from notebooks.attend.temporal_formation.measure import OFFSETS
from notebooks.attend.temporal_formation.sentences import (
    longer_sentences,
    offset_sentences,
    position_sentence,
    wordless_sentences,
)
from notebooks.shared.measure import fit_components

TINY = {"task": "one_to_one", "seeds": 1, "width": 8, "steps": 3, "fit_samples": 100}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module", params=["AED", "AO"])
def trained(request, models):
    config = override(PROFILES["quick"], TINY | {"architecture": request.param})
    return Store(models).model(asks(config)[0].spec)


def test_parts_and_bias_sum_to_the_logits(trained):
    fitted = fit_components(trained, 100)
    weights = trained.model.readout.weight.detach().split(8, dim=1)
    trace = next(traces(trained.model, trained.task.held_out, batch_size=16))
    parts = logit_parts(fitted, trace, weights)
    total = ablated(parts, (ALL, ALL)) + trained.model.readout.bias.detach()
    torch.testing.assert_close(total, trace.logits[trace.target_mask], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ablated(parts, (NONE, frozenset({"input"}))), parts[1, 1])


def test_whole_network_is_as_accurate_as_evaluation_says_and_nothing_is_undefined(trained):
    found = measure_readout(trained, 100)
    expected = evaluate(trained.model, trained.task.held_out)["token_accuracy"]
    assert found["accuracy"]["zero"]["full"] == pytest.approx(expected, abs=1e-6)
    assert found["accuracy"]["mean"]["full"] == found["accuracy"]["zero"]["full"]
    assert set(found["accuracy"]["zero"]) == set(ABLATIONS)
    for share in ("margin_share", "margin_covariance", "logit_share"):
        assert sum(found[share].values()) == pytest.approx(1, abs=1e-4)


def test_mean_replacement_is_the_mean_state_where_the_temporal_part_goes_and_nothing_elsewhere(trained):
    network = copy.deepcopy(trained.model)
    torch.nn.init.normal_(network.readout.weight, std=3, generator=torch.Generator().manual_seed(0))
    decided = replace(trained, model=network)  # its words differ from row to row, after three updates too
    found = measure_readout(decided, 100)["accuracy"]
    kept_it = [name for name, kept in ABLATIONS.items() if all("temporal" in side for side in kept)]
    assert kept_it
    assert all(found["zero"][name] == found["mean"][name] for name in kept_it)

    mean, right, rows = mean_state(fit_components(decided, 100).encoder).float(), 0, 0
    for trace in traces(network, trained.task.held_out):
        features = torch.cat([trace.decoder_states, mean.expand_as(trace.decoder_states)], dim=-1)
        right += int((network.readout(features).argmax(-1) == trace.target_outputs)[trace.target_mask].sum())
        rows += int(trace.target_mask.sum())
    assert found["mean"]["context_none"] == pytest.approx(right / rows, abs=1e-4)


def test_input_and_residual_parts_have_mean_zero_so_the_mean_state_is_that_of_the_temporal_part(trained):
    fitted = fit_components(trained, 100)
    states = [
        trace.encoder_states[trace.source_mask].double()
        for trace in traces(trained.model, trained.task.train.subset(np.arange(100)))
    ]
    torch.testing.assert_close(mean_state(fitted.encoder), torch.cat(states).mean(0), atol=1e-6, rtol=1e-5)


def test_margins_of_a_hand_worked_row():
    outputs = torch.tensor([2, 4, 5])
    parts = torch.zeros(2, 3, 1, 6)
    parts[1, 1, 0, 4] = 3.0  # the context's input part votes for word 4
    parts[0, 0, 0, 5] = -3.0  # the decoder's temporal part against word 5
    margins = Margins(outputs)
    margins.update(parts, torch.zeros(6), torch.tensor([4]))
    found = margins.result()
    # Centred over three words: 3 − 1 = 2 from the one, 0 + 1 = 1 from the other.
    assert found["mean_margin"] == pytest.approx(3)
    assert found["margin_share"]["context_input"] == pytest.approx(2 / 3)
    assert found["margin_share"]["decoder_temporal"] == pytest.approx(1 / 3)


def test_chance_is_the_most_frequent_output_of_training():
    corpus = Corpus.from_ids([[4], [5]], [[4, 4, 5], [4, 5, 5]])
    one = Corpus.from_ids([[4]], [[4, 5]])
    vocabulary = Vocabulary.of("ab")
    # In training both words stand three times and the end mark twice; of equal ones the first counts.
    assert chance(Task("t", vocabulary, vocabulary, corpus, one)) == {
        "all": pytest.approx(1 / 3, abs=1e-6),
        "words": pytest.approx(1 / 2),
    }


def test_translations_come_from_links_grammar_or_co_occurrence():
    found, known_from = translations(load("reversal", n_train=20, n_held_out=20))
    assert (found, known_from) == ({4: 4, 5: 5, 6: 6}, "gold")
    scan = load("scan", n_train=20)
    found, known_from = translations(scan)
    word = dict(zip(scan.source_vocabulary.words, range(100), strict=False))
    assert known_from == "grammar"
    assert scan.target_vocabulary.words[found[word["left"]]] == "I_TURN_LEFT"
    assert word["twice"] not in found
    corpus = Corpus.from_ids([[4, 5], [4, 6], [5]], [[6, 5], [6, 4], [5]])
    text = Task("text", Vocabulary.of("abc"), Vocabulary.of("abc"), corpus, corpus)
    assert translations(text) == ({4: 6, 5: 5, 6: 4}, "dice")
    english = Vocabulary.of([*scan.source_vocabulary.words[4:], "dog"])  # text with all of SCAN's words
    text = Task("text", english, Vocabulary.of("abc"), corpus, corpus)
    assert translations(text)[1] == "dice"


def test_followers_and_judgement_by_hand():
    corpus = Corpus.from_ids([[4], [4]], [[4, 5], [4, 5]])
    assert followers(corpus) == {BOS: 4, 4: 5, 5: EOS}
    logits = torch.zeros(6, 6)
    logits[4, 5], logits[5, 0], logits[5, 4] = 1.0, 9.0, 1.0  # id 0 is never said, so it does not compete
    names = (tuple("......"), tuple("abcdef"))
    found = judged(
        logits, {4: 5, 5: 2, 3: 4}, torch.tensor([0, 0, 0, 0, 3, 1]), torch.tensor([2, 4, 5]), names
    )
    assert (found["words"], found["accuracy"], found["frequency_weighted"]) == (2, 0.5, 0.75)
    assert found["listed"][0]["top"][0] == "f"
    assert found["listed"][1]["top"][0] == "e"


def test_the_experiment_gives_values_and_tables(tmp_path, models):
    result = run("readout", out=tmp_path, models=models, overrides=TINY)
    assert set(result.values["one_to_one"]) == {"AED", "AO"}
    for found in result.values["one_to_one"].values():
        full, gone = (found["accuracy"]["zero"][name]["value"] for name in ("full", "context_none"))
        assert found["lost"]["context_none"]["value"] == pytest.approx(full - gone, abs=1e-5)
        assert found["above_chance"]["full"]["value"] == pytest.approx(full - found["chance"], abs=1e-5)
    assert {row["ablation"] for row in result.tables["accuracy"]} == set(ABLATIONS)
    assert result.tables["words"]


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ({"architecture": "VED"}, UnknownName, "VED"),
        ({"task": "one_to_won"}, UnknownName, "one_to_one"),
        ({"fit_samples": 0}, BadInput, "at least 1"),
        ({"width": 7}, BadInput, "odd"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(setting, error, message):
    with pytest.raises(error, match=message):
        override(PROFILES["quick"], setting)


def test_a_word_never_said_in_training_has_no_margin():
    margins = Margins(torch.tensor([2, 4]))
    margins.update(torch.ones(2, 3, 2, 6), torch.zeros(6), torch.tensor([4, 5]))
    assert margins.rows == 1


# Figures of readout and of temporal formation, drawn from small results.

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
    "draw", [drawing.accuracy_by_part, drawing.alone, drawing.zero_or_mean, drawing.margin_shares]
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
