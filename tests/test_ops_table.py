"""Every operation, found by itself, keeps the laws: type, jvp, transpose, batch, pull."""

import itertools
import warnings

import numpy as np
import pytest

from fgrad import ops  # noqa: F401  (registers the operations)
from fgrad.core import PRIMITIVES, Array, Primitive, Value
from fgrad.interpreters.backward import pullback
from fgrad.interpreters.forward import push
from fgrad.interpreters.stage import evaluate, stage
from fgrad.ops import concatenate, reshape
from fgrad.ops.collective import Collective
from fgrad.ops.table import RULES, source_of, table_text
from fgrad.types import C128, F64, INEXACT_KINDS, SCALARS, computed
from tests.ops import scalars
from tests.ops.examples import EXAMPLES
from tests.tolerance import assert_close

OPERATIONS = {name: op for name, op in PRIMITIVES.items()
              if type(op).__module__.startswith("fgrad.ops")
              and not isinstance(op, Collective)}            # tests/test_collectives.py has those
NAMES = list(OPERATIONS)


def wrapped(args):
    """Arrays of what are NumPy arrays."""
    return [a if a.__class__ in SCALARS or isinstance(a, Value) else Array(np.asarray(a))
            for a in args]


def types_of(args):
    return [a if a.__class__ in SCALARS else a.type for a in args]


def outputs(out):
    return list(out) if isinstance(out, tuple) else [out]


def run(op, args, params):
    """The results as NumPy arrays."""
    return [np.asarray(x) for x in outputs(op(*wrapped(args), **params))]


def cases(name):
    """The cases of an operation; a missing row is a failure."""
    assert name in EXAMPLES, f"tests/ops/examples.py has no row for {name}"
    return EXAMPLES[name]


def drawn(name, dtype=None):
    """(case, arguments) in a dtype: by default f64, or the first that the operation takes."""
    op = OPERATIONS[name]
    dtype = dtype or next((d for d in (F64, C128) if d in dtypes(name)), op.dtypes[0])
    return [(c, c.draw(dtype, seed=k)) for k, c in enumerate(cases(name))]


def dtypes(name):
    """The dtypes that the laws are checked in; for select those of what is chosen."""
    from_row = OPERATIONS[name].dtypes
    return PRIMITIVES["max"].dtypes if name == "select" else from_row


def test_every_operation_has_a_row_of_examples():
    assert set(NAMES) == set(EXAMPLES)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_agrees_with_type_in_every_dtype_and_warns_of_nothing(name):
    op = OPERATIONS[name]
    for dtype in dtypes(name):
        for case, args in drawn(name, dtype):
            if skipped(name, case, args):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                out = outputs(op(*wrapped(args), **case.params))
            types = outputs(op.type(*types_of(wrapped(args)), **case.params))
            for x, t in zip(out, types):
                given = f"{name} {case.params} of {types_of(wrapped(args))}"
                assert x.type is t, f"{given} gave {x.type}, not {t}"


def skipped(name, case, args):
    """Cases outside of what the operation is defined for."""
    if name in ("argmax", "argmin") and args[0].shape[case.params["axis"]] == 0:
        return True
    return name == "full" and args


@pytest.mark.parametrize("name", [n for n in NAMES if OPERATIONS[n].differentiable])
def test_jvp_agrees_with_finite_differences(name):
    op = OPERATIONS[name]
    for case, args in drawn(name):
        for active in subsets(op, args):
            tangents = tangents_of(args, active)
            out, tangent = derivative(op, args, tangents, case.params)
            differences = finite_difference(op, args, tangents, case.params)
            for x, t, want in zip(out, tangent, differences):
                if x.dtype in (F64, C128):
                    got = np.zeros(x.shape) if t is None else np.asarray(t.np)
                    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6,
                                               err_msg=f"{name} {case} {active}")


def varying(op, args):
    """The float arguments that the operation has a derivative by."""
    return [k for k, a in enumerate(args) if a.__class__ not in SCALARS
            and a.dtype.kind in INEXACT_KINDS
            and k not in getattr(op, "constant_in", ())]


def subsets(op, args):
    """Each argument with a derivative alone, and all of them."""
    floats = varying(op, args)
    return [(k,) for k in floats] + [tuple(floats)] * (len(floats) > 1)


def tangents_of(args, active, seed=7):
    rng = np.random.default_rng(seed)
    return [like(a, rng) if k in active else None for k, a in enumerate(args)]


