"""Agreement of attention, probes and saliency: along training, and at the best checkpoint."""

from collections.abc import Iterable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlib.plots.style import INK, style
from companion.results.result import Result

COLUMN_LOOKS = {
    "alpha_alpha": ("attention of another seed", "#222222", "-"),
    "alpha_beta": ("attention, probe of another seed", "#0072b2", "-"),
    "alpha_beta_uf": ("attention, probe at uniform attention", "#d55e00", "-"),
    "delta_beta_uf": ("saliency, probe at uniform attention", "#cc79a7", "--"),
    "beta_uf_beta_px": ("bag of words, probe at uniform attention", "#009e73", "-."),
    "alpha_alpha_frozen": ("attention, attention trained alone", "#999999", (0, (5, 1.5))),
}
PERFORMANCE = ("accuracy of the second run", "#777777", (0, (4, 1, 1, 1, 1, 1)))  # p̂
DATA_NAMES = {
    "own": "your own",
    "known_polarity": "known polarity",
    "sst": "SST",
    "sst_as_text": "SST, as the text says",
    "sms_spam": "SMS",
    "ag_news": "AG News (part)",
    "twenty_newsgroups": "20 NG",
    "amazon": "Amazon (part)",
    "imdb": "IMDB",
    "yelp": "Yelp (part)",
    "known_lexicon": "known lexicon",
    "multi30k_en_de": "Multi30k En–De",
    "multi30k_de_en": "Multi30k De–En",
    "iwslt14_de_en": "IWSLT14 De–En (part)",
    "news_it_pt": "News It–Pt",
    "news_en_nl": "News En–Nl",
    "news_en_pt": "News En–Pt",
}


def data_name(name: str) -> str:
    """What a data set is called in figures and tables; its own name where it has no other."""
    return DATA_NAMES.get(name, name)


def data_of(result: Result) -> list[str]:
    """The data sets that a result has numbers of: texts, then sentence pairs."""
    order = dict.fromkeys((*DATA_NAMES, *result.values))
    return [name for name in order if "validation" in result.values.get(name, ())]


