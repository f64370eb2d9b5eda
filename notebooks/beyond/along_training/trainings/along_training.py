"""Part II's network with attention (AED), trained on any task by name, its parameters kept along the way.

What a recording holds:

``steps``
    updates made at each snapshot; snapshots are spaced by a constant ratio, since most of what attention
    becomes is decided early.
``look.<parameter>``
    by snapshot, the parameter of :class:`~attnlib.models.encoder_decoder.EncoderDecoder`. Whatever can be
    measured of a network can so be measured of each snapshot, afterwards.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.decomposition import STATE_PARTS, SUBSETS, ShareSums, SubstitutionSums, alignment_terms
from attnlib.decomposition.components import Components
from attnlib.errors import check_at_least, check_known
from attnlib.models.attention import masked_softmax
from attnlib.models.config import ModelConfig
from attnlib.models.corpus import Batch, Corpus, evaluation_batches
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.vocabulary import EOS
from attnlib.probes.agreement import RowMean, agreement, chance_agreement
from attnlib.probes.alignment_error import link_mask, words_only
from attnlib.probes.ibm_model_1 import IBMModel1
from attnlib.probes.lexical_probe import PAIRS_AT_ONCE, log_probability_of_pairs
from attnlib.trace import Trace
from companion.data.task import Task
from companion.runs import store
from companion.runs.encoder_decoder import loss_of
from companion.runs.loop import Report, Schedule, train_network
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from notebooks.shared.pieces import EqualLengthBatches
from notebooks.shared.snapshots import Tensors, save_snapshot, stacked_snapshots

VERSION = 1  # of the training: raised when what it trains changes

Attention = Literal["learned", "uniform"]
_SNAPSHOT = "look."


class UniformEncoderDecoder(EncoderDecoder):
    """The same weight on every valid source position, as for β^uf of Snell et al. 2021, section 4. A network
    and its uniform twin draw the same parameters at the start."""

    def attend(self, batch: Batch, encoder_states: Tensor, decoder_states: Tensor) -> Trace:
        trace = super().attend(batch, encoder_states, decoder_states)
        (attention,) = trace.attentions
        return replace(trace, attentions=(replace(attention, maps=None),))

    def weigh(self, batch: Batch, encoder_states: Tensor, decoder_states: Tensor) -> tuple[Tensor, Tensor]:
        scores = decoder_states.new_zeros(*decoder_states.shape[:2], encoder_states.shape[1])
        return scores, masked_softmax(scores, batch.source_mask)


@dataclass(frozen=True)
class Settings:
    """The cell is a GRU. The ``learning_rate`` does not fall, so that late snapshots are not of a network
    that hardly moves. ``clip``: largest norm of the gradient of all parameters together."""

    task: str = "one_to_one"
    options: tuple[tuple[str, object], ...] = ()
    attention: str = "learned"
    width: int = 64
    embedding_scale: float = 0.3
    steps: int = 300
    batch_size: int = 64
    learning_rate: float = 4e-3
    clip: float = 1.0
    first_snapshot: int = 2
    snapshots_per_doubling: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, self, "steps", "batch_size", "first_snapshot", "snapshots_per_doubling")
        check_known("attention", self.attention, get_args(Attention))
        self.config(1, 1)  # what the network cannot be, its own settings say
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def config(self, source_size: int, target_size: int) -> ModelConfig:
        return ModelConfig(
            "AED", source_size, target_size, width=self.width, embedding_scale=self.embedding_scale
        )

    @property
    def snapshots(self) -> tuple[int, ...]:
        return spaced_checkpoints(self.steps, self.first_snapshot, self.snapshots_per_doubling)


def spaced_checkpoints(steps: int, first: int, per_doubling: int) -> tuple[int, ...]:
    """0, then a geometric sequence from ``first`` on, rounded, and the last update."""
    checkpoints, place = {0, steps}, 0
    while (step := round(first * 2 ** (place / per_doubling))) < steps:
        checkpoints.add(step)
        place += 1
    return tuple(sorted(checkpoints))


def task_of(settings: Settings) -> tuple[str, dict[str, object]]:
    """The task that is trained on, by name, and its options."""
    return settings.task, dict(settings.options)


def load_task(settings: Settings) -> Task:
    return store.load_task(settings.task, settings.options)


def new_network(settings: Settings, source_size: int, target_size: int) -> EncoderDecoder:
    kind = UniformEncoderDecoder if settings.attention == "uniform" else EncoderDecoder
    config = settings.config(source_size, target_size)
    return kind(config, torch.Generator().manual_seed(settings.seed))


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    task = load_task(settings)
    network = new_network(settings, len(task.source_vocabulary), len(task.target_vocabulary))
    snapshots = settings.snapshots
    train_network(
        network, EqualLengthBatches(task.train, settings.batch_size, settings.seed), loss_of,
        Schedule(settings.steps, settings.seed, settings.learning_rate, snapshots, settings.clip), folder,
        visit=lambda step, seen: save_snapshot(
            folder, step, {f"{_SNAPSHOT}{name}": value for name, value in seen.state_dict().items()}
        ),
        device=device, report=report,
    )  # fmt: skip
    return stacked_snapshots(folder, snapshots)


def network_at(recording: Recording, snapshot: int) -> EncoderDecoder:
    """The network as it was at a snapshot, counted from 0 (−1 is the last), in evaluation mode."""
    state = {
        name.removeprefix(_SNAPSHOT): value[snapshot]
        for name, value in recording.tensors.items()
        if name.startswith(_SNAPSHOT)
    }
    sizes = (len(state[f"{side}_embedding.weight"]) for side in ("source", "target"))
    network = new_network(recording.spec.resolved, *sizes)
    network.load_state_dict(state)
    return network.eval()


# What a lexical probe says of the words of a sentence: knowledge to translate individual words (KTIW).
#
# With β_st the probability of the right word of target position s if the network attended to source position
# t alone (:mod:`attnlib.probes.lexical_probe`), and W_s the source positions that hold the word which target
# word s translates (several where it stands there twice),
#
#     share on the word    Σ_{t in W_s} β_st / Σ_t β_st
#     word accuracy        whether β_st is largest at a t in W_s
#     best over mean       log max_t β_st − log mean_t β_st
#
# The first is step 5 of Snell et al. 2021's Figure 1, |W_s| over the length where β knows nothing and 1 where
# only the right word tells. The third needs no links, and does not tell right words from wrong ones.


@dataclass(frozen=True, eq=False)
class WordKnowledge:
    """Of each row, float64, NaN where it has no answer."""

    share: Float[Tensor, "batch target"]
    chance: Float[Tensor, "batch target"]
    right: Float[Tensor, "batch target"]
    best_over_mean: Float[Tensor, "batch target"]


LogProbe, Links = Float[Tensor, "batch target source"], Bool[Tensor, "batch target source"]


def positions_of_words(source: Int[Tensor, "batch source"], links: Links) -> Links:
    """W: the positions that hold a word which some linked position of the row holds."""
    same = source[:, :, None] == source[:, None, :]
    return (links[:, :, :, None] & same[:, None]).any(2)


def word_knowledge(
    log_probe: LogProbe, words: Links, source_mask: Bool[Tensor, "batch source"]
) -> WordKnowledge:
    """The three measures of every row, from log β and W."""
    logs = log_probe.double()
    posterior = logs.softmax(-1)  # a row of -inf, at padding, becomes NaN
    known = words.any(-1)
    lengths = source_mask.sum(-1)[:, None]
    best = logs == logs.amax(-1, keepdim=True)
    undefined = ~known | posterior.isnan().any(-1)
    return WordKnowledge(
        share=(posterior * words).sum(-1).masked_fill(undefined, torch.nan),
        chance=(words.sum(-1) / lengths).double().masked_fill(undefined, torch.nan),
        right=((best & words).sum(-1) / best.sum(-1)).double().masked_fill(undefined, torch.nan),
        best_over_mean=logs.amax(-1) - (logs.logsumexp(-1) - lengths.double().log()),
    )


OF_WORDS = ("token_accuracy", "translation", "word_accuracy", "best_over_mean")
OF_ATTENTION = ("on_word", "on_end", "attention_accuracy", "agreement", "agreement_by_chance")
PAIRS = tuple((decoder, encoder) for decoder in STATE_PARTS for encoder in STATE_PARTS)
REBUILT = {
    "temporal_only": SUBSETS["temporal_only"],
    "input_only": SUBSETS["input_only"],
    "with_input": frozenset(pair for pair in PAIRS if "input" in pair),
    "no_residual": SUBSETS["no_residual"],
}
_BATCH = 256
_NUMBERS_AT_ONCE = 4_000_000  # logits of the probe held at a time


@measure(version=1)
@torch.no_grad()
def measure_along_training(recording: Recording, *, fitted: int, judged: int) -> dict:
    """The source word of a target word is its gold link or, where a task has none, that of IBM Model 1; words
    without one are left out. Lists by snapshot: :data:`OF_WORDS`; unless attention is held uniform
    :data:`OF_ATTENTION`, covariance shares, what :data:`REBUILT` rebuilds beyond uniform attention, and
    ``seen``, the share of source positions whose word the components know.
    """
    settings = recording.spec.resolved
    task = load_task(settings)
    held_out = task.held_out.subset(range(min(judged, len(task.held_out))))
    links = _links(settings.task, settings.options, len(held_out))
    train = task.train.subset(range(min(fitted, len(task.train))))
    learned = settings.attention == "learned"
    snapshots = []
    for snapshot in range(len(recording["steps"])):
        network = network_at(recording, snapshot)
        numbers = _words_at(network, held_out, links, learned=learned)
        snapshots.append(numbers | (_attention_at(network, train, held_out) if learned else {}))
    by_checkpoint = {name: [numbers[name] for numbers in snapshots] for name in snapshots[0]}
    return {"steps": recording["steps"].tolist(), "chance": by_checkpoint.pop("chance")[0]} | by_checkpoint


@lru_cache(maxsize=4)
def _links(name: str, options: tuple, samples: int) -> tuple[frozenset[tuple[int, int]], ...]:
    """Links of the first held-out samples, gold ones or those of IBM Model 1."""
    task = load_task(Settings(task=name, options=options))
    if task.gold is not None:
        return task.gold[:samples]
    sizes = len(task.source_vocabulary), len(task.target_vocabulary)
    model = IBMModel1.fit(task.train, *sizes)
    best = (model.best_links(task.held_out.source(i), task.held_out.target(i)) for i in range(samples))
    return tuple(frozenset((int(t), s) for s, t in enumerate(row) if t >= 0) for row in best)


def log_probe(network: EncoderDecoder, trace: Trace) -> LogProbe:
    """log β of Part II's network, whose readout is linear: logits = W [h^D_s ; c_s] + b."""
    weight, bias = network.readout.weight, network.readout.bias
    of_decoder, of_context = weight.split(network.config.width, dim=1)
    return log_probability_of_pairs(
        trace.encoder_states @ of_context.T,
        trace.decoder_states @ of_decoder.T + bias,
        lambda logits: logits,
        outputs=trace.target_outputs,
        source_mask=trace.source_mask,
        target_mask=trace.target_mask,
        at_once=max(PAIRS_AT_ONCE, _NUMBERS_AT_ONCE // len(bias)),
    )


def _words_at(network: EncoderDecoder, corpus: Corpus, links: tuple, *, learned: bool) -> dict[str, float]:
    names = (*OF_WORDS, "chance", *(OF_ATTENTION if learned else ()))
    sums = {name: RowMean() for name in names}
    for batch in evaluation_batches(corpus, _BATCH):
        trace = network(batch)
        linked = link_mask([links[i] for i in batch.indices.tolist()], *trace.attention.shape[1:])
        of_words = positions_of_words(batch.source, linked)
        probe = log_probe(network, trace)
        rows = words_only(batch.target_mask)
        known = word_knowledge(probe, of_words, batch.source_mask)
        right = (trace.logits.argmax(-1) == batch.target_output).double()
        values = {"token_accuracy": right, "translation": known.share, "word_accuracy": known.right}
        values |= {"best_over_mean": known.best_over_mean, "chance": known.chance}
        if learned:
            values |= _attention_to_words(trace, probe, of_words, linked)
        sums = {name: sums[name] + RowMean.of(values[name], rows) for name in names}
    return {name: mean.total / mean.rows for name, mean in sums.items()}


def _attention_to_words(
    trace: Trace, probe: LogProbe, words: Links, links: Links
) -> dict[str, Float[Tensor, "batch target"]]:
    attention, mask = trace.attention.double(), trace.source_mask[:, None]
    unlinked = ~links.any(-1)
    best = mask & (attention == attention.amax(-1, keepdim=True))
    values = {
        "on_word": (attention * words).sum(-1),
        "on_end": (attention * (trace.source_tokens == EOS)[:, None]).sum(-1),
        "attention_accuracy": ((best & links).sum(-1) / best.sum(-1)).double(),
    }
    values = {name: value.masked_fill(unlinked, torch.nan) for name, value in values.items()}
    return values | {
        "agreement": agreement(trace.attention, probe, mask, ties="shared"),
        "agreement_by_chance": chance_agreement(probe, mask),
    }


def _attention_at(network: EncoderDecoder, train: Corpus, held_out: Corpus) -> dict[str, float | None]:
    encoder, decoder = _fitted(network, train, held_out)
    shares = ShareSums()
    rebuilt = SubstitutionSums({"uniform": SUBSETS["uniform"], **REBUILT})
    unseen = valid = 0
    for batch in evaluation_batches(held_out, _BATCH):
        trace = network(batch)
        queries = decoder.split(trace.decoder_states, trace.target_tokens, trace.target_mask)
        keys = encoder.split(trace.encoder_states, trace.source_tokens, trace.source_mask)
        terms = alignment_terms(queries, keys)
        shares.update(terms, trace.target_mask, trace.source_mask)
        rebuilt.update(terms, trace.target_mask, trace.source_mask)
        unseen, valid = unseen + keys.unseen_tokens, valid + keys.valid
    table = shares.result().covariance.flatten().tolist()
    similar = {name: subset.similarity for name, subset in rebuilt.result().items()}
    return (
        {
            f"share.{queries}_{keys}": None if math.isnan(share) else share
            for (queries, keys), share in zip(PAIRS, table, strict=True)
        }
        | {f"rebuilt.{name}": similar[name] - similar["uniform"] for name in REBUILT}
        | {"uniform": similar["uniform"], "seen": 1 - unseen / valid}
    )


def _fitted(network: EncoderDecoder, train: Corpus, held_out: Corpus) -> tuple[Components, Components]:
    width, config = network.config.width, network.config
    longest = [
        int(max(getattr(corpus, f"{side}_lengths").max() for corpus in (train, held_out))) + 1
        for side in ("source", "target")
    ]
    encoder = Components(width, n_tokens=config.source_size, n_positions=longest[0])
    decoder = Components(width, n_tokens=config.target_size, n_positions=longest[1])
    for batch in evaluation_batches(train, _BATCH):
        trace = network(batch)
        encoder.update(trace.encoder_states, trace.source_tokens, trace.source_mask)
        decoder.update(trace.decoder_states, trace.target_tokens, trace.target_mask)
    return encoder, decoder
