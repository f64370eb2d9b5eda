"""What the chapter on optimal attention found, in words: a point each, and whether it changes our mind."""

from attnlib.companion.intervals import listed, side
from attnlib.companion.sentences.optimal_attention import power_text
from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.optimal_attention import PUBLISHED, of_multi30k

ROUNDING = {"double": 1e-9, "single": 1e-5}  # more than this is no rounding of logarithms in that precision
HAPPENED = {True: "this point has happened", False: "this point has not happened"}


def optimal_sentences(result: Result) -> str:
    """What came out, a point each."""
    found = result.values["summed"]
    if found["agreement"]["optimal_probe"]["value"] is None:
        return "No network has been measured yet."
    agreement, likelihood, matter = (found[name] for name in ("agreement", "log_likelihood", "dependent"))
    gap = likelihood["optimal"]["value"] - likelihood["uniform"]["value"]
    published = f" (the paper: {100 * PUBLISHED:.0f} %)" if of_multi30k(result) else ""
    points = (
        f"The position that α* likes best is at the top of β for {_percent(agreement['optimal_probe'])} of "
        f"the right words, chance being {_percent(agreement['chance'])}{published}. Among the "
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
        f"α* makes the right words {interval_text(found['gain'])} nats a word likelier than the learned "
        f"attention does, which itself is {interval_text(found['gain_of_learned'])} better than uniform "
        f"attention. All attention on the largest β has "
        f"{_percent_of(likelihood, gap)} of what α* gains on uniform attention.",
        f"The distance of every optimum from the conditions that only a global one meets is "
        f"{power_text(result.values['residual'])} ({found['words']} words a network).",
    )
    return "\n".join(f"* {point}" for point in points)


def _met(result: Result) -> str:
    """Which β the published agreement may be with, by the intervals; empty for other data."""
    if not of_multi30k(result):
        return ""
    names = {
        "optimal_probe": "the network's own β",
        "optimal_other_probe": "that of another run",
        "optimal_main_probe": "that of the main model",
    }
    agreement = result.values["summed"]["agreement"]
    within = [told for name, told in names.items() if side(agreement[name], PUBLISHED) == "open"]
    if not within:
        return f"; the published {100 * PUBLISHED:.0f} % is in none of these intervals"
    return f"; the published {100 * PUBLISHED:.0f} % is in the interval with {listed(within)}"


def _search(result: Result) -> str:
    """Whether a search that stops early would find another agreement, since the paper descends gradients."""
    agreement = result.values["summed"]["agreement"]
    begins, ends = agreement["steepest_probe"], agreement["optimal_probe"]
    told = (
        f"Where a search by gradient descent begins, at uniform attention, the weight that lowers the loss "
        f"fastest is at the top of β for {_percent(begins)} of the words, with β of another run for "
        f"{_percent(agreement['steepest_other_probe'])}"
    )
    if of_multi30k(result) and all(side(one, PUBLISHED) == "above" for one in (begins, ends)):
        told += "; at both ends of a search agreement with the network's own β is above the published one"
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
    found, identity = result.values["summed"], result.values["summed"]["identity"]["all_words"]["largest"]
    if found["agreement"]["optimal_probe"]["value"] is None:
        return ""
    above, unused = found["over_chance"]["optimal_probe"], found["largest_probe"]["unused"]
    lost = found["log_likelihood"]["optimal"]["value"] - found["log_likelihood"]["largest_probe"]["value"]
    classifier = result.values["classifier"]["deviation"]
    off = (identity or 0) > ROUNDING["double"] or (classifier or 0) > ROUNDING["single"]
    where = "natural sentences" if of_multi30k(result) else "the sentences shown here, which are no answer"
    lines = (
        f"α* and β agree {interval_text(above)} above chance on {where}: {HAPPENED[side(above) != 'above']}.",
        f"α* leaves out the largest β for {_percent(unused)} of the words, and all attention there costs "
        f"{lost:.2f} nats a word on average: {HAPPENED[side(unused, 0.5) == 'above']}.",
        f"The largest deviations are {power_text(identity)} with summed context and "
        f"{power_text(classifier)} in the classifiers: {HAPPENED[off]}.",
    )
    return "\n".join(f"* {line}" for line in lines)
