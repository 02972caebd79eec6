"""Staging: runs a function once on typed variables and writes down what it does, as a Program.

`Stage` is the interpreter, `Staged` its tracer, `stage` the way in.  A traced Python number mixes
like a Python number: it takes the dtype of the array beside it, and becomes an array of the default
dtype when it is returned.  Relies on core and ir; jit, control flow, custom rules and `call` rely
on it.
"""

from __future__ import annotations

import ast
from collections import Counter
from types import MappingProxyType

from .. import source, tree
from ..core import Array, Interpreter, Tracer, Value, as_value, current
from ..errors import ArgumentError, ConcretizationError, notice
from ..ir import Equation, Program, Var
from ..ops import broadcast, convert, select
from ..text import noun_of
from ..types import F64, I64, SCALARS, WIDE, ArrayType, default_for, dtype_of_scalar

UNROLLED = 2000            # equations of one line, from which the user is told of its loop
COMPILER = "the compiler"  # who stages what it makes of a Program: no loop of the user's
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
UNCHANGED = frozenset(("neg", "abs", "square", "integer_pow"))     # of a number they give a number


class Specialise(BaseException):
    """Private signal: these arguments of this staging must be static.  No `except Exception` eats
    it.

    `owner` is the Stage, `arguments` the positions of its inputs; `owner.specialisable` is the very
    object that was given to `stage`.
    """

    def __init__(self, owner, arguments):
        super().__init__(arguments)
        self.owner, self.arguments = owner, arguments


class Staged(Tracer):
    """A variable of a Program being written.  `is_number`: it stands for a Python number, or WIDE
    for a float64 of NumPy.
    """
    __slots__ = ("type", "variable", "eqn", "is_number")

    def __init__(self, owner, var, eqn=None, is_number=False):
        self.owner, self.type, self.variable, self.eqn = owner, var.type, var, eqn
        self.is_number = is_number

    shape = property(lambda self: self.type.shape)
    dtype = property(lambda self: self.type.dtype)

    def as_number(self):
        return Staged(self.owner, self.variable, self.eqn, True)

    def beside_wide(self):
        return Staged(self.owner, self.variable, self.eqn, WIDE)

    def describe(self):
        return f"{self.type}<traced>"

    def value_for(self, what):
        """None: raises Specialise when only whole Python numbers went into it, else
        ConcretizationError; LeakError when its function has ended.
        """
        if self.owner.finished:
            raise self.leaked()
        inputs = self.owner.inputs_of(self.variable)
        specialisable = self.owner.specialisable
        if inputs and all(k in specialisable for k in inputs):
            self.owner.signal = Specialise(self.owner, inputs)
            raise self.owner.signal
        raise self.owner.no_value(self, what, inputs)

    def origin(self):
        place = source.place(self.eqn.source) if self.eqn is not None else None
        if place is None:
            return None
        return f"made at {place.short}: {place.text}" if place.text else f"made at {place.short}"


class Noting(Interpreter):
    """An interpreter that notes the user's lines: `source`, `mark` are those of what comes next."""
    notes = True
    mark = source = None

    def derivative_of(self, out):
        """The next operations belong to the derivative of the line that made `out`."""
        raise NotImplementedError

    def marked(self, out, function, *args):
        """function(*args), which belongs to the derivative of the line that made `out`."""
        before = self.mark
        self.derivative_of(out[0] if out.__class__ is tuple and out else out)
        try:
            return function(*args)
        finally:
            self.mark = before


