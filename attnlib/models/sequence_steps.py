"""What passes between the halves of a sequence-to-sequence network, step by step, and its trace."""

from dataclasses import dataclass, fields, replace

from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.models.trace import Trace


@dataclass(frozen=True)
class SequenceTrace(Trace):
    """A trace that also has what the score compares with the encoder states.

    Attributes:
        queries: the decoder states in Luong's decoder, those of the step before in Bahdanau's, whose first is
            the state that the decoder starts in. None without attention.
    """

    queries: Float[Tensor, "batch target width"] | None = None

    def to(self, device: str) -> "SequenceTrace":
        """The same trace with every tensor on ``device``."""
        moved = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: value.to(device) for name, value in moved.items() if value is not None})


@dataclass(frozen=True)
class Source:
    """A source as the decoder sees it; rows are samples."""

    states: Float[Tensor, "batch source encoder_width"]
    mask: Bool[Tensor, "batch source"]
    projected: Float[Tensor, "batch source width"] | None  # what the score makes of the states
    summary: Float[Tensor, "batch width"] | None  # Cho's c


@dataclass(frozen=True)
class Carried:
    """What a decoder carries from one step to the next; rows are samples."""

    hidden: Float[Tensor, "batch layers width"]
    memory: Float[Tensor, "batch layers width"] | None  # of an LSTM
    attentional: Float[Tensor, "batch width"] | None  # m_{i-1}, with input feeding


@dataclass(frozen=True)
class Reading:
    """Source and decoder between two words."""

    source: Source
    carried: Carried


@dataclass(frozen=True)
class Steps:
    """Some steps of the decoder."""

    states: Float[Tensor, "batch steps width"]
    queries: Float[Tensor, "batch steps width"] | None
    scores: Float[Tensor, "batch steps source"] | None
    attention: Float[Tensor, "batch steps source"] | None
    context: Float[Tensor, "batch steps encoder_width"] | None
    features: Float[Tensor, "batch steps features"]  # what the output layer reads
