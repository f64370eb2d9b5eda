"""Samples chosen from a corpus."""

import numpy as np
import pytest

from attnlib.errors import BadInput
from attnlib.models.corpus import Corpus, collate

CORPUS = Corpus.from_ids([[4, 5], [6], [7, 8, 9]], [[5], [4, 4], []])


@pytest.mark.parametrize("indices", [[2, 0, 2], np.array([2, 0, 2]), (2, 0, 2)])
def test_chosen_samples_are_in_the_order_of_their_indices(indices):
    chosen = CORPUS.subset(indices)
    assert [chosen.source(i).tolist() for i in range(3)] == [[7, 8, 9], [4, 5], [7, 8, 9]]
    assert [chosen.target(i).tolist() for i in range(3)] == [[], [5], []]


def test_no_indices_choose_no_samples():
    assert len(CORPUS.subset([])) == 0


def test_a_subset_shares_no_memory_with_its_corpus():
    chosen = CORPUS.subset(range(3))
    assert not np.shares_memory(chosen.source_ids, CORPUS.source_ids)


def test_no_sample_is_read_alone(monkeypatch):
    monkeypatch.setattr(Corpus, "source", None)
    assert len(CORPUS.subset(range(2))) == 2


@pytest.mark.parametrize("indices", [[3], [-1], [0.5], ["a"], [[0, 1]], [True]])
@pytest.mark.parametrize("choose", [Corpus.subset, collate])
def test_indices_that_choose_nothing_are_refused(choose, indices):
    with pytest.raises(BadInput):
        choose(CORPUS, indices)
