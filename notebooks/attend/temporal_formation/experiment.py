"""How temporal components form, by recurrence or from position codes, and what moves when clocks shift."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.decomposition import STATE_PARTS, Parts, ShareSums, alignment_terms
from attnlib.decomposition.components import Components
from attnlib.errors import BadInput
from attnlib.models.config import Cell, Positions
from attnlib.models.corpus import Batch, Corpus, evaluation_batches
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.recurrence import State
from attnlib.models.vocabulary import EOS
from attnlib.trace import Trace
from companion.data import registry
from companion.data.task import Task
from companion.results.config import Attending, Positive, setting
from companion.results.config import Task as TaskName
from companion.results.frames import Table, frame, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.rounding import rounded
from companion.runs.columns import NETWORK, Column, Columns, share
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel, load_task
from companion.runs.suite import point
from notebooks.shared.intervals import kind
from notebooks.shared.measure import Fitted, fit_components
from notebooks.shared.suite import BY_KIND, FilesConfig, each_planned
from notebooks.shared.summaries import rows_of, summarise, wide

# States that a network forms without words, and how much of its temporal components they give. A recurrent
# network is run on inputs that say nothing: zeros (``null``), the mean embedding of the fitting samples
# (``average``), or that at each position (``average_by_position``, which knows that a sentence begins with
# its mark and ends in another). For AO they leave the position codes alone: ĥ_t = tanh(W (x̄ + p_t) + b).

INPUTS = ("null", "average", "average_by_position")
Curve, Counts = Float[Tensor, "positions width"], Float[Tensor, " positions"]


@dataclass(frozen=True, eq=False)
class Curves:
    """A state at each position, of both sides."""

    encoder: Float[Tensor, "source width"]
    decoder: Float[Tensor, "target width"]


def wordless_input(
    embedding: Float[Tensor, "tokens width"], components: Components, kind: str, length: int
) -> Float[Tensor, "length width"]:
    """The input that stands for words at every position; beyond the fitted positions the overall mean."""
    if kind == "null":
        return torch.zeros(length, embedding.shape[1]).to(embedding)
    counts = components.pair_counts.to(embedding)  # (tokens, positions)
    mean = counts.sum(1) @ embedding / counts.sum()
    average = mean.expand(length, -1)
    if kind == "average":
        return average
    inputs = average.clone()
    for position in range(min(length, components.n_positions)):
        at_position = counts[:, position]
        if at_position.any():
            inputs[position] = at_position @ embedding / at_position.sum()
    return inputs


def wordless_states(trained: TrainedModel, fitted: Fitted, kind: str) -> Curves:
    """Mean states without words at every position of the components' tables."""
    model, corpus = trained.model, trained.task.train.subset(np.arange(fitted.samples))
    source_lengths = corpus.source_lengths + 1  # with end marks
    target_lengths = corpus.target_lengths + 1
    n_source, n_target = fitted.encoder.n_positions, fitted.decoder.n_positions
    with torch.inference_mode():
        source = wordless_input(model.source_embedding.weight, fitted.encoder, kind, n_source)
        target = wordless_input(model.target_embedding.weight, fitted.decoder, kind, n_target)
        encoder = model.encode_inputs(source[None])[0][0]
        lengths = np.unique(source_lengths)
        starts = last_states(model, source, lengths)
        if starts is None:
            return Curves(encoder, model.decode_inputs(target[None], None)[0])
        states = model.decode_inputs(target.expand(len(lengths), -1, -1), starts)  # (lengths, target, width)
    reached = [_reached(target_lengths[source_lengths == length], n_target) for length in lengths]
    reached = torch.from_numpy(np.array(reached)).to(states.device, torch.float64)  # (lengths, target)
    weight = reached / reached.sum(0).clamp(min=1)
    decoder = (weight[:, :, None] * states.double()).sum(0)
    return Curves(encoder, decoder.to(states.dtype))


def _reached(target_lengths: Int[np.ndarray, " samples"], positions: int) -> list[int]:
    """How many targets reach each position."""
    return [int((target_lengths > position).sum()) for position in range(positions)]


def last_states(model, inputs: Float[Tensor, "source width"], lengths: np.ndarray) -> State | None:
    """The state that each length of input ends in, a row a length; None for AO."""
    rows = inputs.expand(len(lengths), -1, -1)[:, : int(lengths.max())]
    _, last = model.encode_inputs(rows, torch.from_numpy(lengths).to(inputs.device))
    return last


def compared(curve: Curve, temporal: Curve, counts: Counts) -> dict[str, float | None]:
    """``r2``: negative where the curve is further off than the mean; ``r2_centred``: after both had their
    mean taken off, since attention does not see an offset of all encoder states. None where μ does not move.
    """
    weight = (counts.double() / counts.sum())[:, None]
    curve, temporal = curve.double(), temporal.double()
    temporal_moves = temporal - (weight * temporal).sum(0)  # (position, width)
    curve_moves = curve - (weight * curve).sum(0)
    temporal_spread = float((weight * temporal_moves.square()).sum())
    curve_spread = float((weight * curve_moves.square()).sum())
    if temporal_spread == 0:
        return dict.fromkeys(("r2", "r2_centred", "cosine"))
    error = float((weight * (temporal - curve).square()).sum())
    centred_error = float((weight * (temporal_moves - curve_moves).square()).sum())
    cosine = 0.0
    if curve_spread > 0:
        together = float((weight * temporal_moves * curve_moves).sum())
        cosine = together / (temporal_spread * curve_spread) ** 0.5
    return {
        "r2": 1 - error / temporal_spread,
        "r2_centred": 1 - centred_error / temporal_spread,
        "cosine": cosine,
    }


