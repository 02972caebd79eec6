"""jit: equal to the function, one trace a signature, static arguments, donation, retraces."""

import copy
import enum
import functools
import gc
import os
import subprocess
import sys
import threading
import warnings
from collections import OrderedDict, defaultdict
from dataclasses import dataclass

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import pytree, random, signature, static, tree
from fgrad.compile import uncollected
from fgrad.core import Array
from fgrad.errors import (
    ArgumentError, ConcretizationError, DonationError, FgradWarning, RangeError)
from fgrad.jitted import Jitted, jit
from fgrad.transforms import grad, jvp, value_and_grad, vmap
from fgrad.types import default_dtype
from tests.at_once import at_once


def near(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6, atol=1e-6)


@dataclass(frozen=True)
class Frozen:
    size: object


def test_jit_gives_what_the_function_gives():
    def f(params, x):
        return {"y": fnp.tanh(x @ params["w"]) + params["b"], "n": 3}
    params = {"w": fnp.arange(6.0).reshape(3, 2) / 6, "b": fnp.ones(2)}
    x = fnp.linspace(0, 1, 12).reshape(4, 3)
    a, b = f(params, x), jit(f)(params, x)
    near(a["y"], b["y"])
    assert b["n"].dtype == np.int32 and int(b["n"]) == 3


@pytest.mark.parametrize("n", [0, 1, 2, 7, 16, 33])
def test_results_of_every_length_are_right(n):
    x = np.linspace(-1, 1, n, dtype=np.float32)
    near(jit(lambda x: fnp.exp(x) * x + fnp.sum(x))(x), np.exp(x) * x + np.sum(x))


def test_a_second_call_finds_the_trace_and_makes_calls_native():
    calls, native = [], []

    @jit
    def f(x):
        calls.append(1)
        return x + 1
    x = fnp.ones(3)
    for given in (x, x, x, np.ones(3, np.float32)):
        near(f(given), np.full(3, 2))
        native.append("builtin" in type(type(f).__call__).__name__)
    assert len(calls) == 1
    assert native == [False, True, True, True]


def is_native(f):
    return type(f).__call__ is not type(f).call


def test_python_ints_and_bools_leave_calls_native():
    """They took fifty microseconds."""
    f = jit(lambda x, n, keep: fnp.where(keep, x * n, -x))
    for n in (3, 2, -1, 0, 2 ** 62, -2 ** 63, True + 1):
        for keep in (True, False):
            near(f(fnp.ones(2, "float64"), n, keep), np.full(2, float(n if keep else -1)))
    assert f.cache_info() == (1, 1, 1)           # one call found the trace, the later ones no more
    for beyond in (2 ** 63, -2 ** 70):
        with pytest.raises(RangeError, match="does not fit into i64"):
            f(fnp.ones(2, "float64"), beyond, True)


@pytest.mark.filterwarnings("ignore::fgrad.errors.FgradWarning")
def test_arguments_by_name_leave_calls_native():
    """They took fifty microseconds."""
    @jit
    def f(x, y=1.0, *, z, more=None):
        return x + 10 * y + 100 * z + (0 if more is None else 1000 * more)
    one = fnp.ones(2)
    for _ in range(4):
        near(f(one, one, z=one), np.full(2, 111))
        near(f(one, z=one, y=2 * one), np.full(2, 121))
        near(f(z=2 * one, x=one, y=2.0), np.full(2, 221))
        near(f(one, z=3), np.full(2, 311))
        near(f(one, z=one, more=one), np.full(2, 1111))
    assert f.cache_info() == (5, 5, 5)
    for wrong in (lambda: f(one, w=one), lambda: f(one), lambda: f(one, z=one, w=one)):
        with pytest.raises(TypeError):
            wrong()


def test_static_and_donated_arguments_by_name_leave_calls_native():
    f = jit(lambda x, *, n, state: [x * n, state + 1], static_argnames="n",
            donate_argnames="state")
    for n in (2, 3, 2, 3, 2, 3, 2, 3):
        state = fresh(2)
        product, new = f(fnp.ones(2), state=state, n=n)
        near(product, np.full(2, n))
        near(new, np.full(2, 2))
        with pytest.raises(DonationError):
            state + 1
    assert f.cache_info() == (2, 2, 2)


@pytest.mark.filterwarnings("ignore::fgrad.errors.FgradWarning")
@pytest.mark.parametrize("make", [
    lambda x: {0: x, 7: [x]}, lambda x: {("a", 1): x, ("b", 2): (x,)},
    lambda x: OrderedDict(b=x, a=x), lambda x: defaultdict(list, b=x, a=[x]),
    lambda x: [OrderedDict(), {"w": {1: x}}, defaultdict(int, {3: x})]])
def test_dicts_of_every_kind_leave_calls_native(make):
    f = jit(lambda t, n: tree.map(lambda a: a + n, t))
    for n in range(4):
        given = make(fnp.ones(2))
        out = f(given, n)
        assert tree.structure(out) == tree.structure(given)
        assert all(leaf.tolist() == [n + 1] * 2 for leaf in tree.leaves(out))
    assert f.cache_info() == (1, 1, 1)


