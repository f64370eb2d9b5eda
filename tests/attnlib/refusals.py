"""What tests of every folder share: how they say that something is refused, and how they damage files."""

import re

import pytest

from attnlib.errors import BadInput, UnknownName


def assert_refused(call, message):
    """In these words, of which " … " leaves some out; where a name is offered, as an unknown name."""
    pattern = ".*".join(map(re.escape, message.split(" … ")))
    with pytest.raises(UnknownName if "did you mean" in message else BadInput, match=pattern):
        call()


def flip(path, place=-1):
    """One bit of a file is another."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
