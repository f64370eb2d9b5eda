"""What the experiments on attention ask of one trained model, computed once and kept beside it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from attnlib.decomposition.components import STATE_PARTS, Components, Parts
from attnlib.decomposition.rows import total_variation
from attnlib.decomposition.shares import ShareSums, covariance_shares_by_sample
from attnlib.decomposition.substitution import SUBSETS, SubstitutionSums, similarity_by_sample
from attnlib.decomposition.terms import alignment_terms
from attnlib.decomposition.typicality import AttentionCells
from attnlib.errors import BadInput
from attnlib.models.attention import dot_scores, masked_softmax
from attnlib.models.corpus import Corpus, evaluation_batches
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.vocabulary import EOS, MARKS, PAD
from attnlib.trace import Trace
from companion.runs import registry
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from companion.runs.store import TrainedModel
from notebooks.shared.intervals import stratified_spearman
from notebooks.shared.sequence_course import judged_samples, load_task


@dataclass(frozen=True, eq=False)
class Fitted:
    """Components of both sides, and the number of samples they come from."""

    encoder: Components
    decoder: Components
    samples: int

    def split(self, trace: Trace) -> tuple[Parts, Parts]:
        """Decoder parts and encoder parts of a trace, in the order that ``alignment_terms`` takes them."""
        return (
            self.decoder.split(trace.decoder_states, trace.target_tokens, trace.target_mask),
            self.encoder.split(trace.encoder_states, trace.source_tokens, trace.source_mask),
        )


def fit_components(trained: TrainedModel, fit_samples: int, method: str = "means") -> Fitted:
    """Components of encoder and decoder states over the first ``fit_samples`` training samples.

    The tables have a row for every position of the longest sample, held-out ones and end marks included.
    """
    task, width = trained.task, trained.model.config.width
    longest = (
        int(max(getattr(corpus, f"{side}_lengths").max() for corpus in (task.train, task.held_out))) + 1
        for side in ("source", "target")
    )
    vocabularies = (task.source_vocabulary, task.target_vocabulary)
    encoder, decoder = (
        Components(width, method, n_tokens=len(words), n_positions=positions)
        for words, positions in zip(vocabularies, longest, strict=True)
    )
    fitted_on = task.train.subset(np.arange(min(fit_samples, len(task.train))))
    for trace in traces(trained.model, fitted_on):
        encoder.update(trace.encoder_states, trace.source_tokens, trace.source_mask)
        decoder.update(trace.decoder_states, trace.target_tokens, trace.target_mask)
    return Fitted(encoder, decoder, len(fitted_on))


def plain(number) -> float | None:
    """A number of any kind as JSON has it, to six digits; None where it is NaN."""
    value = round(float(number), 6)
    return None if value != value else value


LAGS = 6  # words back


def lagged_words(
    tokens: Int[Tensor, "batch length"], mask: Bool[Tensor, "batch length"], words: int
) -> Float[Tensor, "places lags_words"]:
    """For each valid place, indicators of the word 1, 2, … :data:`LAGS` places before."""
    columns = []
    for lag in range(1, LAGS + 1):
        indicator = torch.zeros(*tokens.shape, words, device=tokens.device)
        if lag < tokens.shape[1]:
            earlier = torch.nn.functional.one_hot(tokens[:, :-lag], words).to(indicator)
            indicator[:, lag:] = earlier
        columns.append(indicator[mask])
    return torch.cat(columns, dim=1)


EXAMPLES = 2  # single samples kept of the most frequent cell
ACROSS_SAMPLES = ("temporal_share", "input_share", "temporal_only", "input_only")


@measure(version=1)
def measure_alignment_terms(trained: TrainedModel, fit_samples: int) -> dict:
    """Shares, substitution test and typicality of one model with attention, on held-out samples.

    Components are fitted on the first ``fit_samples`` training samples. ``near_diagonal`` is the attention
    mass within one position of the diagonal; shares are by ``<decoder part>_<encoder part>``;
    ``across_samples``, the rank correlation of a sample's typicality with its own shares, among samples of
    the same lengths; ``unseen``, the share of tokens never seen in fitting.
    """
    task = trained.task
    fitted = fit_components(trained, fit_samples)
    shares, substitution, cells = ShareSums(), SubstitutionSums(), AttentionCells()
    near, rows = 0.0, 0
    unseen, valid = {"encoder": 0, "decoder": 0}, {"encoder": 0, "decoder": 0}
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    samples: dict[str, list[Tensor]] = {name: [] for name in ACROSS_SAMPLES}
    lengths: list[tuple[int, int]] = []
    for trace in traces(trained.model, task.held_out):
        parts = dict(zip(("decoder", "encoder"), fitted.split(trace), strict=True))
        for side, split in parts.items():
            unseen[side] += split.unseen_tokens
            valid[side] += split.valid
        terms = alignment_terms(parts["decoder"], parts["encoder"])
        shares.update(terms, trace.target_mask, trace.source_mask)
        substitution.update(terms, trace.target_mask, trace.source_mask)
        cells.update(trace.attention, trace.target_mask, trace.source_mask)
        near += float(_near_diagonal(trace)[trace.target_mask].sum())
        rows += int(trace.target_mask.sum())
        seen.append((trace.attention.cpu(), trace.target_mask.cpu(), trace.source_mask.cpu()))
        for name, values in _by_sample(terms, trace).items():
            samples[name].append(values)
        lengths += zip(trace.source_mask.sum(1).tolist(), trace.target_mask.sum(1).tolist(), strict=True)
    typicality = cells.result(torch.cat([cells.judge(*batch) for batch in seen]))
    totals = shares.result()
    return {
        "quality": trained.history["held_out"],
        "data": task.checksums,
        "typicality": {k: v for k, v in asdict(typicality).items() if k != "per_sample"},
        "near_diagonal": near / rows,
        "covariance_share": _by_pair(totals.covariance),
        "mean_absolute_share": _by_pair(totals.mean_absolute),
        "substitution": {
            name: {"similarity": outcome.similarity, "argmax_agreement": outcome.argmax_agreement}
            for name, outcome in substitution.result().items()
        },
        "across_samples": {
            name: _across_samples(typicality.per_sample, torch.cat(values), lengths)
            for name, values in samples.items()
        },
        "unseen": {side: unseen[side] / valid[side] for side in unseen},
        "fitted_on": fitted.samples,
        "cell": _frequent_cell(trained, cells),
    }


def _by_sample(terms: Tensor, trace: Trace) -> dict[str, Tensor]:
    """Shares of single samples and what a term alone rebuilds of them, each (batch,)."""
    masks = (trace.target_mask, trace.source_mask)
    shares = covariance_shares_by_sample(terms, *masks)
    return {
        "temporal_share": shares[:, 0, 0],
        "input_share": shares[:, 1, 1],
        "temporal_only": similarity_by_sample(terms, *masks, pairs=SUBSETS["temporal_only"]),
        "input_only": similarity_by_sample(terms, *masks, pairs=SUBSETS["input_only"]),
    }


def _across_samples(typicality: Tensor, values: Tensor, lengths: list[tuple[int, int]]) -> float | None:
    """Rank correlation within cells of equal lengths; None where it does not exist."""
    defined = ~(typicality.isnan() | values.isnan())
    strata = [cell for cell, is_defined in zip(lengths, defined.tolist(), strict=True) if is_defined]
    correlation = stratified_spearman(typicality[defined].numpy(), values[defined].numpy(), strata)
    return None if math.isnan(correlation) else correlation


def _by_pair(matrix: Tensor) -> dict[str, float]:
    """A (decoder part, encoder part) matrix by name, say ``temporal_input``."""
    pairs = ((i, j) for i in range(3) for j in range(3))
    return {f"{STATE_PARTS[i]}_{STATE_PARTS[j]}": float(matrix[i, j]) for i, j in pairs}


def _near_diagonal(trace: Trace) -> Tensor:
    """Attention mass within one position of the straight line from first to last, (batch, target)."""
    columns, lines = trace.source_mask.sum(1), trace.target_mask.sum(1)
    step = torch.arange(trace.attention.shape[1], device=columns.device)
    slope = (columns - 1) / (lines - 1).clamp(min=1)
    middle = step[None, :] * slope[:, None]  # (batch, target)
    position = torch.arange(trace.attention.shape[2], device=columns.device)
    close = (position[None, None, :] - middle[:, :, None]).abs() <= 1
    return (trace.attention * close).sum(-1)


def _frequent_cell(trained: TrainedModel, cells: AttentionCells) -> dict:
    """The cell of held-out samples with most members: its average matrix, and its first samples in full."""
    (source, target), samples = max(cells.counts.items(), key=lambda item: (item[1], item[0]))
    corpus = trained.task.held_out
    members = np.flatnonzero((corpus.source_lengths == source - 1) & (corpus.target_lengths == target - 1))
    examples = corpus.subset(members[:EXAMPLES])
    return {
        "source_length": source,
        "target_length": target,
        "samples": samples,
        "average": cells.average_attention((source, target)).tolist(),
        "examples": list(_examples(trained, examples)),
    }


def _examples(trained: TrainedModel, corpus: Corpus) -> Iterable[dict]:
    task = trained.task
    for trace in traces(trained.model, corpus):
        for sample in range(len(trace.attention)):
            yield {
                "source": task.source_vocabulary.decode(trace.source_tokens[sample].tolist()),
                "predicted": task.target_vocabulary.decode(trace.target_outputs[sample].tolist()),
                "attention": trace.attention[sample].tolist(),
            }


# Parts of states exchanged in the forward pass of one network: how far attention and output follow.
#
# Attention reads the query h^D_s and the keys h^E_t. On either side one part is exchanged, and the network
# goes on from there: scores, softmax, context and output are its own. The values that the context sums and
# the decoder state that the readout sees stay as they were, so that whatever changes in the output has come
# through attention.
#
# ``exchanged``  the part is that of another place, drawn at random: of the same sample for ``temporal`` and
#                ``state`` (all three parts), of the whole batch for the other two
# ``removed``    the part is its mean: over positions for ``temporal``, zero for the other two
# ``next_step``  the query's temporal part is that of the step after

_BATCH = 256
SIDES = ("decoder", "encoder")
SEED = 0x1C4A  # of the places that parts are taken from
States = Float[Tensor, "batch length width"]
Run = tuple[Float[Tensor, "batch target source"], Int[Tensor, "batch target"]]  # attention, words written


@measure(version=1)
def measure_interchange(trained: TrainedModel, fit_samples: int, samples: int) -> dict:
    """Every exchange on the first held-out ``samples``, components fitted on training samples.

    By ``<way>.<side>.<part>``, over all valid steps: ``variation``, mean total variation between rows of
    attention before and after; ``moved``, share of rows whose largest weight is elsewhere; ``accuracy``,
    share of right words, end marks included; ``changed``, share of words that differ from what the network
    writes left alone. ``next_step`` judges steps that another follows: ``attention``, of those whose next row
    has its largest weight elsewhere, the share that has it there now; ``word``, of those whose next word is
    another one, the share that writes it now; None where there are no such steps.
    """
    task, model = trained.task, trained.model
    fitted = fit_components(trained, fit_samples)
    corpus = task.held_out.subset(np.arange(min(samples, len(task.held_out))))
    draw = torch.Generator().manual_seed(SEED)
    sums: dict[tuple[str, ...], Tensor] = {}
    with torch.inference_mode():
        for batch in evaluation_batches(corpus, _BATCH):
            for name, counted in _batch(model, model(batch.to(model.readout.weight.device)), fitted, draw):
                sums[name] = sums.get(name, 0) + counted
    numbers: dict = {}
    for (*path, last), (total, count) in sums.items():
        here = numbers
        for name in path:
            here = here.setdefault(name, {})
        here[last] = round(float(total / count), 6) if count else None
    return numbers


def _batch(model: EncoderDecoder, trace: Trace, fitted: Fitted, draw: torch.Generator):
    """(name, (sum, count)) of every number of one batch."""
    states = dict(zip(SIDES, (trace.decoder_states, trace.encoder_states), strict=True))
    parts = dict(zip(SIDES, fitted.split(trace), strict=True))
    alone = attend(model, trace, states)
    right, rows = trace.target_outputs, trace.target_mask
    yield ("accuracy",), _mean((alone[1] == right)[rows])
    for side in SIDES:
        of_side, others = parts[side], exchanged(parts[side], draw)
        positions = getattr(fitted, side)
        weights = positions.position_counts.to(of_side.temporal)
        mean = (weights @ positions.temporal.to(of_side.temporal) / weights.sum()) * of_side.mask[..., None]
        means = {"temporal": mean, "input": torch.zeros_like(mean), "residual": torch.zeros_like(mean)}
        ways = {"exchanged": others, "removed": means}
        for way, substitutes in ways.items():
            for part, substitute in substitutes.items():
                original = of_side.total() if part == "state" else getattr(of_side, part)
                patched = states[side] - original + substitute
                attention, words = attend(model, trace, states | {side: patched})
                moved = attention.argmax(-1) != alone[0].argmax(-1)
                name = (way, side, part)
                yield (*name, "variation"), _mean(total_variation(attention, alone[0])[rows])
                yield (*name, "moved"), _mean(moved[rows])
                yield (*name, "accuracy"), _mean((words == right)[rows])
                yield (*name, "changed"), _mean((words != alone[1])[rows])
    shifted = parts["decoder"].temporal.roll(-1, dims=1)
    patched = states["decoder"] - parts["decoder"].temporal + shifted
    here, there = (
        {"attention": attention.argmax(-1), "word": words}
        for attention, words in (alone, attend(model, trace, states | {"decoder": patched}))
    )
    for name, before in here.items():
        upcoming = before.roll(-1, dims=1)
        judged = rows & rows.roll(-1, dims=1) & (upcoming != before)
        judged[:, -1] = False
        yield ("next_step", name), _mean((there[name] == upcoming)[judged])


def attend(model: EncoderDecoder, trace: Trace, states: dict[str, States]) -> Run:
    """Attention of these queries and keys, and the words written from the states as they were."""
    attention, logits = attend_and_read(model, trace, states)
    return attention, logits.argmax(-1)


def attend_and_read(
    model: EncoderDecoder, trace: Trace, states: dict[str, States]
) -> tuple[Float[Tensor, "batch target source"], Float[Tensor, "batch target words"]]:
    """Attention of these queries and keys, and the logits that are read from the states as they were."""
    attention = masked_softmax(dot_scores(states["decoder"], states["encoder"]), trace.source_mask)
    context = attention @ trace.encoder_states  # (batch, target, width)
    features = torch.cat([trace.decoder_states, context], dim=-1)  # (batch, target, 2 width)
    return attention, model.readout(features)


def exchanged(parts: Parts, draw: torch.Generator) -> dict[str, States]:
    """Parts of other places, zero at padding: a random order of the places of a sample, or of the batch.

    Temporal parts depend on the position alone, so another sample's would be the same.
    """
    mask = parts.mask
    keys = torch.rand(mask.shape, generator=draw).to(mask.device).masked_fill(~mask, torch.inf)
    # The i-th valid place of a sample receives from the i-th of a random order: valid places come first.
    within = keys.argsort(dim=1)[..., None].expand_as(parts.temporal)
    order = torch.randperm(int(mask.sum()), generator=draw).to(mask.device)

    def across(part: States) -> States:
        taken = torch.zeros_like(part)
        taken[mask] = part[mask][order]
        return taken

    exchanged_parts = {"temporal": parts.temporal.gather(1, within)}
    exchanged_parts |= {name: across(getattr(parts, name)) for name in STATE_PARTS[1:]}
    return exchanged_parts | {"state": parts.total().gather(1, within)}


def _mean(values: Tensor) -> Float[Tensor, "2"]:
    return torch.tensor([float(values.double().sum()), float(values.numel())], dtype=torch.float64)


# Networks from sequence to sequence, by their recordings.

_OF_ALL = 4  # at most one sentence in so many of a length is kept to judge the probe on


@measure(version=1)
def measure_by_length(recording: Recording) -> dict:
    """Quality on held-out samples by length of the target, end marks left out.

    ``bits``: log2 of the vocabulary, words drawn evenly, less the cross-entropy of the network under teacher
    forcing. Summed over a sentence whose words are independent it is a lower bound on the information that
    reaches the decoder. ``exact_match`` is of what the network writes on its own.
    """
    judged = judged_samples(recording.spec.resolved)
    words = len(load_task(recording.spec.resolved).target_vocabulary) - len(MARKS)
    lengths = judged.target_lengths
    right, loss = recording["right"][-1].double().numpy(), recording["loss"][-1].double().numpy()
    exact = exact_matches(recording, judged)
    columns: dict[str, list] = {
        name: [] for name in ("lengths", "samples", "token_accuracy", "exact_match", "bits", "bits_of_word")
    }
    for length in np.unique(lengths).tolist():
        chosen = lengths == length
        gained = math.log2(words) - loss[chosen, :length] / math.log(2)
        row = (length, int(chosen.sum()), right[chosen, :length].mean(), exact[chosen].mean())
        for name, value in zip(columns, (*row, gained.sum(1).mean(), gained.mean()), strict=True):
            columns[name].append(float(value) if isinstance(value, np.floating) else value)
    parameters = sum(v.numel() for name, v in recording.tensors.items() if name.startswith("network."))
    return columns | {"vocabulary": words, "parameters": parameters}


def exact_matches(recording: Recording, judged: Corpus) -> np.ndarray:
    """By sample: whether the network writes the target, its end mark included, on its own."""
    written = recording["written"].numpy()
    targets = (np.append(judged.target(i), EOS) for i in range(len(judged)))
    pairs = zip(written, targets, strict=True)
    return np.array([np.array_equal(row[row != PAD], target) for row, target in pairs])


@measure(version=1)
@torch.no_grad()
def measure_summary_bits(recording: Recording, *, length: int, samples: int) -> dict:
    """Bits that a linear softmax reads off the one vector that the decoder starts in, by position.

    Sentences of one length are drawn anew, ``samples`` to fit the probe on and half as many to judge it on
    (fewer where so many would be a large part of all sentences of the length). The vector is the decoder's
    first state, an LSTM's memory beside it.
    """
    settings = recording.spec.resolved
    network = registry.load(recording.spec.procedure).recorded_network(recording)
    options = dict(settings.task_options) | {"min_length": length, "max_length": length}
    words = len(load_task(settings).source_vocabulary) - len(MARKS)
    others = max(1, min(samples // 2, words**length // _OF_ALL))
    sizes = {"n_train": samples, "n_held_out": others, "seed": 1 + settings.seed}
    task = load_task(type(settings)(task=settings.task, options=tuple((options | sizes).items())))
    parts = [_summaries(network, corpus) for corpus in (task.train, task.held_out)]
    bits = probe_bits(*parts[0], *parts[1], words=words)
    return {"bits": bits.tolist(), "length": length, "vocabulary": words}


def _summaries(network: torch.nn.Module, corpus: Corpus) -> tuple[torch.Tensor, torch.Tensor]:
    """The decoder's first state of each sample, and the words of its source counted from 0."""
    length = int(corpus.source_lengths[0])
    words = torch.from_numpy(corpus.source_ids.reshape(-1, length).astype(np.int64)) - len(MARKS)
    vectors: list[torch.Tensor] = [torch.empty(0)] * len(corpus)
    for batch in evaluation_batches(corpus, _BATCH):
        _, carried = network.encode(batch.source, batch.source_mask)
        parts = [part for part in (carried.hidden, carried.memory) if part is not None]
        joined = torch.cat([part.flatten(1) for part in parts], dim=1)
        for index, row in zip(batch.indices.tolist(), joined, strict=True):
            vectors[index] = row
    return torch.stack(vectors), words


