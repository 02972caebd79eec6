"""The whole messages of errors that users of fgrad.numpy cause, and what catches them."""

import importlib.util
import pathlib

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import grad, jit, random

HERE = pathlib.Path(__file__).parent
spec = importlib.util.spec_from_file_location("messages", HERE / "messages.py")
messages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(messages)


def check(text, expected):
    assert messages.message(text, grad=grad, jit=jit, random=random) == expected.strip("\n")


def test_shapes_that_do_not_broadcast():
    check("fnp.ones((2, 3)) + fnp.ones(2)", """
shapes (2,3) and (2,) do not broadcast: sizes 3 and 2 meet at axis -1.

    user.py:1    fnp.ones((2, 3)) + fnp.ones(2)

  expected   equal sizes, or 1, at every axis counted from the end
  fix        x[:, None] makes a column of shape (2,1) of the array of shape (2,)
""")


def test_products_whose_inner_sizes_differ():
    check("fnp.ones((2, 3)) @ fnp.ones((2, 3))", """
inner sizes differ: (2,[3]) @ ([2],3).

    user.py:1    fnp.ones((2, 3)) @ fnp.ones((2, 3))

  given      fnp.ones((2, 3)): f32[2,3]
             fnp.ones((2, 3)): f32[2,3]
  expected   equal sizes in brackets
  fix        did you mean fnp.ones((2, 3)) @ fnp.ones((2, 3)).T or fnp.ones((2, 3)).T @ \
fnp.ones((2, 3))?
""")


@pytest.mark.parametrize("product", [
    "p['w'] @ h", "fnp.matmul(p['w'], h)", "np.matmul(p['w'], h)", "(p['w'] @ h).T"])
def test_products_are_told_in_the_users_names(product):
    check(f"p, h = {{'w': fnp.ones((2, 3))}}, fnp.ones((4, 5))\ny = {product} + 1", f"""
inner sizes differ: (2,[3]) @ ([4],5).

    user.py:2    y = {product} + 1

  given      p['w']: f32[2,3]
             h: f32[4,5]
  expected   equal sizes in brackets
""")


def test_products_without_names_are_told_by_position():
    check("fnp.linalg.multi_dot([fnp.ones((2, 3)), fnp.ones((2, 3))])", """
inner sizes differ: (2,[3]) @ ([2],3).

    user.py:1    fnp.linalg.multi_dot([fnp.ones((2, 3)), fnp.ones((2, 3))])

  given      argument 1: f32[2,3]
             argument 2: f32[2,3]
  expected   equal sizes in brackets
  fix        did you mean to transpose argument 2 or to transpose argument 1?
""")


def test_what_is_no_array_is_named_without_our_words():
    for call in ("np.add(x, None)", "jit(lambda x: np.add(x, None))(x)"):
        check(f"x = fnp.ones(2)\n{call}", f"""
None is not an array.

    user.py:2    {call}

  given      None
  expected   a number, a list of numbers, or an array
""")
    with pytest.raises(TypeError, match=r"for \+: 'Array' and 'NoneType'$"):
        jit(lambda x: x + None)(fnp.ones(2))


def test_no_keys_at_all_are_none_and_fewer_are_refused():
    assert random.split(random.key(0), 0).shape == (0,)
    check("random.split(random.key(0), -1)", """
split: sizes cannot be negative.

    user.py:1    random.split(random.key(0), -1)

  given      shape (-1,)
""")


def test_axes_out_of_range():
    check("fnp.sum(fnp.ones((3, 2)), axis=2)", """
sum: axis 2 is out of range for an array of 2 axes.

    user.py:1    fnp.sum(fnp.ones((3, 2)), axis=2)

  expected   an axis from -2 to 1
""")
    check("fnp.array(1.0).sum(0)", """
sum: axis 0 is out of range for a scalar, which has no axes.

    user.py:1    fnp.array(1.0).sum(0)

  fix        leave the axis out
""")


def test_ragged_lists():
    check("fnp.array([[1, 2], [3]])", """
the rows of the list differ in length: element [1] has shape (1,).

    user.py:1    fnp.array([[1, 2], [3]])

  given      [[1, 2], [3]]
  expected   shape (2,) there, as in the first row
  fix        pad the rows to one length
""")


def test_lists_of_other_things():
    check("fnp.array([1, 'a'])", """
element [1] of the list is no number but a str: 'a'.

    user.py:1    fnp.array([1, 'a'])

  expected   numbers
""")


