"""Pieces joined to words in what a report shows, while its numbers stay by piece."""

import re

import pytest
import torch

from attnlib import Stream, analyse
from attnlib.alignment.words import join_attention
from attnlib.errors import BadInput
from attnlib.report import write_report
from tests.attnlib.analysis import builders as toys
from tests.attnlib.analysis.builders import SOURCE, TARGET
from tests.attnlib.report.test_word_alignments import checkpoint_of, tokenizer_of_pieces

pytestmark = pytest.mark.slow
KINDS = ("cross", "encoder_self", "decoder_self")


@pytest.fixture(scope="module", params=["▁", "Ġ"])
def checkpoint(request):
    return checkpoint_of(tokenizer_of_pieces(request.param))


def agrees(known, words):
    """Whether these are the words of a line, but for those that are not known."""
    return len(known) == len(words) and all(
        entry in (None, word) for entry, word in zip(known, words, strict=True)
    )


@pytest.fixture(scope="module")
def analyses(checkpoint):
    """By piece and by word."""
    return [
        analyse(checkpoint, SOURCE, TARGET, kinds=KINDS, batch_size=4, words=words) for words in (False, True)
    ]


def test_a_sample_has_the_words_of_its_line(analyses):
    """Letters that the tokenizer does not know are in the words that they are of."""
    _, by_word = analyses
    for sample in by_word.samples:
        for side, lines in (("source", SOURCE), ("target", TARGET)):
            *words, end = sample.words[side]
            known = [word if "<unk>" not in word else None for word in words]
            same = [line for line in lines if agrees(known, line.split())]
            assert same, words
            assert end == "</s>"


def test_what_is_read_begins_with_the_start_mark(analyses):
    _, by_word = analyses
    assert {sample.words["read"][0] for sample in by_word.samples} == {"<pad>"}


def test_maps_are_those_of_pieces_joined(checkpoint, analyses):
    by_piece, by_word = analyses
    sides = {"cross": ("target", "source"), "encoder_self": ("source",) * 2, "decoder_self": ("read",) * 2}
    for pieces, words in zip(by_piece.samples, by_word.samples, strict=True):
        for (name, head), maps in words.maps.items():
            joined = []
            for part in sides[name.split(".")[0]]:
                side = "source" if part == "source" else "target"
                joined.append(checkpoint.join(side, getattr(pieces, part).tolist(), keep_special=True))
            expected = join_attention(pieces.maps[name, head], *joined)
            torch.testing.assert_close(maps, expected, equal_nan=True)


def test_rows_between_words_sum_to_one(analyses):
    _, by_word = analyses
    for sample in by_word.samples:
        for (name, _), maps in sample.maps.items():
            if name.startswith("cross"):
                sums = maps[0].nansum(-1)
                torch.testing.assert_close(sums, torch.ones_like(sums))


def test_all_numbers_stay_by_piece(analyses):
    by_piece, by_word = analyses
    assert by_word.heads == by_piece.heads
    assert by_word.terms == by_piece.terms


def test_the_page_has_words(analyses, tmp_path):
    _, by_word = analyses
    write_report(by_word, tmp_path)
    assert "<bdi>chien</bdi>" in (tmp_path / "index.html").read_text("utf-8")


def test_the_page_of_words_says_that_shares_are_by_piece(analyses, tmp_path):
    pages = []
    for number, analysis in enumerate(analyses):
        write_report(analysis, tmp_path / str(number))
        pages.append((tmp_path / str(number) / "index.html").read_text("utf-8"))
    by_piece, by_word = (re.sub(r"\s+", " ", page) for page in pages)
    assert "All shares are by piece." in by_word
    assert "All shares are by piece." not in by_piece


def test_tables_have_words(analyses):
    _, by_word = analyses
    frame = by_word.tables.attention()
    assert set(frame["key_word"]) >= {"</s>", *by_word.samples[0].words["source"][:-1]}


def test_words_have_no_terms_to_explain(analyses):
    _, by_word = analyses
    with pytest.raises(BadInput, match="terms are of pieces"):
        by_word.explain(0, 0, 0)


def test_a_stream_has_no_pieces_to_join():
    with pytest.raises(BadInput, match="tokenizer"):
        analyse(Stream(toys.Toy(), range(10)), words=True)


def test_the_command_joins_pieces(tmp_path):
    toys.save_checkpoint(tmp_path / "tiny")
    tokenizer_of_pieces("▁").save_pretrained(tmp_path / "tiny")
    text = toys.text_of(tmp_path)
    options = ("--model", tmp_path / "tiny", "--source", text.source, "--target", text.target)
    done = toys.attnlib("analyse", *options, "--out", tmp_path / "report", "--batch-size", "4", "--words")
    assert done.exit_code == 0, done.output
    assert "<bdi>chien</bdi>" in (tmp_path / "report/index.html").read_text("utf-8")


def test_traces_have_no_pieces_to_join(tmp_path):
    done = toys.attnlib("analyse", "--traces", tmp_path, "--out", tmp_path, "--words")
    assert (done.exit_code, "--words" in done.output) == (2, True)


def test_pieces_of_a_byte_level_tokenizer_are_shown_as_text():
    tokenizer = tokenizer_of_pieces("Ġ")
    checkpoint = checkpoint_of(tokenizer)
    token = tokenizer("a the")["input_ids"][1]
    assert checkpoint.piece("source", token).startswith("Ġ")
    assert checkpoint.word("source", token).startswith(" ")
