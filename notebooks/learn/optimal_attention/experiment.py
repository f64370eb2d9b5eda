"""Would the best attention attend to larger β? Appendix A.1 of the second paper, and equation 12."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from attnlib.errors import BadInput
from attnlib.models.corpus import Batch
from attnlib.models.translator import BilinearTranslator
from attnlib.probes.agreement import RowMean, agreement, agreement_with_ties_broken, chance_agreement
from attnlib.probes.lexical_probe import log_lexical_probe
from companion.data import labelled_sets, parallel
from companion.results.config import AboveZero, BaseConfig, NotNegative, Positive, setting
from companion.results.frames import Table, keyed, view
from companion.results.measurements import Measurement, answers
from companion.runs.columns import Column, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.learn.optimal_attention.counterexample import COUNTEREXAMPLE
from notebooks.learn.optimal_attention.optimal_attention import OptimalAttention, optimal_attention
from notebooks.shared.agreement import measure_translation, padded, recorded_batches, recorded_probe
from notebooks.shared.intervals import interval_of, less
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.summaries import differences, summarise
from notebooks.shared.trainings.translation import load_pieces, recorded_network

FORMS = ("summed", "joined")  # equation 32, and equation 2
BY_RULE = {"translation": "known_lexicon", "classification": "known_polarity"}


# The best attention α^opt of a trained translation model, and how α and β compare with it (appendix A.1): the
# model whose context and decoder state meet in one linear layer (equation 32), where α^opt is the solution of
# a convex problem (``optimal_attention.py`` beside this file). In double precision, on the validation samples
# of the network as it is in the end; β of other runs is as they recorded it, in single precision, and its
# ties are broken (:mod:`attnlib.probes.agreement`).

UNUSED = 1e-3  # a position with less attention than this counts as not attended to
MATTERS = 0.1  # nats by which α^opt must be better than uniform attention for a word to depend on attention
DIGITS = 6  # of α^opt that are compared: equal shares differ by rounding after these
OTHERS = {"summed": "other_probe", "joined": "main_probe"}  # by form of the other run
EXAMPLE = (6, 10)  # source and target positions of the sentence shown, fewest and most


@measure(version=1)
@torch.no_grad()
def measure_optimal_attention(recording: Recording, *others: Recording, samples: int) -> dict:
    """α^opt of every right word of the first ``samples`` (0 for all), and what it agrees with.

    β of ``others``, recorded on the same samples, is compared as well: of another run of this form,
    ``other_probe``, and of the main model, ``main_probe``.

    ``agreement`` (equation 10) is of ``<first>_<second>``, ``steepest`` being how fast the loss falls with
    each weight at uniform attention; ``log_likelihood`` in nats a word by attention; ``largest_probe``: mean
    α^opt at the top of β (``weight``), the share of words where that is below :data:`UNUSED`, and what these
    lose where it is followed (``lost``); ``positions`` that α^opt uses; ``dependent``, the same of words that
    depend on attention. Raises BadInput for another form, for which the problem is not convex.
    """
    settings = recording.spec.resolved
    if settings.form != "summed":
        raise BadInput(f"the model's form is {settings.form!r}; α^opt is found for 'summed' alone")
    network = recorded_network(settings, recording.tensors).double().to(recording["steps"].device)
    means: dict[str, RowMean] = {}
    n_samples, residual, iterations = 0, 0.0, 0
    sentences: list[Sentence] = []
    unused: list[UnusedWord] = []
    for batch in recorded_batches(recording, samples):
        probes = {OTHERS[other.spec.resolved.form]: recorded_probe(other, batch) for other in others}
        rows = _Rows(network, batch, probes)
        for name, values in rows.numbers().items():
            means[name] = means.get(name, RowMean()) + RowMean.of(values)
        n_samples += len(batch)
        residual = max(residual, float(rows.best.residual.max()))
        iterations = max(iterations, rows.best.iterations)
        sentences += rows.sentences()
        unused += rows.worst()
    spell = load_pieces(settings).pieces.spell
    first = min(sentences, key=lambda sentence: sentence.index, default=None)
    worst = max(unused, key=lambda word: word.lost, default=None)
    means_of = {name: None if mean.rows == 0 else mean.value for name, mean in means.items()}
    return _nested(means_of) | {
        "words": means["positions"].rows,
        "samples": n_samples,
        "residual": residual,
        "iterations": iterations,
        "example": _spelt(first.shown, spell) if first else None,
        "unused_example": _spelt(worst.shown, spell) if worst else None,
    }


@dataclass(frozen=True)
class Sentence:
    """A sentence that may be shown: its number among the samples, and what is known of it."""

    index: int
    shown: dict


@dataclass(frozen=True)
class UnusedWord:
    """A word whose largest probe α^opt does not use: what is lost where it is followed, and what is known."""

    lost: float  # probability of the right word
    shown: dict


class _Rows:
    """One batch: what is known of its right words, a row a word."""

    def __init__(self, network: BilinearTranslator, batch: Batch, others: dict[str, Tensor]):
        readout, trace = network.readout, network(batch)
        self.batch, self.readout, self.others = batch, readout, others
        self.attention = trace.attention
        self.of_source = readout.from_context(trace.encoder_states)
        self.of_target = readout.from_decoder(trace.decoder_states)
        self.probe = log_lexical_probe(
            readout,
            trace.encoder_states,
            trace.decoder_states,
            outputs=batch.target_output,
            source_mask=batch.source_mask,
            target_mask=batch.target_mask,
        )
        # Attention sums to one, so that the bias of the words may stand in either summand.
        from_source = linear(self.of_source, readout.output.weight)
        from_target = readout.logits(self.of_target)
        self.best: OptimalAttention = optimal_attention(
            from_source, from_target, batch.target_output, batch.source_mask, batch.target_mask
        )
        uniform = batch.source_mask / batch.source_mask.sum(1, keepdim=True)
        uniform_context = uniform.to(self.of_source)[:, None] @ self.of_source
        uniform_logits = readout.logits(uniform_context + self.of_target)
        self.descent = _descent(from_source, uniform_logits, batch.target_output)
        self.likelihood = {
            "uniform": self._of_right(uniform_logits),
            "learned": self._of_right(trace.logits),
            "largest_probe": self.probe.amax(-1),
            "optimal": self.best.log_likelihood,
        }

    def _of_right(self, logits: Tensor) -> Tensor:
        return _of_right(logits.log_softmax(-1), self.batch.target_output)

    def numbers(self) -> dict[str, Tensor]:
        """A number a word each, by dotted name; NaN where a word does not count."""
        present = self.batch.target_mask
        valid = self.batch.source_mask[:, None, :].expand(self.attention.shape)[present]
        learned = self.attention[present]  # (word, source), as are the next four
        probe = self.probe[present]
        steepest = self.descent[present]
        optimal = self.best.attention[present]
        rounded_optimal = optimal.round(decimals=DIGITS)
        likelihood = {name: values[present] for name, values in self.likelihood.items()}

        weight = optimal.gather(-1, probe.argmax(-1, keepdim=True))[:, 0]
        is_unused = weight < UNUSED
        lost = likelihood["optimal"] - likelihood["largest_probe"]
        numbers = {
            "agreement.optimal_probe": agreement(rounded_optimal, probe, valid),
            "agreement.learned_probe": agreement(learned, probe, valid),
            "agreement.learned_optimal": agreement(learned, rounded_optimal, valid),
            "agreement.steepest_probe": agreement(steepest, probe, valid),
            "agreement.chance": chance_agreement(probe, valid),
            "largest_probe.weight": weight,
            "largest_probe.unused": is_unused.double(),
            "largest_probe.lost": lost.where(is_unused, torch.nan),
            "positions": (optimal > UNUSED).sum(-1).double(),
        }
        for name, values in self.others.items():
            other = values[present]
            numbers |= {
                f"agreement.optimal_{name}": agreement_with_ties_broken(rounded_optimal, other, valid),
                f"agreement.steepest_{name}": agreement_with_ties_broken(steepest, other, valid),
            }
        numbers |= {f"log_likelihood.{name}": values for name, values in likelihood.items()}

        matters = likelihood["optimal"] - likelihood["uniform"] >= MATTERS
        return numbers | {
            "dependent.share": matters.double(),
            "dependent.optimal_probe": numbers["agreement.optimal_probe"].where(matters, torch.nan),
            "dependent.learned_probe": numbers["agreement.learned_probe"].where(matters, torch.nan),
            "dependent.unused": numbers["largest_probe.unused"].where(matters, torch.nan),
        }

    def sentences(self) -> list[Sentence]:
        """Samples of a length to be shown."""
        listed = []
        fewest, most = EXAMPLE
        source_lengths = self.batch.source_mask.sum(1).tolist()
        target_lengths = self.batch.target_mask.sum(1).tolist()
        for row, index in enumerate(self.batch.indices.tolist()):
            shortest = min(source_lengths[row], target_lengths[row])
            longest = max(source_lengths[row], target_lengths[row])
            if fewest <= shortest and longest <= most:
                steps = slice(0, target_lengths[row])
                listed.append(Sentence(index, self._shown(row, steps)))
        return listed

    def worst(self) -> list[UnusedWord]:
        """The word of the batch that loses most where its largest probe is followed, among those unused.

        ``says`` is the likeliest word from each position alone.
        """
        top = self.probe.argmax(-1, keepdim=True)
        weight = self.best.attention.gather(-1, top)[..., 0]
        is_unused = (weight < UNUSED) & self.batch.target_mask
        if not bool(is_unused.any()):
            return []
        lost = self.likelihood["optimal"].exp() - self.likelihood["largest_probe"].exp()
        lost = lost.masked_fill(~is_unused, -torch.inf)
        row, step = divmod(int(lost.argmax()), lost.shape[1])
        shown = self._shown(row, slice(step, step + 1))
        source_length = len(shown["source"])
        from_one_position = self.of_source[row, :source_length] + self.of_target[row, step]
        likeliest = self.readout.logits(from_one_position).softmax(-1).max(-1)
        shown |= {
            "says": likeliest.indices.tolist(),
            "says_with": likeliest.values.tolist(),
            "right": {name: float(values[row, step].exp()) for name, values in self.likelihood.items()},
        }
        return [UnusedWord(float(lost[row, step]), shown)]

    def _shown(self, row: int, steps: slice) -> dict:
        length = int(self.batch.source_mask[row].sum())
        return {
            "source": self.batch.source[row, :length].tolist(),
            "target": self.batch.target_output[row, steps].tolist(),
            "attention": self.attention[row, steps, :length].tolist(),
            "probe": self.probe.exp()[row, steps, :length].tolist(),
            "optimal": self.best.attention[row, steps, :length].tolist(),
        }


def _descent(from_source: Tensor, logits: Tensor, right: Tensor) -> Tensor:
    """−∇h at the attention that gives these logits; −∇loss is 1 − p of the right word times it."""
    by_word = from_source.transpose(1, 2)  # (batch, words, source)
    chosen = right[..., None]
    wrong = logits.scatter(-1, chosen, -torch.inf).softmax(-1)
    of_right = by_word.gather(1, chosen.expand(-1, -1, from_source.shape[1]))
    return of_right - wrong @ by_word


def _spelt(shown: dict, spell) -> dict:
    return shown | {name: spell(shown[name]) for name in ("source", "target", "says") if name in shown}


def _nested(flat: dict[str, float | None]) -> dict:
    """Return numbers with a dot in their names below what stands before it."""
    nested: dict = {}
    for name, value in flat.items():
        branch, _, leaf = name.rpartition(".")
        if branch:
            nested.setdefault(branch, {})[leaf] = value
        else:
            nested[leaf] = value
    return nested


# How far a prediction follows from the lexical probe and the attention alone (section 3.3). Where the logits
# are linear in the attention, p(o) ∝ exp( Σ_l α_l log β_l(o) ) for every word o. With two outputs this is
# equation 12, p = σ( Σ_l α_l σ⁻¹(β_l) ); with more it needs β of all words.


@measure(version=1)
@torch.no_grad()
def measure_probe_identity(recording: Recording, *, samples: int) -> dict:
    """Log-probabilities of the right words, rebuilt from probe and attention, less the network's own.

    Of the absolute difference, in nats: ``all_words``, from β of every word, and ``right_word``, from
    equation 12 with β of the right word alone.
    """
    network = recorded_network(recording.spec.resolved, recording.tensors)
    network = network.double().to(recording["steps"].device)
    by_batch: dict[str, list[Tensor]] = {"all_words": [], "right_word": []}
    for batch in recorded_batches(recording, samples):
        for name, values in _differences(network, batch).items():
            by_batch[name].append(values[batch.target_mask].abs())
    measured: dict = {}
    for name, batches in by_batch.items():
        values = torch.cat(batches)
        measured["words"] = len(values)
        measured[name] = {"mean": float(values.mean()), "largest": float(values.max())}
    return measured


def _differences(network: BilinearTranslator, batch: Batch) -> dict[str, Tensor]:
    """Rebuilt less own log-probability of each right word, (batch, target); arbitrary at padding.

    A target position at a time: the probe of all words is batch × source × words numbers.
    """
    readout, trace = network.readout, network(batch)
    of_source = readout.from_context(trace.encoder_states)
    of_target = readout.from_decoder(trace.decoder_states)
    learned = _of_right(trace.logits.log_softmax(-1), batch.target_output)
    from_all_words, from_right_word = [], []
    for step, right in enumerate(batch.target_output.unbind(1)):
        logits = readout.logits(of_source + of_target[:, step, None])
        log_probe = logits.log_softmax(-1)  # (batch, source, words)
        attention = trace.attention[:, step]  # (batch, source), zero at padding
        mean = torch.einsum("bl,blo->bo", attention, log_probe)
        from_all_words.append(_of_right(mean.log_softmax(-1), right))
        at_every_position = right[:, None].expand(-1, log_probe.shape[1])
        of_word = _of_right(log_probe, at_every_position)  # (batch, source)
        from_right_word.append(_log_sigmoid_of_mean(attention, of_word))
    return {
        "all_words": torch.stack(from_all_words, 1) - learned,
        "right_word": torch.stack(from_right_word, 1) - learned,
    }


def _log_sigmoid_of_mean(attention: Tensor, log_probe: Tensor) -> Tensor:
    """log σ( Σ_l α_l σ⁻¹(β_l) ), finite where β rounds to 1."""
    others = torch.log(-torch.expm1(log_probe.clamp(max=-1e-15)))
    return torch.nn.functional.logsigmoid((attention * (log_probe - others)).sum(-1))


def _of_right(values: Tensor, words: Tensor) -> Tensor:
    return values.gather(-1, words[..., None])[..., 0]


@measure(version=1)
def measure_classifier_identity(recording: Recording) -> dict:
    """The validation loss of a classifier, rebuilt from its recorded probe and attention by equation 12.

    The recording has log β/(1 − β), which is σ⁻¹(β) before it is rounded away. ``wrong`` are texts whose
    rebuilt label is not the recorded one.
    """
    offsets = recording["validation.offsets"]
    log_odds, _ = padded(recording["validation.log_polarity"].double(), offsets)
    attention, _ = padded(recording["validation.attention"].double(), offsets)
    of_texts = (attention * log_odds).sum(-1)  # (checkpoints, texts)
    rebuilt = -torch.nn.functional.logsigmoid(of_texts).mean(-1)
    loss = recording["validation.loss"].double()
    deviation = (rebuilt - loss).abs().max()
    correct = recording["validation.correct"]
    is_decided = of_texts.abs() > 1e-6  # a text of log odds 0 has label 0, whichever way they were turned
    wrong = ((of_texts > 0) != correct) & is_decided
    return {
        "steps": recording["steps"].tolist(),
        "loss": loss.tolist(),
        "rebuilt": rebuilt.tolist(),
        "deviation": float(deviation),
        "wrong": int(wrong.sum()),
        "accuracy": float(correct[-1].double().mean()),
    }


class Config(BaseConfig):
    seeds: Positive = setting(3, "networks of each kind")
    dataset: str = setting(
        "multi30k_en_de", "of the translation models, such as known_lexicon, multi30k_en_de"
    )
    texts: str = setting("sst", "of the classifiers, such as known_polarity, sst")
    absent: Literal["by_rule", "stop"] = setting(
        "by_rule", "where Multi30k or SST is not on this machine: by_rule takes a synthetic set, stop stops"
    )
    train_pairs: NotNegative = setting(2_000, "sentence pairs to train on; 0 for all")
    n_validation: NotNegative = setting(40, "pairs they are judged on; 0 for all")
    pieces: Positive = setting(1_000, "size of their vocabulary")
    width: Positive = setting(64, "of their states and embeddings")
    learning_rate: AboveZero = setting(3e-3, "of Adam")
    steps: Positive = setting(260, "updates of the translation models")
    samples: NotNegative = setting(0, "of the pairs judged, those whose best attention is sought; 0 for all")
    probed_training: NotNegative = setting(
        0,
        "training pairs that the main model is judged on too; 0 for none. In this, as in all "
        "else, its networks are those of the agreement tables, which are trained once for "
        "both",
    )
    train_texts: NotNegative = setting(2_000, "labelled texts to train on; 0 for all")
    validation_texts: NotNegative = setting(150, "labelled texts to judge on; 0 for all")
    classifier_width: NotNegative = setting(
        64, "of words, and of the state of one direction; 0 for the paper's"
    )
    classifier_steps: Positive = setting(200, "updates of the classifiers")


PROFILES = {
    # The translators are those of the chapter on agreement.
    "quick": Config(n_validation=8, steps=80, samples=6, classifier_steps=100),
    "paper": Config(
        absent="stop", train_pairs=0, n_validation=0, pieces=8_000, width=256, learning_rate=1e-3,
        steps=36_250, probed_training=1_014, train_texts=0, validation_texts=0, classifier_width=0,
        classifier_steps=4_000,
    ),
    "tiny": Config(
        seeds=2, dataset="known_lexicon", texts="known_polarity", train_pairs=0, n_validation=12, width=16,
        steps=51, samples=5, train_texts=0, validation_texts=0, classifier_width=4, classifier_steps=11,
    ),
}  # fmt: skip


def data_of(config: Config) -> dict[str, str]:
    """Names of the sets that are taken: for ``translation``, and for ``classification``."""
    translation, classification = config.dataset, config.texts
    if config.absent == "by_rule":
        if translation == Config.dataset and not parallel.available(translation):
            translation = BY_RULE["translation"]
        if classification == Config.texts and not labelled_sets.available(classification):
            classification = BY_RULE["classification"]
    return {"translation": translation, "classification": classification}


def _translators(config: Config, form: str) -> tuple[RunSpec, ...]:
    settings = settings_of(config, "width", "learning_rate", "steps", "n_validation", "pieces")
    settings["form"] = form
    settings["keep_network"] = True
    settings["dataset"] = data_of(config)["translation"]
    settings["n_train"] = config.train_pairs
    if form == "joined":
        settings["saliency"] = True
        settings["probed_training"] = config.probed_training
    return each_seed(config.seeds, RunSpec.of, "translation", **settings)


def _classifiers(config: Config) -> tuple[RunSpec, ...]:
    settings: dict = {
        "data": data_of(config)["classification"],
        "n_train": config.train_texts,
        "n_validation": config.validation_texts,
        "steps": config.classifier_steps,
        "learning_rate": config.learning_rate,
    }
    if config.classifier_width:
        settings["embedding_width"] = config.classifier_width
        settings["width"] = config.classifier_width
    return each_seed(config.seeds, RunSpec.of, "classification", **settings)


def _optima(config: Config) -> tuple[Measurement, ...]:
    """α^opt of each network of the summed form, beside the next one and the main model's next."""
    summed, joined = (_translators(config, form) for form in FORMS)
    settings = (("samples", config.samples),)
    optima = []
    for i, spec in enumerate(summed):
        following = (i + 1) % len(summed)
        others = (joined[following],)
        if len(summed) > 1:
            others = (summed[following], *others)
        optima.append(Measurement(spec, measure_optimal_attention, settings, others))
    return tuple(optima)


