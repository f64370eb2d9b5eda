"""Word alignments from attention: pieces joined to words, links, symmetrising, gold links and scores.

Everything here is plain data in and plain data out, whatever model the attention is of;
:func:`attnlib.align` makes alignments of a checkpoint and two texts.
"""

from attnlib.alignment.alignments import SCORE_COLUMNS, Alignments
from attnlib.alignment.both_directions import symmetrise
from attnlib.alignment.gold import Gold, GoldFile, gold_of_text, read_gold
from attnlib.alignment.links import HeadChoice, best_sources, choices_of, cross_attention, shifted_rows
from attnlib.alignment.scores import LinkScores, LinkSums
from attnlib.alignment.words import (
    NO_WORD,
    Words,
    join_attention,
    join_pieces,
    marking_of,
    readable,
    words_at,
)

__all__ = [
    "NO_WORD",
    "SCORE_COLUMNS",
    "Alignments",
    "Gold",
    "GoldFile",
    "HeadChoice",
    "LinkScores",
    "LinkSums",
    "Words",
    "best_sources",
    "choices_of",
    "cross_attention",
    "gold_of_text",
    "join_attention",
    "join_pieces",
    "marking_of",
    "read_gold",
    "readable",
    "shifted_rows",
    "symmetrise",
    "words_at",
]
