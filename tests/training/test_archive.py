"""Answers outlive models: what is archived is not trained again, and what is not archived is said."""

import json
import shutil
from dataclasses import replace

import pytest

from attnlib.errors import NotMeasured
from attnlib.experiments.asks import answers, ask, not_measured, specs_of
from attnlib.training.archive import Archive
from attnlib.training.spec import ModelSpec
from attnlib.training.store import Store, kept_name

SPECS = [ModelSpec("one_to_one", "AO", steps=2, width=8, seed=seed) for seed in (0, 1)]
CALLS = []


def widths(trained, factor):
    CALLS.append(trained.spec.seed)
    return {"width": trained.spec.width * factor, "third": 1 / 3}


@pytest.fixture(autouse=True)
def no_calls_yet():
    CALLS.clear()


@pytest.fixture
def archived(tmp_path):
    """An archive that knows the first model, and no models any more."""
    store = Store(tmp_path / "models", archive=tmp_path / "archive")
    store.kept(SPECS[0], widths, factor=2)
    shutil.rmtree(tmp_path / "models")
    CALLS.clear()
    return tmp_path


def test_an_archived_answer_needs_no_model(archived):
    store = Store(archived / "models", archive=archived / "archive", trains=False)
    assert store.kept(SPECS[0], widths, factor=2) == {"width": 16, "third": 0.3333333}
    assert store.history(SPECS[0])["held_out"].keys() == {"loss", "token_accuracy", "exact_match"}
    assert not CALLS
    assert not (archived / "models").exists()


def test_another_setting_or_model_is_not_answered(archived):
    store = Store(archived / "models", archive=archived / "archive", trains=False)
    with pytest.raises(NotMeasured, match="one_to_one AO width 8 seed 0 is not trained yet"):
        store.kept(SPECS[0], widths, factor=3)
    assert not_measured(ask(SPECS, widths, factor=2), store) == (SPECS[1],)
    ((name, found),) = answers(ask(SPECS, widths, factor=2), store)
    assert (name["seed"], found["width"]) == (0, 16)


def test_a_store_that_trains_answers_what_is_missing_and_archives_it(archived):
    store = Store(archived / "models", archive=archived / "archive")
    assert len(answers(ask(SPECS, widths, factor=2), store)) == 2
    assert CALLS == [1]
    name = kept_name(widths, {"factor": 2})
    assert Archive(archived / "archive").get(SPECS[1], name)["width"] == 16


def test_fresh_and_archived_answers_are_equal(tmp_path):
    fresh = Store(tmp_path / "models", archive=tmp_path / "archive").kept(SPECS[0], widths, factor=2)
    again = Store(tmp_path / "none", archive=tmp_path / "archive", trains=False).kept(
        SPECS[0], widths, factor=2
    )
    assert fresh == again


def test_an_answer_by_older_code_gives_way(tmp_path):
    archive = Archive(tmp_path)
    archive.put(SPECS[0], {}, "widths(factor=2)-old", {"width": 1})
    archive.put(SPECS[0], {}, "widths(factor=3)-old", {"width": 2})
    archive.put(SPECS[0], {}, "widths(factor=2)-new", {"width": 3})
    held = json.loads(archive.path(SPECS[0]).read_text(encoding="utf-8"))["measured"]
    assert held == {"widths(factor=2)-new": {"width": 3}, "widths(factor=3)-old": {"width": 2}}


def apart(first, second, unit):
    CALLS.append((first.spec.seed, second.spec.seed))
    return {"apart": (second.spec.seed - first.spec.seed) * unit}


def test_an_answer_about_two_models_is_kept_with_the_first_and_named_by_the_second(tmp_path):
    (one,) = ask(SPECS[:1], apart, unit=10)
    one = replace(one, beside=(SPECS[1],))
    archive = tmp_path / "archive"
    store = Store(tmp_path / "models", archive=archive)
    assert one.answer(store) == {"apart": 10}
    assert specs_of([one]) == tuple(SPECS)
    shutil.rmtree(tmp_path / "models")
    silent = Store(tmp_path / "models", archive=archive, trains=False)
    assert one.answer(silent) == {"apart": 10}
    assert CALLS == [(0, 1)]
    with pytest.raises(NotMeasured):  # the same question beside another model is another question
        replace(one, beside=(SPECS[0],)).answer(silent)


def test_answers_come_in_the_order_of_the_questions(tmp_path):
    specs = [replace(SPECS[0], seed=seed) for seed in range(6)]

    class Known:
        def kept(self, spec, measure):
            return {"seed": spec.seed}

    for _ in range(5):
        assert [found["seed"] for _, found in answers(ask(specs, widths), Known())] == list(range(6))
