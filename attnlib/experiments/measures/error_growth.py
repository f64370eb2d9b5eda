"""What becomes of a translation after a word in it has gone wrong, in a network that writes by itself."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attnlib.experiments.measures.by_length import exact_matches
from attnlib.recipes import registry
from attnlib.recipes.sequence_course import judged_samples, load_task
from attnlib.tasks.corpus import Batch, collate
from attnlib.tasks.vocabulary import BOS, EOS, MARKS, PAD
from attnlib.texts.bleu import bleu, bleu_counts

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

MOST_PLACES = 20  # of a sentence that a word is exchanged at


@torch.no_grad()
def measure_error_growth(recording: "Recording", *, samples: int) -> dict:
    """Accuracy by place, read right and read from its own hand; and what one wrong word does to the rest.

    At each place in turn the first ``samples`` sentences are written right up to there. Then either the right
    word or another one, drawn evenly, is put down, and the network goes on by itself. What it writes
    afterwards is held against the right words at the same places, the end mark among them.

    Returns:
        ``teacher_forced``, ``free_running``, ``so_far`` (no error up to and with the place, free running) by
        place; ``damage``, rows of ``place``, ``sentences``, ``words_after`` (mean number, end mark counted),
        ``wrong_after`` and ``wrong_after_right`` (share of them, after the wrong word and after the right
        one); ``token_accuracy``, ``exact_match``, ``length_right`` (share of sentences with as many words as
        the right one), ``bleu`` of what is written freely, ``parameters``.
    """
    settings = recording.spec.resolved
    judged = judged_samples(settings)
    right, lengths = recording["right"][-1].bool().numpy(), judged.target_lengths
    written = recording["written"]
    wanted = collate(judged, range(len(judged))).target_output
    free = _same(written, wanted).numpy()
    valid = np.arange(right.shape[1]) <= lengths[:, None]  # the end mark counts
    whole = np.logical_and.accumulate(free | ~valid, axis=1)
    network = registry.load(recording.spec.recipe).recorded_network(recording)
    batch = collate(judged, range(min(samples, len(judged))))
    words = [row[row != PAD] for row in written.numpy()]
    ended = np.array([len(row) - int(EOS in row) for row in words])
    spell = load_task(settings).target_vocabulary.decode
    texts = [" ".join(spell(row[row != EOS])) for row in words]
    references = [" ".join(spell(judged.target(i))) for i in range(len(judged))]
    return {
        "teacher_forced": _by_place(right, valid),
        "free_running": _by_place(free, valid),
        "so_far": _by_place(whole, valid),
        "damage": damage(network, batch, len(load_task(settings).target_vocabulary), settings.seed),
        "token_accuracy": float(right[valid].mean()),
        "exact_match": float(exact_matches(recording, judged).mean()),
        "length_right": float((ended == lengths).mean()),
        "bleu": bleu(bleu_counts(texts, references)),
        "parameters": sum(v.numel() for name, v in recording.tensors.items() if name.startswith("network.")),
    }


def _by_place(values: np.ndarray, valid: np.ndarray) -> list[float]:
    return [float(values[valid[:, i], i].mean()) for i in range(valid.shape[1])]


def _same(written: Tensor, wanted: Tensor) -> Tensor:
    """Where the words agree, (samples, places of ``wanted``)."""
    width = wanted.shape[1]
    short = max(0, width - written.shape[1])
    return torch.nn.functional.pad(written[:, :width].long(), (0, short), value=PAD) == wanted


def damage(network: torch.nn.Module, batch: Batch, words: int, seed: int) -> list[dict]:
    """The rows of ``damage`` in :func:`measure_error_growth`, of places after which a sentence goes on."""
    rows = []
    generator = torch.Generator().manual_seed(seed)
    target, lengths = batch.target_output, batch.target_mask.sum(1)
    for place in range(min(int(lengths.max()) - 1, MOST_PLACES)):
        chosen = lengths > place + 1
        own = Batch(*(getattr(batch, name)[chosen] for name in batch.__dataclass_fields__))
        right = target[chosen]
        drawn = torch.randint(words - len(MARKS) - 1, (len(right),), generator=generator) + len(MARKS)
        other = drawn + (drawn >= right[:, place])  # any word but the right one
        after = own.target_mask[:, place + 1 :]
        wrong = {}
        for name, word in (("wrong_after", other), ("wrong_after_right", right[:, place])):
            put = torch.cat([right[:, :place], word[:, None]], dim=1)
            found = continued(network, own, put, right.shape[1] - place - 1)
            missed = (found != right[:, place + 1 :]) & after
            wrong[name] = float(missed.sum() / after.sum())
        rows.append(
            {"place": place + 1, "sentences": len(right)}
            | {"words_after": float(after.sum() / len(right))}
            | wrong
        )
    return rows


def continued(network: torch.nn.Module, batch: Batch, put: Tensor, steps: int) -> Tensor:
    """What the network writes by itself after the words ``put``, (batch, steps); after its end, padding."""
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
