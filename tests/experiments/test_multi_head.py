"""Good and bad heads: how they are told apart, which networks are asked for, and on which data."""

import pytest
from given_heads import TINY, computed

from attnlib.errors import BadInput, NotMeasured
from attnlib.experiments import multi_head as experiment
from attnlib.experiments.head_scenarios import UNSEEN, standing
from attnlib.experiments.multi_head import Config
from attnlib.recipes.multi_head import Settings


def test_heads_are_good_or_bad_on_all_their_data_or_neither():
    ends = {0: 0.97, 1: 0.5, 2: 0.4, (3, 0): 0.99, (3, 1): 0.2}
    config, store, values, _ = computed(ends, candidates=5, trials=2, seeds=4)
    found = values["heads"]
    assert (found["tried"], found["good"], found["bad"]) == (5, 1, 2)
    assert values["all_bad"]["failed"]["value"] == 1
    assert values["one_good"]["failed"]["value"] == 0
    screened = [one for one in store.networks(config) if one.heads[0] < UNSEEN]
    bad = [one for one in screened if 0 not in one.heads]
    mixed = [one for one in screened if 0 in one.heads]
    assert [frozenset(one.heads) for one in bad] == 4 * [frozenset({1, 2})]
    assert all(one.heads[0] == 0 and one.heads[1] in (1, 2) for one in mixed)
    random = [one for one in store.networks(config) if one.heads[0] >= UNSEEN]
    assert sorted(head for one in random for head in one.heads) == list(range(UNSEEN, UNSEEN + 8))


def test_a_head_is_good_by_its_best_look_and_bad_by_its_last():
    courses = {
        0: (0.1, 0.97, 0.8),  # good, though it ends short of 95 %
        1: (0.1, 0.7, 0.5),  # bad, though it was at 70 %
        2: (0.1, 0.5, 0.7),  # neither, though it was at 50 %
        3: (0.1, 0.96, 0.4),  # had learned, and forgot: good, and no bad head
    }
    _, _, values, _ = computed(courses, candidates=4)
    assert (values["heads"]["good"], values["heads"]["bad"]) == (2, 1)
    assert [standing(list(own)) for own in courses.values()] == ["good", "bad", None, "good"]


def test_a_head_that_is_neither_on_some_data_is_not_tried_on_the_next():
    ends = {0: 0.97, 1: 0.7, 2: 0.5, (3, 0): 0.5, (3, 1): 0.7}
    config, store, values, rows = computed(ends, candidates=4, trials=3)
    assert store.trials(config) == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]
    assert values["heads"] == {"tried": 4, "runs": 9, "good": 1, "bad": 1, "bad_later": 2}
    # One row a head in the baseline; further trials of the same head are no further heads.
    assert values["single"]["n"] == 4
    assert [row["scenario"] for row in rows["outcomes"]].count("again") == 5


def test_no_network_learns_from_data_that_its_heads_were_judged_on():
    config, store, _, _ = computed({0: 0.97, 1: 0.5, 2: 0.4}, candidates=3, trials=2, seeds=3)
    assert {seed for _, seed in store.trials(config)} == {0, 1}
    assert {one.seed for one in store.networks(config)} == {2, 3, 4}


def test_screened_heads_stand_in_their_body_and_random_ones_each_in_another():
    config, store, _, _ = computed({0: 0.97, 1: 0.5, 2: 0.4}, candidates=3, seeds=3, body=7)
    screened = [one.body for one in store.networks(config) if one.heads[0] < UNSEEN]
    assert set(screened) == {7}
    assert len(screened) == 6
    random = [one for one in store.networks(config) if one.heads[0] >= UNSEEN]
    assert [one.body for one in random] == [7, 8, 9]
    alone = sorted((one for one in store.asked if one.heads[0] >= UNSEEN and len(one.heads) == 1),
                   key=lambda one: one.seed)  # fmt: skip
    assert [(one.heads[0], one.body, one.seed) for one in alone] == [
        (one.heads[0], one.body, one.seed) for one in random
    ]


def test_without_all_trials_no_head_is_good_or_bad():
    with pytest.raises(NotMeasured, match="1 of 2 single heads have no answer yet on data seed 0"):
        computed({0: 0.3, 1: 0.3}, missing=[(1,)])


@pytest.mark.parametrize(
    ("every", "followed", "step"), [(10, 200, 20), (8, 200, 16), (30, 200, 30), (9, 5, 9)]
)
def test_the_early_look_is_one_after_the_beginning(every, followed, step):
    config = Config(**TINY | {"steps": every, "every": every, "followed": followed})
    assert experiment._early(config) == step


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="trials is 0"):
        Config(trials=0)
    with pytest.raises(BadInput, match="moved is -1"):
        Config(moved=-1)
    with pytest.raises(BadInput, match="heads is 0"):
        Settings(heads=())
