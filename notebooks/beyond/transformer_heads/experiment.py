"""The first paper's decomposition in Transformers: which terms form the attention of each head."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import Annotated

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
from companion.results.config import BaseConfig, Field, OneOf, Positive, setting
from companion.results.frames import Table, joined, keyed, nested, view
from companion.runs.columns import INTERVAL, Column, Columns, share
from companion.runs.columns import NETWORK as SUITE
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared.intervals import interval_of
from notebooks.shared.measure import exact_matches
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.summaries import Bootstrap, correlations, differences, summarise
from notebooks.shared.task_patterns import STATES, attention_to_source, network_of

SHARES = {
    "temporal_share": Column("covariance share of temporal · temporal"),
    "input_share": Column("covariance share of input · input"),
    "mixed_share": Column("covariance share of the two products of a temporal and an input part"),
    "residual_share": Column("covariance share of the five terms with a residual"),
    "position_bias_share": Column("covariance share of the bias by distance"),
    "content_share": Column("covariance share of the four terms without a temporal part"),
}
NUMBERS = {
    **SHARES,
    "temporal_rebuilds": Column("1 minus total variation from attention of temporal · temporal alone"),
    "input_rebuilds": Column("1 minus total variation from attention of input · input alone"),
    "position_rebuilds": Column("the same of temporal · temporal and the bias by distance"),
    "no_residual_rebuilds": Column("the same of all terms without a residual"),
    "uniform": share("1 minus total variation from uniform attention"),
    "typicality": share("1 minus the total variation between a sentence's attention and that of others"),
    "typicality_coverage": Column("sentences in groups that are large enough for a typicality, as a share"),
    "spread": Column("standard deviation of the scores along a row"),
}
MIXED = ("temporal·input", "input·temporal")
CONTENT = tuple(name for name in NINE if "temporal" not in name)
VARIANCE = {
    "temporal_unique": Column("variance of states that position alone explains, as a share"),
    "input_unique": Column("variance of states that the word alone explains, as a share"),
    "shared": Column("variance of states that position and word explain together, as a share"),
    "residual": Column("variance of states that no sum of position and word explains, as a share"),
}
_BATCH = 256


@measure(version=1)
@torch.no_grad()
def measure_heads(recording: Recording, *, fit_samples: int) -> dict:
    """Terms of every head of every attention, judged on held-out samples, and the variance of its inputs."""
    settings = recording.spec.resolved
    train, judged = load_task(settings).train, judged_samples(settings)
    fitted = train.subset(range(min(fit_samples, len(train))))
    numbers: dict = {}
    for state in STATES:
        network = network_of(recording, state)
        fit, states = _fitted(network, fitted)
        judgement = JudgedSums(fit)
        for batch in evaluation_batches(judged, _BATCH):
            judgement.update(transformer_pass(network, batch))
        numbers[state] = {"heads": numbers_of_heads(judgement), "states": state_rows(states)}
        if state == "trained":
            numbers["terms"] = [
                {name: row[name] for name in ("layer", "head", "term")}
                | {"share": _or_none(row["covariance_share"])}
                for row in term_rows(judgement)
                if row["kind"] == "cross"
            ]
    valid = int(judged.target_lengths.sum()) + len(judged)  # words and end marks
    return numbers | {
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
        explained = components.variance_explained()
        unique = explained.temporal_unique + explained.input_unique
        shares = (
            explained.temporal_unique,
            explained.input_unique,
            explained.additive - unique,
            1 - explained.additive,
        )
        rows.append({"site": site} | dict(zip(VARIANCE, map(_or_none, shares), strict=True)))
    return rows


def _fitted(network: Transformer, corpus: Corpus) -> tuple[Fit, dict[str, Components]]:
    """The first pass over the corpus, and the two-way fit of what is embedded and what attentions read."""
    fit, states = Fit(method="means"), {}
    places = int(max(corpus.source_lengths.max(), corpus.target_lengths.max())) + 1
    words = max(network.config.source_size, network.config.target_size)
    for batch in evaluation_batches(corpus, _BATCH):
        with _embedded(network) as embedded:
            model_pass = transformer_pass(network, batch)
        fit.update(model_pass)
        sides = {"encoder": "source", "decoder": "target"}
        sites = {
            f"{half}.embedded": (sides[half], values) for half, values in embedded.items()
        } | model_pass.sites()
        for site, (side, values) in sites.items():
            new = Components(values.shape[-1], "least_squares", n_tokens=words, n_positions=places)
            states.setdefault(site, new).update(values, model_pass.tokens(side), model_pass.mask(side))
    return fit, states


@contextmanager
def _embedded(network: Transformer) -> Iterator[dict[str, Tensor]]:
    """What goes into the first layer of each half, before its norm, once the network has run."""
    embedded: dict[str, Tensor] = {}

    def keep(half: str):
        return lambda layer, inputs: embedded.__setitem__(half, inputs[0])

    handles = [getattr(network, h)[0].register_forward_pre_hook(keep(h)) for h in ("encoder", "decoder")]
    try:
        yield embedded
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
    by_read: dict[str, list[np.ndarray]] = {read: [] for read in READ}
    for batch, heads in attention_to_source(network_of(recording, "trained"), judged_samples(settings)):
        aligned = heads.mean((0, 1)).diagonal(dim1=1, dim2=2).double()
        hit = right[batch.indices, : aligned.shape[1]].double()
        for read, steps in zip(READ, steps_by_reading(batch), strict=True):
            by_read[read].append(torch.stack([aligned[steps], hit[steps]]).numpy())
    return {read: _means(np.concatenate(batches, axis=1)) for read, batches in by_read.items()}


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


ANCHORED = "in_order"  # the reordering family without reordering: word for word, after a word that opens
KIND = {
    "task": Column("task that the network was trained on"),
    "positions": Column("how the network knows positions: sinusoidal, learned, relative, rotary, none"),
}
NETWORK = {**KIND, "seed": SUITE["seed"]}
LEARNED = {"learned": Column("1 if the network has learned its task, else 0")}
STATE = {"state": Column("before or after training: untrained, trained")}
OF_HEAD = {
    **STATE,
    "head": Column("head of its attention, from 1"),
    "kind": Column("which attention: cross, encoder_self, decoder_self"),
    "layer": Column("layer, from 1"),
    **NUMBERS,
    "varies": Column("1 if the scores vary enough for shares, else 0; then shares are empty"),
}
HEAD = {**NETWORK, **LEARNED, **STATE} | dict(sorted(OF_HEAD.items()))
OF_LAYER = {"kind": OF_HEAD["kind"], "layer": Column("layer_1, layer_2, …"), **STATE}
ABLE = {
    "token_accuracy": share("word accuracy, end tokens included"),
    "exact_match": share("sentences that are written without an error"),
    "parameters": Column("parameters of the network"),
}
SITE = {"site": Column("states that are read: half, layer and attention, what is embedded, or a half's end")}
TERM = {"layer": OF_HEAD["layer"], "term": Column("term of the scores of cross-attention, after training")}
TERM_SHARE = {"share": Column("covariance share of the term, in the mean over heads")}
READING = {"read": Column("whether the source has the word just read once, or again")}
READ_NUMBERS = {
    "accuracy": share("words that are predicted correctly"),
    "attention": Column("attention on the aligned word, mean over layers and heads"),
}
STEPS = {"steps": Column("words that these numbers are of", low=0)}
CORRELATED = {
    "heads": Column("heads with both numbers", low=0),
    "left_out": Column("heads without, as their scores hardly vary", low=0),
}
DIFFERENCE = {"difference": Column("what is subtracted from what")}
SMALLEST = "smallest"  # of all kinds of positions, seed by seed


def head_records(measured: dict, least_spread: float) -> list[dict]:
    """Return a record for each head of one network in either state, layers and heads counted from 1."""
    from companion.claims.presupposed import holds  # a bare node, which only measures, cannot read claims

    accuracy = measured["token_accuracy"][-1]
    learned = holds("learned-transformers", paper="beyond", token_accuracy=accuracy)
    records = []
    for state in STATES:
        for head in measured[state]["heads"]:
            varies = head["spread"] is not None and head["spread"] >= least_spread
            shares = {name: head[name] if varies else None for name in SHARES}
            numbered = {"layer": head["layer"] + 1, "head": head["head"] + 1}
            flags = {"state": state, "learned": int(learned), "varies": int(varies)}
            records.append(head | numbered | shares | flags)
    return records


def _able(measured: dict) -> dict:
    return measured | {"token_accuracy": measured["token_accuracy"][-1]}


def _states(measured: dict) -> list[dict]:
    return [{"state": state} | row for state in STATES for row in measured[state]["states"]]


def _terms(measured: dict) -> list[dict]:
    return [row | {"layer": row["layer"] + 1} for row in measured["terms"]]


def _read(measured: dict) -> list[dict]:
    return [{"read": read} | measured[read] for read in sorted(READ)]


def mean_over_heads(heads: Table, by: Sequence[str], numbers: Iterable[str]) -> Table:
    """Return the means of the heads of each group, of those that have the number."""
    names = list(numbers)
    frame = heads.frame.astype(dict.fromkeys(names, float))
    means = frame.groupby(list(by), sort=False, as_index=False)[names].mean()
    columns = {name: heads.columns[name] for name in (*by, *names)}
    return Table(means, columns, "heads of a network")


def gathered(table: Table, by: Sequence[str]) -> Table:
    """Return the rows in another order: those of a group one after the other, groups by their first row."""
    group = table.frame.groupby(list(by), sort=False).ngroup()
    return table.with_rows(table.frame.loc[group.sort_values(kind="stable").index])


# What correlates with the typicality of heads.
AGAINST = (
    "temporal_share",
    "input_share",
    "mixed_share",
    "residual_share",
    "temporal_rebuilds",
    "input_rebuilds",
)
# Tasks are drawn, and networks within them, however they know positions; heads of a network stay together.
OVER_NETWORKS = Bootstrap(groups="task", units=("positions", "seed"))


def cross_heads(heads: Table) -> Table:
    """Return the heads that are judged: trained cross-attention of networks that have learned their task."""
    return heads.query("kind == 'cross' and state == 'trained' and learned == 1")


def correlations_with_typicality(heads: Table) -> Table:
    """Return rank correlations of typicality over heads of cross-attention, and how many heads those are."""
    judged = cross_heads(heads)
    varying = judged.query("varies == 1")
    table = correlations(varying, "typicality", AGAINST, resampled=OVER_NETWORKS)
    has_both = [varying.frame[["typicality", number]].notna().all(axis=1) for number in AGAINST]
    counted = [int(both.sum()) for both in has_both]
    left_out = [len(judged.frame) - number for number in counted]
    return table.assign(CORRELATED, heads=counted, left_out=left_out)


def last_minus_first_layer(heads: Table) -> Table:
    """Return the residual share of the last layer minus the first, over a seed's networks, then seeds."""
    judged = cross_heads(heads)
    by_layer = mean_over_heads(judged, [*NETWORK, "layer"], ["residual_share"])
    last, first = by_layer.frame["layer"].max(), by_layer.frame["layer"].min()
    deepened = differences(
        by_layer.query("layer == @last", last=last),
        by_layer.query("layer == @first", first=first),
        ["residual_share"],
        on=list(NETWORK),
    )
    by_seed = mean_over_heads(deepened, ["seed"], ["residual_share"])
    return summarise(by_seed, [], ["residual_share"])