def test_an_ordered_dict_in_another_order_is_given_back_in_that_order():
    f = jit(lambda t: tree.map(lambda a: a + 1, t))
    for names in ("ab", "ab", "ab", "ba", "ba", "ba", "ab"):
        out = f(OrderedDict((name, fnp.ones(2)) for name in names))
        assert [*out] == [*names]


def test_numpys_arrays_with_strides_leave_calls_native():
    f = jit(lambda x, y: (x @ y, x, y))
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    for k in range(5):
        product, x, y = f(data[:, :-1], data.T[:3])
        near(product, data[:, :-1] @ data.T[:3])
        data += 1                                # what was given back is nobody's but ours
        near(x, data[:, :-1] - 1)
        near(y, data.T[:3] - 1)
    near(f(np.eye(3, dtype=np.float32), fnp.ones((3, 3)))[0], np.ones((3, 3)))
    assert f.cache_info() == (1, 1, 1)
    assert f(data[:, :-1].astype(int), data.T[:3])[1].dtype == np.int64


def test_equal_static_values_leave_calls_native():
    """They took fifty microseconds where they were not one object."""
    f = jit(lambda x, s: x.reshape(s), static_argnums=1)
    for _ in range(3):
        assert f(fnp.ones(6), tuple([2, 3])).shape == (2, 3)
    before = f.cache_info().hits                 # which counts calls that went through Python
    assert f(fnp.ones(6), tuple([2, 3])).shape == (2, 3) and f.cache_info().hits == before
    assert f(fnp.ones(6), (3, 2)).shape == (3, 2)
    g = jit(lambda x, s: x * s[0], static_argnums=1)
    for value in (2, 2, 2, 2.5, True, 2.0, 2):
        out = g(fnp.arange(2), (value,))
        assert out.dtype == (np.float32 if isinstance(value, float) else np.int32)


def test_arrays_of_bf16_leave_calls_native():
    f = jit(lambda x, y: (x * 2, y + 1, {"x": x, "sum": x.sum()}))
    for k in range(5):
        x = fnp.full(3, k, "bfloat16")
        two, more, same = f(x, fnp.ones(2))
        assert two.dtype == same["x"].dtype == same["sum"].dtype == fnp.bfloat16
        assert two.tolist() == [2.0 * k] * 3 and more.tolist() == [2, 2]
        assert same["x"].tolist() == [k] * 3 and float(same["sum"]) == 3 * k
        near(f(fnp.full(3, k), fnp.ones(2))[0], np.full(3, 2 * k))
    assert f.cache_info() == (2, 2, 2)
    step = jit(lambda w, g: w - g, donate_argnums=0)
    for _ in range(4):
        w = fnp.ones(3, "bfloat16")
        assert step(w, fnp.ones(3, "bfloat16")).tolist() == [0, 0, 0]
        with pytest.raises(DonationError):
            w + 1


@pytest.mark.filterwarnings("ignore::fgrad.errors.FgradWarning")
def test_calls_in_blocks_of_other_rules_are_native_too():
    """They took fifty microseconds."""
    f, whole = jit(lambda x: x / 2), np.arange(3)
    for _ in range(3):
        with default_dtype("float64"):
            for _ in range(3):
                assert f(whole).dtype == np.float64
            assert is_native(f) and f.cache_info().misses <= 2
            with fgrad.disable_jit():
                assert f.function(whole).dtype == f(whole).dtype == np.float64
        for _ in range(3):
            assert f(whole).dtype == np.float32
    entry = type(f).__call__
    with fgrad.strict_promotion():
        assert type(f).__call__ is not entry     # it knew the usual rules only
    assert f(whole).dtype == np.float32 and f.cache_info().misses == 2


def test_entries_of_blocks_do_not_reach_other_threads():
    f, whole, seen = jit(lambda x: x / 2), np.arange(3), []
    inside, outside = threading.Event(), threading.Event()

    def other():
        inside.wait()
        seen.extend(str(f(whole).dtype) for _ in range(4))
        outside.set()
    thread = threading.Thread(target=other)
    thread.start()
    with default_dtype("float64"):
        before = [str(f(whole).dtype) for _ in range(4)]
        inside.set()
        outside.wait()
        after = [str(f(whole).dtype) for _ in range(4)]
    thread.join()
    assert before == after == ["float64"] * 4 and seen == ["float32"] * 4


def test_a_function_without_jit_is_not_shadowed_by_its_entries():
    calls = []
    f = jit(lambda x: calls.append(1) or x + 1)
    with default_dtype("float64"):
        for _ in range(4):
            f(fnp.ones(2))
        assert len(calls) == 1 and is_native(f)
        with fgrad.disable_jit():
            f(fnp.ones(2)), f(fnp.ones(2))
        assert len(calls) == 3


def test_static_values_are_told_apart_however_deep():
    """They were not where they were tuples in tuples, equal but of other types, or of other signs.
    """
    f = jit(lambda x, s: x * 0 + s[0][0], static_argnums=1)
    assert [f(fnp.arange(1), ((v,),)).dtype for v in (1, 1.0, True)] == ["i4", "f4", "i4"]
    g = jit(lambda x, s: 1 / (x * s[0][0]), static_argnums=1)
    assert [float(g(fnp.ones(()), ((v,),))) for v in (0.0, -0.0)] == [np.inf, -np.inf]


