"""Second pass over a corpus: the terms of every head's scores, from components of the first pass."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.adapters.attended import Attended, LinearMap, Rotation
from attnlib.adapters.model_pass import ModelPass
from attnlib.analysis.fit import Fit, Head, Sums, chosen_heads, counted_attention, grouped, head_of
from attnlib.analysis.learned import Learned
from attnlib.decomposition.components import PART_NAMES, Means
from attnlib.decomposition.substitution import centred, total_variation
from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, chance_agreement

CONSTANT = "constant"
NINE = tuple(f"{decoder}·{encoder}" for decoder in PART_NAMES for encoder in PART_NAMES)
POSITION_BIAS = "position bias"
NO_SIGNAL = 1e-12  # below this share of the terms' own squares, a total is rounding
PARTS = ("temporal", "input", "mixed", "residual", POSITION_BIAS)
REBUILT = ("temporal only", "input only", "no residual")  # the subsets of terms that blocks are kept of
ENTRIES_AT_ONCE = 1 << 20  # of terms, in float64, that are summed at once
NUMBERS_AT_ONCE = 1 << 18  # of a part of a side, of which products are made at once
BLOCKS = 64  # into which samples fall by what they hold: two analyses of one text have the same
_ODD = 6364136223846793005  # of a generator of random numbers (Knuth)


class Judgement(Sums):
    """Sums of the second pass, by the components of a fit.

    ``seen`` counts, of each of the states, ``valid`` positions, and those with ``unseen_words`` and
    ``unseen_places``, which the fit never saw. ``keys`` are those of the samples, summed by block.
    """

    TABLES = ("heads", "seen")

    def __init__(self, fit: Fit):
        super().__init__()
        self.fit = fit
        self.heads: dict[Head, HeadSums] = {}
        self.seen: dict[str, Counter] = defaultdict(Counter)
        self.learned = Learned()
        self.keys = torch.zeros(BLOCKS, dtype=torch.int64)
        self.unchecked = fit.unchecked  # attentions that were unchecked in the first pass are unchecked

    def update(
        self, one: ModelPass, probe: Float[Tensor, "batch target source"] | None = None
    ) -> "Judgement":
        """Add a pass; ``probe`` is β, which its cross-attentions are compared with."""
        whole = self._begin(one)
        if whole is None:
            return self
        keys = sample_keys(one)[whole].cpu()
        blocks = block_of(keys)
        self.keys.index_add_(0, blocks, keys)
        means = {site: self._means(site, *own, one, whole) for site, own in one.sites().items()}
        for attended in one.attended:
            query, key = means[attended.query_site], means[attended.key_site]
            heads = chosen_heads(attended, self.fit.heads)
            names, terms = _terms(attended, heads, whole, query, key, self.fit.method)
            known = None
            if self.fit.method != "means":
                known = query.known[:, :, None] & key.known[:, None, :]
            self._add(one, attended, heads, whole, names, terms, known, blocks)
            if probe is not None and attended.kind == "cross":
                for head in heads:
                    self._add_agreement(one, attended, head, probe)
        return self

    def _means(self, site: str, side: str, states: Tensor, one: ModelPass, whole: Tensor) -> Means:
        if site not in self.fit.components:
            known = ", ".join(self.fit.components) or "none"
            raise BadInput(f"no components of {site}; the fit has those of {known}")
        mask = one.counted(side)[whole]
        found = self.fit.components[site].means(states[whole], one.tokens(side)[whole], mask)
        unseen = {"unseen_words": found.unseen_tokens, "unseen_places": found.unseen_positions}
        self.seen[site].update(valid=int(mask.sum()), **unseen)
        return found

    def _add(
        self,
        one: ModelPass,
        attended: Attended,
        heads: list[int],
        whole: Bool[Tensor, " batch"],
        names: tuple[str, ...],
        terms: Float[Tensor, "heads terms samples target source"],
        known: Bool[Tensor, "samples target source"] | None,
        blocks: Int[Tensor, " samples"],
    ) -> None:
        own = [self.heads.setdefault((attended.name, head), HeadSums(names)) for head in heads]
        attention, allowed = counted_attention(one, attended, heads)
        judged = allowed[whole] if known is None else allowed[whole] & known
        add_terms([each.terms for each in own], terms, judged, blocks)
        query_side, key_side = one.sides(attended.kind)
        queries, keys = one.counted(query_side)[whole], one.counted(key_side)[whole]
        averages = self.fit.averages[attended.name]
        near, exact = averages.typicality(attention[:, whole], queries, keys)
        found = {
            "typical": near.where(exact, 0).nansum(1),
            "near_typical": near.nansum(1),
            "covered": (~near.isnan() & exact).sum(1),
            "near": (~near.isnan()).sum(1),
        }
        ignored = one.mask(key_side) & ~one.counted(key_side)
        if bool(ignored.any()):  # else nothing is there, and no attention need be made again
            there = [one.softmax(attended, head) * ignored[:, None, :] for head in heads]
            found["on_ignored"] = torch.stack([each.sum(-1)[whole][queries].sum() for each in there])
        beyond, rows = int(averages.beyond(queries, keys).sum()), int(queries.sum())
        for each, *values in zip(own, *(sums.tolist() for sums in found.values()), strict=True):
            each.totals.update(dict(zip(found, values, strict=True)))
            each.totals.update(samples=len(exact), beyond=beyond, rows=rows)

    def _add_agreement(self, one: ModelPass, attended: Attended, head: int, probe: Tensor) -> None:
        rows = one.counted("target") & one.counted("source").any(1)[:, None]
        seen = one.counted("source")[:, None, :].expand(probe.shape)[rows]
        attention, _ = counted_attention(one, attended, head)
        agrees = agreement(attention[rows], probe[rows], seen)
        chance = chance_agreement(probe[rows], seen)
        own = self.heads[attended.name, head].totals
        own.update(agrees=float(agrees.sum()), by_chance=float(chance.sum()), probed=len(agrees))

    def __add__(self, other: "Judgement") -> "Judgement":
        merged = super().__add__(other)
        merged.learned = self.learned + other.learned
        merged.keys = self.keys + other.keys
        return merged

    def empty(self) -> "Judgement":
        return Judgement(self.fit)

    def tensors(self) -> dict[str, Tensor]:
        return {"keys": self.keys} | {
            f"heads/{attention}/{head}/{name}": each
            for (attention, head), own in self.heads.items()
            for name, each in own.terms.sums.items()
        }

    def facts(self) -> dict:
        heads = {
            f"{attention}/{head}": {"terms": own.terms.terms, "totals": own.totals}
            for (attention, head), own in self.heads.items()
        }
        return super().facts() | {"heads": heads, "seen": self.seen, "learned": self.learned.facts()}

    def restore(self, tensors: dict[str, Tensor], facts: dict) -> "Judgement":
        self.seen = defaultdict(Counter, {site: Counter(own) for site, own in facts["seen"].items()})
        self.learned, self.keys = Learned.of_facts(facts["learned"]), tensors["keys"].clone()
        sums = grouped(tensors, "heads")
        for key, own in facts["heads"].items():
            head = self.heads[head_of(key)] = HeadSums(tuple(own["terms"]))
            head.totals = Counter(own["totals"])
            head.terms.sums = {name: tensor.clone() for name, tensor in sums[key].items()}
        return super().restore(tensors, facts)


def sample_keys(one: ModelPass) -> Int[Tensor, " batch"]:
    """A number of each sample, made of its words alone: the same in whatever batch it is read."""
    keys = torch.zeros_like(one.source_tokens[:, 0])
    for tokens, mask in ((one.source_tokens, one.source_mask), (one.target_outputs, one.target_mask)):
        powers = torch.full_like(tokens[0], _ODD).cumprod(0)  # beyond 2^63 they begin again
        keys = keys * _ODD + ((tokens + 1) * mask * powers).sum(1)
    return keys


def block_of(keys: Int[Tensor, " samples"]) -> Int[Tensor, " samples"]:
    """Which of the :data:`BLOCKS` samples fall into."""
    return (keys >> 32) % BLOCKS


def _terms(
    attended: Attended, heads: list[int], whole: Bool[Tensor, " batch"], query: Means, key: Means, method: str
) -> tuple[tuple[str, ...], Float[Tensor, "heads terms samples target source"]]:
    """Names of the terms, and the terms of some heads: the products of the parts of both sides.

    Means have the constant part in the temporal one. Else, without a rotation, the constant part of the key
    adds the same along a row, which softmax does not see: it is left out.
    """
    queries, keys = (own[whole][:, heads] for own in (attended.queries, attended.keys))
    mine = _parts(attended.query_map, heads, attended.query_rotation, query, attended.scale)
    theirs = _parts(attended.key_map, heads, attended.key_rotation, key, 1.0)
    names = named = (CONSTANT, *PART_NAMES)
    if method == "means":
        names = named = PART_NAMES
    elif attended.key_rotation is None:
        named = PART_NAMES
    at_once, terms = max(1, NUMBERS_AT_ONCE // max(queries[0].numel(), keys[0].numel())), []
    for start in range(0, len(queries), at_once):
        some = slice(start, start + at_once)
        sides = mine(some, queries[some]), theirs(some, keys[some])
        if method == "means":
            sides = tuple([own[0] + own[1], *own[2:]] for own in sides)
        first, second = (
            torch.stack(torch.broadcast_tensors(*own[-len(kept) :]), 2).flatten(2, 3)
            for own, kept in zip(sides, (names, named), strict=True)
        )
        products = (first @ second.mT).unflatten(3, (len(named), -1)).unflatten(2, (len(names), -1))
        terms.append(products.permute(1, 2, 4, 0, 3, 5).flatten(1, 2))
    names, terms = tuple(f"{one}·{other}" for one in names for other in named), torch.cat(terms, 2)
    if attended.position_bias is None:
        return names, terms
    bias = attended.position_bias[:, heads]
    bias = (bias[whole] if len(bias) > 1 else bias.expand(terms.shape[2], -1, -1, -1)).transpose(0, 1)
    return (*names, POSITION_BIAS), torch.cat([terms, bias[:, None]], 1)


def _parts(
    linear: LinearMap, heads: list[int], rotation: Rotation | None, means: Means, factor: float
) -> Callable[[slice, Tensor], list[Float[Tensor, "#samples heads length head_width"]]]:
    """What makes the constant, temporal, input and residual part of what a projection made of some samples.

    The first three are looked up among projected tables, so that no state goes through the projection again.
    The bias of a projection is constant too.
    """
    linear = linear.of_heads(heads)
    rows = [means.centre[None], means.temporal - means.centre, means.input]
    centre, temporal, words = linear.without_bias(torch.cat(rows)).split([len(own) for own in rows], 1)
    if linear.bias is not None:
        centre = centre + linear.bias[:, None]
    fixed = [
        own[None] if rotation is None else rotation(own[None])
        for own in (centre.expand_as(temporal), temporal)
    ]
    constant, temporal = (own * factor for own in fixed)
    both = constant + temporal

    def parts(some: slice, whole: Float[Tensor, "samples heads length head_width"]) -> list[Tensor]:
        own = words[:, means.word[some]].transpose(0, 1)
        own = (own if rotation is None else rotation(own)) * factor
        return [constant, temporal, own, (whole - both).sub_(own)]

    return parts


def part_of(term: str) -> str:
    """What a term depends on: "temporal", "input", "mixed", "residual" or "position bias".

    A constant query is the same everywhere: the term of it and a position is temporal, that of it and a
    word input.

    >>> list(map(part_of, ("constant·input", "temporal·input", "input·residual", "constant·temporal")))
    ['input', 'mixed', 'residual', 'temporal']
    """
    if term == POSITION_BIAS:
        return term
    parts = set(term.split("·")) - {CONSTANT}
    if "residual" in parts:
        return "residual"
    return "mixed" if len(parts) == 2 else (*parts, "temporal")[0]


def terms_of(terms: Iterable[str], part: str) -> frozenset[str]:
    """Those of some terms that depend on this."""
    return frozenset(term for term in terms if part_of(term) == part)


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
            # of each sample the products of its terms with its scores: sums of their squares and products
            "moments": torch.zeros(size, size, dtype=torch.float64),
            "samples": torch.zeros((), dtype=torch.int64),
            # by block: what each part explains, how much each subset rebuilds, rows
            "blocks": torch.zeros(BLOCKS, len(PARTS) + len(REBUILT) + 1, dtype=torch.float64),
        }

    def update(
        self,
        terms: Float[Tensor, "terms batch target source"],
        allowed: Bool[Tensor, "batch target source"],
        blocks: Int[Tensor, " batch"] | None = None,
    ) -> "TermSums":
        """Add a batch; ``allowed`` is what each query may see, a row without any is padding.

        ``blocks``: into which each sample falls, see :func:`block_of`; all into the first by default.
        Raises BadInput for shapes that do not fit together.
        """
        if allowed.dim() != 3 or terms.shape != (len(self.terms), *allowed.shape):
            raise BadInput(
                f"terms of shape {tuple(terms.shape)} with allowed of {tuple(allowed.shape)}; expected "
                f"({len(self.terms)}, batch, target, source) and the last three again"
            )
        blocks = torch.zeros(len(allowed), dtype=torch.int64) if blocks is None else blocks
        add_terms([self], terms[None], allowed, blocks)
        return self

    def share(self, terms: Collection[str], *, fitted: float = math.inf) -> tuple[float, float, float]:
        """Covariance share of some terms together, and its interval of 95 %; NaN where undefined.

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
        """
        chosen = torch.tensor([term in terms for term in self.terms], dtype=torch.float64)
        products, count = self.sums["products"].sum(1), int(self.sums["samples"])
        total = float(products.sum())
        if not total > NO_SIGNAL * float(self.sums["products"].diagonal().sum()):
            return (math.nan,) * 3
        share = float(chosen @ products) / total
        apart, moments = chosen - share, self.sums["moments"] / total**2
        samples = min(1 / float(moments.sum()), count)  # of equal weight they would be so many
        if samples < 2:
            return share, math.nan, math.nan
        middle = share + float((apart @ moments).sum()) * samples / (samples - 1)
        variance = max(float(apart @ moments @ apart), 0.0) / (1 - 1 / samples) ** 2 * (1 + count / fitted)
        half = student(samples - 1) * math.sqrt(variance)
        return share, middle - half, middle + half

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


def add_terms(
    sums: Sequence[TermSums],
    terms: Float[Tensor, "heads terms batch target source"],
    allowed: Bool[Tensor, "batch target source"],
    blocks: Int[Tensor, " batch"],
) -> None:
    """Add a batch to the sums of several heads of one attention, some at once."""
    visible = allowed.sum(-1)
    sample, target = (visible >= 2).nonzero().unbind(1)
    valid = allowed[sample, target]
    counts = torch.tensor([int(valid.sum()), len(valid), int((visible == 1).sum())])
    samples = int((visible >= 2).any(1).sum())
    of_sample, of_block = (
        torch.zeros(len(sample), size, dtype=torch.float64, device=terms.device).scatter_(1, at[:, None], 1.0)
        for at, size in ((sample, len(visible)), (blocks.to(sample.device)[sample], BLOCKS))
    )
    at_once = max(1, ENTRIES_AT_ONCE // max(1, terms.shape[1] * valid.numel()))
    for start in range(0, len(sums), at_once):
        rows = terms[start : start + at_once, :, sample, target].double()
        found = _sums_of(sums[0], rows, valid, terms.dtype)
        by_row, rebuilt = found.pop("by_row"), found.pop("rebuilt")
        explained = by_row @ of_sample
        found["moments"] = explained @ explained.mT
        parts = _weights(sums[0].terms)[0].to(by_row)
        every = torch.cat([parts @ by_row, rebuilt, torch.ones_like(rebuilt[:, :1])], 1)
        found["blocks"] = (every @ of_block).mT
        for name, values in found.items():
            for own, value in zip(sums[start : start + at_once], values.cpu(), strict=True):
                own.sums[name] += value
    for own in sums:
        own.sums["counts"] += counts
        own.sums["samples"] += samples


@lru_cache
def _weights(terms: tuple[str, ...]) -> tuple[Float[Tensor, "parts terms"], Float[Tensor, "sets terms"]]:
    """Which terms are of each part, and which of all of them and of each subset."""
    parts = [[part_of(term) == part for term in terms] for part in PARTS]
    sets = [[term in names for term in terms] for names in (terms, *subsets(terms).values())]
    return torch.tensor(parts, dtype=torch.float64), torch.tensor(sets, dtype=torch.float64)


def _sums_of(
    one: TermSums,
    rows: Float[Tensor, "heads terms rows source"],
    valid: Bool[Tensor, "rows source"],
    dtype: torch.dtype,
) -> dict[str, Tensor]:
    """What some rows of terms, overwritten, add to the sums of their heads, heads first.

    ``by_row``: products of each term with the scores; ``rebuilt``: 1 − total variation of the rows that the
    subsets :data:`REBUILT` build.
    """
    rows = centred(rows.masked_fill_(~valid, 0.0), valid)
    flat, sizes = rows.flatten(2), rows.abs()
    scores = (_weights(one.terms)[1].to(rows) @ flat).unflatten(2, valid.shape)
    # A word that is twice in the source is tied but for rounding: that much slack makes it a tie.
    slack = 16 * torch.finfo(dtype).eps * sizes.amax((1, 3))[:, None, :, None]
    total = scores[:, :1].clone()
    largest = scores.masked_fill_(~valid, -torch.inf).amax(-1, keepdim=True)
    best = scores >= largest - slack
    attention = scores.sub_(largest).exp_()  # torch's softmax of float64 takes thrice as long
    attention /= attention.sum(-1, keepdim=True)
    similar = 1 - total_variation(attention[:, 1:], attention[:, :1])
    agree = (best[:, 1:] & best[:, :1]).sum(-1) / best[:, 1:].sum(-1, dtype=torch.float64)
    return {
        "absolute": sizes.sum((2, 3)),
        "products": flat @ flat.mT,
        "similarity": similar.sum(-1),
        "agreement": agree.sum(-1),
        "by_row": (rows * total).sum(-1),
        "rebuilt": similar[:, [list(one.subsets).index(name) for name in REBUILT]],
    }


def subsets(terms: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Sets of terms to rebuild attention from."""
    every = frozenset(terms)
    temporal = terms_of(terms, "temporal")
    found = {
        "uniform": frozenset(),
        "temporal only": temporal,
        "input only": terms_of(terms, "input"),
        "no residual": frozenset(term for term in terms if "residual" not in term),
    }
    if POSITION_BIAS in every:
        found |= {
            "position bias only": frozenset({POSITION_BIAS}),
            "temporal and position bias": temporal | {POSITION_BIAS},
        }
    return found | {f"without {term}": every - {term} for term in terms}


_EXPANDED = 500.0  # degrees from which on an expansion is exact to the last digits
_NORMAL = 1.959963984540054  # the 97.5 % quantile of the normal distribution
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)  # of a quadrature on (-1, 1)


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


def _named(names: Iterable[str], values: Tensor) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))
