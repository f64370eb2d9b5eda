"""Two analyses head by head: two models, or two checkpoints of one, with intervals of their differences."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.block_ratios import MEASURES, ratios_of
from attnlib.analysis.fit import Head
from attnlib.analysis.judge import student
from attnlib.analysis.report import csv_of, number, read_report
from attnlib.analysis.results import Analysis, unsure_by_fit
from attnlib.errors import BadInput
from attnlib.files import write_text_atomic
from attnlib.optional import library

if TYPE_CHECKING:
    from pandas import DataFrame

READING = (
    "temporal_share and input_share count a part's own terms alone; a split share adds half of each term "
    "that the part has with another; residual_share counts all terms with a residual."
)
UNEQUAL = 1.5  # times as many samples fitted on: more than that is warned of
MADE_BY = ("generate", "ignore_special", "longest", "prefix")  # options that change what is read of a text
MADE_BY += tuple(f"--{name.replace('_', '-')}" for name in MADE_BY)
MOST_SHOWN = 20  # differences that the command prints
VALUES, ENDS = ("first", "second"), ("low", "high")
COLUMNS = ("kind", "layer", "head", "measure", *VALUES, "difference", *ENDS)


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found."""

    #: one for each measure of each head that both have: ``kind``, ``layer``, ``head``, ``measure`` (a column
    #: of the heads' tables), its value in the ``first`` and in the ``second``, the ``difference``, second
    #: less first, and ``low`` and ``high``, its interval of 95 %
    rows: list[dict]
    paired: bool  #: whether both judged the same sentences, which makes intervals narrower
    alone: tuple[str, ...] = ()  #: names of the heads that one analysis has and the other has not
    #: on how many samples the components of the first and of the second were fitted
    fitted: tuple[int, int] = (0, 0)
    apart: tuple[str, ...] = ()  #: options of :data:`MADE_BY` that the two were not made by alike

    @property
    def notes(self) -> list[str]:
        """What differences may come of, other than the heads."""
        unequal = max(self.fitted) > UNEQUAL * min(self.fitted)
        said = [
            "Components were fitted on {:,} samples in the first, on {:,} in the second. Rebuilt attention "
            "depends on how much was fitted on, so that it may differ for that alone: analyse as much text "
            "for both.".format(*self.fitted)
        ] * unequal
        return said + [f"{own} differs: heads may differ for that alone." for own in self.apart]

    @property
    def differing(self) -> list[dict]:
        """Rows whose interval is on one side of zero, the largest difference first.

        Of a hundred that do not differ, five are expected here where as much text was fitted on.
        """
        apart = [row for row in self.rows if row["low"] > 0 or row["high"] < 0]
        return sorted(apart, key=lambda row: -abs(row["difference"]))

    def table(self) -> "DataFrame":
        """The rows as a data frame of pandas, with ``attrs["notes"]``; BadInput where it is not installed."""
        frame = library("pandas").DataFrame(self.rows)
        frame.attrs["notes"] = self.notes
        return frame

    def __repr__(self) -> str:
        heads = len({(row["kind"], row["layer"], row["head"]) for row in self.rows})
        how = "paired: the same sentences" if self.paired else "not paired: different sentences"
        known = sum(not math.isnan(row["low"]) for row in self.rows)
        said = f"{len(self.differing):,} of {known:,} differ" if known else "no difference has an interval"
        return f"Comparison of {heads:,} heads ({how}), {said}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the same, and the largest differences."""
        return "".join(f"<p>{escape(own)}</p>" for own in (repr(self), *self._largest()))

    def _largest(self) -> Iterator[str]:
        for row in self.differing[:MOST_SHOWN]:
            at = f"{row['kind']}.{row['layer']} head {row['head']}, {row['measure']}"
            values, ends = (" to ".join(number(row[own]) for own in pair) for pair in (VALUES, ENDS))
            yield f"{at}: {values}, difference {number(row['difference'])} ({ends})"
        if len(self.differing) > MOST_SHOWN:
            yield f"and {len(self.differing) - MOST_SHOWN:,} more"


