"""Several seeds of one setting trained as one stacked model, against one after the other.

    python benchmarks/seeds_together.py [--rounds 15]

Stacked: every parameter has a leading axis of seeds, products are batched over it, one Adam updates the
stack. Alone: the training step of attnlib, once for each seed. Both are measured in turns on one thread;
printed are medians of milliseconds a seed and step, and the quotient alone / stacked with its quartiles.
"""

import argparse
from dataclasses import dataclass, replace
from itertools import product

import torch
from contenders import quotient
from stacked import WARM, Stacked, milliseconds, steps_in_turns
from torch import Tensor, nn

from attnlib.models.attention import masked_softmax
from attnlib.models.encoder_decoder import sinusoidal_positions
from attnlib.training.allocator import keep_freed_memory
from attnlib.training.corpus import Batch, training_batches
from companion.runs.loop import IGNORED, _update, learning_rate_at, new_model
from companion.runs.rungs import spec_of
from companion.runs.spec import ModelSpec
from companion.runs.store import load_task

SIZES = ((64, 64), (128, 64), (128, 128))  # width, batch size


@dataclass(frozen=True)
class StackedBatch:
    """The batches of all seeds, padded to one length: (seeds, batch, time)."""

    source: Tensor
    source_mask: Tensor
    target_input: Tensor
    target_output: Tensor
    target_mask: Tensor

    @classmethod
    def of(cls, batches: list[Batch]) -> "StackedBatch":
        """Pad with zeros, the padding mark (and False)."""
        return cls(*(_padded([getattr(batch, name) for batch in batches]) for name in cls.__annotations__))


def _padded(rows: list[Tensor]) -> Tensor:
    longest = max(row.shape[1] for row in rows)
    return torch.stack([nn.functional.pad(row, (0, longest - row.shape[1])) for row in rows])


class Stack(Stacked):
    """The networks of several seeds as one: AED with a GRU, or AO with sinusoidal positions."""

    def __init__(self, models: list[nn.Module]):
        super().__init__(models)
        self.config = models[0].config

    def loss(self, batch: StackedBatch) -> Tensor:
        """Mean cross-entropy a token of each seed, (seeds,)."""
        inputs = self.embed("source_embedding.weight", batch.source)  # (seeds, batch, time, width)
        reads = self.embed("target_embedding.weight", batch.target_input)
        if self.config.architecture == "AO":
            encoder_states, decoder_states = self._tanh("encoder", inputs), self._tanh("decoder", reads)
        else:
            encoder_states, last = self._gru("encoder", inputs, None, batch.source_mask)
            decoder_states, _ = self._gru("decoder", reads, last, None)
        flat_d, flat_e = decoder_states.flatten(0, 1), encoder_states.flatten(0, 1)
        attention = masked_softmax(flat_d @ flat_e.transpose(1, 2), batch.source_mask.flatten(0, 1))
        features = torch.cat([decoder_states, (attention @ flat_e).unflatten(0, (self.number, -1))], dim=-1)
        logits = self.linear("readout", features)
        targets = batch.target_output.masked_fill(~batch.target_mask, IGNORED)
        losses = nn.functional.cross_entropy(
            logits.flatten(0, 2), targets.flatten(), ignore_index=IGNORED, reduction="none"
        )
        return losses.view(self.number, -1).sum(1) / batch.target_mask.flatten(1).sum(1)

    def _tanh(self, layer: str, inputs: Tensor) -> Tensor:
        codes = sinusoidal_positions(inputs.shape[2], self.config.width)
        return torch.tanh(self.linear(layer, inputs + codes))

    def _gru(
        self, layer: str, inputs: Tensor, initial: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        from_inputs = torch.baddbmm(
            self.stacked[f"{layer}.bias_ih_l0"][:, None],
            inputs.flatten(1, 2),
            self.stacked[f"{layer}.weight_ih_l0"].mT,
        ).unflatten(1, inputs.shape[1:3])
        recurrent = self.stacked[f"{layer}.weight_hh_l0"].transpose(1, 2)
        bias = self.stacked[f"{layer}.bias_hh_l0"][:, None]
        width = self.config.width
        state = inputs.new_zeros(*inputs.shape[:2], width) if initial is None else initial
        states = []
        for column in from_inputs.unbind(dim=2):
            from_state = torch.baddbmm(bias, state, recurrent)
            gates = torch.sigmoid(column[..., : 2 * width] + from_state[..., : 2 * width])
            reset, update = gates.chunk(2, dim=-1)
            new = torch.tanh(torch.addcmul(column[..., 2 * width :], reset, from_state[..., 2 * width :]))
            state = torch.lerp(new, state, update)
            states.append(state)
        found = torch.stack(states, dim=2)
        if mask is None:
            return found, state
        last = found.take_along_dim((mask.sum(2) - 1)[:, :, None, None], dim=2)[:, :, 0]
        return found * mask[..., None], last


def stacked_update(
    stack: Stack, optimiser: torch.optim.Optimizer, batch: StackedBatch, spec: ModelSpec
) -> None:
    """What ``companion.runs.loop`` does at step 0, for all seeds at once; clipped a seed."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate_at(0, spec)
    optimiser.zero_grad(set_to_none=True)
    stack.loss(batch).sum().backward()
    gradients = [parameter.grad for parameter in stack.parameters()]
    norms = torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0).sqrt()
    factors = (spec.clip / (norms + 1e-6)).clamp(max=1)  # as torch's clip_grad_norm_
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *[1] * (gradient.dim() - 1)))
    optimiser.step()


def measured(spec: ModelSpec, seeds: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of a step of all seeds, alone and stacked."""
    task = load_task(spec.task, spec.task_options)
    models = [new_model(replace(spec, seed=seed), task) for seed in range(seeds)]
    stack = Stack(models)

    def adam(parameters) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=spec.learning_rate, fused=True)

    own, together = [adam(model.parameters()) for model in models], adam(stack.parameters())
    streams = [training_batches(task.train, spec.batch_size, seed=seed) for seed in range(seeds)]
    # An epoch may end in a small batch: passed over, so that every step is of one size.
    drawn = [
        [next(b for b in stream if len(b) == spec.batch_size) for stream in streams]
        for _ in range(rounds + WARM)
    ]
    joined = [StackedBatch.of(batches) for batches in drawn]

    def alone(number: int) -> None:
        for model, optimiser, batch in zip(models, own, drawn[number], strict=True):
            _update(model, optimiser, batch, spec, 0)

    def stacked(number: int) -> None:
        stacked_update(stack, together, joined[number], spec)

    return steps_in_turns({"alone": alone, "stacked": stacked}, rounds, check=lambda: stack.check(models))


def main() -> None:
    """Measure every size, architecture and number of seeds; print a line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    print("architecture  width  batch  seeds  alone ms  stacked ms  alone / stacked [quartiles]")
    for architecture, (width, batch_size), seeds in product(("AED", "AO"), SIZES, (5, 10)):
        spec = spec_of("one_to_one", architecture, scale="quick", width=width, batch_size=batch_size)
        times = measured(spec, seeds, options.rounds)
        alone, stacked = (milliseconds(times[name], seeds) for name in ("alone", "stacked"))
        sizes = f"{architecture:12} {width:6} {batch_size:6} {seeds:6}"
        print(
            f"{sizes} {alone:9.1f} {stacked:11.1f}  {quotient(times['alone'], times['stacked'])}", flush=True
        )


if __name__ == "__main__":
    main()
