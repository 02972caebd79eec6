"""A pytree of arrays as one vector, and back."""

from __future__ import annotations

import math

from . import numpy as fnp
from . import tree
from .core import as_value
from .errors import ShapeError, bound
from .numpy.promotion import cast
from .numpy.axes import text_of


def ravel_pytree(pytree):
    """(vector of all elements, unravel): unravel(vector) is the tree again, with its dtypes.

    The vector has the dtype that the leaves make together.  unravel raises ShapeError for a vector
    of another size.

    >>> vector, unravel = ravel_pytree({"a": [1.0, 2.0], "b": 3})
    >>> vector.tolist()
    [1.0, 2.0, 3.0]
    >>> tree.map(float, unravel(vector * 2))
    {'a': [2.0, 4.0], 'b': 6.0}
    """
    leaves, structure = tree.flatten(pytree)
    leaves = [as_value(x) for x in leaves]
    types = [x.type for x in leaves]
    parts = [fnp.ravel(x) for x in leaves]
    vector = fnp.concatenate(parts) if parts else fnp.zeros((0,))

    def unravel(vector):
        """The tree whose elements the vector holds."""
        vector = as_value(vector)
        if vector.shape != (sum(t.size for t in types),):
            raise ShapeError("unravel needs a vector with all elements of the tree.",
                             given=f"shape {text_of(vector.shape)}",
                             expected=f"shape ({sum(t.size for t in types)},)")
        out, start = [], 0
        for t in types:
            stop = start + math.prod(t.shape)
            out.append(cast(fnp.reshape(vector[start:stop], t.shape), t.dtype))
            start = stop
        return tree.unflatten(structure, out)
    return vector, unravel


bound(globals())
