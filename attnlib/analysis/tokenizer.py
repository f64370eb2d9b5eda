"""What the pieces of a text depend on: a tokenizer's rules, and the languages that it has to be told."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from attnlib.errors import BadInput, UnknownName

_WHERE = ("name_or_path", "tokenizer_file", "is_local", "local_files_only")  # settings that say where it lies
_OF_A_CALL = ("truncation", "padding")  # rules that the last call left behind


def language_codes(tokenizer: Any) -> list[str]:
    """The languages that a tokenizer marks its sentences with; none for most.

    The tokenizers of mBART, mBART-50, M2M100 and NLLB do. Where nobody says otherwise, those of mBART and
    NLLB mark targets as sentences of the source's language.
    """
    known = getattr(tokenizer, "lang_code_to_id", None)
    if not known and hasattr(tokenizer, "src_lang"):  # NLLB has its codes among its special tokens
        known = [code for code in getattr(tokenizer, "extra_special_tokens", ()) if not code.startswith("<")]
    return sorted(known or ())


def set_languages(tokenizer: Any, source: str | None, target: str | None) -> None:
    """Let a tokenizer mark both sides with their languages.

    Raises:
        BadInput: languages for a tokenizer without, or none for one with. UnknownName: one it does not know.
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
    if None in (source, target):
        some = ", ".join(codes[:5])
        raise BadInput(
            f"{kind} marks sentences with their language: give --source-language and --target-language, each "
            f"one of {some}, … ({len(codes)} in all)"
        )
    for code in (source, target):
        if code not in codes:
            raise UnknownName("language", code, codes)
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
    """Checksums of the files that a tokenizer in plain Python would be saved as."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_vocabulary(folder)
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path(folder).iterdir()}
