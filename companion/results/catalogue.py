"""The tables of all committed results, with what is in their columns: ``results/paper/README.md``.

``python -m companion.results.catalogue`` writes it; ``attnlib data results`` lists the tables.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment

from attnlib.files import write_text_atomic
from companion.paths import PAPER
from companion.results import registry
from companion.results.committed import committed, write_checksums
from companion.results.result import Result

PAGE = PAPER / "README.md"
TEMPLATE = Path(__file__).with_name("catalogue.md.jinja")


@dataclass(frozen=True)
class Entry:
    """A committed table.

    Attributes:
        figure: id of the page, such as ``attend/translators``.
        table: name within the figure.
        rows: number of rows.
        row: what one row is.
        fields: what each column is, as in a Table Schema.
    """

    figure: str
    table: str
    rows: int
    row: str
    fields: tuple[dict, ...] = field(repr=False)

    @property
    def file(self) -> str:
        """The name of the file in the folder of committed results."""
        return f"{self.figure.rpartition('/')[2]}.{self.table}.csv"


def entries() -> Iterator[Entry]:
    """Yield every table of the committed results, by figure."""
    for name in committed():
        result = Result.load(PAPER / f"{name}.json")
        part = registry.path_of(name).parents[1].name
        for table, records in result.tables.items():
            schema = result.schemas[table]
            yield Entry(
                figure=f"{part}/{name}",
                table=table,
                rows=len(records),
                row=schema["row"],
                fields=tuple(schema["schema"]["fields"]),
            )


def markdown(listed: Iterable[Entry]) -> str:
    """Return the catalogue of these tables as Markdown."""
    environment = Environment(autoescape=False, keep_trailing_newline=True)
    environment.filters["range"] = in_words
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(entries=list(listed)).rstrip() + "\n"


def in_words(ends: Mapping[str, float]) -> str:
    """Return the range of a column in words.

    >>> in_words({"minimum": 0.0, "maximum": 100.0}), in_words({"minimum": 0.0})
    ('0 to 100', 'at least 0')
    """
    match ends:
        case {"minimum": low, "maximum": high}:
            return f"{low:g} to {high:g}"
        case {"minimum": low}:
            return f"at least {low:g}"
        case {"maximum": high}:
            return f"at most {high:g}"
    return ""


def write() -> None:
    """Write the catalogue beside the committed results."""
    write_text_atomic(PAGE, markdown(entries()))


if __name__ == "__main__":
    write()
    write_checksums()
