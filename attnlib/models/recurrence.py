"""Run recurrent layers: torch's fused ones, or the same equations step by step."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlib.errors import BadInput
from attnlib.models.config import Cell

State = Float[Tensor, "batch width"] | tuple[Float[Tensor, "batch width"], Float[Tensor, "batch width"]]


class UGRNN(nn.Module):
    """The update-gate network of Collins et al. 2017 (arXiv 1611.09913, section 2.1), which torch lacks.

    Parameters have the names and the order of torch's layers: gate first, candidate second. The forget bias
    of that paper is left to the drawn biases.

    Args:
        width: of a state, and of the inputs.
        batch_first: ignored, as is the second argument; torch's layers have both.

    Example:
        >>> layer = UGRNN(3, 3)
        >>> layer.hidden_size, tuple(layer.weight_hh_l0.shape)
        (3, (6, 3))
    """

    def __init__(self, width: int, _: int, *, batch_first: bool = True):
        super().__init__()
        self.hidden_size = width
        self.weight_ih_l0 = nn.Parameter(torch.empty(2 * width, width))
        self.weight_hh_l0 = nn.Parameter(torch.empty(2 * width, width))
        self.bias_ih_l0 = nn.Parameter(torch.empty(2 * width))
        self.bias_hh_l0 = nn.Parameter(torch.empty(2 * width))

    def forward(self, inputs: Tensor, initial: Tensor | None) -> Float[Tensor, "batch time width"]:
        """Return the states at every step: all input products at once, then one small product a step.

        Args:
            inputs: one vector a step.
            initial: the state to start in; zero by default.
        """
        bias = self.bias_ih_l0 + self.bias_hh_l0
        from_inputs = inputs @ self.weight_ih_l0.T + bias  # (batch, time, 2 width)
        state = inputs.new_zeros(len(inputs), self.hidden_size) if initial is None else initial
        states = []
        for column in from_inputs.unbind(dim=1):
            gate, candidate = torch.addmm(column, state, self.weight_hh_l0.T).chunk(2, dim=-1)
            state = torch.lerp(torch.tanh(candidate), state, torch.sigmoid(gate))
            states.append(state)
        return torch.stack(states, dim=1)


Recurrence = nn.RNNBase | UGRNN
FUSED: dict[Cell, type[Any]] = {"gru": nn.GRU, "lstm": nn.LSTM, "vanilla": nn.RNN, "ugrnn": UGRNN}


def fused_layer(cell: Cell, width: int) -> Recurrence:
    """Return a one-layer recurrence of equal widths, batch first. An LSTM's state is (h, memory).

    Args:
        cell: its kind.
        width: of a state, and of the inputs.

    Returns:
        A layer of torch, or :class:`UGRNN`.

    Example:
        >>> fused_layer("gru", 3).hidden_size
        3
    """
    return FUSED[cell](width, width, batch_first=True)


def unroll(
    layer: Recurrence,
    inputs: Float[Tensor, "batch time width"],
    initial: State | None = None,
    *,
    lengths: Int[Tensor, " batch"] | None = None,
    implementation: Literal["fused", "loop"] = "fused",
) -> tuple[Float[Tensor, "batch time width"], State]:
    """Return the hidden states at every step, and the state (of an LSTM: h and memory) at each sample's end.

    Args:
        layer: as :func:`fused_layer` makes one.
        inputs: one vector a step.
        initial: the state to start in; zero by default.
        lengths: valid steps of each sample (all of them by default). A sample's state stops changing after
            its last valid step; the states returned beyond it are zero.
        implementation: ``"loop"`` computes one step at a time what ``"fused"`` leaves to torch; the two agree
            to rounding.

    Returns:
        The states, and the last.

    Raises:
        BadInput: two initial states for a network that has one.

    Example:
        >>> states, last = unroll(fused_layer("gru", 3), torch.zeros(2, 5, 3), lengths=torch.tensor([5, 4]))
        >>> tuple(states.shape), states[1, 4].tolist()
        ((2, 5, 3), [0.0, 0.0, 0.0])
    """
    if lengths is not None and bool((lengths == inputs.shape[1]).all()):
        lengths = None
    if implementation == "loop":
        return _loop(layer, inputs, initial, lengths=lengths)
    if isinstance(layer, UGRNN):
        if isinstance(initial, tuple):
            raise BadInput("an update-gate network has one state, not the two of an LSTM")
        return _to_the_end(layer, inputs, initial, lengths=lengths)
    return _fused(layer, inputs, initial, lengths=lengths)


def _to_the_end(
    layer: UGRNN, inputs: Tensor, initial: Tensor | None, *, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Run past the ends of samples, and drop the states beyond them."""
    states = layer(inputs, initial)
    if lengths is None:
        return states, states[:, -1]
    valid = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
    last = states.take_along_dim((lengths - 1)[:, None, None], dim=1)[:, 0]
    return states * valid[:, :, None], last


