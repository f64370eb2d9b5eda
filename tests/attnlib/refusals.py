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
    """A test of calls, each with the words that refuse it."""

    @pytest.mark.parametrize(("call", "message"), cases)
    def test(call, message):
        assert_refused(call, message)

    return test


def flip(path, place=-1, bit=0):
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)
