"""Copying as a task by name: the target is the source, and no word comes twice in a sentence.

The sentences are those of Snell et al. 2021 (sections 3.3 and 6.2, appendix A.3), drawn as
:func:`attnlib.tasks.copying.draw_sources` draws them, with an end mark as in every task of this package. All
are of one length. In ``copying_sample`` a sentence lacks a third of the vocabulary, so that words that meet
say something of each other; in ``copying_permutation`` every sentence has every word, and they say nothing.
"""

import math

import numpy as np
import torch

from attnlib.errors import BadInput
from attnlib.tasks.copying import Kind, draw_sources, words_of
from attnlib.tasks.corpus import Corpus
from attnlib.tasks.task import Task
from attnlib.tasks.vocabulary import MARKS, Vocabulary

_STREAM = 0xC0B7


def copying_sample(
    *, length: int = 40, n_train: int = 20_000, n_held_out: int = 1_000, seed: int = 0
) -> Task:
    """``length`` words of one and a half times as many, in a random order: 40 of 60 in the paper.

    No sentence is in both parts. Gold links are the identity.

    Args:
        length: words of every sentence, at least 3.
        n_train: training samples.
        n_held_out: held-out samples.
        seed: of the draw.

    Raises:
        BadInput: a size that makes no sense, or so few different sentences that they run out.
    """
    return _copying("sample", length, n_train, n_held_out, seed)


def copying_permutation(
    *, length: int = 40, n_train: int = 20_000, n_held_out: int = 1_000, seed: int = 0
) -> Task:
    """All ``length`` words of the vocabulary in a random order; arguments and errors as for the sample."""
    return _copying("permutation", length, n_train, n_held_out, seed)


def _copying(kind: Kind, length: int, n_train: int, n_held_out: int, seed: int) -> Task:
    if min(n_train, n_held_out) < 1 or length < 3 or seed < 0:
        raise BadInput(
            f"copying needs length ≥ 3, n_train and n_held_out ≥ 1, seed ≥ 0; got {length=}, {n_train=}, "
            f"{n_held_out=}, {seed=}"
        )
    words = words_of(kind, length)
    if 4 * n_held_out > math.perm(words, length):
        raise BadInput(
            f"{words} words make {math.perm(words, length)} sentences of {length}, too few to hold out "
            f"{n_held_out}; take longer ones"
        )
    held_out = _drawn(kind, length, n_held_out, np.random.SeedSequence([_STREAM, 0, seed]), frozenset())
    known = frozenset(sentence.tobytes() for sentence in held_out)
    train = _drawn(kind, length, n_train, np.random.SeedSequence([_STREAM, 1, seed]), known)
    names = [f"w{i:0{len(str(words - 1))}d}" for i in range(words)]
    links = frozenset((i, i) for i in range(length))
    return Task(
        name=f"copying_{kind}",
        source_vocabulary=Vocabulary.of(names),
        target_vocabulary=Vocabulary.of(names),
        train=Corpus.from_ids(train, train),
        held_out=Corpus.from_ids(held_out, held_out),
        gold=(links,) * n_held_out,
    )


def _drawn(
    kind: Kind, length: int, samples: int, sequence: np.random.SeedSequence, forbidden: frozenset[bytes]
) -> list[np.ndarray]:
    generator = torch.Generator().manual_seed(int(sequence.generate_state(1)[0]))
    found: list[np.ndarray] = []
    while len(found) < samples:
        rows = draw_sources(kind, length, samples - len(found), generator).numpy() + len(MARKS)
        found += [row for row in rows if row.tobytes() not in forbidden]
    return found


TASKS = {"copying_sample": copying_sample, "copying_permutation": copying_permutation}
