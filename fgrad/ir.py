"""The array IR: a Program is a list of Equations over typed variables, each assigned once.

    tanh_layer(w: f32[3,2], x: f32[8,3]) -> f32[8,2]
      a: f32[8,2] = dot_general[ij,jk->ik] x w
      b: f32[8,2] = tanh a
      return b

Arguments of an equation are Vars, or Python numbers (bool, int, float) where the operation takes
numbers.  `ir_text.py` prints and parses; staging writes Programs; every transformation and pass
reads them.  Programs are never changed: a pass makes a new one.
"""

from __future__ import annotations

import importlib
import operator

from .errors import CheckError
from .later import lazily
from .types import SCALARS, ArrayType

show = lazily("fgrad.ir_text", "show")           # most programs are never printed


class Operations(dict):
    """name → operation; core.Primitive alone writes to it."""
    defined_in = ("interpreters.call", "custom", "control", "callbacks", "passes.calls",
                  "passes.pairs", "random")

    def load(self):
        """Loads every module that defines operations."""
        for module in self.defined_in:
            importlib.import_module(f"fgrad.{module}")
        ops = importlib.import_module("fgrad.ops")
        for name in ops.__all__:
            getattr(ops, name)

    def __missing__(self, name):
        self.load()
        if name not in self:
            raise KeyError(name)
        return self[name]


OPERATIONS = Operations()


def operation(name):
    """The operation of a name.  Raises KeyError where there is none."""
    return OPERATIONS[name]


class Var:
    """A variable: its type, and the user's name for it where known.  Compared by identity."""
    __slots__ = ("type", "name")

    def __init__(self, type, name=None):
        self.type, self.name = type, name

    def __repr__(self):
        return f"{self.name or '_'}: {self.type}"

    @property
    def shape(self):
        return self.type.shape

    @property
    def dtype(self):
        return self.type.dtype


class Equation:
    """outs = op[params] args.

    `source` is the (code, lasti) of the user's line.  `mark` is the source of the line whose
    derivative this is, or None.
    """
    __slots__ = ("op", "args", "params", "outs", "source", "mark")

    def __init__(self, op, args, params, outs, source=None, mark=None):
        self.op, self.args, self.params, self.outs = op, tuple(args), params, tuple(outs)
        self.source, self.mark = source, mark

    def __repr__(self):
        return f"{', '.join(map(repr, self.outs))} = {self.op.name} {self.args}"

    @property
    def variables(self):
        """The arguments that are variables."""
        return [a for a in self.args if a.__class__ is Var]

    @property
    def effect(self):
        """Does it do more than give its results, by itself or by a Program among its parameters?"""
        return self.op.effect or any(p.effect for p in programs_in(tuple(self.params.values())))


def programs_in(value):
    """The Programs that a parameter holds."""
    if value.__class__ is Program:
        yield value
    elif value.__class__ is tuple:
        for v in value:
            yield from programs_in(v)


class Program:
    """Typed, pure, single assignment.

    `hidden` are the closed-over arrays: (Var, Array) pairs, passed as further arguments of compiled
    code and never written into it.  `derived` caches what transformations make of this Program.
    """

    def __init__(self, name, inputs, eqns, outputs, hidden=()):
        self.name, self.inputs, self.eqns = name, tuple(inputs), tuple(eqns)
        self.outputs, self.hidden, self.derived = tuple(outputs), tuple(hidden), {}

    def __repr__(self):
        return show()(self)

    @property
    def in_types(self):
        return [v.type for v in self.inputs]

    @property
    def out_types(self):
        return [v.type for v in self.outputs]

    @property
    def effect(self):
        """Does one of its equations do more than give its results?"""
        return self.derive(has_effect)

    @property
    def axis_names(self):
        """The names of mapped axes that its equations speak of."""
        return self.derive(names_in)

    def derive(self, how, *key):
        """how(self, *key), made once."""
        if (how, key) not in self.derived:
            self.derived[how, key] = how(self, *key)
        return self.derived[how, key]

    def rewritten(self, change):
        """The Program with equations change(eqn) in place of each; itself where none differs."""
        eqns = [e for eqn in self.eqns for e in change(eqn)]
        if len(eqns) == len(self.eqns) and all(map(operator.is_, eqns, self.eqns)):
            return self
        return Program(self.name, self.inputs, eqns, self.outputs, self.hidden)

    def check(self):
        """The Program itself, if it is well formed; else CheckError.

        Every variable is assigned once, before it is read, and has the type its operation gives.
        """
        known = set()
        for v in (*self.inputs, *(v for v, _ in self.hidden)):
            if v in known:
                raise CheckError(f"{self.name}: the variable {v} is an input twice.", where=None)
            known.add(v)
        for eqn in self.eqns:
            check_equation(self, eqn, known)
        for v in self.outputs:
            if v not in known:
                raise CheckError(f"{self.name}: the result {v} is assigned nowhere.", where=None)
        return self


def has_complex(program):
    """Is there a complex variable in the Program, or in one that it runs?"""
    variables = [*program.inputs, *(v for v, _ in program.hidden),
                 *(v for eqn in program.eqns for v in eqn.outs)]
    if any(v.dtype.kind == "c" for v in variables):
        return True
    return any(p.derive(has_complex) for eqn in program.eqns
               for p in programs_in(tuple(eqn.params.values())))


def has_effect(program):
    """Has one of its equations an effect?"""
    return any(eqn.effect for eqn in program.eqns)


def names_in(program):
    """The names of mapped axes in its equations, a frozenset."""
    return frozenset(n for eqn in program.eqns for n in eqn.op.axis_names(eqn.params))


def check_equation(program, eqn, known):
    """Raises CheckError unless `eqn` reads what is `known` and its types are right.

    What it makes is known afterwards.
    """
    for a in eqn.args:
        if a not in known if a.__class__ is Var else a.__class__ not in SCALARS:
            raise CheckError(f"{program.name}: {eqn} reads {a!r}, which is not known there.",
                             where=None)
    types = eqn.op.type(*[type_of(a) for a in eqn.args], **eqn.params)
    types = tuple(types) if eqn.op.multiple else (types,)
    if types != tuple(v.type for v in eqn.outs):
        raise CheckError(f"{program.name}: {eqn} should give {types}.", where=None)
    for v in eqn.outs:
        if v in known:
            raise CheckError(f"{program.name}: {v} is assigned twice.", where=None)
        known.add(v)


def type_of(a):
    """The type of an equation's argument; a Python number stands for itself."""
    return a.type if a.__class__ is Var else a


def evaluate_types(op, args, params):
    """The result types of an operation, as a tuple of ArrayType."""
    types = op.type(*[type_of(a) for a in args], **params)
    types = tuple(types) if op.multiple else (types,)
    assert all(isinstance(t, ArrayType) for t in types), f"{op.name}.type gave {types}"
    return types
