"""Good and bad heads: how they are told apart, which networks they make, on which data, and who attends."""

import pytest
import torch

from attnlib.errors import NotMeasured
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.multi_head.experiment import (
    SCREENED,
    UNSEEN,
    Config,
    chances,
    compute,
    good_head,
    shares_apart,
    together,
)
from notebooks.learn.multi_head.multi_head import Settings, new_network
from notebooks.shared.copied_sentences import copy_batch, draw_sources
from notebooks.shared.copier import copier_loss
from notebooks.shared.copying import ATTENTION, PROBES, has_failed
from tests.notebooks.figure_builders import tiny
from tests.notebooks.given import Given

PAST = (0.0, 0.7, 0.7)  # accuracies of a course that was never good and does not end badly
NOTHING = {"value": None, "low": None, "high": None, "n": 0}
ENDS = {0: 0.97, 1: 0.5, 2: 0.4}  # one good head and two bad ones


def computed(courses, missing=(), **changes):
    """Settings that were asked for, values, and rows, where single heads have given courses.

    A network has that of the best of its heads. Courses are accuracies by (head, seed), by (head, seed,
    body), or by head; ``missing`` heads are never trained.
    """

    def of(head, settings):
        names = ((head, settings.seed, settings.body), (head, settings.seed), head)
        found = next((courses[name] for name in names if name in courses), PAST)
        return found if isinstance(found, tuple) else (0.1, found, found)

    def answer(spec, measure):
        if spec.resolved.heads in missing:
            return None
        own = [of(head, spec.resolved) for head in spec.resolved.heads]
        weights = [course[-1] for course in own]  # what a head is worth, it attends
        return {
            "steps": [0, 1, 2],
            "accuracy": list(max(own, key=lambda course: course[-1])),
            "head_right": [[0.1] * len(weights), weights, weights],
            **{column: [0.5] * 3 for column in ("loss", *ATTENTION, *PROBES)},
        }

    store = Given(answer)
    return store.asked, *compute(tiny("multi_head", **changes), store)


def networks(rows, scenario):
    """Heads, body and seed of the networks of a scenario."""
    own = [row for row in rows["outcomes"] if row["scenario"] == scenario]
    return [(tuple(map(int, row["heads"].split())), row["body"], row["seed"]) for row in own]


def test_heads_are_good_or_bad_on_all_their_data_or_neither():
    _, values, rows = computed(ENDS | {(3, 0): 0.99, (3, 1): 0.2}, candidates=5, trials=2, seeds=4)
    found = values["heads"]
    assert (found["tried"], found["good"], found["bad"]) == (5, 1, 2)
    assert (values["all_bad"]["failed"]["value"], values["one_good"]["failed"]["value"]) == (1, 0)
    assert [set(heads) for heads, *_ in networks(rows, "all_bad")] == 4 * [{1, 2}]
    assert all(heads in ((0, 1), (0, 2)) for heads, *_ in networks(rows, "one_good"))
    random = [head for heads, *_ in networks(rows, "random") for head in heads]
    assert sorted(random) == list(range(UNSEEN, UNSEEN + 8))


def test_networks_learn_from_new_data_in_the_body_of_their_heads_and_random_ones_in_others():
    _, values, rows = computed(ENDS, candidates=3, trials=2, seeds=3, body=7)
    assert {seed for _, _, seed in networks(rows, "single") + networks(rows, "again")} == {0, 1}
    for scenario in SCREENED:
        assert [own[1:] for own in networks(rows, scenario)] == [(7, 2), (7, 3), (7, 4)]
    random = networks(rows, "random")
    assert [own[1:] for own in random] == [(7, 2), (8, 3), (9, 4)]
    assert networks(rows, "alone") == [(heads[:1], *own) for heads, *own in random]
    copies = [(2 * heads[:1], *own) for heads, *own in networks(rows, "all_bad")]
    assert networks(rows, "copied") == copies
    assert values["copied"]["failed"]["value"] == 1


def test_a_head_that_is_neither_on_some_data_is_not_tried_on_the_next():
    _, values, rows = computed({0: 0.97, 1: 0.7, 2: 0.5, (3, 0): 0.5, (3, 1): 0.7}, candidates=4, trials=3)
    assert [(*heads, seed) for heads, _, seed in networks(rows, "single")] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    again = [(*heads, seed) for heads, _, seed in networks(rows, "again")]
    assert again == [(0, 1), (2, 1), (3, 1), (0, 2), (2, 2)]
    assert values["heads"] == {"tried": 4, "runs": 9, "good": 1, "bad": 1, "bad_later": 2}
    assert values["single"]["n"] == 4  # further trials of the same head are no further heads


def test_without_all_trials_no_head_is_good_or_bad():
    with pytest.raises(NotMeasured, match="1 of 2 single heads have no answer yet on data seed 0"):
        computed({0: 0.3, 1: 0.3}, missing=[(1,)])


