"""Word alignment: attention against gold links, whole and by its terms; and which tokens attend by what."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.decomposition import STATE_PARTS, alignment_terms
from attnlib.decomposition.rows import centred, total_variation, valid_rows
from attnlib.decomposition.substitution import ALL_PAIRS
from attnlib.errors import BadInput
from attnlib.models.corpus import Corpus, evaluation_batches
from attnlib.models.vocabulary import BOS, EOS, UNK, Vocabulary
from attnlib.probes.alignment_error import AlignmentSums, diagonal, link_mask, words_only
from attnlib.probes.ibm_model_1 import IBMModel1
from attnlib.softmax import softmax_over
from attnlib.trace import Trace
from companion.data.task import Links, Task
from companion.results.config import Attending, Positive, check_width, setting
from companion.results.config import Task as TaskName
from companion.results.frames import Table, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.rounding import rounded
from companion.runs.columns import Column, share
from companion.runs.evaluate import evaluate, traces
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from notebooks.shared.intervals import less
from notebooks.shared.measure import fit_components
from notebooks.shared.plan import settings_of
from notebooks.shared.suite import BY_KIND, DIAL, FilesConfig, each_planned, suite_frame
from notebooks.shared.summaries import rows_of, summarise, wide

# What attention is rebuilt from: (decoder part, encoder part) pairs whose terms are summed before softmax.
SUBSETS = {
    "full": ALL_PAIRS,
    "temporal_only": frozenset({("temporal", "temporal")}),
    "input_only": frozenset({("input", "input")}),
    "no_residual": frozenset(pair for pair in ALL_PAIRS if "residual" not in pair),
    "with_residual_only": frozenset(pair for pair in ALL_PAIRS if "residual" in pair),
    **{f"only_{d}_{e}": frozenset({(d, e)}) for d in STATE_PARTS for e in STATE_PARTS},
    **{f"without_{d}_{e}": ALL_PAIRS - {(d, e)} for d in STATE_PARTS for e in STATE_PARTS},
}
# How rows become links. `words`: row s links target word s, the one predicted there, to the source word of
# the largest weight. `null`: the same, but no link where the end mark of the source has more. `read`: row
# s + 1 links target word s, which the decoder reads at that step.
RULES = ("words", "null", "read")
SHOWN = ("full", "temporal_only", "input_only", "no_residual")  # of the example sentence
EXAMPLE_WORDS = 6  # at least, on both sides: shorter sentences show no reordering
_BATCH = 128  # samples: all subsets are held at once


Attention = Float[Tensor, "batch target source"]
SourceMask = Bool[Tensor, "batch source"]


@measure(version=1)
def measure_word_alignment(
    trained: TrainedModel, fit_samples: int, judged_samples: int, iterations: int
) -> dict:
    """``by_prediction`` tells rows where the network predicts the right word from the others."""
    task = trained.task
    judged, links = with_gold(task, judged_samples)
    fitted = fit_components(trained, fit_samples)
    aligner = _aligner(task, iterations)
    rebuilt_sums = {name: LinkSums() for name in SUBSETS}
    model_1, on_diagonal = LinkSums(), LinkSums()
    right, wrong = AlignmentSums(), AlignmentSums()
    shown = _example_of(judged)
    example: dict = {}
    for trace, indices in _traces(trained, judged):
        rows = _Rows.of(trace, [links[i] for i in indices])
        decoder, encoder = fitted.split(trace)
        rebuilt = dict(zip(SUBSETS, _rebuilt(alignment_terms(decoder, encoder), trace), strict=True))
        for name, attention in rebuilt.items():
            rebuilt_sums[name].add(attention, rows, null=rows.on_end(attention))
            rebuilt_sums[name].add_read(attention, rows)
        posteriors = _posteriors(aligner, judged, indices, rows.gold.shape)
        model_1.add(posteriors, rows, null=1 - posteriors.sum(-1))
        on_diagonal.add(diagonal(rows.target, rows.source), rows, null=None)
        is_right = (trace.logits.argmax(-1) == trace.target_outputs).cpu()
        rows.only(is_right).add(rebuilt["full"], right)
        rows.only(~is_right).add(rebuilt["full"], wrong)
        if shown in indices:
            place = indices.index(shown)
            pictures = {name: rebuilt[name][place] for name in SHOWN}
            pictures["ibm_model_1"] = posteriors[place]
            example = _example(task, judged, shown, rows.gold[place], pictures)
    quality = trained.history["held_out"]
    return {
        "quality": quality | {"perplexity": math.exp(min(quality["loss"], 50.0))},
        "quality_of_judged": evaluate(trained.model, judged),
        "attention": {name: sums.qualities() for name, sums in rebuilt_sums.items()},
        "references": {
            "ibm_model_1": model_1.qualities("words", "null"),
            "diagonal": on_diagonal.qualities("words", "null"),
        },
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
    for batch in evaluation_batches(corpus, _BATCH):
        with torch.no_grad():
            trace = trained.model(batch.to(device)).to("cpu")
        yield trace, batch.indices.tolist()


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a batch, a target position each."""

    gold: Bool[Tensor, "batch target source"]
    target: Bool[Tensor, "batch target"]  # rows that count: those of words
    source: SourceMask  # positions of words
    ends: SourceMask  # the end mark of each source

    @classmethod
    def of(cls, trace: Trace, links: list[Links]) -> "_Rows":
        words = words_only(trace.source_mask)
        gold = link_mask(links, trace.target_mask.shape[1], trace.source_mask.shape[1])
        return cls(gold, words_only(trace.target_mask), words, trace.source_mask & ~words)

    def only(self, chosen: Bool[Tensor, "batch target"]) -> "_Rows":
        """Return the same with the chosen rows alone."""
        target = self.target & chosen
        return replace(self, target=target, gold=self.gold & target[:, :, None])

    def on_end(self, attention: Attention) -> Float[Tensor, "batch target"]:
        """Return what each row has on the end mark."""
        return (attention * self.ends[:, None, :]).sum(-1)

    def add(
        self, attention: Attention, sums: AlignmentSums, null: Float[Tensor, "batch target"] | None = None
    ) -> None:
        """Add what these rows of attention link."""
        sums.update(attention, self.gold, target_words=self.target, source_words=self.source, null=null)


