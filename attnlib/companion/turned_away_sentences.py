"""Which way networks that failed to copy use their attention, in words."""

from attnlib.companion.intervals import side
from attnlib.companion.tables import interval_text

TOLD = {
    "above": "So they say the word that they do not see.",
    "below": "So they say what they see, and look at other words than the one to be said.",
    "open": "Whether they say what they see or what they miss cannot be told from this.",
}
TURNED = (
    "So attention was learned, and turned round: it keeps away from the word to be said, and the network "
    "says the word that it does not see."
)


def turned_sentence(found: dict, *, who: str = "networks that failed") -> str:
    """Where the attention of failed networks stands, and what they say of words shown or left out.

    Args:
        found: what :func:`attnlib.experiments.turned_away.turned_away` gives.

    Returns:
        sentences; nothing where no network failed.
    """
    n = found["n"]
    if not n:
        return ""
    away = round(found["away"]["value"] * n)
    told = TOLD[side(found["left_out_over_shown"])]
    if side(found["left_out_over_shown"]) == "above" and side(found["weight"], 1) == "below":
        told = TURNED
    return (
        f"Of the {n} {who}, {away} give the word to be said less weight than uniform attention would; on "
        f"average they give it {interval_text(found['weight'])} times as much. When attention is moved to "
        f"one single word that is still to come, they say that word in "
        f"{interval_text(found['says_shown'])} of the cases; when it is spread over all words but that one, "
        f"in {interval_text(found['says_left_out'])}. {told}"
    )
