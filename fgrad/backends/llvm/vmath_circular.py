"""Circular functions, their inverses, and remainders, as formulas over `vmath_values`.

Angles up to LARGE are reduced by Cody and Waite's method with three parts of pi/2; larger ones, in
a branch taken only if a vector has one, by the function `quadrant`, for every finite angle.
Polynomials are minimax fits made for this file (see `vmath_exponential`).  Relies on
`vmath_values`; `vmath` names the functions and states their measured errors.
"""

from __future__ import annotations

import math

from .vmath_values import (FORMATS, Value, absolute, any_lane, copysign, fma, horner, intrinsic,
                           repeat, select, unless, where_any)

#   (sin r - r) / r^3 and (cos r - 1 + r^2/2) / r^4 as functions of r^2, |r| <= pi/4
SIN = {"f32": (-0.16666654, 0.008332096, -0.00019505627),
       "f64": (-0.16666666666666635, 0.008333333333322201, -0.00019841269829183361,
               2.7557313372081437e-06, -2.5050696530464057e-08, 1.5892724695767028e-10)}
COS = {"f32": (0.041666653, -0.0013887575, 2.4455021e-05),
       "f64": (0.04166666666666665, -0.001388888888888045, 2.4801587292345644e-05,
               -2.755731494816657e-07, 2.087578011266261e-09, -1.1361600666915769e-11)}

#   (asin x - x) / x^3 as a function of x^2 on [0, 1/4]
ASIN = {"f32": (0.16666663, 0.075003855, 0.04453538, 0.0316769, 0.0148726115, 0.036970306),
        "f64": (0.16666666666666702, 0.07499999999982614, 0.04464285716553385,
                0.030381943076121666, 0.02237220593319444, 0.017351757023922047,
                0.013979245738115199, 0.01141072939256164, 0.01071891005232158,
                0.003922727557039071, 0.021212789286731096, -0.020337448132181045,
                0.032235686170238996)}

#   (atan x - x) / x^3 as a function of x^2 on [0, 1]
ATAN = {"f32": (-0.33333313, 0.19998932, -0.14268003, 0.10970719, -0.08455119, 0.058809247,
                -0.032000177, 0.011344499, -0.0018875549),
        "f64": (-0.3333333333333324, 0.1999999999997358, -0.14285714283646578, 0.1111111103475719,
                -0.09090907447263603, 0.0769228463014382, -0.06666440741820115,
                0.05880734613653272, -0.05254398524935411, 0.04725197287108484,
                -0.04226470509335111, 0.03678626447508182, -0.030127079881551416,
                0.02225319046594634, -0.014148522866567965, 0.007369142713295991,
                -0.002972473657807199, 0.0008618344176032147, -0.00015869162324064266,
                1.3872101665326824e-05)}

#   pi/2 in three parts, each the next rounded to the dtype
HALF_PI = {"f32": (1.57079637050628662109375, -4.37113882867379115e-08, -1.71512447352529597e-15),
           "f64": (1.57079632679489661923, 6.12323399573676604e-17, -1.49738490485916983e-33)}

LARGE = {"f32": 1e5, "f64": 2.0 ** 30}         # from here on angles are reduced exactly


# -- angles -------------------------------------------------------------------------------------


def reduce_angle(x):
    """(r, q) with x = q pi/2 + r, |r| <= pi/4 or a little more; q is right in its low two bits."""
    f = x.format
    first, second, third = HALF_PI[x.kind]
    shifted = fma(x, 2 / math.pi, f.magic)
    n = shifted - f.magic
    r = fma(n, -third, fma(n, -second, fma(n, -first, x)))
    return where_any(absolute(x) > LARGE[x.kind], lambda: large_angle(x), (r, shifted.bits()))


def large_angle(x):
    """(r, q) of an angle of any size, by a call of `quadrant`."""
    body, name = x.body, f"fg.quadrant.{x.body.suffix(x.kind)}"
    body.calls.append("quadrant")
    t = body.type(x.kind)
    pair = body.op(None, f"call {{{t}, {t}}} @{name}({t} {x.name})").name
    r, n = (body.op(x.kind, f"extractvalue {{{t}, {t}}} {pair}, {i}") for i in (0, 1))
    return r, (n + x.format.magic).bits()


