"""Load a Hugging Face checkpoint, a model with its tokenizer, and stream its passes over a text."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Int
from torch import Tensor

from attnlib.adapters import HuggingFace, lexical_probe
from attnlib.adapters.hugging_face import assumed_start, position_limit, require_unwrapped
from attnlib.adapters.modules import described, evaluated, weights_digest
from attnlib.adapters.single_stack import is_single_stack, most_positions
from attnlib.adapters.token_batch import LineBatch, TokenBatch, line_batches
from attnlib.alignment.words import Marking, Words, join_pieces, marking_of, readable
from attnlib.analysis.stream import CorpusGaps, Stream
from attnlib.arrays import as_tuple
from attnlib.errors import BadInput, check_known, first_names, line_of
from attnlib.report.model_folders import is_json, is_path, why_damaged, why_unreadable
from attnlib.report.pieces import (
    TwoTokenizers,
    id_of_mark,
    ignorable_ids,
    pieces_of_text,
    set_languages,
    tokenizer_digest,
    tokenizer_of_side,
    vocabulary_of_side,
    with_sides,
)
from attnlib.report.texts import Text
from attnlib.trace import Trace

REQUIREMENTS = "'transformers>=5.20,<6' 'sentencepiece>=0.2,<0.3' 'protobuf>=5,<8'"
FEWEST_PIECES = 3  # a tokenizer with fewer, besides marks, has lost its vocabulary: T5's is left with one
MOST_WEIGHTS = 4  # that a message names
# Arguments of generate, if no others are chosen: the likeliest piece at every step.
_GREEDY = {"num_beams": 1, "do_sample": False}
_GREEDY_ALONE = _GREEDY | {"early_stopping": False, "length_penalty": 1.0}
_FORCED_OR_FORBIDDEN = (
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
)
# Arguments of generate that follow from other options, or change what it returns.
_NOT_CHOSEN = {
    "max_length": "longest",
    "max_new_tokens": "longest",
    "decoder_start_token_id": "the generation config",
    "num_return_sequences": "the best sentence alone is analysed",
    "return_dict_in_generate": "what is written is all that is read",
    "output_attentions": "the attention is traced",
}
# Errors of generate where its options cannot be used; it checks few of them.
_OF_OPTIONS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
Generation = Mapping[str, Any]  # arguments of generate
# Arguments of from_pretrained that say which files are meant: the model's and the tokenizer's alike.
_OF_A_REPOSITORY = ("revision", "token", "cache_dir", "local_files_only", "trust_remote_code")


@dataclass(frozen=True)
class Checkpoint:
    """A model and its tokenizer, loaded, with the languages and the prefix of a text.

    Attributes:
        name: the folder or the name that it was loaded from.
        model: a model of the transformers library.
        tokenizer: a tokenizer of the transformers library.
        source_language: as the tokenizer of a multilingual model writes it, such as en_XX for mBART; it is
            set on the tokenizer. None for a tokenizer that marks no languages.
        target_language: likewise, such as de_DE.
        prefix: put before every source line, such as T5's "translate English to German: ".
        target_tokenizer: of the target, where each side has one, as for a BERT that reads and a GPT-2 that
            writes; or the folder or name that it is loaded from. ``tokenizer`` then has both.

    Raises:
        BadInput: languages are given for a tokenizer that marks none, or it does not know them; none are
            given for one that marks them.

    Example:
        >>> from types import SimpleNamespace
        >>> checkpoint = Checkpoint("my-model", model=None, tokenizer=SimpleNamespace(), prefix="translate: ")
        >>> checkpoint.shown, checkpoint.prefix
        ('my-model', 'translate: ')
    """

    name: str
    model: Any
    tokenizer: Any
    _: KW_ONLY
    source_language: str | None = None
    target_language: str | None = None
    prefix: str = ""
    target_tokenizer: Any = None

    def __repr__(self) -> str:
        languages = ""
        if self.source_language or self.target_language:
            languages = f", from {self.source_language} to {self.target_language}"
        model, tokenizer = type(self.model).__name__, type(self.tokenizer).__name__
        return f"Checkpoint({self.name!r}, {model} with {tokenizer}{languages})"

    def __post_init__(self) -> None:
        target_tokenizer = self.target_tokenizer
        if isinstance(target_tokenizer, str | Path):
            target_tokenizer = _tokenizer_of(
                str(target_tokenizer), way_out="give the folder or the name of one"
            )
        object.__setattr__(self, "tokenizer", with_sides(self.tokenizer, target_tokenizer))
        set_languages(self.tokenizer, self.source_language, self.target_language)

    @classmethod
    def load(
        cls,
        name: str | Path,
        device: str = "cpu",
        *,
        model_kwargs: Mapping[str, Any] | None = None,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> "Checkpoint":
        """Load a model from a folder, or by name from wherever transformers finds it.

        Args:
            name: a folder that ``save_pretrained`` wrote, or the name of a model.
            device: where the model goes; ignored if ``model_kwargs`` has a ``device_map``.
            model_kwargs: passed on to the model's ``from_pretrained``: ``dtype``, ``revision``, ``token``,
                ``device_map`` and so on. Code that a checkpoint brings along is refused unless
                ``trust_remote_code`` is given here.
            tokenizer_kwargs: passed on to the tokenizer's ``from_pretrained``.
            settings: the languages and the prefix, as the attributes of this class.

        Returns:
            The checkpoint.

        Raises:
            BadInput: there is no such folder or device; transformers is not installed, or cannot load the
                files as a model with a tokenizer; weights are missing.
        """
        model_kwargs = {"trust_remote_code": False, **(model_kwargs or {})}
        of_repository = {key: model_kwargs[key] for key in _OF_A_REPOSITORY if key in model_kwargs}
        tokenizer_kwargs = {**of_repository, **(tokenizer_kwargs or {})}
        name = str(name)
        _require_folder(name)
        _require_no_adapter(name)
        _require_device(device)
        loaded = _load(name, of_repository, model_kwargs=model_kwargs, tokenizer_kwargs=tokenizer_kwargs)
        model = loaded.model
        if is_single_stack(model):
            loaded.info["unexpected_keys"] = ()  # of heads that the model was also trained with
        _require_every_weight(name, model, loaded.info)
        _require_vocabulary(name, loaded.tokenizer)
        if "device_map" not in model_kwargs:
            model = model.to(device)
        return cls(name, model, loaded.tokenizer, **settings)

    @classmethod
    def of(cls, model: Any, tokenizer: Any = None, **settings: Any) -> "Checkpoint":
        """Return a loaded model as a checkpoint.

        Args:
            model: a model of the transformers library.
            tokenizer: by default it is loaded from where the model was loaded from.
            settings: the languages and the prefix, as the attributes of this class.

        Raises:
            BadInput: no tokenizer is given, and none is found where the model came from.
        """
        require_unwrapped(model)
        name = getattr(model, "name_or_path", "") or type(model).__name__
        if tokenizer is None:
            tokenizer = _tokenizer_of(name)
        return cls(name, model, tokenizer, **settings)

    @property
    def shown(self) -> str:
        """The name as a report shows it: that of a folder without the path that leads to it."""
        path = Path(self.name)
        return path.absolute().name if path.exists() else self.name

    @property
    def about(self) -> dict[str, str]:
        """Facts that a report states about the model, by the name of each fact."""
        facts = {"Model": f"{self.shown} ({described(self.model)})"}
        start = assumed_start(self.model)
        if start is not None:
            facts["Its decoder starts with"] = (
                f"{self.word('target', start)}, as T5 was trained; the model's config does not say"
            )
        if self.source_language:
            facts["Languages"] = f"{self.source_language} to {self.target_language}"
        if self.prefix:
            facts["Before every source"] = self.prefix
        return facts

    def digest(self) -> str:
        """Return the SHA-256 of what passes depend on: configuration, weights, tokenizer, prefix.

        Returns:
            64 hexadecimal digits.
        """
        config = self.model.config.to_diff_dict() | {"transformers_version": None}
        content = [config, tokenizer_digest(self.tokenizer), self.prefix, weights_digest(self.model)]
        content_as_text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(content_as_text.encode()).hexdigest()

    def bleu(self, batches: Iterable[LineBatch], references: Sequence[Text] = ()) -> dict[str, float]:
        """Return the BLEU, by sacreBLEU, of what the model writes for some sources.

        Args:
            batches: with translations as references.
            references: further translations of the whole text, each the source of a text.

        Returns:
            ``{"bleu": …}``, from 0 to 100; empty if sacreBLEU is not installed.
        """
        if not find_spec("sacrebleu"):
            return {}
        from sacrebleu import corpus_bleu

        further = [[line for line, _ in text.pairs()] for text in references]
        written = []
        translations: list[list[str]] = [[] for _ in range(1 + len(further))]
        for batch in batches:
            tokens = self.write(batch.tokens, batch.longest)
            rows = []
            for ids, mask in zip(tokens.target, tokens.target_mask, strict=True):
                rows.append(ids[mask].tolist())
            written += self._texts(rows)
            translations[0] += [target for _, target in batch.pairs]
            for lines, others in zip(further, translations[1:], strict=True):
                others += [lines[number] for number in batch.numbers]
        return {"bleu": corpus_bleu(written, translations, force=True).score}

    def word(self, side: str, token: int) -> str:
        """Return a piece as a reader sees it: of a byte-level tokenizer the text, in its script.

        Args:
            side: "source" or "target".
            token: the id of the piece.

        Returns:
            The piece, such as ``"▁house"``.
        """
        return readable(self.piece(side, token), self.marking(side))

    def piece(self, side: str, token: int) -> str:
        """Return a piece as the tokenizer writes it.

        Args:
            side: "source" or "target".
            token: the id of the piece.

        Returns:
            The piece, such as ``"▁house"`` or, of a byte-level tokenizer, ``"Ġhouse"``.
        """
        pieces = self._pieces[side]
        if token in pieces:
            return pieces[token]
        return str(tokenizer_of_side(self.tokenizer, side).convert_ids_to_tokens(token))

    def marking(self, side: str) -> Marking:
        """Return how the tokenizer marks words of a side.

        Args:
            side: "source" or "target".

        Returns:
            A marking, see :mod:`attnlib.alignment.words`.
        """
        return self._markings[side]

    def join(
        self, side: str, tokens: Sequence[int], *, text: str | None = None, keep_special: bool = False
    ) -> Words:
        """Join the pieces of one side of a sentence to words.

        Args:
            side: "source" or "target".
            tokens: ids of the pieces.
            text: what they are of, if it is known: the id of an unknown piece does not say whether a word
                begins there, and the text does.
            keep_special: make each special piece a separate word; by default it is of no word.

        Returns:
            The words, and the word that each piece is of.
        """
        marks = ignorable_ids(self.tokenizer, side)
        special = [place for place, token in enumerate(tokens) if token in marks]
        pieces = [self.piece(side, token) for token in tokens]
        if text is not None:
            others = [place for place in range(len(tokens)) if place not in special]
            for place, piece in zip(others, pieces_of_text(self.tokenizer, side, text), strict=False):
                pieces[place] = piece  # a text that was cut has more pieces than there are ids
        return join_pieces(pieces, self.marking(side), special=special, keep_special=keep_special)

    @cached_property
    def _pieces(self) -> dict[str, dict[int, str]]:
        """The pieces by side and id, of a tokenizer with a vocabulary for each side; else empty."""
        pieces = {}
        for side in ("source", "target"):
            vocabulary = vocabulary_of_side(self.tokenizer, side) or {}
            pieces[side] = {token: piece for piece, token in vocabulary.items()}
        return pieces

    @cached_property
    def _markings(self) -> dict[str, Marking]:
        """The marking of words, by side."""
        markings = {}
        for side in ("source", "target"):
            pieces = self._pieces[side].values() or tokenizer_of_side(self.tokenizer, side).get_vocab()
            markings[side] = marking_of(pieces)
        return markings

    def _texts(self, rows: list[list[int]]) -> list[str]:
        """Return written ids as text, without marks."""
        if not self._pieces["target"]:
            return tokenizer_of_side(self.tokenizer, "target").batch_decode(rows, skip_special_tokens=True)
        marks = ignorable_ids(self.tokenizer, "target")
        texts = []
        for row in rows:
            pieces = [self.piece("target", token) for token in row if token not in marks]
            texts.append(self.tokenizer.convert_tokens_to_string(pieces))
        return texts

    def adapter(
        self,
        kinds: Collection[str] = ("cross",),
        layers: Collection[int] | None = None,
        *,
        ignore_special: bool = False,
    ) -> HuggingFace:
        """Return the adapter that traces the model.

        Args:
            kinds: of attention, as for :meth:`stream`.
            layers: as for :meth:`stream`.
            ignore_special: as for :meth:`stream`.

        Returns:
            An adapter of an encoder–decoder.
        """
        ignored = {}
        if ignore_special:
            ignored = {side: ignorable_ids(self.tokenizer, side) for side in ("source", "target")}
        start = self._mark("bos_token", "cls_token")
        adapter = HuggingFace(self.model, kinds=kinds, layers=layers, ignored=ignored, start=start)
        return cast("HuggingFace", adapter)  # a decoder or an encoder alone has another stream

    def write(
        self, batch: TokenBatch, longest: int, generation: Generation | str | None = None
    ) -> TokenBatch:
        """Let the model translate some sources, with its own ``generate``.

        It begins as the decoder does before any target: with its start mark and, if the tokenizer marks
        languages, with that of the target. The model's generation config may forbid or force pieces.

        Args:
            batch: sources; its targets are ignored.
            longest: pieces of a target at most; no more than the decoder has positions for.
            generation: arguments of ``generate``, such as ``{"num_beams": 4}``, with a ``seed`` for sampling
                with ``do_sample``; "config" for what the generation config says; by default the likeliest
                piece is written at every step.

        Returns:
            The sources with what the model writes, up to and with its end mark; of beams the best.

        Raises:
            BadInput: ``longest`` leaves no room besides the marks, or ``generate`` has no such arguments.
        """
        begin = self._first_pieces()  # (1, pieces)
        if longest < begin.shape[1]:
            raise BadInput(f"longest is {longest}, too few to write anything: take a larger one")
        chosen = generation_arguments(generation)
        end_marks = self._end_marks()
        longest = int(min(longest, self.positions["target"]))
        shortest = chosen.pop("min_length", None) or self._configured("min_length") or 0
        source = batch.source.to(self.model.device)  # (batch, source)
        arguments = self._marks_of_configs() | chosen
        with evaluated(self.model), _seeded(arguments.pop("seed", 0), batch):
            try:
                written = self.model.generate(  # (batch, pieces), the start mark included
                    input_ids=source,
                    attention_mask=batch.source_mask.long().to(source.device),
                    decoder_input_ids=begin.expand(len(source), -1).to(source),
                    decoder_start_token_id=int(begin[0, 0]),  # else another one is put in front of them
                    max_length=longest + 1,
                    max_new_tokens=None,
                    min_length=min(shortest, longest),
                    eos_token_id=end_marks or None,
                    num_return_sequences=1,
                    return_dict_in_generate=False,
                    **arguments,
                )
            except _OF_OPTIONS as error:
                if line_of(error) is not None:  # memory that ran out, which has its own line
                    raise
                raise BadInput(f"the model cannot write so: {_first_line(error)}") from error
        read = written[:, :-1].cpu()
        target = written[:, 1:].cpu()
        is_end = torch.isin(target, torch.tensor(end_marks, dtype=torch.int64)).long()  # (batch, target)
        # True up to and with the first end mark: beyond it more have been seen than are at the position.
        valid = is_end.cumsum(1) - is_end == 0
        return TokenBatch(batch.source, batch.source_mask, target, target_mask=valid, read=read)

    @property
    def positions(self) -> dict[str, int | float]:
        """The number of positions that the model has, by side; infinity if it computes them."""
        if is_single_stack(self.model):
            most = most_positions(self.model)
            return {"source": torch.inf if most is None else most}
        halves = {"source": self.model.get_encoder(), "target": self.model.get_decoder()}
        return {side: position_limit(half) for side, half in halves.items()}

    def shortened(self, longest: int) -> str:
        """Return, in words, at which lengths sentences are cut because the model has no more positions.

        Args:
            longest: pieces of a side that are wanted.

        Returns:
            A sentence; empty if the model has positions for all of them.
        """
        sides = [f"{most} pieces of a {side}" for side, most in self.positions.items() if most < longest]
        if not sides:
            return ""
        return f"the model has positions for {' and '.join(sides)}: longer ones than that are cut"

    @property
    def _generation_config(self) -> Any:
        return getattr(self.model, "generation_config", None)

    def _configured(self, name: str) -> Any:
        """Return a setting of the generation config, or else of the config; None if neither has it."""
        for config in (self._generation_config, getattr(self.model, "config", None)):
            value = getattr(config, name, None)
            if value is not None:
                return value
        return None

    def _forced_or_forbidden(self, name: str) -> Any:
        """Return a setting of the generation config, where None is a choice, or of the config."""
        return getattr(self._generation_config or self.model.config, name, None)

    def _marks_of_configs(self) -> dict[str, Any]:
        """Return the arguments of generate that force and forbid pieces and pad what is written."""
        arguments = {name: self._forced_or_forbidden(name) for name in _FORCED_OR_FORBIDDEN}
        padding = self._configured("pad_token_id")
        arguments["pad_token_id"] = self._mark("pad_token") if padding is None else padding
        return {name: value for name, value in arguments.items() if value is not None}

    def _mark(self, *names: str) -> int | None:
        """Return the id of the first of some marks that the target's tokenizer has."""
        for name in names:
            mark = id_of_mark(self.tokenizer, name, "target")
            if mark is not None:
                return mark
        return None

    def _first_pieces(self) -> Int[Tensor, "1 pieces"]:
        """Return what the decoder has before it writes anything: its start mark, and that of a language."""
        (labels,) = self.tokenizer(text_target=["."])["input_ids"]
        sentence = TokenBatch.of_rows([labels], [labels])
        start = self.adapter().read(sentence)[:, :1].cpu()  # (1, 1)
        marks = ignorable_ids(self.tokenizer, "target")
        begins_with_language = self.target_language is not None and labels[0] in marks and len(labels) > 1
        if not begins_with_language:
            return start
        language = sentence.target[:, :1]  # (1, 1)
        return torch.cat([start, language], dim=1)

    def _end_marks(self) -> list[int]:
        """Return the ids that end what the model writes; the tokenizer's if the model names none."""
        marks = self._configured("eos_token_id")
        if marks is None:
            marks = self._mark("eos_token", "sep_token")
        return list(as_tuple(marks) or ())

    def unknown(self) -> dict[str, int | None]:
        """Return the id of an unknown piece, by side.

        Returns:
            An id; None where the tokenizer has no such piece.
        """
        return {side: id_of_mark(self.tokenizer, "unk_token", side) for side in ("source", "target")}

    def never_written(self) -> tuple[int, ...]:
        """Return the ids that the generation config forbids at every step, as Marian's forbids padding.

        Returns:
            Ids, ascending.
        """
        sequences = self._forced_or_forbidden("bad_words_ids") or ()
        forbidden = {sequence[0] for sequence in sequences if len(sequence) == 1}
        forbidden.update(self._forced_or_forbidden("suppress_tokens") or ())
        return tuple(sorted(forbidden))

    def stream(
        self,
        text: Text,
        *,
        kinds: str | Collection[str] = ("cross",),
        layers: int | Collection[int] | None = None,
        ignore_special: bool = False,
        batch_size: int = 32,
        longest: int = 128,
        probed: int = 4,
        generate: bool = False,
        generation: Generation | str | None = None,
        shown: Text | None = None,
    ) -> Stream[LineBatch]:
        """Return the passes of the model over a text.

        Args:
            text: sources, with or without their translations.
            kinds: of attention, see :class:`~attnlib.adapters.HuggingFace`.
            layers: numbers of the layers to look at; all by default.
            ignore_special: leave out the positions where a special piece is read: end marks and marks of
                languages of the source, and the decoder's step that reads its start mark, which is about the
                first word. A row of cross-attention goes by what the decoder reads there, not by what it
                predicts, so that the row about the end mark, which reads the last word, stays. Unknown words
                are words.
            batch_size: pairs at once.
            longest: pieces of a side; longer ones are cut off.
            probed: number of batches of which the lexical probe is taken.
            generate: let the model itself write the targets, see :meth:`write`; how well it predicts them is
                not judged.
            generation: arguments of ``generate`` with which it writes them, see :meth:`write`.
            shown: sentences of a reader's own, which an analysis keeps as its first samples; their targets
                are written by the model if they have none.

        Returns:
            A stream, which reads the text when it is iterated over.

        Raises:
            BadInput: the text has a target and ``generate`` is on, or neither.
        """
        _require_one_target(self.model, text, generate=generate)
        if generation is not None and not generate:
            raise BadInput("generation is about targets that the model writes: leave it or the target out")
        generation_arguments(generation)
        _require_tokenizers(self.model, self.tokenizer)
        chosen_kinds = as_tuple(kinds)
        chosen_layers = as_tuple(layers)
        adapter = self.adapter(chosen_kinds, chosen_layers, ignore_special=ignore_special)
        options = {
            "kinds": list(chosen_kinds),
            "layers": list(chosen_layers) if chosen_layers else chosen_layers,
            "ignore_special": ignore_special,
            "batch_size": batch_size,
            "longest": longest,
            "prefix": self.prefix,
            "generate": generate,
            "languages": [self.source_language, self.target_language],
        }
        if generation is not None:
            options["generation"] = generation if isinstance(generation, str) else dict(generation)

        def write(batch: TokenBatch, longest: int) -> TokenBatch:
            return self.write(batch, longest, generation)

        def batches_of(some_text: Text) -> Iterator[LineBatch]:
            return line_batches(
                self.tokenizer,
                some_text.pairs(),
                batch_size=batch_size,
                longest=longest,
                prefix=self.prefix,
                write=write if some_text.target is None else None,
                positions=(self.positions["source"], self.positions["target"]),
            )

        def trace(batch: LineBatch) -> Trace:
            return adapter.trace(batch.tokens)

        def made() -> dict[str, dict]:
            _, digests = text.checked()
            model = {"model": self.digest(), "tokenizer": tokenizer_digest(self.tokenizer)}
            return {"options": options, "sha256": digests | model}

        return Stream(
            trace=trace,
            batches=partial(batches_of, text),
            shown=() if shown is None else tuple(batches_of(shown)),
            probe=partial(lexical_probe, self.model),
            probed=probed,
            logits=None if generate else adapter.logits,
            never_written=self.never_written(),
            losses=partial(losses_of, unknown=self.unknown()),
            n_batches=number_of_batches(text, batch_size),
            made=cache(made),
        )


