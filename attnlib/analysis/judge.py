"""Sum the second pass over a corpus: the terms of every head's scores, from components of the first pass."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.analysis.columns import rebuilt_column, share_column
from attnlib.analysis.counted import counted_attention
from attnlib.analysis.fit import Fit
from attnlib.analysis.heads import Head
from attnlib.analysis.interventions import Donors, InterventionSums, add_interventions, donors_of
from attnlib.analysis.learned import Learned
from attnlib.analysis.part_shares import weights_of
from attnlib.analysis.pass_sums import PassSums
from attnlib.analysis.students_quantile import students_quantile
from attnlib.analysis.terms import AttentionTerms, attention_terms
from attnlib.decomposition.components import STATE_PARTS, PlaceComponents
from attnlib.decomposition.term_names import REBUILT, TERM_GROUPS, subsets, terms_of
from attnlib.decomposition.term_sums import TermShares, TermSums
from attnlib.decomposition.typicality import AverageAttention
from attnlib.errors import BadInput
from attnlib.former_names import former_arguments, former_attribute, former_object
from attnlib.probes.agreement import agreement, chance_agreement
from attnlib.streaming import StreamingSums
from attnlib.trace import Trace

BLOCKS = 64  # samples fall into them by their words, so that two analyses of one text have the same blocks
SHARE_MEASURES = tuple(share_column(group) for group in TERM_GROUPS)
SPLIT_MEASURES = tuple(share_column(part, split=True) for part in STATE_PARTS)
REBUILT_MEASURES = tuple(rebuilt_column(subset) for subset in REBUILT)
#: the columns of :attr:`HeadSums.blocks`, named as those of a head's row
BLOCK_COLUMNS = (*SHARE_MEASURES, *SPLIT_MEASURES, *REBUILT_MEASURES, "rows")
_LARGEST_SEED = (1 << 63) - 1
_ODD = 6364136223846793005  # the multiplier of Knuth's generator of random numbers


class JudgedSums(PassSums):
    """Sums of the second pass, over the judged samples, with the components of a fit.

    These are the samples held out of the fit, or all samples where nothing is held out.

    Args:
        fit: sums of the first pass.
        interventions: whether to measure how far attention moves when parts of states are replaced, see
            :mod:`attnlib.analysis.interventions`.

    Attributes:
        attentions: the sums of the heads of each attention, by name of the attention.
        seen: how many places the fit has seen, by name of the states.
        learned: how well the model predicts.
        keys: of the samples, (blocks,), summed by block: equal for two analyses of the same samples.
        moved: how far attention moves, by name of the attention; empty without interventions.
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

    def load_state_dict(self, state: dict[str, Any]) -> "JudgedSums":
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
        """The sums of each head analysed, by attention and head."""
        sums_of_head = {}
        for name, sums in self.attentions.items():
            for index, head in enumerate(sums.heads):
                sums_of_head[Head(name, head)] = HeadSums(sums, index)
        return sums_of_head

    def update(self, trace: Trace, probe: Float[Tensor, "batch target source"] | None = None) -> "JudgedSums":
        """Add the trace of a batch, and return these sums.

        Args:
            trace: of the batch; it is validated if it has not been.
            probe: β, the lexical probe, which cross-attentions are compared with.

        Raises:
            BadInput: states that the fit has no components of, or a trace that cannot be validated.
        """
        trace = trace.validated()
        whole = self._begin(trace)  # (batch,)
        if whole is None:
            return self
        keys = sample_keys(trace)[whole].cpu()  # (samples,)
        blocks = block_of(keys)  # (samples,)
        self.keys.index_add_(0, blocks, keys)
        place_components = place_components_of(self.fit, trace, whole)
        self._count_places(trace, whole, place_components)
        donors = None
        if self.interventions and len(keys) > 1:  # a sample alone has nothing to exchange with
            seed = int(keys.sum()) & _LARGEST_SEED  # the same sentences in a batch: the same draws
            leaves_out_unseen = self.fit.leaves_out_unseen
            donors = donors_of(trace, place_components, whole, leaves_out_unseen=leaves_out_unseen, seed=seed)
        for head_terms in attention_terms(self.fit, trace, whole=whole, place_components=place_components):
            sums = self._sums_of(head_terms)
            sums.term_sums.update(head_terms.terms, head_terms.known_pairs, blocks)
            sums.add_typicality(self.fit.averages[head_terms.attention.name], head_terms, trace, whole=whole)
            sums.add_ignored(head_terms, trace, whole)
            if donors is not None:
                self._intervene(
                    head_terms, trace, place_components=place_components, whole=whole, donors=donors
                )
            if probe is not None and head_terms.attention.kind == "cross":
                sums.add_agreement(head_terms, trace, probe)
        return self

    def _count_places(
        self, trace: Trace, whole: Bool[Tensor, " batch"], place_components: dict[str, PlaceComponents]
    ) -> None:
        """Count the places of all states that projections read, and those that the fit has not seen."""
        for site, (side, _) in trace.sites().items():
            counts = self.seen.setdefault(site, SeenCounts())
            counts.update(trace.counted(side)[whole], place_components[site])

    def _intervene(
        self,
        head_terms: AttentionTerms,
        trace: Trace,
        *,
        place_components: dict[str, PlaceComponents],
        whole: Bool[Tensor, " batch"],
        donors: dict[str, Donors],
    ) -> None:
        """Add how far one attention moves when parts come from the donors of each side."""
        query_side, key_side = trace.sides(head_terms.attention.kind)
        sums = self.moved.setdefault(head_terms.attention.name, InterventionSums(head_terms.heads))
        of_sides = (donors[query_side], donors[key_side])
        add_interventions(sums, head_terms, place_components=place_components, whole=whole, donors=of_sides)

    def _sums_of(self, head_terms: AttentionTerms) -> "AttentionSums":
        name = head_terms.attention.name
        if name not in self.attentions:
            self.attentions[name] = AttentionSums(head_terms.heads, head_terms.names)
        return self.attentions[name]


