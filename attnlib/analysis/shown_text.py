"""Words of anybody's corpus as text that a page can show: nothing of it runs, and nothing of it hides."""

import html
import unicodedata

# Control, format (bidi marks are), surrogate, private, unassigned, and the spaces that are not a blank.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
# Letters and marks that draw nothing: what Unicode calls Default_Ignorable_Code_Point beside the categories
# above (joiner, Hangul fillers, inherent vowels of Khmer, variation selectors), and Braille without a dot.
_BLANK = {
    *map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"),
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
}
_CIRCLE = "◌"  # what carries a mark that would else sit on the letter before the word
_PICTURES = 0x2400  # Unicode's pictures of the control characters
SHOWN, SENTENCE = 60, 500  # characters of a word, and of a sentence


def visible(word: str, most: int = SHOWN, *, spaces: bool = False) -> str:
    """A word with every character to be seen: spaces as ␣, and by their codes those that draw nothing.

    A combining mark with no letter before it stands on a dotted circle.

    Args:
        most: characters; what is longer is cut off.
        spaces: whether they stay spaces, as in a sentence.

    >>> visible("a b\\x00\\u202ec")
    'a␣b␀⟨U+202E⟩c'
    """
    space = " " if spaces else "␣"
    shown = "".join(space if character == " " else _seen(character) for character in word[:most])
    if shown and unicodedata.category(shown[0]).startswith("M"):
        shown = _CIRCLE + shown
    return (shown or "⟨empty⟩") + ("…" if len(word) > most else "")


def _seen(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(_PICTURES + code)
    if unicodedata.category(character) in _HIDDEN or code in _BLANK:
        return f"⟨U+{code:04X}⟩"
    return character


def escaped(word: str) -> str:
    """A visible word in HTML, kept apart from the direction of its neighbours.

    >>> escaped("<b> x")
    '<bdi>&lt;b&gt;␣x</bdi>'
    """
    return f"<bdi>{html.escape(visible(word))}</bdi>"


def sentence(text: str) -> str:
    """Visible text in HTML whose spaces stay spaces.

    >>> sentence("a <b>")
    'a &lt;b&gt;'
    """
    return html.escape(visible(text, SENTENCE, spaces=True))
