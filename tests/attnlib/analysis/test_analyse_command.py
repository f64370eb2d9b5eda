"""``attnlib analyse``: from a folder and two texts, or saved traces, to a report, at once or in pieces."""

import json
from functools import partial

import pytest
from safetensors.torch import save_file

from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe
from attnlib.analysis import Stream, analyse
from attnlib.analysis.shown_text import visible
from tests.attnlib.analysis.analyse_calls import analysed, attnlib, given, refused, table_of
from tests.attnlib.analysis.test_checkpoint import SOURCE, TARGET
from tests.attnlib.analysis.test_fit_and_judge import Toy, assert_same_rows
from tests.attnlib.analysis.test_report import FILES, assert_harmless

transformers = pytest.importorskip("transformers", reason="the command loads models with transformers")


# Whole runs.


def test_a_report_is_written_and_named(whole):
    out, done = whole
    assert {path.name for path in out.iterdir() if path.is_file()} == FILES
    assert f"report: {out / 'index.html'}" in done.stderr
    told = json.loads((out / "analysis.json").read_text(encoding="utf-8"))
    assert told["about"]["Corpus"] == "a.txt, b.txt"
    assert told["about"]["Model"].startswith("tiny (T5ForConditionalGeneration, ")
    assert (told["fitted"], told["judged"], told["held_out"]) == (16, 8, True)


