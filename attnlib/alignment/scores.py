"""Links against gold links: alignment error rate, precision and recall (Och & Ney 2003, section 6)."""

from collections.abc import Collection
from dataclasses import dataclass

from attnlib.alignment.gold import Gold
from attnlib.probes.alignment_error import Link, error_rates
from attnlib.streaming import StreamingSums


@dataclass(frozen=True, kw_only=True)
class LinkScores:
    """Agreement of links A with gold links, sure S and possible P; rates are NaN with nothing to judge.

    Attributes:
        error_rate: alignment error rate, ``1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)``.
        precision: ``|A ∩ P| / |A|``.
        recall: ``|A ∩ S| / |S|``.
        links: ``|A|``, the number of links made.
        sure_links: ``|S|``, the number of sure gold links.
        pairs: number of sentence pairs judged.

    Example:
        >>> LinkSums().update([(0, 0)], Gold([(0, 0)])).result().precision
        1.0
    """

    error_rate: float
    precision: float
    recall: float
    links: int
    sure_links: int
    pairs: int


class LinkSums(StreamingSums):
    """Sums over sentence pairs behind :class:`LinkScores`; ``+`` joins two parts of a corpus.

    Links are given, and gold links sure or possible. :class:`~attnlib.probes.alignment_error.AlignmentSums`
    makes the links itself, from rows of attention in which tied words share a link, and knows sure ones only.

    Example:
        >>> gold = Gold([(0, 0), (1, 1)], [(1, 2)])
        >>> LinkSums().update([(0, 0), (1, 2), (2, 2)], gold).result()
        LinkScores(error_rate=0.4, precision=0.6666666666666666, recall=0.5, links=3, sure_links=2, pairs=1)
    """

    SUMS = ("sure_hits", "possible_hits", "made", "sure", "pairs")

    def __init__(self) -> None:
        self.sure_hits = 0
        self.possible_hits = 0
        self.made = 0
        self.sure = 0
        self.pairs = 0

    def update(self, links: Collection[Link], gold: Gold) -> "LinkSums":
        """Add a sentence pair.

        Args:
            links: those that were made, (source word, target word).
            gold: those that should be.

        Returns:
            These sums.
        """
        made = frozenset(links)
        self.sure_hits += len(made & gold.sure)
        self.possible_hits += len(made & gold.possible)
        self.made += len(made)
        self.sure += len(gold.sure)
        self.pairs += 1
        return self

    def result(self) -> LinkScores:
        """Return the rates of the sums so far.

        Returns:
            The rates, with the counts behind them.
        """
        rates = error_rates(
            sure_hits=self.sure_hits, possible_hits=self.possible_hits, made=self.made, sure=self.sure
        )
        return LinkScores(
            error_rate=rates.error_rate,
            precision=rates.precision,
            recall=rates.recall,
            links=self.made,
            sure_links=self.sure,
            pairs=self.pairs,
        )
