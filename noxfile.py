"""Test the library in separate environments: `pip install nox`, then `nox`, or `nox -s "lowest-3.11"`.

The book has one locked environment (requirements.lock). The library allows ranges, and these sessions
take both ends.
"""

import re
import tomllib
from pathlib import Path

import nox

PYTHONS = ["3.11", "3.12", "3.13"]
LIBRARY = ["tests/attnlib", "attnlib"]
TESTS = (
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "beartype",
    "psutil",
    "scipy",
    "beautifulsoup4",
    "pyyaml",
    "ipykernel",  # the report in a notebook
)
EXTRAS = ("hf", "plots")

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["newest"]


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """The newest versions that pyproject.toml allows."""
    session.install("--upgrade", f".[{','.join(EXTRAS)}]", *TESTS)
    _test(session)


@nox.session(python=PYTHONS)
def lowest(session: nox.Session) -> None:
    """The lowest versions that pyproject.toml allows, of what it names; needs uv."""
    session.install("--resolution", "lowest-direct", f".[{','.join(EXTRAS)}]", *_tests_at_lowest())
    _test(session)


@nox.session(python=PYTHONS[-1])
def next_major(session: nox.Session) -> None:
    """What pyproject.toml does not allow yet: fails where a ceiling still holds something up."""
    session.install("--upgrade", f".[{','.join(EXTRAS)}]", *TESTS)
    session.install("--upgrade", "--no-deps", "torch", "rich", "transformers")
    _test(session)


def _test(session: nox.Session) -> None:
    session.run("pytest", "-q", "-m", "not slow and not long", *LIBRARY, *session.posargs)


def _tests_at_lowest() -> list[str]:
    """Packages of the tests with their ranges, so that no version from years ago is chosen."""
    extras = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    lines = {line for extra in extras.values() for line in extra}
    return sorted(line for line in lines if re.split("[<>=]", line)[0] in TESTS)
