"""Derivative rules that users write: custom_jvp, custom_vjp, and stop_gradient.

    @custom_jvp                                    @custom_vjp
    def f(x): ...                                  def f(x): ...
    @f.defjvp                                      f.defvjp(forward, backward)
    def rule(primals, tangents): ...

Outside of transformations the function just runs.  Under one, function and rule are staged to
Programs, and what they close over becomes an argument; so they may close over values of other
transformations, and work under grad, jvp, vmap and jit in any nesting.  What a function closes over
is differentiated through its body.  A rule mostly calls its own function, whose rule is wanted by
second derivatives: so rules are staged when they are wanted, after a first run has shown what they
close over.  Relies on `call`; users and `nn` rely on it.
"""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar

from . import arguments, tree
from .arguments import is_array, lifted
from .core import (
    EVALUATE, Primitive, Value, as_value, bound_axes, current, with_axes)
from .errors import ArgumentError
from .interpreters.backward import pull, transposed
from .interpreters.call import (
    Call, batch_program, call, chosen, ct_names, derived, merged, names_of, prefixed, recorded,
    split, wider)
from .interpreters.batch import batch
from .interpreters.forward import filled, push
from .interpreters.stage import evaluate, stage
from .interpreters.watch import entry
from .ir import Program, Var
from .ops import convert, plus, reduce_sum, to_front, transpose, zeros_like
from .types import INEXACT_KINDS, ArrayType


WHOLE = (int, bool)


# ---------------------------------------------------------------------------- stop_gradient

class StopGradient(Primitive):
    """x, whose derivative is zero.   n[*s] → n[*s]"""
    differentiable = False

    def type(self, x, /):
        return x

    def numpy(self, x, /):
        return x

    def batch(self, dims, x, /):
        return self(x), dims[0]

    def pull(self, x, /):
        return x


STOP = StopGradient("stop_gradient")


def stop_gradient(x):
    """The pytree x, held constant: derivatives do not see where it came from.

    >>> import fgrad
    >>> fgrad.grad(lambda x: x * fgrad.stop_gradient(x))(3.0)
    Array(3., f32[])
    """
    return tree.map(lambda leaf: STOP(lifted(leaf)) if is_array(leaf) else leaf, x)


# ---------------------------------------------------------------------------- operations

class Rule:
    """The Programs of a derivative rule: rule() makes them when they are first wanted.

    axes: the axis names bound where the function was called, which the rule may speak of.  n: the
    number of arguments that have a derivative; further inputs are what is closed over.
    """

    def __init__(self, name, n, make):
        self.__name__, self.n, self.make, self.made = name, n, make, None
        self.axes = bound_axes()

    def __call__(self):
        if self.made is None:
            self.made = with_axes(self.axes, self.make)
        return self.made


class Custom(Primitive):
    """A Program with a derivative rule; a subclass says how jvp and vjp programs follow from it.

    program: rule.n arguments, then what is closed over  →  results.
    """
    multiple = True
    settles = False
    transparent = True

    def type(self, *types, program, rule):
        return program.out_types

    def evaluate(self, args, params):
        return call.evaluate(args, {"program": params["program"]})

    def forward(self, args, tangents, params):
        mask = tuple([t is not None for t in tangents])
        program = params["program"].derive(self.jvp_program, mask, params["rule"])
        out = call(*args, *chosen(tangents, mask), program=program)
        m = len(out) // 2
        return out[:m], out[m:]

    def linearize(self, below, args, active, params):
        program, mask = params["program"], tuple([node >= 0 for node in active])
        both = program.derive(self.vjp_program, mask, params["rule"])
        return recorded(below, args, active, both, len(program.outputs))

    def record(self, outs, args, active, params):
        return call.record(outs, args, active, {"program": params["program"]})

    depends = Call.depends

    def axis_names(self, params):
        return params["program"].axis_names.union(params["rule"].axes)

    def batch_over(self, axis, dims, args, params):
        program, rule = params["program"], params["rule"]
        batched = Rule(f"vmap_{rule.__name__}", rule.n, lambda: self.batched_rule(rule, dims, axis))
        return self(*args, program=program.derive(batch_program, dims, axis), rule=batched), 0


def along_body(program, n, xs, ts):
    """The tangents of a program by what it closes over, its inputs from n on; a list with None for
    zero.
    """
    if all(t is None for t in ts[n:]):
        return [None] * len(program.outputs)
    return push(lambda *more: evaluate(program, [*xs[:n], *more]), xs[n:], ts[n:])[1]


