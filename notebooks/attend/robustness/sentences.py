"""The robustness chapter in words and one table, made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.plots.style import task_name
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result
from notebooks.attend.robustness.drawing import FACTOR_NAMES, RUNNING, factors_of, levels_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "typicality": "typicality",
    "temporal_share": "μμ share",
    "input_share": "χχ share",
    "residual_share": "with Δ",
    "residual_residual": "ΔΔ share",
    "temporal_only": "μμ alone",
    "input_only": "χχ alone",
    "no_residual": "all but Δ",
    "accuracy": "accuracy",
}
HALVES = {
    "temporal_share_leads_scan": "The temporal share is larger on one-to-one than on SCAN",
    "temporal_beats_input": "On one-to-one, μ·μ alone rebuilds more of the attention than χ·χ alone",
}
WEAKEST = 3  # settings named


def headline_sentences(result: Result) -> str:
    """Both halves of the headline: at how many settings they hold, and where they are weakest."""
    lines = []
    for half, statement in HALVES.items():
        found = result.values["headline"].get(half)
        if found is None:
            continue
        rows = [r for r in result.tables["settings"] if r["half"] == half and r["value"] is not None]
        number, single = found["settings"], [_named_as(row) for row in rows if row["low"] is None]
        unclear = [name for name in found["unclear"] if name not in single]
        rows = sorted(rows, key=lambda row: row["value"])
        smallest = [f"{_setting(row)}, {_range(row)}" for row in rows[:WEAKEST]]
        lines.append(
            f"* {statement} at {round(found['holds'] * number)} of {number} settings, with a whole 95 % "
            f"interval above zero at {round(found['clearly'] * number)}. "
            f"{_named('It fails at', found['fails'])}"
            f"{_named('Its interval reaches zero at', unclear)}"
            f"{_named('One network alone, and so no interval, stands behind', single)}"
            f"The smallest differences: {'; '.join(smallest)}."
        )
    if not lines:
        return "The headline needs both one-to-one and SCAN; this run lacks one of them."
    return "\n".join([*lines, "", _reached(result)])


def _reached(result: Result) -> str:
    """What intervals that reach zero can say; that none does, where none does."""
    rows = [r for r in result.tables["settings"] if r["half"] in HALVES and r["value"] is not None]
    wide = [row for row in rows if row["low"] is not None and row["low"] <= 0 <= row["high"]]
    if not wide:
        known = sum(row["low"] is not None for row in rows)
        return f"None of the {known} intervals reaches zero." if known else ""
    return (
        f"Intervals that reach zero: {len(wide)} of {len(rows)}. Few seeds make wide intervals: such a "
        "setting has not been shown to fail."
    )


def _named_as(row: dict) -> str:
    return f"{row['factor']} {row['level']}"


def _setting(row: dict) -> str:
    return _in_words(_named_as(row))


def _in_words(setting: str) -> str:
    """``n_words 10`` as the figures have it: ``number of words: 10``."""
    factor, _, level = setting.partition(" ")
    if factor == "plan":
        return "as planned"
    return f"{FACTOR_NAMES[factor]}: {level}" if factor in FACTOR_NAMES else setting.replace("_", " ")


def _named(statement: str, settings: list[str]) -> str:
    if not settings:
        return ""
    return f"{statement}: {'; '.join(map(_in_words, settings))}. "


def _range(interval: dict) -> str:
    if interval["low"] is None:
        return interval_text(interval)
    return interval_range(interval)


def residual_sentences(result: Result) -> str:
    """What moves the residual-residual share, and how much of it is memory of words."""
    lines = []
    for task in result.config["task"]:
        moved = {
            factor: span
            for factor in factors_of(result)
            if (span := result.values["governs"].get(factor, {}).get(task)) and span["value"] is not None
        }
        plan = _planned(result, task)
        if plan is None:
            continue
        share, remembered = plan["residual_residual"], plan["remembered"]
        lines.append(
            f"* {task_name(task)}: as planned, Δ·Δ carries {interval_text(share)} of the score, and the "
            f"part of it that the words read before predict carries {interval_text(remembered)}. They "
            f"predict {interval_text(plan['memory_encoder'])} of the encoder's residual variance and "
            f"{interval_text(plan['memory_decoder'])} of the decoder's."
        )
        if moved:
            ranked = sorted(moved, key=lambda factor: -moved[factor]["value"])
            steps = (
                f"{FACTOR_NAMES[factor]} (from {moved[factor]['lowest']} to {moved[factor]['highest']}: "
                f"{_range(moved[factor])})"
                for factor in ranked
            )
            lines[-1] += f" What moves its share, most first: {'; '.join(steps)}."
    return "\n".join(lines)


def _planned(result: Result, task: str) -> dict | None:
    for factor in dict.fromkeys(row["factor"] for row in result.tables["points"]):
        for _, planned, found in levels_of(result, factor, task):
            if planned:
                return found
    return None


def running_sentences(result: Result) -> str:
    """Free running against teacher forcing: how often the words agree, and the largest change."""
    lines = []
    for task, found in result.values["running"].items():
        changes = {
            name: found["free_running"][name]["value"] - found["teacher_forced"][name]["value"]
            for name in found["free_running"]
            if None not in (found["free_running"][name]["value"], found["teacher_forced"][name]["value"])
        }
        if not changes:
            continue
        most = max(changes, key=lambda name: abs(changes[name]))
        lines.append(
            f"* {task_name(task)}: {interval_text(found['same_words'])} of the samples are written without a "
            f"fault, and on these both ways are the same states. {_largest(RUNNING[most], changes[most])}"
        )
    return "\n".join(lines)


def _largest(name: str, change: float) -> str:
    if abs(change) < 0.0005:
        return "Of the measures shown, none changes by as much as 0.001."
    return f"Of the measures shown, {name} changes most, by {abs(change):.3f}."


def settings_table(result: Result) -> "pd.DataFrame":
    """A row for each task, factor and level; intervals as ``value ± half width``; the plan's own marked."""
    import pandas as pd

    rows = {}
    for task in result.config["task"]:
        for factor in factors_of(result):
            levels = levels_of(result, factor, task)
            for label, planned, found in levels if len(levels) > 1 else ():
                name = f"{task_name(task)}, {FACTOR_NAMES[factor]}: {label}{' (plan)' if planned else ''}"
                rows[name] = {title: interval_text(found[outcome]) for outcome, title in COLUMNS.items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(COLUMNS.values()))
