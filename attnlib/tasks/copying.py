"""Sentences to copy: permutations of one set of words, samples of a larger set, or of two sets in turn.

Source: Snell et al. 2021, sections 3.3 and 6.2, appendix A.3. What the three kinds differ in is how much the
set of source words says about the set of target words: nothing, something, and which half of the dictionary.
"""

from dataclasses import dataclass
from typing import Literal, Self, get_args

import torch
from jaxtyping import Int
from torch import Tensor

from attnlib.errors import BadInput, UnknownName

Kind = Literal["permutation", "sample", "mixture"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class CopyBatch:
    """Sentences of one length, without padding or end mark.

    Attributes:
        source: (batch, length), words 0 … words − 1.
        target_read: what the decoder reads at each step: a start mark (the id ``words``), then the target.
        target: what it is to say.
        place: the source position of each target word, (length,).
    """

    source: Int[Tensor, "batch length"]
    target_read: Int[Tensor, "batch length"]
    target: Int[Tensor, "batch length"]
    place: Int[Tensor, " length"]

    def to(self, device: str) -> Self:
        """The same on a device."""
        return type(self)(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


def words_of(kind: Kind, length: int) -> int:
    """Size of the vocabulary, in the paper's proportions: length, one and a half times it, twice it.

    >>> [words_of(kind, 40) for kind in KINDS]
    [40, 60, 80]

    Raises:
        UnknownName: no such kind. BadInput: a length under 2, of which there is no other order.
    """
    if kind not in KINDS:
        raise UnknownName("kind of copying data", kind, KINDS)
    if length < 2:
        raise BadInput(f"sentences of length {length}; expected at least 2")
    return {"permutation": length, "sample": length + length // 2, "mixture": 2 * length}[kind]


def draw_sources(
    kind: Kind, length: int, samples: int, generator: torch.Generator
) -> Int[Tensor, "samples length"]:
    """Sentences in which no word comes twice, each as likely as any other of its kind.

    ``permutation``: all words of the vocabulary in a random order. ``sample``: ``length`` words of one and a
    half times as many, in a random order. ``mixture``: all words of the first half or all of the second.

    Raises:
        UnknownName, BadInput: as :func:`words_of`.
    """
    drawn_from = words_of(kind, length) // (2 if kind == "mixture" else 1)
    sources = torch.rand(samples, drawn_from, generator=generator).argsort(dim=1)[:, :length]
    if kind == "mixture":
        sources = sources + length * torch.randint(2, (samples, 1), generator=generator)
    return sources


def copy_batch(
    sources: Int[Tensor, "batch length"], words: int, order: Int[Tensor, " length"] | None = None
) -> CopyBatch:
    """A batch whose target is the source, or the source put into ``order``: y_i = x_{order[i]} (equation 26).

    >>> batch = copy_batch(torch.tensor([[2, 0, 1]]), words=3, order=torch.tensor([1, 2, 0]))
    >>> batch.target.tolist(), batch.target_read.tolist()
    ([[0, 1, 2]], [[3, 0, 1]])
    """
    place = torch.arange(sources.shape[1]) if order is None else order
    target = sources[:, place]
    start = torch.full_like(target[:, :1], words)
    return CopyBatch(sources, torch.cat([start, target[:, :-1]], dim=1), target, place)
