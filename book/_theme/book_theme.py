"""Sphinx extension: nothing from the network, nothing that throws in the console, nothing twice."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, ClassVar

import nbformat
import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as Plain
from pybtex.style.labels import BaseLabelStyle
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.ext import viewcode
from sphinx.search import IndexBuilder
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.index_entries import split_index_msg

from companion.book.leaving import install_cell
from companion.book.project import figure_of, find_root
from companion.paths import path_of

# Lines whose indented continuation is not a block of its own: section headings, list items, doctests.
OWN_INDENT = re.compile(r"[A-Z][a-z]+( [a-z]+)?:$|[*-] |\d+\. |>>> |\.\. |:\w")

FIGURE = re.compile(r'<img [^>]*?src="[^"]*?_(?:static/(?=figures/)|images/)([^"]+\.svg)"')
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)(pt)?" height="([\d.]+)(?:pt)?"')
# Pages that do not lead to the glossary, and technical terms that lead there where a page first has them.
# Words that also have an everyday meaning, such as "answer" or "attention only", and words for the book's own
# plumbing are linked by hand, {term}`…`.
OWN_WORDS = ("notation", "changelog", "command_line", "bibliography")
LINKED_TERMS = (
    "temporal component", "input component", "residual component", "alignment terms", "mean absolute share",
    "covariance share", "temporal share", "input share", "own term", "split share", "effect of exchange",
    "input-delta", "substitution test", "typicality", "lexical probe", "KTIW",
    "knowledge to translate individual words", "contextualised agreement", "Kendall's τ",
    "GRU with attention", "GRU without attention", "AED", "VED", "task suite", "dial",
)  # fmt: skip
# What docutils, Sphinx and pandas write, and what assistive technology understands: empty headings of tables,
# entries of the bibliography, signatures of several lines.
MENDED = {
    r"<th([^>]*)>(\s*<p>)?\s*(</p>\s*)?</th>": r"<td\1></td>",
    'role="doc-biblioentry"': 'role="listitem"',
    r'<dl>(\s*<dd><em class="sig-param.*?)</dl>': r"\1",
    r'<dd>(<em class="sig-param.*?)</dd>': r'<span class="sig-line">\1</span>',
    '(?<=<summary) aria-label="Toggle hidden content"': "",
}


LOAD = IndexBuilder.load


class AsInTheText(BaseLabelStyle):
    """Labels of the bibliography as they stand in sentences: ``Aitken et al., 2021``; some have a ``key``."""

    def format_labels(self, entries: list[Entry]) -> Iterator[str]:
        for entry in entries:
            persons = entry.persons.get("author", [])
            names = [" ".join(map(str, each.rich_prelast_names + each.rich_last_names)) for each in persons]
            who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
            yield entry.fields.get("key") or f"{who}, {entry.fields['year']}"


class References(Plain):
    default_label_style = AsInTheText


class DrawingsOfThePage(SphinxDirective):
    """``:::{drawing} bahdanau luong``: drawings of ``_drawings`` side by side, the body their caption.

    They stand in the page itself, so that they follow its theme and their text is text; their titles and
    descriptions are in the files.
    """

    required_arguments, final_argument_whitespace, has_content = 1, True, True
    option_spec: ClassVar = {"name": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return one figure, with a number of its own. Raises a warning of Sphinx: no such drawing."""
        folder = Path(self.env.srcdir, "_drawings")
        names = self.arguments[0].split()
        missing = [name for name in names if not (folder / f"{name}.svg").is_file()]
        if missing:
            known = ", ".join(sorted(path.stem for path in folder.glob("*.svg")))
            raise self.error(f"no drawing {missing[0]!r}; there are: {known}")
        files = [folder / f"{name}.svg" for name in names]
        for file in files:
            self.env.note_dependency(str(file))
        drawn = "".join(file.read_text(encoding="utf-8") for file in files)
        figure = nodes.figure(classes=["drawings"])
        figure += nodes.raw("", f'<div class="drawings">{drawn}</div>', format="html")
        said = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, said)
        figure += nodes.caption("", "", *said.next_node(nodes.paragraph).children)
        self.set_source_info(figure)
        self.add_name(figure)
        return [figure]


class IndexWords(SphinxTransform):
    """Entries of the index in words, from ``_index.yml`` of the book; search leads to them first."""

    default_priority = 840  # before domains look for entries

    def apply(self) -> None:
        words = Path(self.env.srcdir, "_index.yml")
        found = yaml.safe_load(words.read_text("utf-8")).get(self.env.docname) if words.is_file() else None
        if found and (section := next(self.document.findall(nodes.section), None)):
            section.insert(1, addnodes.index(entries=[("single", word, "", "main", None) for word in found]))


def load_with_words(self: IndexBuilder, stream: IO, format: object) -> None:
    """Load the search index of the build before, and the words of the index, which Sphinx leaves out."""
    LOAD(self, stream, format)
    for page, entries in self.env.domaindata["index"]["entries"].items():
        words = {(word, place or "", main) for kind, text, place, main, _ in entries
                 for word in split_index_msg(kind, text)}  # fmt: skip
        self._index_entries[page] = sorted(words)


