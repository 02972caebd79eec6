"""Derivative rules of users: in every transformation, of second order, closing over values."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.custom import custom_jvp, custom_vjp, stop_gradient
from fgrad.errors import ArgumentError, ShapeError, TreeError
from fgrad.jitted import jit
from fgrad.numpy import cos, sin
from fgrad.transforms import grad, hessian, jacfwd, jacrev, jvp, linearize, make_ir, vmap
from tests.interpreters.staged import near, staged
from tests.messages import message

one, V = np.float64(0.7), np.array([0.5, 1.0, 2.0])


@custom_jvp
def by_jvp(x, y):
    return sin(x) * y


@by_jvp.defjvp
def by_jvp_rule(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return by_jvp(x, y), cos(x) * y * dx + sin(x) * dy


@custom_vjp
def by_vjp(x, y):
    return sin(x) * y


by_vjp.defvjp(lambda x, y: (by_vjp(x, y), {"x": x, "y": y, "name": "kept"}),
              lambda kept, ct: (ct * cos(kept["x"]) * kept["y"], ct * sin(kept["x"])))

by_jvps = custom_jvp(lambda x, y: sin(x) * y)
by_jvps.defjvps(lambda t, out, x, y: cos(x) * y * t, lambda t, out, x, y: sin(x) * t)

TRANSFORMS = {
    "grad": grad,
    "grad grad": lambda f: grad(grad(f)),
    "grad grad grad": lambda f: grad(grad(grad(f))),
    "jvp": lambda f: lambda x: jvp(f, (x,), (one,))[1],
    "grad jvp": lambda f: grad(lambda x: jvp(f, (x,), (x,))[1]),
    "jvp grad": lambda f: lambda x: jvp(grad(f), (x,), (one,))[1],
    "jvp jvp": lambda f: lambda x: jvp(lambda y: jvp(f, (y,), (y,))[1], (x,), (one,))[1],
    "hessian": hessian,
    "jacfwd jacrev": lambda f: jacrev(jacfwd(f)),
    "linearize": lambda f: lambda x: linearize(f, x)[1](one),
    "vmap grad": lambda f: lambda x: vmap(grad(f))(V) * x,
    "grad vmap": lambda f: grad(lambda x: fnp.sum(vmap(lambda v: f(v * x))(V))),
    "grad vmap closed": lambda f: grad(lambda x: fnp.sum(vmap(lambda v: f(x) * v)(V))),
    "vmap vmap": lambda f: lambda x: vmap(vmap(lambda v: grad(f)(v * x)))(V[:, None] * V),
    "staged grad": lambda f: staged(grad(f)),
    "grad staged": lambda f: grad(staged(f)),
    "grad staged grad": lambda f: grad(staged(grad(staged(f)))),
    "vmap staged grad grad": lambda f: lambda x: vmap(staged(grad(grad(f))))(V * x),
    "jvp staged": lambda f: lambda x: jvp(staged(grad(f)), (x,), (one,))[1],
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("f", [by_jvp, by_vjp, by_jvps])
def test_a_right_rule_changes_nothing_under(f, transform):
    how = TRANSFORMS[transform]
    near(how(lambda x: f(x, x * x))(one), how(lambda x: sin(x) * x * x)(one))
    near(how(lambda x: f(2.0, x))(one), how(lambda x: np.sin(2.0) * x)(one), 1e-6)


def test_the_rule_is_used_for_every_order():
    f = custom_jvp(lambda x: sin(x))
    f.defjvp(lambda p, t: (f(*p), f(*p) * t[0] * 3.0))           # a false derivative: f' = 3 f
    near(grad(f)(one), 3 * np.sin(one))
    near(grad(grad(f))(one), 9 * np.sin(one))
    near(grad(staged(grad(f)))(one), 9 * np.sin(one))
    near(vmap(grad(grad(f)))(V), 9 * np.sin(V))
    g = custom_vjp(lambda x: sin(x))
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * g(x) * 3.0,))
    near(grad(g)(one), 3 * np.sin(one))
    near(grad(grad(g))(one), 9 * np.sin(one))
    near(jvp(grad(staged(g)), (one,), (one,))[1], one * 9 * np.sin(one))


def test_two_functions_whose_rules_call_each_other():
    f, g = custom_jvp(lambda x: sin(x)), custom_jvp(lambda x: cos(x))
    f.defjvp(lambda p, t: (f(*p), 2.0 * g(*p) * t[0]))
    g.defjvp(lambda p, t: (g(*p), -2.0 * f(*p) * t[0]))
    near(grad(grad(grad(f)))(one), -8 * np.cos(one))
    near(grad(staged(grad(staged(grad(f)))))(one), -8 * np.cos(one))


@pytest.mark.parametrize("how", [grad, lambda f: grad(grad(f)), lambda f: grad(staged(f)),
                                 lambda f: staged(grad(grad(f))),
                                  lambda f: lambda x: vmap(grad(f))(V * x)])
def test_function_and_rule_may_close_over_values_of_outer_transformations(how):
    def f(x):
        inner = custom_jvp(lambda y: sin(y) * x)
        inner.defjvp(lambda p, t: (inner(*p), cos(p[0]) * x * t[0]))
        other = custom_vjp(lambda y: sin(y) * x)
        other.defvjp(lambda y: (other(y), y), lambda y, ct: (ct * cos(y) * x,))
        return inner(x) + grad(inner)(x) + other(x) + grad(other)(x * x)
    near(how(f)(one), how(lambda x: 2 * sin(x) * x + cos(x) * x + cos(x * x) * x)(one))


def test_arguments_without_derivative():
    f = custom_jvp(lambda g, x, n: g(x) * n, nondiff_argnums=(0, 2))
    f.defjvp(lambda g, n, p, t: (f(g, *p, n), 10.0 * n * t[0]))
    near(grad(f, 1)(sin, 0.5, 2), 20.0)
    g = custom_vjp(lambda name, x: sin(x), nondiff_argnums=(0,))
    g.defvjp(lambda name, x: (g(name, x), x), lambda name, x, ct: (ct * len(name),))
    near(grad(g, 1)("four", 0.5), 4.0)
    near(vmap(grad(g, 1), (None, 0))("four", V), np.full(3, 4.0))


def test_trees_keywords_and_integers():
    @custom_vjp
    def f(p, n, scale=2.0):
        return {"y": p["x"] * n * scale, "n": n}

    f.defvjp(lambda p, n, scale: (f(p, n, scale), (n, scale)),
             lambda kept, ct: ({"x": ct["y"] * kept[0] * kept[1]}, None, None))
    near(grad(lambda x: f({"x": x}, 3, scale=4.0)["y"])(one), 12.0)
    near(jvp(lambda x: f({"x": x}, 3)["y"], (one,), (one,))[1], 6.0 * one)


def test_outside_of_transformations_the_function_just_runs():
    seen = []
    f = custom_jvp(lambda x: seen.append(x) or x)
    f.defjvp(lambda p, t: (p[0], t[0]))
    assert f("no array") == "no array" and seen == ["no array"]


def test_methods_can_have_rules():
    class Layer:
        scale = 3.0

        @custom_jvp
        def apply(self, x):
            return x * self.scale
        apply.defjvp(lambda p, t: (p[0].apply(p[1]), t[1] * 30.0))
    near(grad(Layer().apply)(1.0), 30.0)


def test_stop_gradient_of_trees():
    f = lambda x: x * stop_gradient({"a": x, "name": "s"})["a"]
    near(grad(f)(3.0), 3.0)
    near(grad(grad(f))(3.0), 0.0)
    near(grad(lambda x: fnp.sum(vmap(f)(x)))(V), V)
    near(jvp(staged(f), (3.0,), (1.0,))[1], 3.0)


def test_the_program_shows_the_custom_operation():
    text = str(make_ir(lambda x: by_jvp(x, x))(one))
    assert "custom_jvp[program=by_jvp rule=<by_jvp_rule>] x x" in text


def test_message_no_rule():
    f = custom_jvp(named(lambda x: x))
    assert message(ArgumentError, f, 1.0) == """\
