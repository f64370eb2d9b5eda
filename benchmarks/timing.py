"""What benchmarks share: their command line, ways to take a step timed in turns, and memory."""

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

REST = 0.03  # seconds between turns, until idle threads of the last one sleep
Step = Callable[[int], object]  # of its number


def command_line(description: str, **defaults: object) -> argparse.ArgumentParser:
    """A parser with an option for each default, of its type; a default of False is a switch."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in defaults.items():
        kind = {"action": "store_true"} if value is False else {"type": type(value), "default": value}
        parser.add_argument(f"--{name.replace('_', '-')}", **kind)
    return parser


def in_turns(
    makers: Mapping[str, Callable[[], Step]], rounds: int, *, threads: int, cpu_time: bool
) -> dict[str, list[float]]:
    """Seconds of every step of each way, after one that warms up; no one's settings are another's.

    Args:
        makers: functions of a module, or :func:`functools.partial` of such; each gives a step by its number
            and is called in a process of its own.
        cpu_time: processor time in place of the clock's.
    """
    context = multiprocessing.get_context("spawn")
    lines, processes = {}, []
    for name, make in makers.items():
        lines[name], other = context.Pipe()
        processes.append(context.Process(target=_serve, args=(other, make, threads, cpu_time), daemon=True))
        processes[-1].start()
        other.close()  # so that its end is noticed here
        lines[name].recv()  # made
    times: dict[str, list[float]] = {name: [] for name in makers}
    for number in range(rounds + 1):
        for name, line in lines.items():
            time.sleep(REST)
            line.send(number)
            taken = line.recv()
            if number:
                times[name].append(taken)
    for line, process in zip(lines.values(), processes, strict=True):
        line.send(None)
        process.join()
    return times


def _serve(line, make: Callable[[], Step], threads: int, cpu_time: bool) -> None:
    torch.set_num_threads(threads)
    step = make()
    clock = time.process_time if cpu_time else time.perf_counter
    line.send("made")
    while (number := line.recv()) is not None:
        began = clock()
        step(number)
        line.send(clock() - began)


def quotient(ours: list[float], theirs: list[float]) -> str:
    """Ours / theirs of each turn: median and quartiles."""
    low, middle, high = statistics.quantiles((a / b for a, b in zip(ours, theirs, strict=True)), n=4)
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def resident(which: str = "VmRSS") -> int:
    """Resident memory of this process now (VmRSS) or at most (VmHWM), in bytes; Linux only."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{which}:"))
