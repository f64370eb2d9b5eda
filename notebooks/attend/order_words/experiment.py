"""Order words: which words turn the order round, by which parts of states, and swaps that put it to test.

Rows of attention are compared in four sets, on pairs of sentences that the network was not trained on:

``own``        all steps that both targets have, each run reading the words of its own target;
``fork``       of these the one step of each pair at which the two translations part;
``same``       all steps, both runs reading the first sentence's target words: what the source alone does;
``same_fork``  of these the fork.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.decomposition import STATE_PARTS, Parts, alignment_terms
from attnlib.decomposition.rows import centred, total_variation, valid_rows
from attnlib.errors import BadInput
from attnlib.models.config import Cell
from attnlib.models.corpus import Batch, Corpus, collate
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.trace import Trace
from companion.data.task import Links, Task
from companion.results.config import Attending, Positive, check_width, looked_up, setting
from companion.results.frames import Table, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.rounding import rounded
from companion.runs.columns import INTERVAL, Column, Columns, share
from companion.runs.measure import measure
from companion.runs.store import Store, TrainedModel
from companion.runs.suite import task_of
from notebooks.shared.measure import Fitted, fit_components
from notebooks.shared.plan import settings_of
from notebooks.shared.suite import BY_KIND, SUITE, PlannedConfig, model_specs, suite_frame
from notebooks.shared.summaries import summarise
from notebooks.shared.tasks import synthetic as rules
from notebooks.shared.tasks.synthetic import ACTION_OF, COMMAND_WORDS, TURN_OF, interpret

_STREAM = 0x5A1B

Words = tuple[str, ...]
Attention = Float[Tensor, "batch target source"]
Rows, SourceMask = Bool[Tensor, "batch target"], Bool[Tensor, "batch source"]
ByPair = Int[Tensor, " batch"]


@dataclass(frozen=True)
class Meant:
    """A translation, with links where the task has them."""

    words: Words
    links: Links = ()

    def source_of(self) -> dict[int, int]:
        """The source position that each target step translates, as far as links say it."""
        return {step: place for place, step in self.links}


@dataclass(frozen=True)
class Swap:
    """Of ``order``, of ``count`` (some words come oftener) or of ``content``. A word gives way to one of its
    own group or, where the swap is ``across``, of the other group."""

    name: str
    kind: str
    groups: tuple[Words, ...]
    across: bool = False

    def group_of(self, word: str) -> int | None:
        """The group of a word; None where it is of no group."""
        for group, words in enumerate(self.groups):
            if word in words:
                return group
        return None

    def replacements(self, word: str) -> Words:
        """The words to which a word may give way; none where it is of no group."""
        group = self.group_of(word)
        if group is None:
            return ()
        if self.across:
            return self.groups[1 - group]
        return tuple(other for other in self.groups[group] if other != word)


OPENINGS = (tuple(rules.STAYING_OPENINGS), tuple(rules.REVERSING_OPENINGS))
MODIFIERS = (tuple(rules.STAYING_MODIFIERS), tuple(rules.SWAPPING_MODIFIERS))
REORDERING_SWAPS = (
    Swap("opening", "order", OPENINGS, across=True),
    Swap("modifier", "order", MODIFIERS, across=True),
    Swap("opening_within", "content", OPENINGS),
    Swap("modifier_within", "content", MODIFIERS),
    Swap("head", "content", (tuple(rules.HEADS),)),
)
SCAN_SWAPS = (
    Swap("join", "order", (("and",), ("after",)), across=True),
    Swap("times", "count", (("twice",), ("thrice",)), across=True),
    Swap("manner", "count", (("opposite",), ("around",)), across=True),
    Swap("verb", "content", (tuple(ACTION_OF),)),
    Swap("direction", "content", (tuple(TURN_OF),)),
)
_SIGNALS = {**rules.REVERSING_OPENINGS, **rules.SWAPPING_MODIFIERS}


@dataclass(frozen=True, eq=False)
class Pairs:
    """Aligned corpora: sample i of ``second`` is that of ``first`` with another word at ``positions[i]``."""

    swap: Swap
    first: Corpus
    second: Corpus
    positions: Int[np.ndarray, " pairs"]
    groups: Int[np.ndarray, " pairs"]  # of the word of ``first``
    forks: Int[np.ndarray, " pairs"]  # see :func:`fork_of`
    gold: Int[np.ndarray, "pairs 2"]  # likewise; −1 without links

    def __len__(self) -> int:
        return len(self.positions)


def swaps_of(task: Task) -> tuple[Swap, ...]:
    words = set(task.source_vocabulary.words)
    if set(COMMAND_WORDS) <= words:
        return SCAN_SWAPS
    if set(rules.TRANSLATIONS) <= words:
        return REORDERING_SWAPS
    raise BadInput(f"task {task.name} has no known order words; take scan, scan_extended or reordering_50")


@dataclass(frozen=True)
class Exchanged:
    """A sentence in which one word is exchanged.

    Attributes:
        words: with the new word.
        position: of the new word.
        group: of the old word, in its :class:`Swap`.
    """

    words: Words
    position: int
    group: int


@dataclass(frozen=True)
class Fork:
    """Where two translations part.

    Attributes:
        step: of the targets.
        first_source: source position that the first translates there; −1 without links.
        second_source: source position that the second translates there.
    """

    step: int
    first_source: int
    second_source: int


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two sentences that differ in one word, as ids, each with its translation."""

    first: tuple[np.ndarray, np.ndarray]  # source, target
    second: tuple[np.ndarray, np.ndarray]
    exchanged: Exchanged
    fork: Fork


