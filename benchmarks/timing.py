"""What benchmarks share: their command line, and how long a call takes."""

import argparse
import time
from collections.abc import Callable


def command_line(description: str, **defaults: object) -> argparse.ArgumentParser:
    """A parser with an option for each default, of its type; a default of False is a switch."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in defaults.items():
        kind = {"action": "store_true"} if value is False else {"type": type(value), "default": value}
        parser.add_argument(f"--{name.replace('_', '-')}", **kind)
    return parser


def seconds(step: Callable[[], object]) -> float:
    """Of the processor that a step takes."""
    began = time.process_time()
    step()
    return time.process_time() - began