custom_jvp: `f` has no derivative rule yet.

    messages.py:N    function(*args, **kwargs)

  fix        decorate one with @f.defjvp"""
    f = custom_vjp(named(lambda x: x))
    assert message(ArgumentError, f, 1.0).endswith("fix        f.defvjp(forward, backward)")


def named(f):
    f.__name__ = "f"
    return f


def test_message_tangent_of_another_shape():
    f = custom_jvp(named(lambda x: x))
    f.defjvp(lambda p, t: (p[0], fnp.sum(t[0])))
    assert message(ShapeError, grad(lambda x: fnp.sum(f(x))), V) == """\
a rule of `f`: `tangent` must have the shape of the result.

    test_custom.py:N    assert message(ShapeError, grad(lambda x: fnp.sum(f(x))), V) == \"""\\

  given      tangent: f64[]
  expected   f64[3]"""


def test_message_cotangent_of_another_shape():
    f = custom_vjp(named(lambda x: x))
    f.defvjp(lambda x: (x, None), lambda _, ct: (fnp.sum(ct),))
    assert message(ShapeError, grad(lambda x: fnp.sum(f(x))), V) == """\
the backward rule of `f`: `the cotangent of x` must have the shape of `x`.

    test_custom.py:N    assert message(ShapeError, grad(lambda x: fnp.sum(f(x))), V) == \"""\\

  given      the cotangent of x: f64[]
  expected   f64[3]"""


