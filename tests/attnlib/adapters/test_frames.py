"""Encoders of pictures and sound: the source has positions and no words."""

import json
from functools import partial

import pytest
import torch

from attnlib import FrameBatch, HuggingFace, Stream, analyse, lexical_probe, report
from attnlib.analysis.report import shown_terms
from tests.attnlib.adapters.adapter_builders import (
    BATCH,
    DECODERS,
    KINDS,
    WIDTHS,
    model_of,
)
from tests.attnlib.adapters.adapter_builders import (
    frames_model as model,
)
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused

NAMES = ("Whisper", "Speech2Text", *DECODERS)


def batch(name, seed=0, samples=5):
    """Speech2Text makes one position of four frames, and is told where there is sound."""
    draw, mask = generator(seed), None
    shape = {"Whisper": (4, 20), "Speech2Text": (32, 4)}.get(name, (3, 8, 8))
    if name == "Speech2Text":
        mask = torch.arange(32) < torch.tensor([32, 32, 24, 32, 16][:samples])[:, None]
    target = torch.randint(3, 8, (samples, 4), generator=draw)
    lengths = torch.tensor([4, 2, 3, 4, 4][:samples])
    frames = torch.randn(samples, *shape, generator=draw)
    return FrameBatch(frames, target, torch.arange(4) < lengths[:, None], frames_mask=mask)


@pytest.mark.parametrize("name", NAMES)
def test_attention_and_predictions_are_those_of_a_plain_call(name):
    given, adapter = batch(name), HuggingFace(model(name), kinds=KINDS)
    one = adapter.trace(given)
    mask = {} if given.frames_mask is None else {"attention_mask": given.frames_mask.long()}
    with torch.no_grad():
        plain = model(name)(
            **{model(name).main_input_name: given.frames},
            **mask,
            decoder_input_ids=one.target_tokens,
            decoder_attention_mask=one.target_mask.long(),
            output_attentions=True,
        )
    lengths = {"Whisper": [10] * 5, "Speech2Text": [8, 8, 6, 8, 4]}.get(name, [5] * 5)
    assert one.source_mask.sum(1).tolist() == lengths
    assert len(one.attended) == len({own.name for own in one.attended}) >= 5
    for own in one.attended:
        expected = plain[f"{own.kind.removesuffix('_self')}_attentions"][own.layer]
        for head in range(own.heads):
            at = one.allowed(own)
            torch.testing.assert_close(one.softmax(own, head)[at], expected[:, head][at])
    torch.testing.assert_close(adapter.logits(one)[one.target_mask], plain.logits[one.target_mask])


def by_hand(one, own, head):
    """Covariance shares by (part of the query, part of the key), from means over positions and words."""
    sides = []
    maps = ("target", own.query_inputs, own.query_map), ("source", own.key_inputs, own.key_map)
    for side, inputs, linear in maps:
        states, mask, tokens = inputs.double(), one.mask(side), one.tokens(side)
        places = torch.arange(states.shape[1]).expand_as(tokens)
        parts = {"temporal": torch.zeros_like(states), "input": torch.zeros_like(states)}
        for place in range(states.shape[1]):
            at = mask & (places == place)
            parts["temporal"][at] = states[at].mean(0) if at.any() else 0
        for word in tokens[mask].unique() if side == "target" else ():
            at = mask & (tokens == word)
            parts["input"][at] = (states - parts["temporal"])[at].mean(0)
        parts["residual"] = states - parts["temporal"] - parts["input"]
        weight, bias = linear.weight[head].double(), 0 if linear.bias is None else linear.bias[head].double()
        sides.append({part: value @ weight.T for part, value in parts.items()})
        sides[-1]["temporal"] = sides[-1]["temporal"] + bias
    terms = {
        (mine, other): own.scale * query @ key.mT
        for mine, query in sides[0].items()
        for other, key in sides[1].items()
    }
    torch.testing.assert_close(sum(terms.values()), own.scores[:, head].double(), rtol=1e-4, atol=1e-5)
    rows = one.target_mask.nonzero().tolist()
    flat = {
        pair: torch.cat([(row := term[n, s, one.source_mask[n]]) - row.mean() for n, s in rows])
        for pair, term in terms.items()
    }
    total = sum(flat.values())
    return {pair: float((term @ total) / (total @ total)) for pair, term in flat.items()}


@pytest.mark.parametrize("name", NAMES)
def test_shares_are_those_of_means_over_positions_and_sum_to_one(name):
    adapter = HuggingFace(model(name), layers=[0])
    one = adapter.trace(batch(name))
    found = analyse(Stream(adapter.trace, [batch(name)]), every=1, method="means")
    terms = {(row["head"], row["term"]): row["covariance_share"] for row in found.terms}
    shown = {(row["head"], row["term"]) for row in shown_terms(found, found.terms)}
    for head in range(2):
        expected = by_hand(one, one.attended[0], head)
        assert sum(expected.values()) == pytest.approx(1)
        for (mine, other), share in expected.items():
            assert terms[head, f"{mine}·{other}"] == pytest.approx(share, abs=1e-6)
            assert ((head, f"{mine}·{other}") in shown) == (other != "input")