def temporal_differences(heads: Table) -> Table:
    """Return how temporal shares of cross-attention differ between tasks, and between kinds of positions.

    Networks are paired by seed. ``smallest``: seed by seed the least over kinds of positions, of seeds that
    have them all.
    """
    shares = mean_over_heads(cross_heads(heads), list(NETWORK), ["temporal_share"])
    one_to_one, reordering, anchored = (
        shares.query("task == @task", task=task) for task in ("one_to_one", "reordering", ANCHORED)
    )
    tasks = differences(one_to_one, reordering, ["temporal_share"], on=["positions", "seed"])
    kinds = heads.frame["positions"].unique()
    by_seed = tasks.frame.pivot_table(index="seed", columns="positions", values="temporal_share")
    smallest = by_seed.reindex(columns=kinds).min(axis=1, skipna=False)
    least = tasks.with_rows(smallest.rename("temporal_share").reset_index().assign(positions=SMALLEST))
    sinusoidal = one_to_one.query("positions == 'sinusoidal'")
    others = [
        differences(sinusoidal, one_to_one.query("positions == @kind", kind=kind), ["temporal_share"]).assign(
            {"positions": KIND["positions"]}, positions=kind
        )
        for kind in kinds
        if kind != "sinusoidal"
    ]
    compared = {
        "one_to_one_less_reordering": [tasks, least],
        "sinusoidal_less": others,
        "anchored_less_free": [
            differences(anchored, one_to_one, ["temporal_share"], on=["positions", "seed"])
        ],
    }
    return joined(
        [
            _named(difference, summarise(pairs, ["positions"], ["temporal_share"]))
            for difference, tables in compared.items()
            for pairs in tables
        ]
    )


