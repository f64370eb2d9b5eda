"""Answers outlive models: what is archived is not trained again, and what is not archived is said."""

import json
import shutil
from dataclasses import replace
from functools import partial
from itertools import count
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch

from attnlib.errors import BadInput, CorruptFile, NotMeasured, UnknownName
from attnlib.sealed import save_file
from companion.data import registry
from companion.results.answer import archived_measurements, measurements_of_key
from companion.results.answer import main as train
from companion.results.measurements import answers, measurements_of, specs_of
from companion.runs import encoder_decoder
from companion.runs.archive import Archive, main
from companion.runs.identity import plain, read_spec, run_id, run_record
from companion.runs.measure import Measurement, measure
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import KERNEL_SETTINGS, Store, matrix_kernels, origin
from notebooks.shared.snapshots import save_snapshot, stacked_snapshots
from tests.attnlib.refusals import assert_refused
from tests.tables import beside

SPECS = [ModelSpec("one_to_one", "AO", steps=2, width=8, seed=seed) for seed in (0, 1)]
CALLS = []


@measure(version=1)
def measure_widths(trained, factor):
    CALLS.append(trained.spec.seed)
    return {"width": trained.spec.width * factor, "third": 1 / 3}


@pytest.fixture(autouse=True)
def no_calls_yet():
    CALLS.clear()


def silent(folder):
    return Store(folder / "models", archive=folder / "archive", trains=False)


@pytest.fixture
def archived(tmp_path):
    """One answer is in the archive, and its model is gone."""
    Store(tmp_path / "models", archive=tmp_path / "archive").cached(SPECS[0], measure_widths, factor=2)
    shutil.rmtree(tmp_path / "models")
    CALLS.clear()
    return tmp_path


def test_an_archived_answer_needs_no_model(archived):
    store = silent(archived)
    assert store.cached(SPECS[0], measure_widths, factor=2) == {"width": 16, "third": 0.3333333}
    assert store.history(SPECS[0])["held_out"].keys() == {"loss", "token_accuracy", "exact_match"}
    assert not CALLS
    assert not (archived / "models").exists()


def test_an_answer_that_is_not_archived_is_refused_where_the_store_does_not_train(archived):
    message = "one_to_one AO width 8 seed 0 is not trained yet"
    question = partial(silent(archived).cached, SPECS[0], measure_widths, factor=3)
    assert_refused(question, message, NotMeasured)


def test_a_store_that_does_not_train_says_what_it_lacks(archived):
    store = silent(archived)
    with pytest.raises(NotMeasured):
        store.cached(SPECS[0], measure_widths, factor=3)
    ((name, answer),) = answers(measurements_of(SPECS, measure_widths, factor=2), store)
    assert [*store.lacking] == [SPECS[0], SPECS[1]]  # the first with another factor
    assert (name["seed"], answer["width"]) == (0, 16)


def test_an_answer_that_is_not_archived_is_measured_where_the_store_trains(archived):
    planned = measurements_of(SPECS, measure_widths, factor=2)
    fresh = answers(planned, Store(archived / "models", archive=archived / "archive"))
    assert CALLS == [1]
    shutil.rmtree(archived / "models")
    assert answers(planned, silent(archived)) == fresh
    assert len(fresh) == 2


def test_without_an_archive_answers_lie_with_the_models(tmp_path):
    for factor in (1, 1, 2):
        assert Store(tmp_path).cached(SPECS[0], measure_widths, factor=factor)["width"] == 8 * factor
    assert CALLS == [0, 0]
    assert len(list(tmp_path.glob("answers/loose/*.jsonl"))) == 1


@pytest.fixture
def kept(tmp_path):
    """An archive with two measurements of one network."""
    archive = Archive(tmp_path)
    asked = [Measurement(SPECS[0], measure_widths, (("factor", factor),)) for factor in (2, 3)]
    for number, measurement in enumerate(asked, 1):
        archive.put(measurement, {"seconds": 1}, {"width": number})
    return archive, *asked


def test_a_measurement_of_another_version_is_not_found(kept, monkeypatch):
    archive, two, _ = kept
    monkeypatch.setattr(measure_widths, "version", 2)
    assert archive.get(two) is None