def test_several_signatures_stay_native_side_by_side():
    f = jit(lambda x: x * 2)
    values = [fnp.ones(n) for n in range(1, 6)] + [fnp.ones(2, "float64"), fnp.arange(3)]
    for _ in range(3):
        for v in values:
            out = f(v)
            assert out.dtype == v.dtype
            near(out, 2 * np.asarray(v))
    assert f.cache_info().misses == len(values)


@pytest.mark.filterwarnings("ignore::fgrad.errors.FgradWarning")
def test_functions_of_many_signatures_stay_native():
    """Beyond eight they took fifty microseconds."""
    f = jit(lambda t, x: t["w"] * x.sum())
    for _ in range(4):
        for n in range(20):
            near(f({"w": fnp.ones(3)}, np.ones(n, np.float32)), np.full(3, n))
    assert f.cache_info() == (20, 20, 20)
    for n in range(40):                          # more than there are entries for
        near(f({"w": fnp.ones(2)}, np.ones(n, np.float32)), np.full(2, n))
        near(f({"w": fnp.ones(2)}, np.ones(n, np.float32)), np.full(2, n))


def test_a_python_number_mixes_like_a_number():
    f = jit(lambda x, n: x * n)
    for x in (fnp.ones(2, "float16"), fnp.ones(2), fnp.ones(2, "float64")):
        assert f(x, 0.1).dtype == x.dtype
        near(np.asarray(f(x, 0.1), np.float32), np.asarray(x * 0.1, np.float32))
    assert f(fnp.arange(2), 2).dtype == np.int32


def test_numbers_do_not_retrace():
    f = jit(lambda x, n: x + n)
    for n in range(20):
        near(f(fnp.zeros(2), n), np.full(2, n))
    assert f.cache_info().misses == 1


def test_an_int_whose_value_is_needed_becomes_static():
    f = jit(lambda x, n: fnp.concatenate([x] * n))
    assert f(fnp.ones(2), 3).shape == (6,)
    assert f(fnp.ones(2), 2).shape == (4,)
    assert f(fnp.ones(2), 3).shape == (6,)
    assert f.cache_info().misses == 2


def test_a_float_or_an_array_in_the_place_of_a_static_int_is_traced():
    @jit
    def f(x, n):
        whole = np.dtype(getattr(n, "dtype", int)).kind == "i"
        return fnp.concatenate([x] * n) if whole else x * n
    assert f(fnp.ones(2), 3).shape == (6,)
    for k in range(12):
        near(f(fnp.ones(2), 0.5 * k), np.full(2, 0.5 * k))
    near(f(fnp.ones(2), np.full(2, 3, np.float32)), [3, 3])
    near(f(fnp.ones(2), fnp.full(2, 3.0)), [3, 3])
    assert f.cache_info().misses == 3


def test_an_int_needed_by_an_inner_jit_becomes_static_in_the_outer():
    inner = jit(lambda x, n: fnp.reshape(x, (n, -1)))
    outer = jit(lambda x, n: fnp.sum(inner(x, n), axis=0))
    assert outer(fnp.arange(6.0), 2).shape == (3,)
    assert outer(fnp.arange(6.0), 3).shape == (2,)


