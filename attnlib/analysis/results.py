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
from attnlib.analysis.judge import HeadSums, HeldOutSums, SeenCounts, ShareInterval
from attnlib.analysis.learned import has_learned
from attnlib.analysis.samples import Sample
from attnlib.analysis.stream import Losses
from attnlib.analysis.terms import PARTS, terms_of
from attnlib.decomposition.components import Method
from attnlib.decomposition.term_sums import TermShares
from attnlib.errors import BadInput

if TYPE_CHECKING:
    from IPython.display import HTML
    from pandas import DataFrame

    from attnlib.report.page import Name
    from attnlib.report.plots import Plots, Tables


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
    made: dict[str, dict] = field(default_factory=dict)  #: what else made it: options, checksums, versions
    #: by attention and head what :func:`~attnlib.report.comparison.compare` needs: sums over samples, by block
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
        from attnlib.report.page import findings, notes, sentence

        said = [repr(self), *findings(self), *notes(self)]
        return "".join(f"<p>{escape(sentence(own))}</p>" for own in said)

    @property
    def tables(self) -> "Tables":
        """Data frames of pandas: ``tables.heads()``, ``.terms()``, ``.states()`` and ``.attention()``."""
        from attnlib.report.plots import Tables

        return Tables(self)

    def to_frame(self) -> "DataFrame":
        """Return the terms as a tidy data frame of pandas, a row for each term of each head.

        Columns: ``kind``, ``layer``, ``head``, ``term`` (such as ``"temporal·input"``), ``covariance_share``
        with the ends of its interval of 95 %, ``mean_absolute_share``, and how well attention is rebuilt
        without the term.
        """
        return self.tables.terms()

    def show(self, *, name: "Name | None" = None, height: int = 720) -> "HTML":
        """Return the report, with all that moves in it, for a notebook to show below a cell.

        Args:
            name: the word of an id, as of :func:`~attnlib.report.page.report`; ids by default.
            height: of the frame, in pixels.

        Raises:
            BadInput: IPython is not installed.
        """
        from attnlib.report.plots import framed

        return framed(self, name, height)

    @property
    def plot(self) -> "Plots":
        """Figures of matplotlib: ``analysis.plot.heads()``, ``.terms(layer, head)``, ``.attention(…)``."""
        from attnlib.report.plots import Plots

        return Plots(self)


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
    ``held_out`` of the fit. ``temporal_rebuilds`` and the like are
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


def term_rows(judgement: HeldOutSums, *, held_out: bool = True) -> list[dict]:
    """Return a row for each term of each head; intervals are as :func:`head_rows` has them."""
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
