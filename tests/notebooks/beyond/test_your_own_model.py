"""The tutorial's report: what the measure hands on, and the page that the book frames."""

import html
import re
from dataclasses import replace

from companion.results.result import Result
from notebooks.beyond.transformer_heads import experiment
from notebooks.beyond.your_own_model import experiment as your_own_model
from notebooks.beyond.your_own_model.report import framed_report
from tests.notebooks.figure_builders import tiny

SMALL = replace(
    experiment.PROFILES["quick"], n_train=80, judged=20, steps=2, width=8, snapshots=1, warmup=1, seeds=1
)


def test_the_frame_holds_the_page_and_lets_nothing_run(store, monkeypatch):
    config = tiny("your_own_model")
    monkeypatch.setitem(experiment.PROFILES, "quick", SMALL)
    values, tables = your_own_model.compute(config, store)
    frame = framed_report(Result("your_own_model", "quick", vars(config), values, tables, data={}))
    assert re.match(r'<iframe [^<>]*sandbox="" [^<>]*></iframe>$', frame)
    page = html.unescape(frame.partition('srcdoc="')[2])
    assert page.count("<h2") >= 5
    assert not re.search(r"<script|<[^<>]*\s(on\w+|src)=", page)
