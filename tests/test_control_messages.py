"""What control flow says about wrong carries, branches, tests and bounds: it names the leaf."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad.control import associative_scan, cond, fori_loop, map, scan, switch, while_loop
from fgrad.errors import ArgumentError, GradientError, ShapeError, TreeError
from fgrad.jitted import jit
from fgrad.transforms import grad
from tests.messages import message


def halved(x):
    """x, halved until it is below 1."""
    return while_loop(lambda x: x >= 1, lambda x: x / 2, x)


def test_a_carry_that_changes_its_dtype_is_named_by_its_path():
    def step(c, x):
        return {"t": c["t"] + x, "n": c["n"] + 1}, None
    text = message(TreeError, scan, step, {"t": 0, "n": 0}, fnp.ones(3))
    assert text == """\
scan: the carry of `step` (test_control_messages.py:N) changes its type.

    messages.py:N    function(*args, **kwargs)

  given      carry['t']: in i32[], out f32[]
  fix        start it as a float, such as 0.0
             or return carry['t'].astype('int32')"""


def test_a_carry_that_an_array_of_f64_widens_names_both_ways_out():
    def step(c, x):
        return c / np.ones(2) + x, None
    text = message(TreeError, scan, step, fnp.zeros(2), fnp.ones((4, 2)))
    assert text.endswith("""
  given      carry: in f32[2], out f64[2]
             test_control_messages.py:N: f32 meets f64 in c / np.ones(2)
  fix        start it in f64: .astype('float64')
             or return carry.astype('float32')
             or .astype('float32') of what is f64 there""")


def test_a_carry_of_another_tree_shows_both_trees():
    text = message(TreeError, scan, lambda c, x: (c[0], None), (0.0, 1.0), fnp.ones(3))
    assert text == """\
scan: `<lambda>` (test_control_messages.py:N) must return the carry as the tree it was given.

    messages.py:N    function(*args, **kwargs)

  given      in   (f32[], f32[])
             out  f32[]
  fix        return every part of the carry, changed or not"""


def test_branches_of_different_trees_are_both_named():
    text = message(TreeError, cond, fnp.array(True), lambda x: x, lambda x: (x, x), 1.0)
    assert text == """\
the branches of cond return different trees.

    messages.py:N    function(*args, **kwargs)

  given      true_fun: `<lambda>` (test_control_messages.py:N)  returns f32[]
             false_fun: `<lambda>` (test_control_messages.py:N) returns (f32[], f32[])
  expected   one tree, and the same types in it
  fix        return the same kind of result from every branch"""


def test_branches_of_different_types_are_both_named():
    text = message(TreeError, switch, 0, [lambda x: x, lambda x: x > 0], 1.0)
    assert text == """\
the branches of switch return different types.

    messages.py:N    function(*args, **kwargs)

  given      branches[0]: `<lambda>` (test_control_messages.py:N) returns f32[]
             branches[1]: `<lambda>` (test_control_messages.py:N) returns bool[]
  expected   one tree, and the same types in it
  fix        return the same kind of result from every branch"""


def test_a_test_of_while_that_is_no_bool_is_refused():
    text = message(ArgumentError, while_loop, lambda x: x, lambda x: x, fnp.ones(3))
    assert text == """\
while_loop: `<lambda>` (test_control_messages.py:N) must return one bool, but it returned f32[3].

    messages.py:N    function(*args, **kwargs)

  expected   bool[]
  fix        compare: return x < limit
             reduce with .any() or .all()"""


def test_xs_of_different_leading_sizes_are_shown_in_a_table():
    text = message(ShapeError, scan, lambda c, x: (c, None), 0.0,
                   {"a": fnp.ones(3), "b": fnp.ones((4, 2)), "c": fnp.ones(())})
    assert text == """\
scan of `<lambda>` (test_control_messages.py:N) goes over arrays of different leading sizes.

    messages.py:N    function(*args, **kwargs)

  given      xs['a']: f32[3]     leading size 3
             xs['b']: f32[4,2]   leading size 4
             xs['c']: f32[]      no axis
  expected   one leading size
  fix        let the function close over what is the same in every step"""


def test_a_body_that_returns_no_pair_is_refused():
    text = message(ArgumentError, scan, lambda c, x: c, 0.0, fnp.ones(3))
    assert text == """\
scan: `<lambda>` (test_control_messages.py:N) must return (carry, y), but it returned f32[].

    messages.py:N    function(*args, **kwargs)

  expected   a tuple of two
  fix        return carry, y
             return carry, None without results"""


def test_the_reverse_derivative_of_a_while_loop_says_what_to_do():
    text = message(GradientError, grad(halved), 2.0)
    assert text.startswith("while_loop has no reverse derivative")
    assert "max_steps=n" in text and "jacfwd" in text


def test_a_predicate_that_is_no_scalar_is_refused():
    text = message(ArgumentError, cond, fnp.ones(3) > 0, lambda: 1.0, lambda: 2.0)
    assert text == """\
