"""A classifier on labelled texts (Snell et al. 2021, sections 2.4 and A.8), looked at along its training.

A recording holds for each part, ``validation`` and ``train`` (a sample of the training texts, as many as the
validation texts), in the order of the texts:

``<part>.offsets``, ``<part>.labels``
    positions of text i are ``offsets[i]:offsets[i+1]`` of every row below, marks among them; its label.
``<part>.correct``, ``<part>.loss``
    (checkpoints, texts) and (checkpoints,): whether the right label is the likelier one; nats a text.
``<part>.log_polarity``, and ``<part>.attention`` where it is learned
    (checkpoints, positions): see :func:`log_polarity`; uniform attention is one over the length.
``<part>.saliency``
    where asked for, of the part's best snapshots alone (:mod:`notebooks.shared.snapshots`), NaN at all
    others: its backward pass would make every snapshot three times as costly.

beside ``steps`` (checkpoints) and the loss curve ``loss_steps``, ``losses``.
:func:`notebooks.shared.agreement.padded` makes rows of equal length.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.errors import check_at_least, check_known
from attnlib.models import classifiers
from attnlib.models.classifiers import AttentiveClassifier, classification_loss, log_odds_of, logit_of
from attnlib.trace import Trace
from companion.data import labelled, labelled_sets
from companion.runs.loop import Report, Schedule, train_network
from notebooks.shared import snapshots as kept
from notebooks.shared.snapshots import Tensors, keep_if_best, qualities, save_snapshot, stacked_snapshots

VERSION = 1  # of the training: raised when what it trains changes

_SAMPLE = 0x5A3B  # tells the draw of the training sample apart from other streams of the same seed

# Of a batch: the log odds of label 1 by text, and what is to be kept by position, log odds among it.
Probe = Callable[[nn.Module, labelled.LabelledBatch], tuple[Tensor, Tensors]]
ByPosition = Callable[[nn.Module, labelled.LabelledBatch], Tensor]
Loss = Callable[[nn.Module, labelled.LabelledBatch], Float[Tensor, ""]]


@dataclass(frozen=True)
class LabelledSettings:
    """Texts and training; the defaults are the paper's (section A.8) on its smallest corpus of reviews."""

    data: str | Path = (
        "sst"  # of :func:`companion.data.labelled_sets.names`, or the path of the reader's own table
    )
    # What :func:`companion.data.labelled.prepare` takes; a size of 0 stands for the data set's own.
    reading: str = "cleaned"
    n_train: int = 0
    n_validation: int = 0
    split_seed: int = 0
    steps: int = 4_000
    batch_size: int = 32
    learning_rate: float = 1e-3
    embedding_width: int = 300
    seed: int = 0  # of the parameters and of the order of the batches

    def __post_init__(self) -> None:
        check_at_least(0, self, "n_train", "n_validation", "split_seed", "seed")
        check_at_least(1, self, "steps", "batch_size", "embedding_width")


