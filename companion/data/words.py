"""How lines become words: the rule of the book's corpora, and what readers may choose for texts of their own.

==================  ======================================================================================
``words``           the book's rule, in scripts with marks and without spaces as well: :func:`tokenise`
``spaces``          what spaces separate; pieces and entities are left as they are in the file
``unicode``         the words of Unicode's Annex 29, which keeps ``don't`` and ``l'homme`` whole
``characters``      characters as readers see them, Annex 29's grapheme clusters; a space is ``▁``
``sentencepiece``   pieces that SentencePiece learns of the training lines, a vocabulary for each side
==================  ======================================================================================
"""

import io
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Literal, get_args

from attnlib.errors import BadInput, check_known
from attnlib.optional import library

TokenizerName = Literal["words", "spaces", "unicode", "characters", "sentencepiece"]
NAMES = get_args(TokenizerName)
Tokenizer = Callable[[str], list[str]]  # words of a line

PIECES = 4_000  # that SentencePiece learns of a side at most
SPACE = "▁"

# The alternatives are tried in this order at every place; white space is what none of them takes.
_WORD = re.compile(
    r"""
      aujourd'hui                               # the one common French word with an apostrophe inside
    | (?: [cdjlmnst] | \w*qu ) ' (?=\w)         # French elision stays on its word: l' homme, qu' il, jusqu' à
    | ' (?: s | re | ve | ll | d | m | t ) \b   # English clitics begin with theirs: man 's, they 're, don 't
    | \d+ (?: [.,]\d+ )*                        # 3.5 and 1,000 are one word
    | \w+ (?: -\w+ )*                           # t-shirt and peut-être are one word
    | [^\w\s]                                   # every other mark by itself
    """,
    re.VERBOSE | re.IGNORECASE,
)

_RUN = re.compile(r"\w+")
# Scripts that put no space between words, whose characters are taken for words. Katakana is not among them:
# it writes whole words, between characters of the others.
_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}"
)
# The same rule for all scripts: letters keep their marks, characters of unspaced scripts are words, and so is
# what readers see as one sign, such as an emoji of several characters.
_WORD_OF_ANY_SCRIPT = rf"""
      aujourd'hui
    | (?: [cdjlmnst] | \w*qu ) ' (?=\w)
    | ' (?: s | re | ve | ll | d | m | t ) \b
    | \d+ (?: [.,]\d+ )*
    | (?= [{_UNSPACED}] ) \X \p{{M}}*  # Annex 29 parts two vowel signs of Burmese from their letter
    | [[\w\p{{M}}\p{{Join_Control}}]--[{_UNSPACED}]]+ (?: -[[\w\p{{M}}\p{{Join_Control}}]--[{_UNSPACED}]]+ )*
    | (?! \s ) \X
"""
# Blocks in which the two rules agree: Latin, Greek, Cyrillic, Armenian, their punctuation and symbols.
_EVERYDAY = re.compile(
    "[\x00-\xac\xae-\u02ff\u0370-\u0482\u048a-\u058f\u1e00-\u200a\u2010-\u2029\u202f-\u205f\u2070-\u20cf\u2100-\u22ff]*"
)
# Characters without width that are no part of a word: the soft hyphen, marks of direction, joiners of no
# letters, the byte-order mark. The zero-width space separates words, and the joiners of letters (U+200C,
# U+200D) belong to them.
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_ZERO_WIDTH_SPACE = "\u200b"
_JOINERS = "\u200c\u200d"


def tokenise(line: str, *, lowercase: bool = True) -> list[str]:
    """Split a line into words and punctuation marks, in any script.

    English, French and German are split by one regular expression, :func:`published_words`. Beyond them,
    letters keep their combining marks, and where a script has no spaces (Chinese, Japanese, Thai, Lao, Khmer,
    Burmese) each character is a word. Characters without width are none.

    >>> tokenise("L'homme d'à côté, qu'il voit.")
    ["l'", 'homme', "d'", 'à', 'côté', ',', "qu'", 'il', 'voit', '.']
    >>> tokenise("The man's T-shirt isn't $3.50!")
    ['the', 'man', "'s", 't-shirt', 'isn', "'t", '$', '3.50', '!']
    >>> tokenise("老房子。")
    ['老', '房', '子', '。']
    """
    line = without_invisible(line)
    if _EVERYDAY.fullmatch(line):
        return published_words(line, lowercase=lowercase)
    line = _normal(line)
    words = _any_script().findall(line.lower() if lowercase else line)
    return [word for word in (word.strip(_JOINERS) for word in words) if word]


