"""Attention of a recorded network on the sentences it was shown, and one of its steps in numbers."""

import torch

from companion.runs import registry
from companion.runs.procedure import Recording
from notebooks.shared.measure import exact_matches
from notebooks.shared.sequence_course import judged_samples, load_task, shown_pairs

LIKELIEST = 5  # words listed after the step
COORDINATES = 4  # of the context, with what each source word adds to them


@torch.no_grad()
def measure_shown_pairs(recording: Recording, *, pair: int, place: int) -> dict:
    """What was recorded of the pairs, and the step that predicts word ``place`` of ``pair``, in numbers.

    ``exponential``: of the score less the largest; ``context``: the coordinates where it is furthest from
    zero.
    """
    settings = recording.spec.resolved
    task, batch = load_task(settings), shown_pairs(settings)
    sides = (
        (task.source_vocabulary, batch.source, batch.source_mask),
        (task.target_vocabulary, batch.target_output, batch.target_mask),
    )
    words = [
        [[vocabulary.words[i] for i in row[own].tolist()] for row, own in zip(ids, mask, strict=True)]
        for vocabulary, ids, mask in sides
    ]
    pairs = list(zip(*words, strict=True))
    network = registry.load(recording.spec.procedure).recorded_network(recording)
    trace = network(batch)
    length = len(pairs[pair][0])
    scores, weights = (values[pair, place, :length] for values in (trace.scores, trace.attention))
    states, context = trace.encoder_states[pair, :length], trace.context[pair, place]
    furthest = sorted(context.abs().topk(min(COORDINATES, len(context))).indices.tolist())
    probability, best = trace.logits[pair, place].softmax(-1).topk(LIKELIEST)
    judged = judged_samples(settings)
    right = recording["right"][-1][:, : int(judged.target_lengths.max()) + 1].double()
    return {
        "steps": recording["steps"].tolist(),
        "pairs": [list(pair) for pair in pairs],
        "attention": [
            [snapshot[i, : len(target), : len(source)].tolist() for i, (source, target) in enumerate(pairs)]
            for snapshot in recording["shown.attention"]
        ],
        "probability": [
            [snapshot[i, : len(target)].tolist() for i, (_, target) in enumerate(pairs)]
            for snapshot in recording["shown.probability"]
        ],
        "worked": [
            {"source": word, "score": float(score), "exponential": float((score - scores.max()).exp())}
            | {"attention": float(weight)}
            for word, score, weight in zip(pairs[pair][0], scores, weights, strict=True)
        ],
        "context": [
            {"coordinate": i, "value": float(context[i]), "states": states[:, i].tolist()}
            | {"weighted": (weights * states[:, i]).tolist()}
            for i in furthest
        ],
        "predicted": [
            {"word": task.target_vocabulary.words[i], "probability": p}
            for i, p in zip(best.tolist(), probability.tolist(), strict=True)
        ],
        "token_accuracy": float(right.sum() / (judged.target_lengths + 1).sum()),
        "exact_match": float(exact_matches(recording, judged).mean()),
    }
