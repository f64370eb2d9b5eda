"""The tutorial's report, as it stands in the book: the page itself in a frame where nothing runs."""

import html
import math
from typing import TYPE_CHECKING

import torch

from attnlib.analysis.report import number, page
from attnlib.analysis.results import Analysis, Example
from companion.results.result import Result

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 640  # pixels


def analysis_of(result: Result) -> tuple[Analysis, list[str]]:
    """The analysis that a result holds, and the words that its example's ids stand for."""
    shown = result.values["example"]
    words: list[str] = []
    sides = {}
    for side in ("source", "target", "read"):
        sides[side] = torch.arange(len(words), len(words) + len(shown[side]))
        words += shown[side]
    attention = {}
    for place, weights in shown["attention"].items():
        at, _, head = place.partition("/")
        attention[at, int(head)] = torch.tensor(weights)
    rows = {name: [_whole(row) for row in result.tables[name]] for name in ("heads", "terms", "states")}
    analysis = Analysis(
        **rows,
        fitted=result.values["fitted"],
        judged=result.values["judged"],
        held_out=result.values["held_out"],
        example=Example(sides["source"], sides["target"], sides["read"], attention),
        about={
            "Model": f"the book's Transformer, {result.config['positions']} positions",
            "Corpus": f"{result.config['task'].replace('_', ' ')}, sentences made by rule",
        },
    )
    return analysis, words


def framed_report(result: Result) -> str:
    """The report in a frame, as HTML; without scripts, and asking nothing of a network."""
    analysis, words = analysis_of(result)
    content = page(analysis, "How this model attends", lambda _side, token: words[token])
    return (
        f'<iframe class="report" title="The report on a small Transformer" sandbox="" '
        f'style="width:100%;height:{HEIGHT}px;border:1px solid #8886;border-radius:.4rem" '
        f'srcdoc="{html.escape(content, quote=True)}"></iframe>'
    )


def _whole(row: dict) -> dict:
    return {key: _known(value) for key, value in row.items()}


def heads_table(result: Result) -> "pd.DataFrame":
    """The heads of the cross-attention: what a researcher looks at first."""
    import pandas as pd

    columns = {
        "temporal_share": "temporal share",
        "input_share": "input share",
        "mixed_share": "mixed share",
        "residual_share": "with a residual",
        "temporal_rebuilds": "temporal rebuilds",
        "input_rebuilds": "input rebuilds",
        "uniform": "no term",
        "typicality": "typicality",
    }
    rows = {
        f"layer {row['layer']}, head {row['head']}": {
            title: number(_known(row[name])) for name, title in columns.items()
        }
        for row in result.tables["heads"]
        if row["kind"] == "cross"
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def reading_sentences(result: Result) -> str:
    """The same in words: the most temporal head, the most input-driven one, and what rebuilds them."""
    heads = [row for row in result.tables["heads"] if row["kind"] == "cross"]
    lines = []
    for part in ("temporal", "input"):
        known = [row for row in heads if row[f"{part}_share"] is not None]
        if not known:
            continue
        row = max(known, key=lambda own: own[f"{part}_share"])
        gain = row[f"{part}_rebuilds"] - row["uniform"]
        lines.append(
            f"* The largest {part} share of the cross-attention is {number(row[f'{part}_share'])}, in layer "
            f"{row['layer']}, head {row['head']}: there {part} terms alone rebuild "
            f"{number(row[f'{part}_rebuilds'])} of the attention, {number(gain)} more than no term at all."
        )
    return "\n".join(lines)


def _known(value: float | None) -> float:
    return math.nan if value is None else value
