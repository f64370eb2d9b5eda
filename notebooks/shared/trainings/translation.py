"""The translation model along its training: attention, lexical probe and quality at every checkpoint.

Snell et al. 2021, sections 2.1, 2.2 and A.8. With ``attention="uniform"`` the probe is β^uf. A source has two
marks, one at its beginning and one at its end, as the classifiers' texts have::

    source   <bos>  the  cat  sat  <eos>

both of them positions that may be attended to. The paper does not say; that its sources have two shows in its
random baseline, which is arithmetic of the lengths: ``python benchmarks/source_marks.py`` holds what is
printed against either reading.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from attnlib.errors import BadInput, check_at_least
from attnlib.models.corpus import Batch, Corpus, collate, evaluation_batches
from attnlib.models.search import translate
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.models.vocabulary import BOS, EOS, PAD
from attnlib.probes.lexical_probe import log_lexical_probe
from attnlib.trace import Trace
from companion.data.parallel import read_translation, translation_checksums
from companion.data.sources import cache_folder
from companion.runs.loop import Report, Schedule, train_network
from notebooks.shared import snapshots as kept
from notebooks.shared.bleu import bleu_counts
from notebooks.shared.pieces import EqualLengthBatches, PieceCorpus, Pieces, piece_corpus
from notebooks.shared.snapshots import Tensors, keep_if_best, qualities, save_snapshot, stacked_snapshots

VERSION = 1  # of the training: raised when what it trains changes

EVALUATION_BATCH = 64  # samples that are looked at together
_NETWORK = "network."
_PROBED_SEED = 0x9806  # the pairs probed are the same in every run, so that runs can be compared


@dataclass(frozen=True)
class TranslationSettings:
    """The data and the training; the defaults are the paper's (section A.8)."""

    dataset: str = "multi30k_en_de"  # of :data:`companion.data.parallel.NAMES`; known_lexicon needs no data
    source: str | Path = ""  # a reader's own file, for "parallel_files"
    target: str | Path = ""
    pieces: int = 8_000  # of the shared vocabulary, four marks included
    n_train: int = 0  # use only so many pairs from the beginning; 0 for all
    n_validation: int = 0
    longest: int = 0  # leave out pairs with more pieces on a side; 0 for none
    probed_validation: int = 0  # so many validation pairs are probed, a sample drawn once; 0 for all
    probed_training: int = 0  # so many training pairs are probed like them (Table 7); 0 for none
    width: int = 256
    batch_size: int = 16
    learning_rate: float = 1e-3
    steps: int = 36_250  # 20 epochs of Multi30k
    seed: int = 0  # of parameters, of the order of batches, and of dropout

    def __post_init__(self) -> None:
        check_at_least(0, self, "n_train", "n_validation", "longest", "probed_validation", "probed_training")


@dataclass(frozen=True)
class Settings(TranslationSettings):
    """The network beside the data; the defaults are the paper's."""

    attention: str = "learned"  # or "uniform" throughout
    form: str = "joined"  # (equation 2) or "summed" (equation 32)
    dropout: float = 0.5  # between the layers of the LSTMs
    saliency: bool = False  # recorded of the best snapshots: three times as long as all else of a snapshot
    # Whether to record the trained parameters, for what is asked of the network afterwards (the optimal
    # attention of section A.1); 33 MB at the paper's size.
    keep_network: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.config(words=1)  # what it cannot be, the network's own settings say

    def config(self, words: int) -> TranslatorConfig:
        return TranslatorConfig(
            words, self.width, dropout=self.dropout, attention=self.attention, form=self.form
        )


@dataclass(frozen=True, eq=False)
class Probed:
    """Samples that are probed at every checkpoint, in a fixed order, and their targets as text."""

    corpus: Corpus
    references: tuple[str, ...]


def paper_checkpoints(steps: int) -> tuple[int, ...]:
    """The steps at which translation models are evaluated (Snell et al., section A.8), and the last one.

    >>> paper_checkpoints(4000)
    (0, 50, 100, 500, 1000, 1500, 3500, 4000)
    >>> paper_checkpoints(60)
    (0, 50, 60)
    """
    early = (0, 50, 100, 500, 1000)
    return (*(step for step in (*early, *range(1500, steps, 2000)) if step < steps), steps)


