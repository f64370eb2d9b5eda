"""The context-vector bottleneck: what fits into one vector, by its width and the length of the sentence."""

from functools import partial
from itertools import product
from typing import Annotated

import numpy as np

from attnlib.models.sequence_to_sequence import Link, SequenceCell
from companion.results.config import Field, Positive
from companion.runs.store import Store
from notebooks.shared.intervals import Point, each_over_seeds, nested, paired
from notebooks.shared.measure import measure_by_length, measure_summary_bits
from notebooks.shared.plan import Plan, answered, asked, each_seed, plan_of
from notebooks.shared.summaries import rows_of, summarised
from notebooks.shared.words import WordsConfig, spec_on_words

QUANTITIES = ("token_accuracy", "exact_match", "bits", "bits_of_word")


class Config(WordsConfig):
    """Settings; a network is a link × width × seed, trained once on sentences of all lengths."""

    #: what the decoder gets of the source: ``initial``, ``every_step``, ``attention``
    link: tuple[Link, ...] = ("initial", "attention")
    width: tuple[int, ...] = (32, 64)  #: of states and embeddings: one number or several
    cell: SequenceCell = "gru"  #: ``gru`` or ``lstm``
    shortest: int = 3
    longest: int = 12
    #: lengths at which a linear probe reads the vector
    probed: tuple[Annotated[int, Field(ge=3)], ...] = (4, 8, 12)  # of fewer words none could be held out
    steps: Positive = 200
    #: sentences that a probe is fitted on. Once more on half as many, where there is most to read.
    samples: Positive = 2_000


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
        own = {"link": link, "width": width, "cell": config.cell, "snapshots": 1}
        networks[link, width] = each_seed(config.seeds, spec_on_words, config, **own)
    read = {group: specs for group, specs in networks.items() if group[0] in ("initial", "every_step")}
    for length in config.probed:
        plan = plan_of(read, measure_summary_bits, length=length, samples=config.samples)
        probed |= {(length, *group): own for group, own in plan.items()}
    widest = {group: specs for group, specs in read.items() if group[1] == max(config.width)}
    half = {"length": max(config.probed), "samples": config.samples // 2}
    halved = plan_of(widest, measure_summary_bits, **half) if config.samples > 1 else {}
    return plan_of(networks, measure_by_length), probed, halved


measurements = asked(_plan)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """``wider``: capacity of the widest less the narrowest; ``attention_gains``: exact match of the widest
    with attention, on the longest quarter, less that of ``initial``."""
    judged, probed, halved = (answered(plan, store) for plan in _plan(config))
    values = nested({(link, f"width_{n}"): summary(points) for (link, n), points in judged.items()})
    wide, narrow, longest = max(config.width), min(config.width), max(config.probed)
    of = {link: judged.get((link, wide), []) for link in (*config.link, "attention", "initial")}
    values |= {
        "widest": {link: values[link][f"width_{wide}"] for link in config.link if of[link]},
        "wider": {
            link: paired(of[link], judged.get((link, narrow), []), capacity)
            for link in (config.link if wide > narrow else ())
        },
        "attention_gains": paired(of["attention"], of["initial"], partial(quarter, name="exact_match")),
        "read": {
            link: read_off(probed[longest, link, wide], halved.get((link, wide), []), of[link])
            for link in config.link
            if (longest, link, wide) in probed
        },
    }
    bits = summarised(probed, lambda m: dict(enumerate(m["bits"])))
    lengths = summarised(
        judged, lambda m: {n: {q: m[q][i] for q in QUANTITIES} for i, n in enumerate(m["lengths"])}
    )
    return values, {
        "lengths": rows_of(lengths, "link", "width", "length", "quantity"),
        "probe": rows_of(bits, "length", "link", "width", "position"),
    }


def summary(points: list[Point]) -> dict:
    """One link and width, intervals over seeds: both ends of the lengths, and how the bits go with length."""

    def numbers(m: dict) -> dict:
        first, last = ({name: quarter(m, name, last=end) for name in QUANTITIES} for end in (False, True))
        falls = first["token_accuracy"] - last["token_accuracy"]
        ends = {"shortest": first, "longest": last}
        return ends | {"capacity": capacity(m), "slope": slope(m), "falls": falls}

    of_each = {"capacity": [capacity(m) for _, m in points], "slope": [slope(m) for _, m in points]}
    return each_over_seeds(points, numbers) | {"of_each": of_each, "parameters": points[0][1]["parameters"]}


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


def read_off(probed: list[Point], halved: list[Point], judged: list[Point]) -> dict:
    """``more``: less what half the samples find; ``decoder_over_probe``: what reaches the decoder less it."""

    def together(measured: dict) -> float | None:
        if "lengths" not in measured:
            return float(sum(measured["bits"]))
        return dict(zip(measured["lengths"], measured["bits"], strict=True)).get(probed[0][1]["length"])

    def words(m: dict) -> dict:
        bits, part = m["bits"], len(m["bits"]) // 4
        first, last, between = bits[0], bits[-1], float(np.mean(bits[part : len(bits) - part]))
        found = {"first": first, "last": last, "middle": between, "together": together(m)}
        return found | {"first_over_middle": first - between, "last_over_middle": last - between}

    return each_over_seeds(probed, words) | {
        "more": paired(probed, halved, together),
        "decoder_over_probe": paired(judged, probed, together),
    }
