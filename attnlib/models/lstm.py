"""An LSTM over rows without padding, its backward pass written out, for one CPU thread.

It is faster than torch's where the matrix products behind it use the processor's wide vectors, and about as
fast where they do not (``benchmarks/README.md``). Two things are done otherwise. The vocabulary is small, so
the input's share of the gates is a product with the table of embeddings, looked up by word, not a product at
every position. And the gradient of the recurrent weight is one product over all steps at the end, not a small
one at every step.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable


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
        inputs: W x_t + b of the four gates (gates = 4 · width), contiguous, time first.
        recurrent: R, the weight of the state in the gates.
        start, memory: h and m before the first step.
    """
    return LSTMScan.apply(inputs.contiguous(), recurrent, start, memory)
