"""Traces of any ``torch.nn.Module``, by the names of its modules.

::

    hooked = Hooked("cross.to_q", "cross.to_k", heads=8, attention="cross.softmax")
    model = Modules(network, [hooked], lambda network, batch: network(batch.source, batch.read))
    for one in model.traces(batches): ...
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.adapters.attended import Attended, LinearMap, single
from attnlib.adapters.forced_attention import by_place, logits_of, on_one
from attnlib.adapters.hooked import Hooked
from attnlib.adapters.hooks import Hooks
from attnlib.adapters.model_pass import ModelPass
from attnlib.adapters.token_batch import TokenBatch
from attnlib.adapters.torch_attention import packed_maps, slow_path, told_to_return, told_to_see
from attnlib.errors import BadInput

Run = Callable[[nn.Module, TokenBatch], object]


class Modules:
    """A model of which some modules are watched.

    Args:
        model: any module, left as it is.
        hooked: the attentions to catch.
        run: calls the model on a packed batch, with ``batch.read`` as what its decoder reads. What it returns
            matters for :meth:`lexical_probe` alone: logits, or an object that has them as ``logits``.
        start: read at the first step where batches do not say what is read; later steps read the target.
        unchecked: allow attentions for which ``attention`` is not given.
        ignored: ids of tokens, such as special ones, that no analysis counts.

    Raises:
        BadInput: a module that is not there or is no projection; an attention that nothing would check; two
            attentions of one kind and layer; none at all.

    >>> attend = nn.MultiheadAttention(4, 2, batch_first=True)
    >>> network = nn.ModuleDict({"words": nn.Embedding(9, 4), "attend": attend})
    >>> def run(network, batch):
    ...     asks, answers = network["words"](batch.read), network["words"](batch.source)
    ...     return network["attend"](asks, answers, answers, key_padding_mask=~batch.source_mask)
    >>> model = Modules(network, [Hooked("attend", "attend")], run, start=1)
    >>> tuple(model.trace(TokenBatch.of_rows([[5, 6, 7]], [[8, 2]])).attended[0].scores.shape)
    (1, 2, 2, 3)
    """

    def __init__(
        self,
        model: nn.Module,
        hooked: Sequence[Hooked],
        run: Run,
        *,
        start: int | None = None,
        unchecked: bool = False,
        ignored: Collection[int] = (),
    ):
        self.model, self.run, self.start, self.ignored = model, run, start, tuple(ignored)
        self._modules = dict(model.named_modules())
        self.hooked = tuple(hooked)
        if not self.hooked:
            raise BadInput("no attention is hooked: name the modules of one or more")
        names = [one.name for one in self.hooked]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"{names.count(name)} attentions are called {name}: give each a layer")
        for one in self.hooked:
            self._require(one, unchecked)

    def _require(self, one: Hooked, unchecked: bool) -> None:
        if self._is_packed(one):
            if one.key != one.query:
                raise BadInput(f"{one.query} makes queries and keys: name it for both, not {one.key!r}")
            packed_maps(self._module(one.query))
            return
        for name in (one.query, one.key):
            if not isinstance(self._module(name), nn.Linear):
                raise BadInput(
                    f"{name} is {type(self._module(name)).__name__}; expected nn.Linear, a projection, or "
                    "nn.MultiheadAttention"
                )
        if one.heads < 1:
            raise BadInput(f"{one.name}: heads is {one.heads}; say how many share {one.query}")
        if one.attention is not None:
            self._module(one.attention)
        elif not unchecked:
            raise BadInput(
                f"{one.name}: nothing checks the scores made of {one.query} and {one.key}. Name a module "
                "that returns the attention (a fused one, F.scaled_dot_product_attention or flash attention, "
                "has to be replaced by a softmax), or say unchecked=True"
            )

    def traces(self, batches: Iterable[TokenBatch]) -> Iterator[ModelPass]:
        """One pass after the other; no more than one is held."""
        for batch in batches:
            yield self.trace(batch)

    def trace(self, batch: TokenBatch) -> ModelPass:
        """The pass of one batch, without dropout and gradient.

        Raises:
            BadInput: a named module was not run, or more than once, or returns no attention, or another than
                the projections make; a batch does not say what is read, and there is no ``start``.
        """
        batch = self._with_read(batch.packed())
        weights = next(self.model.parameters(), None)
        batch = batch if weights is None else batch.to(weights.device)
        with Hooks(self.model) as hooks, slow_path():
            self._watch(hooks)
            self.run(self.model, batch)
        found = ModelPass(
            source_tokens=batch.source,
            source_mask=batch.source_mask,
            target_tokens=batch.read,
            target_outputs=batch.target,
            target_mask=batch.target_mask,
            attended=tuple(self._attended(one, hooks) for one in self.hooked),
        )
        found.check()
        return found.ignoring(self.ignored)

    def lexical_probe(self, one: ModelPass) -> Float[Tensor, "batch target source"]:
        """β of every pair of positions: the probability of the right word where one position alone is seen.

        Snell et al. 2021, equation 4: every head of every cross-attention that is hooked sees that position
        and no other; name them all. Zero at padding. It takes a pass of the model for each source position
        and one for each attention.

        Raises:
            BadInput: no cross-attention is hooked; the model does not go on with the attention that a named
                module returns, so that it cannot be forced; ``run`` returns no logits.
        """
        crossing = [hooked for hooked in self.hooked if hooked.kind == "cross"]
        if not crossing:
            raise BadInput("no cross-attention is hooked: nothing can be made to see one source position")
        batch = TokenBatch(
            one.source_tokens, one.source_mask, one.target_outputs, one.target_mask, one.target_tokens
        )
        for hooked in crossing:
            self._require_forcible(hooked, batch)
        return by_place(one, lambda place: self._forced(batch, {hooked: place for hooked in crossing}))

    def _require_forcible(self, hooked: Hooked, batch: TokenBatch) -> None:
        if self._is_packed(hooked):
            return
        if hooked.attention is None:
            raise BadInput(f"{hooked.name}: name the module that makes its attention, to force it")
        if not bool(self._forced(batch, {hooked: None})[batch.target_mask].isnan().all()):
            raise BadInput(
                f"{hooked.name}: the model does not go on with the attention that {hooked.attention} "
                "returns; name the module that makes it, such as a softmax"
            )

    def _forced(
        self, batch: TokenBatch, places: Mapping[Hooked, int | None]
    ) -> Float[Tensor, "batch target words"]:
        """Logits where some attentions see one source position each; None: their attention is no number."""
        with Hooks(self.model) as hooks, slow_path():
            for hooked, place in places.items():
                if self._is_packed(hooked):
                    hooks.rewrite(self._module(hooked.query), told_to_see(place))
                else:
                    name = hooked.attention
                    hooks.replace_output(name, self._module(name), partial(on_one, place=place))
            return logits_of(self.run(self.model, batch), batch)

    def _with_read(self, batch: TokenBatch) -> TokenBatch:
        if batch.read is not None:
            return batch
        if self.start is None:
            raise BadInput(
                "a batch does not say what the decoder reads: give it ``read``, or Modules a start"
            )
        first = torch.full_like(batch.target[:, :1], self.start)
        read = torch.cat([first, batch.target[:, :-1]], dim=1)
        return replace(batch, read=read)

    def _module(self, name: str) -> nn.Module:
        if name not in self._modules:
            near = get_close_matches(name, self._modules, n=3, cutoff=0.4)
            hint = f"near are {', '.join(near)}" if near else "none is near; see model.named_modules()"
            raise BadInput(f"no module {name!r} in {type(self.model).__name__}; {hint}")
        return self._modules[name]

    def _watch(self, hooks: Hooks) -> None:
        """Each module once, though several attentions name it."""
        packed = {one.query for one in self.hooked if self._is_packed(one)}
        plain = [one for one in self.hooked if not self._is_packed(one)]
        for name in packed:
            hooks.rewrite(self._module(name), told_to_return(hooks, name))
        for name in {name for one in plain for name in (one.query, one.key)}:
            hooks.catch_input(name, self._module(name))
        for name in packed | {one.attention for one in plain if one.attention is not None}:
            hooks.catch_output(name, self._module(name))

    def _is_packed(self, one: Hooked) -> bool:
        return isinstance(self._module(one.query), nn.MultiheadAttention)

    def _attended(self, one: Hooked, hooks: Hooks) -> Attended:
        query, names = self._module(one.query), (one.query, one.key)
        if self._is_packed(one):
            names = tuple(f"{one.query}:{side}" for side in ("query", "key"))
            maps, heads = packed_maps(query), query.num_heads
            seen = one.query
        else:
            maps = [LinearMap.of(self._module(name), one.heads) for name in names]
            heads, seen = one.heads, one.attention
        inputs = [_caught(hooks.inputs, name) for name in names]
        one_sequence = inputs[0] is inputs[1]
        width = maps[0].weight.shape[1]
        attention = None if seen is None else _last(_caught(hooks.outputs, seen), seen, heads)
        return Attended(
            kind=one.kind,
            layer=one.layer,
            query_inputs=single(inputs[0]),
            key_inputs=single(inputs[1]),
            query_site=f"{one.name}.query",
            key_site=f"{one.name}.{'query' if one_sequence else 'key'}",
            query_map=maps[0],
            key_map=maps[1],
            scale=width**-0.5 if one.scale is None else one.scale,
            attention=attention,
            causal=one.kind == "decoder_self",
            precision=inputs[0].dtype,
        )


def _caught(kept: dict, name: str):
    if name not in kept:
        raise BadInput(f"{name} was not run: is it the module of another path through the model?")
    return kept[name]


def _last(output: object, name: str, heads: int) -> Tensor:
    attention = output[-1] if isinstance(output, tuple) else output
    if not isinstance(attention, Tensor) or attention.dim() != 4 or attention.shape[1] != heads:
        shape = tuple(attention.shape) if isinstance(attention, Tensor) else type(attention).__name__
        raise BadInput(
            f"{name} returns {shape}; expected attention of shape (batch, {heads}, target, source)"
        )
    return attention
