"""Optimal attention: from what is known of each network to intervals over seeds, and rows of tables."""

from attnlib.experiments.aggregate import Point, over_seeds

_OF_BOTH = ("learned_probe", "chance")
_OF_OTHERS = ("optimal_other_probe", "optimal_main_probe")
_OF_SEARCH = ("steepest_probe", "steepest_other_probe", "steepest_main_probe")


def quality(points: list[Point]) -> dict:
    """What :func:`~attnlib.experiments.measures.recorded_translation.measure_translation` says of a form.

    Its agreements are of single precision with ties counted; ``agreement`` may be replaced by better ones
    (:func:`optimum`), ``recorded`` stays.
    """
    agreements = {name: over_seeds(points, lambda one, n=name: one[n]) for name in _OF_BOTH}
    return {
        "bleu": over_seeds(points, lambda one: one["bleu"][-1]),
        "best_bleu": over_seeds(points, lambda one: max(one["bleu"])),
        "accuracy": over_seeds(points, lambda one: one["accuracy"]),
        "loss": over_seeds(points, lambda one: one["loss"]),
        "agreement": agreements,
        "recorded": agreements,
        "over_chance": {
            "learned_probe": over_seeds(points, lambda one: one["learned_probe"] - one["chance"])
        },
    }


def identity(points: list[Point]) -> dict:
    """Mean differences as intervals, the largest of all networks as a number."""
    return {
        name: {
            "mean": over_seeds(points, lambda one, n=name: one[n]["mean"]),
            "largest": max((one[name]["largest"] for _, one in points), default=None),
        }
        for name in ("all_words", "right_word")
    }


def optimum(points: list[Point]) -> dict:
    """What is said of α^opt; agreement with its chance on the very samples it was sought for."""
    branches = {
        "agreement": (*_OF_BOTH, "optimal_probe", "learned_optimal", *_OF_OTHERS, *_OF_SEARCH),
        "log_likelihood": ("uniform", "learned", "largest_probe", "optimal"),
        "largest_probe": ("weight", "unused", "lost"),
        "dependent": ("share", "optimal_probe", "learned_probe", "unused"),
    }
    found: dict = {
        branch: {name: over_seeds(points, lambda one, b=branch, n=name: one[b].get(n)) for name in names}
        for branch, names in branches.items()
    }
    found["over_chance"] = {
        name: over_seeds(points, lambda one, n=name: one["agreement"][n] - one["agreement"]["chance"])
        for name in ("optimal_probe", "learned_probe")
    }
    for name, better, worse in (("gain", "optimal", "learned"), ("gain_of_learned", "learned", "uniform")):
        found[name] = over_seeds(
            points, lambda one, b=better, w=worse: one["log_likelihood"][b] - one["log_likelihood"][w]
        )
    return found | {
        "positions": over_seeds(points, lambda one: one["positions"]),
        "words": min((one["words"] for _, one in points), default=0),
    }


def difference(first: list[Point], second: list[Point]) -> dict:
    """BLEU of the first form less that of the second, within a seed."""
    summed, joined = ({name["seed"]: one for name, one in points} for points in (first, second))
    pairs = [({}, {"summed": summed[seed], "joined": joined[seed]}) for seed in summed if seed in joined]

    def of(quality) -> dict:
        return over_seeds(pairs, lambda both: quality(both["summed"]) - quality(both["joined"]))

    return {"bleu": of(lambda one: one["bleu"][-1]), "best_bleu": of(lambda one: max(one["bleu"]))}


def classifier(points: list[Point]) -> dict:
    """Equation 12 over all checkpoints of all classifiers, and what they learned."""
    return {
        "deviation": max((one["deviation"] for _, one in points), default=None),
        "wrong": sum(one["wrong"] for _, one in points),
        "checkpoints": sum(len(one["steps"]) for _, one in points),
        "loss": over_seeds(points, lambda one: one["loss"][-1]),
        "accuracy": over_seeds(points, lambda one: one["accuracy"]),
    }


def cells(shown: dict | None) -> list[dict]:
    """A sentence's matrices as rows, a row a pair of positions; none where there is no sentence."""
    if shown is None:
        return []
    right = {f"right_{name}": value for name, value in shown.get("right", {}).items()}
    return [
        {"target_position": s, "source_position": t, "target": target, "source": source}
        | {name: shown[name][s][t] for name in ("attention", "probe", "optimal")}
        | ({"says": shown["says"][t], "says_with": shown["says_with"][t]} | right if right else {})
        for s, target in enumerate(shown["target"])
        for t, source in enumerate(shown["source"])
    ]
