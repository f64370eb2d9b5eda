"""The chapter on training in words, and tables made from its numbers."""

from typing import TYPE_CHECKING

from attnlib.decomposition.components import PART_NAMES
from attnlib.plots.style import PART_SYMBOLS
from companion.book.intervals import listed, side
from companion.book.project import current_project
from companion.book.tables import interval_range, interval_text
from companion.claims import judge_values, load_claims
from companion.results.result import Result
from notebooks.beyond.along_training.drawing import name_of, tasks_of
from notebooks.beyond.along_training.experiment import TASKS

if TYPE_CHECKING:
    import pandas as pd

NOTHING = "Nothing of this has been run yet."
ORDERS = {
    "temporal": "temporal terms",
    "input": "input terms",
    "with_input": "terms with an input component",
    "on_word": "attention on the right word",
    "token_accuracy": "words right",
}
REFERENCES = {
    "order": "share of β on the right word",
    "order_by_gain": "log β at its best over its mean",
    "order_by_accuracy": "largest β on the right word",
}


def takeover_sentences(result: Result) -> str:
    """A line a task: when each quantity has made half of its way, and what never does."""
    lines = []
    for task in tasks_of(result):
        found = result.values["takeover"][task]
        parts = [
            f"{label} at {_steps(found[name])}"
            for name, label in (
                ORDERS | {"translation": "translation", "word_accuracy": "the largest β"}
            ).items()
            if found[name]["value"] is not None
        ]
        never = [
            label
            for name, label in (ORDERS | {"translation": "translation"}).items()
            if found[name]["value"] is None
        ]
        end = f" Never, in no network: {', '.join(never)}." if never else ""
        lines.append(f"* **{_first_up(name_of(task))}**, updates: {'; '.join(parts) or 'nothing'}.{end}")
    return "\n".join(lines) or NOTHING


def order_sentences(result: Result) -> str:
    """What comes before translation and what after, a line a quantity, by the intervals."""
    lines = []
    for name, label in ORDERS.items():
        parts = []
        for task in tasks_of(result):
            interval = result.values["order"][task][f"{name}_after_translation"]
            if interval["value"] is not None:
                parts.append(f"{_when(interval)} in {name_of(task)} ({interval_range(interval)})")
        without = [task for task in tasks_of(result) if _undefined(result, task, name)]
        if without:
            parts.append(f"not comparable in {listed([name_of(task) for task in without])}")
        if parts:
            lines.append(f"* **{_first_up(label)}**: {'; '.join(parts)}.")
    return "\n".join(lines) or NOTHING


