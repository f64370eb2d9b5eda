"""Alignment breakdown: which of the nine terms form the attention, by two shares and by substitution."""

from companion.results.measurements import answers
from companion.runs.store import Store
from notebooks.shared.intervals import Point, by_kind, each_over_seeds, kind
from notebooks.shared.plan import picked
from notebooks.shared.suite import PROFILES, measurements
from notebooks.shared.suite import SuiteConfig as Config
from notebooks.shared.summaries import rows_of, side_by_side

SHARES = ("covariance_share", "mean_absolute_share")
JUDGED = (*SHARES, "substitution", "token_accuracy")

__all__ = ["PROFILES", "Config", "compute", "measurements"]


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    points = [(name | {"kind": kind(name)}, m) for name, m in answers(measurements(config), store)]
    shares = [
        name | dict(zip(("decoder", "encoder"), row.pop("pair").split("_"), strict=True)) | row
        for name, m in points
        for row in side_by_side(picked(m, SHARES), "pair")
    ]
    substitution = [name | row for name, m in points for row in rows_of(m["substitution"], "subset")]
    return by_kind(points, _summary), {"shares": shares, "substitution": substitution}


def _summary(group: list[Point]) -> dict:
    numbers = each_over_seeds(group, lambda m: picked(m | m["quality"], JUDGED))
    return numbers | picked(group[0][1], ("unseen", "fitted_on"))
