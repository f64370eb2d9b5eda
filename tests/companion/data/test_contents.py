"""What makes data may be rewritten as long as the data stay the same to the last byte.

``contents.json`` has, of every function that makes the data of archived answers, a checksum of what it
makes, its hash today (see :mod:`companion.runs.fingerprint`) and the hash under which answers are archived.
So has what reads its own files again, since these have checksums: what went in comes out.
"""

import hashlib
import json
import tempfile
from dataclasses import fields
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch

from attnlib.decomposition import Components
from attnlib.training.course import Course, run_course
from companion.data import labelled_sets, parallel, registry
from companion.data.labelled import prepare
from companion.runs import fingerprint
from notebooks.shared.pieces import Pieces, piece_corpus
from notebooks.shared.snapshots import keep_if_best, save_snapshot, seen_where_best, stacked_snapshots
from tests.companion.data.data_builders import available


@cache
def raw_texts(name):
    return labelled_sets.SOURCES[name].read()


def through_files(what):
    """Small numbers that are exact on every processor, written and read."""
    with tempfile.TemporaryDirectory() as name:
        folder, network = Path(name), torch.nn.Linear(2, 1, bias=False)
        match what:
            case "components":
                states = torch.arange(24.0).reshape(4, 2, 3)
                tokens = torch.tensor([[0, 1], [1, 0], [2, 3], [3, 2]])
                whole = Components(4, 2, 3).update(states, tokens, torch.ones(4, 2, dtype=torch.bool))
                whole.save(folder / "sums")
                loaded = Components.load(folder / "sums")
                return [loaded.temporal.numpy(), loaded.input.numpy(), loaded.pair_counts.numpy()]
            case "course":
                visits, course = [], Course(4, seed=1, checkpoints=(0, 2, 4))
                arguments = (lambda step: torch.ones(1, 2), lambda model, batch: model(batch).sum(), course)
                for _ in range(2):  # the second finds all done
                    run_course(network, *arguments, folder, visit=lambda step, model: visits.append(step))
                return [visits, json.loads((folder / "visits.json").read_text())["content"]]
            case "snapshots":
                for step in (1, 2):
                    save_snapshot(folder, step, {"seen": torch.full((2,), step), "none": torch.empty(0)})
                return {key: value.numpy() for key, value in stacked_snapshots(folder, (1, 2)).items()}
            case "best":
                for step, quality in ((1, 0.5), (2, 0.75), (3, 0.25)):
                    torch.nn.init.constant_(network.weight, step)
                    groups = {group: quality for group in ("all", "selecting", "reporting")}
                    keep_if_best(folder, step, network, {"test": {"accuracy": groups}})
                see = lambda model, part: dict(model.state_dict())  # noqa: E731
                seen = seen_where_best(folder, network, (1, 2, 3), see)
                return {key: value.numpy() for key, value in seen.items()}


FILES = {
    "components": ("Components",),
    "course": ("_resume", "_visits_made"),
    "snapshots": ("save_snapshot", "stacked_snapshots"),
    "best": ("_notes", "keep_if_best", "seen_where_best"),
}
ENTRIES = json.loads(fingerprint.CONTENTS.read_text(encoding="utf-8"))
MADE = {
    "read_translation": (parallel.read_translation, ("known_lexicon", "multi30k_en_de", "iwslt14_de_en")),
    "load_labelled": (labelled_sets.load_labelled, ("known_polarity", "sst", "sms_spam", "ag_news")),
    "piece_corpus": (
        lambda name: piece_corpus(parallel.read_translation(name), size=500, n_train=2000, longest=40),
        ("known_lexicon", "multi30k_en_de"),
    ),
    "NAMES": (partial(getattr, parallel), ("NAMES",)),
    "SOURCES": (raw_texts, labelled_sets.names()[:-1]),  # the published ones
    "read_known_polarity": (lambda name: labelled_sets.read_known_polarity(), ("",)),
    "checksums": (labelled_sets.checksums, labelled_sets.names()),
    **{name: (through_files, (what,)) for what, names in FILES.items() for name in names},
    "fingerprint": (fingerprint.fingerprint, ("attnlib.files:rounded", "attnlib.training.evaluate:evaluate")),
    "prepare": (lambda name: prepare(raw_texts(name), reading="published"), ("sst", "twenty_newsgroups")),
}


def plain(value):
    if isinstance(value, np.ndarray):
        return [str(value.dtype), hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, Pieces):
        return hashlib.sha256(value.proto).hexdigest()
    if isinstance(value, frozenset):
        return sorted(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}


def checksum(name):
    make, arguments = MADE.get(name, (registry.load, (name,)))
    text = json.dumps([make(argument) for argument in arguments], default=plain, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.long
@pytest.mark.parametrize("symbol", ENTRIES)
def test_the_data_are_those_of_the_archived_answers(symbol):
    module, name = symbol.split(":")
    assert available(checksum, name) == ENTRIES[symbol]["makes"]
    form = fingerprint._form((module, name))
    today = fingerprint._hashed(form, {child: fingerprint._digest_of(child) for child in form.refers_to})
    # Where the code was rewritten and the checksum above still holds, write today's hash into contents.json.
    assert today == ENTRIES[symbol]["is"]
