"""What is said where NumPy is called with values of fgrad and there is no function of that name.

Loaded with the first such call.  Relies on `errors`; `core` relies on it.
"""

from __future__ import annotations

from .errors import NumpyError

# what ufuncs do along an axis → what does the same
REDUCTIONS = {"add.reduce": "sum", "multiply.reduce": "prod", "maximum.reduce": "max",
              "minimum.reduce": "min", "logical_and.reduce": "all", "logical_or.reduce": "any",
              "add.accumulate": "cumsum", "multiply.accumulate": "cumprod"}


def refusal(name, traced, out=None, options=(), has_namesake=False):
    """The error for a NumPy call that has no counterpart here; `options` are those it was given.

    traced: those of its arguments that are being traced.
    """
    if out is not None:
        return NumpyError(f"np.{name} cannot write a value of fgrad into an array of NumPy.",
                          fix=["write A = A + x instead of A += x",
                               f"use what np.{name} returns instead of out="])
    if has_namesake:
        given = ", ".join(f"{option}=" for option in options)
        return NumpyError(f"np.{name} of values of fgrad takes no {given}.",
                          given=f"np.{name}(…, {given}…)",
                          fix=[f"fgrad.numpy.{name}(x).astype(dtype)" if "dtype" in options else
                               f"fgrad.numpy.{name}(x), and choose elements with where(mask, a, b)"
                               ])
    sentence = f"np.{name} is not one of the NumPy functions that work on values of fgrad."
    if name in REDUCTIONS:
        return NumpyError(sentence, fix=f"fgrad.numpy.{REDUCTIONS[name]}(x, axis=0)")
    none = "" if "." in name else ", which has none of that name"
    return NumpyError(sentence, fix=[f"write it with functions of fgrad.numpy{none}",
                                     outside(name, traced)])


def outside(name, traced):
    """How to call a function of NumPy outside of fgrad."""
    if any(a.known() is None for a in traced):
        return (f"fgrad.pure_callback(np.{name}, result_type, x) calls it when the compiled "
                "function runs")
    inner = "fgrad.stop_gradient(x)" if traced else "x"
    return f"np.{name}(np.asarray({inner})) computes outside of fgrad, without a derivative"
