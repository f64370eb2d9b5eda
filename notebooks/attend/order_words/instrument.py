"""What the instrument of the page draws: one pair of sentences for each task, network and exchange."""

import numpy as np
import pandas as pd

from companion.book.project import find_root
from companion.results.result import Result
from notebooks.shared.invented_language import REVERSING_OPENINGS, SWAPPING_MODIFIERS, TRANSLATIONS
from notebooks.shared.style import task_name

PAIR = ["task", "kind", "swap"]
RULES = (
    "The words on the left are invented; the English ones follow in brackets. "
    f"{', '.join(SWAPPING_MODIFIERS)} go behind their noun; "
    f"after {' or '.join(REVERSING_OPENINGS)} the phrases come in reverse order."
)


def pairs(result: Result, swaps: dict[str, str]) -> tuple[dict, pd.DataFrame]:
    """Both runs of every pair; ``gain``: how much of the change the input component makes, over networks."""
    if not result.tables.get("examples"):
        return {}, pd.DataFrame()
    listed, rows = [], []
    for names, pair in pd.DataFrame(result.tables["examples"]).groupby(PAIR, sort=False):
        runs = [_run(pair[pair["run"] == run].sort_values("target_position")) for run in ("first", "second")]
        steps, place = min(len(run["matrix"]) for run in runs), int(pair["position"].iloc[0])
        before, after = (np.array(run["matrix"][:steps]) for run in runs)
        words = " → ".join(run["source"][place] for run in runs)
        task, kind, swap = names
        gain = result.values[task][kind][swap]["predictions"]["changed"]["input"]["gain"]["value"]
        rows.append([task_name(task), kind, swap, words, abs(after - before).sum(1).mean() / 2, gain])
        listed.append(dict(zip(PAIR, names, strict=True)) | {"place": place, "runs": runs, "gain": gain})
    tasks = {pair["task"]: task_name(pair["task"]) for pair in listed}
    shown_swaps = {pair["swap"]: swaps[pair["swap"]] for pair in listed}
    columns = ["task", "network", "exchange", "words", "weight that moves, mean of steps"]
    columns.append("made by the input component alone, mean of networks")
    table = pd.DataFrame(rows, columns=columns).set_index("task").round(2)
    # Tasks of which networks run in the page.
    here = find_root().glob("book/_files/instruments/networks/*-AED.js")
    named = sorted(path.stem.removesuffix("-AED") for path in here)
    data = {"tasks": tasks, "swaps": shown_swaps, "pairs": listed, "here": named}
    rules = dict.fromkeys(filter(_is_invented, tasks), RULES)
    return data | {"glosses": _glosses(listed), "rules": rules}, table


def _is_invented(task: str) -> bool:
    return task.startswith("reordering")


def _glosses(pairs: list[dict]) -> dict[str, str]:
    """Return the English word for each word of the invented language that a network writes here."""
    english = {translation: word for word, translation in TRANSLATIONS.items()}
    invented = [pair for pair in pairs if _is_invented(pair["task"])]
    written = {word for pair in invented for run in pair["runs"] for word in run["predicted"]}
    return {word: english[word] for word in sorted(written & english.keys())}


def _run(rows: pd.DataFrame) -> dict:
    matrix = [[float(weight) for weight in row.split()] for row in rows["attention"]]
    run = {"source": rows["source"].iloc[0].split(), "predicted": rows["predicted"].tolist()}
    return run | {"matrix": matrix}
