"""Scoring functions, encoders and decoders: what each costs, what it learns, and how fast."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Annotated, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlib.errors import BadInput
from attnlib.models.attention import Scoring
from attnlib.models.corpus import Corpus, evaluation_batches
from attnlib.models.sequence_to_sequence import NAMED, SequenceToSequence
from attnlib.models.vocabulary import EOS, MARKS, PAD, Vocabulary
from attnlib.probes.alignment_error import link_mask
from companion.data.parallel import NAMES, TextOptions, read_translation, tokenise_pairs
from companion.results.config import BaseConfig, OneOf, Positive, setting
from companion.results.frames import Table, joined, keyed, view
from companion.runs import registry
from companion.runs.columns import INTERVAL, Column, Columns, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared.bleu import corpus_bleu
from notebooks.shared.intervals import interval_of
from notebooks.shared.measure import measure_learning_curve, probe_bits
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.summaries import crossing, differences, summarise

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
    products = {
        "encoder": source * _weights(network.encoder),
        "decoder": target * _weights(network.decoder),
        "score": 0,
        "context": 0,
        "output": target * network.readout.weight.numel(),
    }
    if hasattr(network, "start_map"):
        products["decoder"] += config.layers * network.start_map.weight.numel()
    if hasattr(network, "summary_map"):
        products["decoder"] += network.summary_map.weight.numel()
    if config.attends:
        products["score"] = network.score.products(target, source)
        products["context"] = target * source * config.encoder_width
    if hasattr(network, "attentional_map"):
        products["output"] += target * network.attentional_map.weight.numel()
    return products


def _weights(layer: nn.RNNBase) -> int:
    """Entries of its matrices: each is multiplied once a step, in both directions."""
    return sum(p.numel() for name, p in layer.named_parameters() if name.startswith("weight"))


@measure(version=1)
def measure_cost(recording: Recording) -> dict:
    """Parameters, and multiplications for one sample of mean length, end marks included."""
    network, judged = _network(recording), judged_samples(recording.spec.resolved)
    source = round(float(judged.source_lengths.mean())) + 1
    target = round(float(judged.target_lengths.mean())) + 1
    products = sample_products(network, source, target)
    in_all = sum(products.values())
    of_network = sum(parameter.numel() for parameter in network.parameters())
    of_score = 0
    for name, parameter in network.named_parameters():
        if name.startswith("score."):
            of_score += parameter.numel()
    return products | {
        "parameters": of_network,
        "score_parameters": of_score,
        "source": source,
        "target": target,
        "rest": in_all - products["score"],
    }


@measure(version=1)
@torch.no_grad()
def measure_asking_state(recording: Recording) -> dict:
    """Root mean square of the scores minus those that the ``present`` or the ``previous`` decoder state would
    give, over their standard deviation."""
    network, judged = _network(recording), judged_samples(recording.spec.resolved)
    gold = load_task(recording.spec.resolved).gold
    squares = {"present": 0.0, "previous": 0.0}
    scores, weights = [], []
    for batch in evaluation_batches(judged, _BATCH):
        trace = network(batch)
        first = network.encode(batch.source, batch.source_mask)[1].hidden[:, -1:]
        states = {
            "present": trace.decoder_states,
            "previous": torch.cat([first, trace.decoder_states[:, :-1]], dim=1),
        }
        valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
        for name, asking in states.items():
            apart = network.score(asking, trace.encoder_states) - trace.scores  # (batch, target, source)
            squares[name] += float(apart[valid].double().square().sum())
        scores.append(trace.scores[valid].double())
        if gold is not None:
            links = link_mask([gold[i] for i in batch.indices.tolist()], *valid.shape[1:])
            weights.append((trace.attention * links).sum(-1)[links.any(-1)])
    all_scores = torch.cat(scores)
    scale = float(all_scores.std(correction=0)) * math.sqrt(len(all_scores))
    relative = {name: math.sqrt(total) / scale for name, total in squares.items()}
    return relative | {"weight_on_gold": float(torch.cat(weights).mean()) if weights else None}


@measure(version=1)
@torch.no_grad()
def measure_context_of_states(recording: Recording, *, size: int, samples: int) -> dict:
    """Measure the bits of a word that a linear softmax reads off the state of the word in the middle.

    What word frequencies at that place give away is subtracted. Sentences of one length are drawn anew,
    ``samples`` to fit the probe on and half as many to judge it on.
    """
    settings, network = recording.spec.resolved, _network(recording)
    options = dict(settings.task_options)
    options |= dict.fromkeys(SIZES[settings.task], size)
    options |= {"n_train": samples, "n_held_out": max(1, samples // 2), "seed": 1 + settings.seed}
    task = load_task(type(settings)(task=settings.task, options=tuple(options.items())))
    states, words = _middle(network, task.train)
    judged_states, judged_words = _middle(network, task.held_out)
    n_words = len(task.source_vocabulary) - len(MARKS)
    read = probe_bits(states, words, judged_states, judged_words, words=n_words)
    return {
        "offsets": list(OFFSETS),
        "bits": (read - _bits_of_frequency(words, judged_words, n_words)).tolist(),
    }


def _bits_of_frequency(
    words: Int[Tensor, "samples offsets"], judged: Int[Tensor, "judged offsets"], n_words: int
) -> Float[Tensor, " offsets"]:
    """Return the bits that word frequencies at a place give about a word, compared with a uniform guess."""
    counts = torch.stack([torch.bincount(column, minlength=n_words) for column in words.T]) + 1.0
    frequencies = counts.div(counts.sum(1, keepdim=True))  # (offsets, words)
    log_frequencies = frequencies.log2().gather(1, judged.T)  # (offsets, judged)
    return log_frequencies.mean(1) + math.log2(n_words)


def _middle(network: "SequenceToSequence", corpus: Corpus) -> tuple[Tensor, Tensor]:
    """The state of the word in the middle of each sentence, and the words at :data:`OFFSETS` from it."""
    length = int(corpus.source_lengths[0])
    middle = length // 2
    ids = corpus.source_ids.reshape(-1, length).astype(np.int64)
    words = torch.from_numpy(ids) - len(MARKS)
    states = torch.empty(len(corpus), network.config.encoder_width)
    for batch in evaluation_batches(corpus, _BATCH):
        encoded, _ = network.encode(batch.source, batch.source_mask)
        states[batch.indices] = encoded.states[:, middle]
    return states, words[:, [middle + offset for offset in OFFSETS]]


@measure(version=1)
def measure_bleu(recording: Recording) -> dict:
    """BLEU of what the network writes against the words of the references; ``<unk>`` matches nothing."""
    settings = recording.spec.resolved
    task, judged = load_task(settings), judged_samples(settings)
    references = _validation_targets(settings)[: len(judged)]
    if not _are_targets(references, judged, task.target_vocabulary):
        raise BadInput(
            f"the first {len(judged)} held-out samples of {settings.task} are not its validation "
            f"sentences, of which there are {len(references)}; judge no more than these"
        )
    written = []
    for row in recording["written"].numpy():
        is_word = (row != PAD) & (row != EOS)
        written.append(_in_words(row[is_word], task.target_vocabulary))
    bleu, signature = corpus_bleu(written, [" ".join(words) for words in references])
    return {"bleu": bleu, "signature": signature, "sentences": len(references)}


def _validation_targets(settings) -> list[Sequence[str]]:
    """The words of the targets that the task holds out first."""
    given = dict(settings.task_options)
    options = TextOptions(max_length=given.get("max_length"), lowercase=given.get("lowercase", True))
    sides = tuple(zip(*read_translation(settings.task).validation, strict=True))
    return [target for _, target in tokenise_pairs(sides, options)]


def _are_targets(references: list[Sequence[str]], corpus: Corpus, vocabulary: Vocabulary) -> bool:
    """Return True if the references are the targets of a corpus, one by one."""
    if len(references) < len(corpus):
        return False
    for i, words in enumerate(references):
        if not np.array_equal(vocabulary.encode(words), corpus.target(i)):
            return False
    return True


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
    def group(self) -> tuple[str, str, str, str]:
        """The kind in words, as columns of a table have it."""
        return self.task, self.decoder, DIRECTIONS[self.directions], self.scoring


class Config(BaseConfig):
    """Settings: a grid of networks on synthetic tasks, and the four that have names on captions."""

    task: tuple[Annotated[str, OneOf(SIZES)], ...] = setting(
        ("reordering",), "reordering (half of the sentences may be), number_words"
    )
    scoring: tuple[Scoring, ...] = setting(
        ("dot", "scaled_dot", "general", "additive"), "dot, scaled_dot, general, concat, additive"
    )
    directions: tuple[Annotated[int, OneOf(DIRECTIONS)], ...] = setting(
        (1, 2), "of the encoder: 1, 2 or both"
    )
    decoder: tuple[Annotated[str, OneOf(DECODERS)], ...] = setting(
        ("luong", "bahdanau"), "luong, luong_feeding (with input feeding), bahdanau"
    )
    asked: tuple[Scoring, ...] = setting(
        ("dot",), "scores with which Luong's decoder has the previous state as the query too"
    )
    seeds: Positive = setting(3, "networks of each kind")
    shortest: Positive = setting(2, "fewest phrases of a sentence to reorder, or digits of a number")
    longest: int = setting(3, "most of them")
    n_train: Positive = setting(6_000, "sentences to train on")
    judged: Positive = setting(128, "held-out sentences")
    width: Positive = setting(32, "of states and embeddings")
    steps: Positive = setting(45, "updates in training")
    snapshots: Positive = setting(5, "evaluations during training")
    # high, for a short course; narrow networks bear it
    learning_rate: float = setting(3e-2, "of Adam")
    threshold: float = setting(0.6, "word accuracy whose first time tells how fast a network learns")
    samples: Positive = setting(1_000, "sentences that the probe of encoder states is fitted on")
    named: tuple[Annotated[str, OneOf(NAMED)], ...] = setting(
        (), "networks trained on captions: cho, sutskever, bahdanau, luong"
    )
    text: Annotated[str, OneOf(TEXTS)] = setting("multi30k_en_de", "the captions: multi30k_en_de, …")
    text_pairs: int = setting(0, "pairs of captions to train on, 0 for all")
    text_words: Positive = setting(4_000, "size of each vocabulary of captions")
    text_width: Positive = setting(128, "of the networks on captions")
    text_epochs: Positive = setting(5, "passes over the captions")
    text_snapshots: Positive = setting(20, "evaluations of them during training")
    text_rate: float = setting(3e-3, "of Adam on captions")
    text_threshold: float = setting(0.4, "the same as threshold, on captions")

    def check(self) -> None:
        if not self.shortest <= self.longest:
            raise BadInput(f"sizes from {self.shortest} to {self.longest}; expected shortest ≤ longest")
        if not (grid(self) or self.named):
            raise BadInput("no network is left: dot scores need one direction; use general, or directions=1")


def grid(config: Config) -> tuple[Kind, ...]:
    """``dot`` and ``scaled_dot`` need states of one width; two directions make twice the decoder's."""
    kinds = []
    for task, decoder, directions, scoring in product(
        config.task, config.decoder, config.directions, config.scoring
    ):
        if directions == 1 or scoring not in ("dot", "scaled_dot"):
            kinds.append(Kind(task, decoder, directions, scoring))
    if "luong" in config.decoder and 1 in config.directions:
        scores = [scoring for scoring in config.asked if scoring in config.scoring]
        kinds += [Kind(task, BEFORE, 1, scoring) for task, scoring in product(config.task, scores)]
    return tuple(kinds)


