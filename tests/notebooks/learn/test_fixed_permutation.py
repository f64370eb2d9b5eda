"""A fixed order against copying: the same words and parameters, pairs by seed, and what is said of them."""

from pathlib import Path

import pytest
import torch

from attnlib.errors import BadInput, NotMeasured
from companion.claims import load_claims
from companion.results.result import Result
from companion.results.run import run
from companion.runs import permutation_copying as recipe
from companion.runs.keys import model_key
from companion.runs.recipe import RecipeSpec
from companion.runs.store import Store
from notebooks.learn.fixed_permutation import experiment
from notebooks.learn.fixed_permutation.drawing import longer as longer_figure
from notebooks.learn.fixed_permutation.drawing import orders, probes_of_orders
from notebooks.learn.fixed_permutation.experiment import Config, furthest
from notebooks.learn.fixed_permutation.sentences import (
    SAME,
    longer_outcome,
    order_sentences,
    probes_outcome,
    same_sentence,
)
from notebooks.learn.permutation_copying import experiment as permutation_copying
from notebooks.shared.copying import PROBES
from notebooks.shared.sentences import updates_cell, updates_words

TINY = {"seeds": 2, "controls": 1, "length": 4, "width": 8, "steps": 4, "every": 2}


class Given:
    """A store that knows, of every network but some, a course that ends in given numbers."""

    def __init__(self, ends, missing=()):
        self.ends, self.missing = ends, missing

    def kept(self, spec, measure):
        settings = spec.resolved
        name = (settings.order, settings.network, spec.seed)
        if name in self.missing:
            raise NotMeasured(spec.setting)
        course = {column: [0.1, 0.1] for column in ("loss", "accuracy", "attention_accuracy", *PROBES)}
        course |= {column: [0.1, end] for column, end in self.ends.get(name, {}).items()}
        return course | {"steps": [0, 4]}


def test_the_result_has_both_orders_and_is_drawn(tmp_path):
    result = run("fixed_permutation", out=tmp_path, models=tmp_path / "models", overrides=TINY)
    assert len(result.tables["outcomes"]) == 2 * (2 + 1)
    assert set(result.values) == {"copy", "permuted", "copy_less_permuted", "longer"}
    assert result.values["longer"]["n"] == 0
    assert len(orders(result).axes[0].get_lines()) == 4
    assert len(probes_of_orders(result).axes[0].get_lines()) == 2
    assert order_sentences(result).count("\n") >= 3
    assert longer_outcome(result) == "That is not run at this profile."


def test_networks_of_one_seed_differ_in_the_order_of_their_targets_alone(tmp_path):
    settings = {name: TINY[name] for name in ("length", "width", "steps", "every")}
    specs = [
        RecipeSpec.of("permutation_copying", kind="sample", network="proxy", order=order, **settings)
        for order in ("copy", "permuted")
    ]
    copied, permuted = (Store(tmp_path).recording(spec) for spec in specs)
    assert model_key(specs[0]) != model_key(specs[1])
    # A bag of words does not see the order, so its course is the same.
    torch.testing.assert_close(copied["loss"], permuted["loss"])
    torch.testing.assert_close(copied["probe_right"], permuted["probe_right"])


def test_the_target_is_the_source_in_the_seeds_own_order():
    first, second = (
        recipe._order(recipe.Settings(length=20, order="permuted", seed=seed)) for seed in (0, 1)
    )
    assert not torch.equal(first, second)
    assert not torch.equal(first, torch.arange(20))


def test_probes_are_compared_within_seeds():
    ends = {("copy", "uniform", 0): {"probe_right": 0.5}, ("permuted", "uniform", 0): {"probe_right": 0.3}}
    ends |= {("copy", "uniform", 1): {"probe_right": 0.9}, ("permuted", "uniform", 1): {"probe_right": 0.7}}
    values, _ = experiment.compute(Config(**TINY | {"controls": 2}), Given(ends))
    found = values["copy_less_permuted"]["probe_right"]
    assert (found["value"], found["low"], found["high"]) == pytest.approx((0.2, 0.2, 0.2))
    missing = [("permuted", "uniform", 1)]
    values, _ = experiment.compute(Config(**TINY | {"controls": 2}), Given(ends, missing))
    assert values["copy_less_permuted"]["probe_right"]["n"] == 1


def test_what_is_not_measured_leaves_no_number():
    missing = [("permuted", network, seed) for network in experiment.NETWORKS for seed in range(2)]
    values, tables = experiment.compute(Config(**TINY), Given({}, missing))
    assert values["permuted"]["lowest_accuracy"] is None
    assert values["copy_less_permuted"]["probe_right"]["n"] == 0
    assert {row["order"] for row in tables["outcomes"]} == {"copy"}


def outcomes(*ends, steps=4):
    """Values of networks that copy and end at these accuracies after ``steps`` updates."""
    given = {("copy", "learned", seed): {"accuracy": end} for seed, end in enumerate(ends)}
    values, _ = experiment.compute(Config(**TINY | {"seeds": len(ends), "steps": steps}), Given(given))
    return values["copy"]


