"""Every network of the grid in a row: how fast it learns, what it reaches, what it costs."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlib.experiments.result import Result
from attnlib.plotting.blank import blank
from attnlib.plotting.scoring_functions import DECODERS, ENCODERS, SCORES, draw_interval, kinds_of
from attnlib.plotting.style import style

_REST = "#c8c8c8"


def reached_and_cost(result: Result, task: str) -> Figure:
    """Updates to the threshold, sentences without a fault, and multiplications for one sentence."""
    kinds = kinds_of(result, task)
    if not kinds:
        return blank()
    places = _places(kinds)
    with style():
        figure = Figure(figsize=(8.6, 0.21 * (max(places.values()) + 1) + 1.1))
        speed, faultless, cost = figure.subplots(1, 3, sharey=True, width_ratios=(1, 0.8, 1))
        for (decoder, direction, scoring), place in places.items():
            found, colour = result.values[task][decoder][direction][scoring], SCORES[scoring][1]
            for axes in (speed, faultless, cost):
                axes.axhline(place, color="#eeeeee", lw=0.8, zorder=0)
            draw_interval(speed, _within(found["updates"], 0, result.config["steps"]), place, colour)
            if found["reached"] < found["updates"]["n"]:
                _say_reached(speed, found, place)
            draw_interval(faultless, _within(found["exact_match"], 0, 1), place, colour)
            if "score" in found:
                _draw_cost(cost, found, place, colour)
        speed.set_xlabel(f"updates to {100 * result.config['threshold']:.0f} % of words", fontsize=9)
        faultless.set_xlabel("sentences without a fault", fontsize=9)
        cost.set_xlabel("thousand multiplications", fontsize=9)
        speed.set_xlim(0, result.config["steps"] * 1.05)
        faultless.set_xlim(-0.03, 1.05)
        cost.set_xlim(0, cost.get_xlim()[1] * 1.18)
        _name_rows(speed, places)
    return figure


def _places(kinds: list[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
    """Heights of the rows from below; a free row above every group of decoder and encoder, for its name."""
    groups = list(dict.fromkeys(kind[:2] for kind in kinds))
    upwards = [kind for group in groups for kind in (group, *(k for k in kinds if k[:2] == group))][::-1]
    return {kind: height for height, kind in enumerate(upwards) if len(kind) == 3}


def _name_rows(axes: Axes, places: dict[tuple[str, str, str], int]) -> None:
    groups: dict[tuple[str, str], int] = {}
    for kind, height in places.items():
        groups[kind[:2]] = max(groups.get(kind[:2], 0), height + 1)
    names = {height: SCORES[kind[2]][0] for kind, height in places.items()}
    axes.set_yticks(list(names), list(names.values()))
    axes.tick_params(axis="y", length=0, labelsize=8.5)
    for label, kind in zip(axes.get_yticklabels(), places, strict=True):
        label.set_color(SCORES[kind[2]][1])
    for (decoder, direction), height in groups.items():
        text = f"{DECODERS[decoder]}, {ENCODERS[direction][0]}"
        axes.text(
            0, height, text, fontsize=9, fontweight="bold", va="center", transform=axes.get_yaxis_transform()
        )
    axes.set_ylim(-0.7, max(groups.values()) + 0.7)


def _within(interval: dict, low: float, high: float) -> dict:
    """The interval, cut off where the quantity ends."""
    if interval["low"] is None:
        return interval
    return interval | {"low": max(low, interval["low"]), "high": min(high, interval["high"])}


def _say_reached(axes: Axes, found: dict, place: float) -> None:
    text = f"{found['reached']} of {found['updates']['n']}"
    axes.text(
        1, place + 0.42, text, fontsize=8, ha="right", va="center", transform=axes.get_yaxis_transform()
    )


def _draw_cost(axes: Axes, found: dict, place: float, colour: str) -> None:
    score, rest = found["score"] / 1e3, found["rest"] / 1e3
    axes.barh(place, rest, height=0.6, color=_REST)
    axes.barh(place, score, left=rest, height=0.6, color=colour)
    axes.annotate(f"{score:.1f}", (rest + score, place), xytext=(3, 0), textcoords="offset points",
                  fontsize=8, va="center", color=colour)  # fmt: skip
