"""Looking at values while a function runs, transformed or compiled: print, callback, breakpoint,
nans, checks.

    fgrad.debug.print("loss {l:.3f}", l=loss)      at any place of a function
    fgrad.debug.nans(fgrad.grad(loss))(params)     which operation made the first NaN
    fgrad.debug.checks(step)(params, batch)        indices out of range are errors in compiled code

and `safe_sqrt safe_norm safe_div`, whose derivatives are finite where those of the plain functions
are not.  Relies on callbacks and the interpreters; users rely on it.
"""

from __future__ import annotations

import builtins
import functools
import pdb
import string
import sys

import numpy as np

from . import arguments, callbacks, native_entry, source, tree
from . import numpy as fnp
from .core import EVALUATE, Interpreter, current
from .errors import ArgumentError, PositionError, boundary, notice
from .interpreters.call import inline
from .interpreters.watch import Watch, plain, table
from .ir import Equation, Program
from .text import noun_of

__all__ = [
    "breakpoint", "callback", "checks", "nans", "print", "safe_div", "safe_norm", "safe_sqrt"]
__dir__ = __all__.copy     # dir() lists these and nothing else


# ---------------------------------------------------------------------------- print

class Form(string.Formatter):
    """str.format, where a format such as `.3f` goes to each element of an array."""

    def format_field(self, value, form):
        if isinstance(value, np.ndarray) and value.ndim and form:
            return np.array2string(value, formatter={"all": lambda x: format(x, form)})
        return super().format_field(value[()] if isinstance(value, np.ndarray) else value, form)

    def check_unused_args(self, used, args, kwargs):
        unused = [k for k in (*range(len(args)), *kwargs) if k not in used]
        if unused:
            names = ", ".join(f"argument {k + 1}" if k.__class__ is int else k for k in unused)
            raise ValueError(f"it does not print {names}")


FORM = Form()


class Anything:
    """Stands for a value whose format is not known yet."""

    def __format__(self, form):
        return ""

    def __getattr__(self, name):
        return self

    def __getitem__(self, key):
        return self


ANYTHING = Anything()


@boundary
def print(text, *args, ordered=True, **kwargs):
    """Prints text.format(*args, **kwargs) whenever it is reached, with the values of that run.

    args, kwargs: pytrees; a format such as `{x:.3f}` applies to each element of an array.  It
    prints under every transformation: once per element under vmap, in the forward pass under grad,
    and at every call of a compiled function, always in the order of the program.

    Raises ArgumentError when text is no string, or names what is not given.

    >>> print("x = {x:.2f}, {}", 3, x=np.float32(0.5))
    x = 0.50, 3
    """
    if not isinstance(text, str):
        raise ArgumentError(f"debug.print takes a text first, not {noun_of(text)}.",
                            fix='debug.print("{}", x)')
    check_form(text, args, kwargs)
    callbacks.effect_callback(functools.partial(printed, text), *args, **kwargs)


def printed(text, *args, **kwargs):
    """Prints the text with these values."""
    builtins.print(FORM.vformat(text, args, kwargs), flush=True)


def check_form(text, args, kwargs):
    """Raises ArgumentError unless the text and what is given fit each other."""
    given = [f"argument {k + 1}" for k in range(len(args))] + list(kwargs)
    try:
        FORM.vformat(text, [ANYTHING] * len(args), dict.fromkeys(kwargs, ANYTHING))
    except (KeyError, IndexError) as error:
        missing = error.args[0] if isinstance(error, KeyError) else "another argument"
        raise ArgumentError(f"debug.print needs {missing} for its text.",
                            given=[f"text: {text!r}", f"values: {', '.join(given) or 'none'}"],
                            fix="give what stands in braces by name: debug.print('{x}', x=x)"
                            ) from None
    except ValueError as error:
        raise ArgumentError(f"debug.print cannot use its text: {error}.", given=repr(text),
                            fix="write {} or {name} where a value should stand") from None


@boundary
def callback(f, *args, ordered=True, **kwargs):
    """Calls f(*args, **kwargs) with NumPy arrays whenever it is reached; what f returns is ignored.

    Under vmap it is called once per element, under grad in the forward pass; calls keep the order
    of the program, whatever `ordered` says.  What f raises is raised.

    >>> seen = []
    >>> callback(lambda x: seen.append(x.sum()), np.ones(3))
    >>> seen
    [np.float64(3.0)]
    """
    callbacks.effect_callback(f, *args, **kwargs)


