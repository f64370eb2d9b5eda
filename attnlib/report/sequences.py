"""Stream the passes of a decoder or an encoder alone over texts."""

from collections.abc import Collection, Iterator
from functools import cache, partial
from typing import cast

from attnlib.adapters.single_stack import SingleStack
from attnlib.adapters.token_batch import SequenceBatch, sequence_batches
from attnlib.analysis.stream import CorpusGaps, Stream
from attnlib.arrays import as_tuple
from attnlib.errors import BadInput
from attnlib.report.pieces import TwoTokenizers, ignorable_ids, tokenizer_digest
from attnlib.report.pretrained import Checkpoint, count_unknown, number_of_batches
from attnlib.report.texts import Text
from attnlib.trace import AttentionKind


def adapter_of_sequences(
    checkpoint: Checkpoint,
    *,
    kinds: str | Collection[str] | None = None,
    layers: int | Collection[int] | None = None,
    ignore_special: bool = False,
) -> SingleStack:
    """Return the adapter that traces a decoder or an encoder alone.

    Args:
        checkpoint: such a model, with its tokenizer.
        kinds: of attention; such a model has one.
        layers: numbers of the layers to look at; all by default.
        ignore_special: leave out the positions of special pieces.

    Raises:
        BadInput: the model cannot be traced.

    Example:
        >>> from types import SimpleNamespace
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_layer=2, n_head=2))
        >>> checkpoint = Checkpoint("my-model", model=model, tokenizer=SimpleNamespace())
        >>> adapter_of_sequences(checkpoint, layers=1).kind
        'decoder_self'
    """
    ignored = ignorable_ids(checkpoint.tokenizer) if ignore_special else ()
    known_kinds = cast("Collection[AttentionKind] | None", kinds)  # the adapter refuses others
    return SingleStack(checkpoint.model, kinds=known_kinds, layers=layers, ignored=ignored)


def stream_of_sequences(
    checkpoint: Checkpoint,
    text: Text,
    *,
    kinds: str | Collection[str] | None = None,
    layers: int | Collection[int] | None = None,
    ignore_special: bool = False,
    batch_size: int = 32,
    longest: int = 128,
    shown: Text | None = None,
) -> Stream[SequenceBatch]:
    """Return the passes of a model that reads one text.

    Args:
        checkpoint: a decoder or an encoder alone, with its tokenizer.
        text: its source is what is read; empty lines are left out.
        kinds: of attention; such a model has one, see :class:`~attnlib.adapters.single_stack.SingleStack`.
        layers: numbers of the layers to look at; all by default.
        ignore_special: leave out the positions of special pieces; unknown words are words.
        batch_size: texts at once.
        longest: pieces of a text; longer ones are cut off.
        shown: sentences of a reader's own, which an analysis keeps as its first samples.

    Returns:
        A stream, which reads the text when it is iterated over.

    Raises:
        BadInput: the text has translations, or the model cannot be traced.

    Example:
        >>> from types import SimpleNamespace
        >>> from attnlib.report.texts import Sentences
        >>> checkpoint = SimpleNamespace(model=None, tokenizer=None)
        >>> stream_of_sequences(checkpoint, Sentences(["one"], ["un"]))
        Traceback (most recent call last):
        attnlib.errors.BadInput: NoneType reads one text and translates nothing: leave target out
    """
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    if text.target is not None:
        raise BadInput(f"{type(model).__name__} reads one text and translates nothing: leave target out")
    if shown is not None and shown.target is not None:
        raise BadInput(f"{type(model).__name__} reads one text and translates nothing: leave translation out")
    if isinstance(tokenizer, TwoTokenizers):
        raise BadInput(f"{type(model).__name__} reads one text: leave the target's tokenizer out")
    adapter = adapter_of_sequences(checkpoint, kinds=kinds, layers=layers, ignore_special=ignore_special)
    predicts = adapter.kind == "decoder_self" and model.get_output_embeddings() is not None
    options = {
        "kinds": [adapter.kind],
        "layers": None if layers is None else list(as_tuple(layers)),
        "ignore_special": ignore_special,
        "batch_size": batch_size,
        "longest": longest,
        "prefix": checkpoint.prefix,
    }

    def made() -> dict[str, dict]:
        _, digests = text.checked()
        model_digests = {"model": checkpoint.digest(), "tokenizer": tokenizer_digest(tokenizer)}
        return {"options": options, "sha256": digests | model_digests}

    def batches_of(some_text: Text) -> Iterator[SequenceBatch]:
        # an empty line has nothing to put the prefix before, and is left out
        texts = (checkpoint.prefix + source for source, _ in some_text.pairs() if source.strip())
        return sequence_batches(tokenizer, texts, batch_size=batch_size, longest=longest)

    def losses(batch: SequenceBatch) -> CorpusGaps:
        pieces = batch.tokens[batch.mask]
        n_unknown = count_unknown(pieces, tokenizer.unk_token_id)
        return CorpusGaps(source_pieces=len(pieces), source_unknown=n_unknown)

    return Stream(
        trace=adapter.trace,
        batches=partial(batches_of, text),
        shown=() if shown is None else tuple(batches_of(shown)),
        logits=adapter.logits if predicts else None,
        losses=losses,
        n_batches=number_of_batches(text, batch_size),
        made=cache(made),
    )
