"""A fixed reordering against copying: attention is no free variable, whatever is known of single words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.errors import BadInput
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.copying_courses import PROBES, outcome, probes, tables
from attnlib.experiments.measures.copying import measure_copying
from attnlib.experiments.paired import paired
from attnlib.recipes.recipe import RecipeSpec
from attnlib.tasks.copying import words_of

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Snell et al. 2021, section 6.2, equation 26"
QUESTION = (
    "Is a fixed order of the words harder to learn than copying, though single words are known as well?"
)
ORDERS = ("copy", "permuted")
NETWORKS = ("learned", "uniform")
KIND = "sample"  # the sentences that copying is always learned from


@dataclass(frozen=True)
class Config:
    """Settings; a network is an order × (learned or uniform attention) × seed.

    Networks of one seed start from the same parameters and see the same source sentences in both orders.

    Attributes:
        seeds: networks with learned attention of each order, each with a permutation of its own.
        controls: networks with uniform attention of each order; at the paper profile more than in
            :mod:`~attnlib.experiments.permutation_copying`, since their differences are held against a band.
        length: words of a sentence, drawn from one and a half times as many.
        width: of embeddings and states.
        steps: updates, within which the paper's networks have learned to copy; every: between two looks.
    """

    seeds: int = 3
    controls: int = 2
    length: int = 16
    width: int = 64
    steps: int = 240
    every: int = 10

    def __post_init__(self) -> None:
        words_of(KIND, self.length)
        for name in ("seeds", "controls", "width", "steps", "every"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")


PROFILES = {"quick": Config(), "paper": Config(seeds=20, controls=10, length=40, width=256, steps=300)}


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each network."""
    return ask(_planned(config), measure_copying)


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The runs that the experiment needs, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """The courses of both orders, and how far the probes under uniform attention are apart.

    Returns:
        values ``<order>.{n, failed, lowest_accuracy, highest_accuracy, …}`` of learned attention, see
        :func:`~attnlib.experiments.copying_courses.outcome`; ``<order>.uniform.{loss, probe_…}``;
        ``copy_less_permuted.probe_…``, differences of the same between networks of one seed;
        tables as in :func:`~attnlib.experiments.copying_courses.tables`.
    """
    found = [
        ({name: columns[name] for name in ("order", "network", "seed")}, course)
        for columns, course in answers(asks(config), store)
    ]
    groups = {
        (order, network): [
            (name, course) for name, course in found if (name["order"], name["network"]) == (order, network)
        ]
        for order in ORDERS
        for network in NETWORKS
    }
    values: dict[str, dict] = {
        order: outcome(groups[order, "learned"], config.steps) | {"uniform": probes(groups[order, "uniform"])}
        for order in ORDERS
    }
    copied, permuted = (groups[order, "uniform"] for order in ORDERS)
    values["copy_less_permuted"] = {
        probe: paired(copied, permuted, lambda course, n=probe: course[n][-1]) for probe in PROBES
    }
    return values, tables(found)


def _planned(config: Config) -> Iterator[RecipeSpec]:
    settings = {name: getattr(config, name) for name in ("length", "width", "steps", "every")}
    for order in ORDERS:
        for network in NETWORKS:
            for seed in range(config.seeds if network == "learned" else config.controls):
                yield RecipeSpec.of(
                    "permutation_copying", seed=seed, kind=KIND, network=network, order=order, **settings
                )
