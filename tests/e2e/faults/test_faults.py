"""Killed, out of room, damaged or given anything: what is there is whole, and what is wrong is a line."""

import codecs
import io
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import sys
import traceback
from functools import cache, partial
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from attnlib import sealed
from attnlib.adapters.tensors import read_pass
from attnlib.analysis import Stream
from attnlib.commands.analyse import analyse_command
from attnlib.decomposition import Components
from attnlib.errors import AttnlibError, CorruptFile, line_of
from attnlib.files import locked
from attnlib.options import AnalyseOptions
from attnlib.report import analyse
from attnlib.report.pretrained import Checkpoint
from attnlib.report.texts import ParallelText
from companion.book.parameters import check_parallel, request_of
from companion.book.project import current_project, discover
from companion.claims.model import load_claims
from companion.data.labelled_sets import read_own
from companion.data.text import read_parallel
from companion.results import registry
from companion.results.committed import altered, write_checksums
from companion.results.request import Request
from companion.results.result import Result
from companion.runs import store as store_module
from companion.runs.archive import Archive
from companion.runs.encoder_decoder import train
from companion.runs.measure import Measurement, measure
from companion.runs.procedure import RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from notebooks.shared.trainings import permutation_copying
from tests.attnlib.adapters.adapter_builders import FULL, PLAIN
from tests.attnlib.analysis import builders
from tests.attnlib.refusals import flip
from tests.companion.claims.claims_builders import claim, write_paper
from tests.e2e.faults.conftest import COUNTS, SIZE
from tests.tables import beside

pytestmark = pytest.mark.slow


def forked(work, log: Path, before=lambda: None) -> int:
    """Exit code of some work in a process of its own, or minus the signal; what it says goes to a file.

    A mistake of the code is code 1, with its traceback.
    """
    if (child := os.fork()) == 0:
        code, sys.stdout = 1, io.StringIO()
        sys.stderr = sys.stdout
        os.fsync = lambda handle: None  # a killed process loses nothing that it has written
        try:
            before()
            work()
            code = 0
        except BaseException as error:
            line, code = line_of(error) or (traceback.format_exc(), 1)
            print(line)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            log.write_text(sys.stdout.getvalue())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate"}


def changes(folder: Path, then) -> None:
    """From now on, call ``then(n)`` before the n-th change of a file below a folder by this process."""
    made = 0

    def hook(event, arguments):
        nonlocal made
        flags = arguments[2] if event == "open" else 0
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
        if (writes or event in CHANGES) and str(arguments[0]).startswith(str(folder)):
            made += 1
            then(made)

    sys.addaudithook(hook)


# -- killed, two at once, a full disk, a flipped bit: what is there is whole, and work goes on ---------------

MODEL = ModelSpec("one_to_one", "AED", steps=4, width=4, batch_size=4)
TINY = {"length": 4, "width": 4, "batch_size": 4, "steps": 4, "every": 2, "held_out": 4}
COPYING = RunSpec.of("permutation_copying", **TINY)


@measure(version=1)
def measure_seed(trained):
    return {"seed": trained.spec.seed, "third": 1 / 3}


def training(folder):
    store_module.train = partial(train, seconds_between_saves=-1)  # after every update
    Store(folder / "models").model(MODEL)


def procedure(folder):
    whole = permutation_copying.train_network
    permutation_copying.train_network = partial(whole, seconds_between_saves=-1)
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
    sums = Components(2, n_tokens=4, n_positions=3, method="least_squares")
    tokens = torch.randint(4, (5, 3), generator=rng)
    sums.update(torch.randn(5, 3, 2, generator=rng), tokens, torch.ones(5, 3, dtype=torch.bool))
    for _ in range(10):
        sums.save(folder / "sums.safetensors")


