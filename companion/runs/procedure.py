"""A procedure's run as a product: made once for each procedure, settings and seed, shared by all who need it.

It lies beside the trained models, ``build/models/<id>/{recording.safetensors, history.json, run.json}``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from attnlib.errors import BadInput, check_known
from companion.runs import registry

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class RunSpec:
    """Everything that goes into a procedure's run; equal specs are the same run, made once.

    ``settings`` are what differs from the procedure's defaults, as sorted (name, value) pairs; see
    :meth:`of`. The seed is the procedure's own: parameters, data drawn and order of batches.
    """

    procedure: str
    settings: tuple[tuple[str, object], ...] = ()
    seed: int = 0

    @classmethod
    def of(cls, procedure: str, *, seed: int = 0, **settings: object) -> "RunSpec":
        """The spec of a run without values that are the procedure's defaults, so that equal runs are equal.

        Raises UnknownName, BadInput: a procedure, setting or value that cannot be used.
        """
        chosen = _settings(procedure, {**settings, "seed": seed})
        differs = {
            field.name: getattr(chosen, field.name)
            for field in fields(chosen)
            if field.name != "seed" and getattr(chosen, field.name) != field.default
        }
        return cls(procedure, tuple(sorted(differs.items())), seed)

    @property
    def resolved(self) -> object:
        """The procedure's ``Settings``, defaults filled in; errors as :meth:`of`."""
        return _settings(self.procedure, {**dict(self.settings), "seed": self.seed})

    @property
    def front(self) -> str:
        """The readable part of its names."""
        return f"{self.procedure}-s{self.seed}"

    @property
    def kind(self) -> str:
        """The spec in a few words, without its seed."""
        words = ((name, value if isinstance(value, tuple) else [value]) for name, value in self.settings)
        return " ".join([self.procedure, *(f"{name}={','.join(map(str, value))}" for name, value in words)])

    @property
    def setting(self) -> str:
        """The spec in a few words, for messages and progress bars."""
        return f"{self.kind} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Recording:
    """What a procedure recorded: named tensors, and the history of the run (seconds, threads, device)."""

    spec: RunSpec
    tensors: Mapping[str, "Tensor"]
    history: dict

    def __getitem__(self, name: str) -> "Tensor":
        if name not in self.tensors:
            raise BadInput(
                f"procedure {self.spec.procedure} records no {name!r}; "
                f"it records: {', '.join(sorted(self.tensors))}"
            )
        return self.tensors[name]


def _settings(procedure: str, given: dict[str, object]) -> object:
    """The ``Settings`` of a procedure with some of its defaults replaced."""
    settings = registry.load(procedure).Settings
    known = [field.name for field in fields(settings)]
    for name in given:
        check_known(f"setting of procedure {procedure}", name, known)
    try:
        return settings(**given)
    except TypeError as error:
        raise BadInput(
            f"procedure {procedure} cannot be set up: {error}; it has {', '.join(known)}"
        ) from error
