"""The results of an analysis as plain rows of numbers, which know nothing of how they are shown."""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field

from jaxtyping import Float, Int
from torch import Tensor

from attnlib.analysis.columns import rebuilt_column, share_column
from attnlib.analysis.fit import Fit
from attnlib.analysis.heads import Head, attention_rank
from attnlib.analysis.interventions import intervention_rows
from attnlib.analysis.judge import HeadSums, JudgedSums, SeenCounts, ShareInterval
from attnlib.analysis.learned import has_learned
from attnlib.analysis.part_shares import weights_of
from attnlib.analysis.samples import Sample
from attnlib.analysis.stream import CorpusGaps
from attnlib.decomposition.components import STATE_PARTS, Method
from attnlib.decomposition.term_names import REBUILT, TERM_GROUPS, terms_of
from attnlib.decomposition.term_sums import TermShares
from attnlib.errors import BadInput


@dataclass(frozen=True, eq=False)
class Analysis:
    """The results of an analysis, as plain data.

    Functions of :mod:`attnlib.report` return an :class:`~attnlib.report.views.AnalysisWithViews`, which has
    the same data and shows it as tables, figures and a page.

    Attributes:
        heads: a row for each head of each attention, with the columns of :data:`HEAD_COLUMNS`.
        terms: a row for each term of each head, with the columns of :data:`TERM_COLUMNS`.
        states: a row for each of the states that projections read, see :func:`state_rows`.
        fitted: how many samples the components were fitted on.
        judged: how many samples the heads were judged on.
        held_out: whether these are different samples.
        about: what the report says of model and corpus, by title.
        losses: what of the corpus neither pass has read.
        unchecked: names of attentions whose scores were not compared with the model's own attention.
        no_probe: why no lexical probe was taken, where one was requested.
        learned: how well the model predicts, see :meth:`~attnlib.analysis.learned.Learned.result`.
        method: of the components.
        interventions: how far attention moves when parts are exchanged, a row for each head, way, side and
            part, with the columns of :data:`~attnlib.analysis.interventions.INTERVENTION_COLUMNS`; empty
            where it was not requested.
        made: options, checksums and versions that the results follow from, by group.
        blocks: sums over samples by block, (blocks, sums), which a comparison of two analyses needs; by
            attention and head.
        keys: which samples these are, see :func:`~attnlib.analysis.judge.sample_keys`.
        samples: up to a dozen judged samples, with attention and what terms rebuild of it.
        one_sequence: whether the model reads one sequence, as a decoder or an encoder alone does.

    Example:
        >>> row = {"kind": "cross", "layer": 0, "head": 0, "temporal_share": 0.8}
        >>> counts = {"fitted": 800, "judged": 200, "held_out": True}
        >>> Analysis(heads=[row], terms=[], states=[], **counts, method="least_squares")
        Analysis of 1 heads, fitted on 800 samples, judged on 200
    """

    heads: list[dict]
    terms: list[dict]
    states: list[dict]
    _: KW_ONLY
    fitted: int
    judged: int
    held_out: bool
    method: Method
    about: dict[str, str] = field(default_factory=dict)
    losses: CorpusGaps = field(default_factory=CorpusGaps)
    unchecked: tuple[str, ...] = ()
    no_probe: tuple[str, ...] = ()
    learned: dict[str, int | float] = field(default_factory=dict)
    interventions: list[dict] = field(default_factory=list)
    made: dict[str, dict] = field(default_factory=dict)
    blocks: dict[Head, Float[Tensor, "blocks sums"]] = field(default_factory=dict)
    keys: Int[Tensor, " blocks"] | None = None
    samples: tuple[Sample, ...] = ()
    one_sequence: bool = False

    def __repr__(self) -> str:
        text = (
            f"Analysis of {len(self.heads):,} heads, fitted on {self.fitted:,} samples, "
            f"judged on {self.judged:,}"
        )
        if self.learned and not has_learned(self.learned):
            text += ", of a text it has not learned"
        return text


