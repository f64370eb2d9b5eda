"""``attnlib analyse``: from a folder and two texts, or saved traces, to a report, at once or in pieces."""

import json
import shutil
from functools import partial

import pytest
from safetensors.torch import save_file

from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe
from attnlib.analysis import Stream, analyse
from attnlib.analysis.command import numbers
from attnlib.errors import BadInput
from tests.attnlib.analysis.analysis_builders import (
    SOURCE,
    TARGET,
    Toy,
    analysed,
    assert_same_rows,
    attnlib,
    given,
    refused,
    save_checkpoint,
    table_of,
    text_of,
)
from tests.attnlib.analysis.test_report import FILES

transformers = pytest.importorskip("transformers", reason="the command loads models with transformers")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A checkpoint, and 24 pairs: six batches of four."""
    folder = tmp_path_factory.mktemp("corpus")
    save_checkpoint(folder / "tiny")
    text_of(folder)
    return folder


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A report of the corpus, and what was said."""
    out = tmp_path_factory.mktemp("whole")
    return out, analysed(corpus, out)


@pytest.fixture
def counted(monkeypatch):
    """The source lines that went through the tokenizer, in order."""
    seen = []
    kind = transformers.PreTrainedTokenizerFast
    call = kind.__call__

    def counting(self, text=None, text_target=None, **more):
        seen.extend(text or ())
        return call(self, text=text, text_target=text_target, **more)

    monkeypatch.setattr(kind, "__call__", counting)
    return seen


def said_by(out):
    return json.loads((out / "analysis.json").read_text(encoding="utf-8"))


# Whole runs.


