"""Control flow: equal to the Python loop under every transformation.

`test_control_messages.py` has the messages.
"""

import functools
import gc
import math
import operator
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import tree
from fgrad.backends import base, reference
from fgrad.compile import compiled
from fgrad.control import (
    associative_scan, bodies, checkpoint, checkpoint_name, checkpoint_policies, cond, fori_loop,
    map, scan, switch, while_loop)
from fgrad.errors import (
    ConcretizationError, DeviceError, DtypeError, GradientError, TreeError)
from fgrad.gradient_check import check_grads
from fgrad.ir_text import canonical, parse
from fgrad.jitted import jit
from fgrad.loop_check import check_plan
from fgrad.passes.pipeline import plan
from fgrad.passes.target import CPU
from fgrad.transforms import (
    grad, hessian, hvp, jacfwd, jacrev, jvp, linear_transpose, make_ir, value_and_grad, vjp, vmap)
from fgrad.types import ArrayType
from tests import golden_programs
from tests.messages import message

RNG = np.random.default_rng(3)
W = RNG.normal(size=(3, 3)).astype(np.float32) / 2


def rows(n):
    return fnp.array(RNG.normal(size=(n, 3)).astype(np.float32))


def unrolled(f, carry, xs, reverse=False):
    """What scan means: a loop in Python."""
    n = len(tree.leaves(xs)[0])
    ys = [None] * n
    for k in range(n)[::-1 if reverse else 1]:
        carry, ys[k] = f(carry, tree.map(lambda x: x[k], xs))
    return carry, tree.map(lambda *parts: fnp.stack(parts), *ys) if ys else None


def near(got, want, bound=2e-5):
    got, want = tree.leaves(got), tree.leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=bound, atol=bound)


def everywhere(f, *args):
    """The results at once, compiled, and by the reference's loops in Python, each checked."""
    program = make_ir(f)(*args)
    check_plan(plan(compiled(program, "cpu").program, CPU))
    return [f(*args), jit(f)(*args), jit(f, device="reference")(*args)]


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: grad(f, (0, 1)),
    "jvp": lambda f: lambda w, x: jvp(f, (w, x), (w, x)),
    "grad of grad": lambda f: grad(lambda w, x: (grad(f)(w, x) ** 2).sum(), (0, 1)),
    "jvp of grad": lambda f: lambda w, x: jvp(lambda w: grad(f)(w, x), (w,), (w,)),
    "grad of jvp": lambda f: grad(lambda w, x: jvp(lambda w: f(w, x), (w,), (w,))[1]),
    "vmap": lambda f: lambda w, x: vmap(f, (0, None))(fnp.stack([w, 2 * w]), x),
    "vmap of grad": lambda f: lambda w, x: vmap(grad(f, (0, 1)), (None, 1))(
        w, fnp.stack([x, x + 1], 1)),
}


def recurrent(how, reverse):
    """A loss of a network whose steps also count, by scan or by a loop in Python."""
    def loss(w, xs):
        def step(carry, x):
            h, count = carry
            h = fnp.tanh(w @ h + x)
            return (h, count + 1), {"h": h * count, "x": x}
        (h, count), ys = how(step, (fnp.ones(3), 0), xs, reverse=reverse)
        extra = (ys["h"] ** 2).sum() + (ys["x"] * ys["h"]).sum() if ys is not None else 0.0
        return h.sum() + extra + count
    return loss


# ---------------------------------------------------------------------------- scan

@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_scan_is_the_python_loop_under_every_transformation(name, n, reverse):
    transform, args = TRANSFORMS[name], (fnp.array(W), rows(n))
    want = transform(recurrent(unrolled, reverse))(*args)
    f = recurrent(scan, reverse)
    near(transform(f)(*args), want, 1e-4)
    near(jit(transform(f))(*args), want, 1e-4)
    near(transform(jit(f))(*args), want, 1e-4)


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=list(TRANSFORMS))
def test_the_reference_runs_the_loops_that_compiled_code_runs(transform):
    f, args = transform(recurrent(scan, False)), (fnp.array(W), rows(2))
    first, *others = everywhere(f, *args)
    for other in others:
        near(other, first, 1e-4)


def test_a_scan_of_no_steps_gives_the_carry_and_empty_results():
    def f(c, xs):
        return scan(lambda c, x: (c * 2, (c, x)), c, xs)
    for g in (f, jit(f)):
        carry, (first, second) = g(fnp.array([1.0, 2.0]), fnp.zeros((0, 3)))
        assert carry.tolist() == [1.0, 2.0]
        assert first.shape == (0, 2) and second.shape == (0, 3)
    assert grad(lambda c: f(c, fnp.zeros((0, 3)))[0].sum())(fnp.ones(2)).tolist() == [1.0, 1.0]


def test_scan_without_xs_takes_its_length():
    carry, ys = scan(lambda c, _: (c + 1, c), 0, length=4)
    assert carry.item() == 4 and ys.tolist() == [0, 1, 2, 3]


def test_unroll_is_accepted():
    assert scan(lambda c, x: (c + x, None), 0.0, fnp.arange(4.0), unroll=2)[0].item() == 6.0


def test_a_carry_may_be_any_pytree_and_its_parts_may_change_places():
    def step(c, x):
        return {"a": c["b"], "b": c["a"] + x}, c["a"]
    got = scan(step, {"a": 0.0, "b": 1.0}, fnp.arange(5.0))
    want = unrolled(step, {"a": fnp.array(0.0), "b": fnp.array(1.0)}, fnp.arange(5.0))
    near(got, want)


def test_results_that_are_arguments_or_come_twice_are_right():
    def step(c, x):
        a, b = c
        return (b, b), (x, a, a + x, x)
    args = ((fnp.array(1.0), fnp.array(2.0)), fnp.arange(3.0))
    near(jit(lambda c, x: scan(step, c, x))(*args), unrolled(step, *args))


