"""How far two results may lie apart: by dtype, and by the number of terms that were added."""

import numpy as np

from fgrad.types import as_dtype

EPS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52,
       "complex64": 2**-21, "complex128": 2**-50}     # of complex ones: a few operations each


def tolerance(dtype, length=1):
    """Relative to the largest magnitude: 8 roundings, growing with the root of the length."""
    return 8 * EPS.get(as_dtype(dtype).name, 0) * max(length, 1) ** 0.5


def assert_close(got, want, length=1, slack=1, dtype=None):
    """Equal shapes, dtypes and integers; floats within tolerance, NaN and inf alike.  Of complex
    numbers the distance counts, not the parts, and where one is not finite, neither is the other.

    dtype: what the values were rounded to, where NumPy does not know it.
    """
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.kind == "c":
        finite = np.isfinite(want)
        np.testing.assert_array_equal(np.isfinite(got), finite)
        got, want = got[finite], want[finite]
    elif got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want)
        return
    finite = np.abs(want[np.isfinite(want)]).astype(float)
    bound = slack * tolerance(dtype or got.dtype, length)
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound * max(1.0, finite.max(initial=0)))
