"""The bottleneck's numbers by hand, its experiment on tiny networks, and the recipe behind it."""

import math

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.training.vocabulary import EOS, PAD
from companion.data import registry
from companion.results.config import override
from companion.runs.keys import model_key
from companion.runs.recipe import RecipeSpec
from companion.runs.sequence_course import judged_samples
from companion.runs.store import Store
from notebooks.primer.context_bottleneck.experiment import (
    PROFILES,
    Config,
    asks,
    capacity,
    compute,
    middle,
    models,
    quarter,
    slope,
)
from notebooks.shared.measure import exact_matches, measure_by_length, measure_summary_bits

TINY = Config(width=(6, 8), seeds=2, longest=5, probed=(3, 4), n_train=300, judged=60, steps=4, samples=80)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    torch.set_num_threads(1)
    return Store(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def recording(store):
    return store.recording(models(TINY)[0])


def test_a_shared_capacity_has_slope_minus_one_and_a_word_of_its_own_zero():
    lengths = list(range(4, 20))
    shared = {"lengths": lengths, "bits_of_word": [18 / n for n in lengths], "bits": [18.0] * 16}
    own = {"lengths": lengths, "bits_of_word": [3.0] * 16, "bits": [3.0 * n for n in lengths]}
    assert slope(shared) == pytest.approx(-1)
    assert slope(own) == pytest.approx(0)
    assert capacity(shared) == pytest.approx(18)
    assert capacity(own) == pytest.approx(3 * 18)  # mean of the three longest, 17, 18 and 19 words
    assert slope(shared | {"bits_of_word": [1.0] * 15 + [-0.1]}) is None
    assert quarter({"x": [1.0, 2.0, 3.0, 4.0, 5.0]}, "x", last=True) == 5


def test_bits_are_what_is_left_of_the_words_surprise(recording):
    """Against a loop over samples and positions."""
    found, judged = measure_by_length(recording), judged_samples(recording.spec.resolved)
    assert found["vocabulary"] == 10
    place = found["lengths"].index(4)
    rows = [i for i in range(len(judged)) if len(judged.target(i)) == 4]
    bits, right = [], []
    for i in rows:
        losses = recording["loss"][-1, i, :4].tolist()
        bits.append(sum(math.log2(10) - loss / math.log(2) for loss in losses))
        right += recording["right"][-1, i, :4].tolist()
    assert found["bits"][place] == pytest.approx(np.mean(bits))
    assert found["bits_of_word"][place] == pytest.approx(np.mean(bits) / 4)
    assert found["token_accuracy"][place] == pytest.approx(np.mean(right))
    assert found["samples"][place] == len(rows)


def test_an_exact_match_has_every_word_and_the_end_mark(recording):
    judged = judged_samples(recording.spec.resolved)
    longest = int(judged.target_lengths.max()) + 1
    written = torch.full((len(judged), longest + 1), PAD, dtype=torch.int32)
    for i in range(len(judged)):
        words = [*judged.target(i).tolist(), EOS]
        written[i, : len(words)] = torch.tensor(words)
    written[1, 0] += 1  # a wrong word
    written[2, int((written[2] != PAD).sum()) - 1] = PAD  # no end mark
    changed = type(recording)(recording.spec, dict(recording.tensors) | {"written": written}, {})
    assert np.flatnonzero(~exact_matches(changed, judged)).tolist() == [1, 2]


@pytest.mark.parametrize("samples", [80, 2_000])
def test_the_probe_reads_the_one_vector_position_by_position(recording, samples):
    """Of a thousand sentences of three words at most a quarter is kept to judge, and enough to fit on."""
    found = measure_summary_bits(recording, length=3, samples=samples)
    assert len(found["bits"]) == 3
    assert max(found["bits"]) < math.log2(10)


class ByHand:
    """Made measurements: one vector loses words with length, attention hardly; more samples read more."""

    def kept(self, spec, measure, *, length=None, samples=None):
        seed, attends = spec.resolved.seed, spec.resolved.link == "attention"
        if measure is measure_summary_bits:
            bits = [3.0 if samples == 80 else 2.0, 1.0, 0.5, 0.5, 0.25]
            return {"bits": [own + seed for own in bits], "length": 5, "vocabulary": 10}
        exact = [1.0, 0.9, 0.75] if attends else [0.5, 0.25, 0.125]
        return {
            "lengths": [3, 4, 5],
            "token_accuracy": [1.0, 0.9, 0.9] if attends else [0.9, 0.6, 0.4],
            "exact_match": [share - 0.125 * seed for share in exact],
            "bits": [9.0, 8.0, 6.0 + 3 * seed + spec.resolved.width],
            "bits_of_word": [3.0, 2.0, 1.5],
            "parameters": 7,
        }


def test_signs_of_what_the_claims_read():
    config = Config(width=(6, 8), seeds=2, longest=5, probed=(5,), samples=80)
    values, tables = compute(config, ByHand())
    assert values["widest"]["initial"]["falls"]["value"] == pytest.approx(0.5)
    assert values["widest"]["attention"]["falls"]["value"] == pytest.approx(0.1)
    assert values["widest"]["initial"]["slope"]["value"] < 0
    assert values["widest"]["attention"] == values["attention"]["width_8"]
    assert {(row["link"], row["width"]) for row in tables["lengths"]} == {
        (link, width) for link in ("initial", "attention") for width in (6, 8)
    }
    assert {(row["link"], row["position"]) for row in tables["probe"]} == {("initial", p) for p in range(5)}
    gains = values["attention_gains"]  # seeds take the same from both
    assert (gains["value"], gains["low"]) == (pytest.approx(0.625), pytest.approx(0.625))
    assert values["wider"]["initial"]["value"] == pytest.approx(2 / 3)
    read = values["read"]["initial"]
    assert read["together"]["value"] == pytest.approx(5.25 + 2.5)
    assert (read["more"]["value"], read["more"]["low"]) == (pytest.approx(1), pytest.approx(1))
    middle_half = (1.0 + 0.5 + 0.5) / 3
    assert read["first_over_middle"]["value"] == pytest.approx(3 - middle_half)
    assert read["last_over_middle"]["value"] == pytest.approx(0.25 - middle_half)
    assert read["decoder_over_probe"]["value"] == pytest.approx((14 + 17) / 2 - 7.75)
    assert middle([9.0, 1.0, 2.0, 9.0]) == pytest.approx(1.5)


def test_half_the_samples_are_for_the_widest_vectors_and_longest_sentences_alone():
    config = Config(width=(6, 8), seeds=1, probed=(4, 5), samples=80)
    halved = [a for a in asks(config) if dict(a.settings).get("samples") == 40]
    assert {(a.spec.resolved.link, a.spec.resolved.width) for a in halved} == {("initial", 8)}
    assert {dict(a.settings)["length"] for a in halved} == {5}


def test_one_width_has_none_that_is_wider():
    config = Config(width=(6,), seeds=2, longest=5, probed=(5,), samples=80)
    assert compute(config, ByHand())[0]["wider"] == {}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"link": "atention"}, UnknownName, "did you mean 'attention'"),
        ({"cell": "vanilla"}, UnknownName, "no cell 'vanilla'"),
        ({"shortest": 9, "longest": 8}, BadInput, "shortest ≤ longest"),
        ({"shortest": 2}, BadInput, "give 3 or more"),
        ({"steps": 0}, BadInput, "steps is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        override(PROFILES["quick"], given)


def test_a_run_does_not_depend_on_the_order_of_the_tasks_options():
    options = (("n_words", 5), ("max_length", 16))
    one, other = (RecipeSpec.of("recurrent_sequences", options=own) for own in (options, options[::-1]))
    assert one == other
    assert RecipeSpec.from_json(one.to_json()) == one
    assert registry.builder("one_to_one") in one.roots
    assert model_key(one) != model_key(RecipeSpec.of("recurrent_sequences", options=options[:1]))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"scoring": "dott"}, UnknownName, "did you mean 'dot'"),
        ({"source": "a.en"}, BadInput, "source and target go together"),
        ({"steps": 0}, BadInput, "steps is 0"),
    ],
)
def test_a_run_that_cannot_be_is_refused(settings, error, message):
    with pytest.raises(error, match=message):
        RecipeSpec.of("recurrent_sequences", **settings)
