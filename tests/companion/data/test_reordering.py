import numpy as np
import pytest

from attnlib.errors import BadInput, UnknownName
from companion.data import reordering as grammar
from companion.data.reordering import reordering, translate

# Each worked out with pen and paper.
WORKED = [
    ("now red fox old owl", "both", "gau rakko fimbo ohto ulufo", [0, 1, 2, 3, 4]),
    ("now wild fox old owl", "both", "gau fimbo wikko ohto ulufo", [0, 2, 1, 3, 4]),
    ("there red fox old owl", "both", "thela ohto ulufo rakko fimbo", [0, 3, 4, 1, 2]),
    ("once wild fox old owl", "both", "onga ohto ulufo fimbo wikko", [0, 3, 4, 2, 1]),
    (
        "once wild fox shy bear odd toad",
        "both",
        "onga tontu ommo barbu shimo fimbo wikko",
        [0, 6, 5, 4, 3, 2, 1],
    ),
    ("once wild fox old owl", "local", "onga fimbo wikko ohto ulufo", [0, 2, 1, 3, 4]),
    ("once wild fox old owl", "global", "onga ohto ulufo wikko fimbo", [0, 3, 4, 1, 2]),
    ("here grey deer", "both", "hyra dilmo grato", [0, 2, 1]),
    ("now", "both", "gau", [0]),
]


def sentences(corpus):
    return [corpus.source(i).tobytes() for i in range(len(corpus))]


def in_order(n):
    return frozenset((i, i) for i in range(n))


@pytest.mark.parametrize(("source", "reach", "target", "order"), WORKED)
def test_translations_worked_by_hand(source, reach, target, order):
    words, links = translate(source.split(), reach)
    assert " ".join(words) == target
    assert links == frozenset(enumerate(order))


def test_another_modifier_of_the_other_class_turns_its_own_phrase_and_no_other():
    before = ["now", "red", "fox", "old", "owl", "big", "bear"]
    after = [*before[:3], "shy", *before[4:]]
    changed = translate(before)[1] ^ translate(after)[1]
    assert changed == {(3, 3), (4, 4), (3, 4), (4, 3)}


def test_another_modifier_of_the_same_class_leaves_the_order():
    assert translate(["once", "odd", "fox"])[1] == translate(["once", "wild", "fox"])[1]


def test_no_word_is_in_two_classes_and_every_word_has_a_translation_of_its_own():
    classes = (
        grammar.STAYING_OPENINGS,
        grammar.REVERSING_OPENINGS,
        grammar.STAYING_MODIFIERS,
        grammar.SWAPPING_MODIFIERS,
        grammar.HEADS,
    )
    assert [len(words) for words in classes] == [2, 2, 4, 4, 8]
    assert len(grammar.TRANSLATIONS) == len(set(grammar.TRANSLATIONS.values())) == 20
    assert not set(grammar.TRANSLATIONS) & set(grammar.TRANSLATIONS.values())


@pytest.mark.parametrize("reach", grammar.REACHES)
def test_gold_is_a_bijection_that_says_which_word_each_target_word_translates(reach):
    task = reordering(p=1.0, reach=reach, n_train=1, n_held_out=100)
    assert len(task.gold) == len(task.held_out) == 100
    for i, links in enumerate(task.gold):
        source = task.source_vocabulary.decode(task.held_out.source(i))
        target = task.target_vocabulary.decode(task.held_out.target(i))
        assert {t for t, _ in links} == {s for _, s in links} == set(range(len(source)))
        assert len(links) == len(target) == len(source)
        assert all(target[t] == grammar.TRANSLATIONS[source[s]] for t, s in links)


def test_the_parts_hold_the_translations_that_the_grammar_gives():
    task = reordering(n_train=100, n_held_out=100)
    for corpus in (task.train, task.held_out):
        for i in range(len(corpus)):
            words, _ = translate(task.source_vocabulary.decode(corpus.source(i)))
            assert tuple(task.target_vocabulary.decode(corpus.target(i))) == words


def test_without_reordering_every_sample_is_the_diagonal_and_has_staying_words_only():
    task = reordering(p=0, n_train=200, n_held_out=200)
    assert all(links == in_order(len(links)) for links in task.gold)
    assert np.array_equal(task.train.source_ids, task.train.target_ids)
    signals = grammar.REVERSING_OPENINGS | grammar.SWAPPING_MODIFIERS
    seen = task.source_vocabulary.decode(np.unique(task.train.source_ids))
    assert len(seen) == 20 - 2 - 4
    assert not set(seen) & set(signals)