def test_a_ninth_value_of_such_an_int_is_an_error():
    f = jit(lambda x, n: fnp.concatenate([x] * n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FgradWarning)
        for n in range(1, 9):
            f(fnp.ones(1), n)
        with pytest.raises(ConcretizationError, match="has been compiled for 8 values of it"):
            f(fnp.ones(1), 9)


class Mode(enum.Enum):
    ADD = 1
    MUL = 2


@dataclass(frozen=True)
class Config:
    factor: int


def test_strings_enums_functions_and_frozen_objects_are_static():
    @jit
    def f(x, mode, op, config, name="plus"):
        y = op(x) * config.factor
        return y + 1 if mode is Mode.ADD and name == "plus" else y
    x = fnp.ones(2)
    near(f(x, Mode.ADD, fnp.exp, Config(3)), 3 * np.e + 1)
    near(f(x, Mode.MUL, fnp.exp, Config(3)), 3 * np.e)
    near(f(x, Mode.ADD, np.tanh, Config(2), name="other"), 2 * np.tanh(1))
    assert f.cache_info().misses == 3


def test_none_and_nested_containers_are_structure():
    @jit
    def f(tree, y=None):
        return tree["a"][0] if y is None else tree["a"][0] + y
    near(f({"a": [fnp.ones(2), None]}), np.ones(2))
    near(f({"a": [fnp.ones(2), None]}, fnp.ones(2)), 2 * np.ones(2))


def test_static_argnums_and_argnames():
    f = jit(lambda x, n: x * n, static_argnums=1)
    near(f(fnp.ones(2), 3), [3, 3])
    g = jit(lambda x, shape: fnp.zeros(shape) + x, static_argnames="shape")
    assert g(1.0, shape=(2, 3)).shape == (2, 3) == g(1.0, (2, 3)).shape


@pytest.mark.parametrize("first, second", [
    ((2,), (2.0,)), (0.0, -0.0), (Frozen(2), Frozen(2.0)), (frozenset({1}), frozenset({True}))])
def test_static_values_that_are_equal_in_another_type_are_others(first, second):
    f = jit(lambda x, value: x + len(repr(value)), static_argnames="value")
    for value in (first, second, first):
        for _ in range(3):
            assert f(0, value=value).item() == len(repr(value))
            assert f(0, value).item() == len(repr(value))
    assert f.cache_info().size == 4


def test_a_static_field_of_another_type_is_another():
    @pytree
    class Scaled:
        x: object
        by: object = static(default=2)
    f = jit(lambda s: s.x * s.by)
    kinds = [f(Scaled(fnp.arange(3), by)).dtype for by in (2, 2.0, 2, 2.0)]
    assert kinds == ["int32", "float32"] * 2


def test_an_unhashable_static_argument_is_explained():
    with pytest.raises(ArgumentError) as error:
        jit(lambda x, sizes: x, static_argnames="sizes")(1.0, [1, 2])
    assert str(error.value) == (
        "the static argument sizes cannot be hashed, so no compiled version can be looked up by "
        f"it.\n\n    test_jitted.py:{line_of('[1, 2])')}    "
        "jit(lambda x, sizes: x, static_argnames=\"sizes\")(1.0, [1, 2])\n\n"
        "  given      sizes: list [1, 2]\n"
        "  fix        pass a tuple instead of a list\n"
        "             or a frozen dataclass instead of a mutable object")


def line_of(text):
    """The number of the first line of this file that ends so."""
    with open(__file__) as file:
        return next(k for k, line in enumerate(file, 1) if line.rstrip().endswith(text))


def test_a_mutable_object_is_refused_with_the_decorator_to_use():
    class Model:
        pass
    with pytest.raises(ArgumentError, match="neither an array nor a fixed value") as error:
        jit(lambda m, x: x)(Model(), 1.0)
    assert "@fgrad.pytree" in str(error.value)


def test_a_static_parameter_that_does_not_exist_is_named():
    with pytest.raises(ArgumentError, match="static_argnames='z'"):
        jit(lambda x: x, static_argnames="z")
    with pytest.raises(ArgumentError, match="donate_argnums=3 is out of range"):
        jit(lambda x: x, donate_argnums=3)


def test_methods_of_pytrees_can_be_jitted():
    @tree.pytree
    class Scale:
        factor: Array

        @jit
        def __call__(self, x):
            return self.factor * x
    near(Scale(fnp.array(3.0))(fnp.ones(2)), [3, 3])


def test_closed_over_arrays_are_no_part_of_the_code():
    made = []
    for value in (1.0, 2.0):
        array = fnp.full(100, value)
        f = jit(lambda x: x + array)
        near(f(fnp.zeros(100)), np.full(100, value))
        made.append(f)
    texts = {f.lower(fnp.zeros(100)).text("llvm") for f in made}
    assert len(texts) == 1


def test_jit_inside_grad_inside_jit():
    inner = jit(lambda x: fnp.tanh(x) * x)
    f = lambda x: fnp.sum(inner(x) ** 2)
    x = fnp.linspace(-1, 1, 5)
    near(jit(grad(f))(x), grad(lambda x: fnp.sum((fnp.tanh(x) * x) ** 2))(x))
    near(grad(jit(f))(x), jit(grad(f))(x))
    near(grad(lambda v: fnp.sum(jit(grad(f))(v)))(x), grad(lambda v: fnp.sum(grad(f)(v)))(x))


def test_vmap_of_jit_of_grad():
    f = jit(grad(lambda w, x: fnp.tanh(fnp.dot(w, x))))
    w, xs = fnp.ones(3), fnp.arange(12.0).reshape(4, 3) / 12
    near(vmap(f, (None, 0))(w, xs), np.stack([np.asarray(f(w, x)) for x in xs]))


def test_a_closed_over_tracer_of_an_outer_transform_is_differentiated():
    f = lambda y: jit(lambda x: x * y)(3.0)
    near(grad(f)(2.0), 3.0)
    near(jvp(f, (2.0,), (1.0,))[1], 3.0)


@pytest.fixture(params=[0, 3], ids=["first call", "later calls"])
def practise(request):
    """practise(f, make): calls f with what make() gives, so often that later calls have an entry.
    """
    def called(f, make):
        for _ in range(request.param):
            f(*make())
        assert is_native(f) == bool(request.param)
    return called


def fresh(n=1000):
    """An Array whose memory is its own."""
    return fnp.array(np.ones(n, np.float32))


def test_donated_memory_is_taken_over_and_the_argument_is_gone(practise):
    f = jit(lambda x, y: x * 2 + y, donate_argnums=0)
    practise(f, lambda: (fresh(), fresh()))
    x, y = fnp.ones(1000) * 1, fnp.ones(1000)
    pointer = x.np.__array_interface__["data"][0]
    out = f(x, y)
    near(out, np.full(1000, 3))
    assert out.np.__array_interface__["data"][0] == pointer
    with pytest.raises(DonationError, match="after its memory had been donated"):
        x + 1
    near(y, np.ones(1000))


def test_donated_memory_that_somebody_else_sees_is_copied(practise):
    f = jit(lambda x: x * 2, donate_argnames="x")
    practise(f, lambda: (fresh(),))
    x = fnp.ones(1000) * 1
    view = np.asarray(x)
    near(f(x), np.full(1000, 2))
    near(view, np.ones(1000))
    mine = np.ones(10, np.float32)
    near(f(mine), np.full(10, 2))
    near(mine, np.ones(10))


def between_lines(n):
    """Ones whose memory is their own, and begins in the middle of a line of the cache."""
    memory = np.zeros(n * 4 + 128, np.uint8)
    start = -memory.__array_interface__["data"][0] % 64 + 16
    ones = memory[start:start + n * 4].view(np.float32)
    ones[...] = 1
    return Array(ones)


def test_what_is_donated_lies_at_a_line_of_the_cache_from_its_first_call_on():
    f = jit(lambda x: x * 2, donate_argnums=0)
    x = between_lines(20_000)
    out = f(x)
    near(out, np.full(20_000, 2))
    assert out.np.__array_interface__["data"][0] % 64 == 0
    with pytest.raises(DonationError, match="after its memory had been donated"):
        x + 1


class Lent:
    """An array of another library, which keeps its memory."""

    def __init__(self, memory):
        self.__array_interface__ = memory.__array_interface__
        self.memory = memory


@pytest.mark.parametrize("size", [1000, 20000])
def test_donated_memory_that_is_part_of_another_array_is_copied(size, practise):
    """It was overwritten: an array's slices, and what `asarray` makes of NumPy's, share memory."""
    f = jit(lambda x: x * 2, donate_argnums=0)
    practise(f, lambda: (fresh(9),))
    whole, mine = fnp.ones(size) * 1, np.ones(size, np.float32)
    words = np.frombuffer(bytearray(mine.tobytes()), np.float32)
    plus = jit(lambda x: x + 1)
    results = [plus(fnp.zeros(size)) for _ in range(3)]          # the third call is a native one
    lent = [fnp.asarray(x[:9]) for x in (mine, np.from_dlpack(mine), words)]
    for part in (whole[:9], *lent, fnp.asarray(Lent(mine[:9])), *[x[:9] for x in results]):
        np.testing.assert_array_equal(np.asarray(f(part)), 2)
    for kept in (whole, mine, words, *results):
        np.testing.assert_array_equal(np.asarray(kept), 1)


@pytest.mark.parametrize("size", [1000, 20000, 1 << 18])
def test_memory_that_is_an_arrays_own_is_taken_over(size, practise):
    f, plus = jit(lambda x: x * 2, donate_argnums=0), jit(lambda x: x + 1)
    practise(f, lambda: (fresh(size),))
    for make in (lambda: fnp.array(np.ones(size, np.float32)),
                 *[lambda: plus(fnp.zeros(size))] * 4):          # the later ones are native calls
        x = make()
        pointer = x.np.__array_interface__["data"][0]
        assert f(x).np.__array_interface__["data"][0] == pointer


def test_an_array_donated_twice_is_given_away_once(practise):
    f = jit(lambda x, y: (x * 2, y + 1), donate_argnums=(0, 1))
    practise(f, lambda: (fresh(), fresh()))
    x = fnp.ones(1000) * 1
    a, b = f(x, x)
    near(a, np.full(1000, 2))
    near(b, np.full(1000, 2))
    with pytest.raises(DonationError):
        np.asarray(x)


def test_a_donated_array_that_is_another_argument_or_closed_over_is_copied(practise):
    closed = fresh()
    f = jit(lambda x, y: (x * 2, y + closed), donate_argnums=0)
    practise(f, lambda: (fresh(), fresh()))
    x = fresh()
    two, more = f(x, x)
    near(two, np.full(1000, 2))
    near(more, np.full(1000, 2))
    for _ in range(2):
        with pytest.raises(DonationError):
            f(x, fresh())
    near(f(closed, fresh())[0], np.full(1000, 2))
    with pytest.raises(DonationError):
        closed + 1


@pytest.mark.parametrize("function", [lambda x: x, lambda x: (x, x), lambda x: (), lambda x: None,
                                      lambda x: {"n": 2, "x": x}])
def test_what_gives_back_its_argument_or_nothing_gives_it_away_all_the_same(function):
    f, plain = jit(function, donate_argnums=0), jit(function)
    for k in range(4):
        x = fnp.full(3, k)
        out = f(x)
        assert tree.structure(out) == tree.structure(plain(fnp.full(3, k)))
        assert all(leaf.tolist() in ([k] * 3, 2) for leaf in tree.leaves(out))
        with pytest.raises(DonationError):
            x + 1
    assert f.cache_info() == (1, 1, 1)


def test_donated_trees_are_given_away_whole_and_others_kept(practise):
    def step(params, state, x):
        return {"w": params["w"] - x, "b": params["b"]}, (state[0] + 1,)
    f = jit(step, donate_argnums=(0, 1))

    def make():
        return {"w": fresh(), "b": fresh(3)}, (fnp.zeros(()),), np.ones(1000, np.float32)
    practise(f, make)
    (params, state, x), pointer = make(), None
    for k in range(4):
        before = params
        params, state = f(params, state, x)
        near(params["w"], np.full(1000, -k))
        assert float(state[0]) == k + 1 and params["b"].tolist() == [1, 1, 1]
        where = params["w"].np.__array_interface__["data"][0]
        assert pointer in (None, where)
        pointer = where
        for gone in before.values():
            with pytest.raises(DonationError):
                gone + 1
    near(x, np.ones(1000))
    mine = np.ones(1000, np.float32)
    f({"w": mine, "b": fresh(3)}, (1.0,), x)
    near(mine, np.ones(1000))


def test_memory_donated_step_after_step_stays_in_place(practise):
    step = jit(lambda x: x * 2, donate_argnums=0)
    practise(step, lambda: (fresh(),))
    first = fnp.ones(1000) * 1
    pointer = first.np.__array_interface__["data"][0]
    second = step(first)
    third = step(second)
    assert third.np.__array_interface__["data"][0] == pointer
    near(third, np.full(1000, 4))


@pytest.mark.parametrize("size", [3, 20000])
def test_results_do_not_share_the_memory_of_numpys_arrays(size):
    """They did: a loop that filled its batch anew changed what it had been given back."""
    f = jit(lambda x, y: (x, y + 1, {"x": x}))
    given, y = np.ones(size, np.float32), fnp.zeros(size)
    for k in range(4):
        given[:] = k
        first, other, rest = f(given, y)
        given[:] = -1
        near(first, np.full(size, k))
        near(rest["x"], np.full(size, k))
        near(other, np.ones(size))
    assert f(y, y)[0].np is y.np


def test_an_output_that_is_an_input_is_given_back():
    x = fnp.ones(3)
    a, b = jit(lambda x: (x, x))(x)
    near(a, x)
    near(b, x)


def test_the_fifth_trace_gives_one_notice_that_says_what_changed():
    f = jit(lambda batch: fnp.sum(batch["x"]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(1, 8):
            f({"x": fnp.ones((n, 8))})
    ours = [str(w.message) for w in caught if issubclass(w.category, FgradWarning)]
    assert len(ours) == 1
    assert "traced 5 times; argument `batch['x']` changed shape f32[4,8] -> f32[5,8]" in ours[0]


@pytest.mark.parametrize("values, advice", [
    ([0.1, 0.2, 0.3, 0.4, 0.5], "give a static argument few values"),
    ([lambda: k for k in range(5)], "give it the same function object each time")])
def test_the_notice_of_a_static_value_that_changes_is_about_values(values, advice):
    f = jit(lambda x, lr: x, static_argnames="lr")
    with pytest.warns(FgradWarning, match=advice):
        for value in values:
            f(1.0, lr=value)


def test_max_traces_makes_a_retrace_an_error():
    f = jit(lambda x: x, max_traces=1)
    f(fnp.ones(2))
    with pytest.raises(ConcretizationError, match="may be traced 1 time,.*changed shape"):
        f(fnp.ones(3))


def test_a_refused_trace_is_not_counted_and_the_next_message_says_the_same():
    f = jit(lambda x: x, max_traces=1)
    f(fnp.ones(2))
    for _ in range(2):
        with pytest.raises(ConcretizationError, match="changed shape"):
            f(fnp.ones(3))
    assert f.cache_info().misses == 1


def test_a_retrace_for_what_is_closed_over_says_so():
    closed = []
    f = jit(lambda x: x * closed[-1])

    def g(w):
        closed.append(w)
        return f(3.0)
    near([grad(g)(1.0), grad(g)(2.0)], [3, 3])
    assert "2. it closes over a value of a transformation around it" in f.explain()


def test_a_changed_default_dtype_is_named_as_the_reason():
    f = jit(lambda x: x + 1)
    f(fnp.ones(2))
    with default_dtype("float64"):
        f(fnp.ones(2, "float32"))
    assert "the default dtype changed f32 -> f64" in f.explain()


def test_explain_and_cache_info_and_clear_cache():
    f = jit(lambda x: x + 1)
    f(fnp.ones(2)), f(fnp.ones(2, "float64"))
    assert f.cache_info()[1:] == (2, 2)
    assert "changed dtype f32[2] -> f64[2]" in f.explain()
    f.clear_cache()
    assert f.cache_info()[1:] == (0, 0)
    near(f(fnp.ones(2)), [2, 2])


def test_default_dtype_is_seen_by_functions_compiled_before():
    f = jit(lambda x: x + fnp.zeros(2))
    x = fnp.ones(2)
    assert [f(x).dtype for _ in range(3)] == [np.float32] * 3
    with default_dtype("float64"):
        assert [f(x).dtype for _ in range(3)] == [np.float64] * 3
    assert [f(x).dtype for _ in range(3)] == [np.float32] * 3


def test_a_thread_with_another_default_dtype_is_not_given_native_code_of_this_one():
    f = jit(lambda x: x + fnp.zeros(2))
    x, found = fnp.ones(2), []
    inside, compiled = threading.Event(), threading.Event()

    def work():
        with default_dtype("float64"):
            inside.set()
            compiled.wait()
            found.append(f(x).dtype)
    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    assert [f(x).dtype for _ in range(3)] == [np.float32] * 3
    compiled.set()
    thread.join()
    assert found == [np.float64]


def test_threads_that_trace_one_signature_at_once_make_one_trace():
    barrier = threading.Barrier(4)
    met = []

    def slow(x):
        met.append(barrier.wait(10))
        return x + 1
    f, errors = jit(slow, max_traces=1), []

    def work():
        try:
            near(f(fnp.ones(3)), np.full(3, 2))
        except ConcretizationError as error:
            errors.append(error)
    at_once(work, *[()] * 4)
    assert len(met) == 4 and not errors
    assert f.cache_info().misses == 1


def test_a_jitted_function_is_copied_and_pickled_like_a_function():
    assert copy.deepcopy(twice) is twice
    assert copy.copy(twice) is twice


@jit
def twice(x):
    return x * 2


def test_an_error_while_tracing_leaves_the_function_usable():
    fail = [True]

    @jit
    def f(x):
        if fail[0]:
            raise RuntimeError("no")
        return x + 1
    with pytest.raises(RuntimeError):
        f(1.0)
    fail[0] = False
    near(f(1.0), 2.0)


def test_threads_share_a_jitted_function():
    f = jit(lambda x: fnp.sum(fnp.exp(x) @ fnp.exp(x).T, axis=0))
    xs = [fnp.ones((20, n)) / n for n in range(1, 5)]
    want = [np.asarray(fnp.sum(fnp.exp(x) @ fnp.exp(x).T, axis=0)) for x in xs]
    wrong = []

    def work():
        for _ in range(30):
            for x, y in zip(xs, want):
                if not np.allclose(np.asarray(f(x)), y, rtol=1e-5):
                    wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_jitted_function_can_be_collected():
    before = sum(isinstance(o, Jitted) for o in gc.get_objects())
    for _ in range(3):
        f = jit(lambda x: x + 1)
        f(fnp.ones(2)), f(fnp.ones(2))
    del f
    gc.collect()
    assert sum(isinstance(o, Jitted) for o in gc.get_objects()) <= before + 1


def test_without_the_native_entry_everything_is_the_same():
    script = ("import numpy as np, fgrad.numpy as fnp; from fgrad.jitted import jit;"
              "f = jit(lambda x: x + 1);"
              "x = fnp.ones(2); f(x); print(np.asarray(f(x)), type(f).__call__)")
    env = {**os.environ, "FGRAD_NATIVE_CALL": "0"}
    out = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True,
                         check=True).stdout
    assert out.startswith("[2. 2.]") and "built-in" not in out


def test_the_second_process_takes_the_code_from_disk(tmp_path):
    script = ("import fgrad.numpy as fnp; from fgrad.jitted import jit;"
              "f = jit(lambda x: fnp.tanh(x) + 1); f(fnp.ones(100));"
              "import sys; print('llvmlite' in sys.modules)")
    env = {**os.environ, "FGRAD_CACHE": str(tmp_path / "cache")}
    runs = [subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True,
                           check=True)
            for _ in range(2)]
    assert [run.stdout for run in runs] == ["True\n", "False\n"]


def test_partial_and_wrapped_functions_keep_their_names():
    @jit
    def named(x):
        """What it is."""
        return x
    assert named.__name__ == "named" and named.__doc__ == "What it is."
    near(jit(functools.partial(lambda a, x: a * x, 3.0))(2.0), 6.0)


def test_value_and_grad_with_aux_under_jit():
    f = jit(value_and_grad(lambda w: (fnp.sum(w * w), {"n": w + 1}), has_aux=True))
    (value, aux), gradient = f(fnp.ones(2))
    near(value, 2)
    near(aux["n"], [2, 2])
    near(gradient, [2, 2])


def test_keys_of_equal_calls_are_equal():
    def key(*args):
        return signature.take_apart(args, {}, {}, str).keys
    assert key(fnp.ones(2), 1.0, "a") == key(np.zeros(2, np.float32), 2.0, "a")
    assert key(1) != key(1.0) != key(True)


def test_jit_of_something_that_is_no_function_says_so():
    with pytest.raises(ArgumentError, match="jit takes a function"):
        jit(3)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_rests_while_something_compiles_and_only_then(enabled):
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(RuntimeError), uncollected():
            with uncollected():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise RuntimeError
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()


# ---------------------------------------------------------------------------- keys and classes


def python_calls(f, *args):
    """The names of the Python functions that a call runs."""
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name)
                   if event == "call" else None)
    try:
        f(*args)
    finally:
        sys.setprofile(None)
    return names


