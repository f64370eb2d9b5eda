"""What tests of every folder share: how they say that something is refused, and how they damage files."""

import re

import pytest

from attnlib.errors import BadInput, UnknownName


def assert_refused(call, message, error=BadInput):
    """In a line with these words, of which " … " leaves some out; where a name is offered, as unknown."""
    pattern = ".*".join(map(re.escape, message.split(" … ")))
    with pytest.raises(UnknownName if "did you mean" in message else error, match=pattern) as caught:
        call()
    assert "\n" not in str(caught.value)


def refused(*cases):
    """Return a test of calls, each with the words that refuse it, by which the case is called."""
    named = [pytest.param(call, message, id=case_name(message)) for call, message in cases]

    @pytest.mark.parametrize(("call", "message"), named)
    def test(call, message):
        assert_refused(call, message)

    return test


def case_name(message: str) -> str:
    """Return the beginning of a message as the name of a case.

    >>> case_name("width is 0; … give a positive number")
    'width_is_0_give_a_positive_number'
    """
    words = re.findall(r"\w+", message)
    return "_".join(words)[:60]


def flip(path, place=-1, bit=0):
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)
