"""What is expected to be wrong among many verdicts, by hand and against another implementation."""

import numpy as np
from scipy.stats import false_discovery_control

from companion.claims.verdicts import Judgement, Verdict
from companion.claims.verify import ClaimVerdict, chance, discovered


def test_the_largest_p_that_survives_is_that_of_scipy():
    generator = np.random.default_rng(5)
    for n in (1, 5, 60):
        for _ in range(20):
            ps = generator.uniform(size=n) ** 3
            kept = ps[false_discovery_control(ps) <= 0.05]
            assert discovered(list(ps)) == (kept.max() if len(kept) else 0.0)


def test_verdicts_without_an_interval_count_for_nothing_and_open_ones_for_the_family_alone():
    decided, open_ones = [0.001, 0.04, None], [0.9]
    kinds = [(Verdict.REPRODUCED, decided), (Verdict.UNDECIDED, open_ones)]
    judged = [Judgement(verdict, {}, p=p) for verdict, ps in kinds for p in ps]
    rows = [ClaimVerdict(None, at, own) for own in judged for at in ("quick", "paper")]
    found = chance(rows)
    assert (found.verdicts, found.wrong, found.limit, found.surviving) == (2, 0.1, 0.001, 1)
    assert (found.survives(0.001), found.survives(0.04), found.survives(None)) == (True, False, False)
    nothing = chance(row for row in rows if row.judgement.p is None)
    assert (nothing.verdicts, nothing.surviving) == (0, 0)
