"""Robustness: one setting of a network is changed at a time, and what other chapters found is asked again.

What a residual remembers of the words before is Δ_t ≈ Σ_{k = 1 … LAGS} B_k(w_{t−k}), by least squares and
judged on other samples. Both sides of one-to-one read the same words in the same order, so that two memories
can be matched: the share of the term of the two predictions says how much of residual times residual is that.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.decomposition import STATE_PARTS, AttentionCells, ShareSums, alignment_terms
from attnlib.decomposition.components import Components
from attnlib.decomposition.rows import centred, valid_rows
from attnlib.decomposition.substitution import SubstitutionSums
from attnlib.models.config import Cell
from attnlib.models.corpus import Corpus, evaluation_batches
from attnlib.trace import Trace
from companion.results.config import AboveZero, Field, OneOf, Positive, Task, setting
from companion.results.frames import Table, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import INTERVAL, Column, Columns, share
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from notebooks.shared.measure import LAGS, Fitted, lagged_words, measure_alignment_terms, plain
from notebooks.shared.plan import plan_frame
from notebooks.shared.suite import OUTCOMES as OF_SUITE
from notebooks.shared.suite import SUITE, FilesConfig, each_planned, outcomes
from notebooks.shared.summaries import differences, level_key, summarise
from notebooks.shared.translators import greedy

BATCH = 256
EITHER = ("teacher_forced", "free_running")


@measure(version=1)
def measure_robustness(trained: TrainedModel, samples: int) -> dict:
    """Either way of running is judged by components of its own states. ``same_words``: share of held-out
    samples that the free-running network writes without an error; ``variance``: shares of the three parts."""
    task, model = trained.task, trained.model
    corpora = [part.subset(np.arange(min(samples, len(part)))) for part in (task.train, task.held_out)]
    longest = [
        int(max(getattr(part, f"{side}_lengths").max() for part in (task.train, task.held_out))) + 1
        for side in ("source", "target")
    ]
    numbers: dict = {}
    for way in EITHER:
        fit, held_out = (
            list(traces(model, corpus) if way == "teacher_forced" else _free(trained, corpus, longest[1]))
            for corpus in corpora
        )
        sides = _fitted(trained, fit, longest)
        numbers[way] = _judged(sides, held_out)
        if way == "teacher_forced":
            numbers["variance"], numbers["memory"] = _variances(sides, held_out), memory(sides, fit, held_out)
        else:
            numbers["same_words"] = _same_words(held_out, list(evaluation_batches(corpora[1], BATCH)))
    return numbers


def _free(trained: TrainedModel, corpus: Corpus, max_steps: int) -> Iterator[Trace]:
    device = trained.model.readout.weight.device
    for batch in evaluation_batches(corpus, BATCH):
        with torch.no_grad():
            trace = trained.model(greedy(trained.model, batch.to(device), max_steps))
        yield trace


def _fitted(trained: TrainedModel, fit: Sequence[Trace], longest: Sequence[int]) -> Fitted:
    width, task = trained.model.config.width, trained.task
    encoder = Components(width, n_tokens=len(task.source_vocabulary), n_positions=longest[0])
    decoder = Components(width, n_tokens=len(task.target_vocabulary), n_positions=longest[1])
    for trace in fit:
        encoder.update(trace.encoder_states, trace.source_tokens, trace.source_mask)
        decoder.update(trace.decoder_states, trace.target_tokens, trace.target_mask)
    return Fitted(encoder, decoder, sum(len(trace.source_tokens) for trace in fit))


def _judged(sides: Fitted, held_out: list[Trace]) -> dict:
    shares, substitution, cells = ShareSums(), SubstitutionSums(), AttentionCells()
    for trace in held_out:
        terms = alignment_terms(*sides.split(trace))
        shares.update(terms, trace.target_mask, trace.source_mask)
        substitution.update(terms, trace.target_mask, trace.source_mask)
        cells.update(trace.attention, trace.target_mask, trace.source_mask)
    judged = [cells.judge(trace.attention, trace.target_mask, trace.source_mask) for trace in held_out]
    covariance = shares.result().covariance
    pairs = [(i, j) for i in range(3) for j in range(3)]
    return {
        "covariance_share": {f"{STATE_PARTS[i]}_{STATE_PARTS[j]}": plain(covariance[i, j]) for i, j in pairs},
        "substitution": {name: plain(outcome.similarity) for name, outcome in substitution.result().items()},
        "typicality": plain(cells.result(torch.cat(judged)).value),
    }


def _same_words(free: list[Trace], batches: list) -> float:
    right = samples = 0
    for trace, batch in zip(free, batches, strict=True):
        length = max(trace.target_outputs.shape[1], batch.target_output.shape[1])
        written, wanted = (_widened(t, length) for t in (trace.target_outputs.cpu(), batch.target_output))
        right += int((written == wanted).all(1).sum())
        samples += len(wanted)
    return plain(right / samples)


def _widened(tokens: Tensor, length: int) -> Tensor:
    return torch.nn.functional.pad(tokens, (0, length - tokens.shape[1]))


def _variances(sides: Fitted, held_out: list[Trace]) -> dict[str, dict[str, float]]:
    sums: dict[str, Tensor] = {side: torch.zeros(3, dtype=torch.float64) for side in ("decoder", "encoder")}
    for trace in held_out:
        for side, parts in zip(sums, sides.split(trace), strict=True):
            components: Components = getattr(sides, side)
            counts = components.position_counts.double()
            mean = (counts @ components.temporal / counts.sum()).to(parts.temporal)
            pieces = (parts.temporal - mean, parts.input, parts.residual)
            sums[side] += torch.stack([p[parts.mask].double().square().sum() for p in pieces]).cpu()
    return {
        s: dict(zip(STATE_PARTS, map(plain, variances / variances.sum()), strict=True))
        for s, variances in sums.items()
    }


def memory(sides: Fitted, fit: list[Trace], held_out: list[Trace]) -> dict[str, float | None]:
    """How much of the residuals the words read before predict, and of the score the two predictions make."""
    weights = {
        "decoder": _regressed(fit, sides, 0, sides.decoder.input.shape[0]),
        "encoder": _regressed(fit, sides, 1, sides.encoder.input.shape[0]),
    }
    missed, present = dict.fromkeys(weights, 0.0), dict.fromkeys(weights, 0.0)
    product = total_square = 0.0
    for trace in held_out:
        predicted = {}
        for (side, weight), parts, tokens in zip(
            weights.items(), sides.split(trace), (trace.target_tokens, trace.source_tokens), strict=True
        ):
            guess = torch.zeros_like(parts.residual)
            design = lagged_words(tokens, parts.mask, weight.shape[0] // LAGS)
            guess[parts.mask] = (design @ weight.to(design)).to(guess)
            missed[side] += float((parts.residual - guess).double().square().sum())
            present[side] += float(parts.residual.double().square().sum())
            predicted[side] = guess
        term = predicted["decoder"] @ predicted["encoder"].transpose(1, 2)
        rows, valid = valid_rows(
            torch.stack([term, trace.scores]), trace.target_mask, trace.source_mask, at_least=2
        )
        part, score = centred(rows, valid)
        product += float((part * score).sum())
        total_square += float(score.square().sum())
    remembered = {
        side: plain(1 - missed[side] / present[side]) if present[side] else None for side in weights
    }
    return remembered | {"share": plain(product / total_square) if total_square else None}


def _regressed(fit: list[Trace], sides: Fitted, side: int, words: int) -> Float[Tensor, "lags_words width"]:
    square = torch.zeros(LAGS * words, LAGS * words, dtype=torch.float64)
    product = None
    for trace in fit:
        parts = sides.split(trace)[side]
        tokens = (trace.target_tokens, trace.source_tokens)[side]
        design = lagged_words(tokens, parts.mask, words).cpu()
        right = design.T.double() @ parts.residual[parts.mask].double().cpu()
        square += (design.T @ design).double()  # counts: exact in float32 below 2^24
        product = right if product is None else product + right
    return torch.linalg.pinv(square, hermitian=True) @ product


FACTORS = ("cell", "width", "weight_decay", "length", "n_words", "embedding_scale", "clip")
ALONE = "one_to_one"  # the task on the fixed diagonal, and the one whose number of words can be set
AGAINST = "scan"
BOTH = (ALONE, AGAINST)


class Config(FilesConfig):
    """Settings; each factor is varied around the plan's setting, the others staying as planned."""

    task: tuple[Task, ...] = setting(BOTH, "tasks of the suite; the headline needs one_to_one and scan")
    varied: tuple[Task, ...] = setting(
        (ALONE,), "those of them on which the factors are varied; the others keep the plan's setting"
    )
    factor: tuple[Annotated[str, OneOf(FACTORS)], ...] = setting(
        FACTORS, "which factors: cell, width, weight_decay, length, n_words, embedding_scale, clip"
    )
    seeds: Positive | None = setting(None, "models of each setting; three by default")
    cell: tuple[Cell, ...] = setting(("gru", "vanilla"), "levels of the factor: gru, lstm, vanilla, ugrnn")
    widths: tuple[Positive, ...] = setting((32,), "levels of the factor width")
    weight_decay: tuple[Annotated[float, Field(ge=0)], ...] = setting((1e-3,), "levels of the factor")
    length: tuple[AboveZero, ...] = setting((), "levels of the factor, in multiples of the planned updates")
    n_words: tuple[Positive, ...] = setting((10,), "levels of the factor, for one-to-one alone")
    embedding_scale: tuple[AboveZero, ...] = setting((), "levels of the factor")
    clip: tuple[AboveZero, ...] = setting((), "levels of the factor: largest norm of a gradient")
    samples: Positive = setting(
        400, "training samples, and held-out ones, for free running and memory, at most"
    )

    def check(self) -> None:
        self.take_files("task", "varied")


