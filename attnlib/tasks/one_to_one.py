"""One-to-one translation: target word i is a fixed relabelling of source word i.

The toy task of Aitken et al. 2021 (arXiv 2110.15253) in which position alone says where to attend: words
A, B, C … become a, b, c … one for one, so the decoder at step s needs the encoder at step s and nothing else.
"""

import string

import numpy as np

from attnlib.errors import BadInput
from attnlib.tasks.corpus import Corpus
from attnlib.tasks.task import Links, Task
from attnlib.tasks.vocabulary import MARKS, Vocabulary

# The held-out samples have a stream of their own, so they stay the same when n_train changes.
_HELD_OUT, _TRAIN = 0x01E1, 0x01E2


def one_to_one(
    *,
    n_words: int = 3,
    min_length: int = 15,
    max_length: int = 20,
    n_train: int = 10_000,
    n_held_out: int = 1_200,
    seed: int = 0,
) -> Task:
    """Draw samples: a length uniform in ``min_length … max_length``, then every word uniform.

    No source sequence is in both ``train`` and ``held_out``.

    Args:
        n_words: source words, at most 26; as many target words.
        min_length: words in the shortest sentence.
        max_length: words in the longest.
        n_train: training samples.
        n_held_out: held-out samples, about ``n_held_out / (max_length - min_length + 1)`` of each length.
        seed: of the draw.

    Raises:
        BadInput: a size that makes no sense, or so many held-out samples that nothing is left to train on.
    """
    parts = draw_parts("one_to_one", n_words, (min_length, max_length), n_train, n_held_out, seed)
    return relabelled("one_to_one", n_words, parts, parts)


def draw_parts(
    name: str, n_words: int, lengths: tuple[int, int], n_train: int, n_held_out: int, seed: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Source sentences to train on and held out, as :func:`one_to_one` draws them; errors name the task."""
    min_length, max_length = lengths
    smallest = min(n_words, min_length, n_train, n_held_out)
    if smallest < 1 or n_words > 26 or min_length > max_length or seed < 0:
        raise BadInput(
            f"{name} needs 1 ≤ n_words ≤ 26, 1 ≤ min_length ≤ max_length, n_train and n_held_out ≥ 1, "
            f"seed ≥ 0; got {n_words=}, {min_length=}, {max_length=}, {n_train=}, {n_held_out=}, {seed=}"
        )
    if 2 * n_held_out > n_words**min_length:
        # Keeps the rejection of shared sequences below one draw in two, whatever the length.
        raise BadInput(
            f"{n_words} words make only {n_words**min_length} sentences of length {min_length}, too few to "
            f"hold out {n_held_out}; take at most {n_words**min_length // 2}, or longer sentences"
        )
    held_out = _draw(np.random.default_rng([_HELD_OUT, seed]), n_held_out, n_words, lengths, frozenset())
    known = frozenset(sentence.tobytes() for sentence in held_out)
    train = _draw(np.random.default_rng([_TRAIN, seed]), n_train, n_words, lengths, known)
    return train, held_out


def relabelled(
    name: str,
    n_words: int,
    sources: tuple[list[np.ndarray], list[np.ndarray]],
    targets: tuple[list[np.ndarray], list[np.ndarray]],
    gold: tuple[Links, ...] | None = None,
) -> Task:
    """A task over A, B, C … and a, b, c …: equal ids on both sides are the relabelling.

    Args:
        gold: alignments of the held-out samples; word by word in order when None.
    """
    if gold is None:
        gold = tuple(frozenset((i, i) for i in range(len(sentence))) for sentence in sources[1])
    return Task(
        name=name,
        source_vocabulary=Vocabulary.of(string.ascii_uppercase[:n_words]),
        target_vocabulary=Vocabulary.of(string.ascii_lowercase[:n_words]),
        train=Corpus.from_ids(sources[0], targets[0]),
        held_out=Corpus.from_ids(sources[1], targets[1]),
        gold=gold,
    )


def _draw(
    draw: np.random.Generator, n: int, n_words: int, lengths: tuple[int, int], forbidden: frozenset[bytes]
) -> list[np.ndarray]:
    sentences: list[np.ndarray] = []
    while len(sentences) < n:
        sentence = draw.integers(n_words, size=draw.integers(*lengths, endpoint=True)) + len(MARKS)
        if sentence.tobytes() not in forbidden:
            sentences.append(sentence)
    return sentences


TASKS = {"one_to_one": one_to_one}
