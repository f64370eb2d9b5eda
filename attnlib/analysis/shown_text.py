"""Words of anybody's corpus as text that a page can show: nothing of it runs, and nothing of it hides."""

import html
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # control, format (bidi marks), surrogate, private …
_PICTURES = 0x2400  # Unicode's pictures of the control characters
SHOWN, SENTENCE = 60, 500  # characters of a word, and of a sentence


def visible(word: str, most: int = SHOWN) -> str:
    """A word with every character to be seen: spaces as ␣, control and format characters by their codes.

    >>> visible("a b\\x00\\u202ec")
    'a␣b␀⟨U+202E⟩c'
    """
    shown = "".join(map(_seen, word[:most]))
    return (shown or "⟨empty⟩") + ("…" if len(word) > most else "")


def _seen(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(_PICTURES + code)
    if character == " ":
        return "␣"
    if unicodedata.category(character) in _HIDDEN or unicodedata.category(character) == "Zs":
        return f"⟨U+{code:04X}⟩"
    return character


def escaped(word: str, *, spaces: bool = False) -> str:
    """A visible word in HTML, kept apart from the direction of its neighbours.

    Args:
        spaces: whether they stay spaces, as in a sentence.

    >>> escaped("<b> x"), escaped("a b", spaces=True)
    ('<bdi>&lt;b&gt;␣x</bdi>', '<bdi>a b</bdi>')
    """
    shown = visible(word, SENTENCE).replace("␣", " ") if spaces else visible(word)
    return f"<bdi>{html.escape(shown)}</bdi>"
