"""The trained networks that the package ships, one of each class of the library; they have learned.

python -m notebooks.beyond.your_own_model.zoo                     # all, of build/models or trained now
python -m notebooks.beyond.your_own_model.zoo reordering_luong    # into attnlib/zoo
"""

import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from attnlib import zoo
from attnlib.files import atomic_path
from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig, classification_loss, logit_of
from attnlib.models.corpus import Batch, Corpus, collate, training_batches
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.models.vocabulary import MARKS
from attnlib.sealed import save_file
from companion.data.labelled_sets import KNOWN_POLARITY, load_labelled
from companion.data.parallel import KNOWN_LEXICON, read_translation
from companion.runs.identity import Spec, run_record
from companion.runs.loop import Schedule, train_network
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, origin
from companion.runs.suite import spec_of
from notebooks.beyond.your_own_model.experiment import Config, measurements
from notebooks.shared.pieces import piece_corpus
from notebooks.shared.sequence_course import load_task
from notebooks.shared.task_patterns import network_of

SENTENCES = 800
ORIGIN = ("commit", "date", "packages", "python", "seconds")
Words = dict[str, list[str]]


@dataclass(frozen=True, eq=False)
class Made:
    """A trained network, sentences that it has and has not seen, the words of both sides, what made it."""

    network: nn.Module
    train: Corpus
    held_out: Corpus
    words: Words
    spec: dict
    history: dict


def of_spec(store: Store, spec: Spec) -> Made:
    if isinstance(spec, RunSpec):
        product, task = store.recording(spec), load_task(spec.resolved)
        network = network_of(product, "trained")
    else:
        product = store.model(spec)
        task, network = product.task, product.model
    words = {side: getattr(task, f"{side}_vocabulary").words for side in ("source", "target")}
    return Made(network, task.train, task.held_out, words, run_record(spec), product.history)


def translator() -> Made:
    """Without marks at the beginning of a source, which a corpus does not hold."""
    data = piece_corpus(read_translation(KNOWN_LEXICON), size=1_000, n_validation=300)
    config = TranslatorConfig(words=len(data.pieces), width=32)
    words = data.pieces.spell(range(len(data.pieces)))
    both = {"source": words, "target": words}
    return trained(BilinearTranslator, config, data.train, data.validation, both, steps=1_200)


def classifier() -> Made:
    """Of texts that end in a mark; the name of the label is what is to be written of each."""
    task = load_labelled(KNOWN_POLARITY)
    parts = []
    for part in (task.train, task.validation):
        texts, labels = (part.text(i) for i in range(len(part))), part.labels
        parts.append(Corpus.from_ids([*texts], [[len(MARKS) + int(label)] for label in labels]))
    words = {"source": task.vocabulary.words, "target": [*MARKS, *task.classes]}
    config = ClassifierConfig(len(task.vocabulary), embedding_width=32, width=32)
    return trained(AttentiveClassifier, config, *parts, words, steps=400)


def trained(
    kind: type[nn.Module], config: object, train: Corpus, held_out: Corpus, words: Words, *, steps: int
) -> Made:
    """The second paper's networks, whose recordings in the book hold what was seen of them."""
    schedule, began = Schedule(steps, seed=0, learning_rate=3e-3, checkpoints=(steps,)), time.monotonic()
    network = kind(config, torch.Generator().manual_seed(0))
    batches = list(islice(training_batches(train, 32, seed=0), steps))
    train_network(network, batches.__getitem__, loss, schedule, None, visit=lambda *_: None)
    spec = {"network": kind.__name__, "training": asdict(schedule)}
    return Made(network, train, held_out, words, spec, origin("cpu", time.monotonic() - began))


def label(batch: Batch) -> torch.Tensor:
    return (batch.target_output[:, 0] == len(MARKS) + 1).long()


def loss(network: nn.Module, batch: Batch) -> torch.Tensor:
    if isinstance(network, BilinearTranslator):
        return network.loss(batch)
    return classification_loss(logit_of(network(batch.source, batch.source_mask)), label(batch))


SHORT = {"min_length": 4, "max_length": 4, "n_words": 8, "n_held_out": 1200}
PHRASES = (("max_phrases", 3), ("min_phrases", 2), ("n_held_out", 300), ("n_train", 6_000))
LUONG = {"task": "reordering", "options": PHRASES, "width": 64, "steps": 400, "learning_rate": 3e-3}


def on_whole_sentences(spec: ModelSpec, **options: object) -> ModelSpec:
    """The network on its task's own lengths; the quick profile has shorter sentences."""
    return replace(spec, task_options=tuple(sorted(({"n_held_out": 400} | options).items())))


# Reordered phrases take a GRU more updates than the profile has; without attention it learns 4 words.
SPECS: dict[str, Spec] = {
    "reordering": measurements(Config())[0].spec,
    "reordering_AED": on_whole_sentences(spec_of("reordering_50", "AED", scale="quick", steps=1500), p=0.5),
    "reordering_luong": RunSpec.of("recurrent_sequences", seed=0, snapshots=5, judged=128, **LUONG),
    "one_to_one_AO": on_whole_sentences(spec_of("one_to_one", "AO", scale="quick", steps=240)),
    "one_to_one_VED": spec_of("one_to_one", "VED", scale="quick", steps=170, task_options=SHORT),
}
OTHERS = {"lexicon_translator": translator, "polarity_classifier": classifier}


@torch.no_grad()
def accuracy(network: nn.Module, batch: Batch) -> float:
    if isinstance(network, AttentiveClassifier):
        is_positive = logit_of(network(batch.source, batch.source_mask)) > 0
        return float((is_positive == label(batch)).float().mean())
    right = network(batch).logits.argmax(-1) == batch.target_output
    return float(right[batch.target_mask].float().mean())


def padded(corpus: Corpus, side: str) -> torch.Tensor:
    rows = [torch.from_numpy(getattr(corpus, side)(n)) for n in range(len(corpus))]
    return pad_sequence(rows, batch_first=True, padding_value=-1).to(torch.int16)


def write(name: str, models: Path = Path("build/models"), folder: Path = zoo.FOLDER) -> Path:
    """A network and the first sentences of its task; in half precision, but for the Transformer."""
    made = OTHERS[name]() if name in OTHERS else of_spec(Store(models), SPECS[name])
    half = name != "reordering"
    network = (made.network.half().float() if half else made.network).eval()
    unseen = collate(made.held_out, range(len(made.held_out)))
    provenance = {"spec": made.spec, **{key: made.history[key] for key in ORIGIN}}
    description = {
        "kind": type(network).__name__,
        "config": asdict(network.config),
        "words": made.words,
        "provenance": provenance | {"accuracy": round(accuracy(network, unseen), 4)},
    }
    corpus = made.train.subset(range(SENTENCES))
    tensors = {f"network.{k}": v.half() if half else v for k, v in network.state_dict().items()}
    tensors |= {side: padded(corpus, side) for side in ("source", "target")}
    with atomic_path(folder / f"{name}.safetensors") as path:
        save_file(tensors, path, {"trained": json.dumps(description, sort_keys=True)})
    return folder / f"{name}.safetensors"


if __name__ == "__main__":
    for name in sys.argv[1:] or (*SPECS, *OTHERS):
        print(write(name))
