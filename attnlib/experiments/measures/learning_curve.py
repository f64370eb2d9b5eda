"""How a recorded network learned: words right by update, and by place in the sentence."""

from typing import TYPE_CHECKING

import numpy as np

from attnlib.experiments.measures.by_length import exact_matches
from attnlib.recipes.sequence_course import judged_samples

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

THIRDS = ("first", "middle", "last")


def measure_learning_curve(recording: "Recording") -> dict:
    """Words right under teacher forcing at each look, end marks left out.

    Returns:
        lists by look: ``steps``, ``token_accuracy``, and ``first``, ``middle``, ``last``, the same of the
        words in each third of their sentence (by the middle of a word's place; sentences under three words
        have no middle third); ``by_place``, at the last look, of places counted from the beginning;
        ``exact_match``, in the end, of what the network writes on its own.
    """
    judged = judged_samples(recording.spec.resolved)
    right = recording["right"].double().numpy()  # (looks, samples, places)
    lengths = judged.target_lengths
    places = np.arange(right.shape[2])
    valid = places < lengths[:, None]
    third = np.minimum(3 * (places + 0.5) / lengths[:, None], 2.999).astype(int)
    parts = {name: valid & (third == i) for i, name in enumerate(THIRDS)}
    curves = {
        name: [float(look[chosen].mean()) if chosen.any() else None for look in right]
        for name, chosen in ({"token_accuracy": valid} | parts).items()
    }
    return {
        "steps": recording["steps"].tolist(),
        **curves,
        "by_place": [float(right[-1][valid[:, i], i].mean()) for i in range(int(lengths.max()))],
        "exact_match": float(exact_matches(recording, judged).mean()),
    }
