"""grad, vjp, jvp, linearize, vmap, jacobians, eval_shape, make_ir: pytrees, options, messages."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.core import Array
from fgrad.custom import custom_jvp
from fgrad.errors import ArgumentError, AxisError, DtypeError, GradientError, ShapeError, TreeError
from fgrad.gradient_check import check_grads
from fgrad.transforms import (
    eval_shape, grad, hessian, jacfwd, jacrev, jvp, linearize, make_ir, make_jaxpr, run_program,
    value_and_grad,
    vjp, vmap)
from fgrad.types import F32, F64, I32, ArrayType
from tests.interpreters.staged import differences, near
from tests.messages import message

Pair = namedtuple("Pair", "w b")
V = np.arange(3.0)


def loss(params, x, y):
    h = fnp.tanh(x @ params["w"] + params["b"])
    return fnp.mean((h - y) ** 2)


PARAMS = {"w": np.ones((3, 2)), "b": np.zeros(2)}
X, Y = np.linspace(-1, 1, 12).reshape(4, 3), np.ones((4, 2))


# ---------------------------------------------------------------------------- grad

def test_grad_has_the_tree_of_its_argument():
    found = grad(loss)(PARAMS, X, Y)
    assert list(found) == ["b", "w"] or list(found) == ["w", "b"]
    near(found["w"], differences(lambda w: loss({**PARAMS, "w": w}, X, Y), PARAMS["w"]), 1e-5)
    pair = grad(lambda p: fnp.sum(p.w * p.b))(Pair(V, V))
    assert isinstance(pair, Pair)


def test_grad_by_several_arguments_positions_and_names():
    f = lambda x, y: x * y * y
    near(np.array(grad(f, (0, 1))(2.0, 3.0)), [9.0, 12.0])
    near(grad(f, "y")(2.0, 3.0), 12.0)
    near(grad(f, argnames="y")(2.0, y=3.0), 12.0)
    near(grad(f, argnames=("y", "x"))(2.0, 3.0)[1], 9.0)
    near(grad(f, -1)(2.0, 3.0), 12.0)
    near(grad(f)(x=2.0, y=3.0), 9.0)


def test_value_and_grad_with_aux():
    (value, aux), found = value_and_grad(lambda x: (x * x, {"twice": 2 * x, "name": "f"}),
                                         has_aux=True)(3.0)
    assert (float(value), float(aux["twice"]), aux["name"], float(found)) == (9.0, 6.0, "f", 6.0)
    assert isinstance(aux["twice"], Array)
    assert float(grad(lambda x: (x, x), has_aux=True)(1.0)[1]) == 1.0


def test_leaves_that_are_no_arrays_reach_the_function():
    seen = []
    found = grad(lambda p: seen.append(p) or p["x"] * 2.0)({"x": 1.0, "act": "relu", "f": np.tanh,
                                                            "none": None})
    assert seen[0]["act"] == "relu" and seen[0]["f"] is np.tanh and seen[0]["none"] is None
    assert found["act"] is None and found["f"] is None and float(found["x"]) == 2.0


def test_allow_int_gives_integer_zeros():
    found = grad(lambda p: p["x"] * p["n"], allow_int=True)({"x": 2.0, "n": np.arange(1, 2)[0]})
    assert float(found["x"]) == 1.0 and found["n"].dtype.kind == "i" and int(found["n"]) == 0


def test_values_are_concrete_under_grad():
    f = lambda x: x * x if x > 0 else -x
    assert (float(grad(f)(3.0)), float(grad(f)(-3.0))) == (6.0, -1.0)


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (2, 0, 3)])
def test_grad_of_every_size(shape):
    x = np.ones(shape)
    near(grad(lambda x: fnp.sum(x * x))(x), 2 * x)


def test_numpy_arguments_may_change_after_vjp():
    x = np.ones(3)
    _, pull = vjp(lambda x: x * x, x)
    x[:] = 100.0
    near(pull(np.ones(3))[0], [2.0, 2.0, 2.0])


def test_message_grad_of_a_non_scalar():
    def f(x):
        return x * x
    assert message(GradientError, grad(f), V) == """\
