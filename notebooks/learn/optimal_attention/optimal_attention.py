"""α^opt: the attention that makes the right word most probable, found by convex optimisation.

Snell et al. 2021, appendix A.1, equations 27-28 and 32-37. Where context and decoder state meet in one linear
map before softmax, the logits are linear in the attention. With γ_t the words' logits that source position t
brings, γ_s those of the decoder state, and y the right word,

    p = softmax( Σ_t α_t γ_t + γ_s )         loss = −log p_y = log(1 + g(α))
    g(α) = Σ_{o ≠ y} exp( Σ_t α_t (γ_{t,o} − γ_{t,y}) + γ_{s,o} − γ_{s,y} )

The paper minimises the loss over the simplex, where it is convex. So is h = log g, minus the log-odds of the
right word, and the loss increases with h: both have the same minimisers. h is what is minimised here, because
its slope does not vanish where the right word is nearly certain; every KKT residual of the loss is (1 − p_y)
times that of h, so smaller.

Gradient and Hessian, with q the softmax over the wrong words and Γ the matrix of γ_t:

    ∇h = Γ q − γ_{·,y}         ∇²h = Γ diag(q) Γᵀ − (Γ q)(Γ q)ᵀ

Each row is solved by a primal-dual interior-point method (Boyd and Vandenberghe 2004, section 11.7), all rows
of a batch at once. Where several attentions are equally good (a word that stands twice in the source), it
ends in the middle of them, so that equal positions get equal shares.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from attnlib.errors import BadInput

Attention = Float[Tensor, "batch target source"]
PerWord = Float[Tensor, "batch target"]
Rows = Float[Tensor, "*rows source"]

_TOWARDS_CENTRE = 0.1  # each step aims at this share of the present complementarity
_TO_BOUNDARY = 0.99  # steps end before the boundary of the simplex
_DECREASE = 0.01  # share of the promised decrease of the residual that a step must bring
_HALVINGS = 30
_DAMPINGS = (1e-12, 1e-9, 1e-6, 1e-3, 1.0)  # added to a diagonal of ones, each where the one before failed


@dataclass(frozen=True, eq=False)
class OptimalAttention:
    """The best attention of each row, in float64; zero at padding."""

    attention: Attention
    log_likelihood: PerWord  #: log p_y under it
    residual: PerWord  #: how far the row is from the KKT conditions, see :func:`kkt_residual`
    iterations: int  #: Newton steps that the slowest row took


def optimal_attention(
    encoder_logits: Float[Tensor, "batch source words"],
    decoder_logits: Float[Tensor, "batch target words"],
    words: Int[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"],
    target_mask: Bool[Tensor, "batch target"],
    *,
    tolerance: float = 1e-8,
    iterations: int = 200,
) -> OptimalAttention:
    """α^opt for every target word of a batch.

    Cost of a Newton step, of which 10 to 25 are needed: 2 · batch · target · source² · words operations, and
    memory for three tensors of (batch, source, words) and of (batch, target, words) in float64. A row with 15
    source positions and 8,000 words took 0.06 s on one core.

    Args:
        encoder_logits: γ_t, logits of each word from each source position.
        decoder_logits: γ_s, logits of each word from the decoder state, bias included.
        words: y, the right word at each target position.
        tolerance: a row is solved when its KKT residual, and the bound on what h can still lose, are at most
            this.
        iterations: Newton steps at most; ``residual`` says what they came to, row by row: logits that are
            too far apart for float64 leave a large one.

    Raises:
        BadInput: shapes that do not fit, fewer than two words, a sample without source positions, logits that
            are not finite.

    >>> encoder_logits = torch.tensor([[[0.0, 0, 0], [0, -10, 5], [0, 5, -10]]])  # the paper's equation 30
    >>> masks = torch.ones(1, 3, dtype=torch.bool), torch.ones(1, 1, dtype=torch.bool)
    >>> found = optimal_attention(encoder_logits, torch.zeros(1, 1, 3), torch.tensor([[0]]), *masks)
    >>> found.attention.round(decimals=6).abs().tolist()
    [[[0.0, 0.5, 0.5]]]
    """
    _check(encoder_logits, decoder_logits, words, source_mask, target_mask)
    problem = _Problem.of(encoder_logits, decoder_logits, words, source_mask, target_mask)
    point = _Point.start(problem)
    taken = 0
    while taken < iterations and not bool((solved := point.solved(tolerance)).all()):
        point = _improved(problem, point, ~solved)
        taken += 1
    attention = point.attention / point.attention.sum(-1, keepdim=True)
    value, gradient = problem.objective(attention)
    present = target_mask[:, :, None]
    return OptimalAttention(
        attention=attention * present,
        log_likelihood=-softplus(value) * target_mask,
        residual=kkt_residual(attention, gradient, problem.valid) * target_mask,
        iterations=taken,
    )


def kkt_residual(
    attention: Rows, gradient: Rows, valid: Bool[Tensor, "*rows source"]
) -> Float[Tensor, "*rows"]:
    """Largest absolute entry of α − P(α − ∇), P the projection on the simplex over valid positions.

    It is zero exactly where the KKT conditions hold: one slope wherever there is attention, no smaller slope
    elsewhere, entries that are not negative and sum to one.
    """
    projected = _onto_simplex((attention - gradient).masked_fill(~valid, -torch.inf))
    return (attention - projected).abs().masked_fill(~valid, 0.0).amax(-1)


def _onto_simplex(rows: Rows) -> Rows:
    """The nearest point of the simplex (Held, Wolfe and Crowder 1974): max(x − threshold, 0)."""
    ordered = rows.sort(-1, descending=True).values
    finite = ordered.isfinite()
    sums = ordered.masked_fill(~finite, 0.0).cumsum(-1)
    numbers = torch.arange(1, rows.shape[-1] + 1, dtype=rows.dtype, device=rows.device)
    support = (finite & (ordered * numbers > sums - 1)).sum(-1, keepdim=True).clamp(min=1)
    threshold = (sums.gather(-1, support - 1) - 1) / support
    return (rows - threshold).clamp(min=0.0)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What h depends on; ``valid`` is true where a row may attend."""

    encoder: Float[Tensor, "batch source words"]
    wrong: Float[Tensor, "batch target words"]  # γ_s,o − γ_s,y, with −inf at the right word
    right: Attention  # γ_t,y
    valid: Bool[Tensor, "batch target source"]

    @classmethod
    def of(cls, encoder_logits, decoder_logits, words, source_mask, target_mask) -> "_Problem":
        encoder = encoder_logits.double().masked_fill(~source_mask[:, :, None], 0.0)
        decoder = decoder_logits.double().masked_fill(~target_mask[:, :, None], 0.0)
        chosen = words.masked_fill(~target_mask, 0)[:, :, None]
        wrong = (decoder - decoder.gather(2, chosen)).scatter(2, chosen, -torch.inf)
        right = encoder.transpose(1, 2).gather(1, chosen.expand(-1, -1, encoder.shape[1]))
        return cls(encoder, wrong, right, source_mask[:, None, :].expand(right.shape))

    def objective(self, attention: Attention) -> tuple[PerWord, Attention]:
        """h and its gradient, zero at padding."""
        value, q = self._value(attention)
        return value, (q @ self.encoder.transpose(1, 2) - self.right) * self.valid

    def _value(self, attention: Tensor) -> tuple[Tensor, Tensor]:
        logits = attention @ self.encoder + self.wrong
        total = logits.logsumexp(-1)
        return total - (attention * self.right).sum(-1), (logits - total[..., None]).exp()

    def hessian(self, attention: Attention) -> Float[Tensor, "batch target source source"]:
        """∇²h as A Aᵀ, which rounding cannot make indefinite; a target position at a time to save memory."""
        _, q = self._value(attention)
        blocks = []
        for weights in q.unbind(1):
            mean = self.encoder @ weights[:, :, None]
            spread = (self.encoder - mean) * weights.sqrt()[:, None, :]
            blocks.append(spread @ spread.transpose(1, 2))
        both = self.valid[:, :, :, None] & self.valid[:, :, None, :]
        return torch.stack(blocks, 1) * both


