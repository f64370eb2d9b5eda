"""Trace Hugging Face encoder–decoders (T5, BART, mBART, Marian and the like) through hooks.

Models whose encoder reads pictures or sound (Whisper, Speech2Text, vision encoder–decoders) are supported:
their source has positions and no words, and all of its positions have one id. A decoder or an encoder alone
(GPT-2, Llama, BERT and the like) has the adapter of :mod:`attnlib.adapters.single_stack`; :func:`adapter_of`
chooses between the two.

Two things are caught of each attention: the states that its query and key projections read, and the attention
that it returns. The scores that the projections make are checked against the latter in every batch. A model
that computes its attention in one fused call returns none, so that it runs with
``attn_implementation="eager"`` meanwhile.
"""

import warnings
import weakref
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from inspect import signature
from itertools import count
from typing import Any, cast, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlib.adapters.eager import eager
from attnlib.adapters.modules import (
    Hooked,
    Hooks,
    ModelAdapter,
    Pairs,
    PartOfProjection,
    evaluated,
    pairs_by_length,
    probe_of_pairs,
    require_plain_weight,
)
from attnlib.adapters.single_stack import (
    SingleStack,
    is_single_stack,
    layer_of,
    most_positions,
    require_scores_of_products,
)
from attnlib.adapters.token_batch import FrameBatch, TokenBatch, batch_of_mapping, shifted
from attnlib.arrays import ShowsShapes, as_tuple
from attnlib.errors import BadInput, check_known
from attnlib.linear_map import single
from attnlib.trace import KEY_SIDE, QUERY_SIDE, Attention, AttentionKind, Trace, site_names

_KINDS = {  # what models call their attention modules
    "EncDecAttention": "cross",
    "encoder_attn": "cross",
    "crossattention": "cross",
    "cross_attention": "cross",
    "cross_attn": "cross",
    "SelfAttention": "self",
    "self_attn": "self",
    "attention": "self",
    "attn": "self",
}


@dataclass(frozen=True)
class _Family:
    """Names that the attention modules of a family of models give their projections and number of heads.

    It differs from :class:`~attnlib.adapters.single_stack.Family`, which also says how rows of one weight are
    divided among heads and what a softmax is computed in: here both sides of a cross-attention may lie in
    different weights, and every projection is a :class:`torch.nn.Linear` or a part of one weight.

    Attributes:
        query: name of the query projection, or of a part of it, as in ``"c_attn:0/3"``.
        key: name of the key projection, likewise.
        heads: name of the number of heads; or of the width of a head, if ``by_width``.
        by_width: whether the number of heads is the number of rows divided by the width of a head, and heads
            of keys may be fewer than those of queries.
    """

    query: str
    key: str
    heads: str
    _: KW_ONLY
    by_width: bool = False

    def matches(self, module: nn.Module) -> bool:
        """Return True if a module has all of these names."""
        query, key = self.query.partition(":")[0], self.key.partition(":")[0]
        return all(hasattr(module, name) for name in (query, key, self.heads, "scaling"))

    def heads_of(self, module: Any) -> tuple[int, int | None]:
        """Return how many heads a module has, and how many of keys if these may be fewer."""
        if not self.by_width:
            return getattr(module, self.heads), None
        width = getattr(module, self.heads)
        n_query_rows, n_key_rows = (len(getattr(module, name).weight) for name in (self.query, self.key))
        return n_query_rows // width, n_key_rows // width


_FAMILIES = (
    _Family("q", "k", "n_heads"),  # T5
    # BART, mBART, Marian, M2M100, Pegasus, NLLB-MoE, SeamlessM4T, FSMT, Whisper, Speech2Text
    _Family("q_proj", "k_proj", "num_heads"),
    _Family("q_proj", "k_proj", "num_attention_heads"),  # ViT
    _Family("query", "key", "num_attention_heads"),  # BERT
    _Family("q_attn:0/1", "c_attn:0/2", "num_heads"),  # GPT-2's cross-attention: keys and values in one
    _Family("c_attn:0/3", "c_attn:1/3", "num_heads"),  # GPT-2: queries, keys and values in one weight
    _Family("q_proj", "k_proj", "head_dim", by_width=True),  # T5Gemma, Moonshine: cross-attention alone
)


