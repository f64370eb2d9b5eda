"""Do shares say what matters? Attributions of each part, against what happens when the part is replaced."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnlib.analysis.interventions import ATTRIBUTIONS, WAYS, Donors, attributions
from attnlib.analysis.part_shares import FACTOR_SIDES
from attnlib.decomposition.components import STATE_PARTS, Parts
from attnlib.decomposition.rows import total_variation
from attnlib.decomposition.shares import ShareSums
from attnlib.decomposition.substitution import SubstitutionSums
from attnlib.decomposition.terms import PAIRS, alignment_terms
from attnlib.models.config import Cell
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.trace import Trace
from companion.results.config import Positive, Task, setting
from companion.results.frames import Table, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import NETWORK, Column, share
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from companion.runs.suite import task_name_of
from notebooks.shared.attribution_ranks import (
    ATTENTION_MOVED,
    ATTRIBUTED,
    ATTRIBUTION_MEANINGS,
    EVERY,
    FEWEST,
    POINT,
    SETS,
    WAY_MEANINGS,
    Calibrations,
    axes_of,
    calibrated,
    key_of,
    statistics,
)
from notebooks.shared.intervals import Interval, interval_of
from notebooks.shared.measure import attend_and_read, fit_components
from notebooks.shared.suite import (
    CELL_TASKS,
    DIAL,
    FAMILY,
    PAPER_TASKS,
    QUALITY,
    SUITE,
    SuiteConfig,
    model_specs_and_cells,
    on_dial,
    suite_frame,
    with_family,
)
from notebooks.shared.summaries import Bootstrap, correlations, differences, end_differences, summarise
from notebooks.shared.translators import (
    LEARNED,
    translator_measurements,
    translators_that_count,
    with_learned,
)

# Both sides of one question, measured of the same held-out samples of a network.
#
# An attribution says from the nine terms what a part is worth: five of them, defined in
# ``attnlib.analysis.interventions``. Of one side alone, the split share is half the side's share, and the
# any-term share is the side's share, so that both have the same ranks.
#
# An effect says what happens without the part: that of another place is put in, in one of the two ways of the
# same module, in the queries, in the keys, or in both. The path is that of the interchange, attention alone:
# the network scores, attends, sums and reads on from there, but the values that the context sums and the
# decoder state that the readout sees stay as they were.

OUTCOMES = ("attention", "output", "loss")
SEED = 0xCA1B  # of the places that parts are taken from


@measure(version=1)
def measure_calibration(trained: TrainedModel, fit_samples: int, samples: int) -> dict:
    """Attributions and effects of every part, on the first held-out ``samples``.

    ``attributions.<side>.<part>.<attribution>``. ``effects.<way>.<side>.<part>``, over all valid steps:
    ``attention``, mean total variation between rows of attention before and after; ``output``, mean total
    variation between distributions of the next word; ``loss``, the change of the mean cross-entropy, in nats
    a word. All come by the path of attention alone. A temporal part has the same donors either way. ``loss``
    is that of the network left alone.
    """
    task, model = trained.task, trained.model
    fitted = fit_components(trained, fit_samples)
    corpus = task.held_out.subset(np.arange(min(samples, len(task.held_out))))
    draw = torch.Generator().manual_seed(SEED)
    shares, substitution, outcomes = ShareSums(), SubstitutionSums(), OutcomeSums()
    for trace in traces(model, corpus):
        decoder, encoder = fitted.split(trace)
        terms = alignment_terms(decoder, encoder)  # (3, 3, batch, target, source)
        shares.update(terms, trace.target_mask, trace.source_mask)
        substitution.update(terms, trace.target_mask, trace.source_mask)
        order = torch.randperm(len(trace.target_mask), generator=draw)  # of both sides: one donor a sample
        query, keys = (
            Replaceable(states, parts, Donors.drawn(parts.mask, order, draw))
            for states, parts in ((trace.decoder_states, decoder), (trace.encoder_states, encoder))
        )
        outcomes.update(model, trace, query, keys)
    return {
        "quality": trained.history["held_out"],
        "attributions": _attributions(shares, substitution),
        "effects": outcomes.effects(),
        "loss": outcomes.loss_alone / outcomes.rows,
        "rows": outcomes.rows,
    }


@dataclass(frozen=True, eq=False)
class Replaceable:
    """States of one side of a batch, their parts, and where other parts come from."""

    states: Float[Tensor, "batch length width"]
    parts: Parts
    donors: Donors

    def with_other(self, part: str, way: str) -> Float[Tensor, "batch length width"]:
        """Return the states with this part of another place."""
        component = getattr(self.parts, part)
        return self.states - component + self.donors.origin(way, part).of(component)


class OutcomeSums:
    """What replacing a part does, summed over valid steps.

    Attributes:
        changes: sums of :data:`OUTCOMES` by (way, side, part).
        loss_alone: summed loss of the network left alone.
        rows: how many steps were summed.
    """

    def __init__(self) -> None:
        self.changes: dict[tuple[str, str, str], Float[Tensor, " outcomes"]] = {}
        self.loss_alone = 0.0
        self.rows = 0

    @torch.no_grad()
    def update(self, model: EncoderDecoder, trace: Trace, query: Replaceable, keys: Replaceable) -> None:
        """Add a batch."""
        rows = trace.target_mask
        alone = Outcome.of(model, trace, query.states, keys.states)
        self.loss_alone += float(alone.loss)
        self.rows += int(rows.sum())
        for part in STATE_PARTS:
            for way in WAYS if part != "temporal" else WAYS[:1]:
                queries, other_keys = query.with_other(part, way), keys.with_other(part, way)
                sides = {
                    "query": (queries, keys.states),
                    "keys": (query.states, other_keys),
                    "both": (queries, other_keys),
                }
                for side, states in sides.items():
                    changed = Outcome.of(model, trace, *states).change_from(alone)  # (3,)
                    question = (way, side, part)
                    self.changes[question] = self.changes.get(question, 0) + changed

    def effects(self) -> dict:
        """Return the mean of each outcome, by way, side, part and outcome."""
        means: dict = {way: {side: {} for side in FACTOR_SIDES} for way in WAYS}
        for (way, side, part), total in self.changes.items():
            outcome = dict(zip(OUTCOMES, (total / self.rows).tolist(), strict=True))
            for same_donors in WAYS if part == "temporal" else (way,):
                means[same_donors][side][part] = outcome
        return means


@dataclass(frozen=True, eq=False)
class Outcome:
    """Attention at the valid steps of a batch, the next word's distribution, and the summed loss."""

    attention: Float[Tensor, "row source"]
    words: Float[Tensor, "row words"]
    loss: Float[Tensor, ""]

    @classmethod
    def of(cls, model: EncoderDecoder, trace: Trace, queries: Tensor, keys: Tensor) -> "Outcome":
        """Attend with these queries and keys; values and readout have the states of the trace."""
        attention, logits = attend_and_read(model, trace, {"decoder": queries, "encoder": keys})
        rows = trace.target_mask
        scores = logits[rows].double()  # (row, words)
        loss = cross_entropy(scores, trace.target_outputs[rows], reduction="sum")
        return cls(attention=attention[rows].double(), words=scores.softmax(-1), loss=loss)

    def change_from(self, alone: "Outcome") -> Float[Tensor, " outcomes"]:
        """Return how far attention, output and loss are from those of the network left alone, summed."""
        attention = total_variation(self.attention, alone.attention).sum()
        words = total_variation(self.words, alone.words).sum()
        return torch.stack([attention, words, self.loss - alone.loss]).cpu()


