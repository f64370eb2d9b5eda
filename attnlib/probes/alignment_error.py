"""Compare attention with word alignments: alignment error rate, and the attention on the right words.

A row of attention is about the token predicted at its step, so row s is aligned with target word s. Each row
makes one link, to its largest entry. With A the links made, S the sure gold links and P ⊇ S the possible ones
(Och and Ney 2003, section 6),

    precision = |A ∩ P| / |A|     recall = |A ∩ S| / |S|     AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

:class:`AlignmentSums` counts all gold links as sure, so that AER = 1 - F1; :mod:`attnlib.alignment` scores
links against sure and possible ones.

A source word that occurs twice in its sentence may be tied with itself. A tie makes one link, shared equally
by the tied positions: rounding must not decide.
"""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.streaming import StreamingSums

# Entries this close to the largest of their row are tied with it: single-precision scores differ by as much.
_TIE = 1e-4

Link = tuple[int, int]  # (source position, target position), from 0: as in the Pharaoh format
Links = Collection[Link]


@dataclass(frozen=True, kw_only=True)
class AlignmentQuality:
    """Agreement of rows of attention with gold links; NaN if there is nothing to judge.

    Attributes:
        error_rate: alignment error rate, 0 (the gold links) to 1 (none of them).
        precision: of the links made.
        recall: of the gold links.
        agreement: share of the rows with a gold link whose largest entry has one.
        mass_on_gold: attention on gold links, mean over the rows with a gold link.
        made: number of links made.
        gold: number of gold links.
        rows: number of rows with a gold link.

    Example:
        >>> AlignmentSums().result().gold
        0
    """

    error_rate: float
    precision: float
    recall: float
    agreement: float
    mass_on_gold: float
    made: int
    gold: int
    rows: int


@dataclass(frozen=True)
class ErrorRates:
    """Alignment error rate, precision and recall; NaN where there is nothing to judge.

    Attributes:
        error_rate: 0 where every sure link is made and none that is not possible, to 1.
        precision: share of the links made that are possible.
        recall: share of the sure links that are made.

    Example:
        >>> error_rates(sure_hits=1, possible_hits=1, made=1, sure=1).error_rate
        0.0
    """

    error_rate: float
    precision: float
    recall: float


def error_rates(*, sure_hits: float, possible_hits: float, made: int, sure: int) -> ErrorRates:
    """Return the rates of Och and Ney 2003 from counts of links, summed over all sentences.

    Args:
        sure_hits: links made that are sure, ``|A ∩ S|``.
        possible_hits: links made that are possible, the sure ones included, ``|A ∩ P|``.
        made: links made, ``|A|``.
        sure: sure gold links, ``|S|``.

    Returns:
        The rates; NaN where their denominator is zero.

    Example:
        >>> error_rates(sure_hits=2, possible_hits=3, made=4, sure=4)
        ErrorRates(error_rate=0.375, precision=0.75, recall=0.5)
    """
    return ErrorRates(
        error_rate=1 - _ratio(sure_hits + possible_hits, made + sure),
        precision=_ratio(possible_hits, made),
        recall=_ratio(sure_hits, sure),
    )


