"""Both passes: against the decomposition's own pieces, by hand where it has none, and in halves."""

import gzip
import math
import os
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from attnlib.analysis import fit
from attnlib.analysis.fit import AverageAttention, counted_attention, whole_samples
from attnlib.analysis.judge import NINE, POSITION_BIAS, TermSums
from attnlib.analysis.results import head_rows, results, state_rows, term_rows
from attnlib.decomposition import PART_NAMES, SUBSETS, Components, ShareSums, SubstitutionSums, typicality
from attnlib.probes.agreement import agreement, chance_agreement
from tests.attnlib.adapters.adapter_builders import terms_of
from tests.attnlib.analysis.builders import ALL, Toy, assert_same_rows, by_hand, fit_of, judged, rows_of
from tests.attnlib.decomposition.component_builders import attention_matrices, padded, term_batches
from tests.attnlib.refusals import refused


def averages_of(matrices, at_once=None):
    average = AverageAttention()
    size = at_once or len(matrices)
    for start in range(0, len(matrices), size):
        average.update(*padded(matrices[start : start + size]))
        assert sum(matrix.numel() for matrix in average.sums.values()) <= fit.ENTRIES
    return average


@given(attention_matrices(), attention_matrices(most=2), st.integers(1, 5))
@pytest.mark.filterwarnings("ignore:typicality is NaN")
def test_typicality_is_that_of_one_sample_among_those_summed(summed, judged, minimum):
    """The definition takes the sample out of its own average: so put it in first."""
    found, exact = averages_of(summed).typicality(*padded(judged), minimum=minimum)
    expected = [typicality([*summed, one], minimum=minimum + 1).per_sample[-1] for one in judged]
    torch.testing.assert_close(found.where(exact, torch.nan), torch.stack(expected), equal_nan=True)
    assert found.isnan().all() == found.isnan().any() == (len(summed) < minimum)


def test_averages_that_were_judged_by_are_forgotten_with_an_update():
    first, second = torch.eye(2)[None], torch.full((1, 2, 2), 0.5)
    everywhere = torch.ones(1, 2, dtype=torch.bool)
    average = AverageAttention().update(first, everywhere, everywhere)
    for _ in range(2):
        assert average.typicality(first, everywhere, everywhere, minimum=1)[0].tolist() == [1.0]
    average.update(second, everywhere, everywhere)
    assert average.typicality(first, everywhere, everywhere, minimum=1)[0].tolist() == [0.75]


@given(attention_matrices(), attention_matrices(most=2))
def test_nearest_sizes_are_joined_where_one_alone_is_too_rare(summed, judged):
    """Of even attention it is one, whatever the sizes."""
    even = [torch.full_like(matrix, 1 / matrix.shape[1]) for matrix in (*summed, *judged)]
    found, _ = averages_of(even).typicality(*padded(even), minimum=len(even))
    torch.testing.assert_close(found, torch.ones_like(found))


def test_a_matrix_laid_on_another_size_by_hand():
    """Two places into three. Stretched, a weight of the first goes two to one to the first and the second."""
    one = np.eye(2)[None] * [[4.0], [5.0]]
    stretched = [[8 / 3, 4 / 3, 0], [4 / 3, 3 / 2, 5 / 3], [0, 5 / 3, 10 / 3]]
    counted = {
        (1, 1): [[4, 0, 0], [0, 5, 0], [0, 0, 0]],
        (-1, -1): [[0, 0, 0], [0, 4, 0], [0, 0, 5]],
        (1, -1): [[0, 4, 0], [0, 0, 5], [0, 0, 0]],
        (-1, 1): [[0, 0, 0], [4, 0, 0], [0, 5, 0]],
    }
    for way, expected in {None: stretched, **counted}.items():
        np.testing.assert_allclose(fit._laid(one, 3, 3, way)[0], expected)
        np.testing.assert_allclose(fit._laid(one, 2, 2, way), one)  # nothing is moved on the same size


def test_the_nearest_way_of_joining_sizes_by_hand():
    """An identity of two is nearest to itself counted from the first, where the third row is even."""
    averages = averages_of([torch.eye(2)])
    found, exact = averages.typicality(*padded([torch.eye(3)]), minimum=1)
    assert (found.tolist(), exact.tolist()) == (pytest.approx([7 / 9]), [False])


