"""Dots with intervals over seeds: a row for each task and kind of model, a panel for each question."""

from attnlib.plotting.dots import Dot, at, dot_rows

__all__ = ["Dot", "at", "dot_rows"]
