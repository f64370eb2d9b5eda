"""Copying networks whose words carry codes of their places, with recurrence and without (ours).

A layer reads e(word) + p(place); without recurrence it starts anew at every step. Source and target codes are
drawn independently, so that a fixed order is then copying with the places of the source renamed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.runs.loop import Report, Schedule, regular_checkpoints, train_network
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots
from notebooks.shared.trainings import permutation_copying as copying
from notebooks.shared.trainings.permutation_copying import (
    Copier,
    CopierConfig,
    CopierTrace,
    CopyBatch,
    draw_sources,
)

VERSION = 1  # of the training: raised when what it trains changes


@dataclass(frozen=True)
class Settings(copying.Settings):
    kind: str = "sample"
    recurrent: bool = False


class PlacedCopier(Copier):
    """With codes of ``length`` places a side, times ``scale``; its other parameters are drawn as without."""

    def __init__(
        self,
        config: CopierConfig,
        length: int,
        recurrent: bool,
        *,
        generator: torch.Generator,
        scale: float = 1.0,
    ):
        super().__init__(config, generator)
        self.recurrent, self.scale = recurrent, scale
        draw = (torch.randn(length, config.width, generator=generator) for _ in range(2))
        self.source_codes, self.target_codes = (nn.Parameter(codes) for codes in draw)

    def forward(self, batch: CopyBatch) -> CopierTrace:
        source_codes, target_codes = self.scale * self.source_codes, self.scale * self.target_codes
        states, last = self._read(self.encoder, batch.source, source_codes, None)
        decoder_states, _ = self._read(self.decoder, batch.target_read, target_codes, last)
        attention = self.attend(decoder_states, states)
        context = attention.sum(dim=1) @ states
        return CopierTrace(states, decoder_states, attention, context, self.read_out(context, decoder_states))

    def _read(self, layer: nn.LSTM, words: copying.Words, codes: Tensor, start: tuple | None):
        """States (batch, time, width), and the last ones, hidden and memory, for a recurrent layer."""
        to_gates, bias = layer.weight_ih_l0, layer.bias_ih_l0 + layer.bias_hh_l0
        of_words = nn.functional.linear(self.embedding.weight, to_gates, bias)
        of_codes = nn.functional.linear(codes, to_gates)
        if not self.recurrent:
            table = one_step(of_words[:, None].chunk(4, dim=-1), of_codes.chunk(4, dim=-1))
            return table[words, torch.arange(len(codes), device=words.device)], None
        gates = of_words[words.T] + of_codes[:, None]  # (time, batch, gates)
        zeros = gates.new_zeros(len(words), self.config.width)
        states, memory = copying.lstm_scan(gates, layer.weight_hh_l0, *(start or (zeros, zeros)))
        return states.transpose(0, 1), (states[-1], memory)


def one_step(of_words: Sequence[Tensor], of_codes: Sequence[Tensor]) -> Float[Tensor, "words places width"]:
    """An LSTM's state after one step from zero, with nothing to forget: o · tanh(i · tanh(z^g))."""
    entering, _, candidate, output = map(torch.add, of_words, of_codes)
    return output.sigmoid() * torch.tanh(entering.sigmoid() * candidate.tanh())


def new_network(settings: Settings) -> PlacedCopier:
    return placed_copier(settings, recurrent=settings.recurrent)


def placed_copier(settings: copying.Settings, *, recurrent: bool, scale: float = 1.0) -> PlacedCopier:
    """Return the untrained network of these settings, drawn from their seed."""
    config = CopierConfig(copying.words_of(settings.kind, settings.length), settings.width)
    generator = copying.stream(settings.seed, copying.PARAMETERS)
    return PlacedCopier(config, settings.length, recurrent, generator=generator, scale=scale)


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """What ``snapshot_of_copier`` sees, of the sentences that networks of the seed without codes read."""
    return record_copier(new_network(settings), settings, folder, device=device, report=report)


def record_copier(
    network: PlacedCopier,
    settings: copying.Settings,
    folder: Path,
    *,
    snapshot: Callable[[Copier, CopyBatch], Tensors] = copying.snapshot_of_copier,
    device: str = "cpu",
    report: Report | None = None,
) -> Tensors:
    """Train a network on the sentences of its settings, and return what ``snapshot`` sees by checkpoint."""
    words, order = copying.words_of(settings.kind, settings.length), None
    if settings.order == "permuted":
        order = torch.randperm(settings.length, generator=copying.stream(settings.seed, copying.ORDER))

    def batch_of(samples: int, *use: int) -> CopyBatch:
        sources = draw_sources(settings.kind, settings.length, samples, copying.stream(settings.seed, *use))
        return copying.copy_batch(sources, words, order)

    held_out = batch_of(settings.held_out, copying.HELD_OUT).to(device)
    checkpoints = regular_checkpoints(settings.steps, settings.every)
    schedule = Schedule(settings.steps, settings.seed, settings.learning_rate, checkpoints)
    train_network(
        network, lambda step: batch_of(settings.batch_size, copying.TRAINING, step),
        copying.copier_loss, schedule, folder,
        visit=lambda step, model: save_snapshot(folder, step, snapshot(model, held_out)),
        device=device, report=report,
    )  # fmt: skip
    return stacked_snapshots(folder, checkpoints)
