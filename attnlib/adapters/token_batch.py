"""Make the batches of tokens that adapters take, from tensors, lists, dictionaries or lines of text.

There is a class for each thing that a model may read. :class:`TokenBatch` is a pair of texts, for an
encoder–decoder; :class:`SequenceBatch` one text, for a decoder or an encoder alone, whose only sequence would
be a source without a target; :class:`FrameBatch` pictures or sound, whose source has no ids at all, with a
text. :class:`LineBatch` holds lines before they are tokenized, so that a shard of a corpus can skip those of
others. The networks of the library read a :class:`~attnlib.models.corpus.Batch`, which training makes by the
thousand and nothing checks.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.arrays import (
    Array,
    ShowsShapes,
    as_ids,
    as_mask,
    as_tensor,
    make_tensors_of,
    require_tokens,
    valid_first,
)
from attnlib.errors import BadInput


@dataclass(frozen=True, eq=False, repr=False)
class TokenBatch(ShowsShapes):
    """Source and target of some samples; padding may be on either side of a row.

    Arrays and lists become tensors, and integers 0 and 1 a mask.

    Attributes:
        source: ids of the source tokens.
        source_mask: True at valid positions.
        target: ids that are to be *predicted*, end marks included.
        target_mask: True at valid positions.
        read: what the decoder reads at each step; by default the model makes it from ``target``.

    Raises:
        BadInput: shapes differ, a mask has other numbers than 0 and 1, a sample has no valid position, ids
            are not integers, or a valid id is below 0.

    Example:
        >>> ids = torch.tensor([[0, 5, 6], [7, 8, 9]])
        >>> TokenBatch(ids, ids > 0, ids, target_mask=ids > 0).packed().source.tolist()
        [[5, 6, 0], [7, 8, 9]]
    """

    source: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    target: Int[Tensor, "batch target"]
    _: KW_ONLY
    target_mask: Bool[Tensor, "batch target"]
    read: Int[Tensor, "batch target"] | None = None

    def __post_init__(self) -> None:
        make_tensors_of(self)
        sides = {"source": self.source_mask, "target": self.target_mask}
        if self.read is not None:
            sides |= {"read": self.target_mask}
        require_tokens({name: (getattr(self, name), mask) for name, mask in sides.items()})

    def packed(self) -> "TokenBatch":
        """Move padding to the right of every row, and drop columns that are padding alone.

        Ids below 0 at padding, such as the -100 of labels, which no model embeds, become 0; other ids stay.

        Returns:
            A new batch.
        """
        return TokenBatch(**self.packed_fields())

    def packed_fields(self) -> dict[str, Tensor]:
        """Return the fields of :meth:`packed` by name, without checking them again; ``read`` if there is one.

        Returns:
            Ids, (batch, longest), and masks of the same shape, of either side.
        """
        source_order = _columns_with_words(self.source_mask)
        target_order = _columns_with_words(self.target_mask)
        packed = {
            "source": _in_order(self.source, source_order).clamp(min=0),
            "source_mask": _in_order(self.source_mask, source_order),
            "target": _in_order(self.target, target_order).clamp(min=0),
            "target_mask": _in_order(self.target_mask, target_order),
        }
        if self.read is not None:
            packed["read"] = _in_order(self.read, target_order).clamp(min=0)
        return packed

    def to(self, device: torch.device | str) -> "TokenBatch":
        """Return the batch on a device.

        Args:
            device: as torch names it, such as ``"cuda"``.

        Returns:
            A new batch.
        """
        return TokenBatch(
            source=self.source.to(device),
            source_mask=self.source_mask.to(device),
            target=self.target.to(device),
            target_mask=self.target_mask.to(device),
            read=None if self.read is None else self.read.to(device),
        )

    def rows(self, samples: Int[Tensor, " chosen"]) -> "TokenBatch":
        """Return the batch of some samples, in a given order.

        Args:
            samples: their numbers, from 0; one may be chosen more than once.
        """
        return TokenBatch(
            source=self.source[samples],
            source_mask=self.source_mask[samples],
            target=self.target[samples],
            target_mask=self.target_mask[samples],
            read=None if self.read is None else self.read[samples],
        )

    @classmethod
    def of_rows(cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "TokenBatch":
        """Pad sentences of any lengths at the right with 0.

        Args:
            sources: ids of each source.
            targets: ids of each target, to be predicted, its end mark included.

        Returns:
            The batch, in which every id that was given is valid.

        Raises:
            BadInput: there are no rows, or a row is not a list of integers.

        Example:
            >>> TokenBatch.of_rows([[5, 6, 7], [8]], [[3], [4, 2]]).source_mask.tolist()
            [[True, True, True], [True, False, False]]
        """
        source, source_mask = _padded(sources, "a row")
        target, target_mask = _padded(targets, "a row")
        return cls(source, source_mask, target, target_mask=target_mask)


def _columns_with_words(mask: Bool[Tensor, "batch length"]) -> Int[Tensor, "batch longest"]:
    """Return the columns of valid positions in each row, in order; where there are fewer, then padding's."""
    longest = int(mask.sum(1).max())
    return valid_first(mask)[:, :longest]