def draw_pairs(task: Task, swap: Swap, n: int, *, part: str = "held_out", reach: str = "both") -> Pairs:
    """Return up to `n` pairs of sentences that differ in one exchanged word.

    The first sentence is from one part of the task, the second is not in the other part. In the reordering
    family another signal to reorder must be left, or the second would be unlike what networks are trained on.

    Raises:
        BadInput: the task has no such pair.
    """
    draw = np.random.default_rng([_STREAM, part == "train", *swap.name.encode()])
    corpus, other = (task.held_out, task.train) if part == "held_out" else (task.train, task.held_out)
    in_other = {tuple(other.source(sample).tolist()) for sample in range(len(other))}
    longest = int(task.train.target_lengths.max())
    pairs: list[_Pair] = []
    for sample in draw.permutation(len(corpus)):
        if len(pairs) == n:
            break
        words = task.source_vocabulary.decode(corpus.source(sample).tolist())
        exchanged = _with_one_exchanged(words, swap, draw)
        if exchanged is None:
            continue
        partner = task.source_vocabulary.encode(exchanged.words)
        if tuple(partner.tolist()) in in_other:
            continue
        meant = _meaning(words, swap, reach)
        partner_meant = _meaning(exchanged.words, swap, reach)
        if len(partner_meant.words) > longest or partner_meant.words == meant.words:
            continue
        pairs.append(
            _Pair(
                first=(corpus.source(sample), task.target_vocabulary.encode(meant.words)),
                second=(partner, task.target_vocabulary.encode(partner_meant.words)),
                exchanged=exchanged,
                fork=fork_of(meant, partner_meant),
            )
        )
    if not pairs:
        raise BadInput(f"task {task.name} has no pair of sentences for {swap.name!r}; take another task")
    return Pairs(
        swap,
        first=_corpus_of([pair.first for pair in pairs]),
        second=_corpus_of([pair.second for pair in pairs]),
        positions=np.array([pair.exchanged.position for pair in pairs]),
        groups=np.array([pair.exchanged.group for pair in pairs]),
        forks=np.array([pair.fork.step for pair in pairs]),
        gold=np.array([(pair.fork.first_source, pair.fork.second_source) for pair in pairs]),
    )


def _with_one_exchanged(words: Sequence[str], swap: Swap, draw: np.random.Generator) -> Exchanged | None:
    """Exchange a word of a sentence; None if none can be."""
    exchangeable = [position for position, word in enumerate(words) if swap.replacements(word)]
    if not exchangeable:
        return None
    position = int(draw.choice(exchangeable))
    word, before, after = words[position], words[:position], words[position + 1 :]
    if swap not in SCAN_SWAPS and _SIGNALS.keys().isdisjoint((*before, *after)):
        return None
    replacements = swap.replacements(word)
    replacement = replacements[draw.integers(len(replacements))]
    return Exchanged((*before, replacement, *after), position=position, group=swap.group_of(word))


def _meaning(words: Sequence[str], swap: Swap, reach: str) -> Meant:
    if swap in SCAN_SWAPS:
        return Meant(interpret(words))
    translation, links = rules.translate(words, reach)
    return Meant(translation, links)


def _corpus_of(sentences: list[tuple[np.ndarray, np.ndarray]]) -> Corpus:
    sources, targets = zip(*sentences, strict=True)
    return Corpus.from_ids(sources, targets)


def fork_of(first: Meant, second: Meant) -> Fork:
    """Return where two translations part: in what they translate or, without links, in their words."""
    steps = min(len(first.words), len(second.words))
    first_source, second_source = first.source_of(), second.source_of()
    parted = [step for step in range(steps) if first_source.get(step) != second_source.get(step)]
    if not parted:
        parted = [step for step in range(steps) if first.words[step] != second.words[step]]
    fork = parted[0] if parted else steps
    return Fork(fork, first_source=first_source.get(fork, -1), second_source=second_source.get(fork, -1))


# By which route a swapped word changes the attention. Between two runs a' − a is exactly
#
#     a'_st − a_st = (h'^D_s − h^D_s) · (h'^E_t + h^E_t) / 2 + (h'^D_s + h^D_s) / 2 · (h'^E_t − h^E_t) ,
#
# and each difference of states is that of their parts, the temporal ones being equal: the routes below.
# Scores are centred over the source positions of their row first, since softmax does not see the mean.

ROUTES = ("decoder_input", "decoder_residual", "encoder_input", "encoder_residual", "encoder_context")
PAIRS = tuple(f"{decoder}_{encoder}" for decoder in STATE_PARTS for encoder in STATE_PARTS)


@dataclass(frozen=True)
class FromSecond:
    """What the first run takes from the second.

    Attributes:
        encoder: the encoder states that are attended to.
        start: the state that starts the decoder.
        words: the target words that the decoder reads.
    """

    encoder: bool = False
    start: bool = False
    words: bool = False

    @property
    def key(self) -> str:
        """The name in the archive: a letter for each, such as ``ES`` of encoder and start."""
        letters = {"E": self.encoder, "S": self.start, "W": self.words}
        return "".join(letter for letter, is_taken in letters.items() if is_taken)

    @property
    def of_decoder(self) -> "FromSecond":
        """What decoder states depend on: all but the encoder states that they attend to."""
        return FromSecond(start=self.start, words=self.words)


FIRST_RUN = FromSecond()
SECOND_SOURCE = FromSecond(
    encoder=True, start=True
)  # the second sentence, with the first's target words read
SECOND_RUN = FromSecond(encoder=True, start=True, words=True)
_WHOLE = (
    FromSecond(encoder=True),
    FromSecond(start=True),
    FromSecond(words=True),
    SECOND_SOURCE,
    FromSecond(encoder=True, words=True),
    FromSecond(start=True, words=True),
    SECOND_RUN,
)
WHOLE_PATCHES = {taken.key: taken for taken in _WHOLE}
# Only that part of the encoder states; all of them at the swapped word's position, or all elsewhere.
PARTIAL_PATCHES = ("e_input", "e_residual", "e_word", "e_context")
PATCHES = (*WHOLE_PATCHES, *PARTIAL_PATCHES)
SAME_WORDS_PATCHES = tuple(name for name in PATCHES if not WHOLE_PATCHES.get(name, FIRST_RUN).words)
UNPATCHED = "unpatched"  # the first run as it is
BothParts = tuple[Parts, Parts]  # decoder's, encoder's
Pieces = Float[Tensor, "piece batch target source"]
_NO_CHANGE = 1e-12
_NO_FLIP = 0.02  # rows that differ by less (mean total variation) have no flip to take a share of


@dataclass(frozen=True, eq=False)
class TwoRuns:
    """Both sentences' states, and decoder states by what they take from the second run."""

    batches: tuple[Batch, Batch]
    encoder: tuple[Float[Tensor, "batch source width"], Float[Tensor, "batch source width"]]
    decoder: dict[FromSecond, Float[Tensor, "batch steps width"]]
    encoder_parts: tuple[Parts, Parts]
    rows: Bool[Tensor, "batch steps"]
    position: ByPair

    @property
    def source_mask(self) -> SourceMask:
        return self.batches[0].source_mask

    @property
    def at_word(self) -> SourceMask:
        places = torch.arange(self.source_mask.shape[1], device=self.position.device)
        return places == self.position[:, None]


