"""Without attention: where a network of one vector keeps the words, when it reads them out, how many fit.

Words are kept in the unrolled input components of encoder and decoder states. Sentences of one length are
needed: position t must mean the same in all of them.
"""

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
from companion.results.config import BaseConfig, Field, Fraction, Positive, Scale
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from notebooks.shared.intervals import Point, each_over_seeds, paired, spearman
from notebooks.shared.plan import Plan, answered, asked, plan_of
from notebooks.shared.suite import each_planned
from notebooks.shared.summaries import rows_of, side_by_side
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
    found = []
    for batch in evaluation_batches(corpus, BATCH):
        encoder_states, last = model.encode(batch.source, batch.source_mask)
        read = batch.target_input.roll(1, dims=0) if crossed else batch.target_input
        states = model.decode(read, last)
        found.append((batch.source[:, :-1] - FIRST_WORD, read[:, 1:] - FIRST_WORD, encoder_states, states))
    return Read(*(torch.cat(parts) for parts in zip(*found, strict=True)))


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
        own, own_held_out = read_corpus(model, training), read_corpus(model, task.held_out)
        crossed = read_corpus(model, training, crossed=True)
        crossed_held_out = read_corpus(model, task.held_out, crossed=True)
        encoder = np.zeros((length + 1, length))
        for step in range(length + 1):
            shares = fitted_encoder(own, n_words, step).variance_explained(unique=False).of_position
            encoder[step, : len(shares)] = shares
        last = fitted_encoder(own, n_words, length)
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
                "held_out": last.r_squared(own_held_out.source, own_held_out.encoder_states[:, length]),
            },
            "decoder": _decoder(own, own_held_out, n_words, with_read=False),
            "crossed": _decoder(crossed, crossed_held_out, n_words, with_read=True),
        }


def words_of(task: Task) -> int:
    return max(len(task.source_vocabulary), len(task.target_vocabulary)) - FIRST_WORD


def _accuracy(model: EncoderDecoder, corpus: Corpus) -> list[float]:
    right = [model(b).logits.argmax(-1) == b.target_output for b in evaluation_batches(corpus, BATCH)]
    return torch.cat(right).double().mean(0).tolist()


def _decoder(read: Read, held_out: Read, n_words: int, *, with_read: bool) -> dict:
    length = read.source.shape[1]
    source, targets, cancel = np.zeros((length + 1, length)), np.zeros((length + 1, length)), []
    r_squared = []
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
    found = {"source": source.round(4).tolist(), "held_out": r_squared}
    return found | ({"read": targets.round(4).tolist(), "cancel": cancel} if with_read else {})


# One word's contribution to the last encoder state is exchanged, h^E_T  ←  h^E_T − chi_{T,t}(w_t) +
# chi_{T,t}(w'), and the decoder runs on from there. ``component``: over the same words as before;
# ``read_too``: but at step t + 1 it reads the word that goes with w'; ``real``: over the same words, from the
# last state of the sentence that really has w' at position t.
WAYS = ("component", "read_too", "real")
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
    found: dict = {"length": length, "samples": len(changed)}
    for way, total in sums.items():
        means = (total / len(changed)).numpy().round(DIGITS)
        found[way] = {name: means[i].tolist() for i, name in enumerate(EFFECTS)}
    return found


def with_word(batch: Batch, position: int, words: Words) -> Batch:
    source, read = batch.source.clone(), batch.target_input.clone()
    source[:, position] = words + FIRST_WORD
    read[:, position + 1] = words + FIRST_WORD
    return replace(batch, source=source, target_input=read)


def _logits(model: EncoderDecoder, batch: Batch, encoder_states: Tensor, start: Tensor) -> Logits:
    decoder_states = model.decode(batch.target_input, start)
    return model.attend(batch, encoder_states, decoder_states).logits


def _effects(before: Logits, after: Logits, words: Words, others: Words) -> Float[Tensor, "3 steps"]:
    def margin(logits: Tensor) -> Tensor:
        own, other = (
            logits.take_along_dim((ids + FIRST_WORD)[:, None, None], dim=2)[:, :, 0]
            for ids in (words, others)
        )
        return own - other

    variation = 0.5 * (before.softmax(-1) - after.softmax(-1)).abs().sum(-1)
    wanted = (others + FIRST_WORD)[:, None]
    flip = (after.argmax(-1) == wanted) & (before.argmax(-1) != wanted)
    effects = torch.stack([margin(before) - margin(after), variation, flip.to(variation.dtype)])
    return effects.double().sum(1)


