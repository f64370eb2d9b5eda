"""Components that are summed and split faster, by less traffic of memory.

The definitions, the tables and what is refused are those of :mod:`attnlib.decomposition.components`, and so
are results but for the order in which float64 sums are added.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from attnlib.arrays import EVERYWHERE, Mask, States, Tokens, takes_arrays
from attnlib.decomposition import components as plain
from attnlib.decomposition.components import BAG, Parts, _bag_sums, checked_mask, sums_by_position

SUMS_AT_ONCE = 1 << 18  # numbers of partial sums: a block that the C library uses again, pages and all
ROWS_AT_ONCE = 1024  # of states that are split at once, so that they stay in the cache meanwhile
TAME = 1e30  # sums by position of this size come of states that are near the end of float32
LARGEST = torch.finfo(torch.float32).max / (2 * BAG)  # states below it can be added up in bags of any company


def add(
    tables: plain.Components,
    states: Float[Tensor, "batch length width"],
    ids: Integer[np.ndarray, "batch length"],
    valid: Bool[np.ndarray, "batch length"],
    row: Callable[[np.ndarray], np.ndarray] = lambda tokens: tokens,
) -> bool:
    """Add states to tables; False, with nothing added, where they are not float32 on the CPU or may overflow.

    ``row``: which rows of the tables tokens have.
    """
    if states.dtype != torch.float32 or {states.device.type, tables.token_sums.device.type} != {"cpu"}:
        return False
    sums = sums_by_position(states.detach(), valid)[: tables.n_positions]
    if not bool(sums.abs().amax() < TAME) or _may_overflow(states.detach(), valid):
        return False
    tables.position_sums[: len(sums)] += sums

    flat, places = states.detach().reshape(-1, states.shape[-1]), np.flatnonzero(valid)
    tokens = ids.ravel()[places]
    # numpy sorts 16-bit integers by radix, several times faster than any other way
    order = np.argsort(tokens.astype(np.uint16) if tokens.max() < 1 << 16 else tokens, kind="stable")
    places, tokens = places[order], tokens[order]
    starts = np.flatnonzero(np.concatenate(([True], tokens[1:] != tokens[:-1])))
    bags = -(-np.diff(starts, append=len(order)) // BAG)  # of each token
    rank = np.arange(bags.sum()) - np.repeat(np.cumsum(bags) - bags, bags)
    begins = np.repeat(starts, bags) + BAG * rank
    rows, ends = torch.from_numpy(row(tokens[begins])), np.append(begins[1:], len(places))
    step = max(1, SUMS_AT_ONCE // states.shape[-1])
    for start in range(0, len(begins), step):
        some = slice(start, start + step)
        inside = places[begins[start] : ends[some][-1]]
        partial = _bag_sums(flat, inside, begins[some] - begins[start])
        tables.token_sums.index_add_(0, rows[some], partial.double())
    cells = torch.from_numpy(row(tokens) * tables.n_positions + places % valid.shape[1])
    tables.pair_counts.view(-1).index_add_(0, cells, torch.ones_like(cells))
    tables._solved.clear()
    return True


def _may_overflow(states: Float[Tensor, "batch length width"], valid: Bool[np.ndarray, "..."]) -> bool:
    """Whether some bag of valid states could sum to infinity, as large ones do whose total cancels."""
    low, high = states.aminmax()
    if bool(torch.maximum(-low, high) < LARGEST):
        return False
    rows = states[torch.from_numpy(valid)]  # what stands at padding does not matter
    return not bool(rows.abs().amax() < LARGEST)


class Components(plain.Components):
    __doc__ = plain.Components.__doc__

    @takes_arrays
    def update(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> "Components":
        valid = checked_mask(states, tokens, mask, **self._sizes())
        ids = tokens.cpu().numpy().astype(np.int64, copy=False)
        if len(valid) and self.method == "means" and add(self, states, ids, valid):
            return self
        return super().update(states, tokens, mask)

    @takes_arrays
    def split(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> Parts:
        quick = states.dtype == torch.float32 and states.device.type == self.token_sums.device.type == "cpu"
        if not (quick and bool(self.pair_counts.any())):
            return super().split(states, tokens, mask)
        valid = checked_mask(states, tokens, mask, **self._sizes())
        batch, length = valid.shape
        temporal, inputs, seen_places, seen_tokens = self._tables_with_padding()
        ids = torch.from_numpy(np.where(valid, tokens.numpy(), self.n_tokens).ravel())
        places = torch.from_numpy(np.where(valid, np.arange(length), self.n_positions).ravel())
        flat = states.detach().reshape(-1, self.width)
        parts = [_room(len(flat), self.width) for _ in range(3)]
        for start in range(0, len(flat), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            position, word, residual = (part[some] for part in parts)
            torch.index_select(temporal, 0, places[some], out=position)
            torch.index_select(inputs, 0, ids[some], out=word)
            torch.sub(flat[some], position, out=residual).sub_(word)
        parts[2][torch.from_numpy(np.flatnonzero(~valid))] = 0
        parts = (part.view(batch, length, self.width) for part in parts)
        unseen_tokens, unseen_places = (
            int((~seen[at]).sum()) for seen, at in ((seen_tokens, ids), (seen_places, places))
        )
        return Parts(*parts, mask=mask, unseen_tokens=unseen_tokens, unseen_positions=unseen_places)

    def _tables_with_padding(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The tables with a row of zeros behind them, seen, which is what padding looks up."""
        if "padded" not in self._solved:
            *means, places, tokens = self._tables(torch.float32, self.token_sums.device)
            padded = [F.pad(table, (0, 0, 0, 1)) for table in means]
            self._solved["padded"] = *padded, *(F.pad(seen, (0, 1), value=True) for seen in (places, tokens))
        return self._solved["padded"]


def _room(*shape: int) -> Float[Tensor, "..."]:
    """Memory from numpy, which asks for large pages: these are cleared at once, not by the thousand."""
    return torch.from_numpy(np.empty(shape, dtype=np.float32))
