"""Temporal, input and residual components of hidden states (Aitken et al. 2021, contribution 1).

    h = mu_t + chi(w) + delta
    mu_t   = mean of h over the samples that have a position t          (temporal component)
    chi(w) = mean of h - mu_t over every occurrence of token w          (input component)
    delta  = what is left                                                (residual component)

The available text, abstract and introduction, names a temporal part that is independent of input and an input
part that is independent of position. Their definition as means, the residual, and the treatment of padding
and of unseen tokens are this project's choices. With ``method="least_squares"`` mu and chi are the exact
two-way additive fit instead: see :mod:`attnlib.decomposition.two_way`.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch import bool as torch_bool
from torch.nn.functional import pad

from attnlib.arrays import EVERYWHERE, Mask, ShowsShapes, States, Tokens, takes_arrays
from attnlib.decomposition.kernels import PlaceRows, read_once, split_once
from attnlib.decomposition.sums import read_twice
from attnlib.decomposition.two_way import (
    TwoWayFit,
    VarianceExplained,
    centred_by_piece,
    means_of,
    two_way,
    variance_explained,
)
from attnlib.errors import BadInput, CorruptFile, check_known
from attnlib.files import atomic_path, require_plain
from attnlib.former_names import former_object
from attnlib.sealed import check_checksum, save_file

STATE_PARTS = ("temporal", "input", "residual")

Method = Literal["means", "least_squares"]
Constants = Literal["least_norm", "by_count"]


@dataclass(frozen=True, eq=False, repr=False)
class Parts(ShowsShapes):
    """Three parts that sum to states: temporal, input and residual; zero at padding.

    They have the device of the states and their dtype, but single precision at least.

    Attributes:
        temporal: the part by position, (batch, length, width).
        input: the part by token, (batch, length, width).
        residual: what is left, (batch, length, width).
        mask: True at valid positions, (batch, length).
        unseen_tokens: number of valid places whose token was not seen in fitting; their input component is
            zero. Report its share of all valid places, see :attr:`unseen_share`, with a decomposition.
        unseen_positions: number of valid places whose position was not seen in fitting; their temporal
            component is zero.

    Example:
        >>> states = torch.ones(1, 2, 3)
        >>> parts = Parts(states, 2 * states, 3 * states, mask=torch.tensor([[True, True]]), unseen_tokens=1)
        >>> parts
        Parts(temporal, input, residual, each (1, 2, 3), 2 valid)
        >>> parts.total()[0, 0].tolist(), parts.unseen_share
        ([6.0, 6.0, 6.0], 0.5)
    """

    temporal: Float[Tensor, "batch length width"]
    input: Float[Tensor, "batch length width"]
    residual: Float[Tensor, "batch length width"]
    _: KW_ONLY
    mask: Bool[Tensor, "batch length"]
    unseen_tokens: int = 0
    unseen_positions: int = 0

    @property
    def valid(self) -> int:
        """Number of valid places."""
        return int(self.mask.sum())

    @property
    def unseen_share(self) -> float:
        """Share of the valid places whose token was not seen in fitting; NaN if no place is valid."""
        if not self.valid:
            return math.nan
        return self.unseen_tokens / self.valid

    def __iter__(self) -> Iterator[Float[Tensor, "batch length width"]]:
        """Iterate over the parts in the order of ``STATE_PARTS``."""
        return iter((self.temporal, self.input, self.residual))

    def __repr__(self) -> str:
        return f"Parts(temporal, input, residual, each {tuple(self.temporal.shape)}, {self.valid:,} valid)"

    def stack(self) -> Float[Tensor, "3 batch length width"]:
        """Return the parts as one tensor, in the order of ``STATE_PARTS``."""
        return torch.stack(tuple(self))

    def total(self) -> Float[Tensor, "batch length width"]:
        """Return the states again, zero at padding."""
        return self.temporal + self.input + self.residual


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlaceComponents(ShowsShapes):
    """The components of the places of a batch, with one row for each position and each distinct token.

    Attributes:
        centre: mean of all states that were summed.
        temporal: by position; zero where the position was not seen in fitting.
        input: of each distinct token of the batch; zero where the token was not seen in fitting.
        word: the row of ``input`` that belongs to each place.
        known: True at valid places whose token and position were both seen in fitting.
        unseen_tokens: number of valid places whose token was not seen in fitting.
        unseen_positions: number of valid places whose position was not seen in fitting.
    """

    centre: Float[Tensor, " width"]
    temporal: Float[Tensor, "length width"]
    input: Float[Tensor, "words width"]
    word: Int[Tensor, "batch length"]
    known: Bool[Tensor, "batch length"]
    unseen_tokens: int
    unseen_positions: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Tables(ShowsShapes):
    """A fit in one precision on one device.

    The last row of each table is zero; it belongs to padding and to what was not seen in fitting.

    Attributes:
        temporal: μ by position.
        input: χ by row of the table of tokens.
        position_seen: whether each position was seen in fitting.
        row_seen: whether the token of each row was seen in fitting.
    """

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
    """Sums from which the components of a corpus follow: one pass, constant memory, mergeable.

    chi is defined by the final mu, which no single pass knows. But

        chi(w) = (token_sum(w) - sum_t count(w, t) mu_t) / count(w),

    so sums by position, sums by token and the counts of (token, position) are enough. They are float64, and
    grow with the tokens and the positions that are seen. States may come from any device, in float16,
    bfloat16, float32 or float64.

    Args:
        width: of the states.
        method: "means" as in the equations above and in the papers, or "least_squares", the exact two-way
            additive fit, which analyses of a corpus use by default.
        variance: whether to keep the sum of squares that :meth:`variance_explained` needs, with least
            squares. Every step of the sums is then in float64, which is slower.
        n_tokens: size of the vocabulary. A larger id is an error, and ``input`` has this many rows from the
            start. By default the vocabulary grows with the tokens seen.
        n_positions: length of the longest sample, likewise.
        constants: the choice that least squares leave open, see :mod:`attnlib.decomposition.two_way`. With
            "least_norm" the count-weighted sum of chi over the corpus is zero, and the norm of mu and chi is
            least. With "by_count" that sum is zero on every set of positions that shared tokens connect,
            which converges as a corpus grows. Means leave no choice.
        device: of the sums.

    Attributes:
        temporal: mu, (n_positions, width), float64; zero at positions that were not seen.
        input: chi, (n_tokens, width), float64; zero for tokens that were not seen.
        position_sums: (n_positions, width), float64.
        token_sums: (n_tokens, width), float64.
        pair_counts: how often each token is at each position, (n_tokens, n_positions).
        position_counts: its sum over tokens.
        token_counts: its sum over positions.
        seen: which tokens have been seen, (n_tokens,).

    Raises:
        BadInput: a size that is not a positive whole number, an unknown method or unknown constants.

    Example:
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
        self._fit: TwoWayFit | None = None  # until the sums change
        self._tables: dict[tuple[torch.dtype, torch.device], _Tables] = {}

    def __repr__(self) -> str:
        sizes = f"width={self.width}, n_tokens={self.n_tokens}, n_positions={self.n_positions}"
        counts = f"{self.occurrences:,} positions, {len(self.tokens):,} tokens"
        return f"Components({sizes}, method={self.method!r}) of {counts}"

    # -- sizes, sums and counts --

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
        seen_positions = self._pair_counts.sum(0).nonzero()
        if not len(seen_positions):
            return 0
        return int(seen_positions.max()) + 1

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
        """Memory of the sums in bytes; spare rows and columns take up to three times as much again."""
        tables = self.state_dict()
        del tables["tokens"]
        return sum(table.nbytes for table in tables.values())

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
        """Number of times that each token is at each position."""
        return self._by_token(self._pair_counts[:, : self.n_positions])

    @property
    def position_counts(self) -> Int[Tensor, " positions"]:
        """Number of samples in which each position is valid."""
        return self._pair_counts[:, : self.n_positions].sum(0)

    @property
    def token_counts(self) -> Int[Tensor, " tokens"]:
        """Number of times that each token occurs."""
        return self._by_token(self._pair_counts.sum(1))

    @property
    def seen(self) -> Bool[Tensor, " tokens"]:
        """True for tokens that occur."""
        return self.token_counts > 0

    def _by_token(self, table: Tensor) -> Tensor:
        """Return a table with a row for each id, from one with rows in the order of first sight."""
        if self._vocabulary is not None:
            return table
        by_token = table.new_zeros(self.n_tokens, *table.shape[1:])
        tokens = torch.from_numpy(self._token_of_row).to(table.device)
        by_token[tokens] = table[: len(tokens)]
        return by_token

    # -- fitting --

    @takes_arrays
    def update(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> "Components":
        """Add a batch, and return these components.

        Args:
            states: (batch, length, width), floating-point.
            tokens: (batch, length), integers.
            mask: True at valid positions, by default everywhere. States and tokens at padding are not read.

        Returns:
            these components, changed in place.

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
            reading = read_twice(states, row_of_place, valid, exact=self._keeps_squares)
            if reading.square_sum is not None:
                self._square_sum += reading.square_sum.to(self.device)

        # Nothing is refused from here on.
        self._row_of_token, self._token_of_row = row_of_token, token_of_row
        self._make_room(_longest(valid))
        sums = reading.position_sums[: len(self._position_sums)]  # columns beyond are padding
        self._position_sums[: len(sums)] += sums.to(self.device)
        reading.add_by_row(self._token_sums)
        reading.count_pairs(self._pair_counts)
        self._forget()
        return self

    partial_fit = update  #: the name that scikit-learn has for it

    def merge(self, other: "Components") -> "Components":
        """Return new components of the two corpora together; both stay as they are.

        Args:
            other: components with the same settings.

        Returns:
            the components that one pass over both corpora would have given, up to rounding in float64.

        Raises:
            BadInput: the two differ in width, method, choice of constants, or a fixed size.
        """
        settings, other_settings = self._settings(), other._settings()
        if settings != other_settings:
            raise BadInput(
                f"cannot merge components of {_listed(settings)} with those of {_listed(other_settings)}"
            )
        merged = Components(**settings, device=self.device)
        for addend in (self, other):
            merged._add(addend.state_dict())
        return merged

    __add__ = merge

    def refitted(self, method: Method = "means", constants: Constants = "least_norm") -> "Components":
        """Return components of the same sums by another method, without a second pass.

        They know the variance explained only if these components keep the sum of squares.

        Args:
            method: "means" or "least_squares".
            constants: the choice that least squares leave open.

        Returns:
            new components; these stay as they are.
        """
        settings: dict[str, Any] = self._settings() | {"method": method, "constants": constants}
        if not self._keeps_squares:
            settings["variance"] = False
        other = Components(**settings, device=self.device)
        other._add(self.state_dict())
        return other

    def to(self, device: torch.device | str) -> "Components":
        """Move the sums to a device, as ``torch.nn.Module.to`` does.

        Args:
            device: such as "cpu" or "cuda".

        Returns:
            these components.
        """
        for name in ("_position_sums", "_token_sums", "_pair_counts", "_square_sum"):
            setattr(self, name, getattr(self, name).to(device))
        self._forget()
        return self

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor, which other components must share to be merged."""
        return {
            "width": self.width,
            "n_tokens": self._vocabulary,
            "n_positions": self._max_length,
            "method": self.method,
            "constants": self.constants,
            "variance": self._keeps_squares or self.method == "means",
        }

    def _forget(self) -> None:
        self._fit = None
        self._tables.clear()

    def _checked(
        self, states: Tensor, tokens: Tensor, mask: Tensor
    ) -> tuple[Int[np.ndarray, "batch length"], Bool[np.ndarray, "batch length"]]:
        """Return ids and mask as arrays; raise BadInput where they do not fit these components."""
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
            way_out = "make Components with a larger n_tokens"
            if self._vocabulary is None:
                way_out = "number the words from 0, as torch.unique(tokens, return_inverse=True) does"
            sample, position = np.argwhere(outside)[0]
            raise BadInput(
                f"Token {ids[sample, position]} at sample {sample}, position {position} is outside the "
                f"vocabulary of {largest + 1} (0 to {largest}): {way_out}."
            )
        return ids, valid

    def _make_room(self, n_positions: int) -> None:
        """Make room for a number of positions and for every token that has a row; full tables double."""
        rows, positions = len(self._token_sums), len(self._position_sums)
        more_rows = _doubled(rows, len(self._token_of_row)) - rows
        more_positions = 0
        if self._max_length is None:
            more_positions = _doubled(positions, n_positions) - positions
        if more_rows or more_positions:
            self._position_sums = pad(self._position_sums, (0, 0, 0, more_positions))
            self._token_sums = pad(self._token_sums, (0, 0, 0, more_rows))
            self._pair_counts = pad(self._pair_counts, (0, more_positions, 0, more_rows))

    def _rows_with(
        self, tokens: Int[np.ndarray, " tokens"]
    ) -> tuple[Int[np.ndarray, " ids"], Int[np.ndarray, " rows"]]:
        """Return the row of each token and the token of each row, once these tokens have rows as well."""
        row_of_token, token_of_row = self._row_of_token, self._token_of_row
        largest = int(tokens.max(initial=-1))
        if largest >= len(row_of_token):
            longer = np.full(max(largest + 1, 2 * len(row_of_token)), -1)
            longer[: len(row_of_token)] = row_of_token
            row_of_token = longer
        has_no_row = row_of_token[tokens] < 0
        new_tokens = np.unique(tokens[has_no_row])
        if len(new_tokens):
            first_row = len(token_of_row)
            row_of_token = row_of_token.copy()
            row_of_token[new_tokens] = np.arange(first_row, first_row + len(new_tokens))
            token_of_row = np.concatenate((token_of_row, new_tokens))
        return row_of_token, token_of_row

    # -- results --

    @property
    def temporal(self) -> Float[Tensor, "positions width"]:
        """The temporal component μ of each position, float64."""
        temporal, _ = self._solution()
        return temporal[: self.n_positions]

    @property
    def input(self) -> Float[Tensor, "tokens width"]:
        """The input component χ of each token, float64, zero for tokens that were not seen."""
        _, inputs = self._solution()
        return self._by_token(inputs)

    @property
    def centre(self) -> Float[Tensor, " width"]:
        """Mean of all states summed, float64: the constant that all positions and tokens share."""
        return self._position_sums.sum(0) / max(self.occurrences, 1)

    def _solution(self) -> TwoWayFit:
        """Return μ by position and χ by row, float64; they are computed anew when the sums have changed."""
        if self._fit is None:
            self._fit = self._fitted()
        return self._fit

    def _fitted(self) -> TwoWayFit:
        if self.method == "means":
            return means_of(self._position_sums, self._token_sums, self._pair_counts)
        temporal, inputs = two_way(self._position_sums, self._token_sums, self._pair_counts)
        if self.constants == "by_count":
            return centred_by_piece(temporal, inputs, self._pair_counts)
        return temporal, inputs

    def _tables_in(self, dtype: torch.dtype, device: torch.device) -> _Tables:
        """Return the fit in a precision on a device; it is converted once, and again when the sums change."""
        if (dtype, device) not in self._tables:
            self._tables[dtype, device] = self._converted(dtype, device)
        return self._tables[dtype, device]

    def _converted(self, dtype: torch.dtype, device: torch.device) -> _Tables:
        temporal, inputs = self._solution()  # (positions, width), (rows, width)
        position_seen = self._pair_counts.sum(0) > 0  # (positions,)
        row_seen = self._pair_counts.sum(1) > 0  # (rows,)
        zero_row = (0, 0, 0, 1)  # nothing before and after the width, one row after the last
        return _Tables(
            temporal=pad(temporal.to(device=device, dtype=dtype), zero_row),
            input=pad(inputs.to(device=device, dtype=dtype), zero_row),
            position_seen=pad(position_seen, (0, 1)).to(device),
            row_seen=pad(row_seen, (0, 1)).to(device),
        )

    def variance_explained(self) -> VarianceExplained:
        """Return the shares of the variance of the states summed so far that position and token explain.

        Raises:
            BadInput: no sum of squares was kept (with means, or ``variance=False``); nothing was summed yet.
        """
        if not self._keeps_squares:
            raise BadInput(
                f"Components of method {self.method!r} keep no sum of squares: fit "
                'Components(width, method="least_squares") for the variance explained.'
            )
        return variance_explained(
            self._position_sums, self._token_sums, self._pair_counts, square_sum=float(self._square_sum)
        )

    @takes_arrays
    def split(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> Parts:
        """Return the three parts of states, on their device, zero at padding, without gradient.

        They sum to the states by construction. A token that was not seen in fitting has an input component of
        zero, and such a position a temporal component of zero; :class:`Parts` counts both.

        Args:
            states: (batch, length, width), floating-point.
            tokens: (batch, length), integers.
            mask: True at valid positions, by default everywhere.

        Returns:
            the parts, (batch, length, width) each.

        Raises:
            BadInput: as :meth:`update`; nothing was summed yet.
        """
        ids, valid = self._checked(states, tokens, mask)
        if not self.occurrences:
            raise BadInput("These components hold no samples yet: call update before split.")
        device = states.device
        dtype = torch.promote_types(states.dtype, torch.float32)
        tables = self._tables_in(dtype, device)
        rows = torch.from_numpy(self._rows_of(ids, valid)).to(device)  # (batch, length)
        positions = torch.from_numpy(self._positions_of(valid)).to(device)  # (batch, length)
        is_padding = torch.from_numpy(~valid).to(device)  # (batch, length)

        flat_states = states.detach().reshape(-1, self.width)  # (places, width)
        temporal, inputs, residual = (_empty(flat_states.shape, dtype, device) for _ in STATE_PARTS)
        place_rows = PlaceRows(
            temporal=tables.temporal,
            input=tables.input,
            position_of_place=positions.view(-1),
            row_of_place=rows.view(-1),
            is_padding=is_padding.view(-1),
        )
        parts = (temporal, inputs, residual)  # written by the functions below
        if not split_once(flat_states, place_rows, parts):
            _split_by_block(flat_states, place_rows, parts)

        unseen_tokens = ~tables.row_seen[rows] & ~is_padding  # (batch, length)
        unseen_positions = ~tables.position_seen[positions] & ~is_padding  # (batch, length)
        return Parts(
            temporal=temporal.view(states.shape),
            input=inputs.view(states.shape),
            residual=residual.view(states.shape),
            mask=~is_padding,
            unseen_tokens=int(unseen_tokens.sum()),
            unseen_positions=int(unseen_positions.sum()),
        )

    transform = split  #: the name that scikit-learn has for it

    def at_places(self, states: Tensor, tokens: Tensor, mask: Tensor) -> PlaceComponents:
        """Return the components that :meth:`split` subtracts, without repeating those of a word.

        A projection of these rows is cheaper than a projection of every state.

        Args:
            states: (batch, length, width), floating-point; only their shape, dtype and device are read.
            tokens: (batch, length), integers.
            mask: True at valid positions.

        Returns:
            components by position and by distinct token.
        """
        ids, valid = self._checked(states, tokens, mask)
        device = states.device
        dtype = torch.promote_types(states.dtype, torch.float32)
        tables = self._tables_in(dtype, device)
        row_of_place = torch.from_numpy(self._rows_of(ids, valid)).to(device)  # (batch, length)
        rows, word = row_of_place.unique(return_inverse=True)  # (words,), (batch, length)
        zero_row = len(tables.temporal) - 1
        positions = torch.arange(mask.shape[1], device=device).clamp(max=zero_row)  # (length,)
        token_seen = tables.row_seen[row_of_place]  # (batch, length)
        position_seen = tables.position_seen[positions]  # (length,)
        return PlaceComponents(
            centre=self.centre.to(device=device, dtype=dtype),
            temporal=tables.temporal[positions],
            input=tables.input[rows],
            word=word,
            known=mask & token_seen & position_seen,
            unseen_tokens=int((mask & ~token_seen).sum()),
            unseen_positions=int((mask & ~position_seen).sum()),
        )

    def means(self, states: Tensor, tokens: Tensor, mask: Tensor) -> PlaceComponents:
        """Return :meth:`at_places`, the replacement of this name.

        Args:
            states: (batch, length, width), floating-point.
            tokens: (batch, length), integers.
            mask: True at valid positions.

        Returns:
            components by position and by distinct token.
        """
        message = "Components.means is deprecated: it is Components.at_places"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.at_places(states, tokens, mask)

    def _rows_of(self, ids: np.ndarray, valid: np.ndarray) -> Int[np.ndarray, "batch length"]:
        """Return the rows of tokens in the tables; padding and tokens without a row have the last."""
        zero_row = len(self._token_sums)
        is_listed = valid & (ids < len(self._row_of_token))
        rows = np.full(ids.shape, zero_row)
        rows[is_listed] = self._row_of_token[ids[is_listed]]
        return np.where(rows < 0, zero_row, rows)

    def _positions_of(self, valid: np.ndarray) -> Int[np.ndarray, "batch length"]:
        """Return the rows of positions in the tables; padding and unknown positions have the last."""
        zero_row = len(self._position_sums)
        positions = np.arange(valid.shape[1]).clip(max=zero_row)
        return np.where(valid, positions, zero_row)

    # -- files --

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that was summed, without spare rows and columns."""
        n_rows = len(self._token_of_row)
        n_positions = max(self.n_positions, 1)
        state = {
            "tokens": torch.from_numpy(self._token_of_row),
            "position_sums": self._position_sums[:n_positions],
            "token_sums": self._token_sums[:n_rows],
            "pair_counts": self._pair_counts[:n_rows, :n_positions],
        }
        if self._keeps_squares:
            state["square_sum"] = self._square_sum
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> "Components":
        """Replace all sums by those that :meth:`state_dict` returned.

        Args:
            state: of components of the same width.

        Returns:
            these components.

        Raises:
            BadInput: a state of another width, of tokens or positions beyond the fixed sizes, or without the
                sum of squares that these components keep. Nothing is changed.
        """
        self._require_fitting(state)
        loaded = Components(**self._settings(), device=self.device)
        loaded._add(state)
        vars(self).update(vars(loaded))
        return self

    def _require_fitting(self, state: dict[str, Tensor]) -> None:
        """Raise BadInput where a state does not fit the sizes of these components."""
        width = state["token_sums"].shape[1]
        n_positions = state["pair_counts"].shape[1]
        largest_token = -1
        if len(state["tokens"]):
            largest_token = int(state["tokens"].max())
        mistakes = []
        if width != self.width:
            mistakes.append(f"width {width} where {self.width} is expected")
        if self._vocabulary is not None and largest_token >= self._vocabulary:
            mistakes.append(f"token {largest_token} where there are {self._vocabulary}, counted from 0")
        if self._max_length is not None and n_positions > self._max_length:
            mistakes.append(f"{n_positions} positions where there are {self._max_length}")
        if self._keeps_squares and "square_sum" not in state:
            mistakes.append("no square_sum, which these keep: make them with variance=False")
        elif self._keeps_squares and state["square_sum"].shape != ():
            mistakes.append(
                f"a square_sum of shape {tuple(state['square_sum'].shape)} where one number is expected"
            )
        if mistakes:
            raise BadInput(f"the state of components has {', '.join(mistakes)}")

    def _add(self, state: dict[str, Tensor]) -> None:
        """Add the sums of a state to these."""
        tokens = state["tokens"].numpy()
        n_positions = state["pair_counts"].shape[1]
        if self._vocabulary is None:
            self._row_of_token, self._token_of_row = self._rows_with(tokens)
        self._make_room(n_positions)
        rows = torch.from_numpy(self._row_of_token[tokens]).to(self.device)
        self._position_sums[:n_positions] += state["position_sums"].to(self.device)
        self._token_sums[rows] += state["token_sums"].to(self.device)
        self._pair_counts[rows, :n_positions] += state["pair_counts"].to(self.device)
        if self._keeps_squares:
            self._square_sum += state["square_sum"].to(self.device)
        self._forget()

    def save(self, path: str | Path) -> None:
        """Write the sums and counts as safetensors; the file appears whole or not at all.

        Args:
            path: of the file, which is replaced if it exists.
        """
        settings = {name: str(value) for name, value in self._settings().items() if value is not None}
        state = {name: table.cpu().contiguous() for name, table in self.state_dict().items()}
        with atomic_path(path) as temporary:
            save_file(state, temporary, metadata={"format": _FORMAT, **settings})

    @classmethod
    def load(cls, path: str | Path, *, device: torch.device | str = "cpu") -> "Components":
        """Read components that :meth:`save` wrote.

        Args:
            path: of the file.
            device: of the sums.

        Returns:
            components with the settings and sums of those saved.

        Raises:
            CorruptFile: the file is not as it was written.
            FileNotFoundError: there is no such file.
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
        settings: dict[str, Any] = {"variance": "square_sum" in state}
        for name in ("method", "constants"):
            if name in metadata:
                settings[name] = metadata[name]
        for name in ("n_tokens", "n_positions"):
            if name in metadata:
                settings[name] = int(metadata[name])
        is_first_format = metadata["format"] == _FIRST_FORMAT
        if is_first_format and "pair_counts" in state:
            n_tokens = state["pair_counts"].shape[:1].numel()
            state["tokens"] = torch.arange(n_tokens)
        _check_state(path, state)
        if is_first_format:
            settings["n_tokens"], settings["n_positions"] = state["pair_counts"].shape
        components = cls(state["token_sums"].shape[1], **settings, device=device)
        return components.load_state_dict(state)


def _checked_shapes(
    states: Tensor, tokens: Tensor, mask: Tensor, *, width: int
) -> Bool[np.ndarray, "batch length"]:
    """Return the mask as an array; raise BadInput for wrong shapes or dtypes, or a row of padding alone."""
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
    """Raise CorruptFile if sums and counts cannot be those of any corpus."""
    missing = {"tokens", "position_sums", "token_sums", "pair_counts"} - state.keys()
    if missing:
        raise CorruptFile(f"{path} lacks {', '.join(sorted(missing))}: write it again with save().")
    if not _has_table_shapes(state):
        raise CorruptFile(
            f"{path} has tables whose shapes or dtypes do not fit each other (counts must be int64, sums "
            "float64): write it again with save()."
        )
    if not _is_possible(state):
        raise CorruptFile(
            f"{path} holds negative counts, sums that are not finite, or sums of unseen tokens or positions: "
            "write it again with save()."
        )


def _has_table_shapes(state: dict[str, Tensor]) -> bool:
    """Return True if the tables have the right dtypes, and shapes that fit each other."""
    tokens, counts = state["tokens"], state["pair_counts"]
    token_sums, position_sums = state["token_sums"], state["position_sums"]
    if counts.dtype != torch.int64 or counts.dim() != 2:
        return False
    if token_sums.dtype != torch.float64 or position_sums.dtype != torch.float64 or not token_sums.dim():
        return False
    n_rows, n_positions = counts.shape
    width = token_sums.shape[-1]
    has_rows = tokens.shape == (n_rows,) and token_sums.shape == (n_rows, width)
    return has_rows and position_sums.shape == (n_positions, width)


def _is_possible(state: dict[str, Tensor]) -> bool:
    """Return True if counts and sums can be those of a corpus."""
    tokens, counts = state["tokens"], state["pair_counts"]
    token_sums, position_sums = state["token_sums"], state["position_sums"]
    if bool((counts < 0).any()) or bool((tokens < 0).any()):
        return False
    if len(tokens.unique()) < len(tokens):
        return False
    if not bool(token_sums.isfinite().all()) or not bool(position_sums.isfinite().all()):
        return False
    of_unseen_tokens = token_sums[counts.sum(1) == 0]
    of_unseen_positions = position_sums[counts.sum(0) == 0]
    return not bool(of_unseen_tokens.any()) and not bool(of_unseen_positions.any())


def _split_by_block(
    states: Float[Tensor, "places width"], rows: PlaceRows, parts: tuple[Float[Tensor, "places width"], ...]
) -> None:
    """Write the parts of states, a block of places at a time on the CPU."""
    temporal, inputs, residual = parts
    at_once = _ROWS_AT_ONCE if states.device.type == "cpu" else max(1, len(states))
    for start in range(0, len(states), at_once):
        block = slice(start, start + at_once)
        block_residual = residual[block]
        torch.index_select(rows.temporal, 0, rows.position_of_place[block], out=temporal[block])
        torch.index_select(rows.input, 0, rows.row_of_place[block], out=inputs[block])
        torch.sub(states[block].to(residual.dtype), temporal[block], out=block_residual)
        block_residual.sub_(inputs[block])
    padding = rows.is_padding.nonzero()[:, 0]
    residual.index_fill_(0, padding, 0)  # by index it takes a tenth of the time that a mask takes


def _empty(shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a tensor of undefined numbers, as torch.empty does, but in large pages on the CPU.

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


def _doubled(size: int, needed: int) -> int:
    """Return the size, doubled until it is at least what is needed."""
    while size < needed:
        size *= 2
    return size


def _longest(valid: Bool[np.ndarray, "batch length"]) -> int:
    """Return the number of columns up to the last that is valid in some row."""
    return int(np.flatnonzero(valid.any(0)).max(initial=0)) + 1


def _listed(settings: dict) -> str:
    """Return settings as text, without those that are None."""
    return ", ".join(f"{name} {value}" for name, value in settings.items() if value is not None)


def __getattr__(name: str) -> Any:
    former = {"PART_NAMES": f"{__name__}.STATE_PARTS", "Means": f"{__name__}.PlaceComponents"}
    return former_object(__name__, former, name)
