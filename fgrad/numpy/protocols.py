"""NumPy's own functions on fgrad values: np.tanh(x), np.mean(x, axis=0), ndarray @ x.

NumPy asks values what to do (`__array_ufunc__`, `__array_function__` in `core`); they answer with
the namesake here: the function of that name in `fgrad.numpy`.  The rules are those of fgrad, dtypes
too; what has no namesake is refused by name, never done behind the user's back.
"""

from __future__ import annotations

import functools
import sys
import types

from ..core import ATTACHED
from ..errors import boundary
from ..later import lazily

NAMESAKES = {              # module of NumPy → () → ours
    "numpy": lazily("fgrad.numpy"),
    "numpy.linalg": lazily("fgrad.numpy.linalg"),
    "numpy.fft": lazily("fgrad.numpy.fft"),
}


@functools.cache
def namesake(theirs):
    """The function of fgrad that answers for a function of NumPy, or None."""
    name = theirs.__name__
    for module, ours in NAMESAKES.items():
        if getattr(sys.modules.get(module), name, None) is theirs:
            return getattr(ours(), name, None)
    return None


ATTACHED["namesake"] = namesake


@functools.cache
def public(value, module=__package__):
    """What a user is given: a function as a boundary of that module, so that what it raises shows
    the user's frames only; anything else as it is.  Two names of one function stay one.
    """
    if not isinstance(value, types.FunctionType):
        return value
    made = boundary(value)
    made.__module__ = module
    return made


def bound(namespace, names=None):
    """Makes the functions of a module public, by default all whose names do not begin with _."""
    for name in names or [name for name in namespace if not name.startswith("_")]:
        if isinstance(namespace[name], types.FunctionType):
            namespace[name] = public(namespace[name], namespace["__name__"])
