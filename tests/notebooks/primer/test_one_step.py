"""One step in numbers against the network's own equations, and the map that can be moved."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
import torch

from companion.runs import registry
from companion.runs.procedure import RunSpec
from notebooks.primer.one_step.attention_map import attention_map
from notebooks.primer.one_step.measure import COORDINATES, measure_shown_pairs
from notebooks.shared.sequence_course import shown_pairs

SHOWN = (("A B C", "b a c"), ("C A", "a c"))


def test_the_step_is_score_softmax_and_context(store):
    options = (("n_words", 3), ("min_length", 5), ("max_length", 6), ("n_train", 60), ("n_held_out", 20))
    settings = {"decoder": "bahdanau", "scoring": "additive", "bidirectional": True, "width": 6}
    looked_at = {"steps": 4, "snapshots": 2, "judged": 20, "shown": SHOWN}
    looked_at |= {"seed": 1}  # some of the coordinates furthest from zero are below it
    spec = RunSpec.of("recurrent_sequences", task="one_to_one", options=options, **settings, **looked_at)
    recording = store.recording(spec)
    found = measure_shown_pairs(recording, pair=0, place=1)
    rows = pd.DataFrame(found["worked"])
    assert rows["source"].tolist() == ["A", "B", "C", "<eos>"]
    weights = np.exp(rows["score"] - rows["score"].max())
    np.testing.assert_allclose(rows["exponential"], weights, rtol=1e-5)
    np.testing.assert_allclose(rows["attention"], weights / weights.sum(), rtol=1e-5)
    np.testing.assert_allclose(found["attention"][-1][0][1], rows["attention"], rtol=1e-5)
    chances = [row["probability"] for row in found["predicted"]]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) <= 1 + 1e-6
    network = registry.load("recurrent_sequences").recorded_network(recording)
    with torch.no_grad():
        trace = network(shown_pairs(recording.spec.resolved))
    context, left_out = trace.context[0, 1], trace.context[0, 1].clone()
    for entry in found["context"]:  # the coordinates where the context of the network is furthest from zero
        place = entry["coordinate"]
        assert entry["value"] == pytest.approx(float(context[place]))
        assert entry["value"] == pytest.approx(sum(entry["weighted"]), abs=1e-6)  # a reader can add it up
        assert entry["weighted"] == pytest.approx((rows["attention"] * entry["states"]).tolist())
        assert entry["states"] == pytest.approx(trace.encoder_states[0, :4, place].tolist())
        left_out[place] = 0
    assert int((left_out == 0).sum()) == COORDINATES
    assert min(abs(entry["value"]) for entry in found["context"]) >= float(left_out.abs().max())


# The interactive map: its numbers, hostile words, and what can be heard and reached.

HOSTILE = "</script><img src=x onerror=alert(1)>"


def rows_of(source, target, steps=(0, 10)):
    return [
        {"step": step, "target_place": s, "source_place": t, "target": own, "source": word}
        | {"attention": float(t == (s + snapshot) % len(source)), "probability": 0.25 * (snapshot + 1)}
        for snapshot, step in enumerate(steps)
        for s, own in enumerate(target)
        for t, word in enumerate(source)
    ]


def data_of(text):
    return json.loads(re.search(r'application/json">(.*?)</script>', text, re.DOTALL)[1])


def test_words_are_text_and_never_markup():
    text = attention_map(rows_of([HOSTILE, '"><b>'], ["&amp;", "<eos>"]))
    assert (text.count("<img"), text.count("<script"), text.count("<b>")) == (0, 2, 0)
    for word in (HOSTILE, '"><b>', "&amp;"):
        assert f">{html.escape(word)}</" in text
    assert data_of(text)["source"] == [HOSTILE, '"><b>']
    assert f'aria-label="Attention, word by word, to “{html.escape(HOSTILE)} &quot;&gt;&lt;b&gt;”"' in text


def test_numbers_are_those_of_the_rows():
    text = attention_map(rows_of(["a", "b", "c"], ["x", "y"]))
    data = data_of(text)
    assert data["attention"] == [[[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]]]
    assert data["probability"] == [[0.25, 0.25], [0.5, 0.5]]
    assert data["steps"] == [0, 10]
    cells = re.findall(r"<td>([\d.]+)</td>", text)
    assert cells == ["0.00", "1.00", "0.00", "0.00", "0.00", "1.00"]  # the last snapshot


def test_nothing_is_loaded_from_anywhere_and_each_map_has_its_own_name():
    text, other = (attention_map(rows_of([word, "<eos>"], ["x"])) for word in "bc")
    assert not re.search(r"https?:|//|@import|url\(|<[^<>]*\ssrc=", text)
    assert len({re.search(r'id="([\w-]+)"', one)[1] for one in (text, other)}) == 2
    assert text == attention_map(rows_of(["b", "<eos>"], ["x"]))
    for needed in ('aria-live="polite"', "<summary>", 'scope="row"', 'type="range"', "to “b”"):
        assert needed in text  # it can be heard and reached; the end mark is no word of the sentence
