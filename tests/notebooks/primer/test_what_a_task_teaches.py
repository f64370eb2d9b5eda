"""What a task teaches: its numbers by hand and against loops, and the experiment on tiny networks."""

import math
from collections import Counter
from operator import itemgetter

import numpy as np
import pytest
import torch

from companion.results.frames import Table
from companion.runs.columns import Column
from notebooks.primer.what_a_task_teaches import experiment
from notebooks.shared import task_patterns
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.task_patterns import PatternSums, SourceRows, network_of
from tests.notebooks.figure_builders import tiny
from tests.notebooks.worked import assert_answer

TINY = tiny("what_a_task_teaches")


def recorded(store, kind, task, seed=0):
    return store.recording(experiment.specs(TINY, kind, task)[seed])


@pytest.fixture(scope="module")
def summary_patterns(store):
    return task_patterns.measure_patterns(recorded(store, "recurrent", "summary"))


def test_attention_to_gold_links_is_on_them_alone(summary_patterns):
    gold = summary_patterns["references"]["gold"]
    assert (gold["on_gold"], gold["on_topics"], gold["entropy"], gold["on_end"]) == (1, 1, 0, 0)


def test_the_order_of_gold_links_is_counted_by_pairs(summary_patterns):
    links = load_task(experiment.specs(TINY, "recurrent", "summary")[0].resolved).gold[: TINY.judged]
    gold = summary_patterns["references"]["gold"]
    places = [[place for place, _ in sorted(linked, key=itemgetter(1))] for linked in links]
    moves = [np.sign(b - a) for linked in places for i, a in enumerate(linked) for b in linked[i + 1 :]]
    assert gold["order"] == pytest.approx(np.mean(moves))


def test_uniform_attention_is_on_gold_links_as_on_the_end(summary_patterns):
    even = summary_patterns["references"]["even"]
    assert even["on_end"] == even["on_gold"]
    assert 2 ** even["entropy"] == pytest.approx(1 / even["on_gold"], rel=0.05)  # words and an end mark


def test_a_recurrent_network_has_one_head(summary_patterns):
    untrained = summary_patterns["untrained"]
    assert untrained["heads"] == [[untrained["all"]]]  # one layer, one head


def test_a_network_agrees_with_itself(store):
    recording = recorded(store, "transformer", "translation")
    same = task_patterns.measure_pattern_agreement(recording, recording, state="trained")
    assert same == pytest.approx({"sentence": 1, "same_word": 1})


def test_agreement_with_another_network_is_that_of_a_loop(store):
    first, second = (
        recorded(store, "transformer", "translation"),
        recorded(store, "transformer", "summary", 1),
    )
    measured = task_patterns.measure_pattern_agreement(first, second, state="trained")
    rows, links = [], []
    for recording in (first, second):
        judged = judged_samples(recording.spec.resolved)
        by_sample = {}
        for batch, heads in task_patterns.attention_to_source(network_of(recording, "trained"), judged):
            by_sample |= dict(zip(batch.indices.tolist(), heads.mean((0, 1)), strict=True))
        rows.append(by_sample)
        links.append(load_task(recording.spec.resolved).gold)
    sentences, words = [], []
    for i in range(len(judged)):
        n = len(judged.source(i)) + 1
        means = [
            by_sample[i][: len(gold[i]), :n].mean(0) for by_sample, gold in zip(rows, links, strict=True)
        ]
        sentences.append(torch.minimum(*means).sum().item())
        steps = dict(links[0][i])
        for place, step in links[1][i]:
            words.append(torch.minimum(rows[0][i][steps[place], :n], rows[1][i][step, :n]).sum().item())
    assert measured == pytest.approx({"sentence": np.mean(sentences), "same_word": np.mean(words)})


def pairs(first, second, state, values):
    """Rows of pairs of networks: the first of seed 0, 1, …, the second of the next."""
    named = {"kind": "recurrent", "first": first, "second": second, "state": state, "view": "same_word"}
    return [named | {"seed": seed, "value": value} for seed, value in enumerate(values)]


