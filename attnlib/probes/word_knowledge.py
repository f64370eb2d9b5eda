"""What a lexical probe says of the words of a sentence: knowledge to translate individual words (KTIW).

With β_st the probability of the right word of target position s if the network attended to source position t
alone (:mod:`attnlib.probes.lexical_probe`), and W_s the source positions that hold the word which target word
s translates (several where it stands there twice),

    share on the word    Σ_{t in W_s} β_st / Σ_t β_st
    word accuracy        whether β_st is largest at a t in W_s
    best over mean       log max_t β_st − log mean_t β_st

The first is step 5 of Snell et al. 2021's Figure 1, the alignment that a dictionary makes, with β for the
dictionary. It is |W_s| over the length where β knows nothing and 1 where only the right word tells. What the
decoder state knows by itself, a factor of a whole row, has no part in it as long as probabilities are
small. It is of words, not of places: where a word stands twice both places do. The third needs no links; but
it is never negative, and a network that is sure of wrong words has as much of it as one that is sure of
right ones.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.errors import BadInput


@dataclass(frozen=True)
class WordKnowledge:
    """Of each row, float64, NaN where it has no answer.

    Attributes:
        share, chance: the share on the word, and what even β would have; where the word is known.
        right: 1 or 0, whether the largest β is on the word; shared among ties.
        best_over_mean: in nats; of all rows.
    """

    share: Float[Tensor, "batch target"]
    chance: Float[Tensor, "batch target"]
    right: Float[Tensor, "batch target"]
    best_over_mean: Float[Tensor, "batch target"]


def positions_of_words(
    source: Int[Tensor, "batch source"], links: Bool[Tensor, "batch target source"]
) -> Bool[Tensor, "batch target source"]:
    """W: the positions that hold a word which some linked position of the row holds.

    >>> links = torch.tensor([[[True, False, False]]])
    >>> positions_of_words(torch.tensor([[7, 8, 7]]), links).tolist()
    [[[True, False, True]]]
    """
    same = source[:, :, None] == source[:, None, :]
    return (links[:, :, :, None] & same[:, None]).any(2)


def word_knowledge(
    log_probe: Float[Tensor, "batch target source"],
    words: Bool[Tensor, "batch target source"],
    source_mask: Bool[Tensor, "batch source"],
) -> WordKnowledge:
    """The three measures of every row.

    Args:
        log_probe: log β, ``-inf`` at padding; rows that are padding give NaN.
        words: W, true at the positions of the right source word; a row without any has no share.

    Raises:
        BadInput: shapes that differ, or a word outside the mask.
    """
    if log_probe.shape != words.shape or words.shape[::2] != source_mask.shape:
        raise BadInput(
            f"log β of shape {tuple(log_probe.shape)}, words of {tuple(words.shape)}, mask of "
            f"{tuple(source_mask.shape)}: expected (batch, target, source) twice and (batch, source)"
        )
    if bool((words & ~source_mask[:, None]).any()):
        raise BadInput("a source word stands at padding; are positions 0-based?")
    logs = log_probe.double()
    posterior = logs.softmax(-1)  # a row of -inf, at padding, becomes NaN
    known = words.any(-1)
    lengths = source_mask.sum(-1)[:, None]
    best = logs == logs.amax(-1, keepdim=True)
    undefined = ~known | posterior.isnan().any(-1)
    return WordKnowledge(
        share=(posterior * words).sum(-1).masked_fill(undefined, torch.nan),
        chance=(words.sum(-1) / lengths).double().masked_fill(undefined, torch.nan),
        right=((best & words).sum(-1) / best.sum(-1)).double().masked_fill(undefined, torch.nan),
        best_over_mean=logs.amax(-1) - (logs.logsumexp(-1) - lengths.double().log()),
    )
