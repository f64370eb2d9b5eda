"""What the count table of a text says of its most frequent words, as words."""

from typing import TYPE_CHECKING

from attnlib.recipes.word_counts import text_of

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

NUMBERS = ("agreement", "chance", "derivative_error", "derivative_correlation")


def measure_word_counts(recording: "Recording") -> dict:
    """The recording with words in place of ids.

    Returns:
        ``rows``: for each listed source word the best target words and their probability, from the count
        table (``counted``) and after the iterations (``iterated``); ``agreement``, ``chance``,
        ``derivative_error``, ``derivative_correlation``, ``log_likelihood``.
    """
    text = text_of(recording.spec.resolved)
    source, target = text.source_vocabulary.words, text.target_vocabulary.words
    rows = [
        {"source": source[word]}
        | {
            name: [
                [target[other], value]
                for other, value in zip(
                    recording[f"{name}_words"][i].tolist(), recording[name][i].tolist(), strict=True
                )
            ]
            for name in ("counted", "iterated")
        }
        for i, word in enumerate(recording["words"].tolist())
    ]
    numbers = {name: recording[name].item() for name in NUMBERS}
    return {"rows": rows, "log_likelihood": recording["log_likelihood"].tolist()} | numbers