class LinkSums:
    """What rows of attention link by each of :data:`RULES`, added up over batches."""

    def __init__(self) -> None:
        self.by_rule = {rule: AlignmentSums() for rule in RULES}

    def add(self, attention: Attention, rows: _Rows, *, null: Float[Tensor, "batch target"] | None) -> None:
        """Add rows for the word that is predicted; ``null`` is what each gives to no word."""
        rows.add(attention, self.by_rule["words"])
        rows.add(attention, self.by_rule["null"], null)

    def add_read(self, attention: Attention, rows: _Rows) -> None:
        """Add rows for the word that is read: it is the one predicted in the row before."""
        before = replace(rows, gold=rows.gold[:, :-1], target=rows.target[:, :-1])
        before.add(attention[:, 1:], self.by_rule["read"])

    def qualities(self, *rules: str) -> dict[str, dict]:
        """Return how good the links are, by rule; by all of them unless some are named."""
        return {rule: _quality(self.by_rule[rule]) for rule in rules or RULES}


def _rebuilt(
    terms: Float[Tensor, "3 3 batch target source"], trace: Trace
) -> Float[Tensor, "subset batch target source"]:
    """Attention from each subset of terms; softmax is over words and end mark, as in the network."""
    weights = torch.zeros(len(SUBSETS), 3, 3, dtype=terms.dtype)
    for place, pairs in enumerate(SUBSETS.values()):
        for decoder, encoder in pairs:
            weights[place, STATE_PARTS.index(decoder), STATE_PARTS.index(encoder)] = 1
    scores = torch.einsum("kde,debts->kbts", weights, terms)
    return softmax_over(scores.double(), trace.source_mask[:, None, :].expand(scores.shape[1:]))


