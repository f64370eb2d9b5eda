"""A module forked by the server runs as if Python had been started for it."""

import os
import subprocess
import sys

import pytest

from companion.book import warm
from tests.companion.book.book_builders import until

pytestmark = pytest.mark.slow
CLIENT = [sys.executable, "-P", warm.__file__]
TOLD = """
import os, sys
if __name__ == "__main__":
    here = os.path.basename(os.getcwd())
    libraries = [name for name in ("torch", "pandas") if name in sys.modules]
    print(sys.argv[1:], sys.stdin.read(), here, os.environ["OWN"], libraries)
    print("said", file=sys.stderr)
    sys.exit(3)
"""


def test_streams_folder_environment_and_exit_code_are_the_callers(tmp_path):
    (tmp_path / "told.py").write_text(TOLD)
    own = {"PYTHONPATH": str(tmp_path), "OWN": "set"}

    def told() -> tuple[int, str, str]:
        asked = {"cwd": tmp_path, "env": os.environ | own, "input": "in"}
        done = subprocess.run([*CLIENT, "told", "a b", "c"], **asked, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    with warm.server():
        forked = told()
    assert forked == (3, f"['a b', 'c'] in {tmp_path.name} set ['torch']\n", "said\n")
    assert told() == (3, forked[1].replace("['torch']", "[]"), "said\n")  # Python anew


def test_one_whose_caller_is_killed_ends(tmp_path):
    (tmp_path / "slow.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)")
    with warm.server():
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        command = [*CLIENT, "slow"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as caller:
            forked = int(caller.stdout.readline())
            caller.kill()
            until(lambda: not os.path.exists(f"/proc/{forked}"))


def test_only_a_module_is_run_by_the_server():
    kernel = ["ipykernel_launcher", "-f", "connection.json"]
    assert warm.warm(["python", "-m", *kernel])[3:] == kernel
    assert warm.warm(["ruby", "kernel.rb"]) == ["ruby", "kernel.rb"]
