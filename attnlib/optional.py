"""Import optional packages where they are used."""

from importlib import import_module
from types import ModuleType

from attnlib.errors import BadInput

_RANGES = {
    "IPython": ">=8,<10",
    "matplotlib": ">=3.9,<4",
    "pandas": ">=2.2,<4",
    "pyarrow": ">=17",
    "regex": ">=2024.11",
    "sentencepiece": ">=0.2,<0.3",
}


def library(name: str) -> ModuleType:
    """Import a package, or one of its modules, that an extra of attnlib installs.

    Args:
        name: of the package or module.

    Raises:
        BadInput: the package is not installed; the message says how to install it.

    Example:
        >>> library("pandas").DataFrame({"part": ["temporal"]}).shape
        (1, 1)
    """
    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        command = f"pip install '{package}{_RANGES[package]}'"
        raise BadInput(f"this needs {package}, which is not installed: {command}") from error
