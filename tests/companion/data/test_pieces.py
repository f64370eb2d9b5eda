"""Vocabularies of pieces, and corpora and batches made of them."""

import pytest

from attnlib.errors import BadInput
from attnlib.training.vocabulary import MARKS
from companion.data.parallel import ParallelText, read_translation
from companion.data.pieces import piece_corpus, train_pieces
from companion.data.text import Dropped

LINES = ["ein kleiner hund läuft", "a small dog runs", "zwei hunde", "two dogs run fast"] * 3


@pytest.fixture(scope="module")
def pieces():
    return train_pieces(LINES, 30)


def test_equal_text_gives_equal_bytes_and_other_text_others(pieces):
    assert train_pieces(LINES, 30).proto == pieces.proto
    assert train_pieces(LINES, 28).proto != pieces.proto != train_pieces([*LINES, "noch ein hund"], 30).proto


def test_text_comes_back_from_its_pieces_and_marks_are_left_out(pieces):
    ids = pieces.encode(LINES)
    assert pieces.decode(ids) == LINES
    assert pieces.decode([[1, *ids[0], 2, 0, 0]]) == [LINES[0]]
    assert ["".join(pieces.spell(row)) for row in ids] == ["▁" + line.replace(" ", "▁") for line in LINES]
    assert min(min(row) for row in ids) > 3
    assert len(pieces) == 30
    assert pieces.spell(range(4)) == list(MARKS)
    assert 1 not in pieces.encode(["<bos> <pad>"])[0], "text that spells a mark is text"
    (unknown,) = pieces.encode(["猫"])
    assert 3 in unknown
    assert "⁇" in pieces.decode([unknown])[0]


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


TEXT = ParallelText(
    train=tuple(
        (f"ein hund läuft {'sehr ' * (i % 4)}weit", f"a dog runs {'very ' * (i % 3)}far") for i in range(30)
    ),
    validation=(("ein hund", "a dog"), ("sehr weit " * 24, "very far"), ("läuft", "runs")),
    dropped=(Dropped("pool", "pairs", "an empty side", 3),),
)


def test_both_sides_share_one_vocabulary_made_from_the_training_text():
    corpus = piece_corpus(TEXT, size=24)
    assert len(corpus.pieces) == 24
    for part, pairs in ((corpus.train, TEXT.train), (corpus.validation, TEXT.validation)):
        sides = (corpus.pieces.decode(map(side, range(len(part)))) for side in (part.source, part.target))
        assert list(zip(*sides, strict=True)) == [(a.strip(), b) for a, b in pairs]
    assert corpus.validation_targets == ("a dog", "very far", "runs")
    assert len(corpus.train_targets) == 30
    assert corpus.dropped == TEXT.dropped


def test_what_is_too_long_or_too_much_is_dropped_and_counted():
    corpus = piece_corpus(TEXT, size=24, n_train=20, longest=45)
    assert (len(corpus.train), len(corpus.validation)) == (20, 2)
    assert corpus.validation_targets == ("a dog", "runs")
    assert [str(one) for one in corpus.dropped] == [
        "pool: 3 pairs (an empty side)",
        "train: 10 pairs (beyond the number asked for)",
        "validation: 1 pair (a side of more than 45 pieces)",
    ]
    for options, message in (({"longest": 1}, "no train pair has at most 1 pieces"),
                             ({"n_validation": 0}, "no validation pair is left")):  # fmt: skip
        with pytest.raises(BadInput, match=message):
            piece_corpus(TEXT, size=24, **options)


def test_words_of_the_known_lexicon_are_pieces():
    corpus = piece_corpus(read_translation("known_lexicon"), n_train=500, n_validation=20)
    source, target = map(corpus.pieces.spell, (corpus.validation.source(0), corpus.validation.target(0)))
    assert sorted(word.replace("s", "t") for word in source) == sorted(target)
