"""Traces of Hugging Face encoder–decoders (T5, BART, mBART, Marian and their kin), through hooks.

So are those whose encoder reads pictures or sound (Whisper, Speech2Text, vision encoder–decoders): their
source has positions and no words, and all of these have one id.

A decoder or an encoder alone (GPT-2, Llama, BERT and their kin) is taken by
:mod:`attnlib.adapters.single_stack`, to which :class:`HuggingFace` turns of itself.

What is caught of an attention: the states that its query and key projections read, and the attention that it
returns, against which the scores made of the projections are checked at every batch. A model that computes
its attention in one fused call returns none, so that it runs with ``attn_implementation="eager"`` meanwhile.
"""

import re
import weakref
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, replace
from inspect import signature
from itertools import count
from typing import Any, cast, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlib.adapters.eager import eager
from attnlib.adapters.modules import Hooked, Hooks, Traced, evaluated, pairs_by_length, probe_of_pairs
from attnlib.adapters.single_stack import SingleStack, is_single_stack, most_positions
from attnlib.adapters.token_batch import FrameBatch, TokenBatch, batch_of_mapping, shifted
from attnlib.arrays import as_tuple
from attnlib.errors import BadInput, check_known
from attnlib.linear_map import single
from attnlib.trace import KEY_SIDE, QUERY_SIDE, Attention, AttentionKind, Trace, site_names

_KINDS = {  # what models call their attention modules
    "EncDecAttention": "cross",
    "encoder_attn": "cross",
    "crossattention": "cross",
    "SelfAttention": "self",
    "self_attn": "self",
    "attention": "self",
    "attn": "self",
}
_FAMILIES = (  # what attention modules call their projections and their number of heads
    ("q", "k", "n_heads"),  # T5
    ("q_proj", "k_proj", "num_heads"),  # BART, mBART, Marian, M2M100, Pegasus, Whisper, Speech2Text
    ("q_proj", "k_proj", "num_attention_heads"),  # ViT
    ("query", "key", "num_attention_heads"),  # BERT
    ("c_attn:0/3", "c_attn:1/3", "num_heads"),  # GPT-2, which makes queries, keys and values at once
    ("q_attn:0/1", "c_attn:0/2", "num_heads"),  # but for queries of cross-attention
)


