"""The paper profile, killed at work, goes on to the bytes that it gives where nobody kills it."""

import re
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.companion.book.book_builders import checkout_of_two, copied, killed, output_of
from tests.e2e.cluster.slurm import ON_SLURM, SOON, with_one_killed

pytestmark = pytest.mark.long

MAKE = ["make", "--file", "Makefile", "paper", "JOBS=1"]
RESULT = "results/paper/temporal_share.json"


def checkout_with_environment(folder: Path) -> Path:
    """A checkout of two networks in which ``make`` finds what it would install."""
    copied(checkout_of_two(folder), "Makefile", "requirements.lock")
    (folder / ".venv").mkdir()
    for part in ("bin", "lib", "pyvenv.cfg"):
        (folder / ".venv" / part).symlink_to(Path(sys.prefix) / part)
    (folder / ".venv" / ".installed").touch()  # as `make install` leaves it
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> bytes:
    """The result of the same command that nobody killed."""
    folder = checkout_with_environment(tmp_path_factory.mktemp("undisturbed"))
    output_of(MAKE, folder, PYTHONPATH=str(folder))
    return (folder / RESULT).read_bytes()


def test_make_paper_goes_on_after_a_kill_to_the_same_bytes(undisturbed, tmp_path):
    """Killed while the second of two networks trains."""
    folder = checkout_with_environment(tmp_path)
    variables = {"PYTHONPATH": str(folder)}
    locks = partial(folder.glob, "build/models/*/.lock")
    killed(MAKE, folder, lambda: len([*locks()]) == 2, **variables)
    assert not (folder / RESULT).exists()
    output_of(MAKE, folder, **variables)
    assert (folder / RESULT).read_bytes() == undisturbed


@ON_SLURM
def test_the_paper_profile_survives_a_killed_job_with_the_same_numbers(undisturbed, cluster, tmp_path):
    checkout = checkout_of_two(tmp_path)
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/slurm", *SOON, "paper"]
    variables = cluster | {"PYTHONPATH": str(checkout), "ATTNLIB_ROOT": str(checkout)}
    training = "build/models/*/.lock", "-m", "companion.results.answer"
    output, code = with_one_killed(command, checkout, variables, *training)
    assert code == 0, output
    submitted = set(re.findall(r"SLURM jobid (\d+)", output))
    assert len(submitted) == 4, output  # two networks, one of them twice, and the result
    assert (checkout / RESULT).read_bytes() == undisturbed
