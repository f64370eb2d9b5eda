"""The lines of the quick start and the reference pages, as they are printed; networks of the package."""

import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
import torch

from attnlib import EncoderDecoder, Stream, analyse, zoo
from attnlib.adapters import encoder_decoder_pass
from attnlib.analysis.learned import has_learned
from attnlib.errors import Altered
from attnlib.models.classifiers import AttentiveClassifier, logit_of
from attnlib.models.corpus import collate
from attnlib.models.sequence_to_sequence import SequenceConfig, SequenceToSequence
from attnlib.probes.lexical_probe import log_lexical_probe
from tests.attnlib.adapters.adapter_builders import BATCH, Translator, drawn, model_of
from tests.attnlib.adapters.single_stacks import model_of as single_model
from tests.attnlib.analysis.builders import LINES, Toy, said_by, save_checkpoint, text_of, tokenizer_of
from tests.attnlib.refusals import flip, refused

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "book/how_to.md", *sorted((ROOT / "book/reference").glob("*.md"))]
PAGE = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)


def block(language, word):
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (chosen,) = (text for text in blocks if word in text)
    return chosen


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield tmp_path


@pytest.fixture
def tiny(here):
    """A checkpoint of two layers, and two texts with the names that they have on the page."""
    save_checkpoint(here / "tiny")
    text = text_of(here)
    text.source.rename("my.en")
    text.target.rename("my.de")


def test_a_checkpoint_with_two_texts(here, tiny):
    lines = block("python", "import Checkpoint").replace("[0, 5]", "[0, 1]")
    named = lines.replace('"Helsinki-NLP/opus-mt-en-de"', '"./tiny"')
    assert named != lines
    exec(compile(named, "reference", "exec"), {})
    report = (here / "report/index.html").read_text(encoding="utf-8")
    assert "<bdi>chien</bdi>" in report  # words, not ids
    assert "agreement with the lexical probe" in report
    assert all((here / f"{name}.png").stat().st_size > 1_000 for name in ("heads", "attention"))


def test_word_alignments(here, tiny):
    (here / "my.gold").write_text("0-0 1-2\n" * 24, encoding="utf-8")
    lines = block("python", "import align\n").replace("layer=2", "layer=1")
    named = lines.replace('"Helsinki-NLP/opus-mt-en-de"', '"./tiny"')
    assert named != lines
    exec(compile(named, "reference", "exec"), given := {})
    assert len(given["pairs"].to_pharaoh().splitlines()) == 24


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but")
@pytest.mark.parametrize("first", [True, False])
def test_an_nn_transformer(here, first):
    given = {"model": drawn(Translator(batch_first=first)), "batches": [BATCH] * 5}
    exec(compile(block("python", "import Hooked, Modules, Stream, report\n"), "reference", "exec"), given)
    report = said_by(here / "report")
    assert (len(report["heads"]), report["learned"]["sentences"]) == (4, 4)
    assert report["heads"][0]["rows_probed"] > 0


def test_shares_against_interventions():
    given = {"stream": Stream(Toy(), range(10))}
    exec(compile(block("python", "interventions=True"), "reference", "exec"), given)
    assert given["analysis"].interventions


def test_any_modules_by_their_names(here):
    exec(compile(block("python", "class Reader"), "reference", "exec"), {})
    report = said_by(here / "report")
    assert [row["head"] for row in report["heads"]] == [0, 1]
    assert report["unchecked"] == []
    assert report["heads"][0]["rows_probed"] > 0
    assert report["learned"]["sentences"] == 2 * 16
    # Its states are words and nothing else; the start mark alone is always at one place.
    for row in report["heads"]:
        assert row["temporal_share"] == pytest.approx(0, abs=1e-6) == row["residual_share"]
        assert row["input_share"] > 0.8


def report_of_saved_traces(lines, folder):
    exec(compile(lines, "reference", "exec"), {})
    return said_by(folder / "report")


def input_shares(report):
    return [row["covariance_share"] for row in report["terms"] if row["term"].endswith("·input")]


def test_saved_traces_are_analysed(here):
    report = report_of_saved_traces(block("python", "maps.safetensors"), here)
    assert (report["fitted"], report["judged"], report["unchecked"]) == (64, 16, ["cross.0"])
    assert all(abs(share) >= 1e-12 for share in input_shares(report))


