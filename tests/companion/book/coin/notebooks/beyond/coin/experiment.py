"""How often a coin shows heads."""

import numpy as np

from companion.results.config import BaseConfig, Positive, setting
from companion.results.frames import Table, keyed, view
from companion.runs.columns import Column
from notebooks.shared.summaries import shares


class Config(BaseConfig):
    """Settings."""

    tosses: Positive = setting(200, "how often the coin is tossed")


PROFILES = {"quick": Config(), "paper": Config(tosses=2_000), "tiny": Config(tosses=20)}


def measurements(config):
    return ()


TOSS = {"toss": Column("number of the toss, from 0"), "heads": Column("True if the coin shows heads")}


def compute(config, store):
    shown = np.random.default_rng(0).random(config.tosses) < 0.5
    records = [{"toss": number, "heads": heads} for number, heads in enumerate(shown)]
    tosses = Table.of(records, TOSS, "a toss")
    return {"tosses": tosses, "estimates": shares(tosses, [], ["heads"], unit="toss")}


def values(config, tables):
    return view(keyed(tables["estimates"], "{quantity}"))
