"""Trace models of one stack: decoders alone (GPT-2, Llama and the like), encoders alone (BERT).

Such a model reads one sequence, and its only attentions are those of the sequence to itself. For each of them
this module catches what its query and key projections read, the rotation by position that it is given, and
the attention that it returns. In every batch the scores that the projections make are compared with that
attention.

====================  ====================================================================================
in the model          in the scores
====================  ====================================================================================
rotary positions      every part is rotated, see :class:`~attnlib.linear_map.Rotary`, by the tables of
                      the model itself, so that any rule that changes only the tables is followed
grouped queries       each key head is repeated for the query heads that share it
sliding window        steps before the window are not seen: ``window`` of the attention
fused projections     cut into the rows of the queries and those of the keys
normed queries, keys  refused: a norm is not linear, so that parts of a state do not become terms
====================  ====================================================================================
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.adapters.eager import eager
from attnlib.adapters.modules import Hooks, ModelAdapter, evaluated, require_plain_weight
from attnlib.adapters.token_batch import SequenceBatch, sequences_of_mapping
from attnlib.arrays import as_tuple
from attnlib.errors import BadInput, check_known
from attnlib.former_names import former_object
from attnlib.linear_map import LinearMap, Rotary, single
from attnlib.trace import Attention, AttentionKind, Trace, site_names

Operand = Literal["query", "key"]  # of the product that a score is
Layout = Literal["apart", "thirds", "by head"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Structure of the attention modules of a family of models.

    Attributes:
        models: names of some of these models.
        query: name of the query projection.
        key: name of the key projection; the same name if one projection makes both.
        layout: "apart": a projection for the queries and one for the keys. "thirds": one projection, whose
            rows are those of the queries, of the keys and of the values. "by head": one projection, in which
            the three are together for each head.
        is_turned: whether the weight is stored input first, as in transformers' Conv1D.
        softmax_in_single: whether softmax is computed in float32 even if the model is in float64.

    Example:
        >>> Family(models="GPT-2", query="c_attn", key="c_attn", layout="thirds", is_turned=True).layout
        'thirds'
    """

    models: str
    query: str
    key: str
    layout: Layout = "apart"
    is_turned: bool = False
    softmax_in_single: bool = False


FAMILIES = (
    Family(models="GPT-2", query="c_attn", key="c_attn", layout="thirds", is_turned=True),
    Family(
        models="GPT-NeoX",
        query="query_key_value",
        key="query_key_value",
        layout="by head",
        softmax_in_single=True,
    ),
    Family(models="OPT, Llama, Mistral, Qwen2", query="q_proj", key="k_proj", softmax_in_single=True),
    Family(models="BERT, RoBERTa", query="query", key="key"),
    Family(models="DistilBERT", query="q_lin", key="k_lin"),
)
_NAMES_OF_ATTENTION = ("attn", "attention", "self_attn", "self")
_NAMES_OF_HEADS = ("num_heads", "num_attention_heads", "n_heads")
_NORM_OF_QUERIES_OR_KEYS = re.compile(r"(q|k|qk|query|key)_?\w*norm")
_NAMES_OF_POSITIONS = ("wpe", "embed_positions", "position_embeddings")
_INSTEAD = (
    "name its modules instead (attnlib.Modules), or give tensors that your code saves "
    "(attnlib.pass_of_tensors)"
)


@dataclass(frozen=True, kw_only=True)
class SelfAttention:
    """One self-attention of a model: where it is, and what its scores need besides weights and states.

    Attributes:
        path: of its module, as in ``model.named_modules()``.
        family: how the module is built.
        kind: "decoder_self" if it is causal, else "encoder_self".
        layer: its number, from 0.
        heads: number of query heads.
        key_heads: number of key heads; fewer than ``heads`` if several query heads share one.
        scale: of the product of query and key.
        window: how many steps are seen, the step itself included; None: all before it.

    Example:
        >>> gpt2 = FAMILIES[0]
        >>> sizes = dict(layer=3, heads=12, key_heads=12, scale=0.125, window=None)
        >>> place = SelfAttention(path="h.3.attn", family=gpt2, kind="decoder_self", **sizes)
        >>> place.name, place.query_path
        ('decoder_self.3', 'h.3.attn.c_attn')
    """

    path: str
    family: Family
    kind: AttentionKind
    layer: int
    heads: int
    key_heads: int
    scale: float
    window: int | None

    @property
    def name(self) -> str:
        """Kind and layer, such as ``"decoder_self.0"``."""
        return f"{self.kind}.{self.layer}"

    @property
    def query_path(self) -> str:
        """The path of the projection of queries, whose input is caught."""
        return f"{self.path}.{self.family.query}"


