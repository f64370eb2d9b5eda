"""Components of a corpus whose words and lengths are not known beforehand.

:class:`~attnlib.decomposition.components.Components` has a row for every token of the vocabulary from the
start. Here a token gets its row when it is first seen, and the tables grow with the longest sample: what a
corpus of 32,000 words does not use costs nothing.
"""

from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import EVERYWHERE, Mask, States, Tokens, takes_arrays
from attnlib.decomposition.components import Method, Parts, checked_mask, means_of
from attnlib.decomposition.fast import Components, add
from attnlib.decomposition.two_way import Fit, centred_by_piece, two_way
from attnlib.errors import BadInput, check_known

_FIRST_ROWS, _FIRST_POSITIONS = 256, 16

_IDS = 1 << 24  # more than any vocabulary has: a larger id is a mistake, and would cost a long list


@dataclass(frozen=True, eq=False)
class Means:
    """What components say of the places of a batch, as tables in which each looks up its two parts."""

    centre: Float[Tensor, " width"]  #: the mean of all states summed
    temporal: Float[Tensor, "length width"]  #: by position; zero where it was never seen
    input: Float[Tensor, "words width"]  #: of each word of the batch once; zero where it was never seen
    word: Int[Tensor, "batch length"]  #: which row of ``input`` a place has
    known: Bool[Tensor, "batch length"]  #: valid places whose word and position were both seen while fitting
    unseen_words: int  #: how many valid places have a word never seen
    unseen_places: int  #: how many valid places have a position never seen


class _Solution(Components):
    """The sums of growing components with the fit of their method; for splitting states only.

    A position that the sums do not reach has a row of zeros, so that longer states can be split without
    changing the sums.
    """

    def __init__(self, sums: Components, n_positions: int):
        self.method: Method = "means"
        self.token_sums = sums.token_sums
        self.position_sums, self.pair_counts = sums.position_sums, sums.pair_counts
        further = n_positions - sums.n_positions
        if further:
            self.position_sums = torch.nn.functional.pad(sums.position_sums, (0, 0, 0, further))
            self.pair_counts = torch.nn.functional.pad(sums.pair_counts, (0, further))
        self.fit: Fit | None = None  # mu and chi
        self._solved = {}

    def _solve(self) -> Fit:
        return self.fit


