"""State components as pictures: axes named, intervals there, labels that do not cover each other."""

from copy import deepcopy

import pytest

from attnlib.companion.sentences.state_components import (
    exact_sentences,
    outcome_sentences,
    said,
    variance_sentences,
)
from attnlib.experiments.result import Result
from attnlib.plotting.state_components import (
    LABELLED,
    averages_against_exact,
    in_one_space,
    input_clusters,
    temporal_curves,
    variance_explained,
)
from attnlib.plotting.style import PART_COLOURS

SHARES = ("temporal", "input", "additive", "averages", "temporal_unique", "input_unique")


def interval(value, half=0.05):
    return {"value": value, "low": value - half, "high": value + half, "n": 3}


def side(temporal, word):
    held_out = dict.fromkeys(SHARES, interval(0.5)) | {
        "additive": interval(0.9),
        "temporal_unique": interval(temporal),
        "input_unique": interval(word),
    }
    difference = {"temporal": interval(0.2), "input": interval(0.1), "fit": interval(0.1)}
    return {"held_out": held_out, "gain": interval(0.03), "difference": difference}


@pytest.fixture
def result() -> Result:
    found = {"encoder": side(0.1, 0.4), "decoder": side(0.3, 0.31)}
    tables: dict = {"temporal": [], "input": [], "states": [], "explained": []}
    for kind in ("VED", "AED"):
        name = {"task": "scan", "architecture": kind, "kind": kind}
        tables["explained"] += [
            name | {"space": space, "axis": axis, "share": 0.5 - 0.1 * axis}
            for space in ("temporal", "input", "together")
            for axis in range(3)
        ]
        for which in ("encoder", "decoder"):
            here = name | {"side": which}
            for i in range(4):
                place = {f"{axis}{n}": float(i * n) for axis in ("pc", "together") for n in (1, 2, 3)}
                tables["temporal"].append(here | {"position": i} | place)
                tables["input"].append(here | {"word": f"<{which}{i}>"} | place)
                tables["states"].append(here | {"word": f"<{which}{i}>", "pc1": 1.0, "pc2": 2.0})
    return Result("state_components", "quick", {"task": ["scan"], "seeds": 3},
                  {"scan": {"AED": found, "VED": deepcopy(found)}}, tables, {}, {})  # fmt: skip


@pytest.mark.parametrize("draw", [temporal_curves, input_clusters, in_one_space])
def test_a_panel_a_kind_with_the_axes_share_of_variance(result, draw):
    figure = draw(result, ("scan",))
    assert [axes.get_title() for axes in figure.get_axes()] == ["SCAN, VED", "SCAN, AED"]
    for axes in figure.get_axes():
        assert axes.get_xlabel() == "axis 1 (50 % of variance)"
        assert axes.get_ylabel() == "axis 2 (40 %)"


def test_words_are_labelled_without_their_marks(result):
    axes = input_clusters(result, ("scan",)).get_axes()[0]
    written = [text.get_text() for text in axes.texts]
    assert "encoder0" in written
    assert len(written) <= 2 * LABELLED


def test_both_sides_have_a_point_and_an_interval_for_every_share(result):
    left, right = variance_explained(result).get_axes()
    assert (left.get_title(), right.get_title()) == ("encoder states", "decoder states")
    for axes in (left, right):
        assert axes.get_xlabel() == "share of variance, held out"
        lines = [
            line for line in axes.get_lines() if len(line.get_xdata()) == 2 and line.get_color() != "#e5e5e5"
        ]
        assert len(lines) == 2 * 5
        assert {PART_COLOURS["temporal"], PART_COLOURS["input"]} <= {line.get_color() for line in lines}


def test_a_single_seed_has_points_without_intervals(result):
    for kind in result.values["scan"].values():
        for which in ("encoder", "decoder"):
            for share in kind[which]["held_out"].values():
                share["low"] = share["high"] = None
    lines = variance_explained(result).get_axes()[0].get_lines()
    assert not [
        line for line in lines if line.get_color() in PART_COLOURS.values() and len(line.get_xdata()) == 2
    ]


def test_the_two_fits_side_by_side(result):
    left, right = averages_against_exact(result).get_axes()
    assert left.get_xlabel().startswith("held-out share")
    assert "s.d." in right.get_xlabel()


def test_sentences_come_from_the_numbers(result):
    text = variance_sentences(result)
    assert "smaller in 2, and not to be told apart (intervals overlap) in 2" in text
    assert "0.90 [0.85, 0.95]" in text
    assert "4 of 4 sides" in exact_sentences(result)
    result.values["scan"]["AED"]["encoder"]["gain"] = interval(0.001)
    assert "3 of 4 sides" in exact_sentences(result)
    assert said({"value": -0.5, "low": None, "high": None, "n": 1}) == "−0.50"


def test_outcomes_name_the_sides_that_meet_a_condition_and_count_them(result):
    kinds = result.values["scan"]
    kinds["AED"]["quality"] = {"token_accuracy": interval(0.95)}
    kinds["VED"]["quality"] = {"token_accuracy": interval(0.6)}  # has not learned its task
    for kind in kinds.values():
        kind["decoder"]["held_out"]["additive"] = interval(0.4)
    assert outcome_sentences(result).splitlines() == [
        "* Less than half of the variance explained, where more than 90 % of the words are right: decoder of "
        "AED on SCAN (0.40 [0.35, 0.45]); 1 of 2 sides.",
        "* A unique part under 0.05: nowhere here.",
    ]
    kinds["AED"]["decoder"]["held_out"] |= {"additive": interval(0.9), "input_unique": interval(0.02, 0.01)}
    first, second = outcome_sentences(result).splitlines()
    assert first.endswith("right: nowhere here.")
    assert second.endswith("under 0.05: χ in the decoder of AED on SCAN (0.02 [0.01, 0.03]).")
