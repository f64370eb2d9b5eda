"""First pass over a corpus: the components of all states that projections read, and average attention."""

from collections import defaultdict
from collections.abc import Collection
from copy import deepcopy
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnlib.adapters.attended import Attended
from attnlib.adapters.model_pass import ModelPass
from attnlib.analysis.stream import Losses
from attnlib.decomposition.components import Components, Method
from attnlib.decomposition.typicality import MINIMUM_CELL, Cell
from attnlib.errors import BadInput

Head = tuple[str, int]  # name of the attention, number of the head
ENTRIES = 200_000  # of all average matrices of a head together


class Sums:
    """What either pass adds up, so that ``+`` gives the sums of two parts of a corpus.

    Subclasses name in ``TABLES`` their own sums by key, and have ``empty()``, sums of nothing of their kind,
    and ``tensors()``, all that is summed, named ``table/key/…``. ``losses`` is what the corpus holds beside
    the samples; ``unchecked`` names attentions whose scores were compared with nothing, in some pass;
    ``no_probe`` says why no lexical probe could be taken.
    """

    TABLES: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.samples, self.losses = 0, Losses()
        self.unchecked: frozenset[str] = frozenset()
        self.no_probe: frozenset[str] = frozenset()

    def __add__(self, other: "Sums") -> "Sums":
        """New sums of both; the arguments stay as they are, whatever is added to the result."""
        merged = self.empty()
        merged.samples = self.samples + other.samples
        merged.losses = self.losses + other.losses
        merged.unchecked = self.unchecked | other.unchecked
        merged.no_probe = self.no_probe | other.no_probe
        for table in self.TABLES:
            _add_table(getattr(self, table), getattr(merged, table))
            _add_table(getattr(other, table), getattr(merged, table))
        return merged

    def facts(self) -> dict:
        """What JSON holds of the sums beside their tensors."""
        named = {"unchecked": sorted(self.unchecked), "no_probe": sorted(self.no_probe)}
        return {"samples": self.samples, "losses": vars(self.losses)} | named

    def restore(self, tensors: dict[str, Tensor], facts: dict) -> "Sums":
        self.samples, self.losses = facts["samples"], Losses(**facts["losses"])
        self.unchecked, self.no_probe = (frozenset(facts[name]) for name in ("unchecked", "no_probe"))
        return self

    def _begin(self, one: ModelPass) -> Bool[Tensor, " batch"] | None:
        whole = whole_samples(one)
        if not bool(whole.any()):
            return None
        self.samples += int(whole.sum())
        self.unchecked |= set(one.unchecked)
        return whole


class Fit(Sums):
    """Sums of the first pass, of some heads of every attention or of all; BadInput for none.

    ``method`` of the components: ``"means"`` is that of the papers, ``"least_squares"`` the exact fit.
    """

    TABLES = ("components", "averages")

    def __init__(self, heads: Collection[int] | None = None, method: Method = "means"):
        super().__init__()
        self.method: Method = method
        if heads is not None and not heads:
            raise BadInput("heads is empty: name at least one, or give None for all of them")
        self.heads = None if heads is None else tuple(sorted(set(heads)))
        self.components: dict[str, Components] = {}
        self.averages: dict[str, AverageAttention] = {}  # by attention, of all chosen heads

    def update(self, one: ModelPass) -> "Fit":
        whole = self._begin(one)
        if whole is None:
            return self
        for site, (side, states) in one.sites().items():
            if site not in self.components:
                self.components[site] = self._no_components(states.shape[-1])
            self.components[site].update(states[whole], one.tokens(side)[whole], one.counted(side)[whole])
        for attended in one.attended:
            masks = [one.counted(side)[whole] for side in one.sides(attended.kind)]
            heads = chosen_heads(attended, self.heads)
            attention, _ = counted_attention(one, attended, heads)
            own = self.averages.setdefault(attended.name, AverageAttention(len(heads)))
            own.update(attention[:, whole], *masks)
        return self

    def _no_components(self, width: int) -> Components:
        """Components of nothing yet, whose constants converge as the corpus grows."""
        return Components(width, self.method, constants="by_count")

    def __add__(self, other: "Fit") -> "Fit":
        if self.samples and other.samples and self.averages.keys() != other.averages.keys():
            different = sorted(self.averages.keys() ^ other.averages.keys())[:5]
            raise BadInput(f"cannot merge fits of different attentions: {different} are in one alone")
        return super().__add__(other)

    def empty(self) -> "Fit":
        return Fit(self.heads, self.method)

    def tensors(self) -> dict[str, Tensor]:
        states = {f"components/{site}": own.state_dict() for site, own in self.components.items()}
        states |= {f"averages/{attention}": own.tensors() for attention, own in self.averages.items()}
        return {f"{key}/{name}": table for key, state in states.items() for name, table in state.items()}

    def facts(self) -> dict:
        return super().facts() | {"heads": self.heads, "method": self.method}

    def restore(self, tensors: dict[str, Tensor], facts: dict) -> "Fit":
        self.heads = None if facts["heads"] is None else tuple(facts["heads"])
        self.method = facts["method"]
        self.components = {
            site: self._no_components(state["token_sums"].shape[1]).load_state_dict(state)
            for site, state in grouped(tensors, "components").items()
        }
        self.averages = {
            attention: AverageAttention.of_tensors(own)
            for attention, own in grouped(tensors, "averages").items()
        }
        return super().restore(tensors, facts)


