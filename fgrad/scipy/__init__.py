"""SciPy's names for fgrad, as far as examples use them: linalg, ndimage, signal, special,
stats.
"""

from .. import later as _later

__getattr__, __dir__ = _later.names(
    __name__, {"linalg": "", "ndimage": "", "signal": "", "special": "", "stats": ""})
