"""BLEU of a corpus with what it was computed by: sacreBLEU's signature (Post 2018)."""

from collections.abc import Sequence

from attnlib.errors import BadInput


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """BLEU, 0 to 100, at sacreBLEU's defaults, and its signature.

    >>> bleu, signature = corpus_bleu(["a man on a red bike"], ["a man on a red bike"])
    >>> round(bleu), signature.rpartition("|")[0]
    (100, 'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp')

    Args:
        hypotheses: what the network wrote, as text with spaces where they belong.
        references: one right translation each.

    Raises:
        BadInput: nothing to judge, or not one reference a hypothesis.
    """
    from sacrebleu.metrics import BLEU

    if not hypotheses or len(hypotheses) != len(references):
        raise BadInput(f"{len(hypotheses)} hypotheses and {len(references)} references; give one each")
    metric = BLEU(force=True)  # words that stand apart already are taken as they are
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return float(score.score), str(metric.get_signature())