def run_both(model: EncoderDecoder, batches: tuple[Batch, ...], position: ByPair, fitted: Fitted) -> TwoRuns:
    first, second = batches
    steps = min(batch.target_mask.shape[1] for batch in batches)
    first_states, first_start = model.encode(first.source, first.source_mask)
    second_states, second_start = model.encode(second.source, second.source_mask)
    decoder = {}
    for start, words in product((False, True), repeat=2):
        read = (second if words else first).target_input[:, :steps]
        states = model.decode(read, second_start if start else first_start)
        decoder[FromSecond(start=start, words=words)] = states
    return TwoRuns(
        batches=batches,
        encoder=(first_states, second_states),
        decoder=decoder,
        encoder_parts=(
            fitted.encoder.split(first_states, first.source, first.source_mask),
            fitted.encoder.split(second_states, second.source, second.source_mask),
        ),
        rows=first.target_mask[:, :steps] & second.target_mask[:, :steps],
        position=position,
    )


def decoder_parts(runs: TwoRuns, taken: FromSecond, fitted: Fitted) -> Parts:
    """Split the decoder states that take so much from the second run."""
    first, second = runs.batches
    read = (second if taken.words else first).target_input[:, : runs.rows.shape[1]]
    return fitted.decoder.split(runs.decoder[taken.of_decoder], read, runs.rows)


def term_changes(first: BothParts, second: BothParts) -> Float[Tensor, "9 batch target source"]:
    """Change of each of the nine alignment terms, in the order of :data:`PAIRS`."""
    return (alignment_terms(*second) - alignment_terms(*first)).flatten(0, 1)


def route_changes(first: BothParts, second: BothParts, at_word: SourceMask) -> Pieces:
    """Change of the score by route, in the order of :data:`ROUTES`; they sum to the change of the score."""
    (decoder, encoder), (decoder_after, encoder_after) = first, second
    queries = (decoder.total() + decoder_after.total()) / 2  # (batch, target, width)
    keys = (encoder.total() + encoder_after.total()) / 2  # (batch, source, width)
    encoder_input = queries @ (encoder_after.input - encoder.input).transpose(1, 2)
    encoder_residual = queries @ (encoder_after.residual - encoder.residual).transpose(1, 2)
    keys = keys.transpose(1, 2)  # (batch, width, source)
    decoder_input = (decoder_after.input - decoder.input) @ keys
    decoder_residual = (decoder_after.residual - decoder.residual) @ keys
    word = at_word[:, None, :]
    at_word_alone, elsewhere = encoder_residual * word, encoder_residual * ~word
    return torch.stack([decoder_input, decoder_residual, encoder_input, at_word_alone, elsewhere])


def change_shares(pieces: Pieces, rows: Rows, source_mask: SourceMask) -> tuple[list[float | None], float]:
    """Covariance share of each piece in their sum (None where it does not vary), and the sum's own square."""
    values, valid = valid_rows(pieces, rows, source_mask, at_least=2)
    values = centred(values, valid)
    total = values.sum(0)
    square = float(total.square().sum())
    if square <= _NO_CHANGE * float(values.square().sum()):
        return [None] * len(pieces), 0.0
    covariances = (values * total).sum((1, 2))
    return (covariances / square).tolist(), square


def patched_rows(model: EncoderDecoder, runs: TwoRuns) -> dict[str, Float[Tensor, "batch steps source"]]:
    """Return attention of the first run, `UNPATCHED` and with what each of `PATCHES` takes of the second."""
    first_states, second_states = runs.encoder  # each (batch, source, width)
    first_parts, second_parts = runs.encoder_parts
    at_word = runs.at_word[:, :, None]  # (batch, source, 1)

    def attention_of(taken: FromSecond) -> Tensor:
        states = second_states if taken.encoder else first_states
        return attention_on(states, runs.decoder[taken.of_decoder])

    def attention_on(encoder: Tensor, decoder: Tensor) -> Tensor:
        return model.attend(runs.batches[0], encoder, decoder).attention

    patched_states = {
        "e_input": first_states + second_parts.input - first_parts.input,
        "e_residual": first_states + second_parts.residual - first_parts.residual,
        "e_word": torch.where(at_word, second_states, first_states),
        "e_context": torch.where(at_word, first_states, second_states),
    }
    rows = {UNPATCHED: attention_of(FIRST_RUN)}
    rows |= {name: attention_of(taken) for name, taken in WHOLE_PATCHES.items()}
    rows |= {name: attention_on(states, runs.decoder[FIRST_RUN]) for name, states in patched_states.items()}
    return rows


def flip_share(patched: Attention, first: Attention, second: Attention, rows: Rows) -> dict:
    """How far patched rows went to the second run's; None where the two runs hardly differ. ``argmax``: of
    rows whose largest weight is elsewhere in the second run, the share that has it there."""
    change = (second - first)[rows].double()  # (row, source)
    gone = (patched - first)[rows].double()
    share = None
    if len(change) and float(change.abs().sum(-1).mean()) / 2 >= _NO_FLIP:
        share = float((gone * change).sum() / change.square().sum())
    flipped = (first.argmax(-1) != second.argmax(-1)) & rows
    follows = (patched.argmax(-1) == second.argmax(-1))[flipped]
    argmax = float(follows.double().mean()) if len(follows) else None
    return {"share": share, "argmax": argmax}


def moved(first: Attention, second: Attention, rows: Rows) -> dict[str, float]:
    """How much rows of attention differ: mean total variation, and share with another largest entry."""
    variation = total_variation(first[rows], second[rows])
    flips = (first.argmax(-1) != second.argmax(-1))[rows]
    return {"variation": float(variation.double().mean()), "flips": float(flips.double().mean())}


# Rows of attention predicted before a word is swapped, and the network run again with the word swapped. The
# prediction sees the run on the original sentence, components and mean effects fitted on training samples.
# With the word w at source position q exchanged for w',
#
#     input        h^E_q  ←  h^E_q − χ(w) + χ(w')            residual and all other states kept
#     input_alone  h^E_q  ←  μ_q + χ(w')                      the residual at its mean over all w', zero
#     encoder      h^E_t  ←  h^E_t + E[change | w, w', t − q]
#     decoder      h^D_s  ←  h^D_s + E[change | group of w, q, source length, s]
#     both         encoder and decoder
#
# and none (rows as they were), uniform. Scores being bilinear, the first is arithmetic once the states are
# taken so: a'_sq = a_sq + h^D_s · (χ(w') − χ(w)). What is in question is whether the network does it.

