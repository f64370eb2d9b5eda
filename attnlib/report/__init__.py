"""Show an analysis to people, and make one from a checkpoint and a text.

The package has the name of its main function and can be called as such: ``attnlib.report(stream, folder)``
analyses a model and writes what was found, as :func:`attnlib.report.files.report` does.
"""

import sys
from inspect import signature
from types import ModuleType

from attnlib.report.comparison import Comparison, compare
from attnlib.report.files import read_report, report, write_report
from attnlib.report.one_call import analyse
from attnlib.report.pretrained import Checkpoint
from attnlib.report.resume import PartialSums
from attnlib.report.texts import ParallelText
from attnlib.report.views import AnalysisWithViews, show
from attnlib.report.word_alignments import align

__all__ = [
    "AnalysisWithViews",
    "Checkpoint",
    "Comparison",
    "ParallelText",
    "PartialSums",
    "align",
    "analyse",
    "compare",
    "read_report",
    "report",
    "show",
    "write_report",
]


class _CallableModule(ModuleType):
    """A module that can be called as the function ``report``, which has its name.

    Python binds ``attnlib.report`` to this package whenever a module of it is imported, so that the function
    of the same name would be there or not by the order of imports.
    """

    def __call__(self, *args, **kwargs):
        return report(*args, **kwargs)


__signature__ = signature(report)
sys.modules[__name__].__class__ = _CallableModule
