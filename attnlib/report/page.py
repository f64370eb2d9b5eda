"""Make the page of an analysis: one HTML file that loads nothing.

It is made from ``report.html.j2``. Its content security policy lets it run ``report.js`` and no other script,
and every number can be read without that. Words and names may be hostile: the template escapes all that it is
given, and every character is made visible first.
"""

import base64
import hashlib
import json
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from markupsafe import Markup
from torch import Tensor

from attnlib.analysis.heads import Head
from attnlib.analysis.interventions import ATTRIBUTIONS
from attnlib.analysis.part_shares import part_rows
from attnlib.analysis.results import Analysis, is_even
from attnlib.analysis.samples import Sample
from attnlib.decomposition.components import STATE_PARTS
from attnlib.decomposition.term_names import REBUILT
from attnlib.report.as_text import number, visible
from attnlib.report.contents import SIDES_OF_KIND, Name, calibration_of, shown_terms, words_of
from attnlib.report.findings import KINDS_IN_WORDS, NAMED_PARTS, findings, interval_widths, notes
from attnlib.report.templates import FOLDER, template
from attnlib.trace import KINDS

MOST_MAPS = 48  # matrices of the sample that are drawn
MOST_CELLS = 20_000  # squares of all of them
MAPS = ("the model's", *(f"of {subset}" for subset in REBUILT))  # that a reader may choose from
METHODS = {
    "means": "means by position, then by word, as in the papers",
    "least_squares": "constant, position and word by least squares",
}
SPLIT_HEADINGS = tuple(
    f"{part}, {reading}" for part in STATE_PARTS for reading in ("own", "split", "any term")
)
_SCRIPT = FOLDER / "report.js"
_UNDEFINED = 255  # the byte of a weight that is NaN


_Row = dict[str, Any]  # of a table of the analysis, by column
_HeadedCells = list[tuple[str, list[str]]]  # rows of a table on the page: heading and cells


def page(
    analysis: Analysis, title: str, name: Name | None, *, tables: Collection[str] = (), script: bool = False
) -> str:
    """Return the page of an analysis as HTML.

    Args:
        analysis: what the page shows.
        title: shown as text.
        name: the word of an id, given ``"source"`` or ``"target"`` and the id; shown as text. By default its
            piece, or the id itself if the analysis has no tokenizer.
        tables: files beside the page, which it links to.
        script: whether the page has its script, with which a reader looks at single heads.

    Returns:
        A whole document, which loads nothing.

    Example:
        >>> from attnlib import analyse, zoo
        >>> analysis = analyse(zoo.load("reordering").stream(batch_size=64))
        >>> page(analysis, "How <it> attends", lambda side, token: str(token)).count("&lt;it&gt;")
        2
    """
    kinds_present = {row["kind"] for row in analysis.heads}
    return template("report.html.j2").render(
        findings=findings(analysis),
        made=_made_by(analysis),
        tables=tables,
        script=_script(analysis, name) if script else None,
        samples=len(analysis.samples),
        unit="sentence" if analysis.one_sequence else "sentence pair",
        one_sequence=analysis.one_sequence,
        means=analysis.method == "means",
        sure=interval_widths(analysis),
        title=title,
        facts=_facts(analysis),
        notes=notes(analysis),
        kinds=[_tables_of_kind(analysis, kind) for kind in KINDS if kind in kinds_present],
        split_headings=SPLIT_HEADINGS,
        attributions=[attribution.replace("_", " ") for attribution in ATTRIBUTIONS],
        calibration=_calibration(analysis),
        example=_example(analysis, name) if analysis.samples else None,
        states=[(_word(row["states"]), row) for row in analysis.states],
    )


# -- subject and provenance of the analysis --


def _facts(analysis: Analysis) -> dict[str, str]:
    """Return what model and corpus are, by the name of each fact."""
    judged = f"{analysis.judged:,}"
    if not analysis.held_out:
        judged += " (the same)"
    facts = dict(analysis.about)
    facts["Samples fitted on"] = f"{analysis.fitted:,}"
    facts["Samples judged"] = judged
    unknown = analysis.losses.unknown
    if unknown:
        shares = [f"{side} {share:.2%}" for side, share in unknown.items()]
        facts["Unknown to the tokenizer"] = ", ".join(shares)
    learned = analysis.learned
    if learned:
        facts["Predictions"] = (
            f"{learned['accuracy']:.0%} of the next words right, loss {learned['loss']:.2f} (by frequency "
            f"{learned['loss_by_frequency']:.2f}), {learned['whole_sentences']:.0%} of "
            f"{learned['sentences']} sentences without a wrong word"
        )
    if "bleu" in learned:
        facts["BLEU of what it writes itself"] = f"{learned['bleu']:.1f}"
    facts["Components"] = METHODS[analysis.method]
    return facts


