"""What the instrument of the page counts: a few sentence pairs, round by round; without torch."""

from collections.abc import Iterable
from itertools import chain, permutations, product

import pandas as pd

ROUNDS = 10
Pair = tuple[tuple[str, ...], tuple[str, ...]]


def _pairs(*lines: str) -> list[Pair]:
    """Return the words of lines such as ``red fox → rakko fimbo``."""
    sides = [line.split(" → ") for line in lines]
    return [(tuple(source.split()), tuple(target.split())) for source, target in sides]


CORPORA = {  # title, sentence pairs, and what to notice
    "two": (
        "two pairs",
        _pairs("red fox → rakko fimbo", "red owl → rakko ulufo"),
        "Both words of the first pair meet fimbo once. But red also meets other words, so the count already "
        "prefers fox, and every round makes it surer.",
    ),
    "labels": (
        "reviews and labels",
        _pairs("great plot cast → +", "great cast story → +", "dull plot story → −", "dull story cast → −"),
        "great and dull meet one label each; the label comes to look at them. Neutral words lose.",
    ),
    "permutations": (
        "permutations",
        [(order, tuple(map(str.upper, order))) for order in permutations("abc")],
        "Every sentence has the same words, so every letter meets every letter equally often. "
        "No round changes anything.",
    ),
}


def expectation_maximisation(pairs: list[Pair], rounds: int) -> dict[tuple[str, str], float]:
    """Return the probability of each target word given a source word, by plain loops (equations 16 to 19).

    >>> table = expectation_maximisation(CORPORA["two"][1], rounds=0)
    >>> table["fox", "fimbo"], table["red", "fimbo"]
    (0.5, 0.25)
    """
    table: dict[tuple[str, str], float] = {}
    for _ in range(rounds + 1):
        counts: dict[tuple[str, str], float] = {}
        for source, target in pairs:
            for written in target:
                weights = [table.get((word, written), 0.0) if table else 1.0 for word in source]
                for word, weight in zip(source, weights, strict=True):
                    counts[word, written] = counts.get((word, written), 0.0) + weight / sum(weights)
        totals: dict[str, float] = {}
        for (word, _), count in counts.items():
            totals[word] = totals.get(word, 0.0) + count
        table = {(word, written): count / totals[word] for (word, written), count in counts.items()}
    return table


def rounds_of_counting() -> tuple[dict, pd.DataFrame]:
    """Return the sentence pairs, as numbers of their words, and what each word translates to."""
    corpora, rows = [], []
    for name, (title, pairs, notice) in CORPORA.items():
        source = _words(source for source, _ in pairs)
        target = _words(target for _, target in pairs)
        corpora.append(
            {
                "name": name,
                "title": title,
                "source": source,
                "target": target,
                "pairs": [[list(map(source.index, a)), list(map(target.index, b))] for a, b in pairs],
                "notice": notice,
            }
        )
        counted = expectation_maximisation(pairs, 0)
        iterated = expectation_maximisation(pairs, ROUNDS)
        for word, written in product(source, target):
            if (word, written) in counted:
                probabilities = {
                    "by the count": counted[word, written],
                    f"after {ROUNDS} rounds": iterated[word, written],
                }
                rows.append({"sentences": title, "source": word, "target": written} | probabilities)
    return {"corpora": corpora, "rounds": ROUNDS}, pd.DataFrame(rows).set_index("sentences").round(3)


def _words(sides: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the words of some sentences, each once, in the order in which they come."""
    return list(dict.fromkeys(chain.from_iterable(sides)))
