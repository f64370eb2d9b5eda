"""Run an experiment where only numpy, torch, safetensors and jaxtyping are installed.

python -m companion.results alignment_breakdown --profile paper --out DIR
"""

import argparse
import sys
from pathlib import Path

import torch

from attnlib.errors import AttnlibError, BadInput
from attnlib.training.allocator import keep_freed_memory
from companion.results import registry
from companion.results.config import override
from companion.results.run import run
from companion.runs.archive import Archive
from companion.runs.train import printed_report


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, and say where the result is; errors are one line and exit code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m companion.results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="EXPERIMENT", help=f"one of: {', '.join(registry.names())}")
    parser.add_argument("--profile", default="quick", help="quick or paper (default: quick)")
    parser.add_argument("--out", default=".", help="folder for the result (default: this folder)")
    parser.add_argument("--models", help="folder of trained models (default: OUT/models)")
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto: cuda where there is one")
    parser.add_argument(
        "--threads", type=int, default=1, help="torch threads; numbers repeat for equal numbers of them"
    )
    parser.add_argument(
        "-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE", help="a setting"
    )
    parser.add_argument("--archive", help="folder of packed answers that stand in for models")
    parser.add_argument("--answers", help="folder for new ones (default: ARCHIVE/loose)")
    parser.add_argument(
        "--no-training", action="store_true", help="use what is answered; the result says what is missing"
    )
    parser.add_argument("--list-models", action="store_true", help="print the specs of its models and stop")
    options = parser.parse_args(arguments)
    device = options.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        overrides = dict(_pair(text) for text in options.parameters)
        if options.list_models:
            config = override(registry.profile_config(options.name, options.profile), overrides)
            for spec in registry.load(options.name).models(config):
                print(spec.to_json())
            return 0
        folder = Path(options.models or Path(options.out) / "models")
        result = run(
            options.name,
            options.profile,
            out=options.out,
            models=folder,
            overrides=overrides,
            device=device,
            threads=options.threads,
            report=printed_report,
            archive=Archive(options.archive, options.answers) if options.archive else None,
            trains=not options.no_training,
        )
    except AttnlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(Path(options.out) / f"{result.experiment}.json")
    return 0


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise BadInput(f"-p {text!r}: give NAME=VALUE, say -p task=scan")
    return name, value


if __name__ == "__main__":
    keep_freed_memory()
    sys.exit(main())
