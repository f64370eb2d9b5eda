"""The best attention α^opt of a trained translation model, and how α and β compare with it.

Snell et al. 2021, appendix A.1: the model whose context and decoder state meet in one linear layer (equation
32), where α^opt is the solution of a convex problem (:mod:`attnlib.probes.optimal_attention`). In double
precision, on the validation samples of the network as it is in the end; β of other runs is as they recorded
it, in single precision, and its ties are broken (:mod:`attnlib.probes.agreement`).
"""

import torch
from torch import Tensor
from torch.nn.functional import linear

from attnlib.errors import BadInput
from attnlib.models.translator import BilinearTranslator
from attnlib.probes.agreement import RowMean, agreement, agreement_with_ties_broken, chance_agreement
from attnlib.probes.lexical_probe import log_lexical_probe
from attnlib.probes.optimal_attention import OptimalAttention, optimal_attention
from attnlib.training.corpus import Batch
from companion.runs.procedure import Recording
from notebooks.shared.agreement import recorded_batches, recorded_probe
from notebooks.shared.ragged import padded
from notebooks.shared.translation import load_pieces, recorded_network

UNUSED = 1e-3  # a position with less attention than this counts as not attended to
MATTERS = 0.1  # nats by which α^opt must be better than uniform attention for a word to depend on attention
DIGITS = 6  # of α^opt that are compared: equal shares differ by rounding after these
OTHERS = {"summed": "other_probe", "joined": "main_probe"}  # by form of the other run
EXAMPLE = (6, 10)  # source and target positions of the sentence shown, fewest and most


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
    seen, residual, iterations = 0, 0.0, 0
    examples: list[tuple[int, dict]] = []
    unused: list[tuple[float, dict]] = []
    for batch in recorded_batches(recording, samples):
        probes = {OTHERS[other.spec.resolved.form]: recorded_probe(other, batch) for other in others}
        rows = _Rows(network, batch, probes)
        for name, values in rows.numbers().items():
            means[name] = means.get(name, RowMean()) + RowMean.of(values)
        seen += len(batch)
        residual = max(residual, float(rows.best.residual.max()))
        iterations = max(iterations, rows.best.iterations)
        examples += rows.sentences()
        unused += rows.worst()
    spell = load_pieces(settings).pieces.spell
    found = {name: None if mean.rows == 0 else mean.value for name, mean in means.items()}
    return _nested(found) | {
        "words": means["positions"].rows,
        "samples": seen,
        "residual": residual,
        "iterations": iterations,
        "example": _spelt(min(examples, key=lambda one: one[0])[1], spell) if examples else None,
        "unused_example": _spelt(max(unused, key=lambda one: one[0])[1], spell) if unused else None,
    }


