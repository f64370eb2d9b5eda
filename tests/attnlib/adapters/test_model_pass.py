"""One attention by hand, a pass, its padding and the check of scores; plain tensors; batches of tokens."""

import math
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch
from torch import nn

from attnlib import Attention, TokenBatch, Trace, pass_of_tensors, text_batches
from attnlib.adapters import LinearMap, Rotary, saved_passes
from attnlib.adapters.tensors import MAPS
from attnlib.errors import BadInput, CorruptFile
from attnlib.sealed import save_file
from attnlib.trace import UNIT, WORST, squared_sizes, unit_errors
from tests.attnlib.adapters import adapter_builders as toys
from tests.attnlib.adapters.adapter_builders import FULL, PLAIN, SOURCE_MASK, TARGET_MASK, TOKENS
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused
from tests.tables import beside


def test_rows_of_a_projection_are_dealt_out_among_the_heads_in_order():
    # Head 0 has rows 0 and 1, head 1 rows 2 and 3: (x, y), then (10 x, 10 y), with biases 1, 2, 3, 4.
    made = nn.Linear(2, 4)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [10, 0], [0, 10]]))
        made.bias.copy_(torch.tensor([1.0, 2, 3, 4]))
    linear_map = LinearMap.of(made, 2)
    assert linear_map.heads == 2
    assert linear_map(torch.tensor([[[5.0, 7.0]]])).tolist() == [[[[6, 9]], [[53, 74]]]]
    assert not linear_map.weight.requires_grad


def test_scores_by_hand():
    # Queries 1 and 2, keys 3 and 5, doubled and with 1 added to the keys: 2 · (4, 6) and 2 · 2 · (4, 6).
    inputs = {"query_inputs": torch.tensor([[[1.0], [2.0]]]), "key_inputs": torch.tensor([[[3.0], [5.0]]])}
    maps = LinearMap(torch.ones(1, 1, 1)), LinearMap(torch.ones(1, 1, 1), torch.ones(1, 1))
    attention = Attention("cross", 0, **inputs, maps=maps, scale=2.0)
    assert attention.scores.tolist() == [[[[8, 12], [16, 24]]]]
    biased = replace(attention, position_bias=torch.tensor([[[[0.0, 100.0], [200.0, 0.0]]]]))
    assert biased.scores.tolist() == [[[[8, 112], [216, 24]]]]
    assert (attention.name, attention.heads) == ("cross.0", 1)


