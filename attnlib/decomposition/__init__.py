"""Split hidden states into temporal, input and residual parts, and measure their shares in attention."""

from typing import Any

from attnlib.decomposition.by_part import ByPart
from attnlib.decomposition.components import STATE_PARTS, Components, Parts
from attnlib.decomposition.shares import PartShares, Shares, ShareSums
from attnlib.decomposition.substitution import SUBSETS, Substitution, SubstitutionSums
from attnlib.decomposition.terms import AlignmentTerms, alignment_terms, map_parts
from attnlib.decomposition.two_way import VarianceExplained
from attnlib.decomposition.typicality import AttentionCells, Typicality, typicality
from attnlib.former_names import former_object

__all__ = [
    "STATE_PARTS",
    "SUBSETS",
    "AlignmentTerms",
    "AttentionCells",
    "ByPart",
    "Components",
    "PartShares",
    "Parts",
    "ShareSums",
    "Shares",
    "Substitution",
    "SubstitutionSums",
    "Typicality",
    "VarianceExplained",
    "alignment_terms",
    "map_parts",
    "typicality",
]


def __getattr__(name: str) -> Any:
    former = {"PART_NAMES": "attnlib.decomposition.components.STATE_PARTS"}
    return former_object(__name__, former, name)