@dataclass(frozen=True)
class Settings(LabelledSettings):
    """One network and its texts."""

    attention: str = "learned"  # or uniform, which gives β^uf, or alone, with all else frozen as drawn (A.6)
    width: int = 256  # of the state of one direction
    saliency: bool = True  # whether to record it, at the best snapshots

    def __post_init__(self) -> None:
        super().__post_init__()
        check_known("attention", self.attention, get_args(classifiers.AttentionMode))
        check_at_least(1, self, "width")


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Train the classifier and look at it along the way; see the module for what is returned."""
    config = classifiers.ClassifierConfig(
        len(load_task(settings).vocabulary),
        settings.embedding_width,
        settings.width,
        attention=settings.attention,
    )
    model = AttentiveClassifier(config, torch.Generator().manual_seed(settings.seed))

    def probe(network: AttentiveClassifier, batch: labelled.LabelledBatch) -> tuple[Tensor, Tensors]:
        trace = network(batch.tokens, batch.mask)
        values = {} if settings.attention == "uniform" else {"attention": trace.attention[:, 0]}
        return logit_of(trace), values | {"log_odds": log_odds_of(trace)}

    at_best = {"saliency": _saliency} if settings.saliency else {}
    return record_course(
        model, settings, folder, loss=_loss, probe=probe, at_best=at_best, device=device, report=report
    )


def _saliency(model: AttentiveClassifier, batch: labelled.LabelledBatch) -> Tensor:
    return saliency(model, batch.tokens, batch.mask, batch.labels)[0]


def _loss(model: AttentiveClassifier, batch: labelled.LabelledBatch) -> Tensor:
    return classification_loss(logit_of(model(batch.tokens, batch.mask)), batch.labels)


def checkpoints(steps: int) -> tuple[int, ...]:
    """The steps at which classifiers are evaluated (section A.8), and the last one.

    >>> checkpoints(600)
    (0, 10, 50, 100, 150, 200, 250, 500, 600)
    """
    planned = (0, 10, 50, 100, 150, 200, *range(250, steps, 250))
    return (*(step for step in planned if step < steps), steps)


def checksums(settings: LabelledSettings) -> dict[str, str]:
    return labelled_sets.checksums(settings.data)


def load_task(settings: LabelledSettings) -> labelled.LabelledTask:
    """The texts, prepared once a process for as long as the files stay as they are."""
    return _load(
        tuple(sorted(checksums(settings).items())), settings.data, settings.reading, settings.n_train or None,
        settings.n_validation or None, settings.split_seed,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _load(_: tuple, data: str, reading: str, n_train, n_validation, split_seed) -> labelled.LabelledTask:
    return labelled_sets.load_labelled(
        data, reading=reading, n_train=n_train, n_validation=n_validation, split_seed=split_seed
    )


def probed_parts(task: labelled.LabelledTask, split_seed: int) -> dict[str, labelled.LabelledTexts]:
    """The texts that are looked at: all of validation, and as many of training, the same for every run."""
    order = np.random.default_rng([_SAMPLE, split_seed]).permutation(len(task.train))
    sample = np.sort(order[: len(task.validation)])
    return {"validation": task.validation, "train": task.train.subset(sample)}


def record_course(
    model: nn.Module, settings: LabelledSettings, folder: Path, *, loss: Loss, probe: Probe,
    at_best: Mapping[str, ByPosition], device: str, report: Report | None,
) -> Tensors:  # fmt: skip
    """Train ``model`` and look at it at :func:`checkpoints`; see the module for what is returned.

    ``at_best`` has by name what is seen by position of the best snapshots alone, because it is costly.
    """
    task = load_task(settings)
    parts = probed_parts(task, settings.split_seed)
    schedule = Schedule(settings.steps, settings.seed, settings.learning_rate, checkpoints(settings.steps))

    def visit(step: int, network: nn.Module) -> None:
        snapshot = {}
        for part, texts in parts.items():
            snapshot |= {
                f"{part}.{name}": v for name, v in snapshot_of(network, texts, probe, device).items()
            }
        if at_best:
            keep_if_best(folder, step, network, {part: qualities(snapshot, part) for part in parts})
        save_snapshot(folder, step, snapshot)

    def see(network: nn.Module, part: str) -> Tensors:
        return {f"{part}.{name}": _row(network, parts[part], of, device) for name, of in at_best.items()}

    batches = labelled.LabelledBatches(task.train, settings.batch_size, seed=settings.seed)
    records = train_network(model, batches, loss, schedule, folder, visit=visit, device=device, report=report)
    tensors = stacked_snapshots(folder, schedule.checkpoints)
    if at_best:
        tensors |= kept.seen_where_best(folder, model, schedule.checkpoints, see)
    for part, texts in parts.items():
        tensors[f"{part}.offsets"] = torch.from_numpy(_offsets(texts))
        tensors[f"{part}.labels"] = torch.from_numpy(texts.labels)
    return tensors | {
        "loss_steps": torch.tensor([entry["step"] for entry in records]),
        "losses": torch.tensor([entry["loss"] for entry in records]),
    }


def snapshot_of(model: nn.Module, texts: labelled.LabelledTexts, probe: Probe, device: str) -> Tensors:
    """One checkpoint's look at some texts: what ``probe`` finds by position, flat, and how right it is."""
    correct = torch.zeros(len(texts), dtype=torch.bool)
    rows: dict[str, Tensor] = {}
    total = 0.0
    with torch.no_grad():
        for batch, places in _placed(texts, device):
            moved = batch.to(device)
            logit, values_of = probe(model, moved)
            values_of["log_polarity"] = log_polarity(values_of.pop("log_odds"), moved.labels)
            correct[batch.indices] = ((logit > 0) == (moved.labels == 1)).cpu()
            total += len(batch) * classification_loss(logit, moved.labels).item()
            for name, values in values_of.items():
                row = rows.setdefault(name, torch.empty(_offsets(texts)[-1]))
                row[places] = values.cpu()[batch.mask]
    return rows | {"correct": correct, "loss": torch.tensor(total / len(texts))}


