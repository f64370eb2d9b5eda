"""Answers made by older code are renewed when making some of them again gives every digit, and only then."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from attnlib.errors import BadInput
from attnlib.experiments import old_answers as module
from attnlib.experiments import renew as flow
from attnlib.experiments.asks import Ask
from attnlib.experiments.old_answers import Old, old_answers, witnesses
from attnlib.experiments.renew import difference, of_code_before, renew
from attnlib.recipes.recipe import RecipeSpec
from attnlib.training.archive import Archive
from attnlib.training.spec import ModelSpec
from attnlib.training.store import Store, kept_name


def measure_tokens(trained, *beside, start: int) -> dict:
    return {"tokens": start + len(trained.task.source_vocabulary), "loss": trained.history["records"]}


def spec(architecture: str, seed: int) -> ModelSpec:
    return ModelSpec("one_to_one", architecture, steps=2, width=8, seed=seed)


ASKS = [Ask(spec(kind, seed), measure_tokens, (("start", 1),)) for kind in ("AED", "AO") for seed in (0, 1)]
TODAY = kept_name(measure_tokens, {"start": 1})
OLD = TODAY.rpartition("-")[0] + "-000000000000"


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Four networks with an answer of older code each."""
    folder = tmp_path / "archive"
    store = Store(tmp_path / "models", archive=folder)
    for asked in ASKS:
        asked.answer(store)
        edit(Archive(folder).path(asked.spec), lambda content: {OLD: content[TODAY]})
    monkeypatch.setattr(module, "all_asks", lambda profile: {str(i): [a] for i, a in enumerate(ASKS)})
    return folder


def edit(path, change):
    content = json.loads(path.read_text())
    content["measured"] = change(content["measured"])
    path.write_text(json.dumps(content))


def names(archive):
    return [list(json.loads(Archive(archive).path(asked.spec).read_text())["measured"]) for asked in ASKS]


def test_witnesses_are_one_of_each_architecture(archive):
    old = old_answers("paper", archive)
    assert len(old) == 4
    assert sorted(one.asked.spec.architecture for one in witnesses(old)) == ["AED", "AO"]


def old_of(recipe, **settings):
    spec = RecipeSpec.of(recipe, seed=settings.pop("seed", 0), **settings)
    return Old(Ask(spec, measure_tokens), Path("x.json"), OLD, float(spec.resolved.steps))


def test_witnesses_of_a_recipe_are_one_of_each_choice():
    """A bag of words says nothing of an LSTM, nor one direction of another; a size changes no code."""
    old = [
        old_of("permutation_copying", network=network, steps=steps)
        for network in ("learned", "uniform", "proxy")
        for steps in (300, 500)
    ]
    assert {one.asked.spec for one in witnesses(old)} == {one.asked.spec for one in old[::2]}
    heads = [old_of("multi_head", heads=given) for given in ((1,), (2, 3))]
    assert len(witnesses(heads)) == 1
    flags = [old_of("translation", saliency=flag, seed=seed) for flag in (True, False) for seed in (0, 1)]
    assert len(witnesses(flags)) == 2
    beside = [replace(old[0], asked=replace(old[0].asked, beside=(one.asked.spec,))) for one in old]
    assert len(witnesses(beside)) == 3
    assert witnesses([replace(one, listed=False) for one in old]) == []


@pytest.fixture
def before(tmp_path, archive):
    """What the code before finds of all four: the same as today's, under its own name."""
    return Path(shutil.copytree(archive, tmp_path / "before"))


def test_what_both_codes_find_alike_is_renewed(archive, before, tmp_path):
    outcome = renew(old_answers("paper", archive), before, Store(tmp_path / "models"), archive)
    assert outcome == {OLD: "4 renewed"}
    assert names(archive) == [[TODAY]] * 4
    assert old_answers("paper", archive) == []


def under_other_keys(folder):
    """As if other training code had made the models; names with the keys of others follow."""
    keys = {path.stem: path.stem.rpartition("-")[0] + "-000000000000" for path in folder.glob("*.json")}
    for path in list(folder.glob("*.json")):
        text = path.read_text()
        for key, other in keys.items():
            text = text.replace(key, other)
        path.unlink()
        path.with_stem(keys[path.stem]).write_text(text)


