"""Models that cannot be traced as they are: one true line, with the way out that works."""

import pytest
import torch
from torch import nn

from attnlib import Hooked, HuggingFace, Modules, TokenBatch, adapter_of, lexical_probe, pass_of_tensors
from attnlib.errors import BadInput
from tests.situations.builders import (
    BATCH,
    bart,
    difference,
    family,
    made,
    plain_call,
    reader,
    t5_gemma,
    transformers,
)

CROSS = "model.decoder.layers.0.encoder_attn"


class Quantised(torch.Tensor):
    """A tensor that computes in a way of its own, as those of torchao do."""


def quantised_by_tensor_class():
    model = made(lambda: bart("Bart"))
    projection = model.get_submodule(f"{CROSS}.q_proj")
    weight = projection.weight.detach().as_subclass(Quantised)
    projection.weight = nn.Parameter(weight, requires_grad=False)
    return model


def offloaded():
    model = made(lambda: bart("Bart"))
    model.get_submodule(f"{CROSS}.k_proj").to("meta")
    return model


def prophet():
    sizes = {
        "vocab_size": 60,
        "hidden_size": 16,
        **{f"num_{half}_layers": 1 for half in ("encoder", "decoder")},
        **{f"num_{half}_attention_heads": 2 for half in ("encoder", "decoder")},
    }
    return transformers.ProphetNetForConditionalGeneration(transformers.ProphetNetConfig(**sizes))


def bert():
    return transformers.BertModel(reader("Bert"))


MODELS = [
    pytest.param(quantised_by_tensor_class, "in full", id="quantised by tensor class"),
    pytest.param(offloaded, "offloaded … whole", id="offloaded"),
    pytest.param(lambda: nn.DataParallel(family("BART")), "model.module", id="DataParallel"),
    pytest.param(lambda: made(lambda: t5_gemma(50.0)), "pass_of_tensors", id="scores with a cap"),
    pytest.param(lambda: made(prophet), "ProphetNet … 3 streams … pass_of_tensors", id="n-gram streams"),
    pytest.param(bert, "lacks an encoder or a decoder", id="an encoder alone"),
    pytest.param(lambda: nn.Linear(2, 2), "attnlib.adapters.Modules", id="no model of transformers"),
]


@pytest.mark.parametrize(("model", "way_out"), MODELS)
def test_a_model_is_refused_in_one_line(model, way_out):
    pattern = way_out.replace(".", r"\.").replace(" … ", ".*")
    with pytest.raises(BadInput, match=pattern) as refusal:
        HuggingFace.__new__(HuggingFace).__init__(model())
    assert "\n" not in str(refusal.value)


def test_the_module_of_a_data_parallel_model_is_traced():
    model = nn.DataParallel(family("BART")).module
    assert len(HuggingFace(model).trace(BATCH).attentions) == 2


def test_an_encoder_alone_has_an_adapter():
    trace = adapter_of(bert()).trace({"input_ids": [[5, 6, 7]]})
    assert trace.attentions[0].kind == "encoder_self"


def test_capped_scores_go_through_as_tensors():
    """The way out that the refusal of T5Gemma names: states and weights, and no attention."""
    attention = HuggingFace(family("T5Gemma, grouped queries")).trace(BATCH).attentions[0]
    query_map, key_map = attention.query_map, attention.key_map
    tensors = {
        "source_tokens": BATCH.source,
        "source_mask": BATCH.source_mask,
        "target_tokens": BATCH.target,
        "target_mask": BATCH.target_mask,
        "cross.0.query_states": attention.query_inputs,
        "cross.0.key_states": attention.key_inputs,
        "cross.0.query_weight": query_map.weight,
        "cross.0.key_weight": key_map.weight,
        "cross.0.scale": torch.tensor(attention.scale),
    }
    torch.testing.assert_close(pass_of_tensors(tensors).attentions[0].scores, attention.scores)


def test_the_first_stream_of_a_prophet_goes_through_as_tensors():
    """The way out that the refusal of ProphetNet names."""
    model = made(prophet)
    attention = model.prophetnet.decoder.layers[0].cross_attn
    caught = {}

    def catch(_module, _arguments, named):
        caught.update(query=named["hidden_states"].detach(), key=named["key_value_states"].detach())

    attention.register_forward_pre_hook(catch, with_kwargs=True)
    with torch.no_grad():
        output = model(
            input_ids=BATCH.source * BATCH.source_mask,
            attention_mask=BATCH.source_mask.long(),
            decoder_input_ids=BATCH.target * BATCH.target_mask,
            output_attentions=True,
        )
    n_steps = BATCH.target.shape[1]
    weights = output.cross_attentions[0][:, :, :n_steps].softmax(-1)  # it returns what comes before
    tensors = {
        "source_tokens": BATCH.source,
        "source_mask": BATCH.source_mask,
        "target_tokens": BATCH.target,
        "target_mask": BATCH.target_mask,
        "cross.0.query_states": caught["query"][:, :n_steps],
        "cross.0.key_states": caught["key"],
        "cross.0.scale": torch.tensor(attention.head_dim**-0.5),
        "cross.0.attention": weights,
    }
    for side in ("query", "key"):
        projection = getattr(attention, f"{side}_proj")
        weight, bias = projection.weight.detach(), projection.bias.detach()
        tensors[f"cross.0.{side}_weight"] = weight.unflatten(0, (attention.num_attn_heads, -1))
        tensors[f"cross.0.{side}_bias"] = bias.unflatten(0, (attention.num_attn_heads, -1))
    trace = pass_of_tensors(tensors)
    assert difference(trace, trace.attentions[0], weights) < 1e-6


