"""A Hugging Face checkpoint and two parallel text files as a stream of passes."""

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe, text_batches
from attnlib.analysis.stream import Stream
from attnlib.errors import BadInput

HOW_TO_INSTALL = "the transformers library is not installed: pip install 'attnlib[hf]'"


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
            BadInput: a file that is not UTF-8.
        """
        try:
            with (
                self.source.open(encoding="utf-8", newline="\n") as sources,
                self.target.open(encoding="utf-8", newline="\n") as targets,
            ):
                for source, target in zip(sources, targets, strict=True):
                    yield source.rstrip("\r\n"), target.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.source} or {self.target} is not UTF-8 ({error.reason})") from error


@dataclass(frozen=True)
class Checkpoint:
    """A model and its tokenizer, loaded."""

    name: str
    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, name: str, device: str = "cpu") -> "Checkpoint":
        """From a folder, or by name from wherever transformers finds it.

        Raises:
            BadInput: transformers is not installed, or cannot load this as one; no such device.
        """
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
        return cls(name, model.to(device), tokenizer)

    @property
    def about(self) -> dict[str, str]:
        """What a report tells of it."""
        shown = Path(self.name).name if Path(self.name).exists() else self.name
        weights = sum(parameter.numel() for parameter in self.model.parameters())
        return {"Model": f"{shown} ({type(self.model).__name__}, {weights:,} parameters)"}

    def digest(self) -> str:
        """A hash of what passes depend on: configuration, vocabulary, and weights in the order of names."""
        config = self.model.config.to_diff_dict() | {"transformers_version": None}
        words = sorted(self.tokenizer.get_vocab().items())
        found = hashlib.sha256(json.dumps([config, words], sort_keys=True, default=str).encode())
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
        """The model to be traced; ``ignore_special`` leaves out what the tokenizer calls special."""
        ignored = tuple(self.tokenizer.all_special_ids) if ignore_special else ()
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
    ) -> Stream[TokenBatch]:
        """Passes of the model over the text.

        Args:
            kinds, layers: see :class:`~attnlib.adapters.HuggingFace`.
            ignore_special: leave out what the tokenizer calls special, such as end marks.
            batch_size: pairs at once; longest: pieces of a side, longer ones are cut.
            probed: batches of which the lexical probe is taken.
        """
        adapter = self.adapter(kinds, layers, ignore_special)

        def batches() -> Iterator[TokenBatch]:
            return text_batches(self.tokenizer, text.pairs(), batch_size=batch_size, longest=longest)

        return Stream(adapter.trace, batches, partial(lexical_probe, self.model), probed)


def _said(error: Exception) -> str:
    """The first line of an error."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
