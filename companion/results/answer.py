"""Train and measure where only numpy, torch, safetensors and jaxtyping are installed, and keep the answers.

    python -m companion.results.answer attend/temporal_share           all that the figure asks of its models
    python -m companion.results.answer scan-AED-gru-s0-a1b2c3d4e5f6    all that is asked of one run, by its id
    python -m companion.results.answer '{"training": "multi_head", "settings": {"seed": 3}}'    only trains it

Answers are some kilobytes a model and stand in for it wherever the book is built. Nothing needs anything of
the rest, so it runs on as many machines as there are, and what one has answered is not asked again.
"""

import argparse
import sys
import time
from pathlib import Path

import torch

from attnlib.errors import UnknownName
from companion.paths import ARCHIVE, MEASUREMENTS, ROOT
from companion.results import registry
from companion.runs.archive import Archive
from companion.runs.command import errors_in_a_line, parser_of
from companion.runs.identity import Spec, digest, read_spec, run_id
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


def answer(wanted: list[str], profile: str, store: Store) -> None:
    """Answer for figures, keys of models, or specs as JSON; all are looked up before any is trained."""
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
            if word not in models:
                raise UnknownName("figure or model", word, [*registry.names(), *models])
            listed[word] = models[word]
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