def sine(r):
    z = r * r
    return fma(r * z, horner(z, SIN[r.kind]), r)


def cosine(r):
    z = r * r
    return fma(z, fma(z, horner(z, COS[r.kind]), -0.5), 1.0)


def is_odd(q):
    return (q & 1).differs(0)


def turned(y, q, bit):
    """-y where a bit of q is set, else y."""
    width = y.format.width
    return (y.bits() ^ ((q & (1 << bit)) << (width - 1 - bit))).as_float()


def wave(r, q):
    """sin(r + q pi/2)"""
    return turned(select(is_odd(q), cosine(r), sine(r)), q, 1)


def sin(x):
    r, q = reduce_angle(x)
    return select(x.equals(0.0), x, wave(r, q))


def cos(x):
    r, q = reduce_angle(x)
    return wave(r, q + 1)


def tan(x):
    r, q = reduce_angle(x)
    s, c, odd = sine(r), cosine(r), is_odd(q)
    y = turned(select(odd, c, s) / select(odd, s, c), q, 0)
    return select(x.equals(0.0), x, y)


def quadrant(x):
    """(r, n + 4 m) with x = n pi/2 + r, both in x's dtype, for every |x| >= 1; NaN for inf.

    x is a sum of two numbers of at most 27 bits, and 2/pi a sum of chunks of 26 bits (TWO_OVER_PI),
    so that every product is exact; of each only the remainder by 4 is kept, which is exact too.
    Their sum is compensated: high + low is right to 2^-100.
    """
    body, kind = x.body, x.kind
    x = x.wide() * 2.0 ** -120                                   # the chunks are larger by as much
    head = (x.bits() & -(1 << 27)).as_float()
    tail = x - head
    zero = x.body.value(0.0, "f64")
    count = CHUNKS[kind]

    def step(values):
        i, high, low, turns = values
        chunk = body.splat("f64", load_chunk(body, kind, i))
        for part in (head, tail):
            high, low, turns = add_turns(part * chunk, high, low, turns)
        after = body.op("index", f"add i64 {i.name}, 1")
        again = body.op("flag", f"icmp ult i64 {after.name}, {count}")
        return (after, high, low, turns), again

    _, high, low, turns = repeat(body, (Value(body, "0", "index"), zero, zero, zero), step)
    total = high + low
    rest = low - (total - high)
    first, second, _ = HALF_PI["f64"]
    r = fma(total, first, fma(total, second, rest * first))
    return r.narrow(kind), turns.narrow(kind)


def add_turns(product, high, low, turns):
    """high + low + product, of which whole numbers go to turns."""
    product = fma(-4.0, intrinsic("rint", 0.25 * product), product)
    total = high + product
    back = total - high
    low = low + ((high - (total - back)) + (product - back))
    whole = intrinsic("rint", total)
    return total - whole, low, turns + whole


def table_name(body, kind):
    """The name of the table that `quadrant` reads, one per width."""
    return f"@fg.two_over_pi.{body.suffix(kind)}"


def load_chunk(body, kind, i):
    """The name of the chunk of 2/pi at i, loaded."""
    p = body.op(None, f"getelementptr inbounds double, ptr {table_name(body, kind)}, i64 {i.name}")
    return body.op(None, f"load double, ptr {p.name}, align 8").name


CHUNK_BITS = 26
CHUNKS = {"f32": 9, "f64": 46}                # beyond them products are below 2^-100 for every x


def two_over_pi(bits):
    """floor(2/pi 2^bits) by Machin's formula, with 64 bits to spare."""
    one = 1 << (bits + 64)

    def arctan_inverse(n):
        total = term = one // n
        k = 1
        while term:
            term //= -n * n
            k += 2
            total += term // k
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    return (2 * one << bits) // pi


def chunks(count):
    """2^120 2/pi as a list of floats of 26 bits each.

    >>> sum(chunks(3)) * 2.0 ** -120 - 2 / math.pi
    0.0
    """
    digits = two_over_pi(CHUNK_BITS * count)
    mask = (1 << CHUNK_BITS) - 1
    pieces = [(digits >> (CHUNK_BITS * (count - i))) & mask for i in range(1, count + 1)]
    return [math.ldexp(piece, 120 - CHUNK_BITS * i) for i, piece in enumerate(pieces, 1)]


# -- inverses -----------------------------------------------------------------------------------


