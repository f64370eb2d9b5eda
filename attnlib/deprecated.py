"""Names of earlier releases, which say what has taken their place; they go with the next one."""

import warnings

from attnlib.decomposition.components import Components, Method


def GrowingComponents(width: int, method: Method = "means") -> Components:
    """Return :class:`attnlib.Components`, which grow by themselves now."""
    warnings.warn(
        "GrowingComponents is deprecated: attnlib.Components(width) grows by itself",
        DeprecationWarning,
        stacklevel=2,
    )
    return Components(width, method)