def _add_table(addend: dict, total: dict) -> None:
    """Add sums by key to a total, which shares nothing with them afterwards."""
    for key, sums in addend.items():
        if key in total:
            total[key] = total[key] + sums
        else:
            total[key] = deepcopy(sums)


def grouped(tensors: dict[str, Tensor], table: str) -> dict[str, dict[str, Tensor]]:
    found: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for path, tensor in tensors.items():
        key, _, name = path.removeprefix(f"{table}/").rpartition("/")
        if path.startswith(f"{table}/"):
            found[key][name] = tensor
    return found


def head_of(key: str) -> Head:
    attention, _, head = key.rpartition("/")
    return attention, int(head)


def chosen_heads(attended: Attended, heads: Collection[int] | None) -> list[int]:
    """The heads of an attention that are looked at; BadInput for one that it does not have."""
    absent = sorted(set(heads or ()) - set(range(attended.heads)))
    if absent:
        raise BadInput(f"heads {absent}: {attended.name} has {attended.heads}, counted from 0")
    return list(range(attended.heads)) if heads is None else sorted(heads)


def counted_attention(
    one: ModelPass, attended: Attended, heads: int | list[int]
) -> tuple[Float[Tensor, "*heads batch target source"], Bool[Tensor, "batch target source"]]:
    """Attention among the positions that count, each row summing to one over them, and where that is.

    Of one head, or of several along the first axis. Where no position is ignored this is the model's
    attention, and taken from it if it was caught.
    """
    allowed = attended.allowed(*map(one.counted, one.sides(attended.kind)))
    own = attended.attention
    if own is not None and own.element_size() >= 4 and one.ignored_source is one.ignored_target is None:
        found = of_heads(own.expand(len(allowed), -1, -1, -1), heads)
    else:
        found = of_heads(attended.scores, heads).masked_fill(~allowed, -torch.inf).softmax(-1)
    # A row without anything allowed is padding, or sees only what is ignored: it is zero.
    return found.masked_fill(~allowed, 0), allowed


def of_heads(
    tensor: Float[Tensor, "batch heads target source"], heads: int | list[int]
) -> Float[Tensor, "*heads batch target source"]:
    if isinstance(heads, int):
        return tensor[:, heads]
    every = heads == list(range(tensor.shape[1]))
    return (tensor if every else tensor[:, heads]).transpose(0, 1)


def whole_samples(one: ModelPass) -> Bool[Tensor, " batch"]:
    """Samples of which something counts on both sides."""
    return one.counted("source").any(1) & one.counted("target").any(1)


