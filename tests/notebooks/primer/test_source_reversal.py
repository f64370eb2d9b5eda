"""Source reversal: sentences whose links are known."""

from functools import partial

import pytest

from notebooks.primer.source_reversal.experiment import linked_sentences
from tests.attnlib.refusals import assert_refused


@pytest.mark.parametrize(
    ("given", "message"), [pytest.param(("scan",), "'scan' has no known links", id="task without gold links")]
)
def test_linked_sentences_refuses(given, message):
    assert_refused(partial(linked_sentences, *given), message)
