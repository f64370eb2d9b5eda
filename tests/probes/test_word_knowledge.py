"""The three measures by hand: two rows of three positions, one with a word that stands twice, and padding."""

import math

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.probes.word_knowledge import positions_of_words, word_knowledge

SOURCE = torch.tensor([[7, 8, 7, 0]])
MASK = torch.tensor([[True, True, True, False]])
LINKS = torch.zeros(1, 4, 4, dtype=torch.bool)
LINKS[0, 0, 2] = LINKS[0, 1, 1] = True  # word 7 at its second place, word 8; the rest has no link
PROBE = torch.tensor([[0.1, 0.2, 0.1, 0], [0.3, 0.1, 0.1, 0], [0.2, 0.2, 0.2, 0], [0, 0, 0, 0]])[None].log()


def test_words_stand_wherever_their_source_word_stands():
    found = positions_of_words(SOURCE, LINKS)[0]
    assert found.int().tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0] * 4, [0] * 4]


def test_measures_are_those_by_hand():
    found = word_knowledge(PROBE, positions_of_words(SOURCE, LINKS), MASK)
    assert found.share[0, :2].tolist() == pytest.approx([0.5, 0.2])
    assert found.chance[0, :2].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert found.right[0, :2].tolist() == [0, 0]
    logs = [math.log(0.2 / (0.4 / 3)), math.log(0.3 / (0.5 / 3)), 0]
    assert found.best_over_mean[0, :3].tolist() == pytest.approx(logs, abs=1e-6)


def test_rows_without_a_word_and_padding_have_no_share():
    found = word_knowledge(PROBE, positions_of_words(SOURCE, LINKS), MASK)
    for value in (found.share, found.chance, found.right):
        assert value[0, 2:].isnan().all()
    assert found.best_over_mean[0, 3].isnan()


def test_even_probes_are_at_chance_and_ties_are_shared():
    words = positions_of_words(SOURCE, LINKS)
    even = torch.full((1, 4, 4), 0.25).log().masked_fill(~MASK[:, None], -torch.inf)
    found = word_knowledge(even, words, MASK)
    torch.testing.assert_close(found.share[0, :2], found.chance[0, :2])
    torch.testing.assert_close(found.right[0, :2], found.chance[0, :2])


def test_a_factor_of_a_whole_row_changes_nothing():
    words = positions_of_words(SOURCE, LINKS)
    found, scaled = word_knowledge(PROBE, words, MASK), word_knowledge(PROBE - 3.0, words, MASK)
    torch.testing.assert_close(found.share, scaled.share, equal_nan=True)
    torch.testing.assert_close(found.best_over_mean, scaled.best_over_mean, equal_nan=True)


def test_a_word_at_padding_and_shapes_that_differ_are_refused():
    with pytest.raises(BadInput, match="stands at padding"):
        word_knowledge(PROBE, torch.ones(1, 4, 4, dtype=torch.bool), MASK)
    with pytest.raises(BadInput, match="expected"):
        word_knowledge(PROBE[:, :, :3], LINKS, MASK)