def compare(first: Analysis, second: Analysis) -> Comparison:
    """Shares and rebuilt attention of every head in two analyses, and how sure it is that they differ.

    A share S = Σe / Σv is a ratio of sums over sentences, and so is how much of the attention some terms
    rebuild, Σ similarity / Σ rows. Sentences fall into 64 blocks by their words, and block k moves the ratio
    by u_k = (e_k − S v_k) / Σv (Cochran, *Sampling Techniques*, 1977, section 6.4). Where both analyses
    judged the same sentences, the variance of the difference is Σ (u_k − u'_k)², else Σ u_k² + Σ u'_k²; as in
    :meth:`~attnlib.analysis.judge.HeadSums.share` the bias of a ratio is taken off, what the fit does not
    know is added, and quantiles are Student's. :attr:`Comparison.notes` warns of what is not taken off.

    Raises:
        BadInput: no head in both; an analysis that was made without blocks; two ways of fitting components.
    """
    for which, own in (("first", first), ("second", second)):
        if not isinstance(own, Analysis):
            raise BadInput(f"the {which} is {type(own).__name__}; give what analyse or read_report returns")
        if own.keys is None or not own.blocks:
            raise BadInput(f"the {which} analysis has no blocks of sentences: make it again with analyse")
    if first.method != second.method:
        raise BadInput(f"one is by {first.method}, the other by {second.method}: analyse both the same way")
    tables = [{(row["kind"], row["layer"], row["head"]): row for row in own.heads} for own in (first, second)]
    both = [place for place in tables[0] if place in tables[1]]
    alone = [place for own, other in (tables, tables[::-1]) for place in own if place not in other]
    if not both:
        had = [", ".join(_named(own)[:4]) for own in tables]
        raise BadInput(f"no head is in both: the first has {had[0]}, the second {had[1]}; analyse the same")
    paired, rows = torch.equal(first.keys, second.keys), []
    for place in both:
        middles, halves = _intervals(first, second, (f"{place[0]}.{place[1]}", place[2]), paired)
        for at, measure in enumerate(MEASURES):
            values = [table[place][measure] for table in tables]
            if values == [0.0, 0.0]:  # a position bias, where there is none
                continue
            ends = float(middles[at] - halves[at]), float(middles[at] + halves[at])
            row = (*place, measure, *values, values[1] - values[0], *ends)
            rows.append(dict(zip(COLUMNS, row, strict=True)))
    made = [own.made.get("options", {}) for own in (first, second)]
    apart = tuple(name for name in MADE_BY if made[0].get(name) != made[1].get(name))
    return Comparison(rows, paired, tuple(_named(alone)), (first.fitted, second.fitted), apart)


def _named(places: Iterable[tuple[str, int, int]]) -> list[str]:
    return [f"{kind}.{layer} head {head}" for kind, layer, head in places]


def _intervals(
    first: Analysis, second: Analysis, head: Head, paired: bool
) -> tuple[Float[Tensor, " measures"], Float[Tensor, " measures"]]:
    """Middle and half width of the interval of every difference; NaN where nothing was held out."""
    ratios = [ratios_of(analysis.blocks[head]) for analysis in (first, second)]
    unsure = [unsure_by_fit(analysis) for analysis in (first, second)]
    moves = [of_one.moves for of_one in ratios]
    if paired:
        variance = (moves[1] - moves[0]).square().sum(0) * torch.tensor(unsure).max()  # NaN where one is
    else:
        variance = sum(moved.square().sum(0) * factor for moved, factor in zip(moves, unsure, strict=True))
    degrees = torch.minimum(ratios[0].size, ratios[1].size) - 1
    return ratios[1].middle - ratios[0].middle, student(degrees) * variance.sqrt()


def compare_command(first: Path, second: Path, out: Path | None) -> None:
    """``attnlib compare``: which heads of two reports differ, the largest differences first."""
    from rich.console import Console

    found = compare(read_report(first), read_report(second))
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print(repr(found), READING, *found.notes, sep="\n")
    if found.alone:
        more = f" and {len(found.alone) - 6} more" if len(found.alone) > 6 else ""
        console.print(f"in one of them alone: {', '.join(found.alone[:6])}{more}")
    for line in found._largest():
        console.print(line)
    if out is not None:
        write_text_atomic(out, csv_of(found.rows))
