"""Sentences to copy in which no word comes twice, as tasks (Snell et al. 2021, sections 3.3, 6.2)."""

import math
from collections.abc import Callable

import numpy as np
import torch

from attnlib.errors import BadInput
from companion.data.by_rule import task, task_by_rule
from companion.data.task import Task
from notebooks.shared.trainings.permutation_copying import Kind, draw_sources, words_of


def _copying(kind: Kind, about: str) -> Callable[..., Task]:
    @task(f"copying_{kind}", about, length=3)
    def make(*, length: int = 40, n_train: int = 20_000, n_held_out: int = 1_000, seed: int = 0) -> Task:
        words = words_of(kind, length)
        if 4 * n_held_out > math.perm(words, length):
            raise BadInput(
                f"{words} words make {math.perm(words, length)} sentences of {length}, too few to hold out "
                f"{n_held_out}; take longer ones"
            )

        def drawn(part: int, samples: int, forbidden: frozenset[tuple[int, ...]]) -> list[tuple[int, ...]]:
            state = np.random.SeedSequence([0xC0B7, part, seed]).generate_state(1)[0]
            generator = torch.Generator().manual_seed(int(state))
            sentences: list[tuple[int, ...]] = []
            while len(sentences) < samples:
                rows = map(tuple, draw_sources(kind, length, samples - len(sentences), generator).tolist())
                sentences += [row for row in rows if row not in forbidden]
            return sentences

        held_out = drawn(0, n_held_out, frozenset())
        names = [f"w{i:0{len(str(words - 1))}d}" for i in range(words)]
        links = frozenset((i, i) for i in range(length))

        def copied(sentence: tuple[int, ...]) -> tuple:
            return *2 * ([names[word] for word in sentence],), links

        parts = drawn(1, n_train, frozenset(held_out)), held_out
        return task_by_rule(f"copying_{kind}", names, names, parts, copied)

    return make


copying_sample = _copying(
    "sample",
    """``length`` words of one and a half times as many, in a random order: 40 of 60 in the paper.

    No sentence is in both parts. Gold links are the identity. Raises BadInput for a size that makes no sense,
    or so few different sentences that they run out.
    """,
)
copying_permutation = _copying(
    "permutation", "All ``length`` words in a random order; otherwise as :func:`copying_sample`."
)


TASKS = {make.__name__: make for make in (copying_sample, copying_permutation)}