@pytest.mark.parametrize("method", ["means", "least_squares"])
@pytest.mark.parametrize("name", NAMES)
def test_states_that_depend_on_the_position_alone_are_temporal(name, method):
    """One picture for all samples, and a decoder whose words are all alike."""
    own = batch(name)
    alike = [FrameBatch(own.frames[:1].expand_as(own.frames), own.target, own.target_mask)]
    words = model(name).get_decoder().get_input_embeddings().weight
    before = words.detach().clone()
    try:
        words.data.fill_(0.3)
        found = analyse(Stream(HuggingFace(model(name)).trace, alike), every=1, method=method)
    finally:
        words.data.copy_(before)
    for row in found.heads:  # of an exact fit, words that have one place each may take it over
        assert row["residual_share"] == pytest.approx(0, abs=1e-5)
        if method == "means":
            assert row["temporal_share"] == pytest.approx(1, abs=1e-5)
            assert row["temporal_rebuilds"] == pytest.approx(1, abs=1e-4)


def test_a_report_says_that_frames_are_no_words(tmp_path):
    whisper = model("Whisper")
    adapter = HuggingFace(whisper, kinds=KINDS, ignored=[0, 1])
    stream = Stream(
        adapter.trace,
        [batch("Whisper", seed) for seed in range(5)],
        partial(lexical_probe, whisper),
        logits=adapter.logits,
    )
    found = report(stream, tmp_path, name=lambda side, token: f"{side} {token}")
    said = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert said["source"] == "frames"
    assert "This encoder reads frames, not words" in said["notes"][0]
    assert said["notes"][0] in page
    assert "reads input_features, which a pass does not hold" in found.no_probe[0]
    assert said["learned"]["sentences"] == 5
    parts = {kind: {row["term"] for row in said["terms"] if row["kind"] == kind} for kind in KINDS}
    assert not any(term.endswith("·input") for term in parts["cross"])
    assert not any("input" in term for term in parts["encoder_self"])
    assert {"input·temporal", "input·residual"} <= parts["cross"]
    assert {"input·input"} <= parts["decoder_self"]
    assert "<bdi>target␣3</bdi>" in page
    assert "<bdi>source" not in page
    for row in said["heads"]:
        parts = ("temporal", "input", "mixed", "residual")
        assert sum(row[f"{part}_share"] for part in parts) == pytest.approx(1)


def pass_of_another():
    adapter = HuggingFace(model("Whisper"))
    one = adapter.trace(batch("Whisper"))
    adapter.trace(batch("Whisper", 1))
    return adapter.logits(one)


def frames(**changes):
    own = vars(batch("Whisper"))
    return FrameBatch(**{name: own[name] for name in ("frames", "target", "target_mask")} | changes)


LONG = torch.full((5, 7), 4)


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (lambda: HuggingFace(model("Whisper")).trace(BATCH), "batches of attnlib.FrameBatch, not TokenBatch"),
        (lambda: HuggingFace(model_of("T5")).trace(batch("Whisper")), "attnlib.TokenBatch, not FrameBatch"),
        (lambda: HuggingFace(model("Whisper")).trace(frames(frames_mask=torch.ones(5, 20).bool())),
         "reads all frames: leave frames_mask out"),
        (lambda: HuggingFace(model("GPT2")).trace(
            FrameBatch(batch("GPT2").frames, LONG, LONG > 0)), "Model has positions for 6"),
        (lambda: frames(frames=torch.full((5, 4, 20), torch.nan)), "expected finite floating-point numbers"),
        (lambda: frames(frames=torch.zeros(4, 4, 20)), "frames of shape (4, 4, 20) … with 5 targets"),
        (lambda: frames(target_mask=torch.zeros(5, 4).bool()), "target row 0 is all padding"),
        (pass_of_another, "ask for logits right after trace"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(refused, said):
    assert_refused(refused, said)


def test_ids_of_frames_are_never_among_the_ignored():
    one = HuggingFace(model("Whisper"), ignored=[0, 1, 3]).trace(batch("Whisper"))
    assert one.source_tokens.unique().tolist() == [2]
    assert bool(one.counted("source").all())


def test_rows_of_a_packed_projection_are_what_it_makes():
    """Of GPT-2, which multiplies from the right: keys are the first half, values the second."""
    gpt2, one = model("GPT2"), HuggingFace(model("GPT2"), layers=[1]).trace(batch("GPT2"))
    packed = gpt2.decoder.transformer.h[1].crossattention.c_attn
    keys = packed(one.attended[0].key_inputs)[..., :8].unflatten(-1, (2, 4)).transpose(1, 2)
    torch.testing.assert_close(one.attended[0].keys, keys)


def test_two_berts_read_words():
    """What is known of their forms holds for an encoder of words as well: trace compares the attention."""
    transformers = pytest.importorskip("transformers", reason="models of Hugging Face need transformers")
    halves = [transformers.BertConfig(**WIDTHS, vocab_size=50, max_position_embeddings=12) for _ in range(2)]
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(*halves)
    config.decoder_start_token_id = config.pad_token_id = 0
    with torch.random.fork_rng():
        torch.manual_seed(0)
        two = transformers.EncoderDecoderModel(config)
    two.set_attn_implementation("eager")
    assert len(HuggingFace(two, kinds=KINDS).trace(BATCH).attended) == 6