BATCH = 256


@dataclass(frozen=True, eq=False)
class Exchange:
    """What is swapped in each sample: where, which word, for which, and the group of the old one."""

    position: ByPair
    old: ByPair
    new: ByPair
    group: ByPair

    def of(self, samples: Int[Tensor, " samples"]) -> "Exchange":
        """What is swapped in some of the samples."""
        return Exchange(
            position=self.position[samples],
            old=self.old[samples],
            new=self.new[samples],
            group=self.group[samples],
        )


@dataclass(frozen=True, eq=False)
class Effects:
    """Mean changes of states over training pairs; zero where no pair was seen."""

    encoder: Float[Tensor, "words words lag width"]
    decoder: Float[Tensor, "group position length step width"]


def exchange_of(pairs: Pairs, device: torch.device | str = "cpu") -> Exchange:
    """Return what is swapped in some pairs of sentences."""
    return Exchange(
        position=torch.from_numpy(pairs.positions).to(device),
        old=_words_at(pairs.first, pairs.positions).to(device),
        new=_words_at(pairs.second, pairs.positions).to(device),
        group=torch.from_numpy(pairs.groups).to(device),
    )


def _words_at(corpus: Corpus, positions: Int[np.ndarray, " pairs"]) -> ByPair:
    """The source word of each sample at its position."""
    return torch.tensor([int(corpus.source(pair)[position]) for pair, position in enumerate(positions)])


def predict_rows(
    model: EncoderDecoder, batch: Batch, trace: Trace, exchange: Exchange, fitted: Fitted, effects: Effects
) -> dict[str, Float[Tensor, "batch target source"]]:
    """Return the rows of attention that each prediction gives, by its name; see above."""
    states = trace.encoder_states  # (batch, source, width)
    decoder_states = trace.decoder_states  # (batch, target, width)
    samples = torch.arange(len(states), device=states.device)
    position = exchange.position
    input_components = fitted.encoder.input
    temporal_components = fitted.encoder.temporal.to(states.device)

    with_new_input = states.clone()
    change = input_components[exchange.new] - input_components[exchange.old]  # (batch, width)
    with_new_input[samples, position] += change.to(states)

    without_residual = states.clone()
    new_input = input_components.to(states.device)[exchange.new]
    without_residual[samples, position] = (temporal_components[position] + new_input).to(states)

    lag = torch.arange(states.shape[1], device=states.device) - position[:, None]  # (batch, source)
    mean_change = effects.encoder[exchange.old[:, None], exchange.new[:, None], lag.clamp(min=0)]
    is_changed = (lag >= 0) & trace.source_mask
    encoder_moved = states + mean_change.to(states) * is_changed[:, :, None]

    lengths = trace.source_mask.sum(1)
    of_all_steps = effects.decoder[exchange.group, position, lengths]
    mean_change = of_all_steps[:, : decoder_states.shape[1]]
    decoder_moved = decoder_states + mean_change.to(states)

    def rows(encoder: Tensor, decoder: Tensor) -> Tensor:
        return model.attend(batch, encoder, decoder).attention

    uniform = trace.source_mask / lengths[:, None]  # (batch, source)
    return {
        "none": trace.attention,
        "uniform": uniform[:, None, :].expand_as(trace.attention),
        "input": rows(with_new_input, decoder_states),
        "input_alone": rows(without_residual, decoder_states),
        "encoder": rows(encoder_moved, decoder_states),
        "decoder": rows(states, decoder_moved),
        "both": rows(encoder_moved, decoder_moved),
    }


def rerun(model: EncoderDecoder, batch: Batch, swapped: Batch) -> Trace:
    """The network on the sentence with the word swapped, reading the target words of the original one."""
    states, last = model.encode(swapped.source, swapped.source_mask)
    return model.attend(batch, states, model.decode(batch.target_input, last))


def fit_effects(model: EncoderDecoder, pairs: Pairs, words: int, longest: tuple[int, int]) -> Effects:
    """Mean effects of a swap over training pairs; ``longest`` source and target, end marks included."""
    device, width = model.readout.weight.device, model.config.width
    source, target = longest
    encoder = CellMeans((words, words, source), width, device)
    decoder = CellMeans((len(pairs.swap.groups), source, source + 1, target), width, device)
    exchange = exchange_of(pairs, device)
    for first in range(0, len(pairs), BATCH):
        samples = torch.arange(first, min(first + BATCH, len(pairs)), device=device)
        batch = collate(pairs.first, samples.tolist()).to(device)
        swapped = collate(pairs.second, samples.tolist()).to(device)
        before, after = model(batch), rerun(model, batch, swapped)
        swap = exchange.of(samples)

        is_later = batch.source_mask.cumsum(1) > swap.position[:, None]
        sample, place = (is_later & batch.source_mask).nonzero().T
        change = after.encoder_states - before.encoder_states
        lag = place - swap.position[sample]
        encoder.add((swap.old[sample], swap.new[sample], lag), change[sample, place])

        sample, step = batch.target_mask.nonzero().T
        change = after.decoder_states - before.decoder_states
        length = batch.source_mask.sum(1)[sample]
        decoder.add((swap.group[sample], swap.position[sample], length, step), change[sample, step])
    return Effects(encoder=encoder.means(), decoder=decoder.means())


class CellMeans:
    """Means of vectors by cell of a table, added up over batches; zero in cells without any."""

    def __init__(self, shape: tuple[int, ...], width: int, device: torch.device) -> None:
        self.sums = torch.zeros(*shape, width, dtype=torch.float64, device=device)
        self.counts = torch.zeros(shape, dtype=torch.float64, device=device)

    def add(
        self, cells: tuple[Int[Tensor, " vectors"], ...], vectors: Float[Tensor, "vectors width"]
    ) -> None:
        self.sums.index_put_(cells, vectors.double(), accumulate=True)
        ones = torch.ones_like(vectors[:, 0], dtype=torch.float64)
        self.counts.index_put_(cells, ones, accumulate=True)

    def means(self) -> Float[Tensor, "*cells width"]:
        return self.sums / self.counts.clamp(min=1)[..., None]


