"""Trace the networks of :mod:`attnlib.models` for an analysis: checked, and without gradients.

``network(batch)`` returns a trace by itself. The functions of this module add what an analysis needs: a
choice of kinds of attention, and the checks of :meth:`~attnlib.trace.Trace.validated`.
"""

from collections.abc import Collection
from dataclasses import replace

import torch

from attnlib.errors import BadInput
from attnlib.models.corpus import Batch
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.sequence_to_sequence import SequenceToSequence
from attnlib.models.transformer import Transformer
from attnlib.models.translator import BilinearTranslator
from attnlib.trace import KINDS, AttentionKind, Trace

Recurrent = EncoderDecoder | SequenceToSequence | BilinearTranslator


@torch.no_grad()
def encoder_decoder_pass(network: Recurrent, batch: Batch) -> Trace:
    """Run a recurrent network on a batch and return the validated trace of its one cross-attention.

    Args:
        network: with attention, in evaluation mode.
        batch: sentence pairs.

    Returns:
        The trace, without gradients.

    Raises:
        BadInput: the network has no attention, as VED; its scores are not products of two states, or its
            attention is not the softmax of its scores.

    Example:
        >>> from attnlib.models.config import ModelConfig
        >>> from attnlib.models.corpus import Corpus, collate
        >>> config = ModelConfig("AO", source_size=9, target_size=9, width=4)
        >>> network = EncoderDecoder(config, torch.Generator().manual_seed(0)).eval()
        >>> trace = encoder_decoder_pass(network, collate(Corpus.from_ids([[4, 5]], [[6]]), [0]))
        >>> [attention.name for attention in trace.attentions]
        ['cross.0']
    """
    trace = network(batch)
    if not trace.attentions:
        raise BadInput("a network without attention has no pass to analyse; look at its states instead")
    if not trace.attentions[0].has_maps:
        scoring = getattr(network.config, "scoring", network.config)
        raise BadInput(f"scores are {scoring!r}; only products of a query and a key have nine terms")
    return trace.validated()


@torch.no_grad()
def transformer_pass(network: Transformer, batch: Batch, kinds: Collection[AttentionKind] = KINDS) -> Trace:
    """Run a Transformer on a batch and return the validated trace of all layers and heads of some kinds.

    Args:
        network: in evaluation mode.
        batch: sentence pairs.
        kinds: of attention; their order is that of the trace.

    Returns:
        The trace, without gradients.

    Raises:
        BadInput: an attention is not the softmax of its scores.

    Example:
        >>> from attnlib.models.transformer import TransformerConfig
        >>> from attnlib.models.corpus import Corpus, collate
        >>> config = TransformerConfig(source_size=9, target_size=9, width=4, heads=2, layers=1, hidden=4)
        >>> network = Transformer(config, torch.Generator().manual_seed(0)).eval()
        >>> trace = transformer_pass(network, collate(Corpus.from_ids([[4, 5]], [[6]]), [0]))
        >>> [attention.name for attention in trace.attentions]
        ['cross.0', 'encoder_self.0', 'decoder_self.0']
    """
    trace = network(batch)
    attentions = []
    for kind in kinds:
        attentions += trace.layers(kind)
    return replace(trace, attentions=tuple(attentions)).validated()
