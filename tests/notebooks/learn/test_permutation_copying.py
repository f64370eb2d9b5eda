"""Copying end to end on tiny networks: courses by hand, what is counted as failed, and what is missing."""

import math
import shutil

import pytest
import torch

from attnlib.errors import BadInput, NotMeasured, UnknownName
from attnlib.files import rounded
from attnlib.models.copier import BagOfWords, Copier, CopierConfig
from companion.data.synthetic import copy_batch, draw_sources
from companion.results.config import plain
from companion.results.result import Result
from companion.results.run import run
from companion.runs import permutation_copying
from companion.runs import permutation_copying as recipe
from notebooks.learn.fixed_permutation import experiment as fixed_permutation
from notebooks.learn.permutation_copying import experiment
from notebooks.learn.permutation_copying.drawing import first_updates
from notebooks.learn.permutation_copying.experiment import (
    NETWORKS,
    PROFILES,
    Config,
    knowledge_first,
    way,
)
from notebooks.learn.permutation_copying.experiment import (
    models as models_of,
)
from notebooks.learn.permutation_copying.sentences import (
    copying_sentences,
    followed_sentence,
    late_outcome,
    order_sentences,
    ways_table,
    what_changed,
)
from notebooks.shared.copying import ATTENTION, PROBES, followed

TINY = {"seeds": 2, "controls": 1, "length": 4, "width": 8, "steps": 4, "every": 2}
TINY |= {"followed": 4, "sample_steps": 6}

STILL = {"attention_accuracy": [0.5] * 3}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def run_tiny(out, models, *, changes=None, **options):
    return run("permutation_copying", out=out, models=models, overrides=TINY | (changes or {}), **options)


class Given:
    """A store that knows the courses of some networks."""

    def __init__(self, accuracies):
        self.accuracies = accuracies

    def kept(self, spec, measure):
        settings = spec.resolved
        if settings.network != "learned" or settings.kind not in self.accuracies:
            raise NotMeasured(spec.setting)
        accuracy = self.accuracies[settings.kind][spec.seed]
        course = {name: [0.5] * len(accuracy) for name in ("loss", *ATTENTION, *PROBES)}
        return course | {"steps": [0, 2, 4, 6][: len(accuracy)], "accuracy": accuracy}


def test_the_result_has_every_network_and_repeats(tmp_path, models):
    result = run_tiny(tmp_path / "a", models)
    kinds = ("permutation", "sample", "mixture")
    assert len(result.tables["outcomes"]) == 3 * (2 + 1 + 1)
    assert len(result.tables["courses"]) == 12 * 3 + 3  # three networks on samples have a look more
    assert {row["kind"] for row in result.tables["courses"]} == set(kinds)
    assert result.values["mixture"]["ignorance"] == pytest.approx(math.log(8), rel=1e-6)
    run_tiny(tmp_path / "b", models)
    name = "permutation_copying.json"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_proxy_stays_above_the_floor_of_a_known_set(tmp_path, models):
    result = run_tiny(tmp_path, models)
    for kind in ("permutation", "mixture"):
        assert result.values[kind]["proxy"]["above_floor"]["value"] >= 0


def test_what_is_archived_is_not_trained_again_and_what_is_missing_is_said(tmp_path, models):
    one_kind = {"changes": {"kind": "sample"}, "archive": tmp_path / "archive"}
    whole = run_tiny(tmp_path / "a", models, **one_kind)
    (second,) = (tmp_path / "archive").glob("loose/*-s1-*.jsonl")
    second.unlink()
    part = run_tiny(tmp_path / "b", tmp_path / "none", trains=False, **one_kind)
    assert len(part.models) == len(whole.models) - 1
    assert part.missing == ["permutation_copying every=2 kind=sample length=4 steps=6 width=8: 1"]
    assert part.values["sample"]["n"] == 1
    shutil.rmtree(tmp_path / "archive")
    with pytest.raises(NotMeasured, match="nothing is measured yet"):
        run_tiny(tmp_path / "c", tmp_path / "none", trains=False, **one_kind)


