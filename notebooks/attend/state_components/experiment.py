"""State components: how much of the states position and word explain, and what they look like."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.decomposition.components import Components
from attnlib.decomposition.two_way import centred_by_piece
from attnlib.errors import BadInput
from attnlib.models.config import Architecture, Cell
from attnlib.models.vocabulary import Vocabulary
from attnlib.trace import Trace
from companion.results.config import Positive, Task
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.store import Store, TrainedModel
from companion.runs.suite import task_name_of
from notebooks.shared.intervals import Point, by_kind, each_over_seeds, kind
from notebooks.shared.measure import Fitted, fit_components
from notebooks.shared.plan import picked
from notebooks.shared.suite import PAPER_TASKS, SuiteConfig, each_planned, model_specs
from notebooks.shared.summaries import rows_of

SIDES = ("encoder", "decoder")
ByPosition, ByToken = Float[Tensor, "positions width"], Float[Tensor, "tokens width"]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Components of one side as they are drawn: mu around its mean over states, chi with mean zero."""

    mean: Float[Tensor, " width"]
    temporal: ByPosition
    input: ByToken
    position_counts: Float[Tensor, " positions"]
    token_counts: Float[Tensor, " tokens"]

    @classmethod
    def of(cls, components: Components) -> "Drawn":
        temporal, inputs = centred_by_piece(components.temporal, components.input, components.pair_counts)
        positions, tokens = components.position_counts.double(), components.token_counts.double()
        mean = positions @ temporal / positions.sum()
        return cls(mean, (temporal - mean) * (positions > 0)[:, None], inputs, positions, tokens)

    def second_moment(self, part: str) -> Float[Tensor, "width width"]:
        table = getattr(self, part)
        weights = self.position_counts if part == "temporal" else self.token_counts
        return (table * weights[:, None]).T @ table / weights.sum()


@dataclass(frozen=True, eq=False)
class Space:
    """Leading principal axes of a set of parts, with the share of their variance that each axis has."""

    axes: Float[Tensor, "axes width"]
    explained: Float[Tensor, " axes"]

    def project(self, table: Float[Tensor, "rows width"]) -> Float[Tensor, "rows axes"]:
        return table.double() @ self.axes.T


def space_of(sides: list[Drawn], parts: tuple[str, ...], axes: int = 3) -> Space:
    """Principal axes of these parts of all sides together, every side with equal weight."""
    matrix = sum(side.second_moment(part) for side in sides for part in parts)
    values, vectors = torch.linalg.eigh(matrix)
    values, vectors = values.flip(0)[:axes].clamp(min=0), vectors.flip(1)[:, :axes].T
    largest = vectors.gather(1, vectors.abs().argmax(1, keepdim=True))
    total = float(matrix.trace())
    return Space(vectors * largest.sign(), values / total if total > 0 else values)


@dataclass(eq=False)
class HeldOutVariance:
    """Squared errors of four predictions of held-out states, summed over batches."""

    exact: Components
    averages: Components = field(init=False)
    errors: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.averages = self.exact.refitted("means")
        names = ("position", "token", "exact", "averages")
        self.errors = dict.fromkeys(names, 0.0)
        self._count, self._sum, self._squares = 0, 0.0, 0.0
        exact = self.exact
        self._grand = exact.position_sums.sum(0) / exact.position_counts.sum()
        self._by_position = self._means(exact.position_sums, exact.position_counts)
        self._by_token = self._means(exact.token_sums, exact.token_counts)

    def _means(self, sums: Tensor, counts: Tensor) -> Float[Tensor, "rows width"]:
        means = sums / counts.clamp(min=1)[:, None]
        return torch.where((counts > 0)[:, None], means, self._grand)

    def update(self, states: Tensor, tokens: Tensor, mask: Tensor) -> "HeldOutVariance":
        rows, words = states[mask].double(), tokens[mask]
        places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)[mask]
        predicted = {
            "position": self._by_position[places],
            "token": self._by_token[words],
            "exact": self.exact.temporal[places] + self.exact.input[words],
            "averages": self.averages.temporal[places] + self.averages.input[words],
        }
        for name, prediction in predicted.items():
            self.errors[name] += float((rows - prediction).square().sum())
        self._count += len(rows)
        self._sum = self._sum + rows.sum(0)
        self._squares += float(rows.square().sum())
        return self

    def result(self) -> dict[str, float]:
        mean = self._sum / self._count
        total = self._squares - self._count * float(mean.square().sum())
        share = {name: 1 - error / total for name, error in self.errors.items()}
        return {
            "temporal": share["position"],
            "input": share["token"],
            "additive": share["exact"],
            "averages": share["averages"],
            "temporal_unique": share["exact"] - share["token"],
            "input_unique": share["exact"] - share["position"],
        }


