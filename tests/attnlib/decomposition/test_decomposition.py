"""Components, terms, shares and typical attention: by hand, against loops, and the laws they must obey."""

import math
from functools import partial
from itertools import pairwise
from operator import attrgetter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from attnlib import Components, Parts, alignment_terms, sealed, shares, substitution, typicality
from attnlib.decomposition import STATE_PARTS, SUBSETS, AttentionCells, ShareSums, SubstitutionSums, map_parts
from attnlib.decomposition.rows import valid_rows
from attnlib.decomposition.shares import covariance_shares_by_sample
from attnlib.decomposition.substitution import ALL_PAIRS, similarity_by_sample
from attnlib.decomposition.two_way import connected_pieces
from attnlib.errors import BadInput, CorruptFile
from tests.attnlib.decomposition import component_builders as made
from tests.attnlib.decomposition.component_builders import assert_same, corpora, fitted, tensors
from tests.attnlib.refusals import assert_refused, refused
from tests.tables import beside

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
TOLERANCES = st.sampled_from([(torch.float64, 1e-12), (torch.float32, 1e-5)])


def components_loop(states, tokens, mask, n_tokens):
    def mean(rows):
        return rows.mean(0) if len(rows) else np.zeros(states.shape[2])

    temporal = np.stack([mean(states[mask[:, t], t]) for t in range(mask.shape[1])])
    return temporal, np.stack([mean((states - temporal)[mask & (tokens == w)]) for w in range(n_tokens)])


@pytest.mark.signatures
def test_hand_worked_components():
    """Two samples of two places, tokens a b / a a: mu = (2, 6); a = (-1 + 1 + 2) / 3, b = -2."""
    states = torch.tensor([[[1.0], [4.0]], [[3.0], [8.0]]])
    tokens = torch.tensor([[0, 1], [0, 0]])
    components = Components(1, n_tokens=3, n_positions=2).update(states, tokens)
    assert components.temporal.flatten().tolist() == [2.0, 6.0]
    assert components.input.flatten().tolist() == [2 / 3, -2.0, 0.0]
    assert components.token_counts.tolist() == [3, 1, 0]
    assert components.position_counts.tolist() == [2, 2]
    assert components.seen.tolist() == [True, True, False]
    parts = components.split(states, tokens)
    assert torch.allclose(parts.residual.flatten(), torch.tensor([-5 / 3, 0.0, 1 / 3, 4 / 3]))
    assert parts.residual[0, 1].item() == 0.0  # b was seen once: nothing is left on its own sample


def fitted_and_split(device, corpus, dtype):
    """Components of a corpus on a device and in a precision, its parts, and its states with their mask."""
    states, tokens, mask = (tensor.to(device) for tensor in tensors(corpus, dtype))
    places = int(mask.any(0).nonzero().max()) + 1  # columns of padding beyond the table are no error
    components = Components(states.shape[2], n_tokens=corpus[3], n_positions=places)
    parts = components.update(states, tokens, mask).split(states, tokens, mask)
    return components, parts, states, mask


def precision_of(dtype):
    return 1e-12 if dtype == torch.float64 else 1e-5


@pytest.mark.signatures
@pytest.mark.parametrize("device", DEVICES)
@given(corpora(), st.sampled_from(DTYPES))
def test_components_agree_with_a_loop(device, corpus, dtype):
    components, _, states, _ = fitted_and_split(device, corpus, dtype)
    rounded = states.double().cpu().numpy(), *corpus[1:]  # a running sum in float16 would saturate
    temporal, words = components_loop(*rounded)
    means = components.temporal.cpu(), components.input.cpu()
    assert_same(means, (temporal[: len(components.temporal)], words), rounded, precision_of(dtype))


@pytest.mark.signatures
@pytest.mark.parametrize("device", DEVICES)
@given(corpora(), st.sampled_from(DTYPES))
def test_parts_rebuild_the_states(device, corpus, dtype):
    _, parts, states, mask = fitted_and_split(device, corpus, dtype)
    rounded = states.double().cpu().numpy(), *corpus[1:]
    assert_same((parts.total()[mask].cpu(),), (rounded[0][rounded[2]],), rounded, precision_of(dtype))


@pytest.mark.parametrize("device", DEVICES)
@given(corpora(), st.sampled_from(DTYPES))
def test_parts_have_the_precision_of_the_states_single_at_least(device, corpus, dtype):
    _, parts, states, _ = fitted_and_split(device, corpus, dtype)
    expected = torch.promote_types(dtype, torch.float32), states.device
    assert [(part.dtype, part.device) for part in parts] == [expected] * 3


@given(corpora(), st.sampled_from(DTYPES))
def test_parts_are_zero_at_padding(corpus, dtype):
    _, parts, _, mask = fitted_and_split("cpu", corpus, dtype)
    assert not any(part[~mask].any() for part in parts)


@given(corpora())
def test_nothing_that_was_fitted_on_is_unseen(corpus):
    _, parts, _, _ = fitted_and_split("cpu", corpus, torch.float32)
    assert parts.unseen_tokens == parts.unseen_positions == 0


@pytest.mark.parametrize("kind", ["means", "least_squares", "growing"])
@given(corpora(), TOLERANCES, st.data())
def test_any_split_merged_in_any_order_is_the_whole(kind, corpus, precision, data):
    dtype, tolerance = precision
    batch = len(corpus[0])
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, batch), max_size=4))), batch]
    rows = data.draw(st.permutations(range(batch)))
    order = data.draw(st.permutations([fitted(corpus, kind, dtype, rows[a:b]) for a, b in pairwise(cuts)]))
    while len(order) > 1:
        at = data.draw(st.integers(0, len(order) - 2))
        sums = [table.clone() for table in sums_of(order[at])]
        merged = order[at] + order[at + 1]
        assert all(map(torch.equal, sums_of(order[at]), sums))  # both stay as they are
        order[at : at + 2] = [merged]
    merged, whole = order[0], fitted(corpus, kind, dtype)
    parts, expected = (components.split(*tensors(corpus, dtype)) for components in (merged, whole))
    exact = kind == "least_squares"
    assert_same(parts, expected, corpus, max(tolerance, 1e-8 * exact))
    assert parts.unseen_tokens == parts.unseen_positions == 0
    if exact:
        assert float(merged.square_sum) == pytest.approx(float(whole.square_sum))


