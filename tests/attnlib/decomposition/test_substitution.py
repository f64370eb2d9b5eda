"""The substitution test: by hand, by an independent softmax, and its fixed points."""

import math

import pytest
from hypothesis import given, settings

from attnlib.decomposition import PART_NAMES, SUBSETS, SubstitutionSums
from attnlib.decomposition.substitution import ALL_PAIRS
from attnlib.errors import BadInput, UnknownName
from tests.attnlib.decomposition.test_shares import all_valid, batches, terms_from

LOG2 = math.log(2)


def test_hand_worked():
    """First entries: temporal alone 2/3 (ratio 2:1), input alone 4/5 (4:1), uniform 1/2, full 8/9 (8:1)."""
    terms = terms_from({(0, 0): [[LOG2, 0.0]], (1, 1): [[2 * LOG2, 0.0]]})
    results = SubstitutionSums().update(terms, all_valid(1, 1), all_valid(1, 2)).result()
    assert results["temporal_only"].similarity == pytest.approx(1 - (8 / 9 - 2 / 3))
    assert results["input_only"].similarity == pytest.approx(1 - (8 / 9 - 4 / 5))
    assert results["uniform"].similarity == pytest.approx(1 - (8 / 9 - 1 / 2))
    assert results["uniform"].argmax_agreement == 0.5
    assert results["temporal_only"].argmax_agreement == 1.0
    assert results["no_residual"].similarity == pytest.approx(1.0)
    assert results["without_temporal_temporal"].similarity == results["input_only"].similarity
    assert results["without_residual_input"].similarity == pytest.approx(1.0)


def test_a_term_the_other_way_round_disagrees():
    terms = terms_from({(0, 0): [[0.0, 1.0, 2.0]], (2, 1): [[9.0, 0.0, 0.0]]})
    results = SubstitutionSums().update(terms, all_valid(1, 1), all_valid(1, 3)).result()
    assert results["temporal_only"].argmax_agreement == 0.0
    assert results["without_residual_input"].argmax_agreement == 0.0
    assert results["without_temporal_temporal"].argmax_agreement == 1.0


def test_ties_broken_by_rounding_alone_count_as_ties():
    """One word twice: input alone cannot tell the places apart, whatever the last bit of the product says."""
    terms = terms_from({(1, 1): [[1.0, 1.0 + 1e-7, 0.0]], (0, 0): [[0.5, 0.0, 0.0]]}).float()
    results = SubstitutionSums().update(terms, all_valid(1, 1), all_valid(1, 3)).result()
    assert results["input_only"].argmax_agreement == 0.5
    assert results["temporal_only"].argmax_agreement == 1.0


def test_named_subsets():
    assert len(ALL_PAIRS) == 9
    assert len(SUBSETS) == 4 + 9
    assert SUBSETS["no_residual"] == {(d, e) for d in PART_NAMES[:2] for e in PART_NAMES[:2]}
    assert SUBSETS["without_temporal_residual"] == ALL_PAIRS - {("temporal", "residual")}
    assert not SUBSETS["uniform"]


@settings(max_examples=40)
@given(batches())
def test_agrees_with_a_loop_of_rows(batch):
    terms, target_mask, source_mask = batch
    subsets = {"decoder residual": [("residual", part) for part in PART_NAMES], "all": ALL_PAIRS, "none": []}
    results = SubstitutionSums(subsets).update(*batch).result()
    similarity, agreement, uniform = [], [], []
    for sample in range(terms.shape[2]):
        kept = terms[:, :, sample][..., source_mask[sample]]
        for target in target_mask[sample].nonzero()[:, 0]:
            if kept.shape[-1] == 1:
                continue
            full, part = kept[:, :, target].sum((0, 1)), kept[2, :, target].sum(0)
            similarity.append(1 - (full.softmax(0) - part.softmax(0)).abs().sum() / 2)
            agreement.append(float(full.argmax() == part.argmax()))
            uniform.append(1 / len(full))
    assert results["decoder residual"].similarity == pytest.approx(float(sum(similarity)) / len(similarity))
    assert results["decoder residual"].argmax_agreement == pytest.approx(sum(agreement) / len(agreement))
    assert results["all"].similarity == pytest.approx(1)
    assert results["all"].argmax_agreement == 1
    assert results["none"].argmax_agreement == pytest.approx(sum(uniform) / len(uniform))
    assert all(result.rows == len(agreement) for result in results.values())


@settings(max_examples=20)
@given(batches())
def test_streams_and_merges_in_any_order_of_names(batch):
    terms, target_mask, source_mask = batch
    whole = SubstitutionSums().update(*batch).result()
    turned = dict(reversed(SUBSETS.items()))
    first = SubstitutionSums().update(terms[:, :, :1], target_mask[:1], source_mask[:1])
    rest = SubstitutionSums(turned).update(terms[:, :, 1:], target_mask[1:], source_mask[1:])
    merged = first.merge(rest).result()
    for name, result in whole.items():
        assert merged[name].similarity == pytest.approx(result.similarity)
        assert merged[name].argmax_agreement == pytest.approx(result.argmax_agreement)


def test_nothing_and_bad_names():
    assert math.isnan(SubstitutionSums().result()["uniform"].similarity)
    with pytest.raises(UnknownName, match="'residual'"):
        SubstitutionSums({"mine": [("temporal", "residuals")]})
    with pytest.raises(BadInput, match="same subsets"):
        SubstitutionSums().merge(SubstitutionSums({"none": []}))