def like(a, rng):
    """Normal numbers of the shape of a, complex where a is."""
    x = rng.standard_normal(a.shape)
    return x + 1j * rng.standard_normal(a.shape) if a.dtype.kind == "c" else x


def derivative(op, args, tangents, params):
    """(results, tangents), as lists."""
    values = wrapped(args)
    out = op(*values, **params)
    ts = [None if t is None else Array(np.asarray(t)) for t in tangents]
    t = op.jvp(out, tuple(values), ts, **params)
    return outputs(out), outputs(t)


def finite_difference(op, args, tangents, params, h=1e-6):
    moved = [[a if t is None else a + s * h * t for a, t in zip(args, tangents)] for s in (1, -1)]
    up, down = [run(op, a, params) for a in moved]
    change = lambda a, b: np.subtract(a, b, where=a != b, out=np.zeros_like(a))
    return [change(a, b) / (2 * h) if a.dtype.kind in INEXACT_KINDS else None
            for a, b in zip(up, down)]


@pytest.mark.parametrize("name", [n for n in NAMES if OPERATIONS[n].differentiable])
def test_the_reverse_derivative_is_the_adjoint_of_the_forward_one(name):
    op = OPERATIONS[name]
    for case, args in drawn(name):
        for active in subsets(op, args):
            check_adjoint(op, case, args, active)


def check_adjoint(op, case, args, active):
    """⟨ct, A t⟩ = ⟨Aᵀ ct, t⟩, where A t is the jvp and Aᵀ ct the pullback."""
    tangents = tangents_of(args, active)
    out, t = derivative(op, args, tangents, case.params)
    rng = np.random.default_rng(8)
    cts = [Array(np.asarray(like(x, rng))) if x.dtype in (F64, C128) else None for x in out]
    if cts == [None] * len(cts):
        return
    rows = [0 if k in active else -1 for k in range(len(args))]
    result, ct = (tuple(out), cts) if op.multiple else (out[0], cts[0])
    back = pullback(op, ct, result, tuple(wrapped(args)), rows, case.params)
    left = inner(zip(cts, t))
    right = inner((Array(tangents[k]), b) for k, b in enumerate(back) if k in active)
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9, err_msg=f"{op} {case} {active}")
    for k, b in enumerate(back):
        assert b is None or k not in active or b.type is wrapped(args)[k].type


def inner(pairs):
    """The real part of the sum of products; None is zero."""
    return sum(np.real(np.sum(x.np * y.np)) for x, y in pairs if x is not None and y is not None)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("full", "iota")])
@pytest.mark.parametrize("n", [1, 2])
def test_batch_agrees_with_a_python_loop_for_every_place_of_the_batch_axis(name, n):
    op = OPERATIONS[name]
    for case, args in drawn(name):
        if skipped(name, case, args):
            continue
        lanes = [case.draw(drawn_dtype(args, case), seed=100 + k) for k in range(n)]
        for dims in places(args):
            check_batch(op, case, args, lanes, dims, n)


def drawn_dtype(args, case):
    """The dtype under test that the arguments were drawn in."""
    drawn_in = (a.dtype for a, s in zip(args, case.args) if getattr(s, "dtype", 0) is None)
    return next(drawn_in, F64)


def places(args):
    options = [(None,) if a.__class__ in SCALARS else (None, *range(a.ndim + 1)) for a in args]
    every = [d for d in itertools.product(*options) if any(k is not None for k in d)]
    return every if len(every) <= 64 else every[::len(every) // 64 + 1]


def check_batch(op, case, args, lanes, dims, n):
    stacked = [a if d is None else np.stack([lane[k] for lane in lanes], d)
               for k, (a, d) in enumerate(zip(args, dims))]
    out, dim = op.batch(dims, *wrapped(stacked), **case.params)
    own = lambda lane: [a if d is None else mine for a, d, mine in zip(args, dims, lane)]
    each = [run(op, own(lane), case.params) for lane in lanes]
    for k, x in enumerate(outputs(out)):
        assert_close(x.np, np.stack([one[k] for one in each], dim), slack=4)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("full", "iota")])
def test_rules_that_are_staged_are_well_typed_and_give_what_they_give_at_once(name):
    op = OPERATIONS[name]
    for dtype in [d for d in dtypes(name) if d.kind in INEXACT_KINDS] or dtypes(name)[:1]:
        for case, args in drawn(name, dtype):
            if not skipped(name, case, args):
                check_staged(op, case, args)


