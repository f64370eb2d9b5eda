"""The published sets as they come out of the pipeline, against the counts of the paper's Table 9."""

import numpy as np
import pytest

from attnlib.errors import DataUnavailable, UnknownName
from companion.data.labelled import N_MARKS, prepare
from companion.data.labelled_sets import (
    N_TEST,
    N_TRAIN,
    SOURCES,
    at_hand,
    checksums,
    load_labelled,
    names,
    polarity_of,
)


def loaded(load, *arguments, **options):
    try:
        return load(*arguments, **options)
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")


@pytest.mark.parametrize(
    ("data", "train", "train_median", "validation", "validation_median"),
    [
        ("twenty_newsgroups", 1_197, 183, 796, 207),
        ("sst", 5_130, 16, 1_421, 17),
        ("sst_as_text", 6_920, None, 1_821, None),  # as the text says, it has more sentences
        ("ag_news", 20_477, None, 3_800, None),  # the test rows of Table 9, a third of its training rows
    ],
)
def test_sizes_and_medians_are_those_of_table_9(data, train, train_median, validation, validation_median):
    task = loaded(load_labelled, data, reading="published")
    assert (len(task.train), len(task.validation)) == (train, validation)
    for texts, median in ((task.train, train_median), (task.validation, validation_median)):
        assert median is None or np.median(texts.lengths) == median


def test_two_marks_to_a_sentence_fit_the_random_baseline_printed_for_sst():
    task = loaded(load_labelled, "sst", reading="published")
    for texts, printed in ((task.validation, 8.39), (task.train, 8.48)):
        lengths = texts.lengths + N_MARKS
        chance = 100 * np.mean((5 * lengths + 99) // 100 / lengths)
        assert chance == pytest.approx(printed, abs=0.05)


def test_sms_trains_on_3500_messages_and_leaves_its_repeats_out():
    task = loaded(load_labelled, "sms_spam")
    assert len(task.train) == 3_500
    assert {line.why: line.count for line in task.dropped if line.what == "texts"} == {
        "a repeat of another one": 444,
        "no word in it": 2,
    }
    texts = [part.text(i).tobytes() for part in (task.train, task.validation) for i in range(len(part))]
    assert len(texts) + 444 + 2 == 5_574


def test_sst_drops_by_label_and_says_so():
    task = loaded(load_labelled, "sst")
    counts = {(line.part, line.why): line.count for line in task.dropped if line.what == "texts"}
    assert counts["train", "label 0 counted from 0, very negative"] == 1_092
    assert counts["train", "label 3 counted from 0, positive"] == 2_322
    assert counts["validation", "trained on as well"] == 1
    assert task.classes == ("negative or neutral", "very positive")


def test_headers_of_newsgroups_are_kept_and_numbers_are_not():
    task = loaded(load_labelled, "twenty_newsgroups", n_train=200, n_validation=50)
    words = set(task.vocabulary.words)
    assert {"subject", "lines", "organization", "edu"} <= words
    assert not [word for word in words if word.isdecimal() and len(word) > 1]
    assert not [word for word in words if "_" in word]


def test_the_archive_of_imdb_has_25000_reviews_a_part_and_breaks_are_taken_out():
    raw = loaded(SOURCES["imdb"].read)
    for part in (raw.train, raw.test):
        assert (len(part), sum(label for _, label in part)) == (25_000, 12_500)
    cleaned, published = (
        prepare(raw, reading=reading, n_train=300, n_validation=100) for reading in ("cleaned", "published")
    )
    assert "br" in published.vocabulary.words
    assert "br" not in cleaned.vocabulary.words
    assert (len(cleaned.train), len(cleaned.validation)) == (300, 100)


@pytest.mark.parametrize("data", ["yelp", "amazon"])
def test_a_part_of_the_long_sets_can_be_had(data):
    task = loaded(load_labelled, data, n_train=100, n_validation=50)
    assert (len(task.train), len(task.validation)) == (100, 50)
    assert "br" not in task.vocabulary.words
    assert task.checksums == checksums(data)
    if data == "amazon":
        assert max(task.train.lengths.max(), task.validation.lengths.max()) < 400


def test_checksums_are_known_without_the_files(monkeypatch):
    monkeypatch.delenv("ATTNLIB_DATA", raising=False)
    for data in SOURCES:
        assert all(len(sum_) == 64 for sum_ in checksums(data).values())
    assert checksums("known_polarity") == {}


def test_an_unknown_name_is_offered_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'sst'"):
        load_labelled("sts")
    assert {"known_polarity", "imdb"} <= set(names())


def test_the_made_set_has_polar_words_of_the_right_kind():
    task = load_labelled("known_polarity")
    assert (len(task.train), len(task.validation)) == (N_TRAIN, N_TEST)
    assert 0.4 < task.train.labels.mean() < 0.6
    for i in range(100):
        kinds = [polarity_of(word) for word in task.vocabulary.decode(task.train.text(i))]
        own, other = ("plus", "minus") if task.train.labels[i] else ("minus", "plus")
        assert 2 <= kinds.count(own) <= 3
        assert kinds.count(other) <= 1
        assert 6 <= kinds.count("neutral") <= 24


def test_what_is_at_hand(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "cache"))
    assert at_hand("known_polarity")
    assert not any(at_hand(data) for data in SOURCES)
    (tmp_path / "sst").mkdir()
    for part in ("train.gz", "test"):
        assert not at_hand("sst")
        (tmp_path / "sst" / f"stsa.fine.{part}").write_bytes(b"")
    assert at_hand("sst")
    assert at_hand("sst_as_text")
    assert not at_hand(str(tmp_path / "my.tsv"))
    (tmp_path / "my.tsv").write_text("text\tlabel\n")
    assert at_hand(str(tmp_path / "my.tsv"))
    with pytest.raises(UnknownName, match="did you mean 'sst'"):
        at_hand("sts")
