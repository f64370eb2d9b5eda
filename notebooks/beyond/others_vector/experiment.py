"""What one vector holds in a network that others trained, judged by predictions made beforehand."""

from typing import Annotated

import numpy as np

from companion.results.config import BaseConfig, OneOf, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.beyond.others_vector.published_speller import SOURCES, measure_vector
from notebooks.shared.intervals import hierarchical_bootstrap, interval_of

SEED = 20_261_125  # of the bootstrap: any fixed number
SHORT, LONG = (4, 6), (10, 12)  # letters


class Config(BaseConfig):
    #: g2p_en, the published ones, or drawn, a stand-in drawn at random
    weights: Annotated[str, OneOf(SOURCES)] = "drawn"
    words: Positive = 2_000  #: of the dictionary that the network pronounces, at most
    letters: Positive = 7  #: of the words whose vectors are looked into


PROFILES = {"quick": Config(), "paper": Config(weights="g2p_en", words=20_000), "tiny": Config(words=600)}


def measurements(config: Config) -> tuple[Measurement, ...]:
    spec = RunSpec.of("published_speller", weights=config.weights, words=config.words)
    return measurements_of([spec], measure_vector, letters=config.letters)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """``short_less_long``: words right among short ones less those among long ones, words resampled;
    ``ends_less_middle``: letters read at the first and last place less those between; ``last_less_first``:
    parts of the fitted sum at the last two places less those at the first two.
    """
    measured = next((found for _, found in answers(measurements(config), store)), None)
    if measured is None:
        return {}, {"lengths": [], "places": []}
    lengths, right = (np.array(measured["written"][name]) for name in ("letters", "right"))
    rows = [
        {"letters": int(n), "right": float(right[lengths == n].mean()), "words": int((lengths == n).sum())}
        for n in sorted(set(lengths.tolist()))
    ]
    folds = {name: np.array([fold[name] for fold in measured["folds"]]) for name in measured["folds"][0]}
    places = [
        {"place": at + 1} | {name: float(own[:, at].mean()) for name, own in folds.items() if own.ndim > 1}
        for at in range(folds["read"].shape[1])
    ]
    read, parts = folds["read"], folds["of_place"]
    return {
        "short_less_long": _short_less_long(lengths, right),
        "right": float(right.mean()),
        "sum": interval_of(folds["sum"].tolist()),
        "read_first": interval_of(read[:, 0].tolist()),
        "ends_less_middle": interval_of((read[:, [0, -1]].mean(1) - read[:, 1:-1].mean(1)).tolist()),
        "last_less_first": interval_of((parts[:, -2:].sum(1) - parts[:, :2].sum(1)).tolist()),
        "words": {"all": len(right), "of_one_length": measured["words"]},
    }, {"lengths": rows, "places": places}


def _short_less_long(lengths: np.ndarray, right: np.ndarray) -> dict:
    groups = {
        sign: [(sign, float(one)) for one in right[(low <= lengths) & (lengths <= high)]]
        for sign, (low, high) in ((1, SHORT), (-1, LONG))
    }

    def difference(rows: np.ndarray) -> float:
        sign, own = rows.T
        return float(own[sign > 0].mean() - own[sign < 0].mean())

    draw = np.random.default_rng(SEED)
    return hierarchical_bootstrap(groups, draw, statistic=difference, nested=False)
