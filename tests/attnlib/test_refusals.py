"""What the library refuses, and in which words; networks, training and the command have their own tables."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from attnlib import zoo
from attnlib.adapters import (
    FrameBatch,
    Hooked,
    HuggingFace,
    LinearMap,
    Modules,
    TokenBatch,
    lexical_probe,
    pass_of_tensors,
    text_batches,
)
from attnlib.analysis import Shard, Stream, analyse, compare
from attnlib.analysis.command import numbers
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import NINE, POSITION_BIAS, TermSums
from attnlib.decomposition import (
    AttentionCells,
    Components,
    Parts,
    ShareSums,
    SubstitutionSums,
    alignment_terms,
    map_parts,
    typicality,
)
from attnlib.decomposition.growing import GrowingComponents
from attnlib.decomposition.shares import shares
from attnlib.decomposition.substitution import substitution, valid_rows
from attnlib.probes.agreement import RowMean, agreement, agreement_with_ties_broken, halves, places
from attnlib.probes.alignment_error import AlignmentSums, gold_links
from attnlib.probes.ibm_model_1 import IBMModel1
from attnlib.probes.kendall import kendall
from attnlib.probes.lexical_probe import log_probability_of_pairs
from attnlib.probes.optimal_attention import optimal_attention
from attnlib.training.corpus import Corpus
from tests.attnlib.adapters.adapter_builders import (
    ALONE,
    BATCH,
    FULL,
    HOOKED,
    KINDS,
    PLAIN,
    TARGET_MASK,
    Reader,
    Translator,
    attended_of,
    checked,
    drawn,
    frames_batch,
    frames_model,
    model_of,
    normal,
    pass_of,
    rotary,
    run,
    run_torch,
    traced,
    whisper,
    without,
)
from tests.attnlib.analysis.builders import Toy, by_hand, fit_of, judged
from tests.attnlib.refusals import assert_refused

# Decomposition.

TERMS = torch.zeros(3, 3, 2, 4, 5)
FOUR, FIVE = torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 5, dtype=torch.bool)
WIDE = Parts(*(torch.zeros(2, 4, 4),) * 3, mask=FOUR)
NARROW = Parts(*(torch.zeros(2, 4, 1),) * 3, mask=FOUR)
MEANS, EXACT = Components(3, 3, 4), Components(3, 3, 4, method="least_squares")
CELLS = AttentionCells().update(torch.ones(1, 2, 3), FOUR[:1, :2], FIVE[:1, :3])

DECOMPOSITION = [
    (lambda: Components(0, 5, 3), "n_tokens=0"),
    (lambda: Components(3, 3, 4, method="least_square"), "did you mean 'least_squares'"),
    (lambda: MEANS + Components(3, 3, 2), "'width': 4} with those of … 'width': 2}"),
    (lambda: EXACT + MEANS, "'least_squares' with those of 'means'"),
    (lambda: GrowingComponents(2) + GrowingComponents(3), "width 2 by means with those of width 3 by means"),
    (lambda: MEANS.variance_explained(), "keep no sum of squares"),
    (lambda: EXACT.variance_explained(), "call update before"),
    (lambda: alignment_terms(WIDE, NARROW), "width must agree"),
    (lambda: alignment_terms(WIDE, Parts(*WIDE.stack().double(), mask=FOUR)), "one dtype"),
    (lambda: map_parts(WIDE, torch.zeros(3, 5)), "expected (out, 4)"),
    (lambda: map_parts(WIDE, torch.zeros(3, 4), torch.zeros(4)), "expected (3,)"),
    (lambda: ShareSums().update(TERMS, FIVE, FOUR), "expected"),
    (lambda: valid_rows(TERMS, FOUR[:1], FIVE), "target mask of"),
    (lambda: SubstitutionSums({"mine": [("temporal", "residuals")]}), "did you mean 'residual'"),
    (lambda: SubstitutionSums().merge(SubstitutionSums({"none": []})), "same subsets"),
    (lambda: typicality([torch.eye(2)] * 3, minimum=1), "minimum=1"),
    (lambda: CELLS.update(torch.ones(2, 4, 5), FIVE, FOUR), "expected"),
    (lambda: CELLS.average_attention((9, 9)), "(9, 9); cells with most samples: [(3, 2)"),
    (lambda: typicality([torch.randn(3, 4)] * 30), "away from a sum of one, or below 0: give what a softmax"),
    (lambda: typicality([torch.eye(3)[None]] * 30), "of shape (1, 3, 3); expected (target, source)"),
    *(
        (partial(measure, torch.zeros(shape), FOUR, FIVE), "expected (3, 3, batch, target, source)")
        for measure in (shares, substitution)
        for shape in ((2, 4, 5), (9, 2, 4, 5), (2, 3, 2, 4, 5), ())
    ),
    (lambda: shares(None), "terms is NoneType, of which no tensor can be made; give a torch.Tensor"),
    (lambda: shares(TERMS, FOUR, FIVE.double()), "source_mask of torch.float64: expected torch.bool"),
    (lambda: typicality([None]), "an attention matrix is NoneType, of which no tensor can be made"),
    (lambda: shares(TERMS, FOUR[0], FIVE), "target_mask of shape (4,); expected (batch, target)"),
]


# Probes.

ROW, SHORT = torch.zeros(1, 3), torch.zeros(1, 1)
BOTH = torch.ones(1, 2, dtype=torch.bool)


def align(links, length, target_words):
    AlignmentSums().update(torch.ones(1, 2, length), gold_links([links], 2, length), target_words, BOTH)


def fit(sources, targets, iterations=1):
    IBMModel1.fit(Corpus.from_ids(sources, targets), 6, 6, iterations=iterations)


def optimum(encoder=1.0, words=3, positions=2, mask=BOTH):
    logits = torch.full((1, 2, words), encoder), torch.zeros(1, 2, words)
    optimal_attention(*logits, torch.zeros(1, positions, dtype=torch.long), mask, BOTH)


PROBES = [
    (lambda: agreement(ROW, SHORT), "the same length"),
    (lambda: agreement_with_ties_broken(ROW, SHORT), "the same length"),
    (lambda: kendall(ROW, SHORT), "the same length"),
    (lambda: places(torch.tensor([4]), 0), "percent is 0"),
    (lambda: agreement(ROW, ROW, percent=101), "percent is 101"),
    (lambda: agreement(ROW, ROW, ties="last"), "no rule for ties 'last'"),
    (lambda: RowMean.of(torch.zeros(3), torch.ones(2).bool()), "one truth value a row"),
    (lambda: halves(1), "at least 2"),
    (lambda: gold_links([{(3, 0)}], 3, 2), "leads outside"),
    (lambda: gold_links([{(0, 2)}], 3, 2), "leads outside"),
    (lambda: gold_links([{(-1, 0)}], 3, 2), "leads outside"),
    (lambda: align({(1, 0)}, 2, torch.tensor([[True, False]])), "outside the words"),
    (lambda: align(set(), 3, BOTH), "give all three as"),
    (lambda: fit([], []), "at least one sentence pair"),
    (lambda: fit([[4]], [[]]), "at least one sentence pair"),
    (lambda: fit([[4]], [[4]], 0), "iterations is 0"),
    (lambda: fit([[7]], [[4]]), "a source word has id 7, but n_source is 6; ids end at 5"),
    (lambda: fit([[4]], [[6]]), "a target word has id 6, but n_target is 6"),
    (partial(log_probability_of_pairs, *[ROW] * 2, None, *[ROW > 0] * 3, at_once=0), "at_once is 0"),
    (lambda: optimum(positions=1), "words has shape"),
    (lambda: optimum(words=1), "only one word"),
    (lambda: optimum(mask=~BOTH), "no valid source position"),
    (lambda: optimum(torch.inf), "encoder_logits are not all finite"),
]


# Adapters.

GAP = "attention from the caught projections is up to"

ONE, ONES, NAN = checked(), torch.ones(3, 4, 5), torch.nan


def attended(**changes):
    return pass_of(attended_of(**changes))


def rechecked(**changes):
    pass_of(replace(ONE, **changes)).check()


def with_one(value, name):
    """A pass in which one number of a tensor is another."""
    wrong = getattr(ONE, name).clone()
    wrong[(0, 1, 1, 2) if wrong.dim() == 4 else (0, 1, 2)] = value
    return pass_of(replace(ONE, **{name: wrong}))


PASSES = [
    *((partial(with_one, value, name), f"cross.1: {name} hold NaN or infinity … (sample 0, position {at})")
      for name, at in (("query_inputs", "1"), ("key_inputs", "1"),
                       ("position_bias", "1 and 2"), ("attention", "1 and 2"))
      for value in (NAN, torch.inf)),
    (lambda: attended(query_inputs=normal(3, 5, 6)), "states of shape (3, 5, 6); expected (3, 4, 6)"),
    (lambda: attended(key_inputs=normal(3, 5, 7)), "states of shape (3, 5, 7); expected (3, 5, 6)"),
    (lambda: attended(kind="encoder_self"), "encoder_self.1: states of shape (3, 4, 6); expected (3, 5, 6)"),
    (lambda: attended(attention=torch.ones(3, 2, 5, 4)), "attention of shape … expected (3, 2, 4, 5)"),
    (lambda: attended(attention=ONES), "attention of shape (3, 4, 5)"),
    (lambda: attended(position_bias=torch.ones(3, 1, 4, 5)), "position_bias of shape (3, 1, 4, 5)"),
    (lambda: attended(scale=NAN), "cross.1: scale is nan; give a finite number"),
    (lambda: attended(key_map=LinearMap(normal(2, 4, 6) * NAN)), "cross.1: key weight holds NaN or infinity"),
    (lambda: attended(key_map=LinearMap(normal(2, 4, 6), normal(2, 4) * NAN)), "key bias holds NaN"),
    (lambda: pass_of(attended_of(query_rotation=rotary(4, 4)), target_mask=TARGET_MASK.flip(1)),
     "cross.1 rotates by position: pad its batches at the right"),
    (lambda: pass_of(source_tokens=torch.ones(3, 4)), "source_tokens of shape (3, 4) with a mask of shape"),
    (lambda: pass_of(target_mask=TARGET_MASK & False), "target_tokens row 0 is all padding: leave"),
    (lambda: pass_of(target_outputs=torch.full((3, 4), -100)), "target_outputs hold -100 at valid"),
    # What the model does not compute with.
    *((partial(rechecked, **changes), f"cross.1, head … : {GAP}") for changes in (
        {"scale": 0.501}, {"position_bias": None}, {"key_map": ONE.query_map},
        {"query_rotation": rotary(4, 4)}, {"attention": ONE.attention.flip(1)})),
    (lambda: rechecked(attention=ONE.scores.softmax(-1)),
     "of a row's attention is on what is masked here; give the masks that the model was given"),
    (lambda: rechecked(causal=True), "of a row's attention is on what is masked here"),
    (lambda: rechecked(attention=ONE.attention * 0.99), "head 0: a row of attention is 0.01 away from a sum"),
    *((partial(pass_of_tensors, FULL | {f"{place}.{name}": FULL[f"{place}.{name}"] * 1.5}),
       f"{place}, head 0: {GAP}")
      for place in ("cross.3", "encoder_self.0", "decoder_self.11")
      for name in ("scale", "position_bias", "query_bias", "query_weight", "key_weight")),
]  # fmt: skip

SMALL = TokenBatch.of_rows([[5, 6, 7], [8]], [[3], [4, 2]])
LABELS, YES = torch.tensor([[5, -100], [6, 7]]), torch.ones(2, 2, dtype=torch.bool)
small = partial(replace, SMALL)

BATCHES = [
    (lambda: small(target_mask=YES, target=LABELS), "target hold -100 at valid position 1 of row 0"),
    (lambda: small(target_mask=YES, read=LABELS), "read hold -100 at valid … : ids start at 0"),
    (lambda: small(source=SMALL.source - 6), "source hold -1 at valid position 0 of row 0"),
    (lambda: small(source=torch.ones(2, 4)), "source of shape (2, 4) with a mask of shape (2, 3)"),
    (lambda: small(target=torch.ones(2), target_mask=YES[0]), "expected (batch, length)"),
    (lambda: small(target_mask=torch.ones(2, 2)), "mask of shape (2, 2) and torch.float32"),
    (lambda: small(source_mask=torch.tensor([[True] * 3, [False] * 3])), "source row 1 is all padding"),
    (lambda: small(target=torch.ones(3, 2), target_mask=torch.ones(3, 2) > 0), "2 sources with 3 targets"),
    (lambda: small(read=torch.ones(2, 3)), "read of shape (2, 3) with a mask of shape (2, 2)"),
    (lambda: TokenBatch.of_rows([[1], []], [[2], [3]]), "source row 1 is all padding"),
    (lambda: TokenBatch.of_rows([], []), "no rows"),
    (lambda: small(source=SMALL.source.numpy()), "source is ndarray; expected a tensor: torch"),
    (lambda: small(target_mask=[[True]]), "target_mask is list; expected a tensor"),
    (lambda: small(target_mask=YES.long()), "mask of shape (2, 2) and torch.int64; … (mask.bool())"),
    (lambda: FrameBatch(None, SMALL.target, SMALL.target_mask), "frames is NoneType, of which no tensor"),
    (lambda: FrameBatch(np.ones((2, 3)), SMALL.target, None), "target_mask is NoneType, of which no tensor"),
    (lambda: next(text_batches(None, [], batch_size=0)), "both must be at least 1"),
    (lambda: next(text_batches(None, [], longest=0)), "both must be at least 1"),
]  # fmt: skip

Q, K = "cross.0.query_states", "cross.3.key_weight"

TENSORS = [(partial(pass_of_tensors, given), message) for given, message in (
    (without(PLAIN, "source_mask", "target_mask"), "lack source_mask, target_mask; they have cross"),
    ({}, "they have none"),
    ({name: own.numpy() for name, own in PLAIN.items()}, " is ndarray; expected a tensor"),
    (PLAIN | {"cross.query_states": torch.ones(1)}, "no tensor 'cross.query_states' is known"),
    (PLAIN | {"cross.0.querystates": torch.ones(1)}, "named like cross.0.query_states"),
    (PLAIN | {"self.0.query_states": torch.ones(1)}, "no tensor 'self.0.query_states'"),
    (PLAIN | {"cross.-1.scale": torch.ones(1)}, "no tensor 'cross.-1.scale'"),
    (PLAIN | {"decoder_states": torch.ones(1)}, "no tensor 'decoder_states'"),
    (PLAIN | {"cross.1.scale": torch.ones(())}, "cross.1 lacks cross.1.query_states"),
    (without(PLAIN, "encoder_states"), "lacks cross.0.key_states, and there is no encoder_states"),
    (without(FULL, K), "cross.3 has a weight for one side"),
    (without(FULL, K, "cross.3.query_weight"), "cross.3 has a bias and no weights"),
    (PLAIN | {"cross.0.scale": torch.ones(2)}, "cross.0.scale is of shape (2,); expected one"),
    (FULL | {K: torch.ones(8, 6)}, "cross.3: weight of shape (8, 6)"),
    (FULL | {"cross.3.key_bias": torch.ones(8)}, "weight of shape (2, 4, 6), bias of (8,)"),
    (without(FULL, "cross.3.key_bias") | {K: torch.ones(2, 3, 6)}, "width 4, keys of 2 of width 3"),
    (PLAIN | {"encoder_states": torch.ones(3, 5, 7)}, "1 heads of width 6, keys of 1 of width 7"),
    (FULL | {"encoder_states": torch.ones(3, 5, 7)}, "states of shape (3, 5, 7); expected (3, 5, 6"),
    (PLAIN | {Q: torch.ones(3, 6)}, "cross.0: states of shape (3, 6); expected (batch, length, width)"),
    (PLAIN | {Q: torch.ones(())}, "cross.0: states of shape (); expected (batch, length, width)"),
    (FULL | {"cross.3.query_states": torch.ones(())}, "cross.3: states of shape (); expected (3, 4, 6)"),
    (PLAIN | {"cross.0.attention": torch.ones(3, 1, 4, 5).long()}, "attention is of torch.int64"),
    (PLAIN | {"target_tokens": torch.arange(4)}, "target_tokens of shape (4,) with a mask"),
    (PLAIN | {"source_tokens": PLAIN["source_tokens"] + 0.5}, "source_tokens of torch.float32: expected int"),
    (PLAIN | {"source_mask": PLAIN["source_mask"] * NAN}, "source_mask of torch.float32: expected … bool"),
    (PLAIN | {"target_mask": PLAIN["target_mask"].int() * 2}, "target_mask holds more than 0 and 1"),
    (FULL | {"target_outputs": FULL["target_outputs"].double()}, "target_outputs of torch.float64"),
    ({name: own[:0] for name, own in PLAIN.items()}, "source_tokens of shape (0, 5): a batch has a sample"),
    (PLAIN | {"lexical_probe": ONES.mT}, "lexical_probe of shape … expected (3, 4, 5)"),
    (PLAIN | {"lexical_probe": -ONES}, "no probability; a logarithm has to be"),
    (PLAIN | {"lexical_probe": ONES * NAN}, "holds what is no probability"),
)]  # fmt: skip

SHOWN = "softmax"


def modules(*hooks):
    return Modules(Reader(), hooks, run)


def caught(one=HOOKED, run=run, model=Reader, **settings):
    return Modules(drawn(model()), [one], run, **{"start": 2} | settings).trace(BATCH)


def probed(one=HOOKED, run=run, model=Reader, **settings):
    adapter = Modules(drawn(model()), [one], run, start=2, **settings)
    return adapter.lexical_probe(adapter.trace(BATCH))


class Aside(Reader):
    """Its attention is shown by a module and computed beside it."""

    def forward(self, source, source_mask, read):
        self.shown = self.attend(source, source_mask, read)
        return self.out(torch.cat([self.words(read)] * 2, -1))


class Shared(Reader):
    """One softmax for attention to what was read and to the source."""

    def forward(self, source, source_mask, read):
        self.attend(read, torch.ones_like(read, dtype=torch.bool), read)
        return super().forward(source, source_mask, read)


ENCODER = Hooked(*["transformer.encoder.layers.0.self_attn"] * 2, kind="encoder_self")


def with_a_column_that_is_no_word():
    model = Translator()
    model.get_submodule(ENCODER.query).add_zero_attn = True
    return model


MODULES = [
    (lambda: Hooked("to_q", "to_k", heads=2, kind="crosss"), "did you mean 'cross'"),
    (lambda: modules(Hooked("to_qq", "to_k", 2, SHOWN)), "no module 'to_qq' in Reader; near are to_q, to_k"),
    (lambda: modules(Hooked("to_q", "to_k", 2, "sofmax")), "no module 'sofmax' in Reader; near are softmax"),
    (lambda: modules(Hooked("to_q", "zzzzzz", 2, SHOWN)), "no module 'zzzzzz' in Reader; none is near"),
    (lambda: modules(Hooked("words", "to_k", 2, SHOWN)), "words is Embedding; expected nn.Linear … eye("),
    (lambda: modules(Hooked("to_q", "to_k", attention=SHOWN)), "heads is 0; say how many share to_q"),
    (lambda: modules(Hooked("to_q", "to_k", 2)), "cross.0: nothing checks the scores made of to_q and to_k"),
    (lambda: modules(), "no attention is hooked: name the modules of one or more"),
    (lambda: modules(HOOKED, HOOKED), "2 attentions are called cross.0: give each a layer"),
    (lambda: Modules(nn.Sequential(nn.MultiheadAttention(8, 2)), [Hooked("0", "words")], run_torch),
     "0 makes queries and keys: name it for both, not 'words'"),
    (lambda: caught(start=None), "give it ``read``, or Modules a start"),
    (lambda: caught(run=lambda model, batch: None), "to_q was not run: is it the module of another path"),
    (lambda: caught(Hooked("to_q", "to_k", 3, SHOWN)), "8 dimensions cannot be shared by 3 heads"),
    (lambda: caught(Hooked("to_q", "to_k", 4, SHOWN)), "softmax returns (4, 2, 6, 7); … batch, 4 … (there: "),
    (lambda: caught(Hooked("to_q", "to_k", 2, "to_k")), "to_k returns (4, 7, 8); expected attention"),
    (lambda: caught(Hooked("to_q", "to_k", 2, "words")), "words runs more than once in a pass"),
    (lambda: caught(run=lambda *own: (run(*own), run(*own))), "runs more than once in a pass"),
    (lambda: caught(run=lambda model, batch: model(batch.source, batch.source_mask, batch.read[:, 1:])),
     "cross.0: states of shape (4, 5, 6); expected (4, 6, 6)"),
    (lambda: caught(model=partial(Reader, scale=0.6)), f"cross.0, head 0: {GAP}"),
    (lambda: caught(ENCODER, run_torch, with_a_column_that_is_no_word),
     "attention of shape (4, 2, 7, 8); expected (4, 2, 7, 7)"),
    (lambda: caught(model=Shared), "to_q runs more than once in a pass, so its attentions cannot be"),
    (lambda: Modules(Shared(), [HOOKED], run, start=2).lexical_probe(traced("by hand")),
     "softmax runs more than once in a pass"),
    (lambda: probed(model=Aside), "the model does not go on with the attention that softmax returns"),
    (lambda: probed(replace(HOOKED, attention=None), unchecked=True), "cross.0: name the module that"),
    (lambda: probed(run=lambda model, batch: model.attend(batch.source, batch.source_mask, batch.read)),
     "run returns shape (4, 2, 6, 7); … logits of shape (4, 6) by 50"),
    (lambda: probed(run=lambda *own: list(run(*own))), "run returns list"),
    (lambda: probed(ENCODER, run_torch, Translator), "no cross-attention is hooked"),
]  # fmt: skip

FAR = dict.fromkeys((f"max_{half}_position_embeddings" for half in ("encoder", "decoder")), 32)
CROSS = "decoder.block.1.layer.1.EncDecAttention"


def transformers():
    return pytest.importorskip("transformers", reason="models of Hugging Face need transformers")


def half(name):
    made = getattr(transformers(), name)
    return HuggingFace(made(made.config_class(**ALONE[name])))


def of_prophets():
    sizes = {f"num_{half}_layers": 1 for half in ("encoder", "decoder")}
    sizes |= {f"num_{half}_attention_heads": 2 for half in ("encoder", "decoder")}
    config = transformers().ProphetNetConfig(hidden_size=8, vocab_size=20, **sizes)
    return HuggingFace(transformers().ProphetNetForConditionalGeneration(config))


def bart(**arguments):
    return HuggingFace(model_of("Bart"), **arguments)


def switched_back(name):
    adapter = HuggingFace(model_of(name), kinds=("decoder_self",))
    adapter.model.set_attn_implementation("sdpa")
    return adapter.trace(BATCH)


def of_rows(name, *rows):
    return HuggingFace(model_of(name)).trace(TokenBatch.of_rows(*rows))


def pass_of_another():
    adapter = whisper()
    one = adapter.trace(frames_batch("Whisper"))
    adapter.trace(frames_batch("Whisper", 1))
    return adapter.logits(one)


def frames(name="Whisper", **changes):
    return replace(frames_batch(name), **changes)


def bart_probe(model=lambda whole: whole, **changes):
    return lexical_probe(model(model_of("Bart")), replace(traced("Bart"), **changes))


class Linear8bit(nn.Linear):
    """As quantised projections do, it computes otherwise, by a name that says no more than nn.Linear's."""

    def forward(self, states):
        return super().forward(states).round()


