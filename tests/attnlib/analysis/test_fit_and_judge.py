"""Both passes against the decomposition's own pieces, by hand, and on corpora whose shares are known."""

import math
from collections import Counter
from dataclasses import replace
from functools import cache, cached_property, partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib import Attention, Trace
from attnlib.adapters import LinearMap
from attnlib.analysis import Stream, from_stream
from attnlib.analysis.counted import counted_attention, whole_samples
from attnlib.analysis.judge import sample_keys
from attnlib.analysis.results import head_rows, results, state_rows, term_rows
from attnlib.decomposition import STATE_PARTS, SUBSETS, Components, ShareSums, SubstitutionSums
from attnlib.decomposition.term_names import NINE, POSITION_BIAS, REBUILT, TERM_GROUPS, group_of, subsets
from attnlib.decomposition.term_sums import TermSums
from attnlib.decomposition.typicality import AverageAttention
from attnlib.probes.agreement import agreement, chance_agreement
from attnlib.report import analyse, compare, write_report
from attnlib.report.comparison import MEASURES, READING
from attnlib.report.files import KEPT
from tests.attnlib.adapters.adapter_builders import rotary, terms_of
from tests.attnlib.analysis import builders as toys
from tests.attnlib.analysis.builders import ALL, Toy, assert_same_rows, by_hand, fit_of, judged, rows_of
from tests.attnlib.decomposition.component_builders import term_batches
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused, refused

TEN = (*NINE, POSITION_BIAS)
LOG2 = math.log(2)


def allowed_of(batch):
    return batch[1][:, :, None] & batch[2][:, None, :]


def no_sums(terms=NINE):
    return TermSums(terms, subsets(terms))


def sums_of(terms, allowed):
    names = NINE if len(terms) == 9 else TEN
    return no_sums(names).update(terms[None], allowed)


def shares_of(rows, dtype=torch.float64):
    """Shares of one sample and one row of ten terms, which are zero but for {name: row}."""
    terms = torch.zeros(10, 1, 1, len(next(iter(rows.values()))), dtype=dtype)
    for name, row in rows.items():
        terms[TEN.index(name), 0, 0] = torch.tensor(row, dtype=dtype)
    return sums_of(terms, torch.ones(terms.shape[1:], dtype=torch.bool)).result()


@given(term_batches(twins=True))
def test_nine_terms_are_summed_as_the_decomposition_sums_them(batch):
    terms, *masks = batch
    summed = sums_of(terms, allowed_of(batch)).result()
    shares = ShareSums().update(terms.unflatten(0, (3, 3)), *masks).result()
    for mine, theirs in (
        (summed.covariance, shares.covariance),
        (summed.mean_absolute, shares.mean_absolute),
    ):
        assert list(mine.values()) == pytest.approx(theirs.flatten().tolist(), abs=1e-10)
    for name in ("entries", "rows", "rows_left_out"):
        assert getattr(summed, name) == getattr(shares, name)

    rebuilt = SubstitutionSums().update(terms.unflatten(0, (3, 3)), *masks).result()
    plain = ("uniform", "temporal_only", "input_only", "no_residual")
    names = {name: name.replace("_", " ") for name in plain}
    names |= {f"without_{d}_{e}": f"without {d}·{e}" for d in STATE_PARTS for e in STATE_PARTS}
    assert names.keys() == SUBSETS.keys()
    assert summed.similarity.keys() == summed.agreement.keys() == set(names.values())
    for theirs, mine in names.items():
        assert summed.similarity[mine] == pytest.approx(rebuilt[theirs].similarity, abs=1e-12)
        assert summed.agreement[mine] == pytest.approx(rebuilt[theirs].argmax_agreement, abs=1e-6)


def assert_same(result, expected):
    for name, value in vars(expected).items():
        assert getattr(result, name) == pytest.approx(value, abs=1e-9, nan_ok=True)


@given(term_batches(count=10, twins=True))
def test_shares_sum_to_one(batch):
    terms, allowed = batch[0], allowed_of(batch)
    whole = sums_of(terms, allowed).result()
    assert sum(whole.covariance.values()) == pytest.approx(1)
    assert sum(whole.mean_absolute.values()) == pytest.approx(1)


@given(term_batches(count=10, twins=True))
def test_shares_ignore_constants(batch):
    terms, allowed = batch[0], allowed_of(batch)
    whole = sums_of(terms, allowed).result()
    moved = sums_of(terms + torch.linspace(-9, 9, 10, dtype=terms.dtype)[:, None, None, None], allowed)
    assert_same(moved.result(), whole)


