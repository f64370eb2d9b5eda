"""Answers outlive models: what is archived is not trained again, and what is not archived is said."""

import json
import random
import shutil
from dataclasses import replace

import pytest

from attnlib.errors import CorruptFile, NotMeasured
from companion.results.measurements import answers, measurements_of, not_measured, specs_of
from companion.runs.answer import ARCHIVE
from companion.runs.archive import Archive, Measurement, main
from companion.runs.spec import ModelSpec
from companion.runs.store import Store

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
    store.cached(SPECS[0], widths, factor=2)
    shutil.rmtree(tmp_path / "models")
    CALLS.clear()
    return tmp_path


def silent(folder):
    """A store that does not train."""
    return Store(folder / "models", archive=folder / "archive", trains=False)


def test_an_archived_answer_needs_no_model(archived):
    store = silent(archived)
    assert store.cached(SPECS[0], widths, factor=2) == {"width": 16, "third": 0.3333333}
    assert store.history(SPECS[0])["held_out"].keys() == {"loss", "token_accuracy", "exact_match"}
    assert not CALLS
    assert not (archived / "models").exists()


def test_another_setting_or_model_is_measured_where_the_store_trains_and_archived(archived):
    store, planned = silent(archived), measurements_of(SPECS, widths, factor=2)
    with pytest.raises(NotMeasured, match="one_to_one AO width 8 seed 0 is not trained yet"):
        store.cached(SPECS[0], widths, factor=3)
    assert not_measured(planned, store) == (SPECS[1],)
    ((name, found),) = answers(planned, store)
    assert (name["seed"], found["width"]) == (0, 16)
    fresh = answers(planned, Store(archived / "models", archive=archived / "archive"))
    assert CALLS == [1]
    shutil.rmtree(archived / "models")
    assert answers(planned, silent(archived)) == fresh
    assert len(fresh) == 2


def test_without_an_archive_answers_lie_with_the_models(tmp_path):
    for factor in (1, 1, 2):
        assert Store(tmp_path).cached(SPECS[0], widths, factor=factor)["width"] == 8 * factor
    assert CALLS == [0, 0]
    assert len(list(tmp_path.glob("answers/loose/*.jsonl"))) == 1


def test_answers_by_other_code_are_not_found_and_give_way(tmp_path, monkeypatch):
    archive, history = Archive(tmp_path), {"seconds": 1}
    two, three = (Measurement(SPECS[0], widths, (("factor", factor),)) for factor in (2, 3))
    archive.put(two, history, {"width": 1})
    archive.put(three, history, {"width": 2})
    monkeypatch.setattr("companion.runs.archive.fingerprint", lambda measure: "of an edited measure")
    assert archive.get(two) is None
    archive.put(two, history, {"width": 3})
    assert (archive.get(two), archive.get(three)) == ({"width": 3}, None)
    monkeypatch.setattr("companion.runs.archive.code_of", lambda spec: "of training that was edited")
    assert archive.get(two) is None
    assert archive.history(SPECS[0]) is None
    archive.put(three, history, {"width": 4})
    assert (archive.get(two), archive.get(three)) == (None, {"width": 4})
    # Code that was shown to be equal answers as well.
    before = three.code
    monkeypatch.setattr("companion.runs.archive.fingerprint", lambda measure: "edited again")
    assert archive.get(three) is None
    monkeypatch.setattr("companion.runs.keys._was", lambda: {"edited again": "edited", "edited": before})
    assert archive.get(three) == {"width": 4}


def test_packing_moves_answers_into_one_file_a_kind_of_run_and_loses_none(tmp_path, capsys):
    archive = Archive(tmp_path, tmp_path / "loose")
    specs = SPECS[::-1]  # packed in another order than sorted
    questions = [Measurement(spec, widths, (("factor", factor),)) for spec in specs for factor in (3, 2)]
    for number, question in enumerate(questions):
        archive.put(question, {}, {"width": number})
        if number == 0:
            assert archive.pack() == 1
    assert main([str(tmp_path), "--answers", str(tmp_path / "loose")]) == 0
    assert capsys.readouterr().out == "packed: 2 training runs\n"
    archive = Archive(tmp_path, tmp_path / "loose")
    assert not list((tmp_path / "loose").glob("*.jsonl"))
    assert [archive.get(question)["width"] for question in questions] == [0, 1, 2, 3]
    (path,) = tmp_path.glob("*.jsonl")
    assert path.name == "encoder_decoder.one_to_one.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line.get("found", {}).get("width") for line in lines[:-1]] == [None, 3, 2, None, 1, 0]
    assert lines[-1].keys() == {"seal"}


def test_a_line_that_is_none_is_named(tmp_path):
    archive = Archive(tmp_path)
    archive.put(Measurement(SPECS[0], widths, (("factor", 2),)), {}, {})
    (path,) = (tmp_path / "loose").glob("*.jsonl")
    path.write_text(path.read_text() + "{")
    with pytest.raises(CorruptFile, match="line 3: no line of an archive"):
        archive.history(SPECS[0])


@pytest.mark.parametrize("path", sorted(ARCHIVE.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_flipped_bit_of_the_committed_archive_is_noticed_wherever_it_is(path, tmp_path):
    """So is a line that is gone, one that is there twice, and one below the seal; files of old have none."""
    whole, draw = path.read_bytes(), random.Random(path.stem)
    *lines, seal = whole.splitlines(keepends=True)
    places = [0, len(whole) - 1, len(whole) - len(seal) - 1, *(draw.randrange(len(whole)) for _ in range(5))]
    spoilt = [bytearray(whole) for _ in places]
    for content, place in zip(spoilt, places, strict=True):
        content[place] ^= 1 << draw.randrange(8)
    spoilt += [
        b"".join(own) for own in ([*lines[:-1], seal], [*lines, lines[-1], seal], [*lines, seal, lines[-1]])
    ]
    for content in (whole, b"".join(lines)):
        (tmp_path / path.name).write_bytes(content)
        assert list(Archive(tmp_path).runs())
    for content in spoilt:
        (tmp_path / path.name).write_bytes(content)
        with pytest.raises(CorruptFile, match=path.name):
            list(Archive(tmp_path).runs())


def apart(first, second, unit):
    CALLS.append((first.spec.seed, second.spec.seed))
    return {"apart": (second.spec.seed - first.spec.seed) * unit}


def test_an_answer_about_two_models_is_kept_with_the_first_and_named_by_the_second(tmp_path):
    one = replace(measurements_of(SPECS[:1], apart, unit=10)[0], other_specs=(SPECS[1],))
    assert one.answer(Store(tmp_path / "models", archive=tmp_path / "archive")) == {"apart": 10}
    assert specs_of([one]) == tuple(SPECS)
    shutil.rmtree(tmp_path / "models")
    assert one.answer(silent(tmp_path)) == {"apart": 10}
    assert CALLS == [(0, 1)]
    with pytest.raises(NotMeasured):  # the same question beside another model is another question
        replace(one, other_specs=(SPECS[0],)).answer(silent(tmp_path))


def test_answers_come_in_the_order_of_the_questions(tmp_path):
    specs = [replace(SPECS[0], seed=seed) for seed in range(6)]

    class Known:
        def cached(self, spec, measure):
            return {"seed": spec.seed}

    for _ in range(5):
        found = answers(measurements_of(specs, widths), Known())
        assert [answer["seed"] for _, answer in found] == list(range(6))
