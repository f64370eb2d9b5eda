"""``attnlib analyse``: from a folder and two texts to a report, at once or in pieces; and what it refuses."""

import csv
import json
from functools import partial

import pytest
from safetensors.torch import save_file
from test_checkpoint import SOURCE, TARGET, save_checkpoint, text_of
from test_fit_and_judge import Toy, assert_same_rows
from test_report import FILES, assert_harmless
from typer.testing import CliRunner

from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe
from attnlib.analysis import Stream, analyse
from attnlib.analysis.request import Request, numbers
from attnlib.analysis.shown_text import visible
from attnlib.cli import app
from attnlib.errors import BadInput

transformers = pytest.importorskip("transformers", reason="the command loads models with transformers")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A checkpoint, and 24 pairs: six batches of four."""
    folder = tmp_path_factory.mktemp("corpus")
    save_checkpoint(folder / "tiny")
    text_of(folder)
    return folder


def attnlib(*words):
    return CliRunner().invoke(app, ["analyse", *map(str, words)], env={"COLUMNS": "200"})


def given(corpus, out, *more):
    text = "--source", corpus / "a.txt", "--target", corpus / "b.txt"
    sizes = "--batch-size", 4, "--every", 3, "--probed", 1
    return "--model", corpus / "tiny", *text, "--out", out, *sizes, *more


def analysed(corpus, out, *more):
    done = attnlib(*given(corpus, out, *more))
    assert done.exit_code == 0, done.output
    return done


TEXTS = ("kind", "term", "states")


def table_of(out, name="heads"):
    with (out / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [
            {key: value if key in TEXTS else float(value or "nan") for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    done = analysed(corpus, out)
    return out, done


# Whole runs.


def test_a_report_is_written_and_named(whole):
    out, done = whole
    assert {path.name for path in out.iterdir() if path.is_file()} == FILES
    assert f"report: {out / 'index.html'}" in done.stderr
    told = json.loads((out / "analysis.json").read_text(encoding="utf-8"))
    assert told["about"]["Corpus"] == "a.txt, b.txt"
    assert told["about"]["Model"].startswith("tiny (T5ForConditionalGeneration, ")
    assert (told["fitted"], told["judged"], told["held_out"]) == (16, 8, True)


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


def test_the_page_shows_the_words_of_the_corpus(whole):
    read = assert_harmless((whole[0] / "index.html").read_text(encoding="utf-8"))
    held_out = f"{SOURCE[8]} {TARGET[8]}".split()  # the first pair of the third batch
    assert {visible(word) for word in held_out} <= set(read.words)
    assert "</s>" in read.words


def test_again_is_the_same_and_asks_for_nothing_new(corpus, whole, monkeypatch):
    out, _ = whole
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    passes = []
    trace = HuggingFace.trace
    monkeypatch.setattr(HuggingFace, "trace", lambda self, batch: passes.append(1) or trace(self, batch))
    analysed(corpus, out)
    assert len(passes) == 1  # of the sample that is shown
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_attentions_layers_and_heads_as_asked(corpus, tmp_path):
    analysed(
        corpus, tmp_path, "--kinds", "decoder_self,cross", "--layers", "1", "--heads", "0-1", "--probed", 0
    )
    rows = table_of(tmp_path)
    assert [(row["kind"], row["layer"], row["head"]) for row in rows] == [
        ("cross", 1, 0), ("cross", 1, 1), ("decoder_self", 1, 0), ("decoder_self", 1, 1)
    ]  # fmt: skip
    assert all(row["agreement_with_probe"] != row["agreement_with_probe"] for row in rows)
    assert [row["position_bias_share"] != 0 for row in rows] == [False, False, True, True]


def test_special_pieces_left_out(corpus, tmp_path, whole):
    analysed(corpus, tmp_path, "--ignore-special")
    assert all(row["on_ignored"] > 0 for row in table_of(tmp_path))
    assert all(row["on_ignored"] == 0 for row in table_of(whole[0]))


def test_a_corpus_too_small_to_hold_out(corpus, tmp_path):
    analysed(corpus, tmp_path, "--batch-size", 20)
    told = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    assert not told["held_out"]
    assert told["fitted"] == told["judged"] == 24
    assert "same samples" in told["notes"][0]


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
    assert "the first reading of shards 0 of 2 is not finished: run them, then this command again" in first[0]
    assert "the second reading of shards 1 of 2 is not finished" in first[1]
    assert "report: " in first[2]
    assert "report: " not in first[0] + first[1]


def test_a_report_of_what_is_not_finished_is_none(corpus, tmp_path):
    done = analysed(corpus, tmp_path, "--shards", 2, "--stage", "report")
    assert "the second reading of shards 0, 1 of 2 is not finished" in done.stderr
    assert not (tmp_path / "index.html").exists()


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


# What is refused.


def refused(words, message):
    """One line, but for bars of progress and what it takes, and exit code 2."""
    done = attnlib(*words)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    bars = ("Loading weights", "first reading", "second reading", "beside the model")
    said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(bars)]
    assert len(said) == 1, said
    assert said[0].startswith("error: ")
    assert message in said[0]


TEXT = ["--source", "a.txt", "--target", "b.txt"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give --model, --source and --target; or --traces alone"),
        (["--model", "tiny"], "give --model, --source and --target"),
        (TEXT, "give --model, --source and --target"),
        (["--traces", "tiny", *TEXT, "--model", "tiny"], "or --traces alone"),
        (["--traces", "tiny", "--model", "tiny"], "or --traces alone"),
        (["--traces", "tiny", "--source", "a.txt"], "or --traces alone"),
        (["--traces", "none"], "none holds no *.safetensors"),
        (["--traces", "tiny", "--layers", "0"], "--layers: said of a model"),
        (["--traces", "tiny", "--ignore-special", "--probed", "0"], "--ignore-special, --probed: said of"),
        (["--model", "tiny", *TEXT, "--stage", "fitt"], "no stage 'fitt'; did you mean 'fit'?"),
        (["--model", "tiny", *TEXT, "--shards", "3", "--stage", "fit"], "give --shard 0 to 2"),
        (["--model", "tiny", *TEXT, "--shards", "3", "--shard", "3"], "shard is 3 of 3"),
        (["--model", "tiny", *TEXT, "--layers", "7"], "layers [7] of cross: this model has 2"),
        (["--model", "tiny", *TEXT, "--layers", "one"], "'one' are no numbers"),
        (["--model", "tiny", *TEXT, "--heads", "0,9"], "heads [9]: cross.0 has 2"),
        (["--model", "tiny", *TEXT, "--heads", "3-1"], "'3-1' are no numbers"),
        (["--model", "tiny", *TEXT, "--kinds", "crss"], "no kind of attention 'crss'; did you mean 'cross'?"),
        (["--model", "tiny", *TEXT, "--device", "gpu"], "device 'gpu' cannot be used"),
        (["--model", "{corpus}/nowhere", *TEXT], "nowhere cannot be loaded as an encoder–decoder"),
        (["--model", "tiny", *TEXT, "--out", "a.txt/out"], "cannot write a.txt/out"),
        (["--model", "tiny", "--source", "c.txt", "--target", "b.txt"], "source c.txt is not there"),
        (
            ["--model", "tiny", "--source", "a.txt", "--target", "short.txt"],
            "a.txt has 24 lines, short.txt 1",
        ),
        (["--model", "tiny", "--source", "empty.txt", "--target", "empty.txt"], "are empty"),
        (["--model", "tiny", "--source", "blank.txt", "--target", "blank.txt"], "no sample with a counted"),
        (["--model", "tiny", "--source", "latin.txt", "--target", "latin.txt"], "is not UTF-8"),
    ],
)
def test_each_error_is_one_line(corpus, tmp_path, monkeypatch, words, message):
    for name, content in (("short", b"a\n"), ("empty", b""), ("blank", b"\n \n"), ("latin", b"\xe9\n")):
        (corpus / f"{name}.txt").write_bytes(content)
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


def test_another_text_or_model_in_the_same_folder_is_refused(corpus, whole, tmp_path):
    """Files of the same names, elsewhere."""
    words = list(given(corpus, whole[0]))
    text_of(tmp_path, source="\n".join(reversed(SOURCE)) + "\n")
    save_checkpoint(tmp_path / "tiny", lines=SOURCE)
    other = [tmp_path / "a.txt" if word == corpus / "a.txt" else word for word in words]
    refused(other, "(source is ")
    other = [tmp_path / "tiny" if word == corpus / "tiny" else word for word in words]
    refused(other, "(model is ")


def test_a_damaged_part_is_named(corpus, tmp_path):
    analysed(corpus, tmp_path)
    path = tmp_path / "parts" / "fit-0-of-1" / "averages.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    refused(given(corpus, tmp_path), f"{path} is not what")


def test_a_folder_with_brackets_in_its_name(corpus, tmp_path):
    """Which a terminal's markup must not take for its own."""
    out = tmp_path / "[/red][bold]out"
    assert f"report: {out / 'index.html'}" in analysed(corpus, out).stderr


# Numbers.


@pytest.mark.parametrize(
    ("text", "found"),
    [(None, None), ("3", (3,)), ("0,4-6", (0, 4, 5, 6)), (" 2 , 1-1", (2, 1)), ("1-3,2,0", (1, 2, 3, 0))],
)
def test_numbers_and_ranges(text, found):
    assert numbers(text) == found


@pytest.mark.parametrize("text", ["", "a", "1,", "-1", "1-", "6-4", "1-2-3", "1.5", "0 1"])
def test_numbers_that_are_none(text):
    with pytest.raises(BadInput, match="are no numbers; write them as in 0,4-6"):
        numbers(text)


def test_a_request_is_checked_before_anything_is_loaded(tmp_path):
    with pytest.raises(BadInput, match="give --shard 0 to 1"):
        Request(tmp_path, traces=tmp_path, shards=2, stage="judge")
    assert Request(tmp_path, traces=tmp_path, shards=2, stage="report").shards == 2