@dataclass(frozen=True, kw_only=True)
class RowSet:
    """Rows of attention that are compared between two runs.

    Attributes:
        own_words: True if each run reads its own target; of these rows there are the nine terms.
        at_fork: True for the step alone at which the translations part.
    """

    own_words: bool
    at_fork: bool


ROW_SETS = {
    "own": RowSet(own_words=True, at_fork=False),
    "fork": RowSet(own_words=True, at_fork=True),
    "same": RowSet(own_words=False, at_fork=False),
    "same_fork": RowSet(own_words=False, at_fork=True),
}
LAGS, STEPS = 12, 24  # how far the memory of the word is followed
DIGITS = 4


@measure(version=1)
def measure_order_words(trained: TrainedModel, fit_samples: int, pairs: int, fit_pairs: int) -> dict:
    """``exact``: share of either sentence that is correct; ``attended``: share of forks whose largest
    weight is at the gold position; ``outside``: squared change of scores without the swapped word's column.
    """
    task = trained.task
    reach = dict(trained.spec.task_options).get("reach", "both")
    fitted = fit_components(trained, fit_samples)
    by_swap = {}
    with torch.inference_mode():
        for swap in swaps_of(task):
            held_out = draw_pairs(task, swap, pairs, reach=reach)
            training = draw_pairs(task, swap, fit_pairs, part="train", reach=reach)
            by_swap[swap.name] = _judge(trained, swap, held_out, training, fitted)
    return rounded(by_swap, decimals=DIGITS)


def _judge(trained: TrainedModel, swap: Swap, pairs: Pairs, training: Pairs, fitted: Fitted) -> dict:
    model = trained.model
    device = model.readout.weight.device
    first = collate(pairs.first, range(len(pairs))).to(device)
    second = collate(pairs.second, range(len(pairs))).to(device)
    traces = [model(first), model(second)]
    runs = run_both(model, (first, second), torch.from_numpy(pairs.positions).to(device), fitted)
    forks = torch.from_numpy(pairs.forks).to(device)
    steps = torch.arange(runs.rows.shape[1], device=device)
    at_fork = (steps == forks[:, None]) & runs.rows  # (batch, steps)
    attention = patched_rows(model, runs)
    outcome: dict = {
        "kind": swap.kind,
        "pairs": len(pairs),
        "exact": [_exact(trace) for trace in traces],
        "attended": _attended(traces, pairs, forks),
        "change": {},
        "terms": {},
        "routes": {},
        "outside": {},
        "patches": {},
    }
    for name, row_set in ROW_SETS.items():
        rows = at_fork if row_set.at_fork else runs.rows
        second_run = SECOND_RUN if row_set.own_words else SECOND_SOURCE
        outcome["change"][name] = moved(attention[UNPATCHED], attention[second_run.key], rows)
        changes = ScoreChanges.of(runs, second_run, fitted)
        routes = changes.routes(rows)
        outcome["routes"][name] = routes.shares
        outcome["outside"][name] = routes.outside
        if row_set.own_words:
            outcome["terms"][name] = changes.terms(rows)
        patches = PATCHES if row_set.own_words else SAME_WORDS_PATCHES
        outcome["patches"][name] = {
            patch: flip_share(attention[patch], attention[UNPATCHED], attention[second_run.key], rows)
            for patch in patches
        }
    outcome["predictions"] = _predictions(trained, pairs, training, fitted)
    outcome["memory"] = _memory(runs, fitted)
    if swap.kind != "content":
        outcome["example"] = _example(trained, pairs, traces)
    return outcome


@dataclass(frozen=True)
class RouteShares:
    """What the routes share of the scores' change.

    Attributes:
        shares: of the change, by route; None where it does not vary.
        outside: squared change without the swapped word's column, over the whole one.
    """

    shares: dict[str, float | None]
    outside: float | None


@dataclass(frozen=True, eq=False)
class ScoreChanges:
    """The change of scores between two runs, from the parts of their states."""

    runs: TwoRuns
    before: BothParts
    after: BothParts

    @classmethod
    def of(cls, runs: TwoRuns, second: FromSecond, fitted: Fitted) -> "ScoreChanges":
        """From the first run to one that takes so much from the second."""
        first_parts, second_parts = runs.encoder_parts
        before = (decoder_parts(runs, FIRST_RUN, fitted), first_parts)
        after = (decoder_parts(runs, second, fitted), second_parts)
        return cls(runs, before, after)

    def routes(self, rows: Rows) -> RouteShares:
        """What each of :data:`ROUTES` makes of the change in some rows."""
        routes = route_changes(self.before, self.after, self.runs.at_word)
        source_mask = self.runs.source_mask
        shares, square = change_shares(routes, rows, source_mask)
        _, square_outside = change_shares(routes, rows, source_mask & ~self.runs.at_word)
        outside = square_outside / square if square else None
        return RouteShares(dict(zip(ROUTES, shares, strict=True)), outside)

    def terms(self, rows: Rows) -> dict[str, float | None]:
        """What each of the nine terms (:data:`PAIRS`) makes of the change in some rows."""
        terms = term_changes(self.before, self.after)
        shares, _ = change_shares(terms, rows, self.runs.source_mask)
        return dict(zip(PAIRS, shares, strict=True))


def _exact(trace) -> float:
    right = (trace.logits.argmax(-1) == trace.target_outputs) | ~trace.target_mask
    return float(right.all(1).double().mean())


def _attended(traces: list[Trace], pairs: Pairs, forks: Tensor) -> list[float | None]:
    shares: list[float | None] = []
    for trace, gold in zip(traces, torch.from_numpy(pairs.gold).T.to(forks.device), strict=True):
        if bool((gold < 0).any()):
            shares.append(None)
            continue
        at_forks = trace.attention[torch.arange(len(forks)), forks]  # (batch, source)
        attended = at_forks.argmax(-1) == gold
        shares.append(float(attended.double().mean()))
    return shares


