"""One step in numbers: tables and sentences of the chapter."""

from typing import TYPE_CHECKING

from attnlib.companion.tables import interval_text
from attnlib.experiments.one_step import PAIRS
from attnlib.experiments.result import Result
from attnlib.plotting.attention_map import attention_map
from attnlib.plotting.one_step import name_of

if TYPE_CHECKING:
    import pandas as pd


def step_in_words(result: Result) -> str:
    """Which step is worked: the sentence, what is read already, and the word to come."""
    source, target = PAIRS[result.config["pair"]]
    words, place = [*target.split(), "⟨end⟩"], result.config["place"]
    read = " ".join(words[:place]) or "nothing yet"
    return f"Source: *{source}* Translation so far: *{read}*. To be predicted: *{words[place]}*."


def worked_table(result: Result) -> "pd.DataFrame":
    """A row a source word: from the score to the weight."""
    import pandas as pd

    rows = {
        f"{place + 1}. {row['source']}": {
            "score": f"{row['score']:.3f}".replace("-", "−"),
            "exp(score − largest)": f"{row['exponential']:.4f}",
            "attention": f"{row['attention']:.4f}",
            "norm of weight × state": f"{row['norm']:.3f}",
        }
        for place, row in enumerate(result.tables["worked"])
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def sums_sentence(result: Result) -> str:
    """The softmax carried out: the sum of the exponentials, and the largest weight from it."""
    rows = result.tables["worked"]
    total = sum(row["exponential"] for row in rows)
    best = max(rows, key=lambda row: row["attention"])
    return (
        f"The exponentials sum to {total:.4f}. So the weight of `{best['source']}` is "
        f"{best['exponential']:.4f} / {total:.4f} = {best['exponential'] / total:.4f}, and all weights "
        f"together are {sum(row['attention'] for row in rows):.4f}."
    )


def predicted_sentence(result: Result) -> str:
    """The likeliest words after the step."""
    parts = ", ".join(f"`{row['word']}` {row['probability']:.2f}" for row in result.tables["predicted"])
    return f"From state, context and the word read last, the output layer makes: {parts}."


def weights_sentence(result: Result) -> str:
    """The weights that the primers speak of, over networks."""
    parts = [f"{name_of(name)}, {interval_text(found)}" for name, found in result.values["weights"].items()]
    return (
        f"After training, over {result.values['token_accuracy']['n']} networks (predicted word: source "
        f"words): {'; '.join(parts)}. Of the words of held-out sentences they get "
        f"{interval_text(result.values['token_accuracy'])} right."
    )


def maps(result: Result) -> str:
    """The interactive maps of all sentences shown."""
    rows = result.tables["map"]
    pairs = sorted({row["pair"] for row in rows})
    return "\n".join(attention_map([row for row in rows if row["pair"] == pair]) for pair in pairs)
