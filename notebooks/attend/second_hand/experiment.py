"""Four analyses of the first paper that are known by name from a summary, as we read their names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from attnlib.decomposition.components import Components
from attnlib.decomposition.rows import attention_of_terms
from attnlib.decomposition.terms import PAIRS, alignment_terms
from attnlib.models.corpus import Corpus
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.vocabulary import EOS, MARKS
from attnlib.trace import Trace
from companion.results.config import Positive, setting
from companion.results.config import Task as TaskName
from companion.results.frames import Table, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.rounding import rounded
from companion.runs.columns import Column, share
from companion.runs.evaluate import traces
from companion.runs.measure import measure
from companion.runs.store import Store, TrainedModel
from notebooks.shared.measure import Fitted, fit_components
from notebooks.shared.suite import BY_KIND, QUALITY, SUITE, SuiteConfig, model_specs, suite_frame
from notebooks.shared.summaries import summarise
from notebooks.shared.temporal_peaks import OFFSETS, measure_temporal_offset
from notebooks.shared.translations import translations

# Alignment approximation: how many of the nine terms does the network need to write the right words?
#
# Attention is rebuilt from some of the nine terms; context and output are computed from it, with values,
# decoder states and output layer untouched. Terms are added one at a time, always the one that makes most
# words of training samples right. Words are then counted on held-out samples.

TERMS = tuple(f"{decoder}_{encoder}" for decoder, encoder in PAIRS)
ENOUGH = 0.9  # of the words that the network's own attention gains over uniform attention


@dataclass(frozen=True, eq=False)
class TermBatch:
    """The nine terms of a batch's scores, in the order of `PAIRS`, and the trace that they come from."""

    terms: Float[Tensor, "9 batch target source"]
    trace: Trace

    def words_right(self, model: EncoderDecoder, chosen: Sequence[int]) -> int:
        """Count the next words that are right with attention from the chosen terms, uniform without any."""
        trace = self.trace
        attention = attention_of_terms(self.terms, chosen, trace.source_mask[:, None, :])
        context = attention @ trace.encoder_states  # (batch, target, width)
        features = torch.cat([trace.decoder_states, context], dim=-1)  # (batch, target, 2 width)
        words = model.readout(features).argmax(-1)  # (batch, target)
        return int((words == trace.target_outputs)[trace.target_mask].sum())


class RebuiltWords:
    """Accuracy of one network on some samples, with attention from a subset of the nine terms."""

    def __init__(self, model: EncoderDecoder, fitted: Fitted, corpus: Corpus) -> None:
        self.model = model
        self.batches = list(_term_batches(model, fitted, corpus))
        self.rows = sum(int(batch.trace.target_mask.sum()) for batch in self.batches)

    def accuracy(self, chosen: Sequence[int]) -> float:
        """Return the share of next words that are right, end marks included."""
        with torch.no_grad():
            right = sum(batch.words_right(self.model, chosen) for batch in self.batches)
        return right / self.rows


def _term_batches(model: EncoderDecoder, fitted: Fitted, corpus: Corpus) -> Iterator[TermBatch]:
    for trace in traces(model, corpus):
        terms = alignment_terms(*fitted.split(trace))
        yield TermBatch(terms.flatten(0, 1), trace)


def best_order(words: RebuiltWords) -> list[int]:
    """Return all nine terms, each the one that with those before it makes most words right.

    Of terms that are equally good the first in the order of `PAIRS` comes first.
    """
    order: list[int] = []
    while len(order) < len(PAIRS):
        others = [term for term in range(len(PAIRS)) if term not in order]
        accuracies = [words.accuracy([*order, term]) for term in others]
        best = max(accuracies)
        order.append(others[accuracies.index(best)])
    return order


@measure(version=1)
def measure_rebuilt_words(trained: TrainedModel, fit_samples: int, samples: int) -> dict:
    """Count words that are right with attention from the best one, two, … nine terms.

    Components are fitted on training samples. Terms are chosen on the first ``samples`` training samples and
    judged on as many held-out ones. ``order`` names the terms, ``accuracy`` has the share of right words with
    none of them, the first, the first two, and so on; none is uniform attention, nine are the network's own.
    ``alone`` has it for each term by itself.
    """
    task = trained.task
    fitted = fit_components(trained, fit_samples)
    training, held_out = (
        RebuiltWords(trained.model, fitted, _first(corpus, samples)) for corpus in (task.train, task.held_out)
    )
    order = best_order(training)
    return rounded(
        {
            "quality": trained.history["held_out"],
            "order": [TERMS[term] for term in order],
            "accuracy": [held_out.accuracy(order[:number]) for number in range(len(order) + 1)],
            "alone": {name: held_out.accuracy([term]) for term, name in enumerate(TERMS)},
        }
    )


