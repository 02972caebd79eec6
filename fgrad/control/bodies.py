"""Functions as bodies of control flow: staged, closed over nothing, shared, and checked.

    scan[body=step n_consts=1 n_carry=1 length=200 reverse=False] w h xs

A body is a Program whose first inputs are the consts: everything the function closed over, arrays
and values of other transformations alike.  A function is staged at every call, unless it surely
reads what it read before; equal Programs are then one, so that what is made of them is made once.

`Control` is what scan, while and cond have in common: outside of transformations one of them runs
as a compiled Program of one equation, and its reverse derivative is a `call` of two Programs,
forward and backward.  Relies on the interpreters; the other modules of `control` rely on it.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from operator import index
from types import FunctionType
from weakref import WeakKeyDictionary

from .. import config, source, text, tree
from ..arguments import (
    check_takes, is_array, leaf_names, lifted, name_of, place_of, tree_text)
from ..core import Array, Primitive, as_value, bound_axes
from ..errors import ArgumentError, TreeError
from ..interpreters.backward import pull
from ..interpreters.call import call, chosen, derived, inline, merged, recorded
from ..interpreters.forward import filled
from ..interpreters.stage import stage
from ..ir import Equation, Program, Var
from ..ir_text import all_programs, canonical
from ..ops import broadcast, transpose, zeros_like
from ..records import frozen
from ..text import noun_of
from ..types import INEXACT_KINDS, SHORT, default_float, rules
from .reads import read_by, same

SHARED = OrderedDict()     # what a Program is → the Program, least used first; under _lock
LIMIT = 256                # Programs kept
LATEST = WeakKeyDictionary()         # function → {what is asked of it: (what it read, program, …)}
SIGNATURES = 8             # kept for a function, each with the arrays that it closed over last
_lock = threading.Lock()


# ---------------------------------------------------------------------------- staging

@frozen
class Body:
    """A staged function.

    program: consts, then arguments → results.  consts: the values closed over.  out: the result's
    tree.
    """
    function: object
    program: Program
    consts: tuple
    out: tree.Structure

    @property
    def place(self):
        """The function's name and line, for messages."""
        return place_of(self.function)

    @property
    def types(self):
        """The types of the results."""
        return self.program.out_types


def leaves_of(x, name):
    """(the leaves as Values, their types, the Structure) of a pytree of arrays and numbers, which
    is the argument `name`.

    Raises ArgumentError for a leaf that is no array.
    """
    pairs, structure = tree.flatten_with_path(x)
    for path, leaf in pairs:
        if not is_array(leaf):
            raise ArgumentError(
                f"`{tree.path_text(name, path)}` is {noun_of(leaf)}, which no loop or "
                "branch can carry.", given=f"{tree.path_text(name, path)}: {leaf!r:.60}",
                expected="arrays and numbers", fix="let the function close over it")
    values = [lifted(leaf).settled() for _, leaf in pairs]
    return values, tuple([v.type for v in values]), structure


def whole(what, name, n, least=None):
    """The option `name` of `what` as an int.  Raises ArgumentError for what is none, or below
    `least`.
    """
    if n.__class__ is not bool and hasattr(n, "__index__"):
        n = index(n)
        if least is None or n >= least:
            return n
    bound = "" if least is None else f", {least} or more"
    raise ArgumentError(f"{what} needs a whole number for {name}{bound}.",
                        given=f"{name}={n!r:.60}")


def body_of(what, f, structure, types, function=None):
    """The Body of f for arguments of this Structure (of a tuple) and these types of leaves.

    what: the user's word for the loop or branch.  function: what is staged, if it is not f itself.
    """
    function = function or f
    keeps = f.__class__ is FunctionType and is_plain(structure)
    read = read_by(function) if keeps else None
    if read is None:
        return Body(f, *staged(what, f, function, structure, types)[1:])
    asked = structure, types, rules(), config.device(), config.nans(), *bound_axes().items()
    with _lock:
        known = LATEST.setdefault(f, OrderedDict())
        found = known.get(asked)
    if found is None or not same(found[0], read):
        captured, *parts = staged(what, f, function, structure, types)
        if captured:
            return Body(f, *parts)
        found = read, *parts
        with _lock:
            known[asked] = found
            if len(known) > SIGNATURES:
                known.popitem(last=False)
    return Body(f, *found[1:])