grad needs a scalar result, but `f` returned f64[3].

    messages.py:N    function(*args, **kwargs)

  expected   f32[]
  fix        end with .sum() or .mean()
             jacrev(f) for all derivatives
             vmap(grad(f)) for one gradient per example"""


def test_message_grad_of_an_integer_result():
    assert message(GradientError, grad(named_f(lambda x: 3)), 1.0) == """\
grad needs a float result, but `f` returned int 3.

    messages.py:N    function(*args, **kwargs)

  expected   f16, bf16, f32 or f64
  fix        compute in floats, or convert with astype"""


def named_f(f):
    f.__name__ = "f"
    return f


def test_message_grad_of_an_int():
    assert message(GradientError, grad(lambda x: x * x), 3) == """\
grad needs float arguments, but `x` is the int 3.

    messages.py:N    function(*args, **kwargs)

  given      x: int 3
  expected   f16, bf16, f32 or f64
  fix        write 3.0
             allow_int=True, for a gradient of zeros"""


def test_message_grad_of_an_integer_leaf_names_its_path():
    params = {"layers": [{"w": np.ones(2), "n": np.arange(3, dtype="i4")}]}
    assert message(GradientError, grad(lambda p: 0.0), params) == """\
grad needs float arguments, but `p['layers'][0]['n']` is i32[3].

    messages.py:N    function(*args, **kwargs)

  given      p['layers'][0]['n']: i32[3]
  expected   f16, bf16, f32 or f64
  fix        p['layers'][0]['n'].astype('float32')
             allow_int=True, for a gradient of zeros"""


@pytest.mark.parametrize("run", [lambda f: f, fgrad.jit])
def test_linearize_goes_forward_where_there_is_no_reverse(run):
    def power(p, x):
        body = lambda c: (c[0] + 1, c[1] * x)
        return fgrad.lax.while_loop(lambda c: c[0] < 3, body, (0, x))[1]
    out, push = linearize(run(power), {"n": "kept"}, 2.0)
    near(out, 16.0)
    near(push({"n": "kept"}, 1.0), 32.0)
    near(run(lambda x: linearize(power, 0, x)[1](0, 2.0))(2.0), 64.0)
    near(vmap(lambda t: push({"n": "kept"}, t))(np.float32([0.0, 1.0])), [0.0, 32.0])


@pytest.mark.parametrize("f", [lambda x: (x * x, {"x": x, "kept": 1}),
                               lambda x: (fgrad.lax.fori_loop(0, fnp.array(2),
                                                              lambda _, y: y * x, 1.0),
                                          {"x": x, "kept": 1})])
def test_linearize_has_aux(f):
    out, push, aux = linearize(f, 3.0, has_aux=True)
    near((out, push(1.0), aux["x"]), (9.0, 6.0, 3.0))
    assert aux["kept"] == 1


@pytest.mark.parametrize("argnums", [(0, -1), (0, "y"), (-2, 1), ("x", -1)])
def test_argnums_may_mix_positions_from_both_ends_and_names(argnums):
    near(grad(lambda x, y: x * y * y, argnums)(2.0, 3.0), (9.0, 12.0))


def test_a_negative_argnum_counts_from_the_last_argument_given():
    near(grad(lambda *xs: xs[0] * sum(xs[1:]), -1)(2.0, 3.0, 4.0), 2.0)
    near(grad(lambda x, *rest: x * rest[0] * rest[1], (0, -1))(2.0, 3.0, 4.0), (12.0, 6.0))
    with pytest.raises(ArgumentError, match="argnums=-3"):
        grad(lambda *xs: xs[0], -3)(1.0, 2.0)


def test_message_argnums_out_of_range():
    def loss(w, x):
        return w
    assert message(ArgumentError, grad(loss, 2), 1.0, 2.0) == """\
grad with argnums=2: `loss` was given no such argument.

    messages.py:N    function(*args, **kwargs)

  given      `loss` has 2 positional parameters: w, x
  expected   argnums from 0 to 1, or a name"""
    assert message(ArgumentError, grad, loss, "z") == """\
