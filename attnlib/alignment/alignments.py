"""Word alignments of a text: plain data, to be written in Pharaoh's format or as a data frame."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlib.alignment.both_directions import Symmetrisation, symmetrise
from attnlib.alignment.gold import Gold, gold_of_text, read_gold
from attnlib.alignment.scores import LinkScores, LinkSums
from attnlib.errors import BadInput
from attnlib.optional import library
from attnlib.probes.alignment_error import Link

if TYPE_CHECKING:
    from pandas import DataFrame

#: columns of :attr:`Alignments.scores`
SCORE_COLUMNS = (
    "direction", "method", "layer", "head", "error_rate", "precision", "recall", "links", "sure_links",
    "pairs", "chosen",
)  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Alignments:
    r"""Links between the words of sentence pairs, a pair for each line of the text.

    Attributes:
        links: of each pair, (source word, target word) counted from 0, in this order.
        weights: the attention of each link; where the models of both directions make it, the larger.
        source: the words of each source, split at white space.
        target: the words of each target; of what a model wrote, those that it wrote.
        method: what made the links, such as "layer 3, head 5".
        scores: rows with :data:`SCORE_COLUMNS`, where gold links were given: every head, the means over
            heads, IBM Model 1, the diagonal, and what is symmetrised. Empty without gold links.
        notes: what a reader must know: pairs left out, how a head was chosen.
        left_out: numbers of the pairs that have no links because one side is empty or its pieces could not be
            joined to its words; no score counts the latter.

    Raises:
        BadInput: not as many sources, targets and weights as links.

    Example:
        >>> pairs = Alignments(
        ...     links=(((0, 1), (1, 0)),),
        ...     weights=((0.5, 0.75),),
        ...     source=(("old", "house"),),
        ...     target=(("casa", "vieja"),),
        ...     method="by hand",
        ... )
        >>> pairs.to_pharaoh()
        '0-1 1-0\n'
        >>> pairs.score(["0-1 1p0"]).error_rate
        0.0
    """

    links: tuple[tuple[Link, ...], ...]
    weights: tuple[tuple[float, ...], ...]
    source: tuple[tuple[str, ...], ...]
    target: tuple[tuple[str, ...], ...]
    method: str
    scores: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    left_out: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        sizes = {name: len(getattr(self, name)) for name in ("links", "weights", "source", "target")}
        if len(set(sizes.values())) > 1:
            raise BadInput(f"alignments of {sizes}; expected as many of each")

    def __len__(self) -> int:
        return len(self.links)

    def __repr__(self) -> str:
        n_links = sum(map(len, self.links))
        return f"Alignments of {len(self):,} sentence pairs, {n_links:,} links, {self.method}"

    def to_pharaoh(self) -> str:
        """Return a line for each pair: links ``source-target``, counted from 0, with a blank between them.

        Returns:
            The lines, each with its end.
        """
        lines = (" ".join(f"{source}-{target}" for source, target in links) for links in self.links)
        return "".join(f"{line}\n" for line in lines)

    def to_frame(self) -> "DataFrame":
        """Return a data frame of pandas with a row for each link.

        Columns: ``pair`` (number of the line, from 0), the places ``source`` and ``target``, ``source_word``,
        ``target_word`` and ``weight``, the attention.

        Returns:
            Rows by pair, and within a pair in the order of its links.

        Raises:
            BadInput: pandas is not installed.
        """
        columns = ["pair", "source", "target", "source_word", "target_word", "weight"]
        return library("pandas").DataFrame(self._rows(), columns=columns)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for pair, (links, weights) in enumerate(zip(self.links, self.weights, strict=True)):
            for (source, target), weight in zip(links, weights, strict=True):
                yield {
                    "pair": pair,
                    "source": source,
                    "target": target,
                    "source_word": self.source[pair][source],
                    "target_word": self.target[pair][target],
                    "weight": weight,
                }

    def scores_to_frame(self) -> "DataFrame":
        """Return :attr:`scores` as a data frame of pandas.

        Returns:
            A row for each method of each direction, with :data:`SCORE_COLUMNS`.

        Raises:
            BadInput: pandas is not installed.
        """
        return library("pandas").DataFrame(list(self.scores), columns=list(SCORE_COLUMNS))

    def score(
        self, gold: str | Path | Iterable[str | Gold | None], *, first: int | None = None
    ) -> LinkScores:
        """Score the links against gold links; pairs without gold links, and those left out, do not count.

        Args:
            gold: as of :func:`~attnlib.alignment.gold.read_gold`.
            first: number that its words are counted from.

        Returns:
            Error rate, precision and recall over all pairs that are scored.

        Raises:
            BadInput: gold links of another text.
        """
        of_text, _ = gold_of_text(read_gold(gold, first=first), self.source, self.target)
        sums = LinkSums()
        for pair, (links, of_pair) in enumerate(zip(self.links, of_text, strict=True)):
            if of_pair is not None and pair not in self.left_out:
                sums.update(links, of_pair)
        return sums.result()

    def symmetrised(
        self, reverse: "Alignments", method: Symmetrisation = "grow-diag-final-and"
    ) -> "Alignments":
        """Return one alignment made of these links and those of the other direction.

        Args:
            reverse: of the model from target to source; its sources are the targets here.
            method: see :func:`~attnlib.alignment.both_directions.symmetrise`.

        Returns:
            The alignment, without scores; its notes are those of both directions.

        Raises:
            BadInput: alignments of other words.
            UnknownName: no such method.
        """
        for pair, (source, target) in enumerate(zip(self.source, self.target, strict=True)):
            is_same = pair < len(reverse) and (reverse.target[pair], reverse.source[pair]) == (source, target)
            if not is_same or len(reverse) != len(self):
                raise BadInput(
                    f"pair {pair} of the two directions has other words, or is in one alone: both need the "
                    "same two texts, one direction with source and target exchanged"
                )
        links, weights = [], []
        for pair in range(len(self)):
            of_pair, weights_of_pair = _of_both(self, reverse, pair, method=method)
            links.append(of_pair)
            weights.append(weights_of_pair)
        return Alignments(
            links=tuple(links),
            weights=tuple(weights),
            source=self.source,
            target=self.target,
            method=f"{method} of {self.method} and, in the other direction, {reverse.method}",
            notes=self.notes + tuple(f"other direction: {note}" for note in reverse.notes),
            left_out=self.left_out | reverse.left_out,
        )


def _of_both(
    forward: Alignments, reverse: Alignments, pair: int, *, method: Symmetrisation
) -> tuple[tuple[Link, ...], tuple[float, ...]]:
    """Return the links that two directions make of a pair, and the attention of each."""
    if pair in forward.left_out | reverse.left_out:
        return (), ()
    weight_of = dict(zip(forward.links[pair], forward.weights[pair], strict=True))
    backward = []
    for (source, target), weight in zip(reverse.links[pair], reverse.weights[pair], strict=True):
        link = target, source
        backward.append(link)
        weight_of[link] = max(weight, weight_of.get(link, 0.0))
    links = tuple(sorted(symmetrise(forward.links[pair], backward, method)))
    return links, tuple(weight_of[link] for link in links)