def sums(x):
    return fnp.sum(x)


@pytest.mark.parametrize("transform", [
    grad, lambda f: jit(grad(f)), lambda f: grad(jit(f)), jacfwd,
    lambda f: lambda x: vmap(grad(f))(x[None])[0],
    lambda f: lambda x: jvp(grad(lambda x: f(x) ** 2), (x,), (x,))[1] / fnp.sum(x) / 2])
def test_the_shape_of_an_argument_is_a_residual(transform):
    f = custom_vjp(sums)
    f.defvjp(lambda x: (fnp.sum(x), x.shape), lambda shape, ct: (fnp.broadcast_to(ct, shape),))
    assert transform(f)(fnp.array(V)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("transform", [
    grad, lambda f: lambda x, n: jit(grad(lambda x: f(x, n)))(x),
    lambda f: lambda x, n: vmap(grad(f), (0, None))(x[None], n)[0]])
@pytest.mark.parametrize("n", [True, False, 3])
def test_an_int_and_a_flag_stay_python_numbers_in_function_and_rules(transform, n):
    def power(x, n):
        return x if n is True else fnp.prod(fnp.stack([x for _ in range(n + 1)]))
    reverse = custom_vjp(power)
    reverse.defvjp(lambda x, n: (power(x, n), n), lambda n, ct: (ct * (n + 1), None))
    assert transform(reverse)(fnp.array(1.0), n) == n + 1
    forward = custom_jvp(power)
    forward.defjvp(lambda p, t: (power(*p), t[0] * (p[1] + 1) + t[1]))
    assert transform(forward)(fnp.array(1.0), n) == n + 1


def test_message_cotangents_that_are_no_tuple():
    f = custom_vjp(named(lambda x: x))
    f.defvjp(lambda x: (x, None), lambda _, ct: ct)
    assert message(ArgumentError, grad(f), 1.0) == """\
the backward rule of `f` must return a tuple of 1, one cotangent per argument, but it \
returned f32[].

    messages.py:N    function(*args, **kwargs)

  given      the rule `<lambda>` (test_custom.py:N)
  fix        return (ct_x,)"""
    g = custom_vjp(named(lambda x, y: x * y))
    g.defvjp(lambda x, y: (x * y, None), lambda _, ct: (ct,))
    assert message(ArgumentError, grad(g), 1.0, 2.0).endswith("fix        return (ct_x, ct_y)")


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
def test_message_argument_by_keyword_only(kind):
    @kind
    def f(x, *, scale=1.0):
        return scale * x
    if kind is custom_jvp:
        f.defjvp(lambda xs, ts: (f(*xs), ts[0]))
    else:
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,))
    assert f(2.0, scale=3.0) == 6.0 and grad(f)(2.0) == 1.0
    assert message(ArgumentError, grad(lambda x: f(x, scale=3.0)), 2.0).startswith(
        f"{kind.__name__}: `f` takes `scale` by keyword only, which its rule does not get.")


def test_nondiff_argnums_may_count_from_the_end():
    f = custom_vjp(lambda x, n: x * n, nondiff_argnums=-1)
    f.defvjp(lambda x, n: (x * n, None), lambda n, _, ct: (10.0 * n * ct,))
    assert grad(f)(1.0, 2) == 20.0
    with pytest.raises(ArgumentError, match="nondiff_argnums=2 is out of range"):
        custom_jvp(lambda x, n: x, nondiff_argnums=(0, 2))


