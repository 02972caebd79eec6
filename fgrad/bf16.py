"""bfloat16: the upper half of an f32, which NumPy does not have.

`BF16` stands beside NumPy's dtypes in `types.py` and answers what they answer (`kind`, `itemsize`,
`name`, `type`).  An array of it is 16-bit words in memory, here `words_of` and `values_of` go there
and back; nothing computes in it.  Relies on NumPy only.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

WORD = np.dtype("uint16")


class BFloat16:
    """The dtype: 1 bit of sign, 8 of exponent, 7 of fraction.  There is one, BF16.

    It equals its names, and the dtype that other packages call bfloat16.
    """
    kind, itemsize, name, char, byteorder = "f", 2, "bfloat16", "E", "="

    def __eq__(self, other):
        if isinstance(other, np.dtype):          # its `name` takes 2 µs
            return other.itemsize == 2 and other.kind == "V" and other.name == "bfloat16"
        if isinstance(other, str):
            return other in ("bfloat16", "bf16")
        return other is self or NotImplemented

    def __hash__(self):
        return hash("bfloat16")

    def __repr__(self):
        return "dtype(bfloat16)"

    def __str__(self):
        return "bfloat16"

    def __reduce__(self):
        return "BF16"

    def type(self, x=0.0):
        """The number rounded, as the f32 that it equals."""
        return np.float32(rounded(np.float32(x)))

    def newbyteorder(self, order="="):
        """The dtype itself: words are always native."""
        return self


BF16 = bfloat16 = BFloat16()

# As np.finfo has it; its numbers are those of f32 with 7 bits of fraction.
LIMITS = SimpleNamespace(
    dtype=BF16, bits=16, nexp=8, nmant=7, precision=2, iexp=8, machep=-7, negep=-8,
    eps=np.float32(2.0 ** -7), epsneg=np.float32(2.0 ** -8),
    max=np.float32((2 - 2.0 ** -7) * 2.0 ** 127), min=np.float32(-(2 - 2.0 ** -7) * 2.0 ** 127),
    tiny=np.float32(2.0 ** -126), smallest_normal=np.float32(2.0 ** -126),
    smallest_subnormal=np.float32(2.0 ** -133), resolution=np.float32(0.01),
    minexp=-126, maxexp=128)


def words_of(x):
    """The words nearest to numbers, ties to even; NaN stays NaN.   n[*s] → u16[*s]

    >>> words_of([1.0, 1.00390625, 1.01171875]).tolist()
    [16256, 16256, 16258]
    """
    x = np.asarray(x)
    if x.dtype != np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            x = x.astype(np.float32)
    flat = np.ascontiguousarray(x).reshape(-1)
    bits = flat.view(np.uint32)
    out = ((bits + ((bits >> 16 & 1) + 0x7FFF)) >> 16).astype(WORD)
    nan = np.isnan(flat)
    if nan.any():                                # rounding may have carried into the sign
        out[nan] = bits[nan] >> 16 | 0x40
    return out.reshape(x.shape)


def values_of(words):
    """The numbers that words stand for, exactly.   u16[*s] → f32[*s]"""
    return np.left_shift(words, 16, dtype=np.uint32).view(np.float32)


def foreign_words(x):
    """The words of another package's array of bfloat16, of ml_dtypes, jax or torch; else None."""
    name = str(getattr(x, "dtype", ""))
    if name == "torch.bfloat16":
        return words_of(x.detach().float().cpu().numpy())
    return np.asarray(x).view(WORD) if name == "bfloat16" else None


def rounded(x):
    """Numbers of f32 rounded to bf16.   f32[*s] → f32[*s]"""
    return values_of(words_of(x))