def plane(temporal: Curve, counts: Counts) -> tuple[Float[Tensor, "width 2"], Float[Tensor, " width"]]:
    """The two main directions of the temporal components over positions, and their mean."""
    temporal = temporal.double()
    weight = (counts.double() / counts.sum())[:, None]
    centre = (weight * temporal).sum(0)
    weighted = (temporal - centre) * weight.sqrt()  # (position, width)
    directions = torch.linalg.svd(weighted, full_matrices=False).Vh[:2].T  # (width, 2)
    along = (temporal @ directions)[counts > 0]
    first, last = along[0], along[-1]
    return directions * torch.where(last < first, -1.0, 1.0), centre


# Sentences longer than any a network was trained on: does attention keep to its place, do clocks go on?

SAMPLES = 200  # of each length
FACTORS = (1.0, 1.25, 1.5, 2.0)  # of the longest length trained on
Attention = Float[Tensor, "batch target source"]


def longer_task(spec, length: int) -> Task | None:
    """The task of a model with sentences of one other length; None where its lengths cannot be set."""
    if not {"min_length", "max_length"} <= set(registry.options_of(spec.task)):
        return None
    options = dict(spec.task_options)
    options |= {"min_length": length, "max_length": length, "n_held_out": SAMPLES, "n_train": SAMPLES}
    longer = load_task(spec.task, tuple(sorted(options.items())))
    planned = load_task(spec.task, spec.task_options)
    for side in ("source_vocabulary", "target_vocabulary"):
        if getattr(longer, side) != getattr(planned, side):
            raise BadInput(f"{spec.task} at length {length} has another {side} than at its own lengths")
    return longer


def expected_places(task: Task, batch: Batch) -> Int[Tensor, "batch target"]:
    """The source position of each word to write, by the task's links; −1 where none is known."""
    places = torch.full(tuple(batch.target_output.shape), -1)
    n_words = (batch.target_mask.sum(1) - 1).tolist()
    for row, sample in enumerate(batch.indices.tolist()):
        if task.gold is None:
            places[row, : n_words[row]] = torch.arange(n_words[row])
        elif sample < len(task.gold):  # real text may have links of its first samples alone
            for place, step in sorted(task.gold[sample]):  # of a word with several the last one counts
                places[row, step] = place
    return places


def measure_longer(trained: TrainedModel, fitted: Fitted) -> dict | None:
    """``in_place``: attention within one position of the word's own; ``leaves``: first target position where
    less than half is; ``speed``: |μ_{t+1} − μ_t| of the encoder over its mean within the shortest sentence
    trained on. None where lengths are fixed.
    """
    lengths_trained_on = trained.task.train.source_lengths
    shortest, longest = int(lengths_trained_on.min()), int(lengths_trained_on.max())
    lengths, positions, average_input = [], [], None
    for factor in FACTORS:
        length = round(factor * longest)
        task = longer_task(trained.spec, length)
        if task is None:
            return None
        try:
            sentences = LongSentences.of(trained, task)
        except BadInput:  # a table of positions that ends before the sentence does
            continue
        lengths.append({"length": length, "factor": factor, **sentences.over_positions()})
        if factor == FACTORS[-1]:
            positions = sentences.at_positions(shortest)
            average_input = _beyond(trained, fitted, sentences.temporal, longest)
    return {
        "trained_up_to": longest,
        "lengths": lengths,
        "positions": positions,
        "average_input": average_input,
    }


@dataclass(frozen=True, eq=False)
class LongSentences:
    """What a network does on sentences of one length.

    Attributes:
        word_accuracy: share of words predicted correctly, by target position.
        in_place: attention within one position of the word's own.
        temporal_in_place: the same of attention from temporal components alone.
        temporal: the encoder's temporal components on these sentences.
    """

    word_accuracy: Float[Tensor, " target"]
    in_place: Float[Tensor, " target"]
    temporal_in_place: Float[Tensor, " target"]
    temporal: Curve

    @classmethod
    def of(cls, trained: TrainedModel, task: Task) -> "LongSentences":
        """Of the held-out sentences of a task, all of one length."""
        model, length = trained.model, int(task.held_out.source_lengths[0])
        device, width, positions = model.readout.weight.device, model.config.width, length + 1
        encoder = Components(width, n_tokens=len(task.source_vocabulary), n_positions=positions)
        decoder = Components(width, n_tokens=len(task.target_vocabulary), n_positions=positions)
        right = torch.zeros(length, dtype=torch.float64)
        near = torch.zeros(length, dtype=torch.float64)
        with torch.inference_mode():
            for batch in evaluation_batches(task.held_out, 256):
                batch = batch.to(device)
                trace = model(batch)
                encoder.update(trace.encoder_states, trace.source_tokens, trace.source_mask)
                decoder.update(trace.decoder_states, trace.target_tokens, trace.target_mask)
                is_right = (trace.logits.argmax(-1) == trace.target_outputs) & (trace.target_outputs != EOS)
                right += is_right.sum(0).double().cpu()[:length]
                near += near_place(trace.attention.cpu(), expected_places(task, batch)).sum(0)[:length]
        temporal_scores = decoder.temporal @ encoder.temporal.T  # (target, source)
        near_by_time = torch.zeros(length, dtype=torch.float64)
        for batch in evaluation_batches(task.held_out, 256):
            attention = temporal_scores.softmax(-1).expand(len(batch), -1, -1)
            near_by_time += near_place(attention, expected_places(task, batch)).sum(0)[:length]
        samples = len(task.held_out)
        return cls(right / samples, near / samples, near_by_time / samples, encoder.temporal.cpu())

    def over_positions(self) -> dict[str, float | int | None]:
        """Means over target positions, and the first position that attention leaves."""
        left = (self.in_place < 0.5).nonzero().flatten()
        return {
            "word_accuracy": round(float(self.word_accuracy.mean()), 6),
            "in_place": round(float(self.in_place.mean()), 6),
            "leaves": int(left[0]) if len(left) else None,
        }

    def at_positions(self, shortest: int) -> list[dict[str, float]]:
        """Numbers of each target position, with the speed relative to the shortest sentence trained on."""
        step_sizes = (self.temporal[1:] - self.temporal[:-1]).norm(dim=-1)
        speed = step_sizes / step_sizes[: shortest - 1].mean()
        columns = {
            "word_accuracy": self.word_accuracy,
            "in_place": self.in_place,
            "temporal_in_place": self.temporal_in_place,
            "speed": speed.double(),
        }
        rows = []
        for position in range(len(self.in_place)):
            numbers = {name: round(float(values[position]), 5) for name, values in columns.items()}
            rows.append({"position": position, **numbers})
        return rows


