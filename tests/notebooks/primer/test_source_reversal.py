"""Source reversal: sentences whose links are known."""

from functools import partial

import pytest

from notebooks.primer.source_reversal.experiment import linked_sentences
from tests.attnlib.refusals import assert_refused


@pytest.mark.parametrize(
    ("given", "message"), [pytest.param(("scan",), "'scan' has no known links", id="scan_has_no_known_links")]
)
def test_linked_sentences_refuses(given, message):
    assert_refused(partial(linked_sentences, *given), message)
