"""The page of an analysis: one HTML file that loads nothing.

It is made of ``report.html.j2``; it runs ``report.js`` and, by its content security policy, no other script,
and holds every number without it. Words and names may be hostile: the template escapes all that it is given,
and every character is made visible first.
"""

import base64
import hashlib
import json
import math
from collections.abc import Collection
from typing import Any

import torch
from jaxtyping import Float
from markupsafe import Markup
from torch import Tensor

from attnlib.adapters.library_models import KINDS
from attnlib.analysis.interventions import ATTRIBUTIONS
from attnlib.analysis.part_shares import part_rows
from attnlib.analysis.results import Analysis, is_even
from attnlib.analysis.samples import Sample
from attnlib.analysis.terms import REBUILT
from attnlib.decomposition.components import PART_NAMES
from attnlib.report.as_text import number, visible
from attnlib.report.contents import SIDES, Name, calibration_of, shown_terms, words_of
from attnlib.report.findings import KINDS_IN_WORDS, NAMED_PARTS, findings, interval_widths, notes
from attnlib.report.templates import FOLDER, template

MOST_MAPS = 48  # matrices of the sample that are drawn
MOST_CELLS = 20_000  # squares of all of them
MAPS = ("the model's", *(f"of {subset}" for subset in REBUILT))  # that a reader may choose from
METHODS = {
    "means": "means by position, then by word, as in the papers",
    "least_squares": "constant, position and word by least squares",
}
SPLIT_HEADINGS = tuple(
    f"{part}, {reading}" for part in PART_NAMES for reading in ("own", "split", "any term")
)
_SCRIPT = FOLDER / "report.js"
_UNDEFINED = 255  # the byte of a weight that is NaN


def page(
    analysis: Analysis, title: str, name: Name, *, tables: Collection[str] = (), script: bool = False
) -> str:
    """Return the page of an analysis as HTML.

    Args:
        analysis: what the page shows.
        title: shown as text.
        name: the word of an id, given ``"source"`` or ``"target"`` and the id; shown as text.
        tables: files beside the page, which it links to.
        script: whether the page has its script, by which a reader looks at single heads.
    """
    kinds = {row["kind"] for row in analysis.heads}
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
        kinds=[_tables_of_kind(analysis, kind) for kind in KINDS if kind in kinds],
        split_headings=SPLIT_HEADINGS,
        attributions=[attribution.replace("_", " ") for attribution in ATTRIBUTIONS],
        calibration=_calibration(analysis),
        example=_example(analysis, name) if analysis.samples else None,
        states=[(_word(row["states"]), row) for row in analysis.states],
    )


# What the analysis is of, and what made it.


def _facts(analysis: Analysis) -> dict[str, str]:
    """Return what model and corpus are, by the name of each fact."""
    judged = f"{analysis.judged:,}"
    if not analysis.held_out:
        judged += " (the same)"
    facts = analysis.about | {"Samples fitted on": f"{analysis.fitted:,}", "Samples judged": judged}
    if unknown := analysis.losses.unknown:
        shares = [f"{side} {share:.2%}" for side, share in unknown.items()]
        facts["Unknown to the tokenizer"] = ", ".join(shares)
    if learned := analysis.learned:
        facts["Predictions"] = (
            f"{learned['accuracy']:.0%} of the next words right, loss {learned['loss']:.2f} (by frequency "
            f"{learned['loss_by_frequency']:.2f}), {learned['whole_sentences']:.0%} of "
            f"{learned['sentences']} sentences without a wrong word"
        )
    if "bleu" in analysis.learned:
        facts["BLEU of what it writes itself"] = f"{analysis.learned['bleu']:.1f}"
    facts["Components"] = METHODS[analysis.method]
    return facts


def _made_by(analysis: Analysis) -> list[tuple[str, str, str]]:
    """Return group, name and value of each option, checksum and version."""
    rows = []
    for group, options in analysis.made.items():
        rows += [(group, option, _option_as_text(option, value)) for option, value in options.items()]
    return rows


def _option_as_text(option: str, value: object) -> str:
    """Return the value of an option; a choice of layers or heads that was not made is of all."""
    is_choice = option.removeprefix("--") in ("layers", "heads")
    if value is None or value == [None, None]:
        return "all" if is_choice else "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


# The tables of each kind of attention.


def _tables_of_kind(analysis: Analysis, kind: str) -> dict[str, Any]:
    """Return what the page says of all attentions of a kind: rows of tables, each with its heading."""
    rows = [row for row in analysis.heads if row["kind"] == kind]
    by_place = {(row["layer"], row["head"]): row for row in rows}
    layers = sorted({row["layer"] for row in rows})
    heads = sorted({row["head"] for row in rows})
    terms: dict[str, dict[str, str]] = {}  # by head and term
    for row in shown_terms(analysis, analysis.terms):
        if row["kind"] == kind:
            terms.setdefault(_head_as_text(row), {})[row["term"]] = _interval_as_text(row, "covariance")
    columns = {term: term for terms_of_head in terms.values() for term in terms_of_head}
    return {
        "id": kind,
        "heads": heads,
        "even": {_head_as_text(row) for row in rows if is_even(row)},
        "grid": [(f"layer {layer}", [by_place.get((layer, head)) for head in heads]) for layer in layers],
        "rows": [(_head_as_text(row), row) for row in rows],
        "intervals": [
            (_head_as_text(row), [_interval_as_text(row, part) for part in NAMED_PARTS]) for row in rows
        ],
        "splits": _splits(analysis, kind),
        "terms": list(terms.items()),
        "term_columns": columns,
    }