class HuggingFace(ModelAdapter):
    """Trace an encoder–decoder of the transformers library; :func:`adapter_of` takes any of its models.

    Args:
        model: loaded, or built from a config; it stays on its device and in its precision.
        kinds: which attentions to catch; by default the cross-attention of an encoder–decoder.
        layers: which of their layers, from 0; all by default. Others cost no memory.
        ignored: ids of tokens, such as special ones, that no analysis counts; by side, ``{"source": …,
            "target": …}``, if each side has a vocabulary.
        start: the id that the decoder reads first if neither the model nor its configs say it.

    Attributes:
        reads_frames: whether the encoder reads pictures or sound.
        n_layers: how many layers have attention of a kind, by kind.

    Raises:
        BadInput: the model lacks an encoder, a decoder or attentions of a known form; it has no such layer; a
            projection is wrapped; kinds or layers are empty.
        UnknownName: a kind does not exist.

    Example:
        >>> from transformers import T5Config, T5ForConditionalGeneration
        >>> sizes = dict(vocab_size=9, d_model=4, d_kv=2, d_ff=4, num_layers=1, num_heads=2)
        >>> config = T5Config(**sizes, decoder_start_token_id=0, attn_implementation="eager")
        >>> model = HuggingFace(T5ForConditionalGeneration(config))
        >>> (attention,) = model.trace(TokenBatch.of_rows([[5, 6, 7]], [[8, 1]])).attentions
        >>> attention.name, tuple(attention.scores.shape)
        ('cross.0', (1, 2, 2, 3))
    """

    def __new__(cls, model: Any = None, **options: Any) -> "HuggingFace | SingleStack":
        """Return an adapter of an encoder–decoder; for other models :func:`adapter_of` replaces the class."""
        if cls is HuggingFace and is_single_stack(model):
            warnings.warn(
                f"HuggingFace of {type(model).__name__}, which reads one text, is deprecated: it is "
                "attnlib.adapter_of(model), or attnlib.adapters.SingleStack(model)",
                DeprecationWarning,
                stacklevel=2,
            )
            return SingleStack(model, **options)
        return super().__new__(cls)

    def __init__(
        self,
        model: nn.Module,
        *,
        kinds: AttentionKind | Collection[AttentionKind] | None = None,
        layers: int | Collection[int] | None = None,
        ignored: int | Collection[int] | Mapping[str, Collection[int]] = (),
        start: int | None = None,
    ):
        self.start = start
        chosen_kinds = ("cross",) if kinds is None else as_tuple(kinds)
        chosen_layers = as_tuple(layers)
        _require_choice("kinds", chosen_kinds)
        _require_choice("layers", chosen_layers)
        for kind in chosen_kinds:
            check_known("kind of attention", kind, get_args(AttentionKind))
        _require_both_halves(model)
        self.reads_frames = getattr(model, "main_input_name", "input_ids") != "input_ids"
        self._last_frames: _LastFrames | None = None
        places = _places(model, chosen_kinds)
        self.n_layers = {
            kind: sum(place.kind == kind for place in places) for kind in get_args(AttentionKind)
        }
        for kind in chosen_kinds:
            present = {place.layer for place in places if place.kind == kind}
            absent = sorted(set(chosen_layers or ()) - present)
            if absent:
                raise BadInput(
                    f"layers {absent} of {kind}: this model has {self.n_layers[kind]}, counted from 0"
                )
        self._every_layer = [place for place in places if place.kind in chosen_kinds]
        for place in self._every_layer:
            _require_projections(model, place)
        hooked = self._every_layer
        if chosen_layers is not None:
            hooked = [place for place in self._every_layer if place.layer in chosen_layers]
        super().__init__(model, hooked, ignored)

    def pass_bytes(self, batch: int, source: int, target: int, *, every_layer: bool = False) -> int:
        """Return the memory of a trace in bytes: its states, queries, keys, scores and attention.

        Args:
            batch: number of samples.
            source: positions of the padded source.
            target: positions of the padded target.
            every_layer: count all layers of the chosen kinds, not only the chosen layers.
        """
        length = {"source": source, "target": target}
        total = 0
        for place in self._every_layer if every_layer else self.hooked:
            query, key = self._module(place.query), self._module(place.key)
            n_queries = length[QUERY_SIDE[place.kind]]
            n_keys = length[KEY_SIDE[place.kind]]
            n_rows, query_width = query.weight.shape
            key_width = key.weight.shape[1]
            states = n_queries * query_width + n_keys * key_width
            projected = (n_queries + n_keys) * n_rows
            scores_and_attention = 2 * place.heads * n_queries * n_keys
            bytes_per_number = max(query.weight.element_size(), 4)
            total += bytes_per_number * batch * (states + projected + scores_and_attention)
        return total

    def table_bytes(self, longest: int) -> int:
        """Return the bytes that the components of all states take once every word was seen at every position.

        Args:
            longest: number of positions.

        Returns:
            Bytes, of tables in double precision.
        """
        n_words = {
            "source": 1 if self.reads_frames else _embedded_words(self.model, self.model.get_encoder()),
            "target": _embedded_words(self.model, self.model.get_decoder()),
        }
        sizes = {}  # by the name of the states: words and width
        for place in self.hooked:
            query_site, key_site = site_names(place.kind, place.layer)
            query_width = self._module(place.query).weight.shape[1]
            key_width = self._module(place.key).weight.shape[1]
            sizes[query_site] = n_words[QUERY_SIDE[place.kind]], query_width
            sizes[key_site] = n_words[KEY_SIDE[place.kind]], key_width
        total = 0
        for words, width in sizes.values():
            counts = words * longest
            sums = (words + longest) * width
            total += 8 * (counts + sums)
        return total

    def trace(self, batch: TokenBatch | FrameBatch | Mapping[str, Any]) -> Trace:
        """Run the model on one batch under teacher forcing, without dropout and gradients.

        Args:
            batch: texts or frames, or a dictionary with ``input_ids`` and ``labels``, such as a
                ``BatchEncoding``.

        Returns:
            The validated trace, padded at the right, with the chosen attentions.

        Raises:
            BadInput: as :meth:`attnlib.adapters.Modules.trace`.
        """
        batch = self._batch_of(batch)
        with eager(self.model):
            trace = super().trace(batch)
        if isinstance(batch, FrameBatch):
            self._last_frames = _LastFrames(weakref.ref(trace), batch)
        return trace

    def _batch_of(self, batch: object) -> TokenBatch | FrameBatch:
        if not isinstance(batch, Mapping):
            return super()._batch_of(batch)
        padding = getattr(self.model.config, "pad_token_id", None)
        if padding == getattr(self.model.config, "eos_token_id", None):
            padding = None  # an end mark is a label
        frames = self.model.main_input_name if self.reads_frames else None
        return batch_of_mapping(batch, padding=padding, frames=frames)

    def _prepared(self, batch: TokenBatch | FrameBatch) -> "TokenBatch | _Frames":
        """Return a batch packed, on the model's device, with what the decoder reads, and zero at padding."""
        if isinstance(batch, FrameBatch) != self.reads_frames:
            expected = "FrameBatch" if self.reads_frames else "TokenBatch"
            raise BadInput(
                f"{type(self.model).__name__} reads {self.model.main_input_name}: give it batches of "
                f"attnlib.{expected}, not {type(batch).__name__}"
            )
        tokens = batch.tokens if isinstance(batch, FrameBatch) else batch
        fields = {name: field.to(self.model.device) for name, field in tokens.packed_fields().items()}
        source_mask, target_mask = fields["source_mask"], fields["target_mask"]
        # At padding any id may have been, also one that the model does not embed.
        words = TokenBatch(
            source=fields["source"] * source_mask,
            source_mask=source_mask,
            target=fields["target"] * target_mask,
            target_mask=target_mask,
            read=fields["read"] * target_mask if "read" in fields else None,
        )
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

    def _inputs(self, batch: FrameBatch) -> dict[str, Tensor]:
        """Return the arguments with which the model is called for frames, by name."""
        frames = batch.frames.to(self.model.device, self.model.dtype)
        if batch.frames_mask is None:
            return {self.model.main_input_name: frames}
        if not hasattr(self.model.get_encoder(), _MASK_OF_STATES):
            raise BadInput(
                f"the encoder of {type(self.model).__name__} reads all frames: leave frames_mask out"
            )
        mask = batch.frames_mask.to(self.model.device)
        return {self.model.main_input_name: frames, "attention_mask": mask.long()}

    def read(self, batch: TokenBatch) -> Int[Tensor, "batch target"]:
        """Return what the decoder reads at each step of a batch's targets.

        The model's own method for that decides, where it has one, and the generation config's start mark, as
        in ``generate``. Else the start mark is put before the target, whose last token is not read.

        Args:
            batch: its targets, packed.

        Raises:
            BadInput: neither the model nor its config says what the decoder starts with.
        """
        start_of_config = getattr(self.model.config, "decoder_start_token_id", None)
        padding = getattr(self.model.config, "pad_token_id", None)
        _require_token("config", start_of_config)
        start = start_mark(self.model)
        labels = batch.target.masked_fill(~batch.target_mask, -100)
        make = getattr(self.model, "prepare_decoder_input_ids_from_labels", None)
        if make is not None:
            try:
                read = make(labels=labels)
            except (AttributeError, TypeError, ValueError):
                if None not in (start_of_config, padding):
                    raise  # the config says all that the method can need: it is broken
            else:
                if start is not None and not _starts_with_label(read, labels, start_of_config):
                    read[:, 0] = start
                return read
        for other_start in (assumed_start(self.model), self.start):
            start = other_start if start is None else start
        if start is None:
            raise BadInput(
                f"{type(self.model).__name__} does not say what its decoder starts with: set "
                "config.decoder_start_token_id, give ``start``, or give batches with ``read``"
            )
        return shifted(batch.target, start)

    def logits(self, trace: Trace) -> Float[Tensor, "batch target words"]:
        """Return what the model predicts at every step of a pass.

        Args:
            trace: of the pass, which is run again; of frames, the last that :meth:`trace` returned.

        Returns:
            Logits of each word.

        Raises:
            BadInput: the model has no output layer, or the frames of the pass are gone.
        """
        if self.reads_frames:
            source = self._inputs(self._frames_of(trace))
        else:
            ids = trace.source_tokens * trace.source_mask
            source = {"input_ids": ids, "attention_mask": trace.source_mask.long()}
        with evaluated(self.model), eager(self.model):
            return _logits_of(self.model, trace.target_tokens, trace.target_mask, **source)

    def _frames_of(self, trace: Trace) -> FrameBatch:
        """Return the frames that a trace was made of, which it does not hold itself."""
        if self._last_frames is None or self._last_frames.trace() is not trace:
            raise BadInput("a pass does not hold its frames: ask for logits right after trace")
        return self._last_frames.batch

    def _watch(self, hooks: Hooks) -> None:
        super()._watch(hooks)
        head = self.model.get_output_embeddings()
        if isinstance(head, nn.Linear):  # FSMT has an embedding there
            hooks.rewrite(head, _of_the_first_step)
        for place in self.hooked:
            module = self._module(_path_of(place))
            if "output_attentions" in signature(module.forward).parameters:  # else LED keeps it to itself
                hooks.rewrite(module, _with_attention_returned)

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
            self._set_source(batch, output.encoder_last_hidden_state)

    def _set_source(self, batch: "_Frames", states: Float[Tensor, "batch source width"]) -> None:
        """Give frames a source of as many positions as the encoder has states, all with one id."""
        n_samples, length, _ = states.shape
        ignored = self.ignored if isinstance(self.ignored, tuple) else self.ignored["source"]
        counted_id = next(number for number in count() if number not in ignored)
        batch.source = batch.source.new_full((n_samples, length), counted_id)
        batch.source_mask = torch.ones_like(batch.source, dtype=torch.bool)
        mask = batch.inputs.get("attention_mask")
        if mask is not None:
            mask_of_states = getattr(self.model.get_encoder(), _MASK_OF_STATES)
            batch.source_mask = mask_of_states(length, mask).bool()

    def _attention(self, place: Hooked, hooks: Hooks) -> Attention:
        path = _path_of(place)
        output = hooks.outputs.get(path)
        if isinstance(output, tuple) and output[-1] is None:  # LED returns its cache there, which is empty
            hooks.outputs[path] = output[:-1]
        self._require_returned_attention(place, hooks.outputs[path])
        return super()._attention(place, hooks)

    def _sites(self, place: Hooked, *, one_sequence: bool) -> tuple[str, str]:
        return site_names(place.kind, place.layer)

    def _require_returned_attention(self, place: Hooked, output: object) -> None:
        attention = output[-1] if isinstance(output, tuple) else None
        if not isinstance(attention, Tensor) or attention.dim() != 4:
            module = self._module(_path_of(place))
            raise BadInput(
                f"{place.name} returns no attention, though nothing hides it: {type(module).__name__} keeps "
                "it to itself. Name its projections with attnlib.adapters.Modules instead, with this module "
                "as ``attention`` if torch makes it within, else with unchecked=True"
            )

    def _position_bias(
        self, place: Hooked, hooks: Hooks
    ) -> Float[Tensor, "batch heads target source"] | None:
        """Return what T5 and similar models add to the scores of self-attention by distance."""
        module = self._module(_path_of(place))
        if place.kind == "cross" or not hasattr(module, "has_relative_attention_bias"):
            return None
        output = hooks.outputs[_path_of(place)]
        if len(output) != 3:  # T5 returns (output, position bias, attention), UMT5 (output, attention)
            raise BadInput(
                f"{place.name} adds a bias by position that {type(module).__name__} does not return: its "
                "scores cannot be made; leave its kind out (cross-attention adds none)"
            )
        return single(output[1])


