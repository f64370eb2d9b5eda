"""Optimal attention in tiny trained networks, end to end: samples, measures, figures and sentences."""

from dataclasses import replace

import pytest
import torch

from attnlib.companion.sentences.optimal_answers import optimal_sentences, outcome_sentences
from attnlib.companion.sentences.optimal_attention import (
    counterexample_sentences,
    difference_sentence,
    identity_table,
    quality_table,
    unused_sentence,
    unused_table,
    which_sentences,
)
from attnlib.errors import BadInput
from attnlib.experiments import agreement
from attnlib.experiments import optimal_attention as experiment
from attnlib.experiments.measures.optimal_attention import measure_optimal_attention
from attnlib.experiments.measures.probe_identity import measure_probe_identity
from attnlib.experiments.measures.recorded_translation import (
    measure_translation,
    recorded_batches,
    recorded_probe,
)
from attnlib.experiments.optimal_attention import Config
from attnlib.experiments.run import run
from attnlib.plotting.optimal_attention import agreements, sentence_maps, triangle
from attnlib.plotting.style import as_images
from attnlib.recipes.translation import recorded_network
from attnlib.recipes.translation_data import load_pieces
from attnlib.tasks.corpus import collate
from attnlib.training.store import Store
from companion.data import labelled_sets, parallel

TINY = {
    "dataset": "known_lexicon", "texts": "known_polarity", "seeds": 2, "train_pairs": 0, "train_texts": 0,
    "validation_texts": 0, "width": 16, "steps": 51, "n_validation": 12, "samples": 5, "classifier_width": 4,
    "classifier_steps": 11,
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A tiny result, and the store with its networks."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLIB_CACHE", str(folder / "cache"))
        result = run("optimal_attention", out=folder, models=folder / "models", overrides=TINY)
        yield result, Store(folder / "models", trains=False)


def translator(store, form, seed=0):
    return store.recording(experiment._translators(Config(**TINY), form)[seed])


@torch.no_grad()
def test_batches_from_a_recording_are_those_of_the_data(made):
    recording = translator(made[1], "summed")
    data = load_pieces(recording.spec.resolved)
    seen = []
    for batch in recorded_batches(recording, 0, together=5):
        ours = collate(data.validation, batch.indices.tolist())
        for name in ("source", "source_mask", "target_mask", "target_output"):
            assert getattr(batch, name).equal(getattr(ours, name)), name
        assert batch.target_input[batch.target_mask].equal(ours.target_input[ours.target_mask])
        network = recorded_network(recording.spec.resolved, recording.tensors)
        alone = recorded_probe(recording, batch)[:, :, 0]  # β of the first position, by the context itself
        first = network.readout.from_context(network(batch).encoder_states[:, :1])
        again = network.readout.logits(
            first + network.readout.from_decoder(network(batch).decoder_states)
        ).log_softmax(-1)
        again = again.gather(-1, batch.target_output[..., None])[..., 0]
        torch.testing.assert_close(alone[batch.target_mask], again[batch.target_mask])
        seen += batch.indices.tolist()
    assert sorted(seen) == list(range(12))
    assert sum(len(batch) for batch in recorded_batches(recording, 5)) == 5
    with pytest.raises(BadInput, match="-1 samples"):
        next(recorded_batches(recording, -1))


def test_what_is_measured_fits_together(made):
    summed, other = (translator(made[1], "summed", seed) for seed in (0, 1))
    found = measure_optimal_attention(summed, other, samples=0)
    quality = measure_translation(summed)
    words = int(summed["validation.target_mask"].sum())
    assert (found["words"], found["samples"]) == (words, 12)
    assert found["log_likelihood"]["learned"] == pytest.approx(-quality["loss"], rel=1e-5)
    assert found["agreement"]["learned_probe"] == pytest.approx(quality["learned_probe"], abs=1.5 / words)
    assert found["agreement"]["chance"] == pytest.approx(quality["chance"])
    likelihood = found["log_likelihood"]
    assert likelihood["optimal"] > max(likelihood[name] for name in ("learned", "uniform", "largest_probe"))
    assert found["residual"] < 1e-6
    assert measure_optimal_attention(summed, samples=3)["samples"] == 3
    main = translator(made[1], "joined")
    own = measure_optimal_attention(summed, summed, main, samples=0)["agreement"]
    assert own["optimal_other_probe"] == pytest.approx(own["optimal_probe"], abs=1.5 / words)
    assert "optimal_main_probe" not in found["agreement"]
    assert 0 <= own["optimal_main_probe"] < own["optimal_other_probe"]
    assert measure_probe_identity(summed, samples=0)["all_words"]["largest"] < 1e-10
    with pytest.raises(BadInput, match="'joined'"):
        measure_optimal_attention(translator(made[1], "joined"), samples=0)


