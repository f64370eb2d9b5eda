"""What was measured of trained networks, without the networks: small enough to commit and to carry about.

A paper-sized network takes minutes to train and megabytes to keep; what the experiments measure of it is some
kilobytes. The archive has one line of JSON a training run and one a measurement of it::

    {"run": "scan-AED-gru-w128-s0-5f0c9b6a4d21", "code": "91c2…", "spec": {…}, "history": {…}}
    {"run": "scan-AED-gru-w128-s0-5f0c9b6a4d21", "code": "07aa…", "measure": "readout", "found": {…}}

``code`` is the fingerprint of what trained or measured (:mod:`companion.runs.fingerprint`). Lines are packed
in one file a kind of run, ``<folder>/<kind>.jsonl``, sorted; jobs write a small file a run,
``<loose>/<run>.jsonl``, so that they can work side by side, and :meth:`Archive.pack` moves those into the
packed files. The last line of a file is a seal over those above it, ``{"seal": "5f0c…"}``.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib.errors import CorruptFile
from attnlib.files import locked, rounded, write_text_atomic
from companion.runs.command import errors_in_a_line, parser_of
from companion.runs.fingerprint import fingerprint
from companion.runs.keys import Spec, code_of, first_equal, identity

if TYPE_CHECKING:
    from companion.runs.store import Store

ARCHIVED_AS = {"saliency_variants": "saliency_readings"}  # measures with another name today


@dataclass(frozen=True)
class Measurement:
    """One measure of one model; ``settings`` are its further arguments, and so are ``other_specs``."""

    spec: Spec
    measure: Callable[..., dict]
    settings: tuple[tuple[str, object], ...] = ()
    other_specs: tuple[Spec, ...] = ()

    @property
    def name(self) -> str:
        """The measure's name in the archive: ``readout`` for ``measure_readout``."""
        return ARCHIVED_AS.get(name := self.measure.__name__.removeprefix("measure_"), name)

    @property
    def code(self) -> str:
        return first_equal(fingerprint(self.measure))

    @property
    def key(self) -> str:
        """What tells it from what else the same run is asked, whatever code answers."""
        others = [[identity(spec), code_of(spec)] for spec in self.other_specs]
        return _line({"measure": self.name, "settings": dict(self.settings), "with": others})

    def line(self, found: dict) -> dict:
        line = {"run": identity(self.spec), "measure": self.name, "code": self.code, "found": found}
        key = json.loads(self.key)  # empty settings and companions are left out
        return line | {name: key[name] for name in ("settings", "with") if key[name]}

    def answer(self, store: "Store") -> dict:
        """The measurement, made if need be (see :meth:`companion.runs.store.Store.cached`)."""
        together = {"other_specs": self.other_specs} if self.other_specs else {}
        return store.cached(self.spec, self.measure, **together, **dict(self.settings))


@dataclass
class _Run:
    """A training run and its answers: :attr:`Measurement.key` → line."""

    line: dict
    answers: dict[str, dict] = field(default_factory=dict)

    @property
    def code(self) -> str:
        return first_equal(self.line["code"])

    def add(self, line: dict) -> None:
        others = [[run, first_equal(code)] for run, code in line.get("with", [])]
        key = {"measure": line["measure"], "settings": line.get("settings", {}), "with": others}
        self.answers[_line(key)] = line

    @property
    def lines(self) -> list[str]:
        return [_line(self.line), *(_line(self.answers[key]) for key in sorted(self.answers))]


