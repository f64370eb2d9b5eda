"""Write numbers and words as text of which a reader sees every character, and which cannot run.

The words are those of a user's corpus, and may be hostile. A template escapes them; this module makes every
character visible, also those that draw nothing or change the direction of their neighbours.
"""

import math
import unicodedata

# Categories of Unicode that draw nothing: control, format (bidi marks are), surrogate, private, unassigned,
# and the spaces that are not a blank.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
# Letters and marks that draw nothing: what Unicode calls Default_Ignorable_Code_Point besides the categories
# above (joiner, Hangul fillers, inherent vowels of Khmer, variation selectors), and Braille without a dot.
_BLANK = {
    *map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"),
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
}
SHOWN = 60  # characters of a word
SENTENCE = 500  # characters of a sentence


def number(value: float | int) -> str:
    """Return a number with two decimals, a count with none, and a dash if it is undefined.

    Args:
        value: a count if it is an int.

    Returns:
        Text with a real minus sign.

    Example:
        >>> number(-0.001), number(12_000), number(math.nan)
        ('0.00', '12,000', '–')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "–"
    text = f"{value:.2f}".replace("-", "−")
    is_zero = set(text) <= set("−0.")
    return text.removeprefix("−") if is_zero else text


def visible(word: str, most: int = SHOWN, *, spaces: bool = False) -> str:
    r"""Return a word in which every character can be seen.

    Spaces are shown as ␣, and characters that draw nothing by their code. A combining mark with no letter
    before it is on a dotted circle.

    Args:
        word: a piece or a word, with whatever characters it has.
        most: characters at most; the rest is cut off.
        spaces: whether spaces stay spaces.

    Returns:
        Text without hidden characters, not escaped.

    Example:
        >>> visible("a b\x00\u202ec")
        'a␣b␀⟨U+202E⟩c'
    """
    space = " " if spaces else "␣"
    text = "".join(space if character == " " else _visible_character(character) for character in word[:most])
    if not text:
        text = "⟨empty⟩"
    elif unicodedata.category(text[0]).startswith("M"):
        text = "◌" + text  # else it would sit on the letter before the word
    if len(word) > most:
        text += "…"
    return text


def sentence(text: str) -> str:
    r"""Return a sentence in which every character can be seen; its spaces stay.

    Args:
        text: a line of a corpus, with whatever characters it has.

    Returns:
        Text without hidden characters, of 500 characters at most.

    Example:
        >>> sentence("a\tb c")
        'a␉b c'
    """
    return visible(text, SENTENCE, spaces=True)


def _visible_character(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode's pictures of the control characters
    if unicodedata.category(character) in _HIDDEN or code in _BLANK:
        return f"⟨U+{code:04X}⟩"
    return character
