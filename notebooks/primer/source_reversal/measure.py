"""Words right in the longest sentences, by third: where the first word and the last are far apart."""

import numpy as np

from companion.runs.procedure import Recording
from notebooks.shared.measure import THIRDS
from notebooks.shared.sequence_course import judged_samples


def measure_longest_sentences(recording: Recording) -> dict:
    """Words right at the last snapshot by third of the sentence, in the longest quarter of the lengths.

    Over all lengths together a third holds places that are in the middle of a longer sentence.
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
