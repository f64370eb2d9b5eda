"""The tutorial's report as the book shows it: the page itself, in a frame where nothing runs."""

import html
import math

import torch

from attnlib.analysis.samples import Sample
from attnlib.report import AnalysisWithViews
from attnlib.report.page import page
from companion.results.result import Result
from notebooks.beyond.your_own_model.experiment import METHOD, ROWS

HEIGHT = 640  # pixels


def analysis_of(result: Result) -> tuple[AnalysisWithViews, list[str]]:
    """The analysis that a result holds, and the words that its example's ids refer to."""
    shown = result.values["example"]
    words: list[str] = []
    sides = {}
    for side in ("source", "target", "read"):
        sides[side] = torch.arange(len(words), len(words) + len(shown[side]))
        words += shown[side]
    maps = {}
    for place, weights in shown["attention"].items():
        at, _, head = place.partition("/")
        maps[at, int(head)] = torch.tensor([weights])
    rows = {
        name: [{key: math.nan if v is None else v for key, v in row.items()} for row in result.tables[name]]
        for name in ROWS
    }
    about = {
        "Model": f"the book's Transformer, {result.config['positions']} positions",
        "Corpus": f"{result.config['task'].replace('_', ' ')}, synthetic sentences",
    }
    counted = {name: result.values[name] for name in ("fitted", "judged", "held_out")}
    sample = Sample(**sides, maps=maps)
    learned = result.values["learned"]
    analysis = AnalysisWithViews(
        **rows, **counted, method=METHOD, samples=(sample,), about=about, learned=learned
    )
    return analysis, words


def framed_report(result: Result) -> str:
    """The report in a frame, as HTML; no script in it, and nothing that is fetched."""
    analysis, words = analysis_of(result)
    content = page(analysis, "How this model attends", lambda _side, token: words[token])
    return (
        f'<iframe class="report" title="The report on a small Transformer" sandbox="" '
        f'style="width:100%;height:{HEIGHT}px;border:1px solid #8886;border-radius:.4rem" '
        f'srcdoc="{html.escape(content, quote=True)}"></iframe>'
    )