class Stage(Noting):
    """Writes a Program.

    `captured`: id → (value, its Staged) of what the function closes over; the value is kept, so
    that its id stays its own.  `mark`, `source`: where the next equations come from, when it is
    known.
    """
    title = "jit"

    def __init__(self, below, name, specialisable=()):
        self.below, self.name, self.specialisable = below, name, specialisable
        self.inputs, self.eqns, self.captured = [], [], {}
        self.mark = self.source = None
        self.signal = None                       # the Specialise that was raised, were it swallowed
        self.numbers = False                     # are there traced Python numbers at all?
        self.finished = False

    def input(self, type, name, is_number):
        """The next argument."""
        self.numbers = self.numbers or bool(is_number)
        self.inputs.append(Var(type, name))
        return Staged(self, self.inputs[-1], None, is_number)

    def own(self, a):
        """A value that is not this Stage's as one of its variables: a hidden input, or a further
        one.
        """
        if not isinstance(a, Value):
            a = as_value(a)
        found = self.captured.get(id(a))
        if found is None:
            if not isinstance(a, Array) and not (isinstance(a, Tracer) and self.may_capture(a)):
                raise a.leaked()
            self.numbers = self.numbers or bool(a.is_number)
            found = self.captured[id(a)] = a, Staged(self, Var(a.type), None, a.is_number)
        return found[1]

    def may_capture(self, a):
        """Does the tracer belong to an interpreter below, or is it lent to one?"""
        interpreter = self.below
        while interpreter is not None:
            if interpreter is a.owner:
                return True
            if interpreter.__class__ is Stage and id(a) in interpreter.captured:
                return True
            interpreter = interpreter.below
        return False

    def process(self, op, args, params):
        if self.finished:                        # still current in a copied context (asyncio)
            return self.below.process(op, args, params)
        args = [a if a.__class__ is Staged and a.owner is self or a.__class__ in SCALARS
                else self.own(a) for a in args]
        is_number = False
        if self.numbers:
            if op is convert and args[0].is_number and args[0].dtype == params["dtype"]:
                return Staged(self, args[0].variable, args[0].eqn)       # an array from here on
            args, is_number = self.with_numbers(op, args)
        types = op.type(*[a if a.__class__ in SCALARS else a.type for a in args], **params)
        variables = [a.variable if a.__class__ is Staged else a for a in args]
        outs = [Var(t) for t in (types if op.multiple else (types,))]
        eqn = Equation(op, variables, params, outs, self.source or source.here(), self.mark)
        self.eqns.append(eqn)
        if op.multiple:
            return tuple([Staged(self, v, eqn) for v in outs])
        return Staged(self, outs[0], eqn, is_number)

    # -- Python numbers -------------------------------------------------------------------------

    def with_numbers(self, op, args):
        """(arguments, is the result a Python number too?), for a program that has traced numbers.
        """
        numbers = [a.__class__ is Staged and a.is_number for a in args]
        if not any(numbers) or op is convert or not op.settles:
            return args, False
        is_number = WIDE if WIDE in numbers else True
        if op.name in UNCHANGED:
            (a,) = args
            return [self.number_as(a, I64) if a.dtype.kind == "b" else a], is_number
        if op.numbers and len(args) > 1:         # the array beside them gives the type
            head = int(op is select)             # the condition is not beside what it chooses from
            like = next((a.type for n, a in zip(numbers[head:], args[head:])
                         if a.__class__ is Staged and not n), None)
            if like is not None:
                return [self.number_like(a, like) if n else a for n, a in zip(numbers, args)], False
            if op is not select:
                return self.as_equal_numbers(op, args), is_number
        return [self.number_as(a, default_for(a.dtype, n)) if n else a
                for n, a in zip(numbers, args)], False

    def as_equal_numbers(self, op, args):
        """Python numbers, traced or not, in the dtype in which Python would compute."""
        kinds = {(a.dtype if a.__class__ is Staged else dtype_of_scalar(a)).kind for a in args}
        if kinds == {"b"} and op.name in ("and", "or", "xor", *COMPARISONS):
            return args
        dtype = F64 if "f" in kinds or op.name in ("div", "pow") else I64
        return [self.number_as(a, dtype) if a.__class__ is Staged else
                float(a) if dtype is F64 else int(a) for a in args]

    def number_like(self, a, like):
        """A traced Python number as an array of a type."""
        x = self.process(convert, (a,), {"dtype": like.dtype})
        if not like.shape:
            return x
        return self.process(broadcast, (x,), {"shape": like.shape, "axes": tuple(range(like.ndim))})

    def number_as(self, a, dtype):
        """A traced Python number in this dtype, still a Python number."""
        if a.dtype == dtype:
            return a
        var = Var(ArrayType(dtype, a.shape))
        eqn = Equation(convert, (a.variable,), dict(dtype=dtype), (var,),
                       self.source or source.here(), self.mark)
        self.eqns.append(eqn)
        return Staged(self, var, eqn, a.is_number)

    # -- what is asked of it --------------------------------------------------------------------

    def refuse_numpy(self, tracer):
        if tracer.is_number or self.finished:    # np.arange(n): retrace with n known
            tracer.value_for("a NumPy argument")

    def derivative_of(self, out):
        """The next equations belong to the derivative of the line that made `out`."""
        while isinstance(out, Tracer) and out.__class__ is not Staged:
            out = out.inner()
        if isinstance(out, Staged) and out.owner is self and out.eqn is not None:
            self.mark = out.eqn.mark or out.eqn.source

    def inputs_of(self, var):
        """The positions of the inputs that the variable depends on; -1 stands for what is closed
        over.
        """
        made = {v: eqn for eqn in self.eqns for v in eqn.outs}
        position = {v: k for k, v in enumerate(self.inputs)}
        needed, seen, todo = set(), set(), [var]
        while todo:
            v = todo.pop()
            if v.__class__ is not Var or v in seen:
                continue
            seen.add(v)
            if v in made:
                todo.extend(made[v].args)
            else:
                needed.add(position.get(v, -1))
        return needed

    def no_value(self, x, what, inputs):
        """The error for asking a value that depends on arrays."""
        asked = asking(what)
        names = [f"`{self.inputs[k].name or f'argument {k + 1}'}`" for k in sorted(inputs)
                 if k >= 0]
        sources = " and ".join(names) or "values closed over"
        given = [f"{x.type}, which depends on {sources} of `{self.name}`"]
        if x.origin():
            given.append(x.origin())
        return ConcretizationError(
            f"{asked} needs a value, but while `{self.name}` is compiled there are only types.",
            given=given,
            fix=fixes(asked, [self.inputs[k] for k in sorted(inputs) if k >= 0], self.title))


