"""The lexical probe: what the definition says, in little memory; the softmax probe: what is there alone."""

import math
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax
from torch.profiler import ProfilerActivity, profile

from attnlib.errors import BadInput
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.probes.lexical_probe import log_lexical_probe, log_probability_of_pairs, probe_bits
from attnlib.training.corpus import Corpus, collate

TINY = TranslatorConfig(words=300, width=6)


def batch_of(lengths, words=300):
    draw = np.random.default_rng(0)
    sides = [[draw.integers(4, words, size=n) for n in side] for side in zip(*lengths, strict=True)]
    return collate(Corpus.from_ids(*sides), np.arange(len(lengths)))


def traced(form="joined", attention="learned", lengths=((3, 5), (7, 2), (1, 1))):
    config = replace(TINY, form=form, attention=attention)
    model = BilinearTranslator(config, torch.Generator().manual_seed(0))
    batch = batch_of(lengths)
    with torch.no_grad():
        return model.eval(), batch, model(batch)


def probe(model, batch, trace, **options):
    states = trace.encoder_states, trace.decoder_states
    wanted = batch.target_output, batch.source_mask, batch.target_mask
    return log_lexical_probe(model.readout, *states, *wanted, **options)


def plain(model, batch, trace):
    """Every logit of every pair at once, from the layers as the paper writes them."""
    readout = model.readout
    shape = (*batch.target_output.shape, batch.source.shape[1], -1)
    context = readout.context(trace.encoder_states)[:, None].expand(shape)
    states = trace.decoder_states[:, :, None].expand(shape)
    joined = model.config.form == "joined"
    hidden = readout.hidden(torch.cat([context, states], -1)).relu() if joined else context + states
    right = batch.target_output[:, :, None, None].expand(*shape[:3], 1)
    return readout.output(hidden).log_softmax(-1).gather(-1, right)[..., 0]


@pytest.mark.parametrize("form", ["joined", "summed"])
@pytest.mark.parametrize("at_once", [1, 7, 512])
@torch.no_grad()
def test_it_is_the_plain_version_at_valid_pairs_and_nothing_at_padding(form, at_once):
    model, batch, trace = traced(form)
    found = probe(model, batch, trace, at_once=at_once)
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    torch.testing.assert_close(found[valid], plain(model, batch, trace)[valid])
    assert (found[~valid] == -torch.inf).all()
    assert (found[valid] < 0).all()


@torch.no_grad()
def test_with_one_source_position_it_is_the_probability_itself():
    """A source of one position is attended to alone, whatever its score."""
    model, batch, _ = traced()
    one = replace(batch, source=batch.source[2:, :1], source_mask=batch.source_mask[2:, :1],
                  target_input=batch.target_input[2:], target_output=batch.target_output[2:],
                  target_mask=batch.target_mask[2:], indices=batch.indices[2:])  # fmt: skip
    trace = model(one)
    expected = trace.logits.log_softmax(-1).gather(-1, one.target_output[:, :, None])
    torch.testing.assert_close(probe(model, one, trace)[one.target_mask], expected[one.target_mask])


def test_by_hand():
    """Two words of logits (z, −z) with z the sum of both parts: the right word has probability σ(2z)."""
    found = log_probability_of_pairs(
        torch.tensor([[[1.0], [-2.0]]]),
        torch.tensor([[[0.5], [0.0]]]),
        lambda summed: torch.cat([summed, -summed], 1),
        torch.tensor([[0, 1]]),
        torch.tensor([[True, True]]),
        torch.tensor([[True, True]]),
    )
    expected = torch.sigmoid(torch.tensor([[[3.0, -3.0], [-2.0, 4.0]]]))
    torch.testing.assert_close(found.exp(), expected)


def peak(run):
    """The most numbers of 4 bytes that torch's allocator held at once, beyond what it held before."""
    run()  # what is allocated once and for all
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        run()
    held = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
    held.sort(key=lambda event: event.start_ns())
    return max(accumulate(event.nbytes() for event in held)) // 4


@pytest.mark.parametrize("form", ["joined", "summed"])
@torch.no_grad()
def test_memory_is_what_the_pairs_at_once_ask_for(form):
    model, batch, trace = traced(form, lengths=[(20, 20)] * 8)
    pairs, words, width = 8 * 21 * 21, 300, 6
    all_logits = peak(lambda: plain(model, batch, trace))
    assert all_logits >= 2 * pairs * words  # the logits and their softmax
    # The result, three places of 8 bytes a pair, a byte of mask, and the two mapped sides.
    whatever = pairs + 3 * 2 * pairs + pairs // 4 + 2 * 8 * 21 * width
    peaks = {n: peak(lambda n=n: probe(model, batch, trace, at_once=n)) for n in (16, 64, 256)}
    for at_once, ours in peaks.items():
        assert ours - whatever <= 2 * at_once * (words + width + 1)
        assert ours < all_logits / 10
    assert peaks[256] - peaks[16] >= 2 * (256 - 16) * words  # so it is the peak that was measured


