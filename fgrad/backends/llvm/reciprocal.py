"""Division as a product: x / d = fma(x, high, x · low), with high + low = 1 / d.

Together they have twice the places of a float; high is cut off so that both have d's sign:
infinities, zeros and NaN then come out of the arithmetic.  A quotient is wrong only where it lies
so near the middle of two floats that the product's own error, 2^(2 - 2p) of it, decides.  For a
constant these few numerators are found by modular arithmetic and tried (Brisebarre, Muller and
Raina 2004).  For a divisor that is known when the program runs they are not: one quotient in 2^21
or so is off by the last bit, with an error of 0.5000003 units there.  Quotients whose second term
is no normal number, below 2^-100 or so, may be off by the last bit too.  Relies on nothing;
`values` relies on it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

#   bits of the significand, and up to which power of two, and down to which, c may be
FORMATS = {"f32": (24, 100), "f64": (53, 900)}


@lru_cache(maxsize=1024)
def factors(c, kind):
    """(high, low) for a float c, or None where c is divided by.

    >>> factors(3.0, "f32")
    (0.3333333134651184, 1.9868215517249155e-08)
    >>> factors(4.0, "f32"), factors(0.0, "f32"), factors(1e38, "f32")
    (None, None, None)
    """
    bits, power = FORMATS[kind]
    if not 2.0 ** -power <= abs(c) <= 2.0 ** power:          # nor is NaN
        return None
    exact = 1 / Fraction(c)
    high = rounded(exact, bits, cut=True)
    low = rounded(exact - high, bits)
    odd = Fraction(abs(c)).numerator
    odd //= odd & -odd
    if odd == 1 or any(quotient(x, high, low, bits) != rounded(x * exact, bits)
                       for x in near_middles(odd, bits)):
        return None
    return float(high), float(low)


def quotient(x, high, low, bits):
    """What the two instructions give."""
    return rounded(x * high + rounded(x * low, bits), bits)


def rounded(x, bits, cut=False):
    """A Fraction to so many bits: to the nearest, ties to even, or cut off."""
    if not x:
        return x
    n, d = abs(x.numerator), x.denominator
    places = bits + d.bit_length() - n.bit_length()          # the quotient has `bits`, or one more
    n, d = (n << max(places, 0)), (d << max(-places, 0))
    if n // d >> bits:
        d, places = d * 2, places - 1
    whole, rest = divmod(n, d)
    if not cut and (2 * rest > d or 2 * rest == d and whole & 1):
        whole += 1
    out = Fraction(whole) / Fraction(2) ** places
    return -out if x < 0 else out


def near_middles(odd, bits):
    """Significands x whose quotient by an odd number lies nearest to the middle of two floats.

    That is x 2^k = odd · m + d, for an odd m of one bit more and a small d.
    """
    length = odd.bit_length()
    most = (1 << max(length - bits + 3, 0)) - 1
    for k in (length, length + 1):
        modulus = 1 << k
        inverse = pow(odd, -1, modulus)
        for d in [d for n in range(1, most + 1) for d in (n, -n)]:
            first = -d * inverse % modulus
            for m in range(first + -(first - (1 << bits)) // modulus * modulus,
                           2 << bits, modulus):
                x = odd * m + d >> k
                if m >= 1 << bits and 1 << bits - 1 <= x < 1 << bits:
                    yield x


# ---------------------------------------------------------------------------- as LLVM text

LLVM = {"f32": ("float", "i32"), "f64": ("double", "i64")}
SCALE = {"f32": 64, "f64": 512}        # the exponent by which very small and large divisors move


def parts(op, d, kind):
    """(high, low, scale) of a scalar divisor, by `op`: x / d = fma(x, high, x · low) · scale.

    scale is a power of two, 1 but for divisors that are so small or large that their reciprocal
    would lose places.  Where that is zero, infinite or NaN, so are both parts.
    """
    (t, bits), power = LLVM[kind], FORMATS[kind][1]

    def call(name, *args):
        return op(f"call {t} @llvm.{name}.{kind}({', '.join(f'{t} {a}' for a in args)})")

    def compared(x, how, end):
        return op(f"fcmp {how} {t} {x}, {2.0 ** end:.17e}")

    def chosen(test, yes, no):
        return op(f"select i1 {test}, {t} {yes}, {t} {no}")
    size = call("fabs", d)
    up, down = (f"{2.0 ** end:.17e}" for end in (SCALE[kind], -SCALE[kind]))
    scale = chosen(compared(size, "olt", -power), up,
                   chosen(compared(size, "ogt", power), down, "1.0"))
    near = op(f"fmul {t} {d}, {scale}")
    inverse = op(f"fdiv {t} 1.0, {near}")
    less = op(f"sub {bits} {op(f'bitcast {t} {inverse} to {bits}')}, 1")
    high = op(f"bitcast {bits} {less} to {t}")
    low = op(f"fmul {t} {call('fma', op(f'fneg {t} {high}'), near, '1.0')}, {inverse}")
    size = call("fabs", near)
    edge = op(f"or i1 {compared(size, 'ult', -power)}, {compared(size, 'ugt', power)}")
    return chosen(edge, inverse, high), chosen(edge, inverse, low), scale