@pytest.mark.parametrize("interleaved", [True, False])
def test_a_rotation_turns_each_pair_by_its_angle(interleaved):
    length, width = 4, 6
    states, turned = toys.normal(2, length, width), torch.zeros(2, length, width).double()
    for position in range(length):
        for pair in range(width // 2):
            first, second = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + width // 2)
            angle = position * 100.0 ** (-2 * pair / width)
            x, y = states[:, position, first], states[:, position, second]
            turned[:, position, first] = x * math.cos(angle) - y * math.sin(angle)
            turned[:, position, second] = x * math.sin(angle) + y * math.cos(angle)
    torch.testing.assert_close(toys.rotary(length, width, interleaved=interleaved)(states), turned)


def test_what_stands_at_padding_does_not_matter():
    attended = toys.checked()
    attention = attended.weights.masked_fill(~TARGET_MASK[:, None, :, None], torch.nan)
    inputs = attended.key_inputs.masked_fill(~SOURCE_MASK[:, :, None], torch.nan)
    toys.pass_of(replace(attended, weights=attention, key_inputs=inputs)).check()


def test_padding_moves_to_the_right_with_all_that_belongs_to_a_position():
    valid = TARGET_MASK[:, :, None] & SOURCE_MASK[:, None]
    more = {"ignored_source": torch.arange(15).view(3, 5) % 4 == 0, "lexical_probe": torch.rand(3, 4, 5)}
    attended = toys.checked(position_bias=toys.normal(3, 2, 4, 5, seed=9))
    right = toys.pass_of(attended, **more)
    in_front = partial(toys.padded_in_front, masks={"source": SOURCE_MASK, "target": TARGET_MASK})
    axes = {"query_inputs": {"target": 1}, "key_inputs": {"source": 1}}
    axes |= {name: {"target": 2, "source": 3} for name in ("weights", "position_bias")}
    left = replace(
        attended, **{name: in_front(getattr(attended, name), **options) for name, options in axes.items()}
    )
    sides = {n: in_front(getattr(right, n), **{n[:6]: 1}) for n in (*TOKENS, "target_outputs")}
    sides["ignored_source"] = in_front(right.ignored_source, source=1)
    sides["lexical_probe"] = in_front(right.lexical_probe, target=1, source=2)
    assert not sides["source_mask"][1, 0]
    moved = Trace(**sides, attentions=(left,)).validated()
    toys.assert_same_pass(moved, right)
    assert torch.equal(moved.counted("source"), right.counted("source"))
    assert torch.equal(moved.lexical_probe[valid], right.lexical_probe[valid])


def test_without_an_attention_it_is_said_that_nothing_is_checked():
    """Layers come in the order of their numbers."""
    bare = PLAIN | dict.fromkeys(("cross.10.query_states", "cross.9.query_states"), toys.normal(3, 4, 6))
    assert pass_of_tensors(bare).unchecked == ("cross.0", "cross.9", "cross.10")
    trace = pass_of_tensors(FULL)
    assert trace.unchecked == ()
    assert torch.equal(trace.target_outputs, FULL["target_outputs"])
    assert pass_of_tensors(toys.without(FULL, "encoder_self.0.attention")).unchecked == ("encoder_self.0",)


def test_plain_states_are_compared_as_they_are():
    trace = pass_of_tensors(PLAIN)
    (attention,) = trace.attentions
    dots = PLAIN["cross.0.query_states"] @ PLAIN["encoder_states"].mT
    torch.testing.assert_close(attention.scores, dots[:, None])
    assert (attention.name, attention.heads, attention.key_site) == ("cross.0", 1, "encoder")
    torch.testing.assert_close(trace.softmax(attention, 0).sum(-1), TARGET_MASK.float())


def test_plain_states_of_self_attention_are_compared_with_themselves():
    states = toys.normal(3, 4, 2, seed=1)
    (attention,) = pass_of_tensors(TOKENS | {"decoder_self.2.query_states": states}).attentions
    torch.testing.assert_close(attention.scores, (states @ states.mT)[:, None])
    assert (attention.causal, attention.query_site, attention.key_site) == (
        True,
        *["decoder_self.2.query"] * 2,
    )


def test_two_precisions_are_computed_with_in_the_finer():
    finer = {name: FULL[name].double() for name in ("cross.3.query_weight", "encoder_states")}
    attentions = {attention.name: attention for attention in pass_of_tensors(FULL | finer).attentions}
    assert attentions["cross.3"].scores.dtype == torch.float64
    assert attentions["encoder_self.0"].scores.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_with_in_single_to_the_last_digit(dtype):
    half = toys.to({name: tensor for name, tensor in FULL.items() if not name.endswith("attention")}, dtype)
    passes = pass_of_tensors(half), pass_of_tensors(toys.to(half, torch.float32))
    for attention, other in zip(*(trace.attentions for trace in passes), strict=True):
        assert attention.scores.dtype == torch.float32
        assert torch.equal(attention.scores, other.scores)


@pytest.mark.signatures
def test_padding_at_the_left_moves_to_the_right_before_it_is_known_what_is_predicted():
    ids, mask = torch.tensor([[9, 5, 6]]), torch.tensor([[False, True, True]])
    states = toys.normal(1, 3, 2, seed=0)
    given = {"source_tokens": ids, "source_mask": mask, "target_tokens": ids, "target_mask": mask}
    trace = pass_of_tensors(given | {"encoder_states": states, "cross.0.query_states": states})
    assert trace.target_mask.tolist() == [[True, True, False]]
    assert trace.target_tokens[0, :2].tolist() == [5, 6]
    assert trace.target_outputs[0, :2].tolist() == [6, 6]
    inner = states[0, 1:] @ states[0, 1:].T
    torch.testing.assert_close(trace.attentions[0].scores[0, 0, :2, :2], inner)


def test_what_was_saved_comes_back_in_the_order_of_the_names(tmp_path):
    save_file(PLAIN, tmp_path / "b.safetensors")
    save_file(FULL, tmp_path / "a.safetensors")
    (tmp_path / "notes.txt").write_text("not a batch")
    first, second = saved_passes(tmp_path)
    toys.assert_same_pass(first, pass_of_tensors(FULL))
    toys.assert_same_pass(second, pass_of_tensors({name: tensor.numpy() for name, tensor in PLAIN.items()}))


def test_weights_may_stand_in_a_file_of_their_own(tmp_path):
    maps = {name: value for name, value in FULL.items() if name.endswith(("weight", "_bias", "scale"))}
    save_file(maps, tmp_path / MAPS)
    for batch in "ab":
        save_file(toys.without(FULL, *maps), tmp_path / f"{batch}.safetensors")
    passes = list(saved_passes(tmp_path))
    assert len(passes) == 2
    for trace in passes:
        toys.assert_same_pass(trace, pass_of_tensors(FULL))


@pytest.mark.parametrize("name", ["a.safetensors", MAPS])
def test_a_file_that_was_cut_off_is_corrupt(tmp_path, name):
    save_file(PLAIN, tmp_path / "a.safetensors")
    save_file(PLAIN, tmp_path / name)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-5])
    assert_refused(lambda: list(saved_passes(tmp_path)), f"{name} cannot be read as safetensors", CorruptFile)


