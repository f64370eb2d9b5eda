"""The trained networks that the package ships, made of those of the quick profile that are there already.

python -m notebooks.beyond.your_own_model.zoo          # from build/models into attnlib/zoo
"""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from torch.nn.utils.rnn import pad_sequence

from attnlib import zoo
from attnlib.files import atomic_path
from attnlib.sealed import save_file
from attnlib.training.corpus import Corpus, collate
from companion.runs.store import Store
from notebooks.beyond.your_own_model.experiment import Config, measurements
from notebooks.shared.sequence_course import load_task
from notebooks.shared.task_patterns import network_of

SENTENCES = 800
KEPT = ("commit", "date", "packages", "python", "seconds")


def padded(corpus: Corpus, side: str) -> torch.Tensor:
    rows = [torch.from_numpy(getattr(corpus, side)(n)) for n in range(len(corpus))]
    return pad_sequence(rows, batch_first=True, padding_value=-1).to(torch.int16)


@torch.no_grad()
def write(task: str, models: Path = Path("build/models"), folder: Path = zoo.FOLDER) -> Path:
    """The network of a task and its first sentences; NotMeasured where it has not been trained."""
    (asked,) = measurements(Config(task=task))
    recording = Store(models, trains=False).recording(asked.spec)
    network, own = network_of(recording, "trained"), load_task(asked.spec.resolved)
    unseen = collate(own.held_out, range(len(own.held_out)))
    right = network(unseen).logits.argmax(-1) == unseen.target_output
    history = {name: recording.history[name] for name in KEPT}
    accuracy = round(float(right[unseen.target_mask].float().mean()), 4)
    said = {
        "config": asdict(network.config),
        "words": {side: getattr(own, f"{side}_vocabulary").words for side in ("source", "target")},
        "provenance": {"spec": asked.spec.content, **history, "accuracy": accuracy},
    }
    corpus = own.train.subset(range(SENTENCES))
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    tensors |= {side: padded(corpus, side) for side in ("source", "target")}
    with atomic_path(folder / f"{task}.safetensors") as path:
        save_file(tensors, path, {"trained": json.dumps(said, sort_keys=True)})
    return folder / f"{task}.safetensors"


if __name__ == "__main__":
    print(write("reordering"))
