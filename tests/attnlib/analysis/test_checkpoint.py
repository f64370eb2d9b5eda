"""Two text files and a checkpoint: read line by line, identified by what the numbers depend on."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnlib.analysis.checkpoint import Checkpoint
from attnlib.analysis.parallel_text import ParallelText
from attnlib.errors import BadInput

transformers = pytest.importorskip("transformers", reason="checkpoints are those of transformers")
tokenizers = pytest.importorskip("tokenizers", reason="it comes with transformers")

SOURCE = [
    f"the {adjective} {noun} {verb} ."
    for adjective in ("red", "big", "old")
    for noun in ("dog", "man")
    for verb in ("runs", "sleeps here", "<script>alert(1)</script>", "\u202eeats it now")
]
TARGET = [
    f"le {noun} {adjective} {verb} ."
    for adjective in ("rouge", "grand", "vieux")
    for noun in ("chien", "homme")
    for verb in ("court", "dort ici", "chante", "le mange tout de suite")
]


def tokenizer_of(lines):
    """A piece a word, an end mark behind."""
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="<unk>"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    special = ["<pad>", "</s>", "<unk>"]
    model.train_from_iterator(lines, tokenizers.trainers.WordLevelTrainer(special_tokens=special))
    template = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    model.post_processor = template
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, **names)


def save_checkpoint(folder, lines=(*SOURCE, *TARGET)):
    """A T5 of two layers and two heads, drawn at random, far from uniform attention."""
    tokenizer = tokenizer_of(lines)
    config = transformers.T5Config(
        vocab_size=60, d_model=16, d_kv=4, d_ff=16, num_layers=2, num_heads=2, decoder_start_token_id=0
    )
    with torch.random.fork_rng():  # its own initialisation, which is not kept
        model = transformers.T5ForConditionalGeneration(config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() > 1:
                value.normal_(0, 0.5, generator=generator)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_checkpoint(tmp_path_factory.mktemp("saved") / "tiny_t5")


def text_of(folder, source=None, target=None):
    text = ParallelText(folder / "a.txt", folder / "b.txt")
    for path, content, lines in ((text.source, source, SOURCE), (text.target, target, TARGET)):
        content = "\n".join(lines) + "\n" if content is None else content
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return text


# Text.


@pytest.mark.parametrize("end", ["\n", ""])
def test_lines_and_checksums(tmp_path, end):
    text = text_of(tmp_path, f"a b\nc\n\nd{end}", f"A\nB\r\nC\nD{end}")
    lines, digests = text.checked()
    assert lines == 4
    assert digests.keys() == {"source", "target"}
    assert digests["source"] != digests["target"]
    assert list(text.pairs()) == [("a b", "A"), ("c", "B"), ("", "C"), ("d", "D")]


def test_only_line_feeds_end_a_line(tmp_path):
    """Other programs count lines by them alone; what Unicode calls a line end stays in its line."""
    text = text_of(tmp_path, "a\u2028b\x0bc\x85d\re\nf\n", "A\nB\n")
    assert text.checked()[0] == 2
    assert list(text.pairs()) == [("a\u2028b\x0bc\x85d\re", "A"), ("f", "B")]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a\nb\n", "A\n", "a.txt has 2 lines, .*b.txt 1: line n of one must be"),
        ("", "", "are empty"),
        (b"\xff\xfe\n", b"A\n", r"a\.txt, line 1 is not UTF-8 .*: convert the file"),
        (b"a\nb\n", b"A\nA\xe9\n", r"b\.txt, line 2 is not UTF-8 .invalid continuation"),
    ],
)
def test_texts_that_are_none(tmp_path, source, target, message):
    text = text_of(tmp_path, source, target)
    with pytest.raises(BadInput, match=message):
        text.checked() and list(text.pairs())


def test_a_text_that_is_not_there(tmp_path):
    text = text_of(tmp_path)
    for side, missing in (
        ("source", ParallelText(tmp_path / "none", text.target)),
        ("target", ParallelText(text.source, tmp_path)),
    ):
        with pytest.raises(BadInput, match=f"{side} .* is not there"):
            missing.checked()


# Checkpoints.


def test_what_is_told_of_a_model(folder):
    checkpoint = Checkpoint.load(str(folder))
    weights = sum(value.numel() for value in checkpoint.model.parameters())
    told = f"tiny_t5 (T5ForConditionalGeneration, {weights:,} parameters)"
    assert checkpoint.about == {"Model": told}


def test_pieces_have_names_and_ids_beyond_them_as_well(folder):
    checkpoint = Checkpoint.load(str(folder))
    ids = checkpoint.tokenizer("the dog")["input_ids"]
    assert [checkpoint.word("source", token) for token in ids] == ["the", "dog", "</s>"]
    assert isinstance(checkpoint.word("target", 59), str)


def test_a_stream_of_a_text_can_be_read_again(folder, tmp_path):
    stream = Checkpoint.load(str(folder)).stream(text_of(tmp_path), batch_size=7, longest=5)
    first, second = ([batch.tokens.source.tolist() for _, batch in stream.numbered()] for _ in range(2))
    assert first == second
    assert [len(batch) for batch in first] == [7, 7, 7, 3]
    assert max(len(row) for batch in first for row in batch) == 5


def test_special_pieces_are_ignored_where_asked(folder, tmp_path):
    checkpoint = Checkpoint.load(str(folder))
    for ignore in (False, True):
        stream = checkpoint.stream(text_of(tmp_path), ignore_special=ignore, batch_size=7)
        one = stream.trace(next(iter(stream.batches())))
        end = one.source_tokens == checkpoint.tokenizer.eos_token_id
        assert bool(one.counted("source")[end & one.source_mask].any()) != ignore
        assert bool(one.counted("target")[:, 0].any()) != ignore  # what the decoder starts with


def test_no_probe_where_none_is_asked_for(folder, tmp_path):
    checkpoint = Checkpoint.load(str(folder))
    assert not checkpoint.stream(text_of(tmp_path), probed=0).is_probed(0)
    stream = checkpoint.stream(text_of(tmp_path), batch_size=2)
    one = stream.trace(next(iter(stream.batches())))
    assert stream.probe(one).shape == (*one.target_tokens.shape, one.source_tokens.shape[1])


# What a checkpoint is identified by.


def test_another_model_has_another_digest(folder):
    """Weights; heads, which weights of the same shapes may be dealt out to otherwise; words."""
    checkpoint = Checkpoint.load(str(folder))
    found = [checkpoint.digest()]
    with torch.no_grad():
        checkpoint.model.shared.weight[0, 0] += 1
    found.append(checkpoint.digest())
    checkpoint.model.config.num_heads = 4
    found.append(checkpoint.digest())
    found.append(replace(checkpoint, tokenizer=tokenizer_of(sorted(TARGET))).digest())
    assert len(set(found)) == len(found)


def test_the_same_model_elsewhere_has_the_same_digest(folder, tmp_path):
    before = Checkpoint.load(str(folder))
    after = Checkpoint.load(str(shutil.copytree(folder, tmp_path / "other")))
    for batch in before.stream(text_of(tmp_path)).batches():
        assert len(batch.tokens.source)  # tokenizers remember how they were called
    assert before.digest() == after.digest()


def test_other_rules_over_the_same_words_have_another_digest(folder):
    """Lower case: the pieces of a text are others, and so are all numbers."""
    checkpoint = Checkpoint.load(str(folder))
    before, words = checkpoint.digest(), checkpoint.tokenizer.get_vocab()
    checkpoint.tokenizer.backend_tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    assert checkpoint.tokenizer.get_vocab() == words
    assert checkpoint.digest() != before


# What cannot be loaded.


def spoilt(folder, tmp_path, name, content):
    other = tmp_path / "spoilt"
    shutil.copytree(folder, other)
    path = other / name
    path.unlink() if content is None else path.write_bytes(content(path.read_bytes()))
    return other


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", None),
        ("config.json", lambda data: b"{"),
        ("config.json", lambda data: b'{"model_type": "nothing"}'),
        ("config.json", lambda data: data.replace(b'"t5"', b'"bert"')),
        ("model.safetensors", None),
        ("model.safetensors", lambda data: data[:-50]),
        ("model.safetensors", lambda data: b"no tensors"),
        ("tokenizer.json", lambda data: b"{"),
    ],
)
def test_checkpoints_that_are_none(folder, tmp_path, name, content):
    with pytest.raises(BadInput, match="cannot be loaded as an encoder–decoder with a tokenizer") as caught:
        Checkpoint.load(str(spoilt(folder, tmp_path, name, content)))
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_is_not_looked_for_elsewhere(tmp_path, monkeypatch):
    """A path: absolute, from here, of several parts, or below a folder that there is."""

    def asked(name, **_):
        raise OSError(f"{name} was looked for")

    monkeypatch.setattr(transformers.AutoModelForSeq2SeqLM, "from_pretrained", asked)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for name in (str(tmp_path / "none"), "./none", "../none", "~/none", "a/b/none", "models/none", "none/a/"):
        with pytest.raises(BadInput, match=f"there is no folder {name}: give one that save_pretrained wrote"):
            Checkpoint.load(name)
    for name in ("none", "somebody/none"):
        with pytest.raises(BadInput, match=f"{name} was looked for"):
            Checkpoint.load(name)


def test_files_of_different_lengths_that_nobody_checked(tmp_path):
    text = text_of(tmp_path, "a\nb\n", "A\n")
    with pytest.raises(BadInput, match=r"b\.txt ends before line 2, which the other file has"):
        list(text.pairs())


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_devices_that_are_not_there(folder, device):
    with pytest.raises(BadInput, match=f"device {device!r} cannot be used"):
        Checkpoint.load(str(folder), device)


def test_the_lines_of_the_how_to_write_a_report(folder, tmp_path, monkeypatch):
    """The first Python block of the page, with another name for the model."""
    page = (Path(__file__).parents[3] / "book/how_to.md").read_text(encoding="utf-8")
    lines = re.search(r"^```python\n(from attnlib import Checkpoint.*?)^```$", page, re.M | re.S).group(1)
    named = lines.replace('"Helsinki-NLP/opus-mt-en-de"', repr(str(folder))).replace("[0, 5]", "[0, 1]")
    assert str(folder) in named
    (tmp_path / "my.en").write_text("\n".join(SOURCE) + "\n", encoding="utf-8")
    (tmp_path / "my.de").write_text("\n".join(TARGET) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(named, "how_to.md", "exec"), {})
    report = (tmp_path / "report/index.html").read_text(encoding="utf-8")
    assert "How this model attends" in report
    assert "<bdi>chien</bdi>" in report  # words, not ids
    assert "agreement with the lexical probe" in report
