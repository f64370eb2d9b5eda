"""What benchmarks share: their command line, and ways to take a step timed in turns."""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context

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


def seconds(step: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long a step takes, by the clock or by :func:`time.process_time`."""
    began = clock()
    step()
    return clock() - began


def in_turns(
    makers: Mapping[str, Callable[[], Step]], rounds: int, *, threads: int, cpu_time: bool
) -> dict[str, list[float]]:
    """Seconds of every step of each way, after one that warms up; no one's settings are another's.

    Args:
        makers: functions of a module, or :func:`functools.partial` of such; each gives a step by its number
            and is called in a process of its own.
        cpu_time: processor time in place of the clock's.
    """
    context = get_context("spawn")
    clock = time.process_time if cpu_time else time.perf_counter
    with ExitStack() as processes:
        ways = {
            name: processes.enter_context(ProcessPoolExecutor(1, context, _make, (make, threads)))
            for name, make in makers.items()
        }
        times: dict[str, list[float]] = {name: [] for name in makers}
        for number in range(rounds + 1):
            for name, way in ways.items():
                time.sleep(REST)
                times[name].append(way.submit(_turn, number, clock).result())
    return {name: taken[1:] for name, taken in times.items()}


def _make(make: Callable[[], Step], threads: int) -> None:
    global _step  # of this process
    torch.set_num_threads(threads)
    _step = make()


def _turn(number: int, clock: Callable[[], float]) -> float:
    return seconds(lambda: _step(number), clock)


def quotient(ours: list[float], theirs: list[float]) -> str:
    """Ours / theirs of each turn: median and quartiles."""
    low, middle, high = statistics.quantiles((a / b for a, b in zip(ours, theirs, strict=True)), n=4)
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"
