"""Data sets: what they are (``get``), where they lie (``locate``), whether they are whole (``check``)."""

from attnlib.datasets.base import Dataset, File
from attnlib.datasets.locate import FileStatus, check, locate
from attnlib.datasets.registry import get, names

__all__ = ["Dataset", "File", "FileStatus", "check", "get", "locate", "names"]
