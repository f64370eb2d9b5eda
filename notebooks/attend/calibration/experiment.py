"""Do shares say what matters? Attributions of each part, against what happens when the part is replaced."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from companion.results.config import Positive, Task
from companion.results.measurements import Measurement, measurements_of
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from companion.runs.suite import point, task_name_of
from notebooks.shared.intervals import TAILS, drawn_rows, interval, kind
from notebooks.shared.measure import attend_and_read, fit_components
from notebooks.shared.plan import by_spec
from notebooks.shared.suite import CELL_TASKS, DIAL, PAPER_TASKS, SuiteConfig, family, model_specs_and_cells
from notebooks.shared.summaries import BOOTSTRAP_SEED
from notebooks.shared.translators import has_learned, translator_measurements, translators_that_count

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
        own = getattr(self.parts, part)
        return self.states - own + self.donors.origin(way, part).of(own)


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
    found, rebuilt = shares.result(), substitution.result()
    terms = []
    for decoder, encoder in PAIRS:
        pair = STATE_PARTS.index(decoder), STATE_PARTS.index(encoder)
        row = {
            "term": f"{decoder}·{encoder}",
            "covariance_share": float(found.covariance[pair]),
            "mean_absolute_share": float(found.mean_absolute[pair]),
            "similarity_without": rebuilt[f"without_{decoder}_{encoder}"].similarity,
        }
        terms.append(row)
    return {side: {part: attributions(terms, part, side) for part in STATE_PARTS} for side in FACTOR_SIDES}


class Config(SuiteConfig):
    """Settings of the task suite, cells beside the GRU, and how much is replaced."""

    more_cells: tuple[Cell, ...] = ()  #: cells of AED that are added on some tasks only
    cells_on: tuple[Task, ...] = CELL_TASKS  #: the tasks on which they are
    #: tasks without AO: it does not learn what no position alone decides, and only learned networks count
    needs_memory: tuple[Task, ...] = (*DIAL[1:], "reversal", "scan", "scan_extended")
    #: held-out samples of each network in whose forward pass parts are replaced, at most
    samples: Positive = 200
    #: held-out sentences that each translator writes, which tell whether it counts
    translated: Positive = 200


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

Network = tuple[dict, dict]  # its columns, and what was measured of it
EVERY = "every"  # the three parts, each a point of its own
SETS = (*STATE_PARTS, EVERY)
# What two attributions are compared by: how much better the first one predicts.
DIFFERENCES = {
    "split_minus_own": ("split", "own"),
    "any_term_minus_split": ("any_term", "split"),
    "mean_absolute_minus_split": ("mean_absolute", "split"),
    "split_minus_substitution": ("split", "substitution"),
    "own_minus_substitution": ("own", "substitution"),
}
RESAMPLES = 2000
AT_ONCE = 200  # resamples that are held in memory together
FEWEST = 3  # networks, and families where these are resampled: fewer say nothing of others
DOES_WELL = 0.7  # a rank correlation that ties half of the variance of ranks


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Compare attributions with effects over the networks that have learned their task.

    ``rank`` is Spearman's correlation between an attribution and an effect, over networks and, under
    ``every``, parts; ``hits``, the share of networks in which the attribution is largest for the part with
    the largest effect; ``missed``, in which no attribution is. Intervals resample families of tasks, and
    networks within each; all numbers, and so all differences, see the same draws. ``dial`` has the same of
    GRUs along the dial, whose marks are kept and whose networks are drawn. ``by_family`` has no intervals.
    """
    specs = networks(config)
    counting = translators_that_count(specs, config.translated, store)
    measured, rows = [], []
    for spec, found in by_spec(_calibrations(config), store).items():
        name, calibration = point(spec), found["calibration"]
        learned = has_learned(name, calibration["quality"]["token_accuracy"], counting)
        columns = name | {"kind": kind(name), "family": family(name["task"]), "learned": learned}
        rows += _rows(columns, calibration)
        if learned and _is_defined(calibration):
            measured.append((columns, calibration))
    along_dial = [(name, found) for name, found in measured if name["task"] in DIAL and name["kind"] == "AED"]
    by_family = list(_by_family(measured))
    values = {
        "networks": len(measured),
        "families": len(by_family),
        **calibrated(measured, by="family"),
        "dial": {"networks": len(along_dial)} | calibrated(along_dial, by="task", nested=False),
        "by_family": {row["family"]: row for row in by_family},
        "families_where_none_does_well": _none_does_well(by_family),
    }
    return values, {"points": rows, "families": by_family}


def _is_defined(calibration: Mapping) -> bool:
    """Shares do not exist where scores do not vary."""
    table = Table.of([({}, calibration)])
    return bool(np.isfinite(table.attributions).all() and np.isfinite(table.effects).all())


def _rows(columns: Mapping, calibration: Mapping) -> list[dict]:
    """A row for each side and part of one network."""
    rows = []
    for side in FACTOR_SIDES:
        for part in STATE_PARTS:
            row = {**columns, "side": side, "part": part, **calibration["attributions"][side][part]}
            for way in WAYS:
                effects = calibration["effects"][way][side][part]
                row |= {f"{way}_{outcome}": effects[outcome] for outcome in OUTCOMES}
            rows.append(row)
    return rows