@pytree
class Layer:
    w: object
    b: object = 0.5
    act: object = static(default=fnp.tanh)


class Watched:
    """A node whose attribute is made anew whenever it is asked for."""

    def __init__(self, x):
        self.hidden = x

    @property
    def x(self):
        return self.hidden + 1


tree.register_node(Watched, lambda n: ((n.x,), None), lambda _, xs: Watched(xs[0]),
                   fields=(("x",), ()))


def test_keys_and_instances_of_pytrees_are_arguments_of_native_calls():
    key, x = random.key(0), fnp.ones(3)
    layer = Layer(fnp.ones((3, 3)))
    calls = [(jit(lambda k, x: random.uniform(k, (3,)) + x), (key, x)),
             (jit(lambda l, x: l.act(x @ l.w + l.b)), (layer, x)),
             (jit(lambda s, x: s["layers"][0].b * x + random.normal(s["key"], (3,))),
              ({"layers": [layer, layer], "key": key}, x))]
    for f, args in calls:
        want = np.asarray(f(*args))
        for _ in range(2):
            f(*args)
        assert python_calls(f, *args) == []
        np.testing.assert_array_equal(np.asarray(f(*args)), want)


def test_other_attributes_and_other_static_ones_are_seen():
    f, x = jit(lambda l, x: l.act(x @ l.w + l.b)), fnp.ones(3)
    one, other = Layer(fnp.ones((3, 3))), Layer(fnp.ones((3, 3)), act=fnp.sin)
    for _ in range(4):
        for layer in (one, other, Layer(fnp.zeros((3, 3)), b=2.0)):
            np.testing.assert_allclose(np.asarray(f(layer, x)),
                                       np.asarray(layer.act(x @ layer.w + layer.b)), rtol=1e-6)
    keys = random.split(random.key(3), 3)
    draw = jit(lambda k: random.bits(k, (2,)))
    for _ in range(3):
        drawn = [draw(k).tolist() for k in keys]
        assert drawn == [random.bits(random.clone(k), (2,)).tolist() for k in keys]