def staged(what, f, function, structure, types):
    """(the values of other transformations that it closed over; program, consts and out of a Body).
    """
    given = tree.unflatten(structure, types)
    if function is f:
        check_takes(f, len(given), what)
    trace = stage(lambda *xs: function(*tree.unflatten(structure, xs)), types, name=name_of(f),
                  names=leaf_names(function, given, {}), what=what)
    program, consts = closed(trace.program, trace.captured)
    return trace.captured, shared(program), consts, trace.out


@functools.lru_cache(maxsize=256)
def is_plain(structure):
    """Are all nodes containers of Python or of the library, which have no methods of the user's?"""
    cls = structure.kind and structure.kind.cls
    ours = cls is None or cls.__module__.partition(".")[0] in ("builtins", "collections", "fgrad")
    return ours and all(map(is_plain, structure.children))


def shared(program):
    """The Program, or its equal that was staged before, of which derivatives and machine code are
    made already.

    Not kept are Programs with functions in them, and with others that hold arrays: SHARED would
    keep those alive.
    """
    programs = all_programs(program)
    values = [v for p in programs for eqn in p.eqns for v in eqn.params.values()]
    if any(p.hidden for p in programs) or any(map(holds_function, values)):
        return program
    key = canonical(program), *map(written, programs), rules(), *bound_axes().items()
    with _lock:
        found = SHARED.setdefault(key, program)
        SHARED.move_to_end(key)
        if len(SHARED) > LIMIT:
            SHARED.popitem(last=False)
    return found


def holds_function(value):
    """Is a parameter of an operation a function, or a tuple with one in it?"""
    return callable(value) or value.__class__ is tuple and any(map(holds_function, value))


def written(program):
    """The names of a Program, and its places in the user's text, by the id of their code."""
    places = [s and (id(s[0]), s[1]) for eqn in program.eqns for s in (eqn.source, eqn.mark)]
    return program.name, *[v.name for v in program.inputs], *places


def closed(program, captured=()):
    """(the Program with what it closes over for its first inputs, those values, a tuple).

    captured: the values of its last inputs.
    """
    own = len(program.inputs) - len(captured)
    consts = [*program.inputs[own:], *(v for v, _ in program.hidden)]
    values = (*captured, *(a for _, a in program.hidden))
    if not consts:
        return program, ()
    inputs = (*consts, *program.inputs[:own])
    return Program(program.name, inputs, program.eqns, program.outputs), values


def in_common(bodies):
    """(Programs that all begin with the same consts, those consts)."""
    consts = list({id(x): x for b in bodies for x in b.consts}.values())
    place = {id(x): k for k, x in enumerate(consts)}
    programs = []
    for b in bodies:
        given = {place[id(x)]: v for x, v in zip(b.consts, b.program.inputs)}
        first = [given.get(k) or Var(x.type) for k, x in enumerate(consts)]
        inputs = *first, *b.program.inputs[len(b.consts):]
        programs.append(shared(with_inputs(b.program, inputs)))
    return programs, consts


class Opened:
    """A Program and the values of its consts, as `in_common` takes them."""

    def __init__(self, program, consts):
        self.program, self.consts = program, consts


def with_inputs(program, inputs):
    """The Program with another list of inputs."""
    if inputs == program.inputs:
        return program
    return Program(program.name, inputs, program.eqns, program.outputs, program.hidden)


# ---------------------------------------------------------------------------- messages

def check_trees(bodies, what, names):
    """Raises TreeError unless the branches have results of one tree and of the same types.

    names: of the branches, as arguments of `what`.
    """
    first = bodies[0]
    for other, name in zip(bodies[1:], names[1:]):
        if first.out == other.out and first.types == other.types:
            continue
        kind = "trees" if first.out != other.out else "types"
        rows = [(f"{n}: {b.place}", f"returns {result_text(b)}")
                for b, n in ((first, names[0]), (other, name))]
        raise TreeError(f"the branches of {what} return different {kind}.",
                        given=text.columns(rows) + differing(first, other),
                        expected="one tree, and the same types in it",
                        fix=agreed(first, other))


