"""Words of anybody's corpus as text that a page can show: nothing of it runs, and nothing of it hides."""

import html
import unicodedata

# Control, format (bidi marks are), surrogate, private, unassigned, and the spaces that are not a blank.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
_PICTURES = 0x2400  # Unicode's pictures of the control characters
SHOWN, SENTENCE = 60, 500  # characters of a word, and of a sentence


def visible(word: str, most: int = SHOWN, *, spaces: bool = False) -> str:
    """A word with every character to be seen: spaces as ␣, control and format characters by their codes.

    Args:
        most: characters; what is longer is cut off.
        spaces: whether they stay spaces, as in a sentence.

    >>> visible("a b\\x00\\u202ec")
    'a␣b␀⟨U+202E⟩c'
    """
    space = " " if spaces else "␣"
    shown = "".join(space if character == " " else _seen(character) for character in word[:most])
    return (shown or "⟨empty⟩") + ("…" if len(word) > most else "")


def _seen(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(_PICTURES + code)
    if unicodedata.category(character) in _HIDDEN:
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