@given(term_batches(count=10, twins=True), st.integers(0, 8))
def test_sums_of_halves_are_those_of_the_whole(batch, cut):
    terms, allowed = batch[0], allowed_of(batch)
    whole = sums_of(terms, allowed).result()
    halves = sums_of(terms[:, cut:], allowed[cut:]) + sums_of(terms[:, :cut], allowed[:cut])
    assert_same(halves.result(), whole)


@given(term_batches())
def test_causal_rows_are_prefixes(batch):
    """A triangle is as many samples of one row each, of growing length."""
    terms, target_mask, source_mask = batch
    pieces = no_sums()
    for row in range(terms.shape[2]):
        prefix = source_mask & (torch.arange(terms.shape[3]) <= row)
        pieces.update(terms[None, :, :, row, None], target_mask[:, row, None, None] & prefix[:, None, :])
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
    flat, nothing = shares_of({POSITION_BIAS: [1.0, 1.0, 1.0]}), no_sums().result()
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
    components = {site: Components(4, n_tokens=8, n_positions=5) for site in ("encoder", "decoder.cross")}

    def apply(model_pass, method):
        applied, whole = {}, whole_samples(model_pass)
        for site, (side, states) in model_pass.sites().items():
            given = (tensor[whole] for tensor in (states, model_pass.tokens(side), model_pass.counted(side)))
            applied[site] = getattr(components[site], method)(*given)
        return applied

    for model_pass in passes[:15]:
        apply(model_pass, "update")
    for row in head_rows(judged(fit_of(passes[:15]), passes[15:])):
        shares = ShareSums()
        for model_pass in passes[15:]:
            parts = apply(model_pass, "split")
            terms = terms_of(model_pass.attentions[0], row["head"], parts["decoder.cross"], parts["encoder"])
            shares.update(terms, parts["decoder.cross"].mask, parts["encoder"].mask)
        covariance = shares.result().covariance
        assert row["temporal_share"] == pytest.approx(float(covariance[0, 0]))
        assert row["input_share"] == pytest.approx(float(covariance[1, 1]))
        assert row["mixed_share"] == pytest.approx(float(covariance[0, 1] + covariance[1, 0]))
        assert row["residual_share"] == pytest.approx(float(1 - covariance[:2, :2].sum()))
        assert row["rows"] == shares.result().rows > 50
        assert row["rows_left_out"] == shares.result().rows_left_out


@pytest.mark.parametrize("bias", [False, True])
def test_terms_of_every_kind_of_attention_sum_to_its_scores(bias):
    toy = Toy(ALL, bias=bias, ignored=(3,))
    judgement = judged(fit_of(map(toy, range(15))), map(toy, range(15, 20)))
    assert len(judgement.heads) == len(ALL) * 2
    assert len({row["term"] for row in term_rows(judgement)}) == 9 + bias
    for row in term_rows(judgement):
        judged_head = judgement.heads[f"{row['kind']}.{row['layer']}", row["head"]]
        interval = judged_head.share({row["term"]}, n_fitted_samples=float(judgement.fit.samples))
        assert vars(interval) == {end: row[f"covariance_{end}"] for end in ("share", "low", "high")}
        assert interval.share == pytest.approx(judged_head.shares.covariance[row["term"]])
    names = ("temporal_share", "input_share", "mixed_share", "residual_share", "position_bias_share")
    for row in head_rows(judgement):
        assert sum(row[name] for name in names) == pytest.approx(1)
    for head, judged_head in judgement.heads.items():
        shares = judged_head.shares
        assert sum(shares.covariance.values()) == pytest.approx(1), head
        assert shares.rows_left_out > 0
        variance = 0.0
        for model_pass in map(toy, range(15, 20)):
            attended = {attention.name: attention for attention in model_pass.attentions}[head[0]]
            _, allowed = counted_attention(model_pass, attended, head[1])
            rows = (allowed.sum(-1) > 1) & whole_samples(model_pass)[:, None]
            for scores, seen in zip(attended.scores[:, head[1]][rows], allowed[rows], strict=True):
                variance += float(scores[seen].var(unbiased=False) * seen.sum())
        assert shares.spread == pytest.approx((variance / shares.entries) ** 0.5)


