"""The shapes in the signatures hold: some of this folder's tests again, every call checked by beartype."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_shapes_and_dtypes_in_signatures_are_true():
    """In a process of its own: checked signatures would hide our own errors for shapes that do not fit."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__).parent)]
    command += [f"--ignore={__file__}"]
    command += ["--jaxtyping-packages=attnlib.decomposition,beartype.beartype"]
    command += ["-k", "hand_worked or dtype or mapped or unseen or average_attention"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
