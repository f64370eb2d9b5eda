"""Scoring functions, directions of the encoder and decoders: what each costs, learns, and how fast."""

from itertools import product
from typing import TYPE_CHECKING

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.measures.learning_curve import measure_learning_curve
from attnlib.experiments.measures.scoring_functions import (
    OFFSETS,
    READABLE,
    measure_asking_state,
    measure_context_of_states,
    measure_cost,
)
from attnlib.experiments.measures.written_bleu import measure_bleu
from attnlib.experiments.paired import paired
from attnlib.experiments.scoring_settings import (
    BEFORE,
    DIRECTIONS,
    PROFILES,
    Config,
    Kind,
    comparisons,
    grid,
    specs_of_kind,
    specs_of_name,
)
from attnlib.experiments.scoring_summary import curve_rows, effect, late_rise, summary
from attnlib.models.sequence_config import NAMED
from attnlib.recipes.recipe import RecipeSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

__all__ = ["PLACE", "PROFILES", "QUESTION", "Config", "asks", "compute", "models"]

PLACE = "Primer 2, “Alignment Function Types” and “Attention in Different RNN Variants”"
QUESTION = "Which score, which encoder and which decoder, and what does each cost?"
GAINS = {"bahdanau_over_cho": ("bahdanau", "cho"), "luong_over_sutskever": ("luong", "sutskever")}
ASKERS = ("luong", BEFORE, "bahdanau")


def _networks(config: Config) -> dict[Kind | str, tuple[RecipeSpec, ...]]:
    """Every network by its kind in the grid, or by its name on captions."""
    by_kind = {kind: specs_of_kind(config, kind) for kind in grid(config)}
    return by_kind | {name: specs_of_name(config, name) for name in NAMED if name in config.named}


def _asked_kinds(config: Config) -> tuple[Kind, ...]:
    """Those of which it is measured which state asks: one direction, and the scores in ``asked``."""
    every = (Kind(task, own, 1, score) for task, score, own in product(config.task, config.asked, ASKERS))
    return tuple(kind for kind in every if kind in grid(config))


def _probed_kinds(config: Config) -> tuple[Kind, ...]:
    """Those whose encoder states are read: Bahdanau's, and the same with the other encoder."""
    tasks = [task for task in config.task if config.longest >= READABLE[task]]
    every = (Kind(task, "bahdanau", d, "additive") for task, d in product(tasks, config.directions))
    return tuple(kind for kind in every if kind in grid(config))


