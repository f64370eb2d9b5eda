"""Where a network's attention to the source falls, word by word, on a task with gold links.

All measures are of the rows that predict a word, end marks left out. A network with several heads has a mean
over all of them beside each by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from attnlib.errors import BadInput
from attnlib.models.corpus import Batch, Corpus, evaluation_batches
from attnlib.probes.alignment_error import link_mask, words_only
from companion.data.task import Task
from companion.runs import registry
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from notebooks.shared.measure import exact_matches
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.tasks.lexicon import ADJECTIVES, TOPICS, summarise

PATTERNS = ("on_gold", "on_topics", "on_end", "entropy", "order", "reach")
STATES = ("trained", "untrained")
_BATCH = 128


def network_of(recording: Recording, state: str) -> nn.Module:
    """The ``trained`` network, or what it was before the first update (``untrained``)."""
    procedure, settings = registry.load(recording.spec.procedure), recording.spec.resolved
    if state == "trained":
        return procedure.recorded_network(recording)
    task = load_task(settings)
    source_words, target_words = len(task.source_vocabulary), len(task.target_vocabulary)
    return procedure.new_network(settings, source_words, target_words).eval()


@measure(version=1)
@torch.no_grad()
def measure_patterns(recording: Recording) -> dict:
    """What the attention to the source is like on held-out samples, and the network's quality.

    Of the mean over heads (``all``) and by layer and head: ``on_gold`` (attention on the source word of the
    word predicted), ``on_topics`` (on the words that a summary keeps), ``on_end`` (on the end mark),
    ``entropy`` (bits of a row), ``order`` (Kendall's τ of step and most attended word, pairs of steps of all
    samples pooled; 1 is left to right) and ``reach`` (the most attention that a source word ever gets);
    ``references``: the same of ``gold`` and of ``even`` attention.
    """
    settings = recording.spec.resolved
    judged, task = judged_samples(settings), load_task(settings)
    patterns: dict = {}
    for state in STATES:
        sums = StateSums()
        for batch, heads in attention_to_source(network_of(recording, state), judged):
            rows = SourceRows.of(batch, task)
            sums.add_heads(heads, rows)
            if state == "trained":
                sums.add_references(rows)
        patterns[state] = sums.by_head()
        if state == "trained":
            patterns["references"] = sums.of_references()
    n_predicted = torch.from_numpy(judged.target_lengths).sum() + len(judged)  # words and end marks
    right = recording["right"].double().sum((1, 2)) / n_predicted
    weights = [values for name, values in recording.tensors.items() if name.startswith("network.")]
    return patterns | {
        "steps": recording["steps"].tolist(),
        "token_accuracy": right.tolist(),
        "exact_match": float(exact_matches(recording, judged).mean()),
        "parameters": sum(values.numel() for values in weights),
    }


@measure(version=1)
@torch.no_grad()
def measure_pattern_agreement(recording: Recording, other: Recording, *, state: str) -> dict:
    """How much of the attention of two networks on the same sources is on the same words: Σ min(α, β).

    1 is equal, 0 without a common word. The attention is the mean over heads, of networks in this ``state``:
    ``sentence`` (of the mean over the rows of a sentence) and ``same_word`` (of the rows in which the two
    predict the same word, a topic: all that both tasks write). Raises BadInput: the sources differ.
    """
    first_samples = judged_samples(recording.spec.resolved)
    second_samples = judged_samples(other.spec.resolved)
    if not np.array_equal(first_samples.source_ids, second_samples.source_ids):
        raise BadInput("two networks are compared on the same sources; give both the same options and seed")
    of_sentences, of_same_words = [], []
    first_rows = _rows_by_source(recording, network_of(recording, state))
    second_rows = _rows_by_source(other, network_of(other, state))
    for first, second in zip(first_rows, second_rows, strict=True):
        of_sentences.append(_shared(first.attention.mean(0), second.attention.mean(0)))
        for topic in first.row_of_topic.keys() & second.row_of_topic.keys():
            of_same_words.append(_shared(first.of_topic(topic), second.of_topic(topic)))
    return {"sentence": float(np.mean(of_sentences)), "same_word": float(np.mean(of_same_words))}


@measure(version=1)
@torch.no_grad()
def measure_example(recording: Recording) -> dict:
    """Attention (mean over heads) of one held-out sentence, the same for both tasks: :func:`example_of`."""
    settings = recording.spec.resolved
    judged, task = judged_samples(settings), load_task(settings)
    chosen = example_of(judged, task.source_vocabulary.words)
    example = {
        "source": [*task.source_vocabulary.decode(judged.source(chosen)), "end"],
        "target": task.target_vocabulary.decode(judged.target(chosen)),
        "gold": sorted([target, place] for place, target in task.gold[chosen]),  # a row and a column
    }
    for state in STATES:
        ((_, heads),) = attention_to_source(network_of(recording, state), judged.subset([chosen]))
        example[state] = heads.mean((0, 1))[0, :-1].tolist()
    return example


def example_of(corpus: Corpus, words: tuple[str, ...]) -> int:
    """The sample to show: most topics, not told in the order of their importance, with adjectives; short."""

    def merits(sample: int) -> tuple[int, int, int, int]:
        sentence = [words[i] for i in corpus.source(sample)]
        _, links = summarise(sentence)
        topics = [place for place, _ in sorted(links, key=itemgetter(1))]
        is_reordered = topics != sorted(topics)
        has_adjective = any(word in ADJECTIVES for word in sentence)
        return len(topics), int(is_reordered), int(has_adjective), -len(sentence)

    return max(range(len(corpus)), key=merits)


def attention_to_source(
    network: nn.Module, corpus: Corpus
) -> Iterator[tuple[Batch, Float[Tensor, "layers heads batch target source"]]]:
    """Batches with the attention to the source by layer and head; a recurrent network has one of each."""
    for batch in evaluation_batches(corpus, _BATCH):
        trace = network(batch)
        by_layer = [attention.weights for attention in trace.layers("cross")]
        yield batch, torch.stack(by_layer).transpose(1, 2)


SourceMask = Bool[Tensor, "batch source"]
Attention = Float[Tensor, "batch target source"]


@dataclass(frozen=True, eq=False)
class SourceRows:
    """What the rows of a batch are about."""

    gold: Bool[Tensor, "batch target source"]  # the source word of the word predicted
    topics: SourceMask  # source words that a summary keeps
    target_words: Bool[Tensor, "batch target"]  # rows that predict a word, and no end mark
    source_words: SourceMask  # positions of words, without the end mark
    source_mask: SourceMask  # these and the end mark

    @classmethod
    def of(cls, batch: Batch, task: Task) -> "SourceRows":
        """The rows of a batch of the task's held-out samples."""
        topics = torch.from_numpy(task.source_vocabulary.encode(list(TOPICS)))
        links = [task.gold[i] for i in batch.indices.tolist()]
        return cls(
            gold=link_mask(links, batch.target_mask.shape[1], batch.source_mask.shape[1]),
            topics=torch.isin(batch.source, topics),
            target_words=words_only(batch.target_mask),
            source_words=words_only(batch.source_mask),
            source_mask=batch.source_mask,
        )