def test_agreement_is_the_mean_of_the_probes_own():
    toy = Toy(ALL, ignored=(3,))
    passes = list(map(toy, range(20)))
    judgement = judged(fit_of(passes[:15]), passes[15:], toy.probe)
    for head in range(passes[0].attentions[0].heads):
        agreements = []
        for model_pass in passes[15:]:
            attention, _ = counted_attention(model_pass, model_pass.attentions[0], head)
            for sample, row in model_pass.counted("target").nonzero().tolist():
                seen = model_pass.counted("source")[sample]
                if seen.any():
                    alpha, beta = attention[sample, row][seen], toy.probe(model_pass)[sample, row][seen]
                    agreements.append((float(agreement(alpha, beta)), float(chance_agreement(beta))))
        judged_head = judgement.heads["cross.0", head]
        means = judged_head.agreement_with_probe, judged_head.agreement_by_chance
        assert means == pytest.approx(torch.tensor(agreements).mean(0).tolist())
        assert means[0] != means[1]


def test_only_probed_cross_attention_has_agreement():
    toy = Toy(ALL, ignored=(3,))
    passes = list(map(toy, range(20)))
    judgement = judged(fit_of(passes[:15]), passes[15:], toy.probe)
    for probe in (toy.probe, None):
        for row in head_rows(judged(judgement.fit, passes[15:], probe)):
            assert (row["agreement_with_probe"] >= 0) == bool(probe and row["kind"] == "cross")


def test_attention_on_an_ignored_word():
    """Half of the first row and a quarter of the second; the third row is not counted."""
    scores = [[1.0, 1.0, 2.0], [2.0, 1.0, 1.0], [0.1, 0.1, 9.0]]
    model_pass = by_hand(scores, source=[False, False, True], target=[False, False, True])
    attention, allowed = counted_attention(model_pass, model_pass.attentions[0], 0)
    torch.testing.assert_close(attention[0], torch.tensor([[1 / 2, 1 / 2, 0], [2 / 3, 1 / 3, 0], [0, 0, 0]]))
    assert allowed.sum() == 4
    (row,) = head_rows(judged(fit_of([model_pass]), [model_pass]))
    assert row["on_ignored"] == pytest.approx(3 / 8)
    assert row["rows"] == 2
    assert row["position_bias_share"] == pytest.approx(1.0)


def test_what_stands_at_ignored_tokens_is_not_looked_at():
    """Other states there change the model's attention on them, and no other number."""
    toy = Toy(("cross",), ignored=(3,))

    def spoilt(number):
        model_pass = toy(number)
        (attention,) = model_pass.attentions
        queries = attention.query_inputs.masked_fill(model_pass.ignored_target[..., None], 50.0)
        keys = attention.key_inputs.masked_fill(model_pass.ignored_source[..., None], -50.0)
        return replace(model_pass, attentions=(replace(attention, query_inputs=queries, key_inputs=keys),))

    clean, other = (judged(fit_of(map(make, range(9))), [make(9)], toy.probe) for make in (toy, spoilt))
    assert_same_rows(rows_of(other), rows_of(clean), but=("on_ignored",))
    assert head_rows(other)[0]["on_ignored"] != pytest.approx(head_rows(clean)[0]["on_ignored"], abs=1e-3)


def test_samples_with_nothing_counted_are_left_out():
    """A sample of which one side is ignored altogether is as good as none, whichever the side."""
    toy = Toy(ALL, ignored=(3,))
    model_pass = toy(9)
    source, target = model_pass.ignored_source.clone(), model_pass.ignored_target.clone()
    source[1], target[4] = True, True
    spoilt = replace(model_pass, ignored_source=source, ignored_target=target)
    kept = [0, 2, 3, 5]
    attended = tuple(replace(attention, **tensors_of(attention, kept)) for attention in model_pass.attentions)
    without = replace(model_pass, **tensors_of(model_pass, kept), attentions=attended)
    fit = fit_of(map(toy, range(9)))
    first, second = (judged(fit, [variant], toy.probe) for variant in (spoilt, without))
    assert first.samples == second.samples <= 4
    assert_same_rows(rows_of(first), rows_of(second), but=("agreement_with_probe", "agreement_by_chance"))
    first, second = (judged(fit_of([variant]), [model_pass]) for variant in (spoilt, without))
    assert_same_rows(rows_of(first), rows_of(second))


def tensors_of(made, samples):
    return {name: value[samples] for name, value in vars(made).items() if isinstance(value, torch.Tensor)}


def test_what_is_unseen_is_counted():
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


# Intervals of corpora whose shares are known.

WORDS, WIDTH, LONGEST = 80, 6, 9
GROUPS_OF_STATES = ("temporal", "input", "mixed", "residual")


