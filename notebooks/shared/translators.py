"""How well networks translate, and which count where claims speak of networks that have learned their task.

A kind of translator counts if it is as ``claims/aitken2021.yaml`` presupposes: by what training for twice as
long gains its networks, and by their BLEU.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attnlib.models.corpus import Batch, evaluation_batches
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.search import likeliest_words
from attnlib.models.vocabulary import BOS, EOS, PAD, UNK
from companion.results.frames import Table
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.columns import Column, share
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from notebooks.shared.bleu import bleu, bleu_counts
from notebooks.shared.suite import TRANSLATIONS

TWICE = 2

BATCH = 256
QUALITIES = ("loss", "token_accuracy", "exact_match")  # of all held-out sentences, the right words read
# Not of the letters that sacreBLEU splits words at, and different, so that a missing word is never right.
MISSING = {"written": "⁇", "reference": "‽"}


TRANSLATION = {
    "bleu": Column(
        "BLEU of greedy translations of held-out sentences", "points", 0, 100, source="Papineni et al. 2002"
    ),
    "exact_match": share("held-out sentences of which every next word is predicted correctly"),
    "loss": Column("cross-entropy of the next word in held-out sentences", "nats a word", low=0),
    "token_accuracy": share("next words of held-out sentences that are predicted correctly"),
}


@measure(version=1, columns=TRANSLATION)
def measure_translation(trained: TrainedModel, samples: int) -> dict:
    """``bleu`` of greedy translations of the first held-out sentences, and held-out loss and accuracy.

    The words are the task's own: lower case, and one for every word that the vocabulary lacks, which counts
    as wrong. Translations are cut off one word after the longest held-out one.
    """
    held_out = trained.task.held_out
    first = held_out.subset(np.arange(min(samples, len(held_out))))
    most, words = int(held_out.target_lengths.max()) + 1, trained.task.target_vocabulary.words
    written, references = [], []
    for batch in evaluation_batches(first, BATCH):
        batch = batch.to(trained.model.readout.weight.device)
        outputs = greedy(trained.model, batch, most).target_output
        written += sentences(outputs.tolist(), words, MISSING["written"])
        references += sentences(batch.target_output.tolist(), words, MISSING["reference"])
    score = bleu(bleu_counts(written, references))
    return {"bleu": score} | {name: trained.history["held_out"][name] for name in QUALITIES}


# What a network writes itself, which it has to read where no translation is given.


@torch.no_grad()
def greedy(model: EncoderDecoder, batch: Batch, max_steps: int) -> Batch:
    """Return the sources of a batch with the words the model itself writes, the likeliest at every step.

    A sample without an end mark is cut off. Decoder states depend on what was read alone, so the model's
    trace of this batch is that of the free-running network.
    """
    encoder_states, last = model.encode(batch.source, batch.source_mask)

    def write(word: Int[Tensor, " batch"], read: Int[Tensor, "batch read"]) -> tuple[Tensor, Tensor]:
        # The whole prefix is read again: networks of this size decode in a moment, and one path stays tested.
        read = torch.cat([read, word[:, None]], dim=1)
        states = model.decode(read, last)
        return model.attend(batch, encoder_states, states[:, -1:]).logits[:, 0], read

    nothing_read = batch.source[:, :0]
    return with_target(batch, likeliest_words(write, nothing_read, like=batch.source, max_steps=max_steps))


def with_target(batch: Batch, written: Int[Tensor, "batch target"]) -> Batch:
    begin = torch.full_like(written[:, :1], BOS)
    before_last = written[:, :-1]
    read = before_last.masked_fill(before_last == EOS, PAD)
    return replace(
        batch, target_input=torch.cat([begin, read], dim=1), target_output=written, target_mask=written != PAD
    )


def sentences(ids: Sequence[Sequence[int]], words: Sequence[str], missing: str) -> list[str]:
    """The words before the end mark, with spaces between; ``missing`` where the vocabulary lacks one.

    >>> sentences([[4, 3, 2, 0]], ["<pad>", "<bos>", "<eos>", "<unk>", "two"], "?")
    ['two ?']
    """
    texts = []
    for row in ids:
        spoken = [word for word in row if word not in (EOS, PAD)]
        texts.append(" ".join(missing if word == UNK else words[word] for word in spoken))
    return texts


def translator_measurements(specs: Iterable[ModelSpec], samples: int) -> tuple[Measurement, ...]:
    """What tells which translators among the models count."""
    translators = [spec for spec in specs if spec.task in TRANSLATIONS]
    longer = [replace(spec, steps=TWICE * spec.steps) for spec in translators]
    return measurements_of((*translators, *longer), measure_translation, samples=samples)


def translators_that_count(specs: Iterable[ModelSpec], samples: int, store: Store) -> set[tuple[str, str]]:
    """Task and architecture of the translators that count; none of which something is not measured."""
    by_kind: dict[tuple[str, str], dict[int, list[dict | None]]] = {}  # by kind, by updates
    for measurement in translator_measurements(specs, samples):
        spec = measurement.spec
        measured = [translation for _, translation in answers([measurement], store)]
        by_steps = by_kind.setdefault((spec.task, spec.architecture), {})
        by_steps.setdefault(spec.steps, []).append(measured[0] if measured else None)
    counting = set()
    for kind, by_steps in by_kind.items():
        planned, longer = by_steps[min(by_steps)], by_steps[max(by_steps)]
        if None not in (*planned, *longer) and _have_learned(planned, longer):
            counting.add(kind)
    return counting


def _have_learned(planned: list[dict], longer: list[dict]) -> bool:
    """Whether translators of a kind count: networks, and the same ones trained for longer, seed by seed."""
    from companion.claims.presupposed import holds  # a bare node, which only measures, cannot read claims

    mean_gain = fmean(map(gain, planned, longer))
    mean_bleu = fmean(translation["bleu"] for translation in planned)
    return holds("learned", gain_of_twice=mean_gain, bleu=mean_bleu)


def has_learned(name: dict, accuracy: float, translators: set[tuple[str, str]]) -> bool:
    """Whether a network counts: by its words right, or as one of the translators that count."""
    from companion.claims.presupposed import holds

    return holds("learned", token_accuracy=accuracy) or (name["task"], name["architecture"]) in translators


LEARNED = {
    "learned": Column("True if the network has learned its task, or is a translator of a kind that counts")
}


def with_learned(networks: Table, translators: set[tuple[str, str]]) -> Table:
    """Return networks with a column that says whether each has learned its task.

    Args:
        networks: with columns ``task``, ``architecture`` and ``token_accuracy``.
        translators: task and architecture of the translators that count.
    """
    learned = [has_learned(row, row["token_accuracy"], translators) for row in networks.records()]
    return networks.assign(LEARNED, learned=np.array(learned, dtype=bool))


def gain(planned: dict, longer: dict) -> float:
    """The part of its held-out loss that a network loses when it is trained for longer."""
    return 1 - longer["loss"] / planned["loss"]
