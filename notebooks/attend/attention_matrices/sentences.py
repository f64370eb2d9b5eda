"""The chapter on attention matrices in words made from its numbers."""

from companion.results.result import Result, kinds_of
from notebooks.shared.sentences import named_with_values, on_side

HALF = 0.5


def unsolved_sentence(result: Result) -> str:
    """The kinds of network that write less than half of the held-out samples without a fault."""
    exact = [(task, kind, found["exact_match"]) for task, kind, found in kinds_of(result)]
    unsolved = named_with_values(on_side(exact, "below", HALF))
    if not unsolved:
        return "No kind of network writes less than half of the held-out samples without a fault."
    return f"Less than half of the held-out samples are written without a fault in: {unsolved}."
