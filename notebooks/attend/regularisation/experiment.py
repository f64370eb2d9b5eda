"""Weight decay as an axis: how much of the temporal share and of the residuals' part depends on it.

Three things may be in the residual Δ_t, each fitted on training samples and judged on held-out ones:

===============  ==============================================================================
``interaction``  what position and word tell together: the mean residual of (position, word)
``clock``        a clock of the sentence's own: the mean residual of (position, sentence length)
``history``      the words before: Δ_t ≈ Σ_{k = 1 … LAGS} B_k(w_{t−k}) by least squares
===============  ==============================================================================

Each stands in for the residuals of both sides when attention is rebuilt. The fourth candidate is scale, which
one temperature for all rows would mend.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.decomposition import STATE_PARTS, Parts, alignment_terms
from attnlib.decomposition.rows import centred, total_variation, valid_rows
from attnlib.models.corpus import Corpus
from attnlib.softmax import softmax_over
from attnlib.trace import Trace
from companion.results.config import AboveZero, Attending, Field, Positive, Task, changes_of, setting
from companion.results.frames import Table, frame, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import NETWORK, Column, Columns, share
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from companion.runs.suite import spec_of
from notebooks.shared.intervals import interval_of
from notebooks.shared.measure import (
    LAGS,
    Fitted,
    fit_components,
    lagged_words,
    measure_alignment_terms,
    measure_interchange,
)
from notebooks.shared.suite import DIAL, PlannedConfig, each_planned, outcomes
from notebooks.shared.suite import OUTCOMES as SUITE_OUTCOMES
from notebooks.shared.summaries import differences, level_key, summarise

MOST_WORDS = 400  # of a vocabulary whose history is regressed on: beyond, there are too few samples
SIDES = ("decoder", "encoder")
CONTENTS = ("interaction", "clock", "history")
TEMPERATURES = 2.0 ** (torch.arange(-8, 17) / 4)  # a quarter to sixteen
Guess = Callable[[Parts, Int[Tensor, "batch length"]], Float[Tensor, "batch length width"]]


@measure(version=1)
def measure_residual_contents(trained: TrainedModel, fit_samples: int, samples: int) -> dict:
    """Contents of the residuals of both sides, and the attention that each rebuilds.

    ``explained.<side>``: share of the residual's variance that each of the contents predicts;
    ``share.<side>``: the residual's in the variance of states about their mean; ``scale``: root mean square
    of states by side, and standard deviation of centred scores. ``rebuilt``: similarity and agreement of the
    largest weight with the network's own attention, without residuals (``none``), with the best temperature
    for all rows, and with each of the contents as the residual. ``foreign``: the same, between attention on a
    sample and where the decoder reads the words of another one of the same lengths; ``accuracy`` of the words
    written then, and ``samples``, how many have a partner.
    """
    fitted = fit_components(trained, fit_samples)
    task = trained.task
    fit, held_out = (part.subset(np.arange(min(samples, len(part)))) for part in (task.train, task.held_out))
    guesses = {side: dict(_guesses(trained, fit, fitted, side)) for side in SIDES}
    contents = [name for name in CONTENTS if all(name in guesses[side] for side in SIDES)]
    explained = {side: {name: np.zeros(2) for name in contents} for side in SIDES}
    variance, scale = ({side: np.zeros(2) for side in (*SIDES, "scores")} for _ in range(2))
    rebuilt: dict[str, np.ndarray] = {}
    tempered = torch.zeros(len(TEMPERATURES), 2, dtype=torch.float64)
    for trace in traces(trained.model, held_out):
        parts = dict(zip(SIDES, fitted.split(trace), strict=True))
        predicted = {side: _predicted(guesses[side], parts[side], trace, side) for side in SIDES}
        for side, of_side in parts.items():
            valid = of_side.mask  # (batch, length)
            states = of_side.total()  # (batch, length, width)
            deviations = states - _mean_state(fitted, side).to(of_side.temporal) * valid[..., None]
            residual_squares = _squares(of_side.residual[valid])
            variance[side] += residual_squares, _squares(deviations[valid])
            scale[side] += _squares(states[valid]), of_side.valid
            for name in contents:
                missed = _squares((of_side.residual - predicted[side][name])[valid])
                explained[side][name] += residual_squares - missed, residual_squares
        network_rows, valid = _rows(trace.scores, trace)
        for name in ("none", *contents):
            decoder, encoder = (_with(parts[side], predicted[side].get(name)) for side in SIDES)
            rows, _ = _rows(alignment_terms(decoder, encoder).sum((0, 1)), trace)
            rebuilt[name] = rebuilt.get(name, 0) + _agreement(rows, network_rows, valid)
            if name == "none":
                scale["scores"] += _squares(centred(network_rows, valid)), int(valid.sum())
                for place, factor in enumerate(TEMPERATURES.tolist()):
                    similar, _, count = _agreement(rows * factor, network_rows, valid)
                    tempered[place] += torch.tensor([similar, count], dtype=torch.float64)
    similarity = tempered[:, 0] / tempered[:, 1]
    best = int(similarity.argmax())
    return {
        "explained": {
            side: {name: _ratio(*sums) for name, sums in by_content.items()}
            for side, by_content in explained.items()
        },
        "share": {side: _ratio(*variance[side]) for side in SIDES},
        "scale": {name: _ratio(*sums) ** 0.5 for name, sums in scale.items()},
        "rebuilt": {name: _named(sums) for name, sums in rebuilt.items()}
        | {"temperature": {"similarity": float(similarity[best]), "factor": float(TEMPERATURES[best])}},
        "foreign": _foreign(trained, held_out),
    }


def _guesses(trained: TrainedModel, corpus: Corpus, fitted: Fitted, side: str) -> Iterator[tuple[str, Guess]]:
    """What predicts the residual of one side, by its name, fitted on a corpus."""
    positions, words = (getattr(fitted, side).temporal.shape[0], getattr(fitted, side).input.shape[0])
    width = trained.model.config.width
    shapes = {"interaction": (positions, words), "clock": (positions, positions + 1)}
    sums = {name: torch.zeros(*shape, width + 1, dtype=torch.float64) for name, shape in shapes.items()}
    lagged = LAGS * words * (words <= MOST_WORDS)
    square = torch.zeros(lagged, lagged, dtype=torch.float64)
    product = torch.zeros(lagged, width, dtype=torch.float64)
    for trace in traces(trained.model, corpus):
        parts, tokens = _side(fitted, trace, side)
        residual = parts.residual[parts.mask].double()
        for name, total in sums.items():
            first, second = _cells(name, parts, tokens)
            counted = torch.cat([residual, torch.ones(len(residual), 1)], dim=1)
            total.index_put_((first, second), counted.to(total), accumulate=True)
        if lagged:
            design = lagged_words(tokens, parts.mask, words).double()
            square += design.T @ design
            product += design.T @ residual
    for name, total in sums.items():
        table = total[..., :-1] / total[..., -1:].clamp(min=1)

        def by_cell(parts: Parts, tokens: Tensor, table=table, name=name) -> Tensor:
            return table[_cells(name, parts, tokens)]

        yield name, by_cell
    if lagged:
        weights = torch.linalg.pinv(square, hermitian=True) @ product

        def by_history(parts: Parts, tokens: Tensor) -> Tensor:
            return lagged_words(tokens, parts.mask, words).double() @ weights

        yield "history", by_history


def _cells(name: str, parts: Parts, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Position, and word or sentence length, of each valid place."""
    places = torch.arange(tokens.shape[1]).expand_as(tokens)[parts.mask]
    lengths = parts.mask.sum(1, keepdim=True).expand_as(tokens)
    return places, (tokens if name == "interaction" else lengths)[parts.mask]