PROFILES = {
    "quick": Config(scoring=("dot", "scaled_dot", "additive"), seeds=2),
    "paper": Config(
        task=("reordering", "number_words"), scoring=("dot", "scaled_dot", "general", "concat", "additive"),
        decoder=("luong", "luong_feeding", "bahdanau"), asked=("dot", "general", "additive"), seeds=6,
        shortest=3, longest=6, n_train=20_000, judged=300, width=64, steps=800, snapshots=40,
        learning_rate=2e-3, threshold=0.9, samples=4_000, named=("cho", "sutskever", "bahdanau", "luong"),
    ),
    "tiny": Config(
        scoring=("dot", "scaled_dot", "general", "concat", "additive"), asked=("dot", "general", "additive"),
        seeds=2, n_train=300, judged=40, width=6, steps=3, snapshots=2, samples=200,
        named=("sutskever", "luong"), text_pairs=60, text_width=8, text_epochs=1, text_snapshots=2,
    ),
}  # fmt: skip


def specs_of_kind(config: Config, kind: Kind) -> tuple[RunSpec, ...]:
    options = dict(zip(SIZES[kind.task], (config.shortest, config.longest), strict=True))
    options |= {"n_train": config.n_train, "n_held_out": config.judged}
    settings = settings_of(config, "width", "steps", "snapshots", "learning_rate", "judged")
    settings["task"] = kind.task
    settings["options"] = tuple(options.items())
    settings["scoring"] = kind.scoring
    settings["bidirectional"] = kind.directions == 2
    settings["batch_size"] = BATCH
    settings |= DECODERS.get(kind.decoder, {})
    procedure = "asked_before" if kind.decoder == BEFORE else "recurrent_sequences"
    return each_seed(config.seeds, RunSpec.of, procedure, **settings)


