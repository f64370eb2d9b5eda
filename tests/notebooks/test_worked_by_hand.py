"""Numbers worked by hand: ``worked.yaml`` has what functions of figures are given, and what they answer."""

import re
from dataclasses import is_dataclass
from fractions import Fraction
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from tests.notebooks.figure_builders import by_seed


class Worked(yaml.SafeLoader):
    """Fractions are numbers, and a tag says what is made of a list."""


def made_by(make):
    return lambda loader, node: make(loader.construct_sequence(node, deep=True))


MADE = {"tensor": torch.tensor, "array": np.array, "rows": pd.DataFrame, "seeds": lambda own: by_seed(*own)}
for tag, make in MADE.items():
    Worked.add_constructor(f"!{tag}", made_by(make))
Worked.add_implicit_resolver("!fraction", re.compile(r"-?\d+/\d+$"), None)
Worked.add_constructor("!fraction", lambda _, node: float(Fraction(node.value)))
WORKED = yaml.load(Path(__file__).with_name("worked.yaml").read_text("utf-8"), Worked)
CASES = [(name, *case) for name, cases in WORKED["answers"].items() for case in cases]


def flat(answer, place=""):
    """Its numbers, texts and truths by dotted name; a list has a length as well."""
    if isinstance(answer, (torch.Tensor, np.ndarray)):
        answer = answer.tolist()
    if is_dataclass(answer):
        answer = vars(answer)
    if isinstance(answer, (list, tuple)):
        answer = {"length": len(answer), **dict(enumerate(answer))}
    if not isinstance(answer, dict):
        return {place: answer}
    parts = (flat(part, f"{place}.{name}") for name, part in answer.items())
    return {at: own for part in parts for at, own in part.items()} or {place: "empty"}


@pytest.mark.parametrize(("name", "given", "expected"), CASES)
def test_numbers_worked_by_hand(name, given, expected):
    """All that is expected is there; a figure's answer may have more, but no longer lists."""
    function = resolve_name(f"notebooks.{name}")
    found = flat(function(**given) if isinstance(given, dict) else function(*given))
    expected = flat(expected)
    there = {place: found.get(place, "nothing") for place in expected}
    assert there == pytest.approx(expected, nan_ok=True)