grad: `loss` has no argument 'z'.

    messages.py:N    function(*args, **kwargs)

  given      argnames='z'
  expected   one of w, x"""


def test_message_has_aux_without_a_pair():
    assert message(ArgumentError, grad(named_f(lambda x: x * x), has_aux=True), 1.0) == """\
has_aux=True expects `f` to return (loss, aux), but it returned f32[].

    messages.py:N    function(*args, **kwargs)

  expected   a tuple of two
  fix        return loss, aux
             or leave out has_aux"""


def test_message_a_pair_without_has_aux():
    assert message(GradientError, grad(named_f(lambda x: (x * x, {"a": 1}))), 1.0) == """\
grad needs a scalar result, but `f` returned (f32[], {'a': int 1}).

    messages.py:N    function(*args, **kwargs)

  expected   f32[]
  fix        has_aux=True, if it returns (loss, aux)"""


def test_message_grad_of_a_number():
    assert message(ArgumentError, grad, 3.0) == """\
grad takes a function, not a float.

    messages.py:N    function(*args, **kwargs)

  given      grad(float 3.0)
  fix        grad(f)(x), with the arguments behind"""


# ---------------------------------------------------------------------------- vjp, jvp, linearize

def test_vjp_jvp_and_linearize_of_trees_agree():
    f = lambda p: {"h": fnp.tanh(p["w"]), "s": fnp.sum(p["w"]) * p["b"][0]}
    t = {"w": X * 0.5, "b": [2.0]}
    p = {"w": X, "b": [1.5]}
    _, dout = jvp(f, (p,), (t,))
    _, pushed = linearize(f, p)
    near(pushed(t)["h"], dout["h"])
    near(pushed(t)["s"], dout["s"])
    ct = {"h": X + 1.0, "s": 3.0}
    (found,) = vjp(f, p)[1](ct)
    near(np.sum(np.asarray(dout["h"]) * ct["h"]) + float(dout["s"]) * 3.0,
         np.sum(np.asarray(found["w"]) * t["w"]) + float(found["b"][0]) * 2.0)


def test_vjp_and_jvp_with_aux():
    out, pull, aux = vjp(lambda x: (x * x, [x]), 3.0, has_aux=True)
    assert (float(out), float(aux[0]), float(pull(1.0)[0])) == (9.0, 3.0, 6.0)
    out, t, aux = jvp(lambda x: (x * x, "aux"), (3.0,), (1.0,), has_aux=True)
    assert (float(t), aux) == (6.0, "aux")


def test_integers_do_not_move_under_jvp():
    _, t = jvp(lambda x, n: (x * n, n), (2.0, 3), (1.0, 0))
    assert (float(t[0]), int(t[1])) == (3.0, 0)


def test_message_tangent_of_another_shape():
    f = named_f(lambda x: x)
    assert message(ShapeError, jvp, f, (V,), (np.ones(2),)) == """\
jvp: `the tangent of x` must have the shape of `x`.

    messages.py:N    function(*args, **kwargs)

  given      the tangent of x: f64[2]
  expected   f64[3]"""


def test_message_tangent_of_another_dtype():
    assert message(DtypeError, jvp, lambda x: x, (V,), (V.astype("f4"),)) == """\
jvp: `the tangent of x` must have the dtype of `x`.

    messages.py:N    function(*args, **kwargs)

  given      the tangent of x: f32[3]
  expected   f64[3]
  fix        convert it with astype('float64')"""


def test_message_tangents_of_another_tree():
    assert message(TreeError, jvp, lambda x: x, ({"a": V},), ({"b": V},)) == """\
jvp: tangents must have the tree of primals: trees differ at [0]: \
keys only expected ['a'], only given ['b'].

    messages.py:N    function(*args, **kwargs)

  fix        give trees of one structure; fgrad.tree.structure(t) shows it"""


def test_message_primals_that_are_no_tuple():
    assert message(ArgumentError, jvp, named_f(lambda x: x), V, V) == """\
jvp: primals must be a tuple, one entry per argument of `f`.

    messages.py:N    function(*args, **kwargs)

  given      primals: f64[3]
  fix        (primals,)"""


def test_message_cotangent_of_another_shape_and_tree():
    _, pull = vjp(named_f(lambda x: {"y": x * x}), V)
    assert message(ShapeError, pull, {"y": 1.0}) == """\