# How many bits of a sequence a linear softmax reads off one vector: a lower bound on what is kept there.

PENALTIES = (1e-1, 1e-2, 1e-3)  # each fit starts where the one before it ended, so the stiffest comes first
_LEFT_OUT = 5  # every fifth sample, to choose the penalty on
_ITERATIONS = 200
_ROUGH, _FINE = 1e-4, 1e-6  # nats a position that a step promises, below which it was the last


Vectors, Ids = Float[Tensor, "samples width"], Int[Tensor, "samples length"]
Others, OtherIds = Float[Tensor, "others width"], Int[Tensor, "others length"]
Weights = Float[Tensor, "width length*words"]  # a map for each position, beside each other
ByPosition = Float[Tensor, " length"]


def probe_bits(
    fitted: Vectors, fitted_words: Ids, judged: Others, judged_words: OtherIds, *, words: int,
    penalties: Sequence[float] = PENALTIES,
) -> ByPosition:  # fmt: skip
    """Bits about the word at each position, by position, that a softmax regression finds in a vector.

    At each position a map of its own from the vector to the words is fitted, and judged on other samples:
    log2(words) less its cross-entropy in bits. Where words are drawn evenly and independently, a sum over
    positions is a lower bound on the mutual information of vector and sequence (Barber and Agakov 2003), so
    on what the vector keeps. A probe worse than guessing gives a negative number. With few samples a map
    fits what is peculiar to them, and the bound is far below what is there: more samples raise it.

    Vectors are standardised by those fitted on; ids count from 0. Half of a penalty (above 0) times the
    squared weights is added to the mean loss of a position. Of several, each position takes the one that is
    best on a fifth of the fitted samples, left out for that choice and then fitted on with the others.
    """
    for ids in (fitted_words, judged_words):
        if int(ids.min()) < 0 or int(ids.max()) >= words:
            raise BadInput(f"word ids from {int(ids.min())} to {int(ids.max())}; expected 0 … {words - 1}")
    mean, spread = fitted.double().mean(0), fitted.double().std(0, correction=0).clamp(min=1e-6)
    inputs, others = (_with_one((part.double() - mean) / spread).float() for part in (fitted, judged))
    chosen, weights = _chosen(inputs, fitted_words, words, penalties)
    for penalty in chosen.unique():
        of_penalty = chosen == penalty
        columns = of_penalty.repeat_interleave(words)
        weights[:, columns] = _fitted_weights(
            inputs, fitted_words[:, of_penalty], words, float(penalty), weights[:, columns], _FINE
        )
    return _bits(others, judged_words, words, weights)