def _in_order(rows: Tensor, order: Int[Tensor, "batch longest"]) -> Tensor:
    return rows.take_along_dim(order, dim=1)


@dataclass(frozen=True, eq=False, repr=False)
class FrameBatch(ShowsShapes):
    """Pictures or sound with the text that describes them, for an encoder that reads no words.

    Attributes:
        frames: what the model's processor makes: ``input_features``, ``pixel_values`` or ``input_values``.
        target: as in :class:`TokenBatch`.
        target_mask: as in :class:`TokenBatch`.
        read: as in :class:`TokenBatch`.
        frames_mask: the processor's ``attention_mask``, True where there is sound, for an encoder that takes
            one.

    Raises:
        BadInput: as for :class:`TokenBatch`; frames are not finite numbers, or not as many as targets.

    Example:
        >>> FrameBatch(torch.zeros(1, 3, 8, 8), [[5, 2]], [[1, 1]]).target_mask.tolist()
        [[True, True]]
    """

    frames: Float[Array, "batch ..."]
    target: Int[Array, "batch target"]
    target_mask: Bool[Array, "batch target"]
    _: KW_ONLY
    read: Int[Array, "batch target"] | None = None
    frames_mask: Bool[Array, "batch length"] | None = None

    def __post_init__(self) -> None:
        make_tensors_of(self)
        require_tokens({"target": (self.target, self.target_mask)})
        frames = self.frames
        if (
            frames.dim() < 2
            or len(frames) != len(self.target)
            or not frames.is_floating_point()
            or not frames.isfinite().all()
        ):
            raise BadInput(
                f"frames of shape {tuple(frames.shape)} and {frames.dtype} with {len(self.target)} targets; "
                "expected finite floating-point numbers, a sample for each target"
            )
        _ = self.tokens

    @cached_property
    def tokens(self) -> TokenBatch:
        """The text, with a source of one position instead of the frames."""
        source = torch.zeros_like(self.target[:, :1])
        return TokenBatch(source, source == 0, self.target, target_mask=self.target_mask, read=self.read)


@dataclass(frozen=True, eq=False, repr=False)
class SequenceBatch(ShowsShapes):
    """Sequences for a decoder or an encoder alone; padding may be on either side of a row.

    Arrays and lists become tensors, and integers 0 and 1 a mask.

    Attributes:
        tokens: ids.
        mask: True at valid positions.
        token_types: which of two texts each token is of, for models like BERT; by default the model decides.

    Raises:
        BadInput: shapes differ, a mask has other numbers than 0 and 1, a row has no valid position, ids are
            not integers, or a valid id is below 0.

    Example:
        >>> SequenceBatch([[0, 5, 6], [7, 8, 9]], [[0, 1, 1], [1, 1, 1]]).packed().tokens.tolist()
        [[5, 6, 0], [7, 8, 9]]
    """

    tokens: Int[Tensor, "batch length"]
    mask: Bool[Tensor, "batch length"]
    token_types: Int[Tensor, "batch length"] | None = None

    def __post_init__(self) -> None:
        make_tensors_of(self)
        parts = {"tokens": (self.tokens, self.mask)}
        if self.token_types is not None:
            parts["token_types"] = (self.token_types, self.mask)
        require_tokens(parts)

    def packed(self, padding: int = 0) -> "SequenceBatch":
        """Move padding to the right of every row, and drop columns that are padding alone.

        Args:
            padding: the id that padding has afterwards.

        Returns:
            A new batch.
        """
        order = _columns_with_words(self.mask)
        mask = _in_order(self.mask, order)
        tokens = _in_order(self.tokens, order).masked_fill(~mask, padding)
        token_types = None
        if self.token_types is not None:
            token_types = _in_order(self.token_types, order).masked_fill(~mask, 0)
        return SequenceBatch(tokens, mask, token_types)

    def to(self, device: torch.device | str) -> "SequenceBatch":
        """Return the batch on a device.

        Args:
            device: as torch names it, such as ``"cuda"``.

        Returns:
            A new batch.
        """
        types = None if self.token_types is None else self.token_types.to(device)
        return SequenceBatch(self.tokens.to(device), self.mask.to(device), types)

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[int]]) -> "SequenceBatch":
        """Pad sequences of any lengths at the right with 0.

        Args:
            rows: ids of each sequence.

        Returns:
            The batch, in which every id that was given is valid.

        Raises:
            BadInput: there are no rows, or a row is not a list of integers.

        Example:
            >>> SequenceBatch.of_rows([[5, 6, 7], [8]]).mask.tolist()
            [[True, True, True], [True, False, False]]
        """
        tokens, mask = _padded(rows, "a row")
        return cls(tokens, mask)


