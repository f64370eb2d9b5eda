"""A figure that is asked for: what the command line was told, read once and handed down as it is."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from attnlib.errors import BadInput, check_known
from attnlib.files import write_json_atomic
from companion.results import registry
from companion.results.config import override


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

    @property
    def name(self) -> str:
        """Of its folder below ``build/runs``: equal requests are one run."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]
        return f"{self.figure.replace('/', '-')}-{digest}"

    def write(self, path: Path) -> None:
        """Record it for :meth:`read`; a file that says the same already is left as it is."""
        if not path.is_file() or self.read(path) != self:
            write_json_atomic(path, asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> "Request":
        """What :meth:`write` wrote. Raises BadInput: it is something else."""
        try:
            return cls(**json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise BadInput(f"{path} is not as `attnlib run` writes it ({error!r}): delete it") from error
