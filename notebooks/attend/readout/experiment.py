"""Readout: which component of which path says the word, by dropping the others and retraining nothing.

    logits_s = W_D (μ + χ + Δ)^D_s + W_C Σ_t α_st (μ + χ + Δ)^E_t + b

W_D meets the decoder's state, W_C the context; the attention α_st is the network's own throughout. How the
pieces are weighed is this project's definition: the paper's available text says nothing of the readout.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

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
from companion.runs.columns import Column, share
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
    pairs = np.stack([np.concatenate(read), np.concatenate(following)])
    distinct, counts = np.unique(pairs, axis=1, return_counts=True)  # sorted by the token read, then the next
    best: dict[int, int] = {}
    most: dict[int, int] = {}
    for (token, next_token), count in zip(distinct.T.tolist(), counts.tolist(), strict=True):
        if count > most.get(token, 0):  # the first of equals has the lowest number
            most[token] = count
            best[token] = next_token
    return best


@dataclass(frozen=True, kw_only=True, eq=False)
class Dictionary:
    """The word that each token's part of the states says, and the word that it should say."""

    logits: Float[Tensor, "tokens words"]
    expected: dict[int, int]  # by token; others are not judged
    counts: Int[Tensor, " tokens"]  # how often each occurs in training
    token_names: tuple[str, ...]
    word_names: tuple[str, ...]
    outputs: Int[Tensor, " outputs"]  # words that a network may say

    def judged(self) -> dict:
        """How many words are as expected, and which words the most frequent tokens say."""
        columns = self.logits[:, self.outputs].topk(min(TOP, len(self.outputs)), dim=1).indices
        likeliest = self.outputs[columns]  # (tokens, TOP)
        return {
            "words": len(self._seen()),
            **self._accuracy(likeliest[:, 0]),
            "chance": 1 / len(self.outputs),
            "listed": [self._line(token, likeliest[token].tolist()) for token in self._most_frequent()],
        }

    def _seen(self) -> list[int]:
        return [token for token in self.expected if self.counts[token] > 0]

    def _accuracy(self, likeliest: Int[Tensor, " tokens"]) -> dict[str, float | None]:
        seen = self._seen()
        if not seen:
            return {"accuracy": None, "frequency_weighted": None}
        right = [bool(likeliest[token] == self.expected[token]) for token in seen]
        right = torch.tensor(right, dtype=torch.float64)
        weight = self.counts[seen].double()
        weighted = (right * weight).sum() / weight.sum()
        return {"accuracy": float(right.mean()), "frequency_weighted": float(weighted)}

    def _most_frequent(self) -> list[int]:
        by_count = self.counts.argsort(descending=True, stable=True).tolist()
        return [token for token in by_count if self.counts[token] > 0][:LISTED]

    def _line(self, token: int, likeliest: list[int]) -> dict:
        expected = None
        if token in self.expected:
            expected = self.word_names[self.expected[token]]
        return {
            "token": self.token_names[token],
            "count": int(self.counts[token]),
            "expected": expected,
            "top": [self.word_names[word] for word in likeliest],
        }


PATHS = ("decoder", "context")
ALL = frozenset(STATE_PARTS)
NONE: frozenset[str] = frozenset()
BATCH = 64  # samples: six tables of logits are held at once


@dataclass(frozen=True)
class Ablation:
    """The parts that are kept of the decoder's state, and of the context."""

    decoder: frozenset[str] = ALL
    context: frozenset[str] = ALL


LogitParts = Float[Tensor, "2 3 rows words"]  # path, part


def _ablations() -> dict[str, Ablation]:
    ablations = {
        "full": Ablation(),
        "context_none": Ablation(context=NONE),
        "decoder_none": Ablation(decoder=NONE),
    }
    for part in STATE_PARTS:
        alone = frozenset({part})
        others = ALL - alone
        ablations |= {
            f"context_only_{part}": Ablation(context=alone),
            f"context_without_{part}": Ablation(context=others),
            f"decoder_only_{part}": Ablation(decoder=alone),
            f"decoder_without_{part}": Ablation(decoder=others),
            f"alone_context_{part}": Ablation(decoder=NONE, context=alone),
            f"alone_decoder_{part}": Ablation(decoder=alone, context=NONE),
        }
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
    layer = OutputLayer(trained, fitted)
    task = trained.task
    outputs = torch.tensor(sorted({EOS, *np.unique(task.train.target_ids).tolist()}))
    accuracy = AblatedAccuracy(layer)
    margins = Margins(outputs)
    for trace in traces(trained.model, task.held_out, batch_size=BATCH):
        parts = layer.parts(trace)
        words = trace.target_outputs[trace.target_mask].cpu()
        accuracy.update(parts, words)
        margins.update(parts, layer.bias, words)
    return {
        "quality": trained.history["held_out"],
        "accuracy": accuracy.of_all_tokens(),
        "word_accuracy": accuracy.of_words(),
        "chance": chance(task),
        **margins.result(),
        **_dictionaries(task, layer, outputs),
    }