def positional_heads(target, source, draw):
    """Sharp heads by position alone, each in its own way, and one by content alone."""
    step = torch.arange(target)
    apart = (torch.arange(target)[:, None] + 0.5) / target - (torch.arange(source) + 0.5) / source
    places = {
        "from the first": step.clamp(max=source - 1),
        "from the last": (source - target + step).clamp(min=0),
        "the last word": torch.full((target,), source - 1),
        "backwards": (source - 1 - step).clamp(min=0),
        "content": torch.randint(source, (target,), generator=draw),
    }
    sharp = {name: F.one_hot(place, source).float() for name, place in places.items()}
    return sharp | {"relative": (-(apart**2) / (2 * 0.08**2)).softmax(-1)}


def test_sharp_heads_by_position_are_typical_and_those_by_content_are_not():
    draw = torch.Generator().manual_seed(0)
    samples = []
    for _ in range(400):
        heads = positional_heads(*torch.randint(8, 15, (2,), generator=draw).tolist(), draw)
        samples.append((list(heads), torch.stack(list(heads.values()))[:, None]))
    average = AverageAttention(len(samples[0][0]))
    masks = [[torch.ones(1, size, dtype=torch.bool) for size in each.shape[2:]] for _, each in samples]
    for (_, matrices), own in list(zip(samples, masks, strict=True))[:300]:
        average.update(matrices, *own)
    assert max(average.counts.values()) < fit.MINIMUM_CELL  # sizes are joined for all that follows
    judged = [average.typicality(each, *own)[0] for (_, each), own in zip(samples, masks, strict=True)][300:]
    found = dict(zip(samples[0][0], torch.cat(judged, 1).mean(1).tolist(), strict=True))
    assert found.pop("content") < 0.2
    assert min(found.values()) > 0.9, found


MULTI30K = Path(os.environ.get("ATTNLIB_DATA", "")) / "multi30k"


def of_real_lengths(count):
    """By (source, target) length, on translations that people made: heads by position, by words, by both."""
    draw, vectors, found = torch.Generator().manual_seed(0), {}, {}
    sides = []
    for side in ("de", "en"):
        with gzip.open(MULTI30K / f"train.{side}.gz", "rt", encoding="utf-8") as lines:
            sides.append([line.split() for line in islice(lines, count)])
    for pair in zip(*sides, strict=True):
        source, target = (
            torch.stack([vectors.setdefault(word, torch.randn(8, generator=draw)) for word in words])
            for words in pair
        )
        shape = len(target), len(source)
        relative, steps = (torch.arange(size) / size for size in shape), map(torch.arange, shape)
        relative, steps = (one[:, None] - other for one, other in (relative, steps))
        words = target @ source.T / 8**0.5
        scores = -50 * relative**2, -(steps**2) / 2, words / 2 - 20 * relative**2, 2 * words
        found.setdefault(shape[::-1], []).append(torch.stack(scores).softmax(-1))
    return {cell: torch.stack(own, 1) for cell, own in found.items()}


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="reads Multi30k: set ATTNLIB_DATA")
def test_on_real_lengths_the_nearest_sizes_say_what_the_exact_one_says():
    """A size is left out and judged by its neighbours: half a place is lost, sentences keep their order."""
    cells = of_real_lengths(3000)

    def masks(cell):
        return [torch.ones(cells[cell].shape[1], size, dtype=torch.bool) for size in cell[::-1]]

    for left_out in sorted(cells, key=lambda cell: -cells[cell].shape[1])[:6]:
        matrices, average = cells[left_out], AverageAttention(4)
        assert matrices.shape[1] > 2 * fit.MINIMUM_CELL
        for cell in cells.keys() - {left_out}:
            average.update(cells[cell], *masks(cell))
        near, exact = average.typicality(matrices, *masks(left_out))
        assert not exact.any()
        expected = torch.stack([typicality(own).per_sample for own in matrices])
        assert float((near - expected).abs().max()) < 0.08
        torch.testing.assert_close(expected[:2], torch.ones_like(expected[:2]))  # by position alone
        for own, other in zip(near[2:], expected[2:], strict=True):
            assert float(own.mean()) == pytest.approx(float(other.mean()), abs=0.01)
            assert float(torch.corrcoef(torch.stack([own, other]))[0, 1]) > 0.95


