"""Temporal, input and residual components of hidden states (Aitken et al. 2021, contribution 1).

    h = mu_t + chi(w) + delta
    mu_t   = mean of h over the samples that have a position t          (temporal component)
    chi(w) = mean of h - mu_t over every occurrence of token w          (input component)
    delta  = what is left                                                (residual component)

The paper's abstract and introduction name the two means and the rest; the sums and the treatment of padding
and of unseen tokens are this project's definitions.
"""

from pathlib import Path
from typing import Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from attnlib.decomposition.parts import Parts
from attnlib.decomposition.sums import sums_by_position, sums_by_token
from attnlib.errors import BadInput, CorruptFile
from attnlib.files import atomic_path

_FORMAT = "attnlib.components/1"
_TABLES = ("position_sums", "token_sums", "pair_counts")


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
    or float64.
    """

    def __init__(self, n_tokens: int, n_positions: int, width: int, *, device: torch.device | str = "cpu"):
        for name, size in (("n_tokens", n_tokens), ("n_positions", n_positions), ("width", width)):
            if size < 1:
                raise BadInput(f"Components({name}={size}): sizes start at 1.")
        self.position_sums = torch.zeros(n_positions, width, dtype=torch.float64, device=device)
        self.token_sums = torch.zeros(n_tokens, width, dtype=torch.float64, device=device)
        self.pair_counts = torch.zeros(n_tokens, n_positions, dtype=torch.int64, device=device)
        self._means: tuple[Tensor, Tensor] | None = None

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

    @property
    def position_counts(self) -> Int[Tensor, "positions"]:
        return self.pair_counts.sum(0)

    @property
    def token_counts(self) -> Int[Tensor, "tokens"]:
        return self.pair_counts.sum(1)

    @property
    def seen(self) -> Bool[Tensor, "tokens"]:
        return self.token_counts > 0

    # fitting ------------------------------------------------------------------------------------------------

    def update(
        self,
        states: Float[Tensor, "batch length width"],
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
    ) -> Self:
        """Adds a batch. `mask` is True at valid positions; what stands at padding is never read.

        Raises BadInput, leaving the sums as they were, for shapes that differ, a token outside the
        vocabulary, a position beyond the table, a row that is all padding, a state that is not finite.
        """
        valid = self._check(states, tokens, mask)
        if not len(valid):
            return self
        length = min(valid.shape[1], self.n_positions)
        ids = tokens.cpu().numpy()
        rows = states.detach()
        if rows.dtype in (torch.float16, torch.bfloat16):
            rows = rows.float()

        seen, token_sums = sums_by_token(rows, ids, valid)
        position_sums = sums_by_position(rows, valid)[:length]
        if not bool(position_sums.isfinite().all()):
            at = (~rows.isfinite().all(-1)).cpu().numpy() & valid
            where = (
                tuple(int(i) for i in np.argwhere(at)[0]) if at.any() else "none alone: their sum overflows"
            )
            raise BadInput(f"A state is not finite: first at (sample, position) {where}. Nothing was added.")

        device = self.token_sums.device
        self.token_sums.index_add_(0, seen.to(device), token_sums.to(device))
        self.position_sums[:length] += position_sums.to(device)
        self._count(ids, valid)
        self._means = None
        return self

    def _count(self, ids: np.ndarray, valid: np.ndarray) -> None:
        pairs = torch.from_numpy((ids * self.n_positions + np.arange(ids.shape[1]))[valid]).to(
            self.pair_counts.device
        )
        self.pair_counts.view(-1).index_add_(0, pairs, torch.ones_like(pairs))

    def merge(self, other: Self) -> Self:
        """New components of the two corpora together; both arguments stay as they are."""
        sizes = [(c.n_tokens, c.n_positions, c.width) for c in (self, other)]
        if sizes[0] != sizes[1]:
            raise BadInput(
                f"Cannot merge components of (tokens, positions, width) {sizes[0]} with {sizes[1]}: "
                "make both with the same three numbers."
            )
        merged = type(self)(*sizes[0], device=self.token_sums.device)
        for name in _TABLES:
            mine = getattr(self, name)
            setattr(merged, name, mine + getattr(other, name).to(mine.device))
        return merged

    __add__ = merge

    # results ------------------------------------------------------------------------------------------------

    @property
    def temporal(self) -> Float[Tensor, "positions width"]:
        """mu, float64; zero at positions that no sample had."""
        return self._solve()[0]

    @property
    def input(self) -> Float[Tensor, "tokens width"]:
        """chi, float64; zero for tokens never seen."""
        return self._solve()[1]

    def _solve(self) -> tuple[Tensor, Tensor]:
        if self._means is None:
            counts = self.pair_counts.double()
            temporal = self.position_sums / counts.sum(0).clamp(min=1)[:, None]
            inputs = (self.token_sums - counts @ temporal) / counts.sum(1).clamp(min=1)[:, None]
            self._means = temporal, inputs
        return self._means

    def split(
        self,
        states: Float[Tensor, "batch length width"],
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
    ) -> Parts:
        """The three parts of `states`, in their dtype and on their device, zero at padding.

        They sum to the states by construction. A token never seen while fitting has input component zero; how
        many there were is in `Parts.unseen_tokens`. Raises BadInput as `update` does, and before any
        `update`.
        """
        valid = torch.from_numpy(self._check(states, tokens, mask))
        if not bool(self.pair_counts.any()):
            raise BadInput(
                "These components hold no samples yet: call update(states, tokens, mask) before split."
            )
        home = self.token_sums.device
        ids = tokens.to(home).long().masked_fill(~valid.to(home), 0)
        places = torch.arange(states.shape[1], device=home).clamp(max=self.n_positions - 1)

        dtype = torch.promote_types(states.dtype, torch.float32)  # half precision is subtracted in single
        at_work = {"device": states.device, "dtype": dtype}
        keep = valid.to(states.device)
        where = keep[:, :, None]
        temporal = self.temporal.to(**at_work)[places.to(states.device)] * where
        inputs = self.input.to(**at_work)[ids.to(states.device)] * where
        residual = (states.to(dtype) - temporal - inputs).masked_fill(~where, 0)
        unseen_tokens = int((~self.seen[ids].cpu() & valid).sum())
        unseen_positions = int(((self.position_counts == 0)[places].cpu() & valid).sum())
        parts = (part.to(states.dtype) for part in (temporal, inputs, residual))
        return Parts(*parts, keep, unseen_tokens, unseen_positions)

    # files --------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes the sums and counts as safetensors; the file appears whole or not at all."""
        with atomic_path(path) as temporary:
            save_file(
                {name: getattr(self, name).cpu() for name in _TABLES}, temporary, metadata={"format": _FORMAT}
            )

    @classmethod
    def load(cls, path: str | Path, *, device: torch.device | str = "cpu") -> Self:
        """Raises CorruptFile for a file that `save` did not write whole, FileNotFoundError for none."""
        try:
            with safe_open(path, framework="pt", device=str(device)) as file:
                if (file.metadata() or {}).get("format") != _FORMAT:
                    raise CorruptFile(f"{path} holds no components (format {_FORMAT}): write it with save().")
                tables = {name: file.get_tensor(name) for name in _TABLES}
        except SafetensorError as error:
            raise CorruptFile(
                f"{path} cannot be read as safetensors ({error}): write it again with save()."
            ) from error
        components = cls(*tables["pair_counts"].shape, tables["token_sums"].shape[1], device=device)
        for name, table in tables.items():
            setattr(components, name, table)
        return components

    # checks -------------------------------------------------------------------------------------------------

    def _check(self, states: Tensor, tokens: Tensor, mask: Tensor) -> np.ndarray:
        """The mask as numpy, or BadInput."""
        if states.dim() != 3 or states.shape[2] != self.width:
            raise BadInput(f"States of shape {tuple(states.shape)}: expected (batch, length, {self.width}).")
        if not states.is_floating_point():
            raise BadInput(f"States of {states.dtype}: expected a floating-point tensor.")
        for name, tensor in (("Tokens", tokens), ("Mask", mask)):
            if tensor.shape != states.shape[:2]:
                expected = tuple(states.shape[:2])
                raise BadInput(
                    f"{name} of shape {tuple(tensor.shape)} with states of shape {tuple(states.shape)}: "
                    f"expected {expected} (batch, length)."
                )
        if mask.dtype != torch.bool:
            raise BadInput(f"Mask of {mask.dtype}: expected torch.bool, True at valid positions.")
        valid = mask.cpu().numpy()
        if not valid.any(1).all():
            raise BadInput(
                f"Row {int(np.argmin(valid.any(1)))} of the mask is all padding: leave such samples out."
            )
        if valid[:, self.n_positions :].any():
            last = int(np.flatnonzero(valid.any(0))[-1])
            raise BadInput(
                f"Position {last} is valid but the table holds {self.n_positions} positions (0 to "
                f"{self.n_positions - 1}): make Components with n_positions={last + 1} or more."
            )
        ids = tokens.cpu().numpy()
        outside = valid & ((ids < 0) | (ids >= self.n_tokens))
        if outside.any():
            sample, position = np.argwhere(outside)[0]
            raise BadInput(
                f"Token {ids[sample, position]} at sample {sample}, position {position} is outside the "
                f"vocabulary of {self.n_tokens} (0 to {self.n_tokens - 1}): give Components its length."
            )
        return valid
