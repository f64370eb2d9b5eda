"""The shapes in the signatures hold: some of this folder's tests again, every call checked by beartype."""

import subprocess
import sys
from pathlib import Path

FILES = ("attended", "model_pass", "modules", "tensors", "hugging_face")


def test_shapes_and_dtypes_in_signatures_are_true():
    """In a process of its own: checked signatures would hide our own errors for shapes that do not fit."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not refused"]
    command += ["--jaxtyping-packages=attnlib.adapters,beartype.beartype"]
    command += [str(Path(__file__).with_name(f"test_{name}.py")) for name in FILES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
