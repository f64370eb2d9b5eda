"""The page of an analysis: one HTML file without scripts, which asks nothing of a network."""

import html
import math
from collections.abc import Callable

from attnlib.analysis.how_to_read import READING, notes
from attnlib.analysis.markup import STYLE, figure, folded, matrix, number, square, table
from attnlib.analysis.results import KINDS, LONGEST_EXAMPLE, Analysis, Example
from attnlib.analysis.shown_text import escaped, sentence

Name = Callable[[str, int], str]  # side and id → the word

TITLES = {
    "cross": "Cross-attention: the decoder asks the source",
    "encoder_self": "Self-attention of the encoder",
    "decoder_self": "Self-attention of the decoder",
}
SQUARES = {  # of a head: column, title, colour
    "temporal_share": ("temporal share", "temporal"),
    "input_share": ("input share", "input"),
    "mixed_share": ("mixed share", "mixed"),
    "residual_share": ("share of terms with a residual", "residual"),
    "position_bias_share": ("share of the position bias", "bias"),
    "typicality": ("typicality", "plain"),
}
REBUILDS = {
    "uniform": "no term (uniform)",
    "temporal_rebuilds": "temporal · temporal",
    "input_rebuilds": "input · input",
    "no_residual_rebuilds": "all without residual",
    "spread": "spread of the scores",
    "agreement_with_probe": "agreement with the lexical probe",
    "agreement_by_chance": "by chance",
    "rows_probed": "rows probed",
}
OF_THE_PROBE = ("agreement_with_probe", "agreement_by_chance", "rows_probed")
STATES = {
    "width": "width", "words": "words seen", "positions": "positions", "fitted": "fitted on",
    "judged": "judged", "unseen_words": "share unseen", "megabytes": "MB",
}  # fmt: skip
ROWS_ARE = {"cross": ("target", "source"), "encoder_self": ("source",) * 2, "decoder_self": ("read",) * 2}
MOST_MAPS = 48  # example matrices on the page

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.6rem}
h2{margin-top:2.2rem}
.note{border-left:.3rem solid #d55e00;padding:.2rem .8rem;margin:.8rem 0}
details{margin:.4rem 0}
summary{cursor:pointer}
dt{font-weight:600}
dd{margin:0 0 .6rem 1rem}
.about{display:grid;grid-template-columns:fit-content(40%) 1fr;gap:.1rem 1.2rem;margin:0}
.about dt{font-weight:normal}
.about dd{margin:0}
"""


def page(analysis: Analysis, title: str, name: Name) -> str:
    """The page; ``name`` gives the word of an id of a side, and any word may be hostile."""
    title = sentence(title)
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in analysis.heads)]
    body = "".join(
        [
            f"<h1>{title}</h1>",
            _about(analysis),
            *(f'<p class="note">{sentence(note)}</p>' for note in notes(analysis)),
            *(_kind(analysis, kind) for kind in kinds),
            _example(analysis.example, name) if analysis.example else "",
            _states(analysis),
            READING,
        ]
    )
    # The policy forbids scripts and anything from elsewhere, should a word ever get through unescaped.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}{STYLE}</style></head><body>{body}</body></html>\n"
    )


def _about(analysis: Analysis) -> str:
    facts = analysis.about | {
        "Samples fitted on": f"{analysis.fitted:,}",
        "Samples judged": f"{analysis.judged:,}" + ("" if analysis.held_out else " (the same)"),
    }
    rows = (f"<dt>{sentence(key)}</dt><dd>{sentence(value)}</dd>" for key, value in facts.items())
    return f'<dl class="about">{"".join(rows)}</dl>'


def _kind(analysis: Analysis, kind: str) -> str:
    rows = [row for row in analysis.heads if row["kind"] == kind]
    grids = "".join(
        figure(title, _grid(rows, column, colour))
        for column, (title, colour) in SQUARES.items()
        if column != "position_bias_share" or any(row[column] for row in rows)
    )
    probed = any(row["rows_probed"] for row in rows)
    known = {name: title for name, title in REBUILDS.items() if probed or name not in OF_THE_PROBE}
    rebuilt = table(list(known.values()), [(_place(row), _numbers(row, known)) for row in rows])
    return (
        f'<h2 id="{kind}">{TITLES[kind]}</h2><p>A row is a layer, a column a head.</p>'
        f'<div class="grids">{grids}</div>'
        + folded("Attention rebuilt from some of the terms, head by head", rebuilt)
        + folded("Share of every term: part of what asks · part of what answers", _terms(analysis, kind))
    )


def _grid(rows: list[dict], column: str, colour: str) -> str:
    heads, layers = (sorted({row[name] for row in rows}) for name in ("head", "layer"))
    values = {(row["layer"], row["head"]): row[column] for row in rows}
    lines = [
        (f"layer {layer}", [square(values.get((layer, head), math.nan), colour) for head in heads])
        for layer in layers
    ]
    return table([str(head) for head in heads], lines, "grid")


def _terms(analysis: Analysis, kind: str) -> str:
    rows = [row for row in analysis.terms if row["kind"] == kind]
    by_head: dict[str, list[str]] = {}
    for row in rows:
        by_head.setdefault(_place(row), []).append(number(row["covariance_share"]))
    columns = dict.fromkeys(html.escape(row["term"]) for row in rows)
    return table(list(columns), list(by_head.items()))


def _states(analysis: Analysis) -> str:
    rows = [(escaped(row["states"]), _numbers(row, STATES)) for row in analysis.states]
    said = "What projections read; each has components of its own."
    return f"<h2>States</h2><p>{said}</p>{table(list(STATES.values()), rows)}"


def _example(example: Example, name: Name) -> str:
    words = {
        "source": [escaped(name("source", int(token))) for token in example.source],
        "target": [escaped(name("target", int(token))) for token in example.target],
        "read": [escaped(name("target", int(token))) for token in example.read],
    }
    shown = list(example.attention.items())[:MOST_MAPS]
    maps, hatched = [], False
    for (at, head), weights in shown:
        kind, layer = at.split(".")
        title = f"{TITLES[kind].split(':')[0]}, layer {layer}, head {head}"
        drawn = matrix(weights.tolist(), *(words[side] for side in ROWS_ARE[kind]))
        maps.append(folded(title, drawn, opened=not maps))
        hatched = hatched or bool(weights.isnan().any())
    more = len(example.attention) - len(shown)
    left = f"<p>{more} more heads are not drawn.</p>" if more else ""
    said = (
        "Rows ask, columns answer; a row of cross-attention is about the word predicted there. The darker, "
        "the more attention (on a dark page, the lighter)."
    )
    if hatched:
        said += " Hatched is what is left out; attention is dealt out anew among the rest, each row to one."
    source, target = example.lengths or (0, 0)
    if max(source, target) > LONGEST_EXAMPLE:
        said += (
            f" Shown are the first {LONGEST_EXAMPLE} positions of a side; the source has {source:,}, the "
            f"target {target:,}."
        )
    return f"<h2>One sample</h2><p>{said}</p>{''.join(maps)}{left}"


def _place(row: dict) -> str:
    return f"layer {row['layer']}, head {row['head']}"


def _numbers(row: dict, columns: dict[str, str]) -> list[str]:
    return [number(row[column]) for column in columns]
