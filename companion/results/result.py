"""What an experiment leaves behind: numbers with their origin, equal bytes for equal runs."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from attnlib.errors import BadInput, CorruptFile, DataUnavailable
from attnlib.files import write_json_atomic, write_text_atomic
from companion.results.request import Request
from companion.rounding import rounded
from companion.runs.identity import digest

DICTIONARY = "datapackage.json"


@dataclass(frozen=True)
class Result:
    """The outcome of one experiment at one setting.

    ``<experiment>.json`` holds what equal inputs determine. What varies from run to run (seconds, date, host,
    commit) is ``provenance``, in ``<experiment>.provenance.json``. Each table is also a tidy CSV; what its
    columns mean is in ``<experiment>.datapackage.json``.
    """

    experiment: str
    profile: str
    config: dict  #: every setting, as plain JSON
    values: dict  #: nested dict of numbers; claims address them by dotted key
    tables: dict[str, list[dict]]  #: name → list of flat records
    data: dict[str, str]  #: file → sha256 of the published data read
    #: models of the profile that have not been trained yet, in words; empty for a whole result
    missing: list[str] = field(default_factory=list)
    #: commit, date, machine, packages; ``models``, the ids of the runs as far as they are known before any
    #: is trained; ``measured``, the version of each kind of measurement; how many networks there were in all,
    #: how long they were trained and where
    provenance: dict = field(default_factory=dict)
    #: what a row and each column of each table is, as resources of a Data Package
    schemas: dict[str, dict] = field(default_factory=dict)

    @property
    def models(self) -> list[str]:
        """Ids of the runs behind the numbers."""
        return self.provenance.get("models", [])

    @cached_property
    def current(self) -> bool:
        """Whether these settings ask for the same runs and versions of measurements today."""
        try:
            today = Request(self.experiment, self.profile, self.config).needed()
        except (BadInput, DataUnavailable, ModuleNotFoundError):
            return False  # it was removed or renamed since, or a reader's own file is gone
        same_versions = self.provenance.get("measured") == today["measured"]
        return same_versions and set(self.models) <= set(today["models"])

    @cached_property
    def digest(self) -> str:
        """Twelve hex digits over the numbers alone: equal for runs that agree in every digit kept."""
        return digest([self.config, self.values, self.tables])

    @property
    def _content(self) -> dict:
        beside = {"provenance", "schemas"}
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in beside}

    def save(self, folder: str | Path) -> Path:
        """Write JSON, provenance, one CSV a table and their dictionary; return the path of the JSON file."""
        folder = Path(folder)
        content = rounded(self._content)
        for name, records in content["tables"].items():
            text = as_csv(records, self._columns_of(name))
            write_text_atomic(folder / f"{self.experiment}.{name}.csv", text)
        self.save_provenance(folder)
        if self.schemas:
            write_json_atomic(folder / f"{self.experiment}.{DICTIONARY}", self.data_package)
        path = folder / f"{self.experiment}.json"
        tables = {name: _as_rows(records) for name, records in content["tables"].items()}
        write_text_atomic(path, _as_text(content | {"tables": tables}))
        return path

    def _columns_of(self, table: str) -> list[str]:
        """Return the names of a table's columns, in order."""
        return [column["name"] for column in self.schemas[table]["schema"]["fields"]]

    def save_provenance(self, folder: Path) -> None:
        write_json_atomic(folder / f"{self.experiment}.provenance.json", self.provenance)

    @property
    def data_package(self) -> dict:
        """The dictionary of the tables: a Data Package, https://specs.frictionlessdata.io/data-package."""
        resources = [
            {"name": name, "path": f"{self.experiment}.{name}.csv", "profile": "tabular-data-resource"}
            | schema
            for name, schema in self.schemas.items()
        ]
        return {"name": self.experiment, "profile": "tabular-data-package", "resources": resources}

    @classmethod
    def load(cls, path: str | Path) -> "Result":
        """Read what :meth:`save` wrote. Raises CorruptFile: it is no result."""
        path = Path(path)
        origin = path.with_name(f"{path.stem}.provenance.json")
        dictionary = path.with_name(f"{path.stem}.{DICTIONARY}")
        try:
            content, provenance = (json.loads(file.read_text(encoding="utf-8")) for file in (path, origin))
            tables = {name: _as_records(rows) for name, rows in content.pop("tables").items()}
            objects = {name: content[name] for name in ("config", "values", "data")} | {
                "provenance": provenance
            }
            for name, value in objects.items():
                if not isinstance(value, dict):
                    raise ValueError(f"its {name} is no object")
            schemas = _schemas(dictionary) if dictionary.is_file() else {}
            return cls(**content, tables=tables, provenance=provenance, schemas=schemas)
        except (OSError, TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise CorruptFile(
                f"{path} is no result ({error}): run the experiment again; a committed "
                f"one is made anew by `python -m companion.results.recompute {path.stem}`"
            ) from error


def _schemas(dictionary: Path) -> dict[str, dict]:
    """Read back the schemas that a data package was made of."""
    resources = json.loads(dictionary.read_text(encoding="utf-8"))["resources"]
    return {resource["name"]: {part: resource[part] for part in ("row", "schema")} for resource in resources}


def _as_rows(records: list[dict]) -> list[list]:
    """Return the columns in alphabetical order, then the values of every record; nothing of no records."""
    if not records:
        return []
    columns = sorted(records[0])
    return [columns, *([record[column] for column in columns] for record in records)]


def _as_records(rows: list[list]) -> list[dict]:
    """Return the records that :func:`_as_rows` was given."""
    if not rows:
        return []
    if not all(isinstance(row, list) for row in rows):
        raise ValueError("a table is no list of rows")
    columns, *values = rows
    return [dict(zip(columns, row, strict=True)) for row in values]


def _as_text(content: dict) -> str:
    """JSON with sorted keys, so that equal contents are equal bytes; a row of a table is one line."""
    tables = {
        name: "[\n" + ",\n".join(_line(row) for row in rows) + "\n]"
        for name, rows in sorted(content["tables"].items())
    }
    rest = {name: value for name, value in content.items() if name != "tables"}
    head = json.dumps(rest, indent=1, sort_keys=True, ensure_ascii=False).removesuffix("\n}")
    joined = ",\n".join(f"{_line(name)}: {text}" for name, text in tables.items())
    return f'{head},\n "tables": {{\n{joined}\n}}\n}}\n'


def _line(content: object) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def as_csv(records: list[dict], columns: list[str] | None = None) -> str:
    """Return records as CSV text, numbers as they are: see :func:`rounded`.

    Args:
        records: the rows.
        columns: of the text, which it has without a row as well; by default those of the records, in order of
            first appearance.
    """
    return pd.DataFrame(records, columns=columns, dtype=object).to_csv(index=False, lineterminator="\n")


def tasks_of(result: Result) -> list[str]:
    """The measured tasks of a result, from the fixed diagonal to attention that depends on the sample."""
    there = result.values.get("by_task", result.values)
    return [task for task in result.config["task"] if task in there]


def kinds_of(result: Result, values: dict | None = None) -> list[tuple[str, str, dict]]:
    """``(task, architecture, values)`` in the order of the task suite, of ``{task: {architecture: …}}``."""
    values = result.values if values is None else values
    return [(task, kind, numbers) for task in tasks_of(result) for kind, numbers in values[task].items()]