#: the columns of a row of ``Analysis.terms``
TERM_COLUMNS = {
    "kind": "of the attention: cross, encoder_self or decoder_self",
    "layer": "of the attention, from 0",
    "head": "number of the head, from 0",
    "term": "part of the query · part of the key, such as temporal·input; or position bias",
    "covariance_share": "cov(term, score) / var(score); the terms of a head sum to one",
    "covariance_low": "lower end of its interval of 95 %; NaN where nothing was held out",
    "covariance_high": "upper end of it",
    "mean_absolute_share": "mean size of the term over the sum of such means; the terms of a head sum to one",
    "similarity_without": "1 − total variation of the attention rebuilt without the term, from 0 to 1",
    "agreement_without": "share of rows whose largest entry stays in place without the term, from 0 to 1",
}


#: the columns of a row of ``Analysis.heads``; shares are covariance shares of groups of terms, and the ends
#: of their intervals of 95 %, see :meth:`~attnlib.analysis.judge.HeadSums.share`, are NaN where nothing was
#: held out of the fit
HEAD_COLUMNS = {
    "kind": "of the attention: cross, encoder_self or decoder_self",
    "layer": "of the attention, from 0",
    "head": "number of the head, from 0",
    "temporal_share": "of the terms of position with position; a constant with a position is one of them",
    "temporal_low": "lower end of its interval",
    "temporal_high": "upper end of it",
    "input_share": "of the terms of word with word; a constant query with a word is one of them",
    "input_low": "lower end of its interval",
    "input_high": "upper end of it",
    "mixed_share": "of the terms of position with word",
    "mixed_low": "lower end of its interval",
    "mixed_high": "upper end of it",
    "residual_share": "of the terms with a residual in them",
    "residual_low": "lower end of its interval",
    "residual_high": "upper end of it",
    "position_bias_share": "of the position bias; the five shares so far sum to one",
    "position_bias_low": "lower end of its interval",
    "position_bias_high": "upper end of it",
    "temporal_split_share": "of the temporal part if half of each term of two parts goes to either",
    "temporal_split_low": "lower end of its interval",
    "temporal_split_high": "upper end of it",
    "input_split_share": "of the input part, likewise",
    "input_split_low": "lower end of its interval",
    "input_split_high": "upper end of it",
    "residual_split_share": "of the residual part; the three split shares and that of the bias sum to one",
    "residual_split_low": "lower end of its interval",
    "residual_split_high": "upper end of it",
    "constant_input_share": "of a constant query with a word, which the papers count as mixed",
    "temporal_rebuilds": "1 − total variation between attention from temporal terms alone and the full one",
    "input_rebuilds": "likewise from input terms alone",
    "no_residual_rebuilds": "likewise from all terms without a residual",
    "uniform": "likewise from no term, which is uniform attention",
    "typicality": "mean over the samples that have an average of their size",
    "typicality_coverage": "share of the samples that have one",
    "near_typicality": "mean typicality with averages of the nearest sizes",
    "near_coverage": "share of the samples that have such an average",
    "typicality_beyond": "share of the samples that are longer than averages are kept of",
    "on_ignored": "mean attention of the model on ignored positions",
    "agreement_with_probe": "share of the probed rows that agree with the lexical probe",
    "agreement_by_chance": "share of the probed rows that would agree by chance",
    "rows_probed": "number of rows compared with the lexical probe",
    "spread": "standard deviation of the scores along a row",
    "rows": "number of rows of attention that the shares are of",
    "rows_left_out": "number of rows with one position to choose from",
    "rows_unseen": "number of rows without shares: their word, or all they might see, was not fitted on",
}


def variance_factor(analysis: Analysis) -> float:
    """Return by what factor the error of the fit enlarges the variance over sentences.

    NaN where nothing was held out.
    """
    if not analysis.held_out:
        return math.nan
    return 1 + analysis.judged / analysis.fitted