def big_bird():
    sizes = {"max_position_embeddings": 200, "block_size": 4, "num_random_blocks": 1}
    return bart("BigBirdPegasus", attention_type="block_sparse", **sizes)


def test_attention_in_blocks_is_refused_with_the_argument_that_avoids_it():
    with pytest.raises(BadInput, match='attention_type="original_full'):
        HuggingFace(made(big_bird), kinds=("encoder_self",))


@pytest.mark.parametrize("kind", ["cross", "decoder_self"])
def test_the_decoder_of_a_model_whose_encoder_attends_in_blocks_is_traced(kind):
    model = made(big_bird)
    long_enough = TokenBatch.of_rows([[5 + place % 50 for place in range(60)]], [[11, 12, 1]])
    trace = HuggingFace(model, kinds=(kind,)).trace(long_enough)
    output = plain_call(model, trace, output_attentions=True)
    of_model = {"cross": output.cross_attentions, "decoder_self": output.decoder_attentions}[kind]
    for attention in trace.attentions:
        assert difference(trace, attention, of_model[attention.layer]) < 1e-6


class Sparse(nn.Module):
    """Sparsemax: scores minus a constant of the row, where that is positive."""

    def forward(self, scores):
        ordered = scores.sort(-1, descending=True).values
        counts = torch.arange(1, scores.shape[-1] + 1)
        sums = ordered.cumsum(-1) - 1
        n_positive = (counts * ordered > sums).sum(-1, keepdim=True)
        return (scores - sums.gather(-1, n_positive - 1) / n_positive).clamp(min=0)


class SparseReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.to_q, self.to_k = nn.Embedding(60, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.attend, self.out = Sparse(), nn.Linear(8, 60)

    def forward(self, batch):
        def heads(states):
            return states.unflatten(-1, (2, 4)).transpose(1, 2)

        scores = heads(self.to_q(self.words(batch.read))) @ heads(self.to_k(self.words(batch.source))).mT / 2
        attention = self.attend(scores.masked_fill(~batch.source_mask[:, None, None], -1e9))
        return self.out((attention @ heads(self.words(batch.source))).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("size", [pytest.param(0.3, id="no zeros"), pytest.param(1.0, id="zeros")])
def test_attention_that_is_no_softmax_is_said_to_be_none(size):
    model = SparseReader()
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, size, generator=draw)
    place = Hooked("to_q", "to_k", heads=2, attention="attend")
    with pytest.raises(BadInput, match=r"sparsemax.*unchecked=True"):
        Modules(model, place, lambda model, batch: model(batch), start=1).trace(BATCH)


class StepByStep(nn.Module):
    """A decoder that reads a word at a time, so that its layers run more than once."""

    def __init__(self):
        super().__init__()
        self.words, self.to_q, self.to_k = nn.Embedding(60, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.softmax = nn.Softmax(-1)

    def forward(self, batch):
        keys = self.to_k(self.words(batch.source))
        for read in batch.read.unbind(1):
            self.softmax(self.to_q(self.words(read[:, None]))[:, None] @ keys[:, None].mT)


def test_a_decoder_that_goes_step_by_step_is_sent_to_tensors():
    place = Hooked("to_q", "to_k", heads=1, attention="softmax")
    with pytest.raises(BadInput, match="pass_of_tensors"):
        Modules(StepByStep(), place, lambda model, batch: model(batch), start=1).trace(BATCH)


def with_another_call(monkeypatch, call):
    """A model and its trace; ``call`` has the arguments of the model's own call, and that."""
    model = made(lambda: bart("Bart"))
    trace = HuggingFace(model).trace(BATCH)
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda *args, **options: call(forward, *args, **options))
    return model, trace


def refuses_outputs(forward, *args, **options):
    if "encoder_outputs" in options:
        raise ValueError("You have to provide either input_ids or inputs_embeds")
    return forward(*args, **options)


def ignores_outputs(forward, *args, encoder_outputs=None, **options):
    return forward(*args, **options)


def needs_ids(forward, *args, **options):
    if options.get("input_ids") is None:
        raise ValueError("You have to provide either input_ids or inputs_embeds")
    return forward(*args, **options)


@pytest.mark.parametrize("call", [refuses_outputs, ignores_outputs])
def test_a_model_that_does_not_run_on_encoder_outputs_has_no_probe(monkeypatch, call):
    """As with prefix tuning."""
    model, trace = with_another_call(monkeypatch, call)
    with pytest.raises(BadInput, match="encoder_outputs"):
        lexical_probe(model, trace)


def test_a_model_that_needs_ids_beside_encoder_outputs_has_a_probe(monkeypatch):
    model, trace = with_another_call(monkeypatch, needs_ids)
    torch.testing.assert_close(lexical_probe(model, trace), lexical_probe(made(lambda: bart("Bart")), trace))


LONG = TokenBatch.of_rows([[5] * 41], [[6, 1]])


def test_a_source_beyond_the_positions_is_refused_by_the_adapter():
    with pytest.raises(BadInput, match="positions for 40"):
        HuggingFace(family("BART")).trace(LONG)