def test_ints_that_do_not_fit():
    check("fnp.array([3_000_000_000])", """
the list holds an int that does not fit into i32.

    user.py:1    fnp.array([3_000_000_000])

  fix        give a wider dtype, for example dtype="int64"
             or a float one
""")
    check("fnp.ones(3, 'uint8') + 256", """
the Python number 256 does not fit into u8.

    user.py:1    fnp.ones(3, 'uint8') + 256

  fix        convert the array to a wider dtype first
""")


def test_assignment_is_translated():
    check("x = fnp.zeros(3)\nx[0] = 1", """
fgrad arrays are immutable; write x = x.at[0].set(1)

    user.py:2    x[0] = 1
""")
    check("params = {'w': fnp.zeros(3)}\nparams['w'][1:] += 2", """
fgrad arrays are immutable; write params['w'] = params['w'].at[1:].add(2)

    user.py:2    params['w'][1:] += 2
""")


def test_indices_out_of_range():
    expected = """
index 5 is out of range for axis 0 of size 3.

    user.py:1    {}

  given      an array of shape (3,)
  expected   an index from -3 to 2
"""
    for line in ("fnp.arange(3)[5]", "fnp.arange(3).at[5].set(1)", "fnp.arange(3)[[0, 5]]",
                 "jit(lambda x: x[5])(fnp.ones(3))",
                 "grad(lambda x: x.at[5].add(1.0).sum())(fnp.ones(3))"):
        check(line, expected.format(line))


def test_masks_while_compiling():
    check("jit(lambda x: x[x > 1])(fnp.ones(3))", """
a bool index picks a number of elements that is not known while tracing.

    user.py:1    jit(lambda x: x[x > 1])(fnp.ones(3))

  given      bool[3]
  fix        where(mask, x, 0) keeps the shape
             where(mask, new, x) writes by a mask
""")


def test_values_that_elements_cannot_hold():
    check("fnp.zeros(3, int).at[0].set(1.5)", """
an array of i32 cannot hold f32.

    user.py:1    fnp.zeros(3, int).at[0].set(1.5)

  fix        convert the array first: x.astype("float32")
""")


def test_numpy_arrays_cannot_hold_traced_values():
    expected = """
NumPy cannot hold a value that is being traced.

    user.py:{}    {}

  fix        build with fgrad.numpy.array([…]) or stack
             set elements with a.at[i].set(x)
             or pass fgrad.stop_gradient(x)
"""
    line = "grad(lambda t: np.array([t, 1.0]).sum())(2.0)"
    check(line, expected.format(1, line))
    check("def f(x):\n    A = np.zeros(3)\n    A[0] = x\n    return A.sum()\ngrad(f)(2.0)",
          expected.format(3, "A[0] = x"))


def test_numpy_arrays_cannot_be_added_to():
    check("A = np.zeros(3)\nA += fnp.ones(3)", """
np.add cannot write a value of fgrad into an array of NumPy.

    user.py:2    A += fnp.ones(3)

  fix        write A = A + x instead of A += x
             use what np.add returns instead of out=
""")


def test_numpy_functions_without_a_namesake():
    check("np.sort_complex(fnp.ones(3))", """
np.sort_complex is not one of the NumPy functions that work on values of fgrad.

    user.py:1    np.sort_complex(fnp.ones(3))

  fix        write it with functions of fgrad.numpy, which has none of that name
             np.sort_complex(np.asarray(x)) computes outside of fgrad, without a derivative
""")


def test_keys_that_are_none():
    check("random.normal(0, (3,))", """
normal expects a key; use random.key(0).

    user.py:1    random.normal(0, (3,))

  given      int 0
""")


def test_generators_that_are_closed_over():
    check("rng = random.Generator(0)\njit(lambda x: x + rng.normal())(1.0)", """
a Generator was used in a compiled function that does not take it: every call would draw the same \
numbers.

    user.py:2    jit(lambda x: x + rng.normal())(1.0)

  fix        pass it as an argument and return it: x, rng = f(x, rng)
""")