def test_a_carry_that_is_never_changed_and_one_that_is_never_read():
    def step(c, x):
        kept, _ = c
        return (kept, kept * x), None
    near(scan(step, (3.0, 0.0), fnp.arange(1.0, 4.0))[0], (fnp.array(3.0), fnp.array(9.0)))


@pytest.mark.parametrize("n", [2, 3])
def test_a_carry_that_a_step_cannot_write_over_has_two_buffers(n):
    m = fnp.array(W)

    def f(h):
        return scan(lambda h, _: (m @ h, h), h, length=n)
    near(jit(f)(fnp.ones((3, 2))), unrolled(lambda h, _: (m @ h, h), fnp.ones((3, 2)), rows(n)))


def test_scan_in_scan_with_cond_inside():
    def inner(w, c, x):
        def step(c, y):
            c = cond(y > 0, lambda c: fnp.sin(c) * w, lambda c: c - y, c)
            return c, c * x
        return scan(step, c, fnp.array([0.5, -0.5, 1.0]))

    def by_scan(w, xs):
        c, ys = scan(lambda c, x: inner(w, c, x), 0.3, xs)
        return c + ys.sum()

    def by_hand(w, xs):
        c, total = fnp.array(0.3), 0.0
        for x in xs:
            for y in (0.5, -0.5, 1.0):
                c = fnp.sin(c) * w if y > 0 else c - y
                total = total + c * x
        return c + total
    args = fnp.array(0.7), fnp.array([1.0, 2.0, 3.0])
    for g in (lambda f: f, lambda f: grad(f, (0, 1)), lambda f: lambda w, x: jvp(f, (w, x), (w, x)),
              lambda f: grad(grad(f)),
              lambda f: lambda w, x: vmap(grad(f), (0, None))(fnp.array([0.7, 0.2]), x)):
        near(g(by_scan)(*args), g(by_hand)(*args), 1e-4)
        near(jit(g(by_scan))(*args), g(by_hand)(*args), 1e-4)


def test_scan_of_jit_of_grad_is_a_training_loop():
    x, y = rows(5), fnp.array([1.0, 0.0, 1.0, 1.0, 0.0])
    loss = jit(value_and_grad(lambda w: ((x @ w - y) ** 2).mean()))

    def step(w, _):
        value, g = loss(w)
        return w - 0.1 * g, value
    near(scan(step, fnp.zeros(3), length=20), unrolled(step, fnp.zeros(3), fnp.arange(20)), 1e-4)
    near(jit(lambda w: scan(step, w, length=20))(fnp.zeros(3)),
         unrolled(step, fnp.zeros(3), fnp.arange(20)), 1e-4)


def test_the_body_is_traced_once_and_compile_text_does_not_grow_with_the_length():
    calls = []

    def step(c, x):
        calls.append(1)
        return c * 0.5 + x, None
    for n in (3, 30):
        jit(grad(lambda xs: scan(step, 0.0, xs)[0]))(fnp.arange(float(n)))
    assert len(calls) == 2                       # once for each length
    short, long = [make_ir(grad(lambda xs: scan(step, 0.0, xs)[0]))(fnp.arange(float(n)))
                   for n in (3, 300)]
    assert len(str(short).split("\n")) == len(str(long).split("\n"))


def test_a_function_whose_cell_changed_is_staged_again():
    factor = 1.0

    def step(c, x):
        return c + factor * x, None
    first = scan(step, 0.0, fnp.ones(3))[0].item()
    factor = 2.0
    assert (first, scan(step, 0.0, fnp.ones(3))[0].item()) == (3.0, 6.0)


@pytest.mark.parametrize("loop", [
    lambda f: map(f, fnp.ones(2)),
    lambda f: scan(lambda c, x: (c, f(x)), 0.0, fnp.ones(2))[1],
    lambda f: cond(fnp.array(True), f, lambda x: x, fnp.ones(2)),
    lambda f: while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, fnp.ones(2)))[1],
    lambda f: fori_loop(0, 1, lambda i, x: f(x), fnp.ones(2))])
def test_a_body_sees_what_it_reads_as_it_is_now(loop):
    held, default = [1.0], np.array(2.0, np.float32)

    def f(x, *, more=0.0):
        return x * held[0] * default + more
    assert loop(f).tolist() == [2.0, 2.0]
    held[0], default[...], f.__kwdefaults__ = 10.0, 3.0, {"more": 1.0}
    assert loop(f).tolist() == [31.0, 31.0]


def test_equal_functions_that_are_not_the_same_are_staged_each():
    @dataclass(frozen=True)
    class Step:
        s: object

        def __call__(self, c, x):
            return c, x * self.s
    first, second, xs = Step(2), Step(2.0), fnp.arange(3)
    assert scan(first, 0, xs)[1].dtype == "int32"
    assert scan(second, 0, xs)[1].dtype == "float32"


def test_a_body_is_staged_by_the_promotion_of_the_block():
    def step(c, x):
        return c, x + fnp.ones((), dtype="float64")
    scan(step, 0.0, fnp.ones(2))
    with fgrad.strict_promotion(), pytest.raises(DtypeError):
        scan(step, 0.0, fnp.ones(2))


def test_bodies_and_what_they_close_over_are_freed():
    class Weights:
        def __init__(self):
            self.value = fnp.ones(3)

    def turn():
        held = Weights()

        def step(c, x):
            step                                 # a function that reaches itself
            return c + held.value * x, None
        scan(step, fnp.zeros(3), fnp.ones(2))
        return weakref.ref(held)
    left = [turn() for _ in range(3)]
    gc.collect()
    assert [r() for r in left] == [None] * 3


TABLE, RATE = [2.0], 2.0


def through_a_list(x):
    return x * TABLE[0]


def through_a_global(x):
    return x * RATE


def max_of(x):
    return x.max()


class Held:
    def __call__(self, x):
        return x * 2


