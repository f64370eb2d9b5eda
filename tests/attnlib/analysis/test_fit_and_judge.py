"""Both passes: against the decomposition's own pieces, by hand where tokens are ignored, and in halves."""

from dataclasses import replace

import pytest
import torch

from attnlib.analysis.fit import counted_attention, whole_samples
from attnlib.analysis.results import head_rows, state_rows, term_rows
from attnlib.decomposition import Components, ShareSums
from attnlib.probes.agreement import agreement, chance_agreement
from tests.attnlib.analysis.analysis_builders import (
    ALL,
    HEADS,
    LONGEST,
    WIDTH,
    WORDS,
    Toy,
    assert_same_rows,
    by_hand,
    fit_of,
    judged,
    rows_of,
)

# Against the decomposition's own pieces.


@pytest.mark.parametrize("ignored", [(), (3,)])
def test_cross_attention_is_judged_by_components_of_what_counts(ignored):
    """Fixed tables over all batches at once, one product of heads at a time."""
    toy = Toy(ignored=ignored)
    passes = [toy(number) for number in range(20)]
    components = {site: Components(WORDS, LONGEST, WIDTH) for site in ("encoder", "decoder.cross")}

    def each(one, method):
        whole = whole_samples(one)
        return {
            site: getattr(components[site], method)(
                states[whole], one.tokens(side)[whole], one.counted(side)[whole]
            )
            for site, (side, states) in one.sites().items()
        }

    for one in passes[:15]:
        each(one, "update")
    for row in head_rows(judged(fit_of(passes[:15]), passes[15:])):
        shares = ShareSums()
        for one in passes[15:]:
            parts = each(one, "split")
            terms = one.attended[0].terms(row["head"], parts["decoder.cross"], parts["encoder"])
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
    assert len(judgement.heads) == len(ALL) * HEADS
    assert len({row["term"] for row in term_rows(judgement)}) == 9 + bias
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


def test_agreement_is_the_probes_own():
    toy = Toy(ignored=(3,))
    passes = list(map(toy, range(20)))
    judgement = judged(fit_of(passes[:15]), passes[15:], toy.probe)
    for head in range(HEADS):
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


def test_without_a_probe_there_is_no_agreement_and_self_attention_never_has_one():
    toy = Toy(ALL)
    fit = fit_of(map(toy, range(9)))
    for row in head_rows(judged(fit, [toy(9)])):
        assert row["agreement_with_probe"] != row["agreement_with_probe"]
    for row in head_rows(judged(fit, [toy(9)], toy.probe)):
        assert (row["agreement_with_probe"] >= 0) == (row["kind"] == "cross")


# Ignored tokens, by hand.


def test_attention_on_an_ignored_word():
    """Half of the first row and a quarter of the second; the third row is not counted."""
    scores = [[1.0, 1.0, 2.0], [2.0, 1.0, 1.0], [0.1, 0.1, 9.0]]
    one = by_hand(scores, [False, False, True], [False, False, True])
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
    without = taken(one, [0, 2, 3, 5])
    fit = fit_of(map(toy, range(9)))
    first, second = (judged(fit, [some], toy.probe) for some in (spoilt, without))
    assert first.samples == second.samples <= 4
    assert_same_rows(rows_of(first), rows_of(second), but=("agreement_with_probe", "agreement_by_chance"))
    first, second = (judged(fit_of([some]), [one]) for some in (spoilt, without))
    assert_same_rows(rows_of(first), rows_of(second))


def taken(one, chosen):
    """Some of the samples of a pass."""
    attended = [
        replace(own, query_inputs=own.query_inputs[chosen], key_inputs=own.key_inputs[chosen])
        for own in one.attended
    ]
    tensors = {name: own[chosen] for name, own in vars(one).items() if isinstance(own, torch.Tensor)}
    return replace(one, **tensors, attended=tuple(attended))


def test_unseen_words_and_places_are_counted():
    """Fitted on one sample of the words 0 1, judged on one of 0 1 2: a third is new, word and place."""
    two = by_hand([[1.0, 1.0]], [False] * 2)
    three = by_hand([[1.0, 1.0, 1.0]], [False] * 3)
    rows = {row["states"]: row for row in state_rows(fit_of([two]), judged(fit_of([two]), [three]))}
    assert (rows["answers"]["unseen_words"], rows["answers"]["unseen_positions"]) == (1 / 3, 1 / 3)
    assert (rows["asks"]["unseen_words"], rows["asks"]["judged"]) == (0.0, 1)
    assert (rows["answers"]["words"], rows["answers"]["positions"], rows["answers"]["fitted"]) == (2, 2, 2)
