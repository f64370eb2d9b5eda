"""The shapes in the signatures hold: some tests of both folders again, every call checked by beartype."""

import subprocess
import sys
from pathlib import Path

import pytest

ADAPTERS = ("every_adapter", "model_pass", "modules", "tensors", "hugging_face")
ANALYSIS = ("term_sums", "average_attention", "fit_and_judge", "parts", "analyse")
SOME = "not refused and not killed and not shards and not flipped and not warning"


@pytest.mark.slow
def test_shapes_and_dtypes_in_signatures_are_true():
    """In a process of its own: checked signatures would hide our own errors for shapes that do not fit."""
    here = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", SOME]
    packages = "attnlib.adapters,attnlib.analysis,attnlib.decomposition.growing,beartype.beartype"
    command += [f"--jaxtyping-packages={packages}"]
    command += [str(here / f"test_{name}.py") for name in ADAPTERS]
    command += [str(here.with_name("analysis") / f"test_{name}.py") for name in ANALYSIS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