def stagings(f, times=3):
    """How often a function is staged by so many scans with it."""
    counted, staged = [], bodies.staged
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "staged", lambda *args: counted.append(1) or staged(*args))
        for _ in range(times):
            scan(f, fnp.zeros(2), fnp.ones((3, 2)))
    return len(counted)


def test_a_function_of_plain_parts_is_staged_once():
    w, n = fnp.ones(2), 3

    def helper(x):
        return fnp.sin(x) * math.pi

    def step(c, x, *, scale=(1, 2.0)):
        return c + helper(x) * w ** n * scale[1], {"y": len(x.shape)}
    assert stagings(step) == 1
    w = w + 1
    assert stagings(step) == 1                   # once more, for the other array


@pytest.mark.parametrize("make", [
    lambda: lambda c, x: (c, through_a_list(x)),
    lambda: lambda c, x, held=[1.0]: (c, x * held[0]),                              # noqa: B006
    lambda: lambda c, x, held=np.ones(2): (c, x * held),
    lambda: lambda c, x: (c, x * golden_programs.SIZE if hasattr(golden_programs, "SIZE") else x)],
    ids=["list", "default", "array of NumPy", "module"])
def test_a_function_that_reads_what_may_change_is_staged_each_time(make):
    assert stagings(make()) == 3


@pytest.mark.parametrize("f", [np.sin, fnp.sin, fgrad.lax.sin, operator.neg, abs, max_of,
                               functools.partial(max_of), Held()])
def test_whatever_can_be_called_is_a_body(f):
    for _ in range(2):
        assert map(f, fnp.ones((2, 3))).shape in ((2,), (2, 3))
        assert cond(fnp.array(True), f, lambda x: f(x) * 0, fnp.ones(3)).shape in ((), (3,))
    assert while_loop(np.isfinite, lambda x: x * 1e30, 1.0).item() == np.inf


def test_a_global_that_was_bound_anew_is_read_anew(monkeypatch):
    def step(c, x):
        return c, through_a_global(x)
    seen = []
    for rate in (2.0, 2.0, 3.0, 3, True):
        monkeypatch.setitem(globals(), "RATE", rate)
        seen.append(scan(step, 0.0, fnp.ones(1, "int32"))[1])
    assert [y.item() for y in seen] == [2.0, 2.0, 3.0, 3, 1]
    assert [str(y.dtype) for y in seen] == ["float32"] * 3 + ["int32"] * 2


def test_arrays_that_a_kept_body_closed_over_are_few():
    w, refs = fnp.ones(2), []

    def step(c, x):
        return c + w * x, None
    for _ in range(5):
        w = fnp.asarray(np.ones(2, "f4"))
        refs.append(weakref.ref(w.np))
        scan(step, fnp.zeros(2), fnp.ones(3))
    del w, step
    gc.collect()
    assert [r() for r in refs] == [None] * 5


def test_equal_bodies_share_what_is_made_of_them():
    w = fnp.ones(3)
    programs = []
    for _ in range(2):
        scan(lambda c, x: (c + w * x, None), fnp.zeros(3), fnp.ones(2))
        programs.append(list(bodies.SHARED.values())[-1])
        w = w * 2
    assert programs[0] is programs[1] and programs[0].derived


def test_a_body_may_name_a_local_that_is_not_assigned_yet():
    def step(c, x):
        return (c, x) if x.ndim == 0 else later
    assert scan(step, 0.0, fnp.ones(2))[1].tolist() == [1.0, 1.0]
    later = None


def test_residuals_that_no_step_changes_are_not_stacked():
    def loss(w, h):
        return scan(lambda h, _: (fnp.tanh(w @ h), None), h, length=50)[0].sum()
    text = str(make_ir(grad(loss))(fnp.array(W), fnp.ones(3)))
    assert "f32[50,3]" in text and "f32[50,3,3]" not in text


def test_a_batched_scan_batches_only_the_carries_that_need_it():
    def f(x):
        return scan(lambda c, _: ((c[0] + 1, c[1] * x), c[0]), (0, 1.0), length=3)
    (count, power), ys = vmap(f, out_axes=((None, 0), None))(fnp.array([2.0, 3.0]))
    assert count.item() == 3 and power.tolist() == [8.0, 27.0] and ys.tolist() == [0, 1, 2]


def test_scan_gradients_agree_with_finite_differences():
    check_grads(lambda w, x: recurrent(scan, False)(w, x), (np.float64(W), np.float64(rows(4))),
                order=2)


# ---------------------------------------------------------------------------- cond, switch

def both(p, x):
    return cond(p, lambda x: fnp.sin(x) * fnp.exp(x), lambda x: x ** 3, x)


@pytest.mark.parametrize("p", [True, False])
def test_cond_is_the_branch_under_every_transformation(p):
    x = fnp.array([0.5, 0.2])
    branch = (lambda x: fnp.sin(x) * fnp.exp(x)) if p else lambda x: x ** 3
    for t in (lambda f: f, lambda f: lambda x: jvp(f, (x,), (x,)), jacrev, jacfwd,
              lambda f: vmap(f), lambda f: vmap(grad(lambda x: f(x).sum())),
              lambda f: grad(lambda x: (grad(lambda x: f(x).sum())(x) ** 2).sum())):
        want = t(branch)(x)
        near(t(lambda x: both(p, x))(x), want)
        near(jit(lambda p, x: t(lambda x: both(p, x))(x))(p, x), want)
        near(jit(lambda p, x: t(lambda x: both(p, x))(x), device="reference")(p, x), want)


def test_cond_under_vmap_of_its_predicate_selects():
    p, x = fnp.array([True, False, True]), fnp.array([0.5, 0.2])
    near(vmap(both, (0, None))(p, x), fnp.stack([both(b, x) for b in (True, False, True)]))
    near(jit(vmap(both, (0, None)))(p, x), fnp.stack([both(b, x) for b in (True, False, True)]))
    assert "select" in str(make_ir(vmap(both, (0, None)))(p, x))


