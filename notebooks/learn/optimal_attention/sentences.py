"""The chapter on optimal attention: its tables, the worked counterexample and the network's own."""

import math
from typing import TYPE_CHECKING

import numpy as np

from companion.book.intervals import listed, side
from companion.book.tables import interval_text
from companion.results.result import Result
from notebooks.learn.optimal_attention.drawing import PUBLISHED, of_multi30k
from notebooks.learn.optimal_attention.experiment import COUNTEREXAMPLE, FORMS
from notebooks.shared.agreement_drawing import data_name

if TYPE_CHECKING:
    import pandas as pd


ATTENTIONS = {
    "all on position 1": (1, 0, 0),
    "all on position 2": (0, 1, 0),
    "thirds": (1 / 3, 1 / 3, 1 / 3),
    "α*: halves on 2 and 3": (0, 1 / 2, 1 / 2),
}
PAIRS = ("train_pairs", "n_validation")
FORM_NAMES = {"summed": "summed context", "joined": "main model"}
PUBLISHED_BLEU = {"summed": 38.2, "joined": 37.9}


def which_sentences(result: Result) -> str:
    """What the translation models of this result translate, and what that can say of the paper's numbers."""
    if of_multi30k(result):
        return "The networks shown here translate Multi30k from English to German."
    trained, judged = (f"{result.config[name]:,}" if result.config[name] else "all" for name in PAIRS)
    name = data_name(result.values["data"]["translation"])
    return (
        f"These networks translate {name}: trained on {trained} of its pairs, looked at on {judged} others. "
        "That is no answer to the paper's numbers, which are of all of Multi30k, and not shown."
    )


def worked_table() -> "pd.DataFrame":
    """The counterexample step by step: what several attentions make of it, in nats.

    ``log p`` is the mean of log β of the right word and what the positions gain by disagreeing on the others.
    """
    import pandas as pd

    logits = np.array(COUNTEREXAMPLE)
    log_probe = logits - np.log(np.exp(logits).sum(1, keepdims=True))  # of every word, by position
    rows = {}
    for name, attention in ATTENTIONS.items():
        mixed = np.array(attention) @ logits
        log_p = float(mixed[0] - np.log(np.exp(mixed).sum()))
        mean = float(np.array(attention) @ log_probe[:, 0])
        rows[name] = {
            "logits": ", ".join(_signed(value) for value in mixed),
            "mean log β": _signed(mean, 3),
            "disagreement": _signed(log_p - mean, 3),
            "log p": _signed(log_p, 3),
            "p": f"{np.exp(log_p):.3f}",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def counterexample_sentences(result: Result) -> str:
    """β, α^opt as found by the solver, and what equation 12 of the right word alone would say."""
    found = result.values["counterexample"]
    probes = [found[f"probe_{place}"] for place in ("first", "second", "third")]
    best = [found[f"optimal_{place}"] for place in ("first", "second", "third")]
    return (
        f"β is {', '.join(f'{value:.4f}' for value in probes)}, and the solver finds "
        f"α* = ({', '.join(f'{value:.6f}' for value in best)}). The right word has the probability "
        f"{found['right']:.3f} there and {found['first_alone']:.3f} with all attention on the largest β. "
        f"From β of the right word alone, equation 12 would give {found['from_right_word']:.4f}."
    )


def quality_table(result: Result) -> "pd.DataFrame":
    """A row a form: BLEU, accuracy, agreement of α with β; published BLEU where it is of the same text."""
    import pandas as pd

    rows = {}
    for form in FORMS:
        found = result.values[form]
        chance = found["recorded"]["chance"]["value"]
        published = {"published": f"{PUBLISHED_BLEU[form]}"} if of_multi30k(result) else {}
        rows[FORM_NAMES[form]] = {
            "BLEU at the end": interval_text(found["bleu"], digits=1),
            "best of all looks": interval_text(found["best_bleu"], digits=1),
            **published,
            "words right": interval_text(found["accuracy"]),
            "𝒜(α, β)": interval_text(found["recorded"]["learned_probe"]),
            "chance": "–" if chance is None else f"{chance:.2f}",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def difference_sentence(result: Result) -> str:
    """BLEU of one form less that of the other, by seed, and whether the published order comes out."""
    found = result.values["difference"]["bleu"]
    if found["value"] is None:
        return ""
    told = (
        f"By seed, BLEU with summed context less that of the main model is {interval_text(found, digits=1)}"
    )
    if not of_multi30k(result):
        return f"{told}."
    published = PUBLISHED_BLEU["summed"] - PUBLISHED_BLEU["joined"]
    outcome = {
        "above": "the order is the published one",
        "below": "the order is the other one: summed context translates worse here",
    }.get(side(found), "which is better is undecided")
    return f"{told}; published is {published:+.1f}, of one network each. So {outcome}."


def identity_table(result: Result) -> "pd.DataFrame":
    """A row a kind of network: how far the rebuilt log-probability is from the network's own."""
    import pandas as pd

    classifier = result.values["classifier"]
    rows = {
        "classifier, mean loss by equation 12": {
            "mean": "",
            "largest": power_text(classifier["deviation"]),
            "among": "looks of the networks",
        },
    }
    for form in FORMS:
        for name, words in (("all_words", "β of all words"), ("right_word", "β of the right word alone")):
            found = result.values[form]["identity"][name]
            rows[f"{FORM_NAMES[form]}, {words}"] = {
                "mean": power_text(found["mean"]["value"]),
                "largest": power_text(found["largest"]),
                "among": "words of the networks",
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename(
        columns={"mean": "mean difference (nats)", "largest": "largest (nats)"}
    )


def unused_table(result: Result) -> "pd.DataFrame":
    """The network's own counterexample: each source position, what it says alone, β, α and α^opt."""
    import pandas as pd

    rows = [
        {
            "source": _plain(row["source"]),
            "says, alone": f"{_plain(row['says'])} ({row['says_with']:.2f})",
            "β": _small(row["probe"]),
            "α": f"{row['attention']:.3f}",
            "α*": f"{row['optimal']:.3f}",
        }
        for row in result.tables["unused"]
    ]
    return pd.DataFrame(rows).set_index("source") if rows else pd.DataFrame()


def unused_sentence(result: Result) -> str:
    """Which word that is, and its probability under three attentions; says so where there is none."""
    rows = result.tables["unused"]
    if not rows:
        return "No word of the first network is of that kind."
    row = rows[0]
    names = (
        ("largest_probe", "with all attention on the largest β"),
        ("learned", "with the learned attention"),
        ("optimal", "with α*"),
    )
    numbers = ", ".join(f"{_small(row[f'right_{name}'])} {words}" for name, words in names)
    return f"The word to be said is *{_plain(row['target'])}*. Its probability is {numbers}."


def power_text(value: float | None) -> str:
    """Small numbers by their power of ten, so that other rounding gives the same page."""
    if value is None:
        return "–"
    if value >= 0.001:
        return f"{value:.3f}"
    return "0" if value == 0 else f"below 1e{int(np.ceil(np.log10(value)))}".replace("-", "−")


def _small(probability: float) -> str:
    """Three decimals; of less than a thousandth, its size."""
    return f"{probability:.3f}" if probability >= 0.001 else f"{probability:.1e}".replace("-", "−")


def _signed(value: float, digits: int = 1) -> str:
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def _plain(piece: str) -> str:
    return {"<bos>": "begin", "<eos>": "end"}.get(piece, piece.removeprefix("▁") or piece)


# What the chapter on optimal attention found, in words: a point each, and whether it changes our mind.

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
