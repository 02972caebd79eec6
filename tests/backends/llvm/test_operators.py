"""Operators of arrays in machine code do what the methods in Python do."""

import gc
import inspect
import operator
import sys
import traceback
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fgrad
from fgrad import numpy as fnp
from fgrad.backends.llvm import native_call, operators
from fgrad.backends.llvm.operators_text import MOST, NAMES
from fgrad.core import EVALUATE, Array, Value, _current, memory_of
from fgrad.numpy.native_operators import PYTHON, leave
from fgrad.types import BOOL, F32, F64, I32
from tests.at_once import at_once

BINARY = [name for name in NAMES if name != "__neg__"]
SHAPES = [(), (0,), (1,), (3,), (7,), (2, 0, 4), (1, 1), (5, 3), (2, 3, 5), (1,) * 12, (63,),
          (130,)]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, 5e-324, 3.4e38, -1.7e308, 0.1]
NUMBERS = [0, 1, -1, 2, 7, 2**24 + 1, 2**31 - 1, 2**31, -2**31, 2**53, 2**53 + 1, 2**63, 10**40,
           0.0, -0.0, 0.1, 1e-46, 1e39, np.inf, -np.inf, np.nan, True, 1j, "a", None]


@pytest.fixture(autouse=True, scope="module")
def native():
    """Arrays have their operators in machine code, and after the module those they had."""
    if not operators.possible(Array):
        pytest.skip("this interpreter's layouts are not known")
    before = {name: vars(Array).get(name) for name in NAMES}
    operators.attach(Array, PYTHON, _current, EVALUATE)
    yield
    leave()
    for name, method in before.items():
        if method is not None:
            setattr(Array, name, method)


def fallback(name):
    """The method in Python."""
    return getattr(Value, name)


def outcome(method, *args):
    """What a call gives, or the class and the text of what it raises."""
    try:
        return method(*args)
    except Exception as error:
        return error.__class__, str(error)


def assert_alike(ours, theirs):
    """The same type and bits, but for those of NaN; or the same error."""
    if not isinstance(theirs, Array):
        assert ours is theirs or ours == theirs
        return
    assert ours.__class__ is theirs.__class__ and ours.type == theirs.type
    a, b = np.asarray(memory_of(ours)), np.asarray(memory_of(theirs))
    assert ours.shape.__class__ is tuple and ours.shape == a.shape and a.dtype is b.dtype
    nan = np.isnan(b)
    assert np.array_equal(np.isnan(a), nan)
    assert np.where(nan, 0, a).tobytes() == np.where(nan, 0, b).tobytes()


def arrays(dtype, shape):
    """Arrays of a type, of any values."""
    size = int(np.prod(shape, dtype=int))
    if dtype is I32:
        one = st.one_of(st.integers(-2**31, 2**31 - 1), st.sampled_from([0, 1, -1, 2**31 - 1]))
    else:
        width = 8 * dtype.itemsize
        plain = [x for x in SPECIAL if dtype is F64 or not 0 < abs(x) < 1e-45 and (
            abs(x) < 1e39 or np.isinf(x) or np.isnan(x))]
        one = st.one_of(st.floats(width=width), st.sampled_from(plain))
    made = st.lists(one, min_size=size, max_size=size)
    return made.map(lambda xs: Array(np.array(xs).astype(dtype).reshape(shape)))


@given(st.data(), st.sampled_from([F32, F64, I32]), st.sampled_from(SHAPES))
def test_two_arrays_give_the_bits_of_python(data, dtype, shape):
    x, y = [data.draw(arrays(dtype, shape)) for _ in "xy"]
    for name in BINARY:
        assert_alike(getattr(x, name)(y), fallback(name)(x, y))
        assert_alike(getattr(x, name)(x), fallback(name)(x, x))
    assert_alike(-x, fallback("__neg__")(x))


@given(st.data(), st.sampled_from([F32, F64, I32]), st.sampled_from(SHAPES[:6]),
       st.one_of(st.floats(), st.integers(), st.integers(-2**33, 2**33), st.sampled_from(NUMBERS)))
def test_an_array_and_a_number_give_the_bits_of_python(data, dtype, shape, number):
    x = data.draw(arrays(dtype, shape))
    for name in BINARY:
        method = getattr(x, name)
        assert_alike(outcome(method, number), outcome(fallback(name), x, number))


@pytest.mark.parametrize("dtype", [F32, F64, I32], ids=str)
@pytest.mark.parametrize("size", [*range(34), 1000, MOST, MOST + 1, 3 * MOST])
def test_every_size_agrees_with_python(size, dtype):
    rng = np.random.default_rng(size)
    x, y = [Array((100 * rng.standard_normal(size) + 0.5).astype(dtype)) for _ in "xy"]
    for name in BINARY:
        assert_alike(getattr(x, name)(y), fallback(name)(x, y))
        assert_alike(getattr(x, name)(3), fallback(name)(x, 3))
    assert_alike(-x, fallback("__neg__")(x))