def test_a_measurement_of_another_version_gives_way(kept, monkeypatch):
    archive, two, three = kept
    monkeypatch.setattr(measure_widths, "version", 2)
    archive.put(two, {}, {"width": 3})
    assert archive.get(two) == {"width": 3}
    assert archive.get(three) is None
    monkeypatch.setattr(measure_widths, "version", 1)
    assert archive.get(two) is None
    assert archive.get(three) == {"width": 2}


def test_a_run_of_another_version_of_its_training_is_another_run(kept, monkeypatch):
    archive, two, _ = kept
    monkeypatch.setattr(encoder_decoder, "VERSION", 2)
    assert archive.get(two) is None
    assert archive.history(SPECS[0]) is None


def trained(date, **more):
    return {"seconds": 1, "device": "CPU", "threads": 1, "date": date} | more


def test_a_run_that_was_trained_again_keeps_the_histories_of_all_its_trainings(kept):
    archive, two, three = kept
    for measurement, date in ((two, "2026-01-01"), (three, "2026-02-02"), (two, "2026-03-03")):
        archive.pack()
        archive.put(measurement, trained(date), {"width": 1})
    archive.pack()
    history = archive.history(SPECS[0])
    assert history["date"] == "2026-03-03"
    assert [training.get("date") for training in history["earlier"]] == ["2026-02-02", "2026-01-01", None]


def test_a_measurement_says_which_training_it_is_of(kept):
    archive, _, three = kept
    archive.pack()
    archive.put(three, trained("2026-02-02"), {"width": 1})
    archive.pack()
    (run,) = archive.runs()
    assert [line.get("trained") for line in run.measured.values()] == [None, "2026-02-02"]


def test_another_measurement_of_the_same_training_adds_no_history(kept):
    archive, two, _ = kept
    archive.pack()
    archive.put(two, {"seconds": 1}, {"width": 5})
    archive.pack()
    assert archive.history(SPECS[0]) == {"seconds": 1}


def test_packing_drops_a_run_whose_training_has_a_newer_version(kept, monkeypatch):
    archive, two, _ = kept
    archive.pack()
    monkeypatch.setattr(encoder_decoder, "VERSION", 2)
    archive.put(two, {}, {"width": 4})
    archive.pack()
    (run,) = archive.runs()
    assert run.line["version"] == 2


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("companion.runs.encoder_decoder.VERSION", "made with version 1, and today's is 2"),
        (
            "tests.companion.runs.test_archive.measure_widths.version",
            "widths at version 1, which no experiment asks for",
        ),
    ],
    ids=["training", "measurement"],
)
def test_what_todays_code_does_not_know_is_named(kept, monkeypatch, where, says):
    archive, *asked = kept
    archive.pack()
    assert list(archive.unknown(asked)) == []
    monkeypatch.setattr(where, 2)
    assert says in next(archive.unknown(asked))


def test_a_run_with_a_setting_that_is_gone_is_named(kept):
    archive, *asked = kept
    archive.pack()
    (path,) = archive.folder.glob("*.jsonl")
    path.write_text(path.read_text().replace('"clip":', '"clipped":'))
    (line,) = Archive(archive.folder).unknown(asked)
    assert "today's code cannot make it" in line
    assert "clipped" in line


def test_a_run_that_no_figure_asks_for_is_measured_again_by_what_the_archive_has_of_it(kept):
    archive, two, three = kept
    archive.pack()
    key = run_id(SPECS[0])
    again = measurements_of_key(key, {run_id(SPECS[1]): [replace(two, spec=SPECS[1])]}, archive)
    assert [measurement.id for measurement in again] == [two.id, three.id]


def test_what_a_figure_asks_of_a_run_comes_before_what_is_archived(kept):
    archive, two, _ = kept
    archive.pack()
    assert measurements_of_key(run_id(SPECS[0]), {run_id(SPECS[0]): [two]}, archive) == [two]


def test_a_key_that_nobody_knows_is_refused_with_the_most_similar_one(kept):
    archive, *_ = kept
    archive.pack()
    key = run_id(SPECS[0])
    with pytest.raises(UnknownName, match=f"did you mean '{key}'"):
        measurements_of_key(key[:-1], {}, archive)