def checkpoints(settings: Settings) -> tuple[int, ...]:
    return paper_checkpoints(settings.steps)


def new_network(settings: Settings, words: int) -> BilinearTranslator:
    """The untrained network; of one seed, the same with learned and with uniform attention."""
    return BilinearTranslator(settings.config(words), torch.Generator().manual_seed(settings.seed))


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Train the network and look at it, under teacher forcing but for BLEU, at every checkpoint.

    For each part probed (``validation``, and ``training`` where asked for) by checkpoint

    * ``<part>.log_probe``, where learned ``<part>.attention``, and where asked for ``<part>.saliency`` (of
      the part's best snapshots, NaN at others) over all valid pairs of positions: see
      :func:`padded_cells`. In float32, since agreement lives on their order: half
      precision would tie 7 % of the neighbouring values in a row of attention, 92 % in one of the probe.
    * by sample ``<part>.right``, how many words are predicted right, ``<part>.loss``, the negative
      log-likelihood of its words, summed, in nats, and ``<part>.bleu_counts`` of greedy translations

    and ``<part>.{source, source_mask, target_output, target_mask}``, which do not change; where asked for,
    ``network.<parameter>`` as they are in the end, for :func:`recorded_network`.
    """
    data = load_pieces(settings)
    parts = probed_parts(data, settings)
    masks = masks_of(parts)
    schedule = Schedule(settings.steps, settings.seed, settings.learning_rate, checkpoints(settings))

    def visit(step: int, network: BilinearTranslator) -> None:
        snapshots = {}
        for name, part in parts.items():
            snapshot = snapshot_of(network, part, device=device)
            snapshot["bleu_counts"] = bleu_snapshot(network, part, data.pieces, device=device)
            snapshots |= {f"{name}.{what}": values for what, values in snapshot.items()}
        if settings.saliency:
            keep_if_best(folder, step, network, {name: qualities(snapshots | masks, name) for name in parts})
        save_snapshot(folder, step, snapshots)

    def see(network: BilinearTranslator, name: str) -> Tensors:
        return {f"{name}.saliency": saliency_snapshot(network, parts[name], device)}

    network = new_network(settings, len(data.pieces))
    train_network(
        network, EqualLengthBatches(data.train, settings.batch_size, settings.seed), BilinearTranslator.loss,
        schedule, folder, visit=visit, device=device, report=report,
    )  # fmt: skip
    recording = stacked_snapshots(folder, schedule.checkpoints) | masks
    if settings.saliency:
        recording |= kept.seen_where_best(folder, network, schedule.checkpoints, see)
    if settings.keep_network:
        recording |= {f"{_NETWORK}{name}": value.cpu() for name, value in network.state_dict().items()}
    return recording


def recorded_network(settings: Settings, recording: Mapping[str, Tensor]) -> BilinearTranslator:
    """The trained network of a recording, in evaluation mode; BadInput where it was not kept."""
    state = {name.removeprefix(_NETWORK): recording[name] for name in recording if name.startswith(_NETWORK)}
    if not state:
        raise BadInput("the recording has no network; record it with keep_network=True")
    network = new_network(settings, len(state["embedding.weight"]))
    network.load_state_dict(state)
    return network.eval()


@torch.no_grad()
def snapshot_of(network: BilinearTranslator, part: Probed, *, device: str = "cpu") -> Tensors:
    """What :func:`record` keeps of every checkpoint, BLEU aside; samples in the order of the corpus."""
    cells: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {}
    right = torch.zeros(len(part.corpus), dtype=torch.int32)
    loss = torch.zeros(len(part.corpus))
    for batch in evaluation_batches(part.corpus, EVALUATION_BATCH):
        batch = batch.to(device)
        trace = network(batch)
        for name, values in _cells(network, trace, batch).items():
            valid = valid_cells(batch.source_mask, batch.target_mask)
            cells.setdefault(name, []).append((batch.indices, values, valid))
        log_probabilities = trace.logits.log_softmax(-1)
        chosen = log_probabilities.gather(-1, batch.target_output[:, :, None])[:, :, 0]
        likeliest = log_probabilities.argmax(-1)
        rows = batch.indices.cpu()
        right[rows] = ((likeliest == batch.target_output) & batch.target_mask).sum(1, dtype=torch.int32).cpu()
        loss[rows] = -chosen.masked_fill(~batch.target_mask, 0).sum(1).cpu()
    return {name: joined_cells(batches) for name, batches in cells.items()} | {"right": right, "loss": loss}


def _cells(network: BilinearTranslator, trace: Trace, batch: Batch) -> Tensors:
    cells = {
        "log_probe": log_lexical_probe(
            network.readout,
            trace.encoder_states,
            trace.decoder_states,
            outputs=batch.target_output,
            source_mask=batch.source_mask,
            target_mask=batch.target_mask,
        )
    }
    if network.config.attention == "learned":
        cells["attention"] = trace.attention
    return cells


def saliency_snapshot(network: BilinearTranslator, part: Probed, device: str = "cpu") -> Tensor:
    batches = (batch.to(device) for batch in evaluation_batches(part.corpus, EVALUATION_BATCH))
    cells = (
        (b.indices, translation_saliency(network, b), valid_cells(b.source_mask, b.target_mask))
        for b in batches
    )
    return joined_cells(cells).cpu()


@torch.no_grad()
def bleu_snapshot(
    network: BilinearTranslator, part: Probed, pieces: Pieces, *, device: str = "cpu"
) -> Tensor:
    """Counts for BLEU of greedy translations, which are cut off at twice the source and ten more."""
    written: list[list[int]] = [[] for _ in range(len(part.corpus))]
    for batch in evaluation_batches(part.corpus, EVALUATION_BATCH):
        batch = batch.to(device)
        most = 2 * batch.source.shape[1] + 10
        words = translate(network, batch.source, batch.source_mask, max_steps=most)
        for index, row in zip(batch.indices.tolist(), words.tolist(), strict=True):
            written[index] = [word for word in row if word not in (PAD, EOS)]
    return torch.from_numpy(bleu_counts(pieces.decode(written), part.references).astype(np.int32))


def load_pieces(settings: TranslationSettings) -> PieceCorpus:
    """The pairs as pieces, every source with its begin mark; errors as of the data that it reads."""
    return _load(
        settings.dataset, settings.source, settings.target, settings.pieces, settings.n_train or None,
        settings.n_validation or None, settings.longest or None,
    )  # fmt: skip


@lru_cache(maxsize=2)
def _load(name: str, source: str, target: str, size: int, n_train, n_validation, longest) -> PieceCorpus:
    data = piece_corpus(
        read_translation(name, source=source, target=target), size=size, n_train=n_train,
        n_validation=n_validation, longest=longest, folder=cache_folder() / "pieces",
    )  # fmt: skip
    return replace(data, train=begun(data.train), validation=begun(data.validation))


def begun(corpus: Corpus) -> Corpus:
    """The corpus with a begin mark before every source; the end mark is added by ``collate``.

    >>> begun(Corpus.from_ids([[5, 6], [], [7]], [[8], [9], [4]])).source_ids.tolist()
    [1, 5, 6, 1, 1, 7]
    """
    ids = np.insert(corpus.source_ids, corpus.source_offsets[:-1], BOS)
    offsets = corpus.source_offsets + np.arange(len(corpus) + 1)
    return replace(corpus, source_ids=ids, source_offsets=offsets)


def checksums(settings: TranslationSettings) -> dict[str, str]:
    return translation_checksums(settings.dataset, source=settings.source, target=settings.target)


def probed_parts(data: PieceCorpus, settings: TranslationSettings) -> dict[str, Probed]:
    """The validation set or a sample of it, and a sample of the training set where one is asked for."""
    validation = data.validation, data.validation_targets
    probed = settings.probed_validation
    parts = {"validation": _sample(*validation, probed, "validation") if probed else Probed(*validation)}
    if settings.probed_training:
        parts["training"] = _sample(data.train, data.train_targets, settings.probed_training, "training")
    return parts


def _sample(corpus: Corpus, targets: tuple[str, ...], count: int, part: str) -> Probed:
    if count > len(corpus):
        raise BadInput(f"probed_{part} is {count}, but there are {len(corpus)} {part} pairs")
    chosen = np.sort(np.random.default_rng(_PROBED_SEED).permutation(len(corpus))[:count])
    pairs = Corpus.from_ids(
        [corpus.source(i)[1:] for i in chosen],  # a corpus is made of words, and the mark goes before them
        [corpus.target(i) for i in chosen],
    )
    return Probed(begun(pairs), tuple(targets[i] for i in chosen))


def masks_of(parts: dict[str, Probed]) -> Tensors:
    """Of each part the ids read and predicted, marks included, and masks; padded to the longest."""
    masks = {}
    for name, part in parts.items():
        batch = collate(part.corpus, np.arange(len(part.corpus)))
        for field in ("source", "source_mask", "target_output", "target_mask"):
            values = getattr(batch, field)
            # ids of at most a few ten thousand pieces
            masks[f"{name}.{field}"] = values if values.dtype == torch.bool else values.to(torch.int32)
    return masks


# What is known of every pair of positions is kept without its padding (seven cells in eight of Multi30k's
# validation set), by sample, target position and source position.

SourceMask, TargetMask = Bool[Tensor, "samples source"], Bool[Tensor, "samples target"]


def valid_cells(source_mask: SourceMask, target_mask: TargetMask) -> Bool[Tensor, "samples target source"]:
    """True where both positions are words or end marks."""
    return target_mask[:, :, None] & source_mask[:, None, :]


def padded_cells(
    cells: Shaped[Tensor, "*checkpoints cells"], source_mask: SourceMask, target_mask: TargetMask, *, fill=0.0
) -> Shaped[Tensor, "*checkpoints samples target source"]:
    """Cells in their places, ``fill`` at padding.

    >>> cells, one = torch.arange(1.0, 4.0), torch.tensor([[True], [True]])
    >>> padded_cells(cells, torch.tensor([[True, False], [True, True]]), one).tolist()
    [[[1.0, 0.0]], [[2.0, 3.0]]]
    """
    valid = valid_cells(source_mask, target_mask)
    result = cells.new_full((*cells.shape[:-1], *valid.shape), fill)
    result[..., valid] = cells
    return result


def joined_cells(batches: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Shaped[Tensor, " cells"]:
    """Valid cells in the order of the samples, from padded batches in any order.

    A batch is (index of each sample, its padded cells, which of them are valid).
    """
    by_sample = {}
    for indices, padded, valid in batches:
        for row, index in enumerate(indices.tolist()):
            by_sample[index] = padded[row][valid[row]]
    return torch.cat([by_sample[index] for index in sorted(by_sample)])


# Saliency: with a gate g_t on the embedding of source position t and all gates at 1,
#
#     Δ[s, t] = ∂/∂g_t logit_s[right word of s] = ⟨∂ logit_s[right word] / ∂e_t, e_t⟩,
#
# under teacher forcing, through the attention, the encoder's states and the decoder's start alike; it may be
# negative. The paper names the method alone (section 5.1: gradients, after Ebrahimi et al. 2018). The score
# is the word's logit, as it is in the classifier, not its log-probability.


def translation_saliency(model: BilinearTranslator, batch: Batch) -> Float[Tensor, "batch target source"]:
    """Saliency of every valid pair of positions, zero at padding; no parameter is given a gradient.

    One pass forward and one backward a target position: samples do not touch one another, so the position's
    gradients of all samples come at once. The model should be in evaluation mode. Raises BadInput for a
    source of padding alone.
    """
    # cuDNN refuses to go backward through a recurrent layer in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        gates = model.embedding.weight.new_ones(batch.source.shape).requires_grad_()
        encoder_states, start = model.encode(
            model.embedding(batch.source) * gates[:, :, None], batch.source_mask
        )
        decoder_states, _ = model.decoder(model.embedding(batch.target_input), start)
        _, attention = model.attend(encoder_states, batch.source_mask, decoder_states)
        readout = model.readout
        summed = readout.from_context(attention @ encoder_states) + readout.from_decoder(decoder_states)
        scores = readout.logit_of(summed, batch.target_output)
        rows = [
            torch.autograd.grad(score.sum(), gates, retain_graph=True)[0] for score in scores.unbind(dim=1)
        ]
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    return torch.stack(rows, dim=1) * valid
