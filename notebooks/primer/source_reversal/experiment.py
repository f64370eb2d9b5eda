"""Reversing the source: whether it helps, where in the sentence, and what changes with attention."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

import numpy as np

from attnlib.errors import BadInput, DataUnavailable
from attnlib.models.sequence_to_sequence import Link
from companion.data import registry
from companion.results.config import OneOf, setting
from companion.results.frames import Table, keyed, view
from companion.runs.columns import INTERVAL, Column, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from companion.runs.store import Store
from notebooks.shared.measure import THIRDS, measure_learning_curve
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.sequence_course import judged_samples
from notebooks.shared.summaries import differences, summarise
from notebooks.shared.words import PAPER, CoursesConfig, link_distances, spec_on_words

ORDERS = ("forward", "reversed")


@dataclass(frozen=True)
class LinkedSentence:
    """A sentence and its translation whose words are linked.

    Attributes:
        steps: by order of reading, for each link the recurrent steps between its words.
        offset: by how many places a target word is further on than its source word, on average.
    """

    steps: dict[str, list[int]]
    offset: float


def linked_sentences(name: str) -> list[LinkedSentence]:
    """Return the held-out sentences of a task that have links; none where its data are not available here.

    Raises:
        BadInput: the links of the task are not known.
    """
    try:
        task = registry.load(name)
    except DataUnavailable:
        return []
    if not task.gold:
        raise BadInput(f"task {name!r} has no known links; distances cannot be counted")
    sentences = []
    lengths = task.held_out.source_lengths.tolist()
    for links, length in zip(task.gold, lengths, strict=False):  # in Europarl the first sentences have links
        if not links:
            continue
        steps = {order: link_distances(links, length, reverse=order == "reversed") for order in ORDERS}
        offset = np.mean([target - source for source, target in links])
        sentences.append(LinkedSentence(steps, float(offset)))
    return sentences


ONE_LENGTH = "attention_one_length"
PARTS = ("token_accuracy", *THIRDS)


@measure(version=1)
def measure_longest_sentences(recording: Recording) -> dict:
    """By third of the sentence, in the longest quarter of the lengths: over all lengths together a third
    holds places that are in the middle of a longer sentence."""
    judged = judged_samples(recording.spec.resolved)
    all_lengths = judged.target_lengths
    long = all_lengths >= all_lengths.max() - (all_lengths.max() - all_lengths.min()) / 4
    right = recording["right"][-1].double().numpy()[long]  # (samples, places)
    lengths = all_lengths[long, None]  # (samples, 1)
    places = np.arange(right.shape[1])
    third_of_place = np.minimum(3 * (places + 0.5) / lengths, 2.999).astype(int)  # (samples, places)
    shares: dict[str, float | None] = {}
    for number, third in enumerate(THIRDS):
        in_third = (places < lengths) & (third_of_place == number)
        shares[third] = float(right[in_third].mean()) if in_third.any() else None
    return {"shortest": int(lengths.min()), "sentences": int(long.sum())} | shares


class Config(CoursesConfig):
    """Settings; a network is a link × order × cell × seed, trained on sentences of all lengths."""

    link: tuple[Link, ...] = setting(
        ("initial", "attention"), "what the decoder gets of the source: initial, every_step, attention"
    )
    one_length: int = setting(
        1, "1 adds networks with attention on sentences that all have the longest length"
    )
    aligned: tuple[Annotated[str, OneOf(registry.names())], ...] = setting(
        ("one_to_one", "number_words", "lexicon_translation", "europarl_de_en"),
        "tasks with known links, whose distances are counted. Those without data here are left out",
    )


PROFILES = {
    "quick": Config(one_length=0),
    "paper": Config(**PAPER | {"seeds": 8}),
    "tiny": Config(
        aligned=("one_to_one", "number_words"),
        longest=6,
        seeds=2,
        n_train=300,
        judged=60,
        width=8,
        steps=3,
        snapshots=2,
    ),
}


def _plan(config: Config) -> tuple[Plan, Plan]:
    kinds = {link: (link, config.shortest) for link in config.link}
    if config.one_length and "attention" in config.link:
        kinds[ONE_LENGTH] = ("attention", config.longest)
    shared = settings_of(config, "width", "snapshots")
    networks = {}
    for (kind, (link, shortest)), cell, order in product(kinds.items(), config.cell, ORDERS):
        settings = {"link": link, "shortest": shortest, "reverse": order == "reversed", "cell": cell} | shared
        networks[kind, cell, order] = each_seed(config.seeds, spec_on_words, config, **settings)
    return plan_of(networks, measure_learning_curve), plan_of(networks, measure_longest_sentences)


measurements = asked(_plan)


GROUP = {
    "kind": Column(
        "what the decoder gets of the source; attention_one_length: attention, all sentences equally long"
    ),
    "cell": Column("recurrent cell"),
    "order": Column("how the source is read: forward, reversed"),
}
PART = {
    "part": Column("of the sentence: all words (token_accuracy), first, middle, last third"),
    "step": Column("updates so far"),
    "right": share("word accuracy, given the preceding words"),
}
PLACE = {
    "place": Column("position of the word in the sentence, from 1"),
    "right": share("word accuracy at the end of training, given the preceding words"),
}
QUANTITIES = (
    {
        "speed": share("word accuracy, averaged over training"),
        "exact_match": share("sentences that the network writes without an error"),
        "token_accuracy": share("word accuracy when training ends"),
    }
    | {part: share(f"word accuracy in the {part} third when training ends") for part in THIRDS}
    | {f"long_{part}": share(f"the same, {part} third of the longest sentences") for part in THIRDS}
    | {f"speed_{part}": share(f"speed in the {part} third of the sentence") for part in THIRDS}
)
LONG_FROM = {"long_from": Column("fewest words of a sentence in the longest quarter of the lengths", "words")}

TASK = {"task": Column("task with known links")}
READ_IN = {"order": GROUP["order"]}
DISTANCE = {
    "distance": Column("recurrent steps between linked words", "steps"),
    "share": share("linked words that are so many steps apart"),
}
STEPS = {
    "sentence": Column("number of the sentence, from 0"),
    "mean": Column("mean distance of linked words", "steps"),
    "smallest": Column("smallest distance of linked words", "steps"),
    "largest": Column("largest distance of linked words", "steps"),
    "offset": Column("places by which a target word is further on than its source word", "places"),
}
REVERSAL = {
    "change": Column("mean distance of linked words, reversed minus forward", "steps"),
    "cut": Column("smallest distance of linked words, forward minus reversed", "steps"),
    "offset": STEPS["offset"],
}
EXAMPLE = {"word": Column("position in a sentence of four words, from 1"), "steps": DISTANCE["distance"]}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """``gains``: read backwards minus read forwards, in pairs of networks that share a seed."""
    curves, longest = _plan(config)
    both = {group: (*curves[group], *longest[group]) for group in curves}
    networks = plan_frame(both, store, GROUP, records=_numbers, columns=QUANTITIES | LONG_FROM)
    parts = plan_frame(both, store, GROUP, records=_by_part, columns=PART, row="a snapshot of a part")
    places = plan_frame(both, store, GROUP, records=_by_place, columns=PLACE, row="a place in the sentence")
    by_part = summarise(parts, [*GROUP, "part", "step"], ["right"])
    by_place = summarise(places, [*GROUP, "place"], ["right"])
    forward, backward = (networks.query("order == @order", order=order) for order in ORDERS)
    gains = differences(backward, forward, QUANTITIES, on=["kind", "cell", "seed"])

    linked = {task: linked_sentences(task) for task in config.aligned}
    sentences = Table.of(_sentence_records(linked), TASK | READ_IN | STEPS, "a sentence, read in one order")
    return {
        "curves": by_part.select(*GROUP, "part", "step", *INTERVAL),
        "places": by_place.select(*GROUP, "place", *INTERVAL),
        "distances": Table.of(_distance_records(linked), TASK | READ_IN | DISTANCE, "a distance in a task"),
        "networks": networks,
        "estimates": summarise(networks, list(GROUP), QUANTITIES),
        "gains": summarise(gains, ["kind", "cell"], QUANTITIES),
        "steps": _over_sentences(sentences, [*TASK, *READ_IN], ["mean", "smallest", "largest"]),
        "reversal": _changes(sentences),
        "example": Table.of(_example_records(), READ_IN | EXAMPLE, "a word of the example"),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """``main``: numbers of the first cell."""
    of_networks = {name: tables[name] for name in ("networks", "estimates", "gains")}
    of_first_cell = {}
    for name, table in of_networks.items():
        of_first_cell[name] = table.query("cell == @cell", cell=config.cell[0])
    missing: dict[str, object] = {"distances": {}}
    counted = set(tables["distances"].frame["task"])
    for task in config.aligned:
        if task not in counted:
            missing[f"distances.{task}.cannot_be_run"] = f"data: {task} is not available here"
    example: dict[str, object] = {}
    for order, steps in tables["example"].frame.groupby("order", sort=False)["steps"]:
        example[f"example.{order}"] = steps.tolist()
    reversal = tables["reversal"]
    cut = reversal.query("quantity == 'cut'")
    return view(
        _keyed_networks(of_networks, "{kind}.{cell}"),
        _keyed_networks(of_first_cell, "{kind}.main"),
        missing,
        keyed(tables["steps"], "distances.{task}.{order}.{quantity}", ["value"]),
        keyed(reversal.query("quantity != 'cut'"), "distances.{task}.{quantity}"),
        keyed(cut, "distances.{task}.cut", ["value"]),
        keyed(cut, "distances.{task}.sentences", ["n"]),
        example,
    )


def _keyed_networks(tables: dict[str, Table], key: str) -> dict[str, object]:
    networks = tables["networks"]
    first = networks.with_rows(networks.frame.drop_duplicates(["kind", "cell"]))
    keys = keyed(tables["estimates"], key + ".{order}.{quantity}")
    keys |= keyed(tables["gains"], key + ".gain.{quantity}")
    keys |= keyed(first, key + ".{column}", LONG_FROM)
    return keys


def _numbers(curve: dict, longest: dict) -> dict[str, float | None]:
    speeds = {part: float(np.mean(curve[part][1:])) for part in PARTS}
    numbers = {"speed": speeds["token_accuracy"], "exact_match": curve["exact_match"]}
    for part in PARTS:
        numbers[part] = curve[part][-1]
    for part in THIRDS:
        numbers[f"long_{part}"] = longest[part]
        numbers[f"speed_{part}"] = speeds[part]
    numbers["long_from"] = longest["shortest"]
    return numbers


def _by_part(curve: dict, longest: dict) -> Iterator[dict]:
    for part in PARTS:
        for step, right in zip(curve["steps"], curve[part], strict=True):
            yield {"part": part, "step": step, "right": right}


def _by_place(curve: dict, longest: dict) -> list[dict]:
    return [{"place": place, "right": right} for place, right in enumerate(curve["by_place"], 1)]


Linked = dict[str, list[LinkedSentence]]  # by task


def _sentence_records(linked: Linked) -> Iterator[dict]:
    for (task, sentences), order in product(linked.items(), ORDERS):
        for number, sentence in enumerate(sentences):
            steps = sentence.steps[order]
            yield {
                "task": task,
                "order": order,
                "sentence": number,
                "mean": np.mean(steps),
                "smallest": min(steps),
                "largest": max(steps),
                "offset": sentence.offset,
            }


def _distance_records(linked: Linked) -> Iterator[dict]:
    for (task, sentences), order in product(linked.items(), ORDERS):
        if not sentences:
            continue
        distances = np.concatenate([sentence.steps[order] for sentence in sentences])
        counts = np.bincount(distances)
        for distance in np.flatnonzero(counts):
            part = float(counts[distance] / counts.sum())
            yield {"task": task, "order": order, "distance": int(distance), "share": part}


def _example_records() -> Iterator[dict]:
    """Yield the distances in the primer's sentence of four words, each translated at its own place."""
    links = [(place, place) for place in range(4)]
    for order in ORDERS:
        steps = link_distances(links, 4, reverse=order == "reversed")
        for word, number in enumerate(steps, 1):
            yield {"order": order, "word": word, "steps": number}


def _changes(sentences: Table) -> Table:
    """Return what reversal does to the distances in a sentence, over the sentences of a task."""
    forward, backward = (sentences.query("order == @order", order=order) for order in ORDERS)
    apart = differences(backward, forward, ["mean", "smallest"], on=["task", "sentence"])
    mean, smallest = apart.frame["mean"], apart.frame["smallest"]
    changes = apart.assign(REVERSAL, change=mean, cut=-smallest)
    return _over_sentences(changes, list(TASK), REVERSAL)


def _over_sentences(sentences: Table, by: list[str], quantities: Iterable[str]) -> Table:
    estimates = summarise(sentences, by, quantities, unit="sentence")
    over_sentences = {"value": Column("mean over sentences"), "n": Column("sentences", low=0)}
    columns = {**estimates.columns, **over_sentences}
    return replace(estimates, columns=columns, row="an estimate over sentences")
