"""``attnlib analyse``: what it refuses, in one line each, and how numbers are read."""

import pytest

from attnlib.analysis.request import Request, numbers
from attnlib.errors import BadInput
from tests.attnlib.analysis.analyse_calls import analysed, given, refused
from tests.attnlib.analysis.test_checkpoint import SOURCE, save_checkpoint, text_of

transformers = pytest.importorskip("transformers", reason="the command loads models with transformers")


# What is refused.


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
        (["--traces", "tiny", "--prefix", "a"], "--prefix: said of a model"),
        (["--model", "tiny", *TEXT, "--stage", "fitt"], "no stage 'fitt'; did you mean 'fit'?"),
        (["--model", "tiny", *TEXT, "--shards", "3", "--stage", "fit"], "give --shard 0 to 2"),
        (["--model", "tiny", *TEXT, "--shards", "3", "--shard", "3"], "shard is 3 of 3"),
        (["--model", "tiny", *TEXT, "--layers", "7"], "layers [7] of cross: this model has 2"),
        (["--model", "tiny", *TEXT, "--layers", "one"], "'one' are no numbers"),
        (["--model", "tiny", *TEXT, "--heads", "0,9"], "heads [9]: cross.0 has 2"),
        (["--model", "tiny", *TEXT, "--heads", "3-1"], "'3-1' are no numbers"),
        (["--model", "tiny", *TEXT, "--kinds", "crss"], "no kind of attention 'crss'; did you mean 'cross'?"),
        (["--model", "tiny", *TEXT, "--device", "gpu"], "device 'gpu' cannot be used"),
        (["--model", "{corpus}/nowhere", *TEXT], "nowhere: give one that save_pretrained wrote"),
        (
            ["--model", "tiny", *TEXT, "--longest", "1"],
            "no row of attention has two positions",
        ),
        (
            ["--model", "tiny", *TEXT, "--out", "out\udcff"],
            "--out 'out\\udcff' is not UTF-8: give",
        ),
        (["--model", "tiny", *TEXT, "--out", "a.txt/out"], "cannot write a.txt/out"),
        (["--model", "tiny", "--source", "c.txt", "--target", "b.txt"], "source c.txt is not there"),
        (
            ["--model", "tiny", "--source", "a.txt", "--target", "short.txt"],
            "a.txt has 24 lines, short.txt 1",
        ),
        (["--model", "tiny", "--source", "empty.txt", "--target", "empty.txt"], "are empty"),
        (["--model", "tiny", "--source", "blank.txt", "--target", "blank.txt"], "no sample with a counted"),
        (
            ["--model", "tiny", "--source", "latin.txt", "--target", "latin.txt"],
            "latin.txt, line 1 is not",
        ),
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
