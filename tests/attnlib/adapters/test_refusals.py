"""What adapters refuse, and in which words: passes, batches, tensors, modules, models of Hugging Face."""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import nn

from attnlib import FrameBatch, Hooked, HuggingFace, Modules, TokenBatch, adapter_of, zoo
from attnlib.adapters import LinearMap, lexical_probe, pass_of_tensors, text_batches
from tests.attnlib.adapters import adapter_builders as toys
from tests.attnlib.adapters.adapter_builders import BATCH, FULL, HOOKED, PLAIN, TARGET_MASK, normal, run
from tests.attnlib.refusals import refused
from tests.tables import beside

GAP = "attention from the caught projections differs"

ONE, ONES, NAN = toys.checked(), torch.ones(3, 4, 5), torch.nan
SHAPES = beside(__file__, "tensors")


def pass_of(*attentions, **changes):
    return toys.pass_of(*attentions, **changes).validated()


def attended(**changes):
    return pass_of(toys.attended_of(**changes))


def with_keys(key_map):
    return attended(maps=(ONE.query_map, key_map))


def rechecked(**changes):
    toys.pass_of(replace(ONE, **changes)).check()


def one_hot(attention):
    """Attention to the first position of what it sees, as a sparse one may be."""
    first = (attention > 0).int().argmax(-1, keepdim=True)
    return torch.zeros_like(attention).scatter(-1, first, 1.0)


def with_one(value, name):
    wrong = getattr(ONE, name).clone()
    wrong[(0, 1, 1, 2) if wrong.dim() == 4 else (0, 1, 2)] = value
    return pass_of(replace(ONE, **{name: wrong}))


test_passes_that_are_refused = refused(
    *((partial(with_one, value, name), f"cross.1: {shown} hold NaN or infinity … (sample 0, position {at})")
      for name, shown, at in (("query_inputs", "query_inputs", "1"), ("key_inputs", "key_inputs", "1"),
                              ("position_bias", "position_bias", "1 and 2"),
                              ("weights", "attention", "1 and 2"))
      for value in (NAN, torch.inf)),
    *((partial(attended, **{name: torch.ones(shape) for name, shape in shapes.items()}), message)
      for shapes, message in SHAPES["attended"]),
    (lambda: attended(kind="encoder_self"), "encoder_self.1: states of shape (3, 4, 6); expected (3, 5, 6)"),
    (lambda: attended(scale=NAN), "cross.1: scale is nan; give a finite number"),
    (lambda: with_keys(LinearMap(normal(2, 4, 6) * NAN)), "cross.1: key weight holds NaN or infinity"),
    (lambda: with_keys(LinearMap(normal(2, 4, 6), normal(2, 4) * NAN)), "key bias holds NaN"),
    (lambda: pass_of(
        toys.attended_of(query_rotation=toys.rotary(4, 4)), target_mask=TARGET_MASK.flip(1)),
     "cross.1 rotates by position: pad its batches at the right"),
    (lambda: pass_of(source_tokens=torch.ones(3, 4)),
     "source_tokens of shape (3, 4) with a mask of shape"),
    (lambda: pass_of(target_mask=TARGET_MASK & False), "target_tokens row 0 is all padding: leave"),
    (lambda: pass_of(target_outputs=torch.full((3, 4), -100)), "target_outputs hold -100 at valid"),
    # What the model does not compute with.
    *((partial(rechecked, **changes), f"cross.1, head … : {GAP}") for changes in (
        {"scale": 0.501}, {"position_bias": None}, {"maps": (ONE.query_map, ONE.query_map)},
        {"query_rotation": toys.rotary(4, 4)}, {"weights": ONE.weights.flip(1)})),
    (lambda: rechecked(weights=ONE.scores.softmax(-1)),
     "of a row's attention is at positions that are masked here; give the masks that the model was given"),
    (lambda: rechecked(causal=True), "of a row's attention is at positions that are masked here"),
    (lambda: rechecked(weights=one_hot(ONE.weights)), "as with sparsemax or entmax, give no"),
    (lambda: rechecked(weights=ONE.weights * 0.99),
     "head 0: the sum of a row of attention differs from one by 0.01"),
    *((partial(pass_of_tensors, FULL | {f"{place}.{name}": FULL[f"{place}.{name}"] * 1.5}),
       f"{place}, head 0: {GAP}")
      for place in ("cross.3", "encoder_self.0", "decoder_self.11")
      for name in ("scale", "position_bias", "query_bias", "query_weight", "key_weight")),
)  # fmt: skip

SMALL = TokenBatch.of_rows([[5, 6, 7], [8]], [[3], [4, 2]])
LABELS, YES = torch.tensor([[5, -100], [6, 7]]), torch.ones(2, 2, dtype=torch.bool)
small = partial(replace, SMALL)