def result(folder):
    values, tables = {"x": {"value": 1.5, "low": None}}, {"points": [{"x": 1, "y": 0.25}]}
    schemas = {"points": {"row": "a point", "schema": {"fields": [{"name": "x"}, {"name": "y"}]}}}
    origin = {"provenance": {"commit": "0"}, "schemas": schemas}
    for _ in range(6):
        Result("toy", "quick", {"seeds": 3}, values, tables, {}, **origin).save(folder)


def analysis(folder):
    with locked(folder, ".traces.lock", wait=True):
        if not (folder / "traces").is_dir():
            builders.save_traces(folder / "making", *range(4)).rename(folder / "traces")
    analyse_command(AnalyseOptions(folder / "report", traces=folder / "traces", shards=2, every=2))


def contents(folder):
    """All files but locks, without what differs from run to run: when it was, and how long it took."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(".lock"):
            content = path.read_bytes().replace(str(folder).encode(), b"")
            if path.name == "history.json":
                kept = {"records", "held_out", "parameters", "tensors"}
                there = sorted(sealed.loads(content.decode()).items())
                content = json.dumps([entry for entry in there if entry[0] in kept]).encode()
            if path.name == "analysis.safetensors":  # its checksum and its padding go by the folder's name
                content = re.sub(rb'"sha256":"\w+"| ', b"", content[8:])
            content = re.sub(rb'"seconds": ?[\d.]+|"date": ?"[^"]*"', b"", content)
            files[str(path.relative_to(folder))] = content
    return files


@pytest.fixture(params=[training, procedure, archive, components, result, analysis])
def target(request):
    return request.param


def finished(target, folder, **options):
    """What work leaves in a folder where nothing disturbs it, whatever was there before."""
    folder.mkdir(exist_ok=True)
    log = folder.parent / "told"
    assert forked(partial(target, folder), log, **options) == 0, log.read_text()
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
        folder, log = tmp_path / str(n), tmp_path / "told"
        folder.mkdir()
        before = partial(changes, folder, lambda at, n=n: at == n and signal.raise_signal(signal.SIGKILL))
        assert forked(partial(target, folder), log, before) == -signal.SIGKILL
        assert finished(target, folder) == expected, n
        COUNTS["kills, all identical after the same work was asked for again"] += 1
        shutil.rmtree(folder)


def test_a_run_that_ran_out_of_room_goes_on_to_the_same(target, whole, tmp_path):
    (expected, _), draw = whole, random.Random(1)
    for room in sorted({1, *(draw.randrange(1, 6000) for _ in range(1 + SIZE // 2))}):
        folder, log = tmp_path / str(room), tmp_path / "told"
        folder.mkdir()

        def before(room=room):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

        code = forked(partial(target, folder), log, before)
        assert code in (0, 2), log.read_text()
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
        logs = [(tmp_path / name).read_text() for name in ("first", "second")]
        refused = target is analysis and 2 in codes  # the others wait
        assert sorted(codes) == [0, 2 * refused], logs
        assert not refused or "is being written by process" in logs[codes.index(2)]
        assert contents(folder) == alone
        COUNTS["pairs of writers, all whole"] += 1


def reread(target, folder):
    """What reading again what a target left comes to, in letters."""
    if target is result:
        for line in altered(folder):
            raise CorruptFile(line)
        return repr(vars(Result.load(folder / "toy.json")))
    if target is analysis:
        analysis(folder)
        return (folder / "report" / "heads.csv").read_text()
    product = Store(folder / "models", trains=False).open(MODEL if target is training else COPYING)
    tensors = product.model.state_dict() if target is training else product.tensors
    return repr([product.history, *(tensor.tolist() for tensor in tensors.values())])


@pytest.mark.parametrize("target", [training, procedure, result, analysis])  # components: of all their bits
def test_a_flipped_bit_of_any_file_is_noticed_or_moves_nothing(target, tmp_path):
    folder, draw = tmp_path / "made", random.Random(2)
    finished(target, folder)
    if target is result:  # as a committed one is kept
        write_checksums(folder)
    expected = reread(target, folder)
    marks = re.compile(r"\.lock|run\.json|index\.html|/traces/|report/[^/]*$")
    paths = [folder / name for name in contents(folder) if not marks.search(f"/{name}")]
    for _ in range(10 * SIZE):
        path = draw.choice(paths)
        content = path.read_bytes()
        flip(path, draw.randrange(len(content)), draw.randrange(8))
        try:
            again = reread(target, folder)
        except AttnlibError:
            COUNTS["flipped bits that were noticed"] += 1
        else:
            assert again == expected, path
            COUNTS["flipped bits that moved nothing"] += 1
        path.write_bytes(content)


# -- whatever is given is refused in a line, or can be used -------------------------------------------------

FOUND = [*beside(__file__, "found"), ["one_step", "steps", "9" * 400]]
WORDS = ["", " ", ",", "0", "-0.0", "nan", "inf", "1e400", "None", "[]", "(1,", "true", "0x10"]
WORDS += ["1_000", "½", "\x00", "9" * 30, "../..", "$(id)", "{x}", "\u2028", "\ud800", "scan,scan", "🙂" * 9]
TEXTS = st.sampled_from(WORDS) | st.integers().map(str) | st.floats().map(str) | st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | TEXTS,
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=8,
)


def tried(*strategies, factor=1):
    """With what is drawn, as often as the size of the round says."""
    quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    often = settings(max_examples=int(10 * SIZE * factor), suppress_health_check=quiet)
    return lambda test: often(given(*strategies)(test))


def hangs(*_):
    raise TimeoutError("it hangs")


def outcome(kind, use):
    """Whatever it raises must be one of our own errors, and soon."""
    signal.signal(signal.SIGALRM, hangs)
    signal.alarm(120)
    try:
        answer = use()
    except AttnlibError as error:
        COUNTS[f"{kind}: refused in a line" if str(error) else f"{kind}: REFUSED WITHOUT A WORD"] += 1
        return None
    finally:
        signal.alarm(0)
    COUNTS[f"{kind}: used"] += 1
    return answer


@cache
def settings_of_figures():
    figures = discover(current_project()).values()
    quick = {figure.experiment: registry.load(figure.experiment).PROFILES["quick"] for figure in figures}
    return [(name, setting) for name, config in quick.items() for setting in vars(config)]


def asked(figure, name, value):
    request = request_of(figure, "quick", [f"{name}={value}"])
    if request.config.__dict__.get("steps") != 0:
        registry.load(request.experiment).models(request.config)
    return request


@pytest.mark.parametrize("example", FOUND)
def test_settings_that_made_no_sense_are_refused(example):
    assert outcome("settings", lambda: asked(*example)) is None


@tried(st.data(), TEXTS, factor=2)
def test_settings(data, value):
    figure, name = data.draw(st.sampled_from(settings_of_figures()))
    outcome("settings", lambda: asked(figure, name, value))


# The longer mark of UTF-32 begins as the one of UTF-16 does.
MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]


def text_of(content: bytes) -> str | None:
    """A file's text: in UTF-8, unless a byte-order mark names another encoding; None where NULs tell it."""
    encoding = next((encoding for mark, encoding in MARKS if content.startswith(mark)), None)
    if encoding is None and b"\0" in content:
        return None
    return content.decode(encoding or "utf-8-sig").replace("\ufeff", "")


