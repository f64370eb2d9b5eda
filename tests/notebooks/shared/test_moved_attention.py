"""Attention moved to one word, and to all but one: readers of what is there, and of what is missing."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

from notebooks.shared.copied_sentences import copy_batch, draw_sources
from notebooks.shared.copier import Copier, CopierConfig
from notebooks.shared.permutation_copying import moved_attention, weight_on_later

LENGTH = 6


class Reader:
    """States are the words themselves; what is said is the word most, or least, present in the context."""

    config = SimpleNamespace(heads=1)

    def __init__(self, sign):
        self.sign = sign

    def read_out(self, context, decoder_states):
        return self.sign * context


def permutations(order=None):
    sources = draw_sources("permutation", LENGTH, 8, torch.Generator().manual_seed(0))
    return copy_batch(sources, LENGTH, order)


def moved(reader, batch):
    states = functional.one_hot(batch.source, LENGTH).float()
    return moved_attention(reader, SimpleNamespace(encoder_states=states, decoder_states=states), batch)


@pytest.mark.parametrize("order", [None, torch.tensor([3, 0, 5, 1, 4, 2])])
def test_who_says_what_is_shown_and_who_says_what_is_missing(order):
    batch = permutations(order)
    sees, misses = (
        {name: share.item() for name, share in moved(Reader(sign), batch).items()} for sign in (1, -1)
    )
    assert (sees["says_shown"], sees["says_left_out"], sees["right_without"]) == (1, 0, 0)
    assert (misses["says_shown"], misses["says_left_out"], misses["right_without"]) == (0, 1, 1)
    assert sees["right_at_uniform"] == pytest.approx(1 / LENGTH)  # ties: one word, whatever is due


@pytest.mark.parametrize("order", [None, torch.tensor([3, 0, 5, 1, 4, 2])])
def test_the_weight_on_later_words_is_theirs_alone(order):
    batch = permutations(order)
    time = torch.empty(LENGTH, dtype=torch.long)  # of a source place: when its word is due
    time[batch.place] = torch.arange(LENGTH)
    steps = torch.arange(LENGTH)[:, None]
    for weight, expected in (((time > steps).float(), 1), ((time <= steps).float(), 0)):
        assert weight_on_later(weight.expand(8, LENGTH, LENGTH), batch).item() == pytest.approx(expected)


def test_the_words_asked_for_are_those_that_the_decoder_has_not_read():
    batch, seen = permutations(), []

    class Listening(Reader):
        def read_out(self, context, decoder_states):
            seen.append((context.argmax(-1), decoder_states.shape[1]))
            return context

    moved(Listening(1), batch)
    shown, asked = seen[0]
    assert asked == LENGTH // 2
    assert torch.equal(shown, batch.target[:, LENGTH // 2 :])
    for step in range(asked):
        assert not (batch.target_read[:, : step + 1] == shown[:, step, None]).any()


def test_several_heads_make_a_context_as_many_times_as_long():
    batch, norms = permutations(), []
    for heads in (1, 3):
        network = Copier(CopierConfig(LENGTH, width=8, heads=heads), torch.Generator().manual_seed(1))
        network.read_out = lambda context, states: norms.append(context.mean().item()) or states
        states = torch.ones(8, LENGTH, 8)
        moved_attention(network, SimpleNamespace(encoder_states=states, decoder_states=states), batch)
    assert norms == pytest.approx([1] * 4 + [3] * 4)
