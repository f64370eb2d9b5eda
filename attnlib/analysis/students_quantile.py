"""The quantile of Student's distribution that a 95 % interval needs.

It is not scipy's, because machines that measure heads do not have scipy.
"""

import math
from functools import lru_cache
from typing import overload

import numpy as np
import torch
from torch import Tensor

_EXPANDED = 500.0  # degrees of freedom from which on an expansion is exact to the last digits
_NORMAL = 1.959963984540054  # the 97.5 % quantile of the normal distribution
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)  # of a quadrature on (-1, 1)


@overload
def students_quantile(degrees: int | float) -> float: ...


@overload
def students_quantile(degrees: Tensor) -> Tensor: ...


def students_quantile(degrees: int | float | Tensor) -> float | Tensor:
    """Return the 97.5 % quantile of Student's distribution.

    Args:
        degrees: of freedom, any real number from 1 on; the quantile is NaN below 1.

    Example:
        >>> [round(students_quantile(n), 3) for n in (1, 1.5, 2, 5, 30, 1000)]
        [12.706, 6.017, 4.303, 2.571, 2.042, 1.962]
    """
    if isinstance(degrees, Tensor):
        values = [_quantile(number) for number in degrees.flatten().tolist()]
        return torch.tensor(values, dtype=degrees.dtype, device=degrees.device).view_as(degrees)
    return _quantile(float(degrees))


@lru_cache(maxsize=4096)
def _quantile(degrees: float) -> float:
    """Return the quantile in closed form, by its expansion, or by Newton's method."""
    if not degrees >= 1:
        return math.nan
    if degrees == 1:
        return math.tan(0.475 * math.pi)
    if degrees == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    if degrees >= _EXPANDED:
        return _expanded(degrees)
    # With t = √n tan θ the probability of (0, t) is K ∫ cos(u)^(n-1) du from 0 to θ.
    constant = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    angle, step = 0.0, 1.0
    while abs(step) > 1e-10:  # Newton: the probability is concave, so no step goes too far
        nodes = angle * (_NODES + 1) / 2  # of the quadrature, in (0, angle)
        integrand = np.cos(nodes) ** (degrees - 1)
        probability = constant * angle / 2 * float(_WEIGHTS @ integrand)
        density = constant * math.cos(angle) ** (degrees - 1)
        step = (0.475 - probability) / density
        angle += step
    return math.sqrt(degrees) * math.tan(angle)


def _expanded(degrees: float) -> float:
    """Return the quantile by its expansion in 1/degrees (Abramowitz and Stegun 1964, 26.7.5)."""
    z = _NORMAL
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / degrees**power for power, term in enumerate(terms))
