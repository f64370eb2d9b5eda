"""What forms the attention of a Transformer that others trained, judged by predictions made beforehand."""

from collections.abc import Callable
from operator import itemgetter
from typing import Annotated

from companion.results.config import BaseConfig, OneOf, Positive, setting
from companion.results.frames import Table, frame, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column, Columns, share
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.beyond.others_model.trainings.published import (
    REPORTED,
    SOURCES,
    measure_published_effects,
    measure_published_heads,
)
from notebooks.shared.attribution_ranks import (
    ATTENTION_MOVED,
    ATTRIBUTED,
    POINT,
    WAY_MEANINGS,
    axes_of,
    calibrated,
    key_of,
)
from notebooks.shared.summaries import Bootstrap, correlations, end_differences

EVEN = 0.99  # a head so close to even attention has scores that hardly vary, and shares of noise
# Layers are set by design; heads are taken as drawn within them.
WITHIN_LAYERS = Bootstrap(groups="layer", draws_groups=False, seed=20_261_125)


class Config(BaseConfig):
    weights: Annotated[str, OneOf(SOURCES)] = setting(
        "drawn", "annalog, the published ones, or drawn, a stand-in drawn at random"
    )
    molecules: Positive = setting(240, "that go through the network, at most")
    batch_size: Positive = setting(16, "how many at once")


