"""Ways to take a step, each in a process of its own, timed in turns: no one's settings are another's."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping

import torch

REST = 0.03  # seconds between turns, until idle threads of the last one sleep


def in_turns(
    makers: Mapping[str, Callable[[], Callable[[int], object]]], rounds: int, *, threads: int, cpu_time: bool
) -> dict[str, list[float]]:
    """Seconds of every step of each way, after one that warms up.

    Args:
        makers: functions of a module, or :func:`functools.partial` of such; each gives a step by its number.
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


def quotient(ours: list[float], theirs: list[float]) -> str:
    """Ours / theirs of each turn: median and quartiles."""
    low, middle, high = statistics.quantiles((a / b for a, b in zip(ours, theirs, strict=True)), n=4)
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def _serve(line, make: Callable[[], Callable[[int], object]], threads: int, cpu_time: bool) -> None:
    torch.set_num_threads(threads)
    step = make()
    clock = time.process_time if cpu_time else time.perf_counter
    line.send("made")
    while (number := line.recv()) is not None:
        began = clock()
        step(number)
        line.send(clock() - began)