def test_cond_with_an_unmapped_predicate_stays_a_cond():
    text = str(make_ir(vmap(both, (None, 0)))(fnp.array(True), fnp.ones((3, 2))))
    assert "cond[" in text and "select" not in text


def test_branches_close_over_different_values_and_take_different_residuals():
    a, b = fnp.array([2.0, 3.0]), fnp.array(4.0)

    def f(p, a, b):
        return cond(p, lambda: fnp.sin(a).sum(), lambda: b * fnp.exp(b))
    for p in (True, False):
        want = grad(lambda a, b: fnp.sin(a).sum() if p else b * fnp.exp(b), (0, 1))(a, b)
        near(grad(lambda a, b: f(p, a, b), (0, 1))(a, b), want)
        near(jit(grad(lambda p, a, b: f(p, a, b), (1, 2)))(p, a, b), want)


def test_switch_moves_its_index_into_range():
    def f(k, x):
        return switch(k, [lambda x: x, lambda x: x * x, lambda x: -x], x)
    x, want = fnp.array(3.0), [3.0, 3.0, 9.0, -3.0, -3.0]
    assert [f(k, x).item() for k in range(-1, 4)] == want
    assert [jit(f)(fnp.array(k), x).item() for k in range(-1, 4)] == want
    assert vmap(f, (0, None))(fnp.arange(-1, 4), x).tolist() == want


def test_only_the_chosen_branch_runs():
    def slow(n):
        return while_loop(lambda i: i < n, lambda i: i + 1, 0)
    f = jit(lambda p, n: cond(p, slow, lambda n: n, n))
    assert f(False, 2**31 - 1).item() == 2**31 - 1


# ---------------------------------------------------------------------------- while, fori

def powers(x):
    return while_loop(lambda s: s[0] < 100, lambda s: (s[0] * x, s[1] + s[0]), (x, 0.0))


def by_hand(x):
    value, total = x, fnp.zeros(())
    while value < 100:
        value, total = value * x, total + value
    return value, total


def test_while_loop_is_the_python_loop_forwards():
    x = fnp.array(1.7)
    near(powers(x), by_hand(x))
    near(jit(powers)(x), by_hand(x))
    near(jvp(powers, (x,), (1.0,)), jvp(by_hand, (x,), (1.0,)))
    near(jit(lambda x: jvp(powers, (x,), (1.0,)))(x), jvp(by_hand, (x,), (1.0,)))
    near(jacfwd(lambda x: powers(x)[1])(x), jacfwd(lambda x: by_hand(x)[1])(x))


def test_finished_lanes_of_a_mapped_while_stand_still():
    xs = [1.2, 30.0, 200.0, 3.0]
    want = tree.map(lambda *parts: fnp.stack(parts), *[by_hand(fnp.array(x)) for x in xs])
    for f in (vmap(powers), jit(vmap(powers)), jit(vmap(powers), device="reference")):
        near(f(fnp.array(xs)), want)


def test_a_mapped_while_whose_end_is_the_same_for_all_stays_simple():
    def f(x):
        return while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, 1.0))[1]
    assert vmap(f)(fnp.array([2.0, 3.0])).tolist() == [8.0, 27.0]
    assert "select" not in str(make_ir(vmap(f))(fnp.array([2.0, 3.0])))


def test_vmap_of_vmap_of_while_and_of_its_derivative():
    xs = fnp.array([[1.5, 2.0], [30.0, 400.0]])
    want = [[by_hand(fnp.array(x))[1].item() for x in row] for row in xs.tolist()]
    np.testing.assert_allclose(np.asarray(vmap(vmap(lambda x: powers(x)[1]))(xs)), want, rtol=1e-5)
    d = vmap(jacfwd(lambda x: powers(x)[1]))(xs[0])
    near(d, fnp.stack([jacfwd(lambda x: by_hand(x)[1])(x) for x in xs[0]]), 1e-4)


def test_a_loop_that_never_runs_gives_what_it_was_given():
    assert while_loop(lambda x: x < 0, lambda x: x * 2, 5.0).item() == 5.0
    assert fori_loop(3, 3, lambda i, x: x * 2, 5.0).item() == 5.0
    assert fori_loop(5, 3, lambda i, x: x * 2, 5.0).item() == 5.0


@pytest.mark.parametrize("n", [1, 2, 9, 10, 30])
def test_a_while_loop_of_at_most_n_steps_has_a_reverse_derivative(n):
    def steps(x, n):
        value, total, k = x, fnp.zeros(()), 0
        while value < 100 and k < n:
            value, total, k = value * x, total + value, k + 1
        return total

    def f(x):
        return while_loop(lambda s: s[0] < 100, lambda s: (s[0] * x, s[1] + s[0]), (x, 0.0),
                          max_steps=n)[1]
    x = fnp.array(1.7)
    near(value_and_grad(f)(x), value_and_grad(lambda x: steps(x, n))(x), 1e-4)
    near(jit(value_and_grad(f))(x), value_and_grad(lambda x: steps(x, n))(x), 1e-4)
    near(jit(vmap(grad(f)))(fnp.array([1.7, 3.0])),
         fnp.stack([grad(lambda x: steps(x, n))(fnp.array(v)) for v in (1.7, 3.0)]), 1e-4)


def test_fori_loop_with_known_and_with_traced_bounds():
    def f(lower, upper, x):
        return fori_loop(lower, upper, lambda i, s: s * 0.9 + i, x)
    want = fnp.array(2.0)
    for i in range(3, 11):
        want = want * 0.9 + i
    near(f(3, 11, 2.0), want)
    near(jit(lambda x: f(3, 11, x))(2.0), want)
    near(jit(f)(fnp.array(3), fnp.array(11), 2.0), want)
    near(grad(lambda x: f(3, 11, x))(2.0), fnp.array(0.9 ** 8))
    near(grad(lambda x: f(fnp.array(3), fnp.array(11), x))(2.0), fnp.array(0.9 ** 8))
    near(vmap(f, (None, 0, None))(3, fnp.array([3, 5, 11]), 2.0)[2], want)


