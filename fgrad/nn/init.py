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


def zeros(key, shape, dtype="float32"):
    """All zeros; the key is not used."""
    return fnp.zeros(shape, dtype)


def ones(key, shape, dtype="float32"):
    """All ones; the key is not used."""
    return fnp.ones(shape, dtype)


def normal(deviation=0.01):
    """Normal numbers with this standard deviation.

    >>> from fgrad import random
    >>> normal(0.02)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    def initialise(key, shape, dtype="float32"):
        return random.normal(key, shape, dtype) * deviation
    return initialise


def variance(scale, fan, distribution):
    """Numbers whose variance is scale / fan; fan is "in", "out" or "average"."""
    def initialise(key, shape, dtype="float32"):
        inputs, outputs = fans(shape)
        n = {"in": inputs, "out": outputs, "average": (inputs + outputs) / 2}[fan]
        if distribution == "uniform":
            limit = math.sqrt(3 * scale / max(1, n))
            return random.uniform(key, shape, dtype, -limit, limit)
        return random.normal(key, shape, dtype) * math.sqrt(scale / max(1, n))
    return initialise


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
