"""Second pass over a corpus: the terms of every head's scores, from components of the first pass."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, overload

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.analysis.counted import counted_attention
from attnlib.analysis.fit import Fit, Head
from attnlib.analysis.interventions import InterventionSums, add_interventions, donors_of
from attnlib.analysis.learned import Learned
from attnlib.analysis.part_shares import weights_of
from attnlib.analysis.pass_sums import PassSums
from attnlib.analysis.terms import PARTS, REBUILT, AttentionTerms, attention_terms, subsets, terms_of
from attnlib.decomposition.components import PART_NAMES, Means
from attnlib.decomposition.term_sums import TermShares, TermSums
from attnlib.decomposition.typicality import AverageAttention
from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, chance_agreement
from attnlib.streaming import StreamingSums
from attnlib.trace import Trace

BLOCKS = 64  # into which samples fall by what they hold: two analyses of one text have the same
#: of :attr:`HeadSums.blocks`, by the column of a head's row that each becomes; the last are rows
BLOCK_COLUMNS = (
    *(f"{part.replace(' ', '_')}_share" for part in PARTS),
    *(f"{part}_split_share" for part in PART_NAMES),
    *(f"{name.removesuffix(' only').replace(' ', '_')}_rebuilds" for name in REBUILT),
    "rows",
)
_LARGEST_SEED = (1 << 63) - 1
_ODD = 6364136223846793005  # of a generator of random numbers (Knuth)


class HeldOutSums(PassSums):
    """Sums of the second pass, by the components of a fit.

    Args:
        fit: sums of the first pass.
        interventions: whether to see how far attention moves when parts of states come from elsewhere, see
            :mod:`attnlib.analysis.interventions`.

    Attributes:
        attentions: the sums of the heads of each attention, by its name.
        seen: what the fit never saw, by name of the states.
        learned: how well the model predicts.
        keys: of the samples, summed by block: equal for two analyses of the same samples.
        moved: how far attention moved, by name of the attention; empty without interventions.
    """

    SUMS = (*PassSums.SUMS, "attentions", "seen", "learned", "keys", "moved")

    def __init__(self, fit: Fit, *, interventions: bool = False):
        super().__init__()
        self.fit = fit
        self.interventions = interventions
        self.moved: dict[str, InterventionSums] = {}
        self.attentions: dict[str, AttentionSums] = {}
        self.seen: dict[str, SeenCounts] = {}
        self.learned = Learned()
        self.keys = torch.zeros(BLOCKS, dtype=torch.int64)
        self.unchecked = fit.unchecked  # attentions that were unchecked in the first pass are unchecked

    def settings(self) -> dict[str, Any]:
        """Return the fit, and whether there are interventions; sums of others cannot be merged."""
        return {"fit": self.fit, "interventions": self.interventions}

    def state_dict(self) -> dict[str, Any]:
        """Return all that was summed, and whether there are interventions."""
        return super().state_dict() | {"interventions": self.interventions}

    def load_state_dict(self, state: dict[str, Any]) -> "HeldOutSums":
        """Take over what :meth:`state_dict` returned, and whether there are interventions."""
        self.interventions = state["interventions"]
        super().load_state_dict(state)
        return self

    def empty_entry(self, table: str, state: dict) -> "AttentionSums | SeenCounts | InterventionSums":
        """Return the empty sums that the state of an attention or of some states is loaded into."""
        if table == "seen":
            return SeenCounts()
        if table == "moved":
            return InterventionSums(state["heads"])
        return AttentionSums(state["heads"], state["term_names"])

    @property
    def heads(self) -> dict[Head, "HeadSums"]:
        """The sums of each head that was looked at."""
        return {
            (name, head): HeadSums(sums, place)
            for name, sums in self.attentions.items()
            for place, head in enumerate(sums.heads)
        }

    def update(
        self, model_pass: Trace, probe: Float[Tensor, "batch target source"] | None = None
    ) -> "HeldOutSums":
        """Add a pass of the model, and return these sums.

        Args:
            model_pass: the pass, which is validated if it has not been.
            probe: β, the lexical probe, which cross-attentions are compared with.

        Raises:
            BadInput: states that the fit has no components of, or a trace that cannot be validated.
        """
        model_pass = model_pass.validated()
        whole = self._begin(model_pass)  # (batch,)
        if whole is None:
            return self
        keys = sample_keys(model_pass)[whole].cpu()  # (samples,)
        blocks = block_of(keys)  # (samples,)
        self.keys.index_add_(0, blocks, keys)
        means = means_of_pass(self.fit, model_pass, whole)
        for site, (side, _) in model_pass.sites().items():
            counts = self.seen.setdefault(site, SeenCounts())
            counts.update(model_pass.counted(side)[whole], means[site])
        donors = None
        if self.interventions and len(keys) > 1:  # a sample alone has nothing to exchange with
            seed = int(keys.sum()) & _LARGEST_SEED  # the same sentences in a batch: the same draws
            donors = donors_of(model_pass, means, whole, method=self.fit.method, seed=seed)
        for batch in attention_terms(self.fit, model_pass, whole=whole, means=means):
            sums = self._sums_of(batch)
            sums.terms.update(batch.terms, batch.fitted, blocks)
            query_side, key_side = model_pass.sides(batch.attended.kind)
            queries = model_pass.counted(query_side)[whole]  # (samples, target)
            keys_of_attention = model_pass.counted(key_side)[whole]  # (samples, source)
            average = self.fit.averages[batch.attended.name]
            sums.add_typicality(average, batch.attention, queries=queries, keys=keys_of_attention)
            sums.add_ignored(batch, model_pass, whole)
            if donors is not None:
                moved = self.moved.setdefault(batch.attended.name, InterventionSums(batch.heads))
                of_sides = (donors[query_side], donors[key_side])
                add_interventions(moved, batch, means=means, whole=whole, donors=of_sides)
            if probe is not None and batch.attended.kind == "cross":
                sums.add_agreement(batch, model_pass, probe)
        return self

    def _sums_of(self, batch: AttentionTerms) -> "AttentionSums":
        name = batch.attended.name
        if name not in self.attentions:
            self.attentions[name] = AttentionSums(batch.heads, batch.names)
        return self.attentions[name]


def means_of_pass(fit: Fit, model_pass: Trace, whole: Bool[Tensor, " batch"]) -> dict[str, Means]:
    """Return the components at the places of the whole samples, by name of the states.

    Raises:
        BadInput: states that the fit has no components of.
    """
    means = {}
    for site, (side, states) in model_pass.sites().items():
        if site not in fit.components:
            known = ", ".join(fit.components) or "none"
            raise BadInput(f"no components of {site}; the fit has those of {known}")
        tokens, mask = model_pass.tokens(side), model_pass.counted(side)
        means[site] = fit.components[site].means(states[whole], tokens[whole], mask[whole])
    return means


# Which samples were read.


def sample_keys(model_pass: Trace) -> Int[Tensor, " batch"]:
    """Return a number of each sample, made of its words alone: the same in whatever batch it is read."""
    keys = torch.zeros_like(model_pass.source_tokens[:, 0])  # (batch,)
    sides = (
        (model_pass.source_tokens, model_pass.source_mask),
        (model_pass.target_outputs, model_pass.target_mask),
    )
    for tokens, mask in sides:
        powers = torch.full_like(tokens[0], _ODD).cumprod(0)  # (length,); beyond 2^63 they begin again
        keys = keys * _ODD + ((tokens + 1) * mask * powers).sum(1)
    return keys


def block_of(keys: Int[Tensor, " samples"]) -> Int[Tensor, " samples"]:
    """Return which of the :data:`BLOCKS` samples fall into."""
    return (keys >> 32) % BLOCKS


# What is summed of states and of attentions.


class SeenCounts(StreamingSums):
    """Counts of the places of some states.

    Attributes:
        valid: places that count.
        unseen_words: those whose word the fit never saw.
        unseen_places: those whose position it never saw.
    """

    SUMS = ("valid", "unseen_words", "unseen_places")

    def __init__(self) -> None:
        self.valid = 0
        self.unseen_words = 0
        self.unseen_places = 0

    def update(self, mask: Bool[Tensor, "samples length"], means: Means) -> None:
        """Add a batch."""
        self.valid += int(mask.sum())
        self.unseen_words += means.unseen_tokens
        self.unseen_places += means.unseen_positions


class AttentionSums(StreamingSums):
    """What is summed of the heads of one attention.

    Args:
        heads: their numbers.
        terms: names of their terms.

    Attributes:
        terms: sums of the terms.
        samples, rows: how many were read.
        beyond: samples that are longer than averages are kept of.
        typicality: where an average of the very size covers a sample, (heads,).
        covered: how many samples, (heads,).
        near_typicality, near: the same where the nearest sizes may be joined, (heads,).
        on_ignored: the model's attention on ignored positions, over rows, (heads,).
        agrees, by_chance: how often a head agrees with the lexical probe, over rows probed, (heads,).
        probed: how many rows.
    """

    SUMS = (
        "terms",
        "samples",
        "rows",
        "beyond",
        "typicality",
        "covered",
        "near_typicality",
        "near",
        "on_ignored",
        "agrees",
        "by_chance",
        "probed",
    )

    def __init__(self, heads: Collection[int], terms: Collection[str]):
        self.heads = tuple(heads)
        names = tuple(terms)
        self.terms = TermSums(names, subsets(names), heads=len(self.heads), blocks=BLOCKS)
        self.samples = 0
        self.rows = 0
        self.beyond = 0
        self.probed = 0
        of_heads = torch.zeros(len(self.heads), dtype=torch.float64)
        self.typicality = of_heads.clone()
        self.near_typicality = of_heads.clone()
        self.on_ignored = of_heads.clone()
        self.agrees = of_heads.clone()
        self.by_chance = of_heads.clone()
        self.covered = of_heads.long()
        self.near = of_heads.long()

    def settings(self) -> dict[str, Any]:
        """Return the heads and the names of their terms; sums of others cannot be merged."""
        return {"heads": self.heads, "terms": self.terms.terms}

    def state_dict(self) -> dict[str, Any]:
        """Return all that was summed, the numbers of the heads and the names of their terms."""
        names = {"heads": list(self.heads), "term_names": list(self.terms.terms)}
        return super().state_dict() | names

    def add_typicality(
        self,
        average: AverageAttention,
        attention: Float[Tensor, "heads samples target source"],
        *,
        queries: Bool[Tensor, "samples target"],
        keys: Bool[Tensor, "samples source"],
    ) -> None:
        """Add how near attention is to its average; count samples and rows."""
        typicality, exact = average.typicality(attention, queries, keys)  # (heads, samples), (samples,)
        is_known = ~typicality.isnan()  # (heads, samples)
        self.typicality += typicality.where(exact, 0.0).nansum(1)
        self.covered += (is_known & exact).sum(1)
        self.near_typicality += typicality.nansum(1)
        self.near += is_known.sum(1)
        self.samples += len(queries)
        self.rows += int(queries.sum())
        self.beyond += int(average.beyond(queries, keys).sum())

    def add_ignored(self, batch: AttentionTerms, model_pass: Trace, whole: Bool[Tensor, " batch"]) -> None:
        """Add the model's attention on ignored positions, which is made again where there are any."""
        query_side, key_side = model_pass.sides(batch.attended.kind)
        ignored = model_pass.mask(key_side) & ~model_pass.counted(key_side)  # (batch, source)
        if not bool(ignored.any()):
            return
        queries = model_pass.counted(query_side) & whole[:, None]  # (batch, target)
        for place, head in enumerate(batch.heads):
            attention = model_pass.softmax(batch.attended, head)  # (batch, target, source)
            on_ignored = (attention * ignored[:, None, :]).sum(-1)  # (batch, target)
            self.on_ignored[place] += float(on_ignored[queries].sum())

    def add_agreement(
        self, batch: AttentionTerms, model_pass: Trace, probe: Float[Tensor, "batch target source"]
    ) -> None:
        """Add how often each head agrees with the lexical probe."""
        rows = model_pass.counted("target") & model_pass.counted("source").any(1)[:, None]  # (batch, target)
        visible = model_pass.counted("source")[:, None, :].expand(probe.shape)[rows]  # (row, source)
        by_chance = float(chance_agreement(probe[rows], visible).sum())
        self.probed += int(rows.sum())
        for place, head in enumerate(batch.heads):
            attention, _ = counted_attention(model_pass, batch.attended, head)  # (batch, target, source)
            self.agrees[place] += float(agreement(attention[rows], probe[rows], visible).sum())
            self.by_chance[place] += by_chance


