"""Load the templates of a report, with what they can make of numbers and words."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from attnlib.analysis.results import is_even
from attnlib.report.as_text import number, sentence
from attnlib.report.contents import COLOURS

FOLDER = Path(__file__).parent
_PLAIN = "currentColor"  # black on white, white on black
_STRONG = 0.75  # from here on, a square's own colour is behind its number
_NEGATIVE = -0.005  # a number that is shown with a sign


@cache
def template(name: str) -> Template:
    """Return a template of this folder; one of HTML escapes all values.

    Args:
        name: of the file.

    Returns:
        A template, in which an undefined name is an error.

    Example:
        >>> template("report.html.j2").name
        'report.html.j2'
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "square": square,
        "paint": paint,
        "sentence": sentence,
        "is_even": is_even,
        "percent": "{:.0%}".format,
    }
    return environment.get_template(name)


def square(value: float, colour: str) -> str:
    """Return the style of a cell: as strong as its value is large, and hatched if that is negative.

    Args:
        value: between −1 and 1.
        colour: a name of :data:`~attnlib.report.contents.COLOURS`; black and white for another.

    Returns:
        Declarations of CSS.

    Example:
        >>> square(0.5, "input")
        'background:color-mix(in srgb,#d55e00 45%,transparent)'
    """
    strength = min(1.0, abs(value))
    strongest = 0.9 if colour in COLOURS else 0.35
    style = paint(strongest * strength, COLOURS.get(colour, _PLAIN))
    if value < _NEGATIVE:  # a sign must not depend on a hue
        style = f"repeating-linear-gradient(45deg,{style} 0 3px,transparent 3px 6px)"
    if strength > _STRONG and value > 0 and colour in COLOURS:
        style += ";color:#fff"
    return f"background:{style}"


def paint(strength: float, colour: str = _PLAIN) -> str:
    """Return a colour of CSS, the more transparent the weaker it is.

    Args:
        strength: from 0 to 1.
        colour: of CSS.

    Example:
        >>> paint(0.5, "red")
        'color-mix(in srgb,red 50%,transparent)'
    """
    return f"color-mix(in srgb,{colour} {100 * strength:.0f}%,transparent)"