def _require_tokenizers(model: Any, tokenizer: Any) -> None:
    """Refuse one vocabulary for halves that embed different numbers of words, which have two."""
    config = model.config
    sizes = []
    for half in (getattr(config, "encoder", None), getattr(config, "decoder", None)):
        sizes.append(getattr(half, "vocab_size", None))
    if getattr(config, "decoder_vocab_size", None) is not None:
        sizes = [config.vocab_size, config.decoder_vocab_size]
    n_source, n_target = sizes
    has_two = isinstance(tokenizer, TwoTokenizers) or getattr(tokenizer, "separate_vocabs", False)
    if has_two or n_source == n_target or None in sizes:
        return
    raise BadInput(
        f"{type(model).__name__} reads {n_source:,} words and writes {n_target:,}, and has one tokenizer for "
        "both: give that of the target as well, with --target-tokenizer or target_tokenizer="
    )


def generation_arguments(generation: Generation | str | None) -> dict[str, Any]:
    """Return the arguments of ``generate`` that a choice stands for.

    Args:
        generation: arguments by name; "config" for none beside the generation config's; None for the
            likeliest piece at every step.

    Returns:
        Arguments by name.

    Raises:
        BadInput: an argument that other options choose, or a choice of another form.
        UnknownName: ``generate`` has no such argument.

    Example:
        >>> generation_arguments({"num_beams": 4})
        {'num_beams': 4, 'do_sample': False}
    """
    if generation is None:
        return dict(_GREEDY_ALONE)
    if generation == "config":
        return {}
    if isinstance(generation, str):
        raise BadInput(f"generation is {generation!r}; expected arguments of generate, or config")
    from transformers import GenerationConfig

    known = [name for name in vars(GenerationConfig()) if not name.startswith("_")]
    for name in generation:
        if name in _NOT_CHOSEN:
            raise BadInput(f"generation has {name}, which is not chosen there: {_NOT_CHOSEN[name]}")
        check_known("argument of generate", name, [*known, "seed"])
    return _GREEDY | dict(generation)


