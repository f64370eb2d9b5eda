"""Files appear whole or not at all, have one writer a folder, and are read as they were written."""

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import torch
from filelock import lock_descriptor
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load as any_reader

from attnlib import Components, files, sealed
from attnlib.errors import BadInput, CorruptFile
from attnlib.files import atomic_path, holder, locked, record_holder, write_text_atomic
from tests.attnlib.refusals import assert_refused, flip

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


def test_the_disk_is_told_of_a_file_before_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    write_text_atomic(tmp_path / "a", "x")
    assert synced == [path.stat().st_ino for path in (tmp_path / "a", tmp_path)]


def test_a_lock_is_free_again(tmp_path):
    for _ in range(2):
        with locked(tmp_path):
            pass


def test_a_lock_names_the_child_that_inherits_it(tmp_path):
    with locked(tmp_path) as lock:
        record_holder(lock, 4711)
    assert holder(tmp_path).startswith("process 4711, since ")


@contextmanager
def files_of_at_most(size):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_file_that_grows_too_large_is_refused(tmp_path):
    with (
        files_of_at_most(1000),
        pytest.raises(BadInput, match="File too large; what was there before is unchanged: make room"),
    ):
        write_text_atomic(tmp_path / "result", "x" * 2000)


def test_a_file_stays_where_its_successor_grows_too_large(tmp_path):
    write_text_atomic(tmp_path / "result", "whole")
    with files_of_at_most(1000), pytest.raises(BadInput):
        write_text_atomic(tmp_path / "result", "x" * 2000)
    assert (tmp_path / "result").read_text() == "whole"
    assert os.listdir(tmp_path) == ["result"]


@pytest.mark.parametrize("path", ["file/below", "folder", "/proc/attnlib"])
def test_where_nothing_can_be_written_it_is_said_in_a_line(path, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    message = "cannot write … choose a folder you may write to"
    assert_refused(lambda: write_text_atomic(tmp_path / path, ""), message)


def test_an_error_of_what_is_written_stays_what_it_is(tmp_path):
    with pytest.raises(ConnectionError), atomic_path(tmp_path / "download"):
        raise ConnectionError("no network")
    assert os.listdir(tmp_path) == []


# What is read is what was written: any bit that flips is noticed, and equal contents are equal bytes.


TENSORS = {
    "flags": torch.tensor([True, False, True]),
    "weights": torch.arange(6.0).reshape(3, 2).T,
    "counts": torch.tensor(7),
    "half": torch.tensor([1.5], dtype=torch.bfloat16),
    "none": torch.empty(0, 4),
}


def test_tensors_are_read_back_by_any_reader():
    content = sealed.save(TENSORS, {"method": "means", "format": "x"})
    torch.testing.assert_close(any_reader(content), TENSORS, rtol=0, atol=0)


@pytest.mark.parametrize("letters", range(1, 9))
def test_numbers_begin_at_a_multiple_of_eight_bytes(letters):
    """Other readers map them into memory as they lie there."""
    content = sealed.save({"n" * letters: torch.zeros(2)})
    header = int.from_bytes(content[:8], "little")  # bytes
    assert header % 8 == 0
    assert len(content) == 8 + header + 2 * 4


def test_tensors_in_any_order_are_the_same_bytes():
    content = sealed.save(TENSORS, {"method": "means", "format": "x"})
    assert sealed.save(dict(reversed(TENSORS.items())), {"format": "x", "method": "means"}) == content


def test_a_file_of_tensors_has_the_bytes_of_its_content(tmp_path):
    sealed.save_file(TENSORS, tmp_path / "t", {"method": "means", "format": "x"})
    assert (tmp_path / "t").read_bytes() == sealed.save(TENSORS, {"method": "means", "format": "x"})
    torch.testing.assert_close(sealed.load_file(tmp_path / "t"), TENSORS, rtol=0, atol=0)


def components(folder):
    states = torch.arange(12.0).reshape(2, 2, 3)
    sums = Components(3, n_tokens=3, n_positions=2, method="least_squares")
    sums.update(states, torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 2, dtype=torch.bool)).save(folder / "c")
    return folder / "c", lambda path: Components.load(path).temporal


