"""Fourier transforms as loops: some stages, each of which puts a few elements together.

    X[k₁ + r k₂] = Σ_{j₂} W_m^{j₂ k₂} W_n^{j₂ k₁} Σ_{j₁} W_r^{j₁ k₁} x[m j₁ + j₂],
    n = r m,  W_n = exp(∓2πi / n)

A stage takes r elements that lie m apart, r = 8, 4, 2, 3, 5 or 7, which are written out, or another
prime, for which it is a product with the matrix W_r; what is left are transforms of m elements.
It stores them behind the axis, [j₂, k₁, …], so that nothing is put in order at the end, and all
stages but the first run along vectors (Stockham's way).  An even number of real elements is half
as many complex ones.  That takes less time than a call of NumPy's, and a loop with a transform in
its body calls nobody.  Other lengths stay NumPy's (`pairs.on_pairs`).

Sources: Cooley and Tukey (1965); W. Cochran et al., "What is the fast Fourier transform?" (1967),
for Stockham's way.  `pairs` relies on it; it relies on the operations, and works on pairs (re, im),
of which either may be None, for zeros.
"""

from __future__ import annotations

import math
from functools import lru_cache, reduce

from .. import ops
from ..control import kept
from ..interpreters.stage import COMPILER, stage
from ..ir import Equation, Program
from ..types import I32
from .calls import called

LONGEST = 8                # sums that are written out: of 2, 3, 4, 5, 7 or 8 elements
LARGEST, RATIO = 64, 16    # rows of a matrix of roots; their square over the length
NEAR = 1024                # elements of an axis whose stages are by eights, too
MOST = 1 << 29             # elements whose numbers, twice, are i32