def fitting_sizes(summed, bound):
    """What has to be kept, from all sizes at once: those up to the longest side for which all sizes fit."""
    sizes = {tuple(matrix.shape) for matrix in summed}
    longest = 0
    while longest < 9 and sum(t * s for t, s in sizes if max(t, s) <= longest + 1) <= bound:
        longest += 1
    return {(s, t) for t, s in sizes if max(t, s) <= longest}


@given(attention_matrices(), attention_matrices(), st.integers(0, 40), st.randoms(use_true_random=False))
def test_shards_and_orders_make_no_difference_within_the_bound(some, others, bound, random):
    """Sizes kept, how many samples of each, their sums, and what is judged: of halves through files, of the
    whole, and of any order."""
    every = [*some, *others]
    shuffled = random.sample(every, len(every))
    kept = fitting_sizes(every, bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "ENTRIES", bound)
        halves = (averages_of(half, at_once=1).tensors() for half in (some, others))
        first, second = map(AverageAttention.of_tensors, halves)
        whole = averages_of(every)
        merged = first + second, second + AverageAttention() + first
        for average in (whole, averages_of(shuffled, at_once=1), *merged):
            counts = {cell: sum(matrix.shape == cell[::-1] for matrix in every) for cell in kept}
            assert average.counts == counts
            assert average.sums.keys() == kept
            for cell, total in average.sums.items():
                torch.testing.assert_close(total, whole.sums[cell])
            beyond = average.beyond(*padded(shuffled)[1:]).tolist()
            assert beyond == [tuple(matrix.shape)[::-1] not in kept for matrix in shuffled]


TEN = (*NINE, POSITION_BIAS)
LOG2 = math.log(2)


def allowed_of(batch):
    return batch[1][:, :, None] & batch[2][:, None, :]


def sums_of(terms, allowed):
    return TermSums(NINE if len(terms) == 9 else TEN).update(terms, allowed)


def shares_of(rows, dtype=torch.float64):
    """Shares of one sample and one row of ten terms, which are zero but for {name: row}."""
    terms = torch.zeros(10, 1, 1, len(next(iter(rows.values()))), dtype=dtype)
    for name, row in rows.items():
        terms[TEN.index(name), 0, 0] = torch.tensor(row, dtype=dtype)
    return sums_of(terms, torch.ones(terms.shape[1:], dtype=torch.bool)).result()


@given(term_batches(twins=True))
def test_nine_terms_are_summed_as_the_decomposition_sums_them(batch):
    terms, *masks = batch
    found = sums_of(terms, allowed_of(batch)).result()
    shares = ShareSums().update(terms.unflatten(0, (3, 3)), *masks).result()
    for mine, theirs in ((found.covariance, shares.covariance), (found.mean_absolute, shares.mean_absolute)):
        assert list(mine.values()) == pytest.approx(theirs.flatten().tolist(), abs=1e-10)
    for name in ("entries", "rows", "rows_left_out"):
        assert getattr(found, name) == getattr(shares, name)

    rebuilt = SubstitutionSums().update(terms.unflatten(0, (3, 3)), *masks).result()
    plain = ("uniform", "temporal_only", "input_only", "no_residual")
    names = {name: name.replace("_", " ") for name in plain}
    names |= {f"without_{d}_{e}": f"without {d}·{e}" for d in PART_NAMES for e in PART_NAMES}
    assert names.keys() == SUBSETS.keys()
    assert found.similarity.keys() == found.agreement.keys() == set(names.values())
    for theirs, mine in names.items():
        assert found.similarity[mine] == pytest.approx(rebuilt[theirs].similarity, abs=1e-12)
        assert found.agreement[mine] == pytest.approx(rebuilt[theirs].argmax_agreement, abs=1e-6)


def assert_same(found, expected):
    for name, own in vars(expected).items():
        assert getattr(found, name) == pytest.approx(own, abs=1e-9, nan_ok=True)


@given(term_batches(count=10, twins=True), st.integers(0, 8))
def test_shares_sum_to_one_ignore_constants_and_halves_are_the_whole(batch, cut):
    terms, allowed = batch[0], allowed_of(batch)
    whole = sums_of(terms, allowed).result()
    assert sum(whole.covariance.values()) == pytest.approx(1)
    assert sum(whole.mean_absolute.values()) == pytest.approx(1)
    moved = sums_of(terms + torch.linspace(-9, 9, 10, dtype=terms.dtype)[:, None, None, None], allowed)
    halves = sums_of(terms[:, cut:], allowed[cut:]) + sums_of(terms[:, :cut], allowed[:cut])
    assert_same(moved.result(), whole)
    assert_same(halves.result(), whole)