PROFILES = {
    # The networks of a smaller width and with weight decay are those of the chapter on regularisation.
    "quick": Config(factor=("cell", "width", "weight_decay"), samples=200),
    "paper": Config(
        scale="paper", varied=BOTH, cell=("gru", "lstm", "vanilla", "ugrnn"), widths=(32, 64, 128, 256, 512),
        weight_decay=(0.0, 1e-5, 1e-4, 1e-3), length=(0.25, 0.5, 1.0, 2.0), n_words=(3, 10, 26),
        embedding_scale=(0.1, 0.3, 1.0), clip=(0.1, 1.0, 10.0), fit_samples=25_000, samples=1_500,
    ),
    "tiny": Config(
        cell=("gru", "lstm", "vanilla", "ugrnn"), widths=(16,), length=(2.0,), seeds=1, width=8, steps=3,
        fit_samples=100, samples=60,
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One level of one factor, in words, and the networks that have it.

    Attributes:
        planned: whether the level is the plan's own.
        models: by task, in the order of seeds.
    """

    factor: str
    level: str
    planned: bool
    models: dict[str, tuple[ModelSpec, ...]]


PLAN = "plan"  # the factor of the setting in which nothing is varied


def settings(config: Config) -> Iterator[Setting]:
    """Yield the plan, then every level of every factor that has more than one."""
    planned_models = _models(config, config.task)
    yield Setting(factor=PLAN, level=PLAN, planned=False, models=planned_models)
    planned_levels = {
        "cell": "gru",
        "weight_decay": 0.0,
        "length": 1.0,
        "n_words": 3,
        "embedding_scale": 0.3,
        "clip": 1.0,
        "width": planned_models[config.task[0]][0].width,
    }
    for factor in config.factor:
        planned_level = planned_levels[factor]
        varied = [task for task in config.task if _varies(factor, task, config)]
        given = getattr(config, "widths" if factor == "width" else factor)
        levels = list(dict.fromkeys((planned_level, *given)))
        if len(levels) == 1:
            continue
        for level in levels if factor == "cell" else sorted(levels):
            label = level if isinstance(level, str) else f"{level:g}"
            if level == planned_level:
                yield Setting(factor=factor, level=label, planned=True, models=planned_models)
            elif varied:
                models = _models(config, varied, **{factor: level})
                yield Setting(factor=factor, level=label, planned=False, models=models)


def _varies(factor: str, task: str, config: Config) -> bool:
    """Return True if a factor is varied on a task; one task alone has words whose number can be set."""
    return task in config.varied and (task == ALONE or factor != "n_words")


def _models(config: Config, tasks: Iterable[str], **level: object) -> dict[str, tuple[ModelSpec, ...]]:
    """Return the networks of each task at one level of a factor; without one, as they are planned."""
    models = {}
    for task in tasks:
        changes = dict(level)
        if "length" in level:
            planned_steps = each_planned(config, task, "AED", 1)[0].steps
            changes = {"steps": max(1, round(level["length"] * planned_steps))}
        if "n_words" in level:
            changes = {"task_options": level}
        models[task] = each_planned(config, task, "AED", config.seeds or 3, **changes)
    return models


PAIRS = {
    "temporal_share": "temporal_temporal",
    "input_share": "input_input",
    "residual_residual": "residual_residual",
}
RESIDUAL = ("temporal_residual", "input_residual", "residual_temporal", "residual_input", "residual_residual")

LEVEL = {
    "factor": Column("setting of a network that is changed; plan: none is, running: what its decoder reads"),
    "level": Column("what it is changed to"),
}
GROUP = {
    **LEVEL,
    "planned": Column("True if this is the level of the plan"),
    "task": SUITE["task"],
    "width": Column("width of the states"),
    "steps": Column("updates in training"),
}
SHARES = {
    "temporal_share": Column("covariance share of the product of temporal parts, μ·μ"),
    "input_share": Column("covariance share of the product of input parts, χ·χ"),
    "residual_residual": Column("covariance share of the product of residuals, Δ·Δ"),
}
REBUILT = {
    "temporal_only": share("1 minus the total variation from attention of the term μ·μ alone"),
    "input_only": share("1 minus the total variation from attention of the term χ·χ alone"),
    "no_residual": share("1 minus the total variation from attention of all terms without a residual"),
}
TYPICALITY = {"typicality": OF_SUITE["typicality"]}
OUTCOMES = {
    **TYPICALITY,
    **SHARES,
    "accuracy": OF_SUITE["token_accuracy"],
    **REBUILT,
    "uniform": share("1 minus the total variation from uniform attention"),
    "residual_share": Column("covariance share of the five terms with a residual"),
    "remembered": Column("covariance share of the product of what preceding words predict of residuals"),
    "memory_encoder": Column("R² of residuals of the encoder, by preceding words"),
    "memory_decoder": Column("R² of residuals of the decoder, by preceding words"),
    "residual_variance_encoder": share("variance of the encoder's states that is in residuals"),
    "residual_variance_decoder": share("variance of the decoder's states that is in residuals"),
}
WAY = {
    "way": Column(
        "what the decoder reads",
        categories={"teacher_forced": "the right words", "free_running": "the words it wrote itself"},
    )
}
OF_WAY = TYPICALITY | SHARES | REBUILT
SAME_WORDS = {"same_words": Column("samples that the free-running network writes perfectly, as a share")}
HALVES = {  # of the headline
    "temporal_share_leads_scan": Column("temporal share on one-to-one minus that on SCAN"),
    "temporal_beats_input": Column("similarity of attention from μ·μ alone minus that from χ·χ alone"),
}
SCAN_VARIED = {"scan_varied": Column("True if SCAN has this level, too; False if it is as planned there")}
SIGNS = {
    "holds": Column("True if the mean is above zero; empty without networks"),
    "clearly": Column("True if the whole interval is above zero; empty without networks"),
}
EXTREMES = {
    "lowest": Column("level with the smallest mean share of Δ·Δ"),
    "highest": Column("level with the largest mean share of Δ·Δ"),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs = [spec for setting in settings(config) for models in setting.models.values() for spec in models]
    return _asked_of(dict.fromkeys(specs), config)


def _asked_of(specs: Iterable[ModelSpec], config: Config) -> tuple[Measurement, ...]:
    listed = list(specs)
    return (
        *measurements_of(listed, measure_alignment_terms, fit_samples=config.fit_samples),
        *measurements_of(listed, measure_robustness, samples=config.samples),
    )


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Compute outcomes at every level of every factor, what moves residuals, and the headline everywhere."""
    plan, *levels = settings(config)

    def at(settings: Sequence[Setting]) -> Table:
        groups = {}
        for varied in settings:
            for task, models in varied.models.items():
                first = models[0]
                group = (varied.factor, varied.level, varied.planned, task, first.width, first.steps)
                groups[group] = _asked_of(models, config)
        return plan_frame(groups, store, GROUP, columns=OUTCOMES, records=_numbers)

    def running(records: Callable[..., object], columns: Columns) -> Table:
        groups = {(task,): _asked_of(models, config) for task, models in plan.models.items()}
        return plan_frame(groups, store, {"task": GROUP["task"]}, columns=columns, records=records)

    points = at(levels)
    ways = running(_ways, WAY | OF_WAY)
    free = ways.query("way == 'free_running'")
    same_words = running(_same_words_share, SAME_WORDS)
    return {
        "points": points.select(*LEVEL, "planned", "task", "seed", "width", "steps", *OUTCOMES),
        "settings": headline_by_setting(at([plan]), points.query("not planned"), free),
        "running": summarise(ways, ["task", *WAY], OF_WAY).rename(quantity="outcome"),
        "same_words": summarise(same_words, ["task"], SAME_WORDS),
        "factors": summarise(points, [*LEVEL, "task"], OUTCOMES),
        "governs": governs(points),
    }


def _numbers(terms: dict, robustness: dict) -> dict[str, float | None]:
    memory, variance = robustness["memory"], robustness["variance"]
    return {
        **outcomes(terms),
        "residual_share": sum(terms["covariance_share"][pair] for pair in RESIDUAL),
        "remembered": memory["share"],
        "memory_encoder": memory["encoder"],
        "memory_decoder": memory["decoder"],
        "residual_variance_encoder": variance["encoder"]["residual"],
        "residual_variance_decoder": variance["decoder"]["residual"],
    }


def _ways(terms: dict, robustness: dict) -> list[dict]:
    """Return a record for either way in which a network runs."""
    records = []
    for way in EITHER:
        judged = robustness[way]
        shares = {name: judged["covariance_share"][pair] for name, pair in PAIRS.items()}
        records.append({"way": way, "typicality": judged["typicality"]} | shares | judged["substitution"])
    return records


def _same_words_share(terms: dict, robustness: dict) -> dict:
    return {"same_words": robustness["same_words"]}


def governs(points: Table) -> Table:
    """Return how far the share of Δ·Δ moves between the extreme levels of a factor, seed by seed.

    Extremes are picked after the fact, which flatters every factor alike.
    """
    nothing = points.with_rows(points.frame[:0])
    estimates = [_between_extremes(nothing, lowest="", highest="")]
    for _, of_task in points.frame.groupby(["factor", "task"], sort=False):
        means = of_task.groupby("level", sort=False)["residual_residual"].mean()
        if len(means) > 1:
            lowest, *_, highest = means.sort_values(kind="stable").index
            by_level = points.with_rows(of_task)
            moved = differences(
                by_level.query("level == @highest", highest=highest),
                by_level.query("level == @lowest", lowest=lowest),
                ["residual_residual"],
            )
            estimates.append(_between_extremes(moved, lowest=lowest, highest=highest))
    return joined(estimates)


def _between_extremes(moved: Table, **levels: str) -> Table:
    estimates = summarise(moved, ["factor", "task"], ["residual_residual"])
    return estimates.assign(EXTREMES, **levels).select("factor", "task", *EXTREMES, *INTERVAL)


def headline_by_setting(planned: Table, varied: Table, free: Table) -> Table:
    """Return both halves of the headline at every setting, as means over networks that share a seed.

    Args:
        planned: outcomes of the networks of the plan.
        varied: those at all other levels.
        free: those of the networks of the plan that read what they write.
    """
    names = [*LEVEL, "task", "seed", "temporal_share", "temporal_only", "input_only"]
    running = free.assign(LEVEL, factor="running", level="free")
    everywhere = joined([table.select(*names) for table in (planned, varied, running)])
    planned_on_scan = planned.query("task == @task", task=AGAINST)
    rows = []
    for (factor, level), networks in everywhere.frame.groupby(list(LEVEL), sort=False):
        at_level = everywhere.with_rows(networks)
        alone, on_scan = (at_level.query("task == @task", task=task) for task in BOTH)
        scan_varied = bool(len(on_scan.frame))
        if not len(alone.frame) or not len(planned_on_scan.frame):
            continue
        setting = {"factor": factor, "level": level, "scan_varied": scan_varied}
        estimates = _halves(alone, on_scan if scan_varied else planned_on_scan)
        rows.extend(setting | estimate | _signs(estimate) for estimate in estimates.records())
    half = Column("half of the headline", categories={name: str(half) for name, half in HALVES.items()})
    return Table.of(rows, LEVEL | {"half": half} | SCAN_VARIED | INTERVAL | SIGNS, "a half at a setting")


def _halves(alone: Table, on_scan: Table) -> Table:
    """Return estimates of both halves, over the networks on one-to-one that have a partner on SCAN."""
    pairs = differences(alone, on_scan, ["temporal_share"]).rename(temporal_share="temporal_share_leads_scan")
    beats = pairs.frame["temporal_only"] - pairs.frame["input_only"]
    both = pairs.assign(HALVES, temporal_beats_input=beats)
    return summarise(both, [], HALVES).rename(quantity="half")


def _signs(estimate: dict) -> dict[str, bool | None]:
    """Return whether a difference is above zero, by its mean and by its whole interval."""
    value, low = estimate["value"], estimate["low"]
    if value is None:
        return {"holds": None, "clearly": None}
    return {"holds": value > 0, "clearly": low is not None and low > 0}


def headline(conditions: list[dict]) -> dict:
    """Return at how many settings each half of the headline holds; nothing of one that was not measured."""
    halves = {}
    for half in dict.fromkeys(row["half"] for row in conditions):
        rows = [row for row in conditions if row["half"] == half and row["holds"] is not None]
        if rows:
            halves[half] = _where_it_holds(rows)
    return halves


def _where_it_holds(rows: list[dict]) -> dict:
    """Return the share of settings at which a half holds, ``clearly`` with a whole interval above zero.

    ``fails`` and ``unclear`` are the settings where it does not, or only by its mean, in words.
    """
    holding = [row for row in rows if row["holds"]]
    clear = [row for row in rows if row["clearly"]]
    failing = [row for row in rows if not row["holds"]]
    unclear = [row for row in holding if not row["clearly"]]
    return {
        "settings": len(rows),
        "holds": len(holding) / len(rows),
        "clearly": len(clear) / len(rows),
        "smallest": min(row["value"] for row in rows),
        "fails": [_in_words(row) for row in failing],
        "unclear": [_in_words(row) for row in unclear],
    }


def _in_words(setting: dict) -> str:
    return f"{setting['factor']} {setting['level']}"


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return outcomes by factor and level, what governs the share of Δ·Δ, and where the headline holds."""
    levels = tables["factors"].frame["level"].map(level_key)
    factors = tables["factors"].assign(LEVEL, level=levels)
    return view(
        {"factors": {}, "running": {}, "governs": {}},
        {f"governs.{factor}": {} for factor in factors.frame["factor"].unique()},
        keyed(factors, "factors.{factor}.{level}.{task}.{quantity}"),
        keyed(tables["running"], "running.{task}.{way}.{outcome}"),
        keyed(tables["same_words"], "running.{task}.{quantity}"),
        keyed(tables["governs"], "governs.{factor}.{task}"),
        keyed(tables["governs"], "governs.{factor}.{task}.{column}", EXTREMES),
        {"headline": headline(tables["settings"].records())},
    )
