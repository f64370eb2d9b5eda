"""What each source position alone knows of the right word, in models with any number of heads and layers."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.adapters.hooks import Outputs, evaluated
from attnlib.adapters.model_pass import ModelPass
from attnlib.adapters.token_batch import TokenBatch
from attnlib.errors import BadInput


def lexical_probe(model: nn.Module, one: ModelPass) -> Float[Tensor, "batch target source"]:
    """β of a Hugging Face encoder–decoder: the probability of the right word where l alone is attended to.

    Snell et al. 2021, equation 4, carried over to several layers and heads: every head of every
    cross-attention sees position l and no other, the encoder and all else is as in the pass. Zero at padding.
    It takes a pass of the decoder for each source position.

    Raises:
        BadInput: a model without an output layer.

    >>> from transformers import T5Config, T5ForConditionalGeneration
    >>> from attnlib.adapters import HuggingFace, TokenBatch
    >>> sizes = dict(vocab_size=9, d_model=4, d_kv=2, d_ff=4, num_layers=1, num_heads=2)
    >>> config = T5Config(**sizes, decoder_start_token_id=0, attn_implementation="eager")
    >>> model = T5ForConditionalGeneration(config)
    >>> tuple(lexical_probe(model, HuggingFace(model).trace(TokenBatch.of_rows([[5, 6, 7]], [[8, 1]]))).shape)
    (1, 2, 3)
    """
    with evaluated(model):
        encoded = model.get_encoder()(
            input_ids=one.source_tokens * one.source_mask,
            attention_mask=one.source_mask.long(),
            return_dict=True,
        )

        def logits(place: int) -> Float[Tensor, "batch target words"]:
            alone = torch.zeros_like(one.source_mask)
            alone[:, place] = True
            found = model(
                encoder_outputs=encoded,
                attention_mask=alone.long(),
                decoder_input_ids=one.target_tokens * one.target_mask,
                decoder_attention_mask=one.target_mask.long(),
                use_cache=False,
            )
            if getattr(found, "logits", None) is None:
                raise BadInput(
                    f"{type(model).__name__} predicts no words: load it with its output layer "
                    "(AutoModelForSeq2SeqLM)"
                )
            return found.logits

        return by_place(one, logits)


def by_place(
    one: ModelPass, logits: Callable[[int], Float[Tensor, "batch target words"]]
) -> Float[Tensor, "batch target source"]:
    """β from the logits of a model that sees one source position; zero at padding, in float32.

    Raises:
        BadInput: a right word that the model has no logit for.
    """
    right = one.target_outputs.masked_fill(~one.target_mask, 0)  # at padding any id may stand
    beta = torch.zeros(*one.target_outputs.shape, one.source_tokens.shape[1], device=one.source_tokens.device)
    for place in range(one.source_tokens.shape[1]):
        probability = logits(place).float().softmax(-1)
        if int(right.max()) >= probability.shape[-1]:
            raise BadInput(
                f"a right word has id {int(right.max())}; the model predicts {probability.shape[-1]} words, "
                "from 0: take the pass and the probe of one model"
            )
        beta[:, :, place] = probability.gather(-1, right[..., None])[..., 0]
    valid = one.target_mask[:, :, None] & one.source_mask[:, None, :]
    return beta.masked_fill(~valid, 0)


def on_one(output: Outputs, place: int | None) -> Outputs:
    """What a module returns, with all attention on one source position; None: on none, not a number."""
    attention = output[-1] if isinstance(output, tuple) else output
    forced = torch.full_like(attention, 0 if place is not None else torch.nan)
    if place is not None:
        forced[..., place] = 1
    return (*output[:-1], forced) if isinstance(output, tuple) else forced


def logits_of(output: object, batch: TokenBatch) -> Float[Tensor, "batch target words"]:
    """What a model returns: logits, a tuple that begins with them, or an object that has them as ``logits``.

    Raises:
        BadInput: nothing of that shape.
    """
    first = output[0] if isinstance(output, tuple) else output
    logits = getattr(first, "logits", first)
    words = int(batch.target[batch.target_mask].max()) + 1
    fits = (
        isinstance(logits, Tensor) and logits.shape[:-1] == batch.target.shape and logits.shape[-1] >= words
    )
    if not fits:
        said = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        expected = f"{tuple(batch.target.shape)} by {words} or more words"
        raise BadInput(f"run returns {said}; expected logits of shape {expected}")
    return logits