def _attributions(shares: ShareSums, substitution: SubstitutionSums) -> dict:
    """Return what each attribution says, by side, part and attribution."""
    terms_shares, rebuilt = shares.result(), substitution.result()
    terms = []
    for decoder, encoder in PAIRS:
        pair = STATE_PARTS.index(decoder), STATE_PARTS.index(encoder)
        row = {
            "term": f"{decoder}·{encoder}",
            "covariance_share": float(terms_shares.covariance[pair]),
            "mean_absolute_share": float(terms_shares.mean_absolute[pair]),
            "similarity_without": rebuilt[f"without_{decoder}_{encoder}"].similarity,
        }
        terms.append(row)
    return {side: {part: attributions(terms, part, side) for part in STATE_PARTS} for side in FACTOR_SIDES}


class Config(SuiteConfig):
    """Settings of the task suite, cells beside the GRU, and how much is replaced."""

    more_cells: tuple[Cell, ...] = setting((), "cells of AED that are added on some tasks only")
    cells_on: tuple[Task, ...] = setting(CELL_TASKS, "the tasks on which they are")
    needs_memory: tuple[Task, ...] = setting(
        (*DIAL[1:], "reversal", "scan", "scan_extended"),
        "tasks without AO: it does not learn what no position alone decides, and only learned networks count",
    )
    samples: Positive = setting(
        200, "held-out samples of each network in whose forward pass parts are replaced, at most"
    )
    translated: Positive = setting(
        200, "held-out sentences that each translator writes, which tell whether it counts"
    )


