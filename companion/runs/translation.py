"""The translation model along its training: attention, lexical probe and quality at every checkpoint.

Snell et al. 2021, sections 2.1, 2.2 and A.8. With ``attention="uniform"`` the probe is β^uf.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.models.search import translate
from attnlib.models.translator import BilinearTranslator, TranslatorConfig, TranslatorTrace
from attnlib.probes.lexical_probe import log_lexical_probe
from attnlib.probes.saliency import translation_saliency
from attnlib.training.corpus import Batch, evaluation_batches
from attnlib.training.course import Course, Report, paper_checkpoints, run_course
from attnlib.training.vocabulary import EOS, PAD
from companion.data.bleu import bleu_counts
from companion.data.pieces import EqualLengthBatches, Pieces
from companion.runs import translation_data
from companion.runs.looks import (
    gathered_looks,
    joined_cells,
    keep_if_best,
    keep_look,
    qualities,
    seen_where_best,
    valid_cells,
)
from companion.runs.translation_data import Probed, TranslationSettings, load_pieces, masks_of, probed_parts

LOOK_BATCH = 64  # samples that are looked at together
_NETWORK = "network."


@dataclass(frozen=True)
class Settings(TranslationSettings):
    """The network beside the data; the defaults are the paper's.

    Attributes:
        attention: ``"learned"``, or ``"uniform"`` throughout.
        form: ``"joined"`` (equation 2) or ``"summed"`` (equation 32).
        dropout: between the layers of the LSTMs.
        saliency: whether to record it, of the best looks; it takes three times as long as all else of a look.
        keep_network: whether to record the trained parameters, for what is asked of the network afterwards
            (the optimal attention of section A.1); 33 MB at the paper's size.
    """

    attention: str = "learned"
    form: str = "joined"
    dropout: float = 0.5
    saliency: bool = False
    keep_network: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.config(words=1)  # what it cannot be, the network's own settings say

    def config(self, words: int) -> TranslatorConfig:
        """What the network is built from, given the size of its vocabulary."""
        return TranslatorConfig(
            words, self.width, dropout=self.dropout, attention=self.attention, form=self.form
        )


def checksums(settings: Settings) -> dict[str, str]:
    """sha256 of each data file read; empty for the corpus made by rule."""
    return translation_data.checksums(settings)


def checkpoints(settings: Settings) -> tuple[int, ...]:
    """Numbers of updates after which it is looked at: the paper's, and the last."""
    return paper_checkpoints(settings.steps)


def new_network(settings: Settings, words: int) -> BilinearTranslator:
    """The untrained network; of one seed, the same with learned and with uniform attention."""
    return BilinearTranslator(settings.config(words), torch.Generator().manual_seed(settings.seed))


def record(
    settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None
) -> dict[str, Tensor]:
    """Train the network and look at it, under teacher forcing but for BLEU, at every checkpoint.

    Returns:
        ``steps``, and for each part probed (``validation``, and ``training`` where asked for) by checkpoint

        * ``<part>.log_probe``, where learned ``<part>.attention``, and where asked for ``<part>.saliency``
          (of the part's best looks, :mod:`companion.runs.looks`, NaN at others), over all valid pairs
          of positions: see :func:`companion.runs.looks.padded_cells`. In float32: agreement and Kendall's τ
          live on their order, and half precision would tie 7 % of the neighbouring values in a row of
          attention and 92 % of those in a row of the probe (an untrained network on Multi30k; in float32
          below 0.1 %).
        * ``<part>.right``: by sample, how many words are predicted right; ``<part>.loss``: by sample, the
          negative log-likelihood of its words, summed, in nats. Divided by the words in ``target_mask``
          these are accuracy and loss of any part of the samples.
        * ``<part>.bleu_counts``: by sample, of greedy translations; see :func:`companion.data.bleu.bleu`.

        and ``<part>.{source, source_mask, target_output, target_mask}``, which do not change; where asked
        for, ``network.<parameter>`` as they are in the end, for :func:`recorded_network`.

    Raises:
        TrainingDiverged: the loss is not finite.
        DataUnavailable, CorruptFile, BadInput: see :func:`companion.runs.translation_data.load_pieces`.
    """
    data = load_pieces(settings)
    parts = probed_parts(data, settings)
    masks = masks_of(parts)
    course = Course(settings.steps, settings.seed, settings.learning_rate, checkpoints(settings))

    def visit(step: int, network: BilinearTranslator) -> None:
        found = {}
        for name, part in parts.items():
            look = look_at(network, part, device=device)
            look["bleu_counts"] = bleu_look(network, part, data.pieces, device=device)
            found |= {f"{name}.{what}": values for what, values in look.items()}
        if settings.saliency:
            keep_if_best(folder, step, network, {name: qualities(found | masks, name) for name in parts})
        keep_look(folder, step, found)

    def see(network: BilinearTranslator, name: str) -> dict[str, Tensor]:
        return {f"{name}.saliency": saliency_look(network, parts[name], device)}

    network = new_network(settings, len(data.pieces))
    run_course(
        network,
        EqualLengthBatches(data.train, settings.batch_size, settings.seed),
        BilinearTranslator.loss,
        course,
        folder,
        visit=visit,
        device=device,
        report=report,
    )
    recording = gathered_looks(folder, course.checkpoints) | masks
    if settings.saliency:
        recording |= seen_where_best(folder, network, course.checkpoints, see)
    if settings.keep_network:
        recording |= {f"{_NETWORK}{name}": value.cpu() for name, value in network.state_dict().items()}
    return recording