def test_an_archived_run_that_todays_code_does_not_make_is_refused_with_the_reason(kept, monkeypatch):
    archive, two, _ = kept
    archive.pack()
    (run,) = archive.runs()
    monkeypatch.setattr(encoder_decoder, "VERSION", 2)
    with pytest.raises(BadInput, match="made with version 1, and today's is 2"):
        archived_measurements(run, [two])


def test_an_archived_run_none_of_whose_measurements_exist_today_is_refused(kept):
    archive, *_ = kept
    archive.pack()
    (run,) = archive.runs()
    with pytest.raises(BadInput, match="nothing that was measured of it is measured today"):
        archived_measurements(run, [])


def test_a_default_of_a_measurement_is_part_of_what_is_asked():
    @measure(version=1)
    def measure_half(trained, factor=2):
        return {}

    asked = Measurement(SPECS[0], measure_half)
    assert asked.question == {"measure": "half", "settings": {"factor": 2}}
    assert asked.id == Measurement(SPECS[0], measure_half, (("factor", 2),)).id


def test_what_is_no_measurement_is_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match=r"no_measure is no measurement; put @measure"):
        Store(tmp_path).cached(SPECS[0], no_measure)


def no_measure(trained):
    return {}


def test_packing_moves_answers_into_one_file_a_kind_of_run(tmp_path, capsys):
    archive = Archive(tmp_path, tmp_path / "loose")
    specs = SPECS[::-1]  # packed in another order than sorted
    questions = [
        Measurement(spec, measure_widths, (("factor", factor),)) for spec in specs for factor in (3, 2)
    ]
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
    assert [line.get("found", {}).get("width") for line in lines] == [None, 3, 2, None, 1, 0]


def test_a_line_that_is_none_is_named(tmp_path):
    archive = Archive(tmp_path)
    archive.put(Measurement(SPECS[0], measure_widths, (("factor", 2),)), {}, {})
    (path,) = (tmp_path / "loose").glob("*.jsonl")
    path.write_text(path.read_text() + "{")
    assert_refused(partial(archive.history, SPECS[0]), "line 3: no line of an archive", CorruptFile)


@measure(version=1)
def measure_apart(first, second, unit):
    CALLS.append((first.spec.seed, second.spec.seed))
    return {"apart": (second.spec.seed - first.spec.seed) * unit}


def test_an_answer_about_two_models_is_kept_with_the_first(tmp_path):
    question = replace(measurements_of(SPECS[:1], measure_apart, unit=10)[0], other_specs=(SPECS[1],))
    assert question.answer(Store(tmp_path / "models", archive=tmp_path / "archive")) == {"apart": 10}
    assert specs_of([question]) == tuple(SPECS)
    shutil.rmtree(tmp_path / "models")
    assert question.answer(silent(tmp_path)) == {"apart": 10}
    assert CALLS == [(0, 1)]


def test_an_answer_about_two_models_is_named_by_the_second(tmp_path):
    question = replace(measurements_of(SPECS[:1], measure_apart, unit=10)[0], other_specs=(SPECS[1],))
    assert question.answer(Store(tmp_path / "models", archive=tmp_path / "archive")) == {"apart": 10}
    shutil.rmtree(tmp_path / "models")
    with pytest.raises(NotMeasured):  # the same question beside another model is another question
        replace(question, other_specs=(SPECS[0],)).answer(silent(tmp_path))


def test_answers_come_in_the_order_of_the_questions(tmp_path):
    specs = [replace(SPECS[0], seed=seed) for seed in range(6)]
    known = SimpleNamespace(cached=lambda spec, measure: {"seed": spec.seed})
    for _ in range(5):
        answered = answers(measurements_of(specs, measure_widths), known)
        assert [answer["seed"] for _, answer in answered] == list(range(6))


# -- a run as a product: made once, found again, resumed, asked for as a spec -----------------------------

