"""Traces of any ``torch.nn.Module``, by the names of its modules.

hooked = Hooked("cross.to_q", "cross.to_k", heads=8, attention="cross.softmax")
model = Modules(network, [hooked], lambda network, batch: network(batch.source, batch.read))
for one in model.traces(batches): ...
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import torch
from torch import Tensor, nn

from attnlib.adapters.attended import Attended, LinearMap
from attnlib.adapters.hooks import Hooks
from attnlib.adapters.model_pass import ModelPass
from attnlib.adapters.token_batch import TokenBatch
from attnlib.errors import BadInput
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
    """

    query: str
    key: str
    heads: int = 0
    attention: str | None = None
    kind: AttentionKind = "cross"
    layer: int = 0
    scale: float | None = None


class Modules:
    """A model of which some modules are watched.

    Args:
        model: any module, left as it is.
        hooked: the attentions to catch.
        run: calls the model on a packed batch, with ``batch.read`` as what its decoder reads.
        start: read at the first step where batches do not say what is read; later steps read the target.
        unchecked: allow attentions for which ``attention`` is not given.

    Raises:
        BadInput: a module that is not there or has no weight; an attention that nothing would check.
    """

    def __init__(
        self,
        model: nn.Module,
        hooked: Sequence[Hooked],
        run: Run,
        *,
        start: int | None = None,
        unchecked: bool = False,
    ):
        self.model, self.run, self.start = model, run, start
        self._modules = dict(model.named_modules())
        self.hooked = tuple(hooked)
        for one in self.hooked:
            packed = isinstance(self._module(one.query), nn.MultiheadAttention)
            if packed and one.key != one.query:
                raise BadInput(f"{one.query} makes queries and keys: name it for both, not {one.key!r}")
            if packed:
                continue
            for name in (one.query, one.key):
                if not isinstance(self._module(name), nn.Linear):
                    raise BadInput(
                        f"{name} is {type(self._module(name)).__name__}; expected nn.Linear, a projection, "
                        "or nn.MultiheadAttention"
                    )
            if one.heads < 1:
                raise BadInput(
                    f"{one.kind}.{one.layer}: heads is {one.heads}; say how many share {one.query}"
                )
            if one.attention is None and not unchecked:
                raise BadInput(
                    f"{one.kind}.{one.layer}: nothing would check the scores made of {one.query} and {one.key}"
                    ". Name a module that returns the attention (a fused one, "
                    "F.scaled_dot_product_attention or flash attention, has to be replaced by a softmax), or "
                    "say unchecked=True"
                )
            if one.attention is not None:
                self._module(one.attention)

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
        return found

    def _with_read(self, batch: TokenBatch) -> TokenBatch:
        if batch.read is not None:
            return batch
        if self.start is None:
            raise BadInput(
                "a batch does not say what the decoder reads: give it ``read``, or Modules a start"
            )
        first = torch.full_like(batch.target[:, :1], self.start)
        read = torch.cat([first, batch.target[:, :-1]], dim=1)
        return TokenBatch(batch.source, batch.source_mask, batch.target, batch.target_mask, read)

    def _module(self, name: str) -> nn.Module:
        if name not in self._modules:
            near = get_close_matches(name, self._modules, n=3, cutoff=0.4)
            raise BadInput(f"no module {name!r} in {type(self.model).__name__}; near are {', '.join(near)}")
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
        width = maps[0].weight.shape[1]
        attention = None if seen is None else _last(_caught(hooks.outputs, seen), seen, heads)
        return Attended(
            kind=one.kind,
            layer=one.layer,
            query_inputs=inputs[0],
            key_inputs=inputs[1],
            query_site=f"{one.kind}.{one.layer}.query",
            key_site=f"{one.kind}.{one.layer}.{'key' if one.kind == 'cross' else 'query'}",
            query_map=maps[0],
            key_map=maps[1],
            scale=width**-0.5 if one.scale is None else one.scale,
            attention=attention,
            causal=one.kind == "decoder_self",
        )


class _slow_path:
    """torch's own encoder layers, where they can, run in one call that no hook sees."""

    def __enter__(self) -> None:
        self.before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)

    def __exit__(self, *_: object) -> None:
        torch.backends.mha.set_fastpath_enabled(self.before)


def _told_to_return(hooks: Hooks, name: str) -> Callable:
    """Keeps what an ``nn.MultiheadAttention`` is given, batch first, and asks for the attention by head."""

    def change(given: tuple, named: dict) -> tuple[tuple, dict]:
        query, key = (given[i] if len(given) > i else named[side] for i, side in enumerate(("query", "key")))
        hooks.inputs[f"{name}:query"], hooks.inputs[f"{name}:key"] = query, key
        return given, named | {"need_weights": True, "average_attn_weights": False}

    return change


def _packed_maps(module: nn.MultiheadAttention) -> list[LinearMap]:
    if not module.batch_first or module.in_proj_weight is None:
        raise BadInput(
            "an nn.MultiheadAttention with batch_first=False or keys of another width cannot be split; make "
            "it with batch_first=True and one width"
        )
    found = []
    for part in range(2):  # queries, keys; values come third
        rows = slice(part * module.embed_dim, (part + 1) * module.embed_dim)
        weight = module.in_proj_weight.detach()[rows].unflatten(0, (module.num_heads, -1))
        bias = module.in_proj_bias
        shared = None if bias is None else bias.detach()[rows].unflatten(0, (module.num_heads, -1))
        found.append(LinearMap(weight, shared))
    return found


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
