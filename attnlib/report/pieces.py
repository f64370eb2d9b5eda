"""What the pieces of a text depend on: a tokenizer's languages, special pieces, vocabulary and rules."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from attnlib.errors import BadInput, check_known

# Settings that say where a tokenizer lies, and rules that its last call left behind.
_WHERE = ("name_or_path", "tokenizer_file", "is_local", "local_files_only")
_OF_A_CALL = ("truncation", "padding")


def language_codes(tokenizer: Any) -> list[str]:
    """Return the languages that a tokenizer marks its sentences with, as those of mBART and NLLB do."""
    codes = getattr(tokenizer, "lang_code_to_id", None)
    if not codes and hasattr(tokenizer, "src_lang"):  # NLLB has its codes among its special tokens
        special = getattr(tokenizer, "extra_special_tokens", ())
        codes = [token for token in special if not token.startswith("<")]
    return sorted(codes or ())


def set_languages(tokenizer: Any, source: str | None, target: str | None) -> None:
    """Let a tokenizer mark both sides with their languages.

    Raises:
        BadInput: languages for a tokenizer without, none for one with, or one that it does not know.
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
    """Return ids of what a tokenizer calls special, marks of languages too; an unknown word is a word."""
    vocabulary = vocabulary_of_side(tokenizer, side)
    if vocabulary is not None:
        pieces = {*tokenizer.all_special_tokens} - {tokenizer.unk_token}
        return tuple(sorted(vocabulary[piece] for piece in pieces if piece in vocabulary))
    languages = getattr(tokenizer, "lang_code_to_id", None) or {}
    special = {*tokenizer.all_special_ids, *languages.values()}
    return tuple(sorted(special - {tokenizer.unk_token_id}))


def vocabulary_of_side(tokenizer: Any, side: str) -> dict[str, int] | None:
    """Return the pieces of a side with their ids, for a tokenizer with a vocabulary a side; else None.

    Some of Marian's are such. What they answer by themselves, as ``convert_ids_to_tokens`` and
    ``all_special_ids``, mixes both.
    """
    if not getattr(tokenizer, "separate_vocabs", False):
        return None
    return tokenizer.encoder if side == "source" else tokenizer.target_encoder


def pieces_of_text(tokenizer: Any, side: str, text: str) -> list[str]:
    """Return the pieces of a text of a side, without special ones; those that are unknown as they are."""
    if side == "source" or not hasattr(tokenizer, "_switch_to_target_mode"):
        return tokenizer.tokenize(text)
    tokenizer._switch_to_target_mode()  # as a call with text_target= does
    try:
        return tokenizer.tokenize(text)
    finally:
        tokenizer._switch_to_input_mode()


def id_of_mark(tokenizer: Any, name: str, side: str) -> int | None:
    """Return the id that a mark such as ``"eos_token"`` has on a side; None if there is no such mark."""
    vocabulary = vocabulary_of_side(tokenizer, side)
    if vocabulary is None:
        return getattr(tokenizer, f"{name}_id")
    return vocabulary.get(getattr(tokenizer, name))


def tokenizer_digest(tokenizer: Any) -> str:
    """Return a hash of all that pieces depend on: vocabulary, rules, settings, languages."""
    content = [
        type(tokenizer).__name__,
        _rules_of(tokenizer),
        _settings_of(tokenizer),
        [getattr(tokenizer, side, None) for side in ("src_lang", "tgt_lang")],
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _rules_of(tokenizer: Any) -> dict[str, Any]:
    """Return vocabulary and rules: of a fast tokenizer as its backend writes them, else as its files."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        rules = json.loads(backend.to_str())
        return {name: rule for name, rule in rules.items() if name not in _OF_A_CALL}
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_vocabulary(folder)
        files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path(folder).iterdir()}
    return {"vocabulary": sorted(tokenizer.get_vocab().items()), "files": files}


def _settings_of(tokenizer: Any) -> dict[str, Any]:
    """Return the settings that do not say where a tokenizer lies."""
    given = getattr(tokenizer, "init_kwargs", {})
    elsewhere = {*_WHERE, *getattr(tokenizer, "vocab_files_names", ())}
    return {name: given[name] for name in given.keys() - elsewhere if not name.startswith("_")}
