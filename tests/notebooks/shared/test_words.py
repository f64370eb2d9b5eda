"""Distances of links between words."""

from functools import partial

import pytest

from notebooks.shared.words import link_distances
from tests.attnlib.refusals import assert_refused


@pytest.mark.parametrize(
    ("given", "message"),
    [pytest.param(([[3, 0]], 3), "beyond a source of 3 words", id="link beyond the source")],
)
def test_link_distances_refuses(given, message):
    assert_refused(partial(link_distances, *given), message)