# ---------------------------------------------------------------------------- breakpoint

@boundary
def breakpoint(*, debugger=None, **values):
    """Stops when it is reached, in pdb, with the values of that run under their names.

    values: what to look at; without any, the local variables that hold arrays.  It stops only where
    there is a terminal.  debugger(values), with a dict of NumPy arrays, is called instead of pdb.

    >>> breakpoint(debugger=lambda values: builtins.print(sorted(values)), x=1.0, y=2.0)
    ['x', 'y']
    """
    where = source.place(source.here())
    if not values:
        found = sys._getframe(2).f_locals.items()
        values = {name: x for name, x in found if any(map(arguments.is_array, tree.leaves(x)))}
    callbacks.effect_callback(functools.partial(stop, debugger, where), values)


def stop(debugger, where, values):
    """Hands the values to a debugger: the given one, or pdb if there is somebody to type."""
    if debugger is not None:
        debugger(values)
    elif sys.stdin is not None and sys.stdin.isatty():
        builtins.print(f"stopped at {where.short}: {', '.join(values)}" if where else "stopped")
        pdb.Pdb().run("pass", dict(values))
    else:
        notice(("breakpoint", where), "debug.breakpoint does not stop, since there is no terminal",
               where=where)


# ---------------------------------------------------------------------------- nans

@boundary
def nans(f, *, mode="first", inf=True):
    """f, run operation by operation; an error names the operation that made the first NaN or inf.

    f may be a function, or what grad, vmap or jit made of one: nans goes outermost.  Only what
    reaches the result is a fault: what `where` masks is none.  With inf=False an inf is none
    either.  mode="log": prints every operation that made a NaN or inf, those masked too, and
    returns the result.  The environment variable FGRAD_NANS=1 does the same for every function that
    grad, jit or vmap makes.

    The error says the line, the operation, whether it belongs to the derivative of the line, and
    the ranges of what it was given.  Raises NanError, and ArgumentError for another mode.

    >>> nans(lambda x: fnp.log(x) * 2)(np.array([1.0, 0.0]))
    Traceback (most recent call last):
    fgrad.NanError: this line made inf in 1 of 2 elements, by the operation log.
    ...
    """
    arguments.check_function(f, "debug.nans")
    if mode not in ("first", "log"):
        raise ArgumentError(f"debug.nans has no mode {mode!r}.", expected="'first' or 'log'")

    @boundary
    @functools.wraps(f, updated=())
    def watched(*args, **kwargs):
        outermost("nans")
        watch = Watch(EVALUATE, inf)
        out = watch.run(functools.partial(f, **kwargs), *args)
        if mode == "first":
            return watch.check(out)
        watch.mark_reached(out)
        builtins.print(table(watch.sites) or "no NaN and no inf was made")
        return plain(out)
    return watched


def outermost(name):
    """Raises ArgumentError inside of a transformation; compiled functions will not run natively."""
    if current() is not EVALUATE:
        raise ArgumentError(f"debug.{name} must be the outermost transformation.",
                            fix=f"debug.{name}(grad(f)) instead of grad(debug.{name}(f))")
    native_entry.uninstall_all()


# ---------------------------------------------------------------------------- checks

class Checks(Interpreter):
    """Evaluates; Programs get an equation that checks indices before each one that uses them."""
    title = "checks"

    def __init__(self, below):
        self.below = below

    def process(self, op, args, params):
        if "program" in params:
            params = {**params, "program": params["program"].derive(with_checks)}
        elif op.nested:
            programs = [p.derive(with_checks) for p in op.programs(params)]
            params = op.replaced(params, programs)
        elif op.name in INDEXED:
            indices, sizes = INDEXED[op.name](args, params)
            check_indices(op.name, None, sizes, *[i.np for i in indices])
        return self.below.process(op, args, params)


def gathered(args, params):
    """The indices of gather and scatter, and (axis, number of places) for each."""
    axes = params["axes"]
    return args[1:1 + len(axes)], [(a, args[0].shape[a]) for a in axes]


def sliced(args, params):
    """The starts of dynamic_slice and its like, and per start (axis, number of places)."""
    first = 1 if "sizes" in params else 2
    sizes = params["sizes"] if "sizes" in params else args[1].shape
    places = [n - m + 1 for n, m in zip(args[0].shape, sizes)]
    return args[first:], list(enumerate(places))