@tried(st.binary(max_size=300), st.binary(max_size=300), st.sampled_from(["utf-8", "utf-16", "ascii"]), TEXTS)
def test_parallel_texts(tmp_path, source, target, encoding, line):
    """Line n of what is read has the words of line n."""
    paths = tmp_path / "a", tmp_path / "b"
    paths[0].write_bytes(source + (20 * (line + " b\n")).encode(encoding, "replace"))
    paths[1].write_bytes(target + (20 * (line + " c\r\n")).encode(encoding, "replace"))
    pairs = outcome("parallel texts", lambda: (check_parallel(*paths), read_parallel(*paths))[1])
    for path, read in zip(paths, pairs or (), strict=pairs is not None):
        text = text_of(path.read_bytes())
        if text is not None:
            lines = text.removesuffix("\n").split("\n")
            assert [words.split() for words in read] == [words.split() for words in lines]


LINE = TEXTS.map(lambda text: re.sub(r"[\t\r\n]", " ", text))
ROW = st.tuples(LINE, st.sampled_from(["yes", "no", " no"])) | st.lists(LINE, max_size=3)


@tried(st.lists(ROW, max_size=4), st.sampled_from(["\t", "\t", "\t", ","]), st.binary(max_size=2))
def test_tables(tmp_path, rows, separator, more):
    """Texts and labels are those of the lines, in their order."""
    rows = [["text", "label"], *[["a b", "yes"], ["c", "no"]] * 15, *rows]
    lines = [separator.join(row) for row in rows]
    (tmp_path / "t.tsv").write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + b"\n" + more)
    table = outcome("tables", lambda: read_own(tmp_path / "t.tsv", {}))
    if table is not None and not more:
        read = [(text, table.classes[label]) for text, label in table.train]
        assert read == [(text, label.strip()) for text, label in filter(any, rows[1:])]