@dataclass(frozen=True, eq=False)
class Table:
    """Attributions and effects of several networks, in the order of the names of each axis."""

    attributions: Float[np.ndarray, "network side part attribution"]
    effects: Float[np.ndarray, "network way side part outcome"]

    @classmethod
    def of(cls, measured: Sequence[Network]) -> "Table":
        shares, moved = [], []
        for _, found in measured:
            shares.append(_array(found["attributions"], FACTOR_SIDES, STATE_PARTS, ATTRIBUTIONS))
            moved.append(_array(found["effects"], WAYS, FACTOR_SIDES, STATE_PARTS, OUTCOMES))
        return cls(np.array(shares), np.array(moved))

    def __len__(self) -> int:
        return len(self.attributions)


def _array(nested: Mapping, *axes: Sequence[str]) -> Float[np.ndarray, "..."]:
    """Numbers of a nested mapping, in the order of these names."""
    if not axes:
        return np.array(nested, dtype=np.float64)
    return np.stack([_array(nested[name], *axes[1:]) for name in axes[0]])


Counts = Float[np.ndarray, "resample network"]  # how often each network is in a resample


def statistics(table: Table, counts: Counts) -> dict[str, Float[np.ndarray, "resample ..."]]:
    """Rank correlations and hit rates in each resample of the networks, as arrays by name.

    ``rank`` has the axes resample, way, side, outcome, set of parts, attribution; ``hits`` has these without
    the parts; ``missed`` resample, way, side, outcome. ``ways``, the correlation of effects of both ways, has
    resample, side, outcome, and the parts whose donors differ.
    """
    ranks, ways = [], []
    for parts in ([0], [1], [2], [0, 1, 2]):
        shares = _ranks(np.moveaxis(table.attributions[:, :, parts], 2, 1), counts)
        effects = _ranks(np.moveaxis(table.effects[:, :, :, parts], 3, 1), counts)
        ranks.append(np.einsum("rpsa,rpwso->rwsoa", shares, effects))
        ways.append((effects[:, :, 0] * effects[:, :, 1]).sum(1))  # (resample, side, outcome)
    named = table.attributions.argmax(2)  # (network, side, attribution)
    largest = table.effects.argmax(3)  # (network, way, side, outcome)
    hits = largest[..., None] == named[:, None, :, None, :]  # (network, way, side, outcome, attribution)
    weights = counts / counts.sum(1, keepdims=True)  # (resample, network)
    return {
        "rank": np.stack(ranks, axis=4),
        "hits": np.tensordot(weights, hits, axes=1),
        "missed": np.tensordot(weights, ~hits.any(-1), axes=1),
        "ways": np.stack(ways[1:3], axis=3),
    }


def _ranks(
    values: Float[np.ndarray, "network part *columns"], counts: Counts
) -> Float[np.ndarray, "resample point *columns"]:
    """Ranks over networks and parts, such that the product of two columns sums to Spearman's correlation.

    A point that is drawn several times is as many ties, which share their mean rank.
    """
    networks, parts, *columns = values.shape
    points = values.reshape(networks * parts, -1)  # (point, column)
    often = counts.repeat(parts, axis=1)  # (resample, point)
    ranks = np.empty((len(often), *points.shape))
    for column, numbers in enumerate(points.T):
        order = numbers.argsort(kind="stable")
        ordered = numbers[order]
        first, last = ordered.searchsorted(ordered, "left"), ordered.searchsorted(ordered, "right") - 1
        up_to = often[:, order].cumsum(1)  # (resample, point): draws at this place of the order or before
        smaller = up_to[:, first] - often[:, order[first]]
        ranks[:, order, column] = (smaller + 1 + up_to[:, last]) / 2
    mean = (often[..., None] * ranks).sum(1, keepdims=True) / often.sum(1)[:, None, None]
    centred = np.sqrt(often)[..., None] * (ranks - mean)  # (resample, point, column)
    length = np.sqrt((centred**2).sum(1, keepdims=True))
    unit = centred / np.where(length > 0, length, np.nan)
    return unit.reshape(*unit.shape[:2], *columns)


