"""What an analysis found, as plain rows: for tables, for files, for the page."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from jaxtyping import Float, Int
from torch import Tensor

from attnlib.adapters.library_models import KINDS
from attnlib.analysis.fit import Fit, Head
from attnlib.analysis.interventions import intervention_rows
from attnlib.analysis.judge import HeadSums, HeldOutSums, SeenCounts, ShareInterval
from attnlib.analysis.learned import has_learned
from attnlib.analysis.part_shares import weights_of
from attnlib.analysis.samples import Sample
from attnlib.analysis.stream import Losses
from attnlib.analysis.terms import PARTS, terms_of
from attnlib.decomposition.components import PART_NAMES, Method
from attnlib.decomposition.term_sums import TermShares
from attnlib.errors import BadInput

if TYPE_CHECKING:
    from IPython.display import HTML
    from pandas import DataFrame

    from attnlib.analysis.aggregate import By, Weigh
    from attnlib.analysis.explain import Explanation
    from attnlib.analysis.report import Name
    from attnlib.analysis.show import Plots, Tables


@dataclass(frozen=True, eq=False)
class Analysis:
    """Everything that a report says."""

    heads: list[dict]  #: a row for each head of each attention, see :func:`head_rows`
    terms: list[dict]  #: a row for each term of each head, long form
    #: a row for each of the states that projections read: words and places seen, share unseen
    states: list[dict]
    fitted: int  #: samples of the first pass
    judged: int  #: samples of the second
    held_out: bool  #: whether they are different samples
    about: dict[str, str] = field(default_factory=dict)  #: what the report says of model and corpus
    losses: Losses = field(default_factory=Losses)  #: what the corpus holds beside the samples of both passes
    unchecked: tuple[str, ...] = ()  #: names of attentions whose scores were compared with nothing
    no_probe: tuple[str, ...] = ()  #: why no lexical probe was taken, where one was asked for
    #: how well it predicts, see :meth:`~attnlib.analysis.learned.Learned.result`
    learned: dict[str, int | float] = field(default_factory=dict)
    method: Method = "means"  #: of the components
    #: how far attention moves when parts come from elsewhere, rows as
    #: :data:`~attnlib.analysis.interventions.INTERVENTION_COLUMNS` has them; empty where it was not asked for
    interventions: list[dict] = field(default_factory=list)
    made: dict[str, dict] = field(default_factory=dict)  #: what else made it: options, checksums, versions
    #: by attention and head what :func:`~attnlib.analysis.compare.compare` needs: sums over samples, by block
    blocks: dict[Head, Float[Tensor, "blocks sums"]] = field(default_factory=dict)
    #: which samples these are, see :func:`~attnlib.analysis.judge.sample_keys`
    keys: Int[Tensor, " blocks"] | None = None
    samples: tuple[Sample, ...] = ()  #: up to a dozen, with attention and what terms rebuild of it
    one_sequence: bool = False  #: whether the model reads one sequence, as a decoder or an encoder alone does

    def __repr__(self) -> str:
        heads, samples = len(self.heads), f"{self.fitted:,} samples, judged on {self.judged:,}"
        beware = ", of a text it has not learned" * bool(self.learned and not has_learned(self.learned))
        return f"Analysis of {heads:,} heads, fitted on {samples}{beware}"

    def _repr_html_(self) -> str:
        """What a notebook shows: what is found, in words, and what to beware of; the page has the rest."""
        from attnlib.analysis.report import findings, notes, sentence

        said = [repr(self), *findings(self), *notes(self)]
        return "".join(f"<p>{escape(sentence(own))}</p>" for own in said)

    @property
    def tables(self) -> "Tables":
        """Data frames of pandas: ``tables.heads()``, ``.terms()``, ``.states()`` and ``.attention()``."""
        from attnlib.analysis.show import Tables

        return Tables(self)

    def to_frame(self) -> "DataFrame":
        """Return the terms as a tidy data frame of pandas, a row for each term of each head.

        Its columns, with their units, are :data:`TERM_COLUMNS`, and after the name of the term the two parts
        that it is of, ``query_part`` and ``key_part`` (None for a position bias). What the parts carry, own
        and split shares side by side, is ``tables.parts()``.

        Raises:
            BadInput: pandas is not installed.
        """
        return self.tables.terms(by_part=True)

    def explain(
        self, sample: int, layer: int, head: int, *, kind: str = "cross", name: "Name | None" = None
    ) -> "Explanation":
        """Return the terms of one head's scores in one of the :attr:`samples`, by name and with words.

        Args:
            sample: number of the sample, from 0.
            layer, head: of the attention, from 0.
            kind: of the attention.
            name: the word of an id, given "source" or "target" and the id; the id itself by default.

        Raises:
            BadInput: there is no such sample, layer or head; an analysis that was read from a report, which
                keeps no sentences.
        """
        from attnlib.analysis.explain import explain

        return explain(self, sample, layer, head, kind=kind, name=name)

    def aggregate(self, by: "By" = "layer", *, weigh: "Weigh" = "scores") -> "DataFrame":
        """Return shares and rebuilt attention of several heads together, a row a measure and group.

        Args:
            by: "layer" puts the heads of an attention together, "kind" those of all layers.
            weigh: "scores" pools sums, so that a head weighs by how much its scores vary; "heads" takes the
                mean over heads, without those that attend evenly. :mod:`attnlib.analysis.aggregate` says
                which to take.

        Raises:
            BadInput: an analysis without blocks of sentences; pandas is not installed.
        """
        return self.tables.aggregate(by, weigh=weigh)

    def show(self, *, name: "Name | None" = None, height: int = 720) -> "HTML":
        """Return the report, with all that moves in it, for a notebook to show below a cell.

        Args:
            name: the word of an id, as of :func:`~attnlib.analysis.report.report`; ids by default.
            height: of the frame, in pixels.

        Raises:
            BadInput: IPython is not installed.
        """
        from attnlib.analysis.show import framed

        return framed(self, name, height)

    @property
    def plot(self) -> "Plots":
        """Figures of matplotlib: ``analysis.plot.heads()``, ``.terms(layer, head)``, ``.attention(…)``."""
        from attnlib.analysis.show import Plots

        return Plots(self)


#: of a row of ``Analysis.terms``
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


def unsure_by_fit(analysis: Analysis) -> float:
    """Return by how much the variance over sentences is larger for what the fit does not know.

    NaN where nothing was held out.
    """
    return 1 + analysis.judged / analysis.fitted if analysis.held_out else math.nan


def results(
    fit: Fit, judgement: HeldOutSums, *, held_out: bool, about: dict[str, str] | None = None
) -> Analysis:
    """The rows that two passes over a corpus come to; BadInput where nothing was judged."""
    if not judgement.samples:
        raise BadInput(
            "the corpus holds no sample with a counted position on either side: its sentences are empty, or "
            "of special tokens alone (which --ignore-special leaves out)"
        )
    if not any(sums.terms.rows for sums in judgement.attentions.values()):
        raise BadInput(
            "no row of attention has two positions to choose from: every sentence that was judged has one at "
            "most; give longer sentences, or cut them later (--longest)"
        )
    heads = head_rows(judgement, held_out=held_out)
    moved = {name: judgement.moved[name] for name in sorted(judgement.moved, key=_order)}
    for row in heads:
        rows = judgement.attentions[f"{row['kind']}.{row['layer']}"].rows
        row["rows_unseen"] = rows - row["rows"] - row["rows_left_out"]
    return Analysis(
        heads=heads,
        terms=term_rows(judgement, held_out=held_out),
        states=state_rows(fit, judgement),
        fitted=fit.samples,
        judged=judgement.samples,
        held_out=held_out,
        about=about or {},
        losses=fit.losses + judgement.losses if held_out else fit.losses,
        unchecked=tuple(sorted(judgement.unchecked, key=_order)),
        no_probe=tuple(sorted(judgement.no_probe)),
        learned=judgement.learned.result(),
        method=fit.method,
        interventions=intervention_rows(moved),
        blocks={head: sums.blocks for head, sums in judgement.heads.items()},
        keys=judgement.keys,
    )


def head_rows(judgement: HeldOutSums, *, held_out: bool = True) -> list[dict]:
    """A row a head, by kind, layer and head.

    ``temporal_share`` and ``input_share`` are covariance shares of the terms of position with position and of
    word with word, ``mixed_share`` that of position with word, ``residual_share`` that of the terms with a
    residual in them; with ``position_bias_share`` they sum to one. Where there is a constant part, a constant
    query with a position is temporal and one with a word is input; ``constant_input_share`` says how much of
    the input share that is, for the papers count it as mixed. ``…_low`` and ``…_high`` are the ends of the
    interval of 95 %, see :meth:`~attnlib.analysis.judge.HeadSums.share`; there is none where nothing was
    ``held_out`` of the fit. ``temporal_split_share`` and the like are the parts' shares where half of each
    term of two parts goes to either, see :mod:`~attnlib.analysis.part_shares`; with the position bias the
    three sum to one. ``temporal_rebuilds`` and the like are
    1 − total variation between the attention that only these terms build and the full one, beside ``uniform``
    for none of them; ``spread`` is the standard deviation of the scores along a row. ``typicality_coverage``
    is the share of samples that have a typicality; ``near_typicality`` joins the nearest sizes, and is of
    nearly all; ``typicality_beyond`` that of samples longer than averages
    are kept of. ``rows_probed`` is how many rows both agreements are of. ``rows`` went into the shares;
    ``rows_left_out`` have one position to choose from. Beside them :func:`results` counts ``rows_unseen``,
    which have none, because their word or those that they might see were not fitted on.
    """
    fitted = float(judgement.fit.samples) if held_out else math.nan
    return [
        {
            **named,
            **_shares(own, fitted),
            **_split_shares(own, fitted),
            "constant_input_share": shares.covariance.get("constant·input", 0.0),
            "temporal_rebuilds": shares.similarity["temporal only"],
            "input_rebuilds": shares.similarity["input only"],
            "no_residual_rebuilds": shares.similarity["no residual"],
            "uniform": shares.similarity["uniform"],
            "typicality": own.mean("typicality", "covered"),
            "typicality_coverage": own.mean("covered", "samples"),
            "near_typicality": own.mean("near_typicality", "near"),
            "near_coverage": own.mean("near", "samples"),
            "typicality_beyond": own.mean("beyond", "samples"),
            "on_ignored": own.mean("on_ignored", "rows"),
            "agreement_with_probe": own.mean("agrees", "probed"),
            "agreement_by_chance": own.mean("by_chance", "probed"),
            "rows_probed": own.count("probed"),
            "spread": shares.spread,
            "rows": shares.rows,
            "rows_left_out": shares.rows_left_out,
        }
        for named, own, shares in _heads(judgement)
    ]


EVEN = 0.99  # attention this near to uniform is what no score would make: its shares are of noise


def is_even(row: dict) -> bool:
    """Whether a head attends evenly; where nothing was rebuilt, it does not."""
    return row["uniform"] >= EVEN


def _shares(sums: HeadSums, fitted: float) -> dict[str, float]:
    """Return the share of each part, and its interval."""
    columns = {}
    for part in PARTS:
        name = part.replace(" ", "_")
        interval = ShareInterval(0.0, 0.0, 0.0)
        if terms := terms_of(sums.terms, part):
            interval = sums.share(terms, fitted=fitted)
        columns[f"{name}_share"] = interval.share
        columns[f"{name}_low"] = interval.low
        columns[f"{name}_high"] = interval.high
    return columns


def _split_shares(sums: HeadSums, fitted: float) -> dict[str, float]:
    """Return the split share of each part, and its interval."""
    columns = {}
    for part in PART_NAMES:
        interval = sums.share(weights_of(sums.terms, part, "split"), fitted=fitted)
        columns[f"{part}_split_share"] = interval.share
        columns[f"{part}_split_low"] = interval.low
        columns[f"{part}_split_high"] = interval.high
    return columns


def term_rows(judgement: HeldOutSums, *, held_out: bool = True) -> list[dict]:
    """Return a row for each term of each head, by :data:`TERM_COLUMNS`; intervals as in :func:`head_rows`."""
    fitted = float(judgement.fit.samples) if held_out else math.nan
    rows = []
    for named, sums, shares in _heads(judgement):
        for term in sums.terms:
            interval = sums.share({term}, fitted=fitted)
            row = {
                "term": term,
                "covariance_share": interval.share,
                "covariance_low": interval.low,
                "covariance_high": interval.high,
                "mean_absolute_share": shares.mean_absolute[term],
                "similarity_without": shares.similarity[f"without {term}"],
                "agreement_without": shares.agreement[f"without {term}"],
            }
            rows.append(named | row)
    return rows


def state_rows(fit: Fit, judgement: HeldOutSums) -> list[dict]:
    """Return a row for each of the states that projections read."""
    rows = []
    for site, components in sorted(fit.components.items()):
        seen = judgement.seen.get(site, SeenCounts())
        valid = seen.valid or math.nan
        rows.append(
            {
                "states": site,
                "width": components.width,
                "words": len(components.tokens),
                "positions": int((components.position_counts > 0).sum()),
                "fitted": components.occurrences,
                "judged": seen.valid,
                "unseen_words": seen.unseen_words / valid,
                "unseen_positions": seen.unseen_places / valid,
                "megabytes": components.nbytes / 1e6,
            }
        )
    return rows


def _heads(judgement: HeldOutSums) -> Iterator[tuple[dict, HeadSums, TermShares]]:
    """Yield what names a head, its sums and its shares, by kind, layer and head."""
    heads = judgement.heads
    for name, head in sorted(heads, key=lambda place: (*_order(place[0]), place[1])):
        kind, layer = name.split(".")
        sums = heads[name, head]
        yield {"kind": kind, "layer": int(layer), "head": head}, sums, sums.shares


def _order(name: str) -> tuple[int, int]:
    kind, layer = name.split(".")
    return KINDS.index(kind), int(layer)
