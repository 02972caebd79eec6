"""What the tests of optimizers share: parameters, gradients, and plain NumPy loops in float64.

A reference is a function (p, grads) → the parameters after these gradients, one leaf at a time, or
(params, grads) → params for rules that look at all leaves.
"""

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import optim, tree

RNG = np.random.default_rng(0)
START = {"w": RNG.normal(size=(3, 2)), "b": RNG.normal(size=2), "s": RNG.normal(size=()),
         "k": RNG.normal(size=(2, 1, 3))}
GRADS = [{k: RNG.normal(size=np.shape(v)) for k, v in START.items()} for _ in range(7)]


def arrays(values, dtype):
    """A tree as arrays of one dtype."""
    return tree.map(lambda x: fnp.asarray(x, dtype=dtype), values)


def run(optimizer, jitted=False, dtype="float32", start=START, grads=GRADS):
    """The parameters after the gradients, and the state."""
    def step(params, state, g):
        updates, state = optimizer.update(g, state, params)
        return optim.apply_updates(params, updates), state

    step = fgrad.jit(step) if jitted else step
    params = arrays(start, dtype)
    state = optimizer.init(params)
    for g in grads:
        params, state = step(params, state, arrays(g, dtype))
    return params, state


def check(optimizer, reference, start=START, grads=GRADS, rtol=2e-5, atol=2e-6):
    """Eager and compiled, in f32 and f64, the parameters are those of the reference, leaf by leaf.
    """
    for dtype, closer in (("float32", 1.0), ("float64", 1e-2)):
        for jitted in (False, True):
            got, _ = run(optimizer, jitted, dtype, start, grads)
            for name in start:
                want = reference(start[name].copy(), [g[name] for g in grads])
                np.testing.assert_allclose(got[name], want, rtol=closer * rtol,
                                           atol=closer * atol, err_msg=f"{name} {dtype} {jitted}")
                assert got[name].dtype == dtype


def same_tree(a, b):
    """Raises unless two trees have one structure, and leaves of equal values and dtypes."""
    assert tree.structure(a) == tree.structure(b)
    for x, y in zip(tree.leaves(a), tree.leaves(b)):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
