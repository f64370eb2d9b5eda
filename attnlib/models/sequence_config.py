"""What defines a network of the primer's family, as one frozen value, and the networks that have names."""

from dataclasses import dataclass
from typing import Literal, get_args

from attnlib.errors import BadInput, UnknownName
from attnlib.models.scoring import Scoring

Link = Literal["initial", "every_step", "attention"]
SequenceCell = Literal["gru", "lstm"]
Decoder = Literal["luong", "bahdanau"]


@dataclass(frozen=True)
class SequenceConfig:
    """Size and kind of a :class:`~attnlib.models.sequence_to_sequence.SequenceToSequence`.

    Attributes:
        source_size, target_size: number of words of the two vocabularies, marks included.
        link: what the decoder gets of the source: its last state to start in (``initial``, Sutskever et al.
            2014); that state at every step and in the output as well (``every_step``, Cho et al. 2014); or
            ``attention`` to all states beside the start. Which state the decoder starts in differs from Cho
            et al. and Bahdanau et al.: see :mod:`attnlib.models.sequence_to_sequence`.
        cell: of both sides; layers: of both sides.
        bidirectional: whether the encoder reads in both directions.
        reverse: whether the encoder reads the words of the source from the last to the first. Its states are
            given in the order of the words all the same.
        scoring: see :mod:`attnlib.models.scoring`.
        decoder: ``luong`` (the present state asks, the context enters the output) or ``bahdanau`` (the state
            before asks, the context enters the recurrence and the output).
        input_feeding: whether Luong's decoder reads its last attentional state beside the word.
        width: of embeddings and states; of an encoder in two directions, of each.
        embedding_scale: standard deviation of the embeddings at the start.

    Raises:
        UnknownName: a kind that does not exist. BadInput: a size below 1, or input feeding where there is no
            attentional state.
    """

    source_size: int
    target_size: int
    link: Link = "attention"
    cell: SequenceCell = "gru"
    layers: int = 1
    bidirectional: bool = False
    reverse: bool = False
    scoring: Scoring = "dot"
    decoder: Decoder = "luong"
    input_feeding: bool = False
    width: int = 128
    embedding_scale: float = 0.3

    def __post_init__(self) -> None:
        kinds = {"link": Link, "cell": SequenceCell, "scoring": Scoring, "decoder": Decoder}
        for name, kind in kinds.items():
            if getattr(self, name) not in get_args(kind):
                raise UnknownName(name, str(getattr(self, name)), get_args(kind))
        for name in ("source_size", "target_size", "layers", "width"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.embedding_scale > 0:
            raise BadInput(f"embedding_scale is {self.embedding_scale}; it must be positive")
        if self.input_feeding and not (self.attends and self.decoder == "luong"):
            raise BadInput("input_feeding is part of Luong's decoder with attention")

    @property
    def attends(self) -> bool:
        return self.link == "attention"

    @property
    def encoder_width(self) -> int:
        """Of the encoder states, both directions together."""
        return self.width * (2 if self.bidirectional else 1)

    @property
    def feeds_back(self) -> bool:
        """Whether a decoder step needs what attention found before it, so that steps go one by one."""
        return self.attends and (self.decoder == "bahdanau" or self.input_feeding)


# Settings of the networks that the primers name, sizes left out.
NAMED: dict[str, dict[str, object]] = {
    "cho": {"link": "every_step"},
    "sutskever": {"link": "initial", "cell": "lstm", "layers": 2, "reverse": True},
    "bahdanau": {"scoring": "additive", "decoder": "bahdanau", "bidirectional": True},
    "luong": {"scoring": "general", "cell": "lstm", "layers": 2, "input_feeding": True},
}