def _padded(
    rows: Sequence[Sequence[int]], name: str
) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"]]:
    """Return rows of any lengths as a tensor, padded at the right with 0, and where they are."""
    tensors = [as_ids(row, name) for row in rows]
    if not tensors or any(tensor.dim() != 1 for tensor in tensors):
        raise BadInput(f"no rows: expected lists of ids as {name}, at least one")
    lengths = torch.tensor([len(tensor) for tensor in tensors])
    tokens = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)
    return tokens, torch.arange(tokens.shape[1]) < lengths[:, None]


# -- batches as the transformers library has them --

_LABELS_PADDING = -100
_OF_TARGETS = ("labels", "decoder_input_ids", "decoder_attention_mask")


def batch_of_mapping(
    fields: Mapping[str, Any], *, padding: int | None = None, frames: str | None = None
) -> TokenBatch | FrameBatch:
    """Return the batch that a dictionary or a ``BatchEncoding`` holds, by the names of transformers.

    ``input_ids`` and ``attention_mask`` are the source, ``labels`` the target, with -100 at padding;
    ``decoder_input_ids`` is what the decoder reads, and ``decoder_attention_mask`` masks the target.

    Args:
        fields: the dictionary.
        padding: the id that the model pads with, if no label can have it.
        frames: the name of what the encoder reads instead of words, if it reads pictures or sound.

    Returns:
        A batch of tokens, or of frames if ``frames`` is given.

    Raises:
        BadInput: a name is missing or unknown; labels are padded with an id, so that nobody knows their end.

    Example:
        >>> batch = batch_of_mapping({"input_ids": [[5, 6, 7]], "labels": [[8, 9, -100]]})
        >>> batch.target_mask.tolist()
        [[True, True, False]]
    """
    read_by_encoder = frames or "input_ids"
    _require_batch_fields(fields, read_by_encoder)
    source = as_tensor(fields[read_by_encoder], read_by_encoder)
    labels = as_ids(fields["labels"], "labels")  # (batch, target)
    target_mask = _mask_of_labels(labels, fields.get("decoder_attention_mask"), padding)
    source_mask = fields.get("attention_mask")
    if source_mask is not None:
        source_mask = as_mask(source_mask, "attention_mask")
    read = fields.get("decoder_input_ids")
    if read is not None:
        read = as_ids(read, "decoder_input_ids")
    if frames is not None:
        return FrameBatch(source, labels, target_mask, read=read, frames_mask=source_mask)
    if source_mask is None:
        source_mask = torch.ones_like(source, dtype=torch.bool)
    return TokenBatch(source, source_mask, labels, target_mask=target_mask, read=read)


def _require_batch_fields(fields: Mapping[str, Any], read_by_encoder: str) -> None:
    known = (read_by_encoder, "attention_mask", *_OF_TARGETS)
    for name in fields:
        if name not in known:
            raise BadInput(
                f"the batch holds {name!r}; expected {', '.join(known)}: take out what is not used"
            )
    for name in (read_by_encoder, "labels"):
        if fields.get(name) is None:
            raise BadInput(
                f"the batch has no {name!r}: {', '.join(fields)}; expected {read_by_encoder} and labels, "
                "which are the ids to be predicted (a tokenizer makes them from text_target=)"
            )