test_batches_that_are_refused = refused(
    (lambda: small(target_mask=YES, target=LABELS), "target hold -100 at valid position 1 of row 0"),
    (lambda: small(target_mask=YES, read=LABELS), "read hold -100 at valid … : ids start at 0"),
    (lambda: small(source=SMALL.source - 6), "source hold -1 at valid position 0 of row 0"),
    (lambda: small(source=torch.ones(2, 4).int()), "source of shape (2, 4) with a mask of shape (2, 3)"),
    (lambda: small(source=torch.ones(2, 3)), "source of torch.float32: expected integers"),
    (lambda: small(target=[1, 1], target_mask=YES[0]), "expected (batch, length)"),
    (lambda: small(target_mask=torch.ones(2, 2)), "target_mask of torch.float32: expected torch.bool"),
    (lambda: small(target_mask=YES.long() + 1), "target_mask of torch.int64 with other numbers"),
    (lambda: small(source_mask=torch.tensor([[True] * 3, [False] * 3])), "source row 1 is all padding"),
    (lambda: small(target=[[1]] * 3, target_mask=[[True]] * 3), "2 sources with 3 targets"),
    (lambda: small(read=torch.ones(2, 3).int()), "read of shape (2, 3) with a mask of shape (2, 2)"),
    (lambda: small(target_mask=None), "target_mask is NoneType, which cannot be converted to a tensor"),
    (lambda: small(target_mask=[[True]]), "target of shape (2, 2) with a mask of shape (1, 1)"),
    (lambda: FrameBatch(None, SMALL.target, SMALL.target_mask), "frames is NoneType, which cannot be"),
    (lambda: FrameBatch(np.ones((2, 3)), SMALL.target, None), "target_mask is NoneType, which cannot be"),
    (lambda: next(text_batches(None, [], batch_size=0)), "both must be at least 1"),
    (lambda: next(text_batches(None, [], longest=0)), "both must be at least 1"),
)  # fmt: skip


def changed(sound, shapes):
    """With ones of these shapes, or with nothing, by those names."""
    ones = {name: torch.ones(shape) for name, shape in shapes.items() if shape is not None}
    return toys.without(sound, *shapes) | ones


test_tensors_that_are_refused = refused(*((partial(pass_of_tensors, given), message) for given, message in (
    *((changed(PLAIN, shapes), message) for shapes, message in SHAPES["plain"]),
    *((changed(FULL, shapes), message) for shapes, message in SHAPES["full"]),
    ({}, "they have none"),
    (PLAIN | {"source_tokens": "abc"}, "source_tokens is str, which cannot be converted to a tensor"),
    ({name: rows[:0] for name, rows in PLAIN.items()}, "source_tokens of shape (0, 5): expected a sample"),
    (PLAIN | {"target_tokens": torch.arange(4)}, "target_tokens of shape (4,) with a mask"),
    (PLAIN | {"source_tokens": PLAIN["source_tokens"] + 0.5}, "source_tokens of torch.float32: expected int"),
    (PLAIN | {"source_mask": PLAIN["source_mask"] * NAN}, "source_mask of torch.float32: expected … bool"),
    (PLAIN | {"target_mask": PLAIN["target_mask"].int() * 2}, "target_mask of torch.int32 with other"),
    (FULL | {"target_outputs": FULL["target_outputs"].double()}, "target_outputs of torch.float64"),
    (PLAIN | {"lexical_probe": ONES * 1j}, "lexical_probe of torch.complex64: expected real numbers"),
    (PLAIN | {"lexical_probe": -ONES}, "not probabilities; if they are logarithms"),
    (PLAIN | {"lexical_probe": ONES * NAN}, "entries that are not probabilities"),
)))  # fmt: skip


def modules(*hooks):
    return Modules(toys.Reader(), hooks, run)


def caught(hooked=HOOKED, run=run, model=toys.Reader, **settings):
    return Modules(toys.drawn(model()), [hooked], run, **{"start": 2} | settings).trace(BATCH)


def probed(hooked=HOOKED, run=run, model=toys.Reader, **settings):
    adapter = Modules(toys.drawn(model()), [hooked], run, start=2, **settings)
    return adapter.lexical_probe(adapter.trace(BATCH))


class Aside(toys.Reader):
    """Its attention is shown by a module and computed beside it."""

    def forward(self, source, source_mask, read, read_mask):
        self.shown = self.attend(source, source_mask, read)
        return self.out(torch.cat([self.words(read)] * 2, -1))


class Shared(toys.Reader):
    """One softmax for attention to what was read and to the source."""

    def forward(self, source, source_mask, read, read_mask):
        self.attend(read, torch.ones_like(read, dtype=torch.bool), read)
        return super().forward(source, source_mask, read)


ENCODER = Hooked(*["transformer.encoder.layers.0.self_attn"] * 2, kind="encoder_self")