# Precisions, layouts and devices: the sums must not depend on how the states arrive.


def drawn(batch, length=5, width=3, n_tokens=11, *, ragged=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(batch, length, width, generator=generator, dtype=torch.float64)
    tokens = torch.randint(n_tokens, (batch, length), generator=generator)
    lengths = torch.randint(1, length + 1, (batch, 1), generator=generator) if ragged else length
    return states, tokens, torch.arange(length).expand(batch, length) < lengths


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(
    ("batch", "n_tokens", "of_states", "tolerance"),
    [  # integers, of which every sum is exact in float32, around the size of a bag and beyond sixteen bits
        *((batch, 2, lambda states: (8 * states).round(), 0) for batch in (1, 31, 32, 33, 64, 200)),
        (50, 100_000, lambda states: (8 * states).round(), 0),
        # a mean of 1,000 times the spread: a running sum in float32 loses 1e-4 there
        (100_000, 1, lambda states: 1000.1 + states, 2e-7),
    ],
)
def test_sums_are_exact_or_kept_to_float32_rounding(batch, n_tokens, of_states, tolerance, ragged):
    states, tokens, mask = drawn(batch, n_tokens=n_tokens, ragged=ragged)
    states = of_states(states).float()
    components = Components(3, n_tokens=n_tokens, n_positions=5).update(states, tokens, mask)
    kept = states.double()[mask]
    for sums, rows in zip(sums_of(components)[:2], (mask.nonzero()[:, 1], tokens[mask]), strict=True):
        expected = torch.zeros_like(sums, dtype=torch.float64).index_add_(0, rows, kept)
        torch.testing.assert_close(sums, expected, rtol=tolerance, atol=0)


DRAWN, WORDS, RAGGED = drawn(64, 4, 3, 5, ragged=True)
ARRAYS, ALL = DRAWN.numpy(), torch.ones_like(RAGGED)
FORMS = {
    "arrays": (ARRAYS, WORDS.numpy(), RAGGED.numpy()),
    "lists and no mask": (ARRAYS, WORDS.tolist(), None),
    "smaller integers and no mask": (DRAWN, WORDS.int().numpy()),
    "an array that cannot be written": (np.broadcast_to(ARRAYS, DRAWN.shape), WORDS),
    "the other order in memory": (DRAWN.transpose(0, 1).contiguous().transpose(0, 1), WORDS, RAGGED),
    "every second number": (torch.stack((DRAWN, DRAWN + 1), dim=-1)[..., 0], WORDS.to(torch.uint8), RAGGED),
    "backwards in memory": (ARRAYS[:, ::-1].copy()[:, ::-1], WORDS.numpy()[::-1].copy()[::-1], RAGGED),
    "the other order of bytes": (ARRAYS.astype(ARRAYS.dtype.newbyteorder(">")), WORDS.numpy().astype(">i8")),
    "zeros and ones for a mask": (DRAWN, WORDS, RAGGED.long()),
    "a gradient": (DRAWN.clone().requires_grad_(), WORDS, RAGGED),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", [lambda: Components(3, n_tokens=5, n_positions=4), lambda: Components(3)])
def test_whatever_form_a_batch_has_it_is_the_same_to_the_last_digit(make, form):
    given = FORMS[form]
    plain = DRAWN, WORDS, ALL if all(mask is None for mask in given[2:]) else RAGGED
    expected, components = make().update(*plain), make().update(*given)
    assert all(map(torch.equal, sums_of(components), sums_of(expected)))
    parts = components.split(*given)
    assert torch.equal(parts.stack(), expected.split(*plain).stack())
    assert not parts.total().requires_grad


def test_components_are_shown_by_their_sizes():
    text = repr(Components(3, n_tokens=5, n_positions=4).update([[[1.0, 2, 3]] * 2], [[4, 4]]))
    assert text == "Components(width=3, n_tokens=5, n_positions=4, method='means') of 2 positions, 1 tokens"


# What cannot be, of both kinds.

SUMS = attrgetter("position_sums", "token_sums", "pair_counts", "square_sum")
MAKE = {
    "fixed": lambda: Components(4, n_tokens=5, n_positions=3),
    "exact": lambda: Components(4, n_tokens=5, n_positions=3, method="least_squares"),
    "growing": lambda: Components(4),
}


def batch_of(tokens=((0, 0, 0), (0, 0, 0)), mask=None, width=4, states=None):
    tokens = torch.tensor(tokens)
    mask = torch.ones(tokens.shape, dtype=torch.bool) if mask is None else torch.tensor(mask)
    return torch.ones(*tokens.shape, width) if states is None else states, tokens, mask


def sums_of(components):
    return SUMS(components)


ONES, DIVERGED = torch.ones(2, 3, 4), torch.ones(2, 3, 4)
DIVERGED[1, 2, 0] = torch.nan
BATCHES = beside(__file__, "refused")
BAD, OF_FIXED = (
    {message: batch_of(**changed) for changed, message in BATCHES[kind]} for kind in ("every", "fixed")
)
# Of states that are not finite the sums alone know: they are split as they are.
ONLY_UPDATES = {"not finite … first at sample 1, position 2": batch_of([[1] * 3] * 2, states=DIVERGED)}
BAD |= {
    "Tokens of shape (2, 2) … expected (2, 3), that is": batch_of([[0, 0], [0, 0]], states=ONES),
    "states of shape (2, 3); expected": batch_of(states=torch.ones(2, 3)),
    "tokens is list, which cannot be converted to a tensor": (ONES, [["a"] * 3] * 2),
    "tokens is list": (ONES, [[1, 2, 3], [4]]),
    "states is str": batch_of(states="states"),
    "states is NoneType, which cannot be converted to a tensor; give a torch.Tensor": (None, [[1] * 3] * 2),
    "states is on the device meta and has no numbers; give": batch_of(states=ONES.to("meta")),
    "states is a masked array; give its .data, and a mask": (np.ma.masked_array(ONES), [[1] * 3] * 2),
}


REFUSED_BY_BOTH = [(kind, *row) for kind in MAKE for row in BAD.items()]
REFUSED_BY_BOTH += [("fixed", *row) for row in OF_FIXED.items()]


@pytest.mark.parametrize(("kind", "message", "batch"), REFUSED_BY_BOTH)
def test_a_batch_that_is_refused_is_not_split(kind, message, batch):
    components = MAKE[kind]().update(*batch_of())
    assert_refused(partial(components.split, *batch), message)


NOT_COUNTED = [
    *REFUSED_BY_BOTH,
    *((kind, *row) for kind in MAKE for row in ONLY_UPDATES.items()),
    ("exact", "squares overflow", batch_of(states=1e200 * ONES.double())),
]


@pytest.mark.parametrize(("kind", "message", "batch"), NOT_COUNTED)
def test_a_batch_that_cannot_be_counted_is_refused(kind, message, batch):
    components = MAKE[kind]().update(*batch_of())
    assert_refused(partial(components.update, *batch), message)


@pytest.mark.parametrize(("kind", "message", "batch"), NOT_COUNTED)
def test_a_batch_that_is_refused_leaves_the_sums_alone(kind, message, batch):
    components = MAKE[kind]().update(*batch_of())
    before = [table.clone() for table in sums_of(components)]
    with pytest.raises(BadInput):
        components.update(*batch)
    assert all(map(torch.equal, sums_of(components), before))
    assert components.split(*batch_of([[1, 0, 0], [0, 0, 0]])).unseen_tokens == 1


@pytest.fixture(params=["means", "least_squares"])
def saved(request, tmp_path):
    """Components by either method, and the file that they are saved in."""
    path = tmp_path / "c.safetensors"
    components = Components(4, n_tokens=5, n_positions=3, method=request.param).update(*drawn(9, 3, 4, 5))
    components.save(path)
    return components, path


@pytest.mark.signatures
def test_components_that_were_saved_are_loaded_as_they_were(saved):
    components, path = saved
    loaded = Components.load(path)
    assert loaded.method == components.method
    assert all(map(torch.equal, sums_of(loaded + components), sums_of(components + components)))
    assert torch.equal(loaded.input, components.input)


def test_a_file_of_the_first_format_has_a_row_for_every_token(saved):
    components, path = saved
    tables = {name: getattr(components, name) for name in ("position_sums", "token_sums", "pair_counts")}
    metadata = {"format": "attnlib.components/1", "method": components.method}
    sealed.save_file(tables | {"square_sum": components.square_sum}, path, metadata)
    loaded = Components.load(path)
    assert loaded.method == components.method
    assert all(map(torch.equal, sums_of(loaded), sums_of(components)))


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param({"format": "attnlib.components/1"}, "its checksum is another", id="no_checksum"),
        pytest.param(None, "holds no components", id="no_format"),
    ],
)
def test_a_file_without_components_is_not_loaded(saved, metadata, message):
    _, path = saved
    save_file(load_file(path), path, metadata=metadata)
    assert_refused(lambda: Components.load(path), message, CorruptFile)


