"""From what was measured of the bottleneck's networks to its numbers, each with an interval over seeds."""

import math

import numpy as np

from attnlib.experiments.aggregate import Point, over_seeds
from attnlib.experiments.paired import paired


def summary(points: list[Point]) -> dict:
    """One link and width; see :func:`attnlib.experiments.context_bottleneck.compute`."""
    names = ("token_accuracy", "exact_match", "bits", "bits_of_word")
    ends = {
        label: {n: over_seeds(points, lambda m, n=n, e=end: quarter(m, n, last=e)) for n in names}
        for label, end in (("shortest", False), ("longest", True))
    }
    return ends | {
        "capacity": over_seeds(points, capacity),
        "slope": over_seeds(points, slope),
        "falls": over_seeds(
            points,
            lambda m: quarter(m, "token_accuracy", last=False) - quarter(m, "token_accuracy", last=True),
        ),
        "of_each": {"capacity": [capacity(m) for _, m in points], "slope": [slope(m) for _, m in points]},
        "parameters": points[0][1]["parameters"],
    }


def quarter(measured: dict, name: str, *, last: bool) -> float:
    """Mean over the shortest or the longest quarter of the lengths."""
    values = measured[name]
    number = max(1, len(values) // 4)
    return float(np.mean(values[-number:] if last else values[:number]))


def capacity(measured: dict) -> float:
    """Bits of a sentence where they are most, mean over three neighbouring lengths where there are three."""
    window = min(3, len(measured["bits"]))
    return float(np.convolve(measured["bits"], np.full(window, 1 / window), mode="valid").max())


def slope(measured: dict) -> float | None:
    """Slope of log bits of a word over log length, in the longer half of the lengths; None below two."""
    half = len(measured["lengths"]) // 2
    lengths, bits = measured["lengths"][half:], measured["bits_of_word"][half:]
    if len(lengths) < 2 or min(bits) <= 0:
        return None
    return float(np.polyfit([math.log(n) for n in lengths], [math.log(b) for b in bits], 1)[0])


def read_off(probed: list[Point], halved: list[Point], judged: list[Point]) -> dict:
    """What a probe reads off one vector, of sentences of one length.

    Returns:
        ``first``, ``last``, ``middle`` (bits of the first and the last word, and of one in the middle half),
        ``first_over_middle``, ``last_over_middle`` (their differences), ``together`` (of the sentence),
        ``more`` (that less what half the samples to fit on find), ``decoder_over_probe`` (bits that reach the
        decoder less those together, where sentences of this length were judged); intervals over seeds.
    """

    def together(measured: dict) -> float | None:
        if "lengths" not in measured:
            return float(sum(measured["bits"]))
        there = dict(zip(measured["lengths"], measured["bits"], strict=True))
        return there.get(probed[0][1]["length"])

    return {
        "first": over_seeds(probed, lambda m: m["bits"][0]),
        "last": over_seeds(probed, lambda m: m["bits"][-1]),
        "middle": over_seeds(probed, lambda m: middle(m["bits"])),
        "first_over_middle": over_seeds(probed, lambda m: m["bits"][0] - middle(m["bits"])),
        "last_over_middle": over_seeds(probed, lambda m: m["bits"][-1] - middle(m["bits"])),
        "together": over_seeds(probed, together),
        "more": paired(probed, halved, together),
        "decoder_over_probe": paired(judged, probed, together),
    }


def middle(bits: list[float]) -> float:
    """Mean over the middle half of the positions."""
    quarter_of_them = len(bits) // 4
    return float(np.mean(bits[quarter_of_them : len(bits) - quarter_of_them]))
