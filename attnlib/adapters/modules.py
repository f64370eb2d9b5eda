"""Traces of any ``torch.nn.Module``, by the names of its modules.

::

    hooked = Hooked("cross.to_q", "cross.to_k", heads=8, attention="cross.softmax")
    model = Modules(network, [hooked], lambda network, batch: network(batch.source, batch.read))
    one = model.trace(batch)
"""

import hashlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from inspect import signature
from typing import Any, cast, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnlib.adapters.token_batch import FrameBatch, TokenBatch, batch_of_mapping, shifted
from attnlib.arrays import as_tuple
from attnlib.errors import BadInput, check_known
from attnlib.linear_map import LinearMap, single
from attnlib.trace import Attention, AttentionKind, Trace

Run = Callable[[nn.Module, TokenBatch], object]
Outputs = Tensor | tuple


@dataclass(frozen=True)
class Hooked:
    """Where one attention is in a model; names are those of ``model.named_modules()``.

    Attributes:
        query: a linear projection.
        key: another one. Or both are the name of one ``nn.MultiheadAttention``, as ``nn.Transformer`` has
            them: then nothing else need be named.
        heads: that share the projections' dimensions, in order.
        attention: a module that returns the attention, (batch, heads, target, source), alone or last in a
            tuple; or one that makes it once as it runs, by ``torch.softmax``, ``F.softmax`` or
            ``F.scaled_dot_product_attention``. The scores that the projections make are checked against it.
        kind: which states attend to which.
        layer: its number, from 0, by which reports call it.
        scale: of the score; 1/√(width of a head) by default.

    Raises:
        UnknownName: a kind that does not exist.

    >>> Hooked("decoder.3.to_q", "decoder.3.to_k", heads=8, attention="decoder.3.softmax", layer=3).name
    'cross.3'
    """

    query: str
    key: str
    heads: int = 0
    attention: str | None = None
    kind: AttentionKind = "cross"
    layer: int = 0
    scale: float | None = None

    def __post_init__(self) -> None:
        check_known("kind of attention", self.kind, get_args(AttentionKind))

    @property
    def name(self) -> str:
        """Kind and layer, such as ``"cross.0"``."""
        return f"{self.kind}.{self.layer}"


# -- attention that is made by a call of torch and not by a module: seen, and replaced, while a module runs --

SOFTMAXES = (torch.softmax, torch.Tensor.softmax, F.softmax, torch.special.softmax)
Change = Callable[[Tensor], Tensor]


class FunctionalAttention(TorchFunctionMode):
    """Gives every attention that is made by one of the functions to ``change``, and goes on with its result.

    An attention is a softmax along the last of three axes or more, or what scaled dot product attention makes
    of its query, key and mask before it takes the mean of the values. ``change`` None: it is only looked at.
    """

    def __init__(self, change: Change | None, seen: list[Tensor]):
        super().__init__()
        self.change, self.seen = change, seen

    def __torch_function__(  # noqa: PLR0917, torch calls it by place
        self, function: Any, types: Any, given: tuple = (), named: dict | None = None
    ):
        named = named or {}
        if function in SOFTMAXES:
            made = function(*given, **named)
            axis = named.get("dim", given[1] if len(given) > 1 else None)
            if made.dim() < 3 or axis not in (-1, made.dim() - 1):
                return made
            self.seen.append(made)
            return made if self.change is None else self.change(made)
        if function is F.scaled_dot_product_attention:
            weights, values = attention_of_arguments(*given, **named)
            self.seen.append(weights)
            return function(*given, **named) if self.change is None else self.change(weights) @ values
        return function(*given, **named)


