"""One step in numbers: tables and sentences of the chapter."""

from typing import TYPE_CHECKING

from attnlib.models.sequence_to_sequence import SequenceConfig
from attnlib.plots.attention_map import attention_map
from attnlib.training.vocabulary import EOS, MARKS, UNK
from companion.book.intervals import listed
from companion.book.tables import interval_text
from companion.results.result import Result
from companion.runs.sequence_course import SequenceSettings
from notebooks.primer.one_step.drawing import name_of
from notebooks.primer.one_step.experiment import NETWORKS, PAIRS

if TYPE_CHECKING:
    import pandas as pd

NAMES = {"bahdanau": "Bahdanau et al. 2015", "luong": "Luong et al. 2015"}
SCORES = {  # what asks each source word, and the formula
    "additive": ("A small network asks how relevant each source word is now", r"v^\top \tanh(W s + U h_t)"),
    "general": ("A matrix between the two states says how relevant each source word is now", r"s^\top W h_t"),
}


def network_sentence(result: Result) -> str:
    """Whose network it is, which way its encoder reads, and how often it has read each pair."""
    config, settings = _network(result), result.config
    reads = "in both directions" if config.bidirectional else "from the first word to the last"
    stack = (
        "" if config.layers == 1 else f" Both sides have {config.layers} layers; the states are the top's."
    )
    times = settings["steps"] * SequenceSettings.batch_size / settings["n_train"]
    return (
        f"The network is that of {NAMES[settings['network']]}. Its encoder reads {reads} and leaves a state "
        f"$h_t$ for each word of the source.{stack} In training the network has read each of "
        f"{settings['n_train']:,} pairs about {times:.1f} times."
    )


def step_in_words(result: Result) -> str:
    """Which step is worked: the sentence, what is written already, the word to come, and unknown words."""
    pair, place = result.config["pair"], result.config["place"]
    source, target = (text.split() for text in PAIRS[pair])
    read = " ".join(target[:place]) or "nothing yet"
    coming = [*target, "⟨end⟩"][place]
    told = f"Source: *{' '.join(source)}* Translation so far: *{read}*. To be predicted: *{coming}*."
    words = {side: _as_read(result, pair, side) for side in ("source", "target")}
    unknown = {
        side: [word for word, own in zip(given, words[side], strict=True) if own == MARKS[UNK]]
        for side, given in (("source", source), ("target", target))
    }
    if not any(unknown.values()):
        return f"{told} The network knows all these words."
    parts = [
        f"of the {name} {listed([f'*{word}*' for word in unknown[side]])} (it reads "
        f"`{' '.join(words[side])}`)"
        for side, name in (("source", "source"), ("target", "translation"))
        if unknown[side]
    ]
    return (
        f"{told} The network knows at most {result.config['max_words']:,} words of either language, the most "
        f"frequent ones of its training pairs. It does not know {'; nor '.join(parts)}."
    )


def asking_sentence(result: Result) -> str:
    """What the state that asks has read, against the second primer's example."""
    target, place = PAIRS[result.config["pair"]][1].split(), result.config["place"]
    if _network(result).decoder == "bahdanau":
        if not place:
            return "The state that asks, $s$, is the one the decoder starts in; no word is read yet."
        return (
            "The state that asks, $s$, is the decoder's previous one. It was made before the last word, "
            f"*{target[place - 1]}*, was read. The second primer says of its example that the decoder's "
            "state represents the translation so far; here the asking state lacks its last word."
        )
    last = f"the last word, *{target[place - 1]}*," if place else "the mark of the beginning"
    return (
        f"The decoder has read {last} before it asks, so its present state, $s$, represents the whole "
        "translation so far, as the second primer says of its example."
    )


def score_sentence(result: Result) -> str:
    """The score of this network, with its formula."""
    asks, formula = SCORES[_network(result).scoring]
    return f"**1. Score.** {asks},\n\n$$\ne_t = {formula} .\n$$"


