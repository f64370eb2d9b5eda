"""Tiny models of every family of encoder–decoders in transformers, with weights drawn at random."""

from functools import cache

import pytest
import torch

from attnlib import TokenBatch
from tests.attnlib.models.model_builders import generator

transformers = pytest.importorskip("transformers")

WORDS = 60
PAD, END, UNKNOWN, BEGIN = range(4)
MARKS = {"pad_token_id": PAD, "eos_token_id": END, "bos_token_id": BEGIN}
BATCH = TokenBatch.of_rows([[5, 6, 7, 8], [9, 10]], [[11, 12, END], [13, END]])

LAYERS = {
    "vocab_size": WORDS,
    "d_model": 16,
    **{f"{half}_layers": 2 for half in ("encoder", "decoder")},
    **{f"{half}_attention_heads": 2 for half in ("encoder", "decoder")},
    **{f"{half}_ffn_dim": 16 for half in ("encoder", "decoder")},
    "max_position_embeddings": 40,
    "decoder_start_token_id": END,
    **MARKS,
}
RELATIVE = {
    "vocab_size": WORDS,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 16,
    "num_layers": 2,
    "num_heads": 2,
    "pad_token_id": PAD,
    "eos_token_id": END,
    "decoder_start_token_id": PAD,
}
STACK = {
    "vocab_size": WORDS,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 40,
}
EXPERTS = {"num_experts": 2, "expert_capacity": 64}
SPEECH = {
    "speech_encoder_layers": 1,
    "speech_encoder_attention_heads": 2,
    "speech_encoder_intermediate_size": 16,
    "t2u_encoder_layers": 1,
    "t2u_decoder_layers": 1,
    "t2u_encoder_ffn_dim": 16,
    "t2u_decoder_ffn_dim": 16,
    "t2u_encoder_attention_heads": 2,
    "t2u_decoder_attention_heads": 2,
    "t2u_vocab_size": 20,
}


def bart(family, head="ForConditionalGeneration", **settings):
    config = getattr(transformers, f"{family}Config")(**LAYERS | settings)
    return getattr(transformers, f"{family}{head}")(config)


def t5(family, **settings):
    config = getattr(transformers, f"{family}Config")(**RELATIVE | settings)
    return getattr(transformers, f"{family}ForConditionalGeneration")(config)


def fsmt():
    sizes = {name: value for name, value in LAYERS.items() if name != "vocab_size"}
    vocabularies = {"langs": ["en", "de"], "src_vocab_size": WORDS, "tgt_vocab_size": WORDS}
    config = transformers.FSMTConfig(**sizes, **vocabularies, max_length=20)
    return transformers.FSMTForConditionalGeneration(config)


def t5_gemma(cap=None):
    half = {
        **STACK,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 4,
        "query_pre_attn_scalar": 4,
        "sliding_window": 16,
        "attn_logit_softcapping": cap,
        **MARKS,
    }
    halves = {name: transformers.T5GemmaModuleConfig(**half) for name in ("encoder", "decoder")}
    return transformers.T5GemmaForConditionalGeneration(
        transformers.T5GemmaConfig(**halves, vocab_size=WORDS)
    )


def seamless(version):
    sizes = LAYERS | SPEECH | {"hidden_size": 16, "encoder_layers": 1}
    sizes.pop("d_model")
    config = getattr(transformers, f"SeamlessM4T{version}Config")(**sizes)
    return getattr(transformers, f"SeamlessM4T{version}ForTextToText")(config)


def reader(family, **settings):
    return getattr(transformers, f"{family}Config")(**STACK | settings)


def writer(family, **settings):
    return reader(family, is_decoder=True, add_cross_attention=True, **settings)


def gpt2(width=16):
    return transformers.GPT2Config(
        vocab_size=WORDS,
        n_embd=width,
        n_layer=2,
        n_head=2,
        n_positions=40,
        is_decoder=True,
        add_cross_attention=True,
    )


def xglm():
    sizes = {"d_model": 16, "ffn_dim": 16, "num_layers": 2, "attention_heads": 2}
    positions = {"max_position_embeddings": 40, "is_decoder": True, "add_cross_attention": True}
    return transformers.XGLMConfig(vocab_size=WORDS, **sizes, **positions)


def joined(encoder, decoder, **marks):
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    for name, value in (
        {"decoder_start_token_id": BEGIN, "pad_token_id": PAD, "eos_token_id": END} | marks
    ).items():
        setattr(config, name, value)
    return transformers.EncoderDecoderModel(config)


def distilbert():
    sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 40}
    return transformers.DistilBertConfig(vocab_size=WORDS, **sizes)


OFFSET = {"pad_token_id": 1}  # RoBERTa counts positions from the one after padding
LED = {"max_encoder_position_embeddings": 40, "max_decoder_position_embeddings": 40, "attention_window": 4}
SWITCH = {"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_decoder_layers": 2}
ROBERTA = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
INFINITE = float("inf")


def two_robertas():
    return joined(reader("Roberta", **OFFSET), writer("Roberta", **OFFSET), **ROBERTA)


