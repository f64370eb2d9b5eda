"""How tests of every folder say that something is refused."""

import re

import pytest

from attnlib.errors import BadInput, UnknownName


def assert_refused(call, message):
    """In these words, of which " … " leaves some out; where a name is offered, as an unknown name."""
    pattern = ".*".join(map(re.escape, message.split(" … ")))
    with pytest.raises(UnknownName if "did you mean" in message else BadInput, match=pattern):
        call()
