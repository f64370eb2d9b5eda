"""One look for the whole book: a colour for each part of a state, equal bytes every time."""

import base64
import html
import io
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from PIL import Image

# Okabe and Ito's colours, told apart by colour-blind readers; book/_static/attnlib.css has the same values.
PART_COLOURS = {"temporal": "#0072b2", "input": "#d55e00", "residual": "#999999"}
PART_NAMES = tuple(PART_COLOURS)  # those of attnlib.decomposition, which imports torch; a test compares them
PART_SYMBOLS = {"temporal": "μ", "input": "χ", "residual": "Δ"}
INK = "#222222"
DOTS = 150  # an inch, of everything made of pixels
TASK_NAMES = {
    "one_to_one": "one-to-one",
    "permutation": "fixed permutation",
    "reversal": "reversal",
    "scan": "SCAN",
    "scan_extended": "extended SCAN",
    "multi30k_en_fr": "Multi30k En–Fr",
    "multi30k_en_de": "Multi30k En–De",
    "tatoeba_en_fr": "Tatoeba En–Fr",
    "europarl_de_en": "Europarl De–En",
    "parallel": "your text",
    "aligned": "your text",
}
# A letter with a rim, which matplotlib draws twice.
HALO = (
    r'(<path d="([^"]*)" style="(fill: #\w+); stroke: #ffffff; stroke-width: [\d.]+)"/>'
    r'\s*<path d="\2" style="\3"/>'
)
# Of a font; reading them takes ten times as long as all else. Kerning is in its table "kern" as well, and no
# more than that is wanted of them.
LAYOUT_TABLES = {"GDEF", "GPOS", "GSUB", "MATH"}
SETTINGS = mpl.rc_params_from_file(Path(__file__).with_name("book.mplstyle"), use_default_template=False)


def style() -> AbstractContextManager[None]:
    """The book's settings inside the block, the caller's own after it."""
    return mpl.rc_context(SETTINGS)


def task_name(task: str) -> str:
    """A task as a reader calls it; a mark of the dial with its share of reordered sentences."""
    if task.startswith("reordering_"):
        return f"reordering {task.rpartition('_')[2]} %"
    return TASK_NAMES.get(task, task.replace("_", " "))


def as_svg(figure: Figure, fonttype: str = "none") -> str:
    """The figure as SVG text, without a date, so that equal figures are equal bytes.

    A canvas prints in one drawing, ``savefig`` in two: the first only finds out how large it will be.
    ``fonttype="path"`` writes letters as outlines, for viewers that refuse fonts, such as GitHub's.
    """
    text, letters = io.StringIO(), mpl.rc_context({"svg.fonttype": fonttype})
    with style(), letters, _dots_an_inch(figure):  # of heat maps; lines and text have none
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None})
    return text.getvalue()


def as_png(figure: Figure) -> bytes:
    """The figure as PNG at :data:`DOTS` an inch and in 256 colours, for viewers that do not show SVG."""
    canvas, content = FigureCanvasAgg(figure), io.BytesIO()
    with style(), _dots_an_inch(figure):
        canvas.draw()
        pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    pixels.quantize(dither=Image.Dither.NONE).save(content, "PNG", dpi=(DOTS, DOTS))
    return content.getvalue()


@contextmanager
def _dots_an_inch(figure: Figure) -> Iterator[None]:
    before, figure.dpi = figure.dpi, DOTS
    try:
        yield
    finally:
        figure.dpi = before


def with_fonts(svg: str) -> str:
    """The drawing with the letters that its text needs: a picture in a page sees none of the page's fonts."""
    texts = " ".join(re.findall(r"<text.*?</text>", svg, re.DOTALL))
    letters = "".join(sorted(set(html.unescape(re.sub("<[^>]*>", "", texts)))))
    declarations = re.findall('style="(.*?)"', texts)
    styles = (dict(part.split(": ") for part in declaration.split("; ")) for declaration in declarations)
    wanted = ("font-family", "font-style", "font-weight")
    faces = {tuple(style.get(name, "normal").split(",")[0].strip("'") for name in wanted) for style in styles}
    rules = "".join(
        f"@font-face {{font-family: '{family}'; font-style: {slant}; font-weight: {weight}; "
        f"src: url(data:font/ttf;base64,{_font(family, slant, weight, letters)})}}\n"
        for family, slant, weight in sorted(faces - {("normal",) * 3})
    )
    return _hundredths(svg).replace("<defs>", f"<style>{rules}</style>\n <defs>", 1)


def _hundredths(svg: str) -> str:
    """Places to a hundredth of a point, finer than any screen, and an outlined letter once: a third less."""

    def shorter(place: re.Match) -> str:
        cut = re.sub(r"(\.\d\d)\d+", r"\1", place[2])
        return place[1] + re.sub(r"\s*([A-Z])\s*", r"\1", cut.strip())

    return re.sub(HALO, r'\1; paint-order: stroke"/>', re.sub(r'( (?:x|y|d)=")([^"]*)', shorter, svg))


@cache
def _font(family: str, slant: str, weight: str, letters: str) -> str:
    """Some letters of a font, as base64."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    wanted = FontProperties(family=family, style=slant, weight=weight)
    font = TTFont(findfont(wanted, fallback_to_default=False), recalcTimestamp=False)
    for table in LAYOUT_TABLES & set(font.keys()):  # beforehand: a table that is dropped later is read first
        del font[table]
    options, made = Options(legacy_kern=True, hinting=False), io.BytesIO()
    options.drop_tables += ["FFTM"]
    subset = Subsetter(options)
    subset.populate(text=letters)
    subset.subset(font)
    font.save(made)
    return base64.b64encode(made.getvalue()).decode()
