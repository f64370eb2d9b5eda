"""The trained networks that the package ships, those of the quick profile that learn their task.

python -m notebooks.beyond.your_own_model.zoo          # of build/models or trained now, into attnlib/zoo
"""

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from attnlib import zoo
from attnlib.files import atomic_path
from attnlib.sealed import save_file
from attnlib.training.corpus import Corpus, Task, collate
from companion.runs.keys import Spec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import spec_of
from notebooks.beyond.your_own_model.experiment import Config, measurements
from notebooks.shared.sequence_course import load_task
from notebooks.shared.task_patterns import network_of

SENTENCES = 800


def specs() -> dict[str, Spec]:
    """Reordered phrases take a GRU more updates than the profile has; without attention it learns 4 words."""
    (transformer,) = measurements(Config())
    quick = partial(spec_of, scale="quick")
    four = {"min_length": 4, "max_length": 4, "n_words": 8, "n_held_out": 1200}
    return {
        "reordering": transformer.spec,
        "reordering_AED": quick("reordering_50", "AED", steps=1500),
        "one_to_one_AO": quick("one_to_one", "AO"),
        "one_to_one_VED": quick("one_to_one", "VED", steps=170, task_options=four),
    }


ORIGIN = ("commit", "date", "packages", "python", "seconds")


def padded(corpus: Corpus, side: str) -> torch.Tensor:
    rows = [torch.from_numpy(getattr(corpus, side)(n)) for n in range(len(corpus))]
    return pad_sequence(rows, batch_first=True, padding_value=-1).to(torch.int16)


def opened(spec: Spec, store: Store) -> tuple[nn.Module, Task, dict]:
    """The network of a spec, its task and the history of its training."""
    if isinstance(spec, ModelSpec):
        trained = store.model(spec)
        return trained.model.half().float(), trained.task, trained.history
    recording = store.recording(spec)
    return network_of(recording, "trained"), load_task(spec.resolved), recording.history


@torch.no_grad()
def write(name: str, spec: Spec, models: Path = Path("build/models"), folder: Path = zoo.FOLDER) -> Path:
    """A network and the first sentences of its task; recurrent ones in half precision."""
    network, own, history = opened(spec, Store(models))
    unseen = collate(own.held_out, range(len(own.held_out)))
    right = network(unseen).logits.argmax(-1) == unseen.target_output
    accuracy = round(float(right[unseen.target_mask].float().mean()), 4)
    said = {
        "config": asdict(network.config),
        "words": {side: getattr(own, f"{side}_vocabulary").words for side in ("source", "target")},
        "provenance": {"spec": spec.content, **{key: history[key] for key in ORIGIN}, "accuracy": accuracy},
    }
    half = isinstance(spec, ModelSpec)
    corpus = own.train.subset(range(SENTENCES))
    tensors = {f"network.{k}": v.half() if half else v for k, v in network.state_dict().items()}
    tensors |= {side: padded(corpus, side) for side in ("source", "target")}
    with atomic_path(folder / f"{name}.safetensors") as path:
        save_file(tensors, path, {"trained": json.dumps(said, sort_keys=True)})
    return folder / f"{name}.safetensors"


if __name__ == "__main__":
    for own in specs().items():
        print(write(*own))