def check_staged(op, case, args):
    """Derivatives both ways, and the batched form with every array batched in front."""
    arrays = [k for k, a in enumerate(args) if a.__class__ not in SCALARS]
    values = wrapped([args[k] for k in arrays])

    def every_rule(*xs):
        whole = filled(args, arrays, xs)
        found = derivatives(op, whole, case.params)
        doubled = [concatenate(*[reshape(x, shape=(1, *x.shape))] * 2, axis=0) for x in xs]
        dims = [0 if k in arrays else None for k in range(len(args))]
        out, _ = op.batch(dims, *filled(args, arrays, doubled), **case.params)
        return found + outputs(out)

    program = stage(every_rule, [x.type for x in values]).program.check()
    staged = evaluate(program, values)
    for x, y in zip(staged, every_rule(*values), strict=True):
        assert_close(x, y, slack=4, dtype=x.dtype)


def filled(args, arrays, xs):
    """The arguments with the arrays among them replaced."""
    found = dict(zip(arrays, xs))
    return [found.get(k, a) for k, a in enumerate(args)]


def derivatives(op, args, params):
    """The tangents for tangents that are the arguments, and the cotangents for the results."""
    out = op(*args, **params)
    active = [k in varying(op, args) for k in range(len(args))]
    floats = [x for x in outputs(out) if x.dtype.kind in INEXACT_KINDS]
    if not (op.differentiable and any(active) and floats):
        return []
    t = op.jvp(out, tuple(args), [a if on else None for a, on in zip(args, active)], **params)
    ct = [x if x.dtype.kind in INEXACT_KINDS else None for x in out] if op.multiple else out
    back = pullback(op, ct, out, tuple(args), [0 if on else -1 for on in active], params)
    back = [c for c, on in zip(back, active) if on]
    return [x for x in [*outputs(t), *back] if x is not None]


@pytest.mark.parametrize("name", [n for n in NAMES if OPERATIONS[n].differentiable])
def test_the_second_derivative_agrees_with_finite_differences_of_the_first(name):
    op = OPERATIONS[name]
    for case, args in drawn(name):
        active = tuple(k for k in varying(op, args) if k not in getattr(op, "once_in", ()))
        if not active or any(args[k].size == 0 for k in active):
            continue
        t = [Array(np.asarray(x)) for x in tangents_of(args, active) if x is not None]
        s = [np.asarray(x) for x in tangents_of(args, active, seed=9) if x is not None]
        xs = [np.asarray(args[k]) for k in active]
        function = lambda *v: outputs(op(*wrapped(filled(args, active, v)), **case.params))
        first = lambda *v: [x for x in push(function, v, t)[1] if x is not None]
        up, down = [first(*[Array(x + h * d) for x, d in zip(xs, s)]) for h in (1e-5, -1e-5)]
        _, second = push(first, [Array(x) for x in xs], [Array(d) for d in s])
        for a, b, got in zip(up, down, second):
            want = (a.np - b.np) / 2e-5
            got = np.zeros(a.shape) if got is None else got.np
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=f"{name} {case}")


COMPILED = [n for n, op in OPERATIONS.items()
            if op.pull or hasattr(op, "push") or hasattr(op, "scan")]


@pytest.mark.parametrize("name", COMPILED)
def test_what_compiled_code_computes_agrees_with_numpy_in_every_dtype(name):
    op = OPERATIONS[name]
    for dtype in [d for d in dtypes(name) if d.kind != "c"]:     # of those: tests/test_complex.py
        for case, args in drawn(name, dtype):
            if skipped(name, case, args):
                continue
            (out,) = outputs(op(*wrapped(args), **case.params))
            want = np.asarray(out)
            want = want.astype(computed(want.dtype))
            if op.pull:
                got = scalars.pull(op, args, case.params, want.shape)
            elif hasattr(op, "push"):
                got = scalars.push(op, args, case.params)
            else:
                got = scalars.scan(op, args, case.params)
            got = got.astype(want.dtype) if got.size == 0 else got
            assert_close(got, want, length=8, slack=2, dtype=out.dtype)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_there_or_the_table_says_why_not(name):
    for rule in RULES:
        source = source_of(OPERATIONS[name], rule)
        assert source.kind in ("stated", "derived", "none")
        assert source.kind == "stated" or source.reason
        assert source.reason != "missing", f"{name} has no {rule} rule"


def test_the_table_prints_one_line_per_operation():
    assert len(table_text().split("\n")) == len(PRIMITIVES) + 1


def test_a_new_operation_is_found_by_itself():
    op = Primitive("nothing_yet")
    assert PRIMITIVES["nothing_yet"] is op
    del PRIMITIVES["nothing_yet"]
