"""NumPy's own functions on fgrad values: np.tanh(x), np.mean(x, axis=0), ndarray @ x.

NumPy asks values what to do (`__array_ufunc__`, `__array_function__` in `core`); they answer with
the namesake here: the function of that name in `fgrad.numpy`.  The rules are those of fgrad, dtypes
too; what has no namesake is refused by name, never done behind the user's back.
"""

from __future__ import annotations

import functools
import sys

from ..core import ATTACHED
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
