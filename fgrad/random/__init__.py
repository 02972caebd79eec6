"""Random numbers by explicit keys: a key and a shape decide them, on every device, in every batch.

    key = random.key(0)
    k1, k2 = random.split(key)
    x = random.normal(k1, (3,))

Streams are bit for bit those of `jax.random`; what is computed from them agrees to rounding.
"""

from .. import later as _later
from ..errors import bound as _bound
from .basic import (
    Generator, Key, PRNGKey, bernoulli, bits, categorical, choice, clone, exponential, fold_in,
    gumbel, key, key_data, laplace, normal, permutation, rademacher, randint, split,
    truncated_normal, uniform, wrap_key_data)
from .distributions import (
    cauchy, double_sided_maxwell, geometric, logistic, lognormal, maxwell, multivariate_normal,
    orthogonal, pareto, rayleigh, triangular, wald, weibull_min)
from .rejection import (
    ball, beta, binomial, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, multinomial,
    poisson, t)

__all__ = [name for name in dir() if not name.startswith("_") and name not in (
    "basic", "distributions", "rejection")]
__dir__ = __all__.copy     # dir() lists these and nothing else
__getattr__ = _later.names(__name__, {})[0]      # for what other libraries have here
_bound(globals(), __all__)
