"""Show that an edit of the code moved no number, so that archived answers stay: run both on a few networks.

    git worktree add /tmp/before COMMIT     # the code by which the answers were made
    python -m companion.results.equal_code --before /tmp/before --why "sums in one pass"

Of every fingerprint that changed, the two cheapest archived networks that need it, and one more of each
further choice among their settings, are trained and measured by the code before and by today's (not held
against the archive: another processor gives other last digits). Where all agree in every digit kept,
``equal_code.json`` beside the archive says from then on that the one fingerprint equals the other.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from attnlib.errors import BadInput
from attnlib.files import write_json_atomic
from companion.results.recompute import ARCHIVE
from companion.runs.answer import all_measurements
from companion.runs.archive import Archive
from companion.runs.command import errors_in_a_line, parser_of
from companion.runs.fingerprint import ROOT
from companion.runs.keys import EQUAL_CODE, code_of, identity

REFERENCES = 2  # networks that are rerun of each fingerprint that changed
COLUMNS = ("was", "now", "seconds", "run", "choices")  # fingerprints, and one network that needs them


def changed(archive: Archive, profile: str = "paper") -> pd.DataFrame:
    """What today's code would call by another fingerprint, network by network."""
    measurements = {identity(own[0].spec): own for own in all_measurements(profile).values()}
    found = []
    for run in archive.runs():
        own = measurements.get(name := run.line["run"], [])
        pairs = {(run.code, code_of(own[0].spec))} if own else set()
        pairs |= {(run.answers[each.key]["code"], each.code) for each in own if each.key in run.answers}
        choices = json.dumps(_choices(run.line["spec"]), sort_keys=True)
        seconds = run.line["history"]["seconds"]
        found += [(was, now, seconds, name, choices) for was, now in pairs if was != now]
    return pd.DataFrame(found, columns=COLUMNS)


def references(found: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """The networks to rerun of each (was, now): the cheapest, and the cheapest of each further choice."""
    found = found.sort_values(list(COLUMNS))
    cheapest = found.groupby(["was", "now"]).cumcount() < REFERENCES
    chosen = found[cheapest | ~found.duplicated(["was", "now", "choices"])]
    return {codes: list(runs) for codes, runs in chosen.groupby(["was", "now"])["run"]}


def _choices(spec: object) -> object:
    """The settings of a spec without its numbers: those are sizes, the others may lead to other code."""
    if isinstance(spec, dict):
        return {name: kept for name, value in spec.items() if (kept := _choices(value)) not in (None, {}, [])}
    if isinstance(spec, list):
        return [kept for value in spec if (kept := _choices(value)) is not None]
    return None if isinstance(spec, int | float) and not isinstance(spec, bool) else spec


def answered(checkout: Path, runs: Iterable[str], folder: Path) -> dict[str, list[str]]:
    """Train and measure networks by the code of a checkout: run → lines of its answers, codes left out."""
    command = [sys.executable, "-m", "companion.runs.answer", *runs]
    command += ["--archive", folder / "none", "--answers", folder / "answers", "--models", folder / "models"]
    environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BadInput(f"{checkout} could not answer for {', '.join(runs)}: exit code {done.returncode}")
    found: dict[str, list[str]] = {run: [] for run in runs}
    for run, lines in found.items():
        for text in (folder / "answers" / f"{run}.jsonl").read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if "found" in line:
                line |= {"code": None, "with": [other for other, _ in line.get("with", [])]}
                lines.append(json.dumps(line, sort_keys=True))
        lines.sort()
    return found


@errors_in_a_line
def main(arguments: list[str] | None = None) -> int:
    """Find what changed, rerun, compare, and note what is equal; exit code 1 where a number moved."""
    parser = parser_of("companion.results.equal_code", __doc__)
    parser.add_argument("--before", type=Path, help="checkout of the code by which the answers were made")
    parser.add_argument("--why", help="what was edited, and why it can move no number")
    options = parser.parse_args(arguments)
    chosen = references(changed(Archive(ARCHIVE)))
    for (was, now), runs in chosen.items():
        print(f"{was} is {now} today; reference networks: {', '.join(runs)}")
    if not chosen or not (options.before and options.why):
        print(
            "nothing is compared: --before and --why are needed" if chosen else "no fingerprint has changed"
        )
        return 0
    runs = list(dict.fromkeys(run for own in chosen.values() for run in own))
    with tempfile.TemporaryDirectory() as folder:
        before = answered(options.before.resolve(), runs, Path(folder) / "before")
        today = answered(ROOT, runs, Path(folder) / "today")
    entries = json.loads(EQUAL_CODE.read_text(encoding="utf-8")) if EQUAL_CODE.is_file() else []
    moved = 0
    for (was, now), own in chosen.items():
        if all(before[run] == today[run] for run in own):
            entries.append({"was": was, "is": now, "references": own, "why": options.why})
            print(f"{now} equals {was}: {len(own)} networks agree in every digit")
        else:
            moved += 1
            print(f"{now} does not equal {was}: {next(run for run in own if before[run] != today[run])}")
    write_json_atomic(EQUAL_CODE, entries)
    return min(moved, 1)


if __name__ == "__main__":
    sys.exit(main())
