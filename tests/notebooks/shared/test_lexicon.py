"""Words that the lexicon of headlines does not have."""

from functools import partial

import pytest

from notebooks.shared.tasks.lexicon import summarise, translate
from tests.attnlib.refusals import assert_refused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param((["the", "floods"],), "no word 'floods'; did you mean 'flood'", id="misspelt word"),
        pytest.param(
            (["the", "cat"],), "nothing to sum up; topics are war, plague", id="sentence without a topic"
        ),
    ],
)
def test_summarise_refuses(given, message):
    assert_refused(partial(summarise, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [pytest.param((["the", "floods"],), "no word 'floods'; did you mean 'flood'", id="misspelt word")],
)
def test_translate_refuses(given, message):
    assert_refused(partial(translate, *given), message)
