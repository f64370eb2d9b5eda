"""Labelled texts made by rule, the polarity of every word known: for when no data is at hand.

A text is a sentence of neutral words, drawn by Zipf's law, among which stand a few polar ones: two or three
of its own label's, and for some texts one of the other's. What a classifier has to find out is which words
are polar, and so what it should attend to is known, too::

    neutral0 neutral7 plus3 neutral2 minus1 neutral0 plus5     label 1
"""

from typing import Literal

import numpy as np

from attnlib.texts.prepare import RawText, RawTexts
from attnlib.texts.words import WordRules

N_TRAIN, N_TEST = 2_000, 400
N_NEUTRAL, N_POLAR = 60, 12  # different neutral words, and polar words of each label
SHORTEST, LONGEST = 6, 24  # neutral words in a text
CONTRARY = 0.25  # share of texts with a word of the other label
_SEED = 0x701A

Polarity = Literal["neutral", "minus", "plus"]


def polarity_of(word: str) -> Polarity:
    """The polarity that a word was made with.

    >>> polarity_of("plus11"), polarity_of("neutral0")
    ('plus', 'neutral')
    """
    return word.rstrip("0123456789")


def read() -> RawTexts:
    """The same texts on every call."""
    draw = np.random.default_rng(_SEED)
    frequencies = 1 / np.arange(1, N_NEUTRAL + 1)
    texts = [_text(draw, frequencies / frequencies.sum()) for _ in range(N_TRAIN + N_TEST)]
    return RawTexts("known_polarity", ("minus", "plus"), texts[:N_TRAIN], texts[N_TRAIN:], WordRules())


def _text(draw: np.random.Generator, frequencies: np.ndarray) -> RawText:
    label = int(draw.integers(2))
    length = draw.integers(SHORTEST, LONGEST + 1)
    own, other = ("plus", "minus") if label else ("minus", "plus")
    words = [f"neutral{word}" for word in draw.choice(N_NEUTRAL, size=length, p=frequencies)]
    words += [f"{own}{word}" for word in draw.integers(N_POLAR, size=draw.integers(2, 4))]
    words += [f"{other}{word}" for word in draw.integers(N_POLAR, size=int(draw.random() < CONTRARY))]
    return " ".join(draw.permutation(words)), label
