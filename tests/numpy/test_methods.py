"""Operators, methods, NumPy's protocols, and the ways out of fgrad."""

import copy
import pickle

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import debug, grad, jit, make_ir, vmap
from fgrad.core import Array, Value
from fgrad.errors import DtypeError, FgradError, NanError, ShapeError
from fgrad.types import default_dtype
from tests.messages import COLUMNS, ENTRANCES

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)


def same(ours, theirs):
    assert isinstance(ours, Array)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-6)


def test_operators_agree_with_numpy_from_both_sides():
    x = fnp.array(X)
    for other in (x, X, 2, 2.0, np.float32(2), np.ones(3, np.float32)):
        theirs = np.asarray(other)
        same(x + other, X + theirs), same(other + x, theirs + X)
        same(x - other, X - theirs), same(other - x, theirs - X)
        same(x * other, X * theirs), same(other * x, theirs * X)
        same(x / other, X / theirs), same(other / x, theirs / X)
        same(x // other, X // theirs), same(other // x, theirs // X)
        same(x % other, X % theirs), same(other % x, theirs % X)
        same(x < other, X < theirs), same(other < x, theirs < X)
        same(x == other, X == theirs), same(x != other, X != theirs)
        same(x >= other, X >= theirs), same(other >= x, theirs >= X)
    same(-x, -X), same(+x, X), same(abs(x), abs(X)), same(x ** 2, X ** 2), same(2.0 ** x, 2.0 ** X)
    same(round(fnp.array([1.26]), 1), [1.3])
    q, r = divmod(x, 2)
    same(q, X // 2), same(r, X % 2)


def test_operators_of_integers_and_bools():
    i, b = fnp.array([1, 2, 3]), fnp.array([True, False, True])
    assert (i & 1).tolist() == [1, 0, 1] and (4 | i).tolist() == [5, 6,
                                                                  7] and (i ^ i).tolist() == [0, 0,
                                                                                              0]
    assert (1 << i).tolist() == [2, 4, 8] and (b & ~b).tolist() == [False] * 3
    assert (b | True).tolist() == [True] * 3 and (i / 2).dtype == np.float32
    assert (i // 2).dtype == (i + True).dtype == np.int32


def test_operators_of_two_arrays_are_seen_by_whoever_runs_them():
    x, y = fnp.array([1.0, 3e38]), fnp.array([2.0, 3e38])
    assert (x + y).tolist() == [3.0, np.inf]
    with pytest.raises(NanError, match="made inf in 1 of 2 elements, by the operation add"):
        debug.nans(lambda: x + y)()
    assert [eqn.op.name for eqn in make_ir(lambda: x + y)().eqns] == ["add"]


def test_operators_of_arrays_beside_a_tracer_or_another_type():
    x, one = fnp.array([1.0, 2.0]), fnp.array(1.0)
    assert grad(lambda a: fnp.sum(x * a + a * x))(x).tolist() == [2.0, 4.0]
    assert (x + one).tolist() == (x + np.float32(1)).tolist() == [2.0, 3.0]
    assert (one + one).shape == () and (one + one).dtype == x.dtype
    assert (x + fnp.array([1, 2])).dtype == x.dtype
    assert (fnp.array([1, 2]) / fnp.array([2, 4])).tolist() == [0.5, 0.5]
    with pytest.raises(ShapeError):
        x + fnp.ones(3)
    with pytest.raises(DtypeError):
        fnp.array([True]) - fnp.array([True])


@pytest.mark.parametrize("call", [lambda x: fnp.tanh("a"), lambda x: x @ fnp.ones(3),
                                  lambda x: fnp.add(x, fnp.ones(3))])
def test_errors_of_functions_and_operators_show_the_users_frames_only(call):
    with pytest.raises(FgradError) as caught:
        call(fnp.ones(2))
    stays = set() if COLUMNS else {name.rpartition("/")[2] for name in ENTRANCES}
    assert {entry.path.name for entry in caught.traceback} - stays == {"test_methods.py"}


def test_a_missing_argument_is_missed_by_the_function_of_its_name():
    with pytest.raises(TypeError, match=r"^tanh\(\) missing 1 required positional argument"):
        fnp.tanh()


def test_other_things_are_left_to_python():
    x = fnp.array([1.0])
    assert (x == None) is False and (x == "a") is False and (x != None) is True    # noqa: E711
    with pytest.raises(TypeError, match="unsupported operand"):
        x + None
    assert (x == [1.0]).tolist() == [True] and (x < (2.0,)).tolist() == [True]
    assert [0] * fnp.array(3) == [0, 0, 0]
    x += 1
    assert x.tolist() == [2.0]


def test_methods_agree_with_numpy():
    x = fnp.array(X)
    for name, args in [("sum", (0,)), ("mean", (1,)), ("max", ()), ("min", (0,)), ("prod", ()),
                       ("std", ()), ("var", (0,)),
                       ("argmax", (1,)), ("argmin", ()), ("cumsum", (0,)), ("cumprod", (1,)),
                       ("any", ()), ("all", (0,)),
                       ("ravel", ()), ("flatten", ()), ("squeeze", ()), ("swapaxes", (0, 1)),
                       ("repeat", (2, 0)), ("round", (1,)),
                       ("clip", (0, 2)), ("dot", (np.ones(3, np.float32),)), ("take", ([0, 1], 1)),
                       ("argsort", (0,)),
                       ("diagonal", ()), ("trace", ()), ("transpose", (1, 0)), ("reshape", (3, 2)),
                       ("reshape", ((3, -1),)),
                       ("astype", ("int32",)), ("copy", ())]:
        same(getattr(x, name)(*args), getattr(X, name)(*args))
    same(x.T, X.T), same(x.mT, X.T), same(fnp.sort(x), np.sort(X)), same(x.sort(0), np.sort(X, 0))
    assert (x.ndim, x.size, x.nbytes, x.itemsize, x.shape) == (2, 6, 24, 4, (2, 3))
    assert [v.item() for v in x.flat] == X.ravel().tolist()
    assert x[0, 0].item() == 1.0 and x.tolist() == X.tolist()
    assert x.item(1, 2) == x.item(5) == x.item((1, 2)) == -6.0
    assert float(x[0, 0]) == 1.0 and int(x[1, 0]) == 4 and bool(x[0, 0])
    assert range(5)[fnp.array(2)] == 2


def test_printed_forms():
    assert repr(fnp.array([1.0, 2.0])) == "Array([1., 2.], f32[2])"
    assert repr(fnp.array(3)) == "Array(3, i32[])"
    assert str(fnp.array([1, 2])) == "[1 2]" and f"{fnp.array(1.5):.3f}" == "1.500"
    html = fnp.array(X)._repr_html_()
    assert "f32[2,3]" in html and html.count("<tr>") == 2 and html.count("<td>") == 6
    assert "<pre>" in fnp.ones((2, 2, 2))._repr_html_()


def test_numpy_reads_a_view_that_cannot_be_written():
    x = fnp.array(X)
    view = np.asarray(x)
    assert view.base is not None and np.shares_memory(view, x.np) and not view.flags.writeable
    assert np.array(x).flags.writeable and np.asarray(x, dtype="float64").dtype == np.float64
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x, dtype="float64", copy=False)


def test_dlpack_gives_the_elements():
    x = fnp.array(X)
    np.testing.assert_array_equal(np.from_dlpack(x), X)
    assert not np.shares_memory(np.from_dlpack(x), x.np)
    assert x.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.asarray(fnp.array(memoryview(X))), X)


def test_arrays_are_pickled_and_copied():
    x = fnp.array(X)
    again = pickle.loads(pickle.dumps(x))
    same(again, X)
    for twin in (copy.deepcopy(x), copy.copy(x)):
        assert twin.tolist() == x.tolist() and twin.dtype is x.dtype
    assert x.__array_namespace__() is fnp and hash(x) == hash(x)


def test_numpy_functions_work_on_values():
    x = fnp.array(X)
    same(np.tanh(x), np.tanh(X)), same(np.mean(x, axis=0),
                                       X.mean(0)), same(np.ones((4, 2), "f4") @ x,
                                                        np.ones((4, 2)) @ X)
    same(np.stack([x, x]), np.stack([X, X])), same(np.concatenate([x, X]), np.concatenate([X, X]))
    same(np.where(x > 0, x, 0), np.where(X > 0, X, 0)), same(np.einsum("ij->ji", x), X.T)
    same(np.linalg.norm(x), np.linalg.norm(X)), same(np.clip(x, 0, 1), np.clip(X, 0, 1))
    same(np.sum(x, axis=1, keepdims=True), X.sum(1, keepdims=True)), same(np.max(x), X.max())
    same(np.maximum(X, x), X), same(np.dot(x, X.T), X @ X.T), same(np.transpose(x),
                                                                   X.T), same(np.reshape(x, -1),
                                                                              X.ravel())
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6
    assert np.add(x, 1).dtype == np.float32 and np.power(x, 2).dtype == np.float32


def test_numpy_functions_are_differentiated_batched_and_compiled():
    def loss(x):
        return np.sum(np.tanh(x) ** 2 * np.arange(3.0, dtype="f4")) + np.stack([x[0],
                                                                                x[1] * 2]).sum()
    x = fnp.array([0.1, 0.2, 0.3])
    slope = grad(loss)(x)
    t = np.tanh(np.asarray(x))
    same(slope, 2 * t * (1 - t * t) * np.arange(3) + [1, 2, 0])
    same(jit(loss)(x), np.asarray(loss(x)))
    same(vmap(loss)(fnp.stack([x, x])), np.asarray(loss(x)).repeat(2))
    assert abs(grad(grad(np.tanh))(1.0).item() + 0.6397) < 1e-4


def test_defaults_follow_the_context():
    with default_dtype("float64"):
        assert fnp.array(1.0).dtype == fnp.zeros(2).dtype == fnp.mean([1, 2]).dtype == np.float64
        assert fnp.arange(3).dtype == np.int64 and fnp.argmax([1, 2]).dtype == np.int32
        assert (fnp.ones(2, "float32") + 1.0).dtype == np.float32
    assert fnp.array(1.0).dtype == np.float32


def test_every_public_function_has_a_docstring():
    lacking = [n for n in dir(fnp) if not n.startswith("_") and callable(getattr(fnp, n))
               and not getattr(fnp, n).__doc__]
    assert lacking == []
    assert len([n for n in dir(fnp) if callable(getattr(fnp, n)) and not n.startswith("_")]) > 120


# methods without arguments, and those that need some; the rest is about devices and copies
CALLS = {"sum": (), "prod": (), "mean": (), "var": (), "std": (), "max": (), "min": (), "all": (),
         "any": (), "argmax": (), "argmin": (), "cumsum": (), "cumprod": (), "ptp": (), "ravel": (),
         "flatten": (), "transpose": (), "round": (), "argsort": (), "sort": (), "diagonal": (),
         "trace": (), "conj": (), "conjugate": (), "squeeze": (), "copy": (), "swapaxes": (0, 1),
         "repeat": (2,), "clip": (0.1, 0.7), "dot": (np.ones(3),), "take": (np.array([2, 0]),),
         "reshape": (9,), "astype": ("float64",)}


def subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


def test_no_attribute_of_a_traced_value_hides_a_method():
    """x.var() in a jitted function found the variable that stands for x."""
    methods = {name for name in dir(Array) if callable(getattr(Value, name, None))}
    assert {"var", "sum", "take"} <= methods
    for cls in subclasses(Value):
        slots = {name for base in cls.__mro__ for name in getattr(base, "__slots__", ())}
        assert not slots & methods, cls


@pytest.mark.parametrize("name", CALLS)
def test_every_method_works_on_traced_values(name):
    x, args = fnp.array(np.random.default_rng(0).random((3, 3))), CALLS[name]
    def call(x):
        return getattr(x, name)(*args)
    want = np.asarray(call(x))
    np.testing.assert_allclose(np.asarray(jit(call)(x)), want, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(vmap(call)(fnp.stack([x, x])))[1], want, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(jit(vmap(call))(fnp.stack([x, x])))[1], want, rtol=1e-12)
    if want.dtype.kind == "f":
        slope = grad(lambda x: call(x).sum())
        np.testing.assert_allclose(np.asarray(jit(slope)(x)), np.asarray(slope(x)), rtol=1e-9)
