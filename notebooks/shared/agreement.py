"""The runs behind a data set's row of the agreement tables, and what is asked of them together."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.errors import BadInput, NotMeasured
from attnlib.models.corpus import Batch
from attnlib.models.translator import BilinearTranslator
from attnlib.models.vocabulary import BOS, EOS
from attnlib.probes import agreement as of_rows
from attnlib.probes.agreement import RowMean, agreement, chance_agreement, halves
from companion.results.measurements import Measurement
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared.bleu import bleu
from notebooks.shared.kendall import kendall
from notebooks.shared.plan import each_seed
from notebooks.shared.snapshots import CHOOSING, GROUPS, qualities
from notebooks.shared.trainings.translation import SourceMask, TargetMask, padded_cells, recorded_network

# Values by position of texts of different lengths: flat as they are kept, padded as they are compared.

Offsets = Int[Tensor, " texts_and_one"]
PaddedTexts = tuple[Float[Tensor, "*leading texts longest"], Bool[Tensor, "texts longest"]]


def padded(flat: Float[Tensor, "*leading positions"], offsets: Offsets) -> PaddedTexts:
    """Rows of equal length, zero where a text has ended, and the mask of what is valid.

    >>> values, mask = padded(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 3]))
    >>> values.tolist(), mask.tolist()
    ([[3.0, 0.0], [1.0, 2.0]], [[True, False], [True, True]])
    """
    if int(offsets[-1]) != flat.shape[-1]:
        raise BadInput(f"{flat.shape[-1]} positions, but the offsets end at {int(offsets[-1])}")
    lengths = offsets.diff()
    mask = torch.arange(int(lengths.max()), device=flat.device) < lengths[:, None]
    values = flat.new_zeros(*flat.shape[:-1], *mask.shape)
    values[..., mask] = flat
    return values, mask


@dataclass(frozen=True, eq=False)
class RaggedRows:
    """Rows of different lengths in one flat tensor, met in batches of like length."""

    starts: Int[Tensor, " rows"]
    lengths: Int[Tensor, " rows"]  # the values of a row are ``flat[start : start + length]``
    samples: Int[Tensor, " rows"]  # that each row belongs to

    @classmethod
    def of_texts(cls, offsets: Offsets) -> "RaggedRows":
        """A row a text, as :func:`padded` has them."""
        lengths = offsets.diff()
        return cls(offsets[:-1], lengths, torch.arange(len(lengths), device=lengths.device))

    @classmethod
    def of_pairs(cls, source_mask: SourceMask, target_mask: TargetMask) -> "RaggedRows":
        """A row a target position, sample by sample, as valid cells lie when padding is taken out."""
        targets = target_mask.sum(1)
        samples = torch.arange(len(targets), device=targets.device).repeat_interleave(targets)
        lengths = source_mask.sum(1)[samples]
        return cls(lengths.cumsum(0) - lengths, lengths, samples)

    def batches(self, cells: int = 1 << 20) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Places of rows of like length (rows, longest), their mask and sample, at most ``cells`` at once."""
        order = self.lengths.argsort(stable=True)
        begin = 0
        while begin < len(order):
            # Longer rows come later, so what fits is found from the end of a first guess.
            end = min(len(order), begin + max(1, cells // max(1, int(self.lengths[order[begin]]))))
            while end > begin + 1 and (end - begin) * int(self.lengths[order[end - 1]]) > cells:
                end = begin + max(1, cells // int(self.lengths[order[end - 1]]))
            rows = order[begin:end]
            steps = torch.arange(int(self.lengths[rows].max()), device=rows.device)
            mask = steps < self.lengths[rows, None]
            yield (self.starts[rows, None] + steps) * mask, mask, self.samples[rows]
            begin = end


# How far what one run of a network says of positions agrees with what another says along its training
# (Snell et al. 2021, section 3.1, equation 10, and appendix A.4).

SIDES = ("attention", "saliency", "probe")  # α, Δ and β
LOOKED_UP = ("attention", "probe")  # what a second run is asked for
HALVES = ("selecting", "reporting")
MEASURES = {"agreement": agreement, "kendall": kendall}
SALIENT = ("attention_saliency", "saliency_attention", "kendall", "chance")  # what salient words share
CELLS = 1 << 16  # of a checkpoint that are met at once; all checkpoints are met together


@dataclass(frozen=True)
class Sides:
    """What is compared: a quantity of the first run with one of the second, both of :data:`SIDES`."""

    first: str
    second: str

    @property
    def key(self) -> str:
        """Both in a word, as the archive has them: ``attention~probe``."""
        return f"{self.first}~{self.second}"


def sides_of(pairs: str) -> list[Sides]:
    """Return what the setting ``pairs`` of :func:`measure_agreement` asks for; see :func:`pairs_of`.

    Raises BadInput: it is no list of keys, or a key names something else than :data:`SIDES`.
    """
    sides = []
    for key in pairs.split():
        first, _, second = key.partition("~")
        if first not in SIDES or second not in SIDES:
            break
        sides.append(Sides(first, second))
    if not sides or pairs_of(sides) != " ".join(pairs.split()):
        raise BadInput(f"pairs {pairs!r}: expected such as 'attention~probe', of {', '.join(SIDES)}")
    return sides


def pairs_of(sides: Iterable[Sides]) -> str:
    """Return the setting ``pairs`` of :func:`measure_agreement`, in which the archive has what was asked."""
    return " ".join(compared.key for compared in sides)


@measure(version=1)
def measure_course(recording: Recording) -> dict:
    """How good a run is at its checkpoints, and what chance would agree with it, by part of the data.

    ``parts`` by measure of quality and group of samples, a number a checkpoint, in percent
    (:func:`~notebooks.shared.snapshots.qualities`); ``chance``: 𝒜̂ by what is looked up, the mean over
    rows and checkpoints; ``majority``: the accuracy, in percent, of giving the commonest answer always.
    """
    names = parts(recording)
    return {
        "steps": recording["steps"].tolist(),
        "parts": {part: _course(recording, part) for part in names},
        "chance": {part: _chances(recording, part) for part in names},
        "majority": {part: _majority(recording, part) for part in names},
    }


@measure(version=1)
def measure_agreement(first: Recording, second: Recording, *, pairs: str) -> dict:
    """𝒜(u, v) and Kendall's τ-b, u of the first run at its best checkpoint, v of the second at each.

    Every part of the data chooses for itself: the best checkpoint of the first run is the one at which it is
    best on the part's samples that select, or, the paper's way, on all of them; the earliest of equals; by
    accuracy, and for translations also by BLEU.

    ``pairs`` says which u and v, say ``"attention~probe saliency~probe"``, of :data:`SIDES`. ``best`` is the
    place among the first's checkpoints by part, measure of quality and group that chose; ``parts`` has, by
    part, pair, place (as text), measure and half, for each checkpoint of the second run sums for
    :class:`~attnlib.probes.agreement.RowMean`, rows weighted alike. Raises BadInput for a side that there is
    not or was not looked for, and runs that looked at other samples.
    """
    compared = sides_of(pairs)
    best_places: dict[str, dict] = {}
    sums: dict[str, dict] = {}
    for part in parts(second):
        rows = _rows(second, part)
        if not torch.equal(rows.starts, _rows(first, part).starts):
            raise BadInput(f"{first.spec.setting} and {second.spec.setting} were looked at on other samples")
        best_places[part] = _best(first, part)
        places = {place for by_group in best_places[part].values() for place in by_group.values()}
        sums[part] = {}
        for sides in compared:
            tops = first[_tensor(first, part, sides.first)]  # (checkpoint, cell)
            among = second[_tensor(second, part, sides.second)]  # (checkpoint, cell)
            if tops[sorted(places)].isnan().all(1).any():
                raise BadInput(f"{first.spec.setting} has no {sides.first} at its best checkpoint")
            by_place = {str(place): _sums(tops[place], among, rows) for place in sorted(places)}
            sums[part][sides.key] = by_place
    return {"steps": second["steps"].tolist(), "best": best_places, "parts": sums}


def parts(recording: Recording) -> tuple[str, ...]:
    """``validation``, then the sample of the training data where one was looked at."""
    judged = [name for name in recording.tensors if name.endswith((".correct", ".right"))]
    names = [name.partition(".")[0] for name in judged]
    return tuple(sorted(names, key=lambda part: part != "validation"))


def _chances(recording: Recording, part: str) -> dict[str, float]:
    """𝒜̂ by what is looked up, of what the run has recorded."""
    rows = _rows(recording, part)
    chances = {}
    for side in LOOKED_UP:
        values = recording.tensors.get(_tensor(recording, part, side))
        if values is not None:
            chances[side] = _chance(values, rows)
    return chances


def _course(recording: Recording, part: str) -> dict[str, dict[str, list[float]]]:
    """Qualities of every checkpoint, by measure and group."""
    tensors = recording.tensors
    changing = [f"{part}.correct", f"{part}.right", f"{part}.bleu_counts"]
    changing = [name for name in changing if name in tensors]
    fixed = {name: tensors[name] for name in (f"{part}.target_mask",) if name in tensors}
    checkpoints = []
    for i in range(len(tensors["steps"])):
        snapshot = {name: tensors[name][i] for name in changing}
        checkpoints.append(qualities(fixed | snapshot, part))
    course: dict[str, dict[str, list[float]]] = {}
    for name in checkpoints[0]:
        course[name] = {group: [at[name][group] for at in checkpoints] for group in GROUPS}
    return course


def _majority(recording: Recording, part: str) -> float:
    """The share of the commonest label or, of sentence pairs, of the commonest word to say, in percent."""
    if f"{part}.labels" in recording.tensors:
        answers = recording[f"{part}.labels"]
    else:
        answers = recording[f"{part}.target_output"][recording[f"{part}.target_mask"]]
    _, counts = answers.unique(return_counts=True)
    return 100 * int(counts.max()) / answers.numel()


def _best(recording: Recording, part: str) -> dict[str, dict[str, int]]:
    """Place of the part's best checkpoint by each measure of quality and group that may choose."""
    places: dict[str, dict[str, int]] = {}
    for name, course in _course(recording, part).items():
        places[name] = {group: course[group].index(max(course[group])) for group in CHOOSING}
    return places


def _rows(recording: Recording, part: str) -> RaggedRows:
    if f"{part}.offsets" in recording.tensors:
        return RaggedRows.of_texts(recording[f"{part}.offsets"])
    return RaggedRows.of_pairs(recording[f"{part}.source_mask"], recording[f"{part}.target_mask"])


def _tensor(recording: Recording, part: str, side: str) -> str:
    """Where it has what is known of every position; the probe as log β, which has its order."""
    if side == "probe":
        side = "log_polarity" if f"{part}.log_polarity" in recording.tensors else "log_probe"
    return f"{part}.{side}"


class MeansAlong:
    """A mean over rows at each checkpoint, to which rows are added batch by batch."""

    def __init__(self, checkpoints: int) -> None:
        self.means = [RowMean()] * checkpoints

    def add(self, values: Float[Tensor, "checkpoints *batch rows"], present: Tensor | None = None) -> None:
        """Add a number a row at each checkpoint; rows that are not ``present`` do not count."""
        batch = [RowMean.of(row, present) for row in values]
        self.means = [mean + more for mean, more in zip(self.means, batch, strict=True)]

    def sums(self) -> list[list]:
        """As the archive has them: the total, how many rows are defined, and how many are not."""
        return [[mean.total, mean.rows, mean.undefined] for mean in self.means]

    def percent(self) -> list[float]:
        """The means, in percent."""
        return [100 * mean.value for mean in self.means]


def _selecting(samples: int, device: torch.device) -> Bool[Tensor, " samples"]:
    """True at the samples of the half that selects."""
    selects = torch.zeros(samples, dtype=torch.bool, device=device)
    selecting, _ = halves(samples)
    selects[selecting.to(device)] = True
    return selects


def _by_half(selecting: Bool[Tensor, " rows"]) -> dict[str, Bool[Tensor, " rows"]]:
    """The rows of each half."""
    return {"selecting": selecting, "reporting": ~selecting}


def _sums(top: Float[Tensor, " cells"], among: Float[Tensor, "checkpoints cells"], rows: RaggedRows) -> dict:
    """Sums over rows of every measure, by half and checkpoint."""
    selects = _selecting(int(rows.samples.max()) + 1, rows.samples.device)
    means = {name: {half: MeansAlong(len(among)) for half in HALVES} for name in MEASURES}
    for places, mask, sample in rows.batches(CELLS):
        present = _by_half(selects[sample])
        for name, function in MEASURES.items():
            values = function(top[places], among[:, places], mask)  # (checkpoints, rows)
            for half in HALVES:
                means[name][half].add(values, present[half])
    return {name: {half: along.sums() for half, along in by_half.items()} for name, by_half in means.items()}


def _chance(among: Float[Tensor, "checkpoints cells"], rows: RaggedRows) -> float:
    mean = RowMean()
    for places, mask, _ in rows.batches(CELLS):
        mean += RowMean.of(chance_agreement(among[:, places], mask))
    return mean.value


# What ties in a translator's lexical probe add to agreement (equation 10). log β is compared as it is
# computed, in single precision: 0 at every position from which a word is all but certain.

WAYS = {"counted": agreement, "broken": of_rows.agreement_with_ties_broken}
TENSORS = {"attention": "attention", "saliency": "saliency", "probe": "log_probe"}  # as recorded, by side


@measure(version=1)
def measure_ties(first: Recording, second: Recording, *, sides: str) -> dict:
    """𝒜(u, β) with the ties of β counted as agreement and broken, β of the second run at each checkpoint.

    u (``sides``, say ``"attention saliency"``) is of the first run where it is most accurate on all samples
    of validation, the earliest of equals. In percent of words, a number a checkpoint: ``tied``, those whose
    largest β stands at several positions, ``tied_ends``, the end marks among these, and ``chance``, 𝒜̂ with
    ties counted (``chance_broken``: no checkpoint changes it); and by side, way and half sums as of
    :func:`measure_agreement`, which has the same errors.
    """
    masks = shared_masks(first, second)
    tops = _at_the_best(first, sides.split())
    among = second["validation.log_probe"]  # (checkpoint, cell)
    ties = _Ties(len(among))
    agreements = {side: _AgreementByWay(len(among)) for side in tops}
    selects = _selecting(len(masks.source), among.device)
    rows = RaggedRows.of_pairs(masks.source, masks.target)
    is_end = second["validation.target_output"][masks.target] == EOS  # (row,)
    is_end = is_end.repeat_interleave(rows.lengths)  # (cell,)
    for cells, mask, sample in rows.batches(CELLS):
        probe = among[:, cells]
        ties.add(probe, mask, is_end[cells[:, 0]])
        present = _by_half(selects[sample])
        for side, top in tops.items():
            agreements[side].add(top[cells], probe, mask, present)
    measured = {"steps": second["steps"].tolist(), **ties.percent()}
    for side, agrees in agreements.items():
        measured[side] = agrees.sums()
    return measured


class _Ties:
    """How often the largest β is at several positions, and what agrees with it by chance, at checkpoints."""

    def __init__(self, checkpoints: int) -> None:
        self.tied = MeansAlong(checkpoints)
        self.tied_ends = MeansAlong(checkpoints)
        self.chance = MeansAlong(checkpoints)
        self.chance_broken = RowMean()

    def add(
        self, probe: Float[Tensor, "checkpoints rows length"], mask: Bool[Tensor, "rows length"],
        is_end: Bool[Tensor, " rows"],
    ) -> None:  # fmt: skip
        is_tied = of_rows.tied_at_top(probe, mask)  # (checkpoints, rows)
        self.tied.add(is_tied.double())
        self.tied_ends.add((is_tied & is_end).double())
        self.chance.add(chance_agreement(probe, mask))
        lengths = mask.sum(-1)
        self.chance_broken += RowMean.of(of_rows.places(lengths) / lengths)

    def percent(self) -> dict:
        return {
            "tied": self.tied.percent(),
            "tied_ends": self.tied_ends.percent(),
            "chance": self.chance.percent(),
            "chance_broken": 100 * self.chance_broken.value,
        }


class _AgreementByWay:
    """𝒜(u, β) at checkpoints, by what becomes of ties (:data:`WAYS`) and by half."""

    def __init__(self, checkpoints: int) -> None:
        self.means = {way: {half: MeansAlong(checkpoints) for half in HALVES} for way in WAYS}

    def add(
        self, top: Float[Tensor, "rows length"], probe: Float[Tensor, "checkpoints rows length"],
        mask: Bool[Tensor, "rows length"], present: dict[str, Bool[Tensor, " rows"]],
    ) -> None:  # fmt: skip
        for way, function in WAYS.items():
            agrees = function(top, probe, mask)  # (checkpoints, rows)
            for half in HALVES:
                self.means[way][half].add(agrees, present[half])

    def sums(self) -> dict[str, dict[str, list]]:
        return {way: {half: along.sums() for half, along in of.items()} for way, of in self.means.items()}


def _at_the_best(recording: Recording, sides: list[str]) -> dict[str, torch.Tensor]:
    if not sides or not set(sides) <= set(TENSORS):
        raise BadInput(f"sides {' '.join(sides)!r}: expected some of {', '.join(TENSORS)}")
    right = recording["validation.right"].sum(1).tolist()
    best = right.index(max(right))
    at_best = {side: recording[f"validation.{TENSORS[side]}"][best] for side in sides}
    for side, values in at_best.items():
        if values.isnan().all():
            raise BadInput(f"{recording.spec.setting} has no {side} at its best checkpoint")
    return at_best


@dataclass(frozen=True, eq=False)
class Masks:
    """Valid positions of the validation samples that a run was looked at on."""

    source: SourceMask
    target: TargetMask

    @classmethod
    def of(cls, recording: Recording) -> "Masks":
        """Those that a recording has kept."""
        return cls(recording["validation.source_mask"], recording["validation.target_mask"])

    def padded(
        self, cells: Float[Tensor, "*checkpoints cells"], fill: float = 0.0
    ) -> Float[Tensor, "*checkpoints samples target source"]:
        """Flat cells in their places, ``fill`` at padding."""
        return padded_cells(cells, self.source, self.target, fill=fill)


def shared_masks(first: Recording, second: Recording) -> Masks:
    """The masks of two runs on the same validation samples; raises BadInput where these differ."""
    masks, other = Masks.of(second), Masks.of(first)
    if not (torch.equal(masks.source, other.source) and torch.equal(masks.target, other.target)):
        raise BadInput(f"{first.spec.setting} and {second.spec.setting} were looked at on other samples")
    return masks


# What is asked of a recorded translation model of either form: quality by checkpoint, 𝒜(α, β) at the end.
# Samples are rebuilt from the recording, so that the data is not read again.

TOGETHER = 16  # samples that are looked at together


def recorded_batches(recording: Recording, samples: int, together: int = TOGETHER) -> Iterator[Batch]:
    """The first validation samples of a recording, 0 for all; those of like length stand together."""
    if samples < 0:
        raise BadInput(f"{samples} samples; give 0 for all, or how many")
    masks = Masks.of(recording)
    source_lengths = masks.source.sum(1)
    target_lengths = masks.target.sum(1)
    by_length = source_lengths * 10_000 + target_lengths
    if samples:
        by_length = by_length[:samples]
    for indices in by_length.argsort(stable=True).split(together):
        source_length = int(source_lengths[indices].max())
        target_length = int(target_lengths[indices].max())
        target_output = recording["validation.target_output"][indices, :target_length].long()
        begin = torch.full_like(target_output[:, :1], BOS)
        yield Batch(
            source=recording["validation.source"][indices, :source_length].long(),
            source_mask=masks.source[indices, :source_length],
            target_input=torch.cat([begin, target_output[:, :-1]], 1),
            target_output=target_output,
            target_mask=masks.target[indices, :target_length],
            indices=indices,
        )


def recorded_probe(recording: Recording, batch: Batch) -> Tensor:
    """log β at the last checkpoint for the samples of a batch, ``-inf`` at padding."""
    log_probe = Masks.of(recording).padded(recording["validation.log_probe"][-1], -torch.inf)
    target_length = batch.target_mask.shape[1]
    source_length = batch.source_mask.shape[1]
    return log_probe[batch.indices][:, :target_length, :source_length]


@measure(version=1)
def measure_translation(recording: Recording) -> dict:
    """BLEU by checkpoint; at the last one, word accuracy, loss (nats a word), 𝒜(α, β) and its chance."""
    masks = Masks.of(recording)
    words = int(masks.target.sum())
    right = recording["validation.right"][-1].sum()
    loss = recording["validation.loss"][-1].double().sum()
    attention = masks.padded(recording["validation.attention"][-1])
    log_probe = masks.padded(recording["validation.log_probe"][-1], -torch.inf)
    rows = masks.source[:, None, :].expand(attention.shape)
    agrees = agreement(attention, log_probe, rows)  # (samples, target)
    by_chance = chance_agreement(log_probe, rows)  # (samples, target)
    return {
        "steps": recording["steps"].tolist(),
        "bleu": [bleu(counts.cpu().numpy()) for counts in recording["validation.bleu_counts"]],
        "accuracy": float(right) / words,
        "loss": float(loss) / words,
        "learned_probe": RowMean.of(agrees, masks.target).value,
        "chance": RowMean.of(by_chance, masks.target).value,
    }


# How far each variant of saliency agrees with the lexical probe of a network that never attends (sections 3.1
# and 5.1). The network is taken as its training ends, for there its parameters are kept. Of target position s
# and the embedding e_t of source position t, under teacher forcing:
#
#     logit             ⟨∂ logit_s[y_s] / ∂e_t, e_t⟩, as :mod:`notebooks.shared.trainings.translation` has it
#     log_probability   the same of log p_s[y_s]
#     gradient_norm     |∂ log p_s[y_s] / ∂e_t|
#
# With two labels the first two have one order within a text, for log p moves by 1 − p times what the right
# label's log odds do. With more words they differ: what makes all words likelier leaves log p where it is.

SALIENCY_VARIANTS = ("logit", "log_probability", "gradient_norm")


Cells = Float[Tensor, "batch target source"]


def saliency_variants(model: BilinearTranslator, batch: Batch) -> dict[str, Cells]:
    """Every variant of :data:`SALIENCY_VARIANTS` for all valid pairs of positions, zero at padding.

    One pass forward and two backward a target position; the model should be in evaluation mode.
    """
    # cuDNN refuses to go backward through a recurrent layer in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        embedded = model.embedding(batch.source).detach().requires_grad_()
        states, start = model.encode(embedded, batch.source_mask)
        decoded, _ = model.decoder(model.embedding(batch.target_input), start)
        _, attention = model.attend(states, batch.source_mask, decoded)
        from_context = model.readout.from_context(attention @ states)
        from_decoder = model.readout.from_decoder(decoded)
        logits = model.readout.logits(from_context + from_decoder)
        right = batch.target_output[:, :, None]
        logit = logits.gather(-1, right)[:, :, 0]  # (batch, target)
        log_probability = logits.log_softmax(-1).gather(-1, right)[:, :, 0]
        of_logit = _gradients(logit, embedded)
        of_log_probability = _gradients(log_probability, embedded)
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    inputs = embedded.detach()[:, None]  # (batch, 1, source, width)
    return {
        "logit": (of_logit * inputs).sum(-1) * valid,
        "log_probability": (of_log_probability * inputs).sum(-1) * valid,
        "gradient_norm": of_log_probability.norm(dim=-1) * valid,
    }


def _gradients(
    scores: Float[Tensor, "batch target"], embedded: Float[Tensor, "batch source width"]
) -> Float[Tensor, "batch target source width"]:
    """Of each target position's score by each source embedding of its sample."""
    rows = [torch.autograd.grad(score.sum(), embedded, retain_graph=True)[0] for score in scores.unbind(1)]
    return torch.stack(rows, dim=1)


@measure(version=1)
def measure_saliency_variants(first: Recording, second: Recording) -> dict:
    """𝒜(Δ, β) and Kendall's τ-b, Δ of the first run's last network, β of the second run at each checkpoint.

    By variant, in percent, over all words of all validation samples. Raises BadInput: the first run kept no
    network; runs that were not looked at on the same samples.
    """
    masks = shared_masks(first, second)
    network = recorded_network(first.spec.resolved, first.tensors).to(first["steps"].device)
    probes = masks.padded(second["validation.log_probe"], -torch.inf)
    means = {variant: {name: MeansAlong(len(probes)) for name in MEASURES} for variant in SALIENCY_VARIANTS}
    for batch in recorded_batches(first, 0):
        target_length = batch.target_mask.shape[1]
        source_length = batch.source_mask.shape[1]
        probe = probes[:, batch.indices, :target_length, :source_length]
        rows = batch.source_mask[:, None, :].expand(probe.shape[1:])
        for variant, values in saliency_variants(network, batch).items():
            for name, function in MEASURES.items():
                agrees = function(values, probe, rows)  # (checkpoints, batch, target)
                means[variant][name].add(agrees, batch.target_mask)
    measured = {"steps": second["steps"].tolist()}
    for variant in SALIENCY_VARIANTS:
        measured[variant] = {name: along.percent() for name, along in means[variant].items()}
    return measured


# Attention and the saliency of words (sections 1 and 5.1). The saliency of a word is a derivative through the
# attention on it, so that within one network a part of what they have in common is arithmetic. Attention of a
# network with another seed has no such part.


@measure(version=1)
def measure_salient_words(first: Recording, second: Recording) -> dict:
    """Does a classifier attend to salient words? Attention of the first run, saliency of the second.

    The two may be the same run. By part of the data, each network where it is most accurate on all of the
    part's samples, the earliest of equals, over texts, in percent: ``attention_saliency``, 𝒜(α, Δ);
    ``saliency_attention``, 𝒜(Δ, α); ``kendall``, τ-b; and ``chance``, 𝒜̂ of what is looked up in Δ. Raises
    BadInput: runs that looked at other samples; the second has no saliency there.
    """
    measured = {}
    for part in parts(second):
        rows = _rows(second, part)
        if not torch.equal(rows.starts, _rows(first, part).starts):
            raise BadInput(f"{first.spec.setting} and {second.spec.setting} were looked at on other samples")
        attention = first[f"{part}.attention"][_best(first, part)["accuracy"]["all"]]  # (cells,)
        saliency = second[f"{part}.saliency"][_best(second, part)["accuracy"]["all"]]  # (cells,)
        if saliency.isnan().any():
            raise BadInput(f"{second.spec.setting} has no saliency at its best checkpoint")
        measured[part] = _of_salient_words(attention, saliency, rows)
    return measured


def _of_salient_words(
    attention: Float[Tensor, " cells"], saliency: Float[Tensor, " cells"], rows: RaggedRows
) -> dict[str, float]:
    means = dict.fromkeys(SALIENT, RowMean())
    for places, mask, _ in rows.batches(CELLS):
        weights, salience = attention[places], saliency[places]
        means["attention_saliency"] += RowMean.of(agreement(weights, salience, mask))
        means["saliency_attention"] += RowMean.of(agreement(salience, weights, mask))
        means["kendall"] += RowMean.of(kendall(weights, salience, mask))
        means["chance"] += RowMean.of(chance_agreement(salience, mask))
    return {name: 100 * mean.value for name, mean in means.items()}


@dataclass(frozen=True)
class RunsCompared:
    """A column of the tables that compares two kinds of run.

    Attributes:
        first: kind of the first run, an attribute of :class:`Runs`.
        second: kind of the second.
        sides: what of the first is compared with what of the second.
    """

    first: str
    second: str
    sides: Sides


# The β of 𝒜(α, β) is that of a network with another seed, whose α gives ξ.
COLUMNS = {
    "alpha_beta_uf": RunsCompared("normal", "uniform", Sides("attention", "probe")),
    "beta_uf_beta_px": RunsCompared("proxy", "uniform", Sides("probe", "probe")),
    "delta_beta_uf": RunsCompared("normal", "uniform", Sides("saliency", "probe")),
    "alpha_beta": RunsCompared("normal", "normal", Sides("attention", "probe")),
    "alpha_alpha": RunsCompared("normal", "normal", Sides("attention", "attention")),
    "alpha_alpha_frozen": RunsCompared("normal", "alone", Sides("attention", "attention")),
}
WITH_PROBE = tuple(name for name, column in COLUMNS.items() if column.sides.second == "probe")


@dataclass(frozen=True)
class Runs:
    """The runs on one data set, in the order of their seeds.

    Two networks are compared where both are at hand, so those that are added later are compared among
    themselves: seeds fall into groups of ``group``, and a pair is of one group.
    """

    normal: tuple[RunSpec, ...]  # networks that learn to attend
    uniform: tuple[RunSpec, ...]  # that never do
    proxy: tuple[RunSpec, ...]  # bags of words
    alone: tuple[RunSpec, ...] = ()  # networks whose attention layer alone is trained; may be fewer
    salient: tuple[RunSpec, ...] = ()  # that learn to attend, and whose attention is compared with saliency
    group: int = 0  # seeds in a group; 0 puts all into one

    def pairs(self, column: str) -> tuple[tuple[RunSpec, RunSpec], ...]:
        """Every two runs of the column's kinds with different seeds of a group, if both kinds have them.

        Runs of one seed start from the same parameters and read in the same order, and agree for that alone.
        """
        compared = COLUMNS[column]
        firsts: tuple[RunSpec, ...] = getattr(self, compared.first)
        seconds: tuple[RunSpec, ...] = getattr(self, compared.second)
        shared = {run.seed for run in firsts} & {run.seed for run in seconds}
        firsts = tuple(run for run in firsts if run.seed in shared)
        seconds = tuple(run for run in seconds if run.seed in shared)
        return tuple(
            (first, second)
            for first, second in product(firsts, seconds)
            if first.seed != second.seed and self._group_of(first) == self._group_of(second)
        )

    def _group_of(self, run: RunSpec) -> int:
        return run.seed // self.group if self.group else 0

    def _sides_by_pair(self, columns: Iterable[str]) -> dict[tuple[RunSpec, RunSpec], list[Sides]]:
        """Every two runs of some columns, each once, with all that these columns compare of them."""
        sides: dict[tuple[RunSpec, RunSpec], list[Sides]] = {}
        for column in columns:
            for pair in self.pairs(column):
                sides.setdefault(pair, []).append(COLUMNS[column].sides)
        return sides

    def measurements(self) -> tuple[Measurement, ...]:
        """What is asked of each run that is looked up in, and of each pair."""
        looked_up = (*self.normal, *self.uniform, *self.alone)
        measurements = [Measurement(run, measure_course) for run in looked_up]
        for (first, second), sides in self._sides_by_pair(COLUMNS).items():
            settings = (("pairs", pairs_of(sides)),)
            measurements.append(Measurement(first, measure_agreement, settings, (second,)))
        return tuple(measurements)

    def saliency(self) -> tuple[Measurement, ...]:
        """What is asked of each free translator and the uniform one of the next seed: Δ in three variants."""
        others = dict(zip(self.normal, (*self.uniform[1:], *self.uniform[:1]), strict=True))
        return tuple(
            Measurement(run, measure_saliency_variants, (), (other,))
            for run, other in others.items()
            if run.procedure == "translation"
        )

    def salient_words(self) -> tuple[Measurement, ...]:
        """What is asked of each network and of every two: is what one attends to salient to the other?"""
        return tuple(
            Measurement(first, measure_salient_words, (), (second,))
            for first, second in product(self.salient, repeat=2)
        )

    def ties(self) -> tuple[Measurement, ...]:
        """What is asked of every two that a column holds against a translator's β: what its ties add.

        Of texts nothing: their β is compared by its log odds, which do not end at 1.
        """
        measurements = []
        for (first, second), compared in self._sides_by_pair(WITH_PROBE).items():
            if second.procedure == "translation":
                sides = " ".join(sides.first for sides in compared)
                measurements.append(Measurement(first, measure_ties, (("sides", sides),), (second,)))
        return tuple(measurements)


def classifier_runs(
    seeds: int, frozen: int, shared: dict[str, object], width: int, *,
    groups: int = 1, salient: Iterable[int] = (),
) -> Runs:  # fmt: skip
    """Runs on labelled texts: a group has ``seeds`` of each kind, and ``frozen`` that only learn to attend.

    ``shared`` are settings of networks and proxies alike. Networks with the seeds ``salient``, perhaps others
    than these, are asked whether they attend to salient words.
    """
    network = {"width": width, **shared}
    every = groups * seeds
    alone = each_seed(every, RunSpec.of, "classification", saliency=False, attention="alone", **network)
    return Runs(
        each_seed(every, RunSpec.of, "classification", **network),
        each_seed(every, RunSpec.of, "classification", saliency=False, attention="uniform", **network),
        each_seed(every, RunSpec.of, "classifier_proxy", **shared),
        tuple(run for run in alone if run.seed % seeds < frozen),
        tuple(RunSpec.of("classification", seed=seed, **network) for seed in salient),
        group=seeds,
    )


def translator_runs(seeds: int, shared: dict[str, object]) -> Runs:
    """Runs on sentence pairs; ``shared`` are settings of networks and proxies alike."""
    kept = {"keep_network": True}  # so that the chapter on optimal attention shares those of Multi30k
    return Runs(
        each_seed(seeds, RunSpec.of, "translation", saliency=True, **kept, **shared),
        each_seed(seeds, RunSpec.of, "translation", attention="uniform", **shared),
        each_seed(seeds, RunSpec.of, "translation_proxy", **shared),
    )


Answers = dict[tuple[RunSpec, ...], dict]  # what was asked of a run alone, or of two together


def gathered(measurements: Iterable[Measurement], store: Store) -> Answers:
    """The answers that the store has or may find out, by the models asked together; one question to each."""
    answers: Answers = {}
    for measurement in measurements:
        with suppress(NotMeasured):
            answers[measurement.spec, *measurement.other_specs] = measurement.answer(store)
    return answers
