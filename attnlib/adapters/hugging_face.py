"""Traces of Hugging Face encoder–decoders (T5, BART, mBART, Marian and their kin), through hooks.

What is caught of an attention: the states that its query and key projections read, and the attention that it
returns, against which the scores made of the projections are checked at every batch. A model that computes
its attention in one fused call returns none, so that it is set to ``attn_implementation="eager"``, with a
warning that says so.
"""

import re
import warnings
from collections.abc import Collection
from dataclasses import replace
from typing import Any, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlib.adapters.attended import KEY_SIDE, QUERY_SIDE, Attended, single, site_names
from attnlib.adapters.model_pass import ModelPass
from attnlib.adapters.modules import Hooked, Hooks, Traced, evaluated, probe_by_position, shifted
from attnlib.adapters.token_batch import TokenBatch
from attnlib.errors import BadInput, check_known
from attnlib.models.transformer import AttentionKind

EAGER = 'attn_implementation="eager"'
_KINDS = {  # what models call their attention modules
    "EncDecAttention": "cross",
    "encoder_attn": "cross",
    "SelfAttention": "self",
    "self_attn": "self",
}
_FAMILIES = (  # what attention modules call their projections and their number of heads
    ("q", "k", "n_heads"),  # T5
    ("q_proj", "k_proj", "num_heads"),  # BART, mBART, Marian, M2M100, Pegasus
)


