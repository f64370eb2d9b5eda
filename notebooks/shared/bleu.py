"""BLEU through sacreBLEU (Papineni et al. 2002; Post 2018), also of any part of a corpus."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from attnlib.errors import BadInput

ORDERS = 4  # n-grams of one to four words


def bleu_counts(hypotheses: Sequence[str], references: Sequence[str]) -> Int[np.ndarray, "samples counts"]:
    """What BLEU is made from, by sample: sums over samples give the BLEU of any part of a corpus.

    Both are text with spaces where they belong, one reference each. Columns: length of the hypothesis, of the
    reference, matching n-grams by n, n-grams by n, of words as sacreBLEU's default tokenisation splits them.
    """
    from sacrebleu.metrics import BLEU

    if not hypotheses or len(hypotheses) != len(references):
        raise BadInput(f"{len(hypotheses)} hypotheses and {len(references)} references; give one each")
    metric = BLEU(force=True)  # IWSLT14 comes tokenised, which sacreBLEU would warn about
    scores = [metric.corpus_score([a], [[b]]) for a, b in zip(hypotheses, references, strict=True)]
    return np.array([[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in scores])


def bleu(counts: Int[np.ndarray, "samples counts"]) -> float:
    """BLEU, 0 to 100, of the samples with these :func:`bleu_counts`; exponential smoothing, the default."""
    from sacrebleu.metrics import BLEU

    lengths, matching, all_of_them = np.split(np.asarray(counts).sum(0), [2, 2 + ORDERS])
    score = BLEU.compute_bleu(
        matching.tolist(), all_of_them.tolist(), int(lengths[0]), int(lengths[1]), smooth_method="exp"
    )
    return float(score.score)


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """BLEU, 0 to 100, at sacreBLEU's defaults, and its signature; arguments as for :func:`bleu_counts`."""
    from sacrebleu.metrics import BLEU

    if not hypotheses or len(hypotheses) != len(references):
        raise BadInput(f"{len(hypotheses)} hypotheses and {len(references)} references; give one each")
    metric = BLEU(force=True)  # words that stand apart already are taken as they are
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return float(score.score), str(metric.get_signature())