def specs_of_name(config: Config, name: str) -> tuple[RunSpec, ...]:
    options: dict[str, object] = {"held_out_from_train": 0, "max_words": config.text_words}
    if config.text_pairs:
        options["n_train"] = config.text_pairs
    updates_an_epoch = math.ceil((config.text_pairs or CAPTIONS) / BATCH)
    settings = {
        "task": config.text,
        "options": tuple(options.items()),
        "width": config.text_width,
        "steps": config.text_epochs * updates_an_epoch,
        "snapshots": config.text_snapshots,
        "learning_rate": config.text_rate,
        "batch_size": BATCH,
        "judged": VALIDATION,
    }
    return each_seed(config.seeds, RunSpec.of, "recurrent_sequences", **settings, **NAMED[name])


def comparisons(config: Config, task: str) -> dict[str, list[tuple[Kind, Kind]]]:
    """Return pairs of kinds that differ in one thing, by what it is: the first compared with the second."""
    pairs: dict[str, list[tuple[Kind, Kind]]] = {
        "two_directions": [],
        "previous_state": [_previous_and_present(task, scoring) for scoring in config.asked],
        "previous_state_of_dot": [_previous_and_present(task, "dot")],
        "concat_additive": [],
    }
    for name in ("luong_feeding", "bahdanau", "scaled_dot", "general", "concat", "additive"):
        pairs[name] = []
    for kind in grid(config):
        if kind.task != task or kind.decoder == BEFORE:
            continue
        if kind.directions == 2:
            pairs["two_directions"].append((kind, kind._replace(directions=1)))
        if kind.scoring == "concat":
            pairs["concat_additive"].append((kind, kind._replace(scoring="additive")))
        if kind.decoder != "luong":
            pairs[kind.decoder].append((kind, kind._replace(decoder="luong")))
        if kind.directions == 1 and kind.scoring != "dot":
            pairs[kind.scoring].append((kind, kind._replace(scoring="dot")))
    return pairs