class Archive:
    """Measurements that outlive their networks; safe for several processes.

    Args:
        folder: of the packed files, read only but for :meth:`pack`.
        loose: where new answers go; the same folder by default.
    """

    def __init__(self, folder: str | Path, loose: str | Path | None = None):
        self.folder = Path(folder)
        self.loose = Path(loose) if loose else self.folder / "loose"
        self._packed: dict[str, dict[str, _Run]] = {}

    def history(self, spec: Spec) -> dict | None:
        """The record of a training by today's code; None where the archive does not have it."""
        run = self._run(spec)
        return run.line["history"] if run else None

    def get(self, measurement: Measurement) -> dict | None:
        """What today's code would measure; None where the archive does not have it."""
        run = self._run(measurement.spec)
        line = run.answers.get(measurement.key) if run else None
        return line["found"] if line and first_equal(line["code"]) == measurement.code else None

    def put(self, measurement: Measurement, history: dict, found: dict) -> None:
        """Add an answer. One by other code gives way, and so do all about a network by other code."""
        spec = measurement.spec
        path = self.loose / f"{identity(spec)}.jsonl"
        with locked(self.loose, wait=True):
            run = _read(path).get(identity(spec))
            if run is None or run.code != code_of(spec):
                line = {"run": identity(spec), "code": code_of(spec), "spec": spec.content}
                run = _Run(line | {"history": rounded(history)})
            run.add(measurement.line(found))
            _write(path, run.lines)

    def pack(self) -> int:
        """Move loose answers into the packed files, one a kind of run, sorted; how many runs there were."""
        with locked(self.loose, wait=True):  # nothing is added meanwhile, and lost
            self._packed.clear()
            loose = sorted(self.loose.glob("*.jsonl"))
            kinds = set()
            for path in loose:
                for name, run in _read(path).items():
                    kinds.add(kind := _kind(run.line["spec"]))
                    self._of_kind(kind)[name] = _joined(self._of_kind(kind).get(name), run)
            for kind in kinds:
                lines = [line for _, run in sorted(self._of_kind(kind).items()) for line in run.lines]
                _write(self.folder / f"{kind}.jsonl", lines)
            for path in loose:
                path.unlink()
            return len(loose)

    def runs(self) -> Iterator[_Run]:
        for path in sorted(self.folder.glob("*.jsonl")):
            yield from self._of_kind(path.stem).values()

    def _run(self, spec: Spec) -> _Run | None:
        """What is known of a run by today's code, loose answers before packed ones."""
        name, code = identity(spec), code_of(spec)
        packed = self._of_kind(_kind(spec.content)).get(name)
        joined = _joined(packed, _read(self.loose / f"{name}.jsonl").get(name))
        return next((run for run in (joined, packed) if run and run.code == code), None)

    def _of_kind(self, kind: str) -> dict[str, _Run]:
        if kind not in self._packed:
            self._packed[kind] = _read(self.folder / f"{kind}.jsonl")
        return self._packed[kind]


def _kind(content: Mapping[str, object]) -> str:
    """The packed file of a spec: a kind of training run, or the task of an encoder-decoder."""
    return str(content["recipe"]) if "recipe" in content else f"encoder_decoder.{content['task']}"


def _joined(packed: _Run | None, loose: _Run | None) -> _Run | None:
    if packed and loose and packed.code == loose.code:
        return _Run(loose.line, packed.answers | loose.answers)
    return loose or packed


def _write(path: Path, lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    write_text_atomic(path, text + _sealed(text.encode()).decode())


def _read(path: Path) -> dict[str, _Run]:
    """The runs of a file by their names; none where there is no file, and files of old have no seal.

    Raises CorruptFile: a line that is none, or lines that are not those that were sealed.
    """
    if not path.is_file():
        return {}
    runs: dict[str, _Run] = {}
    content = path.read_bytes()
    above, mark, seal = content.rpartition(b'{"seal":"')
    if mark and seal.endswith(b'"}\n'):
        if mark + seal != _sealed(above):
            raise CorruptFile(f"{path}: its lines are not those that were sealed; {_WAY_OUT}")
        content = above
    for number, text in enumerate(content.splitlines(), 1):
        try:
            line = json.loads(text)
            if "spec" in line:
                runs[line["run"]] = _Run(line)
            else:
                runs[line["run"]].add(line)
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFile(
                f"{path}, line {number}: no line of an archive ({error!r}); {_WAY_OUT}"
            ) from error
    return runs


_WAY_OUT = "restore the file, or, where two archives were merged by hand, delete the seal and pack them again"


def _sealed(lines: bytes) -> bytes:
    return f'{{"seal":"{hashlib.sha256(lines).hexdigest()[:16]}"}}\n'.encode()


def _line(content: object) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Pack loose answers into the files of an archive: --answers build/answers, say."""
    parser = parser_of("companion.runs.archive", main.__doc__)
    parser.add_argument("archive", help="folder of packed answers")
    parser.add_argument("--answers", required=True, help="folder of loose ones")
    options = parser.parse_args(arguments)
    print(f"packed: {Archive(options.archive, options.answers).pack()} training runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
