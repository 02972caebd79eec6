"""A training loop for those who want one: epochs, progress, early stopping, checkpoints, curves.

Nothing else in fgrad relies on it; a loop of one's own over `data.batches` does as well.
"""

from ..errors import at_home, bound
from .curves import save_curves
from .evaluate import correct, evaluate, evaluator
from .fit import Trained, fit

__all__ = ["Trained", "correct", "evaluate", "evaluator", "fit", "save_curves"]
__dir__ = __all__.copy     # dir() lists these and nothing else
bound(globals(), __all__, at_home)