@pytest.mark.parametrize("error, call", [
    (TypeError, lambda: fnp.ones(2) + fnp.ones(3)),
    (IndexError, lambda: fnp.ones(2)[2]),
    (ValueError, lambda: fnp.ones(2).sum(1)),
    (OverflowError, lambda: fnp.array(2**40)),
    (TypeError, lambda: fnp.ones(2) & 1),
    (TypeError, lambda: fnp.array(["a"])),
    (TypeError, lambda: fnp.array([None])),
    (TypeError, lambda: fnp.array(np.array([object()]))),
    (TypeError, lambda: fnp.zeros(2, "complex256")),
    (TypeError, lambda: fnp.zeros((2, -1))),
    (TypeError, lambda: fnp.zeros(2.5)),
    (TypeError, lambda: fnp.array(x for x in range(3))),
    (TypeError, lambda: -fnp.array([True])),
    (TypeError, lambda: fnp.ones(3) + "a"),
    (TypeError, lambda: len(fnp.array(1.0))),
    (TypeError, lambda: fnp.concatenate([])),
    (TypeError, lambda: fnp.stack([fnp.ones(2), fnp.ones(3)])),
    (TypeError, lambda: fnp.split(fnp.ones(5), 2)),
    (TypeError, lambda: fnp.einsum("ij,jk", fnp.ones((2, 3)), fnp.ones((4, 2)))),
    (TypeError, lambda: fnp.einsum("ij->k", fnp.ones((2, 3)))),
    (TypeError, lambda: fnp.reshape(fnp.ones(3), (2, -1))),
    (TypeError, lambda: fnp.squeeze(fnp.ones((2, 1)), 0)),
    (ValueError, lambda: fnp.transpose(fnp.ones((2, 1)), (0, 0))),
    (ValueError, lambda: fnp.arange(0, 5, 0)),
    (TypeError, lambda: fnp.pad(fnp.ones(3), [(1, 2), (3, 4)])),
    (TypeError, lambda: fnp.pad(fnp.ones(3), 1, "other")),
    (TypeError, lambda: fnp.floor(1j)), (TypeError, lambda: fnp.trunc(fnp.ones(2, "complex64"))),
    (TypeError, lambda: fnp.full((2,), 1j, "float32")),
    (TypeError, lambda: fnp.full_like(fnp.arange(2), 1j)),
    (TypeError, lambda: fnp.quantile(fnp.zeros(0), 0.5)),
    (ValueError, lambda: fnp.quantile(fnp.ones(3), 1.5)),
    (TypeError, lambda: fnp.linalg.norm(fnp.ones(3), "nuc")),
    (TypeError, lambda: fnp.diagonal(fnp.ones(3))),
    (TypeError, lambda: fnp.average(fnp.ones((2, 3)), weights=fnp.ones(3))),
    (TypeError, lambda: fnp.ones((2, 3)).at[0].set(np.ones(2))),
    (TypeError, lambda: fnp.finfo("int32")),
    (TypeError, lambda: fnp.ones(2).__delitem__(0))])
def test_errors_are_builtins_too(error, call):
    with pytest.raises(error):
        call()


X, N = fnp.ones(3), fnp.array(2)
MISTAKEN = {
    "concatenate([a, b])": lambda: fnp.concatenate(X, X),
    "stack([a, b])": lambda: fnp.stack(X, X),
    "a + b": lambda: fnp.sum(X, X),
    "fgrad.numpy.maximum(a, b)": lambda: fnp.max(X, X),
    "one tuple: (2, 3), not 2, 3": lambda: fnp.zeros(2, 3),
    "(2, 3), not 2, 3": lambda: fgrad.random.normal(fgrad.random.key(0), 2, 3),
    'dtype="int64"': lambda: fnp.array(3000000000),
    "does not fit into i32": lambda: fnp.array([3e10], dtype="int32"),
    "at least one axis": lambda: fnp.nonzero(fnp.array(3)),
    "into 0 parts": lambda: fnp.split(X, 0),
    "compress: axis 5": lambda: fnp.compress([True], X, axis=5, size=2),
    "needs an int for the power": lambda: fnp.linalg.matrix_power(fnp.eye(2), 1.5),
    "cannot be bool": lambda: fnp.take(X, True),
    "static_argnames='n'": lambda: fgrad.jit(lambda x, n: x[:n])(X, N),
    "the bound of a slice": lambda: fgrad.jit(lambda x, n: x[:n])(X, N),
}


@pytest.mark.parametrize("hint", MISTAKEN)
def test_a_mistake_is_answered_by_what_was_meant(hint):
    with pytest.raises(fgrad.errors.FgradError) as found:
        MISTAKEN[hint]()
    assert hint in str(found.value)


def test_the_places_in_an_array_of_no_axes_have_none():
    assert fnp.argwhere(fnp.array(3)).shape == (1, 0)
    assert fnp.power([1.0, 2.0], 0.5).tolist() == [1.0, fnp.sqrt(2.0).item()]


def test_an_assignment_to_at_and_an_index_by_a_quotient_say_what_to_write():
    x = fnp.zeros(5)
    with pytest.raises(TypeError, match=r"cannot be assigned to"):
        x.at[0] = 1.0
    with pytest.raises(IndexError, match="a // b divides ints to an int"):
        x[x.shape[0] / 2]
