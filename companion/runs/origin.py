"""Where a training, a measurement or a result comes from: commit, date, machine and packages."""

import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from companion.runs.fingerprint import ROOT

PACKAGES = ("attnlib", "torch", "numpy", "safetensors", "jaxtyping")


def origin(device: str, seconds: float) -> dict:
    """What varies between two runs of one input: what one needs to judge and repeat it."""
    edited = _git("status", "--porcelain", "--", "attnlib", "companion", "notebooks")  # what computes
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if edited is None else bool(edited),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else _cpu_name(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    with suppress(PackageNotFoundError):  # a checkout on the path, not installed
        return version(package)


def _git(*arguments: str) -> str | None:
    """Output of a git command in the project, or None where there is no repository or no git."""
    options = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 30, "check": True}
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(["git", *arguments], **options).stdout.strip()


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} × {len(names)}" if names else platform.machine()