def _starts_with_label(
    read: Int[Tensor, "batch target"], labels: Int[Tensor, "batch target"], start_of_config: int | None
) -> bool:
    """Return True if a model's own method puts a label first: mBART's the last, which is a language."""
    if start_of_config is not None:
        return bool((read[:, 0] != start_of_config).any())
    n_words = (labels != -100).sum(1, keepdim=True)  # (batch, 1)
    return bool((read[:, :1] == labels.gather(1, n_words - 1)).all())


def _require_choice(name: str, choice: tuple | None) -> None:
    if choice is not None and not choice:
        raise BadInput(f"{name} is empty: name one or more, or leave {name} out")


def _of_the_first_step(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Let an output layer read one step: the logits of all may take more memory than all that is caught."""
    states, *others = args
    return (states[:, :1], *others), kwargs


def _with_attention_returned(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    return args, kwargs | {"output_attentions": True}


@dataclass(frozen=True, eq=False)
class _LastFrames:
    """The frames of the trace that was made last."""

    trace: weakref.ref[Trace]
    batch: FrameBatch


def _path_of(place: Hooked) -> str:
    """Return the path of an attention module, which each place of a model of transformers has."""
    assert place.attention is not None
    return place.attention


_SAME_LOGITS = 1e-2  # the most that logits differ by rounding alone, in half precision, for the largest
_MASK_OF_STATES = "_get_feature_vector_attention_mask"  # what encoders of sound call it


@dataclass(eq=False, repr=False, kw_only=True)
class _Frames(ShowsShapes):
    """A packed batch of frames, whose source is set once the encoder has run."""

    source: Tensor
    source_mask: Tensor
    target: Tensor
    target_mask: Tensor
    read: Tensor
    inputs: dict[str, Tensor]


def assumed_start(model: Any) -> int | None:
    """Return the id that a T5-like decoder starts with if its configs do not say: that of padding.

    Args:
        model: a model of the transformers library.

    Returns:
        An id; None for a model of another kind, or one that says it.

    Example:
        >>> from transformers import T5Config, T5ForConditionalGeneration
        >>> sizes = dict(vocab_size=9, d_model=4, d_kv=2, d_ff=4, num_layers=1, num_heads=2)
        >>> assumed_start(T5ForConditionalGeneration(T5Config(**sizes, pad_token_id=3)))
        3
    """
    config = model.config
    starts_with_padding = "t5" in config.model_type and "gemma" not in config.model_type
    if start_mark(model) is not None or not starts_with_padding:
        return None
    return getattr(config, "pad_token_id", None)


def start_mark(model: nn.Module) -> int | None:
    """Return the id that a decoder starts with: by its generation config, as in ``generate``, or its config.

    Args:
        model: a model of the transformers library.

    Returns:
        An id; None if neither config says it.

    Raises:
        BadInput: the config has something else there than the id of a token.

    Example:
        >>> from transformers import T5Config, T5ForConditionalGeneration
        >>> sizes = dict(vocab_size=9, d_model=4, d_kv=2, d_ff=4, num_layers=1, num_heads=2)
        >>> start_mark(T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=2)))
        2
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


