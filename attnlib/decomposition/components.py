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
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch import bool as torch_bool

from attnlib.arrays import EVERYWHERE, Mask, ShowsShapes, States, Tokens, takes_arrays
from attnlib.decomposition.kernels import PlaceRows, read_once, split_once
from attnlib.decomposition.sums import TwoReadings, in_summable_precision
from attnlib.decomposition.two_way import (
    Fit,
    VarianceExplained,
    centred_by_piece,
    means_of,
    two_way,
    variance_explained,
)
from attnlib.errors import BadInput, CorruptFile, check_known
from attnlib.files import atomic_path, require_plain
from attnlib.sealed import check_checksum, save_file

PART_NAMES = ("temporal", "input", "residual")

Method = Literal["means", "least_squares"]
Constants = Literal["least_norm", "by_count"]


@dataclass(frozen=True, eq=False, repr=False)
class Parts(ShowsShapes):
    """States as temporal + input + residual, zero at padding, in their dtype (single at least) and device.

    Attributes:
        temporal: the part by position; the three sum to the states.
        input: the part by token.
        residual: what is left.
        mask: True at valid positions.
        unseen_tokens: how many valid places have a token that was never seen in fitting; their input
            component is zero. Summed over batches and divided by ``valid`` this is the share that must be
            reported beside a decomposition.
        unseen_positions: how many valid places have a position that was never seen in fitting; their temporal
            component is zero.
    """

    temporal: Float[Tensor, "batch length width"]
    input: Float[Tensor, "batch length width"]
    residual: Float[Tensor, "batch length width"]
    mask: Bool[Tensor, "batch length"]
    unseen_tokens: int = 0
    unseen_positions: int = 0

    @property
    def valid(self) -> int:
        """How many places are valid."""
        return int(self.mask.sum())

    @property
    def unseen_share(self) -> float:
        """Share of the valid places whose token was never seen in fitting; NaN where none is valid."""
        if not self.valid:
            return math.nan
        return self.unseen_tokens / self.valid

    def __iter__(self) -> Iterator[Float[Tensor, "batch length width"]]:
        """Iterate over the parts in the order of ``PART_NAMES``."""
        return iter((self.temporal, self.input, self.residual))

    def __repr__(self) -> str:
        return f"Parts(temporal, input, residual, each {tuple(self.temporal.shape)}, {self.valid:,} valid)"

    def stack(self) -> Float[Tensor, "3 batch length width"]:
        """Return the parts as one tensor, in the order of ``PART_NAMES``."""
        return torch.stack(tuple(self))

    def total(self) -> Float[Tensor, "batch length width"]:
        """Return the states again, zero at padding."""
        return self.temporal + self.input + self.residual


@dataclass(frozen=True, eq=False, repr=False)
class Means(ShowsShapes):
    """The components that belong to the places of a batch, each row once.

    Attributes:
        centre: mean of all states that were summed.
        temporal: by position; zero where it was never seen.
        input: of each token of the batch once; zero where it was never seen.
        word: the row of ``input`` that belongs to each place.
        known: valid places whose token and position were both seen in fitting.
        unseen_tokens: how many valid places have a token never seen.
        unseen_positions: how many valid places have a position never seen.
    """

    centre: Float[Tensor, " width"]
    temporal: Float[Tensor, "length width"]
    input: Float[Tensor, "words width"]
    word: Int[Tensor, "batch length"]
    known: Bool[Tensor, "batch length"]
    unseen_tokens: int
    unseen_positions: int


@dataclass(frozen=True, eq=False)
class _Tables:
    """A fit in one precision on one device; what was never seen has the last row, which is zero."""

    temporal: Float[Tensor, "positions_and_zero width"]
    input: Float[Tensor, "rows_and_zero width"]
    position_seen: Bool[Tensor, " positions_and_zero"]
    row_seen: Bool[Tensor, " rows_and_zero"]


