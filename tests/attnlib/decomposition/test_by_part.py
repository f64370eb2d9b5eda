"""Terms and shares that answer to the names of parts, and what parts carry in several readings."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given

from attnlib import Parts, alignment_terms, shares
from attnlib.decomposition import STATE_PARTS, AlignmentTerms, ByPart, ShareSums
from attnlib.decomposition.by_part import PART_AXES
from attnlib.decomposition.shares import Shares, covariance_shares_by_sample
from attnlib.errors import BadInput, UnknownName
from tests.attnlib.decomposition import component_builders as made

batches = made.term_batches().map(lambda batch: (batch[0].unflatten(0, (3, 3)), *batch[1:]))


def small_terms():
    """Two samples, two steps, three source positions; the last position of the second is padding."""
    values = torch.arange(2 * 3 * 4.0).view(2, 3, 4)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    encoder = Parts(*((values + part).masked_fill(~mask[..., None], 0) for part in range(3)), mask=mask)
    steps = torch.ones(2, 2, dtype=torch.bool)
    decoder = Parts(*(values[:, :2] * (part + 1) for part in range(3)), mask=steps)
    return alignment_terms(decoder, encoder)


def table(rows):
    return ByPart.of(torch.tensor(rows, dtype=torch.float64), axes=PART_AXES)


# Names and numbers.


@pytest.mark.parametrize(
    ("named", "numbered"),
    [
        pytest.param(("temporal", "input"), (0, 1), id="both parts"),
        pytest.param("residual", 2, id="decoder part alone"),
        pytest.param((slice(None), "input"), (slice(None), 1), id="encoder part alone"),
        pytest.param(("input", "residual", 1, 0), (1, 2, 1, 0), id="a row of a sample"),
    ],
)
def test_a_name_is_as_good_as_its_number(named, numbered):
    terms = small_terms()
    assert torch.equal(terms[named], torch.Tensor.__getitem__(terms, numbered))
    assert type(terms[named]) is torch.Tensor


def test_terms_are_a_tensor_like_any_other():
    terms = small_terms()
    assert isinstance(terms, torch.Tensor)
    assert terms.shape == (3, 3, 2, 2, 3)
    for result in (terms + terms, terms.sum((0, 1)), terms[0, 0], torch.stack([terms])):
        assert type(result) is torch.Tensor


def test_an_unknown_part_is_refused_by_its_nearest_name():
    with pytest.raises(UnknownName, match="did you mean 'temporal'"):
        small_terms()["temporl", "input"]


@pytest.mark.parametrize("index", [(0, 0, "input"), (None, "input"), (Ellipsis, "input")])
def test_a_part_where_there_is_no_axis_of_parts_is_refused(index):
    with pytest.raises(BadInput, match="decoder_part and encoder_part"):
        small_terms()[index]


@pytest.mark.parametrize("copied", [deepcopy, lambda terms: pickle.loads(pickle.dumps(terms))])
def test_copies_keep_their_names(copied):
    terms = small_terms()
    again = copied(terms)
    assert isinstance(again, AlignmentTerms)
    assert torch.equal(again["input", "temporal"], terms["input", "temporal"])


def test_a_table_with_other_sizes_is_refused():
    with pytest.raises(BadInput, match="3 entries a side"):
        ByPart.of(torch.zeros(3, 2), axes=PART_AXES)


def test_shares_of_samples_answer_by_name_behind_the_sample():
    terms = small_terms()
    by_sample = covariance_shares_by_sample(terms)
    assert torch.equal(by_sample[:, "input", "residual"], by_sample[:, 1, 2])


# Frames and short forms.


def test_a_frame_of_terms_has_a_row_for_each_valid_entry():
    terms = small_terms()
    frame = terms.to_frame()
    assert list(frame.columns) == ["decoder_part", "encoder_part", "sample", "target", "source", "value"]
    assert len(frame) == 9 * (2 * 3 + 2 * 2)  # the second sample has two source positions
    row = frame.query("decoder_part == 'input' and encoder_part == 'residual' and sample == 1").iloc[-1]
    assert row["value"] == terms[1, 2, 1, row["target"], row["source"]]


def test_a_frame_of_shares_has_a_row_a_term():
    result = shares(small_terms())
    frame = result.to_frame().set_index(["decoder_part", "encoder_part"])
    assert frame["covariance_share"]["temporal", "residual"] == float(result.covariance[0, 2])
    assert frame["mean_absolute_share"]["residual", "input"] == float(result.mean_absolute[2, 1])


@pytest.mark.signatures
def test_short_forms_fit_a_line():
    terms = small_terms()
    for shown in (terms, shares(terms), shares(terms, split="shapley")):
        assert len(repr(shown)) < 120
        assert "\n" not in repr(shown)


# Readings of parts.


@pytest.mark.signatures
def test_hand_worked_readings():
    """Of temporal: itself 0.4, half of 0.2 and 0.1 more in cross terms."""
    covariance = table([[0.4, 0.2, 0.0], [0.0, 0.1, 0.0], [0.1, 0.0, 0.2]])
    parts = Shares(covariance, covariance, 1, rows=1, rows_left_out=0).of_parts()
    assert parts.own == pytest.approx({"temporal": 0.4, "input": 0.1, "residual": 0.2})
    assert parts.split == pytest.approx({"temporal": 0.55, "input": 0.2, "residual": 0.25})
    assert parts.any_term == pytest.approx({"temporal": 0.7, "input": 0.3, "residual": 0.3})
    assert parts.decoder == pytest.approx({"temporal": 0.6, "input": 0.1, "residual": 0.3})
    assert parts.encoder == pytest.approx({"temporal": 0.5, "input": 0.3, "residual": 0.2})
    frame = parts.to_frame()
    assert frame["split"]["temporal"] == pytest.approx(0.55)
    assert frame.index.name == "part"


@pytest.mark.parametrize("reading", ["split", "decoder", "encoder", "mean_absolute"])
@given(batch=batches)
def test_shares_of_parts_sum_to_one(reading, batch):
    parts = shares(*batch, split="shapley")
    assert sum(getattr(parts, reading).values()) == pytest.approx(1)


@given(batches)
def test_split_is_own_where_cross_terms_vanish(batch):
    terms, *masks = batch
    diagonal = torch.eye(3)[:, :, None, None, None].bool()
    parts = shares(terms.masked_fill(~diagonal, 0.0), *masks, split="shapley")
    assert parts.split == pytest.approx(parts.own)
    assert parts.any_term == pytest.approx(parts.own)


@given(batches)
def test_split_shares_are_shapley_values_of_the_two_sides(batch):
    """A term counts where both of its parts are there: the mean gain over all orders of the six parts.

    A part of either side gains a term when it comes after its partner, which is in half of the orders.
    """
    covariance = shares(*batch).covariance
    value = np.zeros(6)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(6) for _ in range(200)]
    orders += [order[::-1] for order in orders]  # each pair comes in either order equally often
    for order in orders:
        place = np.argsort(order)
        for decoder in range(3):
            for encoder in range(3):
                later = decoder if place[decoder] > place[3 + encoder] else 3 + encoder
                value[later] += float(covariance[decoder, encoder]) / len(orders)
    split = shares(*batch, split="shapley").split
    assert value[:3] + value[3:] == pytest.approx(list(split.values()))


def test_another_way_to_split_is_refused():
    with pytest.raises(BadInput, match="shapley"):
        shares(small_terms(), split="evenly")


# Pooled parts.


@pytest.fixture
def pooled():
    return small_terms().pooled("residual", "temporal")


def test_pooled_parts_have_the_place_of_the_first(pooled):
    assert pooled.parts == ("temporal+residual", "input")


def test_a_pooled_term_is_the_sum_of_its_terms(pooled):
    terms = small_terms()
    assert torch.equal(pooled["temporal+residual", "input"], terms[0, 1] + terms[2, 1])


def test_pooled_terms_sum_to_the_score(pooled):
    assert torch.equal(pooled.sum((0, 1)), small_terms().sum((0, 1)))


def test_a_table_of_pooled_terms_has_a_row_for_each(pooled):
    assert len(pooled.to_frame()) == 4 * 10


@given(batches)
def test_pooled_shares_are_those_of_the_pooled_terms(batch):
    terms, target_mask, source_mask = batch
    result = shares(*batch, pool=("input", "residual"))
    apart = shares(*batch).covariance
    delta = result.covariance["input+residual", "input+residual"]
    assert float(delta) == pytest.approx(float(apart[1:, 1:].sum()))
    assert torch.allclose(result.covariance, apart.pooled("input", "residual"))
    # Mean absolute shares do not add up: they are taken of the sum of terms.
    masked = terms.masked_fill(~(target_mask[:, :, None] & source_mask[:, None, :]), 0.0)
    as_input = torch.zeros_like(masked)
    as_input[0, 0] = masked[0, 0]
    as_input[0, 1] = masked[0, 1:].sum(0)
    as_input[1, 0] = masked[1:, 0].sum(0)
    as_input[1, 1] = masked[1:, 1:].sum((0, 1))
    expected = shares(as_input, target_mask, source_mask).mean_absolute[:2, :2]
    assert torch.allclose(result.mean_absolute, expected)


def test_pooling_one_part_is_refused():
    with pytest.raises(BadInput, match="two parts"):
        small_terms().pooled("input")


def test_sums_of_pooled_parts_merge_with_their_like_alone():
    terms = small_terms()
    halves = [ShareSums(STATE_PARTS[1:]).update(terms[:, :, half]) for half in (slice(1), slice(1, 2))]
    whole = ShareSums(STATE_PARTS[1:]).update(terms).result()
    assert torch.allclose((halves[0] + halves[1]).result().covariance, whole.covariance)
    with pytest.raises(BadInput, match="pool"):
        halves[0].merge(ShareSums())
