"""What was measured of trained networks, without the networks: small enough to commit and to carry about.

A paper-sized network takes minutes to train and megabytes to keep; what the experiments measure of it is some
kilobytes. The archive has one line of JSON a run, its record (:mod:`companion.runs.identity`) with the
history of the training, and one line a measurement of it::

    {"run": "scan-AED-gru-w128-s0-5f0c9b6a4d21", "training": "encoder_decoder", "version": 1,
     "settings": {…}, "task": {…}, "data": {…}, "history": {…}}
    {"run": "scan-AED-gru-w128-s0-5f0c9b6a4d21", "measure": "readout", "version": 1,
     "settings": {…}, "found": {…}}

Lines are packed in one file a kind of run, ``<folder>/<kind>.jsonl``, sorted. Jobs write a small file a run,
``<loose>/<run>.jsonl``, so that they can work side by side, and :meth:`Archive.pack` moves those into the
packed files. A line of another version than today's is never used: see :meth:`Archive.unknown`.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from attnlib.errors import AttnlibError, CorruptFile
from attnlib.files import locked, write_text_atomic
from companion.rounding import rounded
from companion.runs.command import errors_in_a_line, parser_of
from companion.runs.identity import Spec, plain, read_spec, run_id, run_record
from companion.runs.measure import Measurement
from companion.runs.spec import ENCODER_DECODER, ModelSpec

QUESTION = ("measure", "settings", "with")  # of a measurement's line: what is asked, whatever the version


@dataclass
class Run:
    """A run and what was measured of it.

    Attributes:
        line: its record, with the id (``run``) and the ``history`` of its training.
        measured: the lines of its measurements, by what they ask.
    """

    line: dict
    measured: dict[str, dict] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.line["run"]

    def add(self, line: dict) -> None:
        """Add a measurement; one of another version of the same measurement gives way."""
        question = {name: line[name] for name in QUESTION if name in line}
        self.measured[_json(question)] = line

    @property
    def lines(self) -> list[str]:
        questions = sorted(self.measured)
        return [_json(self.line), *(_json(self.measured[question]) for question in questions)]

    def updated(self, newer: "Run") -> "Run":
        """The run with the measurements of both, the newer ones where both have them.

        A later question may need a network that is gone. It is then trained again, perhaps on another
        machine, and measurements of both trainings stand side by side: the run keeps both histories.
        """
        history = _latest_history(self.line["history"], newer.line["history"])
        return Run(newer.line | {"history": history}, self.measured | newer.measured)


def _latest_history(older: dict, newer: dict) -> dict:
    """The history of a run's last training; under ``earlier`` those before it, the latest first."""
    before = list(older.get("earlier", []))
    last = {name: value for name, value in older.items() if name != "earlier"}
    if last != newer:
        before.insert(0, last)
    return newer | {"earlier": before} if before else newer


