"""A Hugging Face checkpoint and two parallel text files as a stream of passes."""

import hashlib
import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from attnlib.adapters import HuggingFace, lexical_probe
from attnlib.analysis.parallel_text import LineBatch, ParallelText, line_batches
from attnlib.analysis.stream import Stream
from attnlib.analysis.tokenizer import ignorable_ids, set_languages, tokenizer_digest
from attnlib.errors import BadInput

HOW_TO_INSTALL = "the transformers library is not installed: pip install 'attnlib[hf]'"


@dataclass(frozen=True)
class Checkpoint:
    """A model and its tokenizer, loaded, and what both have to be told of a text.

    Attributes:
        name: folder or name.
        source_language, target_language: as the tokenizer of a multilingual model writes them, such as en_XX
            and de_DE for mBART; they are set on it. None for a tokenizer that marks no languages.
        prefix: put before every source line, such as T5's "translate English to German: ".

    Raises:
        BadInput: languages for a tokenizer without, none for one with, or one that it does not know.

    >>> Checkpoint("my-model", torch.nn.Linear(2, 3), tokenizer=None).about
    {'Model': 'my-model (Linear, 9 parameters)'}
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
        name: str,
        device: str = "cpu",
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        prefix: str = "",
    ) -> "Checkpoint":
        """From a folder, or by name from wherever transformers finds it.

        Args:
            source_language, target_language, prefix: see :class:`Checkpoint`.

        Raises:
            BadInput: no such folder or device; transformers is not installed, or cannot load this as one; and
                as :class:`Checkpoint`.
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
        return cls(name, model.to(device), tokenizer, source_language, target_language, prefix)

    @property
    def shown(self) -> str:
        """Its name without the folders above."""
        return Path(self.name).absolute().name if Path(self.name).exists() else self.name

    @property
    def about(self) -> dict[str, str]:
        """What a report tells of it."""
        weights = sum(parameter.numel() for parameter in self.model.parameters())
        told = {"Model": f"{self.shown} ({type(self.model).__name__}, {weights:,} parameters)"}
        if self.source_language:
            told["Languages"] = f"{self.source_language} to {self.target_language}"
        return told | ({"Before every source": self.prefix} if self.prefix else {})

    def digest(self) -> str:
        """A hash of what passes depend on: configuration, weights in the order of names, and all that makes
        pieces of a text: vocabulary and rules of the tokenizer, languages, prefix."""
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
        """The model to be traced; ``ignore_special``: see :meth:`stream`."""
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

        def batches() -> Iterator[LineBatch]:
            return line_batches(self.tokenizer, text.pairs(), **sizes)

        return Stream(
            trace=lambda batch: adapter.trace(batch.tokens),
            batches=batches,
            probe=partial(lexical_probe, self.model),
            probed=probed,
            losses=lambda batch: batch.losses,
        )


def _require_folder(name: str) -> None:
    """Refuse what can only be a folder and is none, before it is looked for on the network.

    A name has one slash at most, and no folder of that name before it.
    """
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