def test_it_says_what_the_library_says(corpus, whole):
    """The same model and pairs by hand; fitted, judged and probed as asked."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(corpus / "tiny", attn_implementation="eager")
    tokenizer = transformers.AutoTokenizer.from_pretrained(corpus / "tiny")
    ids = [tokenizer(lines)["input_ids"] for lines in (SOURCE, TARGET)]
    batches = [TokenBatch.of_rows(*(side[n : n + 4] for side in ids)) for n in range(0, 24, 4)]
    stream = Stream(HuggingFace(model).trace, batches, partial(lexical_probe, model), probed=1)
    found = analyse(stream, every=3)
    for name in ("heads", "terms", "states"):
        assert_same_rows(table_of(whole[0], name), getattr(found, name), tolerance=1e-6)
    assert len(found.heads) == 4
    assert found.heads[0]["agreement_with_probe"] >= 0


def test_the_page_shows_the_words_of_the_corpus(whole):
    read = assert_harmless((whole[0] / "index.html").read_text(encoding="utf-8"))
    held_out = f"{SOURCE[8]} {TARGET[8]}".split()  # the first pair of the third batch
    assert {visible(word) for word in held_out} <= set(read.words)
    assert "</s>" in read.words


def test_again_is_the_same_and_asks_for_nothing_new(corpus, whole, monkeypatch):
    out, _ = whole
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    passes = []
    trace = HuggingFace.trace
    monkeypatch.setattr(HuggingFace, "trace", lambda self, batch: passes.append(1) or trace(self, batch))
    analysed(corpus, out)
    assert len(passes) == 1  # of the sample that is shown
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_attentions_layers_and_heads_as_asked(corpus, tmp_path):
    analysed(
        corpus, tmp_path, "--kinds", "decoder_self,cross", "--layers", "1", "--heads", "0-1", "--probed", 0
    )
    rows = table_of(tmp_path)
    assert [(row["kind"], row["layer"], row["head"]) for row in rows] == [
        ("cross", 1, 0), ("cross", 1, 1), ("decoder_self", 1, 0), ("decoder_self", 1, 1)
    ]  # fmt: skip
    assert all(row["agreement_with_probe"] != row["agreement_with_probe"] for row in rows)
    assert [row["position_bias_share"] != 0 for row in rows] == [False, False, True, True]


def test_special_pieces_left_out(corpus, tmp_path, whole):
    analysed(corpus, tmp_path, "--ignore-special")
    assert all(row["on_ignored"] > 0 for row in table_of(tmp_path))
    assert all(row["on_ignored"] == 0 for row in table_of(whole[0]))


def test_a_corpus_too_small_to_hold_out(corpus, tmp_path):
    analysed(corpus, tmp_path, "--batch-size", 20)
    told = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    assert not told["held_out"]
    assert told["fitted"] == told["judged"] == 24
    assert "same samples" in told["notes"][0]


# In shards.


def steps(*wanted):
    """(stage, shard) as arguments."""
    return [("--stage", stage, *(() if shard is None else ("--shard", shard))) for stage, shard in wanted]


ORDERS = [
    steps(("fit", 1), ("fit", 0), ("judge", 0), ("judge", 1), ("report", None)),
    steps(("all", 1), ("all", 0), ("all", 1)),
    steps(("all", None)),
]


@pytest.fixture(scope="module")
def by_order(corpus, tmp_path_factory):
    found = []
    for order in ORDERS:
        out = tmp_path_factory.mktemp("shards")
        said = [analysed(corpus, out, "--shards", 2, *step).stderr for step in order]
        found.append((out, said))
    return found


def test_shards_in_any_order_come_to_the_same_report(by_order):
    for file in FILES:
        assert len({(out / file).read_bytes() for out, _ in by_order}) == 1
    assert len(table_of(by_order[0][0])) == 4


def test_what_remains_is_said(by_order):
    first = by_order[1][1]
    assert "the first reading of shards 0 of 2 is not finished: run them, then this command again" in first[0]
    assert "the second reading of shards 1 of 2 is not finished" in first[1]
    assert "report: " in first[2]
    assert "report: " not in first[0] + first[1]


def test_a_stage_that_the_one_before_is_not_finished_for_fails(corpus, tmp_path):
    """So that a workflow does not take it for done."""
    second = "the second reading of shards 0, 1 of 2 is not finished: run them, then this command again"
    refused(given(corpus, tmp_path, "--shards", 2, "--stage", "report"), second)
    analysed(corpus, tmp_path, "--shards", 2, "--stage", "fit", "--shard", 1)
    first = "the first reading of shards 0 of 2 is not finished"
    refused(given(corpus, tmp_path, "--shards", 2, "--stage", "judge", "--shard", 1), first)
    assert not (tmp_path / "index.html").exists()


def test_a_shard_tokenizes_its_own_lines_alone(corpus, tmp_path, counted, by_order):
    """Of six batches of four and every third held out: two blocks of three, a shard each."""
    by_shard = []
    for stage in ("fit", "judge"):
        for shard in (0, 1):
            analysed(corpus, tmp_path, "--shards", 2, "--stage", stage, "--shard", shard)
            by_shard.append(list(counted))
            counted.clear()
    assert by_shard == [SOURCE[0:8], SOURCE[12:20], SOURCE[8:12], SOURCE[20:24]]
    analysed(corpus, tmp_path, "--shards", 2, "--stage", "report")
    assert counted == SOURCE[8:12]  # the sample that is shown
    for file in FILES:
        assert (tmp_path / file).read_bytes() == (by_order[0][0] / file).read_bytes()


# Saved traces.


@pytest.fixture
def traces(tmp_path):
    """Passes that other code saved, with the weights in a file of their own."""
    folder = tmp_path / "traces"
    folder.mkdir()
    toy = Toy()
    own = toy(0).attended[0]
    maps = {"query_weight": own.query_map.weight, "key_weight": own.key_map.weight}
    save_file({f"cross.0.{name}": weight for name, weight in maps.items()}, folder / "maps.safetensors")
    for number in range(6):
        one = toy(number)
        names = ("source_tokens", "source_mask", "target_tokens", "target_outputs", "target_mask")
        states = {"query_states": one.attended[0].query_inputs, "key_states": one.attended[0].key_inputs}
        tensors = {name: getattr(one, name).clone() for name in names}
        tensors |= {f"cross.0.{name}": value.clone() for name, value in states.items()}
        save_file(tensors, folder / f"{number}.safetensors")
    return folder


def test_saved_traces(traces, tmp_path):
    done = attnlib("--traces", traces, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert len(table_of(tmp_path / "out")) == 2
    found = analyse(Stream.saved(traces))
    assert_same_rows(table_of(tmp_path / "out"), found.heads, tolerance=1e-6)
    assert "saved traces of traces" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["3.safetensors", "maps.safetensors"])
def test_other_traces_in_the_same_folder_are_refused(traces, tmp_path, name):
    """A batch that changed, or the weights of all."""
    assert attnlib("--traces", traces, "--out", tmp_path / "out").exit_code == 0
    content = bytearray((traces / name).read_bytes())
    content[-1] ^= 1
    (traces / name).write_bytes(bytes(content))
    refused(["--traces", traces, "--out", tmp_path / "out"], "part of another analysis (traces is")
