"""Muon: updates of matrices replaced by the nearest matrix with orthonormal rows or columns.

Relies on `base.py`; `optimizers.py` relies on it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .. import numpy as fnp
from .. import tree
from ..errors import ArgumentError, ShapeError
from .base import (GradientTransformation, check_shares, counted, keep_all, mean_of, start,
                   stateless, widened, zeros)
from .moments import looked_ahead

COEFFICIENTS = (3.4445, -4.7750, 2.0315)         # Jordan et al. 2024


def orthogonalize(x, ns_coeffs=COEFFICIENTS, ns_steps=5, eps=1e-8):
    """x with its singular values moved near 1, by Newton-Schulz iteration: f[*b,m,n] → f[*b,m,n]

    With a = x xᵀ, a step is x ← c₀ x + (c₁ a + c₂ a²) x.  ns_coeffs: (c₀, c₁, c₂), or such a triple
    for each step.  The default coefficients leave singular values between about 0.7 and 1.2
    (Jordan et al. 2024).  Raises ShapeError for fewer than two axes.

    >>> orthogonalize(fnp.array([[2.0, 0.0], [0.0, 2.0]])).round(2)
    Array([[1.11, 0.  ],
           [0.  , 1.11]], f32[2,2])
    """
    if x.ndim < 2:
        raise ShapeError("only matrices can be made orthogonal.", given=f"{x.ndim} axes",
                         expected="two or more", fix="muon gives other leaves to adam")
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (fnp.sqrt(fnp.sum(x * x, axis=(-2, -1), keepdims=True)) + eps)
    for c0, c1, c2 in triples(ns_coeffs, ns_steps):
        a = x @ x.mT
        x = c0 * x + (c1 * a + c2 * (a @ a)) @ x
    return x.mT if tall else x


def triples(coefficients, steps):
    """Three coefficients for each step; of a longer list the last ones."""
    if not isinstance(coefficients[0], (tuple, list)):
        return [coefficients] * steps
    if len(coefficients) < steps:
        raise ArgumentError("there are not enough Newton-Schulz coefficients.",
                            given=f"{len(coefficients)} triples", expected=f"{steps}")
    return coefficients[len(coefficients) - steps:]


class MuonState(NamedTuple):
    """The number of updates i32[], and the running mean of the gradients, like params."""
    count: object
    mu: object


def scale_by_muon(ns_coeffs=COEFFICIENTS, ns_steps=5, beta=0.95, eps=1e-8, mu_dtype=None, *,
                  nesterov=True, adaptive=False):
    """The orthogonalized momentum of matrices (Muon; Jordan et al. 2024).

    All leaves have two axes or more; the last two are the matrix.  adaptive: times the inner
    product of the momentum and its orthogonalized form.

    >>> opt = scale_by_muon()
    >>> opt.update(fnp.eye(2), opt.init(fnp.eye(2)))[0].round(2)
    Array([[1.11, 0.  ],
           [0.  , 1.11]], f32[2,2])
    """
    check_shares(beta=beta)
    def moved(m):
        out = orthogonalize(widened(m), ns_coeffs, ns_steps, eps)
        return fnp.sum(m * out, axis=(-2, -1), keepdims=True) * out if adaptive else out

    def update(updates, state, params=None):
        count, mu = counted(state) + 1, mean_of(updates, state.mu, beta)
        out = tree.map(moved, looked_ahead(updates, mu, beta, count, nesterov))
        return keep_all(updates, out), MuonState(count, keep_all(state.mu, mu))
    return GradientTransformation(lambda params: MuonState(start(), zeros(params, mu_dtype)),
                                  update)


def scale_by_shape(consistent_rms=None):
    """Matrices f[*b,in,out] times √max(1, out / in), or consistent_rms · √max(in, out) if given.

    The first lets rates carry over between widths, the second between Muon and Adam (about 0.2;
    Liu et al. 2025).

    >>> scale_by_shape().update(fnp.ones((1, 4)), ())[0]
    Array([[2., 2., 2., 2.]], f32[1,4])
    """
    def scaled(u):
        fan_in, fan_out = u.shape[-2:]
        if consistent_rms is not None:
            return u * (math.sqrt(max(fan_in, fan_out)) * consistent_rms)
        return u * math.sqrt(max(1, fan_out / max(fan_in, 1)))
    return stateless(lambda updates, params: tree.map(scaled, updates))
