"""torch's own attention, ``nn.MultiheadAttention``: its projections, and what its calls are told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature

import torch
from torch import nn

from attnlib.adapters.attended import LinearMap
from attnlib.adapters.hooks import Hooks
from attnlib.errors import BadInput

Change = Callable[[tuple, dict], tuple[tuple, dict]]
_ARGUMENTS = tuple(signature(nn.MultiheadAttention.forward).parameters)[1:]  # without self


@contextmanager
def slow_path() -> Iterator[None]:
    """Keeps torch's own encoder layers from running in one call that no hook sees."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def told_to_return(hooks: Hooks, name: str) -> Change:
    """Keeps what an ``nn.MultiheadAttention`` is given, batch first, and asks for the attention by head."""

    def change(given: tuple, named: dict) -> tuple[tuple, dict]:
        named = _by_name(given, named)
        for side in ("query", "key"):
            hooks.inputs[f"{name}:{side}"] = named[side]
        return (), named | {"need_weights": True, "average_attn_weights": False}

    return change


def told_to_see(place: int) -> Change:
    """Lets every query see one key, and no other."""

    def change(given: tuple, named: dict) -> tuple[tuple, dict]:
        named = _by_name(given, named)
        hidden = torch.ones(named["query"].shape[1], named["key"].shape[1], dtype=torch.bool)
        hidden[:, place] = False
        mask = {"attn_mask": hidden.to(named["key"].device), "key_padding_mask": None, "is_causal": False}
        return (), named | mask

    return change


def _by_name(given: tuple, named: dict) -> dict:
    return dict(zip(_ARGUMENTS, given, strict=False)) | named


def packed_maps(module: nn.MultiheadAttention) -> list[LinearMap]:
    """Its projections of queries and of keys, by head.

    Raises:
        BadInput: made with ``batch_first=False``, or with keys of another width.
    """
    if not module.batch_first or module.in_proj_weight is None:
        raise BadInput(
            "an nn.MultiheadAttention with batch_first=False or keys of another width cannot be split; make "
            "it with batch_first=True and one width"
        )
    weights, bias = module.in_proj_weight.chunk(3)[:2], module.in_proj_bias  # queries, keys, values
    biases = (None, None) if bias is None else bias.chunk(3)[:2]
    return [LinearMap.of_rows(*own, module.num_heads) for own in zip(weights, biases, strict=True)]
