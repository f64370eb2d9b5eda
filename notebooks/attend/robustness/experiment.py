"""Robustness: one setting of a network is changed at a time, and what other chapters found is asked again.

What a residual remembers of the words before is Δ_t ≈ Σ_{k = 1 … LAGS} B_k(w_{t−k}), by least squares and
judged on other samples. Both sides of one-to-one read the same words in the same order, so that two memories
can be matched: the share of the term of the two predictions says how much of residual times residual is that.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
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
from companion.results.config import AboveZero, Field, OneOf, Positive, Task
from companion.results.measurements import Measurement, measurements_of
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from notebooks.shared.intervals import grouped, interval_of, nested
from notebooks.shared.measure import LAGS, Fitted, lagged_words, measure_alignment_terms, plain
from notebooks.shared.plan import by_spec, picked
from notebooks.shared.suite import FilesConfig, each_planned, outcomes
from notebooks.shared.summaries import level_of, rows_of, summarised
from notebooks.shared.translators import greedy

BATCH = 256
EITHER = ("teacher_forced", "free_running")


@measure(version=1)
def measure_robustness(trained: TrainedModel, samples: int) -> dict:
    """Either way of running is judged by components of its own states. ``same_words``: share of held-out
    samples that the free-running network writes without a fault; ``variance``: shares of the three parts."""
    task, model = trained.task, trained.model
    corpora = [part.subset(np.arange(min(samples, len(part)))) for part in (task.train, task.held_out)]
    longest = [
        int(max(getattr(part, f"{side}_lengths").max() for part in (task.train, task.held_out))) + 1
        for side in ("source", "target")
    ]
    found: dict = {}
    for way in EITHER:
        fit, held_out = (
            list(traces(model, corpus) if way == "teacher_forced" else _free(trained, corpus, longest[1]))
            for corpus in corpora
        )
        sides = _fitted(trained, fit, longest)
        found[way] = _judged(sides, held_out)
        if way == "teacher_forced":
            found["variance"], found["memory"] = _variances(sides, held_out), memory(sides, fit, held_out)
        else:
            found["same_words"] = _same_words(held_out, list(evaluation_batches(corpora[1], BATCH)))
    return found


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
    return {s: dict(zip(STATE_PARTS, map(plain, own / own.sum()), strict=True)) for s, own in sums.items()}


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
    found = {side: plain(1 - missed[side] / present[side]) if present[side] else None for side in weights}
    return found | {"share": plain(product / total_square) if total_square else None}


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

    task: tuple[Task, ...] = BOTH  #: tasks of the suite; the headline needs one_to_one and scan
    #: those of them on which the factors are varied; the others keep the plan's setting
    varied: tuple[Task, ...] = (ALONE,)
    #: which factors: cell, width, weight_decay, length, n_words, embedding_scale, clip
    factor: tuple[Annotated[str, OneOf(FACTORS)], ...] = FACTORS
    seeds: Positive | None = None  #: models of each setting; three by default
    cell: tuple[Cell, ...] = ("gru", "vanilla")  #: levels of the factor: gru, lstm, vanilla, ugrnn
    widths: tuple[Positive, ...] = (32,)  #: levels of the factor width
    weight_decay: tuple[Annotated[float, Field(ge=0)], ...] = (1e-3,)  #: levels of the factor
    length: tuple[AboveZero, ...] = ()  #: levels of the factor, in multiples of the planned updates
    n_words: tuple[Positive, ...] = (10,)  #: levels of the factor, for one-to-one alone
    embedding_scale: tuple[AboveZero, ...] = ()  #: levels of the factor
    clip: tuple[AboveZero, ...] = ()  #: levels of the factor: largest norm of a gradient
    samples: Positive = 400  #: training samples, and held-out ones, for free running and memory, at most

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


Models = dict[str, tuple[ModelSpec, ...]]  # by task, in the order of seeds


def settings(config: Config) -> Iterator[tuple[str, str, bool, Models]]:
    """The plan, and every level of every factor, in words; whether it is the plan's own, and the models."""
    plan = _models(config, config.task)
    yield "plan", "plan", False, plan
    planned = {"cell": "gru", "weight_decay": 0.0, "length": 1.0, "n_words": 3, "embedding_scale": 0.3}
    planned |= {"clip": 1.0, "width": plan[config.task[0]][0].width}
    for factor in config.factor:
        own, given = planned[factor], getattr(config, "widths" if factor == "width" else factor)
        varied = [n for n in config.task if n in config.varied and (n == ALONE or factor != "n_words")]
        levels = list(dict.fromkeys((own, *given)))
        if len(levels) == 1:
            continue
        for level in levels if factor == "cell" else sorted(levels):
            label = level if isinstance(level, str) else f"{level:g}"
            if level == own:
                yield factor, label, True, plan
            elif varied:
                yield factor, label, False, _models(config, varied, factor, level)


def _models(config: Config, tasks: Iterable[str], factor: str = "", level: object = None) -> Models:
    found = {}
    for task_name in tasks:
        changes = {factor: level} if factor else {}
        if factor == "length":
            changes = {"steps": max(1, round(level * each_planned(config, task_name, "AED", 1)[0].steps))}
        if factor == "n_words":
            changes = {"task_options": {"n_words": level}}
        found[task_name] = each_planned(config, task_name, "AED", config.seeds or 3, **changes)
    return found