class Asked(NamedTuple):
    """What is measured."""

    quality: Plan  # of translators, by form
    identity: Plan  # how far their predictions follow from the probe, by form
    optima: Plan  # α^opt of the summed form
    classifiers: Plan  # the identity, of classifiers


def _plan(config: Config) -> Asked:
    translators = {(form,): _translators(config, form) for form in FORMS}
    return Asked(
        quality=plan_of(translators, measure_translation),
        identity=plan_of(translators, measure_probe_identity, samples=config.samples),
        optima={("summed",): _optima(config)},
        classifiers=plan_of({(): _classifiers(config)}, measure_classifier_identity),
    )


measurements = asked(_plan)


ByPosition, Rows = Float[Tensor, "*rows length"], Float[Tensor, "*rows"]


def probability_of_right_label(attention: ByPosition, probe: ByPosition) -> Rows:
    """The prediction from probe and attention alone, equation 12: σ( Σ_l α_l σ⁻¹(β_l) ).

    An identity for classifiers whose readout of the context is linear: log odds average with the attention.
    """
    attended = attention > 0
    is_certain = (probe <= 0) | (probe >= 1)
    if bool((is_certain & attended).any()):
        raise BadInput(
            "β is 0 or 1 at an attended position; its log odds are infinite: use log odds directly"
        )
    log_odds = torch.logit(probe.where(attended, 0.5))
    return (attention * log_odds).sum(-1).sigmoid()