def calibrated(measured: Sequence[Network], *, by: str, nested: bool = True) -> dict:
    """Statistics with their intervals, nested by the names of their axes; of too few, no numbers.

    Args:
        measured: networks that count.
        by: the column whose groups are resampled.
        nested: draw groups, and networks within them; else keep every group.
    """
    axes = {
        "rank": (WAYS, FACTOR_SIDES, OUTCOMES, SETS, ATTRIBUTIONS),
        "differences": (WAYS, FACTOR_SIDES, OUTCOMES, SETS, tuple(DIFFERENCES)),
        "fades": (WAYS, FACTOR_SIDES, OUTCOMES[1:], SETS, ATTRIBUTIONS),
        "hits": (WAYS, FACTOR_SIDES, OUTCOMES, ATTRIBUTIONS),
        "hit_differences": (WAYS, FACTOR_SIDES, OUTCOMES, tuple(DIFFERENCES)),
        "missed": (WAYS, FACTOR_SIDES, OUTCOMES),
        "ways": (FACTOR_SIDES, OUTCOMES, STATE_PARTS[1:]),
    }
    groups: dict[str, list[int]] = {}
    for place, (columns, _) in enumerate(measured):
        groups.setdefault(columns[by], []).append(place)
    if len(measured) < FEWEST or (nested and len(groups) < FEWEST):
        return {name: _named(of_axes, None, None, len(measured)) for name, of_axes in axes.items()}
    table = Table.of(measured)
    once = np.ones((1, len(table)))
    value = _with_differences(statistics(table, once))
    bounds = _bounds(table, [np.array(members) for members in groups.values()], nested=nested)
    return {name: _named(of_axes, value[name][0], bounds[name], len(table)) for name, of_axes in axes.items()}


def _with_differences(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Add what attributions differ by; and ``fades``, the rank on attention minus that further on."""
    pairs = [
        (ATTRIBUTIONS.index(first), ATTRIBUTIONS.index(second)) for first, second in DIFFERENCES.values()
    ]
    differences = {}
    for name in ("rank", "hits"):
        of_pairs = [found[name][..., first] - found[name][..., second] for first, second in pairs]
        differences[name] = np.stack(of_pairs, axis=-1)
    return found | {
        "differences": differences["rank"],
        "hit_differences": differences["hits"],
        "fades": found["rank"][:, :, :, :1] - found["rank"][:, :, :, 1:],  # axis 3 is the outcome
    }


def _bounds(table: Table, groups: Sequence[np.ndarray], *, nested: bool) -> dict[str, np.ndarray]:
    """Both ends of the percentile interval of each statistic, along the first axis."""
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    drawn: dict[str, list[np.ndarray]] = {}
    for _ in range(0, RESAMPLES, AT_ONCE):
        samples = [drawn_rows(groups, generator, nested=nested) for _ in range(AT_ONCE)]
        counts = np.stack([np.bincount(sample, minlength=len(table)) for sample in samples]).astype(float)
        for name, statistic in _with_differences(statistics(table, counts)).items():
            drawn.setdefault(name, []).append(statistic)
    return {name: _quantiles(np.concatenate(statistic)) for name, statistic in drawn.items()}


def _quantiles(drawn: Float[np.ndarray, "resample ..."]) -> Float[np.ndarray, "2 ..."]:
    """Of the resamples where a number exists; NaN where it does in none."""
    never = np.isnan(drawn).all(0)
    filled = np.where(never, 0.0, drawn)
    return np.where(never, np.nan, np.nanquantile(filled, TAILS, axis=0))


def _named(axes: Sequence[Sequence[str]], value: np.ndarray | None, bounds: np.ndarray | None, n: int):
    """Intervals by the names of each axis; without numbers where there are none."""
    if axes:
        inner = {}
        for place, name in enumerate(axes[0]):
            of_name = None if value is None else value[place]
            its_bounds = None if bounds is None else bounds[:, place]
            inner[name] = _named(axes[1:], of_name, its_bounds, n)
        return inner
    if value is None or bounds is None:
        return interval(None, None, None, n)
    low, high = map(_number, bounds)
    return interval(_number(value), low, high, n)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _none_does_well(by_family: Sequence[Mapping]) -> int | None:
    """How many families there are in which no attribution does well; None of too few families."""
    if len(by_family) < FEWEST:
        return None
    return sum(not row["does_well"] for row in by_family)


def _by_family(measured: Sequence[Network]) -> list[dict]:
    """For each family, how well every attribution does: both sides exchanged, judged by attention.

    An attribution does well in a family where its rank correlation over networks and parts is at least
    :data:`DOES_WELL`, and where it names the most effective part of more than half of the networks.
    """
    families: dict[str, list[Network]] = {}
    for columns, found in measured:
        families.setdefault(columns["family"], []).append((columns, found))
    rows = []
    exchange, both, attention = (
        WAYS.index("exchange"),
        FACTOR_SIDES.index("both"),
        OUTCOMES.index("attention"),
    )
    for name, members in families.items():
        found = statistics(Table.of(members), np.ones((1, len(members))))
        rank = found["rank"][0, exchange, both, attention, SETS.index(EVERY)]  # (attribution,)
        hits = found["hits"][0, exchange, both, attention]  # (attribution,)
        row = {"family": name, "networks": len(members)}
        row |= {f"{attribution}_rank": float(rank[place]) for place, attribution in enumerate(ATTRIBUTIONS)}
        row |= {
            f"{attribution}_hits": round(float(hits[place]) * len(members))
            for place, attribution in enumerate(ATTRIBUTIONS)
        }
        row["does_well"] = bool(((rank >= DOES_WELL) & (hits > 0.5)).any())
        rows.append(row)
    return rows