def results(
    fit: Fit, judgement: JudgedSums, *, held_out: bool, about: dict[str, str] | None = None
) -> Analysis:
    """Return the analysis that follows from the sums of two passes over a corpus.

    Args:
        fit: sums of the first pass.
        judgement: sums of the second.
        held_out: whether the two passes read different samples.
        about: what a report says of model and corpus, by title.

    Raises:
        BadInput: nothing was judged.
    """
    _require_something_judged(judgement)
    losses = fit.losses
    if held_out:
        losses = losses + judgement.losses
    moved_names = sorted(judgement.moved, key=attention_rank)
    moved = {name: judgement.moved[name] for name in moved_names}
    unchecked = sorted(judgement.unchecked, key=attention_rank)
    rows = head_rows(judgement, held_out=held_out)
    return Analysis(
        heads=_with_rows_unseen(rows, judgement),
        terms=term_rows(judgement, held_out=held_out),
        states=state_rows(fit, judgement),
        fitted=fit.samples,
        judged=judgement.samples,
        held_out=held_out,
        about=about or {},
        losses=losses,
        unchecked=tuple(unchecked),
        no_probe=tuple(sorted(judgement.no_probe)),
        learned=judgement.learned.result(),
        method=fit.method,
        interventions=intervention_rows(moved),
        blocks={head: sums.blocks for head, sums in judgement.heads.items()},
        keys=judgement.keys,
    )


def _require_something_judged(judgement: JudgedSums) -> None:
    if not judgement.samples:
        raise BadInput(
            "the corpus holds no sample with a counted position on either side: its sentences are empty, or "
            "of special tokens alone (which --ignore-special leaves out)"
        )
    if not any(sums.term_sums.rows for sums in judgement.attentions.values()):
        raise BadInput(
            "no row of attention has two positions to choose from: every sentence that was judged has one at "
            "most; give longer sentences, or cut them later (--longest)"
        )


def _with_rows_unseen(rows: list[dict], judgement: JudgedSums) -> list[dict]:
    """Return rows of heads with the number of rows of attention that have no shares."""
    completed = []
    for row in rows:
        n_rows = judgement.attentions[Head.of_row(row).attention].rows
        unseen = n_rows - row["rows"] - row["rows_left_out"]
        completed.append(row | {"rows_unseen": unseen})
    return completed


def head_rows(judgement: JudgedSums, *, held_out: bool = True) -> list[dict]:
    """Return a row for each head, with the columns of :data:`HEAD_COLUMNS` except for ``rows_unseen``.

    Args:
        judgement: sums of the second pass.
        held_out: whether the two passes read different samples; if not, shares have no intervals.
    """
    n_fitted_samples = _n_fitted_samples(judgement, held_out=held_out)
    rows = []
    for head, sums in _heads(judgement):
        shares = sums.shares
        row = head | _shares(sums, n_fitted_samples) | _split_shares(sums, n_fitted_samples)
        row |= {"constant_input_share": shares.covariance.get("constant·input", 0.0)}
        row |= _rebuilt_attention(shares) | _typicality(sums) | _agreement(sums)
        row |= {"spread": shares.spread, "rows": shares.rows, "rows_left_out": shares.rows_left_out}
        rows.append(row)
    return rows


def _rebuilt_attention(shares: TermShares) -> dict[str, float]:
    """Return the columns that say how near attention from some terms is to the full one."""
    columns = {rebuilt_column(subset): shares.similarity[subset] for subset in REBUILT}
    return columns | {"uniform": shares.similarity["uniform"]}


def _typicality(sums: HeadSums) -> dict[str, float]:
    """Return the columns of typicality, and the shares of samples and rows that it is of."""
    return {
        "typicality": sums.typicality,
        "typicality_coverage": sums.typicality_coverage,
        "near_typicality": sums.near_typicality,
        "near_coverage": sums.near_coverage,
        "typicality_beyond": sums.typicality_beyond,
        "on_ignored": sums.on_ignored,
    }