POSITIONS = ("first", "second", "third")


def counterexample() -> dict[str, float]:
    """Equations 29-31 worked: the right word is the first of three, its logit 0 from every position.

    β and α^opt of each position; the probability of the right word under α^opt (``right``), by equation 12
    from β of the right word alone (``from_right_word``), and with all attention on the ``first_alone``.
    """
    logits = torch.tensor(COUNTEREXAMPLE, dtype=torch.float64)
    optimum = optimal_attention(
        logits[None],
        torch.zeros(1, 1, 3),
        torch.zeros(1, 1, dtype=torch.long),  # the right word
        torch.ones(1, 3).bool(),
        torch.ones(1, 1).bool(),
    )
    probe = logits.softmax(-1)[:, 0]
    best = optimum.attention[0, 0]
    worked = {}
    worked |= {f"probe_{place}": float(probe[i]) for i, place in enumerate(POSITIONS)}
    worked |= {f"optimal_{place}": float(best[i]) for i, place in enumerate(POSITIONS)}
    worked["right"] = float(optimum.log_likelihood.exp())
    worked["from_right_word"] = float(probability_of_right_label(best, probe))
    worked["first_alone"] = float(probe[0])
    return worked


FORM = {
    "form": Column(
        "where context and decoder state meet",
        categories={"summed": "in one linear layer (equation 32)", "joined": "in two (equation 2)"},
    )
}
QUALITY = {
    "bleu": Column("BLEU at the last checkpoint", "points", low=0, high=100),
    "best_bleu": Column("BLEU at the best checkpoint", "points", low=0, high=100),
    "accuracy": share("next words that are predicted correctly"),
    "loss": Column("cross-entropy of the next word", "nats a word", low=0),
    "learned_probe": share("words where the largest weight is among the top 5 % of β, ties counted"),
    "chance": share("the same by chance"),
    "over_chance": Column("agreement of weight and β, minus that by chance"),
}
COMPARED = {
    "learned_probe": "of the learned attention and β",
    "chance": "by chance with β",
    "optimal_probe": "of α^opt and β",
    "learned_optimal": "of the learned attention and α^opt",
    "optimal_other_probe": "of α^opt and β of another network of this form",
    "optimal_main_probe": "of α^opt and β of a network of the main model",
    "steepest_other_probe": "of the steepest descent and β of another network of this form",
    "steepest_main_probe": "of the steepest descent and β of a network of the main model",
    "steepest_probe": "of the steepest descent and β",
}
ATTENTIONS = {
    "uniform": "uniform attention",
    "learned": "the learned attention",
    "largest_probe": "all attention at the largest β",
    "optimal": "α^opt",
}
OPTIMUM = {
    **{f"agreement.{pair}": share(f"agreement {meaning}") for pair, meaning in COMPARED.items()},
    **{
        f"log_likelihood.{name}": Column(f"log-likelihood under {attention}", "nats a word")
        for name, attention in ATTENTIONS.items()
    },
    "largest_probe.weight": share("α^opt at the largest β"),
    "largest_probe.unused": share("words for which this is next to nothing"),
    "largest_probe.lost": Column("what these lose when attention follows the largest β", "nats a word"),
    "dependent.share": share("words that depend on attention"),
    "dependent.optimal_probe": share("agreement of α^opt and β at these words"),
    "dependent.learned_probe": share("agreement of the learned attention and β at these words"),
    "dependent.unused": share("of these words, those with next to no α^opt at the largest β"),
    "positions": Column("positions that α^opt uses", "positions", low=0),
}
# What is subtracted is measured on the very same samples.
SUBTRACTED = {
    "over_chance.optimal_probe": ("agreement.optimal_probe", "agreement.chance"),
    "over_chance.learned_probe": ("agreement.learned_probe", "agreement.chance"),
    "gain": ("log_likelihood.optimal", "log_likelihood.learned"),
    "gain_of_learned": ("log_likelihood.learned", "log_likelihood.uniform"),
}
GAINS = {
    "over_chance.optimal_probe": Column("agreement of α^opt and β, minus that by chance"),
    "over_chance.learned_probe": Column("agreement of the learned attention and β, minus that by chance"),
    "gain": Column("log-likelihood under α^opt, minus that under the learned attention", "nats a word"),
    "gain_of_learned": Column("log-likelihood under the learned attention, minus uniform", "nats a word"),
}
SOLVED = {
    "words": Column("words whose best attention is sought", "words", low=0),
    "residual": Column("largest distance from the optimum's conditions that is left", low=0),
}
REBUILT = {"all_words": "from β of every word", "right_word": "from β of the correct word alone"}
IDENTITY = {
    f"{rebuilt}.{number}": Column(
        f"{number} difference of log-probabilities rebuilt {meaning}", "nats", low=0
    )
    for rebuilt, meaning in REBUILT.items()
    for number in ("mean", "largest")
}
CLASSIFIER = {
    "deviation": Column("largest difference of the rebuilt loss at a checkpoint", "nats a text", low=0),
    "wrong": Column("texts whose rebuilt label is not the recorded one", "texts", low=0),
    "checkpoints": Column("checkpoints", "checkpoints", low=0),
    "loss": Column("cross-entropy at the last checkpoint", "nats a text", low=0),
    "accuracy": share("texts that are classified correctly at the last checkpoint"),
}
LARGEST = {f"{rebuilt}.largest": IDENTITY[f"{rebuilt}.largest"] for rebuilt in REBUILT}
BLEU = ("bleu", "best_bleu")
RECORDED = ("learned_probe", "chance")
SETS = {"translation": Column("set of sentence pairs"), "classification": Column("set of labelled texts")}
WORKED = {
    **{f"probe_{place}": share(f"β of the {place} position") for place in POSITIONS},
    **{f"optimal_{place}": share(f"α^opt of the {place} position") for place in POSITIONS},
    "right": share("probability of the correct word under α^opt"),
    "from_right_word": share("the same by equation 12, from β of the correct word alone"),
    "first_alone": share("the same with all attention on the first position"),
}
CELL = {
    "target_position": Column("position of the target word, from 0"),
    "source_position": Column("position of the source word, from 0"),
    "target": Column("target word"),
    "source": Column("source word"),
    "attention": share("learned attention"),
    "probe": share("β"),
    "optimal": share("α^opt"),
}
UNUSED_CELL = CELL | {
    "says": Column("likeliest word when all attention is at this position"),
    "says_with": share("its probability"),
    **{
        f"right_{name}": share(f"probability of the correct word under {ATTENTIONS[name]}")
        for name in ("largest_probe", "learned", "optimal", "uniform")
    },
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return the worked counterexample, α^opt of trained networks, both forms' quality, and the identities.

    The tables ``example`` and ``unused`` are of the first seed's network.
    """
    plan = _plan(config)
    networks = plan_frame(plan.quality, store, FORM, records=_quality, columns=QUALITY)
    named = networks.rename(learned_probe="agreement")
    tables = {"networks": named.select("seed", *FORM, "bleu", "agreement")}
    tables |= _shown_tables(answers(plan.optima["summed",], store))
    tables |= _quality_tables(networks)
    tables |= _optimum_tables(
        plan_frame(plan.optima, store, FORM, records=_optimum, columns=OPTIMUM | GAINS | SOLVED)
    )
    tables |= _identity_tables(plan_frame(plan.identity, store, FORM, columns=IDENTITY))
    taken = data_of(config)
    classifiers = plan_frame(plan.classifiers, store, {}, records=_classifier, columns=CLASSIFIER)
    of_set = classifiers.assign(SETS, classification=taken["classification"])
    tables["classifiers"] = classifiers
    tables["classifiers_in_all"] = summarise(of_set, ["classification"], ["loss", "accuracy"])
    tables["rebuilt"] = Table.of([_rebuilt(classifiers)], CLASSIFIER, "all classifiers")
    tables["sets"] = Table.of([taken], SETS, "the sets that are taken")
    tables["counterexample"] = Table.of([counterexample()], WORKED, "the counterexample")
    return tables


def _quality_tables(networks: Table) -> dict[str, Table]:
    """Return how well networks translate, and the summed form minus the joined one."""
    summed = networks.query("form == 'summed'")
    joined = networks.query("form == 'joined'")
    return {
        "quality": networks,
        "quality_by_form": summarise(networks, [*FORM], QUALITY),
        "difference": summarise(differences(summed, joined, BLEU), [*FORM], BLEU),
    }


def _shown_tables(optima: Iterable[tuple[RunSpec, dict]]) -> dict[str, Table]:
    """Return a sentence, and a word whose largest β is unused, of the first network."""
    first = [answer for _, answer in optima][:1]
    return {
        "example": Table.of(_cells(first, "example"), CELL, "a pair of positions of a sentence"),
        "unused": Table.of(_cells(first, "unused_example"), UNUSED_CELL, "a source position for a word"),
    }


def _optimum_tables(optimum: Table) -> dict[str, Table]:
    return {
        "optimum": optimum,
        "optimum_by_form": summarise(optimum, [*FORM], [*OPTIMUM, *GAINS]),
        "solved": Table.of([_solved(optimum)], SOLVED, "all networks"),
    }


def _identity_tables(identities: Table) -> dict[str, Table]:
    means = [f"{rebuilt}.mean" for rebuilt in REBUILT]
    return {
        "identities": identities,
        "identities_by_form": summarise(identities, [*FORM], means),
        "largest": _largest(identities),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by form, those of the counterexample, and the identities.

    In ``recorded`` agreement and that of the joined form ties are counted; ``difference`` is BLEU of the
    summed form minus that of the joined one within a seed. Intervals are over seeds.
    """
    return view(
        _nothing(),
        keyed(tables["sets"], "data.{column}", SETS),
        keyed(tables["counterexample"], "counterexample.{column}", WORKED),
        _by_form(tables["quality_by_form"]),
        keyed(tables["optimum_by_form"], "{form}.{quantity}"),
        keyed(tables["solved"], "summed.{column}", ["words"]),
        keyed(tables["solved"], "{column}", ["residual"]),
        keyed(tables["difference"], "difference.{quantity}"),
        keyed(tables["identities_by_form"], "{form}.identity.{quantity}"),
        keyed(tables["largest"], "{form}.identity.{column}", LARGEST),
        keyed(tables["classifiers_in_all"], "classifier.{quantity}"),
        keyed(tables["rebuilt"], "classifier.{column}", ["deviation", "wrong", "checkpoints"]),
    )


def _by_form(quality: Table) -> dict[str, object]:
    """Return how well networks of each form translate, and what was recorded of them, by key."""
    performance = quality.query("quantity in @names", names=[*BLEU, "accuracy", "loss"])
    recorded = quality.query("quantity in @names", names=RECORDED)
    over_chance = quality.query("form == 'joined' and quantity == 'over_chance'")

    numbers = keyed(performance, "{form}.{quantity}")
    numbers |= keyed(recorded, "{form}.recorded.{quantity}")
    numbers |= keyed(recorded.query("form == 'joined'"), "{form}.agreement.{quantity}")
    numbers |= keyed(over_chance, "{form}.over_chance.learned_probe")
    return numbers


def _nothing() -> dict[str, object]:
    """Return the keys of which no network is known."""
    unknown: dict[str, object] = {}
    for form in FORMS:
        unknown |= {f"{form}.{name}": interval_of() for name in (*BLEU, "accuracy", "loss")}
        unknown |= {f"{form}.recorded.{name}": interval_of() for name in RECORDED}
        unknown |= {f"{form}.identity.{name}.mean": interval_of() for name in REBUILT}
        unknown |= {f"{form}.identity.{name}": None for name in LARGEST}
    unknown |= {f"joined.agreement.{name}": interval_of() for name in RECORDED}
    unknown |= {"joined.over_chance.learned_probe": interval_of()}
    unknown |= {f"summed.{name}": interval_of() for name in (*OPTIMUM, *GAINS)}
    unknown |= {f"difference.{name}": interval_of() for name in BLEU}
    return unknown | {f"classifier.{name}": interval_of() for name in ("loss", "accuracy")}


def _quality(translation: dict) -> dict:
    return translation | {
        "bleu": translation["bleu"][-1],
        "best_bleu": max(translation["bleu"]),
        "over_chance": translation["learned_probe"] - translation["chance"],
    }


def _optimum(answer: dict) -> dict:
    """Return the numbers of one network, by the dotted name of where they are in an answer."""
    numbers = {name: reduce(dict.get, name.split("."), answer) for name in OPTIMUM}
    for name, (first, second) in SUBTRACTED.items():
        numbers[name] = less(numbers[first], numbers[second])
    for name in SOLVED:
        numbers[name] = answer[name]
    return numbers


def _solved(optimum: Table) -> dict:
    """Return the words of the network with fewest, and the largest residual."""
    if not len(optimum.frame):
        return {"words": 0, "residual": None}
    return {"words": int(optimum.frame["words"].min()), "residual": optimum.frame["residual"].max()}


def _largest(identities: Table) -> Table:
    rows = []
    for form, group in identities.frame.groupby("form", sort=False):
        largest = {name: group[name].max() for name in LARGEST}
        rows.append({"form": form, **largest})
    return Table.of(rows, FORM | LARGEST, "all networks of a form")


def _classifier(answer: dict) -> dict:
    return answer | {"checkpoints": len(answer["steps"]), "loss": answer["loss"][-1]}


def _rebuilt(classifiers: Table) -> dict:
    """Return how far equation 12 is off at all checkpoints of all classifiers."""
    frame = classifiers.frame
    return {
        "deviation": frame["deviation"].max() if len(frame) else None,
        "wrong": int(frame["wrong"].sum()),
        "checkpoints": int(frame["checkpoints"].sum()),
    }


def _cells(shown: list[dict], name: str) -> list[dict]:
    """Return a sentence's matrices, a record for each pair of positions; none where there is no sentence."""
    records = []
    for answer in shown:
        sentence = answer[name]
        if sentence is None:
            continue
        right = {f"right_{attention}": value for attention, value in sentence.get("right", {}).items()}
        for row, target in enumerate(sentence["target"]):
            for column, source in enumerate(sentence["source"]):
                record = {
                    "target_position": row,
                    "source_position": column,
                    "target": target,
                    "source": source,
                    "attention": sentence["attention"][row][column],
                    "probe": sentence["probe"][row][column],
                    "optimal": sentence["optimal"][row][column],
                }
                if right:
                    record["says"] = sentence["says"][column]
                    record["says_with"] = sentence["says_with"][column]
                records.append(record | right)
    return records