def near_place(attention: Attention, places: Int[Tensor, "batch target"]) -> Float[Tensor, "batch target"]:
    """Attention mass within one position of the place; 0 where none is known."""
    column = torch.arange(attention.shape[-1])
    is_close = (column - places[:, :, None]).abs() <= 1
    is_known = (places >= 0)[:, :, None]
    return (attention.double() * (is_close & is_known)).sum(-1)


def _beyond(trained: TrainedModel, fitted: Fitted, temporal: Tensor, longest: int) -> dict | None:
    """Agreement of the course on average input with μ_t at the positions past the longest sentence."""
    words = len(temporal) - 1  # the end mark stands past them all
    with torch.inference_mode():
        inputs = wordless_input(trained.model.source_embedding.weight, fitted.encoder, "average", words)
        states = trained.model.encode_inputs(inputs[None])[0][0].cpu()
    counts = torch.ones(words - longest, dtype=torch.float64)
    agreement = compared(states[longest:words], temporal[longest:words], counts)
    return rounded(agreement, decimals=6)


# One side's clock runs ahead of the other's. Encoder ahead by k: a decoder that looks for the encoder's clock
# finds its own step k places earlier. Decoder ahead by k: step s attends as step s + k did.
MOVED = ("expected", "largest", "centre", "followed", "similarity")
OFFSETS = (1, 2, 3, 5)  # places; sources of 15 and more words leave rows for each of them
States = tuple[Tensor, Tensor]  # encoder's, decoder's


@dataclass(frozen=True, kw_only=True)
class Shift:
    """A way to set the clocks of a network apart, by any number of places.

    With attention only (AO) the positions are counted from later on. A recurrent network reads as many inputs
    more, which say nothing of the sentence.

    Attributes:
        encoder: True if the encoder's clock is set ahead.
        decoder: True if the decoder's is.
        inputs: what a recurrent network reads: the average input, zeros (``null``), or its first words.
        after_mark: True if a recurrent decoder reads its begin mark before these inputs.
        handed_on: True if the decoder starts from the state that the shifted encoder ends in. Otherwise it
            starts from that of the encoder as it is, so that only one clock is moved.
    """

    encoder: bool = False
    decoder: bool = False
    inputs: Literal["average", "null", "words"] = "average"
    after_mark: bool = True
    handed_on: bool = False

    @property
    def ahead(self) -> Literal["encoder", "decoder", "none"]:
        """Which of the clocks is ahead of the other."""
        if self.encoder == self.decoder:
            return "none"
        return "encoder" if self.encoder else "decoder"


SHIFTS_BY_POSITIONS = {
    "encoder": Shift(encoder=True),
    "decoder": Shift(decoder=True),
    "both": Shift(encoder=True, decoder=True),
}
SHIFTS_BY_INPUTS = SHIFTS_BY_POSITIONS | {
    "encoder_null": Shift(encoder=True, inputs="null"),
    "decoder_null": Shift(decoder=True, inputs="null"),
    "encoder_words": Shift(encoder=True, inputs="words"),
    "decoder_words": Shift(decoder=True, inputs="words"),
    "decoder_before_mark": Shift(decoder=True, after_mark=False),
    "encoder_handed_on": Shift(encoder=True, handed_on=True),
}


def shifts_of(model: EncoderDecoder) -> dict[str, Shift]:
    """The ways to set the clocks of a network apart, by name."""
    return SHIFTS_BY_POSITIONS if model.config.architecture == "AO" else SHIFTS_BY_INPUTS


def shifted_states(
    model: EncoderDecoder, fitted: Fitted, batch: Batch, *, shift: Shift, offset: int
) -> States:
    """States of encoder and decoder with the clocks set apart by some places."""
    encoder_offset = offset if shift.encoder else 0
    decoder_offset = offset if shift.decoder else 0
    if model.config.architecture == "AO":
        states, _ = model.encode(batch.source, batch.source_mask, first_position=encoder_offset)
        return states, model.decode(batch.target_input, None, first_position=decoder_offset)

    source = model.source_embedding(batch.source)  # (batch, source, width)
    lengths = batch.source_mask.sum(1)

    def encode(steps: int) -> tuple[Tensor, State]:
        """Return the states of the sentence, and the last one, after some steps of other inputs."""
        before = _inputs(shift.inputs, source, steps, model.source_embedding.weight, fitted.encoder)
        states, last = model.encode_inputs(torch.cat([before, source], dim=1), lengths + steps)
        return states[:, steps:], last

    states, start = encode(encoder_offset)
    if not shift.handed_on:
        _, start = encode(0)

    target = model.target_embedding(batch.target_input)  # (batch, target, width), the begin mark first
    mark, words = target[:, :1], target[:, 1:]
    before = _inputs(shift.inputs, words, decoder_offset, model.target_embedding.weight, fitted.decoder)
    read = [mark, before, words] if shift.after_mark else [before, mark, words]
    decoded = model.decode_inputs(torch.cat(read, dim=1), start)
    return states, decoded[:, decoder_offset:]


