"""Attention against gold word alignments, whole and rebuilt from some of the nine alignment terms."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.decomposition import PART_NAMES, alignment_terms
from attnlib.decomposition.substitution import ALL_PAIRS, centred, masked_softmax, total_variation, valid_rows
from attnlib.errors import BadInput
from attnlib.models.trace import Trace
from attnlib.probes.alignment_error import AlignmentSums, diagonal, gold_links, words_only
from attnlib.probes.ibm_model_1 import IBMModel1
from attnlib.training.corpus import Corpus, Links, Task, evaluation_batches
from attnlib.training.evaluate import evaluate, traces
from attnlib.training.vocabulary import BOS, EOS, UNK, Vocabulary
from companion.runs.store import TrainedModel
from notebooks.shared.measure import fit_components

# What attention is rebuilt from: (decoder part, encoder part) pairs whose terms are summed before softmax.
SUBSETS = {
    "full": ALL_PAIRS,
    "temporal_only": frozenset({("temporal", "temporal")}),
    "input_only": frozenset({("input", "input")}),
    "no_residual": frozenset(pair for pair in ALL_PAIRS if "residual" not in pair),
    "with_residual_only": frozenset(pair for pair in ALL_PAIRS if "residual" in pair),
    **{f"only_{d}_{e}": frozenset({(d, e)}) for d in PART_NAMES for e in PART_NAMES},
    **{f"without_{d}_{e}": ALL_PAIRS - {(d, e)} for d in PART_NAMES for e in PART_NAMES},
}
# How rows become links. `words`: row s links target word s, the one predicted there, to the source word of
# the largest weight. `null`: the same, but no link where the end mark of the source has more. `read`: row
# s + 1 links target word s, which the decoder reads at that step.
RULES = ("words", "null", "read")
SHOWN = ("full", "temporal_only", "input_only", "no_residual")  # of the example sentence
EXAMPLE_WORDS = 6  # at least, on both sides: shorter sentences show no reordering
_BATCH = 128  # samples: all subsets are held at once


Attention, Gold = Float[Tensor, "batch target source"], Bool[Tensor, "batch target source"]
TargetMask, SourceMask = Bool[Tensor, "batch target"], Bool[Tensor, "batch source"]


def measure_word_alignment(
    trained: TrainedModel, fit_samples: int, judged_samples: int, iterations: int
) -> dict:
    """Links of attention against gold ones, beside IBM Model 1 (fitted on the same pairs) and the diagonal.

    ``by_prediction`` tells rows where the network predicts the right word from the others.
    """
    task = trained.task
    judged, links = with_gold(task, judged_samples)
    fitted = fit_components(trained, fit_samples)
    sums = {name: {rule: AlignmentSums() for rule in RULES} for name in SUBSETS}
    references = {name: {rule: AlignmentSums() for rule in RULES[:2]} for name in ("ibm_model_1", "diagonal")}
    aligner = _aligner(task, iterations)
    right, wrong = AlignmentSums(), AlignmentSums()
    shown = _example_of(judged)
    example: dict = {}
    for trace, indices in _traces(trained, judged):
        rows = _Rows.of(trace, [links[i] for i in indices])
        decoder, encoder = fitted.split(trace)
        rebuilt = dict(zip(SUBSETS, _rebuilt(alignment_terms(decoder, encoder), trace), strict=True))
        for name, attention in rebuilt.items():
            rows.add(attention, sums[name])
        posteriors, null = _posteriors(aligner, judged, indices, rows.gold.shape)
        references["ibm_model_1"]["words"].update(posteriors, rows.gold, rows.target, rows.source)
        references["ibm_model_1"]["null"].update(posteriors, rows.gold, rows.target, rows.source, null)
        for rule in references["diagonal"].values():
            rule.update(diagonal(rows.target, rows.source), rows.gold, rows.target, rows.source)
        hit = (trace.logits.argmax(-1) == trace.target_outputs).cpu()
        for outcome, where in ((right, hit), (wrong, ~hit)):
            chosen = rows.target & where
            outcome.update(rebuilt["full"], rows.gold & chosen[:, :, None], chosen, rows.source)
        if shown in indices:
            place = indices.index(shown)
            pictures = {name: rebuilt[name][place] for name in SHOWN} | {"ibm_model_1": posteriors[place]}
            example = _example(task, judged, shown, rows.gold[place], pictures)
    everything = trained.history["held_out"]
    return {
        "quality": everything | {"perplexity": math.exp(min(everything["loss"], 50.0))},
        "quality_of_judged": evaluate(trained.model, judged),
        "attention": {name: {rule: _quality(own) for rule, own in of.items()} for name, of in sums.items()},
        "references": {n: {rule: _quality(own) for rule, own in of.items()} for n, of in references.items()},
        "log_likelihood": [round(value, 3) for value in aligner.log_likelihood],
        "by_prediction": {"right": _quality(right), "wrong": _quality(wrong)},
        "example": example,
        "gold": {
            "trained_on": len(task.train),
            "samples": len(judged),
            "links": sum(map(len, links)),
            "target_words": len(judged.target_ids),
            "source_words": len(judged.source_ids),
            "unknown_target": float((judged.target_ids == UNK).mean()),
            "unknown_source": float((judged.source_ids == UNK).mean()),
        },
        "fitted_on": fitted.samples,
    }


def with_gold(task: Task, samples: int) -> tuple[Corpus, tuple[Links, ...]]:
    if not task.gold:
        raise BadInput(f"task {task.name!r} has no gold links; some that have: reordering_N, europarl_de_en")
    links = task.gold[:samples]
    return task.held_out.subset(np.arange(len(links))), links


def _traces(trained: TrainedModel, corpus: Corpus) -> Iterator[tuple[Trace, list[int]]]:
    device = trained.model.readout.weight.device
    with torch.inference_mode():
        for batch in evaluation_batches(corpus, _BATCH):
            yield trained.model(batch.to(device)).to("cpu"), batch.indices.tolist()


@dataclass(frozen=True)
class _Rows:
    gold: Gold
    target: TargetMask
    source: SourceMask
    ends: SourceMask  # the end mark of each source

    @classmethod
    def of(cls, trace: Trace, links: list[Links]) -> "_Rows":
        words = words_only(trace.source_mask)
        gold = gold_links(links, trace.target_mask.shape[1], trace.source_mask.shape[1])
        return cls(gold, words_only(trace.target_mask), words, trace.source_mask & ~words)

    def add(self, attention: Attention, sums: dict[str, AlignmentSums]) -> None:
        sums["words"].update(attention, self.gold, self.target, self.source)
        null = (attention * self.ends[:, None, :]).sum(-1)
        sums["null"].update(attention, self.gold, self.target, self.source, null)
        sums["read"].update(attention[:, 1:], self.gold[:, :-1], self.target[:, :-1], self.source)


def _rebuilt(
    terms: Float[Tensor, "3 3 batch target source"], trace: Trace
) -> Float[Tensor, "subset batch target source"]:
    """Attention from each subset of terms; softmax is over words and end mark, as in the network."""
    weights = torch.zeros(len(SUBSETS), 3, 3, dtype=terms.dtype)
    for place, pairs in enumerate(SUBSETS.values()):
        for decoder, encoder in pairs:
            weights[place, PART_NAMES.index(decoder), PART_NAMES.index(encoder)] = 1
    scores = torch.einsum("kde,debts->kbts", weights, terms)
    return masked_softmax(scores.double(), trace.source_mask[:, None, :].expand(scores.shape[1:]))


def _example_of(judged: Corpus) -> int:
    """The first of the shortest targets with enough words on both sides; of the longest where none has."""
    lengths = judged.target_lengths
    enough = np.minimum(lengths, judged.source_lengths) >= EXAMPLE_WORDS
    return int(np.where(enough, lengths, lengths.max() + 1).argmin() if enough.any() else lengths.argmax())


def _example(task: Task, judged: Corpus, i: int, gold: Tensor, pictures: dict[str, Tensor]) -> dict:
    source = task.source_vocabulary.decode(judged.source(i))
    target = task.target_vocabulary.decode(judged.target(i))
    words = slice(len(target)), slice(len(source))
    return {
        "source": source,
        "target": target,
        "gold": gold[words].int().tolist(),
        "attention": {
            name: [[round(weight, 4) for weight in row] for row in picture[words].tolist()]
            for name, picture in pictures.items()
        },
    }


@cache
def _aligner(task: Task, iterations: int) -> IBMModel1:
    """IBM Model 1 of a task, fitted once a process: it is the same for every network."""
    sizes = len(task.source_vocabulary), len(task.target_vocabulary)
    return IBMModel1.fit(task.train, *sizes, iterations=iterations)


def _posteriors(
    aligner: IBMModel1, judged: Corpus, indices: list[int], shape: torch.Size
) -> tuple[Attention, Float[Tensor, "batch target"]]:
    """Posteriors of a batch as rows of attention, and what is left for the null word."""
    posteriors = torch.zeros(shape, dtype=torch.float64)
    for place, i in enumerate(indices):
        found = torch.from_numpy(aligner.posteriors(judged.source(i), judged.target(i)))
        posteriors[place, : found.shape[0], : found.shape[1]] = found
    return posteriors, 1 - posteriors.sum(-1)


def _quality(sums: AlignmentSums) -> dict[str, float | int | None]:
    found = asdict(sums.result())
    return {
        name: value if isinstance(value, int) else None if math.isnan(value) else round(value, 6)
        for name, value in found.items()
    }


# Which tokens attend by time and which by input: the temporal and the input term, token by token.

ROLES = ("predicted", "read")  # what the token is to its row of attention
SHARES = ("temporal_share", "input_share", "residual_share")
ALONE = ("temporal_only", "input_only", "no_residual", "uniform")
CLASSES = ("start mark", "function word", "content word", "punctuation", "unknown word", "word", "end mark")
# A row's word is a function word when its rank by frequency, punctuation not counted, is at most this. French
# and English have about this many in daily use; that some frequent nouns (in captions: man, woman) fall under
# it is the price of knowing no grammar.
FUNCTION_RANK = 50
LISTED = 150  # tokens kept in each role, the most frequent ones
MIN_ROWS = 20  # rows of a token that is listed
_SUMS = ("rows", "total", *SHARES, *ALONE)


def measure_token_parts(trained: TrainedModel, fit_samples: int) -> dict:
    """Shares and substitution test over the held-out rows of each token, and of each class of tokens.

    Over the rows of one token, each centred: share = Σ term × total / Σ total²; similarity = mean of 1 −
    total variation between the attention from that term alone and the full one.
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
    keep: Bool[Tensor, "batch target"] = trace.target_mask & (trace.source_mask.sum(1) >= 2)[:, None]
    ids = {"predicted": trace.target_outputs, "read": trace.target_tokens}
    return {role: ids[role][keep].cpu().numpy() for role in ROLES}


def token_classes(task: Task) -> list[str]:
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


def _by_token(sums: Float[np.ndarray, "sums words"], classes: list[str], vocabulary: Vocabulary) -> dict:
    order = [i for i in np.argsort(-sums[0], kind="stable") if sums[0, i] >= MIN_ROWS][:LISTED]
    found = [_summary(sums[:, i]) for i in order]
    columns = {name: [entry[name] for entry in found] for name in ("rows", *SHARES, *ALONE)}
    return {"token": [vocabulary.words[i] for i in order], "class": [classes[i] for i in order]} | columns


def _summary(sums: Float[np.ndarray, " sums"]) -> dict[str, float | int | None]:
    own = dict(zip(_SUMS, sums.tolist(), strict=True))
    shares = {name: round(own[name] / own["total"], 4) if own["total"] > 0 else math.nan for name in SHARES}
    return (
        {"rows": int(own["rows"])}
        | {name: None if math.isnan(value) else value for name, value in shares.items()}
        | {name: round(own[name] / own["rows"], 4) for name in ALONE}
    )
