"""The first paper's decomposition in Transformers: which terms form the attention of each head."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, get_args

import numpy as np

from attnlib.errors import BadInput, UnknownName
from attnlib.models.multi_head_attention import Positions
from companion.results.aggregate import Point, over_seeds
from companion.results.asks import Ask, answers, ask, specs_of
from companion.results.spearman import spearman_of_points
from companion.results.statistics import hierarchical_bootstrap
from companion.runs.recipe import RecipeSpec
from notebooks.beyond.transformer_heads.measure import (
    NUMBERS,
    READ,
    VARIANCE,
    measure_heads,
    measure_repeated,
)
from notebooks.shared.task_patterns import STATES

if TYPE_CHECKING:
    from companion.runs.store import Store


# Tables of the chapter on Transformers: a row a head, and means over heads with intervals over seeds.

NAMES = ("task", "positions", "seed")
SHARES = tuple(name for name in NUMBERS if name.endswith("_share"))


def head_table(points: list[Point], least_spread: float) -> list[dict]:
    """A row a head of every network and state, layers and heads counted from 1.

    Shares of a head whose scores vary less than ``least_spread`` are None, and ``varies`` is 0.
    """
    rows = []
    for name, measured in points:
        for state in STATES:
            for head in measured[state]["heads"]:
                varies = head["spread"] is not None and head["spread"] >= least_spread
                shares = {share: head[share] if varies else None for share in SHARES}
                counted = {place: head[place] + 1 for place in ("layer", "head")}
                rows.append(
                    _named(name) | {"state": state} | head | counted | shares | {"varies": int(varies)}
                )
    return rows


def layer_rows(heads: list[dict]) -> list[dict]:
    """A row a task, positions, kind of attention, layer, state and number: means over heads."""
    rows = []
    for group, own in _groups(heads, ("task", "positions", "kind", "layer", "state")):
        for number in NUMBERS:
            by_seed = [({}, {number: mean(members, number)}) for _, members in _groups(own, ("seed",))]
            interval = over_seeds(by_seed, lambda m, n=number: m[n])
            rows.append(group | {"layer": f"layer_{group['layer']}", "number": number} | interval)
    return rows


def network_rows(points: list[Point]) -> list[dict]:
    """What the networks can do, a row a task, positions and number."""
    of: dict[str, Callable[[dict], float]] = {
        "token_accuracy": lambda m: m["token_accuracy"][-1],
        "exact_match": lambda m: m["exact_match"],
        "parameters": lambda m: m["parameters"],
    }
    return [
        group | {"number": number} | over_seeds([(one["named"], one["measured"]) for one in own], value)
        for group, own in _groups(_flat(points), ("task", "positions"))
        for number, value in of.items()
    ]


def state_table(points: list[Point]) -> list[dict]:
    """Shares of the variance of states, a row a task, positions, site, state and share."""
    rows = [
        _named(name) | {"state": state} | row
        for name, measured in points
        for state in STATES
        for row in measured[state]["states"]
    ]
    return [
        group | {"number": share} | over_seeds([({}, row) for row in own], lambda row, s=share: row[s])
        for group, own in _groups(rows, ("task", "positions", "site", "state"))
        for share in VARIANCE
    ]


def term_table(points: list[Point]) -> list[dict]:
    """Covariance shares of the nine terms of the trained cross-attention, means over heads."""
    rows = [_named(name) | row for name, measured in points for row in measured["terms"]]
    found = []
    for group, own in _groups(rows, ("task", "positions", "layer", "term")):
        by_seed = [({}, mean(members, "share")) for _, members in _groups(own, ("seed",))]
        found.append(group | {"layer": group["layer"] + 1} | over_seeds(by_seed, lambda share: share))
    return found


def repeated_rows(points: list[Point]) -> list[dict]:
    """A row a network and reading, see :mod:`notebooks.beyond.transformer_heads.measure`."""
    return [
        {"positions": name["positions"], "seed": name["seed"], "read": read} | numbers
        for name, measured in points
        for read, numbers in measured.items()
    ]


def mean(rows: Iterable[dict], number: str) -> float | None:
    """Over the rows that have this number; None where none has."""
    found = [row[number] for row in rows if row[number] is not None]
    return float(np.mean(found)) if found else None


def _groups(rows: list[dict], names: tuple[str, ...]) -> list[tuple[dict, list[dict]]]:
    """Rows with the same values of these columns, in the order of their first appearance."""
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return [(dict(zip(names, key, strict=True)), own) for key, own in found.items()]


def _flat(points: list[Point]) -> list[dict]:
    return [_named(name) | {"named": name, "measured": measured} for name, measured in points]


def _named(name: dict[str, object]) -> dict[str, object]:
    return {column: name[column] for column in NAMES}


# From heads of single networks to the numbers that the predictions on Transformers are judged by.

BOOTSTRAP_SEED = 20_211_015  # any fixed number: the interval is then a function of the points
AGAINST = {  # name of a correlation with typicality → number of a head
    "temporal": "temporal_share",
    "input": "input_share",
    "mixed": "mixed_share",
    "residual": "residual_share",
    "temporal_rebuilds": "temporal_rebuilds",
    "input_rebuilds": "input_rebuilds",
}


def cross_heads(heads: list[dict], state: str = "trained") -> list[dict]:
    """The rows of cross-attention of networks in this state."""
    return [row for row in heads if row["kind"] == "cross" and row["state"] == state]


def correlations(heads: list[dict]) -> dict[str, dict]:
    """Rank correlations over heads of cross-attention: typicality with each number of :data:`AGAINST`.

    A head without shares counts nowhere, so that all are of the same heads.
    """
    rows = cross_heads(heads)
    return {name: _correlation(rows, number) for name, number in AGAINST.items()}


def _correlation(rows: list[dict], number: str) -> dict:
    """All heads of a network are drawn together: a network is a matrix (heads, 2), NaN where undefined."""
    groups: dict[tuple, dict[int, list]] = {}
    for row in rows:
        point = (row["typicality"], row[number])
        pair = (math.nan, math.nan) if None in point or not row["varies"] else point
        groups.setdefault((row["task"], row["positions"]), {}).setdefault(row["seed"], []).append(pair)
    networks = {str(name): list(own.values()) for name, own in groups.items()}
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


def last_less_first(heads: list[dict], number: str = "residual_share") -> dict:
    """Of the last layer less the first, mean over heads; then over a seed's networks; then over seeds."""
    rows = cross_heads(heads)
    ends = {
        place: pick((row["layer"] for row in rows), default=0)
        for place, pick in (("first", min), ("last", max))
    }

    def of_network(own: list[dict]) -> float | None:
        means = [mean([r for r in own if r["layer"] == ends[place]], number) for place in ("last", "first")]
        return _less(*means)

    def of_seed(own: list[dict]) -> float | None:
        networks = _split(own, lambda row: (row["task"], row["positions"]))
        found = [value for value in map(of_network, networks.values()) if value is not None]
        return float(np.mean(found)) if found else None

    return _over(rows, of_seed)


