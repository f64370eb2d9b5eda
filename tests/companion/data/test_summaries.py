"""Two tasks on one lexicon: what each keeps of a sentence, by hand, and that the sources are shared."""

import re

import numpy as np
import pytest

from attnlib.errors import BadInput, UnknownName
from companion.data import summaries as lexicon
from companion.data.summaries import lexicon_summary, lexicon_translation, summarise, translate

# Source, translation and its order, summary and its order; each worked with pen and paper.
WORKED = [
    ("the dog sees my war", "la hundo vidas mia milito", [0, 1, 2, 3, 4], "milito", [4]),
    ("the big flood wakes my dog", "la inundo granda vekas mia hundo", [0, 2, 1, 3, 4, 5], "inundo", [2]),
    (
        "our new concert often follows their little war",
        "nia koncerto nova ofte sekvas ilia milito eta",
        [0, 2, 1, 3, 4, 5, 7, 6],
        "milito koncerto",
        [7, 2],
    ),
    (
        "the vote brings the warm plague after the green trial",
        "la baloto alportas la pesto varma post la proceso verda",
        [0, 1, 2, 3, 5, 4, 6, 7, 9, 8],
        "pesto proceso baloto",
        [5, 9, 1],
    ),
    (
        "my cat perhaps leaves the young poet near our fire",
        "mia kato eble lasas la poeto juna apud nia fajro",
        [0, 1, 2, 3, 4, 6, 5, 7, 8, 9],
        "fajro",
        [9],
    ),
]
RULES = [(lexicon_translation, translate), (lexicon_summary, summarise)]
SHAPE = re.compile(r"DA?NR?VDA?N(PDA?N)*")


def shape(words):
    """One letter for each word: its class."""
    classes = {
        "N": lexicon.NOUNS | lexicon.TOPICS,
        "A": lexicon.ADJECTIVES,
        "V": lexicon.VERBS,
        "R": lexicon.ADVERBS,
        "P": lexicon.PREPOSITIONS,
        "D": lexicon.DETERMINERS,
    }
    return "".join(letter for word in words for letter, table in classes.items() if word in table)


def sources(task, corpus):
    return [tuple(task.source_vocabulary.decode(corpus.source(i))) for i in range(len(corpus))]


def targets(task, corpus):
    return [tuple(task.target_vocabulary.decode(corpus.target(i))) for i in range(len(corpus))]


@pytest.mark.parametrize(("source", "translation", "order", "summary", "kept"), WORKED)
def test_sentences_worked_by_hand(source, translation, order, summary, kept):
    assert translate(source.split()) == (tuple(translation.split()), frozenset(enumerate(order)))
    assert summarise(source.split()) == (tuple(summary.split()), frozenset(enumerate(kept)))


def test_an_adjective_without_a_noun_after_it_stays():
    assert translate(["big", "sees"])[0] == ("granda", "vidas")
    assert translate(["big", "new", "dog", "big"])[0] == ("granda", "hundo", "nova", "granda")


def test_the_lexicon_has_sixty_words_each_in_one_class_and_with_a_translation_of_its_own():
    tables = (lexicon.TOPICS, lexicon.NOUNS, lexicon.ADJECTIVES, lexicon.VERBS, lexicon.ADVERBS)
    tables = (*tables, lexicon.PREPOSITIONS, lexicon.DETERMINERS)
    assert [len(table) for table in tables] == [12, 14, 10, 10, 5, 5, 4]
    assert len(lexicon.TRANSLATIONS) == len(set(lexicon.TRANSLATIONS.values())) == 60
    assert not set(lexicon.TRANSLATIONS) & set(lexicon.TRANSLATIONS.values())


def test_both_tasks_have_the_same_sources_and_vocabularies():
    options = {"min_length": 7, "max_length": 12, "n_train": 200, "n_held_out": 100, "seed": 3}
    long, short = lexicon_translation(**options), lexicon_summary(**options)
    assert sources(long, long.train) == sources(short, short.train)
    assert sources(long, long.held_out) == sources(short, short.held_out)
    assert long.source_vocabulary == short.source_vocabulary
    assert long.target_vocabulary == short.target_vocabulary
    assert [long.source_vocabulary.open, long.target_vocabulary.open] == [False, False]
    assert targets(long, long.train) != targets(short, short.train)


def test_a_translation_says_every_word_and_a_summary_one_to_three():
    long, short = (load(n_train=1000, n_held_out=1) for load in (lexicon_translation, lexicon_summary))
    assert np.array_equal(long.train.source_lengths, long.train.target_lengths)
    assert set(long.train.source_lengths) == set(range(6, 15))
    assert set(short.train.target_lengths) == {1, 2, 3}
    assert (short.train.target_lengths < short.train.source_lengths).all()
    said, kept = (set(task.train.target_ids.tolist()) for task in (long, short))
    assert len(said) == 60
    assert set(short.target_vocabulary.decode(kept)) == set(lexicon.TOPICS.values())


