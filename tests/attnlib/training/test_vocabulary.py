import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput, UnknownName
from attnlib.training.vocabulary import BOS, EOS, MARKS, PAD, UNK, Vocabulary

SENTENCES = [["b", "a", "b"], ["c", "a", "b"], ["d"]]


def test_the_marks_have_the_first_four_ids():
    vocabulary = Vocabulary.from_sentences(SENTENCES)
    assert vocabulary.decode([PAD, BOS, EOS, UNK]) == ["<pad>", "<bos>", "<eos>", "<unk>"]


def test_words_come_by_falling_count_and_ties_alphabetically():
    assert Vocabulary.from_sentences(SENTENCES).words == (*MARKS, "b", "a", "c", "d")


@pytest.mark.parametrize(
    ("options", "kept"),
    [({"min_count": 2}, ("b", "a")), ({"max_words": 3}, ("b", "a", "c")), ({"min_count": 4}, ())],
)
def test_rare_words_are_left_out(options, kept):
    assert Vocabulary.from_sentences(SENTENCES, **options).words[4:] == kept


def test_an_open_vocabulary_reads_unseen_words_as_unk():
    vocabulary = Vocabulary.from_sentences(SENTENCES, min_count=2, open=True)
    assert vocabulary.encode(["a", "c", "b", "zebra"]).tolist() == [5, UNK, 4, UNK]


def test_a_closed_vocabulary_refuses_unseen_words_and_offers_the_nearest():
    vocabulary = Vocabulary.of(["walk", "look", "jump"])
    with pytest.raises(UnknownName, match="no word 'wakl'; did you mean 'walk'"):
        vocabulary.encode(["look", "wakl"])


def test_text_that_spells_a_mark_is_an_unseen_word_and_never_becomes_the_mark():
    sentences = [["<pad>", "a"], ["<pad>", "<eos>", "a"]]
    vocabulary = Vocabulary.from_sentences(sentences, open=True)
    assert vocabulary.words == (*MARKS, "a")
    assert vocabulary.encode(["<pad>", "a", "<eos>"]).tolist() == [UNK, 4, UNK]
    with pytest.raises(UnknownName, match="<pad>"):
        Vocabulary.of(["a"]).encode(["<pad>"])


@given(st.lists(st.lists(st.text(min_size=1, max_size=3), max_size=6), max_size=6))
def test_decoding_undoes_encoding(sentences):
    sentences = [[word for word in sentence if word not in MARKS] for sentence in sentences]
    vocabulary = Vocabulary.from_sentences(sentences)
    for sentence in sentences:
        assert vocabulary.decode(vocabulary.encode(sentence)) == sentence
    assert len(vocabulary) == 4 + len({word for sentence in sentences for word in sentence})


def test_ids_outside_the_vocabulary_are_refused():
    with pytest.raises(BadInput, match=r"0…4; got 4…5"):
        Vocabulary.of(["a"]).decode([4, 5])


def test_marks_in_another_place_and_double_words_are_refused():
    with pytest.raises(BadInput, match="starts with <pad> <bos> <eos> <unk>"):
        Vocabulary(("a", "b"))
    with pytest.raises(BadInput, match="'a' occurs more than once"):
        Vocabulary.of(["a", "b", "a"])


@pytest.mark.parametrize("options", [{"min_count": 0}, {"max_words": 0}])
def test_sizes_below_one_are_refused(options):
    with pytest.raises(BadInput, match="at least 1"):
        Vocabulary.from_sentences(SENTENCES, **options)
