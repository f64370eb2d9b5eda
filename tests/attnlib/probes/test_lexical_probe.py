"""The lexical probe, in little memory; the best attention by hand, against scipy, by its KKT conditions."""

import math
from itertools import accumulate

import numpy as np
import pytest
import torch
from scipy import optimize, special
from torch.profiler import ProfilerActivity, profile

from attnlib.probes.lexical_probe import log_lexical_probe, log_probability_of_pairs
from attnlib.probes.optimal_attention import kkt_residual, optimal_attention
from tests.attnlib.models.model_builders import batch_of, generator, translator
from tests.attnlib.refusals import refused


def traced(form="joined", lengths=((3, 5), (7, 2), (1, 1))):
    draw = np.random.default_rng(0)
    batch = batch_of(pairs=[[draw.integers(4, 300, size=n) for n in both] for both in lengths])
    model = translator(form=form, words=300, width=6).float()
    with torch.no_grad():
        return model, batch, model(batch)


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
def test_the_probe_is_the_plain_version_at_valid_pairs_and_nothing_at_padding(form, at_once):
    model, batch, trace = traced(form)
    found = probe(model, batch, trace, at_once=at_once)
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    torch.testing.assert_close(found[valid], plain(model, batch, trace)[valid])
    assert (found[~valid] == -torch.inf).all()
    assert (found[valid] < 0).all()


def test_the_probe_by_hand():
    """Two words of logits (z, −z) with z the sum of both parts: the right word has probability σ(2z)."""
    both = torch.ones(1, 2, dtype=torch.bool)
    sides = torch.tensor([[[1.0], [-2.0]]]), torch.tensor([[[0.5], [0.0]]])
    words = torch.tensor([[0, 1]])
    found = log_probability_of_pairs(*sides, lambda z: torch.cat([z, -z], 1), words, both, both)
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


# The best attention.

SAMPLES, TARGET, SOURCE, WORDS = 4, 5, 9, 30


