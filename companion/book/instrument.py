"""An instrument of the book: data in the page, for the scripts in ``book/_files/instruments`` to draw."""

import html
import json
import re

import pandas as pd

PAGE = """<div class="instrument" id="{name}" data-instrument="{name}" role="group" aria-label="{label}">
<link rel="stylesheet" href="../_static/instruments/instruments.css">
<p class="static">The figure above shows this without scripts, and the table below has its numbers.</p>
<details><summary>The same as a table</summary>{table}</details>
<script type="application/json">{data}</script>
<script src="../_static/instruments/instruments.js"></script>
<script src="../_static/instruments/{name}.js"></script></div>"""


def instrument(name: str, data: object, table: pd.DataFrame, *, label: str) -> str:
    """The HTML of an instrument. Scripts run where they are, so that nothing below it moves afterwards."""
    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    encoded = encoded.replace("<", "\\u003c")
    shown = table.reset_index().to_html(index=False, border=0, na_rep="–")
    shown = re.sub(r"<td>-(?=0\.?0*</td>)", "<td>", shown).replace("<td>-", "<td>−")  # none before a zero
    return PAGE.format(name=name, label=html.escape(label), table=shown, data=encoded)
