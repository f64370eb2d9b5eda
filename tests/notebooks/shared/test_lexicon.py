"""Words that the lexicon of headlines does not have."""

from functools import partial

import pytest

from notebooks.shared.tasks.lexicon import summarise, translate
from tests.attnlib.refusals import assert_refused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (["the", "floods"],),
            "no word 'floods'; did you mean 'flood'",
            id="no_word_floods_did_you_mean_flood",
        ),
        pytest.param(
            (["the", "cat"],),
            "nothing to sum up; topics are war, plague",
            id="nothing_to_sum_up_topics_are_war_plague",
        ),
    ],
)
def test_summarise_refuses(given, message):
    assert_refused(partial(summarise, *given), message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            (["the", "floods"],),
            "no word 'floods'; did you mean 'flood'",
            id="no_word_floods_did_you_mean_flood",
        )
    ],
)
def test_translate_refuses(given, message):
    assert_refused(partial(translate, *given), message)
