"""The lexical probe β: what each source position alone knows of the right word (Snell et al. 2021, eq. 4).

    β[s, t] = softmax(N([h_t ; d_s]))[right word of s],

the probability of the right word if the network attended to source position t alone, under teacher forcing
(the paper's β_{t,l} counts target positions by t and source positions by l). β^uf is this very function of
the network that was trained with uniform attention, β^px that of the proxy
(:mod:`attnlib.models.translator`).

Whatever comes before N's first nonlinearity is linear in [h ; d], hence a sum of a part of the source
position and a part of the target position. Each part is computed once, and only their sums are taken pair by
pair, some pairs at a time::

    batch 16, 20 source and 20 target positions, 8,000 words, float32
    all logits at once          16 × 20 × 20 × 8,000 × 4 bytes = 205 MB, and as much again for the softmax
    here, 512 pairs at a time               2 × 512 × 8,000 × 4 bytes = 33 MB, for any batch and length
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.models.translator import Readout
from attnlib.softmax import log_probability_of

PAIRS_AT_ONCE = 512


@torch.no_grad()
def log_lexical_probe(
    readout: Readout,
    encoder_states: Float[Tensor, "batch source both_widths"],
    decoder_states: Float[Tensor, "batch target width"],
    *,
    outputs: Int[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
    target_mask: Bool[Tensor, "batch target"],
    at_once: int = PAIRS_AT_ONCE,
) -> Float[Tensor, "batch target source"]:
    """Return log β of every pair of valid positions, ``-inf`` at padding.

    The logarithm has β's order, and keeps the digits of small ones. At its peak the memory, besides states,
    their parts in N, the result, and the mask and indices of its pairs (three integers each), is that of at
    most 2 × ``at_once`` × (words + width + 1) numbers: the logits of some pairs and their exponentials,
    whatever batch and lengths are.

    Args:
        readout: the network N of a translation model.
        encoder_states: h, both directions side by side.
        decoder_states: d, after reading the target up to the word before the right one.
        outputs: the right words.
        source_mask: True at valid source positions.
        target_mask: True at valid target positions.
        at_once: number of pairs whose logits are held at a time.

    Returns:
        Nats.

    Raises:
        BadInput: ``at_once`` is below 1.

    Example:
        >>> from attnlib import zoo
        >>> translator = zoo.load("lexicon_translator")
        >>> stream = translator.stream(batch_size=2)
        >>> trace = stream.trace(stream.first())
        >>> log_beta = log_lexical_probe(
        ...     translator.network.readout,
        ...     trace.encoder_states,
        ...     trace.decoder_states,
        ...     outputs=trace.target_outputs,
        ...     source_mask=trace.source_mask,
        ...     target_mask=trace.target_mask,
        ... )
        >>> log_beta.shape == trace.attentions[0].weights[:, 0].shape
        True
    """
    return log_probability_of_pairs(
        readout.from_context(encoder_states),
        readout.from_decoder(decoder_states),
        readout.logits,
        outputs=outputs,
        source_mask=source_mask,
        target_mask=target_mask,
        at_once=at_once,
    )


@torch.no_grad()
def log_probability_of_pairs(
    of_source: Float[Tensor, "batch source width"],
    of_target: Float[Tensor, "batch target width"],
    logits: Callable[[Float[Tensor, "pairs width"]], Float[Tensor, "pairs words"]],
    *,
    outputs: Int[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
    target_mask: Bool[Tensor, "batch target"],
    at_once: int = PAIRS_AT_ONCE,
) -> Float[Tensor, "batch target source"]:
    """Return log softmax(logits(of_source[t] + of_target[s]))[outputs[s]] of any network of that form.

    Args:
        of_source: summand of each source position.
        of_target: summand of each target position.
        logits: maps sums to the logits of all words.
        outputs: the right words.
        source_mask: True at valid source positions.
        target_mask: True at valid target positions.
        at_once: number of pairs whose logits are held at a time.

    Returns:
        Nats, ``-inf`` at padding; memory as in :func:`log_lexical_probe`.

    Raises:
        BadInput: ``at_once`` is below 1.

    Example:
        >>> valid = torch.ones(1, 1, dtype=torch.bool)
        >>> summand = torch.zeros(1, 1, 2)
        >>> log_probability_of_pairs(
        ...     summand, summand, lambda sums: sums, outputs=torch.tensor([[1]]), source_mask=valid,
        ...     target_mask=valid,
        ... ).exp().tolist()
        [[[0.5]]]
    """
    if at_once < 1:
        raise BadInput(f"at_once is {at_once}; it must be at least 1")
    log_probability = of_source.new_full((*outputs.shape, source_mask.shape[1]), -torch.inf)
    valid = target_mask[:, :, None] & source_mask[:, None, :]  # (batch, target, source)
    for pairs in valid.nonzero().split(at_once):  # (pairs, 3)
        sample, target, source = pairs.unbind(1)
        # Sums and logits have no names here, which would keep them while those of the next pairs are made.
        log_probability[sample, target, source] = log_probability_of(
            outputs[sample, target], logits(of_source[sample, source] + of_target[sample, target])
        )
    return log_probability
