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
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.training.evaluate import evaluate
from companion.book.project import find_root
from companion.runs.keys import model_key
from companion.runs.store import Store, TrainedModel
from companion.runs.suite import spec_of, task_name_of
from notebooks.shared.measure import fit_components, measure_alignment_terms
from notebooks.shared.style import task_name

UPDATES = {
    "scan": 3000,
    "reordering_50": 1500,
    "one_to_one": 600,
}  # updates: the quick profile's are too few to copy
NETWORKS = {"AED": "GRU with attention", "AO": "attention only"}
FIT_SAMPLES, EXAMPLES = 2_000, 12
ABOUT = Path(__file__).with_name("networks.json")
ALONE = {
    "temporal_only": "μμ alone",
    "input_only": "χχ alone",
    "no_residual": "without Δ",
    "uniform": "no term",
}


def nine_switches() -> tuple[dict, pd.DataFrame]:
    """What the page is told of the networks, and how close subsets of terms come on held-out sentences."""
    networks = json.loads(ABOUT.read_text(encoding="utf-8"))
    rows = [
        {"task": one["name"], "network": NETWORKS[one["architecture"]]}
        | {label: one["similarity"][subset] for subset, label in ALONE.items()}
        | {"words right": one["held_out"]["token_accuracy"]}
        for one in networks
    ]
    shown = [{key: one[key] for key in ("task", "architecture", "name", "examples")} for one in networks]
    return {"networks": shown}, pd.DataFrame(rows).set_index(["task", "network"]).round(2)


def written(file: Path) -> dict[str, torch.Tensor]:
    """Parameters and components that a network's script holds, in single precision."""
    held = json.loads(
        file.read_text(encoding="utf-8").partition("Instruments.give(")[2].rstrip().rstrip(");")
    )
    numbers = torch.frombuffer(bytearray(base64.b64decode(held["half"])), dtype=torch.float16).float()
    sizes = [torch.Size(shape).numel() for shape in held["shapes"].values()]
    parts = zip(held["shapes"].items(), numbers.split(sizes), strict=True)
    return {name: part.view(shape) for (name, shape), part in parts}


def export(task: str, architecture: str, store: Store, folder: Path) -> dict:
    """Train one, write its script, and say what it is."""
    spec = spec_of(task, architecture, scale="quick", steps=UPDATES[task])
    trained = store.model(spec)
    network: EncoderDecoder = trained.model.half().float()
    trained = replace(trained, history={"held_out": evaluate(network, trained.task.held_out)})
    found = measure_alignment_terms(trained, FIT_SAMPLES)
    held, tensors = script(trained)
    numbers = torch.cat([tensor.half().flatten() for tensor in tensors.values()]).numpy()
    held["half"] = base64.b64encode(numbers.tobytes()).decode()
    about = f"{model_key(spec)}, weights and components in half precision: see networks.json of the chapter"
    text = f"// {about}\nInstruments.give({json.dumps(held, ensure_ascii=False, separators=(',', ':'))});\n"
    write_text_atomic(folder / f"{task}-{architecture}.js", text)
    words, corpus = trained.task.source_vocabulary, trained.task.held_out
    chosen = range(0, len(corpus), max(1, len(corpus) // EXAMPLES))
    return {
        "task": task,
        "name": task_name(task),
        "architecture": architecture,
        "examples": [" ".join(words.decode(corpus.source(i).tolist())) for i in chosen][:EXAMPLES],
        "spec": spec.content,
        "held_out": found["quality"],
        "similarity": {subset: found["substitution"][subset]["similarity"] for subset in ALONE},
    }


def script(trained: TrainedModel) -> tuple[dict, dict[str, torch.Tensor]]:
    """Words and shapes of a network, and its parameters and components in one order."""
    fitted, task = fit_components(trained, FIT_SAMPLES), trained.task
    tensors = dict(trained.model.state_dict())
    for side in ("encoder", "decoder"):
        own = getattr(fitted, side)
        tensors |= {f"{side}.temporal": own.temporal, f"{side}.chi": own.input}
    held = {
        "name": f"{task_name_of(trained.spec)}-{trained.spec.architecture}",
        "source": task.source_vocabulary.words,
        "target": task.target_vocabulary.words,
        "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
    }
    return held, tensors


def main() -> None:
    folder = find_root() / "book" / "_files" / "instruments" / "networks"
    with TemporaryDirectory() as scratch:
        about = [export(*pair, Store(scratch), folder) for pair in product(UPDATES, NETWORKS)]
    write_text_atomic(ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
