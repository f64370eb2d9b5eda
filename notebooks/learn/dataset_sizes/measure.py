"""Sizes of a data set and how long its texts are, from the lengths of all of them."""

import json

import numpy as np

from companion.runs.procedure import Recording

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def measure_text_sizes(recording: Recording) -> dict:
    """Counts, medians and quantiles of what :mod:`~notebooks.learn.dataset_sizes.text_sizes` records."""
    parts: dict[str, dict] = {}
    for name, tensor in sorted(recording.tensors.items()):
        part, dot, side = name.partition(".")
        if dot:
            lengths = np.asarray(tensor.tolist())
            found = parts.setdefault(part, {"texts": len(lengths)})
            found[side] = {
                "median": float(np.median(lengths)),
                "quantiles": np.quantile(lengths, QUANTILES).tolist(),
            }
    different = recording.tensors.get("different")
    return {
        "parts": parts,
        "kept": recording["kept"].item(),
        "different": None if different is None else different.item(),
        "dropped": json.loads(bytes(recording["dropped"].tolist())),
    }
