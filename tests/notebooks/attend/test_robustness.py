"""The headline at every setting, and what moves the share of residuals, from outcomes by hand."""

import pytest

from companion.results.frames import Table
from notebooks.attend.robustness import experiment
from notebooks.attend.robustness.experiment import GROUP, OUTCOMES, PLAN, SUITE, WAY, headline
from tests.notebooks.worked import assert_answer

COLUMNS = GROUP | {"seed": SUITE["seed"]} | OUTCOMES


def networks(task, shares, *, factor=PLAN, level=PLAN, **others):
    """Networks of seeds 0, 1, … with these shares of μ·μ, which alone rebuilds 0.75 of it, χ·χ 0.25."""
    named = {"factor": factor, "level": level, "planned": False, "task": task}
    rebuilt = {"temporal_only": 0.75, "input_only": 0.25}
    return [
        named | {"seed": seed, "temporal_share": share} | rebuilt | others
        for seed, share in enumerate(shares)
    ]


def table(*groups):
    return Table.of([row for group in groups for row in group], COLUMNS, "a trained network")


def half_of_headline(settings, half, **names):
    (row,) = (row for row in settings.records() if {"half": half, **names}.items() <= row.items())
    return row


PLANNED = table(networks("one_to_one", [0.7, 0.6]), networks("scan", [0.1, 0.2]))
NARROW = {"factor": "width", "level": "8"}
FREE = Table.of(
    [
        row | {"way": "free_running"}
        for row in networks("one_to_one", [0.5, 0.5]) + networks("scan", [0.5, 0.5])
    ],
    WAY | COLUMNS,
    "a way of running",
)
NOTHING = table()


def settings_of(varied=NOTHING, planned=PLANNED, free=FREE):
    return experiment.headline_by_setting(planned, varied, free)


def test_shares_are_subtracted_seed_by_seed():
    """0.7 − 0.1 and 0.6 − 0.2."""
    half = half_of_headline(settings_of(), "temporal_share_leads_scan", factor=PLAN)
    assert (half["value"], half["n"], half["holds"]) == (pytest.approx(0.5), 2, True)


def test_similarities_are_compared_on_one_to_one():
    assert half_of_headline(settings_of(), "temporal_beats_input", factor=PLAN)["value"] == 0.5


def test_a_level_that_scan_lacks_is_compared_with_scan_as_planned():
    settings = settings_of(table(networks("one_to_one", [0.3, 0.4], **NARROW)))
    leads = half_of_headline(settings, "temporal_share_leads_scan", **NARROW)
    assert (leads["value"], leads["scan_varied"]) == (pytest.approx(0.2), False)


def test_a_level_that_scan_has_is_compared_there():
    one_to_one, scan = (
        networks(task, [share], **NARROW) for task, share in (("one_to_one", 0.3), ("scan", 0.3))
    )
    leads = half_of_headline(settings_of(table(one_to_one, scan)), "temporal_share_leads_scan", **NARROW)
    assert (leads["value"], leads["scan_varied"]) == (0, True)


def test_a_difference_of_zero_does_not_hold():
    half = half_of_headline(settings_of(), "temporal_share_leads_scan", factor="running", level="free")
    assert (half["value"], half["holds"], half["clearly"]) == (0, False, False)


def test_one_network_is_not_clearly_above_zero():
    planned = table(networks("one_to_one", [0.7]), networks("scan", [0.1]))
    half = half_of_headline(settings_of(planned=planned), "temporal_share_leads_scan", factor=PLAN)
    assert (half["holds"], half["clearly"]) == (True, False)


def test_a_level_of_scan_alone_says_nothing_of_the_headline():
    settings = settings_of(table(networks("scan", [0.1, 0.2], **NARROW)))
    assert {row["factor"] for row in settings.records()} == {PLAN, "running"}


def test_without_scan_there_is_no_headline():
    assert not settings_of(planned=table(networks("one_to_one", [0.7]))).records()


def test_residuals_move_between_the_levels_with_extreme_means():
    """From 0.1 and 0.2 at width 8 to 0.4 and 0.3 at width 32; width 16 is between."""
    by_level = {"16": (0.2, 0.2), "8": (0.1, 0.2), "32": (0.4, 0.3)}
    rows = [
        networks("one_to_one", [0.5], factor="width", level=level, residual_residual=share)[0]
        | {"seed": seed}
        for level, shares in by_level.items()
        for seed, share in enumerate(shares)
    ]
    (row,) = experiment.governs(table(rows)).records()
    assert (row["lowest"], row["highest"]) == ("8", "32")
    assert (row["value"], row["n"]) == (pytest.approx(0.2), 2)


def test_one_level_moves_nothing():
    assert not experiment.governs(
        table(networks("one_to_one", [0.5], **NARROW, residual_residual=0.1))
    ).records()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            (
                [
                    {
                        "half": "h",
                        "factor": "width",
                        "level": "8",
                        "value": 0.5,
                        "holds": True,
                        "clearly": True,
                    },
                    {
                        "half": "h",
                        "factor": "width",
                        "level": "16",
                        "value": -0.1,
                        "holds": False,
                        "clearly": False,
                    },
                    {
                        "half": "h",
                        "factor": "width",
                        "level": "32",
                        "value": 0.1,
                        "holds": True,
                        "clearly": False,
                    },
                    {
                        "half": "h",
                        "factor": "width",
                        "level": "64",
                        "value": None,
                        "holds": None,
                        "clearly": None,
                    },
                ],
            ),
            {
                "h": {
                    "settings": 3,
                    "holds": 2 / 3,
                    "clearly": 1 / 3,
                    "smallest": -0.1,
                    "fails": ["width 16"],
                    "unclear": ["width 32"],
                }
            },
            id="one_level_fails_and_one_is_unclear",
        ),
        pytest.param(([],), {}, id="no_settings"),
    ],
)
def test_headline_by_hand(given, expected):
    assert_answer(headline(*given), expected)
