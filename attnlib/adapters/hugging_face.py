"""Traces of Hugging Face encoder–decoders (T5, BART, mBART, Marian and their kin), through hooks.

What is caught of an attention: the states that its query and key projections read, and the attention that it
returns, against which the scores made of the projections are checked at every batch. A model that computes
its attention in one fused call returns none, so that it is set to ``attn_implementation="eager"``, with a
warning that says so.
"""

import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor, nn

from attnlib.adapters.attended import KEY_SIDE, QUERY_SIDE, Attended, LinearMap, single, site_names
from attnlib.adapters.attention_places import Place, attention_places, require_both_halves
from attnlib.adapters.hooks import Hooks
from attnlib.adapters.model_limits import require_within_limits, words_of
from attnlib.adapters.model_pass import ModelPass
from attnlib.adapters.token_batch import TokenBatch
from attnlib.errors import BadInput, UnknownName
from attnlib.models.transformer import AttentionKind

EAGER = 'attn_implementation="eager"'


class HuggingFace:
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
            if kind not in get_args(AttentionKind):
                raise UnknownName("kind of attention", kind, get_args(AttentionKind))
        require_both_halves(model)
        self.model = model
        self.ignored = tuple(ignored)
        found = attention_places(model, kinds)
        self.n_layers = {kind: sum(place.kind == kind for place in found) for kind in get_args(AttentionKind)}
        for kind in kinds:
            absent = sorted(set(layers or ()) - {place.layer for place in found if place.kind == kind})
            if absent:
                raise BadInput(
                    f"layers {absent} of {kind}: this model has {self.n_layers[kind]}, counted from 0"
                )
        self._of_kinds = [place for place in found if place.kind in kinds]
        self._places = [place for place in self._of_kinds if layers is None or place.layer in layers]
        for place in self._of_kinds:
            place.require_projections()
        _be_eager(model)

    def pass_bytes(self, batch: int, source: int, target: int, *, every_layer: bool = False) -> int:
        """Memory that is caught of a pass of so many samples and pieces, scores included.

        It comes beside the model and what the model takes to run; logits are made of one step only.

        Args:
            every_layer: of all layers of the kinds chosen, not only of the layers chosen.

        One layer of cross-attention in a model of width 1,024 with 16 heads, 32 × 64 pieces a side:

        ===========================  ====================================  ========
        states that are read         2 × 32 × 64 × 1,024 × 4 bytes         16.8 MB
        queries and keys             the same                              16.8 MB
        scores and attention         2 × 32 × 16 × 64 × 64 × 4 bytes       16.8 MB
        ===========================  ====================================  ========
        """
        length = {"source": source, "target": target}
        total = 0
        for place in self._of_kinds if every_layer else self._places:
            asks, answers = length[QUERY_SIDE[place.kind]], length[KEY_SIDE[place.kind]]
            size = max(place.query.weight.element_size(), 4)
            states = asks * place.query.in_features + answers * place.key.in_features
            projected = (asks + answers) * place.query.out_features
            total += size * batch * (states + projected + 2 * place.heads * asks * answers)
        return total

    def table_bytes(self, longest: int) -> int:
        """Memory of the components of all states, once the whole vocabulary was seen, in float64.

        Args:
            longest: positions. The tables stand twice in memory while they are merged or judged by.
        """
        halves = {"source": self.model.get_encoder(), "target": self.model.get_decoder()}
        words = {side: words_of(self.model, half) for side, half in halves.items()}
        sites = {}
        for place in self._places:
            asks, answers = site_names(place.kind, place.layer)
            sites[asks] = words[QUERY_SIDE[place.kind]], place.query.in_features
            sites[answers] = words[KEY_SIDE[place.kind]], place.key.in_features
        return sum(8 * (seen * longest + (seen + longest) * width) for seen, width in sites.values())

    def traces(self, batches: Iterable[TokenBatch]) -> Iterator[ModelPass]:
        """One pass after the other; no more than one is held."""
        for batch in batches:
            yield self.trace(batch)

    def trace(self, batch: TokenBatch) -> ModelPass:
        """The pass of one batch, without dropout, under teacher forcing.

        Raises:
            BadInput: the model returns no attention, or another than its projections make; a sentence longer
                than it has positions for, or an id that it does not embed.
        """
        batch = batch.packed().to(self.model.device)
        sides = {side: getattr(batch, side) * getattr(batch, f"{side}_mask") for side in ("source", "target")}
        batch = replace(batch, **sides)  # at padding any id may have stood
        read = self._read(batch) if batch.read is None else batch.read * batch.target_mask
        require_within_limits(self.model, replace(batch, read=read))
        with Hooks(self.model) as hooks:
            for place in self._places:
                hooks.catch_input(f"{place.name}.query", place.query)
                hooks.catch_input(f"{place.name}.key", place.key)
                hooks.catch_output(place.name, place.module)
            if isinstance(head := self.model.get_output_embeddings(), nn.Linear):  # of FSMT, an embedding
                hooks.rewrite(head, _of_one_step)  # logits of all steps may take more than all else
            self.model(
                input_ids=batch.source,
                attention_mask=batch.source_mask.long(),
                decoder_input_ids=read,
                decoder_attention_mask=batch.target_mask.long(),
                use_cache=False,
            )
        found = ModelPass(
            source_tokens=batch.source,
            source_mask=batch.source_mask,
            target_tokens=read,
            target_outputs=batch.target,
            target_mask=batch.target_mask,
            attended=tuple(_attended(place, hooks) for place in self._places),
        )
        found.check()
        return found.ignoring(self.ignored)

    def _read(self, batch: TokenBatch) -> Tensor:
        make = getattr(self.model, "prepare_decoder_input_ids_from_labels", None)
        if make is not None:
            return make(labels=batch.target.masked_fill(~batch.target_mask, -100))
        start = self.model.config.decoder_start_token_id
        if start is None:
            raise BadInput(
                f"{type(self.model).__name__} does not say what its decoder starts with: set "
                "config.decoder_start_token_id, or give batches with ``read``"
            )
        return torch.cat([torch.full_like(batch.target[:, :1], start), batch.target[:, :-1]], dim=1)


