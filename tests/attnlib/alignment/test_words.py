"""Pieces joined to words, by every way of marking them, and attention between words, by loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib.alignment.words import (
    NO_WORD,
    Words,
    join_attention,
    join_pieces,
    marking_of,
    readable,
    split_words,
    words_at,
)
from attnlib.errors import BadInput

SENTENCES = [
    pytest.param("▁", ["▁the", "▁low", "est", "▁", "x"], ["the", "lowest", "x"], id="sentencepiece"),
    pytest.param("▁", ["▁", "<0xE4>", "<0xB8>", "<0xAD>", "▁x"], ["中", "x"], id="bytes of sentencepiece"),
    pytest.param("Ġ", ["the", "Ġlow", "est"], ["the", "lowest"], id="byte level"),
    pytest.param("Ġ", ["Ð½", "Ð°", "Ġå", "į", "Ĺ"], ["на", "南"], id="byte level, other scripts"),
    pytest.param("##", ["the", "low", "##est", "."], ["the", "lowest", "."], id="wordpiece"),
    pytest.param("@@", ["the", "low@@", "est"], ["the", "lowest"], id="subword-nmt"),
    pytest.param("</w>", ["the</w>", "low", "est</w>"], ["the", "lowest"], id="end of word"),
    pytest.param(" ", ["t", "h", "e", " ", "Ã", "¤"], ["the", "ä"], id="bytes"),
    pytest.param("", ["the", "lowest"], ["the", "lowest"], id="words"),
]


@pytest.mark.parametrize(("marking", "pieces", "words"), SENTENCES)
def test_pieces_of_every_marking_make_words(marking, pieces, words):
    assert join_pieces(pieces, marking).words == tuple(words)


@pytest.mark.parametrize(
    ("marking", "pieces", "of_piece"),
    [
        pytest.param(
            "▁", ["▁the", "▁", "low", "est"], (0, 1, 1, 1), id="a mark alone goes with what follows"
        ),
        pytest.param("▁", ["▁the", "▁"], (0, 0), id="at the end with what precedes"),
        pytest.param("##", ["low", "##est", "."], (0, 0, 1), id="wordpiece"),
        pytest.param("@@", ["low@@", "est", "."], (0, 0, 1), id="subword-nmt"),
    ],
)
def test_every_piece_is_of_a_word(marking, pieces, of_piece):
    assert join_pieces(pieces, marking).of_piece == of_piece


def test_a_special_piece_parts_its_neighbours():
    joined = join_pieces(["▁a", "</s>", "b"], "▁", special=[1])
    assert (joined.words, joined.of_piece) == (("a", "b"), (0, NO_WORD, 1))


def test_a_special_piece_that_is_kept_is_a_word():
    joined = join_pieces(["▁a", "</s>", "b"], "▁", special=[1], keep_special=True)
    assert (joined.words, joined.of_piece) == (("a", "</s>", "b"), (0, 1, 2))


def test_a_line_break_that_is_kept_is_a_word():
    joined = join_pieces(["the", "Ċ", "low"], "Ġ", keep_special=True)
    assert joined.words == ("the", "␊", "low")


def test_half_a_letter_is_shown_by_its_bytes():
    assert join_pieces(["Ð"], "Ġ").words == ("\\xd0",)


def test_a_surrogate_is_no_error():
    assert join_pieces(["▁\ud800"], "▁").of_piece == (0,)


@pytest.mark.parametrize(
    ("pieces", "marking"),
    [
        pytest.param(["▁a", "b", "##c"], "▁", id="sentencepiece"),
        pytest.param(["Ġa", "b"], "Ġ", id="byte level"),
        pytest.param(["a", "##b", "##c", "▁"], "##", id="wordpiece with a lower line among its pieces"),
        pytest.param(["a@@", "b"], "@@", id="subword-nmt"),
        pytest.param(["a</w>", "b"], "</w>", id="end of word"),
        pytest.param(["a", " "], " ", id="bytes"),
        pytest.param(["a", "b", "@@", "##"], "", id="marks alone are words"),
    ],
)
def test_the_marking_of_a_vocabulary(pieces, marking):
    assert marking_of(pieces) == marking


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        pytest.param("Ġhouse", " house", id="a blank"),
        pytest.param("Ċ", "\n", id="a line break"),
        pytest.param("Ð¿ÑĢÐ¸", "при", id="Cyrillic"),
        pytest.param("æĹ¥æľ¬", "日本", id="Japanese"),
        pytest.param("<s>", "<s>", id="a special piece"),
    ],
)
def test_byte_level_pieces_are_readable(piece, text):
    assert readable(piece, "Ġ") == text


def test_white_space_of_a_line_is_that_of_unicode():
    assert split_words("das\u3000Haus\u00a0ist") == ["das", "Haus", "ist"]


def test_a_stretch_is_in_the_word_of_its_first_letter():
    assert words_at("ab  cd", [(0, 1), (1, 5), (2, 3), (5, 6)]) == [0, 0, 1, 1]


def test_a_text_without_words_has_none():
    assert words_at("  ", [(0, 1)]) == [NO_WORD]


def test_a_word_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="word 2"):
        Words(("a",), (0, 2))


# Attention.


def joined_by_loops(weights, query_words, key_words):
    """Sum over key pieces, mean over the query pieces that are not left out; NaN where nothing is known."""
    joined = np.full((len(query_words.words), len(key_words.words)), math.nan)
    for row, column in np.ndindex(*joined.shape):
        queries = [place for place, word in enumerate(query_words.of_piece) if word == row]
        keys = [place for place, word in enumerate(key_words.of_piece) if word == column]
        attending = [place for place in queries if not all(map(math.isnan, weights[place]))]
        entries = [weights[query][key] for query in attending for key in keys]
        known = [entry for entry in entries if not math.isnan(entry)]
        if known:
            joined[row, column] = sum(known) / len(attending)
    return joined


@st.composite
def pieces_of_words(draw):
    n_words = draw(st.integers(0, 4))
    of_piece = draw(st.lists(st.integers(-1, n_words - 1), min_size=1, max_size=6))
    return Words(tuple("abcd"[:n_words]), tuple(of_piece))


@given(pieces_of_words(), pieces_of_words(), st.integers(0, 2**32 - 1))
def test_attention_between_words_is_what_loops_find(query_words, key_words, seed):
    rng = np.random.default_rng(seed)
    weights = rng.random((len(query_words.of_piece), len(key_words.of_piece)))
    weights[rng.random(weights.shape) < 0.2] = math.nan
    joined = join_attention(torch.from_numpy(weights), query_words, key_words)
    np.testing.assert_allclose(joined, joined_by_loops(weights.tolist(), query_words, key_words), atol=1e-12)


def test_rows_between_words_sum_to_one():
    weights = torch.rand(2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).softmax(-1)
    rows, columns = Words(("a", "b", "c"), (0, 1, 1, 1, 2)), Words(("d", "e"), (0, 0, 1, 1))
    torch.testing.assert_close(join_attention(weights, rows, columns).sum(-1), torch.ones(2, 3).double())


def test_attention_to_pieces_of_no_word_is_left_out():
    weights = torch.tensor([[0.25, 0.75]])
    assert join_attention(weights, Words(("a",), (0,)), Words(("b",), (0, NO_WORD))).tolist() == [[0.25]]


def test_weights_of_other_pieces_are_refused():
    with pytest.raises(BadInput, match="expected"):
        join_attention(torch.ones(2, 2), Words(("a",), (0,)), Words(("b",), (0, 0)))
