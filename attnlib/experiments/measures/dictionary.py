"""Which target word each source word stands for, and whether a map from states to logits says the same."""

from collections import Counter

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.tasks.corpus import Corpus
from attnlib.tasks.task import Task
from attnlib.tasks.vocabulary import BOS, EOS
from companion.data.scan import ACTION_OF, TURN_OF

LISTED = 40  # the most frequent words, which a table can show
TOP = 3  # words listed for each
# Which target words share more than half of a source word's links: below that it has no one translation.
MAJORITY = 0.5
SAMPLES = 10_000  # of the corpus, enough to count who occurs with whom


def translations(task: Task) -> tuple[dict[int, int], str]:
    """The target word of each source word that has one, and where that is known from.

    Returns:
        ids, and ``"gold"`` (the word that most links of a source word lead to, over all held-out samples),
        ``"grammar"`` (SCAN: walk → I_WALK, left → I_TURN_LEFT; other words stand for no action), or
        ``"dice"`` (text: the target word of the largest Dice coefficient 2 n(v, w) / (n(v) + n(w)) over
        training sentences, a stand-in for a dictionary and not a gold one).
    """
    if task.gold is not None and len(task.gold) == len(task.held_out):
        return _by_links(task), "gold"
    if set(ACTION_OF.values()) <= set(task.target_vocabulary.words):  # English text has its verbs as well
        return _by_grammar(task), "grammar"
    return _by_dice(task.train.subset(np.arange(min(SAMPLES, len(task.train))))), "dice"


def _by_links(task: Task) -> dict[int, int]:
    counts: dict[int, Counter[int]] = {}
    for i, links in enumerate(task.gold):
        source, target = task.held_out.source(i), task.held_out.target(i)
        for s, t in links:
            counts.setdefault(int(source[t]), Counter())[int(target[s])] += 1
    best = {word: found.most_common(1)[0] for word, found in counts.items()}
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


def followers(corpus: Corpus) -> dict[int, int]:
    """For each token a decoder reads, begin mark included, the one that most often is to be said next."""
    read, said = [], []
    for i in range(len(corpus)):
        words = corpus.target(i)
        read += [[BOS], words]
        said += [words, [EOS]]
    pairs, counts = np.unique(
        np.stack([np.concatenate(read), np.concatenate(said)]), axis=1, return_counts=True
    )
    best: dict[int, tuple[int, int]] = {}
    for (v, w), n in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        best[v] = max(best.get(v, (n, -w)), (n, -w))
    return {v: -w for v, (_, w) in best.items()}


def judged(
    logits: Float[Tensor, "tokens words"],
    expected: dict[int, int],
    counts: Int[Tensor, " tokens"],
    outputs: Int[Tensor, " outputs"],
    names: tuple[tuple[str, ...], tuple[str, ...]],
) -> dict:
    """Whether the largest logit of each token is at the expected word.

    Args:
        logits: of each token's component alone.
        expected: token → word; other tokens are not judged.
        counts: how often a token occurred while the components were fitted; tokens never seen are left out.
        outputs: the words that are ever to be said; only they compete.
        names: the tokens' words and the outputs' words.

    Returns:
        ``words`` (how many were judged), ``accuracy`` (share of them that are right), ``frequency_weighted``
        (the same by occurrence), ``chance`` (of a uniform guess among the outputs), and ``listed``: the most
        frequent tokens with their largest words.
    """
    token_names, word_names = names
    best = outputs[logits[:, outputs].topk(min(TOP, len(outputs)), dim=1).indices]  # (tokens, TOP)
    seen = [token for token in expected if counts[token] > 0]
    right = torch.tensor([bool(best[token, 0] == expected[token]) for token in seen], dtype=torch.float64)
    weight = counts[seen].double() if seen else torch.zeros(0, dtype=torch.float64)
    frequent = [token for token in counts.argsort(descending=True, stable=True).tolist() if counts[token] > 0]
    return {
        "words": len(seen),
        "accuracy": float(right.mean()) if seen else None,
        "frequency_weighted": float((right * weight).sum() / weight.sum()) if seen else None,
        "chance": 1 / len(outputs),
        "listed": [
            {
                "token": token_names[token],
                "count": int(counts[token]),
                "expected": word_names[expected[token]] if token in expected else None,
                "top": [word_names[word] for word in best[token].tolist()],
            }
            for token in frequent[:LISTED]
        ],
    }