def hooked(query, key, heads, attention=None):
    return Hooked(query, key, heads, attention=attention)


def with_a_column_that_is_no_word():
    model = toys.Translator()
    model.get_submodule(ENCODER.query).add_zero_attn = True
    return model


test_modules_that_are_refused = refused(
    *((lambda names=names: modules(hooked(*names)), message) for names, message in SHAPES["hooked"]),
    *((lambda names=names: caught(hooked(*names)), message) for names, message in SHAPES["traced"]),
    (lambda: modules(), "no attention is hooked: name the modules of one or more"),
    (lambda: modules(HOOKED, HOOKED), "2 attentions are called cross.0: give each a layer"),
    (lambda: Modules(nn.Sequential(nn.MultiheadAttention(8, 2)), [Hooked("0", "words")], run),
     "0 makes queries and keys: name it for both, not 'words'"),
    (lambda: caught(start=None), "give the batch ``read``, or give Modules a start"),
    (lambda: caught(run=lambda model, batch: None), "to_q was not run: is it the module of another path"),
    (lambda: caught(run=lambda *given: (run(*given), run(*given))), "runs more than once in a pass"),
    (lambda: caught(run=lambda model, batch: model(batch.source, batch.source_mask, batch.read[:, 1:])),
     "cross.0: states of shape (4, 5, 6); expected (4, 6, 6)"),
    (lambda: caught(model=partial(toys.Reader, scale=0.6)), f"cross.0, head 0: {GAP}"),
    (lambda: caught(ENCODER, model=with_a_column_that_is_no_word),
     "attention of shape (4, 2, 7, 8); expected (4, 2, 7, 7)"),
    (lambda: caught(replace(ENCODER, kind="cross"), model=toys.Translator),
     "cross.0 reads one sequence: say kind='encoder_self' or kind='decoder_self'"),
    (lambda: caught(model=Shared), "to_q runs more than once in a pass, so its attentions cannot be"),
    (lambda: Modules(Shared(), [HOOKED], run, start=2).lexical_probe(toys.traced("by hand")),
     "softmax runs more than once in a pass"),
    (lambda: probed(model=Aside), "the model does not go on with the attention that softmax returns"),
    (lambda: probed(replace(HOOKED, attention=None), unchecked=True), "cross.0: name the module that"),
    (lambda: probed(run=lambda model, batch: model.attend(batch.source, batch.source_mask, batch.read)),
     "run returns shape (4, 2, 6, 7); … logits of shape (4, 6) by 50"),
    (lambda: probed(run=lambda *given: list(run(*given))), "run returns list"),
    (lambda: probed(ENCODER, model=toys.Translator), "no cross-attention is hooked"),
)  # fmt: skip

CROSS = "decoder.block.1.layer.1.EncDecAttention"


def half(name):
    return adapter_of(toys.half(name))


def bart(**arguments):
    return HuggingFace(toys.model_of("Bart"), **arguments)


def of_rows(name, *rows):
    return HuggingFace(toys.model_of(name)).trace(TokenBatch.of_rows(*rows))


def pass_of_another():
    adapter = toys.whisper()
    model_pass = adapter.trace(toys.frames_batch("Whisper"))
    adapter.trace(toys.frames_batch("Whisper", 1))
    return adapter.logits(model_pass)


def frames(name="Whisper", **changes):
    return replace(toys.frames_batch(name), **changes)


def bart_probe(model=lambda whole: whole, **changes):
    return lexical_probe(model(toys.model_of("Bart")), replace(toys.traced("Bart"), **changes))


class Linear8bit(nn.Linear):
    """As quantised projections do, it computes otherwise, by a name that says no more than nn.Linear's."""

    def forward(self, states):
        return super().forward(states).round()


Linear8bit.__qualname__ = Linear8bit.__name__ = "Linear"


def wrapped(family, path, wrap=nn.Sequential):
    """With a module in another one, as LoRA wraps projections."""
    model, (place, _, name) = toys.model_of(family), path.rpartition(".")
    setattr(model.get_submodule(place), name, wrap(model.get_submodule(path)))
    return model


MORE, LONG, POSITIONS = [5] * 33, torch.full((5, 7), 4), "has 33 pieces; … positions for 32: … --longest 32"
OTHERS = "holds id 50; … embeds 50, from 0: use the tokenizer"
BART, GPT2 = "model.decoder.layers.0.encoder_attn", "VisionEncoderDecoder GPT2"

