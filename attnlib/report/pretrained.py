"""A Hugging Face checkpoint and a parallel text, in files or in lists, as a stream of passes."""

import codecs
import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from attnlib.adapters import HuggingFace, lexical_probe
from attnlib.adapters.hugging_face import assumed_start
from attnlib.adapters.modules import described, evaluated, weights_digest
from attnlib.adapters.single_stack import is_single_stack
from attnlib.adapters.token_batch import LineBatch, TokenBatch, line_batches
from attnlib.analysis.stream import Losses, Stream
from attnlib.arrays import several
from attnlib.errors import BadInput, check_known
from attnlib.files import readable

PACKAGES = "'transformers>=5.20,<6' 'sentencepiece>=0.2,<0.3'"
FEWEST_PIECES = 3  # a tokenizer of fewer, beside marks, was made of nothing: T5's is left with one
# Of generate: the likeliest piece at every step, whatever else a generation config chooses.
_GREEDY = {
    "num_beams": 1,
    "do_sample": False,
    "num_return_sequences": 1,
    "early_stopping": False,
    "length_penalty": 1.0,
    "return_dict_in_generate": False,
}
_OF_A_REPOSITORY = ("revision", "token", "cache_dir", "local_files_only", "trust_remote_code")
# Of a tokenizer: settings that say where it lies, and rules that the last call left behind.
_WHERE = ("name_or_path", "tokenizer_file", "is_local", "local_files_only")
_OF_A_CALL = ("truncation", "padding")


@dataclass(frozen=True)
class ParallelText:
    """Two files, line by line translations of each other, read as they are needed; or the source alone."""

    source: Path | str
    target: Path | str | None = None

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            if (path := getattr(self, side)) is not None:
                object.__setattr__(self, side, Path(path))

    def _sides(self) -> list[tuple[str, Path]]:
        sides = [own for own in (("source", self.source), ("target", self.target)) if own[1] is not None]
        for side, path in sides:
            if not path.is_file():
                raise BadInput(f"{side} {path} is not there")
        return sides

    @property
    def about(self) -> dict[str, str]:
        return {"Corpus": ", ".join(readable(path.name) for _, path in self._sides())}

    def checked(self) -> tuple[int, dict[str, str]]:
        """The number of lines, and the checksum of each file; BadInput where these are no translations."""
        counts, digests = [], {}
        for side, path in self._sides():
            with path.open("rb") as file:
                counts.append(sum(1 for _ in file))
                file.seek(0)
                digests[side] = hashlib.file_digest(file, "sha256").hexdigest()
        if len({*counts}) > 1:
            raise BadInput(
                f"{self.source} has {counts[0]:,} lines, {self.target} {counts[1]:,}: line n of one must be "
                "the translation of line n of the other"
            )
        if not counts[0]:
            named = " and ".join(str(path) for _, path in self._sides())
            raise BadInput(f"{named} {'is' if self.target is None else 'are'} empty")
        return counts[0], digests

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The lines, without their ends; BadInput for one that is not UTF-8, or is missing on one side.

        The target of a source alone is empty.
        """
        paths = [path for _, path in self._sides()]
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("rb")) for path in paths]
            for number, lines in enumerate(zip_longest(*files), start=1):
                source, *target = (_decoded(*own, number) for own in zip(lines, paths, strict=True))
                yield source, *(target or [""])


@dataclass(frozen=True)
class Sentences:
    """Sentences and their translations in lists; or the sources alone.

    Raises:
        BadInput: no sentence, what is no text, or lists of different lengths.

    >>> list(Sentences(["one", "two"], ["un", "deux"]).pairs())
    [('one', 'un'), ('two', 'deux')]
    """

    source: Sequence[str]
    target: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            sentences = getattr(self, side)
            if sentences is None:
                continue
            object.__setattr__(self, side, tuple(sentences))
            for number, sentence in enumerate(getattr(self, side)):
                if not isinstance(sentence, str):
                    raise BadInput(
                        f"{side} {number} is {type(sentence).__name__}; expected a sentence, a str"
                    )
        if not self.source:
            raise BadInput("source is empty: give at least one sentence")
        if self.target is not None and len(self.target) != len(self.source):
            raise BadInput(
                f"{len(self.source):,} sources with {len(self.target):,} targets; expected one of each"
            )

    @property
    def about(self) -> dict[str, str]:
        return {"Corpus": f"{len(self.source):,} sentences given in a list"}

    def checked(self) -> tuple[int, dict[str, str]]:
        """Return the number of sentences, and the checksum of each side."""
        digests = {}
        for side in ("source", "target"):
            if (sentences := getattr(self, side)) is not None:
                digests[side] = hashlib.sha256(json.dumps(sentences).encode()).hexdigest()
        return len(self.source), digests

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Return the sentences with their translations; the target of a source alone is empty."""
        return zip(self.source, self.target or [""] * len(self.source), strict=True)