@pytest.mark.parametrize("p", [0.25, 0.5, 1.0])
@pytest.mark.parametrize(
    ("reach", "stays"),
    # A reordered sentence of 5 phrases stays in order when none of its signals, half of a class each, is on.
    [("both", 2.0**-6), ("local", 2.0**-5), ("global", 2.0**-1)],
)
def test_the_dial_is_the_share_of_reordered_samples(p, reach, stays):
    task = reordering(p=p, reach=reach, min_phrases=5, max_phrases=5, n_train=1, n_held_out=1500)
    moved = np.mean([links != in_order(11) for links in task.gold])
    expected = p * (1 - stays)
    assert abs(moved - expected) < 5 * np.sqrt(expected * (1 - expected) / 1500)


def test_more_orders_are_met_as_the_dial_rises():
    def orders(p, reach="both"):
        options = {"min_phrases": 8, "max_phrases": 8, "n_train": 1, "n_held_out": 300}
        return len(set(reordering(p=p, reach=reach, **options).gold))

    counts = [orders(p) for p in (0, 0.25, 0.5, 0.75, 1)]
    assert counts[0] == 1
    assert counts == sorted(set(counts))
    assert orders(1, "global") == 2
    assert 2 < orders(1, "local") <= 2**8


def test_numbers_of_phrases_and_signals_are_uniform():
    task = reordering(p=1, n_train=3000, n_held_out=1)
    lengths = np.bincount(task.train.source_lengths, minlength=18)
    assert lengths[[11, 13, 15, 17]].sum() == 3000
    assert np.abs(lengths[[11, 13, 15, 17]] - 750).max() < 5 * np.sqrt(3000 * 1 / 4 * 3 / 4)
    counts = np.bincount(task.train.source_ids, minlength=24)
    for on, off in (
        (grammar.REVERSING_OPENINGS, grammar.STAYING_OPENINGS),
        (grammar.SWAPPING_MODIFIERS, grammar.STAYING_MODIFIERS),
    ):
        of_class, other = (counts[task.source_vocabulary.encode(list(words))].sum() for words in (on, off))
        assert abs(of_class - other) < 5 * np.sqrt(of_class + other)


@pytest.mark.parametrize("p", [0, 1])
def test_no_sentence_is_in_both_parts_even_when_there_are_few(p):
    # One phrase of staying words: 2 · 4 · 8 = 64 sentences, half of them held out.
    task = reordering(p=p, min_phrases=1, max_phrases=1, n_train=500, n_held_out=32)
    assert not set(sentences(task.train)) & set(sentences(task.held_out))


def test_held_out_samples_do_not_depend_on_the_size_of_the_training_set():
    small, large = reordering(n_train=10, n_held_out=50), reordering(n_train=300, n_held_out=50)
    assert sentences(small.held_out) == sentences(large.held_out)
    assert small.gold == large.gold


def test_the_seed_decides():
    one, same, other = (reordering(n_train=20, n_held_out=20, seed=seed) for seed in (1, 1, 2))
    assert sentences(one.train) == sentences(same.train) != sentences(other.train)


@pytest.mark.parametrize("p", [-0.01, 1.01, float("nan")])
def test_a_dial_that_is_no_probability_is_refused(p):
    with pytest.raises(BadInput, match="must lie between 0 and 1"):
        reordering(p=p)


@pytest.mark.parametrize(
    "options",
    [
        {"min_phrases": 0},
        {"min_phrases": 4, "max_phrases": 3},
        {"n_train": 0},
        {"n_held_out": 0},
        {"seed": -1},
    ],
)
def test_sizes_that_make_no_sense_are_refused(options):
    with pytest.raises(BadInput, match="reordering needs"):
        reordering(**options)


def test_too_many_held_out_samples_are_refused():
    with pytest.raises(BadInput, match="only 64 sentences without reordering"):
        reordering(min_phrases=1, n_held_out=33)


def test_an_unknown_reach_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match="no reach 'locl'; did you mean 'local'"):
        reordering(reach="locl")
    with pytest.raises(UnknownName, match="reach"):
        translate(["now"], "locl")


def test_an_unknown_word_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match="no word 'foxx'; did you mean 'fox'"):
        translate(["now", "red", "foxx"])


@pytest.mark.parametrize(
    "words", ["", "red fox", "now red", "now fox red", "now red fox once", "now now red fox"]
)
def test_words_that_are_no_sentence_are_refused(words):
    with pytest.raises(BadInput, match="is no sentence"):
        translate(words.split())
