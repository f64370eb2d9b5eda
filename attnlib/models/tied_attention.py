"""Self-attention whose queries and keys are one map of the states, so that its scores are symmetric.

With q_s = k_s / √d, the score a_st = q_s · k_t is a_ts. It is what "shared-QK" is in the Reformer (Kitaev et
al. 2020, section 2), without its norm of the keys. The attention need not be symmetric all the same: a
softmax makes each row sum to one, and no column.
"""

import torch
from torch import nn

from attnlib.errors import BadInput
from attnlib.models.multi_head_attention import MultiHeadAttention
from attnlib.models.transformer import Transformer
from attnlib.models.transformer_config import TransformerConfig


class TiedAttention(MultiHeadAttention):
    """The query map is the key map as well."""

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        del self.key_map

    @property
    def key_map(self) -> nn.Linear:
        return self.query_map


def tie_encoder(network: Transformer) -> Transformer:
    """Every self-attention of the encoder with one map for queries and keys, in place; all else stays.

    Raises:
        BadInput: positions that self-attention itself deals with.

    >>> config = TransformerConfig(source_size=7, target_size=9, width=8, heads=2)
    >>> network = tie_encoder(Transformer(config, torch.Generator().manual_seed(0)))
    >>> query, key = network.projections("encoder_self", layer=1, head=0)
    >>> torch.allclose(query.weight * 2, key.weight)  # the query's has the factor 1/√d, and d is 4
    True
    """
    if network.config.positions in ("relative", "rotary"):
        raise BadInput(
            f"{network.config.positions} positions live in the self-attention that would be tied; take "
            "sinusoidal, learned or none"
        )
    for layer in network.encoder:
        own = layer.self_attention
        with torch.random.fork_rng(devices=[]):  # what is drawn stays that of the network
            tied = TiedAttention(network.config)
        tied.query_map, tied.value_map, tied.output_map = own.query_map, own.value_map, own.output_map
        layer.self_attention = tied
    return network