def _made_by(analysis: Analysis) -> list[tuple[str, str, str]]:
    """Return group, name and value of each option, checksum and version."""
    rows = []
    for group, options in analysis.made.items():
        for option, value in options.items():
            rows.append((group, option, _option_as_text(option, value)))
    return rows


def _option_as_text(option: str, value: object) -> str:
    """Return the value of an option; a choice of layers or heads that was not made is of all."""
    is_choice = option.removeprefix("--") in ("layers", "heads")
    if value is None or value == [None, None]:
        return "all" if is_choice else "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


# -- the tables of each kind of attention --


@dataclass(frozen=True, kw_only=True)
class _TablesOfKind:
    """Contents of the page for all attentions of a kind; a head is named as in "layer 0, head 1".

    Attributes:
        id: the kind.
        heads: numbers of the heads, which are the columns of the grid.
        even: names of the heads that attend evenly.
        grid: for each layer its rows of the table of heads, by the columns; None if the layer has no such
            head.
        rows: for each head its row of the table of heads.
        intervals: for each head the shares of its parts, as text.
        splits: for each head the cells of :data:`SPLIT_HEADINGS`.
        terms: for each head its shares, as text, by term.
        term_columns: the terms that any head has; the template takes names of columns from a dictionary.
    """

    id: str
    heads: list[int]
    even: set[str]
    grid: list[tuple[str, list[_Row | None]]]
    rows: list[tuple[str, _Row]]
    intervals: _HeadedCells
    splits: _HeadedCells
    terms: list[tuple[str, dict[str, str]]]
    term_columns: dict[str, str]


def _tables_of_kind(analysis: Analysis, kind: str) -> _TablesOfKind:
    rows = [row for row in analysis.heads if row["kind"] == kind]
    heads = sorted({row["head"] for row in rows})
    terms_by_head = _terms_by_head(analysis, kind)
    term_columns = {}
    for terms in terms_by_head.values():
        for term in terms:
            term_columns[term] = term
    return _TablesOfKind(
        id=kind,
        heads=heads,
        even={_head_as_text(row) for row in rows if is_even(row)},
        grid=_grid(rows, heads),
        rows=[(_head_as_text(row), row) for row in rows],
        intervals=[(_head_as_text(row), _shares_of_parts(row)) for row in rows],
        splits=_splits(analysis, kind),
        terms=list(terms_by_head.items()),
        term_columns=term_columns,
    )


def _grid(rows: list[_Row], heads: list[int]) -> list[tuple[str, list[_Row | None]]]:
    """Return the rows of heads as a grid: down the layers, across the heads."""
    by_place = {(row["layer"], row["head"]): row for row in rows}
    layers = sorted({row["layer"] for row in rows})
    grid = []
    for layer in layers:
        rows_of_layer = [by_place.get((layer, head)) for head in heads]
        grid.append((f"layer {layer}", rows_of_layer))
    return grid


def _terms_by_head(analysis: Analysis, kind: str) -> dict[str, dict[str, str]]:
    """Return the share of each term as text, by head and by term."""
    terms: dict[str, dict[str, str]] = {}
    for row in shown_terms(analysis, analysis.terms):
        if row["kind"] == kind:
            terms_of_head = terms.setdefault(_head_as_text(row), {})
            terms_of_head[row["term"]] = _interval_as_text(row, "covariance")
    return terms


def _shares_of_parts(row: _Row) -> list[str]:
    return [_interval_as_text(row, part) for part in NAMED_PARTS]


def _splits(analysis: Analysis, kind: str) -> _HeadedCells:
    """Return by head the own, split and any-term share of each part, as :data:`SPLIT_HEADINGS` has them."""
    cells_by_head: dict[str, list[str]] = {}
    for row in part_rows(analysis.heads, analysis.terms):
        if row["kind"] != kind:
            continue
        cells = cells_by_head.setdefault(_head_as_text(row), [])
        cells.append(number(row["own_share"]))
        cells.append(_interval_as_text(row, "split"))
        cells.append(number(row["any_term_share"]))
    return list(cells_by_head.items())


def _calibration(analysis: Analysis) -> _HeadedCells:
    """Return by kind, way and side the rank correlation of every attribution, for all parts together."""
    cells: dict[str, list[str]] = {}
    for row in calibration_of(analysis):
        if row["part"] != "every":
            continue
        heading = f"{KINDS_IN_WORDS[row['kind']]}, {row['way']}, {row['side']}"
        cells.setdefault(heading, []).append(number(row["rank_correlation"]))
    return list(cells.items())


def _head_as_text(row: _Row) -> str:
    return f"layer {row['layer']}, head {row['head']}"


