"""Train and measure where only numpy, torch, safetensors and jaxtyping are installed, and keep the answers.

    python -m companion.results.answer attend/temporal_share           all that the figure asks of its models
    python -m companion.results.answer scan-AED-gru-s0-a1b2c3d4e5f6    all that is asked of one run, by its id
    python -m companion.results.answer '{"training": "multi_head", "settings": {"seed": 3}}'    only trains it

Of a run that no figure asks for, the archive's own measurements are made again.

Answers are some kilobytes a model and stand in for it wherever the book is built. Nothing needs anything of
the rest, so it runs on as many machines as there are, and what one has answered is not asked again.
"""

import argparse
import sys
import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import torch

from attnlib.errors import BadInput, UnknownName
from companion.paths import ARCHIVE, MEASUREMENTS, ROOT
from companion.results import registry
from companion.runs.archive import Archive, Run, spec_of, why_unknown
from companion.runs.command import errors_in_a_line, parser_of
from companion.runs.identity import Spec, digest, hashable, read_spec, run_id
from companion.runs.measure import Measurement
from companion.runs.store import Store


def report_progress():
    """A store's report: a line on standard error for each network trained, and one a minute until then."""
    last = time.monotonic()

    def report(spec: Spec, step: int, steps: int, loss: float) -> None:
        nonlocal last
        if step >= steps or time.monotonic() - last > 60:
            last = time.monotonic()
            print(f"{spec.setting}: step {step} of {steps}, loss {loss:.4f}", file=sys.stderr, flush=True)

    return report


def measurements_of_figure(name: str, profile: str) -> list[Measurement]:
    """What the experiment of a figure asks at a profile; nothing where it does not have the profile."""
    module = registry.load(name)
    return list(module.measurements(module.PROFILES[profile])) if profile in module.PROFILES else []


def all_measurements(profile: str) -> dict[str, list[Measurement]]:
    """What the experiments with this profile ask, by the key of the model."""
    every = dict.fromkeys(
        measurement for name in registry.names() for measurement in measurements_of_figure(name, profile)
    )
    by_model: dict[str, list[Measurement]] = {}
    for measurement in every:
        by_model.setdefault(run_id(measurement.spec), []).append(measurement)
    return by_model


def unanswered(profile: str, archive: Archive) -> dict[str, str]:
    """The models that lack an answer in an archive, with a hash of what is measured of them."""
    lacking = {}
    for key, measurements in all_measurements(profile).items():
        if any(archive.get(measurement) is None for measurement in measurements):
            lacking[key] = digest(sorted(measurement.id for measurement in measurements))
    return lacking


def archived_measurements(run: Run, known: Iterable[Measurement]) -> list[Measurement]:
    """Return what the archive has of a run, as measurements that can be made again at today's versions.

    Some networks are in the archive because they were chosen among, such as heads that were tried alone, or
    because a figure asked of them once. No figure names them today.

    Args:
        run: as the archive has it.
        known: measurements of any runs; the functions of the archived ones are found among them by name.

    Raises:
        BadInput: today's code does not make this run, or has none of its measurements.
    """
    if reason := why_unknown(run.line):
        raise BadInput(f"{run.id} is in the archive, but {reason}")
    functions = {measurement.name: measurement.measure for measurement in known}
    spec = spec_of(run.line)
    measurements = [
        Measurement(spec, functions[line["measure"]], _settings_of(line))
        for line in run.measured.values()
        if line["measure"] in functions and "with" not in line
    ]
    if not measurements:
        raise BadInput(f"{run.id} is in the archive, but nothing that was measured of it is measured today")
    return measurements


def _settings_of(line: dict) -> tuple[tuple[str, object], ...]:
    """Return the settings of an archived measurement, as :class:`Measurement` has them."""
    return tuple(sorted((name, hashable(value)) for name, value in line["settings"].items()))


def measurements_of_key(
    key: str, models: dict[str, list[Measurement]], archive: Archive
) -> list[Measurement]:
    """Return what is asked of the run with this key: by the figures, else by the archive.

    Args:
        key: the id of a run.
        models: what figures ask, by the key of the model.
        archive: of which runs are known that no figure asks for.

    Raises:
        UnknownName: neither figures nor archive have such a run.
        BadInput: see :func:`archived_measurements`.
    """
    if key in models:
        return models[key]
    runs = {run.id: run for run in archive.runs()}
    if key not in runs:
        raise UnknownName("figure or model", key, [*registry.names(), *models, *(runs.keys() - models)])
    return archived_measurements(runs[key], chain.from_iterable(models.values()))


def answer(wanted: list[str], profile: str, store: Store, published: Archive | None = None) -> None:
    """Answer for figures, keys of models, or specs as JSON; all are looked up before any is trained.

    Args:
        wanted: names of figures, keys of runs, or specs.
        profile: whose experiments ask.
        store: where models are trained and answers kept.
        published: the archive that knows runs which no figure asks for; the book's by default.
    """
    published = published or Archive(ARCHIVE)
    listed: dict[str, list[Measurement] | Spec] = {}
    models: dict[str, list[Measurement]] = {}
    for word in wanted:
        name = word.rpartition("/")[2]
        if word.startswith("{"):
            listed[word] = read_spec(word)
        elif name in registry.names():
            listed[word] = measurements_of_figure(name, profile)
        else:
            models = models or all_measurements(profile)
            listed[word] = measurements_of_key(word, models, published)
    for word, measurements in listed.items():
        if isinstance(measurements, list):
            for measurement in measurements:
                measurement.answer(store)
            print(f"{word}: {len(measurements)} answers")
        else:
            store.open(measurements)
            print(f"{run_id(measurements)}: trained")


def add_machine(parser: argparse.ArgumentParser, **defaults: str | Path) -> None:
    """Options that say where answers and models lie, and what computes."""
    parser.add_argument("--archive", help="folder of packed answers, which stand in for models")
    parser.add_argument("--answers", help="folder for new ones")
    parser.add_argument("--models", help="folder of trained models")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    text = "torch threads; numbers repeat for equal numbers of them"
    parser.add_argument("--threads", type=int, default=1, help=text)
    parser.set_defaults(**defaults)


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Parse, answer, and say how many answers there were; errors are one line and exit code 2."""
    parser = parser_of("companion.results.answer", __doc__)
    parser.add_argument("wanted", metavar="FIGURE|KEY|SPEC", nargs="+", help="several may be given")
    parser.add_argument("--profile", default="paper", help="whose experiments ask (default: paper)")
    add_machine(parser, archive=ARCHIVE, answers=MEASUREMENTS, models=ROOT / "build" / "models")
    options = parser.parse_args(arguments)
    torch.set_num_threads(max(1, options.threads))
    archive = Archive(options.archive, options.answers)
    store = Store(options.models, options.device, report_progress(), archive=archive)
    answer(options.wanted, options.profile, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