@contextmanager
def _seeded(seed: int, batch: TokenBatch) -> Iterator[None]:
    """Draw within a block by a seed and the sources, so that a batch is written alike whenever it is read."""
    rows = [source[mask].tolist() for source, mask in zip(batch.source, batch.source_mask, strict=True)]
    digest = hashlib.sha256(json.dumps([seed, rows]).encode()).digest()
    with torch.random.fork_rng():
        torch.manual_seed(int.from_bytes(digest[:8]) >> 1)
        yield


def _require_one_target(model: Any, text: Text, *, generate: bool) -> None:
    """Raise BadInput unless the targets are either in the text or written by the model."""
    if is_single_stack(model):
        raise BadInput(
            f"{type(model).__name__} reads one text: give it to attnlib.analyse(checkpoint, texts)"
        )
    if generate and text.target is not None:
        raise BadInput("a target is given, and generate lets the model write it: leave one of them out")
    if not generate and text.target is None:
        raise BadInput(
            "there is no target: give a file of translations, or let the model write them (generate)"
        )


def number_of_batches(text: Text, batch_size: int) -> int | None:
    """Return how many batches a text is cut into.

    Args:
        text: of sentence pairs, or of sources alone.
        batch_size: pairs at once.

    Returns:
        A number; None for a size of batches that is refused later.

    Example:
        >>> from attnlib.report.texts import Sentences
        >>> number_of_batches(Sentences(["one", "two", "three"]), batch_size=2)
        2
    """
    if batch_size <= 0:
        return None
    n_pairs, _ = text.checked()
    return -(-n_pairs // batch_size)


def losses_of(batch: LineBatch, unknown: Mapping[str, int | None]) -> CorpusGaps:
    """Return what a batch lacks of the corpus, and how much of it the tokenizer does not know.

    Args:
        batch: of sentence pairs.
        unknown: the id of an unknown piece, by side; None if the tokenizer has none.

    Returns:
        Counts of pairs and of pieces.

    Example:
        >>> def tokenizer(text=None, text_target=None, **cut):
        ...     return {"input_ids": [[len(word) for word in line.split()] for line in text or text_target]}
        >>> batch = LineBatch((("ein Haus", "a house"),), 0, tokenizer, longest=8)
        >>> losses_of(batch, {"source": 3, "target": None}).source_unknown
        1
    """
    tokens = batch.tokens
    source = tokens.source[tokens.source_mask]  # (pieces,)
    target = tokens.target[tokens.target_mask]  # (pieces,)
    return CorpusGaps(
        left_out=batch.left_out,
        cut=batch.cut,
        source_pieces=len(source),
        source_unknown=count_unknown(source, unknown["source"]),
        target_pieces=len(target),
        target_unknown=count_unknown(target, unknown["target"]),
    )


def count_unknown(pieces: Int[Tensor, " pieces"], unknown: int | None) -> int:
    """Return how many pieces a tokenizer does not know.

    Args:
        pieces: ids.
        unknown: the id of an unknown piece; None if the tokenizer has none, and 0 is returned.

    Example:
        >>> count_unknown(torch.tensor([3, 5, 3]), unknown=3), count_unknown(torch.tensor([3]), None)
        (2, 0)
    """
    if unknown is None:
        return 0
    return int((pieces == unknown).sum())


@dataclass(frozen=True, eq=False)
class _Loaded:
    """A model and tokenizer loaded with transformers, and the weights that were missing or did not fit."""

    model: Any
    tokenizer: Any
    info: dict[str, Any]


def _load(
    name: str,
    of_repository: Mapping[str, Any],
    *,
    model_kwargs: Mapping[str, Any],
    tokenizer_kwargs: Mapping[str, Any],
) -> _Loaded:
    """Load a model and its tokenizer with transformers, whose errors become BadInput."""
    try:
        from transformers import AutoConfig, AutoTokenizer
    except ModuleNotFoundError as error:
        raise BadInput(f"the transformers library is not installed: pip install {REQUIREMENTS}") from error
    _require_generation_config(name)
    kind = "an encoder–decoder"
    try:
        config = AutoConfig.from_pretrained(name, **of_repository)
        if not getattr(config, "is_encoder_decoder", False):
            kind = "a decoder or an encoder"
        model_class = _class_of(config)
        # Weights of another shape are then named, instead of an error that leads to a report on the screen.
        defaults = {"attn_implementation": "eager", "ignore_mismatched_sizes": True}
        arguments = {**defaults, **model_kwargs, "output_loading_info": True}
        model, info = model_class.from_pretrained(name, **arguments)
        tokenizer = AutoTokenizer.from_pretrained(name, **tokenizer_kwargs)
    except MemoryError:
        raise
    except Exception as error:  # of whatever kind: transformers reads files of all forms, and checks few
        if "trust_remote_code" in str(error):
            raise BadInput(
                f"{name} brings its own code, which is not run by default. If you trust it: "
                "attnlib.analyse(…, model_kwargs={'trust_remote_code': True}), or load the model "
                "yourself and give it to attnlib.adapter_of or attnlib.analyse"
            ) from error
        needed = _packages_for_pieces(name)
        if needed:
            raise BadInput(
                f"{name} has its tokenizer as a model of sentencepiece, without a tokenizer.json; to read "
                f"it: pip install {' '.join(needed)}"
            ) from error
        why = why_unreadable(name) or why_damaged(error)
        if why is not None:
            raise BadInput(f"{name} cannot be loaded as {kind} with a tokenizer: it {why}") from error
        raise BadInput(
            f"{name} cannot be loaded as {kind} with a tokenizer: {_first_line(error)} "
            "(expected a folder that save_pretrained wrote for a model like T5, BART, Marian, GPT-2 or "
            "BERT, or a name)"
        ) from error
    return _Loaded(model, tokenizer, info)


PIECES = ("spiece.model", "sentencepiece.bpe.model", "source.spm", "tokenizer.model")


def _packages_for_pieces(name: str) -> list[str]:
    """Return the packages that are missing where a folder's tokenizer is a model of sentencepiece alone.

    Without them transformers takes the file for one of tiktoken, and its message names that package.
    """
    folder = Path(name)
    has_pieces = any((folder / file).is_file() for file in PIECES)
    if not has_pieces or (folder / "tokenizer.json").is_file():
        return []
    packages = {"sentencepiece": "sentencepiece", "protobuf": "google.protobuf"}
    return [package for package, module in packages.items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True


def _tokenizer_of(name: str, *, way_out: str = "give tokenizer= as well") -> Any:
    """Load a tokenizer alone."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise BadInput(f"there is no tokenizer of {name} ({_first_line(error)}): {way_out}") from error


# -- models that cannot be loaded, or would be loaded as something else --


def _require_device(device: str) -> None:
    try:
        torch.empty(0, device=device).tolist()  # the device "meta" holds no numbers
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise BadInput(
            f"device {device!r} cannot be used: {_first_line(error)} (cpu is always available)"
        ) from error


def _require_folder(name: str) -> None:
    """Refuse what looks like a folder and does not exist, before it is looked for on the network."""
    if not Path(name).exists() and is_path(name):
        raise BadInput(
            f"there is no folder {name}: give one that save_pretrained wrote, or a name such as "
            "Helsinki-NLP/opus-mt-en-de"
        )


def _require_generation_config(name: str) -> None:
    """Refuse a broken file of what the model starts and ends with, which transformers would pass over."""
    path = Path(name) / "generation_config.json"
    if path.is_file() and not is_json(path):
        raise BadInput(
            f"{path} is cut off or no JSON, and says what the model starts and ends with: get it again, or "
            "take it out for the config's settings"
        )


def _require_no_adapter(name: str) -> None:
    """Refuse the folder of an adapter such as LoRA's, which has no model."""
    file = Path(name) / "adapter_config.json"
    if not file.is_file() or (Path(name) / "config.json").is_file():
        return
    try:
        base = json.loads(file.read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (ValueError, AttributeError):
        base = None
    raise BadInput(
        f"{name} is a peft adapter of {base or 'a model that it does not name'}, not a model: load it "
        "with peft.AutoPeftModel…from_pretrained, merge it (model.merge_and_unload()), save what comes out "
        "with save_pretrained, and give that folder"
    )


def _class_of(config: Any) -> Any:
    """Return the class that loads a checkpoint: for a decoder or an encoder alone the one that saved it.

    Raises:
        ValueError: no class for a model that reads words is known.
    """
    import transformers

    if not getattr(config, "is_encoder_decoder", False):
        (architecture, *_) = config.architectures or ("AutoModel",)
        if not hasattr(transformers, architecture):
            raise ValueError(f"it is a {architecture}, which transformers does not have")
        return getattr(transformers, architecture)
    has_class = "AutoModelForSeq2SeqLM" in (
        getattr(config, "auto_map", None) or {}
    )  # in the checkpoint's own code
    if not has_class and type(config) not in transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        raise ValueError(
            f"it is of type {config.model_type}, which does not read words and write words; for pictures and "
            "sound, give saved traces (--traces), or batches of attnlib.FrameBatch to attnlib.HuggingFace"
        )
    return transformers.AutoModelForSeq2SeqLM


def _require_every_weight(name: str, model: Any, info: dict[str, Any]) -> None:
    """Refuse a checkpoint whose weights are not the model's; those tied to others may be missing."""
    mismatched = {_with_shapes(key) for key in info["mismatched_keys"]}
    faults = {
        "lacks": _weights_drawn_at_random(model, set(info["missing_keys"])),
        "has of another shape": mismatched,
        "has beside the model's": info["unexpected_keys"],
    }
    texts = []
    for fault, keys in faults.items():
        if keys:
            texts.append(f"it {fault} {first_names(sorted(keys), most=MOST_WEIGHTS)}")
    if texts:
        raise BadInput(
            f"{name} is not whole: {'; '.join(texts)}. Missing weights would be drawn at random; "
            f"{_way_out_of(info['unexpected_keys'])}"
        )


def _with_shapes(mismatched: str | tuple[str, Sequence[int], Sequence[int]]) -> str:
    """Return the name of a weight of another shape, with both shapes if they are known."""
    if isinstance(mismatched, str):
        return mismatched
    key, saved, expected = mismatched
    shapes = ["×".join(map(str, shape)) for shape in (saved, expected)]
    return f"{key} ({shapes[0]} instead of {shapes[1]})"


# Beginnings of the names of weights, by which a model wrapped in another one is recognised.
_WRAPPERS = {"module.": "model.module", "_orig_mod.": "model._orig_mod"}
_OF_TRAINING = {"state_dict", "model_state_dict"}


def _way_out_of(unexpected: Collection[str]) -> str:
    """Return what to do about weights that are not the model's."""
    for prefix, wrapped in _WRAPPERS.items():
        if unexpected and all(key.startswith(prefix) for key in unexpected):
            return f"the model was saved with a wrapper around it: save {wrapped} with save_pretrained"
    for key in _OF_TRAINING.intersection(unexpected):
        return f"the weights are within {key!r}: load them into the model, and save it with save_pretrained"
    return "give the config and the weights that were saved together"


def _weights_drawn_at_random(model: Any, missing: set[str]) -> set[str]:
    """Return the missing weights that are neither computed nor tied to one that was loaded."""
    weights = model.state_dict()
    storages_loaded = {weights[key].data_ptr() for key in weights.keys() - missing}
    drawn = set()
    for key in missing - _computed_positions(model):
        is_tied = key in weights and weights[key].data_ptr() in storages_loaded
        if not is_tied:
            drawn.add(key)
    return drawn


def _computed_positions(model: Any) -> set[str]:
    """Return the names of tables of sines, which transformers computes where a checkpoint has none."""
    return {
        f"{path}.weight" for path, module in model.named_modules() if "Sinusoidal" in type(module).__name__
    }


def _require_vocabulary(name: str, tokenizer: Any) -> None:
    """Refuse a tokenizer that was made without its vocabulary, because the files are missing."""
    marks = {*tokenizer.all_special_ids, *getattr(tokenizer, "added_tokens_decoder", ())}
    n_pieces = sum(piece not in marks for piece in tokenizer.get_vocab().values())
    files = set(getattr(tokenizer, "vocab_files_names", {}).values())
    folder = Path(name)
    has_a_file = any((folder / file).is_file() for file in files)
    lacks_files = folder.is_dir() and bool(files) and not has_a_file
    if lacks_files or n_pieces < FEWEST_PIECES:
        raise BadInput(
            f"{name} holds no vocabulary: its {type(tokenizer).__name__} knows {n_pieces:,} pieces besides "
            f"marks; put the tokenizer's files there ({' or '.join(sorted(files))}), as its save_pretrained "
            "writes them"
        )


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    n_lines = 2 if lines[0].endswith(":") else 1
    return " ".join(lines[:n_lines])
