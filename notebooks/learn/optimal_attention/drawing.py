"""Agreement of optimal and learned attention with probes, and what each makes of the correct words."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.book.numbers import value_at
from companion.results.result import Result
from notebooks.shared.marks import dot, grid, rule
from notebooks.shared.style import AMBER, ARROW, GREEN, INK, PURPLE, SKY

AGREEMENTS = {  # key → label, colour
    "summed.agreement.optimal_probe": ("optimal attention\nand β", PURPLE),  # what the paper prints
    "summed.agreement.optimal_other_probe": ("optimal attention and\nanother network's β", PURPLE),
    "summed.agreement.learned_probe": ("learned attention\nand β", GREEN),
    "summed.agreement.learned_optimal": ("learned and\noptimal attention", GREEN),
}
LIKELIHOODS = {  # key → label, colour
    "summed.log_likelihood.optimal": ("optimal", PURPLE),
    "summed.log_likelihood.largest_probe": ("all on the\nlargest β", AMBER),
    "summed.log_likelihood.learned": ("learned", GREEN),
    "summed.log_likelihood.uniform": ("uniform", SKY),
}
PUBLISHED = 0.53  # agreement of the best attention with β, as the paper reports it
NOTE = {"arrowprops": ARROW, "va": "center", "fontsize": 9}
TITLE_AT = -0.5  # of the panels' width: above the names of their rows
WIDTH = 3.75  # inches, which a telephone shows whole


def is_of_multi30k(result: Result) -> bool:
    """Return True if the translation models are of all of the text that the published numbers are of."""
    whole = result.config["train_pairs"] == result.config["n_validation"] == 0
    return whole and result.values["data"]["translation"] == "multi30k_en_de"


def agreements(result: Result) -> Figure:
    """Draw agreements with chance, and below them the log-likelihood of the correct words by attention."""
    with grid(2, 1, size=(WIDTH, 5.8)) as (figure, ((above,), (below,))):
        draw_rows(above, result, AGREEMENTS)
        chance = result.values["summed"]["agreement"]["chance"]["value"]
        if chance is not None:
            above.axvline(chance, color=INK, lw=1, ls=":", zorder=0)
            above.annotate("chance", (chance, -0.5), (4, 0), textcoords="offset points")
        if is_of_multi30k(result):
            above.plot([PUBLISHED, PUBLISHED], [1.7, 3.3], color=INK, lw=1, ls="--")
            above.annotate(f"published: {PUBLISHED}", (PUBLISHED, 2.5), (0.62, 2.5), **NOTE)
            below.set_title("Learned attention gets half of the way", loc="left", x=TITLE_AT)
            below.annotate("following β is\nnearly as good …", (-1.37, 2), (-2.8, 2.45), **NOTE)
            below.annotate("… learned attention\ngains half as much", (-2.05, 0.93), (-2.1, 0.3), **NOTE)
        above.set_title("Optimal attention goes where β is large", loc="left", x=TITLE_AT)
        above.set_xlim(0, 1.02)
        above.set_xlabel("agreement (share of words)")
        draw_rows(below, result, LIKELIHOODS)
        below.margins(x=0.14)
        below.set_xlabel("log-likelihood (nats a word)")
    return figure


def draw_rows(axes: Axes, result: Result, rows: Mapping[str, tuple[str, str]]) -> None:
    """Draw a row for each key, the first above: a dot with its interval and its value."""
    for place, (key, (_, colour)) in enumerate(reversed(rows.items())):
        estimate = value_at(result, key)
        rule(axes, place)
        dot(axes, estimate, place, colour, ms=6.5, bar={"lw": 1.6})
        if estimate["value"] is not None:
            text = f"{estimate['value']:.2f}".replace("-", "−")
            above = {"textcoords": "offset points", "ha": "center", "fontsize": 8.5}
            axes.annotate(text, (estimate["value"], place), (0, 6), **above)
    axes.set_yticks(range(len(rows)), [label for label, _ in reversed(rows.values())])
    axes.set_ylim(-0.6, len(rows) - 0.3)
