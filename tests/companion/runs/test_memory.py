"""A process that trains keeps what it frees."""

import platform
import subprocess
import sys

import pytest

from companion.runs.memory import keep_freed_memory
from companion.runs.store import Store

PAGE_FAULTS = """
import ctypes
import resource
from companion.runs.memory import keep_freed_memory

SIZE = 128 * 2**20  # bytes; glibc gives such a block pages of its own
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]

def page_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        block = library.malloc(SIZE)
        library.memset(block, 1, SIZE)
        library.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(page_faults())
keep_freed_memory()
page_faults()  # fetches the memory that is then kept
print(page_faults())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the setting")
def test_memory_that_was_freed_needs_no_new_pages():
    command = [sys.executable, "-c", PAGE_FAULTS]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    by_default, kept = map(int, completed.stdout.split())
    assert kept < by_default / 10


def test_other_c_libraries_are_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())  # knows no mallopt
    assert keep_freed_memory.__wrapped__() is False


def test_a_store_keeps_memory_before_it_trains(monkeypatch, tmp_path):
    class Called(Exception):
        pass

    def record_call():
        raise Called

    monkeypatch.setattr("companion.runs.store.keep_freed_memory", record_call)
    with pytest.raises(Called):
        Store(tmp_path)._make(None, tmp_path)