# Growing components: what the fixed tables say, of a vocabulary and lengths that nobody named beforehand.

FAR = 13  # between two ids
STREAMS = corpora(width=3, longest=40, words=(1, 5, 400))


def batches_of(corpus, size, dtype):
    """Batches as long as their own samples, their ids far apart."""
    for start in range(0, len(corpus[0]), size):
        states, tokens, mask = tensors(corpus, dtype, slice(start, start + size))
        kept = slice(int(mask.any(0).nonzero().max()) + 1)
        yield states[:, kept], torch.where(mask, FAR * tokens, tokens)[:, kept], mask[:, kept]


@pytest.mark.slow
@given(STREAMS, STREAMS, st.integers(1, 70), st.sampled_from(DTYPES))
def test_growing_tables_say_what_fixed_tables_say_of_any_stream(corpus, other, size, dtype):
    """Through tensors on the way; the other stream has words and places that the first has not."""
    streams = [list(batches_of(part, size, dtype)) for part in (corpus, other)]
    grown, fixed = Components(3), Components(3, n_tokens=FAR * 400, n_positions=40)
    for stream in streams:
        grown = Components(3).load_state_dict(grown.state_dict())
        for batch in stream:
            grown.update(*batch)
            fixed.update(*batch)
        before = [table.clone() for table in grown.state_dict().values()]
        for batch in streams[0] + streams[1]:
            parts, expected = grown.split(*batch), fixed.split(*batch)
            torch.testing.assert_close(parts.stack(), expected.stack(), rtol=0, atol=1e-10)
            assert parts.unseen_tokens == expected.unseen_tokens
            assert parts.unseen_positions == expected.unseen_positions
        assert all(map(torch.equal, grown.state_dict().values(), before))  # looking is not counting
        assert grown.tokens.tolist() == fixed.seen.nonzero()[:, 0].tolist()
        assert grown.occurrences == int(fixed.pair_counts.sum())


SIZES = [pytest.param({}, id="growing"), pytest.param({"n_tokens": 70_001, "n_positions": 3}, id="fixed")]


def split_with_unseen_words(sizes):
    """Parts of words and places of which some were not fitted on; every state is 1."""
    components = Components(1, **sizes).update(*batch_of([[5, 6]], width=1))
    mask = [[True, True, True], [True, True, True], [True, False, False]]
    return components.split(*batch_of([[5, 7, 5], [70_000, 6, 6], [5, 7, 7]], mask, width=1))


@pytest.mark.parametrize("sizes", SIZES)
def test_unseen_tokens_are_counted(sizes):
    parts = split_with_unseen_words(sizes)
    assert (parts.unseen_tokens, parts.valid, parts.unseen_share) == (2, 7, 2 / 7)


@pytest.mark.parametrize("sizes", SIZES)
def test_unseen_positions_are_counted(sizes):
    assert split_with_unseen_words(sizes).unseen_positions == 2


