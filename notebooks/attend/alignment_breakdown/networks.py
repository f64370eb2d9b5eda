"""The networks that run in the page: small, trained by one command, written with their components.

``python -m notebooks.attend.alignment_breakdown.networks`` trains them in some minutes. It writes a script of
each, weights and components in half precision, and ``networks.json`` beside this module: what they are and
how well they do. Everything is of the weights as rounded.
"""

import base64
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch

from attnlib.files import write_text_atomic
from attnlib.training.evaluate import evaluate
from companion.book.project import find_root
from companion.runs.keys import model_key
from companion.runs.store import Store
from companion.runs.suite import spec_of
from notebooks.shared.measure import fit_components, measure_alignment_terms
from notebooks.shared.style import task_name

UPDATES = {"scan": 3000, "reordering_50": 1500, "one_to_one": 600}  # the quick profile's are too few to copy
NETWORKS = {"AED": "GRU with attention", "AO": "attention only"}
FIT_SAMPLES, EXAMPLES = 2_000, 12
ABOUT = Path(__file__).with_name("networks.json")
SUBSETS = {"temporal_only": "μμ", "input_only": "χχ", "no_residual": "no Δ", "uniform": "none"}


def nine_switches() -> tuple[dict, pd.DataFrame]:
    """What the page is told of the networks, and how close subsets of terms come on held-out sentences."""
    networks = json.loads(ABOUT.read_text(encoding="utf-8"))
    rows = [
        {"task": one["name"], "network": NETWORKS[one["architecture"]]}
        | {f"similarity, {label}": one["similarity"][subset] for subset, label in SUBSETS.items()}
        | {"words right": one["held_out"]["token_accuracy"]}
        for one in networks
    ]
    shown = [{key: one[key] for key in ("task", "architecture", "name", "examples")} for one in networks]
    return {"networks": shown}, pd.DataFrame(rows).set_index(["task", "network"]).round(2)


def export(task: str, architecture: str, store: Store, folder: Path) -> dict:
    """Train one, write its script, and say what it is."""
    trained = store.model(spec_of(task, architecture, scale="quick", steps=UPDATES[task]))
    words, corpus = trained.task.source_vocabulary, trained.task.held_out
    network = trained.model.half().float()
    trained = replace(trained, history={"held_out": evaluate(network, corpus)})
    fitted, tensors = fit_components(trained, FIT_SAMPLES), dict(network.state_dict())
    for side in ("encoder", "decoder"):
        own = getattr(fitted, side)
        tensors |= {f"{side}.temporal": own.temporal, f"{side}.chi": own.input}
    numbers = torch.cat([tensor.half().flatten() for tensor in tensors.values()]).numpy()
    held = {
        "name": f"{task}-{architecture}",
        "source": words.words,
        "target": trained.task.target_vocabulary.words,
        "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "half": base64.b64encode(numbers.tobytes()).decode(),
    }
    about = f"{model_key(trained.spec)} in half precision: see networks.json of the chapter"
    text = f"// {about}\nInstruments.give({json.dumps(held, ensure_ascii=False, separators=(',', ':'))});\n"
    write_text_atomic(folder / f"{task}-{architecture}.js", text)
    found = measure_alignment_terms(trained, FIT_SAMPLES)
    chosen = range(0, len(corpus), max(1, len(corpus) // EXAMPLES))
    return {
        "task": task,
        "name": task_name(task),
        "architecture": architecture,
        "examples": [" ".join(words.decode(corpus.source(i).tolist())) for i in chosen][:EXAMPLES],
        "spec": trained.spec.content,
        "held_out": found["quality"],
        "similarity": {subset: found["substitution"][subset]["similarity"] for subset in SUBSETS},
    }


def main() -> None:
    folder = find_root() / "book" / "_files" / "instruments" / "networks"
    with TemporaryDirectory() as scratch:
        about = [export(*pair, Store(scratch), folder) for pair in product(UPDATES, NETWORKS)]
    write_text_atomic(ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
