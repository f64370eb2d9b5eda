"""Nothing that is given ends in a traceback or never: it is refused in a line, or it can be used."""

import json
import math
import os
import re
import shutil
import signal
from functools import cache, partial

import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from attnlib import sealed
from attnlib.adapters.tensors import read_pass
from attnlib.analysis import Stream, analyse
from attnlib.analysis.checkpoint import Checkpoint, ParallelText
from attnlib.analysis.command import analyse_command
from attnlib.decomposition import Components
from attnlib.errors import AttnlibError
from attnlib.request import Request as AnalysisRequest
from attnlib.training.checkpoint import Progress, load_newest, save_checkpoint
from companion.book.parameters import check_parallel, with_parameters
from companion.book.project import current_project, discover
from companion.claims.model import load_claims
from companion.data.labelled_sets import read_own
from companion.data.text import read_parallel
from companion.results import registry
from companion.results.request import Request
from companion.results.result import Result
from tests.attnlib.adapters.adapter_builders import FULL, PLAIN
from tests.attnlib.analysis import builders
from tests.companion.claims.claims_builders import claim, write_paper
from tests.faults.conftest import COUNTS, SIZE, forked

pytestmark = pytest.mark.slow

FOUND = [  # what once gave a traceback, a hang or a wrong number
    ("alignment_breakdown", "seeds", "1000000000"), ("context_bottleneck", "width", ""),
    ("one_step", "width", "100000000"), ("one_step", "learning_rate", "-0.0"),
    ("robustness", "embedding_scale", "1e30"), ("one_step", "steps", "9" * 400),
    ("fixed_permutation", "controls", "10000000"), ("permutation_copying", "controls", "10000000"),
    ("attention_matrices", "source", "\0"), ("agreement", "data", "~nobody-of-this-name/x"),
]  # fmt: skip
WORDS = ["", " ", ",", "0", "-0.0", "nan", "inf", "1e400", "None", "[]", "(1,", "true", "0x10"]
WORDS += ["1_000", "½", "\x00", "9" * 30, "../..", "$(id)", "{x}", "\u2028", "\ud800", "scan,scan", "🙂" * 9]
TEXTS = st.sampled_from(WORDS) | st.integers().map(str) | st.floats().map(str) | st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | TEXTS,
    lambda own: st.lists(own, max_size=3) | st.dictionaries(st.text(max_size=5), own, max_size=3),
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
        found = use()
    except AttnlibError as error:
        COUNTS[f"{kind}: refused in a line" if str(error) else f"{kind}: REFUSED WITHOUT A WORD"] += 1
        return None
    finally:
        signal.alarm(0)
    COUNTS[f"{kind}: used"] += 1
    return found


@cache
def settings_of_figures():
    figures = discover(current_project()).values()
    profiles = {figure.experiment: registry.load(figure.experiment).PROFILES for figure in figures}
    return [(name, own) for name, known in profiles.items() for own in vars(known["quick"])]


def asked(figure, name, value):
    request = with_parameters(Request(figure), [f"{name}={value}"])
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


@tried(st.binary(max_size=300), st.binary(max_size=300), st.sampled_from(["utf-8", "utf-16", "ascii"]), TEXTS)
def test_parallel_texts(tmp_path, source, target, encoding, line):
    """Line n of what is read has the words of line n."""
    paths = tmp_path / "a", tmp_path / "b"
    paths[0].write_bytes(source + 20 * (line + " b\n").encode(encoding, "replace"))
    paths[1].write_bytes(target + 20 * (line + " c\r\n").encode(encoding, "replace"))
    found = outcome("parallel texts", lambda: (check_parallel(*paths), read_parallel(*paths))[1])
    for path, read in zip(paths, found or (), strict=found is not None):
        lines = path.read_bytes().decode("utf-8-sig").removesuffix("\n").split("\n")
        assert [own.split() for own in read] == [own.split() for own in lines]


LINE = TEXTS.map(lambda text: re.sub(r"[\t\r\n]", " ", text))
ROW = st.tuples(LINE, st.sampled_from(["yes", "no", " no"])) | st.lists(LINE, max_size=3)