def test_at_least_one_pair_at_once():
    with pytest.raises(BadInput, match="at_once is 0"):
        probe(*traced(), at_once=0)


# Bits that a linear softmax reads off a vector.


def drawn(samples, seed):
    """Words at three places; the vector has the first as it is, the second in noise, nothing of the third."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(4, (samples, 3), generator=generator)
    shown = torch.nn.functional.one_hot(words, 4).double()
    noise = torch.randn(samples, 4, generator=generator).double()
    return torch.cat([shown[:, 0], shown[:, 1] + noise], dim=1), words


def test_bits_of_what_is_there_in_part_and_not_at_all():
    fitted, judged = drawn(3_000, 0), drawn(2_000, 1)
    whole, part, none = probe_bits(*fitted, *judged, words=4).tolist()
    assert whole == pytest.approx(2, abs=0.05)
    assert 0.2 < part < 1
    assert none == pytest.approx(0, abs=0.02)


def test_it_is_the_softmax_regression_that_scipy_finds():
    (vectors, words), (others, right) = drawn(400, 2), drawn(300, 3)
    mean, spread, penalty = vectors.mean(0), vectors.std(0, correction=0), 1e-2
    inputs, judged = (((part - mean) / spread).numpy() for part in (vectors, others))

    def logs(flat, rows):
        weight, bias = flat[:32].reshape(8, 4), flat[32:]
        return log_softmax(rows @ weight + bias, axis=1)

    def loss(flat):
        own = logs(flat, inputs)[np.arange(400), words[:, 1].numpy()].mean()
        return -own + penalty / 2 * (flat[:32] ** 2).sum()

    best = minimize(loss, np.zeros(36), method="BFGS", options={"gtol": 1e-7}).x
    bits = 2 + logs(best, judged)[np.arange(300), right[:, 1].numpy()].mean() / math.log(2)
    found = probe_bits(vectors, words, others, right, words=4, penalties=(penalty,))
    assert found[1].item() == pytest.approx(bits, abs=1e-3)


def wide(samples, seed, width=60):
    """The first place stands in the vector beside much noise, the other place does not."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(4, (samples, 2), generator=generator)
    noise = torch.randn(samples, width, generator=generator).double()
    return torch.cat([torch.nn.functional.one_hot(words[:, 0], 4).double(), noise], dim=1), words


def test_few_samples_in_a_wide_vector_are_not_learnt_by_heart():
    """A light penalty fits the noise and reads far less than nothing where nothing is; not so the chosen."""
    fitted, judged = wide(150, 4), wide(1_000, 5)
    light = probe_bits(*fitted, *judged, words=4, penalties=(1e-3,))
    chosen = probe_bits(*fitted, *judged, words=4)
    assert light[1] < -1
    assert chosen[1] > -0.6
    assert chosen[0] > 0.5


def test_each_place_has_the_penalty_that_is_best_for_it():
    """Of both places at once the probe reads what it does with the better penalty for each."""
    fitted, judged = wide(150, 6), wide(1_000, 7)
    stiff, light = (probe_bits(*fitted, *judged, words=4, penalties=(p,)) for p in (1.0, 1e-2))
    both = probe_bits(*fitted, *judged, words=4, penalties=(1.0, 1e-2))
    assert light[0] > stiff[0]
    assert light[1] < stiff[1]
    torch.testing.assert_close(both, torch.stack([light[0], stiff[1]]), atol=0.01, rtol=0)


def test_a_fifth_is_left_out_for_the_choice_alone():
    """With one penalty nothing is chosen; with the same one twice the fit is the same, all samples in it."""
    fitted, judged = drawn(100, 8), drawn(1_000, 9)
    one, twice = (probe_bits(*fitted, *judged, words=4, penalties=given) for given in ((0.01,), (0.01, 0.01)))
    torch.testing.assert_close(one, twice, atol=3e-3, rtol=0)


@pytest.mark.parametrize(
    ("samples", "words", "message"), [(0, 4, "0 samples to fit on"), (5, 3, "expected 0 … 2")]
)
def test_what_cannot_be_fitted_is_refused(samples, words, message):
    vectors, ids = torch.zeros(samples, 2), torch.full((samples, 3), 3)
    with pytest.raises(BadInput, match=message):
        probe_bits(vectors, ids, torch.zeros(2, 2), torch.zeros(2, 3, dtype=torch.long), words=words)