def _example_of(judged: Corpus) -> int:
    """The first of the shortest targets with enough words on both sides; of the longest where none has."""
    lengths = judged.target_lengths
    is_enough = np.minimum(lengths, judged.source_lengths) >= EXAMPLE_WORDS
    if not is_enough.any():
        return int(lengths.argmax())
    candidates = np.where(is_enough, lengths, lengths.max() + 1)
    return int(candidates.argmin())


def _example(task: Task, judged: Corpus, i: int, gold: Tensor, pictures: dict[str, Tensor]) -> dict:
    source = task.source_vocabulary.decode(judged.source(i))
    target = task.target_vocabulary.decode(judged.target(i))
    words = slice(len(target)), slice(len(source))
    return {
        "source": source,
        "target": target,
        "gold": gold[words].int().tolist(),
        "attention": {
            name: rounded(picture[words].tolist(), decimals=4) for name, picture in pictures.items()
        },
    }


@cache
def _aligner(task: Task, iterations: int) -> IBMModel1:
    """IBM Model 1 of a task, fitted once a process: it is the same for every network."""
    sizes = len(task.source_vocabulary), len(task.target_vocabulary)
    return IBMModel1.fit(task.train, *sizes, iterations=iterations)


def _posteriors(aligner: IBMModel1, judged: Corpus, indices: list[int], shape: torch.Size) -> Attention:
    """Posteriors of a batch as rows of attention; what they leave is the null word's."""
    posteriors = torch.zeros(shape, dtype=torch.float64)
    for place, i in enumerate(indices):
        of_pair = torch.from_numpy(aligner.posteriors(judged.source(i), judged.target(i)))
        target, source = of_pair.shape
        posteriors[place, :target, :source] = of_pair
    return posteriors


def _quality(sums: AlignmentSums) -> dict[str, float | int | None]:
    return rounded(asdict(sums.result()), decimals=6)


# Which tokens attend by time and which by input: the temporal and the input term, token by token.

ROLES = ("predicted", "read")  # what the token is to its row of attention
SHARES = ("temporal_share", "input_share", "residual_share")
ALONE = ("temporal_only", "input_only", "no_residual", "uniform")
CLASSES = ("start mark", "function word", "content word", "punctuation", "unknown word", "word", "end mark")
# A word is a function word when its rank by frequency, punctuation not counted, is at most this: as many as
# French and English have in daily use. Some frequent nouns (in captions: man, woman) fall under it.
FUNCTION_RANK = 50
LISTED = 150  # tokens kept in each role, the most frequent ones
MIN_ROWS = 20  # rows of a token that is listed


@dataclass(frozen=True, eq=False)
class TokenSums:
    """Sums over rows of attention, by token or by class of tokens.

    Attributes:
        rows: how many rows there are.
        total: of the squares of scores.
        covariances: of the scores with each part of them, by the name of its share.
        similarities: of attention from each part of the scores with the whole one's.
    """

    rows: Float[np.ndarray, " tokens"]
    total: Float[np.ndarray, " tokens"]
    covariances: dict[str, Float[np.ndarray, " tokens"]]
    similarities: dict[str, Float[np.ndarray, " tokens"]]

    @classmethod
    def nothing(cls, tokens: int) -> "TokenSums":
        return cls(
            rows=np.zeros(tokens),
            total=np.zeros(tokens),
            covariances={name: np.zeros(tokens) for name in SHARES},
            similarities={name: np.zeros(tokens) for name in ALONE},
        )

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> "TokenSums":
        """Return what a function makes of each of the sums."""
        return TokenSums(
            rows=function(self.rows),
            total=function(self.total),
            covariances={name: function(sums) for name, sums in self.covariances.items()},
            similarities={name: function(sums) for name, sums in self.similarities.items()},
        )

    def __add__(self, other: "TokenSums") -> "TokenSums":
        return TokenSums(
            rows=self.rows + other.rows,
            total=self.total + other.total,
            covariances={name: sums + other.covariances[name] for name, sums in self.covariances.items()},
            similarities={name: sums + other.similarities[name] for name, sums in self.similarities.items()},
        )

    def summary(self, token: int) -> dict[str, float | int | None]:
        """Return the numbers of one token or class."""
        rows, total = float(self.rows[token]), float(self.total[token])
        summary: dict[str, float | int | None] = {"rows": int(rows)}
        for name, covariances in self.covariances.items():
            summary[name] = round(float(covariances[token]) / total, 4) if total > 0 else None
        for name, similarities in self.similarities.items():
            summary[name] = round(float(similarities[token]) / rows, 4)
        return summary


