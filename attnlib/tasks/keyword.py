"""Sequences with and without a keyword: the task on which the lexical probe leaks (Snell et al. 2021, 6.1).

A sequence is positive if and only if the keyword stands in it, once, anywhere. The other words are drawn
uniformly and independently from the rest of the vocabulary. Half of the sequences are positive. The paper
draws all words uniformly and rejects until this is so, which gives the same distribution.
"""

from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlib.errors import BadInput

KEYWORD = 0


@dataclass(frozen=True)
class KeywordBatch:
    """Sequences of one length, without padding.

    Attributes:
        tokens: words 0 … words − 1; the keyword is 0.
        labels: 1 where the keyword stands.
        place: of the keyword; of no meaning in negative sequences.
    """

    tokens: Int[Tensor, "batch length"]
    labels: Int[Tensor, " batch"]
    place: Int[Tensor, " batch"]

    @property
    def mask(self) -> Bool[Tensor, "batch length"]:
        """True everywhere."""
        return torch.ones_like(self.tokens, dtype=torch.bool)

    def to(self, device: str) -> Self:
        """The same on a device."""
        return type(self)(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


def keyword_batch(samples: int, length: int, words: int, generator: torch.Generator) -> KeywordBatch:
    """Sequences, the first half of them positive.

    >>> batch = keyword_batch(4, length=6, words=5, generator=torch.Generator().manual_seed(0))
    >>> (batch.tokens == KEYWORD).sum(1).tolist(), batch.labels.tolist()
    ([1, 1, 0, 0], [1, 1, 0, 0])

    Raises:
        BadInput: an odd number of samples, a length below 1, or no word beside the keyword.
    """
    if samples < 2 or samples % 2:
        raise BadInput(f"{samples} samples; half are positive, so give an even number")
    if length < 1 or words < 2:
        raise BadInput(
            f"length {length} and {words} words; a sequence has a word, and there are at least two"
        )
    tokens = torch.randint(1, words, (samples, length), generator=generator)
    place = torch.randint(length, (samples,), generator=generator)
    labels = (torch.arange(samples) < samples // 2).long()
    rows = torch.arange(samples // 2)
    tokens[rows, place[: samples // 2]] = KEYWORD
    return KeywordBatch(tokens, labels, place)
