"""Second pass over a corpus: the terms of every head's scores, from components of the first pass."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.adapters.attended import Attended
from attnlib.adapters.model_pass import ModelPass
from attnlib.analysis.fit import Fit, Head, Sums, chosen_heads, counted_attention, grouped, head_of
from attnlib.decomposition.components import PART_NAMES, Parts
from attnlib.decomposition.substitution import centred, largest, masked_softmax, total_variation
from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, chance_agreement

NINE = tuple(f"{decoder}·{encoder}" for decoder in PART_NAMES for encoder in PART_NAMES)
POSITION_BIAS = "position bias"
NO_SIGNAL = 1e-12  # below this share of the terms' own squares, a total is rounding


class Judgement(Sums):
    """Sums of the second pass, by the components of a fit.

    ``seen`` counts, of each of the states, ``valid`` positions, and those with ``unseen_words`` and
    ``unseen_places``, which the fit never saw.
    """

    TABLES = ("heads", "seen")

    def __init__(self, fit: Fit):
        super().__init__()
        self.fit = fit
        self.heads: dict[Head, HeadSums] = {}
        self.seen: dict[str, Counter] = defaultdict(Counter)
        self.unchecked = fit.unchecked  # attentions that were unchecked in the first pass are unchecked

    def update(
        self, one: ModelPass, probe: Float[Tensor, "batch target source"] | None = None
    ) -> "Judgement":
        """Add a pass; ``probe`` is β, which its cross-attentions are compared with."""
        whole = self._begin(one)
        if whole is None:
            return self
        parts = {site: self._split(site, *own, one, whole) for site, own in one.sites().items()}
        for attended in one.attended:
            for head in chosen_heads(attended, self.fit.heads):
                query, key = parts[attended.query_site], parts[attended.key_site]
                terms = _terms(attended, head, query, key, whole)
                self._add(one, attended, head, whole, terms)
                if probe is not None and attended.kind == "cross":
                    self._add_agreement(one, attended, head, probe)
        return self

    def _split(self, site: str, side: str, states: Tensor, one: ModelPass, whole: Tensor) -> Parts:
        if site not in self.fit.components:
            known = ", ".join(self.fit.components) or "none"
            raise BadInput(f"no components of {site}; the fit has those of {known}")
        given = states[whole], one.tokens(side)[whole], one.counted(side)[whole]
        parts = self.fit.components[site].split(*given)
        unseen = {"unseen_words": parts.unseen_tokens, "unseen_places": parts.unseen_positions}
        self.seen[site].update(valid=parts.valid, **unseen)
        return parts

    def _add(
        self,
        one: ModelPass,
        attended: Attended,
        head: int,
        whole: Bool[Tensor, " batch"],
        terms: Float[Tensor, "terms samples target source"],
    ) -> None:
        names = NINE if attended.position_bias is None else (*NINE, POSITION_BIAS)
        own = self.heads.setdefault((attended.name, head), HeadSums(names))
        attention, allowed = counted_attention(one, attended, head)
        own.terms.update(terms, allowed[whole])
        query_side, key_side = one.sides(attended.kind)
        queries, keys = one.counted(query_side)[whole], one.counted(key_side)[whole]
        averages = self.fit.averages[attended.name, head]
        typical = averages.typicality(attention[whole], queries, keys)
        covered = typical[~typical.isnan()]
        own.totals.update(typical=float(covered.sum()), covered=len(covered), samples=len(typical))
        own.totals.update(beyond=int(averages.beyond(queries, keys).sum()), rows=int(queries.sum()))
        ignored = one.mask(key_side) & ~one.counted(key_side)
        if bool(ignored.any()):  # else nothing is there, and no attention need be made again
            there = (one.softmax(attended, head) * ignored[:, None, :]).sum(-1)[whole][queries]
            own.totals.update(on_ignored=float(there.sum()))

    def _add_agreement(self, one: ModelPass, attended: Attended, head: int, probe: Tensor) -> None:
        rows = one.counted("target") & one.counted("source").any(1)[:, None]
        seen = one.counted("source")[:, None, :].expand(probe.shape)[rows]
        attention, _ = counted_attention(one, attended, head)
        agrees = agreement(attention[rows], probe[rows], seen)
        chance = chance_agreement(probe[rows], seen)
        own = self.heads[attended.name, head].totals
        own.update(agrees=float(agrees.sum()), by_chance=float(chance.sum()), probed=len(agrees))

    def empty(self) -> "Judgement":
        return Judgement(self.fit)

    def tensors(self) -> dict[str, Tensor]:
        return {
            f"heads/{attention}/{head}/{name}": each
            for (attention, head), own in self.heads.items()
            for name, each in own.terms.sums.items()
        }

    def facts(self) -> dict:
        heads = {
            f"{attention}/{head}": {"terms": own.terms.terms, "totals": own.totals}
            for (attention, head), own in self.heads.items()
        }
        return super().facts() | {"heads": heads, "seen": self.seen}

    def restore(self, tensors: dict[str, Tensor], facts: dict) -> "Judgement":
        self.seen = defaultdict(Counter, {site: Counter(own) for site, own in facts["seen"].items()})
        sums = grouped(tensors, "heads")
        for key, own in facts["heads"].items():
            head = self.heads[head_of(key)] = HeadSums(tuple(own["terms"]))
            head.totals, head.terms.sums = Counter(own["totals"]), sums[key]
        return super().restore(tensors, facts)


def _terms(
    attended: Attended, head: int, query: Parts, key: Parts, whole: Bool[Tensor, " batch"]
) -> Float[Tensor, "terms samples target source"]:
    nine = attended.terms(head, query, key).flatten(0, 1)
    if attended.position_bias is None:
        return nine
    bias = attended.position_bias[:, head]
    own = bias[whole] if len(bias) > 1 else bias
    return torch.cat([nine, own.expand(nine.shape[1:])[None]])


class HeadSums:
    """What is summed of one head: :class:`TermSums`, and ``totals``.

    Over samples: ``typical``, their typicality where an average covers them, how many are ``covered``, how
    many ``beyond`` the lengths that averages are kept of, how many ``samples``. Over rows: the model's
    attention ``on_ignored`` positions, how many ``rows``. Over rows that were ``probed``: how often the head
    ``agrees`` with the lexical probe, and ``by_chance``.
    """

    def __init__(self, terms: tuple[str, ...]):
        self.terms = TermSums(terms)
        self.totals: Counter = Counter()

    def __add__(self, other: "HeadSums") -> "HeadSums":
        merged = HeadSums(self.terms.terms)
        merged.terms = self.terms + other.terms
        merged.totals = self.totals + other.totals
        return merged

    def mean(self, total: str, count: str) -> float:
        """One of the totals over another; NaN where there is nothing to divide by."""
        return self.totals[total] / self.totals[count] if self.totals[count] else math.nan


# -- shares of terms, and attention rebuilt from some of them --


@dataclass(frozen=True)
class TermShares:
    """Of one head; NaN where undefined.

    Attributes:
        mean_absolute: mean size of a term over the sum of such means, each term centred over its row.
        covariance: cov(term, score) / var(score); they sum to one.
        similarity, agreement: of attention rebuilt from a subset with the full one: 1 − total variation, and
            the share of rows whose largest entry is at the same place.
        spread: standard deviation of the scores along a row: how much the softmax has to work with.
        entries, rows, rows_left_out: pairs and rows that went in, and rows with one position.
    """

    mean_absolute: dict[str, float]
    covariance: dict[str, float]
    similarity: dict[str, float]
    agreement: dict[str, float]
    spread: float
    entries: int
    rows: int
    rows_left_out: int


class TermSums:
    """Streaming sums of one head's terms: constant memory, mergeable.

    The definitions are those of :mod:`attnlib.decomposition.shares` and
    :mod:`attnlib.decomposition.substitution`, for any number of named terms (a position bias beside the nine)
    and rows that see different positions (causal self-attention).
    """

    def __init__(self, terms: tuple[str, ...]):
        self.terms = terms
        self.subsets = subsets(terms)
        size = len(terms)
        self.sums: dict[str, Tensor] = {
            "absolute": torch.zeros(size, dtype=torch.float64),
            "products": torch.zeros(size, size, dtype=torch.float64),
            "similarity": torch.zeros(len(self.subsets), dtype=torch.float64),
            "agreement": torch.zeros(len(self.subsets), dtype=torch.float64),
            "counts": torch.zeros(3, dtype=torch.int64),  # entries, rows, rows left out
        }

    def update(
        self, terms: Float[Tensor, "terms batch target source"], allowed: Bool[Tensor, "batch target source"]
    ) -> "TermSums":
        """Add a batch; ``allowed`` is what each query may see, and a row without any is padding."""
        if allowed.dim() != 3 or terms.shape != (len(self.terms), *allowed.shape):
            raise BadInput(
                f"terms of shape {tuple(terms.shape)} with allowed of {tuple(allowed.shape)}; expected "
                f"({len(self.terms)}, batch, target, source) and the last three again"
            )
        visible = allowed.sum(-1)
        keep = visible >= 2
        valid = allowed[keep]
        rows = centred(terms[:, keep].double().masked_fill(~valid, 0.0), valid)
        self.sums["absolute"] += rows.abs().sum((1, 2)).cpu()
        flat = rows.flatten(1)
        self.sums["products"] += (flat @ flat.T).cpu()
        self.sums["counts"] += torch.tensor([int(valid.sum()), len(valid), int((visible == 1).sum())])
        self._rebuild(rows, valid, terms.dtype)
        return self

    def _rebuild(self, rows: Tensor, valid: Tensor, dtype: torch.dtype) -> None:
        full = rows.sum(0)
        attention = masked_softmax(full, valid)
        # A word that is twice in the source is tied but for rounding: that much slack makes it a tie.
        slack = 16 * torch.finfo(dtype).eps * rows.abs().amax((0, 2))[:, None]
        best = largest(full, valid, slack)
        for index, names in enumerate(self.subsets.values()):
            some = rows[[self.terms.index(name) for name in self.terms if name in names]].sum(0)
            similar = 1 - total_variation(masked_softmax(some, valid), attention)
            own = largest(some, valid, slack)
            self.sums["similarity"][index] += float(similar.sum())
            agree = (own & best).sum(-1) / own.sum(-1)
            self.sums["agreement"][index] += float(agree.sum(dtype=torch.float64))

    def __add__(self, other: "TermSums") -> "TermSums":
        if self.terms != other.terms:
            raise BadInput(f"cannot merge sums of {self.terms} with those of {other.terms}")
        merged = TermSums(self.terms)
        merged.sums = {name: own + other.sums[name] for name, own in self.sums.items()}
        return merged

    def result(self) -> TermShares:
        entries, rows, left_out = self.sums["counts"].tolist()
        products, absolute = self.sums["products"], self.sums["absolute"]
        squares = products.diagonal()
        total = float(products.sum())
        varies = total > NO_SIGNAL * float(squares.sum())
        undefined = torch.full_like(absolute, torch.nan)
        return TermShares(
            mean_absolute=_named(self.terms, absolute / absolute.sum() if absolute.any() else undefined),
            covariance=_named(self.terms, products.sum(1) / total if varies else undefined),
            similarity=_named(self.subsets, self.sums["similarity"] / (rows or torch.nan)),
            agreement=_named(self.subsets, self.sums["agreement"] / (rows or torch.nan)),
            spread=(total / entries) ** 0.5 if varies and entries else 0.0 if entries else torch.nan,
            entries=entries,
            rows=rows,
            rows_left_out=left_out,
        )


def subsets(terms: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Sets of terms to rebuild attention from."""
    every = frozenset(terms)
    temporal = frozenset({"temporal·temporal"})
    found = {
        "uniform": frozenset(),
        "temporal only": temporal,
        "input only": frozenset({"input·input"}),
        "no residual": frozenset(term for term in terms if "residual" not in term),
    }
    if POSITION_BIAS in every:
        found |= {
            "position bias only": frozenset({POSITION_BIAS}),
            "temporal and position bias": temporal | {POSITION_BIAS},
        }
    return found | {f"without {term}": every - {term} for term in terms}


def _named(names: Iterable[str], values: Tensor) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))
