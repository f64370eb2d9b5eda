"""A training step of the second paper's classifier against packed sequences, at its paper size.

    python benchmarks/classifier_step.py [--rounds 7]

Both are one network with one Adam: *packed* runs one bidirectional `nn.LSTM` over `pack_padded_sequence`,
ours two over padded texts turned round within their length. Batches of 32 texts, lengths within a fifth of
each other, as length buckets give them; 10,000 words. Seconds are those of the process, on one thread,
medians over rounds in turn: machines are shared.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlib.models.attention import masked_softmax
from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig, classification_loss

WORDS, BATCH, LONGEST = 10_000, 32, (20, 75, 200)


class PackedClassifier(nn.Module):
    """The same network as it is usually written."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 300)
        self.encoder = nn.LSTM(300, 256, batch_first=True, bidirectional=True)
        self.score = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))
        self.readout = nn.Linear(512, 1)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        packed = pack_padded_sequence(
            self.embedding(tokens), mask.sum(1), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.encoder(packed)[0], batch_first=True)
        attention = masked_softmax(self.score(states)[:, None, :, 0], mask)
        return self.readout((attention @ states)[:, 0])[:, 0]


def step_of(model: nn.Module, logits: Callable[[], Tensor]) -> Callable[[], None]:
    """One update on always the same batch."""
    optimiser = torch.optim.Adam(model.parameters(), fused=True)
    labels = torch.arange(BATCH) % 2

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        classification_loss(logits(), labels).backward()
        optimiser.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    packed = PackedClassifier()
    ours = AttentiveClassifier(ClassifierConfig(WORDS), torch.Generator().manual_seed(0))
    for longest in LONGEST:
        lengths = torch.linspace(0.8 * longest, longest, BATCH).long()
        mask = torch.arange(longest) < lengths[:, None]
        tokens = torch.randint(4, WORDS, mask.shape, generator=torch.Generator().manual_seed(0)) * mask
        steps = {
            "packed": step_of(packed, lambda tokens=tokens, mask=mask: packed(tokens, mask)),
            "ours": step_of(ours, lambda tokens=tokens, mask=mask: ours(tokens, mask).logit),
        }
        taken: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(rounds + 1):  # the first warms up
            for name, step in steps.items():
                start = time.process_time()
                step()
                taken[name].append(time.process_time() - start)
        median = {name: statistics.median(times[1:]) for name, times in taken.items()}
        print(
            f"{longest} positions: packed {median['packed']:.3f} s, ours {median['ours']:.3f} s, "
            f"ours / packed {median['ours'] / median['packed']:.2f}"
        )


if __name__ == "__main__":
    main()
