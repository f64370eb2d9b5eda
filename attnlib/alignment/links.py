"""Links between words from cross-attention: of every head, of the mean over heads, of either decoder step.

A target word is linked with the source word that it attends to most, special pieces left aside. The choice
``shift`` says which decoder step is the word's:

``"write"``
    the step that predicts the word. Its attention is what the model looked at *before* it knew the word. So
    every row of attention is read in this library, in its reports and in the book, and it is the default: the
    same row means the same thing everywhere.

``"read"``
    the step after that, at which the decoder reads the word. Chen et al. 2020 ("Accurate word alignment
    induction from neural machine translation", *Shift-Att*) find lower error rates there in Transformers, in
    lower layers. A word at the end of a target that was cut off has no such step, and no link.

In Transformers the mean over the heads of the penultimate layer is a usual choice (Garg et al. 2019, "Jointly
learning to align and translate with Transformer models"). That a model's attention need not be an alignment
is said there, too, and by Zenkel et al. 2019 ("Adding interpretable attention to neural translation models
improves word alignment").
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.alignment.words import Words, join_attention
from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput, check_known
from attnlib.probes.alignment_error import Link
from attnlib.probes.ibm_model_1 import NO_LINK
from attnlib.trace import Trace

MEAN = "mean"
Shift = Literal["write", "read"]
Number = int | Literal["mean"]


class HeadChoice(NamedTuple):
    """One head of one layer, or a mean of several: (2, "mean") is that over the heads of layer 2.

    Attributes:
        layer: number of a layer, from 0; "mean" for the mean over all heads of all layers.
        head: number of a head, from 0; "mean" for the mean over the heads of the layer.

    Example:
        >>> str(HeadChoice(2, "mean")), str(HeadChoice("mean", "mean")), str(HeadChoice(0, 1))
        ('mean over the heads of layer 2', 'mean over all heads', 'layer 0, head 1')
    """

    layer: Number
    head: Number

    def __str__(self) -> str:
        if self.layer == MEAN:
            return "mean over all heads"
        if self.head == MEAN:
            return f"mean over the heads of layer {self.layer}"
        return f"layer {self.layer}, head {self.head}"


def choices_of(
    heads: Mapping[int, int], layer: Number | None = None, head: Number | None = None
) -> tuple[HeadChoice, ...]:
    """Return the heads and means that links can be taken of.

    Args:
        heads: how many heads each layer has.
        layer: number of a layer, or "mean", over all layers; None: any layer.
        head: number of a head, or "mean", over the heads of a layer; None: any head, and no mean.

    Returns:
        The choices, by layer and head.

    Raises:
        BadInput: a layer or a head that is not there; one head, of the mean over layers.

    Example:
        >>> choices_of({0: 2, 1: 2}, head="mean")
        (HeadChoice(layer=0, head='mean'), HeadChoice(layer=1, head='mean'))
    """
    if layer == MEAN:
        if head not in (None, MEAN):
            raise BadInput(f"head {head} of the mean over layers: heads of different layers are not the same")
        return (HeadChoice(MEAN, MEAN),)
    layers = [number for number in heads if layer in (None, number)]
    if not layers:
        raise BadInput(f"layer is {layer!r}; there are {_named(heads)}, or 'mean'")
    if head == MEAN:
        return tuple(HeadChoice(number, MEAN) for number in layers)
    choices = []
    for number in layers:
        numbers_of_heads = [index for index in range(heads[number]) if head in (None, index)]
        choices += [HeadChoice(number, index) for index in numbers_of_heads]
    if not choices:
        raise BadInput(
            f"head is {head!r}; a layer has at most {max(heads.values())}, counted from 0, or 'mean'"
        )
    return tuple(choices)


def _named(numbers: Mapping[int, int]) -> str:
    return ", ".join(map(str, numbers))


def all_choices(heads: Mapping[int, int]) -> tuple[HeadChoice, ...]:
    """Return every head, the mean over the heads of every layer, and the mean over all heads.

    Args:
        heads: how many heads each layer has.

    Returns:
        The choices, in this order.

    Example:
        >>> [str(choice) for choice in all_choices({0: 1})]
        ['layer 0, head 0', 'mean over the heads of layer 0', 'mean over all heads']
    """
    return choices_of(heads) + choices_of(heads, head=MEAN) + choices_of(heads, layer=MEAN)


def cross_attention(trace: Trace) -> dict[int, Float[Tensor, "batch heads target source"]]:
    """Return the cross-attention of a pass by layer, zero at padding.

    Args:
        trace: of a model with cross-attention.

    Returns:
        The weights of each layer, by its number.

    Raises:
        BadInput: a pass without cross-attention.

    Example:
        >>> from attnlib import zoo
        >>> stream = zoo.load("one_to_one_AO").stream(batch_size=2)
        >>> weights = cross_attention(stream.trace(stream.first()))
        >>> {layer: of_layer.shape[:2] for layer, of_layer in weights.items()}
        {0: torch.Size([2, 1])}
    """
    by_layer = {}
    for attention in trace.layers("cross"):
        heads = [trace.softmax(attention, head) for head in range(attention.heads)]
        by_layer[attention.layer] = torch.stack(heads, dim=1)
    if not by_layer:
        raise BadInput("there is no cross-attention here, and so nothing that links source and target words")
    return by_layer


def shifted_rows(
    weights: Float[Tensor, "*maps target source"], shift: Shift
) -> Float[Tensor, "*maps target source"]:
    """Return for each target piece the attention of the step that belongs to it.

    Args:
        weights: rows are decoder steps; row s predicts piece s, and reads piece s - 1.
        shift: "write", the step that predicts the piece, or "read", the step that reads it.

    Returns:
        With "read" the last row is NaN: no step reads the last piece.

    Raises:
        UnknownName: another shift.

    Example:
        >>> shifted_rows(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), "read").tolist()
        [[0.20000000298023224, 0.800000011920929], [nan, nan]]
    """
    check_known("shift", shift, get_args(Shift))
    if shift == "write":
        return weights
    after_the_end = torch.full_like(weights[..., :1, :], torch.nan)
    return torch.cat([weights[..., 1:, :], after_the_end], dim=-2)


@dataclass(frozen=True, eq=False, repr=False)
class BestSources(ShowsShapes):
    """The source word that each target word attends to most, for each of some choices of heads.

    Attributes:
        source: number of the source word; :data:`~attnlib.probes.ibm_model_1.NO_LINK` for none.
        weight: the attention on it, NaN for none.

    Example:
        >>> best = BestSources(np.array([[1, NO_LINK]]), np.array([[0.75, np.nan]]))
        >>> best.links(0), best.weights(0)
        ([(1, 0)], [0.75])
    """

    source: Int[np.ndarray, "choices target_words"]
    weight: Float[np.ndarray, "choices target_words"]

    def links(self, choice: int) -> list[Link]:
        """Return the links of a choice.

        Args:
            choice: its number among the choices.

        Returns:
            Links (source word, target word), in the order of target words.
        """
        pairs = enumerate(self.source[choice].tolist())
        return [(source, target) for target, source in pairs if source != NO_LINK]

    def weights(self, choice: int) -> list[float]:
        """Return the attention of the links of a choice.

        Args:
            choice: its number among the choices.

        Returns:
            Weights, in the order of :meth:`links`.
        """
        linked = self.source[choice] != NO_LINK
        return self.weight[choice][linked].tolist()


@dataclass(frozen=True, eq=False)
class LinkedPair:
    """The links of a sentence pair, by each of some choices of heads.

    Attributes:
        number: of its line, from 0.
        source: words.
        target: words.
        best: the source word of each target word.

    Example:
        >>> best = BestSources(np.array([[0]]), np.array([[0.75]]))
        >>> LinkedPair(0, ("Haus",), ("house",), best=best).best.links(0)
        [(0, 0)]
    """

    number: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    _: KW_ONLY
    best: BestSources


def best_sources(
    weights: Mapping[int, Float[Tensor, "heads target source"]],
    target_words: Words,
    source_words: Words,
    *,
    choices: Sequence[HeadChoice],
    shift: Shift = "write",
) -> BestSources:
    """Return the source word that each target word of a sentence pair attends to most.

    Attention is joined to words first, see :func:`~attnlib.alignment.words.join_attention`, and the mean over
    heads is taken before that, over attention. The first of several equal source words is taken.

    Args:
        weights: attention of the sentence pair by layer, without padding.
        target_words: of the pieces that are predicted.
        source_words: of the pieces that the encoder reads.
        choices: heads, and means over heads.
        shift: which decoder step is that of a target word.

    Returns:
        Source words and weights, by choice and target word.

    Example:
        >>> weights = {0: torch.tensor([[[0.75, 0.25], [0.5, 0.5]]])}  # one head of layer 0
        >>> words = Words(("a", "b"), (0, 1))
        >>> best_sources(weights, words, words, choices=[HeadChoice(0, 0)]).source.tolist()
        [[0, 0]]
    """
    by_choice = torch.stack([_weights_of(choice, weights) for choice in choices])  # (choices, target, source)
    rows = shifted_rows(by_choice.to(torch.promote_types(by_choice.dtype, torch.float32)), shift)
    joined = join_attention(rows, target_words, source_words)  # (choices, target_words, source_words)
    n_choices, n_target, n_source = joined.shape
    if not n_source:
        empty = np.full((n_choices, n_target), NO_LINK)
        return BestSources(empty, np.full(empty.shape, np.nan, dtype=np.float32))
    known = joined.nan_to_num(nan=-1.0).cpu()  # attention is never below 0
    best_weight, best_source = known.max(-1)  # (choices, target_words)
    is_linked = best_weight > 0
    source = torch.where(is_linked, best_source, NO_LINK).to(torch.int32).numpy()
    weight = torch.where(is_linked, best_weight, torch.nan).float().numpy()
    return BestSources(source, weight)


def _weights_of(choice: HeadChoice, weights: Mapping[int, Tensor]) -> Float[Tensor, "target source"]:
    if choice.layer == MEAN:
        return torch.cat([heads for heads in weights.values()]).mean(0)
    of_layer = weights[choice.layer]
    return of_layer.mean(0) if choice.head == MEAN else of_layer[choice.head]
