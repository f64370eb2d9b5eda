"""Second reading of a corpus: the terms of every head's scores, from components of the first reading."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.adapters.attended import Attended
from attnlib.adapters.model_pass import ModelPass
from attnlib.analysis.fit import Fit, Head, chosen_heads, counted_attention, whole_samples
from attnlib.analysis.stream import Losses
from attnlib.analysis.term_sums import NINE, POSITION_BIAS, TermSums
from attnlib.decomposition.components import Parts
from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, chance_agreement

# Over samples: typicality where an average covers them, how many these are, how many are longer than those
# averages are kept of, how many were judged. Over rows: the model's attention on ignored positions, how many.
# Over rows that were probed: agreement with the lexical probe, what chance would get, how many.
TOTALS = ("typical", "covered", "beyond", "samples", "on_ignored", "rows", "agrees", "by_chance", "probed")


@dataclass(frozen=True)
class Seen:
    """Of some states: valid positions judged, and those whose word or place the fit never saw."""

    valid: int = 0
    unseen_words: int = 0
    unseen_places: int = 0

    def __add__(self, other: "Seen") -> "Seen":
        return Seen(
            self.valid + other.valid,
            self.unseen_words + other.unseen_words,
            self.unseen_places + other.unseen_places,
        )


class HeadSums:
    """What is summed of one head.

    Attributes:
        terms: see :class:`~attnlib.analysis.term_sums.TermSums`.
        totals: of :data:`TOTALS`.
    """

    def __init__(self, terms: tuple[str, ...]):
        self.terms = TermSums(terms)
        self.totals = dict.fromkeys(TOTALS, 0.0)

    def add(self, **totals: float | int) -> None:
        """Add to some of the totals."""
        for name, total in totals.items():
            self.totals[name] += total

    def __add__(self, other: "HeadSums") -> "HeadSums":
        merged = HeadSums(self.terms.terms)
        merged.terms = self.terms + other.terms
        merged.totals = {name: own + other.totals[name] for name, own in self.totals.items()}
        return merged

    def _ratio(self, total: str, count: str) -> float:
        return self.totals[total] / self.totals[count] if self.totals[count] else math.nan

    @property
    def typicality(self) -> float:
        """Mean over the samples covered; NaN where there is none."""
        return self._ratio("typical", "covered")

    @property
    def coverage(self) -> float:
        """Share of the samples whose size has an average: short enough to be kept, and frequent enough."""
        return self._ratio("covered", "samples")

    @property
    def beyond(self) -> float:
        """Share of the samples that are longer than averages are kept of."""
        return self._ratio("beyond", "samples")

    @property
    def on_ignored(self) -> float:
        """Share of the model's attention that goes to ignored positions."""
        return self._ratio("on_ignored", "rows")

    @property
    def agreement(self) -> float:
        """𝒜(α, β) with the lexical probe (Snell et al. 2021, equation 10); NaN where none was taken."""
        return self._ratio("agrees", "probed")

    @property
    def chance_agreement(self) -> float:
        """What an attention that points anywhere would agree."""
        return self._ratio("by_chance", "probed")


class Judgement:
    """Sums of the second reading; mergeable.

    Args:
        fit: of the first reading, of which it asks the components.

    Attributes:
        samples, losses, unchecked: as of a :class:`~attnlib.analysis.fit.Fit`; attentions that were unchecked
            in the first reading among the last.
    """

    def __init__(self, fit: Fit):
        self.fit = fit
        self.heads: dict[Head, HeadSums] = {}
        self.seen: dict[str, Seen] = {}
        self.samples = 0
        self.losses = Losses()
        self.unchecked = fit.unchecked

    def update(
        self, one: ModelPass, probe: Float[Tensor, "batch target source"] | None = None
    ) -> "Judgement":
        """Add a pass.

        Args:
            probe: β of the pass, to hold against its cross-attentions.

        Raises:
            BadInput: states of which the fit has no components.
        """
        whole = whole_samples(one)
        if not bool(whole.any()):
            return self
        self.samples += int(whole.sum())
        self.unchecked |= set(one.unchecked)
        parts = {site: self._split(site, *own, one, whole) for site, own in one.sites().items()}
        for attended in one.attended:
            for head in chosen_heads(attended, self.fit.heads):
                query, key = parts[attended.query_site], parts[attended.key_site]
                terms = _terms(attended, head, query, key, whole)
                self._add(one, attended, head, whole, terms)
                if probe is not None and attended.kind == "cross":
                    self._hold_against(one, attended, head, probe)
        return self

    def _hold_against(self, one: ModelPass, attended: Attended, head: int, probe: Tensor) -> None:
        rows = one.counted("target") & one.counted("source").any(1)[:, None]
        seen = one.counted("source")[:, None, :].expand(probe.shape)[rows]
        attention, _ = counted_attention(one, attended, head)
        agrees = agreement(attention[rows], probe[rows], seen)
        chance = chance_agreement(probe[rows], seen)
        self.heads[attended.name, head].add(
            agrees=float(agrees.sum()), by_chance=float(chance.sum()), probed=len(agrees)
        )

    def _split(self, site: str, side: str, states: Tensor, one: ModelPass, whole: Tensor) -> Parts:
        if site not in self.fit.components:
            known = ", ".join(self.fit.components) or "none"
            raise BadInput(f"no components of {site}; the fit has those of {known}")
        given = states[whole], one.tokens(side)[whole], one.counted(side)[whole]
        parts = self.fit.components[site].split(*given)
        seen = Seen(parts.valid, parts.unseen_tokens, parts.unseen_positions)
        self.seen[site] = self.seen.get(site, Seen()) + seen
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
        asking, answering = one.sides(attended.kind)
        asks, answers = one.counted(asking)[whole], one.counted(answering)[whole]
        averages = self.fit.averages[attended.name, head]
        typical = averages.typicality(attention[whole], asks, answers)
        covered = typical[~typical.isnan()]
        own.add(typical=float(covered.sum()), covered=len(covered), samples=len(typical))
        own.add(beyond=int(averages.beyond(asks, answers).sum()))
        ignored = one.mask(answering) & ~one.counted(answering)
        if bool(ignored.any()):  # else nothing is there, and no attention need be made again
            there = (one.softmax(attended, head) * ignored[:, None, :]).sum(-1)[whole][asks]
            own.add(on_ignored=float(there.sum()))
        own.add(rows=int(asks.sum()))

    def merge(self, other: "Judgement") -> "Judgement":
        """New sums of both; they are judged by the same fit."""
        merged = Judgement(self.fit)
        merged.samples = self.samples + other.samples
        merged.losses = self.losses + other.losses
        merged.unchecked = self.unchecked | other.unchecked
        for name in ("heads", "seen"):
            own = dict(getattr(self, name))
            for key, sums in getattr(other, name).items():
                own[key] = own[key] + sums if key in own else sums
            setattr(merged, name, own)
        return merged

    __add__ = merge


def _terms(
    attended: Attended, head: int, query: Parts, key: Parts, whole: Bool[Tensor, " batch"]
) -> Float[Tensor, "terms samples target source"]:
    nine = attended.terms(head, query, key).flatten(0, 1)
    if attended.position_bias is None:
        return nine
    bias = attended.position_bias[:, head]
    own = bias[whole] if len(bias) > 1 else bias
    return torch.cat([nine, own.expand(nine.shape[1:])[None]])
