"""What a score costs, which decoder state asks, and what an encoder state knows of the words around it."""

import math

import numpy as np
import torch
from torch import nn

from attnlib.errors import BadInput
from attnlib.models.sequence_to_sequence import SequenceToSequence
from attnlib.probes.alignment_error import gold_links
from attnlib.training.corpus import Corpus, evaluation_batches
from attnlib.training.vocabulary import EOS, MARKS, PAD, Vocabulary
from companion.data.parallel import TextOptions, read_translation, tokenise_pairs
from companion.runs import registry
from companion.runs.procedure import Recording
from notebooks.shared.bleu import corpus_bleu
from notebooks.shared.measure import probe_bits
from notebooks.shared.sequence_course import judged_samples, load_task

_BATCH = 256
OFFSETS = (-2, -1, 0, 1, 2)  # words read off a state: two before its own to two after
# Tasks whose sentences can be made of one length, and the options that say which.
SIZES = {"reordering": ("min_phrases", "max_phrases"), "number_words": ("min_digits", "max_digits")}
READABLE = {"reordering": 2, "number_words": 5}  # the sizes that make five words, so that all offsets exist


def _network(recording: Recording) -> "SequenceToSequence":
    return registry.load(recording.spec.procedure).recorded_network(recording)


def sample_products(network: SequenceToSequence, source: int, target: int) -> dict[str, int]:
    """Multiplications for one sample of so many steps, end marks included, under teacher forcing."""
    config = network.config
    found = {
        "encoder": source * _weights(network.encoder),
        "decoder": target * _weights(network.decoder),
        "score": 0,
        "context": 0,
        "output": target * network.readout.weight.numel(),
    }
    if hasattr(network, "start_map"):
        found["decoder"] += config.layers * network.start_map.weight.numel()
    if hasattr(network, "summary_map"):
        found["decoder"] += network.summary_map.weight.numel()
    if config.attends:
        found["score"] = network.score.products(target, source)
        found["context"] = target * source * config.encoder_width
    if hasattr(network, "attentional_map"):
        found["output"] += target * network.attentional_map.weight.numel()
    return found


def _weights(layer: nn.RNNBase) -> int:
    """Entries of its matrices: each is multiplied once a step, in both directions."""
    return sum(p.numel() for name, p in layer.named_parameters() if name.startswith("weight"))


def measure_cost(recording: Recording) -> dict:
    """Parameters, and multiplications for one sample of mean length, end marks included."""
    network, judged = _network(recording), judged_samples(recording.spec.resolved)
    steps = [round(float(own.mean())) + 1 for own in (judged.source_lengths, judged.target_lengths)]
    products = sample_products(network, *steps)
    sizes = {name: value.numel() for name, value in network.named_parameters()}
    return products | {
        "parameters": sum(sizes.values()),
        "score_parameters": sum(size for name, size in sizes.items() if name.startswith("score.")),
        "source": steps[0],
        "target": steps[1],
        "rest": sum(products.values()) - products["score"],
    }


@torch.no_grad()
def measure_asking_state(recording: Recording) -> dict:
    """Whether the scores are those of the ``present`` decoder state or of the ``previous`` one.

    Root mean square of the scores less those that this state would give, over their standard deviation.
    """
    network, judged = _network(recording), judged_samples(recording.spec.resolved)
    gold = load_task(recording.spec.resolved).gold
    off, scores, weights = {"present": 0.0, "previous": 0.0}, [], []
    for batch in evaluation_batches(judged, _BATCH):
        trace = network(batch)
        first = network.encode(batch.source, batch.source_mask)[1].hidden[:, -1:]
        states = {
            "present": trace.decoder_states,
            "previous": torch.cat([first, trace.decoder_states[:, :-1]], dim=1),
        }
        valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
        for name, asking in states.items():
            apart = network.score(asking, trace.encoder_states) - trace.scores
            off[name] += float(apart[valid].double().square().sum())
        scores.append(trace.scores[valid].double())
        if gold is not None:
            links = gold_links([gold[i] for i in batch.indices.tolist()], *valid.shape[1:])
            weights.append((trace.attention * links).sum(-1)[links.any(-1)])
    every = torch.cat(scores)
    scale = float(every.std(correction=0)) * math.sqrt(len(every))
    found = {name: math.sqrt(total) / scale for name, total in off.items()}
    return found | {"weight_on_gold": float(torch.cat(weights).mean()) if weights else None}


@torch.no_grad()
def measure_context_of_states(recording: Recording, *, size: int, samples: int) -> dict:
    """Bits about the words around it that a linear softmax reads off the state of the word in the middle.

    Sentences of one length are drawn anew, ``samples`` to fit the probe on and half as many to judge it on.
    Bits are over what the frequency of words at the same place tells.
    """
    settings, network = recording.spec.resolved, _network(recording)
    drawn = {"n_train": samples, "n_held_out": max(1, samples // 2), "seed": 1 + settings.seed}
    options = dict(settings.task_options) | dict.fromkeys(SIZES[settings.task], size) | drawn
    task = load_task(type(settings)(task=settings.task, options=tuple(options.items())))
    (states, words), (others, judged) = (_middle(network, part) for part in (task.train, task.held_out))
    vocabulary = len(task.source_vocabulary) - len(MARKS)
    read = probe_bits(states, words, others, judged, words=vocabulary)
    counts = torch.stack([torch.bincount(column, minlength=vocabulary) for column in words.T]) + 1.0
    known = counts.div(counts.sum(1, keepdim=True)).log2().gather(1, judged.T).mean(1) + math.log2(vocabulary)
    return {"offsets": list(OFFSETS), "bits": (read - known).tolist()}


def _middle(network: "SequenceToSequence", corpus: Corpus) -> tuple[torch.Tensor, torch.Tensor]:
    length = int(corpus.source_lengths[0])
    middle = length // 2
    words = torch.from_numpy(corpus.source_ids.reshape(-1, length).astype(np.int64)) - len(MARKS)
    states = torch.empty(len(corpus), network.config.encoder_width)
    for batch in evaluation_batches(corpus, _BATCH):
        states[batch.indices] = network.encode(batch.source, batch.source_mask)[0].states[:, middle]
    return states, words[:, [middle + offset for offset in OFFSETS]]


def measure_bleu(recording: Recording) -> dict:
    """BLEU of what the network writes against the words of the references; ``<unk>`` matches nothing."""
    settings = recording.spec.resolved
    task, judged = load_task(settings), judged_samples(settings)
    given = dict(settings.task_options)
    options = TextOptions(max_length=given.get("max_length"), lowercase=given.get("lowercase", True))
    sides = tuple(zip(*read_translation(settings.task).validation, strict=True))
    references = [target for _, target in tokenise_pairs(sides, options)][: len(judged)]
    known = (task.target_vocabulary.encode(words) for words in references)
    if len(references) < len(judged) or any(
        not np.array_equal(ids, judged.target(i)) for i, ids in enumerate(known)
    ):
        raise BadInput(
            f"the first {len(judged)} held-out samples of {settings.task} are not its validation "
            f"sentences, of which there are {len(references)}; judge no more than these"
        )
    written = [
        _in_words(row[(row != PAD) & (row != EOS)], task.target_vocabulary)
        for row in recording["written"].numpy()
    ]
    bleu, signature = corpus_bleu(written, [" ".join(words) for words in references])
    return {"bleu": bleu, "signature": signature, "sentences": len(references)}


def _in_words(ids: np.ndarray, vocabulary: Vocabulary) -> str:
    words = vocabulary.decode(ids)
    return " ".join("UNK" if word in MARKS else word for word in words)  # sacreBLEU would split the brackets
