"""Recurrent layers: torch's fused ones, and the same equations step by step, to read and to test against."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlib.models.config import Cell

State = Float[Tensor, "batch width"] | tuple[Float[Tensor, "batch width"], Float[Tensor, "batch width"]]


class UGRNN(nn.Module):
    """The update-gate network of Collins et al. 2017 (arXiv 1611.09913, section 2.1), which torch lacks.

    Parameters are named and laid out as in torch's layers: gate first, candidate second. The forget bias of
    that paper is left to the drawn biases.
    """

    def __init__(self, width: int, _: int, batch_first: bool = True):
        super().__init__()
        self.hidden_size = width
        self.weight_ih_l0, self.weight_hh_l0 = (nn.Parameter(torch.empty(2 * width, width)) for _ in range(2))
        self.bias_ih_l0, self.bias_hh_l0 = (nn.Parameter(torch.empty(2 * width)) for _ in range(2))

    def forward(self, inputs: Tensor, initial: Tensor | None) -> Float[Tensor, "batch time width"]:
        """States at every step; all input products at once, then one small product a step."""
        from_inputs = inputs @ self.weight_ih_l0.T + (self.bias_ih_l0 + self.bias_hh_l0)
        state = inputs.new_zeros(len(inputs), self.hidden_size) if initial is None else initial
        states = []
        for column in from_inputs.unbind(dim=1):
            gate, candidate = torch.addmm(column, state, self.weight_hh_l0.T).chunk(2, dim=-1)
            state = torch.lerp(torch.tanh(candidate), state, torch.sigmoid(gate))
            states.append(state)
        return torch.stack(states, dim=1)


FUSED: dict[Cell, type[nn.Module]] = {"gru": nn.GRU, "lstm": nn.LSTM, "vanilla": nn.RNN, "ugrnn": UGRNN}


def fused_layer(cell: Cell, width: int) -> nn.Module:
    """A one-layer recurrence of equal widths, batch first. An LSTM's state is (h, memory)."""
    return FUSED[cell](width, width, batch_first=True)


def unroll(
    layer: nn.Module,
    inputs: Float[Tensor, "batch time width"],
    initial: State | None = None,
    lengths: Int[Tensor, "batch"] | None = None,
    *,
    implementation: Literal["fused", "loop"] = "fused",
) -> tuple[Float[Tensor, "batch time width"], State]:
    """Hidden states at every step, and the full state (for an LSTM: h and memory) each sample ends in.

    Args:
        lengths: valid steps of each sample (all of them by default). A sample's state stops changing after
            its last valid step; the states returned beyond it are zero.
        implementation: ``"loop"`` computes one step at a time what ``"fused"`` leaves to torch; the two
            agree to rounding.
    """
    if lengths is not None and bool((lengths == inputs.shape[1]).all()):
        lengths = None
    if implementation == "loop":
        return _loop(layer, inputs, initial, lengths)
    if isinstance(layer, UGRNN):
        return _to_the_end(layer, inputs, initial, lengths)
    return _fused(layer, inputs, initial, lengths)


