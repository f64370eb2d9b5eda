"""Outcomes of the chapter on the forming of temporal components, by hand from small numbers."""

from attnlib.companion.sentences.temporal_formation import (
    beyond_sentences,
    half_sentences,
    longer_sentences,
    outcome_sentences,
    step_sentences,
)
from attnlib.experiments.result import Result

TASK = "one_to_one"


def interval(value, half=0.1, n=3):
    return {"value": value, "low": value - half, "high": value + half, "n": n}


def side(*moved, slope, sign=1):
    places = {
        f"by_{k}": {"expected": interval(sign * k, 0), "largest": interval(sign * x)}
        for k, x in zip((1, 5), moved, strict=True)
    }
    return places | {"slope": interval(slope)}


def formed(kind, rows=()):
    return Result("temporal_formation", "paper", {"task": [TASK]}, {TASK: {"AED": kind}},
                  {"positions": list(rows)}, {}, {})  # fmt: skip


def kind(encoder=0.7, decoder=0.55, rebuilt=0.5, constant=0.7, alone=0.3):
    return {
        "wordless": {
            name: {"average": {"r2_centred": interval(value)}}
            for name, value in (("encoder", encoder), ("decoder", decoder))
        },
        "rebuilt": {
            "average": {"both": {"similarity": interval(rebuilt)}},
            "constant": {"both": {"similarity": interval(constant)}},
            "temporal": {"alone": {"similarity": interval(alone)}},
        },
        "offsets": {
            "encoder": side(0.05, 4.5, slope=0.8, sign=-1),
            "decoder": side(0.1, 2.5, slope=0.4),
        },
    }


def test_numbers_are_held_against_one_half_by_the_whole_interval():
    result = formed(kind())
    assert half_sentences(result, TASK, "wordless").endswith(
        "AED, encoder R² 0.70 ± 0.10, decoder R² 0.55 ± 0.10: above one half only for encoder R²."
    )
    assert half_sentences(result, TASK, "offsets").endswith("above one half only for encoder ahead.")
    assert half_sentences(formed(kind(0.4, 0.4)), TASK, "wordless").endswith("one half on neither side.")
    assert half_sentences(formed(kind(0.9, 0.9)), TASK, "wordless").endswith("one half on both sides.")
    assert half_sentences(result, "scan", "offsets") == ""


def test_a_course_that_bends_is_told_from_a_line():
    text = step_sentences(formed(kind()), TASK)
    assert "ahead by 1, 5:" in text
    assert "* AED: encoder ahead −0.05 ± 0.10, −4.50 ± 0.10; decoder ahead 0.10 ± 0.10, 2.50 ± 0.10" in text
    straight = kind()
    straight["offsets"]["encoder"] = side(0.8, 4.5, slope=0.9, sign=-1)
    assert step_sentences(formed(straight), TASK) == ""


def longer(n, networks):
    numbers = {"word_accuracy": interval(0.9, n=networks), "length": interval(40, 0, networks)}
    leaves = interval(28, 15, n) if n else {"value": None, "low": None, "high": None, "n": 0}
    return {"longer": {"times_1": numbers | {"leaves": leaves}, "times_2": numbers | {"leaves": leaves}}}


def test_attention_leaves_in_some_networks_at_places_that_there_are():
    text = longer_sentences(formed(longer(5, 10)))
    assert "leaves its place in 5 of 10 networks, at position 28 [13, 39]; never in the others." in text
    assert "in 3 of 3 networks, at position 28 [13, 39]." in longer_sentences(formed(longer(3, 3)))
    assert "never leaves its place in any of 10 networks." in longer_sentences(formed(longer(0, 10)))


def position(t, attention, temporal):
    row = {"task": TASK, "kind": "AED", "position": t, "trained_up_to": 2}
    for name, value in (("in_place", attention), ("temporal_in_place", temporal)):
        found = interval(value)
        row |= {name: value, f"{name}_low": found["low"], f"{name}_high": found["high"]}
    return row


def test_attention_parts_from_temporal_components_where_intervals_are_apart():
    within = [position(0, 1.0, 0.9), position(1, 1.0, 0.7)]
    parted = [position(2, 0.7, 0.1), position(3, 0.5, 0.1)]
    text = beyond_sentences(formed(kind(), within + parted), TASK)
    assert "positions): AED 0.60 against 0.10 (within 1.00 against 0.80)." in text
    half = [position(2, 0.7, 0.1), position(3, 0.2, 0.1)]
    text = beyond_sentences(formed(kind(), within + half), TASK)
    assert "leave together: AED 0.45 against 0.10" in text
    assert beyond_sentences(formed(kind()), TASK) == ""


def test_outcomes_name_the_kinds_that_meet_a_condition():
    course, clock = outcome_sentences(formed(kind(decoder=0.8))).splitlines()
    assert course.endswith("than a constant state: one-to-one, AED (0.50 ± 0.10 against 0.70 ± 0.10).")
    assert clock.endswith("one-to-one, AED (encoder ahead 0.80 ± 0.10; μ·μ alone 0.30 ± 0.10).")
    course, clock = outcome_sentences(formed(kind(alone=0.45))).splitlines()
    assert course.endswith("nowhere here."), "0.55 ± 0.10 is not above one half"
    assert clock.endswith("nowhere here."), "0.45 ± 0.10 is not below one half"
