"""Split hidden states into temporal, input and residual parts, and measure their shares in attention."""

from attnlib.decomposition.by_part import ByPart
from attnlib.decomposition.components import PART_NAMES, Components, Parts
from attnlib.decomposition.shares import PartShares, Shares, ShareSums
from attnlib.decomposition.substitution import SUBSETS, Substitution, SubstitutionSums
from attnlib.decomposition.terms import AlignmentTerms, alignment_terms, map_parts
from attnlib.decomposition.two_way import VarianceExplained
from attnlib.decomposition.typicality import AttentionCells, Typicality, typicality

__all__ = [
    "PART_NAMES",
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