class Config(BaseConfig):
    """Settings; a model is an architecture × length × training × seed, on the one-to-one task."""

    scale: Scale = "quick"  #: set by the profile: training settings that are not named here
    #: words of a sentence, one number or several; every model has sentences of one length
    length: tuple[Annotated[int, Field(ge=2)], ...] = (4, 8)
    #: of the vocabulary. A sentence holds length × log2(words) bits; the task's own three words would make
    #: most short sentences the same.
    words: Annotated[int, Field(ge=2)] = 8
    #: the recurrence: gru, vanilla, ugrnn. The vector that an LSTM hands over is two.
    cell: Literal["gru", "vanilla", "ugrnn"] = "gru"
    seeds: Positive | None = None  #: models of each kind; as many as the plan has when None
    width: Positive | None = None  #: of states and embeddings
    steps: Positive | None = None  #: updates of every model
    #: part of the updates that AED and a second VED are trained with. Is it room that VED lacks, or
    #: training?.
    less: Fraction = 0.5
    fit_samples: Positive = 2_000  #: training samples that the components are fitted on, at most


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


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """``gained``: accuracy of VED beyond that of the same networks after a part, ``less``, of the updates."""
    values: dict = {}
    tables: dict[str, list[dict]] = {name: [] for name in ("accuracy", "memory", "decoder", "readout")}
    memories, swaps = (answered(plan, store) for plan in _plans(config))
    for (label, length), memory in memories.items():
        if not (swap := swaps.get((label, length))):
            continue
        summary = each_over_seeds(memory, _memory) | each_over_seeds(swap, _swap) | {"seeds": len(memory)}
        values.setdefault(label, {})[f"length_{length}"] = summary
        name = {"kind": label, "length": length, "seeds": len(memory)}
        for table, found in each_over_seeds(memory, _by_place).items():
            tables[table] += [name | row for row in rows_of(found, "position")]
        shares = {of: _mean(memory, "crossed", of) for of in ("source", "read")}
        shares |= {"own": _mean(memory, "decoder", "source")}
        tables["decoder"] += [name | row for row in side_by_side(shares, "step", "position")]
        for way in WAYS:
            effects = {effect: _mean(swap, way, effect) for effect in EFFECTS}
            rows = side_by_side(effects, "position", "step")
            tables["readout"] += [name | {"way": way} | row for row in rows]
    for length in config.length:
        both = [memories.get((kind, length)) for kind in ("VED", "VED_less")]
        if all(both):
            gained = paired(*both, lambda m: _memory(m)["token_accuracy"])
            values["VED"][f"length_{length}"]["gained"] = gained
    for found in values.values():
        measured = [length for length in sorted(config.length) if f"length_{length}" in found]
        found |= {"shortest": found[f"length_{measured[0]}"], "longest": found[f"length_{measured[-1]}"]}
    return values, tables


def _by_place(m: dict) -> dict:
    return {"accuracy": dict(enumerate(m["accuracy"])), "memory": dict(enumerate(m["last"]["share"]))}


def _memory(m: dict) -> dict:
    share = m["last"]["share"]
    return {
        "token_accuracy": float(np.mean(m["accuracy"][:-1])),  # without the end mark, which is always last
        "exact_match": m["quality"]["exact_match"],
        "memory": {
            "fitted": m["last"]["fitted"],
            "held_out": m["last"]["held_out"],
            "first": share[0],
            "last": share[-1],
            "order": float(spearman(list(range(len(share))), share)),
        },
        "cancel": float(np.mean(m["crossed"]["cancel"])),
    }


def _swap(m: dict) -> dict:
    found = {}
    for way in WAYS:
        moved = np.asarray(m[way]["variation"])
        elsewhere = (moved.sum() - moved.diagonal().sum()) / (moved.size - len(moved))
        on_time = np.asarray(m[way]["flip"])[:, :-1].diagonal().mean()
        found[way] = {"on_time": float(on_time), "elsewhere": float(elsewhere), "in_turn": _in_turn(moved)}
    return found


def _in_turn(moved: Float[np.ndarray, "position step"]) -> float:
    """Nothing is read anywhere where no effect reaches a hundredth: then no position counts."""
    own = (moved.argmax(1) == np.arange(len(moved))) & (moved.max(1) > 0.01)
    return float(own.mean())


def _mean(points: list[Point], part: str, key: str) -> list[list[float]]:
    return np.mean([m[part][key] for _, m in points], 0).tolist()