Text = ParallelText | Sentences


def text_of(
    source: Text | str | Path | Iterable[str], target: str | Path | Iterable[str] | None = None
) -> Text:
    """Return a text, whatever it is given as: two files, or two lists of sentences.

    Raises:
        BadInput: a file on one side and a list on the other; a file that is not there.
    """
    if isinstance(source, ParallelText | Sentences):
        return source
    is_file = [isinstance(side, str | Path) for side in (source, target) if side is not None]
    if all(is_file):
        return ParallelText(source, target)
    if any(is_file):
        raise BadInput("one side is a file and the other is not; give two files, or two lists of sentences")
    return Sentences(source, target)


def _decoded(line: bytes | None, path: Path, number: int) -> str:
    if line is None:
        raise BadInput(f"{path} ends before line {number:,}, which the other file has")
    line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path}, line {number:,} is not UTF-8 ({error.reason}): convert the file, as with iconv"
        ) from error


@dataclass(frozen=True)
class Checkpoint:
    """A model and its tokenizer, loaded, with the languages and the prefix of a text.

    Attributes:
        name: folder or name.
        source_language, target_language: as the tokenizer of a multilingual model writes them, such as en_XX
            and de_DE for mBART; they are set on it. None for a tokenizer that marks no languages.
        prefix: put before every source line, such as T5's "translate English to German: ".

    Raises:
        BadInput: languages for a tokenizer without, none for one with, or one that it does not know.
    """

    name: str
    model: Any
    tokenizer: Any
    source_language: str | None = None
    target_language: str | None = None
    prefix: str = ""

    def __post_init__(self) -> None:
        set_languages(self.tokenizer, self.source_language, self.target_language)

    @classmethod
    def load(
        cls,
        name: str | Path,
        device: str = "cpu",
        *,
        model_kwargs: Mapping[str, Any] | None = None,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        **settings: str | None,
    ) -> "Checkpoint":
        """Load a model from a folder, or by name from wherever transformers finds it.

        Args:
            device: where the model goes; without effect where ``model_kwargs`` has a ``device_map``.
            model_kwargs, tokenizer_kwargs: passed on to ``from_pretrained``: ``dtype``, ``revision``,
                ``token``, ``device_map`` and so on. Code that a checkpoint brings along is refused unless
                ``trust_remote_code`` is given here.
            settings: as the fields.

        Raises:
            BadInput: no such folder or device; transformers is not installed, or cannot load this as one.
        """
        model_kwargs = {"trust_remote_code": False, **(model_kwargs or {})}
        shared = {key: model_kwargs[key] for key in _OF_A_REPOSITORY if key in model_kwargs}
        tokenizer_kwargs = shared | dict(tokenizer_kwargs or {})
        _require_folder(name := str(name))
        try:
            torch.empty(0, device=device).tolist()  # the device "meta" holds no numbers
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise BadInput(
                f"device {device!r} cannot be used: {_said(error)} (cpu is always there)"
            ) from error
        try:
            from transformers import AutoConfig, AutoTokenizer
        except ModuleNotFoundError as error:
            raise BadInput(f"the transformers library is not installed: pip install {PACKAGES}") from error
        wanted = "an encoder–decoder"
        try:
            config = AutoConfig.from_pretrained(name, **shared)
            if not getattr(config, "is_encoder_decoder", False):
                wanted = "a decoder or an encoder"
            maker = _maker_of(config)
            model_kwargs = {"attn_implementation": "eager", **model_kwargs, "output_loading_info": True}
            model, loaded = maker.from_pretrained(name, **model_kwargs)
            tokenizer = AutoTokenizer.from_pretrained(name, **tokenizer_kwargs)
        except MemoryError:
            raise
        except Exception as error:  # of whatever kind: transformers reads files of all forms, and checks few
            raise BadInput(
                f"{name} cannot be loaded as {wanted} with a tokenizer: {_said(error)} (expected a folder "
                "that save_pretrained wrote for a model like T5, BART, Marian, GPT-2 or BERT, or a name)"
            ) from error
        if is_single_stack(model):
            loaded["unexpected_keys"] = ()  # of heads that the model was also trained with
        _require_every_weight(name, model, loaded)
        _require_vocabulary(name, tokenizer)
        if "device_map" not in model_kwargs:
            model = model.to(device)
        return cls(name, model, tokenizer, **settings)

    @classmethod
    def of(cls, model: Any, tokenizer: Any = None, **settings: str | None) -> "Checkpoint":
        """Return a loaded model as one, with the tokenizer of the place that it was loaded from by default.

        Raises:
            BadInput: no tokenizer is given, and none is where the model came from.
        """
        name = getattr(model, "name_or_path", "") or type(model).__name__
        if tokenizer is None:
            from transformers import AutoTokenizer

            try:
                tokenizer = AutoTokenizer.from_pretrained(name)
            except (OSError, ValueError) as error:
                raise BadInput(
                    f"there is no tokenizer of {name} ({_said(error)}): give tokenizer= as well"
                ) from error
        return cls(name, model, tokenizer, **settings)

    @property
    def shown(self) -> str:
        return readable(Path(self.name).absolute().name) if Path(self.name).exists() else self.name

    @property
    def about(self) -> dict[str, str]:
        facts = {"Model": f"{self.shown} ({described(self.model)})"}
        if (start := assumed_start(self.model)) is not None:
            said = f"{self.word('target', start)}, as T5 was trained; the model's config does not say"
            facts["Its decoder starts with"] = said
        if self.source_language:
            facts["Languages"] = f"{self.source_language} to {self.target_language}"
        return facts | ({"Before every source": self.prefix} if self.prefix else {})

    def digest(self) -> str:
        """A hash of all that passes depend on: configuration, weights, tokenizer, languages, prefix."""
        config = self.model.config.to_diff_dict() | {"transformers_version": None}
        content = [config, tokenizer_digest(self.tokenizer), self.prefix, weights_digest(self.model)]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    def bleu(self, batches: Iterable[LineBatch]) -> dict[str, float]:
        """BLEU of what the model writes of some sources, by sacreBLEU; empty where that is not installed."""
        if not find_spec("sacrebleu"):
            return {}
        from sacrebleu import corpus_bleu

        written, right = [], []
        for batch in batches:
            found = self.write(batch.tokens, batch.longest)
            rows = [row[own].tolist() for row, own in zip(found.target, found.target_mask, strict=True)]
            written += self.tokenizer.batch_decode(rows, skip_special_tokens=True)
            right += [target for _, target in batch.pairs]
        return {"bleu": corpus_bleu(written, [right], force=True).score}

    def word(self, _side: str, token: int) -> str:
        """A piece as the tokenizer writes it."""
        return str(self.tokenizer.convert_ids_to_tokens(token))

    def adapter(
        self,
        kinds: Collection[str] = ("cross",),
        layers: Collection[int] | None = None,
        ignore_special: bool = False,
    ) -> HuggingFace:
        ignored = ignorable_ids(self.tokenizer) if ignore_special else ()
        return HuggingFace(self.model, kinds=kinds, layers=layers, ignored=ignored)

    def write(self, batch: TokenBatch, longest: int) -> TokenBatch:
        """Sources with what the model's own ``generate`` makes of them, greedily, up to its end mark.

        It begins as the decoder does before any target: with its start mark and, where the tokenizer marks
        languages, with that of the target. What the model's generation config forbids or forces is forbidden
        or forced here as well.

        Args:
            longest: pieces at most.

        Raises:
            BadInput: the marks alone are more pieces.
        """
        begin = self._first_pieces()
        if longest < begin.shape[1]:
            raise BadInput(f"longest is {longest}, too few to write anything: take a larger one")
        ends = self._end_marks()
        least = getattr(self._generation_config, "min_length", None) or 0
        source = batch.source.to(self.model.device)
        with evaluated(self.model):
            written = self.model.generate(
                input_ids=source,
                attention_mask=batch.source_mask.long().to(source.device),
                decoder_input_ids=begin.expand(len(source), -1).to(source),
                decoder_start_token_id=int(begin[0, 0]),  # else another one is put in front of them
                max_length=longest + 1,
                max_new_tokens=None,
                min_length=min(least, longest),
                eos_token_id=ends or None,
                **_GREEDY,
            )
        read, target = written[:, :-1].cpu(), written[:, 1:].cpu()
        ended = torch.isin(target, torch.tensor(ends, dtype=torch.int64)).long()
        # True up to the first end mark: from there on more have been seen than are here.
        valid = ended.cumsum(1) == ended
        return TokenBatch(batch.source, batch.source_mask, target, valid, read)

    @property
    def _generation_config(self) -> Any:
        return getattr(self.model, "generation_config", None)

    def _first_pieces(self) -> Int[Tensor, "1 pieces"]:
        """What the decoder has before it writes anything: its start mark, and that of a language."""
        (labels,) = self.tokenizer(text_target=["."])["input_ids"]
        one = TokenBatch.of_rows([labels], [labels])
        start = self.adapter().read(one)[:, :1].cpu()
        is_marked = labels[0] in ignorable_ids(self.tokenizer) and len(labels) > 1
        if is_marked:
            return torch.cat([start, one.target[:, :1]], dim=1)
        return start

    def _end_marks(self) -> list[int]:
        """Ids that end what the model writes; the tokenizer's where the model names none."""
        marks = getattr(self._generation_config, "eos_token_id", None)
        if marks is None:
            marks = self.tokenizer.eos_token_id
        return list(several(marks) or ())

    def never_written(self) -> tuple[int, ...]:
        """Ids that the model's generation config forbids at every step, such as padding in Marian's."""
        config = self._generation_config
        words = getattr(config, "bad_words_ids", None) or ()
        forbidden = {word[0] for word in words if len(word) == 1}
        forbidden.update(getattr(config, "suppress_tokens", None) or ())
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
    ) -> Stream[LineBatch]:
        """Passes of the model over the text.

        Args:
            kinds, layers: see :class:`~attnlib.adapters.HuggingFace`.
            ignore_special: leave out the positions where a special piece is read: end marks and marks of
                languages of the source, and the decoder's step that reads its start mark, which is about the
                first word. A row of cross-attention goes by what the decoder reads there, not by what it
                predicts: the one about the end mark, which reads the last word, stays. Unknown words are
                words.
            batch_size: pairs at once; longest: pieces of a side, longer ones are cut.
            probed: batches of which the lexical probe is taken.
            generate: the targets are what the model itself writes, see :meth:`write`. It is not asked how
                well it predicts them.

        Raises:
            BadInput: no target and no ``generate``, or both.
        """
        if is_single_stack(self.model):
            raise BadInput(
                f"{type(self.model).__name__} reads one text: give it to attnlib.analyse(checkpoint, texts)"
            )
        if generate == (text.target is not None):
            raise BadInput(
                "a target is given, and generate asks the model to write it: leave one of them out"
                if generate
                else "there is no target: give a file of translations, or let the model write them (generate)"
            )
        kinds, layers = several(kinds), several(layers)
        adapter = self.adapter(kinds, layers, ignore_special)
        sizes = {"batch_size": batch_size, "longest": longest, "prefix": self.prefix}
        made = {"kinds": [*kinds], "layers": layers and [*layers], "ignore_special": ignore_special, **sizes}
        digests = lambda: {"model": self.digest(), "tokenizer": tokenizer_digest(self.tokenizer)}  # noqa: E731
        made |= {"generate": generate, "languages": [self.source_language, self.target_language]}
        sizes |= {"write": self.write if generate else None}
        return Stream(
            trace=lambda batch: adapter.trace(batch.tokens),
            batches=lambda: line_batches(self.tokenizer, text.pairs(), **sizes),
            probe=partial(lexical_probe, self.model),
            probed=probed,
            logits=None if generate else adapter.logits,
            never_written=self.never_written(),
            losses=partial(losses_of, unknown=self.tokenizer.unk_token_id),
            n_batches=-(-text.checked()[0] // batch_size) if batch_size > 0 else None,
            made=cache(lambda: {"options": made, "sha256": text.checked()[1] | digests()}),
        )


def _require_folder(name: str) -> None:
    """Refuse what can only be a folder and is none, before it is looked for on the network."""
    path = Path(name)
    before, _, _ = name.rstrip("/").rpartition("/")
    is_path = name.startswith((".", "/", "~")) or name.count("/") > 1 or (os.sep != "/" and os.sep in name)
    if not path.exists() and (is_path or (before and Path(before).is_dir())):
        raise BadInput(
            f"there is no folder {name}: give one that save_pretrained wrote, or a name such as "
            "Helsinki-NLP/opus-mt-en-de"
        )


def _maker_of(config: Any) -> Any:
    """Return the class that loads a checkpoint: of a decoder or an encoder alone the one that saved it.

    Raises:
        ValueError: no class for a model that reads words is known.
    """
    import transformers

    if not getattr(config, "is_encoder_decoder", False):
        (architecture, *_) = config.architectures or ("AutoModel",)
        if not hasattr(transformers, architecture):
            raise ValueError(f"it is a {architecture}, which transformers does not have")
        return getattr(transformers, architecture)
    if type(config) not in transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        raise ValueError(
            f"it is of type {config.model_type}, which does not read words and write words; of pictures and "
            "sound, give saved traces (--traces), or batches of attnlib.FrameBatch to attnlib.HuggingFace"
        )
    return transformers.AutoModelForSeq2SeqLM


def _require_every_weight(name: str, model: Any, loaded: dict) -> None:
    """Refuse a checkpoint whose weights are not the model's; those tied to others need not be there."""
    weights = model.state_dict()
    absent = set(loaded["missing_keys"])
    there = {weights[own].data_ptr() for own in weights.keys() - absent}
    absent = {own for own in absent if own not in weights or weights[own].data_ptr() not in there}
    shapes = {own if isinstance(own, str) else own[0] for own in loaded["mismatched_keys"]}
    wrong = {
        "lacks": absent,
        "has of another shape": shapes,
        "has beside the model's": loaded["unexpected_keys"],
    }
    said = []
    for what, names in wrong.items():
        shown, more = sorted(names)[:4], len(names) - 4
        if names:
            said.append(f"{what} {', '.join(shown)}{f' and {more} more' if more > 0 else ''}")
    if said:
        raise BadInput(
            f"{name} is not whole: it {'; it '.join(said)}. What is lacking would be drawn at random; give "
            "the config and the weights that were saved together"
        )


def _require_vocabulary(name: str, tokenizer: Any) -> None:
    """Refuse a tokenizer that was made of nothing, because its files are not there."""
    marks = {*tokenizer.all_special_ids, *getattr(tokenizer, "added_tokens_decoder", ())}
    pieces = sum(piece not in marks for piece in tokenizer.get_vocab().values())
    files = {*getattr(tokenizer, "vocab_files_names", {}).values()}
    nothing = Path(name).is_dir() and files and not any((Path(name) / file).is_file() for file in files)
    if nothing or pieces < FEWEST_PIECES:
        raise BadInput(
            f"{name} holds no vocabulary: its {type(tokenizer).__name__} knows {pieces:,} pieces beside "
            f"marks; put the tokenizer's files there ({' or '.join(sorted(files))}), as its save_pretrained "
            "writes them"
        )


def losses_of(batch: LineBatch, unknown: int | None) -> Losses:
    """What a batch lacks of the corpus, and how much of it the tokenizer does not know."""
    tokens, found = batch.tokens, {}
    for side in ("source", "target"):
        ids = getattr(tokens, side)[getattr(tokens, f"{side}_mask")]
        found[f"{side}_pieces"] = len(ids)
        found[f"{side}_unknown"] = 0 if unknown is None else int((ids == unknown).sum())
    return Losses(batch.left_out, batch.cut, **found)


def _said(error: Exception) -> str:
    """The first line of an error."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


# -- what the pieces of a text depend on --


def language_codes(tokenizer: Any) -> list[str]:
    """The languages that a tokenizer marks its sentences with, as those of mBART, M2M100 and NLLB do."""
    known = getattr(tokenizer, "lang_code_to_id", None)
    if not known and hasattr(tokenizer, "src_lang"):  # NLLB has its codes among its special tokens
        known = [code for code in getattr(tokenizer, "extra_special_tokens", ()) if not code.startswith("<")]
    return sorted(known or ())


def set_languages(tokenizer: Any, source: str | None, target: str | None) -> None:
    """Let a tokenizer mark both sides with their languages; errors as :class:`Checkpoint`."""
    codes = language_codes(tokenizer)
    kind = type(tokenizer).__name__
    if not codes and (source, target) != (None, None):
        raise BadInput(
            f"{kind} knows no languages, but {source or target!r} is given: leave --source-language and "
            "--target-language out"
        )
    if not codes:
        return
    if None in (source, target):
        raise BadInput(
            f"{kind} marks sentences with their language: give --source-language and --target-language, each "
            f"one of {', '.join(codes[:5])}, … ({len(codes)} in all)"
        )
    for code in (source, target):
        check_known("language", code, codes)
    tokenizer.src_lang, tokenizer.tgt_lang = source, target


def ignorable_ids(tokenizer: Any) -> tuple[int, ...]:
    """Ids of what a tokenizer calls special, marks of languages included; an unknown word is a word."""
    ids = {*tokenizer.all_special_ids, *(getattr(tokenizer, "lang_code_to_id", None) or {}).values()}
    return tuple(sorted(ids - {tokenizer.unk_token_id}))


def tokenizer_digest(tokenizer: Any) -> str:
    """A hash of all that the pieces of a sentence depend on: vocabulary, rules, settings, languages."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save_vocabulary(folder)
            files = {own.name: hashlib.sha256(own.read_bytes()).hexdigest() for own in Path(folder).iterdir()}
        rules = {"vocabulary": sorted(tokenizer.get_vocab().items()), "files": files}
    else:
        rules = {name: own for name, own in json.loads(backend.to_str()).items() if name not in _OF_A_CALL}
    elsewhere = {*_WHERE, *getattr(tokenizer, "vocab_files_names", ())}
    given = getattr(tokenizer, "init_kwargs", {})
    settings = {name: given[name] for name in given.keys() - elsewhere if not name.startswith("_")}
    languages = [getattr(tokenizer, side, None) for side in ("src_lang", "tgt_lang")]
    content = [type(tokenizer).__name__, rules, settings, languages]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
