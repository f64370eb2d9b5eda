"""The tutorial's report: what the measure hands on, and the page that the book frames."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from companion.results.result import Result
from companion.runs.store import Store
from notebooks.beyond.transformer_heads import experiment
from notebooks.beyond.your_own_model import experiment as your_own_model
from notebooks.beyond.your_own_model.report import framed_report

SMALL = replace(
    experiment.PROFILES["quick"], n_train=80, judged=20, steps=2, width=8, looks=1, warmup=1, seeds=1
)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    config = your_own_model.Config(samples=60, batch_size=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(experiment.PROFILES, "quick", SMALL)
        values, tables = your_own_model.compute(config, Store(tmp_path_factory.mktemp("models")))
    return Result("your_own_model", "quick", vars(config), values, tables, data={})


def parsed(text: str) -> list[tuple[str, dict]]:
    """Every element with its attributes."""
    found: list[tuple[str, dict]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, dict(attributes)))
    parser.feed(text)
    return found


def test_the_frame_holds_the_page_and_lets_nothing_run(result):
    ((tag, attributes),) = parsed(framed_report(result))
    assert (tag, attributes["sandbox"]) == ("iframe", "")
    inside = parsed(attributes["srcdoc"])
    assert "script" not in {name for name, _ in inside}
    assert not [given for _, given in inside if any(name.startswith("on") or name == "src" for name in given)]
    assert sum(tag == "h2" for tag, _ in inside) >= 5
