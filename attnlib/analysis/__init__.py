"""What the papers did to their own networks, for anybody's model: from a stream of passes to a report."""

from attnlib.analysis.analyse import analyse
from attnlib.analysis.checkpoint import Checkpoint, ParallelText
from attnlib.analysis.compare import Comparison, compare
from attnlib.analysis.report import read_report, report, write_report
from attnlib.analysis.results import Analysis
from attnlib.analysis.stored import Keep
from attnlib.analysis.stream import Losses, Shard, Stream

__all__ = [
    "Analysis",
    "Checkpoint",
    "Comparison",
    "Keep",
    "Losses",
    "ParallelText",
    "Shard",
    "Stream",
    "analyse",
    "compare",
    "read_report",
    "report",
    "write_report",
]
