"""Pairs of sentences that differ in one word: an order word for its counterpart, or a word for one of its own
class, which should leave the order as it was."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from attnlib.errors import BadInput
from attnlib.tasks.corpus import Corpus
from attnlib.tasks.task import Links, Task
from companion.data.reordering import (
    HEADS,
    REVERSING_OPENINGS,
    STAYING_MODIFIERS,
    STAYING_OPENINGS,
    SWAPPING_MODIFIERS,
    TRANSLATIONS,
    translate,
)
from companion.data.scan import ACTION_OF, COMMAND_WORDS, TURN_OF, interpret

_STREAM = 0x5A1B

Words = tuple[str, ...]
Meaning = Callable[[Sequence[str]], tuple[Words, Links | None]]  # target words; links where the task has them


@dataclass(frozen=True)
class Swap:
    """A kind of swap.

    Attributes:
        name: of the class of the word that is swapped.
        kind: ``order`` (the target's words change places), ``count`` (some come oftener) or ``content`` (one
            target word becomes another in its place).
        groups: words that stand for each other. Across groups a word gives way to one of the other group,
            else to another of its own.
        across: which of the two.
    """

    name: str
    kind: str
    groups: tuple[Words, ...]
    across: bool = False

    def replacements(self, word: str) -> tuple[int, Words]:
        """The group of a word and what may take its place; (−1, ()) for a word that is not swapped."""
        for place, group in enumerate(self.groups):
            if word in group:
                others = self.groups[1 - place] if self.across else tuple(w for w in group if w != word)
                return place, others
        return -1, ()


REORDERING_SWAPS = (
    Swap("opening", "order", (tuple(STAYING_OPENINGS), tuple(REVERSING_OPENINGS)), across=True),
    Swap("modifier", "order", (tuple(STAYING_MODIFIERS), tuple(SWAPPING_MODIFIERS)), across=True),
    Swap("opening_within", "content", (tuple(STAYING_OPENINGS), tuple(REVERSING_OPENINGS))),
    Swap("modifier_within", "content", (tuple(STAYING_MODIFIERS), tuple(SWAPPING_MODIFIERS))),
    Swap("head", "content", (tuple(HEADS),)),
)
SCAN_SWAPS = (
    Swap("join", "order", (("and",), ("after",)), across=True),
    Swap("times", "count", (("twice",), ("thrice",)), across=True),
    Swap("manner", "count", (("opposite",), ("around",)), across=True),
    Swap("verb", "content", (tuple(ACTION_OF),)),
    Swap("direction", "content", (tuple(TURN_OF),)),
)
_SIGNALS = {**REVERSING_OPENINGS, **SWAPPING_MODIFIERS}


@dataclass(frozen=True, eq=False)
class Pairs:
    """Aligned corpora: sample i of ``second`` is that of ``first`` with another word at ``positions[i]``.

    Attributes:
        groups: the group that the word of ``first`` belongs to.
        forks: the first target step whose source word differs (where the task has links and they differ),
            else the first that differs in its word, the end mark included.
        gold: source position of the fork's word in either sentence; −1 without links.
    """

    swap: Swap
    first: Corpus
    second: Corpus
    positions: Int[np.ndarray, " pairs"]
    groups: Int[np.ndarray, " pairs"]
    forks: Int[np.ndarray, " pairs"]
    gold: Int[np.ndarray, "pairs 2"]

    def __len__(self) -> int:
        return len(self.positions)


def swaps_of(task: Task) -> tuple[Swap, ...]:
    """The swaps of a task's words.

    Raises:
        BadInput: neither a SCAN nor a reordering task.
    """
    words = set(task.source_vocabulary.words)
    if set(COMMAND_WORDS) <= words:
        return SCAN_SWAPS
    if set(TRANSLATIONS) <= words:
        return REORDERING_SWAPS
    raise BadInput(f"task {task.name} has no known order words; take scan, scan_extended or reordering_50")


def draw_pairs(task: Task, swap: Swap, n: int, *, part: str = "held_out", reach: str = "both") -> Pairs:
    """Up to ``n`` pairs: the first sentence from one part of the task, the second not in the other.

    Which word of a sentence is swapped, and for which, is drawn; every sentence comes once at most. In the
    reordering family a sentence must have another signal to reorder than the word swapped, because those
    without any are drawn apart: a single one among them would be unlike what was trained on.

    Args:
        part: ``held_out`` or ``train``.
        reach: of the reordering task, see :func:`companion.data.reordering.translate`.

    Raises:
        BadInput: not one pair is to be had.
    """
    draw = np.random.default_rng([_STREAM, part == "train", *swap.name.encode()])
    own, other = (task.held_out, task.train) if part == "held_out" else (task.train, task.held_out)
    forbidden = {tuple(other.source(i).tolist()) for i in range(len(other))}
    longest = int(task.train.target_lengths.max())
    scan = swap in SCAN_SWAPS
    meaning: Meaning = _interpret if scan else lambda words: translate(words, reach)
    source, target = task.source_vocabulary, task.target_vocabulary
    found: list[tuple] = []
    for sample in draw.permutation(len(own)):
        words = source.decode(own.source(sample).tolist())
        candidates = [place for place, word in enumerate(words) if swap.replacements(word)[1]]
        if not candidates:
            continue
        place = int(draw.choice(candidates))
        if not scan and not any(w in _SIGNALS for t, w in enumerate(words) if t != place):
            continue
        group, others = swap.replacements(words[place])
        partner = (*words[:place], others[draw.integers(len(others))], *words[place + 1 :])
        ids = source.encode(partner)
        if tuple(ids.tolist()) in forbidden:
            continue
        there, here = meaning(partner), meaning(words)
        if len(there[0]) > longest or there[0] == here[0]:
            continue
        fork, gold = fork_of(here, there)
        pair = (own.source(sample), target.encode(here[0])), (ids, target.encode(there[0]))
        found.append((*pair, place, group, fork, gold))
        if len(found) == n:
            break
    if not found:
        raise BadInput(f"task {task.name} has no pair of sentences for {swap.name!r}; take another task")
    first, second, *columns = zip(*found, strict=True)
    corpora = (Corpus.from_ids(*zip(*side, strict=True)) for side in (first, second))
    return Pairs(swap, *corpora, *(np.array(column) for column in columns))


def _interpret(words: Sequence[str]) -> tuple[Words, None]:
    return interpret(words), None


def fork_of(
    here: tuple[Words, Links | None], there: tuple[Words, Links | None]
) -> tuple[int, tuple[int, int]]:
    """Target step at which two translations part, and the source positions that either translates there.

    >>> fork_of((("a", "b", "c"), None), (("a", "b"), None))
    (2, (-1, -1))
    >>> fork_of((("a", "b"), frozenset({(0, 0), (1, 1)})), (("b", "a"), frozenset({(0, 1), (1, 0)})))
    (0, (0, 1))
    """
    steps = min(len(here[0]), len(there[0]))
    from_source = [dict(links) if links is not None else {} for _, links in (here, there)]
    parted = [s for s in range(steps) if from_source[0].get(s) != from_source[1].get(s)]
    if not parted:
        parted = [s for s in range(steps) if here[0][s] != there[0][s]]
    step = parted[0] if parted else steps
    return step, (from_source[0].get(step, -1), from_source[1].get(step, -1))
