"""``analyse`` of a model and two texts, whatever form they come in, is the analysis of their stream."""

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from attnlib import analyse
from attnlib.errors import BadInput
from attnlib.report import Checkpoint, ParallelText
from attnlib.report.texts import Sentences, text_of
from tests.attnlib.analysis import builders as toys

SOURCES = [line.strip() for line in toys.TEXTS[0].splitlines()]
TARGETS = [line.strip() for line in toys.TEXTS[1].splitlines()]
OPTIONS = {"method": "means", "batch_size": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return toys.save_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="module")
def expected(folder, tmp_path_factory):
    """The heads of an analysis by way of a stream."""
    text = toys.text_of(tmp_path_factory.mktemp("text"))
    return analyse(Checkpoint.load(folder).stream(text, batch_size=2), method="means").heads


def loaded(folder):
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager")
    return model.eval(), AutoTokenizer.from_pretrained(folder)


def test_a_folder_with_two_lists(folder, expected):
    assert analyse(folder, SOURCES, TARGETS, **OPTIONS).heads == expected


@pytest.mark.signatures
def test_a_name_with_two_files(folder, expected, tmp_path):
    text = toys.text_of(tmp_path)
    assert analyse(str(folder), text.source, str(text.target), **OPTIONS).heads == expected


def test_a_model_with_its_tokenizer(folder, expected):
    model, tokenizer = loaded(folder)
    assert analyse(model, SOURCES, TARGETS, tokenizer=tokenizer, **OPTIONS).heads == expected


def test_a_model_finds_the_tokenizer_of_its_folder(folder, expected):
    model, _ = loaded(folder)
    assert analyse(model, SOURCES, TARGETS, **OPTIONS).heads == expected


def test_a_model_without_a_tokenizer_is_refused_with_the_way_out(folder):
    model, _ = loaded(folder)
    model.name_or_path = str(folder / "nowhere")
    with pytest.raises(BadInput, match="give tokenizer="):
        analyse(model, SOURCES, TARGETS)


@pytest.mark.slow
def test_without_a_target_the_model_writes_it(folder):
    analysis = analyse(folder, SOURCES, longest=8, **OPTIONS)
    assert analysis.made["options"]["generate"]


def test_what_from_pretrained_takes_is_passed_on(folder):
    analysis = analyse(folder, SOURCES, TARGETS, model_kwargs={"dtype": torch.float64}, **OPTIONS)
    assert analysis.made["computed in"]["precision"] == "float64"


def test_few_sentences_are_cut_into_batches_of_which_some_are_held_out(folder):
    analysis = analyse(folder, SOURCES * 10, TARGETS * 10, method="means")
    assert analysis.held_out


def test_the_model_is_left_with_its_own_implementation_of_attention(folder):
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="sdpa")
    analyse(model, SOURCES, TARGETS, **OPTIONS)
    assert model.config._attn_implementation == "sdpa"


REFUSED = [
    pytest.param((["one"], "file.txt"), "one side is a file", id="list and file"),
    pytest.param((["one", 2], None), "source 1 is int", id="no text"),
    pytest.param(([], None), "source is empty", id="nothing"),
    pytest.param((["one", "two"], ["un"]), "2 sources with 1 targets", id="lengths"),
]


@pytest.mark.parametrize(("sides", "message"), REFUSED)
def test_texts_that_are_refused(sides, message):
    with pytest.raises(BadInput, match=message):
        text_of(*sides)


def test_a_stream_has_its_text_already(folder):
    stream = Checkpoint.load(folder).stream(Sentences(SOURCES, TARGETS))
    with pytest.raises(BadInput, match="leave out source"):
        analyse(stream, SOURCES)


def test_a_text_stays_as_it_is():
    text = ParallelText("a", "b")
    assert text_of(text) is text


def written(tmp_path, sources, targets, encoding="utf-8"):
    for name, lines in (("a.txt", sources), ("b.txt", targets)):
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding=encoding)
    return ParallelText(tmp_path / "a.txt", tmp_path / "b.txt")


def test_texts_in_utf_16_have_the_same_pairs(tmp_path):
    assert list(written(tmp_path, ["ä"], ["ö"], "utf-16").pairs()) == [("ä", "ö")]


def test_lines_of_utf_16_are_counted_as_lines(tmp_path):
    text = written(tmp_path, ["ਊ"] * 3, ["ö"] * 3, "utf-16")  # a letter with a byte that is a line feed
    assert text.checked()[0] == 3


def test_two_columns_are_both_sides(tmp_path):
    (tmp_path / "pairs.tsv").write_text("one\tun\ntwo\tdeux\n")
    text = text_of(tmp_path / "pairs.tsv", tmp_path / "pairs.tsv")
    assert list(text.pairs()) == [("one", "un"), ("two", "deux")]


def test_sides_of_one_file_in_another_order_are_another_text(tmp_path):
    (tmp_path / "pairs.tsv").write_text("one\tun\ntwo\tdeux\n")
    path = str(tmp_path / "pairs.tsv")
    assert (
        ParallelText(f"{path}#1", f"{path}#2").checked() != ParallelText(f"{path}#2", f"{path}#1").checked()
    )


def test_a_table_is_no_source_alone(tmp_path):
    (tmp_path / "pairs.tsv").write_text("one\tun\ntwo\tdeux\n")
    with pytest.raises(BadInput, match="has several columns"):
        list(ParallelText(tmp_path / "pairs.tsv").pairs())


def test_what_other_tools_left_in_a_text_is_said(tmp_path):
    text = written(tmp_path, ["lei@@ sure"] * 3, ["it &apos;s"] * 3)
    assert text.about["Not plain text"] == (
        "3 of the first 3 source lines have pieces of BPE (@@); "
        "3 of the first 3 target lines have entities such as &apos;"
    )


def test_nothing_is_said_of_plain_text(tmp_path):
    assert "Not plain text" not in written(tmp_path, ["leisure"], ["it's"]).about