KILLED = beside(__file__, "killed")
TINY = KILLED["permutation_copying"]["settings"]
SPEC = RunSpec.of("permutation_copying", seed=1, **TINY)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [7, 61])  # an update: a checkpoint every ninth, or after each
@pytest.mark.parametrize("name", KILLED)
def test_a_killed_run_ends_in_the_same_recording(tmp_path, monkeypatch, name, seconds):
    settings, stop, steps = KILLED[name].values()
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path))
    spec = read_spec(json.dumps({"training": name, "settings": settings}))
    whole = Store(tmp_path / "whole").recording(spec)
    killed = Mock(side_effect=[*[None] * (stop - 1), KeyboardInterrupt, *[None] * steps[-1]])
    with monkeypatch.context() as patch:
        patch.setattr("time.monotonic", count(0, seconds).__next__)
        with pytest.raises(KeyboardInterrupt):
            Store(tmp_path / "cut", report=killed).recording(spec)
    assert not (tmp_path / "cut" / run_id(spec) / "history.json").exists()
    resumed = Store(tmp_path / "cut", report=killed).recording(spec)
    first, again = (call.args[1] for call in killed.call_args_list[stop - 1 : stop + 1])
    assert first == stop
    assert again == stop if seconds > 60 else again <= stop
    assert again > (1 if stop > 9 else 0)
    assert whole["steps"].tolist() == steps
    torch.testing.assert_close(resumed.tensors, whole.tensors, rtol=0, atol=0, equal_nan=True)


MODEL = ModelSpec("one_to_one", "AED", steps=2, width=8, task_options=(("n_held_out", 20), ("n_train", 60)))


@pytest.mark.parametrize(
    ("spec", "others"),
    [
        (SPEC, [RunSpec.of("permutation_copying", seed=2, **TINY),
                RunSpec.of("permutation_copying", seed=1, **TINY | {"width": 9})]),
        (MODEL, [replace(MODEL, seed=1), replace(MODEL, weight_decay=0.1), replace(MODEL, task_options=())]),
    ],
)  # fmt: skip
def test_ids_tell_specs_apart(spec, others):
    ids = {run_id(entry) for entry in [spec, *others]}
    assert len(ids) == 1 + len(others)
    assert run_id(spec).startswith(spec.front)


@pytest.mark.parametrize("spec", [SPEC, MODEL], ids=["procedure", "model"])
def test_a_record_makes_the_spec_of_the_same_id(spec):
    assert run_id(read_spec(json.dumps(run_record(spec)))) == run_id(spec)


@pytest.mark.parametrize("spec", [SPEC, MODEL], ids=["procedure", "model"])
def test_a_record_has_every_setting_with_its_value(spec):
    settings = run_record(spec)["settings"]
    whole = plain(vars(spec.resolved if isinstance(spec, RunSpec) else spec))
    assert settings.keys() == whole.keys()
    assert settings["seed"] == whole["seed"]


def test_a_record_has_every_option_of_its_task():
    options = run_record(MODEL)["task"]["options"]
    assert options == registry.options_of("one_to_one") | dict(MODEL.task_options)


def test_a_default_that_changes_makes_other_runs(monkeypatch):
    before = run_id(MODEL)
    monkeypatch.setattr(registry, "options_of", lambda name: {"n_words": 3})
    assert run_id(MODEL) != before


def test_an_id_is_the_same_from_whatever_folder(tmp_path, monkeypatch):
    before = run_id(MODEL)
    (tmp_path / "one_to_one").write_text("a file with the name of a setting's value")
    monkeypatch.chdir(tmp_path)
    assert run_id(MODEL) == before


def own_files(folder, content="a b c\n"):
    folder.mkdir()
    options = []
    for side in ("source", "target"):
        (folder / f"my.{side}").write_text(content)
        options.append((side, str(folder / f"my.{side}")))
    return replace(MODEL, task="parallel", task_options=tuple(options))


def test_a_readers_own_file_counts_by_its_content_wherever_it_lies(tmp_path):
    here, there = own_files(tmp_path / "a"), own_files(tmp_path / "b")
    assert run_id(here) == run_id(there)


def test_a_readers_own_file_of_other_content_makes_another_run(tmp_path):
    here, other = own_files(tmp_path / "a"), own_files(tmp_path / "b", "d e f\n")
    assert run_id(here) != run_id(other)


def test_a_spec_drops_defaults():
    assert RunSpec.of("permutation_copying", seed=1, kind="permutation", **TINY) == SPEC
    assert dict(SPEC.settings) == TINY
    assert (SPEC.resolved.seed, SPEC.resolved.width, SPEC.resolved.order) == (1, 8, "copy")
    assert SPEC.setting.endswith("width=8 seed 1")


PRODUCTS = pytest.mark.parametrize(("spec", "name"), [(SPEC, "recording"), (MODEL, "model")])


def tensors_of(product):
    return product.model.state_dict() if hasattr(product, "model") else product.tensors