_FORMAT = "attnlib.components/2"
_FIRST_FORMAT = "attnlib.components/1"  # a row for every token of the vocabulary, in order
_FIRST_ROWS, _FIRST_POSITIONS = 256, 16
_LARGEST_ID = (1 << 24) - 1  # beyond any vocabulary: a larger id is a mistake, and would cost a long list
_LARGE_PAGES_FROM = 1 << 22  # bytes of an array for which numpy requests large pages
_ALIGNMENT = 64  # bytes, of torch's own tensors
_ROWS_AT_ONCE = 1024  # of states that are split at once, so that they stay in the cache meanwhile


class Components:
    """Sums that fix the components of a corpus: one pass, constant memory, mergeable.

    chi is defined from the final mu, which no single pass knows. But

        chi(w) = (token_sum(w) - sum_t count(w, t) mu_t) / count(w),

    so sums by position, sums by token and the counts of (token, position) are enough. They are float64, and
    grow with the tokens and the positions that are seen. States may come from any device, in float16,
    bfloat16, float32 or float64.

    Args:
        width: of the states.
        method: "means" as in the equations above, or "least_squares", the exact two-way additive fit.
        variance: whether least squares also keep what :meth:`variance_explained` needs. Every step of the
            sums is in float64 then, which is slower.
        n_tokens: size of the vocabulary. An id beyond it is an error, and ``input`` has so many rows from the
            start. By default the vocabulary is what has been seen.
        n_positions: longest sample, likewise.
        constants: what least squares leave free, see :mod:`attnlib.decomposition.two_way`. With
            "least_norm" the count-weighted sum of chi is zero over the corpus, and the norm of mu and chi
            least. With "by_count" that sum is zero on every set of positions that shared tokens connect,
            which converges as a corpus grows. Means leave nothing free.
        device: of the sums.

    Attributes:
        temporal: mu, (n_positions, width), float64; zero at positions never seen.
        input: chi, (n_tokens, width), float64; zero for tokens never seen.
        position_sums: (n_positions, width), float64.
        token_sums: (n_tokens, width), float64.
        pair_counts: how often each token stood at each position, (n_tokens, n_positions).
        position_counts: its sum over tokens.
        token_counts: its sum over positions.
        seen: which tokens have been seen, (n_tokens,).

    Raises:
        BadInput: a size that is no whole number from 1 on, an unknown method or unknown constants.

    >>> components = Components(width=1)
    >>> states = torch.tensor([[[1.0], [4.0]], [[3.0], [8.0]]])
    >>> tokens = torch.tensor([[0, 7], [0, 0]])
    >>> parts = components.update(states, tokens).split(states, tokens)
    >>> components.temporal.flatten().tolist()
    [2.0, 6.0]
    >>> torch.equal(parts.total(), states)
    True
    """

    def __init__(
        self,
        width: int,
        method: Method = "means",
        *,
        n_tokens: int | None = None,
        n_positions: int | None = None,
        constants: Constants = "least_norm",
        variance: bool = True,
        device: torch.device | str = "cpu",
    ):
        check_known("method of Components", method, get_args(Method))
        check_known("constants of Components", constants, get_args(Constants))
        for name, size in (("width", width), ("n_tokens", n_tokens), ("n_positions", n_positions)):
            is_size = isinstance(size, Integral) and size >= 1
            if not is_size and (size is not None or name == "width"):
                raise BadInput(f"Components({name}={size!r}): sizes are whole numbers from 1 on.")
        self.width = int(width)
        self.method: Method = method
        self.constants: Constants = constants
        self._keeps_squares = variance and method == "least_squares"
        self._vocabulary = n_tokens  # None: it grows
        self._max_length = n_positions  # None: it grows

        rows, positions = n_tokens or _FIRST_ROWS, n_positions or _FIRST_POSITIONS
        self._position_sums = torch.zeros(positions, width, dtype=torch.float64, device=device)
        self._token_sums = torch.zeros(rows, width, dtype=torch.float64, device=device)
        self._pair_counts = torch.zeros(rows, positions, dtype=torch.int64, device=device)
        self._square_sum = torch.zeros((), dtype=torch.float64, device=device)  # where variance is kept
        # Tokens have rows in the order of first sight; a given vocabulary has all of its rows at once.
        self._token_of_row = np.arange(n_tokens or 0)
        self._row_of_token = np.arange(n_tokens or 0)  # −1 where a token has none
        self._fit: Fit | None = None  # until the sums change
        self._tables: dict[tuple[torch.dtype, torch.device], _Tables] = {}

    def __repr__(self) -> str:
        sizes = f"width={self.width}, n_tokens={self.n_tokens}, n_positions={self.n_positions}"
        seen = f"{self.occurrences:,} positions, {len(self.tokens):,} tokens"
        return f"Components({sizes}, method={self.method!r}) of {seen}"

    # sizes, sums and counts ---------------------------------------------------------------------------------

    @property
    def n_tokens(self) -> int:
        """Size of the vocabulary: as given, or up to the largest id seen."""
        if self._vocabulary is not None:
            return self._vocabulary
        return int(self._token_of_row.max(initial=-1)) + 1

    @property
    def n_positions(self) -> int:
        """Positions of the longest sample: as given, or up to the last one seen."""
        if self._max_length is not None:
            return self._max_length
        seen = self._pair_counts.sum(0).nonzero()
        return int(seen.max()) + 1 if len(seen) else 0

    @property
    def device(self) -> torch.device:
        """Where the sums are."""
        return self._token_sums.device

    @property
    def tokens(self) -> Int[Tensor, " seen"]:
        """Ids of the tokens seen, ascending."""
        return self.seen.nonzero()[:, 0].cpu()

    @property
    def occurrences(self) -> int:
        """Valid positions summed so far."""
        return int(self._pair_counts.sum())

    @property
    def nbytes(self) -> int:
        """Memory of what is in use; with spare rows and columns it is up to four times as much."""
        sums = (table for name, table in self.state_dict().items() if name != "tokens")
        return sum(table.nbytes for table in sums)

    @property
    def position_sums(self) -> Float[Tensor, "positions width"]:
        """Sum of the states at each position, float64."""
        return self._position_sums[: self.n_positions]

    @property
    def token_sums(self) -> Float[Tensor, "tokens width"]:
        """Sum of the states of each token, float64, zero for tokens never seen."""
        return self._by_token(self._token_sums)

    @property
    def square_sum(self) -> Float[Tensor, ""]:
        """Sum of the squares of all states; zero where no variance is kept."""
        return self._square_sum

    @property
    def pair_counts(self) -> Int[Tensor, "tokens positions"]:
        """How often each token was at each position."""
        return self._by_token(self._pair_counts[:, : self.n_positions])

    @property
    def position_counts(self) -> Int[Tensor, " positions"]:
        """How many valid samples have each position."""
        return self._pair_counts[:, : self.n_positions].sum(0)

    @property
    def token_counts(self) -> Int[Tensor, " tokens"]:
        """How often each token occurs."""
        return self._by_token(self._pair_counts.sum(1))

    @property
    def seen(self) -> Bool[Tensor, " tokens"]:
        """Whether each token occurs at all."""
        return self.token_counts > 0

    def _by_token(self, table: Tensor) -> Tensor:
        """Lay out by id what has a row for each token in the order of first sight."""
        if self._vocabulary is not None:
            return table
        laid_out = table.new_zeros(self.n_tokens, *table.shape[1:])
        laid_out[torch.from_numpy(self._token_of_row).to(table.device)] = table[: len(self._token_of_row)]
        return laid_out

    # fitting ------------------------------------------------------------------------------------------------

    @takes_arrays
    def update(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> "Components":
        """Add a batch, and return these components.

        Args:
            states: (batch, length, width), floating-point.
            tokens: (batch, length), integers.
            mask: True at valid positions, by default everywhere. What stands at padding is never read.

        Raises:
            BadInput: shapes that differ, a token outside the vocabulary, a position beyond ``n_positions``, a
                row that is all padding, a state that is not finite. The sums stay as they were.
        """
        ids, valid = self._checked(states, tokens, mask)
        if not len(valid):
            return self
        states = states.detach()
        row_of_token, token_of_row, row_of_place = self._row_of_token, self._token_of_row, ids
        if self._vocabulary is None:  # otherwise the rows are the ids
            row_of_token, token_of_row = self._rows_with(ids[valid])
            row_of_place = row_of_token[np.where(valid, ids, 0)]  # padding may hold any id
        reading = None
        if not self._keeps_squares and self.device.type == "cpu":
            reading = read_once(states, row_of_place, valid, n_rows=len(token_of_row))
        if reading is None:
            rows = in_summable_precision(states, valid, exact=self._keeps_squares)
            reading = TwoReadings(rows=rows, row_of_place=row_of_place, valid=valid)
            if self._keeps_squares:
                self._square_sum += reading.square_sum().to(self.device)

        # Nothing is refused from here on.
        self._row_of_token, self._token_of_row = row_of_token, token_of_row
        self._make_room(_longest(valid))
        sums = reading.sums_by_position()[: len(self._position_sums)]  # columns beyond are padding
        self._position_sums[: len(sums)] += sums.to(self.device)
        reading.add_by_row(self._token_sums)
        reading.count_pairs(self._pair_counts)
        self._forget()
        return self

    partial_fit = update  #: the name that scikit-learn has for it

    def merge(self, other: "Components") -> "Components":
        """Return new components of the two corpora together; both stay as they are.

        Raises:
            BadInput: another width, method, choice of constants, or given size.
        """
        mine, theirs = self._settings(), other._settings()
        if mine != theirs:
            raise BadInput(f"cannot merge components of {_listed(mine)} with those of {_listed(theirs)}")
        merged = Components(**mine, device=self.device)
        for addend in (self, other):
            merged._add(addend.state_dict())
        return merged

    __add__ = merge

    def refitted(self, method: Method = "means", constants: Constants = "least_norm") -> "Components":
        """Return components of the same sums by another method, without a second pass.

        Least squares know the variance they explain only where these do.
        """
        settings: dict[str, Any] = self._settings() | {"method": method, "constants": constants}
        if not self._keeps_squares:
            settings["variance"] = False
        other = Components(**settings, device=self.device)
        other._add(self.state_dict())
        return other

    def to(self, device: torch.device | str) -> "Components":
        """Move the sums to a device, as ``torch.nn.Module.to`` does, and return these components."""
        for name in ("_position_sums", "_token_sums", "_pair_counts", "_square_sum"):
            setattr(self, name, getattr(self, name).to(device))
        self._forget()
        return self

    def _settings(self) -> dict[str, Any]:
        """What another :class:`Components` must agree in to be merged."""
        sizes = {"width": self.width, "n_tokens": self._vocabulary, "n_positions": self._max_length}
        method = {"method": self.method, "constants": self.constants}
        return sizes | method | {"variance": self._keeps_squares or self.method == "means"}

    def _forget(self) -> None:
        self._fit = None
        self._tables.clear()

    def _checked(
        self, states: Tensor, tokens: Tensor, mask: Tensor
    ) -> tuple[Int[np.ndarray, "batch length"], Bool[np.ndarray, "batch length"]]:
        """Return ids and mask as arrays; BadInput for what does not fit these components."""
        valid = _checked_shapes(states, tokens, mask, width=self.width)
        if self._max_length is not None and valid[:, self._max_length :].any():
            last = _longest(valid) - 1
            raise BadInput(
                f"Position {last} is valid but the table holds {self._max_length} positions "
                f"(0 to {self._max_length - 1}): make Components with n_positions={last + 1} or more."
            )
        ids = tokens.cpu().numpy().astype(np.int64, copy=False)
        largest = _LARGEST_ID if self._vocabulary is None else self._vocabulary - 1
        outside = valid & ((ids < 0) | (ids > largest))
        if outside.any():
            way_out = "give Components its length"
            if self._vocabulary is None:
                way_out = "number the words from 0, as torch.unique(tokens, return_inverse=True) does"
            sample, position = np.argwhere(outside)[0]
            raise BadInput(
                f"Token {ids[sample, position]} at sample {sample}, position {position} is outside the "
                f"vocabulary of {largest + 1} (0 to {largest}): {way_out}."
            )
        return ids, valid

    def _make_room(self, n_positions: int) -> None:
        """Make room for so many positions and for every row that a token has; full tables double."""
        rows, positions = len(self._token_sums), len(self._position_sums)
        more_rows = _doubled(rows, len(self._token_of_row)) - rows
        more_positions = 0
        if self._max_length is None:
            more_positions = _doubled(positions, n_positions) - positions
        if more_rows or more_positions:
            pad = torch.nn.functional.pad
            self._position_sums = pad(self._position_sums, (0, 0, 0, more_positions))
            self._token_sums = pad(self._token_sums, (0, 0, 0, more_rows))
            self._pair_counts = pad(self._pair_counts, (0, more_positions, 0, more_rows))

    def _rows_with(
        self, tokens: Int[np.ndarray, " tokens"]
    ) -> tuple[Int[np.ndarray, " ids"], Int[np.ndarray, " rows"]]:
        """Return the row of each token and the token of each row, with rows for these tokens as well."""
        row_of_token, token_of_row = self._row_of_token, self._token_of_row
        largest = int(tokens.max(initial=-1))
        if largest >= len(row_of_token):
            longer = np.full(max(largest + 1, 2 * len(row_of_token)), -1)
            longer[: len(row_of_token)] = row_of_token
            row_of_token = longer
        new = np.unique(tokens[row_of_token[tokens] < 0])
        if len(new):
            used = len(token_of_row)
            row_of_token = row_of_token.copy()
            row_of_token[new] = np.arange(used, used + len(new))
            token_of_row = np.concatenate((token_of_row, new))
        return row_of_token, token_of_row

    # results ------------------------------------------------------------------------------------------------

    @property
    def temporal(self) -> Float[Tensor, "positions width"]:
        """The temporal component μ of each position, float64."""
        return self._solution()[0][: self.n_positions]

    @property
    def input(self) -> Float[Tensor, "tokens width"]:
        """The input component χ of each token, float64, zero for tokens never seen."""
        return self._by_token(self._solution()[1])

    @property
    def centre(self) -> Float[Tensor, " width"]:
        """Mean of all states summed, float64: what neither position nor token tells apart."""
        return self._position_sums.sum(0) / max(self.occurrences, 1)

    def _solution(self) -> Fit:
        """Return μ by position and χ by row, float64; they are solved for anew when the sums change."""
        if self._fit is None:
            sums = self._position_sums, self._token_sums, self._pair_counts
            if self.method == "means":
                self._fit = means_of(*sums)
            else:
                self._fit = two_way(*sums)
                if self.constants == "by_count":
                    self._fit = centred_by_piece(*self._fit, self._pair_counts)
        return self._fit

    def _tables_in(self, dtype: torch.dtype, device: torch.device) -> _Tables:
        if (dtype, device) not in self._tables:
            temporal, inputs = self._solution()
            seen = self._pair_counts.sum(0) > 0, self._pair_counts.sum(1) > 0
            self._tables[dtype, device] = _Tables(
                *(_with_zero_row(means.to(device=device, dtype=dtype)) for means in (temporal, inputs)),
                *(torch.nn.functional.pad(is_seen, (0, 1)).to(device) for is_seen in seen),
            )
        return self._tables[dtype, device]

    def variance_explained(self) -> VarianceExplained:
        """Return the shares of the variance of the states summed so far that position and token explain.

        Raises:
            BadInput: means, or ``variance=False``, which keep no sum of squares; nothing was summed yet.
        """
        if not self._keeps_squares:
            raise BadInput(
                f"Components of method {self.method!r} keep no sum of squares: fit "
                'Components(width, method="least_squares") for the variance explained.'
            )
        sums = self._position_sums, self._token_sums, self._pair_counts
        return variance_explained(*sums, square_sum=float(self._square_sum))

    @takes_arrays
    def split(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> Parts:
        """Return the three parts of states, on their device, zero at padding, without gradient.

        They sum to the states by construction. A token never seen in fitting has input component zero, a
        position never seen temporal component zero; :class:`Parts` says how many there were.

        Args:
            states: (batch, length, width), floating-point.
            tokens: (batch, length), integers.
            mask: True at valid positions, by default everywhere.

        Raises:
            BadInput: as :meth:`update`; nothing was summed yet.
        """
        ids, valid = self._checked(states, tokens, mask)
        if not self.occurrences:
            raise BadInput("These components hold no samples yet: call update before split.")
        device, dtype = states.device, torch.promote_types(states.dtype, torch.float32)
        tables = self._tables_in(dtype, device)
        rows = torch.from_numpy(self._rows_of(ids, valid)).to(device)  # (batch, length)
        positions = torch.from_numpy(self._positions_of(valid)).to(device)  # (batch, length)
        padding = torch.from_numpy(~valid).to(device)

        flat = states.detach().reshape(-1, self.width)
        parts = tuple(_empty(flat.shape, dtype, device) for _ in PART_NAMES)
        place_rows = PlaceRows(
            temporal=tables.temporal,
            input=tables.input,
            position_of_place=positions.view(-1),
            row_of_place=rows.view(-1),
            is_padding=padding.view(-1),
        )
        if not split_once(flat, place_rows, parts):
            _split_by_block(flat, place_rows, parts)
        return Parts(
            *(part.view(states.shape) for part in parts),
            mask=~padding,
            unseen_tokens=int((~tables.row_seen[rows] & ~padding).sum()),
            unseen_positions=int((~tables.position_seen[positions] & ~padding).sum()),
        )

    transform = split  #: the name that scikit-learn has for it

    def means(self, states: Tensor, tokens: Tensor, mask: Tensor) -> Means:
        """Return what :meth:`split` subtracts, each row once: for maps that cost more than a look-up."""
        ids, valid = self._checked(states, tokens, mask)
        dtype = torch.promote_types(states.dtype, torch.float32)
        tables = self._tables_in(dtype, states.device)
        row_of_place = torch.from_numpy(self._rows_of(ids, valid)).to(states.device)
        rows, word = row_of_place.unique(return_inverse=True)
        length = mask.shape[1]
        positions = torch.arange(length, device=states.device).clamp(max=len(tables.temporal) - 1)
        token_seen = tables.row_seen[row_of_place]
        position_seen = tables.position_seen[positions]
        return Means(
            centre=self.centre.to(device=states.device, dtype=dtype),
            temporal=tables.temporal[positions],
            input=tables.input[rows],
            word=word,
            known=mask & token_seen & position_seen,
            unseen_tokens=int((mask & ~token_seen).sum()),
            unseen_positions=int((mask & ~position_seen).sum()),
        )

    def _rows_of(self, ids: np.ndarray, valid: np.ndarray) -> Int[np.ndarray, "batch length"]:
        """Rows of the tables; tokens without one, and padding, have the last, which is zero."""
        zero_row = len(self._token_sums)
        known = valid & (ids < len(self._row_of_token))
        rows = np.full(ids.shape, zero_row)
        rows[known] = self._row_of_token[ids[known]]
        return np.where(rows < 0, zero_row, rows)

    def _positions_of(self, valid: np.ndarray) -> Int[np.ndarray, "batch length"]:
        zero_row = len(self._position_sums)
        positions = np.arange(valid.shape[1]).clip(max=zero_row)
        return np.where(valid, positions, zero_row)

    # files --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that was summed, without spare rows and columns."""
        used, positions = len(self._token_of_row), max(self.n_positions, 1)
        state = {
            "tokens": torch.from_numpy(self._token_of_row),
            "position_sums": self._position_sums[:positions],
            "token_sums": self._token_sums[:used],
            "pair_counts": self._pair_counts[:used, :positions],
        }
        if self._keeps_squares:
            state["square_sum"] = self._square_sum
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> "Components":
        """Take over what :meth:`state_dict` returned, in place of all that was summed here.

        Raises:
            BadInput: a state of another width, of tokens or positions beyond the given sizes, or without the
                sum of squares that these keep. Nothing changes.
        """
        self._require_fitting(state)
        loaded = Components(**self._settings(), device=self.device)
        loaded._add(state)
        vars(self).update(vars(loaded))
        return self

    def _require_fitting(self, state: dict[str, Tensor]) -> None:
        width, positions = state["token_sums"].shape[1], state["pair_counts"].shape[1]
        largest = int(state["tokens"].max()) if len(state["tokens"]) else -1
        wrong = []
        if width != self.width:
            wrong.append(f"width {width} where {self.width} is expected")
        if self._vocabulary is not None and largest >= self._vocabulary:
            wrong.append(f"token {largest} where there are {self._vocabulary}, counted from 0")
        if self._max_length is not None and positions > self._max_length:
            wrong.append(f"{positions} positions where there are {self._max_length}")
        if self._keeps_squares and "square_sum" not in state:
            wrong.append("no square_sum, which these keep: make them with variance=False")
        if wrong:
            raise BadInput(f"the state of components has {', '.join(wrong)}")

    def _add(self, state: dict[str, Tensor]) -> None:
        tokens, positions = state["tokens"].numpy(), state["pair_counts"].shape[1]
        if self._vocabulary is None:
            self._row_of_token, self._token_of_row = self._rows_with(tokens)
        self._make_room(positions)
        rows = torch.from_numpy(self._row_of_token[tokens]).to(self.device)
        self._position_sums[:positions] += state["position_sums"].to(self.device)
        self._token_sums[rows] += state["token_sums"].to(self.device)
        self._pair_counts[rows, :positions] += state["pair_counts"].to(self.device)
        if self._keeps_squares:
            self._square_sum += state["square_sum"].to(self.device)
        self._forget()

    def save(self, path: str | Path) -> None:
        """Write the sums and counts as safetensors; the file appears whole or not at all."""
        settings = {name: str(value) for name, value in self._settings().items() if value is not None}
        state = {name: table.cpu().contiguous() for name, table in self.state_dict().items()}
        with atomic_path(path) as temporary:
            save_file(state, temporary, metadata={"format": _FORMAT, **settings})

    @classmethod
    def load(cls, path: str | Path, *, device: torch.device | str = "cpu") -> "Components":
        """Read what :meth:`save` wrote.

        Raises:
            CorruptFile: a file that is not as it was written.
            FileNotFoundError: no file.
        """
        require_plain(path)
        try:
            with safe_open(path, framework="pt", device=str(device)) as file:
                metadata = file.metadata() or {}
                if metadata.get("format") not in (_FORMAT, _FIRST_FORMAT):
                    raise CorruptFile(f"{path} holds no components (format {_FORMAT}): write it with save().")
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dict
        except SafetensorError as error:
            raise CorruptFile(
                f"{path} cannot be read as safetensors ({error}): write it again with save()."
            ) from error
        check_checksum(path, metadata, state)
        settings = {name: metadata[name] for name in ("method", "constants") if name in metadata}
        settings |= {name: int(metadata[name]) for name in ("n_tokens", "n_positions") if name in metadata}
        settings["variance"] = "square_sum" in state
        is_first = metadata["format"] == _FIRST_FORMAT
        if is_first and "pair_counts" in state:
            state["tokens"] = torch.arange(state["pair_counts"].shape[:1].numel())
        _check_state(path, state)
        if is_first:
            settings["n_tokens"], settings["n_positions"] = state["pair_counts"].shape
        components = cls(state["token_sums"].shape[1], **settings, device=device)
        return components.load_state_dict(state)


def _checked_shapes(
    states: Tensor, tokens: Tensor, mask: Tensor, *, width: int
) -> Bool[np.ndarray, "batch length"]:
    """Return the mask as an array; BadInput where shapes or dtypes do not fit, or a row is all padding."""
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
    return valid


def _check_state(path: str | Path, state: dict[str, Tensor]) -> None:
    """Raise CorruptFile where sums and counts cannot be those of any corpus."""
    missing = {"tokens", "position_sums", "token_sums", "pair_counts"} - state.keys()
    if missing:
        raise CorruptFile(f"{path} lacks {', '.join(sorted(missing))}: write it again with save().")
    counts, tokens = state["pair_counts"], state["tokens"]
    sums = [state["position_sums"], state["token_sums"]]
    if counts.dtype != torch.int64 or any(table.dtype != torch.float64 for table in sums):
        raise CorruptFile(f"{path}: counts must be int64 and sums float64: write it again with save().")
    width = state["token_sums"].shape[-1:]
    expected = {
        "tokens": counts.shape[:1],
        "token_sums": (*counts.shape[:1], *width),
        "position_sums": (*counts.shape[1:], *width),
    }
    if counts.dim() != 2 or any(state[name].shape != shape for name, shape in expected.items()):
        raise CorruptFile(f"{path}: the shapes of its tables differ: write it again with save().")
    of_unseen = [state["token_sums"][counts.sum(1) == 0], state["position_sums"][counts.sum(0) == 0]]
    if (
        bool((counts < 0).any())
        or bool((tokens < 0).any())
        or len(tokens.unique()) < len(tokens)
        or not all(bool(table.isfinite().all()) for table in sums)
        or any(bool(table.any()) for table in of_unseen)
    ):
        raise CorruptFile(
            f"{path} holds negative counts, sums that are not finite, or sums of what was never seen: write "
            "it again with save()."
        )


def _split_by_block(
    states: Float[Tensor, "places width"], rows: PlaceRows, parts: tuple[Float[Tensor, "places width"], ...]
) -> None:
    """Write the parts of states, a block of places at a time on the CPU."""
    temporal, inputs, residual = parts
    at_once = _ROWS_AT_ONCE if states.device.type == "cpu" else max(1, len(states))
    for start in range(0, len(states), at_once):
        block = slice(start, start + at_once)
        torch.index_select(rows.temporal, 0, rows.position_of_place[block], out=temporal[block])
        torch.index_select(rows.input, 0, rows.row_of_place[block], out=inputs[block])
        torch.sub(states[block].to(residual.dtype), temporal[block], out=residual[block])
        residual[block] -= inputs[block]
    residual[rows.is_padding] = 0


def _empty(shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a tensor of undefined numbers, as torch.empty does, in large pages on the CPU.

    The system clears each page when it is first written to, which takes longer than the writing where pages
    have 4 KB. numpy requests large pages for its arrays, torch does not. As in torch the first number is at a
    multiple of 64 bytes, so that matrix products take the same path.
    """
    n_bytes = math.prod(shape) * dtype.itemsize
    if device.type != "cpu" or n_bytes < _LARGE_PAGES_FROM:
        return torch.empty(shape, dtype=dtype, device=device)
    memory = np.empty(n_bytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return torch.from_numpy(memory[start : start + n_bytes]).view(dtype).view(shape)


def _with_zero_row(table: Float[Tensor, "rows width"]) -> Float[Tensor, "rows_and_zero width"]:
    return torch.nn.functional.pad(table, (0, 0, 0, 1))


def _doubled(size: int, needed: int) -> int:
    """Return the size, doubled until it is at least what is needed."""
    while size < needed:
        size *= 2
    return size


def _longest(valid: Bool[np.ndarray, "batch length"]) -> int:
    """Return the number of columns up to the last that is valid in some row."""
    return int(np.flatnonzero(valid.any(0)).max(initial=0)) + 1


def _listed(settings: dict) -> str:
    given = {name: value for name, value in settings.items() if value is not None}
    return ", ".join(f"{name} {value}" for name, value in given.items())