def test_counters_of_reversed_and_nested_loops():
    def f(x):
        def outer(i, s):
            return fori_loop(0, 3, lambda j, s: s * 2 + 10 * i + j, s)
        return fori_loop(1, 4, outer, x)
    want = 5
    for i in range(1, 4):
        for j in range(3):
            want = want * 2 + 10 * i + j
    assert f(5).item() == jit(f)(5).item() == want
    _, ys = jit(lambda: scan(lambda c, i: (c, i), 0, fnp.arange(5), reverse=True))()
    assert ys.tolist() == [0, 1, 2, 3, 4]


# ---------------------------------------------------------------------------- map, associative_scan

@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("batch_size", [None, 1, 3, 7, 10])
def test_map_is_vmap(n, batch_size):
    xs = rows(n)
    near(map(lambda x: {"y": fnp.sin(x), "s": x.sum()}, xs, batch_size=batch_size),
         vmap(lambda x: {"y": fnp.sin(x), "s": x.sum()})(xs))


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 30])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_cumsum(n, reverse):
    x = fnp.array(RNG.integers(0, 9, (2, n, 3)))
    got = associative_scan(lambda a, b: a + b, x, reverse=reverse, axis=1)
    want = np.flip(np.cumsum(np.flip(x, 1), 1), 1) if reverse else np.cumsum(np.asarray(x), 1)
    assert np.array_equal(got, want)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -3])
def test_associative_scan_of_matrices_is_the_same_on_every_device(reverse, axis):
    """Products do not commute; on the CPU they are taken one after the other."""
    x = fnp.moveaxis(fnp.array(RNG.normal(size=(13, 2, 3, 3))), 0, axis % 4)

    def f(x):
        return associative_scan(lambda a, b: a @ b, x, reverse=reverse, axis=axis)
    with fgrad.device("reference"):
        want, slope = f(x), grad(lambda x: fnp.sin(f(x)).sum())(x)
    for made in (f, jit(f)):
        near(made(x), want)
        near(grad(lambda x: fnp.sin(made(x)).sum())(x), slope)
    assert " = scan" in fgrad.show(f, x) and " = scan" not in fgrad.show(
        jit(f, device="reference"), x)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_associative_scan_of_complex_numbers_is_compiled_along_every_axis(reverse, axis):
    """Along all but the first it was refused: `kept of complex numbers cannot be compiled`."""
    a, b = [fnp.array(RNG.normal(size=(3, 5, 2)) + 1j * RNG.normal(size=(3, 5, 2)))
            for _ in range(2)]

    def f(a, b):
        return associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b),
                                reverse=reverse, axis=axis)
    near(jit(f)(a, b), f(a, b))
    slopes = grad(lambda a, b: fnp.sum(fnp.abs(f(a, b)[1]) ** 2), argnums=(0, 1))
    near(jit(slopes)(a, b), slopes(a, b))


@pytest.mark.parametrize("n", [3, 20])
def test_associative_scan_from_the_end_gives_first_what_comes_first_in_its_order(n):
    """As jax: h[i] = a[i] h[i + 1] + b[i], from the last one on."""
    a, b = fnp.array(RNG.uniform(0.2, 0.9, n)), fnp.array(RNG.normal(size=n))

    def chained(p, q):
        return q[0] * p[0], q[0] * p[1] + q[1]
    want = scan(lambda h, ab: (ab[0] * h + ab[1],) * 2, 0.0 * b[0], (a, b), reverse=True)[1]
    near(associative_scan(chained, (a, b), reverse=True)[1], want)
    turned = associative_scan(chained, (a[::-1], b[::-1]))[1][::-1]
    near(associative_scan(chained, (a, b), reverse=True)[1], turned)


def test_a_function_is_traced_for_each_device_that_runs_it():
    f = jit(lambda x: associative_scan(fnp.add, x))
    x = fnp.arange(20.0)
    for device in ("cpu", "reference", "cpu", "reference"):
        with fgrad.device(device):
            near(f(x), np.cumsum(np.arange(20, dtype="float32")))
    assert f.cache_info().misses == 2
    assert "the device changed cpu -> reference" in f.explain()


def test_associative_scan_solves_a_linear_recurrence_on_pairs():
    a, b = fnp.array([0.5, 0.2, 2.0, 1.5, 0.3]), fnp.array([1.0, 2.0, 3.0, 4.0, 5.0])

    def f(a, b):
        return associative_scan(lambda p, q: (q[0] * p[0], q[0] * p[1] + q[1]), (a, b))[1]
    near(f(a, b), scan(lambda h, ab: (ab[0] * h + ab[1],) * 2, 0.0, (a, b))[1])
    near(jit(grad(lambda a: f(a, b).sum()))(a),
         grad(lambda a: scan(lambda h, ab: (ab[0] * h + ab[1],) * 2, 0.0, (a, b))[1].sum())(a))


@pytest.mark.parametrize("n", [5, 20])
@pytest.mark.parametrize("wrong, shape", [
    (lambda a, b: (a + b).sum(0), "f32[3]"), (lambda a, b: fnp.stack([a, b]), "f32[2,"),
    (lambda a, b: fnp.concatenate([a, b]), "f32[")])
def test_associative_scan_says_what_shape_was_not_expected(wrong, shape, n):
    """IndexError, RecursionError and NumPy's ValueError, up to eight elements."""
    with pytest.raises(TreeError, match="must return what it combines") as error:
        associative_scan(wrong, fnp.ones((n, 3)))
    assert f"out       {shape}" in str(error.value)


@pytest.mark.parametrize("index, found", [
    (np.int8(100), 100), (np.uint8(200), 200), (np.int8(-1), 0), (np.uint64(2 ** 63), 299),
    (np.int64(-2 ** 40), 0), (2 ** 40, 299), (-2 ** 40, 0)])
