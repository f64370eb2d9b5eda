import numpy as np
import pytest

from attnlib.errors import BadInput, DataUnavailable
from attnlib.training.vocabulary import UNK
from companion.data.registry import load


@pytest.fixture(scope="module", params=["fr", "de"])
def task(request):
    try:
        return load(f"multi30k_en_{request.param}")
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")


def test_every_pair_is_in_one_of_the_parts(task):
    assert len(task.train) == 29_000 - 4_000
    assert len(task.held_out) == 1_014 + 1_000 + 1_000 + 461 + 4_000
    assert len(task.checksums) == 2 * 5


def test_the_first_pair_reads_as_published(task):
    source = task.source_vocabulary.decode(task.train.source(0))
    assert " ".join(source) == "two young , white males are outside near many bushes ."
    first = {
        "multi30k_en_fr": "deux jeunes hommes blancs sont dehors près de buissons .",
        "multi30k_en_de": "zwei junge weiße männer sind im freien in der nähe vieler büsche .",
    }[task.name]
    assert task.target_vocabulary.decode(task.train.target(0)) == first.split(" ")


def test_few_words_are_unknown(task):
    # German compounds make its share the largest.
    for ids in (task.held_out.source_ids, task.held_out.target_ids):
        assert np.mean(ids == UNK) < 0.06


def test_most_held_out_samples_have_thirty_of_their_lengths(task):
    lengths = np.stack([task.held_out.source_lengths, task.held_out.target_lengths])
    _, counts = np.unique(lengths, axis=1, return_counts=True)
    assert counts[counts >= 30].sum() > 0.75 * len(task.held_out)


def test_options_bound_the_task(task):
    small = load(task.name, n_train=500, max_words=300, held_out_from_train=0, max_length=20)
    assert len(small.train) == 500
    assert len(small.source_vocabulary) == len(small.target_vocabulary) == 304
    assert max(small.held_out.source_lengths.max(), small.held_out.target_lengths.max()) == 20


def test_more_pairs_than_there_are_are_refused(task):
    with pytest.raises(BadInput, match="cannot take 25001 pairs"):
        load(task.name, n_train=25_001)


def test_without_data_the_error_says_both_ways_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTNLIB_DATA", raising=False)
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path))
    with pytest.raises(DataUnavailable, match=r"attnlib data fetch multi30k`, or set ATTNLIB_DATA"):
        load("multi30k_en_fr")