@pytest.mark.parametrize("sizes", SIZES)
def test_an_unseen_position_has_no_temporal_part(sizes):
    temporal = split_with_unseen_words(sizes).temporal[..., 0]
    assert temporal.tolist() == [[1, 1, 0], [1, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("sizes", SIZES)
def test_an_unseen_token_has_no_input_part(sizes):
    assert not split_with_unseen_words(
        sizes
    ).input.any()  # that of the others is 1 less the mean of its place


def two_words_apart():
    """Components of two words that are at places 0 and 1, where they are 1 and 4; and a batch with others."""
    components = Components(1, method="least_squares")
    components.update(*batch_of([[5, 6]], states=torch.tensor([[[1.0], [4.0]]])))
    _, *batch = batch_of([[5, 7, 5], [7, 6, 6]], [[True, True, True], [True, True, False]])
    return components, (torch.ones(2, 3, 1), *batch)


def test_known_places_by_hand():
    components, batch = two_words_apart()
    assert components.at_places(*batch).known.tolist() == [[True, False, False], [False, True, False]]


def test_the_centre_by_hand():
    components, batch = two_words_apart()
    assert components.at_places(*batch).centre.tolist() == components.centre.tolist() == [2.5]


def test_means_at_places_count_what_is_unseen_as_parts_do():
    components, batch = two_words_apart()
    for counted in (components.split(*batch), components.at_places(*batch)):
        assert (counted.unseen_tokens, counted.unseen_positions) == (2, 1)


def test_parts_made_of_tensors_count_nothing_as_unseen():
    components, batch = two_words_apart()
    parts = components.split(*batch)
    plain = Parts(*parts.stack(), mask=parts.mask)
    assert (plain.unseen_tokens, plain.unseen_positions) == (0, 0)


def test_a_place_that_no_sample_counts_comes_before_others_that_do():
    """A start mark that is ignored leaves its column empty; those behind it are kept, in the tensors too."""
    batch = batch_of([[1, 5, 6]], [[False, True, True]], width=1)
    components = Components(1).update(*batch)
    for same in (components, Components(1).load_state_dict(components.state_dict())):
        parts = same.split(*batch)
        assert (parts.temporal.flatten().tolist(), parts.unseen_positions) == ([0, 1, 1], 0)


def test_memory_is_for_what_is_seen_alone():
    """Three words of a vocabulary of a million at two places: 3 + 2 sums of width 1, 3 by 2 counts."""
    components = Components(1).update(*batch_of([[5, 999_999], [5, 7]], width=1))
    assert components.nbytes == 8 * (3 + 2 + 3 * 2)
    assert components.input.shape == (1_000_000, 1)


# The exact two-way fit against dummy-coded least squares, and the laws that fix it.


def design(corpus):
    """Dummy codes of position and of token for every valid place, and its state."""
    states, tokens, mask, n_tokens = corpus
    positions = np.eye(mask.shape[1])[np.nonzero(mask)[1]]
    return positions, np.eye(n_tokens)[tokens[mask]], states[mask]


def r_squared(codes, rows):
    """Share of variance by numpy's own least squares."""
    left = rows - codes @ np.linalg.lstsq(codes, rows, rcond=None)[0]
    return 1 - (left**2).sum() / ((rows - rows.mean(0)) ** 2).sum()


@pytest.mark.slow
@given(corpora())
def test_it_is_dummy_coded_least_squares_with_the_free_constants_chosen(corpus):
    positions, words, rows = design(corpus)
    codes, counts, scale = np.hstack([positions, words]), words.sum(0), np.abs(rows).max()
    fit = codes @ np.linalg.lstsq(codes, rows, rcond=None)[0]
    components = fitted(corpus, "least_squares")
    solution = np.vstack([components.temporal.numpy(), components.input.numpy()])
    assert np.abs(codes @ solution - fit).max() <= 1e-9 * scale
    # the normal equations: what is left has no mean at any position and none on any token
    assert np.abs(codes.T @ (rows - codes @ solution)).max() <= 1e-9 * np.abs(rows).sum()

    # the weighted sum of chi is zero, and numpy's least-norm solution among those with it zero is the same
    assert np.abs(counts @ components.input.numpy()).max() <= 1e-9 * scale * counts.sum()
    constraint = np.concatenate([np.zeros(positions.shape[1]), counts])[None, :]
    expected = np.linalg.lstsq(np.vstack([codes, constraint]), np.vstack([fit, 0 * fit[:1]]), rcond=None)[0]
    assert np.abs(solution - expected).max() <= 1e-8 * scale

    explained = components.variance_explained()
    if len(rows) == 1:
        assert np.isnan(explained.temporal)
        return
    both, by_position, by_token = (
        r_squared(codes_of_model, rows) for codes_of_model in (codes, positions, words)
    )
    shares = by_position, both, both - by_token, both - by_position
    names = "temporal", "additive", "temporal_unique", "input_unique"
    assert [getattr(explained, name) for name in names] == pytest.approx(shares, abs=1e-7)


@pytest.mark.signatures
def test_hand_worked_unbalanced_words():
    """h = t + 10 w without noise: averages give part of position to the words, the exact fit does not."""
    tokens = torch.tensor([[0, 1], [0, 1], [0, 0], [1, 1]])
    states = (torch.arange(2) + 10.0 * tokens)[:, :, None]
    exact = Components(1, n_tokens=2, n_positions=2, method="least_squares").update(states, tokens)
    assert exact.temporal.flatten().tolist() == pytest.approx([5, 6])
    assert exact.input.flatten().tolist() == pytest.approx([-5, 5])
    assert exact.split(states, tokens).residual.abs().max() < 1e-6
    means = Components(1, n_tokens=2, n_positions=2).update(states, tokens)
    assert means.temporal.flatten().tolist() == pytest.approx([2.5, 8.5])
    shares = exact.variance_explained()
    assert shares.additive == pytest.approx(1)
    # 0 0 0 10 at position 0, 11 11 1 11 at 1: squares around 5.5 sum to 222, those of the means to 8 * 9
    assert shares.temporal == pytest.approx(72 / 222)


def test_pieces_of_positions_that_no_token_connects():
    """Position 0 has the mark alone; 1 and 2 share a word; 3 was never seen."""
    counts = torch.tensor([[5, 0, 0, 0], [0, 2, 1, 0], [0, 0, 4, 0], [0, 0, 0, 0]])
    assert connected_pieces(counts).tolist() == [[1, 0, 0, 0], [0, 1, 1, 0]]


@pytest.mark.parametrize("more", [(), (7, 8)])
def test_a_mark_with_a_place_to_itself_is_all_place_however_many_words_there_are(more):
    """The mark is 6, and k words are 2.5 in the mean. By least norm it has c of its 6, they 2.5 + c in mu and
    −c in the mean of chi, and c² + (6 − c)² + (2.5 + c)² + kc² is least at 3.5 / (3 + k).
    """
    tokens = torch.tensor([[0, 5], [0, 6], *([0, word] for word in more)])
    states = torch.tensor([[6.0, 1.0], [6.0, 4.0], *([6.0, 2.5] for _ in more)])[:, :, None]
    batch = states, tokens, torch.ones(tokens.shape, dtype=torch.bool)
    components = Components(1, "least_squares", constants="by_count").update(*batch)
    parts = components.split(*batch)
    assert parts.temporal.flatten(1)[0].tolist() == pytest.approx([6, 2.5])
    assert parts.input.flatten(1)[:2].flatten().tolist() == pytest.approx([0, -1.5, 0, 1.5])
    other = components.refitted("least_squares", "least_norm").split(*batch)
    assert float(other.input[0, 0]) == pytest.approx(3.5 / (3 + len(tokens)))
    torch.testing.assert_close(other.residual, parts.residual, rtol=0, atol=1e-6)


def test_large_mean_small_spread_in_single_precision():
    """Sums of squares cancel: with a mean of 300 spreads the shares must still be right."""
    rng = np.random.default_rng(1)
    states = (300 + rng.normal(size=(64, 5, 3))).astype(np.float32)
    corpus = states, rng.integers(0, 6, size=(64, 5)), np.ones((64, 5), dtype=bool), 6
    positions, words, rows = design(corpus)
    expected = r_squared(np.hstack([positions, words]), rows.astype(float))
    explained = fitted(corpus, "least_squares").variance_explained()
    assert explained.additive == pytest.approx(expected, rel=1e-6)


def test_states_that_do_not_vary_have_no_shares():
    corpus = np.full((3, 2, 2), 7.0), np.zeros((3, 2), dtype=int), np.ones((3, 2), dtype=bool), 1
    assert np.isnan(fitted(corpus, "least_squares").variance_explained().additive)


def explained_of(states):
    """The variance that two tokens at two positions explain of four states with one number each."""
    tokens = torch.tensor([[0, 1], [1, 0]])
    components = Components(1, n_tokens=2, n_positions=2, method="least_squares")
    return components.update(states[..., None], tokens).variance_explained()


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_what_explains_variance_does_not_depend_on_the_size_of_states(size):
    """Positions alone: the token says nothing."""
    states = size * torch.tensor([[1.0, 2.0], [1.0, 2.0]], dtype=torch.float64)
    assert explained_of(states).temporal == pytest.approx(1)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_variance_that_is_rounding_of_states_is_explained_by_nothing(size):
    states = size * torch.tensor([[1.0, 1 + 1e-7], [1.0, 1 + 1e-7]], dtype=torch.float64)
    assert math.isnan(explained_of(states).temporal)


# Terms of scores, and their shares.

CORPORA = corpora(width=3, batch=5, words=(1, 7))


def side(corpus, dtype):
    states, tokens, mask = tensors(corpus, dtype)
    parts = fitted(corpus, dtype=dtype).split(states, tokens, mask)
    return states.masked_fill(~mask[:, :, None], 0), mask, parts


def slack_of(decoder, encoder, tolerance):
    return 4 * tolerance * decoder.norm(dim=-1).max() * encoder.norm(dim=-1).max()


@given(CORPORA, CORPORA, TOLERANCES)
def test_terms_sum_to_the_score(first, second, precision):
    dtype, tolerance = precision
    decoder, _, decoder_parts = side(first, dtype)
    encoder, _, encoder_parts = side(second, dtype)
    terms = alignment_terms(decoder_parts, encoder_parts)
    scores = decoder @ encoder.transpose(1, 2)
    assert terms.dtype == dtype
    assert terms.shape == (3, 3, *scores.shape)
    assert (terms.sum((0, 1)) - scores).abs().max() <= slack_of(decoder, encoder, tolerance)


@given(CORPORA, CORPORA, TOLERANCES)
def test_a_term_is_the_scaled_product_of_its_two_parts(first, second, precision):
    dtype, tolerance = precision
    decoder, _, decoder_parts = side(first, dtype)
    encoder, _, encoder_parts = side(second, dtype)
    halves = alignment_terms(decoder_parts, encoder_parts, scale=0.5)
    products = torch.einsum("ibtd,jbsd->ijbts", decoder_parts.stack(), encoder_parts.stack())
    assert (halves - products / 2).abs().max() <= slack_of(decoder, encoder, tolerance)


@given(CORPORA, CORPORA, TOLERANCES)
def test_terms_are_zero_at_padding(first, second, precision):
    _, target_mask, decoder_parts = side(first, precision[0])
    _, source_mask, encoder_parts = side(second, precision[0])
    terms = alignment_terms(decoder_parts, encoder_parts)
    assert not terms[:, :, ~(target_mask[:, :, None] & source_mask[:, None, :])].any()


@pytest.mark.signatures
def test_hand_worked_terms_are_decoder_by_encoder():
    place = torch.ones(1, 1, dtype=torch.bool)
    values = torch.tensor([[1.0, 2, 3], [10, 20, 40]])[:, :, None, None, None]
    terms = alignment_terms(*(Parts(*parts, mask=place) for parts in values))
    assert terms[:, :, 0, 0, 0].tolist() == [[10, 20, 40], [20, 40, 80], [30, 60, 120]]
    assert STATE_PARTS == ("temporal", "input", "residual")


@pytest.mark.signatures
@given(CORPORA, TOLERANCES, st.booleans())
def test_mapped_parts_are_the_parts_of_the_mapped_states(corpus, precision, with_bias):
    """Fitting commutes with a linear map: splitting W h + b gives the mapped parts."""
    dtype, tolerance = precision
    states, mask, parts = side(corpus, dtype)
    weight = torch.randn(4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
    bias = torch.arange(4.0, dtype=dtype) if with_bias else None
    mapped = torch.nn.functional.linear(states, weight, bias)
    tokens = torch.from_numpy(corpus[1])
    again = (
        Components(4, n_tokens=corpus[3], n_positions=mask.shape[1])
        .update(mapped, tokens, mask)
        .split(mapped, tokens, mask)
    )
    scale = states.abs().max() * weight.abs().max() * 3 + 4
    for mine, theirs in zip(map_parts(parts, weight, bias), again, strict=True):
        assert (mine - theirs).abs().max() <= 4 * tolerance * scale


LOG2 = math.log(2)


def terms_of(rows):
    """Terms of one sample and one target, zero but for {(decoder part, encoder part): row}, and masks."""
    source = len(next(iter(rows.values())))
    terms = torch.zeros(3, 3, 1, 1, source, dtype=torch.float64)
    for pair, row in rows.items():
        terms[pair] = torch.tensor(row, dtype=torch.float64)
    return terms, torch.ones(1, 1, dtype=torch.bool), torch.ones(1, source, dtype=torch.bool)


def of_terms(sums, rows):
    return sums.update(*terms_of(rows)).result()


batches = made.term_batches().map(lambda batch: (batch[0].unflatten(0, (3, 3)), *batch[1:]))


def rows_of(terms, target_mask, source_mask):
    """The (9, positions) terms of every row with more than one valid position."""
    for sample, target in target_mask.nonzero().tolist():
        row = terms[:, :, sample, target][:, :, source_mask[sample]].flatten(0, 1)
        if row.shape[1] > 1:
            yield row


def part_of(batch, rows):
    terms, target_mask, source_mask = batch
    return terms[:, :, rows], target_mask[rows], source_mask[rows]


@pytest.mark.signatures
def test_hand_worked_shares():
    """Temporal 1 -1 and input 3 -3 after centring, total 4 -4: a quarter and three quarters, either way."""
    shares = of_terms(ShareSums(), {(0, 0): [6.0, 4.0], (1, 1): [10.0, 4.0]})
    assert shares.mean_absolute[0, 0] == shares.covariance[0, 0] == shares.temporal == 0.25
    assert shares.mean_absolute[1, 1] == shares.covariance[1, 1] == 0.75
    assert (shares.rows, shares.entries, shares.rows_left_out) == (1, 2, 0)


@given(batches)
def test_shares_agree_with_numpy(batch):
    rows = [row - row.mean(1, keepdim=True) for row in rows_of(*batch)]
    pooled = torch.cat(rows, 1).numpy()
    total = pooled.sum(0)
    result = ShareSums().update(*batch).result()
    covariance = [np.cov(term, total, bias=True)[0, 1] / total.var() for term in pooled]
    means = np.abs(pooled).mean(1)
    assert np.allclose(result.covariance.flatten(), covariance, rtol=1e-9, atol=1e-12)
    assert np.allclose(result.mean_absolute.flatten(), means / means.sum(), rtol=1e-12)


@given(batches)
def test_rows_of_shares_are_counted(batch):
    rows = list(rows_of(*batch))
    result = ShareSums().update(*batch).result()
    assert (result.rows, result.entries) == (len(rows), sum(row.shape[1] for row in rows))
    assert result.rows + result.rows_left_out == int(batch[1].sum())


@given(batches)
def test_shares_sum_to_one(batch):
    result = ShareSums().update(*batch).result()
    assert result.covariance.sum().item() == pytest.approx(1)
    assert result.mean_absolute.sum().item() == pytest.approx(1)


@given(batches)
def test_shares_ignore_constants_along_a_row(batch):
    shifted = batch[0] + torch.linspace(-50, 50, 9, dtype=torch.float64).view(3, 3, 1, 1, 1)
    moved = ShareSums().update(shifted, *batch[1:]).result()
    assert torch.allclose(moved.covariance, ShareSums().update(*batch).result().covariance, atol=1e-8)


@given(batches, st.integers(0, 12))
def test_shares_of_two_parts_merge_into_those_of_the_whole(batch, cut):
    first, second = (ShareSums().update(*part_of(batch, rows)) for rows in (slice(cut), slice(cut, None)))
    merged, whole = (second + first).result(), ShareSums().update(*batch).result()
    torch.testing.assert_close(vars(merged), vars(whole), rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize(
    ("rows", "mean_absolute"),
    [  # 0.1 + 0.2 - 0.3 is not zero in floating point: such a total has no variance to share
        ({(0, 0): [2.0, 2.0, 2.0], (2, 2): [1.0, 1.0, 1.0]}, math.nan),
        ({(0, 0): [0.1, 0.0], (1, 1): [0.2, 0.0], (2, 2): [-0.3, 0.0]}, 0.5),
    ],
)
def test_undefined_where_nothing_varies_or_the_terms_cancel_up_to_rounding(rows, mean_absolute):
    shares = of_terms(ShareSums(), rows)
    assert shares.mean_absolute[2, 2].item() == pytest.approx(mean_absolute, nan_ok=True)
    assert shares.covariance.isnan().all()
    assert covariance_shares_by_sample(*terms_of(rows)).isnan().all()
    assert ShareSums().result().covariance.isnan().all()
    assert math.isnan(SubstitutionSums().result()["uniform"].similarity)


@pytest.mark.signatures
def test_hand_worked_substitution():
    """First entries: temporal alone 2/3 (ratio 2:1), input alone 4/5 (4:1), uniform 1/2, full 8/9 (8:1)."""
    results = of_terms(SubstitutionSums(), {(0, 0): [LOG2, 0.0], (1, 1): [2 * LOG2, 0.0]})
    similarities = {"temporal_only": 2 / 3, "input_only": 4 / 5, "uniform": 1 / 2, "no_residual": 8 / 9}
    similarities |= {"without_temporal_temporal": 4 / 5, "without_residual_input": 8 / 9}
    for name, first in similarities.items():
        assert results[name].similarity == pytest.approx(1 - (8 / 9 - first))


SKEWED = {(0, 0): [0.0, 1.0, 2.0], (2, 1): [9.0, 0.0, 0.0]}
AGREES = {"temporal_only": 0, "without_residual_input": 0, "without_temporal_temporal": 1, "uniform": 1 / 3}
# one word twice: input alone cannot tell the places apart, whatever the last bit of the product says
TWICE = {(1, 1): [1.0, 1.0 + 1e-7, 0.0], (0, 0): [0.5, 0.0, 0.0]}


@pytest.mark.signatures
@pytest.mark.parametrize(
    ("rows", "agreement"), [(SKEWED, AGREES), (TWICE, {"input_only": 1 / 2, "temporal_only": 1})]
)
def test_hand_worked_agreement(rows, agreement):
    terms, *masks = terms_of(rows)
    results = SubstitutionSums().update(terms.float(), *masks).result()
    assert {name: results[name].argmax_agreement for name in agreement} == pytest.approx(agreement)


SUBSETS_BY_HAND = {
    "decoder residual": [("residual", part) for part in STATE_PARTS],
    "all": ALL_PAIRS,
    "none": [],
}


@given(batches)
def test_substitution_agrees_with_a_loop_of_rows(batch):
    result = SubstitutionSums(SUBSETS_BY_HAND).update(*batch).result()["decoder residual"]
    similarity, agreement = [], []
    for row in rows_of(*batch):
        full, part = row.sum(0), row[6:].sum(0)
        similarity.append(float(1 - (full.softmax(0) - part.softmax(0)).abs().sum() / 2))
        agreement.append(float(full.argmax() == part.argmax()))
    assert result.similarity == pytest.approx(np.mean(similarity))
    assert result.argmax_agreement == pytest.approx(np.mean(agreement))


@given(batches)
def test_all_terms_rebuild_attention(batch):
    result = SubstitutionSums(SUBSETS_BY_HAND).update(*batch).result()["all"]
    assert result.similarity == pytest.approx(1)
    assert result.argmax_agreement == 1


@given(batches)
def test_no_terms_agree_as_often_as_uniform_attention(batch):
    result = SubstitutionSums(SUBSETS_BY_HAND).update(*batch).result()["none"]
    expected = np.mean([1 / row.shape[1] for row in rows_of(*batch)])
    assert result.argmax_agreement == pytest.approx(expected)


@given(batches)
def test_every_row_counts_for_each_subset(batch):
    results = SubstitutionSums(SUBSETS_BY_HAND).update(*batch).result()
    assert {result.rows for result in results.values()} == {len(list(rows_of(*batch)))}


@given(batches)
def test_substitution_merges_in_any_order_of_names(batch):
    first = SubstitutionSums(SUBSETS_BY_HAND).update(*part_of(batch, slice(1)))
    reversed_names = dict(reversed(SUBSETS_BY_HAND.items()))
    merged = first.merge(SubstitutionSums(reversed_names).update(*part_of(batch, slice(1, None)))).result()
    for name, result in SubstitutionSums(SUBSETS_BY_HAND).update(*batch).result().items():
        assert vars(merged[name]) == pytest.approx(vars(result))


# Single samples: the pooled definitions applied to one sample at a time are the oracle.


@given(batches)
def test_each_sample_has_what_it_has_alone(batch):
    shares = covariance_shares_by_sample(*batch)
    similar = {n: similarity_by_sample(*batch, pairs=SUBSETS[n]) for n in ("temporal_only", "no_residual")}
    for sample in range(len(batch[1])):
        alone = part_of(batch, slice(sample, sample + 1))
        expected = ShareSums().update(*alone).result().covariance  # NaN where only one position is valid
        torch.testing.assert_close(shares[sample], expected, equal_nan=True)
        rebuilt = SubstitutionSums().update(*alone).result()
        for name, similarity in similar.items():
            assert float(similarity[sample]) == pytest.approx(rebuilt[name].similarity, nan_ok=True)


def typicality_loop(matrices, minimum):
    """Each sample against the plain mean of the others of its shape; NaN in small cells."""
    values = []
    for k, matrix in enumerate(matrices):
        others = [other for j, other in enumerate(matrices) if j != k and other.shape == matrix.shape]
        if len(others) + 1 < minimum:
            values.append(math.nan)
        else:
            average = torch.stack(others).double().mean(0)
            values.append(1 - float((matrix.double() - average).abs().sum(-1).mean()) / 2)
    return values


@pytest.mark.signatures
def test_hand_worked_typicality():
    """Three samples of one row: (1, 0), (1, 0), (0, 1). Others' means: (1/2, 1/2) twice, (1, 0) once."""
    rows = [torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])]
    result = typicality(rows, minimum=3)
    assert result.per_sample.tolist() == [0.5, 0.5, 0.0]
    assert result.value == pytest.approx(1 / 3)
    assert (result.coverage, result.cells, result.samples) == (1.0, 1, 3)


def test_thirty_matrices_of_one_size_have_a_typicality():
    result = typicality([torch.eye(3)] * 30 + [torch.eye(2)] * 29)
    assert (result.value, result.coverage, result.cells) == (1.0, 30 / 59, 1)


def test_of_fewer_matrices_of_each_size_typicality_is_unknown():
    with pytest.warns(UserWarning, match="is NaN: no more than 29 matrices have one size; give"):
        result = typicality([torch.eye(3)] * 29 + [torch.eye(2)])
    assert math.isnan(result.value)
    assert result.coverage == 0


def test_of_no_matrices_coverage_is_unknown_too():
    with pytest.warns(UserWarning, match="is NaN: no more than 0 matrices have one size; give"):
        result = typicality([])
    assert math.isnan(result.value)
    assert math.isnan(result.coverage)


def expected_typicality(matrices, minimum):
    return torch.tensor(typicality_loop(matrices, minimum), dtype=torch.float64)


@given(made.attention_matrices(), st.integers(2, 8))
@pytest.mark.filterwarnings("ignore:typicality is NaN")
def test_typicality_of_a_list_is_that_of_a_loop(matrices, minimum):
    listed = typicality(matrices, minimum=minimum)
    expected = expected_typicality(matrices, minimum)
    assert torch.allclose(listed.per_sample, expected, atol=1e-12, equal_nan=True)


def judged_in_batches(matrices, minimum, size):
    """Cells of two halves, merged, and the typicality of each matrix from padded batches."""
    padded = [made.padded(matrices[start : start + size]) for start in range(0, len(matrices), size)]
    halves = AttentionCells(), AttentionCells()
    for number, batch in enumerate(padded):
        halves[number % 2].update(*batch)
    cells = halves[1].merge(halves[0])
    return cells, torch.cat([cells.judge(*batch, minimum=minimum) for batch in padded])


@given(made.attention_matrices(), st.integers(2, 8), st.integers(1, 9))
@pytest.mark.filterwarnings("ignore:typicality is NaN")
def test_typicality_of_padded_batches_is_that_of_a_loop(matrices, minimum, size):
    _, judged = judged_in_batches(matrices, minimum, size)
    assert torch.allclose(judged, expected_typicality(matrices, minimum), atol=1e-12, equal_nan=True)


@given(made.attention_matrices(), st.integers(2, 8), st.integers(1, 9))
@pytest.mark.filterwarnings("ignore:typicality is NaN")
def test_cells_have_the_result_of_a_list(matrices, minimum, size):
    cells, judged = judged_in_batches(matrices, minimum, size)
    listed, streamed = typicality(matrices, minimum=minimum), cells.result(judged, minimum=minimum)
    assert streamed.value == pytest.approx(listed.value, nan_ok=True)
    assert (streamed.coverage, streamed.cells) == (listed.coverage, listed.cells)


@pytest.mark.signatures
def test_average_attention_of_a_cell():
    cells = AttentionCells().update(*made.padded([torch.eye(2), torch.eye(2).flip(0), torch.eye(3)]))
    assert cells.average_attention((2, 2)).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert torch.equal(cells.average_attention((3, 3)), torch.eye(3, dtype=torch.float64))


@pytest.fixture
def drawn_terms():
    """Terms of drawn parts of two samples without padding, mapped by an array, and their mask."""
    mask = torch.ones(2, 4, dtype=torch.bool)
    parts = Parts(*torch.randn(3, 2, 4, 3, generator=torch.Generator().manual_seed(0)), mask=mask)
    return alignment_terms(map_parts(parts, np.eye(3, dtype=np.float32)), parts), mask


@pytest.mark.parametrize("sums", [ShareSums, SubstitutionSums])
def test_sums_take_arrays_without_masks(drawn_terms, sums):
    terms, mask = drawn_terms
    assert str(sums().update(terms.numpy()).result()) == str(sums().update(terms, mask, mask).result())


def test_cells_take_arrays_without_masks(drawn_terms):
    terms, mask = drawn_terms
    attention = terms.sum((0, 1)).softmax(-1)
    cells = AttentionCells().update(attention.numpy())
    judged = cells.judge(attention.numpy(), mask, mask, minimum=2)
    assert torch.equal(cells.judge(attention, minimum=2), judged)


def test_typicality_takes_arrays():
    assert typicality([np.eye(3)] * 30).value == 1


@pytest.mark.signatures
def test_rows_of_valid_targets_are_zero_at_padding():
    rows = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    target_mask = torch.tensor([[True, False], [True, True]])
    source_mask = torch.tensor([[True, True], [True, False]])
    kept, valid = valid_rows(rows, target_mask, source_mask)
    assert kept.tolist() == [[1, 2], [5, 0], [7, 0]]
    assert valid.tolist() == [[True, True], [True, False], [True, False]]


def test_rows_of_a_sample_with_too_few_sources_are_left_out():
    both = torch.ones(2, 1, dtype=torch.bool)
    source_mask = torch.tensor([[True, True], [True, False]])
    kept, _ = valid_rows(torch.ones(2, 1, 2), both, source_mask, at_least=2)
    assert len(kept) == 1


# What cannot be.

EMPTY, TERMS = [tensor[:0] for tensor in batch_of()], torch.zeros(3, 3, 2, 4, 5)
FOUR, FIVE = torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 5, dtype=torch.bool)
WIDE = Parts(*(torch.zeros(2, 4, 4),) * 3, mask=FOUR)
NARROW = Parts(*(torch.zeros(2, 4, 1),) * 3, mask=FOUR)
MEANS, EXACT = (
    Components(4, n_tokens=3, n_positions=3),
    Components(4, n_tokens=3, n_positions=3, method="least_squares"),
)
CELLS = AttentionCells().update(torch.ones(1, 2, 3), FOUR[:1, :2], FIVE[:1, :3])

test_what_cannot_be_is_refused = refused(
    *((partial(MAKE[kind]().update(*EMPTY).split, *batch_of()), "no samples yet") for kind in MAKE),
    (lambda: MEANS + Components(2, n_tokens=3, n_positions=3), "width 4, … of width 2, n_tokens 3"),
    (lambda: EXACT + MEANS, "method least_squares, … with those of … method means"),
    (lambda: Components(2) + Components(3), "of width 2, … with those of width 3"),
    (lambda: MEANS.variance_explained(), "keep no sum of squares"),
    (lambda: EXACT.variance_explained(), "call update before"),
    (lambda: alignment_terms(WIDE, NARROW), "width must agree"),
    (lambda: alignment_terms(WIDE, Parts(*WIDE.stack().double(), mask=FOUR)), "one dtype"),
    (lambda: map_parts(WIDE, torch.zeros(3, 5)), "expected (out, 4)"),
    (lambda: map_parts(WIDE, torch.zeros(3, 4), torch.zeros(4)), "expected (3,)"),
    (lambda: ShareSums().update(TERMS, FIVE, FOUR), "expected"),
    (lambda: valid_rows(TERMS, FOUR[:1], FIVE), "target mask of"),
    (lambda: SubstitutionSums({"mine": [("temporal", "residuals")]}), "did you mean 'residual'"),
    (lambda: SubstitutionSums().merge(SubstitutionSums({"none": []})), "same subsets"),
    (lambda: CELLS.update(torch.ones(2, 4, 5), FIVE, FOUR), "expected"),
    (lambda: CELLS.average_attention((9, 9)), "(9, 9); cells with most samples: [(3, 2)"),
    (lambda: typicality([torch.randn(3, 4)] * 30), "or a negative entry: give what a softmax"),
    (lambda: typicality([torch.eye(3)[None]] * 30), "of shape (1, 3, 3); expected (target, source)"),
    *(
        (partial(measure, torch.zeros(shape), FOUR, FIVE), "expected (3, 3, batch, target, source)")
        for measure in (shares, substitution)
        for shape in ((2, 4, 5), (9, 2, 4, 5), (2, 3, 2, 4, 5), ())
    ),
    (lambda: shares(TERMS, FOUR, FIVE.double()), "source_mask of torch.float64: expected torch.bool"),
    (lambda: shares(TERMS, FOUR[0], FIVE), "target_mask of shape (4,); expected (batch, target)"),
)
