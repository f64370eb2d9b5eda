"""Compare two analyses head by head, with intervals: two models, or two checkpoints of one."""

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.block_ratios import MEASURES, ratios_of
from attnlib.analysis.heads import Head
from attnlib.analysis.results import Analysis, variance_factor
from attnlib.analysis.students_quantile import students_quantile
from attnlib.arrays import ShowsShapes
from attnlib.errors import BadInput
from attnlib.former_names import former_object
from attnlib.optional import library
from attnlib.report.as_text import number

if TYPE_CHECKING:
    from pandas import DataFrame

READING = (
    "temporal_share and input_share count a part's own terms alone; a split share adds half of each term "
    "that the part has with another; residual_share counts all terms with a residual."
)
# Options that change what is read of a text, as Python and as the command line names them.
_READING_OPTIONS = ("generate", "ignore_special", "longest", "prefix")
MADE_BY = (*_READING_OPTIONS, *(f"--{option.replace('_', '-')}" for option in _READING_OPTIONS))
UNEQUAL = 1.5  # times as many samples fitted on: more than that is warned of
MOST_SHOWN = 20  # differences that are named in words


@dataclass(frozen=True)
class Comparison:
    """The differences between two analyses, as :func:`compare` returns them.

    Attributes:
        rows: one for each measure of each head that both have: ``kind``, ``layer``, ``head``, ``measure`` (a
            column of the heads' tables), its value in the ``first`` and in the ``second``, the
            ``difference``, second minus first, and ``low`` and ``high``, its interval of 95 %.
        paired: whether both judged the same sentences, which makes intervals narrower.
        alone: names of the heads that only one of the analyses has.
        terms: one for each term of each head that both have: ``kind``, ``layer``, ``head``, ``term``, its
            covariance share in the ``first`` and in the ``second``, and the ``difference``.
        effects: the same of how far attention moves when a ``part`` of one ``side`` is replaced in one
            ``way``; empty unless both were made with interventions. Neither terms nor effects are kept by
            blocks of sentences, so their differences have no intervals.
        fitted: on how many samples the components of the first and of the second were fitted.
        apart: options of :data:`MADE_BY` in which the two differ.

    Example:
        >>> row = {"kind": "cross", "layer": 0, "head": 1, "measure": "temporal_share"}
        >>> row |= {"first": 0.2, "second": 0.5, "difference": 0.3, "low": 0.1, "high": 0.5}
        >>> Comparison(rows=[row], paired=True).largest
        ['cross.0 head 1, temporal_share: 0.20 to 0.50, difference 0.30 (0.10 to 0.50)']
    """

    rows: list[dict]
    paired: bool
    alone: tuple[str, ...] = ()
    _: KW_ONLY
    terms: list[dict] = field(default_factory=list)
    effects: list[dict] = field(default_factory=list)
    fitted: tuple[int, int] = (0, 0)
    apart: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Caveats: causes of differences other than the heads."""
        notes = []
        if max(self.fitted) > UNEQUAL * min(self.fitted):
            first, second = self.fitted
            notes.append(
                f"Components were fitted on {first:,} samples in the first, on {second:,} in the second. "
                "Rebuilt attention depends on how much was fitted on, so that it may differ for that alone: "
                "analyse as much text for both."
            )
        notes += [f"{option} differs: heads may differ for that alone." for option in self.apart]
        return notes

    @property
    def differing(self) -> list[dict]:
        """Rows whose interval does not contain zero, the largest difference first.

        Five in a hundred measures that do not differ are expected here if as much text was fitted on.
        """
        rows = [row for row in self.rows if row["low"] > 0 or row["high"] < 0]
        return sorted(rows, key=lambda row: -abs(row["difference"]))

    @property
    def largest(self) -> list[str]:
        """The largest differences in words, a line each."""
        lines = []
        for row in self.differing[:MOST_SHOWN]:
            values = f"{number(row['first'])} to {number(row['second'])}"
            interval = f"{number(row['low'])} to {number(row['high'])}"
            lines.append(
                f"{row['kind']}.{row['layer']} head {row['head']}, {row['measure']}: {values}, "
                f"difference {number(row['difference'])} ({interval})"
            )
        if len(self.differing) > MOST_SHOWN:
            lines.append(f"and {len(self.differing) - MOST_SHOWN:,} more")
        return lines

    def table(self) -> "DataFrame":
        """Return the rows as a data frame of pandas.

        Returns:
            A row for each measure of each head, with the caveats as ``attrs["notes"]``.

        Raises:
            BadInput: pandas is not installed.
        """
        return self._frame(self.rows)

    def terms_table(self) -> "DataFrame":
        """Return the differences of the nine terms, :attr:`terms`, as :meth:`table` does."""
        return self._frame(self.terms)

    def effects_table(self) -> "DataFrame":
        """Return the differences of effects, :attr:`effects`, as :meth:`table` does.

        Raises:
            BadInput: pandas is not installed, or an analysis was made without interventions.
        """
        if not self.effects:
            raise BadInput(
                "these analyses have no interventions in common: make both with "
                "analyse(..., interventions=True)"
            )
        return self._frame(self.effects)

    def _frame(self, rows: list[dict]) -> "DataFrame":
        frame = library("pandas").DataFrame(rows)
        frame.attrs["notes"] = self.notes
        return frame

    def __repr__(self) -> str:
        n_heads = len({(row["kind"], row["layer"], row["head"]) for row in self.rows})
        pairing = "paired: the same sentences" if self.paired else "not paired: different sentences"
        n_known = sum(not math.isnan(row["low"]) for row in self.rows)
        if n_known:
            result = f"{len(self.differing):,} of {n_known:,} differ"
        else:
            result = "no difference has an interval"
        return f"Comparison of {n_heads:,} heads ({pairing}), {result}"

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in (repr(self), *self.largest))


def compare(first: Analysis, second: Analysis) -> Comparison:
    """Compare shares and rebuilt attention of every head in two analyses, with intervals.

    A share S = Σe / Σv is a ratio of sums over sentences, and so is how much of the attention some terms
    rebuild, Σ similarity / Σ rows. Sentences fall into 64 blocks by their words, and block k moves the ratio
    by u_k = (e_k − S v_k) / Σv (Cochran, *Sampling Techniques*, 1977, section 6.4). If both analyses judged
    the same sentences, the variance of the difference is Σ (u_k − u'_k)², else Σ u_k² + Σ u'_k²; as in
    :meth:`~attnlib.analysis.judge.HeadSums.share` the bias of a ratio is taken off, what the fit does not
    know is added, and quantiles are Student's. :attr:`Comparison.notes` warns of what is not taken off.

    Args:
        first: what :func:`attnlib.analyse` or :func:`attnlib.read_report` returns.
        second: the same of another model, or of another checkpoint.

    Returns:
        Shares and rebuilt attention of each head that both have, with intervals. The nine terms come with
        them and, where both analyses were made with interventions, the effects of replacing a part.

    Raises:
        BadInput: the analyses have no head in common, were made without blocks, or by two methods of fitting.

    Example:
        >>> from attnlib import analyse, zoo
        >>> analysis = analyse(zoo.load("reordering").stream(batch_size=64))
        >>> comparison = compare(analysis, analysis)
        >>> comparison.paired, comparison.differing
        (True, [])
    """
    _require_comparable(first, second)
    first_rows, second_rows = _rows_by_head(first), _rows_by_head(second)
    in_both = [head for head in first_rows if head in second_rows]
    if not in_both:
        raise BadInput(
            f"no head is in both: the first has {', '.join(_names(first_rows)[:4])}, the second "
            f"{', '.join(_names(second_rows)[:4])}; analyse the same heads"
        )
    in_first_alone = [head for head in first_rows if head not in second_rows]
    in_second_alone = [head for head in second_rows if head not in first_rows]
    assert first.keys is not None  # comparable analyses have them
    assert second.keys is not None
    paired = torch.equal(first.keys, second.keys)
    rows = []
    for head in in_both:
        intervals = _intervals(first, second, head, paired=paired)
        rows += _rows_of_head(head, first_rows[head], second_rows[head], intervals=intervals)
    return Comparison(
        rows=rows,
        paired=paired,
        alone=tuple(_names([*in_first_alone, *in_second_alone])),
        terms=_differences(first.terms, second.terms, by=("term",), of="covariance_share"),
        effects=_differences(
            first.interventions, second.interventions, by=("way", "side", "part"), of="moved"
        ),
        fitted=(first.fitted, second.fitted),
        apart=_differing_options(first, second),
    )


def _require_comparable(first: Analysis, second: Analysis) -> None:
    for which, analysis in (("first", first), ("second", second)):
        if not isinstance(analysis, Analysis):
            raise BadInput(
                f"the {which} is {type(analysis).__name__}; give what analyse or read_report returns"
            )
        if analysis.keys is None or not analysis.blocks:
            raise BadInput(f"the {which} analysis has no blocks of sentences: make it again with analyse")
    if first.method != second.method:
        raise BadInput(
            f"the first is by {first.method}, the second by {second.method}: analyse both the same way"
        )


def _rows_by_head(analysis: Analysis) -> dict[Head, dict]:
    return {Head.of_row(row): row for row in analysis.heads}


def _names(heads: Iterable[Head]) -> list[str]:
    return [f"{head.attention} head {head.number}" for head in heads]


def _differing_options(first: Analysis, second: Analysis) -> tuple[str, ...]:
    options, others = first.made.get("options", {}), second.made.get("options", {})
    return tuple(name for name in MADE_BY if options.get(name) != others.get(name))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Intervals(ShowsShapes):
    """Intervals of the differences of all measures of a head; NaN if nothing was held out."""

    middle: Float[Tensor, " measures"]
    half_width: Float[Tensor, " measures"]


def _intervals(first: Analysis, second: Analysis, head: Head, *, paired: bool) -> _Intervals:
    ratios, other_ratios = ratios_of(first.blocks[head]), ratios_of(second.blocks[head])
    factor, other_factor = variance_factor(first), variance_factor(second)
    if paired:
        larger_factor = torch.tensor([factor, other_factor]).max()  # NaN where one is
        variance = (other_ratios.moves - ratios.moves).square().sum(0) * larger_factor  # (measures,)
    else:
        variance_of_first = ratios.moves.square().sum(0) * factor  # (measures,)
        variance_of_second = other_ratios.moves.square().sum(0) * other_factor  # (measures,)
        variance = variance_of_first + variance_of_second
    degrees = torch.minimum(ratios.size, other_ratios.size) - 1  # (measures,), of freedom
    return _Intervals(
        middle=other_ratios.middle - ratios.middle, half_width=students_quantile(degrees) * variance.sqrt()
    )


def _rows_of_head(head: Head, first: dict, second: dict, *, intervals: _Intervals) -> list[dict]:
    rows = []
    for index, measure in enumerate(MEASURES):
        if first[measure] == second[measure] == 0.0:  # no position bias in either
            continue
        middle, half_width = intervals.middle[index], intervals.half_width[index]
        differences = {
            "measure": measure,
            "first": first[measure],
            "second": second[measure],
            "difference": second[measure] - first[measure],
            "low": float(middle - half_width),
            "high": float(middle + half_width),
        }
        rows.append(head.columns | differences)
    return rows


def _differences(
    first: Iterable[dict], second: Iterable[dict], *, by: tuple[str, ...], of: str
) -> list[dict]:
    """Return one quantity of two tables side by side, for each head and value of some columns in both.

    Args:
        first: rows of the first analysis.
        second: rows of the second.
        by: the columns that, with the head's, name a row.
        of: the column with the quantity.
    """
    names = ("kind", "layer", "head", *by)
    quantities = {tuple(row[name] for name in names): row[of] for row in second}
    rows = []
    for row in first:
        named = {name: row[name] for name in names}
        key = tuple(named.values())
        if key in quantities:
            values = {"first": row[of], "second": quantities[key], "difference": quantities[key] - row[of]}
            rows.append(named | values)
    return rows


def __getattr__(name: str) -> Any:
    former = {"compare_command": "attnlib.commands.compare.compare_command"}
    return former_object(__name__, former, name)
