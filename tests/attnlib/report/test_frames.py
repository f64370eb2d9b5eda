"""An analysis as a data frame, and as a page in a notebook."""

import re
from html import unescape

import pytest

from attnlib import Stream, analyse
from tests.attnlib.analysis.builders import Toy


@pytest.fixture(scope="module")
def analysis():
    return analyse(Stream(Toy(), [*range(10)]), method="means")


def test_the_frame_has_a_row_for_each_term_of_each_head(analysis):
    frame = analysis.to_frame()
    assert len(frame) == 9 * len(analysis.heads)
    assert frame.groupby(["kind", "layer", "head"]).covariance_share.sum().to_numpy() == pytest.approx(1)


def test_a_notebook_shows_the_page_with_its_script(analysis):
    frame = analysis.show(height=300).data
    assert "height: 300px" in frame
    page = unescape(re.search('srcdoc="([^"]*)"', frame)[1])
    assert page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>")
    assert "<script" in page


def test_what_stands_in_the_frame_cannot_reach_the_notebook(analysis):
    assert 'sandbox="allow-scripts"' in analysis.show().data
    assert "allow-same-origin" not in analysis.show().data
