"""Trace any ``torch.nn.Module``, by the names of its modules.

::

    hooked = Hooked("cross.to_q", "cross.to_k", heads=8, attention="cross.softmax")
    model = Modules(network, [hooked], lambda network, batch: network(batch.source, batch.read))
    trace = model.trace(batch)
"""

import hashlib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from difflib import get_close_matches
from functools import partial
from inspect import signature
from typing import Any, TypeGuard, cast, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnlib.adapters.token_batch import FrameBatch, TokenBatch, batch_of_mapping, shifted
from attnlib.arrays import ShowsShapes, as_tuple
from attnlib.errors import BadInput, check_known
from attnlib.former_names import former_object
from attnlib.linear_map import LinearMap, single
from attnlib.softmax import log_probability_of
from attnlib.trace import QUERY_SIDE, Attention, AttentionKind, Trace

Run = Callable[[nn.Module, TokenBatch], object]
Outputs = Tensor | tuple
Rewrite = Callable[[tuple, dict], tuple[tuple, dict]]  # arguments of a module, by place and by name


@dataclass(frozen=True)
class Hooked:
    """Say where an attention is in a model, by the names of ``model.named_modules()``.

    A layer that makes queries, keys and values at once is named with the part that is meant:
    ``"to_qkv:0/3"`` is the first third of its rows, ``"to_qkv[64:80]"`` the rows from 64 up to, but not
    including, 80.

    Attributes:
        query: the linear projection of queries, or an ``nn.MultiheadAttention``, as ``nn.Transformer`` has
            them. The latter is named as the key too, and nothing else need be given.
        key: the linear projection of keys.
        heads: how many share the rows of the projections, head after head.
        attention: a module that returns the attention, (batch, heads, target, source), alone or last in a
            tuple; or one that makes it once as it runs, by ``torch.softmax``, ``F.softmax`` or
            ``F.scaled_dot_product_attention``. The scores that the projections make are checked against it.
        kind: ``"cross"``, ``"encoder_self"`` or ``"decoder_self"``.
        layer: its number, from 0, by which reports call it.
        scale: of the score; 1/√(width of a head) by default.
        key_heads: how many heads of keys there are if several of the queries share one; by default as many
            as ``heads``.
        length_first: whether the projections read (length, batch, width), as those of fairseq do.

    Raises:
        UnknownName: a kind that does not exist.

    Example:
        >>> Hooked("decoder.3.to_q", "decoder.3.to_k", heads=8, attention="decoder.3.softmax", layer=3).name
        'cross.3'
    """

    query: str
    key: str
    heads: int = 0
    _: KW_ONLY
    attention: str | None = None
    kind: AttentionKind = "cross"
    layer: int = 0
    scale: float | None = None
    key_heads: int | None = None
    length_first: bool = False

    def __post_init__(self) -> None:
        check_known("kind of attention", self.kind, get_args(AttentionKind))

    @property
    def name(self) -> str:
        """Kind and layer, such as ``"cross.0"``."""
        return f"{self.kind}.{self.layer}"

    @property
    def n_key_heads(self) -> int:
        """Number of heads of keys."""
        return self.heads if self.key_heads is None else self.key_heads


_PART = re.compile(r"(?P<path>[^:\[]+)(?::(?P<part>\d+)/(?P<parts>\d+)|\[(?P<first>\d+):(?P<end>\d+)\])")


class PartOfProjection(nn.Linear):
    """Some rows of a linear layer that makes more than queries or keys, named ``path:n/of`` or ``path[a:b]``.

    It has the weight and the bias of those rows. Its hooks are called when the whole layer runs.

    Args:
        model: that has the layer.
        name: of the part: the n-th, from 0, of a number of equal parts, or the rows from a up to b.

    Raises:
        BadInput: the layer is not linear, or has no such rows.

    Example:
        >>> model = nn.ModuleDict({"to_kv": nn.Linear(2, 6)})
        >>> tuple(PartOfProjection(model, "to_kv:0/2").weight.shape)
        (3, 2)
        >>> tuple(PartOfProjection(model, "to_kv[0:4]").weight.shape)
        (4, 2)
    """

    def __init__(self, model: nn.Module, name: str):
        nn.Module.__init__(self)  # its weight belongs to another module
        match = _PART.fullmatch(name)
        assert match is not None  # is_named says so
        self._whole = cast("Any", model.get_submodule(match["path"]))
        # transformers' Conv1D stores its weight input first
        self._is_turned = type(self._whole).__name__ == "Conv1D" and hasattr(self._whole, "nf")
        if not self._is_turned and not isinstance(self._whole, nn.Linear):
            raise BadInput(f"{name} is a part of {type(self._whole).__name__}; expected one of nn.Linear")
        n_rows = int(self._whole.weight.shape[1 if self._is_turned else 0])
        if match["parts"] is None:
            first, end = int(match["first"]), int(match["end"])
        else:
            size = n_rows // max(int(match["parts"]), 1)
            first, end = size * int(match["part"]), size * (int(match["part"]) + 1)
            if size * int(match["parts"]) != n_rows:
                raise BadInput(f"{name}: the {n_rows} rows cannot be cut into {match['parts']} equal parts")
        if not 0 <= first < end <= n_rows:
            raise BadInput(f"{name} is rows {first} to {end}; {match['path']} has {n_rows}, from 0")
        self._rows = slice(first, end)
        self.register_forward_pre_hook = self._whole.register_forward_pre_hook

    @staticmethod
    def is_named(name: str) -> bool:
        """Return True for the name of a part.

        Args:
            name: of a module, or of a part of one.
        """
        return _PART.fullmatch(name) is not None

    @property
    def weight(self) -> Float[Tensor, "rows width"]:
        """The rows of the part."""
        whole = self._whole.weight.T if self._is_turned else self._whole.weight
        return whole[self._rows]

    @property
    def bias(self) -> Float[Tensor, " rows"] | None:
        """Its entries of the bias; None if there is none."""
        return None if self._whole.bias is None else self._whole.bias[self._rows]


