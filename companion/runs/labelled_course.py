"""What the recipes of classifiers share: their texts, the steps they are looked at, and how a look is kept.

A recording holds for each part, ``validation`` and ``train`` (a sample of the training texts, as many as the
validation texts), in the order of the texts:

``<part>.offsets``, ``<part>.labels``
    positions of text i are ``offsets[i]:offsets[i+1]`` of every row below, marks among them; its label.
``<part>.correct``, ``<part>.loss``
    (checkpoints, texts) and (checkpoints,): whether the right label is the likelier one; nats a text.
``<part>.log_polarity``
    (checkpoints, positions): β and polarity before they are squashed, see
    :mod:`companion.runs.labelled_course`. What is seen at the part's best looks alone
    (:mod:`companion.runs.looks`) has this form too, NaN elsewhere.

beside ``steps`` (checkpoints) and the loss curve ``loss_steps``, ``losses``. What else there is by position,
the recipes say. :func:`attnlib.probes.agreement.padded` makes rows of equal length.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlib.errors import BadInput
from attnlib.models.classifiers import classification_loss
from attnlib.training.course import Course, Report, run_course
from companion.data import labelled_sets
from companion.data.labelled import (
    N_MARKS,
    LabelledBatch,
    LabelledBatches,
    LabelledTask,
    LabelledTexts,
    judging_batches,
)
from companion.runs.looks import gathered_looks, keep_if_best, keep_look, qualities, seen_where_best

# What a position by itself says of the right label: the lexical probe of classifiers, and polarity.
#
# A classifier whose readout is linear gives log odds of label 1 to every position. Turned towards the right
# label y (equation 9 of Snell et al. 2021; γ in equation 22),
#
#     log polarity_l = (2y − 1) · log odds_l;     β_l = σ(log polarity_l);     polarity_l = β_l / (1 − β_l)
#
# Polarity is the score s_l of Sun and Lu (2020). All three put positions into one order; far from zero β and
# polarity run into the ends of floating point, where different positions become equal. Log polarity does not.


def log_polarity(
    log_odds: Float[Tensor, "batch length"], labels: Int[Tensor, " batch"]
) -> Float[Tensor, "batch length"]:
    """Log odds turned towards the right label of each text.

    >>> log_polarity(torch.tensor([[2.0, -1.0], [2.0, -1.0]]), torch.tensor([1, 0])).tolist()
    [[2.0, -1.0], [-2.0, 1.0]]
    """
    return log_odds * (2 * labels[:, None] - 1)


def lexical_probe(log_polarity: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """β: the probability of the right label if the network attended to the position alone (equation 9).

    >>> lexical_probe(torch.tensor([0.0])).tolist()
    [0.5]
    """
    return torch.sigmoid(log_polarity)


def polarity(log_polarity: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """β / (1 − β), between 0 and infinity, 1 where a position speaks for neither label.

    Computed without β, whose rounding it would magnify.

    >>> polarity(torch.tensor([0.0])).tolist()
    [1.0]
    """
    return torch.exp(log_polarity)


_SAMPLE = 0x5A3B  # tells the draw of the training sample apart from other streams of the same seed

# Of a batch: the log odds of label 1 by text, and what is to be kept by position, log odds among it.
Probe = Callable[[nn.Module, LabelledBatch], tuple[Tensor, dict[str, Tensor]]]
ByPosition = Callable[[nn.Module, LabelledBatch], Tensor]
Loss = Callable[[nn.Module, LabelledBatch], Float[Tensor, ""]]


@dataclass(frozen=True)
class LabelledSettings:
    """Texts and training; the defaults are the paper's (section A.8) on its smallest corpus of reviews.

    Attributes:
        data: one of :func:`companion.data.labelled_sets.names`, or the path of the reader's own table.
        reading, n_train, n_validation, split_seed: see :func:`companion.data.labelled.prepare`; a size of 0
            stands for the data set's own.
        steps, batch_size, learning_rate: of the training, by Adam at its other defaults.
        embedding_width: of a word's vector.
        seed: of the parameters and of the order of the batches.

    Raises:
        BadInput: a size or number of steps that cannot be.
    """

    data: str = "sst"
    reading: str = "cleaned"
    n_train: int = 0
    n_validation: int = 0
    split_seed: int = 0
    steps: int = 4_000
    batch_size: int = 32
    learning_rate: float = 1e-3
    embedding_width: int = 300
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_train", "n_validation", "split_seed", "seed"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 0")
        for name in ("steps", "batch_size", "embedding_width"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")


def checkpoints(steps: int) -> tuple[int, ...]:
    """The steps at which classifiers are evaluated (section A.8), and the last one.

    >>> checkpoints(600)
    (0, 10, 50, 100, 150, 200, 250, 500, 600)
    """
    planned = (0, 10, 50, 100, 150, 200, *range(250, steps, 250))
    return (*(step for step in planned if step < steps), steps)


def checksums(settings: LabelledSettings) -> dict[str, str]:
    """sha256 of the content of each data file read, by "dataset/file"; none for texts made by rule."""
    return labelled_sets.checksums(settings.data)


def load_task(settings: LabelledSettings) -> LabelledTask:
    """The texts of the settings, prepared once a process for as long as the files stay as they are."""
    return _load(
        tuple(sorted(checksums(settings).items())),
        settings.data,
        settings.reading,
        settings.n_train or None,
        settings.n_validation or None,
        settings.split_seed,
    )


@lru_cache(maxsize=1)
def _load(_: tuple, data: str, reading: str, n_train, n_validation, split_seed) -> LabelledTask:
    return labelled_sets.load_labelled(
        data,
        reading=reading,
        n_train=n_train,
        n_validation=n_validation,
        split_seed=split_seed,
    )


def probed_parts(task: LabelledTask, split_seed: int) -> dict[str, LabelledTexts]:
    """The texts that are looked at: all of validation, and as many of training, the same for every run."""
    order = np.random.default_rng([_SAMPLE, split_seed]).permutation(len(task.train))
    sample = np.sort(order[: len(task.validation)])
    return {"validation": task.validation, "train": task.train.subset(sample)}


def record_course(
    model: nn.Module,
    settings: LabelledSettings,
    folder: Path,
    *,
    loss: Loss,
    probe: Probe,
    at_best: Mapping[str, ByPosition],
    device: str,
    report: Report | None,
) -> dict[str, Tensor]:
    """Train ``model`` and look at it at :func:`checkpoints`; see the module for what is returned.

    Args:
        at_best: by name what is to be seen by position of the best looks alone, because it is dear.

    Raises:
        TrainingDiverged: the loss is not finite.
    """
    task = load_task(settings)
    parts = probed_parts(task, settings.split_seed)
    course = Course(settings.steps, settings.seed, settings.learning_rate, checkpoints(settings.steps))

    def visit(step: int, network: nn.Module) -> None:
        found = {}
        for part, texts in parts.items():
            found |= {f"{part}.{name}": value for name, value in look(network, texts, probe, device).items()}
        if at_best:
            keep_if_best(folder, step, network, {part: qualities(found, part) for part in parts})
        keep_look(folder, step, found)

    def see(network: nn.Module, part: str) -> dict[str, Tensor]:
        return {
            f"{part}.{name}": _row(network, parts[part], values, device) for name, values in at_best.items()
        }

    batches = LabelledBatches(task.train, settings.batch_size, seed=settings.seed)
    records = run_course(model, batches, loss, course, folder, visit=visit, device=device, report=report)
    found = gathered_looks(folder, course.checkpoints)
    if at_best:
        found |= seen_where_best(folder, model, course.checkpoints, see)
    for part, texts in parts.items():
        found[f"{part}.offsets"] = torch.from_numpy(_offsets(texts))
        found[f"{part}.labels"] = torch.from_numpy(texts.labels)
    return found | {
        "loss_steps": torch.tensor([entry["step"] for entry in records]),
        "losses": torch.tensor([entry["loss"] for entry in records]),
    }


def look(model: nn.Module, texts: LabelledTexts, probe: Probe, device: str) -> dict[str, Tensor]:
    """One checkpoint's look at some texts: what ``probe`` finds by position, flat, and how right it is."""
    correct = torch.zeros(len(texts), dtype=torch.bool)
    rows: dict[str, Tensor] = {}
    total = 0.0
    with torch.no_grad():
        for batch, places in _placed(texts, device):
            moved = batch.to(device)
            logit, found = probe(model, moved)
            found["log_polarity"] = log_polarity(found.pop("log_odds"), moved.labels)
            correct[batch.indices] = ((logit > 0) == (moved.labels == 1)).cpu()
            total += len(batch) * classification_loss(logit, moved.labels).item()
            for name, values in found.items():
                row = rows.setdefault(name, torch.empty(_offsets(texts)[-1]))
                row[places] = values.cpu()[batch.mask]
    return rows | {"correct": correct, "loss": torch.tensor(total / len(texts))}


def _row(
    model: nn.Module, texts: LabelledTexts, values: ByPosition, device: str
) -> Float[Tensor, " positions"]:
    """One thing alone that is to be known by position, flat."""
    row = torch.empty(_offsets(texts)[-1])
    for batch, places in _placed(texts, device):
        row[places] = values(model, batch.to(device)).detach().cpu()[batch.mask]
    return row


def _placed(texts: LabelledTexts, device: str) -> Iterator[tuple[LabelledBatch, Int[Tensor, " valid"]]]:
    """Batches, and where the valid positions of each stand in the flat row."""
    offsets = torch.from_numpy(_offsets(texts))
    for batch in judging_batches(texts, positions=_positions(device)):
        yield batch, (offsets[batch.indices][:, None] + torch.arange(batch.mask.shape[1]))[batch.mask]


def _positions(device: str) -> int:
    """Positions of a batch that is only looked at: few are faster on a CPU (by a third), many on a GPU."""
    return 2_048 if torch.device(device).type == "cpu" else 65_536


def _offsets(texts: LabelledTexts) -> np.ndarray:
    """Where the positions of each text begin, its marks counted."""
    return texts.offsets + N_MARKS * np.arange(len(texts) + 1)
