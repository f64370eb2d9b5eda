"""Hugging Face encoder–decoders: what is read, counted and held, precisions, and the lexical probe."""

import warnings
from dataclasses import replace

import pytest
import torch

from attnlib.adapters import HuggingFace, TokenBatch
from attnlib.decomposition.growing import GrowingComponents
from tests.attnlib.adapters.adapter_builders import (
    BATCH,
    KINDS,
    ROWS,
    SIDES,
    assert_same_pass,
    model_of,
    traced,
)
from tests.attnlib.models.model_builders import generator

transformers = pytest.importorskip("transformers", reason="adapters of Hugging Face models need transformers")


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
    batch, model = TokenBatch.of_rows([[7, 8], [9]], [[5, 6, 40], [9, 40]]), HuggingFace(model_of(name))
    found = model.trace(batch)
    assert torch.equal(found.target_outputs, batch.target)
    assert found.target_tokens[batch.target_mask].equal(torch.tensor(read)[batch.target_mask])
    assert torch.equal(model.trace(replace(batch, read=batch.target)).target_tokens, batch.target)


def test_a_decoder_that_does_not_say_what_it_starts_with_takes_what_is_read():
    adapter = HuggingFace(model_of("M2M100", decoder_start_token_id=None))
    assert torch.equal(adapter.trace(replace(BATCH, read=BATCH.target)).target_tokens, BATCH.target)


def test_ignored_tokens_are_seen_by_the_model_and_not_counted():
    special = [ROWS[0][0][1], ROWS[1][3][2]]
    found = HuggingFace(model_of("T5"), kinds=KINDS, ignored=special).trace(BATCH)
    assert_same_pass(found, traced("T5"))
    for side in SIDES:
        tokens, counted = found.tokens(side), found.counted(side)
        expected = found.mask(side) & (tokens != special[0]) & (tokens != special[1])
        assert torch.equal(counted, expected)
        assert torch.equal(traced("T5").counted(side), found.mask(side))
    assert not found.counted("source")[0, 1]
    assert not found.counted("target")[3, 3]  # read one step after it is predicted


def test_only_the_layers_asked_for_are_caught():
    found = HuggingFace(model_of("T5"), kinds=("cross", "decoder_self"), layers=[1]).trace(BATCH)
    expected = {one.name: one for one in traced("T5").attended}
    assert [one.name for one in found.attended] == ["decoder_self.1", "cross.1"]
    for one in found.attended:
        assert torch.equal(one.scores, expected[one.name].scores)
    assert set(found.sites()) == {"decoder.1.self", "decoder.1.cross", "encoder"}


def test_attentions_of_no_known_form_are_not_counted():
    # LED's encoder looks through windows; its cross-attention is BART's.
    adapter = HuggingFace(model_of("LED", attention_window=4))
    assert adapter.n_layers == {"encoder_self": 0, "decoder_self": 2, "cross": 2}


@pytest.mark.parametrize("name", ["Bart", "MBart", "Marian", "Pegasus", "T5", "M2M100"])
def test_all_positions_that_a_model_has_are_used_and_computed_ones_have_no_end(name):
    source, target = (50, 40) if name in ("T5", "M2M100") else (32, 32)
    found = HuggingFace(model_of(name)).trace(TokenBatch.of_rows([[5] * source], [[6] * target]))
    assert found.attended[0].scores.shape == (1, 4, target, source)


@pytest.mark.parametrize("name", ["T5", "Bart", "Marian"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(name, dtype):
    found = HuggingFace(model_of(name).to(dtype), kinds=KINDS).trace(BATCH)
    computed = torch.promote_types(dtype, torch.float32)
    tolerance = {torch.bfloat16: 0.1, torch.float16: 0.02, torch.float64: 1e-5}[dtype]
    for one, single in zip(found.attended, traced(name).attended, strict=True):
        assert one.attention.dtype == dtype
        assert one.query_inputs.dtype == one.key_inputs.dtype == one.scores.dtype == computed
        allowed = found.allowed(one)[:, None].expand_as(one.attention)
        assert (one.attention - single.attention).abs()[allowed].max() <= tolerance


def test_a_model_that_hides_its_attention_is_switched_with_a_warning():
    model = model_of("T5")
    model.set_attn_implementation("sdpa")
    with pytest.warns(UserWarning, match=r"T5.*by 'sdpa'.*attn_implementation=\"eager\"") as caught:
        adapter = HuggingFace(model, kinds=KINDS)
    assert [one.filename for one in caught] == [__file__]
    assert model.config._attn_implementation == "eager"
    assert_same_pass(adapter.trace(BATCH), traced("T5"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HuggingFace(model)


# Memory.


SAMPLES, LENGTH = 32, 64
TOKENS = torch.randint(3, 50, (SAMPLES, LENGTH), generator=generator(0))
LARGE = TokenBatch(TOKENS, TOKENS > 0, TOKENS, TOKENS > 0)


def t5(width: int, layers: int):
    config = transformers.T5Config(
        vocab_size=50, d_model=width, d_kv=width // 16, d_ff=2 * width, num_layers=layers, num_heads=16,
        decoder_start_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def held(one):
    """Bytes of all storages that a pass keeps alive, its scores computed; projections' weights left out."""
    storages = {}
    for attended in one.attended:
        _ = attended.scores
        for value in vars(attended).values():
            if isinstance(value, torch.Tensor):
                storages[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
    return sum(storages.values())


@pytest.mark.slow
def test_the_estimate_is_what_is_held():
    """It counts the encoder's states once a layer, though layers share them: so it is an upper bound."""
    model = t5(64, 6)
    four = HuggingFace(model, layers=[0, 2, 3, 5])
    estimate, found = four.pass_bytes(SAMPLES, LENGTH, LENGTH), held(four.trace(LARGE))
    assert found <= estimate <= 1.1 * found
    assert four.pass_bytes(SAMPLES, LENGTH, LENGTH, every_layer=True) == 1.5 * estimate
    assert held(HuggingFace(model).trace(LARGE)) > 1.4 * found


def test_logits_are_made_of_one_step():
    """Those of a batch and 250,000 words would take 2 GB, whatever is caught."""
    model, made = t5(32, 1), []
    model.lm_head.register_forward_hook(lambda _, given, logits: made.append(tuple(logits.shape)))
    found = HuggingFace(model).trace(LARGE)
    assert made == [(SAMPLES, 1, 50)]
    assert found.target_tokens.shape == (SAMPLES, LENGTH)


def test_tables_of_all_words_are_what_is_said():
    adapter = HuggingFace(t5(32, 2), kinds=("cross", "encoder_self"))
    tokens = torch.arange(50)[:, None].expand(50, 4)
    tables = [
        GrowingComponents(width).update(torch.zeros(50, 4, width), tokens, tokens >= 0).bytes
        for width in (states.shape[-1] for _, states in adapter.trace(LARGE).sites().values())
    ]
    assert len(tables) == 5  # the encoder's last states are read by both cross-attentions
    assert sum(tables) == adapter.table_bytes(4)
