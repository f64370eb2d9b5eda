"""Path length: how far a gradient gets back into the source, with one vector and with attention."""

from itertools import product
from operator import itemgetter
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.models.corpus import Batch, collate
from companion.results.config import Field, OneOf, Positive
from companion.runs import registry
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from companion.runs.store import Store
from notebooks.shared.intervals import paired
from notebooks.shared.plan import Plan, answered, asked, each_seed, plan_of, settings_of
from notebooks.shared.sequence_course import load_task
from notebooks.shared.summaries import rows_of, summarised
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
    found: dict[str, object] = {"length": length, "samples": len(task.held_out)}
    for stage, network in networks.items():
        total = torch.zeros(length, length, dtype=torch.float64)
        for first in range(0, len(task.held_out), _BATCH):
            batch = collate(task.held_out, range(first, min(first + _BATCH, len(task.held_out))))
            total += gradient_norms(network, batch)[:, :length, :length].double().sum(0)
        mean = total / len(task.held_out)
        found[stage] = mean.tolist()
        found[f"aligned_{stage}"] = float((mean.diagonal() / mean.sum(1)).mean())
    return found


def gradient_norms(network: nn.Module, batch: Batch) -> Float[Tensor, "batch target source"]:
    """Norms of d (z_s − mean z) / d x_t, z_s the right word's logit at s, for all places, marks included."""
    inputs = network.embedding_source(batch.source).detach().requires_grad_()
    logits = network.decode(batch, *network.encode_inputs(inputs, batch.source_mask)).logits
    right = logits.gather(-1, batch.target_output[..., None])[..., 0] - logits.mean(-1)
    rows = []
    for step in range(right.shape[1]):
        # Samples do not touch each other, so the gradient of their sum is the gradient of each.
        (own,) = torch.autograd.grad(right[:, step].sum(), inputs, retain_graph=True)
        rows.append(own.norm(dim=-1))
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

    #: ``one_vector``, ``one_vector_reversed``, ``attention``, ``attention_reversed``
    kind: tuple[Annotated[str, OneOf(KINDS)], ...] = ("one_vector", "one_vector_reversed", "attention")
    length: Annotated[int, Field(ge=3)] = 12  #: words of the sentences that gradients are taken on
    samples: Positive = 64  #: number of sentences that gradients are taken on


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
        own = {"link": link, "reverse": reverse, "cell": cell} | shared
        groups[kind, cell] = each_seed(config.seeds, spec_on_words, config, **own)
    return (plan_of(groups, measure_gradients, length=config.length, samples=config.samples),)


measurements = asked(_plan)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """A distance is the number of recurrent steps between two words if everything goes through the encoder's
    last state, for networks with attention as well: it is what they need not go."""
    points = answered(*_plan(config), store)
    of_each = {
        group: [(name, _of_network(measured, reverse=name["reverse"])) for name, measured in own]
        for group, own in points.items()
    }
    values = summarised(of_each, itemgetter("numbers"))
    for own in values.values():
        own["main"] = own[next(iter(own))]
    means = {(*g, s): np.mean([m[s] for _, m in own], axis=0) for g, own in points.items() for s in STAGES}
    attention, one_vector = (of_each.get((kind, config.cell[0]), []) for kind in ("attention", "one_vector"))
    flatter = {s: paired(attention, one_vector, lambda m, s=s: m["numbers"][s]["decay"]) for s in STAGES}
    return values | {"flatter": flatter}, {
        "matrices": [
            {"kind": kind, "cell": cell, "stage": stage, "target": s + 1, "source": t + 1}
            | {"norm": float(mean[s, t] / mean.max())}
            for (kind, cell, stage), mean in means.items()
            for s, t in np.ndindex(mean.shape)
        ],
        "decay": rows_of(summarised(of_each, itemgetter("distances")), "kind", "cell", "stage", "distance"),
    }


def _pairs(matrix: list[list[float]], *, reverse: bool) -> tuple[np.ndarray, np.ndarray]:
    """Of all pairs of places the distance, and log10 of the norm."""
    cells = np.ndindex(len(matrix), len(matrix))
    links = [(source, target) for target, source in cells]
    norms = np.log10(np.maximum(matrix, 1e-30)).ravel()
    return np.array(link_distances(links, len(matrix), reverse=reverse)), norms


def decay(matrix: list[list[float]], *, reverse: bool) -> float:
    """Slope of log10 of the norm over distance, every pair of places counted once."""
    return float(np.polyfit(*_pairs(matrix, reverse=reverse), 1)[0])


def _of_network(measured: dict, *, reverse: bool) -> dict[str, dict[str, dict]]:
    """``decay`` is in decades a step; ``aligned``, the share of a row on the word at the same place;
    ``apart``, in decades, the distance reached most above the one reached least; ``first_over_last``, of the
    pairs of first and last words.
    """
    found: dict = {"numbers": {}, "distances": {}}
    for stage in STAGES:
        distances, norms = _pairs(measured[stage], reverse=reverse)
        means = {int(d): float(norms[distances == d].mean()) for d in np.unique(distances)}
        found["distances"][stage] = means
        found["numbers"][stage] = {
            "decay": decay(measured[stage], reverse=reverse),
            "aligned": measured[f"aligned_{stage}"],
            "apart": max(means.values()) - min(means.values()),
            "first_over_last": float(norms[0] - norms[-1]),
        }
    return found