def difference(exact: Components) -> dict[str, float]:
    """Root mean square differences of averages from the exact fit, in mu, in chi and in mu + chi."""
    averages, pairs = exact.refitted("means"), exact.pair_counts.double()
    mine = centred_by_piece(exact.temporal, exact.input, exact.pair_counts)
    theirs = averages.temporal, averages.input
    occurrences = float(pairs.sum())
    grand = exact.position_sums.sum(0) / occurrences
    variance = float(exact.square_sum) / occurrences - float(grand.square().sum())
    temporal, inputs = (first - second for first, second in zip(mine, theirs, strict=True))
    square = {
        "temporal": float(pairs.sum(0) @ temporal.square().sum(1)),
        "input": float(pairs.sum(1) @ inputs.square().sum(1)),
    }
    cross = float(((pairs @ temporal) * inputs).sum())
    square["fit"] = square["temporal"] + square["input"] + 2 * cross
    return {name: (max(value, 0.0) / occurrences / variance) ** 0.5 for name, value in square.items()}


WORDS = 24  # drawn of each side: the most frequent
SENTENCES = 40  # held-out samples whose states are drawn around their words
POINTS = 8  # of one word
RARE = 30  # positions with fewer fitting states are not drawn
DIGITS = 4  # of coordinates, in units of the states


@measure(version=1)
def measure_state_components(trained: TrainedModel, fit_samples: int) -> dict:
    """Variance explained on both sides, averages against the exact fit, and for seed 0 what figures draw."""
    fitted = fit_components(trained, fit_samples, method="least_squares")
    sides = {"encoder": fitted.encoder, "decoder": fitted.decoder}
    held_out = {side: HeldOutVariance(components) for side, components in sides.items()}
    unseen, valid = dict.fromkeys(SIDES, 0), dict.fromkeys(SIDES, 0)
    for trace in traces(trained.model, trained.task.held_out):
        for side, (states, tokens, mask) in _read(trace).items():
            held_out[side].update(states, tokens, mask)
            unseen[side] += int((~sides[side].seen[tokens] & mask).sum())
            valid[side] += int(mask.sum())
    found: dict = {"quality": trained.history["held_out"], "fitted_on": fitted.samples}
    for side, components in sides.items():
        shares = components.variance_explained()
        found[side] = {
            "held_out": held_out[side].result(),
            "fitted": {
                name: getattr(shares, name)
                for name in ("temporal", "additive", "temporal_unique", "input_unique")
            },
            "difference": difference(components),
            "unseen": unseen[side] / valid[side],
        }
    if trained.spec.seed == 0:
        found["pictures"] = pictures(trained, fitted)
    return found


def _read(trace: Trace) -> dict[str, tuple]:
    return {
        "encoder": (trace.encoder_states, trace.source_tokens, trace.source_mask),
        "decoder": (trace.decoder_states, trace.target_tokens, trace.target_mask),
    }


def pictures(trained: TrainedModel, fitted: Fitted) -> dict:
    drawn = {"encoder": Drawn.of(fitted.encoder), "decoder": Drawn.of(fitted.decoder)}
    both = list(drawn.values())
    spaces = {
        "temporal": space_of(both, ("temporal",)),
        "input": space_of(both, ("input",)),
        "together": space_of(both, ("temporal", "input")),
    }
    found: dict = {"explained": {name: _short(space.explained) for name, space in spaces.items()}}
    vocabularies = {"encoder": trained.task.source_vocabulary, "decoder": trained.task.target_vocabulary}
    sample = trained.task.held_out.subset(np.arange(min(SENTENCES, len(trained.task.held_out))))
    (trace,) = traces(trained.model, sample, batch_size=SENTENCES)
    for side, parts in drawn.items():
        often = torch.nonzero(parts.position_counts >= RARE)[:, 0]
        words = torch.argsort(parts.token_counts, descending=True, stable=True)[:WORDS]
        words = words[parts.token_counts[words] > 0]
        temporal, inputs = parts.temporal[often], parts.input[words]
        states = _around_words(parts, words, *_read(trace)[side])
        found[side] = {
            "positions": often.tolist(),
            "temporal": _short(spaces["temporal"].project(temporal)),
            "temporal_together": _short(spaces["together"].project(temporal)),
            "words": _shown(vocabularies[side], words),
            "input": _short(spaces["input"].project(inputs)),
            "input_together": _short(spaces["together"].project(inputs)),
            "states": [
                [word, *_short(spaces["input"].project(rows)[:, :2][index])]
                for word, rows in states
                for index in range(len(rows))
            ],
        }
    return found


def _shown(vocabulary: Vocabulary, words: torch.Tensor) -> list[str]:
    return vocabulary.decode(words.tolist())


def _around_words(parts: Drawn, words: torch.Tensor, states, tokens, mask) -> list[tuple[int, torch.Tensor]]:
    """A few held-out states of each word, less mean and temporal component: what chi is the average of."""
    rest = states.double() - (parts.mean + parts.temporal)[: states.shape[1]]
    found = []
    for index, word in enumerate(words.tolist()):
        rows = rest[mask & (tokens == word)]
        # evenly through the sample: neighbours come from one sentence
        chosen = torch.linspace(0, max(len(rows) - 1, 0), min(POINTS, len(rows))).round().long()
        found.append((index, rows[chosen]))
    return found


def _short(table: torch.Tensor) -> list:
    return np.round(table.cpu().double().numpy(), DIGITS).tolist()


