"""The networks that run in the page: small, trained by one command, written with their components.

``python -m notebooks.attend.alignment_breakdown.networks`` writes a script of each, weights and components in
half precision, and ``networks.json``: what they are and how well they do, as rounded.
"""

import base64
import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from attnlib.decomposition import Parts, alignment_terms
from attnlib.files import write_text_atomic
from attnlib.models.corpus import Batch, Corpus, collate
from attnlib.trace import Trace
from companion.book.project import find_root
from companion.data.task import Task
from companion.runs.encoder_decoder import new_model
from companion.runs.evaluate import evaluate
from companion.runs.identity import run_id, run_record
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, load_task
from companion.runs.suite import spec_of, task_of
from notebooks.attend.alignment_breakdown.switches import ABOUT, NETWORKS, SUBSETS
from notebooks.shared.measure import fit_components, measure_alignment_terms
from notebooks.shared.style import task_name
from notebooks.shared.tasks.synthetic import interpret

UPDATES = {"scan": 3000, "reordering_50": 1500, "one_to_one": 600}  # the quick profile's are too few to copy
FIT_SAMPLES, EXAMPLES = 2_000, 12
SCRIPTS = Path("book/_files/instruments/networks")
SENTENCE = "jump left after walk twice"  # of the landing page


def export(task: str, architecture: str, store: Store, folder: Path) -> dict:
    trained = store.model(network_spec(task, architecture))
    words, corpus = trained.task.source_vocabulary, trained.task.held_out
    network = trained.model.half().float()
    trained = replace(trained, history={"held_out": evaluate(network, corpus)})
    fitted, tensors = fit_components(trained, FIT_SAMPLES), dict(network.state_dict())
    for side in ("encoder", "decoder"):
        components = getattr(fitted, side)
        tensors |= {f"{side}.temporal": components.temporal, f"{side}.chi": components.input}
    numbers = torch.cat([tensor.half().flatten() for tensor in tensors.values()]).numpy()
    held = {
        "name": f"{task}-{architecture}",
        "source": words.words,
        "target": trained.task.target_vocabulary.words,
        "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "half": base64.b64encode(numbers.tobytes()).decode(),
    }
    about = f"{run_id(trained.spec)} in half precision: see networks.json of the chapter"
    text = f"// {about}\nInstruments.give({json.dumps(held, ensure_ascii=False, separators=(',', ':'))});\n"
    write_text_atomic(folder / f"{task}-{architecture}.js", text)
    measured = measure_alignment_terms(trained, FIT_SAMPLES)
    chosen = range(0, len(corpus), max(1, len(corpus) // EXAMPLES))
    return {
        "task": task,
        "name": task_name(task),
        "architecture": architecture,
        "examples": [" ".join(words.decode(corpus.source(i).tolist())) for i in chosen][:EXAMPLES],
        "spec": run_record(trained.spec),
        "held_out": measured["quality"],
        "similarity": {subset: measured["substitution"][subset]["similarity"] for subset in SUBSETS},
    }


def network_spec(task: str, architecture: str) -> ModelSpec:
    """A network of the page: as the quick profile trains it, on the task's own number of held-out samples."""
    spec = spec_of(task, architecture, scale="quick", steps=UPDATES[task])
    return replace(spec, task_options=tuple(sorted(task_of(task)[1].items())))


def in_page(task: str, architecture: str) -> tuple[torch.nn.Module, Task, dict[str, torch.Tensor]]:
    """A network as its script in the page has it, its task, and the tables of its components."""
    text = (find_root() / SCRIPTS / f"{task}-{architecture}.js").read_text(encoding="utf-8")
    held = json.loads(re.search(r"\{.*\}", text)[0])
    numbers = torch.frombuffer(bytearray(base64.b64decode(held["half"])), dtype=torch.float16).float()
    sizes = [torch.Size(shape).numel() for shape in held["shapes"].values()]
    parts = zip(held["shapes"].items(), numbers.split(sizes), strict=True)
    tensors = {name: part.view(shape) for (name, shape), part in parts}
    tables = {name: tensors.pop(name) for name in [*tensors] if name.endswith((".temporal", ".chi"))}
    spec = network_spec(task, architecture)
    network = new_model(spec, loaded := load_task(spec.task, spec.task_options))
    network.load_state_dict(tensors)
    return network.eval(), loaded, tables


def terms_of(trace: Trace, batch: Batch, tables: dict[str, torch.Tensor]) -> torch.Tensor:
    parts = []
    for side, states, tokens, mask in (
        ("decoder", trace.decoder_states, batch.target_input, batch.target_mask),
        ("encoder", trace.encoder_states, batch.source, batch.source_mask),
    ):
        temporal = tables[f"{side}.temporal"][: states.shape[1]].expand(states.shape)
        chi = tables[f"{side}.chi"][tokens]
        parts.append(Parts(temporal, chi, states - temporal - chi, mask=mask))
    return alignment_terms(*parts)


@torch.no_grad()
def switched_attention() -> tuple[list[str], list[str], torch.Tensor, torch.Tensor]:
    """Return the words, the actions and two attentions of the landing page's sentence.

    The first attention is the network's, the second that of the terms without a residual; both have the
    shape (actions, words).
    """
    network, task, tables = in_page("scan", "AED")
    words = SENTENCE.split()
    actions = interpret(words)  # which it writes
    pair = ([task.source_vocabulary.encode(words)], [task.target_vocabulary.encode(actions)])
    trace = network(batch := collate(Corpus.from_ids(*pair), [0]))
    without_residual = terms_of(trace, batch, tables)[:2, :2, 0].sum((0, 1)).softmax(-1)
    written = [action.removeprefix("I_").lower().replace("_", " ") for action in actions]
    return [*words, "end"], [*written, "end"], trace.attention[0], without_residual


def main() -> None:
    root = find_root()
    with TemporaryDirectory() as scratch:
        about = [export(*pair, Store(scratch), root / SCRIPTS) for pair in product(UPDATES, NETWORKS)]
    write_text_atomic(ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