def _side(fitted: Fitted, trace: Trace, side: str) -> tuple[Parts, Int[Tensor, "batch length"]]:
    parts = fitted.split(trace)[SIDES.index(side)]
    return parts, trace.target_tokens if side == "decoder" else trace.source_tokens


def _predicted(guesses: dict[str, Guess], parts: Parts, trace: Trace, side: str) -> dict[str, Tensor]:
    """The residuals that each of the contents predicts, zero at padding."""
    tokens = trace.target_tokens if side == "decoder" else trace.source_tokens
    predicted = {}
    for name, guess in guesses.items():
        predicted[name] = torch.zeros_like(parts.residual)
        predicted[name][parts.mask] = guess(parts, tokens).to(parts.residual)
    return predicted


def _with(parts: Parts, residual: Tensor | None) -> Parts:
    return replace(parts, residual=torch.zeros_like(parts.residual) if residual is None else residual)


def _mean_state(fitted: Fitted, side: str) -> Float[Tensor, " width"]:
    components = getattr(fitted, side)
    counts = components.position_counts.double()
    return counts @ components.temporal.double() / counts.sum()


def _rows(scores: Float[Tensor, "batch target source"], trace: Trace) -> tuple[Tensor, Tensor]:
    return valid_rows(scores, trace.target_mask, trace.source_mask, at_least=2)


