"""What figures answer and refuse, by table: numbers worked by hand, and settings that nothing can use."""

import re
from dataclasses import is_dataclass
from fractions import Fraction
from functools import partial
from pkgutil import resolve_name

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from attnlib.models.corpus import Corpus
from companion.data import registry as tasks
from companion.data.labelled import LabelledTexts
from companion.results import registry
from companion.results.config import override
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.learn.early_dynamics.trainings.word_counts import Bags, derivative_at_random
from notebooks.primer.scoring_functions.trainings.asked_before import PreviousStateQueries
from notebooks.shared.trainings.transformer_sequences import tie_encoder
from notebooks.shared.unrolled import UnrolledComponents
from tests.attnlib.models.model_builders import batch_of, sequence_network, transformer
from tests.attnlib.refusals import assert_refused
from tests.notebooks.figure_builders import Given, recording_of, tiny
from tests.tables import Table, beside


class Worked(Table):
    """Fractions are numbers, and a tag says what is made of what follows it, at once."""

    def construct_object(self, node, deep=True):
        return super().construct_object(node, deep=True)


def config(named):
    return tiny(named.pop("figure"), **named)


def recording(named):
    seed = named.pop("seed", 0)
    return recording_of({name: torch.tensor(values) for name, values in named.items()}, seed)


def store(entries):
    """One that knows what ``is`` measured ``of`` runs with some settings, with ``others`` of these seeds."""

    def answer(spec, _, other_specs=()):
        own = vars(spec.resolved) | {"seed": spec.seed, "others": [other.seed for other in other_specs]}
        return next((entry["is"] for entry in entries if entry["of"].items() <= own.items()), None)

    return Given(answer)


def made_by(make):
    def construct(loader, node):
        mapping = isinstance(node, yaml.MappingNode)
        return make(loader.construct_mapping(node) if mapping else loader.construct_sequence(node))

    return construct


MADE = {
    "tensor": torch.tensor,
    "array": np.array,
    "rows": pd.DataFrame,
    "corpus": lambda sides: Corpus.from_ids(*sides),
    "batch": lambda samples: batch_of(pairs=samples),
    "recording": recording,
    "texts": lambda sides: LabelledTexts.of(*sides),
    "config": config,
    "store": store,
}
for tag, make in MADE.items():
    Worked.add_constructor(f"!{tag}", made_by(make))
Worked.add_constructor("!name", lambda _, node: resolve_name(node.value))
Worked.add_implicit_resolver("!fraction", re.compile(r"-?\d+/\d+$"), None)
Worked.add_constructor("!fraction", lambda _, node: float(Fraction(node.value)))
ANSWERS, REFUSED = (beside(__file__, name, Worked) for name in ("worked", "refused"))


def call(kind, name, given):
    if kind == "functions":
        function = resolve_name(name)
        return function(**given) if isinstance(given, dict) else function(*given)
    if kind == "procedures":
        return RunSpec.of(name, **given)
    if kind == "tasks":
        return tasks.load(name, **given)
    return override(registry.load(name).PROFILES["quick"], given)


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


@pytest.mark.parametrize(
    ("name", "given", "expected"), [(name, *case) for name, cases in ANSWERS.items() for case in cases]
)
def test_numbers_worked_by_hand(name, given, expected):
    """All that is expected is there; an answer may have more, but no longer lists."""
    found, expected = flat(call("functions", name, given)), flat(expected)
    there = {place: found.get(place, "nothing") for place in expected}
    assert there == pytest.approx(expected, nan_ok=True)


PLAIN = [
    (partial(call, kind, name, given), message)
    for kind, refused in REFUSED.items()
    for name, cases in refused.items()
    for given, message in cases
]

NOT_FINITE = torch.zeros(5, 2, dtype=torch.long), torch.full((5, 4), torch.nan)
OTHERS = [
    (lambda: Store("nowhere").model(ModelSpec("one_to_won", "AED", 2)), "did you mean 'one_to_one'"),
    (lambda: tie_encoder(transformer(positions="rotary")), "self-attention that would be tied"),
    (lambda: derivative_at_random(Bags.of(Corpus.from_ids([[4]], [[4]]), 5, 5), 0, seed=0), "width is 0"),
    (lambda: UnrolledComponents(3, 2, 4).update(*NOT_FINITE), "not finite"),
    *((partial(sequence_network, network=PreviousStateQueries, **changes), "in Bahdanau's it asks anyway")
      for changes in ({"decoder": "bahdanau"}, {"input_feeding": True}, {"link": "initial"})),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "message"), [*PLAIN, *OTHERS])
def test_what_cannot_be_is_refused(asked, message):
    assert_refused(asked, message)