def agreement(rows, seeds):
    columns = experiment.PAIR | {"seed": Column("seed")} | experiment.AGREEMENT
    table = Table.of(rows, columns, "a pair of networks")
    estimates = experiment.agreement_by_kind(table, ["recurrent"], seeds=seeds).query("view == 'same_word'")
    return {row["quantity"]: row for row in estimates.records()}


def test_what_the_task_takes_by_hand():
    agreed = agreement(
        [
            *pairs("translation", "translation", "trained", (0.9, 0.8, 1.0)),
            *pairs("summary", "summary", "trained", (0.7, 0.8, 0.6)),
            *pairs("translation", "summary", "trained", (0.7, 0.5, 0.6)),
            *pairs("translation", "summary", "untrained", (0.9, 0.9, 0.9)),
        ],
        seeds=3,
    )
    means = {
        name: agreed[name]["value"] for name in ("translation", "summary", "seeds", "between", "untrained")
    }
    expected = {"translation": 0.9, "summary": 0.7, "seeds": 0.8, "between": 0.6, "untrained": 0.9}
    assert means == pytest.approx(expected)
    effect = agreed["task_effect"]  # 0.1, 0.3, 0.2: above 0 where one task has more in common than two
    assert (effect["value"], effect["n"]) == (pytest.approx(0.2), 3)
    # Without seed 2, 0 or 1 one pair is left: 0.1, 0.3, 0.2. Squares of their deviations sum to 0.02, times
    # two thirds; Student's 97.5 % point with two degrees of freedom is 4.3027.
    assert effect["high"] - effect["value"] == pytest.approx(4.3027 * (0.02 * 2 / 3) ** 0.5, rel=1e-4)
    assert effect["value"] - effect["low"] == pytest.approx(effect["high"] - effect["value"])
    # Two networks of one task are one pair, not two: nothing is known of the spread.
    alone = agreement(pairs("summary", "summary", "trained", (0.9, 0.8)), seeds=2)["summary"]
    assert (alone["value"], alone["low"], alone["high"]) == (pytest.approx(0.85), None, None)


# Who asks whom: classes of words, reciprocity and sources against loops and what must be exact.


def test_reciprocity_in_a_loop_over_pairs_of_words(store):
    recording = recorded(store, "transformer", "translation")
    network, judged = network_of(recording, "trained"), judged_samples(recording.spec.resolved)
    network.requires_grad_(False)
    gold = load_task(recording.spec.resolved).gold
    sums = Counter()
    for batch in experiment.equal_lengths(judged):
        head = network(batch).head("cross", 1, 0)
        n = batch.source.shape[1] - 1
        for row, i in enumerate(batch.indices.tolist()):
            step = dict(gold[i])
            pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
            weight = {(a, b): head.attention[row, step[a], b].item() for a, b in pairs}
            mean = np.mean(list(weight.values()))
            sums["mutual"] += sum((weight[a, b] - mean) * (weight[b, a] - mean) for a, b in pairs)
            sums["own"] += sum((weight[pair] - mean) ** 2 for pair in pairs)
    measured = experiment.measure_reciprocity(recording)["trained"]["cross"][1][0]
    assert measured["weights"] == pytest.approx(sums["mutual"] / sums["own"], rel=1e-3)


def test_tied_maps_have_symmetric_scores(store):
    tied = experiment.measure_reciprocity(recorded(store, "tied", "translation"))
    for state in ("trained", "untrained"):
        for layer in tied[state]["encoder_self"]:
            for head in layer:
                assert head["scores"] == pytest.approx(1)
                assert head["maps"] == pytest.approx(1)
                assert head["weights"] == pytest.approx(head["halved"], abs=1e-5) != 1


def test_free_maps_have_no_symmetric_scores(store):
    free = experiment.measure_reciprocity(recorded(store, "transformer", "translation"))
    for state in ("trained", "untrained"):
        for layer in free[state]["encoder_self"]:
            assert all(abs(head["scores"]) < 0.9 for head in layer)


