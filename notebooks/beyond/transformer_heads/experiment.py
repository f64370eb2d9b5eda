"""The first paper's decomposition in Transformers: which terms form the attention of each head."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from attnlib.adapters.library_models import transformer_pass
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import JudgedSums
from attnlib.analysis.results import head_rows, term_rows
from attnlib.decomposition.components import Components
from attnlib.decomposition.term_names import NINE
from attnlib.models.corpus import Batch, Corpus, evaluation_batches
from attnlib.models.transformer import Positions, Transformer
from companion.results.config import BaseConfig, Field, OneOf, Positive
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared.intervals import bootstrapped, interval_of, nested, spearman_of_points
from notebooks.shared.measure import exact_matches
from notebooks.shared.plan import Plan, answered, asked, by_network, each_seed, picked, plan_of, settings_of
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.summaries import less, rows_of, summarised
from notebooks.shared.task_patterns import STATES, attention_to_source, network_of
from notebooks.shared.thresholds import LEARNED

NUMBERS = (
    "temporal_share", "input_share", "mixed_share", "residual_share", "position_bias_share", "content_share",
    "temporal_rebuilds", "input_rebuilds", "position_rebuilds", "no_residual_rebuilds", "uniform",
    "typicality", "typicality_coverage", "spread",
)  # fmt: skip
MIXED = ("temporal·input", "input·temporal")
CONTENT = tuple(name for name in NINE if "temporal" not in name)
VARIANCE = ("temporal_unique", "input_unique", "shared", "residual")
_BATCH = 256


@measure(version=1)
@torch.no_grad()
def measure_heads(recording: Recording, *, fit_samples: int) -> dict:
    """Terms of every head of every attention, judged on held-out samples, and the variance of its inputs."""
    settings = recording.spec.resolved
    train, judged = load_task(settings).train, judged_samples(settings)
    fitted = train.subset(range(min(fit_samples, len(train))))
    found: dict = {}
    for state in STATES:
        network = network_of(recording, state)
        fit, states = _fitted(network, fitted)
        judgement = JudgedSums(fit)
        for batch in evaluation_batches(judged, _BATCH):
            judgement.update(transformer_pass(network, batch))
        found[state] = {"heads": numbers_of_heads(judgement), "states": state_rows(states)}
        if state == "trained":
            found["terms"] = [
                {name: row[name] for name in ("layer", "head", "term")}
                | {"share": _or_none(row["covariance_share"])}
                for row in term_rows(judgement)
                if row["kind"] == "cross"
            ]
    valid = int(judged.target_lengths.sum()) + len(judged)  # words and end marks
    return found | {
        "steps": recording["steps"].tolist(),
        "token_accuracy": (recording["right"].double().sum((1, 2)) / valid).tolist(),
        "exact_match": float(exact_matches(recording, judged).mean()),
        "parameters": sum(v.numel() for name, v in recording.tensors.items() if name.startswith("network.")),
    }


def numbers_of_heads(judgement: JudgedSums) -> list[dict]:
    """Shares of temporal, input, mixed, residual and position bias sum to one. ``content_share``: of the four
    terms without a temporal component; ``position_rebuilds``: what temporal terms and the position bias
    rebuild together.
    """
    rows = []
    for row in head_rows(judgement):
        shares = judgement.heads[f"{row['kind']}.{row['layer']}", row["head"]].shares
        row["mixed_share"] = sum(shares.covariance[name] for name in MIXED)
        row["content_share"] = sum(shares.covariance[name] for name in CONTENT)
        both = shares.similarity.get("temporal and position bias", row["temporal_rebuilds"])
        row["position_rebuilds"] = both
        named = {name: row[name] for name in ("kind", "layer", "head")}
        rows.append(named | {name: _or_none(row[name]) for name in NUMBERS})
    return rows


def state_rows(states: dict[str, Components]) -> list[dict]:
    """Of the variance of states, the shares that position and word explain; the four of a site sum to one."""
    rows = []
    for site, components in states.items():
        found = components.variance_explained()
        unique = found.temporal_unique + found.input_unique
        shares = (found.temporal_unique, found.input_unique, found.additive - unique, 1 - found.additive)
        rows.append({"site": site} | dict(zip(VARIANCE, map(_or_none, shares), strict=True)))
    return rows


def _fitted(network: Transformer, corpus: Corpus) -> tuple[Fit, dict[str, Components]]:
    """The first pass over the corpus, and the two-way fit of what is embedded and what attentions read."""
    fit, states = Fit(method="means"), {}
    places = int(max(corpus.source_lengths.max(), corpus.target_lengths.max())) + 1
    words = max(network.config.source_size, network.config.target_size)
    for batch in evaluation_batches(corpus, _BATCH):
        with _embedded(network) as embedded:
            one = transformer_pass(network, batch)
        fit.update(one)
        sides = {"encoder": "source", "decoder": "target"}
        sites = {f"{half}.embedded": (sides[half], own) for half, own in embedded.items()} | one.sites()
        for site, (side, own) in sites.items():
            new = Components(own.shape[-1], "least_squares", n_tokens=words, n_positions=places)
            states.setdefault(site, new).update(own, one.tokens(side), one.mask(side))
    return fit, states


@contextmanager
def _embedded(network: Transformer) -> Iterator[dict[str, Tensor]]:
    """What goes into the first layer of each half, before its norm, once the network has run."""
    found: dict[str, Tensor] = {}

    def keep(half: str):
        return lambda layer, inputs: found.__setitem__(half, inputs[0])

    handles = [getattr(network, h)[0].register_forward_pre_hook(keep(h)) for h in ("encoder", "decoder")]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _or_none(number: float) -> float | None:
    """Nine decimals: what stands behind them is rounding, and a share that is zero is written as zero."""
    return None if math.isnan(number) else round(float(number), 9) + 0.0


READ = ("once", "again")


@measure(version=1)
@torch.no_grad()
def measure_repeated(recording: Recording) -> dict:
    """Attention on the aligned word, mean over layers and heads, and words predicted right, from the second
    word on, by whether the word read occurs again; of one-to-one translation alone."""
    settings = recording.spec.resolved
    right = recording["right"][-1].bool()
    found: dict[str, list[np.ndarray]] = {read: [] for read in READ}
    for batch, heads in attention_to_source(network_of(recording, "trained"), judged_samples(settings)):
        aligned = heads.mean((0, 1)).diagonal(dim1=1, dim2=2).double()
        hit = right[batch.indices, : aligned.shape[1]].double()
        for read, steps in zip(READ, steps_by_reading(batch), strict=True):
            found[read].append(torch.stack([aligned[steps], hit[steps]]).numpy())
    return {read: _means(np.concatenate(own, axis=1)) for read, own in found.items()}


def steps_by_reading(batch: Batch) -> tuple[Bool[Tensor, "batch target"], Bool[Tensor, "batch target"]]:
    """Steps that predict a word after reading one that the source has once, and one that it has again."""
    words = batch.source.masked_fill(~_words(batch.source_mask), -1)
    equal = words[:, :, None] == words[:, None, :]
    repeated = (equal.sum(-1) > 1)[:, :-1]
    before = torch.zeros_like(words, dtype=torch.bool)
    before[:, 1:] = repeated
    predicts = _words(batch.target_mask)
    predicts[:, 0] = False  # reads the start mark
    return predicts & ~before, predicts & before


def _words(mask: Bool[Tensor, "batch length"]) -> Bool[Tensor, "batch length"]:
    places = torch.arange(mask.shape[1])
    return places < (mask.sum(1) - 1)[:, None]


def _means(rows: np.ndarray) -> dict[str, float | int | None]:
    steps = rows.shape[1]
    attention, accuracy = rows.mean(1) if steps else (None, None)
    return {
        "attention": None if attention is None else float(attention),
        "accuracy": None if accuracy is None else float(accuracy),
        "steps": steps,
    }


if TYPE_CHECKING:  # a bare node reads from here what is measured, and has no pandas
    import pandas as pd

SHARES = tuple(name for name in NUMBERS if name.endswith("_share"))
ANCHORED = "in_order"  # the reordering family without reordering: word for word, after a word that opens
PARTS = {  # of the values → columns of the table
    "layers": ("kind", "layer", "state", "number"),
    "networks": ("number",),
    "states": ("site", "state", "number"),
    "terms": ("layer", "term"),
}


def head_table(measured: dict, least_spread: float) -> list[dict]:
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
    import pandas as pd

    heads = pd.DataFrame(head_table(measured, least_spread)).astype(dict.fromkeys(NUMBERS, float))
    means = heads.groupby(["kind", "layer", "state"], sort=False)[list(NUMBERS)].mean()
    shares = pd.DataFrame(measured["terms"]).astype({"share": float})
    shares = shares.groupby(["layer", "term"], sort=False)["share"].mean()
    able = picked(measured, ("exact_match", "parameters"))
    states = ((row["site"], state, row) for state in STATES for row in measured[state]["states"])
    return {
        "layers": nested({(kind, f"layer_{n}", s): dict(own) for (kind, n, s), own in means.iterrows()}),
        "networks": {"token_accuracy": measured["token_accuracy"][-1]} | able,
        "states": nested({(site, state): picked(row, VARIANCE) for site, state, row in states}),
        "terms": nested({(int(layer) + 1, term): share for (layer, term), share in shares.items()}),
    }


AGAINST = (*SHARES[:4], "temporal_rebuilds", "input_rebuilds")  # typicality, for rank correlations


def cross_heads(heads: "pd.DataFrame") -> "pd.DataFrame":
    """Those that are judged: trained, of networks that learned their task."""
    return heads[(heads["kind"] == "cross") & (heads["state"] == "trained") & (heads["learned"] == 1)]


def correlations(heads: "pd.DataFrame") -> dict[str, dict]:
    """Rank correlations over heads of cross-attention: typicality with each number of :data:`AGAINST`."""
    rows = cross_heads(heads)
    return {number.removesuffix("_share"): _correlation(rows, number) for number in AGAINST}


def _correlation(rows: "pd.DataFrame", number: str) -> dict:
    """Tasks are drawn, and networks within them, of any code of positions; all heads of a network together.

    A network is a matrix (heads, 2), NaN where undefined.
    """
    pairs = rows[["typicality", number]].astype(float)
    pairs = pairs.mask((rows["varies"] == 0) | pairs.isna().any(axis=1))
    networks = {
        str(task): [
            pairs.loc[network.index].to_numpy()
            for _, network in own.groupby(["positions", "seed"], sort=False)
        ]
        for task, own in rows.groupby("task", sort=False)
    }
    defined = int(pairs.notna().all(axis=1).sum())
    counted = {"heads": defined, "left_out": len(rows) - defined}
    return bootstrapped(networks, _spearman_of_networks, defined) | counted


def _spearman_of_networks(networks: np.ndarray) -> float:
    points = networks.reshape(-1, 2)
    points = points[~np.isnan(points).any(1)]
    return spearman_of_points(points) if len(points) > 1 else math.nan


def last_less_first(heads: "pd.DataFrame") -> dict:
    """Residual share of the last layer less the first: over heads, then a seed's networks, then seeds."""
    rows = cross_heads(heads)
    last, first = (
        rows[rows["layer"] == layer].groupby(["seed", "task", "positions"])["residual_share"].mean()
        for layer in (rows["layer"].max(), rows["layer"].min())
    )
    return interval_of((last - first).groupby("seed").mean())


