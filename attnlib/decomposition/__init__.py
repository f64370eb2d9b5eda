"""Hidden states as temporal + input + residual components, and what each carries of the attention."""

from attnlib.decomposition.components import PART_NAMES, Components, Parts
from attnlib.decomposition.shares import Shares, ShareSums
from attnlib.decomposition.substitution import SUBSETS, Substitution, SubstitutionSums
from attnlib.decomposition.terms import alignment_terms, map_parts
from attnlib.decomposition.two_way import VarianceExplained
from attnlib.decomposition.typicality import AttentionCells, Typicality, typicality

__all__ = [
    "PART_NAMES",
    "SUBSETS",
    "AttentionCells",
    "Components",
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
