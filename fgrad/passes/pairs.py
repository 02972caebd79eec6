"""Complex numbers as pairs of real ones: what the backends never see.

    w = mul z z        →        a, b = z[..., 0], z[..., 1];   re = a·a - b·b;   im = a·b + a·b

A complex array lies in memory as f32[…,2] or f64[…,2], so nothing is copied on the way in or out;
within a Program its parts are two arrays, which fuse like any others.  Operations that only move
elements, or are linear with real factors, work on both parts; products are made of four; the
functions have formulas in `pair_formulas`, Fourier transforms in `fourier`.  What has no
pull is called on complex arrays (`OnPairs`).  The compile driver calls `expanded`; relies on the
operations and on staging.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import ops
from ..core import Array, Primitive, current, memory_in_order
from ..errors import DtypeError
from ..interpreters.stage import COMPILER, stage, staging
from ..ir import Program, Var, has_complex, programs_in
from ..types import SCALARS, SHORT, ArrayType, part_of
from .fourier import TRANSFORMS, is_faster
from .pair_formulas import FORMULAS, parts, times


# ---------------------------------------------------------------------------- in memory

def is_complex(type):
    return type.dtype.kind == "c"


def in_memory(type):
    """The type of the memory that holds an array: of complex numbers, of their parts.

    >>> in_memory(ArrayType("complex64", (3,)))
    f32[3,2]
    """
    return ArrayType(part_of(type.dtype), (*type.shape, 2)) if is_complex(type) else type


def to_memory(x):
    """An Array as one of real numbers, of the same memory."""
    if x.dtype.kind != "c":
        return x
    return Array(memory_in_order(x).reshape(-1).view(part_of(x.dtype)).reshape(*x.shape, 2))


def from_memory(x, type):
    """The Array of a type in this memory."""
    if not is_complex(type):
        return x
    memory = np.ascontiguousarray(x.np).reshape(-1)
    return Array(memory.view(type.dtype).reshape(type.shape))


# ---------------------------------------------------------------------------- in a Program

class Pair(NamedTuple):
    """A complex value: its parts, two real ones of one type."""
    re: object
    im: object

    @property
    def shape(self):
        return self.re.shape


def opened(x):
    """The Pair of real numbers that lie in memory side by side along a last axis."""
    return Pair(*[ops.reshape(along_last(x, k), shape=x.shape[:-1]) for k in (0, 1)])


def along_last(x, k):
    start, stop = (0,) * (x.ndim - 1) + (k,), (*x.shape[:-1], k + 1)
    return ops.slice(x, start=start, stop=stop, stride=(1,) * x.ndim)


def closed(x):
    """A value as it lies in memory: the parts of a Pair side by side."""
    if x.__class__ is not Pair:
        return x
    return ops.concatenate(*[ops.reshape(a, shape=(*a.shape, 1)) for a in x], axis=x.re.ndim)


def expanded(program):
    """The Program on real numbers, closed-over ones too.

    The very same Program where it has no complex variable.
    """
    return program.derive(rewritten) if program.derive(has_complex) else program


def rewritten(program):
    given = [*program.inputs, *(v for v, _ in program.hidden)]

    def run(*args):
        env = {v: opened(x) if is_complex(v.type) else x for v, x in zip(given, args)}
        interpreter = current()
        owner = staging(interpreter)
        for eqn in program.eqns:
            owner.source, owner.mark = eqn.source, eqn.mark
            args = [env[a] if a.__class__ is Var else a for a in eqn.args]
            out = applied(eqn, args, interpreter)
            env.update(zip(eqn.outs, out))
        owner.source = owner.mark = None
        return tuple([closed(env[v]) for v in program.outputs])
    types = [in_memory(v.type) for v in given]
    made = stage(run, types, name=program.name, names=[v.name for v in given],
                 what=COMPILER).program
    count = len(program.inputs)
    constants = zip(made.inputs[count:], [to_memory(a) for _, a in program.hidden])
    return Program(made.name, made.inputs[:count], made.eqns, made.outputs,
                   (*constants, *made.hidden))


# ---------------------------------------------------------------------------- equation by equation

def applied(eqn, args, interpreter):
    """The results of an equation, Pairs where they are complex, as a sequence."""
    op, params = eqn.op, eqn.params
    types = [v.type for v in eqn.outs]
    if op.nested or any(programs_in(tuple(params.values()))):
        return nested(eqn, args, types, interpreter)
    if not any(a.__class__ is Pair for a in args) and not any(map(is_complex, types)):
        out = interpreter.process(op, tuple(args), params)
        return out if op.multiple else (out,)
    rule = RULES.get(op.name)
    if rule is not None:
        return (rule(op, args, params, types[0]),)
    if op.name in BY_PARTS:
        return by_parts(op, args, params)
    if op.name in PRODUCTS:
        a, b = args
        return (times(a, b, lambda x, y: op(x, y, **params)),)
    if op.name in FORMULAS:
        return (Pair(*FORMULAS[op.name](*args, **params)),)
    if op.name in TRANSFORMS and is_faster(args[0].shape, **params):
        return (transform(op, args, params),)
    if op.pull is None:
        return on_pairs(op, args, params, types, [type_of(a) for a in eqn.args])
    raise DtypeError(f"{op.name} of complex numbers cannot be compiled.",
                     given=[str(t) for t in types], fix="call it outside of jit")


def type_of(arg):
    """The type of an argument of an equation; None of a number."""
    return arg.type if arg.__class__ is Var else None


def nested(eqn, args, types, interpreter):
    """An operation that runs Programs: they take and give complex values as in memory."""
    op, params = eqn.op, eqn.params
    programs = op.programs(params)
    params = op.replaced(params, [expanded(p) for p in programs])
    out = interpreter.process(op, tuple([closed(a) for a in args]), params)
    out = out if op.multiple else (out,)
    return [opened(x) if is_complex(t) else x for x, t in zip(out, types)]


# Operations on the real and on the imaginary part apart.
BY_PARTS = frozenset("""add sub neg reshape transpose broadcast slice pad concatenate rev gather
    scatter_set scatter_add dynamic_slice dynamic_update_slice select reduce_sum cumsum barrier
    named kept stop_gradient""".split())

# Operations linear in each of two arguments.
PRODUCTS = frozenset(("mul", "dot_general", "conv_general"))


def by_parts(op, args, params):
    """op on the real parts, and on the imaginary ones, which of a Python number is zero."""
    outs, fill = [], complex(params.get("fill", 0.0))
    for name, part in (("re", fill.real), ("im", fill.imag)):
        if "fill" in params:
            params = {**params, "fill": part}
        given = [getattr(a, name) if a.__class__ is Pair else
                 0.0 if name == "im" and a.__class__ in SCALARS else a for a in args]
        out = op(*given, **params)
        outs.append(out if op.multiple else (out,))
    return [Pair(re, im) for re, im in zip(*outs)]


# ---------------------------------------------------------------------------- rows with structure

def complex_of_parts(op, args, params, type):
    return Pair(*args)


def converted(op, args, params, type):
    """Between dtypes: the imaginary part of a real number is zero, a real dtype drops it."""
    (x,), dtype = args, params["dtype"]
    if x.__class__ is not Pair:
        re = ops.convert(x, dtype=part_of(dtype))
        return Pair(re, ops.zeros_like(re))
    if dtype.kind == "c":
        return Pair(*[ops.convert(a, dtype=part_of(dtype)) for a in x])
    if dtype.kind == "b":
        return ops.or_(ops.ne(x.re, 0.0), ops.ne(x.im, 0.0))
    return ops.convert(x.re, dtype=dtype)


def filled(op, args, params, type):
    part = part_of(params["dtype"])
    value = complex(params["value"])
    return Pair(*[ops.full(shape=params["shape"], value=v, dtype=part)
                  for v in (value.real, value.imag)])


def equal(op, args, params, type):
    """Equal in both parts, or different in one."""
    (a, b), (c, d) = map(parts, args)
    combine = ops.and_ if op is ops.eq else ops.or_
    return combine(op(a, c), op(b, d))


def finite(op, args, params, type):
    return ops.and_(ops.is_finite(args[0].re), ops.is_finite(args[0].im))


def product_over(op, args, params, type):
    """A product over axes: halves times halves, until one element is left."""
    x, axes = args[0], params["axes"]
    for a in sorted(axes, reverse=True):
        x = product_along(x, a)
    return Pair(*[ops.reshape(p, shape=type.shape) for p in x])


def product_along(x, axis):
    """The product along an axis, which keeps size 1."""
    n = x.shape[axis]
    if n == 0:
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1:])
        one, zero = (ops.full(shape=shape, value=v, dtype=x.re.dtype) for v in (1.0, 0.0))
        return Pair(one, zero)
    while n > 1:
        half = n // 2
        first, second, rest = (between(x, axis, *ends) for ends in (
            (0, half), (half, 2 * half), (2 * half, n)))
        x = times(first, second, ops.mul)
        if n % 2:
            x = Pair(*[ops.concatenate(a, b, axis=axis)
                       for a, b in ((x.re, rest.re), (x.im, rest.im))])
        n = half + n % 2
    return x


def running_product(op, args, params, type):
    """cumprod: times what lies 1, 2, 4, … elements before."""
    x, axis = args[0], params["axis"]
    if params.get("reverse"):
        x = reversed_along(x, axis)
    step, n = 1, x.shape[axis]
    while step < n:
        low = tuple(step if a == axis else 0 for a in range(len(x.shape)))
        kept = between(x, axis, 0, n - step)
        before = Pair(*[ops.pad(a, value, low=low, high=(0,) * len(low), interior=(0,) * len(low))
                        for a, value in ((kept.re, 1.0), (kept.im, 0.0))])
        x, step = times(x, before, ops.mul), 2 * step
    return reversed_along(x, axis) if params.get("reverse") else x


def reversed_along(x, axis):
    return Pair(*[ops.rev(a, axes=(axis,)) for a in x])


def between(x, axis, start, stop):
    """Both parts from `start` to `stop` along an axis."""
    starts, stops = [0] * len(x.shape), list(x.shape)
    starts[axis], stops[axis] = start, stop
    return Pair(*[ops.slice(a, start=tuple(starts), stop=tuple(stops), stride=(1,) * a.ndim)
                  for a in x])


RULES = {
    "real": lambda op, args, params, type: args[0].re,
    "imag": lambda op, args, params, type: args[0].im,
    "complex": complex_of_parts, "convert": converted, "full": filled, "eq": equal, "ne": equal,
    "is_finite": finite, "reduce_prod": product_over, "cumprod": running_product,
}


def transform(op, args, params):
    """A Fourier transform, of a Pair or to one."""
    out = TRANSFORMS[op.name](args[0], **params)
    return Pair(*out) if out.__class__ is tuple else out


# ---------------------------------------------------------------------------- NumPy rules

class OnPairs(Primitive):
    """The NumPy rule of `op` on complex arrays that are given, and given back, as in memory.

    given, types: the types of op's arguments and results.
    """
    multiple = True
    differentiable = False
    dtypes = ()

    def type(self, *args, op, given, types, params):
        return tuple(map(in_memory, types))

    def numpy(self, *args, op, given, types, params):
        values = [as_complex(a, t) for a, t in zip(args, given)]
        out = op.numpy(*values, **dict(params))
        outs = out if op.multiple else (out,)
        return tuple([as_parts(np.asarray(x, t.dtype)) if is_complex(t) else np.asarray(x, t.dtype)
                      for x, t in zip(outs, types)])

    def batch(self, dims, *args, **params):
        raise NotImplementedError("compiled code is never batched")


def as_complex(a, type):
    """Memory as the complex array that it holds."""
    if not is_complex(type):
        return a
    return np.ascontiguousarray(a).reshape(-1).view(type.dtype).reshape(type.shape)


def as_parts(a):
    return np.ascontiguousarray(a).reshape(-1).view(part_of(a.dtype)).reshape(*a.shape, 2)


on_pairs_of = OnPairs("on_pairs")


def on_pairs(op, args, params, types, given):
    """The results of an operation without a pull."""
    if any(t is None for t in given):
        raise DtypeError(f"{op.name} of complex numbers takes arrays only.",
                         expected=" ".join(SHORT[t.dtype] for t in types))
    out = on_pairs_of(*[closed(a) for a in args], op=op, given=tuple(given), types=tuple(types),
                      params=tuple(sorted(params.items())))
    return [opened(x) if is_complex(t) else x for x, t in zip(out, types)]
