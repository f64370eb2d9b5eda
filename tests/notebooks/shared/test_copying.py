"""Networks that failed, by what their attention does: drawn, driven away, or neither."""

import pytest

from attnlib.errors import BadInput
from notebooks.shared.copying import check_checkpoints, followed, judged, sides, turned_away

LENGTH = 10


def course(accuracy=0.5, right=0.02, later=0.1, shown=0.0, left_out=0.6, without=0.7, uniform=0.2):
    ends = {"accuracy": accuracy, "attention_right": right, "attention_later": later}
    ends |= {
        "says_shown": shown,
        "says_left_out": left_out,
        "right_without": without,
        "right_at_uniform": uniform,
    }
    return {"steps": [0, 10]} | {name: [0.1, end] for name, end in ends.items()}


def points(*courses):
    return [({"seed": seed}, own) for seed, own in enumerate(courses)]


def test_networks_that_failed_are_grouped_by_where_their_attention_stands():
    found = turned_away(
        points(course(accuracy=0.99, right=0.9), course(right=0.02), course(right=0.04), course(right=0.3)),
        LENGTH,
    )
    assert (found["away"]["n"], found["drawn"]["n"]) == (2, 1)
    away = found["away"]
    assert away["weight"]["value"] == pytest.approx(0.3)  # 0.2 and 0.4 times 1/10
    assert away["later_less_weight"]["value"] == pytest.approx(0.7)
    assert away["left_out_less_shown"]["value"] == pytest.approx(0.6)
    assert away["without_less_uniform"]["value"] == pytest.approx(0.5)
    assert found["drawn"]["weight"]["value"] == pytest.approx(3)


def test_who_copies_late_may_copy_without_attending():
    late = {"steps": [0, 10, 20], "accuracy": [0.1, 0.5, 0.97]}
    whole = points(*(late | {"attention_accuracy": [0.1, 0.1, end]} for end in (0.0, 0.96)))
    found = followed(whole, 10, 20)
    assert (found["late"], found["late_attending"], found["steps"]) == (2, 1, 20)
    assert [own["accuracy"] for _, own in judged(whole, 10)] == [[0.1, 0.5], [0.1, 0.5]]


def test_networks_are_looked_at_when_they_are_judged():
    check_checkpoints(15, 10, 15)
    check_checkpoints(20, 10, 40)
    with pytest.raises(BadInput, match="steps is 15, and a network that is trained for longer"):
        check_checkpoints(15, 10, 40)


def test_sides_are_those_of_uniform_attention_early_and_in_the_end():
    weights = [[0.11, 0.12, 0.9], [0.09, 0.12, 0.9], [0.11, 0.08, 0.01], [0.09, 0.12, 0.01]]
    probes = [[0.3, 0.3, 0.9], [0.1, 0.3, 0.9], [0.1, 0.1, 0.0], [0.1, 0.1, 0.0]]
    courses = [
        {"steps": [0, 10, 20], "attention_right": own, "probe_right": probe, "probe_elsewhere": [0.2] * 3}
        for own, probe in zip(weights, probes, strict=True)
    ]
    found = sides(points(*courses), LENGTH, 10)
    assert (found["n"], found["drawn"], found["step"], found["end"]) == (4, 2, 10, 20)
    assert (found["same_at_first"]["value"], found["same"]["value"]) == (0.5, 0.75)
    assert (found["probe_at_first"]["value"], found["probe"]["value"]) == (0.75, 1)
    assert sides([], LENGTH, 10)["n"] == 0