SHARES = ("temporal", "input", "additive", "averages", "temporal_unique", "input_unique")
QUICK_TASKS = ("one_to_one", "reordering_50", "scan")


class Config(SuiteConfig):
    """Settings of the task suite, on fewer tasks and with VED beside the others."""

    task: tuple[Task, ...] = QUICK_TASKS
    #: VED, recurrent without attention, AED with it, AO, attention only
    architecture: tuple[Architecture, ...] = ("VED", "AED", "AO")
    cell: tuple[Cell, ...] = ("gru",)  #: recurrence of VED and AED: gru, lstm, vanilla, ugrnn. AO has none.
    #: tasks on which VED is trained. On long sentences it learns little.
    ved_task: tuple[Task, ...] = QUICK_TASKS
    #: updates of further VEDs on one-to-one: does it lack training, or room? None: no such networks.
    ved_steps: Positive | None = None
    ved_seeds: Positive | None = None  #: how many; as many as there are of the others when None

    def check(self) -> None:
        super().check()
        if not any(_has_model(self, *pair) for pair in product(self.task, self.architecture)):
            raise BadInput("no model is left: VED is trained on the tasks of ved_task alone, task has none")


def _has_model(config: Config, task_name: str, architecture: str) -> bool:
    return architecture != "VED" or task_name in config.ved_task


# VED learns next to nothing of the other quick tasks in so few updates.
PROFILES = {
    "quick": Config(seeds=2, ved_task=("one_to_one",)),
    "paper": Config(scale="paper", task=PAPER_TASKS, fit_samples=25_000, ved_steps=4_000, ved_seeds=10),
    "tiny": Config(task=("one_to_one",), seeds=1, width=8, steps=3, fit_samples=100, ved_steps=4),
}


def _of_the_suite(config: Config) -> tuple[Measurement, ...]:
    specs = (s for s in model_specs(config) if _has_model(config, task_name_of(s), s.architecture))
    return measurements_of(specs, measure_state_components, fit_samples=config.fit_samples)


def _trained_longer(config: Config) -> tuple[Measurement, ...]:
    asked_for = "VED" in config.architecture and "one_to_one" in config.task
    if config.ved_steps is None or not asked_for:
        return ()
    changes = {"seeds": config.ved_seeds, "embedding_scale": config.embedding_scale}
    planned = each_planned(config, "one_to_one", "VED", **changes)
    specs = (replace(spec, steps=config.ved_steps) for spec in planned)
    return measurements_of(specs, measure_state_components, fit_samples=config.fit_samples)


def measurements(config: Config) -> tuple[Measurement, ...]:
    return (*_of_the_suite(config), *_trained_longer(config))


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """``gain`` is what least squares (``additive``) explains more than ``averages``, held out.

    ``longer`` has the networks of ``ved_steps`` updates, by task and kind as the others are.
    """
    points = [(name | {"kind": kind(name)}, m) for name, m in answers(_of_the_suite(config), store)]
    values = by_kind(points, _summary)
    if longer := answers(_trained_longer(config), store):
        values["longer"] = by_kind(longer, _summary)
    sides = [(name | {"side": side}, m[side]) for name, m in points for side in SIDES]
    pictures = [(name, m["pictures"]) for name, m in points if "pictures" in m]
    drawn = [(name | {"side": side}, own[side]) for name, own in pictures for side in SIDES]
    return values, {
        "variance": [
            name | row
            for name, own in sides
            for row in rows_of(picked(own["held_out"], SHARES), "share", "r_squared")
        ],
        "difference": [name | own["difference"] for name, own in sides],
        "explained": [
            name | row
            for name, own in pictures
            for row in rows_of(own["explained"], "space", "axis", "share")
        ],
        "temporal": [row for each in drawn for row in _places(*each, "temporal", "position")],
        "input": [row for each in drawn for row in _places(*each, "input", "word")],
        "states": [
            name | {"word": own["words"][word], "pc1": x, "pc2": y}
            for name, own in drawn
            for word, x, y in own["states"]
        ],
    }


def _summary(group: list[Point]) -> dict:
    return each_over_seeds(group, _numbers) | {"seeds": len(group)}


def _places(name: dict, drawn: dict, part: str, entry: str) -> Iterator[dict]:
    """A row for each position or word of a side: where it lies in the space of its part, and of both."""
    columns = drawn[f"{entry}s"], drawn[part], drawn[f"{part}_together"]
    for what, own, together in zip(*columns, strict=True):
        places = {f"pc{i}": at for i, at in enumerate(own, 1)}
        yield name | {entry: what} | places | {f"together{i}": at for i, at in enumerate(together, 1)}


def _numbers(m: dict) -> dict:
    found = picked(m, SIDES, ("held_out", "fitted", "difference", "unseen"))
    for own in found.values():
        own["gain"] = own["held_out"]["additive"] - own["held_out"]["averages"]
        own["held_out"] = picked(own["held_out"], SHARES)
        own["difference"] = picked(own["difference"], ("temporal", "input", "fit"))
    return found | {"quality": picked(m["quality"], ("token_accuracy", "exact_match"))}
