"""Staging: traced Python numbers, values on demand, and what is said when there is no value."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import tree
from fgrad.core import Array, as_value
from fgrad.errors import ArgumentError, ConcretizationError, NumpyError
from fgrad.interpreters.call import call
from fgrad.interpreters.stage import Specialise, evaluate, stage
from fgrad.transforms import grad, jvp, vmap
from fgrad.types import F32, F64, I64, ArrayType
from tests.interpreters.staged import near, staged
from tests.messages import message

WIDE = {int: np.int64, float: np.float64, bool: np.bool_}
X, V, one = np.arange(12.0).reshape(4, 3), np.arange(3.0), np.float64(1.0)


def with_numbers(f):
    """f staged with its Python numbers traced, as jit does it, and run."""
    def function(*args):
        numbers = {k: True for k, a in enumerate(args) if a.__class__ in WIDE}
        values = [Array(np.asarray(WIDE[a.__class__](a))) if k in numbers else as_value(a)
                  for k, a in enumerate(args)]
        numbers |= {k: True for k, v in enumerate(values) if v.is_number}
        trace = stage(f, [v.type for v in values], numbers=numbers)
        return tree.unflatten(trace.out, call(*values, *trace.captured, program=trace.program))
    return function


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4"])
@pytest.mark.parametrize("number", [0.1, 3])
def test_traced_numbers_mix_like_python_numbers(dtype, number):
    x = fnp.array(np.ones(3, dtype))
    for f in (lambda x, s: x * s, lambda x, s: x * (s * 3 + s) + s, lambda x, s: x * -s,
              lambda x, s: x + s / 2, lambda x, s: x * (s + 1 > 2), lambda x, s: x * (s * 0.5)):
        eager, traced = f(x, number), with_numbers(f)(x, number)
        assert eager.dtype == traced.dtype
        near(eager, traced, 1e-15)


def test_traced_numbers_become_arrays_in_functions_and_results():
    near(with_numbers(lambda x, s: x + fnp.sin(s))(V, 0.1), V + np.sin(np.float32(0.1)), 1e-12)
    assert with_numbers(lambda s: s * 2.0)(0.5).dtype == np.float32
    assert with_numbers(lambda s: s + 1)(5).dtype == np.int32
    assert with_numbers(lambda s: {"a": 2, "b": s})(True)["a"].dtype == np.int32


def test_traced_numbers_keep_all_digits_under_grad_and_vmap():
    near(grad(lambda x, s: with_numbers(lambda x, s: fnp.sum(x * s))(x, s))(V, 0.1),
         np.full(3, 0.1), 1e-16)
    f = with_numbers(grad(lambda x, s: fnp.sum(x * x * s)))
    near(vmap(lambda x: f(x, 0.1))(X), 0.2 * X, 1e-12)


def test_grad_by_a_traced_number_gives_the_default_float():
    assert with_numbers(lambda s: grad(lambda t: t * t)(s))(0.5).dtype == np.float32


USES = [lambda n: np.zeros((n, 2)).size, lambda n: np.arange(n).size, lambda n: len([0] * n),
        lambda n: [1, 2, 3, 4][n], lambda n: int(f"{int(n):d}"), lambda n: len(np.eye(n)),
        lambda n: {3: 4}.get(int(n)), lambda n: np.broadcast_to(1, (n,)).size,
        lambda n: np.ones(4)[n], lambda n: len(bytes(n)),
        lambda n: np.reshape(np.ones(6), (n, -1)).size,
        lambda n: len(range(n)), lambda n: 1 if n > 2 else 0]


@pytest.mark.parametrize("k", range(len(USES)))
def test_the_value_of_a_whole_number_can_be_asked_for(k):
    mine = frozenset([1])
    with pytest.raises(Specialise) as signal:
        stage(lambda x, n: x * float(USES[k](n)), [ArrayType(F64, ()), ArrayType(I64, ())],
              numbers={1: True},
              specialisable=mine)
    assert signal.value.owner.specialisable is mine and signal.value.arguments == {1}


def test_numbers_that_are_not_mapped_or_differentiated_stay_python_numbers():
    seen = []
    vmap(lambda x, n: seen.append(n) or x, (0, None))(V, 4)
    jvp(lambda x, n: seen.append(n) or x, (1.0, 4), (1.0, 0))
    grad(lambda p: seen.append(p[1]) or p[0], allow_int=True)((1.0, 4))
    assert [type(n) for n in seen] == [int] * 3


def test_a_bare_except_does_not_swallow_the_request():
    def swallows(n):
        try:
            return float(len(range(n)))
        except BaseException:
            return 0.0
    with pytest.raises(Specialise):
        stage(swallows, [ArrayType(I64, ())], numbers={0: True}, specialisable=[0])


A = np.zeros((4, 3))


def set_row(x):
    A[0] = x[0]


def set_element(x):
    A[0, 0] = x[0][0]


def add_in_place(x):
    B = A
    B += x


@pytest.mark.parametrize("transform", [grad, staged, vmap, lambda f: lambda x: jvp(f, (x,), (x,))])
@pytest.mark.parametrize("bad", [
    set_row, set_element, add_in_place, lambda x: np.array([x[0], x[1]]), lambda x: np.sum([x, x]),
    lambda x: np.asarray(x), lambda x: np.add(x, x, out=A)])
def test_what_numpy_cannot_trace_is_an_error(bad, transform):
    with pytest.raises(NumpyError):
        x = X if transform is not vmap else np.stack([X, X])
        transform(lambda x: (bad(x), fnp.sum(x))[1])(x)


def test_message_of_if_on_a_traced_value():
    def f(x):
        y = fnp.sum(x)
        if y > 0:
            return x
        return -x
    assert message(ConcretizationError, staged_by_name(f), V) == """\
