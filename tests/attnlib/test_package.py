"""What one sees of the package from outside: its names, and the shapes in its signatures."""

import ast
import compileall
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attnlib

ROOT = Path(attnlib.__file__).parents[1]
CHECKER = "tests.attnlib.signature_checker"


def test_type_checkers_see_the_names_that_are_imported_on_first_use():
    tree = ast.parse(Path(attnlib.__file__).read_text(encoding="utf-8"))
    (block,) = (statement for statement in tree.body if isinstance(statement, ast.If))
    seen = {alias.asname: statement.module for statement in block.body for alias in statement.names}
    assert seen == attnlib._PUBLIC
    assert Path(attnlib.__file__).with_name("py.typed").is_file()
    for name in attnlib.__all__:
        assert getattr(attnlib, name).__doc__ or name == "__version__"


def fresh(code):
    """What a new process prints, in which nothing is imported yet."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_every_module_of_the_package_is_an_attribute():
    names = {path.stem for path in Path(attnlib.__file__).parent.iterdir() if path.suffix == ".py"}
    names |= {path.parent.name for path in Path(attnlib.__file__).parent.glob("*/__init__.py")}
    assert set(attnlib._SUBMODULES) == names - {"__init__"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["decomposition", "zoo", "errors"])
def test_a_submodule_is_an_attribute_without_an_import_of_its_own(name):
    assert fresh(f"import attnlib; print(attnlib.{name}.__name__)") == f"attnlib.{name}"


@pytest.mark.slow
def test_a_name_is_looked_up_once():
    assert fresh("import attnlib; attnlib.ModelConfig; print('ModelConfig' in vars(attnlib))") == "True"


@pytest.mark.slow
def test_importing_the_package_does_not_import_torch():
    assert fresh("import attnlib, sys; print('torch' in sys.modules)") == "False"


@pytest.mark.slow
def test_the_package_works_without_its_sources(tmp_path):
    folder = shutil.copytree(Path(attnlib.__file__).parent, tmp_path / "attnlib")
    compileall.compile_dir(folder, legacy=True, quiet=1, maxlevels=0)
    (folder / "__init__.py").unlink()
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import attnlib; print(attnlib.__file__)"
    assert fresh(f"{code}; attnlib.ModelConfig") == str(folder / "__init__.pyc")


# The shapes hold: tests marked `signatures` again, every array in every call checked.


@pytest.fixture(scope="module")
def checked_run(tmp_path_factory):
    """How these tests ended, and the names of public functions with shapes: all, and those not called.

    In a process of its own: checked signatures would hide our own errors for shapes that do not fit.
    """
    names = tmp_path_factory.mktemp("signatures") / "names.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "signatures"]
    command += ["--hypothesis-profile", "few", "-p", CHECKER, f"--names-of-signatures={names}"]
    command += [f"--jaxtyping-packages=attnlib,{CHECKER}.checked", "tests/attnlib"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    return done, json.loads(names.read_text(encoding="utf-8")) if names.is_file() else None


@pytest.mark.long
def test_signatures_are_true(checked_run):
    done, _ = checked_run
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.long
def test_every_public_function_with_shapes_is_called_while_they_are_checked(checked_run):
    _, names = checked_run
    assert names["not called"] == [], "mark a test that calls it with `signatures`"
    assert len(names["with shapes"]) > 200