def _named(difference: str, estimates: Table) -> Table:
    columns = list(estimates.frame)
    return estimates.assign(DIFFERENCE, difference=difference).select(*DIFFERENCE, *columns)


TASKS = ("one_to_one", "reordering", "scan", "lexicon_translation")


class Config(BaseConfig):
    """Settings; a network is a task × kind of positions × seed. Neither paper gives any."""

    task: tuple[Annotated[str, OneOf(TASKS)], ...] = setting(
        ("one_to_one", "reordering"), "one_to_one, reordering, scan, lexicon_translation"
    )
    positions: tuple[Positions, ...] = setting(
        ("sinusoidal", "relative", "rotary"), "sinusoidal, learned, relative, rotary, none"
    )
    anchored: tuple[Positions, ...] = setting(
        (),
        "kinds of positions for the control with an opening word. It is the reordering family "
        "without reordering: word for word like one-to-one translation, but its first word "
        "is always one of two that are nowhere else. No prediction is judged by it. None at "
        "quick, to save its training",
    )
    seeds: Positive = setting(3, "networks of each kind")
    words: int = setting(8, "size of the vocabulary of one-to-one translation")
    shortest: int = setting(4, "fewest words of its sentences")
    longest: int = setting(7, "most words of its sentences")
    reordered: float = setting(0.5, "share of sentences that may be reordered, in the reordering family")
    fewest_phrases: int = setting(
        2, "fewest phrases of its sentences, which have twice as many words and one more"
    )
    most_phrases: int = setting(3, "most phrases of its sentences")
    n_train: Positive = setting(4_000, "sentences to train on")
    judged: Positive = setting(128, "held-out sentences")
    fit_samples: Positive = setting(600, "training sentences, at most, that components are fitted on")
    width: int = setting(32, "of the states")
    heads: int = setting(2, "of every attention")
    layers: int = setting(2, "of encoder and of decoder")
    steps: int = setting(
        200,
        "updates in training. The quick profile's learning rate is high so that few are "
        "enough for relative and rotary positions, which learn slowest",
    )
    learning_rate: float = setting(1.2e-2, "of Adam")
    warmup: int = setting(40, "updates over which it rises")
    snapshots: int = setting(2, "evaluations during training")
    least_spread: Annotated[float, Field(ge=0)] = setting(
        0.05,
        "smallest standard deviation of a head's scores along their rows for it to have "
        "shares. Below a twentieth attention is within about 5 % of even, and terms add up to "
        "next to nothing",
    )

    def check(self) -> None:
        measurements(self)  # what a network or its training cannot be, the procedures say