@dataclass(frozen=True)
class ShareInterval:
    """A share and its interval of 95 %; NaN where undefined."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class HeadSums:
    """What is summed of one head, a view of the sums of its attention."""

    attention: AttentionSums
    place: int  #: among the heads that were looked at

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of its terms."""
        return tuple(map(str, self.attention.terms.terms))

    @property
    def shares(self) -> TermShares:
        """What the sums of its terms come to."""
        return self.attention.terms.result(self.place)

    @property
    def blocks(self) -> Float[Tensor, "blocks sums"]:
        """The sums of each block of samples, with the columns of :data:`BLOCK_COLUMNS`.

        They are what :data:`PARTS` explain, what parts explain when cross terms are split, what
        :data:`REBUILT` rebuild, and the number of rows.
        """
        sums = self.attention.terms
        explained = sums.explained[self.place]  # (terms, blocks)
        similarity = sums.similarity[self.place]  # (subsets, blocks)
        named_subsets = list(sums.subsets)
        parts = [self._weights(terms_of(self.terms, part)) @ explained for part in PARTS]
        split = [self._weights(weights_of(self.terms, part, "split")) @ explained for part in PART_NAMES]
        rebuilt = [similarity[named_subsets.index(name)] for name in REBUILT]
        return torch.stack([*parts, *split, *rebuilt, sums.rows_of_block.double()], 1)

    def mean(self, total: str, count: str) -> float:
        """Return one sum over another, NaN where there is nothing to divide by.

        Args:
            total: name of a sum of the attention, such as "typicality".
            count: name of the sum that it is divided by, such as "covered".
        """
        n = self.count(count)
        if not n:
            return math.nan
        return self.count(total) / n

    def count(self, name: str) -> int | float:
        """Return one of the sums of the attention, that of this head where heads differ."""
        value = getattr(self.attention, name)
        if isinstance(value, Tensor):
            return value[self.place].item()
        return value

    def share(
        self, terms: Collection[str] | Mapping[str, float], *, fitted: float = math.inf
    ) -> ShareInterval:
        """Return the covariance share of some terms together, and its interval.

        Samples are independent of each other, the entries of one are not: of sample i, with e_i what these
        terms explain of it and v_i what all do, the share S = Σe / Σv has to first order the variance
        Σ (e_i − S v_i)² / (Σv)², that of a ratio (Cochran, *Sampling Techniques*, 1977, section 6.4), and the
        bias −Σ (e_i − S v_i) v_i / (Σv)², which the middle of the interval lacks. As samples weigh unequally,
        they are as good as m = (Σv)² / Σv² equal ones: the variance is divided by (1 − 1/m)², as the
        jackknife does, and quantiles are Student's with m − 1 degrees of freedom. What the fit does not know
        adds to the variance: means of n_f samples ``fitted`` on, tried on n others, are off by as much as
        n/n_f of what these others vary. That is too little for a share near zero where words keep to their
        places, as in texts: the fit hardly tells the two apart, its errors meet all that words make of the
        scores there, and samples, in which this share is small, do not show it.

        Args:
            terms: names of terms, or how much of each term counts, by its name.
            fitted: samples that the components were fitted on; NaN where they are those that are judged.
        """
        sums = self.attention.terms
        total = float(sums.total()[self.place])
        if math.isnan(total):
            return ShareInterval(math.nan, math.nan, math.nan)
        chosen = self._weights(terms)  # (terms,)
        share = float(chosen @ sums.explained[self.place].sum(1)) / total
        moments = sums.moments[self.place] / total**2  # (terms, terms)
        equal_samples = min(1 / float(moments.sum()), sums.samples)  # of equal weight they would be so many
        if equal_samples < 2:
            return ShareInterval(share, math.nan, math.nan)
        apart = chosen - share  # (terms,)
        bias = -float((apart @ moments).sum()) * equal_samples / (equal_samples - 1)
        middle = share - bias
        variance = max(float(apart @ moments @ apart), 0.0) / (1 - 1 / equal_samples) ** 2
        variance_of_fit = variance * sums.samples / fitted
        half = student(equal_samples - 1) * math.sqrt(variance + variance_of_fit)
        return ShareInterval(share, middle - half, middle + half)

    def _weights(self, terms: Collection[str] | Mapping[str, float]) -> Float[Tensor, " terms"]:
        """Return how much of each term of this head counts: all or nothing where only names are given."""
        if not isinstance(terms, Mapping):
            terms = dict.fromkeys(terms, 1.0)
        return torch.tensor([terms.get(name, 0.0) for name in self.terms], dtype=torch.float64)


