"""Networks of Part III trained as one stacked model, seeds and both kinds of attention, against one by one.

    python benchmarks/learn_together.py [--rounds 12] [--seeds 1 3] [--cpu-time]

The translator at 15 pieces a side, the classifier at 40 words, the copier at 40 words, each at its paper's
width and batch, without dropout (which would draw in another order). Of every seed there is a network with
learned and one with uniform attention: half of the stack makes scores, the other half does not. *Alone* is
what attnlib trains, one network after the other; stacked, the recurrence is attnlib's own scan with a leading
axis of networks. One thread, in turns; printed are medians of milliseconds a network and step, and the
quotient alone / stacked with its quartiles.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from contenders import quotient
from stacked import WARM, Stacked, StackedScan, milliseconds, steps_in_turns
from torch import Tensor, nn

from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig, classification_loss
from attnlib.models.copier import Copier, CopierConfig, copier_loss
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.training.allocator import keep_freed_memory
from attnlib.training.corpus import Corpus, collate
from companion.data.synthetic import copy_batch, draw_sources, words_of

WORDS = 8_000  # of the translator and the classifier


class Networks(Stacked):
    """The first half with learned attention, the second with uniform."""

    def lstm(
        self, layer: str, inputs: Tensor, start: tuple[Tensor, Tensor] | None = None, suffix: str = "_l0"
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """States (networks, batch, time, width) of inputs of that form, and the last state and memory."""
        entering = self.entering(layer, inputs.flatten(1, 2), suffix).unflatten(1, inputs.shape[1:3])
        return self.scan(layer, entering, start, suffix)

    def entering(self, layer: str, rows: Tensor, suffix: str = "_l0") -> Tensor:
        """The inputs' share of the gates, (networks, rows, gates)."""
        weight = self.stacked[f"{layer}.weight_ih{suffix}"]
        bias = self.stacked[f"{layer}.bias_ih{suffix}"] + self.stacked[f"{layer}.bias_hh{suffix}"]
        return torch.baddbmm(bias[:, None], rows, weight.mT)

    def scan(
        self, layer: str, entering: Tensor, start: tuple[Tensor, Tensor] | None, suffix: str = "_l0"
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """As :meth:`lstm`, from the inputs' share (networks, batch, time, gates)."""
        recurrent = self.stacked[f"{layer}.weight_hh{suffix}"]
        by_time = entering.permute(2, 0, 1, 3).contiguous()
        zeros = entering.new_zeros(*by_time.shape[1:3], recurrent.shape[-1])
        states, memory = StackedScan.apply(by_time, recurrent, *(start or (zeros, zeros)))
        return states.permute(1, 2, 0, 3), (states[-1], memory)

    def attend(self, scores_of: Callable[[int], Tensor], like: Sequence[int]) -> Tensor:
        """Softmax of the scores of the first networks, as many as given to ``scores_of``; uniform after."""
        learned = scores_of(self.number // 2).softmax(-1)
        return torch.cat([learned, learned.new_full((self.number - len(learned), *like), 1 / like[-1])])


class Translators(Networks):
    """Batches without padding."""

    def loss(self, source: Tensor, read: Tensor, due: Tensor) -> Tensor:
        """Mean loss of each network."""
        states, lasts = self.embed("embedding.weight", source), []
        for layer in ("_l0", "_l1"):
            forwards, last = self.lstm("encoder", states, suffix=layer)
            backwards, back = self.lstm("encoder", states.flip(2), suffix=f"{layer}_reverse")
            states = torch.cat([forwards, backwards.flip(2)], dim=-1)
            lasts.append(tuple((one + other) / 2 for one, other in zip(last, back, strict=True)))
        decoded = self.embed("embedding.weight", read)
        for layer, start in zip(("_l0", "_l1"), lasts, strict=True):
            decoded, _ = self.lstm("decoder", decoded, start, layer)
        queries = self.linear("query", decoded)
        attention = self.attend(lambda n: queries[:n] @ states[:n].mT, (*due.shape[1:], source.shape[-1]))
        joined = torch.cat([self.linear("readout.context", attention @ states), decoded], dim=-1)
        logits = self.linear("readout.output", self.linear("readout.hidden", joined).relu())
        return _cross_entropy(logits, due)


class Classifiers(Networks):
    """Texts of one length."""

    def loss(self, texts: Tensor, labels: Tensor) -> Tensor:
        """Mean loss of each network."""
        words = self.embed("embedding.weight", texts)
        states = torch.cat(
            [self.lstm("forwards", words)[0], self.lstm("backwards", words.flip(2))[0].flip(2)], dim=-1
        )
        hidden = self.linear("attention_hidden", states).relu()
        scores = self.linear("attention_score", hidden)[..., 0]
        attention = self.attend(lambda n: scores[:n], texts.shape[1:])
        logits = (attention * self.linear("readout", states)[..., 0]).sum(-1)
        losses = nn.functional.binary_cross_entropy_with_logits(logits, labels.float(), reduction="none")
        return losses.mean(1)


class Copiers(Networks):
    """With one head."""

    def loss(self, source: Tensor, read: Tensor, due: Tensor) -> Tensor:
        """Mean loss of each network."""
        states, last = self.scan("encoder", self.looked_up("encoder", source), None)
        decoded, _ = self.scan("decoder", self.looked_up("decoder", read), last)
        queries = self.linear("queries", decoded)
        attention = self.attend(lambda n: queries[:n] @ states[:n].mT, (*due.shape[1:], source.shape[-1]))
        joined = torch.cat([self.linear("context_map", attention @ states), decoded], dim=-1)
        return _cross_entropy(self.linear("readout", torch.tanh(self.linear("hidden", joined))), due)

    def looked_up(self, layer: str, tokens: Tensor) -> Tensor:
        """As the copier does: the small vocabulary's share of the gates, made once and looked up by word."""
        return self.look_up(self.entering(layer, self.stacked["embedding.weight"]), tokens)


def _cross_entropy(logits: Tensor, due: Tensor) -> Tensor:
    losses = nn.functional.cross_entropy(logits.flatten(0, 2), due.flatten(), reduction="none")
    return losses.view(len(due), -1).mean(1)


def _drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def translators(seeds: int) -> tuple[list[nn.Module], Callable, type[Networks], Callable]:
    """Networks, a batch by number and seed, their stack, and what it takes of a batch."""
    models = _both_kinds(BilinearTranslator, TranslatorConfig(WORDS, dropout=0.0), seeds)

    def batch(number: int, seed: int):
        words = np.random.default_rng([number, seed]).integers(4, WORDS, size=(2, 16, 14))
        return collate(Corpus.from_ids(list(words[0]), list(words[1])), np.arange(16))

    return models, batch, Translators, lambda one: (one.source, one.target_input, one.target_output)


def classifiers(seeds: int) -> tuple[list[nn.Module], Callable, type[Networks], Callable]:
    """As :func:`translators`."""
    models = _both_kinds(AttentiveClassifier, ClassifierConfig(WORDS), seeds)

    def batch(number: int, seed: int) -> tuple[Tensor, Tensor]:
        texts = torch.randint(4, WORDS, (32, 40), generator=_drawn(1_000 * number + seed))
        return texts, torch.arange(32) % 2

    return models, batch, Classifiers, lambda one: one


def copiers(seeds: int) -> tuple[list[nn.Module], Callable, type[Networks], Callable]:
    """As :func:`translators`."""
    words = words_of("permutation", 40)
    models = _both_kinds(Copier, CopierConfig(words), seeds)

    def batch(number: int, seed: int):
        return copy_batch(draw_sources("permutation", 40, 128, _drawn(1_000 * number + seed)), words)

    return models, batch, Copiers, lambda one: (one.source, one.target_read, one.target)


def _both_kinds(network: type[nn.Module], config, seeds: int) -> list[nn.Module]:
    return [
        network(replace(config, attention=kind), _drawn(seed))
        for kind in ("learned", "uniform")
        for seed in range(seeds)
    ]


def loss_alone(model: nn.Module, batch) -> Tensor:
    """What attnlib minimises."""
    if isinstance(model, BilinearTranslator):
        return model.loss(batch)
    if isinstance(model, Copier):
        return copier_loss(model, batch)
    texts, labels = batch
    return classification_loss(model(texts, torch.ones_like(texts, dtype=torch.bool)).logit, labels)


def measured(kind: Callable, seeds: int, rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Seconds of a step of all networks, alone and stacked."""
    models, batch_of, stack_of, fields_of = kind(seeds)
    stack = stack_of(models)
    own = [torch.optim.Adam([p for p in m.parameters() if p.requires_grad], fused=True) for m in models]
    together = torch.optim.Adam(stack.parameters(), fused=True)
    drawn = [[batch_of(n, place % seeds) for place in range(2 * seeds)] for n in range(rounds + WARM)]
    joined = [tuple(map(torch.stack, zip(*map(fields_of, batches), strict=True))) for batches in drawn]

    def alone(number: int) -> None:
        for model, optimiser, batch in zip(models, own, drawn[number], strict=True):
            optimiser.zero_grad(set_to_none=True)
            loss_alone(model, batch).backward()
            optimiser.step()

    def stacked(number: int) -> None:
        together.zero_grad(set_to_none=True)
        stack.loss(*joined[number]).sum().backward()
        together.step()

    return steps_in_turns(
        {"alone": alone, "stacked": stacked}, rounds, check=lambda: stack.check(models), clock=clock
    )


def main() -> None:
    """Measure every kind and number of seeds; print a line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    clock = time.process_time if options.cpu_time else time.perf_counter
    print("networks                  alone ms  stacked ms  alone / stacked [quartiles]")
    for kind in (translators, classifiers, copiers):
        for seeds in options.seeds:
            times = measured(kind, seeds, options.rounds, clock)
            alone, stacked = (milliseconds(times[name], 2 * seeds) for name in ("alone", "stacked"))
            name = f"{2 * seeds} {kind.__name__}"
            print(
                f"{name:24} {alone:9.1f} {stacked:11.1f}  {quotient(times['alone'], times['stacked'])}",
                flush=True,
            )


if __name__ == "__main__":
    main()
