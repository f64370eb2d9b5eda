"""Hugging Face encoder–decoders: terms, scores and attention of every family, against the library's own."""

from functools import cache

import pytest
import torch

from attnlib.adapters import HuggingFace, TokenBatch
from attnlib.decomposition import Components

transformers = pytest.importorskip("transformers", reason="adapters of Hugging Face models need transformers")

RELATIVE = {
    "vocab_size": 50,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
ABSOLUTE = {
    "vocab_size": 50,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 32,
    "decoder_start_token_id": 2,
    "pad_token_id": 1,
    "eos_token_id": 2,
}
SIZES = {"T5": RELATIVE, "MT5": RELATIVE, "UMT5": RELATIVE}
FAMILIES = ("T5", "MT5", "Bart", "MBart", "Marian", "Pegasus", "M2M100")
KINDS = ("encoder_self", "decoder_self", "cross")
RETURNED = {
    "encoder_self": "encoder_attentions",
    "decoder_self": "decoder_attentions",
    "cross": "cross_attentions",
}


def generator(seed):
    return torch.Generator().manual_seed(seed)


def rows_of(lengths, seed):
    return [
        torch.randint(3, 50, (length,), generator=generator(seed + length)).tolist() for length in lengths
    ]


ROWS = rows_of((5, 3, 7, 6), 100), rows_of((4, 6, 2, 5), 200)
BATCH = TokenBatch.of_rows(*ROWS)


def model_of(name, **changes):
    """With weights so large that attention is far from uniform, and with biases and norms that differ."""
    config = getattr(transformers, f"{name}Config")(**SIZES.get(name, ABSOLUTE) | changes)
    with torch.random.fork_rng():
        model = transformers.AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager")
    draw = generator(0)
    with torch.no_grad():
        for value in model.parameters():
            noise = torch.randn(value.shape, generator=draw)
            value.copy_(noise * 32**-0.5 if value.dim() > 1 else value + 0.3 * noise)
    return model.eval()


@cache
def pass_of(name):
    return HuggingFace(model_of(name), kinds=KINDS).trace(BATCH)


@cache
def returned_by(name):
    """A plain call of the model, nothing hooked."""
    found = pass_of(name)
    with torch.no_grad():
        return model_of(name)(
            input_ids=found.source_tokens,
            attention_mask=found.source_mask.long(),
            decoder_input_ids=found.target_tokens,
            decoder_attention_mask=found.target_mask.long(),
            output_attentions=True,
        )


def places(found, attended):
    """Where attention is: valid positions of both sides, and no later ones in the decoder."""
    asks, answers = (found.mask(side) for side in found.sides(attended.kind))
    return attended.allowed(asks, answers)


def assert_same_pass(found, expected):
    for name in ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    assert [one.name for one in found.attended] == [one.name for one in expected.attended]
    for mine, theirs in zip(found.attended, expected.attended, strict=True):
        assert torch.equal(mine.attention, theirs.attention), mine.name
        assert torch.equal(mine.scores, theirs.scores), mine.name


# Every family.


@pytest.mark.parametrize("name", FAMILIES)
def test_the_nine_terms_and_the_position_bias_sum_to_the_scores(name):
    found = pass_of(name)
    components = {
        site: Components(50, 8, states.shape[-1]).update(states, found.tokens(side), found.mask(side))
        for site, (side, states) in found.sites().items()
    }
    assert len(found.attended) == 6
    for one in found.attended:
        query, key = (
            components[site].split(states, found.tokens(side), found.mask(side))
            for side, site, states in zip(
                found.sides(one.kind),
                (one.query_site, one.key_site),
                (one.query_inputs, one.key_inputs),
                strict=True,
            )
        )
        allowed = places(found, one)
        for head in range(4):
            scores = one.scores[:, head][allowed]
            total = one.terms(head, query, key).sum((0, 1))
            if one.position_bias is not None:
                total = total + one.position_bias[:, head]
            assert (total[allowed] - scores).abs().max() <= 1e-5 * scores.abs().max(), one.name
            assert scores.std() > 0.05


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_is_what_a_plain_call_returns_and_the_softmax_of_the_scores(name):
    found, plain = pass_of(name), returned_by(name)
    assert [one.name for one in found.attended] == [
        "encoder_self.0", "encoder_self.1", "decoder_self.0", "cross.0", "decoder_self.1", "cross.1",
    ]  # fmt: skip
    for one in found.attended:
        expected, allowed = plain[RETURNED[one.kind]][one.layer], places(found, one)
        torch.testing.assert_close(one.attention, expected, rtol=0, atol=0)
        for head in range(4):
            own = found.softmax(one, head)
            torch.testing.assert_close(own[allowed], expected[:, head][allowed], rtol=0, atol=1e-6)
            assert not own[~allowed].any()


@pytest.mark.parametrize("name", FAMILIES)
def test_cross_attention_reads_the_encoders_last_states(name):
    found = pass_of(name)
    states = [one.key_inputs for one in found.attended if one.kind == "cross"]
    for own in (*states, found.sites()["encoder"][1]):
        assert torch.equal(own, returned_by(name).encoder_last_hidden_state)


@pytest.mark.parametrize("name", FAMILIES)
def test_only_self_attention_of_t5_has_a_bias_by_position(name):
    for one in pass_of(name).attended:
        assert (one.position_bias is not None) == (name in ("T5", "MT5") and one.kind != "cross")


@pytest.mark.parametrize("name", ["T5", "Marian"])
def test_a_head_as_a_trace(name):
    found = pass_of(name)
    sides = {"cross": ("target", "source"), "encoder_self": ("source",) * 2, "decoder_self": ("target",) * 2}
    for one in found.attended:
        asks, answers = sides[one.kind]
        for head in range(4):
            trace = found.head(one, head)
            scores = trace.decoder_states @ trace.encoder_states.mT
            if one.position_bias is not None:
                scores = scores + one.position_bias[:, head]
            torch.testing.assert_close(scores, trace.scores)
            assert torch.equal(trace.scores, one.scores[:, head])
            assert trace.source_tokens is found.tokens(answers)
            assert trace.source_mask is found.mask(answers)
            assert trace.target_tokens is found.tokens(asks)
            assert trace.target_mask is found.mask(asks)
            predicted = found.source_tokens if asks == "source" else found.target_outputs
            assert trace.target_outputs is predicted
            torch.testing.assert_close(trace.attention.sum(-1), trace.target_mask.float())
            assert trace.logits is None
