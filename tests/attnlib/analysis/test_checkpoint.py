"""A checkpoint and two text files: read line by line, identified by all that the numbers depend on."""

import json
import pickle
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from attnlib.adapters import text_batches
from attnlib.analysis.checkpoint import (
    Checkpoint,
    ParallelText,
    ignorable_ids,
    language_codes,
    set_languages,
    tokenizer_digest,
)
from attnlib.errors import BadInput
from tests.attnlib.adapters.adapter_builders import model_of
from tests.attnlib.analysis.builders import LINES, SOURCE, TARGET, save_checkpoint, text_of, tokenizer_of

transformers = pytest.importorskip("transformers", reason="checkpoints are those of transformers")
tokenizers = pytest.importorskip("tokenizers", reason="it comes with transformers")
sentencepiece = pytest.importorskip("sentencepiece", reason="M2M100 and Marian have such pieces")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_checkpoint(tmp_path_factory.mktemp("saved") / "tiny_t5")


@pytest.mark.parametrize(
    ("source", "target", "pairs"),
    [
        ("a b\nc\n\nd\n", "A\nB\r\nC\nD\n", [("a b", "A"), ("c", "B"), ("", "C"), ("d", "D")]),
        ("c\nd", "C\nD", [("c", "C"), ("d", "D")]),
        # other programs count lines by line feeds alone; what Unicode calls a line end stays in its line
        ("a\u2028b\x0bc\x85d\re\nf\n", "A\nB\n", [("a\u2028b\x0bc\x85d\re", "A"), ("f", "B")]),
        # a mark of byte order is not part of the first word
        ("\ufeffa\n\ufeffb\n", b"\xef\xbb\xbfA\nB\n", [("a", "A"), ("\ufeffb", "B")]),
    ],
)
def test_lines_and_checksums(tmp_path, source, target, pairs):
    text = text_of(tmp_path, source, target)
    lines, digests = text.checked()
    assert list(text.pairs()) == pairs
    assert lines == len(pairs)
    assert digests.keys() == {"source", "target"}
    assert digests["source"] != digests["target"]


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
    if source == "a\nb\n":  # when nobody has checked
        with pytest.raises(BadInput, match=r"b\.txt ends before line 2, which the other file has"):
            list(text.pairs())


def test_special_pieces_are_ignored_where_asked(folder, tmp_path):
    checkpoint = Checkpoint.load(str(folder))
    for ignore in (False, True):
        stream = checkpoint.stream(text_of(tmp_path), ignore_special=ignore, batch_size=7)
        one = stream.trace(next(iter(stream.batches())))
        end = one.source_tokens == checkpoint.tokenizer.eos_token_id
        assert bool(one.counted("source")[end & one.source_mask].any()) != ignore
        assert bool(one.counted("target")[:, 0].any()) != ignore  # what the decoder starts with


def test_what_made_an_analysis_names_files_model_and_options(folder, tmp_path):
    checkpoint, text = Checkpoint.load(str(folder)), text_of(tmp_path)
    made = checkpoint.stream(text, ignore_special=True, layers={1}, longest=9).made()
    digests = text.checked()[1] | {"model": checkpoint.digest()}
    assert digests.items() < made["sha256"].items()
    assert made["sha256"].keys() - digests.keys() == {"tokenizer"}
    own = {"ignore_special": True, "layers": [1], "longest": 9, "kinds": ["cross"], "prefix": ""}
    assert own.items() <= made["options"].items()
    other = replace(checkpoint, tokenizer=tokenizer_of(sorted(TARGET))).stream(text).made()
    assert other["sha256"]["tokenizer"] != made["sha256"]["tokenizer"]