def _predictions(trained: TrainedModel, pairs: Pairs, training: Pairs, fitted: Fitted) -> dict:
    task, model = trained.task, trained.model
    device = model.readout.weight.device
    longest = (fitted.encoder.temporal.shape[0], fitted.decoder.temporal.shape[0])
    effects = fit_effects(model, training, len(task.source_vocabulary), longest)
    batch = collate(pairs.first, range(len(pairs))).to(device)
    swapped = collate(pairs.second, range(len(pairs))).to(device)
    predicted = predict_rows(model, batch, model(batch), exchange_of(pairs, device), fitted, effects)
    after = rerun(model, batch, swapped).attention

    every = batch.target_mask  # (batch, target)
    steps = torch.arange(after.shape[1], device=device)
    forks = torch.from_numpy(pairs.forks).to(device)
    at_fork = (steps == forks[:, None]) & every
    changed = (predicted["none"].argmax(-1) != after.argmax(-1)) & every
    return {
        "all": _scores(predicted, after, every),
        "fork": _scores(predicted, after, at_fork),
        "changed": _scores(predicted, after, changed),
    }


def _scores(predicted: dict[str, Tensor], after: Tensor, rows: Rows) -> dict:
    """``gain``: the part of what "no change" misses that is not missed; below 0 worse. None without rows."""
    if not rows.any():
        return {name: {"similarity": None, "argmax": None, "gain": None} for name in predicted}
    missed_by_none = _missed(predicted["none"][rows], after[rows])
    scores = {}
    for name, attention in predicted.items():
        if name == "uniform":  # all positions tie
            right = 1 / (after[rows] > 0).sum(-1).double()
        else:
            right = (attention.argmax(-1) == after.argmax(-1))[rows].double()
        missed = _missed(attention[rows], after[rows])
        gain = 1 - missed / missed_by_none if missed_by_none > 0 else None
        scores[name] = {"similarity": 1 - missed, "argmax": float(right.mean()), "gain": gain}
    return scores


def _missed(predicted: Float[Tensor, "rows source"], after: Float[Tensor, "rows source"]) -> float:
    """The mean total variation between predicted rows and those of the second run."""
    return float(total_variation(predicted, after).double().mean())


def _memory(runs: TwoRuns, fitted: Fitted) -> dict[str, list[float | None]]:
    """Return how large the change of a component is, over the size of states without temporal components.

    The encoder's is by words after the exchanged one, the decoder's by step: on the first sentence's words,
    and (``decoder_own_…``) where each run reads its own.
    """
    device = runs.position.device
    memory = {}

    first, second = runs.encoder_parts
    lags = torch.arange(runs.source_mask.shape[1], device=device) - runs.position[:, None]  # (batch, source)
    size = (first.total() - first.temporal).norm(dim=-1)[runs.source_mask].mean()
    encoder_changes = {
        "encoder_input": second.input - first.input,
        "encoder_residual": second.residual - first.residual,
    }
    for name, change in encoder_changes.items():
        memory[name] = _by_place(change.norm(dim=-1) / size, lags, mask=runs.source_mask, n=LAGS)

    before = decoder_parts(runs, FIRST_RUN, fitted)
    with_first_words = decoder_parts(runs, SECOND_SOURCE, fitted)
    with_second_words = decoder_parts(runs, SECOND_RUN, fitted)
    steps = torch.arange(runs.rows.shape[1], device=device).expand_as(runs.rows)  # (batch, steps)
    size = (before.total() - before.temporal).norm(dim=-1)[runs.rows].mean()
    decoder_changes = {
        "decoder": with_first_words.residual - before.residual,
        "decoder_own_input": with_second_words.input - before.input,
        "decoder_own_residual": with_second_words.residual - before.residual,
    }
    for name, change in decoder_changes.items():
        memory[name] = _by_place(change.norm(dim=-1) / size, steps, mask=runs.rows, n=STEPS)
    return memory


def _by_place(values: Tensor, places: Tensor, *, mask: Tensor, n: int) -> list[float | None]:
    """Return the mean of the values at each of the first `n` places; None where there is none."""
    means: list[float | None] = []
    for place in range(n):
        at_place = values[mask & (places == place)]
        means.append(float(at_place.double().mean()) if len(at_place) else None)
    return means


def _example(trained: TrainedModel, pairs: Pairs, traces: list[Trace]) -> dict[str, object]:
    """The shortest pair as words and two matrices, each run on its own target; attention in thousandths."""
    longer_targets = np.maximum(pairs.first.target_lengths, pairs.second.target_lengths)
    sample = int((pairs.first.source_lengths + longer_targets).argmin())
    first, second = traces
    return {
        "position": int(pairs.positions[sample]),
        "fork": int(pairs.forks[sample]),
        "first": _example_of(trained.task, first, sample),
        "second": _example_of(trained.task, second, sample),
    }


def _example_of(task: Task, trace: Trace, sample: int) -> dict[str, list]:
    source_tokens = trace.source_tokens[sample][trace.source_mask[sample]]
    target_tokens = trace.target_outputs[sample][trace.target_mask[sample]]
    attention = trace.attention[sample][: len(target_tokens), : len(source_tokens)]
    return {
        "source": task.source_vocabulary.decode(source_tokens.tolist()),
        "target": task.target_vocabulary.decode(target_tokens.tolist()),
        "attention": (attention * 1000).round().int().tolist(),
    }


PAPER_TASKS = ("reordering_50", "reordering_100", "scan", "scan_extended")
SUMS = {  # name in the values → routes
    "input": ("decoder_input", "encoder_input"),
    "residual": ("decoder_residual", "encoder_residual", "encoder_context"),
    "context": ("decoder_residual", "encoder_context"),
}
PLACES = 16  # lags or steps that the table of memory has


def _turned(task: str) -> None:
    name, options = task_of(task)
    if name not in ("scan", "scan_extended", "reordering"):
        raise BadInput(f"{task!r}: its order words are not known; take scan, scan_extended or reordering_50")
    if name == "reordering" and not options.get("p", 1):
        raise BadInput(f"task {task!r} has no word that turns the order; take reordering_1 … reordering_100")


class Config(PlannedConfig):
    """Settings; a model is a task × architecture × cell × seed."""

    task: tuple[Annotated[str, looked_up(_turned)], ...] = setting(
        ("reordering_50", "scan"), "scan, scan_extended, reordering_N with N from 1 to 100"
    )
    architecture: tuple[Attending, ...] = setting(("AED", "AO"), "AED, AO")
    cell: tuple[Cell, ...] = setting(("gru",), "the recurrence of AED: gru, lstm, vanilla, ugrnn")
    fit_samples: Positive = 1_000
    pairs: Positive = setting(96, "held-out pairs of sentences of each kind of swap, at most")
    fit_pairs: Positive = setting(300, "training pairs of each kind that mean effects are fitted on, at most")

    def check(self) -> None:
        check_width(self)


