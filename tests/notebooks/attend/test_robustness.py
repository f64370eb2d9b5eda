"""The robustness experiment on tiny models: settings, memory by hand, and the headline counted."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from companion.results.config import override
from companion.results.result import Result
from companion.results.run import run
from companion.runs.store import Store
from notebooks.attend.robustness.drawing import (
    PANELS,
    RUNNING,
    factors_of,
    free_running,
    headline_by_setting,
    outcomes_by_level,
    residual_share_by_factor,
)
from notebooks.attend.robustness.experiment import (
    OUTCOMES,
    PROFILES,
    Config,
    _governs,
    headline,
    level_key,
    plan_spec,
    settings,
)
from notebooks.attend.robustness.measure import LAGS, lagged_words, measure_robustness
from notebooks.attend.robustness.sentences import (
    headline_sentences,
    residual_sentences,
    running_sentences,
    settings_table,
)
from notebooks.shared.style import NOTE, cut_note

TINY = {
    "width": 8,
    "steps": 4,
    "seeds": 2,
    "fit_samples": 100,
    "samples": 60,
    "widths": (16,),
    "length": (2.0,),
}
# One length: position and end mark are not confounded, and few held-out samples make cells of thirty.
SHORT = {"min_length": 7, "max_length": 7, "n_train": 600, "n_held_out": 100}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def test_one_factor_at_a_time_around_the_plan():
    config = Config(seeds=1, n_words=(3, 10), length=(0.5, 1.0))
    (plan,) = {setting.models["one_to_one"][0] for setting in settings(config) if setting.planned}
    assert plan == plan_spec(config, "one_to_one", 0)
    for setting in settings(config):
        own = setting.models["one_to_one"][0]
        changed = {name for name in vars(plan) if getattr(own, name) != getattr(plan, name)}
        expected = {"length": "steps", "n_words": "task_options"}.get(setting.factor, setting.factor)
        assert changed == (set() if setting.planned else {expected})
        # SCAN is not varied at this profile: it stands at the plan's setting or not at all.
        assert set(setting.models) == ({"one_to_one", "scan"} if setting.planned else {"one_to_one"})
    marked = [setting.factor for setting in settings(config) if setting.planned]
    assert len(marked) == len(set(marked)) == len({setting.factor for setting in settings(config)})


def test_the_paper_profile_has_every_level_with_three_seeds_on_two_tasks():
    found = {(setting.factor, setting.key): setting for setting in settings(PROFILES["paper"])}
    for factor, keys in {
        "cell": ["gru", "lstm", "vanilla", "ugrnn"],
        "width": ["32", "64", "128", "256", "512"],
        "weight_decay": ["0", "1e-05", "0p0001", "0p001"],
        "length": ["0p25", "0p5", "1", "2"],
        "n_words": ["3", "10", "26"],
    }.items():
        assert [key for own, key in found if own == factor] == keys
        for key in keys:
            tasks = {"one_to_one", "scan"} if factor != "n_words" or key == "3" else {"one_to_one"}
            assert set(found[factor, key].models) == tasks
            assert all(len(specs) == 3 for specs in found[factor, key].models.values())


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"factor": "weigth_decay"}, UnknownName, "did you mean 'weight_decay'"),
        ({"cell": "grru"}, UnknownName, "did you mean 'gru'"),
        ({"varied": "one_to_won"}, UnknownName, "did you mean 'one_to_one'"),
        ({"length": "0.5,-1"}, BadInput, "length is .* must be positive"),
        ({"weight_decay": "-1e-3"}, BadInput, "must not be negative"),
        ({"seeds": 0}, BadInput, "seeds is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        override(PROFILES["quick"], given)


def test_words_before_are_found_at_their_lag():
    tokens = torch.tensor([[2, 0, 1, 2]])
    found = lagged_words(tokens, torch.ones(1, 4, dtype=torch.bool), 3).view(4, LAGS, 3)
    for place in range(4):
        for lag in range(1, LAGS + 1):
            expected = torch.zeros(3)
            if place >= lag:
                expected[tokens[0, place - lag]] = 1
            assert torch.equal(found[place, lag - 1], expected)


def test_a_network_without_recurrence_remembers_nothing_and_its_measure_adds_up(models):
    """States of AO depend on position and present word alone: what words before tell of them is noise."""
    store, options = Store(models), SHORT
    spec = plan_spec(Config(width=8, steps=4), "one_to_one", 0, task_options=options)
    found = measure_robustness(store.model(spec), samples=600)
    without = measure_robustness(store.model(_as_ao(spec)), samples=600)
    for way in ("teacher_forced", "free_running"):
        assert sum(found[way]["covariance_share"].values()) == pytest.approx(1, abs=1e-4)
        assert 0 < found[way]["typicality"] <= 1
    for side in ("encoder", "decoder"):
        assert sum(found["variance"][side].values()) == pytest.approx(1, abs=1e-4)
        assert found["memory"][side] > 0.3
        assert without["memory"][side] < 0.1
        assert without["variance"][side]["residual"] < found["variance"][side]["residual"]


def _as_ao(spec):
    return replace(spec, architecture="AO")


def test_a_network_that_wrote_the_right_words_is_the_teacher_forced_one(models, monkeypatch):
    monkeypatch.setattr("notebooks.attend.robustness.measure.greedy", lambda model, batch, steps: batch)
    spec = plan_spec(Config(width=8, steps=4), "one_to_one", 0, task_options=SHORT)
    found = measure_robustness(Store(models).model(spec), samples=60)
    assert found["same_words"] == 1
    assert found["free_running"] == found["teacher_forced"]


def test_values_and_tables_come_from_every_setting(tmp_path, models):
    result = run("robustness", out=tmp_path, models=models, overrides=TINY | {"factor": ("width", "length")})
    assert set(result.values["factors"]["width"]) == {"8", "16"}
    assert set(result.values["factors"]["length"]) == {"1", "2"}
    rows = [
        row for row in result.tables["points"] if row["factor"] == "width" and row["task"] == "one_to_one"
    ]
    shares = [row["residual_residual"] for row in rows if row["level"] == "16"]
    value = result.values["factors"]["width"]["16"]["one_to_one"]["residual_residual"]["value"]
    assert value == pytest.approx(np.mean(shares), rel=1e-5)
    # The plan, one more width, one more length, running free; each with both halves.
    assert [row["level"] for row in result.tables["settings"][::2]] == ["plan", "16", "2", "free"]
    assert result.values["headline"]["temporal_beats_input"]["settings"] == 4


def test_the_headline_counts_and_names():
    row = {"half": "h", "factor": "width", "low": None}
    rows = [
        row | {"level": "8", "value": 0.5, "holds": True, "clearly": True},
        row | {"level": "16", "value": -0.1, "holds": False, "clearly": False},
        row | {"level": "32", "value": 0.1, "holds": True, "clearly": False},
        row | {"level": "64", "value": None, "holds": None, "clearly": None},
    ]
    assert headline(rows) == {
        "h": {
            "settings": 3,
            "holds": pytest.approx(2 / 3),
            "clearly": pytest.approx(1 / 3),
            "smallest": -0.1,
            "fails": ["width 16"],
            "unclear": ["width 32"],
        }
    }
    assert headline([]) == {}


def test_what_governs_is_the_spread_between_extreme_levels_paired_by_seed():
    rows = [
        {"task": "a", "level": level, "seed": seed, "residual_residual": share}
        for level, shares in {"x": (0.1, 0.2), "y": (0.4, 0.7), "z": (0.2, 0.3)}.items()
        for seed, share in enumerate(shares)
    ]
    found = _governs(rows)["a"]
    assert (found["lowest"], found["highest"], found["n"]) == ("x", "y", 2)
    assert found["value"] == pytest.approx(0.4)
    assert level_key(1e-3) == "0p001"


# The robustness figures and sentences, drawn from a small made-up result.

TASKS = ("one_to_one", "scan")


def interval(value: float) -> dict:
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 3}


@pytest.fixture
def result() -> Result:
    levels = {"width": {"32": False, "64": True}, "weight_decay": {"0": True, "0.001": False}}
    outcomes = {name: interval(0.4) for name in OUTCOMES}
    points, factors = [], {}
    for factor, marked in levels.items():
        for level, planned in marked.items():
            for task in TASKS if planned else TASKS[:1]:
                factors.setdefault(factor, {}).setdefault(level.replace(".", "p"), {})[task] = outcomes
                row = {"factor": factor, "level": level, "planned": planned, "task": task, "seed": 0}
                points.append(row | {"residual_residual": 0.2})
    rows = [
        {"factor": factor, "level": level, "half": half, "scan_varied": False, **interval(value)}
        | {"holds": value > 0, "clearly": value > 0.1}
        for half in ("temporal_share_leads_scan", "temporal_beats_input")
        for factor, level, value in (("plan", "plan", 0.3), ("width", "32", -0.2), ("running", "free", 0.05))
    ]
    ways = {name: interval(0.5) for name in RUNNING}
    running = {"teacher_forced": ways, "free_running": ways, "same_words": interval(0.8)}
    values = {
        "factors": factors,
        "running": dict.fromkeys(TASKS, running),
        "governs": {
            "width": {"one_to_one": {"lowest": "32", "highest": "64", **interval(0.3)}},
            "weight_decay": {"one_to_one": {"lowest": "0.001", "highest": "0", **interval(0.1)}},
        },
        "headline": headline(rows),
    }
    tables = {"points": points, "settings": rows, "running": []}
    config = {"task": list(TASKS)}
    return Result("robustness", "quick", config, values, tables, {"modules": [], "hash": ""}, {})


def test_every_outcome_has_an_interval_and_the_plan_is_shaded(result):
    assert factors_of(result) == ["width", "weight_decay"]
    axes = outcomes_by_level(result, "width").get_axes()
    assert len(axes) == len(PANELS)  # SCAN has one level alone: no row
    assert axes[0].get_ylabel() == "one-to-one"
    assert axes[0].get_xlabel() == "width of the states"
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["32", "64"]
    for panel, outcomes in zip(axes, PANELS.values(), strict=True):
        bars = [
            line for line in panel.get_lines() if len(line.get_xdata()) == 2 and line.get_linewidth() == 1.4
        ]
        assert len(bars) == 2 * len(outcomes)
    ((shade,),) = [panel.patches for panel in axes[:1]]
    assert shade.get_x() < 1 < shade.get_x() + shade.get_width()


def test_factors_stand_in_the_order_of_their_span(result):
    axes = [panel for panel in residual_share_by_factor(result).get_axes() if panel.axison]
    assert [panel.get_title() for panel in axes] == ["width of the states", "weight decay"]
    assert axes[0].texts[0].get_text() == "span 0.30"
    assert axes[0].get_ylabel() == "covariance share"


def test_settings_are_filled_where_they_are_clear_of_zero(result):
    left, _ = headline_by_setting(result).get_axes()
    faces = [line.get_markerfacecolor() for line in left.get_lines() if line.get_marker() == "o"]
    assert [face == "white" for face in faces] == [False, True, True]
    names = [label.get_text() for label in left.get_yticklabels()]
    assert names == ["running free", "width of the states: 32", "as planned"]


def test_both_ways_of_running_are_drawn_for_each_task(result):
    panels = free_running(result).get_axes()
    titles = [panel.get_title() for panel in panels]
    assert titles == [f"{name}: 80% of samples without a fault" for name in ("one-to-one", "SCAN")]
    markers = [line for line in panels[0].get_lines() if line.get_marker() == "o"]
    assert len(markers) == 2 * len(RUNNING)


def test_sentences_name_where_the_finding_fails(result):
    text = headline_sentences(result)
    assert "at 2 of 3 settings, with a whole 95 % interval above zero at 1. " in text
    assert "It fails at: width of the states: 32." in text
    assert "Its interval reaches zero at: running free." in text
    assert text.endswith(
        "Intervals that reach zero: 2 of 6. Few seeds make wide intervals: such a setting has not been "
        "shown to fail."
    )
    assert "width of the states (from 32 to 64: 0.30 [0.20, 0.40])" in residual_sentences(result)
    assert "0.80 ± 0.10 of the samples" in running_sentences(result)
    assert "one-to-one, weight decay: 0 (plan)" in settings_table(result).index


def test_it_is_said_where_no_interval_reaches_zero(result):
    for row in result.tables["settings"]:
        row |= {"low": 0.1, "high": 0.3}
    assert headline_sentences(result).endswith("None of the 6 intervals reaches zero.")


def test_axes_reach_the_ends_of_intervals_but_of_the_widest(result):
    def drawn(low):
        wide = {"value": 0.05, "low": low, "high": 0.3, "n": 3}
        result.values["factors"]["width"]["32"]["one_to_one"] = dict.fromkeys(OUTCOMES, wide)
        return outcomes_by_level(result, "width")

    assert drawn(-0.2).get_axes()[0].get_ylim()[0] == pytest.approx(-0.25)
    assert cut_note(drawn(-0.2)) == ""
    assert drawn(-0.9).get_axes()[0].get_ylim()[0] == pytest.approx(-0.3)  # 0.3 below the lowest value
    assert cut_note(drawn(-0.9)) == NOTE


def test_a_run_of_one_task_says_that_the_headline_needs_two(result):
    result.values["headline"] = {}
    assert "needs both" in headline_sentences(result)