@st.composite
def shapes_that_spread(draw):
    """Two shapes of which one may be spread over the other, in most ways that there are."""
    whole = draw(st.lists(st.sampled_from([0, 1, 2, 3, 9]), max_size=4))
    other = [draw(st.sampled_from([n, n, 1])) for n in whole][draw(st.integers(0, len(whole))):]
    wrong = draw(st.sampled_from([False] * 9 + [True]))
    return tuple(whole), tuple(n + 1 for n in other) if wrong else tuple(other)


@given(shapes_that_spread(), st.sampled_from([F32, F64, I32]), st.integers(0, 2**32 - 1))
def test_shapes_that_differ_give_what_python_gives(shapes, dtype, seed):
    rng = np.random.default_rng(seed)
    x, y = [Array(np.asarray(10 * rng.standard_normal(s) + 0.5).astype(dtype)) for s in shapes]
    for name in BINARY:
        for a, b in ((x, y), (y, x), (x, y.np), (y, np.asarray(x.np))):
            assert_alike(outcome(getattr(a, name), b), outcome(fallback(name), a, b))


@pytest.mark.parametrize("small", [
    (), (5,), (1, 5), (4, 1), (4, 5), (1, 4, 1), (3, 1, 1), (3, 4, 1), (1, 1, 1), (1, 1, 5),
    (3, 1, 5), (3, 4, 5), (1, 3, 4, 5)])
def test_what_is_spread_runs_as_machine_code(small):
    x = Array(np.arange(1, 61, dtype=F32).reshape(3, 4, 5))
    y = Array(np.arange(7, 7 + np.prod(small, dtype=int), dtype=F32).reshape(small))
    native = small != (3, 1, 5)                  # which is left to Python
    for a, b in ((x, y), (y, x), (x, y.np)):
        for op in (operator.sub, operator.truediv, operator.lt):
            out = op(a, b)
            assert np.array_equal(out.np, op(np.asarray(memory_of(a)), np.asarray(b)))
            if native and (b.__class__ is Array or y.ndim <= 3):
                assert not out.np.flags.writeable


class Own(Array):
    """A class that a user derives."""
    __slots__ = ()


