"""What the instrument of the page draws: scores of every word of the sentences, along training."""

import numpy as np
import pandas as pd

from companion.results.result import Result

LEAST = 1e-9  # weight that is told from none
COORDINATE = 36  # of the context that the page works out in full


def sentences(result: Result) -> tuple[dict, pd.DataFrame]:
    """Scores and probabilities by sentence, snapshot and position; a reader starts after training.

    Softmax depends on differences of scores alone. So scores are relative to the largest of their row here:
    the logarithm of the weight over the largest weight.
    """
    if not result.tables.get("map"):
        return {}, pd.DataFrame()
    listed, table = [], []
    for _, pair in pd.DataFrame(result.tables["map"]).groupby("pair"):
        steps = sorted(pair["step"].unique().tolist())
        source, target = (pair.groupby(f"{of}_place")[of].first().tolist() for of in ("source", "target"))
        by_place = pair.sort_values(["step", "target_place", "source_place"])
        shape = len(steps), len(target), len(source)
        attention = by_place["attention"].to_numpy(float).reshape(shape)
        scores = np.log(np.maximum(attention, LEAST) / attention.max(-1, keepdims=True)).round(2)
        probability = by_place["probability"].to_numpy(float).reshape(shape)[..., 0].round(3)
        listed.append({"steps": steps, "source": source, "target": target})
        listed[-1] |= {"scores": scores.tolist(), "probability": probability.tolist()}
        for word, chance, weights in zip(target, probability[-1], attention[-1], strict=True):
            shown = ", ".join(f"{token} {weight:.2f}" for token, weight in zip(source, weights, strict=True))
            table.append({"predicted": word, "probability": chance, "attention after training": shown})
    config = result.config
    data = {"sentences": listed, "sentence": config["pair"], "word": config["place"]}
    return data | _worked(result), pd.DataFrame(table).set_index("predicted")


def _worked(result: Result) -> dict:
    """Return one number of the context at the step that the page works out, and of its states."""
    if not result.tables.get("context"):
        return {}
    numbers = pd.DataFrame(result.tables["context"])
    by_word = numbers[numbers["coordinate"] == COORDINATE].sort_values("source_place")
    if by_word.empty:
        return {}
    states, context = by_word["state"].round(4).tolist(), round(float(by_word["context"].iloc[0]), 4)
    return {"worked": {"coordinate": COORDINATE, "states": states, "context": context}}
