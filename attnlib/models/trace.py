"""The one thing an analysis asks of a model."""

from dataclasses import dataclass, fields

from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Trace:
    """One teacher-forced pass over a batch: what was read, every state, and how the output came about.

    The decoder's token at a step is the one it *reads* there (``target_tokens``); a row of ``attention`` is
    about the token *predicted* there (``target_outputs``). Values at padding are arbitrary: use the masks.
    A model without attention (VED) has ``None`` for ``scores``, ``attention`` and ``context``.
    """

    source_tokens: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    target_tokens: Int[Tensor, "batch target"]
    target_outputs: Int[Tensor, "batch target"]
    target_mask: Bool[Tensor, "batch target"]
    encoder_states: Float[Tensor, "batch source width"]
    decoder_states: Float[Tensor, "batch target width"]
    #: a_st before softmax; ``-inf`` nowhere: padding is masked in ``attention`` alone
    scores: Float[Tensor, "batch target source"] | None
    #: α_st, rows sum to one over the valid source positions and are zero at padding
    attention: Float[Tensor, "batch target source"] | None
    context: Float[Tensor, "batch target width"] | None  #: c_s = Σ_t α_st h^E_t
    logits: Float[Tensor, "batch target words"]

    def to(self, device: str) -> "Trace":
        """The same trace with every tensor on ``device``."""
        moved = {field.name: getattr(self, field.name) for field in fields(self)}
        return Trace(**{name: None if value is None else value.to(device) for name, value in moved.items()})