class AverageAttention:
    """Average attention of some heads by (source length, target length), in bounded memory; mergeable.

    That is :mod:`attnlib.decomposition.typicality` for a corpus read once. The matrices of a head have at
    most :data:`ENTRIES` entries of 8 bytes together. Kept is every size whose longer side has at most
    ``longest`` positions (None: all), the largest number for which all sizes seen fit. It depends on which
    sizes there are, not on when they came, and a size that is kept has all of its samples: halves merged are
    the whole.

    Attributes:
        sums: of the matrices of a size, (heads, target, source) in float64; counts: of its samples.
    """

    def __init__(self, heads: int = 1) -> None:
        self.heads = heads
        self.counts: dict[Cell, int] = {}
        self.longest: int | None = None
        self._starts: dict[Cell, int] = {}  # where the matrix of a size begins among the entries of a head
        self._entries = torch.zeros(heads, 0, dtype=torch.float64)
        self._used = 0  # entries of a head that are of some size
        # Averages that were judged by since the last update.
        self._joined: dict[tuple[Cell, int], Tensor] = {}

    @property
    def sums(self) -> dict[Cell, Float[Tensor, "heads target source"]]:
        return {cell: self._of(cell) for cell in self.counts}

    def _of(self, cell: Cell) -> Float[Tensor, "heads target source"]:
        start = self._starts[cell]
        return self._entries[:, start : start + cell[0] * cell[1]].unflatten(1, cell[::-1])

    def update(
        self,
        attention: Float[Tensor, "*heads batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
    ) -> "AverageAttention":
        self._joined.clear()
        cells = _cells(target_mask, source_mask)
        self._make_room(set(cells))
        here = [cell for cell in cells if cell in self._starts]
        for cell in here:
            self.counts[cell] = self.counts.get(cell, 0) + 1
        if len(here) < len(cells):
            kept = ~self.beyond(target_mask, source_mask)
            target_mask, source_mask, attention = (
                target_mask[kept],
                source_mask[kept],
                attention[..., kept, :, :],
            )
        # All matrices as one row of numbers a head, and the place of each number among the sums.
        values = _flat(attention, target_mask, source_mask)
        sizes = np.array([source * target for source, target in here], dtype=np.int64)
        ahead = np.array([self._starts[cell] for cell in here], dtype=np.int64) - (np.cumsum(sizes) - sizes)
        places = torch.from_numpy(np.repeat(ahead, sizes) + np.arange(values.shape[1]))
        every = places + self._entries.shape[1] * torch.arange(self.heads)[:, None]
        self._entries.view(-1).index_add_(0, every.view(-1), values.reshape(-1))
        return self

    def beyond(
        self, target_mask: Bool[Tensor, "batch target"], source_mask: Bool[Tensor, "batch source"]
    ) -> Bool[Tensor, " batch"]:
        """Samples that are longer than averages are kept of."""
        longer = torch.maximum(target_mask.sum(1), source_mask.sum(1))
        return torch.zeros_like(longer, dtype=torch.bool) if self.longest is None else longer > self.longest

    def typicality(
        self,
        attention: Float[Tensor, "*heads batch target source"],
        target_mask: Bool[Tensor, "batch target"],
        source_mask: Bool[Tensor, "batch source"],
        *,
        minimum: int = MINIMUM_CELL,
    ) -> tuple[Float[Tensor, "*heads batch"], Bool[Tensor, " batch"]]:
        """1 − mean total variation from the average, and whether that is of ``minimum`` of the very size.

        Where it is not, the nearest sizes are joined until there are enough, see :func:`_average_of_sizes`.
        NaN where fewer were summed in all.
        """
        here = _cells(target_mask, source_mask)
        exact = torch.tensor([self.counts.get(cell, 0) >= minimum for cell in here])
        if sum(self.counts.values()) < minimum:
            return torch.full(attention.shape[:-2], torch.nan, dtype=torch.float64), exact
        averages = {cell: self._average(cell, minimum).flatten(1) for cell in set(here)}
        apart = _flat(attention, target_mask, source_mask) - torch.cat([averages[cell] for cell in here], 1)
        ends = np.cumsum([source * target for source, target in here])
        sums = np.add.reduceat(apart.abs_().numpy(), np.concatenate(([0], ends[:-1])), axis=1)
        values = 1 - torch.from_numpy(sums / 2 / np.array([target for _, target in here]))
        return values.view(attention.shape[:-2]), exact

    def _average(self, cell: Cell, minimum: int) -> Float[Tensor, "heads target source"]:
        """Of the nearest sizes that have ``minimum`` samples; made once for all batches that are judged."""
        if (cell, minimum) in self._joined:
            return self._joined[cell, minimum]
        source, target = cell
        cells, counts = list(self.counts), np.array([*self.counts.values(), 0])
        apart = np.abs(np.array(cells, dtype=np.float64) - cell).sum(1)
        order = np.argsort(apart, kind="stable")
        least = apart[order[np.searchsorted(np.cumsum(counts[order]), minimum)]]
        joined = [cells[own] for own in np.flatnonzero(apart <= least)]  # all that are as near
        if sum(map(Tensor.numel, self._joined.values())) > self.heads * ENTRIES:
            self._joined.clear()
        if joined == [cell]:
            found = self._of(cell) / self.counts[cell]
        else:
            sums = {own: (self._of(own).numpy(), self.counts[own]) for own in joined}
            found = torch.from_numpy(_average_of_sizes(sums, target, source))
        self._joined[cell, minimum] = found
        return found

    def __add__(self, other: "AverageAttention") -> "AverageAttention":
        merged = AverageAttention(max(self.heads, other.heads))  # an empty one may not know
        merged.longest = min((own.longest for own in (self, other) if own.longest is not None), default=None)
        merged._make_room(self.counts.keys() | other.counts.keys())
        for own in (self, other):
            for cell in filter(merged._starts.__contains__, own.counts):
                merged.counts[cell] = merged.counts.get(cell, 0) + own.counts[cell]
                merged._of(cell).add_(own._of(cell))
        return merged

    def tensors(self) -> dict[str, Tensor]:
        """What :meth:`of_tensors` makes the same averages of."""
        sums = [self._of(cell).flatten(1) for cell in self.counts]
        return {
            "cells": torch.tensor(list(self.counts), dtype=torch.int64).view(len(self.counts), 2),
            "counts": torch.tensor(list(self.counts.values()), dtype=torch.int64),
            "longest": torch.tensor(-1 if self.longest is None else self.longest),
            "sums": torch.cat([self._entries[:, :0], *sums], 1),
        }

    @classmethod
    def of_tensors(cls, tensors: dict[str, Tensor]) -> "AverageAttention":
        found, longest = cls(len(tensors["sums"])), int(tensors["longest"])
        found.longest = None if longest < 0 else longest
        cells = list(map(tuple, tensors["cells"].tolist()))
        found.counts = dict(zip(cells, tensors["counts"].tolist(), strict=True))
        ends = np.cumsum([0, *(source * target for source, target in cells)]).tolist()
        found._starts = dict(zip(cells, ends, strict=False))
        found._entries, found._used = tensors["sums"].clone(), ends[-1]
        return found

    def _has_room(self, cell: Cell) -> bool:
        return self.longest is None or max(cell) <= self.longest

    def _make_room(self, cells: Collection[Cell]) -> None:
        """Room for new sizes; ``longest`` is lowered until all fit, and once lowered it stays."""
        new = {cell for cell in cells if cell not in self._starts and self._has_room(cell)}
        if not new:
            return
        used = sum(source * target for source, target in new) + self._used
        if self.longest is None and used <= min(ENTRIES, self._entries.shape[1]):
            for cell in sorted(new):
                self._starts[cell], self._used = self._used, self._used + cell[0] * cell[1]
            return
        entries: dict[int, int] = defaultdict(int)  # by the longer side
        for cell in new | self._starts.keys():
            entries[max(cell)] += cell[0] * cell[1]
        used = 0
        for longer in sorted(entries):
            used += entries[longer]
            if used > ENTRIES:
                self.longest = longer - 1
                break
        kept = [cell for cell in self._starts if self._has_room(cell)]
        new = [cell for cell in sorted(new) if self._has_room(cell)]
        ends = np.cumsum([0, *(source * target for source, target in (*kept, *new))]).tolist()
        room = torch.zeros(self.heads, min(2 * ends[-1], max(ends[-1], ENTRIES)), dtype=torch.float64)
        for cell, end in zip(kept, ends[1:], strict=False):
            room[:, end - cell[0] * cell[1] : end] = self._of(cell).flatten(1)
        self._starts, self._entries = dict(zip((*kept, *new), ends, strict=False)), room
        self._used = ends[-1]
        self.counts = {cell: count for cell, count in self.counts.items() if cell in self._starts}


def _flat(
    attention: Float[Tensor, "*heads batch target source"], target_mask: Tensor, source_mask: Tensor
) -> Float[Tensor, "heads entries"]:
    """Weights at valid places of both sides, sample after sample, in float64 on the CPU."""
    both = target_mask[:, :, None] & source_mask[:, None, :]
    return torch.atleast_2d(attention[..., both].double().cpu())


# How a matrix is laid on one of another size. A place is where the same share of the sentence lies before it
# (None), or it is counted from the first (1) or from the last (-1), queries and keys each their own way.
WAYS: tuple[tuple[int, int] | None, ...] = (None, (1, 1), (-1, -1), (1, -1), (-1, 1))


def _average_of_sizes(
    sums: dict[Cell, tuple[Float[np.ndarray, "heads _ _"], int]], target: int, source: int
) -> Float[np.ndarray, "heads target source"]:
    """One average of matrices of several sizes, given as sums and counts, for sentences of another size.

    Sizes are joined in all of :data:`WAYS`, and each head has the one whose average, laid back, is nearest to
    the averages of the sizes themselves in total variation: a head that always sees the third word is blurred
    by any other. A row that no size has is even.
    """
    found, least = np.zeros(()), np.full((), np.inf)
    for way in WAYS:
        total = sum(_laid(own, target, source, way) for own, _ in sums.values())
        mass = total.sum(-1, keepdims=True)
        average = np.where(mass > 0, total / np.where(mass > 0, mass, 1), 1 / source)
        missed = sum(
            count * np.abs(_laid(average, *own.shape[1:], way) - own / count).sum(-1).mean(-1)
            for own, count in sums.values()
        )
        better = missed < least
        found, least = np.where(better[:, None, None], average, found), np.where(better, missed, least)
    return found


def _laid(
    matrices: Float[np.ndarray, "heads _ _"], target: int, source: int, way: tuple[int, int] | None
) -> Float[np.ndarray, "heads target source"]:
    rows, columns = matrices.shape[1:]
    if way is None:
        return _stretch(target, rows, over=False) @ matrices @ _stretch(source, columns, over=True).T
    found, both = (
        np.zeros((len(matrices), target, source)),
        (slice(None), *(slice(None, None, o) for o in way)),
    )
    some = (slice(None), slice(min(target, rows)), slice(min(source, columns)))
    found[both][some] = matrices[both][some]
    return found


@lru_cache(maxsize=4096)
def _stretch(to: int, of: int, *, over: bool) -> Float[np.ndarray, "to of"]:
    """What takes values at ``of`` places of a sentence to ``to`` places that cut it into equal pieces too.

    ``over``: a weight is dealt out over the pieces that its own one overlaps, so that sums stay; else a value
    is the mean of those that its piece overlaps. The identity where both are one.
    """
    ends = np.arange(to + 1)[:, None] / to, np.arange(of + 1)[None] / of
    overlap = np.minimum(ends[0][1:], ends[1][:, 1:]) - np.maximum(ends[0][:-1], ends[1][:, :-1])
    overlap = np.clip(overlap, 0, None)
    return overlap * (of if over else to) if to != of else np.eye(to)


def _cells(target_mask: Tensor, source_mask: Tensor) -> list[Cell]:
    return list(zip(source_mask.sum(1).tolist(), target_mask.sum(1).tolist(), strict=True))
