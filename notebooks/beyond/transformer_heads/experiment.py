"""The first paper's decomposition in Transformers: which terms form the attention of each head."""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Annotated

import numpy as np

from attnlib.models.transformer import Positions
from companion.results.config import BaseConfig, Field, OneOf, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.beyond.transformer_heads.measure import (
    NUMBERS,
    READ,
    VARIANCE,
    measure_heads,
    measure_repeated,
)
from notebooks.shared.intervals import Point, hierarchical_bootstrap, over_seeds
from notebooks.shared.spearman import spearman_of_points
from notebooks.shared.summaries import less, rows_of, summarised
from notebooks.shared.task_patterns import STATES

NAMES = ("task", "positions", "seed")
SHARES = tuple(name for name in NUMBERS if name.endswith("_share"))
ANCHORED = "in_order"  # the reordering family without reordering: word for word, after a word that opens
PARTS = {  # of the values → columns of the table
    "layers": ("kind", "layer", "state", "number"),
    "networks": ("number",),
    "states": ("site", "state", "number"),
    "terms": ("layer", "term"),
}


def head_rows(measured: dict, least_spread: float) -> list[dict]:
    """A row a head of one network in either state, layers and heads counted from 1."""
    rows = []
    for state in STATES:
        for head in measured[state]["heads"]:
            varies = head["spread"] is not None and head["spread"] >= least_spread
            shares = {share: head[share] if varies else None for share in SHARES}
            counted = {place: head[place] + 1 for place in ("layer", "head")}
            rows.append({"state": state} | head | counted | shares | {"varies": int(varies)})
    return rows


def numbers_of(measured: dict, least_spread: float) -> dict[str, dict]:
    """The numbers of one network by :data:`PARTS`: means over the heads of a layer, and what it can do."""
    layers: dict = {}
    for (kind, layer, state), own in _split(head_rows(measured, least_spread), *PARTS["layers"][:3]).items():
        means = {number: mean(row[number] for row in own) for number in NUMBERS}
        layers.setdefault(kind, {}).setdefault(f"layer_{layer}", {})[state] = means
    states: dict = {}
    for state in STATES:
        for row in measured[state]["states"]:
            states.setdefault(row["site"], {})[state] = {share: row[share] for share in VARIANCE}
    terms: dict = {}
    for (layer, term), own in _split(measured["terms"], *PARTS["terms"]).items():
        terms.setdefault(layer + 1, {})[term] = mean(row["share"] for row in own)
    able = {"token_accuracy": measured["token_accuracy"][-1]}
    able |= {number: measured[number] for number in ("exact_match", "parameters")}
    return {"layers": layers, "networks": able, "states": states, "terms": terms}


def mean(numbers: Iterable[float | None]) -> float | None:
    """Of those that are defined; None where none is."""
    found = [number for number in numbers if number is not None]
    return float(np.mean(found)) if found else None


def _split(rows: list[dict], *names: str) -> dict[tuple, list[dict]]:
    """Rows by their values of these columns, in the order of their first appearance."""
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def _over(rows: list[dict], of_seed: Callable[[list[dict]], float | None]) -> dict:
    return over_seeds([({}, own) for own in _split(rows, "seed").values()], of_seed)


# From heads of single networks to the numbers that the predictions on Transformers are judged by.

BOOTSTRAP_SEED = 20_211_015  # any fixed number: the interval is then a function of the points
AGAINST = (*SHARES[:4], "temporal_rebuilds", "input_rebuilds")  # typicality, for rank correlations


def cross_heads(heads: list[dict]) -> list[dict]:
    return _where(heads, kind="cross", state="trained")


def correlations(heads: list[dict]) -> dict[str, dict]:
    """Rank correlations over heads of cross-attention: typicality with each number of :data:`AGAINST`."""
    rows = cross_heads(heads)
    return {number.removesuffix("_share"): _correlation(rows, number) for number in AGAINST}


def _correlation(rows: list[dict], number: str) -> dict:
    """All heads of a network are drawn together: a network is a matrix (heads, 2), NaN where undefined."""
    networks: dict[str, list[list]] = {}
    for (task, positions, _), own in _split(rows, *NAMES).items():
        points = [(row["typicality"], row[number]) if row["varies"] else (None, None) for row in own]
        pairs = [(math.nan, math.nan) if None in point else point for point in points]
        networks.setdefault(str((task, positions)), []).append(pairs)
    defined = sum(not math.isnan(pair[0]) for own in networks.values() for net in own for pair in net)
    counted = {"heads": defined, "left_out": len(rows) - defined}
    if defined < 3:
        return {"value": None, "low": None, "high": None, "n": defined} | counted
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    found = hierarchical_bootstrap(networks, generator, statistic=_spearman_of_networks).as_dict()
    return {key: None if math.isnan(value) else value for key, value in found.items()} | counted


