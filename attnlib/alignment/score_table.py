"""Scores of heads by gold links, compared with IBM Model 1 and the diagonal, which see no network."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import torch

from attnlib.alignment.gold import Gold
from attnlib.alignment.links import MEAN, HeadChoice, LinkedPair
from attnlib.alignment.scores import LinkSums
from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import Vocabulary
from attnlib.probes.agreement import halves
from attnlib.probes.alignment_error import Link, diagonal
from attnlib.probes.ibm_model_1 import NO_LINK, IBMModel1

FITTED_ON = 20_000  # sentence pairs of a text, at most, that IBM Model 1 is fitted on
IBM_MODEL_1 = "IBM Model 1"

WordPair = tuple[Sequence[str], Sequence[str]]  # the words of a source and of its target
GoldByNumber = Mapping[int, Gold]  # by the number of the line


class Lexicon:
    """IBM Model 1 of some sentence pairs: it links words by what they occur with, and nothing else.

    Args:
        pairs: the words of each source and of its target.

    Example:
        >>> house, book = (["das", "Haus"], ["the", "house"]), (["das", "Buch"], ["the", "book"])
        >>> Lexicon([house, book]).links(*house)
        [(0, 0), (1, 1)]
    """

    def __init__(self, pairs: Sequence[WordPair]):
        self.n_pairs = len(pairs)
        self._source = Vocabulary.from_sentences((source for source, _ in pairs), open=True)
        self._target = Vocabulary.from_sentences((target for _, target in pairs), open=True)
        corpus = Corpus.from_ids(
            [self._source.encode(source).tolist() for source, _ in pairs],
            [self._target.encode(target).tolist() for _, target in pairs],
        )
        self._model = IBMModel1.fit(corpus, len(self._source), len(self._target))

    def links(self, source: Sequence[str], target: Sequence[str]) -> list[Link]:
        """Return the links of a sentence pair.

        Args:
            source: words.
            target: words.

        Returns:
            Links (source word, target word), in the order of target words.
        """
        best = self._model.best_links(self._source.encode(source), self._target.encode(target))
        linked = enumerate(best.tolist())
        return [(source_word, target_word) for target_word, source_word in linked if source_word != NO_LINK]


def diagonal_links(source: Sequence[str], target: Sequence[str]) -> list[Link]:
    """Return links by the lengths alone: of each target word to the source word as far along its sentence.

    Args:
        source: words.
        target: words.

    Returns:
        A link for each target word; none where a side is empty.

    Example:
        >>> diagonal_links(["a", "b", "c", "d"], ["e", "f"])
        [(1, 0), (3, 1)]
    """
    if not source or not target:
        return []
    target_words = torch.ones(1, len(target), dtype=torch.bool)
    source_words = torch.ones(1, len(source), dtype=torch.bool)
    linked = diagonal(target_words, source_words)[0].argmax(-1)  # (target,)
    return [(source_word, target_word) for target_word, source_word in enumerate(linked.tolist())]


def sums_by_choice(
    pairs: Iterable[LinkedPair], gold: GoldByNumber, choices: Sequence[HeadChoice]
) -> dict[HeadChoice, LinkSums]:
    """Return the sums of every choice of heads over the pairs that have gold links.

    Args:
        pairs: with their links by every choice.
        gold: links by the number of the line.
        choices: those of the pairs' links.

    Returns:
        Sums by choice.

    Example:
        >>> import numpy as np
        >>> from attnlib.alignment.links import BestSources
        >>> best = BestSources(np.array([[0]]), np.array([[0.75]]))
        >>> pair = LinkedPair(0, ("Haus",), ("house",), best=best)
        >>> head = HeadChoice(0, 0)
        >>> sums_by_choice([pair], {0: Gold([(0, 0)])}, [head])[head].result().error_rate
        0.0
    """
    sums = {choice: LinkSums() for choice in choices}
    for pair in pairs:
        if pair.number in gold:
            for number, choice in enumerate(choices):
                sums[choice].update(pair.best.links(number), gold[pair.number])
    return sums


def best_choice(sums: Mapping[HeadChoice, LinkSums], among: Iterable[HeadChoice]) -> HeadChoice:
    """Return the choice with the lowest error rate.

    Args:
        sums: by choice.
        among: the choices that may be the best.

    Returns:
        The best one; the first of several.

    Example:
        >>> gold, right, wrong = Gold([(0, 0)]), HeadChoice(0, 0), HeadChoice(0, 1)
        >>> sums = {wrong: LinkSums().update([(0, 1)], gold), right: LinkSums().update([(0, 0)], gold)}
        >>> best_choice(sums, [wrong, right])
        HeadChoice(layer=0, head=0)
    """
    return min(among, key=lambda choice: _rank(sums[choice]))


def _rank(sums: LinkSums) -> float:
    error_rate = sums.result().error_rate
    return math.inf if math.isnan(error_rate) else error_rate


def score_row(direction: str, method: str, sums: LinkSums, **more: Any) -> dict[str, Any]:
    """Return a row with the columns of :data:`~attnlib.alignment.alignments.SCORE_COLUMNS`.

    Args:
        direction: "forward", "reverse" or "both".
        method: what made the links.
        sums: of the links.
        more: layer, head, and whether it is what was chosen.

    Returns:
        Values by column.

    Example:
        >>> sums = LinkSums().update([(0, 0)], Gold([(0, 0)]))
        >>> score_row("forward", "diagonal", sums)["precision"]
        1.0
    """
    scores = sums.result()
    return {
        "direction": direction,
        "method": method,
        "layer": more.get("layer", ""),
        "head": more.get("head", ""),
        "error_rate": scores.error_rate,
        "precision": scores.precision,
        "recall": scores.recall,
        "links": scores.links,
        "sure_links": scores.sure_links,
        "pairs": scores.pairs,
        "chosen": more.get("chosen", False),
    }


def rows_of_heads(
    direction: str, sums: Mapping[HeadChoice, LinkSums], chosen: HeadChoice
) -> list[dict[str, Any]]:
    """Return a row for every head and every mean over heads.

    Args:
        direction: of the links.
        sums: by choice of heads.
        chosen: the choice whose links count.

    Returns:
        Rows of :func:`score_row`, in the order of the sums.

    Example:
        >>> head = HeadChoice(0, 1)
        >>> rows = rows_of_heads("forward", {head: LinkSums()}, head)
        >>> rows[0]["method"], rows[0]["head"], rows[0]["chosen"]
        ('head', 1, True)
    """
    rows = []
    for choice, of_choice in sums.items():
        is_mean = MEAN in choice
        method = "mean over heads" if is_mean else "head"
        row = score_row(
            direction, method, of_choice, layer=choice.layer, head=choice.head, chosen=choice == chosen
        )
        rows.append(row)
    return rows


def row_of_other_half(
    direction: str,
    pairs: Sequence[LinkedPair],
    gold: GoldByNumber,
    *,
    choices: Sequence[HeadChoice],
    among: Sequence[HeadChoice],
) -> dict[str, Any] | None:
    """Return the row of the best head where no pair is judged by the head that it helped to choose.

    In each of two random halves the head is that which is best in the other half.

    Args:
        direction: of the links.
        pairs: with their links by every choice.
        gold: links by the number of the line.
        choices: those of the pairs' links.
        among: the choices that may be the best.

    Returns:
        None where there are fewer than two pairs with gold links, or nothing to choose from.

    Example:
        >>> head = HeadChoice(0, 0)
        >>> row_of_other_half("forward", [], {}, choices=[head], among=[head]) is None
        True
    """
    judged = [pair for pair in pairs if pair.number in gold]
    if len(judged) < 2 or len(among) < 2:
        return None
    parts = [[judged[number] for number in half.tolist()] for half in halves(len(judged))]
    sums = [sums_by_choice(part, gold, choices) for part in parts]
    first, second = sums
    total = first[best_choice(second, among)] + second[best_choice(first, among)]
    return score_row(direction, "best head of the other half", total)


def row_of_links(
    direction: str,
    method: str,
    pairs: Iterable[LinkedPair],
    *,
    gold: GoldByNumber,
    links: Callable[[Sequence[str], Sequence[str]], Iterable[Link]],
) -> dict[str, Any]:
    """Return the row of links that are made of the words alone.

    Args:
        direction: of the links.
        method: what makes them.
        pairs: sentence pairs.
        gold: links by the number of the line.
        links: of the words of a source and of its target.

    Returns:
        A row of :func:`score_row`.

    Example:
        >>> import numpy as np
        >>> from attnlib.alignment.links import BestSources
        >>> best = BestSources(np.array([[0]]), np.array([[0.75]]))
        >>> pair = LinkedPair(0, ("Haus",), ("house",), best=best)
        >>> gold = {0: Gold([(0, 0)])}
        >>> row_of_links("forward", "diagonal", [pair], gold=gold, links=diagonal_links)["recall"]
        1.0
    """
    judged = (pair for pair in pairs if pair.number in gold)
    parts = (LinkSums().update(list(links(pair.source, pair.target)), gold[pair.number]) for pair in judged)
    return score_row(direction, method, reduce(add, parts, LinkSums()))
