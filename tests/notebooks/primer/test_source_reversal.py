"""Distances by counting steps, learning curves against loops, and the experiment on tiny networks."""

from unittest.mock import Mock

import numpy as np
import pytest

from attnlib.errors import DataUnavailable
from notebooks.primer.source_reversal import experiment
from notebooks.shared import sequence_course, words
from notebooks.shared.measure import measure_learning_curve
from tests.notebooks.figure_builders import tiny


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 4, 7])
def test_distances_are_the_steps_of_the_two_recurrences(length, reverse):
    """Walked one by one: what is read after the word, the end mark, what is written up to the target word."""
    order = list(range(length))[::-1] if reverse else list(range(length))
    links = [(target, source) for target in range(3) for source in range(length)]
    expected = [len(order) - 1 - order.index(source) + 1 + (target + 1) for target, source in links]
    assert words.link_distances(links, length, reverse=reverse) == expected


def by_thirds(recording, judged, chosen):
    """What the last snapshot says of each word of some sentences, in a loop."""
    thirds: dict[str, list[int]] = {"first": [], "middle": [], "last": []}
    for i in chosen:
        length = len(judged.target(i))
        for place in range(length):
            name = list(thirds)[min(2, int(3 * (place + 0.5) / length))]
            thirds[name].append(int(recording["right"][-1, i, place]))
    return thirds


def test_curves_and_the_longest_quarter_of_the_lengths_are_counted_by_thirds(store):
    """Of four to twelve words the longest quarter has ten, eleven and twelve."""
    config = tiny("source_reversal", longest=12, judged=300)
    recording = store.recording(experiment.measurements(config)[0].spec)
    judged = sequence_course.judged_samples(recording.spec.resolved)
    chosen = [i for i in range(len(judged)) if len(judged.target(i)) in (10, 11, 12)]
    curve, longest = measure_learning_curve(recording), experiment.measure_longest_sentences(recording)
    thirds = by_thirds(recording, judged, range(len(judged)))
    for name, values in thirds.items():
        assert curve[name][-1] == pytest.approx(np.mean(values))
    assert curve["token_accuracy"][-1] == pytest.approx(np.mean(np.concatenate(list(thirds.values()))))
    assert len(curve["by_place"]) == 12
    assert (longest["shortest"], longest["sentences"]) == (10, len(chosen))
    for name, values in by_thirds(recording, judged, chosen).items():
        assert longest[name] == pytest.approx(np.mean(values))


def test_a_text_that_is_missing_says_so(monkeypatch):
    monkeypatch.setattr(experiment.registry, "load", Mock(side_effect=DataUnavailable("no file")))
    missing = {"cannot_be_run": "data: europarl_de_en is not available here"}
    assert experiment.count_distances("europarl_de_en") == (missing, [])
