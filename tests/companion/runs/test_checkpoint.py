"""Checkpoints of models whose tensors share memory."""

import pytest
import torch
from torch import nn

from companion.runs.checkpoint import Progress, load_newest, save_checkpoint


class Tied(nn.Module):
    """The words that are written have the vectors of those that are read."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 3)
        self.readout = nn.Linear(3, 5, bias=False)
        self.readout.weight = self.words.weight


class Halves(nn.Module):
    """Two buffers that are parts of one tensor."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
        both = torch.arange(6.0)
        self.register_buffer("first", both[:3])
        self.register_buffer("second", both[3:])


def adam(model):
    return torch.optim.Adam(model.parameters())


@pytest.mark.parametrize("kind", [Tied, Halves])
def test_a_model_whose_tensors_share_memory_is_restored(tmp_path, kind):
    model, restored = kind(), kind()
    save_checkpoint(tmp_path, model, adam(model), Progress(1, []))
    assert load_newest(tmp_path, restored, adam(restored)).step == 1
    for name, tensor in model.state_dict().items():
        assert torch.equal(restored.state_dict()[name], tensor)


def test_tied_weights_are_tied_after_loading(tmp_path):
    model, restored = Tied(), Tied()
    save_checkpoint(tmp_path, model, adam(model), Progress(1, []))
    load_newest(tmp_path, restored, adam(restored))
    assert restored.readout.weight is restored.words.weight


def test_saving_leaves_the_model_alone(tmp_path):
    model = Tied()
    save_checkpoint(tmp_path, model, adam(model), Progress(1, []))
    assert model.readout.weight is model.words.weight
