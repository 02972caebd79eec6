"""Initialisers: `initialiser(key, shape, dtype) → array` for the weights of layers.

Names, arguments and numbers are those of jax.nn.initializers.  Fan-in is the number of inputs of a
weight, fan-out of its outputs: of a shape (…window, in, out) the window counts in both.  A dtype
given to the maker is the default of the initialiser; else that is the default float.
Sources: Glorot and Bengio 2010, He et al. 2015, LeCun et al. 1998.
"""

from __future__ import annotations

import math
import sys

from .. import numpy as fnp
from .. import random
from ..errors import ArgumentError, bound
from ..types import as_dtype, default_float

__all__ = ["constant", "delta_orthogonal", "fans", "glorot_normal", "glorot_uniform", "he_normal",
           "he_uniform", "identity", "kaiming_normal", "kaiming_uniform", "lecun_normal",
           "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform",
           "variance_scaling", "xavier_normal", "xavier_uniform", "zeros"]
__dir__ = __all__.copy     # dir() lists these and nothing else

WITHIN_TWO = 0.87962566103423978     # deviation of a normal number that lies within two deviations


def fans(shape, in_axis=-2, out_axis=-1, batch_axis=()):
    """(fan-in, fan-out) of a weight of this shape; an axis may be several; those of a batch of
    weights do not count.  Raises ArgumentError for fewer axes than two.

    >>> fans((3, 3, 4, 8))
    (36, 72)
    """
    if len(shape) < 2:
        raise ArgumentError(
            f"a weight needs at least two axes (…, in, out), not the shape {shape}.")
    inputs, outputs, batch = [math.prod(shape[k] for k in (axes if isinstance(axes, (tuple, list))
                                                           else (axes,)))
                              for axes in (in_axis, out_axis, batch_axis)]
    window = math.prod(shape) // max(1, inputs * outputs * batch)
    return inputs * window, outputs * window


# ---------------------------------------------------------------------------- plain

def zeros(key, shape, dtype=None):
    """All zeros; the key is not used.

    >>> zeros(None, (2,)).tolist()
    [0.0, 0.0]
    """
    return fnp.zeros(shape, dtype)


def ones(key, shape, dtype=None):
    """All ones; the key is not used.

    >>> ones(None, (2,)).tolist()
    [1.0, 1.0]
    """
    return fnp.ones(shape, dtype)


def constant(value, dtype=None):
    """All equal to `value`, a number or an array of the weight's shape.

    >>> constant(2.0)(None, (2,)).tolist()
    [2.0, 2.0]
    """
    def initialise(key, shape, dtype=dtype):
        return fnp.full(shape, value, dtype or default_float())
    return initialise


def normal(stddev=0.01, dtype=None):
    """Normal numbers with this standard deviation.

    >>> from fgrad import random
    >>> normal(0.02)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    def initialise(key, shape, dtype=dtype):
        return random.normal(key, shape, dtype) * stddev
    return initialise


def uniform(scale=0.01, dtype=None):
    """Uniform numbers in [0, scale).

    >>> from fgrad import random
    >>> uniform(0.02)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    def initialise(key, shape, dtype=dtype):
        return random.uniform(key, shape, dtype) * scale
    return initialise


