"""Settings that no experiment, procedure or task can use: what is given, and the words that say no."""

from functools import partial

import pytest
import torch

from attnlib.models.corpus import Corpus
from companion.data import registry as tasks
from companion.results import registry
from companion.results.config import override
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.learn.early_dynamics.trainings.word_counts import Bags, derivative_at_random
from notebooks.primer.scoring_functions.trainings.asked_before import PreviousStateQueries
from notebooks.shared.trainings.transformer_sequences import tie_encoder
from notebooks.shared.unrolled import UnrolledComponents
from tests.attnlib.models.model_builders import sequence_network, transformer
from tests.attnlib.refusals import assert_refused
from tests.tables import beside


def config_of(name, **changes):
    return override(registry.load(name).PROFILES["quick"], changes)


MAKERS = {"experiments": config_of, "procedures": RunSpec.of, "tasks": tasks.load}
REFUSED = [
    pytest.param(MAKERS[kind], name, given, message, id=f"{name}-{'-'.join(given)}")
    for kind, refused in beside(__file__, "refused").items()
    for name, cases in refused.items()
    for given, message in cases
]


@pytest.mark.parametrize(("make", "name", "given", "message"), REFUSED)
def test_settings_that_cannot_be_used_are_refused(make, name, given, message):
    assert_refused(partial(make, name, **given), message)


def test_a_task_that_is_not_known_is_refused_with_the_nearest():
    spec = ModelSpec("one_to_won", "AED", 2)
    assert_refused(lambda: Store("nowhere").model(spec), "did you mean 'one_to_one'")


def test_an_encoder_with_rotary_positions_cannot_be_tied():
    assert_refused(lambda: tie_encoder(transformer(positions="rotary")), "self-attention that would be tied")


def test_a_derivative_of_embeddings_without_width_is_refused():
    bags = Bags.of(Corpus.from_ids([[4]], [[4]]), 5, 5)
    assert_refused(lambda: derivative_at_random(bags, 0, seed=0), "width is 0")


def test_states_that_are_not_finite_are_not_unrolled():
    tokens, states = torch.zeros(5, 2, dtype=torch.long), torch.full((5, 4), torch.nan)
    assert_refused(lambda: UnrolledComponents(3, 2, 4).update(tokens, states), "not finite")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"decoder": "bahdanau"}, id="decoder"),
        pytest.param({"input_feeding": True}, id="input_feeding"),
        pytest.param({"link": "initial"}, id="link"),
    ],
)
def test_queries_of_the_previous_state_are_refused_where_it_asks_anyway(changes):
    make = partial(sequence_network, network=PreviousStateQueries, **changes)
    assert_refused(make, "in Bahdanau's it asks anyway")
