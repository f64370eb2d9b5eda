"""Colours for a dark ground instead of those chosen for white paper."""

from functools import cache

DARK_COLOURS = {  # of the page in the dark, book/_static/attnlib.css: its ground, and the parts of a state
    "#ffffff": "#121212",
    "#0072b2": "#5fb4e8",
    "#d55e00": "#ff9a52",
    "#999999": "#b8b8b8",
}
# Lightness and chroma by OKLab (Ottosson 2020), from 0 to 1.
LIGHTNESS_OF_INK, LIGHTNESS_OF_GROUND, LIGHTEST = 0.25, 0.18, 0.9
CHROMA_OF_STRONG, STRONG = 0.08, 0.7


@cache
def in_the_dark(colour: str) -> str:
    """Return a colour's counterpart on a dark ground, of the same hue.

    Pale tints become dark ones and ink becomes light. Strong colours keep at least the lightness of
    :data:`STRONG`.
    """
    if colour in DARK_COLOURS:
        return DARK_COLOURS[colour]
    lightness, a, b = _oklab(colour)
    darkness = min(1.0, (1 - lightness) / (1 - LIGHTNESS_OF_INK))
    reversed_ = LIGHTNESS_OF_GROUND + (LIGHTEST - LIGHTNESS_OF_GROUND) * darkness**0.7
    is_strong = (a * a + b * b) ** 0.5 > CHROMA_OF_STRONG
    if is_strong:
        return _hexadecimal(max(lightness, STRONG), a, b)
    return _hexadecimal(reversed_, a, b)


def _oklab(colour: str) -> tuple[float, float, float]:
    red, green, blue = (_linear(int(colour[place : place + 2], 16) / 255) for place in (1, 3, 5))
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _hexadecimal(lightness: float, a: float, b: float) -> str:
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    channels = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _shown(channel)):02x}" for channel in channels)


def _linear(channel: float) -> float:
    """Return a channel of sRGB as an amount of light."""
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def _shown(light: float) -> float:
    """Return an amount of light as a channel of sRGB, the nearest that screens have."""
    light = min(1.0, max(0.0, light))
    return 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055