def test_defjvps_without_any_rule_is_a_derivative_of_zero():
    f = custom_jvp(lambda x, y: {"out": x * y})
    f.defjvps(None, None)
    assert jacfwd(f)(2.0, 3.0)["out"] == 0.0


def test_message_rule_of_another_tree():
    f = custom_jvp(named(lambda x: x))
    f.defjvp(lambda p, t: (p[0], [t[0]]))
    assert message(TreeError, grad(f), 1.0).startswith(
        "tangent of `f` must have the tree of its result: trees differ at their root: ")
    f.defjvp(lambda p, t: p[0])
    assert message(ArgumentError, grad(f), 1.0).startswith(
        "the rule of `f` must return (result, tangent), but it returned f32[].")


# ------------------------------------------------- rules of which one call gives value and tangent

SINES = {
    "jit": jit(sin), "map": lambda a: fgrad.lax.map(sin, a), "checkpoint": fgrad.checkpoint(sin),
    "fori_loop": lambda a: fgrad.lax.fori_loop(0, 1, lambda i, c: sin(c), a),
    "scan": lambda a: fgrad.lax.scan(lambda c, _: (sin(c), None), a, None, length=1)[0],
    "cond": lambda a: fgrad.lax.cond(a[0] > -9, sin, cos, a),
    "lanes": vmap(lambda t: fgrad.lax.cond(t > -9, sin, cos, t)),
    "while_loop": lambda a: fgrad.lax.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, sin(c[1])), (0, a))[1],
    "by_jvp": lambda a: by_jvp(a, 1.0)}


@pytest.mark.parametrize("name", SINES)
def test_a_rule_may_be_the_jvp_of_a_function_with_calls(name):
    """The value came out of the call with the tangent, and counted as linear: LeakError."""
    f = custom_jvp(SINES[name])
    f.defjvp(lambda primals, tangents: jvp(SINES[name], primals, tangents))
    np.testing.assert_allclose(jvp(f, (V,), (np.ones(3),))[1], np.cos(V))
    if name == "while_loop":                     # its tangent has no reverse
        return
    for derivative in (grad(lambda x: fnp.sum(f(x))), jit(grad(lambda x: fnp.sum(f(x))))):
        np.testing.assert_allclose(derivative(V), np.cos(V))
    np.testing.assert_allclose(hessian(lambda x: fnp.sum(f(x)))(V), -np.diag(np.sin(V)), atol=1e-12)


def test_a_rule_may_be_compiled():
    f = custom_jvp(sin)
    f.defjvp(jit(lambda p, t: (sin(p[0]), cos(p[0]) * t[0])))
    assert grad(f)(one) == np.cos(one)
    near(vmap(grad(f))(V), np.cos(V))
    assert linearize(f, one)[1](2.0) == pytest.approx(2 * np.cos(one))


def test_the_branches_of_a_rule_may_give_value_and_tangent():
    f = custom_jvp(sin)
    f.defjvp(lambda p, t: fgrad.lax.cond(p[0] > 0, lambda a, s: (sin(a), s * 2),
                                         lambda a, s: (sin(a), s), p[0], t[0]))
    assert jit(grad(f))(one) == 2.0 and jit(grad(f))(-one) == 1.0


def test_a_linear_function_may_read_what_comes_with_its_argument_from_a_call():
    pair = jit(lambda a, s: (sin(a), s * cos(a)))

    def f(t):
        v, s = pair(V, t)
        return fnp.exp(v) * s
    near(fgrad.linear_transpose(f, V)(V)[0], np.exp(np.sin(V)) * np.cos(V) * V)
    with pytest.raises(fgrad.GradientError):
        fgrad.linear_transpose(lambda t: fnp.exp(pair(V, t)[1]), V)(V)


def test_a_compiled_function_may_have_a_rule():
    """What belongs to the compiled function became the rule's: it could not be called under jit."""
    f = custom_jvp(jit(sin))
    f.defjvp(lambda p, t: (f(p[0]), 3.0 * t[0]))
    assert jit(f)(one) == np.sin(one) and jit(grad(f))(one) == 3.0
