"""Train models in turn: ``python -m companion.runs.train --spec '{…}' --models build/models``."""

import argparse
import sys

import torch

from attnlib.errors import AttnlibError
from attnlib.training.allocator import keep_freed_memory
from companion.runs.keys import model_key
from companion.runs.spec import ModelSpec
from companion.runs.store import Store


def printed_report(spec: ModelSpec, step: int, steps: int, loss: float) -> None:
    """A line on standard error ten times a training."""
    if step % max(1, steps // 10) == 0:
        print(f"{spec.setting}: step {step} of {steps}, loss {loss:.4f}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Parse, train, and say where the product is."""
    parser = argparse.ArgumentParser(prog="python -m companion.runs.train", description=__doc__)
    parser.add_argument("--spec", required=True, action="append", help="a model spec as JSON; repeatable")
    parser.add_argument("--models", required=True, help="folder of trained models")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument(
        "--threads", type=int, default=1, help="torch threads; results are equal only for equal numbers"
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(max(1, options.threads))
    try:
        specs = [ModelSpec.from_json(text) for text in options.spec]
    except (ValueError, TypeError) as error:
        print(f"error: not a model spec: {error}", file=sys.stderr)
        return 2
    store = Store(options.models, options.device, printed_report)
    try:
        for spec in specs:
            product = store.model(spec)
            print(f"{model_key(spec)}: {product.history['held_out']}")
    except AttnlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    keep_freed_memory()
    sys.exit(main())
