"""Networks that failed, by what their attention does: drawn, driven away, or neither."""

import pytest

from attnlib.errors import BadInput
from notebooks.shared.copying import check_looks, followed, judged, sides, turned_away
from notebooks.shared.sentences import sides_sentence, turned_sentences

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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "turned round"),
        (
            {"later": 0.02},
            "is not shown",
        ),  # attention on words that have been said, not away from the due one
        ({"shown": 0.6, "left_out": 0.0}, "is not shown"),
        ({"without": 0.2}, "is not shown"),  # what is left out does not help to say it
        ({"right": 0.2, "shown": 0.6, "left_out": 0.0}, "They say what they see."),
        (
            {"right": 0.2, "shown": 0.04, "left_out": 0.0},
            "what they do not, and seldom: attention has hardly begun to count.",
        ),
        ({"right": 0.2}, "is not shown"),
    ],
)
def test_what_is_said_follows_the_intervals(changes, words):
    noise = (-0.001, 0.0, 0.001)
    base = {"right": 0.02} | changes
    found = turned_away(points(*(course(**base | {"right": base["right"] + e}) for e in noise)), LENGTH)
    told = turned_sentences({"some": found, "others": turned_away([], LENGTH)}, 10)
    assert words in told
    way = "more" if base["right"] > 0.1 else "less"
    where = f"with {way} weight on the word to be said than at uniform attention"
    assert told.startswith(f"* Some, {where} after 10 updates, failures: 3.")
    assert "thers" not in told.replace("others still", "")


def test_who_copies_late_may_copy_without_attending():
    late = {"steps": [0, 10, 20], "accuracy": [0.1, 0.5, 0.97]}
    whole = points(*(late | {"attention_accuracy": [0.1, 0.1, end]} for end in (0.0, 0.96)))
    found = followed(whole, 10, 20)
    assert (found["late"], found["late_attending"], found["steps"]) == (2, 1, 20)
    assert [own["accuracy"] for _, own in judged(whole, 10)] == [[0.1, 0.5], [0.1, 0.5]]


def test_networks_are_looked_at_when_they_are_judged():
    check_looks(15, 10, 15)
    check_looks(20, 10, 40)
    with pytest.raises(BadInput, match="steps is 15, and a network that is trained for longer"):
        check_looks(15, 10, 40)


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
    told = sides_sentence(found)
    assert "After 20 updates 2 of 4 single heads, each in a body of its own, have more weight" in told
    assert "after 10 updates 3 of 4 (95 % interval" in told
    assert sides_sentence(sides([], LENGTH, 10)) == ""
