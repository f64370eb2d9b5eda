"""Sequences drawn by rule, without a grammar: relabelled, permuted, copied, or with a keyword among them.

In the one-to-one task of Aitken et al. 2021 (arXiv 2110.15253) words A, B, C … become a, b, c … one for one:
position alone says where to attend, on the diagonal. A fixed permutation for each length takes it off the
diagonal. In the sentences to copy of Snell et al. 2021 (sections 3.3 and 6.2, appendix A.3) no word comes
twice; the kinds differ in how much the set of source words says about the set of target words: nothing
(``permutation``), something (``sample``), and which half of the dictionary (``mixture``). The keyword is the
data on which the lexical probe leaks (section 6.1).
"""

import math
import string
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlib.errors import BadInput, UnknownName
from attnlib.models.copier import CopyBatch
from attnlib.training.corpus import Corpus, Links, Task
from attnlib.training.vocabulary import MARKS, Vocabulary

# -- one to one, and permuted --------------------------------------------------------------------------------

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
    held_out = _draw_words(
        np.random.default_rng([_HELD_OUT, seed]), n_held_out, n_words, lengths, frozenset()
    )
    known = frozenset(sentence.tobytes() for sentence in held_out)
    train = _draw_words(np.random.default_rng([_TRAIN, seed]), n_train, n_words, lengths, known)
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


def _draw_words(
    draw: np.random.Generator, n: int, n_words: int, lengths: tuple[int, int], forbidden: frozenset[bytes]
) -> list[np.ndarray]:
    sentences: list[np.ndarray] = []
    while len(sentences) < n:
        sentence = draw.integers(n_words, size=draw.integers(*lengths, endpoint=True)) + len(MARKS)
        if sentence.tobytes() not in forbidden:
            sentences.append(sentence)
    return sentences


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
    those of :func:`one_to_one`.
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


# -- sentences to copy ---------------------------------------------------------------------------------------

Kind = Literal["permutation", "sample", "mixture"]
KINDS: tuple[Kind, ...] = get_args(Kind)


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


_COPYING = 0xC0B7


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
    held_out = _draw_copies(
        kind, length, n_held_out, np.random.SeedSequence([_COPYING, 0, seed]), frozenset()
    )
    known = frozenset(sentence.tobytes() for sentence in held_out)
    train = _draw_copies(kind, length, n_train, np.random.SeedSequence([_COPYING, 1, seed]), known)
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


def _draw_copies(
    kind: Kind, length: int, samples: int, sequence: np.random.SeedSequence, forbidden: frozenset[bytes]
) -> list[np.ndarray]:
    generator = torch.Generator().manual_seed(int(sequence.generate_state(1)[0]))
    found: list[np.ndarray] = []
    while len(found) < samples:
        rows = draw_sources(kind, length, samples - len(found), generator).numpy() + len(MARKS)
        found += [row for row in rows if row.tobytes() not in forbidden]
    return found


# -- a keyword among the words -------------------------------------------------------------------------------

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


TASKS = {
    "one_to_one": one_to_one,
    "permutation": permutation,
    "reversal": reversal,
    "copying_sample": copying_sample,
    "copying_permutation": copying_permutation,
}
