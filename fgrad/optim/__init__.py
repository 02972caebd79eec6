"""Optimizers and gradient transformations: pairs of pure functions, optax's convention.

    optimizer = optim.adamw(optim.cosine_decay_schedule(1e-3, 10_000))
    state = optimizer.init(params)
    updates, state = optimizer.update(grads, state, params)
    params = optim.apply_updates(params, updates)

For functions without noise there are `minimize_lbfgs` and `minimize_newton_cg`.
"""

from .. import later as _later
from ..errors import at_home as _at_home, bound as _bound
from .base import (
    EmptyState, GradientTransformation, GradientTransformationExtraArgs, ScheduleState,
    apply_updates, global_norm, stateless, with_extra_args_support)
from .clipping import (
    adaptive_grad_clip, clip, clip_by_block_norm, clip_by_block_rms, clip_by_global_norm)
from .combine import chain, multi_transform, partition
from .full_batch import MinimizeResult, minimize_lbfgs, minimize_newton_cg
from .masking import MaskedNode, MaskedState, freeze, masked
from .moments import (
    ScaleByAdamState, scale_by_adam, scale_by_adamax, scale_by_adan, scale_by_amsgrad,
    scale_by_belief, scale_by_lion, scale_by_novograd, scale_by_radam, scale_by_yogi)
from .optimizers import (
    adabelief, adadelta, adafactor, adagrad, adam, adamax, adamaxw, adamw, adan, amsgrad, lamb,
    lars, lion, muon, nadam, nadamw, noisy_sgd, novograd, radam, rmsprop, sgd, sign_sgd, signum,
    sm3, yogi)
from .orthogonal import orthogonalize, scale_by_muon, scale_by_shape
from .plateau import reduce_on_plateau
from .schedules import (
    constant_schedule, cosine_decay_schedule, cosine_onecycle_schedule, exponential_decay,
    join_schedules, linear_onecycle_schedule, linear_schedule, piecewise_constant_schedule,
    piecewise_interpolate_schedule, polynomial_schedule, sgdr_schedule, warmup_constant_schedule,
    warmup_cosine_decay_schedule, warmup_exponential_decay_schedule)
from .squares import (
    scale_by_adadelta, scale_by_factored_rms, scale_by_rms, scale_by_rss, scale_by_sm3,
    scale_by_stddev)
from .transformations import (
    add_decayed_weights, add_noise, centralize, ema, identity, normalize_by_update_norm, params_ema,
    scale, scale_by_learning_rate, scale_by_param_block_norm, scale_by_param_block_rms,
    scale_by_schedule, scale_by_sign, scale_by_trust_ratio, set_to_zero, trace)
from .wrappers import (
    LookaheadParams, MultiSteps, apply_if_finite, inject_hyperparams, lookahead, unfreeze_at)

__all__ = [name for name in dir() if not name.startswith("_") and name not in (
    "base", "clipping", "combine", "full_batch", "masking", "moments", "optimizers", "orthogonal",
    "plateau", "schedules", "squares", "transformations", "wrappers")]
__dir__ = __all__.copy     # dir() lists these and nothing else
__getattr__ = _later.names(__name__, {})[0]          # other libraries' names are answered
_bound(globals(), __all__, _at_home)
