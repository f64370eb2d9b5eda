"""Path length: how far a gradient gets back into the source, with one vector and with attention."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.models.corpus import Batch, collate
from companion.results.config import Field, OneOf, Positive, setting
from companion.results.frames import Table, joined, keyed, view
from companion.runs import registry
from companion.runs.columns import INTERVAL, Column, Columns, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from companion.runs.store import Store
from notebooks.shared.intervals import interval_of
from notebooks.shared.plan import Plan, Points, answered, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.sequence_course import load_task
from notebooks.shared.summaries import differences, summarise
from notebooks.shared.words import PAPER, CoursesConfig, link_distances, spec_on_words

_BATCH = 64


@measure(version=1)
def measure_gradients(recording: Recording, *, length: int, samples: int) -> dict:
    """Of the right word's logit, less the mean logit, by each source embedding; not of its log-probability,
    whose gradient vanishes where the word is certain."""
    settings, module = recording.spec.resolved, registry.load(recording.spec.procedure)
    drawn = {"min_length": length, "max_length": length, "n_train": 1, "n_held_out": samples}
    options = tuple((dict(settings.task_options) | drawn).items())
    task = load_task(type(settings)(task=settings.task, options=options))
    sizes = len(task.source_vocabulary), len(task.target_vocabulary)
    networks = {
        "trained": module.recorded_network(recording),
        "untrained": module.new_network(settings, *sizes).eval(),
    }
    numbers: dict[str, object] = {"length": length, "samples": len(task.held_out)}
    for stage, network in networks.items():
        total = torch.zeros(length, length, dtype=torch.float64)
        for first in range(0, len(task.held_out), _BATCH):
            batch = collate(task.held_out, range(first, min(first + _BATCH, len(task.held_out))))
            total += gradient_norms(network, batch)[:, :length, :length].double().sum(0)
        mean = total / len(task.held_out)
        numbers[stage] = mean.tolist()
        numbers[f"aligned_{stage}"] = float((mean.diagonal() / mean.sum(1)).mean())
    return numbers


def gradient_norms(network: nn.Module, batch: Batch) -> Float[Tensor, "batch target source"]:
    """Norms of d (z_s − mean z) / d x_t, z_s the right word's logit at s, for all places, marks included."""
    inputs = network.embedding_source(batch.source).detach().requires_grad_()
    logits = network.decode(batch, *network.encode_inputs(inputs, batch.source_mask)).logits
    right = logits.gather(-1, batch.target_output[..., None])[..., 0] - logits.mean(-1)
    rows = []
    for step in range(right.shape[1]):
        # Samples do not touch each other, so the gradient of their sum is the gradient of each.
        (gradient,) = torch.autograd.grad(right[:, step].sum(), inputs, retain_graph=True)
        rows.append(gradient.norm(dim=-1))
    return torch.stack(rows, dim=1)


KINDS = {  # link, and whether the source is read backwards
    "one_vector": ("initial", False),
    "one_vector_reversed": ("initial", True),
    "attention": ("attention", False),
    "attention_reversed": ("attention", True),
}
STAGES = ("untrained", "trained")


class Config(CoursesConfig):
    """Settings; a network is a kind × cell × seed. The defaults are those of the chapter on reversal."""

    kind: tuple[Annotated[str, OneOf(KINDS)], ...] = setting(
        ("one_vector", "one_vector_reversed", "attention"),
        "one_vector, one_vector_reversed, attention, attention_reversed",
    )
    length: Annotated[int, Field(ge=3)] = setting(12, "words of the sentences that gradients are taken on")
    samples: Positive = setting(64, "number of sentences that gradients are taken on")


PROFILES = {
    "quick": Config(),
    "paper": Config(kind=tuple(KINDS), length=20, samples=256, **PAPER),
    "tiny": Config(
        longest=5, length=4, seeds=2, n_train=300, judged=60, width=8, steps=3, snapshots=1, samples=20
    ),
}


def _plan(config: Config) -> tuple[Plan]:
    shared, groups = settings_of(config, "width", "snapshots"), {}
    for kind, cell in product(config.kind, config.cell):
        link, reverse = KINDS[kind]
        settings = {"link": link, "reverse": reverse, "cell": cell} | shared
        groups[kind, cell] = each_seed(config.seeds, spec_on_words, config, **settings)
    return (plan_of(groups, measure_gradients, length=config.length, samples=config.samples),)


measurements = asked(_plan)


