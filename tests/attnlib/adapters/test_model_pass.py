"""One attention by hand, a pass and its padding, passes from plain tensors, batches of tokens."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from attnlib.adapters import (
    Attended,
    LinearMap,
    ModelPass,
    TokenBatch,
    pass_of_tensors,
    saved_passes,
    text_batches,
)
from attnlib.adapters.tensors import MAPS
from attnlib.errors import CorruptFile
from tests.attnlib.adapters.adapter_builders import (
    FULL,
    PLAIN,
    SOURCE_MASK,
    TARGET_MASK,
    TOKENS,
    assert_same_pass,
    attended_of,
    checked,
    normal,
    pass_of,
    rotary,
    to,
    without,
)
from tests.attnlib.refusals import assert_refused


def test_rows_of_a_projection_are_dealt_out_among_the_heads_in_order():
    # Head 0 has rows 0 and 1, head 1 rows 2 and 3: (x, y), then (10 x, 10 y), with biases 1, 2, 3, 4.
    made = nn.Linear(2, 4)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [10, 0], [0, 10]]))
        made.bias.copy_(torch.tensor([1.0, 2, 3, 4]))
    own = LinearMap.of(made, 2)
    assert own.heads == 2
    assert own(torch.tensor([[[5.0, 7.0]]])).tolist() == [[[[6, 9]], [[53, 74]]]]
    assert not own.weight.requires_grad


@pytest.mark.parametrize("interleaved", [True, False])
def test_a_rotation_turns_each_pair_by_its_angle(interleaved):
    length, width = 4, 6
    states, turned = normal(2, length, width), torch.zeros(2, length, width).double()
    for position in range(length):
        for pair in range(width // 2):
            first, second = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + width // 2)
            angle = position * 100.0 ** (-2 * pair / width)
            x, y = states[:, position, first], states[:, position, second]
            turned[:, position, first] = x * math.cos(angle) - y * math.sin(angle)
            turned[:, position, second] = x * math.sin(angle) + y * math.cos(angle)
    torch.testing.assert_close(rotary(length, width, interleaved=interleaved)(states), turned)


def test_scores_by_hand():
    # Queries 1 and 2, keys 3 and 5, doubled and with 1 added to the keys: 2 · (4, 6) and 2 · 2 · (4, 6).
    inputs = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[3.0], [5.0]]])
    maps = LinearMap(torch.ones(1, 1, 1)), LinearMap(torch.ones(1, 1, 1), torch.ones(1, 1))
    one = Attended("cross", 0, *inputs, "decoder", "encoder", *maps, scale=2.0)
    assert one.scores.tolist() == [[[[8, 12], [16, 24]]]]
    biased = replace(one, position_bias=torch.tensor([[[[0.0, 100.0], [200.0, 0.0]]]]))
    assert biased.scores.tolist() == [[[[8, 112], [216, 24]]]]
    assert (one.name, one.heads) == ("cross.0", 1)


# A pass.


def test_what_stands_at_padding_does_not_matter():
    one = checked()
    attention = one.attention.masked_fill(~TARGET_MASK[:, None, :, None], torch.nan)
    inputs = one.key_inputs.masked_fill(~SOURCE_MASK[:, :, None], torch.nan)
    pass_of(replace(one, attention=attention, key_inputs=inputs)).check()


def turned(tensor, **axes):
    """With the padding of every row in front, along the axes of some sides."""
    for side, axis in axes.items():
        order = torch.argsort(TOKENS[f"{side}_mask"].int(), dim=1, stable=True)
        rows = zip(tensor.expand(3, *tensor.shape[1:]), order, strict=True)
        tensor = torch.stack([row.index_select(axis - 1, places) for row, places in rows])
    return tensor


def test_padding_moves_to_the_right_with_all_that_belongs_to_a_position():
    valid = TARGET_MASK[:, :, None] & SOURCE_MASK[:, None]
    more = {"ignored_source": torch.arange(15).view(3, 5) % 4 == 0, "lexical_probe": torch.rand(3, 4, 5)}
    right = pass_of(checked(), **more)
    (one,) = right.attended
    axes = {"query_inputs": {"target": 1}, "key_inputs": {"source": 1}}
    axes |= {name: {"target": 2, "source": 3} for name in ("attention", "position_bias")}
    left = replace(one, **{name: turned(getattr(one, name), **own) for name, own in axes.items()})
    names = (*TOKENS, "target_outputs")
    sides = {name: turned(getattr(right, name), **{name[:6]: 1}) for name in names}
    sides["ignored_source"] = turned(right.ignored_source, source=1)
    sides["lexical_probe"] = turned(right.lexical_probe, target=1, source=2)
    assert not sides["source_mask"][1, 0]
    found = ModelPass(**sides, attended=(left,))
    found.check()
    for name in names:
        assert torch.equal(getattr(found, name), getattr(right, name)), name
    assert torch.equal(found.counted("source"), right.counted("source"))
    assert torch.equal(found.lexical_probe[valid], right.lexical_probe[valid])
    for name in ("query_inputs", "key_inputs", "attention"):
        assert torch.equal(getattr(found.attended[0], name), getattr(one, name)), name
    torch.testing.assert_close(found.attended[0].scores, one.scores)


def test_a_rotated_head_is_a_trace_whose_states_make_its_scores():
    one = attended_of(query_rotation=rotary(4, 4), key_rotation=rotary(5, 4))
    trace = pass_of(one).head(one, 1)
    torch.testing.assert_close(trace.decoder_states @ trace.encoder_states.mT, one.scores[:, 1])
    assert trace.context is trace.logits is None
    assert trace.to("cpu").scores is trace.scores


def test_sites_are_the_states_that_projections_read():
    first = attended_of()
    second = attended_of(query_inputs=normal(3, 4, 6, seed=30), query_site="upper")
    sites = pass_of(first, second).sites()
    assert list(sites) == ["decoder", "encoder", "upper"]
    assert [side for side, _ in sites.values()] == ["target", "source", "target"]
    assert sites["upper"][1] is second.query_inputs


# Passes from plain tensors.


def bare(*layers):
    return PLAIN | {f"cross.{layer}.query_states": normal(3, 4, 6, seed=layer) for layer in layers}


def test_without_an_attention_it_is_said_that_nothing_is_checked():
    """Layers come in the order of their numbers."""
    assert pass_of_tensors(bare(10, 9)).unchecked == ("cross.0", "cross.9", "cross.10")
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


# Batches of tokens.


def test_packed_hand_worked():
    # Padding (9) at the left, at the right, in between, and a last column that is padding alone.
    source = torch.tensor([[9, 1, 2, 9], [3, 9, 4, 9]])
    target = torch.tensor([[9, 5], [6, 7]])
    read = torch.tensor([[9, 50], [60, 70]])
    packed = TokenBatch(source, source != 9, target, target != 9, read).packed()
    assert packed.source.tolist() == [[1, 2], [3, 4]]
    assert packed.source_mask.all()
    assert packed.target.tolist() == [[5, 9], [6, 7]]
    assert packed.target_mask.tolist() == [[True, False], [True, True]]
    assert packed.read.tolist() == [[50, 9], [60, 70]]


def test_labels_that_do_not_count_are_0_at_padding():
    ids = torch.tensor([[5, -100], [6, 7]])
    packed = TokenBatch(ids, ids >= 0, ids, ids >= 0, ids).packed()
    assert packed.source.tolist() == packed.target.tolist() == packed.read.tolist() == [[5, 0], [6, 7]]


def lengths(text=None, text_target=None, *, truncation, max_length):
    """A tokenizer: the lengths of the words, then a mark, 1 of a source, 2 of a target."""
    assert truncation
    lines, mark = (text_target, 2) if text is None else (text, 1)
    words = [line.split()[: max_length - 1] for line in lines]
    return {"input_ids": [[*map(len, line), mark] for line in words]}


PAIRS = [
    ("", "a"), ("aaa bbbb", "ccccc"), ("dddddd", "eee ffff ggggg"), (" ", "lost"), ("lost", ""),
    ("hhh", "iiii"), ("h", ""),
]  # fmt: skip


def test_sentences_go_through_the_tokenizer_each_side_with_its_own_marks():
    first, second = text_batches(lengths, PAIRS, batch_size=2)
    assert first.source.tolist() == [[3, 4, 1], [6, 1, 0]]
    assert first.target.tolist() == [[5, 2, 0, 0], [3, 4, 5, 2]]
    # Pairs with an empty line are left out: the next batch is the last pair.
    assert (second.source.tolist(), second.target.tolist()) == ([[3, 1]], [[4, 2]])
    (cut,) = text_batches(lengths, PAIRS, longest=3, prefix="x ")
    assert cut.source.tolist() == [[1, 3, 1], [1, 6, 1], [1, 3, 1]]
    assert cut.target.tolist() == [[5, 2, 0], [3, 4, 2], [4, 2, 0]]
