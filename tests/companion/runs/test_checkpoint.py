"""Checkpoints: tensors that share memory, and files that are damaged."""

import pytest
import torch
from torch import nn

from companion.runs.checkpoint import Progress, load_newest, save_checkpoint
from tests.attnlib.refusals import flip


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


@pytest.mark.slow
def test_no_bit_of_a_checkpoint_flips_unnoticed(tmp_path):
    """A flipped bit is noticed, or moves nothing, as in the white space of the header."""
    model = nn.Linear(1, 1)
    progress = Progress(5, [{"step": 4, "loss": 0.5}])
    save_checkpoint(tmp_path, model, adam(model), progress)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    weight = model.weight.clone()
    passed_over = 0
    for bit in range(0, 8 * len(content), 7):  # one or two of every byte
        path.write_bytes(content)
        flip(path, bit // 8, bit % 8)
        restored = nn.Linear(1, 1)
        loaded = load_newest(tmp_path, restored, adam(restored))
        if loaded == Progress(0, []):
            passed_over += 1
        else:
            assert loaded == progress
            assert torch.equal(restored.weight, weight)
    assert passed_over > len(content)