def test_summaries_are_in_the_order_of_importance_and_not_of_position():
    task = lexicon_summary(n_train=1, n_held_out=500)
    ranking = list(lexicon.TOPICS.values())
    moved = 0
    for words, links in zip(targets(task, task.held_out), task.gold, strict=True):
        ranks = [ranking.index(word) for word in words]
        assert ranks == sorted(set(ranks))
        places = [place for _, place in sorted(links)]
        moved += places != sorted(places)
    # Of two topics half stand in another order, of three five in six.
    several = np.bincount(task.held_out.target_lengths)
    expected = several[2] / 2 + several[3] * 5 / 6
    assert abs(moved - expected) < 5 * np.sqrt(several[2] / 4 + several[3] * 5 / 36)


@pytest.mark.parametrize(("load", "rule"), RULES)
def test_gold_says_which_word_each_target_word_translates(load, rule):
    task = load(n_train=100, n_held_out=100)
    assert len(task.gold) == 100
    held_out = zip(sources(task, task.held_out), targets(task, task.held_out), task.gold, strict=True)
    for source, target, links in held_out:
        assert sorted(i for i, _ in links) == list(range(len(target)))
        assert len({place for _, place in links}) == len(target)
        assert all(target[i] == lexicon.TRANSLATIONS[source[place]] for i, place in links)
    assert targets(task, task.train) == [rule(words)[0] for words in sources(task, task.train)]


def test_sentences_have_the_build_that_is_promised():
    task = lexicon_translation(n_train=1500, n_held_out=1)
    drawn = sources(task, task.train)
    assert all(SHAPE.fullmatch(shape(words)) for words in drawn)
    for words in drawn:
        topics = [word for word in words if word in lexicon.TOPICS]
        assert 1 <= len(topics) == len(set(topics)) <= 3
    lengths = np.bincount(task.train.source_lengths)[6:]
    assert np.abs(lengths - 1500 / 9).max() < 5 * np.sqrt(1500 / 9)


@pytest.mark.parametrize("length", [5, 6, 9, 17, 30])
def test_every_length_from_five_on_can_be_drawn(length):
    task = lexicon_summary(min_length=length, max_length=length, n_train=20, n_held_out=5)
    assert (task.train.source_lengths == length).all()
    assert all(SHAPE.fullmatch(shape(words)) for words in sources(task, task.train))


def test_no_sentence_is_in_both_parts_even_when_there_are_few():
    task = lexicon_summary(min_length=5, max_length=5, n_train=1000, n_held_out=5000)
    assert not set(sources(task, task.train)) & set(sources(task, task.held_out))


def test_held_out_samples_do_not_depend_on_the_size_of_the_training_set():
    small, large = lexicon_summary(n_train=10, n_held_out=50), lexicon_summary(n_train=300, n_held_out=50)
    assert sources(small, small.held_out) == sources(large, large.held_out)
    assert small.gold == large.gold


def test_the_seed_decides():
    one, same, other = (lexicon_summary(n_train=20, n_held_out=20, seed=seed) for seed in (1, 1, 2))
    assert sources(one, one.train) == sources(same, same.train) != sources(other, other.train)
    assert sources(one, one.held_out) != sources(other, other.held_out)


@pytest.mark.parametrize(
    "options",
    [
        {"min_length": 4},
        {"min_length": 9, "max_length": 8},
        {"n_train": 0},
        {"n_held_out": 0},
        {"seed": -1},
    ],
)
@pytest.mark.parametrize("load", [lexicon_translation, lexicon_summary])
def test_sizes_that_make_no_sense_are_refused(load, options):
    with pytest.raises(BadInput, match=f"{load.__name__} needs 5 ≤ min_length"):
        load(**options)


def test_too_many_held_out_samples_are_refused():
    # 4 · 10 · 4 words around two nouns: two of the 12 topics, or one of them and one of the other 14 nouns.
    with pytest.raises(
        BadInput, match=f"make only {160 * (12 * 11 + 2 * 12 * 14)} sentences.* at most 37440"
    ):
        lexicon_summary(n_held_out=37_441)


@pytest.mark.parametrize("rule", [translate, summarise])
def test_an_unknown_word_is_refused_with_the_nearest(rule):
    with pytest.raises(UnknownName, match="no word 'floods'; did you mean 'flood'"):
        rule(["the", "floods"])


def test_a_sentence_without_a_topic_has_no_summary():
    with pytest.raises(BadInput, match="has nothing to sum up; topics are war, plague"):
        summarise(["the", "dog", "sees", "my", "cat"])
