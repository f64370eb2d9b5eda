"""An instrument of the book: data in the page, for the scripts in ``book/_files/instruments`` to draw."""

import html
import json

import pandas as pd

PAGE = """<div class="instrument" id="{name}" data-instrument="{name}" role="group" aria-label="{label}">
<link rel="stylesheet" href="{up}_static/instruments/instruments.css">
<p class="static">The figure above shows this without scripts, and the table below has its numbers.</p>
<details><summary>The same as a table</summary>{table}</details>
<script type="application/json">{data}</script>
<script src="{up}_static/instruments/instruments.js"></script>
<script src="{up}_static/instruments/{name}.js"></script></div>"""


def instrument(name: str, data: object, table: pd.DataFrame, *, label: str, up: str = "../") -> str:
    """The HTML of an instrument; ``up`` leads from its page to the root of the site.

    Scripts run where they stand, so that what they draw is there before the page below it. Without them a
    reader has the ``table``.
    """
    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    shown = table.to_html(border=0, na_rep="–")
    return PAGE.format(
        name=name, label=html.escape(label), up=up, table=shown, data=encoded.replace("<", "\\u003c")
    )