def _agreement(sums: HeadSums) -> dict[str, int | float]:
    """Return the columns of the agreement with the lexical probe."""
    return {
        "agreement_with_probe": sums.agreement_with_probe,
        "agreement_by_chance": sums.agreement_by_chance,
        "rows_probed": sums.attention.probed,
    }


EVEN = 0.99  # similarity with uniform attention from which on a head is even, and its shares are noise


def is_even(row: dict) -> bool:
    """Return True if a head attends almost uniformly; False also where no attention was rebuilt."""
    return row["uniform"] >= EVEN


def _shares(sums: HeadSums, n_fitted_samples: float) -> dict[str, float]:
    """Return the columns of the share of each group of terms, with its interval."""
    columns = {}
    for group in TERM_GROUPS:
        terms = terms_of(sums.term_names, group)
        interval = ShareInterval(0.0, 0.0, 0.0)
        if terms:
            interval = sums.share(terms, n_fitted_samples=n_fitted_samples)
        columns[share_column(group)] = interval.share
        columns[share_column(group, "low")] = interval.low
        columns[share_column(group, "high")] = interval.high
    return columns


def _split_shares(sums: HeadSums, n_fitted_samples: float) -> dict[str, float]:
    """Return the split share of each part, and its interval."""
    columns = {}
    for part in STATE_PARTS:
        weights = weights_of(sums.term_names, part, "split")
        interval = sums.share(weights, n_fitted_samples=n_fitted_samples)
        columns[share_column(part, split=True)] = interval.share
        columns[share_column(part, "low", split=True)] = interval.low
        columns[share_column(part, "high", split=True)] = interval.high
    return columns


def term_rows(judgement: JudgedSums, *, held_out: bool = True) -> list[dict]:
    """Return a row for each term of each head, by :data:`TERM_COLUMNS`; intervals as in :func:`head_rows`."""
    n_fitted_samples = _n_fitted_samples(judgement, held_out=held_out)
    rows = []
    for head, sums in _heads(judgement):
        shares = sums.shares
        for term in sums.term_names:
            interval = sums.share({term}, n_fitted_samples=n_fitted_samples)
            without_term = f"without {term}"
            row = {
                "term": term,
                "covariance_share": interval.share,
                "covariance_low": interval.low,
                "covariance_high": interval.high,
                "mean_absolute_share": shares.mean_absolute[term],
                "similarity_without": shares.similarity[without_term],
                "agreement_without": shares.agreement[without_term],
            }
            rows.append(head | row)
    return rows


def state_rows(fit: Fit, judgement: JudgedSums) -> list[dict]:
    """Return a row for each of the states that projections read."""
    rows = []
    for site, components in sorted(fit.components.items()):
        counts = judgement.seen.get(site, SeenCounts())
        n_positions = int((components.position_counts > 0).sum())
        judged_places = counts.valid or math.nan  # a share of no places is NaN
        rows.append(
            {
                "states": site,
                "width": components.width,
                "words": len(components.tokens),
                "positions": n_positions,
                "fitted": components.occurrences,
                "judged": counts.valid,
                "unseen_words": counts.unseen_words / judged_places,
                "unseen_positions": counts.unseen_positions / judged_places,
                "megabytes": components.nbytes / 1e6,
            }
        )
    return rows


def _n_fitted_samples(judgement: JudgedSums, *, held_out: bool) -> float:
    """Return how many samples the components were fitted on; NaN if they are the judged ones."""
    if not held_out:
        return math.nan
    return float(judgement.fit.samples)


def _heads(judgement: JudgedSums) -> Iterator[tuple[dict, HeadSums]]:
    """Yield the columns that name a head, and its sums, by kind, layer and head."""
    sums_of_head = judgement.heads
    for head in sorted(sums_of_head, key=lambda head: head.rank):
        yield head.columns, sums_of_head[head]
