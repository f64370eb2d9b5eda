"""A corpus as a numbered stream of forward passes, any part of which can be read again."""

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from jaxtyping import Float
from torch import Tensor, nn

from attnlib.adapters.modules import ModelAdapter
from attnlib.adapters.tensors import digest_of, read_pass, saved_files
from attnlib.analysis.learned import Learned
from attnlib.errors import BadInput
from attnlib.former_names import former_arguments, former_attribute, former_object, warn
from attnlib.trace import Trace

Batch = TypeVar("Batch")

STAGES = ("fit", "judge")  # the two passes over a corpus


@dataclass(frozen=True)
class CorpusGaps:
    """Counts of what a corpus has and its batches lack: samples left out or cut, and unknown pieces.

    They have nothing to do with the loss of a model. Streams, sums, analyses and reports keep them as
    ``losses``.

    Attributes:
        left_out: samples that are in no batch.
        cut: samples of which only the first positions are in a batch.
        source_pieces, target_pieces: pieces that a tokenizer made of each side; 0 where there is none.
        source_unknown, target_unknown: those of them that are the tokenizer's mark for unknown text.

    Example:
        >>> total = CorpusGaps(cut=1, source_pieces=8, source_unknown=2) + CorpusGaps(cut=2)
        >>> total.cut, total.unknown
        (3, {'source': 0.25})
    """

    left_out: int = 0
    cut: int = 0
    source_pieces: int = 0
    _: KW_ONLY
    source_unknown: int = 0
    target_pieces: int = 0
    target_unknown: int = 0

    def __add__(self, other: "CorpusGaps") -> "CorpusGaps":
        totals = {}
        for field in fields(self):
            totals[field.name] = getattr(self, field.name) + getattr(other, field.name)
        return CorpusGaps(**totals)

    @property
    def unknown(self) -> dict[str, float]:
        """Share of the pieces that the tokenizer does not know, for each side that has pieces."""
        shares = {}
        if self.source_pieces:
            shares["source"] = self.source_unknown / self.source_pieces
        if self.target_pieces:
            shares["target"] = self.target_unknown / self.target_pieces
        return shares


def _model_of(trace: Callable) -> nn.Module | None:
    """Return the model of the adapter that a method belongs to; None for any other function."""
    adapter = getattr(trace, "__self__", None)
    return adapter.model if isinstance(adapter, ModelAdapter) else None


def _no_gaps(_batch: object) -> CorpusGaps:
    return CorpusGaps()


@dataclass(frozen=True, eq=False)
class Stream(Generic[Batch]):
    """The batches of a corpus, and the model that makes a trace of each.

    Batches are numbered, so that any part of the corpus can be read again; batches of other parts do not go
    through the model.

    Attributes:
        trace: takes a batch and returns its trace, such as :meth:`attnlib.adapters.HuggingFace.trace`.
        batches: a list, a loader, or a function that returns a new iterator at each call: a corpus is read
            twice.
        probe: takes a trace and returns its lexical probe, (batch, target, source), such as
            :meth:`attnlib.adapters.Modules.lexical_probe`; by default the probe that the trace has, if any.
        probed: number of judged batches, over all shards, whose lexical probe is taken (it is expensive);
            None for all.
        losses: takes a batch and returns what it lacks of the corpus, nothing by default. A report shows the
            sum.
        no_probe: why the lexical probe cannot be taken, see :meth:`with_working_probe`.
        logits: takes a trace and returns the logits of the words predicted, (batch, target, words), such as
            :meth:`attnlib.adapters.Modules.logits`; a report then says how well the model predicts.
        n_batches: number of batches, for a bar that shows the time left; by default the length of a list.
        made: returns options and checksums of files that batches and traces follow from, by group; a report
            shows them.
        never_written: ids that the model may not write; their logits are not counted as predictions.
        model: the network, which a report names and takes the checksum of; by default that of the adapter
            whose method ``trace`` is, if it is one.
        shown: batches of sentences of a reader's own, which are neither fitted on nor judged: an analysis
            keeps them as its first samples.

    Raises:
        BadInput: batches that can be read only once.

    Example:
        >>> stream = Stream(trace=print, batches=["first batch", "second batch"])
        >>> stream.n_batches, list(stream.numbered())
        (2, [(0, 'first batch'), (1, 'second batch')])
    """

    trace: Callable[[Batch], Trace]
    batches: Iterable[Batch] | Callable[[], Iterable[Batch]]
    probe: Callable[[Trace], Float[Tensor, "batch target source"] | None] = attrgetter("lexical_probe")
    _: KW_ONLY
    probed: int | None = 4
    losses: Callable[[Batch], CorpusGaps] = _no_gaps
    no_probe: str = ""
    logits: Callable[[Trace], Float[Tensor, "batch target words"]] | None = None
    n_batches: int | None = None
    made: Callable[[], dict[str, dict]] = dict
    never_written: tuple[int, ...] = ()
    model: nn.Module | None = None
    shown: tuple[Batch, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.batches, Iterator):
            raise BadInput(
                "batches can be read only once, and a corpus is read twice: give a list, or a function that "
                "starts anew"
            )
        if self.n_batches is None and isinstance(self.batches, Sized):
            object.__setattr__(self, "n_batches", len(self.batches))
        if self.model is None:
            object.__setattr__(self, "model", _model_of(self.trace))

    def __repr__(self) -> str:
        batches = "batches" if self.n_batches is None else f"{self.n_batches:,} batches"
        return f"Stream of {batches}"

    @staticmethod
    def saved(folder: str | Path) -> "Stream[Path]":
        """Return the stream of the traces that are saved in a folder, see :mod:`attnlib.adapters.tensors`.

        Args:
            folder: with a file of safetensors for each batch.

        Raises:
            BadInput: the folder has none.
        """

        def checksums() -> dict[str, dict]:
            return {"sha256": {"traces": digest_of(folder)}}

        return Stream(read_pass, saved_files(folder), probed=None, made=cache(checksums))

    def is_probed(self, judged_before: int) -> bool:
        """Return True if the lexical probe of a batch is taken.

        Args:
            judged_before: number of batches that are judged before it.
        """
        return self.probed is None or judged_before < self.probed

    def with_working_probe(self, batch: Batch | None) -> "Stream[Batch]":
        """Return the stream, without its lexical probe if that cannot be taken of a first sample.

        One sample is quick, and saves reading a corpus only to fail at its first judged batch.

        Args:
            batch: whose first sample is probed; None if the corpus is empty.

        Raises:
            BadInput: logits that are not those of this model.
        """
        if batch is None:
            return self
        trace = self.trace(batch).validated()
        if self.logits:
            Learned().add(trace, self.logits(trace), self.never_written)
        if self.probed == 0:
            return self
        try:
            self.probe(trace.first(1))
        except BadInput as error:
            return replace(self, probed=0, no_probe=str(error))
        return self

    @former_arguments(part="shard")
    def first(self, stage: str = "fit", shard: "Shard | None" = None) -> Batch | None:
        """Return the first batch that a shard reads at a stage; None if there is none.

        Args:
            stage: "fit" or "judge".
            shard: the shard; None for the whole corpus, whatever the stage.
        """
        for number, batch in self.numbered():
            if shard is None or shard.is_of(stage, number):
                return batch
        return None

    def numbered(self) -> Iterator[tuple[int, Batch]]:
        """Return an iterator over the batches and their numbers, from 0."""
        batches = self.batches() if callable(self.batches) else self.batches
        return enumerate(batches)