def differences(heads: "pd.DataFrame") -> dict[str, dict]:
    """Temporal share of cross-attention by kind of positions, of one task or kind less another's, over seeds.
    ``smallest``: seed by seed the least."""
    import pandas as pd

    rows = cross_heads(heads)
    kinds, anchored = (own["positions"].unique() for own in (heads, heads[heads["task"] == ANCHORED]))

    def apart(*both: tuple[str, str]) -> "pd.Series":
        own = (rows[(rows["task"] == task) & (rows["positions"] == kind)] for task, kind in both)
        one, other = (each.groupby("seed")["temporal_share"].mean() for each in own)
        return one - other

    tasks = pd.DataFrame({kind: apart(("one_to_one", kind), ("reordering", kind)) for kind in kinds})
    rest = [kind for kind in kinds if kind != "sinusoidal"]
    pairs = {
        "one_to_one_less_reordering": dict(tasks) | {"smallest": tasks.min(axis=1, skipna=False)},
        "sinusoidal_less": {n: apart(("one_to_one", "sinusoidal"), ("one_to_one", n)) for n in rest},
        "anchored_less_free": {n: apart((ANCHORED, n), ("one_to_one", n)) for n in anchored},
    }
    return {name: {kind: interval_of(own) for kind, own in kinds.items()} for name, kinds in pairs.items()}


