"""Files appear whole or not at all, whoever is killed and however full the disk is; one writer a folder."""

import os
import resource
import signal
import subprocess
import sys

import pytest

from attnlib.errors import BadInput
from attnlib.files import atomic_path, holder, locked, record_holder, write_text_atomic

WRITES = """
import os, sys, time
from attnlib.files import atomic_path, locked
from pathlib import Path
folder = Path(sys.argv[1])
with locked(folder), atomic_path(folder / "result") as temporary:
    temporary.write_text("half a result")
    print("now", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def writer(tmp_path):
    """A process that holds the lock of a folder, and has written half of a file."""
    with subprocess.Popen([sys.executable, "-c", WRITES, tmp_path], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"now\n"
        yield process
        process.kill()


def test_the_second_of_two_writers_is_told_who_the_first_is(writer, tmp_path):
    with pytest.raises(BadInput, match=rf"is being written by process {writer.pid}, since 20\d\d-.*: wait"):
        locked(tmp_path).__enter__()
    assert [path.suffix for path in tmp_path.glob(".result.*")] == [".tmp"]  # a living writer's stays


def test_what_a_killed_writer_left_goes_when_the_lock_is_next_taken(writer, tmp_path):
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert len(list(tmp_path.glob(".result.*.tmp"))) == 1
    with locked(tmp_path, wait=True), atomic_path(tmp_path / "other") as temporary:
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == [temporary.name]
        with locked(tmp_path, ".lock-of-another-kind"):
            assert temporary.is_file()  # this process lives
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", ".lock-of-another-kind", "other"]


def test_the_disk_is_told_of_a_file_and_then_of_its_name(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(os, "fsync", lambda handle: told.append(os.fstat(handle).st_ino))
    write_text_atomic(tmp_path / "a", "x")
    assert told == [path.stat().st_ino for path in (tmp_path / "a", tmp_path)]


def test_a_lock_is_free_again_and_names_the_child_that_inherits_it(tmp_path):
    for _ in range(2):
        with locked(tmp_path) as lock:
            record_holder(lock, 4711)
    assert holder(tmp_path).startswith("process 4711, since ")


def test_a_file_that_grows_too_large_is_refused_and_the_old_one_stays(tmp_path):
    write_text_atomic(tmp_path / "result", "whole")
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(BadInput, match="File too large; what was there before is untouched: make room"):
            write_text_atomic(tmp_path / "result", "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / "result").read_text() == "whole"
    assert os.listdir(tmp_path) == ["result"]


@pytest.mark.parametrize("path", ["file/below", "folder", "/proc/attnlib"])
def test_where_nothing_can_be_written_it_is_said_in_a_line(path, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInput, match=r"cannot write .*: .*choose a folder you may write to"):
        write_text_atomic(tmp_path / path, "")


def test_an_error_of_what_is_written_stays_what_it_is(tmp_path):
    with pytest.raises(ConnectionError), atomic_path(tmp_path / "download"):
        raise ConnectionError("no network")
    assert os.listdir(tmp_path) == []
