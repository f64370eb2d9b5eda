"""What a trained network is called: an id of the record of all that makes it.

The record of a run names the kind of training and its version, every setting with its value (the seed among
them), the task with every option, and the published files that are read, with their checksums::

    {"training": "translation", "version": 1,
     "settings": {"dataset": "multi30k_en_de", "seed": 0, …}, "data": {"multi30k/train.en": "9f2c…", …}}

The id, ``translation-s0-5f0c9b6a4d21``, is a readable front and a hash of the record. It names the folder of
the network in ``build/models`` and its lines in the archive. Code has no part in it: the version is an
integer beside the training, raised by hand when what it trains changes. A reader's own file counts by its
name and its content, wherever it lies.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

from attnlib.errors import AttnlibError, BadInput
from companion.data import registry as tasks
from companion.runs import registry as trainings
from companion.runs.procedure import RunSpec
from companion.runs.spec import ENCODER_DECODER, ModelSpec

Spec = ModelSpec | RunSpec


def run_id(spec: Spec) -> str:
    """Name a run.

    Raises:
        UnknownName: its task or training does not exist.
        DataUnavailable: one of the reader's own files is not there.
    """
    return f"{spec.front}-{digest(run_record(spec))}"


def run_record(spec: Spec) -> dict[str, object]:
    """Write down all that makes a run, as plain JSON; see the module. Errors as :func:`run_id`."""
    if isinstance(spec, ModelSpec):
        return plain(_encoder_decoder_record(spec))
    return plain(_training_record(spec))


def _encoder_decoder_record(spec: ModelSpec) -> dict[str, object]:
    from companion.runs import encoder_decoder

    given = dict(spec.task_options)
    settings = asdict(spec) | {"task_options": _without_folders(given, tasks.builder(spec.task))}
    record = {"training": ENCODER_DECODER, "version": encoder_decoder.VERSION, "settings": settings}
    return record | _task_record(spec.task, given)


def _training_record(spec: RunSpec) -> dict[str, object]:
    training = trainings.load(spec.procedure)
    settings = _without_folders(asdict(spec.resolved), training.Settings)
    record = {"training": spec.procedure, "version": training.VERSION, "settings": settings}
    if hasattr(training, "task_of"):
        name, options = training.task_of(spec.resolved)
        return record | _task_record(name, options)
    if hasattr(training, "checksums"):
        return record | {"data": training.checksums(spec.resolved)}
    return record | {"data": {}}


def _task_record(name: str, given: Mapping[str, object]) -> dict[str, object]:
    """The task with every option, and the checksums of the files that it reads."""
    options = {**tasks.options_of(name), **given}
    portable = _without_folders(options, tasks.builder(name))
    return {"task": {"name": name, "options": portable}, "data": tasks.checksums(name, given)}


def _without_folders(settings: Mapping[str, object], described_by: type | Callable) -> dict[str, object]:
    """The settings with the bare file name in place of each path: where files lie is no part of a run."""
    portable = dict(settings)
    for name in _paths_of(described_by):
        if portable.get(name):
            portable[name] = Path(str(portable[name])).name
    return portable


@cache
def _paths_of(described_by: type | Callable) -> tuple[str, ...]:
    """Names of the settings or arguments whose type says that they may be a path."""
    hints = get_type_hints(described_by)
    return tuple(name for name, hint in hints.items() if Path in (hint, *get_args(hint)))


def read_spec(text: str) -> Spec:
    """Make a spec of JSON that names a training and its settings; defaults fill in what is left out.

    >>> read_spec('{"training": "multi_head", "settings": {"seed": 3}}').setting
    'multi_head seed 3'

    Raises:
        BadInput: the text is no such JSON, or a setting has a value that cannot be used.
        UnknownName: there is no such training or setting.
    """
    try:
        content = json.loads(text)
        training, settings = content["training"], dict(content.get("settings", {}))
        if training != ENCODER_DECODER:
            return RunSpec.of(training, **{name: hashable(value) for name, value in settings.items()})
        settings["task_options"] = tuple(sorted(dict(settings.get("task_options", {})).items()))
        return ModelSpec(**settings)
    except AttnlibError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        expected = '{"training": "encoder_decoder", "settings": {"task": "scan", "architecture": "AED", …}}'
        raise BadInput(f"not the spec of a run ({error!r}); expected JSON such as {expected}") from error


def hashable(value: object) -> object:
    """Return a value of JSON with lists as tuples, all the way down."""
    return tuple(map(hashable, value)) if isinstance(value, list) else value


def plain(content: object) -> object:
    """The content as JSON holds it: tuples become lists, and paths text."""
    return json.loads(json.dumps(content, default=str))


def digest(content: object) -> str:
    """Twelve hex digits that tell contents apart; equal for contents that are equal as JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
