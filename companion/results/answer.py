"""Ask one model all that the experiments of a profile ask of it, and archive the answers.

    python -m companion.results.answer KEY --profile paper --archive results/paper/archive --answers
    build/answers

One job a model: train, measure, keep some kilobytes. Jobs need nothing of each other, so they run on as many
machines as there are, and what one has answered is not asked again.
"""

import argparse
import hashlib
import sys

import torch

from attnlib.errors import AttnlibError, UnknownName
from attnlib.training.allocator import keep_freed_memory
from companion.results import registry
from companion.results.asks import Ask
from companion.runs.archive import Archive
from companion.runs.keys import identity, model_key
from companion.runs.store import Store, answer_name
from companion.runs.train import printed_report


def all_asks(profile: str) -> dict[str, list[Ask]]:
    """What the experiments with this profile ask, by the key of the model."""
    found: dict[str, list[Ask]] = {}
    for name in registry.names():
        module = registry.load(name)
        if profile in module.PROFILES:
            for asked in module.asks(module.PROFILES[profile]):
                found.setdefault(model_key(asked.spec), []).append(asked)
    return {key: list(dict.fromkeys(asks)) for key, asks in found.items()}


def unanswered(profile: str, archive: Archive) -> dict[str, str]:
    """The models that lack an answer in an archive, with a hash of what they are asked."""
    lacking = {}
    for key, asks in all_asks(profile).items():
        questions = [asked.question for asked in asks]
        if any(archive.get(question) is None for question in questions):
            names = sorted(map(answer_name, questions))
            lacking[key] = hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
    return lacking


def main(arguments: list[str] | None = None) -> int:
    """Parse, answer, and say how many answers there were."""
    parser = argparse.ArgumentParser(
        prog="python -m companion.results.answer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "key", metavar="KEY", nargs="+", help="of the model, as in build/models or in the archive; several"
    )
    parser.add_argument("--profile", default="paper", help="whose experiments ask (default: paper)")
    parser.add_argument("--archive", required=True, help="folder of packed answers")
    parser.add_argument("--answers", help="folder for new ones (default: ARCHIVE/loose)")
    parser.add_argument("--models", default="build/models", help="folder of trained models")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument(
        "--threads", type=int, default=1, help="torch threads; numbers repeat for equal numbers"
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(max(1, options.threads))
    store = Store(
        options.models, options.device, printed_report, archive=Archive(options.archive, options.answers)
    )
    try:
        asks = all_asks(options.profile)
        asks |= {identity(own[0].spec): own for own in asks.values()}
        for key in options.key:
            if key not in asks:
                raise UnknownName("model", key, asks)
            for asked in asks[key]:
                asked.answer(store)
            print(f"{key}: {len(asks[key])} answers")
    except AttnlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    keep_freed_memory()
    sys.exit(main())
