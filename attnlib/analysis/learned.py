"""Check that a model predicts the text well enough for its attention to be meaningful."""

import math
from collections import Counter
from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.streaming import StreamingSums
from attnlib.trace import Trace

SCORED = 4  # judged batches whose predictions are scored


class Learned(StreamingSums):
    """Sums of how well the next word is predicted under teacher forcing.

    Attributes:
        words: number of words to predict.
        right: number of words predicted correctly.
        loss: sum of the cross-entropy over all words, in nats.
        sentences: number of sentences scored.
        whole: number of sentences whose words are all correct.
        right_words: how often each word is the correct one, by id.
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
        self, trace: Trace, logits: Float[Tensor, "batch target words"], never_written: Collection[int] = ()
    ) -> None:
        """Score the predictions of a batch.

        Args:
            trace: of the batch; its outputs are the correct words.
            logits: of the word predicted at each target position.
            never_written: ids that the model may not write, whatever their logits; the loss does not depend
                on them.

        Raises:
            BadInput: the id of a correct word is beyond the logits.
        """
        mask = trace.target_mask  # (batch, target)
        if trace.predicts is not None:
            mask = mask & trace.predicts
        words = trace.target_outputs.masked_fill(~mask, 0)  # (batch, target)
        n_words = logits.shape[-1]
        largest = int(words.max())
        if largest >= n_words:
            raise BadInput(f"a correct word has id {largest}; the model predicts {n_words} words")
        log_probabilities = logits.float().log_softmax(-1)  # (batch, target, words)
        loss = -log_probabilities.gather(-1, words[..., None])[..., 0]  # (batch, target)
        forbidden = torch.tensor(sorted(never_written), dtype=torch.int64, device=logits.device)
        forbidden = forbidden[forbidden < n_words]
        predicted = logits.index_fill(-1, forbidden, -torch.inf).argmax(-1)  # (batch, target)
        is_right = predicted == words  # (batch, target)
        self.words += int(mask.sum())
        self.right += int((is_right & mask).sum())
        self.loss += float(loss[mask].double().sum())
        self.sentences += len(mask)
        self.whole += int((is_right | ~mask).all(1).sum())
        self.right_words.update(words[mask].tolist())

    def result(self) -> dict[str, int | float]:
        """Return shares and means; an empty dictionary if nothing was scored.

        ``loss_by_frequency`` is the loss, in nats, of predicting each word by its frequency in this text, and
        ``most_frequent`` is how often the most frequent word is correct.

        Example:
            >>> learned = Learned()
            >>> learned.words, learned.right, learned.loss, learned.sentences = 4, 3, 2.0, 1
            >>> learned.right_words.update([5, 5, 6, 7])
            >>> learned.result()["accuracy"], round(learned.result()["loss_by_frequency"], 2)
            (0.75, 1.04)
        """
        if not self.words:
            return {}
        counts = torch.tensor(list(self.right_words.values()), dtype=torch.float64)
        shares = counts / self.words
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
    """Return True if a model predicts better than word frequencies do, in loss and in accuracy."""
    less_loss = learned["loss"] < learned["loss_by_frequency"]
    more_right = learned["accuracy"] > learned["most_frequent"]
    return less_loss and more_right and math.isfinite(learned["loss"])


def not_learned(learned: dict[str, int | float]) -> str:
    """Return the warning that a model has not learned its text, with the numbers that show it.

    Args:
        learned: what :meth:`Learned.result` returned; empty where nothing was scored.

    Returns:
        Two sentences; an empty text where the model has learned the text, or nobody knows.

    Example:
        >>> learned = {"accuracy": 0.02, "most_frequent": 0.1, "loss": 4.5, "loss_by_frequency": 3.0}
        >>> not_learned(learned)[:77]
        'The model has not learned this text: it predicts 2% of the next words, where '
        >>> not_learned(learned | {"accuracy": 0.9, "loss": 0.3})
        ''
    """
    if not learned or has_learned(learned):
        return ""
    return (
        f"The model has not learned this text: it predicts {learned['accuracy']:.0%} of the next words, "
        f"where the most frequent word alone is right in {learned['most_frequent']:.0%}, at a loss of "
        f"{learned['loss']:.2f}, where guessing by frequency has {learned['loss_by_frequency']:.2f}. Its "
        "attention may mean nothing."
    )