def test_it_says_what_the_library_says(corpus, whole):
    """The same model and pairs by hand; fitted, judged and probed as asked."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(corpus / "tiny", attn_implementation="eager")
    tokenizer = transformers.AutoTokenizer.from_pretrained(corpus / "tiny")
    ids = [tokenizer(lines)["input_ids"] for lines in (SOURCE, TARGET)]
    batches = [TokenBatch.of_rows(*(side[n : n + 4] for side in ids)) for n in range(0, 24, 4)]
    stream = Stream(HuggingFace(model).trace, batches, partial(lexical_probe, model), probed=1)
    found = analyse(stream, every=3)
    for name in ("heads", "terms", "states"):
        assert_same_rows(table_of(whole[0], name), getattr(found, name), tolerance=1e-6)
    assert len(found.heads) == 4
    assert found.heads[0]["agreement_with_probe"] >= 0


def test_again_is_the_same_and_asks_for_nothing_new(corpus, whole, monkeypatch):
    out, _ = whole
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    passes = []
    trace = HuggingFace.trace
    monkeypatch.setattr(HuggingFace, "trace", lambda self, batch: passes.append(1) or trace(self, batch))
    analysed(corpus, out)
    assert len(passes) == 1  # of the sample that is shown
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


# In shards.


def steps(*wanted):
    """(stage, shard) as arguments."""
    return [("--stage", stage, *(() if shard is None else ("--shard", shard))) for stage, shard in wanted]


ORDERS = [
    steps(("fit", 1), ("fit", 0), ("judge", 0), ("judge", 1), ("report", None)),
    steps(("all", 1), ("all", 0), ("all", 1)),
    steps(("all", None)),
]


@pytest.fixture(scope="module")
def by_order(corpus, tmp_path_factory):
    found = []
    for order in ORDERS:
        out = tmp_path_factory.mktemp("shards")
        said = [analysed(corpus, out, "--shards", 2, *step).stderr for step in order]
        found.append((out, said))
    return found


def test_shards_in_any_order_come_to_the_same_report(by_order):
    for file in FILES:
        assert len({(out / file).read_bytes() for out, _ in by_order}) == 1
    assert len(table_of(by_order[0][0])) == 4


def test_what_remains_is_said(by_order):
    first = by_order[1][1]
    assert "the first pass over shards 0 of 2 is not finished: run them, then this command again" in first[0]
    assert "the second pass over shards 1 of 2 is not finished" in first[1]
    assert "report: " in first[2]
    assert "report: " not in first[0] + first[1]


def test_a_stage_that_the_one_before_is_not_finished_for_fails(corpus, tmp_path):
    """So that a workflow does not take it for done."""
    second = "the second pass over shards 0, 1 of 2 is not finished: run them, then this command again"
    refused(given(corpus, tmp_path, "--shards", 2, "--stage", "report"), second)
    analysed(corpus, tmp_path, "--shards", 2, "--stage", "fit", "--shard", 1)
    first = "the first pass over shards 0 of 2 is not finished"
    refused(given(corpus, tmp_path, "--shards", 2, "--stage", "judge", "--shard", 1), first)
    assert not (tmp_path / "index.html").exists()


def test_a_shard_tokenizes_its_own_lines_alone(corpus, tmp_path, counted, by_order):
    """Of six batches of four and every third held out: two blocks of three, a shard each."""
    by_shard = []
    for stage in ("fit", "judge"):
        for shard in (0, 1):
            analysed(corpus, tmp_path, "--shards", 2, "--stage", stage, "--shard", shard)
            by_shard.append(list(counted))
            counted.clear()
    assert by_shard == [SOURCE[0:8], SOURCE[12:20], SOURCE[8:12], SOURCE[20:24]]
    analysed(corpus, tmp_path, "--shards", 2, "--stage", "report")
    assert counted == SOURCE[8:12]  # the sample that is shown
    for file in FILES:
        assert (tmp_path / file).read_bytes() == (by_order[0][0] / file).read_bytes()


# Saved traces.


@pytest.fixture
def traces(tmp_path):
    """Passes that other code saved, with the weights in a file of their own."""
    folder = tmp_path / "traces"
    folder.mkdir()
    toy = Toy()
    own = toy(0).attended[0]
    maps = {"query_weight": own.query_map.weight, "key_weight": own.key_map.weight}
    save_file({f"cross.0.{name}": weight for name, weight in maps.items()}, folder / "maps.safetensors")
    for number in range(6):
        one = toy(number)
        names = ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask")
        states = {"query_states": one.attended[0].query_inputs, "key_states": one.attended[0].key_inputs}
        tensors = {name: getattr(one, name).clone() for name in names}
        tensors |= {f"cross.0.{name}": value.clone() for name, value in states.items()}
        save_file(tensors, folder / f"{number}.safetensors")
    return folder


def test_saved_traces(traces, tmp_path):
    done = attnlib("--traces", traces, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert len(table_of(tmp_path / "out")) == 2
    found = analyse(Stream.saved(traces))
    assert_same_rows(table_of(tmp_path / "out"), found.heads, tolerance=1e-6)
    assert "saved traces of traces" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["3.safetensors", "maps.safetensors"])
def test_other_traces_in_the_same_folder_are_refused(traces, tmp_path, name):
    """A batch that changed, or the weights of all."""
    assert attnlib("--traces", traces, "--out", tmp_path / "out").exit_code == 0
    content = bytearray((traces / name).read_bytes())
    content[-1] ^= 1
    (traces / name).write_bytes(bytes(content))
    refused(["--traces", traces, "--out", tmp_path / "out"], "part of another analysis (traces is")


# Languages, prefixes, names, and what the numbers are not of.


def test_a_prefix_is_read_before_every_source(corpus, tmp_path, counted):
    analysed(corpus, tmp_path, "--prefix", "the old ")
    assert counted[0] == f"the old {SOURCE[0]}"
    assert set(counted) == {f"the old {line}" for line in SOURCE}
    said = said_by(tmp_path)
    assert said["about"]["Before every source"] == "the old "
    refused(given(corpus, tmp_path, "--prefix", "the "), "(model is ")


@pytest.mark.parametrize("shards", [(), ("--shards", 2)])
def test_pairs_left_out_and_cut_are_told(corpus, tmp_path, shards):
    """Of the 24 pairs and four with an empty side; no more than seven pieces of a side are read."""
    text = "\n".join(["", *SOURCE, "a", "", ""]) + "\n", "\n".join(["A", *TARGET, " ", "A", ""]) + "\n"
    for name, content in zip(("a.txt", "b.txt"), text, strict=True):
        (tmp_path / name).write_text(content, encoding="utf-8")
    words = ["--model", corpus / "tiny", "--source", tmp_path / "a.txt", "--target", tmp_path / "b.txt"]
    words += ["--out", tmp_path / "out", "--batch-size", 4, "--every", 3, "--longest", 7, "--probed", 0]
    done = attnlib(*words, *shards)
    assert done.exit_code == 0, done.output
    long = sum(max(len(s.split()), len(t.split())) + 1 > 7 for s, t in zip(SOURCE, TARGET, strict=True))
    assert 0 < long < 24
    said = said_by(tmp_path / "out")
    assert (said["left_out"], said["cut"]) == (4, long)
    assert any(f"asked for: {long} pairs" in note for note in said["notes"])
    assert any("an empty side: 4 pairs" in note for note in said["notes"])


@pytest.mark.parametrize("name", ["best (v2)", "[/red][bold]out"])
def test_folders_with_brackets_in_their_names(corpus, tmp_path, name):
    """In the title of the report, and in a terminal, whose markup must not take them for its own."""
    folder, out = tmp_path / name, tmp_path / "reports" / name
    shutil.copytree(corpus / "tiny", folder)
    done = attnlib("--model", folder, *given(corpus, out)[2:])
    assert done.exit_code == 0, done.output
    assert f"report: {out / 'index.html'}" in done.stderr
    assert f"<h1>How {folder.name} attends</h1>" in (out / "index.html").read_text(encoding="utf-8")


# What is refused.


TEXT = ["--source", "a.txt", "--target", "b.txt"]


TINY = ["--model", "tiny", *TEXT]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give --model, --source and --target; or --traces alone"),
        (TEXT, "give --model, --source and --target"),
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
        ([*TINY, "--kinds", "crss"], "no kind of attention 'crss'; did you mean 'cross'?"),
        ([*TINY, "--device", "gpu"], "device 'gpu' cannot be used"),
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
        (("--ignore-special",), "ignore_special is False there, True here"),
    ],
)
def test_another_analysis_in_the_same_folder_is_refused(corpus, whole, more, said):
    refused(given(corpus, whole[0], *more), said)


# Numbers.


@pytest.mark.parametrize("text", ["", "a", "1,", "-1", "1-", "6-4", "1-2-3", "1.5", "0 1"])
def test_numbers_that_are_none(text):
    with pytest.raises(BadInput, match="are no numbers; write them as in 0,4-6"):
        numbers(text)