def _mask_of_labels(
    labels: Int[Tensor, "batch target"], decoder_mask: object, padding: int | None
) -> Bool[Tensor, "batch target"]:
    """Return where labels are words: neither -100 nor masked; refuse labels that hold the id of padding."""
    is_word = labels != _LABELS_PADDING
    if decoder_mask is not None:
        decoder_mask = as_mask(decoder_mask, "decoder_attention_mask").to(labels.device)
        if decoder_mask.shape != labels.shape:
            raise BadInput(
                f"decoder_attention_mask of shape {tuple(decoder_mask.shape)}; expected "
                f"{tuple(labels.shape)}, that of labels"
            )
        return is_word & decoder_mask
    if padding is not None and bool((labels == padding).any()):
        raise BadInput(
            f"labels hold {padding}, the id of padding; expected -100 there: "
            f"labels.masked_fill(labels == {padding}, -100), or a decoder_attention_mask"
        )
    return is_word


_OF_A_SEQUENCE = ("input_ids", "attention_mask", "token_type_ids")


def sequences_of_mapping(fields: Mapping[str, Any]) -> SequenceBatch:
    """Return the sequences that a dictionary or a ``BatchEncoding`` holds, by the names of transformers.

    Rows may have any lengths, as from a tokenizer that pads nothing. ``labels`` are ignored: a decoder
    predicts the token that follows.

    Args:
        fields: ``input_ids``, and perhaps ``attention_mask`` and ``token_type_ids``.

    Returns:
        The batch; without an ``attention_mask`` every id is valid.

    Raises:
        BadInput: ``input_ids`` are missing, or a name is unknown.

    Example:
        >>> sequences_of_mapping({"input_ids": [[5, 6, 7], [8]]}).mask.tolist()
        [[True, True, True], [True, False, False]]
    """
    for name in fields:
        if name not in (*_OF_A_SEQUENCE, "labels"):
            raise BadInput(
                f"the batch holds {name!r}; expected {', '.join(_OF_A_SEQUENCE)}: take out what is not used"
            )
    ids = fields.get("input_ids")
    if ids is None:
        raise BadInput(f"the batch has no 'input_ids': {', '.join(fields) or 'it is empty'}")
    if _is_ragged(ids):
        return _sequences_of_lists(fields)
    tokens = as_ids(ids, "input_ids")
    mask = torch.ones_like(tokens, dtype=torch.bool)
    if fields.get("attention_mask") is not None:
        mask = as_mask(fields["attention_mask"], "attention_mask")
    types = fields.get("token_type_ids")
    if types is not None:
        types = as_ids(types, "token_type_ids")
    return SequenceBatch(tokens, mask, types)


def _sequences_of_lists(fields: Mapping[str, Any]) -> SequenceBatch:
    """Return the sequences of lists of different lengths, padded."""
    tokens, mask = _padded(fields["input_ids"], "input_ids")
    if fields.get("attention_mask") is not None:
        attention_mask, _ = _padded(fields["attention_mask"], "attention_mask")
        mask = mask & attention_mask.bool()
    types = None
    if fields.get("token_type_ids") is not None:
        types, _ = _padded(fields["token_type_ids"], "token_type_ids")
    return SequenceBatch(tokens, mask, types)


def _is_ragged(rows: object) -> bool:
    """Return True for lists of different lengths, of which no array can be made."""
    if not isinstance(rows, list | tuple) or not all(hasattr(row, "__len__") for row in rows):
        return False
    return len({len(row) for row in rows}) > 1


def shifted(target: Int[Tensor, "batch target"], start: int) -> Int[Tensor, "batch target"]:
    """Return what a decoder reads to predict a target: its start mark, then all but the last token.

    Args:
        target: ids to be predicted.
        start: the id of the start mark.

    Returns:
        Ids of the same shape.

    Example:
        >>> shifted(torch.tensor([[5, 6, 2]]), start=1).tolist()
        [[1, 5, 6]]
    """
    first = torch.full_like(target[:, :1], start)
    return torch.cat([first, target[:, :-1]], dim=1)


# -- sentences --


# Takes sources and a number of pieces at most; returns them with targets that a model writes.
Write = Callable[[TokenBatch, int], TokenBatch]


