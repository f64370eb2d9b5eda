"""Which way networks that failed to copy use their attention, in words."""

from attnlib.companion.intervals import side
from attnlib.companion.tables import interval_text

TOLD = {
    "above": "So they say the word that they do not see.",
    "below": "So they say what they see.",
    "open": "Whether they say what they see or what they miss cannot be told from this.",
}
TURNED = (
    "So attention was learned, and turned round: it keeps away from the word to be said, and the network "
    "says the word that it does not see."
)


def turned_sentences(found: dict[str, dict]) -> str:
    """Where the attention of failed networks stands, and what they say of words shown or left out.

    Args:
        found: by name of the networks, what :func:`attnlib.experiments.turned_away.turned_away` gives.

    Returns:
        an item a kind of networks of which some failed; nothing where none did.
    """
    return "\n".join(f"* {_sentence(name, own)}" for name, own in found.items() if own["n"])


def _sentence(name: str, found: dict) -> str:
    told = TOLD[side(found["left_out_over_shown"])]
    if side(found["left_out_over_shown"]) == "above" and side(found["weight"], 1) == "below":
        told = TURNED
    away = round(found["away"]["value"] * found["n"])
    return (
        f"{name[0].upper()}{name[1:]}, failures: {found['n']}. In {away} the word "
        f"to be said has less weight than uniform attention would give it; on average it has "
        f"{interval_text(found['weight'])} times as much. When attention is moved to one single word that is "
        f"still to come, that word is said in {interval_text(found['says_shown'])} of the cases; when it is "
        f"spread over all words but that one, in {interval_text(found['says_left_out'])}. {told}"
    )


def sides_sentence(found: dict) -> str:
    """When it shows which way the attention of a network goes.

    Args:
        found: what :func:`attnlib.experiments.turned_away.sides` gives.
    """
    if not found["n"]:
        return ""
    away = found["n"] - found["drawn"]
    return (
        f"In the end {found['drawn']} of {found['n']} single heads have more weight on the word to be said "
        f"than uniform attention, {away} less. Before training {_share(found['same_at_first'])} are on the "
        f"side where they end, after {found['step']} updates {_share(found['same'])}."
    )


def _share(found: dict) -> str:
    return (
        f"{round(found['value'] * found['n'])} of {found['n']} (95 % interval {found['low']:.2f} to "
        f"{found['high']:.2f})"
    )