def _row(
    model: nn.Module, texts: labelled.LabelledTexts, values: ByPosition, device: str
) -> Float[Tensor, " positions"]:
    row = torch.empty(_offsets(texts)[-1])
    for batch, places in _placed(texts, device):
        row[places] = values(model, batch.to(device)).detach().cpu()[batch.mask]
    return row


def _placed(
    texts: labelled.LabelledTexts, device: str
) -> Iterator[tuple[labelled.LabelledBatch, Int[Tensor, " valid"]]]:
    """Batches, and where the valid positions of each stand in the flat row."""
    offsets = torch.from_numpy(_offsets(texts))
    for batch in labelled.judging_batches(texts, positions=_positions(device)):
        yield batch, (offsets[batch.indices][:, None] + torch.arange(batch.mask.shape[1]))[batch.mask]


def _positions(device: str) -> int:
    """Positions of a batch that is only looked at: few are faster on a CPU (by a third), many on a GPU."""
    return 2_048 if torch.device(device).type == "cpu" else 65_536


def _offsets(texts: labelled.LabelledTexts) -> np.ndarray:
    return texts.offsets + labelled.N_MARKS * np.arange(len(texts) + 1)


LogOdds = Float[Tensor, "batch length"]


def log_polarity(log_odds: LogOdds, labels: Int[Tensor, " batch"]) -> LogOdds:
    """Log odds of label 1 by position, turned towards the right label of each text.

    With the right label y (equation 9; γ in equation 22), it is (2y − 1) · log odds. The lexical probe β is
    its sigmoid; polarity, the score s of Sun and Lu (2020), is β / (1 − β). All three have one order; far
    from zero the other two run into the ends of floating point.

    >>> log_polarity(torch.tensor([[2.0, -1.0], [2.0, -1.0]]), torch.tensor([1, 0])).tolist()
    [[2.0, -1.0], [-2.0, 1.0]]
    """
    return log_odds * (2 * labels[:, None] - 1)


# Saliency: how much the right class's score moves with a word's vector (Snell et al. 2021, section 5.1).
#
# The embedding of position l is multiplied by a gate g_l, and with all gates at 1
#
#     saliency_l = ∂/∂g_l (2y − 1) · logit        = (2y − 1) · ⟨∂ logit / ∂e_l, e_l⟩
#
# the derivative of the right label's log odds; it may be negative. Texts of a batch do not touch one another,
# so one backward pass from the sum of their scores gives the saliency of every position of every text.


def saliency(
    model: AttentiveClassifier,
    tokens: Int[Tensor, "batch length"],
    mask: Bool[Tensor, "batch length"],
    labels: Int[Tensor, " batch"],
) -> tuple[Float[Tensor, "batch length"], Trace]:
    """Saliency of every position, zero at padding, and the trace of the pass that it was taken on.

    No parameter is given a gradient. The trace is still part of the graph: detach what is kept. Raises
    BadInput for a text of padding alone.
    """
    # cuDNN refuses to go backward through a recurrent layer in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        gates = model.embedding.weight.new_ones(mask.shape).requires_grad_()
        trace = model(tokens, mask, gates=gates)
        right = (2 * labels - 1) * logit_of(trace)
        (gradient,) = torch.autograd.grad(right.sum(), gates)
    return gradient * mask, trace