class Archive:
    """Measurements that outlive their networks; safe for several processes.

    Args:
        folder: of the packed files, read only but for :meth:`pack`.
        loose: where new measurements go; ``loose`` in the same folder by default.
    """

    def __init__(self, folder: str | Path, loose: str | Path | None = None):
        self.folder = Path(folder)
        self.loose = Path(loose) if loose else self.folder / "loose"
        self._packed: dict[str, dict[str, Run]] = {}

    def history(self, spec: Spec) -> dict | None:
        """The history of a training; None where the archive does not have the run."""
        run = self._run(spec)
        return run.line["history"] if run else None

    def get(self, measurement: Measurement) -> dict | None:
        """What was found; None where the archive does not have it at today's versions."""
        run = self._run(measurement.spec)
        line = run.measured.get(_json(measurement.question)) if run else None
        if line is None or line["version"] != measurement.version:
            return None
        return line["found"]

    def put(self, measurement: Measurement, history: dict, numbers: dict) -> None:
        """Add what a measurement found, and the run that it is of."""
        run = run_id(measurement.spec)
        path = self.loose / f"{run}.jsonl"
        line = {"run": run, "version": measurement.version, "found": numbers} | measurement.question
        if "date" in history:
            line["trained"] = history["date"]  # tells which training of the run was measured
        with locked(self.loose, wait=True):
            known = _read(path).get(run)
            if known is None:
                known = Run({"run": run, **run_record(measurement.spec), "history": rounded(history)})
            known.add(line)
            _write(path, known.lines)

    def pack(self) -> int:
        """Move loose measurements into the packed files, one a kind of run, sorted.

        A run whose training had an older version gives way to one with the same settings.

        Returns:
            how many runs there were.
        """
        with locked(self.loose, wait=True):  # nothing is added meanwhile, and lost
            self._packed.clear()
            loose = sorted(self.loose.glob("*.jsonl"))
            kinds = set()
            for path in loose:
                for run in _read(path).values():
                    kind = _kind(run.line)
                    kinds.add(kind)
                    packed = self._of_kind(kind)
                    packed[run.id] = packed[run.id].updated(run) if run.id in packed else run
                    for older in _superseded(run, packed.values()):
                        del packed[older.id]
            for kind in kinds:
                runs = self._of_kind(kind)
                _write(
                    self.folder / f"{kind}.jsonl", [line for run in sorted(runs) for line in runs[run].lines]
                )
            for path in loose:
                path.unlink()
            return len(loose)

    def runs(self) -> Iterator[Run]:
        """All packed runs. Raises CorruptFile."""
        for path in sorted(self.folder.glob("*.jsonl")):
            yield from self._of_kind(path.stem).values()

    def unknown(self, measurements: Iterable[Measurement]) -> Iterator[str]:
        """A line for each packed run and kind of measurement that today's code would not make as it is.

        Args:
            measurements: all that the experiments ask for; they tell the versions of measurements.
        """
        versions = {measurement.name: set() for measurement in measurements}
        for measurement in measurements:
            versions[measurement.name].add(measurement.version)
        for run in self.runs():
            if reason := why_unknown(run.line):
                yield f"{run.id}: {reason}; it is not used"
            for line in run.measured.values():
                if line["version"] not in versions.get(line["measure"], ()):
                    asked = f"{line['measure']} at version {line['version']}"
                    yield f"{run.id}: {asked}, which no experiment asks for; it is not used"

    def _run(self, spec: Spec) -> Run | None:
        """What is known of a run, loose measurements before packed ones."""
        run = run_id(spec)
        packed = self._of_kind(_kind_of(spec)).get(run)
        loose = _read(self.loose / f"{run}.jsonl").get(run)
        if packed and loose:
            return packed.updated(loose)
        return loose or packed

    def _of_kind(self, kind: str) -> dict[str, Run]:
        if kind not in self._packed:
            self._packed[kind] = _read(self.folder / f"{kind}.jsonl")
        return self._packed[kind]


def _kind_of(spec: Spec) -> str:
    """The packed file of a run: its kind of training, and the task of an encoder-decoder."""
    return f"{ENCODER_DECODER}.{spec.task}" if isinstance(spec, ModelSpec) else spec.procedure


def _kind(line: Mapping[str, object]) -> str:
    """The same of an archived line."""
    training = line["training"]
    return f"{training}.{line['settings']['task']}" if training == ENCODER_DECODER else str(training)


def _superseded(run: Run, others: Iterable[Run]) -> list[Run]:
    """The runs that differ from this one in nothing but an older version of their training."""

    def without_version(line: dict) -> dict:
        return {name: line.get(name) for name in ("training", "settings", "task", "data")}

    return [
        other
        for other in others
        if other.line["version"] < run.line["version"]
        and without_version(other.line) == without_version(run.line)
    ]


def why_unknown(line: dict) -> str:
    """Say why today's code would not make an archived run; the text is empty where it would."""
    try:
        today = plain({"run": run_id(spec := spec_of(line)), **run_record(spec)})
    except AttnlibError as error:
        return f"today's code cannot make it ({error})"
    for name in ("training", "version", "settings", "task", "data"):
        if line.get(name) != today.get(name):
            return f"made with {name} {line.get(name)}, and today's is {today.get(name)}"
    return "" if line["run"] == today["run"] else f"its id is {today['run']} today"


def spec_of(line: dict) -> Spec:
    """Return the spec of a run from its archived line. Raises as :func:`read_spec`."""
    return read_spec(json.dumps({"training": line["training"], "settings": line["settings"]}))


def _write(path: Path, lines: list[str]) -> None:
    write_text_atomic(path, "\n".join(lines) + "\n")


def _read(path: Path) -> dict[str, Run]:
    """The runs of a file by their ids; none where there is no file. Raises CorruptFile: a bad line."""
    if not path.is_file():
        return {}
    runs: dict[str, Run] = {}
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        try:
            line = json.loads(text)
            if "found" in line:
                runs[line["run"]].add(line)
            else:
                runs[line["run"]] = Run(line)
        except (ValueError, KeyError, TypeError) as error:
            way_out = "restore the file from git, or delete it if it is one of build/"
            raise CorruptFile(
                f"{path}, line {number}: no line of an archive ({error!r}); {way_out}"
            ) from error
    return runs


def _json(content: object) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Pack loose measurements into the files of an archive: --answers build/answers, say."""
    parser = parser_of("companion.runs.archive", main.__doc__)
    parser.add_argument("archive", help="folder of packed measurements")
    parser.add_argument("--answers", required=True, help="folder of loose ones")
    options = parser.parse_args(arguments)
    print(f"packed: {Archive(options.archive, options.answers).pack()} training runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
