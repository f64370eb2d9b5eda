"""Killed before any change of a file, two at once, a full disk: what is there is whole, and work goes on."""

import json
import os
import random
import re
import resource
import shutil
import signal
from functools import partial

import pytest
import torch
import torch._dynamo  # an embedding loads it: once here, not in every fork

from attnlib import sealed
from attnlib.analysis.command import Request, analyse_command
from attnlib.decomposition import Components
from attnlib.errors import AttnlibError
from attnlib.files import locked
from companion.results.result import Result
from companion.runs import store as store_module
from companion.runs.archive import Archive, Measurement
from companion.runs.loop import train
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.shared import permutation_copying
from tests.attnlib.analysis.builders import save_traces
from tests.attnlib.refusals import flip
from tests.faults.conftest import COUNTS, SIZE, changes, forked

pytestmark = pytest.mark.slow

MODEL = ModelSpec("one_to_one", "AED", steps=4, width=4, batch_size=4)
TINY = {"length": 4, "width": 4, "batch_size": 4, "steps": 4, "every": 2, "held_out": 4}
COPYING = RunSpec.of("permutation_copying", **TINY)


def measure_seed(trained):
    return {"seed": trained.spec.seed, "third": 1 / 3}


def training(folder):
    store_module.train = partial(train, seconds_between_checkpoints=-1)  # after every update
    Store(folder / "models").model(MODEL)


def procedure(folder):
    course = permutation_copying.run_course
    permutation_copying.run_course = partial(course, seconds_between_saves=-1)
    Store(folder / "models").recording(COPYING)


def archive(folder):
    kept = Archive(folder / "packed", folder / "loose")
    history = {"seconds": 1.0, "device": "cpu", "threads": 1}
    for seed in range(12):
        spec = ModelSpec("one_to_one", "AED", steps=4, width=4, seed=seed)
        kept.put(Measurement(spec, measure_seed), history, {"seed": seed, "third": 0.3333333})
    kept.pack()


def components(folder):
    rng = torch.Generator().manual_seed(1)
    sums = Components(4, 3, 2, method="least_squares")
    tokens = torch.randint(4, (5, 3), generator=rng)
    sums.update(torch.randn(5, 3, 2, generator=rng), tokens, torch.ones(5, 3, dtype=torch.bool))
    for _ in range(10):
        sums.save(folder / "sums.safetensors")


def result(folder):
    values, tables = {"x": {"value": 1.5, "low": None}}, {"points": [{"x": 1, "y": 0.25}]}
    for _ in range(6):
        Result("toy", "quick", {"seeds": 3}, values, tables, {}, provenance={"code": "0"}).save(folder)


def analysis(folder):
    with locked(folder, ".traces.lock", wait=True):
        if not (folder / "traces").is_dir():
            save_traces(folder / "making", *range(4)).rename(folder / "traces")
    analyse_command(Request(folder / "report", traces=folder / "traces", shards=2, every=2))


TARGETS = {each.__name__: each for each in (training, procedure, archive, components, result, analysis)}


