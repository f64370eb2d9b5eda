"""BLEU of what a recorded network writes on its own, against the words that stand in the text."""

from typing import TYPE_CHECKING

import numpy as np

from attnlib.errors import BadInput
from attnlib.recipes.sequence_course import judged_samples, load_task
from attnlib.tasks.vocabulary import EOS, MARKS, PAD, Vocabulary
from companion.data.bleu import corpus_bleu
from companion.data.parallel import TextOptions, read_translation, tokenise_pairs

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording


def measure_bleu(recording: "Recording") -> dict:
    """BLEU of what the network writes on its own, against the whole words of the references.

    Both sides are words as the task splits them, in small letters where the task folds case. A word that the
    network cannot say is wrong: ``<unk>`` matches nothing.

    Returns:
        ``bleu``, ``signature``, ``sentences``.

    Raises:
        BadInput: the references are not those of the samples judged.
    """
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
