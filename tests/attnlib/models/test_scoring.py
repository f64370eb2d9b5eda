"""Scoring functions: worked by hand, against torch, and against each other where they are one function."""

import math
from typing import get_args

import pytest
import torch

from attnlib.models.attention import BILINEAR, Score, Scoring
from tests.attnlib.models.model_builders import generator

QUERY, KEYS = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, -1.0], [0.5, 1.0]]])


def score_of(scoring, query_width=2, key_width=2, **weights):
    score, draw = Score(scoring, query_width, key_width), generator(0)
    with torch.no_grad():
        for name, parameter in score.named_parameters():
            given = weights.get(name.partition(".")[0], torch.randn(parameter.shape, generator=draw))
            parameter.copy_(torch.as_tensor(given))
    return score


UNIT, LAST = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 10.0]]
# tanh of the sum of q and k, weighted by 1 and 10.
OF_SUMS = [math.tanh(4) + 10 * math.tanh(1), math.tanh(1.5) + 10 * math.tanh(3)]


@pytest.mark.parametrize(
    ("scoring", "weights", "expected"),
    [
        ("dot", {}, [1.0, 2.5]),
        ("scaled_dot", {}, [1 / math.sqrt(2), 2.5 / math.sqrt(2)]),
        # The map turns (3, −1) to (−1, 3) and (0.5, 1) to (1, 0.5).
        ("general", {"key_map": UNIT[::-1]}, [5.0, 2.0]),
        ("additive", {"query_map": UNIT, "key_map": UNIT, "last": LAST}, OF_SUMS),
        ("concat", {"joined_map": [[1.0, 0, 1.0, 0], [0, 1.0, 0, 1.0]], "last": LAST}, OF_SUMS),
    ],
)
def test_worked_by_hand(scoring, weights, expected):
    found = score_of(scoring, **weights)(QUERY, KEYS)
    torch.testing.assert_close(found, torch.tensor([[expected]]))


def test_concat_and_additive_are_one_function():
    concat = score_of("concat", 3, 5)
    additive = Score("additive", 3, 5)
    with torch.no_grad():
        additive.query_map.weight.copy_(concat.joined_map.weight[:, :3])
        additive.key_map.weight.copy_(concat.joined_map.weight[:, 3:])
        additive.last.weight.copy_(concat.last.weight)
    queries, keys = (torch.randn(2, *size, generator=generator(2)) for size in ((4, 3), (6, 5)))
    torch.testing.assert_close(concat(queries, keys), additive(queries, keys))
    joined = torch.cat([queries[:, :, None].expand(-1, -1, 6, -1), keys[:, None].expand(-1, 4, -1, -1)], -1)
    plain = concat.last(torch.tanh(concat.joined_map(joined)))[..., 0]
    torch.testing.assert_close(concat(queries, keys), plain)


@pytest.mark.parametrize("scoring", get_args(Scoring))
def test_only_the_bilinear_ones_are_linear_in_the_keys(scoring):
    score = score_of(scoring, 4, 4)
    queries, one, two = torch.randn(3, 1, 2, 4, generator=generator(3))
    apart, together = score(queries, one) + score(queries, two), score(queries, one + two)
    assert torch.allclose(apart, together, atol=1e-5) == (scoring in BILINEAR)