def contents(folder):
    """All files but locks, without what differs from run to run: when it was, and how long it took."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(".lock"):
            content = path.read_bytes().replace(str(folder).encode(), b"")
            if path.name == "history.json":
                kept = {"records", "held_out", "parameters", "tensors"}
                there = sorted(sealed.loads(content.decode()).items())
                content = json.dumps([own for own in there if own[0] in kept]).encode()
            if path.name == "analysis.safetensors":  # its checksum and its padding go by the folder's name
                content = re.sub(rb'"sha256":"\w+"| ', b"", content[8:])
            content = re.sub(rb'"seconds": ?[\d.]+|"date": ?"[^"]*"', b"", content)
            found[str(path.relative_to(folder))] = content
    return found


@pytest.fixture(params=TARGETS)
def target(request):
    return TARGETS[request.param]


def finished(target, folder, **options):
    """What work leaves in a folder where nothing disturbs it, whatever was there before."""
    folder.mkdir(exist_ok=True)
    told = folder.parent / "told"
    assert forked(partial(target, folder), told, **options) == 0, told.read_text()
    return contents(folder)


@pytest.fixture
def whole(target, tmp_path):
    """What uninterrupted work leaves, and how many changes of files it makes."""
    folder, count = tmp_path / "whole", tmp_path / "count"
    write = lambda n: count.open("a").write(".")  # noqa: E731
    return finished(target, folder, before=lambda: changes(folder, write)), count.stat().st_size


def test_killed_before_any_change_of_a_file_it_goes_on_to_the_same(target, whole, tmp_path):
    expected, made = whole
    for n in sorted(random.Random(0).sample(range(1, made + 1), min(made, 5 * SIZE))):
        folder, told = tmp_path / str(n), tmp_path / "told"
        folder.mkdir()
        before = partial(changes, folder, lambda at, n=n: at == n and signal.raise_signal(signal.SIGKILL))
        assert forked(partial(target, folder), told, before) == -signal.SIGKILL
        assert finished(target, folder) == expected, n
        COUNTS["kills, all identical after the same work was asked for again"] += 1
        shutil.rmtree(folder)


def test_out_of_room_it_is_said_in_a_line_and_goes_on_to_the_same(target, whole, tmp_path):
    (expected, _), draw = whole, random.Random(1)
    for room in sorted({1, *(draw.randrange(1, 6000) for _ in range(1 + SIZE // 2))}):
        folder, told = tmp_path / str(room), tmp_path / "told"
        folder.mkdir()

        def before(room=room):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

        code = forked(partial(target, folder), told, before)
        assert code in (0, 2), told.read_text()
        assert code == 0 or not list(folder.rglob(".*.tmp"))
        assert finished(target, folder) == expected, room
        COUNTS["disks too small, all said in a line or large enough, all identical afterwards"] += 1
        shutil.rmtree(folder)


@pytest.mark.parametrize("wanted", [lambda: torch.empty(10**15), lambda: bytearray(10**15)])
def test_out_of_memory_is_said_in_a_line(wanted, tmp_path):
    assert forked(wanted, tmp_path / "told") == 2
    assert (tmp_path / "told").read_text().startswith("error: out of memory; what was finished is kept")


def test_of_two_at_once_both_end_or_one_is_told(target, tmp_path):
    for number in range(1 + SIZE // 4):
        folder, alone = tmp_path / f"both{number}", finished(target, tmp_path / f"alone{number}")
        folder.mkdir()
        if (second := os.fork()) == 0:
            os._exit(forked(partial(target, folder), tmp_path / "second"))
        first = forked(partial(target, folder), tmp_path / "first")
        codes = [first, os.waitstatus_to_exitcode(os.waitpid(second, 0)[1])]
        told = [(tmp_path / name).read_text() for name in ("first", "second")]
        refused = target is analysis and 2 in codes  # the others wait
        assert sorted(codes) == [0, 2 * refused], told
        assert not refused or "is being written by process" in told[codes.index(2)]
        assert contents(folder) == alone
        COUNTS["pairs of writers, all whole"] += 1


def reread(target, folder):
    """What reading again what a target left comes to, in letters."""
    models = Store(folder / "models", trains=False)
    match target.__name__:
        case "training":
            found = models.model(MODEL)
            return repr([found.history, *(own.tolist() for own in found.model.state_dict().values())])
        case "procedure":
            found = models.recording(COPYING)
            return repr([found.history, *(own.tolist() for own in found.tensors.values())])
        case "components":
            return repr(Components.load(folder / "sums.safetensors").temporal.tolist())
        case "result":
            return repr(vars(Result.load(folder / "toy.json")))
        case "analysis":
            analysis(folder)
            return (folder / "report" / "heads.csv").read_text()


@pytest.mark.parametrize("target", [training, procedure, components, result, analysis])
def test_a_flipped_bit_of_any_file_is_noticed_or_moves_nothing(target, tmp_path):
    folder, draw = tmp_path / "made", random.Random(2)
    finished(target, folder)
    expected = reread(target, folder)
    marks = re.compile(r"\.lock|spec\.json|\.csv|index\.html|/traces/|report/[^/]*$")
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not marks.search(str(path))]
    for _ in range(10 * SIZE):
        path = draw.choice(paths)
        content = path.read_bytes()
        flip(path, draw.randrange(len(content)), draw.randrange(8))
        try:
            found = reread(target, folder)
        except AttnlibError:
            COUNTS["flipped bits that were noticed"] += 1
        else:
            assert found == expected, path
            COUNTS["flipped bits that moved nothing"] += 1
        path.write_bytes(content)
