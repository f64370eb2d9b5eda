"""The context-vector bottleneck: what fits into one vector, by its width and the length of the sentence."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Annotated, NamedTuple

import numpy as np

from attnlib.models.sequence_to_sequence import Link, SequenceCell
from companion.results.config import Field, Positive, setting
from companion.results.frames import Table, keyed, view
from companion.runs.columns import INTERVAL, Column, share
from companion.runs.store import Store
from notebooks.shared.intervals import interval_of
from notebooks.shared.measure import measure_by_length, measure_summary_bits
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of
from notebooks.shared.summaries import differences, summarise
from notebooks.shared.words import WordsConfig, spec_on_words

QUANTITIES = ("token_accuracy", "exact_match", "bits", "bits_of_word")


class Config(WordsConfig):
    """Settings; a network is a link × width × seed, trained once on sentences of all lengths."""

    link: tuple[Link, ...] = setting(
        ("initial", "attention"), "what the decoder gets of the source: initial, every_step, attention"
    )
    width: tuple[int, ...] = setting((32, 64), "of states and embeddings: one number or several")
    cell: SequenceCell = setting("gru", "gru or lstm")
    shortest: int = 3
    longest: int = 12
    # Of sentences with fewer than three words none could be held out.
    probed: tuple[Annotated[int, Field(ge=3)], ...] = setting(
        (4, 8, 12), "lengths at which a linear probe reads the vector"
    )
    steps: Positive = 200
    samples: Positive = setting(
        2_000, "sentences that a probe is fitted on; half as many once more, for the widest and longest"
    )


PROFILES = {
    "quick": Config(width=(64,)),
    "paper": Config(
        link=("initial", "every_step", "attention"), width=(32, 64, 128, 256), shortest=5, longest=60,
        probed=(5, 10, 20, 30, 40, 60), seeds=4, n_train=40_000, judged=2_800, steps=3_000,
        learning_rate=2e-3,
        samples=16_000,  # 4,000 leave a width of 256 and 60 words a bound far below what is there
    ),
    "tiny": Config(
        width=(6, 8), longest=5, probed=(3, 4), seeds=2, n_train=300, judged=60, steps=3, samples=80
    ),
}  # fmt: skip


class Asked(NamedTuple):
    """What is measured, by link and width.

    Attributes:
        by_length: quality by length.
        probed: what a probe reads off every single vector, also by length.
        halved: the same of the longest sentences and widest vectors, with half the samples to fit it on.
    """

    by_length: Plan
    probed: Plan
    halved: Plan


def _plan(config: Config) -> Asked:
    networks = {}
    for link, width in product(config.link, config.width):
        settings = {"link": link, "width": width, "cell": config.cell, "snapshots": 1}
        networks[link, width] = each_seed(config.seeds, spec_on_words, config, **settings)
    read = {group: specs for group, specs in networks.items() if group[0] in ("initial", "every_step")}
    probed: Plan = {}
    for length in config.probed:
        plan = plan_of(read, measure_summary_bits, length=length, samples=config.samples)
        for group, of_group in plan.items():
            probed[length, *group] = of_group
    halved: Plan = {}
    if config.samples > 1:
        widest = {group: specs for group, specs in read.items() if group[1] == max(config.width)}
        longest, half = max(config.probed), config.samples // 2
        halved = plan_of(widest, measure_summary_bits, length=longest, samples=half)
    return Asked(by_length=plan_of(networks, measure_by_length), probed=probed, halved=halved)


measurements = asked(_plan)


GROUP = {
    "link": Column("what the decoder gets of the source: initial, every_step, attention"),
    "width": Column("of states and embeddings"),
}
BY_LENGTH = {
    "length": Column("words of a sentence", "words"),
    "token_accuracy": share("word accuracy, given the preceding words"),
    "exact_match": share("sentences of which every next word is correct"),
    "bits": Column("information on the sentence that reaches the decoder", "bits a sentence"),
    "bits_of_word": Column("information on the sentence that reaches the decoder", "bits a word"),
}
ENDS = {"shortest": "shortest quarter of the lengths", "longest": "longest quarter of the lengths"}
NETWORK_NUMBERS = {
    f"{end}.{name}": replace(BY_LENGTH[name], meaning=f"{BY_LENGTH[name].meaning}; {quarter_of}")
    for (end, quarter_of), name in product(ENDS.items(), QUANTITIES)
} | {
    "capacity": Column("bits of a sentence where they are most, in the mean over three lengths", "bits"),
    "slope": Column("slope of the logarithm of bits of a word over that of the length, in longer sentences"),
    "falls": Column("accuracy of words in the shortest quarter of the lengths, minus the longest"),
}
PARAMETERS = {"parameters": Column("weights of the network")}
READ_LENGTH = {"length": BY_LENGTH["length"]} | GROUP
POSITION = {
    "position": Column("position of the word in the sentence, from 0"),
    "bits": Column("information on the word that a linear probe reads off the vector", "bits"),
}
READ = {
    "first": Column("information on the first word that a probe reads off the vector", "bits"),
    "last": Column("the same on the last word", "bits"),
    "middle": Column("the same on a word between, first and last quarter left out", "bits"),
    "together": Column("the same on all words", "bits"),
    "first_over_middle": Column("first minus middle", "bits"),
    "last_over_middle": Column("last minus middle", "bits"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """``wider``: capacity of the widest minus the narrowest; ``attention_gains``: exact match of the widest
    with attention, on the longest quarter, minus that of ``initial``. ``read``: what a probe reads off the
    widest vector of the longest sentences; ``more``: that minus what half the samples find;
    ``decoder_over_probe``: what reaches the decoder minus that."""
    plan = _plan(config)
    numbers = NETWORK_NUMBERS | PARAMETERS
    networks = plan_frame(plan.by_length, store, GROUP, records=_numbers, columns=numbers)
    lengths = plan_frame(
        plan.by_length, store, GROUP, records=_by_length, columns=BY_LENGTH, row="a length of a network"
    )
    places = plan_frame(
        plan.probed, store, READ_LENGTH, records=_by_position, columns=POSITION, row="a position"
    )
    read = plan_frame(
        plan.probed, store, READ_LENGTH, records=_read, columns=READ, row="a probe of a network"
    )
    halved = plan_frame(plan.halved, store, GROUP, records=_read, columns=READ, row="a probe of a network")

    longest, wide, narrow = max(config.probed), max(config.width), min(config.width)
    widest = networks.query("width == @wide", wide=wide)
    narrowest = networks.query("width == @narrow", narrow=narrow)
    wider = differences(widest, narrowest, ["capacity"], on=["link", "seed"])
    attention = widest.query("link == 'attention'")
    initial = widest.query("link == 'initial'")
    gains = differences(attention, initial, ["longest.exact_match"])
    whole = read.query("length == @longest and width == @wide", longest=longest, wide=wide)
    more = differences(whole, halved, ["together"], on=["link", "seed"])
    at_longest = lengths.query("length == @longest", longest=longest)
    decoded = at_longest.select(*GROUP, "seed", "bits").rename(bits="together")
    over_probe = differences(decoded, whole, ["together"], on=["link", "width", "seed"])
    by_position = summarise(places, [*READ_LENGTH, "position"], ["bits"])
    return {
        "lengths": summarise(lengths, [*GROUP, "length"], QUANTITIES),
        "probe": by_position.select(*READ_LENGTH, "position", *INTERVAL),
        "networks": networks,
        "estimates": summarise(networks, list(GROUP), NETWORK_NUMBERS),
        "wider": summarise(wider, ["link"], ["capacity"]),
        "attention_gains": summarise(gains, ["link"], ["longest.exact_match"]),
        "read": summarise(whole, ["link"], READ),
        "more": summarise(more, ["link"], ["together"]),
        "decoder_over_probe": summarise(over_probe, ["link"], ["together"]),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    networks, estimates = tables["networks"], tables["estimates"]
    wide = max(config.width)
    widest_networks = networks.query("width == @wide", wide=wide)
    widest_estimates = estimates.query("width == @wide", wide=wide)
    undefined: dict[str, object] = {"attention_gains": interval_of(), "wider": {}, "read": {}}
    wider: dict[str, object] = {}
    if wide > min(config.width):
        wider |= {f"wider.{link}": interval_of() for link in config.link}
        wider |= keyed(tables["wider"], "wider.{link}")
    for link in tables["read"].frame["link"].unique():
        undefined[f"read.{link}.more"] = interval_of()
        undefined[f"read.{link}.decoder_over_probe"] = interval_of()
    return view(
        _keyed_networks(networks, estimates, "{link}.width_{width}"),
        _keyed_networks(widest_networks, widest_estimates, "widest.{link}"),
        undefined,
        keyed(tables["attention_gains"], "attention_gains"),
        wider,
        keyed(tables["read"], "read.{link}.{quantity}"),
        keyed(tables["more"], "read.{link}.more"),
        keyed(tables["decoder_over_probe"], "read.{link}.decoder_over_probe"),
    )


def _keyed_networks(networks: Table, estimates: Table, key: str) -> dict[str, object]:
    """Return estimates of each link and width, and some numbers of each network in the order of seeds."""
    first = networks.with_rows(networks.frame.drop_duplicates(list(GROUP)))
    of_each: dict[str, list] = {}
    for row in networks.records():
        for name in ("capacity", "slope"):
            numbers = of_each.setdefault(f"{key.format(**row)}.of_each.{name}", [])
            numbers.append(row[name])
    keys = keyed(estimates, key + ".{quantity}")
    keys |= keyed(first, key + ".{column}", PARAMETERS)
    return keys | of_each


def _numbers(m: dict) -> dict:
    first = {name: quarter(m, name, last=False) for name in QUANTITIES}
    last = {name: quarter(m, name, last=True) for name in QUANTITIES}
    return {
        "shortest": first,
        "longest": last,
        "capacity": capacity(m),
        "slope": slope(m),
        "falls": first["token_accuracy"] - last["token_accuracy"],
        "parameters": m["parameters"],
    }


def _by_length(m: dict) -> Iterator[dict]:
    for place, length in enumerate(m["lengths"]):
        numbers = {name: m[name][place] for name in QUANTITIES}
        yield {"length": length, **numbers}


def _by_position(m: dict) -> list[dict]:
    return [{"position": position, "bits": bits} for position, bits in enumerate(m["bits"])]


def _read(m: dict) -> dict:
    bits = m["bits"]
    part = len(bits) // 4
    first, last = bits[0], bits[-1]
    middle = float(np.mean(bits[part : len(bits) - part]))
    return {
        "first": first,
        "last": last,
        "middle": middle,
        "together": float(sum(bits)),
        "first_over_middle": first - middle,
        "last_over_middle": last - middle,
    }


def quarter(measured: dict, name: str, *, last: bool = True) -> float:
    values = measured[name]
    number = max(1, len(values) // 4)
    of_quarter = values[-number:] if last else values[:number]
    return float(np.mean(of_quarter))


def capacity(measured: dict) -> float:
    """Return the bits of a sentence where they are most, as a mean over three neighbouring lengths."""
    window = min(3, len(measured["bits"]))
    means = np.convolve(measured["bits"], np.full(window, 1 / window), mode="valid")
    return float(means.max())


def slope(measured: dict) -> float | None:
    """Slope of log bits of a word over log length, in the longer half of the lengths; None if undefined."""
    half = len(measured["lengths"]) // 2
    lengths, bits = measured["lengths"][half:], measured["bits_of_word"][half:]
    if len(lengths) < 2 or min(bits) <= 0:
        return None
    slope_of_line, _ = np.polyfit(np.log(lengths), np.log(bits), 1)
    return float(slope_of_line)
