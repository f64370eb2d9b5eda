"""The counterexample worked, what the identities leave, and the network's own counterexample."""

import numpy as np
import pandas as pd

from companion.results.result import Result
from notebooks.learn.optimal_attention.experiment import COUNTEREXAMPLE

ATTENTIONS = {
    "all on position 1": (1, 0, 0),
    "all on position 2": (0, 1, 0),
    "thirds": (1 / 3, 1 / 3, 1 / 3),
    "α*: halves on 2 and 3": (0, 1 / 2, 1 / 2),
}


def worked_table() -> pd.DataFrame:
    """The counterexample step by step: what several attentions make of it, in nats.

    ``log p`` is the mean of log β of the right word and what the positions gain by disagreeing on the others.
    """
    logits = np.array(COUNTEREXAMPLE)
    log_probe = logits - np.log(np.exp(logits).sum(1, keepdims=True))  # of every word, by position
    rows = {}
    for name, attention in ATTENTIONS.items():
        mixed = np.array(attention) @ logits
        log_p = float(mixed[0] - np.log(np.exp(mixed).sum()))
        mean = float(np.array(attention) @ log_probe[:, 0])
        rows[name] = {
            "logits": ", ".join(_signed(value) for value in mixed),
            "mean log β": _signed(mean, 3),
            "disagreement": _signed(log_p - mean, 3),
            "log p": _signed(log_p, 3),
            "p": f"{np.exp(log_p):.3f}",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def identity_table(result: Result) -> pd.DataFrame:
    """A row a kind of network: how far the rebuilt log-probability is from the network's own."""
    deviation = power_text(result.values["classifier"]["deviation"])
    rows = {"classifier, mean loss by equation 12": ("", deviation, "checkpoints of the networks")}
    for form, model in (("summed", "summed context"), ("joined", "main model")):
        for name, words in (("all_words", "β of all words"), ("right_word", "β of the right word alone")):
            found = result.values[form]["identity"][name]
            numbers = power_text(found["mean"]["value"]), power_text(found["largest"])
            rows[f"{model}, {words}"] = (*numbers, "words of the networks")
    columns = ["mean difference (nats)", "largest (nats)", "among"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def unused_table(result: Result) -> pd.DataFrame:
    """The network's own counterexample: each source position, what it says alone, β, α and α^opt."""
    rows = [
        {
            "source": word(row["source"]),
            "says, alone": f"{word(row['says'])} ({row['says_with']:.2f})",
            "β": small(row["probe"]),
            "α": f"{row['attention']:.3f}",
            "α*": f"{row['optimal']:.3f}",
        }
        for row in result.tables["unused"]
    ]
    return pd.DataFrame(rows).set_index("source") if rows else pd.DataFrame()


def power_text(value: float | None) -> str:
    """Small numbers by their power of ten, so that other rounding gives the same page."""
    if value is None:
        return "–"
    if value >= 0.001:
        return f"{value:.3f}"
    return "0" if value == 0 else f"below 1e{int(np.ceil(np.log10(value)))}".replace("-", "−")


def small(probability: float) -> str:
    """Three decimals; of less than a thousandth, its size."""
    return f"{probability:.3f}" if probability >= 0.001 else f"{probability:.1e}".replace("-", "−")


def _signed(value: float, digits: int = 1) -> str:
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def word(piece: str) -> str:
    """A piece as a reader knows it."""
    return {"<bos>": "begin", "<eos>": "end"}.get(piece, piece.removeprefix("▁") or piece)