def _previous_and_present(task: str, scoring: str) -> tuple[Kind, Kind]:
    return Kind(task, BEFORE, 1, scoring), Kind(task, "luong", 1, scoring)


def updates_to(threshold: float, measured: dict) -> float | None:
    return crossing(measured["steps"], measured["token_accuracy"], threshold)


def late_rise(measured: dict) -> float:
    """Words right at the last snapshot minus those at three quarters of the updates, on straight lines.

    >>> late_rise({"steps": [0, 10, 20], "token_accuracy": [0.0, 0.5, 0.75]})
    0.125
    """
    steps, course = measured["steps"], measured["token_accuracy"]
    return float(course[-1] - np.interp(0.75 * steps[-1], steps, course))


GAINS = {"bahdanau_over_cho": ("bahdanau", "cho"), "luong_over_sutskever": ("luong", "sutskever")}
ASKERS = ("luong", BEFORE, "bahdanau")


class Asked(NamedTuple):
    """What is measured.

    Attributes:
        curves: learning curves of the grid.
        caption_curves: learning curves on captions.
        cost: of a network of each kind in the grid.
        caption_cost: of a network of each kind on captions.
        asking: which state the scores come from.
        probed: what encoder states know, of Bahdanau's network and the same with the other encoder.
        bleu: on captions.
    """

    curves: Plan
    caption_curves: Plan
    cost: Plan
    caption_cost: Plan
    asking: Plan
    probed: Plan
    bleu: Plan