def asking(what):
    """What Python wants the value for: for a bool, the word on the user's line."""
    where, node = source.place(source.here()), source.node_there()
    text = f" {where.text} " if where is not None else ""
    if isinstance(node, ast.Call) and what in ("bool", "index"):
        name = ast.unparse(node.func)
        if f"`{name}`" in FIXES:
            return f"`{name}`"
        if what == "index" and name not in ("int", "operator.index"):
            return SIZE
    if isinstance(node, ast.Subscript) and what == "index":
        return BOUND if any(isinstance(n, ast.Slice) for n in ast.walk(node.slice)) else LIST
    if what == "bool":
        for word in ("elif", "while", "assert", "if", "and", "or", "not"):
            if f" {word} " in text:
                return f"`{word}`"
    return {"bool": "bool()", "float": "float()", "int": "int()",
            "index": "a Python index"}.get(what, what)


SIZE = "a shape or size"
LIST = "the index of a Python list"
BOUND = "the bound of a slice"
FIXES = {"`max`": "fgrad.numpy.maximum(a, b), or x.max() of one array",
         "`min`": "fgrad.numpy.minimum(a, b), or x.min() of one array",
         "`sorted`": "fgrad.numpy.sort(x)",
         "`any`": "fgrad.numpy.any(x)",
         "`all`": "fgrad.numpy.all(x)",
         "`range`": "fgrad.lax.fori_loop(0, n, body, x) loops as often as a traced n says",
         LIST: "fgrad.numpy.array(list)[i], of a list of numbers",
         SIZE: "shapes are fixed when it is compiled: take them from x.shape",
         "`if`": "choose with fgrad.numpy.where(condition, a, b)",
         "`elif`": "choose with fgrad.numpy.where(condition, a, b)",
         "`while`": "loop a fixed number of times, and choose with fgrad.numpy.where",
         "`and`": "combine with fgrad.numpy.logical_and(a, b)",
         "`or`": "combine with fgrad.numpy.logical_or(a, b)",
         "`not`": "fgrad.numpy.logical_not(a)"}


def fixes(asked, inputs, what):
    """How to do without the value."""
    first = FIXES.get(asked, "compute with fgrad.numpy functions instead")
    roots = dict.fromkeys(tree_root(v.name) for v in inputs if v.name and not v.shape)
    static = [f"static_argnames={name!r}, if it is a Python value" for name in roots]
    if what != "jit":
        return [first, "or with fgrad.lax.cond(condition, f, g, x)",
                f"or write the {what} as a loop in Python" if what not in ("cond", "switch") else
                "or choose in Python, outside of jit"]
    return [first, *static[:1], "or remove jit: without it values are known"]


def tree_root(name):
    """The argument's own name: `params` of `params['w']`."""
    return name.split("[")[0].split(".")[0]


