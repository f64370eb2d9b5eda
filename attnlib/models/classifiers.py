"""The classifier of Snell et al. 2021, section 2.4, sized as in section A.8: an LSTM, attention, one score.

The encoder reads in both directions, 256 each, words of 300. With h_t its states (512 wide), Q, v, W as in
the paper, and b the biases that its count of parameters asks for,

    score_t = v · ReLU(Q h_t + b_q) + b_v;     attention = softmax over t              (equation 7)
    log odds_t = W · h_t + b;                  logit = Σ_t attention_t · log odds_t    (equation 8)
    p(label 1) = σ(logit)

so that σ(±log odds_t) is the lexical probe β of position t (equation 9; γ in equation 22).

The published count, 1,274,882 parameters without embeddings, is that of exactly this arrangement::

    2 directions × 4 gates × 256 × (300 + 256 + 2 biases)          1,142,784
    Q: 512 → 256, and its bias                                       131,328
    v: 256 → 1, and its bias                                             257
    W: 512 → 1, and its bias                                             513

Two layers, one bias vector in place of two, or a second output would each give another number.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.deprecated import former_trace
from attnlib.errors import BadInput, check_at_least, check_known
from attnlib.models.attention import masked_softmax
from attnlib.models.initialise import draw_parameters, undrawn_embedding
from attnlib.trace import Attention, Trace

AttentionMode = Literal["learned", "uniform", "alone"]
_LARGE = 8_192  # positions of a batch, padding too, from which on rows of unlike length are worth parting


@dataclass(frozen=True)
class ClassifierConfig:
    """What the network is built from; the default sizes are the paper's.

    Raises:
        UnknownName: another ``attention``. BadInput: a size below 1.
    """

    words: int  #: size of the vocabulary, marks included
    embedding_width: int = 300  #: of a word's vector
    width: int = 256  #: of the state of one direction, and of the attention's hidden layer
    #: ``"learned"`` with all else; ``"uniform"``, frozen at 1 / length; ``"alone"``, learned while all else
    #: stays as it was drawn, and β with it (section A.6)
    attention: AttentionMode = "learned"

    def __post_init__(self) -> None:
        check_known("attention", self.attention, get_args(AttentionMode))
        check_at_least(1, self, "words", "embedding_width", "width")


class AttentiveClassifier(nn.Module):
    """The network, its parameters drawn from ``generator`` alone.

    The paper starts from GloVe by its text; in its authors' published runs the vectors were drawn at random.
    What is not trained keeps its parameters, so that one seed starts every kind of attention in one place.
    """

    def __init__(self, config: ClassifierConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        with torch.device("meta"):  # torch's own initialisation would draw from global state
            self.embedding = undrawn_embedding(config.words, config.embedding_width)
            # Two layers of one direction: see _both_directions.
            self.forwards, self.backwards = (
                nn.LSTM(config.embedding_width, config.width, batch_first=True) for _ in range(2)
            )
            self.attention_hidden = nn.Linear(2 * config.width, config.width)
            self.attention_score = nn.Linear(config.width, 1)
            self.readout = nn.Linear(2 * config.width, 1)
        self.to_empty(device="cpu")
        draw_parameters(self, generator)
        for name, parameter in self.named_parameters():
            of_attention = name.startswith("attention_")
            parameter.requires_grad_(config.attention != ("uniform" if of_attention else "alone"))

    def forward(
        self,
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        *,
        gates: Float[Tensor, "batch length"] | None = None,
        attention: Float[Tensor, "batch length"] | None = None,
    ) -> Trace:
        """Return the trace of one pass, with one query for each text.

        Its encoder states are h; its scores are not a product of states, so that there are no terms of them,
        and zero where the attention is uniform or was given. What the attention takes a mean of
        (``values``) are the log odds of label 1, if the network attended to a position alone: see
        :func:`log_odds_of`. ``logits`` holds the mean, the log odds with this attention: see
        :func:`logit_of`. A text's only step reads nothing, and its token is 0; the label that it predicts
        is not the network's to say.

        Args:
            tokens: ids of words and marks.
            mask: true at a text's positions, which come first; false at padding.
            gates: what the embedding of each position is multiplied by; 1 by default.
            attention: weights in place of the network's own, taken as they are at a text's positions and as
                zero at padding.

        Raises:
            BadInput: a text of padding alone.
        """
        embedded = self.embedding(tokens)
        if gates is not None:
            embedded = embedded * gates[..., None]
        states = self._states(embedded, mask)
        scores = states.new_zeros(mask.shape)
        if attention is None:
            if self.config.attention != "uniform":
                scores = self.attention_score(self.attention_hidden(states).relu())[..., 0]
            attention = masked_softmax(scores[:, None], mask)[:, 0]
        attention = attention * mask
        log_odds = self.readout(states)[..., 0]  # (batch, length)
        logit = (attention * log_odds).sum(1)  # (batch,)
        step = torch.zeros_like(tokens[:, :1])  # (batch, 1)
        reads = torch.ones_like(step, dtype=torch.bool)
        cross = Attention(
            "cross",
            0,
            query_inputs=states.new_zeros(len(states), 1, 0),
            key_inputs=states,
            maps=None,
            model_scores=scores[:, None, None],
            attention=attention[:, None, None],
            values=log_odds[:, None, :, None],
            context=logit[:, None, None, None],
        )
        return Trace(
            source_tokens=tokens,
            source_mask=mask,
            target_tokens=step,
            target_outputs=step,
            target_mask=reads,
            attentions=(cross,),
            encoder_states=states,
            logits=logit[:, None, None],
            predicts=~reads,
        )

    def _states(
        self, embedded: Float[Tensor, "batch length inputs"], mask: Bool[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length both_widths"]:
        """Padded to the longest message of 20 NG, one batch in 38 took half of the time, and gigabytes."""
        groups = rows_of_like_length(mask.sum(1).tolist()) if mask.numel() > _LARGE else []
        if len(groups) < 2:
            return self._both_directions(embedded, mask)
        states = embedded.new_zeros(*mask.shape, 2 * self.config.width)
        for rows in groups:
            longest = int(mask[rows].sum(1).max())
            states[rows, :longest] = self._both_directions(embedded[rows, :longest], mask[rows, :longest])
        return states

    def _both_directions(
        self, embedded: Float[Tensor, "batch length inputs"], mask: Bool[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length both_widths"]:
        """As packed sequences through one bidirectional LSTM, in a third of the time.

        On CPUs torch has a fast LSTM for padded batches alone: each text is turned round within its length.
        """
        length = mask.shape[1]
        position = torch.arange(length, device=mask.device)
        turned = mask.sum(1, keepdim=True) - 1 - position
        turned = torch.where(turned < 0, position, turned)  # padding stays where it is
        forwards, _ = self.forwards(embedded)
        backwards, _ = self.backwards(_picked(embedded, turned))
        return torch.cat([forwards, _picked(backwards, turned)], dim=-1)


def rows_of_like_length(lengths: list[int]) -> list[list[int]]:
    """Rows in groups, the longest first: in each, the longest is at most twice as long as the shortest.

    >>> rows_of_like_length([3, 10, 6, 5, 2])
    [[1, 2, 3], [0, 4]]
    """
    groups: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if not groups or 2 * lengths[row] < lengths[groups[-1][0]]:
            groups.append([])
        groups[-1].append(row)
    return groups


def _picked(rows: Float[Tensor, "batch length width"], order: Int[Tensor, "batch length"]) -> Tensor:
    return rows[torch.arange(len(rows), device=rows.device)[:, None], order]


def log_odds_of(trace: Trace) -> Float[Tensor, "batch length"]:
    """Return the log odds of label 1 if a classifier attended to a position alone; arbitrary at padding.

    σ(± log odds) is the lexical probe β of the position (equation 9).
    """
    if trace.values is None:
        raise BadInput("the trace has no values: it is not that of a classifier")
    return trace.values[:, :, 0]


def logit_of(trace: Trace) -> Float[Tensor, " batch"]:
    """Return the log odds of label 1 that a classifier gives each text, with the attention of the trace."""
    if trace.logits is None:
        raise BadInput("the trace has no logits: it is not that of a classifier")
    return trace.logits[:, 0, 0]


def classification_loss(logits: Float[Tensor, " batch"], labels: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Mean negative log-likelihood of the right label, in nats a text."""
    return nn.functional.binary_cross_entropy_with_logits(logits, labels.to(logits))


def __getattr__(name: str) -> type[Trace]:
    """Return what has taken the place of a class of earlier releases."""
    return former_trace(__name__, ("ClassifierTrace",), name)