@given(term_batches())
def test_causal_rows_are_prefixes(batch):
    """A triangle is as many samples of one row each, of growing length."""
    terms, target_mask, source_mask = batch
    pieces = TermSums(NINE)
    for row in range(terms.shape[2]):
        prefix = source_mask & (torch.arange(terms.shape[3]) <= row)
        pieces.update(terms[:, :, row, None], target_mask[:, row, None, None] & prefix[:, None, :])
    whole = sums_of(terms, allowed_of(batch).tril()).result()
    assert_same(whole, pieces.result())
    assert whole.rows_left_out >= len(terms[0])  # the first row of each sample sees one position


def test_the_position_bias_is_a_tenth_term():
    """First entries: bias alone 4/5 (4:1), temporal alone 2/3 (2:1), both, which is all, 8/9 (8:1)."""
    shares = shares_of({"temporal·temporal": [LOG2, 0.0], POSITION_BIAS: [2 * LOG2, 0.0]})
    assert shares.covariance[POSITION_BIAS] == pytest.approx(2 / 3)
    assert shares.similarity["position bias only"] == pytest.approx(1 - (8 / 9 - 4 / 5))
    assert shares.similarity["temporal and position bias"] == pytest.approx(1.0)
    assert shares.similarity["no residual"] == pytest.approx(1.0)
    assert shares.similarity[f"without {POSITION_BIAS}"] == pytest.approx(1 - (8 / 9 - 2 / 3))


def test_ties_but_for_rounding_are_ties():
    """One word twice: input alone cannot tell the places apart, whatever the last bit says."""
    rows = {"input·input": [1.0, 1.0 + 1e-7, 0.0], "temporal·temporal": [0.5, 0.0, 0.0]}
    shares = shares_of(rows, torch.float32)
    assert (shares.agreement["input only"], shares.agreement["temporal only"]) == (0.5, 1.0)


def test_undefined_where_nothing_varies():
    """Flat rows have no share, but a spread, which is zero; nothing at all has neither."""
    flat, nothing = shares_of({POSITION_BIAS: [1.0, 1.0, 1.0]}), TermSums(NINE).result()
    undefined = [*flat.covariance.values(), *flat.mean_absolute.values()]
    undefined += [*nothing.covariance.values(), *nothing.similarity.values(), nothing.spread]
    assert all(map(math.isnan, undefined))
    assert (flat.spread, flat.similarity["uniform"]) == (0.0, 1.0)
    rows = {"temporal·temporal": [0.1, 0.0], "input·input": [0.2, 0.0], "residual·residual": [-0.3, 0.0]}
    cancelling = shares_of(rows)  # but for rounding
    assert all(map(math.isnan, cancelling.covariance.values()))
    assert cancelling.mean_absolute["residual·residual"] == pytest.approx(0.5)


# Against the decomposition's own pieces.


@pytest.mark.parametrize("ignored", [(), (3,)])
def test_cross_attention_is_judged_by_components_of_what_counts(ignored):
    """Fixed tables over all batches at once, one product of heads at a time."""
    toy = Toy(ignored=ignored)
    passes = [toy(number) for number in range(20)]
    # eight words, five places, states of width 4
    components = {site: Components(8, 5, 4) for site in ("encoder", "decoder.cross")}

    def each(one, method):
        found, whole = {}, whole_samples(one)
        for site, (side, states) in one.sites().items():
            given = (own[whole] for own in (states, one.tokens(side), one.counted(side)))
            found[site] = getattr(components[site], method)(*given)
        return found

    for one in passes[:15]:
        each(one, "update")
    for row in head_rows(judged(fit_of(passes[:15]), passes[15:])):
        shares = ShareSums()
        for one in passes[15:]:
            parts = each(one, "split")
            terms = terms_of(one.attended[0], row["head"], parts["decoder.cross"], parts["encoder"])
            shares.update(terms, parts["decoder.cross"].mask, parts["encoder"].mask)
        covariance = shares.result().covariance
        assert row["temporal_share"] == pytest.approx(float(covariance[0, 0]))
        assert row["input_share"] == pytest.approx(float(covariance[1, 1]))
        assert row["mixed_share"] == pytest.approx(float(covariance[0, 1] + covariance[1, 0]))
        assert row["residual_share"] == pytest.approx(float(1 - covariance[:2, :2].sum()))
        assert row["rows"] == shares.rows > 50
        assert row["rows_left_out"] == shares.rows_left_out


