"""Quality of a recorded network by length of the sentence, and the bits that it keeps of each word."""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from attnlib.probes.softmax_probe import probe_bits
from attnlib.recipes import registry
from attnlib.recipes.sequence_course import judged_samples, load_task
from attnlib.tasks.corpus import evaluation_batches
from attnlib.tasks.vocabulary import EOS, MARKS, PAD

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording
    from attnlib.tasks.corpus import Corpus

_BATCH = 256
_OF_ALL = 4  # at most one sentence in so many of a length is kept to judge the probe on


def measure_by_length(recording: "Recording") -> dict:
    """Quality on held-out samples by length of the target, end marks left out.

    Under teacher forcing, the information about the word at a place is log2 of the vocabulary, words drawn
    evenly, less the cross-entropy of the network. Summed over a sentence whose words are independent it is a
    lower bound on the information that reaches the decoder.

    Returns:
        lists by length: ``lengths``, ``samples``, ``token_accuracy`` (teacher-forced), ``exact_match`` (of
        what the network writes on its own), ``bits`` (of a sentence), ``bits_of_word`` (of a word);
        ``vocabulary``, ``parameters``.
    """
    judged = judged_samples(recording.spec.resolved)
    words = len(load_task(recording.spec.resolved).target_vocabulary) - len(MARKS)
    lengths = judged.target_lengths
    right, loss = recording["right"][-1].double().numpy(), recording["loss"][-1].double().numpy()
    exact = exact_matches(recording, judged)
    found: dict[str, list] = {
        name: [] for name in ("lengths", "samples", "token_accuracy", "exact_match", "bits", "bits_of_word")
    }
    for length in np.unique(lengths).tolist():
        chosen = lengths == length
        gained = math.log2(words) - loss[chosen, :length] / math.log(2)
        row = (length, int(chosen.sum()), right[chosen, :length].mean(), exact[chosen].mean())
        for name, value in zip(found, (*row, gained.sum(1).mean(), gained.mean()), strict=True):
            found[name].append(float(value) if isinstance(value, np.floating) else value)
    parameters = sum(v.numel() for name, v in recording.tensors.items() if name.startswith("network."))
    return found | {"vocabulary": words, "parameters": parameters}


def exact_matches(recording: "Recording", judged: "Corpus") -> np.ndarray:
    """By sample: whether the network writes the target, its end mark included, on its own."""
    written = recording["written"].numpy()
    targets = (np.append(judged.target(i), EOS) for i in range(len(judged)))
    pairs = zip(written, targets, strict=True)
    return np.array([np.array_equal(row[row != PAD], target) for row, target in pairs])


@torch.no_grad()
def measure_summary_bits(recording: "Recording", *, length: int, samples: int) -> dict:
    """Bits that a linear softmax reads off the one vector that the decoder starts in, by position.

    Sentences of one length are drawn anew, ``samples`` to fit the probe on and half as many to judge it on
    (fewer where so many would be a large part of all sentences of the length). The vector is the decoder's
    first state, an LSTM's memory beside it.

    Returns:
        ``bits``, by position; ``length``, ``vocabulary``.
    """
    settings = recording.spec.resolved
    network = registry.load(recording.spec.recipe).recorded_network(recording)
    options = dict(settings.task_options) | {"min_length": length, "max_length": length}
    words = len(load_task(settings).source_vocabulary) - len(MARKS)
    others = max(1, min(samples // 2, words**length // _OF_ALL))
    sizes = {"n_train": samples, "n_held_out": others, "seed": 1 + settings.seed}
    task = load_task(type(settings)(task=settings.task, options=tuple((options | sizes).items())))
    parts = [_summaries(network, corpus) for corpus in (task.train, task.held_out)]
    bits = probe_bits(*parts[0], *parts[1], words=words)
    return {"bits": bits.tolist(), "length": length, "vocabulary": words}


def _summaries(network: torch.nn.Module, corpus: "Corpus") -> tuple[torch.Tensor, torch.Tensor]:
    """The decoder's first state of each sample, and the words of its source counted from 0."""
    length = int(corpus.source_lengths[0])
    words = torch.from_numpy(corpus.source_ids.reshape(-1, length).astype(np.int64)) - len(MARKS)
    vectors: list[torch.Tensor] = [torch.empty(0)] * len(corpus)
    for batch in evaluation_batches(corpus, _BATCH):
        _, carried = network.encode(batch.source, batch.source_mask)
        parts = [part for part in (carried.hidden, carried.memory) if part is not None]
        joined = torch.cat([part.flatten(1) for part in parts], dim=1)
        for index, row in zip(batch.indices.tolist(), joined, strict=True):
            vectors[index] = row
    return torch.stack(vectors), words
