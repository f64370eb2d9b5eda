"""Second reading of a corpus: the terms of every head's scores, from components of the first reading."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.adapters.attended import Attended
from attnlib.adapters.model_pass import ModelPass
from attnlib.analysis.fit import Fit, Head, chosen_heads, counted_attention, whole_samples
from attnlib.analysis.term_sums import NINE, POSITION_BIAS, TermSums
from attnlib.decomposition.parts import Parts
from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, chance_agreement


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
        totals: of typicality over the samples covered, how many these are, how many were judged; of the
            model's attention on ignored positions over rows, and how many rows; of agreement with the lexical
            probe, of what chance would get, and how many rows were probed.
    """

    def __init__(self, terms: tuple[str, ...]):
        self.terms = TermSums(terms)
        self.totals = torch.zeros(8, dtype=torch.float64)

    def __add__(self, other: "HeadSums") -> "HeadSums":
        merged = HeadSums(self.terms.terms)
        merged.terms = self.terms + other.terms
        merged.totals = self.totals + other.totals
        return merged

    @property
    def typicality(self) -> float:
        """Mean over the samples covered; NaN where there is none."""
        total, covered = self.totals[:2].tolist()
        return total / covered if covered else float("nan")

    @property
    def coverage(self) -> float:
        """Share of the samples whose size was frequent enough to have an average."""
        covered, samples = self.totals[1:3].tolist()
        return covered / samples if samples else float("nan")

    @property
    def on_ignored(self) -> float:
        """Share of the model's attention that goes to ignored positions."""
        total, rows = self.totals[3:5].tolist()
        return total / rows if rows else float("nan")

    @property
    def agreement(self) -> float:
        """𝒜(α, β) with the lexical probe (Snell et al. 2021, equation 10); NaN where none was taken."""
        total, _, rows = self.totals[5:].tolist()
        return total / rows if rows else float("nan")

    @property
    def chance_agreement(self) -> float:
        """What an attention that points anywhere would agree."""
        _, total, rows = self.totals[5:].tolist()
        return total / rows if rows else float("nan")


class Judgement:
    """Sums of the second reading; mergeable.

    Args:
        fit: of the first reading, of which it asks the components.
    """

    def __init__(self, fit: Fit):
        self.fit = fit
        self.heads: dict[Head, HeadSums] = {}
        self.seen: dict[str, Seen] = {}
        self.samples = 0

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
        parts = {site: self._split(site, one, whole) for site in one.sites()}
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
        self.heads[attended.name, head].totals[5:] += torch.tensor(
            [float(agrees.sum()), float(chance.sum()), len(agrees)], dtype=torch.float64
        )

    def _split(self, site: str, one: ModelPass, whole: Tensor) -> Parts:
        if site not in self.fit.components:
            known = ", ".join(self.fit.components) or "none"
            raise BadInput(f"no components of {site}; the fit has those of {known}")
        side, states = one.sites()[site]
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
        typical = self.fit.averages[attended.name, head].typicality(attention[whole], asks, answers)
        covered = typical[~typical.isnan()]
        ignored = one.mask(answering) & ~one.counted(answering)
        there = (one.softmax(attended, head) * ignored[:, None, :]).sum(-1)[whole][asks]
        own.totals += torch.tensor(
            [float(covered.sum()), len(covered), len(typical), float(there.sum()), len(there), 0, 0, 0],
            dtype=torch.float64,
        )

    def merge(self, other: "Judgement") -> "Judgement":
        """New sums of both; they are judged by the same fit."""
        merged = Judgement(self.fit)
        merged.samples = self.samples + other.samples
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
