"""Small panels for many tasks: a column a task, a row an architecture, in bands like lines of text."""

from attnlib.plotting.bands import panels

__all__ = ["panels"]