def _spearman_of_networks(networks: np.ndarray) -> float:
    points = networks.reshape(-1, 2)
    points = points[~np.isnan(points).any(1)]
    return spearman_of_points(points) if len(points) > 1 else math.nan


def _where(rows: list[dict], **columns: object) -> list[dict]:
    return [row for row in rows if all(row[name] == value for name, value in columns.items())]


def _less(rows: list[dict], number: str, first: dict, second: dict) -> float | None:
    """Mean number of the rows with the first's values of columns, less that of those with the second's."""
    one, two = (mean(row[number] for row in _where(rows, **chosen)) for chosen in (first, second))
    return None if one is None or two is None else one - two


def last_less_first(heads: list[dict]) -> dict:
    """Residual share of the last layer less the first: over heads, then a seed's networks, then seeds."""
    rows = cross_heads(heads)
    last, first = ({"layer": pick((row["layer"] for row in rows), default=0)} for pick in (max, min))

    def of_seed(own: list[dict]) -> float | None:
        networks = _split(own, "task", "positions").values()
        return mean(_less(network, "residual_share", last, first) for network in networks)

    return _over(rows, of_seed)


def differences(heads: list[dict]) -> dict[str, dict]:
    """Temporal share of cross-attention by kind of positions: of one task or kind less another's, over seeds.

    ``smallest``: seed by seed the least.
    """
    rows = cross_heads(heads)
    kinds, anchored = (
        [kind for (kind,) in _split(own, "positions")] for own in (rows, _where(rows, task=ANCHORED))
    )

    def of(task: str, kind: str) -> dict[str, str]:
        return {"task": task, "positions": kind}

    tasks = {kind: (of("one_to_one", kind), of("reordering", kind)) for kind in kinds}
    pairs = {
        "one_to_one_less_reordering": tasks,
        "sinusoidal_less": {
            kind: (of("one_to_one", "sinusoidal"), of("one_to_one", kind))
            for kind in kinds
            if kind != "sinusoidal"
        },
        "anchored_less_free": {kind: (of(ANCHORED, kind), of("one_to_one", kind)) for kind in anchored},
    }
    found = {
        name: {kind: _over(rows, lambda m, p=p: _less(m, "temporal_share", *p)) for kind, p in own.items()}
        for name, own in pairs.items()
    }

    def smallest(own: list[dict]) -> float | None:
        every = [_less(own, "temporal_share", *pair) for pair in tasks.values()]
        return None if None in every else min(every, default=None)

    found["one_to_one_less_reordering"]["smallest"] = _over(rows, smallest)
    return found


def repeated_values(points: list[Point]) -> dict:
    """By kind of positions: at words read that the source has once, again, and their difference."""

    def numbers(measured: dict) -> dict:
        own = {read: {name: measured[read][name] for name in ("attention", "accuracy")} for read in READ}
        return own | {"once_less_again": less(own["once"], own["again"])}

    kinds = dict.fromkeys(name["positions"] for name, _ in points)
    of_kinds = {(kind,): [point for point in points if point[0]["positions"] == kind] for kind in kinds}
    return summarised(of_kinds, numbers)


PLACE = "Part IV, “Transformers”; after Aitken et al. 2021, contributions 1 and 2"
QUESTION = "Do temporal terms form typical attention in a Transformer too, and in which layers?"
TASKS = ("one_to_one", "reordering", "scan", "lexicon_translation")


class Config(BaseConfig):
    """Settings; a network is a task × kind of positions × seed. Neither paper gives any.

    Attributes:
        task: one_to_one, reordering, scan, lexicon_translation.
        positions: sinusoidal, learned, relative, rotary, none.
        anchored: kinds of positions for the control with an opening word. It is the reordering family without
            reordering: word for word like one-to-one translation, but its first word is always one of two
            that are nowhere else. No prediction is judged by it. None at quick, to save its training.
        seeds: networks of each kind.
        words: size of the vocabulary of one-to-one translation.
        shortest: fewest words of its sentences; longest: most words of its sentences.
        reordered: share of sentences that may be reordered, in the reordering family.
        fewest_phrases: fewest phrases of its sentences, which have twice as many words and one more.
        most_phrases: most phrases of its sentences.
        n_train: sentences to train on; judged: held-out sentences.
        fit_samples: training sentences, at most, that components are fitted on.
        width: of the states; heads: of every attention; layers: of encoder and of decoder.
        steps: updates in training. The quick profile's learning rate is high so that 200 are enough for
            relative and rotary positions, which learn slowest.
        learning_rate: of Adam; warmup: updates over which it rises; looks: evaluations during training.
        least_spread: smallest standard deviation of a head's scores along their rows for it to have shares.
            Below a twentieth attention is within about 5 % of even, and terms add up to next to nothing.
    """

    task: tuple[Annotated[str, OneOf(TASKS)], ...] = ("one_to_one", "reordering")
    positions: tuple[Positions, ...] = ("sinusoidal", "relative", "rotary")
    anchored: tuple[Positions, ...] = ()
    seeds: Positive = 3
    words: int = 8
    shortest: int = 4
    longest: int = 7
    reordered: float = 0.5
    fewest_phrases: int = 2
    most_phrases: int = 3
    n_train: Positive = 4_000
    judged: Positive = 128
    fit_samples: Positive = 600
    width: int = 32
    heads: int = 2
    layers: int = 2
    steps: int = 200
    learning_rate: float = 1.2e-2
    warmup: int = 40
    looks: int = 2
    least_spread: Annotated[float, Field(ge=0)] = 0.05

    def check(self) -> None:
        measurements(self)  # what a network or its training cannot be, the procedures say