def lexical_probe(model: Any, trace: Trace) -> Float[Tensor, "batch target source"]:
    """Return the lexical probe β of a Hugging Face encoder–decoder for a pass.

    β[s, t] is the probability of the right word of step s if every head of every cross-attention sees source
    position t alone, while the encoder and all else is as in the pass: Snell et al. 2021, equation 4, carried
    over to several layers and heads. A decoder that is given the encoder's state at t alone sees nothing
    else, so that it runs once for each pair of a sample and a source position, many pairs at once.

    Args:
        model: of transformers, with an output layer.
        trace: of a pass of that model.

    Returns:
        Probabilities; zero at padding.

    Raises:
        BadInput: the model has no output layer, its encoder reads no words, or its decoder does not run on
            ``encoder_outputs`` alone.

    Example:
        >>> from transformers import T5Config, T5ForConditionalGeneration
        >>> sizes = dict(vocab_size=9, d_model=4, d_kv=2, d_ff=4, num_layers=1, num_heads=2)
        >>> model = T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0))
        >>> trace = HuggingFace(model).trace(TokenBatch.of_rows([[5, 6, 7]], [[8, 1]]))
        >>> tuple(lexical_probe(model, trace).shape)
        (1, 2, 3)
    """
    _require_both_halves(model)
    if model.main_input_name != "input_ids":
        raise BadInput(f"{type(model).__name__} reads {model.main_input_name}, which a pass does not hold")
    with evaluated(model), eager(model):
        ids = trace.source_tokens * trace.source_mask
        encoded = model.get_encoder()(input_ids=ids, attention_mask=trace.source_mask.long())
        states = encoded.last_hidden_state  # (batch, source, width of the encoder)

        def outputs_of(chosen: Float[Tensor, "pairs seen width"]) -> Any:
            outputs = copy(encoded)  # of the class that the model expects
            outputs.last_hidden_state = chosen
            return outputs

        first = trace.first(1)
        needs_ids = _needs_ids(model, first, encoder_outputs=outputs_of(states[:1]))

        def logits(pairs: Pairs) -> Float[Tensor, "pairs steps words"]:
            read = trace.target_tokens[pairs.samples, : pairs.steps]  # (pairs, steps)
            mask = trace.target_mask[pairs.samples, : pairs.steps]  # (pairs, steps)
            position_ids = ids[pairs.samples, pairs.positions][:, None]  # (pairs, 1)
            source = {
                "encoder_outputs": outputs_of(states[pairs.samples, pairs.positions][:, None]),
                "attention_mask": torch.ones_like(position_ids),
            }
            if needs_ids:
                source["input_ids"] = position_ids
            return _logits_of(model, read, mask, **source)

        return probe_of_pairs(trace, logits, pairs_by_length(trace, least=1024))


