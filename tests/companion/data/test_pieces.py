"""One vocabulary of pieces: equal bytes for equal text, ids that a corpus takes, text that comes back."""

import pytest

from attnlib.errors import BadInput
from attnlib.training.vocabulary import MARKS
from companion.data.pieces import Pieces, train_pieces

LINES = ["ein kleiner hund läuft", "a small dog runs", "zwei hunde", "two dogs run fast"] * 3


@pytest.fixture(scope="module")
def pieces():
    return train_pieces(LINES, 30)


def test_equal_text_gives_equal_bytes_and_other_text_others(pieces):
    assert train_pieces(LINES, 30).proto == pieces.proto
    assert train_pieces(LINES, 28).sha256 != pieces.sha256
    assert train_pieces([*LINES, "noch ein hund"], 30).sha256 != pieces.sha256


def test_marks_have_the_ids_of_every_vocabulary_here(pieces):
    assert len(pieces) == 30
    assert pieces.spell(range(4)) == list(MARKS)
    assert pieces.encode(["<bos> <pad>"])[0].count(1) == 0, "text that spells a mark is text"


def test_text_comes_back_from_its_pieces_and_marks_are_left_out(pieces):
    ids = pieces.encode(LINES)
    assert pieces.decode(ids) == LINES
    assert pieces.decode([[1, *ids[0], 2, 0, 0]]) == [LINES[0]]
    assert all(
        "".join(pieces.spell(row)) == "▁" + line.replace(" ", "▁")
        for row, line in zip(ids, LINES, strict=True)
    )
    assert min(min(row) for row in ids) > 3


def test_a_character_never_seen_is_unknown(pieces):
    assert 3 in pieces.encode(["猫"])[0]
    assert "⁇" in pieces.decode(pieces.encode(["猫"]))[0]


def test_a_vocabulary_of_words():
    words = train_pieces(["s1 s2 s1", "t1 t2"], 8, kind="word")
    assert sorted(words.spell(range(4, 8))) == ["▁s1", "▁s2", "▁t1", "▁t2"]
    assert [len(row) for row in words.encode(["s1 t2 s2", "t1"])] == [3, 1]


def test_a_vocabulary_is_kept_under_what_it_was_made_from(tmp_path, pieces):
    assert train_pieces(LINES, 30, tmp_path).proto == pieces.proto
    (kept,) = tmp_path.glob("pieces-*.model")
    # What lies there is taken, not trained again: put another vocabulary in its place and see it come back.
    other = train_pieces(LINES, 28)
    kept.write_bytes(other.proto)
    assert train_pieces(LINES, 30, tmp_path).proto == other.proto
    assert train_pieces(LINES[:-1], 30, tmp_path).proto != other.proto
    train_pieces(["s1 s2", "t1 t2"], 8, tmp_path, kind="word")
    assert len(list(tmp_path.glob("pieces-*.model"))) == 3


@pytest.mark.parametrize(
    ("lines", "size", "says"), [(["a b"], 50, "too high"), (["abcdefgh"], 8, "smaller than required")]
)
def test_a_size_that_the_text_cannot_give(lines, size, says):
    with pytest.raises(BadInput, match=rf"no vocabulary of {size} pieces from 1 lines.*{says}"):
        train_pieces(lines, size)


def test_pieces_from_what_was_serialised(pieces):
    assert Pieces(pieces.proto).encode(LINES) == pieces.encode(LINES)
