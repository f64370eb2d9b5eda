"""What tests of the analysis share: passes of a toy, a tiny checkpoint with a text, calls of the command."""

import csv
import re
from functools import partial
from html.parser import HTMLParser

import pytest
import torch
from typer.testing import CliRunner

from attnlib.adapters import Attended, LinearMap, ModelPass
from attnlib.analysis import ParallelText
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import Judgement
from attnlib.analysis.results import head_rows, state_rows, term_rows
from attnlib.cli import app

# -- passes of a toy --

ALL = ("cross", "encoder_self", "decoder_self")
WORDS, LONGEST, WIDTH, HEADS = 8, 5, 4, 2
SITES = {"encoder": "source", "decoder.cross": "target", "encoder.self": "source", "decoder.self": "target"}


class Toy:
    """Passes by number of a model of two heads, over states made of place, word and noise.

    Words are 1 to 7, of which ``ignored`` count nowhere; ``probe`` is a β that depends on the words alone.
    """

    def __init__(self, kinds=("cross",), *, ignored=(), bias=False, batch=6):
        self.kinds, self.ignored, self.bias, self.batch = kinds, ignored, bias, batch
        draw = partial(torch.randn, generator=generator(0), dtype=torch.float64)
        self.places = {site: draw(LONGEST, WIDTH) for site in SITES}
        self.words = {site: draw(WORDS, WIDTH) for site in SITES}
        self.maps = {
            kind: [LinearMap(draw(HEADS, 3, WIDTH), draw(HEADS, 3)) for _ in range(2)] for kind in ALL
        }
        self.biases = draw(1, HEADS, LONGEST, LONGEST)

    def __call__(self, number):
        draw = generator(number + 1)
        length = {"source": LONGEST, "target": LONGEST - 1}
        tokens = {s: torch.randint(1, WORDS, (self.batch, n), generator=draw) for s, n in length.items()}
        lengths = {s: torch.randint(1, n + 1, (self.batch, 1), generator=draw) for s, n in length.items()}
        masks = {side: torch.arange(n) < lengths[side] for side, n in length.items()}
        states = {}
        for site, side in SITES.items():
            noise = torch.randn(self.batch, length[side], WIDTH, generator=draw, dtype=torch.float64)
            made = self.places[site][: length[side]] + self.words[site][tokens[side]] + 0.3 * noise
            states[site] = made.masked_fill(~masks[side][..., None], 1e3)
        ignored = {s: torch.isin(t, torch.tensor(self.ignored)) for s, t in tokens.items()}
        return ModelPass(
            source_tokens=tokens["source"],
            source_mask=masks["source"],
            target_tokens=tokens["target"],
            target_outputs=tokens["target"].roll(-1, 1),
            target_mask=masks["target"],
            attended=tuple(self._attended(kind, states) for kind in self.kinds),
            ignored_source=ignored["source"] if self.ignored else None,
            ignored_target=ignored["target"] if self.ignored else None,
        )

    def _attended(self, kind, states):
        half = "encoder" if kind == "encoder_self" else "decoder"
        asks, answers = f"{half}.self", f"{half}.self"
        if kind == "cross":
            asks, answers = "decoder.cross", "encoder"
        rows, columns = states[asks].shape[1], states[answers].shape[1]
        return Attended(
            kind=kind,
            layer=0,
            query_inputs=states[asks],
            key_inputs=states[answers],
            query_site=asks,
            key_site=answers,
            query_map=self.maps[kind][0],
            key_map=self.maps[kind][1],
            scale=0.3,
            position_bias=self.biases[:, :, :rows, :columns] if self.bias else None,
            causal=kind == "decoder_self",
        )

    def probe(self, one):
        table = torch.rand(WORDS, WORDS, generator=generator(99), dtype=torch.float64)
        return table[one.target_outputs[:, :, None], one.source_tokens[:, None, :]]


def by_hand(scores, ignored_source, ignored_target=None):
    """One sample of states that are zero: its scores are a bias by position."""
    scores = torch.tensor(scores).log()
    rows, columns = scores.shape
    alike = LinearMap(torch.ones(1, 1, 1))
    one = Attended(
        "cross", 0, torch.zeros(1, rows, 1), torch.zeros(1, columns, 1), "asks", "answers", alike, alike,
        position_bias=scores[None, None],
    )  # fmt: skip
    return ModelPass(
        source_tokens=torch.arange(columns)[None],
        source_mask=torch.ones(1, columns, dtype=torch.bool),
        target_tokens=torch.arange(rows)[None],
        target_outputs=torch.arange(rows)[None],
        target_mask=torch.ones(1, rows, dtype=torch.bool),
        attended=(one,),
        ignored_source=torch.tensor([ignored_source]),
        ignored_target=None if ignored_target is None else torch.tensor([ignored_target]),
    )


