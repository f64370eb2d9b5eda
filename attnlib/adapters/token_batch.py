"""Batches of tokens as an adapter takes them, and how they come from two lists of sentences."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
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
    """Source and target of some samples; padding may stand on either side of a row.

    Arrays and lists are made tensors, and integers 0 and 1 a mask. Networks of the library read a
    :class:`~attnlib.models.corpus.Batch` instead, which training makes by itself and nothing checks. The
    other two have no pair of texts: a :class:`SequenceBatch` is one text, and the source of a
    :class:`FrameBatch` is no text.

    Attributes:
        source: ids.
        source_mask: True at valid positions.
        target: ids that are to be *predicted*, end marks included.
        target_mask: True at valid positions.
        read: what the decoder reads at each step; by default the model makes it of ``target``.

    Raises:
        BadInput: shapes that differ, what is no mask, a sample without a valid position, ids that are no
            integers, an id below 0 that is valid.

    >>> ids = torch.tensor([[0, 5, 6], [7, 8, 9]])
    >>> TokenBatch(ids, ids > 0, ids, ids > 0).packed().source.tolist()
    [[5, 6, 0], [7, 8, 9]]
    """

    source: Int[Tensor, "batch source"]
    source_mask: Bool[Tensor, "batch source"]
    target: Int[Tensor, "batch target"]
    target_mask: Bool[Tensor, "batch target"]
    read: Int[Tensor, "batch target"] | None = None

    def __post_init__(self) -> None:
        make_tensors_of(self)
        sides = {"source": self.source_mask, "target": self.target_mask}
        if self.read is not None:
            sides |= {"read": self.target_mask}
        require_tokens({name: (getattr(self, name), mask) for name, mask in sides.items()})

    def packed(self) -> "TokenBatch":
        """The same with padding at the right of every row, and no column that is padding alone.

        Ids below 0, such as the -100 of labels, which no model embeds, are 0 at padding; others stay.
        """
        return TokenBatch(**self.packed_fields())

    def packed_fields(self) -> dict[str, Tensor]:
        """The fields of :meth:`packed`."""
        found = {}
        for side in ("source", "target"):
            mask = getattr(self, f"{side}_mask")
            order = valid_first(mask)[:, : int(mask.sum(1).max())]
            found[f"{side}_mask"] = mask.take_along_dim(order, dim=1)
            for name in (side, *(("read",) if side == "target" and self.read is not None else ())):
                found[name] = getattr(self, name).take_along_dim(order, dim=1).clamp(min=0)
        return found

    def to(self, device: torch.device | str) -> "TokenBatch":
        """Return the batch on a device."""
        moved = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: value.to(device) for name, value in moved.items() if value is not None})

    def rows(self, samples: Int[Tensor, " some"]) -> "TokenBatch":
        """Return the batch of these samples, in this order."""
        chosen: dict[str, Any] = {}
        for field in fields(self):
            values = getattr(self, field.name)
            chosen[field.name] = None if values is None else values[samples]
        return TokenBatch(**chosen)

    @classmethod
    def of_rows(cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "TokenBatch":
        """Ids of sentences of any lengths, padded at the right with 0; BadInput for none, or no integers.

        >>> TokenBatch.of_rows([[5, 6, 7], [8]], [[3], [4, 2]]).source_mask.tolist()
        [[True, True, True], [True, False, False]]
        """
        padded = []
        for side in (sources, targets):
            rows = [as_ids(row, "a row") for row in side]
            if not rows or any(row.dim() != 1 for row in rows):
                raise BadInput("no rows: expected lists of ids, at least one on either side")
            lengths = torch.tensor([len(row) for row in rows])
            tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
            padded += [tokens, torch.arange(tokens.shape[1]) < lengths[:, None]]
        return cls(*padded)


@dataclass(frozen=True, eq=False, repr=False)
class FrameBatch(ShowsShapes):
    """Pictures or sound with the words that are written of them, for an encoder that reads no words.

    Attributes:
        frames: what the model's processor makes: ``input_features``, ``pixel_values`` or ``input_values``.
        target, target_mask, read: as of :class:`TokenBatch`.
        frames_mask: its ``attention_mask``, True where there is sound, for an encoder that takes one.

    Raises:
        BadInput: as :class:`TokenBatch`; frames that are no finite numbers, or not as many as targets.
    """

    frames: Float[Array, "batch ..."]
    target: Int[Array, "batch target"]
    target_mask: Bool[Array, "batch target"]
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
        """The words written, beside a source of one position."""
        source = torch.zeros_like(self.target[:, :1])
        return TokenBatch(source, source == 0, self.target, self.target_mask, self.read)


@dataclass(frozen=True, eq=False, repr=False)
class SequenceBatch(ShowsShapes):
    """Sequences for a decoder or an encoder alone; padding may stand on either side of a row.

    Arrays and lists are made tensors, and integers 0 and 1 a mask.

    Attributes:
        tokens: ids.
        mask: True at valid positions.
        token_types: which of two texts each token is of, for models like BERT; by default the model's own.

    Raises:
        BadInput: shapes that differ, what is no mask, a row without a valid position, ids that are no
            integers, an id below 0 that is valid.

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
        """Return the same with padding at the right of every row, and no column that is padding alone.

        Args:
            padding: the id that stands there.
        """
        longest = int(self.mask.sum(1).max())
        order = valid_first(self.mask)[:, :longest]
        mask = self.mask.take_along_dim(order, dim=1)
        tokens = self.tokens.take_along_dim(order, dim=1).masked_fill(~mask, padding)
        types = self.token_types
        if types is not None:
            types = types.take_along_dim(order, dim=1).masked_fill(~mask, 0)
        return SequenceBatch(tokens, mask, types)

    def to(self, device: torch.device | str) -> "SequenceBatch":
        """Return the batch on a device."""
        types = None if self.token_types is None else self.token_types.to(device)
        return SequenceBatch(self.tokens.to(device), self.mask.to(device), types)

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[int]]) -> "SequenceBatch":
        """Return ids of sequences of any lengths, padded at the right with 0; BadInput for none.

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
        raise BadInput(f"{name} is missing or is no list of ids; expected lists of ids, at least one")
    lengths = torch.tensor([len(tensor) for tensor in tensors])
    tokens = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)
    return tokens, torch.arange(tokens.shape[1]) < lengths[:, None]


# -- batches as the transformers library has them --

_LABELS_PADDING = -100
_OF_TARGETS = ("labels", "decoder_input_ids", "decoder_attention_mask")


def batch_of_mapping(
    given: Mapping[str, Any], *, padding: int | None = None, frames: str | None = None
) -> TokenBatch | FrameBatch:
    """The batch that a dictionary or a ``BatchEncoding`` holds, by the names of the transformers library.

    ``input_ids`` and ``attention_mask`` are the source, ``labels`` the target, with -100 at padding;
    ``decoder_input_ids`` is what the decoder reads.

    Args:
        given: the dictionary.
        padding: id that the model pads with, and that no label can be.
        frames: name of what the encoder reads in place of words.

    Raises:
        BadInput: a name is missing or unknown; labels are padded with an id, so that nobody knows their end.

    >>> batch = batch_of_mapping({"input_ids": [[5, 6, 7]], "labels": [[8, 9, -100]]})
    >>> batch.target_mask.tolist()
    [[True, True, False]]
    """
    read_by_encoder = frames or "input_ids"
    known = (read_by_encoder, "attention_mask", *_OF_TARGETS)
    for name in given:
        if name not in known:
            raise BadInput(
                f"the batch holds {name!r}; expected {', '.join(known)}: take out what is not used"
            )
    for name in (read_by_encoder, "labels"):
        if given.get(name) is None:
            raise BadInput(
                f"the batch has no {name!r}: {', '.join(given)}; expected {read_by_encoder} and labels, "
                "which are the ids to be predicted (a tokenizer makes them of text_target=)"
            )
    source, labels = as_tensor(given[read_by_encoder], read_by_encoder), as_ids(given["labels"], "labels")
    target_mask = labels != _LABELS_PADDING
    decoder_mask = given.get("decoder_attention_mask")
    if decoder_mask is not None:
        decoder_mask = as_mask(decoder_mask, "decoder_attention_mask").to(labels.device)
        _require_shape("decoder_attention_mask", decoder_mask, labels)
        target_mask = target_mask & decoder_mask
    elif padding is not None and bool((labels == padding).any()):
        raise BadInput(
            f"labels hold {padding}, the id of padding; expected -100 there: "
            f"labels.masked_fill(labels == {padding}, -100), or a decoder_attention_mask"
        )
    source_mask, read = given.get("attention_mask"), given.get("decoder_input_ids")
    if source_mask is not None:
        source_mask = as_mask(source_mask, "attention_mask")
    if read is not None:
        read = as_ids(read, "decoder_input_ids")
    if frames is not None:
        return FrameBatch(source, labels, target_mask, read, source_mask)
    if source_mask is None:
        source_mask = torch.ones_like(source, dtype=torch.bool)
    return TokenBatch(source, source_mask, labels, target_mask, read)


_OF_A_SEQUENCE = ("input_ids", "attention_mask", "token_type_ids")


def sequences_of_mapping(given: Mapping[str, Any]) -> SequenceBatch:
    """Return the sequences that a dictionary or a ``BatchEncoding`` holds, by the names of transformers.

    Rows may have any lengths, as a tokenizer returns them that pads nothing. ``labels`` are not looked at: a
    decoder predicts the token that follows.

    Raises:
        BadInput: ``input_ids`` are missing, or a name is unknown.

    >>> sequences_of_mapping({"input_ids": [[5, 6, 7], [8]]}).mask.tolist()
    [[True, True, True], [True, False, False]]
    """
    for name in given:
        if name not in (*_OF_A_SEQUENCE, "labels"):
            raise BadInput(
                f"the batch holds {name!r}; expected {', '.join(_OF_A_SEQUENCE)}: take out what is not used"
            )
    if given.get("input_ids") is None:
        raise BadInput(f"the batch has no 'input_ids': {', '.join(given) or 'it is empty'}")
    if _is_ragged(given["input_ids"]):
        tokens, mask = _padded(given["input_ids"], "input_ids")
        mask_given, types = given.get("attention_mask"), given.get("token_type_ids")
        if mask_given is not None:
            mask = mask & _padded(mask_given, "attention_mask")[0].bool()
        if types is not None:
            types, _ = _padded(types, "token_type_ids")
        return SequenceBatch(tokens, mask, types)
    tokens = as_ids(given["input_ids"], "input_ids")
    mask = torch.ones_like(tokens, dtype=torch.bool)
    if given.get("attention_mask") is not None:
        mask = as_mask(given["attention_mask"], "attention_mask")
    types = given.get("token_type_ids")
    if types is not None:
        types = as_ids(types, "token_type_ids")
    return SequenceBatch(tokens, mask, types)


def _is_ragged(rows: object) -> bool:
    """Return True for lists of different lengths, of which no array can be made."""
    if not isinstance(rows, list | tuple) or not all(hasattr(row, "__len__") for row in rows):
        return False
    return len({len(row) for row in rows}) > 1


def _require_shape(name: str, given: Tensor, labels: Tensor) -> None:
    if given.shape != labels.shape:
        raise BadInput(
            f"{name} of shape {tuple(given.shape)}; expected {tuple(labels.shape)}, that of labels"
        )


def shifted(target: Int[Tensor, "batch target"], start: int) -> Int[Tensor, "batch target"]:
    """Return what a decoder reads to predict a target: its start, then all but the last token."""
    return torch.cat([torch.full_like(target[:, :1], start), target[:, :-1]], dim=1)


# -- sentences --


Write = Callable[[TokenBatch, int], TokenBatch]  # sources and most pieces → with what a model makes of them


@dataclass(frozen=True)
class LineBatch:
    """Pairs of lines that go through the tokenizer when their ids are used: other shards' never do.

    ``left_out`` counts pairs with an empty side between them. With ``write`` the targets are what it writes.
    """

    pairs: tuple[tuple[str, str], ...]
    left_out: int
    tokenizer: Any
    longest: int
    prefix: str = ""
    write: Write | None = None

    @cached_property
    def tokens(self) -> TokenBatch:
        """The pairs through the tokenizer; the targets are those that ``write`` makes, where it is given."""
        cut = {"truncation": True, "max_length": self.longest}
        sources, targets = zip(*self.pairs, strict=True)
        sources = self.tokenizer(text=[self.prefix + source for source in sources], **cut)["input_ids"]
        if self.write:
            self._require_room(sources)
            return self.write(TokenBatch.of_rows(sources, sources), self.longest)
        targets = self.tokenizer(text_target=list(targets), **cut)["input_ids"]
        self._require_room([*sources, *targets])
        return TokenBatch.of_rows(sources, targets)

    def _require_room(self, rows: Sequence[Sequence[int]]) -> None:
        most = max(map(len, rows))
        if most > self.longest:
            raise BadInput(
                f"longest is {self.longest}, and the tokenizer made {most} pieces all the same: its marks "
                "alone need more; take a larger one"
            )

    @property
    def cut(self) -> int:
        """Pairs of which a side is longer than ``longest``."""
        full = self._pieces >= self.longest
        suspects = tuple(pair for pair, own in zip(self.pairs, full.tolist(), strict=True) if own)
        longer = replace(self, pairs=suspects, longest=self.longest + 1)
        return int((longer._pieces > self.longest).sum()) if suspects else 0

    @property
    def _pieces(self) -> Int[Tensor, " pairs"]:
        return torch.maximum(self.tokens.source_mask.sum(1), self.tokens.target_mask.sum(1))


def line_batches(
    tokenizer: Any,
    pairs: Iterable[tuple[str, str]],
    *,
    batch_size: int = 32,
    longest: int = 128,
    prefix: str = "",
    write: Write | None = None,
) -> Iterator[LineBatch]:
    """As :func:`text_batches`, not tokenized yet; with ``write`` target lines are not looked at."""
    if min(batch_size, longest) < 1:
        raise BadInput(f"batch_size is {batch_size}, longest {longest}; both must be at least 1")
    some: list[tuple[str, str]] = []
    left_out = 0
    for source, target in pairs:
        if not (source.strip() and (write or target.strip())):
            left_out += 1
            continue
        if len(some) == batch_size:
            yield LineBatch(tuple(some), left_out, tokenizer, longest, prefix, write)
            some, left_out = [], 0
        some.append((source, target))
    if some:
        yield LineBatch(tuple(some), left_out, tokenizer, longest, prefix, write)


def text_batches(
    tokenizer: Any,
    pairs: Iterable[tuple[str, str]],
    *,
    batch_size: int = 32,
    longest: int = 128,
    prefix: str = "",
) -> Iterator[TokenBatch]:
    """Sentence pairs through a Hugging Face tokenizer, batch by batch, nothing kept in between.

    Args:
        tokenizer: of Hugging Face, called with ``text=`` and ``text_target=``: each side has its own marks.
        pairs: source and target lines; an empty one on either side leaves its pair out.
        batch_size: pairs at once.
        longest: pieces of a side, special ones included; longer ones are cut off.
        prefix: put before every source line, such as the task that T5 is told.

    Raises:
        BadInput: a size below 1, or less than the marks of a sentence need.

    >>> def tokenizer(text=None, text_target=None, **cut):
    ...     return {"input_ids": [[len(word) for word in line.split()] for line in text or text_target]}
    >>> (batch,) = text_batches(tokenizer, [("ein Haus", "a house"), ("", "nothing"), ("ja", "yes")])
    >>> batch.source.tolist(), batch.target.tolist()
    ([[3, 4], [2, 0]], [[1, 5], [3, 0]])
    """
    sizes = {"batch_size": batch_size, "longest": longest, "prefix": prefix}
    return (batch.tokens for batch in line_batches(tokenizer, pairs, **sizes))


def sequence_batches(
    tokenizer: Any, texts: Iterable[str], *, batch_size: int = 32, longest: int = 128
) -> Iterator[SequenceBatch]:
    """Yield texts through a Hugging Face tokenizer, batch by batch, nothing kept in between.

    A tokenizer without a padding token, such as GPT-2's, does as well.

    Args:
        tokenizer: of Hugging Face.
        texts: each a sequence; an empty one is left out.
        batch_size: texts at once.
        longest: pieces of a text, special ones included; longer ones are cut off.

    Raises:
        BadInput: a size below 1.

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
