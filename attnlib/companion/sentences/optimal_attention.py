"""The chapter on optimal attention: its tables, the worked counterexample and the network's own."""

from typing import TYPE_CHECKING

import numpy as np

from attnlib.companion.intervals import side
from attnlib.companion.tables import interval_text
from attnlib.experiments.optimal_attention import COUNTEREXAMPLE, FORMS
from attnlib.experiments.result import Result
from attnlib.plotting.agreement import data_name
from attnlib.plotting.optimal_attention import of_multi30k

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
