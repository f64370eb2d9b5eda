"""What the papers did to their own networks, for anybody's model: from a stream of passes to a report."""

from attnlib.analysis.analyse import analyse
from attnlib.analysis.checkpoint import Checkpoint, ParallelText
from attnlib.analysis.report import report, write_report
from attnlib.analysis.results import Analysis
from attnlib.analysis.stored import Keep
from attnlib.analysis.stream import Losses, Part, Stream

__all__ = [
    "Analysis",
    "Checkpoint",
    "Keep",
    "Losses",
    "ParallelText",
    "Part",
    "Stream",
    "analyse",
    "report",
    "write_report",
]
