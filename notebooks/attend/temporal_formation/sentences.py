"""The chapter on the forming of temporal components in words made from its numbers."""

from attnlib.plots.style import task_name
from companion.book.tables import interval_text
from companion.results.result import Result, kinds_of

SIDES = ("encoder", "decoder")


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
        lines.append(
            f"* {task_name(task)}, {kind}: {interval_text(known['word_accuracy'])} of the words are right at "
            f"{known['length']['value']:.0f} words and {interval_text(twice['word_accuracy'])} at "
            f"{twice['length']['value']:.0f}; there {_leaves(twice)}."
        )
    return "\n".join(lines)


def _leaves(longer: dict) -> str:
    """In how many networks attention leaves its place, and at which position of those sentences."""
    leaves, networks = longer["leaves"], longer["word_accuracy"]["n"]
    if not leaves["n"]:
        return f"attention never leaves its place in any of {networks} networks"
    where = f"{leaves['value']:.0f}"
    if leaves["low"] is not None:  # an interval of Student's may reach past the ends of the sentence
        last = longer["length"]["value"] - 1
        where += f" [{max(leaves['low'], 0):.0f}, {min(leaves['high'], last):.0f}]"
    rest = "" if leaves["n"] == networks else "; never in the others"
    return f"attention leaves its place in {leaves['n']} of {networks} networks, at position {where}{rest}"


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


def half_sentences(result: Result, task: str, asked: str) -> str:
    """On which sides the numbers of AED and AO lie above one half, which is what the claims ask.

    Args:
        asked: ``wordless`` (share of μ's variance on average input) or ``offsets`` (displacement a place).
    """
    lines = []
    for kind in ("AED", "AO"):
        if (found := result.values.get(task, {}).get(kind)) is None:
            continue
        if asked == "wordless":
            sides = {f"{side} R²": found["wordless"][side]["average"]["r2_centred"] for side in SIDES}
        else:
            sides = {f"{side} ahead": found["offsets"][side]["slope"] for side in SIDES}
        above = [name for name, interval in sides.items() if _above(interval, 0.5)]
        numbers = ", ".join(f"{name} {interval_text(interval)}" for name, interval in sides.items())
        where = {0: "on neither side", 1: f"only for {(above or [''])[0]}", 2: "on both sides"}[len(above)]
        lines.append(f"{kind}, {numbers}: above one half {where}.")
    return (
        f"Held against one half, as in the verdicts below, on {task_name(task)}. {' '.join(lines)}"
        if lines
        else ""
    )


def step_sentences(result: Result, task: str) -> str:
    """Where attention stays at small offsets and gives way at large ones, which one slope hides."""
    lines = []
    for kind, found in result.values.get(task, {}).items():
        moved = {side: _places(found["offsets"][side]) for side in SIDES}
        if all(_bends(places) for places in moved.values()):
            numbers = "; ".join(
                f"{side} ahead {', '.join(interval_text(interval) for _, _, interval in places)}"
                for side, places in moved.items()
            )
            lines.append(f"* {kind}: {numbers}")
            offsets = ", ".join(str(k) for k, _, _ in moved["encoder"])
    if not lines:
        return ""
    return (
        f"These are no lines: attention stays for small offsets and gives way at large ones, and one slope "
        f"hides that. Displacement on {task_name(task)}, in places, with a clock ahead by {offsets}:\n\n"
        + "\n".join(lines)
    )


def _places(offsets: dict) -> list[tuple[int, float, dict]]:
    """Offset, expected displacement and displacement, by offset."""
    found = [
        (int(name.removeprefix("by_")), record["expected"]["value"], record["largest"])
        for name, record in offsets.items()
        if name.startswith("by_")
    ]
    return sorted(found, key=lambda place: place[0])


def _bends(places: list[tuple[int, float, dict]]) -> bool:
    """Whether attention moves by less than a quarter of the smallest offset and by twice that share of the
    largest."""
    if len(places) < 2 or any(not expected or moved["value"] is None for _, expected, moved in places):
        return False
    first, last = (moved["value"] / expected for _, expected, moved in (places[0], places[-1]))
    return first < 0.25 and last > 2 * max(first, 0.125)


def beyond_sentences(result: Result, task: str) -> str:
    """Attention in place and the temporal components' own, within and beyond the lengths trained on."""
    parted, together = [], []
    for kind in result.values.get(task, {}):
        rows = [row for row in result.tables["positions"] if (row["task"], row["kind"]) == (task, kind)]
        beyond = [row for row in rows if row["position"] >= row["trained_up_to"]]
        within = [row for row in rows if row["position"] < row["trained_up_to"]]
        if not beyond or not within or any(row["in_place_low"] is None for row in rows):
            continue
        text = (
            f"{kind} {_mean(beyond, 'in_place')} against {_mean(beyond, 'temporal_in_place')} (within "
            f"{_mean(within, 'in_place')} against {_mean(within, 'temporal_in_place')})"
        )
        apart = sum(row["in_place_low"] > row["temporal_in_place_high"] for row in beyond)
        (parted if 2 * apart > len(beyond) else together).append(text)
    lines = [f"Attention in place against that of μ·μ alone on {task_name(task)}, means over positions."]
    if parted:
        lines.append(
            "Beyond the lengths trained on, attention keeps more of its place than the temporal components "
            f"do (intervals apart at more than half of the positions): {'; '.join(parted)}."
        )
    if together:
        lines.append(f"Not to be told apart, so that the two stay or leave together: {'; '.join(together)}.")
    return " ".join(lines) if parted or together else ""


def _mean(rows: list[dict], column: str) -> str:
    return f"{sum(row[column] for row in rows) / len(rows):.2f}"


def outcome_sentences(result: Result) -> str:
    """What has happened of that which would change our mind: two of its conditions, by intervals."""
    course, clock = [], []
    for task, kind, found in kinds_of(result):
        name, rebuilt = f"{task_name(task)}, {kind}", found["rebuilt"]
        average, constant = (rebuilt[way]["both"]["similarity"] for way in ("average", "constant"))
        shares = [found["wordless"][side]["average"]["r2_centred"] for side in SIDES]
        if all(_above(share, 0.5) for share in shares) and not _above(average, _top(constant)):
            course.append(f"{name} ({interval_text(average)} against {interval_text(constant)})")
        alone = rebuilt["temporal"]["alone"]["similarity"]
        slopes = {side: found["offsets"][side]["slope"] for side in SIDES}
        moved = [
            f"{side} ahead {interval_text(slope)}" for side, slope in slopes.items() if _above(slope, 0.5)
        ]
        if moved and alone["value"] is not None and _top(alone) < 0.5:
            clock.append(f"{name} ({', '.join(moved)}; μ·μ alone {interval_text(alone)})")
    return (
        "* Average input gives more than half of μ's variance on both sides and yet rebuilds no more "
        f"attention, by the intervals, than a constant state: {'; '.join(course) or 'nowhere here'}.\n"
        "* Attention follows a shifted clock by more than half of the way and μ·μ alone rebuilds less than "
        f"half of it: {'; '.join(clock) or 'nowhere here'}."
    )


def _above(interval: dict, bound: float) -> bool:
    """Whether the whole interval, or a value without one, lies above the bound."""
    ends = [interval[end] for end in ("value", "low") if interval[end] is not None]
    return bool(ends) and min(ends) > bound


def _top(interval: dict) -> float:
    return max(interval[end] for end in ("value", "high") if interval[end] is not None)
