"""Sequences with a keyword: what makes them positive, and nothing else does."""

import pytest
import torch

from attnlib.errors import BadInput
from companion.data.synthetic import KEYWORD, keyword_batch


def test_half_have_the_keyword_once_and_the_others_never():
    batch = keyword_batch(200, 12, 7, torch.Generator().manual_seed(3))
    counts = (batch.tokens == KEYWORD).sum(1)
    assert torch.equal(counts, batch.labels)
    assert batch.labels.sum() == 100
    assert (batch.tokens[torch.arange(100), batch.place[:100]] == KEYWORD).all()
    assert batch.mask.all()
    assert batch.tokens.max() == 6


def test_places_and_words_are_uniform():
    batch = keyword_batch(20_000, 5, 4, torch.Generator().manual_seed(0))
    places = torch.bincount(batch.place[:10_000], minlength=5) / 10_000
    assert places.tolist() == pytest.approx([0.2] * 5, abs=0.02)
    words = torch.bincount(batch.tokens[10_000:].flatten(), minlength=4) / 50_000
    assert words.tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3], abs=0.01)


@pytest.mark.parametrize(("samples", "length", "words"), [(3, 5, 5), (0, 5, 5), (4, 0, 5), (4, 5, 1)])
def test_what_cannot_be_drawn_is_said(samples, length, words):
    with pytest.raises(BadInput, match=r"even number|at least two"):
        keyword_batch(samples, length, words, torch.Generator())