def _of_one_step(given: tuple, named: dict) -> tuple[tuple, dict]:
    """Lets an output layer read the first step alone."""
    states, *others = given
    return (states[:, :1], *others), named


def _attended(place: Place, hooks: Hooks) -> Attended:
    bias, attention = _returned(place, hooks.outputs[place.name])
    asks, answers = site_names(place.kind, place.layer)
    return Attended(
        kind=place.kind,
        layer=place.layer,
        query_inputs=single(hooks.inputs[f"{place.name}.query"]),
        key_inputs=single(hooks.inputs[f"{place.name}.key"]),
        query_site=asks,
        key_site=answers,
        query_map=LinearMap.of(place.query, place.heads),
        key_map=LinearMap.of(place.key, place.heads),
        scale=float(place.module.scaling),
        position_bias=bias,
        attention=attention,
        causal=place.kind == "decoder_self",
        precision=hooks.inputs[f"{place.name}.query"].dtype,
    )


def _returned(place: Place, output: object) -> tuple[Tensor | None, Tensor]:
    attention = output[-1] if isinstance(output, tuple) else None
    if not isinstance(attention, Tensor) or attention.dim() != 4:
        config = getattr(place.module, "config", None)
        if getattr(config, "_attn_implementation", "eager") == "eager":
            raise BadInput(
                f"{place.name} returns no attention, though nothing hides it: {type(place.module).__name__} "
                "keeps it to itself. Name its projections with attnlib.adapters.Modules instead and say "
                "unchecked=True, if its states are (batch, length, width)"
            )
        raise BadInput(
            f"{place.name} returns no attention: its scores are computed where they cannot be seen (SDPA or "
            f"flash attention). Load the model with {EAGER}"
        )
    if place.kind == "cross" or not hasattr(place.module, "has_relative_attention_bias"):
        return None, attention
    if len(output) != 3:  # T5 returns (output, position bias, attention), UMT5 (output, attention)
        raise BadInput(
            f"{place.name} adds a bias by position that {type(place.module).__name__} does not return: its "
            "scores cannot be made; leave its kind out (cross-attention adds none)"
        )
    return single(output[1]), attention


def _be_eager(model: Any) -> None:
    before = getattr(model.config, "_attn_implementation", None)
    if before != "eager":
        model.set_attn_implementation("eager")
        warnings.warn(
            f"{type(model).__name__} computed its attention by {before!r}, which hides the scores; it is set "
            f"to {EAGER} from here on",
            stacklevel=3,
        )
