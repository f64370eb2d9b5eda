"""What both passes over a corpus have in common."""

from jaxtyping import Bool
from torch import Tensor

from attnlib.analysis.counted import whole_samples
from attnlib.analysis.stream import Losses
from attnlib.streaming import StreamingSums
from attnlib.trace import Trace


class PassSums(StreamingSums):
    """Sums of a pass over a corpus.

    Attributes:
        samples: how many were summed, of which something counts on both sides.
        losses: what the corpus holds beside the samples.
        unchecked: names of attentions whose scores were compared with nothing, in some pass of the model.
        no_probe: why no lexical probe could be taken.
    """

    SUMS = ("samples", "losses", "unchecked", "no_probe")

    def __init__(self) -> None:
        self.samples = 0
        self.losses = Losses()
        self.unchecked: frozenset[str] = frozenset()
        self.no_probe: frozenset[str] = frozenset()

    def _begin(self, model_pass: Trace) -> Bool[Tensor, " batch"] | None:
        """Count the samples of a pass of the model, and return which are whole; None if none is."""
        whole = whole_samples(model_pass)
        if not bool(whole.any()):
            return None
        self.samples += int(whole.sum())
        self.unchecked |= set(model_pass.unchecked)
        return whole
