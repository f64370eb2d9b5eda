"""Alignment breakdown: which of the nine terms form the attention, by two shares and by substitution."""

from companion.results.frames import Table, keyed, view
from companion.runs.columns import Column, share
from companion.runs.store import Store
from notebooks.shared.suite import BY_KIND, PARTS_OF_STATES, PROFILES, QUALITY, measurements, suite_frame
from notebooks.shared.suite import SuiteConfig as Config
from notebooks.shared.summaries import rows_of, summarise

SHARES = {
    "covariance_share": Column("covariance of a term with the score, over the score's variance"),
    "mean_absolute_share": share("mean size of a term, over the sum of the nine means"),
}
PAIR = {
    "decoder": Column("part of the decoder state", categories=PARTS_OF_STATES),
    "encoder": Column("part of the encoder state", categories=PARTS_OF_STATES),
}
SUBSTITUTED = {
    "subset": Column("terms that attention is rebuilt from"),
    "argmax_agreement": share("rows whose largest weight is where the network has it"),
    "similarity": share("1 minus the total variation from the network's own attention"),
}
FITTED = {
    "fitted_on": Column("training samples that components are fitted on", "samples"),
    "unseen.decoder": share("tokens read by the decoder that are not in these samples"),
    "unseen.encoder": share("source tokens that are not in these samples"),
}

__all__ = ["PROFILES", "Config", "compute", "measurements", "values"]


def compute(config: Config, store: Store) -> dict[str, Table]:
    asked = measurements(config)
    networks = suite_frame(asked, store, records=_numbers, columns=QUALITY | FITTED)
    shares = suite_frame(asked, store, records=_shares, columns=PAIR | SHARES, row="a term of a network")
    substitution = suite_frame(
        asked, store, records=_substitution, columns=SUBSTITUTED, row="a subset of the terms of a network"
    )
    subsets = {name: SUBSTITUTED[name] for name in ("argmax_agreement", "similarity")}
    return {
        "shares": shares,
        "substitution": substitution,
        "quality": summarise(networks, BY_KIND, ["token_accuracy"]),
        "shares_by_kind": summarise(shares, [*BY_KIND, *PAIR], SHARES),
        "substitution_by_kind": summarise(substitution, [*BY_KIND, "subset"], subsets),
        "fitted": networks.query("seed == 0").select(*BY_KIND, *FITTED),
    }


def _numbers(terms: dict) -> dict:
    return terms["quality"] | terms


def _shares(terms: dict) -> list[dict]:
    rows = []
    for pair in terms["covariance_share"]:
        decoder, encoder = pair.split("_")
        shares = {name: terms[name][pair] for name in SHARES}
        rows.append({"decoder": decoder, "encoder": encoder} | shares)
    return rows


def _substitution(terms: dict) -> list[dict]:
    return rows_of(terms["substitution"], "subset")


def values(config: Config, tables: dict[str, Table]) -> dict:
    return view(
        keyed(tables["quality"], "{task}.{kind}.{quantity}"),
        keyed(tables["shares_by_kind"], "{task}.{kind}.{quantity}.{decoder}_{encoder}"),
        keyed(tables["substitution_by_kind"], "{task}.{kind}.substitution.{subset}.{quantity}"),
        keyed(tables["fitted"], "{task}.{kind}.{column}", FITTED),
    )
