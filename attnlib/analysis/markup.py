"""Tables, coloured squares and matrices in HTML; what comes in as a cell is markup already."""

import html
import math
from collections.abc import Iterable, Sequence

# The book's colours of the parts, see attnlib.plots.style; purple and green are for what is beside them.
COLOURS = {
    "temporal": "#0072b2", "input": "#d55e00", "mixed": "#aa4499", "residual": "#888888", "bias": "#009e73",
}  # fmt: skip
PLAIN = "currentColor"  # black on white, white on black
STRONG = 0.75  # from here on, a square's own colour is behind its number

STYLE = """
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.4rem 0 1rem}
th,td{padding:.2rem .5rem;text-align:right;font-weight:normal;white-space:nowrap}
th{text-align:left}
thead th{border-bottom:1px solid #8888;text-align:right;vertical-align:bottom}
thead th:first-child{text-align:left}
figure{margin:0}
figcaption{font-weight:600;font-size:.95rem}
.grids{display:flex;flex-wrap:wrap;gap:1.2rem 2rem}
.grids figure{max-width:100%}
.grid td{min-width:2.1rem;text-align:center;font-size:.85rem}
.grid thead th{text-align:center}
.map td{padding:0;width:1.1rem;height:1.1rem;min-width:1.1rem}
.map th{font-size:.8rem;padding:.1rem .3rem}
.map .out{background:repeating-linear-gradient(45deg,#8889 0 2px,transparent 2px 5px)}
.map thead th{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;border:0;padding:.3rem 0}
"""


def table(columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], of: str = "") -> str:
    """A table whose rows begin with a heading of their own.

    Args:
        rows: heading and cells; a cell that begins with ``<td`` stands as it is.
        of: its class.
    """
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row">{heading}</th>{"".join(map(_cell, cells))}</tr>' for heading, cells in rows
    )
    kind = f' class="{of}"' if of else ""
    return (
        f'<div class="wide"><table{kind}><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def number(value: float | int) -> str:
    """A number with two decimals, a count with none; a dash where it is undefined.

    >>> number(-0.001), number(12_000), number(math.nan)
    ('0.00', '12,000', '–')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "–"
    shown = f"{value:.2f}".replace("-", "−")
    return shown.removeprefix("−") if set(shown) <= set("−0.") else shown


def square(value: float, colour: str) -> str:
    """A cell as strongly coloured as its value, between −1 and 1, is large; hatched where it is negative."""
    if math.isnan(value):
        return "<td>–</td>"
    strength = min(1.0, abs(value))
    paint = _paint(COLOURS.get(colour, PLAIN), 0.9 * strength if colour in COLOURS else 0.35 * strength)
    if value < -0.005:  # a sign must not hang on a hue
        paint = f"repeating-linear-gradient(45deg,{paint} 0 3px,transparent 3px 6px)"
    white = ";color:#fff" if strength > STRONG and value > 0 and colour in COLOURS else ""
    return f'<td style="background:{paint}{white}">{number(value)}</td>'


def matrix(weights: Sequence[Sequence[float]], asks: Sequence[str], answers: Sequence[str]) -> str:
    """Weights between 0 and 1 as squares, the darker the larger, hatched where they are NaN.

    A word may stand for several places.
    """
    lines = [(word, list(map(_weight, row))) for word, row in zip(asks, weights, strict=True)]
    return table(answers, lines, "map")


def _weight(own: float) -> str:
    if math.isnan(own):
        return '<td class="out" title="left out"></td>'
    return f'<td style="background:{_paint(PLAIN, own)}" title="{own:.2f}"></td>'


def figure(title: str, content: str) -> str:
    """Something with a title above."""
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{content}</figure>"


def folded(title: str, content: str, *, opened: bool = False) -> str:
    """Something that is shown when asked for."""
    return f"<details{' open' if opened else ''}><summary>{html.escape(title)}</summary>{content}</details>"


def _paint(colour: str, strength: float) -> str:
    return f"color-mix(in srgb,{colour} {100 * strength:.0f}%,transparent)"


def _cell(content: str) -> str:
    return content if content.startswith("<td") else f"<td>{content}</td>"
