"""The line that says how far a build is, from the log of Snakemake."""

import io
import json

import pytest

from companion.book import progress
from companion.book.progress import Progress, last_seconds, note
from companion.results.request import Request

PLAN = ["figure     2", "site       1", "book       1", "total      4"]
FIRST = ["Job 1: make attend/readout", "Finished jobid: 1 (Rule: figure)"]
SECOND = ["Job 2: make attend/scan", "Finished jobid: 2 (Rule: figure)"]
SITE = ["Job 3: make site", "Finished jobid: 3 (Rule: site)"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def nothing_is_shipped(monkeypatch):
    monkeypatch.setattr(progress, "_shipped", dict)


def shown(build, lines, stream=None):
    stream = stream or io.StringIO()
    follower = Progress(build, at_once=1, stream=stream)
    for line in lines:
        follower.read(f"{line}\n")
    follower.close()
    return stream.getvalue()


def test_minutes_left_include_the_site(tmp_path):
    note(tmp_path, "attend/scan", 100)
    note(tmp_path, "site", 80)
    last = shown(tmp_path, PLAN + FIRST).splitlines()[-1]
    assert last == "1 of 2 figures, about 3 min left, the site included"


def test_the_first_job_that_starts_says_how_long_all_takes(tmp_path):
    note(tmp_path, "attend/readout", 100)
    assert shown(tmp_path, ["figure     1", FIRST[0]]) == "0 of 1 figures, about 2 min left\n"


RUN = "--run build/runs/attend-readout-seeds-1-abc/run.json"


def test_a_run_that_nobody_has_made_here_promises_no_time(tmp_path):
    note(tmp_path, "attend/readout", 10)
    text = shown(tmp_path, ["run_figure     1", f"Job 1: make {RUN}"])
    assert text == "0 of 1 figures, it has not run here before, so the time left is not known\n"


def test_a_run_that_was_made_here_goes_by_its_own_time(tmp_path):
    note(tmp_path, "attend/readout", 10)
    note(tmp_path, RUN, 100)
    assert shown(tmp_path, ["run_figure     1", f"Job 1: make {RUN}"]) == "0 of 1 figures, about 2 min left\n"


def test_a_time_of_elsewhere_presumes_that_networks_are_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_shipped", lambda: {"attend/readout": 10.0})
    text = shown(tmp_path, ["figure     1", FIRST[0]])
    assert text == "0 of 1 figures, less than a minute left if its networks are trained already\n"


def test_times_of_runs_are_not_those_of_the_book(tmp_path):
    assert Request("attend/readout", "quick", {"seeds": 1}).job.startswith("--run build/runs/attend-readout-")
    note(tmp_path, RUN, 6_000)
    note(tmp_path, "attend/scan", 60)
    note(tmp_path, "site", 60)
    last = shown(tmp_path, PLAN + FIRST).splitlines()[-1]
    assert last == "1 of 2 figures, about 2 min left, the site included"


def test_the_site_alone_is_a_minute(tmp_path):
    note(tmp_path, "site", 60)
    last = shown(tmp_path, PLAN + FIRST + SECOND).splitlines()[-1]
    assert last == "2 of 2 figures, about 1 min left, the site included"


def test_minutes_grow_with_what_jobs_take_here(tmp_path, monkeypatch):
    """A first build on a busy machine: its first figure takes eight times what it took elsewhere."""
    note(tmp_path, "attend/readout", 60)
    note(tmp_path, "attend/scan", 60)
    note(tmp_path, "site", 60)
    clock = iter([0, 0, 480, 480])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    last = shown(tmp_path, PLAN + FIRST).splitlines()[-1]
    assert last == "1 of 2 figures, about 16 min left, the site included"


def test_minutes_do_not_shrink_with_figures_that_were_only_drawn_anew(tmp_path, monkeypatch):
    for job in ("attend/readout", "attend/scan", "site"):
        note(tmp_path, job, 60)
    clock = iter([0, 0, 6, 6])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    last = shown(tmp_path, PLAN + FIRST).splitlines()[-1]
    assert last == "1 of 2 figures, about 2 min left, the site included"


def test_nothing_is_left_at_the_end(tmp_path):
    assert shown(tmp_path, PLAN + FIRST + SECOND + SITE).splitlines()[-1] == "2 of 2 figures"


def test_a_build_of_the_site_alone_says_so(tmp_path):
    assert shown(tmp_path, ["site   1", *SITE]).splitlines()[-1] == "the site is made"


def test_targets_that_make_nothing_are_not_counted(tmp_path):
    lines = [*PLAN, "Finished jobid: 0 (Rule: book)"]
    assert shown(tmp_path, lines) == ""


def test_a_terminal_has_one_line(tmp_path):
    text = shown(tmp_path, PLAN + FIRST + SECOND, Terminal())
    assert text.count("\n") == 1
    assert text.count("\r") == 3


@pytest.mark.parametrize("line", ["error: attend/scan: cell 3 failed", "downloading multi30k …"])
def test_what_a_reader_has_to_see_is_shown(tmp_path, line):
    assert f"{line}\n" in shown(tmp_path, [*PLAN, line])


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("Reason: Missing output files", id="a reason"),
        pytest.param("seed 0: step 5 of 5, loss 1.0", id="a loss"),
    ],
)
def test_lines_that_are_no_progress_are_not_shown(tmp_path, line):
    assert shown(tmp_path, [*PLAN, line]) == ""


def test_the_last_note_of_a_job_counts(tmp_path):
    note(tmp_path, "site", 80)
    note(tmp_path, "site", 40)
    assert last_seconds(tmp_path) == {"site": 40}


def test_a_note_that_was_cut_off_is_passed_over(tmp_path):
    note(tmp_path, "site", 80)
    with (tmp_path / progress.NOTES).open("a") as notes:
        notes.write('{"job": "attend')
    assert last_seconds(tmp_path) == {"site": 80}


def test_seconds_of_every_figure_are_shipped():
    from companion.book.project import Project, discover
    from companion.paths import ROOT

    shipped = json.loads(progress.SHIPPED.read_text(encoding="utf-8"))
    assert shipped.keys() == {*discover(Project(ROOT)), "site"}
