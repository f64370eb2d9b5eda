"""What tests of the analysis share: passes of a toy, hostile words, a tiny checkpoint with a text."""

import json
from functools import partial
from itertools import product

import pandas
import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from attnlib import Attention, Trace
from attnlib.adapters import LinearMap
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import JudgedSums
from attnlib.analysis.results import results
from attnlib.cli import app
from attnlib.report import ParallelText
from tests.attnlib.adapters.adapter_builders import model_of
from tests.attnlib.models.model_builders import generator
from tests.tables import beside

# -- passes of a toy --

ALL = ("cross", "encoder_self", "decoder_self")
WORDS, LONGEST, WIDTH, HEADS, BATCH = 8, 5, 4, 2, 6
SITES = {"encoder": "source", "decoder.cross": "target", "encoder.self": "source", "decoder.self": "target"}


class Toy:
    """Passes by number of a model of two heads, over states made of place, word and noise.

    Words are 1 to 7, of which ``ignored`` count nowhere; ``probe`` is a β that depends on the words alone.
    """

    def __init__(self, kinds=("cross",), *, ignored=(), bias=False):
        self.kinds, self.ignored, self.bias = kinds, ignored, bias
        draw = partial(torch.randn, generator=generator(0), dtype=torch.float64)
        self.places = {site: draw(LONGEST, WIDTH) for site in SITES}
        self.words = {site: draw(WORDS, WIDTH) for site in SITES}
        self.maps = {
            kind: [LinearMap(draw(HEADS, 3, WIDTH), draw(HEADS, 3)) for _ in range(2)] for kind in ALL
        }
        self.biases = draw(1, HEADS, LONGEST, LONGEST)

    def __call__(self, number):
        draw, given, states = generator(number + 1), {}, {}
        sides = {"source": LONGEST, "target": LONGEST - 1}
        for side, length in sides.items():
            given[f"{side}_tokens"] = torch.randint(1, WORDS, (BATCH, length), generator=draw)
            if self.ignored:
                ignored = torch.tensor(self.ignored)
                given[f"ignored_{side}"] = torch.isin(given[f"{side}_tokens"], ignored)
        for side, length in sides.items():
            lengths = torch.randint(1, length + 1, (BATCH, 1), generator=draw)
            given[f"{side}_mask"] = torch.arange(length) < lengths
        for site, side in SITES.items():
            tokens, mask = given[f"{side}_tokens"], given[f"{side}_mask"]
            noise = torch.randn(*mask.shape, WIDTH, generator=draw, dtype=torch.float64)
            made = self.places[site][: mask.shape[1]] + self.words[site][tokens] + 0.3 * noise
            states[site] = made.masked_fill(~mask[..., None], 1e3)
        attended = tuple(self._attended(kind, states) for kind in self.kinds)
        return Trace(**given, target_outputs=given["target_tokens"].roll(-1, 1), attentions=attended)

    def _attended(self, kind, states):
        self_site = "encoder.self" if kind == "encoder_self" else "decoder.self"
        sites = ("decoder.cross", "encoder") if kind == "cross" else (self_site, self_site)
        queries, keys = (states[site] for site in sites)
        bias = self.biases[:, :, : queries.shape[1], : keys.shape[1]] if self.bias else None
        return Attention(
            kind,
            0,
            query_inputs=queries,
            key_inputs=keys,
            query_site=sites[0],
            key_site=sites[1],
            maps=tuple(self.maps[kind]),
            scale=0.3,
            position_bias=bias,
            causal=kind == "decoder_self",
        )

    def probe(self, model_pass):
        table = torch.rand(WORDS, WORDS, generator=generator(99), dtype=torch.float64)
        return table[model_pass.target_outputs[:, :, None], model_pass.source_tokens[:, None, :]]