def test_of_one_word_everywhere_no_word_explains_anything(here):
    """As for pictures and sound."""
    words = "torch.randint(0, 50, (8, 12), generator=rng)"
    lines = block("python", "maps.safetensors")
    assert words in lines
    report = report_of_saved_traces(lines.replace(words, "torch.zeros(8, 12).long()"), here)
    assert (report["fitted"], report["judged"], report["unchecked"]) == (64, 16, ["cross.0"])
    assert all(abs(share) < 1e-12 for share in input_shares(report))


def test_an_encoder_of_sound(here):
    """With a small Whisper, which hears one second, and another vocabulary."""
    transformers = pytest.importorskip("transformers")
    hears = transformers.WhisperFeatureExtractor(feature_size=4, chunk_length=1)
    tokenizer = tokenizer_of(LINES)
    sizes = {"vocab_size": len(tokenizer), "max_source_positions": 50, "max_target_positions": 20}
    processor, rng = transformers.WhisperProcessor(hears, tokenizer), torch.Generator().manual_seed(0)
    model = model_of("Whisper", **sizes)
    sounds = [torch.randn(16_000, generator=rng).numpy() for _ in range(40)]
    given = {"model": model, "processor": processor, "sounds": sounds, "texts": LINES[:40]}
    exec(compile(block("python", "import FrameBatch"), "reference", "exec"), given)
    report = said_by(here / "report")
    assert (report["source"], report["fitted"], report["judged"]) == ("frames", 32, 8)
    assert report["learned"]["sentences"] == 8
    assert "<bdi>chien</bdi>" in (here / "report/index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["GPT2", "Bert"])
def test_a_decoder_or_an_encoder_alone(here, name):
    tokenizer = tokenizer_of(LINES)
    model = single_model(name, vocab_size=len(tokenizer))
    given = {"model": model, "tokenizer": tokenizer, "texts": LINES}
    exec(compile(block("python", "attnlib.analyse(model, texts"), "reference", "exec"), given)
    report = said_by(here / "report")
    kind = "encoder_self" if name == "Bert" else "decoder_self"
    assert {row["kind"] for row in report["heads"]} == {kind}
    assert report["fitted"] + report["judged"] == len(LINES)
    assert bool(report["learned"]) == (name == "GPT2")
    assert "<bdi>the</bdi>" in (here / "report/index.html").read_text(encoding="utf-8")


def test_a_network_of_the_package(here):
    exec(compile(block("python", "zoo"), "reference", "exec"), {})
    assert len(said_by(here / "report")["heads"]) == 4


@pytest.mark.long
def test_a_corpus_in_shards(here, tiny):
    """As printed, but for a name and the number of shards."""
    pytest.importorskip("snakemake", reason="the workflow is of the book")
    workflow = "workflows/analyse.smk"
    line = block("bash", workflow).replace("\\\n", "")
    changed = {"FOLDER": "tiny", "shards=8": "shards=2", workflow: str(ROOT / workflow)}
    changed["--layers 0-3"] = "--layers 0-1 --batch-size 4 --every 3"
    for old, new in changed.items():
        line = line.replace(old, new)
    command = [sys.executable, "-m", *shlex.split(line)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(said_by(here / "report")["heads"]) == 4


# Networks inside the package: they have learned, say what made them, and are read as they were written.


# A quarter of the words that the translator is to write change places with the next, by chance.
LEAST = {"lexicon_translator": 0.8}


def test_the_zoo_has_a_network_of_each_kind():
    networks = [zoo.load(name).network for name in zoo.NAMES]
    assert {type(network) for network in networks} == set(get_args(zoo.Network))
    kinds = {member.config.architecture for member in networks if isinstance(member, EncoderDecoder)}
    assert kinds == {"AED", "AO", "VED"}


def test_the_zoo_is_small():
    assert sum(path.stat().st_size for path in zoo.FOLDER.glob("*.safetensors")) < 1_100_000


@pytest.mark.parametrize("name", zoo.NAMES)
def test_a_network_has_learned_what_its_record_says(name):
    trained = zoo.load(name)
    made = trained.provenance
    keys = {"spec", "commit", "date", "packages", "python", "seconds", "accuracy", "sha256"}
    assert made.keys() == keys
    settings = made["spec"].get("settings", made["spec"])
    assert (
        name.startswith(settings["task"])
        if "task" in settings
        else settings["network"] == type(trained.network).__name__
    )
    assert made["accuracy"] > LEAST.get(name, 0.9)
    # Of sentences that it was trained on, the same but for chance.
    batch = collate(trained.corpus, range(800))
    if isinstance(trained.network, AttentiveClassifier):
        plus = batch.target_output[:, 0] == trained.words["target"].index("plus")
        right = (logit_of(trained.network(batch.source, batch.source_mask)) > 0) == plus
    else:
        right = (trained.network(batch).logits.argmax(-1) == batch.target_output)[batch.target_mask]
    assert float(right.double().mean()) == pytest.approx(made["accuracy"], abs=0.02)
    for side, words in trained.words.items():
        assert trained.word(side, 0) == "<pad>"
        assert getattr(trained.corpus, f"{side}_ids").max() < len(words)


@pytest.mark.parametrize("name", [entry for entry in zoo.NAMES if not entry.endswith(("VED", "classifier"))])
def test_those_with_attention_are_analysed(name):
    trained = zoo.load(name)
    kinds = ("cross", "encoder_self") if name == "reordering" else ("cross",)
    analysis = analyse(trained.stream(kinds=kinds))
    assert name != "one_to_one_AO" or analysis.heads[0]["temporal_low"] > 0.5  # words keep their order
    assert has_learned(analysis.learned)
    assert analysis.unchecked == ()
    assert analysis.fitted + analysis.judged == len(trained.corpus) == 800
    assert {row["kind"] for row in analysis.heads} == set(kinds)


def test_the_translator_is_probed_without_training():
    """β of a word is largest at the word of the lexicon that it translates."""
    trained = zoo.load("lexicon_translator")
    batch = collate(trained.corpus, range(100))
    states, valid = trained.network(batch), batch.target_mask
    probe = log_lexical_probe(
        trained.network.readout,
        states.encoder_states,
        states.decoder_states,
        outputs=batch.target_output,
        source_mask=batch.source_mask,
        target_mask=valid,
    )
    best = batch.source.gather(1, probe.argmax(-1))[valid].tolist()
    pairs = zip(best, batch.target_output[valid].tolist(), strict=True)
    words = [
        (trained.word("source", word), trained.word("target", other)) for word, other in pairs if other > 3
    ]
    assert sum(word.replace("s", "t") == other for word, other in words) / len(words) > 0.9


def pass_of_decoder(**changes):
    """Of one that is trained no further; its words are those of another's corpus."""
    config = SequenceConfig(source_size=60, target_size=60, width=8, **changes)
    network = SequenceToSequence(config, torch.Generator().manual_seed(0)).eval()
    return encoder_decoder_pass(network, collate(zoo.load("reordering").corpus, range(3)))


def stream(name, **options):
    return zoo.load(name).stream(**options)


test_what_is_not_there_is_refused = refused(
    (partial(stream, "one_to_one_VED"), "VED has no attention between two texts: there is no analysis"),
    (partial(stream, "polarity_classifier"), "AttentiveClassifier has no attention between two texts"),
    (partial(stream, "reordering", kinds=("crosss",)), "no attention 'crosss'; did you mean 'cross'"),
    (partial(stream, "one_to_one_AO", kinds=("encoder_self",)),
     "AO has cross-attention alone: there is no analysis of encoder_self"),
    (lambda: pass_of_decoder(scoring="additive"),
     "scores are 'additive'; only products of a query and a key have nine terms"),
)  # fmt: skip


@pytest.mark.parametrize("name", zoo.NAMES)
@pytest.mark.parametrize("place", [-9, 5_000, 200])
def test_an_altered_file_is_refused(name, place, tmp_path, monkeypatch):
    """A bit of the last tensor, of one in the middle, or of what says what made it."""
    flip(Path(shutil.copy(zoo.FOLDER / f"{name}.safetensors", tmp_path)), place)
    monkeypatch.setattr(zoo, "FOLDER", tmp_path)
    with pytest.raises(Altered):
        zoo.load(name)


@pytest.mark.parametrize("decoder", ["luong", "bahdanau"])
def test_the_state_that_asks_is_the_query(decoder):
    """Bahdanau's decoder asks with the state before; the check of a pass rebuilds its attention."""
    (attention,) = pass_of_decoder(decoder=decoder).attentions
    assert attention.query_inputs.shape[-1] == attention.key_inputs.shape[-1] == 8
