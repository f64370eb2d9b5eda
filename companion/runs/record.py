"""Follow recipes into a store: ``python -m companion.runs.record --spec '{…}' --models build/models``."""

import argparse
import sys

import torch

from attnlib.errors import AttnlibError
from attnlib.training.allocator import keep_freed_memory
from companion.runs.keys import model_key
from companion.runs.recipe import RecipeSpec
from companion.runs.store import Store
from companion.runs.train import printed_report


def main(arguments: list[str] | None = None) -> int:
    """Parse, record, and say where the product is; errors are one line and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m companion.runs.record", description=__doc__)
    parser.add_argument("--spec", required=True, action="append", help="a recipe spec as JSON; repeatable")
    parser.add_argument("--models", required=True, help="folder of products")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument(
        "--threads", type=int, default=1, help="torch threads; results are equal only for equal numbers"
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(max(1, options.threads))
    try:
        store = Store(options.models, options.device, printed_report)
        for spec in [RecipeSpec.from_json(text) for text in options.spec]:
            recording = store.recording(spec)
            print(f"{model_key(spec)}: {', '.join(sorted(recording.tensors))}")
    except (AttnlibError, ValueError) as error:  # a ValueError: the text is not JSON
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    keep_freed_memory()
    sys.exit(main())
