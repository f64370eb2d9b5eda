"""Networks without attention: a network whose memory is known by hand, and the experiment on tiny models."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import MARKS
from companion.runs.store import TrainedModel
from notebooks.attend.without_attention import experiment
from notebooks.attend.without_attention.experiment import one_length
from notebooks.shared.tasks.synthetic import one_to_one
from notebooks.shared.unrolled import UnrolledComponents
from tests.attnlib.refusals import assert_refused
from tests.notebooks.figure_builders import Given

LENGTH, WORDS = 3, 4


class Queue(torch.nn.Module):
    """Keeps word t in block t of its state and says block s at step s; reading words changes nothing."""

    def __init__(self):
        super().__init__()
        self.readout = torch.nn.Linear(1, 1)  # only its device is asked for

    def encode(self, source, source_mask):
        words = torch.nn.functional.one_hot(source[:, :LENGTH] - len(MARKS), WORDS).float()
        states = torch.zeros(len(source), LENGTH + 1, LENGTH * WORDS)
        for t in range(LENGTH):
            states[:, t:, t * WORDS : (t + 1) * WORDS] = words[:, t : t + 1]
        return states, states[:, -1]

    def decode(self, target_input, start):
        return start[:, None].expand(-1, target_input.shape[1], -1)

    def attend(self, batch, encoder_states, decoder_states):
        logits = torch.zeros(*decoder_states.shape[:2], WORDS + len(MARKS))
        for s in range(LENGTH):
            logits[:, s, len(MARKS) :] = 9 * decoder_states[:, s, s * WORDS : (s + 1) * WORDS]
        logits[:, LENGTH, 2] = 9  # the end mark
        return type("Trace", (), {"logits": logits})()

    def forward(self, batch):
        return self.attend(batch, None, self.decode(batch.target_input, self.encode(batch.source, None)[1]))


@pytest.fixture(scope="module")
def queue():
    task = one_to_one(n_words=WORDS, min_length=LENGTH, max_length=LENGTH, n_train=300, n_held_out=20)
    return TrainedModel(None, task, Queue(), {"held_out": {"token_accuracy": 1.0, "exact_match": 1.0}})


@pytest.fixture(scope="module")
def memory(queue):
    return experiment.measure_memory(queue, fit_samples=300)


def test_memory_of_a_queue_is_fitted_exactly(memory):
    assert (memory["last"]["fitted"], memory["last"]["held_out"]) == pytest.approx((1, 1))


def test_memory_of_a_queue_is_uniform(memory):
    assert sum(memory["last"]["share"]) == pytest.approx(1, abs=0.05)
    assert memory["last"]["share"] == pytest.approx([1 / 3] * 3, abs=0.03)


def test_the_encoder_remembers_nothing_that_it_has_not_read(memory):
    encoder = np.array(memory["encoder"])
    assert not np.triu(encoder, 1).any()
    assert encoder[0, 0] == pytest.approx(1)


def test_a_queue_is_perfectly_accurate(memory):
    assert memory["accuracy"] == [1.0] * (LENGTH + 1)


def test_the_decoder_of_a_queue_keeps_nothing_of_what_it_reads(memory):
    assert not np.array(memory["crossed"]["read"]).round(3).any()


def test_a_queue_says_each_exchanged_word_at_its_own_step(queue):
    swapped = experiment.measure_swap(queue, fit_samples=300)
    for way in experiment.WAYS:
        assert np.array_equal(swapped[way]["flip"], np.eye(LENGTH, LENGTH + 1))
        assert np.array(swapped[way]["margin"])[:, :-1].diagonal() == pytest.approx(18, abs=1e-3)
    assert experiment._in_turn(np.array(swapped["component"]["variation"])) == 1


def test_what_longer_training_gains_is_compared_seed_by_seed(queue):
    memory, swap = (getattr(experiment, f"measure_{of}")(queue, fit_samples=300) for of in ("memory", "swap"))

    def answer(spec, asked, **_):
        right = spec.steps / 256 + spec.seed / 8
        return swap if asked is experiment.measure_swap else memory | {"accuracy": [right] * LENGTH + [1.0]}

    config = experiment.Config(length=(LENGTH,), words=WORDS, seeds=2, steps=128)
    values = experiment.values(config, experiment.compute(config, Given(answer)))
    assert values["VED"]["longest"]["gained"] == {"value": 0.25, "low": 0.25, "high": 0.25, "n": 2}
    assert "gained" not in values["AED"]["longest"]


# A state as a sum over the words read: against least squares, and a recurrence whose answer is known.


@st.composite
def samples(draw):
    """(tokens, states, n_tokens), words drawn independently or one position a copy of another."""
    batch, length = draw(st.integers(2, 60)), draw(st.integers(1, 5))
    n_tokens, width = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tokens = rng.integers(0, n_tokens, size=(batch, length))
    if draw(st.booleans()):
        tokens[:, -1] = tokens[:, 0]
    states = rng.normal(size=(batch, width)) + rng.normal(size=(length, n_tokens, width))[0][tokens[:, 0]]
    return tokens, states + draw(st.sampled_from([0.0, 50.0])), n_tokens


def fitted(tokens, states, n_tokens):
    unrolled = UnrolledComponents(n_tokens, tokens.shape[1], states.shape[1])
    return unrolled.update(torch.as_tensor(tokens), torch.as_tensor(states))


def by_dummy_codes(tokens, states, n_tokens, kept):
    """The fit on the words at some positions, and the share of the variance that it explains."""
    codes = np.hstack([np.ones((len(tokens), 1)), *(np.eye(n_tokens)[tokens[:, t]] for t in kept)])
    fit = codes @ np.linalg.lstsq(codes, states, rcond=None)[0]
    return fit, 1 - ((states - fit) ** 2).sum() / ((states - states.mean(0)) ** 2).sum()


@settings(max_examples=80)
@given(samples())
def test_agrees_with_dummy_coded_least_squares(sample):
    tokens, states, _ = sample
    unrolled, scale = fitted(*sample), np.abs(states).max()
    positions = set(range(tokens.shape[1]))
    fit, share = by_dummy_codes(*sample, positions)
    given_tokens, given_states = torch.from_numpy(tokens), torch.from_numpy(states)
    assert np.abs(unrolled.predict(given_tokens).numpy() - fit).max() <= 1e-8 * scale
    variance = unrolled.variance_explained()
    assert variance.total == pytest.approx(share, abs=1e-8)
    assert unrolled.r_squared(given_tokens, given_states) == pytest.approx(share, abs=1e-8)
    for position in positions:
        _, without = by_dummy_codes(*sample, positions - {position})
        assert variance.unique[position] == pytest.approx(share - without, abs=1e-8)

    # the mean is temporal, and every position sums to zero
    assert np.abs(unrolled.temporal.numpy() - states.mean(0)).max() <= 1e-12 * scale
    sums = (unrolled.counts[:, :, None] * unrolled.input).sum(1)
    assert float(sums.abs().max()) <= 1e-9 * scale * len(states)
    assert not unrolled.input[unrolled.counts == 0].any()
    assert unrolled.samples == len(tokens)


def test_linear_recurrence_in_closed_form():
    """h_t = A h_{t-1} + B x_t + b over all sentences: chi = A^(T-t) B (x(w) - mean x), no residual."""
    rng = np.random.default_rng(3)
    width, n_tokens, length = 4, 3, 5
    transition, inward = (torch.from_numpy(0.5 * rng.normal(size=(width, width))) for _ in "AB")
    bias = torch.from_numpy(rng.normal(size=width))
    embedding = torch.from_numpy(rng.normal(size=(n_tokens, width)))
    tokens = torch.cartesian_prod(*[torch.arange(n_tokens)] * length)  # every sentence
    state = torch.zeros(len(tokens), width, dtype=torch.float64)
    for t in range(length):
        state = state @ transition.T + embedding[tokens[:, t]] @ inward.T + bias
    unrolled = UnrolledComponents(n_tokens, length, width).update(tokens, state)
    centred = (embedding - embedding.mean(0)) @ inward.T
    for t in range(length):
        expected = centred @ torch.linalg.matrix_power(transition, length - 1 - t).T
        assert torch.allclose(unrolled.input[t], expected, atol=1e-9)
    variance = unrolled.variance_explained()
    assert variance.total == pytest.approx(1)
    assert sum(variance.of_position) == pytest.approx(1)  # independent words: variances add up
    assert variance.unique == pytest.approx(variance.of_position)


@pytest.mark.slow
@settings(max_examples=20)
@given(samples(), st.data())
def test_halves_merge_to_the_whole(sample, data):
    tokens, states, n_tokens = sample
    cut = data.draw(st.integers(0, len(tokens)))
    halves = fitted(tokens[cut:], states[cut:], n_tokens) + fitted(tokens[:cut], states[:cut], n_tokens)
    whole = fitted(*sample)
    assert torch.allclose(halves.input, whole.input, rtol=0, atol=1e-7 * np.abs(states).max())
    assert halves.variance_explained().total == pytest.approx(whole.variance_explained().total, abs=1e-9)


def test_states_that_do_not_vary_have_no_shares():
    assert np.isnan(fitted(np.zeros((5, 2)), np.zeros((5, 4)), 3).variance_explained().total)


@pytest.mark.parametrize(
    ("given", "message"),
    [pytest.param((Corpus.from_ids([[4], [4, 5]], [[4], [4, 5]]),), "2 lengths", id="2_lengths")],
)
def test_one_length_refuses(given, message):
    assert_refused(partial(one_length, *given), message)