def _fused(
    layer: nn.RNNBase, inputs: Tensor, initial: State | None, *, lengths: Tensor | None
) -> tuple[Tensor, State]:
    stacked = None if initial is None else _map_state(lambda part: part[None], initial)
    if lengths is None:
        states, last = layer(inputs, stacked)
    else:
        packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed, last = layer(packed, stacked)
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=inputs.shape[1])
    return states, _map_state(lambda part: part[0], last)


def _map_state(
    change: Callable[[Tensor], Tensor], state: Tensor | tuple[Tensor, Tensor]
) -> Tensor | tuple[Tensor, Tensor]:
    """Apply a change to the tensor of a state, or to both of an LSTM's."""
    if isinstance(state, tuple):
        hidden, memory = state
        return change(hidden), change(memory)
    return change(state)


def _loop(
    layer: Any, inputs: Tensor, initial: State | None, *, lengths: Tensor | None
) -> tuple[Tensor, State]:
    step = STEPS[type(layer)]
    weights = Weights(layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0)
    state: Any = _zero_state(layer, inputs) if initial is None else initial
    states = []
    for index, column in enumerate(inputs.unbind(dim=1)):
        new_state = step(column, state, weights)
        if lengths is None:
            state = new_state
            states.append(_hidden(state))
        else:
            valid = (index < lengths)[:, None]  # (batch, 1)
            state = _where(valid, new_state, state)
            states.append(_hidden(state) * valid)
    return torch.stack(states, dim=1), state


def _zero_state(layer: Any, inputs: Tensor) -> State:
    zeros = inputs.new_zeros(len(inputs), layer.hidden_size)
    return (zeros, zeros) if isinstance(layer, nn.LSTM) else zeros


def _hidden(state: State) -> Tensor:
    return state[0] if isinstance(state, tuple) else state


def _where(valid: Tensor, new_state: Any, old_state: Any) -> State:
    """Take the new state of samples that are not over, and keep the old one of the others."""
    if isinstance(new_state, tuple):
        hidden, memory = (torch.where(valid, new, old) for new, old in zip(new_state, old_state, strict=True))
        return hidden, memory
    return torch.where(valid, new_state, old_state)


class Weights(NamedTuple):
    """The parameters of a layer, with its gates in rows one after the other, as in torch.

    Attributes:
        w_x: of the inputs.
        w_h: of the state.
        b_x: bias of the inputs.
        b_h: bias of the state.

    Example:
        >>> layer = fused_layer("gru", 3)
        >>> weights = Weights(layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0)
        >>> tuple(weights.w_h.shape)
        (9, 3)
    """

    w_x: Float[Tensor, "gates_width width"]
    w_h: Float[Tensor, "gates_width width"]
    b_x: Float[Tensor, " gates_width"]
    b_h: Float[Tensor, " gates_width"]


def _vanilla_step(x: Tensor, h: Tensor, weights: Weights) -> Tensor:
    """Return h' = tanh(W x + U h + b)."""
    w_x, w_h, b_x, b_h = weights
    return torch.tanh(x @ w_x.T + b_x + h @ w_h.T + b_h)


def _ugrnn_step(x: Tensor, h: Tensor, weights: Weights) -> Tensor:
    """Return h' = g h + (1 - g) c, of the gate g = sigmoid(…) and the candidate c = tanh(…)."""
    w_x, w_h, b_x, b_h = weights
    summed = x @ w_x.T + b_x + h @ w_h.T + b_h  # (batch, 2 width)
    gate, candidate = summed.chunk(2, dim=-1)
    keep = torch.sigmoid(gate)
    return keep * h + (1 - keep) * torch.tanh(candidate)


def _gru_step(x: Tensor, h: Tensor, weights: Weights) -> Tensor:
    """Return h' of Cho et al. 2014 in torch's form: the reset gate applies after the recurrent product."""
    w_x, w_h, b_x, b_h = weights
    from_input = x @ w_x.T + b_x  # (batch, 3 width)
    from_state = h @ w_h.T + b_h  # (batch, 3 width)
    reset_x, update_x, new_x = from_input.chunk(3, dim=-1)
    reset_h, update_h, new_h = from_state.chunk(3, dim=-1)
    reset = torch.sigmoid(reset_x + reset_h)
    update = torch.sigmoid(update_x + update_h)
    new = torch.tanh(new_x + reset * new_h)
    return (1 - update) * new + update * h


def _lstm_step(x: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """Return h' and memory as in Hochreiter and Schmidhuber 1997, with a forget gate.

    The gates are in torch's order: in, forget, new, out.
    """
    w_x, w_h, b_x, b_h = weights
    h, memory = state
    summed = x @ w_x.T + b_x + h @ w_h.T + b_h  # (batch, 4 width)
    gate_in, gate_forget, new, gate_out = summed.chunk(4, dim=-1)
    kept = torch.sigmoid(gate_forget) * memory
    written = torch.sigmoid(gate_in) * torch.tanh(new)
    memory = kept + written
    return torch.sigmoid(gate_out) * torch.tanh(memory), memory


STEPS: dict[type[nn.Module], Callable[..., Any]] = {
    nn.GRU: _gru_step,
    nn.LSTM: _lstm_step,
    nn.RNN: _vanilla_step,
    UGRNN: _ugrnn_step,
}
