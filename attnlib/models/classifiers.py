"""The classifier of Snell et al. 2021, section 2.4, sized as in section A.8: an LSTM, attention, one score.

The encoder reads in both directions, 256 each, words of 300. With h_t its states (512 wide), Q, v, W as in
the paper, and b the biases that its count of parameters implies,

    score_t = v · ReLU(Q h_t + b_q) + b_v;     attention = softmax over t              (equation 7)
    log odds_t = W · h_t + b;                  logit = Σ_t attention_t · log odds_t    (equation 8)
    p(label 1) = σ(logit)

so that σ(±log odds_t) is the lexical probe β of position t (equation 9; γ in equation 22).

The published count, 1,274,882 parameters without embeddings, is that of exactly this arrangement::

    2 directions × 4 gates × 256 × (300 + 256 + 2 biases)          1,142,784
    Q: 512 → 256, and its bias                                       131,328
    v: 256 → 1, and its bias                                             257
    W: 512 → 1, and its bias                                             513

Two layers, one bias vector instead of two, or a second output would each give another number.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnlib.errors import BadInput, check_at_least, check_known
from attnlib.former_names import former_object
from attnlib.models.attention import masked_softmax
from attnlib.models.initialise import draw_parameters
from attnlib.trace import Attention, Trace

AttentionMode = Literal["learned", "uniform", "alone"]
_LARGE = 8_192  # positions of a batch, padding too, from which on rows of unlike length are worth parting


@dataclass(frozen=True)
class ClassifierConfig:
    """Settings of the classifier; the default sizes are the paper's.

    Attributes:
        words: size of the vocabulary, marks included.
        embedding_width: of a word's vector.
        width: of the state of one direction, and of the attention's hidden layer.
        attention: ``"learned"`` with all else; ``"uniform"``, frozen at 1 / length; ``"alone"``, learned
            while all else, and β with it, stays as it was drawn (section A.6).

    Raises:
        UnknownName: ``attention`` is another word.
        BadInput: a size is below 1.

    Example:
        >>> ClassifierConfig(words=100).width
        256
    """

    words: int
    embedding_width: int = 300
    width: int = 256
    _: KW_ONLY
    attention: AttentionMode = "learned"

    def __post_init__(self) -> None:
        check_known("attention", self.attention, get_args(AttentionMode))
        check_at_least(1, self, "words", "embedding_width", "width")


class AttentiveClassifier(nn.Module):
    """The classifier of the module, its parameters drawn from ``generator`` alone.

    According to its text the paper starts from GloVe; in its authors' published runs the vectors were drawn
    at random. Parameters that are not trained are drawn all the same, so that every kind of attention starts
    from the same parameters with one seed.

    Args:
        config: sizes and kind of attention.
        generator: draws the parameters.

    Example:
        >>> config = ClassifierConfig(words=9, embedding_width=4, width=3)
        >>> network = AttentiveClassifier(config, torch.Generator().manual_seed(0))
        >>> tokens = torch.tensor([[4, 5, 6], [7, 8, 0]])
        >>> tuple(logit_of(network(tokens, tokens > 0)).shape)
        (2,)
    """

    def __init__(self, config: ClassifierConfig, generator: torch.Generator):
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):  # what torch's own initialisation draws is drawn over below
            self.embedding = nn.Embedding(config.words, config.embedding_width)
            # Two layers of one direction: see _both_directions.
            self.forwards, self.backwards = (
                nn.LSTM(config.embedding_width, config.width, batch_first=True) for _ in range(2)
            )
            self.attention_hidden = nn.Linear(2 * config.width, config.width)
            self.attention_score = nn.Linear(config.width, 1)
            self.readout = nn.Linear(2 * config.width, 1)
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

        Its encoder states are h. Its scores are not a product of states, so that they have no terms; they are
        zero if the attention is uniform or given. ``values``, which the attention averages, are the log odds
        of label 1 if the network attended to a position alone: see :func:`log_odds_of`. ``logits`` holds
        their average, the log odds with this attention: see :func:`logit_of`. The only step of a text reads
        nothing; its token is 0, and the trace holds no label that it predicts.

        Args:
            tokens: ids of words and marks.
            mask: True at a text's positions, which come first; False at padding.
            gates: multiply the embedding of each position; 1 by default.
            attention: weights to use instead of the network's, taken as they are at a text's positions and as
                zero at padding.

        Returns:
            The trace, with one cross-attention of one head.

        Raises:
            BadInput: a text is padding alone.
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
            weights=attention[:, None, None],
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
        """Return the encoder states; in large batches, rows of like length are encoded together.

        Padded to the longest message of 20 NG, one batch in 38 took half of the time, and gigabytes.
        """
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
        """Return what one bidirectional LSTM makes of packed sequences, in a third of the time.

        On CPUs torch has a fast LSTM for padded batches alone: each text is reversed within its length.
        """
        length = mask.shape[1]
        position = torch.arange(length, device=mask.device)
        backward = mask.sum(1, keepdim=True) - 1 - position
        backward = torch.where(backward < 0, position, backward)  # padding stays where it is
        forwards, _ = self.forwards(embedded)
        backwards, _ = self.backwards(_picked(embedded, backward))
        return torch.cat([forwards, _picked(backwards, backward)], dim=-1)


def rows_of_like_length(lengths: list[int]) -> list[list[int]]:
    """Group rows by length, the longest first; no row is more than twice as long as another of its group.

    Args:
        lengths: of each row.

    Returns:
        Numbers of the rows of each group.

    Example:
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
    """Return the log odds of label 1 if a classifier attended to one position alone.

    σ(± log odds) is the lexical probe β of the position (equation 9).

    Args:
        trace: of an :class:`AttentiveClassifier`.

    Returns:
        Nats for each position; arbitrary at padding.

    Raises:
        BadInput: the trace is that of another network.

    Example:
        >>> config = ClassifierConfig(words=9, embedding_width=4, width=3)
        >>> network = AttentiveClassifier(config, torch.Generator().manual_seed(0))
        >>> tokens = torch.tensor([[4, 5, 6], [7, 8, 0]])
        >>> tuple(log_odds_of(network(tokens, tokens > 0)).shape)
        (2, 3)
    """
    if trace.values is None:
        raise BadInput("the trace has no values: it is not that of a classifier")
    return trace.values[:, :, 0]


