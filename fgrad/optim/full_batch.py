"""Minimisers for functions without noise: L-BFGS and Newton-CG, as pure functions that trace.

    found = optim.minimize_lbfgs(loss, params)
    found.params, found.value, found.converged

Both walk along a direction, with a line search for the weak Wolfe conditions; they differ in the
direction only.  Parameters are one vector inside.  All loops are `fgrad.lax.while_loop`s and scans:
they run as they are, and inside jit, vmap and forward derivatives.  Relies on `transforms.py` and
`control/`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .. import numpy as fnp
from .. import tree
from ..arguments import check_function, name_of, named
from ..control import scan, while_loop
from ..errors import ArgumentError, RangeError
from ..transforms import grad, jvp, value_and_grad

DECREASE, CURVATURE = 1e-4, 0.9        # Nocedal and Wright 2006, section 3.1


class MinimizeResult(NamedTuple):
    """Where a minimiser ended.

    params: like those given; value f[]; gradient like params; steps, evaluations i32[]: of value
    and gradient together; converged bool[]: is no element of the gradient larger than tolerance?
    """
    params: object
    value: object
    gradient: object
    steps: object
    evaluations: object
    converged: object


# ---------------------------------------------------------------------------- trees as vectors

def vector_of(params):
    """(vector f[n] of all leaves, the function from vectors back to trees like params)."""
    leaves, structure = tree.flatten(tree.map(fnp.asarray, params))
    if not leaves or any(x.dtype.kind != "f" for x in leaves):
        raise ArgumentError("a minimiser needs parameters that are floats.",
                            given=", ".join(str(x.dtype) for x in leaves) or "no arrays")
    dtype = fnp.result_type(*leaves)

    def back(vector):
        out, begin = [], 0
        for x in leaves:
            out.append(vector[begin:begin + x.size].reshape(x.shape).astype(x.dtype))
            begin += x.size
        return tree.unflatten(structure, out)
    return fnp.concatenate([x.reshape(-1).astype(dtype) for x in leaves]), back


# ---------------------------------------------------------------------------- the line search

class Search(NamedTuple):
    """A line search: bracket, next step, the best step with its value and gradient, a count."""
    low: object
    high: object
    step: object
    best: object
    value: object
    gradient: object
    tried: object
    done: object


def line_search(both, x, value, gradient, direction, most):
    """The Search ended; `best` is a step that decreases the function enough, 0 if none was found.

    both(x) → (value, gradient).  Steps are doubled until a bracket is found, and then halved into
    it, until the weak Wolfe conditions hold: value below the line of slope DECREASE, slope at least
    CURVATURE times the first (Lewis and Overton 2013).  Where values differ by rounding only, the
    slope stands for the first condition (Hager and Zhang 2005).
    """
    slope = fnp.sum(gradient * direction)
    rounding = 2 * float(fnp.finfo(x.dtype).eps)

    def trial(s):
        f, g = both(x + s.step * direction)
        now = fnp.sum(g * direction)
        below = f <= value + DECREASE * s.step * slope
        level = (f <= value + rounding * abs(value)) & (now <= (2 * DECREASE - 1) * slope)
        enough = below | level
        steep = now < CURVATURE * slope
        low, high = fnp.where(enough & steep, s.step, s.low), fnp.where(enough, s.high, s.step)
        following = fnp.where(fnp.isinf(high), 2 * s.step, (low + high) / 2)
        return Search(low, high, following, fnp.where(enough, s.step, s.best),
                      fnp.where(enough, f, s.value), fnp.where(enough, g, s.gradient),
                      s.tried + 1, enough & ~steep)

    nought = fnp.zeros_like(value)
    first = Search(nought, nought + fnp.inf, nought + 1, nought, value, gradient,
                   fnp.zeros((), "int32"), fnp.zeros((), "bool"))
    return while_loop(lambda s: ~s.done & (s.tried < most), trial, first)


# ---------------------------------------------------------------------------- the walk

class Walk(NamedTuple):
    """A minimiser on its way: point, value, gradient, what it remembers, counts, is it stuck?"""
    x: object
    value: object
    gradient: object
    memory: object
    steps: object
    evaluations: object
    stuck: object


def walk(fun, params, memory_of, direction_of, remember, tolerance, max_steps, max_tries):
    """The MinimizeResult.

    memory_of(x) → the first memory;  direction_of(function of x, x, gradient, memory) → direction;
    remember(memory, change of x, change of the gradient) → memory.
    """
    if max_steps < 0 or max_tries < 1 or not tolerance >= 0:
        raise RangeError("a minimiser needs a tolerance of 0 or more, and steps.", given=(
            f"tolerance={tolerance}, max_steps={max_steps}, max_linesearch_steps={max_tries}"))
    check_function(fun, "a minimiser", "fun")
    x, back = vector_of(params)

    def of_vector(v):
        return fun(back(v))

    named(of_vector, name_of(fun))               # errors speak of what the user knows
    both = value_and_grad(of_vector)

    def going(w):
        return ~w.stuck & (w.steps < max_steps) & ~(fnp.max(abs(w.gradient)) <= tolerance)

    def step(w):
        d = direction_of(of_vector, w.x, w.gradient, w.memory)
        d = fnp.where(fnp.sum(d * w.gradient) < 0, d, -w.gradient)
        s = line_search(both, w.x, w.value, w.gradient, d, max_tries)
        memory = remember(w.memory, s.best * d, s.gradient - w.gradient)
        return Walk(w.x + s.best * d, s.value, s.gradient, memory, w.steps + 1,
                    w.evaluations + s.tried, s.best == 0)

    value, gradient = both(x)
    zero = fnp.zeros((), "int32")
    first = Walk(x, value, gradient, memory_of(x), zero, zero + 1, fnp.zeros((), "bool"))
    end = while_loop(going, step, first)
    return MinimizeResult(back(end.x), end.value, back(end.gradient), end.steps, end.evaluations,
                          fnp.max(abs(end.gradient)) <= tolerance)


# ---------------------------------------------------------------------------- L-BFGS

class Pairs(NamedTuple):
    """The last m changes of x and of its gradient f[m,n], oldest first, and 1 / (s · y): f[m]."""
    s: object
    y: object
    rho: object


def two_loops(gradient, pairs):
    """The gradient times the inverse Hessian that the pairs make: f[n].

    Nocedal and Wright 2006, algorithm 7.4; rows of zeros count for nothing.
    """
    def right(q, row):
        s, y, rho = row
        a = rho * fnp.sum(s * q)
        return q - a * y, a

    def left(q, row):
        s, y, rho, a = row
        return q + (a - rho * fnp.sum(y * q)) * s, None

    q, alphas = scan(right, gradient, tuple(pairs), reverse=True)
    return scan(left, first_scale(gradient, pairs) * q, (*pairs, alphas))[0]


def first_scale(gradient, pairs):
    """s · y / y · y of the last pair; without one min(1, 1 / ‖gradient‖): f[]"""
    squares = fnp.sum(fnp.square(pairs.y[-1]))
    short = 1 / fnp.maximum(fnp.sqrt(fnp.sum(fnp.square(gradient))), 1.0)
    known = squares > 0
    return fnp.where(known, fnp.sum(pairs.s[-1] * pairs.y[-1]) / fnp.where(known, squares, 1.0),
                     short)


def with_pair(pairs, s, y):
    """The pairs and a new one, without the oldest; as they are where s · y shows no curvature."""
    product = fnp.sum(s * y)
    good = product > float(fnp.finfo(s.dtype).eps) * fnp.sum(fnp.square(y))
    rho = 1 / fnp.where(good, product, 1.0)
    after = Pairs(*[fnp.concatenate([old[1:], row[None]])
                    for old, row in zip(pairs, (s, y, rho))])
    return Pairs(*[fnp.where(good, a, b) for a, b in zip(after, pairs)])


def minimize_lbfgs(fun, params, *, memory_size=10, tolerance=1e-5, max_steps=500,
                   max_linesearch_steps=30):
    """A minimum of fun by limited-memory BFGS (Liu and Nocedal 1989)   → MinimizeResult

    fun(params) → f[];  params: a tree of floats.  It ends when no element of the gradient is larger
    than tolerance, after max_steps, or where no smaller value is found along the direction.
    memory_size: pairs kept.  Raises ArgumentError for parameters that are no floats, RangeError for
    counts below 1 or a negative tolerance.

    >>> found = minimize_lbfgs(lambda p: (p["a"] - 3.0) ** 2 + p["b"] ** 4, {"a": 0.0, "b": 1.0})
    >>> found.params["a"].round(3), bool(found.converged)
    (Array(3., f32[]), True)
    """
    if memory_size < 1:
        raise RangeError("L-BFGS remembers one pair or more.", given=f"memory_size={memory_size}")

    def memory_of(x):
        rows = fnp.zeros((memory_size, x.size), x.dtype)
        return Pairs(rows, rows, rows[:, 0] if x.size else fnp.zeros(memory_size, x.dtype))

    def direction_of(of_vector, x, gradient, pairs):
        return -two_loops(gradient, pairs)
    return walk(fun, params, memory_of, direction_of, with_pair, tolerance, max_steps,
                max_linesearch_steps)


# ---------------------------------------------------------------------------- Newton-CG

class Conjugate(NamedTuple):
    """Conjugate gradients: solution, residual, direction f[n], a count, is it finished?"""
    z: object
    r: object
    d: object
    count: object
    done: object


def newton_direction(of_vector, x, gradient, max_products):
    """-H⁻¹ gradient, roughly: f[n]

    Conjugate gradients until the residual is below min(1/2, √‖g‖) ‖g‖, or a direction of negative
    curvature appears: then what there is, or -gradient (Nocedal and Wright 2006, algorithm 7.1).
    """
    size = fnp.sqrt(fnp.sum(fnp.square(gradient)))
    enough = fnp.minimum(0.5, fnp.sqrt(size)) * size

    def product(c):
        curved = jvp(grad(of_vector), (x,), (c.d,))[1]
        bend, before = fnp.sum(c.d * curved), fnp.sum(fnp.square(c.r))
        concave = bend <= 0
        a = fnp.where(concave, 0.0, before / fnp.where(concave, 1.0, bend))
        z, r = c.z + a * c.d, c.r + a * curved
        z = fnp.where(concave & (c.count == 0), -gradient, z)
        after = fnp.sum(fnp.square(r))
        d = -r + after / before * c.d
        return Conjugate(z, r, d, c.count + 1, concave | (fnp.sqrt(after) <= enough))

    first = Conjugate(fnp.zeros_like(x), gradient, -gradient, fnp.zeros((), "int32"),
                      fnp.zeros((), "bool"))
    return while_loop(lambda c: ~c.done & (c.count < max_products), product, first).z


def minimize_newton_cg(fun, params, *, tolerance=1e-5, max_steps=500, max_products=None,
                       max_linesearch_steps=30):
    """A minimum of fun by Newton's method, its equation solved by conjugate gradients.

    → MinimizeResult.  The Hessian is never formed: each product with it is a forward derivative of
    the gradient, at most max_products of them a step (twice the number of parameters if None, and
    at most 200).  Arguments, end and errors as of `minimize_lbfgs`.  Nocedal and Wright 2006,
    section 7.1.

    >>> found = minimize_newton_cg(lambda x: ((x - 2.0) ** 2).sum(), fnp.zeros(3))
    >>> found.params, int(found.steps)
    (Array([2., 2., 2.], f32[3]), 1)
    """
    size = sum(math.prod(fnp.shape(x)) for x in tree.leaves(params))
    most = min(2 * size, 200) if max_products is None else max_products

    def direction_of(of_vector, x, gradient, memory):
        return newton_direction(of_vector, x, gradient, most)
    return walk(fun, params, lambda x: (), direction_of, lambda memory, s, y: memory, tolerance,
                max_steps, max_linesearch_steps)
