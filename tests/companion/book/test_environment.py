"""The places that name packages agree: pyproject, the lock, environment.yml, the Makefile."""

import re
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.companion.book.book_builders import ROOT, copied, output_of

CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
PYTHONS = ("3.11.9", "3.12.4", "3.13.1")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
UNLOCKED = {"real"}  # no build needs them
LISTS = (PROJECT["dependencies"], *(EXTRAS[name] for name in EXTRAS if name not in UNLOCKED))
REQUIREMENTS = [Requirement(line) for lines in LISTS for line in lines]
DECLARED = {canonicalize_name(requirement.name): requirement for requirement in REQUIREMENTS}
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
LOCKED = [Requirement(line) for line in re.findall(r"^[A-Za-z0-9].*?(?= \\$)", LOCK, re.MULTILINE)]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_one_version_of_everything_for_every_python(python):
    # A package that two extras need has one range in both.
    assert len(set(map(str, REQUIREMENTS))) == len(DECLARED)
    linux = {"sys_platform": "linux", "platform_machine": "x86_64"}
    here = linux | {"python_version": python.rpartition(".")[0], "python_full_version": python}
    locked = [
        requirement
        for requirement in LOCKED
        if requirement.marker is None or requirement.marker.evaluate(here)
    ]
    pinned = {
        canonicalize_name(requirement.name): str(requirement.specifier).removeprefix("==")
        for requirement in locked
    }
    assert len(pinned) == len(locked)
    for name in DECLARED.keys() - {"torch"}:
        assert DECLARED[name].specifier.contains(pinned[name]), (name, pinned[name])


def test_every_entry_of_the_lock_is_hashed():
    for entry in re.split(r"\n(?=\S)", LOCK.strip()):
        assert entry.startswith("#") or "--hash=sha256:" in entry, entry[:80]


def test_the_lock_leaves_out_torch_with_its_gpu_packages():
    names = {canonicalize_name(requirement.name) for requirement in LOCKED}
    assert len(names) > 100
    assert not {name for name in names if name.startswith(("torch", "nvidia", "cuda", "triton", "attnlib"))}


def test_the_lock_names_no_host():
    assert not re.search(r"https?:|index-url|find-links", LOCK)


(METADATA,) = PYPROJECT["tool"]["uv"]["dependency-metadata"]


def test_versions_elsewhere_are_those_of_pyproject():
    assert DECLARED["torch"].specifier.contains(METADATA["version"])
    assert f"TORCH := torch=={METADATA['version']}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    (pip,) = (entry["pip"] for entry in listed if isinstance(entry, dict))
    lines = [line for line in listed if isinstance(line, str)] + [line for line in pip if line[0] != "-"]
    named = {
        canonicalize_name(CONDA_NAMES.get(package.name, package.name)): package
        for package in map(Requirement, lines)
    }
    assert len(named) == len(lines)
    specifiers = {name: requirement.specifier for name, requirement in named.items()}
    assert specifiers.pop("python") == SpecifierSet(PROJECT["requires-python"])
    assert str(specifiers.pop("setuptools")) == ">=77"
    del specifiers["pip"]
    pinned = {"torch": SpecifierSet(f"=={METADATA['version']}")}
    assert specifiers == {name: requirement.specifier for name, requirement in DECLARED.items()} | pinned
    assert "--editable ." in pip


def test_make_says_what_to_do_without_a_suitable_python(tmp_path):
    copied(tmp_path, "requirements.lock", "pyproject.toml")
    make = ["make", "--file", str(ROOT / "Makefile"), "install", "PYTHON="]
    assert "no Python 3.11, 3.12 or 3.13" in output_of(make, tmp_path, code=2)
    assert not (tmp_path / ".venv").exists()


PUBLISHES = {
    ("release", "publish"): {"contents": "write"},
    ("site", "publish"): {"pages": "write", "id-token": "write"},
}


WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
}
every_workflow = pytest.mark.parametrize("name", WORKFLOWS)


def test_there_are_workflows():
    assert WORKFLOWS


@every_workflow
def test_workflows_pin_the_actions_that_they_run(name):
    for job in WORKFLOWS[name]["jobs"].values():
        for step in (step for step in job["steps"] if "uses" in step):
            _, _, digest = step["uses"].partition("@")
            assert re.fullmatch("[0-9a-f]{40}", digest), step


@every_workflow
def test_workflows_may_only_read(name):
    """What publishes may write in a job of its own, which runs nothing of the checkout."""
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    for job_name, job in workflow["jobs"].items():
        assert job.get("permissions") == PUBLISHES.get((name, job_name)), job_name


@every_workflow
def test_workflows_run_nothing_for_pull_requests_of_strangers(name):
    assert "pull_request_target" not in WORKFLOWS[name][True]  # `on`, as YAML 1.1 has it


@every_workflow
def test_workflows_leave_no_credentials_in_the_checkout(name):
    for job in WORKFLOWS[name]["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_dependabot_updates_actions_as_packages():
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"github-actions", "pip"}