def place_components_of(fit: Fit, trace: Trace, whole: Bool[Tensor, " batch"]) -> dict[str, PlaceComponents]:
    """Return the components at the places of the whole samples, by name of the states.

    Raises:
        BadInput: states that the fit has no components of.
    """
    place_components = {}
    for site, (side, states) in trace.sites().items():
        if site not in fit.components:
            fitted_sites = ", ".join(fit.components) or "none"
            raise BadInput(f"no components of {site}; the fit has those of {fitted_sites}")
        tokens = trace.tokens(side)  # (batch, length)
        mask = trace.counted(side)  # (batch, length)
        place_components[site] = fit.components[site].at_places(states[whole], tokens[whole], mask[whole])
    return place_components


# -- identities of samples --


def sample_keys(trace: Trace) -> Int[Tensor, " batch"]:
    """Return a number for each sample that depends on its words alone, not on the batch that it is in."""
    keys = torch.zeros_like(trace.source_tokens[:, 0])  # (batch,)
    sides = ((trace.source_tokens, trace.source_mask), (trace.target_outputs, trace.target_mask))
    for tokens, mask in sides:
        powers = torch.full_like(tokens[0], _ODD).cumprod(0)  # (length,); products wrap around at 2^64
        digits = (tokens + 1) * mask  # (batch, length)
        keys = keys * _ODD + (digits * powers).sum(1)
    return keys


def block_of(keys: Int[Tensor, " samples"]) -> Int[Tensor, " samples"]:
    """Return the number of the block, below :data:`BLOCKS`, that each sample falls into."""
    return (keys >> 32) % BLOCKS


# -- sums of states and of attentions --


