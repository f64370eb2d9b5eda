"""The lexical probe: what the definition says, in little memory."""

from itertools import accumulate

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from attnlib.probes.lexical_probe import log_lexical_probe, log_probability_of_pairs
from tests.attnlib.models.model_builders import batch_of, translator


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
    model, _, _ = traced()
    one = batch_of(pairs=[([], [5, 6])])
    trace = model(one)
    expected = trace.logits.log_softmax(-1).gather(-1, one.target_output[:, :, None])
    torch.testing.assert_close(probe(model, one, trace)[one.target_mask], expected[one.target_mask])


def test_by_hand():
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