# By situation: the model, and for how many pieces of source and target it has positions.
FAMILIES = {
    "BART": (lambda: bart("Bart"), 40, 40),
    "BigBird-Pegasus": (lambda: bart("BigBirdPegasus", attention_type="original_full"), 40, 40),
    "Blenderbot": (lambda: bart("Blenderbot"), 40, 40),
    "Blenderbot, small": (lambda: bart("BlenderbotSmall"), 40, 40),
    "FSMT, length first": (fsmt, INFINITE, INFINITE),
    "LED": (lambda: bart("LED", **LED), 40, 40),
    "LongT5": (lambda: t5("LongT5", local_radius=3), INFINITE, INFINITE),
    "M2M100": (lambda: bart("M2M100"), INFINITE, INFINITE),
    "Marian": (lambda: bart("Marian", "MTModel"), 40, 40),
    "mBART": (lambda: bart("MBart"), 40, 40),
    "mT5": (lambda: t5("MT5"), INFINITE, INFINITE),
    "MVP": (lambda: bart("Mvp"), 40, 40),
    "NLLB, mixture of experts": (
        lambda: bart("NllbMoe", encoder_sparse_step=2, decoder_sparse_step=2, **EXPERTS),
        INFINITE,
        INFINITE,
    ),
    "Pegasus": (lambda: bart("Pegasus"), 40, 40),
    "Pegasus-X": (lambda: bart("PegasusX", block_size=4, num_global_tokens=2), INFINITE, INFINITE),
    "PLBART": (lambda: bart("PLBart"), 40, 40),
    "SeamlessM4T, text to text": (lambda: seamless(""), INFINITE, INFINITE),
    "SeamlessM4T v2, text to text": (lambda: seamless("v2"), INFINITE, INFINITE),
    "Switch Transformers": (lambda: t5("SwitchTransformers", **SWITCH, **EXPERTS), INFINITE, INFINITE),
    "T5": (lambda: t5("T5"), INFINITE, INFINITE),
    "T5 with fewer decoder layers": (lambda: t5("T5", num_decoder_layers=1), INFINITE, INFINITE),
    "T5Gemma, grouped queries": (t5_gemma, INFINITE, INFINITE),
    "UMT5": (lambda: t5("UMT5"), INFINITE, INFINITE),
    "two BERTs": (lambda: joined(reader("Bert"), writer("Bert")), 40, 40),
    "BERT and GPT-2": (lambda: joined(reader("Bert"), gpt2()), 40, 40),
    "BERT and a wider GPT-2": (lambda: joined(reader("Bert"), gpt2(24)), 40, 40),
    "two RoBERTas": (two_robertas, 38, 38),
    "XLM-R and BERT": (lambda: joined(reader("XLMRoberta", **OFFSET), writer("Bert")), 38, 40),
    "Longformer and RoBERTa": (
        lambda: joined(reader("Longformer", attention_window=4, **OFFSET), writer("Roberta", **OFFSET)),
        38,
        38,
    ),
    "DistilBERT and BERT": (lambda: joined(distilbert(), writer("Bert")), 40, 40),
    "two ELECTRAs": (
        lambda: joined(reader("Electra", embedding_size=16), writer("Electra", embedding_size=16)),
        40,
        40,
    ),
    "two of BertGeneration": (lambda: joined(reader("BertGeneration"), writer("BertGeneration")), 40, 40),
    "BERT and XGLM": (lambda: joined(reader("Bert"), xglm()), 40, INFINITE),
}  # fmt: skip


def drawn(model, size=0.3):
    """With weights so large that attention is far from uniform; tables of sines stay as they are."""
    draw = generator(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and "embed_positions" not in name:
                weight.normal_(0, size, generator=draw)
    model.set_attn_implementation("eager")
    return model.eval()


def made(make):
    """A model, built without a change of the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return drawn(make())


@cache
def family(name):
    make, *_ = FAMILIES[name]
    return made(make)


def plain_call(model, trace, **options):
    """What a model returns for the batch of a trace, without any hook."""
    with torch.no_grad():
        return model(
            input_ids=trace.source_tokens * trace.source_mask,
            attention_mask=trace.source_mask.long(),
            decoder_input_ids=trace.target_tokens * trace.target_mask,
            decoder_attention_mask=trace.target_mask.long(),
            use_cache=False,
            **options,
        )


def difference(trace, attention, weights):
    """The most that the softmax of a trace's scores differs from weights of the model, at valid steps."""
    most = 0.0
    for head in range(attention.heads):
        ours = trace.softmax(attention, head)
        most = max(most, float(((ours - weights[:, head]) * trace.target_mask[:, :, None]).abs().max()))
    return most


# -- texts and tokenizers --

SOURCE = [
    f"the {adjective} {noun} waits" for adjective in ("old", "red", "cold") for noun in ("house", "river")
]
TARGET = [
    f"das {adjective} {noun} wartet" for adjective in ("alte", "rote", "kalte") for noun in ("Haus", "Boot")
]


def tokenizer_of(lines, *, marks=("<pad>", "</s>", "<unk>", "<s>"), end=True):
    """A piece a word, after marks for padding, end, unknown words and begin."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = dict.fromkeys(word for line in lines for word in line.split())
    vocabulary = {piece: number for number, piece in enumerate([*marks, *words])}
    pad, end_mark, unknown, begin = marks
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if end:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {end_mark}", special_tokens=[(end_mark, vocabulary[end_mark])]
        )
    names = {"pad_token": pad, "eos_token": end_mark, "unk_token": unknown, "bos_token": begin}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
