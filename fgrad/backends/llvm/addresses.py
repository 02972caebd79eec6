"""Indices and addresses of loop IR as LLVM text, written into the loop they belong to.

An address is row pointer + offset + constant, so that neither loop-invariant code motion nor loop
strength reduction is needed: what an outer loop knows is computed there, once.  Relies on
`index` and `instructions`; `values` builds on it, and gives it the values of run-time indices.
"""

from __future__ import annotations

from contextlib import contextmanager

from ... import index
from ...index import Dynamic, Quot, Var
from ...types import I32, I64
from .instructions import Instructions, stored, type_text
from .text import constant, vector


class Scope:
    """An open loop: the variables known in it, where lines before it go, what it has computed.

    before: None for code that runs once where it stands, such as a copy of a body.  memo: what was
    computed, by a node, an index or a buffer and what else it depends on.  fetched: rows, and
    buffers, of which a part was fetched ahead.
    """

    def __init__(self, mask, before=None):
        self.mask, self.before, self.memo, self.pointers = mask, before, {}, {}
        self.fetched = set()


class Addresses:
    """Writes indices and addresses into one LLVM function.

    `pointers`: Buffer → its pointer.  `env`: Var → (name or None, constant), their sum is its
    value.  `vec` is (Var, lanes) inside of a vector loop, of which `count` lanes are in use; `mask`
    the i1, or vector of i1, of the guards around.
    """

    def __init__(self, fn, pointers, env=None):
        self.fn, self.pointers, self.env = fn, pointers, dict(env or {})
        self.instructions = Instructions(fn.op)
        self.vec, self.count, self.mask = None, 0, None
        known = 0
        for v in self.env:
            known |= v.bit
        self.scopes = [Scope(known)]

    def op(self, text, out=None):
        """The name of an instruction's result; it is written to `out`, or where lines go now."""
        name = self.fn.fresh()
        (self.fn.lines if out is None else out).append(f"  {name} = {text}")
        return name

    @property
    def lanes(self):
        return self.vec[1] if self.vec else 1

    @contextmanager
    def branch(self):
        """What is computed in a branch is not known behind it."""
        kept = [(s, s.memo, s.pointers, s.fetched) for s in self.scopes]
        for s, memo, pointers, fetched in kept:
            s.memo, s.pointers, s.fetched = dict(memo), dict(pointers), set(fetched)
        yield
        for s, s.memo, s.pointers, s.fetched in kept:
            pass

    def split(self, x):
        """(depth of x's innermost loop, the part known outside of it, the rest, where to write)."""
        depth = next(d for d, s in enumerate(self.scopes) if not x.free & ~s.mask)
        outside = self.scopes[depth - 1].mask if depth else 0
        outer = {a: c for a, c in x.terms if not a.free & ~outside} if depth else {}
        inner = [(a, c) for a, c in x.terms if a not in outer]
        plain = not any(at_run_time(a) for a, _ in x.terms)
        out = self.in_front(depth) if plain else self.fn.lines
        return depth if plain else len(self.scopes) - 1, index.ix(outer), inner, out

    def in_front(self, depth):
        """Where the lines go that a scope computes: in front of the first loop inside of it."""
        places = (s.before for s in self.scopes[depth + 1:] if s.before is not None)
        return next(places, self.fn.lines)

    def index(self, x):
        """x as an i64, computed in the scope of its innermost variable."""
        if not x.terms:
            return str(x.const)
        depth, outer, inner, out = self.split(x)
        memo = self.scopes[depth].memo
        key = x, self.mask if any(at_run_time(a) for a, _ in x.terms) else None
        if key not in memo:
            const, total = x.const, self.index(outer)
            for a, c in inner:
                name, k = self.atom(a, out)
                const += c * k
                if name is not None:
                    scaled = name if c == 1 else self.op(f"mul nsw i64 {name}, {c}", out)
                    total = self.plus(total, scaled, out)
            memo[key] = self.plus(total, str(const), out)
        return memo[key]

    def plus(self, a, b, out):
        """a + b, as an i64."""
        return b if a == "0" else a if b == "0" else self.op(f"add nsw i64 {a}, {b}", out)

    def atom(self, a, out):
        """An atom as (name or None, constant)."""
        if isinstance(a, Var):
            return self.env[a]
        if isinstance(a, Dynamic):
            name, wide = self.value(a.node)
            assert not wide, "a run-time index that differs by lane is read lane by lane"
            return self.instructions.cast(name, a.node.dtype, I64, 1), 0
        return self.op(f"{'udiv' if a.op == '/' else 'urem'} i64 {self.index(a.ix)}, {a.n}", out), 0

    def address(self, buffer, x):
        """Row pointer made outside of the loop + offset in it + constant."""
        pointer, const, out = self.pointers[buffer], x.const, self.fn.lines
        t = stored(buffer.type.dtype)
        if x.terms:
            depth, outer, inner, out = self.split(x)
            if outer.terms:
                pointer = self.address(buffer, outer)
            for a, c in inner:
                name, k = self.atom(a, out)
                const += c * k
                if name is not None:
                    pointer = self.offset(depth, t, pointer, name, c, out)
        if not const:
            return pointer
        return self.op(f"getelementptr inbounds {t}, ptr {pointer}, i64 {const}", out)

    def offset(self, depth, t, pointer, name, coefficient, out):
        """pointer + coefficient · name elements, made once in a scope."""
        memo, key = self.scopes[depth].pointers, (t, pointer, name, coefficient)
        if key not in memo:
            step = name if coefficient == 1 else self.op(f"mul nsw i64 {name}, {coefficient}", out)
            memo[key] = self.op(f"getelementptr inbounds {t}, ptr {pointer}, i64 {step}", out)
        return memo[key]

    def at_lane(self, x, k):
        """x at lane k, as an i64.

        The loop variable moves on by k, and run-time indices give their lane.
        """
        if not self.vec or not x.free & self.vec[0].bit:
            return self.index(x)
        total, const = "0", x.const
        for a, c in x.terms:
            name, j = self.atom_at_lane(a, k)
            const += c * j
            if name is not None:
                scaled = name if c == 1 else self.op(f"mul nsw i64 {name}, {c}")
                total = self.plus(total, scaled, self.fn.lines)
        return self.plus(total, str(const), self.fn.lines)

    def atom_at_lane(self, a, k):
        """An atom at lane k, as (name or None, constant)."""
        v = self.vec[0]
        if not a.free & v.bit or isinstance(a, Var):
            name, const = self.atom(a, self.fn.lines)
            return name, const + (k if a is v else 0)
        if isinstance(a, Dynamic):
            name, wide = self.value(a.node)
            if wide:
                t = type_text(a.node.dtype, self.lanes)
                name = self.op(f"extractelement {t} {name}, i64 {k}")
            return self.instructions.cast(name, a.node.dtype, I64, 1), 0
        return self.op(f"{'udiv' if a.op == '/' else 'urem'} i64 {self.at_lane(a.ix, k)}, {a.n}"), 0

    def at_lanes(self, x, step):
        """x, which is `short`, and so many steps as there are lanes before one, at all lanes, as a
        vector of i32.
        """
        w = self.lanes
        out = constant("i32", [k * step for k in range(w)])
        for a, c in x.terms:
            part = self.atom_at_lanes(a)
            if c != 1:
                part = self.op(f"mul {vector('i32', w)} {part}, splat (i32 {c})")
            out = self.op(f"add {vector('i32', w)} {out}, {part}")
        return out

    def atom_at_lanes(self, a):
        """An atom that differs by lane at all lanes."""
        if isinstance(a, Dynamic):
            place = self.splat(self.value(a.node), a.node.dtype)
            return self.instructions.cast(place, a.node.dtype, I32, self.lanes)
        v, w = self.vec
        parts = {b: c for b, c in a.ix.terms if b.free & v.bit and not isinstance(b, Var)}
        front = self.index(index.ix({b: c for b, c in a.ix.terms if b not in parts}, a.ix.const))
        at = self.at_lanes(index.ix(parts), index.stride(a.ix, v))
        if front[0] == "%":
            front = self.op(f"trunc i64 {front} to i32")
        at = self.op(f"add {vector('i32', w)} {at}, {self.splat((front, False), I32)}")
        return self.op(f"{'udiv' if a.op == '/' else 'urem'} {vector('i32', w)} {at}, "
                       f"splat (i32 {a.n})")


def short(x, reach=0):
    """Does x fit into an i32, so far from its ends, and so does all that it divides?"""
    return reach - 2 ** 31 <= x.lo and x.hi < 2 ** 31 - reach and all(
        short(a.ix) for a, _ in x.terms if isinstance(a, Quot))


def at_run_time(a):
    """Does the atom contain a value computed at run time?"""
    if isinstance(a, Quot):
        return any(at_run_time(b) for b, _ in a.ix.terms)
    return isinstance(a, Dynamic)
