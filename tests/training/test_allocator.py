"""Freed memory is kept where the C library can be told to."""

import platform
import subprocess
import sys

COUNT = """
import resource
import torch
from attnlib.training.allocator import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        blocks = [torch.ones(16_000_000) for _ in range(6)]
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
print(keep_freed_memory())
faults()  # the memory that is then kept
print(faults() < given_back / 10)
"""


def test_a_process_that_keeps_its_memory_gets_no_new_pages():
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    told, fewer = done.stdout.split()
    glibc = platform.libc_ver()[0] == "glibc"
    assert told == str(glibc)
    assert fewer == "True" or not glibc
