"""By which route a swapped word changes the attention: terms and parts of the change, and patched runs.

Between two runs a' − a is exactly the sum of what changed on either side,

    a'_st − a_st = (h'^D_s − h^D_s) · (h'^E_t + h^E_t) / 2 + (h'^D_s + h^D_s) / 2 · (h'^E_t − h^E_t) ,

and each difference of states is that of their parts. Temporal components are the same in both runs, so what
is left are the routes below. Scores are centred over the source positions of their row first, since softmax
does not see the mean.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.decomposition.parts import PART_NAMES, Parts
from attnlib.decomposition.rows import centred, total_variation, valid_rows
from attnlib.decomposition.terms import alignment_terms
from attnlib.experiments.fitting import Fitted
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.tasks.corpus import Batch

ROUTES = ("decoder_input", "decoder_residual", "encoder_input", "encoder_residual", "encoder_context")
PAIRS = tuple(f"{decoder}_{encoder}" for decoder in PART_NAMES for encoder in PART_NAMES)
# What is taken from the other run: E encoder states attended to, S the state that starts the decoder, W the
# words it reads; e_input and e_residual only that part of the encoder states, e_word and e_context all of
# them at the swapped word's position or all elsewhere.
PATCHES = ("E", "S", "W", "ES", "EW", "SW", "ESW", "e_input", "e_residual", "e_word", "e_context")
_NO_CHANGE = 1e-12
# Rows that differ by less than this (mean total variation) have no flip to take a share of.
_NO_FLIP = 0.02


@dataclass(frozen=True)
class TwoRuns:
    """Both sentences' states, and decoder states for either start and either sentence's words.

    ``decoder[start, words]`` with 0 for the first sentence and 1 for the second, cut to the steps that both
    targets have; ``rows`` are the steps valid in both.
    """

    batches: tuple[Batch, Batch]
    encoder: tuple[Float[Tensor, "batch source width"], Float[Tensor, "batch source width"]]
    decoder: dict[tuple[int, int], Float[Tensor, "batch steps width"]]
    encoder_parts: tuple[Parts, Parts]
    rows: Bool[Tensor, "batch steps"]
    position: Int[Tensor, " batch"]

    @property
    def source_mask(self) -> Bool[Tensor, "batch source"]:
        return self.batches[0].source_mask

    @property
    def at_word(self) -> Bool[Tensor, "batch source"]:
        """True at the position of the swapped word."""
        places = torch.arange(self.source_mask.shape[1], device=self.position.device)
        return places == self.position[:, None]


def run_both(
    model: EncoderDecoder, batches: tuple[Batch, Batch], position: Int[Tensor, " batch"], fitted: Fitted
) -> TwoRuns:
    """Run the network on both sentences, crossing starts and words read."""
    encoded = [model.encode(batch.source, batch.source_mask) for batch in batches]
    steps = min(batch.target_mask.shape[1] for batch in batches)
    decoder = {
        (start, words): model.decode(batches[words].target_input[:, :steps], encoded[start][1])
        for start in (0, 1)
        for words in (0, 1)
    }
    parts = tuple(
        fitted.encoder.split(states, batch.source, batch.source_mask)
        for (states, _), batch in zip(encoded, batches, strict=True)
    )
    rows = batches[0].target_mask[:, :steps] & batches[1].target_mask[:, :steps]
    return TwoRuns(batches, tuple(states for states, _ in encoded), decoder, parts, rows, position)


def decoder_parts(runs: TwoRuns, start: int, words: int, fitted: Fitted) -> Parts:
    """Parts of decoder states, by the words that were read."""
    read = runs.batches[words].target_input[:, : runs.rows.shape[1]]
    return fitted.decoder.split(runs.decoder[start, words], read, runs.rows)


def term_changes(
    first: tuple[Parts, Parts], second: tuple[Parts, Parts]
) -> Float[Tensor, "9 batch target source"]:
    """Change of each of the nine alignment terms, in the order of :data:`PAIRS`; (decoder, encoder) parts."""
    return (alignment_terms(*second) - alignment_terms(*first)).flatten(0, 1)


def route_changes(
    first: tuple[Parts, Parts], second: tuple[Parts, Parts], at_word: Bool[Tensor, "batch source"]
) -> Float[Tensor, "5 batch target source"]:
    """Change of the score by route, in the order of :data:`ROUTES`; they sum to the change of the score."""
    (d, e), (d_after, e_after) = first, second
    keys = ((e.total() + e_after.total()) / 2).transpose(1, 2)  # (batch, width, source)
    queries = (d.total() + d_after.total()) / 2
    residual = queries @ (e_after.residual - e.residual).transpose(1, 2)
    word = at_word[:, None, :]
    return torch.stack(
        [
            (d_after.input - d.input) @ keys,
            (d_after.residual - d.residual) @ keys,
            queries @ (e_after.input - e.input).transpose(1, 2),
            residual * word,
            residual * ~word,
        ]
    )


def change_shares(
    pieces: Float[Tensor, "piece batch target source"],
    rows: Bool[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
) -> tuple[list[float | None], float]:
    """Covariance share of each piece in their sum, pooled over rows, and the sum's own square.

    Shares are None where the sum does not vary along the source.
    """
    values, valid = valid_rows(pieces, rows, source_mask, at_least=2)
    values = centred(values, valid)
    total = values.sum(0)
    square = float(total.square().sum())
    if square <= _NO_CHANGE * float(values.square().sum()):
        return [None] * len(pieces), 0.0
    return ((values * total).sum((1, 2)) / square).tolist(), square


def patched_rows(model: EncoderDecoder, runs: TwoRuns) -> dict[str, Float[Tensor, "batch steps source"]]:
    """Attention of the first run (``""``) with what each of :data:`PATCHES` takes from the second."""
    first, second = runs.encoder_parts
    word = runs.at_word[:, :, None]
    states = {0: runs.encoder[0], 1: runs.encoder[1]}
    mixed = {
        "e_input": states[0] + second.input - first.input,
        "e_residual": states[0] + second.residual - first.residual,
        "e_word": torch.where(word, states[1], states[0]),
        "e_context": torch.where(word, states[0], states[1]),
    }

    def rows(encoder: Tensor, start: int, words: int) -> Tensor:
        return model.attend(runs.batches[0], encoder, runs.decoder[start, words]).attention

    whole = {
        name: rows(states["E" in name], int("S" in name), int("W" in name))
        for name in ("", *(p for p in PATCHES if p.isupper()))
    }
    return whole | {name: rows(encoder, 0, 0) for name, encoder in mixed.items()}


def flip_share(
    patched: Float[Tensor, "batch target source"],
    first: Float[Tensor, "batch target source"],
    second: Float[Tensor, "batch target source"],
    rows: Bool[Tensor, "batch target"],
) -> dict[str, float | None]:
    """How far patched rows of attention went from the first run's to the second's.

    Returns:
        ``share``: Σ (patched − first) · (second − first) / Σ |second − first|², 0 as in the first run, 1 as
        in the second; ``argmax``: of the rows whose largest weight stands elsewhere in the second run, the
        share where the patched row has it there too. None where the two runs hardly differ.
    """
    change = (second - first)[rows].double()
    gone = (patched - first)[rows].double()
    differs = len(change) > 0 and float(change.abs().sum(-1).mean()) / 2 >= _NO_FLIP
    flipped = (first.argmax(-1) != second.argmax(-1)) & rows
    right = (patched.argmax(-1) == second.argmax(-1))[flipped]
    return {
        "share": float((gone * change).sum() / change.square().sum()) if differs else None,
        "argmax": float(right.double().mean()) if len(right) else None,
    }


def moved(first: Tensor, second: Tensor, rows: Bool[Tensor, "batch target"]) -> dict[str, float]:
    """How much rows of attention differ: mean total variation, and share with another largest entry."""
    return {
        "variation": float(total_variation(first[rows], second[rows]).double().mean()),
        "flips": float((first.argmax(-1) != second.argmax(-1))[rows].double().mean()),
    }
