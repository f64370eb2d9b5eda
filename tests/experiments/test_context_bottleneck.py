"""The bottleneck's numbers by hand, its experiment on tiny networks, and the recipe behind it."""

import math

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.config import override
from attnlib.experiments.context_bottleneck import PROFILES, Config, capacity, compute, models, quarter, slope
from attnlib.experiments.measures.by_length import exact_matches, measure_by_length, measure_summary_bits
from attnlib.recipes.recipe import RecipeSpec
from attnlib.recipes.sequence_course import judged_samples
from attnlib.tasks.vocabulary import EOS, PAD
from attnlib.training.store import Store

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


def test_the_probe_reads_the_one_vector_position_by_position(recording):
    found = measure_summary_bits(recording, length=3, samples=80)
    assert len(found["bits"]) == 3
    assert max(found["bits"]) < math.log2(10)


def test_values_and_tables_have_every_kind(store):
    values, tables = compute(TINY, store)
    assert set(values["initial"]) == {"width_6", "width_8"}
    assert values["widest"]["attention"] == values["attention"]["width_8"]
    assert values["attention_gains"]["n"] == values["wider"]["initial"]["n"] == 2
    assert {(row["link"], row["width"]) for row in tables["lengths"]} == {
        (link, width) for link in ("initial", "attention") for width in (6, 8)
    }
    assert {row["link"] for row in tables["probe"]} == {"initial"}
    assert len(tables["probe"]) == 2 * (3 + 4)


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
    assert "attnlib.tasks.one_to_one" in one.modules
    assert one.key != RecipeSpec.of("recurrent_sequences", options=options[:1]).key


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