def test_switch_takes_an_index_of_any_integer_dtype(index, found):
    branches = [lambda x, k=k: x * k for k in range(300)]
    assert switch(index, branches, 1.0) == found


# ---------------------------------------------------------------------------- checkpoint

def test_static_arguments_of_checkpoint_may_count_from_the_end_and_be_left_out():
    f = checkpoint(lambda x, n=2: x * len(range(n)), static_argnums=-1)
    assert grad(f)(2.0, 3) == 3.0 and grad(f)(2.0) == 2.0


def block(w, x):
    return fnp.sin(fnp.sin(checkpoint_name(x @ w, "first")) @ w)


POLICIES = [None, checkpoint_policies.nothing_saveable, checkpoint_policies.everything_saveable,
            checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("first")]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: getattr(p, "__qualname__", "none"))
def test_checkpoint_changes_no_derivative(policy):
    def loss(f):
        return lambda w, x: (f(w, f(w, x)) ** 2).sum()
    args, plain, kept = (fnp.array(W), rows(4)), loss(block), loss(checkpoint(block, policy=policy))
    for t in (lambda f: f, lambda f: grad(f, (0, 1)), lambda f: lambda w, x: jvp(f, (w, x), (w, x)),
              lambda f: grad(lambda w, x: (grad(f)(w, x) ** 2).sum()),
              lambda f: lambda w, x: vmap(grad(f), (0, None))(fnp.stack([w, -w]), x)):
        near(t(kept)(*args), t(plain)(*args), 1e-4)
        near(jit(t(kept))(*args), t(plain)(*args), 1e-4)


def count(text, word):
    return text.count(f" = {word}")


def test_a_policy_says_how_often_things_are_computed():
    def text(policy):
        f = checkpoint(lambda x: fnp.sin(fnp.sin(x @ x) @ x).sum(), policy=policy)
        return str(jit(value_and_grad(f)).lower(fnp.ones((3, 3))).text("simplified"))
    nothing, everything, dots = [text(p) for p in (
        POLICIES[1], POLICIES[2], checkpoint_policies.dots_saveable)]
    assert count(nothing, "dot_general") > count(everything, "dot_general")
    assert count(dots, "dot_general") == count(everything, "dot_general")
    assert count(nothing, "barrier") >= 1


def test_checkpoint_of_a_scan_body_keeps_only_its_carry():
    def loss(f):
        return lambda w, x: scan(lambda h, _: (f(w, h), None), x, length=9)[0].sum()
    w, x = fnp.array(W), rows(4)
    near(jit(grad(loss(checkpoint(block))))(w, x), grad(loss(block))(w, x), 1e-4)
    kept = str(make_ir(grad(loss(checkpoint(block))))(w, x))
    every = str(make_ir(grad(loss(block)))(w, x))
    stack = "f32[9,4,3]"
    assert first_line(kept, "scan").count(stack) < first_line(every, "scan").count(stack)


def first_line(text, word):
    return next(line for line in text.split("\n") if f"= {word}[" in line)


@pytest.mark.parametrize("options", [dict(static_argnames="n"), dict(static_argnames=["n"]),
                                     dict(static_argnums=-1), dict(static_argnums=1)])
def test_checkpoint_takes_static_arguments_by_name_and_from_the_end(options):
    f = checkpoint(**options)(lambda x, n: sum(x for _ in range(n)) * x)
    assert grad(lambda x: f(x, 3))(2.0) == 12.0
    if "static_argnames" in options:
        assert jit(grad(lambda x: f(x, n=3)))(2.0) == 12.0


def test_checkpoint_takes_static_arguments_and_keywords():
    f = checkpoint(lambda x, how, scale=1.0: getattr(fnp, how)(x) * scale, static_argnums=(1,))
    near(grad(lambda x: f(x, "sin", scale=2.0))(0.5), grad(lambda x: fnp.sin(x) * 2.0)(0.5))


# ---------------------------------------------------------------------------- OpenCL

def opencl(f):
    """f on an OpenCL device; skips, with the reason, where there is none."""
    try:
        base.find("opencl").devices()
    except DeviceError as error:
        pytest.skip(str(error))
    return jit(f, device="opencl")


@pytest.mark.parametrize("n", [0, 1, 5])
def test_loops_on_an_opencl_device_give_what_the_cpu_gives(n):
    xs = rows(n)
    f = grad(recurrent(scan, True), (0, 1)) if n else recurrent(scan, True)
    near(opencl(f)(fnp.array(W), xs), jit(f)(fnp.array(W), xs), 1e-4)
    near(opencl(vmap(powers))(fnp.array([1.7, 30.0])), jit(vmap(powers))(fnp.array([1.7, 30.0])))
    for p in (True, False):
        near(opencl(both)(p, fnp.ones(2)), jit(both)(p, fnp.ones(2)))


def test_a_carry_on_an_opencl_device_never_writes_over_its_argument():
    f = opencl(lambda x: while_loop(lambda x: x.sum() < 10, lambda x: x * 2, x))
    x = fnp.array([20.0])
    same = f(x)
    assert f(same).tolist() == [20.0] and f(fnp.array([1.0])).tolist() == [16.0]
    assert same.tolist() == [20.0] and x.tolist() == [20.0]


# ---------------------------------------------------------------------------- what nobody reads

def simplified(f, *args):
    return jit(f).lower(*args).text("simplified")


def test_what_a_loop_carries_for_nobody_is_dropped():
    def f(x):
        (a, *_), _ = scan(lambda c, x: ((c[0] + x, c[1] * c[2], c[2] * 2), (c[1], fnp.sin(x))),
                          (0.0, 1.0, 2.0), x)
        return a
    text = simplified(f, fnp.ones(3))
    assert "n_carry=1" in text and "sin" not in text and "mul" not in text

    def g(x):
        return while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x, s[2] + s[1]),
                          (0, 1.0, 2.0))[1]
    assert simplified(g, 2.0).count("add") == 1
    assert jit(g)(2.0).item() == 8.0

    def h(x, y):
        return cond(x > 0, lambda a, b: (a, b), lambda a, b: (a + 1, fnp.sin(b)), x, y)[0]
    assert "sin" not in simplified(h, 2.0, 2.0)
    assert jit(h)(-2.0, 2.0).item() == -1.0


