"""Traces of any ``torch.nn.Module``, by the names of its modules.

::

    hooked = Hooked("cross.to_q", "cross.to_k", heads=8, attention="cross.softmax")
    model = Modules(network, [hooked], lambda network, batch: network(batch.source, batch.read))
    for one in model.traces(batches): ...
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from inspect import signature
from typing import get_args

import torch
from torch import Tensor, nn

from attnlib.adapters.attended import Attended, LinearMap, single
from attnlib.adapters.hooks import Hooks
from attnlib.adapters.model_pass import ModelPass
from attnlib.adapters.token_batch import TokenBatch
from attnlib.errors import BadInput, UnknownName
from attnlib.models.transformer_trace import AttentionKind

Run = Callable[[nn.Module, TokenBatch], object]


@dataclass(frozen=True)
class Hooked:
    """Where one attention stands in a model; names are those of ``model.named_modules()``.

    Attributes:
        query, key: linear projections; what they read is what asks and what answers. Or both the name of one
            ``nn.MultiheadAttention``, as ``nn.Transformer`` has them: then nothing else need be named.
        heads: that share the projections' dimensions, in order.
        attention: a module that returns the attention, (batch, heads, target, source), alone or last in a
            tuple. The scores that the projections make are checked against it.
        kind, layer: how reports call it.
        scale: of the score; 1/√(width of a head) by default.

    Raises:
        UnknownName: a kind that does not exist.
    """

    query: str
    key: str
    heads: int = 0
    attention: str | None = None
    kind: AttentionKind = "cross"
    layer: int = 0
    scale: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(AttentionKind):
            raise UnknownName("kind of attention", self.kind, get_args(AttentionKind))

    @property
    def name(self) -> str:
        """Kind and layer, as reports say it."""
        return f"{self.kind}.{self.layer}"


class Modules:
    """A model of which some modules are watched.

    Args:
        model: any module, left as it is.
        hooked: the attentions to catch.
        run: calls the model on a packed batch, with ``batch.read`` as what its decoder reads.
        start: read at the first step where batches do not say what is read; later steps read the target.
        unchecked: allow attentions for which ``attention`` is not given.
        ignored: ids of tokens, such as special ones, that no analysis counts.

    Raises:
        BadInput: a module that is not there or is no projection; an attention that nothing would check; two
            attentions of one kind and layer.
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
        names = [one.name for one in self.hooked]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"{names.count(name)} attentions are called {name}: give each a layer")
        for one in self.hooked:
            self._require(one, unchecked)

    def _require(self, one: Hooked, unchecked: bool) -> None:
        if isinstance(self._module(one.query), nn.MultiheadAttention):
            if one.key != one.query:
                raise BadInput(f"{one.query} makes queries and keys: name it for both, not {one.key!r}")
            _packed_maps(self._module(one.query))
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
            BadInput: a named module was not run, or returns no attention, or another than the projections
                make; a batch does not say what is read, and there is no ``start``.
        """
        batch = self._with_read(batch.packed())
        weights = next(self.model.parameters(), None)
        batch = batch if weights is None else batch.to(weights.device)
        with Hooks(self.model) as hooks, _slow_path():
            for one in self.hooked:
                self._watch(hooks, one)
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

    def _watch(self, hooks: Hooks, one: Hooked) -> None:
        query = self._module(one.query)
        if isinstance(query, nn.MultiheadAttention):
            hooks.rewrite(query, _told_to_return(hooks, one.query))
            hooks.catch_output(one.query, query)
            return
        hooks.catch_input(one.query, query)
        hooks.catch_input(one.key, self._module(one.key))
        if one.attention is not None:
            hooks.catch_output(one.attention, self._module(one.attention))

    def _attended(self, one: Hooked, hooks: Hooks) -> Attended:
        query, names = self._module(one.query), (one.query, one.key)
        if isinstance(query, nn.MultiheadAttention):
            names = tuple(f"{one.query}:{side}" for side in ("query", "key"))
            maps, heads = _packed_maps(query), query.num_heads
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


@contextmanager
def _slow_path() -> Iterator[None]:
    """Keeps torch's own encoder layers from running in one call that no hook sees."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _told_to_return(hooks: Hooks, name: str) -> Callable:
    """Keeps what an ``nn.MultiheadAttention`` is given, batch first, and asks for the attention by head."""

    arguments = list(signature(nn.MultiheadAttention.forward).parameters)[1:]  # without self

    def change(given: tuple, named: dict) -> tuple[tuple, dict]:
        named = dict(zip(arguments, given, strict=False)) | named
        for side in ("query", "key"):
            hooks.inputs[f"{name}:{side}"] = named[side]
        return (), named | {"need_weights": True, "average_attn_weights": False}

    return change


def _packed_maps(module: nn.MultiheadAttention) -> list[LinearMap]:
    if not module.batch_first or module.in_proj_weight is None:
        raise BadInput(
            "an nn.MultiheadAttention with batch_first=False or keys of another width cannot be split; make "
            "it with batch_first=True and one width"
        )
    weights, bias = module.in_proj_weight.chunk(3)[:2], module.in_proj_bias  # queries, keys, values
    biases = (None, None) if bias is None else bias.chunk(3)[:2]
    return [LinearMap.of_rows(*own, module.num_heads) for own in zip(weights, biases, strict=True)]


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
