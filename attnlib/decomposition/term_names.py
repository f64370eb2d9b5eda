"""Names of the terms of a score, their groups, and the subsets of them that attention is rebuilt from.

A term is named by the part of the query and the part of the key, such as "temporal·input". The papers have
:data:`NINE`. An analysis may have others: least squares give the query, and a rotated key, a constant part,
and some models add a bias by position to their scores.
"""

from collections.abc import Iterable

from attnlib.decomposition.components import STATE_PARTS

CONSTANT = "constant"
POSITION_BIAS = "position bias"
NINE = tuple(f"{decoder}·{encoder}" for decoder in STATE_PARTS for encoder in STATE_PARTS)
#: the groups of terms, by what a term depends on
TERM_GROUPS = ("temporal", "input", "mixed", "residual", POSITION_BIAS)
REBUILT = ("temporal only", "input only", "no residual")  # the subsets of terms that a report shows


def term_name(parts: tuple[str, str] | str) -> str:
    """Return the name of a term, from the part of the query and that of the key; a name is returned as it is.

    Example:
        >>> term_name(("temporal", "input"))
        'temporal·input'
    """
    if isinstance(parts, str):
        return parts
    return "·".join(parts)


def group_of(term: str) -> str:
    """Return the group of a term, what it depends on: one of :data:`TERM_GROUPS`.

    A constant query is the same everywhere, so its term with a position is temporal, and its term with a word
    is input.

    Example:
        >>> list(map(group_of, ("constant·input", "temporal·input", "input·residual", "constant·temporal")))
        ['input', 'mixed', 'residual', 'temporal']
    """
    if term == POSITION_BIAS:
        return term
    parts = set(term.split("·")) - {CONSTANT}
    if "residual" in parts:
        return "residual"
    if not parts:
        return "temporal"
    if len(parts) == 2:
        return "mixed"
    return parts.pop()


def terms_of(terms: Iterable[str], group: str) -> frozenset[str]:
    """Return the terms of one of :data:`TERM_GROUPS`."""
    return frozenset(term for term in terms if group_of(term) == group)


def subsets(terms: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """Return the sets of terms that attention is rebuilt from, by name."""
    all_terms = frozenset(terms)
    temporal = terms_of(terms, "temporal")
    named = {
        "uniform": frozenset(),
        "temporal only": temporal,
        "input only": terms_of(terms, "input"),
        "no residual": frozenset(term for term in terms if "residual" not in term),
    }
    if POSITION_BIAS in all_terms:
        named["position bias only"] = frozenset({POSITION_BIAS})
        named["temporal and position bias"] = temporal | {POSITION_BIAS}
    for term in terms:
        named[f"without {term}"] = all_terms - {term}
    return named