def truncated_normal(stddev=0.01, dtype=None, lower=-2.0, upper=2.0):
    """Normal numbers between `lower` and `upper` deviations; `stddev` is that before the cut.

    >>> from fgrad import random
    >>> truncated_normal(0.02)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    def initialise(key, shape, dtype=dtype):
        return random.truncated_normal(key, lower, upper, shape, dtype) * stddev
    return initialise


# ---------------------------------------------------------------------------- by variance

MODES = {"fan_in": lambda i, o: i, "fan_out": lambda i, o: o, "fan_avg": lambda i, o: (i + o) / 2,
         "fan_geo_avg": lambda i, o: math.sqrt(i * o)}
DISTRIBUTIONS = {
    "uniform": lambda key, shape, dtype: random.uniform(key, shape, dtype, -1.0) * math.sqrt(3),
    "normal": random.normal,
    "truncated_normal": lambda key, shape, dtype:
        random.truncated_normal(key, -2.0, 2.0, shape, dtype) / WITHIN_TWO,
}


def variance_scaling(scale, mode, distribution, in_axis=-2, out_axis=-1, batch_axis=(),
                     dtype=None):
    """Numbers whose variance is scale / fan.

    mode: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg", the mean or the geometric mean of both.
    distribution: "uniform", "normal", or "truncated_normal": within two deviations, widened so that
    the variance is what was asked for.  Raises ArgumentError for another word.

    >>> from fgrad import random
    >>> variance_scaling(1.0, "fan_in", "truncated_normal")(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if mode not in MODES or distribution not in DISTRIBUTIONS:
        raise ArgumentError("an initialiser by variance needs a mode and a distribution.",
                            given=f"mode={mode!r}, distribution={distribution!r}",
                            expected=f"one of {', '.join(MODES)}; one of "
                                     f"{', '.join(DISTRIBUTIONS)}")

    def initialise(key, shape, dtype=dtype):
        fan = MODES[mode](*fans(shape, in_axis, out_axis, batch_axis))
        return DISTRIBUTIONS[distribution](key, shape, dtype) * math.sqrt(scale / max(1, fan))
    return initialise


def family(name, scale, mode, distribution, text):
    """The function called `name` that makes initialisers of this variance."""
    def make(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None):
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = text
    return make


#                       name              scale  mode       distribution
glorot_uniform = family("glorot_uniform", 1.0, "fan_avg", "uniform",
    "Uniform, variance 2 / (fan-in + fan-out): for tanh and sigmoid (Glorot and Bengio 2010).")
glorot_normal  = family("glorot_normal",  1.0, "fan_avg", "truncated_normal",
    "Normal within two deviations, variance 2 / (fan-in + fan-out) (Glorot and Bengio 2010).")
he_uniform     = family("he_uniform",     2.0, "fan_in",  "uniform",
    "Uniform, variance 2 / fan-in: for relu layers (He et al. 2015).")
he_normal      = family("he_normal",      2.0, "fan_in",  "truncated_normal",
    "Normal within two deviations, variance 2 / fan-in: for relu layers (He et al. 2015).")
lecun_uniform  = family("lecun_uniform",  1.0, "fan_in",  "uniform",
    "Uniform, variance 1 / fan-in (LeCun et al. 1998).")
lecun_normal   = family("lecun_normal",   1.0, "fan_in",  "truncated_normal",
    "Normal within two deviations, variance 1 / fan-in (LeCun et al. 1998).")

kaiming_uniform, kaiming_normal = he_uniform, he_normal
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal


# ---------------------------------------------------------------------------- by structure

def orthogonal(scale=1.0, column_axis=-1, dtype=None):
    """A weight whose columns, or rows if those are fewer, are orthogonal and of length `scale`.

    `column_axis` gives the columns, all other axes together the rows (Saxe et al. 2014).
    Raises ArgumentError for fewer axes than two.

    >>> from fgrad import random
    >>> w = orthogonal()(random.key(0), (4, 2))
    >>> bool(fnp.allclose(w.T @ w, fnp.eye(2), atol=1e-5))
    True
    """
    def initialise(key, shape, dtype=dtype):
        fans(shape)
        dtype = default_float() if dtype is None else as_dtype(dtype)
        columns = shape[column_axis]
        others = [n for k, n in enumerate(shape) if k != column_axis % len(shape)]
        if 0 in shape:
            return fnp.zeros(shape, dtype)
        wide = dtype if dtype.itemsize > 2 else "float32"      # no factorisation in 16 bits
        q = random.orthogonal(key, math.prod(others), (), wide, columns)
        w = fnp.moveaxis(fnp.reshape(q, (*others, columns)), -1, column_axis)
        return (w * scale).astype(dtype)
    return initialise


def delta_orthogonal(scale=1.0, column_axis=-1, dtype=None):
    """A convolution's weight that is orthogonal at the middle of the window and zero elsewhere.

    Source: Xiao et al. 2018.  Raises ArgumentError where there are more inputs than outputs.

    >>> from fgrad import random
    >>> delta_orthogonal()(random.key(0), (3, 2, 2))[0].tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    def initialise(key, shape, dtype=dtype):
        inputs, outputs = shape[-2:]
        if inputs > outputs:
            raise ArgumentError(f"delta_orthogonal needs as many outputs as the {inputs} inputs, "
                                f"not {outputs}.", given=f"shape={shape}")
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        w = orthogonal(scale, column_axis)(key, shape[-2:], dtype)
        return fnp.zeros(shape, dtype).at[middle].set(w)
    return initialise


def identity(scale=1.0, dtype=None):
    """`scale` where input and output have one number, else 0; of a window only the middle.

    >>> identity()(None, (2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    def initialise(key, shape, dtype=dtype):
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        return fnp.zeros(shape, dtype).at[middle].set(scale * fnp.eye(*shape[-2:], dtype=dtype))
    return initialise


initializers = sys.modules[__name__]             # its other name, in fgrad.nn


bound(globals())
