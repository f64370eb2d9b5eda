"""What a reader of a report is told: what the numbers mean, and what to know before believing one."""

from attnlib.analysis.results import Analysis
from attnlib.analysis.stream import Losses
from attnlib.decomposition.typicality import MINIMUM_CELL

READING = """
<h2>How to read this page</h2>
<dl>
<dt>Temporal, input, residual</dt><dd>Each state that a projection reads is split into the mean of its
position, the mean of its word beside that, and what is left (Aitken et al. 2021). The score of a query and a
key is then a sum of nine products, and of a position bias where the model adds one.</dd>
<dt>Share</dt><dd>How much of the variation of a head's scores along the source a term explains: its
covariance with the score over the variance of the score. Mixed are the two terms of position with word, with
a residual the five that have one; with temporal, input and the position bias these shares sum to one. One can
be negative, and its square is hatched: then the term works against the others.</dd>
<dt>Rebuilt</dt><dd>How close attention made of some terms alone is to the model's: 1 − total variation, 1 for
the same. Shares mislead where terms cancel; this does not. Compare with “no term”: what even attention
gets.</dd>
<dt>Typicality</dt><dd>How well the average attention of sentences of one size stands for a single one: 1
where all are attended to alike. A head that attends evenly is typical by definition.</dd>
<dt>Agreement with the lexical probe</dt><dd>How often a head looks most at a source position that is among
those best at predicting the right word when nothing else is attended to (Snell et al. 2021, equation 10); by
chance: what pointing anywhere would give.</dd>
<dt>Left out</dt><dd>Where special tokens are left out, it goes by what is read: positions of the source that
hold one, and steps at which the decoder reads one. The row of cross-attention about the first word, at which
the start mark is read, is not counted; the row about the end mark, at which the last word is read, is.</dd>
<dt>What not to conclude</dt><dd>A large share does not say that the head is of use to the model. A residual
is what neither position nor word explains, context and noise alike; it shrinks where words are rare, because
the mean of a word seen once is that word. A word that stands at one position only shares its mean with it,
and how the two divide it is a convention.</dd>
</dl>
"""


def notes(analysis: Analysis) -> list[str]:
    """What a reader must know before believing a number."""
    found = []
    if not analysis.held_out:
        found.append(
            "No part of the corpus was held out, being too small or by wish: components were fitted and "
            "judged on the same samples, so that residuals are too small. Give more text."
        )
    if analysis.unchecked:
        found.append(
            f"The scores of {_listed(analysis.unchecked)} were checked against nothing, because the model's "
            "own attention was not given: should a scale, a bias or a mask be missing, the numbers are of "
            "something else."
        )
    worst = max(analysis.states, key=lambda row: row["unseen_words"], default=None)
    if worst and worst["unseen_words"] > 0.05:
        found.append(
            f"{worst['unseen_words']:.0%} of the positions judged hold a word that was not fitted on "
            f"({worst['states']}): its input component is zero, and what it carries counts as residual."
        )
    fewest = min(analysis.heads, key=lambda row: row["typicality_coverage"], default=None)
    if fewest and fewest["typicality_coverage"] < 0.5:
        found.append(_coverage(fewest))
    ignored = max((row["on_ignored"] for row in analysis.heads), default=0.0)
    if ignored > 0.2:
        found.append(
            f"Up to {ignored:.0%} of a head's attention goes to positions that are left out of the analysis, "
            "such as the end mark of the source; shares are about the rest."
        )
    return found + _losses(analysis.losses)


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more


def _coverage(row: dict) -> str:
    covered, beyond = row["typicality_coverage"], row["typicality_beyond"]
    reasons = {
        "are longer than averages are kept of": beyond,
        f"are of a size that was seen too rarely, fewer than {MINIMUM_CELL} times": 1 - covered - beyond,
    }
    told = " and ".join(f"{share:.0%} {reason}" for reason, share in reasons.items() if share >= 0.005)
    return (
        f"Typicality is of {covered:.0%} of the samples judged, where it is of the fewest "
        f"({row['kind']}.{row['layer']}, head {row['head']}): {told}."
    )


def _losses(losses: Losses) -> list[str]:
    found = []
    if losses.left_out:
        found.append(f"Left out for an empty side: {losses.left_out:,} pairs of the corpus.")
    if losses.cut:
        found.append(
            f"Cut off at the longest length that was asked for: {losses.cut:,} pairs; their rest was not "
            "looked at."
        )
    return found
