"""Why a build redoes what it redoes, in words that need no knowledge of Snakemake."""

import pytest

from companion.book.explained import explained

CHANGED = ", ".join(f"notebooks/{name}.py" for name in "dcbae")
HASHES = [
    "Reason: Params have changed since last execution:",
    "    Union of exclusive params before/now across all output:",
    "        before: '437854f5'",
    "        now: '84864dac'",
]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["Reason: Updated input files: a.md"], "changed: a.md"),
        ([f"Reason: Updated input files: {CHANGED}"],
         "changed: notebooks/a.py, notebooks/b.py, notebooks/c.py and 2 more"),
        (["Reason: Missing output files: build/a.ipynb"], "it was never made, or was deleted"),
        (HASHES, "the committed result of the paper profile changed"),
        (["Reason: Missing output files: x; Code has changed since last execution"],
         "it was never made, or was deleted; the rule of the Snakefile changed"),
        (["Reason: something new"], "something new"),
    ],
)  # fmt: skip
def test_a_reason_in_words(lines, words):
    log = [
        "Building DAG of jobs...",
        "[Sun Nov 29 2026]",
        "Job 3: make learn/agreement",
        *lines,
        "Job stats:",
        "total 1",
    ]
    assert list(explained(log)) == [f"make learn/agreement: {words}", "1 to be made; nothing was made now"]


def test_nothing_of_snakemake_is_shown():
    text = "\n".join(explained(["Job 1: make learn/agreement", *HASHES, "[Sun Nov 29 2026]"]))
    assert "437854f5" not in text


def test_a_run_of_one_s_own_has_its_name():
    log = [
        "Job 0: make --run build/runs/learn-agreement-1/run.json",
        "Reason: Missing output files: x",
        "[Sun",
    ]
    first, _ = explained(log)
    assert first == "make the run learn-agreement-1: it was never made, or was deleted"


def test_nothing_to_do():
    assert list(explained(["Nothing to be done (all requested files are present and up to date)."])) == [
        "everything is up to date"
    ]
