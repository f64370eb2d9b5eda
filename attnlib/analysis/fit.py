"""First pass over a corpus: the components of all states that projections read, and average attention."""

from collections.abc import Collection
from typing import Any, cast

from attnlib.analysis.counted import chosen_heads, counted_attention
from attnlib.analysis.pass_sums import PassSums
from attnlib.decomposition.components import Components, Method
from attnlib.decomposition.typicality import AverageAttention
from attnlib.errors import BadInput
from attnlib.trace import Trace

Head = tuple[str, int]  # name of the attention, number of the head


def head_of(key: str) -> Head:
    """Return the head that a key such as ``"cross.0/3"`` names."""
    attention, _, head = key.rpartition("/")
    return attention, int(head)


class Fit(PassSums):
    """Sums of the first pass.

    Args:
        heads: those of every attention that are looked at; all by default.
        method: of the components; ``"means"`` is that of the papers, ``"least_squares"`` the exact fit.

    Attributes:
        components: by name of the states.
        averages: attention of the chosen heads, by name of the attention.

    Raises:
        BadInput: no head.
    """

    SUMS = (*PassSums.SUMS, "components", "averages")

    def __init__(self, heads: Collection[int] | None = None, method: Method = "means"):
        super().__init__()
        if heads is not None and not heads:
            raise BadInput("heads is empty: name at least one, or give None for all of them")
        self.heads = None if heads is None else tuple(sorted(set(heads)))
        self.method: Method = method
        self.components: dict[str, Components] = {}
        self.averages: dict[str, AverageAttention] = {}

    def settings(self) -> dict[str, Any]:
        """Return the chosen heads and the method; sums of others cannot be merged."""
        return {"heads": self.heads, "method": self.method}

    def empty_entry(self, table: str, state: dict) -> Components | AverageAttention:
        """Return the empty components or averages that a state is loaded into."""
        if table == "components":
            return self._no_components(width=state["token_sums"].shape[1])
        return AverageAttention(heads=len(state["sums"]))

    def update(self, model_pass: Trace) -> "Fit":
        """Add a pass of the model, and return these sums.

        Raises:
            BadInput: a trace that cannot be validated, or scores that have no terms.
        """
        model_pass = model_pass.validated()
        whole = self._begin(model_pass)  # (batch,)
        if whole is None:
            return self
        for site, (side, states) in model_pass.sites().items():
            if site not in self.components:
                self.components[site] = self._no_components(width=states.shape[-1])
            tokens, mask = model_pass.tokens(side), model_pass.counted(side)
            self.components[site].update(states[whole], tokens[whole], mask[whole])
        for attended in model_pass.attentions:
            heads = chosen_heads(attended, self.heads)
            if attended.name not in self.averages:
                self.averages[attended.name] = AverageAttention(len(heads))
            attention, _ = counted_attention(model_pass, attended, heads)  # (heads, batch, target, source)
            query_side, key_side = model_pass.sides(attended.kind)
            queries, keys = model_pass.counted(query_side), model_pass.counted(key_side)
            self.averages[attended.name].update(attention[:, whole], queries[whole], keys[whole])
        return self

    def _no_components(self, width: int) -> Components:
        """Return components of nothing yet, whose constants converge as the corpus grows."""
        return Components(width, self.method, constants="by_count", variance=False)

    def merge(self, other: "Fit") -> "Fit":
        """Return new sums of both parts.

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
