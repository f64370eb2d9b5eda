"""Where a network's attention to the source falls, word by word, on a task with gold links.

All measures are of the rows that predict a word, end marks left out. A network with several heads has a mean
over all of them beside each by itself.
"""

from collections.abc import Iterator
from operator import itemgetter

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.errors import BadInput
from attnlib.models.corpus import Batch, Corpus, evaluation_batches
from attnlib.probes.alignment_error import link_mask, words_only
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
    return procedure.new_network(settings, len(task.source_vocabulary), len(task.target_vocabulary)).eval()


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
    topics = torch.from_numpy(task.source_vocabulary.encode(list(TOPICS)))
    patterns: dict = {}
    for state in STATES:
        network = network_of(recording, state)
        sums: dict[str | tuple[int, ...], np.ndarray] = {}
        for batch, heads in attention_to_source(network, judged):
            gold = _gold(task.gold, batch)
            shown = {"all": heads.mean((0, 1))} | {at: heads[at] for at in np.ndindex(*heads.shape[:2])}
            if state == "trained":
                even = batch.source_mask / batch.source_mask.sum(1, keepdim=True)
                shown |= {"gold": gold.float(), "even": even[:, None].expand_as(gold)}
            where = words_only(batch.target_mask), words_only(batch.source_mask)
            for name, attention in shown.items():
                totals = pattern_sums(attention, gold, torch.isin(batch.source, topics), *where)
                sums[name] = sums.get(name, 0) + totals
        named = {name: _ratios(totals) for name, totals in sums.items()}
        layers, width = heads.shape[:2]
        by_layer = [[named[layer, head] for head in range(width)] for layer in range(layers)]
        patterns[state] = {"all": named["all"], "heads": by_layer}
        patterns.setdefault("references", {name: named[name] for name in ("gold", "even") if name in named})
    valid = torch.from_numpy(judged.target_lengths).sum() + len(judged)  # words and end marks
    right = recording["right"].double().sum((1, 2)) / valid
    return patterns | {
        "steps": recording["steps"].tolist(),
        "token_accuracy": right.tolist(),
        "exact_match": float(exact_matches(recording, judged).mean()),
        "parameters": sum(v.numel() for name, v in recording.tensors.items() if name.startswith("network.")),
    }


@measure(version=1)
@torch.no_grad()
def measure_pattern_agreement(recording: Recording, other: Recording, *, state: str) -> dict:
    """How much of the attention of two networks on the same sources is on the same words: Σ min(α, β).

    1 is equal, 0 without a common word. The attention is the mean over heads, of networks in this ``state``:
    ``sentence`` (of the mean over the rows of a sentence) and ``same_word`` (of the rows in which the two
    predict the same word, a topic: all that both tasks write). Raises BadInput: the sources differ.
    """
    corpora = [judged_samples(network.spec.resolved) for network in (recording, other)]
    if not np.array_equal(corpora[0].source_ids, corpora[1].source_ids):
        raise BadInput("two networks are compared on the same sources; give both the same options and seed")
    rows = [_rows_by_source(network, network_of(network, state)) for network in (recording, other)]
    sentence = [_shared(a.mean(0), b.mean(0)) for (a, _), (b, _) in zip(*rows, strict=True)]
    same = [
        _shared(a[first[word]], b[second[word]])
        for (a, first), (b, second) in zip(*rows, strict=True)
        for word in first.keys() & second.keys()
    ]
    return {"sentence": float(np.mean(sentence)), "same_word": float(np.mean(same))}


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
        topics = [place for place, _ in sorted(summarise(sentence)[1], key=itemgetter(1))]
        adjectives = sum(word in ADJECTIVES for word in sentence)
        return len(topics), int(topics != sorted(topics)), min(adjectives, 1), -len(sentence)

    return max(range(len(corpus)), key=merits)


def attention_to_source(
    network: nn.Module, corpus: Corpus
) -> Iterator[tuple[Batch, Float[Tensor, "layers heads batch target source"]]]:
    """Batches with the attention to the source by layer and head; a recurrent network has one of each."""
    for batch in evaluation_batches(corpus, _BATCH):
        trace = network(batch)
        by_layer = [attention.weights for attention in trace.layers("cross")]
        yield batch, torch.stack(by_layer).transpose(1, 2)


TargetMask, SourceMask = Bool[Tensor, "batch target"], Bool[Tensor, "batch source"]
Attention, Gold = Float[Tensor, "batch target source"], Bool[Tensor, "batch target source"]


def pattern_sums(
    attention: Attention, gold: Gold, topics: SourceMask, target_words: TargetMask, source_words: SourceMask
) -> Float[np.ndarray, "two patterns"]:
    """Sums and counts of :data:`PATTERNS`, to be added up over batches."""
    rows = attention.double()
    bits = torch.special.entr(rows).sum(-1) / np.log(2)
    best = rows.masked_fill(~source_words[:, None], -1).argmax(-1)
    later = torch.ones(best.shape[1], best.shape[1], dtype=torch.bool).triu(1)
    pairs = target_words[:, :, None] & target_words[:, None, :] & later
    moves = (best[:, None, :] - best[:, :, None]).sign()
    most = (rows * target_words[:, :, None]).amax(1)
    on_words = rows.masked_fill(~source_words[:, None], 0).sum(-1)
    by_row = [(rows * gold).sum(-1), (rows * topics[:, None]).sum(-1), rows.sum(-1) - on_words, bits]
    sums = [float(values[target_words].sum()) for values in by_row]
    sums += [float(moves[pairs].sum()), float(most[source_words].sum())]
    words = int(target_words.sum())
    return np.array([sums, [words] * len(by_row) + [int(pairs.sum()), int(source_words.sum())]], dtype=float)


def _ratios(sums: np.ndarray) -> dict[str, float | None]:
    return {name: float(a / n) if n else None for name, a, n in zip(PATTERNS, *sums, strict=True)}


def _gold(links: tuple, batch: Batch) -> Gold:
    chosen = [links[i] for i in batch.indices.tolist()]
    return link_mask(chosen, batch.target_mask.shape[1], batch.source_mask.shape[1])


def _rows_by_source(
    recording: Recording, network: nn.Module
) -> list[tuple[Float[np.ndarray, "rows source"], dict[int, int]]]:
    """By sample, in order: its rows of attention, and by topic (its place in the source) which row is its."""
    settings = recording.spec.resolved
    judged, task = judged_samples(settings), load_task(settings)
    topics = set(task.source_vocabulary.encode(list(TOPICS)).tolist())
    by_sample: dict[int, tuple[np.ndarray, dict[int, int]]] = {}
    for batch, heads in attention_to_source(network, judged):
        for i, rows in zip(batch.indices.tolist(), heads.mean((0, 1)).double().numpy(), strict=True):
            source: Int[np.ndarray, " words"] = judged.source(i)
            # In the order of a set of (step, place): any other would move the last digit of the means.
            by_step = frozenset((step, place) for place, step in sorted(task.gold[i], key=itemgetter(1)))
            topic_steps = {place: step for step, place in by_step if int(source[place]) in topics}
            by_sample[i] = rows[: len(judged.target(i)), : len(source) + 1], topic_steps
    return [by_sample[i] for i in range(len(judged))]


def _shared(first: Float[np.ndarray, " source"], second: Float[np.ndarray, " source"]) -> float:
    return float(np.minimum(first, second).sum())
