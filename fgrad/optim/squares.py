"""Updates scaled by sums or means of their squares: RMSProp, Adagrad, Adadelta, SM3, Adafactor.

Each states its rule and source; g is the gradient.  Relies on `base.py`; `optimizers.py` on it.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from .. import numpy as fnp
from .. import tree
from ..numpy.complex import squared
from .base import (GradientTransformation, check_shares, counted, fitting, given, keep, keep_all,
                   mean_of, size_dtype, sizes, square, start, unbiased, widened, zeros)


# ---------------------------------------------------------------------------- one per element

class ScaleByRmsState(NamedTuple):
    """The running mean of the squares, like params."""
    nu: object


class ScaleByRmsWithCountState(NamedTuple):
    """The number of updates i32[], and the running mean of the squares, like params."""
    count: object
    nu: object


def inverse_root(x, eps, eps_in_sqrt):
    """1 / √(x + eps), or 1 / (√x + eps)"""
    return 1 / fnp.sqrt(x + eps) if eps_in_sqrt else 1 / (fnp.sqrt(x) + eps)


def scale_by_rms(decay=0.9, eps=1e-8, initial_scale=0.0, eps_in_sqrt=True, bias_correction=False):
    """g / √(v + eps), v the running mean of g² (RMSProp; Tieleman and Hinton 2012).

    initial_scale: v at the start.  eps_in_sqrt=False divides by √v + eps.  bias_correction: v is
    divided by 1 - decay^count.

    >>> opt = scale_by_rms(decay=0.75, eps=0.0)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([0.0])))[0]
    Array([2.], f32[1])
    """
    check_shares(decay=decay)
    def init(params):
        nu = sizes(params, initial_scale)
        return ScaleByRmsWithCountState(start(), nu) if bias_correction else ScaleByRmsState(nu)

    def update(updates, state, params=None):
        nu = mean_of(square(updates), state.nu, decay)
        after = state._replace(nu=keep_all(state.nu, nu))
        if bias_correction:
            after = after._replace(count=counted(state) + 1)
            nu = unbiased(nu, decay, after.count)
        out = tree.map(lambda g, v: keep(g, g * inverse_root(v, eps, eps_in_sqrt)), updates, nu)
        return out, after
    return GradientTransformation(init, update)


class ScaleByRStdDevState(NamedTuple):
    """The running means of g and of its squares, like params."""
    mu: object
    nu: object


class ScaleByRStdDevWithCountState(NamedTuple):
    """The number of updates i32[], and the running means of g and of its squares, like params."""
    count: object
    mu: object
    nu: object


def scale_by_stddev(decay=0.9, eps=1e-8, initial_scale=0.0, eps_in_sqrt=True,
                    bias_correction=False):
    """g / √(v - m² + eps): RMSProp, centred (Graves 2013).  Options as in `scale_by_rms`.

    >>> opt = scale_by_stddev(decay=0.5, eps=0.0)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([0.0])))[0]
    Array([2.], f32[1])
    """
    check_shares(decay=decay)
    def init(params):
        parts = zeros(params), sizes(params, initial_scale)
        if bias_correction:
            return ScaleByRStdDevWithCountState(start(), *parts)
        return ScaleByRStdDevState(*parts)

    def update(updates, state, params=None):
        mu, nu = mean_of(updates, state.mu, decay), mean_of(square(updates), state.nu, decay)
        after = state._replace(mu=keep_all(state.mu, mu), nu=keep_all(state.nu, nu))
        if bias_correction:
            after = after._replace(count=counted(state) + 1)
            mu, nu = [unbiased(x, decay, after.count) for x in (mu, nu)]
        spread = tree.map(lambda m, v: fnp.maximum(v - squared(m), 0.0), mu, nu)
        out = tree.map(lambda g, v: keep(g, g * inverse_root(v, eps, eps_in_sqrt)), updates, spread)
        return out, after
    return GradientTransformation(init, update)


class ScaleByRssState(NamedTuple):
    """The sum of the squares so far, like params."""
    sum_of_squares: object


def scale_by_rss(initial_accumulator_value=0.1, eps=1e-7):
    """g / √(s + eps), s the sum of all g² (Adagrad; Duchi et al. 2011); 0 where s is 0.

    >>> opt = scale_by_rss(0.0, eps=0.0)
    >>> opt.update(fnp.array([5.0, 0.0]), opt.init(fnp.zeros(2)))[0]
    Array([1., 0.], f32[2])
    """
    def update(updates, state, params=None):
        total = tree.map(lambda g, s: squared(g) + s, updates, state.sum_of_squares)
        total = keep_all(state.sum_of_squares, total)
        out = tree.map(lambda g, s: g * root_or_zero(s, eps), updates, total)
        return out, ScaleByRssState(total)
    return GradientTransformation(
        lambda params: ScaleByRssState(sizes(params, initial_accumulator_value)), update)


def root_or_zero(s, eps):
    """1 / √(s + eps), 0 where s is 0"""
    return fnp.where(s > 0, 1 / fnp.sqrt(fnp.where(s > 0, s, 1.0) + eps), 0.0)


class ScaleByAdaDeltaState(NamedTuple):
    """The running means of the squares of gradients and of updates, like params."""
    e_g: object
    e_x: object


def scale_by_adadelta(rho=0.9, eps=1e-6):
    """g · √(x + eps) / √(v + eps), v and x the running means of g² and of the updates².

    Zeiler 2012.

    >>> opt = scale_by_adadelta(rho=0.75, eps=1e-6)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([0.0])))[0]
    Array([0.002], f32[1])
    """
    check_shares(rho=rho)
    def update(updates, state, params=None):
        e_g = mean_of(square(updates), state.e_g, rho)
        out = tree.map(lambda g, v, x: g * (fnp.sqrt(x + eps) / fnp.sqrt(v + eps)),
                       updates, e_g, state.e_x)
        e_x = mean_of(square(out), state.e_x, rho)
        after = ScaleByAdaDeltaState(keep_all(state.e_g, e_g), keep_all(state.e_x, e_x))
        return keep_all(updates, out), after
    return GradientTransformation(
        lambda params: ScaleByAdaDeltaState(sizes(params), sizes(params)), update)


# ---------------------------------------------------------------------------- less memory

class ScaleBySM3State(NamedTuple):
    """For each leaf one vector per axis, the largest sums of squares; and the momentum."""
    mu: object
    nu: object


def scale_by_sm3(b1=0.9, b2=1.0, eps=1e-8):
    """Momentum of g / √(s + eps), s = g² + the least of one number per row, column, … .

    The numbers are the largest s of that row, column, …: a vector for each axis is kept instead of
    a whole array (SM3; Anil et al. 2019).

    >>> opt = scale_by_sm3(b1=0.0)
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([0.0])))[0]
    Array([1.], f32[1])
    """
    check_shares(b1=b1)
    coefficient = 1.0 if isinstance(b2, float) and b2 == 1.0 else 1 - b2

    def init(params):
        return ScaleBySM3State(tree.map(zero_vectors, params), zeros(params))

    def covered(g, vectors):
        wide = [v.reshape([-1 if a == k else 1 for a in range(g.ndim)])
                for k, v in enumerate(vectors)]
        return coefficient * squared(g) + b2 * reduce(fnp.minimum, wide)

    def update(updates, state, params=None):
        total = tree.map(covered, updates, state.mu)
        scaled = tree.map(lambda g, s: g * root_or_zero(s, eps), updates, total)
        nu = mean_of(scaled, state.nu, b1)
        mu = tree.map(lambda s, old: [keep(o, v) for v, o in zip(largest(s), old)],
                      total, state.mu)
        return keep_all(updates, nu), ScaleBySM3State(mu, keep_all(state.nu, nu))
    return GradientTransformation(init, update)


def zero_vectors(p):
    """A vector of zeros for each axis; a scalar counts as one axis."""
    return [fnp.zeros(n, size_dtype(p)) for n in p.shape or (1,)]


def largest(s):
    """For each axis the maxima over all others, 0 where those have no elements."""
    if s.ndim < 2:
        return [s.reshape(-1)]
    return [s.max([a for a in range(s.ndim) if a != k], initial=0.0) for k in range(s.ndim)]


class FactoredState(NamedTuple):
    """The number of updates i32[]; means of squares by row and column, or whole, for each leaf."""
    count: object
    v_row: object
    v_col: object
    v: object


def factored_axes(shape, factored, least):
    """The second largest and the largest axis, or None where the squares are kept whole."""
    if not factored or len(shape) < 2:
        return None
    order = sorted(range(len(shape)), key=lambda a: shape[a])
    return (order[-2], order[-1]) if shape[order[-2]] >= least else None


def scale_by_factored_rms(factored=True, decay_rate=0.8, step_offset=0, min_dim_size_to_factor=128,
                          epsilon=1e-30):
    """g / √v, v the running mean of g², for matrices as a product of means of rows and columns.

    The decay is 1 - t^-decay_rate at step t; a leaf is factored over its two largest axes where
    both have min_dim_size_to_factor elements or more.  Adafactor; Shazeer and Stern 2018.

    >>> opt = scale_by_factored_rms()
    >>> opt.update(fnp.array([5.0]), opt.init(fnp.array([0.0])), fnp.array([0.0]))[0]
    Array([1.], f32[1])
    """
    def axes_of(p):
        return factored_axes(p.shape, factored, min_dim_size_to_factor)

    def init_leaf(p):
        none, axes = fnp.zeros((1,), size_dtype(p)), axes_of(p)
        if axes is None:
            return none, none, fnp.zeros_like(p, dtype=size_dtype(p))
        rows, columns = [fnp.zeros(p.shape[:a] + p.shape[a + 1:], size_dtype(p))
                         for a in reversed(axes)]
        return rows, columns, none

    def init(params):
        return FactoredState(start(), *apart(params, tree.map(init_leaf, params), 3))

    def update_leaf(g, row, column, v, p, decay):
        axes, q = axes_of(p), squared(widened(g)) + epsilon
        decay = fitting(decay, q)
        if axes is None:
            mean = decay * v + (1 - decay) * q
            return g / fnp.sqrt(mean), row, column, keep(v, mean)
        means = [decay * old + (1 - decay) * fnp.mean(q, axis=a)
                 for old, a in zip((row, column), reversed(axes))]
        return g * product_root(*means, axes), *map(keep, (row, column), means), v

    def update(updates, state, params=None):
        t = (counted(state) - step_offset + 1).astype("float32")
        decay = 1 - t ** -decay_rate
        found = tree.map(lambda *xs: update_leaf(*xs, decay), updates, state.v_row, state.v_col,
                         state.v, given(params, "scale_by_factored_rms", updates))
        out, *after = apart(updates, found, 4)
        return keep_all(updates, out), FactoredState(state.count + 1, *after)
    return GradientTransformation(init, update)


def product_root(row, column, axes):
    """1 / √v, v = rows' means · columns' means / the mean of all."""
    second, first = axes
    mean = fnp.mean(row, axis=second - (second > first), keepdims=True)
    return (fnp.expand_dims(1 / fnp.sqrt(row / mean), first)
            * fnp.expand_dims(1 / fnp.sqrt(column), second))


def apart(like, tuples, n):
    """A tree like `like` with tuples of n for leaves, as n trees."""
    structure = tree.structure(like)
    rows = tree.flatten_up_to(structure, tuples)
    return [tree.unflatten(structure, [row[k] for row in rows]) for k in range(n)]
