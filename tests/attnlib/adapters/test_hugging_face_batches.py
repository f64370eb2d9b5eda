"""What a Hugging Face model is given, what is caught of it, and that it is left as it was."""

from dataclasses import replace

import pytest
import torch

from attnlib.adapters import HuggingFace, TokenBatch
from tests.attnlib.adapters.test_adapter_hooks import hooks_on
from tests.attnlib.adapters.test_hugging_face import (
    BATCH,
    KINDS,
    ROWS,
    assert_same_pass,
    model_of,
    pass_of,
    places,
)


def padded_left(batch):
    """The same with padding at the left of every row, and one column more of it."""
    moved = {}
    for side in ("source", "target"):
        tokens, mask = getattr(batch, side), getattr(batch, f"{side}_mask")
        order = torch.argsort(mask, dim=1, stable=True)
        one = torch.zeros_like(tokens[:, :1])
        moved[side] = torch.cat([one, tokens.take_along_dim(order, 1)], 1)
        moved[f"{side}_mask"] = torch.cat([one.bool(), mask.take_along_dim(order, 1)], 1)
    return TokenBatch(**moved)


# What the model is given.


@pytest.mark.parametrize("name", ["T5", "Bart"])
def test_padding_at_the_left_gives_the_same_pass(name):
    assert_same_pass(HuggingFace(model_of(name), kinds=KINDS).trace(padded_left(BATCH)), pass_of(name))


@pytest.mark.parametrize("name", ["T5", "Bart", "MBart", "M2M100"])
@pytest.mark.parametrize("at_padding", [-100, 10**6])
def test_what_stands_at_padding_does_not_matter(name, at_padding):
    padded = {
        side: getattr(BATCH, side).masked_fill(~getattr(BATCH, f"{side}_mask"), at_padding)
        for side in ("source", "target")
    }
    model = model_of(name)
    found = HuggingFace(model, kinds=KINDS).trace(replace(BATCH, **padded))
    assert_same_pass(found, pass_of(name))
    given = replace(BATCH, **padded, read=padded["target"])
    assert_same_pass(
        HuggingFace(model).trace(given), HuggingFace(model).trace(replace(BATCH, read=BATCH.target))
    )


@pytest.mark.parametrize("name", ["T5", "MBart"])
def test_a_sample_alone_is_what_it_is_among_others(name):
    alone = HuggingFace(model_of(name), kinds=KINDS).trace(TokenBatch.of_rows([ROWS[0][1]], [ROWS[1][1]]))
    for one, together in zip(alone.attended, pass_of(name).attended, strict=True):
        _, _, steps, words = one.scores.shape
        expected = together.scores[1:2, :, :steps, :words]
        torch.testing.assert_close(one.scores, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("T5", [[0, 5, 6], [0, 9, 40]]),
        ("Bart", [[2, 5, 6], [2, 9, 40]]),
        ("M2M100", [[2, 5, 6], [2, 9, 40]]),  # has no function that says so: from its config
        ("MBart", [[40, 5, 6], [40, 9, 40]]),  # the last token, a language's, moves to the front
    ],
)
def test_the_decoder_reads_the_target_one_step_later(name, read):
    batch = TokenBatch.of_rows([[7, 8], [9]], [[5, 6, 40], [9, 40]])
    model = HuggingFace(model_of(name))
    found = model.trace(batch)
    assert torch.equal(found.target_outputs, batch.target)
    valid = batch.target_mask
    assert found.target_tokens[valid].tolist() == torch.tensor(read)[valid].tolist()
    assert torch.equal(model.trace(replace(batch, read=batch.target)).target_tokens, batch.target)


def test_ignored_tokens_are_seen_by_the_model_and_not_counted():
    special = [ROWS[0][0][1], ROWS[1][3][2]]
    found = HuggingFace(model_of("T5"), kinds=KINDS, ignored=special).trace(BATCH)
    assert_same_pass(found, pass_of("T5"))
    for side in ("source", "target"):
        tokens, counted = found.tokens(side), found.counted(side)
        expected = found.mask(side) & (tokens != special[0]) & (tokens != special[1])
        assert torch.equal(counted, expected)
        assert torch.equal(pass_of("T5").counted(side), found.mask(side))
    assert not found.counted("source")[0, 1]
    assert not found.counted("target")[3, 3]  # read one step after it is predicted


def test_only_the_layers_asked_for_are_caught():
    found = HuggingFace(model_of("T5"), kinds=("cross", "decoder_self"), layers=[1]).trace(BATCH)
    expected = {one.name: one for one in pass_of("T5").attended}
    assert [one.name for one in found.attended] == ["decoder_self.1", "cross.1"]
    for one in found.attended:
        assert torch.equal(one.scores, expected[one.name].scores)
    assert set(found.sites()) == {"decoder.1.self", "decoder.1.cross", "encoder"}


def test_passes_come_one_after_the_other():
    asked = []

    def batches():
        for number in range(3):
            asked.append(number)
            yield BATCH

    passes = HuggingFace(model_of("Bart")).traces(batches())
    next(passes)
    assert asked == [0]


# What becomes of the model.


def test_a_model_in_training_is_traced_without_dropout_and_goes_on_training():
    model = model_of("T5", dropout_rate=0.5).train()
    model.encoder.block[0].eval()
    modes = {name: module.training for name, module in model.named_modules()}
    found = HuggingFace(model, kinds=KINDS).trace(BATCH)
    assert_same_pass(found, pass_of("T5"))
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert hooks_on(model) == 0
    for one in found.attended:
        assert not one.scores.requires_grad
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("name", ["T5", "Bart", "Marian"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(name, dtype):
    model = model_of(name).to(dtype)
    found = HuggingFace(model, kinds=KINDS).trace(BATCH)
    computed = torch.promote_types(dtype, torch.float32)
    tolerance = {torch.bfloat16: 0.1, torch.float16: 0.02, torch.float64: 1e-5}[dtype]
    for one, single in zip(found.attended, pass_of(name).attended, strict=True):
        assert one.attention.dtype == dtype
        assert one.query_inputs.dtype == one.key_inputs.dtype == one.scores.dtype == computed
        allowed = places(found, one)[:, None].expand_as(one.attention)
        gap = (one.attention - single.attention).abs()[allowed]
        assert gap.max() <= tolerance