def along_training(result: Result) -> Figure:
    """A panel a data set: agreement with the second run at its checkpoints; mean and range of pairs.

    With the second run's accuracy, and an arrow that reads ξ(α, β^uf) from the mean lines as the paper's
    Figure 2 does; none where no checkpoint agrees more.
    """
    names = data_of(result)
    columns = min(2, len(names))
    with style():
        figure = Figure(figsize=(8.6, 0.9 + 2.5 * -(-len(names) // columns)))
        panels = figure.subplots(-(-len(names) // columns), columns, squeeze=False)
        for axes, name in zip(panels.flat, names, strict=False):
            for column, (_, colour, line) in COLUMN_LOOKS.items():
                steps, found = _curves(result, name, column)
                if len(steps):
                    axes.plot(steps, found.mean(0), color=colour, ls=line, lw=1.4)
                    axes.fill_between(steps, found.min(0), found.max(0), color=colour, alpha=0.12, lw=0)
            steps, performance = _curves(result, name, "alpha_alpha", "accuracy")
            if len(steps):
                _, colour, line = PERFORMANCE
                axes.plot(steps, performance.mean(0), color=colour, ls=line, lw=1.4)
                if (read := reading_off(result, name)) is not None:
                    _draw_reading(axes, *read)
            chance = result.values[name]["validation"]["accuracy"]["chance"]["value"]
            if chance is not None:
                axes.axhline(chance, color=INK, lw=0.8, ls=(0, (1, 3)))
            axes.set_xscale("symlog", linthresh=50)
            axes.set_xlim(left=0)
            axes.set_title(data_name(name), loc="left")
            axes.set_xlabel("updates of the second run")
        for axes in panels.flat[len(names) :]:
            axes.set_axis_off()
        for axes in panels[:, 0]:
            axes.set_ylabel("agreement, accuracy, %")
        handles = [
            Line2D([], [], color=colour, ls=line, label=label)
            for label, colour, line in (*COLUMN_LOOKS.values(), PERFORMANCE)
        ]
        handles.append(Line2D([], [], color=INK, lw=0.8, ls=(0, (1, 3)), label="chance"))
        figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def at_the_best(result: Result, printed: Mapping[tuple[str, str], float] | None = None) -> Figure:
    """A row a data set, a colour a column: agreement with its interval, chance dotted, printed as rhombs.

    Args:
        printed: by (data set, column), what the paper's Table 5 has.
    """
    names = data_of(result)
    columns = [name for name in COLUMN_LOOKS if name not in ("alpha_alpha", "alpha_alpha_frozen")]
    with style():
        figure = Figure(figsize=(8.2, 1.1 + 0.72 * len(names)))
        axes = figure.subplots()
        for place, name in enumerate(reversed(names)):
            found = result.values[name]["validation"]["accuracy"]
            for shift, column in zip(np.linspace(0.28, -0.28, len(columns)), columns, strict=True):
                interval, colour = found[column]["agreement"], COLUMN_LOOKS[column][1]
                if interval["value"] is None:
                    continue
                low, high = (
                    interval["value"] if interval[end] is None else interval[end] for end in ("low", "high")
                )
                axes.plot([max(low, 0), min(high, 100)], [place + shift] * 2, color=colour, lw=1.6)
                axes.plot(interval["value"], place + shift, "o", color=colour, ms=5)
                if printed and (name, column) in printed:
                    look = {"mfc": "white", "mec": colour, "ms": 6, "mew": 1.3}
                    axes.plot(printed[name, column], place + shift, "D", **look)
            if found["chance"]["value"] is not None:
                axes.plot([found["chance"]["value"]] * 2, [place - 0.4, place + 0.4], color=INK, lw=1, ls=":")
        axes.set_yticks(range(len(names)), [data_name(name) for name in reversed(names)])
        axes.set_xlim(0, 100)
        axes.set_xlabel("agreement at the best checkpoint, % of texts or target words")
        handles = [
            Line2D([], [], color=COLUMN_LOOKS[column][1], marker="o", ms=5, label=COLUMN_LOOKS[column][0])
            for column in columns
        ]
        handles.append(Line2D([], [], color=INK, lw=1, ls=":", label="chance"))
        if printed:
            look = {"mfc": "white", "mec": INK, "ls": ""}
            handles.append(Line2D([], [], marker="D", label="as printed", **look))
        figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def reading_off(result: Result, name: str) -> tuple[float, float, float, float] | None:
    """Equation 11 on mean lines: where 𝒜(α, β^uf) is highest, and where α first agrees more with another α.

    Returns:
        step and height of that maximum, the step where the line of attention first exceeds it, and
        the accuracy there, ξ; None where it never does, or a line is missing.
    """
    steps, agreement = _curves(result, name, "alpha_beta_uf")
    runs, attention = _curves(result, name, "alpha_alpha")
    _, performance = _curves(result, name, "alpha_alpha", "accuracy")
    if not len(steps) or not len(runs):
        return None
    level = agreement.mean(0)
    exceeds = attention.mean(0) > level.max()
    if not exceeds.any():
        return None
    place = int(exceeds.argmax())
    return (
        float(steps[level.argmax()]),
        float(level.max()),
        float(runs[place]),
        float(performance.mean(0)[place]),
    )


def _draw_reading(axes: Axes, start: float, level: float, step: float, performance: float) -> None:
    """From the maximum across to the line of attention, then up or down to the accuracy there."""
    colour = COLUMN_LOOKS["alpha_beta_uf"][1]
    axes.plot([start, step], [level, level], color=colour, lw=0.8)
    axes.annotate(
        "", (step, performance), (step, level), arrowprops={"arrowstyle": "->", "color": colour, "lw": 0.8}
    )
    axes.plot(step, performance, "o", mfc="white", mec=colour, ms=5)
    ends = step == axes.dataLim.x1  # then its name goes to the left, inside the panel
    axes.annotate(
        f"ξ = {performance:.0f}", (step, performance), (-6 if ends else 6, -11), textcoords="offset points",
        ha="right" if ends else "left", color=colour, fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
    )  # fmt: skip


def pair_curves(rows: Iterable[dict], measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and a row a pair of runs, from rows of a pair and checkpoint; both empty where there is none."""
    pairs: dict[tuple, list] = {}
    for row in rows:
        pairs.setdefault((row["seed"], row["second_seed"]), []).append((row["step"], row[measure]))
    found = [np.array(sorted(points)).T for points in pairs.values()]
    if not found:
        return np.array([]), np.array([])
    return found[0][0], np.stack([values for _, values in found])


def _curves(
    result: Result, name: str, column: str, measure: str = "agreement"
) -> tuple[np.ndarray, np.ndarray]:
    of = (name, column, "validation")
    rows = (row for row in result.tables["courses"] if (row["data"], row["column"], row["part"]) == of)
    return pair_curves(rows, measure)
