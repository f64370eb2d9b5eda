"""The errors a user can meet. Each says what was given, what was expected, and the way out."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches


class AttnlibError(Exception):
    """Base of every error that attnlib raises on purpose; the command line prints it without a traceback."""


class BadInput(AttnlibError, ValueError):
    """An argument, parameter or file that cannot be used as it is."""


class UnknownName(BadInput):
    """A name that is not one of the known ones; the message offers the nearest.

    >>> str(UnknownName("task", "one_to_won", ["one_to_one", "scan"]))
    "no task 'one_to_won'; did you mean 'one_to_one'? Known: one_to_one, scan"
    """

    def __init__(self, kind: str, name: str, options: Iterable[str]):
        self.kind, self.name, self.options = kind, name, list(options)
        super().__init__(kind, name, self.options)

    def __str__(self) -> str:
        """The message, made when it is read: near names take long, and most such errors are caught."""
        near = get_close_matches(self.name, self.options, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        more = f", … ({len(self.options)} in all)" if len(self.options) > 30 else ""
        return f"no {self.kind} {self.name!r}{hint} Known: {', '.join(self.options[:30])}{more}"


class DataUnavailable(AttnlibError):
    """A data set that is neither in the local mirror nor in the cache."""


class CorruptFile(AttnlibError):
    """A file whose content is not what its checksum says."""


class Altered(CorruptFile):
    """A file that attnlib wrote itself, and that is not as it was written."""


class NotMeasured(AttnlibError):
    """A number that only training could give, where training was not asked for."""


class TrainingDiverged(AttnlibError):
    """A loss that is not finite; names the step, the seed and the setting."""


def check_known(kind: str, name: str, known: Collection[str]) -> None:
    """Raise UnknownName where a name is none of the known ones."""
    if name not in known:
        raise UnknownName(kind, name, known)


def check_at_least(least: int, settings: object, *names: str) -> None:
    """Raise BadInput where one of some settings is smaller; for ``__post_init__``."""
    for name in names:
        if getattr(settings, name) < least:
            raise BadInput(f"{name} is {getattr(settings, name)}; it must be at least {least}")