@pytest.mark.parametrize("bias", [False, True])
def test_terms_of_every_kind_of_attention_sum_to_its_scores(bias):
    """Shares sum to one, and what varies is what the scores themselves vary by."""
    toy = Toy(ALL, bias=bias, ignored=(3,))
    judgement = judged(fit_of(map(toy, range(15))), map(toy, range(15, 20)))
    assert len(judgement.heads) == len(ALL) * 2
    assert len({row["term"] for row in term_rows(judgement)}) == 9 + bias
    for row in term_rows(judgement):
        own = judgement.heads[f"{row['kind']}.{row['layer']}", row["head"]].terms
        ends = own.share({row["term"]}, fitted=float(judgement.fit.samples))
        assert ends == tuple(row[f"covariance_{end}"] for end in ("share", "low", "high"))
        assert ends[0] == pytest.approx(own.result().covariance[row["term"]])
    names = ("temporal_share", "input_share", "mixed_share", "residual_share", "position_bias_share")
    for row in head_rows(judgement):
        assert sum(row[name] for name in names) == pytest.approx(1)
    for head, own in judgement.heads.items():
        shares = own.terms.result()
        assert sum(shares.covariance.values()) == pytest.approx(1), head
        assert shares.rows_left_out > 0
        variance = 0.0
        for one in map(toy, range(15, 20)):
            attended = {own.name: own for own in one.attended}[head[0]]
            _, allowed = counted_attention(one, attended, head[1])
            rows = (allowed.sum(-1) > 1) & whole_samples(one)[:, None]
            for scores, seen in zip(attended.scores[:, head[1]][rows], allowed[rows], strict=True):
                variance += float(scores[seen].var(unbiased=False) * seen.sum())
        assert shares.spread == pytest.approx((variance / shares.entries) ** 0.5)


def test_agreement_is_the_probes_own_and_self_attention_has_none_nor_what_is_not_probed():
    toy = Toy(ALL, ignored=(3,))
    passes = list(map(toy, range(20)))
    judgement = judged(fit_of(passes[:15]), passes[15:], toy.probe)
    for head in range(passes[0].attended[0].heads):
        found = []
        for one in passes[15:]:
            attention, _ = counted_attention(one, one.attended[0], head)
            for sample, row in one.counted("target").nonzero().tolist():
                seen = one.counted("source")[sample]
                if seen.any():
                    alpha, beta = attention[sample, row][seen], toy.probe(one)[sample, row][seen]
                    found.append((float(agreement(alpha, beta)), float(chance_agreement(beta))))
        own = judgement.heads["cross.0", head]
        means = own.mean("agrees", "probed"), own.mean("by_chance", "probed")
        assert means == pytest.approx(torch.tensor(found).mean(0).tolist())
        assert means[0] != means[1]
    for probe in (toy.probe, None):
        for row in head_rows(judged(judgement.fit, passes[15:], probe)):
            assert (row["agreement_with_probe"] >= 0) == bool(probe and row["kind"] == "cross")


def test_attention_on_an_ignored_word():
    """Half of the first row and a quarter of the second; the third row is not counted."""
    scores = [[1.0, 1.0, 2.0], [2.0, 1.0, 1.0], [0.1, 0.1, 9.0]]
    one = by_hand(scores, source=[False, False, True], target=[False, False, True])
    attention, allowed = counted_attention(one, one.attended[0], 0)
    torch.testing.assert_close(attention[0], torch.tensor([[1 / 2, 1 / 2, 0], [2 / 3, 1 / 3, 0], [0, 0, 0]]))
    assert allowed.sum() == 4
    (row,) = head_rows(judged(fit_of([one]), [one]))
    assert row["on_ignored"] == pytest.approx(3 / 8)
    assert row["rows"] == 2
    assert row["position_bias_share"] == pytest.approx(1.0)


