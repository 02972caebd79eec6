"""fgrad.debug: prints, breakpoints, NaN reports and index checks on every path."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import debug, lax

X = np.array([0.0, 1.0, 4.0], "float32")
WAYS = {"eager": lambda f: f, "jit": fgrad.jit}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def masked(x):
    return fnp.where(x > 0, fnp.sqrt(x), 0.0).sum()


def report(function, *args):
    """The message of the NanError that the call raises."""
    with pytest.raises(fgrad.NanError) as caught:
        function(*args)
    return str(caught.value)


# ---------------------------------------------------------------------------- print

@ways
def test_print_formats_every_element(way, capsys):
    def f(x):
        debug.print("x = {x:.1f}, {}, {d[a]}, {s}", x.sum(), x=x, d={"a": x[0]}, s="text")
        return x
    way(f)(X)
    assert capsys.readouterr().out == "x = [0.0 1.0 4.0], 5.0, 0.0, text\n"


@ways
def test_print_runs_at_every_call_and_once_per_element(way, capsys):
    f = way(fgrad.vmap(lambda x: (debug.print("{x:.0f}", x=x), x * 2)[1]))
    f(X), f(X + 1)
    assert capsys.readouterr().out == "0\n1\n4\n1\n2\n5\n"


@pytest.mark.parametrize("change", [fgrad.grad, lambda f: fgrad.jit(fgrad.grad(f)),
                                    lambda f: fgrad.grad(fgrad.jit(f))])
def test_print_shows_the_values_of_the_forward_pass(change, capsys):
    def f(x):
        debug.print("{}", x.sum())
        return (x * x).sum()
    assert change(f)(X).tolist() == [0, 2, 8]
    assert capsys.readouterr().out == "5.0\n"


@ways
def test_print_inside_of_loops(way, capsys):
    def f(x):
        def step(c, a):
            debug.print("{c:.0f}", c=c)
            return c + a, None
        return lax.scan(step, fnp.zeros(()), x)[0]
    way(f)(X)
    assert capsys.readouterr().out == "0\n0\n1\n"


def test_print_says_what_does_not_fit():
    for call, word in ((lambda: debug.print("{x} {y}", x=1), "needs y"),
                       (lambda: debug.print(3), "text first"),
                       (lambda: debug.print("{x}", x=1, y=2), "does not print y"),
                       (lambda: debug.print("{", 1), "cannot use")):
        with pytest.raises(fgrad.ArgumentError, match=word):
            call()


def test_callback_gives_arrays_to_python():
    seen = []
    fgrad.jit(lambda x: (debug.callback(seen.append, x), x)[1])(X)
    assert isinstance(seen[0], np.ndarray) and seen[0].tolist() == [0, 1, 4]


def test_breakpoint_gives_the_values_to_a_debugger():
    seen = []

    def f(x):
        y, name = x * 2, "text"
        debug.breakpoint(debugger=seen.append)
        return y, name
    fgrad.jit(lambda x: f(x)[0])(X)
    assert seen[0].keys() == {"x", "y"} and seen[0]["y"].tolist() == [0, 2, 8]


def test_breakpoint_without_a_terminal_gives_one_notice(monkeypatch):
    monkeypatch.setattr(sys, "stdin", open(os.devnull, encoding="utf8"))
    with pytest.warns(fgrad.FgradWarning, match="no terminal"):
        fgrad.jit(lambda x: (debug.breakpoint(x=x), x)[1])(X)


# ---------------------------------------------------------------------------- nans

@pytest.mark.parametrize("change", [fgrad.grad, lambda f: fgrad.jit(fgrad.grad(f)),
                                    lambda f: fgrad.grad(fgrad.jit(f)),
                                    lambda f: lambda x: fgrad.vjp(f, x)[1](1.0)])
def test_nans_recognises_the_where_that_masks_a_value_but_not_its_derivative(change):
    said = report(debug.nans(change(masked)), X)
    assert said.startswith("the derivative of this line made inf in 1 of 3 elements, by the "
                           "operation div.")
    assert "return fnp.where(x > 0, fnp.sqrt(x), 0.0).sum()" in said
    assert "write sqrt(where(m, x, 1)) inside of where" in said or sys.version_info < (3, 11)
    assert "from 0 to 2, 1 zero" in said and "then mul made NaN" in said


def test_the_repair_that_nans_proposes_works():
    def f(x):
        m = x > 0
        return fnp.where(m, fnp.sqrt(fnp.where(m, x, 1)), 0.0).sum()
    assert debug.nans(fgrad.grad(f))(X).tolist() == [0, 0.5, 0.25]


@ways
def test_nans_names_the_first_operation_and_its_arguments(way):
    def f(x):
        y = fnp.log(x)
        return (y - y).sum()
    said = report(debug.nans(way(f)), X)
    assert "y = fnp.log(x)" in said and "argument 1 of log: f32[3]  from 0 to 4, 1 zero" in said
    assert "then sub made NaN" in said


@ways
def test_what_where_masks_is_no_fault(way):
    assert debug.nans(way(masked))(np.array([-1.0, 4.0])) == 2.0


@ways
def test_nans_of_arguments_are_said_to_be_theirs(way):
    assert "so had an argument" in report(debug.nans(way(lambda x: x * 2)), fnp.array([np.nan]))


@ways
def test_infinities_may_be_wanted(way):
    assert debug.nans(way(fnp.log), inf=False)(fnp.array(0.0)) == -np.inf


@ways
def test_nans_inside_of_loops_and_branches(way):
    def f(x):
        return lax.fori_loop(0, 3, lambda k, c: lax.cond(k < 2, lambda c: c, fnp.log, c) - 1.0, x)
    assert "by the operation log" in report(debug.nans(way(f)), fnp.array(1.0))


def test_nans_works_with_python_branches():
    def f(x):
        return fnp.log(x) if x > 0 else 1 / x
    assert "by the operation div" in report(debug.nans(fgrad.grad(f)), 0.0)


def test_mode_log_lists_every_site_and_gives_the_result(capsys):
    out = debug.nans(fgrad.grad(masked), mode="log")(X)
    assert np.isnan(out[0]) and isinstance(out, fgrad.Array)
    first, second = capsys.readouterr().out.splitlines()
    assert "∂" in first and "div" in first
    assert "mul" in second and "NaN in 1 of 3 elements" in second


def test_a_jitted_function_is_fast_again_after_nans():
    f = fgrad.jit(lambda x: x + 1)
    for g in (f, debug.nans(f), f):
        assert g(X).tolist() == [1, 2, 5] and isinstance(g(X), fgrad.Array)


def test_nans_goes_outermost():
    with pytest.raises(fgrad.ArgumentError, match="outermost"):
        fgrad.grad(debug.nans(masked))(X)


def run(code, **env):
    """What a program prints to its error output."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True,
                          text=True, env={**os.environ, **env})
    return done.stderr