def _options(config: Config, task: str) -> dict[str, object]:
    """Those of the task; SCAN holds out a share of its commands and is otherwise as it is."""
    sizes = {"n_train": config.n_train, "n_held_out": config.judged}
    phrases = {"min_phrases": config.fewest_phrases, "max_phrases": config.most_phrases}
    lengths = {"min_length": config.shortest, "max_length": config.longest}
    options = {
        "one_to_one": {"n_words": config.words} | lengths | sizes,
        "reordering": {"p": config.reordered} | phrases | sizes,
        ANCHORED: {"p": 0.0} | phrases | sizes,
        "scan": {"n_train": config.n_train},
        "lexicon_translation": sizes,
    }
    return options[task]


def specs(config: Config, task: str, positions: str) -> tuple[RunSpec, ...]:
    settings = settings_of(
        config, "width", "heads", "layers", "steps", "learning_rate", "warmup", "snapshots", "judged"
    )
    settings |= {"task": "reordering" if task == ANCHORED else task, "positions": positions}
    settings |= {"options": tuple(_options(config, task).items())}
    return each_seed(config.seeds, RunSpec.of, "transformer_sequences", **settings)


def _plan(config: Config) -> tuple[Plan, Plan]:
    """All networks by task and positions, and those on one-to-one translation by positions."""
    kinds = (*product(config.task, config.positions), *((ANCHORED, kind) for kind in config.anchored))
    networks = {kind: specs(config, *kind) for kind in kinds}
    again = {
        (positions,): group_specs
        for (task, positions), group_specs in networks.items()
        if task == "one_to_one"
    }
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