class AlignmentSums(StreamingSums):
    """Streaming sums behind :class:`AlignmentQuality`: constant memory, mergeable with ``+``.

    Attributes:
        hits: gold links that were made; shared ones count in part.
        mass: attention on gold links.
        made: number of links made.
        gold: number of gold links.
        rows: number of rows with a gold link.

    Example:
        >>> words = torch.ones(1, 2, dtype=torch.bool)
        >>> gold = link_mask([{(0, 0), (0, 1)}], 2, 2)
        >>> sums = AlignmentSums().update(torch.eye(2)[None], gold, target_words=words, source_words=words)
        >>> sums.result().error_rate
        0.5
    """

    SUMS = ("hits", "mass", "made", "gold", "rows")

    def __init__(self) -> None:
        self.hits = 0.0
        self.mass = 0.0
        self.made = 0
        self.gold = 0
        self.rows = 0

    def update(
        self,
        attention: Float[Tensor, "batch target source"],
        gold: Bool[Tensor, "batch target source"],
        *,
        target_words: Bool[Tensor, "batch target"],
        source_words: Bool[Tensor, "batch source"],
        null: Float[Tensor, "batch target"] | None = None,
    ) -> "AlignmentSums":
        """Add a batch.

        Args:
            attention: rows of weights; entries outside the words (end marks, padding) are ignored.
            gold: True at gold links, see :func:`link_mask`.
            target_words: True at words of the target, False at end marks and padding.
            source_words: the same of the source.
            null: weight of making no link, for each row: a row makes one only if an entry reaches it.

        Returns:
            These sums.

        Raises:
            BadInput: shapes differ, a gold link is outside the words, or weights are not finite.
        """
        inside = target_words[:, :, None] & source_words[:, None, :]
        if inside.shape != attention.shape or gold.shape != attention.shape:
            raise BadInput(
                f"attention of shape {tuple(attention.shape)}, gold links of {tuple(gold.shape)}, words of "
                f"{tuple(inside.shape)}: give all three as (batch, target, source)"
            )
        if bool((gold & ~inside).any()):
            raise BadInput("a gold link leads outside the words of its sentence pair; are positions 0-based?")
        weights = attention.double().masked_fill(~inside, 0.0)
        if not bool(weights.isfinite().all()):
            raise BadInput("attention between words is not finite: leave such sentences out")
        largest = weights.amax(-1)  # (batch, target)
        makes_link = target_words & source_words.any(1)[:, None] & (largest > 0)  # (batch, target)
        if null is not None:
            makes_link &= largest >= null.double()
        is_largest = weights >= largest[:, :, None] * (1 - _TIE)  # (batch, target, source)
        tied = inside & is_largest & makes_link[:, :, None]  # (batch, target, source)
        share_on_gold = (tied & gold).sum(-1) / tied.sum(-1).clamp(min=1)  # (batch, target)
        self.hits += float(share_on_gold.double().sum())
        self.mass += float((weights * gold).sum())
        self.made += int(makes_link.sum())
        self.gold += int(gold.sum())
        self.rows += int(gold.any(-1).sum())
        return self

    def result(self) -> AlignmentQuality:
        """Return the measures from the sums so far."""
        rates = error_rates(sure_hits=self.hits, possible_hits=self.hits, made=self.made, sure=self.gold)
        return AlignmentQuality(
            error_rate=rates.error_rate,
            precision=rates.precision,
            recall=rates.recall,
            agreement=_ratio(self.hits, self.rows),
            mass_on_gold=_ratio(self.mass, self.rows),
            made=self.made,
            gold=self.gold,
            rows=self.rows,
        )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def link_mask(
    links: Sequence[Links], target_length: int, source_length: int
) -> Bool[Tensor, "batch target source"]:
    """Return where in the attention of a batch its links are.

    Links are (source position, target position), while a row of attention is of a target word: the link
    (0, 1) is the entry in row 1 and column 0.

    Args:
        links: of each sample.
        target_length: of the padded batch, end marks included.
        source_length: the same of the source.

    Returns:
        True at links.

    Raises:
        BadInput: a link is outside the tensor.

    Example:
        >>> link_mask([{(0, 1)}], 2, 2).int().tolist()
        [[[0, 0], [1, 0]]]
    """
    is_linked = torch.zeros(len(links), target_length, source_length, dtype=torch.bool)
    for sample, links_of_sample in enumerate(links):
        for source, target in links_of_sample:
            if not (0 <= source < source_length and 0 <= target < target_length):
                raise BadInput(
                    f"link {source}-{target} of sample {sample} leads outside {source_length} source and "
                    f"{target_length} target words"
                )
            is_linked[sample, target, source] = True
    return is_linked


def gold_links(
    links: Sequence[Links], target_length: int, source_length: int
) -> Bool[Tensor, "batch target source"]:
    """Return :func:`link_mask`, the replacement of this name, of links in the other order.

    Args:
        links: of each sample, as (target position, source position).
        target_length: of the padded batch, end marks included.
        source_length: the same of the source.

    Returns:
        True at links.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     gold_links([{(0, 1)}], 2, 2).int().tolist()
        [[[0, 1], [0, 0]]]
    """
    warnings.warn(
        "gold_links is deprecated: it is link_mask, whose links are (source, target) instead",
        DeprecationWarning,
        stacklevel=2,
    )
    exchanged = [[(source, target) for target, source in links_of_sample] for links_of_sample in links]
    return link_mask(exchanged, target_length, source_length)


def diagonal(
    target_words: Bool[Tensor, "batch target"], source_words: Bool[Tensor, "batch source"]
) -> Float[Tensor, "batch target source"]:
    """Align by lengths alone: row s is on the source word at the same share of its sentence.

    The middle of target word s lies (s + 1/2) / S along the target; the link leads to the source word that
    covers that share of the source, t = floor((s + 1/2) T / S).

    Args:
        target_words: True at words.
        source_words: True at words.

    Returns:
        Attention of 1 on one word a row; zero outside the words.

    Example:
        >>> two, four = torch.ones(1, 2, dtype=torch.bool), torch.ones(1, 4, dtype=torch.bool)
        >>> diagonal(two, four).argmax(-1).tolist()
        [[1, 3]]
    """
    n_targets = target_words.sum(1).clamp(min=1)  # (batch,), S
    n_sources = source_words.sum(1)  # (batch,), T
    steps = torch.arange(target_words.shape[1], device=target_words.device)  # (target,), s
    linked = (2 * steps + 1) * n_sources[:, None] // (2 * n_targets)[:, None]  # (batch, target), t
    linked = linked.clamp(max=source_words.shape[1] - 1)
    attention = torch.zeros(*target_words.shape, source_words.shape[1], device=target_words.device)
    attention.scatter_(2, linked[:, :, None], 1.0)
    is_inside = target_words[:, :, None] & source_words[:, None, :]  # (batch, target, source)
    return attention * is_inside


def words_only(mask: Bool[Tensor, "batch length"]) -> Bool[Tensor, "batch length"]:
    """Return a batch's mask without its end marks, which are the last valid positions.

    Args:
        mask: True at words and end marks, which come first.

    Returns:
        True at words.

    Example:
        >>> words_only(torch.tensor([[True, True, False]])).tolist()
        [[True, False, False]]
    """
    lengths: Int[Tensor, " batch"] = mask.sum(1)
    return torch.arange(mask.shape[1], device=mask.device) < (lengths - 1)[:, None]
