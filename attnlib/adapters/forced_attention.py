"""What each source position alone knows of the right word, in a Hugging Face encoder–decoder."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.adapters.hooks import evaluated
from attnlib.adapters.model_pass import ModelPass
from attnlib.errors import BadInput


def lexical_probe(model: nn.Module, one: ModelPass) -> Float[Tensor, "batch target source"]:
    """β of every pair of positions: the probability of the right word where l alone is attended to.

    Snell et al. 2021, equation 4, carried over to several layers and heads: every head of every
    cross-attention sees position l and no other, the encoder and all else is as in the pass. Zero at padding.
    It takes a pass of the decoder for each source position.

    Raises:
        BadInput: a model without an output layer.
    """
    beta = torch.zeros(*one.target_outputs.shape, one.source_tokens.shape[1], device=one.source_tokens.device)
    with evaluated(model):
        encoded = model.get_encoder()(
            input_ids=one.source_tokens, attention_mask=one.source_mask.long(), return_dict=True
        )
        for place in range(one.source_tokens.shape[1]):
            alone = torch.zeros_like(one.source_mask)
            alone[:, place] = True
            found = model(
                encoder_outputs=encoded,
                attention_mask=alone.long(),
                decoder_input_ids=one.target_tokens,
                decoder_attention_mask=one.target_mask.long(),
                use_cache=False,
            )
            if getattr(found, "logits", None) is None:
                raise BadInput(
                    f"{type(model).__name__} predicts no words: load it with its output layer "
                    "(AutoModelForSeq2SeqLM)"
                )
            probability = found.logits.float().softmax(-1)
            beta[:, :, place] = probability.gather(-1, one.target_outputs[..., None])[..., 0]
    return beta * (one.target_mask[:, :, None] & one.source_mask[:, None, :])