def require_plain_weight(name: str, projection: Any) -> None:
    """Refuse a projection whose weight is not in memory, or is of a class that may compute something else.

    Args:
        name: of the projection.
        projection: with a ``weight``.

    Raises:
        BadInput: the weight is offloaded, or quantised by the class of its tensor.

    Example:
        >>> require_plain_weight("to_q", nn.Linear(2, 2))
        >>> require_plain_weight("to_q", nn.Linear(2, 2, device="meta"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        attnlib.errors.BadInput: to_q has no weights in memory: they are offloaded (device_map) ...
    """
    weight = projection.weight
    if weight.is_meta:
        raise BadInput(
            f"{name} has no weights in memory: they are offloaded (device_map) or were never loaded; load "
            "the model whole, on one device"
        )
    kind = type(weight)
    if kind not in (Tensor, nn.Parameter):
        raise BadInput(
            f"{name} has a weight of the class {kind.__module__}.{kind.__qualname__}, as quantised or "
            "distributed models have, which may compute something else than its numbers say: load the model "
            "in full, on one device"
        )


# -- attention that a function of torch makes, and no module returns --

SOFTMAXES = (torch.softmax, torch.Tensor.softmax, F.softmax, torch.special.softmax)
Change = Callable[[Tensor], Tensor]


class FunctionalAttention(TorchFunctionMode):
    """See, and perhaps change, each attention that functions of torch make while this mode is on.

    An attention is a softmax along the last of three axes or more, or the weights that scaled dot product
    attention makes of its query, key and mask before it averages the values. A module that computes its
    attention in such a call returns it to nobody, so that no hook on a module can catch it.

    Args:
        change: replaces each attention by its result; None: attentions are recorded alone.
        seen: receives each attention, (..., target, source), as it was before the change.

    Example:
        >>> seen = []
        >>> with FunctionalAttention(None, seen):
        ...     _ = torch.zeros(1, 2, 3).softmax(-1)
        >>> [tuple(attention.shape) for attention in seen]
        [(1, 2, 3)]
    """

    def __init__(self, change: Change | None, seen: list[Tensor]):
        super().__init__()
        self.change = change
        self.seen = seen

    def __torch_function__(  # noqa: PLR0917, torch calls it by place
        self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ):
        kwargs = kwargs or {}
        if function in SOFTMAXES:
            return self._softmax(function, args, kwargs)
        if function is F.scaled_dot_product_attention:
            return self._scaled_dot_product(args, kwargs)
        return function(*args, **kwargs)

    def _softmax(self, function: Any, args: tuple, kwargs: dict) -> Tensor:
        weights = function(*args, **kwargs)
        axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
        is_attention = weights.dim() >= 3 and axis in (-1, weights.dim() - 1)
        if not is_attention:
            return weights
        self.seen.append(weights)
        return weights if self.change is None else self.change(weights)

    def _scaled_dot_product(self, args: tuple, kwargs: dict) -> Tensor:
        weights, values = attention_of_arguments(*args, **kwargs)
        self.seen.append(weights)
        if self.change is None:
            return F.scaled_dot_product_attention(*args, **kwargs)  # rounded as the model's own
        return self.change(weights) @ values


