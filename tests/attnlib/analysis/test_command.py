"""``attnlib analyse``: from a folder and two texts, or saved traces, to a report, at once or in pieces."""

import csv
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe
from attnlib.analysis import Stream, analyse, read_report
from attnlib.analysis.report import notes
from attnlib.cli import app
from attnlib.files import locked
from tests.attnlib.analysis.builders import (
    SOURCE,
    TARGET,
    assert_same_rows,
    said_by,
    save_checkpoint,
    save_traces,
    text_of,
    tokenizer_of,
)
from tests.attnlib.analysis.test_report import FILES
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import flip

transformers = pytest.importorskip("transformers", reason="the command loads models with transformers")


def attnlib(*words):
    return CliRunner().invoke(app, ["analyse", *map(str, words)], env={"COLUMNS": "200"})


def given(corpus, out, *more):
    text = "--source", corpus / "a.txt", "--target", corpus / "b.txt"
    sizes = "--batch-size", 4, "--every", 3, "--probed", 1
    return "--model", corpus / "tiny", *text, "--out", out, *sizes, *more


def done(*words):
    """What it says where it succeeds."""
    run = attnlib(*words)
    assert run.exit_code == 0, run.output
    return run.stderr


def refused(words, message):
    """One line, but for bars of progress and what it takes, and exit code 2."""
    run = attnlib(*words)
    assert run.exit_code == 2, run.output
    assert isinstance(run.exception, SystemExit)
    bars = ("Loading weights", "first pass", "second pass", "beside the model", "threads: ")
    (said,) = [line for line in run.stderr.splitlines() if line.strip() and not line.startswith(bars)]
    assert said.startswith("error: ")
    assert message in said


