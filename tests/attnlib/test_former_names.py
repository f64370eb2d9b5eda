"""Former names of modules, arguments and attributes give what replaced them, and warn."""

import importlib

import pytest
import torch

from attnlib.analysis.judge import AttentionSums, HeadSums
from attnlib.analysis.stream import HoldOut, Shard, Stream
from attnlib.decomposition.term_sums import TermSums
from attnlib.linear_map import LinearMap
from attnlib.trace import Attention

FORMER = {
    "attnlib.adapters.modules.Traced": "attnlib.adapters.modules.ModelAdapter",
    "attnlib.adapters.single_stack.Side": "attnlib.adapters.single_stack.Operand",
    "attnlib.alignment.both_directions.Method": "attnlib.alignment.both_directions.Symmetrisation",
    "attnlib.analysis.Losses": "attnlib.analysis.stream.CorpusGaps",
    "attnlib.analysis.judge.HeldOutSums": "attnlib.analysis.judge.JudgedSums",
    "attnlib.analysis.passes.fit_part": "attnlib.analysis.passes.fit_shard",
    "attnlib.analysis.passes.judge_part": "attnlib.analysis.passes.judge_shard",
    "attnlib.analysis.terms.NINE": "attnlib.decomposition.term_names.NINE",
    "attnlib.analysis.terms.PARTS": "attnlib.decomposition.term_names.TERM_GROUPS",
    "attnlib.analysis.terms.part_of": "attnlib.decomposition.term_names.group_of",
    "attnlib.decomposition.PART_NAMES": "attnlib.decomposition.components.STATE_PARTS",
    "attnlib.decomposition.components.Means": "attnlib.decomposition.components.PlaceComponents",
    "attnlib.decomposition.components.PART_NAMES": "attnlib.decomposition.components.STATE_PARTS",
    "attnlib.decomposition.rows.softmax_of_rows": "attnlib.softmax.softmax_over",
    "attnlib.models.transformer.TransformerTrace": "attnlib.trace.Trace",
    "attnlib.report.comparison.compare_command": "attnlib.commands.compare.compare_command",
}


def named(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_of_a_module_is_its_replacement(former):
    with pytest.warns(DeprecationWarning, match=f"it is {FORMER[former]}"):
        assert named(former) is named(FORMER[former])


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Gains'"):
        named("attnlib.analysis.stream.Gains")


@pytest.mark.parametrize(
    ("former", "present"),
    [
        pytest.param(lambda: Shard(shard=1, shards=3), Shard(1, of=3), id="shard and shards"),
        pytest.param(lambda: Shard(every=2), Shard(hold_out=HoldOut(2)), id="every"),
        pytest.param(lambda: Shard(0, 2, 4), Shard(0, 2, HoldOut(4)), id="every by place"),
        pytest.param(lambda: TermSums(terms=["a"]).term_names, ("a",), id="terms"),
        pytest.param(lambda: Stream(print, [5]).first("fit", part=None), 5, id="part"),
    ],
)
def test_a_former_argument_is_taken(former, present):
    with pytest.warns(DeprecationWarning, match="is deprecated: it is"):
        assert former() == present


@pytest.mark.parametrize(
    ("object_", "former", "present"),
    [
        pytest.param(Shard(1, of=3), "shards", 3, id="shards"),
        pytest.param(Shard(hold_out=HoldOut(2)), "every", 2, id="every"),
        pytest.param(TermSums(["a", "b"]), "terms", ("a", "b"), id="terms of TermSums"),
        pytest.param(HeadSums(AttentionSums([4], ["a"]), 0), "terms", ("a",), id="terms of HeadSums"),
    ],
)
def test_a_former_attribute_is_read(object_, former, present):
    with pytest.warns(DeprecationWarning, match=f"{former} is deprecated"):
        assert getattr(object_, former) == present


def attention_of(**options):
    states = torch.ones(1, 2, 3)
    identity = LinearMap.none(states)
    return Attention("cross", 0, query_inputs=states, key_inputs=states, maps=(identity, identity), **options)


WEIGHTS = torch.full((1, 1, 2, 2), 0.5)


def test_weights_of_an_attention_may_be_given_as_its_attention():
    with pytest.warns(DeprecationWarning, match="Attention.attention=….*it is weights"):
        attention = attention_of(attention=WEIGHTS)
    assert attention.weights is WEIGHTS


def test_weights_of_an_attention_may_be_read_as_its_attention():
    attention = attention_of(weights=WEIGHTS)
    with pytest.warns(DeprecationWarning, match="Attention.attention is deprecated"):
        assert attention.attention is WEIGHTS


def test_seeing_is_with_projected():
    queries, keys = torch.zeros(1, 1, 2, 3), torch.ones(1, 1, 2, 3)
    with pytest.warns(DeprecationWarning, match="it is with_projected"):
        attention = attention_of().seeing(queries, keys)
    assert attention.queries is queries
    assert attention.keys is keys