class Known:
    """A cross-attention over states made of a constant, a place, a word and noise, of which each is known.

    Words come as in texts, one as often as all rarer ones by Zipf's law, and prefer some places. With a mark
    every query sequence starts with it, it is nowhere else, and its state is so large.
    """

    def __init__(self, kind="cross", seed=0, noise=(0.7, 0.6), mark=0.0, words=WORDS):
        self.kind, self.noise, self.mark = kind, noise, mark
        sides = range(2 if kind == "cross" else 1)
        normal = partial(torch.randn, generator=generator(seed), dtype=torch.float64)
        self.constant = [normal(WIDTH) for _ in sides]
        self.places = [0.8 * normal(LONGEST, WIDTH) for _ in sides]
        self.words = [normal(words, WIDTH) for _ in sides]
        if mark:
            self.places[0][0] = mark * normal(WIDTH)
            self.words[0] = torch.cat([self.words[0], torch.zeros(1, WIDTH)])
        self.maps = [LinearMap(normal(1, 4, WIDTH), normal(1, 4)) for _ in range(2)]
        self.odds = 1 / torch.arange(1, words + 1)

    def draw(self, samples, seed):
        """Ids, masks, and the four parts of the states of both sides; in self-attention they are one."""
        draw, sides, known = generator(seed), [], (self.constant, self.places, self.words, self.noise)
        for constant, place, words, size in zip(*known, strict=False):
            ids = torch.multinomial(self.odds.expand(samples, -1), LONGEST, True, generator=draw)
            ids[:, 1::2] = ids[:, 1::2].sort(1).values  # the rarer ones late
            if self.mark and not sides:
                ids[:, 0] = len(self.odds)
            mask = torch.arange(LONGEST) < torch.randint(3, LONGEST + 1, (samples, 1), generator=draw)
            noise = torch.randn(samples, LONGEST, WIDTH, generator=draw, dtype=torch.float64)
            ones = torch.ones_like(noise)
            sides.append((ids, mask, torch.stack([constant * ones, place * ones, words[ids], size * noise])))
        return sides[0], sides[-1]

    def batch_of(self, seed, samples=25):
        (asks, query_mask, queries), (answers, key_mask, keys) = self.draw(samples, seed)
        inputs = {"query_inputs": queries.sum(0), "key_inputs": keys.sum(0)}
        sites = {"query_site": "q", "key_site": "k" if self.kind == "cross" else "q"}
        attended = Attention(self.kind, 0, **inputs, **sites, maps=tuple(self.maps), scale=0.3)
        tokens = {"target_tokens": asks, "target_outputs": asks, "target_mask": query_mask}
        return Trace(source_tokens=answers, source_mask=key_mask, attentions=(attended,), **tokens)

    @cached_property
    def shares(self):
        """By another way than the library's: covariances of what the parts known make, over many samples."""
        explained, means = Counter(), []
        for side, (_, mask, parts) in enumerate(self.draw(8000, 9_999)):
            first = int(bool(self.mark) and side == 0)  # the mark and its place share no mean with the others
            apart = (torch.arange(LONGEST) >= first)[:, None] * parts[2, :, first:][mask[:, first:]].mean(0)
            means.append((apart, (parts[1] + apart)[mask].mean(0)))
        for seed in range(8):
            (_, query_mask, queries), (_, key_mask, keys) = self.draw(1000, 10_000 + seed)
            mapped = []
            for parts, (word, mean), linear_map in zip((queries, keys), means, self.maps, strict=True):
                # the mean of words is the places', that of places is constant
                parts = [parts[0] + mean, parts[1] + word - mean, parts[2] - word, parts[3]]
                moved = torch.stack(parts) @ linear_map.weight[0].T
                moved[0] += linear_map.bias[0]
                mapped.append(moved)
            allowed = query_mask[:, :, None] & key_mask[:, None]
            terms = torch.einsum("ibsw,jbtw->ijbst", *mapped) * allowed
            counts = allowed.sum(-1, keepdim=True).clamp(min=1)
            terms = (terms - terms.sum(-1, keepdim=True) / counts) * allowed
            names = ("constant", *GROUPS_OF_STATES[:2], "residual")
            explains = (terms * terms.sum((0, 1))).sum((2, 3, 4))
            for i, mine in enumerate(names):
                for j, other in enumerate(names):
                    explained[group_of(f"{mine}·{other}")] += float(explains[i, j])
        return {part: explained[part] / sum(explained.values()) for part in GROUPS_OF_STATES}


