"""NumPy's own functions on fgrad values: np.tanh(x), np.mean(x, axis=0), ndarray @ x.

NumPy asks values what to do (`__array_ufunc__`, `__array_function__` in `core`); the tables it is
answered from are filled here: every NumPy function that has a namesake in `fgrad.numpy`.  The rules
are those of fgrad, dtypes too; what has no namesake is refused by name, never done behind the
user's back.
"""

from __future__ import annotations

import types

import numpy as np

from ..core import FUNCTIONS, UFUNCS
from ..errors import boundary


def fill(namespace, names, numpy_module):
    """Lets functions of a NumPy module be answered by their namesakes.

    Only what the module has loaded is looked at: asking it for a name may load a whole submodule.
    """
    loaded = vars(numpy_module)
    for name in names:
        theirs, ours = loaded.get(name), namespace.get(name)
        if isinstance(theirs, np.ufunc):
            UFUNCS[theirs] = ours
        elif callable(theirs) and callable(ours) and not isinstance(theirs, type):
            FUNCTIONS[theirs] = ours


def bound(namespace, names=None):
    """Makes boundaries of functions in a namespace, by default of all public ones: what they raise
    shows the user's frames only.  Two names of one function stay one.
    """
    made = {}
    for name in names or [name for name in namespace if not name.startswith("_")]:
        function = namespace[name]
        if isinstance(function, types.FunctionType):
            if function not in made:
                made[function] = boundary(function)
                made[function].__module__ = namespace["__name__"]
            namespace[name] = made[function]