def test_attributes_that_are_made_when_asked_for_are_read_by_python():
    f, node = jit(lambda n: n.x * 2), Watched(fnp.ones(3))
    for _ in range(4):
        assert f(node).tolist() == [6.0] * 3
    assert python_calls(f, node)


# ---------------------------------------------------------------------------- given results

@pytree
@dataclass
class State:
    w: object
    rate: object


GIVEN_BACK = {
    "an argument": (lambda x, s: (x * 2, x), (1.0, 2.0)),
    "twice the same": (lambda x, s: (x * 2,) * 2, (1.0,)),
    "a number": (lambda x, s: (x * 2, 3, True), (1.0,)),
    "a constant": (lambda x, s: [fnp.arange(3), x + 1], (1.0,)),
    "a part of a state": (lambda x, s: {**s, "w": s["w"] * x}, {"w": 2.0, "n": [3.0, (4.0,)]}),
    "attributes": (lambda x, s: State(s.w - x * s.rate, s.rate), State(1.0, 0.5)),
    "all but one": (lambda x, s: (s, x, s, x + 1, 1.5), [1.0, 2.0]),
    "all": (lambda x, s: (s, x, 2), [1.0, 2.0]),
}


@pytest.mark.parametrize("kind", ["arrays", "ndarrays", "scalars", "floats"])
@pytest.mark.parametrize("name", GIVEN_BACK)
def test_results_that_are_given_are_given_back_by_native_calls_too(name, kind):
    """A state with a part that stays cost forty times what its arithmetic does."""
    f, state = GIVEN_BACK[name]
    leaf = {"arrays": lambda v: fnp.full(3, v), "ndarrays": lambda v: np.full(3, v, "float32"),
            "scalars": np.float32, "floats": float}[kind]
    g = jit(f)
    for k in range(5):
        x, s = leaf(0.5 + k), fgrad.tree.map(leaf, state)
        got, want = fgrad.tree.flatten(g(x, s)), fgrad.tree.flatten(f(x, s))
        assert got[1] == want[1]
        for a, b in zip(got[0], want[0]):
            assert isinstance(a, fgrad.Array)
            np.testing.assert_allclose(a, b, rtol=1e-6)
            assert a.dtype == fnp.asarray(b).dtype
        given = [y for y in fgrad.tree.leaves((x, s)) if isinstance(y, np.ndarray)]
        assert not any(np.shares_memory(np.asarray(a), y) for a in got[0] for y in given)
        assert len({id(a) for a in got[0]}) == len(got[0])


