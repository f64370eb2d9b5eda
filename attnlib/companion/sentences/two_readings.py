"""Which of two sets of ours a printed name means: the one whose numbers come nearer to what is printed."""

import re
from collections.abc import Iterable

from companion.claims import ClaimVerdict

# A printed name, and our two sets with what tells them apart.
READINGS = {
    "SST": {"sst": "the filter of labels that gives Table 9's counts", "sst_as_text": "the text's filter"},
    "Multi30k": {"multi30k_en_de": "English to German", "multi30k_de_en": "German to English"},
}
ROUNDED = ("2", "10")  # tables that print numbers of Table 5 again, rounded
# The proxy writes no sentences, so that in the tables by BLEU, too, its checkpoint is the most accurate one:
# what they print beside it of two probes is printed again. ξ is of a network that has its BLEU.
PROXY_BY_BLEU = re.compile(r"\.bleu\.beta_uf_beta_px\.(?!.*_xi)")


def readings_sentences(rows: Iterable[ClaimVerdict]) -> str:
    """How far ours are from the printed numbers under either reading; a name without both is left out.

    Each number of ours counts once, where both readings have it, with what is printed to most digits; one
    that stands under two keys, too.

    Args:
        rows: verdicts of the printed numbers, see :func:`companion.claims.verify.verify`.
    """
    distances: dict[str, dict[str, float]] = {}
    for row in sorted(rows, key=lambda row: row.claim.published.reference.table in ROUNDED):
        key = row.claim.keys[0]
        ours = row.judgement.evidence.get(key)
        if ours is not None and ours.defined and not PROXY_BY_BLEU.search(key):
            data, number = key.split(".", 1)
            distances.setdefault(data, {}).setdefault(number, abs(ours.value - row.claim.published.value))
    return "\n".join(
        f"* {sentence}"
        for printed, sets in READINGS.items()
        if (sentence := _sentence(printed, sets, *(distances.get(data, {}) for data in sets)))
    )


def _sentence(printed: str, sets: dict[str, str], first: dict, second: dict) -> str:
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return ""
    one, other = sets.values()
    own, others = (sum(found[number] for number in shared) / len(shared) for found in (first, second))
    nearer = sum(first[number] < second[number] for number in shared)
    further = sum(first[number] > second[number] for number in shared)
    return (
        f"**{printed}.** Ours are {own:.1f} away from {len(shared)} printed numbers on average under {one}, "
        f"{others:.1f} under {other}; nearer under the first are {nearer} of them, under the "
        f"second {further}."
    )
