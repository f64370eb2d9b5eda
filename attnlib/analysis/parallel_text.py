"""Two text files, line by line translations of each other, and batches of their lines."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from attnlib.adapters.token_batch import TokenBatch, is_whole, require_sizes, tokenized
from attnlib.analysis.stream import Losses
from attnlib.errors import BadInput


@dataclass(frozen=True)
class ParallelText:
    """Two files, line by line translations of each other, read as they are needed.

    >>> ParallelText("a.txt", "b.txt").about["Corpus"]
    'a.txt, b.txt'
    """

    source: Path | str
    target: Path | str

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            object.__setattr__(self, side, Path(getattr(self, side)))

    @property
    def about(self) -> dict[str, str]:
        """What a report tells of it."""
        return {"Corpus": f"{self.source.name}, {self.target.name}"}

    def checked(self) -> tuple[int, dict[str, str]]:
        """The number of lines, and the checksum of each file.

        Raises:
            BadInput: a file that is not there or is empty, or files of different lengths.
        """
        counts, digests = [], {}
        for side, path in (("source", self.source), ("target", self.target)):
            if not path.is_file():
                raise BadInput(f"{side} {path} is not there")
            lines, digest = 0, hashlib.sha256()
            with path.open("rb") as file:
                for line in file:
                    lines += 1
                    digest.update(line)
            counts.append(lines)
            digests[side] = digest.hexdigest()
        if counts[0] != counts[1]:
            raise BadInput(
                f"{self.source} has {counts[0]:,} lines, {self.target} {counts[1]:,}: line n of one must be "
                "the translation of line n of the other"
            )
        if not counts[0]:
            raise BadInput(f"{self.source} and {self.target} are empty")
        return counts[0], digests

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The lines, without their ends.

        Raises:
            BadInput: a line that is not UTF-8; files of different lengths.
        """
        with self.source.open("rb") as sources, self.target.open("rb") as targets:
            for number, (source, target) in enumerate(zip_longest(sources, targets), start=1):
                if source is None or target is None:
                    short = self.source if source is None else self.target
                    raise BadInput(f"{short} ends before line {number:,}, which the other file has")
                yield _decoded(source, self.source, number), _decoded(target, self.target, number)


def _decoded(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path}, line {number:,} is not UTF-8 ({error.reason}): convert the file, as with iconv"
        ) from error


@dataclass(frozen=True)
class LineBatch:
    """Pairs of lines that go through the tokenizer when their ids are asked for: other shards' never do.

    Attributes:
        pairs: source and target lines, none of them empty.
        left_out: pairs with an empty side that stood between them.
        tokenizer, longest, prefix: see :func:`~attnlib.adapters.token_batch.tokenized`.
    """

    pairs: tuple[tuple[str, str], ...]
    left_out: int
    tokenizer: Any
    longest: int
    prefix: str = ""

    @cached_property
    def tokens(self) -> TokenBatch:
        """The ids."""
        return tokenized(self.tokenizer, self.pairs, longest=self.longest, prefix=self.prefix)

    @property
    def losses(self) -> Losses:
        """Pairs left out, and pairs of which a side is longer than ``longest``."""
        full = (self.tokens.source_mask.sum(1) >= self.longest) | (
            self.tokens.target_mask.sum(1) >= self.longest
        )
        suspects = [pair for pair, own in zip(self.pairs, full.tolist(), strict=True) if own]
        if not suspects:
            return Losses(self.left_out)
        longer = tokenized(self.tokenizer, suspects, longest=self.longest + 1, prefix=self.prefix)
        cut = (longer.source_mask.sum(1) > self.longest) | (longer.target_mask.sum(1) > self.longest)
        return Losses(self.left_out, int(cut.sum()))


def line_batches(
    tokenizer: Any,
    pairs: Iterable[tuple[str, str]],
    *,
    batch_size: int = 32,
    longest: int = 128,
    prefix: str = "",
) -> Iterator[LineBatch]:
    """The batches of :func:`~attnlib.adapters.token_batch.text_batches`, not tokenized yet.

    Raises:
        BadInput: a size below 1.
    """
    require_sizes(batch_size, longest)
    some: list[tuple[str, str]] = []
    left_out = 0
    for pair in pairs:
        if not is_whole(pair):
            left_out += 1
            continue
        if len(some) == batch_size:
            yield LineBatch(tuple(some), left_out, tokenizer, longest, prefix)
            some, left_out = [], 0
        some.append(pair)
    if some:
        yield LineBatch(tuple(some), left_out, tokenizer, longest, prefix)
