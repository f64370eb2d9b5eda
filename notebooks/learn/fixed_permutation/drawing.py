"""Copying and a fixed reordering of the same sentences: what is learned, and the probes of both."""

from matplotlib.figure import Figure

from attnlib.plots.style import style
from companion.results.result import Result
from notebooks.learn.fixed_permutation.experiment import LONGER
from notebooks.shared.copying_drawing import curves

ORDER_LOOKS = {"copy": ("copied", "#0072b2"), "permuted": ("in one fixed random order", "#d55e00")}


def orders(result: Result) -> Figure:
    """Accuracy and attention accuracy of learned attention by update, a curve a network."""
    return _panels(result, "learned", {"accuracy": "accuracy", "attention_accuracy": "attention accuracy"})


def probes_of_orders(result: Result) -> Figure:
    """Lexical probe at uniform attention, at the right position and elsewhere, a curve a network."""
    shown = {"probe_right": "β at the right word", "probe_elsewhere": "β elsewhere, mean"}
    return _panels(result, "uniform", shown)


def longer(result: Result) -> Figure:
    """Accuracy and attention accuracy of networks with more updates, which the fixed order alone has."""
    shown = {"accuracy": "accuracy", "attention_accuracy": "attention accuracy"}
    return _panels(result, LONGER, shown, {"permuted": ORDER_LOOKS["permuted"]})


def _panels(result: Result, network: str, shown: dict[str, str], looks: dict | None = None) -> Figure:
    with style():
        figure = Figure(figsize=(8.2, 3.2))
        panels = figure.subplots(1, len(shown), sharex=True, sharey=True)
        for axes, (name, ylabel) in zip(panels, shown.items(), strict=True):
            for order, (label, colour) in (looks or ORDER_LOOKS).items():
                look = {"color": colour, "lw": 1.1, "alpha": 0.75}
                curves(axes, result, name, look, label, order=order, network=network)
            axes.set_ylim(-0.03, 1.03)
            axes.set_xlabel("updates")
            axes.set_ylabel(ylabel)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure
