"""``attnlib analyse`` and checkpoints: from a folder and two texts, or saved traces, to a report."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain

import pytest
import torch
from safetensors.torch import load_file, save_file

from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe, text_batches
from attnlib.analysis import Stream
from attnlib.errors import BadInput
from attnlib.files import locked
from attnlib.report import Checkpoint, ParallelText, analyse, read_report
from attnlib.report.findings import notes
from attnlib.report.pieces import ignorable_ids, language_codes, set_languages, tokenizer_digest
from tests.attnlib.adapters import single_stacks
from tests.attnlib.adapters.adapter_builders import SIZES, model_of
from tests.attnlib.analysis import builders as toys
from tests.attnlib.analysis.builders import LINES, SOURCE, TARGET
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused, flip
from tests.attnlib.report.test_report import FILES
from tests.tables import beside

transformers = pytest.importorskip("transformers", reason="checkpoints are those of transformers")
tokenizers = pytest.importorskip("tokenizers", reason="it comes with transformers")
GIVEN = beside(__file__, "command")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A checkpoint, and 24 pairs: six batches of four."""
    folder = tmp_path_factory.mktemp("corpus")
    toys.save_checkpoint(folder / "tiny")
    toys.text_of(folder)
    return folder


@pytest.fixture(autouse=True)
def nothing_is_sent_anywhere(monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda _, address: pytest.fail(f"sent to {address}"))


# A checkpoint and two text files: read line by line, identified by all that the numbers depend on.


@pytest.mark.parametrize(("source", "target", "pairs"), GIVEN["texts"])
def test_pairs_of_both_texts_are_read(tmp_path, source, target, pairs):
    text = toys.text_of(tmp_path, source, target)
    assert list(map(list, text.pairs())) == pairs


@pytest.mark.parametrize(("source", "target", "pairs"), GIVEN["texts"])
def test_pairs_are_counted_before_they_are_read(tmp_path, source, target, pairs):
    text = toys.text_of(tmp_path, source, target)
    lines, _ = text.checked()
    assert lines == len(pairs)


@pytest.mark.parametrize(("source", "target", "pairs"), GIVEN["texts"])
def test_either_side_has_its_checksum(tmp_path, source, target, pairs):
    text = toys.text_of(tmp_path, source, target)
    _, digests = text.checked()
    assert digests.keys() == {"source", "target"}
    assert digests["source"] != digests["target"]


@pytest.mark.parametrize(("source", "target", "encoding", "message"), GIVEN["no_texts"])
def test_texts_that_are_none(tmp_path, source, target, encoding, message):
    text = toys.text_of(tmp_path, source, target, encoding)
    assert_refused(lambda: text.checked() and list(text.pairs()), message)
    if source == "a\nb\n" and encoding == "utf-8":  # when nobody has checked
        assert_refused(lambda: list(text.pairs()), "b.txt ends before line 2, which the other file has")


def test_special_pieces_are_ignored_where_asked(corpus, tmp_path):
    checkpoint = Checkpoint.load(corpus / "tiny")
    for ignore in (False, True):
        stream = checkpoint.stream(toys.text_of(tmp_path), ignore_special=ignore, batch_size=7)
        trace = stream.trace(stream.first())
        end = trace.source_tokens == checkpoint.tokenizer.eos_token_id
        assert bool(trace.counted("source")[end & trace.source_mask].any()) != ignore
        assert bool(trace.counted("target")[:, 0].any()) != ignore  # what the decoder starts with


def test_what_made_an_analysis_has_checksums_of_its_files(corpus, tmp_path):
    checkpoint, text = Checkpoint.load(corpus / "tiny"), toys.text_of(tmp_path)
    made = checkpoint.stream(text, ignore_special=True, layers={1}, longest=9).made()
    digests = {"model": checkpoint.digest(), "tokenizer": tokenizer_digest(checkpoint.tokenizer)}
    assert made["sha256"] == text.checked()[1] | digests


def test_what_made_an_analysis_has_its_options(corpus, tmp_path):
    checkpoint, text = Checkpoint.load(corpus / "tiny"), toys.text_of(tmp_path)
    made = checkpoint.stream(text, ignore_special=True, layers={1}, longest=9).made()
    chosen = {"ignore_special": True, "layers": [1], "longest": 9, "kinds": ["cross"], "prefix": ""}
    assert chosen.items() <= made["options"].items()


def test_a_digest_changes_with_all_that_the_numbers_depend_on(corpus, tmp_path):
    """Weights; heads, which weights of the same shapes may be dealt out to otherwise; a prefix; words and
    rules of the tokenizer. Not with where it lies, and not with how the tokenizer was called."""
    before = Checkpoint.load(corpus / "tiny")
    after = Checkpoint.load(shutil.copytree(corpus / "tiny", tmp_path / "other"))
    list(text_batches(before.tokenizer, [(SOURCE[0], TARGET[0])]))  # tokenizers remember how they were called
    digests = [before.digest()]
    assert after.digest() == digests[0]
    digests.append(replace(after, prefix="translate: ").digest())
    changed = [toys.tokenizer_of(lines) for lines in (sorted(TARGET), *[LINES] * 5)]
    changed[1].add_tokens(["new"])
    changed[2].backend_tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    changed[3].backend_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="$A")
    changed[4].backend_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    digests += [replace(after, tokenizer=tokenizer).digest() for tokenizer in changed]
    with torch.no_grad():
        after.model.shared.weight[0, 0] += 1
    digests.append(after.digest())
    after.model.config.num_heads = 4
    digests.append(after.digest())
    assert len(set(digests)) == len(digests) == 10


def spoilt(folder, name, content=None):
    """A file with another content, or gone."""
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content, encoding="utf-8")


def edited(folder, change=dict, **config):
    """The weights changed, and the settings."""
    path, settings = folder / "model.safetensors", folder / "config.json"
    save_file(change(load_file(path)), path, {"format": "pt"})
    settings.write_text(json.dumps(json.loads(settings.read_text("utf-8")) | config), encoding="utf-8")


def made_adapter(folder):
    """What peft saves of a model that it has tuned."""
    (folder / "config.json").unlink()
    settings = {"peft_type": "LORA", "base_model_name_or_path": "google-t5/t5-small"}
    (folder / "adapter_config.json").write_text(json.dumps(settings), encoding="utf-8")


QUERY = "decoder.block.0.layer.1.EncDecAttention.q.weight"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        *((spoil, "tiny … cannot be loaded as an encoder–decoder with a tokenizer") for spoil in (
            *(partial(spoilt, **options) for options in GIVEN["spoilt"]),
            lambda folder: (folder / "model.safetensors").write_bytes(pickle.dumps({})),
            lambda folder: os.truncate(folder / "model.safetensors", 9_000),
            partial(edited, model_type="bert"), partial(edited, classifier_dropout=None))),
        (partial(edited, change=lambda tensors: tensors | {QUERY: torch.ones(3, 16)}),
         "tiny is not whole: it has of another shape … EncDecAttention.q.weight (3×16 instead of 8×16)"),
        (partial(edited, auto_map={"AutoConfig": "configuration_own.Own"}, model_type="of_its_own"),
         "tiny brings its own code, … model_kwargs={'trust_remote_code': True}"),
        (made_adapter, "tiny is a peft adapter of google-t5/t5-small, … (model.merge_and_unload())"),
        (partial(edited, is_encoder_decoder=False, architectures=["OwnModel"]),
         "cannot be loaded as a decoder or an encoder … OwnModel, which transformers does not have"),
        (lambda folder: transformers.WhisperConfig(**SIZES["sound"]["Whisper"]).save_pretrained(folder),
         "type whisper, which does not … give saved traces"),
        # What it lacks would be drawn at random, and two calls would give two answers.
        (partial(edited, change=lambda tensors: {k: v for k, v in tensors.items() if k != QUERY}),
         f"it lacks {QUERY}"),
        (partial(edited, num_layers=5, num_decoder_layers=5), "it lacks decoder.block.2.layer.0. … more"),
        (partial(edited, change=lambda tensors: tensors | {"more.weight": torch.ones(2)}),
         "it has beside the model's more.weight"),
        (lambda folder: [path.unlink() for path in folder.glob("tokenizer*")],
         "tiny holds no vocabulary: its T5 … pieces"),
        (lambda folder: toys.tokenizer_of([""]).save_pretrained(folder),
         "tiny holds no vocabulary: its … knows 0 pieces"),
    ],
)  # fmt: skip
def test_checkpoints_that_cannot_be_used(corpus, tmp_path, spoil, message):
    other = shutil.copytree(corpus / "tiny", tmp_path / "tiny")
    spoil(other)
    assert_refused(lambda: Checkpoint.load(other), message)


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A folder "decoder" and a folder "encoder", a checkpoint each, with the text a.txt."""
    monkeypatch.chdir(tmp_path)
    toys.text_of(tmp_path)
    for folder, name in (("decoder", "GPT2"), ("encoder", "Bert")):
        tokenizer = toys.tokenizer_of(LINES)
        single_stacks.model_of(name, vocab_size=len(tokenizer)).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return tmp_path


@pytest.mark.parametrize(("folder", "kind"), [("decoder", "decoder_self"), ("encoder", "encoder_self")])
def test_a_decoder_or_an_encoder_alone_reads_the_source(alone, folder, kind):
    done = toys.attnlib("analyse", "--model", folder, "--source", "a.txt", "--out", "report")
    assert done.exit_code == 0, done.output
    report = toys.said_by(alone / "report")
    assert {row["kind"] for row in report["heads"]} == {kind}
    assert bool(report["learned"]) == (folder == "decoder")
    page = (alone / "report/index.html").read_text(encoding="utf-8")
    warned = "The model has not learned this text" in page
    assert warned == ("The model has not learned this text" in done.output)
    assert warned == (folder == "decoder")
    assert "sentence pair" not in page
    assert "<bdi>" in page


def test_a_stream_of_pairs_is_refused_to_a_decoder_alone(alone):
    checkpoint = Checkpoint.load("decoder")
    with pytest.raises(BadInput, match="reads one text"):
        checkpoint.stream(ParallelText("a.txt", "b.txt"))


def test_one_name_is_enough_for_a_decoder_alone(alone):
    analysis = analyse("./decoder", SOURCE)
    assert analysis.one_sequence
    assert analysis.fitted + analysis.judged == len(SOURCE)


def test_a_report_that_is_read_again_is_of_one_sequence(alone):
    toys.attnlib("analyse", "--model", "encoder", "--source", "a.txt", "--out", "report")
    analysis = read_report("report")
    assert analysis.one_sequence
    assert toys.said_by(alone / "report")["notes"] == notes(analysis)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        pytest.param(["--target", "b.txt"], "leave --target out", id="target"),
        pytest.param(["--generate"], "leave --generate out", id="generate"),
        pytest.param(["--kinds", "encoder_self"], "is a decoder alone", id="kind"),
    ],
)
def test_what_a_decoder_alone_cannot_do_is_refused(alone, option, message):
    done = toys.attnlib("analyse", "--model", "decoder", "--source", "a.txt", "--out", "report", *option)
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize("family", ["T5", "Bart", "Marian"])
def test_a_checkpoint_whose_weights_are_tied_is_whole(tmp_path, family):
    """The output layer of all of them is the table of words, and is saved once."""
    made = model_of(family, vocab_size=60, tie_word_embeddings=True)
    made.save_pretrained(tmp_path)
    toys.tokenizer_of(LINES).save_pretrained(tmp_path)
    assert torch.equal(Checkpoint.load(tmp_path).model.lm_head.weight, made.lm_head.weight)


@pytest.mark.parametrize("family", ["Pegasus", "Marian"])
def test_a_checkpoint_without_its_tables_of_sines_is_whole(tmp_path, family):
    spread = model_of(family)
    model = type(spread)(spread.config)
    model.save_pretrained(tmp_path)
    toys.tokenizer_of(LINES).save_pretrained(tmp_path)
    edited(
        tmp_path, lambda tensors: {name: tensors[name] for name in tensors if "embed_positions" not in name}
    )
    tables = {name: weight for name, weight in model.state_dict().items() if "embed_positions" in name}
    loaded = Checkpoint.load(tmp_path).model.state_dict()
    assert len(tables) == 2
    assert all(torch.equal(loaded[name], table) for name, table in tables.items())


@pytest.mark.parametrize("family", ["Bart", "EncoderDecoder"])
def test_what_is_written_ends_where_the_decoder_has_no_more_positions(family):
    checkpoint = Checkpoint(family, model_of(family), toys.tokenizer_of(LINES))
    sources = TokenBatch.of_rows([[4, 5, 6]], [[1]])
    checkpoint.model.generation_config.eos_token_id = 49  # not likely
    assert checkpoint.write(sources, 200).target.shape[1] == {"Bart": 32, "EncoderDecoder": 12}[family]


def test_unknown_words_are_counted_on_either_side(corpus, tmp_path):
    text = toys.text_of(tmp_path, "the zzz\nthe red\n", "le le\nle le\n")
    stream = Checkpoint.load(corpus / "tiny").stream(text)
    (losses,) = map(stream.losses, stream.batches())
    assert losses.unknown == {"source": 1 / 6, "target": 0}


def test_a_t5_that_does_not_say_what_its_decoder_starts_with(corpus, tmp_path):
    """As it comes from T5Config: padding, and the report says so."""
    other = shutil.copytree(corpus / "tiny", tmp_path / "plain")
    edited(other, decoder_start_token_id=None)
    (other / "generation_config.json").unlink()  # which says it as well
    loaded, like = Checkpoint.load(other), Checkpoint.load(corpus / "tiny")
    ones = [checkpoint.stream(toys.text_of(tmp_path)) for checkpoint in (loaded, like)]
    first, second = (stream.trace(next(iter(stream.batches()))) for stream in ones)
    assert torch.equal(first.target_tokens, second.target_tokens)
    assert loaded.about["Its decoder starts with"].startswith("<pad>, as T5 was trained")
    assert "Its decoder starts with" not in like.about


@pytest.mark.parametrize(("config", "message"), GIVEN["no_starts"])
def test_a_start_that_is_no_token_is_refused(corpus, tmp_path, config, message):
    other = shutil.copytree(corpus / "tiny", tmp_path / "other")
    edited(other, **config)
    (other / "generation_config.json").unlink()
    stream = Checkpoint.load(other).stream(toys.text_of(tmp_path))
    assert_refused(lambda: stream.trace(stream.first()), message)


def test_a_folder_that_is_not_there_is_not_looked_for_elsewhere(tmp_path, monkeypatch):
    """A path: absolute, from here, of several parts, or below a folder that there is."""

    def asked(name, **_):
        raise OSError(f"{name} was looked for")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", asked)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for name in (
        str(tmp_path / "none"),
        "./none",
        "../none",
        "~/none",
        "a/b/none",
        "models/none",
        "none/a/",
        "none/",
    ):
        assert_refused(partial(Checkpoint.load, name), f"there is no folder {name}: give one that save_pretr")
    for name in ("none", "somebody/none"):
        assert_refused(partial(Checkpoint.load, name), f"{name} was looked for")


@pytest.mark.parametrize("command", ["analyse", "align"])
def test_a_name_that_is_no_folder_is_announced_before_it_is_looked_for(
    corpus, tmp_path, monkeypatch, command
):
    def asked(name, **_):
        raise OSError(f"{name} was looked for")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", asked)
    texts = ("--source", corpus / "a.txt", "--target", corpus / "b.txt")
    for name, n_notices in (("nofolder", 1), ("./nofolder", 0)):
        run = toys.attnlib(command, "--model", name, *texts, "--out", tmp_path / "out")
        assert run.stderr.count("there is no folder nofolder here; looking on Hugging Face\n") == n_notices
        assert run.exit_code == 2


# What a model writes itself.


def test_what_is_written_is_the_likeliest_piece_at_every_step(corpus, tmp_path):
    """As transformers does, up to the end mark or the longest length; lines of the target are not needed."""
    checkpoint, text = Checkpoint.load(corpus / "tiny"), toys.text_of(tmp_path)
    stream = checkpoint.stream(ParallelText(text.source), generate=True, longest=9)
    assert stream.logits is None
    (batch,), (other,) = stream.batches(), stream.batches()
    written, model = other.tokens.target, checkpoint.model
    late = [word for word in written.unique() if word in written and word not in written[:, 0]]
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.clone())  # of its own
    with torch.no_grad():  # where one of these pieces would be written, sentences end
        model.lm_head.weight[1] = 1.001 * model.lm_head.weight[late[-1]]
    tokens = batch.tokens
    assert set(tokens.target_mask.sum(1).tolist()) > {9}
    for row, source in enumerate(tokens.source):
        ids, valid = source[tokens.source_mask[row]][None], tokens.target_mask[row]
        (expected,) = model.generate(ids, max_new_tokens=9, num_beams=1, do_sample=False).tolist()
        assert tokens.target[row][valid].tolist() == expected[1:]
        assert tokens.read[row][valid].tolist() == expected[:-1]
    assert "it wrote the targets itself" in " ".join(notes(analyse(stream)))
    assert_refused(lambda: checkpoint.stream(ParallelText(text.source)), "there is no target: give a file")


# Languages.


SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
PIECES = [*SPECIAL, *(f"▁{word}" for word in sorted(set(" ".join(LINES).split())))]
IDS = {piece: number for number, piece in enumerate(PIECES)}


def of_scores(kind):
    pieces = [*PIECES, "ar_AR", "de_DE", "en_XX", "fr_XX"]
    return getattr(transformers, kind)(vocab=[(piece, -1.0 * piece.startswith("▁")) for piece in pieces])


def of_pieces(folder, kind):
    """A tokenizer in plain Python over a model of sentencepiece."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="M2M100 and Marian have such pieces")
    text = {"sentence_iterator": iter(LINES), "model_prefix": str(folder / "pieces")}
    sentencepiece.SentencePieceTrainer.train(**text, vocab_size=80, hard_vocab_limit=False, minloglevel=2)
    model = sentencepiece.SentencePieceProcessor(str(folder / "pieces.model"))
    words = dict.fromkeys([*SPECIAL, *(model.id_to_piece(n) for n in range(model.get_piece_size()))])
    write_vocabulary(folder, words)
    names = ["vocab.json", "pieces.model"] if kind == "M2M100" else ["pieces.model"] * 2 + ["vocab.json"]
    return getattr(transformers, f"{kind}Tokenizer")(*(str(folder / name) for name in names))


