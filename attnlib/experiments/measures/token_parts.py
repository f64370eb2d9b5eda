"""Which tokens attend by time and which by input: the temporal and the input term, token by token."""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.decomposition.rows import centred, masked_softmax, total_variation, valid_rows
from attnlib.decomposition.terms import alignment_terms
from attnlib.experiments.fitting import fit_components
from attnlib.models.trace import Trace
from attnlib.tasks.task import Task
from attnlib.tasks.vocabulary import BOS, EOS, UNK, Vocabulary
from attnlib.training.evaluate import traces

if TYPE_CHECKING:
    from attnlib.training.store import TrainedModel

ROLES = ("predicted", "read")  # what the token is to its row of attention
SHARES = ("temporal_share", "input_share", "residual_share")
ALONE = ("temporal_only", "input_only", "no_residual", "uniform")
CLASSES = ("start mark", "function word", "content word", "punctuation", "unknown word", "word", "end mark")
# A row's word is a function word when its rank by frequency, punctuation not counted, is at most this. French
# and English have about this many articles, pronouns, auxiliaries and prepositions in daily use; that some
# frequent nouns (in captions: man, woman) fall under it is the price of knowing no grammar.
FUNCTION_RANK = 50
LISTED = 150  # tokens kept in each role, the most frequent ones
MIN_ROWS = 20  # rows of a token that is listed
_SUMS = ("rows", "total", *SHARES, *ALONE)


def measure_token_parts(trained: "TrainedModel", fit_samples: int) -> dict:
    """Shares and substitution test over the held-out rows of each token, and of each class of tokens.

    A row of scores is centred over its source; over the rows of one token, share of a term = sum of
    term × total / sum of total², and similarity = mean of 1 − total variation between the attention from that
    term alone and the full one. ``residual_share`` is of the five terms with a residual.

    Returns:
        plain JSON: ``classes.<role>.<class>`` and ``tokens.<role>``, the latter as columns of the
        :data:`LISTED` most frequent tokens with :data:`MIN_ROWS` rows, and ``rows`` in all.
    """
    task = trained.task
    fitted = fit_components(trained, fit_samples)
    words = len(task.target_vocabulary)
    sums = {role: np.zeros((len(_SUMS), words)) for role in ROLES}
    for trace in traces(trained.model, task.held_out, batch_size=128):
        terms = alignment_terms(*fitted.split(trace))
        values = _rows(terms, trace).cpu().numpy()  # (sums, row)
        for role, tokens in _tokens(trace).items():
            for place, row in enumerate(values):
                sums[role][place] += np.bincount(tokens, weights=row, minlength=words)
    classes = token_classes(task)
    return {
        "classes": {role: _by_class(sums[role], classes) for role in ROLES},
        "tokens": {role: _by_token(sums[role], classes, task.target_vocabulary) for role in ROLES},
        "rows": int(sums["read"][0].sum()),
        "fitted_on": fitted.samples,
    }


def _rows(terms: Float[Tensor, "3 3 batch target source"], trace: Trace) -> Float[Tensor, "sums row"]:
    """What is summed over the rows of a token, in the order of ``_SUMS``."""
    rows, valid = valid_rows(terms, trace.target_mask, trace.source_mask, at_least=2)
    rows = centred(rows, valid)
    total = rows.sum((0, 1))
    named = {
        "temporal_only": rows[0, 0],
        "input_only": rows[1, 1],
        "no_residual": rows[:2, :2].sum((0, 1)),
        "uniform": torch.zeros_like(total),
    }
    full = masked_softmax(total, valid)
    alone = [1 - total_variation(masked_softmax(named[name], valid), full) for name in ALONE]
    shares = [(term * total).sum(-1) for term in (rows[0, 0], rows[1, 1], total - named["no_residual"])]
    return torch.stack((torch.ones_like(alone[0]), total.square().sum(-1), *shares, *alone))


def _tokens(trace: Trace) -> dict[str, Int[np.ndarray, " row"]]:
    """The token that each of those rows is about, and the one that the decoder has read there."""
    keep: Bool[Tensor, "batch target"] = trace.target_mask & (trace.source_mask.sum(1) >= 2)[:, None]
    ids = {"predicted": trace.target_outputs, "read": trace.target_tokens}
    return {role: ids[role][keep].cpu().numpy() for role in ROLES}


def token_classes(task: Task) -> list[str]:
    """The class of each token of the target vocabulary: one of :data:`CLASSES`.

    Function words are told from content words by frequency among the training targets; a task with a closed
    vocabulary is no natural language, and its tokens are words.
    """
    vocabulary = task.target_vocabulary
    marks = {BOS: "start mark", EOS: "end mark", UNK: "unknown word"}
    if not vocabulary.open:
        return [marks.get(i, "word") for i in range(len(vocabulary))]
    counts = np.bincount(task.train.target_ids, minlength=len(vocabulary))
    spoken = [
        i
        for i, word in enumerate(vocabulary.words)
        if i not in marks and counts[i] and any(character.isalnum() for character in word)
    ]
    frequent = sorted(spoken, key=lambda i: (-counts[i], vocabulary.words[i]))[:FUNCTION_RANK]
    classes = ["punctuation"] * len(vocabulary)
    for group, name in ((spoken, "content word"), (frequent, "function word")):
        for i in group:
            classes[i] = name
    return [marks.get(i, name) for i, name in enumerate(classes)]


def _by_class(sums: Float[np.ndarray, "sums words"], classes: list[str]) -> dict[str, dict]:
    names = np.array(classes)
    pooled = {name: sums[:, names == name].sum(1) for name in CLASSES}
    return {name: _summary(found) for name, found in pooled.items() if found[0]}


def _by_token(
    sums: Float[np.ndarray, "sums words"], classes: list[str], vocabulary: Vocabulary
) -> dict[str, list]:
    """Columns, the most frequent token first."""
    order = [i for i in np.argsort(-sums[0], kind="stable") if sums[0, i] >= MIN_ROWS][:LISTED]
    found = [_summary(sums[:, i]) for i in order]
    columns = {name: [entry[name] for entry in found] for name in ("rows", *SHARES, *ALONE)}
    return {
        "token": [vocabulary.words[i] for i in order],
        "class": [classes[i] for i in order],
    } | columns


def _summary(sums: Float[np.ndarray, " sums"]) -> dict[str, float | int | None]:
    """Shares of the pooled covariance, and means over rows; a share of no variance is None."""
    named = dict(zip(_SUMS, sums.tolist(), strict=True))
    shares = {
        name: round(named[name] / named["total"], 4) if named["total"] > 0 else math.nan for name in SHARES
    }
    return (
        {"rows": int(named["rows"])}
        | {name: None if math.isnan(value) else value for name, value in shares.items()}
        | {name: round(named[name] / named["rows"], 4) for name in ALONE}
    )
