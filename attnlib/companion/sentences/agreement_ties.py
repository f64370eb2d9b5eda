"""What ties in the lexical probe add to agreement, in a table and in words."""

from typing import TYPE_CHECKING

from attnlib.companion.intervals import side
from attnlib.companion.sentences.agreement import HEADS
from attnlib.companion.sentences.agreement_printed import printed_agreement
from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.plotting.agreement import data_name
from attnlib.plotting.agreement_ties import sets_with_ties

if TYPE_CHECKING:
    import pandas as pd

FALLS = {
    "above": "{} below its best at the last checkpoint",
    "open": "at the last checkpoint not to be told from its best ({} below)",
    "below": "not below its best at the last checkpoint ({})",
}


def ties_table(result: Result) -> "pd.DataFrame":
    """A row a set of pairs and column of the tables, and one for chance; empty where no run was asked."""
    import pandas as pd

    printed = printed_agreement()
    rows = {}
    for name in sets_with_ties(result):
        found = result.values[name]["ties"]
        for column, head in HEADS.items():
            counted, broken = (found[column][way] for way in ("counted", "broken"))
            rows[data_name(name), head] = {
                "ties agree": interval_text(counted["largest"], digits=1),
                "ties broken": interval_text(broken["largest"], digits=1),
                "printed": _cell(printed.get((name, column))),
                "ties agree, above the last": interval_text(counted["falls"], digits=1),
                "ties broken, above the last": interval_text(broken["falls"], digits=1),
            }
        rows[data_name(name), "chance, at the end"] = {
            "ties agree": interval_text(found["chance"], digits=1),
            "ties broken": f"{found['chance_broken']:.1f}",
            "printed": _cell(printed.get((name, "chance"))),
        }
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def ties_sentences(result: Result) -> str:
    """For each set how many words have a tie at the end, and whether agreement with βᵘᶠ falls again."""
    lines = []
    for name in sets_with_ties(result):
        found = result.values[name]["ties"]
        tied = f"{interval_text(found['tied'], digits=1)} % of the target words"
        if found["ends"]["n"]:
            tied += f", of which {interval_text(found['ends'], digits=0)} % are end marks"
        told = [f"at the end of training at uniform attention the largest β is tied for {tied}"]
        for column in ("alpha_beta_uf", "beta_uf_beta_px"):
            counted, broken = (
                FALLS[side(found[column][way]["falls"])].format(
                    interval_text(found[column][way]["falls"], digits=1)
                )
                for way in ("counted", "broken")
            )
            told.append(f"{HEADS[column]} with ties counted is {counted}, with ties broken {broken}")
        lines.append(f"* {data_name(name)}: {'; '.join(told)}.")
    return "\n".join(lines)


def _cell(number: float | None) -> str:
    return "–" if number is None else f"{number:g}"
