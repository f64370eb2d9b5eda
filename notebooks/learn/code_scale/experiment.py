"""Position codes of several scales: how much longer a fixed order takes than copying, with each."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

from attnlib.errors import BadInput
from companion.results.config import AboveZero, BaseConfig, Field, Positive, setting
from companion.results.frames import Table, joined, keyed, view
from companion.runs.columns import INTERVAL, Column, share
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared import copying
from notebooks.shared.doublings import (
    AT_LEAST,
    DOUBLINGS,
    before_learning,
    between_snapshots,
    doublings,
    doublings_less,
    without_infinities,
)
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.summaries import level_key, summarise
from notebooks.shared.trainings.permutation_copying import words_of

ORDERS = {"copy": "the order of the source", "permuted": "one other order for all sentences"}


class Config(BaseConfig):
    """Settings; a network is a scale × an order × a seed."""

    seeds: Positive = setting(2, "networks of each scale and order")
    scales: tuple[Annotated[float, Field(ge=0)], ...] = setting(
        (0.0, 1.0), "of the position codes, as multiples of that of the word embeddings, ascending"
    )
    copy_steps: Positive = setting(50, "updates in training to copy")
    permuted_steps: tuple[Positive, ...] = setting(
        (120, 40), "updates in training to write a fixed order, one number for each scale"
    )
    length: int = setting(6, "words of a sentence, drawn from one and a half times as many")
    width: Positive = setting(32, "of embeddings and states")
    batch_size: Positive = setting(64, "sentences an update")
    learning_rate: AboveZero = setting(8e-3, "Adam's")
    held_out: Positive = setting(64, "sentences that networks are judged on after every update")

    def check(self) -> None:
        words_of("sample", self.length)
        if len(self.permuted_steps) != len(self.scales):
            raise BadInput(
                f"permuted_steps has {len(self.permuted_steps)} numbers for {len(self.scales)} scales; "
                "give one for each"
            )
        if list(self.scales) != sorted(set(self.scales)):
            raise BadInput(f"scales is {self.scales}; give ascending numbers, each once")


PROFILES = {
    "quick": Config(),
    "paper": Config(
        seeds=10,
        copy_steps=60,
        scales=(0.0, 0.1, 0.3, 1.0, 3.0),
        permuted_steps=(300, 300, 200, 60, 60),
        length=10,
        width=64,
        learning_rate=4e-3,
    ),
    "tiny": Config(
        scales=(0.0, 0.1, 0.3, 1.0, 3.0),
        copy_steps=3,
        permuted_steps=(4, 3, 3, 3, 3),
        length=4,
        width=8,
        held_out=8,
    ),
}


def _plan(config: Config) -> tuple[Plan]:
    """The courses of all networks, by scale and order."""
    shared = settings_of(config, "length", "width", "batch_size", "learning_rate", "held_out") | {"every": 1}
    groups = {}
    for scale, permuted_steps in zip(config.scales, config.permuted_steps, strict=True):
        for order, steps in (("copy", config.copy_steps), ("permuted", permuted_steps)):
            settings = shared | {"scale": scale, "order": order, "steps": steps}
            groups[scale, order] = each_seed(config.seeds, RunSpec.of, "scaled_codes", **settings)
    return (plan_of(groups, copying.measure_copying),)


measurements = asked(_plan)

SCALE = {"scale": Column("scale of the position codes over that of the word embeddings", low=0)}
ORDER = {"order": Column("order in which the words are to be written", categories=ORDERS)}
REACHED = {  # what is reached → when, and the last update before
    "attention": ("attended", "before_attended"),
    "words": ("learned", "before_learned"),
}
TIMES = {
    "attended": Column(
        "updates until 95 % of the largest weights are on the correct word; empty where they never are",
        "updates",
    ),
    "before_attended": Column("last update before", "updates"),
    "learned": Column("updates until 95 % of the words are right; empty where they never are", "updates"),
    "before_learned": Column("last update before", "updates"),
    "steps": Column("all updates", "updates"),
}
OUTCOME = TIMES | {
    "attention_accuracy": share("words for which the largest weight is on the correct word, at the end"),
    "accuracy": share("words that are right, at the end"),
}
COUNTED = {
    name: Column(f"{TIMES[name].meaning.partition(';')[0]}; all updates where never", "updates")
    for name in ("attended", "learned")
}
OF = {
    "reached": Column(
        "what 95 % is reached of",
        categories={"attention": "largest weights on the correct word", "words": "words that are right"},
    )
}
QUANTITY = {
    "quantity": Column(
        "what is estimated",
        categories={
            "gap": str(DOUBLINGS["doublings"]),
            "fall": "the same at the next smaller scale, minus that at this one",
        },
    )
}
NEVER = {"never": Column("networks that never get there", "networks", low=0)}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return the networks, the gap between the orders by pair of a seed, and its estimates by scale."""
    (plan,) = _plan(config)
    networks = plan_frame(plan, store, SCALE | ORDER, records=_network, columns=OUTCOME)
    networks = networks.whole_numbers("attended", "learned")
    of_scale = {reached: _pairs(networks, config.scales, *when) for reached, when in REACHED.items()}
    estimates = [row for reached, pairs in of_scale.items() for row in _estimates(pairs, reached)]
    return {
        "networks": networks,
        "gaps": without_infinities(joined(list(of_scale["attention"].values()))),
        "estimates": Table.of(
            estimates, SCALE | OF | QUANTITY | INTERVAL | AT_LEAST, "an estimate over pairs of networks"
        ),
        "updates": _updates(networks),
        "never": _never(networks),
    }


