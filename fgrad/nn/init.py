"""Initialisers: `initialiser(key, shape, dtype) → array` for the weights of layers.

Fan-in is the number of inputs of a weight, fan-out of its outputs: for a shape (…window, in, out)
the window counts in both.  Sources: Glorot and Bengio 2010, He et al. 2015, LeCun et al. 1998.
"""

from __future__ import annotations

import math

from .. import numpy as fnp
from .. import random
from ..errors import ArgumentError


def fans(shape):
    """(fan-in, fan-out) of a weight of this shape."""
    if len(shape) < 2:
        raise ArgumentError(
            f"a weight needs at least two axes (…, in, out), not the shape {shape}.")
    window = math.prod(shape[:-2])
    return window * shape[-2], window * shape[-1]


def zeros(key, shape, dtype=None):
    """All zeros; the key is not used."""
    return fnp.zeros(shape, dtype)


def ones(key, shape, dtype=None):
    """All ones; the key is not used."""
    return fnp.ones(shape, dtype)


def constant(value):
    """All equal to `value`, a number or an array of the weight's shape.

    >>> constant(2.0)(None, (2,)).tolist()
    [2.0, 2.0]
    """
    def initialise(key, shape, dtype=None):
        return fnp.broadcast_to(fnp.asarray(value, dtype), shape)
    return initialise


def normal(deviation=0.01):
    """Normal numbers with this standard deviation.

    >>> from fgrad import random
    >>> normal(0.02)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    def initialise(key, shape, dtype=None):
        return random.normal(key, shape, dtype) * deviation
    return initialise


def uniform(scale=0.01):
    """Uniform numbers in [0, scale), as JAX's initialiser of that name."""
    def initialise(key, shape, dtype=None):
        return random.uniform(key, shape, dtype) * scale
    return initialise


def truncated_normal(deviation=0.01, lower=-2.0, upper=2.0):
    """Normal numbers between `lower` and `upper` deviations; `deviation` is that before the cut."""
    def initialise(key, shape, dtype=None):
        return random.truncated_normal(key, lower, upper, shape, dtype) * deviation
    return initialise


def variance(scale, fan, distribution):
    """Numbers whose variance is scale / fan; fan is "in", "out" or "average".

    distribution: "uniform", "normal", or "truncated": normal within two deviations, widened so that
    the variance is what was asked for.  Raises ArgumentError for another word.
    """
    if fan not in FANS or distribution not in DISTRIBUTIONS:
        raise ArgumentError("an initialiser by variance needs a fan and a distribution.",
                            given=f"fan={fan!r}, distribution={distribution!r}",
                            expected=f"one of {', '.join(FANS)}; one of {', '.join(DISTRIBUTIONS)}")

    def initialise(key, shape, dtype=None):
        deviation = math.sqrt(scale / max(1, FANS[fan](*fans(shape))))
        return DISTRIBUTIONS[distribution](key, shape, dtype, deviation)
    return initialise


def uniform_numbers(key, shape, dtype, deviation):
    limit = math.sqrt(3) * deviation
    return random.uniform(key, shape, dtype, -limit, limit)


def normal_numbers(key, shape, dtype, deviation):
    return random.normal(key, shape, dtype) * deviation


def truncated_numbers(key, shape, dtype, deviation):
    return random.truncated_normal(key, -2.0, 2.0, shape, dtype) * (deviation / WITHIN_TWO)


WITHIN_TWO = 0.87962566103423978     # deviation of a normal number that lies within two deviations
FANS = {"in": lambda i, o: i, "out": lambda i, o: o, "average": lambda i, o: (i + o) / 2}
DISTRIBUTIONS = {"uniform": uniform_numbers, "normal": normal_numbers,
                 "truncated": truncated_numbers}
MODES = {"fan_in": "in", "fan_out": "out", "fan_avg": "average"}


def variance_scaling(scale, mode, distribution):
    """`variance` with JAX's words: fan_in, fan_out, fan_avg; truncated_normal, normal, uniform.

    >>> from fgrad import random
    >>> variance_scaling(1.0, "fan_in", "truncated_normal")(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return variance(scale, MODES.get(mode, mode), distribution.replace("truncated_normal",
                                                                       "truncated"))


def glorot_uniform():
    """Uniform, variance 2 / (fan-in + fan-out): for tanh and sigmoid (Glorot and Bengio 2010)."""
    return variance(1.0, "average", "uniform")


def glorot_normal():
    """Normal, variance 2 / (fan-in + fan-out) (Glorot and Bengio 2010)."""
    return variance(1.0, "average", "normal")


def he_uniform():
    """Uniform, variance 2 / fan-in: for relu layers (He et al. 2015)."""
    return variance(2.0, "in", "uniform")


def he_normal():
    """Normal, variance 2 / fan-in: for relu layers (He et al. 2015)."""
    return variance(2.0, "in", "normal")


def lecun_uniform():
    """Uniform, variance 1 / fan-in (LeCun et al. 1998)."""
    return variance(1.0, "in", "uniform")


def lecun_normal():
    """Normal, variance 1 / fan-in (LeCun et al. 1998)."""
    return variance(1.0, "in", "normal")


kaiming_uniform, kaiming_normal = he_uniform, he_normal
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal


def orthogonal(scale=1.0):
    """A weight whose rows, or columns if those are fewer, are orthogonal and of length `scale`.

    The window and inputs together are rows, outputs are columns (Saxe et al. 2014).

    >>> from fgrad import random
    >>> w = orthogonal()(random.key(0), (4, 2))
    >>> bool(fnp.allclose(w.T @ w, fnp.eye(2), atol=1e-5))
    True
    """
    def initialise(key, shape, dtype=None):
        rows, columns = math.prod(shape[:-1]), shape[-1]
        fans(shape)
        q, r = fnp.linalg.qr(random.normal(key, (max(rows, columns), min(rows, columns))))
        q = q * fnp.sign(fnp.diagonal(r))
        return fnp.reshape(scale * (q if rows >= columns else q.T), shape).astype(dtype)
    return initialise


def delta_orthogonal(scale=1.0):
    """A convolution's weight that is orthogonal at the middle of the window and zero elsewhere.

    Source: Xiao et al. 2018.  Raises ArgumentError where there are more inputs than outputs.
    """
    def initialise(key, shape, dtype=None):
        inputs, outputs = shape[-2:]
        if inputs > outputs:
            raise ArgumentError(f"delta_orthogonal needs as many outputs as the {inputs} inputs, "
                                f"not {outputs}.", given=f"shape={shape}")
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        q = orthogonal(scale)(key, (outputs, inputs), dtype)
        return fnp.zeros(shape, dtype).at[middle].set(q.T)
    return initialise


def identity(scale=1.0):
    """`scale` where input and output have one number, else 0; of a window only the middle."""
    def initialise(key, shape, dtype=None):
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        return fnp.zeros(shape, dtype).at[middle].set(scale * fnp.eye(*shape[-2:], dtype=dtype))
    return initialise
