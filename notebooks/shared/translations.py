"""The target word of each source word that has one: from gold links, from SCAN's grammar, or from counts."""

from collections import Counter

import numpy as np

from attnlib.models.corpus import Corpus
from companion.data.task import Task
from notebooks.shared.tasks.synthetic import ACTION_OF, TURN_OF

MAJORITY = 0.5  # of a source word's links: below that it has no one translation
SAMPLES = 10_000  # of the corpus, enough to count who occurs with whom


def translations(task: Task) -> tuple[dict[int, int], str]:
    """The target word of each source word that has one, and where that is known from: ``gold``, most links of
    the word, ``grammar`` of SCAN, or ``dice``, the largest Dice coefficient in training text."""
    if task.gold is not None and len(task.gold) == len(task.held_out):
        return _by_links(task), "gold"
    if set(ACTION_OF.values()) <= set(task.target_vocabulary.words):  # English text has its verbs as well
        return _by_grammar(task), "grammar"
    return _by_dice(task.train.subset(np.arange(min(SAMPLES, len(task.train))))), "dice"


def _by_links(task: Task) -> dict[int, int]:
    counts: dict[int, Counter[int]] = {}
    for i, links in enumerate(task.gold):
        source, target = task.held_out.source(i), task.held_out.target(i)
        for place, step in links:
            counts.setdefault(int(source[place]), Counter())[int(target[step])] += 1
    best = {word: targets.most_common(1)[0] for word, targets in counts.items()}
    return {word: to for word, (to, n) in sorted(best.items()) if n > MAJORITY * counts[word].total()}


def _by_grammar(task: Task) -> dict[int, int]:
    pairs = ACTION_OF | TURN_OF
    source = task.source_vocabulary.encode(list(pairs))
    target = task.target_vocabulary.encode(list(pairs.values()))
    return dict(zip(source.tolist(), target.tolist(), strict=True))


def _by_dice(corpus: Corpus) -> dict[int, int]:
    together: Counter[tuple[int, int]] = Counter()
    left, right = Counter(), Counter()
    for i in range(len(corpus)):
        source, target = set(corpus.source(i).tolist()), set(corpus.target(i).tolist())
        left.update(source)
        right.update(target)
        together.update((v, w) for v in source for w in target)
    best: dict[int, tuple[float, int]] = {}
    for (v, w), n in together.items():
        candidate = (2 * n / (left[v] + right[w]), -w)  # of equal ones the more frequent: smaller id
        best[v] = max(best.get(v, candidate), candidate)
    return {v: -w for v, (_, w) in sorted(best.items())}
