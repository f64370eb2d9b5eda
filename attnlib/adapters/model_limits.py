"""What a Hugging Face model can be given: sentences no longer than its positions, ids that it embeds."""

from typing import Any

from torch import nn

from attnlib.adapters.token_batch import TokenBatch
from attnlib.errors import BadInput


def require_within_limits(model: Any, batch: TokenBatch) -> None:
    """Neither longer nor of larger ids than the model has rows for.

    Positions that a model computes as it goes, as T5 and M2M100 do, have no end.

    Raises:
        BadInput: the message names the longest sentence or the largest id, and the limit.
    """
    for side, half in (("source", model.get_encoder()), ("target", model.get_decoder())):
        tokens, mask = getattr(batch, side), getattr(batch, f"{side}_mask")
        longest, limit = int(mask.sum(1).max()), _positions(half)
        if limit is not None and longest > limit:
            raise BadInput(
                f"a {side} has {longest} pieces; {type(model).__name__} has positions for {limit}: cut "
                f"sentences, --longest {limit} or text_batches(..., longest={limit})"
            )
        ids = tokens[mask] if side == "source" else tokens[mask].maximum(batch.read[mask])
        words = words_of(model, half)
        if int(ids.max()) >= words:
            raise BadInput(
                f"a {side} holds id {int(ids.max())}; {type(model).__name__} embeds {words}, from 0: use the "
                "tokenizer that the model was trained with"
            )


def words_of(model: Any, half: nn.Module) -> int:
    """Words that a half of a model embeds; the two of a Marian model need not have one vocabulary."""
    return (getattr(half, "embed_tokens", None) or model.get_input_embeddings()).weight.shape[0]


def _positions(half: nn.Module) -> int | None:
    """Rows of a table of positions; None where there is none."""
    table = getattr(half, "embed_positions", None)
    return table.num_embeddings - getattr(table, "offset", 0) if isinstance(table, nn.Embedding) else None