cond needs one bool to choose by, not bool[3].

    messages.py:N    function(*args, **kwargs)

  expected   bool[]
  fix        reduce it with .any() or .all()
             fgrad.numpy.where(pred, a, b) chooses element by element"""


def test_an_index_that_is_no_integer_and_bounds_that_are_none_are_refused():
    assert message(ArgumentError, switch, 1.5, [lambda: 1]).startswith(
        "switch needs one integer to choose by, not float 1.5.")
    assert message(ArgumentError, fori_loop, 0, 2.5, lambda i, x: x, 0.0).startswith(
        "fori_loop needs whole numbers for bounds, not float 2.5.")
    assert message(ArgumentError, scan, lambda c, x: (c, x), 0.0).startswith(
        "scan of `<lambda>` (test_control_messages.py:N) has neither xs nor length.")


def test_branches_of_several_results_name_the_one_that_differs():
    text = message(TreeError, cond, True, lambda x: {"a": x, "b": x},
                   lambda x: {"a": x, "b": x > 0}, 1.0)
    assert "result['b']: f32[] and bool[]" in text


def test_what_is_no_function_is_named():
    step, x = (lambda i, c: c), fnp.ones(3)
    for call, name in [
            (lambda: cond(True, 1.0, 2.0), "cond: true_fun"),
            (lambda: switch(0, [1.0]), "switch: branches[0]"),
            (lambda: scan(None, 0.0, x), "scan: f"),
            (lambda: fori_loop(0, 3, None, 0), "fori_loop: body_fun"),
            (lambda: while_loop(1, step, 0), "while_loop: cond_fun"),
            (lambda: while_loop(step, 1, 0, max_steps=3), "while_loop: body_fun")]:
        assert message(ArgumentError, call).startswith(f"{name} must be a function, not ")


def test_what_cannot_be_carried_is_named_as_an_argument():
    same = lambda *args: args[-1]
    for call, leaf in [(lambda: cond(True, same, same, "a"), "operands[0]"),
                       (lambda: scan(same, {"n": "a"}, fnp.ones(3)), "init['n']"),
                       (lambda: scan(same, 0.0, ["a"]), "xs[0]"),
                       (lambda: fori_loop(0, 3, same, ["a"]), "init_val[0]"),
                       (lambda: while_loop(same, same, ["a"]), "init_val[0]")]:
        assert message(ArgumentError, call).startswith(f"`{leaf}` is a str, which no loop")


def test_a_fori_loop_of_a_traced_number_speaks_of_its_own_carry_only():
    run = jit(lambda n: fori_loop(0, n, lambda i, c: {"t": c["t"] + 0.5}, {"t": 1}))
    assert "carry['t']: in i32[], out f32[]" in message(TreeError, run, fnp.array(3))
    slope = jit(grad(lambda x, n: fori_loop(0, n, lambda i, x: x * x, x)))
    assert "nor fori_loop with traced bounds" in message(GradientError, slope, 1.0, fnp.array(3))


@pytest.mark.parametrize("call, said", [
    (lambda x: cond(True, lambda: x, lambda y: y, x), "cond: `<lambda>` .* 1 argument: too many"),
    (lambda x: switch(0, [lambda x: x, lambda x, y: x], x), "switch: .* 1 argument: missing"),
    (lambda x: scan(lambda c: c, 0.0, x), "scan: .* called with 2 arguments: too many"),
    (lambda x: while_loop(lambda: True, lambda c: c, x), "while_loop: .* called with 1 argument:"),
    (lambda x: fori_loop(0, 3, lambda c: c, x), "fori_loop: .* called with 2 arguments: too many"),
    (lambda x: map(lambda: 1.0, x), "map: .* called with 1 argument: too many"),
    (lambda x: associative_scan(lambda a: a, x), "associative_scan: .* called with 2 arguments:")])
def test_a_function_of_another_number_of_arguments_is_named(call, said):
    """Python said that <lambda>() takes 0 positional arguments, of some lambda or other."""
    for f in (call, jit(call)):
        with pytest.raises(ArgumentError, match=said):
            f(fnp.ones(3))


def test_functions_with_defaults_and_builtins_are_called():
    x = fnp.arange(3.0)
    assert fori_loop(0, 3, lambda i, s, k=2: s * k, 1.0) == 8
    assert map(lambda *args: args[0] + 1, x).tolist() == [1, 2, 3]
    assert cond(True, fnp.sin, fnp.cos, 0.0) == 0
