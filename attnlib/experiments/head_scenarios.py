"""Which heads stand together in a network: good and bad ones by how they did alone, or any.

Source: Snell et al. 2021, section 5.2.
"""

import numpy as np

from attnlib.experiments.copying_courses import enough

SCENARIOS = ("all_bad", "copied", "one_good", "random", "alone")
SCREENED = ("all_bad", "copied", "one_good")  # made of heads that were tried alone
KINDS = ("good", "bad")
BAD = 0.6  # accuracy under which a single head's course ends on all data seeds (the authors' configuration)
UNSEEN = 100_000  # heads of the random scenario are numbered from here, beyond all candidates


def standing(accuracy: list[float]) -> str | None:
    """What a course alone makes of a head: ``good``, ``bad``, or None for neither.

    >>> standing([0.1, 0.96, 0.8]), standing([0.1, 0.7, 0.5]), standing([0.1, 0.5, 0.7])
    ('good', 'bad', None)
    """
    if enough(max(accuracy)):
        return "good"
    return "bad" if accuracy[-1] < BAD else None


def sets_of_heads(
    scenario: str, networks: int, heads: int, good: list[int], bad: list[int]
) -> list[tuple[int, ...]]:
    """The heads of each network of a scenario; no networks where good or bad ones are too few.

    Good and bad heads are drawn without repetition, by network; in the scenario ``one_good`` the good one
    stands first. In ``copied`` all heads are the first of ``all_bad``: equal heads learn alike and stay
    equal, so this is one head whose context is as long as that of several. Heads of ``random`` were never
    tried, and ``alone`` has the first of each network of these.
    """
    if too_few(scenario, heads, good, bad, tried=0):
        return []
    sets = []
    for seed in range(networks):
        generator = np.random.default_rng(seed)
        drawn = [bad[place] for place in generator.permutation(len(bad))]
        if scenario == "all_bad":
            own = drawn[:heads]
        elif scenario == "copied":
            own = drawn[:1] * heads
        elif scenario == "one_good":
            own = [good[generator.integers(len(good))], *drawn[: heads - 1]]
        else:
            first = UNSEEN + seed * heads
            own = range(first, first + (heads if scenario == "random" else 1))
        sets.append(tuple(own))
    return sets


def too_few(scenario: str, heads: int, good: list[int], bad: list[int], *, tried: int) -> str:
    """Why there are no networks of a scenario, with ``tried`` heads alone; empty where there are."""
    needed = {"all_bad": heads, "copied": 1, "one_good": heads - 1}.get(scenario, 0)
    if len(bad) < needed:
        return f"{len(bad)} of {tried} heads turned out bad when alone; such networks need {needed}"
    if scenario == "one_good" and not good:
        return f"none of {tried} heads turned out good when alone"
    return ""
