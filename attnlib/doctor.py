"""The command ``attnlib doctor``: which parts of library and book work here, and how to get the others."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec


@dataclass(frozen=True)
class Finding:
    """A part of library or book, and what is missing for it.

    Attributes:
        name: of the part.
        purpose: what the part is needed for.
        missing: what is missing, in words; empty if nothing is.
        remedy: how to get what is missing, a command or a sentence.

    Example:
        >>> Finding("plots", "pictures", "pandas", remedy="pip install pandas").line
        'plots: missing pandas, needed for pictures: pip install pandas'
    """

    name: str
    purpose: str
    missing: str
    _: KW_ONLY
    remedy: str = ""

    @property
    def line(self) -> str:
        """The finding in a line."""
        if not self.missing:
            return f"{self.name}: all there, for {self.purpose}"
        return f"{self.name}: missing {self.missing}, needed for {self.purpose}: {self.remedy}"


# Extras of the package: what each is for, and the modules by which it is known.
_EXTRAS = {
    "hf": ("models of Hugging Face", ("transformers", "sentencepiece", "google.protobuf")),
    "plots": ("pictures and tables of an analysis", ("matplotlib", "pandas")),
    "fast": ("large analyses in one reading; not needed otherwise", ("numba",)),
    "text": ("tokenizers of your own texts, BLEU", ("sentencepiece", "sacrebleu", "regex")),
}

_PACKAGES = {"google.protobuf": "protobuf"}  # packages whose module has another name


def findings_of_library() -> list[Finding]:
    """Look for the packages of each extra, without importing any.

    Returns:
        A finding for the library, and one for each extra.

    Example:
        >>> [finding.name for finding in findings_of_library()]
        ['attnlib', 'extra hf', 'extra plots', 'extra fast', 'extra text']
    """
    findings = [Finding("attnlib", f"the library, version {_version()}", "")]
    for extra, (purpose, modules) in _EXTRAS.items():
        missing: list[str] = [_package_of(module) for module in modules if not _is_installed(module)]
        command = f"pip install 'attnlib[{extra}]', or in a checkout pip install -e '.[{extra}]'"
        findings.append(Finding(f"extra {extra}", purpose, ", ".join(missing), remedy=command))
    return findings


def _package_of(module: str) -> str:
    """Return the name by which a module is installed."""
    return _PACKAGES.get(module, module)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in is missing
        return False


def _version() -> str:
    try:
        return version("attnlib")
    except PackageNotFoundError:
        return "of a checkout that is not installed"


def doctor_command(others: Iterable[Finding] = ()) -> None:
    """Print a line for each finding of the library and of what builds on it, and how many are incomplete.

    Args:
        others: findings of what builds on the library.

    Example:
        >>> doctor_command([Finding("fonts", "pictures", "Inter", remedy="install it")])  # doctest: +ELLIPSIS
        attnlib: all there, for the library, version ...
        extra hf: ...
        fonts: missing Inter, needed for pictures: install it
        ... of 6 are not complete
    """
    findings = [*findings_of_library(), *others]
    for finding in findings:
        print(finding.line)
    missing = sum(bool(finding.missing) for finding in findings)
    print("nothing is missing" if not missing else f"{missing} of {len(findings)} are not complete")
