import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput, UnknownName
from attnlib.training.vocabulary import BOS, EOS, MARKS, PAD, UNK, Vocabulary

SENTENCES = [["b", "a", "b"], ["c", "a", "b"], ["d"]]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, ("b", "a", "c", "d")),
        ({"min_count": 2}, ("b", "a")),
        ({"max_words": 3}, ("b", "a", "c")),
        ({"min_count": 4}, ()),
    ],
)
def test_words_come_by_falling_count_and_ties_alphabetically_and_rare_ones_not_at_all(options, kept):
    vocabulary = Vocabulary.from_sentences(SENTENCES, **options)
    assert vocabulary.words == (*MARKS, *kept)
    assert vocabulary.decode([PAD, BOS, EOS, UNK]) == ["<pad>", "<bos>", "<eos>", "<unk>"]


def test_an_open_vocabulary_reads_unseen_words_as_unk():
    vocabulary = Vocabulary.from_sentences(SENTENCES, min_count=2, open=True)
    assert vocabulary.encode(["a", "c", "b", "zebra"]).tolist() == [5, UNK, 4, UNK]


def test_text_that_spells_a_mark_is_an_unseen_word_and_never_becomes_the_mark():
    sentences = [["<pad>", "a"], ["<pad>", "<eos>", "a"]]
    vocabulary = Vocabulary.from_sentences(sentences, open=True)
    assert vocabulary.words == (*MARKS, "a")
    assert vocabulary.encode(["<pad>", "a", "<eos>"]).tolist() == [UNK, 4, UNK]
    with pytest.raises(UnknownName, match="<pad>"):
        Vocabulary.of(["a"]).encode(["<pad>"])


@pytest.mark.slow
@given(st.lists(st.lists(st.text(min_size=1, max_size=3), max_size=6), max_size=6))
def test_decoding_undoes_encoding(sentences):
    sentences = [[word for word in sentence if word not in MARKS] for sentence in sentences]
    vocabulary = Vocabulary.from_sentences(sentences)
    for sentence in sentences:
        assert vocabulary.decode(vocabulary.encode(sentence)) == sentence
    assert len(vocabulary) == 4 + len({word for sentence in sentences for word in sentence})


@pytest.mark.parametrize(
    ("refused", "error", "message"),
    [
        (lambda: Vocabulary.of(["walk", "look"]).encode(["look", "wakl"]), UnknownName, "'wakl'; .* 'walk'"),
        (lambda: Vocabulary.of(["a"]).decode([4, 5]), BadInput, r"0…4; got 4…5"),
        (lambda: Vocabulary(("a", "b")), BadInput, "starts with <pad> <bos> <eos> <unk>"),
        (lambda: Vocabulary.of(["a", "b", "a"]), BadInput, "'a' occurs more than once"),
        (lambda: Vocabulary.from_sentences(SENTENCES, min_count=0), BadInput, "at least 1"),
        (lambda: Vocabulary.from_sentences(SENTENCES, max_words=0), BadInput, "at least 1"),
    ],
)
def test_what_cannot_be_is_refused(refused, error, message):
    with pytest.raises(error, match=message):
        refused()
