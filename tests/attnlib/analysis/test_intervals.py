"""Shares of corpora whose shares are known: what the intervals say of them, and what a constant is."""

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
import torch

from attnlib.adapters import Attended, LinearMap, ModelPass
from attnlib.analysis import Stream, analyse
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import Judgement
from tests.attnlib.adapters.adapter_builders import rotary
from tests.attnlib.models.model_builders import generator

WORDS, WIDTH, LONGEST, BATCH = 80, 6, 9, 25
PARTS = ("temporal", "input", "mixed", "residual")
NOISE = {"query": 0.7, "key": 0.6}


class Known:
    """A cross-attention over states made of a constant, a place, a word and noise, of which each is known.

    Words come as in texts, one as often as all rarer ones by Zipf's law, and prefer some places.
    """

    def __init__(self, kind="cross", seed=0):
        self.kind, draw = kind, generator(seed)
        sides = ("query", "key") if kind == "cross" else ("query",)

        def normal(*shape):
            return torch.randn(*shape, generator=draw, dtype=torch.float64)

        self.constant = {side: normal(WIDTH) for side in sides}
        self.places = {side: 0.8 * normal(LONGEST, WIDTH) for side in sides}
        self.words = {side: normal(WORDS, WIDTH) for side in sides}
        self.maps = [LinearMap(normal(1, 4, WIDTH), normal(1, 4)) for _ in range(2)]
        self.odds = 1 / torch.arange(1, WORDS + 1)
        if kind != "cross":
            for own in (self.constant, self.places, self.words):
                own["key"] = own["query"]

    def draw(self, samples, seed):
        """Ids, masks, and the four parts of the states of both sides; in self-attention they are one."""
        draw, found = generator(seed), {}
        for side in ("query", "key") if self.kind == "cross" else ("query",):
            ids = torch.multinomial(self.odds.expand(samples, -1), LONGEST, True, generator=draw)
            ids[:, 1::2] = ids[:, 1::2].sort(1).values  # the rarer ones late
            mask = torch.arange(LONGEST) < torch.randint(3, LONGEST + 1, (samples, 1), generator=draw)
            noise = torch.randn(samples, LONGEST, WIDTH, generator=draw, dtype=torch.float64)
            ones = torch.ones_like(noise)
            parts = [self.constant[side] * ones, self.places[side] * ones, self.words[side][ids]]
            found[side] = ids, mask, torch.stack([*parts, NOISE[side] * noise])
        return found | ({"key": found["query"]} if self.kind != "cross" else {})

    def one(self, samples, seed):
        found = self.draw(samples, seed)
        (asks, query_mask, queries), (answers, key_mask, keys) = found["query"], found["key"]
        states = queries.sum(0), keys.sum(0)
        sites = ("q", "k") if self.kind == "cross" else ("q", "q")
        attended = Attended(self.kind, 0, *states, *sites, *self.maps, scale=0.3)
        source, source_mask = (answers, key_mask) if self.kind == "cross" else (asks, query_mask)
        tokens = {"target_tokens": asks, "target_outputs": asks, "target_mask": query_mask}
        return ModelPass(source_tokens=source, source_mask=source_mask, attended=(attended,), **tokens)

    @property
    @cache  # noqa: B019, there are two
    def shares(self):
        """By another way than the library's: covariances of what the parts known make, over many samples."""
        explained, many = Counter(), self.draw(8000, 9_999)
        means = {side: parts[:, mask].mean(1) for side, (_, mask, parts) in many.items()}
        for seed in range(8):
            found = self.draw(1000, 10_000 + seed)
            mapped = []
            for side, own in zip(("query", "key"), self.maps, strict=True):
                parts = found[side][2].clone()
                for place in (1, 2):  # of position and word the mean is constant
                    mean = means[side][place]
                    parts[place] -= mean
                    parts[0] += mean
                moved = parts @ own.weight[0].T
                moved[0] += own.bias[0]
                mapped.append(moved)
            allowed = found["query"][1][:, :, None] & found["key"][1][:, None]
            terms = torch.einsum("ibsw,jbtw->ijbst", *mapped) * allowed
            counts = allowed.sum(-1, keepdim=True).clamp(min=1)
            terms = (terms - terms.sum(-1, keepdim=True) / counts) * allowed
            names = ("constant", *PARTS[:2], "residual")
            explains = (terms * terms.sum((0, 1))).sum((2, 3, 4))
            for i, mine in enumerate(names):
                for j, other in enumerate(names):
                    both = {mine, other} - {"constant"}
                    part = "mixed" if len(both) == 2 else min(both, default="constant")
                    part = "residual" if "residual" in both else part
                    explained[part] += float(explains[i, j])
        return {part: explained[part] / sum(explained.values()) for part in PARTS}


@cache
def known(kind):
    return Known(kind)


def analysis_of(model, lines, seed, **options):
    sizes = enumerate(min(BATCH, lines - first) for first in range(0, lines, BATCH))
    batches = [(size, seed * 1000 + number) for number, size in sizes]
    return analyse(Stream(lambda own: model.one(*own), batches), **options)


def analysed(model, lines, seed, **options):
    return analysis_of(model, lines, seed, **options).heads[0]


