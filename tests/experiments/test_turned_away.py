"""Networks that failed, by what their attention does: drawn, driven away, or neither."""

import pytest

from attnlib.companion.turned_away_sentences import sides_sentence, turned_sentences
from attnlib.errors import BadInput
from attnlib.experiments.copying_courses import check_looks, followed, judged
from attnlib.experiments.turned_away import sides, turned_away

LENGTH = 10


def course(accuracy, right, shown, left_out, attention=0.0):
    ends = {"accuracy": accuracy, "attention_right": right, "says_shown": shown, "says_left_out": left_out}
    return {"steps": [0, 10]} | {
        name: [0.1, end] for name, end in (ends | {"attention_accuracy": attention}).items()
    }


def points(*courses):
    return [({"seed": seed}, own) for seed, own in enumerate(courses)]


def test_only_networks_that_failed_are_asked_where_they_look():
    found = turned_away(
        points(course(0.99, 0.9, 0.9, 0.0), course(0.5, 0.02, 0.1, 0.6), course(0.5, 0.12, 0.2, 0.6)), LENGTH
    )
    assert (found["n"], found["away"]["value"]) == (2, 0.5)
    assert found["weight"]["value"] == pytest.approx(0.7)  # 0.2 and 1.2 times 1/10
    assert found["says_shown"]["value"] == pytest.approx(0.15)
    assert found["left_out_over_shown"]["value"] == pytest.approx(0.45)
    assert turned_away(points(course(0.99, 0.9, 0.9, 0.0)), LENGTH)["n"] == 0


@pytest.mark.parametrize(
    ("right", "shown", "left_out", "words"),
    [
        (0.01, 0.0, 0.6, "turned round"),
        (0.2, 0.0, 0.6, "So they say the word that they do not see."),
        (0.01, 0.6, 0.0, "So they say what they see."),
        (0.01, 0.3, 0.3, "cannot be told"),
    ],
)
def test_what_is_said_follows_the_intervals(right, shown, left_out, words):
    noise = (-0.001, 0.0, 0.001)
    found = turned_away(points(*(course(0.5, right + e, shown + e, left_out - e) for e in noise)), LENGTH)
    told = turned_sentences({"some": found, "others": turned_away([], LENGTH)})
    assert words in told
    assert told.startswith(
        f"* Some, failures: 3. In {3 if right < 0.1 else 0} the word to be said has less weight"
    )
    assert "thers" not in told


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
    found = sides(points(*({"steps": [0, 10, 20], "attention_right": own} for own in weights)), LENGTH, 10)
    assert (found["n"], found["drawn"], found["step"]) == (4, 2, 10)
    assert (found["same_at_first"]["value"], found["same"]["value"]) == (0.5, 0.75)
    told = sides_sentence(found)
    assert "In the end 2 of 4 single heads have more weight" in told
    assert "after 10 updates 3 of 4 (95 % interval" in told
    assert sides_sentence(sides([], LENGTH, 10)) == ""