def random_problem(seed: int, scale: float, words: int = WORDS):
    draw = generator(seed)
    encoder = scale * torch.randn(SAMPLES, SOURCE, words, generator=draw, dtype=torch.float64)
    decoder = scale * torch.randn(SAMPLES, TARGET, words, generator=draw, dtype=torch.float64)
    right = torch.randint(words, (SAMPLES, TARGET), generator=draw)
    source_mask = torch.arange(SOURCE) < torch.tensor([SOURCE, SOURCE // 2 + 1, 2, 1])[:, None]
    target_mask = torch.arange(TARGET) < torch.tensor([TARGET, 3, 2, 4])[:, None]
    return encoder, decoder, right, source_mask, target_mask


def rows(problem, found):
    """Each real row alone: log p, attention, γ over valid positions, γ_s, the right word."""
    encoder, decoder, right, source_mask, target_mask = problem
    for at in target_mask.nonzero().tolist():
        valid = source_mask[at[0]]
        own = found.attention[*at][valid], encoder[at[0]][valid], decoder[*at]
        yield found.log_likelihood[*at].item(), *(tensor.numpy() for tensor in own), int(right[*at])


def loss_and_slopes(attention, encoder, decoder, word):
    log_p = special.log_softmax(attention @ encoder + decoder)
    return -log_p[word], encoder @ np.exp(log_p) - encoder[:, word]


def solved_alone(encoder):
    """One row, no say of the decoder, the first word right."""
    masks = torch.ones(encoder.shape[:2], dtype=torch.bool), torch.ones(1, 1, dtype=torch.bool)
    return optimal_attention(encoder, torch.zeros(1, 1, 3), torch.zeros(1, 1, dtype=torch.long), *masks)


def test_the_papers_counterexample():
    """A.1: the position with the largest β gets no attention; the optimum is half on each of the others."""
    encoder = torch.tensor([[[0.0, 0, 0], [0, -10, 5], [0, 5, -10]]], dtype=torch.float64)
    found = solved_alone(encoder)
    assert found.attention[0, 0].tolist() == pytest.approx([0, 0.5, 0.5], abs=1e-8)
    # Halves of equation 30 leave logits (0, -2.5, -2.5).
    assert found.log_likelihood.exp().item() == pytest.approx(1 / (1 + 2 * math.exp(-2.5)))
    probe = encoder[0].softmax(-1)[:, 0]
    assert probe[0].item() == pytest.approx(1 / 3)  # equation 31
    assert probe[1:].tolist() == pytest.approx([1 / (1 + math.exp(5) + math.exp(-10))] * 2)
    assert probe[1] == pytest.approx(math.exp(-5), rel=0.01)
    assert probe.argmax() == 0 == found.attention[0, 0].argmin()


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_attention_meets_the_kkt_conditions(seed, scale):
    """Of the paper's loss: one slope wherever there is attention, no smaller slope elsewhere."""
    problem = random_problem(seed, scale)
    found = optimal_attention(*problem)
    assert found.residual.max() < 1e-6
    assert found.iterations < 60
    for told, attention, *row in rows(problem, found):
        loss, slopes = loss_and_slopes(attention, *row)
        assert told == pytest.approx(-loss, abs=3e-9)  # torch's softplus is linear from 20 on
        assert attention.min() >= 0
        assert attention.sum() == pytest.approx(1, abs=1e-12)
        level = slopes @ attention
        assert slopes.min() >= level - 1e-6  # dual feasibility
        assert np.abs(attention * (slopes - level)).max() <= 1e-6  # complementary slackness
        assert np.minimum(attention, np.abs(slopes - level)).max() <= 1e-6


def test_scipy_finds_nothing_better_and_neither_do_corners_nor_uniform_attention():
    problem = random_problem(3, 2.0)
    sums_to_one = {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like}
    given = {"method": "SLSQP", "constraints": sums_to_one, "options": {"ftol": 1e-13, "maxiter": 500}}
    for told, attention, *row in rows(problem, optimal_attention(*problem)):
        uniform = np.full(len(attention), 1 / len(attention))
        given["bounds"] = [(0, 1)] * len(attention)
        theirs = optimize.minimize(loss_and_slopes, uniform, args=tuple(row), jac=True, **given)
        assert -told == pytest.approx(theirs.fun, abs=1e-6)
        for rival in (theirs.x, uniform, *np.eye(len(attention))):
            assert -told <= loss_and_slopes(rival, *row)[0] + 1e-8


def test_with_two_words_the_optimum_is_the_position_of_the_largest_probe():
    """Then the logits' difference is linear in the attention: section 3.3's argument, exactly."""
    encoder, decoder, right, source_mask, target_mask = random_problem(5, 3.0, words=2)
    found = optimal_attention(encoder, decoder, right, source_mask, target_mask)
    logits = encoder[:, None] + decoder[:, :, None]
    probe = logits.softmax(-1).gather(-1, right[:, :, None, None].expand(-1, -1, SOURCE, 1))[..., 0]
    probe = probe.masked_fill(~source_mask[:, None, :], -1)
    assert torch.equal(found.attention.argmax(-1)[target_mask], probe.argmax(-1)[target_mask])
    assert (found.attention.amax(-1)[target_mask] > 1 - 1e-6).all()


def test_equal_positions_share_equally():
    encoder, decoder, right, source_mask, target_mask = random_problem(2, 3.0)
    source_mask = torch.ones_like(source_mask)
    encoder[:, 5:] = encoder[:, :4]
    found = optimal_attention(encoder, decoder, right, source_mask, target_mask)
    assert torch.allclose(found.attention[..., 5:], found.attention[..., :4], atol=1e-6)
    assert found.residual.max() < 1e-6


def test_it_takes_no_more_steps_than_it_may():
    """Without one, attention is uniform, which the residual says is no solution."""
    for steps in (0, 1):
        found = optimal_attention(*random_problem(2, 3.0), iterations=steps)
        assert found.iterations == steps
        assert found.residual.max() > 1e-3


def test_an_almost_certain_word_is_still_solved():
    """The loss is flat to 1e-12 here, its logarithm is not: the best position is told from the second."""
    encoder = torch.zeros(1, 2, 3, dtype=torch.float64)
    encoder[0, :, 0] = torch.tensor([30.0, 31.0])
    assert solved_alone(encoder).attention[0, 0].tolist() == pytest.approx([0, 1], abs=1e-6)


def test_padding_changes_nothing():
    encoder, decoder, right, source_mask, target_mask = random_problem(1, 2.0)
    found = optimal_attention(encoder, decoder, right, source_mask, target_mask)
    assert (found.attention * ~(source_mask[:, None] & target_mask[:, :, None]) == 0).all()
    dirty = encoder.masked_fill(~source_mask[:, :, None], torch.nan)
    soiled = decoder.masked_fill(~target_mask[:, :, None], torch.inf)
    again = optimal_attention(dirty, soiled, right.masked_fill(~target_mask, -100), source_mask, target_mask)
    assert torch.equal(found.attention, again.attention)
    some = SOURCE // 2 + 1
    sides = encoder[1:2, :some], decoder[1:2, :3], right[1:2, :3]
    alone = optimal_attention(*sides, source_mask[1:2, :some], target_mask[1:2, :3])
    assert torch.allclose(alone.attention[0], found.attention[1, :3, :some], atol=1e-7)


def test_the_residual_by_hand():
    valid = torch.ones(1, 3, dtype=torch.bool)
    gradient = torch.tensor([[1.0, 1.0, 3.0]])
    assert kkt_residual(torch.tensor([[0.4, 0.6, 0.0]]), gradient, valid).item() == pytest.approx(0, abs=1e-6)
    # (0, 0, 1) - (1, 1, 3) = (-1, -1, -2), projected (1/2, 1/2, 0)
    assert kkt_residual(torch.tensor([[0.0, 0.0, 1.0]]), gradient, valid).item() == pytest.approx(1)


BOTH = torch.ones(1, 2, dtype=torch.bool)


def optimum(encoder=1.0, words=3, positions=2, mask=BOTH):
    logits = torch.full((1, 2, words), encoder), torch.zeros(1, 2, words)
    optimal_attention(*logits, torch.zeros(1, positions, dtype=torch.long), mask, BOTH)


test_what_cannot_be_is_refused = refused(
    (lambda: optimum(positions=1), "words has shape"),
    (lambda: optimum(words=1), "only one word"),
    (lambda: optimum(mask=~BOTH), "no valid source position"),
    (lambda: optimum(torch.inf), "encoder_logits are not all finite"),
)
