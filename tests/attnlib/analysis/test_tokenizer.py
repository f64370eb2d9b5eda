"""What the pieces of a text depend on: languages that have to be told, rules that a digest has to cover."""

import json
import shutil
from dataclasses import replace

import pytest

from attnlib.adapters import text_batches
from attnlib.analysis.checkpoint import Checkpoint
from attnlib.analysis.parallel_text import line_batches
from attnlib.analysis.tokenizer import ignorable_ids, language_codes, set_languages, tokenizer_digest
from attnlib.errors import BadInput, UnknownName
from tests.attnlib.analysis.test_checkpoint import SOURCE, TARGET, text_of, tokenizer_of

transformers = pytest.importorskip("transformers", reason="the tokenizers are those of transformers")
sentencepiece = pytest.importorskip("sentencepiece", reason="M2M100 and Marian have such pieces")

WORDS = sorted({word for line in (*SOURCE, *TARGET) for word in line.split()})
PIECES = [(f"▁{word}", -1.0) for word in WORDS]
SPECIAL = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>")]


def mbart(kind="MBartTokenizer"):
    codes = [(code, 0.0) for code in ("ar_AR", "de_DE", "en_XX", "fr_XX")]
    return getattr(transformers, kind)(vocab=[*SPECIAL, *PIECES, *codes])


def nllb():
    names = [name for name, _ in (*SPECIAL, *PIECES)]
    return transformers.NllbTokenizer(vocab={name: number for number, name in enumerate(names)})


