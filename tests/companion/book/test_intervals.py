"""Which of two intervals is larger, and which side of a threshold one is on."""

from companion.book.intervals import above, listed, side


def interval(low, high):
    value = None if low is None else (low + high) / 2
    return {"value": value, "low": low, "high": high}


def test_one_is_above_the_other_where_they_do_not_overlap():
    assert above(interval(0.5, 0.6), interval(0.3, 0.4))
    assert not above(interval(0.5, 0.6), interval(0.3, 0.55))
    assert not above(interval(0.3, 0.4), interval(0.5, 0.6))
    assert not above(interval(None, None), interval(0.3, 0.4))
    assert not above(interval(0.5, 0.6), interval(None, None))


def test_the_side_of_a_threshold_takes_the_whole_interval():
    ends = ((0.6, 0.7), (0.4, 0.7), (0.1, 0.2), (None, None))
    assert [side(interval(*pair), 0.5) for pair in ends] == ["above", "open", "below", "open"]


def test_lists_in_words():
    assert [listed(parts) for parts in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