def tensors(folder):
    sealed.save_file({"a": torch.arange(3.0)}, folder / "t")
    return folder / "t", lambda path: sealed.load_file(path)["a"]


def record(folder):
    sealed.write_json_atomic(folder / "r", {"loss": [1.5, None, 1e-9], "what": "Ünï", "n": 2})
    return folder / "r", lambda path: sealed.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("written", [components, tensors, record])
def test_no_bit_of_a_file_flips_unnoticed(written, tmp_path):
    path, read = written(tmp_path)
    content = path.read_bytes()
    expected, used = read(path), 0
    for bit in range(0, 8 * len(content), 7):  # one or two of every byte
        path.write_bytes(content)
        flip(path, bit // 8, bit % 8)
        try:
            value = read(path)
        except (CorruptFile, UnicodeDecodeError):
            continue
        used += 1  # white space, or a letter of 1e-9
        assert torch.equal(value, expected) if isinstance(value, torch.Tensor) else value == expected
    assert used < len(content)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@pytest.mark.slow
@given(
    st.recursive(LEAVES, lambda values: st.lists(values) | st.dictionaries(st.text() | st.integers(), values))
)
def test_any_json_comes_back(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("sealed") / "j"
    plain = json.loads(json.dumps(content))
    sealed.write_json_atomic(path, content)
    assert sealed.loads(path.read_text(encoding="utf-8")) == plain
    if not isinstance(plain, dict) or not {"content", "seal"} & plain.keys():
        files.write_json_atomic(path, plain)  # from before there were seals
        assert sealed.loads(path.read_text(encoding="utf-8")) == plain


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"content": 1}', '{"seal": 1, "content": 1}'])
def test_what_is_cut_or_altered_is_refused(text):
    assert_refused(lambda: sealed.loads(text), "does not hold what was written there", CorruptFile)


def test_a_temporary_that_another_process_is_about_to_sweep_is_made_anew(tmp_path, monkeypatch):
    taken_by_the_sweeper = []

    def locked_by_the_sweeper_at_first(handle, *, blocking):
        if not taken_by_the_sweeper:
            taken_by_the_sweeper.extend(tmp_path.glob(".result.*.tmp"))
            return False
        return lock_descriptor(handle, blocking=blocking)

    monkeypatch.setattr(files, "lock_descriptor", locked_by_the_sweeper_at_first)
    with atomic_path(tmp_path / "result") as temporary:
        temporary.write_text("whole")
        taken_by_the_sweeper[0].unlink(missing_ok=True)
    assert (tmp_path / "result").read_text() == "whole"


SUMS = {
    "position_sums": torch.ones(2, 3, dtype=torch.float64),
    "token_sums": torch.ones(4, 3, dtype=torch.float64),
    "pair_counts": torch.ones(4, 2, dtype=torch.int64),
}


@pytest.mark.parametrize(
    ("altered", "message"),
    [
        ({"position_sums": SUMS["position_sums"] * torch.nan}, "not finite"),
        ({"pair_counts": -SUMS["pair_counts"]}, "negative counts"),
        ({"pair_counts": 0 * SUMS["pair_counts"]}, "unseen tokens"),
        ({"pair_counts": SUMS["pair_counts"].double()}, "counts must be int64"),
        ({"token_sums": SUMS["token_sums"].float()}, "sums float64"),
        ({"token_sums": SUMS["token_sums"][:3]}, "shapes or dtypes do not fit"),
        ({"position_sums": SUMS["position_sums"][:, :2]}, "shapes or dtypes do not fit"),
        ({"pair_counts": SUMS["pair_counts"][0]}, "shapes or dtypes do not fit"),
    ],
)
def test_sums_of_no_corpus_are_refused_though_their_checksum_is_right(altered, message, tmp_path):
    sealed.save_file(SUMS, path := tmp_path / "c", {"format": "attnlib.components/1"})
    assert Components.load(path).method == "means"
    sealed.save_file(SUMS | altered, path, {"format": "attnlib.components/1"})
    assert_refused(lambda: Components.load(path), message, CorruptFile)
