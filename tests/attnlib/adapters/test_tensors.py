"""Passes from plain tensors: the dot score, all that may be said of an attention, files, refusals."""

import pytest
import torch
from safetensors.torch import save_file

from attnlib.adapters import pass_of_tensors, saved_passes
from attnlib.adapters.tensors import MAPS
from attnlib.errors import BadInput, CorruptFile
from tests.attnlib.adapters.adapter_builders import SOURCE_MASK, TARGET_MASK, assert_same_pass, normal

TOKENS = {
    "source_tokens": torch.arange(15).view(3, 5),
    "source_mask": SOURCE_MASK,
    "target_tokens": torch.arange(20, 32).view(3, 4),
    "target_mask": TARGET_MASK,
}


def to(given, dtype):
    """Tensors with everything but ids and masks in this precision."""
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in given.items()}


DOUBLE_PLAIN = TOKENS | {
    "cross.0.query_states": normal(3, 4, 6, seed=1),
    "encoder_states": normal(3, 5, 6, seed=2),
}
PLAIN = to(DOUBLE_PLAIN, torch.float32)


def weights_of(scores, allowed):
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
            f"{place}.attention": weights_of(scores, allowed),
        }
    return found


DOUBLE_FULL = full()
FULL = to(DOUBLE_FULL, torch.float32)


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


def test_states_and_weights_of_different_precisions_are_computed_with_in_the_finer():
    given = FULL | {"cross.3.query_weight": FULL["cross.3.query_weight"].double()}
    given |= {"encoder_states": FULL["encoder_states"].double()}
    found = {one.name: one for one in pass_of_tensors(given).attended}
    assert found["cross.3"].scores.dtype == torch.float64
    assert found["encoder_self.0"].scores.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_with_in_single(dtype):
    """Tensors of half precision and the same in single come to the same, to the last digit."""
    half = to({name: own for name, own in FULL.items() if not name.endswith("attention")}, dtype)
    for one, other in zip(
        *(pass_of_tensors(own).attended for own in (half, to(half, torch.float32))), strict=True
    ):
        assert one.scores.dtype == torch.float32
        assert torch.equal(one.scores, other.scores)


# Padding and what is predicted.


def test_padding_at_the_left_moves_to_the_right_before_it_is_known_what_is_predicted():
    """A sample with its padding in front; in front of it anything."""
    ids, mask = torch.tensor([[9, 5, 6]]), torch.tensor([[False, True, True]])
    states = normal(1, 3, 2, seed=0)
    given = {"source_tokens": ids, "source_mask": mask, "target_tokens": ids, "target_mask": mask}
    found = pass_of_tensors(given | {"encoder_states": states, "cross.0.query_states": states})
    assert found.target_mask.tolist() == [[True, True, False]]
    assert found.target_tokens[0, :2].tolist() == [5, 6]
    assert found.target_outputs[0, :2].tolist() == [6, 6]
    inner = states[0, 1:] @ states[0, 1:].T
    torch.testing.assert_close(found.attended[0].scores[0, 0, :2, :2], inner)


def test_by_default_a_step_predicts_what_is_read_next():
    found = pass_of_tensors(PLAIN)
    # Nothing is read after the last step: there stands what it reads itself.
    expected = torch.tensor([[21, 21, 0, 0], [25, 26, 27, 27], [29, 30, 30, 0]])
    assert torch.equal(found.target_outputs[TARGET_MASK], expected[TARGET_MASK])


# Files.


def write(folder, name, given):
    save_file({key: value.contiguous().clone() for key, value in given.items()}, folder / name)


def is_map(name):
    return name.endswith(("weight", "_bias", "scale"))


def test_what_was_saved_comes_back_in_the_order_of_the_names(tmp_path):
    write(tmp_path, "b.safetensors", PLAIN)
    write(tmp_path, "a.safetensors", FULL)
    (tmp_path / "notes.txt").write_text("not a batch")
    first, second = saved_passes(tmp_path)
    assert_same_pass(first, pass_of_tensors(FULL))
    assert_same_pass(second, pass_of_tensors(PLAIN))