def _inputs(
    kind: str,
    words: Float[Tensor, "batch length width"],
    steps: int,
    embedding: Float[Tensor, "tokens width"],
    components: Components,
) -> Float[Tensor, "batch steps width"]:
    """Inputs for as many steps of each sample as a clock is set ahead."""
    if kind == "words":  # a sample of fewer words than steps has no row that can show such an offset
        last = words.shape[1] - 1
        return words[:, [min(step, last) for step in range(steps)]]
    inputs = wordless_input(embedding, components, kind, steps)
    return inputs.expand(len(words), -1, -1)


class _Displacements:
    """Sums over rows of attention, of one way to set the clocks apart."""

    def __init__(self) -> None:
        self.rows = dict.fromkeys(OFFSETS, 0)
        self.totals = {offset: dict.fromkeys(MOVED, 0.0) for offset in OFFSETS}
        # Products with the expected displacement, over all offsets.
        self.of_expected = 0.0
        self.of_largest = 0.0
        self.of_centre = 0.0

    def update(
        self, before: Attention, after: Attention, *, offset: int, expected: Tensor, keep: Tensor
    ) -> None:
        """Add the rows to `keep`, whose largest weight is `expected` to move so far."""
        place_before, place_after = before.argmax(-1), after.argmax(-1)
        followed = place_after == place_before + expected
        similarity = 1 - 0.5 * (after - before).abs().sum(-1)
        expected = expected[keep].double()
        largest = (place_after - place_before)[keep].double()
        centre = (_centre(after) - _centre(before))[keep].double()

        self.rows[offset] += len(expected)
        totals = self.totals[offset]
        totals["expected"] += float(expected.sum())
        totals["largest"] += float(largest.sum())
        totals["centre"] += float(centre.sum())
        totals["followed"] += float(followed[keep].double().sum())
        totals["similarity"] += float(similarity[keep].double().sum())
        self.of_expected += float((expected * expected).sum())
        self.of_largest += float((expected * largest).sum())
        self.of_centre += float((expected * centre).sum())

    def result(self) -> dict[str, object]:
        by_offset = []
        for offset, rows in self.rows.items():
            means = {name: _ratio(total, rows) for name, total in self.totals[offset].items()}
            by_offset.append({"offset": offset, "rows": rows, **means})
        return {
            "slope": _ratio(self.of_largest, self.of_expected),
            "centre_slope": _ratio(self.of_centre, self.of_expected),
            "by_offset": by_offset,
        }


def measure_offsets(model: EncoderDecoder, fitted: Fitted, corpus: Corpus) -> dict[str, dict]:
    """Expected is −k for an encoder ahead, and for a decoder ahead what the unshifted attention moves from
    step s to s + k. ``slope``: of the displacement of the largest weight on it (1: attention follows the
    clocks), ``centre_slope`` of the centre of mass. Rows that predict the end mark are left out.
    """
    result = {}
    for name, shift in shifts_of(model).items():
        displacements = _Displacements()
        with torch.inference_mode():
            for batch in evaluation_batches(corpus, 256):
                batch = batch.to(model.readout.weight.device)
                before = model(batch).attention
                for offset in OFFSETS:
                    states = shifted_states(model, fitted, batch, shift=shift, offset=offset)
                    after = model.attend(batch, *states).attention
                    expected, keep = expectation(before, batch, offset, shift.ahead)
                    displacements.update(before, after, offset=offset, expected=expected, keep=keep)
        result[name] = displacements.result()
    return result


def expectation(
    before: Attention, batch: Batch, k: int, ahead: str
) -> tuple[Int[Tensor, "batch target"], Bool[Tensor, "batch target"]]:
    """Where the largest weight is to go, relative to where it was, and the rows that can show it."""
    place = before.argmax(-1)
    words = batch.source_mask.sum(1)[:, None] - 1  # the end mark of the source is no place to go to
    keep = batch.target_mask & (batch.target_output != EOS) & (place < words)
    if ahead == "encoder":
        expected = torch.full_like(place, -k)
    elif ahead == "decoder":
        steps = torch.arange(place.shape[1], device=place.device) + k
        later = steps.clamp(max=place.shape[1] - 1)
        expected = place[:, later] - place
        keep = keep & (steps < place.shape[1]) & keep[:, later]
    else:
        expected = torch.zeros_like(place)
    return expected, keep & (place + expected >= 0) & (place + expected < words)


def _centre(attention: Attention) -> Float[Tensor, "batch target"]:
    places = torch.arange(attention.shape[-1]).to(attention)
    return attention @ places


def _ratio(above, below) -> float | None:
    return round(float(above) / float(below), 6) if float(below) else None


SIDES = ("encoder", "decoder")
JUDGED = 300  # held-out samples: rates over some thousand rows are known to a percent


@measure(version=1)
def measure_temporal_formation(trained: TrainedModel, fit_samples: int) -> dict:
    """``courses``: μ_t and states without words in the plane of μ's two main directions."""
    fitted = fit_components(trained, fit_samples)
    corpus = trained.task.held_out.subset(np.arange(min(JUDGED, len(trained.task.held_out))))
    curves = {name: wordless_states(trained, fitted, name) for name in INPUTS}
    encoder = SideCurves.of(fitted.encoder, {name: curve.encoder for name, curve in curves.items()})
    decoder = SideCurves.of(fitted.decoder, {name: curve.decoder for name, curve in curves.items()})
    measured = {
        "quality": trained.history["held_out"],
        "attention": _attention(trained, fitted, corpus),
        "wordless": {"encoder": encoder.compared(), "decoder": decoder.compared()},
        "rebuilt": _rebuilt(trained, fitted, curves, corpus),
        "offsets": measure_offsets(trained.model, fitted, corpus),
        "longer": measure_longer(trained, fitted),
        **_variances(trained, fitted, corpus),
        "courses": {"encoder": encoder.in_plane(), "decoder": decoder.in_plane()},
    }
    return rounded(measured, decimals=6)