def analysed(path):
    analyse_command(AnalyseOptions(path.parent / "report", traces=path.parent))


@pytest.mark.parametrize(
    "read",
    [lambda path: check_parallel(path, path), lambda path: read_own(path, {}), Components.load, analysed],
)
def test_a_pipe_without_a_writer_is_no_file(read, tmp_path):
    os.mkfifo(tmp_path / "p.safetensors")
    code = forked(partial(read, tmp_path / "p.safetensors"), tmp_path / "told", partial(signal.alarm, 20))
    assert code == 2, (tmp_path / "told").read_text()


TABLES = st.sampled_from(["position_sums", "token_sums", "pair_counts", "square_sum", "more"])
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
KINDS = st.sampled_from([torch.float64, torch.float32, torch.int64, torch.bool, torch.bfloat16])
FILLED = st.builds(lambda *of: torch.full(*of[:2]).to(of[2]), SHAPES, st.floats(-2, 2), KINDS)


@tried(st.dictionaries(TABLES, FILLED), st.sampled_from(["means", "least_squares", "x"]))
def test_components(tmp_path, tables, method):
    ones = torch.ones(3, 2, dtype=torch.float64)
    sound = {"position_sums": ones[:2], "token_sums": ones, "pair_counts": ones.long()}
    sealed.save_file(sound | tables, tmp_path / "c", {"format": "attnlib.components/1", "method": method})
    read = outcome("components", lambda: Components.load(tmp_path / "c"))
    assert read is None or bool(read.temporal.isfinite().all())


SIZES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
NUMBERS = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 9.0, 1e30, math.nan, math.inf])
PARTS = (*PLAIN, *FULL, "cross.0.attention", "cross.0.scale", "lexical_probe", "cross.9.key_states", "x")


@st.composite
def traces(draw):
    """Sound tensors of a pass; some of them gone, others in their places, of any shape, kind and number."""
    made = dict(draw(st.sampled_from([PLAIN, FULL])))
    for name in draw(st.lists(st.sampled_from(PARTS), max_size=2)):
        made.pop(name, None)
    for name in draw(st.lists(st.sampled_from(PARTS), max_size=2)):
        shape = made[name].shape if name in made else draw(SIZES)
        made[name] = torch.full(draw(st.just(shape) | SIZES), draw(NUMBERS)).to(draw(KINDS))
    return made