@cache
def meanings(app: Sphinx) -> dict[str, tuple[str, str]]:
    """Words of the glossary: their place, and the first paragraph of what they mean."""
    page = app.env.get_doctree("notation") if "notation" in app.env.all_docs else nodes.section()
    return {
        term.astext(): (term["ids"][0], item.next_node(nodes.paragraph).astext())
        for item in page.findall(nodes.definition_list_item)
        for term in item.findall(nodes.term)
        if term["ids"]
    }


def explain(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Where the text first uses a technical term it leads to the glossary, and shows what the term means."""
    if page in OWN_WORDS or page.startswith("api/"):
        return
    known = meanings(app)
    for link in doctree.findall(nodes.reference):
        inside = link.next_node(nodes.inline)
        if inside is not None and "std-term" in inside["classes"] and link.astext() in known:
            link["classes"], link["reftitle"] = ["term"], known[link.astext()][1]
    left = {word: word for word in sorted(known, key=len, reverse=True) if word in LINKED_TERMS}
    for paragraph in list(doctree.findall(nodes.paragraph)):
        if not left or not isinstance(paragraph.parent, nodes.section | nodes.list_item):
            continue
        for text in [each for each in paragraph.children if isinstance(each, nodes.Text)]:
            some = re.search(rf"\b({'|'.join(map(re.escape, left))})\b", text)
            if some is None:
                continue
            anchor, meaning = known[left.pop(some[1])]
            uri = f"{app.builder.get_relative_uri(page, 'notation')}#{anchor}"
            link = nodes.reference("", some[1], refuri=uri, internal=True, reftitle=meaning, classes=["term"])
            place, before, after = paragraph.index(text), text[: some.start()], text[some.end() :]
            paragraph[place : place + 1] = [nodes.Text(before), link, nodes.Text(after)]


def switch_off_thebe(app: Sphinx, config: Config) -> None:
    """Disconnect sphinx-thebe, which Jupyter Book always loads: it throws, and names a foreign server."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__.split(".")[0] == "sphinx_thebe":
                app.disconnect(listener.id)
    app.registry.css_files = [entry for entry in app.registry.css_files if entry[0] != "sphinx-thebe.css"]


def read_in_parallel(app: Sphinx, config: Config) -> None:
    """Say of two extensions that pages may be read side by side: what they do comes before or after."""
    for name in {"sphinx_multitoc_numbering", "sphinx_jupyterbook_latex"} & app.extensions.keys():
        app.extensions[name].parallel_read_safe = True


def list_used_modules(app: Sphinx, env: BuildEnvironment) -> None:
    """Leave out sources that no page links; viewcode does so only where pages are read one after another."""
    modules = getattr(env, "_viewcode_modules", {})
    for name in [name for name, entry in modules.items() if entry and not entry[2]]:
        del modules[name]


def serve_folders(app: Sphinx, config: Config) -> None:
    """Copy two folders to _static: scripts below _static itself would be loaded on every page."""
    config.html_static_path.extend(name for name in ("_vendor", "_files") if (app.srcdir / name).is_dir())
    config.templates_path.insert(0, str(Path(__file__).with_name("templates")))
    config.html_search_scorer = str(Path(__file__).with_name("templates") / "scorer.js")
    config.release = version("attnlib")


def link_the_repository(app: Sphinx, config: Config) -> None:
    """Buttons to launch, edit and report, by ``repository`` in _config.yml; none where ``url`` is empty.

    The pages of https://github.com/someone/book are at https://someone.github.io/book/.
    """
    repository = yaml.safe_load((find_root() / "_config.yml").read_text(encoding="utf-8"))["repository"]
    url, branch = repository["url"], repository["branch"]
    if not url:
        config.html_baseurl = ""
        return
    host, owner, name = url.rstrip("/").rsplit("/", 2)
    hubs = {"binderhub_url": "https://mybinder.org", "colab_url": "https://colab.research.google.com"}
    options = {"repository_url": url, "repository_branch": branch, "path_to_docs": "notebooks"}
    options |= dict.fromkeys(("use_repository_button", "use_edit_page_button", "use_issues_button"), True)
    options |= {"launch_buttons": {"notebook_interface": "jupyterlab", **hubs}}
    config.html_theme_options |= options
    config.html_baseurl = f"https://{owner}.github.io/{name}/" if host.endswith("github.com") else ""
    source = Path(__file__).with_name("templates").joinpath("source_of_page.jinja").read_text("utf-8").strip()
    config.html_context["edit_page_url_template"] = f"{url}/edit/{branch}/{source}"


def show_the_files(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Show the figures that a page offers for download, rather than copies of them."""
    figure = figure_of(page)
    offered = Path(app.srcdir, "_files", "figures", figure).glob("*.svg")
    files = {path.stem.lower(): f"_files/figures/{figure}/{path.name}" for path in offered}
    for image in doctree.findall(nodes.image):
        name = (image.parent.get("names") or [""])[0]
        file = image["uri"] if image["uri"].startswith("_files/") else files.get(name, "")
        if Path(app.srcdir, file).is_file():
            image["uri"] = "../" * page.count("/") + file.replace("_files", "_static", 1)
            image["candidates"] = {"?": ""}  # so that Sphinx makes none


def leave_out_the_contents(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Give a module's source no table of contents: 120 of them took a sixth of the build."""
    if page.startswith("_modules/"):
        context["sidebars"] = [name for name in context["sidebars"] if name != "sbt-sidebar-nav.html"]


def mend(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Give figures their size, so that nothing moves, and take out what readers of the page stumble on."""

    def sized(image: re.Match) -> str:
        own = {name: source for source, name in app.builder.images.items()}
        path = f"_files/{image[1]}" if image[1].startswith("figures/") else own[image[1]]
        size = SIZE.search(Path(app.srcdir, path).read_text(encoding="utf-8")[:2000])
        scale = 4 / 3 if size[2] else 1  # pixels of a point
        width, height = (round(float(number) * scale) for number in (size[1], size[3]))
        return f'{image[0]} width="{width}" height="{height}" style="--natural: {width}px"'

    text = FIGURE.sub(sized, context.get("body") or "")
    for found, instead in MENDED.items():
        text = re.sub(found, instead, text, flags=re.DOTALL)
    base = app.config.html_baseurl or context["pathto"]("", 1)
    context |= {"body": text, "preview": f"{base}_static/{preview_of(app, page)}"}
    for button in (each for group in context.get("header_buttons", []) for each in group.get("buttons", [])):
        if button.get("text") == "Colab":  # which opens what lies in the repository, and notebooks are made
            button["url"] = re.sub(r"/notebooks/.*", "/binder/colab.ipynb", button["url"])


def preview_of(app: Sphinx, page: str) -> str:
    """Return the picture that other sites show of a page: its own, that of the book, or the icon."""
    for name in (f"previews/{figure_of(page)}.png", "previews/book.png"):
        if Path(app.srcdir, "_files", name).is_file():
            return name
    return "favicon.svg"


def finish(app: Sphinx, error: Exception | None) -> None:
    """Offer notebooks that run by themselves, without outputs: their figures are files of the site."""
    for path in [] if error else Path(app.outdir, "_sources").rglob("*.ipynb"):
        page = path.relative_to(Path(app.outdir, "_sources")).with_suffix("").as_posix()
        executed = find_root() / "build" / "notebooks" / f"{figure_of(page)}.ipynb"
        if executed.is_file() and '"outputs": [\n' in path.read_text(encoding="utf-8"):
            notebook = nbformat.read(executed, as_version=4)
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs, cell.execution_count = [], None
            notebook.cells.insert(0, install_cell())
            nbformat.write(notebook, path)
    if base := app.config.html_baseurl:
        pages = "".join(f"<url><loc>{base}{page}.html</loc></url>" for page in sorted(app.env.all_docs))
        head = '<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        Path(app.outdir, "sitemap.xml").write_text(f"{head}{pages}</urlset>\n", encoding="utf-8")
    leave_out_what_no_page_loads(Path(app.outdir, "_static"))


def leave_out_what_no_page_loads(static: Path) -> None:
    """Delete what the theme brings for other books: icon fonts, maps of its sources, other languages."""
    unused = [path for path in (static / "vendor").rglob("*") if path.suffix in (".js", ".ttf")]
    unused += [path for folder in ("scripts", "styles") for path in (static / folder).rglob("*.map")]
    unused += [path for path in (static / "locales").rglob("*") if path.is_file()]
    for path in unused:
        path.unlink()


def spare_from_napoleon(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Make the indented paragraphs of a docstring literal blocks: there they are formulas and code.

    The indented text of a section such as ``Args:`` and of list items is left to Napoleon. It would
    take what stands before a colon in the first line of an attribute for its type: that line is a comment.
    """
    last_text, result = "", ["..", ""] if lines and what in ("attribute", "property") else []
    for line in lines:
        starts_block = line.startswith("    ") and result and not result[-1].strip() and last_text[:1].strip()
        if starts_block and not last_text.endswith("::") and not OWN_INDENT.match(last_text):
            result += ["::", ""]
        result.append(line)
        last_text = line if line.strip() else last_text
    lines[:] = result


def module_file(app: Sphinx, name: str) -> str | None:
    """Where a module's source lies, found without importing it, and torch with it, as viewcode does."""
    return str(path) if (path := path_of(name)) else None


def setup(app: Sphinx) -> dict[str, object]:
    viewcode.get_module_filename = module_file
    IndexBuilder.load = load_with_words
    register_plugin("pybtex.style.formatting", "book", References)
    for prepare in (switch_off_thebe, read_in_parallel, serve_folders, link_the_repository):
        app.connect("config-inited", prepare)
    app.connect("env-updated", list_used_modules)
    app.connect("doctree-resolved", show_the_files)
    app.connect("doctree-resolved", explain)
    app.add_directive("drawing", DrawingsOfThePage)
    app.add_transform(IndexWords)
    app.connect("html-page-context", leave_out_the_contents, priority=400)  # before the theme draws them
    app.connect("html-page-context", mend, priority=900)
    app.connect("build-finished", finish)
    app.connect("autodoc-process-docstring", spare_from_napoleon, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