class GrowingComponents:
    """Components that allocate the row of a token on first sight; one pass, mergeable.

    Either method goes by the same sums; what is left of a state by least squares needs no other.

    >>> grown = GrowingComponents(width=2)
    >>> states, tokens = torch.randn(3, 4, 2), torch.tensor([[7, 31_999, 7, 0]] * 3)
    >>> parts = grown.update(states, tokens).split(states, tokens)
    >>> grown.tokens.tolist(), torch.allclose(parts.total(), states)
    ([0, 7, 31999], True)

    Attributes:
        tables: the sums of the rows in use; rows stand in the order of first sight, with spare ones behind.
            Their own ``temporal`` and ``input`` are means; :meth:`split` uses the fit of ``method``.
    """

    def __init__(self, width: int, method: Method = "means"):
        check_known("method of Components", method, get_args(Method))
        self.method: Method = method
        self._rows = np.full(0, -1, dtype=np.int64)  # token → row, −1 where it has none
        self._order: list[int] = []  # row → token
        self.tables = Components(_FIRST_ROWS, _FIRST_POSITIONS, width)
        self._solution: _Solution | None = None  # until the sums change

    @property
    def width(self) -> int:
        return self.tables.width

    @property
    def tokens(self) -> Int[Tensor, " seen"]:
        """Ids of the tokens seen, ascending."""
        seen = self.tables.token_counts[: len(self._order)] > 0
        return torch.tensor(self._order, dtype=torch.int64)[seen].sort().values

    @property
    def occurrences(self) -> int:
        """Valid positions summed so far."""
        return int(self.tables.pair_counts.sum())

    @property
    def bytes(self) -> int:
        """Memory of what is in use; with the spare rows and columns it is up to four times as much."""
        return sum(table.nbytes for name, table in self.tensors().items() if name != "tokens")

    @takes_arrays
    def update(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> "GrowingComponents":
        """Add a batch; errors as :meth:`Components.update`."""
        ids, valid = self._checked(states, tokens, mask)
        self._solution = None
        self._make_room(np.unique(ids[valid]), _longest(valid))
        if not len(valid) or add(self.tables, states, ids, valid, self._rows.take):
            return self
        self.tables.update(states, self._rows_of(ids, valid), mask)
        return self

    @takes_arrays
    def split(self, states: States, tokens: Tokens, mask: Mask = EVERYWHERE) -> Parts:
        """The three parts of states, as :meth:`Components.split`; tokens and places never seen have none."""
        ids, valid = self._checked(states, tokens, mask)
        return self._solution_for(_longest(valid)).split(states, self._rows_of(ids, valid), mask)

    @property
    def centre(self) -> Float[Tensor, " width"]:
        """The mean of all states summed, float64: what neither position nor word tells apart."""
        return self._centre_of(self.tables)

    def _centre_of(self, sums: Components) -> Float[Tensor, " width"]:
        return sums.position_sums.sum(0) / max(self.occurrences, 1)

    def means(self, states: Tensor, tokens: Tensor, mask: Tensor) -> Means:
        """What :meth:`split` takes off the states, each row once: for maps that are dearer than a look-up."""
        ids, valid = self._checked(states, tokens, mask)
        solution = self._solution_for(_longest(valid))
        dtype = torch.promote_types(states.dtype, torch.float32)
        temporal, inputs, seen_places, seen_words = solution._tables(dtype, states.device)
        rows, word = self._rows_of(ids, valid).to(states.device).unique(return_inverse=True)
        length = min(mask.shape[1], len(temporal))  # columns beyond the tables are padding
        beyond = (0, mask.shape[1] - length)
        places = torch.nn.functional.pad(seen_places[:length], beyond)
        words = seen_words[rows][word]
        return Means(
            centre=self._centre_of(solution).to(device=states.device, dtype=dtype),
            temporal=torch.nn.functional.pad(temporal[:length], (0, 0, *beyond)),
            input=inputs[rows],
            word=word,
            known=mask & words & places,
            unseen_words=int((mask & ~words).sum()),
            unseen_places=int((mask & ~places).sum()),
        )

    def _solution_for(self, positions: int) -> _Solution:
        """The fit of the present sums for so many positions; the sums stay as they are."""
        solution = self._solution
        if solution is None or solution.n_positions < positions:
            n_positions = _doubled(self.tables.n_positions, positions)
            solution = _Solution(self.tables, n_positions)
            solution.fit = self._fit(solution)
            self._solution = solution
        return solution

    def _fit(self, sums: Components) -> Fit:
        """mu and chi of sums, by the method of these components."""
        if self.method == "least_squares":
            return two_way(sums.position_sums, sums.token_sums, sums.pair_counts)
        return means_of(sums.position_sums, sums.token_sums, sums.pair_counts)

    def merge(self, other: "GrowingComponents") -> "GrowingComponents":
        """New components of the two corpora together; both arguments stay as they are.

        Raises:
            BadInput: another width or method.
        """
        mine, theirs = (f"width {own.width} by {own.method}" for own in (self, other))
        if mine != theirs:
            raise BadInput(f"cannot merge components of {mine} with those of {theirs}")
        merged = GrowingComponents(self.width, self.method)
        for part in (self, other):
            merged._add(part.tensors())
        return merged

    __add__ = merge

    @classmethod
    def of_tensors(cls, found: dict[str, Tensor], method: Method = "means") -> "GrowingComponents":
        """The components that :meth:`tensors` was called on."""
        loaded = cls(found["token_sums"].shape[1], method)
        loaded._add(found)
        return loaded

    def _add(self, tables: dict[str, Tensor]) -> None:
        """What was in use elsewhere."""
        tokens, places = tables["tokens"].numpy(), tables["pair_counts"].shape[1]
        self._make_room(tokens, places)
        rows = torch.from_numpy(self._rows[tokens])
        self.tables.position_sums[:places] += tables["position_sums"]
        self.tables.token_sums[rows] += tables["token_sums"]
        self.tables.pair_counts[rows, :places] += tables["pair_counts"]

    def tensors(self) -> dict[str, Tensor]:
        """What :meth:`of_tensors` makes the same components of.

        Tokens in the order of first sight, and the tables up to the last one and the last place.
        """
        rows, places = len(self._order), self.tables.position_counts.nonzero()
        columns = int(places.max()) + 1 if len(places) else 1
        return {
            "tokens": torch.tensor(self._order, dtype=torch.int64),
            "position_sums": self.tables.position_sums[:columns],
            "token_sums": self.tables.token_sums[:rows],
            "pair_counts": self.tables.pair_counts[:rows, :columns],
        }

    def _checked(self, states: Tensor, tokens: Tensor, mask: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Ids and mask; BadInput before anything has grown."""
        sizes = {"n_tokens": _IDS, "n_positions": mask.numel() + 1, "width": self.width}
        way_out = "number the words from 0, as torch.unique(tokens, return_inverse=True) does"
        valid = checked_mask(states, tokens, mask, **sizes, way_out=way_out)
        return tokens.cpu().numpy().astype(np.int64, copy=False), valid

    def _rows_of(self, ids: np.ndarray, valid: np.ndarray) -> Int[Tensor, "batch length"]:
        """Rows in place of ids; an unseen token has the last row, which is never filled."""
        known = valid & (ids < len(self._rows))
        rows = np.full(ids.shape, self.tables.n_tokens - 1, dtype=np.int64)
        found = self._rows[ids[known]]
        rows[known] = np.where(found < 0, self.tables.n_tokens - 1, found)
        return torch.from_numpy(rows)

    def _make_room(self, ids: np.ndarray, positions: int) -> None:
        """Rows for these tokens and columns for so many positions; tables double where they are full."""
        if len(ids) and ids.max() >= len(self._rows):
            longer = np.full(max(int(ids.max()) + 1, 2 * len(self._rows)), -1, dtype=np.int64)
            longer[: len(self._rows)] = self._rows
            self._rows = longer
        new = ids[self._rows[ids] < 0]
        self._rows[new] = np.arange(len(self._order), len(self._order) + len(new))
        self._order += new.tolist()
        old = self.tables
        sizes = [_doubled(old.n_tokens, len(self._order) + 1), _doubled(old.n_positions, positions)]
        if sizes != [old.n_tokens, old.n_positions]:
            grown = Components(*sizes, old.width)
            grown.position_sums[: old.n_positions] = old.position_sums
            grown.token_sums[: old.n_tokens] = old.token_sums
            grown.pair_counts[: old.n_tokens, : old.n_positions] = old.pair_counts
            self.tables = grown


class CentredComponents(GrowingComponents):
    """Components whose word parts have, weighted by counts, the mean zero on every connected piece.

    What they say then converges as the corpus grows, see :mod:`attnlib.decomposition.two_way`. By
    means no constant is free, and the class above says the same.
    """

    def _fit(self, sums: Components) -> Fit:
        temporal, inputs = super()._fit(sums)
        if self.method == "means":
            return temporal, inputs
        return centred_by_piece(temporal, inputs, sums.pair_counts)


def _doubled(size: int, needed: int) -> int:
    """The size, doubled until it is at least what is needed."""
    while size < needed:
        size *= 2
    return size


def _longest(valid: np.ndarray) -> int:
    """Columns up to the last that is valid in some row."""
    return int(np.flatnonzero(valid.any(0)).max(initial=0)) + 1
