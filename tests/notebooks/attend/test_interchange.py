"""The transplant: sentences, their twins with the other opening, and where attention goes."""

import pytest

from companion.results.frames import Table
from companion.runs.store import load_task
from notebooks.attend.interchange import experiment
from notebooks.attend.interchange.experiment import OTHER_OPENING, measure_transplant, twins_of
from notebooks.shared import suite
from notebooks.shared.suite import SUITE

OPTIONS = {"n_train": 600, "n_held_out": 60}
SPEC = suite.each_planned(
    suite.SuiteConfig(width=8, steps=4), "reordering_100", "AED", 1, task_options=OPTIONS
)[0]


@pytest.fixture(scope="module")
def task():
    return load_task(SPEC.task, SPEC.task_options)


def test_twins_differ_in_their_first_word_alone(task):
    twins = twins_of(task, samples=20)
    words = task.source_vocabulary.decode
    assert len(twins) == 20
    for sample in range(20):
        first, second = (
            words(twins.first.source(sample).tolist()),
            words(twins.second.source(sample).tolist()),
        )
        assert (OTHER_OPENING[first[0]], *first[1:]) == tuple(second)


def test_phrases_of_a_twin_come_in_the_opposite_order(task):
    """A phrase is two words, after the opening: the last one of either sentence is the first of the other."""
    twins = twins_of(task, samples=20)
    for sample, (first, second) in enumerate(zip(*twins.places, strict=True)):
        length = twins.first.target_lengths[sample]
        assert first[0] == second[0] == 0
        assert first[1:3].tolist() == second[length - 2 : length].tolist()


def test_a_sentence_that_is_its_own_twin_moves_no_attention(store, monkeypatch):
    model = store.model(SPEC)
    assert measure_transplant(model, fit_samples=600, samples=60)["both"]["variation"] > 1e-3
    same = {opening: opening for opening in OTHER_OPENING}
    places = twins_of(model.task, 60).places
    monkeypatch.setattr(experiment, "OTHER_OPENING", same)
    twins = twins_of(model.task, 60)
    twins.places[1] = places[1]  # or no word would be judged
    monkeypatch.setattr(experiment, "twins_of", lambda task, samples: twins)
    measured = measure_transplant(model, fit_samples=600, samples=60)
    for transplant in experiment.TRANSPLANTS:
        assert measured[transplant]["variation"] == pytest.approx(0, abs=1e-5)


def test_keys_that_turn_attention_oftener_than_queries_lead():
    """In 4 words of 10 instead of 1."""
    turned = {"none": 0.0, "keys": 0.4, "query": 0.1, "both": 0.9}
    rows = [
        {"task": "reordering_100", "seed": 0, "transplant": transplant, "other": share}
        for transplant, share in turned.items()
    ]
    columns = SUITE | experiment.TRANSPLANT | experiment.TRANSPLANTED
    lead = experiment.lead_of_keys(Table.of(rows, columns, "a transplant in a network"))
    assert lead.frame["other"].tolist() == pytest.approx([0.3])


def exchange(task, part, moves, **others):
    """One part of a network that has learned its task, whose share and cost are what its exchange moves."""
    network = {"task": task, "architecture": "AED", "cell": "gru", "seed": 0, "kind": "AED", "learned": True}
    return network | {"part": part, "moves": moves, "share": moves, "split": moves, "costs": moves} | others


def followed(*exchanges):
    columns = SUITE | experiment.PART | experiment.LEARNED | experiment.OF_PART
    table = experiment.follows(Table.of(exchanges, columns, "a part of a network's states"))
    return {(row["exchanges"], row["quantity"]): row for row in table.records()}


TASKS = ("one_to_one", "scan", "reversal", "permutation")


@pytest.mark.slow
def test_each_part_is_correlated_by_itself():
    """Of two parts that move attention more on some tasks, one has the smaller share where it does."""
    temporal = [exchange(task, "temporal", place / 10) for place, task in enumerate(TASKS)]
    contrary = [exchange(task, "input", place / 10, share=-place) for place, task in enumerate(TASKS)]
    measured = followed(*temporal, *contrary)
    assert (measured["temporal", "share"]["value"], measured["input", "share"]["value"]) == (1, -1)


def test_exchanges_that_move_little_are_left_out_of_large_ones():
    exchanges = [exchange(task, "temporal", 0.2 * place) for place, task in enumerate(TASKS)]  # 0 to 0.6
    measured = followed(*exchanges)
    assert (measured["all", "costs"]["n"], measured["large", "costs"]["n"]) == (4, 2)


def test_the_exchange_of_whole_states_is_not_correlated():
    exchanges = [exchange(task, part, 0.5) for task in TASKS for part in ("temporal", experiment.WHOLE)]
    assert followed(*exchanges)["all", "costs"]["n"] == len(TASKS)


def test_networks_that_have_not_learned_are_not_correlated():
    exchanges = [exchange(task, "temporal", 0.5, learned=task != "scan") for task in TASKS]
    assert followed(*exchanges)["all", "costs"]["n"] == len(TASKS) - 1