class HuggingFace(Traced):
    """An encoder–decoder of the transformers library, ready to be traced.

    Args:
        model: loaded or built from a config; it is left on its device and in its precision.
        kinds: which attentions to catch.
        layers: which layers of them, from 0; all by default. What is not caught costs no memory.
        ignored: ids of tokens, such as special ones, that no analysis counts.

    Raises:
        BadInput: a model without encoder, decoder or attentions of a known form; a layer that is not there; a
            projection that is wrapped; no kinds or layers at all.
        UnknownName: a kind that does not exist.

    >>> from transformers import T5Config, T5ForConditionalGeneration
    >>> sizes = dict(vocab_size=9, d_model=4, d_kv=2, d_ff=4, num_layers=1, num_heads=2)
    >>> config = T5Config(**sizes, decoder_start_token_id=0, attn_implementation="eager")
    >>> model = HuggingFace(T5ForConditionalGeneration(config))
    >>> (one,) = model.trace(TokenBatch.of_rows([[5, 6, 7]], [[8, 1]])).attended
    >>> one.name, tuple(one.scores.shape)
    ('cross.0', (1, 2, 2, 3))
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        kinds: Collection[AttentionKind] = ("cross",),
        layers: Collection[int] | None = None,
        ignored: Collection[int] = (),
    ):
        for name, given in (("kinds", kinds), ("layers", layers)):
            if given is not None and not len(given):
                raise BadInput(f"{name} is empty: name one or more, or leave {name} out")
        for kind in kinds:
            check_known("kind of attention", kind, get_args(AttentionKind))
        _require_both_halves(model)
        found = _places(model, kinds)
        self.n_layers = {kind: sum(place.kind == kind for place in found) for kind in get_args(AttentionKind)}
        for kind in kinds:
            absent = sorted(set(layers or ()) - {place.layer for place in found if place.kind == kind})
            if absent:
                raise BadInput(
                    f"layers {absent} of {kind}: this model has {self.n_layers[kind]}, counted from 0"
                )
        self._every_layer = [place for place in found if place.kind in kinds]
        for place in self._every_layer:
            _require_projections(model, place)
        caught = [place for place in self._every_layer if layers is None or place.layer in layers]
        super().__init__(model, caught, ignored)
        before = getattr(model.config, "_attn_implementation", None)
        if before != "eager":
            model.set_attn_implementation("eager")
            warnings.warn(
                f"{type(model).__name__} computed its attention by {before!r}, which hides the scores; it is "
                f"set to {EAGER} from here on",
                stacklevel=2,
            )

    def pass_bytes(self, batch: int, source: int, target: int, *, every_layer: bool = False) -> int:
        """Memory of the states, queries, keys, scores and attention of a pass, beside that of the model.

        ``every_layer``: of all layers of the kinds chosen, not only of the layers chosen.
        """
        length = {"source": source, "target": target}
        total = 0
        for place in self._every_layer if every_layer else self.hooked:
            query, key = self._module(place.query), self._module(place.key)
            queries, keys = length[QUERY_SIDE[place.kind]], length[KEY_SIDE[place.kind]]
            states = queries * query.in_features + keys * key.in_features
            projected = (queries + keys) * query.out_features
            size = max(query.weight.element_size(), 4)
            total += size * batch * (states + projected + 2 * place.heads * queries * keys)
        return total

    def table_bytes(self, longest: int) -> int:
        """Memory of the components of all states, once all words were seen at so many positions."""
        halves = {"source": self.model.get_encoder(), "target": self.model.get_decoder()}
        words = {side: _embedded_words(self.model, half) for side, half in halves.items()}
        sites = {}
        for place in self.hooked:
            query, key = site_names(place.kind, place.layer)
            sites[query] = words[QUERY_SIDE[place.kind]], self._module(place.query).in_features
            sites[key] = words[KEY_SIDE[place.kind]], self._module(place.key).in_features
        return sum(8 * (seen * longest + (seen + longest) * width) for seen, width in sites.values())

    def _prepared(self, batch: TokenBatch) -> TokenBatch:
        batch = batch.packed().to(self.model.device)
        sides = {side: getattr(batch, side) * getattr(batch, f"{side}_mask") for side in ("source", "target")}
        batch = replace(batch, **sides)  # at padding any id may have stood
        read = self.read(batch) if batch.read is None else batch.read * batch.target_mask
        batch = replace(batch, read=read)
        _require_within_limits(self.model, batch)
        return batch

    def read(self, batch: TokenBatch) -> Int[Tensor, "batch target"]:
        """What the decoder reads at each step of a batch's targets; BadInput where the model does not say."""
        if type(getattr(self.model.config, "decoder_start_token_id", None)) not in (int, type(None)):
            said = self.model.config.decoder_start_token_id
            raise BadInput(f"config.decoder_start_token_id is {said!r}; expected the id of a token")
        make = getattr(self.model, "prepare_decoder_input_ids_from_labels", None)
        if make is not None:
            try:
                return make(labels=batch.target.masked_fill(~batch.target_mask, -100))
            except (AttributeError, ValueError):  # its config does not say what the decoder starts with
                pass
        start = getattr(self.model.config, "decoder_start_token_id", None)
        start = assumed_start(self.model) if start is None else start
        if start is None:
            raise BadInput(
                f"{type(self.model).__name__} does not say what its decoder starts with: set "
                "config.decoder_start_token_id, or give batches with ``read``"
            )
        return shifted(batch.target, start)

    def logits(self, one: ModelPass) -> Float[Tensor, "batch target words"]:
        """What the model predicts at every step of a pass; BadInput for one without an output layer."""
        with evaluated(self.model):
            source = one.source_tokens * one.source_mask
            return _logits_of(self.model, one, one.source_mask, input_ids=source)

    def _watch(self, hooks: Hooks) -> None:
        super()._watch(hooks)
        if isinstance(head := self.model.get_output_embeddings(), nn.Linear):  # of FSMT, an embedding
            # Of one step alone: logits of all may take more than all else.
            hooks.rewrite(head, lambda given, named: ((given[0][:, :1], *given[1:]), named))

    def _run(self, batch: TokenBatch) -> None:
        self.model(
            input_ids=batch.source,
            attention_mask=batch.source_mask.long(),
            decoder_input_ids=batch.read,
            decoder_attention_mask=batch.target_mask.long(),
            use_cache=False,
        )

    def _attended(self, one: Hooked, hooks: Hooks, **changes: Any) -> Attended:
        query_site, key_site = site_names(one.kind, one.layer)
        bias = self._position_bias(one, hooks.outputs[one.attention])
        sites = {"query_site": query_site, "key_site": key_site}
        return super()._attended(one, hooks, **sites, position_bias=bias, **changes)

    def _position_bias(self, one: Hooked, output: object) -> Tensor | None:
        module = self._module(one.attention)
        attention = output[-1] if isinstance(output, tuple) else None
        if not isinstance(attention, Tensor) or attention.dim() != 4:
            config = getattr(module, "config", None)
            if getattr(config, "_attn_implementation", "eager") == "eager":
                raise BadInput(
                    f"{one.name} returns no attention, though nothing hides it: {type(module).__name__} "
                    "keeps it to itself. Name its projections with attnlib.adapters.Modules instead and say "
                    "unchecked=True, if its states are (batch, length, width)"
                )
            raise BadInput(
                f"{one.name} returns no attention: its scores are computed where they cannot be seen (SDPA "
                f"or flash attention). Load the model with {EAGER}"
            )
        if one.kind == "cross" or not hasattr(module, "has_relative_attention_bias"):
            return None
        if len(output) != 3:  # T5 returns (output, position bias, attention), UMT5 (output, attention)
            raise BadInput(
                f"{one.name} adds a bias by position that {type(module).__name__} does not return: its "
                "scores cannot be made; leave its kind out (cross-attention adds none)"
            )
        return single(output[1])