@dataclass(frozen=True, eq=False)
class SideCurves:
    """One side's temporal components, how often each position occurs, and its states without words."""

    temporal: Curve
    counts: Counts
    wordless: dict[str, Curve]

    @classmethod
    def of(cls, components: Components, wordless: dict[str, Curve]) -> "SideCurves":
        return cls(
            temporal=components.temporal.cpu(),
            counts=components.position_counts.cpu(),
            wordless={name: curve.cpu() for name, curve in wordless.items()},
        )

    def compared(self) -> dict[str, dict[str, float | None]]:
        """How much of the temporal components states without words give, by input."""
        return {name: compared(curve, self.temporal, self.counts) for name, curve in self.wordless.items()}

    def in_plane(self) -> dict[str, list]:
        """Both coordinates of each course at every position that there is."""
        directions, centre = plane(self.temporal, self.counts)
        coordinates = {}
        for name, course in {"temporal": self.temporal, **self.wordless}.items():
            in_plane = (course.double() - centre) @ directions  # (position, 2)
            coordinates[name] = in_plane[self.counts > 0].tolist()
        return coordinates


def _traces(trained: TrainedModel, corpus: Corpus) -> Iterator[tuple]:
    for batch in evaluation_batches(corpus, 256):
        batch = batch.to(trained.model.readout.weight.device)
        with torch.no_grad():
            trace = trained.model(batch)
        yield batch, trace


def _attention(trained: TrainedModel, fitted: Fitted, corpus: Corpus) -> dict[str, float | None]:
    """Attention mass in place, where the task has places, and covariance shares of μ·μ, χ·χ, all with Δ."""
    shares, mass, words = ShareSums(), 0.0, 0
    fixed = trained.task.gold is not None or bool((corpus.source_lengths == corpus.target_lengths).all())
    for batch, trace in _traces(trained, corpus):
        shares.update(alignment_terms(*fitted.split(trace)), trace.target_mask, trace.source_mask)
        if fixed:
            places = expected_places(trained.task, batch)  # the corpus has the first held-out samples
            mass += float(near_place(trace.attention.cpu(), places).sum())
            words += int((places >= 0).sum())
    covariance = shares.result().covariance
    return {
        "in_place": mass / words if words else None,
        "temporal_share": float(covariance[0, 0]),
        "input_share": float(covariance[1, 1]),
        "residual_share": float(covariance[2].sum() + covariance[:2, 2].sum()),
    }


def _rebuilt(trained: TrainedModel, fitted: Fitted, curves: dict[str, Curves], corpus: Corpus) -> dict:
    """The attention with the temporal components replaced by something else, against the model's own."""
    temporal = Curves(fitted.encoder.temporal, fitted.decoder.temporal)
    constant = Curves(_constant(fitted.encoder), _constant(fitted.decoder))
    courses = {"temporal": temporal, **curves, "constant": constant}
    similarities: dict[str, dict[str, _Similarity]] = {}
    for batch, full in _traces(trained, corpus):
        for name, course in courses.items():
            for way, (encoder, decoder) in _replaced(full, course, temporal).items():
                if name == "temporal" and way != "alone":  # the network's own states
                    continue
                with torch.no_grad():
                    rebuilt = trained.model.attend(batch, encoder, decoder)
                by_way = similarities.setdefault(name, {})
                by_way.setdefault(way, _Similarity()).update(rebuilt, full)
    return {
        name: {way: similarity.means() for way, similarity in by_way.items()}
        for name, by_way in similarities.items()
    }


def _constant(components: Components) -> Curve:
    """The mean of the temporal components at every position."""
    weight = components.position_counts.double() / components.position_counts.sum()
    return (weight @ components.temporal).expand_as(components.temporal)


def _replaced(full: Trace, course: Curves, temporal: Curves) -> dict[str, States]:
    """Return states of both sides with their temporal components replaced by a course, by way.

    ``alone`` is the course without input components and residuals; the others keep these, and replace the
    temporal components on both sides or on one.
    """
    encoder, decoder = full.encoder_states, full.decoder_states
    encoder_course = _along(course.encoder, encoder)
    decoder_course = _along(course.decoder, decoder)
    other_encoder = encoder + encoder_course - _along(temporal.encoder, encoder)
    other_decoder = decoder + decoder_course - _along(temporal.decoder, decoder)
    return {
        "alone": (encoder_course.expand_as(encoder), decoder_course.expand_as(decoder)),
        "both": (other_encoder, other_decoder),
        "encoder": (other_encoder, decoder),
        "decoder": (encoder, other_decoder),
    }


def _along(curve: Curve, states: Float[Tensor, "batch length width"]) -> Float[Tensor, "length width"]:
    """The curve at the positions that these states have."""
    return curve[: states.shape[1]].to(states)


class _Similarity:
    """How far attention that is rebuilt is the network's own, and words are right with it."""

    def __init__(self) -> None:
        self.rows = 0
        self.similarity = 0.0
        self.argmax_agreement = 0.0
        self.accuracy = 0.0

    def update(self, rebuilt: Trace, full: Trace) -> None:
        rows = full.target_mask
        similarity = 1 - 0.5 * (rebuilt.attention - full.attention).abs().sum(-1)
        agrees = rebuilt.attention.argmax(-1) == full.attention.argmax(-1)
        right = rebuilt.logits.argmax(-1) == full.target_outputs
        self.rows += int(rows.sum())
        self.similarity += float(similarity[rows].double().sum())
        self.argmax_agreement += float(agrees[rows].sum())
        self.accuracy += float(right[rows].sum())

    def means(self) -> dict[str, float]:
        return {
            "similarity": self.similarity / self.rows,
            "argmax_agreement": self.argmax_agreement / self.rows,
            "accuracy": self.accuracy / self.rows,
        }


