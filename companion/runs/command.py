"""What the commands of runs and results share: ``python -m companion.runs.answer`` and its like."""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from functools import wraps

from attnlib.errors import AttnlibError


def parser_of(module: str, told: str) -> ArgumentParser:
    return ArgumentParser(
        prog=f"python -m {module}", description=told, formatter_class=RawDescriptionHelpFormatter
    )


def errors_in_a_line(main: Callable[..., int]) -> Callable[..., int]:
    """What cannot be done is said in a line, with exit code 2."""

    @wraps(main)
    def guarded(arguments: list[str] | None = None) -> int:
        try:
            return main(arguments)
        except AttnlibError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2

    return guarded
