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
from attnlib.analysis.judge import PARTS, HeadSums, Judgement, TermShares, TermSums, terms_of
from attnlib.analysis.learned import has_learned
from attnlib.analysis.samples import Sample
from attnlib.analysis.stream import Losses
from attnlib.decomposition.components import Method
from attnlib.errors import BadInput

if TYPE_CHECKING:
    from IPython.display import HTML
    from pandas import DataFrame

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

        Columns: ``kind``, ``layer``, ``head``, ``term`` (such as ``"temporal·input"``), ``covariance_share``
        with the ends of its interval of 95 %, ``mean_absolute_share``, and how well attention is rebuilt
        without the term.
        """
        return self.tables.terms()

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


def results(
    fit: Fit, judgement: Judgement, *, held_out: bool, about: dict[str, str] | None = None
) -> Analysis:
    """The rows that two passes over a corpus come to; BadInput where nothing was judged."""
    if not judgement.samples:
        raise BadInput(
            "the corpus holds no sample with a counted position on either side: its sentences are empty, or "
            "of special tokens alone (which --ignore-special leaves out)"
        )
    if not any(int(own.terms.sums["counts"][1]) for own in judgement.heads.values()):
        raise BadInput(
            "no row of attention has two positions to choose from: every sentence that was judged has one at "
            "most; give longer sentences, or cut them later (--longest)"
        )
    heads = head_rows(judgement, held_out=held_out)
    for row in heads:
        rows = judgement.heads[f"{row['kind']}.{row['layer']}", row["head"]].totals["rows"]
        row["rows_unseen"] = int(rows) - row["rows"] - row["rows_left_out"]
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
        blocks={head: own.terms.sums["blocks"] for head, own in judgement.heads.items()},
        keys=judgement.keys,
    )


def head_rows(judgement: Judgement, *, held_out: bool = True) -> list[dict]:
    """A row a head, by kind, layer and head.

    ``temporal_share`` and ``input_share`` are covariance shares of the terms of position with position and of
    word with word, ``mixed_share`` that of position with word, ``residual_share`` that of the terms with a
    residual in them; with ``position_bias_share`` they sum to one. Where there is a constant part, a constant
    query with a position is temporal and one with a word is input; ``constant_input_share`` says how much of
    the input share that is, for the papers count it as mixed. ``…_low`` and ``…_high`` are the ends of the
    interval of 95 %, see :meth:`~attnlib.analysis.judge.TermSums.share`; there is none where nothing was
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
            **_shares(own.terms, fitted),
            "constant_input_share": shares.covariance.get("constant·input", 0.0),
            "temporal_rebuilds": shares.similarity["temporal only"],
            "input_rebuilds": shares.similarity["input only"],
            "no_residual_rebuilds": shares.similarity["no residual"],
            "uniform": shares.similarity["uniform"],
            "typicality": own.mean("typical", "covered"),
            "typicality_coverage": own.mean("covered", "samples"),
            "near_typicality": own.mean("near_typical", "near"),
            "near_coverage": own.mean("near", "samples"),
            "typicality_beyond": own.mean("beyond", "samples"),
            "on_ignored": own.mean("on_ignored", "rows"),
            "agreement_with_probe": own.mean("agrees", "probed"),
            "agreement_by_chance": own.mean("by_chance", "probed"),
            "rows_probed": int(own.totals["probed"]),
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


def _shares(terms: TermSums, fitted: float) -> dict[str, float]:
    """Share of each part, and its interval."""
    found = {}
    for part in PARTS:
        name, own = part.replace(" ", "_"), terms_of(terms.terms, part)
        share, *ends = terms.share(own, fitted=fitted) if own else (0.0, 0.0, 0.0)
        found |= {f"{name}_share": share} | dict(zip((f"{name}_low", f"{name}_high"), ends, strict=True))
    return found


def term_rows(judgement: Judgement, *, held_out: bool = True) -> list[dict]:
    """A row for each term of each head; intervals as :func:`head_rows` has them."""
    fitted = float(judgement.fit.samples) if held_out else math.nan
    names = ("covariance_share", "covariance_low", "covariance_high")
    return [
        {
            **named,
            "term": term,
            **dict(zip(names, own.terms.share({term}, fitted=fitted), strict=True)),
            "mean_absolute_share": shares.mean_absolute[term],
            "similarity_without": shares.similarity[f"without {term}"],
            "agreement_without": shares.agreement[f"without {term}"],
        }
        for named, own, shares in _heads(judgement)
        for term in own.terms.terms
    ]


def state_rows(fit: Fit, judgement: Judgement) -> list[dict]:
    """A row for each of the states that projections read."""
    rows = []
    for site, components in sorted(fit.components.items()):
        seen = judgement.seen[site]
        valid = seen["valid"] or math.nan
        rows.append(
            {
                "states": site,
                "width": components.width,
                "words": len(components.tokens),
                "positions": int((components.position_counts > 0).sum()),
                "fitted": components.occurrences,
                "judged": seen["valid"],
                "unseen_words": seen["unseen_words"] / valid,
                "unseen_positions": seen["unseen_places"] / valid,
                "megabytes": components.nbytes / 1e6,
            }
        )
    return rows


def _heads(judgement: Judgement) -> Iterator[tuple[dict, HeadSums, TermShares]]:
    for (name, head), own in sorted(judgement.heads.items(), key=lambda it: (*_order(it[0][0]), it[0][1])):
        kind, layer = name.split(".")
        yield {"kind": kind, "layer": int(layer), "head": head}, own, own.terms.result()


def _order(name: str) -> tuple[int, int]:
    kind, layer = name.split(".")
    return KINDS.index(kind), int(layer)