def test_failing_and_the_time_to_learn_are_counted_from_the_courses():
    store = Given({"permutation": [[0.1, 0.5, 0.94], [0.1, 0.95, 0.96]], "sample": [[0.1, 0.97, 0.9]] * 2})
    values, tables = experiment.compute(Config(**TINY), store)
    assert values["permutation"]["failed"]["value"] == 0.5
    assert values["permutation"]["lowest_accuracy"] == 0.94
    assert values["permutation"]["steps_to_learn"]["value"] == (4 + 2) / 2  # never counts as all four
    assert values["sample"]["failed"]["value"] == 1  # had learned, and forgot
    assert values["sample"]["steps_to_learn"]["value"] == 2
    assert values["mixture"]["failed"] == {"value": None, "low": None, "high": None, "n": 0}
    assert [row["steps_to_learn"] for row in tables["outcomes"]] == [None, 2, 2, 2]


def test_what_happens_after_the_course_is_not_read():
    """The networks on samples are trained on for the chapter on a fixed order."""
    longer = [[0.1, 0.5, 0.9, 1.0], [0.1, 0.96, 0.97, 0.2]]
    values, tables = experiment.compute(Config(**TINY), Given({"sample": longer}))
    assert values["sample"]["lowest_accuracy"] == 0.9
    assert values["sample"]["never"] == 1
    assert [row["accuracy"] for row in tables["outcomes"]] == [0.9, 0.97]
    assert max(row["steps"] for row in tables["courses"]) == 6  # shown, not judged by
    with pytest.raises(BadInput, match="no look after 4 updates"):
        experiment.compute(Config(**TINY), Given({"sample": [[0.1], [0.1]]}))


def test_what_fails_is_told_from_what_is_slow():
    """Of three networks below 95 % after four updates one learns later; a fourth forgets."""
    courses = [[0.1, 0.5, 0.9, 0.96], [0.1, 0.5, 0.9, 0.94], [0.1, 0.2, 0.2, 0.2], [0.1, 0.95, 0.96, 0.5]]
    config = Config(**TINY | {"seeds": 4, "followed": 6})
    values, tables = experiment.compute(
        config, Given({"permutation": courses, "sample": [[0.1, 0.97, 1, 1]] * 4})
    )
    found, later = values["permutation"], values["permutation"]["followed"]
    assert (found["failed"]["value"], later["failed"]["value"], later["late"]) == (0.75, 0.75, 1)
    assert (found["never"], later["never"], later["steps"]) == (3, 2, 6)
    assert found["steps_to_learn"]["value"] == (4 + 4 + 4 + 2) / 4
    assert later["steps_to_learn"]["value"] == (6 + 6 + 6 + 2) / 4
    words = copying_sentences(Result("permutation_copying", "quick", plain(config), values, tables, {}, {}))
    assert "3 of 4 networks are below 95 % accuracy after 4 updates" in words
    assert "Followed to 6 updates, 3 of 4 are below 95 %" in words
    assert "2 of 4 do not reach 95 % within 6 updates" in words
    made = Result("permutation_copying", "quick", plain(config), values, tables, {}, {})
    assert late_outcome(made).startswith("1 of 3 failures on permutations of ")
    assert late_outcome(made).endswith(" had gone after 6 updates.")
    assert "1 of the 3 that were below it after 4 updates had then learned to copy, none of 1 with" in words
    assert later["late_attending"] == 0  # all attend at half of the words
    turned = found["turned"]["drawn"]
    assert (turned["n"], turned["weight"]["value"], found["turned"]["away"]["n"]) == (3, 0.5 * 4, 0)
    assert words.count("Followed to") == 1  # of samples none failed
    values["sample"]["proxy"]["probe_gain"] = {"value": 3115.02, "low": 2999.1, "high": 3230.9, "n": 4}
    words = copying_sentences(Result("permutation_copying", "quick", plain(config), values, tables, {}, {}))
    assert "gives the right word 3,115 [2,999, 3,231] times the probability" in words
    assert "as if for one of the two sets" not in words
    result = Result("permutation_copying", "quick", plain(config), {"mixture": found}, {}, {}, {})
    result.tables["courses"] = [
        {"kind": "mixture", "network": "learned", "steps": steps, "attention_accuracy": end}
        for steps, end in ((6, 0.5), (6, 0.02), (4, 0.5), (6, 0.45))
    ]
    assert " In the end 2 of 3 have their largest weight" in copying_sentences(result)