# ---------------------------------------------------------------------------- programs

def test_programs_with_loops_print_and_parse_back():
    def f(w, xs):
        return grad(lambda w: scan(lambda h, x: (cond(x > 0, fnp.sin, fnp.cos, h * w), None), w,
                                   xs)[0])(w)
    program = make_ir(f)(fnp.array(0.5), fnp.arange(3.0))
    text = str(parse(str(program)))
    assert canonical(parse(text)) == canonical(parse(str(program)))
    loop = make_ir(lambda x: while_loop(lambda x: x < 9, lambda x: x * 2, x))(fnp.array(1.0))
    assert canonical(parse(str(loop))) == canonical(loop)
    assert reference.run_program(loop, [np.float32(1)])[0] == 16


def test_the_loops_of_a_plan_print_with_what_goes_round():
    text = jit(lambda x: scan(lambda c, x: (c + x, c * x), 0.0, x)).lower(fnp.ones(3)).text("loops")
    assert "scan" in text and "3 times" in text and "carry" in text and "stack" in text


# ---------------------------------------------------------------------------- cotangents, storage

def test_vjp_of_a_scan_gives_cotangents_of_all_arguments():
    w, xs = fnp.array(W), rows(4)
    out, pulled = vjp(recurrent(scan, False), w, xs)
    near(pulled(fnp.array(2.0)), tree.map(lambda g: 2 * g, grad(recurrent(unrolled, False),
                                                                (0, 1))(w, xs)), 1e-4)
    assert out.shape == ()


def test_a_donated_carry_is_updated_where_it_lies():
    f = jit(lambda p: fori_loop(0, 10, lambda i, p: p * 0.5, p), donate_argnums=0)
    p = fnp.array(np.ones(1000, np.float32))
    address = p.np.ctypes.data
    out = f(p)
    assert out[0].item() == 0.5 ** 10 and np.asarray(out).ctypes.data == address


def test_a_start_that_is_read_again_is_kept():
    def f(x):
        start = fnp.sin(x)
        end = scan(lambda c, _: (c * 2 + start, None), start, length=3)[0]
        return end, start + end
    x = fnp.array([0.3, 0.5])
    start = fnp.sin(x)
    want = ((start * 2 + start) * 2 + start) * 2 + start
    near(jit(f)(x), (want, start + want))


# ---------------------------------------------------------------------------- linear_transpose, hvp

def test_linear_transpose_needs_no_values_and_takes_loops():
    a = fnp.array(W)
    (found,) = linear_transpose(lambda x: a @ x, ArrayType("float32", (3,)))(fnp.ones(3))
    near(found, a.T @ fnp.ones(3))
    pulled = linear_transpose(lambda x: scan(lambda c, _: (c * 2, c), x, length=3), 1.0)
    assert pulled((1.0, fnp.ones(3)))[0].item() == 15.0
    text = message(GradientError, linear_transpose(fnp.sin, 1.0), 1.0)
    assert text.startswith("linear_transpose needs a linear function, and `sin` is not.")


def test_hvp_is_the_hessian_times_a_vector():
    def f(x):
        return scan(lambda c, _: (fnp.sin(c * x).sum() + c, None), 1.0, length=3)[0]
    x, v = fnp.array([0.3, 0.7]), fnp.array([1.0, -2.0])
    near(hvp(f, (x,), (v,)), hessian(f)(x) @ v, 1e-4)
    near(jit(lambda x, v: hvp(f, (x,), (v,)))(x, v), hessian(f)(x) @ v, 1e-4)
    both = hvp(lambda x, y: (x * y).sum(), (x, v), (v, x))
    near(both, (x, v))


def test_a_body_is_collected_with_its_function():
    def run():
        def step(c, x):
            return c + x, None
        scan(step, 0.0, fnp.ones(3))
        return weakref.ref(step)
    dead = run()
    gc.collect()
    assert dead() is None


def test_python_that_asks_for_a_value_in_a_body_is_told_what_to_do():
    def step(c, x):
        if x > 0:
            c = c + x
        return c, None
    text = message(ConcretizationError, scan, step, 0.0, fnp.ones(3))
    assert text == """\
`if` needs a value, but while `step` is compiled there are only types.

    test_control.py:N    if x > 0:

  given      bool[], which depends on `x` of `step`
             made at test_control.py:N: if x > 0:
  fix        choose with fgrad.numpy.where(condition, a, b)
             or with fgrad.lax.cond(condition, f, g, x)
             or write the scan as a loop in Python"""


def test_the_error_of_a_fori_loop_names_the_users_function():
    text = message(TreeError, fori_loop, 0, 5, lambda i, x: x * 0.5, 0)
    assert text.startswith("fori_loop: the carry of `<lambda>` (test_control.py:N) changes its ")


def test_what_no_step_changes_is_computed_once_in_front_of_the_loop():
    def f(w, xs):
        def step(h, x):
            p = fnp.exp(w) / fnp.exp(w).sum()
            return fnp.tanh(p * h + x * 2.0), fori_loop(0, 2, lambda i, z: z + (w @ w), x.sum())
        return scan(step, fnp.ones(3), xs)
    w, xs = fnp.array([0.1, 0.2, 0.3]), rows(4)
    text = simplified(f, w, xs)
    first, *others = text.split("\n\n")
    assert count(first, "exp") == count(first, "dot_general") == count(first, "reduce_sum") == 1
    assert not any(count(t, "exp") or count(t, "dot_general") for t in others)
    near(jit(f)(w, xs), f(w, xs))
    near(jit(grad(lambda w: f(w, xs)[1].sum() + f(w, xs)[0].sum()))(w),
         grad(lambda w: sum(x.sum() for x in unrolled(lambda h, x: (
             fnp.tanh(fnp.exp(w) / fnp.exp(w).sum() * h + x * 2.0), x.sum() + 2 * (w @ w)),
             fnp.ones(3), xs)))(w), 1e-4)