class HuggingFace(Traced):
    """A model of the transformers library, ready to be traced.

    Of a decoder or an encoder alone this makes a :class:`~attnlib.adapters.single_stack.SingleStack`, which
    takes the same arguments and catches its self-attention.

    Args:
        model: loaded or built from a config; it is left on its device and in its precision.
        kinds: which attentions to catch; by default the cross-attention of an encoder–decoder.
        layers: which layers of them, from 0; all by default. What is not caught costs no memory.
        ignored: ids of tokens, such as special ones, that no analysis counts; by side, ``{"source": …,
            "target": …}``, where each has a vocabulary.

    Raises:
        BadInput: a model without encoder, decoder or attentions of a known form; a layer that is not there; a
            projection that is wrapped; no kinds or layers at all.
        UnknownName: a kind that does not exist.

    >>> from transformers import T5Config, T5ForConditionalGeneration
    >>> sizes = dict(vocab_size=9, d_model=4, d_kv=2, d_ff=4, num_layers=1, num_heads=2)
    >>> config = T5Config(**sizes, decoder_start_token_id=0, attn_implementation="eager")
    >>> model = HuggingFace(T5ForConditionalGeneration(config))
    >>> (one,) = model.trace(TokenBatch.of_rows([[5, 6, 7]], [[8, 1]])).attentions
    >>> one.name, tuple(one.scores.shape)
    ('cross.0', (1, 2, 2, 3))
    """

    def __new__(cls, model: Any = None, **options: Any) -> "HuggingFace | SingleStack":
        """Return an adapter of an encoder–decoder, or that of a decoder or an encoder alone."""
        if cls is HuggingFace and is_single_stack(model):
            return SingleStack(model, **options)
        return super().__new__(cls)

    def __init__(
        self,
        model: nn.Module,
        *,
        kinds: AttentionKind | Collection[AttentionKind] | None = None,
        layers: int | Collection[int] | None = None,
        ignored: int | Collection[int] | Mapping[str, Collection[int]] = (),
    ):
        chosen = ("cross",) if kinds is None else as_tuple(kinds)
        layers = as_tuple(layers)
        for name, given in (("kinds", chosen), ("layers", layers)):
            if given is not None and not len(given):
                raise BadInput(f"{name} is empty: name one or more, or leave {name} out")
        for kind in chosen:
            check_known("kind of attention", kind, get_args(AttentionKind))
        _require_both_halves(model)
        self.reads_frames = getattr(model, "main_input_name", "input_ids") != "input_ids"
        #: the pass of frames that was traced last, and these
        self._last: tuple[weakref.ref[Trace], FrameBatch] | None = None
        found = _places(model, chosen)
        self.n_layers = {kind: sum(place.kind == kind for place in found) for kind in get_args(AttentionKind)}
        for kind in chosen:
            absent = sorted(set(layers or ()) - {place.layer for place in found if place.kind == kind})
            if absent:
                has = f"this model has {self.n_layers[kind]}, counted from 0"
                raise BadInput(f"layers {absent} of {kind}: {has}")
        self._every_layer = [place for place in found if place.kind in chosen]
        for place in self._every_layer:
            _require_projections(model, place)
        caught = [place for place in self._every_layer if layers is None or place.layer in layers]
        super().__init__(model, caught, ignored)
        names = {name for place in self._every_layer for name in (place.query, place.key) if ":" in name}
        self._modules |= {name: _Rows(model, name) for name in names}

    def pass_bytes(self, batch: int, source: int, target: int, *, every_layer: bool = False) -> int:
        """Memory of the states, queries, keys, scores and attention of a pass, beside that of the model.

        ``every_layer``: of all layers of the kinds chosen, not only of the layers chosen.
        """
        length = {"source": source, "target": target}
        total = 0
        for place in self._every_layer if every_layer else self.hooked:
            query, key = self._module(place.query), self._module(place.key)
            queries, keys = length[QUERY_SIDE[place.kind]], length[KEY_SIDE[place.kind]]
            rows, width = query.weight.shape
            states = queries * width + keys * key.weight.shape[1]
            projected = (queries + keys) * rows
            size = max(query.weight.element_size(), 4)
            total += size * batch * (states + projected + 2 * place.heads * queries * keys)
        return total

    def table_bytes(self, longest: int) -> int:
        """Memory of the components of all states, once all words were seen at so many positions."""
        halves = {"source": self.model.get_encoder(), "target": self.model.get_decoder()}
        words = {side: _embedded_words(self.model, half) for side, half in halves.items()}
        words |= {"source": 1} if self.reads_frames else {}
        sites = {}
        for place in self.hooked:
            query, key = site_names(place.kind, place.layer)
            sites[query] = words[QUERY_SIDE[place.kind]], self._module(place.query).weight.shape[1]
            sites[key] = words[KEY_SIDE[place.kind]], self._module(place.key).weight.shape[1]
        return sum(8 * (seen * longest + (seen + longest) * width) for seen, width in sites.values())

    def trace(self, batch: TokenBatch | FrameBatch | Mapping[str, Any]) -> Trace:
        """Return the pass of one batch, without dropout and gradient, under teacher forcing.

        Args:
            batch: texts or frames, or a dictionary with ``input_ids`` and ``labels``, such as a
                ``BatchEncoding``.

        Raises:
            BadInput: as :meth:`attnlib.adapters.Modules.trace`.
        """
        batch = self._batch_of(batch)
        with eager(self.model):
            trace = super().trace(batch)
        if isinstance(batch, FrameBatch):
            self._last = weakref.ref(trace), batch
        return trace

    def _batch_of(self, given: object) -> TokenBatch | FrameBatch:
        if not isinstance(given, Mapping):
            return super()._batch_of(given)
        padding = getattr(self.model.config, "pad_token_id", None)
        if padding == getattr(self.model.config, "eos_token_id", None):
            padding = None  # an end mark is a label
        frames = self.model.main_input_name if self.reads_frames else None
        return batch_of_mapping(given, padding=padding, frames=frames)

    def _prepared(self, batch: TokenBatch | FrameBatch) -> "TokenBatch | _Frames":
        if isinstance(batch, FrameBatch) != self.reads_frames:
            wanted = "FrameBatch" if self.reads_frames else "TokenBatch"
            raise BadInput(
                f"{type(self.model).__name__} reads {self.model.main_input_name}: give it batches of "
                f"attnlib.{wanted}, not {type(batch).__name__}"
            )
        tokens = batch.tokens if isinstance(batch, FrameBatch) else batch
        packed = {name: field.to(self.model.device) for name, field in tokens.packed_fields().items()}
        for name in ("source", "target"):
            packed[name] = packed[name] * packed[f"{name}_mask"]  # at padding any id may have stood
        if "read" in packed:
            packed["read"] = packed["read"] * packed["target_mask"]
        words = TokenBatch(**packed)
        read = words.read
        if read is None:
            read = self.read(words)
            words = replace(words, read=read)
        _require_within_limits(self.model, words)
        if not isinstance(batch, FrameBatch):
            return words
        return _Frames(
            source=words.source,
            source_mask=words.source_mask,
            target=words.target,
            target_mask=words.target_mask,
            read=read,
            inputs=self._inputs(batch),
        )

    def _inputs(self, given: FrameBatch) -> dict[str, Tensor]:
        frames = given.frames.to(self.model.device, self.model.dtype)
        if given.frames_mask is None:
            return {self.model.main_input_name: frames}
        if not hasattr(self.model.get_encoder(), _MASK_OF_STATES):
            raise BadInput(
                f"the encoder of {type(self.model).__name__} reads all frames: leave frames_mask out"
            )
        mask = given.frames_mask.to(self.model.device)
        return {self.model.main_input_name: frames, "attention_mask": mask.long()}

    def read(self, batch: TokenBatch) -> Int[Tensor, "batch target"]:
        """What the decoder reads at each step of a batch's targets.

        Raises:
            BadInput: neither the model nor its config says what the decoder starts with.
        """
        start_of_config = getattr(self.model.config, "decoder_start_token_id", None)
        padding = getattr(self.model.config, "pad_token_id", None)
        _require_token("config", start_of_config)
        start = start_mark(self.model)
        make = getattr(self.model, "prepare_decoder_input_ids_from_labels", None)
        if make is not None:
            try:
                read = make(labels=batch.target.masked_fill(~batch.target_mask, -100))
            except (AttributeError, TypeError, ValueError):
                if None not in (start_of_config, padding):
                    raise  # the config says all that the method can need: it is broken
            else:
                # mBART starts with a language, whatever the configs say
                starts_as_config = bool((read[:, 0] == start_of_config).all())
                if starts_as_config and start != start_of_config:
                    read[:, 0] = start
                return read
        start = assumed_start(self.model) if start is None else start
        if start is None:
            raise BadInput(
                f"{type(self.model).__name__} does not say what its decoder starts with: set "
                "config.decoder_start_token_id, or give batches with ``read``"
            )
        return shifted(batch.target, start)

    def logits(self, one: Trace) -> Float[Tensor, "batch target words"]:
        """What the model predicts at every step of a pass; BadInput for one without an output layer."""
        source = {"input_ids": one.source_tokens * one.source_mask, "attention_mask": one.source_mask.long()}
        if self.reads_frames:
            if self._last is None or self._last[0]() is not one:
                raise BadInput("a pass does not hold its frames: ask for logits right after trace")
            source = self._inputs(self._last[1])
        with evaluated(self.model), eager(self.model):
            return _logits_of(self.model, one.target_tokens, one.target_mask, **source)

    def _watch(self, hooks: Hooks) -> None:
        super()._watch(hooks)
        if isinstance(head := self.model.get_output_embeddings(), nn.Linear):  # of FSMT, an embedding
            # Of one step alone: logits of all may take more than all else.
            hooks.rewrite(head, lambda given, named: ((given[0][:, :1], *given[1:]), named))
        for module in (self._module(_path_of(place)) for place in self.hooked):
            if "output_attentions" in signature(module.forward).parameters:  # LED keeps it to itself else
                hooks.rewrite(module, lambda given, named: (given, named | {"output_attentions": True}))

    def _run(self, batch: "TokenBatch | _Frames") -> None:
        if isinstance(batch, _Frames):
            source = batch.inputs
        else:
            source = {"input_ids": batch.source, "attention_mask": batch.source_mask.long()}
        output = self.model(
            **source,
            decoder_input_ids=batch.read,
            decoder_attention_mask=batch.target_mask.long(),
            use_cache=False,
        )
        if isinstance(batch, _Frames):
            samples, length, _ = output.encoder_last_hidden_state.shape
            # An id that is not ignored: else no analysis would count a frame.
            ignored = self.ignored if isinstance(self.ignored, tuple) else self.ignored["source"]
            counted = next(number for number in count() if number not in ignored)
            batch.source = batch.source.new_full((samples, length), counted)
            batch.source_mask = torch.ones_like(batch.source, dtype=torch.bool)
            if (mask := batch.inputs.get("attention_mask")) is not None:
                batch.source_mask = getattr(self.model.get_encoder(), _MASK_OF_STATES)(length, mask).bool()

    def _attention(self, one: Hooked, hooks: Hooks, **changes: Any) -> Attention:
        query_site, key_site = site_names(one.kind, one.layer)
        path = _path_of(one)
        output = hooks.outputs.get(path)
        if isinstance(output, tuple) and output[-1] is None:  # LED's cache, where there is none
            hooks.outputs[path] = output[:-1]
        bias = self._position_bias(one, hooks.outputs[path])
        sites = {"query_site": query_site, "key_site": key_site}
        return super()._attention(one, hooks, **sites, position_bias=bias, **changes)

    def _position_bias(self, one: Hooked, output: object) -> Tensor | None:
        module = self._module(_path_of(one))
        attention = output[-1] if isinstance(output, tuple) else None
        if not isinstance(output, tuple) or not isinstance(attention, Tensor) or attention.dim() != 4:
            raise BadInput(
                f"{one.name} returns no attention, though nothing hides it: {type(module).__name__} keeps it "
                "to itself. Name its projections with attnlib.adapters.Modules instead, with this module as "
                "``attention`` if torch makes it within, else with unchecked=True"
            )
        if one.kind == "cross" or not hasattr(module, "has_relative_attention_bias"):
            return None
        if len(output) != 3:  # T5 returns (output, position bias, attention), UMT5 (output, attention)
            raise BadInput(
                f"{one.name} adds a bias by position that {type(module).__name__} does not return: its "
                "scores cannot be made; leave its kind out (cross-attention adds none)"
            )
        return single(output[1])