def assumed_start(model: nn.Module) -> int | None:
    """What a decoder of T5's kin starts with where its config does not say: padding, as T5 was trained."""
    config = model.config
    said = getattr(config, "decoder_start_token_id", None) is not None
    return None if said or "t5" not in config.model_type else getattr(config, "pad_token_id", None)


def lexical_probe(model: nn.Module, one: ModelPass) -> Float[Tensor, "batch target source"]:
    """β of a Hugging Face encoder–decoder: the probability of the right word where l alone is attended to.

    Snell et al. 2021, equation 4, carried over to several layers and heads: every head of every
    cross-attention sees position l and no other, the encoder and all else is as in the pass. Zero at padding.
    It takes a pass of the decoder for each source position.

    Raises:
        BadInput: a model without an output layer.
    """
    with evaluated(model):
        encoded = model.get_encoder()(
            input_ids=one.source_tokens * one.source_mask,
            attention_mask=one.source_mask.long(),
            return_dict=True,
        )

        def logits(position: int) -> Float[Tensor, "batch target words"]:
            alone = torch.zeros_like(one.source_mask)
            alone[:, position] = True
            return _logits_of(model, one, alone, encoder_outputs=encoded)

        return probe_by_position(one, logits)


def _logits_of(model: nn.Module, one: ModelPass, seen: Tensor, **source: Any) -> Tensor:
    """What a model predicts at every step of a pass, where the decoder sees some of the source."""
    found = model(
        **source,
        attention_mask=seen.long(),
        decoder_input_ids=one.target_tokens * one.target_mask,
        decoder_attention_mask=one.target_mask.long(),
        use_cache=False,
    )
    if getattr(found, "logits", None) is None:
        raise BadInput(
            f"{type(model).__name__} predicts no words: load it with its output layer (AutoModelForSeq2SeqLM)"
        )
    return found.logits


# -- where the attentions are --


def _places(model: nn.Module, kinds: Collection[AttentionKind]) -> list[Hooked]:
    """Every attention of a kind that has a known form, in the order of the model; no heads: no known form."""
    found = []
    for path, module in model.named_modules():
        kind = _KINDS.get(path.rpartition(".")[2])
        numbers = re.findall(r"\.(?:layers|block)\.(\d+)\.", path)
        if kind is None or not numbers:
            continue
        if kind == "self":
            kind = "encoder_self" if "encoder" in path.split(".") else "decoder_self"
        place = Hooked(path, path, attention=path, kind=kind, layer=int(numbers[0]))
        for query, key, heads in _FAMILIES:
            if all(hasattr(module, name) for name in (query, key, heads, "scaling")):
                known = {"heads": getattr(module, heads), "scale": float(module.scaling)}
                place = replace(place, query=f"{path}.{query}", key=f"{path}.{key}", **known)
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


def _require_both_halves(model: nn.Module) -> None:
    config = getattr(model, "config", None)
    if config is None:
        raise BadInput(
            f"{type(model).__name__} has no config: it is no model of the transformers library. Name its "
            "modules instead, see attnlib.adapters.Modules"
        )
    read = getattr(model, "main_input_name", "input_ids")
    if read != "input_ids":
        raise BadInput(
            f"{type(model).__name__} reads {read}, which are no words: expected an encoder–decoder of words "
            "such as T5, BART, mBART or Marian; of another, name modules or save passes "
            "(attnlib.adapters.Modules, attnlib analyse --traces)"
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
            f"{place.attention} is {type(model.get_submodule(place.attention)).__name__}, which has no query "
            "and key projections of a known form; take off what wraps it, or leave its kind out"
        )
    for name in (place.query, place.key):
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
    for side, half in (("source", model.get_encoder()), ("target", model.get_decoder())):
        tokens, mask = getattr(batch, side), getattr(batch, f"{side}_mask")
        table = getattr(half, "embed_positions", None)
        longest, limit = int(mask.sum(1).max()), torch.inf
        if isinstance(table, nn.Embedding):
            limit = table.num_embeddings - getattr(table, "offset", 0)
        if longest > limit:
            raise BadInput(
                f"a {side} has {longest} pieces; {type(model).__name__} has positions for {limit}: cut "
                f"sentences, --longest {limit} or text_batches(..., longest={limit})"
            )
        ids = tokens[mask] if side == "source" else tokens[mask].maximum(batch.read[mask])
        words = _embedded_words(model, half)
        if int(ids.max()) >= words:
            raise BadInput(
                f"a {side} holds id {int(ids.max())}; {type(model).__name__} embeds {words}, from 0: use the "
                "tokenizer that the model was trained with"
            )


def _embedded_words(model: Any, half: nn.Module) -> int:
    """Words that a half of a model embeds; the two of a Marian model need not have one vocabulary."""
    return (getattr(half, "embed_tokens", None) or model.get_input_embeddings()).weight.shape[0]
