"""What cases worked by hand share: how an answer is compared, and runs and stores given as plain lists."""

from dataclasses import is_dataclass

import numpy as np
import pytest
import torch

from companion.runs.procedure import Recording
from tests.notebooks.figure_builders import Given, recording_of


def assert_answer(answer: object, expected: object) -> None:
    """Assert that an answer has all that is expected of it.

    It may have more names, but no longer lists. A dotted name in ``expected`` leads into the answer.
    """
    answer, expected = flat(answer), flat(expected)
    compared = {place: answer.get(place, "nothing") for place in expected}
    assert compared == pytest.approx(expected, nan_ok=True)


def flat(answer: object, place: str = "") -> dict[str, object]:
    """Return numbers, texts and truth values of an answer by dotted name; a list has its length as well."""
    if isinstance(answer, (torch.Tensor, np.ndarray)):
        answer = answer.tolist()
    if is_dataclass(answer):
        answer = vars(answer)
    if isinstance(answer, (list, tuple)):
        answer = {"length": len(answer), **dict(enumerate(answer))}
    if not isinstance(answer, dict):
        return {place: answer}
    parts = [flat(part, f"{place}.{name}") for name, part in answer.items()]
    return {name: value for part in parts for name, value in part.items()} or {place: "empty"}


def recording_of_lists(lists: dict[str, object]) -> Recording:
    """Return what a run recorded; ``seed`` is that of the run, all others are tensors."""
    tensors = {name: torch.tensor(values) for name, values in lists.items() if name != "seed"}
    return recording_of(tensors, lists.get("seed", 0))


def store_of(entries: list[dict]) -> Given:
    """Return a store that knows what ``is`` measured ``of`` runs with some settings.

    ``seed`` is that of a run, ``others`` are the seeds of the runs that it is compared with.
    """

    def answer(spec, _, other_specs=()):
        settings = vars(spec.resolved) | {"seed": spec.seed, "others": [other.seed for other in other_specs]}
        for entry in entries:
            if entry["of"].items() <= settings.items():
                return entry["is"]
        return None

    return Given(answer)