def _agreement(rows: Tensor, scores: Tensor, valid: Tensor) -> np.ndarray:
    """Sums of similarity and of rows with their largest weight at the same place, and the number of rows."""
    first, second = softmax_over(rows, valid), softmax_over(scores, valid)
    same = first.argmax(-1) == second.argmax(-1)
    return np.array([float((1 - total_variation(first, second)).sum()), float(same.sum()), len(rows)])


def _foreign(trained: TrainedModel, corpus: Corpus) -> dict[str, float | int | None]:
    """Attention where the decoder reads the target of another sample of the same lengths, against its own."""
    model, sums, right, samples = trained.model, np.zeros(3), np.zeros(2), 0
    for trace in traces(model, corpus):
        lengths = torch.stack([trace.source_mask.sum(1), trace.target_mask.sum(1)], dim=1)
        partner = _partners(lengths)
        chosen = partner >= 0
        if not chosen.any():
            continue
        samples += int(chosen.sum())
        with torch.inference_mode():
            _, last = model.encode(trace.source_tokens, trace.source_mask)
            states = model.decode(trace.target_tokens[partner.clamp(min=0)], last)
            scores = states @ trace.encoder_states.mT
        masks = {"target_mask": trace.target_mask & chosen[:, None]}
        rows, valid = _rows(scores, replace(trace, **masks))
        sums += _agreement(rows, _rows(trace.scores, replace(trace, **masks))[0], valid)
        attention = scores.masked_fill(~trace.source_mask[:, None, :], -torch.inf).softmax(-1)
        context = attention @ trace.encoder_states
        with torch.no_grad():
            words = model.readout(torch.cat([states, context], dim=-1)).argmax(-1)
        judged = trace.target_mask & chosen[:, None]
        right += float((words == trace.target_outputs)[judged].sum()), int(judged.sum())
    return _named(sums) | {"accuracy": _ratio(*right), "samples": samples}


def _partners(lengths: Int[Tensor, "batch 2"]) -> Int[Tensor, " batch"]:
    """For each sample the next one of the same lengths, the last one's being the first; −1 without any.

    >>> _partners(torch.tensor([[2, 2], [3, 2], [2, 2]])).tolist()
    [2, -1, 0]
    """
    partner = torch.full((len(lengths),), -1)
    for cell in lengths.unique(dim=0):
        members = (lengths == cell).all(1).nonzero().flatten()
        if len(members) > 1:
            partner[members] = members.roll(-1)
    return partner


def _squares(values: Tensor) -> float:
    return float(values.double().square().sum())


def _ratio(part: float, whole: float) -> float | None:
    return round(float(part / whole), 6) if whole else None


def _named(sums: np.ndarray) -> dict[str, float | None]:
    return {"similarity": _ratio(sums[0], sums[2]), "argmax_agreement": _ratio(sums[1], sums[2])}