def table_of(out, name="heads"):
    texts = ("kind", "term", "states")
    with (out / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [
            {key: value if key in texts else float(value or "nan") for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def files_of(out):
    files = (path for path in out.rglob("*") if path.is_file() and not path.name.endswith(".lock"))
    return {path.relative_to(out): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A checkpoint, and 24 pairs: six batches of four."""
    folder = tmp_path_factory.mktemp("corpus")
    save_checkpoint(folder / "tiny")
    text_of(folder)
    return folder


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A report of the corpus."""
    out = tmp_path_factory.mktemp("whole")
    done(*given(corpus, out))
    return out


@pytest.fixture
def counted(monkeypatch):
    """The source lines that went through the tokenizer, in order."""
    seen, kind = [], transformers.PreTrainedTokenizerFast
    call = kind.__call__

    def counting(self, text=None, text_target=None, **more):
        seen.extend(text or ())
        return call(self, text=text, text_target=text_target, **more)

    monkeypatch.setattr(kind, "__call__", counting)
    return seen


def test_it_says_what_the_library_says(corpus, whole):
    """The same model and pairs by hand; fitted, judged and probed as asked."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(corpus / "tiny", attn_implementation="eager")
    tokenizer = transformers.AutoTokenizer.from_pretrained(corpus / "tiny")
    ids = [tokenizer(lines)["input_ids"] for lines in (SOURCE, TARGET)]
    batches = [TokenBatch.of_rows(*(side[n : n + 4] for side in ids)) for n in range(0, 24, 4)]
    stream = Stream(HuggingFace(model).trace, batches, partial(lexical_probe, model), probed=1)
    found = analyse(stream, every=3)
    for name in ("heads", "terms", "states"):
        assert_same_rows(table_of(whole, name), getattr(found, name), tolerance=1e-6)
    assert len(found.heads) == 4
    assert found.heads[0]["agreement_with_probe"] >= 0


def test_again_is_the_same_and_asks_for_nothing_new(corpus, whole, monkeypatch):
    before, passes, trace = files_of(whole), [], HuggingFace.trace
    monkeypatch.setattr(HuggingFace, "trace", lambda self, batch: passes.append(1) or trace(self, batch))
    done(*given(corpus, whole))
    assert len(passes) == 1  # of the sample that is shown
    assert files_of(whole) == before


# In shards: what remains is said, and the report is the same bytes in any order.

FIRST, SECOND = (
    f"the {one} pass over shards %s of 2 is not finished: run them, then this command again"
    for one in ("first", "second")
)


def report_of(out):
    return {file: (out / file).read_bytes() for file in FILES}


@pytest.fixture(scope="module")
def in_shards(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("shards")
    done(*given(corpus, out, "--shards", 2))
    assert len(table_of(out)) == 4
    return out


def test_a_stage_that_the_one_before_is_not_finished_for_fails(corpus, tmp_path):
    """So that a workflow does not take it for done."""
    stage = partial(given, corpus, tmp_path, "--shards", 2, "--stage")
    refused(stage("report"), SECOND % "0, 1")
    done(*stage("fit", "--shard", 1))
    refused(stage("judge", "--shard", 1), FIRST % "0")
    assert not (tmp_path / "index.html").exists()


def test_a_shard_tokenizes_its_own_lines_alone(corpus, tmp_path, counted, in_shards):
    """Of six batches of four and every third held out: two blocks of three, a shard each."""
    first, second = (SOURCE[0:8], SOURCE[8:12]), (SOURCE[12:20], SOURCE[20:24])
    lines = {("fit", 1): second[0], ("fit", 0): first[0], ("judge", 0): first[1], ("judge", 1): second[1]}
    lines["report", 0] = first[1]  # the sample that is shown
    for (stage, shard), expected in lines.items():
        counted.clear()
        done(*given(corpus, tmp_path, "--shards", 2, "--stage", stage, "--shard", shard))
        assert counted[-len(expected) :] == expected
        assert set(counted) == set(expected)  # some twice: whether they can be probed is tried first
    assert report_of(tmp_path) == report_of(in_shards)


@pytest.fixture
def traces(tmp_path):
    """Passes that other code saved, with the weights in a file of their own."""
    folder, draw = save_traces(tmp_path / "traces", *range(6)), generator(0)
    maps = {f"cross.0.{side}_weight": torch.randn(2, 3, 2, generator=draw) for side in ("query", "key")}
    save_file(maps, folder / "maps.safetensors")
    return folder


@pytest.mark.parametrize("changed", ["3.safetensors", "maps.safetensors"])
def test_saved_traces(traces, tmp_path, changed):
    """What the library says; refused in the same folder after a batch changed, or the weights of all."""
    out = tmp_path / "out"
    done("--traces", traces, "--out", out)
    assert_same_rows(table_of(out), analyse(Stream.saved(traces)).heads, tolerance=1e-6)
    assert "saved traces of traces" in (out / "index.html").read_text(encoding="utf-8")
    flip(traces / changed)
    refused(["--traces", traces, "--out", out], "part of another analysis (traces is")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_names_with_letters_of_any_language_are_read_in_any_locale(tmp_path, locale):
    """One that is not UTF-8 is refused in a line."""
    save_traces(tmp_path / "träces", *range(4), name="ö{}")
    ascii_only = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "attnlib.cli", "analyse", "--every", "1", "--traces", "träces", "--out"]
    for out, code, said in (("repört", 0, b"report: rep"), (b"\xff", 2, b"is not UTF-8: give the folder")):
        run = subprocess.run([*command, out], cwd=tmp_path, env=os.environ | ascii_only, capture_output=True)
        assert (run.returncode, said in run.stderr) == (code, True), run.stderr.decode(errors="replace")
    page = (tmp_path / "repört" / "index.html").read_text(encoding="utf-8")
    assert "<h1>How saved traces of träces attends</h1>" in page


def test_a_prefix_is_read_before_every_source(corpus, tmp_path, counted):
    done(*given(corpus, tmp_path, "--prefix", "the old "))
    assert set(counted) == {f"the old {line}" for line in SOURCE}
    assert said_by(tmp_path)["about"]["Before every source"] == "the old "
    refused(given(corpus, tmp_path, "--prefix", "the "), "(model is ")


def test_a_model_is_analysed_on_what_it_writes_itself(corpus, tmp_path):
    """The source alone is read; whether it predicts its own words is not asked; shards come to the same."""
    source = "--model", corpus / "tiny", "--source", corpus / "a.txt", "--generate", "--longest", 9
    sizes = "--batch-size", 4, "--every", 3, "--probed", 1
    done(*source, *sizes, "--out", tmp_path / "one")
    said = said_by(tmp_path / "one")
    assert said["about"]["Corpus"] == "a.txt"
    assert said["about"]["Target"].startswith("what the model itself writes")
    assert "no reference to say how good" in said["about"]["Predictions"]
    assert said["made"]["options"]["--generate"] is True
    assert said["made"]["sha256"].keys() == {"source", "model"}
    assert (said["fitted"], said["judged"], said["learned"]) == (16, 8, {})
    done(*source, *sizes, "--shards", 2, "--out", tmp_path / "two")
    assert_same_rows(table_of(tmp_path / "one"), table_of(tmp_path / "two"), tolerance=1e-6)


def test_a_report_says_what_made_it_and_a_file_beside_it_when_and_how_long_it_took(corpus, whole, tmp_path):
    """All options but those of a call; the checksums of texts and model; versions."""
    run = json.loads((whole / "run.json").read_text(encoding="utf-8"))
    assert 0 < run["seconds"] < 600
    assert abs(datetime.now(UTC) - datetime.fromisoformat(run["date"])) < timedelta(hours=1)
    assert run["seeds"] == []
    said, options = said_by(whole), said_by(whole)["made"]["options"]
    assert said["schema"] == 3
    assert options["--ignore-special"] is False
    assert (options["--batch-size"], options["--every"], options["--kinds"]) == (4, 3, "cross")
    assert {"--threads", "--out", "--stage", "--shard"}.isdisjoint(options)
    assert {len(own) for own in said["made"]["sha256"].values()} == {64}
    assert said["made"]["sha256"].keys() == {"source", "target", "model"}
    assert said["made"]["versions"]["transformers"] == transformers.__version__
    assert said["unknown_pieces"] == {"source": 0, "target": 0}
    assert said["learned"]["sentences"] == 8
    done(*given(corpus, tmp_path, "--ignore-special", "--method", "means"))
    other = said_by(tmp_path)["made"]["options"]
    assert (other["--ignore-special"], other["--method"]) == (True, "means")


def test_nothing_is_sent_anywhere(corpus, tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: sent.append(address))
    done(*given(corpus, tmp_path))
    assert sent == []


@pytest.mark.parametrize(("sentences", "count"), [(12, 4), (2, 2), (0, 1)])
def test_a_report_holds_the_words_of_the_pairs_it_shows_and_of_no_other(tmp_path, sentences, count):
    """Each pair has a word of its own; the page has those of a few that were judged, and says of how many."""
    source = [f"the dog asks{n:02}" for n in range(24)]
    target = [f"le chien dit{n:02}" for n in range(24)]
    save_checkpoint(tmp_path / "tiny")
    tokenizer_of([*source, *target]).save_pretrained(tmp_path / "tiny")
    text_of(tmp_path, "\n".join(source), "\n".join(target))
    done(*given(tmp_path, out := tmp_path / "out", "--kinds", "cross,encoder_self", "--sentences", sentences))
    own = re.compile(rb"(?:asks|dit)\d\d")
    found = {str(path): set(own.findall(content)) for path, content in files_of(out).items()}
    assert {name for name, words in found.items() if words} == {"index.html"}
    assert len(found) > 6  # tables, and the sums of both passes
    shown = {word[-2:] for word in found["index.html"]}
    assert len(found["index.html"]) == 2 * len(shown)  # either side
    page = (out / "index.html").read_text(encoding="utf-8")
    said = "one sentence pair" if count == 1 else f"{count} sentence pairs"
    assert f"This page holds the words of {said} and of no other." in page
    assert len(shown) == count


@pytest.mark.parametrize("shards", [(), ("--shards", 2)])
def test_pairs_left_out_and_cut_are_told(corpus, tmp_path, shards):
    """Of the 24 pairs and four with an empty side; no more than seven pieces of a side are read."""
    text = text_of(tmp_path, "\n".join(["", *SOURCE, "a\n\n\n"]), "\n".join(["A", *TARGET, " \nA\n\n"]))
    out, files = tmp_path / "out", ("--source", text.source, "--target", text.target)
    done(*given(corpus, out, *files, "--longest", 7, "--probed", 0, *shards))
    long = sum(max(len(s.split()), len(t.split())) + 1 > 7 for s, t in zip(SOURCE, TARGET, strict=True))
    assert 0 < long < 24
    said = said_by(out)
    assert (said["losses"]["left_out"], said["losses"]["cut"]) == (4, long)
    assert any(f"asked for: {long} pairs" in note for note in said["notes"])
    assert any("an empty side: 4 pairs" in note for note in said["notes"])
    assert notes(read_report(out)) == said["notes"], "what a report warned of is there when it is read again"


@pytest.mark.parametrize("name", ["best (v2)", "[/red][bold]out"])
def test_folders_with_brackets_in_their_names(corpus, tmp_path, name):
    """In the title of the report, and in a terminal, whose markup must not take them for its own."""
    folder, out = tmp_path / name, tmp_path / "reports" / name
    shutil.copytree(corpus / "tiny", folder)
    assert f"report: {out / 'index.html'}" in done(*given(corpus, out, "--model", folder))
    assert f"<h1>How {folder.name} attends</h1>" in (out / "index.html").read_text(encoding="utf-8")


def test_the_second_of_two_analyses_of_one_folder_is_told_who_works_there(corpus, tmp_path, whole):
    """Before it reads anything; a shard of its own is nobody's, and afterwards all is as from one alone."""
    given_here = partial(given, corpus, tmp_path)
    with locked(tmp_path / "parts" / "judge-0-of-1"):
        refused(given_here(), f"judge-0-of-1 is being written by process {os.getpid()}, since 20")
        assert not list(tmp_path.rglob("*.safetensors"))
        done(*given_here("--shards", 2, "--shard", 1))
    done(*given_here())
    assert report_of(tmp_path) == report_of(whole)


TEXT = ["--source", "a.txt", "--target", "b.txt"]
TINY = ["--model", "tiny", *TEXT]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give --model, --source and --target, or --generate for it; or --traces alone"),
        (TEXT, "give --model, --source and --target"),
        ([*TINY, "--generate"], "a target is given, and generate asks the model to write it"),
        (["--traces", "tiny", "--generate"], "or --traces alone"),
        (["--traces", "tiny", *TINY], "or --traces alone"),
        (["--traces", "tiny", "--source", "a.txt"], "or --traces alone"),
        (["--traces", "none"], "none holds no *.safetensors"),
        (["--traces", "tiny", "--ignore-special", "--probed", "0"], "--ignore-special, --probed: said of"),
        ([*TINY, "--stage", "fitt"], "no stage 'fitt'; did you mean 'fit'?"),
        ([*TINY, "--shards", "3", "--stage", "fit"], "give --shard 0 to 2"),
        ([*TINY, "--shards", "3", "--shard", "3"], "shard is 3 of 3"),
        ([*TINY, "--layers", "7"], "layers [7] of cross: this model has 2"),
        ([*TINY, "--layers", "one"], "'one' are no numbers"),
        ([*TINY, "--heads", "0,9"], "heads [9]: cross.0 has 2"),
        ([*TINY, "--method", "mean"], "no method 'mean'; did you mean 'means'?"),
        ([*TINY, "--kinds", "crss"], "no kind of attention 'crss'; did you mean 'cross'?"),
        ([*TINY, "--device", "gpu"], "device 'gpu' cannot be used"),
        ([*TINY, "--device", "meta"], "device 'meta' cannot be used"),
        (["--model", "{corpus}/nowhere", *TEXT], "nowhere: give one that save_pretrained wrote"),
        ([*TINY, "--longest", "1"], "no row of attention has two positions"),
        ([*TINY, "--out", "out\udcff"], "--out 'out\\udcff' is not UTF-8: give"),
        ([*TINY, "--out", "a.txt/out"], "cannot write a.txt/out"),
        (["--model", "tiny", "--source", "c.txt", "--target", "b.txt"], "source c.txt is not there"),
        (["--model", "tiny", "--source", "blank.txt", "--target", "blank.txt"], "no sample with a counted"),
    ],
)
def test_each_error_is_one_line(corpus, tmp_path, monkeypatch, words, message):
    (corpus / "blank.txt").write_bytes(b"\n \n")
    monkeypatch.chdir(corpus)
    words = [word.format(corpus=corpus) for word in words]
    refused(["--out", tmp_path / "out", *words], message)
    assert not (tmp_path / "out" / "index.html").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--layers", "0"), "layers is None there, [0] here"),
        (("--heads", "0"), "heads is None there, [0] here"),
        (("--batch-size", 5), "batch_size is 4 there, 5 here"),
        (("--every", 2), "every is 3 there, 2 here"),
        (("--method", "means"), "method is least_squares there, means here"),
        (("--ignore-special",), "ignore_special is False there, True here"),
    ],
)
def test_another_analysis_in_the_same_folder_is_refused(corpus, whole, more, said):
    before = files_of(whole)
    refused(given(corpus, whole, *more), said)
    assert files_of(whole) == before