def _first(corpus: Corpus, samples: int) -> Corpus:
    return corpus.subset(np.arange(min(samples, len(corpus))))


# Word variance: how much do states of one word differ, compared with states of different words?


@measure(version=1)
def measure_word_variance(trained: TrainedModel, fit_samples: int) -> dict:
    """Compare the variance of states within words with that between words, on held-out samples.

    Positions are taken off first: what varies within a word is the residual Δ, and what varies between words
    is the input component χ. Components are fitted on training samples; marks, and words not seen in fitting,
    are left out.

    Returns:
        By side, ``spread``: the mean square of Δ over the variance of χ, each occurrence of a word counted
        once; ``by_word``: the same with the mean square of Δ within each word, which then count equally;
        ``words``: number of words; ``listed``: the most frequent words with their own spread.
    """
    task = trained.task
    fitted = fit_components(trained, fit_samples)
    encoder = WordSums(fitted.encoder)
    decoder = WordSums(fitted.decoder)
    for trace in traces(trained.model, task.held_out):
        decoder_parts, encoder_parts = fitted.split(trace)
        encoder.update(encoder_parts.residual, trace.source_tokens, trace.source_mask)
        decoder.update(decoder_parts.residual, trace.target_tokens, trace.target_mask)
    return rounded(
        {
            "encoder": encoder.result(task.source_vocabulary.words),
            "decoder": decoder.result(task.target_vocabulary.words),
        }
    )


LISTED = 40  # the most frequent words, which a table can show


class WordSums:
    """Sums over the occurrences of each word: their number, and the squared lengths of their residuals."""

    def __init__(self, components: Components) -> None:
        self.input = components.input.double().cpu()  # (words, width)
        self.known = components.token_counts.cpu() > 0  # (words,)
        self.known[: len(MARKS)] = False
        self.counts = torch.zeros(len(self.input), dtype=torch.float64)
        self.squares = torch.zeros(len(self.input), dtype=torch.float64)

    def update(
        self,
        residual: Float[Tensor, "batch length width"],
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
    ) -> None:
        words = tokens[mask].cpu()  # (places,)
        squares = residual[mask].double().cpu().square().sum(-1)  # (places,)
        self.counts.index_add_(0, words, torch.ones_like(squares))
        self.squares.index_add_(0, words, squares)

    def result(self, names: Sequence[str]) -> dict:
        """Return the spread of all words, and that of the most frequent ones by name."""
        words = (self.known & (self.counts > 0)).nonzero()[:, 0]  # (words,)
        counts, squares = self.counts[words], self.squares[words]
        inputs = self.input[words]
        mean = (counts @ inputs) / counts.sum()  # (width,)
        between = counts @ (inputs - mean).square().sum(-1) / counts.sum()
        spreads = squares / counts / between  # (words,)
        frequent = counts.argsort(descending=True, stable=True)[:LISTED].tolist()
        return {
            "spread": float(squares.sum() / counts.sum() / between),
            "by_word": float(spreads.mean()),
            "words": len(words),
            "listed": [
                {"word": names[words[row]], "count": int(counts[row]), "spread": float(spreads[row])}
                for row in frequent
            ],
        }


# Alignment with the readout: does what a word adds to an encoder state point to the row of its translation?
#
# The output layer maps the context with W_C. A vector added to all of its rows changes no word, so their mean
# over the words of the training targets is subtracted. By its cosine with these rows are judged the input
# component χ of a word, and the state without its temporal part, h − μ = χ + Δ, at each place of the word.


