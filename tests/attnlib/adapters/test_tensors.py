"""Passes from plain tensors: the dot score, all that may be said of an attention, the check, padding."""

import pytest
import torch

from attnlib.adapters import pass_of_tensors
from attnlib.errors import BadInput

SOURCE_MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] * 4 + [False]])
TARGET_MASK = torch.tensor([[True] * 2 + [False] * 2, [True] * 4, [True] * 3 + [False]])
TOKENS = {
    "source_tokens": torch.arange(15).view(3, 5),
    "source_mask": SOURCE_MASK,
    "target_tokens": torch.arange(20, 32).view(3, 4),
    "target_mask": TARGET_MASK,
}


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def to(given, dtype):
    """Tensors with everything but ids and masks in this precision."""
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in given.items()}


DOUBLE_PLAIN = TOKENS | {
    "cross.0.query_states": normal(3, 4, 6, seed=1),
    "encoder_states": normal(3, 5, 6, seed=2),
}
PLAIN = to(DOUBLE_PLAIN, torch.float32)


def softmax_of(scores, allowed):
    weights = scores.exp() * allowed
    return weights / weights.sum(-1, keepdim=True)


def full():
    """An attention of every kind, with all that may be said of it; two heads of width 4."""
    both = {"source": normal(3, 5, 6, seed=3), "target": normal(3, 4, 6, seed=4)}
    sides = {
        "cross.3": ("target", "source"),
        "encoder_self.0": ("source",) * 2,
        "decoder_self.11": ("target",) * 2,
    }
    found = TOKENS | {"encoder_states": both["source"], "target_outputs": torch.arange(50, 62).view(3, 4)}
    for seed, (place, (asks, answers)) in enumerate(sides.items()):
        weights = {name: normal(2, 4, 6, seed=10 * seed + at) for at, name in enumerate(("query", "key"))}
        biases = {name: normal(2, 4, seed=10 * seed + 5 + at) for at, name in enumerate(("query", "key"))}
        lengths = both[asks].shape[1], both[answers].shape[1]
        position_bias = normal(1, 2, *lengths, seed=seed)
        query, key = (
            torch.einsum("blw,hdw->bhld", both[side], weights[name]) + biases[name][:, None]
            for name, side in (("query", asks), ("key", answers))
        )
        scores = 0.25 * query @ key.mT + position_bias
        allowed = (SOURCE_MASK if answers == "source" else TARGET_MASK)[:, None, None]
        if place.startswith("decoder"):
            allowed = allowed & torch.ones(lengths, dtype=torch.bool).tril()
        found |= {f"{place}.{name}_weight": weight for name, weight in weights.items()}
        found |= {f"{place}.{name}_bias": bias for name, bias in biases.items()}
        found |= {
            f"{place}.query_states": both[asks],
            f"{place}.scale": torch.tensor(0.25),
            f"{place}.position_bias": position_bias,
            f"{place}.attention": softmax_of(scores, allowed),
        }
    return found


DOUBLE_FULL = full()
FULL = to(DOUBLE_FULL, torch.float32)


def assert_same_pass(found, expected):
    for name in ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    for one, other in zip(found.attended, expected.attended, strict=True):
        assert (one.name, one.query_site, one.key_site) == (other.name, other.query_site, other.key_site)
        for name in ("query_inputs", "key_inputs", "position_bias", "attention"):
            mine, theirs = getattr(one, name), getattr(other, name)
            assert mine is theirs is None or torch.equal(mine, theirs), (one.name, name)
        torch.testing.assert_close(one.scores, other.scores)


def without(given, *names):
    return {name: value for name, value in given.items() if name not in names}


# What is made of them.


def test_without_an_attention_it_is_said_that_nothing_is_checked():
    bare = {f"cross.{layer}.query_states": normal(3, 4, 6, seed=layer) for layer in (1, 2)}
    assert pass_of_tensors(PLAIN | bare).unchecked == ("cross.0", "cross.1", "cross.2")
    assert pass_of_tensors(FULL).unchecked == ()
    assert pass_of_tensors(without(FULL, "encoder_self.0.attention")).unchecked == ("encoder_self.0",)