# Models that were probed, with True for those that need ids. That depends on the code of a model, not on its
# weights, and takes some passes to find out.
_NEEDS_IDS: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def _needs_ids(model: Any, trace: Trace, *, encoder_outputs: Any) -> bool:
    """Return whether a model predicts on encoder outputs what it does on a source only if given ids as well.

    FSMT masks later steps only if it has ids. A model is tried once.

    Raises:
        BadInput: the model does not run on encoder outputs, or predicts something else of them.
    """
    if model not in _NEEDS_IDS:
        _NEEDS_IDS[model] = _tried_with_ids(model, trace, encoder_outputs=encoder_outputs)
    return _NEEDS_IDS[model]


def _tried_with_ids(model: Any, trace: Trace, *, encoder_outputs: Any) -> bool:
    """Return what :func:`_needs_ids` returns, found by running the model with ids and without.

    Raises:
        BadInput: the model does not run on encoder outputs, or predicts something else of them.
    """
    ids = trace.source_tokens * trace.source_mask
    mask = trace.source_mask.long()
    expected = _logits_of(model, trace.target_tokens, trace.target_mask, input_ids=ids, attention_mask=mask)
    for needs_ids in (False, True):
        source = {"input_ids": ids} if needs_ids else {}
        source |= {"encoder_outputs": encoder_outputs, "attention_mask": mask}
        try:
            logits = _logits_of(model, trace.target_tokens, trace.target_mask, **source)
        except (BadInput, torch.OutOfMemoryError):
            raise
        except (AttributeError, RuntimeError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            continue
        difference = (logits - expected)[trace.target_mask].abs().max()
        if difference > _SAME_LOGITS * expected[trace.target_mask].abs().max():
            reason = f"its predictions differ by {float(difference):.2g}"
            continue
        if needs_ids and _ignores_states(model, trace, logits, source=source):
            reason = "it reads the ids once more"
            continue
        return needs_ids
    raise BadInput(
        f"{type(model).__name__} does not run on encoder_outputs as on the source itself, and the lexical "
        f"probe needs that ({reason})"
    )


def _ignores_states(
    model: Any, trace: Trace, logits: Float[Tensor, "batch target words"], *, source: Mapping[str, Any]
) -> bool:
    """Return True if predictions are the same with encoder states of zero."""
    zeros = copy(source["encoder_outputs"])
    zeros.last_hidden_state = torch.zeros_like(zeros.last_hidden_state)
    with_zeros = {**source, "encoder_outputs": zeros}
    return torch.equal(logits, _logits_of(model, trace.target_tokens, trace.target_mask, **with_zeros))


def _logits_of(model: Any, read: Tensor, mask: Tensor, **source: Any) -> Float[Tensor, "batch target words"]:
    """Return what a model predicts at every step, from what its decoder reads and a source."""
    output = model(
        **source, decoder_input_ids=read * mask, decoder_attention_mask=mask.long(), use_cache=False
    )
    if getattr(output, "logits", None) is None:
        raise BadInput(
            f"{type(model).__name__} predicts no words: load it with its output layer (AutoModelForSeq2SeqLM)"
        )
    return output.logits


# -- where the attentions are --


def _places(model: Any, kinds: Collection[AttentionKind]) -> list[Hooked]:
    """Return the attentions of each kind of which one at least has a known form, in the model's order."""
    _require_one_stream(model)
    places = []
    for path, module in model.named_modules():
        place = _place_of(path, module)
        if place is not None:
            places.append(place)
    known_kinds = {place.kind for place in places if place.heads}
    if "cross" not in known_kinds:
        raise BadInput(
            f"{type(model).__name__} has no cross-attention in the form of T5, BART, mBART or Marian"
            f"{_unknown_cross_attention(model)}: name its modules instead, see attnlib.adapters.Modules, or "
            "give tensors that your code saves (attnlib.pass_of_tensors)"
        )
    for kind in kinds:
        if kind not in known_kinds:
            raise BadInput(
                f"{type(model).__name__} has no {kind} attention of a known form: {_way_out(model, kind)}"
            )
    return [place for place in places if place.kind in known_kinds]


def _require_one_stream(model: Any) -> None:
    """Refuse a decoder like ProphetNet's, which reads each target several times, to predict several words."""
    n_predicted = getattr(getattr(model, "config", None), "ngram", None)
    if not n_predicted:
        return
    raise BadInput(
        f"{type(model).__name__} predicts {n_predicted} words at each step: its decoder reads a target in "
        f"{1 + n_predicted} streams, one after the other, and each has its own rows of attention. Save the "
        "states of one stream, the first for the text itself, and give them to attnlib.pass_of_tensors"
    )


def _way_out(model: Any, kind: str) -> str:
    """Return, for a message, what to do about a kind of attention that cannot be traced."""
    is_in_blocks = getattr(getattr(model, "config", None), "attention_type", None) == "block_sparse"
    if kind == "encoder_self" and is_in_blocks:
        return (
            "its encoder attends in blocks (block_sparse), and most pairs have no score; load it with "
            'attention_type="original_full", or leave this kind out'
        )
    return "leave this kind out"


def _unknown_cross_attention(model: nn.Module) -> str:
    """Return, for a message, the first module that may be a cross-attention, and its linear layers."""
    for path, module in model.named_modules():
        name = path.rpartition(".")[2]
        if "cross" not in name.lower() and "cross" not in type(module).__name__.lower():
            continue
        layers = [child for child, layer in module.named_children() if isinstance(layer, nn.Linear)]
        if len(layers) > 1:
            return f" ({path}, a {type(module).__name__}, has {', '.join(layers)})"
    return ""


def _place_of(path: str, module: Any) -> Hooked | None:
    """Return what a module is if it is an attention, else None; one of no known form has no heads."""
    name = path.removesuffix(".self").rpartition(".")[2]  # in BERT it is called attention.self
    layer = layer_of(path)
    if name not in _KINDS or layer is None or hasattr(module, "self"):
        return None
    kind = _KINDS[name]
    if kind == "self":
        halves = [part for part in path.split(".") if part.endswith(("encoder", "decoder"))]
        is_of_encoder = bool(halves) and halves[0].endswith("encoder")
        kind = "encoder_self" if is_of_encoder else "decoder_self"
    place = Hooked(path, path, attention=path, kind=cast("AttentionKind", kind), layer=layer)
    for family in _FAMILIES:
        # Self-attentions of the last family rotate queries and keys by position.
        if not family.matches(module) or (family.by_width and kind != "cross"):
            continue
        heads, key_heads = family.heads_of(module)
        return replace(
            place,
            query=f"{path}.{family.query}",
            key=f"{path}.{family.key}",
            heads=heads,
            key_heads=key_heads,
            scale=float(module.scaling),
            length_first="fsmt" in type(module).__module__,
        )
    return place


def adapter_of(model: Any, **options: Any) -> HuggingFace | SingleStack:
    """Return the adapter that traces a model of the transformers library.

    Args:
        model: an encoder–decoder, or a decoder or an encoder alone.
        options: ``kinds``, ``layers`` and ``ignored``, as for :class:`HuggingFace`.

    Returns:
        A :class:`~attnlib.adapters.single_stack.SingleStack` of a decoder or an encoder alone, else a
        :class:`HuggingFace`.

    Raises:
        BadInput: the model has no attention of a known form.

    Example:
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=2))
        >>> type(adapter_of(model)).__name__
        'SingleStack'
    """
    if is_single_stack(model):
        return SingleStack(model, **options)
    return HuggingFace(model, **options)


def require_unwrapped(model: nn.Module) -> None:
    """Refuse a model inside a module that spreads it over devices, such as ``nn.DataParallel``.

    Args:
        model: a network, of the transformers library or not.

    Raises:
        BadInput: the model is its attribute ``module``.

    Example:
        >>> require_unwrapped(nn.Linear(2, 2))
        >>> require_unwrapped(nn.DataParallel(nn.Linear(2, 2)))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        attnlib.errors.BadInput: DataParallel spreads a Linear over devices: give the model within, ...
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
            f"{type(model).__name__} is not a model of the transformers library. Name its modules instead, "
            "see attnlib.adapters.Modules, which has logits and lexical_probe as well"
        )
    halves = set()
    for path, _ in model.named_modules():
        halves |= {half for half in ("encoder", "decoder") if f"{path}.".find(f"{half}.") >= 0}
    if not (getattr(config, "is_encoder_decoder", False) and len(halves) == 2):
        raise BadInput(
            f"{type(model).__name__} lacks an encoder or a decoder, and so cross-attention between "
            "them: expected a whole encoder–decoder such as T5, BART, mBART or Marian "
            "(AutoModelForSeq2SeqLM)"
        )


def _require_projections(model: nn.Module, place: Hooked) -> None:
    """Refuse projections that need not compute what their weights say, such as quantised ones."""
    if not place.heads:
        raise BadInput(
            f"{place.attention} is {type(model.get_submodule(_path_of(place))).__name__}, which has no query "
            "and key projections of a known form; remove its wrapper, or leave its kind out"
        )
    require_scores_of_products(_path_of(place), model.get_submodule(_path_of(place)))
    for name in (place.query, place.key):
        if PartOfProjection.is_named(name):
            continue
        projection = model.get_submodule(name)
        kind = type(projection)
        if not isinstance(projection, nn.Linear) or kind.forward is not nn.Linear.forward:
            raise BadInput(
                f"{name} is of the class {kind.__module__}.{kind.__qualname__}, which may "
                "compute something else than torch.nn.Linear does. Remove its wrapper (with peft: "
                "model.merge_and_unload(); if quantised: load the model in full), or name the "
                "torch.nn.Linear inside, see attnlib.adapters.Modules"
            )
        require_plain_weight(name, projection)


def _require_within_limits(model: Any, batch: TokenBatch) -> None:
    """Refuse sentences longer than the model has positions for, and ids larger than it embeds."""
    reads_frames = model.main_input_name != "input_ids"
    if not reads_frames:
        encoder = model.get_encoder()
        _require_positions(model, "source", batch.source_mask, limit=position_limit(encoder))
        source_ids = batch.source[batch.source_mask]  # (pieces,)
        _require_embedded(model, "source", source_ids, words=_embedded_words(model, encoder))
    decoder = model.get_decoder()
    limit = position_limit(decoder)
    if reads_frames and limit == torch.inf:
        limit = getattr(decoder.config, "max_position_embeddings", torch.inf)
    _require_positions(model, "target", batch.target_mask, limit=limit)
    target_ids = batch.target[batch.target_mask]  # (pieces,)
    if batch.read is not None:
        target_ids = target_ids.maximum(batch.read[batch.target_mask])
    _require_embedded(model, "target", target_ids, words=_embedded_words(model, decoder))


def _require_positions(model: Any, side: str, mask: Tensor, *, limit: int | float) -> None:
    longest = int(mask.sum(1).max())
    if longest > limit:
        raise BadInput(
            f"a {side} has {longest} pieces; {type(model).__name__} has positions for {limit}: cut "
            f"sentences, --longest {limit} or text_batches(..., longest={limit})"
        )


def _require_embedded(model: Any, side: str, ids: Int[Tensor, " pieces"], *, words: int) -> None:
    largest = int(ids.max())
    if largest >= words:
        raise BadInput(
            f"a {side} holds id {largest}; {type(model).__name__} embeds {words}, from 0: use the "
            "tokenizer that the model was trained with"
        )


def position_limit(half: nn.Module) -> int | float:
    """Return how many positions an encoder or a decoder has vectors for.

    Args:
        half: of a model of transformers.

    Returns:
        A number of positions; infinity if the half computes them.

    Example:
        >>> decoder = nn.Module()
        >>> decoder.embed_positions = nn.Embedding(512, 4)
        >>> position_limit(decoder), position_limit(nn.Module())
        (512, inf)
    """
    table = getattr(half, "embed_positions", None)
    if hasattr(table, "make_weight"):  # FSMT's grows with the sentences
        return torch.inf
    if isinstance(table, nn.Embedding):
        return table.num_embeddings - getattr(table, "offset", 0)
    most = most_positions(half)
    return torch.inf if most is None else most


def _embedded_words(model: Any, half: Any) -> int:
    """Return how many words a half embeds; the two halves of a Marian model may have two vocabularies."""
    table = getattr(half, "embed_tokens", None) or half.get_input_embeddings()
    return table.weight.shape[0]