def _path_of(place: Hooked) -> str:
    """Return the path of an attention module, which each place of a model of transformers has."""
    assert place.attention is not None
    return place.attention


_MASK_OF_STATES = "_get_feature_vector_attention_mask"  # what encoders of sound call it


@dataclass(eq=False)
class _Frames:
    """A packed batch whose source is known once the encoder has run."""

    source: Tensor
    source_mask: Tensor
    target: Tensor
    target_mask: Tensor
    read: Tensor
    inputs: dict[str, Tensor]


class _Rows(nn.Linear):
    """Some rows of a projection that keeps its weight turned and has others below them, named path:n/of."""

    def __init__(self, model: nn.Module, name: str):
        nn.Module.__init__(self)  # it has no weight of its own
        path, _, part = name.partition(":")
        self._module: Any = model.get_submodule(path)
        self._part, self._parts = map(int, part.split("/"))
        self.register_forward_pre_hook = self._module.register_forward_pre_hook

    @property
    def weight(self) -> Float[Tensor, "rows width"]:
        return self._module.weight.T.chunk(self._parts)[self._part]

    @property
    def bias(self) -> Float[Tensor, " rows"]:
        return self._module.bias.chunk(self._parts)[self._part]


def assumed_start(model: Any) -> int | None:
    """What a decoder of T5's kin starts with where its config does not say: padding, as T5 was trained."""
    config = model.config
    if start_mark(model) is not None or "t5" not in config.model_type:
        return None
    return getattr(config, "pad_token_id", None)