@tried(traces(), factor=2)
def test_traces(tmp_path, tensors):
    """What is read is a pass whose every head has finite scores, and attention that sums to one."""
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, tmp_path / "0.safetensors")
    stream = Stream.saved(tmp_path)
    if outcome("traces", lambda: analyse(stream, every=1)) is None:
        return
    model_pass = read_pass(tmp_path / "0.safetensors")
    for attention in model_pass.attentions:
        sums = model_pass.softmax(attention, 0).sum(-1)[model_pass.allowed(attention).any(-1)]
        assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
    for side in ("source", "target"):
        given = tensors[f"{side}_tokens"][tensors[f"{side}_mask"].bool()]
        assert model_pass.tokens(side)[model_pass.mask(side)].tolist() == given.tolist()


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    pytest.importorskip("transformers", reason="model folders are read with transformers")
    folder = tmp_path_factory.mktemp("model")
    builders.text_of(folder)
    return builders.save_checkpoint(folder / "tiny")


def alter(path, data, content):
    """One entry of a file of JSON is another, or new, or all of it is; or the file is cut, or empty."""
    text = path.read_text(encoding="utf-8")
    place = whole = json.loads(text)
    while data.draw(st.integers(0, 3)) and isinstance(place, dict):
        before, name = place, data.draw(st.sampled_from([*sorted(place), "more"]))
        place = place.get(name)
    if place is not whole:
        before[name] = content
        text = json.dumps(whole)
    elif (end := data.draw(st.integers(-1, len(text)))) >= 0:
        text = text[:end]
    else:
        text = json.dumps(content)
    path.write_text(text, encoding="utf-8")


@tried(st.data(), JSON)
def test_model_folders(model_folder, tmp_path, data, content):
    """What is read attends."""
    folder = shutil.copytree(model_folder, tmp_path / "tiny", dirs_exist_ok=True)
    alter(data.draw(st.sampled_from(sorted(folder.glob("*.json")))), data, content)
    texts = ParallelText(model_folder.parent / "a.txt", model_folder.parent / "b.txt")

    def attended():
        stream = Checkpoint.load(str(folder)).stream(texts)
        return stream.trace(next(iter(stream.batches())))

    model_pass = outcome("model folders", attended)
    assert model_pass is None or bool(model_pass.attentions[0].weights.isfinite().all())


@tried(st.data(), JSON)
def test_claims(tmp_path, data, content):
    entry = claim("a-claim")
    entry[data.draw(st.sampled_from([*entry, "about", "published", "presupposes", "smallest_effect"]))] = (
        content
    )
    write_paper(tmp_path, entry)
    text = (tmp_path / "p.yaml").read_text()
    if data.draw(st.booleans()):
        (tmp_path / "p.yaml").write_text(text[: data.draw(st.integers(0, len(text) - 5))])
        assert outcome("claims", lambda: load_claims(tmp_path)) is None
    else:
        outcome("claims", lambda: load_claims(tmp_path))


@tried(st.data(), JSON)
def test_results(tmp_path, data, content):
    schemas = {"t": {"row": "a row", "schema": {"fields": [{"name": "a"}]}}}
    origin = {"provenance": {"commit": "0"}, "schemas": schemas}
    made = Result("toy", "quick", {"n": 1}, {"x": 1.5}, {"t": [{"a": 1}]}, {}, **origin)
    made.save(tmp_path)
    alter(tmp_path / data.draw(st.sampled_from(["toy.json", "toy.provenance.json"])), data, content)
    again = outcome("results", lambda: Result.load(tmp_path / "toy.json"))
    if again is not None:  # whether a committed one is as it was written, checksums say: see flipped bits
        assert all(isinstance(part, dict) for part in (again.config, again.values, again.provenance))
        assert len(again.digest) == 12


@tried(JSON | st.fixed_dictionaries({"figure": JSON, "profile": JSON, "parameters": JSON}))
def test_run_json(tmp_path, content):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(content))
    outcome("run.json", lambda: Request.read(path).config)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\udcff"])
def test_json_that_is_none(tmp_path, text):
    (tmp_path / "run.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert outcome("run.json", lambda: Request.read(tmp_path / "run.json")) is None
    (tmp_path / "claims.yaml").write_bytes(yaml.safe_dump(text).encode("utf-8", "replace"))
    assert outcome("claims", lambda: load_claims(tmp_path)) is None
