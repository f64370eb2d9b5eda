"""Links from attention: heads, means, steps, and words without attention, by hand."""

import numpy as np
import pytest
import torch

from attnlib.alignment.links import (
    HeadChoice,
    all_choices,
    best_sources,
    choices_of,
    cross_attention,
    shifted_rows,
)
from attnlib.alignment.words import NO_WORD, Words
from attnlib.errors import BadInput, UnknownName
from attnlib.probes.ibm_model_1 import NO_LINK
from tests.attnlib.adapters.adapter_builders import attended_of, pass_of, softmax_of

WORDS = Words(("a", "b"), (0, 1))
FIRST = HeadChoice(0, 0)
HEADS = {  # of one layer, (heads, target, source)
    0: torch.tensor([[[0.9, 0.1], [0.8, 0.2]], [[0.2, 0.8], [0.05, 0.95]]])
}


def links(weights=HEADS, *, target=WORDS, source=WORDS, choice=FIRST, shift="write"):
    return best_sources(weights, target, source, choices=[choice], shift=shift).links(0)


def test_a_target_word_is_linked_with_what_it_attends_to_most():
    assert links() == [(0, 0), (0, 1)]


def test_another_head_makes_other_links():
    assert links(choice=HeadChoice(0, 1)) == [(1, 0), (1, 1)]


def test_a_mean_is_over_attention_rather_than_links():
    assert links(choice=HeadChoice(0, "mean")) == [(0, 0), (1, 1)]


def test_the_mean_over_all_heads_counts_every_head_once():
    one_more = HEADS | {1: torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])}
    # rows of the three heads: (0.9, 0.2, 0) and (0.8, 0.05, 1) on the first word
    assert links(one_more, choice=HeadChoice("mean", "mean")) == [(1, 0), (0, 1)]


def test_read_takes_the_step_after():
    assert links(choice=HeadChoice(0, "mean"), shift="read") == [(1, 0)]


def test_the_step_that_predicts_the_end_mark_reads_the_last_word():
    one_word = Words(("a",), (0, NO_WORD))
    assert links(target=one_word, choice=HeadChoice(0, "mean"), shift="read") == [(1, 0)]


def test_pieces_of_a_source_word_are_summed():
    weights = {0: torch.tensor([[[0.4, 0.3, 0.3]]])}
    assert links(weights, target=Words(("a",), (0,)), source=Words(("a", "b"), (0, 1, 1))) == [(1, 0)]


def test_pieces_of_a_target_word_are_averaged():
    weights = {0: torch.tensor([[[0.6, 0.4], [0.1, 0.9]]])}
    assert links(weights, target=Words(("a",), (0, 0))) == [(1, 0)]


def test_special_pieces_have_no_links():
    weights = {0: torch.tensor([[[0.1, 0.9], [0.5, 0.5]]])}
    assert links(weights, target=Words(("a",), (0, NO_WORD)), source=Words(("a",), (0, NO_WORD))) == [(0, 0)]


def test_a_word_that_was_cut_off_has_no_link():
    assert links(target=Words(("a", "b", "c"), (0, 1))) == [(0, 0), (0, 1)]


def test_a_source_without_words_makes_no_links():
    assert links(source=Words((), (NO_WORD, NO_WORD))) == []


def test_weights_are_the_attention_of_the_links():
    best = best_sources(HEADS, WORDS, WORDS, choices=[HeadChoice(0, 1)])
    assert best.weights(0) == pytest.approx([0.8, 0.95])


def test_a_word_without_a_link_has_no_weight():
    best = best_sources(HEADS, WORDS, WORDS, choices=[HeadChoice(0, 0)], shift="read")
    assert best.source.tolist() == [[0, NO_LINK]]
    assert np.isnan(best.weight[0, 1])


def test_an_unknown_step_is_refused():
    with pytest.raises(UnknownName, match="write"):
        shifted_rows(HEADS[0], "before")


# Choices.


@pytest.mark.parametrize(
    ("layer", "head", "expected"),
    [
        pytest.param(None, None, [(0, 0), (0, 1), (1, 0)], id="every head"),
        pytest.param(0, None, [(0, 0), (0, 1)], id="heads of a layer"),
        pytest.param(None, 1, [(0, 1)], id="a head of the layers that have it"),
        pytest.param(None, "mean", [(0, "mean"), (1, "mean")], id="the mean of every layer"),
        pytest.param(1, "mean", [(1, "mean")], id="the mean of a layer"),
        pytest.param("mean", None, [("mean", "mean")], id="the mean over all"),
    ],
)
def test_what_can_be_chosen(layer, head, expected):
    assert list(choices_of({0: 2, 1: 1}, layer, head)) == expected


@pytest.mark.parametrize(("layer", "head"), [(2, None), (None, 2), (1, 1), ("mean", 0)])
def test_a_head_that_is_not_there_is_refused(layer, head):
    with pytest.raises(BadInput, match=r"head|layer"):
        choices_of({0: 2, 1: 1}, layer, head)


def test_all_choices_are_heads_or_means():
    assert len(all_choices({0: 2, 1: 1})) == 3 + 2 + 1


# Of a pass.


def test_cross_attention_is_by_layer():
    attended = attended_of()
    (layer,) = cross_attention(pass_of(attended)).values()
    expected = softmax_of(attended.scores)
    torch.testing.assert_close(layer[1, :, :4, :3], expected[1, :, :4, :3])


def test_a_pass_without_cross_attention_is_refused():
    with pytest.raises(BadInput, match="no cross-attention"):
        cross_attention(pass_of(attended_of(kind="encoder_self", target=5)))
