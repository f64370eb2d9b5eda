"""Which reading of saliency comes near the printed numbers of sentence pairs: a table, a sentence a set."""

from typing import TYPE_CHECKING

from attnlib.companion.intervals import listed
from attnlib.companion.project import find_root
from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.agreement import data_name, data_of
from companion.claims import load_papers

if TYPE_CHECKING:
    import pandas as pd

NAMES = {
    "logit": "derivative of the logit, as in the tables",
    "log_probability": "derivative of the log-probability",
    "gradient_norm": "length of its gradient",
}
COLUMNS = {"agreement": ("𝒜(Δ, βᵘᶠ)", "5"), "kendall": ("τ(Δ, βᵘᶠ)", "3")}  # heading, table that prints it


def readings_table(result: Result) -> "pd.DataFrame":
    """A row a set of pairs and reading, and one for what is printed; empty where no network was asked."""
    import pandas as pd

    rows = {}
    for name in _sets(result):
        for reading, told in NAMES.items():
            found = result.values[name]["saliency"][reading]
            rows[data_name(name), told] = {
                heading: interval_text(found[measure], digits=1) for measure, (heading, _) in COLUMNS.items()
            }
        if any(printed := _printed(name)):
            cells = ("–" if number is None else f"{number:g}" for number in printed)
            rows[data_name(name), "printed"] = dict(
                zip((heading for heading, _ in COLUMNS.values()), cells, strict=True)
            )
    return pd.DataFrame.from_dict(rows, orient="index")


def nearest_sentences(result: Result) -> str:
    """For each set that the paper prints, which reading is nearest to either number, by its point."""
    lines = []
    for name in _sets(result):
        found, parts = result.values[name]["saliency"], []
        for (measure, (heading, table)), printed in zip(COLUMNS.items(), _printed(name), strict=True):
            if printed is None:
                continue
            apart = {reading: abs(own[measure]["value"] - printed) for reading, own in found.items()}
            nearest = min(apart, key=apart.__getitem__)
            parts.append(
                f"{heading} of Table {table} by the {NAMES[nearest].removesuffix(', as in the tables')}, "
                f"{apart[nearest]:.1f} away (the logit's {apart['logit']:.1f})"
            )
        if parts:
            lines.append(f"* On {data_name(name)} what is printed is met best: {listed(parts)}.")
    return "\n".join(lines)


def _sets(result: Result) -> list[str]:
    """The sets of pairs whose networks have been asked."""
    return [
        name
        for name in data_of(result)
        if result.values[name].get("saliency", {}).get("logit", {}).get("agreement", {}).get("n")
    ]


def _printed(name: str) -> list[float | None]:
    """What the paper prints of 𝒜 and τ of Δ and β^uf, by our name of the set."""
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    found: dict[tuple[str, str], float] = {}
    for claim in paper.claims:
        if claim.number:
            found[claim.published.reference.table, claim.keys[0]] = claim.published.value
    return [
        found.get((table, f"{name}.validation.accuracy.delta_beta_uf.{measure}_optimistic"))
        for measure, (_, table) in COLUMNS.items()
    ]