@PRODUCTS
def test_a_product_is_made_once(tmp_path, spec, name):
    steps = []
    store = Store(tmp_path, report=lambda spec, step, total, loss: steps.append(step))
    first, again = store.open(spec), store.open(spec)
    total = spec.resolved.steps if spec is SPEC else spec.steps
    assert steps == list(range(1, total + 1))
    assert first.history == again.history
    torch.testing.assert_close(tensors_of(first), tensors_of(again), rtol=0, atol=0, equal_nan=True)


@PRODUCTS
def test_a_product_leaves_no_checkpoints(tmp_path, spec, name):
    Store(tmp_path).open(spec)
    files = [".lock", "history.json", f"{name}.safetensors", "run.json"]
    assert sorted(path.name for path in (tmp_path / run_id(spec)).iterdir()) == files


@PRODUCTS
def test_a_product_is_written_down_in_full(tmp_path, spec, name):
    product = Store(tmp_path).open(spec)
    assert json.loads((tmp_path / run_id(spec) / "run.json").read_text()) == run_record(spec)
    assert {"seconds", "threads", "device", "instruction_set", "kernels"} <= product.history.keys()


@PRODUCTS
def test_a_damaged_product_is_refused(tmp_path, spec, name):
    store, folder = Store(tmp_path), tmp_path / run_id(spec)
    store.open(spec)
    for file in ("history.json", f"{name}.safetensors"):
        content = (folder / file).read_bytes()
        first, second = content[: len(content) // 2], content[len(content) // 2 :]
        for damaged in (b"", b"[]", first, first + bytes([second[0] ^ 4]) + second[1:]):
            (folder / file).write_bytes(damaged)
            message = f"network is damaged … : delete {folder}, and it is made"
            assert_refused(partial(store.open, spec), message, CorruptFile)
        (folder / file).write_bytes(content)


@PRODUCTS
def test_a_product_with_other_tensors_is_refused(tmp_path, spec, name):
    store = Store(tmp_path)
    altered = {key: value + torch.nan for key, value in tensors_of(store.open(spec)).items()}
    if spec is SPEC:
        altered = {key: value[:1] for key, value in altered.items()}
    save_file(altered, tmp_path / run_id(spec) / f"{name}.safetensors")
    with pytest.raises(CorruptFile, match=r"weights are not finite|tensors have other shapes"):
        store.open(spec)


def test_a_record_that_a_run_lacks_is_refused(tmp_path):
    recording = Store(tmp_path).open(SPEC)
    with pytest.raises(BadInput, match="records no 'los'; it records: accuracy"):
        recording["los"]


@pytest.mark.parametrize("spec", [MODEL, SPEC], ids=["model", "procedure"])
def test_a_bare_node_trains_what_a_spec_says(spec, tmp_path, capsys):
    assert train([json.dumps(run_record(spec)), "--models", str(tmp_path)]) == 0
    assert (tmp_path / run_id(spec) / "history.json").is_file()
    output = capsys.readouterr()
    assert output.out == f"{run_id(spec)}: trained\n"
    assert f"{spec.setting}: step" in output.err


def test_a_training_on_a_cpu_records_what_chooses_its_kernels(monkeypatch):
    for name in KERNEL_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    kernels = origin("cpu", 1.0)["kernels"]
    assert kernels["library"].split()[0] in torch.__config__.show()
    assert kernels["settings"] == {}
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    assert origin("cpu", 1.0)["kernels"]["settings"] == {"MKL_CBWR": "COMPATIBLE"}


@pytest.mark.parametrize(
    ("preloaded", "answered"), [({"mkl_serv_intel_cpu_true": Mock()}, True), ({}, False)]
)
def test_a_library_that_answers_for_the_processor_is_recorded(monkeypatch, preloaded, answered):
    monkeypatch.setattr("ctypes.CDLL", lambda name: SimpleNamespace(**preloaded))
    assert matrix_kernels()["answered_for"] is answered


def test_a_gap_in_the_snapshots_is_said(tmp_path):
    save_snapshot(tmp_path, 0, {"twice": torch.tensor(2.0)})
    stacked = partial(stacked_snapshots, tmp_path, (0, 7))
    assert_refused(stacked, "lacks the snapshots at steps [7]", CorruptFile)
