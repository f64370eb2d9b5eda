"""Word alignment: attention against gold links, whole and by its terms; and which tokens attend by what."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
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


Attention, Gold = Float[Tensor, "batch target source"], Bool[Tensor, "batch target source"]
TargetMask, SourceMask = Bool[Tensor, "batch target"], Bool[Tensor, "batch source"]


@measure(version=1)
def measure_word_alignment(
    trained: TrainedModel, fit_samples: int, judged_samples: int, iterations: int
) -> dict:
    """``by_prediction`` tells rows where the network predicts the right word from the others."""
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
        references["ibm_model_1"]["words"].update(posteriors, rows.gold, **rows.words)
        references["ibm_model_1"]["null"].update(posteriors, rows.gold, **rows.words, null=null)
        for rule in references["diagonal"].values():
            rule.update(diagonal(rows.target, rows.source), rows.gold, **rows.words)
        hit = (trace.logits.argmax(-1) == trace.target_outputs).cpu()
        for outcome, where in ((right, hit), (wrong, ~hit)):
            chosen = rows.target & where
            gold = rows.gold & chosen[:, :, None]
            outcome.update(rebuilt["full"], gold, target_words=chosen, source_words=rows.source)
        if shown in indices:
            place = indices.index(shown)
            pictures = {name: rebuilt[name][place] for name in SHOWN} | {"ibm_model_1": posteriors[place]}
            example = _example(task, judged, shown, rows.gold[place], pictures)
    everything = trained.history["held_out"]
    return {
        "quality": everything | {"perplexity": math.exp(min(everything["loss"], 50.0))},
        "quality_of_judged": evaluate(trained.model, judged),
        "attention": {
            name: {rule: _quality(counts) for rule, counts in of.items()} for name, of in sums.items()
        },
        "references": {
            n: {rule: _quality(counts) for rule, counts in of.items()} for n, of in references.items()
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
    gold: Gold
    target: TargetMask
    source: SourceMask
    ends: SourceMask  # the end mark of each source

    @classmethod
    def of(cls, trace: Trace, links: list[Links]) -> "_Rows":
        words = words_only(trace.source_mask)
        gold = link_mask(links, trace.target_mask.shape[1], trace.source_mask.shape[1])
        return cls(gold, words_only(trace.target_mask), words, trace.source_mask & ~words)

    def add(self, attention: Attention, sums: dict[str, AlignmentSums]) -> None:
        null = (attention * self.ends[:, None, :]).sum(-1)
        sums["words"].update(attention, self.gold, **self.words)
        sums["null"].update(attention, self.gold, **self.words, null=null)
        sums["read"].update(
            attention[:, 1:], self.gold[:, :-1], target_words=self.target[:, :-1], source_words=self.source
        )

    @property
    def words(self) -> dict[str, Tensor]:
        """Where there are words, by side, as :meth:`AlignmentSums.update` takes it."""
        return {"target_words": self.target, "source_words": self.source}


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
        of_pair = torch.from_numpy(aligner.posteriors(judged.source(i), judged.target(i)))
        posteriors[place, : of_pair.shape[0], : of_pair.shape[1]] = of_pair
    return posteriors, 1 - posteriors.sum(-1)


def _quality(sums: AlignmentSums) -> dict[str, float | int | None]:
    def in_short(value: float) -> float | int | None:
        if isinstance(value, int):
            return value
        return None if math.isnan(value) else round(value, 6)

    return {name: in_short(value) for name, value in asdict(sums.result()).items()}


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
_SUMS = ("rows", "total", *SHARES, *ALONE)


@measure(version=1)
def measure_token_parts(trained: TrainedModel, fit_samples: int) -> dict:
    """Over the rows of one token, each centred: share = Σ term × total / Σ total²; similarity = mean of 1 −
    total variation between the attention from that term alone and the full one."""
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
    full = softmax_over(total, valid)
    alone = [1 - total_variation(softmax_over(named[name], valid), full) for name in ALONE]
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
    return {name: _summary(of_class) for name, of_class in pooled.items() if of_class[0]}


def _by_token(sums: Float[np.ndarray, "sums words"], classes: list[str], vocabulary: Vocabulary) -> dict:
    order = [i for i in np.argsort(-sums[0], kind="stable") if sums[0, i] >= MIN_ROWS][:LISTED]
    summaries = [_summary(sums[:, i]) for i in order]
    columns = {name: [entry[name] for entry in summaries] for name in ("rows", *SHARES, *ALONE)}
    return {"token": [vocabulary.words[i] for i in order], "class": [classes[i] for i in order]} | columns


def _summary(sums: Float[np.ndarray, " sums"]) -> dict[str, float | int | None]:
    totals = dict(zip(_SUMS, sums.tolist(), strict=True))
    shares = {
        name: round(totals[name] / totals["total"], 4) if totals["total"] > 0 else math.nan for name in SHARES
    }
    return (
        {"rows": int(totals["rows"])}
        | {name: None if math.isnan(value) else value for name, value in shares.items()}
        | {name: round(totals[name] / totals["rows"], 4) for name in ALONE}
    )


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
    options = {
        n: value for n, value in settings_of(config, "n_train", "max_length").items() if value is not None
    }
    of_text: dict[str, object] = {"task_options": options, "seeds": config.text_seeds}
    if steps := config.steps or config.text_steps:
        of_text["steps"] = steps
    kinds = product(task_names, config.architecture)
    return [s for kind in kinds for s in each_planned(config, *kind, **(of_text if kind[0] == TEXT else {}))]


def measurements(config: Config) -> tuple[Measurement, ...]:
    return sum(_measurements(config), ())


def _measurements(config: Config) -> tuple[tuple[Measurement, ...], tuple[Measurement, ...]]:
    links, tokens = _specs(config, config.task), _specs(config, config.tokens_of)
    settings = settings_of(config, "fit_samples", "judged_samples", "iterations")
    return (
        measurements_of(links, measure_word_alignment, **settings),
        measurements_of(tokens, measure_token_parts, fit_samples=config.fit_samples),
    )


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
    of_links, of_tokens = _measurements(config)
    alignment = suite_frame(
        of_links, store, records=_links, columns=LINKED | AGREEMENT, row="a source of links of a network"
    )
    networks = suite_frame(of_links, store, records=_numbers, columns=QUALITY_OF_NETWORK | COMPARISONS | GOLD)
    example = suite_frame(
        [measurement for measurement in of_links if measurement.spec.seed == 0],
        store,
        records=_example_entries,
        columns=ENTRY,
        row="an entry of a matrix",
    )
    classes = suite_frame(
        of_tokens, store, records=_classes, columns=ROLE | TOKEN_CLASS | ATTENDING, row="a class of tokens"
    )
    tokens = suite_frame(
        of_tokens,
        store,
        records=partial(_frequent_tokens, listed=config.listed),
        columns=ROLE | TOKEN | JUDGED,
        row="a token of a network",
    )
    of_token = ["task", "architecture", "kind", *ROLE, *TOKEN]
    tokens_by_kind = wide(summarise(tokens, of_token, JUDGED), JUDGED, row="a token, over networks")
    return {
        "alignment": alignment,
        "classes": classes,
        "tokens": tokens_by_kind.rename(n="seeds"),
        "example": example.query("task in @tasks", tasks=config.task[-2:]).select(*BY_KIND, *ENTRY),
        "networks": networks,
        "alignment_by_kind": summarise(alignment, [*BY_KIND, *LINKED], QUALITIES),
        "networks_by_kind": summarise(networks, BY_KIND, QUALITY_OF_NETWORK | COMPARISONS),
        "classes_by_kind": summarise(classes, [*BY_KIND, *ROLE, *TOKEN_CLASS], JUDGED),
    }


def _links(m: dict) -> list[dict]:
    """Return a row for each subset by the rule of the page; those of the page by every rule."""
    references = [(source, rule) for source, by_rule in m["references"].items() for rule in by_rule]
    rebuilt = [
        (subset, rule) for subset in SUBSETS for rule in RULES if rule == "words" or subset in RULES_SHOWN
    ]
    links = m["references"] | m["attention"]
    return [
        {"links_from": source, "rule": rule} | links[source][rule] for source, rule in references + rebuilt
    ]


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


def _example_entries(m: dict) -> list[dict]:
    example = m["example"]
    return [
        {"links_from": source, "target_position": s, "source_position": t}
        | {"target": example["target"][s], "source": example["source"][t]}
        | {"attention": float(weight), "gold": example["gold"][s][t]}
        for source, matrix in example["attention"].items()
        for (s, t), weight in np.ndenumerate(matrix)
        if source == "full" or weight >= SHOWN_FROM
    ]


def _classes(m: dict) -> list[dict]:
    return rows_of(m["classes"], "role", "class")


def _frequent_tokens(m: dict, listed: int) -> list[dict]:
    """Return the most frequent tokens of each role; held-out samples are the same for every seed."""
    rows = []
    for role in ROLES:
        columns = m["tokens"][role]
        for place in range(min(listed, len(columns["token"]))):
            rows.append({"role": role} | {name: numbers[place] for name, numbers in columns.items()})
    return rows


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
