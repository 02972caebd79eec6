"""check_grads: derivatives, forward and reverse, compared with finite differences.

Relies on transforms; users rely on it.
"""

from __future__ import annotations

import numpy as np

from . import arguments, tree
from .arguments import is_float
from .errors import GradientError
from .transforms import jvp, vjp
from .types import C128, F64, default_dtype

STEP = 6e-6                # of a central difference in f64: the cube root of its precision
TOLERANCE = 1e-5


def check_grads(f, args, order=2, modes=("fwd", "rev"), rtol=TOLERANCE, atol=TOLERANCE):
    """Nothing, if the derivatives of f at args are right; else GradientError, naming the element.

    args: a tuple of pytrees; their floats are converted to f64, in which everything is computed,
    complex numbers to c128.  "fwd" compares jvp, "rev" vjp with central differences along random
    directions.  order: up to which derivative.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> fgrad.check_grads(fnp.sin, (0.5,))
    """
    arguments.check_function(f, "check_grads")
    unknown = [m for m in modes if m not in ("fwd", "rev")]
    if unknown or order < 1:
        raise GradientError("check_grads compares orders from 1 on, in the modes 'fwd' and 'rev'.",
                            given=f"order={order!r}, modes={modes!r}")
    leaves, structure = tree.flatten(tuple(args))
    places = [k for k, x in enumerate(leaves) if is_float(x)]
    names = [arguments.leaf_names(f, args, {})[k] for k in places]
    point = [np.asarray(getattr(leaves[k], "np", leaves[k])) for k in places]
    point = [x.astype(C128 if x.dtype.kind == "c" else F64) for x in point]

    def of_floats(*xs):
        """The float results of f."""
        full = list(leaves)
        for k, x in zip(places, xs):
            full[k] = x
        out = tree.leaves(f(*tree.unflatten(structure, full)))
        return [x for x in out if is_float(x)]
    with default_dtype("float64"):
        check(of_floats, point, order, modes, Report(f, names, rtol, atol),
              np.random.default_rng(0), "")


class Report:
    """What is being checked, and how exactly."""

    def __init__(self, f, names, rtol, atol):
        self.f, self.names, self.rtol, self.atol = f, names, rtol, atol

    def near(self, a, b):
        return np.allclose(a, b, rtol=self.rtol, atol=self.atol, equal_nan=True)

    def differ(self, what, name, index, ours, other, title):
        """The error for one element."""
        at = f"{name}[{', '.join(map(str, index))}]" if index else name
        return GradientError(f"{what} of `{arguments.name_of(self.f)}` is wrong at {at}.",
                             given=f"{ours:.8g}", expected=f"{other:.8g}, by {title}",
                             fix="look at the derivative rules it uses, or at a kink")


def values(xs):
    return [np.asarray(x) for x in xs]


def drawn(rng, x):
    """Random numbers like x: of its shape, complex where it is."""
    t = rng.standard_normal(x.shape)
    return t + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else t


def directions(x):
    """(index, array like x that is one there), and i there where x is complex."""
    for index in np.ndindex(x.shape):
        for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            one = np.zeros_like(x)
            one[index] = unit
            yield index, one


def check(f, point, order, modes, report, rng, prefix):
    """Compares one order of derivative, then the next ones of the derivative itself."""
    ts = [drawn(rng, x) for x in point]
    if "fwd" in modes:
        check_forward(f, point, ts, report, prefix + "the derivative")
    if "rev" in modes:
        check_reverse(f, point, rng, report, prefix + "the gradient")
    if order == 1:
        return
    if "fwd" in modes:
        check(lambda *xs: jvp(f, xs, tuple(ts))[1], point, order - 1, modes, report, rng,
              prefix + "the jvp of ")
    if "rev" in modes:
        cts = [drawn(rng, x) for x in values(f(*point))]

        def pulled(*xs):
            return list(vjp(f, *xs)[1](cts))
        check(pulled, point, order - 1, modes, report, rng, prefix + "the vjp of ")


def check_forward(f, point, ts, report, what):
    """jvp against central differences."""
    ours = values(jvp(f, tuple(point), tuple(ts))[1])
    if all(report.near(a, b) for a, b in zip(ours, differences(f, point, ts))):
        return
    # along no direction in particular: which element is it?
    for k, x in enumerate(point):
        for index, one in directions(x):
            ts = [one if j == k else np.zeros_like(y) for j, y in enumerate(point)]
            for a, b in zip(values(jvp(f, tuple(point), tuple(ts))[1]),
                            differences(f, point, ts)):
                if not report.near(a, b):
                    worst = np.unravel_index(np.argmax(np.abs(a - b)), a.shape)
                    raise report.differ(what, report.names[k], index, a[worst], b[worst],
                                        "finite differences")


def differences(f, point, ts):
    """Central differences along ts."""
    up = values(f(*[x + STEP * t for x, t in zip(point, ts)]))
    down = values(f(*[x - STEP * t for x, t in zip(point, ts)]))
    return [(a - b) / (2 * STEP) for a, b in zip(up, down)]


def check_reverse(f, point, rng, report, what):
    """vjp against central differences, by ⟨ct, J t⟩ = ⟨Jᵀ ct, t⟩, where ⟨a, b⟩ is Re Σ a b."""
    out, pull = vjp(f, *point)
    cts = [drawn(rng, x) for x in values(out)]
    found = values(pull(cts))
    for k, x in enumerate(point):
        t = drawn(rng, x)
        if report.near(np.sum(found[k] * t).real, along(f, point, k, t, cts)):
            continue
        for index, one in directions(x):
            ours, other = np.sum(found[k] * one).real, along(f, point, k, one, cts)
            if not report.near(ours, other):
                raise report.differ(what, report.names[k], index, ours, other,
                                    "finite differences")


def along(f, point, k, t, cts):
    """⟨ct, derivative of f along t in argument k⟩, by central differences."""
    ts = [t if j == k else np.zeros_like(x) for j, x in enumerate(point)]
    return sum(np.sum(c * d).real for c, d in zip(cts, differences(f, point, ts)))