def test_the_switch_watches_every_transformed_function():
    said = run("""
        import fgrad, fgrad.numpy as fnp
        f = fgrad.jit(fgrad.grad(lambda x: fnp.log(x) * 0.0))
        assert f(1.0) == 0
        f(0.0)
        """, FGRAD_NANS="1")
    assert "fgrad.NanError: the derivative of this line made inf" in said


# ---------------------------------------------------------------------------- checks

def test_checks_find_an_index_out_of_range_in_compiled_code():
    row = fgrad.jit(lambda x, i: x[i] * 2)
    assert row(X, np.array(7)) == 8
    for f in (row, fgrad.grad(row), fgrad.jit(fgrad.grad(row)), fgrad.vmap(row, (None, 0))):
        index = np.array([1, 7]) if f.__name__ == "vmap_<lambda>" else np.array(7)
        with pytest.raises(fgrad.PositionError, match="index 7 is out of range for axis 0") as e:
            debug.checks(f)(X, index)
        assert "row = fgrad.jit(lambda x, i: x[i] * 2)" in str(e.value)
    assert debug.checks(row)(X, np.array(-1)) == 8


def test_checks_of_updates_slices_and_loops():
    cases = [(lambda x, i: x.at[i].add(1.0), "axis 0"),
             (lambda x, i: lax.dynamic_slice(x, (i,), (2,)), "which has 2 places"),
             (lambda x, i: lax.fori_loop(0, 2, lambda k, c: c + x[i + k], 0.0), "axis 0")]
    for f, said in cases:
        for way in WAYS.values():
            debug.checks(way(f))(fnp.array(X), fnp.array(1))
            with pytest.raises(fgrad.PositionError, match=said):
                debug.checks(way(f))(fnp.array(X), fnp.array(4))


# ---------------------------------------------------------------------------- safe functions

@ways
def test_safe_functions_have_finite_derivatives(way):
    for f, plain in ((debug.safe_sqrt, fnp.sqrt), (debug.safe_norm, fnp.linalg.norm),
                     (lambda x: debug.safe_div(1.0, x), lambda x: 1 / x)):
        zero = fnp.zeros(2)
        assert way(fgrad.grad(lambda x: f(x).sum()))(zero).tolist() == [0, 0]
        x = fnp.array([3.0, 4.0])
        np.testing.assert_allclose(f(x), plain(x), rtol=1e-6)
        np.testing.assert_allclose(fgrad.grad(lambda x: f(x).sum())(x),
                                   fgrad.grad(lambda x: plain(x).sum())(x), rtol=1e-6)


def test_safe_norm_along_an_axis():
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert debug.safe_norm(x, axis=1).tolist() == [5, 0]
    assert debug.safe_norm(x, axis=1, keepdims=True).shape == (2, 1)
