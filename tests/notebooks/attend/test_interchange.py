"""Parts exchanged in the forward pass: what moves where, and networks in which the outcome is known."""

import pytest
import torch

from attnlib.decomposition import PART_NAMES, Parts
from notebooks.shared import interchange as measure
from notebooks.shared.interchange import SIDES, attend, exchanged, measure_interchange
from notebooks.shared.suite import SuiteConfig, each_planned
from tests.attnlib.models.model_builders import batch_of, encoder_decoder

# One length: position and end mark are not confounded, and few held-out samples make cells of thirty.
SHORT = {"min_length": 7, "max_length": 7, "n_train": 600, "n_held_out": 100}
SPEC = each_planned(SuiteConfig(width=8, steps=4), "one_to_one", "AED", 1, task_options=SHORT)[0]


def test_parts_come_from_valid_places_of_the_sample_or_of_the_batch():
    mask = torch.tensor([[True, True, True], [True, True, False]])
    numbers = torch.arange(1.0, 7).view(2, 3, 1) * mask[..., None]
    found = exchanged(Parts(numbers, 10 * numbers, 100 * numbers, mask), torch.Generator().manual_seed(0))
    for sample, own in enumerate(([1, 2, 3], [4, 5, 0])):
        assert sorted(found["temporal"][sample].flatten().tolist()) == sorted(own)
        assert sorted(found["state"][sample].flatten().tolist()) == sorted(111 * n for n in own)
    for name, scale in (("input", 10), ("residual", 100)):
        assert sorted(found[name][mask].flatten().tolist()) == [scale * n for n in (1, 2, 3, 4, 5)]
        assert found[name][~mask].abs().sum() == 0
    assert found["temporal"][1, 2] == 0


@pytest.mark.parametrize("kind", ["AED", "AO"])
def test_states_that_are_left_alone_give_the_network_itself(kind):
    model, batch = encoder_decoder(kind, embedding_scale=2.0), batch_of()
    trace = model(batch)
    states = {"decoder": trace.decoder_states, "encoder": trace.encoder_states}
    attention, words = attend(model, trace, states)
    torch.testing.assert_close(attention, trace.attention)
    assert torch.equal(words, trace.logits.argmax(-1))


def test_a_part_that_is_exchanged_for_itself_changes_nothing(store, monkeypatch):
    found = measure_interchange(store.model(SPEC), fit_samples=600, samples=100)
    for side in SIDES:
        assert found["exchanged"][side]["state"]["variation"] > 0

    def itself(parts, draw):
        return dict(zip(PART_NAMES, parts, strict=True)) | {"state": parts.total()}

    monkeypatch.setattr(measure, "exchanged", itself)
    same = measure_interchange(store.model(SPEC), fit_samples=600, samples=100)
    for side in SIDES:
        for outcome in same["exchanged"][side].values():
            assert outcome["variation"] == pytest.approx(0, abs=1e-5)
            assert (outcome["moved"], outcome["changed"]) == (pytest.approx(0, abs=0.01),) * 2
            assert outcome["accuracy"] == pytest.approx(same["accuracy"], abs=0.01)
    assert same["removed"] == found["removed"]
