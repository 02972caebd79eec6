"""Calls: what a Program runs at several places is planned once.

    z = called[fft] x;  w = called[fft] y;  v = called[fft] u

A Fourier transform is some hundred equations, which fuse with what is around them where they are
inlined.  One that is called often stays a call: its Plan, its kernels and their code are made once
for all places.  The stepper of a spectral method has some twenty transforms of two or three kinds.
Arguments that are zeros (of a real signal) are part of what is called.  Only for Targets with
`native_loops`.  The pipeline calls `once`; `pairs` writes the calls; relies on the operations of
control flow.
"""

from __future__ import annotations

from collections import Counter

from ..control.bodies import Control
from ..interpreters.call import chosen
from ..interpreters.stage import evaluate
from ..ir import Equation, Program
from ..ops import full
from .matrices import in_place_of

OFTEN = 3                  # places from which a Program is planned once,
TWICE = 500                # or two, where that spares so many equations: each place fuses less


class Called(Control):
    """The results of a Program, which is planned once for all who call it.   operands → results"""
    loop = "call"

    def programs(self, params):
        return (params["program"],)

    def replaced(self, params, programs, more=0):
        return {"program": programs[0]}

    def type(self, *types, program):
        return tuple(program.out_types)

    def steps(self, *args, program):
        return evaluate(program, args)


called = Called("called")


def once(program, target):
    """The Program whose calls are inlined, save those of what is called often."""
    program = program.derive(of_zeros)
    counts = program.derive(callees)
    spared = sum(len(p.eqns) for p, n in counts.items() if n == 2)
    least = 2 if spared >= TWICE else OFTEN
    often = {p for p, n in counts.items() if n >= least and target.native_loops}
    return without_calls(program, often) if len(often) < len(counts) else program


def callees(program):
    """How often each Program is called in a Program, and in those of its loops."""
    counts = Counter()
    for eqn in program.eqns:
        if eqn.op is called:
            counts[eqn.params["program"]] += 1
        elif eqn.op.nested:
            for p in eqn.op.programs(eqn.params):
                counts.update(p.derive(callees))
    return counts


def in_bodies(eqn, change):
    """The equation of a loop with change(program) in place of its Programs."""
    before = eqn.op.programs(eqn.params)
    programs = [change(p) for p in before]
    if all(p is q for p, q in zip(programs, before)):
        return eqn
    params = eqn.op.replaced(eqn.params, programs)
    return Equation(eqn.op, eqn.args, params, eqn.outs, eqn.source, eqn.mark)


# ---------------------------------------------------------------------------- arguments

def of_zeros(program):
    """The Program with calls that are given no zeros: these are within what is called."""
    makers = {v: eqn for eqn in program.eqns for v in eqn.outs}

    def change(eqn):
        if eqn.op is not called:
            return [in_bodies(eqn, lambda p: p.derive(of_zeros)) if eqn.op.nested else eqn]
        given = tuple([not is_zeros(a, makers) for a in eqn.args])
        if all(given):
            return [eqn]
        params = {"program": eqn.params["program"].derive(given_only, given)}
        return [Equation(called, chosen(eqn.args, given), params, eqn.outs, eqn.source, eqn.mark)]
    return program.rewritten(change)


def is_zeros(v, makers):
    """Is it an array of zeros, in whatever shape?"""
    while v in makers and makers[v].op.name in ("reshape", "broadcast"):
        (v,) = makers[v].args
    return v in makers and makers[v].op is full and makers[v].params["value"] == 0


def given_only(program, given):
    """The Program of some of its inputs, with zeros for the others."""
    zeros = [Equation(full, (), {"shape": v.shape, "value": 0.0, "dtype": v.dtype}, (v,))
             for v, g in zip(program.inputs, given) if not g]
    return Program(program.name, chosen(program.inputs, given), [*zeros, *program.eqns],
                   program.outputs, program.hidden)


# ---------------------------------------------------------------------------- in their place

def without_calls(program, but):
    """The Program with the equations of what it calls in place of the calls, save of these."""
    def change(eqn):
        if eqn.op is called:
            inside = eqn.params["program"]
            return [eqn] if inside in but else in_place_of(eqn, lambda: inside, ())
        return [in_bodies(eqn, lambda p: without_calls(p, but)) if eqn.op.nested else eqn]
    return program.rewritten(change)
