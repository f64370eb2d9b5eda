"""Read from a tokenizer what the pieces of a text depend on: languages, special pieces, vocabulary, rules.

Each function says of which side it speaks, because either side may have a vocabulary or a tokenizer.
"""

import hashlib
import json
import tempfile
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlib.errors import BadInput, check_known

# Settings that say where the files of a tokenizer are, and rules that its last call left behind.
_WHERE = ("name_or_path", "tokenizer_file", "is_local", "local_files_only")
_OF_A_CALL = ("truncation", "padding")


@dataclass(frozen=True, eq=False)
class TwoTokenizers:
    """A tokenizer for each side, as of a model with an encoder of BERT and a decoder of GPT-2.

    It is called as one tokenizer with a mode for each side is.

    Attributes:
        source: of the texts that the encoder reads.
        target: of those that the decoder reads and writes.

    Example:
        >>> both = TwoTokenizers(lambda text, **cut: ("source", text), lambda text, **cut: ("target", text))
        >>> both(text=["a house"]), both(text_target=["ein Haus"])
        (('source', ['a house']), ('target', ['ein Haus']))
    """

    source: Any
    target: Any

    def __call__(self, text: Any = None, *, text_target: Any = None, **options: Any) -> Any:
        """Return the pieces of texts of one side, as the tokenizer of that side does.

        Args:
            text: texts of the source.
            text_target: texts of the target, if ``text`` is None.
            options: of the tokenizer, such as ``truncation``.
        """
        if text is not None:
            return self.source(text=text, **options)
        return self.target(text=text_target, **options)

    @property
    def is_fast(self) -> bool:
        """True if both tokenizers say where in a text each piece is."""
        return bool(getattr(self.source, "is_fast", False) and getattr(self.target, "is_fast", False))


def tokenizer_of_side(tokenizer: Any, side: str) -> Any:
    """Return the tokenizer of a side; one that reads both sides is returned as it is.

    Args:
        tokenizer: of transformers, or two of them.
        side: "source" or "target".

    Returns:
        A tokenizer.

    Example:
        >>> tokenizer_of_side(TwoTokenizers("a tokenizer", "another one"), "target")
        'another one'
        >>> tokenizer_of_side("a tokenizer", "target")
        'a tokenizer'
    """
    return getattr(tokenizer, side) if isinstance(tokenizer, TwoTokenizers) else tokenizer


def with_sides(tokenizer: Any, target_tokenizer: Any = None) -> Any:
    """Return what tokenizes both sides: one tokenizer, or two where the sides have different pieces.

    FSMT's tokenizer has a vocabulary for each side; it takes ids from that of the source for both, and reads
    all ids by that of the target.

    Args:
        tokenizer: of transformers.
        target_tokenizer: of the target, if it has another one.

    Returns:
        The tokenizer, or :class:`TwoTokenizers`.

    Example:
        >>> with_sides("a tokenizer")
        'a tokenizer'
        >>> with_sides("a tokenizer", "another one").target
        'another one'
    """
    if target_tokenizer is not None:
        return TwoTokenizers(tokenizer_of_side(tokenizer, "source"), target_tokenizer)
    if not hasattr(tokenizer, "tgt_vocab_size"):
        return tokenizer
    pieces_of_target = {piece: token for token, piece in tokenizer.decoder.items()}
    if pieces_of_target == tokenizer.encoder:
        return tokenizer
    source, target = copy(tokenizer), copy(tokenizer)
    source.decoder = {token: piece for piece, token in tokenizer.encoder.items()}
    target.encoder = pieces_of_target
    target.src_lang, target.tgt_lang = tokenizer.tgt_lang, tokenizer.src_lang
    return TwoTokenizers(source, target)


def language_codes(tokenizer: Any) -> list[str]:
    """Return the languages that a tokenizer marks its sentences with, as those of mBART and NLLB do.

    Args:
        tokenizer: a tokenizer of the transformers library.

    Returns:
        Codes such as ``"en_XX"``, in alphabetical order; none for other tokenizers.

    Example:
        >>> from types import SimpleNamespace
        >>> language_codes(SimpleNamespace(lang_code_to_id={"en_XX": 7, "de_DE": 6}))
        ['de_DE', 'en_XX']
    """
    codes = getattr(tokenizer, "lang_code_to_id", None)
    if not codes and hasattr(tokenizer, "src_lang"):  # NLLB has its codes among its special tokens
        special = getattr(tokenizer, "extra_special_tokens", ())
        codes = [token for token in special if not token.startswith("<")]
    return sorted(codes or ())


def set_languages(tokenizer: Any, source: str | None, target: str | None) -> None:
    """Let a tokenizer mark both sides with their languages.

    Args:
        tokenizer: of transformers; it is changed.
        source: the code of the source's language; None for a tokenizer that marks no languages.
        target: that of the target's.

    Raises:
        BadInput: languages are given for a tokenizer that marks none, or none for one that marks them.
        UnknownName: the tokenizer does not know a language.

    Example:
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(lang_code_to_id={"en_XX": 7, "de_DE": 6})
        >>> set_languages(tokenizer, "en_XX", "de_DE")
        >>> tokenizer.tgt_lang
        'de_DE'
    """
    codes = language_codes(tokenizer)
    kind = type(tokenizer).__name__
    if not codes and (source, target) != (None, None):
        raise BadInput(
            f"{kind} knows no languages, but {source or target!r} is given: leave --source-language and "
            "--target-language out"
        )
    if not codes:
        return
    if source is None or target is None:
        raise BadInput(
            f"{kind} marks sentences with their language: give --source-language and --target-language, each "
            f"one of {', '.join(codes[:5])}, … ({len(codes)} in all)"
        )
    for code in (source, target):
        check_known("language", code, codes)
    tokenizer.src_lang, tokenizer.tgt_lang = source, target


