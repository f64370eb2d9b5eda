"""Analyses of the papers for any model: from a stream of traces to plain rows of results."""

from typing import Any

from attnlib.analysis.from_stream import analyse_stream
from attnlib.analysis.results import Analysis
from attnlib.analysis.stream import CorpusGaps, HoldOut, Shard, Stream
from attnlib.former_names import former_object

__all__ = ["Analysis", "CorpusGaps", "HoldOut", "Shard", "Stream", "analyse_stream"]


def __getattr__(name: str) -> Any:
    return former_object(__name__, {"Losses": "attnlib.analysis.stream.CorpusGaps"}, name)
