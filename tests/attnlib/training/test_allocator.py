"""Freed memory is kept where the C library can be told to."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import ctypes
import resource
from attnlib.training.allocator import keep_freed_memory

SIZE = 128 * 2**20  # bytes; glibc maps such a block, or cuts it off the end of its heap when freed
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        block = library.malloc(SIZE)
        library.memset(block, 1, SIZE)
        library.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
print(keep_freed_memory())
faults()  # the memory that is then kept
print(faults() < given_back / 10)
"""


@pytest.mark.slow
def test_a_process_that_keeps_its_memory_gets_no_new_pages():
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    told, fewer = done.stdout.split()
    glibc = platform.libc_ver()[0] == "glibc"
    assert told == str(glibc)
    assert fewer == "True" or not glibc
