"""What the instrument of the page counts: a few sentence pairs, round by round; without torch."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, permutations, product

import pandas as pd

ROUNDS = 10
Pair = tuple[tuple[str, ...], tuple[str, ...]]


def _pairs(*lines: str) -> list[Pair]:
    """Return the words of lines such as ``red fox → rakko fimbo``."""
    pairs = []
    for line in lines:
        source, target = line.split(" → ")
        pairs.append((tuple(source.split()), tuple(target.split())))
    return pairs


@dataclass(frozen=True)
class Example:
    """Sentence pairs to count.

    Attributes:
        title: of these.
        pairs: the words of each.
        notice: what to notice.
    """

    title: str
    pairs: list[Pair]
    notice: str


CORPORA = {
    "labels": Example(
        title="reviews and labels",
        pairs=_pairs(
            "great plot cast → +", "great cast story → +", "dull plot story → −", "dull story cast → −"
        ),
        notice="great and dull meet one label each; the label comes to look at them. Neutral words lose.",
    ),
    "two": Example(
        title="two pairs",
        pairs=_pairs("red fox → rakko fimbo", "red owl → rakko ulufo"),
        notice="Both words of the first pair meet fimbo once. But red also meets other words, so the count "
        "already prefers fox, and every round makes it surer.",
    ),
    "permutations": Example(
        title="permutations",
        pairs=[(order, tuple(map(str.upper, order))) for order in permutations("abc")],
        notice="Every sentence has the same words, so every letter meets every letter equally often. "
        "No round changes anything.",
    ),
}
Probabilities = dict[tuple[str, str], float]  # by source and target word


def expectation_maximisation(pairs: list[Pair], rounds: int) -> Probabilities:
    """Return the probability of each target word given a source word, by plain loops (equations 16 to 19).

    >>> table = expectation_maximisation(CORPORA["two"].pairs, rounds=0)
    >>> table["fox", "fimbo"], table["red", "fimbo"]
    (0.5, 0.25)
    """
    table = _normalised(_counts(pairs, None))
    for _ in range(rounds):
        table = _normalised(_counts(pairs, table))
    return table


def _counts(pairs: list[Pair], table: Probabilities | None) -> Probabilities:
    """Return how often each two words meet, a target word being shared among the words of its source."""
    counts: Probabilities = {}
    for source, target in pairs:
        for written in target:
            weights = [1.0 if table is None else table[word, written] for word in source]
            for word, weight in zip(source, weights, strict=True):
                counts[word, written] = counts.get((word, written), 0.0) + weight / sum(weights)
    return counts


def _normalised(counts: Probabilities) -> Probabilities:
    """Return counts over those of their source word."""
    totals: dict[str, float] = {}
    for (word, _), count in counts.items():
        totals[word] = totals.get(word, 0.0) + count
    return {(word, written): count / totals[word] for (word, written), count in counts.items()}


def rounds_of_counting() -> tuple[dict, pd.DataFrame]:
    """Return the sentence pairs, as numbers of their words, and what each word translates to."""
    corpora, rows = [], []
    for name, example in CORPORA.items():
        source = _words(source for source, _ in example.pairs)
        target = _words(target for _, target in example.pairs)
        numbers = [[_numbers(words, source), _numbers(other, target)] for words, other in example.pairs]
        corpora.append(
            {
                "name": name,
                "title": example.title,
                "source": source,
                "target": target,
                "pairs": numbers,
                "notice": example.notice,
            }
        )
        counted = expectation_maximisation(example.pairs, 0)
        iterated = expectation_maximisation(example.pairs, ROUNDS)
        for word, written in product(source, target):
            if (word, written) in counted:
                rows.append(
                    {
                        "sentences": example.title,
                        "source": word,
                        "target": written,
                        "by the count": counted[word, written],
                        f"after {ROUNDS} rounds": iterated[word, written],
                    }
                )
    table = pd.DataFrame(rows).set_index("sentences").round(3)
    return {"corpora": corpora, "rounds": ROUNDS}, table


def _numbers(words: Iterable[str], known: list[str]) -> list[int]:
    """Return the place of each word among those that are known."""
    return [known.index(word) for word in words]


def _words(sides: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the words of some sentences, each once, in the order in which they come."""
    return list(dict.fromkeys(chain.from_iterable(sides)))
