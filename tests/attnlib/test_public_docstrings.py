"""Public names of these packages say what they take, what they return, and show it in an example."""

from pathlib import Path

import pytest

import attnlib
from tests.attnlib import docstring_rules as rules

PACKAGES = ("adapters", "alignment", "models", "probes", "report", "zoo")
LIBRARY = Path(attnlib.__file__).parent
MODULES = [path for package in PACKAGES for path in sorted((LIBRARY / package).glob("*.py"))]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_public_names_are_documented(path):
    assert rules.faults(path.read_text(encoding="utf-8")) == []


FUNCTION = '''
def double(value: int) -> int:
    """Double a number.

    Args:
        value: no less than zero.

    Returns:
        Twice that.

    Raises:
        BadInput: the number is negative.

    Example:
        >>> double(2)
        4
    """
    if value < 0:
        raise BadInput("negative")
'''
RECORD = '''
class Pair:
    """Two numbers.

    Attributes:
        first: any.

    Example:
        >>> Pair(1).first
        1
    """

    first: int

    def swapped(self, times: int) -> "Pair":
        """Swap the two.

        Args:
            times: how often.

        Returns:
            A pair.
        """
'''


@pytest.mark.parametrize(
    ("source", "left_out", "fault"),
    [
        pytest.param(FUNCTION, "    value: no less than zero.\n", "double: no value", id="argument"),
        pytest.param(FUNCTION, "Returns:", "double: no Returns", id="result"),
        pytest.param(FUNCTION, "    BadInput: the number is negative.\n", "double: no BadInput", id="error"),
        pytest.param(FUNCTION, "    >>> double(2)", "double: no Example", id="example"),
        pytest.param(RECORD, "    first: any.\n", "Pair: no first", id="attribute"),
        pytest.param(RECORD, "    times: how often.\n", "Pair: swapped: no times", id="argument-of-method"),
        pytest.param(RECORD, "    >>> Pair(1).first", "Pair: no Example", id="example-of-class"),
    ],
)
def test_what_is_missing_is_named(source, left_out, fault):
    assert rules.faults(source) == []
    assert left_out in source
    assert rules.faults(source.replace(left_out, "")) == [fault]


@pytest.mark.parametrize("entry", ["the value.", "any value.", "an int.", "value, likewise."])
def test_an_argument_that_says_nothing_is_named(entry):
    source = FUNCTION.replace("value: no less than zero.", f"value: {entry}")
    assert rules.faults(source) == ["double: value repeats its name or type"]


def test_a_first_sentence_that_says_what_is_returned_is_enough():
    source = FUNCTION.replace("Double a number.", "Return twice a number.")
    assert rules.faults(source.replace("    Returns:\n        Twice that.\n\n", "")) == []