@measure(version=1)
def measure_token_parts(trained: TrainedModel, fit_samples: int) -> dict:
    """Over the rows of one token, each centred: share = Σ term × total / Σ total²; similarity = mean of 1 −
    total variation between the attention from that term alone and the full one."""
    task = trained.task
    fitted = fit_components(trained, fit_samples)
    n_words = len(task.target_vocabulary)
    predicted, read = TokenSums.nothing(n_words), TokenSums.nothing(n_words)
    for trace in traces(trained.model, task.held_out, batch_size=128):
        of_rows = _of_rows(alignment_terms(*fitted.split(trace)), trace)
        counted = trace.target_mask & (trace.source_mask.sum(1) >= 2)[:, None]  # (batch, target)
        predicted += of_rows.mapped(_by_word(trace.target_outputs[counted], n_words))
        read += of_rows.mapped(_by_word(trace.target_tokens[counted], n_words))
    classes = token_classes(task)
    return {
        "classes": {"predicted": _by_class(predicted, classes), "read": _by_class(read, classes)},
        "tokens": {
            "predicted": _by_token(predicted, classes, task.target_vocabulary),
            "read": _by_token(read, classes, task.target_vocabulary),
        },
        "rows": int(read.rows.sum()),
        "fitted_on": fitted.samples,
    }