def radices(n, behind=0):
    """The factors of n in the order of the stages, as measured.

    Powers of 2 by an eight, which comes first, and by fours: stages read and write all elements.
    Short ones of a last axis, with one element `behind` each, by fours and then by eights: what
    they read and write does not lie so far apart that the first cache has few lines for it.
    Threes come second, where vectors are short; other primes last, or before a single 2 or 4.
    """
    twos = (n & -n).bit_length() - 1
    if behind == 1 and n <= NEAR:
        fours = -twos % 3
        powers = [4] * fours + [8] * ((twos - 2 * fours) // 3)
    else:
        powers = [8] * (twos % 2) + [4] * (twos // 2 - twos % 2)
    odd, n, p = [], n >> twos, 3
    while n > 1:
        if n % p == 0 or p > LARGEST:            # what is left then counts as one
            p = n if p > LARGEST else p
            odd, n = [*odd, p], n // p
        else:
            p += 2
    if twos <= 2:
        return odd[::-1] + [2 ** twos] * (twos > 0)
    threes = odd.count(3)
    return powers[:1] + odd[:threes] + powers[1:] + odd[threes:]


def is_faster(shape, *, axis, n=None, inverse=False):
    """Is the transform of an array of this shape, to n elements along an axis, better done here?"""
    n = shape[axis] if n is None else n
    if 0 in (n, *shape) or n > MOST:
        return False
    p = max(radices(n), default=1)
    return p <= LONGEST or p <= LARGEST and p * p <= RATIO * n


# ---------------------------------------------------------------------------- pairs

def plus(x, y):
    return y if x is None else x if y is None else ops.add(x, y)


def minus(x, y):
    return x if y is None else ops.neg(y) if x is None else ops.sub(x, y)


def added(z, w):
    return plus(z[0], w[0]), plus(z[1], w[1])


def taken(z, w):
    """z - w."""
    return minus(z[0], w[0]), minus(z[1], w[1])


def times(z, w, multiply=ops.mul):
    """A bilinear operation of z and w, whose parts are not None."""
    def of(x, y):
        return None if x is None else multiply(x, y)
    (a, b), (c, d) = z, w
    return minus(of(a, c), of(b, d)), plus(of(a, d), of(b, c))


def quarter(z, sign):
    """z times i or -i."""
    re, im = z
    return (minus(None, im) if im is not None else None, re) if sign > 0 else (
        im, minus(None, re) if re is not None else None)


def moved(z, f, **params):
    """An operation that moves elements, on both parts."""
    return tuple(None if x is None else f(x, **params) for x in z)


def scaled(z, c):
    return tuple(None if x is None else ops.mul(x, c) for x in z)


def some(z):
    """A part that is not None."""
    return z[1] if z[0] is None else z[0]


def root(k, n, sign):
    """exp(sign 2πi k / n) as two Python floats."""
    angle = sign * 2 * math.pi * (k % n) / n
    return math.cos(angle), math.sin(angle)


def roots(powers, n, sign, dtype):
    """The pair exp(sign 2πi p / n) for an array of ints 0 ≤ p < n.

    From an angle of at most π/2, which rounds least: 2π p / n is ±π/n times min(2p, 2n - 2p), and
    that is as far from 0 as n minus it from π.
    """
    up = ops.mul(powers, 2)
    down = ops.sub(2 * n, up)
    short = ops.min(up, down)
    other = ops.sub(n, short)
    angle = ops.mul(ops.convert(ops.min(short, other), dtype=dtype), math.pi / n)
    cos, sin = ops.cos(angle), ops.sin(angle)
    below = ops.gt(up, down) if sign > 0 else ops.lt(up, down)
    return (kept(ops.select(ops.gt(short, other), ops.neg(cos), cos)),
            kept(ops.select(below, ops.neg(sin), sin)))


def products(rows, columns, n):
    """j k modulo n for j < rows, k < columns."""
    row, column = [ops.iota(shape=(rows, columns), axis=a, dtype=I32) for a in (0, 1)]
    return ops.rem(ops.mul(row, column), n)


def counted(shape, axis):
    """0, 1, 2, … along an axis."""
    return ops.iota(shape=shape, axis=axis, dtype=I32)


# ---------------------------------------------------------------------------- stages

def written_out(zs, sign):
    """The transform of some pairs, as many."""
    n = len(zs)
    if n == 1:
        return zs
    if n % 2:
        return of_odd(zs, sign)
    even, odd = written_out(zs[::2], sign), written_out(zs[1::2], sign)
    odd = [turned(z, k, n, sign) for k, z in enumerate(odd)]
    return [added(a, b) for a, b in zip(even, odd)] + [taken(a, b) for a, b in zip(even, odd)]


def turned(z, k, n, sign):
    """z times exp(sign 2πi k / n)."""
    if k == 0:
        return z
    return quarter(z, sign) if 4 * k == n else times(z, root(k, n, sign))


def of_odd(zs, sign):
    """The transform of an odd number: elements as far from both ends share cosines and sines."""
    n, half = len(zs), range(1, len(zs) // 2 + 1)
    sums, gaps = ([f(zs[j], zs[n - j]) for j in half] for f in (added, taken))
    out = [reduce(added, sums, zs[0])] + [None] * (n - 1)
    for k in half:
        near, far = zs[0], (None, None)
        for j, a, b in zip(half, sums, gaps):
            c, d = root(j * k, n, sign)
            near, far = added(near, scaled(a, c)), added(far, scaled(b, d))
        out[k], out[n - k] = added(near, quarter(far, 1)), taken(near, quarter(far, 1))
    return out


def along(w, z, axis):
    """A pair of numbers, which are those along an axis of z, for all of z."""
    shape = some(z).shape
    return moved(w, ops.broadcast, shape=shape, axes=tuple(
        k for k in range(len(shape)) if k != axis))


def by_sums(z, sign, wanted, turns):
    """[a,r,m,s] → [a,m,wanted,s]: the first of the sums over r, written out, and turned."""
    (a, r, m, s), dtype = some(z).shape, some(z).dtype
    parts = [moved(z, ops.slice, start=(0, j, 0, 0), stop=(a, j + 1, m, s), stride=(1,) * 4)
             for j in range(r)]
    found = written_out([moved(part, ops.reshape, shape=(a, m, 1, s)) for part in parts], sign)
    for k in range(1, r if turns else 0):
        row = moved(turns, ops.slice, start=(k, 0), stop=(k + 1, m), stride=(1, 1))
        found[k] = times(found[k], along(moved(row, ops.reshape, shape=(m,)), found[k], 1))
    zeros = ops.full(shape=(a, m, 1, s), value=0.0, dtype=dtype)
    return tuple(None if all(x is None for x in parts) else ops.concatenate(
        *[zeros if x is None else x for x in parts], axis=2) for parts in zip(*found[:wanted]))


def by_matrix(z, matrix, wanted, turns):
    """The same as a product with a matrix of roots."""
    a, r, m, s = some(z).shape
    matrix = moved(matrix, ops.slice, start=(0, 0), stop=(wanted, r), stride=(1, 1))
    z = times(z, matrix, lambda x, w: ops.dot_general(x, w, lhs="ajms", rhs="kj", to="amks"))
    if not turns:
        return z
    turns = moved(turns, ops.transpose, perm=(1, 0))
    return times(z, moved(turns, ops.broadcast, shape=(a, m, r, s), axes=(0, 3)))


def transformed(z, n, sign, count=None):
    """The first `count` results (None: all) along axis 1 of the transform of n elements, of pairs
    [a,m,s]; in this order, but as the last stage shapes them.

    Elements beyond the m that are given are zeros.  The roots come before all stages, which may
    take turns so.
    """
    (a, given, s), dtype = some(z).shape, some(z).dtype
    if given < n:
        none, high = (0,) * 3, (0, n - given, 0)
        z = tuple(ops.pad(x, 0, low=none, high=high, interior=none) for x in z)
    left, stages = n, []
    for r in radices(n, s):
        matrix = roots(products(r, r, r), r, sign, dtype) if r > LONGEST else None
        turns = roots(products(r, left // r, left), left, sign, dtype) if left > r else None
        left //= r
        stages.append((r, left, matrix, turns))
    done = 1
    for r, left, matrix, turns in stages:
        wanted = r if left > 1 or count is None else -(-count // done)
        z = moved(z, ops.reshape, shape=(a, r, left, done * s))
        z = by_matrix(z, matrix, wanted, turns) if matrix else by_sums(z, sign, wanted, turns)
        done *= wanted
        z = moved(z, kept)
    if count in (None, done):
        return z
    return between(moved(z, ops.reshape, shape=(a, done, s)), 0, count)


def between(z, start, stop):
    """Both parts from start to stop along axis 1."""
    a, _, s = some(z).shape
    return moved(z, ops.slice, start=(0, start, 0), stop=(a, stop, s), stride=(1, 1, 1))


# ---------------------------------------------------------------------------- the operations

def seen(z, axis, size):
    """(the pair as [before the axis, size, behind it], its shape with `size` along the axis)."""
    shape = z[0].shape
    before, behind = math.prod(shape[:axis]), math.prod(shape[axis + 1:])
    return (moved(z, ops.reshape, shape=(before, shape[axis], behind)),
            (*shape[:axis], size, *shape[axis + 1:]))


def fft(z, *, axis, inverse):
    """The pair that `ops.fft` gives."""
    n = z[0].shape[axis]
    z, shape = seen(z, axis, n)
    return moved(run("fft", z, n=n, sign=1 if inverse else -1), ops.reshape, shape=shape)


def rfft(x, *, axis):
    """The pair that `ops.rfft` gives, of a real array."""
    n = x.shape[axis]
    (x, _), shape = seen((x, None), axis, n // 2 + 1)
    return moved(run("rfft", (x,), n=n), ops.reshape, shape=shape)


def irfft(z, *, axis, n):
    """The real array that `ops.irfft` gives."""
    z, shape = seen(z, axis, n)
    a, _, s = z[0].shape
    parts = [ops.reshape(x, shape=(a, n // (2 - n % 2), 1, s)) for x in run("irfft", z, n=n)]
    return ops.reshape(ops.concatenate(*parts, axis=2), shape=shape)


TRANSFORMS = {"fft": fft, "rfft": rfft, "irfft": irfft}


# ---------------------------------------------------------------------------- what they call

def run(name, args, **params):
    """The results of a transform of arrays [before, n, behind]: by a call, save of a few elements.
    """
    if params["n"] <= LONGEST:
        return CALLED[name](*args, **params)
    types = tuple([a.type for a in args])
    return called(*args, program=traced(name, types, tuple(params.items())))


@lru_cache(maxsize=256)
def traced(name, types, params):
    """The Program of a transform, whose equations are on no line of the user's."""
    made = stage(lambda *args: CALLED[name](*args, **dict(params)), types, name=name,
                 what=COMPILER).program
    return Program(name, made.inputs, [Equation(e.op, e.args, e.params, e.outs)
                                       for e in made.eqns], made.outputs)


def of_pairs(re, im, *, n, sign):
    """The pair of `fft`."""
    return transformed((re, im), n, sign)


def of_reals(x, *, n):
    """The pair of `rfft`.

    Of an even number: with Z the transform of x[2j] + i x[2j+1], those of both are
    (Z[k] + Z[-k]*) / 2 and (Z[k] - Z[-k]*) / 2i.
    """
    if n % 2:
        re, im = transformed((x, None), n, -1, n // 2 + 1)
        return re, ops.full(shape=re.shape, value=0.0, dtype=re.dtype) if im is None else im
    a, _, s = x.shape
    x = ops.reshape(x, shape=(a, n // 2, 2, s))
    parts = [ops.slice(x, start=(0, 0, j, 0), stop=(a, n // 2, j + 1, s), stride=(1,) * 4)
             for j in (0, 1)]
    z = transformed(moved(parts, ops.reshape, shape=(a, n // 2, s)), n // 2, -1)
    z = moved(z, ops.reshape, shape=(a, n // 2, s))
    z = tuple(ops.concatenate(*parts, axis=1) for parts in zip(z, between(z, 0, 1)))
    w = conjugate(moved(z, ops.rev, axes=(1,)))
    odd = times(quarter(taken(z, w), -1), along(roots(
        counted((n // 2 + 1,), 0), n, -1, x.dtype), z, 1))
    return scaled(added(added(z, w), odd), 0.5)


def to_reals(re, im, *, n):
    """What `irfft` gives, of an even number the elements x[2j] and those x[2j+1]: X[k] stands for
    X[n - k] too, but for the ends.

    The inverse of what `of_reals` does.
    """
    given, half = re.shape[1], n // 2
    k = counted(re.shape, 1)
    once = ops.eq(k, 0) if n % 2 else ops.or_(ops.eq(k, 0), ops.eq(k, half))
    z = re, ops.select(once, 0.0, im)
    if n % 2:
        z = tuple(ops.select(once, x, ops.mul(x, 2.0)) for x in z)
        return transformed(z, n, 1)[:1]
    w = conjugate(moved(between(z, 1, given), ops.rev, axes=(1,)))
    z = between(z, 0, half)
    odd = times(quarter(taken(z, w), 1), along(roots(
        counted((half,), 0), n, 1, re.dtype), z, 1))
    return transformed(added(added(z, w), odd), half, 1)


CALLED = {"fft": of_pairs, "rfft": of_reals, "irfft": to_reals}


def conjugate(z):
    return z[0], ops.neg(z[1])
