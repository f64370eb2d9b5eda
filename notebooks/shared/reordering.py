"""The reordering family: a synthetic bilingual grammar with a dial from one diagonal to an order a sample.

A sentence is an opening word and then phrases of a modifier and a head::

    now  red fox  old owl       gau  rakko fimbo  ohto ulufo     staying words alone: word for word
    now  wild fox  old owl      gau  fimbo wikko  ohto ulufo     a swapping modifier follows its head
    once  wild fox  old owl     onga  ohto ulufo  fimbo wikko    a reversing opening turns the phrases round

Every word has one translation. Order is signalled by the words alone: swapping modifiers reorder locally, as
French adjectives do; a reversing opening word reorders the whole sentence.
"""

from collections.abc import Sequence

import numpy as np

from attnlib.errors import BadInput, check_known
from attnlib.training.corpus import Links, Task
from companion.data.by_rule import drawn_apart, task, task_by_rule

STAYING_OPENINGS = {"now": "gau", "here": "hyra"}
REVERSING_OPENINGS = {"once": "onga", "there": "thela"}
STAYING_MODIFIERS = {"red": "rakko", "old": "ohto", "big": "bakko", "sly": "sinno"}
SWAPPING_MODIFIERS = {"wild": "wikko", "grey": "grato", "shy": "shimo", "odd": "ommo"}
HEADS = {
    "fox": "fimbo", "owl": "ulufo", "bear": "barbu", "hare": "hobbu", "wolf": "wulmo", "crow": "karru",
    "deer": "dilmo", "toad": "tontu",
}  # fmt: skip
TRANSLATIONS = STAYING_OPENINGS | REVERSING_OPENINGS | STAYING_MODIFIERS | SWAPPING_MODIFIERS | HEADS
REACHES = ("both", "local", "global")


def translate(words: Sequence[str], reach: str = "both") -> tuple[tuple[str, ...], Links]:
    """The translation of a sentence, and which target word comes from which source word.

    ``reach`` says which signals count: those of ``"local"`` order, of ``"global"`` order, or ``"both"``.
    """
    check_known("reach", reach, REACHES)
    for word in words:
        check_known("word", word, TRANSLATIONS)
    modifiers, heads = words[1::2], words[2::2]
    openings = STAYING_OPENINGS | REVERSING_OPENINGS
    adjectives = STAYING_MODIFIERS | SWAPPING_MODIFIERS
    if (
        not words
        or words[0] not in openings
        or len(modifiers) != len(heads)
        or any(word not in adjectives for word in modifiers)
        or any(word not in HEADS for word in heads)
    ):
        raise BadInput(
            f"{' '.join(words)!r} is no sentence: an opening word, then a modifier and a head in turn"
        )
    phrases = [
        (place + 1, place) if reach != "global" and words[place] in SWAPPING_MODIFIERS else (place, place + 1)
        for place in range(1, len(words), 2)
    ]
    if reach != "local" and words[0] in REVERSING_OPENINGS:
        phrases.reverse()
    order = [0, *(place for phrase in phrases for place in phrase)]
    return tuple(TRANSLATIONS[words[place]] for place in order), frozenset(enumerate(order))


@task()
def reordering(
    *, p: float = 0.5, reach: str = "both", min_phrases: int = 5, max_phrases: int = 8, n_train: int = 10_000,
    n_held_out: int = 2_400, seed: int = 0,
) -> Task:  # fmt: skip
    """Sentences of which a share ``p`` may be reordered.

    With probability 1 − p a sentence has staying words only and is translated word for word; with probability
    p each of its signals is drawn from both classes, half each. At p = 0 one diagonal fits all samples; with
    p grows how much the order depends on the sample. The ``reach`` ``"local"`` draws swapping modifiers only,
    ``"global"`` reversing openings only. The number of phrases is uniform between its two bounds. No sentence
    is in both parts.
    """
    check_known("reach", reach, REACHES)
    if not 0 <= p <= 1:
        raise BadInput(f"p is {p}; it must lie between 0 and 1")
    fewest = len(STAYING_OPENINGS) * (len(STAYING_MODIFIERS) * len(HEADS)) ** min_phrases
    if 2 * n_held_out > fewest:
        raise BadInput(
            f"{min_phrases} phrases make only {fewest} sentences without reordering, too few to hold out "
            f"{n_held_out}; take at most {fewest // 2}, or more phrases"
        )
    openings = [list(STAYING_OPENINGS), list(REVERSING_OPENINGS)]
    modifiers = [list(STAYING_MODIFIERS), list(SWAPPING_MODIFIERS)]
    heads = list(HEADS)

    def sentence(draw: np.random.Generator) -> tuple[str, ...]:
        reordered = draw.random() < p
        phrases = int(draw.integers(min_phrases, max_phrases, endpoint=True))
        signals = draw.integers(2, size=phrases + 1) * reordered
        signals[0] *= reach != "local"
        signals[1:] *= reach != "global"
        words = [openings[signals[0]][draw.integers(2)]]
        for signal in signals[1:]:
            words += [modifiers[signal][draw.integers(4)], heads[draw.integers(8)]]
        return tuple(words)

    return task_by_rule(
        "reordering",
        TRANSLATIONS,
        TRANSLATIONS.values(),
        drawn_apart(sentence, (0x4E01, 0x4E02), n_train, n_held_out, seed),
        lambda words: (words, *translate(words, reach)),
    )


TASKS = {"reordering": reordering}