def write_vocabulary(folder, words):
    text = json.dumps({word: number for number, word in enumerate(words)})
    (folder / "vocab.json").write_text(text, encoding="utf-8")


# Source and target language of each tokenizer, and what marks the target.
MULTILINGUAL = {
    "mbart": (lambda _: of_scores("MBartTokenizer"), "en_XX", "fr_XX", "fr_XX"),
    "mbart50": (lambda _: of_scores("MBart50Tokenizer"), "en_XX", "fr_XX", "fr_XX"),
    "nllb": (lambda _: transformers.NllbTokenizer(vocab=IDS), "eng_Latn", "fra_Latn", "fra_Latn"),
    "m2m": (lambda folder: of_pieces(folder, "M2M100"), "en", "fr", "__fr__"),
}


@pytest.fixture(params=MULTILINGUAL)
def multilingual(request, tmp_path):
    make, *rest = MULTILINGUAL[request.param]
    return make(tmp_path), *rest


def test_each_side_is_marked_with_its_language(multilingual):
    tokenizer, source, target, mark = multilingual
    set_languages(tokenizer, source, target)
    batch, again = (next(text_batches(tokenizer, [(SOURCE[0], "zzz")])) for _ in range(2))
    assert tokenizer.convert_tokens_to_ids(mark) in batch.target[0]
    assert tokenizer.convert_tokens_to_ids(mark) not in batch.source[0]
    assert torch.equal(batch.target, again.target)
    assert torch.equal(batch.source, again.source)
    ignored = set(ignorable_ids(tokenizer))
    assert tokenizer.unk_token_id in set(tokenizer.all_special_ids) - ignored
    counted = [token not in ignored for token in batch.source[0].tolist()]
    assert any(counted)
    assert counted.count(False) == 2  # the end and the language