def arcsine(a):
    """(p, beyond): asin a is p for a <= 1/2, and where `beyond` it is pi/2 - 2 p."""
    beyond = a > 0.5
    z = select(beyond, fma(-0.5, a, 0.5), a * a)
    s = select(beyond, intrinsic("sqrt", z), a)
    return fma(s * z, horner(z, ASIN[a.kind]), s), beyond


def asin(x):
    p, beyond = arcsine(absolute(x))
    first, second, _ = HALF_PI[x.kind]
    return copysign(select(beyond, fma(-2.0, p, first) + second, p), x)


def acos(x):
    p, beyond = arcsine(absolute(x))
    first, second, _ = HALF_PI[x.kind]
    inner = first - (copysign(p, x) - second)
    outer = 2.0 * p
    outer = select(x < 0.0, 2 * first - (outer - 2 * second), outer)
    return select(beyond, outer, inner)


def arctan(q):
    """atan q for q from 0 to 1."""
    z = q * q
    return fma(q * z, horner(z, ATAN[q.kind]), q)


def atan(x):
    a = absolute(x)
    beyond = a > 1.0
    p = arctan(select(beyond, 1.0, a) / select(beyond, a, 1.0))
    first, second, _ = HALF_PI[x.kind]
    return copysign(select(beyond, first - (p - second), p), x)


def atan2(y, x):
    """The angle of the point (x, y), signs of zeros and infinities as in C."""
    a, b = absolute(y), absolute(x)
    steep = a > b
    small, large = select(steep, b, a), select(steep, a, b)
    q = select(small.equals(large), 1.0, small / large)          # 1 of two infinities
    p = arctan(select(large.equals(0.0), 0.0, q))
    first, second, _ = HALF_PI[x.kind]
    p = select(steep, first - (p - second), p)
    p = select(copysign(1.0, x) < 0.0, 2 * first - (p - 2 * second), p)
    return select(x.unordered(y), x + y, copysign(p, y))


# -- remainders ---------------------------------------------------------------------------------


def rem(x, y):
    """x - trunc(x / y) y, exactly: C's fmod, with the sign of x; NaN for infinite x or zero y.

    Large quotients are seldom: a branch.
    """
    a, b = absolute(x), absolute(y)
    quotient = a / b
    usual = (quotient < x.format.magic / 4) & (b < math.inf)
    return copysign(unless(any_lane(~usual), lambda: less_multiples(a, quotient, b),
                           lambda: any_rest(a, b)), x)


def less_multiples(a, quotient, b):
    """a - trunc(quotient) b, exactly: both the product in the fma and the difference are exact.  A
    rounded quotient may be 1 too large, which shows as a negative rest.
    """
    after = fma(-intrinsic("trunc", quotient), b, a)
    return select(after < 0.0, after + b, after)


def any_rest(x, y):
    """`rem` of x and y that are not negative: subtracts multiples q of y 2^k, k >= 0, q below 2^53.
    """
    a, b = x.wide(), y.wide()
    usual = (a < math.inf) & (b > 0.0) & (b < math.inf)
    rest, divisor = select(usual, a, 0.0), select(usual, b, 1.0)
    exponent = stored_exponent(divisor)
    rest, = repeat(x.body, (rest,), lambda values: remainder_step(*values, divisor, exponent))
    other = select((a < math.inf) & b.equals(math.inf), a, math.nan)
    return select(usual, rest, other).narrow(x.kind)


def remainder_step(rest, b, exponent):
    """Up to 52 bits of the quotient less: ((rest,), whether some rest is still at or above b)."""
    f = FORMATS["f64"]
    k = stored_exponent(rest) - exponent - 51
    k = select(k > 0, k, 0)
    half = k >> 1
    multiple = b * ((half + f.bias) << f.mantissa).as_float()
    multiple = multiple * (((k - half) + f.bias) << f.mantissa).as_float()
    after = less_multiples(rest, rest / multiple, multiple)
    return (after,), any_lane(after >= b)


def stored_exponent(x):
    """The exponent of x >= 0 plus the bias, going on below 1 for denormals."""
    f = FORMATS["f64"]
    small = x < f.smallest
    scaled = select(small, x * 2.0 ** 54, x).bits() >> f.mantissa
    return scaled - select(small, 54, 0, "i64")