PROFILES = {
    "quick": Config(),
    "paper": Config(weights="annalog", molecules=2_000, batch_size=32),
    "tiny": Config(molecules=96),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    return (*_heads(config), *_effects(config))


def _heads(config: Config) -> tuple[Measurement, ...]:
    return measurements_of([_spec(config)], measure_published_heads, batch_size=config.batch_size)


def _effects(config: Config) -> tuple[Measurement, ...]:
    return measurements_of([_spec(config)], measure_published_effects, batch_size=config.batch_size)


def _spec(config: Config) -> RunSpec:
    return RunSpec.of("published", weights=config.weights, molecules=config.molecules)


MEANT = {
    "temporal": "the product of temporal parts",
    "input": "the product of input parts",
    "mixed": "the two products of a temporal and an input part",
    "residual": "the five terms with a residual",
}
SHARES = {f"{part}_share": Column(f"covariance share of {terms}") for part, terms in MEANT.items()}
ENDS = {
    f"{part}_{end}": Column(f"{end}er end of the 95 % interval of {part}_share, over molecules")
    for part in MEANT
    for end in ("low", "high")
}
HEAD = dict(
    sorted(
        {
            "layer": Column("layer of the decoder, from 0"),
            "head": Column("head of its cross-attention, from 0"),
            "near_typicality": share("typicality, with molecules of the nearest sizes"),
            "copies": share("attention on the symbol that is to be written"),
            "copies_by_chance": share("uniform attention on the symbol that is to be written"),
            "temporal_rebuilds": share("1 minus total variation from attention of temporal terms alone"),
            "input_rebuilds": share("1 minus total variation from attention of input terms alone"),
            "uniform": share("1 minus total variation from uniform attention"),
            "spread": Column("standard deviation of the scores along a row", low=0),
            **SHARES,
            **ENDS,
        }.items()
    )
)
HEAD_NAME = {name: HEAD[name] for name in ("layer", "head")}
MOVED = {
    f"{way}_attention": share(f"mean total variation of attention, with {meaning}")
    for way, meaning in WAY_MEANINGS.items()
}
COMPARED = ("rank", "differences", "hits", "hit_differences")
LAYER = {"layer": Column("layer of the decoder, from 1")} | {
    part: Column(f"mean over heads of the covariance share of {terms}") for part, terms in MEANT.items()
}
NETWORK = {
    "quality.accuracy": share("symbols that are predicted correctly"),
    "quality.loss": Column("cross-entropy of the next symbol", "nats a symbol", low=0),
    "quality.loss_by_frequency": Column(
        "the same of predicting how often symbols occur", "nats a symbol", low=0
    ),
    "quality.most_frequent": share("symbols that are the most frequent one"),
    "quality.sentences": Column("molecules that these numbers are of", low=0),
    "quality.whole_sentences": share("molecules of which every symbol is predicted correctly"),
    "quality.words": Column("symbols that these numbers are of", low=0),
    "molecules.fitted": Column("molecules that components are fitted on", low=0),
    "molecules.judged": Column("molecules that shares are judged on", low=0),
    "heads.all": Column("heads", low=0),
    "heads.varied": Column(f"heads further from uniform attention than {EVEN}", low=0),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Compute what a head's shares have to do with its typicality, with copying, and with its layer.

    ``rank``, ``hits`` and their differences say how well attributions of its parts predict how far its
    attention moves without them. Heads that attend evenly are left out.
    """

    def of(records: Callable[[dict], object], columns: Columns, row: str) -> Table:
        asked = _heads(config)
        return frame(asked, store, names={}, columns_of=_no_names, records=records, columns=columns, row=row)

    heads = of(itemgetter("heads"), HEAD, "a head")
    points = frame(
        _effects(config),
        store,
        names={},
        columns_of=_no_names,
        records=itemgetter("points"),
        columns=HEAD_NAME | POINT | ATTRIBUTED | MOVED,
        row="a part of a head's queries, keys, or both",
    )
    varied = heads.query("uniform < @even", even=EVEN)
    last = heads.frame["layer"].max()
    ends = varied.query("layer == 0 or layer == @last", last=last)
    compared = calibrated(
        _of_heads(points, varied), unit=list(HEAD_NAME), outcomes=ATTENTION_MOVED, resampled=WITHIN_LAYERS
    )
    return {
        "heads": heads,
        "points": points,
        **{name: compared[name] for name in COMPARED},
        "network": of(_network, NETWORK, "the network"),
        "layers": _layers(heads),
        "over_heads": joined(
            [
                correlations(_of_several_layers(varied), number, SHARES, resampled=WITHIN_LAYERS)
                for number in ("near_typicality", "copies")
            ]
        ),
        "last_layer_minus_first": end_differences(
            _of_several_layers(ends), "layer", ["residual_share"], resampled=WITHIN_LAYERS
        ),
    }


def _of_heads(points: Table, heads: Table) -> Table:
    """Return the points of these heads."""
    return points.with_rows(points.frame.merge(heads.frame[list(HEAD_NAME)], on=list(HEAD_NAME)))


def _no_names(spec: RunSpec) -> dict[str, object]:
    """Return no columns: there is one network."""
    return {}


def _network(measured: dict) -> dict:
    varied = [head for head in measured["heads"] if head["uniform"] < EVEN]
    return {
        "quality": measured["quality"],
        "molecules": {"fitted": measured["fitted"], "judged": measured["judged"]},
        "heads": {"all": len(measured["heads"]), "varied": len(varied)},
    }


def _layers(heads: Table) -> Table:
    means = heads.frame.groupby("layer", as_index=False)[list(SHARES)].mean()
    means["layer"] += 1
    named = means.rename(columns={f"{part}_share": part for part in REPORTED})
    return Table(named[list(LAYER)], LAYER, "a layer")


def _of_several_layers(heads: Table) -> Table:
    """Return the heads, or none where all are of one layer, of which nothing is said."""
    if heads.frame["layer"].nunique() > 1:
        return heads
    return heads.with_rows(heads.frame[:0])


def values(config: Config, tables: dict[str, Table]) -> dict:
    """``typical`` and ``copies``: correlations of a head's shares with its typicality, and with copying.

    ``compared`` has how well attributions predict what moves attention.
    """
    axes = axes_of(ATTENTION_MOVED)
    compared = [keyed(tables[name], f"compared.{key_of(name, axes[name])}") for name in COMPARED]
    over_heads = tables["over_heads"]
    parts = over_heads.frame["quantity"].str.removesuffix("_share")
    over_heads = over_heads.assign({"part": Column("part of the states")}, part=parts)
    return view(
        keyed(over_heads.query("along == 'near_typicality'"), "typical.{part}"),
        keyed(over_heads.query("along == 'copies'"), "copies.{part}"),
        keyed(tables["last_layer_minus_first"], "residual.last_less_first"),
        keyed(tables["layers"], "layers.layer_{layer}.{column}", REPORTED),
        keyed(tables["network"], "{column}", NETWORK),
        *compared,
    )
