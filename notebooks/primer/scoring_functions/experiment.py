"""Scoring functions, directions of the encoder and decoders: what each costs, learns, and how fast."""

import math
from collections.abc import Iterable, Mapping
from itertools import product
from math import ceil
from operator import itemgetter
from typing import Annotated, NamedTuple

import numpy as np
import torch
from torch import nn

from attnlib.errors import BadInput
from attnlib.models.attention import Scoring
from attnlib.models.corpus import Corpus, evaluation_batches
from attnlib.models.sequence_to_sequence import NAMED, SequenceToSequence
from attnlib.models.vocabulary import EOS, MARKS, PAD, Vocabulary
from attnlib.probes.alignment_error import link_mask
from companion.data.parallel import NAMES, TextOptions, read_translation, tokenise_pairs
from companion.results.config import BaseConfig, OneOf, Positive
from companion.runs import registry
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared.bleu import corpus_bleu
from notebooks.shared.intervals import Point, each_over_seeds, interval_of, matched, over_seeds, paired
from notebooks.shared.measure import measure_learning_curve, probe_bits
from notebooks.shared.plan import Plan, Points, answered, asked, each_seed, picked, plan_of, settings_of
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.summaries import along, crossing, nested, rows_of, summarised

_BATCH = 256
OFFSETS = (-2, -1, 0, 1, 2)  # words read off a state: two before its own to two after
# Tasks whose sentences can be made of one length, and the options that say which.
SIZES = {"reordering": ("min_phrases", "max_phrases"), "number_words": ("min_digits", "max_digits")}
READABLE = {"reordering": 2, "number_words": 5}  # the sizes that make five words, so that all offsets exist


def _network(recording: Recording) -> "SequenceToSequence":
    return registry.load(recording.spec.procedure).recorded_network(recording)


def sample_products(network: SequenceToSequence, source: int, target: int) -> dict[str, int]:
    """Multiplications for one sample of so many steps, end marks included, under teacher forcing."""
    config = network.config
    found = {
        "encoder": source * _weights(network.encoder),
        "decoder": target * _weights(network.decoder),
        "score": 0,
        "context": 0,
        "output": target * network.readout.weight.numel(),
    }
    if hasattr(network, "start_map"):
        found["decoder"] += config.layers * network.start_map.weight.numel()
    if hasattr(network, "summary_map"):
        found["decoder"] += network.summary_map.weight.numel()
    if config.attends:
        found["score"] = network.score.products(target, source)
        found["context"] = target * source * config.encoder_width
    if hasattr(network, "attentional_map"):
        found["output"] += target * network.attentional_map.weight.numel()
    return found


def _weights(layer: nn.RNNBase) -> int:
    """Entries of its matrices: each is multiplied once a step, in both directions."""
    return sum(p.numel() for name, p in layer.named_parameters() if name.startswith("weight"))


@measure(version=1)
def measure_cost(recording: Recording) -> dict:
    """Parameters, and multiplications for one sample of mean length, end marks included."""
    network, judged = _network(recording), judged_samples(recording.spec.resolved)
    steps = [round(float(own.mean())) + 1 for own in (judged.source_lengths, judged.target_lengths)]
    products = sample_products(network, *steps)
    sizes = {name: value.numel() for name, value in network.named_parameters()}
    return products | {
        "parameters": sum(sizes.values()),
        "score_parameters": sum(size for name, size in sizes.items() if name.startswith("score.")),
        "source": steps[0],
        "target": steps[1],
        "rest": sum(products.values()) - products["score"],
    }


@measure(version=1)
@torch.no_grad()
def measure_asking_state(recording: Recording) -> dict:
    """Root mean square of the scores less those that the ``present`` or the ``previous`` decoder state would
    give, over their standard deviation."""
    network, judged = _network(recording), judged_samples(recording.spec.resolved)
    gold = load_task(recording.spec.resolved).gold
    off, scores, weights = {"present": 0.0, "previous": 0.0}, [], []
    for batch in evaluation_batches(judged, _BATCH):
        trace = network(batch)
        first = network.encode(batch.source, batch.source_mask)[1].hidden[:, -1:]
        states = {
            "present": trace.decoder_states,
            "previous": torch.cat([first, trace.decoder_states[:, :-1]], dim=1),
        }
        valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
        for name, asking in states.items():
            apart = network.score(asking, trace.encoder_states) - trace.scores
            off[name] += float(apart[valid].double().square().sum())
        scores.append(trace.scores[valid].double())
        if gold is not None:
            links = link_mask([gold[i] for i in batch.indices.tolist()], *valid.shape[1:])
            weights.append((trace.attention * links).sum(-1)[links.any(-1)])
    every = torch.cat(scores)
    scale = float(every.std(correction=0)) * math.sqrt(len(every))
    found = {name: math.sqrt(total) / scale for name, total in off.items()}
    return found | {"weight_on_gold": float(torch.cat(weights).mean()) if weights else None}