def test_the_early_snapshot_is_one_after_the_beginning():
    for every, followed, step in ((10, 200, 20), (8, 200, 16), (30, 200, 30), (9, 5, 9)):
        assert Config(steps=every, every=every, followed=followed).early == step


# What networks of the chapter have in common, and what varies.


def test_networks_of_one_body_differ_in_their_query_maps_alone():
    one, other = (new_network(Settings(heads=(head,), length=4, width=6)) for head in (0, 1))
    for (name, first), second in zip(one.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(first, second) != name.startswith("queries"), name
    body = new_network(Settings(heads=(0,), body=1, length=4, width=6))
    assert torch.equal(body.queries.weight, one.queries.weight)
    assert not torch.equal(body.hidden.weight, one.hidden.weight)


def test_a_head_starts_alike_alone_and_among_others():
    alone = new_network(Settings(heads=(7,), length=4, width=6))
    among = new_network(Settings(heads=(3, 7), length=4, width=6))
    assert torch.equal(among.queries.weight[6:], alone.queries.weight)
    assert torch.equal(among.queries.bias[6:], alone.queries.bias)
    assert alone.queries.weight.abs().max() <= 6**-0.5


def test_the_recording_has_a_weight_for_each_head(tmp_path):
    spec = RunSpec.of("multi_head", heads=(1, 2), length=4, width=8, steps=2, every=2, held_out=3)
    recording = Store(tmp_path).recording(spec)
    assert recording["head_right"].shape == (2, 2)
    torch.testing.assert_close(recording["head_right"].mean(dim=1), recording["attention_right"])


def test_equal_heads_learn_alike():
    """So that copies are one head with a longer context: after updates they attend alike still."""
    settings = Settings(heads=(3, 3), length=4, width=8)
    network = new_network(settings)
    sources = draw_sources("permutation", 4, 16, torch.Generator().manual_seed(0))
    batch = copy_batch(sources, 4)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(20):
        optimiser.zero_grad()
        copier_loss(network, batch).backward()
        optimiser.step()
    attention = network(batch).attention
    assert not torch.allclose(attention, new_network(settings)(batch).attention, atol=0.01)
    torch.testing.assert_close(attention[:, 0], attention[:, 1])


# Which heads each scenario has, and what is compared.


def test_good_and_bad_heads_are_tried_in_other_bodies():
    ends = ENDS | {3: 0.3} | {(head, 0, 1 + own): 0.99 for own in range(3) for head in range(4)}
    _, values, rows = computed(ends, candidates=4, elsewhere=3, moved=2)
    assert [own[:2] for own in networks(rows, "elsewhere_bad")[:2]] == [((1,), 1), ((2,), 1)]
    assert values["elsewhere_bad"]["accuracy"]["value"] == pytest.approx(0.99)
    assert values["elsewhere_good"]["n"] == 3
    _, values, _ = computed(ends, candidates=4, elsewhere=0)
    assert values["elsewhere_bad"]["n"] == 0


def test_what_more_heads_add_is_compared_in_one_body():
    first = {UNSEEN: 0.5, UNSEEN + 2: 0.6, UNSEEN + 4: 0.7}
    second = {head + 1: end + 0.1 for head, end in first.items()}
    found = computed(first | second, seeds=3)[1]["random_over_alone"]
    assert (found["value"], found["low"], found["n"]) == (pytest.approx(0.1), pytest.approx(0.1), 3)


@pytest.mark.parametrize(
    ("courses", "all_bad", "one_good", "copied"),
    [({0: 0.3, 1: 0.97, 2: 0.98}, 0, 1, 1), ({0: 0.3, 1: 0.3}, 1, 0, 1), ({0: 0.97, 1: 0.97}, 0, 0, 0)],
)
def test_a_scenario_of_too_few_heads_has_no_networks(courses, all_bad, one_good, copied):
    """None of fewer heads, which would be judged as if they had all of them."""
    asked, values, _ = computed(courses, candidates=3)
    assert [values[name]["n"] for name in SCREENED] == [all_bad, copied, one_good]
    assert ["not_run" not in values[name] for name in SCREENED] == [all_bad, copied, one_good]
    assert {len(one.heads) for one in asked} == {1, 2}
    assert ("not_run" in values["all_bad_less_one_good"]) == (not all_bad or not one_good)
    if not all_bad:
        assert "of 3 heads turned out bad when alone" in values["all_bad"]["not_run"]
        assert values["all_bad"]["failed"]["value"] is None


def test_sets_of_heads_are_counted_whatever_their_order():
    _, values, _ = computed({0: 0.3, 1: 0.4}, seeds=6)
    assert (values["all_bad"]["n"], values["all_bad"]["head_sets"]) == (6, 1)
    _, values, rows = computed({head: 0.3 for head in range(6)}, candidates=6, seeds=6)
    drawn = {frozenset(heads) for heads, *_ in networks(rows, "all_bad")}
    assert values["all_bad"]["head_sets"] == len(drawn) > 1


def test_failures_are_compared_in_pairs_of_one_seed():
    apart = computed(ENDS, candidates=3, seeds=4)[1]["all_bad_less_one_good"]
    assert (apart["value"], apart["n"]) == (1, 4)
    assert 0 < apart["low"] < 1  # four pairs alike are no certainty


def test_later_updates_are_followed_and_judge_nothing():
    """Judged at 1 of 2 updates: heads 0 and 2 learn late, head 1 at once, and forgets."""
    late, early = (0.1, 0.5, 0.97), (0.1, 0.96, 0.5)
    courses = {0: late, 1: early, 2: late}
    asked, values, rows = computed(courses, candidates=3, steps=1, every=1, followed=2)
    assert {one.steps for one in asked} == {2}
    assert (values["heads"]["good"], values["heads"]["bad"]) == (1, 2)
    assert values["heads"]["bad_later"] == 0  # head 1 forgets, and has been good
    single = values["single"]
    failed = [found["failed"]["value"] for found in (single, single["followed"])]
    assert failed == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert (single["followed"]["late"], single["followed"]["steps"]) == (2, 2)
    assert single["turned"]["drawn"]["n"] + single["turned"]["away"]["n"] == 2
    assert (values["sides"]["step"], values["sides"]["end"]) == (2, 2)
    assert values["together"]["single"]["n"] == 3
    assert {row["steps"] for row in rows["courses"]} == {0, 1, 2}
    own = {row["heads"]: row["accuracy"] for row in rows["outcomes"] if row["scenario"] == "single"}
    assert own == {"0": 0.5, "1": 0.96, "2": 0.5}


# One good head among bad ones, and which way each head of a network goes.


def points(*courses):
    return [({"seed": seed}, course) for seed, course in enumerate(courses)]


def learned(*weights, accuracy=0.97):
    snapshots = {"steps": [0, 10], "accuracy": [0.97, accuracy], "attention_accuracy": [0.0, 1.0]}
    return snapshots | {"head_right": [[0.5] * len(weights), list(weights)]}


def ending(*accuracies):
    return points(*(learned(1.0, 0.0, accuracy=end) for end in accuracies))


def network(*snapshots):
    return {"steps": list(range(len(snapshots))), "head_right": [list(weights) for weights in snapshots]}


def test_which_head_attends_is_read_where_the_network_has_learned():
    failed = learned(0.1, 0.9, 0.2, accuracy=0.5)
    found = good_head(
        points(learned(0.9, 0.2, 0.1), learned(0.3, 0.2, 0.8), failed), ending(0.99, 0.5), steps=10
    )
    assert (found["alone"]["n"], found["alone"]["failed"]["value"]) == (2, 0.5)
    assert (found["n"], found["wins"]["value"], found["wins"]["n"]) == (2, 0.5, 2)
    assert found["weight"]["value"] == pytest.approx(0.6)
    assert found["best_other"]["value"] == pytest.approx(0.5)
    assert good_head([], [], 10)["wins"] == NOTHING


def test_failures_are_those_of_the_last_snapshot_in_pairs_of_one_seed():
    found = shares_apart(ending(0.5, 0.6, 0.99, 0.94), ending(0.96, 0.5, 0.3), has_failed)
    assert (found["value"], found["n"]) == (0, 3)  # 1, 0 and −1; the fourth has no partner
    assert shares_apart(ending(0.5), [], has_failed) == NOTHING


def test_a_head_is_drawn_at_or_above_uniform_attention():
    start = (0.25, 0.25)
    networks = points(
        network(start, (0.3, 0.4), (0.9, 0.25)),  # 1/length is drawn
        network(start, (0.3, 0.2), (0.1, 0.24)),  # one head turned after the early snapshot
        network(start, (0.9, 0.1), (0.9, 0.1)),
    )
    found = together(networks, 4, 1)
    assert (found["n"], found["all_drawn"], found["none_drawn"], found["mixed"]) == (3, 1, 1, 1)
    assert found["same"]["value"] == pytest.approx(2 / 3)
    assert together([], 4, 1)["same"]["value"] is None


def test_more_heads_are_compared_with_the_first_of_them_alone():
    drawn, away = network((0.9,)), network((0.1,))
    alone = points(*[drawn] * 10, *[away] * 10)
    several = points(*[network((0.9, 0.8))] * 10, *[network((0.1, 0.2))] * 10)
    found = chances(alone, several, 4)
    assert (found["alone"]["value"], found["several"]["value"]) == (0.5, 0.5)
    assert found["several_less_alone"]["value"] == 0
    assert [found[name] for name in ("both", "neither", "several_only", "alone_only")] == [10, 10, 0, 0]
    found = chances(alone, points(*[network((0.1, 0.9))] * 20), 4)  # one drawn head is enough
    assert found["several"]["value"] == 1
    assert (found["both"], found["several_only"]) == (10, 10)
    found = chances(points(drawn, away), points(network((0.1, 0.2))), 4)  # by seed
    assert (found["several_less_alone"]["value"], found["several_less_alone"]["n"]) == (-1, 1)
    assert chances([], [], 4)["several_less_alone"] == NOTHING
