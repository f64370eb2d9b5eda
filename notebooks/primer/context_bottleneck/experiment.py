"""The context-vector bottleneck: what fits into one vector, by its width and the length of the sentence."""

from dataclasses import replace
from itertools import product
from typing import Annotated

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
        2_000, "sentences that a probe is fitted on. Once more on half as many, where there is most to read"
    )


PROFILES = {
    "quick": Config(width=(64,)),
    "paper": Config(
        link=("initial", "every_step", "attention"), width=(32, 64, 128, 256), shortest=5, longest=60,
        probed=(5, 10, 20, 30, 40, 60), n_train=40_000, judged=2_800, steps=3_000, learning_rate=2e-3,
        samples=16_000,  # 4,000 leave a width of 256 and 60 words a bound far below what is there
    ),
    "tiny": Config(
        width=(6, 8), longest=5, probed=(3, 4), seeds=2, n_train=300, judged=60, steps=3, samples=80
    ),
}  # fmt: skip


def _plan(config: Config) -> tuple[Plan, Plan, Plan]:
    """Of each link and width the quality by length; what a probe reads off every single vector, at each
    length; and, of the longest sentences and widest vectors, once more with half the samples to fit it on."""
    networks, probed = {}, {}
    for link, width in product(config.link, config.width):
        settings = {"link": link, "width": width, "cell": config.cell, "snapshots": 1}
        networks[link, width] = each_seed(config.seeds, spec_on_words, config, **settings)
    read = {group: specs for group, specs in networks.items() if group[0] in ("initial", "every_step")}
    for length in config.probed:
        plan = plan_of(read, measure_summary_bits, length=length, samples=config.samples)
        probed |= {(length, *group): of_group for group, of_group in plan.items()}
    widest = {group: specs for group, specs in read.items() if group[1] == max(config.width)}
    half = {"length": max(config.probed), "samples": config.samples // 2}
    halved = plan_of(widest, measure_summary_bits, **half) if config.samples > 1 else {}
    return plan_of(networks, measure_by_length), probed, halved


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
    judged, probed, halved = _plan(config)
    numbers = NETWORK_NUMBERS | PARAMETERS
    networks = plan_frame(judged, store, GROUP, records=_numbers, columns=numbers)
    lengths = plan_frame(
        judged, store, GROUP, records=_by_length, columns=BY_LENGTH, row="a length of a network"
    )
    places = plan_frame(probed, store, READ_LENGTH, records=_by_position, columns=POSITION, row="a position")
    read = plan_frame(probed, store, READ_LENGTH, records=_read, columns=READ, row="a probe of a network")
    halved_read = plan_frame(halved, store, GROUP, records=_read, columns=READ, row="a probe of a network")

    longest = max(config.probed)
    widest = networks.query("width == @wide", wide=max(config.width))
    narrowest = networks.query("width == @narrow", narrow=min(config.width))
    whole = read.query("length == @longest and width == @wide", longest=longest, wide=max(config.width))
    at_longest = lengths.query("length == @longest", longest=longest)
    decoded = at_longest.select(*GROUP, "seed", "bits").rename(bits="together")
    attention, initial = (widest.query("link == @link", link=link) for link in ("attention", "initial"))
    by_position = summarise(places, [*READ_LENGTH, "position"], ["bits"])
    of_link = {"on": ["link", "seed"]}
    return {
        "lengths": summarise(lengths, [*GROUP, "length"], QUANTITIES),
        "probe": by_position.select(*READ_LENGTH, "position", *INTERVAL),
        "networks": networks,
        "estimates": summarise(networks, list(GROUP), NETWORK_NUMBERS),
        "wider": summarise(differences(widest, narrowest, ["capacity"], **of_link), ["link"], ["capacity"]),
        "attention_gains": summarise(
            differences(attention, initial, ["longest.exact_match"]), ["link"], ["longest.exact_match"]
        ),
        "read": summarise(whole, ["link"], READ),
        "more": summarise(differences(whole, halved_read, ["together"], **of_link), ["link"], ["together"]),
        "decoder_over_probe": summarise(
            differences(decoded, whole, ["together"], on=["link", "width", "seed"]), ["link"], ["together"]
        ),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    wide, narrow = max(config.width), min(config.width)
    of_networks = {name: tables[name] for name in ("networks", "estimates")}
    of_widest = {name: table.query("width == @wide", wide=wide) for name, table in of_networks.items()}
    undefined = {"attention_gains": interval_of(), "wider": {}, "read": {}}
    if wide > narrow:
        undefined |= {f"wider.{link}": interval_of() for link in config.link}
    for link, name in product(tables["read"].frame["link"].unique(), ("more", "decoder_over_probe")):
        undefined[f"read.{link}.{name}"] = interval_of()
    return view(
        _keyed_networks(of_networks, "{link}.width_{width}"),
        _keyed_networks(of_widest, "widest.{link}"),
        undefined,
        keyed(tables["attention_gains"], "attention_gains"),
        keyed(tables["wider"], "wider.{link}") if wide > narrow else {},
        keyed(tables["read"], "read.{link}.{quantity}"),
        keyed(tables["more"], "read.{link}.more"),
        keyed(tables["decoder_over_probe"], "read.{link}.decoder_over_probe"),
    )


def _keyed_networks(tables: dict[str, Table], key: str) -> dict[str, object]:
    """Return estimates of each link and width, and some numbers of each network in the order of seeds."""
    networks = tables["networks"]
    of_each: dict[str, list] = {}
    for row, name in product(networks.records(), ("capacity", "slope")):
        of_each.setdefault(f"{key.format(**row)}.of_each.{name}", []).append(row[name])
    first = networks.with_rows(networks.frame.drop_duplicates(list(GROUP)))
    parameters = keyed(first, key + ".{column}", PARAMETERS)
    return keyed(tables["estimates"], key + ".{quantity}") | parameters | of_each


def _numbers(m: dict) -> dict:
    first = {name: quarter(m, name, last=False) for name in QUANTITIES}
    last = {name: quarter(m, name, last=True) for name in QUANTITIES}
    falls = first["token_accuracy"] - last["token_accuracy"]
    numbers = {"shortest": first, "longest": last, "capacity": capacity(m), "slope": slope(m), "falls": falls}
    return numbers | {"parameters": m["parameters"]}


def _by_length(m: dict) -> list[dict]:
    return [
        {"length": length} | {name: m[name][place] for name in QUANTITIES}
        for place, length in enumerate(m["lengths"])
    ]


def _by_position(m: dict) -> list[dict]:
    return [{"position": position, "bits": bits} for position, bits in enumerate(m["bits"])]


def _read(m: dict) -> dict:
    bits, part = m["bits"], len(m["bits"]) // 4
    first, last, between = bits[0], bits[-1], float(np.mean(bits[part : len(bits) - part]))
    numbers = {"first": first, "last": last, "middle": between, "together": float(sum(bits))}
    return numbers | {"first_over_middle": first - between, "last_over_middle": last - between}


def quarter(measured: dict, name: str, *, last: bool = True) -> float:
    values = measured[name]
    number = max(1, len(values) // 4)
    return float(np.mean(values[-number:] if last else values[:number]))


def capacity(measured: dict) -> float:
    """Bits of a sentence where they are most, mean over three neighbouring lengths where there are three."""
    window = min(3, len(measured["bits"]))
    return float(np.convolve(measured["bits"], np.full(window, 1 / window), mode="valid").max())


def slope(measured: dict) -> float | None:
    """Slope of log bits of a word over log length, in the longer half of the lengths; None below two."""
    half = len(measured["lengths"]) // 2
    lengths, bits = measured["lengths"][half:], measured["bits_of_word"][half:]
    if len(lengths) < 2 or min(bits) <= 0:
        return None
    return float(np.polyfit(np.log(lengths), np.log(bits), 1)[0])