@measure(version=1)
@torch.no_grad()
def measure_context_of_states(recording: Recording, *, size: int, samples: int) -> dict:
    """Bits that a linear softmax reads off the state of the word in the middle, over what the frequency of
    words at the same place tells. Sentences of one length are drawn anew, ``samples`` to fit the probe on and
    half as many to judge it on.
    """
    settings, network = recording.spec.resolved, _network(recording)
    drawn = {"n_train": samples, "n_held_out": max(1, samples // 2), "seed": 1 + settings.seed}
    options = dict(settings.task_options) | dict.fromkeys(SIZES[settings.task], size) | drawn
    task = load_task(type(settings)(task=settings.task, options=tuple(options.items())))
    (states, words), (others, judged) = (_middle(network, part) for part in (task.train, task.held_out))
    vocabulary = len(task.source_vocabulary) - len(MARKS)
    read = probe_bits(states, words, others, judged, words=vocabulary)
    counts = torch.stack([torch.bincount(column, minlength=vocabulary) for column in words.T]) + 1.0
    known = counts.div(counts.sum(1, keepdim=True)).log2().gather(1, judged.T).mean(1) + math.log2(vocabulary)
    return {"offsets": list(OFFSETS), "bits": (read - known).tolist()}


def _middle(network: "SequenceToSequence", corpus: Corpus) -> tuple[torch.Tensor, torch.Tensor]:
    length = int(corpus.source_lengths[0])
    middle = length // 2
    words = torch.from_numpy(corpus.source_ids.reshape(-1, length).astype(np.int64)) - len(MARKS)
    states = torch.empty(len(corpus), network.config.encoder_width)
    for batch in evaluation_batches(corpus, _BATCH):
        states[batch.indices] = network.encode(batch.source, batch.source_mask)[0].states[:, middle]
    return states, words[:, [middle + offset for offset in OFFSETS]]


@measure(version=1)
def measure_bleu(recording: Recording) -> dict:
    """BLEU of what the network writes against the words of the references; ``<unk>`` matches nothing."""
    settings = recording.spec.resolved
    task, judged = load_task(settings), judged_samples(settings)
    given = dict(settings.task_options)
    options = TextOptions(max_length=given.get("max_length"), lowercase=given.get("lowercase", True))
    sides = tuple(zip(*read_translation(settings.task).validation, strict=True))
    references = [target for _, target in tokenise_pairs(sides, options)][: len(judged)]
    known = (task.target_vocabulary.encode(words) for words in references)
    if len(references) < len(judged) or any(
        not np.array_equal(ids, judged.target(i)) for i, ids in enumerate(known)
    ):
        raise BadInput(
            f"the first {len(judged)} held-out samples of {settings.task} are not its validation "
            f"sentences, of which there are {len(references)}; judge no more than these"
        )
    written = [
        _in_words(row[(row != PAD) & (row != EOS)], task.target_vocabulary)
        for row in recording["written"].numpy()
    ]
    bleu, signature = corpus_bleu(written, [" ".join(words) for words in references])
    return {"bleu": bleu, "signature": signature, "sentences": len(references)}


def _in_words(ids: np.ndarray, vocabulary: Vocabulary) -> str:
    words = vocabulary.decode(ids)
    return " ".join("UNK" if word in MARKS else word for word in words)  # sacreBLEU would split the brackets


DECODERS: dict[str, dict[str, object]] = {
    "luong": {},
    "luong_feeding": {"input_feeding": True},
    "bahdanau": {"decoder": "bahdanau"},
}
BEFORE = "luong_before"  # Luong's decoder asked by the previous state
DIRECTIONS = {1: "one", 2: "two"}
BATCH = 64
TEXTS = [name for name in NAMES if name.startswith("multi30k_en")]
CAPTIONS = 29_000  # training pairs of Multi30k
VALIDATION = 1_014  # its validation pairs, which the task holds out first


class Kind(NamedTuple):
    task: str
    decoder: str
    directions: int
    scoring: str

    @property
    def columns(self) -> dict[str, str]:
        return self._asdict() | {"directions": DIRECTIONS[self.directions]}


class Config(BaseConfig):
    """Settings: a grid of networks on synthetic tasks, and the four that have names on captions."""

    #: ``reordering`` (half of the sentences may be), ``number_words``
    task: tuple[Annotated[str, OneOf(SIZES)], ...] = ("reordering",)
    #: ``dot``, ``scaled_dot``, ``general``, ``concat``, ``additive``
    scoring: tuple[Scoring, ...] = ("dot", "scaled_dot", "general", "additive")
    directions: tuple[Annotated[int, OneOf(DIRECTIONS)], ...] = (1, 2)  #: of the encoder: 1, 2 or both
    #: ``luong``, ``luong_feeding`` (with input feeding), ``bahdanau``
    decoder: tuple[Annotated[str, OneOf(DECODERS)], ...] = ("luong", "bahdanau")
    #: scores with which Luong's decoder has the previous state as the query too
    asked: tuple[Scoring, ...] = ("dot",)
    seeds: Positive = 3  #: networks of each kind
    shortest: Positive = 2  #: fewest phrases of a sentence to reorder, or digits of a number
    longest: int = 3  #: most of them
    n_train: Positive = 6_000  #: sentences to train on
    judged: Positive = 128  #: held-out sentences
    width: Positive = 32  #: of states and embeddings
    steps: Positive = 45  #: updates in training
    snapshots: Positive = 5  #: evaluations during training
    # high, for a short course; narrow networks bear it
    learning_rate: float = 3e-2  #: of Adam
    threshold: float = 0.6  #: share of words right whose first time tells how fast a network learns
    samples: Positive = 1_000  #: sentences that the probe of encoder states is fitted on
    #: networks trained on captions: ``cho``, ``sutskever``, ``bahdanau``, ``luong``
    named: tuple[Annotated[str, OneOf(NAMED)], ...] = ()
    text: Annotated[str, OneOf(TEXTS)] = "multi30k_en_de"  #: the captions: ``multi30k_en_de``, …
    text_pairs: int = 0  #: pairs of captions to train on, 0 for all
    text_words: Positive = 4_000  #: size of each vocabulary of captions
    text_width: Positive = 128  #: of the networks on captions
    text_epochs: Positive = 5  #: passes over the captions
    text_snapshots: Positive = 20  #: evaluations of them during training
    text_rate: float = 3e-3  #: of Adam on captions
    text_threshold: float = 0.4  #: the same as threshold, on captions

    def check(self) -> None:
        if not self.shortest <= self.longest:
            raise BadInput(f"sizes from {self.shortest} to {self.longest}; expected shortest ≤ longest")
        if not (grid(self) or self.named):
            raise BadInput("no network is left: dot scores need one direction; use general, or directions=1")


def grid(config: Config) -> tuple[Kind, ...]:
    """``dot`` and ``scaled_dot`` need states of one width; two directions make twice the decoder's."""
    every = map(Kind._make, product(config.task, config.decoder, config.directions, config.scoring))
    scores = [scoring for scoring in config.asked if scoring in config.scoring]
    previous = [Kind(task, BEFORE, 1, scoring) for task, scoring in product(config.task, scores)]
    previous = previous if "luong" in config.decoder and 1 in config.directions else ()
    return (*(k for k in every if k.directions == 1 or k.scoring not in ("dot", "scaled_dot")), *previous)


PROFILES = {
    "quick": Config(scoring=("dot", "scaled_dot", "additive"), seeds=2),
    "paper": Config(
        task=("reordering", "number_words"), scoring=("dot", "scaled_dot", "general", "concat", "additive"),
        decoder=("luong", "luong_feeding", "bahdanau"), asked=("dot", "general", "additive"), shortest=3,
        longest=6, n_train=20_000, judged=300, width=64, steps=800, snapshots=40, learning_rate=2e-3,
        threshold=0.9, samples=4_000, named=("cho", "sutskever", "bahdanau", "luong"),
    ),
    "tiny": Config(
        scoring=("dot", "scaled_dot", "general", "concat", "additive"), asked=("dot", "general", "additive"),
        seeds=2, n_train=300, judged=40, width=6, steps=3, snapshots=2, samples=200,
        named=("sutskever", "luong"), text_pairs=60, text_width=8, text_epochs=1, text_snapshots=2,
    ),
}  # fmt: skip


def specs_of_kind(config: Config, kind: Kind) -> tuple[RunSpec, ...]:
    sizes = dict(zip(SIZES[kind.task], (config.shortest, config.longest), strict=True))
    options = sizes | {"n_train": config.n_train, "n_held_out": config.judged}
    own = {"task": kind.task, "options": tuple(options.items()), "scoring": kind.scoring}
    own |= {"bidirectional": kind.directions == 2, "batch_size": BATCH, **DECODERS.get(kind.decoder, {})}
    own |= settings_of(config, "width", "steps", "snapshots", "learning_rate", "judged")
    procedure = "asked_before" if kind.decoder == BEFORE else "recurrent_sequences"
    return each_seed(config.seeds, RunSpec.of, procedure, **own)


def specs_of_name(config: Config, name: str) -> tuple[RunSpec, ...]:
    options: dict[str, object] = {"held_out_from_train": 0, "max_words": config.text_words}
    options |= {"n_train": config.text_pairs} if config.text_pairs else {}
    own = {"task": config.text, "options": tuple(options.items()), "width": config.text_width}
    own |= {"steps": config.text_epochs * ceil((config.text_pairs or CAPTIONS) / BATCH)}
    own |= {"snapshots": config.text_snapshots, "learning_rate": config.text_rate, "batch_size": BATCH}
    own |= {"judged": VALIDATION, **NAMED[name]}
    return each_seed(config.seeds, RunSpec.of, "recurrent_sequences", **own)


def comparisons(config: Config, task: str) -> dict[str, list[tuple[Kind, Kind]]]:
    """Pairs of kinds that differ in one thing, by what it is; the first is compared with the second."""
    kinds = [kind for kind in grid(config) if kind.task == task and kind.decoder != BEFORE]
    one = [kind for kind in kinds if kind.directions == 1]
    pairs = {
        "two_directions": [(kind, kind._replace(directions=1)) for kind in kinds if kind.directions == 2],
        "previous_state": [(Kind(task, BEFORE, 1, own), Kind(task, "luong", 1, own)) for own in config.asked],
        "previous_state_of_dot": [(Kind(task, BEFORE, 1, "dot"), Kind(task, "luong", 1, "dot"))],
        "concat_additive": [(k, k._replace(scoring="additive")) for k in kinds if k.scoring == "concat"],
    }
    for decoder in ("luong_feeding", "bahdanau"):
        pairs[decoder] = [(k, k._replace(decoder="luong")) for k in kinds if k.decoder == decoder]
    for scoring in ("scaled_dot", "general", "concat", "additive"):
        pairs[scoring] = [(k, k._replace(scoring="dot")) for k in one if k.scoring == scoring]
    return pairs


QUANTITIES = ("token_accuracy", "exact_match", "updates")


def updates_to(threshold: float, measured: dict) -> float | None:
    return crossing(measured["steps"], measured["token_accuracy"], threshold)


def quality(measured: dict, name: str, threshold: float) -> float:
    """One of :data:`QUANTITIES`; a network that never reaches the threshold counts with all its updates."""
    if name == "updates":
        found = updates_to(threshold, measured)
        return float(measured["steps"][-1]) if found is None else found
    value = measured[name]
    return value[-1] if isinstance(value, list) else value


def summary(points: list[Point], threshold: float) -> dict:
    """Intervals of :data:`QUANTITIES`, and ``reached``: how many networks reach the threshold."""
    reached = [updates_to(threshold, m) is not None for _, m in points]
    found = each_over_seeds(points, lambda m: {name: quality(m, name, threshold) for name in QUANTITIES})
    return found | {"reached": sum(reached)}


def late_rise(measured: dict) -> float:
    """Words right at the last snapshot less those at three quarters of the updates, on straight lines.

    >>> late_rise({"steps": [0, 10, 20], "token_accuracy": [0.0, 0.5, 0.75]})
    0.125
    """
    steps, course = measured["steps"], measured["token_accuracy"]
    return float(course[-1] - np.interp(0.75 * steps[-1], steps, course))


def effect(
    measured: Mapping[object, list[Point]], pairs: Iterable[tuple[object, object]], threshold: float
) -> dict[str, dict]:
    """By how much the first kind of a pair exceeds the second: mean over pairs, intervals over seeds."""
    import pandas as pd

    pairs = [matched(measured.get(first, ()), measured.get(second, ())) for first, second in pairs]

    def difference(of: str) -> dict:
        by_seed = pd.DataFrame(  # a row a pair
            {name["seed"]: quality(a, of, threshold) - quality(b, of, threshold) for name, (a, b) in pair}
            for pair in pairs
        )
        complete = by_seed.count() == by_seed.count().max()
        return interval_of(by_seed.loc[:, complete].mean())

    return {name: difference(name) for name in QUANTITIES}


def _rows(found: Mapping[Kind | str, dict]) -> list[dict]:
    every = [(_columns(g), name, own) for g, several in found.items() for name, own in several.items()]
    return [columns | {"quantity": name} | own for columns, name, own in every if isinstance(own, dict)]


def _curve_rows(groups: Iterable[Kind | str], curves: Points) -> list[dict]:
    courses = {g: each_over_seeds(curves[g], lambda m: along(m, "token_accuracy")) for g in groups}
    return [_columns(g) | row for g, own in courses.items() for row in rows_of(own["token_accuracy"], "step")]


def _columns(group: Kind | str) -> dict[str, str]:
    return {"network": group} if isinstance(group, str) else group.columns


GAINS = {"bahdanau_over_cho": ("bahdanau", "cho"), "luong_over_sutskever": ("luong", "sutskever")}
ASKERS = ("luong", BEFORE, "bahdanau")


def _plan(config: Config) -> tuple[Plan, ...]:
    """Learning curves and costs of all networks; which state the scores come from, what encoder states know
    (of Bahdanau's network, and the same with the other encoder), BLEU of the networks with names."""
    kinds = {kind: specs_of_kind(config, kind) for kind in grid(config)}
    named = {name: specs_of_name(config, name) for name in config.named}
    networks = kinds | named
    one = [kind for kind in kinds if kind.directions == 1 and kind.decoder in ASKERS]
    read = [kind for kind in kinds if (kind.decoder, kind.scoring) == ("bahdanau", "additive")]
    asking = {kind: kinds[kind] for kind in one if kind.scoring in config.asked}
    probed = {kind: kinds[kind] for kind in read if config.longest >= READABLE[kind.task]}
    settings = {"size": config.longest, "samples": config.samples}
    return (
        plan_of(networks, measure_learning_curve),
        plan_of({group: specs[:1] for group, specs in networks.items()}, measure_cost),
        plan_of(asking, measure_asking_state),
        plan_of(probed, measure_context_of_states, **settings),
        plan_of(named, measure_bleu),
    )


measurements = asked(_plan)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    curves, costed, asking, probed, bleu = (answered(plan, store) for plan in _plan(config))
    costs = {group: cost for group, ((_, cost),) in costed.items()}
    reached = {kind: summary(curves[kind], config.threshold) for kind in grid(config) if kind in curves}
    values = nested({tuple(k.columns.values()): own | costs.get(k, {}) for k, own in reached.items()})
    who_asks = summarised(
        {(kind.task, kind.scoring, kind.decoder): points for kind, points in asking.items()},
        lambda m: picked(m, ("present", "previous", "weight_on_gold")),
    )
    bits = {
        k: each_over_seeds(own, lambda m: dict(zip(OFFSETS, m["bits"], strict=True)))
        for k, own in probed.items()
    }
    context: dict = {}
    for kind, at in bits.items():
        own = {"before": at[-1], "own": at[0], "after": at[1]}
        context.setdefault(kind.task, {})[DIRECTIONS[kind.directions]] = own
    for task in config.task if values else ():
        pairs = comparisons(config, task)
        effects = {name: effect(curves, own, config.threshold) for name, own in pairs.items()}
        own = {"effects": effects, "who_asks": who_asks.get(task, {}), "context": context.get(task, {})}
        values.setdefault(task, {}).update(own)
    captions = {
        name: summary(curves[name], config.text_threshold)
        | {"bleu": over_seeds(bleu.get(name, ()), itemgetter("bleu"))}
        | {"late_rise": over_seeds(curves[name], late_rise)}
        for name in config.named
        if name in curves
    }
    values["translation"] = _translation(config, captions, curves, costs, bleu)
    return values, {
        "grid": _rows(reached),
        "costs": [kind.columns | costs[kind] for kind in reached if kind in costs],
        "curves": _curve_rows(reached, curves),
        "context": [kind.columns | row for kind, at in bits.items() for row in rows_of(at, "offset")],
        "translation": _rows(captions),
        "translation_curves": _curve_rows(captions, curves),
    }


def _translation(config: Config, captions: dict, curves: Points, costs: dict, bleu: Points) -> dict:
    """The networks with names on captions: like the grid, with ``bleu``, and ``gains`` by attention."""
    values: dict = {}
    for name, own in captions.items():
        written = [measured for _, measured in bleu.get(name, ())]
        values[name] = own | costs.get(name, {}) | {"bleu_of_each": [one["bleu"] for one in written]}
        values |= picked(written[0], ("signature", "sentences")) if written else {}
    values["gains"] = {
        gain: effect(curves, [pair], config.text_threshold)
        | {"bleu": paired(*(bleu.get(name, ()) for name in pair), itemgetter("bleu"))}
        for gain, pair in GAINS.items()
    }
    return values