test_models_of_hugging_face_that_are_refused = refused(
    (partial(half, "T5EncoderModel"), "T5EncoderModel has no self-attention in the form of"),
    (lambda: lexical_probe(toys.half("GPT2LMHeadModel"), toys.traced("T5")),
     "GPT2LMHeadModel lacks an encoder or a decoder, … whole"),
    (lambda: HuggingFace(nn.Linear(2, 2)), "Linear is not a model … see attnlib.adapters.Modules"),
    (lambda: HuggingFace(toys.model_of("ProphetNet")),
     "ProphetNetForConditionalGeneration predicts 2 words at each step"),
    # LED's encoder looks through windows; its cross-attention is BART's, and it keeps it to itself.
    (lambda: HuggingFace(toys.model_of("LED", attention_window=4), kinds=("cross", "encoder_self")),
     "LED … has no encoder_self attention of a known form"),
    *((lambda model=model: HuggingFace(nn.DataParallel(toys.half(model) if model == "GPT2LMHeadModel"
                                                       else toys.model_of(model))),
       "DataParallel spreads a … : give the model within, model.module")
      for model in ("Bart", "GPT2LMHeadModel")),
    (lambda: toys.traced("scaled_dot_product, heads apart"),
     "attention of shape (4, 2, 6, 6); expected (4, 2, 6, 7) … has to return the heads joined"),
    *((partial(bart, **chosen), message) for chosen, message in SHAPES["chosen"]),
    (lambda: HuggingFace(toys.model_of("M2M100", decoder_start_token_id=None)).trace(BATCH),
     "set config.decoder_start_token_id, give ``start``, or give batches with ``read``"),
    # Not left to the check: in bfloat16, attention that is spread over many words would not give it away.
    *((lambda kind=kind: HuggingFace(toys.model_of("UMT5"), kinds=("cross", kind)).trace(BATCH),
       f"{kind}.0 adds a bias by position that UMT5Attention does not") for kind in toys.KINDS[:2]),
    # A layer whose projections or attention are wrapped is not left out.
    *((lambda side=side, wrap=wrap: HuggingFace(wrapped("T5", f"{CROSS}.{side}", wrap)),
       f"{CROSS}.{side} is … merge_and_unload")
      for side in "qk" for wrap in (nn.Sequential, lambda _: Linear8bit(2, 2))),
    (lambda: HuggingFace(wrapped("Bart", BART)), f"{BART} is Sequential, which has no query"),
    (lambda: HuggingFace(wrapped("T5", f"{CROSS}.q", lambda _: Linear8bit(2, 2))),
     f"{CROSS}.q is of the class {__name__}.Linear, … if quantised: load the model in full"),
    *((partial(of_rows, name, [MORE, [4]], [[3], [3]]), f"a source {POSITIONS}")
      for name in ("Bart", "MBart", "Marian", "Pegasus")),
    *((partial(of_rows, name, [[3], [3]], [[4], MORE]), f"a target {POSITIONS}")
      for name in ("Bart", "MBart", "Marian", "Pegasus")),
    *((partial(of_rows, name, [[5, 50], [4]], [[3], [3]]), f"a source {OTHERS}")
      for name in ("T5", "Bart", "M2M100")),
    *((partial(of_rows, name, [[3], [3]], [[4], [4, 50]]), f"a target {OTHERS}")
      for name in ("T5", "Bart", "M2M100")),
    (lambda: bart_probe(target_outputs=toys.traced("Bart").target_outputs.clamp(min=50)),
     "a right word has id 50; the model predicts 50 words, from 0"),
    (lambda: bart_probe(lambda whole: whole.model), "BartModel predicts no words … AutoModelForSeq2SeqLM"),
    (lambda: lexical_probe(zoo.load("lexicon_translator").network, toys.traced("Bart")),
     "BilinearTranslator is not a model of the transformers library"),
    (lambda: lexical_probe(toys.model_of("Whisper"), toys.whisper().trace(frames())),
     "reads input_features, which a pass does not hold"),
    # Frames.
    (lambda: toys.whisper().trace(BATCH), "batches of attnlib.FrameBatch, not TokenBatch"),
    (lambda: bart().trace(frames()), "attnlib.TokenBatch, not FrameBatch"),
    (lambda: toys.whisper().trace(frames(frames_mask=torch.ones(5, 20) > 0)),
     "all frames: leave frames_mask out"),
    (lambda: HuggingFace(toys.model_of(GPT2)).trace(frames(GPT2, target=LONG, target_mask=LONG > 0)),
     "Model has positions for 6"),
    (lambda: frames(frames=torch.full((5, 4, 20), NAN)), "expected finite floating-point numbers"),
    (lambda: frames(frames=torch.zeros(4, 4, 20)), "frames of shape (4, 4, 20) … with 5 targets"),
    (lambda: frames(target_mask=torch.zeros(5, 4) > 0), "target row 0 is all padding"),
    (pass_of_another, "ask for logits right after trace"),
)  # fmt: skip


def test_with_its_wrapped_attention_left_out_a_model_is_traced():
    adapter = HuggingFace(wrapped("T5", f"{CROSS}.q"), kinds=("encoder_self",))
    assert len(adapter.trace(BATCH).attentions) == 2