def published_words(line: str, *, lowercase: bool = True) -> list[str]:
    """Split a line of the book's corpora; no change of :func:`tokenise` for other scripts touches their
    words.

    The line is first brought to Unicode's composed form (NFC) and typographic apostrophes to plain ones.
    """
    line = _normal(line)
    return _WORD.findall(line.lower() if lowercase else line)


def words_alone(line: str) -> list[str]:
    """Split a line in lower case into runs of word characters, in any script, without punctuation.

    >>> words_alone("L'homme, 3.5 km"), words_alone("हिन्दी, 老房")
    (['l', 'homme', '3', '5', 'km'], ['हिन्दी', '老', '房'])
    """
    line = without_invisible(line)
    if _EVERYDAY.fullmatch(line):
        return _RUN.findall(line.lower())
    words = _any_script().findall(unicodedata.normalize("NFC", line).lower())
    return [run for word in words for run in _runs_with_marks().findall(word)]


def _normal(line: str) -> str:
    return unicodedata.normalize("NFC", line).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def without_invisible(line: str) -> str:
    """Take out characters without width; a zero-width space becomes a space.

    >>> without_invisible("na\\u00adive\\u200bword")
    'naive word'
    """
    return _INVISIBLE.sub("", line).replace(_ZERO_WIDTH_SPACE, " ")


@cache
def _any_script():
    regex = library("regex")
    return regex.compile(_WORD_OF_ANY_SCRIPT, regex.VERBOSE | regex.IGNORECASE | regex.V1)


@cache
def _runs_with_marks():
    regex = library("regex")
    return regex.compile(r"[\w\p{M}\p{Join_Control}]*\w[\w\p{M}\p{Join_Control}]*", regex.V1)


@cache
def _boundaries():
    regex = library("regex")
    return regex.compile(r"\b", regex.WORD | regex.V1)


def _unicode_words(line: str) -> list[str]:
    """Split at the word boundaries of Unicode's Annex 29.

    >>> _unicode_words("l'homme d'à côté.")
    ["l'homme", "d'à", 'côté', '.']
    """
    return [word for word in _boundaries().split(line) if word.strip()]


def _characters(line: str) -> list[str]:
    """Split into grapheme clusters, with a sign for the spaces between words.

    >>> _characters("du bist")
    ['d', 'u', '▁', 'b', 'i', 's', 't']
    """
    return library("regex").findall(r"\X", SPACE.join(line.split()))


_SPLITTERS: dict[str, Tokenizer] = {"spaces": str.split, "unicode": _unicode_words, "characters": _characters}


def tokenizer_of(name: str, *, lowercase: bool = True) -> Tokenizer:
    """Return the tokenizer of a name, of those that nothing has to be learned for.

    Raises:
        UnknownName: there is no such tokenizer.
        BadInput: a package that it needs is not installed.
    """
    check_known("tokenizer", name, NAMES)
    if name == "words":
        return partial(tokenise, lowercase=lowercase)
    split = _SPLITTERS[name]
    if name != "spaces":
        library("regex")

    def words(line: str) -> list[str]:
        line = unicodedata.normalize("NFC", without_invisible(line))
        return split(line.lower() if lowercase else line)

    return words


def learned_pieces(lines: Iterable[str], *, lowercase: bool = True, size: int = PIECES) -> Tokenizer:
    """Learn pieces of words of the lines with SentencePiece; equal lines in equal order give equal pieces.

    Small texts give fewer than ``size`` pieces.

    Raises:
        BadInput: SentencePiece is not installed, or finds too little text.
    """
    sentencepiece = library("sentencepiece")

    def prepared(line: str) -> str:
        line = unicodedata.normalize("NFC", without_invisible(line))
        return line.lower() if lowercase else line

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=map(prepared, lines),
            model_writer=model,
            vocab_size=size,
            hard_vocab_limit=False,
            normalization_rule_name="nmt_nfkc",
            character_coverage=0.9995,
            num_threads=1,  # sums are added up in one order
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2]
        raise BadInput(
            f"SentencePiece learns no pieces of this text ({reason}); give more, or take tokenizer=characters"
        ) from error
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    def pieces(line: str) -> list[str]:
        return processor.encode(prepared(line), out_type=str)

    return pieces


def share_unspaced(lines: Iterable[str]) -> float:
    """Return the share of letters that are of scripts without spaces between words."""
    letters = unspaced = 0
    for line in lines:
        letters += sum(map(str.isalpha, line))
        if not _EVERYDAY.fullmatch(line):
            unspaced += len(_unspaced_letters().findall(line))
    return unspaced / letters if letters else 0.0


@cache
def _unspaced_letters():
    return library("regex").compile(rf"[[{_UNSPACED}]&&\p{{L}}]", library("regex").V1)
