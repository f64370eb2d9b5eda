"""What does not change from step to step is made once; a look into a mask does not hold an accelerator up."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from attnlib.errors import BadInput
from attnlib.models.attention import is_checked, masked_softmax
from attnlib.models.encoder_decoder import shuffled_positions, sinusoidal_positions
from attnlib.models.transformer import _check_beginnings, rotation_tables

TABLES = [
    pytest.param(lambda: sinusoidal_positions(11, 6), id="sinusoidal"),
    pytest.param(lambda: sinusoidal_positions(11, 6, first=3), id="sinusoidal from a place on"),
    pytest.param(lambda: shuffled_positions(11, 6), id="shuffled"),
    pytest.param(lambda: rotation_tables(11, 6)[0], id="rotation"),
]


class Operations(TorchDispatchMode):
    """Names of the operations of torch that run within."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, given=(), named=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*given, **named or {})


@pytest.mark.parametrize("make", TABLES)
def test_a_table_of_positions_is_computed_once(make):
    make()
    with Operations() as operations:
        make()
    assert not {"sin", "cos", "arange", "randperm"} & set(operations.names)


@pytest.mark.parametrize("make", TABLES)
def test_writing_into_a_table_does_not_change_the_next(make):
    table = make()
    expected = table.clone()
    table.zero_()
    assert torch.equal(make(), expected)


@pytest.mark.parametrize("make", TABLES)
def test_a_table_made_in_inference_mode_can_be_learned_with(make):
    with torch.inference_mode():
        make()
    weights = torch.ones(1, requires_grad=True)
    (weights * make()).sum().backward()
    assert weights.grad is not None


EMPTY = torch.zeros(1, 3, dtype=torch.bool)


def test_a_mask_on_the_cpu_is_checked_in_training():
    with pytest.raises(BadInput, match="all padding"):
        masked_softmax(torch.zeros(1, 2, 3), EMPTY)


def test_a_mask_on_an_accelerator_is_not_looked_into_in_training():
    mask = EMPTY.to("meta")  # a device whose numbers cannot be read
    assert masked_softmax(torch.zeros(1, 2, 3, device="meta"), mask).shape == (1, 2, 3)
    _check_beginnings("source", mask)


def test_a_mask_on_an_accelerator_is_checked_in_evaluation():
    with torch.no_grad():
        assert is_checked(EMPTY.to("meta"))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of torch's compiler are not ours
def test_attention_is_compiled_as_one_graph():
    compiled = torch.compile(masked_softmax, backend="eager", fullgraph=True)
    scores, mask = torch.randn(2, 3, 4), torch.ones(2, 4, dtype=torch.bool)
    assert torch.equal(compiled(scores, mask), masked_softmax(scores, mask))