def _variances(trained: TrainedModel, fitted: Fitted, corpus: Corpus) -> dict:
    encoder, decoder = _SideStates(), _SideStates()
    for _, trace in _traces(trained, corpus):
        decoder_parts, encoder_parts = fitted.split(trace)
        encoder.add(encoder_parts, trace.source_tokens)
        decoder.add(decoder_parts, trace.target_tokens)
    return {
        "state_share": {"encoder": encoder.shares(), "decoder": decoder.shares()},
        "temporal_variance": {"encoder": encoder.temporal_variance(), "decoder": decoder.temporal_variance()},
    }


class _SideStates:
    """All valid states of one side, by part, with their positions and tokens."""

    def __init__(self) -> None:
        self.parts: list[Float[Tensor, "3 rows width"]] = []  # of each batch
        self.places: list[Int[Tensor, " rows"]] = []
        self.tokens: list[Int[Tensor, " rows"]] = []

    def add(self, parts: Parts, tokens: Int[Tensor, "batch length"]) -> None:
        valid = parts.mask
        places = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        self.parts.append(parts.stack()[:, valid].double().cpu())
        self.places.append(places[valid].cpu())
        self.tokens.append(tokens[valid].cpu())

    def shares(self) -> dict[str, float]:
        """Covariance of each part with the states, over their variance."""
        parts = torch.cat(self.parts, dim=1)  # (3, rows, width)
        centred = parts - parts.mean(1, keepdim=True)
        products = (centred * centred.sum(0)).sum((1, 2))
        shares = products / products.sum()
        return dict(zip(STATE_PARTS, shares.tolist(), strict=True))

    def temporal_variance(self) -> dict[str, float | None]:
        """Variance between positions over that of the states, of all and of words without marks."""
        states = torch.cat(self.parts, dim=1).sum(0)  # (rows, width)
        places, tokens = torch.cat(self.places), torch.cat(self.tokens)
        words = tokens >= 3  # ids below are padding and the two marks
        return {"all": _between(states, places), "words": _between(states[words], places[words])}


def _between(states: Tensor, places: Tensor) -> float | None:
    """Variance of the means at each position over that of the states; None where nothing varies."""
    centred = states - states.mean(0)
    counts = torch.bincount(places)
    sums = torch.zeros(len(counts), centred.shape[1], dtype=centred.dtype)
    sums.index_add_(0, places, centred)
    between = (sums.square().sum(1) / counts.clamp(min=1)).sum()
    total = centred.square().sum()
    return float(between / total) if float(total) else None


class Config(FilesConfig):
    """Settings; a model is a task × (AED × cell | AO × positions) × seed."""

    task: tuple[TaskName, ...] = ("one_to_one",)
    architecture: tuple[Attending, ...] = setting(("AED", "AO"), "AED, AO")
    cell: tuple[Cell, ...] = setting(("gru",), "the recurrence of AED: gru, lstm, vanilla, ugrnn")
    positions: tuple[Positions, ...] = setting(
        ("sinusoidal", "learned", "shuffled", "none"),
        "the position code of AO: sinusoidal, learned, shuffled, none",
    )
    seeds: Positive | None = setting(
        3, "models of each kind; as many as the plan has when None, of other codes at most 5"
    )


PROFILES = {
    "quick": Config(positions=("sinusoidal", "none")),
    "paper": Config(
        scale="paper", task=("one_to_one", "reversal", "scan"), cell=("gru", "lstm", "vanilla", "ugrnn"),
        seeds=None, fit_samples=25_000,
    ),
    "tiny": Config(seeds=1, width=8, steps=3, fit_samples=100),
}  # fmt: skip
_FEWER_SEEDS = 5  # of position codes other than the sinusoidal one


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs: list[ModelSpec] = []
    for task, architecture in product(config.task, config.architecture):
        if architecture == "AED":
            for cell in config.cell:
                specs += each_planned(config, task, architecture, cell=cell)
        else:
            for positions in config.positions:
                planned = each_planned(config, task, architecture, positions=positions)
                if config.seeds is None and positions != "sinusoidal":
                    planned = planned[:_FEWER_SEEDS]
                specs += planned
    return measurements_of(dict.fromkeys(specs), measure_temporal_formation, fit_samples=config.fit_samples)


def name_of(spec: ModelSpec) -> dict[str, object]:
    """The columns that name a model; ``kind`` is ``AED``, ``AED-lstm``, ``AO``, ``AO-learned``."""
    name = point(spec)
    if spec.architecture != "AO":
        return name | {"positions": "recurrent", "kind": kind(name)}
    label = kind(name)
    if spec.positions != "sinusoidal":
        label = f"{label}-{spec.positions}"
    return name | {"positions": spec.positions, "kind": label}


