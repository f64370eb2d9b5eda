"""Passes from plain tensors: the dot score, all that may be said of an attention, files."""

from functools import partial

import pytest
import torch
from safetensors.torch import save_file

from attnlib.adapters import pass_of_tensors, saved_passes
from attnlib.adapters.tensors import MAPS
from attnlib.errors import CorruptFile
from tests.attnlib.adapters.adapter_builders import (
    FULL,
    PLAIN,
    SOURCE_MASK,
    TARGET_MASK,
    TOKENS,
    assert_same_pass,
    normal,
    to,
    without,
)
from tests.attnlib.refusals import assert_refused


def bare(*layers):
    return PLAIN | {f"cross.{layer}.query_states": normal(3, 4, 6, seed=layer) for layer in layers}


def test_without_an_attention_it_is_said_that_nothing_is_checked():
    assert pass_of_tensors(bare(1, 2)).unchecked == ("cross.0", "cross.1", "cross.2")
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


def test_what_is_said_of_an_attention_is_taken_over():
    found = pass_of_tensors(FULL)
    assert [one.name for one in found.attended] == ["cross.3", "decoder_self.11", "encoder_self.0"]
    for one in found.attended:
        assert (one.heads, one.scale, one.causal) == (2, 0.25, one.kind == "decoder_self")
    assert torch.equal(found.target_outputs, FULL["target_outputs"])


def test_layers_come_in_the_order_of_their_numbers():
    assert [one.layer for one in pass_of_tensors(bare(10, 9, 100)).attended] == [0, 9, 10, 100]


def test_states_and_weights_of_different_precisions_are_computed_with_in_the_finer():
    finer = {name: FULL[name].double() for name in ("cross.3.query_weight", "encoder_states")}
    found = {one.name: one for one in pass_of_tensors(FULL | finer).attended}
    assert found["cross.3"].scores.dtype == torch.float64
    assert found["encoder_self.0"].scores.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_with_in_single_to_the_last_digit(dtype):
    half = to({name: own for name, own in FULL.items() if not name.endswith("attention")}, dtype)
    passes = pass_of_tensors(half), pass_of_tensors(to(half, torch.float32))
    for one, other in zip(*(own.attended for own in passes), strict=True):
        assert one.scores.dtype == torch.float32
        assert torch.equal(one.scores, other.scores)


def test_padding_at_the_left_moves_to_the_right_before_it_is_known_what_is_predicted():
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


def test_what_was_saved_comes_back_in_the_order_of_the_names(tmp_path):
    write(tmp_path, "b.safetensors", PLAIN)
    write(tmp_path, "a.safetensors", FULL)
    (tmp_path / "notes.txt").write_text("not a batch")
    first, second = saved_passes(tmp_path)
    assert_same_pass(first, pass_of_tensors(FULL))
    assert_same_pass(second, pass_of_tensors(PLAIN))


def test_weights_may_stand_in_a_file_of_their_own(tmp_path):
    maps = {name: value for name, value in FULL.items() if name.endswith(("weight", "_bias", "scale"))}
    write(tmp_path, MAPS, maps)
    for batch in "ab":
        write(tmp_path, f"{batch}.safetensors", without(FULL, *maps))
    passes = list(saved_passes(tmp_path))
    assert len(passes) == 2
    for found in passes:
        assert_same_pass(found, pass_of_tensors(FULL))


@pytest.mark.parametrize("name", ["a.safetensors", MAPS])
def test_a_file_that_was_cut_off_is_corrupt(tmp_path, name):
    write(tmp_path, "a.safetensors", PLAIN)
    write(tmp_path, name, PLAIN)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-5])
    with pytest.raises(CorruptFile, match=f"{name} cannot be read as safetensors"):
        list(saved_passes(tmp_path))


def test_a_folder_without_files_is_refused(tmp_path):
    write(tmp_path, MAPS, PLAIN)
    for folder in (tmp_path, tmp_path / "none"):
        assert_refused(partial(saved_passes, folder), "holds no *.safetensors; expected one a batch")