def _plan(config: Config) -> Asked:
    networks, asking, probed = {}, {}, {}
    for kind in grid(config):
        specs = specs_of_kind(config, kind)
        networks[kind.group] = specs
        if kind.directions == 1 and kind.decoder in ASKERS and kind.scoring in config.asked:
            asking[kind.group] = specs
        is_bahdanau = kind.decoder == "bahdanau" and kind.scoring == "additive"
        if is_bahdanau and config.longest >= READABLE[kind.task]:
            probed[kind.group] = specs
    captions = {(name,): specs_of_name(config, name) for name in config.named}
    first_of_grid = {group: specs[:1] for group, specs in networks.items()}
    first_on_captions = {group: specs[:1] for group, specs in captions.items()}
    return Asked(
        curves=plan_of(networks, measure_learning_curve),
        caption_curves=plan_of(captions, measure_learning_curve),
        cost=plan_of(first_of_grid, measure_cost),
        caption_cost=plan_of(first_on_captions, measure_cost),
        asking=plan_of(asking, measure_asking_state),
        probed=plan_of(probed, measure_context_of_states, size=config.longest, samples=config.samples),
        bleu=plan_of(captions, measure_bleu),
    )


measurements = asked(_plan)


KIND = {
    "task": Column("synthetic task"),
    "decoder": Column("decoder; luong_before: Luong's, but the state of the step before is the query"),
    "directions": Column("directions in which the encoder reads: one, two"),
    "scoring": Column("scoring function of the attention"),
}
NETWORK = {"network": Column("network on captions: cho, sutskever, bahdanau, luong")}
QUALITY = {
    "token_accuracy": share("word accuracy, given the preceding words"),
    "exact_match": share("sentences that the network writes without an error"),
    "updates": Column("until the threshold of word accuracy is reached; all, where it never is", "updates"),
}
REACHED = {"reached": Column("whether the network reaches the threshold of word accuracy")}
NUMBER_REACHED = {"reached": Column("networks that reach the threshold of word accuracy", "networks", low=0)}
COURSE = {"step": Column("updates so far"), "token_accuracy": QUALITY["token_accuracy"]}
COST = {
    "context": Column("multiplications for the contexts of one sample of mean length"),
    "encoder": Column("multiplications in the encoder"),
    "decoder": Column("multiplications in the recurrence of the decoder"),
    "output": Column("multiplications for the logits"),
    "parameters": Column("weights of the network"),
    "rest": Column("all multiplications but those of the scores"),
    "score": Column("multiplications for the scores"),
    "score_parameters": Column("weights of the scoring function"),
    "source": Column("words of the source, with its end token", "words"),
    "target": Column("words of the target, with its end token", "words"),
}
COSTLY_KIND = {  # ``decoder`` is what its recurrence costs
    "task": KIND["task"],
    "network": KIND["decoder"],
    "directions": KIND["directions"],
    "scoring": KIND["scoring"],
}
QUERIES = {
    "present": Column("scores minus those of the present decoder state, over the scores' deviation"),
    "previous": Column("the same of the state of the step before"),
    "weight_on_gold": share("attention on source words that the next word translates"),
}
OFFSET = {
    "offset": Column("position of the word, counted from the state's own", "words"),
    "bits": Column("information on the word that a linear probe reads off the state", "bits"),
}
NEIGHBOURS = {-1: "before", 0: "own", 1: "after"}  # by offset, as keys have them
TRANSLATION = {
    "bleu": Column("BLEU of what the network writes", "points"),
    "late_rise": Column("word accuracy at the end, minus that at three quarters of the updates"),
}
SCORED = {
    "signature": Column("signature of the BLEU, as sacreBLEU gives it"),
    "sentences": Column("sentences that it is of", "sentences", low=0),
}
CAPTION_QUALITY = (*QUALITY, "bleu")
EFFECT = {"effect": Column("in what two kinds of network differ; the first minus the second")}
GAIN = {"gain": Column("network with attention, over one without")}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """``effects``: what the first kind of a pair has more than the second, in the mean over pairs that differ
    in the same thing. ``gains``: the same of networks on captions, with attention and without."""
    curves, caption_curves, cost, caption_cost, asking, probed, bleu = _plan(config)
    a_snapshot, a_kind = "a snapshot of a network", "a kind of network"
    quality = partial(_quality, threshold=config.threshold)
    networks = plan_frame(curves, store, KIND, records=quality, columns=QUALITY | REACHED)
    courses = plan_frame(curves, store, KIND, records=_course, columns=COURSE, row=a_snapshot)
    costs = plan_frame(cost, store, COSTLY_KIND, columns=COST, row=a_kind)
    queries = plan_frame(asking, store, KIND, columns=QUERIES)
    words_read = plan_frame(probed, store, KIND, records=_by_offset, columns=OFFSET, row="a word and a state")

    captioned = {group: (*caption_curves[group], *bleu[group]) for group in caption_curves}
    caption_quality = partial(_caption_quality, threshold=config.text_threshold)
    caption_columns = QUALITY | REACHED | TRANSLATION | SCORED
    captions = plan_frame(captioned, store, NETWORK, records=caption_quality, columns=caption_columns)
    caption_courses = plan_frame(
        caption_curves, store, NETWORK, records=_course, columns=COURSE, row=a_snapshot
    )
    caption_costs = plan_frame(caption_cost, store, NETWORK, columns=COST, row=a_kind)

    contrasts = _contrasts(networks, config)
    gains = _gains(captions)
    by_step = summarise(courses, [*KIND, "step"], ["token_accuracy"])
    captions_by_step = summarise(caption_courses, [*NETWORK, "step"], ["token_accuracy"])
    by_offset = summarise(words_read, [*KIND, "offset"], ["bits"])
    cost_names = [name for name in COST if name != "decoder"]
    return {
        "grid": summarise(networks, list(KIND), QUALITY),
        "costs": costs.select("task", "decoder", "directions", "scoring", *cost_names),
        "curves": by_step.select(*KIND, "step", *INTERVAL),
        "context": by_offset.select(*KIND, "offset", *INTERVAL),
        "translation": summarise(captions, list(NETWORK), QUALITY | TRANSLATION),
        "translation_curves": captions_by_step.select(*NETWORK, "step", *INTERVAL),
        "networks": networks,
        "reached": _number_reached(networks, KIND),
        "costs_by_kind": costs.select(*COSTLY_KIND, *COST),
        "queries": summarise(queries, list(KIND), QUERIES),
        "contrasts": contrasts,
        "effects": summarise(_over_pairs(contrasts), ["task", "effect"], QUALITY),
        "captions": captions,
        "captions_reached": _number_reached(captions, NETWORK),
        "caption_costs": caption_costs.select(*NETWORK, *COST),
        "gains": summarise(gains, ["gain"], CAPTION_QUALITY),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    kind, caption = "{task}.{decoder}.{directions}.{scoring}", "translation.{network}"
    bleu_of_each: dict[str, object] = {}
    for network, bleu in tables["captions"].frame.groupby("network", sort=False)["bleu"]:
        bleu_of_each[f"translation.{network}.bleu_of_each"] = bleu.tolist()
    context: dict[str, object] = {}
    for offset, neighbour in NEIGHBOURS.items():
        at_offset = tables["context"].query("offset == @offset", offset=offset)
        context |= keyed(at_offset, "{task}.context.{directions}." + neighbour)
    return view(
        _nothing(config, tables["networks"]),
        keyed(tables["grid"], kind + ".{quantity}"),
        keyed(tables["reached"], kind + ".{column}", NUMBER_REACHED),
        keyed(tables["costs_by_kind"], "{task}.{network}.{directions}.{scoring}.{column}", COST),
        keyed(tables["queries"], "{task}.who_asks.{scoring}.{decoder}.{quantity}"),
        context,
        keyed(tables["effects"], "{task}.effects.{effect}.{quantity}"),
        keyed(tables["translation"], caption + ".{quantity}"),
        keyed(tables["captions_reached"], caption + ".{column}", NUMBER_REACHED),
        keyed(tables["caption_costs"], caption + ".{column}", COST),
        bleu_of_each,
        keyed(tables["captions"], "translation.{column}", SCORED),
        keyed(tables["gains"], "translation.gains.{gain}.{quantity}"),
    )


def _nothing(config: Config, networks: Table) -> dict[str, object]:
    """Return the keys of which no network is known."""
    unknown: dict[str, object] = {}
    for gain, quantity in product(GAINS, CAPTION_QUALITY):
        unknown[f"translation.gains.{gain}.{quantity}"] = interval_of()
    if not len(networks.frame):
        return unknown
    for task in config.task:
        unknown[f"{task}.who_asks"] = {}
        unknown[f"{task}.context"] = {}
        for effect, quantity in product(comparisons(config, task), QUALITY):
            unknown[f"{task}.effects.{effect}.{quantity}"] = interval_of()
    return unknown


def _quality(curve: dict, *, threshold: float) -> dict:
    """Return the outcome of a training; one that never reaches the threshold counts with all its updates."""
    updates = updates_to(threshold, curve)
    return {
        "token_accuracy": curve["token_accuracy"][-1],
        "exact_match": curve["exact_match"],
        "updates": float(curve["steps"][-1]) if updates is None else updates,
        "reached": updates is not None,
    }


def _caption_quality(curve: dict, bleu: dict, *, threshold: float) -> dict:
    return _quality(curve, threshold=threshold) | {"late_rise": late_rise(curve)} | bleu


def _course(curve: dict) -> list[dict]:
    course = zip(curve["steps"], curve["token_accuracy"], strict=True)
    return [{"step": step, "token_accuracy": accuracy} for step, accuracy in course]


def _by_offset(probed: dict) -> list[dict]:
    return [{"offset": offset, "bits": bits} for offset, bits in zip(OFFSETS, probed["bits"], strict=True)]


def _number_reached(networks: Table, by: Columns) -> Table:
    counts = networks.frame.groupby(list(by), sort=False, as_index=False)["reached"].sum()
    return Table(counts, {**by, **NUMBER_REACHED}, "a kind of network")


def _contrasts(networks: Table, config: Config) -> Table:
    """Return differences within each pair of kinds, the first minus the second, by seed."""
    of_group: dict[object, Table] = {}
    for group, rows in networks.frame.groupby(list(KIND), sort=False):
        of_group[group] = networks.with_rows(rows)
    nothing = networks.with_rows(networks.frame.head(0))
    apart = [differences(nothing, nothing, QUALITY).assign(EFFECT, effect="")]
    for task in config.task:
        for effect, pairs in comparisons(config, task).items():
            for first, second in pairs:
                if first.group in of_group and second.group in of_group:
                    pair = differences(of_group[first.group], of_group[second.group], QUALITY)
                    apart.append(pair.assign(EFFECT, effect=effect))
    contrasts = joined(apart).select(*EFFECT, *KIND, "seed", *QUALITY)
    return replace(contrasts, row="a pair of networks that share a seed")


def _over_pairs(contrasts: Table) -> Table:
    """Return means over the pairs of an effect, by seed, of the seeds that have most pairs."""
    effect = ["task", "effect"]
    pairs_of_seed = contrasts.frame.groupby([*effect, "seed"], sort=False, as_index=False)
    means = pairs_of_seed.agg(pairs=("scoring", "size"), **{name: (name, "mean") for name in QUALITY})
    complete = means["pairs"] == means.groupby(effect)["pairs"].transform("max")
    return contrasts.with_rows(means[complete].drop(columns="pairs"))


def _gains(captions: Table) -> Table:
    apart = []
    for gain, (with_attention, without) in GAINS.items():
        first = captions.query("network == @network", network=with_attention)
        second = captions.query("network == @network", network=without)
        apart.append(differences(first, second, CAPTION_QUALITY).assign(GAIN, gain=gain))
    return joined(apart)
