"""What the chapter on optimal attention found, in words: a point each, and whether it changes our mind."""

import math

from attnlib.companion.intervals import listed, side
from attnlib.companion.sentences.optimal_attention import power_text
from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.optimal_attention import PUBLISHED, of_multi30k

ROUNDING = {"double": 1e-9, "single": 1e-5}  # more than this is no rounding of logarithms in that precision
RARE = 0.1  # the share of words above which the counterexample is no rarity, as the claim has it
ROUNDED = 0.005  # what rounding may have taken from the published number


def optimal_sentences(result: Result) -> str:
    """What came out, a point each."""
    found = result.values["summed"]
    if found["agreement"]["optimal_probe"]["value"] is None:
        return "No network has been measured yet."
    agreement, likelihood, matter = (found[name] for name in ("agreement", "log_likelihood", "dependent"))
    gap = likelihood["optimal"]["value"] - likelihood["uniform"]["value"]
    published = f"the paper: {100 * PUBLISHED:.0f} %; " if of_multi30k(result) else ""
    points = (
        f"The position that α* likes best is at the top of β for {_percent(agreement['optimal_probe'])} of "
        f"the right words ({published}chance: {_percent(agreement['chance'])}). Among the "
        f"{_percent(matter['share'])} of words that depend on attention, by at least "
        f"a tenth of a nat against uniform, it is {_percent(matter['optimal_probe'])}.",
        f"For {_percent(found['largest_probe']['unused'])} of the words α* gives nothing (less than 0.001) "
        f"to the position with the largest β; of those that depend on attention, "
        f"{_percent(matter['unused'])}. α* uses {found['positions']['value']:.1f} positions on average.",
        f"With β of another run in place of the network's own the agreement is "
        f"{_percent(agreement['optimal_other_probe'])}, with β of the main model "
        f"{_percent(agreement['optimal_main_probe'])}{_met(result)}.",
        _search(result),
        f"The learned attention agrees with β for {_percent(agreement['learned_probe'])} of the words, and "
        f"with α* for {_percent(agreement['learned_optimal'])}.",
        f"Under α* the log-probability of a right word is {interval_text(found['gain'])} nats higher on "
        f"average than under the learned attention, and there "
        f"{interval_text(found['gain_of_learned'])} higher than under uniform attention. All attention "
        f"on the largest β has "
        f"{_percent_of(likelihood, gap)} of what α* gains on uniform attention.",
        f"Every problem was solved: the conditions that only a global optimum meets hold up to a residual "
        f"{power_text(result.values['residual'])}, at which the solver stops ({found['words']} words a "
        "network).",
    )
    return "\n".join(f"* {point}" for point in points)


def _met(result: Result) -> str:
    """Which β the published agreement, of one network, may be with; empty for other data or one network.

    Of one more network than the n behind a mean Student's interval is √(n + 1) times that of the mean.
    """
    agreement = result.values["summed"]["agreement"]
    if not of_multi30k(result) or agreement["optimal_probe"]["low"] is None:
        return ""
    names = {
        "optimal_probe": "the network's own β",
        "optimal_other_probe": "that of another run",
        "optimal_main_probe": "that of the main model",
    }
    within = [told for name, told in names.items() if _of_one_network(agreement[name])]
    told = f"within reach with {listed(within)}" if within else "out of reach with all of them"
    n = agreement["optimal_probe"]["n"]
    return (
        f". The published {100 * PUBLISHED:.0f} % is of one network, which may be {math.sqrt(n + 1):.2g} "
        f"times as far from our mean as these intervals reach: it is {told}"
    )


def _of_one_network(interval: dict) -> bool:
    """Whether one more network may have what is published; not where there is no interval."""
    if interval["low"] is None:
        return False
    reach = (interval["high"] - interval["low"]) / 2 * math.sqrt(interval["n"] + 1)
    return abs(interval["value"] - PUBLISHED) <= reach + ROUNDED


def _search(result: Result) -> str:
    """What a search that stops early would find, since the paper descends gradients."""
    agreement = result.values["summed"]["agreement"]
    learned = agreement["learned_probe"]
    told = (
        "A search by gradient descent that begins at uniform attention first favours a position at the top "
        f"of β for {_percent(agreement['steepest_probe'])} of the words, of β of another run for "
        f"{_percent(agreement['steepest_other_probe'])}; one that begins at the learned attention starts "
        f"from {_percent(learned)}"
    )
    if of_multi30k(result) and learned["value"] < PUBLISHED < agreement["optimal_probe"]["value"]:
        told += (
            " and would pass the published number on its way. The paper says neither where it began nor when "
            "it stopped"
        )
    return f"{told}."


def _percent_of(likelihood: dict, gap: float) -> str:
    if gap <= 0:
        return "no part"
    return f"{100 * (likelihood['largest_probe']['value'] - likelihood['uniform']['value']) / gap:.1f} %"


def _percent(interval: dict) -> str:
    """``53 ± 4 %``; a digit more below ten, no half width that rounds to nothing."""
    if interval["value"] is None:
        return "–"
    digits = 0 if interval["value"] >= 0.1 else 1
    text = f"{100 * interval['value']:.{digits}f}"
    if interval["low"] is not None:
        half = f"{50 * (interval['high'] - interval['low']):.{digits}f}"
        text += f" ± {half}" if float(half) else ""
    return f"{text} %"


def outcome_sentences(result: Result) -> str:
    """Beside what would change our mind: what came of each point; empty where nothing was measured."""
    found = result.values["summed"]
    if found["agreement"]["optimal_probe"]["value"] is None:
        return ""
    above, unused = found["over_chance"]["optimal_probe"], found["largest_probe"]["unused"]
    where = "natural sentences" if of_multi30k(result) else "the sentences shown here, which are no answer"
    lost = found["largest_probe"]["lost"]
    costs = f", and following it costs {interval_text(lost)} nats a word there"
    lines = (
        f"α* and β agree {interval_text(above)} above chance on {where}: "
        f"{_happened({'above': False, 'below': True}.get(side(above)))}.",
        f"α* leaves out the largest β for {_percent(unused)} of the words{costs if lost['n'] else ''}: "
        f"{_happened({'above': True, 'below': False}.get(side(unused, RARE)))}.",
        _deviations(result),
    )
    return "\n".join(f"* {line}" for line in lines)


def _deviations(result: Result) -> str:
    """Whether either identity is off by more than rounding; not told where one was not measured."""
    largest = {
        "double": result.values["summed"]["identity"]["all_words"]["largest"],
        "single": result.values["classifier"]["deviation"],
    }
    known = None not in largest.values()
    off = known and any(largest[precision] > bound for precision, bound in ROUNDING.items())
    return (
        f"The largest deviations are {power_text(largest['double'])} with summed context and "
        f"{power_text(largest['single'])} in the classifiers: {_happened(off if known else None)}."
    )


def _happened(decided: bool | None) -> str:
    if decided is None:
        return "undecided"
    return f"this point has {'' if decided else 'not '}happened"
