"""Pictures that other sites show beside a link to a page: a title above a figure, 1200 by 630 pixels."""

import io
import textwrap
from pathlib import Path

import nbformat
from PIL import Image, ImageDraw, ImageFont

from companion.book.style import FONTS

SIZE = (1200, 630)  # what most sites show whole
COVER = "attend/temporal_share"  # whose figure stands for pages that have none
MARGIN, FOOT = 48, 44  # pixels at the sides, and of the line with the book's name
TITLE_LETTERS, FOOT_LETTERS = 46, 24  # pixels
TITLE_WIDTH, TITLE_LINES = 42, 2  # characters a line, and lines
INK, MUTED, GROUND = "#222832", "#48566b", "#ffffff"
COLOURS = 256  # of a palette by octree: a seventh of the time of a median cut to 48, and smaller files


def first_picture(executed: Path, figure: str) -> bytes | None:
    """Return the PNG of a chapter's first figure, or None if the chapter was not run.

    Args:
        executed: the folder of executed notebooks.
        figure: the chapter, such as ``attend/temporal_share``.
    """
    notebook = executed / f"{figure}.ipynb"
    if not notebook.is_file():
        return None
    for cell in nbformat.read(notebook, as_version=4).cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("name")
            picture = executed / f"{figure}.files" / f"{name}.png"
            if name and picture.is_file():
                return picture.read_bytes()
    return None


def card(picture: bytes, title: str, book: str) -> bytes:
    """Return a PNG with a title, a figure as large as there is room, and the name of the book.

    Args:
        picture: the figure, as PNG.
        title: of the page, without markup.
        book: the book's name.
    """
    page = Image.new("RGB", SIZE, GROUND)
    draw = ImageDraw.Draw(page)
    lines = textwrap.wrap(title, TITLE_WIDTH, max_lines=TITLE_LINES, placeholder=" …")
    draw.multiline_text(
        (MARGIN, 36), "\n".join(lines), fill=INK, font=_font("LiberationSans-Bold", TITLE_LETTERS)
    )
    draw.text((MARGIN, SIZE[1] - FOOT), book, fill=MUTED, font=_font("LiberationSans-Regular", FOOT_LETTERS))
    top = 36 + 62 * len(lines) + 12
    room = (SIZE[0] - 2 * MARGIN, SIZE[1] - FOOT - 12 - top)
    figure = Image.open(io.BytesIO(picture)).convert("RGB")
    scale = min(room[0] / figure.width, room[1] / figure.height)
    figure = figure.resize(
        (round(figure.width * scale), round(figure.height * scale)), Image.Resampling.LANCZOS
    )
    left = (SIZE[0] - figure.width) // 2
    page.paste(figure, (left, top + (room[1] - figure.height) // 2))
    content = io.BytesIO()
    page.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(content, "PNG")
    return content.getvalue()


def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(FONTS / f"{name}.ttf"), size)
