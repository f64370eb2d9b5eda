"""Without attention: where a network of one vector keeps the words, when it reads them out, how many fit.

Words are kept in the unrolled input components of encoder and decoder states. Sentences of one length are
needed: position t must mean the same in all of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.models.corpus import Batch, Corpus, evaluation_batches
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.vocabulary import MARKS
from companion.data.task import Task
from companion.results.config import BaseConfig, Field, Fraction, Positive, Scale, setting
from companion.results.frames import Table, keyed, view
from companion.runs.columns import INTERVAL, Column, share
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from notebooks.shared.intervals import spearman
from notebooks.shared.plan import Plan, asked, plan_frame, plan_of
from notebooks.shared.suite import each_planned
from notebooks.shared.summaries import differences, summarise
from notebooks.shared.unrolled import UnrolledComponents

FIRST_WORD = len(MARKS)
BATCH = 256


@dataclass(frozen=True, eq=False)
class Read:
    source: Int[Tensor, "batch length"]
    target: Int[Tensor, "batch length"]
    encoder_states: Float[Tensor, "batch steps width"]
    decoder_states: Float[Tensor, "batch steps width"]


def one_length(corpus: Corpus) -> int:
    lengths = set(corpus.source_lengths.tolist()) | set(corpus.target_lengths.tolist())
    if len(lengths) != 1:
        raise BadInput(f"sentences of {len(lengths)} lengths; give the task equal min_length and max_length")
    return lengths.pop()


def read_corpus(model: EncoderDecoder, corpus: Corpus, *, crossed: bool = False) -> Read:
    batches = []
    for batch in evaluation_batches(corpus, BATCH):
        encoder_states, last = model.encode(batch.source, batch.source_mask)
        read = batch.target_input.roll(1, dims=0) if crossed else batch.target_input
        states = model.decode(read, last)
        batches.append((batch.source[:, :-1] - FIRST_WORD, read[:, 1:] - FIRST_WORD, encoder_states, states))
    return Read(*(torch.cat(parts) for parts in zip(*batches, strict=True)))


def fitted_encoder(read: Read, n_words: int, step: int) -> UnrolledComponents:
    """Components of h^E at ``step`` over the words read by then."""
    words = read.source[:, : step + 1]
    unrolled = UnrolledComponents(n_words, words.shape[1], read.encoder_states.shape[2])
    return unrolled.update(words, read.encoder_states[:, step])


def decoder_words(read: Read, step: int) -> Int[Tensor, "batch read"]:
    return torch.cat([read.source, read.target[:, :step]], dim=1)


@measure(version=1)
def measure_memory(trained: TrainedModel, fit_samples: int) -> dict:
    """``encoder``: T × t; of the ``last`` state shares by t and R² of the sum; ``decoder``: steps × t;
    ``crossed``: the same where the words read are those of another sentence, with ``cancel``: the cosine
    between the components of source word t and of target word t just read (−1 where the one adds what the
    other takes away).
    """
    task, model = trained.task, trained.model
    n_words, length = words_of(task), one_length(task.train)
    one_length(task.held_out)
    training = task.train.subset(np.arange(min(fit_samples, len(task.train))))
    with torch.inference_mode():
        right, right_held_out = read_corpus(model, training), read_corpus(model, task.held_out)
        crossed = read_corpus(model, training, crossed=True)
        crossed_held_out = read_corpus(model, task.held_out, crossed=True)
        encoder = np.zeros((length + 1, length))
        for step in range(length + 1):
            shares = fitted_encoder(right, n_words, step).variance_explained(unique=False).of_position
            encoder[step, : len(shares)] = shares
        last = fitted_encoder(right, n_words, length)
        variance = last.variance_explained()
        return {
            "length": length,
            "words": n_words,
            "quality": trained.history["held_out"],
            "accuracy": _accuracy(model, task.held_out),
            "encoder": encoder.round(4).tolist(),
            "last": {
                "share": variance.of_position,
                "unique": variance.unique,
                "fitted": variance.total,
                "held_out": last.r_squared(right_held_out.source, right_held_out.encoder_states[:, length]),
            },
            "decoder": _decoder(right, right_held_out, n_words, with_read=False),
            "crossed": _decoder(crossed, crossed_held_out, n_words, with_read=True),
        }


def words_of(task: Task) -> int:
    return max(len(task.source_vocabulary), len(task.target_vocabulary)) - FIRST_WORD


def _accuracy(model: EncoderDecoder, corpus: Corpus) -> list[float]:
    """Share of sentences in which the word is right, by step."""
    right = []
    for batch in evaluation_batches(corpus, BATCH):
        right.append(model(batch).logits.argmax(-1) == batch.target_output)
    return torch.cat(right).double().mean(0).tolist()


def _decoder(read: Read, held_out: Read, n_words: int, *, with_read: bool) -> dict:
    length = read.source.shape[1]
    source, targets = np.zeros((length + 1, length)), np.zeros((length + 1, length))
    r_squared, cancel = [], []
    for step in range(length + 1):
        words, others = (decoder_words(side, step) if with_read else side.source for side in (read, held_out))
        unrolled = UnrolledComponents(n_words, words.shape[1], read.decoder_states.shape[2])
        unrolled.update(words, read.decoder_states[:, step])
        shares = unrolled.variance_explained(unique=False).of_position
        source[step], targets[step, : len(shares) - length] = shares[:length], shares[length:]
        if with_read and step:  # target word step - 1 has just been read
            kept, just_read = unrolled.input[step - 1], unrolled.input[length + step - 1]
            cancel.append(float(torch.cosine_similarity(kept.flatten(), just_read.flatten(), dim=0)))
        r_squared.append(unrolled.r_squared(others, held_out.decoder_states[:, step]))
    of_source = {"source": source.round(4).tolist(), "held_out": r_squared}
    of_target = {"read": targets.round(4).tolist(), "cancel": cancel} if with_read else {}
    return of_source | of_target


# One word's contribution to the last encoder state is exchanged, h^E_T  ←  h^E_T − chi_{T,t}(w_t) +
# chi_{T,t}(w'), and the decoder runs on from there. ``component``: over the same words as before;
# ``read_too``: but at step t + 1 it reads the word that goes with w'; ``real``: over the same words, from the
# last state of the sentence that really has w' at position t.
WAYS = ("component", "read_too", "real")
LEAST_EFFECT = 0.01  # of an exchange on a prediction: below it nothing is read
EFFECTS = ("margin", "variation", "flip")
SAMPLES = 512  # held-out sentences that are changed
DIGITS = 3
Logits, Words = Float[Tensor, "batch steps words"], Int[Tensor, " batch"]


@measure(version=1)
def measure_swap(trained: TrainedModel, fit_samples: int) -> dict:
    """The attention of AED still sees the encoder states as they were. For each of :data:`WAYS`, by (t, s),
    means over sentences: ``margin`` (fall of logit(w_t) − logit(w')), ``variation`` (total variation between
    predictions), ``flip`` (share of sentences where w' is now the likeliest word and was not).
    """
    task, model = trained.task, trained.model
    n_words, length = words_of(task), one_length(task.train)
    training = task.train.subset(np.arange(min(fit_samples, len(task.train))))
    changed = task.held_out.subset(np.arange(min(SAMPLES, len(task.held_out))))
    draw = torch.Generator().manual_seed(0)
    sums = {way: torch.zeros(len(EFFECTS), length, length + 1, dtype=torch.float64) for way in WAYS}
    with torch.inference_mode():
        unrolled = fitted_encoder(read_corpus(model, training), n_words, length)
        components = unrolled.input.float()  # (length, words, width)
        for batch in evaluation_batches(changed, BATCH):
            words = batch.source[:, :-1] - FIRST_WORD
            # another word, each of the others equally likely
            others = (words + torch.randint(1, n_words, words.shape, generator=draw)) % n_words
            encoder_states, last = model.encode(batch.source, batch.source_mask)
            before = _logits(model, batch, encoder_states, last)
            for t in range(length):
                moved = last + components[t, others[:, t]] - components[t, words[:, t]]
                real = with_word(batch, t, others[:, t])
                _, real_last = model.encode(real.source, real.source_mask)
                runs = {"component": (batch, moved), "read_too": (real, moved), "real": (batch, real_last)}
                for way, (read, start) in runs.items():
                    after = _logits(model, read, encoder_states, start)
                    sums[way][:, t] += _effects(before, after, words[:, t], others[:, t])
    means_by_way: dict = {}
    for way, total in sums.items():
        means = (total / len(changed)).numpy().round(DIGITS)  # (effects, positions, steps)
        means_by_way[way] = {effect: mean.tolist() for effect, mean in zip(EFFECTS, means, strict=True)}
    return {"length": length, "samples": len(changed)} | means_by_way


def with_word(batch: Batch, position: int, words: Words) -> Batch:
    source, read = batch.source.clone(), batch.target_input.clone()
    source[:, position] = words + FIRST_WORD
    read[:, position + 1] = words + FIRST_WORD
    return replace(batch, source=source, target_input=read)


def _logits(model: EncoderDecoder, batch: Batch, encoder_states: Tensor, start: Tensor) -> Logits:
    decoder_states = model.decode(batch.target_input, start)
    return model.attend(batch, encoder_states, decoder_states).logits


def _effects(before: Logits, after: Logits, words: Words, others: Words) -> Float[Tensor, "3 steps"]:
    other = (others + FIRST_WORD)[:, None]
    margin = _margin(before, words, others) - _margin(after, words, others)
    variation = 0.5 * (before.softmax(-1) - after.softmax(-1)).abs().sum(-1)
    flip = (after.argmax(-1) == other) & (before.argmax(-1) != other)
    effects = torch.stack([margin, variation, flip.to(variation.dtype)])
    return effects.double().sum(1)


def _margin(logits: Logits, words: Words, others: Words) -> Float[Tensor, "batch steps"]:
    """The logit of the one word minus that of the other."""
    return _logit_of(logits, words) - _logit_of(logits, others)


def _logit_of(logits: Logits, words: Words) -> Float[Tensor, "batch steps"]:
    ids = (words + FIRST_WORD)[:, None, None]
    return logits.take_along_dim(ids, dim=2)[:, :, 0]


class Config(BaseConfig):
    """Settings; a model is an architecture × length × training × seed, on the one-to-one task."""

    scale: Scale = setting("quick", "set by the profile: training settings that are not named here")
    length: tuple[Annotated[int, Field(ge=2)], ...] = setting(
        (4, 8), "words of a sentence, one number or several; every model has sentences of one length"
    )
    words: Annotated[int, Field(ge=2)] = setting(
        8,
        "of the vocabulary. A sentence holds length × log2(words) bits; the task's own three "
        "words would make most short sentences the same",
    )
    cell: Literal["gru", "vanilla", "ugrnn"] = setting(
        "gru", "the recurrence: gru, vanilla, ugrnn. The vector that an LSTM hands over is two"
    )
    seeds: Positive | None = setting(None, "models of each kind; as many as the plan has when None")
    width: Positive | None = setting(None, "of states and embeddings")
    steps: Positive | None = setting(None, "updates of every model")
    less: Fraction = setting(
        0.5,
        "part of the updates that AED and a second VED are trained with. Is it room that VED "
        "lacks, or training?",
    )
    fit_samples: Positive = setting(2_000, "training samples that the components are fitted on, at most")


# Trained four times as long as planned: what is asked is what fits, not what is learned first.
PROFILES = {
    "quick": Config(seeds=3, steps=170),
    "paper": Config(scale="paper", length=(5, 10, 15, 20), seeds=5, steps=4_000, fit_samples=10_000),
    "tiny": Config(length=(3, 4), words=4, seeds=1, width=8, steps=3, fit_samples=100),
}


def _plans(config: Config) -> tuple[Plan, ...]:
    """Memory and readout by (label, length); models of a ``less`` label have a part of the updates."""
    kinds = {"VED": ("VED", 1.0), "VED_less": ("VED", config.less), "AED": ("AED", config.less)}
    groups: dict[tuple[str, int], list[ModelSpec]] = {}
    for (label, (architecture, part)), length in product(kinds.items(), config.length):
        options = {"n_words": config.words, "min_length": length, "max_length": length}
        # few short sentences exist; a third at most is held out
        options["n_held_out"] = min(1_200, max(1, config.words**length // 3))
        planned = each_planned(config, "one_to_one", architecture, cell=config.cell, task_options=options)
        groups[label, length] = [replace(spec, steps=max(1, round(spec.steps * part))) for spec in planned]
    measures = (measure_memory, measure_swap)
    return tuple(plan_of(groups, measure, fit_samples=config.fit_samples) for measure in measures)


measurements = asked(_plans)


GROUP = {
    "kind": Column(
        "network, and for how long it is trained",
        categories={
            "VED": "recurrent without attention",
            "VED_less": "the same after a part of the updates",
            "AED": "recurrent with attention, after that part of the updates",
        },
    ),
    "length": Column("words of each sentence", "words"),
}
MEMORY = {
    "token_accuracy": share("word accuracy, without the end token"),
    "exact_match": share("sentences of which every next word is correct"),
    "memory.fitted": Column("R² of the last encoder state by the words read, on the fitted samples", high=1),
    "memory.held_out": Column("the same on held-out sentences", high=1),
    "memory.first": Column("share of the last state's variance that is of the first word"),
    "memory.last": Column("share of the last state's variance that is of the last word"),
    "memory.order": Column("rank correlation of these shares with positions", low=-1, high=1),
    "cancel": Column("cosine of what a state has of a source word and of the target word just read"),
}
SWAPS = {
    "on_time": share("sentences where the exchanged word becomes the likeliest at its own step"),
    "elsewhere": share("total variation between predictions at all other steps"),
    "in_turn": share("positions whose exchange changes predictions most at their own step"),
}
SWAPPED = {
    "component": "its part of the last state exchanged, the same words read",
    "read_too": "the same, but the decoder reads the other word as well",
    "real": "the last state of the sentence that really has the other word",
}
NUMBERS = MEMORY | {
    f"{way}.{name}": replace(column, meaning=f"{column.meaning}; {SWAPPED[way]}")
    for way, (name, column) in product(WAYS, SWAPS.items())
}
SEEDS = {"seeds": Column("networks", low=0)}
POSITION = {"position": Column("position in the source, from 0")}
STEP = {"step": Column("step of the decoder, from 0")}
ACCURACY = POSITION | {"accuracy": share("word accuracy at this position of the target")}
SHARE = POSITION | {"share": Column("share of the last state's variance that is of the word here")}
DECODER_SHARES = {
    "source": Column("share of a state's variance that is of a source word; another sentence is read"),
    "read": Column("the same of a word of the sentence that is read"),
    "own": Column("share that is of a source word where the correct words are read"),
}
READOUT = {
    "margin": Column("fall of the word's logit over the other's where the one is exchanged for the other"),
    "variation": Column("total variation between predictions before and after"),
    "flip": Column("share of sentences where the other word becomes the likeliest"),
}
WAY = {"way": Column("what is exchanged", categories=SWAPPED)}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """``gained``: accuracy of VED beyond that of the same networks after a part, ``less``, of the updates."""
    memories, swaps = _plans(config)
    plan = {group: (*memories[group], *swaps[group]) for group in memories}
    networks = plan_frame(plan, store, GROUP, records=_numbers, columns=NUMBERS)
    accuracy = plan_frame(
        plan, store, GROUP, records=_accuracy_by_place, columns=ACCURACY, row="a position of a network"
    )
    shares = plan_frame(
        plan, store, GROUP, records=_share_by_place, columns=SHARE, row="a position of a network"
    )
    decoder = plan_frame(
        plan, store, GROUP,
        records=_decoder_shares,
        columns=STEP | POSITION | DECODER_SHARES,
        row="a word and a step, in the mean over networks",
    )  # fmt: skip
    readout = plan_frame(
        plan, store, GROUP,
        records=_readout,
        columns=WAY | POSITION | STEP | READOUT,
        row="a word and a step, in the mean over networks",
    )  # fmt: skip
    longer = networks.query("kind == 'VED'")
    shorter = networks.query("kind == 'VED_less'")
    gained = differences(longer, shorter, ["token_accuracy"], on=["length", "seed"])
    return {
        "accuracy": _by_position(accuracy, "accuracy"),
        "memory": _by_position(shares, "share"),
        "decoder": _means(decoder, [*GROUP, *STEP, *POSITION], DECODER_SHARES),
        "readout": _means(readout, [*GROUP, *WAY, *POSITION, *STEP], READOUT),
        "networks": networks,
        "estimates": summarise(networks, list(GROUP), NUMBERS),
        "seeds": _means(networks, list(GROUP), ()),
        "gained": summarise(gained, list(GROUP), ["token_accuracy"]),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    of_groups = {name: tables[name] for name in ("estimates", "seeds", "gained")}
    return view(
        _keyed_groups(of_groups, "{kind}.length_{length}"),
        _keyed_groups(_of_extreme_length(of_groups, "min"), "{kind}.shortest"),
        _keyed_groups(_of_extreme_length(of_groups, "max"), "{kind}.longest"),
    )


def _keyed_groups(tables: dict[str, Table], key: str) -> dict[str, object]:
    keys = keyed(tables["estimates"], key + ".{quantity}")
    keys |= keyed(tables["seeds"], key + ".{column}", SEEDS)
    keys |= keyed(tables["gained"], key + ".gained")
    return keys


def _of_extreme_length(tables: dict[str, Table], extreme: str) -> dict[str, Table]:
    """Return the rows of the shortest (``min``) or longest (``max``) sentences of each kind of network."""
    chosen = {}
    for name, table in tables.items():
        length = table.frame.groupby("kind")["length"].transform(extreme)
        chosen[name] = table.with_rows(table.frame[table.frame["length"] == length])
    return chosen


def _by_position(table: Table, quantity: str) -> Table:
    """Return means over networks at each position, with how many networks there are."""
    estimates = summarise(table, [*GROUP, *POSITION], [quantity])
    counted = estimates.assign(SEEDS, seeds=estimates.frame["n"])
    return counted.select(*GROUP, *SEEDS, *POSITION, *INTERVAL)


def _means(table: Table, by: list[str], quantities: Iterable[str]) -> Table:
    """Return means over networks, and how many networks there are, without intervals."""
    aggregates = {"seeds": ("seed", "size")} | {name: (name, "mean") for name in quantities}
    means = table.frame.groupby(by, sort=False).agg(**aggregates).reset_index()
    kept = [name for name in by if name not in GROUP]
    rows = means[[*GROUP, *SEEDS, *kept, *quantities]]
    return Table(rows, {**table.columns, **SEEDS}, table.row)


def _numbers(memory: dict, swap: dict) -> dict:
    shares = memory["last"]["share"]
    order = spearman(list(range(len(shares))), shares)
    numbers = {
        "token_accuracy": float(np.mean(memory["accuracy"][:-1])),  # the end mark is always right
        "exact_match": memory["quality"]["exact_match"],
        "memory": {
            "fitted": memory["last"]["fitted"],
            "held_out": memory["last"]["held_out"],
            "first": shares[0],
            "last": shares[-1],
            "order": float(order),
        },
        "cancel": float(np.mean(memory["crossed"]["cancel"])),
    }
    for way in WAYS:
        numbers[way] = _timing(swap[way])
    return numbers


def _timing(effects: dict) -> dict[str, float]:
    variation = np.asarray(effects["variation"])  # (positions, steps)
    on_diagonal = variation.diagonal()
    elsewhere = (variation.sum() - on_diagonal.sum()) / (variation.size - len(on_diagonal))
    flipped_on_time = np.asarray(effects["flip"])[:, :-1].diagonal()
    return {
        "on_time": float(flipped_on_time.mean()),
        "elsewhere": float(elsewhere),
        "in_turn": _in_turn(variation),
    }


def _in_turn(variation: Float[np.ndarray, "position step"]) -> float:
    """Nothing is read anywhere where no effect reaches a hundredth: then no position counts."""
    at_its_step = variation.argmax(1) == np.arange(len(variation))  # (positions,)
    is_read = variation.max(1) > LEAST_EFFECT  # (positions,)
    return float((at_its_step & is_read).mean())


def _accuracy_by_place(memory: dict, swap: dict) -> list[dict]:
    accuracies = memory["accuracy"]
    return [{"position": position, "accuracy": accuracy} for position, accuracy in enumerate(accuracies)]


def _share_by_place(memory: dict, swap: dict) -> list[dict]:
    shares = memory["last"]["share"]
    return [{"position": position, "share": share} for position, share in enumerate(shares)]


def _decoder_shares(memory: dict, swap: dict) -> list[dict]:
    crossed = memory["crossed"]
    matrices = {"source": crossed["source"], "read": crossed["read"], "own": memory["decoder"]["source"]}
    return _records_of(matrices, "step", "position")


def _readout(memory: dict, swap: dict) -> Iterator[dict]:
    for way in WAYS:
        for record in _records_of(swap[way], "position", "step"):
            yield {"way": way, **record}


def _records_of(matrices: dict[str, list[list[float]]], row: str, column: str) -> Iterator[dict]:
    """Yield a record for each entry of matrices of one shape, with the entries of all side by side."""
    arrays = {name: np.asarray(matrix) for name, matrix in matrices.items()}
    first, *_ = arrays.values()
    for i, j in np.ndindex(first.shape):
        entries = {name: float(array[i, j]) for name, array in arrays.items()}
        yield {row: i, column: j, **entries}
