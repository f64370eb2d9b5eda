"""Map words to ids; the four marks always have the first four ids."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from attnlib.errors import BadInput, UnknownName

PAD, BOS, EOS, UNK = 0, 1, 2, 3
MARKS = ("<pad>", "<bos>", "<eos>", "<unk>")


@dataclass(frozen=True)
class Vocabulary:
    """The words of one side of a task; ``words[i]`` has id ``i``.

    Attributes:
        words: the four marks ``<pad> <bos> <eos> <unk>``, then the words, all different.
        open: whether a word that is not listed is read as ``<unk>`` (natural text) or is an error (a toy
            task, where it can only be a mistake).

    Raises:
        BadInput: the marks are not the first four words, or a word occurs twice.

    Example:
        >>> vocabulary = Vocabulary.of(["a", "house"], open=True)
        >>> vocabulary.encode(["a", "boat"]).tolist(), vocabulary.decode([5, 2])
        ([4, 3], ['house', '<eos>'])
    """

    words: tuple[str, ...]
    open: bool = False

    def __post_init__(self):
        if self.words[:4] != MARKS:
            raise BadInput(f"a vocabulary starts with {' '.join(MARKS)}; this one with {self.words[:4]}")
        if len(set(self.words)) < len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise BadInput(f"{twice!r} occurs more than once in the vocabulary; give every word once")

    @classmethod
    def of(cls, words: Iterable[str], *, open: bool = False) -> "Vocabulary":
        """Make a vocabulary of the marks followed by some words.

        Args:
            words: in the order of their ids.
            open: whether other words are read as the mark of an unknown word.

        Returns:
            The vocabulary.

        Raises:
            BadInput: a word occurs twice.
        """
        return cls((*MARKS, *words), open)

    @classmethod
    def from_sentences(
        cls,
        sentences: Iterable[Sequence[str]],
        *,
        min_count: int = 1,
        max_words: int | None = None,
        open: bool = False,
    ) -> "Vocabulary":
        """Collect the words of sentences by falling count, ties in alphabetical order.

        Args:
            sentences: words of each.
            min_count: words seen less often are left out.
            max_words: keep at most this many, marks not counted; all if None.
            open: whether other words are read as the mark of an unknown word.

        Returns:
            The vocabulary.

        Raises:
            BadInput: ``min_count`` or ``max_words`` is below 1.
        """
        if min_count < 1 or (max_words is not None and max_words < 1):
            raise BadInput(f"min_count and max_words must be at least 1; got {min_count} and {max_words}")
        counts = Counter(word for sentence in sentences for word in sentence)
        for mark in MARKS:
            # Text that happens to say "<pad>" must not become padding; encode() takes it for an unseen word.
            counts.pop(mark, None)
        kept = [word for word, count in counts.items() if count >= min_count]
        return cls.of(sorted(kept, key=lambda word: (-counts[word], word))[:max_words], open=open)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words) if i >= len(MARKS)}

    def __len__(self) -> int:
        """Return the number of ids, marks included: the height of an embedding table."""
        return len(self.words)

    def encode(self, words: Sequence[str]) -> Int[np.ndarray, " words"]:
        """Return the ids of some words, without any mark added.

        Args:
            words: in the order of a sentence.

        Returns:
            Ids, int64.

        Raises:
            UnknownName: the vocabulary is closed and lacks a word; the message names the nearest.
        """
        ids = self._ids
        if self.open:
            return np.array([ids.get(word, UNK) for word in words], dtype=np.int64)
        try:
            return np.array([ids[word] for word in words], dtype=np.int64)
        except KeyError as error:
            raise UnknownName("word", error.args[0], self.words[len(MARKS) :]) from None

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words of some ids, marks spelled out.

        Args:
            ids: of this vocabulary, in the order of the words.

        Returns:
            Words, in the same order.

        Raises:
            BadInput: an id is not between 0 and ``len(self) - 1``.
        """
        ids = [int(i) for i in ids]
        if ids and not 0 <= min(ids) <= max(ids) < len(self.words):
            raise BadInput(f"ids must lie in 0…{len(self.words) - 1}; got {min(ids)}…{max(ids)}")
        return [self.words[i] for i in ids]
