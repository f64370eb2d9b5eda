"""Sentences to copy (Snell et al. 2021, sections 3.3 and 6.2, appendix A.3), in which no word comes twice.

The kinds differ in how much the set of source words says about the set of target words: nothing
(``permutation``), something (``sample``), and which half of the dictionary (``mixture``).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attnlib.errors import BadInput, check_known
from attnlib.training.corpus import Task
from companion.data.by_rule import task, task_by_rule

Kind = Literal["permutation", "sample", "mixture"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Sentences = Int[Tensor, "samples length"]


def words_of(kind: Kind, length: int) -> int:
    """Size of the vocabulary, in the paper's proportions: length, one and a half times it, twice it.

    >>> [words_of(kind, 40) for kind in KINDS]
    [40, 60, 80]
    """
    check_known("kind of copying data", kind, KINDS)
    if length < 2:
        raise BadInput(f"sentences of length {length}; expected at least 2")
    return {"permutation": length, "sample": length + length // 2, "mixture": 2 * length}[kind]


def draw_sources(kind: Kind, length: int, samples: int, generator: torch.Generator) -> Sentences:
    """Sentences in which no word comes twice, each as likely as any other of its kind.

    ``permutation``: all words of the vocabulary in a random order. ``sample``: ``length`` words of one and a
    half times as many, in a random order. ``mixture``: all words of the first half or all of the second.
    Errors as :func:`words_of`.
    """
    drawn_from = words_of(kind, length) // (2 if kind == "mixture" else 1)
    sources = torch.rand(samples, drawn_from, generator=generator).argsort(dim=1)[:, :length]
    if kind == "mixture":
        sources = sources + length * torch.randint(2, (samples, 1), generator=generator)
    return sources


@dataclass(frozen=True)
class CopyBatch:
    """Sentences of one length, without padding or end mark."""

    source: Int[Tensor, "batch length"]  #: words 0 … words − 1
    #: what the decoder reads at each step: a start mark (the id ``words``), then the target
    target_read: Int[Tensor, "batch length"]
    target: Int[Tensor, "batch length"]  #: what it is to say
    place: Int[Tensor, " length"]  #: the source position of each target word

    def to(self, device: str) -> Self:
        return type(self)(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


def copy_batch(sources: Sentences, words: int, order: Int[Tensor, " length"] | None = None) -> CopyBatch:
    """A batch whose target is the source, perhaps in another ``order``: y_i = x_{order[i]} (equation 26)."""
    place = torch.arange(sources.shape[1]) if order is None else order
    target = sources[:, place]
    start = torch.full_like(target[:, :1], words)
    return CopyBatch(sources, torch.cat([start, target[:, :-1]], dim=1), target, place)


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
            found: list[tuple[int, ...]] = []
            while len(found) < samples:
                rows = map(tuple, draw_sources(kind, length, samples - len(found), generator).tolist())
                found += [row for row in rows if row not in forbidden]
            return found

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