Linear8bit.__qualname__ = Linear8bit.__name__ = "Linear"


def wrapped(family, path, wrap=nn.Sequential):
    """With a module in another one, as LoRA wraps projections."""
    model, (place, _, name) = model_of(family), path.rpartition(".")
    setattr(model.get_submodule(place), name, wrap(model.get_submodule(path)))
    return model


MORE, LONG, POSITIONS = [5] * 33, torch.full((5, 7), 4), "has 33 pieces; … positions for 32: … --longest 32"
OTHERS = "holds id 50; … embeds 50, from 0: use the tokenizer"
BART = "model.decoder.layers.0.encoder_attn"

FAMILIES = [
    *((partial(half, name), f"{name} lacks an encoder or a decoder, … whole") for name in ALONE),
    (lambda: HuggingFace(nn.Linear(2, 2)), "Linear is no model … see attnlib.adapters.Modules"),
    (of_prophets, "has no cross-attention in the form of T5, BART, mBART or Marian"),
    # LED's encoder looks through windows; its cross-attention is BART's, and it keeps it to itself.
    (lambda: HuggingFace(model_of("LED", attention_window=4), kinds=("cross", "encoder_self")),
     "LED … has no encoder_self attention of a known form"),
    (lambda: HuggingFace(model_of("LED", attention_window=8, **FAR)).trace(BATCH),
     "cross.0 returns no attention, though … with attnlib.adap"),
    (lambda: traced("scaled_dot_product, heads apart"),
     "attention of shape (4, 2, 6, 6); expected (4, 2, 6, 7) … has to return the heads joined"),
    (lambda: bart(kinds=("self",)), "no kind of attention 'self'"),
    (lambda: bart(kinds=("encoder-self",)), "did you mean 'encoder_self'"),
    (lambda: bart(kinds=()), "kinds is empty: name one or more, or leave kinds out"),
    (lambda: bart(layers=[]), "layers is empty: name one or more, or leave layers out"),
    (lambda: bart(layers=[0, 2]), "layers [2] of cross: this model has 2, counted from 0"),
    (lambda: bart(layers=[-1]), "layers [-1] of cross"),
    (lambda: HuggingFace(model_of("M2M100", decoder_start_token_id=None)).trace(BATCH),
     "set config.decoder_start_token_id, or give batches with ``read``"),
    *((partial(switched_back, name), 'decoder_self.0 returns no attention … attn_implementation="eager"')
      for name in ("T5", "Bart")),
    # Not left to the check: in bfloat16, attention that is spread over many words would not give it away.
    *((lambda kind=kind: HuggingFace(model_of("UMT5"), kinds=("cross", kind)).trace(BATCH),
       f"{kind}.0 adds a bias by position that UMT5Attention does not") for kind in KINDS[:2]),
    # A layer whose projections or attention are wrapped is not left out.
    *((lambda side=side, wrap=wrap: HuggingFace(wrapped("T5", f"{CROSS}.{side}", wrap)),
       f"{CROSS}.{side} is … merge_and_unload")
      for side in "qk" for wrap in (nn.Sequential, lambda _: Linear8bit(2, 2))),
    (lambda: HuggingFace(wrapped("Bart", BART)), f"{BART} is Sequential, which has no query"),
    (lambda: HuggingFace(wrapped("T5", f"{CROSS}.q", lambda _: Linear8bit(2, 2))),
     f"{CROSS}.q is of the class {__name__}.Linear, … quantised model: load it in full"),
    *((partial(of_rows, name, [MORE, [4]], [[3], [3]]), f"a source {POSITIONS}")
      for name in ("Bart", "MBart", "Marian", "Pegasus")),
    *((partial(of_rows, name, [[3], [3]], [[4], MORE]), f"a target {POSITIONS}")
      for name in ("Bart", "MBart", "Marian", "Pegasus")),
    *((partial(of_rows, name, [[5, 50], [4]], [[3], [3]]), f"a source {OTHERS}")
      for name in ("T5", "Bart", "M2M100")),
    *((partial(of_rows, name, [[3], [3]], [[4], [4, 50]]), f"a target {OTHERS}")
      for name in ("T5", "Bart", "M2M100")),
    (lambda: bart_probe(target_outputs=traced("Bart").target_outputs.clamp(min=50)),
     "a right word has id 50; the model predicts 50 words, from 0"),
    (lambda: bart_probe(lambda whole: whole.model), "BartModel predicts no words … AutoModelForSeq2SeqLM"),
    (lambda: lexical_probe(zoo.load("lexicon_translator").network, traced("Bart")),
     "BilinearTranslator is no model of the transformers library"),
    # Frames.
    (lambda: whisper().trace(BATCH), "batches of attnlib.FrameBatch, not TokenBatch"),
    (lambda: bart().trace(frames()), "attnlib.TokenBatch, not FrameBatch"),
    (lambda: whisper().trace(frames(frames_mask=torch.ones(5, 20) > 0)), "all frames: leave frames_mask out"),
    (lambda: HuggingFace(frames_model("GPT2")).trace(frames("GPT2", target=LONG, target_mask=LONG > 0)),
     "Model has positions for 6"),
    (lambda: frames(frames=torch.full((5, 4, 20), NAN)), "expected finite floating-point numbers"),
    (lambda: frames(frames=torch.zeros(4, 4, 20)), "frames of shape (4, 4, 20) … with 5 targets"),
    (lambda: frames(target_mask=torch.zeros(5, 4) > 0), "target row 0 is all padding"),
    (pass_of_another, "ask for logits right after trace"),
]  # fmt: skip


