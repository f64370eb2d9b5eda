"""A new figure is a notebook, a folder beside it and its claims: it runs, is judged, and is in the book."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.companion.book.book_builders import copied

pytestmark = pytest.mark.slow
COIN = Path(__file__).with_name("coin")  # the figure, as it lies in a checkout
JUDGE_AND_STAGE = """
from pathlib import Path
from sphinx_external_toc.parsing import parse_toc_data
from companion.book.site import stage, table_of_contents
from companion.claims.verify import verify, verify_command
root = Path.cwd()
verify_command(root, accept=True)
print(*(row.verdict for row in verify(root, experiment="coin") if row.profile == "quick"))
pages = list(parse_toc_data(table_of_contents(root)))
print(pages.index("beyond/coin") - pages.index("beyond/along_training"))
print(pages.index("beyond/transformer_heads") - pages.index("beyond/coin"))
stage(root, root / "build" / "notebooks", root / "src")
print((root / "src" / "beyond" / "coin.ipynb").is_file())
"""


@pytest.fixture
def checkout(tmp_path):
    """A copy of what the book is made of, with the toy in it."""
    copied(tmp_path, "attnlib", "companion", "claims", "book", "notebooks")
    copied(tmp_path, "Snakefile", "_config.yml", "pyproject.toml")
    shutil.copytree(COIN, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_it_runs_is_judged_and_is_in_the_book(checkout):
    own = {"ATTNLIB_ROOT": str(checkout), "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}

    def python(*arguments):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=checkout, env=os.environ | own, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert python("-m", "companion.book.parameters", "beyond/coin") == []  # its cell is as the settings say
    python("-m", "companion.book.execute", "beyond/coin")
    result = json.loads((checkout / "build" / "results" / "quick" / "coin.json").read_text())
    assert 0.4 < result["values"]["heads"]["value"] < 0.6
    assert python("-c", JUDGE_AND_STAGE)[-4:] == ["reproduced", "1", "1", "True"]
    expected = json.loads((checkout / "claims" / "expected.json").read_text())
    assert expected["the-coin-shows-heads"] == {"quick": "reproduced"}
