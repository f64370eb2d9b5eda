"""A corpus as a numbered stream of forward passes, any part of which can be read again."""

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import astuple, dataclass, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Generic, TypeVar

from jaxtyping import Float
from torch import Tensor

from attnlib.adapters.tensors import digest_of, read_pass, saved_files
from attnlib.analysis.learned import Learned
from attnlib.errors import BadInput
from attnlib.trace import Trace

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
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Losses(*(count + other_count for count, other_count in pairs))

    @property
    def unknown(self) -> dict[str, float]:
        """Share of the pieces that the tokenizer does not know, of each side that has pieces."""
        shares = {}
        if self.source_pieces:
            shares["source"] = self.source_unknown / self.source_pieces
        if self.target_pieces:
            shares["target"] = self.target_unknown / self.target_pieces
        return shares


@dataclass(frozen=True, eq=False)
class Stream(Generic[Batch]):
    """Batches and what makes a pass of each; batches of other parts do not go through the model.

    Raises:
        BadInput: batches that can be read only once.
    """

    trace: Callable[[Batch], Trace]  #: of one batch, such as :meth:`attnlib.adapters.HuggingFace.trace`
    #: a list or a loader, or a function that starts anew whenever it is called: a corpus is read twice
    batches: Iterable[Batch] | Callable[[], Iterable[Batch]]
    #: the lexical probe of a pass, such as :meth:`attnlib.adapters.Modules.lexical_probe`; by default what
    #: the pass brings itself, if it does
    probe: Callable[[Trace], Float[Tensor, "batch target source"] | None] = attrgetter("lexical_probe")
    #: of how many of the judged batches it is taken, over all shards: it is expensive; None: all
    probed: int | None = 4
    #: what a batch lacks of the corpus; nothing by default. A report shows their sum.
    losses: Callable[[Batch], Losses] = lambda _batch: Losses()
    no_probe: str = ""  #: why there is no lexical probe, where it was tried in vain, see :meth:`tried`
    #: what a pass predicts, such as :meth:`attnlib.adapters.Modules.logits`: a report then says how well, and
    #: whether the model has learned at all
    logits: Callable[[Trace], Float[Tensor, "batch target words"]] | None = None
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

    @staticmethod
    def saved(folder: str | Path) -> "Stream[Path]":
        """Return the passes that are saved in a folder, see :mod:`attnlib.adapters.tensors`.

        Raises:
            BadInput: the folder has none.
        """

        def made() -> dict[str, dict]:
            return {"sha256": {"traces": digest_of(folder)}}

        return Stream(read_pass, saved_files(folder), probed=None, made=cache(made))

    def is_probed(self, judged_before: int) -> bool:
        """Return True if the probe is taken of a batch before which so many are judged."""
        return self.probed is None or judged_before < self.probed

    def tried(self, batch: Batch | None) -> "Stream[Batch]":
        """Return the stream, without its probe if that cannot be taken of the first sample of a batch.

        It is tried before a corpus is read in vain; one sample is quick.

        Raises:
            BadInput: logits that are not those of this model.
        """
        if batch is None:
            return self
        model_pass = self.trace(batch).validated()
        if self.logits:
            Learned().add(model_pass, self.logits(model_pass), self.never_written)
        if self.probed == 0:
            return self
        try:
            self.probe(model_pass.first(1))
        except BadInput as error:
            return replace(self, probed=0, no_probe=str(error))
        return self

    def first(self, stage: str = "fit", part: "Shard | None" = None) -> Batch | None:
        """Return the first batch of a part, or of all; None if there is none."""
        for number, batch in self.numbered():
            if part is None or part.is_of(stage, number):
                return batch
        return None

    def numbered(self) -> Iterator[tuple[int, Batch]]:
        """Return the batches with their numbers, from the first one on."""
        batches = self.batches() if callable(self.batches) else self.batches
        return enumerate(batches)


@dataclass(frozen=True)
class Shard:
    """One of the shards that the batches of a stream are dealt to.

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
        """Return this shard and all others."""
        return [replace(self, shard=shard) for shard in range(self.shards)]

    def is_of(self, stage: str, number: int) -> bool:
        """Return True if a batch of this shard belongs to a stage, ``"fit"`` or ``"judge"``."""
        if number // self.every % self.shards != self.shard:
            return False
        held_out = number % self.every == self.every - 1
        return self.every == 1 or held_out == (stage == "judge")

    def judged_before(self, number: int) -> int:
        """Return how many batches are judged before this one, in all shards together."""
        return number // self.every