def start_mark(model: nn.Module) -> int | None:
    """Return the id that a decoder starts with, by its generation config, as ``generate``, or its config.

    Raises:
        BadInput: what stands there is no id of a token.
    """
    for name in ("generation_config", "config"):
        start = getattr(getattr(model, name, None), "decoder_start_token_id", None)
        _require_token(name, start)
        if start is not None:
            return start
    return None


def _require_token(name: str, start: object) -> None:
    if type(start) not in (int, type(None)):
        raise BadInput(f"{name}.decoder_start_token_id is {start!r}; expected the id of a token")


def lexical_probe(model: Any, one: Trace) -> Float[Tensor, "batch target source"]:
    """β of a Hugging Face encoder–decoder: the probability of the right word where l alone is attended to.

    Snell et al. 2021, equation 4, carried over to several layers and heads: every head of every
    cross-attention sees position l and no other, the encoder and all else is as in the pass. Zero at padding.
    A decoder that is given the encoder's state at l alone sees nothing else: it runs once for each pair of a
    sample and a source position, many at once.

    Raises:
        BadInput: a model without an output layer, or one whose encoder reads no words.
    """
    _require_both_halves(model)
    if model.main_input_name != "input_ids":
        raise BadInput(f"{type(model).__name__} reads {model.main_input_name}, which a pass does not hold")
    with evaluated(model), eager(model):
        ids = one.source_tokens * one.source_mask
        encoded = model.get_encoder()(input_ids=ids, attention_mask=one.source_mask.long())
        states = encoded.last_hidden_state  # (batch, source, width of the encoder)

        def logits(samples: Tensor, positions: Tensor, steps: int) -> Float[Tensor, "pairs steps words"]:
            read, mask = (own[samples, :steps] for own in (one.target_tokens, one.target_mask))
            seen, alone = states[samples, positions][:, None], torch.ones_like(positions)[:, None]
            outputs = copy(encoded)  # of the class that the model expects
            outputs.last_hidden_state = seen
            return _logits_of(model, read, mask, encoder_outputs=outputs, attention_mask=alone)

        return probe_of_pairs(one, logits, pairs_by_length(one, least=1024))


