"""Sum the first pass over a corpus: components of all states that projections read, and average attention."""

from collections.abc import Collection
from typing import Any, cast

from jaxtyping import Bool
from torch import Tensor

from attnlib.analysis.counted import chosen_heads, counted_attention
from attnlib.analysis.pass_sums import PassSums
from attnlib.analysis.readings import Readings
from attnlib.decomposition.components import Components, Method
from attnlib.decomposition.typicality import AverageAttention
from attnlib.errors import BadInput
from attnlib.trace import Attention, Trace


class Fit(PassSums):
    """Sums of the first pass.

    Args:
        heads: numbers of the heads to analyse in every attention; all by default.
        method: of the components; ``"means"`` is that of the papers, ``"least_squares"`` the exact fit.

    Attributes:
        components: the sums of the states that projections read, by name of the states.
        averages: the average attention of the chosen heads, by name of the attention.
        readings: which batches were read, where sums are kept: all of the corpus, the judged ones too.

    Raises:
        BadInput: ``heads`` is empty.
    """

    SUMS = (*PassSums.SUMS, "components", "averages", "readings")

    def __init__(self, heads: Collection[int] | None = None, *, method: Method):
        super().__init__()
        if heads is not None and not heads:
            raise BadInput("heads is empty: name at least one, or give None for all of them")
        self.heads = None if heads is None else tuple(sorted(set(heads)))
        self.method: Method = method
        self.components: dict[str, Components] = {}
        self.averages: dict[str, AverageAttention] = {}
        self.readings = Readings()

    @property
    def leaves_out_unseen(self) -> bool:
        """True if shares leave out words and positions that were not fitted on, as with least squares.

        With means they count: what is unknown of a state is its residual.
        """
        return self.method != "means"

    def settings(self) -> dict[str, Any]:
        """Return the chosen heads and the method; sums of others cannot be merged."""
        return {"heads": self.heads, "method": self.method}

    def empty_entry(self, table: str, state: dict) -> Components | AverageAttention:
        """Return the empty components or averages that a state is loaded into."""
        if table == "components":
            return self._no_components(width=state["token_sums"].shape[1])
        return AverageAttention(heads=len(state["sums"]))

    def update(self, trace: Trace) -> "Fit":
        """Add the trace of a batch, and return these sums.

        Raises:
            BadInput: a trace that cannot be validated, or scores that have no terms.
        """
        trace = trace.validated()
        whole = self._begin(trace)  # (batch,)
        if whole is None:
            return self
        for site, (side, states) in trace.sites().items():
            if site not in self.components:
                self.components[site] = self._no_components(width=states.shape[-1])
            tokens = trace.tokens(side)  # (batch, length)
            mask = trace.counted(side)  # (batch, length)
            self.components[site].update(states[whole], tokens[whole], mask[whole])
        for attention in trace.attentions:
            self._add_average(trace, attention, whole)
        return self

    def _add_average(self, trace: Trace, attention: Attention, whole: Bool[Tensor, " batch"]) -> None:
        """Add the weights of one attention to the averages of their sizes."""
        heads = chosen_heads(attention, self.heads)
        if attention.name not in self.averages:
            self.averages[attention.name] = AverageAttention(len(heads))
        weights, _ = counted_attention(trace, attention, heads)  # (heads, batch, target, source)
        query_side, key_side = trace.sides(attention.kind)
        queries = trace.counted(query_side)  # (batch, target)
        keys = trace.counted(key_side)  # (batch, source)
        self.averages[attention.name].update(weights[:, whole], queries[whole], keys[whole])

    def _no_components(self, width: int) -> Components:
        """Return empty components, whose constants converge as the corpus grows."""
        return Components(width, self.method, constants="by_count", variance=False)

    def merge(self, other: "Fit") -> "Fit":
        """Return new sums of both parts of a corpus.

        Raises:
            BadInput: the two have different heads, method or attentions.
        """
        different = sorted(self.averages.keys() ^ other.averages.keys())[:5]
        if self.samples and other.samples and different:
            raise BadInput(f"cannot merge fits of different attentions: {different} are in one alone")
        return super().merge(cast(Any, other))  # Self, which beartype cannot check in tests

    def state_dict(self) -> dict[str, Any]:
        """Return all that was summed, the chosen heads and the method."""
        heads = None if self.heads is None else list(self.heads)
        return super().state_dict() | {"heads": heads, "method": self.method}

    def load_state_dict(self, state: dict[str, Any]) -> "Fit":
        """Take over what :meth:`state_dict` returned, heads and method too."""
        heads = state["heads"]
        self.heads = None if heads is None else tuple(heads)
        self.method = state["method"]
        super().load_state_dict(state)
        return self
