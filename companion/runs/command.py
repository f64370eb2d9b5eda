"""What the commands of runs and results share: ``python -m companion.runs.archive`` and its like."""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from functools import wraps

from attnlib.errors import line_of, stop_on_sigterm


def parser_of(module: str, description: str) -> ArgumentParser:
    return ArgumentParser(
        prog=f"python -m {module}", description=description, formatter_class=RawDescriptionHelpFormatter
    )


def errors_in_a_line(main: Callable[..., int]) -> Callable[..., int]:
    """What cannot be done, and what stops it, is said in a line, with exit code 2 (or 130, 143)."""

    @wraps(main)
    def guarded(arguments: list[str] | None = None) -> int:
        stop_on_sigterm()
        try:
            return main(arguments)
        except BaseException as error:
            if (line_and_code := line_of(error)) is None:
                raise
            line, code = line_and_code
            print(line, file=sys.stderr)
            return code

    return guarded
