"""The chapter on a fixed permutation in words made from its numbers."""

from attnlib.companion.tables import interval_range, interval_text
from attnlib.experiments.result import Result

NAMES = {"copy": "Copied", "permuted": "In one fixed random order"}


def order_sentences(result: Result) -> str:
    """A sentence an order, and one on how far the probes at uniform attention are apart."""
    lines = [
        _sentence(name, result.values[order], result.config["steps"])
        for order, name in NAMES.items()
        if result.values[order]["n"]
    ]
    apart = result.values["copy_less_permuted"]
    if apart["probe_right"]["value"] is not None:
        copied, permuted = (interval_text(result.values[order]["uniform"]["probe_right"]) for order in NAMES)
        lines.append(
            f"At uniform attention the lexical probe at the right word ends at {copied} when copying and at "
            f"{permuted} in the fixed order; networks of one seed are {_range(apart['probe_right'])} apart, "
            f"and in how often it is largest at the right position {_range(apart['probe_agreement'])}."
        )
    return "\n".join(f"* {line}" for line in lines)


def _sentence(name: str, found: dict, steps: int) -> str:
    return (
        f"{name}: after {steps} updates accuracies are {found['lowest_accuracy']:.2f} to "
        f"{found['highest_accuracy']:.2f} over {found['n']} networks, "
        f"{round(found['failed']['value'] * found['n'])} of them below 95 %; 95 % are reached after "
        f"{interval_text(found['steps_to_learn'])} updates where one that never does counts with all of them."
    )


def _range(interval: dict) -> str:
    return interval_range(interval) if interval["low"] is not None else interval_text(interval)
