"""The published sets as they come out of the pipeline, against the counts of the paper's Table 9."""

import numpy as np
import pytest

from attnlib.errors import DataUnavailable, UnknownName
from attnlib.texts import known_polarity
from attnlib.texts.labelled import MARKS
from attnlib.texts.labelled_sets import SOURCES, at_hand, checksums, load_labelled, names
from attnlib.texts.table9 import table9_row


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
    ],
)
def test_sizes_and_medians_are_those_of_table_9(data, train, train_median, validation, validation_median):
    row = loaded(table9_row, data)
    assert (row.train_texts, row.train_median) == (train, train_median)
    assert (row.validation_texts, row.validation_median) == (validation, validation_median)


def test_two_marks_to_a_sentence_fit_the_random_baseline_printed_for_sst():
    task = loaded(load_labelled, "sst", reading="published")
    for texts, printed in ((task.validation, 8.39), (task.train, 8.48)):
        lengths = texts.lengths + MARKS
        chance = 100 * np.mean((5 * lengths + 99) // 100 / lengths)
        assert chance == pytest.approx(printed, abs=0.05)


def test_ag_news_has_the_test_rows_of_table_9_and_a_third_of_its_training_rows():
    row = loaded(table9_row, "ag_news")
    assert (row.train_texts, row.validation_texts) == (20_477, 3_800)


def test_sst_as_the_text_says_has_more_sentences():
    row = loaded(table9_row, "sst_as_text")
    assert (row.train_texts, row.validation_texts) == (6_920, 1_821)


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
    assert (len(task.train), len(task.validation)) == (known_polarity.N_TRAIN, known_polarity.N_TEST)
    assert 0.4 < task.train.labels.mean() < 0.6
    for i in range(100):
        kinds = [known_polarity.polarity_of(word) for word in task.vocabulary.decode(task.train.text(i))]
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
