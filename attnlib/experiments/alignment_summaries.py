"""Measurements of links and of tokens, gathered into the values and tables of word_alignment."""

from collections.abc import Callable

from attnlib.experiments.aggregate import Point, kind, over_seeds
from attnlib.experiments.measures.token_parts import ALONE, ROLES, SHARES
from attnlib.experiments.measures.word_alignment import RULES, SUBSETS

QUALITIES = ("error_rate", "precision", "recall", "agreement", "mass_on_gold")
RULES_SHOWN = ("full", "temporal_only", "input_only", "no_residual")  # subsets judged by every rule
SHOWN_FROM = 0.01  # weights in the example that an eye can see


def example_rows(name: dict, example: dict) -> list[dict]:
    """A row an entry of the matrices of one sentence; the full attention has them all."""
    return [
        {"task": name["task"], "kind": kind(name), "links_from": source}
        | {"target_position": s, "source_position": t}
        | {"target": example["target"][s], "source": example["source"][t]}
        | {"attention": weight, "gold": example["gold"][s][t]}
        for source, matrix in example["attention"].items()
        for s, row in enumerate(matrix)
        for t, weight in enumerate(row)
        if source == "full" or weight >= SHOWN_FROM
    ]


def summary_of_links(group: list[Point]) -> dict:
    """Intervals over the models of one kind: see :func:`attnlib.experiments.word_alignment.compute`."""

    def over(get: Callable[[dict], float | None]) -> dict:
        return over_seeds(group, get)

    def qualities(get: Callable[[dict], dict]) -> dict:
        return {quality: over(lambda m, q=quality: get(m)[q]) for quality in QUALITIES}

    first = group[0][1]
    return {
        "attention": {s: qualities(lambda m, s=s: m["attention"][s]["words"]) for s in SUBSETS},
        "rise_without": {
            subset.removeprefix("without_"): over(
                lambda m, s=subset: _less(m["attention"][s]["words"], m["attention"]["full"]["words"])
            )
            for subset in SUBSETS
            if subset.startswith("without_")
        },
        "references": {
            name: qualities(lambda m, n=name: m["references"][n]["words"]) for name in first["references"]
        },
        "rules": {
            rule: {s: qualities(lambda m, s=s, r=rule: m["attention"][s][r]) for s in RULES_SHOWN}
            | (
                {}
                if rule == "read"
                else {"ibm_model_1": qualities(lambda m, r=rule: m["references"]["ibm_model_1"][r])}
            )
            for rule in RULES
        },
        **{
            f"better_than_{name}": over(
                lambda m, n=name: _less(m["references"][n]["words"], m["attention"]["full"]["words"])
            )
            for name in first["references"]
        },
        "input_over_temporal": over(
            lambda m: (
                m["attention"]["input_only"]["words"]["agreement"]
                - m["attention"]["temporal_only"]["words"]["agreement"]
            )
        ),
        "by_prediction": {
            outcome: over(lambda m, o=outcome: m["by_prediction"][o]["agreement"])
            for outcome in first["by_prediction"]
        },
        "quality": {
            name: over(lambda m, n=name: m["quality"][n]) for name in ("token_accuracy", "perplexity", "loss")
        },
        "quality_of_judged": {
            name: over(lambda m, n=name: m["quality_of_judged"][n]) for name in ("token_accuracy", "loss")
        },
        "gold": first["gold"],
        "fitted_on": first["fitted_on"],
    }


def _less(first: dict, second: dict) -> float | None:
    """Error rate of the first − that of the second; None where either is undefined."""
    rates = first["error_rate"], second["error_rate"]
    return None if None in rates else rates[0] - rates[1]


def alignment_rows(name: dict, found: dict) -> list[dict]:
    """Every subset by the rule of the page, those of the page by every rule."""
    judged = [(source, rule) for source in found["references"] for rule in found["references"][source]]
    judged += [(s, rule) for s in SUBSETS for rule in RULES if rule == "words" or s in RULES_SHOWN]
    return [
        name | {"kind": kind(name), "links_from": source, "rule": rule} | both[source][rule]
        for both in [found["references"] | found["attention"]]
        for source, rule in judged
    ]


def summary_of_classes(group: list[Point]) -> dict:
    """Shares and similarities by role and class, as intervals over the models of one kind."""
    first = group[0][1]["classes"]
    return {
        "classes": {
            role: {
                label.replace(" ", "_"): {
                    share: over_seeds(group, lambda m, r=role, c=label, s=share: m["classes"][r][c][s])
                    for share in (*SHARES, *ALONE)
                }
                | {"rows": first[role][label]["rows"]}
                for label in first[role]
            }
            for role in ROLES
        }
    }


def token_rows(points: list[Point], listed: int) -> list[dict]:
    """The most frequent tokens of each role, with intervals over the models of a kind."""
    groups: dict[tuple, list[Point]] = {}
    for name, found in points:
        groups.setdefault((name["task"], name["architecture"], kind(name)), []).append((name, found))
    rows = []
    for (task, architecture, label), group in groups.items():
        for role in ROLES:
            columns = group[0][1]["tokens"][role]  # held-out samples are the same for every seed
            for i, token in enumerate(columns["token"][:listed]):
                row = {"task": task, "architecture": architecture, "kind": label, "role": role}
                row |= {"token": token, "class": columns["class"][i], "rows": columns["rows"][i]}
                for share in (*SHARES, *ALONE):
                    interval = over_seeds(group, lambda m, r=role, s=share, i=i: m["tokens"][r][s][i])
                    row |= {share: interval["value"]}
                    row |= {f"{share}_{end}": interval[end] for end in ("low", "high")}
                rows.append(row | {"seeds": len(group)})
    return rows