def test_packed_hand_worked():
    # Padding (9) at the left, at the right, in between, and a last column that is padding alone.
    source = torch.tensor([[9, 1, 2, 9], [3, 9, 4, 9]])
    target = torch.tensor([[9, 5], [6, 7]])
    read = torch.tensor([[9, 50], [60, 70]])
    packed = TokenBatch(source, source != 9, target, target_mask=target != 9, read=read).packed()
    assert packed.source.tolist() == [[1, 2], [3, 4]]
    assert packed.source_mask.all()
    assert packed.target.tolist() == [[5, 9], [6, 7]]
    assert packed.target_mask.tolist() == [[True, False], [True, True]]
    assert packed.read.tolist() == [[50, 9], [60, 70]]


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


# The check of scores has force in every precision: what is wrong is refused, what rounding does never is.


HALF = (torch.bfloat16, torch.float16)
LONG = TokenBatch.of_rows(toys.rows_of((25, 13, 7, 21), 1), toys.rows_of((20, 16, 2, 24), 2))


ASKS = (".q.weight", "q_proj.weight", "q_proj.bias", "to_q.weight", "to_q.bias", "attention_bias.weight")


def enlarged(name, dtype, size):
    """Queries and position biases are multiplied by the size: scores are up to hundreds."""
    adapter = toys.adapter_of(name)
    with torch.no_grad():
        for parameter_name, value in adapter.model.named_parameters():
            if parameter_name.endswith(ASKS):
                value *= size
    adapter.model.to(dtype)
    return adapter.trace(LONG)


WRONG = {
    "forgotten scale": lambda attention: {
        "scale": 1.0 if attention.scale != 1 else attention.key_map.weight.shape[1] ** -0.5
    },
    "twice the scale": lambda attention: {"scale": 2 * attention.scale},
    "half the scale": lambda attention: {"scale": attention.scale / 2},
    "another head's keys": lambda attention: {
        "maps": (attention.query_map, LinearMap(attention.key_map.weight.flip(0), attention.key_map.bias))
    },
    "queries for keys": lambda attention: {"maps": (attention.query_map, attention.query_map)},
    "no position bias": lambda attention: {"position_bias": None},
}


def of_head(attention, head):
    maps = attention.query_map.of_heads([head]), attention.key_map.of_heads([head])
    bias = None if attention.position_bias is None else attention.position_bias[:, [head]]
    return replace(attention, maps=maps, weights=attention.weights[:, [head]], position_bias=bias)


@pytest.mark.parametrize("name", ["by hand", "T5", "Bart", "Marian"])
@pytest.mark.parametrize("dtype", [*HALF, torch.float32])
@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 15])
def test_in_every_precision(name, dtype, size):
    """Heads by themselves, so that one does not hide another."""
    trace = enlarged(name, dtype, size)
    assert size == 1 or max(float(attention.scores.abs().max()) for attention in trace.attentions) > 50
    trace.check()
    for attention, (what, wrong) in product(trace.attentions, WRONG.items()):
        if what == "no position bias" and attention.position_bias is None:
            continue
        for head in range(0, attention.heads, 2):
            alone = replace(trace, attentions=(of_head(replace(attention, **wrong(attention)), head),))
            assert_refused(alone.check, "attention from the caught projections differs")