QUICK_TASKS = ("one_to_one", "reordering_50", "scan")
PROFILES = {
    "quick": Config(task=QUICK_TASKS),
    "paper": Config(
        task=PAPER_TASKS,
        scale="paper",
        fit_samples=25_000,
        more_cells=("lstm", "vanilla", "ugrnn"),
        samples=1_500,
        translated=1_000,
    ),
    "tiny": Config(
        task=("one_to_one", "reordering_50"), seeds=1, width=8, steps=3, fit_samples=100, samples=60
    ),
}


def networks(config: Config) -> tuple[ModelSpec, ...]:
    """Every network with attention that the plan has, but for attention only where it does not learn."""
    return tuple(
        spec
        for spec in model_specs_and_cells(config)
        if spec.architecture != "AO" or task_name_of(spec) not in config.needs_memory
    )


def measurements(config: Config) -> tuple[Measurement, ...]:
    translators = translator_measurements(networks(config), config.translated)
    return (*_calibrations(config), *translators)


def _calibrations(config: Config) -> tuple[Measurement, ...]:
    how = {"fit_samples": config.fit_samples, "samples": config.samples}
    return measurements_of(networks(config), measure_calibration, **how)


# How well attributions predict effects, over networks.

DOES_WELL = 0.7  # a rank correlation that ties half of the variance of ranks

OUTCOME_MEANINGS = ATTENTION_MOVED | {
    "output": "mean total variation between distributions of the next word",
    "loss": "change of the mean cross-entropy, in nats a word",
}
EFFECT_COLUMNS = {
    "attention": share("mean total variation of attention"),
    "output": share("mean total variation of the next word's distribution"),
    "loss": Column("change of the mean cross-entropy", unit="nats a word"),
}
EFFECTS = {
    f"{way}_{outcome}": replace(
        EFFECT_COLUMNS[outcome], meaning=f"{EFFECT_COLUMNS[outcome].meaning}, with {WAY_MEANINGS[way]}"
    )
    for way, outcome in product(WAYS, OUTCOMES)
}
AXES = axes_of(OUTCOME_MEANINGS)
OF_FAMILY = {
    **FAMILY,
    "networks": Column("networks that count", low=0),
    **{
        f"{name}_rank": Column(
            f"rank correlation over networks and parts with the attention moved of: {meaning}", low=-1, high=1
        )
        for name, meaning in ATTRIBUTION_MEANINGS.items()
    },
    **{
        f"{name}_hits": Column(f"networks whose most effective part is largest by: {meaning}", low=0)
        for name, meaning in ATTRIBUTION_MEANINGS.items()
    },
    "does_well": Column(
        f"True if one attribution has a rank correlation of at least {DOES_WELL} and names the "
        "most effective part of more than half of the networks"
    ),
}

