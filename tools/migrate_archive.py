"""Rewrite the archive once: from lines that name a hash of the code to lines that say what was run.

Run on the commit that brings it, in a checkout whose archive is still in the old form. Every run and every
measurement keeps its history and its numbers; only how they are named changes, and ``python -m
companion.results.recompute`` then names them in the results. The commit before is one on which all
fingerprints of the old form matched, so that version 1 is the code of that commit.
"""

import json
from pathlib import Path

from attnlib.files import write_json_atomic
from companion.paths import ARCHIVE, PAPER
from companion.results.answer import all_measurements
from companion.runs.archive import Run, _kind, _write
from companion.runs.identity import Spec, read_spec, run_id, run_record
from companion.runs.measure import Measurement
from companion.runs.spec import ENCODER_DECODER, ModelSpec

SETTINGS_TODAY = {"look": "snapshot", "looks": "snapshots", "first_look": "first_snapshot"}
SETTINGS_TODAY |= {"looks_per_doubling": "snapshots_per_doubling"}
MEASURES_TODAY = {"saliency_readings": "saliency_variants"}


def spec_of(content: dict) -> Spec:
    """The spec of an old line."""
    if "recipe" not in content:
        return read_spec(json.dumps({"training": ENCODER_DECODER, "settings": content}))
    settings = {SETTINGS_TODAY.get(name, name): value for name, value in content.get("settings", {}).items()}
    settings["seed"] = content["seed"]
    return read_spec(json.dumps({"training": content["recipe"], "settings": settings}))


def main() -> None:
    functions = {
        (measurement.name, isinstance(measurement.spec, ModelSpec)): measurement.measure
        for measurements in all_measurements("paper").values()
        for measurement in measurements
    }
    runs: dict[str, Run] = {}  # by their old names
    specs: dict[str, Spec] = {}
    answers: list[dict] = []
    paths = sorted(ARCHIVE.glob("*.jsonl"))
    for path in paths:
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if "spec" in line:
                spec = specs[line["run"]] = spec_of(line["spec"])
                runs[line["run"]] = Run({"run": run_id(spec), **run_record(spec), "history": line["history"]})
            elif "found" in line:
                answers.append(line)
    for line in answers:
        spec = specs[line["run"]]
        name = MEASURES_TODAY.get(line["measure"], line["measure"])
        function = functions[name, isinstance(spec, ModelSpec)]
        others = tuple(specs[other] for other, _ in line.get("with", []))
        measurement = Measurement(spec, function, tuple(line.get("settings", {}).items()), others)
        runs[line["run"]].add(
            {"run": run_id(spec), "version": 1, "found": line["found"]} | measurement.question
        )
    kinds: dict[str, list[Run]] = {}
    for run in runs.values():
        kinds.setdefault(_kind(run.line), []).append(run)
    ids = [run.id for run in runs.values()]
    assert len(set(ids)) == len(ids) == len(specs), "two runs share an id"
    assert sum(len(run.measured) for run in runs.values()) == len(answers), "two measurements are one"
    for kind, own in kinds.items():
        ordered = sorted(own, key=lambda run: run.id)
        _write(ARCHIVE / f"{kind}.jsonl", [line for run in ordered for line in run.lines])
    assert {path.stem for path in paths} == kinds.keys()
    Path(ARCHIVE / "equal_code.json").unlink(missing_ok=True)
    for path in PAPER.glob("*.provenance.json"):
        provenance = json.loads(path.read_text(encoding="utf-8"))
        kept = {name: value for name, value in provenance.items() if name not in ("code", "seal")}
        write_json_atomic(path, kept)
    print(f"{len(ids)} runs and {len(answers)} measurements")


if __name__ == "__main__":
    main()