`if` needs a value, but while `f` is compiled there are only types.

    test_stage.py:N    if y > 0:

  given      bool[], which depends on `x` of `f`
             made at test_stage.py:N: if y > 0:
  fix        choose with fgrad.numpy.where(condition, a, b)
             or remove jit: without it values are known"""


def staged_by_name(f):
    """Stages f with its first argument named."""
    return lambda *args: stage(f, [as_value(a).type for a in args], name=f.__name__,
                               names=f.__code__.co_varnames[:len(args)])


def test_message_of_float_of_a_traced_value():
    def f(x):
        return x * float(x[0])
    assert message(ConcretizationError, staged_by_name(f), V) == """\
float() needs a value, but while `f` is compiled there are only types.

    test_stage.py:N    return x * float(x[0])

  given      f64[], which depends on `x` of `f`
             made at test_stage.py:N: return x * float(x[0])
  fix        compute with fgrad.numpy functions instead
             or remove jit: without it values are known"""


def test_message_of_int_of_a_traced_argument():
    def f(x):
        return range(int(x))
    assert message(ConcretizationError, staged_by_name(f), one) == """\
int() needs a value, but while `f` is compiled there are only types.

    test_stage.py:N    return range(int(x))

  given      f64[], which depends on `x` of `f`
  fix        compute with fgrad.numpy functions instead
             static_argnames='x', if it is a Python value
             or remove jit: without it values are known"""


def test_message_of_a_result_that_is_no_array():
    assert message(ArgumentError, stage, lambda x: {"a": [x, "no"]}, [ArrayType(F32, ())]) == """\
`f` returned a str, which is no array.

    messages.py:N    function(*args, **kwargs)

  given      result['a'][1]: 'no'
  expected   arrays and numbers, in dicts, lists, tuples or registered classes
  fix        return arrays and numbers only, and keep the rest outside of it
             decorate the class with @fgrad.pytree, if it holds arrays"""


def test_traced_values_print_their_type():
    seen = []
    stage(lambda x: seen.extend([repr(x), str(x), f"{x:.3f}"]) or x, [ArrayType(F32, (3,))])
    assert seen == ["f32[3]<traced>"] * 3
    vmap(lambda x: seen.append(repr(x)) or x)(X)
    assert seen[-1] == "f64[3]<one of 4 in vmap>"


def test_values_under_grad_print_as_they_are():
    seen = []
    grad(lambda x: seen.extend([repr(x), f"{x:.3f}", str(x)]) or x)(2.0)
    assert seen == ["Array(2., f32[])", "2.000", "2.0"]


def test_equal_results_and_inputs_may_be_results_more_than_once():
    program = stage(lambda x: (x, x, fnp.sin(x)), [ArrayType(F32, ())]).program
    assert [float(v) for v in evaluate(program.check(), [as_value(0.0)])] == [0.0, 0.0, 0.0]


def test_closed_over_arrays_are_hidden_inputs_and_values_of_others_are_inputs():
    c = fnp.array([1.0, 2.0])
    trace = stage(lambda x: x * c + c, [ArrayType(F32, (2,))])
    assert len(trace.program.inputs) == 1 and trace.captured == ()
    assert [a for _, a in trace.program.hidden] == [c]

    def outer(x):
        inner = stage(lambda y: y * x, [ArrayType(F32, ())])
        assert inner.captured == (x,) and len(inner.program.inputs) == 2
        return x
    grad(outer)(1.0)
