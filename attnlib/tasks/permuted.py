"""One-to-one translation whose target comes in another order, always the same for sentences of one length.

Like :mod:`attnlib.tasks.one_to_one`, but off the diagonal: what a decoder needs at step s stands at a place
that depends on s and the length alone. One attention matrix fits every sample of a length, and it is no
diagonal.
"""

import numpy as np

from attnlib.tasks.one_to_one import draw_parts, relabelled
from attnlib.tasks.task import Task

_ORDER = 0x9E12


def permutation(
    *,
    n_words: int = 3,
    min_length: int = 15,
    max_length: int = 15,
    n_train: int = 10_000,
    n_held_out: int = 1_200,
    seed: int = 0,
) -> Task:
    """Each length has one permutation, drawn with the seed; target word i relabels source word order[i].

    By default there is one length, and so one permutation for all samples: with several, a decoder has to
    know the length, which attention by position alone cannot tell. The other arguments and the errors are
    those of :func:`attnlib.tasks.one_to_one.one_to_one`.
    """
    orders = {
        length: np.random.default_rng([_ORDER, seed, length]).permutation(length)
        for length in range(min_length, max_length + 1)
    }
    return _permuted("permutation", orders, n_words, (min_length, max_length), n_train, n_held_out, seed)


def reversal(
    *,
    n_words: int = 3,
    min_length: int = 15,
    max_length: int = 20,
    n_train: int = 10_000,
    n_held_out: int = 1_200,
    seed: int = 0,
) -> Task:
    """The last word first: the anti-diagonal. Arguments and errors as for :func:`permutation`."""
    orders = {length: np.arange(length)[::-1] for length in range(min_length, max_length + 1)}
    return _permuted("reversal", orders, n_words, (min_length, max_length), n_train, n_held_out, seed)


def _permuted(
    name: str,
    orders: dict[int, np.ndarray],
    n_words: int,
    lengths: tuple[int, int],
    n_train: int,
    n_held_out: int,
    seed: int,
) -> Task:
    sources = draw_parts(name, n_words, lengths, n_train, n_held_out, seed)
    targets = tuple([sentence[orders[len(sentence)]] for sentence in part] for part in sources)
    links = {
        length: frozenset((target, int(source)) for target, source in enumerate(order))
        for length, order in orders.items()
    }
    return relabelled(name, n_words, sources, targets, tuple(links[len(sentence)] for sentence in sources[1]))


TASKS = {"permutation": permutation, "reversal": reversal}