STRANGE = {
    "dtype": Array(np.ones((2, 3), F64)), "half": Array(np.ones((2, 3), "f2")),
    "bool": Array(np.ones((2, 3), bool)), "shape": Array(np.ones((3, 2), F32)),
    "row": Array(np.arange(3, dtype=F32)), "column": Array(np.ones((2, 1), F32)),
    "scalar": Array(np.float32(2)), "no axes": Array(np.array(2, F32)),
    "complex": Array(np.ones((2, 3), "c8")), "byte order": Array(np.ones((2, 3), ">f4")),
    "strides": Array(np.arange(6, dtype=F32).reshape(3, 2).T),
    "reversed": Array(np.arange(6, dtype=F32).reshape(2, 3)[::-1]),
    "unaligned": Array(np.zeros(25, np.uint8)[1:].view(F32).reshape(2, 3)),
    "subclass": Own(np.ones((2, 3), F32)), "matrix": Array(np.ones((2, 3), F32).view(np.matrix)),
    "bf16": fnp.ones((2, 3), "bfloat16"), "ndarray": np.ones((2, 3), F32),
    "NumPy scalar": np.float32(2), "double": np.float64(2), "list": [1.0], "object": object(),
    "matrix of NumPy": np.ones((2, 3), F32).view(np.matrix), "doubles": np.ones(3),
    "NumPy's strides": np.arange(6, dtype=F32).reshape(3, 2).T, "NumPy's row": np.ones(3, F32),
    "larger ndarray": np.ones((4, 2, 3), F32),
    "integers": Array(np.ones((2, 3), I32)), "equal": Array(np.ones((2, 3), F32)),
    "big": Array(np.ones((4, 2, 3), F32)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", STRANGE)
def test_other_operands_give_what_python_gives(kind):
    x, y = Array(np.arange(6, dtype=F32).reshape(2, 3)), STRANGE[kind]
    for name in BINARY:
        assert_alike(outcome(getattr(x, name), y), outcome(fallback(name), x, y))
        if isinstance(y, Array):
            assert_alike(outcome(getattr(y, name), x), outcome(fallback(name), y, x))
            assert_alike(outcome(getattr(y, name), y), outcome(fallback(name), y, y))


def test_results_are_read_only_and_have_the_dtype_of_the_operator():
    x = fnp.array([1.0, 2.0])
    for out, dtype in [(x + x, F32), (x < 2, BOOL), (-x, F32), (1 - x, F32)]:
        assert out.dtype is dtype and not out.np.flags.writeable and out.np.flags.owndata
    y = fnp.ones(MOST)
    assert (y * 2).np.ctypes.data % 64 == 0 and not (y * 2).np.flags.writeable


def test_what_is_given_away_is_refused_with_its_own_message():
    x = fnp.ones(3)
    x.give_away()
    with pytest.raises(fgrad.DonationError, match="donated"):
        x + 1.0
    with pytest.raises(fgrad.DonationError, match="donated"):
        fnp.ones(3) + x


def test_transformations_see_operations_of_arrays():
    x = fnp.array([1.0, 2.0, 3.0])
    made = fgrad.make_ir(lambda: (x + x) * x)()
    assert [eqn.op.name for eqn in made.eqns] == ["add", "mul"]
    np.testing.assert_array_equal(fgrad.grad(lambda y: (x * y - 1.0 / y).sum())(x), x + 1 / (x * x))
    np.testing.assert_array_equal(fgrad.vmap(lambda y: -y * x + x)(x), -x[:, None] * x + x)
    with pytest.raises(fgrad.NanError, match="div"):
        fgrad.debug.nans(lambda y: fnp.sum(y / (x - x)))(x)


def test_errors_name_the_users_line_and_nothing_else():
    x, y = fnp.ones((2, 3)), fnp.ones((4, 5))
    with pytest.raises(fgrad.ShapeError, match="test_operators.py") as caught:
        x + y
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files[0] == __file__ and (files[1:] == [] or sys.version_info < (3, 11))
    with pytest.raises(TypeError, match="unsupported operand"):
        x + object()


def test_strict_promotion_is_as_strict():
    x, y = fnp.ones(3), fnp.ones(3, "float64")
    with fgrad.strict_promotion():
        assert (x + x).dtype is F32 and (x * 2.0).dtype is F32
        with pytest.raises(fgrad.DtypeError, match="strict"):
            x + y


def test_arrays_keep_their_hash_and_python_its_protocol():
    x, y = fnp.ones(3), fnp.ones(3)
    assert hash(x) == object.__hash__(x) and len({x, y, x}) == 2
    assert operator.add(x, y).tolist() == [2.0] * 3 and sum([x, y]).tolist() == [2.0] * 3
    assert x.__add__([]).__class__ is not Array
    total = x
    total += y
    assert total.tolist() == [2.0] * 3 and x.tolist() == [1.0] * 3


def test_methods_say_what_they_are():
    for name in NAMES:
        method = getattr(Array, name)
        assert inspect.ismethoddescriptor(method) and method.__name__ == name and method.__doc__
        assert len(inspect.signature(method).parameters) == (1 if name == "__neg__" else 2)
    with pytest.raises(TypeError):
        Array.__add__(1, 2)


def test_no_reference_is_lost_or_kept():
    x, y, s = fnp.ones((2, 3)), fnp.ones((2, 3)), Array(np.float32(1))
    number, whole = 0.125, 10**6
    counted = [x, y, s, x.np, x.shape, F32, BOOL, Array, number, whole, EVALUATE, _current,
               np.float32]

    def counts():
        gc.collect()
        return [sys.getrefcount(thing) for thing in counted]

    def run():
        for _ in range(300):
            for out in (x + y, x * number, whole - x, -x, x < y, s + s, x == number, x + y[0]):
                del out

    run()
    before = counts()
    run()
    assert [after - count for after, count in zip(counts(), before)] == [0] * len(counted)


@pytest.mark.parametrize("size", [3, MOST])
def test_memory_returns(size):
    x = fnp.ones(size)

    def run(times):
        for _ in range(times):
            x + x, x * 2.0, -x, x < 1, 1 - x

    run(100)
    tracemalloc.start()
    try:
        run(10)
        before = tracemalloc.get_traced_memory()[0]
        run(2000)
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


def test_many_threads_may_compute_at_once():
    wrong = []

    def work(n):
        x = fnp.full(500, float(n))
        for _ in range(500):
            if not ((x + x) * 2 - x).np.tobytes() == np.full(500, 3 * n, F32).tobytes():
                wrong.append(n)

    at_once(work, *[(n,) for n in range(8)])
    assert wrong == []


def test_another_layout_of_objects_leaves_them_to_python(monkeypatch):
    monkeypatch.setattr(native_call, "layouts_hold", lambda: False)
    assert not operators.possible(Array)
    monkeypatch.undo()
    monkeypatch.setenv("FGRAD_NATIVE_CALL", "0")
    assert not operators.possible(Array)
    assert not operators.possible(object)