def agreed(first, other):
    """How the results of two branches would be alike."""
    pairs = [(a, b) for a, b in zip(first.types, other.types) if a != b]
    if first.out == other.out and all(
            a.shape == b.shape and "b" not in (a.dtype.kind, b.dtype.kind) for a, b in pairs):
        return f".astype('{pairs[0][0].dtype}') of what the second returns, or the reverse"
    return "return the same kind of result from every branch"


def differing(first, other):
    """A line that names the first leaf whose types differ, where there are several leaves."""
    if first.out != other.out or len(first.types) == 1:
        return []
    path, a, b = next((path, a, b) for path, a, b in zip(
        tree.paths(first.out), first.types, other.types) if a is not b)
    return [f"{tree.path_text('result', path)}: {a} and {b}"]


def result_text(body):
    """The result as a tree of types: `(f32[], f32[])`."""
    return tree_text(tree.unflatten(body.out, body.types))


def check_carry(body, structure, types, out, out_types, what):
    """Raises TreeError unless the carry comes out of the body as it went in, naming the leaf."""
    if structure != out:
        given = [f"in   {tree_text(tree.unflatten(structure, types))}",
                 f"out  {tree_text(tree.unflatten(out, out_types))}"]
        raise TreeError(f"{what}: {body.place} must return the carry as the tree it was given.",
                        given=given, fix="return every part of the carry, changed or not")
    for path, a, b in zip(tree.paths(structure), types, out_types):
        if a is not b:
            leaf = tree.path_text("carry", path)
            meeting = widening(body.program, a, b)
            there = [f"or .astype('{a.dtype}') of what is {SHORT[b.dtype]} there"] * len(meeting)
            raise TreeError(f"{what}: the carry of {body.place} changes its type.",
                            given=[f"{leaf}: in {a}, out {b}", *meeting],
                            fix=[*started(leaf, a, b), *there])


def widening(program, a, b):
    """The first line where what has the dtype of a meets what has the wider one of b, if any."""
    for eqn in program.eqns if a.dtype.kind == b.dtype.kind else ():
        if eqn.op.name == "convert" and eqn.outs[0].dtype == b.dtype and (
                a.dtype in [v.dtype for v in eqn.variables]):
            place = source.place(eqn.source)
            return [] if place is None else [
                f"{place.short}: {SHORT[a.dtype]} meets {SHORT[b.dtype]} in {place.words}"]
    return []


def started(leaf, a, b):
    """How to make a carry leaf of type a, which comes out as b, fit."""
    if a.shape != b.shape:
        return [f"start it with shape {b.shape}", f"or keep its shape {a.shape} in the body"]
    if a.dtype.kind in "iub" and b.dtype.kind == "f" and not a.shape and b.dtype == default_float():
        return ["start it as a float, such as 0.0", f"or return {leaf}.astype('{a.dtype}')"]
    return [f"start it in {SHORT[b.dtype]}: .astype('{b.dtype}')",
            f"or return {leaf}.astype('{a.dtype}')"]


# ---------------------------------------------------------------------------- derived Programs

def reached(program, mask):
    """Per output: can it have a derivative by the masked inputs?"""
    active = set(chosen(program.inputs, mask))
    for eqn in program.eqns:
        if eqn.op.differentiable and any(v in active for v in eqn.variables):
            active.update(v for v in eqn.outs if v.dtype.kind in INEXACT_KINDS)
    return tuple([v in active and v.dtype.kind in INEXACT_KINDS for v in program.outputs])


def carried(program, consts, carry, rest=(), how=reached):
    """The mask of carries that can have a derivative, a superset of `carry`: the least fixed point.

    how: `reached`, or `dependent` for those that depend on what is masked at all.
    """
    while True:
        found = how(program, (*consts, *carry, *rest))
        grown = tuple([a or b for a, b in zip(carry, found)])
        if grown == carry:
            return carry
        carry = grown