def test_a_digest_changes_with_all_that_the_numbers_depend_on(folder, tmp_path):
    """Weights; heads, which weights of the same shapes may be dealt out to otherwise; a prefix; words and
    rules of the tokenizer. Not with where it lies, and not with how the tokenizer was called."""
    before = Checkpoint.load(str(folder))
    after = Checkpoint.load(str(shutil.copytree(folder, tmp_path / "other")))
    for batch in before.stream(text_of(tmp_path)).batches():
        assert len(batch.tokens.source)  # tokenizers remember how they were called
    found = [before.digest()]
    assert after.digest() == found[0]
    found.append(replace(after, prefix="translate: ").digest())
    changed = [tokenizer_of(lines) for lines in (sorted(TARGET), *[LINES] * 5)]
    changed[1].add_tokens(["new"])
    changed[2].backend_tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    changed[3].backend_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="$A")
    changed[4].backend_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    found += [replace(after, tokenizer=tokenizer).digest() for tokenizer in changed]
    with torch.no_grad():
        after.model.shared.weight[0, 0] += 1
    found.append(after.digest())
    after.model.config.num_heads = 4
    found.append(after.digest())
    assert len(set(found)) == len(found) == 10


def spoilt(name, change=None):
    """A file with another content, or gone."""

    def spoil(folder):
        path = folder / name
        path.write_bytes(change(path.read_bytes())) if change else path.unlink()

    return spoil


def edited(change=lambda own: own, **config):
    """The weights changed, and the settings."""

    def edit(folder):
        path, settings = folder / "model.safetensors", folder / "config.json"
        save_file(change(load_file(path)), path, {"format": "pt"})
        settings.write_text(json.dumps(json.loads(settings.read_text("utf-8")) | config), encoding="utf-8")

    return edit


def decoder_alone(folder):
    sizes = {"n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 20}
    transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).save_pretrained(folder)


def of_sound(folder):
    transformers.WhisperConfig(d_model=8, vocab_size=20, pad_token_id=1).save_pretrained(folder)


def mute(folder):
    for path in folder.glob("tokenizer*"):
        path.unlink()


def wordless(folder):
    mute(folder)
    tokenizer_of([""]).save_pretrained(folder)


QUERY = "decoder.block.0.layer.1.EncDecAttention.q.weight"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        *((spoil, "tiny_t5.* cannot be loaded as an encoder–decoder with a tokenizer") for spoil in (
            spoilt("config.json"), spoilt("config.json", lambda data: b"{"),
            spoilt("config.json", lambda data: b'{"model_type": "nothing"}'),
            spoilt("config.json", lambda data: data.replace(b'"t5"', b'"bert"')),
            spoilt("model.safetensors"), spoilt("model.safetensors", lambda data: data[:-50]),
            spoilt("model.safetensors", lambda data: b"no tensors"),
            spoilt("model.safetensors", lambda data: pickle.dumps({})),
            *(spoilt("tokenizer.json", lambda _, said=said: said) for said in (b"", b"{", b"[]", b"{}")),
            edited(classifier_dropout=None),
            edited(lambda own: own | {QUERY: torch.ones(3, 16)}))),
        (decoder_alone, "type gpt2, an encoder or a decoder alone"),
        (of_sound, "type whisper, which does not.*give saved traces"),
        # What it lacks would be drawn at random, and two calls would give two answers.
        (edited(lambda own: {k: v for k, v in own.items() if k != QUERY}), f"it lacks {QUERY}"),
        (edited(num_layers=5, num_decoder_layers=5), "it lacks decoder.block.2.layer.0.* more"),
        (edited(lambda own: own | {"more.weight": torch.ones(2)}), "it has beside the model's more.weight"),
        (mute, r"tiny_t5 holds no vocabulary: its T5\w* knows [0-9,]+ pieces"),
        (wordless, r"tiny_t5 holds no vocabulary: its .* knows 0 pieces"),
    ],
)  # fmt: skip
def test_checkpoints_that_cannot_be_used(folder, tmp_path, spoil, message):
    other = shutil.copytree(folder, tmp_path / "tiny_t5")
    spoil(other)
    with pytest.raises(BadInput, match=message) as caught:
        Checkpoint.load(str(other))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("family", ["T5", "Bart", "Marian"])