class SeenCounts(StreamingSums):
    """Counts of the places of the states that a projection reads.

    Attributes:
        valid: number of places that count.
        unseen_words: number of these whose word the fit has not seen.
        unseen_positions: number of these whose position the fit has not seen.
    """

    SUMS = ("valid", "unseen_words", "unseen_positions")
    SAVED_AS: ClassVar[dict[str, str]] = {"unseen_positions": "unseen_places"}

    def __init__(self) -> None:
        self.valid = 0
        self.unseen_words = 0
        self.unseen_positions = 0

    def update(self, mask: Bool[Tensor, "samples length"], place_components: PlaceComponents) -> None:
        """Add a batch."""
        self.valid += int(mask.sum())
        self.unseen_words += place_components.unseen_tokens
        self.unseen_positions += place_components.unseen_positions


class AttentionSums(StreamingSums):
    """Sums over the heads of one attention.

    Args:
        heads: numbers of the heads.
        term_names: names of their terms.

    Attributes:
        term_sums: sums of the terms.
        samples, rows: number of samples, and of rows of attention.
        beyond: number of samples that are too long for any average.
        typicality: summed over the samples that have an average of their size, (heads,).
        covered: number of these samples, (heads,).
        near_typicality, near: likewise with averages of the nearest sizes, (heads,).
        on_ignored: the model's attention on ignored positions, summed over rows, (heads,).
        agrees: number of rows that agree with the lexical probe, (heads,).
        by_chance: number of rows that would agree by chance, (heads,).
        probed: number of rows that were compared with the lexical probe.
    """

    SUMS = (
        "term_sums",
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
    SAVED_AS: ClassVar[dict[str, str]] = {"term_sums": "terms"}

    terms = former_attribute("AttentionSums.terms", "term_sums")

    def __init__(self, heads: Collection[int], term_names: Collection[str]):
        self.heads = tuple(heads)
        self.term_names = tuple(term_names)
        self.term_sums = TermSums(
            self.term_names, subsets(self.term_names), heads=len(self.heads), blocks=BLOCKS
        )
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
        return {"heads": self.heads, "term_names": self.term_names}

    def state_dict(self) -> dict[str, Any]:
        """Return all that was summed, the numbers of the heads and the names of their terms."""
        names = {"heads": list(self.heads), "term_names": list(self.term_names)}
        return super().state_dict() | names

    def add_typicality(
        self,
        average: AverageAttention,
        head_terms: AttentionTerms,
        trace: Trace,
        *,
        whole: Bool[Tensor, " batch"],
    ) -> None:
        """Add how similar attention is to its average, and count samples and rows."""
        query_side, key_side = trace.sides(head_terms.attention.kind)
        queries = trace.counted(query_side)[whole]  # (samples, target)
        keys = trace.counted(key_side)[whole]  # (samples, source)
        # of each head and sample, and of each sample
        typicality, exact = average.typicality(head_terms.weights, queries, keys)
        is_known = ~typicality.isnan()  # (heads, samples)
        self.typicality += typicality.where(exact, 0.0).nansum(1)
        self.covered += (is_known & exact).sum(1)
        self.near_typicality += typicality.nansum(1)
        self.near += is_known.sum(1)
        self.samples += len(queries)
        self.rows += int(queries.sum())
        self.beyond += int(average.beyond(queries, keys).sum())

    def add_ignored(self, head_terms: AttentionTerms, trace: Trace, whole: Bool[Tensor, " batch"]) -> None:
        """Add the model's attention on ignored positions, computed from its scores if there are any."""
        query_side, key_side = trace.sides(head_terms.attention.kind)
        ignored = trace.mask(key_side) & ~trace.counted(key_side)  # (batch, source)
        if not bool(ignored.any()):
            return
        queries = trace.counted(query_side) & whole[:, None]  # (batch, target)
        for index, head in enumerate(head_terms.heads):
            weights = trace.softmax(head_terms.attention, head)  # (batch, target, source)
            on_ignored = (weights * ignored[:, None, :]).sum(-1)  # (batch, target)
            self.on_ignored[index] += float(on_ignored[queries].sum())

    def add_agreement(
        self, head_terms: AttentionTerms, trace: Trace, probe: Float[Tensor, "batch target source"]
    ) -> None:
        """Add how often each head agrees with the lexical probe, and how often it would by chance."""
        source = trace.counted("source")  # (batch, source)
        rows = trace.counted("target") & source.any(1)[:, None]  # (batch, target)
        visible = source[:, None, :].expand(probe.shape)[rows]  # (row, source)
        by_chance = float(chance_agreement(probe[rows], visible).sum())
        self.probed += int(rows.sum())
        for index, head in enumerate(head_terms.heads):
            weights, _ = counted_attention(trace, head_terms.attention, head)  # (batch, target, source)
            agrees = agreement(weights[rows], probe[rows], visible)  # (row,)
            self.agrees[index] += float(agrees.sum())
            self.by_chance[index] += by_chance


@dataclass(frozen=True)
class ShareInterval:
    """A share and the ends of its interval of 95 %; NaN where undefined."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class HeadSums:
    """The sums of one head: a view of the sums of its attention.

    Attributes:
        attention: sums of the attention.
        index: of the head among the heads that were analysed.
    """

    attention: AttentionSums
    index: int

    terms = former_attribute("HeadSums.terms", "term_names")
    place = former_attribute("HeadSums.place", "index")

    @property
    def term_names(self) -> tuple[str, ...]:
        """The names of its terms."""
        return self.attention.term_names

    @property
    def shares(self) -> TermShares:
        """The shares that follow from the sums of its terms."""
        return self.attention.term_sums.result(self.index)

    @property
    def blocks(self) -> Float[Tensor, "blocks sums"]:
        """The sums of each block of samples, with the columns of :data:`BLOCK_COLUMNS`.

        These are how much :data:`TERM_GROUPS` explain, how much parts explain if cross terms are split, the
        similarity of attention that :data:`REBUILT` rebuild, and the number of rows.
        """
        sums = self.attention.term_sums
        explained = sums.explained[self.index]  # (terms, blocks)
        similarity = sums.similarity[self.index]  # (subsets, blocks)
        columns = []  # (blocks,) each
        for group in TERM_GROUPS:
            columns.append(self._weights(terms_of(self.term_names, group)) @ explained)
        for part in STATE_PARTS:
            columns.append(self._weights(weights_of(self.term_names, part, "split")) @ explained)
        named_subsets = list(sums.subsets)
        for name in REBUILT:
            columns.append(similarity[named_subsets.index(name)])
        columns.append(sums.rows_of_block.double())
        return torch.stack(columns, 1)

    @property
    def typicality(self) -> float:
        """The mean typicality over the samples that have an average of their size; NaN without any."""
        return _ratio(self._of_head(self.attention.typicality), self._of_head(self.attention.covered))

    @property
    def typicality_coverage(self) -> float:
        """The share of samples that have an average of their size."""
        return _ratio(self._of_head(self.attention.covered), self.attention.samples)

    @property
    def near_typicality(self) -> float:
        """The mean typicality with averages of the nearest sizes; NaN without samples that have one."""
        return _ratio(self._of_head(self.attention.near_typicality), self._of_head(self.attention.near))

    @property
    def near_coverage(self) -> float:
        """The share of samples that have an average of the nearest sizes."""
        return _ratio(self._of_head(self.attention.near), self.attention.samples)

    @property
    def typicality_beyond(self) -> float:
        """The share of samples that are too long for any average."""
        return _ratio(self.attention.beyond, self.attention.samples)

    @property
    def on_ignored(self) -> float:
        """The mean over rows of the model's attention on ignored positions."""
        return _ratio(self._of_head(self.attention.on_ignored), self.attention.rows)

    @property
    def agreement_with_probe(self) -> float:
        """The share of the probed rows that agree with the lexical probe; NaN where none was probed."""
        return _ratio(self._of_head(self.attention.agrees), self.attention.probed)

    @property
    def agreement_by_chance(self) -> float:
        """The share of the probed rows that would agree by chance; NaN where none was probed."""
        return _ratio(self._of_head(self.attention.by_chance), self.attention.probed)

    def _of_head(self, sums: Tensor) -> int | float:
        """Return what one of the sums of the attention, (heads,), is for this head."""
        return sums[self.index].item()

    @former_arguments(fitted="n_fitted_samples")
    def share(
        self, terms: Collection[str] | Mapping[str, float], *, n_fitted_samples: float = math.inf
    ) -> ShareInterval:
        """Return the covariance share of the given terms together, and its interval.

        Samples are independent of each other, the entries of one sample are not. With e_i what these terms
        explain of sample i and v_i what all terms explain of it, the interval follows in six steps:

        1. The share is the ratio S = Σe / Σv.
        2. Samples have unequal weights; m = (Σv)² / Σv² samples of equal weight would vary as much. This is
           at most the number n of samples with a row to explain, also after rounding. Below m = 2 there is no
           interval.
        3. To first order sample i moves the share by u_i = (e_i − S v_i) / Σv (Cochran, *Sampling
           Techniques*, 1977, section 6.4). A ratio has a bias, −Σ u_i v_i / Σv · m / (m − 1); without it the
           share is the middle of the interval.
        4. The variance over samples is Σ u_i² / (1 − 1/m)², as with the jackknife.
        5. The error of the fit adds n / n_f of that variance, since means of n_f samples are applied to n
           others.
        6. Half of the width is the 97.5 % quantile of Student's distribution with m − 1 degrees of freedom,
           times the square root of both variances together.

        Step 5 adds too little for a share near zero where words keep to their positions, as in texts: the fit
        can hardly distinguish the two there, its errors affect all scores of a word, and samples in which the
        share is small do not reveal it.

        Aggregates over heads and comparisons of two analyses take blocks of samples for samples, see
        :mod:`~attnlib.analysis.block_ratios`. One head needs no blocks: the products of what its terms
        explain of each sample, summed over samples, give steps 2 to 4 exactly.

        Args:
            terms: names of terms, or the weight of each term by its name.
            n_fitted_samples: number of samples that the components were fitted on; NaN if these are the
                judged samples.
        """
        sums = self.attention.term_sums
        total = float(sums.total()[self.index])  # Σv
        if math.isnan(total):
            return ShareInterval(math.nan, math.nan, math.nan)
        # 1. the share
        weights = self._weights(terms)  # (terms,)
        explained = float(weights @ sums.explained[self.index].sum(1))  # Σe
        share = explained / total  # S
        # 2. the number of samples of equal weight
        moments = sums.moments[self.index] / total**2  # (terms, terms)
        equal_samples = min(1 / float(moments.sum()), sums.samples)  # m
        if equal_samples < 2:
            return ShareInterval(share, math.nan, math.nan)
        # 3. the middle of the interval
        deviation = weights - share  # (terms,); its product with what terms explain of i is e_i − S v_i
        bias = -float((deviation @ moments).sum()) * equal_samples / (equal_samples - 1)
        middle = share - bias
        # 4. the variance over samples
        variance = max(float(deviation @ moments @ deviation), 0.0) / (1 - 1 / equal_samples) ** 2
        # 5. the variance of the fit
        variance_of_fit = variance * sums.samples / n_fitted_samples
        # 6. the ends of the interval
        half_width = students_quantile(equal_samples - 1) * math.sqrt(variance + variance_of_fit)
        return ShareInterval(share, middle - half_width, middle + half_width)

    def _weights(self, terms: Collection[str] | Mapping[str, float]) -> Float[Tensor, " terms"]:
        """Return the weight of each term of this head: 0 or 1 if only names are given."""
        if not isinstance(terms, Mapping):
            terms = dict.fromkeys(terms, 1.0)
        return torch.tensor([terms.get(name, 0.0) for name in self.term_names], dtype=torch.float64)


def _ratio(total: int | float, count: int | float) -> float:
    """Return a sum over a number of things summed; NaN where there are none."""
    if not count:
        return math.nan
    return total / count


def __getattr__(name: str) -> Any:
    return former_object(__name__, {"HeldOutSums": "attnlib.analysis.judge.JudgedSums"}, name)