def by_hand(scores, **ignored):
    """One sample of states that are zero: its scores are a bias by position. Ignored are places of a side."""
    bias = torch.tensor(scores).log()[None, None]
    alike, given, states = LinearMap(torch.ones(1, 1, 1)), {}, []
    for side, length in zip(("target", "source"), bias.shape[2:], strict=True):
        ids = torch.arange(length)[None]
        given |= {f"{side}_tokens": ids, f"{side}_mask": ids >= 0}
        given[f"ignored_{side}"] = torch.tensor([ignored.get(side, [False] * length)])
        states.append(torch.zeros(1, length, 1))
    inputs = {"query_inputs": states[0], "key_inputs": states[1]}
    sites = {"query_site": "asks", "key_site": "answers"}
    attended = Attention("cross", 0, **inputs, **sites, maps=(alike, alike), position_bias=bias)
    return Trace(**given, target_outputs=given["target_tokens"], attentions=(attended,))


def fit_of(passes, heads=None, method="means"):
    fit = Fit(heads, method=method)
    for model_pass in passes:
        fit.update(model_pass)
    return fit


def judged(fit, passes, probe=None):
    judgement = JudgedSums(fit)
    for model_pass in passes:
        judgement.update(model_pass, probe(model_pass) if probe else None)
    return judgement


def rows_of(judgement, held_out=True):
    outcome = results(judgement.fit, judgement, held_out=held_out)
    return [*outcome.heads, *outcome.terms, *outcome.states]


def assert_same_rows(first, second, tolerance=1e-9, but=()):
    assert [row.keys() for row in first] == [row.keys() for row in second] != []
    frame, expected = (pandas.DataFrame(rows).drop(columns=list(but)) for rows in (first, second))
    pandas.testing.assert_frame_equal(frame, expected, rtol=tolerance, atol=tolerance, check_dtype=False)


# -- words that must stay words, a checkpoint and a text --

LETTERS = beside(__file__, "words")
HOSTILE, SHOWN = [*LETTERS["hostile"], "x" * 5000], LETTERS["shown"]

SOURCE = [f"the {adjective} {noun} {verb} ." for adjective, noun, verb in product(*LETTERS["source"])]
TARGET = [f"le {noun} {adjective} {verb} ." for adjective, noun, verb in product(*LETTERS["target"])]
LINES = (*SOURCE, *TARGET)
TEXTS = ["\n".join(lines) for lines in (SOURCE, TARGET)]


def tokenizer_of(lines):
    """A piece a word, an end mark behind."""
    tokenizers, transformers = map(pytest.importorskip, ("tokenizers", "transformers"))
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="<unk>"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    special = ["<pad>", "</s>", "<unk>"]
    model.train_from_iterator(lines, tokenizers.trainers.WordLevelTrainer(special_tokens=special))
    ends = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    model.post_processor = ends
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, **names)


def save_checkpoint(folder, lines=LINES):
    """A T5 of two layers and two heads, far from uniform attention, and its tokenizer."""
    model_of("T5", vocab_size=60, d_model=16, d_kv=4, d_ff=16, num_heads=2).save_pretrained(folder)
    tokenizer_of(lines).save_pretrained(folder)
    return folder


def save_traces(folder, *seeds, name="{}"):
    """A batch of plain states for each seed, as other code saves them."""
    folder.mkdir(exist_ok=True)
    for seed in seeds:
        draw, valid = generator(seed), torch.ones(2, 3, dtype=torch.bool)
        tensors = {
            f"{side}_tokens": torch.randint(9, (2, 3), generator=draw) for side in ("source", "target")
        }
        tensors |= {f"cross.0.{s}_states": torch.randn(2, 3, 2, generator=draw) for s in ("query", "key")}
        tensors |= {"source_mask": valid, "target_mask": valid.clone()}
        save_file(tensors, folder / f"{name.format(seed)}.safetensors")
    return folder


def attnlib(*words):
    return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "200"})


def said_by(folder):
    """What a report in this folder says; NaN and infinity are no JSON."""
    text = (folder / "analysis.json").read_text(encoding="utf-8")
    return json.loads(text, parse_constant=pytest.fail)


def table_of(path):
    """Rows of a table of comma-separated values; a cell without a number is none."""
    return pandas.read_csv(path).to_dict("records")


def files_of(folder):
    """Contents by path, without locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))
    return {path.relative_to(folder): path.read_bytes() for path in files}


def text_of(folder, source=TEXTS[0], target=TEXTS[1], encoding="utf-8"):
    text = ParallelText(folder / "a.txt", folder / "b.txt")
    for path, content in ((text.source, source), (text.target, target)):
        path.write_text(content, encoding, newline="")
    return text
