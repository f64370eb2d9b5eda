"""``attnlib analyse``: what a model has to be told of a text, and what is told of what was not looked at."""

import json
import shutil

import pytest
import torch

from tests.attnlib.analysis.analyse_calls import analysed, attnlib, given, refused
from tests.attnlib.analysis.test_checkpoint import SOURCE, TARGET
from tests.attnlib.analysis.test_report import assert_harmless
from tests.attnlib.analysis.test_tokenizer import mbart

transformers = pytest.importorskip("transformers", reason="the command loads models with transformers")


# What a model has to be told of a text.


@pytest.fixture(scope="module")
def mbart_corpus(corpus):
    """A tiny mBART beside the same text."""
    tokenizer = mbart()
    config = transformers.MBartConfig(
        vocab_size=len(tokenizer),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.MBartForConditionalGeneration(config)
    model.save_pretrained(corpus / "mbart")
    tokenizer.save_pretrained(corpus / "mbart")
    return corpus


def test_a_multilingual_model_is_told_its_languages(mbart_corpus, tmp_path):
    words = ["--model", mbart_corpus / "mbart", *given(mbart_corpus, tmp_path, "--ignore-special")[2:]]
    asked_for = "give --source-language and --target-language, each one of ar_AR, cs_CZ"
    refused(words, asked_for)
    refused([*words, "--source-language", "en_XX"], asked_for)
    wrong = [*words, "--source-language", "en_XX", "--target-language", "fr"]
    refused(wrong, "no language 'fr'; did you mean 'fr_XX'?")
    right = [*words, "--source-language", "en_XX", "--target-language", "fr_XX"]
    done = attnlib(*right)
    assert done.exit_code == 0, done.output
    read = assert_harmless((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert "fr_XX" in read.words  # the last piece of every target
    told = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    assert told["about"]["Languages"] == "en_XX to fr_XX"
    refused([*words, "--source-language", "en_XX", "--target-language", "de_DE"], "target_language is fr_XX")


def test_languages_for_a_model_without_are_refused(corpus, tmp_path):
    refused(given(corpus, tmp_path, "--target-language", "fr"), "knows no languages, but 'fr' is given")


def test_a_prefix_is_read_before_every_source(corpus, tmp_path, counted):
    analysed(corpus, tmp_path, "--prefix", "the old ")
    assert counted[0] == f"the old {SOURCE[0]}"
    assert set(counted) == {f"the old {line}" for line in SOURCE}
    told = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    assert told["about"]["Before every source"] == "the old "
    refused(given(corpus, tmp_path, "--prefix", "the "), "(model is ")


def test_another_rule_of_the_tokenizer_is_another_analysis(corpus, tmp_path):
    """With the same words: a run that goes on must not mix both."""
    other = tmp_path / "tiny"
    shutil.copytree(corpus / "tiny", other)
    words = ["--model", other, *given(corpus, tmp_path / "out")[2:]]
    assert attnlib(*words).exit_code == 0
    path = other / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["normalizer"] = {"type": "Lowercase"}
    path.write_text(json.dumps(content), encoding="utf-8")
    refused(words, "part of another analysis (model is ")


# What the numbers are not of.


@pytest.mark.parametrize("shards", [(), ("--shards", 2)])
def test_pairs_left_out_and_cut_are_told(corpus, tmp_path, shards):
    """Of the 24 pairs and four with an empty side; no more than seven pieces of a side are read."""
    text = "\n".join(["", *SOURCE, "a", "", ""]) + "\n", "\n".join(["A", *TARGET, " ", "A", ""]) + "\n"
    for name, content in zip(("a.txt", "b.txt"), text, strict=True):
        (tmp_path / name).write_text(content, encoding="utf-8")
    words = ["--model", corpus / "tiny", "--source", tmp_path / "a.txt", "--target", tmp_path / "b.txt"]
    words += ["--out", tmp_path / "out", "--batch-size", 4, "--every", 3, "--longest", 7, "--probed", 0]
    done = attnlib(*words, *shards)
    assert done.exit_code == 0, done.output
    long = sum(max(len(s.split()), len(t.split())) + 1 > 7 for s, t in zip(SOURCE, TARGET, strict=True))
    assert 0 < long < 24
    told = json.loads((tmp_path / "out" / "analysis.json").read_text(encoding="utf-8"))
    assert (told["left_out"], told["cut"]) == (4, long)
    assert any(f"asked for: {long} pairs" in note for note in told["notes"])
    assert any("an empty side: 4 pairs" in note for note in told["notes"])


def test_a_name_with_a_bracket_stands_in_the_title(corpus, tmp_path):
    """A folder may be called what it likes."""
    folder = tmp_path / "best (v2)"
    shutil.copytree(corpus / "tiny", folder)
    done = attnlib("--model", folder, *given(corpus, tmp_path / "out")[2:])
    assert done.exit_code == 0, done.output
    assert "<h1>How best (v2) attends</h1>" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
