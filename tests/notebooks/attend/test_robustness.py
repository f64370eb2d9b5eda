"""The robustness experiment on tiny models: settings, memory by hand, and the headline counted."""

from dataclasses import replace

import pytest
import torch

from attnlib.training.vocabulary import BOS, EOS, PAD
from notebooks.attend.robustness import experiment
from notebooks.attend.robustness.measure import measure_robustness
from notebooks.shared.measure import LAGS, lagged_words
from notebooks.shared.translators import greedy, with_target
from tests.attnlib.models.model_builders import batch_of, encoder_decoder
from tests.notebooks.attend.test_interchange import SPEC


def test_words_before_are_found_at_their_lag():
    tokens = [2, 0, 1, 2]
    found = lagged_words(torch.tensor([tokens]), torch.ones(1, 4, dtype=torch.bool), 3)
    there = [(place, lag - 1, tokens[place - lag]) for place in range(4) for lag in range(1, place + 1)]
    assert [tuple(at) for at in found.view(4, LAGS, 3).nonzero().tolist()] == there
    assert found.sum() == len(there)


def test_a_network_without_recurrence_remembers_nothing_and_its_measure_adds_up(store):
    """States of AO depend on position and present word alone: what words before tell of them is noise."""
    specs = SPEC, replace(SPEC, architecture="AO")
    found, without = (measure_robustness(store.model(spec), samples=600) for spec in specs)
    for way in ("teacher_forced", "free_running"):
        assert sum(found[way]["covariance_share"].values()) == pytest.approx(1, abs=1e-4)
        assert 0 < found[way]["typicality"] <= 1
    for side in ("encoder", "decoder"):
        assert sum(found["variance"][side].values()) == pytest.approx(1, abs=1e-4)
        assert found["memory"][side] > 0.3
        assert without["memory"][side] < 0.1
        assert without["variance"][side]["residual"] < found["variance"][side]["residual"]


def test_a_network_that_wrote_the_right_words_is_the_teacher_forced_one(store, monkeypatch):
    monkeypatch.setattr("notebooks.attend.robustness.measure.greedy", lambda model, batch, steps: batch)
    found = measure_robustness(store.model(SPEC), samples=60)
    assert found["same_words"] == 1
    assert found["free_running"] == found["teacher_forced"]


def test_the_headline_counts_and_names():
    columns, unknown = ("level", "value", "holds", "clearly"), ("64", None, None, None)
    table = [("8", 0.5, True, True), ("16", -0.1, False, False), ("32", 0.1, True, False), unknown]
    rows = [{"half": "h", "factor": "width"} | dict(zip(columns, row, strict=True)) for row in table]
    counted = {"settings": 3, "holds": pytest.approx(2 / 3), "clearly": pytest.approx(1 / 3)}
    named = {"smallest": -0.1, "fails": ["width 16"], "unclear": ["width 32"]}
    assert experiment.headline(rows) == {"h": counted | named}
    assert experiment.headline([]) == {}


@pytest.mark.parametrize("kind", ["VED", "AED", "AO"])
def test_every_word_written_is_the_likeliest_after_those_before(kind):
    model = encoder_decoder(kind, embedding_scale=2.0)
    free = greedy(model, batch_of(), max_steps=6)
    logits = model(free).logits.detach()
    logits[..., [PAD, BOS]] = -torch.inf
    assert torch.equal(logits.argmax(-1)[free.target_mask], free.target_output[free.target_mask])


def test_with_target_shifts_by_one_and_reads_no_end_mark():
    batch = with_target(batch_of(0, 1), torch.tensor([[4, EOS, PAD], [5, 6, 7]]))
    assert batch.target_input.tolist() == [[BOS, 4, PAD], [BOS, 5, 6]]
    assert batch.target_mask.tolist() == [[True, True, False], [True, True, True]]
