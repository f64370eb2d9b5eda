"""Labels beside points that do not cover each other."""

from attnlib.plotting.labels import Label, write_labels

__all__ = ["Label", "write_labels"]
