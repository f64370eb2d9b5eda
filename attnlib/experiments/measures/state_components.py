"""What temporal and input components make of the states of one model: variance, and pictures of them."""

from typing import TYPE_CHECKING

import numpy as np
import torch

from attnlib.experiments.fitting import Fitted, fit_components
from attnlib.experiments.measures.planes import SIDES, Drawn, space_of
from attnlib.experiments.measures.variance import HeldOutVariance, difference
from attnlib.models.trace import Trace
from attnlib.tasks.vocabulary import Vocabulary
from attnlib.training.evaluate import traces

if TYPE_CHECKING:
    from attnlib.training.store import TrainedModel

WORDS = 24  # drawn of each side: the most frequent
SENTENCES = 40  # held-out samples whose states are drawn around their words
POINTS = 8  # of one word
RARE = 30  # positions with fewer fitting states are not drawn
DIGITS = 4  # of coordinates, in units of the states


def measure_state_components(trained: "TrainedModel", fit_samples: int) -> dict:
    """Variance explained on both sides, averages against the exact fit, and for seed 0 what figures draw.

    Components are fitted by least squares on the first ``fit_samples`` training samples and judged on the
    held-out ones, states under teacher forcing.

    Returns:
        plain JSON: ``quality``; for each side ``held_out`` and ``fitted`` (shares of variance),
        ``difference`` of averages from the exact fit, ``unseen`` (share of held-out tokens never seen in
        fitting); for seed 0 ``pictures``: see :func:`pictures`.
    """
    fitted = fit_components(trained, fit_samples, method="least_squares")
    sides = {"encoder": fitted.encoder, "decoder": fitted.decoder}
    held_out = {side: HeldOutVariance(components) for side, components in sides.items()}
    unseen, valid = dict.fromkeys(SIDES, 0), dict.fromkeys(SIDES, 0)
    for trace in traces(trained.model, trained.task.held_out):
        for side, (states, tokens, mask) in _read(trace).items():
            held_out[side].update(states, tokens, mask)
            unseen[side] += int((~sides[side].seen[tokens] & mask).sum())
            valid[side] += int(mask.sum())
    found: dict = {"quality": trained.history["held_out"], "fitted_on": fitted.samples}
    for side, components in sides.items():
        shares = components.variance_explained()
        found[side] = {
            "held_out": held_out[side].result(),
            "fitted": {
                name: getattr(shares, name)
                for name in ("temporal", "additive", "temporal_unique", "input_unique")
            },
            "difference": difference(components),
            "unseen": unseen[side] / valid[side],
        }
    if trained.spec.seed == 0:
        found["pictures"] = pictures(trained, fitted)
    return found


def _read(trace: Trace) -> dict[str, tuple]:
    return {
        "encoder": (trace.encoder_states, trace.source_tokens, trace.source_mask),
        "decoder": (trace.decoder_states, trace.target_tokens, trace.target_mask),
    }


def pictures(trained: "TrainedModel", fitted: Fitted) -> dict:
    """Coordinates of the components in three spaces of principal components, each of both sides together.

    Returns:
        ``explained`` (shares of the first three axes) by space: ``temporal`` (fitted to mu), ``input`` (to
        chi), ``together`` (to both); and for each side ``temporal`` (coordinates of mu in the first space, by
        position), ``temporal_together``, ``words`` (the most frequent), ``input``, ``input_together``, and
        ``states``: (word, x, y) of held-out states less their temporal component, in the space of chi.
    """
    drawn = {"encoder": Drawn.of(fitted.encoder), "decoder": Drawn.of(fitted.decoder)}
    both = list(drawn.values())
    spaces = {
        "temporal": space_of(both, ("temporal",)),
        "input": space_of(both, ("input",)),
        "together": space_of(both, ("temporal", "input")),
    }
    found: dict = {"explained": {name: _short(space.explained) for name, space in spaces.items()}}
    vocabularies = {"encoder": trained.task.source_vocabulary, "decoder": trained.task.target_vocabulary}
    sample = trained.task.held_out.subset(np.arange(min(SENTENCES, len(trained.task.held_out))))
    (trace,) = traces(trained.model, sample, batch_size=SENTENCES)
    for side, parts in drawn.items():
        often = torch.nonzero(parts.position_counts >= RARE)[:, 0]
        words = torch.argsort(parts.token_counts, descending=True, stable=True)[:WORDS]
        words = words[parts.token_counts[words] > 0]
        temporal, inputs = parts.temporal[often], parts.input[words]
        states = _around_words(parts, words, *_read(trace)[side])
        found[side] = {
            "positions": often.tolist(),
            "temporal": _short(spaces["temporal"].project(temporal)),
            "temporal_together": _short(spaces["together"].project(temporal)),
            "words": _shown(vocabularies[side], words),
            "input": _short(spaces["input"].project(inputs)),
            "input_together": _short(spaces["together"].project(inputs)),
            "states": [
                [word, *_short(spaces["input"].project(rows)[:, :2][index])]
                for word, rows in states
                for index in range(len(rows))
            ],
        }
    return found


def _shown(vocabulary: Vocabulary, words: torch.Tensor) -> list[str]:
    return vocabulary.decode(words.tolist())


def _around_words(parts: Drawn, words: torch.Tensor, states, tokens, mask) -> list[tuple[int, torch.Tensor]]:
    """A few held-out states of each word, less mean and temporal component: what chi is the average of."""
    rest = states.double() - (parts.mean + parts.temporal)[: states.shape[1]]
    found = []
    for index, word in enumerate(words.tolist()):
        rows = rest[mask & (tokens == word)]
        # evenly through the sample: neighbours come from one sentence
        chosen = torch.linspace(0, max(len(rows) - 1, 0), min(POINTS, len(rows))).round().long()
        found.append((index, rows[chosen]))
    return found


def _short(table: torch.Tensor) -> list:
    return np.round(table.cpu().double().numpy(), DIGITS).tolist()