class _Rows:
    """One batch: what is known of its right words, a row a word."""

    def __init__(self, network: BilinearTranslator, batch: Batch, others: dict[str, Tensor]):
        self.batch, self.readout, trace = batch, network.readout, network(batch)
        readout, self.attention = self.readout, trace.attention
        of_source = self.of_source = readout.from_context(trace.encoder_states)
        of_target = self.of_target = readout.from_decoder(trace.decoder_states)
        masks = batch.source_mask, batch.target_mask
        self.probe = log_lexical_probe(
            readout, trace.encoder_states, trace.decoder_states, batch.target_output, *masks
        )
        self.others = others
        # Attention sums to one, so that the bias of the words may stand in either summand.
        from_source = linear(of_source, readout.output.weight)
        self.best: OptimalAttention = optimal_attention(
            from_source, readout.logits(of_target), batch.target_output, *masks
        )
        uniform = batch.source_mask / batch.source_mask.sum(1, keepdim=True)
        flat = readout.logits((uniform.to(of_source)[:, None] @ of_source) + of_target)
        self.descent = _descent(from_source, flat, batch.target_output)
        self.likelihood = {
            "uniform": self._of_right(flat),
            "learned": self._of_right(trace.logits),
            "largest_probe": self.probe.amax(-1),
            "optimal": self.best.log_likelihood,
        }

    def _of_right(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(-1).gather(-1, self.batch.target_output[..., None])[..., 0]

    def numbers(self) -> dict[str, Tensor]:
        """A number a word each, by dotted name; NaN where a word does not count."""
        present = self.batch.target_mask
        valid = self.batch.source_mask[:, None, :].expand(self.attention.shape)[present]
        sides = {
            "learned": self.attention, "probe": self.probe, "optimal": self.best.attention,
            "steepest": self.descent,
        }  # fmt: skip
        sides = {name: values[present] for name, values in sides.items()}
        best = sides["optimal"].round(decimals=DIGITS)
        likelihood = {name: values[present] for name, values in self.likelihood.items()}
        top = sides["probe"].argmax(-1, keepdim=True)
        weight = sides["optimal"].gather(-1, top)[:, 0]
        lost = likelihood["optimal"] - likelihood["largest_probe"]
        found = {
            "agreement.optimal_probe": agreement(best, sides["probe"], valid),
            "agreement.learned_probe": agreement(sides["learned"], sides["probe"], valid),
            "agreement.learned_optimal": agreement(sides["learned"], best, valid),
            "agreement.steepest_probe": agreement(sides["steepest"], sides["probe"], valid),
            "agreement.chance": chance_agreement(sides["probe"], valid),
            "largest_probe.weight": weight,
            "largest_probe.unused": (weight < UNUSED).double(),
            "largest_probe.lost": lost.where(weight < UNUSED, torch.nan),
            "positions": (sides["optimal"] > UNUSED).sum(-1).double(),
        }
        for name, probe in self.others.items():
            for first, values in (("optimal", best), ("steepest", sides["steepest"])):
                agrees = agreement_with_ties_broken(values, probe[present], valid)
                found[f"agreement.{first}_{name}"] = agrees
        found |= {f"log_likelihood.{name}": values for name, values in likelihood.items()}
        matters = likelihood["optimal"] - likelihood["uniform"] >= MATTERS
        found["dependent.share"] = matters.double()
        for name in ("agreement.optimal_probe", "agreement.learned_probe", "largest_probe.unused"):
            found[f"dependent.{name.rpartition('.')[2]}"] = found[name].where(matters, torch.nan)
        return found

    def sentences(self) -> list[tuple[int, dict]]:
        """Samples of a length to be shown, as (index, matrices)."""
        found = []
        fewest, most = EXAMPLE
        for row, index in enumerate(self.batch.indices.tolist()):
            source, target = (int(m[row].sum()) for m in (self.batch.source_mask, self.batch.target_mask))
            if fewest <= source <= most and fewest <= target <= most:
                found.append((index, self._shown(row, slice(0, target))))
        return found

    def worst(self) -> list[tuple[float, dict]]:
        """The word of the batch that loses most where its largest probe is followed, among those unused.

        As (probability lost, what is known of it); ``says`` is the likeliest word from each position alone.
        """
        top = self.probe.argmax(-1, keepdim=True)
        unused = (self.best.attention.gather(-1, top)[..., 0] < UNUSED) & self.batch.target_mask
        lost = self.likelihood["optimal"].exp() - self.likelihood["largest_probe"].exp()
        lost = lost.masked_fill(~unused, -torch.inf)
        if not bool(unused.any()):
            return []
        row, step = divmod(int(lost.argmax()), lost.shape[1])
        shown = self._shown(row, slice(step, step + 1))
        single = self.of_source[row, : len(shown["source"])] + self.of_target[row, step]
        alone = self.readout.logits(single).softmax(-1).max(-1)
        likelihood = {name: float(values[row, step].exp()) for name, values in self.likelihood.items()}
        shown |= {"says": alone.indices.tolist(), "says_with": alone.values.tolist(), "right": likelihood}
        return [(float(lost[row, step]), shown)]

    def _shown(self, row: int, steps: slice) -> dict:
        source = int(self.batch.source_mask[row].sum())
        matrices = {"attention": self.attention, "probe": self.probe.exp(), "optimal": self.best.attention}
        return {
            "source": self.batch.source[row, :source].tolist(),
            "target": self.batch.target_output[row, steps].tolist(),
            **{name: values[row, steps, :source].tolist() for name, values in matrices.items()},
        }


def _descent(from_source: Tensor, logits: Tensor, right: Tensor) -> Tensor:
    """−∇h at the attention that gives these logits; −∇loss is 1 − p of the right word times it."""
    chosen = right[..., None]
    wrong = logits.scatter(-1, chosen, -torch.inf).softmax(-1)
    of_right = from_source.transpose(1, 2).gather(1, chosen.expand(-1, -1, from_source.shape[1]))
    return of_right - wrong @ from_source.transpose(1, 2)


def _spelt(shown: dict, spell) -> dict:
    return shown | {name: spell(shown[name]) for name in ("source", "target", "says") if name in shown}


def _nested(found: dict[str, float | None]) -> dict:
    nested: dict = {}
    for name, value in found.items():
        branch, _, leaf = name.rpartition(".")
        (nested.setdefault(branch, {}) if branch else nested)[leaf] = value
    return nested


# How far a prediction follows from the lexical probe and the attention alone (section 3.3). Where the logits
# are linear in the attention, p(o) ∝ exp( Σ_l α_l log β_l(o) ) for every word o. With two outputs this is
# equation 12, p = σ( Σ_l α_l σ⁻¹(β_l) ); with more it needs β of all words.


@torch.no_grad()
def measure_probe_identity(recording: Recording, *, samples: int) -> dict:
    """Log-probabilities of the right words, rebuilt from probe and attention, less the network's own.

    Of the absolute difference, in nats: ``all_words``, from β of every word, and ``right_word``, from
    equation 12 with β of the right word alone.
    """
    network = recorded_network(recording.spec.resolved, recording.tensors)
    network = network.double().to(recording["steps"].device)
    found: dict[str, list[Tensor]] = {"all_words": [], "right_word": []}
    for batch in recorded_batches(recording, samples):
        for name, values in _differences(network, batch).items():
            found[name].append(values[batch.target_mask].abs())
    joined = {name: torch.cat(values) for name, values in found.items()}
    return {"words": len(joined["all_words"])} | {
        name: {"mean": float(values.mean()), "largest": float(values.max())}
        for name, values in joined.items()
    }


def _differences(network: BilinearTranslator, batch: Batch) -> dict[str, Tensor]:
    """Rebuilt less own log-probability of each right word, (batch, target); arbitrary at padding.

    A target position at a time: the probe of all words is batch × source × words numbers.
    """
    readout, trace = network.readout, network(batch)
    of_source = readout.from_context(trace.encoder_states)
    of_target = readout.from_decoder(trace.decoder_states)
    own = _of_right(trace.logits.log_softmax(-1), batch.target_output)
    rebuilt: dict[str, list[Tensor]] = {"all_words": [], "right_word": []}
    for step, right in enumerate(batch.target_output.unbind(1)):
        log_probe = readout.logits(of_source + of_target[:, step, None]).log_softmax(-1)
        attention = trace.attention[:, step]  # (batch, source), zero at padding
        mean = torch.einsum("bl,blo->bo", attention, log_probe)
        rebuilt["all_words"].append(_of_right(mean.log_softmax(-1), right))
        of_word = log_probe.gather(2, right[:, None, None].expand(-1, log_probe.shape[1], 1))[..., 0]
        rebuilt["right_word"].append(_log_sigmoid_of_mean(attention, of_word))
    return {name: torch.stack(values, 1) - own for name, values in rebuilt.items()}


def _log_sigmoid_of_mean(attention: Tensor, log_probe: Tensor) -> Tensor:
    """log σ( Σ_l α_l σ⁻¹(β_l) ), finite where β rounds to 1."""
    others = torch.log(-torch.expm1(log_probe.clamp(max=-1e-15)))
    return torch.nn.functional.logsigmoid((attention * (log_probe - others)).sum(-1))


def _of_right(values: Tensor, words: Tensor) -> Tensor:
    return values.gather(-1, words[..., None])[..., 0]


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
    correct, loss = recording["validation.correct"], recording["validation.loss"].double()
    # A text of log odds 0 has label 0, whichever way they were turned.
    wrong = ((of_texts > 0) != correct) & (of_texts.abs() > 1e-6)
    return {
        "steps": recording["steps"].tolist(),
        "loss": loss.tolist(),
        "rebuilt": rebuilt.tolist(),
        "deviation": float((rebuilt - loss).abs().max()),
        "wrong": int(wrong.sum()),
        "accuracy": float(correct[-1].double().mean()),
    }
