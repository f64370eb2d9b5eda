"""Words right in the longest sentences, by third: where the first word and the last are far apart."""

import numpy as np

from companion.runs.recipe import Recording
from notebooks.shared.measure import THIRDS
from notebooks.shared.sequence_course import judged_samples


def measure_longest_sentences(recording: Recording) -> dict:
    """Words right under teacher forcing at the last look, in the longest quarter of the lengths.

    A third is that of :func:`~notebooks.shared.measure.measure_learning_curve`. Over all
    lengths together a third holds places that are in the middle of a longer sentence.

    Returns:
        ``shortest``, the least length counted; ``sentences``, how many; ``first``, ``middle``, ``last``,
        shares of words, None where a third has none.
    """
    judged = judged_samples(recording.spec.resolved)
    lengths = judged.target_lengths
    long = lengths >= lengths.max() - (lengths.max() - lengths.min()) / 4
    right = recording["right"][-1].double().numpy()[long]  # (samples, places)
    lengths = lengths[long, None]
    places = np.arange(right.shape[1])
    third = np.minimum(3 * (places + 0.5) / lengths, 2.999).astype(int)
    parts = {name: (places < lengths) & (third == i) for i, name in enumerate(THIRDS)}
    shares = {name: float(right[own].mean()) if own.any() else None for name, own in parts.items()}
    return {"shortest": int(lengths.min()), "sentences": int(long.sum())} | shares