def summed(first, second):
    return [plus(a, b) for a, b in zip(first, second)]


def jvp_types(program, mask):
    """(types, names) of the inputs of a jvp program."""
    types, names = program.in_types, names_of(program)
    return [*types, *chosen(types, mask)], [*names, *prefixed("d", chosen(names, mask))]


class CustomJvp(Custom):
    """rule: n arguments, n tangents, then what is closed over  →  results, their tangents."""

    @staticmethod
    def pushed(program, mask, rule):
        """The function (inputs, tangents of the masked) → (results, tangents)."""
        every, n = len(program.inputs), rule.n

        def function(*args):
            xs, ts = args[:every], merged([None] * every, args[every:], mask)
            if any(mask[:n]):
                both = evaluate(rule(), [*xs[:n], *filled(xs[:n], ts[:n]), *xs[n:]])
                outs, out_ts = both[:len(both) // 2], both[len(both) // 2:]
            else:
                outs = evaluate(program, xs)
                out_ts = [None] * len(outs)
            return outs, filled(outs, summed(out_ts, along_body(program, n, xs, ts)))
        return function

    @staticmethod
    def jvp_program(program, mask, rule):
        pushed = CustomJvp.pushed(program, mask, rule)

        def flat(*args):
            outs, ts = pushed(*args)
            return *outs, *ts
        return derived(program, "jvp", flat, *jvp_types(program, mask))

    @staticmethod
    def vjp_program(program, mask, rule):
        n, pushed = len(program.inputs), CustomJvp.pushed(program, mask, rule)

        def joint(*args):
            xs, cts, likes = args[:n], args[n:], chosen(args[:n], mask)
            outs = []

            def tangents(*ts):
                values, out_ts = pushed(*xs, *ts)
                outs.extend(values)
                return out_ts
            found = transposed(tangents, likes, cts)
            return *outs, *filled(likes, found)
        whole = derived(program, "vjp", joint, [*program.in_types, *program.out_types],
                        [*names_of(program), *ct_names(program)])
        return split(whole, n, len(program.outputs))

    def batched_rule(self, rule, dims, axis):
        """The rule's Program over one more axis; tangents have it where their arguments have it."""
        return rule().derive(batch_program, (*dims[:rule.n], *dims), axis)


class CustomVjp(Custom):
    """rule: two programs.

    first: arguments, closed over  →  results, residuals
    back: residuals, cotangents, closed over  →  cotangents
    """

    @staticmethod
    def jvp_program(program, mask, rule):
        every, n, m = len(program.inputs), rule.n, len(program.outputs)
        first, back = rule()

        def flat(*args):
            xs, ts = args[:every], merged([None] * every, args[every:], mask)
            both = evaluate(first, xs)
            outs, kept = both[:m], both[m:]
            # the rule gives the transposed derivative: transposing it gives the derivative
            out_ts = transposed(lambda *cts: evaluate(back, [*kept, *cts, *xs[n:]]), outs, ts[:n])
            return *outs, *filled(outs, summed(out_ts, along_body(program, n, xs, ts)))
        return derived(program, "jvp", flat, *jvp_types(program, mask))

    @staticmethod
    def vjp_program(program, mask, rule):
        every, n, m = len(program.inputs), rule.n, len(program.outputs)
        first, back = rule()

        def joint(*args):
            xs, cts = args[:every], args[every:]
            both = evaluate(first, xs)
            found = [None] * n
            if any(mask[:n]):
                found = evaluate(back, [*both[m:], *cts, *xs[n:]])
            active = chosen(xs[n:], mask[n:])
            more = []
            if active:
                def body(*ys):
                    return evaluate(program, [*xs[:n], *merged(xs[n:], ys, mask[n:])])
                more = pull(body, active)[1](cts)
            return *both[:m], *filled(chosen(xs, mask), [*chosen(found, mask[:n]), *more])
        whole = derived(program, "vjp", joint, [*program.in_types, *program.out_types],
                        [*names_of(program), *ct_names(program)])
        return split(whole, every, m)

    def batched_rule(self, rule, dims, axis):
        """Both Programs over one more axis."""
        first, back = rule()
        return first.derive(batch_program, dims, axis), back.derive(batch_back, dims, axis)


def batch_back(back, dims, axis):
    """The backward rule over one more Axis: cotangents of an unmapped argument are summed."""
    n, size = len(back.outputs), axis.size
    closed = dims[n:]
    own = len(back.inputs) - len(closed)
    in_dims = (*[0] * own, *closed)

    def batched(*args):
        outs, out_dims = batch(lambda *xs: evaluate(back, xs), args, in_dims, axis)
        return tuple([returned(to_front(x, d, size), to) for x, d, to in zip(outs, out_dims, dims)])
    return derived(back, "vmap", batched, wider(back, in_dims, size), names_of(back))


def returned(ct, d):
    """A cotangent, mapped in front, where its argument is mapped: at d, or nowhere."""
    if d is None:
        return reduce_sum(ct, axes=(0,))
    if d == 0:
        return ct
    return transpose(ct, perm=(*range(1, d + 1), 0, *range(d + 1, ct.ndim)))


custom_jvp_call = CustomJvp("custom_jvp")
custom_vjp_call = CustomVjp("custom_vjp")


# ---------------------------------------------------------------------------- what users call

# Functions whose rules are being staged
_exploring = ContextVar("fgrad_exploring", default=frozenset())


class Function:
    """What custom_jvp and custom_vjp have in common: a function, and arguments without derivative.
    """

    def __init__(self, f, nondiff_argnums=()):
        what = type(self).__name__
        arguments.check_function(f, what)
        functools.update_wrapper(self, f, updated=())      # what f has is its own
        self.f = f
        self.nondiff = arguments.positions(f, what, "nondiff_argnums", nondiff_argnums)

    def __repr__(self):
        return f"{type(self).__name__}({arguments.name_of(self.f)})"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    @entry
    def __call__(self, *args, **kwargs):
        self.check_rule()
        if current() is EVALUATE:
            return self.f(*args, **kwargs)
        bound = inspect.signature(self.f).bind(*args, **kwargs)
        if bound.kwargs:
            raise by_keyword(type(self).__name__, self.f, list(bound.kwargs))
        bound.apply_defaults()
        return self.staged(Given(self.f, bound.args, self.nondiff))

    def staged(self, given):
        """The result under the current transformation."""
        trace = given.staged(lambda *xs: given.call(self.f, xs), given.types)
        if self in _exploring.get():
            captured, how = trace.captured, functools.partial(call, program=trace.program)
        else:
            captured = self.captured(given, trace)
            rule = Rule(f"{given.name}_rule", len(given.types),
                        lambda: self.programs(given, trace, captured))
            how = functools.partial(self.operation, program=with_captured(trace, captured),
                                    rule=rule)
        return tree.unflatten(trace.out, how(*given.values, *captured))

    def captured(self, given, trace):
        """What function and rule close over, found by staging the rule once; it calls no rule of
        its own.
        """
        found = {id(x): x for x in trace.captured}
        token = _exploring.set(_exploring.get() | {self})
        try:
            for t in self.traces(given, trace, ()):
                found.update({id(x): x for x in t.captured})
        finally:
            _exploring.reset(token)
        return list(found.values())

    def programs(self, given, trace, captured):
        """What Rule holds."""
        found = [t.program for t in self.traces(given, trace, captured)]
        return found[0] if len(found) == 1 else found


def by_keyword(what, f, names):
    """The error for arguments that no rule can be given, since f takes them by keyword only."""
    name, given = arguments.name_of(f), ", ".join(f"`{n}`" for n in names)
    return ArgumentError(f"{what}: `{name}` takes {given} by keyword only, which its rule does not "
                         "get.", given=[f"{n}=…" for n in names],
                         fix=["take the * out of its parameters; nondiff_argnums names what has no "
                              "derivative", f"or close over {given}"])


class Given:
    """The arguments of one call: `fixed` without derivative, the others as leaves.

    arrays: the places of the leaves that are traced.  Others, a Python int or bool among them,
    reach function and rules as they are: they have no derivative, and may be a size or a flag.
    """

    def __init__(self, f, args, nondiff):
        self.f, self.name, self.args = f, arguments.name_of(f), args
        self.places = [k for k in range(len(args)) if k not in nondiff]
        self.fixed = [args[k] for k in nondiff]
        self.leaves, self.structure = tree.flatten(tuple([args[k] for k in self.places]))
        self.arrays = [k for k, x in enumerate(self.leaves)
                       if is_array(x) and x.__class__ not in WHOLE]
        self.values = [lifted(self.leaves[k]) for k in self.arrays]
        self.types = [x.type for x in self.values]
        names = arguments.leaf_names(f, args, {})
        at = [k not in nondiff for k, a in enumerate(args) for _ in tree.leaves(a)]
        names = [n for n, m in zip(names, at) if m]
        self.names = [names[k] for k in self.arrays]

    def rebuilt(self, xs):
        """The differentiable arguments, as a tuple, with these arrays for leaves."""
        return tree.unflatten(self.structure, arguments.put(self.leaves, self.arrays, xs))

    def tangents(self, ts):
        """Their tangents, of a Python int or bool its zero."""
        zeros = [type(x)() if x.__class__ in WHOLE else x for x in self.leaves]
        return tree.unflatten(self.structure, arguments.put(zeros, self.arrays, ts))

    def call(self, f, xs):
        """f(*args) with these arrays for leaves."""
        args = list(self.args)
        for k, a in zip(self.places, self.rebuilt(xs)):
            args[k] = a
        return f(*args)

    def staged(self, function, types, suffix="", names=(), lent=()):
        """The Trace of function(*tracers)."""
        return stage(function, types, name=self.name + suffix, names=names or self.names, lent=lent)


def with_captured(trace, captured):
    """The trace's Program with `captured` as its last inputs: what it and its rule close over."""
    program = trace.program
    own = len(program.inputs) - len(trace.captured)
    known = dict(zip(map(id, trace.captured), program.inputs[own:]))
    last = [known.get(id(x)) or Var(x.type) for x in captured]
    return Program(program.name, (*program.inputs[:own], *last), program.eqns, program.outputs,
                   program.hidden)


def check_results(name, what, trace, out, types):
    """Raises an error unless a rule gave results of the function's tree and types."""
    tree.check_same(trace.out, tree.structure(out),
                    f"{what} of `{name}` must have the tree of its result")
    for leaf, wanted, path in zip(tree.leaves(out), types, tree.paths(trace.out)):
        arguments.check_same_type(f"a rule of `{name}`", tree.path_text(what, path), leaf, wanted,
                                  "the result")


class custom_jvp(Function):
    """The function f with a forward derivative of your own, given by `f.defjvp` or `f.defjvps`.

    nondiff_argnums: positions of arguments without derivative; the rule gets them first.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> @fgrad.custom_jvp
    ... def f(x):
    ...     return fnp.sin(x)
    >>> @f.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), 100.0 * t
    >>> fgrad.grad(f)(0.0)
    Array(100., f32[])
    """
    rule, operation = None, custom_jvp_call

    def defjvp(self, rule):
        """rule(primals, tangents) → (f(*primals), tangent).  Gives the rule back, so it can
        decorate.
        """
        self.rule = rule
        return rule

    def defjvps(self, *rules):
        """Per argument: rule(tangent, result, *primals) → its part of the tangent, or None for
        zero.
        """
        def rule(*given):
            *fixed, primals, tangents = given
            args = list(primals)
            for k, x in sorted(zip(self.nondiff, fixed)):
                args.insert(k, x)
            out = self(*args)
            parts = [r(t, out, *primals) for r, t in zip(rules, tangents) if r is not None]
            none = tree.map(lambda x: zeros_like(lifted(x)), out)
            return out, functools.reduce(lambda a, b: tree.map(plus, a, b), parts or [none])
        self.rule = rule

    def check_rule(self):
        """Raises ArgumentError when there is no rule yet."""
        if self.rule is None:
            name = arguments.name_of(self.f)
            raise ArgumentError(f"custom_jvp: `{name}` has no derivative rule yet.",
                                fix=f"decorate one with @{arguments.spoken(self.f)}.defjvp")

    def traces(self, given, trace, lent):
        """[the Trace of the rule]."""
        n, types = len(given.types), trace.program.out_types

        def rule(*args):
            out = self.rule(*given.fixed, given.rebuilt(args[:n]), given.tangents(args[n:2 * n]))
            out, t = rule_pair(out, given.name, "the rule", "(result, tangent)")
            check_results(given.name, "result", trace, out, types)
            check_results(given.name, "tangent", trace, t, types)
            return tree.leaves(out), tree.leaves(t)
        names = [*given.names, *prefixed("d", given.names)]
        return [given.staged(rule, [*given.types, *given.types], "_jvp", names, lent)]


def rule_pair(out, name, what, expected):
    """The two parts of a rule's result.  Raises ArgumentError when it is no pair."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise ArgumentError(f"{what} of `{name}` must return {expected}, but it returned "
                            f"{arguments.tree_text(out)}.", expected="a tuple of two")
    return out


class custom_vjp(Function):
    """The function f with a reverse derivative of your own, given by `f.defvjp(forward, backward)`.

    forward(*args) → (f(*args), residuals);   backward(residuals, ct) → a tuple, one cotangent per
    argument, of its shape, None for zero.  An int or a bool of Python stays one among arguments and
    residuals, such as x.shape.  nondiff_argnums: positions of arguments without derivative;
    backward gets them first.  Under jvp the derivative is the transpose of `backward`.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> @fgrad.custom_vjp
    ... def f(x):
    ...     return fnp.sin(x)
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (100.0 * ct,))
    >>> fgrad.grad(f)(0.0)
    Array(100., f32[])
    """
    forward = backward = None
    operation = custom_vjp_call

    def defvjp(self, forward, backward):
        """Sets both rules."""
        self.forward, self.backward = forward, backward

    def check_rule(self):
        """Raises ArgumentError when there is no rule yet."""
        if self.forward is None:
            name = arguments.name_of(self.f)
            raise ArgumentError(f"custom_vjp: `{name}` has no derivative rule yet.",
                                fix=f"{arguments.spoken(self.f)}.defvjp(forward, backward)")

    def traces(self, given, trace, lent):
        """[the Trace of the forward rule, that of the backward rule]."""
        types, seen = trace.program.out_types, {}

        def first(*xs):
            out, kept = rule_pair(given.call(self.forward, xs), given.name, "the forward rule",
                                  "(result, residuals)")
            check_results(given.name, "result", trace, out, types)
            seen["leaves"], seen["structure"] = tree.flatten(kept)
            seen["arrays"] = [k for k, x in enumerate(seen["leaves"]) if isinstance(x, Value)]
            return tree.leaves(out), [seen["leaves"][k] for k in seen["arrays"]]
        first = given.staged(first, given.types, "_forward", lent=lent)
        kept_types = first.program.out_types[len(types):]

        def back(*args):
            kept, cts = args[:len(kept_types)], args[len(kept_types):]
            residuals = tree.unflatten(seen["structure"],
                                       arguments.put(seen["leaves"], seen["arrays"], kept))
            found = self.backward(*given.fixed, residuals, tree.unflatten(trace.out, cts))
            return cotangents(found, given, self.backward)
        names = [*[None] * len(kept_types), *["ct"] * len(types)]
        return [first, given.staged(back, [*kept_types, *types], "_backward", names, lent)]


def cotangents(found, given, rule):
    """The cotangents that the backward rule returned, one per array leaf; zeros for None."""
    if not isinstance(found, (tuple, list)) or len(found) != len(given.places):
        names = [arguments.argument_name(given.f, k) for k in given.places]
        example = ", ".join([f"ct_{n}" for n in names]) + ("," if len(names) == 1 else "")
        raise ArgumentError(
            f"the backward rule of `{given.name}` must return a tuple of {len(given.places)}, one "
            f"cotangent per argument, but it returned {arguments.tree_text(found)}.",
            given=f"the rule {arguments.place_of(rule)}",
            fix=f"return ({example})")
    out = []
    for part, child in zip(found, given.structure.children):
        if part is None:
            out.extend([None] * child.count)
            continue
        leaves, structure = tree.flatten(part, is_leaf=lambda x: x is None)
        tree.check_same(child, structure, f"a cotangent from the backward rule of `{given.name}`")
        out.extend(leaves)
    out = [out[k] for k in given.arrays]
    for ct, type_, name in zip(out, given.types, given.names):
        if ct is not None and type_.dtype.kind in INEXACT_KINDS:
            arguments.check_same_shape(f"the backward rule of `{given.name}`",
                                       f"the cotangent of {name}", ct, type_, f"`{name}`")
    return filled([ArrayType(t.dtype, t.shape) for t in given.types],
                  [converted(ct,
                             t) if t.dtype.kind in INEXACT_KINDS else None
                             for ct, t in zip(out, given.types)])


def converted(ct, wanted):
    """The cotangent in its argument's dtype: promotion inside of the function may have changed it.
    """
    if ct is None:
        return None
    ct = as_value(ct)
    return ct if ct.dtype == wanted.dtype else convert(ct, dtype=wanted.dtype)