def test_the_result_is_drawn_and_told(made):
    result, _ = made
    assert as_images(triangle())[0].startswith("<?xml")
    left, right = agreements(result).axes
    assert sum(line.get_marker() == "o" for line in left.lines) == 6
    assert sum(line.get_marker() == "o" for line in right.lines) == 4
    if result.tables["example"]:
        source = {row["source_position"] for row in result.tables["example"]}
        first = sentence_maps(result).axes[0]
        assert len(first.get_xticks()) == len(source)
    assert optimal_sentences(result).count("\n") == 6
    outcomes = outcome_sentences(result)
    assert outcomes.count("this point has not happened") == 3
    off = result.values | {"classifier": result.values["classifier"] | {"deviation": 0.1}}
    assert "classifiers: this point has happened" in outcome_sentences(replace(result, values=off))
    unknown = result.values | {"classifier": result.values["classifier"] | {"deviation": None}}
    assert outcome_sentences(replace(result, values=unknown)).endswith("classifiers: undecided.")
    assert "0.859" in counterexample_sentences(result)
    assert len(quality_table(result)) == 2
    assert "published" not in quality_table(result)
    assert "translate known lexicon: trained on all of its pairs, looked at on 12 others" in which_sentences(
        result
    )
    of_a_part = replace(result, values=result.values | {"data": {"translation": "multi30k_en_de"}})
    assert "published" not in quality_table(of_a_part)
    of_the_paper = replace(of_a_part, config=result.config | {"n_validation": 0})
    assert quality_table(of_the_paper)["published"].tolist() == ["38.2", "37.9"]
    assert "published" not in difference_sentence(result)
    for ends, words in (
        ((-2.6, -0.2), "the other one"),
        ((-2.6, 0.1), "undecided"),
        ((0.1, 0.9), "published one"),
    ):
        bleu = {"value": sum(ends) / 2, "low": ends[0], "high": ends[1], "n": 3}
        own = of_the_paper.values | {"difference": {"bleu": bleu}}
        assert words in difference_sentence(replace(of_the_paper, values=own))
    assert "53 %" in optimal_sentences(of_the_paper)
    assert "53 %" not in optimal_sentences(result)
    near = of_the_paper.values["summed"]["agreement"] | {
        "optimal_other_probe": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 2},
        "optimal_probe": {"value": 0.9, "low": 0.8, "high": 1.0, "n": 2},
        "optimal_main_probe": {"value": 0.4, "low": 0.35, "high": 0.45, "n": 2},
    }
    values = of_the_paper.values | {"summed": of_the_paper.values["summed"] | {"agreement": near}}
    words = optimal_sentences(replace(of_the_paper, values=values))
    assert "as these intervals reach: it is within reach with that of another run." in words
    single = {name: one | {"low": None, "high": None, "n": 1} for name, one in near.items()}
    values = of_the_paper.values | {"summed": of_the_paper.values["summed"] | {"agreement": single}}
    assert "The published" not in optimal_sentences(replace(of_the_paper, values=values))
    assert identity_table(result)["largest (nats)"].iloc[0].startswith("below 1e−")
    assert len(unused_table(result)) == len(result.tables["unused"])
    assert unused_sentence(result).startswith("The word" if result.tables["unused"] else "No word")


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_classifiers_and_main_models_are_those_of_the_agreement_tables(profile, monkeypatch):
    """All but the one seed more that the quick profile has here."""
    monkeypatch.setattr(parallel, "at_hand", lambda name: True)
    monkeypatch.setattr(labelled_sets, "at_hand", lambda name: True)
    theirs = agreement.models(agreement.PROFILES[profile])
    ours = experiment.models(experiment.PROFILES[profile])
    lacking = [spec.seed for spec in ours if spec not in theirs and ("form", "summed") not in spec.settings]
    assert lacking == ([2] if profile == "quick" else [])


def test_sets_made_by_rule_stand_in_for_those_that_are_not_at_hand(monkeypatch):
    monkeypatch.setattr(parallel, "at_hand", lambda name: name == "known_lexicon")
    monkeypatch.setattr(labelled_sets, "at_hand", lambda name: name == "known_polarity")
    assert experiment.data_of(Config()) == experiment.BY_RULE
    usual = {"translation": "multi30k_en_de", "classification": "sst"}
    assert experiment.data_of(Config(absent="stop")) == usual
    chosen = {
        "translation": "iwslt14_de_en",
        "classification": "my.tsv",
    }  # a reader's own choice is no other set
    assert experiment.data_of(Config(dataset="iwslt14_de_en", texts="my.tsv")) == chosen
    specs = experiment._translators(Config(), "joined")
    assert [dict(spec.settings)["dataset"] for spec in specs] == 3 * ["known_lexicon"]