INDEXED = {                # operation → what gives its indices and their ranges
    "gather": gathered, "scatter_set": gathered, "scatter_add": gathered, "scatter_mul": gathered,
    "scatter_max": gathered, "scatter_min": gathered,
    "dynamic_slice": sliced, "dynamic_update_slice": sliced}


def with_checks(program):
    """The Program, inlined, with a check before every equation of INDEXED."""
    eqns, flat = [], inline(program)
    for eqn in flat.eqns:
        if eqn.op.name in INDEXED:
            indices, sizes = INDEXED[eqn.op.name](eqn.args, eqn.params)
            check = functools.partial(check_indices, eqn.op.name, eqn.source, sizes)
            host = callbacks.Host(check, tree.structure((tuple(indices), {})),
                                  (None,) * len(indices), None)
            eqns.append(Equation(callbacks.silent, indices, {"function": host, "types": ()}, (),
                                 eqn.source, eqn.mark))
        eqns.append(with_inner_checks(eqn) if eqn.op.nested else eqn)
    return Program(flat.name, flat.inputs, eqns, flat.outputs, flat.hidden)


def with_inner_checks(eqn):
    """The equation of control flow with checks in its Programs."""
    programs = [p.derive(with_checks) for p in eqn.op.programs(eqn.params)]
    return Equation(eqn.op, eqn.args, eqn.op.replaced(eqn.params, programs), eqn.outs, eqn.source,
                    eqn.mark)


def check_indices(name, where, sizes, *indices):
    """Raises PositionError for an index outside of its axis."""
    for (axis, n), values in zip(sizes, map(np.asarray, indices)):
        wrong = (values < 0) | (values >= n)
        if wrong.any():
            at = np.unravel_index(np.argmax(wrong), wrong.shape)
            more = f", at {tuple(map(int, at))} of the indices" if values.ndim else ""
            raise PositionError(
                f"index {values[at]} is out of range for axis {axis}, which has {n} places.",
                given=f"{name} of {int(wrong.sum())} such index{more}",
                expected=f"an index from 0 to {n - 1}",
                where=source.here() if where is None else where)


def checks(f):
    """f, where an index out of range raises PositionError, in compiled functions too.

    Without it compiled code takes the nearest element when it reads, and drops what it would write.
    f may be what jit, grad or vmap made of a function; checks goes outermost.  Negative indices are
    resolved before they are checked.

    >>> import fgrad
    >>> row = fgrad.jit(lambda x, i: x[i])
    >>> row(np.arange(3.0), np.array(7)), checks(row)(np.arange(3.0), np.array(1))
    (Array(2., f64[]), Array(1., f64[]))
    """
    arguments.check_function(f, "debug.checks")

    @boundary
    @functools.wraps(f, updated=())
    def checked(*args, **kwargs):
        outermost("checks")
        return Checks(EVALUATE).run(functools.partial(f, **kwargs), *args)
    return checked


# ---------------------------------------------------------------------------- safe functions

@boundary
def safe_sqrt(x):
    """sqrt(x), and 0 where x <= 0, with the derivative 0 there instead of inf or NaN.

    >>> import fgrad
    >>> fgrad.grad(safe_sqrt)(0.0), fgrad.grad(safe_sqrt)(4.0)
    (Array(0., f32[]), Array(0.25, f32[]))
    """
    x = fnp.asarray(x)
    positive = x > 0
    return fnp.where(positive, fnp.sqrt(fnp.where(positive, x, 1)), 0)


@boundary
def safe_norm(x, axis=None, keepdims=False):
    """The Euclidean norm along `axis`, with the derivative 0 where x is 0.

    >>> import fgrad
    >>> fgrad.grad(safe_norm)(np.zeros(2)).tolist()
    [0.0, 0.0]
    """
    x = fnp.asarray(x)
    return safe_sqrt(fnp.sum(x * x, axis=axis, keepdims=keepdims))


@boundary
def safe_div(x, y, otherwise=0):
    """x / y, and `otherwise` where y is 0, with the derivative 0 there.

    >>> safe_div(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    x, y = fnp.asarray(x), fnp.asarray(y)
    zero = y == 0
    return fnp.where(zero, otherwise, x / fnp.where(zero, 1, y))