def coverage(kind, lines, corpora):
    """How often the interval of each share holds it, and by how much shares are off in the mean."""
    held, off, model = Counter(), Counter(), known(kind)
    for seed in range(1, corpora + 1):
        row = analysed(model, lines, seed)
        for part, share in model.shares.items():
            held[part] += row[f"{part}_low"] <= share <= row[f"{part}_high"]
            off[part] += (row[f"{part}_share"] - share) / corpora
    return {part: held[part] / corpora for part in PARTS}, off


def assert_covered(held, corpora):
    """Within what 95 of 100 may come to in so many corpora, and in many 92 to 98."""
    slack = max(0.03, 3.3 * (0.95 * 0.05 / corpora) ** 0.5)
    for part, share in held.items():
        assert abs(share - 0.95) <= slack, (part, held)


@pytest.mark.parametrize("kind", ["cross", "encoder_self"])
def test_intervals_hold_the_shares_of_few_corpora(kind):
    held, off = coverage(kind, 200, 25)
    assert_covered(held, 25)
    assert max(map(abs, off.values())) < 0.04


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "lines", "corpora"), [("cross", 200, 500), ("cross", 800, 100), ("encoder_self", 200, 300)]
)
def test_intervals_hold_the_shares_of_many_corpora(kind, lines, corpora):
    held, off = coverage(kind, lines, corpora)
    assert_covered(held, corpora)
    assert max(map(abs, off.values())) < 0.01


def test_shares_do_not_move_with_the_corpus_and_intervals_narrow():
    """As residuals of means do, to which words that were not fitted on are added."""
    model, widths = known("cross"), []
    for lines in (200, 3200):
        row = analysed(model, lines, 7)
        widths.append(row["residual_high"] - row["residual_low"])
    assert 2.5 < widths[0] / widths[1] < 7  # 4, were all corpora alike
    few = analysed(model, 200, 7, method="means")["residual_share"]
    many = analysed(model, 3200, 7, method="means")["residual_share"]
    assert few > many + 0.02


@pytest.mark.parametrize(("left", "part"), [("words", "input"), ("places", "temporal")])
def test_of_states_of_words_alone_all_is_input_and_of_places_alone_all_is_temporal(left, part):
    """Whatever the mean of the words is: a constant query with a word is about words. Means call it mixed."""
    model = Known("encoder_self", seed=3)
    for name in {"words", "places"} - {left}:
        for own in getattr(model, name).values():
            own.zero_()
    draw = model.draw

    def without_noise(*given):
        found = draw(*given)
        for _, _, parts in found.values():
            parts[3] = 0
        return found

    model.draw = without_noise
    row = analysed(model, 200, 1)
    assert row[f"{part}_share"] == pytest.approx(1, abs=1e-6)
    assert row[f"{part}_low"] == pytest.approx(1, abs=1e-6) == row[f"{part}_high"]
    assert row["no_residual_rebuilds"] == pytest.approx(1, abs=1e-6)
    if part == "input":
        as_in_the_papers = analysed(model, 200, 1, method="means")
        assert as_in_the_papers["input_share"] < 0.9
        assert row["constant_input_share"] > 0.1


def test_with_a_rotation_what_is_constant_depends_on_position():
    """Then the terms of a constant key stay, and all terms still make the scores."""
    model, turn = Known("encoder_self", seed=4), rotary(LONGEST, 4)
    one = model.one(BATCH, 1)
    (own,) = one.attended
    rotated = replace(one, attended=(replace(own, query_rotation=turn, key_rotation=turn),))
    for given, count in ((one, 12), (rotated, 16)):
        judgement = Judgement(Fit(method="least_squares").update(given)).update(given)
        ((_, sums),) = judgement.heads.items()
        assert len(sums.terms.terms) == count
        assert sum(sums.terms.result().covariance.values()) == pytest.approx(1)
        spread = sums.terms.result().spread
        scores = given.attended[0].scores[:, 0]
        allowed = given.allowed(given.attended[0])
        mean = (scores * allowed).sum(-1, keepdim=True) / allowed.sum(-1, keepdim=True).clamp(min=1)
        assert spread == pytest.approx(float((scores - mean)[allowed].square().mean().sqrt()))


def test_words_that_were_not_fitted_on_move_no_share():
    """Whatever their states are: a wild one would be called residual, and more so in a small corpus."""
    model = known("cross")
    fit = Fit(method="least_squares").update(model.one(BATCH, 1))
    one, sums = model.one(BATCH, 2), []
    new = torch.zeros_like(one.source_tokens, dtype=torch.bool)
    new[::2, 1] = True
    one = replace(one, source_tokens=one.source_tokens.masked_fill(new, WORDS + 1))
    (own,) = one.attended
    for factor in (1, 30):
        keys = torch.where(new[:, :, None], factor * own.key_inputs, own.key_inputs)
        judged = Judgement(fit).update(replace(one, attended=(replace(own, key_inputs=keys),)))
        ((_, found),) = judged.heads.items()
        sums.append(found.terms.sums)
    assert judged.seen["k"]["unseen_words"] >= int((new & one.source_mask).sum()) > 5
    for name in ("absolute", "products", "moments", "similarity"):
        torch.testing.assert_close(*(own[name] for own in sums))
