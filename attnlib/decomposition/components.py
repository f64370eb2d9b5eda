"""Temporal, input and residual components of hidden states (Aitken et al. 2021, contribution 1).

    h = mu_t + chi(w) + delta
    mu_t   = mean of h over the samples that have a position t          (temporal component)
    chi(w) = mean of h - mu_t over every occurrence of token w          (input component)
    delta  = what is left                                                (residual component)

The available text, abstract and introduction, names a temporal part that is independent of input and an input
part that is independent of position. That they are means, the residual, and the treatment of padding and of
unseen tokens are this project's definitions. With ``method="least_squares"`` mu and chi are the exact
two-way additive fit instead: see :mod:`attnlib.decomposition.two_way`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Integer
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch import bool as torch_bool

from attnlib.arrays import EVERYWHERE, Mask, States, Tokens, takes_arrays
from attnlib.decomposition.two_way import Fit, VarianceExplained, two_way, variance_explained
from attnlib.errors import BadInput, CorruptFile, check_known
from attnlib.files import atomic_path, require_plain
from attnlib.sealed import check_checksum, save_file

PART_NAMES = ("temporal", "input", "residual")


@dataclass(frozen=True, eq=False)
class Parts:
    """States as temporal + input + residual, zero at padding, in their dtype (single at least) and device.

    `unseen_tokens` and `unseen_positions` count the valid places whose token (position) the components never
    saw while they were fitted: their input (temporal) component is zero. Summed over batches and divided by
    `valid` they give the share that must be reported beside a decomposition.
    """

    temporal: Float[Tensor, "batch length width"]
    input: Float[Tensor, "batch length width"]
    residual: Float[Tensor, "batch length width"]
    mask: Bool[Tensor, "batch length"]
    unseen_tokens: int = 0
    unseen_positions: int = 0

    @property
    def valid(self) -> int:
        return int(self.mask.sum())

    @property
    def unseen_share(self) -> float:
        """Share of the valid places whose token was never seen while fitting; NaN where none is valid."""
        if not self.valid:
            return math.nan
        return self.unseen_tokens / self.valid

    def __iter__(self) -> Iterator[Float[Tensor, "batch length width"]]:
        """In the order of `PART_NAMES`."""
        return iter((self.temporal, self.input, self.residual))

    def stack(self) -> Float[Tensor, "3 batch length width"]:
        return torch.stack(tuple(self))

    def total(self) -> Float[Tensor, "batch length width"]:
        """The states again, zero at padding."""
        return self.temporal + self.input + self.residual


# Sums of rows by token and by position: the only pass over the data that `Components` makes.
#
# Rows are gathered in bags of at most `BAG`, each bag is added up in the precision of the states (float32 at
# least), and bags are then added in float64. The first step runs at the speed of memory, and it is short
# enough that its rounding stays under BAG * 6e-8 = 2e-6 of the largest state whatever the data, mean >>
# spread included.

BAG = 32
HEAPS = 16  # of bags; a number of its own, so that sums do not depend on the number of threads


def sums_by_token(
    states: Float[Tensor, "batch length width"],
    tokens: Integer[np.ndarray, "batch length"],
    mask: Bool[np.ndarray, "batch length"],
) -> tuple[Int[Tensor, " bags"], Float[Tensor, "bags width"]]:
    """Bags of valid rows of one token: the token (again for every further bag) and the sum, in no order."""
    full = mask.all()
    keys = tokens.ravel() if full else tokens[mask]
    if keys.max() < 1 << 16:  # numpy sorts 16-bit integers by radix, several times faster than any other way
        keys = keys.astype(np.uint16)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    rows = order if full else np.flatnonzero(mask)[order]

    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))  # the first row of each token
    counts = np.diff(starts, append=len(keys))
    bags = -(-counts // BAG)  # of each token
    rank = np.arange(bags.sum()) - np.repeat(np.cumsum(bags) - bags, bags)  # of a bag within its token
    offsets = np.repeat(starts, bags) + BAG * rank
    tokens_of_bags = keys[offsets].astype(np.int64)
    rows, offsets, dealt = _dealt_out(rows, offsets)
    sums = _bag_sums(states, rows, offsets)
    return torch.from_numpy(tokens_of_bags[dealt]).to(sums.device), sums


def _dealt_out(
    rows: Int[np.ndarray, " rows"], offsets: Int[np.ndarray, " bags"]
) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " bags"], Int[np.ndarray, " bags"]]:
    """The same bags dealt into heaps like cards, and that order: threads take equal numbers of neighbouring
    bags, and as sorted one would get most rows, since frequent words have full bags and rare ones do not."""
    dealt = np.concatenate([np.arange(heap, len(offsets), HEAPS) for heap in range(HEAPS)])
    lengths = np.diff(offsets, append=len(rows))[dealt]
    dealt_offsets = np.cumsum(lengths) - lengths
    return (
        rows[np.repeat(offsets[dealt] - dealt_offsets, lengths) + np.arange(len(rows))],
        dealt_offsets,
        dealt,
    )


def sums_by_position(
    states: Float[Tensor, "batch length width"], mask: Bool[np.ndarray, "batch length"]
) -> Float[Tensor, "length width"]:
    """The float64 sum over the batch of the valid rows at every position."""
    batch, length = mask.shape
    if mask.all():
        # Nothing to leave out: whole samples are the rows, read in their order, in half the time.
        sums = _bag_sums(states.flatten(1), np.arange(batch), np.arange(0, batch, BAG))
        return sums.sum(0, dtype=torch.float64).view(length, -1)

    n_blocks = -(-batch // BAG)
    extra = n_blocks * BAG - batch

    def by_block(array: np.ndarray) -> np.ndarray:  # (batch, length) -> (blocks, length, BAG)
        padded = np.pad(array, ((0, extra), (0, 0)))
        return padded.reshape(n_blocks, BAG, length).transpose(0, 2, 1)

    valid = by_block(mask)  # a bag is one position in BAG neighbours, which lie close in memory
    rows = by_block(np.arange(batch * length).reshape(batch, length))[valid]
    ends = np.cumsum(valid.sum(-1).ravel())
    sums = _bag_sums(states, rows, np.concatenate(([0], ends[:-1])))
    return sums.view(n_blocks, length, -1).sum(0, dtype=torch.float64)


def _bag_sums(states: Tensor, rows: np.ndarray, offsets: np.ndarray) -> Tensor:
    """Sum of rows[offsets[i]:offsets[i + 1]] of the states for every i; an empty bag sums to zero."""
    flat = states.reshape(-1, states.shape[-1])
    indices, starts = (torch.from_numpy(array).to(flat.device) for array in (rows, offsets))
    return F.embedding_bag(indices, flat, starts, mode="sum")


def checked_mask(
    states: Tensor,
    tokens: Tensor,
    mask: Tensor,
    *,
    n_tokens: int,
    n_positions: int,
    width: int,
    way_out: str = "give Components its length",
) -> Bool[np.ndarray, "batch length"]:
    """Return the mask as a numpy array.

    Args:
        way_out: what to do about an id outside the vocabulary.

    Raises:
        BadInput: something does not fit the tables.
    """
    if states.dim() != 3 or states.shape[2] != width:
        raise BadInput(f"States of shape {tuple(states.shape)}: expected (batch, length, {width}).")
    if not states.is_floating_point():
        raise BadInput(f"States of {states.dtype}: expected a floating-point tensor.")
    for name, tensor in (("Tokens", tokens), ("Mask", mask)):
        if tensor.shape != states.shape[:2]:
            raise BadInput(
                f"{name} of shape {tuple(tensor.shape)} with states of shape {tuple(states.shape)}: "
                f"expected {tuple(states.shape[:2])}, that is (batch, length)."
            )
    if tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch_bool:
        raise BadInput(f"Tokens of {tokens.dtype}: expected integers, the ids of the vocabulary.")
    if mask.dtype != torch_bool:
        raise BadInput(f"Mask of {mask.dtype}: expected torch.bool, True at valid positions.")

    valid = mask.cpu().numpy()
    if not valid.any(1).all():
        row = int(np.argmin(valid.any(1)))
        raise BadInput(f"Row {row} of the mask is all padding: leave such samples out.")
    if valid[:, n_positions:].any():
        last = int(np.flatnonzero(valid.any(0))[-1])
        raise BadInput(
            f"Position {last} is valid but the table holds {n_positions} positions (0 to {n_positions - 1}): "
            f"make Components with n_positions={last + 1} or more."
        )
    ids = tokens.cpu().numpy()
    outside = valid & ((ids < 0) | (ids >= n_tokens))
    if outside.any():
        sample, position = np.argwhere(outside)[0]
        raise BadInput(
            f"Token {ids[sample, position]} at sample {sample}, position {position} is outside the "
            f"vocabulary of {n_tokens} (0 to {n_tokens - 1}): {way_out}."
        )
    return valid


def refuse_not_finite(states: Tensor, valid: Bool[np.ndarray, "batch length"]) -> None:
    """Raises BadInput, naming the first valid place that is not finite if there is one."""
    places = np.argwhere((~states.isfinite().all(-1)).cpu().numpy() & valid)
    found = (
        f"first at sample {places[0][0]}, position {places[0][1]}" if len(places) else "their sum overflows"
    )
    raise BadInput(f"States that are not finite ({found}): nothing was added. Has the training diverged?")


_FORMAT = "attnlib.components/1"
_TABLES = ("position_sums", "token_sums", "pair_counts")


def check_tables(path: str | Path, tables: dict[str, Tensor]) -> None:
    """Raises CorruptFile where sums and counts cannot be those of any corpus."""
    counts = tables["pair_counts"]
    sums = [table for name, table in tables.items() if name != "pair_counts"]
    if counts.dtype != torch.int64 or any(table.dtype != torch.float64 for table in sums):
        raise CorruptFile(f"{path}: counts must be int64 and sums float64: write it again with save().")
    width = tables["token_sums"].shape[-1:]
    pairs = {"token_sums": (*counts.shape[:1], *width), "position_sums": (*counts.shape[1:], *width)}
    if counts.dim() != 2 or any(tables[name].shape != shape for name, shape in pairs.items()):
        raise CorruptFile(f"{path}: the shapes of its tables differ: write it again with save().")
    unseen = [tables["token_sums"][counts.sum(1) == 0], tables["position_sums"][counts.sum(0) == 0]]
    if (
        bool((counts < 0).any())
        or not all(bool(table.isfinite().all()) for table in sums)
        or any(map(torch.any, unseen))
    ):
        raise CorruptFile(
            f"{path} holds negative counts, sums that are not finite, or sums of what was never seen: write "
            "it again with save()."
        )


def means_of(
    position_sums: Float[Tensor, "positions width"],
    token_sums: Float[Tensor, "tokens width"],
    pair_counts: Int[Tensor, "tokens positions"],
) -> Fit:
    """mu, the means by position, and chi, the means by token of what is left."""
    counts = pair_counts.double()
    temporal = position_sums / counts.sum(0).clamp(min=1)[:, None]
    inputs = (token_sums - counts @ temporal) / counts.sum(1).clamp(min=1)[:, None]
    return temporal, inputs


Method = Literal["means", "least_squares"]


class Components:
    """Sums that fix the components of a corpus: one pass, constant memory, mergeable.

    chi is defined from the final mu, which no single pass knows; but
    chi(w) = (token_sum(w) - sum_t count(w, t) mu_t) / count(w), so sums by position, sums by token and the
    (token, position) counts are enough.

        components = Components(n_tokens=4000, n_positions=20, width=256)
        for batch in batches:
            components.update(states, tokens, mask)
        parts = components.split(states, tokens, mask)        # parts.temporal, parts.input, parts.residual

    Sums are float64 and live on `device`; states may come from any device and in float16, bfloat16, float32
    or float64. `method="least_squares"` solves the two-way additive model from the same sums and knows its
    shares of variance: for these every step of summing is in float64, which is slower.
    """

    def __init__(
        self,
        n_tokens: int,
        n_positions: int,
        width: int,
        *,
        method: Method = "means",
        device: torch.device | str = "cpu",
    ):
        check_known("method of Components", method, get_args(Method))
        for name, size in (("n_tokens", n_tokens), ("n_positions", n_positions), ("width", width)):
            if not isinstance(size, Integral) or size < 1:
                raise BadInput(f"Components({name}={size!r}): sizes are whole numbers from 1 on.")
        self.position_sums = torch.zeros(n_positions, width, dtype=torch.float64, device=device)
        self.token_sums = torch.zeros(n_tokens, width, dtype=torch.float64, device=device)
        self.pair_counts = torch.zeros(n_tokens, n_positions, dtype=torch.int64, device=device)
        self.method: Method = method
        self.square_sum = torch.zeros((), dtype=torch.float64, device=device)  # of least_squares alone
        self._solved: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor, Tensor, Tensor]] = {}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self._sizes().items())
        seen = f"{int(self.pair_counts.sum()):,} positions, {int(self.seen.sum()):,} tokens"
        return f"Components({sizes}, method={self.method!r}) of {seen}"

    # sizes and counts ---------------------------------------------------------------------------------------

    @property
    def n_tokens(self) -> int:
        return self.pair_counts.shape[0]

    @property
    def n_positions(self) -> int:
        return self.pair_counts.shape[1]

    @property
    def width(self) -> int:
        return self.token_sums.shape[1]

    def _sizes(self) -> dict[str, int]:
        return {"n_tokens": self.n_tokens, "n_positions": self.n_positions, "width": self.width}

    @property
    def position_counts(self) -> Int[Tensor, " positions"]:
        return self.pair_counts.sum(0)

    @property
    def token_counts(self) -> Int[Tensor, " tokens"]:
        return self.pair_counts.sum(1)

    @property
    def seen(self) -> Bool[Tensor, " tokens"]:
        return self.token_counts > 0

    # fitting ------------------------------------------------------------------------------------------------

    @takes_arrays
    def update(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> "Components":
        """Adds a batch. `mask` is True at valid positions; what stands at padding is never read.

        Raises BadInput, leaving the sums as they were, for shapes that differ, a token outside the
        vocabulary, a position beyond the table, a row that is all padding, a state that is not finite.
        """
        valid = checked_mask(states, tokens, mask, **self._sizes())
        if not len(valid):
            return self
        ids = tokens.cpu().numpy().astype(np.int64, copy=False)
        exact = self.method == "least_squares"
        rows = states.detach().to(
            torch.float64 if exact else torch.promote_types(states.dtype, torch.float32)
        )
        bag_tokens, bag_sums = sums_by_token(rows, ids, valid)
        position_sums = sums_by_position(rows, valid)[: self.n_positions]
        if not bool(position_sums.isfinite().all() & bag_sums.sum().isfinite()):
            refuse_not_finite(rows, valid)
        if exact:
            squares = rows[torch.from_numpy(valid).to(rows.device)].square().sum()
            if not bool(squares.isfinite()):
                raise BadInput("States whose squares overflow: nothing was added. Has the training diverged?")
            self.square_sum += squares.to(self.square_sum.device)

        device = self.token_sums.device
        self.token_sums.index_add_(0, bag_tokens.to(device), bag_sums.to(device).double())
        self.position_sums[: len(position_sums)] += position_sums.to(device)
        cells = ids * self.n_positions + np.arange(ids.shape[1])
        pairs = torch.from_numpy(cells.ravel() if valid.all() else cells[valid]).to(device)
        self.pair_counts.view(-1).index_add_(0, pairs, torch.ones_like(pairs))
        self._solved.clear()
        return self

    def merge(self, other: "Components") -> "Components":
        """New components of the two corpora together; BadInput where sizes or methods differ."""
        if self._sizes() != other._sizes():
            raise BadInput(
                f"Cannot merge components of {self._sizes()} with those of {other._sizes()}: "
                "make both with the same three sizes."
            )
        if self.method != other.method:
            raise BadInput(
                f"Cannot merge components of method {self.method!r} with those of {other.method!r}: "
                "make both with the same method."
            )
        merged = type(self)(**self._sizes(), method=self.method, device=self.token_sums.device)
        for name in (*_TABLES, "square_sum"):
            mine = getattr(self, name)
            setattr(merged, name, mine + getattr(other, name).to(mine.device))
        return merged

    __add__ = merge

    # results ------------------------------------------------------------------------------------------------

    @property
    def temporal(self) -> Float[Tensor, "positions width"]:
        """mu, float64; zero at positions that no sample had."""
        return self._tables(torch.float64, self.token_sums.device)[0]

    @property
    def input(self) -> Float[Tensor, "tokens width"]:
        """chi, float64; zero for tokens never seen."""
        return self._tables(torch.float64, self.token_sums.device)[1]

    def _solve(self) -> Fit:
        """mu and chi of the sums, float64."""
        if self.method == "least_squares":
            return two_way(self.position_sums, self.token_sums, self.pair_counts)
        return means_of(self.position_sums, self.token_sums, self.pair_counts)

    def _tables(self, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """mu and chi in this dtype on this device, and which positions and tokens were seen."""
        home = torch.float64, self.token_sums.device
        if home not in self._solved:
            temporal, inputs = self._solve()
            self._solved[home] = temporal, inputs, self.position_counts > 0, self.seen
        if (dtype, device) not in self._solved:
            temporal, inputs, *seen = self._solved[home]
            means = (mean.to(device=device, dtype=dtype) for mean in (temporal, inputs))
            self._solved[dtype, device] = *means, *(table.to(device) for table in seen)
        return self._solved[dtype, device]

    def variance_explained(self) -> VarianceExplained:
        """Shares of the variance of the states summed so far that position and token explain.

        Raises BadInput for `method="means"`, which keeps no sum of squares, and before any `update`.
        """
        if self.method != "least_squares":
            raise BadInput(
                f"Components of method {self.method!r} keep no sum of squares: fit "
                'Components(n_tokens, n_positions, width, method="least_squares") for the variance explained.'
            )
        return variance_explained(
            self.position_sums, self.token_sums, self.pair_counts, float(self.square_sum)
        )

    @takes_arrays
    def split(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> Parts:
        """The three parts of `states`, in their dtype and on their device, zero at padding, without gradient.

        They sum to the states by construction. A token (position) never seen while fitting has input
        (temporal) component zero; `Parts.unseen_tokens` (`unseen_positions`) says how many there were. Raises
        BadInput as `update` does, and before any `update`.
        """
        valid = checked_mask(states, tokens, mask, **self._sizes())
        if not bool(self.pair_counts.any()):
            raise BadInput("These components hold no samples yet: call update before split.")
        keep = torch.from_numpy(valid).to(states.device)
        ids = tokens.to(states.device).long().masked_fill(~keep, 0)
        places = torch.arange(states.shape[1], device=states.device).clamp(max=self.n_positions - 1)

        dtype = torch.promote_types(states.dtype, torch.float32)  # half precision is subtracted in single
        temporal, inputs, seen_positions, seen_tokens = self._tables(dtype, states.device)
        padding = ~keep[:, :, None]
        temporal_part = temporal[places].expand(states.shape).masked_fill(padding, 0)
        input_part = inputs[ids].masked_fill_(padding, 0)
        residual = (states.detach().to(dtype) - temporal_part).sub_(input_part).masked_fill_(padding, 0)
        return Parts(
            *(part.to(states.dtype) for part in (temporal_part, input_part, residual)),
            mask=keep,
            unseen_tokens=int((keep & ~seen_tokens[ids]).sum()),
            unseen_positions=int((keep & ~seen_positions[places]).sum()),
        )

    # files --------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes the sums and counts as safetensors; the file appears whole or not at all."""
        names = (*_TABLES, "square_sum") if self.method == "least_squares" else _TABLES
        with atomic_path(path) as temporary:
            save_file(
                {name: getattr(self, name).cpu() for name in names},
                temporary,
                metadata={"format": _FORMAT, "method": self.method},
            )

    @classmethod
    def load(cls, path: str | Path, *, device: torch.device | str = "cpu") -> "Components":
        """Raises CorruptFile for a file that is not as `save` wrote it, FileNotFoundError for none."""
        require_plain(path)
        try:
            with safe_open(path, framework="pt", device=str(device)) as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != _FORMAT:
                    raise CorruptFile(f"{path} holds no components (format {_FORMAT}): write it with save().")
                method = metadata.get("method", "means")
                names = (*_TABLES, "square_sum") if method == "least_squares" else _TABLES
                tables = {name: file.get_tensor(name) for name in names}
                check_checksum(path, metadata, tables)
                check_tables(path, tables)
        except SafetensorError as error:
            raise CorruptFile(
                f"{path} cannot be read as safetensors ({error}): write it again with save()."
            ) from error
        sizes = *tables["pair_counts"].shape, tables["token_sums"].shape[1]
        components = cls(*sizes, method=method, device=device)
        for name, table in tables.items():
            setattr(components, name, table)
        return components