def _read(measured: dict) -> dict:
    """At words read that the source has once, again, and their difference."""
    own = picked(measured, READ, ("attention", "accuracy"))
    return own | {"once_less_again": less(own["once"], own["again"])}


TASKS = ("one_to_one", "reordering", "scan", "lexicon_translation")


class Config(BaseConfig):
    """Settings; a network is a task × kind of positions × seed. Neither paper gives any."""

    #: one_to_one, reordering, scan, lexicon_translation
    task: tuple[Annotated[str, OneOf(TASKS)], ...] = ("one_to_one", "reordering")
    #: sinusoidal, learned, relative, rotary, none
    positions: tuple[Positions, ...] = ("sinusoidal", "relative", "rotary")
    #: kinds of positions for the control with an opening word. It is the reordering family without
    #: reordering: word for word like one-to-one translation, but its first word is always one of two that are
    #: nowhere else. No prediction is judged by it. None at quick, to save its training.
    anchored: tuple[Positions, ...] = ()
    seeds: Positive = 3  #: networks of each kind
    words: int = 8  #: size of the vocabulary of one-to-one translation
    shortest: int = 4  #: fewest words of its sentences
    longest: int = 7  #: most words of its sentences
    reordered: float = 0.5  #: share of sentences that may be reordered, in the reordering family
    fewest_phrases: int = 2  #: fewest phrases of its sentences, which have twice as many words and one more
    most_phrases: int = 3  #: most phrases of its sentences
    n_train: Positive = 4_000  #: sentences to train on
    judged: Positive = 128  #: held-out sentences
    fit_samples: Positive = 600  #: training sentences, at most, that components are fitted on
    width: int = 32  #: of the states
    heads: int = 2  #: of every attention
    layers: int = 2  #: of encoder and of decoder
    #: updates in training. The quick profile's learning rate is high so that few are enough for relative and
    #: rotary positions, which learn slowest.
    steps: int = 200
    learning_rate: float = 1.2e-2  #: of Adam
    warmup: int = 40  #: updates over which it rises
    snapshots: int = 2  #: evaluations during training
    #: smallest standard deviation of a head's scores along their rows for it to have shares. Below a
    #: twentieth attention is within about 5 % of even, and terms add up to next to nothing.
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