def test_plain_states_are_compared_as_they_are():
    found = pass_of_tensors(PLAIN)
    (one,) = found.attended
    dots = PLAIN["cross.0.query_states"] @ PLAIN["encoder_states"].mT
    torch.testing.assert_close(one.scores, dots[:, None])
    assert (one.name, one.heads, one.key_site) == ("cross.0", 1, "encoder")
    trace = found.head(one, 0)
    assert torch.equal(trace.source_mask, SOURCE_MASK)
    torch.testing.assert_close(trace.attention.sum(-1), TARGET_MASK.float())


def test_dots_of_self_attention_are_of_the_states_with_themselves():
    states = normal(3, 4, 2, seed=1)
    (one,) = pass_of_tensors(TOKENS | {"decoder_self.2.query_states": states}).attended
    torch.testing.assert_close(one.scores, (states @ states.mT)[:, None])
    assert one.causal
    assert one.query_site == one.key_site == "decoder_self.2.query"


def test_keys_of_self_attention_that_differ_are_states_of_their_own():
    given = TOKENS | {
        "encoder_self.0.query_states": normal(3, 5, 2, seed=1),
        "encoder_self.0.key_states": normal(3, 5, 2, seed=2),
    }
    sites = pass_of_tensors(given).sites()
    for name, site in (("query", "encoder_self.0.query"), ("key", "encoder_self.0.key")):
        side, states = sites[site]
        assert side == "source"
        assert torch.equal(states, given[f"encoder_self.0.{name}_states"])


def test_all_that_may_be_said_of_an_attention_is_in_its_scores():
    # `full` computes the attention by itself; a pass is refused where its own differs.
    found = pass_of_tensors(FULL)
    assert [one.name for one in found.attended] == ["cross.3", "decoder_self.11", "encoder_self.0"]
    for one in found.attended:
        assert (one.heads, one.scale, one.causal) == (2, 0.25, one.kind == "decoder_self")
        assert one.attention.std() > 0.1
    assert torch.equal(found.target_outputs, FULL["target_outputs"])


def test_layers_come_in_the_order_of_their_numbers():
    given = PLAIN | {f"cross.{layer}.query_states": normal(3, 4, 6, seed=layer) for layer in (10, 9, 100)}
    assert [one.layer for one in pass_of_tensors(given).attended] == [0, 9, 10, 100]


@pytest.mark.parametrize("name", ["scale", "position_bias", "query_bias", "query_weight", "key_weight"])
@pytest.mark.parametrize("place", ["cross.3", "encoder_self.0", "decoder_self.11"])
def test_attention_that_the_states_do_not_make_is_refused(place, name):
    wrong = FULL | {f"{place}.{name}": FULL[f"{place}.{name}"] * 1.5}
    with pytest.raises(BadInput, match=rf"{place}, head 0: attention from the caught projections is up to"):
        pass_of_tensors(wrong)