def test_what_is_compared_comes_from_where_it_should(store):
    measured = experiment.measure_sources(recorded(store, "transformer", "translation"))
    for layer in measured["encoder_self"]:
        assert layer["queries"]["target"] == layer["keys"]["target"] == 0
        assert min(layer["queries"]["source"], layer["keys"]["source"]) > 0
    first, second = measured["cross"]
    assert first["queries"]["source"] == first["keys"]["target"] == second["keys"]["target"] == 0
    assert min(first["queries"]["target"], first["keys"]["source"], second["queries"]["source"]) > 0
    lower, upper = (layer["queries"]["source"] for layer in measured["decoder_self"])
    assert lower == 0 < upper


# Reciprocity against hand-worked matrices, its definition in a loop, and what leaves it as it is.


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def of(matrices, level):
    return experiment.ReciprocitySums().update(matrices, level).result()


def test_the_definition_in_a_loop():
    (matrix,) = draw(1, 4, 4, seed=1)
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    mean = np.mean([matrix[i, j].item() for i, j in pairs])
    left = {(i, j): matrix[i, j].item() - mean for i, j in pairs}
    expected = sum(left[i, j] * left[j, i] for i, j in pairs) / sum(v**2 for v in left.values())
    assert of(matrix[None], "attention").value == pytest.approx(expected)
    apart, together = (torch.linalg.norm(part).item() for part in (matrix - matrix.T, matrix + matrix.T))
    assert of(matrix[None], "attention").ratio == pytest.approx(apart / together)


def test_what_a_softmax_does_not_see_does_not_count():
    """A number a row changes no attention; log attention is the scores but for a number a row."""
    scores = draw(3, 5, 5, seed=3)
    before = of(scores, "scores").value
    assert of(scores + draw(3, 5, 1, seed=4), "scores").value == pytest.approx(before)
    assert of(scores.softmax(-1).log(), "scores").value == pytest.approx(before)


def test_maps():
    query, key = draw(3, 7, seed=6), draw(3, 7, seed=7)
    assert experiment.map_symmetry(query, query) == pytest.approx(1)
    product = (query.T @ key).numpy()
    expected = np.trace(product @ product) / np.linalg.norm(product) ** 2
    assert experiment.map_symmetry(query, key) == pytest.approx(expected)


def test_what_has_no_pairs_is_undefined():
    assert math.isnan(experiment.ReciprocitySums().result().value)
    assert math.isnan(of(torch.ones(1, 3, 3), "attention").value)


@pytest.mark.parametrize(
    ("attention", "rows", "totals", "counts"),
    [
        # Two words of the target, three of the source and its end mark; the second word is the topic. Sums,
        # then counts, on gold links, on topics, on the end mark, of bits of entropy (1.5 and none), of the
        # order from the first word to the third, and of how far that reaches.
        pytest.param(
            torch.tensor([[[0.5, 0.25, 0, 0.25], [0, 0, 1, 0], [0.25, 0.25, 0.25, 0.25]]]),
            SourceRows(
                gold=torch.tensor(
                    [[[True, False, False, False], [False, True, False, False], [False, False, False, False]]]
                ),
                topics=torch.tensor([[False, True, False, False]]),
                target_words=torch.tensor([[True, True, False]]),
                source_words=torch.tensor([[True, True, True, False]]),
                source_mask=torch.tensor([[True, True, True, True]]),
            ),
            [0.5, 0.25, 0.25, 1.5, 1, 1.75],
            [2, 2, 2, 2, 1, 3],
            id="two_words_of_three",
        )
    ],
)
def test_pattern_sums_by_hand(attention, rows, totals, counts):
    sums = PatternSums()
    sums.add(attention, rows)
    assert_answer([*sums.totals.values()], totals)
    assert_answer([*sums.counts.values()], counts)