def _with_one(vectors: Tensor) -> Tensor:
    return torch.cat([vectors, vectors.new_ones(len(vectors), 1)], dim=1)


def _bits(inputs: Vectors, ids: Ids, words: int, weights: Weights) -> ByPosition:
    log_probability = (inputs @ weights).unflatten(-1, (-1, words)).log_softmax(-1)
    of_words = log_probability.gather(-1, ids[..., None].long())[..., 0]  # nats: (samples, length)
    return (math.log(words) + of_words.double().mean(0)) / math.log(2)


def _chosen(inputs: Vectors, ids: Ids, words: int, penalties: Sequence[float]) -> tuple[ByPosition, Weights]:
    """The penalty of each position, and weights close to those that it leads to."""
    left_out = torch.arange(len(inputs)) % _LEFT_OUT == _LEFT_OUT - 1
    weights = inputs.new_zeros(inputs.shape[1], ids.shape[1] * words)
    chosen = torch.full((ids.shape[1],), float(penalties[0]), dtype=torch.float64)
    if len(penalties) == 1 or not left_out.any():
        return chosen, weights
    best, kept = torch.full_like(chosen, -torch.inf), weights.clone()
    for penalty in penalties:
        weights = _fitted_weights(inputs[~left_out], ids[~left_out], words, penalty, weights, _ROUGH)
        bits = _bits(inputs[left_out], ids[left_out], words, weights)
        better = bits > best
        best[better], chosen[better] = bits[better], penalty
        columns = better.repeat_interleave(words)
        kept[:, columns] = weights[:, columns]
    return chosen, kept


