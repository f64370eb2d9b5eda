"""What the papers did to their own networks, for anybody's model: from a stream of passes to plain rows."""

from attnlib.analysis.from_stream import analyse_stream
from attnlib.analysis.results import Analysis
from attnlib.analysis.stream import Losses, Shard, Stream

__all__ = ["Analysis", "Losses", "Shard", "Stream", "analyse_stream"]
