"""Locality of the probe as an experiment: stages by hand."""

from notebooks.learn.probe_locality.experiment import PLACES, Config, compute
from tests.notebooks.given import Given

NOTHING = {"value": None, "low": None, "high": None, "n": 0}


def computed(*courses, steps=20):
    """Values and rows of a store that knows one course for each seed, or None."""
    values, tables = compute(
        Config(seeds=len(courses), steps=steps), Given(lambda spec, _: courses[spec.seed])
    )
    return values, tables["courses"]


def course(accuracy, **places):
    still = dict.fromkeys(PLACES, [0.0] * len(accuracy)) | {"loss": [0.5] * len(accuracy)}
    return still | {"steps": [0, 10, 20][: len(accuracy)], "accuracy": accuracy} | places


KNOWN = course([0.5, 0.8, 1.0], keyword=[0.0, 4.0, 6.0], last=[0.0, 5.0, 2.0])


def test_early_is_the_first_checkpoint_right_for_three_in_four():
    values, rows = computed(
        course([0.5, 0.8, 1.0], keyword=[0.0, 4.0, 6.0], next=[0.0, 1.0, 2.0], last=[0.0, 0.0, 9.0]),
        course([0.5, 0.7, 0.75], keyword=[0.0, 3.0, 8.0], next=[9.0, 9.0, 3.0], last=[0.0, 0.0, 7.0]),
    )
    assert values["early"]["step"]["value"] == 15
    assert values["early"]["keyword"]["value"] == 6  # 4 of the first, 8 of the second
    assert values["early"]["keyword_over_next"]["value"] == 4  # 3 and 5
    assert values["late"]["last_over_keyword"]["value"] == 1  # 3 and -1
    assert values["late"]["step"] == {"value": 20, "low": 20, "high": 20, "n": 2}
    assert values["midway"]["step"]["value"] == 10
    assert values["moved"]["last"]["value"] == 8  # 0 to 9 and 0 to 7
    assert values["moved"]["last_over_keyword"]["value"] == 4.5  # -4 to 3 and -3 to -1
    assert len(rows) == 6
    places = dict.fromkeys(PLACES, 0.0) | {"keyword": 4.0, "next": 1.0}
    assert rows[1] == {"seed": 0, "step": 10, "accuracy": 0.8, "loss": 0.5} | places


def test_the_lead_of_the_last_position_is_found_wherever_it_is():
    values, _ = computed(KNOWN, KNOWN)
    assert values["lead"] == {"looks": 3, "ahead": 1, "first": 10, "final": 10, "step": 10} | {
        "most": {"value": 1, "low": 1, "high": 1, "n": 2}
    }
    apart = [course([0.5, 0.8], keyword=[0.0, 4.0], last=[0.0, 4.0 + lead]) for lead in (1, 9)]
    lead = computed(*apart, steps=10)[0]["lead"]
    assert (lead["ahead"], lead["first"], lead["step"]) == (0, None, 10)


def test_a_network_that_never_learns_has_no_early_checkpoint():
    values, _ = computed(course([0.5, 0.5, 0.6]))
    assert values["early"]["keyword"]["n"] == 0
    assert values["late"]["accuracy"]["value"] == 0.6


def test_a_network_that_is_not_known_yet_is_left_out():
    values, rows = computed(None, KNOWN, KNOWN)
    assert values["late"]["keyword"] == {"value": 6, "low": 6, "high": 6, "n": 2}
    assert (values["lead"]["ahead"], values["moved"]["last"]["n"]) == (1, 2)
    assert {row["seed"] for row in rows} == {1, 2}
    values, rows = computed(None)
    nowhere = {"first": None, "final": None, "step": None, "most": NOTHING}
    assert values["lead"] == {"looks": 0, "ahead": 0} | nowhere
    assert (values["late"]["last"]["n"], values["moved"]["last"]["n"], rows) == (0, 0, [])


def test_midway_is_the_last_snapshot_of_the_first_half():
    whole = course([0.5, 0.5, 0.6], last=[1.0, 2.0, 4.0])
    for steps, last in (([0, 10, 20], 2), ([0, 11, 20], 1)):
        values, _ = computed(whole | {"steps": steps})
        assert [values[stage]["last"]["value"] for stage in ("midway", "late")] == [last, 4]