@dataclass(frozen=True)
class HoldOut:
    """Choice of the batches that are held out of the fit and judged: the last of every few in a row.

    Attributes:
        every: hold out and judge every N-th batch; 1 holds out none, and all are fitted and judged.

    Raises:
        BadInput: ``every`` is below 1.

    Example:
        >>> [number for number in range(9) if HoldOut(every=3).holds_out(number)]
        [2, 5, 8]
    """

    every: int = 5

    def __post_init__(self) -> None:
        if self.every < 1:
            raise BadInput(f"every is {self.every}; it must be at least 1")

    @property
    def is_empty(self) -> bool:
        """True if no batch is held out, so that all are fitted and judged."""
        return self.every == 1

    def holds_out(self, number: int) -> bool:
        """Return True if a batch is held out of the fit.

        Args:
            number: of the batch, from 0.
        """
        return not self.is_empty and number % self.every == self.every - 1

    def is_of(self, stage: str, number: int) -> bool:
        """Return True if a batch is read at a stage.

        Args:
            stage: "fit" or "judge".
            number: of the batch, from 0.
        """
        if self.is_empty:
            return True
        return self.holds_out(number) == (stage == "judge")

    def block_of(self, number: int) -> int:
        """Return the number of the block of ``every`` batches in a row that a batch is in.

        A block has one judged batch, its last, so this is also how many batches are judged before it.

        Args:
            number: of the batch, from 0.
        """
        return number // self.every


@former_arguments(shard="number", shards="of", every="hold_out")
@dataclass(frozen=True)
class Shard:
    """One of the shards among which the batches of a stream are divided.

    Every block of batches, with the one of them that is held out, belongs to one shard, in turn. So which
    batches are held out does not depend on the number of shards.

    Attributes:
        number: of this shard, from 0.
        of: number of shards.
        hold_out: which batches are held out of the fit.

    Raises:
        BadInput: a shard that is not one of the shards.

    Example:
        >>> second_of_two = Shard(1, of=2, hold_out=HoldOut(every=3))
        >>> [number for number in range(12) if second_of_two.is_of("fit", number)]
        [3, 4, 9, 10]
        >>> [number for number in range(12) if second_of_two.is_of("judge", number)]
        [5, 11]
    """

    number: int = 0
    of: int = 1
    hold_out: HoldOut = HoldOut()

    shard = former_attribute("Shard.shard", "number")
    shards = former_attribute("Shard.shards", "of")
    every = former_attribute("Shard.every", "hold_out.every")

    def __post_init__(self) -> None:
        if isinstance(self.hold_out, int):  # ``every``, the former third argument
            warn("Shard(number, of, every) is deprecated: it is Shard(number, of, HoldOut(every))", calls=4)
            object.__setattr__(self, "hold_out", HoldOut(self.hold_out))
        if not 0 <= self.number < self.of:
            raise BadInput(f"shard is {self.number} of {self.of}; they are counted from 0")

    def settings(self) -> dict[str, int]:
        """Return what saved sums of a shard are of, by the names under which it is saved."""
        return {"shard": self.number, "shards": self.of, "every": self.hold_out.every}

    def all_shards(self) -> "list[Shard]":
        """Return this shard and all others, in order."""
        return [replace(self, number=number) for number in range(self.of)]

    def is_of(self, stage: str, number: int) -> bool:
        """Return True if a batch belongs to this shard and is read at a stage.

        Args:
            stage: "fit" or "judge".
            number: of the batch, from 0.
        """
        block = self.hold_out.block_of(number)
        return block % self.of == self.number and self.hold_out.is_of(stage, number)

    def judged_before(self, number: int) -> int:
        """Return how many batches are judged before a batch, in all shards together.

        Args:
            number: of the batch, from 0.
        """
        return self.hold_out.block_of(number)


def __getattr__(name: str) -> Any:
    return former_object(__name__, {"Losses": "attnlib.analysis.stream.CorpusGaps"}, name)