NAMES = NETWORK | {
    "positions": Column("position code of AO; recurrent for AED"),
    "kind": Column(
        "architecture, with the cell unless it is a GRU and the position code unless it is sinusoidal"
    ),
}
ACCURACY = {"token_accuracy": share("next words of held-out samples that are predicted correctly")}
ATTENTION = {
    "in_place": share("attention within one position of the word that is translated"),
    "input_share": Column("covariance of the input term with the score, over the score's variance"),
    "residual_share": Column("the same of the five terms with a residual"),
    "temporal_share": Column("the same of the temporal term"),
}
COURSES = {
    "temporal": "the temporal components themselves",
    "null": "states on zeros as inputs",
    "average": "states on the mean embedding",
    "average_by_position": "states on the mean embedding of each position",
    "constant": "the mean of the temporal components at every position",
}
R2 = Column("variance of temporal components that states without words explain", high=1)
R2_CENTRED = replace(R2, meaning=f"{R2.meaning}, both without their means")
COSINE = Column(
    "cosine of temporal components and states without words, both without their means", low=-1, high=1
)
AGREEMENT_OF_COURSES = {"r2": R2, "r2_centred": R2_CENTRED, "cosine": COSINE}
REBUILT = share("similarity with the network's attention of that with other temporal components")
SHIFTS = {
    "both": "both clocks",
    "decoder": "the decoder's clock",
    "decoder_before_mark": "the decoder's clock, before it reads the begin mark",
    "decoder_null": "the decoder's clock, by zeros as inputs",
    "decoder_words": "the decoder's clock, by words of the sentence as inputs",
    "encoder": "the encoder's clock",
    "encoder_handed_on": "the encoder's clock; the decoder starts from its last state",
    "encoder_null": "the encoder's clock, by zeros as inputs",
    "encoder_words": "the encoder's clock, by words of the sentence as inputs",
}
SLOPE = Column("slope of the displacement of the largest weight on the one expected; 1 follows the clocks")
NETWORKS = {
    **ACCURACY,
    **ATTENTION,
    **{
        f"{side}_{name}": replace(column, meaning=f"{column.meaning}; {side}, on the mean embedding")
        for side in SIDES
        for name, column in (("r2_centred", R2_CENTRED), ("cosine", COSINE))
    },
    "rebuilt_average": replace(REBUILT, meaning=f"{REBUILT.meaning}: {COURSES['average']}"),
    "rebuilt_constant": replace(REBUILT, meaning=f"{REBUILT.meaning}: {COURSES['constant']}"),
    **{
        f"slope_{shift}": replace(SLOPE, meaning=f"{SLOPE.meaning}; ahead is {ahead}")
        for shift, ahead in SHIFTS.items()
    },
    "longest": Column("length of the longest sentences", "words", low=0),
    "word_accuracy_at_longest": share("words of the longest sentences that are predicted correctly"),
}
STATES = {
    **{f"attention.{name}": column for name, column in ATTENTION.items()},
    **{
        f"state_share.{side}.{part}": Column(
            f"covariance of the {part} part with {side} states, over their variance"
        )
        for side in SIDES
        for part in STATE_PARTS
    },
    **{
        f"temporal_variance.{side}.{places}": Column(
            f"variance between positions over the whole variance of {side} states{which}"
        )
        for side in SIDES
        for places, which in (("all", ""), ("words", " of words, without marks"))
    },
}
WORDLESS = {
    "side": Column("encoder or decoder"),
    "course": Column("states that are formed without words", categories=COURSES),
}
WAYS = {
    "alone": "temporal components alone, replaced on both sides",
    "both": "whole states, temporal components replaced on both sides",
    "encoder": "whole states, temporal components replaced in the encoder",
    "decoder": "whole states, temporal components replaced in the decoder",
}
REPLACED = {
    "course": Column("what temporal components are replaced by", categories=COURSES),
    "way": Column("states that attention is rebuilt from", categories=WAYS),
}
REBUILT_ATTENTION = {
    "similarity": share("1 minus the total variation from the network's own attention"),
    "argmax_agreement": share("rows whose largest weight is where the network has it"),
    "accuracy": share("next words that are predicted correctly from this attention"),
}
SHIFT = {"shift": Column("clock that is ahead of the other", categories=SHIFTS)}
SLOPES = {"slope": SLOPE, "centre_slope": replace(SLOPE, meaning="the same slope of the centre of mass")}
OFFSET = SHIFT | {"offset": Column("by how much it is ahead", "positions")}
DISPLACEMENT = {
    "expected": Column(
        "displacement of the largest weight, were attention to follow the clocks", "positions"
    ),
    "largest": Column("displacement of the largest weight", "positions"),
    "centre": Column("displacement of the centre of mass", "positions"),
    "followed": share("rows whose largest weight is where it is expected"),
    "similarity": share("1 minus the total variation from the attention with equal clocks"),
}
FACTOR = {"factor": Column("length of the sentences, over the longest length trained on")}
LENGTH = {
    "length": Column("words of a sentence", "words"),
    "word_accuracy": share("words that are predicted correctly"),
    "in_place": share("attention within one position of the word that is translated"),
    "leaves": Column("first target position with less than half of the attention in place", "positions"),
}
POSITION = {
    "trained_up_to": Column("longest length trained on", "words"),
    "position": Column("target position in sentences of the longest length, from 0"),
}
ALONG = {
    "word_accuracy": share("words at the position that are predicted correctly"),
    "in_place": LENGTH["in_place"],
    "temporal_in_place": share("the same of attention from temporal components alone"),
    "speed": Column("step of the encoder's temporal components, over its mean in short sentences"),
}
COURSE = {
    "side": WORDLESS["side"],
    "course": WORDLESS["course"],
    "position": Column("position, from 0"),
    "first": Column("coordinate on the first of the two main directions of temporal components"),
    "second": Column("coordinate on the second"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    asked = measurements(config)

    def table_of(records: Callable[[dict], object], columns: Columns, row: str) -> Table:
        return frame(asked, store, records=records, columns=columns, names=NAMES, columns_of=name_of, row=row)

    models = table_of(_network, NETWORKS, "a trained network")
    states = table_of(_states, STATES, "a trained network")
    wordless = table_of(_wordless, WORDLESS | AGREEMENT_OF_COURSES, "states without words of a network")
    rebuilt = table_of(_rebuilt_attention, REPLACED | REBUILT_ATTENTION, "a network's attention, rebuilt")
    slopes = table_of(_slopes, SHIFT | SLOPES, "a shift of a network's clocks")
    displacements = table_of(_displacements, OFFSET | DISPLACEMENT, "a shift of a network's clocks")
    lengths = table_of(_lengths, FACTOR | LENGTH, "a length of a network's sentences")
    beyond = table_of(_beyond_training, AGREEMENT_OF_COURSES, "a trained network")
    positions = table_of(_positions, POSITION | ALONG, "a position of a network's sentences")
    courses = table_of(_places, COURSE, "a position of a course")

    whole = models.frame["longest"].astype("Int64")  # whole numbers, which some networks lack
    along = summarise(positions, [*BY_KIND, *POSITION], ALONG)
    by_position = wide(along, ALONG, row="a position")
    drawn = courses.query("seed == 0 and kind in ('AED', 'AO')")
    return {
        "models": models.assign({"longest": NETWORKS["longest"]}, longest=whole),
        "positions": by_position.select(*BY_KIND, *POSITION, *_with_ends(ALONG)),
        "courses": drawn.select(*BY_KIND, *COURSE),
        "states": states,
        "wordless": wordless,
        "rebuilt": rebuilt,
        "slopes": slopes,
        "lengths": lengths,
        "beyond": beyond,
        "models_by_kind": summarise(models, BY_KIND, ACCURACY),
        "states_by_kind": summarise(states, BY_KIND, STATES),
        "wordless_by_kind": summarise(wordless, [*BY_KIND, *WORDLESS], AGREEMENT_OF_COURSES),
        "rebuilt_by_kind": summarise(rebuilt, [*BY_KIND, *REPLACED], REBUILT_ATTENTION),
        "slopes_by_kind": summarise(slopes, [*BY_KIND, *SHIFT], SLOPES),
        "displacements_by_kind": summarise(displacements, [*BY_KIND, *OFFSET], DISPLACEMENT),
        "lengths_by_kind": summarise(lengths, [*BY_KIND, *FACTOR], LENGTH),
        "beyond_by_kind": summarise(beyond, BY_KIND, AGREEMENT_OF_COURSES),
    }


def _with_ends(columns: Columns) -> list[str]:
    """Return the names of quantities and of the ends of their intervals."""
    names = []
    for name in columns:
        names += [name, f"{name}_low", f"{name}_high"]
    return names


def _network(m: dict) -> dict[str, float | None]:
    average = {side: m["wordless"][side]["average"] for side in SIDES}
    numbers = m["quality"] | m["attention"]
    for side, name in product(SIDES, ("r2_centred", "cosine")):
        numbers[f"{side}_{name}"] = average[side][name]
    for course in ("average", "constant"):
        numbers[f"rebuilt_{course}"] = m["rebuilt"][course]["both"]["similarity"]
    for shift, shifted in m["offsets"].items():
        numbers[f"slope_{shift}"] = shifted["slope"]
    if lengths := _lengths(m):
        numbers["longest"] = lengths[-1]["length"]
        numbers["word_accuracy_at_longest"] = lengths[-1]["word_accuracy"]
    return numbers


def _states(m: dict) -> dict:
    return {name: m[name] for name in ("attention", "state_share", "temporal_variance")}


def _wordless(m: dict) -> list[dict]:
    return rows_of(m["wordless"], "side", "course")


def _rebuilt_attention(m: dict) -> list[dict]:
    return rows_of(m["rebuilt"], "course", "way")


def _slopes(m: dict) -> list[dict]:
    return rows_of(m["offsets"], "shift")


def _displacements(m: dict) -> Iterator[dict]:
    for shift, shifted in m["offsets"].items():
        for displacement in shifted["by_offset"]:
            yield {"shift": shift, **displacement}


def _lengths(m: dict) -> list[dict]:
    """Return no row where the lengths of a task's sentences are fixed."""
    return m["longer"]["lengths"] if m["longer"] else []


def _positions(m: dict) -> list[dict]:
    longer = m["longer"]
    if not longer:
        return []
    return [{"trained_up_to": longer["trained_up_to"], **position} for position in longer["positions"]]


def _beyond_training(m: dict) -> list[dict]:
    """Return how states on average input agree with the temporal components past the longest length."""
    longer = m["longer"]
    if not longer or not longer["average_input"]:
        return []
    return [longer["average_input"]]


def _places(m: dict) -> Iterator[dict]:
    for side, courses in m["courses"].items():
        for course, places in courses.items():
            for position, (first, second) in enumerate(places):
                yield {"side": side, "course": course, "position": position, "first": first, "second": second}


def values(config: Config, tables: dict[str, Table]) -> dict:
    kind = "{task}.{kind}."
    undefined: dict[str, object] = {}
    for row in tables["models_by_kind"].records():
        undefined[kind.format(**row) + "longer"] = {}
        undefined[kind.format(**row) + "beyond"] = {}
    lengths = tables["lengths_by_kind"]
    factor = lengths.frame["factor"].map("{:g}".format).replace(r"\.", "_", regex=True)
    by_factor = lengths.with_rows(lengths.frame.assign(factor=factor))
    return view(
        undefined,
        keyed(tables["models_by_kind"], kind + "{quantity}"),
        keyed(tables["states_by_kind"], kind + "{quantity}"),
        keyed(tables["wordless_by_kind"], kind + "wordless.{side}.{course}.{quantity}"),
        keyed(tables["rebuilt_by_kind"], kind + "rebuilt.{course}.{way}.{quantity}"),
        keyed(tables["slopes_by_kind"], kind + "offsets.{shift}.{quantity}"),
        keyed(tables["displacements_by_kind"], kind + "offsets.{shift}.by_{offset}.{quantity}"),
        keyed(by_factor, kind + "longer.times_{factor}.{quantity}"),
        keyed(tables["beyond_by_kind"], kind + "beyond.{quantity}"),
    )