@dataclass(frozen=True, eq=False)
class _Point:
    """Attention, multipliers of α ≥ 0 (one at padding) and of Σα = 1, and the gradient there."""

    attention: Attention
    slack: Attention
    level: Float[Tensor, "batch target 1"]
    gradient: Attention
    valid: Bool[Tensor, "batch target source"]

    @classmethod
    def start(cls, problem: _Problem) -> "_Point":
        """Uniform attention, multipliers that balance its slopes."""
        attention = problem.valid / problem.valid.sum(-1, keepdim=True).double()
        _, gradient = problem.objective(attention)
        lowest = gradient.masked_fill(~problem.valid, torch.inf).amin(-1, keepdim=True)
        highest = gradient.masked_fill(~problem.valid, -torch.inf).amax(-1, keepdim=True)
        level = (highest - lowest).clamp(min=1e-3) - lowest
        slack = torch.where(problem.valid, gradient + level, 1.0)
        return cls(attention, slack, level, gradient, problem.valid)

    def solved(self, tolerance: float) -> Bool[Tensor, "batch target"]:
        """Rows that meet the KKT conditions, and whose h can fall no further, up to the tolerance."""
        residual = kkt_residual(self.attention, self.gradient, self.valid)
        return (residual <= tolerance) & (self.gap() <= tolerance)

    def gap(self) -> PerWord:
        """Σ α z, which bounds how much lower h can get."""
        return (self.attention * self.slack).sum(-1)

    def residual(self, centre: Float[Tensor, "batch target 1"]) -> PerWord:
        """Norm of what the Newton step drives to zero."""
        complementarity = (self.attention * self.slack - centre) * self.valid
        return torch.cat((self._slopes(), complementarity), -1).norm(dim=-1)

    def _slopes(self) -> Tensor:
        return (self.gradient - self.slack + self.level) * self.valid

    def moved(
        self, problem: _Problem, size: Tensor, attention: Tensor, slack: Tensor, level: Tensor
    ) -> "_Point":
        """A step of the given size in each row."""
        there = self.attention + size * attention
        _, gradient = problem.objective(there)
        return _Point(there, self.slack + size * slack, self.level + size * level, gradient, self.valid)


