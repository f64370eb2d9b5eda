"""Alignment error rate by hand, soft measures and the diagonal."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib.probes.alignment_error import AlignmentSums, diagonal, gold_links, words_only


def judged(attention, gold):
    """Quality of one sentence pair given as lists."""
    attention = torch.tensor([attention])
    masks = (torch.ones(1, length, dtype=torch.bool) for length in attention.shape[1:])
    return AlignmentSums().update(attention, gold_links([gold], *attention.shape[1:]), *masks).result()


def test_error_rate_by_hand():
    """Three rows link to 0, 1, 1; of the four gold links two are hit."""
    attention = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.5, 0.4]]
    found = judged(attention, {(0, 0), (1, 1), (1, 2), (2, 2)})
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(2 / 4)
    f1 = 2 * found.precision * found.recall / (found.precision + found.recall)
    assert found.error_rate == pytest.approx(1 - f1)
    assert found.error_rate == pytest.approx(1 - 4 / 7)
    assert found.agreement == pytest.approx(2 / 3)
    assert found.mass_on_gold == pytest.approx((0.8 + 0.5 + 0.3 + 0.4) / 3)
    assert (found.made, found.gold, found.rows) == (3, 4, 3)


def test_a_word_that_attends_to_no_word_makes_no_link():
    """All of its weight is on the end mark: not a link made and missed, but none."""
    attention, words = torch.tensor([[[0.0, 0.0, 1.0], [0.5, 0.0, 0.5]]]), torch.ones(1, 2, dtype=torch.bool)
    source_words = torch.tensor([[True, True, False]])
    gold = gold_links([{(0, 0), (1, 0)}], 2, 3)
    found = AlignmentSums().update(attention, gold, words, source_words).result()
    assert (found.made, found.precision, found.recall) == (1, 1.0, 0.5)


def test_near_ties_by_hand():
    assert judged([[0.5, 0.5]], {(0, 1)}).precision == 0.5  # ties share their link
    assert judged([[0.5, 0.499]], {(0, 1)}).precision == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
def test_two_batches_come_to_what_a_loop_counts(seed, batch, with_null):
    """Weights that are often tied or zero, rows below null, rows without gold, anything outside the words."""
    rng = np.random.default_rng(seed)
    attention, null = rng.choice([0.0, 0.25, 0.5, 1.0], (batch, 4, 5)), rng.choice([0.25, 0.5], (batch, 4))
    rows, columns = (np.arange(n) < rng.integers(0, n + 1, (batch, 1)) for n in (4, 5))
    inside = rows[:, :, None] & columns[:, None, :]
    gold = inside & (rng.random(inside.shape) < 0.2)
    hits = made = 0
    for n, s in np.argwhere(rows):
        row, best = attention[n, s][columns[n]], attention[n, s][columns[n]].max(initial=0)
        if best > 0 and not (with_null and best < null[n, s]):
            made += 1
            hits += gold[n, s][columns[n]][row == best].mean()
    attention[~inside] = 9.0
    given = list(map(torch.from_numpy, (attention, gold, rows, columns, *[null] * with_null)))
    sums = [AlignmentSums().update(*(own[part] for own in given)) for part in (slice(2), slice(2, None))]
    found, linked = (sums[0] + sums[1]).result(), int(gold.any(-1).sum())
    assert (found.made, found.gold, found.rows) == (made, gold.sum(), linked)
    expected = {"precision": (hits, made), "recall": (hits, gold.sum()), "agreement": (hits, linked)}
    expected |= {"mass_on_gold": (attention[gold].sum(), linked)}
    for name, (part, whole) in expected.items():
        assert getattr(found, name) == pytest.approx(part / whole if whole else math.nan, nan_ok=True)
    if made + gold.sum():
        assert found.error_rate == pytest.approx(1 - 2 * hits / (made + gold.sum()))


def test_the_diagonal_stretches_to_the_longer_side():
    """Two target words halve four source words, whose middles are 1 and 3; four halve two the other way.

    The middle of four is 2.
    """
    expected = {(3, 3): [0, 1, 2], (2, 2): [0, 1], (2, 4): [1, 3], (4, 2): [0, 0, 1, 1], (1, 4): [2]}
    rows, columns = (torch.arange(4) < torch.tensor(side)[:, None] for side in zip(*expected, strict=True))
    found = diagonal(rows, columns)
    for own, places in zip(found, expected.values(), strict=True):
        assert own[: len(places)].argmax(-1).tolist() == places
    assert float(found.sum()) == int(rows.sum())  # none at padding


def test_a_mask_without_end_marks():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert words_only(mask).tolist() == [[True, True, False], [False, False, False]]