# Quantiles of intervals. They are not scipy's because machines that measure heads do not have it.


_EXPANDED = 500.0  # degrees from which on an expansion is exact to the last digits
_NORMAL = 1.959963984540054  # the 97.5 % quantile of the normal distribution
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)  # of a quadrature on (-1, 1)


@overload
def student(degrees: int | float) -> float: ...


@overload
def student(degrees: Tensor) -> Tensor: ...


def student(degrees: int | float | Tensor) -> float | Tensor:
    """The 97.5 % quantile of Student's distribution.

    Args:
        degrees: of freedom, any real number from 1 on; below there is no interval, and this is NaN.

    >>> [round(student(n), 3) for n in (1, 1.5, 2, 5, 30, 1000)]
    [12.706, 6.017, 4.303, 2.571, 2.042, 1.962]
    """
    if isinstance(degrees, Tensor):
        values = [_quantile(number) for number in degrees.flatten().tolist()]
        return torch.tensor(values, dtype=degrees.dtype, device=degrees.device).view_as(degrees)
    return _quantile(float(degrees))


@lru_cache(maxsize=4096)
def _quantile(degrees: float) -> float:
    if not degrees >= 1:
        return math.nan
    if degrees == 1:
        return math.tan(0.475 * math.pi)
    if degrees == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    if degrees >= _EXPANDED:
        return _expanded(degrees)
    # With t = √n tan θ the probability of (0, t) is K ∫ cos(u)^(n-1) du from 0 to θ.
    constant = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    angle, step = 0.0, 1.0
    while abs(step) > 1e-10:  # Newton: the probability is concave, so no step goes too far
        places = angle * (_NODES + 1) / 2
        probability = constant * angle / 2 * float(_WEIGHTS @ np.cos(places) ** (degrees - 1))
        step = (0.475 - probability) / (constant * math.cos(angle) ** (degrees - 1))
        angle += step
    return math.sqrt(degrees) * math.tan(angle)


def _expanded(degrees: float) -> float:
    """The quantile by its expansion in 1/degrees (Abramowitz and Stegun 1964, 26.7.5)."""
    z = _NORMAL
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / degrees**power for power, term in enumerate(terms))
