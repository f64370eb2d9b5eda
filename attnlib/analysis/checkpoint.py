"""A Hugging Face checkpoint and two parallel text files as a stream of passes."""

import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from attnlib.adapters import HuggingFace, lexical_probe
from attnlib.adapters.token_batch import LineBatch, line_batches
from attnlib.analysis.stream import Losses, Stream
from attnlib.errors import BadInput, check_known

HOW_TO_INSTALL = "the transformers library is not installed: pip install 'attnlib[hf]'"
# Of a tokenizer: settings that say where it lies, and rules that the last call left behind.
_WHERE = ("name_or_path", "tokenizer_file", "is_local", "local_files_only")
_OF_A_CALL = ("truncation", "padding")


@dataclass(frozen=True)
class ParallelText:
    """Two files, line by line translations of each other, read as they are needed."""

    source: Path | str
    target: Path | str

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            object.__setattr__(self, side, Path(getattr(self, side)))

    @property
    def about(self) -> dict[str, str]:
        return {"Corpus": f"{self.source.name}, {self.target.name}"}

    def checked(self) -> tuple[int, dict[str, str]]:
        """The number of lines, and the checksum of each file; BadInput where these are no translations."""
        counts, digests = [], {}
        for side, path in (("source", self.source), ("target", self.target)):
            if not path.is_file():
                raise BadInput(f"{side} {path} is not there")
            with path.open("rb") as file:
                counts.append(sum(1 for _ in file))
                file.seek(0)
                digests[side] = hashlib.file_digest(file, "sha256").hexdigest()
        if counts[0] != counts[1]:
            raise BadInput(
                f"{self.source} has {counts[0]:,} lines, {self.target} {counts[1]:,}: line n of one must be "
                "the translation of line n of the other"
            )
        if not counts[0]:
            raise BadInput(f"{self.source} and {self.target} are empty")
        return counts[0], digests

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The lines, without their ends; BadInput for one that is not UTF-8, or is missing on one side."""
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
    def load(cls, name: str, device: str = "cpu", **settings: str | None) -> "Checkpoint":
        """From a folder, or by name from wherever transformers finds it; ``settings`` as the fields.

        Raises:
            BadInput: no such folder or device; transformers is not installed, or cannot load this as one.
        """
        _require_folder(name)
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            raise BadInput(
                f"device {device!r} cannot be used: {_said(error)} (cpu is always there)"
            ) from error
        try:
            from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        except ModuleNotFoundError as error:
            raise BadInput(HOW_TO_INSTALL) from error
        try:
            model = AutoModelForSeq2SeqLM.from_pretrained(name, attn_implementation="eager")
            tokenizer = AutoTokenizer.from_pretrained(name)
        except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
            raise BadInput(
                f"{name} cannot be loaded as an encoder–decoder with a tokenizer: {_said(error)} (expected a "
                "folder that save_pretrained wrote for a model like T5, BART, mBART or Marian, or a name)"
            ) from error
        return cls(name, model.to(device), tokenizer, **settings)

    @property
    def shown(self) -> str:
        return Path(self.name).absolute().name if Path(self.name).exists() else self.name

    @property
    def about(self) -> dict[str, str]:
        weights = sum(parameter.numel() for parameter in self.model.parameters())
        facts = {"Model": f"{self.shown} ({type(self.model).__name__}, {weights:,} parameters)"}
        if self.source_language:
            facts["Languages"] = f"{self.source_language} to {self.target_language}"
        return facts | ({"Before every source": self.prefix} if self.prefix else {})

    def digest(self) -> str:
        """A hash of all that passes depend on: configuration, weights, tokenizer, languages, prefix."""
        config = self.model.config.to_diff_dict() | {"transformers_version": None}
        content = [config, tokenizer_digest(self.tokenizer), self.prefix]
        found = hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            found.update(name.encode())
            found.update(tensor.detach().cpu().contiguous().view(-1).float().numpy().tobytes())
        return found.hexdigest()

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

    def stream(
        self,
        text: ParallelText,
        *,
        kinds: Collection[str] = ("cross",),
        layers: Collection[int] | None = None,
        ignore_special: bool = False,
        batch_size: int = 32,
        longest: int = 128,
        probed: int = 4,
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
        """
        adapter = self.adapter(kinds, layers, ignore_special)
        sizes = {"batch_size": batch_size, "longest": longest, "prefix": self.prefix}
        return Stream(
            trace=lambda batch: adapter.trace(batch.tokens),
            batches=lambda: line_batches(self.tokenizer, text.pairs(), **sizes),
            probe=partial(lexical_probe, self.model),
            probed=probed,
            losses=lambda batch: Losses(batch.left_out, batch.cut),
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
        rules = {"vocabulary": sorted(tokenizer.get_vocab().items()), "files": _file_digests(tokenizer)}
    else:
        rules = {name: own for name, own in json.loads(backend.to_str()).items() if name not in _OF_A_CALL}
    elsewhere = {*_WHERE, *getattr(tokenizer, "vocab_files_names", ())}
    given = getattr(tokenizer, "init_kwargs", {})
    settings = {name: given[name] for name in given.keys() - elsewhere if not name.startswith("_")}
    languages = [getattr(tokenizer, side, None) for side in ("src_lang", "tgt_lang")]
    content = [type(tokenizer).__name__, rules, settings, languages]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _file_digests(tokenizer: Any) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_vocabulary(folder)
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path(folder).iterdir()}
