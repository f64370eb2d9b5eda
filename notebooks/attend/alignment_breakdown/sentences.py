"""The chapter on the nine alignment terms in words made from its numbers."""

from attnlib.plots.style import task_name
from companion.book.intervals import side
from companion.book.tables import interval_range
from companion.results.result import Result, kinds_of
from notebooks.shared.sentences import Kind, named, named_with_values, on_side, over_models

HALF = 0.5  # the nine shares sum to one: above it a group of terms outweighs the others together


def breakdown_sentences(result: Result) -> str:
    """Where residual terms outweigh the others, and where attention is lost without them."""
    lines = [
        "The five terms with a residual outweigh the other four together"
        + _where(_residual(result), "above"),
        "The four terms without residual place less than half of a row as the network does"
        + _where(_rebuilt(result), "below"),
    ]
    for task, kind, share, similarity in _apart(result):
        temporal = result.values[task][kind]["covariance_share"]["temporal_temporal"]
        lines.append(
            f"In {task_name(task)}, {kind}, the terms with a residual have only {interval_range(share)} of "
            f"the covariance, μ·μ has {interval_range(temporal)}, and yet without residuals the attention "
            f"comes only to {interval_range(similarity)} of the full one."
        )
    return "\n".join(f"* {line}" for line in lines)


def falsifier_sentences(result: Result) -> str:
    """Whether what would change our mind has happened: shares against substitution, and residuals."""
    conditions = {
        "Terms that have less than half of the covariance, and whose removal loses more than half of the "
        "attention": named([(task, kind, share) for task, kind, share, _ in _apart(result)]),
        "Residual terms that carry more than the others together": named(
            on_side(_residual(result), "above", HALF)
        ),
    }
    return "\n".join(
        f"* {what}: {f'this has happened, in {where}' if where else 'this has not happened'}."
        for what, where in conditions.items()
    )


def residual_share(result: Result, task: str, kind: str) -> dict:
    """The covariance shares of the five terms with a residual, summed by model."""
    sums: dict[int, float | None] = {}
    for row in result.tables["shares"]:
        if (row["task"], row["kind"]) == (task, kind) and "residual" in (row["decoder"], row["encoder"]):
            so_far, share = sums.get(row["seed"], 0.0), row["covariance_share"]
            sums[row["seed"]] = None if so_far is None or share is None else so_far + share
    return over_models(list(sums.values()))


def _residual(result: Result) -> list[Kind]:
    return [(task, kind, residual_share(result, task, kind)) for task, kind, _ in kinds_of(result)]


def _rebuilt(result: Result) -> list[Kind]:
    return [
        (task, kind, found["substitution"]["no_residual"]["similarity"])
        for task, kind, found in kinds_of(result)
    ]


def _where(kinds: list[Kind], which: str) -> str:
    there, undecided = named_with_values(on_side(kinds, which, HALF)), named(on_side(kinds, "open", HALF))
    text = f" in: {there}." if there else " in no kind of network."
    return f"{text} It cannot be told in {undecided}." if undecided else text


def _apart(result: Result) -> list[tuple[str, str, dict, dict]]:
    """Kinds whose residual terms have less than half of the covariance, and whose rows need them."""
    return [
        (task, kind, share, similarity)
        for (task, kind, share), (_, _, similarity) in zip(_residual(result), _rebuilt(result), strict=True)
        if side(share, HALF) == "below" and side(similarity, HALF) == "below"
    ]