@pytest.mark.parametrize("kind", ["mbart", "mbart50"])
def test_what_is_written_begins_as_the_tokenizer_marks_it(kind, tmp_path):
    """The language is read first, or written first where every target has it; all else is the likeliest."""
    tokenizer = of_scores("MBartTokenizer" if kind == "mbart" else "MBart50Tokenizer")
    model = model_of("MBart", vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    model.generation_config.forced_eos_token_id = None  # else the last piece is an end mark, likely or not
    checkpoint = Checkpoint("m", model, tokenizer, source_language="en_XX", target_language="fr_XX")
    stream = checkpoint.stream(ParallelText(toys.text_of(tmp_path).source), generate=True, longest=6)
    trace = stream.trace(next(iter(stream.batches())))
    language, marked = tokenizer.convert_tokens_to_ids("fr_XX"), tokenizer(text_target=["."])["input_ids"][0]
    written = marked[0] == language
    assert ((trace.target_outputs if written else trace.target_tokens)[:, 0] == language).all()
    likeliest = checkpoint.adapter().logits(trace).argmax(-1) == trace.target_outputs
    likeliest[:, 0] |= written
    assert likeliest[trace.target_mask].all()


def test_languages_that_nobody_chose_are_asked_for(multilingual):
    tokenizer, source, target, _ = multilingual
    for chosen in ({}, {"source_language": source}, {"target_language": target}):
        message = f"give --source-language and --target-language, each … {language_codes(tokenizer)[0]}"
        assert_refused(partial(Checkpoint, "m", None, tokenizer, **chosen), message)


def test_a_length_that_the_marks_alone_exceed_is_refused():
    """An end and a language are two; transformers then cuts nothing at all."""
    tokenizer = of_scores("MBartTokenizer")
    set_languages(tokenizer, "en_XX", "fr_XX")
    pair = (SOURCE[0], TARGET[0])
    assert next(text_batches(tokenizer, [pair], longest=2)).source.shape == (1, 2)
    cut = text_batches(tokenizer, [pair], longest=1)
    assert_refused(lambda: next(cut), "longest is 1, and the tokenizer made … pieces all the same")


@pytest.mark.parametrize("kind", ["M2M100", "Marian"])
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_a_tokenizer_in_plain_python_has_a_digest_too(tmp_path, kind):
    """The same elsewhere and after it was called, another where a piece is another."""
    folder = tmp_path / "saved"
    of_pieces(tmp_path, kind).save_pretrained(folder)

    def loaded(folder):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        set_languages(tokenizer, *(("en", "fr") if kind == "M2M100" else (None, None)))
        return tokenizer

    tokenizer = loaded(folder)
    before = tokenizer_digest(tokenizer)
    list(text_batches(tokenizer, [(SOURCE[0], TARGET[0])]))
    assert tokenizer_digest(tokenizer) == before
    assert tokenizer_digest(loaded(shutil.copytree(folder, tmp_path / "other"))) == before
    words = list(json.loads((folder / "vocab.json").read_text(encoding="utf-8")))
    words[-2:] = reversed(words[-2:])
    write_vocabulary(folder, words)
    assert tokenizer_digest(loaded(folder)) != before


# The command, at once or in pieces.


def given(corpus, out, *more):
    """Arguments of a small analysis; options among ``more`` take the place of the usual ones."""
    usual = {
        "--model": corpus / "tiny",
        "--source": corpus / "a.txt",
        "--target": corpus / "b.txt",
        "--out": out,
        "--batch-size": 4,
        "--every": 3,
        "--probed": 1,
    }
    kept = [(option, value) for option, value in usual.items() if option not in more]
    return *chain.from_iterable(kept), *more


def done(*words):
    """What it says where it succeeds."""
    run = toys.attnlib("analyse", *words)
    assert run.exit_code == 0, run.output
    return run.stderr


def refused(words, message):
    """One line, but for bars of progress and what it takes, and exit code 2."""
    run = toys.attnlib("analyse", *words)
    assert run.exit_code == 2, run.output
    assert isinstance(run.exception, SystemExit)
    bars = ("Loading weights", "first pass", "second pass", "memory besides the model", "threads: ")
    (error,) = [line for line in run.stderr.splitlines() if line.strip() and not line.startswith(bars)]
    assert error.startswith("error: ")
    assert message in error


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    done(*given(corpus, out))
    return out


@pytest.fixture
def counted(monkeypatch):
    """The source lines that went through the tokenizer, in order."""
    seen, kind = [], transformers.PreTrainedTokenizerFast
    call = kind.__call__

    def counting(self, text=None, **more):
        seen.extend(text or ())
        return call(self, text=text, **more)

    monkeypatch.setattr(kind, "__call__", counting)
    return seen


def test_it_says_what_the_library_says(corpus, whole):
    """The same model and pairs by hand; fitted, judged and probed as asked."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(corpus / "tiny", attn_implementation="eager")
    tokenizer = transformers.AutoTokenizer.from_pretrained(corpus / "tiny")
    ids = [tokenizer(lines)["input_ids"] for lines in (SOURCE, TARGET)]
    batches = [TokenBatch.of_rows(*(side[n : n + 4] for side in ids)) for n in range(0, 24, 4)]
    stream = Stream(HuggingFace(model).trace, batches, partial(lexical_probe, model), probed=1)
    analysis = analyse(stream, every=3)
    for name in ("heads", "terms", "states"):
        toys.assert_same_rows(toys.table_of(whole / f"{name}.csv"), getattr(analysis, name), tolerance=1e-6)
    assert len(analysis.heads) == 4
    assert analysis.heads[0]["agreement_with_probe"] >= 0


def test_the_same_command_again_runs_only_the_sample_shown(corpus, whole, monkeypatch):
    passes, trace = [], HuggingFace.trace
    monkeypatch.setattr(HuggingFace, "trace", lambda self, batch: passes.append(1) or trace(self, batch))
    done(*given(corpus, whole))
    assert len(passes) == 1  # of the sample that is shown


def test_the_same_command_again_leaves_the_same_files(corpus, whole):
    before = toys.files_of(whole)
    done(*given(corpus, whole))
    assert toys.files_of(whole) == before


# In shards: what remains is said, and the report is the same bytes in any order.


def report_of(out):
    return {file: (out / file).read_bytes() for file in FILES}


def test_a_stage_that_the_one_before_is_not_finished_for_fails(corpus, tmp_path):
    """So that a workflow does not take it for done."""
    stage = partial(given, corpus, tmp_path, "--shards", 2, "--stage")
    refused(stage("report"), "the second pass over shards 0, 1 of 2 is not finished: run them, then this co")
    done(*stage("fit", "--shard", 1))
    refused(stage("judge", "--shard", 1), "the first pass over shards 0 of 2 is not finished: run them, then")
    assert not (tmp_path / "index.html").exists()


def test_a_shard_tokenizes_its_own_lines_alone(corpus, tmp_path, counted):
    """Of six batches of four and every third held out: two blocks of three, a shard each."""
    first, second = (SOURCE[0:8], SOURCE[8:12]), (SOURCE[12:20], SOURCE[20:24])
    lines = {("fit", 1): second[0], ("fit", 0): first[0], ("judge", 0): first[1], ("judge", 1): second[1]}
    lines["report", 0] = [*first[1], *second[1]]  # what BLEU is of
    for (stage, shard), expected in lines.items():
        counted.clear()
        done(*given(corpus, tmp_path, "--shards", 2, "--stage", stage, "--shard", shard))
        assert counted[-len(expected) :] == expected
        assert set(counted) == set(expected)  # some twice: whether they can be probed is tried first
    done(*given(corpus, at_once := tmp_path / "at once", "--shards", 2))
    assert report_of(tmp_path) == report_of(at_once)


@pytest.mark.parametrize("changed", ["3.safetensors", "maps.safetensors"])
def test_saved_traces(tmp_path, changed):
    """What the library says; refused in the same folder after a batch changed, or the weights of all."""
    traces, out, draw = toys.save_traces(tmp_path / "traces", *range(6)), tmp_path / "out", generator(0)
    maps = {f"cross.0.{side}_weight": torch.randn(2, 3, 2, generator=draw) for side in ("query", "key")}
    save_file(maps, traces / "maps.safetensors")
    done("--traces", traces, "--out", out)
    toys.assert_same_rows(
        toys.table_of(out / "heads.csv"), analyse(Stream.saved(traces)).heads, tolerance=1e-6
    )
    assert "saved traces of traces" in (out / "index.html").read_text(encoding="utf-8")
    flip(traces / changed)
    refused(
        ["--traces", traces, "--out", out],
        "parts belongs to another --traces; delete it or choose another --out",
    )


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_names_with_letters_of_any_language_are_read_in_any_locale(tmp_path, locale):
    toys.save_traces(tmp_path / "träces", *range(4), name="ö{}")
    ascii_only = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "attnlib.cli", "analyse", "--every", "1", "--traces", "träces", "--out"]
    for out, code, message in (("repört", 0, b"report: rep"), (b"\xff", 2, b"is not UTF-8: give the folder")):
        run = subprocess.run([*command, out], cwd=tmp_path, env=os.environ | ascii_only, capture_output=True)
        assert (run.returncode, message in run.stderr) == (code, True), run.stderr.decode(errors="replace")
    page = (tmp_path / "repört" / "index.html").read_text(encoding="utf-8")
    assert "<h1>How saved traces of träces attends</h1>" in page


def test_a_prefix_is_read_before_every_source(corpus, tmp_path, counted):
    done(*given(corpus, tmp_path, "--prefix", "the old "))
    assert set(counted) == {f"the old {line}" for line in SOURCE}
    assert toys.said_by(tmp_path)["about"]["Before every source"] == "the old "
    refused(
        given(corpus, tmp_path, "--prefix", "the "),
        "another --model and --prefix ('the old ' there, 'the ' here); delete",
    )


def test_a_model_is_analysed_on_what_it_writes_itself(corpus, tmp_path):
    """The source alone is read; whether it predicts its own words is not asked; shards come to the same."""
    source = "--model", corpus / "tiny", "--source", corpus / "a.txt", "--generate", "--longest", 9
    sizes = "--batch-size", 4, "--every", 3, "--probed", 1
    done(*source, *sizes, "--out", first := tmp_path / "one")
    report = toys.said_by(first)
    assert report["about"]["Corpus"] == "a.txt"
    assert report["about"]["Target"].startswith("what the model itself writes")
    assert "no reference to say how good" in report["about"]["Predictions"]
    assert report["made"]["options"]["--generate"] is True
    assert "it wrote the targets itself, and there is no reference" in " ".join(report["notes"])
    assert "no logits were given" not in " ".join(report["notes"])
    assert report["made"]["sha256"].keys() == {"source", "model", "tokenizer"}
    assert (report["fitted"], report["judged"], report["learned"]) == (16, 8, {})
    done(*source, *sizes, "--shards", 2, "--out", two := tmp_path / "two")
    toys.assert_same_rows(
        toys.table_of(first / "heads.csv"), toys.table_of(two / "heads.csv"), tolerance=1e-6
    )


def test_a_file_beside_the_report_says_when_it_was_made(whole):
    run = json.loads((whole / "run.json").read_text(encoding="utf-8"))
    assert 0 < run["seconds"] < 600
    assert abs(datetime.now(UTC) - datetime.fromisoformat(run["date"])) < timedelta(hours=1)
    assert run["seeds"] == []
    assert '<a href="run.json">run.json</a>' in (whole / "index.html").read_text(encoding="utf-8")


def test_a_report_has_the_options_that_change_its_numbers(whole):
    options = toys.said_by(whole)["made"]["options"]
    assert options["--ignore-special"] is False
    assert (options["--batch-size"], options["--every"], options["--kinds"]) == (4, 3, ["cross"])
    assert {"--threads", "--out", "--stage", "--shard"}.isdisjoint(options)


def test_a_report_has_the_checksums_of_what_it_read(whole):
    report = toys.said_by(whole)
    assert {len(digest) for digest in report["made"]["sha256"].values()} == {64}
    assert report["made"]["sha256"].keys() == {"source", "target", "model", "tokenizer"}
    page = (whole / "index.html").read_text(encoding="utf-8")
    assert f"<dt>sha256: tokenizer</dt><dd>{report['made']['sha256']['tokenizer']}</dd>" in page


def test_a_report_has_the_versions_that_made_it(whole):
    report = toys.said_by(whole)
    assert report["schema"] == 5
    page = (whole / "index.html").read_text(encoding="utf-8")
    assert "<dt>computed in: precision</dt><dd>float32</dd>" in page
    assert report["made"]["versions"]["transformers"] == transformers.__version__


def test_a_report_counts_unknown_pieces(whole):
    report = toys.said_by(whole)
    assert report["unknown_pieces"] == {"source": 0, "target": 0}


def test_a_report_counts_the_sentences_that_its_loss_is_of(whole):
    report = toys.said_by(whole)
    assert report["learned"]["sentences"] == 8


def test_a_report_has_the_options_that_were_given(corpus, tmp_path):
    done(*given(corpus, tmp_path, "--ignore-special", "--method", "means"))
    other = toys.said_by(tmp_path)["made"]["options"]
    assert (other["--ignore-special"], other["--method"]) == (True, "means")


def test_bleu_of_what_the_model_writes_itself(corpus, whole, monkeypatch):
    """Of all judged sentences, two batches of four; by hand, one at a time; nothing without sacreBLEU."""
    sacrebleu = pytest.importorskip("sacrebleu", reason="BLEU is sacreBLEU's")
    checkpoint = Checkpoint.load(corpus / "tiny")
    text = ParallelText(corpus / "a.txt", corpus / "b.txt")
    judged = list(checkpoint.stream(text, batch_size=4).batches())[2::3]
    written, right = [], []
    for source, target in (pair for batch in judged for pair in batch.pairs):
        ids = checkpoint.tokenizer(source, return_tensors="pt")
        generated = checkpoint.model.generate(**ids, max_new_tokens=128, num_beams=1, do_sample=False)
        written.append(checkpoint.tokenizer.decode(generated[0], skip_special_tokens=True))
        right.append(target)
    expected = sacrebleu.corpus_bleu(written, [right], force=True).score
    assert toys.said_by(whole)["learned"]["bleu"] == pytest.approx(expected)
    page = (whole / "index.html").read_text(encoding="utf-8")
    assert f"<dt>BLEU of what it writes itself</dt><dd>{expected:.1f}</dd>" in page
    monkeypatch.setattr(Checkpoint, "write", lambda _, tokens, longest: tokens)  # the reference itself
    assert checkpoint.bleu(judged)["bleu"] == pytest.approx(100)
    monkeypatch.setattr("attnlib.report.pretrained.find_spec", lambda name: None)
    assert checkpoint.bleu(judged) == {}


def report_of_distinct_words(folder, sentences):
    """Each pair has a word of its own; the page has those of a few that were judged."""
    source = [f"the dog asks{n:02}" for n in range(24)]
    target = [f"le chien dit{n:02}" for n in range(24)]
    toys.save_checkpoint(folder / "tiny", [*source, *target])
    toys.text_of(folder, "\n".join(source), "\n".join(target))
    done(*given(folder, folder / "out", "--kinds", "cross,encoder_self", "--sentences", sentences))
    return folder / "out"


@pytest.mark.parametrize(("sentences", "count"), [(12, 4), (2, 2), (1, 1), (0, 0)])
def test_only_the_page_holds_words_of_the_pairs_it_shows(tmp_path, sentences, count):
    out = report_of_distinct_words(tmp_path, sentences)
    distinct = re.compile(rb"(?:asks|dit)\d\d")
    files = {str(path): set(distinct.findall(content)) for path, content in toys.files_of(out).items()}
    assert [name for name, words in files.items() if words] == ["index.html"] * bool(count)
    assert len(files) > 6  # tables, and the sums of both passes
    shown = {word[-2:] for word in files["index.html"]}
    assert len(files["index.html"]) == 2 * len(shown)  # either side
    assert len(shown) == count


@pytest.mark.parametrize(
    ("sentences", "pairs"),
    [(12, "4 sentence pairs"), (2, "2 sentence pairs"), (1, "one sentence pair"), (0, "no sentence")],
)
def test_the_page_says_how_many_pairs_it_shows(tmp_path, sentences, pairs):
    page = (report_of_distinct_words(tmp_path, sentences) / "index.html").read_text(encoding="utf-8")
    assert f"This page holds the words of {pairs} and of no other." in page


@pytest.fixture(scope="module", params=[(), ("--shards", 2)], ids=["at once", "in shards"])
def report_of_odd_pairs(corpus, tmp_path_factory, request):
    """A report on 24 pairs and four with an empty side; no more than seven pieces of a side are read."""
    folder = tmp_path_factory.mktemp("odd pairs")
    text = toys.text_of(folder, "\n".join(["", *SOURCE, "a\n\n\n"]), "\n".join(["A", *TARGET, " \nA\n\n"]))
    out, files = folder / "out", ("--source", text.source, "--target", text.target)
    done(*given(corpus, out, *files, "--longest", 7, "--probed", 0, *request.param))
    return out


@pytest.fixture(scope="module")
def n_longer():
    """How many of the 24 pairs have more than seven pieces on a side, the end mark included."""
    return sum(max(len(s.split()), len(t.split())) + 1 > 7 for s, t in zip(SOURCE, TARGET, strict=True))


def test_pairs_left_out_or_cut_are_counted(report_of_odd_pairs, n_longer):
    assert 0 < n_longer < 24
    losses = toys.said_by(report_of_odd_pairs)["losses"]
    assert (losses["left_out"], losses["cut"]) == (4, n_longer)


def test_pairs_left_out_or_cut_are_in_the_notes(report_of_odd_pairs, n_longer):
    sentences = toys.said_by(report_of_odd_pairs)["notes"]
    assert any(f"{n_longer} pairs were cut off at the longest length" in sentence for sentence in sentences)
    assert any("4 pairs of the corpus were left out because" in sentence for sentence in sentences)


def test_what_a_report_warned_of_is_there_when_it_is_read_again(report_of_odd_pairs):
    assert notes(read_report(report_of_odd_pairs)) == toys.said_by(report_of_odd_pairs)["notes"]


@pytest.mark.parametrize("name", ["best (v2)", "[/red][bold]out"])
def test_folders_with_brackets_in_their_names(corpus, tmp_path, name):
    """In the title of the report, and in a terminal, whose markup must not take them for its own."""
    folder, out = tmp_path / name, tmp_path / "reports" / name
    shutil.copytree(corpus / "tiny", folder)
    assert f"report: {out / 'index.html'}" in done(*given(corpus, out, "--model", folder))
    assert f"<h1>How {folder.name} attends</h1>" in (out / "index.html").read_text(encoding="utf-8")


def test_the_second_of_two_analyses_of_one_folder_is_told_who_works_there(corpus, tmp_path, whole):
    """Before it reads anything; a shard of its own is nobody's, and afterwards all is as from one alone."""
    given_here = partial(given, corpus, tmp_path)
    with locked(tmp_path / "parts" / "judge-0-of-1"):
        refused(given_here(), f"judge-0-of-1 is being written by process {os.getpid()}, since 20")
        assert not list(tmp_path.rglob("*.safetensors"))
        done(*given_here("--shards", 2, "--shard", 1))
    done(*given_here())
    assert report_of(tmp_path) == report_of(whole)


@pytest.mark.parametrize(("words", "message"), GIVEN["refused"].items())
def test_each_error_is_one_line(corpus, tmp_path, monkeypatch, words, message):
    (corpus / "blank.txt").write_bytes(b"\n \n")
    monkeypatch.chdir(corpus)
    words = words.replace("TINY", "--model tiny --source a.txt --target b.txt").split()
    refused(["--out", tmp_path / "out", *words], message)
    assert not (tmp_path / "out" / "index.html").exists()


@pytest.mark.parametrize(("more", "message"), GIVEN["another"].items())
def test_another_analysis_in_the_same_folder_is_refused(corpus, whole, more, message):
    before = toys.files_of(whole)
    refused(given(corpus, whole, *more.split()), message)
    assert toys.files_of(whole) == before


def test_another_text_in_the_same_folder_is_refused_without_its_digest(corpus, whole, tmp_path):
    other = toys.text_of(tmp_path, "the red dog\n" * len(SOURCE), "le chien\n" * len(SOURCE))
    source, target = ("--source", other.source), ("--target", other.target)
    refused(
        given(corpus, whole, *source), "parts belongs to another --source; delete it or choose another --o"
    )
    refused(
        given(corpus, whole, *source, *target), "parts belongs to another --source and --target; delete it"
    )
