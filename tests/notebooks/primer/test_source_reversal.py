"""Distances by counting steps, learning curves against loops, and the experiment on tiny networks."""

from dataclasses import replace

import numpy as np
import pytest

from attnlib.errors import BadInput, DataUnavailable
from notebooks.primer.source_reversal import experiment
from notebooks.primer.source_reversal.experiment import Config, asks, compute
from notebooks.primer.source_reversal.measure import measure_longest_sentences
from notebooks.shared.measure import measure_learning_curve
from notebooks.shared.sequence_course import judged_samples
from notebooks.shared.words import link_distances

TINY = Config(
    seeds=2,
    longest=6,
    n_train=300,
    judged=60,
    width=8,
    steps=4,
    looks=2,
    aligned=("one_to_one", "number_words"),
)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 4, 7])
def test_distances_are_the_steps_of_the_two_recurrences(length, reverse):
    """Walked one by one: what is read after the word, the end mark, what is written up to the target word."""
    order = list(range(length))[::-1] if reverse else list(range(length))
    links = [(target, source) for target in range(3) for source in range(length)]
    expected = [len(order) - 1 - order.index(source) + 1 + (target + 1) for target, source in links]
    assert link_distances(links, length, reverse=reverse) == expected


def test_a_link_beyond_the_source_is_refused():
    with pytest.raises(BadInput, match="beyond a source of 3 words"):
        link_distances([(0, 3)], 3)


def test_the_curve_counts_words_by_thirds(store):
    recording = store.recording(asks(TINY)[0].spec)
    judged = judged_samples(recording.spec.resolved)
    found = measure_learning_curve(recording)
    thirds = {"first": [], "middle": [], "last": []}
    for i in range(len(judged)):
        length = len(judged.target(i))
        for place in range(length):
            name = list(thirds)[min(2, int(3 * (place + 0.5) / length))]
            thirds[name].append(int(recording["right"][-1, i, place]))
    for name, values in thirds.items():
        assert found[name][-1] == pytest.approx(np.mean(values))
    everything = [value for values in thirds.values() for value in values]
    assert found["token_accuracy"][-1] == pytest.approx(np.mean(everything))
    assert len(found["by_place"]) == TINY.longest
    assert found["steps"] == [0, 2, 4]


def test_the_longest_sentences_are_those_of_the_longest_quarter_of_the_lengths(store):
    """Of four to twelve words ten, eleven and twelve; against a loop."""
    wide = replace(TINY, longest=12, judged=300)
    recording = store.recording(asks(wide)[0].spec)
    judged = judged_samples(recording.spec.resolved)
    thirds: dict[str, list[int]] = {"first": [], "middle": [], "last": []}
    chosen = [i for i in range(len(judged)) if len(judged.target(i)) in (10, 11, 12)]
    for i in chosen:
        length = len(judged.target(i))
        for place in range(length):
            name = list(thirds)[min(2, int(3 * (place + 0.5) / length))]
            thirds[name].append(int(recording["right"][-1, i, place]))
    found = measure_longest_sentences(recording)
    assert (found["shortest"], found["sentences"]) == (10, len(chosen))
    for name, values in thirds.items():
        assert found[name] == pytest.approx(np.mean(values))


def test_a_task_without_links_is_refused(store):
    with pytest.raises(BadInput, match="'scan' has no known links"):
        compute(replace(TINY, aligned=("scan",)), store)


def test_a_text_that_is_missing_says_so(monkeypatch):
    def missing(name):
        raise DataUnavailable(name)

    monkeypatch.setattr(experiment.registry, "load", missing)
    found, rows = experiment.count_distances("europarl_de_en")
    assert found == {"cannot_be_run": "data: europarl_de_en is not at hand"}
    assert rows == []
