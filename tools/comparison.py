"""Compare the numbers of two versions of the code, and name the differences that no version speaks for.

The rules are those of :mod:`tools.same_numbers`, which runs the code.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tools.differences import ABSENT, Difference, differences

Compared = Callable[[str, str], Difference | None]  # of two networks by their ids: where they differ first


@dataclass
class Report:
    """The outcome of a comparison.

    Attributes:
        failures: a line for each thing that is wrong.
        notes: a line for each thing that changed and is right.
    """

    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Side:
    """The numbers of one version of the code, by keys that name no version.

    Args:
        numbers: what :mod:`tools.tiny_runs` wrote.

    Attributes:
        runs: record, history and id of each network; the key is its record without the version.
        measurements: lines of measurements; the key says what is measured of which networks.
        asked_by: the experiments that ask for a measurement, by its key.
        experiments, trainings, failed: as they were written.
    """

    def __init__(self, numbers: dict):
        self.experiments: dict[str, dict] = numbers["experiments"]
        self.trainings: dict[str, dict] = numbers["trainings"]
        self.failed: dict[str, dict] = numbers["failed"]
        self.runs: dict[str, dict] = {}
        self._keys: dict[str, str] = {}  # of runs, by id
        for run_id, run in numbers["runs"].items():
            record = {part: value for part, value in run["record"].items() if part != "version"}
            key = as_text(record)
            self._keys[run_id] = key
            self.runs[key] = run | {"id": run_id}
        self.measurements = {self.key_of(line): line for line in numbers["measurements"]}
        self.asked_by: dict[str, set[str]] = defaultdict(set)
        for name, experiment in self.experiments.items():
            for question in experiment["asks"]:
                self.asked_by[self.key_of(question)].add(name)

    def key_of(self, line: Mapping[str, object]) -> str:
        """Return what is measured, with every setting, and of which networks."""
        return as_text(question_of(line) | {"of": self.runs_of(line)})

    def runs_of(self, line: Mapping[str, object]) -> list[str]:
        """Return the keys of all networks that a measurement is of."""
        ids = [line["run"], *line.get("with", ())]
        return [self._keys.get(run_id, run_id) for run_id in ids]  # one without its data was not trained

    def asks_for_run(self, run_id: str) -> bool:
        """Return True if an experiment asks for a network by its id, whether it was trained or not."""
        experiments = self.experiments.values()
        return any(question["run"] == run_id for experiment in experiments for question in experiment["asks"])

    def asks_of(self, experiment: str) -> set[str]:
        """Return the keys of the measurements that an experiment asks for."""
        return {key for key, experiments in self.asked_by.items() if experiment in experiments}

    def users_of_run(self, key: str) -> set[str]:
        """Return the experiments that ask for any measurement of a network."""
        users = set()
        for asked, line in self.measurements.items():
            if key in self.runs_of(line):
                users |= self.asked_by[asked]
        return users

    def version_of_measure(self, name: str) -> int:
        """Return the highest version of the measurements with a name; 0 if there is none."""
        versions = [line["version"] for line in self.measurements.values() if line["measure"] == name]
        return max(versions, default=0)


class Comparison:
    """The comparison of two sides.

    Args:
        compared: where two networks differ first, by their ids; None if they are equal.
        on_view: experiments whose committed paper result has changed.
        accepted: names of experiments, trainings and measurements that ask in another way on purpose.
    """

    def __init__(
        self,
        before: Side,
        now: Side,
        compared: Compared,
        on_view: Collection[str] = (),
        accepted: Collection[str] = (),
    ):
        self.before, self.now, self.compared = before, now, compared
        self.on_view, self.accepted = set(on_view), set(accepted)
        self.report = Report()
        self.moved_runs: set[str] = set()  # keys of networks that differ or have no partner
        self.moved: set[str] = set()  # keys of measurements that differ or have no partner

    def made(self) -> Report:
        """Compare everything."""
        self.compare_what_failed()
        self.compare_defaults()
        self.compare_networks()
        self.compare_measurements()
        self.name_lost_networks()
        self.name_lost_measurements()
        self.compare_results()
        return self.report

    def fail(self, line: str) -> None:
        self.report.failures.append(line)

    def note(self, line: str) -> None:
        self.report.notes.append(line)

    def fail_unless_accepted(self, names: Collection[str], line: str) -> None:
        """Add a failure, or a note if one of the names is accepted."""
        if self.accepted.intersection(names):
            self.note(f"{line}; accepted")
        else:
            self.fail(line)

    def is_raised(self, training: str) -> bool:
        """Return True if a training has a higher version today."""
        before, now = self.before.trainings.get(training), self.now.trainings.get(training)
        return bool(before and now and now["version"] > before["version"])

    def compare_what_failed(self) -> None:
        for name in sorted({*self.before.failed, *self.now.failed}):
            before, now = self.before.failed.get(name), self.now.failed.get(name)
            if before and now and before["lacks_data"] and now["lacks_data"]:
                self.note(f"not compared: {name} lacks its data here ({now['reason']})")
            elif now:
                self.fail(f"does not run: {name} ({now['reason']})")
            elif name in self.now.experiments:
                self.fail_unless_accepted([name], f"did not run before: {name} ({before['reason']})")

    def compare_defaults(self) -> None:
        for training in sorted({*self.before.trainings} & {*self.now.trainings}):
            before, now = self.before.trainings[training], self.now.trainings[training]
            if now["version"] < before["version"]:
                self.fail(f"version went back: {training} from {before['version']} to {now['version']}")
            if self.is_raised(training):
                continue
            for found in differences(before["defaults"], now["defaults"]):
                line = f"other default: {training} (version {now['version']}): {found}"
                self.fail_unless_accepted([training], line)

    def compare_networks(self) -> None:
        compared, different = Counter(), Counter()  # numbers of networks by training
        for key in sorted({*self.before.runs} & {*self.now.runs}):
            before, now = self.before.runs[key], self.now.runs[key]
            training, version = now["record"]["training"], now["record"]["version"]
            compared[training] += 1
            in_network = self.compared(before["id"], now["id"])
            in_history = next(differences(before["history"], now["history"], "history"), None)
            if in_network:
                self.moved_runs.add(key)
            found = in_network or in_history
            if found:
                different[training] += 1
                if not self.is_raised(training):
                    self.fail(f"differs: network {now['id']} ({training}, version {version}): {found}")
        for training in compared:
            if self.is_raised(training):
                self.check_raise(training, compared[training], different[training], "networks")

    def check_raise(self, name: str, compared: int, different: int, what: str) -> None:
        """Fail where a version was raised and nothing differs."""
        if different:
            self.note(f"version raised: {name}; {different} of {compared} {what} differ")
        else:
            self.fail(f"raised for nothing: the version of {name}; none of {compared} {what} differs")

    def compare_measurements(self) -> None:
        compared, different = Counter(), Counter()  # numbers of measurements by name, of raised ones alone
        for key in sorted({*self.before.measurements} & {*self.now.measurements}):
            before, now = self.before.measurements[key], self.now.measurements[key]
            name, version = now["measure"], now["version"]
            found = list(differences(before["found"], now["found"]))
            if found:
                self.moved.add(key)
            if version < before["version"]:
                self.fail(f"version went back: {name} from {before['version']} to {version}")
            elif version > before["version"]:
                compared[name] += 1
                different[name] += bool(found)
            elif found and not self.networks_moved(now):
                line = f"differs: {name} of {now['run']} (version {version}): {found[0]}"
                self.fail(line + more(found, "numbers"))
        for name in compared:
            self.check_raise(name, compared[name], different[name], "measurements")

    def networks_moved(self, line: dict) -> bool:
        """Return True if a network that is measured differs: it has a raised version, or failed already."""
        keys = self.now.runs_of(line)
        return not self.moved_runs.isdisjoint(keys)

    def name_lost_networks(self) -> None:
        """Name the networks without a partner today, those with one cause in one line."""
        new = [run["record"] for key, run in self.now.runs.items() if key not in self.before.runs]
        lost: dict[tuple[str, str], list[str]] = defaultdict(list)
        excused = set()
        for key in sorted({*self.before.runs} - {*self.now.runs}):
            self.moved_runs.add(key)
            record = self.before.runs[key]["record"]
            training = record["training"]
            if self.is_raised(training):
                excused.add(training)
            elif not self.went_with_experiments(self.before.users_of_run(key)):
                if self.now.asks_for_run(self.before.runs[key]["id"]):
                    because = "it is asked for, and was not trained"
                else:
                    alike = [other for other in new if other["training"] == training]
                    because = cause(record, alike)
                lost[training, because].append(key)
        for (training, because), keys in lost.items():
            users = set().union(*(self.before.users_of_run(key) for key in keys))
            first = self.before.runs[keys[0]]["id"]
            line = f"without a partner: network {first}{more(keys, 'networks')}: {because}"
            self.fail_unless_accepted({training, *users}, line)
        for training in sorted(excused):
            self.note(f"version raised: {training}; networks with other settings now are not compared")

    def went_with_experiments(self, users: set[str]) -> bool:
        """Return True if only experiments that are gone, or did not run, asked for something."""
        return bool(users) and users.isdisjoint(self.now.experiments)

    def name_lost_measurements(self) -> None:
        """Name the measurements without a partner today, those with one cause in one line."""
        new = [line for key, line in self.now.measurements.items() if key not in self.before.measurements]
        lost: dict[tuple[str, str], list[str]] = defaultdict(list)
        excused = set()
        for key in sorted({*self.before.measurements} - {*self.now.measurements}):
            self.moved.add(key)
            line = self.before.measurements[key]
            name = line["measure"]
            if not self.moved_runs.isdisjoint(self.before.runs_of(line)):
                continue  # named, or excused, with the network
            if self.now.version_of_measure(name) > line["version"]:
                excused.add(name)
            elif not self.went_with_experiments(self.before.asked_by[key]):
                alike = [question_of(other) for other in new if other["measure"] == name]
                lost[name, cause(question_of(line), alike)].append(key)
        for (name, because), keys in lost.items():
            users = set().union(*(self.before.asked_by[key] for key in keys))
            first = self.before.measurements[keys[0]]["run"]
            line = f"without a partner: {name} of {first}{more(keys, 'networks')}: {because}"
            self.fail_unless_accepted({name, *users}, line)
        for name in sorted(excused):
            self.note(f"version raised: {name}; measurements with other settings now are not compared")

    def compare_results(self) -> None:
        for name in sorted({*self.before.experiments, *self.now.experiments}):
            if name in self.before.failed or name in self.now.failed:
                continue  # named already
            if name not in self.now.experiments:
                self.note(f"gone: {name}, and what it alone asked for")
            elif name not in self.before.experiments:
                self.note(f"new: {name}")
            else:
                self.compare_result(name)

    def compare_result(self, name: str) -> None:
        before, now = self.before.experiments[name], self.now.experiments[name]
        settings = [each for each in differences(before["config"], now["config"]) if each.before != ABSENT]
        if settings:
            line = f"not compared: {name} has another tiny profile: {settings[0]}"
            self.fail_unless_accepted([name], line + more(settings, "settings"))
            return
        asked = self.before.asks_of(name) | self.now.asks_of(name)
        found = list(result_differences(before, now))
        if not found or asked & self.moved:  # what moved is named, or excused, with the measurement
            return
        line = f"other result: {name}, from the same measurements: {found[0]}{more(found, 'numbers')}"
        if name in self.on_view:
            self.note(f"{line}; its paper result changed as well")
        else:
            self.fail_unless_accepted([name], line)


def result_differences(before: dict, now: dict) -> Iterator[Difference]:
    """Yield where the values and tables of a result differ; new values and columns are no difference."""
    for part in ("values", "tables"):
        for found in differences(before[part], now[part], part):
            is_new_row = found.path.endswith("]")
            if found.before != ABSENT or is_new_row:
                yield found


def cause(before: dict, alike: list[dict]) -> str:
    """Return why a record or question has no partner, by the most similar one among the new ones."""
    candidates = []
    for other in alike:
        found = [each for each in differences(before, other) if each.path != "version"]
        if found:
            candidates.append(found)
    if not candidates:
        return "it is no longer asked for"
    nearest = min(candidates, key=len)
    return f"{nearest[0]}{more(nearest, 'settings')}"


def question_of(line: Mapping[str, object]) -> dict[str, object]:
    """Return what a measurement asks, without its networks."""
    return {"measure": line["measure"], "settings": line["settings"]}


def more(items: list, what: str) -> str:
    """Return how many items there are beyond the first, in words."""
    return f" and {len(items) - 1} more {what}" if len(items) > 1 else ""


def as_text(content: object) -> str:
    return json.dumps(content, sort_keys=True)