known = cache(Known)
marked = partial(known, noise=(0.3, 0.3), mark=3.0)


def analysis_of(model, lines, seed, **options):
    """Of eight batches, however many lines there are: large batches take less time."""
    first = seed * 1000
    stream = Stream(partial(model.batch_of, samples=lines // 8), range(first, first + 8))
    return analyse(stream, **options)


def analysed(model, lines, seed, **options):
    return analysis_of(model, lines, seed, **options).heads[0]


@pytest.fixture
def shares_alone(monkeypatch):
    """Analyses of hundreds of corpora take half the time without what no share depends on.

    That is typicality, for which averages are resized to lengths they were not summed for, and the versions
    of installed packages.
    """

    def unknown(average, attention, target_mask, source_mask):
        typicality = torch.full(attention.shape[:-2], torch.nan, dtype=torch.float64)  # (heads, samples)
        return typicality, torch.zeros(len(target_mask), dtype=torch.bool)

    monkeypatch.setattr(AverageAttention, "typicality", unknown)
    monkeypatch.setattr(from_stream, "versions", dict)


def assert_covered(held, corpora):
    """Within what 95 of 100 may come to in so many corpora, and in many 92 to 98."""
    slack = max(0.03, 3.3 * (0.95 * 0.05 / corpora) ** 0.5)
    shares = {part: count / corpora for part, count in held.items()}
    assert shares == pytest.approx(dict.fromkeys(held, 0.95), abs=slack)


STUDIES = [
    ("cross", "", 200, 25), ("encoder_self", "", 200, 25), ("cross", "marked", 200, 25),
    *(pytest.param(*study, marks=pytest.mark.long)
      for study in (("cross", "", 200, 500), ("cross", "", 800, 100), ("encoder_self", "", 200, 300),
                    ("cross", "marked", 200, 300), ("cross", "marked", 800, 100),
                    ("encoder_self", "marked", 200, 300))),
]  # fmt: skip


@cache
def study_of(kind, mark, lines, corpora):
    """In how many corpora the interval holds each part's share, and how far shares are off in the mean."""
    model = marked(kind) if mark else known(kind)
    held, off = Counter(), Counter()
    for seed in range(1, corpora + 1):
        row = analysed(model, lines, seed)
        for part, share in model.shares.items():
            held[part] += row[f"{part}_low"] <= share <= row[f"{part}_high"]
            off[part] += (row[f"{part}_share"] - share) / corpora
    return held, off


@pytest.mark.slow
@pytest.mark.usefixtures("shares_alone")
@pytest.mark.parametrize(("kind", "mark", "lines", "corpora"), STUDIES)
def test_intervals_hold_the_shares_of_corpora(kind, mark, lines, corpora):
    held, _ = study_of(kind, mark, lines, corpora)
    assert_covered(held, corpora)


@pytest.mark.slow
@pytest.mark.usefixtures("shares_alone")
@pytest.mark.parametrize(("kind", "mark", "lines", "corpora"), STUDIES)
def test_shares_are_hardly_off_in_the_mean(kind, mark, lines, corpora):
    _, off = study_of(kind, mark, lines, corpora)
    assert max(map(abs, off.values())) < (0.04 if corpora == 25 else 0.01)


@pytest.mark.slow
@pytest.mark.usefixtures("shares_alone")
def test_shares_do_not_move_with_the_corpus_where_a_mark_has_a_place_to_itself():
    """Though more words are seen in more text, and the state of the mark is large: no share depends on it."""
    model, corpora = known("cross", noise=(0.3, 0.3), mark=6.0, words=400), 12
    few, many = [analysed(model, 200, seed) for seed in range(1, corpora + 1)], analysed(model, 3200, 1)
    for part, share in model.shares.items():
        assert many[f"{part}_low"] <= share <= many[f"{part}_high"]
        assert sum(row[f"{part}_share"] for row in few) / corpora == pytest.approx(share, abs=0.02)


@pytest.mark.slow
def test_intervals_narrow_with_the_corpus():
    model, widths = known("cross"), []
    for lines in (200, 3200):
        row = analysed(model, lines, 7)
        widths.append(row["residual_high"] - row["residual_low"])
    assert 2.5 < widths[0] / widths[1] < 7  # 4, were all corpora alike


@pytest.mark.slow
def test_residual_shares_of_means_fall_with_the_corpus():
    """Words that were not fitted on are added to the residuals of means."""
    model = known("cross")
    few = analysed(model, 200, 7, method="means")["residual_share"]
    many = analysed(model, 3200, 7, method="means")["residual_share"]
    assert few > many + 0.02


def states_without(gone):
    """A model of which the states hang on words alone, or on places alone."""
    model = Known("encoder_self", seed=3, noise=(0, 0))
    for weights in getattr(model, gone):
        weights.zero_()
    return model


@pytest.mark.parametrize(("gone", "part"), [("places", "input"), ("words", "temporal")])
def test_states_of_one_part_alone_give_it_the_whole_share(gone, part):
    """Whatever the mean of the words is: a constant query with a word is about words."""
    row = analysed(states_without(gone), 200, 1)
    assert row[f"{part}_share"] == pytest.approx(1, abs=1e-6)
    assert row[f"{part}_low"] == pytest.approx(1, abs=1e-6) == row[f"{part}_high"]


@pytest.mark.parametrize("gone", ["places", "words"])
def test_states_of_one_part_alone_are_rebuilt_without_residuals(gone):
    row = analysed(states_without(gone), 200, 1)
    assert row["no_residual_rebuilds"] == pytest.approx(1, abs=1e-6)


def test_means_call_states_of_words_alone_mixed():
    row = analysed(states_without("places"), 200, 1, method="means")
    assert row["input_share"] < 0.9


def test_states_of_words_alone_have_constant_terms_with_words():
    row = analysed(states_without("places"), 200, 1)
    assert row["constant_input_share"] > 0.1


def test_with_a_rotation_what_is_constant_depends_on_position():
    """Then the terms of a constant key stay, and all terms still make the scores."""
    model, turn = Known("encoder_self", seed=4), rotary(LONGEST, 4)
    plain = model.batch_of(1)
    (attention,) = plain.attentions
    rotated = replace(plain, attentions=(replace(attention, query_rotation=turn, key_rotation=turn),))
    for model_pass, count in ((plain, 12), (rotated, 16)):
        (sums,) = judged(fit_of([model_pass], method="least_squares"), [model_pass]).heads.values()
        shares = sums.shares
        assert len(sums.term_names) == count
        assert sum(shares.covariance.values()) == pytest.approx(1)
        scores = model_pass.attentions[0].scores[:, 0]
        allowed = model_pass.allowed(model_pass.attentions[0])
        mean = (scores * allowed).sum(-1, keepdim=True) / allowed.sum(-1, keepdim=True).clamp(min=1)
        assert shares.spread == pytest.approx(float((scores - mean)[allowed].square().mean().sqrt()))


def test_words_that_were_not_fitted_on_move_no_share():
    """Whatever their states are: a wild one would be called residual, and more so in a small corpus."""
    model = known("cross")
    fit = fit_of([model.batch_of(1)], method="least_squares")
    model_pass, sums = model.batch_of(2), []
    new = torch.zeros_like(model_pass.source_tokens, dtype=torch.bool)
    new[::2, 1] = True
    model_pass = replace(model_pass, source_tokens=model_pass.source_tokens.masked_fill(new, WORDS + 1))
    (attention,) = model_pass.attentions
    for factor in (1, 30):
        keys = torch.where(new[:, :, None], factor * attention.key_inputs, attention.key_inputs)
        judgement = judged(fit, [replace(model_pass, attentions=(replace(attention, key_inputs=keys),))])
        sums += [judged_attention.term_sums for judged_attention in judgement.attentions.values()]
    assert judgement.seen["k"].unseen_words >= int((new & model_pass.source_mask).sum()) > 5
    for name in ("absolute", "explained", "moments", "similarity"):
        torch.testing.assert_close(*(getattr(summed, name) for summed in sums))


# Two analyses: a head does not differ from itself, an altered one does.

BATCHES = range(25)


EFFECT = ("head", "way", "side", "part")


def toy(altered=0.0, kinds=("cross",)):
    """Its second head asks for something else the more it is altered."""
    made = Toy(kinds, bias=True)
    weight = made.maps["cross"][0].weight[1]
    weight += altered * torch.randn(weight.shape, generator=generator(5), dtype=weight.dtype)
    return made


@pytest.fixture(scope="module")
def first():
    return analyse(Stream(toy(), BATCHES))


@pytest.fixture(scope="module")
def second():
    return analyse(Stream(toy(3.0), BATCHES))


def test_only_a_head_that_was_altered_differs(first, second):
    comparison, back = compare(first, second), compare(second, first)
    assert comparison.paired
    assert len(comparison.rows) == 2 * len(MEASURES)
    assert {row["head"] for row in comparison.differing} == {1}
    assert all(
        row["difference"] == row["low"] == row["high"] == 0 for row in comparison.rows if row["head"] == 0
    )
    heads = zip(first.heads, second.heads, strict=True)
    expected = [(mine[measure], theirs[measure]) for mine, theirs in heads for measure in MEASURES]
    assert [(row["first"], row["second"]) for row in comparison.rows] == expected
    for row, other in zip(comparison.rows, back.rows, strict=True):
        assert row["low"] <= row["high"] == pytest.approx(-other["low"])


def test_each_of_the_nine_terms_is_compared(first, second):
    shares = [[row["covariance_share"] for row in analysis.terms] for analysis in (first, second)]
    compared = compare(first, second).terms
    assert [(row["first"], row["second"]) for row in compared] == list(zip(*shares, strict=True))
    assert {row["term"] for row in compared if abs(row["difference"]) > 0.01 and row["head"] == 1}


def test_every_effect_is_compared():
    analyses = [analyse(Stream(toy(altered), BATCHES), interventions=True) for altered in (0.0, 3.0)]
    moved = [{tuple(row[n] for n in EFFECT): row["moved"] for row in a.interventions} for a in analyses]
    effects = {
        tuple(row[n] for n in EFFECT): row for row in compare(*analyses).effects_table().to_dict("records")
    }
    assert effects.keys() == moved[0].keys()
    for key, row in effects.items():
        assert row["difference"] == moved[1][key] - moved[0][key]


def test_effects_that_one_analysis_lacks_are_refused(first):
    with_effects = analyse(Stream(toy(), BATCHES), interventions=True)
    message = (
        "these analyses have no interventions in common: make both with analyse(..., interventions=True)"
    )
    assert_refused(compare(first, with_effects).effects_table, message)


def test_the_same_sentences_narrow_the_interval_of_a_small_change(first):
    """Of other sentences all that varies from one to the next is in it."""
    little = compare(first, analyse(Stream(toy(0.02), BATCHES)))
    other = compare(first, analyse(Stream(toy(0.02), range(100, 125))))
    assert (little.paired, other.paired) == (True, False)
    for mine, theirs in zip(little.rows, other.rows, strict=True):
        if mine["head"] == 1:
            assert mine["high"] - mine["low"] < 0.3 * (theirs["high"] - theirs["low"])


def test_blocks_add_up_to_what_the_rows_say(first):
    for row in first.heads:
        *sums, rows = first.blocks[f"{row['kind']}.{row['layer']}", row["head"]].sum(0).tolist()
        assert rows == row["rows"]
        explained = sums[: len(TERM_GROUPS)]
        for measure, total in zip(MEASURES, sums, strict=True):
            whole = rows if measure.endswith("rebuilds") else sum(explained)
            assert total / whole == pytest.approx(row[measure])
    assert len(MEASURES) == len(TERM_GROUPS) + len(STATE_PARTS) + len(REBUILT)


def test_blocks_of_an_earlier_version_are_refused(first):
    without_split = {head: sums[:, [*range(5), *range(8, 12)]] for head, sums in first.blocks.items()}
    earlier = replace(first, blocks=without_split)
    assert_refused(lambda: compare(earlier, first), "before split shares were kept")


def test_a_sentence_has_its_key_in_whatever_batch():
    """Alone and without padding as well; another word on either side is another key."""
    model_pass = replace(toy()(0), attentions=())
    keys = sample_keys(model_pass)
    assert len(set(keys.tolist())) == len(keys)
    names = ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask")
    for row, key in enumerate(keys):
        given = {name: getattr(model_pass, name)[row, model_pass.mask(name[:6])[row]][None] for name in names}
        alone = replace(model_pass, **given)
        assert sample_keys(alone).tolist() == [key]
        for name in ("source_tokens", "target_outputs"):
            changed = getattr(alone, name).clone()
            changed[0, -1] += 1
            assert sample_keys(replace(alone, **{name: changed})).tolist() != [key]


@pytest.mark.long
@pytest.mark.usefixtures("shares_alone")
@pytest.mark.parametrize("paired", [True, False])
def test_intervals_hold_the_differences_of_two_models_whose_shares_are_known(paired):
    models, corpora, held = (known("cross"), Known("cross", seed=11)), 30, Counter()
    for seed in range(1, corpora + 1):
        other = seed if paired else seed + 100
        comparison = compare(analysis_of(models[0], 200, seed), analysis_of(models[1], 200, other))
        assert comparison.paired == paired
        for row in comparison.rows:
            part = row["measure"].removesuffix("_share")
            if part in models[0].shares:
                difference = models[1].shares[part] - models[0].shares[part]
                held[part] += row["low"] <= difference <= row["high"]
    assert_covered(held, corpora)


@pytest.mark.parametrize(("times", "warned"), [(1.4, False), (1.6, True), (1 / 1.6, True)])
def test_where_one_is_of_much_more_text_a_note_says_what_that_moves(first, times, warned):
    comparison = compare(first, replace(first, fitted=round(times * first.fitted)))
    assert comparison.table().attrs["notes"] == comparison.notes
    assert len(comparison.notes) == warned
    assert all(f"on {first.fitted:,} samples" in note for note in comparison.notes)


@pytest.mark.signatures
def test_without_held_out_sentences_nothing_is_known_of_how_sure_it_is(first):
    comparison = compare(first, replace(first, held_out=False))
    assert all(math.isnan(row["low"]) and math.isnan(row["high"]) for row in comparison.rows)
    assert comparison.differing == []
    assert repr(comparison).endswith("no difference has an interval")


def test_options_that_make_other_sentences_are_named(first):
    other = replace(first, made={"options": {"--ignore-special": True, "--batch-size": 3}})
    assert compare(first, other).notes == ["--ignore-special differs: heads may differ for that alone."]


def test_heads_of_one_analysis_alone_are_named(first):
    more = analyse(Stream(toy(kinds=ALL), BATCHES))
    assert compare(first, more).alone == tuple(f"{kind}.0 head {n}" for kind in ALL[1:] for n in range(2))


def test_analyses_without_a_common_head_are_not_compared(first):
    more = analyse(Stream(toy(kinds=ALL), BATCHES))
    rest = replace(more, heads=[row for row in more.heads if row["kind"] != "cross"])
    message = "no head is in both: the first has cross.0 head 0, … analyse the"
    assert_refused(partial(compare, first, rest), message)


def test_an_analysis_without_blocks_is_not_compared(first):
    message = "the second analysis has no blocks of sentences: make it again"
    assert_refused(partial(compare, first, replace(first, blocks={})), message)


def test_analyses_by_two_methods_are_not_compared(first):
    message = "the first is by least_squares, the second by means: analyse both"
    assert_refused(partial(compare, first, replace(first, method="means")), message)


def test_the_command_says_which_heads_differ_after_notes(first, second, tmp_path):
    more = replace(second, fitted=2 * second.fitted)
    for name, written in (("one", first), ("other", more)):
        write_report(written, tmp_path / name)
    table = tmp_path / "differences.csv"
    done = toys.attnlib("compare", tmp_path / "one", tmp_path / "other", "--out", table)
    assert done.exit_code == 0, done.output
    comparison = compare(first, more)
    heading, reading, note, *lines = done.stdout.splitlines()
    assert [heading, reading, note] == [repr(comparison), READING, *comparison.notes]
    assert len(lines) == len(comparison.differing) > 1
    assert lines[0].startswith(f"cross.0 head 1, {comparison.differing[0]['measure']}: ")
    assert_same_rows(toys.table_of(table), comparison.rows, tolerance=1e-8)
    done = toys.attnlib("compare", tmp_path, tmp_path)
    assert done.exit_code == 2
    assert f"holds no {KEPT}" in done.stderr


OF_CROSS, OF_SELF = Toy(("cross",))(0), Toy(("encoder_self",))(0)
SHAPES = "expected (1, 9, batch, target, source)"


def sum_terms(terms, allowed):
    no_sums().update(torch.zeros(terms), torch.ones(allowed, dtype=torch.bool))


test_what_cannot_be_is_refused = refused(
    (lambda: judged(fit_of([OF_CROSS]), [OF_SELF]), "no components of encoder.self; the fit has those of"),
    (lambda: fit_of([OF_CROSS]) + fit_of([OF_SELF]), "different attentions"),
    (lambda: sum_terms((1, 10, 2, 3, 4), (2, 3, 4)), SHAPES),
    (lambda: sum_terms((1, 9, 2, 3, 4), (2, 4, 3)), SHAPES),
    (lambda: sum_terms((1, 9, 2, 3, 4), (1, 3, 4)), SHAPES),
    (lambda: sum_terms((1, 9, 2, 3), (2, 3)), SHAPES),
    (lambda: no_sums() + no_sums(TEN), "same term_names"),
)