def single(home, op, types, params):
    """The Program of one operation; `home`, a Program in its parameters, keeps it."""
    inputs = [Var(t) for t in types]
    params = dict(params)
    outs = [Var(t) for t in op.type(*types, **params)]
    return Program(op.name, inputs, [Equation(op, inputs, params, outs)], outs)


def moved(x, d, to):
    """x with its axis d at position `to`."""
    if d == to:
        return x
    order = [a for a in range(x.ndim) if a != d]
    return transpose(x, perm=(*order[:to], d, *order[to:]))


def spread(mask, x):
    """A mask of lanes, as wide as x, whose first axis is the lanes."""
    return broadcast(mask, shape=x.shape, axes=tuple(range(1, x.ndim))) if x.ndim > 1 else mask


# ---------------------------------------------------------------------------- the operations

class Control(Primitive):
    """An operation with Programs for parameters.  `loop` says how compiled code runs it."""
    multiple = True
    settles = False
    nested = True
    loop = None

    def programs(self, params):
        """The Programs, in a tuple."""
        raise NotImplementedError

    def axis_names(self, params):
        return frozenset().union(*[p.axis_names for p in self.programs(params)])

    def vjp_programs(self, mask, params):
        """(forward, backward), as of a `call`: arguments → results, residuals;   residuals,
        cotangents → cotangents of the masked arguments.
        """
        raise NotImplementedError

    def replaced(self, params, programs, more=0):
        """The parameters with other Programs, which have `more` consts in front."""
        raise NotImplementedError

    def steps(self, *args, **params):
        """The results for Arrays, as Arrays: in Python, over the bodies' own NumPy rules."""
        raise NotImplementedError

    def numpy(self, *arrays, **params):
        return tuple([x.np for x in self.steps(*map(Array, arrays), **params)])

    def evaluate(self, args, params):
        home, types = self.programs(params)[0], tuple([a.type for a in args])
        program = home.derive(single, self, types, tuple(params.items()))
        return call.run(args, {"program": program})

    def linearize(self, below, args, active, params):
        both = self.vjp_programs(tuple([node >= 0 for node in active]), params)
        return recorded(below, args, active, both, len(self.programs(params)[-1].outputs))

    def record(self, outs, args, active, params):
        mask = tuple([node >= 0 for node in active])
        home, types = self.programs(params)[0], tuple([as_value(a).type for a in args])
        back = home.derive(transposed_control, self, mask, types, tuple(params.items()))
        consts = [a for a, m in zip(args, mask) if not m]
        return call, outs, consts, {"program": back}, chosen(active, mask)

    def opened(self, args, params, lift):
        """(arguments, parameters) with the Programs inlined; lift(array) is a variable that holds a
        closed-over array.
        """
        programs = [p.derive(inline) for p in self.programs(params)]
        arrays = {id(a): a for p in programs for _, a in p.hidden}
        if not arrays:
            return args, self.replaced(params, programs)
        opened = []
        for p in programs:
            own = {id(a): v for v, a in p.hidden}
            first = [own.get(k) or Var(a.type) for k, a in arrays.items()]
            opened.append(Program(p.name, (*first, *p.inputs), p.eqns, p.outputs))
        at = self.first_const
        args = (*args[:at], *[lift(a) for a in arrays.values()], *args[at:])
        return args, self.replaced(params, opened, len(arrays))

    first_const = 0            # the position of the first const among the arguments


def transposed_control(home, op, mask, types, params):
    """constants, cotangents → cotangents of the masked arguments, in which the operation is linear.

    Its derivative at zero is the operation itself.
    """
    n = len(types) - sum(mask)
    likes, other = chosen(types, mask), [not m for m in mask]
    params = dict(params)

    def backwards(*args):
        consts, cts = args[:n], args[n:]
        known = merged([None] * len(mask), consts, other)
        zeros = [zeros_like(t) for t in likes]
        _, pulled = pull(lambda *xs: op(*merged(known, xs, mask), **params), zeros)
        return tuple(filled(likes, pulled(cts)))
    inputs = [*chosen(types, other), *op.type(*types, **params)]
    return derived(home, "transpose", backwards, inputs, [])