def staging(interpreter):
    """The first interpreter that operations reach and that notes lines: a Stage mostly, or None."""
    while interpreter is not None and not interpreter.notes:
        interpreter = interpreter.below
    return interpreter


class Trace:
    """A staged function: its Program; the tracers it closed over, now the last inputs; its result's
    tree.
    """

    def __init__(self, program, captured, out):
        self.program, self.captured, self.out = program, captured, out


def stage(function, types, *, name="f", names=(), numbers=MappingProxyType({}), specialisable=(),
          lent=(), what="jit"):
    """The Trace of function(*tracers), one tracer per type.

    names: of the arguments, as the user writes them.  numbers: position → `is_number` of traced
    Python numbers.  specialisable: the positions of those whose value may be asked for, by
    Specialise.  lent: values that the function may close over; each is one more input.  what: the
    user's word for it.  The result is any pytree of arrays and numbers; Python numbers in it become
    arrays of the default dtypes.

    Raises ConcretizationError where Python needs a value, and ArgumentError for other results.
    """
    owner = Stage(current(), name, specialisable)
    owner.title = what
    names = (*names, *[None] * (len(types) - len(names)))
    tracers = [owner.input(t, n, numbers.get(k, False))
               for k, (t, n) in enumerate(zip(types, names))]
    owner.captured = {id(x): (x, owner.input(x.type, None, x.is_number)) for x in lent}
    try:
        out = owner.run(function, *tracers)
        if owner.signal is None:
            pairs, structure = tree.flatten_with_path(out)
            results = [owner.run(result, owner, path, x).variable for path, x in pairs]
    finally:
        # a bare except, or NumPy, may have eaten the signal
        owner.finished = True
        if owner.signal is not None:
            raise owner.signal
    if len(owner.eqns) > UNROLLED and what != COMPILER:
        notice_unrolled(owner)
    closed = list(owner.captured.values())[len(lent):]
    captured = [pair for pair in closed if isinstance(pair[0], Tracer)]
    hidden = [(s.variable, a) for a, s in closed if not isinstance(a, Tracer)]
    inputs = [*owner.inputs, *(s.variable for _, s in captured)]
    program = Program(name, inputs, owner.eqns, results, hidden)
    return Trace(program, tuple(a for a, _ in captured), structure)


def notice_unrolled(owner):
    """Gives a notice where one line of the user's made more than UNROLLED equations."""
    lines = Counter(eqn.source for eqn in owner.eqns if eqn.mark is None)
    where, count = lines.most_common(1)[0] if lines else (None, 0)
    place = source.place(where)
    if count > UNROLLED and place is not None:
        notice(("unrolled", place.file, place.line),
               f"a Python loop was unrolled to {count} operations of one line of `{owner.name}`: "
               f"`{place.text}`. fgrad.lax.scan or fori_loop compile it once", where=place)


def result(owner, path, x):
    """A leaf of the result as the owner's Staged."""
    try:
        x = as_value(x)
    except ArgumentError:
        raise ArgumentError(
            f"`{owner.name}` returned {noun_of(x)}, which is no array.",
            given=f"{tree.path_text('result', path)}: {x!r:.60}",
            expected="arrays and numbers, in dicts, lists, tuples or registered classes",
            fix=["return arrays and numbers only, and keep the rest outside of it",
                 "decorate the class with @fgrad.pytree, if it holds arrays"]) from None
    if x.__class__ is Staged and x.owner is owner:
        return x
    return owner.own(x)


def evaluate(program, args):
    """The results of the program on these values, as the current interpreter sees them: a tuple.

    args: the inputs; closed-over arrays come from the program.  Under a Stage the equations written
    keep the sources that the program has.
    """
    env = dict(zip(program.inputs, args))
    env.update(program.hidden)
    interpreter = current()
    owner = staging(interpreter)
    process = interpreter.process
    before = owner and (owner.source, owner.mark)
    try:
        for eqn in program.eqns:
            if owner is not None:
                owner.source, owner.mark = eqn.source, eqn.mark
            out = process(eqn.op, tuple([env[a] if a.__class__ is Var else a for a in eqn.args]),
                          eqn.params)
            if eqn.op.multiple:
                env.update(zip(eqn.outs, out))
            else:
                env[eqn.outs[0]] = out
    finally:
        if owner is not None:
            owner.source, owner.mark = before
    return tuple([env[v] for v in program.outputs])
