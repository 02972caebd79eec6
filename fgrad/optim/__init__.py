"""Optimizers and gradient transformations: pairs of pure functions (init, update), as in optax.

Relies on `fgrad.numpy` and pytrees only; users rely on it.
"""

from .optimizers import adam, adamw, sgd
from .transformations import (GradientTransformation, add_decayed_weights, apply_updates, chain,
                              clip_by_global_norm, global_norm, identity, scale,
                              scale_by_adam, scale_by_learning_rate, trace)

__all__ = [
    "GradientTransformation", "adam", "adamw", "add_decayed_weights", "apply_updates", "chain",
    "clip_by_global_norm", "global_norm", "identity", "scale", "scale_by_adam",
    "scale_by_learning_rate", "sgd", "trace",
]
