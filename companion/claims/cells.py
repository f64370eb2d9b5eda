"""Numbers of claims in cells and in sentences: a short name, the unit of the number, and equal decimals.

A number has the unit that the tables of its result declare for its quantity, unless its claim says another
(:class:`companion.claims.model.InCells`).
"""

import math
from collections.abc import Iterator, Mapping

from companion.claims.estimates import Estimate
from companion.claims.model import Claim
from companion.claims.verdicts import Judgement, Verdict
from companion.claims.wording import distinguished, piece_in_words

SHARE = "share"  # from 0 to 1, and written in per cent
PERCENT = "%"
SPACE = "\N{NO-BREAK SPACE}"
NARROW = 10  # points: a shorter interval has a decimal
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Schemas = Mapping[str, Mapping]  # of the tables of a result, see `companion.results.result.Result`


def numbers_in_words(claim: Claim, judgement: Judgement, schemas: Schemas) -> list[str]:
    """Return the lines of a cell with the numbers of a claim; of more than two, how many are as stated.

    Two are named by what tells them apart, a difference is called so, and where a claim gives a number it
    follows. A claim's own names come first.
    """
    parts = list(judgement.parts.values())
    if len(parts) > 2:
        return [f"{parts.count(Verdict.REPRODUCED)} of {len(parts)} as stated"]
    estimates = judgement.evidence
    unit = unit_of(claim, estimates, schemas) if estimates else ""
    texts = [in_a_cell(estimate, unit) for estimate in estimates.values()]
    names = claim.shown.name if claim.shown else ()
    if not any(estimate.defined for estimate in estimates.values()) or len(texts) > 2:
        return list(dict.fromkeys(texts))  # more are without a verdict each: true by construction, and alike
    if len(texts) == 2:
        named = names if len(names) == 2 else distinguished(*estimates)
        lines = [f"{name}: {text}" for name, text in zip(named, texts, strict=True)]
        lines = [f"{names[0]}:", *lines] if len(names) == 1 else lines
    elif names or claim.judge.contrast:
        lines = [f"{names[0] if names else 'difference'}: {texts[0]}"]
    else:
        lines = texts
    if claim.judge.is_tolerance:
        lines.append(f"stated: {claim.judge.published:,.10g}".replace("-", "−"))
    return lines


def evidence_of(claim: Claim, judgement: Judgement, schemas: Schemas) -> str:
    """Return the numbers behind a judgement in one short text, such as ``57 % [53, 61], n = 10``.

    Two or more are without intervals, more than two are given by their range. No verdict is in it.
    """
    estimates = list(judgement.evidence.values())
    defined = [estimate for estimate in estimates if estimate.defined]
    if not defined:
        return "undefined" if estimates else "no number"
    unit = unit_of(claim, judgement.evidence, schemas)
    named = f"{claim.shown.name[0]}: " if claim.shown and len(claim.shown.name) == 1 else ""
    if len(estimates) == 1:
        return named + in_a_cell(defined[0], unit)
    points = [Estimate(estimate.value) for estimate in sorted(defined, key=lambda estimate: estimate.value)]
    if len(defined) == 2:
        text = " and ".join(in_a_cell(Estimate(estimate.value), unit) for estimate in defined)
    else:
        text = f"{len(defined)} numbers, {in_a_cell(points[0], unit)} to {in_a_cell(points[-1], unit)}"
    counts = [estimate.n for estimate in defined if estimate.n is not None]
    runs = [f"n = {_range_of(min(counts), max(counts))}"] if counts else []
    return named + ", ".join([text, *runs])


