"""What becomes of a translation after a word in it has gone wrong, in a network that writes by itself."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attnlib.models.search import beam_search
from attnlib.training.corpus import Batch, Corpus, collate, evaluation_batches
from attnlib.training.vocabulary import BOS, EOS, MARKS, PAD, Vocabulary
from companion.runs import registry
from companion.runs.procedure import Recording
from notebooks.shared.bleu import bleu, bleu_counts
from notebooks.shared.measure import exact_matches
from notebooks.shared.sequence_course import judged_samples, load_task

MOST_PLACES = 20  # of a sentence that a word is exchanged at
BEAMS = 4
_BATCH = 128
_WRITTEN, _MEANT = "UNK", "UNSEEN"  # what stands for ``<unk>``: two words, or a missing one would be matched


@torch.no_grad()
def measure_error_growth(recording: Recording, *, samples: int) -> dict:
    """Accuracy by place, read right and read from its own hand; and what one wrong word does to the rest.

    By place are the held-out sentences of one length: sentences of several lengths would be others at late
    places than at early ones. At each place in turn they are written right up to there; then the right word
    or another one, drawn evenly, is put down, and the network goes on by itself.
    """
    settings = recording.spec.resolved
    task, judged = load_task(settings), judged_samples(settings)
    right, lengths = recording["right"][-1].bool().numpy(), judged.target_lengths
    written = recording["written"]
    wanted = collate(judged, range(len(judged))).target_output
    free = _same(written, wanted).numpy()
    valid = np.arange(right.shape[1]) <= lengths[:, None]  # the end mark counts
    length = fullest_length(lengths)
    own = np.flatnonzero(lengths == length)
    places = slice(0, length + 1)
    network = registry.load(recording.spec.procedure).recorded_network(recording)
    ended = ((written != PAD) & (written != EOS)).sum(1).numpy()
    beams = replace(recording, tensors=dict(recording.tensors) | {"written": beam_written(network, judged)})
    return {
        "length": length,
        "of_length": len(own),
        "teacher_forced": right[own, places].mean(0).tolist(),
        "free_running": free[own, places].mean(0).tolist(),
        "so_far": np.logical_and.accumulate(free[own, places], axis=1).mean(0).tolist(),
        "damage": damage(network, collate(judged, own[:samples]), len(task.target_vocabulary), settings.seed),
        "token_accuracy": float(right[valid].mean()),
        "own_accuracy": float(free[valid].mean()),
        "exact_match": float(exact_matches(recording, judged).mean()),
        "length_right": float((ended == lengths).mean()),
        "bleu": written_bleu(recording),
        "beam": {
            "exact_match": float(exact_matches(beams, judged).mean()),
            "bleu": written_bleu(beams),
        },
        "length_guessed": float((guessed_lengths(task.train, judged) == lengths).mean()),
        "parameters": sum(v.numel() for name, v in recording.tensors.items() if name.startswith("network.")),
    }


def fullest_length(lengths: np.ndarray) -> int:
    """The length of which the sentences together hold most words; the shorter of two."""
    counts = np.bincount(lengths)
    return int((counts * np.arange(len(counts))).argmax())


def guessed_lengths(train: Corpus, judged: Corpus) -> np.ndarray:
    overall = int(np.bincount(train.target_lengths).argmax())
    guess = {
        length: int(np.bincount(train.target_lengths[train.source_lengths == length]).argmax())
        for length in np.unique(train.source_lengths).tolist()
    }
    return np.array([guess.get(length, overall) for length in judged.source_lengths.tolist()])


def written_bleu(recording: Recording) -> float:
    """BLEU of what is written; a word that the vocabulary lacks is one that nothing matches."""
    settings = recording.spec.resolved
    vocabulary, judged = load_task(settings).target_vocabulary, judged_samples(settings)
    rows = (row[(row != PAD) & (row != EOS)] for row in recording["written"].numpy())
    texts = [_spelt(ids, vocabulary, _WRITTEN) for ids in rows]
    references = [_spelt(judged.target(i), vocabulary, _MEANT) for i in range(len(judged))]
    return bleu(bleu_counts(texts, references))


def _spelt(ids: np.ndarray, vocabulary: "Vocabulary", unknown: str) -> str:
    return " ".join(unknown if word in MARKS else word for word in vocabulary.decode(ids))


def beam_written(network: torch.nn.Module, corpus: Corpus) -> Tensor:
    most = 2 * int(corpus.target_lengths.max()) + 10
    rows = torch.full((len(corpus), most), PAD, dtype=torch.int32)
    for batch in evaluation_batches(corpus, _BATCH):
        words = beam_search(network, batch.source, batch.source_mask, most, beams=BEAMS).words[:, 0]
        rows[batch.indices, : words.shape[1]] = words.to(torch.int32)
    return rows


def _same(written: Tensor, wanted: Tensor) -> Tensor:
    width = wanted.shape[1]
    short = max(0, width - written.shape[1])
    return torch.nn.functional.pad(written[:, :width].long(), (0, short), value=PAD) == wanted


def damage(network: torch.nn.Module, batch: Batch, words: int, seed: int) -> list[dict]:
    """A row for each place after which a sentence goes on: ``words_after`` it, and the share wrong."""
    rows = []
    generator = torch.Generator().manual_seed(seed)
    right = batch.target_output
    for place in range(min(right.shape[1] - 1, MOST_PLACES)):
        drawn = torch.randint(words - len(MARKS) - 1, (len(right),), generator=generator) + len(MARKS)
        other = drawn + (drawn >= right[:, place])  # any word but the right one
        row = {"place": place + 1, "sentences": len(right), "words_after": right.shape[1] - place - 1}
        for name, word in (("wrong_after", other), ("wrong_after_right", right[:, place])):
            put = torch.cat([right[:, :place], word[:, None]], dim=1)
            found = continued(network, batch, put, right.shape[1] - place - 1)
            row[name] = float((found != right[:, place + 1 :]).float().mean())
        rows.append(row)
    return rows


def continued(network: torch.nn.Module, batch: Batch, put: Tensor, steps: int) -> Tensor:
    """What the network writes by itself after the words ``put``; after its end, padding."""
    state = network.begin(batch.source, batch.source_mask)
    for word in (torch.full_like(put[:, 0], BOS), *put.unbind(1)):
        logits, state = network.write(word, state)
    running, written = torch.ones(len(put), dtype=torch.bool), []
    for _ in range(steps):
        logits[:, [PAD, BOS]] = -torch.inf
        word = torch.where(running, logits.argmax(-1), PAD)
        written.append(word)
        running &= word != EOS
        logits, state = network.write(word, state)
    return torch.stack(written, dim=1)