class OutputLayer:
    """The output layer of a network, as it reads parts of states."""

    def __init__(self, trained: TrainedModel, fitted: Fitted):
        readout = trained.model.readout
        weights = readout.weight.detach().cpu().split(trained.model.config.width, dim=1)
        self.fitted = fitted
        self.of_decoder, self.of_context = weights  # W_D, W_C: (words, width)
        self.bias = readout.bias.detach().cpu()
        self.decoder_mean = mean_state(fitted.decoder).float() @ self.of_decoder.T  # logits of the mean state
        self.context_mean = mean_state(fitted.encoder).float() @ self.of_context.T

    def parts(self, trace: Trace) -> LogitParts:
        """What each part of each path adds to the logits."""
        decoder, encoder = self.fitted.split(trace)
        states = [part[trace.target_mask] for part in decoder]
        contexts = [(trace.attention @ part)[trace.target_mask] for part in encoder]
        from_decoder = torch.stack(states).cpu() @ self.of_decoder.T
        from_context = torch.stack(contexts).cpu() @ self.of_context.T
        return torch.stack([from_decoder, from_context])

    def with_means(self, logits: Float[Tensor, "rows words"], kept: Ablation) -> Float[Tensor, "rows words"]:
        """Add the mean of the temporal parts that are dropped."""
        gone = []
        if "temporal" not in kept.decoder:
            gone.append(self.decoder_mean)
        if "temporal" not in kept.context:
            gone.append(self.context_mean)
        if not gone:
            return logits
        return logits + torch.stack(gone).sum(0)


class AblatedAccuracy:
    """How often networks without some of their parts predict the right word."""

    def __init__(self, layer: OutputLayer):
        self.layer = layer
        self.tokens = {how: dict.fromkeys(ABLATIONS, 0) for how in REPLACEMENTS}  # predicted correctly
        self.words = {how: dict.fromkeys(ABLATIONS, 0) for how in REPLACEMENTS}  # the same without end marks
        self.n_tokens = 0
        self.n_words = 0

    def update(self, parts: LogitParts, expected: Int[Tensor, " rows"]) -> None:
        is_word = expected != EOS
        self.n_tokens += len(expected)
        self.n_words += int(is_word.sum())
        for name, kept in ABLATIONS.items():
            with_zero = ablated(parts, kept) + self.layer.bias
            with_mean = self.layer.with_means(with_zero, kept)
            for how, logits in (("zero", with_zero), ("mean", with_mean)):
                hit = logits.argmax(-1) == expected
                self.tokens[how][name] += int(hit.sum())
                self.words[how][name] += int((hit & is_word).sum())

    def of_all_tokens(self) -> dict[str, dict[str, float | None]]:
        return {how: _shares_of(counts, self.n_tokens) for how, counts in self.tokens.items()}

    def of_words(self) -> dict[str, dict[str, float | None]]:
        return {how: _shares_of(counts, self.n_words) for how, counts in self.words.items()}


def mean_state(components: Components) -> Float[Tensor, " width"]:
    counts = components.position_counts.double()
    return (counts @ components.temporal / counts.sum()).cpu()


def ablated(parts: LogitParts, kept: Ablation) -> Float[Tensor, "rows words"]:
    total = torch.zeros_like(parts[0, 0])
    for path, names in zip(parts, (kept.decoder, kept.context), strict=True):
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
        bias_piece = bias[self.outputs].expand(1, *pieces.shape[1:])
        pieces = torch.cat([pieces, bias_piece])
        pieces = pieces - pieces.mean(-1, keepdim=True)
        total = pieces.sum(0)
        right = column[None, :, None].expand(7, -1, 1)
        margin = pieces.gather(-1, right)[..., 0].double()  # (7, rows)
        self.margin += margin.sum(1)
        self.product += margin @ margin.sum(0)
        self.logits += torch.stack([(piece * total).sum(dtype=torch.float64) for piece in pieces])
        self.rows += len(column)

    def result(self) -> dict[str, dict[str, float | None]]:
        total = self.margin.sum()
        covariance = self.product / self.rows - self.margin * total / self.rows**2
        return {
            "margin_share": _by_piece(self.margin / total),
            "margin_covariance": _by_piece(covariance / covariance.sum()),
            "logit_share": _by_piece(self.logits / self.logits.sum()),
            "mean_margin": plain(total / self.rows),
        }