def logit_of(trace: Trace) -> Float[Tensor, " batch"]:
    """Return the log odds of label 1 that a classifier gives to each text, with the attention of the trace.

    Args:
        trace: of an :class:`AttentiveClassifier`.

    Returns:
        Nats for each text.

    Raises:
        BadInput: the trace is that of another network.

    Example:
        >>> config = ClassifierConfig(words=9, embedding_width=4, width=3)
        >>> network = AttentiveClassifier(config, torch.Generator().manual_seed(0))
        >>> tokens = torch.tensor([[4, 5, 6]])
        >>> trace = network(tokens, tokens > 0)
        >>> averaged = (trace.attentions[0].weights[:, 0, 0] * log_odds_of(trace)).sum(1)
        >>> torch.allclose(averaged, logit_of(trace))
        True
    """
    if trace.logits is None:
        raise BadInput("the trace has no logits: it is not that of a classifier")
    return trace.logits[:, 0, 0]


def classification_loss(logits: Float[Tensor, " batch"], labels: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Return the mean negative log-likelihood of the right labels.

    Args:
        logits: log odds of label 1, of each text.
        labels: 0 or 1.

    Returns:
        Nats a text.

    Example:
        >>> round(float(classification_loss(torch.zeros(2), torch.tensor([0, 1]))), 4)
        0.6931
    """
    return nn.functional.binary_cross_entropy_with_logits(logits, labels.to(logits))


def __getattr__(name: str) -> type[Trace]:
    """Return what has taken the place of a class of earlier releases."""
    return former_object(__name__, {"ClassifierTrace": "attnlib.trace.Trace"}, name)
