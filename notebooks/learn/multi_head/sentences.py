"""The chapter on several heads in words made from its numbers."""

from typing import TYPE_CHECKING

from companion.book.intervals import above, capital, side
from companion.book.tables import count_of, counted, interval_range, interval_text
from companion.results.result import Result
from notebooks.learn.multi_head.drawing import SCENARIO_LOOKS
from notebooks.learn.multi_head.experiment import standing
from notebooks.shared.copying import enough
from notebooks.shared.sentences import updates_cell

if TYPE_CHECKING:
    import pandas as pd


# The scenarios of the chapter on several heads in tables: how many networks fail, and after how long.

ELSEWHERE = {
    "elsewhere_good": "good heads alone, in other bodies",
    "elsewhere_bad": "bad heads alone, in other bodies",
}
LOOKS = (0.6, 0.8, 0.9, 1, 1.2, 2)  # of the updates that networks are judged by


def scenarios_table(result: Result) -> "pd.DataFrame":
    """A row for each scenario: how many networks failed, of how many sets of heads, and how long it took."""
    import pandas as pd

    names = {scenario: label for scenario, (label, _) in SCENARIO_LOOKS.items()} | ELSEWHERE
    rows = {}
    for scenario, label in names.items():
        found = result.values[scenario]
        if found["n"]:
            share = found["failed"]
            rows[label] = {
                "failed, share": (f"{counted(share)}, {share['low']:.2f} to {share['high']:.2f}"),
                "sets of heads": found["head_sets"],
                "updates to 95 %": updates_cell(found, result.config["steps"]),
                f"accuracy after {result.config['steps']}": (
                    f"{found['lowest_accuracy']:.2f} to {found['highest_accuracy']:.2f}"
                ),
            }
            later = found["followed"]
            if later["steps"] > result.config["steps"]:
                rows[label][f"accuracy after {later['steps']}"] = (
                    f"{later['lowest_accuracy']:.2f} to {later['highest_accuracy']:.2f}"
                )
    return pd.DataFrame.from_dict(rows, orient="index")


def bounds_table(result: Result) -> "pd.DataFrame":
    """How many networks of each scenario are below 95 % at looks around the one that judges them."""
    import pandas as pd

    looks = sorted({row["steps"] for row in result.tables["courses"]})
    at = sorted({min(looks, key=lambda look: abs(look - part * result.config["steps"])) for part in LOOKS})
    rows: dict[str, dict[str, str]] = {}
    for scenario, (label, _) in SCENARIO_LOOKS.items():
        own = [row for row in result.tables["courses"] if row["scenario"] == scenario]
        for look in at if own else ():
            accuracy = [row["accuracy"] for row in own if row["steps"] == look]
            below = sum(not enough(one) for one in accuracy)
            rows.setdefault(label, {})[f"after {look}"] = f"{below} of {len(accuracy)}"
    return pd.DataFrame.from_dict(rows, orient="index")


LIKELY = 0.5  # share of failures: the bound of the claims on likely failing and likely learning
ABOUT = 0.2  # shares that differ by less are about equal: what passes for none with the claim on random heads
NO_WINNER = (
    "No network of one good head among bad ones has learned, so none tells which head comes to attend."
)


def screening_sentence(result: Result) -> str:
    """How many heads were tried alone, how many of them are good and bad, and what these are enough for."""
    heads, config = result.values["heads"], result.config
    if not heads["tried"]:
        return "No head has been tried alone yet."
    sets = "one set" if config["trials"] == 1 else f"up to {config['trials']} sets"
    text = (
        f"Of {heads['tried']} heads tried alone on {sets} of data, {heads['good']} are good and "
        f"{heads['bad']} bad."
    )
    if config["trials"] > 1:
        text += (
            f" That took {heads['runs']} runs: a head that is neither on one set of data, or not what it was "
            "before, is not tried on the next."
        )
    if config["followed"] > config["steps"]:
        text += (
            f" They are judged after {config['steps']} updates; after {config['followed']}, "
            f"{heads['bad_later'] or 'none'} of the {heads['tried']} would be bad on their first set of data."
        )
    if heads["bad"] < config["heads"]:
        text += f" For networks of {config['heads']} bad heads these are too few, so there are none."
    if heads["bad"] < config["heads"] - 1:
        text += " Nor are there networks of one good head among bad ones."
    elif not heads["good"]:
        text += " Without a good head there are no networks of one good head among bad ones."
    return text


