"""Whether a model has learned the text that it is analysed on: else its attention need not mean anything."""

import math
from collections import Counter
from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.streaming import StreamingSums
from attnlib.trace import Trace

SCORED = 4  # judged batches whose predictions are looked at


class Learned(StreamingSums):
    """Sums of how well the next word is predicted under teacher forcing.

    Attributes:
        words: how many were to be predicted.
        right: how many were.
        loss: of all words, in nats.
        sentences: how many were looked at.
        whole: how many of them are without a wrong word.
        right_words: how often each word was to be predicted, by id.
    """

    SUMS = ("words", "right", "loss", "sentences", "whole", "right_words")

    def __init__(self) -> None:
        self.words = 0
        self.right = 0
        self.loss = 0.0
        self.sentences = 0
        self.whole = 0
        self.right_words: Counter[int] = Counter()

    def add(
        self,
        model_pass: Trace,
        logits: Float[Tensor, "batch target words"],
        never_written: Collection[int] = (),
    ) -> None:
        """Count what is predicted rightly.

        Args:
            model_pass: the pass of the model, whose outputs are the right words.
            logits: what the model predicts at each target position.
            never_written: ids that the model may not write, whatever their logits; the loss does not depend
                on them.

        Raises:
            BadInput: logits lack a right word.
        """
        mask = model_pass.target_mask  # (batch, target)
        if model_pass.predicts is not None:
            mask = mask & model_pass.predicts
        words = model_pass.target_outputs.masked_fill(~mask, 0)  # (batch, target)
        if int(words.max()) >= logits.shape[-1]:
            raise BadInput(
                f"a right word has id {int(words.max())}; the model predicts {logits.shape[-1]} words"
            )
        log_probabilities = logits.float().log_softmax(-1)  # (batch, target, words)
        loss = -log_probabilities.gather(-1, words[..., None])[..., 0]  # (batch, target)
        forbidden = torch.tensor(sorted(never_written), dtype=torch.int64, device=logits.device)
        allowed = logits.index_fill(-1, forbidden[forbidden < logits.shape[-1]], -torch.inf)
        right = allowed.argmax(-1) == words  # (batch, target)
        self.words += int(mask.sum())
        self.right += int((right & mask).sum())
        self.loss += float(loss[mask].double().sum())
        self.sentences += len(mask)
        self.whole += int((right | ~mask).all(1).sum())
        self.right_words.update(words[mask].tolist())

    def result(self) -> dict[str, int | float]:
        """Return shares and means; empty where nothing was looked at.

        ``loss_by_frequency`` is the loss of guessing by how frequent words are here, and ``most_frequent``
        how often the most frequent word is right.

        >>> learned = Learned()
        >>> learned.words, learned.right, learned.loss, learned.sentences = 4, 3, 2.0, 1
        >>> learned.right_words.update([5, 5, 6, 7])
        >>> learned.result()["accuracy"], round(learned.result()["loss_by_frequency"], 2)
        (0.75, 1.04)
        """
        if not self.words:
            return {}
        shares = torch.tensor(list(self.right_words.values()), dtype=torch.float64) / self.words
        return {
            "words": self.words,
            "sentences": self.sentences,
            "accuracy": self.right / self.words,
            "loss": self.loss / self.words,
            "whole_sentences": self.whole / self.sentences,
            "loss_by_frequency": -float((shares * shares.log()).sum()),
            "most_frequent": float(shares.max()),
        }


def has_learned(learned: dict[str, int | float]) -> bool:
    """Return True if a model predicts better than by how frequent words are, in loss and in accuracy."""
    less_loss = learned["loss"] < learned["loss_by_frequency"]
    more_right = learned["accuracy"] > learned["most_frequent"]
    return less_loss and more_right and math.isfinite(learned["loss"])