def ignorable_ids(tokenizer: Any, side: str = "source") -> tuple[int, ...]:
    """Return the ids of special pieces and of marks of languages; an unknown word is a word.

    Args:
        tokenizer: a tokenizer of the transformers library.
        side: "source" or "target", for a tokenizer with a vocabulary for each side.

    Returns:
        Ids, ascending.

    Example:
        >>> from types import SimpleNamespace
        >>> ignorable_ids(SimpleNamespace(all_special_ids=[0, 1, 3], unk_token_id=3))
        (0, 1)
    """
    tokenizer = tokenizer_of_side(tokenizer, side)
    vocabulary = vocabulary_of_side(tokenizer, side)
    if vocabulary is not None:
        pieces = {*tokenizer.all_special_tokens} - {tokenizer.unk_token}
        return tuple(sorted(vocabulary[piece] for piece in pieces if piece in vocabulary))
    languages = getattr(tokenizer, "lang_code_to_id", None) or {}
    special = {*tokenizer.all_special_ids, *languages.values()}
    return tuple(sorted(special - {tokenizer.unk_token_id}))


def vocabulary_of_side(tokenizer: Any, side: str) -> dict[str, int] | None:
    """Return the pieces of a side with their ids, for a tokenizer with a vocabulary for each side.

    Some of Marian's have two. Their ``convert_ids_to_tokens`` and ``all_special_ids`` mix both.

    Args:
        tokenizer: a tokenizer of the transformers library.
        side: "source" or "target".

    Returns:
        Ids by piece; None for a tokenizer with one vocabulary.

    Example:
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(separate_vocabs=True, encoder={"ja": 4}, target_encoder={"yes": 4})
        >>> vocabulary_of_side(tokenizer, "target")
        {'yes': 4}
    """
    if not getattr(tokenizer, "separate_vocabs", False):
        return None
    return tokenizer.encoder if side == "source" else tokenizer.target_encoder


def pieces_of_text(tokenizer: Any, side: str, text: str) -> list[str]:
    """Return the pieces of a text of a side, without special ones.

    Args:
        tokenizer: of transformers; one with a vocabulary for each side is put into the mode of the side and
            back.
        side: "source" or "target".
        text: of the side.

    Returns:
        The pieces; those that are unknown as they are.

    Example:
        >>> from types import SimpleNamespace
        >>> pieces_of_text(SimpleNamespace(tokenize=str.split), "source", "the house")
        ['the', 'house']
    """
    tokenizer = tokenizer_of_side(tokenizer, side)
    if side == "source" or not hasattr(tokenizer, "_switch_to_target_mode"):
        return tokenizer.tokenize(text)
    tokenizer._switch_to_target_mode()  # as a call with text_target= does
    try:
        return tokenizer.tokenize(text)
    finally:
        tokenizer._switch_to_input_mode()


def id_of_mark(tokenizer: Any, name: str, side: str) -> int | None:
    """Return the id that a mark has on a side.

    Args:
        tokenizer: a tokenizer of the transformers library.
        name: of the mark, such as ``"eos_token"``.
        side: "source" or "target".

    Returns:
        An id; None if there is no such mark.

    Example:
        >>> from types import SimpleNamespace
        >>> id_of_mark(SimpleNamespace(eos_token_id=2), "eos_token", "source")
        2
    """
    tokenizer = tokenizer_of_side(tokenizer, side)
    vocabulary = vocabulary_of_side(tokenizer, side)
    if vocabulary is None:
        return getattr(tokenizer, f"{name}_id", None)
    return vocabulary.get(getattr(tokenizer, name))


def tokenizer_digest(tokenizer: Any) -> str:
    """Return the SHA-256 of all that pieces depend on: vocabulary, rules, settings, languages.

    Args:
        tokenizer: a tokenizer of the transformers library.

    Returns:
        64 hexadecimal digits.

    Example:
        >>> class Tokenizer:
        ...     def get_vocab(self):
        ...         return {"ja": 4}
        ...     def save_vocabulary(self, folder):
        ...         pass
        >>> len(tokenizer_digest(Tokenizer()))
        64
    """
    if isinstance(tokenizer, TwoTokenizers):
        digests = [tokenizer_digest(tokenizer.source), tokenizer_digest(tokenizer.target)]
        return hashlib.sha256("".join(digests).encode()).hexdigest()
    content = [
        type(tokenizer).__name__,
        _rules_of(tokenizer),
        _settings_of(tokenizer),
        [getattr(tokenizer, side, None) for side in ("src_lang", "tgt_lang")],
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _rules_of(tokenizer: Any) -> dict[str, Any]:
    """Return vocabulary and rules: from a fast tokenizer's backend, else from its files."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        rules = json.loads(backend.to_str())
        return {name: rule for name, rule in rules.items() if name not in _OF_A_CALL}
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_vocabulary(folder)
        files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path(folder).iterdir()}
    return {"vocabulary": sorted(tokenizer.get_vocab().items()), "files": files}


def _settings_of(tokenizer: Any) -> dict[str, Any]:
    """Return the settings, without those that say where the files of a tokenizer are."""
    settings = getattr(tokenizer, "init_kwargs", {})
    about_files = {*_WHERE, *getattr(tokenizer, "vocab_files_names", ())}
    return {
        name: value
        for name, value in settings.items()
        if name not in about_files and not name.startswith("_")
    }