def order_table(result: Result) -> "pd.DataFrame":
    """Rows tasks and measures of knowledge, columns quantities: log2 of how much later they take over."""
    import pandas as pd

    rows = {
        f"{name_of(task)}: {reference}": {
            label: interval_text(result.values[key][task][f"{name}_after_translation"])
            for name, label in ORDERS.items()
        }
        for task in tasks_of(result)
        for key, reference in REFERENCES.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def share_table(result: Result) -> "pd.DataFrame":
    """The same with covariance shares: before training and at the end, and log2 after translation."""
    import pandas as pd

    rows = {}
    for task in tasks_of(result):
        row = {}
        for name in ("temporal", "input"):
            own = [
                r for r in result.tables["courses"] if (r["task"], r["quantity"]) == (task, f"{name}_share")
            ]
            row |= {
                f"{name} share, untrained": interval_text(own[0]),
                f"{name}, trained": interval_text(own[-1]),
                f"{name} after translation": interval_text(
                    result.values["order_by_shares"][task][f"{name}_after_translation"]
                ),
            }
        rows[name_of(task)] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def term_table(result: Result) -> "pd.DataFrame":
    """Covariance shares of the nine terms at the last look, decoder's part first."""
    import pandas as pd

    rows = {
        name_of(task): {
            f"{PART_SYMBOLS[queries]}{PART_SYMBOLS[keys]}": interval_text(
                result.values["terms"][task][f"{queries}_{keys}"]
            )
            for queries in PART_NAMES
            for keys in PART_NAMES
        }
        for task in tasks_of(result)
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def term_sentences(result: Result) -> str:
    """The two largest terms of each task in the end, and what input terms alone rebuild."""
    lines = []
    for task in tasks_of(result):
        found = result.values["terms"][task]
        largest = sorted((name for name in found if found[name]["value"] is not None),
                         key=lambda name: found[name]["value"], reverse=True)[:2]  # fmt: skip
        parts = [f"{name.replace('_', ' by ')} {interval_range(found[name])}" for name in largest]
        alone = interval_range(result.values["last"][task]["input"])
        lines.append(
            f"* **{_first_up(name_of(task))}**: {' and '.join(parts)}. "
            f"Input by input has {interval_range(found['input_input'])} and rebuilds {alone} beyond uniform."
        )
    return "\n".join(lines) or NOTHING


def elsewhere_sentence(result: Result) -> str:
    """Where attention is in the end where it is not on the right word, though words are right."""
    parts = []
    for task in tasks_of(result):
        last = result.values["last"][task]
        if last["on_word"]["value"] < last["chance"]["value"]:
            parts.append(
                f"In {name_of(task)} {interval_range(last['on_word'])} of the attention is on the right word "
                f"and {interval_range(last['on_end'])} on the end mark of the source, while "
                f"{interval_range(last['token_accuracy'])} of the words are right."
            )
    return " ".join(parts) or "In every task more attention than by chance ends on the right word."


def uniform_sentences(result: Result) -> str:
    """What networks know whose attention is held uniform, beside their twins."""
    lines = []
    for task in (task for task in TASKS if task in result.values["uniform"]):
        found = result.values["uniform"][task]
        above = found["above_chance"]
        knows = "knows nothing that can be told from chance"
        if above["low"] is not None and above["low"] > 0:
            knows = "knows more than chance"
        elif above["high"] is not None and above["high"] < 0:
            knows = "is below chance"
        twin = found["less_learned"]
        beside = (
            "" if twin["value"] is None else f" Less its twin that learns attention: {interval_range(twin)}."
        )
        lines.append(
            f"* **{_first_up(name_of(task))}**: it {knows}, by {interval_range(above)} (chance "
            f"{found['chance']['value']:.2f}). Its largest β is on the right word for "
            f"{interval_range(found['word_accuracy'])} of the words, and "
            f"{interval_range(found['token_accuracy'])} of the words are right.{beside}"
        )
    return "\n".join(lines) or NOTHING


def changed_mind_sentences(result: Result) -> str:
    """Which of the three things that would change our mind have happened, by the intervals."""
    tasks, values = tasks_of(result), result.values
    ignorant = [
        f"{name_of(task)} ({interval_range(values['uniform'][task]['above_chance'])} above chance)"
        for task in tasks
        if task in values["uniform"]
        and side(values["uniform"][task]["above_chance"]) != "above"
        and side(values["last"][task]["on_word"], values["last"][task]["chance"]["value"]) == "above"
    ]
    early = [
        f"{name_of(task)} ({interval_range(values['order_by_accuracy'][task]['on_word_after_translation'])})"
        for task in tasks
        if side(values["order_by_accuracy"][task]["on_word_after_translation"]) == "below"
    ]
    orders = {
        task: [values[key][task]["input_after_translation"] for key in ("order", "order_by_accuracy")]
        for task in tasks
    }
    without_words = [
        f"{name_of(task)} (by the share of β {interval_range(share)}, "
        f"by the largest β {interval_range(largest)})"
        for task, (share, largest) in orders.items()
        if side(share) == "below"
    ]
    told = {"first": ignorant, "second": early, "third": without_words}
    happened = [f"The {which} has happened in {listed(parts)}." for which, parts in told.items() if parts]
    not_seen = [which for which, parts in told.items() if not parts]
    if not_seen:
        happened.append(f"Not seen here: the {listed(not_seen)}.")
    return " ".join(happened)


def prediction_table(result: Result) -> "pd.DataFrame":
    """What was predicted before any network was trained, what was measured, and the verdict."""
    import pandas as pd

    rows = {}
    for claim in load_claims(current_project().root / "claims"):
        if claim.experiment == result.experiment and result.profile in claim.profiles:
            judged = judge_values(claim.judge, result.values, claim.keys)
            measured = "; ".join(map(str, judged.evidence.values())) or "–"
            rows[claim.says] = {"measured": measured, "verdict": judged.verdict.value}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["measured", "verdict"])


def _undefined(result: Result, task: str, name: str) -> bool:
    return result.values["order"][task][f"{name}_after_translation"]["value"] is None


def _when(interval: dict) -> str:
    if interval["low"] is None or interval["low"] <= 0 <= interval["high"]:
        return "at a time not to be told from that of translation"
    return "after translation" if interval["value"] > 0 else "before translation"


def _steps(interval: dict) -> str:
    """An interval of log2 of steps as steps."""
    numbers = (2 ** interval[end] for end in ("value", "low", "high") if interval[end] is not None)
    value, *ends = (f"{number:,.0f}" if number >= 10 else f"{number:.1f}" for number in numbers)
    return f"{value} [{', '.join(ends)}]" if ends else value


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