NETWORKS = {
    "networks": Column(
        "networks that count",
        categories={
            "all": "of all tasks; families of tasks are resampled, and networks within each",
            "dial": "GRUs with attention along the dial; networks are resampled within each mark",
        },
    )
}
FAMILIES_DRAWN = Bootstrap(groups="family")
MARKS_KEPT = Bootstrap(groups="task", draws_groups=False)


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Compare attributions with effects over the networks that have learned their task.

    ``rank`` is Spearman's correlation between an attribution and an effect, over networks and, under
    ``every``, parts; ``hits``, the share of networks in which the attribution is largest for the part with
    the largest effect; ``missed``, in which no attribution is. Intervals resample families of tasks, and
    networks within each. The same of GRUs along the dial keeps its marks and draws networks. ``families`` has
    no intervals. ``along_dial`` and ``dial_ends`` say how each effect changes from the first mark of the dial
    to the last, and ``dial_leads``, how much larger that of memory is than that of position at each mark.
    """
    points = suite_frame(
        _calibrations(config),
        store,
        records=_points,
        columns=POINT | ATTRIBUTED | EFFECTS | QUALITY,
        row="a part of a network's states, on one side or both",
    )
    translators = translators_that_count(networks(config), config.translated, store)
    points = with_learned(with_family(points), translators)
    counting = _that_count(points)
    along_dial = on_dial(counting.query("kind == 'AED'"))
    how = {"unit": list(NETWORK), "outcomes": OUTCOME_MEANINGS}
    over_families = calibrated(counting, **how, resampled=FAMILIES_DRAWN)
    over_marks = calibrated(along_dial, **how, resampled=MARKS_KEPT)
    return {
        "points": points.select(*SUITE, *FAMILY, *LEARNED, *POINT, *ATTRIBUTED, *EFFECTS),
        "families": by_family(counting),
        **{
            name: joined([_among(over_families[name], "all"), _among(over_marks[name], "dial")])
            for name in AXES
        },
        "along_dial": correlations(along_dial, "mark", EFFECTS, by=["side", "part"], resampled=MARKS_KEPT),
        "dial_ends": end_differences(along_dial, "mark", EFFECTS, by=["side", "part"], resampled=MARKS_KEPT),
        "dial_leads": summarise(leads_of_memory(along_dial), ["task", "side"], EFFECTS),
    }


def leads_of_memory(points: Table) -> Table:
    """Return effects of residuals minus those of temporal parts, of the same networks and sides."""
    residual, temporal = points.query("part == 'residual'"), points.query("part == 'temporal'")
    return differences(residual, temporal, EFFECTS, on=[*NETWORK, "side"])


def _among(estimates: Table, chosen: str) -> Table:
    """Return estimates with a first column that says of which networks they are."""
    named = estimates.assign(NETWORKS, networks=chosen)
    return named.select(*NETWORKS, *estimates.columns)


def _points(calibration: dict) -> list[dict]:
    """Return a record for each side and part of one network, in the order of their names."""
    records = []
    for side, part in product(FACTOR_SIDES, STATE_PARTS):
        record = {"side": side, "part": part, **calibration["quality"]}
        record |= calibration["attributions"][side][part]
        for way, outcome in product(WAYS, OUTCOMES):
            record[f"{way}_{outcome}"] = calibration["effects"][way][side][part][outcome]
        records.append(record)
    return records


def _that_count(points: Table) -> Table:
    """Return the networks that have learned their task and have shares: scores that do not vary have none."""
    frame = points.frame
    numbers = frame[[*ATTRIBUTED, *EFFECTS]].astype(float)
    is_defined = np.isfinite(numbers).all(axis=1).groupby([frame[name] for name in NETWORK]).transform("all")
    return points.with_rows(frame[frame["learned"] & is_defined])


def by_family(points: Table) -> Table:
    """Return, for each family, how well every attribution does: both sides exchanged, judged by attention.

    An attribution does well in a family where its rank correlation over networks and parts is at least
    :data:`DOES_WELL`, and where it names the most effective part of more than half of the networks.
    """
    exchange, both, attention = (
        WAYS.index("exchange"),
        FACTOR_SIDES.index("both"),
        OUTCOMES.index("attention"),
    )
    records = []
    for name, rows in points.frame.groupby("family", sort=False):
        calibrations = Calibrations.of(points.with_rows(rows), OUTCOMES)
        n_networks = len(calibrations)
        of_family = statistics(calibrations, np.ones((1, n_networks)))
        rank = of_family["rank"][0, exchange, both, attention, SETS.index(EVERY)]  # (attribution,)
        hits = of_family["hits"][0, exchange, both, attention]  # (attribution,)
        record = {"family": name, "networks": n_networks}
        for attribution, correlation, hit_rate in zip(ATTRIBUTIONS, rank, hits, strict=True):
            record[f"{attribution}_rank"] = float(correlation)
            record[f"{attribution}_hits"] = round(float(hit_rate) * n_networks)
        record["does_well"] = bool(((rank >= DOES_WELL) & (hits > 0.5)).any())
        records.append(record)
    return Table.of(records, OF_FAMILY, "a family of tasks")


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return how well attributions predict effects, of all networks and, under ``dial``, along the dial.

    ``dial.along.<side>.<part>.<effect>`` is the effect's rank correlation with the mark of the dial;
    ``dial.ends.<side>.<part>.<effect>`` is its mean at the last mark minus that at the first, and
    ``dial.leads.<task>.<side>.<effect>`` the effect of residuals minus that of temporal parts.
    """
    families = tables["families"]
    counts = {
        "networks": _networks_of(tables["rank"], "all"),
        "families": len(families.frame),
        "dial.networks": _networks_of(tables["rank"], "dial"),
        "families_where_none_does_well": _none_does_well(families),
    }
    keys = []
    for name, axes in AXES.items():
        key = key_of(name, axes)
        keys.append(keyed(tables[name].query("networks == 'all'"), key))
        keys.append(keyed(tables[name].query("networks == 'dial'"), f"dial.{key}"))
    of_family = keyed(families, "by_family.{family}.{column}", OF_FAMILY)
    along_dial = keyed(tables["along_dial"], "dial.along.{side}.{part}.{quantity}")
    dial_ends = keyed(tables["dial_ends"], "dial.ends.{side}.{part}.{quantity}")
    leads = keyed(tables["dial_leads"], "dial.leads.{task}.{side}.{quantity}")
    return view({"by_family": {}}, _without_dial(), counts, of_family, along_dial, dial_ends, leads, *keys)


def _without_dial() -> dict[str, Interval]:
    """Return what is at the keys of the dial where no network is on it."""
    changes = {
        f"dial.{change}.{side}.{part}.{effect}": interval_of()
        for change, side, part, effect in product(("along", "ends"), FACTOR_SIDES, STATE_PARTS, EFFECTS)
    }
    leads = {
        f"dial.leads.{task}.{side}.{effect}": interval_of()
        for task, side, effect in product(DIAL, FACTOR_SIDES, EFFECTS)
    }
    return changes | leads


def _networks_of(estimates: Table, chosen: str) -> int:
    """Return how many networks the estimates are of."""
    return int(estimates.query("networks == @chosen", chosen=chosen).frame["n"].iloc[0])


def _none_does_well(families: Table) -> int | None:
    """Return how many families there are in which no attribution does well; None of too few families."""
    if len(families.frame) < FEWEST:
        return None
    return int((~families.frame["does_well"].astype(bool)).sum())