def attention_of_arguments(  # noqa: PLR0917, the arguments of F.scaled_dot_product_attention
    query: Float[Tensor, "*batch target width"],
    key: Float[Tensor, "*batch source width"],
    value: Float[Tensor, "*batch source out"],
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: FBT001, FBT002, as torch has it
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Float[Tensor, "*batch target source"], Float[Tensor, "*batch source out"]]:
    """Return the weights that ``F.scaled_dot_product_attention`` gives to its values, and the values.

    The weights are computed by the definition in torch's documentation, without dropout.

    Args:
        query: one vector a target position.
        key: one vector a source position.
        value: what is averaged, one vector a source position.
        attn_mask: boolean, True where a query may look; or numbers that are added to the scores.
        dropout_p: ignored.
        is_causal: whether position s sees positions up to s alone.
        scale: of the product of query and key; 1/√width by default.
        enable_gqa: whether several query heads (axis -3) share a head of keys and values.

    Returns:
        The weights, which sum to one over the source, and the values, repeated for heads that share them.

    Example:
        >>> states = torch.eye(2)[None, None]
        >>> weights, values = attention_of_arguments(states, states, states, is_causal=True)
        >>> context = F.scaled_dot_product_attention(states, states, states, is_causal=True)
        >>> torch.allclose(weights @ values, context)
        True
    """
    if enable_gqa:
        query_heads = query.shape[-3]
        key = key.repeat_interleave(query_heads // key.shape[-3], dim=-3)
        value = value.repeat_interleave(query_heads // value.shape[-3], dim=-3)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.mT * factor  # (*batch, target, source)
    if is_causal:
        is_future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(is_future, -torch.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return scores.softmax(-1), value


# -- what modules read and return while a model runs once --


class Hooks:
    """Hooks on modules of a model, which are removed at the end of the ``with`` block.

    Within the block the model is in evaluation mode, without gradients; see :func:`evaluated`. A module whose
    input or output is caught may run once only.

    Args:
        model: is run within the block.

    Attributes:
        inputs: the first argument of modules, by the name under which it was caught.
        outputs: what modules returned, by name.
        made: attentions that functions of torch made while a module ran, by name.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> with Hooks(model) as hooks:
        ...     hooks.catch_input("relu", model[1])
        ...     _ = model(torch.zeros(1, 2))
        >>> tuple(hooks.inputs["relu"].shape)
        (1, 3)
    """

    def __init__(self, model: nn.Module):
        self._model = model
        self._stack = ExitStack()
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Outputs] = {}
        self.made: dict[str, list[Tensor]] = {}
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
        """Keep the first argument of a module.

        Args:
            name: under which :attr:`inputs` has it.
            module: runs once in the block.
        """

        def keep(_: nn.Module, args: tuple, kwargs: dict) -> None:
            self._require_first(name, self.inputs)
            self.inputs[name] = (*args, *kwargs.values())[0]

        self._stack.callback(module.register_forward_pre_hook(keep, with_kwargs=True).remove)

    def catch_output(self, name: str, module: nn.Module) -> None:
        """Keep what a module returns.

        Args:
            name: under which :attr:`outputs` has it.
            module: runs once in the block.
        """
        self.replace_output(name, module, lambda output: output)

    def replace_output(self, name: str, module: nn.Module, change: Callable[[Outputs], Outputs]) -> None:
        """Let the model go on with another output of a module, and keep that output.

        Args:
            name: under which :attr:`outputs` has it.
            module: runs once in the block.
            change: makes the new output of the module's.
        """

        def keep(_: nn.Module, _args: tuple, output: Outputs) -> Outputs:
            self._require_first(name, self.outputs)
            self.outputs[name] = change(output)
            return self.outputs[name]

        self._stack.callback(module.register_forward_hook(keep).remove)

    @staticmethod
    def _require_first(name: str, kept: dict) -> None:
        if name in kept:
            raise BadInput(
                f"{name} runs more than once in a pass, so its attentions cannot be kept apart; "
                "give each attention separate modules, and let the decoder read all steps at once. If layers "
                "share modules, or the decoder goes step by step, keep the states of every step in your code "
                "and give them as tensors (attnlib.pass_of_tensors)"
            )

    def look_within(self, name: str, module: nn.Module, change: Change | None = None) -> None:
        """Keep the attentions that functions of torch make while a module runs.

        Args:
            name: under which :attr:`made` has them.
            module: is looked into.
            change: replaces each of them; see :class:`FunctionalAttention`.
        """
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

    def rewrite(self, module: nn.Module, change: Rewrite) -> None:
        """Call a module with other arguments.

        Args:
            module: whose arguments are changed.
            change: makes the new arguments, a tuple and a dictionary, of the old ones.
        """
        hook = module.register_forward_pre_hook(
            lambda _, args, kwargs: change(args, kwargs), with_kwargs=True
        )
        self._stack.callback(hook.remove)


@contextmanager
def evaluated(model: nn.Module) -> Iterator[None]:
    """Run a model without dropout and gradients, and uncompiled, so that its hooks are called.

    Args:
        model: is in evaluation mode within the block; each of its modules is as before afterwards.

    Yields:
        Nothing.

    Example:
        >>> model = nn.Dropout()
        >>> with evaluated(model):
        ...     model.training
        False
        >>> model.training
        True
    """
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
    """Run compiled modules as they were written: code that was compiled in an earlier pass calls no hooks."""
    eager: AbstractContextManager = nullcontext()
    if "torch._dynamo" in sys.modules:  # else nothing is compiled, and loading it takes seconds
        eager = torch.compiler.set_stance("force_eager")
    with eager:
        yield


def described(model: nn.Module) -> str:
    """Return the class of a model and its number of parameters, in words.

    Args:
        model: a network of any class.

    Returns:
        As in ``"T5ForConditionalGeneration, 60,506,624 parameters"``.

    Example:
        >>> described(nn.Linear(2, 3))
        'Linear, 9 parameters'
    """
    size = sum(parameter.numel() for parameter in model.parameters())
    return f"{type(model).__name__}, {size:,} parameters"


def weights_digest(model: nn.Module) -> str:
    """Return the SHA-256 of a model's weights and their names.

    Entries of the state dict that are not dense tensors, or are on the meta device,
    count by their names alone.

    Args:
        model: a network of any class.

    Returns:
        64 hexadecimal digits.

    Example:
        >>> layer = nn.Linear(2, 3)
        >>> before = weights_digest(layer)
        >>> _ = nn.init.zeros_(layer.weight)
        >>> len(before), weights_digest(layer) == before
        (64, False)
    """
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        if isinstance(value, Tensor) and value.layout == torch.strided and not value.is_meta:
            flat = value.detach().cpu().contiguous().flatten()
            digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(ShowsShapes):
    """Some pairs of a sample and a source position, which a model sees together.

    Attributes:
        samples: numbers of the samples in their batch.
        positions: the source position of each pair.
        steps: how many target steps are run; those of the longest target among the pairs, or more.

    Example:
        >>> Pairs(torch.tensor([0, 0]), torch.tensor([1, 2]), steps=4).steps
        4
    """

    samples: Int[Tensor, " pairs"]
    positions: Int[Tensor, " pairs"]
    steps: int


def probe_of_pairs(
    trace: Trace,
    logits: Callable[[Pairs], Float[Tensor, "pairs steps words"]],
    groups: Iterable[Pairs] | None = None,
) -> Float[Tensor, "batch target source"]:
    """Return the lexical probe β of a pass from what a model predicts when it sees one position alone.

    The model runs once for all pairs of a group, whatever it is made of. Where its logits are those of a sum
    of a source and a target part, :func:`~attnlib.probes.lexical_probe.log_probability_of_pairs` needs no
    such run, and returns logarithms, in which small probabilities keep their digits.

    Args:
        trace: the pass of a model over a batch.
        logits: returns the logits of the samples of some pairs where each sees its source position alone.
        groups: the pairs to run together; by default those of :func:`pairs_by_length`.

    Returns:
        β[s, t], the probability of the right word of step s if source position t alone is seen; zero at
        padding.

    Raises:
        BadInput: the model predicts fewer words than the ids of the right ones need.

    Example:
        >>> from attnlib.adapters.tensors import pass_of_tensors
        >>> words, valid = torch.tensor([[1, 0]]), torch.ones(1, 2, dtype=torch.bool)
        >>> tensors = {"source_tokens": words, "source_mask": valid}
        >>> tensors |= {"target_tokens": words, "target_mask": valid}
        >>> trace = pass_of_tensors(tensors | {"encoder_self.0.query_states": torch.eye(2)[None]})
        >>> probe_of_pairs(trace, lambda pairs: torch.zeros(len(pairs.samples), pairs.steps, 4))
        tensor([[[0.2500, 0.2500],
                 [0.2500, 0.2500]]])
    """
    right_words = trace.target_outputs.masked_fill(~trace.target_mask, 0)  # at padding any id may be
    largest_id = int(right_words.max())
    n_source = trace.source_tokens.shape[1]
    beta = torch.zeros(*right_words.shape, n_source, device=trace.source_tokens.device)
    for pairs in pairs_by_length(trace) if groups is None else groups:
        predicted = logits(pairs).float()  # (pairs, steps, words)
        n_words = predicted.shape[-1]
        if largest_id >= n_words:
            raise BadInput(
                f"a right word has id {largest_id}; the model predicts {n_words} words, "
                "from 0: take the pass and the probe of one model"
            )
        right = right_words[pairs.samples, : pairs.steps]  # (pairs, steps)
        log_probability = log_probability_of(right, predicted)  # (pairs, steps)
        beta[pairs.samples, : pairs.steps, pairs.positions] = log_probability.exp()
    return beta.masked_fill(~trace.target_mask[:, :, None], 0)


def pairs_by_position(trace: Trace) -> Iterator[Pairs]:
    """Yield, for each source position, the samples that are long enough to have it.

    Args:
        trace: the pass of a model over a batch.

    Yields:
        Pairs of one position each, with all steps of the padded target.

    Example:
        >>> from attnlib.adapters.tensors import pass_of_tensors
        >>> words, valid = torch.tensor([[5, 6], [7, 0]]), torch.tensor([[True, True], [True, False]])
        >>> tensors = {"source_tokens": words, "source_mask": valid}
        >>> trace = pass_of_tensors(tensors | {"target_tokens": words, "target_mask": valid})
        >>> [pairs.samples.tolist() for pairs in pairs_by_position(trace)]
        [[0, 1], [0]]
    """
    for position in trace.source_mask.any(0).nonzero()[:, 0].tolist():
        samples = trace.source_mask[:, position].nonzero()[:, 0]
        yield Pairs(samples, torch.full_like(samples, position), steps=trace.target_tokens.shape[1])


def pairs_by_length(trace: Trace, least: int = 2048) -> Iterator[Pairs]:
    """Yield all pairs, those of samples with targets of like length together, the longest first.

    Each group runs about as many target steps at once as the batch has, or ``least``, so that memory does
    not grow with the number of pairs.

    Args:
        trace: the pass of a model over a batch.
        least: target steps of a group, together, at least.

    Yields:
        Groups of pairs, with the steps of the longest target of the group.

    Example:
        >>> from attnlib.adapters.tensors import pass_of_tensors
        >>> words, valid = torch.tensor([[5, 6], [7, 0]]), torch.tensor([[True, True], [True, False]])
        >>> tensors = {"source_tokens": words, "source_mask": valid}
        >>> trace = pass_of_tensors(tensors | {"target_tokens": words, "target_mask": valid})
        >>> [(pairs.samples.tolist(), pairs.steps) for pairs in pairs_by_length(trace, least=4)]
        [([0, 0], 2), ([1], 1)]
    """
    samples, positions = trace.source_mask.nonzero().unbind(1)  # (pairs,) both
    lengths = trace.target_mask.sum(1)[samples]  # (pairs,)
    longest_first = lengths.argsort(descending=True)  # (pairs,)
    steps_at_once = max(trace.target_mask.numel(), least)
    start = 0
    while start < len(longest_first):
        steps = int(lengths[longest_first[start]])
        size = max(1, steps_at_once // steps)
        group = longest_first[start : start + size]
        yield Pairs(samples[group], positions[group], steps)
        start += size


# -- models --


class ModelAdapter:
    """A model whose hooked attentions are caught in every pass; the base of the adapters of models.

    Subclasses define ``_prepared(batch)``, which adds what the decoder reads, and ``_run(batch)``, which
    calls the model.

    Args:
        model: any module, which is left as it is.
        hooked: the attentions to catch.
        ignored: ids of tokens, such as special ones, that no analysis counts; or those of each side, by side.

    Attributes:
        model: the model.
        hooked: the attentions, as a tuple.
        ignored: the ids, as a tuple, or by side.

    Example:
        >>> ModelAdapter(nn.Linear(2, 2), (), ignored=[0, 1]).ignored
        (0, 1)
    """

    def __init__(
        self,
        model: nn.Module,
        hooked: Hooked | Sequence[Hooked],
        ignored: int | Collection[int] | Mapping[str, Collection[int]],
    ):
        self.model: Any = model  # of any class: its attributes are not known here
        self.hooked: tuple[Hooked, ...] = as_tuple(hooked)
        self.ignored: tuple[int, ...] | Mapping[str, Collection[int]]
        if isinstance(ignored, Mapping):
            by_side = cast("Mapping[str, Collection[int]]", ignored)  # a collection of ids is not a mapping
            self.ignored = by_side
        else:
            self.ignored = as_tuple(ignored)
        self._modules: dict[str, Any] = dict(model.named_modules())

    def trace(self, batch: TokenBatch | FrameBatch | Mapping[str, Any]) -> Trace:
        """Run the model on one batch under teacher forcing, without dropout and gradients.

        Args:
            batch: of tokens or frames; or a dictionary with ``input_ids`` and ``labels``, as the transformers
                library has them.

        Returns:
            The validated trace, padded at the right, with the attentions that are hooked.

        Raises:
            BadInput: a module does not run, or runs more than once; it returns no attention, or another one
                than the projections make; the model cannot take the batch.
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
            attentions=tuple(self._attention(place, hooks) for place in self.hooked),
        )
        try:
            return trace.ignoring(self.ignored).validated()
        except BadInput as error:
            hints = self._hints(trace)
            if not hints:
                raise
            raise BadInput(f"{error}. {' '.join(hints)}") from error

    def _hints(self, trace: Trace) -> list[str]:
        """Return what may explain a trace that is refused, from the names of its projections."""
        hints = []
        for place, attention in zip(self.hooked, trace.attentions, strict=True):
            is_one_layer = place.query == place.key and not self._is_packed(place)
            if is_one_layer and not PartOfProjection.is_named(place.query):
                hints.append(
                    f"{place.query} is named for queries and keys: if it makes values as well, name its "
                    f"parts, '{place.query}:0/3' and '{place.query}:1/3'."
                )
            n_samples, length, _ = attention.query_inputs.shape
            if (length, n_samples) == tuple(trace.mask(QUERY_SIDE[place.kind]).shape) and length != n_samples:
                hints.append(
                    f"{place.query} seems to read (length, batch, width): say length_first=True, as for "
                    "fairseq."
                )
        return list(dict.fromkeys(hints))

    def _batch_of(self, batch: object) -> TokenBatch | FrameBatch:
        """Return a batch as it is, or the one that a dictionary holds; raise BadInput for anything else."""
        if isinstance(batch, Mapping):
            return batch_of_mapping(batch)
        if not isinstance(batch, TokenBatch | FrameBatch):
            raise BadInput(
                f"a batch is {type(batch).__name__}; expected an attnlib.TokenBatch, or a dictionary with "
                "input_ids and labels"
            )
        return batch

    def _prepared(self, batch: Any) -> Any:
        """Return the batch packed, with what the decoder reads, on the model's device."""
        raise NotImplementedError

    def _run(self, batch: Any) -> object:
        """Call the model on a prepared batch."""
        raise NotImplementedError

    def _module(self, name: str) -> Any:
        if name not in self._modules and PartOfProjection.is_named(name):
            self._module(re.split(r"[:\[]", name)[0])
            self._modules[name] = PartOfProjection(self.model, name)
        if name not in self._modules:
            near = get_close_matches(name, self._modules, n=3, cutoff=0.4)
            hint = f"near are {', '.join(near)}" if near else "none is near; see model.named_modules()"
            raise BadInput(f"no module {name!r} in {type(self.model).__name__}; {hint}")
        return self._modules[name]

    def _is_packed(self, place: Hooked) -> bool:
        """Return True if one ``nn.MultiheadAttention`` makes queries, keys and attention."""
        return isinstance(self._module(place.query), nn.MultiheadAttention)

    def _watch(self, hooks: Hooks) -> None:
        """Set the hooks that catch inputs of projections, what linear ones return, and attentions."""
        packed = {place.query for place in self.hooked if self._is_packed(place)}
        projections: set[str] = set()
        attentions = set(packed)
        for place in self.hooked:
            if self._is_packed(place):
                continue
            projections |= {place.query, place.key}
            if place.attention is not None:
                attentions.add(place.attention)
        for name in packed:
            module = self._module(name)
            rewrite = partial(_returning_attention, hooks=hooks, name=name, batch_first=module.batch_first)
            hooks.rewrite(module, rewrite)
        for name in projections:
            module = self._module(name)
            hooks.catch_input(name, module)
            is_plain = type(module).forward is nn.Linear.forward and not module._forward_hooks
            if is_plain and name not in attentions:
                hooks.catch_output(name, module)
        for name in attentions:
            hooks.catch_output(name, self._module(name))

    def _attention(self, place: Hooked, hooks: Hooks) -> Attention:
        """Return the attention that was caught at a place, its scores not computed yet."""
        caught = self._caught_at(place, hooks)
        one_sequence = caught.query_inputs is caught.key_inputs
        if one_sequence and place.kind == "cross":
            raise BadInput(f"{place.name} reads one sequence: say kind='encoder_self' or kind='decoder_self'")
        query_map, key_map = caught.maps
        head_width = query_map.weight.shape[1]
        query_site, key_site = self._sites(place, one_sequence=one_sequence)
        attention = Attention(
            kind=place.kind,
            layer=place.layer,
            query_inputs=single(caught.query_inputs),
            key_inputs=single(caught.key_inputs),
            query_site=query_site,
            key_site=key_site,
            maps=(query_map, key_map),
            scale=head_width**-0.5 if place.scale is None else place.scale,
            position_bias=self._position_bias(place, hooks),
            weights=caught.attention,
            causal=place.kind == "decoder_self",
            precision=caught.query_inputs.dtype,
        )
        queries, keys = caught.queries, caught.keys
        if not isinstance(queries, Tensor) or not isinstance(keys, Tensor):
            return attention
        is_exact = min(queries.element_size(), keys.element_size()) >= 4  # single precision at least
        return attention.with_projection_outputs(queries, keys) if is_exact else attention

    def _caught_at(self, place: Hooked, hooks: Hooks) -> "_Caught":
        """Return what the hooks caught of an attention."""
        if self._is_packed(place):
            module = self._module(place.query)
            query_name, key_name = f"{place.query}:query", f"{place.query}:key"
            query_inputs, key_inputs = _input_of(hooks, query_name), _input_of(hooks, key_name)
            maps = _packed_maps(module)
            attention = self._seen_attention(hooks, place.query, module.num_heads)
        else:
            query_name, key_name = place.query, place.key
            query_inputs, key_inputs = _input_of(hooks, query_name), _input_of(hooks, key_name)
            if place.length_first:
                is_one_sequence = key_inputs is query_inputs
                query_inputs = query_inputs.transpose(0, 1)  # (batch, target, width)
                key_inputs = query_inputs if is_one_sequence else key_inputs.transpose(0, 1)
            key_map = LinearMap.of(self._module(key_name), place.n_key_heads)
            maps = (LinearMap.of(self._module(query_name), place.heads), key_map.shared_by(place.heads))
            attention = None
            if place.attention is not None:
                attention = self._seen_attention(hooks, place.attention, place.heads)
        return _Caught(
            query_inputs=query_inputs,
            key_inputs=key_inputs,
            maps=maps,
            attention=attention,
            queries=_projected(hooks, query_name, place),
            keys=_projected(hooks, key_name, place) if place.n_key_heads == place.heads else None,
        )

    def _sites(self, place: Hooked, *, one_sequence: bool) -> tuple[str, str]:
        """Return the names of the states of queries and keys; states of one name share their components."""
        query_site = f"{place.name}.query"
        return query_site, query_site if one_sequence else f"{place.name}.key"

    def _position_bias(
        self, place: Hooked, hooks: Hooks
    ) -> Float[Tensor, "batch heads target source"] | None:
        """Return what the model adds to the scores by position; None if nothing is known of it."""
        return None

    def _seen_attention(
        self, hooks: Hooks, name: str, heads: int
    ) -> Float[Tensor, "batch heads target source"]:
        """Return the attention that a module returned, or that functions of torch made within it."""
        output = _output_of(hooks, name)
        returned = output[-1] if isinstance(output, tuple) else output
        if _is_attention(returned, heads):
            return returned
        made = hooks.made.get(name, [])
        if len(made) == 1:
            attention = _by_heads(made[0], heads)
            if _is_attention(attention, heads):
                return attention
        shape = tuple(returned.shape) if isinstance(returned, Tensor) else type(returned).__name__
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in made) or "none"
        raise BadInput(
            f"{name} returns {shape}; expected attention of shape (batch, {heads}, target, source), or one "
            f"made within it by a softmax or scaled_dot_product_attention of torch (there: {shapes})"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Caught(ShowsShapes):
    """An attention as hooks caught it: the inputs of its projections, the maps, and what was returned.

    Attributes:
        queries: what the query projection returned, if it is a plain linear layer.
    """

    query_inputs: Float[Tensor, "batch target width"]
    key_inputs: Float[Tensor, "batch source width"]
    maps: tuple[LinearMap, LinearMap]
    attention: Float[Tensor, "batch heads target source"] | None
    queries: object
    keys: object


class Modules(ModelAdapter):
    """Trace a model of which some modules are watched while it runs.

    Args:
        model: any module; it is left as it is.
        hooked: the attentions to catch.
        run: calls the model on a packed batch, whose decoder reads ``batch.read``. Its result matters
            for :meth:`logits` and :meth:`lexical_probe` alone: logits, or an object that has them as
            ``logits``.
        start: the id that the decoder reads at the first step if a batch has no ``read``; later steps read
            the target.
        unchecked: allow attentions for which ``attention`` is not given.
        ignored: ids of tokens, such as special ones, that no analysis counts.

    Raises:
        BadInput: a module does not exist or is not a projection; nothing would check an attention; two
            attentions have one kind and layer; none is given.

    Example:
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
        self.run = run
        self.start = start
        # True if attention is forced within the module rather than in what it returns, once that is known.
        self._within: dict[Hooked, bool] = {}
        if not self.hooked:
            raise BadInput("no attention is hooked: name the modules of one or more")
        names = [place.name for place in self.hooked]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"{names.count(name)} attentions are called {name}: give each a layer")
        for place in self.hooked:
            self._require(place, unchecked=unchecked)

    def _require(self, place: Hooked, *, unchecked: bool) -> None:
        """Raise BadInput unless the names of an attention are those of modules that can make it."""
        if self._is_packed(place):
            if place.key != place.query:
                raise BadInput(f"{place.query} makes queries and keys: name it for both, not {place.key!r}")
            _packed_maps(self._module(place.query))
            return
        for name in (place.query, place.key):
            if not isinstance(self._module(name), nn.Linear):
                raise BadInput(
                    f"{name} is {type(self._module(name)).__name__}; expected nn.Linear, a projection, or "
                    "nn.MultiheadAttention; of a layer that makes several things at once name the part, "
                    f"'{name}:0/3'. A side that has none, as in Luong's general score, takes an "
                    "nn.Linear without bias whose weight is torch.eye(width), run in the model's pass"
                )
            require_plain_weight(name, self._module(name))
        if place.heads < 1:
            raise BadInput(f"{place.name}: heads is {place.heads}; say how many share {place.query}")
        if place.n_key_heads < 1 or place.heads % place.n_key_heads:
            raise BadInput(
                f"{place.name}: key_heads is {place.key_heads}; expected a divisor of heads, {place.heads}"
            )
        self._require_equal_widths(place)
        if place.attention is not None:
            self._module(place.attention)
        elif not unchecked:
            raise BadInput(
                f"{place.name}: nothing checks the scores made of {place.query} and {place.key}. Name a "
                "module that returns the attention, or within which torch.softmax or "
                "F.scaled_dot_product_attention makes it, or say unchecked=True"
            )

    def _require_equal_widths(self, place: Hooked) -> None:
        """Raise BadInput if heads of queries and keys differ in width, and name what they may be."""
        n_query_rows, n_key_rows = (len(self._module(name).weight) for name in (place.query, place.key))
        if n_query_rows * place.n_key_heads == n_key_rows * place.heads:
            return
        width = n_query_rows // place.heads
        ways = []
        if width and n_key_rows % width == 0 and place.heads % (n_key_rows // width) == 0:
            ways.append(f"if several heads of queries share one of keys, say key_heads={n_key_rows // width}")
        for n_parts in (2, 3):
            if n_key_rows == n_parts * n_query_rows:
                part = "0/2" if n_parts == 2 else "1/3"
                ways.append(f"if {place.key} makes more than keys, name their part, '{place.key}:{part}'")
            if n_query_rows == n_parts * n_key_rows:
                ways.append(
                    f"if {place.query} makes more than queries, name their part, '{place.query}:0/{n_parts}'"
                )
        ways = ways or [f"name the rows that make queries and keys, as in '{place.key}[0:{n_query_rows}]'"]
        raise BadInput(
            f"{place.name}: {place.heads} heads share {n_query_rows} rows of queries, and "
            f"{place.n_key_heads} heads {n_key_rows} rows of keys; expected equal widths: {'; '.join(ways)}"
        )

    def logits(self, trace: Trace) -> Float[Tensor, "batch target words"]:
        """Return what the model predicts at every step of a pass.

        Args:
            trace: of the pass, which is run again.

        Returns:
            Logits of each word, as ``run`` returns them.

        Raises:
            BadInput: ``run`` returns no logits.
        """
        batch = _batch_of(trace)
        with evaluated(self.model), _slow_path():
            return _logits_in(self._run(batch), batch)

    def lexical_probe(self, trace: Trace) -> Float[Tensor, "batch target source"]:
        """Return the lexical probe β: the probability of the right word if one source position alone is seen.

        Snell et al. 2021, equation 4: every head of every hooked cross-attention sees that position and no
        other, so that all of them should be hooked. It takes a pass of the model for each source position,
        over the samples that have it, and one for each attention.

        Args:
            trace: the pass of a model over a batch.

        Returns:
            β[s, t] for target step s and source position t; zero at padding.

        Raises:
            BadInput: no cross-attention is hooked; the model does not go on with the attention that a named
                module returns, so that it cannot be forced; ``run`` returns no logits.
        """
        cross = [place for place in self.hooked if place.kind == "cross"]
        if not cross:
            raise BadInput("no cross-attention is hooked: nothing can be made to see one source position")
        batch = _batch_of(trace)
        for place in cross:
            self._find_way_to_force(place, batch)

        def logits(pairs: Pairs) -> Float[Tensor, "pairs steps words"]:
            position = int(pairs.positions[0])  # that of all pairs of the group
            return self._forced(batch.rows(pairs.samples), dict.fromkeys(cross, position))

        return probe_of_pairs(trace, logits, pairs_by_position(trace))

    def _find_way_to_force(self, place: Hooked, batch: TokenBatch) -> None:
        """Find out whether a model goes on with the attention that a module returns, or with one made within.

        An attention of NaN is put in either place. Where the model uses it, every logit becomes NaN.
        """
        if self._is_packed(place) or place in self._within:
            return
        if place.attention is None:
            raise BadInput(f"{place.name}: name the module that makes its attention, to force it")
        for within in (False, True):
            self._within[place] = within
            logits = self._forced(batch, {place: None})  # (batch, target, words)
            if bool(logits[batch.target_mask].isnan().all()):
                return
        del self._within[place]
        raise BadInput(
            f"{place.name}: the model does not go on with the attention that {place.attention} returns, "
            "or makes by a softmax or scaled_dot_product_attention of torch; name the module that makes it"
        )

    def _forced(
        self, batch: TokenBatch, positions: Mapping[Hooked, int | None]
    ) -> Float[Tensor, "batch target words"]:
        """Return the logits where each of some attentions sees one source position; None makes it NaN."""
        with Hooks(self.model) as hooks, _slow_path():
            for place, position in positions.items():
                self._force(place, position, hooks)
            return _logits_in(self._run(batch), batch)

    def _force(self, place: Hooked, position: int | None, hooks: Hooks) -> None:
        """Let an attention see one source position alone, as :meth:`_find_way_to_force` found out how."""
        if self._is_packed(place):
            module = self._module(place.query)
            axis = int(module.batch_first)
            hooks.rewrite(module, partial(_seeing_one_position, position=position, axis=axis))
            return
        assert place.attention is not None  # _find_way_to_force refuses others
        module = self._module(place.attention)
        if self._within[place]:
            hooks.look_within(place.attention, module, partial(_on_position, position=position))
        else:
            change = partial(_with_attention_on, position=position, heads=place.heads)
            hooks.replace_output(place.attention, module, change)

    def _watch(self, hooks: Hooks) -> None:
        super()._watch(hooks)
        names = {place.attention for place in self.hooked if not self._is_packed(place)}
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
                    "a batch does not say what the decoder reads: give the batch ``read``, or give "
                    "Modules a start"
                )
            batch = replace(batch, read=shifted(batch.target, self.start))
        weights = next(self.model.parameters(), None)
        return batch if weights is None else batch.to(weights.device)

    def _run(self, batch: TokenBatch) -> object:
        return self.run(self.model, batch)


def _batch_of(trace: Trace) -> TokenBatch:
    return TokenBatch(
        source=trace.source_tokens,
        source_mask=trace.source_mask,
        target=trace.target_outputs,
        target_mask=trace.target_mask,
        read=trace.target_tokens,
    )


def _projected(hooks: Hooks, name: str, place: Hooked) -> object:
    """Return what a projection returned, (batch, length, rows); None if it was not caught."""
    rows = hooks.outputs.get(name)
    if place.length_first and isinstance(rows, Tensor):
        return rows.transpose(0, 1)
    return rows


def _input_of(hooks: Hooks, name: str) -> Tensor:
    _require_run(name, hooks.inputs)
    return hooks.inputs[name]


def _output_of(hooks: Hooks, name: str) -> Outputs:
    _require_run(name, hooks.outputs)
    return hooks.outputs[name]


def _require_run(name: str, caught: Mapping[str, object]) -> None:
    if name not in caught:
        raise BadInput(f"{name} was not run: is it the module of another path through the model?")


def _is_attention(value: object, heads: int) -> TypeGuard[Float[Tensor, "batch heads target source"]]:
    return isinstance(value, Tensor) and value.dim() == 4 and value.shape[1] == heads


def _by_heads(attention: Tensor, heads: int) -> Tensor:
    """Return (batch · heads, target, source), as some code has it, with an axis for the heads."""
    if attention.dim() == 3 and len(attention) % heads == 0:
        return attention.unflatten(0, (-1, heads))
    return attention


def _on_position(attention: Tensor, *, position: int | None) -> Tensor:
    """Return attention of the same shape, all of it on one source position; NaN if ``position`` is None."""
    if position is None:
        return torch.full_like(attention, torch.nan)
    forced = torch.zeros_like(attention)  # (..., target, source)
    forced[..., position] = 1
    return forced


def _with_attention_on(output: Outputs, *, position: int | None, heads: int) -> Outputs:
    """Return a module's output with its attention on one source position; as it is if it has none."""
    attention = output[-1] if isinstance(output, tuple) else output
    if not _is_attention(attention, heads):
        return output
    forced = _on_position(attention, position=position)
    return (*output[:-1], forced) if isinstance(output, tuple) else forced


def _logits_in(output: object, batch: TokenBatch) -> Float[Tensor, "batch target words"]:
    """Return the logits in what ``run`` returned: a tensor, or an object with logits, alone or in a tuple."""
    first = output[0] if isinstance(output, tuple) else output
    logits = getattr(first, "logits", first)
    n_words = int(batch.target[batch.target_mask].max()) + 1
    if isinstance(logits, Tensor) and logits.dim() > 0:
        *leading, n_predicted = logits.shape
        if tuple(leading) == tuple(batch.target.shape) and n_predicted >= n_words:
            return logits
    returned = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
    expected = f"{tuple(batch.target.shape)} by {n_words} or more words"
    raise BadInput(f"run returns {returned}; expected logits of shape {expected}")


# -- torch's own attention, nn.MultiheadAttention --

_ARGUMENTS = tuple(signature(nn.MultiheadAttention.forward).parameters)[1:]  # without self


@contextmanager
def _slow_path() -> Iterator[None]:
    """Keep torch's own encoder layers from running in one call that no hook sees."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _returning_attention(
    args: tuple, kwargs: dict, *, hooks: Hooks, name: str, batch_first: bool
) -> tuple[tuple, dict]:
    """Keep the query and key that ``nn.MultiheadAttention`` is called with, and ask for its attention."""
    arguments = _named_arguments(args, kwargs)
    query, key = arguments["query"], arguments["key"]
    is_self_attention = key is query
    if not batch_first:
        query = query.transpose(0, 1)
        key = key.transpose(0, 1)
    hooks.inputs[f"{name}:query"] = query
    hooks.inputs[f"{name}:key"] = query if is_self_attention else key
    return (), arguments | {"need_weights": True, "average_attn_weights": False}


def _named_arguments(args: tuple, kwargs: dict) -> dict[str, Any]:
    """Return the arguments of a call of ``nn.MultiheadAttention`` by name."""
    return dict(zip(_ARGUMENTS, args, strict=False)) | kwargs


def _seeing_one_position(args: tuple, kwargs: dict, *, position: int | None, axis: int) -> tuple[tuple, dict]:
    """Return arguments of ``nn.MultiheadAttention`` with a mask that leaves one key; axis: of the length."""
    arguments = _named_arguments(args, kwargs)
    query, key = arguments["query"], arguments["key"]
    hidden = torch.ones(query.shape[axis], key.shape[axis], dtype=torch.bool)  # (target, source)
    hidden[:, position] = False
    mask = {"attn_mask": hidden.to(key.device), "key_padding_mask": None, "is_causal": False}
    return (), arguments | mask


def _packed_maps(module: nn.MultiheadAttention) -> tuple[LinearMap, LinearMap]:
    """Return the projections of queries and keys of ``nn.MultiheadAttention``.

    It keeps queries, keys and values in one weight, one after the other; if keys have a width that differs
    from that of queries, in three.
    """
    if module.in_proj_weight is None:
        query_weight, key_weight = module.q_proj_weight, module.k_proj_weight
    else:
        query_weight, key_weight, _ = module.in_proj_weight.chunk(3)
    query_bias = key_bias = None
    if module.in_proj_bias is not None:
        query_bias, key_bias, _ = module.in_proj_bias.chunk(3)
    heads = module.num_heads
    query_map = LinearMap.of_rows(query_weight, query_bias, heads)
    key_map = LinearMap.of_rows(key_weight, key_bias, heads)
    return query_map, key_map


def __getattr__(name: str) -> Any:
    return former_object(__name__, {"Traced": f"{__name__}.ModelAdapter"}, name)
