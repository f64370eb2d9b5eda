"""What one vector of a published network holds: words written from it, letters read from it, their sum."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from companion.runs.procedure import Recording
from notebooks.beyond.others_vector.published_speller import (
    ALPHABET,
    LETTERS,
    STOP,
    Speller,
    recorded_network,
)
from notebooks.shared.unrolled import UnrolledComponents

FOLDS = 5
FIRST = LETTERS.index(ALPHABET[0])
RIDGE = 1e-3  # of the mean variance of a unit: enough to solve, too little to be seen


@torch.no_grad()
def measure_vector(recording: Recording, *, letters: int) -> dict:
    """``written``: by word, its letters and whether all sounds are right; the rest of words of one length.

    By fold, fitted on the other words: ``sum``, the part of the vector's variance that a sum over the letters
    explains, ``of_place`` and ``unique``, what each place has in the fitted sum; ``read``, letters that a
    linear map reads rightly at each place; ``common``, the same by each place's most common letter.
    """
    network = recorded_network(recording)
    words, sounds = recording["letters"], recording["sounds"]
    lengths, right = (words >= 0).sum(1), torch.zeros(len(words), dtype=torch.bool)
    for length in lengths.unique().tolist():
        own = lengths == length
        right[own] = written_rightly(network, words[own, :length], sounds[own])
    own = lengths == letters + 1
    vector, spelt = network.vector(words[own, : letters + 1]), words[own, :letters] - FIRST
    folds = [_fold(vector, spelt, torch.arange(len(spelt)) % FOLDS == fold) for fold in range(FOLDS)]
    written = {"letters": (lengths - 1).tolist(), "right": right.int().tolist()}
    return {"written": written, "words": len(spelt), "folds": folds}


def written_rightly(
    network: Speller, words: Int[Tensor, "batch letters"], sounds: Int[Tensor, "batch sounds"]
) -> Bool[Tensor, " batch"]:
    """Whether every sound is the dictionary's, the end mark included."""
    written = network.writes(network.vector(words))
    most = min(written.shape[1], sounds.shape[1])
    wanted = sounds[:, :most]
    ended = (sounds == STOP).int().argmax(1) < most
    return ended & ((written[:, :most] == wanted) | (wanted < 0)).all(1)


def _fold(vector: Float[Tensor, "words width"], spelt: Int[Tensor, "words letters"], judged: Tensor) -> dict:
    unrolled = UnrolledComponents(len(ALPHABET), spelt.shape[1], vector.shape[1])
    unrolled.update(spelt[~judged], vector[~judged])
    parts = unrolled.variance_explained()
    common = spelt[~judged].mode(0).values
    return {
        "sum": unrolled.r_squared(spelt[judged], vector[judged]),
        "of_place": list(parts.of_position),
        "unique": list(parts.unique),
        "read": _read_off(vector, spelt, judged),
        "common": (spelt[judged] == common).double().mean(0).tolist(),
    }


def _read_off(
    vector: Float[Tensor, "words width"], spelt: Int[Tensor, "words letters"], judged: Tensor
) -> list:
    """Letters read rightly at each place by ridge regression on one-hot letters; the largest value counts."""
    states = vector.double()
    states = torch.cat([states - states[~judged].mean(0), torch.ones(len(states), 1, dtype=torch.float64)], 1)
    known = states[~judged]
    square = known.T @ known
    square += RIDGE * square.diagonal().mean() * torch.eye(len(square), dtype=square.dtype)
    wanted = torch.nn.functional.one_hot(spelt, len(ALPHABET)).double().flatten(1)
    guess = states[judged] @ torch.linalg.solve(square, known.T @ wanted[~judged])
    best = guess.view(len(guess), spelt.shape[1], -1).argmax(-1)
    return (best == spelt[judged]).double().mean(0).tolist()