# Analysis.

OF_CROSS, OF_SELF = Toy(("cross",))(0), Toy(("encoder_self",))(0)


def analyse_copies(count, *one):
    analyse(Stream(lambda one: one, [by_hand(*one)] * count))


def sum_terms(terms, allowed):
    TermSums(NINE).update(torch.zeros(terms), torch.ones(allowed, dtype=torch.bool))


SHAPES = "expected (9, batch, target, source)"

ANALYSIS = [
    (lambda: Shard(3, 3), "shard is 3 of 3"),
    (lambda: Shard(-1, 3), "shard is -1"),
    (lambda: Shard(0, 0), "of 0"),
    (lambda: Shard(0, 1, 0), "every is 0"),
    (lambda: Stream(str, iter([1, 2])), "read only once"),
    (lambda: analyse(5), "int is given; expected a Stream: Stream(adapter.trace, batches)"),
    (lambda: analyse([1, 2]), "list is given; expected a Stream"),
    (lambda: analyse(Stream(str, [])), "no sample with a counted position"),
    (lambda: analyse_copies(7, [[1.0, 2.0]], [True, True]), "no sample with a counted position"),
    # a row with one position to look at says nothing: without another there is nothing to report
    (lambda: analyse_copies(6, [[1.0], [2.0]], [False]), "no row of attention has two positions"),
    (lambda: Fit([]), "heads is empty"),
    (lambda: compare(analyse(Stream(Toy(), [*range(5)])), None), "the second is NoneType; give what analyse"),
    (lambda: compare("report", None), "the first is str; give what analyse or read_report returns"),
    (lambda: judged(fit_of([OF_CROSS]), [OF_SELF]), "no components of encoder.self; the fit has those of"),
    (lambda: fit_of([OF_CROSS]) + fit_of([OF_SELF]), "different attentions"),
    (lambda: sum_terms((10, 2, 3, 4), (2, 3, 4)), SHAPES),
    (lambda: sum_terms((9, 2, 3, 4), (2, 4, 3)), SHAPES),
    (lambda: sum_terms((9, 2, 3, 4), (1, 3, 4)), SHAPES),
    (lambda: sum_terms((9, 2, 3), (2, 3)), SHAPES),
    (lambda: TermSums(NINE) + TermSums((*NINE, POSITION_BIAS)), "cannot merge"),
    *(
        (partial(numbers, text), "are no numbers; write them as in 0,4-6")
        for text in ("", "a", "1,", "-1", "1-", "6-4", "1-2-3", "1.5", "0 1")
    ),
]


@pytest.mark.parametrize(
    ("call", "message"),
    [*DECOMPOSITION, *PROBES, *PASSES, *BATCHES, *TENSORS, *MODULES, *FAMILIES, *ANALYSIS],
)
def test_what_cannot_be_is_refused(call, message):
    assert_refused(call, message)


def test_with_its_wrapped_attention_left_out_a_model_is_traced():
    adapter = HuggingFace(wrapped("T5", f"{CROSS}.q"), kinds=("encoder_self",))
    assert len(adapter.trace(BATCH).attended) == 2