@dataclass(frozen=True)
class LineBatch:
    """Some pairs of lines, which are tokenized when their ids are used, so that other shards' never are.

    Attributes:
        pairs: source and target line of each sample.
        left_out: how many pairs with an empty side were left out before and between them.
        tokenizer: of Hugging Face, called with ``text=`` and ``text_target=``.
        longest: pieces of a side, special ones included; the rest is cut off.
        prefix: put before every source line.
        write: if given, makes the targets from the sources, and target lines are ignored.
        numbers: of the pairs in their text, from 0; empty where they were not taken from one.
        positions: for how many pieces of the source and of the target the model has positions; the rest is
            cut off as well.

    Example:
        >>> def tokenizer(text=None, text_target=None, **cut):
        ...     return {"input_ids": [[len(word) for word in line.split()] for line in text or text_target]}
        >>> LineBatch((("ein Haus", "a house"),), 0, tokenizer, longest=8).tokens.target.tolist()
        [[1, 5]]
    """

    pairs: tuple[tuple[str, str], ...]
    left_out: int
    tokenizer: Any
    _: KW_ONLY
    longest: int
    prefix: str = ""
    write: Write | None = None
    numbers: tuple[int, ...] = ()
    positions: tuple[int | float, int | float] = (math.inf, math.inf)

    @property
    def longest_of_sides(self) -> tuple[int, int]:
        """Pieces of a source and of a target at most."""
        source, target = self.positions
        return int(min(self.longest, source)), int(min(self.longest, target))

    @cached_property
    def tokens(self) -> TokenBatch:
        """The pairs as ids."""
        longest_source, longest_target = self.longest_of_sides
        source_lines = [self.prefix + source for source, _ in self.pairs]
        sources = self.tokenizer(text=source_lines, truncation=True, max_length=longest_source)["input_ids"]
        _require_room(sources, longest_source)
        if self.write:
            return self.write(TokenBatch.of_rows(sources, sources), longest_target)
        target_lines = [target for _, target in self.pairs]
        cut = {"truncation": True, "max_length": longest_target}
        targets = self.tokenizer(text_target=target_lines, **cut)["input_ids"]
        _require_room(targets, longest_target)
        return TokenBatch.of_rows(sources, targets)

    @property
    def cut(self) -> int:
        """Number of pairs with a side that is longer than ``longest``, or than the model has positions for.

        A side of exactly that length may have been cut there or may end there, which one piece more shows.
        A target that the model writes is not cut: it ends there.
        """
        is_full = self._reaches(self.longest_of_sides).tolist()
        full_pairs = tuple(pair for pair, full in zip(self.pairs, is_full, strict=True) if full)
        if not full_pairs:
            return 0
        longest_source, longest_target = self.longest_of_sides
        if self.write:  # which has no more positions, and is not done again
            lines = [self.prefix + source for source, _ in full_pairs]
            with_one_more = self.tokenizer(text=lines, truncation=True, max_length=longest_source + 1)
            return sum(len(row) > longest_source for row in with_one_more["input_ids"])
        one_more = (longest_source + 1, longest_target + 1)
        longer = replace(self, pairs=full_pairs, longest=self.longest + 1, positions=one_more)
        return int(longer._reaches(one_more).sum())

    def _reaches(self, lengths: tuple[int, int]) -> Bool[Tensor, " pairs"]:
        """Return True for each pair with a side of at least the length given for that side."""
        source, target = lengths
        n_source, n_target = self.tokens.source_mask.sum(1), self.tokens.target_mask.sum(1)
        return (n_source >= source) | (n_target >= target)


def _require_room(rows: Sequence[Sequence[int]], longest: int) -> None:
    most = max(map(len, rows))
    if most > longest:
        raise BadInput(
            f"longest is {longest}, and the tokenizer made {most} pieces all the same: its marks "
            "alone need more; take a larger one"
        )


