"""The chapter on what a task teaches in words, and tables made from its numbers."""

from typing import TYPE_CHECKING

from companion.book.intervals import capital, side
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result
from notebooks.primer.what_a_task_teaches.drawing import KINDS, TASKS, rows_of

if TYPE_CHECKING:
    import pandas as pd

NOTHING = "Nothing of this has been run yet."


def quality_table(result: Result) -> "pd.DataFrame":
    """A row a kind of network and task: parameters, and quality on held-out sentences."""
    import pandas as pd

    rows = {}
    for kind, task in rows_of(result):
        found = result.values[kind][task]
        rows[f"{KINDS[kind]}: {task}"] = {
            "parameters": f"{found['parameters']:,}",
            "words right": interval_text(found["token_accuracy"]),
            "sentences without a fault": interval_text(found["exact_match"]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def pattern_sentences(result: Result) -> str:
    """Where the attention falls after training, a sentence a kind of network and task, and before."""
    lines = []
    for kind, task in rows_of(result):
        if kind == "tied":
            continue
        found, even = result.values[kind][task], result.values["references"][task]["even"]
        trained, before = found["trained"], found["untrained"]
        lines.append(
            f"* **{_first_up(KINDS[kind])}, {task}.** {interval_text(trained['on_gold'])} of the attention "
            f"falls on the source of the word written ({interval_text(before['on_gold'])} before training, "
            f"{even['on_gold']:.2f} if even), {interval_text(trained['on_topics'])} on topics "
            f"({interval_text(before['on_topics'])} before). Kendall’s τ of step and place is "
            f"{interval_text(trained['order'])} ({interval_text(before['order'])} before). "
            f"At its best step a source word gets {interval_text(trained['reach'])}, on average."
        )
    return "\n".join(lines) or NOTHING


def elsewhere_sentence(result: Result) -> str:
    """The network with the least attention on the source of what it writes, and how well it writes."""
    rows = [row for row in result.tables["networks"] if row["state"] == "trained"]
    if not rows:
        return NOTHING
    least = min(rows, key=lambda row: row["on_gold"])
    return (
        f"Of all networks, that with the least attention on the source of the word written "
        f"({KINDS[least['kind']]}, {least['task']}, seed {least['seed']}) has {least['on_gold']:.2f} there, "
        f"and writes {least['exact_match']:.2f} of its sentences without a fault."
    )


def agreement_sentences(result: Result) -> str:
    """How much of what two tasks attend to is common, against two networks of one task."""
    lines = []
    for kind, views in result.values["agreement"].items():
        sentence, same = views["sentence"], views["same_word"]
        if sentence["between"]["value"] is None:
            continue
        lines.append(
            f"* **{_first_up(KINDS[kind])}.** Over a sentence, {interval_text(sentence['between'])} of the "
            f"attention is common to the two tasks, and {interval_text(sentence['seeds'])} to two networks "
            f"of one: the task takes {_range(sentence['task_effect'])}. Where both write the same word, "
            f"{interval_text(same['between'])} is common to a translator and a summariser, "
            f"{interval_text(same['translation'])} to two translators and {interval_text(same['summary'])} "
            f"to two summarisers: the task takes {_range(same['task_effect'])}."
        )
    if not lines:
        return "Two tasks were not compared."
    topics = result.values["references"]["summary"]["gold"]["reach"]
    lines.append(
        f"* **If all attention were on gold links**, a translator and a summariser would have about "
        f"{topics:.2f} in common over a sentence, the share of its words that are topics, and 1 for the same "
        "word."
    )
    return "\n".join(lines)


def answers_sentence(result: Result) -> str:
    """What the task decides: which words are attended to, and how the source of a given word is found."""
    differs, agree = result.values["differs"], result.values["agreement"]
    topics = {kind: found["trained"]["on_topics"] for kind, found in differs.items()}
    same = {kind: found["same_word"]["task_effect"] for kind, found in agree.items()}
    same = {kind: effect for kind, effect in same.items() if effect["n"]}
    if not topics or not same:
        return "With one task there is nothing to compare."
    which = _told(
        topics,
        below="summarisers look at topics more than translators do",
        above="translators look at topics more than summarisers do",
        open_="which of the two look at topics more is undecided",
    )
    how = _told(
        same,
        below="a translator and a summariser have even more in common than two networks of one task",
        above="a translator and a summariser have less in common than two networks of one task, so the task "
        "changes how it is found",
        open_="whether the task changes it is undecided, the interval has 0 in it",
    )
    return (
        f"* ***Which* words are attended to** (share on topics, translation less summary): {which}.\n"
        f"* ***How* the source of a given word is found** (what the task takes of the attention in common "
        f"for the same word): {how}."
    )


def _told(found: dict[str, dict], *, below: str, above: str, open_: str) -> str:
    """A clause for each side on which some interval lies, with the kinds of network and the intervals."""
    clauses = []
    for where, clause in (("below", below), ("above", above), ("open", open_)):
        kinds = [f"{KINDS[kind]} {_range(own)}" for kind, own in found.items() if side(own) == where]
        if kinds:
            clauses.append(f"{clause} ({'; '.join(kinds)})")
    return "; ".join(clauses)


def class_sentence(result: Result) -> str:
    """What topics get and give in the encoder's self-attention, and whether they ask or are asked."""
    found = result.values["classes"].get("transformer", {})
    balance = {
        "above": "topics are asked more than they ask",
        "below": "topics ask more than they are asked",
        "open": "whether topics ask or are asked more is undecided",
    }
    parts = [
        f"in **{task}** the other words give the topics {interval_text(found[task]['trained']['to_topics'])} "
        f"times as much as even attention would, and get "
        f"{interval_text(found[task]['trained']['from_topics'])} times in return (before training "
        f"{interval_text(found[task]['untrained']['to_topics'])} and "
        f"{interval_text(found[task]['untrained']['from_topics'])}): "
        f"{balance[side(found[task]['trained']['one_way'])]}"
        for task in ("translation", "summary")
        if task in found
    ]
    return f"{_first_up('; '.join(parts))}." if parts else NOTHING


def source_table(result: Result) -> "pd.DataFrame":
    """A row an attention and layer, of the Transformer that translates if there is one: what moves them."""
    import pandas as pd

    names = {"encoder_self": "encoder self", "decoder_self": "decoder self", "cross": "cross"}
    table: dict[str, dict[str, str]] = {}
    rows = [row for row in result.tables["sources"] if row["kind"] == "transformer"]
    first = next((task for task in TASKS if any(row["task"] == task for row in rows)), None)
    for row in [row for row in rows if row["task"] == first]:
        line = table.setdefault(f"{names[row['attention']]}, layer {row['layer']}", {})
        text = "0" if row["value"] == row["high"] == 0 else interval_text(row)
        line[f"{row['role']}, other {row['side']}"] = text
    return pd.DataFrame.from_dict(table, orient="index")


def symmetry_table(result: Result) -> "pd.DataFrame":
    """A row a kind of attention: symmetry of maps, scores and attention, in brackets before training."""
    import pandas as pd

    names = {
        ("transformer", "encoder_self"): "self",
        ("tied", "encoder_self"): "self, tied maps",
        ("transformer", "cross"): "cross",
        ("transformer", "cross_on_source"): "cross, source twice",
    }
    headings = {
        "maps": "maps",
        "scores": "scores",
        "weights": "attention",
        "halved": "of symmetric scores",
        "ratio": "|A − Aᵀ| / |A + Aᵀ|",
    }
    rows = {}
    for task in ("translation", "summary"):
        for (kind, attention), label in names.items():
            found = result.values["symmetry"].get(kind, {}).get(task, {}).get(attention)
            if found is None or found["trained"]["scores"]["value"] is None:
                continue
            rows[f"{task}: {label}"] = {
                heading: "–"
                if found["trained"][level]["value"] is None
                else f"{interval_text(found['trained'][level])} ({found['untrained'][level]['value']:.2f})"
                for level, heading in headings.items()
            }
    return pd.DataFrame.from_dict(rows, orient="index").replace("-", "−", regex=True)


def symmetry_sentences(result: Result) -> str:
    """Whether self-attention is symmetric, and more so than cross-attention."""
    lines = []
    found = result.values["symmetry"].get("transformer", {})
    for task in (task for task in ("translation", "summary") if task in found):
        own = found[task]["encoder_self"]
        lines.append(
            f"* **{capital(task)}.** Self-attention has a reciprocity of "
            f"{_range(own['trained']['weights'])}; its scores have "
            f"{_range(own['trained']['scores'])}, "
            f"{_range(own['learned']['scores'])} more than before training. The attention that the "
            f"symmetric half of the same scores would give has {_range(own['trained']['halved'])}."
        )
        less = found[task]["self_less_cross"]
        if less["scores"]["value"] is not None:
            lines.append(
                f"* **Self less cross, {task}.** In scores {_range(less['scores'])}, in attention "
                f"{_range(less['weights'])}: {_more(less['scores'])} in scores, "
                f"{_more(less['weights'])} in attention."
            )
    return "\n".join(lines) or NOTHING


def tied_sentences(result: Result) -> str:
    """What happens where scores cannot but be symmetric."""
    lines = []
    for task, found in result.values["symmetry"].get("tied", {}).items():
        own, quality = found["encoder_self"]["trained"], result.values["tied"][task]["exact_match"]
        free = result.values.get("transformer", {}).get(task)
        beside = f" ({interval_text(free['exact_match'])} with two maps)" if free else ""
        lines.append(
            f"* **{capital(task)}.** The reciprocity of the scores is {interval_text(own['scores'])}, "
            f"that of the attention {_range(own['weights'])}. The networks write "
            f"{interval_text(quality)} of the sentences without a fault{beside}."
        )
    return "\n".join(lines) or "No network with tied maps was run."


def _range(interval: dict) -> str:
    return interval_range(interval).replace("−0.00", "0.00")


def _more(difference: dict) -> str:
    """Which of the two is the more symmetric, as far as the interval says."""
    if difference["low"] is not None and difference["low"] > 0:
        return "self-attention is the more symmetric"
    if difference["high"] is not None and difference["high"] < 0:
        return "cross-attention is the more symmetric"
    return "the two cannot be told apart"


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
