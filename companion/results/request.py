"""A figure to make: what the command line was told, read once and handed down as it is, to jobs as words."""

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from attnlib.errors import BadInput, check_known
from attnlib.files import write_json_atomic
from companion.paths import RESULTS
from companion.results import registry
from companion.results.config import override, plain
from companion.runs.identity import digest, run_id
from companion.runs.measure import versions

MOST_LETTERS = 40  # of the parameters in the name of a folder


def _in_letters(value: object) -> str:
    """A setting in the name of a folder: lists joined, files without their folders."""
    if isinstance(value, list | tuple):
        return "-".join(map(_in_letters, value))
    return Path(str(value)).name


@dataclass(frozen=True)
class Request:
    """A figure by its id or experiment, and the settings that differ from the profile's: a ``run.json``."""

    figure: str
    profile: str = "quick"
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds = (self.figure, str), (self.profile, str), (self.parameters, Mapping)
        if not all(isinstance(given, kind) for given, kind in kinds):
            raise BadInput(f"no request: {self.figure!r}, {self.profile!r}, {self.parameters!r}")
        check_known("profile", self.profile, RESULTS)

    @property
    def experiment(self) -> str:
        """Name of the experiment: the last part of the figure's id."""
        return self.figure.rpartition("/")[2]

    @property
    def standard(self) -> Any:
        """The experiment's configuration at the profile. Raises UnknownName: there is no such."""
        profiles = registry.load(self.experiment).PROFILES
        check_known("profile", self.profile, profiles)
        return profiles[self.profile]

    @cached_property
    def config(self) -> Any:
        """The same with the parameters in their places. Raises BadInput: one that cannot be used."""
        return override(self.standard, dict(self.parameters))

    def needed(self) -> dict[str, object]:
        """Return what a result rests on: its settings, ids of its runs, and versions of its measurements.

        Errors as :func:`companion.runs.identity.run_id`, and BadInput for settings that cannot be used.
        """
        module = registry.load(self.experiment)
        return {
            "config": plain(self.config),
            "models": [run_id(spec) for spec in module.models(self.config)],
            "measured": versions(module.measurements(self.config)),
        }

    @property
    def name(self) -> str:
        """Of its folder below ``build/runs``, with the parameters that fit; equal requests are one run.

        >>> Request("attend/readout", "quick", {"task": ["scan"], "seeds": 1}).name.rpartition("-")[0]
        'attend-readout-seeds-1-task-scan'
        """
        figure = self.figure.replace("/", "-")
        words = [f"{name}-{_in_letters(value)}" for name, value in sorted(self.parameters.items())]
        settings = re.sub(r"[^A-Za-z0-9_.]+", "-", "-".join(words))[:MOST_LETTERS].strip("-.")
        return "-".join(filter(None, [figure, settings, digest(asdict(self))]))

    @property
    def folder(self) -> str:
        """Where its result goes in a checkout; one with parameters of its own has a folder to itself."""
        return f"build/runs/{self.name}" if self.parameters else RESULTS[self.profile]

    @property
    def job(self) -> str:
        """Name of the job that makes its figure, as the log of Snakemake has it.

        >>> Request("attend/readout").job, Request("attend/readout", "paper").job
        ('attend/readout', 'attend/readout --profile paper')
        """
        if self.profile == "quick" and not self.parameters:
            return self.figure
        return " ".join(self.words)

    @property
    def words(self) -> list[str]:
        """For the command line of a job, which :meth:`parsed` reads."""
        standard = [self.figure, "--profile", self.profile]
        return ["--run", f"{self.folder}/run.json"] if self.parameters else standard

    @classmethod
    def parsed(cls, parser: ArgumentParser, arguments: list[str] | None) -> tuple["Request", Namespace]:
        """What the command line of a job asks for, and the options that the parser has besides."""
        names = f"one of: {', '.join(registry.names())}"
        parser.add_argument("figure", metavar="FIGURE", nargs="?", help=names)
        parser.add_argument("--profile", default="quick", help="quick or paper (default: quick)")
        parser.add_argument("--run", metavar="RUN.JSON", help="what `attnlib run -p` left, in their place")
        given = parser.parse_args(arguments)
        if not (given.figure or given.run):
            parser.error("which figure? give its id, or --run RUN.JSON")
        return cls.read(given.run) if given.run else cls(given.figure, given.profile), given

    def as_text(self) -> str:
        """JSON that :meth:`of_text` reads: how a job hands a request down to a kernel."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> "Request":
        """What :meth:`as_text` wrote. Raises BadInput: it is something else."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError, RecursionError) as error:
            raise BadInput(f"no request: {text[:60]!r} ({error!r})") from error

    def write(self, path: Path) -> None:
        """Record it for :meth:`read`; a file that says the same already is left as it is."""
        if not path.is_file() or self.read(path) != self:
            write_json_atomic(path, asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> "Request":
        """What :meth:`write` wrote. Raises BadInput: it is something else."""
        try:
            return cls.of_text(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, BadInput) as error:
            raise BadInput(f"{path} is not as `attnlib run` writes it ({error}): delete it") from error
