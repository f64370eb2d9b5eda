"""What one sees of the package from outside: its names, and the shapes in its signatures."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import attnlib


def test_type_checkers_see_the_names_that_are_imported_on_first_use():
    tree = ast.parse(Path(attnlib.__file__).read_text(encoding="utf-8"))
    (block,) = (each for each in tree.body if isinstance(each, ast.If))
    seen = {alias.asname: each.module for each in block.body for alias in each.names}
    assert seen == attnlib._PUBLIC
    assert Path(attnlib.__file__).with_name("py.typed").is_file()
    for name in attnlib.__all__:
        assert getattr(attnlib, name).__doc__ or name == "__version__"


# The shapes hold: some tests of three folders again, every call checked by beartype.


LEFT_OUT = "refused arrays killed shards flipped warning every_precision rounding corpora"
SOME = " and ".join(f"not {word}" for word in LEFT_OUT.split())
HAND_WORKED = "hand_worked or dtype or mapped or unseen or average_attention"


@pytest.mark.long
@pytest.mark.parametrize(
    ("folders", "packages", "chosen"),
    [
        ("adapters analysis", "attnlib.adapters,attnlib.analysis,attnlib.decomposition.growing", SOME),
        ("decomposition", "attnlib.decomposition", HAND_WORKED),
    ],
)
def test_shapes_and_dtypes_in_signatures_are_true(folders, packages, chosen):
    """In a process of its own: checked signatures would hide our own errors for shapes that do not fit."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen]
    command += [f"--jaxtyping-packages={packages},beartype.beartype"]
    command += [str(Path(__file__).parent / folder) for folder in folders.split()]
    command += [f"--ignore-glob=*test_{skipped}.py" for skipped in ("command", "report")]  # of words, files
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
