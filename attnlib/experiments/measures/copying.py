"""What is asked of a network that learns to copy: its course, as numbers by checkpoint."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording


def measure_copying(recording: "Recording") -> dict:
    """Every number that the recipe recorded, as lists by checkpoint, ``steps`` among them."""
    return {name: values.tolist() for name, values in sorted(recording.tensors.items())}