@pytest.mark.parametrize(
    ("ends", "told"),
    [((0.96, 0.97), "All of the 2 that were below it"), ((0.5, 0.6), "None of the 2 that were below it")],
)
def test_all_late_and_none_late_are_said_so(ends, told):
    points = [({}, {"steps": [0, 4, 6], "accuracy": [0.1, 0.3, end]} | STILL) for end in ends]
    assert told in followed_sentence(followed(points, 4, 6), 2, 4)


def test_only_networks_with_learned_attention_are_followed():
    config = Config(**TINY | {"followed": 8})
    steps = {(kind, network): config.updates(kind, network) for kind in config.kind for network in NETWORKS}
    assert steps == {
        **{(kind, "learned"): 8 for kind in ("permutation", "mixture")},
        **{(kind, network): 4 for kind in ("permutation", "mixture") for network in ("uniform", "proxy")},
        ("sample", "learned"): 6,
        ("sample", "uniform"): 6,
        ("sample", "proxy"): 4,
    }
    assert {
        (spec.resolved.kind, spec.resolved.network): spec.resolved.steps for spec in models_of(config)
    } == steps


def test_a_course_that_cannot_be_cut_where_it_is_judged_is_refused_before_it_is_trained():
    with pytest.raises(BadInput, match=r"steps is 5.*take a multiple of 2"):
        Config(**TINY | {"steps": 5})
    assert Config(**TINY | {"steps": 7}).updates("sample", "learned") == 7  # nothing goes on after it
    with pytest.raises(BadInput, match="take a multiple of 2"):
        Config(**TINY | {"steps": 7, "followed": 8})


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_networks_on_samples_are_those_that_copy_in_the_chapter_on_a_fixed_order(profile):
    own = {spec for spec in experiment.models(PROFILES[profile]) if spec.resolved.kind == "sample"}
    other = {
        spec
        for spec in fixed_permutation.models(fixed_permutation.PROFILES[profile])
        if spec.resolved.order == "copy"
    }
    shared = {(spec.resolved.network, spec.seed) for spec in own & other}
    both = [min(PROFILES[profile].seeds, fixed_permutation.PROFILES[profile].seeds)]
    both += [min(PROFILES[profile].controls, fixed_permutation.PROFILES[profile].controls)]
    names = zip(("learned", "uniform"), both, strict=True)
    assert shared == {(name, seed) for name, number in names for seed in range(number)}
    others = [spec.resolved for spec in experiment.models(PROFILES[profile]) if spec not in own]
    assert {one.steps for one in others if one.network != "learned"} == {200}
    later = {"quick": 200, "paper": 500}[profile]
    assert {one.steps for one in others if one.network == "learned"} == {later}


def test_a_look_says_what_a_network_that_copies_by_attention_does():
    model = Copier(CopierConfig(words=4, width=4), torch.Generator().manual_seed(0))
    held_out = copy_batch(draw_sources("permutation", 4, 10, torch.Generator().manual_seed(1)), 4)
    with torch.no_grad():
        trace = model(held_out)
    seen = recipe.look_at_copier(model, held_out)
    right = [
        (
            int(trace.attention[n, 0, s].argmax()) == s,
            int(trace.logits[n, s].argmax()) == held_out.target[n, s],
        )
        for n in range(10)
        for s in range(4)
    ]
    assert seen["attention_accuracy"].item() == pytest.approx(sum(a for a, _ in right) / 40)
    assert seen["accuracy"].item() == pytest.approx(float(sum(b for _, b in right)) / 40)
    weight = sum(float(trace.attention[n, 0, s, s]) for n in range(10) for s in range(4)) / 40
    assert seen["attention_right"].item() == pytest.approx(weight, rel=1e-5)


