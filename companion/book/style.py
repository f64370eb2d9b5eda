"""One look for the whole book: a colour for each part of a state, equal bytes every time."""

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
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
    "scan_lists": "SCAN lists",
    "multi30k_en_fr": "Multi30k En–Fr",
    "multi30k_en_de": "Multi30k En–De",
    "tatoeba_en_fr": "Tatoeba En–Fr",
    "europarl_de_en": "Europarl De–En",
    "parallel": "your text",
    "aligned": "your text",
}
FONTS = Path(__file__).with_name("fonts")
for font in sorted(FONTS.glob("*.ttf")):
    fontManager.addfont(font)
# Before a font of the same name that a machine has in another version, whose letters may be of another width.
fontManager.ttflist.sort(key=lambda known: Path(known.fname).parent != FONTS)
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
