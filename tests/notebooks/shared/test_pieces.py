"""Vocabularies of pieces, corpora made of them, and batches of pairs and of texts by the step."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import BOS, EOS, MARKS
from companion.data.labelled import LabelledBatches, LabelledTexts, judging_batches
from companion.data.parallel import ParallelText
from companion.data.text import Dropped
from notebooks.shared.pieces import EqualLengthBatches, piece_corpus, train_pieces
from tests.attnlib.refusals import assert_refused

LINES = ["ein kleiner hund läuft", "a small dog runs", "zwei hunde", "two dogs run fast"] * 3


@pytest.fixture(scope="module")
def pieces():
    return train_pieces(LINES, 30)


def test_text_comes_back_from_its_pieces(pieces):
    ids = pieces.encode(LINES)
    assert pieces.decode(ids) == LINES


def test_marks_are_left_out_of_text(pieces):
    ids = pieces.encode(LINES)
    assert pieces.decode([[1, *ids[0], 2, 0, 0]]) == [LINES[0]]


def test_pieces_are_spelled_with_their_spaces(pieces):
    ids = pieces.encode(LINES)
    assert ["".join(pieces.spell(row)) for row in ids] == ["▁" + line.replace(" ", "▁") for line in LINES]


def test_pieces_of_text_are_no_marks(pieces):
    ids = pieces.encode(LINES)
    assert min(min(row) for row in ids) > 3


def test_the_marks_are_the_first_pieces(pieces):
    assert len(pieces) == 30
    assert pieces.spell(range(4)) == list(MARKS)


def test_text_that_spells_a_mark_is_text(pieces):
    assert 1 not in pieces.encode(["<bos> <pad>"])[0], "text that spells a mark is text"


def test_an_unknown_character_has_a_piece_of_its_own(pieces):
    (unknown,) = pieces.encode(["猫"])
    assert 3 in unknown
    assert "⁇" in pieces.decode([unknown])[0]


def test_equal_text_gives_equal_bytes_which_are_kept_under_what_they_were_made_from(tmp_path, pieces):
    assert train_pieces(LINES, 30, tmp_path).proto == pieces.proto
    (kept,) = tmp_path.glob("pieces-*.model")
    # What lies there is taken, not trained again: put another vocabulary in its place and see it come back.
    other = train_pieces(LINES, 28)
    kept.write_bytes(other.proto)
    assert train_pieces(LINES, 30, tmp_path).proto == other.proto
    assert pieces.proto != train_pieces(LINES[:-1], 30, tmp_path).proto != other.proto
    assert len(train_pieces(LINES, 28, tmp_path)) == 28
    words = train_pieces(["s1 s2 s1", "t1 t2"], 8, tmp_path, kind="word")
    assert len(list(tmp_path.glob("pieces-*.model"))) == 4
    assert sorted(words.spell(range(4, 8))) == ["▁s1", "▁s2", "▁t1", "▁t2"]
    assert [len(row) for row in words.encode(["s1 t2 s2", "t1"])] == [3, 1]


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


def test_pairs_that_are_too_long_or_too_many_are_dropped():
    corpus = piece_corpus(TEXT, size=24, n_train=20, longest=45)
    assert (len(corpus.train), len(corpus.validation)) == (20, 2)
    assert corpus.validation_targets == ("a dog", "runs")


def test_pairs_that_were_dropped_are_counted():
    corpus = piece_corpus(TEXT, size=24, n_train=20, longest=45)
    assert list(map(str, corpus.dropped)) == [
        "pool: 3 pairs (an empty side)",
        "train: 10 pairs (beyond the number asked for)",
        "validation: 1 pair (a side of more than 45 pieces)",
    ]


def test_a_pair_of_just_the_longest_length_is_kept():
    corpus = piece_corpus(TEXT, size=24, n_train=20, longest=45)
    longest = int(corpus.train.source_lengths.max())  # just as many are not too many
    assert len(piece_corpus(TEXT, size=24, n_train=20, longest=longest).train) == 20


def test_a_corpus_without_a_short_pair_is_refused():
    assert_refused(lambda: piece_corpus(TEXT, size=24, longest=1), "no train pair has at most 1 pieces")


def test_a_corpus_without_validation_is_refused():
    assert_refused(lambda: piece_corpus(TEXT, size=24, n_validation=0), "no validation pair is left")


# -- batches -------------------------------------------------------------------------------------------------


def texts_of(lengths):
    return LabelledTexts.of([[5] * length for length in lengths], [i % 2 for i in range(len(lengths))])


def pairs_of(lengths):
    draw = np.random.default_rng(0)
    return Corpus.from_ids(*([draw.integers(4, 20, size=n + side) for n in lengths] for side in (0, 1)))


def of_texts(lengths, batch_size, seed):
    batches = LabelledBatches(texts_of(lengths), batch_size, seed=seed)
    return batches, len(batches)


def of_pairs(lengths, batch_size, seed):
    batches = EqualLengthBatches(pairs_of(lengths), batch_size, seed)
    return batches, batches.per_epoch


@pytest.mark.parametrize("made", [of_texts, of_pairs])
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 3),
)
@settings(max_examples=60)
def test_an_epoch_has_every_sample_once(made, lengths, batch_size, seed):
    batches, per_epoch = made(lengths, batch_size, seed)
    for epoch in (0, 2):
        seen = [batches.indices(step) for step in range(epoch * per_epoch, (epoch + 1) * per_epoch)]
        assert sorted(np.concatenate(seen).tolist()) == list(range(len(lengths)))
        assert max(map(len, seen)) <= batch_size
        assert [len(rows) < batch_size for rows in seen].count(True) == (len(lengths) % batch_size > 0)
        if made is of_pairs:
            mixed = sum(len({lengths[row] for row in rows}) > 1 for rows in seen)
            assert mixed <= len(set(lengths)) - 1


@pytest.mark.parametrize("made", [of_texts, of_pairs])
def test_a_batch_hangs_on_no_batch_asked_before(made):
    lengths = np.random.default_rng(0).integers(1, 5, size=100).tolist()
    (forwards, n), (backwards, _) = (made(lengths, 8, 3) for _ in range(2))
    ahead = [forwards(step).indices.tolist() for step in range(3 * n)]
    assert [backwards(step).indices.tolist() for step in reversed(range(3 * n))][::-1] == ahead


@pytest.mark.parametrize("made", [of_texts, of_pairs])
def test_another_seed_has_other_batches(made):
    lengths = np.random.default_rng(0).integers(1, 5, size=100).tolist()
    (first, _), (other, _) = (made(lengths, 8, seed) for seed in (3, 4))
    assert other.indices(0).tolist() != first.indices(0).tolist()


@pytest.mark.parametrize("made", [of_texts, of_pairs])
def test_every_epoch_is_shuffled_anew(made):
    lengths = np.random.default_rng(0).integers(1, 5, size=100).tolist()
    batches, n = made(lengths, 8, 3)
    drawn = [batches(step).indices.tolist() for step in range(2 * n)]
    assert drawn[:n] != drawn[n:]


def test_texts_of_a_batch_have_about_one_length():
    lengths = np.random.default_rng(1).integers(1, 200, size=640)
    batches, _ = of_texts(lengths, 16, 0)
    padded = sum(len(batches.indices(step)) * lengths[batches.indices(step)].max() for step in range(40))
    assert padded < 1.1 * lengths.sum()


def test_sources_of_a_batch_have_one_length():
    batches, per_epoch = of_pairs([1 + i % 3 for i in range(96)], 16, 0)  # 32 sources of each length
    assert per_epoch == 6
    for batch in map(batches, range(6)):
        assert batch.source_mask.all()


def test_sides_of_a_batch_have_their_marks():
    batches, _ = of_pairs([1 + i % 3 for i in range(96)], 16, 0)  # 32 sources of each length
    for batch in map(batches, range(6)):
        assert (batch.source[:, -1] == EOS).all()
        assert (batch.target_input[:, 0] == BOS).all()


@given(lengths=st.lists(st.integers(1, 50), min_size=1, max_size=40), positions=st.integers(1, 200))
def test_judging_visits_every_text_once_within_the_positions(lengths, positions):
    batches = list(judging_batches(texts_of(lengths), positions=positions))
    assert sorted(i for batch in batches for i in batch.indices.tolist()) == list(range(len(lengths)))
    assert all(batch.tokens.numel() <= positions or len(batch) == 1 for batch in batches)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (["a b"], 50),
            "no vocabulary of 50 pieces from 1 lines … too high",
            id="more pieces than the text has",
        ),
        pytest.param(
            (["abcdefgh"], 8),
            "of 8 pieces from 1 lines … smaller than required",
            id="fewer pieces than characters",
        ),
    ],
)
def test_train_pieces_refuses(given, message):
    assert_refused(partial(train_pieces, *given), message)