class Config(PlannedConfig):
    """Settings; a network is a task × architecture × level of weight decay × seed."""

    task: tuple[Task, ...] = ("one_to_one",)
    architecture: tuple[Attending, ...] = setting(("AED",), "AED, AO")
    weight_decay: tuple[Annotated[float, Field(ge=0)], ...] = setting(
        (0.0, 1e-3), "levels; the plan's own is 0"
    )
    widths: tuple[Positive, ...] = setting(
        (32,), "of states and embeddings, for the first task without weight decay, beside the plan's"
    )
    length: tuple[AboveZero, ...] = setting((), "multiples of the planned updates, likewise")
    seeds: Positive | None = 3
    planned: int = setting(
        0,
        "1: without weight decay the nine terms of all networks that the plan has, which "
        "other chapters measure",
    )
    samples: Positive = setting(
        200, "samples that the contents of residuals are fitted on, and as many to judge them on, at most"
    )


PROFILES = {
    "quick": Config(),
    "paper": Config(
        scale="paper",
        task=("one_to_one", "reversal", *DIAL[::2], "scan", "multi30k_en_fr"),
        architecture=("AED", "AO"),
        weight_decay=(0.0, 1e-4, 1e-3, 3e-3, 1e-2),
        widths=(32, 64, 256, 512),
        length=(0.5, 2.0),
        fit_samples=25_000,
        samples=1_500,
        planned=1,
    ),
    "tiny": Config(
        weight_decay=(0.0, 1e-4, 1e-3, 3e-3, 1e-2), widths=(16,), length=(0.5, 2.0), seeds=1, width=8,
        steps=3, fit_samples=100, samples=60,
    ),
}  # fmt: skip


def axis(config: Config) -> dict[ModelSpec, dict[str, object]]:
    """The networks along the axis, with the columns that name them."""
    columns, changes = {}, changes_of(config)
    along = product(range(config.seeds or 3), config.architecture, config.task, config.weight_decay)
    for seed, architecture, task, level in along:
        spec = spec_of(task, architecture, scale=config.scale, seed=seed, weight_decay=level, **changes)
        columns[spec] = {"task": task, "architecture": architecture, "weight_decay": level, "seed": seed}
    return columns


def planned(config: Config) -> dict[ModelSpec, dict[str, object]]:
    """The plan's own networks of each kind, which have no weight decay, with their columns."""
    if not config.planned:
        return {}
    return {
        spec: {"task": task, "architecture": architecture, "weight_decay": 0.0, "seed": spec.seed}
        for architecture, task in product(config.architecture, config.task)
        for spec in each_planned(replace(config, seeds=None), task, architecture)
    }


def others(config: Config) -> dict[ModelSpec, dict[str, object]]:
    """Networks of the first task without decay, of other widths or training lengths, with their columns."""
    columns = {}
    for plan in each_planned(config, config.task[0], "AED", config.seeds or 3):
        for width in sorted({plan.width, *config.widths}):
            columns[replace(plan, width=width)] = {"factor": "width", "level": width, "seed": plan.seed}
        for length in config.length:
            longer = replace(plan, steps=max(1, round(length * plan.steps)))
            columns[longer] = {"factor": "length", "level": length, "seed": plan.seed}
    return columns


def _terms_of(specs: Iterable[ModelSpec], config: Config) -> tuple[Measurement, ...]:
    return measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples)


def _contents_of(specs: Iterable[ModelSpec], config: Config) -> tuple[Measurement, ...]:
    settings = {"fit_samples": config.fit_samples, "samples": config.samples}
    return (
        *measurements_of(specs, measure_residual_contents, **settings),
        *measurements_of(specs, measure_interchange, **settings),
    )


def measurements(config: Config) -> tuple[Measurement, ...]:
    along = axis(config)
    specs = dict.fromkeys((*along, *planned(config), *others(config)))
    return (*_terms_of(specs, config), *_contents_of(along, config))