def _network(course: dict) -> dict:
    """Return when a network attends to the correct words, and when it writes them."""
    attending = course | {"accuracy": course["attention_accuracy"]}
    return {
        "attended": copying.steps_to_learn(attending),
        "before_attended": before_learning(attending),
        "learned": copying.steps_to_learn(course),
        "before_learned": before_learning(course),
        "steps": course["steps"][-1],
        "attention_accuracy": course["attention_accuracy"][-1],
        "accuracy": course["accuracy"][-1],
    }


def _pairs(networks: Table, scales: tuple[float, ...], reached: str, before: str) -> dict[float, Table]:
    """Return by scale how many times as many updates the fixed order takes, in pairs of one seed."""
    return {
        scale: doublings(
            networks.query("scale == @scale", scale=scale), "scale", reached=reached, before=before
        )
        for scale in scales
    }


def _estimates(pairs: dict[float, Table], reached: str) -> Iterator[dict]:
    """Yield the gap at each scale, and by how much it is less than at the next smaller scale."""
    falls = {
        larger: doublings_less(pairs[smaller], pairs[larger], "scale") for smaller, larger in pairwise(pairs)
    }
    for quantity, tables in (("gap", pairs), ("fall", falls)):
        for scale, table in tables.items():
            spans = table.frame[[*DOUBLINGS]].to_numpy().tolist()
            if spans:
                named = {"scale": scale, "reached": reached, "quantity": quantity, "at_least": False}
                yield named | between_snapshots(spans)


def _updates(networks: Table) -> Table:
    """Return mean updates by scale and order; networks that never get there count with all of theirs."""
    steps = networks.frame["steps"]
    counted = {name: networks.frame[name].fillna(steps).astype(float) for name in COUNTED}
    return summarise(networks.assign(COUNTED, **counted), [*SCALE, *ORDER], COUNTED)


def _never(networks: Table) -> Table:
    rows = []
    for (scale, order), group in networks.frame.groupby([*SCALE, *ORDER], sort=False):
        rows.append({"scale": scale, "order": order, "never": int(group["attended"].isna().sum())})
    return Table.of(rows, SCALE | ORDER | NEVER, "networks of one scale and order")


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by scale; the key of 0.1 is ``0p1``. ``gap.0p1.attention`` is in doublings."""
    estimates, updates, never = (_with_key(tables[name]) for name in ("estimates", "updates", "never"))
    bounds = estimates.query("at_least == True")
    key = "{quantity}.{scale}.{reached}"
    return view(
        keyed(estimates, key),
        keyed(bounds, key + ".{column}", AT_LEAST),
        keyed(updates, "updates.{scale}.{order}.{quantity}"),
        keyed(never, "{column}.{scale}.{order}", NEVER),
    )


def _with_key(table: Table) -> Table:
    """Return the table with scales as they are in keys."""
    return table.with_rows(table.frame.assign(scale=table.frame["scale"].map(level_key)))
