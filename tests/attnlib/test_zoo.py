"""Networks inside the package: they have learned, say what made them, and are read as they were written."""

import shutil
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
import torch

from attnlib import analyse, zoo
from attnlib.adapters import encoder_decoder_pass
from attnlib.analysis.learned import has_learned
from attnlib.errors import Altered
from attnlib.models.classifiers import AttentiveClassifier
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.sequence_to_sequence import SequenceConfig, SequenceToSequence
from attnlib.probes.lexical_probe import log_lexical_probe
from attnlib.training.corpus import collate
from tests.attnlib.analysis.builders import said_by
from tests.attnlib.analysis.test_how_to import block
from tests.attnlib.refusals import assert_refused, flip

ATTENDING = [name for name in zoo.NAMES if not name.endswith(("VED", "classifier"))]
# A quarter of the words that the translator is to write change places with the next, by chance.
LEAST = {"lexicon_translator": 0.8}


@torch.no_grad()
def right(found: zoo.Trained) -> float:
    """The share of the words, or labels, of its sentences that a network predicts."""
    batch = collate(found.corpus, range(800))
    if isinstance(found.network, AttentiveClassifier):
        plus = batch.target_output[:, 0] == found.words["target"].index("plus")
        return float(((found.network(batch.source, batch.source_mask).logit > 0) == plus).float().mean())
    own = found.network(batch).logits.argmax(-1) == batch.target_output
    return float(own[batch.target_mask].float().mean())


def test_there_is_one_of_each_kind_and_they_are_small():
    found = [zoo.load(name).network for name in zoo.NAMES]
    assert {type(network) for network in found} == set(get_args(zoo.Network))
    assert {own.config.architecture for own in found if isinstance(own, EncoderDecoder)} == {
        "AED",
        "AO",
        "VED",
    }
    assert sum(path.stat().st_size for path in zoo.FOLDER.glob("*.safetensors")) < 1_100_000


@pytest.mark.parametrize("name", zoo.NAMES)
def test_a_network_has_learned_what_its_record_says(name):
    found = zoo.load(name)
    made = found.provenance
    keys = {"spec", "commit", "date", "packages", "python", "seconds", "accuracy", "sha256"}
    assert made.keys() == keys
    own = made["spec"].get("settings", made["spec"])
    assert name.startswith(own["task"]) if "task" in own else own["network"] == type(found.network).__name__
    assert made["accuracy"] > LEAST.get(name, 0.9)
    # Of sentences that it was trained on, the same but for chance.
    assert right(found) == pytest.approx(made["accuracy"], abs=0.02)
    for side, words in found.words.items():
        assert found.word(side, 0) == "<pad>"
        assert getattr(found.corpus, f"{side}_ids").max() < len(words)


@pytest.mark.parametrize("name", ATTENDING)
def test_those_with_attention_are_analysed(name):
    found = zoo.load(name)
    kinds = ("cross", "encoder_self") if name == "reordering" else ("cross",)
    one = analyse(found.stream(kinds=kinds))
    assert has_learned(one.learned)
    assert one.unchecked == ()
    assert one.fitted + one.judged == len(found.corpus) == 800
    assert {row["kind"] for row in one.heads} == set(kinds)


@torch.no_grad()
def test_the_translator_is_probed_without_training():
    """β of a word is largest at the word of the lexicon that it translates."""
    found = zoo.load("lexicon_translator")
    batch = collate(found.corpus, range(100))
    states, valid = found.network(batch), batch.target_mask
    probe = log_lexical_probe(
        found.network.readout, states.encoder_states, states.decoder_states, batch.target_output,
        batch.source_mask, valid,
    )  # fmt: skip
    best = batch.source.gather(1, probe.argmax(-1))[valid].tolist()
    pairs = zip(best, batch.target_output[valid].tolist(), strict=True)
    words = [(found.word("source", own), found.word("target", other)) for own, other in pairs if other > 3]
    assert sum(own.replace("s", "t") == other for own, other in words) / len(words) > 0.9


def test_attention_only_is_temporal_where_words_keep_their_order():
    (head,) = analyse(zoo.load("one_to_one_AO").stream()).heads
    assert head["temporal_low"] > 0.5


def test_the_lines_of_the_how_to_write_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", "zoo"), "how_to.md", "exec"), {})
    assert len(said_by(tmp_path / "report")["heads"]) == 4


def pass_of_decoder(**changes):
    """Of one that is trained no further; its words are those of another's corpus."""
    config = SequenceConfig(source_size=60, target_size=60, width=8, **changes)
    network = SequenceToSequence(config, torch.Generator().manual_seed(0)).eval()
    return encoder_decoder_pass(network, collate(zoo.load("reordering").corpus, range(3)))


def stream(name, **options):
    return zoo.load(name).stream(**options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(zoo.load, "reorder"), "no network 'reorder'; did you mean 'reordering'"),
        (partial(stream, "one_to_one_VED"), "VED has no attention between two texts: there is no analysis"),
        (partial(stream, "polarity_classifier"), "AttentiveClassifier has no attention between two texts"),
        (partial(stream, "reordering", kinds=("crosss",)), "no attention 'crosss'; did you mean 'cross'"),
        (partial(stream, "one_to_one_AO", kinds=("encoder_self",)),
         "AO has cross-attention alone: there is no analysis of encoder_self"),
        (lambda: pass_of_decoder(scoring="additive"),
         "scores are 'additive'; only those that compare states as they are"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(call, message):
    assert_refused(call, message)


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
    (one,) = pass_of_decoder(decoder=decoder).attended
    assert one.query_inputs.shape[-1] == one.key_inputs.shape[-1] == 8
