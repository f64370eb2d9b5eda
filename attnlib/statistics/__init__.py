"""Intervals and correlations over runs, with numpy alone."""

from attnlib.statistics.bootstrap import hierarchical_bootstrap, percentile_bootstrap
from attnlib.statistics.spearman import average_ranks, spearman, spearman_of_points
from attnlib.statistics.student import Interval, mean_interval, t_quantile

__all__ = [
    "Interval",
    "average_ranks",
    "hierarchical_bootstrap",
    "mean_interval",
    "percentile_bootstrap",
    "spearman",
    "spearman_of_points",
    "t_quantile",
]