PROFILES = {
    "quick": Config(pairs=48, fit_pairs=150),
    "paper": Config(
        scale="paper", task=PAPER_TASKS, cell=("gru", "lstm"), fit_samples=8_000, pairs=256, fit_pairs=1_000
    ),
    "tiny": Config(
        task=("reordering_50", "scan_extended"), seeds=1, width=8, steps=3, fit_samples=100, pairs=6,
        fit_pairs=8,
    ),
}  # fmt: skip


def measurements(config: Config) -> tuple[Measurement, ...]:
    settings = settings_of(config, "fit_samples", "pairs", "fit_pairs")
    return measurements_of(model_specs(config), measure_order_words, **settings)


NAMES = {name: SUITE[name] for name in (*BY_KIND, "seed")}
SWAP_KINDS = {
    "order": "the translation has another order",
    "count": "some words come more often",
    "content": "one word has another translation, at the same place",
}
SWAPPED = {
    "swap": Column("which words are exchanged for one another"),
    "swap_kind": Column("what the exchange does", categories=SWAP_KINDS),
}
SWAP = {
    "pairs": Column("held-out pairs of sentences", "pairs", low=0),
    "exact.first": share("first sentences that are translated perfectly"),
    "exact.second": share("second sentences that are translated perfectly"),
    "attended.first": share("forks whose largest weight is at the gold position, in the first run"),
    "attended.second": share("the same in the second run"),
}
ROWS = {
    "own": "all steps that both targets have; each run reads its own target",
    "fork": "of these the step at which the two translations part",
    "same": "all steps; both runs read the first sentence's target",
    "same_fork": "of these the step at which the two translations part",
    "all": "all steps of the first target",
    "changed": "of these the steps whose largest weight is elsewhere in the second run",
}
ROW_SET = {"rows": Column("rows of attention that are compared", categories=ROWS)}
CHANGE = {
    "variation": share("total variation between rows of the two runs, mean over rows"),
    "flips": share("rows whose largest weight is elsewhere in the second run"),
    "outside": share("squared change of scores outside the column of the exchanged word, over all of it"),
}
ROUTED = {
    "decoder_input": "the decoder's input components",
    "decoder_residual": "the decoder's residuals",
    "encoder_context": "residuals of the encoder at all other words",
    "encoder_input": "the encoder's input components",
    "encoder_residual": "the residual of the encoder at the exchanged word",
}
ROUTE = {name: Column(f"share of the scores' change that is made by {what}") for name, what in ROUTED.items()}
SUM_OF_ROUTES = {name: Column(f"sum of {' and '.join(routes)}") for name, routes in SUMS.items()}
PATCHES_OF = {
    "E": "encoder states that are attended to",
    "S": "the state that starts the decoder",
    "W": "the words that the decoder reads",
    "ES": "encoder states and the decoder's start",
    "EW": "encoder states and words",
    "SW": "the decoder's start and words",
    "ESW": "all three, which is the second run",
    "e_input": "input components of encoder states",
    "e_residual": "residuals of encoder states",
    "e_word": "the encoder state at the exchanged word",
    "e_context": "encoder states at all other words",
}
PATCH_NAME = {"patch": Column("what the first run has of the second", categories=PATCHES_OF)}
PATCH = {
    "share": Column("how far its rows go to the second run's: 0 not at all, 1 all the way"),
    "argmax": share("rows whose largest weight is elsewhere in the second run that have it there"),
}
PATCHED = {
    patch: Column(f"how far rows go to the second run's with {what} of it")
    for patch, what in sorted(PATCHES_OF.items())
}
PREDICTED = {
    "both": "encoder and decoder effects",
    "decoder": "mean effects on decoder states",
    "encoder": "mean effects on encoder states",
    "input": "the exchanged word's input component",
    "input_alone": "the same, with its residual at zero",
    "none": "no change",
    "uniform": "uniform attention",
}
PREDICTION_NAME = {
    "prediction": Column("what the second run's rows are predicted from", categories=PREDICTED)
}
PREDICTION = {
    "similarity": share("1 minus the total variation between predicted rows and the second run's"),
    "argmax": share("rows whose largest weight is predicted"),
    "gain": Column("part of what no change misses that is not missed; below 0 is worse"),
}
SIMILARITY = {name: share(f"similarity of rows predicted from {what}") for name, what in PREDICTED.items()}
TERM = {pair: Column(f"share of the scores' change at the fork that term {pair} makes") for pair in PAIRS}
MEMORY_OF = {
    "encoder_input": "input components of the encoder, by words after the exchanged one",
    "encoder_residual": "residuals of the encoder, by words after the exchanged one",
    "decoder": "residuals of the decoder on the same words, by step",
}
MEMORY = {
    "series": Column("what the exchange changes", categories=MEMORY_OF),
    "place": Column("words after the exchanged one, or step, from 0"),
    "change": Column("mean norm of the change, over that of states without temporal components"),
}
STEP = {
    "run": Column("first or second sentence of the pair"),
    "position": Column("source position of the exchanged word, from 0"),
    "source": Column("source sentence, words with spaces between"),
    "target_position": Column("step, from 0"),
    "predicted": Column("word that is predicted at this step"),
    "attention": Column("weights of the source positions at this step, with spaces between"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return what each kind of exchange does to attention; content words have no routes and patches."""
    asked = measurements(config)

    def table_of(records: Callable[[dict], Iterable[dict]], columns: Columns, row: str) -> Table:
        return suite_frame(asked, store, records=records, columns=SWAPPED | columns, names=NAMES, row=row)

    swaps = table_of(_swaps, SWAP, "an exchange in a network")
    changes = table_of(_changes, ROW_SET | CHANGE, "a set of rows of an exchange")
    routes = table_of(_routes, ROW_SET | ROUTE | SUM_OF_ROUTES, "a set of rows of an exchange")
    terms = table_of(_terms, TERM, "an exchange in a network")
    patches = table_of(_patches, ROW_SET | PATCH_NAME | PATCH, "a patch")
    patched = table_of(_patched, ROW_SET | PATCHED, "a set of rows of an exchange")
    predictions = table_of(_predicted_rows, ROW_SET | PREDICTION_NAME | PREDICTION, "a prediction")
    similarity = table_of(_similarity, ROW_SET | SIMILARITY, "a set of rows of an exchange")
    memory = table_of(_memory_of_order, MEMORY, "a place")
    examples = table_of(_examples, STEP, "a step of a pair")

    by_swap = [*BY_KIND, "swap"]
    by_rows = [*by_swap, *ROW_SET]
    by_place = summarise(memory, [*by_swap, "series", "place"], ["change"])
    drawn = routes.query("rows in @drawn", drawn=["fork", "own"])
    shares_of_swaps = [name for name in SWAP if name != "pairs"]
    return {
        "routes": drawn.select(*NAMES, *SWAPPED, *ROW_SET, *ROUTE),
        "patches": patched,
        "predictions": similarity,
        "memory": by_place.query("n > 0").select(*by_swap, "series", "place", *INTERVAL),
        "examples": examples.query("seed == 0"),
        "swaps": swaps,
        "changes": changes,
        "terms": terms,
        "swaps_by_kind": summarise(swaps, by_swap, shares_of_swaps),
        "changes_by_kind": summarise(changes, by_rows, CHANGE),
        "routes_by_kind": summarise(routes, by_rows, ROUTE | SUM_OF_ROUTES),
        "terms_by_kind": summarise(terms, by_swap, TERM),
        "patches_by_kind": summarise(patches, [*by_rows, "patch"], PATCH),
        "predictions_by_kind": summarise(predictions, [*by_rows, "prediction"], PREDICTION),
    }


def _named_swaps(m: dict, *, content: bool) -> Iterator[tuple[dict[str, str], dict]]:
    """Yield the columns that name each exchange, and what is measured of it; of content words if asked to."""
    for swap, measured in m.items():
        if content or measured["kind"] != "content":
            yield {"swap": swap, "swap_kind": measured["kind"]}, measured


def _swaps(m: dict) -> Iterator[dict]:
    for name, measured in _named_swaps(m, content=True):
        first_exact, second_exact = measured["exact"]
        first_attended, second_attended = measured["attended"]
        yield {
            **name,
            "pairs": measured["pairs"],
            "exact": {"first": first_exact, "second": second_exact},
            "attended": {"first": first_attended, "second": second_attended},
        }


def _changes(m: dict) -> Iterator[dict]:
    for name, measured in _named_swaps(m, content=True):
        for row_set in ROW_SETS:
            change, outside = measured["change"][row_set], measured["outside"][row_set]
            yield {**name, "rows": row_set, **change, "outside": outside}


def _routes(m: dict) -> Iterator[dict]:
    for name, measured in _named_swaps(m, content=False):
        for row_set in ("fork", "own", "same", "same_fork"):
            shares = measured["routes"][row_set]
            yield {**name, "rows": row_set, **shares, **_sums_of_routes(shares)}


def _sums_of_routes(shares: dict[str, float | None]) -> dict[str, float | None]:
    if None in shares.values():
        return dict.fromkeys(SUMS)
    return {name: sum(shares[route] for route in routes) for name, routes in SUMS.items()}


def _terms(m: dict) -> list[dict]:
    return [{**name, **measured["terms"]["fork"]} for name, measured in _named_swaps(m, content=False)]


def _patches(m: dict) -> Iterator[dict]:
    for name, measured in _named_swaps(m, content=False):
        for row_set, patches in measured["patches"].items():
            for patch, flipped in patches.items():
                yield {**name, "rows": row_set, "patch": patch, **flipped}


def _patched(m: dict) -> Iterator[dict]:
    """Yield one row for each set of rows of attention, a column for each patch."""
    for name, measured in _named_swaps(m, content=False):
        for row_set in ("fork", "own"):
            patches = measured["patches"][row_set]
            shares = {patch: flipped["share"] for patch, flipped in patches.items()}
            yield {**name, "rows": row_set, **shares}


def _predictions_of(m: dict) -> Iterator[tuple[dict[str, str], dict]]:
    for name, measured in _named_swaps(m, content=True):
        for row_set in ("all", "changed"):
            yield {**name, "rows": row_set}, measured["predictions"][row_set]


def _predicted_rows(m: dict) -> Iterator[dict]:
    for name, predictions in _predictions_of(m):
        for prediction, scores in predictions.items():
            yield {**name, "prediction": prediction, **scores}


def _similarity(m: dict) -> Iterator[dict]:
    """Yield one row for each set of rows of attention, a column for each prediction."""
    for name, predictions in _predictions_of(m):
        similarities = {prediction: scores["similarity"] for prediction, scores in predictions.items()}
        yield {**name, **similarities}


def _memory_of_order(m: dict) -> Iterator[dict]:
    for name, measured in _named_swaps(m, content=False):
        if measured["kind"] != "order":
            continue
        for series in MEMORY_OF:
            for place, change in enumerate(measured["memory"][series][:PLACES]):
                yield {**name, "series": series, "place": place, "change": change}


def _examples(m: dict) -> Iterator[dict]:
    """Yield a row for each step: the word predicted, and its row of attention in one string."""
    for name, measured in _named_swaps(m, content=False):
        example = measured["example"]
        for run in ("first", "second"):
            sentence = example[run]
            for step, thousandths in enumerate(sentence["attention"]):
                weights = [f"{weight / 1000:g}" for weight in thousandths]
                yield {
                    **name,
                    "run": run,
                    "position": example["position"],
                    "source": " ".join(sentence["source"]),
                    "target_position": step,
                    "predicted": sentence["target"][step],
                    "attention": " ".join(weights),
                }


def values(config: Config, tables: dict[str, Table]) -> dict:
    swap = "{task}.{kind}.{swap}."
    first = tables["swaps"].query("seed == 0")
    changes = tables["changes_by_kind"]
    return view(
        keyed(first, swap + "kind", ["swap_kind"]),
        keyed(first, swap + "pairs", ["pairs"]),
        keyed(tables["swaps_by_kind"], swap + "{quantity}"),
        keyed(changes.query("quantity != 'outside'"), swap + "change.{rows}.{quantity}"),
        keyed(changes.query("quantity == 'outside'"), swap + "outside.{rows}"),
        keyed(tables["predictions_by_kind"], swap + "predictions.{rows}.{prediction}.{quantity}"),
        keyed(tables["routes_by_kind"], swap + "routes.{rows}.{quantity}"),
        keyed(tables["patches_by_kind"], swap + "patches.{rows}.{patch}.{quantity}"),
        keyed(tables["terms_by_kind"], swap + "terms.fork.{quantity}"),
    )