def good_head_sentences(result: Result) -> str:
    """Whether one good head among bad ones makes failures rarer, and whether it is the one that attends."""
    apart, found = (result.values[name] for name in ("all_bad_less_one_good", "good_head"))
    lines = []
    if apart["n"]:
        told = {
            "above": "One good head makes failures rarer.",
            "below": "One good head makes failures more frequent.",
            "open": "Whether one good head makes failures rarer cannot be told from these.",
        }
        if not any(result.values[name]["failed"]["value"] for name in ("all_bad", "one_good")):
            told["open"] = "None of either fails, so there is nothing that a good head could make rarer."
        pairs = f"{apart['n']} pair{'' if apart['n'] == 1 else 's'}"
        lines.append(
            f"The share of failures with bad heads only, less that with a good one in place of one, on "
            f"the same data: {interval_range(apart)} ({pairs}, Newcombe's interval). {told[side(apart)]}"
        )
    if result.values["one_good"]["n"]:
        lines.append(_winner(found, result) if found["n"] else NO_WINNER)
    return "\n".join(f"* {line}" for line in lines)


def copied_sentences(result: Result) -> str:
    """Whether a bad head whose context is as long as that of several fails as it does alone."""
    copied, bad, heads = result.values["copied"], result.values["all_bad"], result.config["heads"]
    if not copied["n"]:
        return ""
    text = (
        f"One bad head in {heads} copies is a single head whose context is {heads} times as long. "
        f"{capital(_failed(copied))}"
    )
    text += f"; of networks of {heads} different bad heads {_failed(bad)}. " if bad["n"] else ". "
    told = {
        "below": "So a longer context is enough for a bad head to learn in time; that heads differ is not "
        "needed.",
        "above": "So a longer context alone is not enough to learn in time.",
        "open": "Whether a longer context alone is enough to learn in time cannot be told from these.",
    }
    return text + told[side(copied["failed"], LIKELY)]


def outcome_sentences(result: Result) -> str:
    """Which of the outcomes that would change our mind have come about, one line each."""
    values = result.values
    bad, good, apart = (values[name] for name in ("all_bad", "one_good", "all_bad_less_one_good"))
    if not (bad["n"] and good["n"]):
        number = "Networks of bad heads, or of a good one among them, are too few to tell."
    elif side(bad["failed"], LIKELY) == side(apart, ABOUT) == "below":
        number = (
            f"It happened: of networks of bad heads {_failed(bad)}, with a good one {_failed(good)}. By this "
            "number of updates they learn without a good start."
        )
    elif side(apart) == "above":
        number = f"It did not: of networks of bad heads {_failed(bad)}, with a good one {_failed(good)}."
    else:
        number = f"Undecided: of networks of bad heads {_failed(bad)}, with a good one {_failed(good)}."
    again, turned = _tried_again(result)
    data = (
        f"It happened to {turned or 'none'} of {again} heads that were tried on more than one set of data."
        if again
        else "No head was tried on a second set of data."
    )
    elsewhere, worse = (values[name] for name in ELSEWHERE)
    bodies = "No head has been tried in another body."
    if elsewhere["n"] and worse["n"]:
        bodies = {
            True: "It did not: heads that are good in one body are better than bad ones in others, too.",
            False: (
                f"Not ruled out: in other bodies {_failed(elsewhere)} of good heads, {_failed(worse)} of bad "
                "ones."
            ),
        }[above(worse["failed"], elsewhere["failed"])]
    return "\n".join(f"* {line}" for line in (number, data, bodies))


def body_sentences(result: Result) -> str:
    """Whether good heads are good in other bodies too, and whether more random heads than one help."""
    good, bad = (result.values[name] for name in ELSEWHERE)
    lines = []
    if good["n"] and bad["n"]:
        lines.append(
            f"Alone in {_bodies(result.config['elsewhere'])}, of the runs of heads that are good here "
            f"{_failed(good)}, of the runs of heads that are bad here {_failed(bad)}. "
            f"{_goes_along(good, bad)}"
        )
    more = result.values["random_over_alone"]
    if more["value"] is not None:
        told = {
            "above": "More heads, with a context longer by as much, are ahead.",
            "below": "More heads, with a context longer by as much, are behind.",
            "open": "Whether more heads are ahead cannot be told from these.",
        }
        lines.append(
            f"{result.config['heads']} random heads less the first of them alone, in the same body on the "
            f"same data, over {more['n']} bodies: {interval_range(more)} in accuracy when they are judged. "
            f"{told[side(more)]}"
        )
    return "\n".join(f"* {line}" for line in lines)


