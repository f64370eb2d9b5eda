"""Analyses of the papers for any model: from a stream of traces to plain rows of results."""

from attnlib.analysis.from_stream import analyse_stream
from attnlib.analysis.results import Analysis
from attnlib.analysis.stream import Losses, Shard, Stream

__all__ = ["Analysis", "Losses", "Shard", "Stream", "analyse_stream"]
