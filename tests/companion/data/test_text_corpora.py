"""Tatoeba and Europarl: nothing leaks between the parts, and the links by hand are those of the file."""

import numpy as np
import pytest

from attnlib.errors import BadInput, DataUnavailable
from companion.data.registry import load


def loaded(name, **options):
    try:
        return load(name, **options)
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")


@pytest.fixture(scope="module")
def tatoeba():
    return loaded("tatoeba_en_fr", n_train=3_000, n_held_out=500, min_count=1)


@pytest.fixture(scope="module")
def europarl():
    return loaded("europarl_de_en")


def sentences(corpus, vocabulary):
    return {" ".join(vocabulary.decode(corpus.source(i))) for i in range(len(corpus))}


def test_no_english_sentence_is_in_both_parts(tatoeba):
    assert len(tatoeba.train) == 3_000
    assert 500 <= len(tatoeba.held_out) < 600
    # Held-out sentences may hold unknown words, which are alike; those that do not are told apart.
    known = {text for text in sentences(tatoeba.held_out, tatoeba.source_vocabulary) if "<unk>" not in text}
    assert known
    assert not known & sentences(tatoeba.train, tatoeba.source_vocabulary)


def test_tatoeba_says_where_its_sizes_end(tatoeba):
    with pytest.raises(BadInput, match="n_train is 1000000; it must lie between 1 and 13"):
        load("tatoeba_en_fr", n_train=1_000_000)


def test_the_hundred_aligned_sentences_are_trained_on_and_judged(europarl):
    assert len(europarl.gold) == 100
    assert sum(map(len, europarl.gold)) == 1_232  # of 1,233; one points beyond its sentence
    assert len(europarl.held_out) == 100 + 1_000
    first = len(europarl.train) - 100
    for i in (0, 57, 99):
        assert np.array_equal(europarl.train.source(first + i), europarl.held_out.source(i))
        assert np.array_equal(europarl.train.target(first + i), europarl.held_out.target(i))


def test_the_first_aligned_pair_reads_as_published(europarl):
    source = europarl.source_vocabulary.decode(europarl.held_out.source(0))
    target = europarl.target_vocabulary.decode(europarl.held_out.target(0))
    assert source[:5] == ["herr", "präsident", ",", "herr", "kommissar"]
    links = europarl.gold[0]
    assert {(target[t], source[s]) for t, s in links} >= {("mr", "herr"), ("president", "präsident")}
    assert (3, 4) in links  # commissioner – kommissar, past a comma and "herr"


def test_links_stay_inside_their_sentences(europarl):
    for i, links in enumerate(europarl.gold):
        assert all(t < len(europarl.held_out.target(i)) for t, _ in links)
        assert all(s < len(europarl.held_out.source(i)) for _, s in links)