def _failed(found: dict) -> str:
    """``20 of 20 fail (95 % interval of the share 0.84 to 1.00)``."""
    share = found["failed"]
    number = counted(share)
    fail = "fails" if number.startswith("1 of") else "fail"
    return f"{number} {fail} (95 % interval of the share {share['low']:.2f} to {share['high']:.2f})"


def _tried_again(result: Result) -> tuple[int, int]:
    """How many heads were tried on several sets of data, and how many were good on one and bad on one."""
    courses: dict[tuple, list[float]] = {}
    for row in result.tables["courses"]:
        if row["scenario"] in ("single", "again") and row["steps"] <= result.config["steps"]:
            courses.setdefault((row["heads"], row["seed"]), []).append(row["accuracy"])
    standings: dict[str, list[str | None]] = {}
    for (head, _), accuracy in courses.items():
        standings.setdefault(head, []).append(standing(accuracy))
    again = [own for own in standings.values() if len(own) > 1]
    return len(again), sum({"good", "bad"} <= set(own) for own in again)


def _winner(found: dict, result: Result) -> str:
    heads, steps, even = result.config["heads"], result.config["steps"], 1 / result.config["length"]
    told = {
        "above": "It is the good head that comes to attend, more often than by chance.",
        "below": "It is one of the bad heads that comes to attend.",
        "open": "That the good head comes to attend more often than by chance is not shown.",
    }
    share = found["wins"]
    if max(found["weight"]["high"] or 1, found["best_other"]["high"] or 1) < even:
        verdict = (
            f"No head comes to attend to it: at uniform attention each gives it {even:.4f}. These networks "
            "learn, and not by their good head"
        )
        alone = found["alone"]
        if alone["n"]:
            verdict += f"; alone, in {alone['n']} runs, good heads take {updates_cell(alone, steps)} updates"
        verdict += "."
    else:
        verdict = told[side(share, 1 / heads)]
    return (
        f"When they are judged, the good head has the most weight on the word to be said in "
        f"{count_of(share)} of the {share['n']} networks of one good head that learned "
        f"(95 % interval of the share {share['low']:.2f} to {share['high']:.2f}, by chance {1 / heads:.3g}). "
        f"Its weight there is {interval_text(found['weight'], 4)}, the largest of another head "
        f"{interval_text(found['best_other'], 4)}. {verdict}"
    )


def _bodies(number: int) -> str:
    return "another body" if number == 1 else f"{number} other bodies"


def _goes_along(good: dict, bad: dict) -> str:
    if above(bad["failed"], good["failed"]):
        return "So a head takes some of its standing along."
    if side(bad["failed"], LIKELY) == "below":
        return "So a bad head is bad in its body, not by itself: elsewhere few of them fail, or none."
    return "That a head takes its standing along into another body is not shown."


# Whether several heads are several chances, in a table and in words.


def together_table(result: Result) -> "pd.DataFrame":
    """A row for each scenario: in how many networks all heads go one way, and which; a single head always."""
    import pandas as pd

    return pd.DataFrame.from_dict(
        {
            SCENARIO_LOOKS[name][0]: {
                "networks": found["n"],
                "all heads drawn": found["all_drawn"],
                "all driven away": found["none_drawn"],
                "some of each": found["mixed"],
                f"settled after {found['step']} updates": counted(found["same"]),
            }
            for name, found in result.values["together"].items()
            if found["n"]
        },
        orient="index",
    )


def chances_sentence(result: Result) -> str:
    """Whether more heads at random make it likelier that one of them is drawn to the word to be said."""
    found, heads = result.values["chances"], result.config["heads"]
    alone, several, apart = (found[name] for name in ("alone", "several", "several_less_alone"))
    if not (alone["n"] and several["n"]):
        return ""
    told = {
        "above": "More heads make it likelier.",
        "below": "More heads make it less likely.",
        "open": "That more heads make it likelier is not shown.",
    }[side(apart)]
    return (
        f"Of networks of {heads} random heads {counted(several)} have a head that is drawn "
        f"to the word to be said, of the first of their heads alone {counted(alone)}. In the "
        f"same body on the same data it is both {found['both']} times, neither {found['neither']} times, the "
        f"network's alone {found['several_only']} times and the single head's alone {found['alone_only']} "
        f"times; the difference of the shares is {interval_range(apart)} (Newcombe's interval). {told}"
    )
