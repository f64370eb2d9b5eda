"""State components: how much of the states position and word explain, and what they look like."""

from collections.abc import Callable, Iterable
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
from companion.results.config import Positive, Task, setting
from companion.results.frames import Table, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column, Columns, share
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.store import Store, TrainedModel
from companion.runs.suite import task_name_of
from notebooks.shared.measure import Fitted, fit_components
from notebooks.shared.suite import (
    BY_KIND,
    PAPER_TASKS,
    QUALITY,
    SUITE,
    SuiteConfig,
    each_planned,
    model_specs,
    suite_frame,
)
from notebooks.shared.summaries import rows_of, summarise

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
    numbers: dict = {"quality": trained.history["held_out"], "fitted_on": fitted.samples}
    for side, components in sides.items():
        shares = components.variance_explained()
        numbers[side] = {
            "held_out": held_out[side].result(),
            "fitted": {
                name: getattr(shares, name)
                for name in ("temporal", "additive", "temporal_unique", "input_unique")
            },
            "difference": difference(components),
            "unseen": unseen[side] / valid[side],
        }
    if trained.spec.seed == 0:
        numbers["pictures"] = pictures(trained, fitted)
    return numbers


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
    pictured: dict = {"explained": {name: _short(space.explained) for name, space in spaces.items()}}
    vocabularies = {"encoder": trained.task.source_vocabulary, "decoder": trained.task.target_vocabulary}
    sample = trained.task.held_out.subset(np.arange(min(SENTENCES, len(trained.task.held_out))))
    (trace,) = traces(trained.model, sample, batch_size=SENTENCES)
    for side, parts in drawn.items():
        often = torch.nonzero(parts.position_counts >= RARE)[:, 0]
        words = torch.argsort(parts.token_counts, descending=True, stable=True)[:WORDS]
        words = words[parts.token_counts[words] > 0]
        temporal, inputs = parts.temporal[often], parts.input[words]
        states = _around_words(parts, words, *_read(trace)[side])
        pictured[side] = {
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
    return pictured


def _shown(vocabulary: Vocabulary, words: torch.Tensor) -> list[str]:
    return vocabulary.decode(words.tolist())


def _around_words(parts: Drawn, words: torch.Tensor, states, tokens, mask) -> list[tuple[int, torch.Tensor]]:
    """A few held-out states of each word, less mean and temporal component: what chi is the average of."""
    rest = states.double() - (parts.mean + parts.temporal)[: states.shape[1]]
    around = []
    for index, word in enumerate(words.tolist()):
        rows = rest[mask & (tokens == word)]
        # evenly through the sample: neighbours come from one sentence
        chosen = torch.linspace(0, max(len(rows) - 1, 0), min(POINTS, len(rows))).round().long()
        around.append((index, rows[chosen]))
    return around


def _short(table: torch.Tensor) -> list:
    return np.round(table.cpu().double().numpy(), DIGITS).tolist()


QUICK_TASKS = ("one_to_one", "reordering_50", "scan")


class Config(SuiteConfig):
    """Settings of the task suite, on fewer tasks and with VED beside the others."""

    task: tuple[Task, ...] = QUICK_TASKS
    architecture: tuple[Architecture, ...] = setting(
        ("VED", "AED", "AO"), "VED, recurrent without attention, AED with it, AO, attention only"
    )
    cell: tuple[Cell, ...] = setting(
        ("gru",), "recurrence of VED and AED: gru, lstm, vanilla, ugrnn. AO has none"
    )
    ved_task: tuple[Task, ...] = setting(
        QUICK_TASKS, "tasks on which VED is trained. On long sentences it learns little"
    )
    ved_steps: Positive | None = setting(
        None, "updates of further VEDs on one-to-one: does it lack training, or room? None: no such networks"
    )
    ved_seeds: Positive | None = setting(None, "how many; as many as there are of the others when None")

    def check(self) -> None:
        super().check()
        if not any(_has_model(self, *pair) for pair in product(self.task, self.architecture)):
            raise BadInput("no model is left: VED is trained on the tasks of ved_task alone, task has none")


def _has_model(config: Config, task_name: str, architecture: str) -> bool:
    return architecture != "VED" or task_name in config.ved_task


# VED learns next to nothing of the other quick tasks in so few updates.
PROFILES = {
    "quick": Config(ved_task=("one_to_one",)),
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


SIDE = {"side": Column("encoder or decoder")}
PREDICTIONS = {
    "temporal": "the mean state of the position",
    "input": "the mean state of the word",
    "additive": "position plus word, by least squares",
    "averages": "position plus word, by averages",
    "temporal_unique": "additive minus input: what position explains beyond the word",
    "input_unique": "additive minus temporal: what the word explains beyond position",
}
FITTED = ("temporal", "additive", "temporal_unique", "input_unique")
DIFFERENCE = {
    "fit": Column("root mean square of averages minus least squares, over the states' standard deviation"),
    "input": Column("the same of input components"),
    "temporal": Column("the same of temporal components"),
}
BY_SIDE = {
    **{
        f"held_out.{name}": Column(f"variance of held-out states that this explains: {predicted_by}", high=1)
        for name, predicted_by in PREDICTIONS.items()
    },
    **{
        f"fitted.{name}": Column(f"the same of the states that are fitted: {PREDICTIONS[name]}", high=1)
        for name in FITTED
    },
    **{f"difference.{name}": column for name, column in DIFFERENCE.items()},
    "unseen": share("tokens of held-out samples that are not in those that are fitted"),
    "gain": Column("held-out variance explained by least squares (additive), minus by averages"),
}
VARIANCE = {
    "share": Column("what explains the variance", categories=PREDICTIONS),
    "r_squared": Column("variance of held-out states that it explains", high=1),
}
SPACES = {
    "temporal": "leading axes of temporal components, both sides together",
    "input": "leading axes of input components, both sides together",
    "together": "leading axes of both",
}
AXIS = {
    "space": Column("leading principal axes, of what", categories=SPACES),
    "axis": Column("number of the axis, from 0"),
    "share": share("variance of these components along the axis"),
}
PLACE = {
    **{f"pc{axis}": Column(f"coordinate on axis {axis} of the part's own space") for axis in (1, 2, 3)},
    **{f"together{axis}": Column(f"coordinate on axis {axis} of both parts' space") for axis in (1, 2, 3)},
}
POSITION = SIDE | {"position": Column("position of the temporal component, from 0")} | PLACE
WORD = SIDE | {"word": Column("word of the input component")} | PLACE
STATE = SIDE | {
    "word": Column("word at the position of the state"),
    "pc1": Column("coordinate of the state without its temporal component, on axis 1 of input components"),
    "pc2": Column("the same on axis 2"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return tables of the suite's networks; ``longer_…`` are of those trained for ``ved_steps`` updates."""

    def drawn(records: Callable[[dict], object], columns: Columns, row: str) -> Table:
        return suite_frame(_of_the_suite(config), store, records=records, columns=columns, row=row)

    planned = _by_kind(_of_the_suite(config), store)
    longer = _by_kind(_trained_longer(config), store)
    difference = {f"difference.{name}": name for name in DIFFERENCE}
    return {
        "variance": drawn(_variance, SIDE | VARIANCE, "a prediction of a network's states"),
        "difference": planned["sides"].select(*SUITE, *SIDE, *difference).rename(**difference),
        "explained": drawn(_explained, AXIS, "an axis of a network's components"),
        "temporal": drawn(_temporal, POSITION, "a position of a network"),
        "input": drawn(_input, WORD, "a word of a network"),
        "states": drawn(_states, STATE, "a held-out state of a network"),
        **planned,
        **{f"longer_{name}": table for name, table in longer.items()},
    }


def _by_kind(asked: Iterable[Measurement], store: Store) -> dict[str, Table]:
    sides = suite_frame(
        asked, store, records=_sides, columns=SIDE | BY_SIDE, row="encoder or decoder of a network"
    )
    networks = suite_frame(asked, store, records=_quality, columns=QUALITY)
    return {
        "sides": sides,
        "networks": networks,
        "sides_by_kind": summarise(sides, [*BY_KIND, *SIDE], BY_SIDE),
        "quality": summarise(networks, BY_KIND, ["token_accuracy", "exact_match"]),
    }


def _quality(m: dict) -> dict:
    return m["quality"]


def _sides(m: dict) -> list[dict]:
    rows = []
    for side in SIDES:
        held_out = m[side]["held_out"]
        rows.append({"side": side, **m[side], "gain": held_out["additive"] - held_out["averages"]})
    return rows


def _variance(m: dict) -> list[dict]:
    return [
        {"side": side, "share": name, "r_squared": m[side]["held_out"][name]}
        for side in SIDES
        for name in PREDICTIONS
    ]


def _explained(m: dict) -> list[dict]:
    if "pictures" not in m:
        return []
    return rows_of(m["pictures"]["explained"], "space", "axis", "share")


def _temporal(m: dict) -> list[dict]:
    return _places(m, "temporal", "position")


def _input(m: dict) -> list[dict]:
    return _places(m, "input", "word")


def _places(m: dict, part: str, entry: str) -> list[dict]:
    """Return a row for each position or word: where it lies in the space of its part, and of both parts."""
    rows = []
    for side in SIDES if "pictures" in m else ():
        picture = m["pictures"][side]
        entries = zip(picture[f"{entry}s"], picture[part], picture[f"{part}_together"], strict=True)
        for name, in_own_space, in_both in entries:
            coordinates = {f"pc{axis}": coordinate for axis, coordinate in enumerate(in_own_space, 1)}
            coordinates |= {f"together{axis}": coordinate for axis, coordinate in enumerate(in_both, 1)}
            rows.append({"side": side, entry: name, **coordinates})
    return rows


def _states(m: dict) -> list[dict]:
    if "pictures" not in m:
        return []
    return [
        {"side": side, "word": m["pictures"][side]["words"][word], "pc1": first, "pc2": second}
        for side in SIDES
        for word, first, second in m["pictures"][side]["states"]
    ]


def values(config: Config, tables: dict[str, Table]) -> dict:
    return view(
        _keyed_kinds(tables["sides_by_kind"], tables["quality"], "{task}.{kind}."),
        _keyed_kinds(tables["longer_sides_by_kind"], tables["longer_quality"], "longer.{task}.{kind}."),
    )


def _keyed_kinds(sides: Table, quality: Table, kind: str) -> dict[str, object]:
    """Return the numbers of each kind of network, by keys that begin with the template `kind`."""
    seeds = quality.query("quantity == 'token_accuracy'").rename(n="seeds")
    return {
        **keyed(sides, kind + "{side}.{quantity}"),
        **keyed(quality, kind + "quality.{quantity}"),
        **keyed(seeds, kind + "{column}", ["seeds"]),
    }