def one_to_one_less_reordering(heads: list[dict], number: str = "temporal_share") -> dict[str, dict]:
    """One task less the other, by kind of positions, of means over heads; and seed by seed the least."""
    rows = cross_heads(heads)
    kinds = list(dict.fromkeys(row["positions"] for row in rows))

    def differences(own: list[dict]) -> list[float | None]:
        return [
            _less(
                *(
                    mean(_where(own, task=task, positions=kind), number)
                    for task in ("one_to_one", "reordering")
                )
            )
            for kind in kinds
        ]

    def smallest(own: list[dict]) -> float | None:
        found = differences(own)
        return None if None in found or not found else min(found)

    by_kind = {kind: _over(rows, lambda own, i=i: differences(own)[i]) for i, kind in enumerate(kinds)}
    return by_kind | {"smallest": _over(rows, smallest)}


def sinusoidal_less(heads: list[dict], number: str = "temporal_share") -> dict[str, dict]:
    """In one-to-one translation, mean over heads and layers with sinusoidal positions less with others."""
    rows = _where(cross_heads(heads), task="one_to_one")
    kinds = [kind for kind in dict.fromkeys(row["positions"] for row in rows) if kind != "sinusoidal"]

    def of_seed(own: list[dict], kind: str) -> float | None:
        return _less(*(mean(_where(own, positions=one), number) for one in ("sinusoidal", kind)))

    return {kind: _over(rows, lambda own, k=kind: of_seed(own, k)) for kind in kinds}