the cotangent function of vjp: `ct['y']` must have the shape of the result of `f`.

    messages.py:N    function(*args, **kwargs)

  given      ct['y']: f32[]
  expected   f64[3]"""
    assert message(TreeError, pull, V).startswith(
        "the cotangent must have the tree of the result of `f`: trees differ at their root: a "
        "dict expected, an array given")


# ---------------------------------------------------------------------------- vmap

def test_vmap_over_trees_with_prefixes_of_axes():
    f = lambda p, x, name: p["w"] * x + p["b"] if name == "affine" else None
    found = vmap(f, in_axes=({"w": None, "b": 0}, 1, None))({"w": 2.0, "b": V}, np.ones((2, 3)),
                                                            "affine")
    near(found, 2.0 + np.broadcast_to(V[:, None], (3, 2)))


def test_vmap_puts_axes_where_out_axes_says():
    a, b, c = vmap(lambda x: (x, {"k": x}, 1.0), out_axes=(1, -1, None))(np.ones((4, 2, 3)))
    assert (a.shape, b["k"].shape, c.shape) == ((2, 4, 3), (2, 3, 4), ())


def test_vmap_maps_keywords_and_takes_axis_size():
    near(vmap(lambda x, y: x + y)(V, y=V), 2 * V)
    near(vmap(lambda: 1.0, in_axes=(), axis_size=3)(), np.ones(3))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_vmap_of_every_size(n):
    assert vmap(lambda x: fnp.sum(x * x))(np.ones((n, 2))).shape == (n,)


def test_vmap_of_a_list_of_axes_and_negative_axes():
    near(vmap(lambda a, b: a + b, in_axes=[-1, None])(np.ones((2, 3)), 1.0), 2 * np.ones((3, 2)))


def test_message_vmap_of_different_sizes():
    f = named_f(lambda x, y: x)
    assert message(ShapeError, vmap(f), np.ones((3, 2)), {"k": np.ones(4)}) == """\
vmap of `f` maps over axes of different sizes.

    messages.py:N    function(*args, **kwargs)

  given      x:      f64[3,2]   axis 0 has size 3
             y['k']: f64[4]     axis 0 has size 4
  expected   one size
  fix        in_axes=None for an argument that is not mapped"""


def test_message_vmap_over_an_axis_that_is_not_there():
    assert message(AxisError, vmap(lambda x: x, in_axes=2), np.ones((3, 2))) == """\
vmap cannot map over axis 2 of `x`, which has 2 axes.

    messages.py:N    function(*args, **kwargs)

  given      x: f64[3,2]
  expected   an axis from -2 to 1
  fix        in_axes=None for an argument that is not mapped"""


def test_message_vmap_of_a_scalar():
    assert message(AxisError, vmap(lambda x: x), 1.0) == """\
vmap cannot map over axis 0 of `x`, which has 0 axes.

    messages.py:N    function(*args, **kwargs)

  given      x: f32[]
  expected   an array of at least one axis
  fix        in_axes=None for an argument that is not mapped"""


def test_message_in_axes_for_another_number_of_arguments():
    assert message(ArgumentError, vmap(named_f(lambda x, y: x), in_axes=(0,)), V, V) == """\
vmap of `f` has in_axes for 1 arguments, but was called with 2.

    messages.py:N    function(*args, **kwargs)

  given      in_axes=(0,)
  expected   one entry per argument: (f64[3], f64[3])
  fix        one int for all arguments, or None for those that are not mapped"""


def test_message_nothing_to_map_over():
    assert message(ArgumentError, vmap(named_f(lambda x: x), in_axes=None), 1.0) == """\
vmap of `f` has nothing to map over: no argument has an axis.

    messages.py:N    function(*args, **kwargs)

  fix        give axis_size, or an array"""


def test_message_if_on_a_value_of_vmap():
    def f(x):
        return x if x > 0 else -x
    assert message(TypeError, vmap(f), V) == """\
