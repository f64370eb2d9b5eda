"""BLEU through sacreBLEU (Papineni et al. 2002; Post 2018)."""

from collections.abc import Sequence

from attnlib.errors import BadInput


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of a corpus, 0 to 100: sacreBLEU at its defaults (13a tokenisation, exponential smoothing).

    Args:
        hypotheses: what the network wrote, as text with spaces where they belong.
        references: one right translation each.

    Raises:
        BadInput: nothing to judge, or not one reference a hypothesis.
    """
    from sacrebleu.metrics import BLEU

    if not hypotheses or len(hypotheses) != len(references):
        raise BadInput(f"{len(hypotheses)} hypotheses and {len(references)} references; give one each")
    # force: IWSLT14 comes tokenised, which sacreBLEU would warn about.
    return float(BLEU(force=True).corpus_score(list(hypotheses), [list(references)]).score)
