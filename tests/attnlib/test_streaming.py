"""The base of all sums over a corpus: merging, states, and settings that must agree."""

from collections import Counter
from dataclasses import dataclass

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.streaming import StreamingSums


@dataclass(frozen=True)
class Pair:
    first: int = 0
    second: int = 0

    def __add__(self, other):
        return Pair(self.first + other.first, self.second + other.second)


class Part(StreamingSums):
    SUMS = ("count",)

    def __init__(self):
        self.count = 0


class Whole(StreamingSums):
    SUMS = ("number", "tensor", "words", "names", "pair", "part", "parts")

    def __init__(self, size=2):
        self.size = size
        self.number = 0.0
        self.tensor = torch.zeros(size)
        self.words = Counter()
        self.names = frozenset()
        self.pair = Pair()
        self.part = Part()
        self.parts = {}

    def settings(self):
        return {"size": self.size}

    def empty_entry(self, table, state):
        return Part()


def whole(*, number, name):
    sums = Whole()
    sums.number = number
    sums.tensor += number
    sums.words.update([3, 3, 5])
    sums.names = frozenset({name})
    sums.pair = Pair(1, 2)
    sums.part.count = 7
    sums.parts[name] = Part()
    sums.parts[name].count = 4
    return sums


def test_every_kind_of_sum_is_added():
    merged = whole(number=1.5, name="a") + whole(number=2.5, name="b")
    assert merged.number == 4.0
    assert merged.tensor.tolist() == [4.0, 4.0]
    assert merged.words == {3: 4, 5: 2}
    assert merged.names == {"a", "b"}
    assert merged.pair == Pair(2, 4)
    assert merged.part.count == 14
    assert {name: part.count for name, part in merged.parts.items()} == {"a": 4, "b": 4}


def test_entries_of_one_name_are_added():
    merged = whole(number=1.0, name="a") + whole(number=1.0, name="a")
    assert merged.parts["a"].count == 8


def test_merging_leaves_the_addends_alone():
    first, second = whole(number=1.0, name="a"), whole(number=2.0, name="b")
    merged = first.merge(second)
    merged.tensor += 10
    merged.part.count += 10
    merged.parts["b"].count += 10
    assert first.tensor.tolist() == [1.0, 1.0]
    assert first.part.count == 7
    assert second.parts["b"].count == 4


def test_a_loaded_state_is_what_was_summed():
    sums = whole(number=1.5, name="a")
    again = Whole().load_state_dict(sums.state_dict())
    assert again.pair == sums.pair
    assert again.words == sums.words
    assert again.names == sums.names
    assert torch.equal(again.tensor, sums.tensor)
    assert again.parts["a"].count == 4


def test_loading_replaces_what_was_summed_before():
    sums = whole(number=1.5, name="a").load_state_dict(whole(number=2.0, name="b").state_dict())
    assert sums.number == 2.0
    assert sums.parts.keys() == {"b"}


def test_an_update_of_loaded_sums_leaves_the_state_alone():
    state = whole(number=1.0, name="a").state_dict()
    Whole().load_state_dict(state).tensor.add_(5)
    assert state["tensor"].tolist() == [1.0, 1.0]


def test_sums_of_other_settings_are_refused():
    with pytest.raises(BadInput, match="size 2 with those of 3: make both with the same size"):
        Whole(2) + Whole(3)


def test_sums_by_name_without_a_way_to_load_them_are_the_fault_of_their_class():
    class Forgetful(StreamingSums):
        SUMS = ("heads",)

        def __init__(self):
            self.heads = {}

    with pytest.raises(TypeError, match="Forgetful has heads among its SUMS and no empty_entry"):
        Forgetful().load_state_dict({"heads": {"first": {}}})
