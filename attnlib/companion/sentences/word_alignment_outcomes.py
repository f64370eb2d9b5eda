"""Which outcomes that would change our mind about alignments have come about, told from the numbers."""

from attnlib.companion.intervals import above, listed, side
from attnlib.companion.tables import interval_text
from attnlib.experiments.alignment_summaries import RULES_SHOWN
from attnlib.experiments.result import Result
from attnlib.experiments.word_alignment import TEXT
from attnlib.plotting.order import kinds_of
from attnlib.plotting.style import task_name

_RULED = {
    "temporal_only": "μ·μ alone",
    "input_only": "χ·χ alone",
    "no_residual": "all terms without residuals",
}
UNMOVED = "reordering_0"  # the mark of the dial whose gold links are the diagonal


def outcome_sentences(result: Result) -> str:
    """Which of the outcomes that would change our mind have come about, one line each."""
    lines = [_below_the_diagonal(result), _by_the_word_read(result), _few_pairs(result)]
    return "\n".join(f"* {line}" for line in lines if line)


def _below_the_diagonal(result: Result) -> str:
    dial = [
        (f"{task_name(task)}, {kind}", found["better_than_diagonal"])
        for task, kind, found in kinds_of(result)
        if task.startswith("reordering_") and task != UNMOVED
    ]
    if not dial:
        return ""
    failed = [f"{name} ({interval_text(gain)})" for name, gain in dial if side(gain) != "above"]
    if failed:
        return f"**The diagonal** is not clearly beaten in {listed(failed)}, in differences of error rates."
    name, gain = min(dial, key=lambda entry: entry[1]["value"])
    return (
        "**The diagonal** is beaten wherever sentences are reordered; the smallest difference of error rates "
        f"is {interval_text(gain)} ({name})."
    )


def _by_the_word_read(result: Result) -> str:
    """Whether links are better by the word read than by the word predicted: full attention, then terms."""
    better, open_, terms, early = [], [], [], []  # of full attention, then of single terms
    for task, kind, found in kinds_of(result):
        for subset in RULES_SHOWN:
            if any(subset not in found["rules"].get(rule, {}) for rule in ("words", "read")):
                continue
            said, read = (found["rules"][rule][subset]["error_rate"] for rule in ("words", "read"))
            name = f"{task_name(task)}, {kind}"
            numbers = f"{interval_text(said)} by the word predicted, {interval_text(read)} by the word read"
            if not above(said, read):
                lower = None not in (said["value"], read["value"]) and read["value"] < said["value"]
                open_ += [f"in {name}, it cannot be told ({numbers})"] if subset == "full" and lower else []
            elif subset == "full":
                better.append(f"in {name} ({numbers})")
            else:
                terms.append(f"{name}, {_RULED[subset]} ({numbers})")
                early += [(name, found)] if subset == "temporal_only" else []
    text = f"**Better by the word read.** Of full attention this has {'' if better else 'not '}happened"
    text += f"{'' if better else ';'} {'; '.join(better or open_)}." if better or open_ else "."
    if terms:
        text += f" Of single terms it has: {'; '.join(terms)}."
    for name, found in early:
        rates = {s: found["attention"][s]["error_rate"] for s in ("full", "no_residual")}
        if above(rates["no_residual"], rates["full"]):
            text += (
                f" The temporal parts of {name}, point one place early; residuals move attention on (by the "
                f"word predicted {interval_text(rates['full'])} with them, "
                f"{interval_text(rates['no_residual'])} without)."
            )
    return text if kinds_of(result) else ""


def _few_pairs(result: Result) -> str:
    kinds = {kind: found for task, kind, found in kinds_of(result) if task == TEXT}
    if not kinds:
        return ""
    lost = [kind for kind, found in kinds.items() if side(found["better_than_ibm_model_1"]) == "below"]
    trained_on = next(iter(kinds.values()))["gold"]["trained_on"]
    told = f"does better than {listed(lost)}" if lost else "is not clearly ahead of a network"
    return f"**IBM Model 1** {told} on {task_name(TEXT)}, from {trained_on:,} pairs, which are few."
