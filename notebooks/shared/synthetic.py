"""Sequences drawn by rule, without a grammar: relabelled and permuted.

In the one-to-one task (our name; a task of one diagonal, as in the introduction of Aitken et al. 2021) words
A, B, C … become a, b, c … one for one: position alone says where to attend, on the diagonal. A fixed
permutation for each length takes it off the diagonal.
"""

import string
from collections.abc import Callable

import numpy as np

from attnlib.errors import BadInput
from attnlib.training.corpus import Task
from companion.data.by_rule import drawn_apart, task, task_by_rule

_STREAMS = 0x01E1, 0x01E2


def _relabelling(name: str, order_of: Callable[[int, int], np.ndarray], longest: int, about: str):
    @task(name, about)
    def make(
        *, n_words: int = 3, min_length: int = 15, max_length: int = longest, n_train: int = 10_000,
        n_held_out: int = 1_200, seed: int = 0,
    ) -> Task:  # fmt: skip
        if n_words > 26:
            raise BadInput(f"task {name}: n_words must be at most 26; got {n_words}")
        if 2 * n_held_out > n_words**min_length:
            # Keeps the rejection of shared sequences below one draw in two, whatever the length.
            raise BadInput(
                f"{n_words} words make only {n_words**min_length} sentences of length {min_length}, too few "
                f"to hold out {n_held_out}; take at most {n_words**min_length // 2}, or longer sentences"
            )

        def sentence(draw: np.random.Generator) -> str:
            length = draw.integers(min_length, max_length, endpoint=True)
            return "".join(string.ascii_uppercase[word] for word in draw.integers(n_words, size=length))

        orders = {length: order_of(length, seed).tolist() for length in range(min_length, max_length + 1)}
        links = {length: frozenset(enumerate(order)) for length, order in orders.items()}
        return task_by_rule(
            name,
            string.ascii_uppercase[:n_words],
            string.ascii_lowercase[:n_words],
            drawn_apart(sentence, _STREAMS, n_train, n_held_out, seed),
            lambda words: (words, [words[i].lower() for i in orders[len(words)]], links[len(words)]),
        )

    return make


one_to_one = _relabelling(
    "one_to_one",
    lambda length, seed: np.arange(length),
    20,
    """Draw samples: a length uniform in ``min_length … max_length``, then every word uniform.

    No source sequence is in both ``train`` and ``held_out``. There are ``n_words`` source words, at most 26,
    and as many target words. Raises BadInput for a size that makes no sense, or so many held-out samples that
    nothing is left to train on.
    """,
)
permutation = _relabelling(
    "permutation",
    lambda length, seed: np.random.default_rng([0x9E12, seed, length]).permutation(length),
    15,
    """Each length has one permutation, drawn with the seed; target word i relabels source word order[i].

    By default there is one length, and so one permutation for all samples: with several, a decoder has to
    know the length, which attention by position alone cannot tell. Otherwise as :func:`one_to_one`.
    """,
)
reversal = _relabelling(
    "reversal", lambda length, seed: np.arange(length)[::-1], 20, "The last word first: the anti-diagonal."
)


TASKS = {make.__name__: make for make in (one_to_one, permutation, reversal)}