@pytest.mark.parametrize("name", toys.FAMILIES)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("size", [1, 100])
def test_rounding_stays_within_what_is_derived_of_it(name, dtype, size):
    """Unit errors of a mean square of a third at most, and none near the bound."""
    trace = enlarged(name, dtype, size)
    for attention in trace.attentions:
        sizes, allowed = squared_sizes(attention), trace.allowed(attention)
        least = torch.finfo(dtype).tiny
        for head in range(attention.heads):
            weights = attention.weights[:, head].float()
            error = unit_errors(
                weights,
                attention.scores[:, head],
                squares=sizes(head),
                allowed=allowed,
                unit=UNIT[dtype],
                least=least,
            )
            assert float(error.max()) < WORST / 2
            assert float(error.square().mean()) < 1 / 3 or len(error) < 30


ROUNDINGS = beside(__file__, "roundings")


@pytest.mark.parametrize(("weights", "scores", "allowed", "expected"), ROUNDINGS)
def test_errors_are_counted_in_roundings_beside_the_largest_weight(weights, scores, allowed, expected):
    weights, scores = (torch.tensor([[row]], dtype=torch.float64) for row in (weights, scores))
    squares = torch.full_like(weights, 0.5)
    errors = unit_errors(
        weights, scores, squares=squares, allowed=torch.tensor([[allowed]]), unit=0.01, least=1e-6
    )
    assert errors.tolist() == pytest.approx(expected, abs=1e-3)


def test_squares_of_what_is_rounded():
    # Query (2, -1), key (3, 4), scale 1/2: terms 3 and -2, score 1, with its bias 6.
    states = {"query_inputs": torch.tensor([[[2.0, -1.0]]]), "key_inputs": torch.tensor([[[3.0, 4.0]]])}
    alike = LinearMap(torch.eye(2)[None])
    attention = toys.attended_of(
        1, 1, 1, 2, 1, **states, maps=(alike, alike), position_bias=torch.tensor([[[[5.0]]]])
    )
    assert squared_sizes(attention)(0).tolist() == [[[2 * (3**2 + 2**2) + 1 + 6**2 + 1]]]
    # Terms that cancel in a query are rounded all the same: 2 - 2 = 0, of squares 4 + 4.
    cancelling = LinearMap(torch.tensor([[[1.0, 2.0], [0.0, 0.0]]]))
    attention = replace(attention, maps=(cancelling, alike), position_bias=None)
    assert squared_sizes(attention)(0).tolist() == [[[2 * 0.25 * (4 + 4) * 9 + 1]]]
    # A rotation deals them out among the coordinates.
    attention = replace(attention, query_rotation=Rotary(torch.zeros(1, 2), torch.ones(1, 2)))
    assert squared_sizes(attention)(0).tolist() == [[[2 * 0.25 * (4 + 4) / 2 * (9 + 16) + 1]]]


# What one of the two bounds alone would let through.


def test_one_wrong_weight_among_thousands_is_noticed():
    trace = enlarged("by hand", torch.float32, 1)
    (attended,) = trace.attentions
    attention, row = attended.weights.clone(), (1, 0, 3)
    least, largest = attended.scores[row][:13].argmin(), attended.scores[row][:13].argmax()
    squares = squared_sizes(attended)(0)[1, 3]
    attention[row][least] *= (12 * UNIT[torch.float32] * (squares[least] + squares[largest]).sqrt()).exp()
    message = r"head 0: attention .* by up to 12 times rounding .*, 0\.\d+ in the mean"
    with pytest.raises(BadInput, match=message):
        replace(trace, attentions=(replace(attended, weights=attention),)).check()


def test_what_is_wrong_a_little_everywhere_is_noticed():
    """No single weight is further away than rounding may be; so many of them are not by chance."""
    trace = enlarged("by hand", torch.bfloat16, 1)
    (attention,) = trace.attentions
    noise = torch.randn(attention.scores.shape, generator=generator(0))
    sizes = torch.stack([squared_sizes(attention)(head) for head in range(attention.heads)], 1)
    off = replace(attention, position_bias=1.9 * UNIT[torch.bfloat16] * sizes.sqrt() * noise.clamp(-2, 2))
    with pytest.raises(BadInput, match=r"by up to [0-7](\.\d+)? times rounding .*, [1-9][.\d]* in the mean"):
        replace(trace, attentions=(off,)).check()


def test_even_attention_is_even_by_any_scale():
    trace = enlarged("by hand", torch.bfloat16, 1e-4)
    replace(trace, attentions=(replace(trace.attentions[0], scale=1.0),)).check()