def test_a_checkpoint_whose_weights_are_tied_is_whole(tmp_path, family):
    """The output layer of all of them is the table of words, and is saved once."""
    made = model_of(family, vocab_size=60, tie_word_embeddings=True)
    made.save_pretrained(tmp_path)
    tokenizer_of(LINES).save_pretrained(tmp_path)
    assert torch.equal(Checkpoint.load(str(tmp_path)).model.lm_head.weight, made.lm_head.weight)


def test_unknown_words_are_counted_on_either_side(folder, tmp_path):
    text = text_of(tmp_path, "the zzz\nthe red\n", "le le\nle le\n")
    stream = Checkpoint.load(str(folder)).stream(text)
    (losses,) = map(stream.losses, stream.batches())
    assert losses.unknown == {"source": 1 / 6, "target": 0}


def test_a_t5_that_does_not_say_what_its_decoder_starts_with(folder, tmp_path):
    """As it comes from T5Config: padding, and the report says so."""
    other = shutil.copytree(folder, tmp_path / "plain")
    said = json.loads((other / "config.json").read_text(encoding="utf-8"))
    del said["decoder_start_token_id"]
    (other / "config.json").write_text(json.dumps(said), encoding="utf-8")
    own, like = Checkpoint.load(str(other)), Checkpoint.load(str(folder))
    ones = [one.stream(text_of(tmp_path)) for one in (own, like)]
    first, second = (stream.trace(next(iter(stream.batches()))) for stream in ones)
    assert torch.equal(first.target_tokens, second.target_tokens)
    assert own.about["Its decoder starts with"].startswith("<pad>, as T5 was trained")
    assert "Its decoder starts with" not in like.about


@pytest.mark.parametrize(
    ("start", "padding", "message"),
    [
        (None, None, "T5ForConditionalGeneration does not say what its decoder starts with: set config"),
        ("x", 0, "config.decoder_start_token_id is 'x'; expected the id of a token"),
        (1.5, 0, "config.decoder_start_token_id is 1.5; expected the id of a token"),
        (999, 0, "a target holds id 999; T5ForConditionalGeneration embeds 60, from 0"),
    ],
)
def test_a_start_that_is_no_token_is_refused(folder, tmp_path, start, padding, message):
    other = shutil.copytree(folder, tmp_path / "other")
    edited(decoder_start_token_id=start, pad_token_id=padding)(other)
    stream = Checkpoint.load(str(other)).stream(text_of(tmp_path))
    with pytest.raises(BadInput, match=message):
        stream.trace(next(iter(stream.batches())))


def test_a_folder_that_is_not_there_is_not_looked_for_elsewhere(tmp_path, monkeypatch):
    """A path: absolute, from here, of several parts, or below a folder that there is."""

    def asked(name, **_):
        raise OSError(f"{name} was looked for")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", asked)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for name in (str(tmp_path / "none"), "./none", "../none", "~/none", "a/b/none", "models/none", "none/a/"):
        with pytest.raises(BadInput, match=f"there is no folder {name}: give one that save_pretrained wrote"):
            Checkpoint.load(name)
    for name in ("none", "somebody/none"):
        with pytest.raises(BadInput, match=f"{name} was looked for"):
            Checkpoint.load(name)


# What a model writes itself.


def test_what_is_written_is_the_likeliest_piece_at_every_step(folder, tmp_path):
    """Step by step by hand, up to the end mark or the longest length; lines of the target are not needed."""
    checkpoint, text = Checkpoint.load(str(folder)), text_of(tmp_path)
    stream = checkpoint.stream(ParallelText(text.source), generate=True, longest=9)
    assert stream.logits is None
    (batch,), (other,) = stream.batches(), stream.batches()
    written, model = other.tokens.target, checkpoint.model
    late = [own for own in written.unique() if own in written and own not in written[:, 0]]
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.clone())  # of its own
    with torch.no_grad():  # where one of these pieces would be written, sentences end
        model.lm_head.weight[1] = 1.001 * model.lm_head.weight[late[-1]]
    tokens = batch.tokens
    assert set(tokens.target_mask.sum(1).tolist()) > {9}
    for row, source in enumerate(tokens.source):
        ids, read = source[tokens.source_mask[row]][None], torch.zeros(1, 1, dtype=torch.long)
        while read.shape[1] < 10 and 1 not in read[0]:
            with torch.no_grad():
                best = model(input_ids=ids, decoder_input_ids=read).logits[0, -1].argmax()
            read = torch.cat([read, best[None, None]], dim=1)
        assert tokens.target[row][tokens.target_mask[row]].tolist() == read[0, 1:].tolist()
        assert tokens.read[row][tokens.target_mask[row]].tolist() == read[0, :-1].tolist()
    assert (tokens.target_mask.sum(1) <= 9).all()
    assert stream.trace(batch).target_outputs.shape == tokens.target.shape
    with pytest.raises(BadInput, match="there is no target: give a file"):
        checkpoint.stream(ParallelText(text.source))
    with pytest.raises(BadInput, match="generate asks the model to write it: leave one of them out"):
        checkpoint.stream(text, generate=True)


