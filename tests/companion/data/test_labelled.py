"""From raw text to words, to a labelled task, to batches."""

import pytest

from attnlib.errors import BadInput, UnknownName
from companion.data.labelled import RawTexts, WordRules, prepare, without_html
from companion.data.text import Dropped


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (WordRules().words, " .,!? ", []),
        (WordRules().words, "It's GREAT", ["it", "s", "great"]),
        (WordRules().words, "naïve café, 3.5 stars", ["naïve", "café", "3", "5", "stars"]),
        (WordRules().words, "snake_case", ["snake_case"]),
        (WordRules().words, "broken \ufffd byte", ["broken", "byte"]),
        (WordRules(split_underscores=True).words, "_really_ so_so ___", ["really", "so", "so"]),
        # Texts, and how many breaks were in them.
        (without_html, "a<br />b<BR>c<br/>d", ("a b c d", 3)),
        (without_html, "&lt;b&gt;bold&lt;/b&gt;", (" bold ", 0)),
        (without_html, "<i>so</i> good", (" so  good", 0)),
        (without_html, "3 < 5 and 6 > 4", ("3 < 5 and 6 > 4", 0)),
        (without_html, "Arafat #39;s quot;plan quot;", ("Arafat's  plan  ", 0)),
        (without_html, "it&#39;s &quot;it&quot;", ("it's  it ", 0)),
        (without_html, "built; swift;", ("built; swift;", 0)),
    ],
)
def test_words_and_html_by_hand(read, text, expected):
    assert read(text) == expected


def raw(train, test, rules=None, **options):
    return RawTexts("toy", ("bad", "good"), train, test, rules or WordRules(), **options)


TRAIN = [("fine fine fine film", 1), ("poor poor poor film", 0), ("a film of 1993", 0)]
TEST = [("fine film", 1), ("poor film of 1993", 0), ("Poor, poor poor film!", 0)]


def words_of(task, texts, i):
    return task.vocabulary.decode(texts.text(i))


def test_words_seen_three_times_in_training_are_kept_and_cleaning_leaves_out_what_is_trained_on():
    task, published = (prepare(raw(TRAIN, TEST), reading=name) for name in ("cleaned", "published"))
    assert task.vocabulary.words[4:] == ("film", "fine", "poor")
    assert words_of(task, task.train, 2) == ["<unk>", "film", "<unk>", "<unk>"]
    assert task.train.labels.tolist() == [1, 0, 0]
    rare = "seen fewer than 3 times in training, read as <unk>"
    assert Dropped("train", "words", rare, 3) in task.dropped
    assert Dropped("validation", "words", rare, 2) in task.dropped
    assert (len(task.validation), len(published.validation)) == (2, 3)
    assert Dropped("validation", "texts", "trained on as well", 1) in task.dropped
    assert not [line for line in published.dropped if line.what == "texts"]


def test_integers_are_masked_where_the_rules_say_so_and_counted_apart():
    train = [("born 1993 1993 1993 7 7 7", 1), ("born born 7", 0)]
    task = prepare(raw(train, train, WordRules(mask_integers=True)), reading="published")
    assert task.vocabulary.words[4:] == ("7", "born")
    assert words_of(task, task.train, 0) == ["born", "<unk>", "<unk>", "<unk>", "7", "7", "7"]
    assert [line.count for line in task.dropped if line.part == "train"] == [3]


def test_breaks_are_blanks_in_one_reading_and_words_in_the_other():
    texts = raw([("so<br />so<br />so", 1), ("no no no", 0)], [("so", 1), ("no", 0)], WordRules(html=True))
    cleaned, published = (prepare(texts, reading=name) for name in ("cleaned", "published"))
    assert words_of(cleaned, cleaned.train, 0) == ["so", "so", "so"]
    assert len(published.train.text(0)) == 5
    assert Dropped("train", "HTML breaks", "read as blanks", 2) in cleaned.dropped


def test_repeats_long_texts_and_empty_ones_leave_a_pool_before_it_is_split():
    pool = [(f"word{i} word{i} word{i}", i % 2) for i in range(40)] * 2
    task = prepare(raw(pool, None, n_validation=10))
    assert (len(task.train), len(task.validation)) == (30, 10)
    assert Dropped("pool", "texts", "a repeat of another one", 40) in task.dropped
    # A word of a validation text is in that text alone, so that none is known.
    assert set(task.validation.ids.tolist()) == {3}
    pool = [("w " * 399, 0), ("w " * 400, 1), *((f"x{i}", i % 2) for i in range(8))]
    task = prepare(raw([*pool, ("...", 1)], None, WordRules(below=400), n_validation=4))
    assert len(task.train) + len(task.validation) == 9
    assert Dropped("pool", "texts", "no word in it", 1) in task.dropped
    assert Dropped("pool", "texts", "400 words or more", 1) in task.dropped


def test_sizes_and_the_seed_of_the_split():
    pool = [(f"word{i}", i % 2) for i in range(100)]
    assert len(prepare(raw(pool, None, n_validation=None)).train) == 90
    small = prepare(raw(pool, None), n_train=30, n_validation=20)
    assert (len(small.train), len(small.validation)) == (30, 20)
    # What is trained on has its number; what is judged on makes do with the rest.
    assert len(prepare(raw(pool, None, n_train=60, n_validation=70)).validation) == 40
    labels = [prepare(raw(pool, pool[:50]), n_train=30, split_seed=seed).train.labels for seed in (0, 0, 1)]
    assert labels[0].tolist() == labels[1].tolist() != labels[2].tolist()


@pytest.mark.parametrize(
    ("test", "options", "error", "message"),
    [
        (TEST, {"reading": "clean"}, UnknownName, "no reading 'clean'; did you mean 'cleaned'"),
        (TEST, {"n_train": 4}, BadInput, "has 3 texts to train on, not 4"),
        (TEST[:1], {}, BadInput, "validation texts must have both labels, 'bad' and 'good'"),
    ],
)
def test_what_cannot_be_prepared_says_why(test, options, error, message):
    with pytest.raises(error, match=message):
        prepare(raw(TRAIN, test), **options)
