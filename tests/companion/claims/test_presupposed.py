"""Figures ask claims what is presupposed of networks."""

import pytest

from attnlib.errors import UnknownName
from companion.claims.presupposed import holds, presuppositions


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param({"token_accuracy": 0.95}, True, id="at-the-limit"),
        pytest.param({"token_accuracy": 0.9499}, False, id="below-it"),
        pytest.param({"gain_of_twice": 0.01, "bleu": 10}, True, id="several-hold"),
        pytest.param({"gain_of_twice": 0.02, "bleu": 30}, False, id="one-of-several-fails"),
    ],
)
def test_numbers_hold_as_the_claims_have_it(numbers, expected):
    assert holds("learned", **numbers) is expected


def test_the_limit_is_that_of_the_file_of_claims():
    (of_accuracy, *_) = presuppositions("aitken2021")["learned"]
    assert of_accuracy.limits == {"at_least": 0.95}


def test_a_name_that_no_claim_presupposes_is_refused():
    with pytest.raises(UnknownName, match="learned"):
        holds("learnt", token_accuracy=1.0)


def test_a_number_that_it_is_not_about_is_refused():
    with pytest.raises(UnknownName, match="token_accuracy"):
        holds("learned", accuracy=1.0)
