"""Sentence pairs made by rule, their dictionary known: what a translation set is when no data is at hand.

Every source word has one translation. Words are drawn by Zipf's law, sentence lengths evenly; the target is
the translated sentence with some neighbours exchanged, so that attention has something to find::

    source   s3 s0 s7 s1
    target   t3 t7 t0 t1
"""

import numpy as np

Pair = tuple[str, str]
N_WORDS = 40
SHORTEST, LONGEST = 3, 9  # words in a sentence
N_TRAIN, N_VALIDATION = 4_000, 200
EXCHANGED = 0.25  # chance that a word and the next change places
_SEED = 0x1E71C0


def translation_of(word: str) -> str:
    """The one right translation of a source word.

    >>> translation_of("s17")
    't17'
    """
    return f"t{word.removeprefix('s')}"


def known_lexicon(
    n_train: int = N_TRAIN, n_validation: int = N_VALIDATION
) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Pairs to train on and pairs to judge on, the same on every call."""
    draw = np.random.default_rng(_SEED)
    frequencies = 1 / np.arange(1, N_WORDS + 1)
    pairs = tuple(_pair(draw, frequencies / frequencies.sum()) for _ in range(n_train + n_validation))
    return pairs[:n_train], pairs[n_train:]


def _pair(draw: np.random.Generator, frequencies: np.ndarray) -> Pair:
    length = draw.integers(SHORTEST, LONGEST + 1)
    source = [f"s{word}" for word in draw.choice(N_WORDS, size=length, p=frequencies)]
    target = [translation_of(word) for word in source]
    place = 0
    while place < length - 1:
        if draw.random() < EXCHANGED:
            target[place : place + 2] = reversed(target[place : place + 2])
            place += 1  # a word moves once
        place += 1
    return " ".join(source), " ".join(target)
