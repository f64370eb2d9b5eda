"""How well a network translates: BLEU of what it writes itself, beside its held-out loss."""

from collections.abc import Sequence

import numpy as np

from attnlib.training.corpus import evaluation_batches
from attnlib.training.vocabulary import EOS, PAD, UNK
from companion.runs.store import TrainedModel
from notebooks.shared.bleu import bleu, bleu_counts
from notebooks.shared.free_running import greedy

BATCH = 256
QUALITIES = ("loss", "token_accuracy", "exact_match")  # of all held-out sentences, the right words read
# Not of the letters that sacreBLEU splits words at, and different, so that a missing word is never right.
MISSING = {"written": "⁇", "reference": "‽"}


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
        found = greedy(trained.model, batch, most).target_output
        written += sentences(found.tolist(), words, MISSING["written"])
        references += sentences(batch.target_output.tolist(), words, MISSING["reference"])
    score = bleu(bleu_counts(written, references))
    return {"bleu": score} | {name: trained.history["held_out"][name] for name in QUALITIES}


def sentences(ids: Sequence[Sequence[int]], words: Sequence[str], missing: str) -> list[str]:
    """The words before the end mark, with spaces between; ``missing`` where the vocabulary lacks one.

    >>> sentences([[4, 3, 2, 0]], ["<pad>", "<bos>", "<eos>", "<unk>", "two"], "?")
    ['two ?']
    """
    kept = ([word for word in row if word not in (EOS, PAD)] for row in ids)
    return [" ".join(missing if word == UNK else words[word] for word in row) for row in kept]