def _by_piece(shares: Float[Tensor, " pieces"]) -> dict[str, float | None]:
    """The share of each part of each path, and of the bias."""
    names = [f"{path}_{part}" for path in PATHS for part in STATE_PARTS]
    return dict(zip([*names, "bias"], map(plain, shares), strict=True))


def chance(task: Task) -> dict[str, float]:
    """Accuracy on held-out outputs of always saying the most frequent output of training."""
    words = len(task.target_vocabulary)
    train = np.bincount(task.train.target_ids, minlength=words)
    held_out = np.bincount(task.held_out.target_ids, minlength=words)
    without_ends = _most_frequent_share(train, held_out)
    train[EOS] += len(task.train)
    held_out[EOS] += len(task.held_out)
    return {"all": _most_frequent_share(train, held_out), "words": without_ends}


def _most_frequent_share(train: Int[np.ndarray, " words"], held_out: Int[np.ndarray, " words"]) -> float:
    """The share of held-out outputs that are the most frequent one of training."""
    return plain(held_out[train.argmax()] / held_out.sum())


def _dictionaries(task: Task, layer: OutputLayer, outputs: Int[Tensor, " outputs"]) -> dict:
    encoder, decoder = layer.fitted.encoder, layer.fitted.decoder
    expected, known_from = translations(task)
    of_source = Dictionary(
        logits=encoder.input.cpu().float() @ layer.of_context.T,
        expected=expected,
        counts=encoder.token_counts.cpu(),
        token_names=task.source_vocabulary.words,
        word_names=task.target_vocabulary.words,
        outputs=outputs,
    )
    constant = layer.bias + (layer.decoder_mean + layer.context_mean)
    around_mean = replace(of_source, logits=of_source.logits + constant).judged()
    del around_mean["listed"]
    of_read = replace(
        of_source,
        logits=decoder.input.cpu().float() @ layer.of_decoder.T,
        expected=followers(task.train),
        counts=decoder.token_counts.cpu(),
        token_names=task.target_vocabulary.words,
    )
    return {
        "dictionary": of_source.judged() | {"known_from": known_from},
        "dictionary_around_mean": around_mean,
        "followers": of_read.judged(),
    }


def _shares_of(counts: dict[str, int], rows: int) -> dict[str, float | None]:
    """Counts over rows, divided in single precision."""
    n_rows = torch.tensor(float(rows))
    return {name: plain(torch.tensor(float(count)) / n_rows) for name, count in counts.items()}


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
    of = partial(suite_frame, measurements(config), store, names=NAMES)
    accuracy = of(records=_accuracy, columns=ACCURACY | DERIVED, row="a network without some of its parts")
    shares = of(records=_shares, columns=SHARE, row="a part of a network's logits")
    words = of(records=_words, columns=WORDS, row="a word")
    dictionaries = of(
        records=_dictionaries_read, columns=DICTIONARY, row="a table of words read off a network"
    )
    chances = of(records=_chance, columns=CHANCE, row="a kind of network")
    by_ablation = accuracy.rename(zero="accuracy.zero", mean="accuracy.mean", words_only="word_accuracy")
    dropped = ("accuracy.zero", "accuracy.mean", "word_accuracy", *DERIVED)
    read = ("accuracy", "frequency_weighted")
    return {
        "accuracy": accuracy.select(*NAMES, *ACCURACY),
        "shares": shares,
        "words": words.query("seed == 0"),
        "dictionaries": dictionaries,
        "chance": chances.query("seed == 0"),
        "accuracy_by_kind": summarise(by_ablation, [*BY_KIND, "ablation"], dropped),
        "shares_by_kind": summarise(shares, [*BY_KIND, "part"], SHARES),
        "dictionaries_by_kind": summarise(dictionaries, [*BY_KIND, "dictionary"], read),
    }


def _accuracy(m: dict) -> Iterator[dict]:
    zero, mean, words_only = m["accuracy"]["zero"], m["accuracy"]["mean"], m["word_accuracy"]["zero"]
    chance = m["chance"]["all"]
    for name in ABLATIONS:
        yield {
            "ablation": name,
            "chance": chance,
            "zero": zero[name],
            "mean": mean[name],
            "words_only": words_only[name],
            "above_chance": zero[name] - chance,
            "lost": zero["full"] - zero[name],
        }


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