def test_carries_that_read_each_other_are_updated_in_place():
    def f(n):
        return while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + s[0], s[2] + s[1]),
                          (0, 1.0, 0.0))
    plan_ = plan(make_ir(f)(fnp.array(5)))
    (loop,) = [s for s in plan_.steps if hasattr(s, "others")]
    assert not loop.others
    i, a, b = 0, 1.0, 0.0
    while i < 5:
        i, a, b = i + 1, a * 0.5 + i, b + a
    near(jit(f)(fnp.array(5)), (fnp.array(i), fnp.array(a), fnp.array(b)))


# ---------------------------------------------------------------------------- what is not taken

def root_or_double(a):
    return cond(a > 0, fnp.sqrt, lambda t: 2 * t, a)


def root_closed_over(a):
    return cond(a > 0, lambda: fnp.sqrt(a), lambda: 2 * a)


def of_three(a):
    which = fnp.where(a > 0, 2, fnp.where(a < -2, 0, 1))
    return switch(which, [lambda t: 3 * t, lambda t: fnp.log(-t), fnp.sqrt], a)


def in_a_loop(a):
    def step(c, _):
        return cond(c > 0, lambda t: fnp.sqrt(t) - 1, lambda t: t + 0.7, c), None
    return scan(step, a, None, length=4)[0]


def direction_or_nothing(a):
    x = fnp.stack([a, 0 * a])
    return cond(a > 0, lambda u: u / fnp.linalg.norm(u), lambda u: u * 0.0, fnp.maximum(x, 0))[0]


@pytest.mark.parametrize("f", [root_or_double, root_closed_over, of_three, in_a_loop,
                               direction_or_nothing])
@pytest.mark.parametrize("lanes", [vmap, lambda f: jit(vmap(f)), lambda f: vmap(jit(f))])
def test_a_branch_that_a_lane_does_not_take_has_no_part_in_its_gradient(f, lanes):
    """Its derivative is infinite there: infinity times the cotangent 0 was NaN."""
    x = np.array([1.0, -1.0, 4.0, -3.0])
    of_all = lanes(f)
    want = np.array([float(grad(f)(a)) for a in x])
    assert np.isfinite(want).all()
    found = grad(lambda x: fnp.sum(of_all(x)))(x)
    np.testing.assert_allclose(found, want, rtol=1e-12)
    np.testing.assert_allclose(jacrev(of_all)(x), np.diag(want), rtol=1e-12)


def test_what_all_lanes_share_has_the_gradient_of_those_that_take_a_branch():
    def f(x, w):
        return fnp.sum(vmap(lambda a: cond(a > 0, lambda: fnp.sqrt(a * w), lambda: a * w))(x))
    x = np.array([1.0, -1.0, 4.0])
    want = np.sqrt([1, 4]).sum() / np.sqrt(8) - 1
    assert grad(f, argnums=1)(x, np.float64(2)) == pytest.approx(want)


def test_a_matrix_that_all_lanes_share_is_multiplied_once():
    def f(x, w):
        return vmap(lambda a: cond(a.sum() > 0, lambda: a @ w, lambda: (2 * a) @ w))(x)
    steps = str(fgrad.show(f, fnp.ones((64, 32)), fnp.ones((32, 16)), stage="loops"))
    assert steps.count("contract") == 2, steps


# ------------------------------------------------- loops whose results have no gradient to bring

def halving(a):
    """(the first of a, a/2, a/4, … that is small, how many steps that took)"""
    return while_loop(lambda c: c[0] > 0.1, lambda c: (c[0] * 0.5, c[1] + 1), (a, 0))


CONSTANTS = {
    "stopped": (lambda a, loop: a * fgrad.stop_gradient(loop(a)[0]), 0.0625),
    "counted": (lambda a, loop: a * loop(a)[1], 4.0),
    "unused": (lambda a, loop: (loop(a), a ** 2)[1], 2.0),
    "compared": (lambda a, loop: fnp.where(loop(a)[0] > 0, a, 2 * a), 1.0),
    "rounded": (lambda a, loop: a * fnp.floor(loop(a)[0]), 0.0),
    "in a scan": (lambda a, loop: scan(lambda c, _: (c * loop(a)[1], None), a, None, length=2)[0],
                  16.0),
}


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("loop", [halving, jit(halving)], ids=["plain", "jit"])
def test_a_loop_that_no_gradient_comes_to_needs_no_reverse(name, loop):
    """The loop was refused where it was met, whatever became of its result."""
    f, want = CONSTANTS[name]
    assert grad(lambda a: f(a, loop))(1.0) == want
    assert jit(grad(lambda a: f(a, loop)))(1.0) == want
    curved = 2 * want + 2 * (name == "unused")
    assert hessian(lambda a: a * f(a, loop))(1.0) == pytest.approx(curved)


def test_a_loop_beside_a_loss_needs_no_reverse():
    f = jit(lambda a: (a ** 2, halving(a)))
    (value, (last, count)), slope = value_and_grad(f, has_aux=True)(1.0)
    assert (value, last, count, slope) == (1.0, 0.0625, 4, 2.0)
    _, push = fgrad.linearize(f, 1.0)
    assert push(1.0)[0] == 2.0 and push(1.0)[1][0] == 0.0625


@pytest.mark.parametrize("f", [lambda a: halving(a)[0], lambda a: jit(halving)(a)[0] * a])
def test_a_loop_that_a_gradient_comes_to_is_refused(f):
    with pytest.raises(GradientError, match="while_loop has no reverse"):
        grad(f)(1.0)
    with pytest.raises(GradientError, match="while_loop has no reverse"):
        jit(grad(f))(1.0)