KIND = {"task": NETWORK["task"], "architecture": NETWORK["architecture"]}
LEVEL = KIND | {"weight_decay": Column("L2 penalty, added to the gradient", low=0)}
NAMES = LEVEL | {"seed": NETWORK["seed"]}
FACTOR = {
    "factor": Column("what is varied without weight decay: width of the network, or length of training"),
    "level": Column("width of states and embeddings, or multiple of the planned updates"),
}
OUTCOMES = {
    "accuracy": share("next words of held-out samples that are predicted correctly"),
    "exact_match": SUITE_OUTCOMES["exact_match"],
    "typicality": SUITE_OUTCOMES["typicality"],
    "temporal_share": Column("covariance of the temporal term with the score, over the score's variance"),
    "input_share": Column("the same of the input term"),
    "residual_share": Column("the same of the five terms with a residual"),
    "no_residual": share(
        "similarity with the network's attention of that from the four terms without residual"
    ),
    "no_residual_argmax": share("rows whose largest weight these four terms place where the network does"),
    "temporal_only": share("similarity with the network's attention of that from the temporal term"),
    "temporal_only_argmax": share("rows whose largest weight this term places where the network does"),
    "uniform": share("similarity of uniform attention with the network's"),
}
REBUILT_WITH = {
    "with_none": "without residuals",
    "with_interaction": "with the mean residual of position and word as the residual",
    "with_clock": "with the mean residual of position and sentence length as the residual",
    "with_history": "with what the preceding words predict as the residual",
    "with_temperature": "without residuals, at the best temperature for all rows",
}
PREDICTED_BY = {
    "interaction": "position and word together",
    "clock": "position and sentence length together",
    "history": "the preceding words",
}
RESIDUALS = {
    **{name: share(f"similarity of attention rebuilt {how}") for name, how in REBUILT_WITH.items()},
    "foreign_words": share("similarity of attention where the decoder reads another sample's words"),
    "foreign_words_accuracy": share("next words that are predicted correctly then"),
    **{
        f"{name}_{side}": Column(f"variance of {side} residuals that is predicted by {what}", high=1)
        for name, what in PREDICTED_BY.items()
        for side in SIDES
    },
    **{
        f"residual_variance_{side}": share(f"variance of {side} residuals over that of {side} states")
        for side in SIDES
    },
    "scale_decoder": Column("root mean square of decoder states"),
    "scale_encoder": Column("root mean square of encoder states"),
    "scale_scores": Column("standard deviation of centred scores"),
    **{
        f"exchanged_{part}": share(
            f"total variation of attention when the decoder's {part} parts are exchanged"
        )
        for part in STATE_PARTS
    },
}
NUMBERS = OUTCOMES | RESIDUALS


def compute(config: Config, store: Store) -> dict[str, Table]:
    """``decay`` compares, seed by seed, the strongest level at which every network has learned its task with
    no decay at all. ``levels`` takes outcomes without decay of all networks that are ``planned``, and what
    residuals hold and exchanges do of the networks along the axis. A network of which a measure is missing is
    left out.
    """
    along, of_plan, of_factors = axis(config), planned(config), others(config)
    networks = frame(
        (*_terms_of(along, config), *_contents_of(along, config)),
        store,
        records=_numbers,
        columns=NUMBERS,
        names=NAMES,
        columns_of=along.__getitem__,
    )

    def outcomes_of(specs: Mapping[ModelSpec, dict], names: Columns) -> Table:
        return frame(
            _terms_of(specs, config),
            store,
            records=outcomes,
            columns=OUTCOMES,
            names=names,
            columns_of=specs.__getitem__,
        )

    planned_networks = outcomes_of(of_plan, NAMES)
    other_networks = outcomes_of(of_factors, FACTOR | {"seed": NETWORK["seed"]})
    strongest = strongest_learned(networks)
    return {
        "networks": networks,
        "planned_networks": planned_networks,
        "other_networks": other_networks,
        "levels": by_level(networks, planned_networks),
        "strongest": strongest,
        "decay": decay_effects(networks, strongest),
        "factors": summarise(other_networks, list(FACTOR), OUTCOMES),
    }