def _improved(problem: _Problem, point: _Point, moving: Bool[Tensor, "batch target"]) -> _Point:
    """One Newton step on the KKT conditions with α z = centre, shortened until the residual falls.

    Rows that are not moving stay where they are.
    """
    valid = problem.valid
    centre = _TOWARDS_CENTRE * point.gap()[..., None] / valid.sum(-1, keepdim=True)
    pull = torch.where(valid, centre / point.attention.where(valid, 1.0), 0.0)
    curvature = torch.where(valid, point.slack / point.attention.where(valid, 1.0), 1.0)
    # The diagonal spans many orders of magnitude near the boundary: scale it to about one before solving.
    matrix = problem.hessian(point.attention) + torch.diag_embed(curvature)
    scale = matrix.diagonal(dim1=-2, dim2=-1).rsqrt()
    factor = _factor(matrix * scale[..., :, None] * scale[..., None, :])
    # From the present level on: solving for the level itself would lose the digits that the two sides share.
    uphill = (pull - point.gradient - point.level) * valid
    sides = torch.stack((uphill, valid.double()), -1) * scale[..., None]
    downhill, constant = (torch.cholesky_solve(sides, factor) * scale[..., None]).unbind(-1)
    level = downhill.sum(-1, keepdim=True) / constant.sum(-1, keepdim=True)
    step = downhill - level * constant
    slack = (pull - point.slack - curvature * step) * valid
    direction = step, slack, level

    room = torch.minimum(_room(point.attention, step), _room(point.slack, slack))
    size = ((room * _TO_BOUNDARY).clamp(max=1.0) * moving)[..., None]
    before = point.residual(centre)
    there = point.moved(problem, size, *direction)
    for _ in range(_HALVINGS):
        worse = there.residual(centre) > (1 - _DECREASE * size[..., 0]) * before
        if not bool(worse.any()):
            break
        size = torch.where(worse[..., None], size / 2, size)
        there = point.moved(problem, size, *direction)
    return there


def _factor(matrices: Float[Tensor, "*rows source source"]) -> Float[Tensor, "*rows source source"]:
    """Cholesky factors of matrices with ones on the diagonal.

    One that rounding made indefinite gets a larger diagonal, which shortens the step of its row alone.
    """
    factors, failures = torch.linalg.cholesky_ex(matrices)
    for damping in _DAMPINGS:
        failed = failures > 0
        if not bool(failed.any()):
            break
        identity = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
        damped, still_failed = torch.linalg.cholesky_ex(matrices[failed] + damping * identity)
        factors[failed] = damped
        failures[failed] = still_failed
    return factors


def _room(values: Tensor, step: Tensor) -> Tensor:
    """How far each row can go before an entry reaches zero."""
    return torch.where(step < 0, -values / step, torch.inf).amin(-1)


def _check(encoder_logits, decoder_logits, words, source_mask, target_mask) -> None:
    if encoder_logits.dim() != 3 or decoder_logits.dim() != 3:
        raise BadInput(
            f"logits of shapes {tuple(encoder_logits.shape)} and {tuple(decoder_logits.shape)}; expected "
            "(batch, source, words) and (batch, target, words)"
        )
    batch, source, size = encoder_logits.shape
    target = decoder_logits.shape[1]
    shapes = {
        "decoder_logits": (decoder_logits, (batch, target, size)),
        "words": (words, (batch, target)),
        "source_mask": (source_mask, (batch, source)),
        "target_mask": (target_mask, (batch, target)),
    }
    for name, (given, expected) in shapes.items():
        if tuple(given.shape) != expected:
            raise BadInput(
                f"{name} has shape {tuple(given.shape)}; with the other arguments it is {expected}"
            )
    if size < 2:
        raise BadInput("there is only one word, so nothing to choose between")
    if not bool(source_mask.any(1).all()):
        raise BadInput("a sample has no valid source position, so nothing to attend to")
    for name, logits, mask in (
        ("encoder", encoder_logits, source_mask),
        ("decoder", decoder_logits, target_mask),
    ):
        if not bool(logits[mask].isfinite().all()):
            raise BadInput(f"{name}_logits are not all finite at valid positions")
