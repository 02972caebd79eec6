"""Clipping: updates that are too large are made smaller.

Relies on `base.py`; the optimizers and user chains rely on it.
"""

from __future__ import annotations

from .. import numpy as fnp
from .. import tree
from .base import fitting, given, global_norm, norm, root_mean_square, stateless, times, widened


def clip(max_delta):
    """Each element held between -max_delta and max_delta.

    >>> clip(1.0).update(fnp.array([3.0, -0.5]), ())[0]
    Array([ 1. , -0.5], f32[2])
    """
    def clipped(u):
        return fnp.clip(u, -fitting(max_delta, u), fitting(max_delta, u))
    return stateless(lambda updates, params: tree.map(clipped, updates))


def clip_by_global_norm(max_norm):
    """Updates scaled down together where their global norm is above max_norm.

    Zero updates stay zero; a NaN stays.  Pascanu et al. 2013.

    >>> clip_by_global_norm(1.0).update(fnp.array([3.0, 4.0]), ())[0]
    Array([0.6, 0.8], f32[2])
    """
    return stateless(lambda updates, params: times(shrink(global_norm(updates), max_norm), updates))


def shrink(size, most):
    """1 where size < most, else most / size: f[]"""
    return fnp.where(size < most, 1.0, most / fnp.maximum(size, 1e-38))


def clip_by_block_norm(max_norm):
    """Each leaf scaled down by itself where its norm is above max_norm.

    >>> clip_by_block_norm(1.0).update([fnp.array([3.0, 4.0]), fnp.array([0.5])], ())[0]
    [Array([0.6, 0.8], f32[2]), Array([0.5], f32[1])]
    """
    return stateless(lambda updates, params: tree.map(
        lambda u: fitting(shrink(norm(u), max_norm), u) * u, updates))


def clip_by_block_rms(threshold):
    """Each leaf scaled down by itself where its root mean square is above the threshold.

    Shazeer and Stern 2018 (Adafactor, section 6).

    >>> clip_by_block_rms(1.0).update(fnp.array([2.0, -2.0]), ())[0]
    Array([ 1., -1.], f32[2])
    """
    def clipped(u):
        return u / fitting(fnp.maximum(1.0, root_mean_square(u) / threshold), u)
    return stateless(lambda updates, params: tree.map(clipped, updates))


def adaptive_grad_clip(clipping, eps=1e-3, axis=None):
    """Updates of a unit scaled down where their norm is above clipping · max(norm of params, eps).

    A unit is one output: norms are taken over `axis`; for None, over axis 0 of two or three axes,
    over all but the last of more; a vector is one unit.  Brock et al. 2021 (NFNets).

    >>> adaptive_grad_clip(0.1).update(fnp.array([3.0, 4.0]), (), fnp.array([0.0, 5.0]))[0]
    Array([0.3, 0.4], f32[2])
    """
    def clipped(u, p):
        of_update, of_param = unit_norm(u, axis), unit_norm(p, axis)
        most = clipping * fnp.maximum(of_param, eps)
        factor = fnp.where(of_update < most, 1.0, most / fnp.maximum(of_update, 1e-6))
        return factor.astype(u.dtype) * u
    return stateless(lambda updates, params: tree.map(
        clipped, updates, given(params, "adaptive_grad_clip", updates)))


def unit_norm(x, axis):
    """The norm of each unit, with the axes it was taken over as 1s."""
    if axis is None:
        flat = sum(n > 1 for n in x.shape) <= 1
        axis = None if flat else 0 if x.ndim in (2, 3) else tuple(range(x.ndim - 1))
    return fnp.sqrt(fnp.sum(fnp.square(widened(x)), axis=axis, keepdims=True))