GROUP = {
    "kind": Column("what the decoder gets of the source, and whether the source is read backwards"),
    "cell": Column("recurrent cell"),
}
STAGE = {"stage": Column("before or after training: untrained, trained")}
BY_STAGE = [*GROUP, *STAGE]
NUMBERS = {
    "decay": Column("slope of the norm's logarithm over distance", "decades a step"),
    "aligned": Column("part of a target word's norms that is at the source word of the same position"),
    "apart": Column("mean norm at the distance reached most, above that reached least", "decades"),
    "first_over_last": Column("norm between first words, above that between last words", "decades"),
}
DISTANCE = {
    "distance": Column("recurrent steps between two words, through the encoder's last state", "steps"),
    "log_norm": Column("mean norm of the gradient at this distance", "decades"),
}
ENTRY = {
    "target": Column("position of the target word, from 1"),
    "source": Column("position of the source word, from 1"),
    "norm": share("mean norm of the gradient, over the largest of its matrix"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """A distance is the number of recurrent steps between two words if everything goes through the encoder's
    last state, for networks with attention as well: it is what they need not go."""
    (plan,) = _plan(config)
    networks = _of_network(plan, store, _numbers, STAGE | NUMBERS, "a network at a stage of training")
    distances = _of_network(plan, store, _by_distance, STAGE | DISTANCE, "a distance in a network")
    by_distance = summarise(distances, [*BY_STAGE, "distance"], ["log_norm"])
    first_cell = networks.query("cell == @cell", cell=config.cell[0])
    attention, one_vector = (
        first_cell.query("kind == @kind", kind=kind) for kind in ("attention", "one_vector")
    )
    flatter = differences(attention, one_vector, ["decay"], on=["stage", "seed"])
    return {
        "matrices": _matrices(answered(plan, store)),
        "decay": by_distance.select(*BY_STAGE, "distance", *INTERVAL),
        "networks": networks,
        "estimates": summarise(networks, BY_STAGE, NUMBERS),
        "flatter": summarise(flatter, ["stage"], ["decay"]),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """``main``: numbers of the first cell. ``flatter``: decay with attention minus that with one vector."""
    main = tables["estimates"].query("cell == @cell", cell=config.cell[0])
    return view(
        {f"flatter.{stage}": interval_of() for stage in STAGES},
        keyed(tables["flatter"], "flatter.{stage}"),
        keyed(tables["estimates"], "{kind}.{cell}.{stage}.{quantity}"),
        keyed(main, "{kind}.main.{stage}.{quantity}"),
    )


def _of_network(plan: Plan, store: Store, records: Callable, columns: Columns, row: str) -> Table:
    """Return records of all networks, which depend on whether a kind reads its source backwards."""
    how = {"columns": columns, "row": row}
    tables = [plan_frame({}, store, GROUP, **how)]
    for group, of_group in plan.items():
        _, reverse = KINDS[group[0]]
        tables.append(
            plan_frame({group: of_group}, store, GROUP, records=partial(records, reverse=reverse), **how)
        )
    return joined(tables)


def _matrices(points: Points) -> Table:
    rows = []
    for (kind, cell), networks in points.items():
        for stage in STAGES:
            mean = np.mean([measured[stage] for _, measured in networks], axis=0)
            named = {"kind": kind, "cell": cell, "stage": stage}
            for s, t in np.ndindex(mean.shape):
                rows.append(
                    named | {"target": s + 1, "source": t + 1, "norm": float(mean[s, t] / mean.max())}
                )
    return Table.of(rows, GROUP | STAGE | ENTRY, "a pair of places, in the mean over networks")


def _pairs(matrix: list[list[float]], *, reverse: bool) -> tuple[np.ndarray, np.ndarray]:
    """Of all pairs of places the distance, and log10 of the norm."""
    cells = np.ndindex(len(matrix), len(matrix))
    links = [(source, target) for target, source in cells]
    norms = np.log10(np.maximum(matrix, 1e-30)).ravel()
    return np.array(link_distances(links, len(matrix), reverse=reverse)), norms


def decay(matrix: list[list[float]], *, reverse: bool) -> float:
    """Slope of log10 of the norm over distance, every pair of places counted once."""
    return float(np.polyfit(*_pairs(matrix, reverse=reverse), 1)[0])


def _numbers(measured: dict, *, reverse: bool) -> list[dict]:
    rows = []
    for stage in STAGES:
        means = [row["log_norm"] for row in _by_distance(measured, reverse=reverse) if row["stage"] == stage]
        _, norms = _pairs(measured[stage], reverse=reverse)
        rows.append(
            {
                "stage": stage,
                "decay": decay(measured[stage], reverse=reverse),
                "aligned": measured[f"aligned_{stage}"],
                "apart": max(means) - min(means),
                "first_over_last": float(norms[0] - norms[-1]),
            }
        )
    return rows


def _by_distance(measured: dict, *, reverse: bool) -> list[dict]:
    rows = []
    for stage in STAGES:
        distances, norms = _pairs(measured[stage], reverse=reverse)
        for distance in np.unique(distances):
            mean = float(norms[distances == distance].mean())
            rows.append({"stage": stage, "distance": int(distance), "log_norm": mean})
    return rows