def _to_the_end(
    layer: UGRNN, inputs: Tensor, initial: Tensor | None, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Past the end of a sample the network runs on; what it makes there is thrown away."""
    states = layer(inputs, initial)
    if lengths is None:
        return states, states[:, -1]
    valid = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
    last = states.take_along_dim((lengths - 1)[:, None, None], dim=1)[:, 0]
    return states * valid[:, :, None], last


def _fused(
    layer: nn.RNNBase, inputs: Tensor, initial: State | None, lengths: Tensor | None
) -> tuple[Tensor, State]:
    if initial is not None:  # torch wants a leading axis for the layers of a stack
        initial = tuple(part[None] for part in initial) if isinstance(initial, tuple) else initial[None]
    if lengths is None:
        states, last = layer(inputs, initial)
    else:
        packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed, last = layer(packed, initial)
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=inputs.shape[1])
    return states, (tuple(part[0] for part in last) if isinstance(last, tuple) else last[0])


def _loop(
    layer: nn.Module, inputs: Tensor, initial: State | None, lengths: Tensor | None
) -> tuple[Tensor, State]:
    step = {nn.GRU: _gru_step, nn.LSTM: _lstm_step, nn.RNN: _vanilla_step, UGRNN: _ugrnn_step}[type(layer)]
    weights = (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0)
    zeros = inputs.new_zeros(inputs.shape[0], layer.hidden_size)
    state = initial if initial is not None else ((zeros, zeros) if isinstance(layer, nn.LSTM) else zeros)
    states = []
    for index, column in enumerate(inputs.unbind(dim=1)):
        stepped = step(column, state, *weights)
        if lengths is None:
            valid, state = None, stepped
        else:
            valid = (index < lengths)[:, None]  # (batch, 1)
            pairs = zip(stepped, state, strict=True) if isinstance(state, tuple) else [(stepped, state)]
            kept = tuple(torch.where(valid, new, old) for new, old in pairs)
            state = kept if isinstance(state, tuple) else kept[0]
        hidden = state[0] if isinstance(state, tuple) else state
        states.append(hidden if valid is None else hidden * valid)
    return torch.stack(states, dim=1), state


def _vanilla_step(x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """h' = tanh(W x + U h + b)."""
    return torch.tanh(x @ w_x.T + b_x + h @ w_h.T + b_h)


def _ugrnn_step(x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """g = sigmoid(…), c = tanh(…), h' = g h + (1 - g) c."""
    gate, candidate = (x @ w_x.T + b_x + h @ w_h.T + b_h).chunk(2, dim=-1)
    keep = torch.sigmoid(gate)
    return keep * h + (1 - keep) * torch.tanh(candidate)


def _gru_step(x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """Cho et al. 2014 in torch's form, the reset gate applied after the recurrent product."""
    reset_x, update_x, new_x = (x @ w_x.T + b_x).chunk(3, dim=-1)
    reset_h, update_h, new_h = (h @ w_h.T + b_h).chunk(3, dim=-1)
    reset, update = torch.sigmoid(reset_x + reset_h), torch.sigmoid(update_x + update_h)
    return (1 - update) * torch.tanh(new_x + reset * new_h) + update * h


def _lstm_step(
    x: Tensor, state: tuple[Tensor, Tensor], w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
) -> tuple[Tensor, Tensor]:
    """Hochreiter and Schmidhuber 1997 with a forget gate; gates in torch's order: in, forget, new, out."""
    h, memory = state
    gate_in, forget, new, gate_out = (x @ w_x.T + b_x + h @ w_h.T + b_h).chunk(4, dim=-1)
    memory = torch.sigmoid(forget) * memory + torch.sigmoid(gate_in) * torch.tanh(new)
    return torch.sigmoid(gate_out) * torch.tanh(memory), memory


# An LSTM over rows without padding, its backward pass written out, for one CPU thread.
#
# It is faster than torch's where the matrix products behind it use the processor's wide vectors, and about as
# fast where they do not (``benchmarks/README.md``). Two things are done otherwise. The vocabulary is small,
# so the input's share of the gates is a product with the table of embeddings, looked up by word, not a
# product at every position. And the gradient of the recurrent weight is one product over all steps at the
# end, not a small one at every step.


class LSTMScan(torch.autograd.Function):
    """States of an LSTM from its gates' input share (Hochreiter and Schmidhuber 1997, with forget gates).

    With z_t = inputs_t + R h_{t−1}, split into four of the state's width,

        i, f, o = σ(z^i), σ(z^f), σ(z^o);  m_t = f · m_{t−1} + i · tanh(z^g);  h_t = o · tanh(m_t).

    Gates stand in torch's order: input, forget, candidate, output. Use :func:`lstm_scan`.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, inputs: Tensor, recurrent: Tensor, start: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        length, batch, _ = inputs.shape
        width = recurrent.shape[1]
        gates = torch.empty_like(inputs)
        states, memories = (inputs.new_empty(length + 1, batch, width) for _ in range(2))
        squashed = inputs.new_empty(length, batch, width)  # tanh of the memory
        states[0], memories[0] = start, memory
        for step in range(length):
            gate = torch.addmm(inputs[step], states[step], recurrent.T, out=gates[step])
            gate[:, : 2 * width].sigmoid_()
            gate[:, 2 * width : 3 * width].tanh_()
            gate[:, 3 * width :].sigmoid_()
            entering, forget, candidate, output = gate.chunk(4, dim=1)
            torch.mul(forget, memories[step], out=memories[step + 1]).addcmul_(entering, candidate)
            torch.tanh(memories[step + 1], out=squashed[step])
            torch.mul(output, squashed[step], out=states[step + 1])
        ctx.save_for_backward(gates, states, memories, squashed, recurrent)
        return states[1:].clone(), memories[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, to_states: Tensor, to_memory: Tensor) -> tuple[Tensor, ...]:
        gates, states, memories, squashed, recurrent = ctx.saved_tensors
        to_gates = torch.empty_like(gates)
        to_state, to_memory = torch.zeros_like(squashed[0]), to_memory.clone()
        for step in reversed(range(len(gates))):
            entering, forget, candidate, output = gates[step].chunk(4, dim=1)
            to_state = to_state + to_states[step]
            to_memory.addcmul_(to_state * output, 1 - squashed[step].square())
            into = to_gates[step].chunk(4, dim=1)  # views: what is written here is the step's gradient
            torch.mul(to_memory, candidate, out=into[0]).mul_(entering * (1 - entering))
            torch.mul(to_memory, memories[step], out=into[1]).mul_(forget * (1 - forget))
            torch.mul(to_memory, entering, out=into[2]).mul_(1 - candidate.square())
            torch.mul(to_state, squashed[step], out=into[3]).mul_(output * (1 - output))
            to_memory.mul_(forget)
            to_state = to_gates[step] @ recurrent
        to_recurrent = to_gates.flatten(0, 1).T @ states[:-1].flatten(0, 1)
        return to_gates, to_recurrent, to_state, to_memory


def lstm_scan(
    inputs: Float[Tensor, "time batch gates"],
    recurrent: Float[Tensor, "gates width"],
    start: Float[Tensor, "batch width"],
    memory: Float[Tensor, "batch width"],
) -> tuple[Float[Tensor, "time batch width"], Float[Tensor, "batch width"]]:
    """Hidden states of every step and the last memory: what :class:`torch.nn.LSTM` gives, to rounding.

    Args:
        inputs: W x_t + b of the four gates (gates = 4 · width), time first.
        recurrent: R, the weight of the state in the gates.
        start, memory: h and m before the first step.
    """
    return LSTMScan.apply(inputs.contiguous(), recurrent, start, memory)