@measure(version=1)
def measure_readout_angles(trained: TrainedModel, fit_samples: int) -> dict:
    """Compare the directions of encoder components with the readout rows of the words' translations.

    Components are fitted on training samples; ``pooled`` is judged at each place of held-out samples. Which
    word is a translation is known as :func:`~notebooks.shared.translations.translations` says.

    Returns:
        For ``input`` (χ) and ``pooled`` (χ + Δ), means over words: ``cosine`` with the row of the
        translation, ``best_other``, the largest with another row, and ``aligned``, how often the
        translation's is the largest; ``words``: number of words; ``chance``: one over the number of rows.
    """
    fitted = fit_components(trained, fit_samples)
    readout = readout_rows(trained, fitted.encoder)
    sums = torch.zeros(len(readout.row_of), len(ANGLES), dtype=torch.float64)
    occurrences = torch.zeros(len(readout.row_of), dtype=torch.float64)
    for trace in traces(trained.model, trained.task.held_out):
        parts = fitted.encoder.split(trace.encoder_states, trace.source_tokens, trace.source_mask)
        tokens = trace.source_tokens.cpu()  # (batch, source)
        judged = trace.source_mask.cpu() & (readout.row_of[tokens] >= 0)  # (batch, source)
        words = tokens[judged]  # (places,)
        pooled = (parts.input + parts.residual).cpu()[judged]  # (places, width)
        sums.index_add_(0, words, angles(pooled, readout.rows, readout.row_of[words]))
        occurrences.index_add_(0, words, torch.ones(len(words), dtype=torch.float64))
    words = (occurrences > 0).nonzero()[:, 0]
    inputs = fitted.encoder.input.float().cpu()[words]  # (words, width)
    return rounded(
        {
            "input": _mean_angles(angles(inputs, readout.rows, readout.row_of[words])),
            "pooled": _mean_angles(sums[words] / occurrences[words, None]),
            "words": len(words),
            "chance": 1 / len(readout.rows),
            "known_from": readout.known_from,
        }
    )


@dataclass(frozen=True, eq=False)
class ReadoutRows:
    """Rows of the output layer that meet the context, of all words that training targets have.

    Attributes:
        rows: minus their mean.
        row_of: the row of each source word's translation; −1 for a word without one, or not seen in fitting.
        known_from: how the translations are known.
    """

    rows: Float[Tensor, "outputs width"]
    row_of: Int[Tensor, " words"]
    known_from: str


def readout_rows(trained: TrainedModel, encoder: Components) -> ReadoutRows:
    """Return the rows of a network's output layer, and which of them belong to which source word."""
    task, model = trained.task, trained.model
    outputs = sorted({EOS, *np.unique(task.train.target_ids).tolist()})
    weights = model.readout.weight.detach().cpu()[outputs, model.config.width :]  # (outputs, width)
    place_of = {word: place for place, word in enumerate(outputs)}
    expected, known_from = translations(task)
    counts = encoder.token_counts.tolist()
    row_of = torch.full((len(task.source_vocabulary),), -1)
    for word, translation in expected.items():
        if counts[word] > 0 and translation in place_of:
            row_of[word] = place_of[translation]
    return ReadoutRows(weights - weights.mean(0), row_of, known_from)


ANGLES = ("cosine", "best_other", "aligned")


def angles(
    vectors: Float[Tensor, "places width"],
    rows: Float[Tensor, "outputs width"],
    expected: Int[Tensor, " places"],
) -> Float[Tensor, "places angles"]:
    """Return what :data:`ANGLES` names, of each vector and the row that is expected of it."""
    cosines = (normalize(vectors, dim=-1) @ normalize(rows, dim=-1).T).double()  # (places, outputs)
    of_expected = cosines.gather(1, expected[:, None])  # (places, 1)
    others = cosines.scatter(1, expected[:, None], -torch.inf)
    best_other = others.amax(1, keepdim=True)  # (places, 1)
    return torch.cat([of_expected, best_other, (of_expected > best_other).double()], dim=1)


def _mean_angles(by_word: Float[Tensor, "words angles"]) -> dict[str, float]:
    return dict(zip(ANGLES, by_word.mean(0).tolist(), strict=True))


class Config(SuiteConfig):
    """Settings of the task suite, on tasks of which a summary speaks."""

    task: tuple[TaskName, ...] = ("one_to_one", "reordering_50", "scan")
    samples: Positive = setting(
        200,
        "training samples that terms are chosen on, and held-out samples that they are judged on, at most",
    )


