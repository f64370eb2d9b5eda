"""How often a coin shows heads."""

import numpy as np

from companion.results.config import BaseConfig, Positive
from notebooks.shared.intervals import share_interval


class Config(BaseConfig):
    """Settings."""

    tosses: Positive = 200  #: how often the coin is tossed


PROFILES = {"quick": Config(), "paper": Config(tosses=2_000), "tiny": Config(tosses=20)}


def measurements(config):
    return ()


def compute(config, store):
    shown = np.random.default_rng(0).random(config.tosses) < 0.5
    found = share_interval(int(shown.sum()), config.tosses)
    return {"heads": found}, {"tosses": [{"n": config.tosses}]}
