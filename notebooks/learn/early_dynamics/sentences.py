"""The chapter on count tables and early dynamics in words and tables made from its numbers."""

from typing import TYPE_CHECKING

from companion.book.tables import interval_text
from companion.results.result import Result
from companion.runs.word_counts import Settings
from notebooks.learn.early_dynamics.drawing import CORPUS_NAMES
from notebooks.learn.early_dynamics.experiment import INFORMATIVE
from notebooks.learn.early_dynamics.measure import CORPORA

if TYPE_CHECKING:
    import pandas as pd

ROWS = 24  # words of the text that its table shows


def counts_table(result: Result) -> "pd.DataFrame":
    """A row a corpus: what the count table knows of translations, and what iterating makes of it."""
    import pandas as pd

    rows = {}
    for corpus in CORPORA:
        found = result.values[corpus]
        rows[CORPUS_NAMES[corpus]] = {
            f"{heading}, {stage}": interval_text(found[key][field])
            for field, heading in (("right", "Trans of the right word"), ("aligned", "α on its source word"))
            for key, stage in (("counted", "from C"), ("iterated", "iterated"))
        } | {"α, uniform": f"{found['chance']:.2f}"}
    return pd.DataFrame.from_dict(rows, orient="index")


def derivative_table(result: Result) -> "pd.DataFrame":
    """A row a corpus: slopes of the measured derivative over that in theory, at the largest width."""
    import pandas as pd

    rows = {}
    for corpus in INFORMATIVE:
        found = result.values["derivative"][corpus]
        rows[CORPUS_NAMES[corpus]] = {
            "logits over 2 (C − mean C)": interval_text(found["logits"]["slope"]),
            "probabilities over the same, as printed": f"{found['printed']['slope']['value']:.3f}",
            "1/|O|": f"{1 / found['outputs']:.3f}",
            "probabilities over 2/|O| (C − mean C)": interval_text(found["derived"]["slope"]),
            "error falls as width to the power": interval_text(found["rate"]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def text_table(result: Result) -> "pd.DataFrame":
    """The most frequent words of the text with their best target words; empty without a text."""
    import pandas as pd

    pd.set_option("display.max_colwidth", None)  # else the end of a long cell becomes dots
    records = [
        {"source": row["source"], "Trans, from C": row["counted"], "Trans, iterated": row["iterated"]}
        for row in result.tables.get("words", ())
    ]
    return pd.DataFrame(records[:ROWS]).set_index("source") if records else pd.DataFrame()


def early_dynamics_sentences(result: Result) -> str:
    """What the tables and the derivative say, a point each."""
    values, width = result.values, result.config["widths"][-1]
    lexicon, labels = values["lexicon"], values["polarity"]
    printed = [values["derivative"][corpus]["printed"]["slope"]["value"] for corpus in INFORMATIVE]
    logits, derived = (
        [values["derivative"][corpus][key]["slope"]["value"] for corpus in INFORMATIVE]
        for key in ("logits", "derived")
    )
    points = (
        f"Of the lexicon's words, {_percent(lexicon['counted']['first']['value'])} have their translation as "
        f"the most probable word of the count table, with a probability of "
        f"{interval_text(lexicon['counted']['right'])}; the iterations bring it to "
        f"{interval_text(lexicon['iterated']['right'])}.",
        "Permutations and mixtures stay where they start: Trans of the right word is "
        f"{interval_text(values['permutation']['counted']['right'])} and "
        f"{interval_text(values['mixture']['counted']['right'])} before the iterations, "
        f"{interval_text(values['permutation']['iterated']['right'])} and "
        f"{interval_text(values['mixture']['iterated']['right'])} after them.",
        f"Polar words have their label with a probability of {interval_text(labels['counted']['right'])}, "
        f"neutral ones come within {interval_text(labels['neutral'])} of one half. The alignment puts "
        f"{interval_text(labels['counted']['aligned'])} on the polar word of a review, where uniform "
        f"attention has {labels['chance']:.2f}.",
        f"At width {width} the derivative of the logits is {_span(logits, 2)} times that "
        f"of equation 54. The derivative of the probabilities is {_span(printed, 3)} "
        f"times what equation 15 prints, and {_span(derived, 2)} times the same with "
        f"1/|O| put in.",
    )
    return "\n".join(f"* {point}" for point in (*points, *_of_text(values)))


def _span(numbers: list[float], digits: int) -> str:
    """The range of some numbers, or the one that all of them round to."""
    low, high = f"{min(numbers):.{digits}f}", f"{max(numbers):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def _of_text(values: dict) -> tuple[str, ...]:
    if "text" not in values:
        return ()
    text = values["text"]
    return (
        f"In the text, {text['counted_words']} different target words stand first for the {text['listed']} "
        f"most frequent source words in the count table, and {text['iterated_words']} after the iterations. "
        f"The source word with the largest α after the iterations is at the top of the α from C for "
        f"{_percent(text['agreement'])} of held-out target words; chance is {_percent(text['chance'])}.",
        f"A bag of words of width {Settings().width}, that of the paper's networks, has a derivative of the "
        f"logits on the text that differs from equation 54 by {text['derivative_error']:.2f} times the size "
        f"of what that gives; the correlation of the two is {text['derivative_correlation']:.2f}.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