def worked_table(result: Result) -> "pd.DataFrame":
    """A row a source word: from the score to the weight."""
    import pandas as pd

    rows = {
        f"{place + 1}. {row['source']}": {
            "score": f"{row['score']:.3f}".replace("-", "−"),
            "exp(score − largest)": f"{row['exponential']:.4f}",
            "attention": f"{row['attention']:.4f}",
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


def context_table(result: Result) -> "pd.DataFrame":
    """A row a source word, its weighted state at some coordinates; last the context that they add up to."""
    import pandas as pd

    table: dict[str, dict[str, str]] = {}
    for row in result.tables["context"]:
        heading = f"coordinate {row['coordinate']}"
        table.setdefault(f"{row['source_place'] + 1}. {row['source']}", {})[heading] = _four(row["weighted"])
    last = {f"coordinate {row['coordinate']}": _four(row["context"]) for row in result.tables["context"]}
    return pd.DataFrame.from_dict(table | {"sum: the context": last}, orient="index")


def context_sentence(result: Result) -> str:
    """One entry of the table worked out, that of the largest weight."""
    rows = result.tables["worked"]
    best = max(range(len(rows)), key=lambda place: rows[place]["attention"])
    entry = next(row for row in result.tables["context"] if row["source_place"] == best)
    return (
        f"Coordinate {entry['coordinate']} of the state of `{entry['source']}`, counted from 0, is "
        f"{_four(entry['state'])}; times its weight, {rows[best]['attention']:.4f}, that is "
        f"{_four(entry['weighted'])}. Added up with those of the other words it makes "
        f"{_four(entry['context'])}, the network's own context there. Products "
        "and sums are of unrounded numbers, so the last digit may differ."
    )


def word_sentence(result: Result) -> str:
    """How a word comes of the context, and the likeliest ones."""
    config = _network(result)
    if config.decoder == "bahdanau":
        how = (
            "The decoder reads the context together with the word it wrote last, and so comes to its next "
            "state. From that state, the context and the word read last"
        )
    else:
        fed = ", which is read beside the next word as well" if config.input_feeding else ""
        how = rf"Context and state are joined to $m = \tanh(W_c [c ; s])${fed}. From $m$"
    parts = ", ".join(f"`{row['word']}` {row['probability']:.2f}" for row in result.tables["predicted"])
    return (
        f"**4. The word.** {how} the output layer gives every word of the vocabulary a probability: {parts}."
    )


def alternative_sentence(result: Result) -> str:
    """The other network, and what it does in another order."""
    if result.config["network"] == "luong":
        return "`-p network=bahdanau` works the same step with a decoder that asks with its previous state."
    return "`-p network=luong` works the same step with a decoder that asks with its present state."


def weights_sentence(result: Result) -> str:
    """The weights that the primers speak of, over networks."""
    parts = [f"{name_of(name)}, {interval_text(found)}" for name, found in result.values["weights"].items()]
    return (
        f"After training, over {result.values['token_accuracy']['n']} networks (predicted word: source "
        f"words): {'; '.join(parts)}. Of the words of held-out sentences they get "
        f"{interval_text(result.values['token_accuracy'])} right."
    )


def seeds_sentence(result: Result) -> str:
    """Where networks of other seeds look at other words, by the word with the largest weight."""
    networks = result.values["token_accuracy"]["n"]
    if networks < 2:
        return "One network alone cannot tell."
    agree = {
        name_of(name): round(found["value"] * networks) for name, found in result.values["largest"].items()
    }
    parts = [
        f"{name}, {'all' if own == networks else own or 'none'} of {networks}" for name, own in agree.items()
    ]
    apart = [name for name, own in agree.items() if 0 < own < networks]
    told = f"it has happened at {listed(apart)}" if apart else "it has not happened"
    most = f"The named words have the largest weight in (networks): {'; '.join(parts)}."
    return f"{most} Of the last point, {told}."


def maps(result: Result) -> str:
    """The interactive maps of all sentences shown."""
    rows = result.tables["map"]
    pairs = sorted({row["pair"] for row in rows})
    return "\n".join(attention_map([row for row in rows if row["pair"] == pair]) for pair in pairs)


def _network(result: Result) -> SequenceConfig:
    """The kind of network, its sizes left at 1."""
    return SequenceConfig(source_size=1, target_size=1, width=1, **NETWORKS[result.config["network"]])


def _as_read(result: Result, pair: int, side: str) -> list[str]:
    """The words of one side as the network reads them, without the end mark."""
    rows = [row for row in result.tables["map"] if row["pair"] == pair]
    words = {row[f"{side}_place"]: row[side] for row in rows}
    return [words[place] for place in sorted(words) if words[place] != MARKS[EOS]]


def _four(number: float) -> str:
    return f"{number:.4f}".replace("-0.0000", "0.0000").replace("-", "−")