def by_level(networks: Table, planned_networks: Table) -> Table:
    """Return estimates for each level; outcomes without decay are those of all planned networks."""

    def group_of(row: dict) -> tuple:
        return tuple(row[name] for name in (*LEVEL, "quantity"))

    along = summarise(networks, list(LEVEL), NUMBERS)
    of_plan = summarise(planned_networks, list(LEVEL), OUTCOMES)
    planned_estimates = {group_of(row): row for row in of_plan.records()}
    rows = [planned_estimates.get(group_of(row), row) for row in along.records()]
    return Table.of(rows, along.columns, along.row)


def strongest_learned(networks: Table) -> Table:
    """Return the strongest weight decay at which all networks of a kind have learned their task.

    It is undefined where they have not at any level, or not without decay.
    """
    rows = []
    for names, kind in networks.frame.groupby(list(KIND), sort=False):
        learned = {level for level, group in kind.groupby("weight_decay") if _have_learned(group["accuracy"])}
        strongest = max(learned - {0.0}, default=math.nan) if 0.0 in learned else math.nan
        rows.append(dict(zip(KIND, names, strict=True)) | {"weight_decay": strongest})
    level = Column("strongest level that all networks have learned their task at; empty where there is none")
    return Table.of(rows, KIND | {"weight_decay": level}, "a kind of network")


def _have_learned(accuracies: Iterable[float]) -> bool:
    from companion.claims.presupposed import holds  # a bare node, which only measures, cannot read claims

    return all(holds("learned-cells", accuracy=accuracy) for accuracy in accuracies)


def decay_effects(networks: Table, strongest: Table) -> Table:
    """Return estimates of every number at the strongest level minus that without decay, seed by seed."""
    with_decay = networks.with_rows(networks.frame.merge(strongest.frame))
    without = networks.query("weight_decay == 0")
    effects = differences(with_decay, without, NUMBERS, on=[*KIND, "seed"])
    return summarise(effects, list(KIND), NUMBERS)


def _numbers(alignment_terms: dict, residual_contents: dict, interchange: dict) -> dict[str, float | None]:
    """Return the numbers of one network, from its three measurements."""
    rebuilt, explained = residual_contents["rebuilt"], residual_contents["explained"]
    foreign = residual_contents["foreign"]
    exchanged = interchange["exchanged"]["decoder"]

    numbers = dict(outcomes(alignment_terms))
    for name in ("none", *CONTENTS):
        numbers[f"with_{name}"] = rebuilt.get(name, {}).get("similarity")
    numbers["with_temperature"] = rebuilt["temperature"]["similarity"]
    numbers["foreign_words"] = foreign["similarity"]
    numbers["foreign_words_accuracy"] = foreign["accuracy"]
    for name in CONTENTS:
        for side in SIDES:
            numbers[f"{name}_{side}"] = explained[side].get(name)
    for side in SIDES:
        numbers[f"residual_variance_{side}"] = residual_contents["share"][side]
    for scaled in (*SIDES, "scores"):
        numbers[f"scale_{scaled}"] = residual_contents["scale"][scaled]
    for part in STATE_PARTS:
        numbers[f"exchanged_{part}"] = exchanged[part]["variation"]
    return numbers


def values(config: Config, tables: dict[str, Table]) -> dict:
    kinds = tables["strongest"].records()
    undefined = {
        f"decay.{kind['task']}.{kind['architecture']}.{name}": interval_of()
        for kind in kinds
        for name in NUMBERS
    }
    levels = _with_key_of_level(tables["levels"], "weight_decay")
    factors = _with_key_of_level(tables["factors"], "level")
    return view(
        {"levels": {}, "decay": {}, "factors": {}},
        keyed(levels, "levels.{task}.{architecture}.{weight_decay}.{quantity}"),
        undefined,
        keyed(tables["strongest"], "decay.{task}.{architecture}.level", ["weight_decay"]),
        keyed(tables["decay"], "decay.{task}.{architecture}.{quantity}"),
        keyed(factors, "factors.{factor}.{level}.{quantity}"),
    )


def _with_key_of_level(table: Table, column: str) -> Table:
    """Return the table with levels in this column as they are in keys: ``0p001``."""
    return table.with_rows(table.frame.assign(**{column: table.frame[column].map(level_key)}))