def _logits_of(model: Any, read: Tensor, mask: Tensor, **source: Any) -> Tensor:
    """What a model predicts at every step, from what its decoder reads and a source."""
    found = model(
        **source, decoder_input_ids=read * mask, decoder_attention_mask=mask.long(), use_cache=False
    )
    if getattr(found, "logits", None) is None:
        raise BadInput(
            f"{type(model).__name__} predicts no words: load it with its output layer (AutoModelForSeq2SeqLM)"
        )
    return found.logits


# -- where the attentions are --


def _places(model: Any, kinds: Collection[AttentionKind]) -> list[Hooked]:
    """Every attention of a kind that has a known form, in the order of the model; no heads: no known form."""
    found = []
    for path, module in model.named_modules():
        kind = _KINDS.get(path.removesuffix(".self").rpartition(".")[2])  # of BERT, attention.self
        numbers = re.findall(r"\.(?:layers|layer|block|h)\.(\d+)\.", path)
        if kind is None or not numbers or hasattr(module, "self"):
            continue
        if kind == "self":
            halves = [part for part in path.split(".") if part in ("encoder", "decoder")]
            kind = "encoder_self" if halves[:1] == ["encoder"] else "decoder_self"
        kind = cast("AttentionKind", kind)
        place = Hooked(path, path, attention=path, kind=kind, layer=int(numbers[0]))
        for query, key, heads in _FAMILIES:
            wanted = (query.partition(":")[0], key.partition(":")[0], heads, "scaling")
            if all(hasattr(module, name) for name in wanted):
                place = replace(
                    place,
                    query=f"{path}.{query}",
                    key=f"{path}.{key}",
                    heads=getattr(module, heads),
                    scale=float(module.scaling),
                )
        found.append(place)
    known = {place.kind for place in found if place.heads}
    if "cross" not in known:
        raise BadInput(
            f"{type(model).__name__} has no cross-attention in the form of T5, BART, mBART or Marian: name "
            "its modules instead, see attnlib.adapters.Modules"
        )
    for kind in kinds:
        if kind not in known:
            raise BadInput(
                f"{type(model).__name__} has no {kind} attention of a known form: leave this kind out"
            )
    return [place for place in found if place.kind in known]