def _context(config: Config, kind: Kind) -> tuple[Ask, ...]:
    settings = {"size": config.longest, "samples": config.samples}
    return ask(specs_of_kind(config, kind), measure_context_of_states, **settings)


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks: of each network how it learned, of some what they cost, ask with, know and write."""
    networks = _networks(config)
    return (
        *(asked for specs in networks.values() for asked in ask(specs, measure_learning_curve)),
        *ask((specs[0] for specs in networks.values()), measure_cost),
        *(a for k in _asked_kinds(config) for a in ask(networks[k], measure_asking_state)),
        *(asked for kind in _probed_kinds(config) for asked in _context(config, kind)),
        *(a for name in config.named for a in ask(networks[name], measure_bleu)),
    )


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The networks that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """What every network of the grid costs and reaches, and by how much kinds differ.

    Returns:
        values, by task of the grid:

        * ``<decoder>.<one | two>.<scoring>``: ``token_accuracy`` (teacher-forced, in the end),
          ``exact_match``, ``updates`` (to the threshold; all of them where it is never reached), ``reached``
          (networks), and the cost, see :func:`measure_cost`;
        * ``effects.<name>``, the first three: of what :func:`comparisons` holds against each other, means
          over all else, seed by seed;
        * ``who_asks.<scoring>.<decoder>``: see :func:`measure_asking_state`;
        * ``context.<one | two>``: bits of the word ``before``, of the word itself (``own``) and of the word
          ``after`` in an encoder state of Bahdanau's network.

        And ``translation``: of each name on captions the same as of a kind, with ``bleu``, ``bleu_of_each``
        (network, by seed) and ``late_rise``, see :func:`late_rise`; ``gains``, by how much attention helps;
        ``signature`` and ``sentences`` of BLEU. Intervals are over seeds. Tables
        ``grid``, ``costs``, ``curves``, ``context``, ``translation``, ``translation_curves``.
    """
    networks = _networks(config)
    measured = {
        kind: points
        for kind, specs in networks.items()
        if (points := answers(ask(specs, measure_learning_curve), store))
    }
    costs = {
        kind: found[0][1]
        for kind in measured
        if (found := answers(ask(networks[kind][:1], measure_cost), store))
    }
    values: dict = {}
    tables: dict[str, list[dict]] = {name: [] for name in ("grid", "costs", "curves", "context")}
    for kind in grid(config):
        if kind not in measured:
            continue
        found, cost = summary(measured[kind], config.threshold), costs.get(kind, {})
        own = values.setdefault(kind.task, {}).setdefault(kind.decoder, {})
        own.setdefault(DIRECTIONS[kind.directions], {})[kind.scoring] = found | cost
        name = kind.columns
        tables["grid"] += _rows(name, found)
        tables["costs"] += [name | cost] if cost else []
        tables["curves"] += [name | row for row in curve_rows(measured[kind])]
    for task in config.task if values else ():
        pairs = comparisons(config, task)
        effects = {name: effect(measured, own, config.threshold) for name, own in pairs.items()}
        context, rows = _context_of_states(config, task, store)
        found = {"effects": effects, "who_asks": _who_asks(config, task, store), "context": context}
        values.setdefault(task, {}).update(found)
        tables["context"] += rows
    values["translation"], further = _translation(config, networks, measured, costs, store)
    return values, tables | further


def _rows(name: dict, found: dict) -> list[dict]:
    """A row for each interval."""
    return [name | {"quantity": own} | found[own] for own in found if isinstance(found[own], dict)]


def _who_asks(config: Config, task: str, store: "Store") -> dict:
    found: dict[str, dict] = {}
    for kind in _asked_kinds(config):
        if kind.task == task:
            points = answers(ask(specs_of_kind(config, kind), measure_asking_state), store)
            found.setdefault(kind.scoring, {})[kind.decoder] = {
                name: over_seeds(points, lambda m, n=name: m[n])
                for name in ("present", "previous", "weight_on_gold")
            }
    return found


def _context_of_states(config: Config, task: str, store: "Store") -> tuple[dict, list[dict]]:
    found, rows = {}, []
    for kind in _probed_kinds(config):
        if kind.task == task and (points := answers(_context(config, kind), store)):
            bits = [over_seeds(points, lambda m, i=i: m["bits"][i]) for i in range(len(OFFSETS))]
            at = dict(zip(OFFSETS, bits, strict=True))
            found[DIRECTIONS[kind.directions]] = {"before": at[-1], "own": at[0], "after": at[1]}
            rows += [kind.columns | {"offset": offset} | one for offset, one in at.items()]
    return found, rows


def _translation(
    config: Config, networks: dict, measured: dict, costs: dict, store: "Store"
) -> tuple[dict, dict[str, list[dict]]]:
    """The networks with names on captions; empty where none is asked for."""
    values: dict = {}
    bleu: dict[str, list[Point]] = {}
    tables: dict[str, list[dict]] = {"translation": [], "translation_curves": []}
    for name in config.named:
        if name not in measured:
            continue
        bleu[name] = answers(ask(networks[name], measure_bleu), store)
        found = summary(measured[name], config.text_threshold)
        found["bleu"] = over_seeds(bleu[name], lambda m: m["bleu"])
        found["late_rise"] = over_seeds(measured[name], late_rise)
        values[name] = found | costs.get(name, {}) | {"bleu_of_each": [m["bleu"] for _, m in bleu[name]]}
        tables["translation"] += _rows({"network": name}, found)
        tables["translation_curves"] += [{"network": name} | row for row in curve_rows(measured[name])]
        for _, one in bleu[name][:1]:
            values |= {what: one[what] for what in ("signature", "sentences")}
    values["gains"] = {}
    for gain, (first, second) in GAINS.items():
        own = effect(measured, [(first, second)], config.text_threshold)
        own["bleu"] = paired(bleu.get(first, ()), bleu.get(second, ()), lambda m: m["bleu"])
        values["gains"][gain] = own
    return values, tables