def test_a_bias_of_the_keys_adds_the_same_to_all_words_so_that_attention_does_not_show_it():
    wrong = FULL | {"cross.3.key_bias": FULL["cross.3.key_bias"] + 1}
    gap = pass_of_tensors(wrong).attended[0].scores - pass_of_tensors(FULL).attended[0].scores
    assert gap.abs().max() > 0.1
    torch.testing.assert_close(gap, gap[..., :1].expand_as(gap), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(dtype):
    for given in (DOUBLE_PLAIN, DOUBLE_FULL):
        for one in pass_of_tensors(to(given, dtype)).attended:
            assert one.scores.dtype == torch.promote_types(dtype, torch.float32)


def test_states_and_weights_of_different_precisions_are_computed_with_in_the_finer():
    given = FULL | {"cross.3.query_weight": FULL["cross.3.query_weight"].double()}
    given |= {"encoder_states": FULL["encoder_states"].double()}
    found = {one.name: one for one in pass_of_tensors(given).attended}
    assert found["cross.3"].scores.dtype == torch.float64
    assert found["encoder_self.0"].scores.dtype == torch.float32


# Padding and what is predicted.


def turned(given):
    """Every row with its padding in front."""
    orders = {
        "source": torch.argsort(SOURCE_MASK, dim=1, stable=True),
        "target": torch.argsort(TARGET_MASK, dim=1, stable=True),
    }
    found = {}
    for name, value in given.items():
        own = name.rpartition(".")[2]
        asks = "source" if name.startswith("encoder") else "target"
        answers = "target" if name.startswith("decoder") else "source"
        if name in TOKENS or name == "target_outputs":
            value = value.take_along_dim(orders[name.partition("_")[0]], 1)
        elif own in ("query_states", "encoder_states"):
            value = value.take_along_dim(orders[asks][:, :, None], 1)
        elif own in ("attention", "position_bias"):
            value = value.expand(3, -1, -1, -1).take_along_dim(orders[asks][:, None, :, None], 2)
            value = value.take_along_dim(orders[answers][:, None, None], 3)
        found[name] = value
    return found


@pytest.mark.parametrize("given", [PLAIN, FULL], ids=["plain", "full"])
def test_padding_at_the_left_gives_the_same_pass(given):
    left = turned(given)
    assert not left["source_mask"][1, 0]
    found, expected = pass_of_tensors(left), pass_of_tensors(given)
    assert torch.equal(found.source_mask, SOURCE_MASK)
    for side in ("source", "target"):
        assert torch.equal(found.tokens(side), expected.tokens(side))
    assert torch.equal(found.target_outputs[TARGET_MASK], expected.target_outputs[TARGET_MASK])
    for one, other in zip(found.attended, expected.attended, strict=True):
        torch.testing.assert_close(one.scores, other.scores)
        torch.testing.assert_close(one.attention, other.attention)


@pytest.mark.parametrize("given", [PLAIN, turned(PLAIN)], ids=["right", "left"])
def test_by_default_a_step_predicts_what_is_read_next(given):
    found = pass_of_tensors(given)
    # Nothing is read after the last step: there stands what it reads itself.
    expected = torch.tensor([[21, 21, 0, 0], [25, 26, 27, 27], [29, 30, 30, 0]])
    assert torch.equal(found.target_outputs[TARGET_MASK], expected[TARGET_MASK])


def test_a_lexical_probe_goes_with_its_words_where_padding_moves():
    probe = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(pass_of_tensors(PLAIN | {"lexical_probe": probe}).lexical_probe, probe)
    given = PLAIN | {"lexical_probe": probe}
    target = ("target_tokens", "target_mask", "cross.0.query_states", "lexical_probe")
    source = ("source_tokens", "source_mask", "encoder_states")
    flipped = given | {name: given[name].flip(1) for name in (*target, *source)}
    flipped["lexical_probe"] = probe.flip(1, 2)
    found, expected = pass_of_tensors(flipped), pass_of_tensors(given)
    for sample, (targets, sources) in enumerate(zip(TARGET_MASK, SOURCE_MASK, strict=True)):
        words, places = (tokens[sample].tolist() for tokens in (found.target_tokens, found.source_tokens))
        own, other = (tokens[sample].tolist() for tokens in (expected.target_tokens, expected.source_tokens))
        for step in targets.nonzero()[:, 0]:
            for place in sources.nonzero()[:, 0]:
                moved = words.index(own[step]), places.index(other[place])
                assert found.lexical_probe[sample, *moved] == probe[sample, step, place]


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        (torch.zeros(3, 5, 4), r"lexical_probe of shape \(3, 5, 4\); expected \(3, 4, 5\)"),
        (torch.full((3, 4, 5), -1.0), "holds what is no probability; a logarithm has to be taken back"),
        (torch.full((3, 4, 5), torch.nan), "holds what is no probability"),
    ],
)
def test_what_is_no_lexical_probe_is_refused(probe, message):
    with pytest.raises(BadInput, match=message):
        pass_of_tensors(PLAIN | {"lexical_probe": probe})
