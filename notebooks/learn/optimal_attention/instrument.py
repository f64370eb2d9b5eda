"""What the triangle of the page draws: logits of three positions, of which the reader makes a mixture."""

import numpy as np
import pandas as pd

from notebooks.learn.optimal_attention.counterexample import COUNTEREXAMPLE, TWO_LABELS

EXAMPLES = {  # logits by position, names of the outputs; the first output is the correct one
    "three": ("three words", COUNTEREXAMPLE, ("correct word", "second word", "third word")),
    "two": ("two labels", TWO_LABELS, ("correct label", "other label")),
}
ATTENTIONS = {
    "all on 1": (100, 0, 0),
    "all on 2": (0, 100, 0),
    "all on 3": (0, 0, 100),
    "halves on 2 and 3": (0, 50, 50),
}


def probabilities(logits: tuple[tuple[float, ...], ...], attention: np.ndarray) -> np.ndarray:
    """Return the probability of each output when an attention mixes the logits of the positions."""
    mixed = attention @ np.array(logits)
    powers = np.exp(mixed - mixed.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def triangle() -> tuple[dict, pd.DataFrame]:
    """Return both examples, and the probability of the correct answer at attentions with a button."""
    grid = [(first, second, 100 - first - second) for first in range(101) for second in range(101 - first)]
    examples, best, rows = [], {}, []
    for name, (title, logits, outputs) in EXAMPLES.items():
        examples.append({"name": name, "title": title, "logits": logits, "outputs": outputs})
        best[name] = [round(float(probabilities(logits, np.array(grid) / 100)[:, 0].max()), 4)]
        for label, shares in ATTENTIONS.items():
            correct = float(probabilities(logits, np.array(shares) / 100)[0])
            rows.append({"example": title, "attention": label, "probability of the correct answer": correct})
    attentions = [{"title": label, "shares": shares[:2]} for label, shares in ATTENTIONS.items()]
    data = {"examples": examples, "attentions": attentions, "best": best}
    return data, pd.DataFrame(rows).set_index("example").round(3)
