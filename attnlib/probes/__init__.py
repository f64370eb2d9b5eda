"""What stands beside a network to read it by: aligners of words, and attention compared with alignments."""

from attnlib.probes.alignment_error import (
    AlignmentQuality,
    AlignmentSums,
    diagonal,
    gold_links,
    over_words,
    word_of_piece,
)
from attnlib.probes.ibm_model_1 import IBMModel1

__all__ = [
    "AlignmentQuality",
    "AlignmentSums",
    "IBMModel1",
    "diagonal",
    "gold_links",
    "over_words",
    "word_of_piece",
]
