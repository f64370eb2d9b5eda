"""Dataclasses that hold tensors are equal to themselves alone, and are shown by their shapes."""

import dataclasses
import importlib
import typing
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from attnlib import Components, TokenBatch, zoo
from attnlib.analysis import Stream
from attnlib.decomposition.shares import shares
from attnlib.models.corpus import evaluation_batches
from attnlib.report import analyse
from tests.attnlib.analysis.builders import Toy

ROOT = Path(__file__).parents[1]
MANY = (torch.Tensor, np.ndarray)  # whose comparison has a value for each entry


def dataclasses_of(room):
    for path in sorted((ROOT / room).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        loaded = importlib.import_module(name.removesuffix(".__init__"))
        for value in vars(loaded).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value):
                yield value


def holds_many(annotation, seen=()):
    """Whether an annotation is, or has among its arguments or fields, one of ``MANY``."""
    if getattr(annotation, "array_type", annotation) in MANY:
        return True
    if typing.get_origin(annotation) is Callable:
        return False
    if any(holds_many(argument, seen) for argument in typing.get_args(annotation)):
        return True
    if not dataclasses.is_dataclass(annotation) or annotation in seen:
        return False
    if annotation.__eq__ is object.__eq__:
        return False
    hints = typing.get_type_hints(annotation)
    fields = [hints[field.name] for field in dataclasses.fields(annotation) if field.compare]
    return any(holds_many(hint, (*seen, annotation)) for hint in fields)


def compares_entries(kind):
    return kind.__eq__ is not object.__eq__ and holds_many(kind)


def test_no_dataclass_of_the_library_compares_tensors():
    assert not [kind for kind in dataclasses_of("attnlib") if compares_entries(kind)]


@pytest.mark.slow
@pytest.mark.parametrize("room", ["companion", "notebooks"])
def test_no_dataclass_of_the_book_compares_tensors(room):
    assert not [kind for kind in dataclasses_of(room) if compares_entries(kind)]


def parts():
    states, tokens = torch.ones(1, 2, 1), torch.tensor([[0, 1]])
    return Components(1, n_tokens=2, n_positions=2).update(states, tokens).split(states, tokens)


MAKERS = [
    pytest.param(parts, id="Parts"),
    pytest.param(lambda: TokenBatch.of_rows([[5, 6]], [[7, 8]]), id="TokenBatch"),
    pytest.param(lambda: Toy()(0), id="Trace"),
    pytest.param(lambda: Toy()(0).attentions[0], id="Attention"),
    pytest.param(lambda: Toy()(0).attentions[0].query_map, id="LinearMap"),
    pytest.param(lambda: shares(torch.ones(3, 3, 1, 1, 2)), id="Shares"),
    pytest.param(lambda: analyse(Stream(Toy(), range(5))), id="Analysis"),
]


@pytest.mark.parametrize("make", MAKERS)
def test_two_of_a_kind_can_be_compared(make):
    first, second = make(), make()
    assert first != second
    assert first in [second, first]
    assert len({first, second}) == 2


def test_what_a_network_returns_is_shown_by_its_shapes():
    trained = zoo.load("reordering_AED")
    batch = next(evaluation_batches(trained.corpus, 4))
    with torch.inference_mode():
        trace = trained.network(batch)
    components = Components(64).update(trace.encoder_states, batch.source, batch.source_mask)
    parts = components.split(trace.encoder_states, batch.source, batch.source_mask)
    for value in (batch, trained.corpus, trace, *trace.attentions, parts):
        assert len(repr(value)) < 500
    assert "encoder_states=float32 (4, 12, 64)" in repr(trace)
    assert "attentions=(cross.0)" in repr(trace)