def specs(config: Config, task: str, positions: str) -> tuple[RunSpec, ...]:
    own = settings_of(
        config, "width", "heads", "layers", "steps", "learning_rate", "warmup", "snapshots", "judged"
    )
    own |= {"task": "reordering" if task == ANCHORED else task, "positions": positions}
    own |= {"options": tuple(_options(config, task).items())}
    return each_seed(config.seeds, RunSpec.of, "transformer_sequences", **own)


def _plan(config: Config) -> tuple[Plan, Plan]:
    """All networks by task and positions, and those on one-to-one translation by positions."""
    kinds = (*product(config.task, config.positions), *((ANCHORED, kind) for kind in config.anchored))
    networks = {kind: specs(config, *kind) for kind in kinds}
    again = {(positions,): own for (task, positions), own in networks.items() if task == "one_to_one"}
    return plan_of(networks, measure_heads, fit_samples=config.fit_samples), plan_of(again, measure_repeated)


measurements = asked(_plan)


PROFILES = {
    # One kind of positions that are added to the states, and one of those that are not.
    "quick": Config(positions=("sinusoidal", "rotary"), seeds=2, steps=130),
    "paper": Config(
        task=TASKS, positions=("sinusoidal", "learned", "relative", "rotary"),
        anchored=("relative", "rotary"), seeds=5, longest=10, shortest=6, fewest_phrases=3, most_phrases=5,
        n_train=10_000, judged=1_000, fit_samples=10_000, width=128, heads=4, layers=3, steps=2_000,
        learning_rate=1e-3, warmup=200, snapshots=10,
    ),
    "tiny": Config(
        positions=("sinusoidal", "learned", "relative", "rotary"), seeds=2, n_train=300, judged=60,
        fit_samples=200, width=8, steps=3, snapshots=1,
    ),
}  # fmt: skip


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """What is compared or correlated is of networks that learned their task, but for the anchored control."""
    import pandas as pd

    networks, again = (answered(plan, store) for plan in _plan(config))
    rows = [
        name | {"learned": int(measured["token_accuracy"][-1] >= LEARNED)} | row
        for name, measured in by_network(networks, "task", "positions")
        for row in head_table(measured, config.least_spread)
    ]
    columns = ("task", "positions", "seed", "learned", "state", "kind", "layer", "varies", *NUMBERS)
    heads = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(NUMBERS, float))
    judged = heads[heads["task"] != ANCHORED]
    of_each = {
        kind: [(name, numbers_of(measured, config.least_spread)) for name, measured in points]
        for kind, points in networks.items()
    }
    parts = {part: summarised(of_each, itemgetter(part)) for part in PARTS}
    readings = by_network(again, "positions")
    return {
        "correlation": correlations(judged),
        "residual": {"last_less_first": last_less_first(judged)},
        **differences(heads),
        "repeated": summarised(again, _read),
        **{part: parts[part] for part in ("networks", "layers", "states")},
    }, {
        "heads": rows,
        "repeated": [name | row for name, own in readings for row in rows_of(own, "read")],
        **{part: rows_of(parts[part], "task", "positions", *own) for part, own in PARTS.items()},
    }
