"""What makes data may be rewritten as long as the data stay the same to the last byte.

``made.json`` has, of every function that makes the data of archived runs, a checksum of what it makes. The
record of a run names the task and its options, and the published files that are read: other data is another
task.
"""

import hashlib
import json
from dataclasses import fields
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from companion.data import labelled_sets, parallel, registry
from companion.data.labelled import WordRules, prepare
from companion.data.task import Task
from notebooks.shared.pieces import Pieces, piece_corpus
from tests.companion.data.data_builders import available


@cache
def raw_texts(name):
    return labelled_sets.SOURCES[name].read()


MADE_FIRST = json.loads(Path(__file__).with_name("made.json").read_text(encoding="utf-8"))
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
    "prepare": (lambda name: prepare(raw_texts(name), reading="published"), ("sst", "twenty_newsgroups")),
}
# Fields added since the checksums were made, and their values in all data of archived runs.
ADDED = {Task: {"text": None}, WordRules: {"any_script": False}}


def turned(gold):
    """Gold links as (target, source), which they were when the checksums were made."""
    return gold and [sorted((target, source) for source, target in links) for links in gold]


def plain(value):
    if isinstance(value, np.ndarray):
        return [str(value.dtype), hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, Pieces):
        return hashlib.sha256(value.proto).hexdigest()
    if isinstance(value, frozenset):
        return sorted(value)
    values = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Task):
        values["gold"] = turned(value.gold)
    added = ADDED.get(type(value), {}).items()
    return {name: value for name, value in values.items() if (name, value) not in added}


def checksum(name):
    make, arguments = MADE.get(name, (registry.load, (name,)))
    text = json.dumps([make(argument) for argument in arguments], default=plain, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.long
@pytest.mark.parametrize("symbol", MADE_FIRST)
def test_the_data_are_those_of_the_archived_runs(symbol):
    assert available(checksum, symbol.partition(":")[2]) == MADE_FIRST[symbol]