# Languages.


SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
PIECES = [*SPECIAL, *(f"▁{word}" for word in sorted(set(" ".join(LINES).split())))]


def of_scores(kind):
    """A tokenizer of transformers with codes of mBART."""
    pieces = [*PIECES, "ar_AR", "de_DE", "en_XX", "fr_XX"]
    return getattr(transformers, kind)(vocab=[(piece, -1.0 * piece.startswith("▁")) for piece in pieces])


def of_pieces(folder, kind):
    """A tokenizer in plain Python over a model of sentencepiece."""
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
    "nllb": (
        lambda _: transformers.NllbTokenizer(vocab={piece: n for n, piece in enumerate(PIECES)}),
        *("eng_Latn", "fra_Latn", "fra_Latn"),
    ),
    "m2m": (lambda folder: of_pieces(folder, "M2M100"), "en", "fr", "__fr__"),
}


@pytest.fixture(params=MULTILINGUAL)
def multilingual(request, tmp_path):
    make, *rest = MULTILINGUAL[request.param]
    return make(tmp_path), *rest


def test_each_side_is_marked_with_its_language(multilingual):
    """Marks of languages and ends are special, and unknown words are not."""
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
    checkpoint = Checkpoint("m", model, tokenizer, "en_XX", "fr_XX")
    stream = checkpoint.stream(ParallelText(text_of(tmp_path).source), generate=True, longest=6)
    one = stream.trace(next(iter(stream.batches())))
    language, marked = tokenizer.convert_tokens_to_ids("fr_XX"), tokenizer(text_target=["."])["input_ids"][0]
    written = marked[0] == language
    assert ((one.target_outputs if written else one.target_tokens)[:, 0] == language).all()
    likeliest = checkpoint.adapter().logits(one).argmax(-1) == one.target_outputs
    likeliest[:, 0] |= written
    assert likeliest[one.target_mask].all()


def test_languages_that_nobody_chose_are_asked_for(multilingual):
    tokenizer, source, target, _ = multilingual
    for chosen in ((None, None), (source, None), (None, target)):
        with pytest.raises(BadInput, match="give --source-language and --target-language, each") as caught:
            Checkpoint("m", None, tokenizer, *chosen)
        assert "\n" not in str(caught.value)
        assert language_codes(tokenizer)[0] in str(caught.value)


@pytest.mark.parametrize("given", [("en", None), (None, "fr"), ("en", "fr")])
def test_languages_for_a_tokenizer_without_are_refused(given):
    with pytest.raises(BadInput, match=r"knows no languages, but '(en|fr)' is given"):
        Checkpoint("m", None, tokenizer_of(SOURCE), *given)


def test_a_length_that_the_marks_alone_exceed_is_refused():
    """An end and a language are two; transformers then cuts nothing at all."""
    tokenizer = of_scores("MBartTokenizer")
    set_languages(tokenizer, "en_XX", "fr_XX")
    pair = (SOURCE[0], TARGET[0])
    assert next(text_batches(tokenizer, [pair], longest=2)).source.shape == (1, 2)
    with pytest.raises(BadInput, match=r"longest is 1, and the tokenizer made [67] pieces all the same"):
        next(text_batches(tokenizer, [pair], longest=1))


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