def of_pieces(folder, kind):
    """A tokenizer in plain Python over a model of sentencepiece."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter((*SOURCE, *TARGET)),
        model_prefix=str(folder / "pieces"),
        vocab_size=80,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(str(folder / "pieces.model"))
    words = [*(name for name, _ in SPECIAL), *(model.id_to_piece(n) for n in range(model.get_piece_size()))]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    paths = {"m2m": ("vocab.json", "pieces.model"), "marian": ("pieces.model", "pieces.model", "vocab.json")}
    made = transformers.M2M100Tokenizer if kind == "m2m" else transformers.MarianTokenizer
    return made(*(str(folder / name) for name in paths[kind]))


# Source, target and another language of each tokenizer, and what marks the target.
MULTILINGUAL = {
    "mbart": (mbart, "en_XX", "fr_XX", "de_DE", "fr_XX"),
    "mbart50": (lambda: mbart("MBart50Tokenizer"), "en_XX", "fr_XX", "de_DE", "fr_XX"),
    "nllb": (nllb, "eng_Latn", "fra_Latn", "deu_Latn", "fra_Latn"),
    "m2m": (None, "en", "fr", "de", "__fr__"),
}


@pytest.fixture(params=MULTILINGUAL)
def multilingual(request, tmp_path):
    make, *rest = MULTILINGUAL[request.param]
    return (make() if make else of_pieces(tmp_path, "m2m")), *rest


# Languages.


def test_each_side_is_marked_with_its_language(multilingual):
    tokenizer, source, target, _, mark = multilingual
    set_languages(tokenizer, source, target)
    (batch,) = text_batches(tokenizer, [(SOURCE[0], TARGET[0])])
    marked = {int(token) for token in batch.target[0]} & {tokenizer.convert_tokens_to_ids(mark)}
    assert marked, tokenizer.convert_ids_to_tokens(batch.target[0].tolist())
    assert not marked & {int(token) for token in batch.source[0]}
    (again,) = text_batches(tokenizer, [(SOURCE[0], TARGET[0])])
    assert again.target.tolist() == batch.target.tolist()
    assert again.source.tolist() == batch.source.tolist()


@pytest.mark.parametrize("given", [(None, None), (0, None), (None, 1)])
def test_languages_that_nobody_chose_are_asked_for(multilingual, given):
    tokenizer, *codes = multilingual
    chosen = [None if n is None else codes[n] for n in given]
    with pytest.raises(BadInput, match="give --source-language and --target-language, each one") as caught:
        Checkpoint("m", None, tokenizer, *chosen)
    assert "\n" not in str(caught.value)
    assert language_codes(tokenizer)[0] in str(caught.value)


def test_a_language_that_it_does_not_know_is_named(multilingual):
    tokenizer, source, *_ = multilingual
    with pytest.raises(UnknownName, match="no language 'xy'"):
        set_languages(tokenizer, source, "xy")


@pytest.mark.parametrize("given", [("en", None), (None, "fr"), ("en", "fr")])
def test_languages_for_a_tokenizer_without_are_refused(given):
    with pytest.raises(BadInput, match=r"knows no languages, but '(en|fr)' is given"):
        Checkpoint("m", None, tokenizer_of(SOURCE), *given)


def test_marks_of_languages_are_special_and_unknown_words_are_not(multilingual):
    tokenizer, source, target, *_ = multilingual
    set_languages(tokenizer, source, target)
    (batch,) = text_batches(tokenizer, [(SOURCE[0], "zzz")])
    ignored, kept = set(ignorable_ids(tokenizer)), tokenizer.unk_token_id
    assert kept in tokenizer.all_special_ids
    assert kept not in ignored
    tokens = [int(token) for token in batch.source[0]]
    assert [token for token in tokens if token not in ignored]
    assert len([token for token in tokens if token in ignored]) == 2  # the end and the language


# A prefix.


def test_a_prefix_stands_before_every_source_and_no_target():
    tokenizer = tokenizer_of((*SOURCE, *TARGET))
    pairs = [(SOURCE[0], TARGET[0]), (" ", TARGET[0])]  # which the prefix does not make a pair
    for make in (text_batches, line_batches):
        (batch,) = make(tokenizer, pairs, prefix="the old ")
        batch = getattr(batch, "tokens", batch)
        assert batch.source.tolist() == [tokenizer(f"the old {SOURCE[0]}")["input_ids"]]
        assert batch.target.tolist() == [tokenizer(TARGET[0])["input_ids"]]


# Digests.


def test_a_digest_changes_with_all_that_pieces_depend_on(tmp_path):
    """Rules beside the vocabulary: lower case, end marks, special tokens; settings; languages."""
    tokenizers = pytest.importorskip("tokenizers")
    found = [tokenizer_digest(tokenizer_of(SOURCE))]
    for change in ("normalizer", "post_processor", "pre_tokenizer"):
        tokenizer = tokenizer_of(SOURCE)
        new = {
            "normalizer": tokenizers.normalizers.Lowercase(),
            "post_processor": tokenizers.processors.TemplateProcessing(single="$A"),
            "pre_tokenizer": tokenizers.pre_tokenizers.Whitespace(),
        }[change]
        setattr(tokenizer.backend_tokenizer, change, new)
        found.append(tokenizer_digest(tokenizer))
    tokenizer = tokenizer_of(SOURCE)
    tokenizer.add_tokens(["new"])
    found.append(tokenizer_digest(tokenizer))
    assert len(set(found)) == len(found)
    assert tokenizer_digest(tokenizer_of(SOURCE)) == found[0]


def test_a_digest_changes_with_the_languages(multilingual):
    tokenizer, source, target, other, _ = multilingual
    found = []
    for chosen in ((source, target), (source, other), (other, target), (source, target)):
        set_languages(tokenizer, *chosen)
        found.append(tokenizer_digest(tokenizer))
    assert len(set(found)) == 3
    assert found[0] == found[3]


@pytest.mark.parametrize("kind", ["m2m", "marian"])
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_a_tokenizer_in_plain_python_has_one_too(tmp_path, kind):
    """The same elsewhere and after it was called, another where a piece is another."""
    folder = tmp_path / "saved"
    of_pieces(tmp_path, kind).save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if kind == "m2m":
        set_languages(tokenizer, "en", "fr")
    before = tokenizer_digest(tokenizer)
    list(text_batches(tokenizer, [(SOURCE[0], TARGET[0])]))
    assert tokenizer_digest(tokenizer) == before
    other = transformers.AutoTokenizer.from_pretrained(shutil.copytree(folder, tmp_path / "other"))
    if kind == "m2m":
        set_languages(other, "en", "fr")
    assert tokenizer_digest(other) == before
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    names = list(vocabulary)
    vocabulary[names[-1]], vocabulary[names[-2]] = vocabulary[names[-2]], vocabulary[names[-1]]
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    changed = transformers.AutoTokenizer.from_pretrained(folder)
    if kind == "m2m":
        set_languages(changed, "en", "fr")
    assert tokenizer_digest(changed) != before


# Losses, and lines that nobody asks for.


class Counting:
    """A tokenizer that counts the lines it was given, a piece a word and a mark behind."""

    def __init__(self):
        self.lines = 0

    def __call__(self, text=None, text_target=None, *, truncation, max_length):
        given = text if text is not None else text_target
        self.lines += len(given)
        return {"input_ids": [[7] * len(line.split()[: max_length - 1]) + [1] for line in given]}


PAIRS = [("", "a"), ("a b c", "a"), ("a", " "), ("a", "a b"), ("a", "a b c d"), ("a b", "a b"), ("a", "")]


def losses_of(pairs, **sizes):
    return [batch.losses for batch in line_batches(Counting(), pairs, **sizes)]


def test_pairs_left_out_and_cut_are_counted_by_hand():
    """Three sides are empty, the last behind all batches; of three pieces and a mark, two pairs hold more."""
    found = losses_of(PAIRS, batch_size=2, longest=3)
    assert [(own.left_out, own.cut) for own in found] == [(2, 1), (1, 1)]
    assert [(own.left_out, own.cut) for own in losses_of(PAIRS, batch_size=2, longest=5)] == [(2, 0), (1, 0)]
    assert [own.cut for own in losses_of(PAIRS, batch_size=9, longest=4)] == [1]
    assert losses_of([("", "a")]) == []


def test_lines_make_the_batches_that_text_makes():
    for batch_size in (1, 2, 3, 9):
        lines = [batch.tokens for batch in line_batches(Counting(), PAIRS, batch_size=batch_size)]
        text = list(text_batches(Counting(), PAIRS, batch_size=batch_size))
        assert [one.source.tolist() for one in lines] == [one.source.tolist() for one in text]
        assert [one.target.tolist() for one in lines] == [one.target.tolist() for one in text]


def test_only_what_is_asked_for_is_tokenized():
    tokenizer = Counting()
    batches = list(line_batches(tokenizer, PAIRS, batch_size=1))
    assert tokenizer.lines == 0
    assert batches[2].tokens is batches[2].tokens
    assert batches[2].losses.cut == 0
    assert tokenizer.lines == 2  # a source and a target


def test_a_length_that_the_marks_alone_exceed_is_refused():
    """An end and a language are two; transformers then cuts nothing at all."""
    tokenizer = mbart()
    set_languages(tokenizer, "en_XX", "fr_XX")
    pair = (SOURCE[0], TARGET[0])
    assert next(text_batches(tokenizer, [pair], longest=2)).source.shape == (1, 2)
    with pytest.raises(BadInput, match=r"longest is 1, and the tokenizer made [67] pieces all the same"):
        next(text_batches(tokenizer, [pair], longest=1))


@pytest.mark.parametrize("changes", [{"batch_size": 0}, {"longest": 0}])
def test_sizes_start_at_1(changes):
    with pytest.raises(BadInput, match="both must be at least 1"):
        next(line_batches(Counting(), PAIRS, **changes))


def test_a_prefix_makes_another_checkpoint(tmp_path):
    """The numbers depend on it: so does the digest."""
    config = transformers.T5Config(vocab_size=40, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    model = transformers.T5ForConditionalGeneration(config)
    model.set_attn_implementation("eager")
    checkpoint = Checkpoint("m", model, tokenizer_of(SOURCE))
    told = replace(checkpoint, prefix="translate: ")
    assert told.digest() != checkpoint.digest()
    assert told.about["Before every source"] == "translate: "
    text = text_of(tmp_path)
    tokens = next(iter(told.stream(text).batches())).tokens
    assert tokens.source[0, 0] == checkpoint.tokenizer.unk_token_id  # a word that it has not seen