def compute(config: Config, store: Store) -> dict[str, Table]:
    """What is compared or correlated is of networks that learned their task, but for the anchored control."""
    networks, on_one_to_one = _plan(config)

    def of(records: Callable[[dict], object], columns: Columns, row: str) -> Table:
        return plan_frame(networks, store, KIND, records=records, columns=columns, row=row)

    records_of_heads = partial(head_records, least_spread=config.least_spread)
    heads = of(records_of_heads, LEARNED | OF_HEAD, "a head of a network, before or after training")
    heads = heads.with_rows(heads.frame.astype(dict.fromkeys(NUMBERS, float)))
    judged = heads.query("task != @anchored", anchored=ANCHORED)
    layers = mean_over_heads(heads, [*NETWORK, *OF_LAYER], NUMBERS)
    layers = layers.assign(OF_LAYER, layer="layer_" + layers.frame["layer"].astype(str))
    states = of(_states, SITE | STATE | VARIANCE, "states of a network, before or after training")
    terms = mean_over_heads(of(_terms, TERM | TERM_SHARE, "a term of a head"), [*NETWORK, *TERM], TERM_SHARE)
    repeated = plan_frame(
        on_one_to_one,
        store,
        {"positions": KIND["positions"]},
        records=_read,
        columns=READING | READ_NUMBERS | STEPS,
        row="words of a network after which it has read a word once, or again",
    )
    once, again = (repeated.query("read == @read", read=read) for read in READ)
    led_astray = differences(once, again, READ_NUMBERS, on=["positions", "seed"])
    return {
        "heads": heads.select(*HEAD),
        "repeated": repeated,
        "layers": _by_number(gathered(layers, [*KIND, "kind", "layer"]), [*KIND, *OF_LAYER], NUMBERS),
        "networks": _by_number(of(_able, ABLE, "a trained network"), list(KIND), ABLE),
        "states": _by_number(gathered(states, [*KIND, *SITE]), [*KIND, *SITE, *STATE], VARIANCE),
        "terms": summarise(terms, [*KIND, *TERM], TERM_SHARE).select(*KIND, *TERM, *INTERVAL),
        "repeated_by_positions": summarise(repeated, ["positions", *READING], READ_NUMBERS),
        "once_minus_again": summarise(led_astray, ["positions"], READ_NUMBERS),
        "correlation": correlations_with_typicality(judged),
        "last_minus_first_layer": last_minus_first_layer(judged),
        "temporal_differences": temporal_differences(heads),
    }


def _by_number(table: Table, by: Sequence[str], numbers: Iterable[str]) -> Table:
    return summarise(table, by, numbers).rename(quantity="number")


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return estimates by kind of network, and correlations and differences over them."""
    parts = tables["correlation"].frame["quantity"].str.removesuffix("_share")
    correlation = tables["correlation"].assign({"part": Column("number of a head")}, part=parts)
    of_states = {
        ("states", row["task"], row["positions"], row["site"], row["state"], row["number"]): {
            name: row[name] for name in INTERVAL
        }
        for row in tables["states"].records()  # a site has dots of its own, as in encoder.0.self
    }
    by_key = view(
        _of_no_networks(tables["heads"]),
        keyed(correlation, "correlation.{part}"),
        keyed(correlation, "correlation.{part}.{column}", CORRELATED),
        keyed(tables["last_minus_first_layer"], "residual.last_less_first"),
        keyed(tables["temporal_differences"], "{difference}.{positions}"),
        keyed(tables["repeated_by_positions"], "repeated.{positions}.{read}.{quantity}"),
        keyed(tables["once_minus_again"], "repeated.{positions}.once_less_again.{quantity}"),
        keyed(tables["networks"], "networks.{task}.{positions}.{number}"),
        keyed(tables["layers"], "layers.{task}.{positions}.{kind}.{layer}.{state}.{number}"),
    )
    return by_key | {"states": {}} | nested(of_states)


def _of_no_networks(heads: Table) -> dict[str, dict]:
    """Return what is at the keys of kinds of positions of which no networks can be compared."""
    unknown: dict[str, dict] = {"networks": {}, "layers": {}, "repeated": {}, "anchored_less_free": {}}
    unknown[f"one_to_one_less_reordering.{SMALLEST}"] = interval_of()
    unknown["sinusoidal_less"] = {}
    for kind in heads.frame["positions"].unique():
        unknown[f"one_to_one_less_reordering.{kind}"] = interval_of()
        if kind != "sinusoidal":
            unknown[f"sinusoidal_less.{kind}"] = interval_of()
    for kind in heads.query("task == @anchored", anchored=ANCHORED).frame["positions"].unique():
        unknown[f"anchored_less_free.{kind}"] = interval_of()
    return unknown