REBUILT = ("temporal_only", "input_only", "no_residual")
SIDES = ("encoder", "decoder")
PAIRS = {"temporal_share": "temporal_temporal", "input_share": "input_input"}
PAIRS |= {"residual_residual": "residual_residual"}
RESIDUAL = ("temporal_residual", "input_residual", "residual_temporal", "residual_input", "residual_residual")
OUTCOMES = ("typicality", *PAIRS, "accuracy", *REBUILT, "uniform")


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs = dict.fromkeys(spec for *_, every in settings(config) for own in every.values() for spec in own)
    return (
        *measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples),
        *measurements_of(specs, measure_robustness, samples=config.samples),
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    found = by_spec(measurements(config), store)
    numbers = {spec: _numbers(**own) for spec, own in found.items()}
    free = {spec: _way(own["robustness"]["free_running"]) for spec, own in found.items()}
    (*_, plan), *levels = every = list(settings(config))
    conditions = list(_conditions(every, numbers, free))
    points = []
    for factor, label, planned, models in levels:
        for task, spec in ((task, spec) for task, own in models.items() for spec in own if spec in found):
            name = {"factor": factor, "level": label, "planned": planned, "task": task}
            points.append((name | {n: getattr(spec, n) for n in ("seed", "width", "steps")}, numbers[spec]))
    planned = {(n,): [({}, found[s]["robustness"]) for s in own if s in found] for n, own in plan.items()}
    running = summarised(planned, lambda m: {w: _way(m[w]) for w in EITHER} | picked(m, ["same_words"]))
    rows = [name | own for name, own in points]
    ways = {task_name: picked(own, EITHER) for task_name, own in running.items()}
    values = {
        "factors": summarised(grouped(points, "factor", level_of("level"), "task"), dict),
        "running": running,
        "governs": _governs(rows),
        "headline": headline(conditions),
    }
    tables = {"points": rows, "settings": conditions, "running": rows_of(ways, "task", "way", "outcome")}
    return values, tables


def _numbers(alignment_terms: dict, robustness: dict) -> dict[str, float | None]:
    memory, variance = robustness["memory"], robustness["variance"]
    return {
        **picked(outcomes(alignment_terms), OUTCOMES),
        "residual_share": sum(alignment_terms["covariance_share"][pair] for pair in RESIDUAL),
        "remembered": memory["share"],
        **{f"memory_{side}": memory[side] for side in SIDES},
        **{f"residual_variance_{side}": variance[side]["residual"] for side in SIDES},
    }


def _way(found: dict) -> dict[str, float | None]:
    shares = {name: found["covariance_share"][pair] for name, pair in PAIRS.items()}
    rebuilt = {name: found["substitution"][name] for name in REBUILT}
    return {"typicality": found["typicality"]} | shares | rebuilt


def _governs(points: list[dict]) -> dict[str, dict]:
    """How far the residual-residual share moves between the extreme levels, by seed. Extremes are picked
    after the fact, which flatters every factor alike."""
    shares = nested({(r["factor"], r["task"], r["level"], r["seed"]): r["residual_residual"] for r in points})
    found: dict[str, dict] = {factor: {} for factor in shares}
    for factor, tasks in shares.items():
        for task_name, by_level in tasks.items():
            if len(by_level) > 1:
                lowest, *_, highest = sorted(by_level, key=lambda level: fmean(by_level[level].values()))
                low, high = by_level[lowest], by_level[highest]
                moved = interval_of(high[seed] - low[seed] for seed in high if seed in low)
                found[factor][task_name] = {"lowest": lowest, "highest": highest, **moved}
    return found


def _conditions(every: list[tuple[str, str, bool, Models]], outcomes: dict, free: dict) -> Iterator[dict]:
    """Both halves of the headline at every setting, as differences paired by seed; the plan's own once."""
    plan = every[0][-1]
    if not set(BOTH) <= plan.keys():
        return
    conditions = [(*level, own, outcomes) for *level, planned, own in every if not planned]
    for factor, level, specs, found in [*conditions, ("running", "free", plan, free)]:
        both = zip(specs.get(ALONE, ()), specs.get(AGAINST, plan[AGAINST]), strict=ALONE in specs)
        pairs = [(found[a], found[b]) for a, b in both if a in found and b in found]
        halves = {
            "temporal_share_leads_scan": [a["temporal_share"] - b["temporal_share"] for a, b in pairs],
            "temporal_beats_input": [a["temporal_only"] - a["input_only"] for a, _ in pairs],
        }
        for half, differences in halves.items() if ALONE in specs else ():
            row = {"factor": factor, "level": level, "half": half, "scan_varied": AGAINST in specs}
            interval = interval_of(differences)
            signs = {"holds": interval["value"], "clearly": interval["low"]}
            yield row | interval | {name: None if end is None else end > 0 for name, end in signs.items()}


def headline(conditions: list[dict]) -> dict:
    """At how many settings each half of the headline holds, ``clearly`` with a whole interval above zero;
    ``fails`` and ``unclear``: the settings without, in words."""
    found = {}
    for half in dict.fromkeys(row["half"] for row in conditions):
        rows = [row for row in conditions if row["half"] == half and row["holds"] is not None]
        if rows:
            found[half] = {
                "settings": len(rows),
                "holds": sum(row["holds"] for row in rows) / len(rows),
                "clearly": sum(bool(row["clearly"]) for row in rows) / len(rows),
                "smallest": min(row["value"] for row in rows),
                "fails": [f"{row['factor']} {row['level']}" for row in rows if not row["holds"]],
                "unclear": [f"{r['factor']} {r['level']}" for r in rows if r["holds"] and not r["clearly"]],
            }
    return found
