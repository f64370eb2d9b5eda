"""One step in numbers against the network's own equations, and what its instrument draws."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from companion.book.notebook import instrument
from companion.runs import registry
from companion.runs.procedure import RunSpec
from notebooks.primer.one_step.experiment import COORDINATES, measure_shown_pairs
from notebooks.primer.one_step.instrument import sentences
from notebooks.shared.sequence_course import shown_pairs


def test_the_step_is_score_softmax_context(store):
    options = (("n_words", 3), ("min_length", 5), ("max_length", 6), ("n_train", 60), ("n_held_out", 20))
    settings = {"decoder": "bahdanau", "scoring": "additive", "bidirectional": True, "width": 6}
    looked_at = {"steps": 4, "snapshots": 2, "judged": 20, "shown": (("A B C", "b a c"), ("C A", "a c"))}
    looked_at |= {"seed": 1}  # some of the coordinates furthest from zero are below it
    spec = RunSpec.of("recurrent_sequences", task="one_to_one", options=options, **settings, **looked_at)
    recording = store.recording(spec)
    measured = measure_shown_pairs(recording, pair=0, place=1)
    rows = pd.DataFrame(measured["worked"])
    assert rows["source"].tolist() == ["A", "B", "C", "<eos>"]
    weights = np.exp(rows["score"] - rows["score"].max())
    np.testing.assert_allclose(rows["exponential"], weights, rtol=1e-5)
    np.testing.assert_allclose(rows["attention"], weights / weights.sum(), rtol=1e-5)
    np.testing.assert_allclose(measured["attention"][-1][0][1], rows["attention"], rtol=1e-5)
    chances = [row["probability"] for row in measured["predicted"]]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) <= 1 + 1e-6
    network = registry.load("recurrent_sequences").recorded_network(recording)
    with torch.no_grad():
        trace = network(shown_pairs(recording.spec.resolved))
    context, left_out = trace.context[0, 1], trace.context[0, 1].clone()
    for entry in measured[
        "context"
    ]:  # the coordinates where the context of the network is furthest from zero
        place = entry["coordinate"]
        assert entry["value"] == pytest.approx(float(context[place]))
        assert entry["value"] == pytest.approx(sum(entry["weighted"]), abs=1e-6)  # a reader can add it up
        assert entry["weighted"] == pytest.approx((rows["attention"] * entry["states"]).tolist())
        assert entry["states"] == pytest.approx(trace.encoder_states[0, :4, place].tolist())
        left_out[place] = 0
    assert int((left_out == 0).sum()) == COORDINATES
    assert min(abs(entry["value"]) for entry in measured["context"]) >= float(left_out.abs().max())


HOSTILE = "</script><img src=x onerror=alert(1)>"


def instrument_of_hostile_words():
    rows = [
        {"pair": 0, "step": step, "target_place": s, "source_place": t, "target": target, "source": source}
        | {"attention": float(t == (s + snapshot) % 3), "probability": 0.25 * (snapshot + 1)}
        for snapshot, step in enumerate((0, 10))
        for s, target in enumerate("xy")
        for t, source in enumerate(("a", HOSTILE, "<eos>"))
    ]
    return sentences(SimpleNamespace(tables={"map": rows[::-1]}, config={"pair": 0, "place": 1}))


def test_the_instrument_has_the_numbers_of_the_rows():
    data, table = instrument_of_hostile_words()
    (sentence,) = data["sentences"]
    expected = {"steps": [0, 10], "source": ["a", HOSTILE, "<eos>"], "target": ["x", "y"]}
    none = -20.72  # the logarithm of a weight that is indistinguishable from none
    first, second, third = [0, none, none], [none, 0, none], [none, none, 0]
    expected |= {"scores": [[first, second], [second, third]]}
    expected |= {"probability": [[0.25, 0.25], [0.5, 0.5]]}
    assert sentence == sentence | expected
    assert (data["sentence"], data["word"]) == (0, 1)
    assert table["attention after training"]["y"] == f"a 0.00, {HOSTILE} 0.00, <eos> 1.00"


def test_words_of_the_instrument_are_never_markup():
    text = instrument("one-step", *instrument_of_hostile_words(), label=HOSTILE)
    assert (text.count("<img"), text.count("<script")) == (0, 3)


def test_the_instrument_asks_nothing_of_other_hosts():
    text = instrument("one-step", *instrument_of_hostile_words(), label=HOSTILE)
    assert not re.search(r"https?:|//", text)