def generator(seed):
    return torch.Generator().manual_seed(seed)


def fit_of(passes, heads=None):
    fit = Fit(heads)
    for one in passes:
        fit.update(one)
    return fit


def judged(fit, passes, probe=None):
    judgement = Judgement(fit)
    for one in passes:
        judgement.update(one, probe(one) if probe else None)
    return judgement


def rows_of(judgement):
    """Everything that a report says of it."""
    return [*head_rows(judgement), *term_rows(judgement), *state_rows(judgement.fit, judgement)]


def assert_same_rows(first, second, tolerance=1e-9, but=()):
    assert len(first) == len(second) > 0
    for mine, theirs in zip(first, second, strict=True):
        assert mine.keys() == theirs.keys()
        mine, theirs = ({k: v for k, v in row.items() if k not in but} for row in (mine, theirs))
        texts = {key for key, value in theirs.items() if isinstance(value, str)}
        assert {key: mine[key] for key in texts} == {key: theirs[key] for key in texts}
        mine, theirs = ({k: v for k, v in row.items() if k not in texts} for row in (mine, theirs))
        assert mine == pytest.approx(theirs, rel=tolerance, abs=tolerance, nan_ok=True)


# -- a checkpoint and a text --

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
    tokenizers, transformers = map(pytest.importorskip, ("tokenizers", "transformers"))
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
    transformers, tokenizer = pytest.importorskip("transformers"), tokenizer_of(lines)
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


def text_of(folder, source=None, target=None):
    text = ParallelText(folder / "a.txt", folder / "b.txt")
    for path, content, lines in ((text.source, source, SOURCE), (text.target, target, TARGET)):
        content = "\n".join(lines) + "\n" if content is None else content
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return text


# -- the command --


def attnlib(*words):
    return CliRunner().invoke(app, ["analyse", *map(str, words)], env={"COLUMNS": "200"})


def given(corpus, out, *more):
    text = "--source", corpus / "a.txt", "--target", corpus / "b.txt"
    sizes = "--batch-size", 4, "--every", 3, "--probed", 1
    return "--model", corpus / "tiny", *text, "--out", out, *sizes, *more


def analysed(corpus, out, *more):
    done = attnlib(*given(corpus, out, *more))
    assert done.exit_code == 0, done.output
    return done


TEXTS = ("kind", "term", "states")


def table_of(out, name="heads"):
    with (out / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [
            {key: value if key in TEXTS else float(value or "nan") for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def refused(words, message):
    """One line, but for bars of progress and what it takes, and exit code 2."""
    done = attnlib(*words)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    bars = ("Loading weights", "first pass", "second pass", "beside the model")
    said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(bars)]
    assert len(said) == 1, said
    assert said[0].startswith("error: ")
    assert message in said[0]


# -- pages --

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload='alert(1)'>",
    "</td></table></style><style>*{display:none}</style>",
    "<!-- ",
    "]]>&lt;&#x3c;",
    "a\x00\x07\x1bb",
    "\u202e\u2066abc",
    "\ud800x\udfff",
    "x" * 5000,
    "",
    "https://example.org/x.js",
    "{{7*7}}${7*7}",
]


class Page(HTMLParser):
    """What a browser would make of markup: its text, tags that close, words by themselves, styles."""

    VOID = ("meta", "br", "img", "link", "hr", "input")

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.opened, self.tags, self.attributes, self.words, self.styles = [], [], [], [], []
        self.feed(markup)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.opened[-1:] == ["bdi"]:
            self.words.append(data)
        if self.opened[-1:] == ["style"]:
            self.styles.append(data)


def assert_harmless(markup):
    read = Page(markup)
    assert not {"script", "img", "svg", "iframe", "link", "object", "embed", "a", "base"} & set(read.tags)
    for name, value in read.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "href", "srcset", "action", "formaction", "data")
        assert not re.search(r"url\(|//", value or "")
    for style in read.styles:
        assert not re.search(r"url\(|//|@import", style)
    assert len(read.styles) == 1
    return read