def test_what_is_kept_under_the_key_of_other_training_code_is_renewed(archive, before, tmp_path):
    for folder in (archive, before):
        under_other_keys(folder)
    old = old_answers("paper", archive)
    assert {one.file.stem[-12:] for one in old} == {"0" * 12}
    assert renew(old, before, Store(tmp_path / "models"), archive) == {OLD: "4 renewed"}
    assert names(archive) == [[TODAY]] * 4
    assert len(list(archive.glob("*.json"))) == 4


def test_what_was_measured_beside_a_model_follows_both_keys(tmp_path, monkeypatch):
    together = [replace(asked, beside=(ASKS[i - 1].spec,)) for i, asked in enumerate(ASKS)]
    monkeypatch.setattr(module, "all_asks", lambda profile: {str(i): [a] for i, a in enumerate(together)})
    store = Store(tmp_path / "models")
    for folder in (tmp_path / "archive", tmp_path / "before"):
        own = Store(tmp_path / "models", archive=folder)
        for asked in together:
            asked.answer(own)
        under_other_keys(folder)
    old = old_answers("paper", tmp_path / "archive")
    assert len(old) == 4
    assert {one.measure for one in old} == {TODAY}
    outcome = renew(old, tmp_path / "before", store, tmp_path / "archive")
    assert outcome == {TODAY: "4 renewed"}
    archive = Archive(tmp_path / "archive")
    assert all(archive.get(asked.spec, module.name_of(asked)) for asked in together)


def test_without_a_witness_nothing_is_renewed(archive, before, tmp_path):
    old = [replace(one, listed=one.asked.spec.architecture == "AED") for one in old_answers("paper", archive)]
    outcome = renew(old, before, Store(tmp_path / "models"), archive)
    assert "no witness for one_to_one AO" in outcome[OLD]
    assert names(archive) == [[OLD]] * 4


def test_only_answers_of_the_code_before_count(archive):
    """The checkout is this one: it knows files by today's keys alone."""
    old = old_answers("paper", archive)
    root = Path(flow.__file__).parents[2]
    assert of_code_before(root, old) == old
    strange = [replace(one, file=one.file.with_stem("x-000000000000")) for one in old]
    assert of_code_before(root, strange) == []
    with pytest.raises(BadInput, match="ended with 2"):
        flow.answered_before(root, strange, "paper", "models", archive)


def test_one_witness_that_differs_stops_all_of_its_measure(archive, before, tmp_path):
    for asked in ASKS[2:]:  # AO
        edit(Archive(before).path(asked.spec), lambda content: {OLD: content[OLD] | {"tokens": 99}})
    outcome = renew(old_answers("paper", archive), before, Store(tmp_path / "models"), archive)
    assert "AO" in outcome[OLD]
    assert "tokens was 99" in outcome[OLD]
    assert names(archive) == [[OLD]] * 4


def test_the_code_before_must_be_the_one_that_answered(archive, before, tmp_path):
    for asked in ASKS:
        edit(Archive(before).path(asked.spec), lambda content: {OLD.replace("0", "1"): content[OLD]})
    outcome = renew(old_answers("paper", archive), before, Store(tmp_path / "models"), archive)
    assert "not what this answer was made with" in outcome[OLD]
    assert names(archive) == [[OLD]] * 4


def test_other_settings_are_another_question(archive):
    for asked in ASKS:
        other = OLD.replace("start=1", "start=2")
        edit(Archive(archive).path(asked.spec), lambda content, other=other: {other: content[OLD]})
    assert old_answers("paper", archive) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, ""),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a[1].b was 2, is 3"),
        ({"a": 1}, {"b": 1}, " was {'a': 1}, is {'b': 1}"),
        ([1, 2], [1], " was [1, 2], is [1]"),
    ],
)
def test_the_first_difference_is_named(before, after, said):
    assert difference(before, after) == said