def anchored_less_free(heads: list[dict], anchored: str, number: str = "temporal_share") -> dict[str, dict]:
    """With a word that always opens less without, word for word both: by kind of positions that has both."""
    rows = cross_heads(heads)

    def of_seed(own: list[dict], kind: str) -> float | None:
        tasks = (anchored, "one_to_one")
        return _less(*(mean(_where(own, task=task, positions=kind), number) for task in tasks))

    kinds = dict.fromkeys(row["positions"] for row in _where(rows, task=anchored))
    return {kind: _over(rows, lambda own, k=kind: of_seed(own, k)) for kind in kinds}


def repeated_values(rows: list[dict]) -> dict:
    """By kind of positions: at words read that the source has once, again, and their difference."""
    values: dict = {}
    for kind, own in _split(rows, lambda row: row["positions"]).items():

        def of_seed(members: list[dict], number: str, read: str) -> float | None:
            return mean(_where(members, read=read), number)

        def less(members: list[dict], number: str) -> float | None:
            return _less(*(of_seed(members, number, read) for read in READ))

        values[kind] = {
            read: {n: _over(own, lambda m, n=n, r=read: of_seed(m, n, r)) for n in ("attention", "accuracy")}
            for read in READ
        } | {"once_less_again": {n: _over(own, lambda m, n=n: less(m, n)) for n in ("attention", "accuracy")}}
    return values


def nested(rows: list[dict], names: tuple[str, ...]) -> dict:
    """Rows of intervals, each of one ``number``, as ``{…: {…: {number: interval}}}``."""
    found: dict = {}
    for row in rows:
        place = found
        for name in names:
            place = place.setdefault(str(row[name]), {})
        place[row["number"]] = {key: row[key] for key in ("value", "low", "high", "n")}
    return found


def _over(rows: list[dict], of_seed: Callable[[list[dict]], float | None]) -> dict:
    return over_seeds([({}, own) for own in _split(rows, lambda row: row["seed"]).values()], of_seed)


def _split(rows: list[dict], by: Callable[[dict], object]) -> dict[object, list[dict]]:
    found: dict[object, list[dict]] = {}
    for row in rows:
        found.setdefault(by(row), []).append(row)
    return found


def _where(rows: list[dict], **columns: str) -> list[dict]:
    return [row for row in rows if all(row[name] == value for name, value in columns.items())]