def _by_word(words: Int[Tensor, " rows"], n_words: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return what adds up the numbers of rows by word."""
    return partial(_sums_by_word, words=words.cpu().numpy(), n_words=n_words)


def _sums_by_word(values: np.ndarray, *, words: np.ndarray, n_words: int) -> np.ndarray:
    return np.bincount(words, weights=values, minlength=n_words)


def _of_rows(terms: Float[Tensor, "3 3 batch target source"], trace: Trace) -> TokenSums:
    """What is summed over the rows of a token, of each row by itself."""
    rows, valid = valid_rows(terms, trace.target_mask, trace.source_mask, at_least=2)
    rows = centred(rows, valid)
    total = rows.sum((0, 1))  # (row, source)
    temporal, of_input, no_residual = rows[0, 0], rows[1, 1], rows[:2, :2].sum((0, 1))
    parts = {"temporal_share": temporal, "input_share": of_input, "residual_share": total - no_residual}
    alone = {
        "temporal_only": temporal,
        "input_only": of_input,
        "no_residual": no_residual,
        "uniform": torch.zeros_like(total),
    }
    full = softmax_over(total, valid)
    covariances = {name: (part * total).sum(-1).cpu().numpy() for name, part in parts.items()}
    similarities = {}
    for name, scores in alone.items():
        variation = total_variation(softmax_over(scores, valid), full)
        similarities[name] = (1 - variation).cpu().numpy()
    square = total.square().sum(-1).cpu().numpy()
    return TokenSums(np.ones_like(square), square, covariances, similarities)


def token_classes(task: Task) -> list[str]:
    vocabulary = task.target_vocabulary
    marks = {BOS: "start mark", EOS: "end mark", UNK: "unknown word"}
    if not vocabulary.open:
        return [marks.get(i, "word") for i in range(len(vocabulary))]
    counts = np.bincount(task.train.target_ids, minlength=len(vocabulary))
    words = [
        i for i, word in enumerate(vocabulary.words) if i not in marks and counts[i] and _is_spoken(word)
    ]
    by_frequency = sorted(words, key=lambda i: (-counts[i], vocabulary.words[i]))
    classes = ["punctuation"] * len(vocabulary)
    for rank, i in enumerate(by_frequency, 1):
        classes[i] = "function word" if rank <= FUNCTION_RANK else "content word"
    for i, name in marks.items():
        classes[i] = name
    return classes


def _is_spoken(word: str) -> bool:
    return any(character.isalnum() for character in word)


def _by_class(sums: TokenSums, classes: list[str]) -> dict[str, dict]:
    names = np.array(classes)
    summaries = {}
    for name in CLASSES:
        of_class = sums.mapped(partial(_pooled, chosen=names == name))
        if of_class.rows[0]:
            summaries[name] = of_class.summary(0)
    return summaries


def _pooled(values: np.ndarray, *, chosen: np.ndarray) -> np.ndarray:
    """Return the sum over the tokens that are chosen."""
    return np.atleast_1d(values[chosen].sum())


def _by_token(sums: TokenSums, classes: list[str], vocabulary: Vocabulary) -> dict:
    by_frequency = np.argsort(-sums.rows, kind="stable")
    tokens = [i for i in by_frequency if sums.rows[i] >= MIN_ROWS][:LISTED]
    summaries = [sums.summary(i) for i in tokens]
    columns: dict[str, list] = {
        "token": [vocabulary.words[i] for i in tokens],
        "class": [classes[i] for i in tokens],
    }
    for name in ("rows", *SHARES, *ALONE):
        columns[name] = [summary[name] for summary in summaries]
    return columns


PAIRS = tuple(f"{decoder}_{encoder}" for decoder, encoder in product(STATE_PARTS, STATE_PARTS))
QUALITIES = ("error_rate", "precision", "recall", "agreement", "mass_on_gold")
RULES_SHOWN = ("full", "temporal_only", "input_only", "no_residual", "ibm_model_1")  # judged by every rule
SHOWN_FROM = 0.01  # weights in the example that an eye can see
TEXT = "europarl_de_en"  # the one task of natural text with gold links


class Config(FilesConfig):
    """Settings; a model is a task × architecture × seed, with a GRU where it is recurrent."""

    task: tuple[TaskName, ...] = setting(
        ("reordering_50", TEXT),
        "tasks of the suite that have gold links: reordering_50, europarl_de_en, reversal, …",
    )
    tokens_of: tuple[TaskName, ...] = setting(
        ("reordering_50", "scan"), "tasks whose tokens are looked at one by one: multi30k_en_fr, scan, …"
    )
    architecture: tuple[Attending, ...] = setting(("AED", "AO"), "AED, AO")
    text_seeds: Positive | None = setting(None, "models of each kind for Europarl alone")
    text_steps: Positive | None = setting(None, "updates there, where steps is None")
    n_train: Positive | None = setting(
        None, "pairs of Europarl to train on beside those with gold links; all when None"
    )
    max_length: Positive | None = setting(
        None, "words of such a pair on either side, at most; the task's own limit when None"
    )
    judged_samples: Positive = setting(400, "samples with gold links that are judged, at most")
    iterations: Positive = setting(10, "of expectation-maximisation in IBM Model 1")
    listed: Positive = setting(60, "tokens in the table, the most frequent ones of each role")
    links: Path | None = setting(
        None,
        'a third file with word alignments of some of their lines, "0-0 1-2"; without it only'
        " tokens are looked at",
    )

    def check(self) -> None:
        self.take_files("task", "tokens_of")
        if self.source is not None and self.links is None:
            object.__setattr__(self, "task", ())  # nothing says which words belong together
        check_width(self)


PROFILES = {
    # Enough of Europarl to run through every line of this; its attention has not formed by then.
    "quick": Config(text_seeds=1, text_steps=60, n_train=1_600, max_length=12),
    "paper": Config(
        scale="paper", task=("one_to_one", "reversal", *DIAL[::2], TEXT),
        tokens_of=("reordering_50", "scan", "multi30k_en_fr", TEXT), fit_samples=10_000, judged_samples=2_000,
    ),
    "tiny": Config(
        task=("reordering_50",), tokens_of=("reordering_50",), judged_samples=30, iterations=2, seeds=1,
        width=8, steps=3, fit_samples=100,
    ),
}  # fmt: skip


def _specs(config: Config, task_names: tuple[str, ...]) -> list[ModelSpec]:
    limits = settings_of(config, "n_train", "max_length")
    options = {name: value for name, value in limits.items() if value is not None}
    of_text: dict[str, object] = {"task_options": options, "seeds": config.text_seeds}
    if steps := config.steps or config.text_steps:
        of_text["steps"] = steps
    specs: list[ModelSpec] = []
    for task, architecture in product(task_names, config.architecture):
        settings = of_text if task == TEXT else {}
        specs += each_planned(config, task, architecture, **settings)
    return specs


def measurements(config: Config) -> tuple[Measurement, ...]:
    return *_link_measurements(config), *_token_measurements(config)


def _link_measurements(config: Config) -> tuple[Measurement, ...]:
    settings = settings_of(config, "fit_samples", "judged_samples", "iterations")
    return measurements_of(_specs(config, config.task), measure_word_alignment, **settings)


def _token_measurements(config: Config) -> tuple[Measurement, ...]:
    specs = _specs(config, config.tokens_of)
    return measurements_of(specs, measure_token_parts, fit_samples=config.fit_samples)


LINKS_FROM = {
    "full": "the network's attention",
    "temporal_only": "attention rebuilt from the temporal term",
    "input_only": "attention rebuilt from the input term",
    "no_residual": "attention rebuilt from the four terms without residual",
    "with_residual_only": "attention rebuilt from the five terms with one",
    **{f"only_{pair}": f"attention rebuilt from the term {pair} alone" for pair in PAIRS},
    **{f"without_{pair}": f"attention rebuilt without the term {pair}" for pair in PAIRS},
    "ibm_model_1": "posteriors of IBM Model 1, fitted on the training samples",
    "diagonal": "the word at the same position",
}
RULE = {
    "words": "a target word is linked to the source word of the largest weight where it is predicted",
    "null": "the same, but to none where the end mark of the source has more weight",
    "read": "a target word is linked to the source word of the largest weight where it is read",
}
LINKED = {
    "links_from": Column("what is turned into links", categories=LINKS_FROM),
    "rule": Column("how a row of it becomes links", categories=RULE),
}
AGREEMENT = {
    "agreement": share("rows with a gold link whose largest entry has one"),
    "error_rate": share("alignment error rate: 0 for the gold links, 1 for none of them"),
    "gold": Column("gold links", "links", low=0),
    "made": Column("links that are made", "links", low=0),
    "mass_on_gold": share("attention on gold links, mean over rows with a gold link"),
    "precision": share("links made that are gold links"),
    "recall": share("gold links that are made"),
    "rows": Column("rows with a gold link", "rows", low=0),
}
QUALITY_OF_NETWORK = {
    "quality.token_accuracy": share("next words of held-out samples that are predicted correctly"),
    "quality.perplexity": Column("perplexity of the next word in held-out samples"),
    "quality.loss": Column("cross-entropy of the next word in held-out samples", "nats a word"),
    "quality_of_judged.token_accuracy": share("word accuracy on samples with gold links"),
    "quality_of_judged.loss": Column(
        "cross-entropy of the next word in samples with gold links", "nats a word"
    ),
}
COMPARISONS = {
    **{f"rise_without.{pair}": Column(f"error rate without the term {pair}, minus full") for pair in PAIRS},
    "better_than_ibm_model_1": Column("error rate of IBM Model 1, minus full"),
    "better_than_diagonal": Column("error rate of the diagonal, minus full"),
    "input_over_temporal": Column("agreement of input_only minus that of temporal_only", low=-1, high=1),
    "by_prediction.right": share("agreement in rows where the next word is predicted correctly"),
    "by_prediction.wrong": share("agreement in rows where it is not"),
}
GOLD = {
    "gold.trained_on": Column("training samples", "samples", low=0),
    "gold.samples": Column("samples with gold links that are judged", "samples", low=0),
    "gold.links": Column("their gold links", "links", low=0),
    "gold.target_words": Column("their target words", "words", low=0),
    "gold.source_words": Column("their source words", "words", low=0),
    "gold.unknown_target": share("their target words that are not in the vocabulary"),
    "gold.unknown_source": share("their source words that are not in the vocabulary"),
    "fitted_on": Column("training samples that components are fitted on", "samples", low=0),
}
ENTRY = {
    "links_from": LINKED["links_from"],
    "target_position": Column("target position, from 0"),
    "source_position": Column("source position, from 0"),
    "target": Column("word at the target position"),
    "source": Column("word at the source position"),
    "attention": share(f"weight of the source word; below {SHOWN_FROM} it is listed of full alone"),
    "gold": Column("1 where the two words have a gold link, else 0"),
}
ROLE = {
    "role": Column(
        "what the token is to its row of attention",
        categories={"predicted": "next word", "read": "last word"},
    )
}
ATTENDING = {
    "input_only": share("similarity of attention from the input term alone with the network's own"),
    "input_share": Column("covariance of the input term with the score, over the score's variance"),
    "no_residual": share("similarity of attention from the four terms without residual"),
    "residual_share": Column("the same share of the five terms with a residual"),
    "rows": Column("rows of attention of these tokens", "rows", low=0),
    "temporal_only": share("similarity of attention from the temporal term alone"),
    "temporal_share": Column("the same share of the temporal term"),
    "uniform": share("similarity of uniform attention"),
}
TOKEN_CLASS = {"class": Column("class of the tokens")}
TOKEN = {"token": Column("the token")} | TOKEN_CLASS | {"rows": ATTENDING["rows"]}
JUDGED = {name: ATTENDING[name] for name in (*SHARES, *ALONE)}  # of tokens


def compute(config: Config, store: Store) -> dict[str, Table]:
    """The table ``example`` has one sentence, for the first model of each kind on the last two tasks."""
    of_links, of_tokens = _link_measurements(config), _token_measurements(config)
    of_first = [measurement for measurement in of_links if measurement.spec.seed == 0]
    alignment = suite_frame(
        of_links, store, records=_links, columns=LINKED | AGREEMENT, row="a source of links of a network"
    )
    networks = suite_frame(of_links, store, records=_numbers, columns=QUALITY_OF_NETWORK | COMPARISONS | GOLD)
    example = suite_frame(
        of_first, store, records=_example_entries, columns=ENTRY, row="an entry of a matrix"
    )
    classes = suite_frame(
        of_tokens, store, records=_classes, columns=ROLE | TOKEN_CLASS | ATTENDING, row="a class of tokens"
    )
    frequent = partial(_frequent_tokens, listed=config.listed)
    tokens = suite_frame(
        of_tokens, store, records=frequent, columns=ROLE | TOKEN | JUDGED, row="a token of a network"
    )
    of_token = ["task", "architecture", "kind", *ROLE, *TOKEN]
    tokens_by_kind = wide(summarise(tokens, of_token, JUDGED), JUDGED, row="a token, over networks")
    last_two = example.query("task in @tasks", tasks=config.task[-2:])
    return {
        "alignment": alignment,
        "classes": classes,
        "tokens": tokens_by_kind.rename(n="seeds"),
        "example": last_two.select(*BY_KIND, *ENTRY),
        "networks": networks,
        "alignment_by_kind": summarise(alignment, [*BY_KIND, *LINKED], QUALITIES),
        "networks_by_kind": summarise(networks, BY_KIND, QUALITY_OF_NETWORK | COMPARISONS),
        "classes_by_kind": summarise(classes, [*BY_KIND, *ROLE, *TOKEN_CLASS], JUDGED),
    }


def _links(m: dict) -> Iterator[dict]:
    """Yield a row for each subset by the rule of the page; those of the page by every rule."""
    for source, by_rule in m["references"].items():
        for rule, links in by_rule.items():
            yield {"links_from": source, "rule": rule, **links}
    for subset in SUBSETS:
        for rule in RULES if subset in RULES_SHOWN else ("words",):
            yield {"links_from": subset, "rule": rule, **m["attention"][subset][rule]}


def _numbers(m: dict) -> dict:
    """Return the numbers of one network, its error rates as differences from that of full attention."""
    links = {source: by_rule["words"] for source, by_rule in (m["attention"] | m["references"]).items()}
    full = links["full"]["error_rate"]
    model_1, diagonal = links["ibm_model_1"]["error_rate"], links["diagonal"]["error_rate"]
    by_input, by_position = links["input_only"]["agreement"], links["temporal_only"]["agreement"]
    rise_without = {}
    for pair in PAIRS:
        rise_without[pair] = less(links[f"without_{pair}"]["error_rate"], full)
    by_prediction = {}
    for outcome, rows in m["by_prediction"].items():
        by_prediction[outcome] = rows["agreement"]
    return {
        "quality": m["quality"],
        "quality_of_judged": m["quality_of_judged"],
        "rise_without": rise_without,
        "better_than_ibm_model_1": less(model_1, full),
        "better_than_diagonal": less(diagonal, full),
        "input_over_temporal": less(by_input, by_position),
        "by_prediction": by_prediction,
        "gold": m["gold"],
        "fitted_on": m["fitted_on"],
    }


def _example_entries(m: dict) -> Iterator[dict]:
    example = m["example"]
    for source, matrix in example["attention"].items():
        for (s, t), weight in np.ndenumerate(matrix):
            if source != "full" and weight < SHOWN_FROM:
                continue
            yield {
                "links_from": source,
                "target_position": s,
                "source_position": t,
                "target": example["target"][s],
                "source": example["source"][t],
                "attention": float(weight),
                "gold": example["gold"][s][t],
            }


def _classes(m: dict) -> list[dict]:
    return rows_of(m["classes"], "role", "class")


def _frequent_tokens(m: dict, listed: int) -> Iterator[dict]:
    """Yield the most frequent tokens of each role; held-out samples are the same for every seed."""
    for role in ROLES:
        columns = m["tokens"][role]
        for place in range(min(listed, len(columns["token"]))):
            numbers = {name: column[place] for name, column in columns.items()}
            yield {"role": role, **numbers}


def values(config: Config, tables: dict[str, Table]) -> dict:
    by_rule, kind = tables["alignment_by_kind"], "{task}.{kind}."
    by_words = by_rule.query("rule == 'words'")
    rebuilt = by_words.query("links_from in @subsets", subsets=list(SUBSETS))
    references = by_words.query("links_from not in @subsets", subsets=list(SUBSETS))
    shown = by_rule.query("links_from in @shown", shown=list(RULES_SHOWN))
    first = tables["networks"].query("seed == 0")  # samples are the same for every seed
    classes = _with_key_of_class(tables["classes_by_kind"])
    first_classes = _with_key_of_class(tables["classes"].query("seed == 0"))
    class_of_role = "tokens.{task}.{kind}.classes.{role}.{class}."
    return view(
        keyed(rebuilt, kind + "attention.{links_from}.{quantity}"),
        keyed(references, kind + "references.{links_from}.{quantity}"),
        keyed(shown, kind + "rules.{rule}.{links_from}.{quantity}"),
        keyed(tables["networks_by_kind"], kind + "{quantity}"),
        keyed(first, kind + "{column}", GOLD),
        {"tokens": {}},
        keyed(classes, class_of_role + "{quantity}"),
        keyed(first_classes, class_of_role + "{column}", ["rows"]),
    )


def _with_key_of_class(table: Table) -> Table:
    """Return the table with classes as they are in keys: ``end_mark``."""
    key = table.frame["class"].replace(" ", "_", regex=True)
    return table.with_rows(table.frame.assign(**{"class": key}))