class StateSums:
    """Patterns of a network in one state, added up over batches: of each head, their mean, and references."""

    def __init__(self) -> None:
        self.mean = PatternSums()
        self.heads: list[list[PatternSums]] = []
        self.gold = PatternSums()
        self.even = PatternSums()

    def add_heads(self, heads: Float[Tensor, "layers heads batch target source"], rows: SourceRows) -> None:
        """Add a batch of the network's attention."""
        if not self.heads:
            self.heads = [[PatternSums() for _ in layer] for layer in heads]
        self.mean.add(heads.mean((0, 1)), rows)
        for sums_of_layer, layer in zip(self.heads, heads, strict=True):
            for sums, attention in zip(sums_of_layer, layer, strict=True):
                sums.add(attention, rows)

    def add_references(self, rows: SourceRows) -> None:
        """Add a batch of attention on gold links alone, and of uniform attention."""
        even = rows.source_mask / rows.source_mask.sum(1, keepdim=True)
        self.gold.add(rows.gold.float(), rows)
        self.even.add(even[:, None].expand_as(rows.gold), rows)

    def by_head(self) -> dict:
        """The patterns of the mean over heads, and by layer and head."""
        layers = [[sums.ratios() for sums in layer] for layer in self.heads]
        return {"all": self.mean.ratios(), "heads": layers}

    def of_references(self) -> dict[str, dict]:
        """The patterns of both references."""
        return {"gold": self.gold.ratios(), "even": self.even.ratios()}