@tried(st.lists(ROW, max_size=4), st.sampled_from(["\t", "\t", "\t", ","]), st.binary(max_size=2))
def test_tables(tmp_path, rows, separator, more):
    """Texts and labels are those of the lines, in their order."""
    rows = [["text", "label"], *[["a b", "yes"], ["c", "no"]] * 15, *rows]
    lines = [separator.join(row) for row in rows]
    (tmp_path / "t.tsv").write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + b"\n" + more)
    found = outcome("tables", lambda: read_own(tmp_path / "t.tsv", {}))
    if found is not None and not more:
        read = [(text, found.classes[label]) for text, label in found.train]
        assert read == [(text, label.strip()) for text, label in filter(any, rows[1:])]


def analysed(path):
    analyse_command(AnalysisRequest(path.parent / "report", traces=path.parent))


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
    found = outcome("components", lambda: Components.load(tmp_path / "c"))
    assert found is None or bool(found.temporal.isfinite().all())


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
    found = read_pass(tmp_path / "0.safetensors")
    for one in found.attended:
        sums = found.softmax(one, 0).sum(-1)[found.allowed(one).any(-1)]
        assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
    for side in ("source", "target"):
        given = tensors[f"{side}_tokens"][tensors[f"{side}_mask"].bool()]
        assert found.tokens(side)[found.mask(side)].tolist() == given.tolist()


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    pytest.importorskip("transformers", reason="model folders are read with transformers")
    folder = tmp_path_factory.mktemp("model")
    builders.text_of(folder)
    return builders.save_checkpoint(folder / "tiny")


@tried(st.data(), JSON)
def test_model_folders(model_folder, tmp_path, data, content):
    """One entry of a file is another, or all of it; or the file is cut, or empty. What is read attends."""
    folder = shutil.copytree(model_folder, tmp_path / "tiny", dirs_exist_ok=True)
    path = data.draw(st.sampled_from(sorted(folder.glob("*.json"))))
    text = path.read_text(encoding="utf-8")
    place = whole = json.loads(text)
    while data.draw(st.integers(0, 3)) and isinstance(place, dict) and place:
        before, name = place, data.draw(st.sampled_from(sorted(place)))
        place = place[name]
    if place is whole:
        path.write_text(text[: data.draw(st.integers(0, len(text)))], encoding="utf-8")
    else:
        before[name] = content
        path.write_text(json.dumps(whole), encoding="utf-8")
    texts = ParallelText(model_folder.parent / "a.txt", model_folder.parent / "b.txt")

    def attended():
        stream = Checkpoint.load(str(folder)).stream(texts)
        return stream.trace(next(iter(stream.batches())))

    found = outcome("model folders", attended)
    assert found is None or bool(found.attended[0].attention.isfinite().all())


@tried(JSON, st.sampled_from(["content", "step", "records", "sha256", "seal", "all"]))
def test_side_files_of_checkpoints(tmp_path, content, altered):
    model = torch.nn.Linear(1, 1)
    optimiser = torch.optim.Adam(model.parameters())
    save_checkpoint(tmp_path, model, optimiser, Progress(5, []))
    path = tmp_path / "step-00000005.json"
    side = json.loads(path.read_text())
    place = side if altered in side else side["content"]
    place[altered] = content
    path.write_text(json.dumps(content if altered == "all" else side))
    assert load_newest(tmp_path, model, optimiser) in (Progress(0, []), Progress(5, []))
    COUNTS["side files of checkpoints: passed over, or the same"] += 1


@tried(st.data(), JSON)
def test_claims(tmp_path, data, content):
    own = claim("a-claim")
    own[data.draw(st.sampled_from([*own, "about", "published", "presupposes", "smallest_effect"]))] = content
    write_paper(tmp_path, own)
    text = (tmp_path / "p.yaml").read_text()
    if data.draw(st.booleans()):
        (tmp_path / "p.yaml").write_text(text[: data.draw(st.integers(0, len(text) - 5))])
        assert outcome("claims", lambda: load_claims(tmp_path)) is None
    else:
        outcome("claims", lambda: load_claims(tmp_path))


@tried(st.data(), JSON)
def test_results(tmp_path, data, content):
    made = Result("toy", "quick", {"n": 1}, {"x": 1.5}, {"t": [{"a": 1}]}, {}, provenance={"code": "0"})
    path = made.save(tmp_path)
    if data.draw(st.booleans()):
        path = path.with_name("toy.provenance.json")
    found = json.loads(path.read_text())
    found[data.draw(st.sampled_from([*found, "more"]))] = content
    path.write_text(json.dumps(found))
    again = outcome("results", lambda: Result.load(tmp_path / "toy.json"))
    assert again is None or again.digest == made.digest


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
