"""First reading of a corpus: the components of all states that projections read, and average attention."""

from collections.abc import Collection

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.adapters.attended import Attended
from attnlib.adapters.model_pass import ModelPass
from attnlib.analysis.averages import AverageAttention
from attnlib.analysis.stream import Losses
from attnlib.decomposition.growing import GrowingComponents
from attnlib.errors import BadInput

Head = tuple[str, int]  # name of the attention, number of the head


def chosen_heads(attended: Attended, heads: Collection[int] | None) -> list[int]:
    """The heads of an attention that are looked at.

    Raises:
        BadInput: one that it does not have.
    """
    absent = sorted(set(heads or ()) - set(range(attended.heads)))
    if absent:
        raise BadInput(f"heads {absent}: {attended.name} has {attended.heads}, counted from 0")
    return list(range(attended.heads)) if heads is None else sorted(heads)


def counted_attention(
    one: ModelPass, attended: Attended, head: int
) -> tuple[Float[Tensor, "batch target source"], Bool[Tensor, "batch target source"]]:
    """Attention among the positions that count, each row summing to one over them, and where that is.

    Where no position is ignored, this is the model's attention.
    """
    asks, answers = one.sides(attended.kind)
    allowed = attended.allowed(one.counted(asks), one.counted(answers))
    scores = attended.scores[:, head].masked_fill(~allowed, -torch.inf)
    # A row without anything allowed is padding, or sees only what is ignored: it is zero.
    return scores.softmax(-1).masked_fill(~allowed, 0), allowed


def whole_samples(one: ModelPass) -> Bool[Tensor, " batch"]:
    """Samples of which something counts on both sides."""
    return one.counted("source").any(1) & one.counted("target").any(1)


class Fit:
    """Sums of the first reading; mergeable.

    Attributes:
        samples: that were summed; losses: what the corpus holds beside them, as whoever reads it says.
        unchecked: names of attentions whose scores were compared with nothing, in some pass.

    Raises:
        BadInput: no head.
    """

    def __init__(self, heads: Collection[int] | None = None):
        if heads is not None and not heads:
            raise BadInput("heads is empty: name at least one, or give None for all of them")
        self.heads = None if heads is None else tuple(sorted(set(heads)))
        self.components: dict[str, GrowingComponents] = {}
        self.averages: dict[Head, AverageAttention] = {}
        self.samples = 0
        self.losses = Losses()
        self.unchecked: frozenset[str] = frozenset()

    def update(self, one: ModelPass) -> "Fit":
        """Add a pass."""
        whole = whole_samples(one)
        if not bool(whole.any()):
            return self
        self.samples += int(whole.sum())
        self.unchecked |= set(one.unchecked)
        for site, (side, states) in one.sites().items():
            own = self.components.setdefault(site, GrowingComponents(states.shape[-1]))
            own.update(states[whole], one.tokens(side)[whole], one.counted(side)[whole])
        for attended in one.attended:
            asks, answers = (one.counted(side)[whole] for side in one.sides(attended.kind))
            for head in chosen_heads(attended, self.heads):
                attention, _ = counted_attention(one, attended, head)
                own = self.averages.setdefault((attended.name, head), AverageAttention())
                own.update(attention[whole], asks, answers)
        return self

    def merge(self, other: "Fit") -> "Fit":
        """New sums of both.

        Raises:
            BadInput: sums of other heads or of other states.
        """
        if self.samples and other.samples and self.averages.keys() != other.averages.keys():
            different = sorted(self.averages.keys() ^ other.averages.keys())[:5]
            raise BadInput(f"cannot merge fits of different attentions: {different} are in one alone")
        merged = Fit(self.heads)
        merged.samples = self.samples + other.samples
        merged.losses = self.losses + other.losses
        merged.unchecked = self.unchecked | other.unchecked
        merged.components = _merged(self.components, other.components)
        merged.averages = _merged(self.averages, other.averages)
        return merged

    __add__ = merge

    @property
    def bytes(self) -> int:
        """Memory of the tables of components."""
        return sum(own.bytes for own in self.components.values())


def _merged(first: dict, second: dict) -> dict:
    found = dict(first)
    for key, own in second.items():
        found[key] = found[key] + own if key in found else own
    return found
