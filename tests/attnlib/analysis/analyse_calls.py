"""Calls of ``attnlib analyse``, and what they leave behind."""

import csv

from typer.testing import CliRunner

from attnlib.cli import app


def attnlib(*words):
    return CliRunner().invoke(app, ["analyse", *map(str, words)], env={"COLUMNS": "200"})


def given(corpus, out, *more):
    text = "--source", corpus / "a.txt", "--target", corpus / "b.txt"
    sizes = "--batch-size", 4, "--every", 3, "--probed", 1
    return "--model", corpus / "tiny", *text, "--out", out, *sizes, *more


def analysed(corpus, out, *more):
    done = attnlib(*given(corpus, out, *more))
    assert done.exit_code == 0, done.output
    return done


TEXTS = ("kind", "term", "states")


def table_of(out, name="heads"):
    with (out / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [
            {key: value if key in TEXTS else float(value or "nan") for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def refused(words, message):
    """One line, but for bars of progress and what it takes, and exit code 2."""
    done = attnlib(*words)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    bars = ("Loading weights", "first reading", "second reading", "beside the model")
    said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(bars)]
    assert len(said) == 1, said
    assert said[0].startswith("error: ")
    assert message in said[0]
