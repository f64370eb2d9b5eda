"""What the papers did to their own networks, for anybody's model: from a stream of passes to a report."""

from attnlib.analysis.results import Analysis
from attnlib.analysis.stream import Losses, Shard, Stream
from attnlib.report.comparison import Comparison, compare
from attnlib.report.one_call import analyse
from attnlib.report.page import read_report, report, write_report
from attnlib.report.pretrained import Checkpoint, ParallelText
from attnlib.report.resume import Keep

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