def test_a_proxy_that_knows_the_dictionary_agrees_everywhere(monkeypatch):
    model = BagOfWords(4, 4, torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.embedding.copy_(9 * torch.eye(4))
        model.readout.copy_(torch.eye(4))
    order = torch.tensor([2, 0, 3, 1])
    held_out = copy_batch(draw_sources("permutation", 4, 5, torch.Generator().manual_seed(1)), 4, order)
    seen = recipe._look_at_proxy(model, held_out)
    assert seen["probe_agreement"].item() == 1
    assert seen["probe_right"].item() == pytest.approx(math.exp(9) / (math.exp(9) + 3), rel=1e-5)
    assert seen["loss"].item() == pytest.approx(math.log(4), rel=1e-5)  # the set alone says nothing
    assert seen["above_floor"].item() == pytest.approx(0, abs=1e-12)


def test_equal_seeds_see_the_same_sentences_and_uses_do_not_share_them():
    settings = recipe.Settings(length=6, seed=3)
    drawn = recipe._sources(settings, 4, permutation_copying.TRAINING, 0)
    assert torch.equal(drawn, recipe._sources(settings, 4, permutation_copying.TRAINING, 0))
    others = [(permutation_copying.TRAINING, 1), (permutation_copying.HELD_OUT,)]
    assert not any(torch.equal(drawn, recipe._sources(settings, 4, *use)) for use in others)
    assert recipe._order(settings) is None
    order = recipe._order(recipe.Settings(length=6, seed=3, order="permuted"))
    assert sorted(order.tolist()) == list(range(6))


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'mixture'"):
        Config(kind=("mixtur",))
    with pytest.raises(BadInput, match="seeds is 0"):
        Config(seeds=0)
    with pytest.raises(UnknownName, match="did you mean 'permuted'"):
        recipe.Settings(order="permutd")


# Which way attention goes, when, and what networks that never attend know of words by then.

LENGTH = 10
STEPS = [0, 10, 20, 30]


def course(weights, attended=(0, 0, 0, 0), known=(0, 0, 0, 0), accuracy=(0, 0, 0, 0.5)):
    return {
        "steps": STEPS,
        "attention_right": list(weights),
        "attention_accuracy": list(attended),
        "probe_agreement": list(known),
        "accuracy": list(accuracy),
    }


DRAWN = course((0.1, 0.19, 0.2, 0.9), (0, 0.2, 0.5, 1), (0.1, 0.5, 0.8, 0.9), (0, 0.2, 0.95, 1))
AWAY = course((0.1, 0.06, 0.04, 0.5))  # it comes back; where it went first counts
STAYS = course((0.1, 0.12, 0.08, 0.19))
HELD = [course((0.1,) * 4, known=(0, 0.1, known, 0.9)) for known in (0.2, 0.3)]


def points(*courses):
    return [({"seed": seed}, own) for seed, own in enumerate(courses)]


def test_attention_has_left_at_twice_or_half_of_its_equal_share():
    assert (way(DRAWN, LENGTH), way(AWAY, LENGTH), way(STAYS, LENGTH)) == ("drawn", "away", None)
    found = knowledge_first(points(DRAWN, AWAY, STAYS), points(*HELD), LENGTH)
    assert (found["stays"], found["drawn"]["n"], found["away"]["n"]) == (1, 1, 1)
    assert found["drawn"]["left"]["value"] == found["away"]["left"]["value"] == 20


def test_words_and_attention_are_there_from_half_of_the_words_on():
    found = knowledge_first(points(DRAWN, AWAY), points(*HELD), LENGTH)
    drawn, away = found["drawn"], found["away"]
    assert (drawn["known"]["value"], drawn["there"]["value"], drawn["lead"]["value"]) == (10, 20, 10)
    assert (drawn["first"], away["first"]) == (1, 0)
    assert away["known"]["value"] is away["there"]["value"] is away["held"]["value"] is None
    assert (drawn["soonest"], drawn["latest"], away["soonest"]) == (20, 20, None)


def test_networks_held_at_uniform_attention_are_asked_after_as_many_updates():
    held = knowledge_first(points(DRAWN, AWAY), points(*HELD), LENGTH)["drawn"]["held"]
    assert (held["value"], held["n"]) == (pytest.approx(0.25), 2)


def test_at_the_same_look_neither_comes_first_and_words_that_never_come_do_not():
    together = course((0.1, 0.3, 0.5, 0.9), (0, 0.2, 0.5, 1), (0, 0.2, 0.5, 0.9))
    without = course((0.1, 0.3, 0.5, 0.9), (0, 0.2, 0.5, 1))
    drawn = knowledge_first(points(together, without), points(*HELD), LENGTH)["drawn"]
    assert (drawn["first"], drawn["lead"]["n"], drawn["there"]["n"]) == (0, 1, 2)
    told = what_changed(result([together, without], HELD)).splitlines()[0]
    assert told.endswith("words came first in 0 of 2 networks whose attention got there, and not in 2.")


def test_networks_that_get_there_later_than_the_others_were_followed_are_held_against_nothing():
    short = [{name: values[:2] for name, values in held.items()} for held in HELD]
    drawn = knowledge_first(points(DRAWN), points(*short), LENGTH)["drawn"]
    assert drawn["held"] == {"value": None, "low": None, "high": None, "n": 0}
    assert (drawn["n_held"], drawn["there"]["value"]) == (0, 20)


def test_no_networks_is_no_error():
    found = knowledge_first([], [], LENGTH)
    assert found["stays"] == 0
    assert all(found[side]["n"] == 0 and found[side]["lead"]["value"] is None for side in ("drawn", "away"))


def result(learned, held, kind="permutation"):
    ways = knowledge_first(points(*learned), points(*held), LENGTH)
    values = {kind: {"ways": ways, "followed": {"steps": 30}, "failed": {"value": 0}, "n": len(learned)}}
    rows, outcomes = [], []
    for network, courses in (("learned", learned), ("uniform", held)):
        for seed, own in enumerate(courses):
            name = {"kind": kind, "network": network, "seed": seed}
            rows += [
                name | {column: values[place] for column, values in own.items()}
                for place in range(len(STEPS))
            ]
            outcomes.append(name | {"way": way(own, LENGTH) if network == "learned" else None})
    config = {"kind": [kind], "length": LENGTH, "steps": 30}
    tables = {"courses": rows, "outcomes": outcomes}
    return Result("permutation_copying", "quick", config, rounded(values), tables, {}, {})


def test_a_row_a_way_says_when_words_are_known_and_attention_is_there():
    table = ways_table(result([DRAWN, DRAWN, AWAY, STAYS], HELD))
    ways = ("drawn", "driven away", "near uniform attention")
    drawn, away, stays = (table.loc[f"permutations of 10 words, {way}"] for way in ways)
    assert (drawn["networks"], away["networks"], stays["networks"]) == ("2", "1", "1")
    assert (drawn["leaves after"], drawn["β right after"]) == ("20 ± 0", "10 ± 0")
    assert drawn["β of held ones"].startswith("0.25 ± ")
    assert (drawn["copies after"], away["copies after"]) == ("20", "none does")
    assert (away["β right after"], stays["leaves after"]) == ("–", "–")


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ((0.20, 0.21), "words come first here, too, but not while attention is uniform"),
        ((0.80, 0.81), "these words can be learned while attention is uniform"),
        ((0.20, 0.81), None),
    ],
)
def test_what_others_know_by_then_is_said_by_the_whole_interval(held, told):
    others = [course((0.1,) * 4, known=(0, 0.1, share, 0.9)) for share in held]
    words = order_sentences(result([DRAWN], others))
    assert "words come first in 1 of 1 networks" in words
    assert told in words if told else "So " not in words


def test_nothing_is_said_where_attention_never_gets_there():
    assert order_sentences(result([AWAY, STAYS], HELD)) == ""


def test_what_would_change_our_mind_is_answered_without_samples():
    told = what_changed(result([DRAWN], HELD)).splitlines()
    assert len(told) == 3
    assert told[0].endswith("In all of 1 networks whose attention got there, words came first.")
    assert told[1] == "* Of the second point: it takes networks on samples and on permutations to tell."


def test_a_curve_a_network_and_held_networks_in_the_middle_alone():
    figure = first_updates(result([DRAWN, AWAY, STAYS], HELD))
    above, below, attended = figure.axes
    drawn = [line for line in above.lines if len(line.get_xdata()) == len(STEPS)]
    assert len(drawn) == 3
    assert sum(len(line.get_xdata()) == len(STEPS) for line in below.lines) == 3 + len(HELD)
    assert sum(len(line.get_xdata()) == len(STEPS) for line in attended.lines) == 3
    assert max(drawn[0].get_ydata()) == pytest.approx(9)
