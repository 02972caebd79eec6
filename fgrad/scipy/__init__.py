"""SciPy's names for fgrad, as far as examples of the field use them: special, stats, linalg."""

from . import linalg, special, stats
