"""Several networks of one shape as one: every parameter with a leading axis, products batched over it.

Shared by the benchmarks that hold this against training one network after the other.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

CLOSE = 1e-4  # largest difference of a parameter after the updates that warm up; rounding alone
WARM = 3  # turns that warm up


class Stacked:
    """The parameters of several networks, by their names in each; what is frozen in one is trained here."""

    def __init__(self, models: Sequence[nn.Module]):
        self.number = len(models)
        named = [dict(model.named_parameters()) for model in models]
        self.stacked = {
            name: nn.Parameter(torch.stack([p[name] for p in named]).detach()) for name in named[0]
        }

    def parameters(self) -> Iterator[nn.Parameter]:
        """All of them, with their leading axis of networks."""
        return iter(self.stacked.values())

    def embed(self, name: str, tokens: Tensor) -> Tensor:
        """Each network's vectors of its tokens: (networks, ...) → (networks, ..., width)."""
        return self.look_up(self.stacked[name], tokens)

    def look_up(self, table: Tensor, tokens: Tensor) -> Tensor:
        """As :meth:`embed`, from a table (networks, words, width)."""
        first = torch.arange(self.number).view(-1, *[1] * (tokens.dim() - 1)) * table.shape[1]
        return nn.functional.embedding(tokens + first, table.flatten(0, 1))

    def linear(self, layer: str, inputs: Tensor) -> Tensor:
        """Each network's layer of its rows, (networks, rows..., width)."""
        weight, bias = self.stacked[f"{layer}.weight"], self.stacked[f"{layer}.bias"]
        flat = torch.baddbmm(bias[:, None], inputs.flatten(1, -2), weight.mT)
        return flat.unflatten(1, inputs.shape[1:-1])

    def check(self, models: Sequence[nn.Module]) -> None:
        """The networks trained alone have the same parameters, to rounding."""
        for place, model in enumerate(models):
            for name, parameter in model.named_parameters():
                apart = float((parameter - self.stacked[name][place]).detach().abs().max())
                assert apart < CLOSE, f"{name} of network {place} differs by {apart}"


class StackedScan(torch.autograd.Function):
    """:class:`attnlib.models.recurrence.LSTMScan` with an axis of networks before the batch."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, inputs: Tensor, recurrent: Tensor, start: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        length, width = len(inputs), recurrent.shape[-1]
        gates = torch.empty_like(inputs)
        states, memories = (start.new_empty(length + 1, *start.shape) for _ in range(2))
        squashed = start.new_empty(length, *start.shape)
        states[0], memories[0] = start, memory
        for step in range(length):
            gate = torch.baddbmm(inputs[step], states[step], recurrent.mT, out=gates[step])
            gate[..., : 2 * width].sigmoid_()
            gate[..., 2 * width : 3 * width].tanh_()
            gate[..., 3 * width :].sigmoid_()
            entering, forget, candidate, output = gate.chunk(4, dim=-1)
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
            entering, forget, candidate, output = gates[step].chunk(4, dim=-1)
            to_state = to_state + to_states[step]
            to_memory.addcmul_(to_state * output, 1 - squashed[step].square())
            into = to_gates[step].chunk(4, dim=-1)
            torch.mul(to_memory, candidate, out=into[0]).mul_(entering * (1 - entering))
            torch.mul(to_memory, memories[step], out=into[1]).mul_(forget * (1 - forget))
            torch.mul(to_memory, entering, out=into[2]).mul_(1 - candidate.square())
            torch.mul(to_state, squashed[step], out=into[3]).mul_(output * (1 - output))
            to_memory.mul_(forget)
            to_state = torch.bmm(to_gates[step], recurrent)
        rows = [each.transpose(0, 1).flatten(1, 2) for each in (to_gates, states[:-1])]
        return to_gates, rows[0].mT @ rows[1], to_state, to_memory


def steps_in_turns(
    steps: Mapping[str, Callable[[int], object]],
    rounds: int,
    *,
    check: Callable[[], None],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of every way to take a step, in turns that change their order; ``check`` once all are warm."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + WARM):
        for name in sorted(steps, reverse=bool(number % 2)):
            started = clock()
            steps[name](number)
            if number >= WARM:
                times[name].append(clock() - started)
        if number == WARM - 1:
            check()
    return times


def milliseconds(taken: list[float], networks: int) -> float:
    """Median of a step, for each network."""
    return 1e3 * statistics.median(taken) / networks