def _less(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first - second


PLACE = "Part IV, “Transformers”; after Aitken et al. 2021, contributions 1 and 2"
QUESTION = "Do temporal terms form typical attention in a Transformer too, and in which layers?"
TASKS = ("one_to_one", "reordering", "scan", "lexicon_translation")
ANCHORED = "in_order"  # the reordering family without reordering: word for word, after a word that opens


@dataclass(frozen=True)
class Config:
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

    task: tuple[str, ...] = ("one_to_one", "reordering")
    positions: tuple[str, ...] = ("sinusoidal", "relative", "rotary")
    anchored: tuple[str, ...] = ()
    seeds: int = 3
    words: int = 8
    shortest: int = 4
    longest: int = 7
    reordered: float = 0.5
    fewest_phrases: int = 2
    most_phrases: int = 3
    n_train: int = 4_000
    judged: int = 128
    fit_samples: int = 600
    width: int = 32
    heads: int = 2
    layers: int = 2
    steps: int = 200
    learning_rate: float = 1.2e-2
    warmup: int = 40
    looks: int = 2
    least_spread: float = 0.05

    def __post_init__(self) -> None:
        for field, known in (
            ("task", TASKS),
            ("positions", get_args(Positions)),
            ("anchored", get_args(Positions)),
        ):
            for name in getattr(self, field):
                if name not in known:
                    raise UnknownName(field, name, known)
        for name in ("seeds", "n_train", "judged", "fit_samples"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.least_spread >= 0:
            raise BadInput(f"least_spread is {self.least_spread}; it must be 0 or more")
        models(self)  # what a network or its training cannot be, the recipes say


def _options(config: Config, task: str) -> dict[str, object]:
    """Those of the task; SCAN holds out a share of its commands and is otherwise as it is."""
    sizes = {"n_train": config.n_train, "n_held_out": config.judged}
    phrases = {"min_phrases": config.fewest_phrases, "max_phrases": config.most_phrases}
    own = {
        "one_to_one": {
            "n_words": config.words,
            "min_length": config.shortest,
            "max_length": config.longest,
        }
        | sizes,
        "reordering": {"p": config.reordered} | phrases | sizes,
        ANCHORED: {"p": 0.0} | phrases | sizes,
        "scan": {"n_train": config.n_train},
        "lexicon_translation": sizes,
    }
    return own[task]


def _kinds(config: Config) -> tuple[tuple[str, str], ...]:
    """Tasks with their kinds of positions, the control last."""
    return (*product(config.task, config.positions), *((ANCHORED, kind) for kind in config.anchored))


def specs(config: Config, task: str, positions: str) -> Iterator[RecipeSpec]:
    shape = ("width", "heads", "layers", "steps", "learning_rate", "warmup", "looks", "judged")
    for seed in range(config.seeds):
        yield RecipeSpec.of(
            "transformer_sequences",
            task="reordering" if task == ANCHORED else task,
            options=tuple(_options(config, task).items()),
            positions=positions,
            seed=seed,
            **{name: getattr(config, name) for name in shape},
        )


def _heads(config: Config, task: str, positions: str) -> tuple[Ask, ...]:
    return ask(specs(config, task, positions), measure_heads, fit_samples=config.fit_samples)


def _repeated(config: Config) -> tuple[Ask, ...]:
    kinds = config.positions if "one_to_one" in config.task else ()
    return tuple(a for kind in kinds for a in ask(specs(config, "one_to_one", kind), measure_repeated))


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks: the terms of all heads of every network, and where one-to-one translation looks."""
    return (*(a for kind in _kinds(config) for a in _heads(config, *kind)), *_repeated(config))


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The networks that the experiment needs, each once."""
    return specs_of(asks(config))


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


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Shares of the terms by kind of attention, layer, task and positions; the predictions; two controls.

    Returns:
        values ``correlation.{temporal, input, …}``: rank correlation, over all heads of the trained networks'
        cross-attention, of typicality and that share, with an interval from resampling tasks × positions and
        then seeds; beside it ``heads`` and ``left_out`` (whose scores hardly vary).
        ``residual.last_less_first``, ``one_to_one_less_reordering.{<positions>, smallest}`` and
        ``sinusoidal_less.<positions>``: paired differences of cross-attention, intervals over seeds.
        The controls: ``anchored_less_free.<positions>`` (temporal share of cross-attention in
        :data:`ANCHORED` less that in one-to-one translation) and ``repeated.<positions>.{once, again,
        once_less_again}.{attention, accuracy}``, see
        :func:`~notebooks.beyond.transformer_heads.measure.measure_repeated`.
        ``networks.<task>.<positions>.{token_accuracy, exact_match, parameters}``,
        ``layers.<task>.<positions>.<kind>.layer_<n>.<state>.<number>`` of
        :data:`~notebooks.beyond.transformer_heads.measure.NUMBERS`, means over heads,
        ``states.<task>.<positions>.<site>.<state>.<share>``; intervals over seeds. Tables ``heads`` (a row
        a head), ``layers``, ``networks``, ``states``, ``terms`` (of cross-attention), ``repeated``.
    """
    points = [
        (name | {"task": task}, measured)
        for task, positions in _kinds(config)
        for name, measured in answers(_heads(config, task, positions), store)
    ]
    heads = head_table(points, config.least_spread)
    repeated = repeated_rows(answers(_repeated(config), store))
    tables = {
        "heads": heads,
        "layers": layer_rows(heads),
        "networks": network_rows(points),
        "states": state_table(points),
        "terms": term_table(points),
        "repeated": repeated,
    }
    judged = [row for row in heads if row["task"] != ANCHORED]
    values = {
        "correlation": correlations(judged),
        "residual": {"last_less_first": last_less_first(judged)},
        "one_to_one_less_reordering": one_to_one_less_reordering(judged),
        "sinusoidal_less": sinusoidal_less(judged),
        "anchored_less_free": anchored_less_free(heads, ANCHORED),
        "repeated": repeated_values(repeated),
        "networks": nested(tables["networks"], ("task", "positions")),
        "layers": nested(tables["layers"], ("task", "positions", "kind", "layer", "state")),
        "states": nested(tables["states"], ("task", "positions", "site", "state")),
    }
    return values, tables