def _options(config: Config, task: str) -> dict[str, object]:
    """Those of the task; SCAN holds out a share of its commands and is otherwise as it is."""
    sizes = {"n_train": config.n_train, "n_held_out": config.judged}
    phrases = {"min_phrases": config.fewest_phrases, "max_phrases": config.most_phrases}
    lengths = {"min_length": config.shortest, "max_length": config.longest}
    own = {
        "one_to_one": {"n_words": config.words} | lengths | sizes,
        "reordering": {"p": config.reordered} | phrases | sizes,
        ANCHORED: {"p": 0.0} | phrases | sizes,
        "scan": {"n_train": config.n_train},
        "lexicon_translation": sizes,
    }
    return own[task]


def _kinds(config: Config) -> tuple[tuple[str, str], ...]:
    return (*product(config.task, config.positions), *((ANCHORED, kind) for kind in config.anchored))


def specs(config: Config, task: str, positions: str) -> Iterator[RunSpec]:
    shape = ("width", "heads", "layers", "steps", "learning_rate", "warmup", "looks", "judged")
    for seed in range(config.seeds):
        yield RunSpec.of(
            "transformer_sequences",
            task="reordering" if task == ANCHORED else task,
            options=tuple(_options(config, task).items()),
            positions=positions,
            seed=seed,
            **{name: getattr(config, name) for name in shape},
        )


def _heads(config: Config, task: str, positions: str) -> tuple[Measurement, ...]:
    return measurements_of(specs(config, task, positions), measure_heads, fit_samples=config.fit_samples)


def _repeated(config: Config) -> tuple[Measurement, ...]:
    kinds = config.positions if "one_to_one" in config.task else ()
    return tuple(
        a for kind in kinds for a in measurements_of(specs(config, "one_to_one", kind), measure_repeated)
    )


def measurements(config: Config) -> tuple[Measurement, ...]:
    return (*(a for kind in _kinds(config) for a in _heads(config, *kind)), *_repeated(config))


PROFILES = {
    "quick": Config(),
    "paper": Config(
        task=TASKS,
        positions=("sinusoidal", "learned", "relative", "rotary"),
        anchored=("relative", "rotary"),
        seeds=5,
        longest=10,
        shortest=6,
        fewest_phrases=3,
        most_phrases=5,
        n_train=10_000,
        judged=1_000,
        fit_samples=10_000,
        width=128,
        heads=4,
        layers=3,
        steps=2_000,
        learning_rate=1e-3,
        warmup=200,
        looks=10,
    ),
}


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Shares of the terms by kind of attention, layer, task and positions; the predictions; two controls.

    Rank correlations are over all heads of the trained networks' cross-attention, with intervals from
    resampling tasks × positions and then seeds; the anchored control is in none of them.
    """
    points = [
        (name | {"task": task}, measured)
        for task, positions in _kinds(config)
        for name, measured in answers(_heads(config, task, positions), store)
    ]
    heads = [
        {column: name[column] for column in NAMES} | row
        for name, measured in points
        for row in head_rows(measured, config.least_spread)
    ]
    again = answers(_repeated(config), store)
    tables = {
        "heads": heads,
        "repeated": [
            {"positions": name["positions"], "seed": name["seed"], "read": read} | numbers
            for name, measured in again
            for read, numbers in measured.items()
        ],
    }
    kinds = {
        kind: [p for p in points if (p[0]["task"], p[0]["positions"]) == kind] for kind in _kinds(config)
    }
    parts = {
        part: summarised(kinds, lambda m, p=part: numbers_of(m, config.least_spread)[p]) for part in PARTS
    }
    tables |= {part: rows_of(parts[part], *NAMES[:2], *columns) for part, columns in PARTS.items()}
    judged = [row for row in heads if row["task"] != ANCHORED]
    values = {
        "correlation": correlations(judged),
        "residual": {"last_less_first": last_less_first(judged)},
        **differences(heads),
        "repeated": repeated_values(again),
        "networks": parts["networks"],
        "layers": parts["layers"],
        "states": parts["states"],
    }
    return values, tables
