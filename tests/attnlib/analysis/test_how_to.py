"""The lines of the how-to, as they are printed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.attnlib.adapters.adapter_builders import BATCH, Translator, drawn, frames_model
from tests.attnlib.analysis.builders import LINES, said_by, save_checkpoint, text_of, tokenizer_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "book/how_to.md").read_text(encoding="utf-8")


def block(language, word):
    """The block of a language that holds a word."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = (own for own in blocks if word in own)
    return found


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def drawn_alike():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def test_a_checkpoint_and_two_texts(here):
    """With another name for the model, which has two layers."""
    save_checkpoint(here / "tiny")
    text = text_of(here)
    text.source.rename("my.en")
    text.target.rename("my.de")
    lines = block("python", "import Checkpoint").replace("[0, 5]", "[0, 1]")
    named = lines.replace('"Helsinki-NLP/opus-mt-en-de"', '"./tiny"')
    assert named != lines
    exec(compile(named, "how_to.md", "exec"), {})
    report = (here / "report/index.html").read_text(encoding="utf-8")
    assert "<bdi>chien</bdi>" in report  # words, not ids
    assert "agreement with the lexical probe" in report
    assert all((here / f"{name}.png").stat().st_size > 1_000 for name in ("heads", "attention"))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but")
@pytest.mark.parametrize("first", [True, False])
def test_an_nn_transformer(here, first):
    given = {"model": drawn(Translator(batch_first=first)), "batches": [BATCH] * 5}
    exec(compile(block("python", "import Hooked, Modules, Stream, report\n"), "how_to.md", "exec"), given)
    said = said_by(here / "report")
    assert (len(said["heads"]), said["learned"]["sentences"]) == (4, 4)
    assert said["heads"][0]["rows_probed"] > 0


def test_any_modules_by_their_names(here):
    exec(compile(block("python", "class Reader"), "how_to.md", "exec"), {})
    said = said_by(here / "report")
    assert [row["head"] for row in said["heads"]] == [0, 1]
    assert said["unchecked"] == []
    assert said["heads"][0]["rows_probed"] > 0
    assert said["learned"]["sentences"] == 2 * 16
    # Its states are words and nothing else; the start mark alone is always at one place.
    for row in said["heads"]:
        assert row["temporal_share"] == pytest.approx(0, abs=1e-6) == row["residual_share"]
        assert row["input_share"] > 0.8


@pytest.mark.parametrize("words", [True, False])
def test_saved_traces_written_and_read(here, words):
    """With one word everywhere, as for pictures and sound, no word of the source explains anything."""
    lines = block("python", "maps.safetensors")
    if not words:
        lines = lines.replace("torch.randint(0, 50, (8, 12), generator=rng)", "torch.zeros(8, 12).long()")
        assert "torch.zeros(8, 12)" in lines
    exec(compile(lines, "how_to.md", "exec"), {})
    said = said_by(here / "report")
    assert (said["fitted"], said["judged"], said["unchecked"]) == (64, 16, ["cross.0"])
    for row in said["terms"]:
        if row["term"].endswith("·input"):
            assert (abs(row["covariance_share"]) < 1e-12) == (not words)


def test_an_encoder_of_sound(here):
    """With a small Whisper, which hears one second, and another vocabulary."""
    transformers = pytest.importorskip("transformers")
    hears = transformers.WhisperFeatureExtractor(feature_size=4, chunk_length=1)
    tokenizer = tokenizer_of(LINES)
    sizes = {"vocab_size": len(tokenizer), "max_source_positions": 50, "max_target_positions": 20}

    class Processor:
        def __call__(self, sounds, **options):
            return hears(sounds, **options)

    processor, rng = Processor(), torch.Generator().manual_seed(0)
    processor.tokenizer = tokenizer
    model = frames_model("Whisper", **sizes)
    sounds = [torch.randn(16_000, generator=rng).numpy() for _ in range(40)]
    given = {"model": model, "processor": processor, "sounds": sounds, "texts": LINES[:40]}
    exec(compile(block("python", "import FrameBatch"), "how_to.md", "exec"), given)
    said = said_by(here / "report")
    assert (said["source"], said["fitted"], said["judged"]) == ("frames", 32, 8)
    assert said["learned"]["sentences"] == 8
    assert "<bdi>chien</bdi>" in (here / "report/index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_corpus_in_shards(here):
    """As printed, but for its names and the number of shards."""
    pytest.importorskip("snakemake", reason="the workflow is of the book")
    save_checkpoint(here / "tiny")
    text = text_of(here)
    command = shlex.split(block("bash", "workflows/analyse.smk").replace("\\\n", ""))
    named = {"FOLDER": "tiny", "my.en": text.source.name, "my.de": text.target.name, "shards=8": "shards=2"}
    named |= {"--layers 0-3": "--layers 0-1 --batch-size 4 --every 3", "snakemake": sys.executable}
    for old, new in named.items():
        command = [word.replace(old, new) if word != "--snakefile" else word for word in command]
    command[1:1] = ["-m", "snakemake"]
    command[command.index("--snakefile") + 1] = str(ROOT / "workflows/analyse.smk")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(said_by(here / "report")["heads"]) == 4
