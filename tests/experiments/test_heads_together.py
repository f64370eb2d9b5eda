"""Heads of one network: which way each goes, whether together, and whether more of them are more chances."""

import pytest

from attnlib.companion.sentences.heads_together import chances_sentence, together_table
from attnlib.experiments.heads_together import chances, together
from attnlib.experiments.result import Result


def network(*looks):
    return {"steps": list(range(len(looks))), "head_right": [list(weights) for weights in looks]}


def points(*courses):
    return [({"seed": seed}, course) for seed, course in enumerate(courses)]


def result_of(**values):
    return Result("multi_head", "quick", {"heads": 2, "length": 4}, values, {}, {}, {})


def test_a_head_is_drawn_at_or_above_uniform_attention():
    start = (0.25, 0.25)
    found = together(
        points(
            network(start, (0.3, 0.4), (0.9, 0.25)),  # 1/length is drawn
            network(start, (0.3, 0.2), (0.1, 0.24)),  # one head turned after the early look
            network(start, (0.9, 0.1), (0.9, 0.1)),
        ),
        4,
        1,
    )
    assert (found["n"], found["all_drawn"], found["none_drawn"], found["mixed"]) == (3, 1, 1, 1)
    assert found["same"]["value"] == pytest.approx(2 / 3)
    row = together_table(result_of(together={"random": found})).iloc[0]
    assert list(row) == [3, 1, 1, 1, "2 of 3"]


def test_without_networks_nothing_is_said():
    found = together([], 4, 1)
    assert (found["n"], found["same"]["value"]) == (0, None)
    assert together_table(result_of(together={"all_bad": found})).empty
    assert chances_sentence(result_of(chances=chances([], [], 4))) == ""


def test_more_heads_are_held_against_the_first_of_them_alone():
    drawn, away = network((0.9,)), network((0.1,))
    both_drawn, both_away = network((0.9, 0.8)), network((0.1, 0.2))
    alone = points(*[drawn] * 10, *[away] * 10)
    found = chances(alone, points(*[both_drawn] * 10, *[both_away] * 10), 4)
    assert (found["alone"]["value"], found["several"]["value"]) == (0.5, 0.5)
    assert found["several_less_alone"]["value"] == 0
    assert [found[name] for name in ("both", "neither", "several_only", "alone_only")] == [10, 10, 0, 0]
    told = chances_sentence(result_of(chances=found))
    assert told.endswith("That more heads make it likelier is not shown.")
    # One drawn head is enough: a network with one of each counts as drawn.
    found = chances(alone, points(*[network((0.1, 0.9))] * 20), 4)
    assert found["several"]["value"] == 1
    assert (found["both"], found["several_only"]) == (10, 10)
    assert chances_sentence(result_of(chances=found)).endswith("More heads make it likelier.")


def test_networks_are_compared_by_seed():
    alone = points(network((0.9,)), network((0.1,)))
    found = chances(alone, points(network((0.1, 0.1)))[:1], 4)
    assert (found["several_less_alone"]["value"], found["several_less_alone"]["n"]) == (-1, 1)