def test_what_is_given_back_may_be_donated():
    step = jit(lambda x, s: (x + 1, s, fnp.arange(3.0), x + 1))
    take = jit(lambda a: a * 0, donate_argnums=0)
    x, s = fnp.ones(3), fnp.full(3, 7.0)
    for _ in range(4):
        for got in step(x, s):
            take(got)
    assert s.tolist() == [7, 7, 7] and [a.tolist() for a in step(x, s)] == [
        [2, 2, 2], [7, 7, 7], [0, 1, 2], [2, 2, 2]]


def test_a_call_that_a_native_entry_does_not_know_goes_on_to_python():
    f = jit(lambda x, y=2.0: (x * y, x))
    x = fnp.ones(3)
    for _ in range(3):
        assert [a.tolist() for a in f(x)] == [[2, 2, 2], [1, 1, 1]]
        assert [a.tolist() for a in f(x, y=3.0)] == [[3, 3, 3], [1, 1, 1]]
        assert [a.tolist() for a in f(fnp.ones(2), 4.0)] == [[4, 4], [1, 1]]
        assert [a.tolist() for a in f(np.ones(1, "int32"))] == [[2.0], [1]]


def test_within_a_block_jitted_functions_are_plain_python():
    seen = []

    @jit
    def f(x, n=1):
        seen.append(type(x))
        return x * 2 + n
    x = fnp.ones(2)
    for _ in range(3):                           # from the second call on, natively
        f(x)
    seen.clear()
    with fgrad.disable_jit():
        assert f(x, n=2).tolist() == [4.0, 4.0] and f(1.5) == 4.0
        assert fgrad.grad(lambda x: fnp.sum(f(x)))(x).tolist() == [2.0, 2.0]
        assert seen[:2] == [Array, float] and len(seen) == 3
        with fgrad.disable_jit(False):
            f(x)
            assert len(seen) == 3
    assert f(x).tolist() == [3.0, 3.0] and len(seen) == 3
