"""Where a number comes from: commit, machine, packages, time."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("attnlib", "torch", "numpy", "safetensors", "jaxtyping")


def provenance(device: str, seconds: float) -> dict:
    """What varies between two runs of one input: everything a reader needs to judge or repeat the run.

    Args:
        device: ``"cpu"`` or ``"cuda"``; the name of the hardware is looked up.
        seconds: wall-clock time of the computation, without what was already there (trained models, say).
    """
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": _dirty(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else _cpu_name(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # a checkout on the path, not installed
        return None


def _git(*arguments: str) -> str | None:
    """Output of a git command in the project, or None where there is no repository or no git."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _dirty() -> bool | None:
    """Whether the code differs from the commit; results and pages do not count, only what computes."""
    status = _git(
        "status", "--porcelain", "--", *(str(ROOT / room) for room in ("attnlib", "companion", "notebooks"))
    )
    return None if status is None else bool(status)


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} × {len(names)}" if names else platform.machine()
