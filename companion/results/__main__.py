"""Compute the result of an experiment, training what it lacks: ``python -m companion.results FIGURE``.

It runs where the book is built. On a machine with numpy, torch, safetensors and jaxtyping alone,
``python -m companion.results.answer FIGURE`` trains and measures; the answers are computed with here.
"""

import sys
from pathlib import Path

try:
    import pydantic  # noqa: F401  which settings of a run need, and profiles do not

    from companion.paths import ARCHIVE, MEASUREMENTS, PAPER, ROOT
    from companion.results.answer import add_machine, report_progress
    from companion.results.request import Request
    from companion.results.run import run
    from companion.runs.archive import Archive
    from companion.runs.command import errors_in_a_line, parser_of
except ModuleNotFoundError as error:
    sys.exit(
        f"error: {error.name} is not installed, and a result is computed where the book is built; here "
        "`python -m companion.results.answer FIGURE` trains its models and measures them"
    )


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Parse, run, and say where the result is; errors are one line and exit code 2."""
    parser = parser_of("companion.results", __doc__)
    parser.add_argument("--out", default=".", help="folder for the result (default: this folder)")
    add_machine(parser)
    text = "use what is answered; the result says what is missing"
    parser.add_argument("--no-training", action="store_true", help=text)
    text = "compute a result of the paper profile where the book has it, with its archive"
    parser.add_argument("--committed", action="store_true", help=text)
    request, options = Request.parsed(parser, arguments)
    if options.committed:
        options.out, options.models = PAPER, ROOT / "build" / "models"
        options.archive, options.answers = ARCHIVE, MEASUREMENTS
    result = run(
        request,
        out=options.out,
        models=Path(options.models or Path(options.out) / "models"),
        device=options.device,
        threads=options.threads,
        report=report_progress(),
        archive=Archive(options.archive, options.answers) if options.archive else None,
        trains=not options.no_training,
    )
    print(Path(options.out) / f"{result.experiment}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
