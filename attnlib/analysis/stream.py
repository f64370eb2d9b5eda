"""A corpus as a numbered stream of passes, of which parts can be had again."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import astuple, dataclass, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Generic, TypeVar

from jaxtyping import Float
from torch import Tensor

from attnlib.adapters.model_pass import ModelPass
from attnlib.adapters.tensors import digest_of, read_pass, saved_files
from attnlib.analysis.learned import Learned
from attnlib.errors import BadInput

Batch = TypeVar("Batch")

STAGES = ("fit", "judge")  # the two passes over a corpus


@dataclass(frozen=True)
class Losses:
    """Samples of a corpus that a batch lacks, those of which it has a part, and pieces that are unknown."""

    left_out: int = 0
    cut: int = 0
    source_pieces: int = 0  #: that a tokenizer made; 0 where none is known of
    source_unknown: int = 0  #: those of them that stand for whatever it does not know
    target_pieces: int = 0
    target_unknown: int = 0

    def __add__(self, other: "Losses") -> "Losses":
        return Losses(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def unknown(self) -> dict[str, float]:
        """Share of the pieces of each side that the tokenizer does not know."""
        sides = {"source": self.source_pieces, "target": self.target_pieces}
        return {side: getattr(self, f"{side}_unknown") / count for side, count in sides.items() if count}


@dataclass(frozen=True, eq=False)
class Stream(Generic[Batch]):
    """Batches and what makes a pass of each; batches of other parts do not go through the model.

    Raises:
        BadInput: batches that can be read only once.
    """

    trace: Callable[[Batch], ModelPass]  #: of one batch, such as :meth:`attnlib.adapters.HuggingFace.trace`
    #: a list, or a function that starts anew whenever it is called: a corpus is read twice
    batches: Sequence[Batch] | Callable[[], Iterable[Batch]]
    #: the lexical probe of a pass, such as :meth:`attnlib.adapters.Modules.lexical_probe`; by default what
    #: the pass brings itself, if it does
    probe: Callable[[ModelPass], Float[Tensor, "batch target source"] | None] = attrgetter("lexical_probe")
    #: of how many of the judged batches it is taken, over all shards: it is expensive; None: all
    probed: int | None = 4
    #: what a batch lacks of the corpus; nothing by default. A report shows their sum.
    losses: Callable[[Batch], Losses] = lambda _batch: Losses()
    no_probe: str = ""  #: why there is no lexical probe, where it was tried in vain, see :meth:`tried`
    #: what a pass predicts, such as :meth:`attnlib.adapters.Modules.logits`: a report then says how well, and
    #: whether the model has learned at all
    logits: Callable[[ModelPass], Float[Tensor, "batch target words"]] | None = None
    #: how many batches there are, for a bar that says how far a pass is; by default the length of a list
    n_batches: int | None = None
    #: what makes batches and passes, by group: options, checksums of files; a report shows it
    made: Callable[[], dict[str, dict]] = dict
    #: ids that the model may not write, whatever it predicts: they count as no prediction
    never_written: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.batches, Iterator):
            raise BadInput(
                "batches can be read only once, and a corpus is read twice: give a list, or a function that "
                "starts anew"
            )
        if self.n_batches is None and isinstance(self.batches, Sized):
            object.__setattr__(self, "n_batches", len(self.batches))

    @classmethod
    def saved(cls, folder: str | Path) -> "Stream[Path]":
        """The files of a folder, see :mod:`attnlib.adapters.tensors`; BadInput without any."""
        made = cache(lambda: {"sha256": {"traces": digest_of(folder)}})
        return cls(read_pass, saved_files(folder), probed=None, made=made)

    def is_probed(self, judged: int) -> bool:
        return self.probed is None or judged < self.probed

    def tried(self, batch: Batch | None) -> "Stream[Batch]":
        """The same; without the probe where it cannot be taken of a batch's first sample, which is quick.

        BadInput for logits that are none of this model, before a corpus was read in vain.
        """
        if batch is None:
            return self
        one = self.trace(batch)
        if self.logits:
            Learned().add(one, self.logits(one), self.never_written)
        try:
            if self.probed != 0:
                self.probe(one.first(1))
        except BadInput as error:
            return replace(self, probed=0, no_probe=str(error))
        return self

    def first(self, stage: str = "fit", part: "Shard | None" = None) -> Batch | None:
        """The first batch of a part, or of all; None where there is none."""
        wanted = (batch for number, batch in self.numbered() if part is None or part.is_of(stage, number))
        return next(wanted, None)

    def numbered(self) -> Iterator[tuple[int, Batch]]:
        return enumerate(self.batches() if callable(self.batches) else self.batches)


@dataclass(frozen=True)
class Shard:
    """Some of the batches of a stream: those of one shard, and of them those to fit on or those to judge.

    The last of each ``every`` batches is held out of the fit and judged, whatever the shards: they are dealt
    such blocks of batches in turn.

    Attributes:
        shard, shards: blocks shard, shard + shards, …
        every: how many batches there are to one that is held out; 1 holds out none, and all are both.

    Raises:
        BadInput: a shard that is none of these, or ``every`` below 1.

    >>> [[n for n in range(12) if Shard(1, 2, 3).is_of(stage, n)] for stage in ("fit", "judge")]
    [[3, 4, 9, 10], [5, 11]]
    """

    shard: int = 0
    shards: int = 1
    every: int = 5

    def __post_init__(self) -> None:
        if not 0 <= self.shard < self.shards:
            raise BadInput(f"shard is {self.shard} of {self.shards}; they are counted from 0")
        if self.every < 1:
            raise BadInput(f"every is {self.every}; it must be at least 1")

    def all_shards(self) -> "list[Shard]":
        return [replace(self, shard=shard) for shard in range(self.shards)]

    def is_of(self, stage: str, number: int) -> bool:
        """Whether a batch belongs to a stage, ``"fit"`` or ``"judge"``."""
        if number // self.every % self.shards != self.shard:
            return False
        held_out = number % self.every == self.every - 1
        return self.every == 1 or held_out == (stage == "judge")

    def judged_before(self, number: int) -> int:
        """How many batches are judged before this one, in all shards together."""
        return number // self.every
