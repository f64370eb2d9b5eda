"""The robustness figures and sentences, drawn from a small made-up result."""

import pytest

from attnlib.companion.sentences.robustness import (
    headline_sentences,
    residual_sentences,
    running_sentences,
    settings_table,
)
from attnlib.experiments.result import Result
from attnlib.experiments.robustness import OUTCOMES, headline
from attnlib.plotting.cut import NOTE, cut_note
from attnlib.plotting.robustness import (
    PANELS,
    RUNNING,
    factors_of,
    free_running,
    headline_by_setting,
    outcomes_by_level,
    residual_share_by_factor,
)

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
