"""The chapter on a fixed permutation in words made from its numbers."""

from companion.book.intervals import capital, side
from companion.book.tables import count_of, interval_range, interval_text
from companion.results.result import Result
from notebooks.shared.sentences import updates_words

NAMES = {"copy": "Copied", "permuted": "In one fixed random order"}
SAME = 0.05  # how far apart probes may be that behave "the same", as the claim judges it


def order_sentences(result: Result) -> str:
    """A sentence an order, and what the probes at uniform attention say of "the same"."""
    lines = [
        _sentence(name, result.values[order], result.config["steps"])
        for order, name in NAMES.items()
        if result.values[order]["n"]
    ]
    lines += _slow(result)
    apart = result.values["copy_less_permuted"]
    if apart["probe_right"]["value"] is not None:
        copied, permuted = (interval_text(result.values[order]["uniform"]["probe_right"]) for order in NAMES)
        lines.append(
            f"At uniform attention the lexical probe at the right word ends at {copied} when copying and at "
            f"{permuted} in the fixed order. Copying less fixed order, by seed, is "
            f"{interval_range(apart['probe_right'])}, and in how often the probe is largest at the right "
            f"position {interval_range(apart['probe_agreement'])}. {same_sentence(apart['probe_right'])}"
        )
        lines.append(_on_the_way(apart["furthest"]))
    return "\n".join(f"* {line}" for line in lines)


def _slow(result: Result) -> list[str]:
    """Whether accuracy still rises in the fixed order, and what more updates do."""
    rise, longer, lines = result.values["permuted"]["late_rise"], result.values["longer"], []
    if side(rise) == "above":
        lines.append(
            "In the fixed order accuracy still rises in the last quarter of the updates, by "
            f"{interval_range(rise)}. So these networks tell what happens within "
            f"{result.config['steps']} updates, and not what ever can."
        )
    if longer["n"]:
        lines.append(f"Trained for longer: {_outcome(longer, result.config['longer_steps'])}.")
    return lines


def _on_the_way(apart: dict) -> str:
    """How far the probes are apart before the end."""
    return (
        f"On the way they are furthest apart after {apart['steps']} updates, chosen among {apart['looks']} "
        f"looks, by {interval_range(apart)}. {same_sentence(apart)}"
    )


def probes_outcome(result: Result) -> str:
    """Whether the probes of the two orders differ by more than those of one order among themselves."""
    apart = result.values["copy_less_permuted"]["furthest"]
    if apart["n"] < 2:
        return "It takes two pairs of networks to tell."
    has = "has" if abs(apart["value"]) > apart["among"] else "has not"
    return (
        f"Of the last point: it {has} happened. After {apart['steps']} updates, where they are furthest "
        f"apart, the means of the two orders differ by {abs(apart['value']):.2f}, two networks of one order "
        f"by {apart['among']:.2f} at most."
    )


def longer_outcome(result: Result) -> str:
    """Whether the fixed order is learned with more updates."""
    longer = result.values["longer"]
    if not longer["n"]:
        return "That is not run at this profile."
    steps = result.config["longer_steps"]
    came = longer["n"] - longer["never"]
    trained = f"of {longer['n']} networks trained for {steps:,} updates"
    if not came:
        return f"None {trained} comes to 95 %: it has not happened."
    stayed = longer["n"] - count_of(longer["failed"])
    lost = "" if stayed >= came else " What was learned was lost again; why is not examined here."
    return (
        f"{capital(trained)} {came} come to 95 % on the way, their best looks at "
        f"{interval_text(longer['peak'])}, and {stayed or 'none'} end there: it has happened, so within "
        f"{result.config['steps']} updates this order is slow rather than out of reach.{lost}"
    )


def same_sentence(apart: dict) -> str:
    """Whether a difference is within :data:`SAME` of zero or not, and how well its interval can say."""
    pairs = f"{apart['n']} pair{'' if apart['n'] == 1 else 's'} of networks"
    if apart["low"] is None:
        return f"{pairs} cannot tell whether that is within {SAME} of zero."
    return _verdict(apart, pairs) + _too_wide(apart)


def _verdict(apart: dict, pairs: str) -> str:
    if apart["low"] >= -SAME and apart["high"] <= SAME:
        return f"The whole interval is within {SAME} of zero: the probes behave the same."
    if apart["low"] > SAME or apart["high"] < -SAME:
        return f"The whole interval is further than {SAME} from zero: the probes do not behave the same."
    return f"The interval reaches further than {SAME} from zero, and nearer: {pairs} do not decide."


def _too_wide(apart: dict) -> str:
    """Where a difference is known less well than it must be known to be called the same."""
    width, band = apart["high"] - apart["low"], 2 * SAME
    if width <= band:
        return ""
    return (
        f" The interval is {width:.2f} wide, the band from −{SAME} to {SAME} is {band:.2f} wide: none so "
        "wide can lie inside it."
    )


def _sentence(name: str, found: dict, steps: int) -> str:
    return f"{name}: {_outcome(found, steps)}."


def _outcome(found: dict, steps: int) -> str:
    return (
        f"after {steps:,} updates accuracies are {found['lowest_accuracy']:.2f} to "
        f"{found['highest_accuracy']:.2f} over {found['n']} networks, "
        f"{count_of(found['failed'])} of them below 95 %; {updates_words(found, steps)}"
    )
