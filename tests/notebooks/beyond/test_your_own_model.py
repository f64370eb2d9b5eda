"""The tutorial's report: what the measure hands on, and the page that the book frames."""

import html
import re
from dataclasses import replace

import pytest

from companion.results.result import Result
from companion.runs.store import Store
from notebooks.beyond.transformer_heads import experiment
from notebooks.beyond.your_own_model import experiment as your_own_model
from notebooks.beyond.your_own_model.report import framed_report

SMALL = replace(
    experiment.PROFILES["quick"], n_train=80, judged=20, steps=2, width=8, snapshots=1, warmup=1, seeds=1
)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    config = your_own_model.Config(samples=60, batch_size=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(experiment.PROFILES, "quick", SMALL)
        values, tables = your_own_model.compute(config, Store(tmp_path_factory.mktemp("models")))
    return Result("your_own_model", "quick", vars(config), values, tables, data={})


def test_the_frame_holds_the_page_and_lets_nothing_run(result):
    frame = framed_report(result)
    assert re.match(r'<iframe [^<>]*sandbox="" [^<>]*></iframe>$', frame)
    page = html.unescape(frame.partition('srcdoc="')[2])
    assert page.count("<h2") >= 5
    assert not re.search(r"<script|<[^<>]*\s(on\w+|src)=", page)
