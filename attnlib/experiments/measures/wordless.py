"""States that a network forms without words, and how much of its temporal components they give.

A recurrent network is run on inputs that say nothing: zeros (``null``), the mean embedding of the fitting
samples (``average``), or the mean embedding at each position (``average_by_position``, which knows that a
sentence begins with its mark and ends in another). For AO the same inputs leave the position codes alone:
ĥ_t = tanh(W (x̄ + p_t) + b).
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.decomposition.components import Components
from attnlib.experiments.fitting import Fitted
from attnlib.models.recurrence import State

if TYPE_CHECKING:
    from attnlib.training.store import TrainedModel

INPUTS = ("null", "average", "average_by_position")
Curves = tuple[Float[Tensor, "source width"], Float[Tensor, "target width"]]  # encoder's, decoder's


def wordless_input(
    embedding: Float[Tensor, "tokens width"], components: Components, kind: str, length: int
) -> Float[Tensor, "length width"]:
    """The input that stands for words at every position; beyond the fitted positions the overall mean."""
    counts = components.pair_counts.to(embedding)  # (tokens, positions)
    if kind == "null":
        return torch.zeros(length, embedding.shape[1]).to(embedding)
    average = (counts.sum(1) @ embedding / counts.sum()).expand(length, -1)
    if kind == "average":
        return average
    inputs = average.clone()
    for t in range(min(length, components.n_positions)):
        if counts[:, t].any():
            inputs[t] = counts[:, t] @ embedding / counts[:, t].sum()
    return inputs


def wordless_states(trained: "TrainedModel", fitted: Fitted, kind: str) -> Curves:
    """Mean states without words at every position of the components' tables.

    The decoder starts from the encoder's last wordless state; since sentences have different lengths it is
    run from each of them, and averaged by how many fitting samples have that length and reach the position.
    """
    model, corpus = trained.model, trained.task.train.subset(np.arange(fitted.samples))
    sources, targets = corpus.source_lengths + 1, corpus.target_lengths + 1  # end marks
    with torch.inference_mode():
        inputs = wordless_input(
            model.source_embedding.weight, fitted.encoder, kind, fitted.encoder.n_positions
        )
        encoder = model.encode_inputs(inputs[None])[0][0]
        lengths = np.unique(sources)
        starts = last_states(model, inputs, lengths)
        inputs = wordless_input(
            model.target_embedding.weight, fitted.decoder, kind, fitted.decoder.n_positions
        )
        if starts is None:
            return encoder, model.decode_inputs(inputs[None], None)[0]
        states = model.decode_inputs(inputs.expand(len(lengths), -1, -1), starts)
    reached = torch.tensor(
        np.array([[(targets[sources == u] > s).sum() for s in range(len(inputs))] for u in lengths]),
        dtype=torch.float64,
    ).to(states.device)
    weight = reached / reached.sum(0).clamp(min=1)  # (lengths, target)
    return encoder, (weight[:, :, None] * states.double()).sum(0).to(states.dtype)


def last_states(model, inputs: Float[Tensor, "source width"], lengths: np.ndarray) -> State | None:
    """The state that each length of input ends in, a row a length; None for AO."""
    rows = inputs.expand(len(lengths), -1, -1)[:, : int(lengths.max())]
    return model.encode_inputs(rows, torch.from_numpy(lengths).to(inputs.device))[1]


def compared(
    curve: Float[Tensor, "positions width"],
    temporal: Float[Tensor, "positions width"],
    counts: Float[Tensor, " positions"],
) -> dict[str, float]:
    """How much of the temporal component's course a curve gives, positions weighted by their counts.

    Returns:
        ``r2`` = 1 − Σ n_t |μ_t − ĥ_t|² / Σ n_t |μ_t − μ̄|² (negative where the curve lies further off than the
        mean does); ``r2_centred``, the same after both had their mean taken off (attention does not see an
        offset of all encoder states); ``cosine`` of the centred curves. None where μ does not move.
    """
    weight = (counts.double() / counts.sum())[:, None]
    curve, temporal = curve.double(), temporal.double()
    own, other = (part - (weight * part).sum(0) for part in (temporal, curve))
    spread, theirs = float((weight * own.square()).sum()), float((weight * other.square()).sum())
    if spread == 0:
        return dict.fromkeys(("r2", "r2_centred", "cosine"))
    product = float((weight * own * other).sum())
    return {
        "r2": 1 - float((weight * (temporal - curve).square()).sum()) / spread,
        "r2_centred": 1 - float((weight * (own - other).square()).sum()) / spread,
        "cosine": product / (spread * theirs) ** 0.5 if theirs > 0 else 0.0,
    }


def plane(
    temporal: Float[Tensor, "positions width"], counts: Float[Tensor, " positions"]
) -> tuple[Float[Tensor, "width 2"], Float[Tensor, " width"]]:
    """The two main directions of the temporal components over positions, and their mean.

    The sign of each direction makes the last position's coordinate no smaller than the first's.
    """
    weight = (counts.double() / counts.sum())[:, None]
    centre = (weight * temporal.double()).sum(0)
    own = (temporal.double() - centre) * weight.sqrt()
    directions = torch.linalg.svd(own, full_matrices=False).Vh[:2].T  # (width, 2)
    along = (temporal.double() @ directions)[counts > 0]
    return directions * torch.where(along[-1] < along[0], -1.0, 1.0), centre
