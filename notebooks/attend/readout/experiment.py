"""Readout: which component of which path says the word, by dropping the others and retraining nothing.

    logits_s = W_D (μ + χ + Δ)^D_s + W_C Σ_t α_st (μ + χ + Δ)^E_t + b

W_D meets the decoder's state, W_C the context; the attention α_st is the network's own throughout. How the
pieces are weighed is this project's definition: the paper's available text says nothing of the readout.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.decomposition.components import STATE_PARTS, Components
from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import BOS, EOS
from attnlib.trace import Trace
from companion.data.task import Task
from companion.results.config import Task as TaskName
from companion.results.frames import Table, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column, Columns, share
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.store import Store, TrainedModel
from notebooks.shared.measure import Fitted, fit_components, plain
from notebooks.shared.suite import BY_KIND, DIAL, SUITE, SuiteConfig, model_specs, suite_frame
from notebooks.shared.summaries import summarise
from notebooks.shared.translations import translations

LISTED = 40  # the most frequent words, which a table can show
TOP = 3  # words listed for each


def followers(corpus: Corpus) -> dict[int, int]:
    """For each token a decoder reads, begin mark included, the one that most often comes next."""
    read, following = [], []
    for i in range(len(corpus)):
        words = corpus.target(i)
        read += [[BOS], words]
        following += [words, [EOS]]
    both, seen = np.unique(
        np.stack([np.concatenate(read), np.concatenate(following)]), axis=1, return_counts=True
    )
    best: dict[int, tuple[int, int]] = {}
    for (v, w), n in zip(both.T.tolist(), seen.tolist(), strict=True):
        best[v] = max(best.get(v, (n, -w)), (n, -w))
    return {v: -w for v, (_, w) in best.items()}


Logits, Counts, Outputs = Float[Tensor, "tokens words"], Int[Tensor, " tokens"], Int[Tensor, " outputs"]


def judged(
    logits: Logits, expected: dict[int, int], counts: Counts, outputs: Outputs, names: tuple[tuple, tuple]
) -> dict:
    token_names, word_names = names
    best = outputs[logits[:, outputs].topk(min(TOP, len(outputs)), dim=1).indices]  # (tokens, TOP)
    seen = [token for token in expected if counts[token] > 0]
    right = torch.tensor([bool(best[token, 0] == expected[token]) for token in seen], dtype=torch.float64)
    weight = counts[seen].double() if seen else torch.zeros(0, dtype=torch.float64)
    frequent = [token for token in counts.argsort(descending=True, stable=True).tolist() if counts[token] > 0]
    return {
        "words": len(seen),
        "accuracy": float(right.mean()) if seen else None,
        "frequency_weighted": float((right * weight).sum() / weight.sum()) if seen else None,
        "chance": 1 / len(outputs),
        "listed": [
            {
                "token": token_names[token],
                "count": int(counts[token]),
                "expected": word_names[expected[token]] if token in expected else None,
                "top": [word_names[word] for word in best[token].tolist()],
            }
            for token in frequent[:LISTED]
        ],
    }


PATHS = ("decoder", "context")
ALL = frozenset(STATE_PARTS)
NONE: frozenset[str] = frozenset()
BATCH = 64  # samples: six tables of logits are held at once

Ablation = tuple[frozenset[str], frozenset[str]]  # parts kept of the decoder's path, and of the context
LogitParts = Float[Tensor, "2 3 rows words"]  # path, part


def _ablations() -> dict[str, Ablation]:
    ablations: dict = {"full": (ALL, ALL), "context_none": (ALL, NONE), "decoder_none": (NONE, ALL)}
    for part in STATE_PARTS:
        alone, others = frozenset({part}), ALL - {part}
        ablations |= {f"context_only_{part}": (ALL, alone), f"context_without_{part}": (ALL, others)}
        ablations |= {f"decoder_only_{part}": (alone, ALL), f"decoder_without_{part}": (others, ALL)}
        ablations |= {f"alone_context_{part}": (NONE, alone), f"alone_decoder_{part}": (alone, NONE)}
    return ablations


ABLATIONS = _ablations()
REPLACEMENTS = ("zero", "mean")  # what stands in for a part that is dropped


@measure(version=1)
def measure_readout(trained: TrainedModel, fit_samples: int) -> dict:
    """Parts are dropped for zero or for their mean; the means of χ and Δ are 0, so the two differ for μ
    alone. The dictionaries are W_C χ^E, the same around the mean states and the bias, and for ``followers``
    W_D χ^D.
    """
    fitted = fit_components(trained, fit_samples)
    task, readout = trained.task, trained.model.readout
    outputs = torch.tensor(sorted({EOS, *np.unique(task.train.target_ids).tolist()}))
    # W_D, W_C: (words, width)
    weights = readout.weight.detach().cpu().split(trained.model.config.width, dim=1)
    bias = readout.bias.detach().cpu()
    means = torch.stack(
        [mean_state(side).float() @ weight.T for side, weight in zip(_sides(fitted), weights, strict=True)]
    )  # (path, words)
    right = {(how, name): torch.zeros(2) for how in REPLACEMENTS for name in ABLATIONS}
    rows, margins = torch.zeros(2), Margins(outputs)
    for trace in traces(trained.model, task.held_out, batch_size=BATCH):
        parts = logit_parts(fitted, trace, weights)
        words = trace.target_outputs[trace.target_mask].cpu()
        is_word = words != EOS
        rows += torch.tensor([len(words), float(is_word.sum())])
        for name, kept in ABLATIONS.items():
            logits = ablated(parts, kept) + bias
            for how in REPLACEMENTS:
                if how == "mean":
                    gone = [i for i in range(2) if "temporal" not in kept[i]]
                    logits = logits + means[gone].sum(0) if gone else logits
                hit = logits.argmax(-1) == words
                right[how, name] += torch.tensor([float(hit.sum()), float((hit & is_word).sum())])
        margins.update(parts, bias, words)
    return {
        "quality": trained.history["held_out"],
        "accuracy": _nested(right, rows, 0),
        "word_accuracy": _nested(right, rows, 1),
        "chance": chance(task),
        **margins.result(),
        **_dictionaries(task, fitted, weights, bias + means.sum(0), outputs),
    }


def _sides(fitted: Fitted) -> tuple[Components, Components]:
    return fitted.decoder, fitted.encoder


def mean_state(components: Components) -> Float[Tensor, " width"]:
    counts = components.position_counts.double()
    return (counts @ components.temporal / counts.sum()).cpu()


def logit_parts(fitted: Fitted, trace: Trace, weights: tuple[Tensor, Tensor]) -> LogitParts:
    decoder, encoder = fitted.split(trace)
    states = [part[trace.target_mask] for part in decoder]
    context = [(trace.attention @ part)[trace.target_mask] for part in encoder]
    return torch.stack([torch.stack(states).cpu() @ weights[0].T, torch.stack(context).cpu() @ weights[1].T])


def ablated(parts: LogitParts, kept: Ablation) -> Float[Tensor, "rows words"]:
    total = torch.zeros_like(parts[0, 0])
    for path, names in zip(parts, kept, strict=True):
        for part, name in zip(path, STATE_PARTS, strict=True):
            if name in names:
                total += part
    return total


class Margins:
    """Of l_p[y], a part's logit of the right word less its mean: ``margin_share`` Σ l_p[y] / Σ l[y] and
    ``margin_covariance`` cov(l_p[y], l[y]) / var(l[y]) over rows; ``logit_share`` Σ l_p · l / Σ l · l."""

    def __init__(self, outputs: Int[Tensor, " outputs"]):
        self.outputs = outputs
        self.place = {int(word): i for i, word in enumerate(outputs)}
        self.margin = torch.zeros(7, dtype=torch.float64)
        self.product = torch.zeros(7, dtype=torch.float64)
        self.logits = torch.zeros(7, dtype=torch.float64)
        self.rows = 0

    def update(self, parts: LogitParts, bias: Tensor, words: Int[Tensor, " rows"]) -> None:
        known = torch.isin(words, self.outputs)
        column = torch.tensor([self.place[word] for word in words[known].tolist()], dtype=torch.int64)
        pieces = parts.flatten(0, 1)[:, known][..., self.outputs]  # (6, rows, outputs)
        pieces = torch.cat([pieces, bias[self.outputs].expand(1, *pieces.shape[1:])])
        pieces = pieces - pieces.mean(-1, keepdim=True)
        total = pieces.sum(0)
        margin = pieces.gather(-1, column[None, :, None].expand(7, -1, 1))[..., 0].double()  # (7, rows)
        self.margin += margin.sum(1)
        self.product += margin @ margin.sum(0)
        self.logits += torch.stack([(piece * total).sum(dtype=torch.float64) for piece in pieces])
        self.rows += len(column)

    def result(self) -> dict[str, dict[str, float | None]]:
        total = self.margin.sum()
        covariance = self.product / self.rows - self.margin * total / self.rows**2
        names = [*(f"{path}_{part}" for path in PATHS for part in STATE_PARTS), "bias"]
        shares = {
            "margin_share": self.margin / total,
            "margin_covariance": covariance / covariance.sum(),
            "logit_share": self.logits / self.logits.sum(),
        }
        named_shares = {
            kind: dict(zip(names, map(plain, share), strict=True)) for kind, share in shares.items()
        }
        return named_shares | {"mean_margin": plain(total / self.rows)}


def chance(task: Task) -> dict[str, float]:
    """Accuracy on held-out outputs of always saying the most frequent output of training."""
    shares = {}
    for name, ends in (("all", 1), ("words", 0)):
        counts = np.bincount(task.train.target_ids, minlength=len(task.target_vocabulary))
        counts[EOS] += ends * len(task.train)
        judged_on = np.bincount(task.held_out.target_ids, minlength=len(counts))
        judged_on[EOS] += ends * len(task.held_out)
        shares[name] = plain(judged_on[counts.argmax()] / judged_on.sum())
    return shares


def _dictionaries(task: Task, fitted: Fitted, weights, constant: Tensor, outputs: Tensor) -> dict:
    expected, known_from = translations(task)
    words = task.source_vocabulary.words, task.target_vocabulary.words
    of_source = fitted.encoder.input.cpu().float() @ weights[1].T
    of_read = fitted.decoder.input.cpu().float() @ weights[0].T
    counts = fitted.encoder.token_counts.cpu()
    alone = judged(of_source, expected, counts, outputs, words)
    around_mean = judged(of_source + constant, expected, counts, outputs, words)
    read = (task.target_vocabulary.words, words[1])
    follow = judged(of_read, followers(task.train), fitted.decoder.token_counts.cpu(), outputs, read)
    return {
        "dictionary": alone | {"known_from": known_from},
        "dictionary_around_mean": {key: value for key, value in around_mean.items() if key != "listed"},
        "followers": follow,
    }


def _nested(right: dict, rows: Tensor, column: int) -> dict:
    return {how: {n: plain(right[how, n][column] / rows[column]) for n in ABLATIONS} for how in REPLACEMENTS}


SHARES = ("margin_share", "margin_covariance", "logit_share")
DICTIONARIES = ("dictionary", "dictionary_around_mean", "followers")


class Config(SuiteConfig):
    """Settings of the task suite, on fewer tasks; VED has no context to read out."""

    task: tuple[TaskName, ...] = ("one_to_one", "reordering_50", "scan")


PAPER_TASKS = ("one_to_one", "reversal", *DIAL[2::2], "scan", "scan_extended", "multi30k_en_fr")
PROFILES = {
    "quick": Config(),
    "paper": Config(scale="paper", task=PAPER_TASKS, fit_samples=25_000),
    "tiny": Config(task=("one_to_one",), seeds=1, width=8, steps=3, fit_samples=100),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    return measurements_of(model_specs(config), measure_readout, fit_samples=config.fit_samples)


NAMES = {name: SUITE[name] for name in (*BY_KIND, "seed")}
ACCURACY = {
    "ablation": Column("what is kept of decoder states and of the context: full, one part, or all others"),
    "chance": share("next words that are the most frequent word of training"),
    "zero": share("word accuracy with dropped parts at zero"),
    "mean": share("word accuracy with dropped parts at their mean"),
    "words_only": share("the same with dropped parts at zero, without end tokens"),
}
DERIVED = {
    "above_chance": Column("accuracy with dropped parts at zero, minus the most frequent word's"),
    "lost": Column("accuracy of the whole network, minus that with dropped parts at zero"),
}
SHARE = {
    "part": Column("decoder or context, and which part of it; bias is that of the output layer"),
    "margin_share": Column("part of the correct word's logit, its mean taken off, that this part gives"),
    "margin_covariance": Column("covariance of this part's margin with the whole margin, over its variance"),
    "logit_share": Column("product of this part's logits with all logits, over that of all logits"),
}
WORDS = {
    "table": Column("dictionary: words of the source; followers: words that the decoder reads"),
    "count": Column("how often the word occurs in training", "times", low=0),
    "expected": Column("its translation, or the word that most often follows"),
    "token": Column("the word"),
    "top": Column("words with the largest logits from its input component, the largest first"),
}
DICTIONARY = {
    "dictionary": Column("table of words, read around zero or around the mean states"),
    "accuracy": share("words whose largest logit is the expected word"),
    "frequency_weighted": share("the same, each word counted as often as it occurs"),
    "chance": share("one over the number of target words"),
    "words": Column("words that have an expected word", "words", low=0),
}
CHANCE = {
    "chance": share("held-out words that are the most frequent word of training"),
    "chance_words": share("the same without end tokens"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    def of(records: Callable[[dict], object], columns: Columns, row: str) -> Table:
        return suite_frame(
            measurements(config), store, records=records, columns=columns, names=NAMES, row=row
        )

    accuracy = of(_accuracy, ACCURACY | DERIVED, "a network without some of its parts")
    shares = of(_shares, SHARE, "a part of a network's logits")
    dictionaries = of(_dictionaries_read, DICTIONARY, "a table of words read off a network")
    by_ablation = accuracy.rename(zero="accuracy.zero", mean="accuracy.mean", words_only="word_accuracy")
    dropped = ("accuracy.zero", "accuracy.mean", "word_accuracy", *DERIVED)
    return {
        "accuracy": accuracy.select(*NAMES, *ACCURACY),
        "shares": shares,
        "words": of(_words, WORDS, "a word").query("seed == 0"),
        "dictionaries": dictionaries,
        "chance": of(_chance, CHANCE, "a kind of network").query("seed == 0"),
        "accuracy_by_kind": summarise(by_ablation, [*BY_KIND, "ablation"], dropped),
        "shares_by_kind": summarise(shares, [*BY_KIND, "part"], SHARES),
        "dictionaries_by_kind": summarise(
            dictionaries, [*BY_KIND, "dictionary"], ("accuracy", "frequency_weighted")
        ),
    }


def _accuracy(m: dict) -> list[dict]:
    zero, mean, chance = m["accuracy"]["zero"], m["accuracy"]["mean"], m["chance"]["all"]
    return [
        {"ablation": name, "chance": chance, "zero": zero[name], "mean": mean[name]}
        | {"words_only": m["word_accuracy"]["zero"][name]}
        | {"above_chance": zero[name] - chance, "lost": zero["full"] - zero[name]}
        for name in ABLATIONS
    ]


def _shares(m: dict) -> list[dict]:
    return [{"part": part} | {name: m[name][part] for name in SHARES} for part in m[SHARES[0]]]


def _words(m: dict) -> list[dict]:
    return [
        {**word, "table": table, "top": " ".join(word["top"])}
        for table in ("dictionary", "followers")
        for word in m[table]["listed"]
    ]


def _dictionaries_read(m: dict) -> list[dict]:
    return [{"dictionary": name} | m[name] for name in DICTIONARIES]


def _chance(m: dict) -> dict:
    return {"chance": m["chance"]["all"], "chance_words": m["chance"]["words"]}


def values(config: Config, tables: dict[str, Table]) -> dict:
    dictionary = "{task}.{kind}.{dictionary}."
    return view(
        keyed(tables["accuracy_by_kind"], "{task}.{kind}.{quantity}.{ablation}"),
        keyed(tables["shares_by_kind"], "{task}.{kind}.{quantity}.{part}"),
        keyed(tables["dictionaries_by_kind"], dictionary + "{quantity}"),
        keyed(tables["dictionaries"].query("seed == 0"), dictionary + "{column}", ("chance", "words")),
        keyed(tables["chance"], "{task}.{kind}.{column}", CHANCE),
    )