`if` needs one value, but inside of vmap there are 3 of them.

    test_transforms.py:N    return x if x > 0 else -x

  given      bool[], a different one for each of the 3 elements that vmap maps over
  fix        choose with fgrad.numpy.where(condition, a, b)
             or loop in Python instead of vmap"""


def test_message_out_axes_none_of_a_mapped_result():
    assert message(ArgumentError, vmap(named_f(lambda x: x), out_axes=None), V) == """\
vmap with out_axes=None: a result of `f` is not the same for all elements.

    messages.py:N    function(*args, **kwargs)

  given      f64[3]
  fix        out_axes=0 for that result"""


# ---------------------------------------------------------------------------- jacobians

def test_jacobians_of_trees_have_result_by_argument():
    f = lambda p: {"y": p["a"] * p["b"], "z": fnp.sum(p["a"])}
    p = {"a": V, "b": V + 1.0}
    for jac in (jacrev, jacfwd):
        found = jac(f)(p)
        near(found["y"]["a"], np.diag(V + 1.0))
        near(found["y"]["b"], np.diag(V))
        near(found["z"]["a"], np.ones(3))
        near(found["z"]["b"], np.zeros(3))


def test_jacobians_by_several_arguments_with_aux():
    f = lambda x, y: (x * y, "aux")
    for jac in (jacrev, jacfwd):
        (by_x, by_y), aux = jac(f, (0, 1), has_aux=True)(V, V)
        near(by_x, np.diag(V))
        near(by_y, np.diag(V))
        assert aux == "aux"


def test_hessian_of_a_tree():
    found = hessian(lambda p: fnp.sum(p["a"] ** 2) * p["b"])({"a": V, "b": 3.0})
    near(found["a"]["a"], 6.0 * np.eye(3))
    near(found["a"]["b"], 2.0 * V)
    near(found["b"]["b"], 0.0)


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 0)])
def test_jacobians_of_empty_and_single_arrays(shape):
    for jac in (jacrev, jacfwd):
        assert jac(lambda x: x * 2.0)(np.ones(shape)).shape == shape + shape


# ---------------------------------------------------------------------------- types and programs

def test_eval_shape_computes_nothing():
    f = lambda p, x: {"y": x @ p["w"]}
    found = eval_shape(f, {"w": ArrayType(F32, (30000, 2))}, ArrayType(F32, (10, 30000)))
    assert found == {"y": ArrayType(F32, (10, 2))}


def test_make_ir_names_arguments_and_specialises_whole_numbers():
    def f(params, x, n):
        return fnp.broadcast_to(x, (n, 3)) * params["w"]
    program = make_ir(f)({"w": 2.0}, V, 4)
    assert str(program).split("\n")[0] == "f(params_w: f32[], x: f64[3]) -> f64[4,3]" or \
        str(program).split("\n")[0] == "f(params_w: f64[], x: f64[3]) -> f64[4,3]"
    assert make_jaxpr is make_ir


def test_programs_run_and_transform():
    program = make_ir(lambda x: fnp.sin(x) * x)(ArrayType(F64, (3,)))
    near(run_program(program, V)[0], np.sin(V) * V)
    near(grad(lambda x: fnp.sum(run_program(program, x)[0]))(V), np.sin(V) + np.cos(V) * V)
    with pytest.raises(ArgumentError, match="given other arguments"):
        run_program(program, np.ones(4))


# ---------------------------------------------------------------------------- check_grads

def test_check_grads_accepts_right_derivatives():
    check_grads(lambda p, n: {"y": fnp.tanh(p["w"]) * n}, ({"w": V}, np.arange(3, dtype=I32)))


def test_message_of_check_grads_names_the_element():
    @custom_jvp
    def wrong(x):
        return fnp.sin(x)
    wrong.defjvp(lambda primals, tangents: (wrong(*primals), tangents[0] * 2.0))
    f = named_f(lambda p: wrong(p["a"]))
    assert message(GradientError, check_grads, f, ({"a": np.zeros(2)},)) == """\
