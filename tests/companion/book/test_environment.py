"""The places that name packages agree: pyproject, the lock, environment.yml, the Makefile."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
PYTHONS = ("3.11.9", "3.12.4", "3.13.1")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def declared() -> dict[str, Requirement]:
    project = PYPROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [Requirement(line) for lines in lists for line in lines]
    # A package that two extras need has one range in both.
    assert len({str(requirement) for requirement in requirements}) == len({r.name for r in requirements})
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


@pytest.fixture(scope="module")
def lock() -> str:
    return (ROOT / "requirements.lock").read_text(encoding="utf-8")


def locked(lock: str) -> list[Requirement]:
    return [Requirement(line) for line in re.findall(r"^[A-Za-z0-9].*?(?= \\$)", lock, re.MULTILINE)]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_one_version_of_everything_for_every_python(declared, lock, python):
    environment = {"python_version": python.rpartition(".")[0], "python_full_version": python}
    pinned: dict[str, str] = {}
    for requirement in locked(lock):
        linux = {"sys_platform": "linux", "platform_machine": "x86_64"}
        if requirement.marker is None or requirement.marker.evaluate(environment | linux):
            name = canonicalize_name(requirement.name)
            assert name not in pinned, f"{name} twice for Python {python}"
            pinned[name] = str(requirement.specifier).removeprefix("==")
    for name, requirement in declared.items():
        if name != "torch":
            assert requirement.specifier.contains(pinned[name]), (
                f"{requirement} but the lock has {pinned[name]}"
            )


def test_the_lock_is_hashed_and_leaves_torch_and_its_gpu_packages_out(lock):
    entries = re.split(r"\n(?=\S)", lock.strip())
    for entry in entries:
        assert entry.startswith("#") or "--hash=sha256:" in entry, entry[:80]
    names = {canonicalize_name(requirement.name) for requirement in locked(lock)}
    assert len(names) > 100
    assert not {name for name in names if name.startswith(("torch", "nvidia", "cuda", "triton", "attnlib"))}
    assert not re.search(r"https?:|index-url|find-links", lock)


def test_one_version_of_torch_everywhere(declared):
    pin = str(declared["torch"].specifier)
    (metadata,) = PYPROJECT["tool"]["uv"]["dependency-metadata"]
    assert f"=={metadata['version']}" == pin
    assert f"TORCH := torch{pin}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_environment_yml_says_what_pyproject_says(declared):
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    (pip,) = (entry["pip"] for entry in listed if isinstance(entry, dict))
    lines = [line for line in listed if isinstance(line, str)] + [line for line in pip if line[0] != "-"]
    found = {}
    for line in lines:
        requirement = Requirement(line)
        name = canonicalize_name(CONDA_NAMES.get(requirement.name, requirement.name))
        assert name not in found, f"{name} is listed twice"
        found[name] = requirement.specifier
    assert found.pop("python") == SpecifierSet(PYPROJECT["project"]["requires-python"])
    assert str(found.pop("setuptools")) == ">=77"
    del found["pip"]
    assert found == {name: requirement.specifier for name, requirement in declared.items()}
    assert "--editable ." in pip


def test_make_says_what_to_do_without_a_suitable_python(tmp_path):
    (tmp_path / "requirements.lock").touch()
    (tmp_path / "pyproject.toml").touch()
    done = subprocess.run(
        ["make", "--file", str(ROOT / "Makefile"), "install", "PYTHON="],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode != 0
    assert "no Python 3.11, 3.12 or 3.13" in done.stderr
    assert not (tmp_path / ".venv").exists()
