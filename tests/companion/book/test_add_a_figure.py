"""A new figure is a notebook, a folder beside it and its claims: it runs, is judged, and is in the book."""

import json
import os
import subprocess
import sys

import pytest

from tests.companion.book.book_builders import copied

pytestmark = pytest.mark.slow
EXPERIMENT = '''
"""How often a coin shows heads."""

import numpy as np

from companion.results.config import BaseConfig, Positive
from notebooks.shared.intervals import share_interval

PLACE = "a toy"
QUESTION = "Is the coin fair?"


class Config(BaseConfig):
    """Settings.

    Attributes:
        tosses: how often the coin is tossed.
    """

    tosses: Positive = 200


PROFILES = {"quick": Config(), "paper": Config(tosses=2_000)}


def measurements(config):
    return ()


def compute(config, store):
    shown = np.random.default_rng(0).random(config.tosses) < 0.5
    found = share_interval(int(shown.sum()), config.tosses)
    return {"heads": found.as_dict()}, {"tosses": [{"n": config.tosses}]}
'''
NOTEBOOK = """---
part: IV
order: 15
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A coin

**Is the coin fair?** It shows heads {num}`heads` of the time {verdict}`the-coin-shows-heads = reproduced`.

```{code-cell} python3
:tags: [parameters, remove-cell]

profile = "quick"
tosses = None  # how often the coin is tossed: 200; paper 2000
```

```{code-cell} python3
:tags: [hide-input]

from companion.book.notebook import open_page

page = open_page("beyond/coin", globals())
print(page.note())
```
"""
CLAIMS = """
paper: Coin
title: A toy
claims:
  - id: the-coin-shows-heads
    place: nowhere
    says: The coin shows heads at times.
    experiment: coin
    keys: [heads]
    judge: {kind: inequality, relation: ">", threshold: 0.1}
    profiles: [quick]
...
"""
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
    (tmp_path / "notebooks" / "beyond" / "coin").mkdir()
    (tmp_path / "notebooks" / "beyond" / "coin" / "experiment.py").write_text(EXPERIMENT.lstrip())
    (tmp_path / "notebooks" / "beyond" / "coin.md").write_text(NOTEBOOK)
    (tmp_path / "claims" / "coin.yaml").write_text(CLAIMS.lstrip())
    return tmp_path


def test_it_runs_is_judged_and_is_in_the_book(checkout):
    own = {"ATTNLIB_ROOT": str(checkout), "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}

    def python(*arguments):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=checkout, env=os.environ | own, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    python("-m", "companion.book.execute", "beyond/coin")
    result = json.loads((checkout / "build" / "results" / "quick" / "coin.json").read_text())
    assert 0.4 < result["values"]["heads"]["value"] < 0.6
    assert python("-c", JUDGE_AND_STAGE)[-4:] == ["reproduced", "1", "1", "True"]
    expected = json.loads((checkout / "claims" / "expected.json").read_text())
    assert expected["the-coin-shows-heads"] == {"quick": "reproduced"}