def recorded_network(settings: Settings, recording: Mapping[str, Tensor]) -> BilinearTranslator:
    """The trained network of a recording, in evaluation mode.

    Raises:
        BadInput: the recording does not have it.
    """
    state = {name.removeprefix(_NETWORK): recording[name] for name in recording if name.startswith(_NETWORK)}
    if not state:
        raise BadInput("the recording has no network; record it with keep_network=True")
    network = new_network(settings, len(state["embedding.weight"]))
    network.load_state_dict(state)
    return network.eval()


@torch.no_grad()
def look_at(network: BilinearTranslator, part: Probed, *, device: str = "cpu") -> dict[str, Tensor]:
    """What :func:`record` keeps of every checkpoint, BLEU aside; samples in the order of the corpus."""
    cells: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {}
    right = torch.zeros(len(part.corpus), dtype=torch.int32)
    loss = torch.zeros(len(part.corpus))
    for batch in evaluation_batches(part.corpus, LOOK_BATCH):
        batch = batch.to(device)
        trace = network(batch)
        for name, values in _cells(network, trace, batch).items():
            valid = valid_cells(batch.source_mask, batch.target_mask)
            cells.setdefault(name, []).append((batch.indices, values, valid))
        log_probabilities = trace.logits.log_softmax(-1)
        chosen = log_probabilities.gather(-1, batch.target_output[:, :, None])[:, :, 0]
        said = log_probabilities.argmax(-1)
        rows = batch.indices.cpu()
        right[rows] = ((said == batch.target_output) & batch.target_mask).sum(1, dtype=torch.int32).cpu()
        loss[rows] = -chosen.masked_fill(~batch.target_mask, 0).sum(1).cpu()
    return {name: joined_cells(batches) for name, batches in cells.items()} | {"right": right, "loss": loss}


def _cells(network: BilinearTranslator, trace: TranslatorTrace, batch: Batch) -> dict[str, Tensor]:
    """What is recorded of every pair of positions, padded."""
    found = {
        "log_probe": log_lexical_probe(
            network.readout,
            trace.encoder_states,
            trace.decoder_states,
            batch.target_output,
            batch.source_mask,
            batch.target_mask,
        )
    }
    if network.config.attention == "learned":
        found["attention"] = trace.attention
    return found


def saliency_look(network: BilinearTranslator, part: Probed, device: str = "cpu") -> Tensor:
    """Saliency over all valid pairs of positions, on the CPU; samples in the order of the corpus."""
    batches = (batch.to(device) for batch in evaluation_batches(part.corpus, LOOK_BATCH))
    cells = (
        (
            batch.indices,
            translation_saliency(network, batch),
            valid_cells(batch.source_mask, batch.target_mask),
        )
        for batch in batches
    )
    return joined_cells(cells).cpu()


@torch.no_grad()
def bleu_look(network: BilinearTranslator, part: Probed, pieces: Pieces, *, device: str = "cpu") -> Tensor:
    """Counts for BLEU of greedy translations, by sample; int32, (samples, 10).

    A translation is cut off at twice the source's pieces and ten more.
    """
    written: list[list[int]] = [[] for _ in range(len(part.corpus))]
    for batch in evaluation_batches(part.corpus, LOOK_BATCH):
        batch = batch.to(device)
        words = translate(network, batch.source, batch.source_mask, 2 * batch.source.shape[1] + 10)
        for index, row in zip(batch.indices.tolist(), words.tolist(), strict=True):
            written[index] = [word for word in row if word not in (PAD, EOS)]
    return torch.from_numpy(bleu_counts(pieces.decode(written), part.references).astype(np.int32))
