"""Links of two directions made one: worked by hand, and by the published pseudo-code on matrices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlib.alignment.both_directions import symmetrise
from attnlib.errors import UnknownName

SIZE = 5
LINKS = st.frozensets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=12)


def by_pseudo_code(forward, backward, *, final):
    """Koehn's procedure, line by line, over Boolean matrices [target][source]; ``final`` is "or" or "and"."""
    matrices = [[[False] * SIZE for _ in range(SIZE)] for _ in range(3)]
    first, other, alignment = matrices
    for source, target in forward:
        first[target][source] = True
    for source, target in backward:
        other[target][source] = True
    for target in range(SIZE):
        for source in range(SIZE):
            alignment[target][source] = first[target][source] and other[target][source]

    def target_is_free(target):
        return not any(alignment[target])

    def source_is_free(source):
        return not any(row[source] for row in alignment)

    neighbours = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    added = True
    while added:
        added = False
        for target in range(SIZE):
            for source in range(SIZE):
                if not alignment[target][source]:
                    continue
                for source_step, target_step in neighbours:
                    new_source, new_target = source + source_step, target + target_step
                    if not (0 <= new_source < SIZE and 0 <= new_target < SIZE):
                        continue
                    in_union = first[new_target][new_source] or other[new_target][new_source]
                    if in_union and (target_is_free(new_target) or source_is_free(new_source)):
                        alignment[new_target][new_source] = True
                        added = True
    for direction in (first, other) if final else ():
        for target in range(SIZE):
            for source in range(SIZE):
                if not direction[target][source]:
                    continue
                frees = (target_is_free(target), source_is_free(source))
                if all(frees) if final == "and" else any(frees):
                    alignment[target][source] = True
    return {(s, t) for t in range(SIZE) for s in range(SIZE) if alignment[t][s]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "final"), [("grow-diag", ""), ("grow-diag-final", "or"), ("grow-diag-final-and", "and")]
)
@given(forward=LINKS, backward=LINKS)
def test_growing_is_what_the_pseudo_code_does(method, final, forward, backward):
    assert symmetrise(forward, backward, method) == by_pseudo_code(forward, backward, final=final)


@pytest.mark.slow
@given(LINKS, LINKS)
def test_what_is_grown_has_the_intersection_within_the_union(forward, backward):
    inner, outer = symmetrise(forward, backward, "intersection"), symmetrise(forward, backward, "union")
    assert inner <= symmetrise(forward, backward, "grow-diag") <= symmetrise(forward, backward) <= outer


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("intersection", {(0, 0)}),
        ("union", {(0, 0), (1, 1), (0, 1), (3, 3), (4, 0)}),
        ("grow-diag", {(0, 0), (0, 1), (1, 1)}),
        ("grow-diag-final", {(0, 0), (0, 1), (1, 1), (3, 3), (4, 0)}),
        ("grow-diag-final-and", {(0, 0), (0, 1), (1, 1), (3, 3)}),
    ],
)
def test_worked_by_hand(method, expected):
    """0-0 is in both. 0-1 touches it below, with target 1 free; then 1-1 touches 0-1, with source 1 free. 3-3
    touches nothing and both of its words are free; of 4-0 the source alone is."""
    forward, backward = {(0, 0), (1, 1), (3, 3)}, {(0, 0), (0, 1), (4, 0)}
    assert symmetrise(forward, backward, method) == expected


def test_an_unknown_method_is_refused():
    with pytest.raises(UnknownName, match="grow-diag"):
        symmetrise((), (), "grow")
