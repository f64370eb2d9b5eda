"""What takes tensors takes arrays, lists, and no mask; and is the same to the last digit where they are."""

import numpy as np
import pytest
import torch

from attnlib.decomposition import (
    AttentionCells,
    Components,
    ShareSums,
    SubstitutionSums,
    alignment_terms,
    map_parts,
    typicality,
)
from attnlib.decomposition.growing import GrowingComponents
from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement
from tests.attnlib.models.model_builders import generator

STATES = torch.randn(2, 4, 3, generator=generator(0))
TOKENS = torch.randint(0, 5, (2, 4), generator=generator(1))
ALL = torch.ones(2, 4, dtype=torch.bool)


def parts_of(components, *given):
    return components.update(*given).split(*given)


@pytest.mark.parametrize(
    "given",
    [
        (STATES.numpy(), TOKENS.numpy(), ALL.numpy()),
        (STATES.numpy(), TOKENS.tolist(), None),
        (STATES, TOKENS.int().numpy()),
        (np.broadcast_to(STATES.numpy(), STATES.shape), TOKENS),  # an array that cannot be written
    ],
)
@pytest.mark.parametrize("make", [lambda: Components(5, 4, 3), lambda: GrowingComponents(3)])
def test_components_of_arrays(make, given):
    expected = parts_of(make(), STATES, TOKENS, ALL)
    for mine, theirs in zip(parts_of(make(), *given), expected, strict=True):
        assert torch.equal(mine, theirs)


def test_sums_of_terms_and_matrices_of_arrays():
    parts = parts_of(Components(5, 4, 3), STATES, TOKENS)
    terms = alignment_terms(map_parts(parts, np.eye(3, dtype=np.float32)), parts)
    for sums in (ShareSums, SubstitutionSums):
        assert str(sums().update(terms.numpy()).result()) == str(sums().update(terms, ALL, ALL).result())
    attention = terms.sum((0, 1)).softmax(-1)
    cells = AttentionCells().update(attention.numpy())
    assert torch.equal(cells.judge(attention, minimum=2), cells.judge(attention.numpy(), ALL, ALL, minimum=2))
    assert typicality([np.eye(3)] * 30).value == 1
    assert agreement([[0.1, 0.9]], np.array([[0.2, 0.3]])).tolist() == [1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((STATES, [["a"] * 4] * 2), "tokens is list, of which no tensor can be made"),
        ((STATES, [[1, 2], [3]]), "tokens is list, of which"),
        (("states", TOKENS), "states is str"),
        ((STATES, TOKENS, ALL.int().numpy()), r"Mask of torch.int32: expected torch.bool"),
        ((STATES.numpy()[0], TOKENS), r"States of shape \(4, 3\): expected"),
    ],
)
def test_what_is_no_array_is_refused(given, message):
    with pytest.raises(BadInput, match=message):
        Components(5, 4, 3).update(*given)