def _splits(analysis: Analysis, kind: str) -> list[tuple[str, list[str]]]:
    """Return by head the own, split and any-term share of each part, as :data:`SPLIT_HEADINGS` has them."""
    cells: dict[str, list[str]] = {}
    for row in part_rows(analysis.heads, analysis.terms):
        if row["kind"] == kind:
            cells.setdefault(_head_as_text(row), []).extend(
                [number(row["own_share"]), _interval_as_text(row, "split"), number(row["any_term_share"])]
            )
    return list(cells.items())


def _calibration(analysis: Analysis) -> list[tuple[str, list[str]]]:
    """Return by kind, way and side the rank correlation of every attribution, for all parts together."""
    cells: dict[str, list[str]] = {}
    for row in calibration_of(analysis):
        if row["part"] == "every":
            heading = f"{KINDS_IN_WORDS[row['kind']]}, {row['way']}, {row['side']}"
            cells.setdefault(heading, []).append(number(row["rank_correlation"]))
    return list(cells.items())


def _head_as_text(row: dict) -> str:
    return f"layer {row['layer']}, head {row['head']}"


def _interval_as_text(row: dict, part: str) -> str:
    share, low, high = row[f"{part}_share"], row[f"{part}_low"], row[f"{part}_high"]
    if math.isnan(low):
        return number(share)
    return f"{number(share)} [{number(low)}, {number(high)}]"


# One sample that everybody sees, and all of them for the script.


def _example(analysis: Analysis, name: Name) -> dict[str, Any]:
    """Return the first sample: as many of its matrices as there is room for, with their words."""
    sample = analysis.samples[0]
    words = {}
    for side, words_of_side in words_of(analysis, sample, name).items():
        words[side] = [_word(word) for word in words_of_side]
    maps = []
    has_undefined = False
    n_cells = 0
    for (attention, head), weights in sample.attention.items():
        if len(maps) == MOST_MAPS or n_cells + weights.numel() > MOST_CELLS:
            continue
        n_cells += weights.numel()
        has_undefined = has_undefined or bool(weights.isnan().any())
        kind, layer = attention.split(".")
        query_side, key_side = SIDES[kind]
        rows = list(zip(words[query_side], weights.tolist(), strict=True))
        maps.append((kind, _head_as_text({"layer": layer, "head": head}), words[key_side], rows))
    longest = max(sample.lengths or (0, 0))
    longest_shown = max(len(words_of_side) for words_of_side in words.values())
    return {
        "maps": maps,
        "hatched": has_undefined,
        "joined": bool(sample.words),
        "more": len(sample.attention) - len(maps),
        "cut": longest_shown if longest > longest_shown else None,
        "lengths": sample.lengths,
    }


def _word(text: str) -> Markup:
    """Return a visible word, escaped and kept apart from the direction of its neighbours."""
    return Markup("<bdi>{}</bdi>").format(visible(text))


def _script(analysis: Analysis, name: Name) -> dict[str, Any]:
    """Return the script, its checksum for the policy, and what it draws, in which nothing ends an element.

    Shares are not in it: the script takes them, as they are shown, from the tables of the page.
    """
    heads = [(row["kind"], row["layer"], row["head"]) for row in analysis.heads]
    data = {
        "maps": MAPS,
        "heads": heads,
        "samples": [_sample_for_script(analysis, sample, heads, name=name) for sample in analysis.samples],
    }
    code = _SCRIPT.read_text(encoding="utf-8")
    return {
        "code": Markup(code),
        "sha256": base64.b64encode(hashlib.sha256(code.encode()).digest()).decode(),
        "data": Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")),
    }


def _sample_for_script(
    analysis: Analysis, sample: Sample, heads: list[tuple[str, int, int]], *, name: Name
) -> dict[str, Any]:
    words = words_of(analysis, sample, name)
    maps = [sample.maps[f"{kind}.{layer}", head].flatten() for kind, layer, head in heads]
    probe = None
    if sample.probe is not None:
        probe = _as_bytes(sample.probe / sample.probe.max().clamp(min=1e-30))
    return {
        "words": {side: [visible(word) for word in words_of_side] for side, words_of_side in words.items()},
        "maps": _as_bytes(torch.cat(maps)),
        "probe": probe,
    }


def _as_bytes(weights: Float[Tensor, "..."]) -> str:
    """Return weights from 0 to 1 as bytes from 0 to 254 in base 64, and 255 where there is none."""
    levels = (weights.nan_to_num(0) * 254).round().clamp(0, 254)
    levels = levels.masked_fill(weights.isnan(), _UNDEFINED)
    return base64.b64encode(levels.to(torch.uint8).numpy().tobytes()).decode()