the derivative of `f` is wrong at p['a'][0].

    messages.py:N    function(*args, **kwargs)

  given      2
  expected   1, by finite differences
  fix        look at the derivative rules it uses, or at a kink"""


def test_message_argument_by_keyword_that_cannot_be_mapped():
    f = vmap(lambda x, y: x + y)
    assert message(AxisError, f, fnp.ones(3), y=2.0).endswith(
        "fix        close over an argument by keyword that is not mapped")
    assert message(ShapeError, f, fnp.ones(3), y=fnp.ones(2)).endswith(
        "fix        in_axes=None for an argument that is not mapped\n"
        "             close over an argument by keyword that is not mapped")


def test_a_jacobian_by_nothing_is_empty():
    for jacobian in (jacfwd, jacrev):
        assert jacobian(lambda d: {"a": fnp.ones(2)})({}) == {"a": {}}
    assert jacfwd(lambda d: (1.0, "aux"), has_aux=True)({}) == ({}, "aux")


def test_what_jvp_and_jacfwd_give_beside_is_of_the_level_below():
    """Values of the jvp call were in it, and refused as leaked where they were used."""
    def f(x):
        return x ** 3, {"double": x * 2, "x": x, "n": 3, "name": "f"}
    x = fnp.array([1.0, 2.0, 3.0])
    for run in (lambda g: g(x), lambda g: fgrad.jit(lambda x: g(x)["double"] + g(x)["x"])(x)):
        for beside in (lambda x: fgrad.jvp(f, (x,), (x,), has_aux=True)[2],
                       lambda x: fgrad.jacfwd(f, has_aux=True)(x)[1]):
            got = run(beside)
            found = got["double"] + got["x"] if isinstance(got, dict) else got
            np.testing.assert_array_equal(np.asarray(found), [3, 6, 9])
    assert fgrad.jvp(f, (x,), (x,), has_aux=True)[2]["n"] == 3


def test_values_of_transformations_are_arrays():
    def kind(x):
        return x * (2 if isinstance(x, fgrad.Array) else 0)
    x = fnp.array([1.0, 2.0])
    for f in (fgrad.jit(kind), fgrad.vmap(kind), lambda x: fgrad.jvp(kind, (x,), (x,))[1],
              lambda x: fgrad.grad(lambda x: fnp.sum(kind(x)))(x) * x, kind):
        assert f(x).tolist() == [2, 4]
    assert not isinstance(np.ones(2), fgrad.Array) and not isinstance(1.0, fgrad.Array)


def test_what_may_hold_arrays_and_is_no_pytree_has_no_gradient():
    @dataclass
    class Model:
        w: float

    with pytest.raises(ArgumentError, match="model is a Model, which is neither"):
        grad(lambda model: model.w * 2)(Model(1.0))
    with pytest.raises(ArgumentError, match=r"p\['m'\] is a Model"):
        grad(lambda p: p["x"] * 2)({"x": 1.0, "m": Model(1.0)})
    assert grad(lambda p: p["x"] * 2)({"x": 1.0, "name": "m"})["name"] is None


def test_hessian_has_aux():
    found, aux = hessian(lambda x: (fnp.sum(x ** 3), {"x": x, "n": 5}), has_aux=True)(V)
    near(found, np.diag(6 * V))
    near(aux["x"], V)
    assert aux["n"] == 5


def test_make_ir_leaves_static_arguments_as_they_are():
    def repeated(x, n, shift):
        return sum(x for _ in range(n)) + shift
    for places in (1, -2, (1, 2)):
        program = make_ir(repeated, static_argnums=places)(V, 3, 2.0)
        assert len(program.inputs) == 2 - (places == (1, 2))
    near(run_program(program, V)[0], 3 * V + 2)


def test_static_arguments_of_make_ir_are_checked_as_those_of_jit():
    program = make_ir(lambda x, n: x.reshape(n, -1), static_argnums=-1)(fnp.ones(4), 2)
    assert [*program.out_types] == [ArrayType(F32, (2, 2))]
    with pytest.raises(ArgumentError, match="static_argnums=5 is out of range"):
        make_ir(lambda x, n: x, static_argnums=5)
    with pytest.raises(ArgumentError, match="static_argnames is a name"):
        fgrad.checkpoint(lambda x, n: x, static_argnames=3)
