"""What the decomposition refuses beside bad batches of states, and in which words."""

import pytest
import torch

from attnlib.decomposition import (
    AttentionCells,
    Components,
    Parts,
    ShareSums,
    SubstitutionSums,
    alignment_terms,
    map_parts,
    require_bilinear,
    typicality,
)
from attnlib.decomposition.growing import GrowingComponents
from attnlib.decomposition.substitution import valid_rows
from attnlib.errors import BadInput, UnknownName

TERMS = torch.zeros(3, 3, 2, 4, 5)
FOUR, FIVE = torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 5, dtype=torch.bool)
WIDE = Parts(*(torch.zeros(2, 4, 4),) * 3, mask=FOUR)
NARROW = Parts(*(torch.zeros(2, 4, 1),) * 3, mask=FOUR)
DOUBLE = Parts(*(part.double() for part in WIDE), mask=FOUR)
MEANS, EXACT = Components(3, 3, 4), Components(3, 3, 4, method="least_squares")
CELLS = AttentionCells().update(torch.ones(1, 2, 3), FOUR[:1, :2], FIVE[:1, :3])
ONE_SUBSET = SubstitutionSums({"none": []})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Components(0, 5, 3), BadInput, "n_tokens=0"),
        (lambda: Components(3, 3, 4, method="least_square"), UnknownName, "did you mean 'least_squares'"),
        (lambda: MEANS + Components(3, 3, 2), BadInput, r"'width': 4} with those of .*'width': 2}"),
        (lambda: EXACT + MEANS, BadInput, "'least_squares' with those of 'means'"),
        (lambda: GrowingComponents(2) + GrowingComponents(3), BadInput, "width 2 with those of 3"),
        (lambda: MEANS.variance_explained(), BadInput, "keep no sum of squares"),
        (lambda: EXACT.variance_explained(), BadInput, "call update before"),
        (lambda: alignment_terms(WIDE, NARROW), BadInput, "width must agree"),
        (lambda: alignment_terms(WIDE, DOUBLE), BadInput, "one dtype"),
        (lambda: map_parts(WIDE, torch.zeros(3, 5)), BadInput, r"expected \(out, 4\)"),
        (lambda: map_parts(WIDE, torch.zeros(3, 4), torch.zeros(4)), BadInput, r"expected \(3,\)"),
        (lambda: require_bilinear("additive"), BadInput, "The additive score has no nine alignment terms"),
        (lambda: require_bilinear("concat"), BadInput, "The concat score has no nine alignment terms"),
        (lambda: require_bilinear("genral"), UnknownName, "'general'"),
        (lambda: ShareSums().update(TERMS, FIVE, FOUR), BadInput, "expected"),
        (lambda: valid_rows(TERMS, FOUR[:1], FIVE), BadInput, "target mask of"),
        (lambda: SubstitutionSums({"mine": [("temporal", "residuals")]}), UnknownName, "'residual'"),
        (lambda: SubstitutionSums().merge(ONE_SUBSET), BadInput, "same subsets"),
        (lambda: typicality([torch.eye(2)] * 3, minimum=1), BadInput, "minimum=1"),
        (lambda: CELLS.update(torch.ones(2, 4, 5), FIVE, FOUR), BadInput, "expected"),
        (lambda: CELLS.average_attention((9, 9)), BadInput, r"\(9, 9\); cells with most samples: \[\(3, 2\)"),
    ],
)
def test_what_does_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["dot", "general", "scaled_dot"])
def test_bilinear_scores_pass(name):
    require_bilinear(name)
