"""What is left of a network's accuracy when parts are dropped, and which parts make the margin."""

from matplotlib.figure import Figure

from attnlib.decomposition.components import PART_NAMES
from attnlib.plots.style import INK, PART_COLOURS, PART_SYMBOLS
from companion.results.result import Result
from notebooks.shared.dots import Dot, dot_rows

SHIFTS = dict(zip(PART_NAMES, (0.2, 0.0, -0.2), strict=True))
ACCURACY = "accuracy on held-out tokens"


def accuracy_by_part(result: Result, replaced_by: str = "zero") -> Figure:
    """Left: parts of the context kept alone or dropped alone, the decoder's path whole; right: the reverse.

    Args:
        replaced_by: ``zero`` or ``mean``: what stands in for a dropped part.
    """
    base = f"accuracy.{replaced_by}."
    panels = {
        "parts of the context": _dots(base, "context"),
        "parts of the decoder's state": _dots(base, "decoder"),
    }
    return dot_rows(result, panels, xlabel=ACCURACY, legend=panels["parts of the context"], columns=5)


def _dots(base: str, path: str) -> list[Dot]:
    dots = [
        Dot(f"{base}full", "whole network", INK, "|", shift=0.38),
        Dot(f"{base}{path}_none", "without this path", INK, "x", shift=-0.38),
    ]
    for part in PART_NAMES:
        symbol, look = PART_SYMBOLS[part], {"colour": PART_COLOURS[part], "shift": SHIFTS[part]}
        dots.append(Dot(f"{base}{path}_only_{part}", f"only {part} {symbol}", **look))
        dots.append(Dot(f"{base}{path}_without_{part}", f"all but {part} {symbol}", open=True, **look))
    return [*dots, Dot("chance", "most frequent word", "#777777", "_", shift=-0.38)]


def _by_part(base: str) -> list[Dot]:
    """A dot for each part of a state, at the key that starts with ``base``."""
    return [
        Dot(f"{base}{part}", f"{part} {PART_SYMBOLS[part]}", PART_COLOURS[part], shift=SHIFTS[part])
        for part in PART_NAMES
    ]


def alone(result: Result) -> Figure:
    """Accuracy from one part of one path and the bias, everything else dropped."""
    chance = Dot("chance", "most frequent word", INK, "|", shift=0.0)
    panels = {
        f"one part of the {name} alone": [
            chance,
            *_by_part(f"accuracy.zero.alone_{path}_"),
        ]
        for path, name in (("context", "context"), ("decoder", "decoder's state"))
    }
    return dot_rows(result, panels, xlabel=ACCURACY, row_height=0.42)


def zero_or_mean(result: Result) -> Figure:
    """Dropped to zero against dropped to its mean, where the two differ: where the temporal part goes."""
    asked = {
        "context without μ": "context_without_temporal",
        "no context": "context_none",
        "decoder without μ": "decoder_without_temporal",
        "no decoder path": "decoder_none",
    }
    panels = {
        title: [
            Dot("accuracy.zero.full", "whole network", INK, "|"),
            Dot(f"accuracy.zero.{name}", "dropped part at zero", PART_COLOURS["temporal"], shift=0.12),
            Dot(f"accuracy.mean.{name}", "at its mean", PART_COLOURS["temporal"], open=True, shift=-0.12),
        ]
        for title, name in asked.items()
    }
    return dot_rows(result, panels, xlabel="accuracy", xlim=(-0.05, 1.07), row_height=0.36)


def margin_shares(result: Result, share: str = "margin_share") -> Figure:
    """Shares of the right word's margin by part, the context's filled and the decoder's open."""
    names = {"margin_share": "share of the mean margin", "logit_share": "share of all centred logits"}
    panels = {
        title: _by_part(f"{share}.{path}_")
        for title, path in (("of the context", "context"), ("of the decoder's state", "decoder"))
    }
    label = names.get(share, "covariance share of the margin")
    return dot_rows(result, panels, xlabel=label, xlim=None, row_height=0.42)