def test_weights_may_stand_in_a_file_of_their_own(tmp_path):
    write(tmp_path, MAPS, {name: value for name, value in FULL.items() if is_map(name)})
    for batch in "ab":
        own = {name: value for name, value in FULL.items() if not is_map(name)}
        write(tmp_path, f"{batch}.safetensors", own)
    passes = list(saved_passes(tmp_path))
    assert len(passes) == 2
    for found in passes:
        assert_same_pass(found, pass_of_tensors(FULL))


@pytest.mark.parametrize("name", ["a.safetensors", MAPS])
def test_a_file_that_was_cut_off_is_corrupt(tmp_path, name):
    write(tmp_path, "a.safetensors", PLAIN)
    write(tmp_path, name, PLAIN)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-5])
    with pytest.raises(CorruptFile, match=f"{name} cannot be read as safetensors"):
        list(saved_passes(tmp_path))


def test_a_folder_without_files_is_refused(tmp_path):
    write(tmp_path, MAPS, PLAIN)
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(BadInput, match=r"holds no \*\.safetensors; expected one a batch"):
            list(saved_passes(folder))


# What is refused.


Q, K = "cross.0.query_states", "cross.3.key_weight"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (without(PLAIN, "source_mask", "target_mask"), "lack source_mask, target_mask; they have cross"),
        ({}, "they have none"),
        (PLAIN | {"cross.query_states": torch.ones(1)}, "no tensor 'cross.query_states' is known"),
        (PLAIN | {"cross.0.querystates": torch.ones(1)}, "named like cross.0.query_states"),
        (PLAIN | {"self.0.query_states": torch.ones(1)}, "no tensor 'self.0.query_states'"),
        (PLAIN | {"cross.-1.scale": torch.ones(1)}, "no tensor 'cross.-1.scale'"),
        (PLAIN | {"decoder_states": torch.ones(1)}, "no tensor 'decoder_states'"),
        (PLAIN | {"cross.1.scale": torch.ones(())}, r"cross\.1 lacks cross\.1\.query_states"),
        (without(PLAIN, "encoder_states"), r"lacks cross\.0\.key_states, and there is no encoder_states"),
        (without(FULL, K), r"cross\.3 has a weight for one side"),
        (without(FULL, K, "cross.3.query_weight"), r"cross\.3 has a bias and no weights"),
        (PLAIN | {"cross.0.scale": torch.ones(2)}, r"cross\.0\.scale is of shape \(2,\); expected one"),
        (FULL | {K: torch.ones(8, 6)}, r"cross\.3: weight of shape \(8, 6\)"),
        (FULL | {"cross.3.key_bias": torch.ones(8)}, r"weight of shape \(2, 4, 6\), bias of \(8,\)"),
        (
            without(FULL, "cross.3.key_bias") | {K: torch.ones(2, 3, 6)},
            "width 4, keys of 2 of width 3",
        ),
        (PLAIN | {"encoder_states": torch.ones(3, 5, 7)}, "1 heads of width 6, keys of 1 of width 7"),
        (FULL | {"encoder_states": torch.ones(3, 5, 7)}, r"states of shape \(3, 5, 7\); expected \(3, 5, 6"),
        (PLAIN | {Q: torch.ones(3, 6)}, r"states of shape \(3, 6\); expected \(3, 4, 6\)"),
        (PLAIN | {"cross.0.attention": torch.ones(3, 1, 4, 5).long()}, r"attention is of torch\.int64"),
        (PLAIN | {"target_tokens": torch.arange(4)}, r"target_tokens of shape \(4,\) with a mask"),
        (PLAIN | {"lexical_probe": torch.zeros(3, 5, 4)}, r"lexical_probe of shape .*; expected \(3, 4, 5\)"),
        (PLAIN | {"lexical_probe": torch.full((3, 4, 5), -1.0)}, "no probability; a logarithm has to be"),
        (PLAIN | {"lexical_probe": torch.full((3, 4, 5), torch.nan)}, "holds what is no probability"),
    ],
)
def test_what_makes_no_pass_is_refused(given, message):
    with pytest.raises(BadInput, match=message):
        pass_of_tensors(given)
