"""The chapter on the forming of temporal components in words made from its numbers."""

from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.order import kinds_of
from attnlib.plotting.style import task_name


def wordless_sentences(result: Result) -> str:
    """What the average input gives of each kind's temporal components, and of its attention."""
    lines = []
    for task, kind, found in kinds_of(result):
        average = {side: found["wordless"][side]["average"] for side in ("encoder", "decoder")}
        rebuilt = found["rebuilt"]
        lines.append(
            f"* {task_name(task)}, {kind}: on average input the states give "
            f"{interval_text(average['encoder']['r2_centred'])} of the variance of μ over positions in the "
            f"encoder and {interval_text(average['decoder']['r2_centred'])} in the decoder (offsets taken "
            "off; below 0: further off than a constant). With these states in place of μ the attention keeps "
            f"a similarity of {interval_text(rebuilt['average']['both']['similarity'])} to the full one, "
            f"with one constant state {interval_text(rebuilt['constant']['both']['similarity'])}."
        )
    return "\n".join(lines)


def offset_sentences(result: Result) -> str:
    """Slopes of the displacement, encoder and decoder ahead, and both together."""
    lines = []
    for task, kind, found in kinds_of(result):
        offsets = found["offsets"]
        line = (
            f"* {task_name(task)}, {kind}: displacement per place, encoder ahead "
            f"{interval_text(offsets['encoder']['slope'])}, decoder ahead "
            f"{interval_text(offsets['decoder']['slope'])}"
        )
        if "encoder_words" in offsets:
            line += (
                "; with words in place of average input "
                f"{interval_text(offsets['encoder_words']['slope'])} and "
                f"{interval_text(offsets['decoder_words']['slope'])}; with zeros "
                f"{interval_text(offsets['encoder_null']['slope'])} and "
                f"{interval_text(offsets['decoder_null']['slope'])}"
            )
        line += (
            "; both ahead by 5, a similarity of "
            f"{interval_text(offsets['both']['by_5']['similarity'])} to the attention before."
        )
        lines.append(line)
    return "\n".join(lines)


def longer_sentences(result: Result) -> str:
    """Accuracy at the lengths trained on and at twice the longest, and how the clock goes on."""
    lines = []
    for task, kind, found in kinds_of(result):
        if not {"times_1", "times_2"} <= set(found["longer"]):
            if (line := f"* {task_name(task)}: no sentences of other lengths.") not in lines:
                lines.append(line)
            continue
        known, twice = found["longer"]["times_1"], found["longer"]["times_2"]
        leaves = twice["leaves"]
        where = (
            "attention never leaves its place"
            if leaves["value"] is None
            else f"attention leaves its place at position {leaves['value']:.0f} on average"
        )
        lines.append(
            f"* {task_name(task)}, {kind}: {interval_text(known['word_accuracy'])} of the words are right at "
            f"{known['length']['value']:.0f} words and {interval_text(twice['word_accuracy'])} at "
            f"{twice['length']['value']:.0f}; there {where}."
        )
    return "\n".join(lines)


def position_sentence(result: Result) -> str:
    """What is left without position codes, against with them."""
    lines = []
    for task, kinds in result.values.items():
        if {"AO", "AO-none"} <= set(kinds):
            with_codes, without = kinds["AO"], kinds["AO-none"]
            lines.append(
                f"* {task_name(task)}: with sinusoidal codes AO has "
                f"{interval_text(with_codes['token_accuracy'])} of the tokens right, without any "
                f"{interval_text(without['token_accuracy'])}; μ makes up "
                f"{interval_text(with_codes['temporal_variance']['encoder']['words'])} of the variance of "
                f"the encoder's states at words with codes, and "
                f"{interval_text(without['temporal_variance']['encoder']['words'])} without."
            )
    return "\n".join(lines)