def attention_of_arguments(  # noqa: PLR0917, the arguments of F.scaled_dot_product_attention
    query: Float[Tensor, "*batch target width"],
    key: Float[Tensor, "*batch source width"],
    value: Float[Tensor, "*batch source out"],
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: FBT001, FBT002
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Float[Tensor, "*batch target source"], Float[Tensor, "*batch source out"]]:
    """The weights that ``F.scaled_dot_product_attention`` gives its values, and these; by its definition.

    >>> states = torch.eye(2)[None, None]
    >>> weights, values = attention_of_arguments(states, states, states, is_causal=True)
    >>> found = F.scaled_dot_product_attention(states, states, states, is_causal=True)
    >>> torch.allclose(weights @ values, found)
    True
    """
    if enable_gqa:
        key, value = (own.repeat_interleave(query.shape[-3] // own.shape[-3], -3) for own in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    if attn_mask is not None:
        masks = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if masks else scores + attn_mask
    return scores.softmax(-1), value


# -- what modules read and return while a model runs once --


class Hooks:
    """Hooks on some modules, gone after the ``with`` block; a module that is caught may run once only."""

    def __init__(self, model: nn.Module):
        self._model = model
        self._stack = ExitStack()
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Outputs] = {}
        self.made: dict[str, list[Tensor]] = {}  # by functions of torch, while a module ran
        self._running: list[tuple[nn.Module, FunctionalAttention]] = []  # modules that are looked into now

    def __enter__(self) -> "Hooks":
        self._stack.enter_context(evaluated(self._model))
        return self

    def __exit__(self, *_: Any) -> None:
        # torch runs no forward hook of a module that KeyboardInterrupt ended, so its mode is still on.
        while self._running:
            self._leave_innermost()
        self._stack.close()

    def _leave_innermost(self) -> None:
        _, mode = self._running.pop()
        mode.__exit__(None, None, None)

    def catch_input(self, name: str, module: nn.Module) -> None:
        """Keep the first argument of a module, under a name."""

        def keep(_: nn.Module, given: tuple, named: dict) -> None:
            self._require_first(name, self.inputs)
            self.inputs[name] = (*given, *named.values())[0]

        self._stack.callback(module.register_forward_pre_hook(keep, with_kwargs=True).remove)

    def catch_output(self, name: str, module: nn.Module) -> None:
        """Keep what a module returns, under a name."""
        self.replace_output(name, module, lambda output: output)

    def replace_output(self, name: str, module: nn.Module, change: Callable[[Outputs], Outputs]) -> None:
        """Keep ``change`` of what a module returns, under a name, and go on with it."""

        def keep(_: nn.Module, _given: tuple, output: Outputs) -> Outputs:
            self._require_first(name, self.outputs)
            self.outputs[name] = change(output)
            return self.outputs[name]

        self._stack.callback(module.register_forward_hook(keep).remove)

    @staticmethod
    def _require_first(name: str, kept: dict) -> None:
        if name in kept:
            raise BadInput(
                f"{name} runs more than once in a pass, so its attentions cannot be kept apart; "
                "give each attention modules of its own, and let the decoder read all steps at once"
            )

    def look_within(self, name: str, module: nn.Module, change: Change | None = None) -> None:
        """See the attention that functions of torch make while a module runs; go on with ``change`` of it."""
        seen = self.made.setdefault(name, [])

        def begin(*_: Any) -> None:
            mode = FunctionalAttention(change, seen)
            mode.__enter__()
            self._running.append((module, mode))

        def end(*_: Any) -> None:
            if self._running and self._running[-1][0] is module:
                self._leave_innermost()

        self._stack.callback(module.register_forward_pre_hook(begin).remove)
        self._stack.callback(module.register_forward_hook(end, always_call=True).remove)

    def rewrite(self, module: nn.Module, change: Any) -> None:
        """Call a module with what ``change`` makes of its arguments, a tuple and a dictionary of them."""
        hook = module.register_forward_pre_hook(lambda _, a, k: change(a, k), with_kwargs=True)
        self._stack.callback(hook.remove)


@contextmanager
def evaluated(model: nn.Module) -> Iterator[None]:
    """Without dropout and gradient, and step by step where it is compiled."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        with torch.no_grad(), _uncompiled():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Run what torch.compile made as it was written: code compiled in an earlier pass runs no hooks."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled, and loading it takes seconds
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def described(model: nn.Module) -> str:
    """Return the class of a model and its number of parameters, in words."""
    size = sum(parameter.numel() for parameter in model.parameters())
    return f"{type(model).__name__}, {size:,} parameters"


def weights_digest(model: nn.Module) -> str:
    """A hash of a model's weights; what is none, or has no numbers here, counts by its name alone."""
    found = hashlib.sha256()
    for name, own in sorted(model.state_dict().items()):
        found.update(name.encode())
        if isinstance(own, Tensor) and own.layout == torch.strided and not own.is_meta:
            found.update(own.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


Pairs = tuple[Int[Tensor, " pairs"], Int[Tensor, " pairs"], int]  # samples, source positions, target steps


def probe_of_pairs(
    one: Trace,
    logits: Callable[..., Float[Tensor, "pairs steps words"]],
    pairs: Iterable[Pairs] | None = None,
) -> Float[Tensor, "batch target source"]:
    """β from what a model predicts where some samples see one source position each; zero at padding.

    Raises BadInput: the model predicts fewer words than the ids of the right ones say.
    """
    right = one.target_outputs.masked_fill(~one.target_mask, 0)  # at padding any id may stand
    beta = torch.zeros(*one.target_outputs.shape, one.source_tokens.shape[1], device=one.source_tokens.device)
    for samples, positions, steps in pairs_by_length(one) if pairs is None else pairs:
        found = logits(samples, positions, steps).float()
        if int(right.max()) >= found.shape[-1]:
            raise BadInput(
                f"a right word has id {int(right.max())}; the model predicts {found.shape[-1]} words, "
                "from 0: take the pass and the probe of one model"
            )
        own = found.gather(-1, right[samples, :steps, None])[..., 0]
        beta[samples, :steps, positions] = (own - found.logsumexp(-1)).exp()
    return beta.masked_fill(~one.target_mask[:, :, None], 0)


def pairs_by_position(one: Trace) -> Iterator[Pairs]:
    """Of each source position those samples that have it."""
    for position in one.source_mask.any(0).nonzero()[:, 0].tolist():
        samples = one.source_mask[:, position].nonzero()[:, 0]
        yield samples, torch.full_like(samples, position), one.target_tokens.shape[1]


def pairs_by_length(one: Trace, least: int = 2048) -> Iterator[Pairs]:
    """Those of samples of like length together, as many at once as the pass has target places, or more."""
    samples, positions = one.source_mask.nonzero().unbind(1)
    lengths = one.target_mask.sum(1)[samples]
    order, start = lengths.argsort(descending=True), 0
    while start < len(order):
        steps = int(lengths[order[start]])
        some = order[start : start + max(1, max(one.target_mask.numel(), least) // steps)]
        start += len(some)
        yield samples[some], positions[some], steps


# -- models --


class Traced:
    """A model whose hooked attentions are caught in every pass.

    Subclasses have ``_prepared(batch)``, with what the decoder reads, and ``_run(batch)``, the model's call.
    """

    def __init__(
        self,
        model: nn.Module,
        hooked: Hooked | Sequence[Hooked],
        ignored: int | Collection[int] | Mapping[str, Collection[int]],
    ):
        self.model: Any = model  # anybody's: its attributes are not known here
        self.hooked: tuple[Hooked, ...] = as_tuple(hooked)
        #: ids of both sides, or by side
        self.ignored: tuple[int, ...] | Mapping[str, Collection[int]]
        if isinstance(ignored, Mapping):
            self.ignored = cast("Mapping[str, Collection[int]]", ignored)  # a collection of ids is no mapping
        else:
            self.ignored = as_tuple(ignored)
        self._modules: dict[str, Any] = dict(model.named_modules())

    def trace(self, batch: TokenBatch | FrameBatch | Mapping[str, Any]) -> Trace:
        """The pass of one batch, without dropout and gradient, under teacher forcing.

        Args:
            batch: or a dictionary with ``input_ids`` and ``labels``, as the transformers library has them.

        Raises:
            BadInput: a module was not run, or more than once, or returns no attention, or another than the
                projections make; a batch that the model cannot take.
        """
        prepared = self._prepared(self._batch_of(batch))
        with Hooks(self.model) as hooks, _slow_path():
            self._watch(hooks)
            self._run(prepared)
        trace = Trace(
            source_tokens=prepared.source,
            source_mask=prepared.source_mask,
            target_tokens=prepared.read,
            target_outputs=prepared.target,
            target_mask=prepared.target_mask,
            attentions=tuple(self._attention(hooked, hooks) for hooked in self.hooked),
        )
        return trace.ignoring(self.ignored).validated()

    def _batch_of(self, given: object) -> TokenBatch | FrameBatch:
        """The batch that is given, or that a dictionary holds; BadInput for anything else."""
        if isinstance(given, Mapping):
            return batch_of_mapping(given)
        if not isinstance(given, TokenBatch | FrameBatch):
            raise BadInput(
                f"a batch is {type(given).__name__}; expected an attnlib.TokenBatch, or a dictionary with "
                "input_ids and labels"
            )
        return given

    def _prepared(self, batch: Any) -> Any:
        """Return the batch packed, with what the decoder reads, on the model's device."""
        raise NotImplementedError

    def _run(self, batch: Any) -> object:
        """Call the model on a prepared batch."""
        raise NotImplementedError

    def _module(self, name: str) -> Any:
        if name not in self._modules:
            near = get_close_matches(name, self._modules, n=3, cutoff=0.4)
            hint = f"near are {', '.join(near)}" if near else "none is near; see model.named_modules()"
            raise BadInput(f"no module {name!r} in {type(self.model).__name__}; {hint}")
        return self._modules[name]

    def _is_packed(self, one: Hooked) -> bool:
        return isinstance(self._module(one.query), nn.MultiheadAttention)

    def _watch(self, hooks: Hooks) -> None:
        packed = {one.query for one in self.hooked if self._is_packed(one)}
        plain = [one for one in self.hooked if not self._is_packed(one)]
        for name in packed:
            module = self._module(name)
            first = module.batch_first
            hooks.rewrite(module, partial(_returning_attention, hooks=hooks, name=name, batch_first=first))
        returned = packed | {one.attention for one in plain if one.attention is not None}
        for name in {name for one in plain for name in (one.query, one.key)}:
            hooks.catch_input(name, module := self._module(name))
            plainly = type(module).forward is nn.Linear.forward and not module._forward_hooks
            if plainly and name not in returned:
                hooks.catch_output(name, module)
        for name in returned:
            hooks.catch_output(name, self._module(name))

    def _attention(self, one: Hooked, hooks: Hooks, **changes: Any) -> Attention:
        query, names = self._module(one.query), (one.query, one.key)
        if self._is_packed(one):
            names = tuple(f"{one.query}:{side}" for side in ("query", "key"))
            maps, heads, seen = _packed_maps(query), query.num_heads, one.query
        else:
            maps = [LinearMap.of(self._module(name), one.heads) for name in names]
            heads, seen = one.heads, one.attention
        inputs = [_caught(hooks.inputs, name) for name in names]
        one_sequence = inputs[0] is inputs[1]
        if one_sequence and one.kind == "cross":
            raise BadInput(f"{one.name} reads one sequence: say kind='encoder_self' or kind='decoder_self'")
        fields: dict[str, Any] = dict(
            kind=one.kind,
            layer=one.layer,
            query_inputs=single(inputs[0]),
            key_inputs=single(inputs[1]),
            query_site=f"{one.name}.query",
            key_site=f"{one.name}.{'query' if one_sequence else 'key'}",
            maps=(maps[0], maps[1]),
            scale=maps[0].weight.shape[1] ** -0.5 if one.scale is None else one.scale,
            attention=None if seen is None else self._seen_attention(hooks, seen, heads),
            causal=one.kind == "decoder_self",
            precision=inputs[0].dtype,
        )
        found = Attention(**fields | changes)
        queries, keys = (hooks.outputs.get(name) for name in names)
        if not isinstance(queries, Tensor) or not isinstance(keys, Tensor):
            return found
        exact = min(queries.element_size(), keys.element_size()) >= 4
        return found.knowing(queries, keys) if exact else found

    def _seen_attention(self, hooks: Hooks, name: str, heads: int) -> Tensor:
        """What a module returned, or what was made within it."""
        output = _caught(hooks.outputs, name)
        attention = output[-1] if isinstance(output, tuple) else output
        if _is_attention(attention, heads):
            return attention
        made = hooks.made.get(name, [])
        if len(made) == 1 and _is_attention(own := _by_heads(made[0], heads), heads):
            return own
        shape = tuple(attention.shape) if isinstance(attention, Tensor) else type(attention).__name__
        shapes = ", ".join(str(tuple(own.shape)) for own in made) or "none"
        raise BadInput(
            f"{name} returns {shape}; expected attention of shape (batch, {heads}, target, source), or one "
            f"made within it by a softmax or scaled_dot_product_attention of torch (there: {shapes})"
        )


class Modules(Traced):
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
    ...     read, source = network["words"](batch.read), network["words"](batch.source)
    ...     return network["attend"](read, source, source, key_padding_mask=~batch.source_mask)
    >>> model = Modules(network, [Hooked("attend", "attend")], run, start=1)
    >>> tuple(model.trace(TokenBatch.of_rows([[5, 6, 7]], [[8, 2]])).attentions[0].scores.shape)
    (1, 2, 2, 3)
    """

    def __init__(
        self,
        model: nn.Module,
        hooked: Hooked | Sequence[Hooked],
        run: Run,
        *,
        start: int | None = None,
        unchecked: bool = False,
        ignored: int | Collection[int] = (),
    ):
        super().__init__(model, hooked, ignored)
        self.run, self.start = run, start
        self._within: dict[Hooked, bool] = {}  # where attention can be forced, once that is known
        if not self.hooked:
            raise BadInput("no attention is hooked: name the modules of one or more")
        names = [one.name for one in self.hooked]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"{names.count(name)} attentions are called {name}: give each a layer")
        for one in self.hooked:
            self._require(one, unchecked=unchecked)

    def _require(self, one: Hooked, *, unchecked: bool) -> None:
        if self._is_packed(one):
            if one.key != one.query:
                raise BadInput(f"{one.query} makes queries and keys: name it for both, not {one.key!r}")
            _packed_maps(self._module(one.query))
            return
        for name in (one.query, one.key):
            if not isinstance(self._module(name), nn.Linear):
                raise BadInput(
                    f"{name} is {type(self._module(name)).__name__}; expected nn.Linear, a projection, or "
                    "nn.MultiheadAttention. A side that has none, as in Luong's general score, takes an "
                    "nn.Linear without bias whose weight is torch.eye(width), run in the model's pass"
                )
        if one.heads < 1:
            raise BadInput(f"{one.name}: heads is {one.heads}; say how many share {one.query}")
        if one.attention is not None:
            self._module(one.attention)
        elif not unchecked:
            raise BadInput(
                f"{one.name}: nothing checks the scores made of {one.query} and {one.key}. Name a module "
                "that returns the attention, or within which torch.softmax or "
                "F.scaled_dot_product_attention makes it, or say unchecked=True"
            )

    def logits(self, one: Trace) -> Float[Tensor, "batch target words"]:
        """What the model predicts at every step of a pass; BadInput where ``run`` returns no logits."""
        batch = _batch_of(one)
        with evaluated(self.model), _slow_path():
            return _logits_of(self._run(batch), batch)

    def lexical_probe(self, one: Trace) -> Float[Tensor, "batch target source"]:
        """β of every pair of positions: the probability of the right word where one position alone is seen.

        Snell et al. 2021, equation 4: every head of every cross-attention that is hooked sees that position
        and no other; name them all. Zero at padding. It takes a pass of the model for each source position,
        of the samples that have it, and one for each attention.

        Raises:
            BadInput: no cross-attention is hooked; the model does not go on with the attention that a named
                module returns, so that it cannot be forced; ``run`` returns no logits.
        """
        cross = [hooked for hooked in self.hooked if hooked.kind == "cross"]
        if not cross:
            raise BadInput("no cross-attention is hooked: nothing can be made to see one source position")
        batch = _batch_of(one)
        for hooked in cross:
            self._find_way_to_force(hooked, batch)

        def logits(samples: Tensor, positions: Tensor, _steps: int) -> Tensor:
            return self._forced(batch.rows(samples), dict.fromkeys(cross, int(positions[0])))

        return probe_of_pairs(one, logits, pairs_by_position(one))

    def _find_way_to_force(self, hooked: Hooked, batch: TokenBatch) -> None:
        """In what the module returns, or in what is made within it: there where no number comes through."""
        if self._is_packed(hooked) or hooked in self._within:
            return
        if hooked.attention is None:
            raise BadInput(f"{hooked.name}: name the module that makes its attention, to force it")
        for within in (False, True):
            self._within[hooked] = within
            if bool(self._forced(batch, {hooked: None})[batch.target_mask].isnan().all()):
                return
        del self._within[hooked]
        raise BadInput(
            f"{hooked.name}: the model does not go on with the attention that {hooked.attention} returns, "
            "or makes by a softmax or scaled_dot_product_attention of torch; name the module that makes it"
        )

    def _forced(
        self, batch: TokenBatch, positions: Mapping[Hooked, int | None]
    ) -> Float[Tensor, "batch target words"]:
        """Logits where some attentions see one source position each; None: their attention is no number."""
        with Hooks(self.model) as hooks, _slow_path():
            for hooked, position in positions.items():
                if self._is_packed(hooked):
                    module = self._module(hooked.query)
                    axis = int(module.batch_first)
                    hooks.rewrite(module, partial(_seeing_one, position=position, axis=axis))
                    continue
                assert hooked.attention is not None  # _find_way_to_force refuses others
                module = self._module(hooked.attention)
                if self._within[hooked]:
                    change = partial(_on_one, position=position, heads=None)
                    hooks.look_within(hooked.attention, module, cast("Change", change))
                else:
                    change = partial(_on_one, position=position, heads=hooked.heads)
                    hooks.replace_output(hooked.attention, module, change)
            return _logits_of(self._run(batch), batch)

    def _watch(self, hooks: Hooks) -> None:
        super()._watch(hooks)
        names = {hooked.attention for hooked in self.hooked if not self._is_packed(hooked)}
        for name in names:
            if name is not None:
                hooks.look_within(name, self._module(name))

    def _prepared(self, batch: TokenBatch | FrameBatch) -> TokenBatch:
        if not isinstance(batch, TokenBatch):
            raise BadInput(f"a batch is {type(batch).__name__}; Modules take an attnlib.TokenBatch")
        batch = batch.packed()
        if batch.read is None:
            if self.start is None:
                raise BadInput(
                    "a batch does not say what the decoder reads: give it ``read``, or Modules a start"
                )
            batch = replace(batch, read=shifted(batch.target, self.start))
        weights = next(self.model.parameters(), None)
        return batch if weights is None else batch.to(weights.device)

    def _run(self, batch: TokenBatch) -> object:
        return self.run(self.model, batch)


def _batch_of(one: Trace) -> TokenBatch:
    names = ("source_tokens", "source_mask", "target_outputs", "target_mask", "target_tokens")
    return TokenBatch(*(getattr(one, name) for name in names))


def _caught(kept: dict, name: str):
    if name not in kept:
        raise BadInput(f"{name} was not run: is it the module of another path through the model?")
    return kept[name]


def _is_attention(found: object, heads: int) -> bool:
    return isinstance(found, Tensor) and found.dim() == 4 and found.shape[1] == heads


def _by_heads(made: Tensor, heads: int) -> Tensor:
    """(batch · heads, target, source), as some code has it, with an axis for the heads."""
    return made.unflatten(0, (-1, heads)) if made.dim() == 3 and len(made) % heads == 0 else made


def _on_one(output: Outputs, position: int | None, heads: int | None) -> Outputs:
    """What a module returns, with all attention on one source position; None: on none, not a number.

    What is no attention of so many heads stays; None: it is one, made by a function of torch.
    """
    attention = output[-1] if isinstance(output, tuple) else output
    if heads is not None and not _is_attention(attention, heads):
        return output
    forced = torch.full_like(attention, 0 if position is not None else torch.nan)
    if position is not None:
        forced[..., position] = 1
    return (*output[:-1], forced) if isinstance(output, tuple) else forced


def _logits_of(output: object, batch: TokenBatch) -> Float[Tensor, "batch target words"]:
    first = output[0] if isinstance(output, tuple) else output
    logits = getattr(first, "logits", first)
    words = int(batch.target[batch.target_mask].max()) + 1
    if isinstance(logits, Tensor) and logits.shape[:-1] == batch.target.shape and logits.shape[-1] >= words:
        return logits
    said = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
    expected = f"{tuple(batch.target.shape)} by {words} or more words"
    raise BadInput(f"run returns {said}; expected logits of shape {expected}")


# -- torch's own attention, nn.MultiheadAttention --

_ARGUMENTS = tuple(signature(nn.MultiheadAttention.forward).parameters)[1:]  # without self


@contextmanager
def _slow_path() -> Iterator[None]:
    """Keeps torch's own encoder layers from running in one call that no hook sees."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _returning_attention(
    given: tuple, named: dict, *, hooks: Hooks, name: str, batch_first: bool
) -> tuple[tuple, dict]:
    named = dict(zip(_ARGUMENTS, given, strict=False)) | named
    query = named["query"] if batch_first else named["query"].transpose(0, 1)
    key = named["key"] if batch_first else named["key"].transpose(0, 1)
    hooks.inputs |= {f"{name}:query": query, f"{name}:key": query if named["key"] is named["query"] else key}
    return (), named | {"need_weights": True, "average_attn_weights": False}


def _seeing_one(given: tuple, named: dict, *, position: int | None, axis: int) -> tuple[tuple, dict]:
    named = dict(zip(_ARGUMENTS, given, strict=False)) | named
    hidden = torch.ones(named["query"].shape[axis], named["key"].shape[axis], dtype=torch.bool)
    hidden[:, position] = False
    mask = {"attn_mask": hidden.to(named["key"].device), "key_padding_mask": None, "is_causal": False}
    return (), named | mask


def _packed_maps(module: nn.MultiheadAttention) -> list[LinearMap]:
    bias, packed = module.in_proj_bias, module.in_proj_weight  # of queries, keys, values
    apart = packed is None  # keys of another width have weights of their own
    weights = (module.q_proj_weight, module.k_proj_weight) if apart else packed.chunk(3)[:2]
    biases = (None, None) if bias is None else bias.chunk(3)[:2]
    return [LinearMap.of_rows(*own, module.num_heads) for own in zip(weights, biases, strict=True)]
