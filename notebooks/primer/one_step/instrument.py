"""What the instrument of the page draws: attention of every word of the sentences, along training."""

import pandas as pd

from companion.results.result import Result


def sentences(result: Result) -> tuple[dict, pd.DataFrame]:
    """Attention and probability by sentence, snapshot and place; a reader starts before training."""
    if not result.tables.get("map"):
        return {}, pd.DataFrame()
    listed, table = [], []
    for _, pair in pd.DataFrame(result.tables["map"]).groupby("pair"):
        steps = sorted(pair["step"].unique().tolist())
        source, target = (pair.groupby(f"{of}_place")[of].first().tolist() for of in ("source", "target"))
        by_place = pair.sort_values(["step", "target_place", "source_place"])
        shape = len(steps), len(target), len(source)
        attention = by_place["attention"].to_numpy(float).reshape(shape).round(3)
        probability = by_place["probability"].to_numpy(float).reshape(shape)[..., 0].round(3)
        listed.append({"steps": steps, "source": source, "target": target})
        listed[-1] |= {"attention": attention.tolist(), "probability": probability.tolist()}
        for word, chance, weights in zip(target, probability[-1], attention[-1], strict=True):
            shown = ", ".join(f"{token} {weight:.2f}" for token, weight in zip(source, weights, strict=True))
            table.append({"predicted": word, "probability": chance, "attention after training": shown})
    config = result.config
    data = {"sentences": listed, "sentence": config["pair"], "word": config["place"]}
    return data, pd.DataFrame(table).set_index("predicted")