PAPER_TASKS = ("one_to_one", "reordering_100", "scan_extended", "multi30k_en_fr")
PROFILES = {
    "quick": Config(samples=60),
    "paper": Config(scale="paper", task=PAPER_TASKS, seeds=3, fit_samples=25_000, samples=1_000),
    "tiny": Config(task=("one_to_one",), seeds=1, width=8, steps=3, fit_samples=100, samples=50),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    return (*_rebuilt(config), *_offsets(config), *_variances(config), *_angles(config))


def _rebuilt(config: Config) -> tuple[Measurement, ...]:
    settings = {"fit_samples": config.fit_samples, "samples": config.samples}
    return measurements_of(model_specs(config), measure_rebuilt_words, **settings)


def _offsets(config: Config) -> tuple[Measurement, ...]:
    return measurements_of(model_specs(config), measure_temporal_offset, fit_samples=config.fit_samples)


def _variances(config: Config) -> tuple[Measurement, ...]:
    return measurements_of(model_specs(config), measure_word_variance, fit_samples=config.fit_samples)


def _angles(config: Config) -> tuple[Measurement, ...]:
    return measurements_of(model_specs(config), measure_readout_angles, fit_samples=config.fit_samples)


NAMES = {name: SUITE[name] for name in (*BY_KIND, "seed")}
KEPT = {
    "number": Column("terms that attention is rebuilt from; 0 is uniform attention", "terms", low=0, high=9),
    "term": Column("term that is added last"),
    "accuracy": share("held-out words that are right"),
    "kept": Column("words that this gains over uniform attention, as a share of what all nine terms gain"),
}
WORDS = {
    "token_accuracy": QUALITY["token_accuracy"],
    "uniform": share("held-out words that are right with uniform attention"),
    "first_term": Column("the term that alone makes most words of training samples right"),
    "kept_by_first": Column("what this term keeps of the words that attention gains over uniform attention"),
    "kept_by_temporal": Column("what the term μ·μ alone keeps of them"),
    "terms_needed": Column("terms that keep nine tenths of them, the best first", "terms", low=1, high=9),
}
NUMBERS_OF_WORDS = ("token_accuracy", "uniform", "kept_by_first", "kept_by_temporal", "terms_needed")


STEPS = {
    "step": Column("step of the decoder, from 0", low=0),
    "temporal": Column("source position with the largest product of temporal parts", low=0),
    "average": Column("source position with the largest average attention", low=0),
    "source_length": Column("positions of the source, end mark included", low=1),
}
SIDES = ("encoder", "decoder")
SPREADS = {
    "side": Column("encoder or decoder"),
    "spread": Column("mean square of the residual over the variance of input components", low=0),
    "by_word": Column("the same with every word counted once", low=0),
    "words": Column("words that occur in held-out samples and were seen in fitting", "words", low=0),
}
LISTED_WORDS = {
    "side": SPREADS["side"],
    "word": Column("the word"),
    "count": Column("how often it occurs in held-out samples", "times", low=0),
    "spread": Column("mean square of its residuals over the variance of input components", low=0),
}
COMPARED = {
    "input_cosine": Column("cosine of χ with the readout row of the translation", low=-1, high=1),
    "input_best_other": Column("largest cosine of χ with another row", low=-1, high=1),
    "input_aligned": share("words whose χ is closest to the row of the translation"),
    "pooled_cosine": Column("cosine of χ + Δ with the row of the translation", low=-1, high=1),
    "pooled_best_other": Column("largest cosine of χ + Δ with another row", low=-1, high=1),
    "pooled_aligned": share("places where χ + Δ is closest to that row, mean over words"),
    "cosine_gain": Column("cosine of χ + Δ minus that of χ, with the row of the translation"),
    "chance": share("one over the number of readout rows"),
    "words": Column("words with a translation", "words", low=0),
}
NUMBERS_OF_ANGLES = tuple(name for name in COMPARED if name not in ("chance", "words"))


def compute(config: Config, store: Store) -> dict[str, Table]:
    return (
        words_of_networks(config, store)
        | offsets_of_networks(config, store)
        | spreads_of_networks(config, store)
        | angles_of_networks(config, store)
    )


def words_of_networks(config: Config, store: Store) -> dict[str, Table]:
    """Return what networks write with attention from some terms, by network and by kind."""
    asked = _rebuilt(config)
    by_number = suite_frame(
        asked, store, records=kept_by_number, columns=KEPT, names=NAMES, row="terms of a network"
    )
    words = suite_frame(asked, store, records=words_kept, columns=WORDS, names=NAMES)
    return {
        "by_number": by_number.whole_numbers("number"),
        "words": words.whole_numbers("terms_needed"),
        "kept_by_kind": summarise(by_number, [*BY_KIND, "number"], ["kept"]),
        "words_by_kind": summarise(words, BY_KIND, NUMBERS_OF_WORDS),
    }


def offsets_of_networks(config: Config, store: Store) -> dict[str, Table]:
    """Return where temporal parts and average attention peak, by network, by step and by kind."""
    asked = _offsets(config)
    offsets = suite_frame(asked, store, columns=OFFSETS, names=NAMES)
    steps = suite_frame(
        asked, store, records=steps_of_cell, columns=STEPS, names=NAMES, row="a step of a network"
    )
    return {
        "offsets": offsets,
        "steps": steps.whole_numbers("step", "temporal", "average", "source_length"),
        "offsets_by_kind": summarise(offsets, BY_KIND, OFFSETS),
    }


def spreads_of_networks(config: Config, store: Store) -> dict[str, Table]:
    """Return how much states vary within words, by network, by word and by kind."""
    asked = _variances(config)
    spreads = suite_frame(
        asked, store, records=by_side, columns=SPREADS, names=NAMES, row="a side of a network"
    )
    listed = suite_frame(asked, store, records=listed_words, columns=LISTED_WORDS, names=NAMES, row="a word")
    return {
        "spreads": spreads.whole_numbers("words"),
        "listed": listed.query("seed == 0").whole_numbers("count"),
        "spreads_by_kind": summarise(spreads, [*BY_KIND, "side"], ["spread", "by_word"]),
    }


def angles_of_networks(config: Config, store: Store) -> dict[str, Table]:
    """Return how components lie to the readout, by network and by kind."""
    compared = suite_frame(_angles(config), store, records=compared_angles, columns=COMPARED, names=NAMES)
    return {
        "angles": compared.whole_numbers("words"),
        "angles_by_kind": summarise(compared, BY_KIND, NUMBERS_OF_ANGLES),
    }


def steps_of_cell(answer: dict) -> list[dict]:
    """Return a row for each step of the most frequent lengths."""
    cell = answer["cell"]
    peaks = zip(cell["temporal"], cell["average"], strict=True)
    return [
        {"step": step, "temporal": temporal, "average": average, "source_length": cell["source_length"]}
        for step, (temporal, average) in enumerate(peaks)
    ]


def by_side(answer: dict) -> list[dict]:
    """Return a row for each side of a network."""
    return [{"side": side, **answer[side]} for side in SIDES]


def listed_words(answer: dict) -> list[dict]:
    """Return a row for each of the most frequent words of both sides."""
    return [{"side": side, **word} for side in SIDES for word in answer[side]["listed"]]


def compared_angles(answer: dict) -> dict:
    """Return the angles of χ and of χ + Δ in one row, with what Δ adds to the cosine."""
    row = {f"{part}_{name}": answer[part][name] for part in ("input", "pooled") for name in ANGLES}
    gain = row["pooled_cosine"] - row["input_cosine"] if answer["words"] else None
    return row | {"cosine_gain": gain, "chance": answer["chance"], "words": answer["words"]}


def kept(accuracy: float, uniform: float, full: float) -> float | None:
    """Return the part of what attention gains over uniform attention; None where it gains nothing.

    >>> kept(0.75, uniform=0.5, full=1.0), kept(0.75, uniform=0.5, full=0.5)
    (0.5, None)
    """
    if full <= uniform:
        return None
    return (accuracy - uniform) / (full - uniform)


def kept_by_number(answer: dict) -> list[dict]:
    """Return a row for each number of terms, from none to nine."""
    accuracies = answer["accuracy"]
    uniform, *_, full = accuracies
    terms = ["none", *answer["order"]]
    return [
        {"number": number, "term": terms[number], "accuracy": accuracy, "kept": kept(accuracy, uniform, full)}
        for number, accuracy in enumerate(accuracies)
    ]


def words_kept(answer: dict) -> dict:
    """Return what one term keeps of a network's words, and how many terms keep nine tenths."""
    uniform, *_, full = answer["accuracy"]
    shares = [kept(accuracy, uniform, full) for accuracy in answer["accuracy"]]
    enough = [number for number, part in enumerate(shares) if part is not None and part >= ENOUGH]
    return {
        "token_accuracy": answer["quality"]["token_accuracy"],
        "uniform": uniform,
        "first_term": answer["order"][0],
        "kept_by_first": shares[1],
        "kept_by_temporal": kept(answer["alone"]["temporal_temporal"], uniform, full),
        "terms_needed": min(enough, default=None),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    kind = "{task}.{kind}."
    return view(
        keyed(tables["kept_by_kind"], kind + "kept.{number}"),
        keyed(tables["words_by_kind"], kind + "{quantity}"),
        keyed(tables["offsets_by_kind"], kind + "peaks.{quantity}"),
        keyed(tables["spreads_by_kind"], kind + "{side}.{quantity}"),
        keyed(tables["angles_by_kind"], kind + "readout.{quantity}"),
    )
