"""What the experiments on attention ask of one trained model, computed once and kept beside it."""

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attnlib.decomposition.by_sample import covariance_shares_by_sample, similarity_by_sample
from attnlib.decomposition.parts import PART_NAMES
from attnlib.decomposition.shares import ShareSums
from attnlib.decomposition.substitution import SUBSETS, SubstitutionSums
from attnlib.decomposition.terms import alignment_terms
from attnlib.decomposition.typicality import AttentionCells
from attnlib.experiments.fitting import fit_components
from attnlib.models.trace import Trace
from attnlib.statistics.spearman import stratified_spearman
from attnlib.tasks.corpus import Corpus
from attnlib.training.evaluate import traces

if TYPE_CHECKING:  # keeps what finds and caches models out of the hash of what computes
    from attnlib.training.store import TrainedModel

EXAMPLES = 2  # single samples kept of the most frequent cell
ACROSS_SAMPLES = ("temporal_share", "input_share", "temporal_only", "input_only")


def measure_alignment_terms(trained: "TrainedModel", fit_samples: int) -> dict:
    """Shares, substitution test and typicality of one model with attention.

    Components are fitted on training samples (the first ``fit_samples``) and judged on the held-out ones.

    Returns:
        plain JSON: ``quality``, ``data`` (checksums of the files read), ``typicality``, ``near_diagonal``
        (attention mass within one position of the
        diagonal), ``covariance_share`` and ``mean_absolute_share`` by ``<decoder part>_<encoder part>``,
        ``substitution`` by subset, ``across_samples`` (rank correlation of a sample's typicality with its own
        shares, among samples of the same lengths), ``unseen`` (share of held-out tokens never seen in
        fitting), and the most frequent ``cell`` with its average matrix and example samples.
    """
    task = trained.task
    fitted = fit_components(trained, fit_samples)
    shares, substitution, cells = ShareSums(), SubstitutionSums(), AttentionCells()
    near, rows = 0.0, 0
    unseen, valid = {"encoder": 0, "decoder": 0}, {"encoder": 0, "decoder": 0}
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    samples: dict[str, list[Tensor]] = {name: [] for name in ACROSS_SAMPLES}
    lengths: list[tuple[int, int]] = []
    for trace in traces(trained.model, task.held_out):
        parts = dict(zip(("decoder", "encoder"), fitted.split(trace), strict=True))
        for side, split in parts.items():
            unseen[side] += split.unseen_tokens
            valid[side] += split.valid
        terms = alignment_terms(parts["decoder"], parts["encoder"])
        shares.update(terms, trace.target_mask, trace.source_mask)
        substitution.update(terms, trace.target_mask, trace.source_mask)
        cells.update(trace.attention, trace.target_mask, trace.source_mask)
        near += float(_near_diagonal(trace)[trace.target_mask].sum())
        rows += int(trace.target_mask.sum())
        seen.append((trace.attention.cpu(), trace.target_mask.cpu(), trace.source_mask.cpu()))
        for name, values in _by_sample(terms, trace).items():
            samples[name].append(values)
        lengths += zip(trace.source_mask.sum(1).tolist(), trace.target_mask.sum(1).tolist(), strict=True)
    typicality = cells.result(torch.cat([cells.judge(*batch) for batch in seen]))
    found = shares.result()
    return {
        "quality": trained.history["held_out"],
        "data": task.checksums,
        "typicality": {k: v for k, v in asdict(typicality).items() if k != "per_sample"},
        "near_diagonal": near / rows,
        "covariance_share": _by_pair(found.covariance),
        "mean_absolute_share": _by_pair(found.mean_absolute),
        "substitution": {
            name: {"similarity": outcome.similarity, "argmax_agreement": outcome.argmax_agreement}
            for name, outcome in substitution.result().items()
        },
        "across_samples": {
            name: _across_samples(typicality.per_sample, torch.cat(values), lengths)
            for name, values in samples.items()
        },
        "unseen": {side: unseen[side] / valid[side] for side in unseen},
        "fitted_on": fitted.samples,
        "cell": _frequent_cell(trained, cells),
    }


def _by_sample(terms: Tensor, trace: Trace) -> dict[str, Tensor]:
    """Shares of single samples and what a term alone rebuilds of them, each (batch,)."""
    masks = (trace.target_mask, trace.source_mask)
    shares = covariance_shares_by_sample(terms, *masks)
    return {
        "temporal_share": shares[:, 0, 0],
        "input_share": shares[:, 1, 1],
        "temporal_only": similarity_by_sample(terms, *masks, SUBSETS["temporal_only"]),
        "input_only": similarity_by_sample(terms, *masks, SUBSETS["input_only"]),
    }


def _across_samples(typicality: Tensor, values: Tensor, lengths: list[tuple[int, int]]) -> float | None:
    """Rank correlation within cells of equal lengths; None where it does not exist."""
    defined = ~(typicality.isnan() | values.isnan())
    strata = [cell for cell, is_defined in zip(lengths, defined.tolist(), strict=True) if is_defined]
    found = stratified_spearman(typicality[defined].numpy(), values[defined].numpy(), strata)
    return None if math.isnan(found) else found


def _by_pair(matrix: Tensor) -> dict[str, float]:
    """A (decoder part, encoder part) matrix by name, say ``temporal_input``."""
    pairs = ((i, j) for i in range(3) for j in range(3))
    return {f"{PART_NAMES[i]}_{PART_NAMES[j]}": float(matrix[i, j]) for i, j in pairs}


def _near_diagonal(trace: Trace) -> Tensor:
    """Attention mass within one position of the straight line from first to last, (batch, target)."""
    columns, lines = trace.source_mask.sum(1), trace.target_mask.sum(1)
    step = torch.arange(trace.attention.shape[1], device=columns.device)
    slope = (columns - 1) / (lines - 1).clamp(min=1)
    middle = step[None, :] * slope[:, None]  # (batch, target)
    position = torch.arange(trace.attention.shape[2], device=columns.device)
    close = (position[None, None, :] - middle[:, :, None]).abs() <= 1
    return (trace.attention * close).sum(-1)


def _frequent_cell(trained: "TrainedModel", cells: AttentionCells) -> dict:
    """The cell of held-out samples with most members: its average matrix, and its first samples in full."""
    (source, target), samples = max(cells.counts.items(), key=lambda item: (item[1], item[0]))
    corpus = trained.task.held_out
    members = np.flatnonzero((corpus.source_lengths == source - 1) & (corpus.target_lengths == target - 1))
    examples = corpus.subset(members[:EXAMPLES])
    return {
        "source_length": source,
        "target_length": target,
        "samples": samples,
        "average": cells.average_attention((source, target)).tolist(),
        "examples": list(_examples(trained, examples)),
    }


def _examples(trained: "TrainedModel", corpus: Corpus) -> Iterable[dict]:
    task = trained.task
    for trace in traces(trained.model, corpus):
        for sample in range(len(trace.attention)):
            yield {
                "source": task.source_vocabulary.decode(trace.source_tokens[sample].tolist()),
                "predicted": task.target_vocabulary.decode(trace.target_outputs[sample].tolist()),
                "attention": trace.attention[sample].tolist(),
            }