def require_unwrapped(model: nn.Module) -> None:
    """Refuse a model within what spreads it over devices, such as ``nn.DataParallel``.

    Raises:
        BadInput: the model is within its ``module``.
    """
    within = getattr(model, "module", None)
    if isinstance(within, nn.Module) and not hasattr(model, "main_input_name"):
        raise BadInput(
            f"{type(model).__name__} spreads a {type(within).__name__} over devices: give the model within, "
            "model.module"
        )


def _require_both_halves(model: nn.Module) -> None:
    config = getattr(model, "config", None)
    require_unwrapped(model)
    if config is None or not hasattr(model, "main_input_name"):
        raise BadInput(
            f"{type(model).__name__} is no model of the transformers library. Name its modules instead, see "
            "attnlib.adapters.Modules, which has logits and lexical_probe as well"
        )
    parts = {part for path, _ in model.named_modules() for part in path.split(".")}
    if not (getattr(config, "is_encoder_decoder", False) and parts >= {"encoder", "decoder"}):
        raise BadInput(
            f"{type(model).__name__} lacks an encoder or a decoder, and so cross-attention between "
            "them: expected an encoder–decoder such as T5, BART, mBART or Marian, whole "
            "(AutoModelForSeq2SeqLM)"
        )


def _require_projections(model: nn.Module, place: Hooked) -> None:
    if not place.heads:
        raise BadInput(
            f"{place.attention} is {type(model.get_submodule(_path_of(place))).__name__}, which has no query "
            "and key projections of a known form; take off what wraps it, or leave its kind out"
        )
    for name in (place.query, place.key):
        if ":" in name:
            continue
        own = model.get_submodule(name)
        if not isinstance(own, nn.Linear) or type(own).forward is not nn.Linear.forward:
            raise BadInput(
                f"{name} is of the class {type(own).__module__}.{type(own).__qualname__}, which need not "
                "compute what torch.nn.Linear does of its weight. Take off what wraps it (of peft: "
                "model.merge_and_unload(); of a quantised model: load it in full), or name the "
                "torch.nn.Linear inside, see attnlib.adapters.Modules"
            )


def _require_within_limits(model: Any, batch: TokenBatch) -> None:
    """Sentences no longer and ids no larger than the model has rows for."""
    halves = {"source": model.get_encoder(), "target": model.get_decoder()}
    frames = model.main_input_name != "input_ids"
    for side, half in list(halves.items())[frames:]:
        tokens, mask = getattr(batch, side), getattr(batch, f"{side}_mask")
        longest = int(mask.sum(1).max())
        limit = position_limit(half)
        if frames and limit == torch.inf:
            limit = getattr(half.config, "max_position_embeddings", torch.inf)
        if longest > limit:
            raise BadInput(
                f"a {side} has {longest} pieces; {type(model).__name__} has positions for {limit}: cut "
                f"sentences, --longest {limit} or text_batches(..., longest={limit})"
            )
        ids = tokens[mask]
        if side == "target" and batch.read is not None:
            ids = ids.maximum(batch.read[mask])
        words = _embedded_words(model, half)
        if int(ids.max()) >= words:
            raise BadInput(
                f"a {side} holds id {int(ids.max())}; {type(model).__name__} embeds {words}, from 0: use the "
                "tokenizer that the model was trained with"
            )


def position_limit(half: nn.Module) -> int | float:
    """Return how many positions an encoder or a decoder has vectors for; infinity where it computes them."""
    table = getattr(half, "embed_positions", None)
    if isinstance(table, nn.Embedding):
        return table.num_embeddings - getattr(table, "offset", 0)
    most = most_positions(half)
    return torch.inf if most is None else most


def _embedded_words(model: Any, half: Any) -> int:
    """Words that a half of a model embeds; the two of a Marian model need not have one vocabulary."""
    return (getattr(half, "embed_tokens", None) or half.get_input_embeddings()).weight.shape[0]
