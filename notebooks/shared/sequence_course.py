"""Training of a network on any sequence-to-sequence task by name, and snapshots at it along the way.

What a recording of such a procedure holds, samples in the order of the task's held-out ones:

``steps``
    updates made at each snapshot.
``right``, ``loss``
    by snapshot, sample and target position (padded): whether the word is predicted right under teacher
    forcing, and its negative log-likelihood in nats.
``shown.{scores, attention, probability}``
    where pairs are shown and the network attends, by snapshot and pair under teacher forcing, padded: what
    its steps make of the source, and the probability of each right word.
``written``
    by sample: what the trained network writes on its own, greedily; an end mark unless cut off, padding.
``network.<parameter>``
    the trained network, see :func:`restored`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlib.errors import BadInput, check_at_least
from attnlib.models.corpus import Batch, Corpus, collate, evaluation_batches
from attnlib.models.search import greedy_search
from attnlib.models.vocabulary import PAD
from companion.data.task import Task
from companion.runs import store
from companion.runs.encoder_decoder import loss_of
from companion.runs.loop import Report, Schedule, regular_checkpoints, train_network
from companion.runs.procedure import Recording
from notebooks.shared.pieces import EqualLengthBatches
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots

NewNetwork = Callable[[Any, int, int], nn.Module]  # of settings and the sizes of the two vocabularies

EVALUATION_BATCH = 128
_NETWORK = "network."


@dataclass(frozen=True)
class SequenceSettings:
    """Task and training; the networks have further settings of their own."""

    task: str = "one_to_one"
    options: tuple[tuple[str, object], ...] = ()  # those of the task, in any order
    source: str | Path = (
        ""  # a reader's own file, instead of the task; line by line it has what ``target`` has
    )
    target: str | Path = ""
    steps: int = 1_000
    batch_size: int = 64
    learning_rate: float = 2e-3  # Adam's; it rises to this over the first ``warmup`` updates and stays
    clip: float = 1.0  # largest norm of the gradient of all parameters together
    warmup: int = 0
    snapshots: int = 10  # at how many steps the network is looked at, beside the beginning
    judged: int = 500  # held-out samples that are looked at, at most
    shown: tuple[tuple[str, str], ...] = ()  # pairs of sentences that the network is shown at every snapshot
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, self, "steps", "batch_size", "snapshots", "judged")
        if bool(self.source) != bool(self.target):
            raise BadInput("source and target go together: two text files, line by line translations")
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    @property
    def task_name(self) -> str:
        return "parallel" if self.source else self.task

    @property
    def task_options(self) -> tuple[tuple[str, object], ...]:
        files = {"source": self.source, "target": self.target} if self.source else {}
        return (*self.options, *files.items())


def task_of(settings: SequenceSettings) -> tuple[str, dict[str, object]]:
    """The task that is trained on, by name, and its options."""
    return settings.task_name, dict(settings.task_options)


def load_task(settings: SequenceSettings) -> Task:
    """The task, made once a process."""
    return store.load_task(settings.task_name, settings.task_options)


def judged_samples(settings: SequenceSettings) -> Corpus:
    held_out = load_task(settings).held_out
    return held_out.subset(range(min(settings.judged, len(held_out))))


def record_course(
    new_network: NewNetwork, settings: SequenceSettings, folder: Path, *, device: str, report: Report | None
) -> Tensors:
    """Train a new network and look at it along the way; see the module for what is returned."""
    task, judged = load_task(settings), judged_samples(settings)
    network = new_network(settings, len(task.source_vocabulary), len(task.target_vocabulary))
    every = max(1, settings.steps // settings.snapshots)
    shown = shown_pairs(settings)

    def visit(step: int, seen: nn.Module) -> None:
        snapshot = snapshot_of(seen, judged, device)
        if shown is not None:
            snapshot |= {f"shown.{name}": v for name, v in snapshot_of_pairs(seen, shown, device).items()}
        save_snapshot(folder, step, snapshot)

    schedule = Schedule(
        settings.steps, settings.seed, settings.learning_rate, regular_checkpoints(settings.steps, every),
        settings.clip, settings.warmup,
    )  # fmt: skip
    batches = EqualLengthBatches(task.train, settings.batch_size, settings.seed)
    train_network(
        network, batches, loss_of, schedule, folder, visit=visit, device=device, report=report,
    )  # fmt: skip
    state = {f"{_NETWORK}{name}": value.cpu() for name, value in network.state_dict().items()}
    return (
        stacked_snapshots(folder, schedule.checkpoints)
        | {"written": written(network, judged, device)}
        | state
    )


@torch.no_grad()
def snapshot_of(network: nn.Module, corpus: Corpus, device: str = "cpu") -> Tensors:
    """``right`` (uint8) and ``loss``, both (samples, target positions), zero at padding."""
    shape = len(corpus), int(corpus.target_lengths.max()) + 1
    right, loss = torch.zeros(shape, dtype=torch.uint8), torch.zeros(shape)
    for batch in evaluation_batches(corpus, EVALUATION_BATCH):
        logits = network(batch.to(device)).logits.cpu()
        chosen = logits.log_softmax(-1).gather(-1, batch.target_output[..., None])[..., 0]
        hit = (logits.argmax(-1) == batch.target_output) & batch.target_mask
        columns = slice(0, batch.target_mask.shape[1])
        right[batch.indices, columns] = hit.to(torch.uint8)
        loss[batch.indices, columns] = -chosen.masked_fill(~batch.target_mask, 0)
    return {"right": right, "loss": loss}


def shown_pairs(settings: SequenceSettings) -> Batch | None:
    if not settings.shown:
        return None
    task = load_task(settings)
    vocabularies = (task.source_vocabulary, task.target_vocabulary)
    sides = zip(*settings.shown, strict=True)
    pairs = [
        [vocabulary.encode(t.split()) for t in side]
        for vocabulary, side in zip(vocabularies, sides, strict=True)
    ]
    return collate(Corpus.from_ids(*pairs), range(len(settings.shown)))


@torch.no_grad()
def snapshot_of_pairs(network: nn.Module, pairs: Batch, device: str = "cpu") -> Tensors:
    """``scores`` and ``attention``, (pairs, target, source), and ``probability`` of the right words."""
    trace = network(pairs.to(device))
    right = trace.logits.softmax(-1).gather(-1, trace.target_outputs[..., None])[..., 0]
    values = {"probability": right}
    if trace.attention is not None:
        values |= {"scores": trace.scores, "attention": trace.attention}
    return {name: value.cpu() for name, value in values.items()}


@torch.no_grad()
def written(network: nn.Module, corpus: Corpus, device: str = "cpu") -> Tensor:
    """What the network writes for each source, cut off at twice the longest target and ten more."""
    most = 2 * int(corpus.target_lengths.max()) + 10
    rows = torch.full((len(corpus), most), PAD, dtype=torch.int32)
    for batch in evaluation_batches(corpus, EVALUATION_BATCH):
        search = greedy_search(network, batch.source.to(device), batch.source_mask.to(device), max_steps=most)
        words = search.words[:, 0].cpu().to(torch.int32)
        rows[batch.indices, : words.shape[1]] = words
    return rows[:, : max(1, int((rows != PAD).sum(1).max()))]


def restored(new_network: NewNetwork, recording: Recording) -> nn.Module:
    """The trained network of a recording, in evaluation mode."""
    tensors = recording.tensors
    state = {name.removeprefix(_NETWORK): tensors[name] for name in tensors if name.startswith(_NETWORK)}
    sizes = (len(state[f"embedding_{side}.weight"]) for side in ("source", "target"))
    network = new_network(recording.spec.resolved, *sizes)
    network.load_state_dict(state)
    return network.eval()