def is_single_stack(model: object) -> bool:
    """Return True for a model of transformers that is a decoder or an encoder alone.

    Args:
        model: anything.

    Returns:
        False for an encoder–decoder, and for anything that is not a model of transformers.

    Example:
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> is_single_stack(GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=2)))
        True
        >>> is_single_stack(nn.Linear(2, 2))
        False
    """
    config = getattr(model, "config", None)
    if config is None or not hasattr(model, "main_input_name"):
        return False
    return not getattr(config, "is_encoder_decoder", False)


class SingleStack(ModelAdapter):
    """Trace a decoder or an encoder of the transformers library, alone.

    ``attnlib.adapter_of(model)`` makes one for such a model. A pass has one sequence, which is both its
    source and its target: see :meth:`~attnlib.trace.Trace.of_one_sequence`.

    Args:
        model: loaded, or built from a config; it stays on its device and in its precision.
        kinds: "decoder_self" for a decoder, "encoder_self" for an encoder, which is the default.
        layers: which layers, from 0; all by default. Others cost no memory.
        ignored: ids of tokens, such as special ones, that no analysis counts.

    Attributes:
        kind: of its attentions.
        attentions: those that are caught.
        n_layers: how many layers the model has.

    Raises:
        BadInput: the model has the form of none of :data:`FAMILIES`; it norms or clips its queries and keys,
            or caps its scores; a projection is wrapped; it lacks a kind or a layer.
        UnknownName: a kind does not exist.

    Example:
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> config = GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=2, n_positions=8)
        >>> model = SingleStack(GPT2LMHeadModel(config))
        >>> (attention,) = model.trace({"input_ids": [[5, 6, 7]]}).attentions
        >>> attention.name, tuple(attention.scores.shape)
        ('decoder_self.0', (1, 2, 3, 3))
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        kinds: AttentionKind | Collection[AttentionKind] | None = None,
        layers: int | Collection[int] | None = None,
        ignored: int | Collection[int] = (),
    ):
        every_layer = find_self_attentions(model)
        self.kind = every_layer[0].kind
        _require_kinds(model, as_tuple(kinds), self.kind)
        chosen = every_layer if layers is None else _of_layers(every_layer, as_tuple(layers))
        super().__init__(model, (), ignored)
        self.attentions = tuple(chosen)
        self._every_layer = every_layer
        self.n_layers = len(every_layer)
        for attention in every_layer:
            _require_linear_scores(self._module(attention.path), attention)

    def trace(self, batch: SequenceBatch | Mapping[str, Any]) -> Trace:
        """Run the model on one batch, without dropout and gradients.

        Args:
            batch: sequences, or a mapping with ``input_ids`` and ``attention_mask``, such as a
                ``BatchEncoding``. Padding may be on either side: rows are moved to the left, so that
                positions are counted from the first token of each.

        Returns:
            The validated trace, padded at the right, with the chosen attentions.

        Raises:
            BadInput: the model cannot take the batch, or an attention is not the softmax of its scores.
        """
        batch = self._prepared(self._batch_of(batch))
        with eager(self.model), Hooks(self.model) as hooks:
            self._watch(hooks)
            self._run(batch)
        attentions = [self._attention(attention, hooks) for attention in self.attentions]
        trace = Trace.of_one_sequence(batch.tokens, batch.mask, attentions)
        try:
            return trace.ignoring(self.ignored).validated()
        except BadInput as error:
            if all(attention.query_rotation is None for attention in attentions):
                raise
            raise BadInput(
                f"{error}. {type(self.model).__name__} rotates queries and keys by position; pairs "
                "of coordinates other than those of Llama and GPT-NeoX, such as neighbours in Cohere, are "
                f"not followed: {_INSTEAD}"
            ) from error

    def logits(self, trace: Trace) -> Float[Tensor, "batch length words"]:
        """Return what a decoder predicts at every step of a pass.

        Args:
            trace: of the pass, which is run again.

        Returns:
            Logits of each word.

        Raises:
            BadInput: the model is an encoder, which predicts no following words, or has no output layer.
        """
        if self.kind == "encoder_self":
            raise BadInput(
                f"{type(self.model).__name__} is an encoder, which predicts no following words: leave "
                "logits out"
            )
        tokens = trace.target_tokens * trace.target_mask
        mask = self._mask_of_model(trace.target_mask)
        with evaluated(self.model), eager(self.model):
            output = self.model(input_ids=tokens, attention_mask=mask, use_cache=False)
        logits = getattr(output, "logits", None)
        if logits is None or logits.dim() != 3:
            raise BadInput(
                f"{type(self.model).__name__} predicts no words: load it with its output layer "
                "(AutoModelForCausalLM), or leave logits out"
            )
        return logits

    def pass_bytes(self, batch: int, length: int, *, every_layer: bool = False) -> int:
        """Return the memory of a trace in bytes: its states, queries, keys, scores and attention.

        Args:
            batch: number of sequences.
            length: tokens of each.
            every_layer: count all layers, not only the chosen ones.
        """
        total = 0
        for attention in self._every_layer if every_layer else self.attentions:
            n_rows, width = self._map(attention, "query").weight.flatten(0, 1).shape
            states = length * width
            queries_and_keys = 2 * length * n_rows
            scores_and_attention = 2 * attention.heads * length * length
            total += 4 * batch * (states + queries_and_keys + scores_and_attention)
        return total

    def table_bytes(self, longest: int) -> int:
        """Return the bytes that the components of all states take once every word was seen at every position.

        Args:
            longest: number of positions.

        Returns:
            Bytes, of tables in double precision.
        """
        n_words, width = self.model.get_input_embeddings().weight.shape
        counts = n_words * longest
        sums = (n_words + longest) * width
        return 8 * len(self.attentions) * (counts + sums)

    def _batch_of(self, batch: object) -> SequenceBatch:
        if isinstance(batch, SequenceBatch):
            return batch
        if isinstance(batch, Mapping):
            return sequences_of_mapping(batch)
        raise BadInput(
            f"a batch is {type(batch).__name__}; {type(self.model).__name__} reads one sequence: give an "
            "attnlib.SequenceBatch, or what a tokenizer returns, with input_ids and attention_mask"
        )

    def _prepared(self, batch: SequenceBatch) -> SequenceBatch:
        """Return the batch padded at the right, with an id that is embedded, on the model's device."""
        words = self.model.get_input_embeddings().weight.shape[0]
        padding = getattr(self.model.config, "pad_token_id", None)
        if padding is None or not 0 <= padding < words:
            padding = 0
        batch = batch.packed(padding).to(self.model.device)
        largest = int(batch.tokens.max())
        if largest >= words:
            raise BadInput(
                f"a sequence holds id {largest}; {type(self.model).__name__} embeds {words}, from 0: use the "
                "tokenizer that the model was trained with"
            )
        limit = most_positions(self.model)
        length = batch.tokens.shape[1]
        if limit is not None and length > limit:
            raise BadInput(
                f"a sequence has {length} pieces; {type(self.model).__name__} has positions for {limit}: cut "
                f"sequences, as sequence_batches(..., longest={limit}) does"
            )
        takes_types = "token_type_ids" in signature(self.model.base_model.forward).parameters
        if batch.token_types is not None and not takes_types:
            raise BadInput(f"{type(self.model).__name__} reads no token_type_ids: take them out of the batch")
        return batch

    def _watch(self, hooks: Hooks) -> None:
        for attention in self.attentions:
            module = self._module(attention.path)
            hooks.catch_input(attention.query_path, self._module(attention.query_path))
            hooks.catch_output(attention.path, module)
            hooks.rewrite(module, partial(_keep_rotation, hooks=hooks, path=attention.path))

    def _run(self, batch: SequenceBatch) -> None:
        """Run the stack, without the output layer: logits may take more memory than all that is caught."""
        arguments: dict[str, Any] = {
            "input_ids": batch.tokens,
            "attention_mask": self._mask_of_model(batch.mask),
        }
        if batch.token_types is not None:
            arguments["token_type_ids"] = batch.token_types
        if self.kind == "decoder_self":
            arguments["use_cache"] = False
        self.model.base_model(**arguments)

    def _mask_of_model(self, mask: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
        """Return the attention mask to call the model with.

        A causal step sees nothing of the padding at its right, so that a decoder needs no mask. With a mask,
        a position of padding a whole window behind the last token would see nothing: in float64 its attention
        would be NaN, and so would all states of its sample that depend on it.
        """
        if self.kind == "decoder_self":
            return torch.ones_like(mask, dtype=torch.int64)
        return mask.long()

    def _attention(self, attention: SelfAttention, hooks: Hooks) -> Attention:
        if attention.query_path not in hooks.inputs:
            raise BadInput(f"{attention.path} was not run: does it belong to another path through the model?")
        states = hooks.inputs[attention.query_path]  # (batch, length, width)
        query_site, key_site = site_names(attention.kind, attention.layer)
        rotation = _rotation_of(hooks, attention.path)
        precision = states.dtype
        if precision == torch.float64 and attention.family.softmax_in_single:
            precision = torch.float32
        return Attention(
            kind=attention.kind,
            layer=attention.layer,
            query_inputs=single(states),
            key_inputs=single(states),
            query_site=query_site,
            key_site=key_site,
            maps=(self._map(attention, "query"), self._map(attention, "key")),
            scale=attention.scale,
            query_rotation=rotation,
            key_rotation=rotation,
            weights=self._returned_attention(attention, hooks),
            causal=attention.kind == "decoder_self",
            window=attention.window,
            precision=precision,
        )

    def _map(self, attention: SelfAttention, operand: Operand) -> LinearMap:
        """Return the projection of one operand, with as many heads as there are of queries."""
        family = attention.family
        name = family.query if operand == "query" else family.key
        projection = self._module(f"{attention.path}.{name}")
        weight = projection.weight.T if family.is_turned else projection.weight  # (rows, width)
        weight = _rows_of(weight, attention, operand)
        bias = None if projection.bias is None else _rows_of(projection.bias, attention, operand)
        if operand == "query":
            return LinearMap.of_rows(weight, bias, attention.heads)
        return LinearMap.of_rows(weight, bias, attention.key_heads).shared_by(attention.heads)

    def _returned_attention(
        self, attention: SelfAttention, hooks: Hooks
    ) -> Float[Tensor, "batch heads length length"]:
        output = hooks.outputs[attention.path]
        weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
        if not isinstance(weights, Tensor) or weights.dim() != 4:
            raise BadInput(
                f"{attention.name} returns no attention: {type(self._module(attention.path)).__name__} keeps "
                f"it to itself, so that nothing can check its scores; {_INSTEAD}"
            )
        return weights


# -- weights --


def _rows_of(
    rows: Float[Tensor, "rows ..."], attention: SelfAttention, operand: Operand
) -> Float[Tensor, "operand_rows ..."]:
    """Return the rows of one operand, of a weight or of a bias, head after head."""
    index = 0 if operand == "query" else 1
    match attention.family.layout:
        case "apart":
            return rows
        case "thirds":
            return rows.chunk(3)[index]
        case "by head":
            return rows.unflatten(0, (attention.heads, 3, -1))[:, index].flatten(0, 1)


def _keep_rotation(args: tuple, kwargs: dict, *, hooks: Hooks, path: str) -> tuple[tuple, dict]:
    """Keep the tables of rotations that an attention module is called with, and leave its arguments alone."""
    tables = kwargs.get("position_embeddings")
    if tables is not None:
        cos, sin = tables
        hooks.inputs[f"{path}:cos"] = cos
        hooks.inputs[f"{path}:sin"] = sin
    return args, kwargs


def _rotation_of(hooks: Hooks, path: str) -> Rotary | None:
    if f"{path}:cos" not in hooks.inputs:
        return None
    # (1 or batch, length, rotated); rows are padded at the right, so that all have the same positions
    cos, sin = hooks.inputs[f"{path}:cos"], hooks.inputs[f"{path}:sin"]
    return Rotary(single(cos[0]), single(sin[0]))


# -- where the attentions are, and what is refused --


def find_self_attentions(model: Any) -> list[SelfAttention]:
    """Return the self-attentions of a model of one stack, in order.

    Args:
        model: a model of the transformers library.

    Returns:
        At least one, all of one kind.

    Raises:
        BadInput: the model reads no words, none of its attentions has a known form, or it has more than one
            stack.

    Example:
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_layer=2, n_head=2))
        >>> [attention.name for attention in find_self_attentions(model)]
        ['decoder_self.0', 'decoder_self.1']
    """
    name = type(model).__name__
    if getattr(model, "main_input_name", "input_ids") != "input_ids":
        raise BadInput(
            f"{name} reads {model.main_input_name}, not words, and writes none: expected a decoder or an "
            f"encoder of words, or an encoder–decoder; {_INSTEAD}"
        )
    attentions = []
    for path, module in model.named_modules():
        attention = _self_attention(path, module, model.config)
        if attention is not None:
            attentions.append(attention)
    if not attentions:
        known = ", ".join(family.models for family in FAMILIES)
        raise BadInput(f"{name} has no self-attention in the form of {known}: {_INSTEAD}")
    names = [attention.name for attention in attentions]
    kinds = {attention.kind for attention in attentions}
    if len(set(names)) < len(names) or len(kinds) > 1:
        raise BadInput(
            f"{name} has more than one stack of self-attentions: give one of them alone, or {_INSTEAD}"
        )
    return attentions


def layer_of(path: str) -> int | None:
    """Return the number of the layer that a module of transformers is in; None if it is in no layer.

    Args:
        path: of the module, as in ``model.named_modules()``.

    Example:
        >>> layer_of("decoder.block.3.layer.1.EncDecAttention"), layer_of("lm_head")
        (3, None)
    """
    numbers = re.findall(r"\.(?:layers|layer|block|h)\.(\d+)\.", f".{path}.")
    return int(numbers[0]) if numbers else None


def _self_attention(path: str, module: Any, config: Any) -> SelfAttention | None:
    """Return what a module is if it is a self-attention of a known form, else None."""
    layer = layer_of(path)
    if path.rpartition(".")[2] not in _NAMES_OF_ATTENTION or layer is None:
        return None
    for family in FAMILIES:
        names = (family.query, family.key, "scaling", "is_causal")
        if not all(hasattr(module, name) for name in names):
            continue
        if family.is_turned and isinstance(getattr(module, family.query), nn.Linear):
            continue  # GPT-BigCode has GPT-2's names, and one key head for all
        heads = _heads_of(module, config)
        return SelfAttention(
            path=path,
            family=family,
            kind="decoder_self" if module.is_causal else "encoder_self",
            layer=layer,
            heads=heads,
            key_heads=heads // getattr(module, "num_key_value_groups", 1),
            scale=float(module.scaling),
            window=_window_of(module, config),
        )
    return None


def _heads_of(module: nn.Module, config: Any) -> int:
    for name in _NAMES_OF_HEADS:
        if hasattr(module, name):
            return int(getattr(module, name))
    return int(config.num_attention_heads)


def _window_of(module: Any, config: Any) -> int | None:
    """Return the window of a causal layer: that of the module if it has one, else that of the config."""
    if not module.is_causal:
        return None
    if hasattr(module, "sliding_window"):
        return module.sliding_window
    return getattr(config, "sliding_window", None)


def _require_kinds(model: nn.Module, kinds: tuple | None, kind: AttentionKind) -> None:
    if kinds is None:
        return
    if not kinds:
        raise BadInput("kinds is empty: name one or more, or leave kinds out")
    half = "a decoder" if kind == "decoder_self" else "an encoder"
    for chosen in kinds:
        check_known("kind of attention", chosen, get_args(AttentionKind))
        if chosen != kind:
            raise BadInput(
                f"{type(model).__name__} is {half} alone, and has no {chosen} attention: leave kinds out, or "
                f"say kinds={kind!r}"
            )


def _of_layers(attentions: list[SelfAttention], layers: tuple) -> list[SelfAttention]:
    if not layers:
        raise BadInput("layers is empty: name one or more, or leave layers out")
    absent = sorted(set(layers) - {attention.layer for attention in attentions})
    if absent:
        kind = attentions[0].kind
        raise BadInput(f"layers {absent} of {kind}: this model has {len(attentions)}, counted from 0")
    return [attention for attention in attentions if attention.layer in layers]


def _require_linear_scores(module: nn.Module, attention: SelfAttention) -> None:
    """Refuse an attention whose scores are more than products of two projections of a known form."""
    require_scores_of_products(attention.path, module)
    for name in {attention.family.query, attention.family.key}:
        _require_projection(f"{attention.path}.{name}", getattr(module, name), attention.family)


def require_scores_of_products(path: str, module: nn.Module) -> None:
    """Refuse an attention that norms, clips or caps what its projections make, or has a sink.

    Args:
        path: of the attention, as in ``model.named_modules()``.
        module: the attention.

    Raises:
        BadInput: its scores are not linear in the states.

    Example:
        >>> require_scores_of_products("attention", nn.ModuleDict({"q_proj": nn.Linear(2, 2)}))
        >>> normed = nn.ModuleDict({"q_norm": nn.LayerNorm(2)})
        >>> require_scores_of_products("attention", normed)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        attnlib.errors.BadInput: attention (ModuleDict) norms its queries or keys (q_norm), ...
    """
    config = getattr(module, "config", None)
    place = f"{path} ({type(module).__name__})"
    for name, child in module.named_children():
        if _NORM_OF_QUERIES_OR_KEYS.fullmatch(name) and not isinstance(child, nn.Identity):
            raise BadInput(
                f"{place} norms its queries or keys ({name}), which is not linear: parts of a state do not "
                "become terms of the score. Give states after the norm as tensors that need no projection "
                "(attnlib.pass_of_tensors)"
            )
    if getattr(config, "clip_qkv", None) is not None:
        raise BadInput(f"{place} clips its queries and keys (clip_qkv), which is not linear; {_INSTEAD}")
    if getattr(config, "attn_logit_softcapping", None) is not None:
        raise BadInput(
            f"{place} caps its scores (attn_logit_softcapping), which is not linear. Give its states and "
            "weights as tensors, without the attention (attnlib.pass_of_tensors): the terms are then of the "
            "scores before the cap"
        )
    if hasattr(module, "sinks"):
        raise BadInput(
            f"{place} lets attention go to a sink that is not a token, and has no terms; {_INSTEAD}"
        )


def _require_projection(path: str, projection: nn.Module, family: Family) -> None:
    """Refuse a projection that need not compute what its weight says, such as a quantised one."""
    kind = f"{type(projection).__module__}.{type(projection).__qualname__}"
    if family.is_turned:
        is_plain = kind == "transformers.pytorch_utils.Conv1D"
        expected = "transformers' Conv1D"
    else:
        is_plain = isinstance(projection, nn.Linear) and type(projection).forward is nn.Linear.forward
        expected = "torch.nn.Linear"
    if not is_plain:
        raise BadInput(
            f"{path} is of the class {kind}, which may compute something else than {expected} does. "
            "Remove its wrapper (with peft: model.merge_and_unload(); if quantised: load the model in full)"
        )
    require_plain_weight(path, projection)


def most_positions(model: nn.Module) -> int | None:
    """Return how many positions a model has vectors for.

    Args:
        model: of transformers, or a part of one.

    Returns:
        A number of positions; None if the model computes them.

    Example:
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> sizes = dict(vocab_size=9, n_embd=4, n_layer=1, n_head=2, n_positions=8)
        >>> most_positions(GPT2LMHeadModel(GPT2Config(**sizes)))
        8
    """
    for path, module in model.named_modules():
        if path.rpartition(".")[2] in _NAMES_OF_POSITIONS and isinstance(module, nn.Embedding):
            offset = getattr(module, "offset", 0)
            if module.padding_idx is not None:  # RoBERTa counts from the place after that of padding
                offset = module.padding_idx + 1
            return module.num_embeddings - offset
    return None


def __getattr__(name: str) -> Any:
    return former_object(__name__, {"Side": f"{__name__}.Operand"}, name)
