"""Two tasks on the same sentences, so that one can ask what a task makes attention learn: every word of a
sentence, or only what it is about::

    source          our new teacher often awaits the flood near their war
    translation     nia instruisto nova ofte atendas la inundo apud ilia milito
    summary         milito inundo

Every source word has one translation, borrowed from Esperanto without its endings for cases. In the
translation an adjective follows its noun. The summary keeps the topics alone, in the order of their
importance, wherever they stand.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from attnlib.errors import BadInput, UnknownName
from companion.data.by_rule import drawn_apart, task, task_by_rule
from companion.data.task import Links, Task, links_of_order


def _table(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


# From the most important to the least.
TOPICS = _table(
    "war milito  plague pesto  quake tertremo  flood inundo  fire fajro  crime krimo  treaty traktato "
    "strike striko  trial proceso  vote baloto  harvest rikolto  concert koncerto"
)
NOUNS = _table(
    "baker bakisto  sailor maristo  teacher instruisto  poet poeto  child infano  friend amiko  dog hundo "
    "cat kato  bird birdo  house domo  town urbo  river rivero  bridge ponto  letter letero"
)
ADJECTIVES = _table(
    "new nova  big granda  little eta  young juna  green verda  grey griza  warm varma  strange stranga "
    "long longa  good bona"
)
VERBS = _table(
    "sees vidas  shows montras  follows sekvas  surprises surprizas  saves savas  reaches atingas "
    "wakes vekas  brings alportas  leaves lasas  awaits atendas"
)
ADVERBS = _table("often ofte  quickly rapide  finally fine  perhaps eble  again ree")
PREPOSITIONS = _table("near apud  with kun  without sen  after post  under sub")
DETERMINERS = _table("the la  my mia  our nia  their ilia")
TRANSLATIONS = TOPICS | NOUNS | ADJECTIVES | VERBS | ADVERBS | PREPOSITIONS | DETERMINERS
MOST_TOPICS = 3
SHORTEST = 5  # determiner noun verb determiner noun

_RANKS = {word: rank for rank, word in enumerate(TOPICS)}


def translate(words: Sequence[str]) -> tuple[tuple[str, ...], Links]:
    """All words, each adjective after the noun that it stands before, and where each comes from."""
    _check_words(words)
    order = list(range(len(words)))
    for place, pair in enumerate(pairwise(words)):
        if pair[0] in ADJECTIVES and (pair[1] in NOUNS or pair[1] in TOPICS):
            order[place : place + 2] = place + 1, place
    return tuple(TRANSLATIONS[words[place]] for place in order), links_of_order(order)


def summarise(words: Sequence[str]) -> tuple[tuple[str, ...], Links]:
    """The topics alone, the most important first, and where each comes from."""
    _check_words(words)
    order = sorted((i for i, word in enumerate(words) if word in TOPICS), key=lambda i: _RANKS[words[i]])
    if not order:
        raise BadInput(f"{' '.join(words)!r} has nothing to sum up; topics are {', '.join(TOPICS)}")
    return tuple(TRANSLATIONS[words[place]] for place in order), links_of_order(order)


def _check_words(words: Sequence[str]) -> None:
    for word in words:
        if word not in TRANSLATIONS:
            raise UnknownName("word", word, TRANSLATIONS)


def _sentence(draw: np.random.Generator, nouns: int, adjectives: int, adverbs: int) -> tuple[str, ...]:
    def any_of(table: dict[str, str]) -> str:
        return list(table)[draw.integers(len(table))]

    topics = int(draw.integers(min(MOST_TOPICS, nouns))) + 1
    topic_at = draw.permutation(nouns)[:topics]
    named = [any_of(NOUNS) for _ in range(nouns)]
    for place, topic in zip(topic_at, draw.permutation(len(TOPICS)), strict=False):
        named[place] = list(TOPICS)[topic]
    described = set(draw.permutation(nouns)[:adjectives].tolist())
    words: list[str] = []
    for place, noun in enumerate(named):
        if place == 1:
            words += [any_of(ADVERBS)] * adverbs + [any_of(VERBS)]
        elif place > 1:
            words.append(any_of(PREPOSITIONS))
        words += [any_of(DETERMINERS)] + ([any_of(ADJECTIVES)] if place in described else []) + [noun]
    return tuple(words)


def _lexicon_task(name: str, rule: Callable[[Sequence[str]], tuple], about: str) -> Callable[..., Task]:
    @task(name, about, min_length=SHORTEST)
    def make(
        *, min_length: int = 6, max_length: int = 14, n_train: int = 10_000, n_held_out: int = 2_000,
        seed: int = 0,
    ) -> Task:  # fmt: skip
        with_topic = len(TOPICS) * (len(TOPICS) - 1 + 2 * len(NOUNS))
        fewest = len(DETERMINERS) ** 2 * len(VERBS) * with_topic
        if 2 * n_held_out > fewest:
            raise BadInput(
                f"{SHORTEST} words make only {fewest} sentences, too few to hold out {n_held_out}; take at "
                f"most {fewest // 2}, whatever the lengths"
            )
        # Numbers of nouns, adjectives and adverbs that make sentences of each length.
        builds = {
            length: [
                (nouns, adjectives, adverbs)
                for nouns in range(2, length)
                for adverbs in (0, 1)
                if 0 <= (adjectives := length - (3 * nouns - 1) - adverbs) <= nouns
            ]
            for length in range(min_length, max_length + 1)
        }

        def sentence(draw: np.random.Generator) -> tuple[str, ...]:
            possible = builds[int(draw.integers(min_length, max_length, endpoint=True))]
            return _sentence(draw, *possible[draw.integers(len(possible))])

        return task_by_rule(
            name,
            TRANSLATIONS,
            TRANSLATIONS.values(),
            drawn_apart(sentence, (0x5D01, 0x5D02), n_train, n_held_out, seed),
            lambda words: (words, *rule(words)),
        )

    return make


lexicon_translation = _lexicon_task(
    "lexicon_translation",
    translate,
    """Sentences and their translations word by word, see :func:`translate`.

    A sentence has a noun, a verb, a noun, and further nouns after prepositions; each noun has a determiner
    and perhaps an adjective, and the verb perhaps an adverb. Its length (5 at least) is uniform in
    ``min_length … max_length``, its build uniform among those of this length, the number of topics among its
    nouns uniform in 1 … 3 (1 … 2 where there are two nouns), and its words uniform; no topic comes twice.
    No sentence is in both parts. Both tasks have the same sources if all arguments are the same.
    """,
)
lexicon_summary = _lexicon_task(
    "lexicon_summary",
    summarise,
    "The sentences of :func:`lexicon_translation`, and their one to three topics, see :func:`summarise`.",
)


TASKS = {"lexicon_translation": lexicon_translation, "lexicon_summary": lexicon_summary}