def _fitted_weights(
    inputs: Vectors, ids: Ids, words: int, penalty: float, start: Weights, enough: float
) -> Weights:
    """The maps of all positions beside each other; the last input is the one that a bias stands on.

    Every step goes to the minimum of a quadratic that lies above the loss: the Hessian of a softmax's
    cross-entropy is nowhere above ½ XᵀX / n for each word (Böhning 1992), one matrix for all positions and
    steps. Nesterov's momentum speeds it up, and starts again where it points uphill (O'Donoghue and Candès
    2015). The last step is one whose quadratic promises less than ``enough`` nats a position.
    """
    samples, width = inputs.shape
    held = penalty * (torch.arange(width) < width - 1).to(inputs.dtype)[:, None]  # the bias is free
    bound = torch.linalg.cholesky((inputs.T @ inputs / (2 * samples) + held.flatten().diag()).double())
    solved = torch.cholesky_inverse(bound).to(inputs.dtype)
    target = one_hot(ids.long(), words).to(inputs.dtype).flatten(1)
    weights = ahead = start
    pace = 1.0
    for _ in range(_ITERATIONS):
        probability = (inputs @ ahead).unflatten(-1, (-1, words)).softmax(-1).flatten(1)
        slope = inputs.T @ (probability - target) / samples + held * ahead
        move = solved @ slope
        reached = ahead - move
        if float((slope * move).sum()) / 2 < enough * ids.shape[1]:
            return reached
        uphill = bool(((ahead - reached) * (reached - weights)).sum() > 0)
        following = 1.0 if uphill else (1 + math.sqrt(1 + 4 * pace**2)) / 2
        ahead = reached if uphill else reached + (pace - 1) / following * (reached - weights)
        weights, pace = reached, following
    return weights


THIRDS = ("first", "middle", "last")


@measure(version=1)
def measure_learning_curve(recording: Recording) -> dict:
    """Words right under teacher forcing at each snapshot, end marks left out.

    Also of the words in each third of their sentence (by the middle of a word's place; sentences under three
    words have no middle third); at the last snapshot ``by_place``, counted from the beginning, and
    ``exact_match``, of what the network writes on its own.
    """
    judged = judged_samples(recording.spec.resolved)
    right = recording["right"].double().numpy()  # (snapshots, samples, places)
    lengths = judged.target_lengths
    places = np.arange(right.shape[2])
    valid = places < lengths[:, None]
    third = np.minimum(3 * (places + 0.5) / lengths[:, None], 2.999).astype(int)
    parts = {name: valid & (third == i) for i, name in enumerate(THIRDS)}
    curves = {
        name: [float(snapshot[chosen].mean()) if chosen.any() else None for snapshot in right]
        for name, chosen in ({"token_accuracy": valid} | parts).items()
    }
    return {
        "steps": recording["steps"].tolist(),
        **curves,
        "by_place": [float(right[-1][valid[:, i], i].mean()) for i in range(int(lengths.max()))],
        "exact_match": float(exact_matches(recording, judged).mean()),
    }
