"""What figures read is downloaded before they run, and its lack stops nothing."""

from types import SimpleNamespace

import pytest

from attnlib.errors import DataUnavailable
from companion.book import plan
from companion.data import registry


def results_of(*tasks: str, current: bool = False):
    specs = {task: SimpleNamespace(roots=(registry.builder(task),)) for task in tasks}
    return [SimpleNamespace(current=current, specs=specs)]


@pytest.fixture
def fetched(monkeypatch, tmp_path):
    names: list[str] = []
    monkeypatch.delenv("ATTNLIB_DATA", raising=False)
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path))
    monkeypatch.setattr("companion.book.plan.fetch", lambda dataset: names.append(dataset.name))
    return names


def test_a_task_brings_the_data_set_that_it_reads(fetched):
    specs = results_of("multi30k_en_fr", "one_to_one")[0].specs.values()
    assert [dataset.name for dataset in plan.data_of_specs(specs)] == ["multi30k"]
    plan.bring_data(results_of("multi30k_en_fr", "one_to_one", "scan"))
    assert fetched == ["multi30k"]


def test_nothing_is_fetched_for_results_that_are_there_or_beside_a_mirror(fetched, monkeypatch, tmp_path):
    plan.bring_data(results_of("multi30k_en_fr", current=True))
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    plan.bring_data(results_of("multi30k_en_fr"))
    assert fetched == []


def test_without_a_network_it_says_so_and_goes_on(fetched, monkeypatch, capsys):
    def refuse(dataset):
        raise DataUnavailable("cannot download: no network")

    monkeypatch.setattr("companion.book.plan.fetch", refuse)
    plan.bring_data(results_of("multi30k_en_fr"))
    assert "multi30k: cannot download: no network" in capsys.readouterr().err
