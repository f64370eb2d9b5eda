"""Whether a model has learned the text that it is analysed on: else its attention need not mean anything."""

import math
from collections import Counter
from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.adapters.model_pass import ModelPass
from attnlib.errors import BadInput

SCORED = 4  # judged batches whose predictions are looked at


class Learned:
    """Sums of how well the next word is predicted under teacher forcing; mergeable.

    ``totals`` counts ``words``, those ``right``, their ``loss`` in nats, ``sentences`` and those ``whole``,
    without a wrong word; ``right_words`` counts each word that was to be predicted.
    """

    def __init__(self) -> None:
        self.totals: Counter = Counter()
        self.right_words: Counter = Counter()

    def add(
        self, one: ModelPass, logits: Float[Tensor, "batch target words"], never_written: Collection[int] = ()
    ) -> None:
        """Count what is predicted rightly.

        Args:
            never_written: ids that the model may not write, whatever their logits; the loss does not depend
                on them.

        Raises:
            BadInput: logits lack a right word.
        """
        mask = one.target_mask if one.predicts is None else one.target_mask & one.predicts
        words = one.target_outputs.masked_fill(~mask, 0)
        if int(words.max()) >= logits.shape[-1]:
            raise BadInput(
                f"a right word has id {int(words.max())}; the model predicts {logits.shape[-1]} words"
            )
        loss = -logits.float().log_softmax(-1).gather(-1, words[..., None])[..., 0]
        forbidden = torch.tensor(sorted(never_written), dtype=torch.int64, device=logits.device)
        allowed = logits.index_fill(-1, forbidden[forbidden < logits.shape[-1]], -torch.inf)
        right = allowed.argmax(-1) == words
        self.totals.update(
            words=int(mask.sum()), right=int((right & mask).sum()), loss=float(loss[mask].double().sum()),
            sentences=len(mask), whole=int((right | ~mask).all(1).sum()),
        )  # fmt: skip
        self.right_words.update(words[mask].tolist())

    def __add__(self, other: "Learned") -> "Learned":
        merged = Learned()
        merged.totals = self.totals + other.totals
        merged.right_words = self.right_words + other.right_words
        return merged

    def facts(self) -> dict:
        return {"totals": self.totals, "right_words": {str(k): v for k, v in self.right_words.items()}}

    @classmethod
    def of_facts(cls, facts: dict) -> "Learned":
        found = cls()
        found.totals = Counter(facts["totals"])
        found.right_words = Counter({int(word): count for word, count in facts["right_words"].items()})
        return found

    def result(self) -> dict[str, int | float]:
        """Shares and means; ``loss_by_frequency`` is that of guessing by how frequent words are here, and
        ``most_frequent`` how often the most frequent is right. Empty where nothing was looked at.

        >>> one = Learned()
        >>> one.totals.update(words=4, right=3, loss=2.0, sentences=1, whole=0)
        >>> one.right_words.update([5, 5, 6, 7])
        >>> one.result()["accuracy"], round(one.result()["loss_by_frequency"], 2)
        (0.75, 1.04)
        """
        words, sentences = self.totals["words"], self.totals["sentences"]
        if not words:
            return {}
        shares = torch.tensor(list(self.right_words.values()), dtype=torch.float64) / words
        return {
            "words": words,
            "sentences": sentences,
            "accuracy": self.totals["right"] / words,
            "loss": self.totals["loss"] / words,
            "whole_sentences": self.totals["whole"] / sentences,
            "loss_by_frequency": -float((shares * shares.log()).sum()),
            "most_frequent": float(shares.max()),
        }


def has_learned(found: dict[str, int | float]) -> bool:
    """Whether it predicts better than by how frequent words are, in loss and in words that are right."""
    beaten = found["loss"] < found["loss_by_frequency"] and found["accuracy"] > found["most_frequent"]
    return beaten and math.isfinite(found["loss"])