def _interval_as_text(row: _Row, part: str) -> str:
    """Return a share with its interval, as in "0.40 [0.35, 0.45]"; alone if it has no interval."""
    share, low, high = row[f"{part}_share"], row[f"{part}_low"], row[f"{part}_high"]
    if math.isnan(low):
        return number(share)
    return f"{number(share)} [{number(low)}, {number(high)}]"


# -- one sample that everybody sees, and all of them for the script --


@dataclass(frozen=True, kw_only=True)
class _Example:
    """The sample that the page shows without its script.

    Attributes:
        maps: matrices of attention: kind, name of the head, words of the keys, and for each query its word
            and its weights.
        hatched: whether a matrix has squares without a weight.
        joined: whether pieces are joined to words.
        more: how many matrices there was no room for.
        cut: how many positions of the longer side are shown, if not all.
        lengths: positions of source and target; None if they are not known.
    """

    maps: list[tuple[str, str, list[Markup], list[tuple[Markup, list[float]]]]]
    hatched: bool
    joined: bool
    more: int
    cut: int | None
    lengths: tuple[int, int] | None


def _example(analysis: Analysis, name: Name | None) -> _Example:
    """Return the first sample: as many of its matrices as there is room for, with their words."""
    sample = analysis.samples[0]
    words = {}
    for side, words_of_side in words_of(analysis, sample, name).items():
        words[side] = [_word(word) for word in words_of_side]
    maps = []
    has_undefined = False
    n_cells = 0
    for (attention, head), weights in sample.attention.items():
        has_room = len(maps) < MOST_MAPS and n_cells + weights.numel() <= MOST_CELLS
        if not has_room:
            continue
        n_cells += weights.numel()
        has_undefined = has_undefined or bool(weights.isnan().any())
        kind, layer = attention.split(".")
        query_side, key_side = SIDES_OF_KIND[kind]
        rows = list(zip(words[query_side], weights.tolist(), strict=True))
        maps.append((kind, f"layer {layer}, head {head}", words[key_side], rows))
    longest = max(sample.lengths or (0, 0))
    longest_shown = max(len(words_of_side) for words_of_side in words.values())
    return _Example(
        maps=maps,
        hatched=has_undefined,
        joined=bool(sample.words),
        more=len(sample.attention) - len(maps),
        cut=longest_shown if longest > longest_shown else None,
        lengths=sample.lengths,
    )


def _word(text: str) -> Markup:
    """Return a visible word, escaped and kept apart from the direction of its neighbours."""
    return Markup("<bdi>{}</bdi>").format(visible(text))


@dataclass(frozen=True, kw_only=True)
class _Script:
    """The script of the page.

    Attributes:
        code: of JavaScript.
        sha256: its checksum in base 64, by which the policy of the page knows it.
        data: what it draws, as JSON in which nothing ends an element of HTML.
    """

    code: Markup
    sha256: str
    data: Markup


def _script(analysis: Analysis, name: Name | None) -> _Script:
    """Return the script with the attention of all samples.

    Shares are not in its data: it reads them, as they are shown, from the tables of the page.
    """
    heads = [Head.of_row(row) for row in analysis.heads]
    samples = [_sample_for_script(analysis, sample, heads, name=name) for sample in analysis.samples]
    kinds_layers_and_numbers = [tuple(head.columns.values()) for head in heads]
    data = {"maps": MAPS, "heads": kinds_layers_and_numbers, "samples": samples}
    data_as_text = json.dumps(data, separators=(",", ":"))
    code = _SCRIPT.read_text(encoding="utf-8")
    digest = hashlib.sha256(code.encode()).digest()
    return _Script(
        code=Markup(code),
        sha256=base64.b64encode(digest).decode(),
        data=Markup(data_as_text.replace("<", "\\u003c")),
    )


def _sample_for_script(
    analysis: Analysis, sample: Sample, heads: list[Head], *, name: Name | None
) -> dict[str, Any]:
    """Return a sample as the script reads it: its words, and its matrices as bytes."""
    words = {}
    for side, words_of_side in words_of(analysis, sample, name).items():
        words[side] = [visible(word) for word in words_of_side]
    maps = [sample.maps[head].flatten() for head in heads]
    probe = None
    if sample.probe is not None:
        largest = sample.probe.max().clamp(min=1e-30)
        probe = _as_bytes(sample.probe / largest)
    return {"words": words, "maps": _as_bytes(torch.cat(maps)), "probe": probe}


def _as_bytes(weights: Float[Tensor, "..."]) -> str:
    """Return weights from 0 to 1 as bytes from 0 to 254 in base 64; 255 where a weight is NaN."""
    levels = (weights.nan_to_num(0) * 254).round().clamp(0, 254)
    levels = levels.masked_fill(weights.isnan(), _UNDEFINED)
    return base64.b64encode(levels.to(torch.uint8).numpy().tobytes()).decode()