def line_batches(
    tokenizer: Any,
    pairs: Iterable[tuple[str, str]],
    *,
    batch_size: int = 32,
    longest: int = 128,
    prefix: str = "",
    write: Write | None = None,
    positions: tuple[int | float, int | float] = (math.inf, math.inf),
) -> Iterator[LineBatch]:
    """Yield batches of lines that are not tokenized yet.

    Args:
        tokenizer: of Hugging Face, called with ``text=`` and ``text_target=``.
        pairs: source and target lines; a pair with an empty side is left out.
        batch_size: pairs at once.
        longest: pieces of a side, special ones included; longer ones are cut off.
        prefix: put before every source line.
        write: makes the targets from the sources; target lines are then ignored.
        positions: for how many pieces of the source and of the target the model has positions.

    Yields:
        Batches, all but the last of ``batch_size`` pairs.

    Raises:
        BadInput: a size below 1.

    Example:
        >>> batches = line_batches(None, [("ein Haus", "a house"), ("", "nothing"), ("ja", "yes")])
        >>> [(batch.pairs, batch.left_out) for batch in batches]
        [((('ein Haus', 'a house'), ('ja', 'yes')), 1)]
    """
    if min(batch_size, longest) < 1:
        raise BadInput(f"batch_size is {batch_size}, longest {longest}; both must be at least 1")
    waiting: list[tuple[str, str]] = []
    numbers: list[int] = []
    left_out = 0

    def batch() -> LineBatch:
        return LineBatch(
            tuple(waiting),
            left_out=left_out,
            tokenizer=tokenizer,
            longest=longest,
            prefix=prefix,
            write=write,
            numbers=tuple(numbers),
            positions=positions,
        )

    for number, (source, target) in enumerate(pairs):
        has_target = bool(target.strip()) or write is not None
        if not source.strip() or not has_target:
            left_out += 1
            continue
        if len(waiting) == batch_size:
            yield batch()
            waiting, numbers, left_out = [], [], 0
        waiting.append((source, target))
        numbers.append(number)
    if waiting:
        yield batch()


def text_batches(
    tokenizer: Any,
    pairs: Iterable[tuple[str, str]],
    *,
    batch_size: int = 32,
    longest: int = 128,
    prefix: str = "",
) -> Iterator[TokenBatch]:
    """Tokenize sentence pairs with a Hugging Face tokenizer, batch by batch; nothing is kept in between.

    Args:
        tokenizer: of Hugging Face, called with ``text=`` and ``text_target=``: each side has its own marks.
        pairs: source and target lines; a pair with an empty side is left out.
        batch_size: pairs at once.
        longest: pieces of a side, special ones included; longer ones are cut off.
        prefix: put before every source line, such as T5's ``"translate English to German: "``.

    Returns:
        An iterator over batches.

    Raises:
        BadInput: a size is below 1, or ``longest`` below what the marks of a sentence need.

    Example:
        >>> def tokenizer(text=None, text_target=None, **cut):
        ...     return {"input_ids": [[len(word) for word in line.split()] for line in text or text_target]}
        >>> pairs = [("ein Haus", "a house"), ("", "nothing"), ("ja", "yes")]
        >>> (batch,) = text_batches(tokenizer, pairs)
        >>> batch.source.tolist(), batch.target.tolist()
        ([[3, 4], [2, 0]], [[1, 5], [3, 0]])
    """
    batches = line_batches(tokenizer, pairs, batch_size=batch_size, longest=longest, prefix=prefix)
    return (batch.tokens for batch in batches)


def sequence_batches(
    tokenizer: Any, texts: Iterable[str], *, batch_size: int = 32, longest: int = 128
) -> Iterator[SequenceBatch]:
    """Tokenize texts with a Hugging Face tokenizer, batch by batch; nothing is kept in between.

    A tokenizer needs no padding token; GPT-2's has none.

    Args:
        tokenizer: of Hugging Face.
        texts: one a sequence; empty ones are left out.
        batch_size: texts at once.
        longest: pieces of a text, special ones included; longer ones are cut off.

    Yields:
        Batches, all but the last of ``batch_size`` texts.

    Raises:
        BadInput: a size below 1.

    Example:
        >>> def tokenizer(text, **cut):
        ...     return {"input_ids": [[len(word) for word in line.split()] for line in text]}
        >>> (batch,) = sequence_batches(tokenizer, ["a house", "", "yes"])
        >>> batch.tokens.tolist()
        [[1, 5], [3, 0]]
    """
    if min(batch_size, longest) < 1:
        raise BadInput(f"batch_size is {batch_size}, longest {longest}; both must be at least 1")
    waiting: list[str] = []
    for text in texts:
        if not text.strip():
            continue
        waiting.append(text)
        if len(waiting) == batch_size:
            yield _sequences_of_texts(tokenizer, waiting, longest)
            waiting = []
    if waiting:
        yield _sequences_of_texts(tokenizer, waiting, longest)


def _sequences_of_texts(tokenizer: Any, texts: list[str], longest: int) -> SequenceBatch:
    encoded = tokenizer(text=texts, truncation=True, max_length=longest)
    return SequenceBatch.of_rows(encoded["input_ids"])