def _range_of(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def unit_of(claim: Claim, estimates: Mapping[str, Estimate], schemas: Schemas) -> str:
    """Return the unit of the numbers of a claim; a difference of shares or percentages is in points."""
    if claim.shown and claim.shown.unit is not None:
        return claim.shown.unit
    units = {declared_unit(key.partition(" − ")[0], schemas) for key in estimates}
    unit = units.pop() if len(units) == 1 else ""
    is_difference = claim.judge.contrast or any(
        min(estimate.value, estimate.ends[0]) < 0 for estimate in estimates.values()
    )
    return f"{unit} points" if unit in (SHARE, PERCENT) and is_difference else unit


def declared_unit(key: str, schemas: Schemas) -> str:
    """Return the unit that the tables of a result declare for the quantity in a key; empty if there is none.

    >>> quantity = {"name": "quantity", "categories": [{"value": "lead", "label": "head start, in updates"}]}
    >>> schemas = {"course": {"schema": {"fields": [{"name": "step", "unit": "updates"}, quantity]}}}
    >>> declared_unit("sample.lead.early", schemas)
    'updates'
    """
    units: dict[str, set[str]] = {}
    for name, unit in _declared(schemas):
        units.setdefault(name, set()).add(unit)
    pieces = key.split(".")
    ends = [".".join(pieces[start:]) for start in range(len(pieces))]  # a quantity may have a dot
    for name in (*ends, *reversed(pieces)):
        if name in units:
            declared = units[name] - {""}
            return declared.pop() if len(declared) == 1 else ""
    return ""


def _declared(schemas: Schemas) -> Iterator[tuple[str, str]]:
    """Yield the name and unit of each column of numbers and of each quantity that is estimated."""
    fields = [field for table in schemas.values() for field in table["schema"]["fields"]]
    units = {field["unit"] for field in fields if "unit" in field}
    for field in fields:
        ends = field.get("constraints", {})
        if "unit" in field:
            yield field["name"], field["unit"]
        elif ends.get("minimum") == 0 and ends.get("maximum") == 1:
            yield field["name"], SHARE
        if field["name"] != "quantity":
            continue
        for category in field.get("categories", ()):
            unit = category["label"].rpartition(", in ")[2]
            yield category["value"], unit if unit in units else ""


def in_a_cell(estimate: Estimate, unit: str = "") -> str:
    """Return a number with its unit, its interval with as many decimals, and the number of runs.

    >>> in_a_cell(Estimate(11.893, 6.508, 17.3, 5), "nats")
    '11.9\N{NO-BREAK SPACE}nats [6.5, 17.3], n = 5'
    >>> in_a_cell(Estimate(0.0, 0.0, 0.161, 20), "share")
    '0\N{NO-BREAK SPACE}% [0, 16], n = 20'
    """
    if not estimate.defined:
        return "undefined"
    value, (low, high) = estimate.value, estimate.ends
    if unit.split(" ")[0] == SHARE:
        value, low, high = (100 * number for number in (value, low, high))
        unit = unit.replace(SHARE, PERCENT)
    if unit.startswith(PERCENT):
        unit = PERCENT if unit == PERCENT else "points"
        decimals = _decimals_of_percentage(value, low, high)
    else:
        decimals = _decimals(value, is_exact=low == high)
    runs = [] if estimate.n is None else [f"n = {estimate.n:,}"]
    if estimate.weakest_of:
        which = f": {piece_in_words(estimate.weakest)}" if estimate.weakest else ""
        runs.append(f"weakest of {len(estimate.weakest_of)}{which}")
    if estimate.at_least:
        return ", ".join([f"at least {_with_unit(_written(low, decimals), unit)}", *runs])
    point = _with_unit(_written(value, decimals), unit)
    if estimate.has_interval and low < high:
        return ", ".join([f"{point} [{_written(low, decimals)}, {_written(high, decimals)}]", *runs])
    if runs and not estimate.weakest_of:
        runs.append("the same in each" if estimate.has_interval else "no interval")
    return ", ".join([point, *runs])


def _decimals_of_percentage(value: float, low: float, high: float) -> int:
    if low == high:
        return 0 if abs(value) >= NARROW or abs(value - round(value)) < 0.05 else 1
    return 1 if high - low < NARROW else 0


def _decimals(value: float, *, is_exact: bool) -> int:
    """Return how many decimals a number has: three significant figures; none of a count."""
    if (is_exact and value == round(value)) or abs(value) >= 100:
        return 0
    if abs(value) >= 10:
        return 1
    return 3 if 0 < abs(value) < 0.1 else 2


def _written(value: float, decimals: int) -> str:
    """Return a number with a true minus sign, and none of zero; what is next to nothing as a power of ten.

    >>> _written(-1234.6, 0), _written(-0.001, 2), _written(9.13e-8, 3)
    ('−1,235', '0.00', '9\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻⁸')
    """
    if decimals == 3 and 0 < abs(value) < 0.00005:
        exponent = math.floor(math.log10(abs(value)))
        power = str(exponent).translate(RAISED)
        return f"{value / 10**exponent:.0f}{SPACE}×{SPACE}10{power}".replace("-", "−")
    return f"{value:z,.{decimals}f}".replace("-", "−")


def _with_unit(text: str, unit: str) -> str:
    if not unit:
        return text
    first, _, rest = unit.partition(" ")
    of_one = first.removesuffix("s") if text == "1" else first
    return SPACE.join([text, " ".join(filter(None, [of_one, rest]))])
