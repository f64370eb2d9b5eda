"""The sums that both passes over a corpus have in common."""

from jaxtyping import Bool
from torch import Tensor

from attnlib.analysis.counted import whole_samples
from attnlib.analysis.stream import CorpusGaps
from attnlib.streaming import StreamingSums
from attnlib.trace import Trace


class PassSums(StreamingSums):
    """Sums of a pass over a corpus.

    Attributes:
        samples: number of samples summed, those that have a counted position on both sides.
        losses: samples of the corpus that were left out or cut, and unknown pieces.
        unchecked: names of attentions whose scores could not be compared with the model's own attention.
        no_probe: reasons why no lexical probe could be taken.
    """

    SUMS = ("samples", "losses", "unchecked", "no_probe")

    def __init__(self) -> None:
        self.samples = 0
        self.losses = CorpusGaps()
        self.unchecked: frozenset[str] = frozenset()
        self.no_probe: frozenset[str] = frozenset()

    def _begin(self, trace: Trace) -> Bool[Tensor, " batch"] | None:
        """Count the whole samples of a batch, and return which these are; None if there are none."""
        whole = whole_samples(trace)  # (batch,)
        if not bool(whole.any()):
            return None
        self.samples += int(whole.sum())
        self.unchecked |= set(trace.unchecked)
        return whole
