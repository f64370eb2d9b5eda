"""A cluster of one: munge, SLURM's controller and its node daemon on this machine, in a folder of their own.

``python -m tests.e2e.cluster.slurm`` starts one, says how it is reached, and ends it with Ctrl-C.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.companion.book.book_builders import at_work, until

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
PACKAGES = "munge slurmctld slurmd slurm-client"  # of Debian
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
SETTINGS = Path(__file__).with_suffix(".conf").read_text(encoding="utf-8")


def why_not() -> str:
    """Why there can be no cluster here; empty where there can."""
    if lacking := [name for name in NEEDED if not shutil.which(name, path=PATH)]:
        return f"no {', '.join(lacking)}: `apt-get install {PACKAGES}`"
    return "" if os.getuid() == 0 else "SLURM's daemons start jobs as root alone"


@contextmanager
def cluster() -> Iterator[dict[str, str]]:
    """What commands need in their environment to talk to it, while it runs."""
    with ExitStack() as running:
        folder = Path(running.enter_context(TemporaryDirectory(prefix="slurm-", dir="/tmp")))
        folder.chmod(0o755)
        (folder / "munge.key").write_bytes(os.urandom(64))
        (folder / "munge.key").chmod(0o400)
        host, settings = socket.gethostname().partition(".")[0], folder / "slurm.conf"
        with ExitStack() as taken:
            free = [taken.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
            ports = dict(
                zip(("controller", "node"), (listener.getsockname()[1] for listener in free), strict=True)
            )
        settings.write_text(SETTINGS.format(host=host, folder=folder, **ports))
        # Snakemake takes SLURM_CONF from the environment of its jobs, which then look below /etc.
        (folder / "srun").write_text(f'#!/bin/sh\nSLURM_CONF={settings} exec {shutil.which("srun")} "$@"\n')
        (folder / "srun").chmod(0o755)
        environment = os.environ | {"PATH": f"{folder}:{PATH}", "SLURM_CONF": str(settings)}
        munge = ["munged", "--foreground", "--force", *(f"--{name}-file={folder}/munge.{name}" for name in
                 ("key", "pid", "log", "seed")), f"--socket={folder}/munge.socket"]  # fmt: skip
        for command in (munge, ["slurmctld", "-D"], ["slurmd", "-D"]):
            log = running.enter_context((folder / f"{command[0]}.log").open("w"))
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            running.callback(process.wait, 30)
            running.callback(process.send_signal, signal.SIGTERM)
        end = time.monotonic() + 30
        while "idle" not in _said(["sinfo", "--noheader", "--format=%T"], environment):
            if time.monotonic() > end:
                raise TimeoutError("\n".join(path.read_text() for path in sorted(folder.glob("*.log"))))
            time.sleep(0.2)
        yield environment
        _said(["scancel", "--user=root"], environment)


# How a command is told to look soon after its jobs; sacct, which it asks by default, needs a database.
SOON = ["--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1"]
SOON += ["--latency-wait", "10", "--slurm-status-command", "squeue"]
ON_SLURM = pytest.mark.skipif(bool(why_not()), reason=why_not())


def with_one_killed(command, folder, environment, locks, *words) -> tuple[str, int]:
    """What a workflow says and how it ends, of which a job, a process of these words, is killed at work."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=folder, env=environment, **pipes)
    try:
        until(lambda: any(folder.glob(locks)), 300)
        os.kill(until(lambda: at_work(folder, *words))[0], signal.SIGKILL)
        return process.communicate(timeout=400)[0], process.returncode
    finally:
        process.kill()


def _said(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout


if __name__ == "__main__":
    if reason := why_not():
        raise SystemExit(reason)
    with cluster() as started:
        print(f"export SLURM_CONF={started['SLURM_CONF']}", flush=True)
        signal.pause()