class PatternSums:
    """Sums and counts of each of :data:`PATTERNS`, added up over batches."""

    def __init__(self) -> None:
        self.totals = dict.fromkeys(PATTERNS, 0.0)
        self.counts = dict.fromkeys(PATTERNS, 0)

    def add(self, attention: Attention, rows: SourceRows) -> None:
        """Add a batch of attention, a row a step."""
        weights = attention.double()
        on_words = weights.masked_fill(~rows.source_words[:, None], 0).sum(-1)  # (batch, target)
        self._add("on_gold", (weights * rows.gold).sum(-1)[rows.target_words])
        self._add("on_topics", (weights * rows.topics[:, None]).sum(-1)[rows.target_words])
        self._add("on_end", (weights.sum(-1) - on_words)[rows.target_words])
        bits = torch.special.entr(weights).sum(-1) / np.log(2)
        self._add("entropy", bits[rows.target_words])
        self._add("order", _moves(weights, rows))
        most = (weights * rows.target_words[:, :, None]).amax(1)  # (batch, source)
        self._add("reach", most[rows.source_words])

    def _add(self, name: str, values: Shaped[Tensor, " counted"]) -> None:
        self.totals[name] += float(values.sum())
        self.counts[name] += len(values)

    def ratios(self) -> dict[str, float | None]:
        """The mean of each pattern; None where nothing counts."""
        means: dict[str, float | None] = {}
        for name, count in self.counts.items():
            means[name] = self.totals[name] / count if count else None
        return means


def _moves(weights: Attention, rows: SourceRows) -> Int[Tensor, " pairs"]:
    """For each two steps 1 or −1 where the later one attends further right or left, else 0."""
    on_words = weights.masked_fill(~rows.source_words[:, None], -1)
    best = on_words.argmax(-1)  # (batch, target)
    steps = best.shape[1]
    later = torch.ones(steps, steps, dtype=torch.bool).triu(1)
    pairs = rows.target_words[:, :, None] & rows.target_words[:, None, :] & later
    moves = (best[:, None, :] - best[:, :, None]).sign()
    return moves[pairs]


Attention, Gold = Float[Tensor, "batch target source"], Bool[Tensor, "batch target source"]


@dataclass(frozen=True, eq=False)
class SampleRows:
    """The attention of one sample, mean over heads."""

    attention: Float[np.ndarray, "rows source"]
    row_of_topic: dict[int, int]  # by the topic's position in the source, the row that predicts it

    def of_topic(self, place: int) -> Float[np.ndarray, " source"]:
        """The row that predicts the topic at this position of the source."""
        return self.attention[self.row_of_topic[place]]


def _rows_by_source(recording: Recording, network: nn.Module) -> list[SampleRows]:
    """The rows of every sample, in order."""
    settings = recording.spec.resolved
    judged, task = judged_samples(settings), load_task(settings)
    topics = set(task.source_vocabulary.encode(list(TOPICS)).tolist())
    by_sample: dict[int, SampleRows] = {}
    for batch, heads in attention_to_source(network, judged):
        of_batch = heads.mean((0, 1)).double().numpy()  # (batch, target, source)
        for i, attention in zip(batch.indices.tolist(), of_batch, strict=True):
            source: Int[np.ndarray, " words"] = judged.source(i)
            # In the order of a set of (step, place): any other would move the last digit of the means.
            by_step = frozenset((step, place) for place, step in sorted(task.gold[i], key=itemgetter(1)))
            row_of_topic = {place: step for step, place in by_step if int(source[place]) in topics}
            n_words = len(judged.target(i))
            by_sample[i] = SampleRows(attention[:n_words, : len(source) + 1], row_of_topic)
    return [by_sample[i] for i in range(len(judged))]


def _shared(first: Float[np.ndarray, " source"], second: Float[np.ndarray, " source"]) -> float:
    return float(np.minimum(first, second).sum())