def test_a_time_that_was_never_reached_is_not_said_to_be_the_last_update():
    """Two networks that fail have a mean of four updates, with no spread, in the values."""
    failed, some, all_learned = outcomes(0.2, 0.3), outcomes(0.2, 0.99), outcomes(0.99, 0.99)
    assert [found["never"] for found in (failed, some, all_learned)] == [2, 1, 0]
    assert updates_cell(failed, 4) == "> 4"
    assert updates_words(failed, 4) == "95 % are not reached within 4 updates"
    assert updates_cell(some, 4) == "≥ 4 (1 not by 4)"
    assert updates_words(some, 4).startswith("1 of 2 do not reach 95 % within 4 updates")
    assert updates_cell(all_learned, 4) == "4 ± 0"
    assert updates_words(all_learned, 4) == "95 % are reached after 4 ± 0 updates"
    assert updates_cell(outcomes(0.2) | {"n": 0}, 4) == "–"


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (-0.04, 0.05, "behave the same"),
        (0.06, 0.2, "do not behave the same"),
        (-0.2, -0.06, "do not behave the same"),
        (-1.9, 1.9, "do not decide"),
        (0.01, 0.09, "do not decide"),
        (None, None, "1 pair of networks cannot tell"),
    ],
)
def test_the_probes_are_the_same_or_not_only_where_the_interval_says_so(low, high, told):
    found = {"value": 0.03, "low": low, "high": high, "n": 1 if low is None else 5}
    assert told in same_sentence(found)


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (
            -0.2,
            0.3,
            "is 0.50 wide, the band from −0.05 to 0.05 is 0.10 wide: none so wide can lie inside it.",
        ),
        (-0.02, 0.04, "is within 0.05 of zero: the probes behave the same."),
        (0.01, 0.09, "do not decide."),
    ],
)
def test_the_width_of_the_interval_is_held_against_the_band(low, high, told):
    assert same_sentence({"value": 0.03, "low": low, "high": high, "n": 5}).endswith(told)


def test_the_paper_profile_has_more_pairs_than_the_chapter_that_shares_its_copies():
    paper = experiment.PROFILES["paper"]
    assert (paper.controls, permutation_copying.PROFILES["paper"].controls) == (10, 5)
    uniform = [spec.resolved for spec in experiment.models(paper) if spec.resolved.network == "uniform"]
    assert sorted(one.seed for one in uniform if one.order == "permuted") == list(range(10))


def test_the_sentence_on_probes_goes_by_the_band_of_the_claim():
    ends = {("copy", "uniform", seed): {"probe_right": end} for seed, end in ((0, 0.9), (1, 0.1))}
    values, tables = experiment.compute(Config(**TINY | {"controls": 2}), Given(ends))
    words = order_sentences(Result("fixed_permutation", "quick", TINY, values, tables, {}, {}))
    assert "2 pairs of networks do not decide." in words
    assert "4.00" not in words
    claims = load_claims(Path(__file__).parents[3] / "claims")
    (claim,) = [claim for claim in claims if claim.id.startswith("probe-at-uniform-attention-does-not")]
    assert claim.judge.allowed == SAME


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="controls is 0"):
        Config(controls=0)
    with pytest.raises(BadInput, match="length 1"):
        Config(length=1)


def test_the_widest_gap_on_the_way_is_found_and_held_against_one_order():
    course = {"steps": [0, 10, 20]}
    copied, permuted = (
        [({"seed": seed}, course | {"probe_right": probe}) for seed, probe in enumerate(probes)]
        for probes in (([0.0, 0.5, 0.9], [0.0, 0.6, 1.0]), ([0.0, 0.8, 1.0], [0.0, 0.9, 1.0]))
    )
    found = furthest(copied, permuted)
    assert (found["value"], found["steps"], found["looks"], found["n"]) == (pytest.approx(-0.3), 10, 3, 2)
    assert found["among"] == pytest.approx(0.1)
    result = Result("fixed_permutation", "quick", {}, {"copy_less_permuted": {"furthest": found}}, {}, {}, {})
    assert "it has happened. After 10 updates" in probes_outcome(result)
    found["among"] = 0.4
    assert "it has not happened." in probes_outcome(result)
    assert furthest([], permuted)["n"] == 0


def test_networks_with_more_updates_are_judged_apart():
    config = Config(**TINY | {"longer_steps": 8, "longer_seeds": 2})
    longer = [spec for spec in experiment.models(config) if spec.resolved.steps == 8]
    assert {(spec.resolved.order, spec.resolved.network, spec.resolved.every) for spec in longer} == {
        ("permuted", "learned", 10)
    }
    ends = {("permuted", "learned", 0): {"accuracy": 0.99}}
    values, tables = experiment.compute(config, Given(ends))
    assert (values["longer"]["n"], values["permuted"]["n"]) == (2, 2)
    result = Result("fixed_permutation", "quick", TINY | {"longer_steps": 8}, values, tables, {}, {})
    assert longer_outcome(result) == (
        "Of 2 networks trained for 8 updates 1 come to 95 % on the way, their best looks at 0.55 ± 5.65, "
        "and 1 end there: it has happened, so within 4 updates this order is slow rather than out of reach."
    )
    values["longer"]["failed"]["value"] = 1.0
    assert longer_outcome(result).endswith("What was learned was lost again; why is not examined here.")
    values["longer"]["never"] = 2
    assert longer_outcome(result).endswith("comes to 95 %: it has not happened.")
    assert len(longer_figure(result).axes[0].get_lines()) == 2
    with pytest.raises(BadInput, match="longer_steps is 3; it must be 0 or more than the 4 steps"):
        Config(**TINY | {"longer_steps": 3})


def test_a_rise_at_the_end_is_of_the_last_quarter():
    course = {"accuracy": [0.0, 0.1, 0.2, 0.3, 0.9]}
    assert experiment._late_rise(course) == pytest.approx(0.6)