def test_what_stands_at_ignored_tokens_is_not_looked_at():
    """Other states there change the model's attention on them, and no other number."""
    toy = Toy(("cross",), ignored=(3,))

    def spoilt(number):
        one = toy(number)
        (own,) = one.attended
        queries = own.query_inputs.masked_fill(one.ignored_target[..., None], 50.0)
        keys = own.key_inputs.masked_fill(one.ignored_source[..., None], -50.0)
        return replace(one, attended=(replace(own, query_inputs=queries, key_inputs=keys),))

    clean, other = (judged(fit_of(map(make, range(9))), [make(9)], toy.probe) for make in (toy, spoilt))
    assert_same_rows(rows_of(other), rows_of(clean), but=("on_ignored",))
    assert head_rows(other)[0]["on_ignored"] != pytest.approx(head_rows(clean)[0]["on_ignored"], abs=1e-3)


def test_samples_with_nothing_counted_are_left_out():
    """A sample of which one side is ignored altogether is as good as none, whichever the side."""
    toy = Toy(ALL, ignored=(3,))
    one = toy(9)
    source, target = one.ignored_source.clone(), one.ignored_target.clone()
    source[1], target[4] = True, True
    spoilt = replace(one, ignored_source=source, ignored_target=target)
    kept = [0, 2, 3, 5]
    attended = tuple(replace(own, **tensors_of(own, kept)) for own in one.attended)
    without = replace(one, **tensors_of(one, kept), attended=attended)
    fit = fit_of(map(toy, range(9)))
    first, second = (judged(fit, [some], toy.probe) for some in (spoilt, without))
    assert first.samples == second.samples <= 4
    assert_same_rows(rows_of(first), rows_of(second), but=("agreement_with_probe", "agreement_by_chance"))
    first, second = (judged(fit_of([some]), [one]) for some in (spoilt, without))
    assert_same_rows(rows_of(first), rows_of(second))


def tensors_of(made, samples):
    return {name: own[samples] for name, own in vars(made).items() if isinstance(own, torch.Tensor)}


def test_unseen_words_and_places_are_counted():
    """Fitted on one sample of the words 0 1, judged on one of 0 1 2: a third is new, word and place."""
    two = by_hand([[1.0, 1.0]])
    three = by_hand([[1.0, 1.0, 1.0]])
    rows = {row["states"]: row for row in state_rows(fit_of([two]), judged(fit_of([two]), [three]))}
    assert (rows["answers"]["unseen_words"], rows["answers"]["unseen_positions"]) == (1 / 3, 1 / 3)
    assert (rows["asks"]["unseen_words"], rows["asks"]["judged"]) == (0.0, 1)
    assert (rows["answers"]["words"], rows["answers"]["positions"], rows["answers"]["fitted"]) == (2, 2, 2)


@pytest.mark.parametrize(("method", "counts"), [("least_squares", (1, 1, 1)), ("means", (2, 1, 0))])
def test_rows_that_are_left_out_are_counted_by_their_reason(method, counts):
    """Fitted on a row of the word 0: of two rows the second's word is new, and a third sees one word."""
    fit = fit_of([by_hand([[1.0, 1.0]])], method=method)
    passes = by_hand([[1.0, 1.0]] * 2), by_hand([[1.0, 1.0]], source=[False, True])
    (row,) = results(fit, judged(fit, passes), held_out=True).heads
    assert (row["rows"], row["rows_left_out"], row["rows_unseen"]) == counts


OF_CROSS, OF_SELF = Toy(("cross",))(0), Toy(("encoder_self",))(0)
SHAPES = "expected (9, batch, target, source)"


def sum_terms(terms, allowed):
    TermSums(NINE).update(torch.zeros(terms), torch.ones(allowed, dtype=torch.bool))


test_what_cannot_be_is_refused = refused(
    (lambda: judged(fit_of([OF_CROSS]), [OF_SELF]), "no components of encoder.self; the fit has those of"),
    (lambda: fit_of([OF_CROSS]) + fit_of([OF_SELF]), "different attentions"),
    (lambda: sum_terms((10, 2, 3, 4), (2, 3, 4)), SHAPES),
    (lambda: sum_terms((9, 2, 3, 4), (2, 4, 3)), SHAPES),
    (lambda: sum_terms((9, 2, 3, 4), (1, 3, 4)), SHAPES),
    (lambda: sum_terms((9, 2, 3), (2, 3)), SHAPES),
    (lambda: TermSums(NINE) + TermSums((*NINE, POSITION_BIAS)), "cannot merge"),
)
